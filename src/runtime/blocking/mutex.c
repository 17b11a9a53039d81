/* mutex.c - clave_mutex and the read-write lock for threads. A thread owns what it acquires; owners
 * are numbered, because thread ids are reused.
 *
 * What a thread holds is a struct thread_hold, which has a copy of the deadline that the loop's
 * thread updates after every pass. As long as the deadline says that the hold is valid, a release
 * that need not be awaited is only noted there for the loop's thread. If the hold is not certainly
 * valid, the engine must decide, and give the reason. Each hold is released exactly once, even if
 * the timeout passes before the loop's thread gets to it.
 *
 *   HELD ──▶ RELEASED ──▶ LEAVING ──▶ freed
 *   count    released     (no hold left: until the server knows, or the session has ended)
 *
 * The path of clave_mutex_acquire through the library:
 *
 *   call.c                            runs the call on the loop's thread; the caller's thread waits
 *   recipe/lock/mutex.c               a hold for each owner, counted, over one contender
 *   recipe/contender/contender.c      a place in the queue, and whose turn it is
 *   client/request/client_create.c    creates the place once, even if the answer is lost
 *   client/pipeline.c                 encodes the request, and matches its answer
 *   runtime/client/uv_client.c        sends at the end of the loop's pass, and feeds what arrives
 *
 * The answer comes back through the same files in the opposite order, each calling the next one's
 * callback, until clave__call_finish wakes the caller. */
#include "runtime/blocking/thread_mutex.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "clave/deadlock.h"
#include "clave/rwlock.h"
#include "recipe/grant_held.h"
#include "recipe/lock/mutex_for_recipes.h"
#include "runtime/blocking/thread_grant.h"

enum { FREE_WAIT_MS = 1000, IDENTITY_SIZE = 4096 };

/* Written under the mutex. Everything except `count` and `released` is written by the loop's thread
 * only, which may therefore read it without the mutex. */
struct thread_hold {
    struct list link;  /* in the mutex's thread_holds, then in its leaving */
    struct task task;  /* makes the loop's thread look at `released` */
    clave_mutex *lock; /* NULL: the mutex was freed, and nothing is waiting any more */
    uint64_t owner;
    unsigned count;    /* holds not released yet, including lost ones */
    unsigned released; /* holds released, but not yet seen by the loop's thread */
    int64_t deadline;  /* INT64_MIN: lost */
    /* Used by the loop's thread only: the release that waits for the server; may be NULL. */
    struct call *call;
};

struct clave_mutex {
    struct child child;
    clave_async_mutex *mutex;       /* used by the loop's thread only */
    clave_mutex_event_cb *event_cb; /* the user's */
    void *event_arg;
    struct list thread_holds; /* under the loop's mutex, as is everything below */
    struct list leaving;
    struct cell all_left; /* woken when no hold is LEAVING any more */
};

uint64_t clave_mutex_owner_self(void)
{
    /* Not the thread id, which the kernel reuses for a later thread, and that one would then hold
     * what the dead one did. The high bit keeps these numbers apart from those that callers
     * choose. */
    static uint64_t newest;
    static _Thread_local uint64_t self;
    if (self == 0)
        self = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED) | (uint64_t)1 << 63;
    return self;
}

/* ---- finding -------------------------------------------------------------------------------- */

static struct thread_hold *find_hold(const clave_mutex *m, uint64_t owner)
{
    for (struct list *e = m->thread_holds.next; e != &m->thread_holds; e = e->next) {
        struct thread_hold *t = LIST_ENTRY(e, struct thread_hold, link);
        if (t->owner == owner)
            return t;
    }
    return NULL;
}

/* Call it with the mutex held. */
static struct thread_hold *find_held(const clave_mutex *m, uint64_t owner)
{
    struct thread_hold *t = find_hold(m, owner);
    return t && t->count > 0 ? t : NULL;
}

