/* contender_downgrade.c - a place taken over from a node of our own owner, as Curator's downgrade
 * does it since 5.5 (CURATOR-621): the read node carries the number of the write node, so no writer
 * that waits can come between the two. The server creates it only while the write node
 * exists; otherwise it would come before a writer that was granted meanwhile. Once created it is
 * granted: whatever sorts after the write node sorts after it as well.
 *
 * The name is chosen once and known, so it needs no search as protection. When the answer is lost,
 * our own node is read; if it did not exist yet, the next create will meet it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "recipe/contender/contender.h"

clave_err clave__contender_downgrade_prepare(struct contender *c, const char *node)
{
    assert(!c->downgrade.node);
    const struct contender_spec *spec = c->spec;
    const char *number = clave__queue_order_key(spec->rule, clave__path_name(node)).text;
    char prefix[CLAVE_PROTECTED_PREFIX + 1];
    size_t dir = (size_t)(clave__path_name(spec->stem) - spec->stem);
    size_t nnode = strlen(node) + 1;
    size_t nown = strlen(spec->stem) + CLAVE_PROTECTED_PREFIX + strlen(number) + 1;
    c->downgrade.node = clave__mem_alloc(c->mem, nnode + nown);
    if (!c->downgrade.node)
        return CLAVE_ENOMEM;
    clave__client_protect(c->client, prefix);
    memcpy(c->downgrade.node, node, nnode);
    snprintf(c->downgrade.node + nnode, nown, "%.*s%s%s%s", (int)dir, spec->stem, prefix,
             spec->stem + dir, number);
    c->downgrade.own = c->downgrade.node + nnode;
    return CLAVE_OK;
}

static void forget_downgrade(struct contender *c)
{
    clave__mem_free(c->mem, c->downgrade.node);
    c->downgrade.node = NULL;
    c->downgrade.own = NULL;
}

static void contender_downgrade_created(struct contender *c, int64_t zxid)
{
    c->node.session_id = clave_async_client_session_id(c->client);
    c->node.seen = true;
    c->node.token = zxid;
    clave__contender_enter(c, CONTENDER_WAITING);
    clave__contender_turn_has_come(c);
}

/* The node may exist. Reading it tells whether it does, and whose it is. */
static void contender_downgrade_unknown(struct contender *c, clave_err err)
{
    c->node.session_id = clave_async_client_session_id(c->client);
    clave__contender_enter(c, CONTENDER_WAITING);
    if (err == CLAVE_ENODEEXISTS)
        clave__contender_turn_check(c);
    else
        clave__contender_retry_or_fail(c, err);
}

static void contender_downgrade_on_created(clave_async_client *client, const clave_result *res,
                                           void *arg)
{
    (void)client;
    struct contender *c = arg;
    bool may_stand = res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS ||
                     clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN;
    if (c->state != CONTENDER_JOINING) {
        if (may_stand)
            clave__contender_remove_own(c); /* given up meanwhile */
    } else if (res->err == CLAVE_OK) {
        contender_downgrade_created(c, res->zxid);
    } else if (may_stand) {
        contender_downgrade_unknown(c, res->err);
    } else {
        /* The write node is gone: join with a place of our own, at the end of the queue. */
        if (res->err == CLAVE_ENONODE)
            forget_downgrade(c);
        clave__contender_join_failed(c, res->err);
    }
    clave__contender_end(c);
}

clave_err clave__contender_downgrade_submit(struct contender *c)
{
    assert(c->downgrade.node && c->downgrade.own);
    const struct contender_spec *spec = c->spec;
    size_t len;
    const void *data = clave__contender_data(c, &len);
    /* The create comes first: when both would fail, its error is the one we need. */
    const clave_op ops[] = {
        {.kind = CLAVE_OP_CREATE,
         .path = c->downgrade.own,
         .data = data,
         .len = len,
         .mode = CLAVE_EPHEMERAL,
         .acls = spec->acls,
         .nacls = spec->nacls},
        {.kind = CLAVE_OP_CHECK, .path = c->downgrade.node, .version = -1},
    };
    clave_err err = clave__node_watch_set(&c->node.watch, c->downgrade.own, NULL);
    return err == CLAVE_OK ? clave_async_multi(c->client, ops, 2, contender_downgrade_on_created, c)
                           : err;
}
