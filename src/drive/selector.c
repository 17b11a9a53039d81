/* selector.c - a task that acquires the lock, calls the user's function and releases; and who
 * has it run: a thread of its own, or the user's executor.
 *
 *   IDLE ──▶ QUEUED ──▶ LEADING ──▶ IDLE, or QUEUED again by itself                       */
#include "clave/selector.h"

#include <stdlib.h>
#include <string.h>

#include "core/client.h"
#include "drive/tenure.h"

/* Before a task that failed is tried again; and between two looks at one that should end. */
enum { AGAIN_MS = 1000, LOOK_AGAIN_MS = 50 };
enum phase { IDLE, QUEUED, LEADING };

struct clave_selector {
    clave_session *session;
    clave_lock *lock;
    char *id;
    clave_latch_policy policy;
    bool auto_requeue;
    clave_take_leadership *take;
    void *take_arg;
    clave_execute *execute;
    void *execute_arg;
    struct listener listener; /* the loop's thread only */
    pthread_t thread;
    /* Under the loop's mutex: */
    enum phase phase;
    bool started, closed;
    bool runs;     /* a task is with the executor, or our thread is there */
    bool threaded; /* `thread` is to be joined */
    bool interrupted;
    bool suspended; /* the connection is away: only the standard policy minds */
    uint64_t owner; /* of the task's thread; 0: not known yet */
    clave_err err;
    struct cell work;  /* QUEUED, or closed */
    struct cell doubt; /* interrupted */
    struct cell ended; /* nothing runs any more */
};

static void enter(clave_selector *s)
{
    clave__loop_lock(s->session->loop);
}

static void leave(clave_selector *s)
{
    clave__loop_unlock(s->session->loop);
}

/* With the mutex. */
static void interrupt(clave_selector *s)
{
    s->interrupted = true;
    pthread_cond_broadcast(&s->doubt.cond);
}

/* ---- doubt, on the loop's thread ------------------------------------------------------------ */

/* With the mutex. That the lock is lost, it says itself. */
static bool is_doubtful(const clave_selector *s)
{
    return s->suspended && s->policy == CLAVE_POLICY_STANDARD;
}

static void on_state(struct listener *l, clave_state state, clave_err why)
{
    clave_selector *s = LIST_ENTRY(l, clave_selector, listener);
    (void)why;
    enter(s);
    s->suspended = state != CLAVE_STATE_CONNECTED && state != CLAVE_STATE_RECONNECTED;
    if (s->phase == LEADING && is_doubtful(s))
        interrupt(s);
    leave(s);
}

static void on_event(clave_mutex *m, const clave_mutex_event *ev, void *arg)
{
    clave_selector *s = arg;
    enter(s);
    if (ev->kind == CLAVE_MUTEX_LOST || ev->kind == CLAVE_MUTEX_ASKED)
        interrupt(s);
    bool closed = s->closed;
    leave(s);
    /* Its acquire began behind the close. */
    if (closed && ev->kind == CLAVE_MUTEX_QUEUED)
        (void)clave_mutex_cancel(m, ev->owner);
}

/* ---- the task -------------------------------------------------------------------------------- */

/* The lock is held: does that mean leadership? testRaceAtStateChanged: what was lost between the
 * grant and this moment must not begin. */
static bool begin_leading(clave_selector *s)
{
    bool valid = clave_lock_valid_for(s->lock, 0);
    enter(s);
    bool leads = valid && !is_doubtful(s) && !s->closed;
    if (leads)
        s->phase = LEADING;
    leave(s);
    return leads;
}

/* The task is done, the lock not yet released: from here on a requeue succeeds. */
static void end_task(clave_selector *s, clave_err err)
{
    enter(s);
    s->err = err;
    s->phase = s->auto_requeue && !s->closed ? QUEUED : IDLE;
    leave(s);
}

static void run_task(clave_selector *s)
{
    enter(s);
    s->owner = clave_lock_owner_self();
    bool closed = s->closed;
    s->interrupted = closed;
    leave(s);
    clave_err err = closed ? CLAVE_ECLOSED : clave_lock_acquire(s->lock, -1);
    if (err != CLAVE_OK) {
        end_task(s, err);
        return;
    }
    if (begin_leading(s))
        s->take(s, s->take_arg);
    end_task(s, CLAVE_OK);
    (void)clave_lock_release(s->lock);
}

