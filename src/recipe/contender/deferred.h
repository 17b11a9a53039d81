/* deferred.h - a callback that is due: it never runs inside the call that caused it, but as a task
 * of the client, also of a closed one. */
#ifndef CLAVE_RECIPE_CONTENDER_DEFERRED_H
#define CLAVE_RECIPE_CONTENDER_DEFERRED_H

#include "base/list.h"
#include "client/client_internal.h"

struct deferred {
    struct client_task client_task;
    struct deferred_list *list;
    void (*run)(struct deferred *n); /* may free it */
};

/* Those of one recipe object; the struct must stay where it is. */
struct deferred_list {
    clave_async_client *client;
    /* Around each of them: the object must outlive it. */
    void (*hold)(struct deferred_list *b);
    void (*drop)(struct deferred_list *b);
};

void clave__deferred_list_init(struct deferred_list *b, clave_async_client *c,
                               void (*hold)(struct deferred_list *b),
                               void (*drop)(struct deferred_list *b));

void clave__deferred_init(struct deferred *n, struct deferred_list *b,
                          void (*run)(struct deferred *n));
void clave__deferred_post(struct deferred *n);
/* It will not run; nothing when it is not due. */
void clave__deferred_withdraw(struct deferred *n);

#endif
