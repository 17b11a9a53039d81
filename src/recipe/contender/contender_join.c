/* contender_join.c - how a contender gets its node. There are three ways.
 *
 * In a queue: a create with a sequence number, protected by a name of its own, followed at once by
 * a listing. A try to write first looks whether anybody is before it: even if it were refused, its
 * node would make every reader that comes meanwhile wait, and refuse every try to read. Once it has
 * seen nobody it creates its node, and the node decides.
 *
 * As a single node, without a queue (the election in the ZooKeeper book): the node has a fixed name
 * and belongs to the contender that creates it first. All others watch it, and all of them try when
 * it is deleted, which is the herd effect that queues exist to avoid. The czxid tells whose node it
 * is, never the name or the session alone.
 *
 * As a downgrade: it takes the place of a node of our own owner, as Curator has done since 5.5
 * (CURATOR-621). The read node carries the number of the write node, so no waiting writer can get
 * in between the two. The server creates it only while the write node exists; otherwise it would be
 * before a writer that was granted in the meantime. Once created it is granted, because whatever
 * sorts after the write node sorts after it as well. Its name is chosen once and known, so it needs
 * no search as protection: if the answer is lost, our own node is read, and if it did not exist
 * yet, the next create will run into it.
 *
 * What must stay true: a create that may have left a node whose name is unknown is never sent
 * again. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "recipe/contender/contender.h"

enum { LET_OTHERS_MS = 100 };

/* ---- no queue: another contender's node exists ----------------------------------------------- */

void clave__contender_race_look(struct contender *c)
{
    assert(c->state == CONTENDER_STANDING_BY);
    clave_err err = clave__node_watch_read(&c->queue.predecessor);
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

static void race_stand_by(struct contender *c)
{
    assert(c->acquire.race);
    if (c->acquire.trying) {
        clave__contender_fail(c, CLAVE_EBUSY);
        return;
    }
    clave__contender_enter(c, CONTENDER_STANDING_BY);
    c->queue.others_seen_on = clave_async_client_connection(c->client);
    clave_err err = clave__node_watch_set(&c->queue.predecessor, c->spec->stem, NULL);
    if (err == CLAVE_OK)
        clave__contender_race_look(c);
    else
        clave__contender_fail(c, err);
}

void clave__contender_race_rival_reply(struct node_watch *w, const clave_result *res)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state != CONTENDER_STANDING_BY) {
        /* it was requested in an earlier state, or the contender was given up */
    } else if (res->err == CLAVE_ENONODE) {
        clave__contender_join_again(c);
    } else if (res->err != CLAVE_OK) {
        clave__contender_retry_or_fail(c, res->err);
    } else {
        c->acquire.failures = 0;
        bool news = clave__contender_predecessor_left_over(c, res->stat) || c->queue.ahead != 1;
        c->queue.ahead = 1; /* all others wait as we do, in no order */
        c->queue.others_seen_on = clave_async_client_connection(c->client);
        if (news)
            c->events->moved(c->owner);
    }
    clave__contender_end(c);
}

void clave__contender_race_rival_event(struct node_watch *w, const clave_event *ev)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state == CONTENDER_STANDING_BY && ev->type == CLAVE_EVENT_DELETED) {
        clave__contender_join_again(c);
    } else if (c->state == CONTENDER_STANDING_BY) {
        /* it was written to, or it was deleted and created again while we were not connected */
        clave__contender_race_look(c);
    }
    clave__contender_end(c);
}

void clave__contender_race_delay(struct contender *c)
{
    if (c->acquire.race)
        clave__client_timer_set(c->client, &c->acquire.pause,
                                clave__client_now(c->client) + LET_OTHERS_MS);
}

/* ---- the answers to JOINING's create --------------------------------------------------------- */

static void contender_join_failed(struct contender *c, clave_err err)
{
    assert(c->state == CONTENDER_JOINING && err != CLAVE_OK);
    if (c->acquire.race && err == CLAVE_ENODEEXISTS) {
        race_stand_by(c);
        return;
    }
    /* A server with a restored directory gives out no places yet. A try does not wait for that, and
     * nobody knows who holds the lock. */
    if (c->acquire.trying && err == CLAVE_EOPTIMEOUT) {
        clave__contender_fail(c, clave__contender_not_in_time(c));
        return;
    }
    /* The session ended during the request, or the server removed the parent between its creation
     * and ours; in either case it is proven that there is no node. After any other error of class
     * UNKNOWN, trying again could leave a node whose name we do not know. */
    bool only_found = c->spec->only_found || (c->place && c->place->at);
    bool anew =
        (err == CLAVE_ENONODE && !only_found) || clave_err_classify(err) == CLAVE_CLASS_RETRY;
    if (!anew) {
        clave__contender_fail(c, err);
        return;
    }
    c->acquire.failures++;
    clave__contender_start_over(c, false);
}

