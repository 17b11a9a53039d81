/* contender_join.c - how a contender joins: the create of its node, and what its answer means.
 * Called by the recipes, and when an attempt starts over. Invariant: no create is sent again that
 * may have left a node whose name is not known. */
#include <assert.h>
#include <string.h>

#include "base/err_class.h"
#include "recipe/contender/contender.h"

void clave__contender_join_failed(struct contender *c, clave_err err)
{
    assert(c->state == CONTENDER_JOINING && err != CLAVE_OK);
    if (c->acquire.race && err == CLAVE_ENODEEXISTS) {
        clave__contender_race_stand_by(c);
        return;
    }
    /* A server with a restored directory gives no places yet: a try does not wait for that, and
     * nobody knows who holds it. */
    if (c->acquire.trying && err == CLAVE_EOPTIMEOUT) {
        clave__contender_fail(c, clave__contender_not_in_time(c));
        return;
    }
    /* The session ended during the request, or the server reaped the parent between its creation
     * and ours: it is proven that there is no node. Trying again after any other error of class
     * UNKNOWN could leave a node whose name we do not know. */
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

void clave__contender_joined(struct contender *c, const clave_stat *stat, const char *const *names,
                             size_t n)
{
    assert(c->state == CONTENDER_JOINING);
    c->node.session_id = clave_async_client_session_id(c->client);
    c->node.seen = stat && stat->ephemeral_owner == c->node.session_id;
    c->node.token = stat ? stat->czxid : 0;
    clave__contender_enter(c, CONTENDER_WAITING);
    /* CURATOR-604: a node of a session that is over is about to vanish, and is never ours. */
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

static void contender_on_created(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    bool created = res->err == CLAVE_OK;
    if (created && clave__node_watch_set(&c->node.watch, res->path, NULL) != CLAVE_OK) {
        /* The name is longer than any that ZooKeeper makes, and there is no memory for it. */
        clave__contender_remove_node(c, res->path);
        c->leaving.must_delete = false;
        created = false;
        if (c->state == CONTENDER_JOINING)
            clave__contender_fail(c, CLAVE_ENOMEM);
    } else if (c->state == CONTENDER_JOINING) {
        if (created)
            clave__contender_joined(c, res->stat, res->names, res->nnames);
        else
            clave__contender_join_failed(c, res->err);
    } else if (created && clave__contender_may_remove(c)) {
        c->node.token = res->stat->czxid;
        clave__contender_remove_node(c, c->node.watch.path); /* given up meanwhile */
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
    if (chosen) { /* each of several has a name of its own, made of the chosen one */
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

static clave_err contender_submit_join(struct contender *c)
{
    assert(c->owner);
    clave_err err =
        c->downgrade.node ? clave__contender_downgrade_submit(c) : contender_submit_create(c);
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
