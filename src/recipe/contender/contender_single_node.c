/* contender_single_node.c - no queue: one node with a fixed name, which belongs to the contender
 * that creates it first (the election of the ZooKeeper book). All others watch it, and all of them
 * try when it is deleted: the herd effect that the queues exist to avoid. Called by
 * contender_join.c.
 *
 * Invariant: the czxid says whose node it is, never the name or the session alone: a node created
 * under that name by another session, or by another contender of the same one, is not ours. */
#include <assert.h>

#include "recipe/contender/contender.h"

enum { LET_OTHERS_MS = 100 };

void clave__contender_race_delay(struct contender *c)
{
    if (c->acquire.race)
        clave__client_timer_set(c->client, &c->acquire.pause,
                                clave__client_now(c->client) + LET_OTHERS_MS);
}

void clave__contender_race_stand_by(struct contender *c)
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

void clave__contender_race_look(struct contender *c)
{
    assert(c->state == CONTENDER_STANDING_BY);
    clave_err err = clave__node_watch_read(&c->queue.predecessor);
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

void clave__contender_race_rival_reply(struct node_watch *w, const clave_result *res)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state != CONTENDER_STANDING_BY) {
        /* It was asked for in an earlier state, or the contender was given up. */
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
        /* It was written to; or it was deleted and created again while we were not connected. */
        clave__contender_race_look(c);
    }
    clave__contender_end(c);
}