bool clave__mutex_is_good_for_thread(clave_mutex *m, uint64_t owner)
{
    if (!clave__loop_is_here(m->child.client->loop))
        return false;
    clave__loop_lock(m->child.client->loop);
    const struct thread_hold *t = find_held(m, owner);
    bool good = t && t->deadline != INT64_MIN;
    clave__loop_unlock(m->child.client->loop);
    return good;
}

/* ---- publishing, on the loop's thread -------------------------------------------------------- */

static void publish_deadline(struct thread_hold *t, int64_t deadline)
{
    clave_loop *loop = t->lock->child.client->loop;
    assert(clave__loop_is_current(loop));
    if (t->deadline == deadline)
        return;
    clave__loop_lock(loop);
    t->deadline = deadline;
    clave__loop_unlock(loop);
}

static void refresh_hold(struct thread_hold *t)
{
    struct grant_facts g;
    bool held = clave__mutex_held(t->lock->mutex, t->owner, &g);
    publish_deadline(t, held ? g.deadline : INT64_MIN);
}

static void lose_hold(clave_mutex *m, uint64_t owner)
{
    struct thread_hold *t = find_hold(m, owner);
    if (t)
        publish_deadline(t, INT64_MIN);
}

/* ---- releasing, on the loop's thread -------------------------------------------------------- */

static void on_left(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct thread_hold *t = arg;
    clave_mutex *mutex = t->lock;
    (void)m;
    (void)owner;
    if (mutex) {
        clave__loop_lock(mutex->child.client->loop);
        list_remove(&t->link);
        if (list_empty(&mutex->leaving))
            clave__cell_wake(&mutex->all_left);
        clave__loop_unlock(mutex->child.client->loop);
    }
    if (t->call)
        clave__call_finish(t->call, err);
    free(t);
}

/* Subtracts one from `from`, which is the `count` or `released` of the hold; the mutex must be
 * held. Returns true if the hold has none left. */
static bool take_off(struct thread_hold *t, unsigned *from)
{
    assert(*from > 0);
    --*from;
    return t->count + t->released == 0;
}

/* Releases one hold that has already been taken off. With the last one the struct goes as well: at
 * once if the lock was lost, otherwise (*leaves is set) once the server knows. */
static clave_err give_back(struct thread_hold *t, bool last, bool *leaves)
{
    clave_mutex *m = t->lock;
    assert(clave__loop_is_current(m->child.client->loop));
    /* without a callback, or for the last hold, this needs no memory */
    clave_err err = clave_async_mutex_release(m->mutex, t->owner, last ? on_left : NULL, t);
    *leaves = last && err == CLAVE_OK;
    if (!last)
        return err;
    clave__loop_lock(m->child.client->loop);
    clave__loop_unpost_locked(&t->task);
    list_remove(&t->link);
    if (*leaves)
        list_push_back(&m->leaving, &t->link);
    clave__loop_unlock(m->child.client->loop);
    if (!*leaves)
        free(t);
    return err;
}

static void take_released(struct task *task)
{
    struct thread_hold *t = LIST_ENTRY(task, struct thread_hold, task);
    clave_client *c = t->lock->child.client;
    bool any = true, last = false, leaves;
    clave_async_client_tick(c->async, clave_now());
    while (any && !last) {
        clave__loop_lock(c->loop);
        any = t->released > 0;
        last = any && take_off(t, &t->released);
        clave__loop_unlock(c->loop);
        if (any)
            give_back(t, last, &leaves);
    }
    clave__blocking_flush_later(c);
}

static void give_all_back(clave_mutex *m)
{
    while (!list_empty(&m->thread_holds)) {
        struct thread_hold *t = LIST_ENTRY(m->thread_holds.next, struct thread_hold, link);
        bool leaves;
        clave__loop_lock(m->child.client->loop);
        bool last = take_off(t, t->count > 0 ? &t->count : &t->released);
        clave__loop_unlock(m->child.client->loop);
        give_back(t, last, &leaves);
    }
}

