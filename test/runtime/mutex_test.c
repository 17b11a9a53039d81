/* mutex_test.c - the mutex for threads: exclusion, time, loss, and what a holder can know. */
#include "lib/grants.h"
#include "rig.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static clave_mutex *new_lock(clave_client *s, const char *path)
{
    clave_mutex *l;
    assert_int_equal(clave_mutex_new(&l, s, path, NULL), CLAVE_OK);
    return l;
}

/* ---- exclusion ------------------------------------------------------------------------ */

enum { THREADS = 4, TURNS = 25 };

struct lock_record {
    atomic_int inside;
    atomic_int faults;
    int64_t newest_token; /* under the lock */
    unsigned count;       /* under the lock */
};

struct worker {
    clave_mutex *lock;
    struct lock_record *lock_record;
};

static void *take_turns(void *arg)
{
    struct worker *w = arg;
    struct lock_record *g = w->lock_record;
    for (unsigned i = 0; i < TURNS; i++) {
        if (clave_mutex_acquire(w->lock, 30000) != CLAVE_OK) {
            atomic_fetch_add(&g->faults, 1);
            return NULL;
        }
        if (atomic_fetch_add(&g->inside, 1) != 0)
            atomic_fetch_add(&g->faults, rig_unsafe("two holders"));
        int64_t token = token_held(by_mutex(w->lock));
        if (token <= g->newest_token)
            atomic_fetch_add(&g->faults, rig_unsafe("a token that is not above the one before"));
        if (!held_for(by_mutex(w->lock), 0))
            atomic_fetch_add(&g->faults, 1);
        g->newest_token = token;
        g->count++;
        atomic_fetch_sub(&g->inside, 1);
        if (clave_mutex_release(w->lock) != CLAVE_OK)
            atomic_fetch_add(&g->faults, 1);
    }
    return NULL;
}

/* On one lock object, or every thread with a session and a lock of its own. */
static void all_take_turns(const char *path, bool apart)
{
    struct lock_record lock_record = {.count = 0};
    struct worker workers[THREADS];
    clave_client *sessions[THREADS] = {0};
    pthread_t threads[THREADS];
    unsigned n = apart ? THREADS : 1;
    for (unsigned i = 0; i < THREADS; i++) {
        if (i < n)
            sessions[i] = rig_session(rig->connect);
        workers[i].lock_record = &lock_record;
        workers[i].lock = i < n ? new_lock(sessions[i], path) : workers[0].lock;
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &workers[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(lock_record.faults, 0);
    assert_int_equal(lock_record.count, THREADS * TURNS);
    for (unsigned i = 0; i < n; i++) {
        clave_mutex_free(workers[i].lock);
        clave_client_close(sessions[i], 5000);
    }
}

TEST_WITH(threads_take_turns_on_one_lock, rig_start_group, rig_stop_group)
{
    all_take_turns("/locks/one", false);
}

TEST_WITH(threads_take_turns_on_locks_of_their_own, rig_start_group, rig_stop_group)
{
    all_take_turns("/locks/own", true);
}

TEST_WITH(the_owner_enters_again, rig_start_group, rig_stop_group)
{
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l = new_lock(s, "/locks/again");
    assert_int_equal(clave_mutex_acquire(l, 5000), CLAVE_OK);
    int64_t token = token_held(by_mutex(l));
    assert_int_equal(clave_mutex_acquire(l, 0), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire_as(l, 7, 0), CLAVE_EBUSY);
    assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    assert_true(token_held(by_mutex(l)) == token);
    assert_true(held_for(by_mutex(l), 1));
    assert_true(deadline_held(by_mutex(l)) > clave_now());
    assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    assert_int_equal(token_held(by_mutex(l)), 0);
    assert_true(deadline_held(by_mutex(l)) == INT64_MIN);
    assert_false(held_for(by_mutex(l), 0));
    assert_int_equal(clave_mutex_release(l), CLAVE_ENOTHELD);
    assert_int_equal(clave_mutex_acquire_as(l, 7, 5000), CLAVE_OK);
    assert_int_equal(token_held(by_mutex(l)), 0); /* that is owner 7's */
    assert_int_equal(clave_mutex_release_as(l, 7), CLAVE_OK);
    clave_mutex_free(l);
    clave_client_close(s, 5000);
}

static void *own_number(void *arg)
{
    *(uint64_t *)arg = clave_mutex_owner_self();
    return NULL;
}

TEST(threads_have_numbers_of_their_own)
{
    uint64_t other = 0, self = clave_mutex_owner_self();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, own_number, &other), 0);
    pthread_join(thread, NULL);
    assert_true(self == clave_mutex_owner_self());
    assert_true(other != self && other != 0);
}

