/* selector.c - clave_selector: a task that acquires the lock, calls the user's function and
 * releases the lock; and the runner of that task, which is a thread of the selector's own or the
 * user's executor. The rules are in recipe/election/selector_state.h. At most one task of a
 * selector runs at a time. */
#include "clave/selector.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "client/client_for_recipes.h"
#include "recipe/election/selector_state.h"
#include "runtime/blocking/thread_grant.h"

/* The pause before a failed task is tried again, and the interval between attempts to cancel a task
 * that should end. */
enum { AGAIN_MS = 1000, LOOK_AGAIN_MS = 50 };

/* What runs the task. */
enum selector_runner {
    RUNNER_NONE,   /* nothing: it was not started, or the executor is done with it */
    RUNNER_ACTIVE, /* the executor has it, or our thread is running */
    RUNNER_ENDED,  /* our thread has ended and has to be joined */
};

struct clave_selector {
    struct child child;
    clave_mutex *lock;
    clave_take_leadership_fn *take;
    void *take_arg;
    clave_execute_fn *execute;
    void *execute_arg;
    struct listener listener; /* used by the loop's thread only */
    pthread_t thread;
    /* From here on under the loop's mutex. */
    struct selector_state state;
    enum selector_runner runner;
    uint64_t owner;          /* the task's thread; 0: not known yet */
    clave_grant *grant;      /* the task's, while it leads; otherwise NULL */
    struct cell work;        /* woken when it is QUEUED or closed */
    struct cell interrupted; /* for a thread in clave_selector_pause */
    struct cell ended;       /* woken when nothing runs any more */
};

static bool selector_is_here(const clave_selector *s)
{
    return clave__loop_is_here(s->child.client->loop);
}

static void selector_enter(clave_selector *s)
{
    clave__loop_lock(s->child.client->loop);
}

static void selector_leave(clave_selector *s)
{
    clave__loop_unlock(s->child.client->loop);
}

/* Call it with the mutex held. */
static void selector_wake_if_interrupted(clave_selector *s)
{
    if (s->state.interrupted)
        pthread_cond_broadcast(&s->interrupted.cond);
}

/* ---- suspension, on the loop's thread ------------------------------------------------------- */

static void selector_on_state(struct listener *l, clave_state state, clave_err why)
{
    clave_selector *s = LIST_ENTRY(l, clave_selector, listener);
    (void)why;
    selector_enter(s);
    clave__selector_state_connection(&s->state, state);
    selector_wake_if_interrupted(s);
    selector_leave(s);
}

static void selector_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    clave_selector *s = arg;
    selector_enter(s);
    bool cancels = clave__selector_state_event(&s->state, ev->kind);
    selector_wake_if_interrupted(s);
    selector_leave(s);
    if (cancels)
        (void)clave_async_mutex_cancel(m, ev->owner);
}

/* ---- the task ------------------------------------------------------------------------------- */

static clave_err selector_begin_task(clave_selector *s)
{
    selector_enter(s);
    s->owner = clave_mutex_owner_self();
    clave_err err = clave__selector_state_begin(&s->state);
    selector_leave(s);
    return err;
}

static bool selector_elect(clave_selector *s, clave_grant *grant)
{
    assert(!s->grant);
    bool valid = clave_grant_valid_for(grant, 0);
    selector_enter(s);
    bool leads = clave__selector_state_elect(&s->state, valid);
    s->grant = leads ? grant : NULL;
    selector_leave(s);
    return leads;
}

static void selector_end_task(clave_selector *s, clave_err err)
{
    selector_enter(s);
    s->grant = NULL;
    clave__selector_state_end(&s->state, err);
    selector_leave(s);
}

static void selector_run_task(clave_selector *s)
{
    if (selector_begin_task(s) != CLAVE_OK)
        return;
    clave_err err = clave_mutex_acquire(s->lock, -1);
    if (err != CLAVE_OK) {
        selector_end_task(s, err);
        return;
    }
    clave_grant *grant;
    err = clave_mutex_grant(s->lock, &grant);
    if (err == CLAVE_OK && selector_elect(s, grant))
        s->take(s, s->take_arg);
    /* The lock was already lost: nothing failed, and the selector queues again if it should. */
    selector_end_task(s, err == CLAVE_ELOST ? CLAVE_OK : err);
    (void)clave_mutex_release(s->lock);
    clave_grant_free(grant);
}

/* ---- running the task ------------------------------------------------------------------------ */

