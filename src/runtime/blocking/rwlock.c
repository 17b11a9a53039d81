/* rwlock.c - the read-write lock for threads: two clave_mutex in one queue, which know of each
 * other so that a downgrade keeps its place and an upgrade is refused. All the rest is mutex.c's.
 */
#include "clave/rwlock.h"

#include "recipe/lock/mutex_for_recipes.h"
#include "runtime/blocking/mutex_hold.h"

struct rwlock_sides {
    clave_mutex *read, *write;
};

static void blocking_rwlock_pair(clave_async_client *c, void *arg)
{
    const struct rwlock_sides *w = arg;
    (void)c;
    clave__mutex_pair(w->read->mutex, w->write->mutex);
}

clave_err clave_rwlock_new(clave_mutex **read, clave_mutex **write, clave_client *c,
                           const char *path, const clave_mutex_options *reads,
                           const clave_mutex_options *writes)
{
    *write = NULL;
    clave_err err = clave__blocking_mutex_new(read, c, path, reads, &clave__queue_order_read);
    if (err != CLAVE_OK)
        return err;
    err = clave__blocking_mutex_new(write, c, path, writes, &clave__queue_order_write);
    if (err != CLAVE_OK) {
        clave_mutex_free(*read);
        *read = NULL;
        return err;
    }
    struct rwlock_sides w = {.read = *read, .write = *write};
    clave__blocking_do(c, blocking_rwlock_pair, &w);
    return CLAVE_OK;
}
