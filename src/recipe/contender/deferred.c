/* deferred.c - callbacks that are due later. Called by mutex, multilock and semaphore. Invariant: a
 * callback runs once, never inside the call that posted it, and its recipe lives until it has run.
 */
#include "recipe/contender/deferred.h"

static void on_client_task(struct client_task *e)
{
    struct deferred *n = LIST_ENTRY(e, struct deferred, client_task);
    struct deferred_list *b = n->list;
    b->hold(b);
    n->run(n);
    b->drop(b);
}

void clave__deferred_list_init(struct deferred_list *b, clave_async_client *c,
                               void (*hold)(struct deferred_list *b),
                               void (*drop)(struct deferred_list *b))
{
    *b = (struct deferred_list){.client = c, .hold = hold, .drop = drop};
}

void clave__deferred_init(struct deferred *n, struct deferred_list *b,
                          void (*run)(struct deferred *n))
{
    list_init(&n->client_task.link);
    n->client_task.run = on_client_task;
    n->list = b;
    n->run = run;
}

void clave__deferred_post(struct deferred *n)
{
    clave__client_later(n->list->client, &n->client_task);
}

void clave__deferred_withdraw(struct deferred *n)
{
    list_remove(&n->client_task.link);
}