static void *selector_thread(void *arg)
{
    clave_selector *s = arg;
    clave_loop *loop = s->child.client->loop;
    selector_enter(s);
    assert(s->runner == RUNNER_ACTIVE);
    while (!s->state.closed) {
        if (s->state.phase != SELECTOR_STATE_QUEUED) {
            clave__cell_wait(&s->work, loop, CLAVE_NEVER);
            continue;
        }
        selector_leave(s);
        selector_run_task(s);
        selector_enter(s);
        int64_t until = clave_now() + AGAIN_MS;
        while (s->state.err != CLAVE_OK && !s->state.closed &&
               clave__cell_wait(&s->work, loop, until))
            continue;
    }
    s->runner = RUNNER_ENDED;
    clave__cell_wake(&s->ended);
    selector_leave(s);
    return NULL;
}

static bool selector_submit(clave_selector *s);

/* Call it with the mutex held. */
static void selector_rest(clave_selector *s)
{
    assert(s->runner == RUNNER_ACTIVE);
    clave__selector_state_rest(&s->state);
    s->runner = RUNNER_NONE;
    clave__cell_wake(&s->ended);
}

static void selector_run_once(void *arg)
{
    clave_selector *s = arg;
    selector_run_task(s);
    selector_enter(s);
    bool again = clave__selector_state_goes_on(&s->state);
    if (!again) /* under the same lock, because a requeue that finds a runner relies on it */
        selector_rest(s);
    selector_leave(s);
    if (!again || selector_submit(s))
        return;
    selector_enter(s);
    s->state.err = CLAVE_EIO;
    selector_rest(s);
    selector_leave(s);
}

static bool selector_submit(clave_selector *s)
{
    return s->execute(selector_run_once, s, s->execute_arg);
}

/* The selector is already QUEUED: makes a runner take its task. */
static clave_err selector_run(clave_selector *s)
{
    selector_enter(s);
    bool runs = s->runner == RUNNER_ACTIVE;
    s->runner = RUNNER_ACTIVE;
    clave__cell_wake(&s->work);
    selector_leave(s);
    if (runs)
        return CLAVE_OK;
    clave_err err = CLAVE_OK;
    if (s->execute)
        err = selector_submit(s) ? CLAVE_OK : CLAVE_EIO;
    else if (pthread_create(&s->thread, NULL, selector_thread, s) != 0)
        err = CLAVE_ETHREAD;
    if (err == CLAVE_OK)
        return err;
    selector_enter(s);
    selector_rest(s);
    selector_leave(s);
    return err;
}

/* Changes the state by one of its rules, and runs the task if the new state demands it. */
static clave_err selector_change(clave_selector *s, clave_err (*rule)(struct selector_state *st),
                                 bool runs)
{
    if (!selector_is_here(s))
        return CLAVE_ECLOSED;
    selector_enter(s);
    clave_err err = s->child.client->ended ? CLAVE_ECLOSED : rule(&s->state);
    selector_wake_if_interrupted(s);
    selector_leave(s);
    return err == CLAVE_OK && runs ? selector_run(s) : err;
}

clave_err clave_selector_start(clave_selector *s)
{
    return selector_change(s, clave__selector_state_start, true);
}

clave_err clave_selector_requeue(clave_selector *s)
{
    return selector_change(s, clave__selector_state_requeue, true);
}

clave_err clave_selector_interrupt(clave_selector *s)
{
    return selector_change(s, clave__selector_state_interrupt, false);
}