/* ---- holds ----------------------------------------------------------------------------------- */

static struct thread_hold *new_hold(clave_mutex *m, uint64_t owner)
{
    struct thread_hold *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    list_init(&t->link);
    list_init(&t->task.link);
    t->task.run = take_released;
    t->lock = m;
    t->owner = owner;
    return t;
}

static void add_hold(clave_mutex *m, struct thread_hold **fresh)
{
    assert(*fresh);
    struct thread_hold *t = find_hold(m, (*fresh)->owner);
    clave__loop_lock(m->child.client->loop);
    if (!t) {
        t = *fresh;
        *fresh = NULL;
        list_push_back(&m->thread_holds, &t->link);
    }
    t->count++;
    clave__loop_unlock(m->child.client->loop);
    refresh_hold(t);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static void mutex_on_settled(struct child *c)
{
    clave_mutex *m = LIST_ENTRY(c, clave_mutex, child);
    for (struct list *e = m->thread_holds.next; e != &m->thread_holds; e = e->next)
        refresh_hold(LIST_ENTRY(e, struct thread_hold, link));
}

static void mutex_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    clave_mutex *mutex = arg;
    if (ev->kind == CLAVE_MUTEX_LOST)
        lose_hold(mutex, ev->owner);
    if (mutex->event_cb)
        mutex->event_cb(m, ev, mutex->event_arg);
}

/* The arguments of this process, separated by spaces. */
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

static clave_err mutex_make(clave_async_client *c, const struct args *a)
{
    clave_mutex *m = a->of;
    return clave__mutex_new(&m->mutex, c, a->path, a->options, a->data);
}

static void mutex_on_ended(struct child *c)
{
    clave_mutex *m = LIST_ENTRY(c, clave_mutex, child);
    struct list *e;
    give_all_back(m);
    /* holds that are still leaving will get no answer any more */
    clave__loop_lock(m->child.client->loop);
    while ((e = list_pop_front(&m->leaving)))
        LIST_ENTRY(e, struct thread_hold, link)->lock = NULL;
    clave__cell_wake(&m->all_left);
    clave__loop_unlock(m->child.client->loop);
    clave_async_mutex_free(m->mutex);
    m->mutex = NULL;
}

static void mutex_destroy(clave_mutex *m)
{
    clave__cell_fini(&m->all_left);
    free(m);
}

clave_err clave__mutex_new_for_threads(clave_mutex **out, clave_client *c, const char *path,
                                       const clave_mutex_options *o,
                                       const struct queue_order_rule *rule)
{
    static const struct child_kind kind = {.settled = mutex_on_settled, .ended = mutex_on_ended};
    char data[IDENTITY_SIZE];
    clave_mutex_options own;
    *out = NULL;
    clave_err err = clave__blocking_take_options(c, &own, sizeof own, o, "clave_mutex_options");
    if (err != CLAVE_OK)
        return err;
    clave_mutex *m = calloc(1, sizeof *m);
    if (!m)
        return CLAVE_ENOMEM;
    m->event_cb = own.event_cb;
    m->event_arg = own.event_arg;
    list_init(&m->thread_holds);
    list_init(&m->leaving);
    clave__cell_init(&m->all_left);
    own.event_cb = mutex_on_event;
    own.event_arg = m;
    if (!own.data) {
        own.data = data;
        own.len = mutex_default_data(&own, data, sizeof data);
    }
    err = clave__child_open(&m->child, c, &kind, mutex_make,
                            &(struct args){.of = m, .path = path, .options = &own, .data = rule});
    if (err == CLAVE_OK)
        *out = m;
    else
        mutex_destroy(m);
    return err;
}

clave_err clave_mutex_new(clave_mutex **out, clave_client *c, const char *path,
                          const clave_mutex_options *o)
{
    return clave__mutex_new_for_threads(out, c, path, o, NULL);
}

