/* once.c - clave_once: clave_async_once for threads. A begin that is given up frees itself when its
 * answer comes. */
#include "clave/once.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/blocking/thread_grant.h"

struct clave_once {
    /* Keeps its reference from the start, but is in the list only from the begin on. */
    struct child child;
    clave_async_once *once; /* used by the loop's thread only, as is everything below */
    struct call *call;      /* the call of the waiting thread; NULL: none is waiting */
    clave_once_record former;
};

static void once_answer(clave_once *o, clave_err err)
{
    struct call *call = o->call;
    o->call = NULL;
    if (call)
        clave__call_finish(call, err);
}

/* A begin that was given up frees itself with its answer. */
static void once_on_child_ended(struct child *c)
{
    clave_once *o = LIST_ENTRY(c, clave_once, child);
    clave_async_once_free(o->once);
    o->once = NULL;
    once_answer(o, CLAVE_ECLOSED);
}

static const struct child_kind once_kind = {.ended = once_on_child_ended};

void clave_once_free(clave_once *o)
{
    if (o && clave__child_close(&o->child))
        free(o);
}

/* ---- the begin ------------------------------------------------------------------------------ */

static void once_on_begun(clave_async_once *once, clave_err err, const clave_once_record *former,
                          void *arg)
{
    clave_once *o = arg;
    (void)once;
    o->former = *former;
    o->former.identity = (clave_identity){0}; /* its texts belong to the once */
    once_answer(o, err);
}

static clave_err begin_once(struct call *c, const struct args *a)
{
    clave_once *o = a->of;
    assert(!o->once && !o->call);
    clave_err err = clave_async_once_begin(&o->once, clave__thread_grant_of_engine(a->data),
                                           a->options, once_on_begun, o);
    o->call = err == CLAVE_OK ? c : NULL;
    if (err == CLAVE_OK)
        list_push_back(&o->child.client->children, &o->child.link);
    return err;
}

clave_err clave_once_begin(clave_once **out, clave_grant *grant, const clave_once_options *o,
                           int64_t timeout_ms, clave_once_record *former)
{
    clave_client *c = clave__thread_grant_session(grant);
    clave_once_options own;
    *out = NULL;
    clave_err err = clave__blocking_take_options(c, &own, sizeof own, o, "clave_once_options");
    if (err == CLAVE_OK && !own.path)
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    clave_once *once = calloc(1, sizeof *once);
    if (!once)
        return CLAVE_ENOMEM;
    once->child = (struct child){.client = c, .kind = &once_kind};
    list_init(&once->child.link);
    clave__blocking_client_ref(c);
    struct args a = {.of = once, .data = grant, .options = &own};
    err = clave__call(c, begin_once, &a, timeout_ms, NULL);
    if (former && (err == CLAVE_OK || err == CLAVE_EDONE))
        *former = once->former;
    if (err == CLAVE_OK)
        *out = once;
    else
        clave_once_free(once);
    return err;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void once_on_ended(clave_async_once *once, clave_err err, const clave_once_record *former,
                          void *arg)
{
    (void)once;
    (void)former;
    once_answer(arg, err);
}

static clave_err end_once(struct call *c, const struct args *a)
{
    clave_once *o = a->of;
    bool succeeded = a->version;
    assert(!o->call);
    clave_err err = clave_async_once_end(o->once, succeeded, once_on_ended, o);
    o->call = err == CLAVE_OK ? c : NULL;
    return err;
}

clave_err clave_once_end(clave_once *o, bool succeeded, int64_t timeout_ms)
{
    struct args a = {.of = o, .version = succeeded};
    clave_err err = clave__call(o->child.client, end_once, &a, timeout_ms, NULL);
    clave_once_free(o);
    return err;
}