/* ---- who runs it ------------------------------------------------------------------------------
 */

static void *thread_main(void *arg)
{
    clave_selector *s = arg;
    clave_loop *loop = s->session->loop;
    enter(s);
    while (!s->closed) {
        if (s->phase != QUEUED) {
            clave__cell_wait(&s->work, loop, CLAVE_NEVER);
            continue;
        }
        leave(s);
        run_task(s);
        enter(s);
        int64_t until = clave_now() + AGAIN_MS;
        while (s->err != CLAVE_OK && !s->closed && clave__cell_wait(&s->work, loop, until))
            continue;
    }
    s->runs = false;
    clave__cell_wake(&s->ended);
    leave(s);
    return NULL;
}

static bool submit(clave_selector *s);

static void run_once(void *arg)
{
    clave_selector *s = arg;
    run_task(s);
    enter(s);
    bool again = s->phase == QUEUED && !s->closed && s->err == CLAVE_OK;
    leave(s);
    if (again && submit(s))
        return;
    enter(s);
    s->phase = IDLE;
    s->runs = false;
    clave__cell_wake(&s->ended);
    leave(s);
}

static bool submit(clave_selector *s)
{
    return s->execute(run_once, s, s->execute_arg);
}

/* With the phase QUEUED already. */
static clave_err set_off(clave_selector *s)
{
    enter(s);
    bool runs = s->runs;
    s->runs = true;
    clave__cell_wake(&s->work);
    leave(s);
    if (runs)
        return CLAVE_OK;
    bool fine = s->execute ? submit(s) : pthread_create(&s->thread, NULL, thread_main, s) == 0;
    enter(s);
    s->threaded = fine && !s->execute;
    if (fine) {
        leave(s);
        return CLAVE_OK;
    }
    s->runs = false;
    s->phase = IDLE;
    leave(s);
    return CLAVE_EIO;
}

clave_err clave_selector_start(clave_selector *s)
{
    enter(s);
    bool fresh = !s->started && !s->closed;
    if (fresh) {
        s->started = true;
        s->phase = QUEUED;
    }
    leave(s);
    return fresh ? set_off(s) : CLAVE_EINVAL;
}

clave_err clave_selector_requeue(clave_selector *s)
{
    clave_err err = CLAVE_OK;
    enter(s);
    if (s->closed)
        err = CLAVE_ECLOSED;
    else if (!s->started)
        err = CLAVE_EINVAL;
    else if (s->phase != IDLE)
        err = CLAVE_EBUSY;
    else
        s->phase = QUEUED;
    leave(s);
    return err == CLAVE_OK ? set_off(s) : err;
}

clave_err clave_selector_interrupt(clave_selector *s)
{
    enter(s);
    bool leads = s->phase == LEADING;
    if (leads)
        interrupt(s);
    leave(s);
    return leads ? CLAVE_OK : CLAVE_ENOTHELD;
}

void clave_selector_close(clave_selector *s)
{
    enter(s);
    bool waits = s->phase == QUEUED && s->owner != 0;
    uint64_t owner = s->owner;
    s->closed = true;
    interrupt(s);
    clave__cell_wake(&s->work);
    leave(s);
    if (waits)
        (void)clave_lock_cancel_as(s->lock, owner);
}

/* ---- life -------------------------------------------------------------------------------------
 */

static void begin_listening(clave_client *c, void *arg)
{
    clave_selector *s = arg;
    s->suspended = !clave_client_is_connected(c);
    clave__client_listen(c, &s->listener);
}

static void end_listening(clave_client *c, void *arg)
{
    clave_selector *s = arg;
    (void)c;
    clave__client_unlisten(&s->listener);
}

static void free_selector(clave_selector *s)
{
    clave__cell_fini(&s->work);
    clave__cell_fini(&s->doubt);
    clave__cell_fini(&s->ended);
    free(s->id);
    free(s);
}