static clave_err begin_leaving(clave_async_client *c, const struct args *a)
{
    (void)c;
    give_all_back(a->of);
    return CLAVE_OK;
}

void clave_mutex_free(clave_mutex *m)
{
    if (!m || !clave__loop_is_here(m->child.client->loop))
        return;
    clave_loop *loop = m->child.client->loop;
    (void)clave__visit(m->child.client, begin_leaving, &(struct args){.of = m});
    if (!clave__loop_is_current(loop)) {
        int64_t deadline = clave_now() + FREE_WAIT_MS;
        clave__loop_lock(loop);
        while (!list_empty(&m->leaving) && clave__cell_wait(&m->all_left, loop, deadline))
            continue;
        clave__loop_unlock(loop);
    }
    (void)clave__child_close(&m->child);
    mutex_destroy(m);
}

/* Makes the sides known to each other, so that a downgrade keeps its place and an upgrade is
 * refused. */
static clave_err pair_sides(clave_async_client *c, const struct args *a)
{
    clave_mutex *read = a->of;
    const clave_mutex *write = a->data;
    (void)c;
    clave__mutex_pair(read->mutex, write->mutex);
    return CLAVE_OK;
}

clave_err clave_rwlock_new(clave_mutex **read, clave_mutex **write, clave_client *c,
                           const char *path, const clave_mutex_options *reads,
                           const clave_mutex_options *writes)
{
    *write = NULL;
    clave_err err = clave__mutex_new_for_threads(read, c, path, reads, &clave__queue_order_read);
    if (err != CLAVE_OK)
        return err;
    err = clave__mutex_new_for_threads(write, c, path, writes, &clave__queue_order_write);
    if (err != CLAVE_OK) {
        clave_mutex_free(*read);
        *read = NULL;
        return err;
    }
    (void)clave__visit(c, pair_sides, &(struct args){.of = *read, .data = *write});
    return CLAVE_OK;
}

/* ---- acquire -------------------------------------------------------------------------------- */

struct acquire {
    struct thread_hold *fresh;
    clave_mutex *lock;
    struct call *call;
    uint64_t owner;
    int64_t deadline;
};

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct acquire *a = arg;
    (void)m;
    (void)owner;
    if (err == CLAVE_OK)
        add_hold(a->lock, &a->fresh);
    clave__call_finish(a->call, err);
}

static clave_err begin_acquire(struct call *c, const struct args *args)
{
    struct acquire *a = args->of;
    a->call = c;
    return clave_async_mutex_acquire(a->lock->mutex, a->owner, a->deadline, on_acquired, a);
}

clave_err clave_mutex_acquire_as(clave_mutex *m, uint64_t owner, int64_t timeout_ms)
{
    struct acquire a = {.lock = m, .owner = owner, .fresh = new_hold(m, owner)};
    if (!a.fresh)
        return CLAVE_ENOMEM;
    a.deadline = timeout_ms == 0 ? CLAVE_TRY : clave__deadline_after(timeout_ms);
    /* The only clock is the engine's timer. The call itself has no deadline, so `a` still exists
     * when the callback runs. */
    clave_err err = clave__call(m->child.client, begin_acquire, &(struct args){.of = &a}, -1, NULL);
    free(a.fresh); /* NULL if it became the thread's hold */
    return err;
}

clave_err clave_mutex_acquire(clave_mutex *m, int64_t timeout_ms)
{
    return clave_mutex_acquire_as(m, clave_mutex_owner_self(), timeout_ms);
}

static clave_err cancel_acquire(clave_async_client *c, const struct args *a)
{
    const clave_mutex *m = a->of;
    (void)c;
    return clave_async_mutex_cancel(m->mutex, a->owner);
}

clave_err clave_mutex_cancel_as(clave_mutex *m, uint64_t owner)
{
    return clave__visit(m->child.client, cancel_acquire, &(struct args){.of = m, .owner = owner});
}

