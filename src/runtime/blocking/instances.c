/* instances.c - clave_instances: clave_async_instances for threads. They belong to the loop's
 * thread, so each query visits them there. Only what clave_instances_wait waits for is published
 * under the loop's mutex. */
#include "clave/instances.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/blocking/call.h"

struct clave_instances {
    struct child child;
    clave_async_instances *followed; /* used by the loop's thread only; NULL: they have ended */
    clave_async_instances_cb *cb;    /* the user's */
    void *arg;
    bool current;  /* under the loop's mutex, as is everything below */
    clave_err err; /* why they have ended; CLAVE_OK: they have not */
    struct cell changed;
};

/* ---- publishing, on the loop's thread -------------------------------------------------------- */

static void instances_publish(clave_instances *d, bool current, clave_err err)
{
    assert(clave__loop_is_current(d->child.client->loop));
    clave__loop_lock(d->child.client->loop);
    d->current = current;
    if (d->err == CLAVE_OK)
        d->err = err;
    clave__cell_wake(&d->changed);
    clave__loop_unlock(d->child.client->loop);
}

static void instances_on_followed(clave_async_instances *followed, const clave_instances_event *ev,
                                  void *arg)
{
    clave_instances *d = arg;
    if (!ev->now && !ev->was)
        instances_publish(d, clave_async_instances_is_current(followed), ev->err);
    if (d->cb)
        d->cb(followed, ev, d->arg); /* this may free them */
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static clave_err instances_make(clave_async_client *client, const struct args *a)
{
    clave_instances *d = a->of;
    return clave_async_instances_new(&d->followed, client, a->options, instances_on_followed, d);
}

static void instances_on_ended(struct child *child)
{
    clave_instances *d = LIST_ENTRY(child, clave_instances, child);
    clave_async_instances_free(d->followed);
    d->followed = NULL;
    instances_publish(d, false, CLAVE_ECLOSED);
}

static void instances_destroy(clave_instances *d)
{
    clave__cell_fini(&d->changed);
    free(d);
}

clave_err clave_instances_new(clave_instances **out, clave_client *client,
                              const clave_instances_options *o, clave_async_instances_cb *cb,
                              void *arg)
{
    static const struct child_kind kind = {.ended = instances_on_ended};
    clave_instances_options own;
    *out = NULL;
    clave_err err =
        clave__blocking_take_options(client, &own, sizeof own, o, "clave_instances_options");
    if (err != CLAVE_OK)
        return err;
    clave_instances *d = calloc(1, sizeof *d);
    if (!d)
        return CLAVE_ENOMEM;
    d->cb = cb;
    d->arg = arg;
    clave__cell_init(&d->changed);
    err = clave__child_open(&d->child, client, &kind, instances_make,
                            &(struct args){.of = d, .options = &own});
    if (err == CLAVE_OK)
        *out = d;
    else
        instances_destroy(d);
    return err;
}

void clave_instances_free(clave_instances *d)
{
    if (d && clave__child_close(&d->child))
        instances_destroy(d);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Call it with the mutex held. */
static clave_err instances_await(clave_instances *d, int64_t deadline)
{
    while (!d->current && d->err == CLAVE_OK)
        if (!clave__cell_wait(&d->changed, d->child.client->loop, deadline))
            return d->child.client->was_connected ? CLAVE_ETIMEDOUT : CLAVE_EUNREACHABLE;
    return d->err;
}

clave_err clave_instances_wait(clave_instances *d, int64_t timeout_ms)
{
    int64_t deadline = clave__deadline_after(timeout_ms);
    clave_err err = clave__wait_enter(d->child.client);
    if (err != CLAVE_OK)
        return err;
    err = instances_await(d, deadline);
    clave__wait_leave(d->child.client);
    return err;
}

/* ---- queries --------------------------------------------------------------------------------- */

struct instances_query {
    const clave_instances *d;
    clave_pick how;
    clave_instances_visit_cb *visit;
    void *arg;
};

static clave_err walk_instances(clave_async_client *client, const struct args *a)
{
    const struct instances_query *q = a->of;
    (void)client;
    clave_async_instances_walk(q->d->followed, q->visit, q->arg);
    return CLAVE_OK;
}

clave_err clave_instances_walk(clave_instances *d, clave_instances_visit_cb *visit, void *arg)
{
    struct instances_query q = {.d = d, .visit = visit, .arg = arg};
    return clave__visit(d->child.client, walk_instances, &(struct args){.of = &q});
}

static clave_err pick_instance(clave_async_client *client, const struct args *a)
{
    const struct instances_query *q = a->of;
    clave_instances_entry e;
    (void)client;
    clave_err err = clave_async_instances_pick(q->d->followed, q->how, &e);
    if (err == CLAVE_OK)
        (void)q->visit(&e, q->arg);
    return err;
}

clave_err clave_instances_pick(clave_instances *d, clave_pick how, clave_instances_visit_cb *visit,
                               void *arg)
{
    struct instances_query q = {.d = d, .how = how, .visit = visit, .arg = arg};
    return clave__visit(d->child.client, pick_instance, &(struct args){.of = &q});
}

static clave_err note_instance_error(clave_async_client *client, const struct args *a)
{
    const clave_instances *d = a->of;
    (void)client;
    return clave_async_instances_note_error(d->followed, a->path);
}

clave_err clave_instances_note_error(clave_instances *d, const char *path)
{
    return clave__visit(d->child.client, note_instance_error,
                        &(struct args){.of = d, .path = path});
}
