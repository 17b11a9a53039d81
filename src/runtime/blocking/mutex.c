/* mutex.c - clave_mutex: clave_async_mutex for threads: its life, acquire, grants. What
 * each thread holds is mutex_hold.c. An owner is a thread, never a thread id that may be
 * reused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "recipe/lock/mutex_for_recipes.h"
#include "runtime/blocking/mutex_hold.h"
#include "runtime/blocking/thread_grant.h"

enum { FREE_WAIT_MS = 1000, IDENTITY_SIZE = 4096 };

uint64_t clave_mutex_owner_self(void)
{
    /* Not the thread id: the kernel reuses that for a later thread, which would then hold what the
     * dead one did. The high bit keeps clear of the callers' own numbers. */
    static uint64_t newest;
    static _Thread_local uint64_t self;
    if (self == 0)
        self = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED) | (uint64_t)1 << 63;
    return self;
}

static void blocking_mutex_on_settled(struct observer *o)
{
    clave__thread_holds_refresh(LIST_ENTRY(o, clave_mutex, observer));
}

static void blocking_mutex_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    clave_mutex *mutex = arg;
    if (ev->kind == CLAVE_MUTEX_LOST)
        clave__thread_hold_lose(mutex, ev->owner);
    if (mutex->event_cb)
        mutex->event_cb(m, ev, mutex->event_arg);
}

/* ---- life ----------------------------------------------------------------------------------- */

/* The arguments of this process, with spaces between them. */
static const char *mutex_command_line(char *buf, size_t cap)
{
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f ? fread(buf, 1, cap - 1, f) : 0;
    if (f)
        fclose(f);
    while (n > 0 && buf[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++)
        if (buf[i] == '\0')
            buf[i] = ' ';
    buf[n] = '\0';
    return n > 0 ? buf : NULL;
}

/* The owner of the enclosing `clave lock`, which waits for our end. */
static const char *mutex_owner_here(char *buf, size_t cap)
{
    const char *whole = getenv("CLAVE_OWNER");
    int n = whole && *whole ? snprintf(buf, cap, "%s/%lld", whole, (long long)getpid()) : 0;
    return n > 0 && (size_t)n < cap ? buf : NULL;
}

static size_t mutex_default_data(const clave_mutex_options *o, char *out, size_t cap)
{
    char host[256] = "", command[1024], owner[1024];
    gethostname(host, sizeof host - 1);
    clave_identity id = {.host = host[0] ? host : NULL,
                         .pid = getpid(),
                         .command = mutex_command_line(command, sizeof command),
                         .traceparent = getenv("TRACEPARENT"),
                         .revocable = o->revocable ? 1 : -1,
                         .owner = mutex_owner_here(owner, sizeof owner)};
    size_t n = clave_identity_format(&id, out, cap);
    return n < cap ? n : 0;
}

struct create_args {
    clave_mutex *m;
    const char *path;
    const clave_mutex_options *o;
    const struct queue_order_rule *rule;
    clave_err err;
};

static void create_mutex(clave_async_client *c, void *arg)
{
    struct create_args *b = arg;
    b->err = clave__mutex_new(&b->m->mutex, c, b->path, b->o, b->rule);
    if (b->err == CLAVE_OK)
        clave__session_adopt(b->m->client, &b->m->observer);
}

static void blocking_mutex_drop(clave_mutex *m)
{
    clave__thread_holds_orphan(m);
    clave_async_mutex_free(m->mutex);
    m->mutex = NULL;
}

static void blocking_mutex_on_client_ended(struct observer *o)
{
    clave_mutex *m = LIST_ENTRY(o, clave_mutex, observer);
    clave__thread_holds_give_back(m);
    blocking_mutex_drop(m);
}

clave_err clave__blocking_mutex_new(clave_mutex **out, clave_client *c, const char *path,
                                    const clave_mutex_options *o,
                                    const struct queue_order_rule *rule)
{
    char data[IDENTITY_SIZE];
    clave_mutex_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(c, &own, sizeof own, o, "clave_mutex_options");
    if (err != CLAVE_OK)
        return err;
    clave_mutex *m = calloc(1, sizeof *m);
    if (!m)
        return CLAVE_ENOMEM;
    m->client = c;
    m->event_cb = own.event_cb;
    m->event_arg = own.event_arg;
    m->observer.settled = blocking_mutex_on_settled;
    m->observer.ended = blocking_mutex_on_client_ended;
    list_init(&m->thread_holds);
    list_init(&m->leaving);
    clave__cell_init(&m->all_left);
    own.event_cb = blocking_mutex_on_event;
    own.event_arg = m;
    if (!own.data) {
        own.data = data;
        own.len = mutex_default_data(&own, data, sizeof data);
    }
    struct create_args b = {.m = m, .path = path, .o = &own, .rule = rule, .err = CLAVE_ECLOSED};
    clave__blocking_do(c, create_mutex, &b);
    if (b.err != CLAVE_OK) {
        clave__cell_fini(&m->all_left);
        free(m);
        return b.err;
    }
    *out = m;
    return CLAVE_OK;
}

clave_err clave_mutex_new(clave_mutex **out, clave_client *c, const char *path,
                          const clave_mutex_options *o)
{
    return clave__blocking_mutex_new(out, c, path, o, NULL);
}

static void mutex_give_all_back(clave_async_client *c, void *arg)
{
    (void)c;
    clave__thread_holds_give_back(arg);
}

static void free_mutex(clave_async_client *c, void *arg)
{
    clave_mutex *m = arg;
    (void)c;
    list_remove(&m->observer.link);
    blocking_mutex_drop(m);
}

void clave_mutex_free(clave_mutex *m)
{
    if (!m || !clave__loop_is_here(m->client->loop))
        return;
    clave__blocking_do(m->client, mutex_give_all_back, m);
    clave__thread_holds_await_left(m, clave_now() + FREE_WAIT_MS);
    clave__blocking_do(m->client, free_mutex, m);
    clave__cell_fini(&m->all_left);
    clave__session_unref(m->client);
    free(m);
}

/* ---- acquire -------------------------------------------------------------------------------- */

struct acquire {
    struct thread_hold *fresh;
    clave_mutex *lock;
    struct call *call;
    uint64_t owner;
    int64_t deadline;
};

static void blocking_mutex_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err,
                                       void *arg)
{
    struct acquire *a = arg;
    (void)m;
    (void)owner;
    if (err == CLAVE_OK)
        clave__thread_hold_add_hold(a->lock, &a->fresh);
    clave__call_finish(a->call, err);
}