static void contender_joined(struct contender *c, const clave_stat *stat, const char *const *names,
                             size_t n)
{
    assert(c->state == CONTENDER_JOINING);
    c->node.session_id = clave_async_client_session_id(c->client);
    c->node.seen = stat && stat->ephemeral_owner == c->node.session_id;
    c->node.token = stat ? stat->czxid : 0;
    clave__contender_enter(c, CONTENDER_WAITING);
    /* CURATOR-604: a node of a session that is over is about to vanish, and is never ours */
    if (stat && !c->node.seen)
        clave__contender_start_over(c, !c->acquire.race);
    else if (c->acquire.race)
        clave__contender_turn_has_come(c);
    else if (c->node.seen && names) {
        c->queue.listed_on = clave_async_client_connection(c->client);
        clave__contender_turn_by_listing(c, names, n);
    } else
        clave__contender_turn_check(c);
}

/* ---- the create in a queue, or of the single node -------------------------------------------- */

static void contender_on_created(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    bool created = res->err == CLAVE_OK;
    if (created && clave__node_watch_set(&c->node.watch, res->path, NULL) != CLAVE_OK) {
        /* the name is longer than any that ZooKeeper makes, and there is no memory for it */
        clave__contender_remove_node(c, res->path);
        c->leaving.must_delete = false;
        created = false;
        if (c->state == CONTENDER_JOINING)
            clave__contender_fail(c, CLAVE_ENOMEM);
    } else if (c->state == CONTENDER_JOINING) {
        if (created)
            contender_joined(c, res->stat, res->names, res->nnames);
        else
            contender_join_failed(c, res->err);
    } else if (created) {
        c->node.token = res->stat->czxid;
        clave__contender_give_up_node(c);
    }
    clave__contender_end(c);
}

static clave_err contender_submit_create(struct contender *c)
{
    const struct contender_spec *spec = c->spec;
    clave_create_options o = {
        .size = sizeof o,
        .mode = c->acquire.race ? CLAVE_EPHEMERAL : CLAVE_EPHEMERAL_SEQUENTIAL,
        .flags = CLAVE_CREATE_PARENTS |
                 (spec->rule->unprotected ? CLAVE_CREATE_CERTAIN : CLAVE_CREATE_PROTECTED),
        .acls = spec->acls,
        .nacls = spec->nacls,
        .with_names = !c->acquire.race,
    };
    size_t len;
    const void *data = clave__contender_data(c, &len);
    const struct queue_place *place = spec->rule->unprotected ? NULL : spec->place;
    const char *chosen = place ? place->uuid : c->uuid;
    char uuid[CLAVE_UUID_TEXT + 1];
    if (chosen) { /* if there are several, each has a name of its own that is derived from the
                     chosen one */
        memcpy(uuid, chosen, sizeof uuid);
        clave__uuid_mix(uuid, c->nth, 0);
    }
    struct client_named_create n = {.path = spec->stem,
                                    .data = data,
                                    .len = len,
                                    .o = &o,
                                    .uuid = chosen ? uuid : NULL,
                                    .search = place && place->search,
                                    .only_found = place && spec->only_found,
                                    .at = place ? place->at : NULL,
                                    .once = c->acquire.trying,
                                    .below = place ? place->below : NULL,
                                    .excludes = place ? place->excludes : NULL,
                                    .excludes_arg = spec->place,
                                    .stake = &c->leaving.stake};
    c->leaving.stake = (struct create_stake){0};
    return clave__client_create_named(c->client, &n, contender_on_created, c);
}

/* ---- a downgrade ----------------------------------------------------------------------------- */

static clave_err downgrade_prepare(struct contender *c, const char *node)
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

clave_err clave__contender_downgrade(struct contender *c, const char *node)
{
    clave_err err = downgrade_prepare(c, node);
    if (err != CLAVE_OK)
        clave__contender_free(c);
    return err;
}

static void downgrade_forget(struct contender *c)
{
    clave__mem_free(c->mem, c->downgrade.node);
    c->downgrade.node = NULL;
    c->downgrade.own = NULL;
}

static void downgrade_created(struct contender *c, int64_t zxid)
{
    c->node.session_id = clave_async_client_session_id(c->client);
    c->node.seen = true;
    c->node.token = zxid;
    clave__contender_enter(c, CONTENDER_WAITING);
    clave__contender_turn_has_come(c);
}

/* The node may exist. Reading it tells whether it does, and whose it is. */
static void downgrade_unknown(struct contender *c, clave_err err)
{
    c->node.session_id = clave_async_client_session_id(c->client);
    clave__contender_enter(c, CONTENDER_WAITING);
    if (err == CLAVE_ENODEEXISTS)
        clave__contender_turn_check(c);
    else
        clave__contender_retry_or_fail(c, err);
}