static clave_err tell_deadlock(clave_async_client *c, const struct args *a)
{
    const clave_mutex *m = a->of;
    const char *text = clave_async_mutex_deadlock(m->mutex);
    (void)c;
    snprintf(a->buf, a->cap, "%s", text ? text : "");
    return CLAVE_OK;
}

const char *clave_mutex_deadlock(clave_mutex *m, char *buf, size_t cap)
{
    struct args a = {.of = m, .buf = buf, .cap = cap};
    snprintf(buf, cap, "%s", "");
    (void)clave__visit(m->child.client, tell_deadlock, &a);
    return buf;
}

/* ---- release --------------------------------------------------------------------------------- */

struct release {
    clave_mutex *lock;
    uint64_t owner;
    bool confirmed;
    bool begun;
};

static clave_err begin_release(struct call *c, const struct args *a)
{
    struct release *r = a->of;
    clave_loop *loop = r->lock->child.client->loop;
    bool leaves;
    r->begun = true;
    clave__loop_lock(loop);
    struct thread_hold *t = find_held(r->lock, r->owner);
    bool last = t && take_off(t, &t->count);
    clave__loop_unlock(loop);
    if (!t)
        return CLAVE_ENOTHELD;
    clave_err err = give_back(t, last, &leaves);
    if (leaves && r->confirmed)
        t->call = c;
    else
        c->answered = true;
    return err;
}

static clave_err release_on_loop(clave_mutex *m, uint64_t owner, bool confirmed, int64_t timeout_ms)
{
    struct release r = {.lock = m, .owner = owner, .confirmed = confirmed};
    struct args a = {.of = &r};
    clave_err err = clave__call(m->child.client, begin_release, &a, timeout_ms, NULL);
    /* Time was up before the loop's thread got to it; the hold is released all the same. */
    if (err == CLAVE_ETIMEDOUT && !r.begun)
        (void)release_on_loop(m, owner, false, -1);
    return err;
}

/* A hold that is valid as far as we know is released by a note to the loop's thread. Otherwise the
 * engine must decide, and give the reason. */
clave_err clave_mutex_release_as(clave_mutex *m, uint64_t owner)
{
    clave_loop *loop = m->child.client->loop;
    if (!clave__loop_is_here(loop))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(loop))
        return CLAVE_ELOOPTHREAD;
    clave__loop_lock(loop);
    bool ended = m->child.client->ended;
    struct thread_hold *t = find_held(m, owner);
    bool held = t != NULL;
    bool good = held && !ended && t->deadline >= clave_now();
    if (good) {
        t->count--;
        t->released++;
        if (list_empty(&t->task.link))
            clave__loop_post_locked(loop, &t->task);
    }
    clave__loop_unlock(loop);
    if (good)
        return CLAVE_OK;
    if (ended)
        return CLAVE_ECLOSED;
    return held ? release_on_loop(m, owner, false, -1) : CLAVE_ENOTHELD;
}

clave_err clave_mutex_release_confirmed_as(clave_mutex *m, uint64_t owner, int64_t timeout_ms)
{
    return release_on_loop(m, owner, true, timeout_ms);
}

clave_err clave_mutex_release(clave_mutex *m)
{
    return clave_mutex_release_as(m, clave_mutex_owner_self());
}

clave_err clave_mutex_release_confirmed(clave_mutex *m, int64_t timeout_ms)
{
    return clave_mutex_release_confirmed_as(m, clave_mutex_owner_self(), timeout_ms);
}

/* ---- grants ---------------------------------------------------------------------------------- */

static clave_err mutex_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const clave_mutex *m = holder;
    return clave_async_mutex_grant(m->mutex, owner, out);
}

clave_err clave_mutex_grant(clave_mutex *m, clave_grant **out)
{
    return clave__thread_grant_take(out, m->child.client, mutex_find_grant, m,
                                    clave_mutex_owner_self());
}