static clave_err blocking_mutex_begin_acquire(struct call *c, void *args)
{
    struct acquire *a = args;
    a->call = c;
    return clave_async_mutex_acquire(a->lock->mutex, a->owner, a->deadline,
                                     blocking_mutex_on_acquired, a);
}

clave_err clave_mutex_acquire_as(clave_mutex *m, uint64_t owner, int64_t timeout_ms)
{
    struct acquire a = {.lock = m, .owner = owner, .fresh = clave__thread_hold_new(m, owner)};
    struct call_spec spec = {.begin = blocking_mutex_begin_acquire, .args = &a};
    if (!a.fresh)
        return CLAVE_ENOMEM;
    a.deadline = timeout_ms == 0 ? CLAVE_TRY : clave__deadline_after(timeout_ms);
    /* The only clock is the engine's timer: the call itself has no deadline, and so `a` is still
     * there for the callback. */
    clave_err err = clave__call(m->client, &spec, -1, NULL);
    free(a.fresh); /* NULL if it became the thread's hold */
    return err;
}

clave_err clave_mutex_acquire(clave_mutex *m, int64_t timeout_ms)
{
    return clave_mutex_acquire_as(m, clave_mutex_owner_self(), timeout_ms);
}

clave_err clave_mutex_release(clave_mutex *m)
{
    return clave_mutex_release_as(m, clave_mutex_owner_self());
}

clave_err clave_mutex_release_confirmed(clave_mutex *m, int64_t timeout_ms)
{
    return clave_mutex_release_confirmed_as(m, clave_mutex_owner_self(), timeout_ms);
}

struct mutex_cancel {
    clave_mutex *lock;
    uint64_t owner;
    clave_err err;
};

static void mutex_cancel(clave_async_client *c, void *arg)
{
    struct mutex_cancel *x = arg;
    (void)c;
    x->err = clave_async_mutex_cancel(x->lock->mutex, x->owner);
}

clave_err clave_mutex_cancel_as(clave_mutex *m, uint64_t owner)
{
    struct mutex_cancel x = {.lock = m, .owner = owner, .err = CLAVE_ECLOSED};
    clave__blocking_do(m->client, mutex_cancel, &x);
    return x.err;
}

/* ---- what is held ---------------------------------------------------------------------------- */

static clave_err blocking_mutex_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const clave_mutex *m = holder;
    return clave_async_mutex_grant(m->mutex, owner, out);
}

clave_err clave_mutex_grant(clave_mutex *m, clave_grant **out)
{
    return clave__thread_grant_take(out, m->client, blocking_mutex_find_grant, m,
                                    clave_mutex_owner_self());
}
