/* once.c - clave_once: clave_async_once for threads. A begin that is given up frees itself when its
 * answer comes. */
#include "clave/once.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/blocking/thread_grant.h"

struct clave_once {
    clave_client *client;     /* with a reference from the beginning */
    struct observer observer; /* while there is a once */
    clave_async_once *once;   /* the loop's thread only, as is everything below */
    struct call *call;        /* the call of the waiting thread; NULL: none waits */
    clave_once_record former;
};

static void blocking_once_answer(clave_once *o, clave_err err)
{
    struct call *call = o->call;
    o->call = NULL;
    if (call)
        clave__call_finish(call, err);
}

static void once_drop(clave_once *o, clave_err err)
{
    clave_async_once_free(o->once);
    o->once = NULL;
    blocking_once_answer(o, err); /* one that was given up frees itself */
}

static void once_on_client_ended(struct observer *o)
{
    once_drop(LIST_ENTRY(o, clave_once, observer), CLAVE_ECLOSED);
}

static void blocking_once_destroy(clave_async_client *c, void *arg)
{
    clave_once *o = arg;
    (void)c;
    list_remove(&o->observer.link);
    once_drop(o, CLAVE_ECANCELED);
}

void clave_once_free(clave_once *o)
{
    if (!o || !clave__loop_is_here(o->client->loop))
        return;
    clave__blocking_do(o->client, blocking_once_destroy, o);
    clave__session_unref(o->client);
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
    blocking_once_answer(o, err);
}

struct begin_args {
    clave_once *job;
    const clave_grant *grant;
    const clave_once_options *o;
};

static clave_err begin_once(struct call *c, void *args)
{
    const struct begin_args *b = args;
    clave_once *o = b->job;
    assert(!o->once && !o->call);
    clave_err err = clave_async_once_begin(&o->once, clave__thread_grant_of_engine(b->grant), b->o,
                                           once_on_begun, o);
    o->call = err == CLAVE_OK ? c : NULL;
    if (err == CLAVE_OK)
        list_push_back(&o->client->children, &o->observer.link);
    return err;
}

clave_err clave_once_begin(clave_once **out, clave_grant *grant, const clave_once_options *o,
                           int64_t timeout_ms, clave_once_record *former)
{
    clave_client *c = clave__thread_grant_session(grant);
    clave_once_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(c, &own, sizeof own, o, "clave_once_options");
    if (err == CLAVE_OK && !own.path)
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    clave_once *once = calloc(1, sizeof *once);
    if (!once)
        return CLAVE_ENOMEM;
    once->client = c;
    clave__session_ref(once->client);
    list_init(&once->observer.link);
    once->observer.ended = once_on_client_ended;
    struct begin_args b = {.job = once, .grant = grant, .o = &own};
    struct call_spec spec = {.begin = begin_once, .args = &b};
    err = clave__call(once->client, &spec, timeout_ms, NULL);
    if (former && (err == CLAVE_OK || err == CLAVE_EDONE))
        *former = once->former;
    if (err == CLAVE_OK)
        *out = once;
    else
        clave_once_free(once);
    return err;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void blocking_once_on_ended(clave_async_once *once, clave_err err,
                                   const clave_once_record *former, void *arg)
{
    (void)once;
    (void)former;
    blocking_once_answer(arg, err);
}

struct end_args {
    clave_once *job;
    bool succeeded;
};

static clave_err end_once(struct call *c, void *args)
{
    const struct end_args *e = args;
    clave_once *o = e->job;
    assert(!o->call);
    clave_err err = clave_async_once_end(o->once, e->succeeded, blocking_once_on_ended, o);
    o->call = err == CLAVE_OK ? c : NULL;
    return err;
}

clave_err clave_once_end(clave_once *o, bool succeeded, int64_t timeout_ms)
{
    struct end_args e = {.job = o, .succeeded = succeeded};
    struct call_spec spec = {.begin = end_once, .args = &e};
    clave_err err = clave__call(o->client, &spec, timeout_ms, NULL);
    clave_once_free(o);
    return err;
}