/* ---- time ------------------------------------------------------------------------------- */

enum { SOON_MS = 8000 }; /* for a busy machine; a session lasts longer, and patience, too */

TEST_WITH(acquire_ends_in_time, rig_start_group, rig_stop_group)
{
    clave_client *a = rig_session(rig->connect), *b = rig_session(rig->connect);
    clave_mutex *holder = new_lock(a, "/locks/time"), *other = new_lock(b, "/locks/time");
    assert_int_equal(clave_mutex_acquire(holder, 5000), CLAVE_OK);
    int64_t before = clave_now();
    assert_int_equal(clave_mutex_acquire(other, 0), CLAVE_EBUSY);
    assert_in_range(clave_now() - before, 0, SOON_MS);
    before = clave_now();
    assert_int_equal(clave_mutex_acquire(other, 150), CLAVE_EBUSY);
    assert_in_range(clave_now() - before, 150, SOON_MS);
    clave_mutex_free(holder); /* releases */
    assert_int_equal(clave_mutex_acquire(other, 5000), CLAVE_OK);
    clave_mutex_free(other);
    clave_client_close(a, 5000);
    clave_client_close(b, 5000);
}

TEST(acquire_without_a_server_ends_in_time)
{
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, "unix:/nowhere/at/all", NULL), CLAVE_OK);
    clave_mutex *l = new_lock(s, "/locks/unreachable");
    int64_t before = clave_now();
    assert_int_equal(clave_mutex_acquire(l, 0), CLAVE_EUNREACHABLE);
    assert_in_range(clave_now() - before, 0, SOON_MS);
    assert_int_equal(clave_mutex_acquire(l, 150), CLAVE_EUNREACHABLE);
    assert_in_range(clave_now() - before, 150, SOON_MS);
    clave_mutex_free(l);
    clave_client_close(s, 100);
}

struct waiting {
    clave_mutex *lock;
    clave_err err;
    sem_t queued;
};

static void note_queued(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct waiting *w = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_NEXT)
        sem_post(&w->queued);
}

static void *wait_for_ever(void *arg)
{
    struct waiting *w = arg;
    w->err = clave_mutex_acquire_as(w->lock, 42, -1);
    return NULL;
}

TEST_WITH(cancel_ends_a_wait, rig_start_group, rig_stop_group)
{
    struct waiting w = {0};
    pthread_t thread;
    clave_client *s = rig_session(rig->connect);
    clave_mutex_options o = {.size = sizeof o, .event_cb = note_queued, .event_arg = &w};
    sem_init(&w.queued, 0, 0);
    clave_mutex *holder = new_lock(s, "/locks/cancel");
    assert_int_equal(clave_mutex_new(&w.lock, s, "/locks/cancel", &o), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(holder, 5000), CLAVE_OK);
    assert_int_equal(clave_mutex_cancel_as(w.lock, 42), CLAVE_ENOTHELD);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &w), 0);
    sem_wait(&w.queued);
    assert_int_equal(clave_mutex_cancel_as(w.lock, 42), CLAVE_OK);
    pthread_join(thread, NULL);
    assert_int_equal(w.err, CLAVE_ECANCELED);
    clave_mutex_free(w.lock);
    clave_mutex_free(holder);
    clave_client_close(s, 5000);
    sem_destroy(&w.queued);
}

