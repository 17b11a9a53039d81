#include "clave/rwlock.h"

#include "client/client_internal.h"
#include "recipe/contender/participants.h"
#include "recipe/lock/mutex_parts.h"

struct clave_rwlock {
    clave_client *client;
    const struct clave_mem *mem;
    clave_mutex *read;
    clave_mutex *write;
};

static clave_err create_sides(clave_rwlock *rw, clave_client *c, const char *path,
                              const clave_mutex_options *o)
{
    clave_err err = clave__mutex_new(&rw->read, c, path, o, &clave__order_read);
    if (err != CLAVE_OK)
        return err;
    err = clave__mutex_new(&rw->write, c, path, o, &clave__order_write);
    if (err == CLAVE_OK)
        clave__mutex_pair(rw->read, rw->write);
    return err;
}

clave_err clave_rwlock_new(clave_rwlock **out, clave_client *c, const char *path,
                           const clave_mutex_options *o)
{
    const struct clave_mem *mem = clave__client_mem(c);
    *out = NULL;
    clave_rwlock *rw = clave__mem_zalloc(mem, sizeof *rw);
    if (!rw)
        return CLAVE_ENOMEM;
    rw->client = c;
    rw->mem = mem;
    clave__client_ref(c);
    clave_err err = create_sides(rw, c, path, o);
    if (err != CLAVE_OK) {
        clave_rwlock_free(rw);
        return err;
    }
    *out = rw;
    return CLAVE_OK;
}

void clave_rwlock_free(clave_rwlock *rw)
{
    if (!rw)
        return;
    clave_mutex_free(rw->read);
    clave_mutex_free(rw->write);
    clave_client *c = rw->client;
    clave__mem_free(rw->mem, rw);
    clave__client_unref(c);
}

clave_mutex *clave_rwlock_read(clave_rwlock *rw)
{
    return rw->read;
}

clave_mutex *clave_rwlock_write(clave_rwlock *rw)
{
    return rw->write;
}

clave_err clave_rwlock_participants(clave_client *c, const char *path, clave_rwlock_kind kind,
                                    clave_participants_cb *cb, void *arg)
{
    if (kind == CLAVE_RWLOCK_READ)
        return clave__roll_call(c, path, &clave__order_read, true, cb, arg);
    return clave__roll_call(c, path, &clave__order_write, kind == CLAVE_RWLOCK_WRITE, cb, arg);
}