static clave_err open_lock(clave_selector *s, const char *path, const clave_selector_options *o)
{
    clave_mutex_options m = {.size = sizeof m, .event_cb = on_event, .event_arg = s};
    m.data = o->id;
    m.len = o->id ? strlen(o->id) : 0;
    m.acls = o->acls;
    m.nacls = o->nacls;
    m.revocable = o->revocable;
    return clave_lock_new(&s->lock, s->session, path, &m);
}

clave_err clave_selector_new(clave_selector **out, clave_session *session, const char *path,
                             const clave_selector_options *o)
{
    *out = NULL;
    if (!o || o->size != sizeof *o || !o->take)
        return CLAVE_EINVAL;
    clave_selector *s = calloc(1, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    s->session = session;
    s->policy = o->policy;
    s->auto_requeue = o->auto_requeue;
    s->take = o->take;
    s->take_arg = o->take_arg;
    s->execute = o->execute;
    s->execute_arg = o->execute_arg;
    s->listener.on_state = on_state;
    list_init(&s->listener.link);
    clave__cell_init(&s->work);
    clave__cell_init(&s->doubt);
    clave__cell_init(&s->ended);
    s->id = o->id ? strdup(o->id) : NULL;
    clave_err err = s->id || !o->id ? open_lock(s, path, o) : CLAVE_ENOMEM;
    if (err != CLAVE_OK) {
        free_selector(s);
        return err;
    }
    clave__session_do(session, begin_listening, s);
    *out = s;
    return CLAVE_OK;
}

void clave_selector_free(clave_selector *s)
{
    if (!s)
        return;
    clave_loop *loop = s->session->loop;
    clave_selector_close(s);
    enter(s);
    bool threaded = s->threaded;
    /* An acquire that began behind the close hears of it with its place, if it gets one. */
    while (s->runs) {
        clave__cell_wait(&s->ended, loop, clave_now() + LOOK_AGAIN_MS);
        uint64_t owner = s->owner;
        leave(s);
        (void)clave_lock_cancel_as(s->lock, owner);
        enter(s);
    }
    leave(s);
    if (threaded)
        pthread_join(s->thread, NULL);
    clave__session_do(s->session, end_listening, s);
    clave_lock_free(s->lock);
    free_selector(s);
}

/* ---- what is known ------------------------------------------------------------------------------
 */

bool clave_selector_is_interrupted(clave_selector *s)
{
    enter(s);
    bool interrupted = s->interrupted;
    leave(s);
    return interrupted;
}

bool clave_selector_pause(clave_selector *s, int64_t ms)
{
    int64_t until = clave__deadline_after(ms);
    enter(s);
    while (!s->interrupted && clave__cell_wait(&s->doubt, s->session->loop, until))
        continue;
    bool interrupted = s->interrupted;
    leave(s);
    return !interrupted;
}

/* The grant while it leads. */
static bool look(clave_selector *s, struct tenure *out)
{
    enter(s);
    bool leads = s->phase == LEADING && !is_doubtful(s);
    uint64_t owner = s->owner;
    leave(s);
    return leads && clave__tenure_look(s->lock, owner, out);
}

int64_t clave_selector_deadline(clave_selector *s)
{
    struct tenure t;
    return look(s, &t) ? t.deadline : INT64_MIN;
}

int64_t clave_selector_token(clave_selector *s)
{
    struct tenure t;
    return look(s, &t) ? t.token : 0;
}

bool clave_selector_valid_for(clave_selector *s, int64_t ms)
{
    int64_t deadline = clave_selector_deadline(s);
    int64_t now = clave_now(); /* behind the look: a pause in between counts */
    return deadline >= now && deadline - now >= ms;
}

bool clave_selector_has_leadership(clave_selector *s)
{
    return clave_selector_valid_for(s, 0);
}

const char *clave_selector_id(const clave_selector *s)
{
    return s->id;
}

clave_err clave_selector_error(clave_selector *s)
{
    enter(s);
    clave_err err = s->phase == IDLE ? s->err : CLAVE_OK;
    leave(s);
    return err;
}

clave_err clave_selector_multi(clave_selector *s, const clave_op *ops, size_t nops,
                               int64_t timeout_ms, clave_reply **out)
{
    return clave_lock_multi(s->lock, ops, nops, timeout_ms, out);
}