/* ---- what stands in the node ------------------------------------------------------------ */

struct queue {
    sem_t done;
    clave_err err;
    size_t n;
    char host[256], command[256];
    int64_t pid, token;
};

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    struct queue *q = arg;
    (void)c;
    q->err = err;
    q->n = n;
    if (n > 0) {
        snprintf(q->host, sizeof q->host, "%s", list[0].identity.host);
        snprintf(q->command, sizeof q->command, "%s", list[0].identity.command);
        q->pid = list[0].identity.pid;
        q->token = list[0].stat.czxid;
    }
    sem_post(&q->done);
}

static void ask_participants(clave_async_client *c, void *arg)
{
    struct queue *q = arg;
    if (clave_async_participants(c, "/locks/who", on_participants, q) != CLAVE_OK)
        sem_post(&q->done);
}

TEST_WITH(the_node_says_who_holds_it, rig_start_group, rig_stop_group)
{
    struct queue q = {.err = CLAVE_EINVAL};
    char host[256] = "";
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l = new_lock(s, "/locks/who");
    sem_init(&q.done, 0, 0);
    gethostname(host, sizeof host - 1);
    assert_int_equal(clave_mutex_acquire(l, 5000), CLAVE_OK);
    assert_int_equal(clave_client_run(s, ask_participants, &q), CLAVE_OK);
    sem_wait(&q.done);
    assert_int_equal(q.err, CLAVE_OK);
    assert_int_equal(q.n, 1);
    assert_string_equal(q.host, host);
    assert_int_equal(q.pid, getpid());
    assert_non_null(strstr(q.command, "mutex_test"));
    assert_true(q.token == token_held(by_mutex(l)));
    clave_mutex_free(l);
    clave_client_close(s, 5000);
    sem_destroy(&q.done);
}

/* ---- guarded writes and loss ------------------------------------------------------------ */

struct losses {
    sem_t lost;
    clave_err why;
};

static void note_loss(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct losses *x = arg;
    (void)m;
    if (ev->kind != CLAVE_MUTEX_LOST)
        return;
    x->why = ev->why;
    sem_post(&x->lost);
}

TEST_WITH(guarded_writes, rig_start_group, rig_stop_group)
{
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l = new_lock(s, "/locks/guard");
    clave_reply *r;
    clave_op ops[] = {{.kind = CLAVE_OP_SET, .path = "/g", .data = "c", .len = 1, .version = -1},
                      {.kind = CLAVE_OP_CHECK, .path = "/nowhere", .version = -1}};
    assert_int_equal(set_held(by_mutex(l), "/g", "a", 1, -1, 5000), CLAVE_ENOTHELD);
    assert_int_equal(clave_mutex_acquire(l, 5000), CLAVE_OK);
    assert_int_equal(create_held(by_mutex(l), "/g", "a", 1, CLAVE_PERSISTENT, 5000, &r), CLAVE_OK);
    assert_string_equal(r->path, "/g");
    clave_reply_free(r);
    assert_int_equal(set_held(by_mutex(l), "/g", "b", 1, 0, 5000), CLAVE_OK);
    assert_int_equal(multi_held(by_mutex(l), ops, 2, 5000, &r), CLAVE_ENONODE);
    assert_int_equal(r->nops, 2);
    assert_int_equal(r->op_errs[1], CLAVE_ENONODE);
    clave_reply_free(r);
    assert_int_equal(clave_get(s, "/g", 5000, &r), CLAVE_OK);
    assert_memory_equal(r->data, "b", 1);
    clave_reply_free(r);
    assert_int_equal(delete_held(by_mutex(l), "/g", -1, 5000), CLAVE_OK);
    assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    clave_mutex_free(l);
    clave_client_close(s, 5000);
}

/* Somebody deletes the lock's node under the holder: its next guarded write says so and does
 * nothing, whatever the holder knew before. */