void clave_selector_close(clave_selector *s)
{
    if (!selector_is_here(s))
        return;
    selector_enter(s);
    uint64_t owner = s->owner;
    bool cancels = clave__selector_state_close(&s->state) && owner != 0;
    selector_wake_if_interrupted(s);
    clave__cell_wake(&s->work);
    selector_leave(s);
    if (cancels)
        (void)clave_mutex_cancel_as(s->lock, owner);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err selector_listen(clave_async_client *c, const struct args *a)
{
    clave_selector *s = a->of;
    s->state.suspended = !clave_async_client_is_connected(c);
    clave__client_listen(c, &s->listener);
    return CLAVE_OK;
}

/* The client has ended: the function is interrupted, whatever the task waits for returns, and no
 * task is started any more. */
static void selector_on_ended(struct child *c)
{
    clave_selector *s = LIST_ENTRY(c, clave_selector, child);
    clave__client_unlisten(&s->listener);
    selector_enter(s);
    (void)clave__selector_state_close(&s->state);
    selector_wake_if_interrupted(s);
    clave__cell_wake(&s->work);
    selector_leave(s);
}

static void selector_destroy(clave_selector *s)
{
    clave__cell_fini(&s->work);
    clave__cell_fini(&s->interrupted);
    clave__cell_fini(&s->ended);
    free(s);
}

static clave_err selector_open_lock(clave_selector *s, const char *path,
                                    const clave_selector_options *o)
{
    clave_mutex_options m = {.size = sizeof m, .event_cb = selector_on_event, .event_arg = s};
    m.data = o->id;
    m.len = o->id ? strlen(o->id) : 0;
    m.acls = o->acls;
    m.nacls = o->nacls;
    m.revocable = o->revocable;
    return clave_mutex_new(&s->lock, s->child.client, path, &m);
}

clave_err clave_selector_new(clave_selector **out, clave_client *c, const char *path,
                             const clave_selector_options *given)
{
    static const struct child_kind kind = {.ended = selector_on_ended};
    clave_selector_options o;
    *out = NULL;
    clave_err err = clave__blocking_take_options(c, &o, sizeof o, given, "clave_selector_options");
    if (err == CLAVE_OK && !o.take)
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    clave_selector *s = calloc(1, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    s->child.client = c;
    list_init(&s->child.link);
    s->state.policy = o.policy;
    s->state.auto_requeue = o.auto_requeue;
    s->take = o.take;
    s->take_arg = o.take_arg;
    s->execute = o.execute;
    s->execute_arg = o.execute_arg;
    s->listener.on_state = selector_on_state;
    list_init(&s->listener.link);
    clave__cell_init(&s->work);
    clave__cell_init(&s->interrupted);
    clave__cell_init(&s->ended);
    err = selector_open_lock(s, path, &o);
    if (err != CLAVE_OK) {
        selector_destroy(s);
        return err;
    }
    err = clave__child_open(&s->child, c, &kind, selector_listen, &(struct args){.of = s});
    if (err != CLAVE_OK) {
        clave_mutex_free(s->lock);
        selector_destroy(s);
        return err;
    }
    *out = s;
    return CLAVE_OK;
}

void clave_selector_free(clave_selector *s)
{
    if (!s || !selector_is_here(s))
        return;
    clave_loop *loop = s->child.client->loop;
    clave__loop_must_not_be_current(loop, "clave_selector_free");
    clave_selector_close(s);
    selector_enter(s);
    /* An acquire that began after the close is cancelled here, or once it has its place. */
    while (s->runner == RUNNER_ACTIVE) {
        clave__cell_wait(&s->ended, loop, clave_now() + LOOK_AGAIN_MS);
        uint64_t owner = s->owner;
        selector_leave(s);
        (void)clave_mutex_cancel_as(s->lock, owner);
        selector_enter(s);
    }
    bool joins = s->runner == RUNNER_ENDED;
    selector_leave(s);
    if (joins)
        pthread_join(s->thread, NULL);
    (void)clave__child_close(&s->child);
    clave_mutex_free(s->lock);
    selector_destroy(s);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool clave_selector_is_interrupted(clave_selector *s)
{
    if (!selector_is_here(s))
        return true;
    selector_enter(s);
    bool interrupted = s->state.interrupted;
    selector_leave(s);
    return interrupted;
}

bool clave_selector_pause(clave_selector *s, int64_t ms)
{
    int64_t until = clave__deadline_after(ms);
    if (!selector_is_here(s))
        return false;
    selector_enter(s);
    while (!s->state.interrupted && clave__cell_wait(&s->interrupted, s->child.client->loop, until))
        continue;
    bool interrupted = s->state.interrupted;
    selector_leave(s);
    return !interrupted;
}

/* Returns the grant while the selector leads, otherwise NULL. Call it with the mutex held. */
static clave_grant *selector_look(const clave_selector *s)
{
    return clave__selector_state_leads(&s->state) ? s->grant : NULL;
}

bool clave_selector_has_leadership(clave_selector *s)
{
    if (!selector_is_here(s))
        return false;
    selector_enter(s);
    const clave_grant *g = selector_look(s);
    int64_t deadline = g ? clave__thread_grant_deadline_locked(g) : INT64_MIN;
    selector_leave(s);
    int64_t now = clave_now(); /* read after the check, so that a pause in between counts */
    return deadline_lasts(deadline, now, 0);
}

clave_err clave_selector_grant(clave_selector *s, clave_grant **out)
{
    *out = NULL;
    if (!selector_is_here(s))
        return CLAVE_ECLOSED;
    selector_enter(s);
    clave_grant *g = selector_look(s);
    if (g)
        *out = clave_grant_ref(g);
    clave_err err = s->child.client->ended ? CLAVE_ECLOSED : CLAVE_ENOTHELD;
    selector_leave(s);
    return g ? CLAVE_OK : err;
}

clave_err clave_selector_error(clave_selector *s)
{
    if (!selector_is_here(s))
        return CLAVE_ECLOSED;
    selector_enter(s);
    clave_err err = s->state.phase == SELECTOR_STATE_IDLE ? s->state.err : CLAVE_OK;
    selector_leave(s);
    return err;
}
