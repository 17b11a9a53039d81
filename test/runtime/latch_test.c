/* latch_test.c - a candidate for threads. */
#include "rig.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "clave/latch.h"
#include "lib/grants.h"
#include "runtime/blocking/call.h"

static clave_latch *stand(clave_client *s, const char *path, const clave_latch_options *o)
{
    clave_latch *c;
    assert_int_equal(clave_latch_new(&c, s, path, o), CLAVE_OK);
    assert_int_equal(clave_latch_start(c), CLAVE_OK);
    return c;
}

static void note_next(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    (void)l;
    if (ev->kind == CLAVE_LATCH_NEXT)
        sem_post(arg);
}

/* Behind the leader, and there: who leads now and resigns is behind this one. */
static clave_latch *enter_next(clave_client *s, const char *path)
{
    static sem_t next;
    const clave_latch_options o = {.size = sizeof o, .event_cb = note_next, .event_arg = &next};
    sem_init(&next, 0, 0);
    clave_latch *c = stand(s, path, &o);
    sem_wait(&next);
    return c;
}

TEST(who_never_stands_never_leads)
{
    clave_client *s = rig_session(rig->connect);
    clave_latch *c;
    assert_int_equal(clave_latch_new(&c, s, "/latent", NULL), CLAVE_OK);
    assert_int_equal(clave_latch_await(c, -1), CLAVE_EINVAL); /* it would be for ever */
    assert_int_equal(clave_latch_start(c), CLAVE_OK);
    assert_int_equal(clave_latch_await(c, -1), CLAVE_OK);
    clave_latch_free(c);
    clave_client_close(s, 5000);
}

struct awaiting {
    clave_latch *latch;
    clave_err err;
};

static void *await_leadership(void *arg)
{
    struct awaiting *w = arg;
    w->err = clave_latch_await(w->latch, -1);
    return NULL;
}

/* A cancelled wait keeps the place: when the leader goes, the candidate leads. */
TEST(a_cancelled_await_keeps_the_place)
{
    clave_client *s = rig_session(rig->connect), *t = rig_session(rig->connect);
    clave_latch *a = stand(s, "/cancel", NULL);
    assert_int_equal(clave_latch_await(a, -1), CLAVE_OK);
    clave_latch *b = enter_next(t, "/cancel");
    assert_true(deadline_held(by_latch(b)) == INT64_MIN);
    struct awaiting w[2] = {{.latch = b, .err = CLAVE_EINVAL}, {.latch = b, .err = CLAVE_EINVAL}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, await_leadership, &w[i]), 0);
    /* A cancel before the wait has begun ends nothing. */
    for (int i = 0; i < 2; i++)
        while (pthread_tryjoin_np(thread[i], NULL) != 0)
            clave_latch_cancel(b);
    assert_int_equal(w[0].err, CLAVE_ECANCELED);
    assert_int_equal(w[1].err, CLAVE_ECANCELED);
    assert_int_equal(clave_latch_close(a, CLAVE_CLOSE_SILENT, 5000), CLAVE_OK);
    assert_int_equal(clave_latch_await(b, RIG_PATIENCE_MS), CLAVE_OK);
    clave_latch_free(b);
    clave_latch_free(a);
    clave_client_close(t, 5000);
    clave_client_close(s, 5000);
}

