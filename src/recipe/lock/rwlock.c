/* rwlock.c - the read-write lock: two mutexes in one queue, whose nodes differ by name. By the
 * rules of queue_order.h, a read waits only for writes. Each side knows the other, so mutex.c can
 * handle an owner that already has one side: a downgrade keeps its place, and an upgrade is refused
 * at once. */
#include "clave/async/rwlock.h"

#include "client/client_for_recipes.h"
#include "recipe/lock/mutex_for_recipes.h"
#include "recipe/queue/participant_list.h"

struct clave_async_rwlock {
    clave_async_client *client;
    const struct clave_mem *mem;
    clave_async_mutex *read;
    clave_async_mutex *write;
};

static clave_err rwlock_create_sides(clave_async_rwlock *rw, clave_async_client *c,
                                     const char *path, const clave_mutex_options *o)
{
    clave_err err = clave__mutex_new(&rw->read, c, path, o, &clave__queue_order_read);
    if (err != CLAVE_OK)
        return err;
    err = clave__mutex_new(&rw->write, c, path, o, &clave__queue_order_write);
    if (err == CLAVE_OK)
        clave__mutex_pair(rw->read, rw->write);
    return err;
}

clave_err clave_async_rwlock_new(clave_async_rwlock **out, clave_async_client *c, const char *path,
                                 const clave_mutex_options *o)
{
    const struct clave_mem *mem = clave__client_mem(c);
    *out = NULL;
    clave_async_rwlock *rw = clave__mem_zalloc(mem, sizeof *rw);
    if (!rw)
        return CLAVE_ENOMEM;
    rw->client = c;
    rw->mem = mem;
    clave__client_ref(c);
    clave_err err = rwlock_create_sides(rw, c, path, o);
    if (err != CLAVE_OK) {
        clave_async_rwlock_free(rw);
        return err;
    }
    *out = rw;
    return CLAVE_OK;
}

void clave_async_rwlock_free(clave_async_rwlock *rw)
{
    if (!rw)
        return;
    clave_async_mutex_free(rw->read);
    clave_async_mutex_free(rw->write);
    clave_async_client *c = rw->client;
    clave__mem_free(rw->mem, rw);
    clave__client_unref(c);
}

clave_async_mutex *clave_async_rwlock_read(clave_async_rwlock *rw)
{
    return rw->read;
}

clave_async_mutex *clave_async_rwlock_write(clave_async_rwlock *rw)
{
    return rw->write;
}

clave_err clave_async_rwlock_participants(clave_async_client *c, const char *path,
                                          clave_rwlock_kind kind, clave_async_participants_cb *cb,
                                          void *arg)
{
    if (kind == CLAVE_RWLOCK_READ)
        return clave__participant_list(c, path, &clave__queue_order_read, true, cb, arg);
    return clave__participant_list(c, path, &clave__queue_order_write, kind == CLAVE_RWLOCK_WRITE,
                                   cb, arg);
}
