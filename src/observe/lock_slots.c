/* lock_slots.c - what is a slot's in a model of locks; see lock_model.h. Called by lock_find.c,
 * lock_holders.c and those who keep a history. Invariant: nothing is changed here. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "observe/lock_model.h"
#include "recipe/queue/identity.h"

/* Only slots have their queue at P/queue. */
bool clave__lock_is_slots(const struct lock_queue *q)
{
    const struct lock_queue *waits = q->partner;
    return q->leases && (q->nkept > 0 || (q->limited && q->places.count == 0 && waits &&
                                          strcmp(clave__path_name(waits->path), "queue") == 0));
}

int64_t clave__lock_broken_slot(const char *path, const void *data, size_t len)
{
    char token[24];
    bool says = strcmp(clave__path_name(path), "broken") == 0 &&
                clave__identity_is_form(data, len) &&
                clave__identity_get_field(data, len, "token", token, sizeof token);
    return says ? strtoll(token, NULL, 10) : 0;
}