TEST(leads_follows_and_leads_again)
{
    clave_client *s = rig_session(rig->connect), *t = rig_session(rig->connect);
    clave_latch *a = stand(s, "/turns", NULL);
    assert_int_equal(clave_latch_start(a), CLAVE_EINVAL);
    assert_int_equal(clave_latch_await(a, -1), CLAVE_OK);
    assert_true(held_for(by_latch(a), 1));
    assert_true(deadline_held(by_latch(a)) > clave_now());
    int64_t term = token_held(by_latch(a));
    assert_true(term > 0);
    clave_latch *b = enter_next(t, "/turns");
    assert_int_equal(clave_latch_await(b, 50), CLAVE_EBUSY);
    assert_false(clave_latch_has_leadership(b));
    assert_int_equal(token_held(by_latch(b)), 0);
    assert_int_equal(clave_latch_await_loss(b, -1), CLAVE_OK);
    assert_int_equal(clave_latch_await_loss(a, 20), CLAVE_EBUSY);
    assert_int_equal(clave_latch_resign(a), CLAVE_OK);
    assert_false(clave_latch_has_leadership(a)); /* at once */
    assert_int_equal(clave_latch_await(b, RIG_PATIENCE_MS), CLAVE_OK);
    assert_true(token_held(by_latch(b)) > term);
    assert_int_equal(clave_latch_close(b, CLAVE_CLOSE_SILENT, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_latch_await(b, -1), CLAVE_ECLOSED);
    assert_int_equal(clave_latch_await(a, RIG_PATIENCE_MS), CLAVE_OK);
    clave_latch_free(b);
    clave_latch_free(a);
    clave_client_close(s, 5000);
    clave_client_close(t, 5000);
}

/* ---- threads that wait ------------------------------------------------------------------ */

struct waiting {
    clave_latch *c;
    clave_err (*wait)(clave_latch *c, int64_t timeout_ms);
    clave_err err;
};

static void *wait_on(void *arg)
{
    struct waiting *w = arg;
    w->err = w->wait(w->c, RIG_PATIENCE_MS);
    return NULL;
}

/* The elections of programs written by hand, with the same calls. */
TEST(elementary_candidates_lead_in_turn)
{
    clave_client *s = rig_session(rig->connect), *t = rig_session(rig->connect);
    const clave_latch_options unfair = {.size = sizeof unfair, .layout = CLAVE_LATCH_UNFAIR};
    clave_latch_options in_line = {.size = sizeof in_line, .layout = CLAVE_LATCH_FAIR};
    clave_latch *none;
    in_line.prefix = "1";
    assert_int_equal(clave_latch_new(&none, s, "/fair", &in_line), CLAVE_EINVAL);
    assert_int_equal(clave_latch_new(&none, s, "/", &unfair), CLAVE_EPATH);
    in_line.prefix = "c_";
    for (int fair = 0; fair < 2; fair++) {
        clave_latch *c[2];
        for (int i = 0; i < 2; i++) {
            clave_client *mine = i ? t : s;
            assert_int_equal(fair ? clave_latch_new(&c[i], mine, "/fair", &in_line)
                                  : clave_latch_new(&c[i], mine, "/unfair", &unfair),
                             CLAVE_OK);
            assert_int_equal(clave_latch_start(c[i]), CLAVE_OK);
            assert_int_equal(clave_latch_await(c[i], i ? 20 : RIG_PATIENCE_MS),
                             i ? CLAVE_EBUSY : CLAVE_OK);
        }
        int64_t term = token_held(by_latch(c[0]));
        /* The one that resigns queues again; before the other where that one was not there yet, or
         * did not use the moment that it is left. */
        int64_t until = clave_now() + RIG_PATIENCE_MS;
        do
            assert_int_equal(clave_latch_resign(c[0]), CLAVE_OK);
        while (clave_latch_await(c[1], 1000) == CLAVE_EBUSY && clave_now() < until);
        assert_int_equal(clave_latch_await(c[1], 0), CLAVE_OK);
        assert_true(token_held(by_latch(c[1])) > term);
        clave_latch_free(c[0]);
        clave_latch_free(c[1]);
    }
    clave_client_close(s, 5000);
    clave_client_close(t, 5000);
}

TEST(a_close_wakes_who_waits)
{
    clave_client *s = rig_session(rig->connect);
    clave_latch *a = stand(s, "/wakes", NULL), *b = stand(s, "/wakes", NULL);
    struct waiting turn = {.c = b, .wait = clave_latch_await};
    struct waiting loss = {.c = a, .wait = clave_latch_await_loss};
    pthread_t threads[2];
    assert_int_equal(clave_latch_await(a, -1), CLAVE_OK);
    pthread_create(&threads[0], NULL, wait_on, &turn);
    pthread_create(&threads[1], NULL, wait_on, &loss);
    assert_int_equal(clave_latch_close(b, CLAVE_CLOSE_SILENT, -1), CLAVE_OK);
    pthread_join(threads[0], NULL);
    assert_int_equal(turn.err, CLAVE_ECLOSED);
    assert_int_equal(clave_latch_close(a, CLAVE_CLOSE_NOTIFY_LEADER, -1), CLAVE_OK);
    pthread_join(threads[1], NULL);
    assert_int_equal(loss.err, CLAVE_OK);
    clave_latch_free(a);
    clave_latch_free(b);
    clave_client_close(s, 5000);
}

/* Its hold deadline is far off: who looks at that alone does not hear of a loss in time. */
static clave_client *long_session(void)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = 60000};
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, rig->connect, &o), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
    return s;
}

/* Until so many threads are in calls that wait. */
static void await_inside(clave_client *s, unsigned threads)
{
    for (unsigned inside = 0; inside < threads;) {
        clave__loop_lock(s->loop);
        inside = s->inside;
        clave__loop_unlock(s->loop);
    }
}

