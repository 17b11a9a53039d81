/* mutex_hold.c - the holds of a mutex's threads (mutex_hold.h); only mutex.c calls it. A hold is
 * released exactly once, also when time is up before the loop's thread gets to it. */
#include "runtime/blocking/mutex_hold.h"

#include <assert.h>
#include <stdlib.h>

#include "recipe/grant_held.h"

/* ---- finding -------------------------------------------------------------------------------- */

static struct thread_hold *mutex_hold_find(const clave_mutex *m, uint64_t owner)
{
    for (struct list *e = m->thread_holds.next; e != &m->thread_holds; e = e->next) {
        struct thread_hold *t = LIST_ENTRY(e, struct thread_hold, link);
        if (t->owner == owner)
            return t;
    }
    return NULL;
}

/* With the mutex held. */
static struct thread_hold *mutex_hold_find_held(const clave_mutex *m, uint64_t owner)
{
    struct thread_hold *t = mutex_hold_find(m, owner);
    return t && t->count > 0 ? t : NULL;
}

bool clave__thread_hold_is_good(clave_mutex *m, uint64_t owner)
{
    if (!clave__loop_is_here(m->client->loop))
        return false;
    clave__loop_lock(m->client->loop);
    const struct thread_hold *t = mutex_hold_find_held(m, owner);
    bool good = t && t->deadline != INT64_MIN;
    clave__loop_unlock(m->client->loop);
    return good;
}

/* ---- what the loop's thread publishes ------------------------------------------------------- */

static void mutex_hold_publish(struct thread_hold *t, int64_t deadline)
{
    clave_loop *loop = t->lock->client->loop;
    assert(clave__loop_is_current(loop));
    if (t->deadline == deadline)
        return;
    clave__loop_lock(loop);
    t->deadline = deadline;
    clave__loop_unlock(loop);
}

static void mutex_hold_refresh(struct thread_hold *t)
{
    struct grant_facts g;
    bool held = clave__mutex_held(t->lock->mutex, t->owner, &g);
    mutex_hold_publish(t, held ? g.deadline : INT64_MIN);
}

void clave__thread_holds_refresh(clave_mutex *m)
{
    for (struct list *e = m->thread_holds.next; e != &m->thread_holds; e = e->next)
        mutex_hold_refresh(LIST_ENTRY(e, struct thread_hold, link));
}

void clave__thread_hold_lose(clave_mutex *m, uint64_t owner)
{
    struct thread_hold *t = mutex_hold_find(m, owner);
    if (t)
        mutex_hold_publish(t, INT64_MIN);
}

/* ---- releasing, on the loop's thread -------------------------------------------------------- */

static void mutex_hold_on_left(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct thread_hold *t = arg;
    clave_mutex *mutex = t->lock;
    (void)m;
    (void)owner;
    if (mutex) {
        clave__loop_lock(mutex->client->loop);
        list_remove(&t->link);
        if (list_empty(&mutex->leaving))
            clave__cell_wake(&mutex->all_left);
        clave__loop_unlock(mutex->client->loop);
    }
    if (t->call)
        clave__call_finish(t->call, err);
    free(t);
}

/* Takes one off `from`, the `count` or `given` of the hold, with the mutex held; true: it was the
 * last one. */
static bool mutex_hold_take_off(struct thread_hold *t, unsigned *from)
{
    assert(*from > 0);
    --*from;
    return t->count + t->released == 0;
}

/* Releases one hold that has been taken off already. With the last one the struct goes too: at once
 * if the lock was lost, otherwise (*leaves) when the server knows. */
static clave_err mutex_hold_give_back(struct thread_hold *t, bool last, bool *leaves)
{
    clave_mutex *m = t->lock;
    assert(clave__loop_is_current(m->client->loop));
    /* Without a callback, or for the last hold, this needs no memory. */
    clave_err err =
        clave_async_mutex_release(m->mutex, t->owner, last ? mutex_hold_on_left : NULL, t);
    *leaves = last && err == CLAVE_OK;
    if (!last)
        return err;
    clave__loop_lock(m->client->loop);
    clave__loop_unpost_locked(&t->task);
    list_remove(&t->link);
    if (*leaves)
        list_push_back(&m->leaving, &t->link);
    clave__loop_unlock(m->client->loop);
    if (!*leaves)
        free(t);
    return err;
}

static void mutex_hold_take_released(struct task *task)
{
    struct thread_hold *t = LIST_ENTRY(task, struct thread_hold, task);
    clave_client *c = t->lock->client;
    bool any = true, last = false, leaves;
    clave_async_client_tick(c->async, clave_now());
    while (any && !last) {
        clave__loop_lock(c->loop);
        any = t->released > 0;
        last = any && mutex_hold_take_off(t, &t->released);
        clave__loop_unlock(c->loop);
        if (any)
            mutex_hold_give_back(t, last, &leaves);
    }
    clave__blocking_flush_later(c);
}