TEST_WITH(a_deleted_node_stops_writes, rig_start_group, rig_stop_group)
{
    struct losses x = {.why = CLAVE_OK};
    char path[512];
    clave_client *s = rig_session(rig->connect);
    clave_mutex_options o = {.size = sizeof o, .event_cb = note_loss, .event_arg = &x};
    clave_mutex *l;
    clave_reply *r;
    sem_init(&x.lost, 0, 0);
    assert_int_equal(clave_mutex_new(&l, s, "/locks/deleted", &o), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(l, 5000), CLAVE_OK);
    assert_int_equal(clave_children(s, "/locks/deleted", 5000, &r), CLAVE_OK);
    assert_int_equal(r->nnames, 1);
    snprintf(path, sizeof path, "/locks/deleted/%s", r->names[0]);
    clave_reply_free(r);
    assert_int_equal(clave_delete(s, path, -1, 5000), CLAVE_OK);
    clave_err err = create_held(by_mutex(l), "/never", "", 0, CLAVE_PERSISTENT, 5000, NULL);
    assert_safe(err != CLAVE_OK, "a write of one that held no more");
    assert_int_equal(err, CLAVE_ELOST);
    assert_int_equal(clave_exists(s, "/never", 5000, NULL), CLAVE_ENONODE);
    sem_wait(&x.lost);
    assert_int_equal(x.why, CLAVE_ENONODE);
    assert_false(held_for(by_mutex(l), 0));
    assert_int_equal(token_held(by_mutex(l)), 0);
    assert_int_equal(clave_mutex_release(l), CLAVE_ELOST);
    assert_int_equal(clave_mutex_acquire(l, 5000), CLAVE_OK); /* and all is well again */
    assert_int_equal(clave_mutex_release(l), CLAVE_OK);
    clave_mutex_free(l);
    clave_client_close(s, 5000);
    sem_destroy(&x.lost);
}

/* ---- a holder that was stopped -------------------------------------------------------------- */

enum { SHORT_SESSION_MS = 600 };

/* Takes the lock, is stopped, and says what it believes at its first instruction after. It may have
 * had to wait for the processor longer than its session lasts: then it takes it anew. */
static _Noreturn void hold_and_stop(const char *connect, int tell)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = SHORT_SESSION_MS};
    clave_client *s;
    clave_mutex *l;
    if (clave_client_open(&s, NULL, connect, &o) != CLAVE_OK ||
        clave_mutex_new(&l, s, "/locks/stopped", NULL) != CLAVE_OK)
        _exit(1);
    while (!held_for(by_mutex(l), 0)) {
        (void)clave_mutex_release(l);
        if (clave_mutex_acquire(l, RIG_PATIENCE_MS) != CLAVE_OK)
            _exit(1);
    }
    raise(SIGSTOP);
    char belief = held_for(by_mutex(l), 0) ? 'y' : 'n';
    _exit(write(tell, &belief, 1) == 1 ? 0 : 1);
}

TEST_FIRST(a_stopped_holder_knows_at_once)
{
    int tell[2], status;
    char belief = 0;
    struct rig_process server;
    rig_fork(&server, rig_dir(), NULL);
    assert_int_equal(pipe(tell), 0);
    pid_t holder = rig_fork_alone();
    if (holder == 0)
        hold_and_stop(server.connect, tell[1]);
    close(tell[1]);
    assert_int_equal(waitpid(holder, &status, WUNTRACED), holder);
    assert_true(WIFSTOPPED(status));
    clave_client *s = rig_session(server.connect);
    clave_mutex *l = new_lock(s, "/locks/stopped");
    assert_int_equal(clave_mutex_acquire(l, RIG_PATIENCE_MS), CLAVE_OK);
    kill(holder, SIGCONT);
    assert_int_equal(read(tell[0], &belief, 1), 1);
    assert_safe(belief == 'n', "two holders: one was stopped for longer than its session");
    assert_int_equal(waitpid(holder, &status, 0), holder);
    assert_int_equal(status, 0);
    close(tell[0]);
    clave_mutex_free(l);
    clave_client_close(s, 5000);
    rig_kill(&server, SIGTERM);
}