/* Not the first of them alone, and the others when they look at the hold deadline. */
TEST(everybody_who_waits_hears_of_a_loss)
{
    enum { N = 3 };
    clave_client *s = long_session();
    clave_latch *a = stand(s, "/all", NULL);
    struct waiting loss[N];
    pthread_t threads[N];
    assert_int_equal(clave_latch_await(a, -1), CLAVE_OK);
    for (int i = 0; i < N; i++) {
        loss[i] = (struct waiting){.c = a, .wait = clave_latch_await_loss};
        pthread_create(&threads[i], NULL, wait_on, &loss[i]);
    }
    await_inside(s, N);
    int64_t began = clave_now();
    assert_int_equal(clave_latch_close(a, CLAVE_CLOSE_NOTIFY_LEADER, -1), CLAVE_OK);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(loss[i].err, CLAVE_OK);
    }
    assert_true(clave_now() - began < RIG_PATIENCE_MS / 2);
    clave_latch_free(a);
    clave_client_close(s, 5000);
}

static int standstill[2], caught[2];

static void on_signal_pause(int number)
{
    char go;
    (void)number;
    (void)!write(caught[1], "", 1);
    (void)!read(standstill[0], &go, 1);
}

/* The thread is not run until the candidate leads again: another term is the end of this one. */
TEST(the_next_term_is_not_taken_for_this_one)
{
    char seen;
    const struct sigaction still = {.sa_handler = on_signal_pause};
    clave_client *s = long_session();
    clave_latch *a = stand(s, "/terms", NULL);
    struct waiting loss = {.c = a, .wait = clave_latch_await_loss};
    pthread_t thread;
    assert_int_equal(pipe(standstill) + pipe(caught) + sigaction(SIGUSR1, &still, NULL), 0);
    assert_int_equal(clave_latch_await(a, -1), CLAVE_OK);
    pthread_create(&thread, NULL, wait_on, &loss);
    await_inside(s, 1);
    pthread_kill(thread, SIGUSR1);
    assert_int_equal(read(caught[0], &seen, 1), 1);
    assert_int_equal(clave_latch_resign(a), CLAVE_OK);
    assert_int_equal(clave_latch_await(a, RIG_PATIENCE_MS), CLAVE_OK);
    int64_t began = clave_now();
    assert_int_equal(write(standstill[1], "", 1), 1);
    pthread_join(thread, NULL);
    assert_int_equal(loss.err, CLAVE_OK);
    assert_true(clave_now() - began < RIG_PATIENCE_MS / 2);
    clave_latch_free(a);
    clave_client_close(s, 5000);
    for (int i = 0; i < 2; i++) {
        close(standstill[i]);
        close(caught[i]);
    }
}

/* No server any more: the loss is known by the own clock, before the session can have ended. */
TEST(a_loss_is_heard_without_a_server)
{
    struct rig *own = rig_start(rig_dir(), NULL);
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = 1000};
    clave_latch_options session_policy = {.size = sizeof session_policy,
                                          .policy = CLAVE_POLICY_SESSION};
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, own->connect, &o), CLAVE_OK);
    clave_latch *c = stand(s, "/lost", &session_policy);
    assert_int_equal(clave_latch_await(c, RIG_PATIENCE_MS), CLAVE_OK);
    assert_false(held_for(by_latch(c), o.session_timeout_ms));
    assert_int_equal(rig_stop(own), CLAVE_OK);
    int64_t began = clave_now();
    assert_int_equal(clave_latch_await_loss(c, RIG_PATIENCE_MS), CLAVE_OK);
    assert_true(clave_now() - began < RIG_PATIENCE_MS / 2);
    assert_false(held_for(by_latch(c), 0));
    clave_latch_free(c);
    clave_client_close(s, 0);
}

/* ---- what only the leader may do --------------------------------------------------------- */