void clave__thread_holds_give_back(clave_mutex *m)
{
    while (!list_empty(&m->thread_holds)) {
        struct thread_hold *t = LIST_ENTRY(m->thread_holds.next, struct thread_hold, link);
        bool leaves;
        clave__loop_lock(m->client->loop);
        bool last = mutex_hold_take_off(t, t->count > 0 ? &t->count : &t->released);
        clave__loop_unlock(m->client->loop);
        mutex_hold_give_back(t, last, &leaves);
    }
}

void clave__thread_holds_orphan(clave_mutex *m)
{
    struct list *e;
    clave__loop_lock(m->client->loop);
    while ((e = list_pop_front(&m->leaving)))
        LIST_ENTRY(e, struct thread_hold, link)->lock = NULL;
    clave__cell_wake(&m->all_left);
    clave__loop_unlock(m->client->loop);
}

void clave__thread_holds_await_left(clave_mutex *m, int64_t deadline)
{
    clave_loop *loop = m->client->loop;
    if (clave__loop_is_current(loop))
        return;
    clave__loop_lock(loop);
    while (!list_empty(&m->leaving) && clave__cell_wait(&m->all_left, loop, deadline))
        continue;
    clave__loop_unlock(loop);
}

/* ---- holds ----------------------------------------------------------------------------------- */

struct thread_hold *clave__thread_hold_new(clave_mutex *m, uint64_t owner)
{
    struct thread_hold *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    list_init(&t->link);
    list_init(&t->task.link);
    t->task.run = mutex_hold_take_released;
    t->lock = m;
    t->owner = owner;
    return t;
}

void clave__thread_hold_add_hold(clave_mutex *m, struct thread_hold **fresh)
{
    assert(*fresh);
    struct thread_hold *t = mutex_hold_find(m, (*fresh)->owner);
    clave__loop_lock(m->client->loop);
    if (!t) {
        t = *fresh;
        *fresh = NULL;
        list_push_back(&m->thread_holds, &t->link);
    }
    t->count++;
    clave__loop_unlock(m->client->loop);
    mutex_hold_refresh(t);
}

/* ---- release --------------------------------------------------------------------------------- */

struct release {
    clave_mutex *lock;
    uint64_t owner;
    bool confirmed;
    bool begun;
};

static clave_err mutex_hold_begin_release(struct call *c, void *args)
{
    struct release *r = args;
    clave_loop *loop = r->lock->client->loop;
    bool leaves;
    r->begun = true;
    clave__loop_lock(loop);
    struct thread_hold *t = mutex_hold_find_held(r->lock, r->owner);
    bool last = t && mutex_hold_take_off(t, &t->count);
    clave__loop_unlock(loop);
    if (!t)
        return CLAVE_ENOTHELD;
    clave_err err = mutex_hold_give_back(t, last, &leaves);
    if (leaves && r->confirmed)
        t->call = c;
    else
        c->answered = true;
    return err;
}

static clave_err mutex_hold_release_on_loop(clave_mutex *m, uint64_t owner, bool confirmed,
                                            int64_t timeout_ms)
{
    struct release r = {.lock = m, .owner = owner, .confirmed = confirmed};
    struct call_spec spec = {.begin = mutex_hold_begin_release, .args = &r};
    clave_err err = clave__call(m->client, &spec, timeout_ms, NULL);
    /* Time was up before the loop's thread got to it: it is released all the same. */
    if (err == CLAVE_ETIMEDOUT && !r.begun)
        (void)mutex_hold_release_on_loop(m, owner, false, -1);
    return err;
}

/* A hold that is valid as far as we know is released by a note to the loop's thread. If it is not,
 * the engine has to say so, and why. */
clave_err clave_mutex_release_as(clave_mutex *m, uint64_t owner)
{
    clave_loop *loop = m->client->loop;
    if (!clave__loop_is_here(loop))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(loop))
        return CLAVE_ELOOPTHREAD;
    clave__loop_lock(loop);
    bool ended = m->client->ended;
    struct thread_hold *t = mutex_hold_find_held(m, owner);
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
    return held ? mutex_hold_release_on_loop(m, owner, false, -1) : CLAVE_ENOTHELD;
}

clave_err clave_mutex_release_confirmed_as(clave_mutex *m, uint64_t owner, int64_t timeout_ms)
{
    return mutex_hold_release_on_loop(m, owner, true, timeout_ms);
}
