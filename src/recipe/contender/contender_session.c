/* contender_session.c - what the states of the connection and of the session mean for a contender.
 */
#include "recipe/contender/contender.h"

static void contender_on_reconnected(struct contender *c)
{
    /* We were first, but a reconnect breaks the order of events: look again. */
    if (c->state == CONTENDER_CONFIRMING)
        clave__contender_enter(c, CONTENDER_WAITING);
    if (c->state == CONTENDER_WAITING) {
        list_remove(&c->grant.confirm.link);
        clave__contender_turn_check(c);
    }
    if (c->state == CONTENDER_STANDING_BY)
        clave__contender_race_look(c);
    /* What a short hold does without it has to ask for now: each of many short connections moves
     * the deadline, and ends before a heartbeat is due. */
    if (c->state == CONTENDER_HELD)
        clave__client_settle_hold(&c->grant.hold);
}

static void contender_on_session_lost(struct contender *c, clave_err why)
{
    c->leaving.must_delete = false;
    if (c->state == CONTENDER_HELD)
        clave__contender_lose(c, why == CLAVE_OK ? CLAVE_EEXPIRED : why, false);
    else if (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING)
        clave__contender_start_over(c, false);
    /* The client tells a pending create its outcome, in whatever session. */
    if (c->state == CONTENDER_STANDING_BY)
        clave__contender_join_again(c); /* the watch went with the session */
}

void clave__contender_session_state(struct listener *l, clave_state state, clave_err why)
{
    struct contender *c = LIST_ENTRY(l, struct contender, listener);
    clave__contender_begin(c);
    switch (state) {
    case CLAVE_STATE_SUSPENDED:
        c->node.seen = false;
        if (c->acquire.trying && c->owner && c->state != CONTENDER_HELD)
            clave__contender_fail(c, clave__contender_not_in_time(c));
        break;
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
    case CLAVE_STATE_READ_ONLY:
        contender_on_reconnected(c);
        break;
    case CLAVE_STATE_LOST:
        contender_on_session_lost(c, why);
        break;
    case CLAVE_STATE_CLOSED:
        clave__contender_closed(c);
        break;
    case CLAVE_STATE_LATENT:
        break;
    }
    clave__contender_end(c);
}