TEST(a_leader_publishes_writes_and_hands_over)
{
    clave_client *s = rig_session(rig->connect), *t = rig_session(rig->connect);
    clave_latch *a = stand(s, "/work", NULL);
    clave_op make = {.kind = CLAVE_OP_CREATE, .path = "/done", .data = "", .len = 0};
    assert_int_equal(clave_latch_await(a, -1), CLAVE_OK);
    clave_latch *b = enter_next(t, "/work");
    assert_int_equal(clave_latch_await(b, 20), CLAVE_EBUSY);
    assert_int_equal(clave_latch_publish(b, "b", 1, 5000), CLAVE_ENOTHELD);
    assert_int_equal(multi_held(by_latch(b), &make, 1, 5000, NULL), CLAVE_ENOTHELD);
    assert_int_equal(clave_latch_publish(a, "a", 1, 5000), CLAVE_OK);
    assert_int_equal(multi_held(by_latch(a), &make, 1, 5000, NULL), CLAVE_OK);
    assert_int_equal(create_held(by_latch(b), "/led", "", 0, CLAVE_PERSISTENT, 5000, NULL),
                     CLAVE_ENOTHELD);
    assert_int_equal(create_held(by_latch(a), "/led", "", 0, CLAVE_PERSISTENT, 5000, NULL),
                     CLAVE_OK);
    assert_int_equal(set_held(by_latch(b), "/led", "x", 1, -1, 5000), CLAVE_ENOTHELD);
    assert_int_equal(set_held(by_latch(a), "/led", "x", 1, 0, 5000), CLAVE_OK);
    assert_int_equal(delete_held(by_latch(b), "/led", -1, 5000), CLAVE_ENOTHELD);
    assert_int_equal(delete_held(by_latch(a), "/led", 1, 5000), CLAVE_OK);
    assert_int_equal(clave_exists(s, "/led", 5000, NULL), CLAVE_ENONODE);
    clave_reply *names;
    assert_int_equal(clave_children(s, "/work", 5000, &names), CLAVE_OK);
    assert_int_equal(names->nnames, 2);
    const char *first = names->names[0], *second = names->names[1];
    bool in_order = strcmp(strrchr(first, '-'), strrchr(second, '-')) < 0;
    assert_int_equal(clave_latch_transfer(a, in_order ? second : first, 5000), CLAVE_OK);
    clave_reply_free(names);
    assert_int_equal(clave_latch_await(b, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_latch_transfer(b, "nobody", 5000), CLAVE_ENONODE);
    clave_latch_free(a);
    clave_latch_free(b);
    clave_client_close(s, 5000);
    clave_client_close(t, 5000);
}

/* ---- misuse ------------------------------------------------------------------------------ */

struct listening {
    clave_latch *c;
    atomic_int refused;
    atomic_int heard;
};

static void wait_inside(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct listening *x = arg;
    (void)l;
    if (ev->kind != CLAVE_LATCH_LEADER)
        return;
    atomic_store(&x->refused, clave_latch_await(x->c, -1) == CLAVE_ELOOPTHREAD &&
                                  clave_latch_await_loss(x->c, -1) == CLAVE_ELOOPTHREAD &&
                                  clave_latch_has_leadership(x->c));
    atomic_store(&x->heard, 1);
}

TEST(a_callback_may_not_wait)
{
    struct listening x = {0};
    clave_client *s = rig_session(rig->connect);
    clave_latch_options o = {.size = sizeof o, .event_cb = wait_inside, .event_arg = &x};
    assert_int_equal(clave_latch_new(&x.c, s, "/inside", &o), CLAVE_OK);
    assert_int_equal(clave_latch_start(x.c), CLAVE_OK);
    assert_int_equal(clave_latch_await(x.c, -1), CLAVE_OK);
    assert_int_equal(atomic_load(&x.heard), 1);
    assert_true(atomic_load(&x.refused));
    clave_latch_free(x.c);
    clave_client_close(s, 5000);
}

struct modest {
    clave_latch *c;
    clave_err started, resigned;
    atomic_int terms;
};

static void resign_inside(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct modest *x = arg;
    (void)l;
    if (ev->kind == CLAVE_LATCH_LEADER && atomic_fetch_add(&x->terms, 1) == 0)
        x->resigned = clave_latch_resign(x->c);
}

static void start_inside(clave_async_client *c, void *arg)
{
    struct modest *x = arg;
    (void)c;
    x->started = clave_latch_start(x->c);
}

/* What does not wait is for callbacks too: a leader that is asked to go says so there. */
TEST(a_callback_may_start_and_resign)
{
    clave_client *s = rig_session(rig->connect);
    struct modest x = {.resigned = CLAVE_EIO};
    clave_latch_options o = {.size = sizeof o, .event_cb = resign_inside, .event_arg = &x};
    assert_int_equal(clave_latch_new(&x.c, s, "/modest", &o), CLAVE_OK);
    assert_int_equal(clave_client_run(s, start_inside, &x), CLAVE_OK);
    assert_int_equal(x.started, CLAVE_OK);
    for (int i = 0; i < RIG_PATIENCE_MS && atomic_load(&x.terms) < 2; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&x.terms), 2);
    assert_int_equal(x.resigned, CLAVE_OK);
    clave_latch_free(x.c);
    clave_client_close(s, 5000);
}

TEST(what_cannot_be_is_refused)
{
    clave_latch *c;
    clave_client *s = rig_session(rig->connect);
    clave_latch_options old = {.max_term_ms = 1000}; /* without a size */
    assert_int_equal(clave_latch_new(&c, s, "relative", NULL), CLAVE_EPATH);
    assert_int_equal(clave_latch_new(&c, s, "/x", &old), CLAVE_EINVAL);
    assert_null(c);
    clave_latch_free(NULL);
    clave_client_close(s, 5000);
}

TEST_GROUP(rig_start_group, rig_stop_group)