static void downgrade_on_created(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    bool may_stand = res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS ||
                     clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN;
    if (c->state != CONTENDER_JOINING) {
        if (may_stand)
            clave__contender_remove_own(c); /* it was given up in the meantime */
    } else if (res->err == CLAVE_OK) {
        downgrade_created(c, res->zxid);
    } else if (may_stand) {
        downgrade_unknown(c, res->err);
    } else {
        /* the write node is gone: join with a place of our own at the end of the queue */
        if (res->err == CLAVE_ENONODE)
            downgrade_forget(c);
        contender_join_failed(c, res->err);
    }
    clave__contender_end(c);
}

static clave_err downgrade_submit(struct contender *c)
{
    assert(c->downgrade.node && c->downgrade.own);
    const struct contender_spec *spec = c->spec;
    size_t len;
    const void *data = clave__contender_data(c, &len);
    /* The create comes first: if both fail, its error is the one we need. */
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
    return err == CLAVE_OK ? clave_async_multi(c->client, ops, 2, downgrade_on_created, c) : err;
}

/* ---- a look before a try to write ------------------------------------------------------------ */

/* True if it is to look before it joins. A place that may exist already is searched for instead:
 * the look would find that place itself. */
static bool contender_looks_first(const struct contender *c)
{
    const struct contender_spec *spec = c->spec;
    bool found = spec->only_found || (spec->place && (spec->place->search || spec->place->at));
    return c->acquire.trying && spec->rule->overtaken && !c->downgrade.node && !found;
}

static void contender_look_failed(struct contender *c, clave_err err)
{
    assert(c->state == CONTENDER_LOOKING);
    clave__contender_fail(c, clave__err_passes(err) ? clave__contender_not_in_time(c) : err);
}

static void contender_on_synced(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    clave_err err = res->err == CLAVE_OK ? c->acquire.unlisted : res->err;
    if (c->state == CONTENDER_LOOKING && err != CLAVE_OK)
        contender_look_failed(c, err);
    clave__contender_end(c);
}

static void contender_looked(struct contender *c, const char *const *names, size_t n)
{
    const char *path = c->spec->path;
    struct queue_order_place end = clave__queue_order_at_end(c->spec->rule, names, n);
    if (end.ahead == 0) {
        clave__contender_join_again(c);
        return;
    }
    c->queue.others_seen_on = clave_async_client_connection(c->client);
    clave__contender_explain_busy(c->client, path, strlen(path), end.owners, end.before);
    clave__contender_fail(c, CLAVE_EBUSY);
}

static void contender_on_looked(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    if (c->state == CONTENDER_LOOKING && res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
        contender_look_failed(c, res->err);
    else if (c->state == CONTENDER_LOOKING)
        contender_looked(c, res->names, res->nnames);
    clave__contender_end(c);
}

/* Behind a sync, since a lagging member might still list a node that is gone. */
static clave_err contender_submit_look(struct contender *c)
{
    clave_err err = clave_async_sync(c->client, c->spec->path, contender_on_synced, c);
    if (err != CLAVE_OK)
        return err;
    c->busy++;
    clave__contender_enter(c, CONTENDER_LOOKING);
    err = clave_async_children(c->client, c->spec->path, NULL, contender_on_looked, c);
    c->acquire.unlisted = err;
    c->busy += err == CLAVE_OK;
    return CLAVE_OK; /* the answer to the sync tells the other */
}

/* ---- joining --------------------------------------------------------------------------------- */

static clave_err contender_submit_join(struct contender *c)
{
    assert(c->owner);
    if (c->state == CONTENDER_IDLE && contender_looks_first(c))
        return contender_submit_look(c);
    clave_err err = c->downgrade.node ? downgrade_submit(c) : contender_submit_create(c);
    if (err != CLAVE_OK)
        return err;
    c->busy++;
    clave__contender_enter(c, CONTENDER_JOINING);
    return CLAVE_OK;
}

void clave__contender_join_again(struct contender *c)
{
    clave_err err = contender_submit_join(c);
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

clave_err clave__contender_join(struct contender *c, int64_t deadline)
{
    c->acquire.joined = clave__client_now(c->client);
    c->acquire.trying = deadline <= c->acquire.joined;
    clave_err err = c->acquire.pause.armed
                        ? CLAVE_OK
                        : contender_submit_join(c); /* it lets others come first */
    if (err != CLAVE_OK) {
        clave__contender_free(c);
        return err;
    }
    if (!c->acquire.trying && deadline != CLAVE_NEVER)
        clave__client_timer_set(c->client, &c->acquire.limit, deadline);
    return CLAVE_OK;
}
