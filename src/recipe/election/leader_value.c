/* leader_value.c - publishes the value of a leader. The node may already exist. If it is our own,
 * it is written to; if it is a former leader's, it would vanish with that leader's session, so it
 * is replaced. The server's answer shows which it is. What must stay true: a value is written only
 * in a transaction that checks the leader's node. */
#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "client/client_for_recipes.h"
#include "recipe/contender/guarded_write.h"
#include "recipe/election/latch_internal.h"

/* Only an operator can make the node come and go between tries. */
enum { TRIES = 8 };
enum step { STEP_CREATE, STEP_REPLACE, STEP_SET };

struct publication {
    clave_async_latch *l;
    const struct clave_mem *mem;
    clave_result_cb *cb;
    void *arg;
    int64_t token;
    enum step step;
    int tries;
    char *path;
    char *node;
    char *data; /* the name of the leader's node, a newline, the value */
    size_t len;
};

char *clave__value_path(const struct clave_mem *mem, const char *path)
{
    static const char suffix[] = "-value";
    size_t n = strlen(path);
    char *out = clave__mem_alloc(mem, n + sizeof suffix);
    if (!out)
        return NULL;
    memcpy(out, path, n);
    memcpy(out + n, suffix, sizeof suffix);
    return out;
}

static void leader_value_free(struct publication *p)
{
    clave__mem_free(p->mem, p->path);
    clave__mem_free(p->mem, p->node);
    clave__mem_free(p->mem, p->data);
    clave__mem_free(p->mem, p);
}

static void leader_value_finish(clave_async_client *c, struct publication *p, clave_err err)
{
    clave_async_latch *l = p->l;
    /* if the outcome is unknown, the value may exist and will have to be withdrawn */
    if (err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
        l->published_token = p->token;
    if (p->cb)
        p->cb(c, &(clave_result){.err = err, .path = p->path}, p->arg);
    leader_value_free(p);
    clave__latch_drop(l);
}

static void leader_value_on_done(clave_async_client *c, const clave_result *res, void *arg);

static clave_err leader_value_submit(clave_async_client *c, struct publication *p)
{
    assert(p->tries < TRIES);
    clave_op remove = {.kind = CLAVE_OP_DELETE, .path = p->path, .version = -1};
    clave_op create = {.kind = CLAVE_OP_CREATE,
                       .path = p->path,
                       .data = p->data,
                       .len = p->len,
                       .mode = CLAVE_EPHEMERAL};
    clave_op set = {
        .kind = CLAVE_OP_SET, .path = p->path, .data = p->data, .len = p->len, .version = -1};
    clave_op ops[2] = {remove, create};
    if (p->step == STEP_SET)
        ops[0] = set;
    else if (p->step == STEP_CREATE)
        ops[0] = create;
    p->tries++;
    struct write_guard leader = {.nodes = (const char *const[]){p->node}, .n = 1};
    return clave__guarded_write_multi(c, leader, ops, p->step == STEP_REPLACE ? 2 : 1,
                                      leader_value_on_done, p);
}

static void leader_value_on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct publication *p = arg;
    clave_err err = res->err;
    bool there = p->step == STEP_CREATE && err == CLAVE_ENODEEXISTS;
    bool missing = p->step != STEP_CREATE && err == CLAVE_ENONODE;
    if ((there || missing) && p->tries < TRIES) {
        p->step = there ? STEP_REPLACE : STEP_CREATE;
        err = leader_value_submit(c, p);
        if (err == CLAVE_OK)
            return;
    }
    leader_value_finish(c, p, err);
}

static clave_err leader_value_fill(struct publication *p, const struct latch_lead *lead,
                                   const void *data, size_t len)
{
    const char *name = clave__path_name(lead->node);
    size_t nname = strlen(name);
    p->path = clave__value_path(p->mem, lead->path);
    p->node = clave__mem_strdup(p->mem, lead->node);
    p->data = len < SIZE_MAX - nname - 1 ? clave__mem_alloc(p->mem, nname + 1 + len) : NULL;
    if (!p->path || !p->node || !p->data)
        return CLAVE_ENOMEM;
    memcpy(p->data, name, nname);
    p->data[nname] = '\n';
    if (len)
        memcpy(p->data + nname + 1, data, len);
    p->len = nname + 1 + len;
    return CLAVE_OK;
}

clave_err clave_async_latch_publish(clave_async_latch *l, const void *data, size_t len,
                                    clave_result_cb *cb, void *arg)
{
    struct latch_lead lead;
    if (!clave__latch_lead(l, &lead))
        return CLAVE_ENOTHELD;
    /* A value says whose it is by the name of the leader's node, which in a race is always the
     * same. */
    if (strcmp(lead.path, "/") == 0 || l->config.spec.rule->race)
        return CLAVE_EINVAL;
    const struct clave_mem *mem = clave__client_mem(lead.client);
    struct publication *p = clave__mem_zalloc(mem, sizeof *p);
    if (!p)
        return CLAVE_ENOMEM;
    *p = (struct publication){.l = l, .mem = mem, .cb = cb, .arg = arg, .token = lead.token};
    p->step = l->published_token == lead.token ? STEP_SET : STEP_CREATE;
    clave_err err = leader_value_fill(p, &lead, data, len);
    if (err == CLAVE_OK)
        err = leader_value_submit(lead.client, p);
    if (err != CLAVE_OK)
        leader_value_free(p);
    else
        clave__latch_hold(l);
    return err;
}

void clave__value_withdraw(const struct latch_lead *lead)
{
    const struct clave_mem *mem = clave__client_mem(lead->client);
    char *path = clave__value_path(mem, lead->path);
    if (!path)
        return;
    clave_op op = {.kind = CLAVE_OP_DELETE, .path = path, .version = -1};
    struct write_guard leader = {.nodes = (const char *const[]){lead->node}, .n = 1};
    (void)clave__guarded_write_one(lead->client, leader, &op, NULL, NULL);
    clave__mem_free(mem, path);
}
