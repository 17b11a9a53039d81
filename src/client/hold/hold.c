/* hold.c - the list of what is held in a session, for recipes. While it is not empty, heartbeat.c
 * keeps the hold deadline ahead, and connection_state.c reports LOST at that deadline. */
#include <assert.h>

#include "client/client_internal.h"

void clave__client_hold(clave_async_client *c, struct hold *h)
{
    if (list_empty(&c->holds))
        c->heartbeat.answered = c->now; /* the first interval begins */
    h->since = c->now;
    h->settled = false;
    list_push_back(&c->holds, &h->link);
    clave__session_hold_moved(c);
}

void clave__client_unhold(clave_async_client *c, struct hold *h)
{
    assert(!list_empty(&h->link));
    list_remove(&h->link);
    for (size_t i = 0; i < HEARTBEAT_HOLDS; i++)
        if (c->heartbeat.checked[i] == h)
            c->heartbeat.checked[i] = NULL;
    clave__session_hold_moved(c);
}

void clave__client_settle_hold(struct hold *h)
{
    h->settled = true;
    h->on_settled(h);
}
