/* latch_participants.c - who leads an election and who stands in it, asked once from outside. The
 * public API's file. Invariant: it neither stands in the election nor follows it. */
#include "clave/async/leader.h"

#include "recipe/election/latch_internal.h"
#include "recipe/queue/participant_list.h"
#include "recipe/queue/queue_order.h"

clave_err clave_async_latch_leader(clave_async_client *c, const char *path,
                                   clave_async_participants_cb *cb, void *arg)
{
    return clave__leader_watch_once(c, path, cb, arg);
}

clave_err clave_async_latch_participants(clave_async_client *c, const char *path,
                                         clave_async_participants_cb *cb, void *arg)
{
    return clave__participant_list(c, path, &clave__queue_order_latch, true, cb, arg);
}
