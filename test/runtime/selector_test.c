/* selector_test.c - leadership as a function call. The tests of Curator's acceptance list
 * (TestLeaderSelector and its kin) bear their names. */
#include "rig.h"

#include <limits.h>
#include <stdatomic.h>
#include <unistd.h>

#include "clave/selector.h"
#include "lib/grants.h"

/* One candidate: how often it has led, and what it saw then. */
struct candidate {
    bool brief; /* its session is so short that it may be over when it looks */
    clave_selector *s;
    clave_client *session;
    atomic_int *leading; /* of all; NULL: not counted */
    atomic_int faults;
    atomic_int terms;    /* begun */
    atomic_int returned; /* ended */
    atomic_llong token;
    int64_t lasts_ms; /* of a term; negative: until it is interrupted */
    bool writes;
};

/* Guarded by the leader's node, and done. */
static bool leader_writes(clave_selector *s)
{
    return create_held(by_selector(s), "/led", "", 0, CLAVE_PERSISTENT, 5000, NULL) == CLAVE_OK &&
           set_held(by_selector(s), "/led", "x", 1, 0, 5000) == CLAVE_OK &&
           delete_held(by_selector(s), "/led", 0, 5000) == CLAVE_EBADVERSION &&
           delete_held(by_selector(s), "/led", 1, 5000) == CLAVE_OK;
}

static void take(clave_selector *s, void *arg)
{
    struct candidate *c = arg;
    long long token = token_held(by_selector(s));
    bool leads = clave_selector_has_leadership(s) && deadline_held(by_selector(s)) > clave_now();
    bool fine = leads ? token > atomic_load(&c->token) : c->brief;
    if (c->writes && !leader_writes(s))
        fine = false;
    if (c->leading && atomic_fetch_add(c->leading, 1) != 0)
        fine = false;
    atomic_store(&c->token, token);
    atomic_fetch_add(&c->faults, !fine);
    atomic_fetch_add(&c->terms, 1);
    if (c->lasts_ms < 0)
        while (clave_selector_pause(s, 10000))
            continue;
    else
        (void)clave_selector_pause(s, c->lasts_ms);
    if (c->leading)
        atomic_fetch_sub(c->leading, 1);
    atomic_fetch_add(&c->returned, 1);
}

static void enter_with(struct candidate *c, clave_client *session, clave_selector_options o)
{
    c->session = session;
    o.size = sizeof o;
    o.take = take;
    o.take_arg = c;
    assert_int_equal(clave_selector_new(&c->s, session, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_selector_start(c->s), CLAVE_OK);
}

static bool within(atomic_int *what, int least)
{
    for (int i = 0; i < RIG_PATIENCE_MS && atomic_load(what) < least; i++)
        usleep(1000);
    return atomic_load(what) >= least;
}

static size_t children(clave_client *s, const char *path)
{
    clave_reply *r = NULL;
    clave_err err = clave_children(s, path, 5000, &r);
    size_t n = err == CLAVE_OK ? r->nnames : 0;
    clave_reply_free(r);
    return n;
}

static bool wait_for_candidates(clave_client *s, size_t n)
{
    for (int i = 0; i < RIG_PATIENCE_MS && children(s, "/e") != n; i++)
        usleep(1000);
    return children(s, "/e") == n;
}

/* ---- Curator's list -------------------------------------------------------------------- */

/* requeue gives everyone a turn, one at a time, and tokens grow. */
TEST(testRotatingLeadership)
{
    enum { N = 4, ROUNDS = 5 };
    struct candidate c[N] = {0};
    atomic_int leading = 0;
    clave_client *session = rig_session(rig->connect);
    for (size_t i = 0; i < N; i++) {
        c[i].leading = &leading;
        c[i].lasts_ms = 1;
        enter_with(&c[i], session, (clave_selector_options){0});
    }
    for (int round = 1; round <= ROUNDS; round++)
        for (size_t i = 0; i < N; i++) {
            assert_true(within(&c[i].returned, round));
            while (round < ROUNDS && clave_selector_requeue(c[i].s) == CLAVE_EBUSY)
                usleep(100);
        }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(atomic_load(&c[i].terms), ROUNDS);
        assert_int_equal(atomic_load(&c[i].faults), 0);
        clave_selector_free(c[i].s);
    }
    assert_true(wait_for_candidates(session, 0));
    clave_client_close(session, 5000);
}

TEST(testAutoRequeue)
{
    struct candidate c = {.lasts_ms = 0, .writes = true};
    clave_client *session = rig_session(rig->connect);
    enter_with(&c, session, (clave_selector_options){.auto_requeue = true});
    assert_true(within(&c.returned, 5));
    clave_selector_free(c.s);
    assert_int_equal(atomic_load(&c.faults), 0);
    assert_true(wait_for_candidates(session, 0));
    clave_client_close(session, 5000);
}

/* testInterruption (CURATOR-468), testInterruptLeadership: released cleanly, the other leads. */
TEST(testInterruptLeadership)
{
    struct candidate a = {.lasts_ms = -1}, b = {.lasts_ms = -1};
    clave_client *session = rig_session(rig->connect);
    enter_with(&a, session, (clave_selector_options){.id = "a"});
    assert_true(within(&a.terms, 1));
    assert_int_equal(clave_selector_start(a.s), CLAVE_EINVAL);
    assert_int_equal(clave_selector_requeue(a.s), CLAVE_EBUSY);
    enter_with(&b, session, (clave_selector_options){.id = "b"});
    assert_true(wait_for_candidates(session, 2));
    assert_int_equal(clave_selector_interrupt(b.s), CLAVE_ENOTHELD);
    assert_int_equal(clave_selector_interrupt(a.s), CLAVE_OK);
    assert_true(within(&b.terms, 1));
    assert_int_equal(atomic_load(&a.returned), 1);
    assert_false(clave_selector_has_leadership(a.s));
    assert_int_equal(token_held(by_selector(a.s)), 0);
    assert_true(wait_for_candidates(session, 1));
    clave_selector_free(a.s);
    clave_selector_free(b.s);
    assert_true(wait_for_candidates(session, 0));
    clave_client_close(session, 5000);
}

/* CURATOR-518: two interrupts in quick succession, and it goes on requeueing. */
TEST(testInterruptLeadershipWithRequeue)
{
    struct candidate c = {.lasts_ms = -1};
    clave_client *session = rig_session(rig->connect);
    enter_with(&c, session, (clave_selector_options){.auto_requeue = true});
    for (int i = 1; i <= 5; i++) {
        assert_true(within(&c.terms, i));
        (void)clave_selector_interrupt(c.s);
        (void)clave_selector_interrupt(c.s);
    }
    assert_true(within(&c.terms, 6));
    assert_int_equal(atomic_load(&c.faults), 0);
    clave_selector_free(c.s);
    clave_client_close(session, 5000);
}

/* testClosing: a leader that closes is interrupted, one that waits leaves the queue. */
TEST(testClosing)
{
    struct candidate a = {.lasts_ms = -1}, b = {.lasts_ms = -1};
    clave_client *session = rig_session(rig->connect);
    enter_with(&a, session, (clave_selector_options){0});
    assert_true(within(&a.terms, 1));
    enter_with(&b, session, (clave_selector_options){0});
    assert_true(wait_for_candidates(session, 2));
    clave_selector_close(b.s);
    assert_true(wait_for_candidates(session, 1));
    assert_int_equal(clave_selector_requeue(b.s), CLAVE_ECLOSED);
    clave_selector_close(a.s);
    assert_true(within(&a.returned, 1));
    assert_true(wait_for_candidates(session, 0));
    assert_int_equal(atomic_load(&b.terms), 0);
    clave_selector_free(a.s);
    clave_selector_free(b.s);
    /* And before it was ever started, or in the same moment. */
    for (int i = 0; i < 20; i++) {
        struct candidate c = {.lasts_ms = -1};
        enter_with(&c, session, (clave_selector_options){0});
        clave_selector_free(c.s);
        assert_int_equal(atomic_load(&c.terms), atomic_load(&c.returned));
    }
    clave_selector_options o = {.size = sizeof o, .take = take};
    assert_int_equal(clave_selector_new(&a.s, session, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_selector_requeue(a.s), CLAVE_EINVAL);
    clave_selector_free(a.s);
    o.take = NULL;
    assert_int_equal(clave_selector_new(&a.s, session, "/e", &o), CLAVE_EINVAL);
    assert_true(wait_for_candidates(session, 0)); /* what was cancelled goes in the background */
    clave_client_close(session, 5000);
}

/* ---- connections and sessions ------------------------------------------------------------ */

static clave_client *session_of(const char *connect, int32_t timeout_ms)
{
    clave_client *s;
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = timeout_ms};
    assert_int_equal(clave_client_open(&s, NULL, connect, &o), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
    return s;
}

/* testErrorPolicies, testServerDying: with the standard policy the loss of the connection ends
 * the function; with the session policy only the loss of the session does, by the own clock. */
TEST(testErrorPolicies)
{
    static const clave_latch_policy policies[] = {CLAVE_POLICY_STANDARD, CLAVE_POLICY_SESSION};
    static const int32_t timeouts_ms[] = {60000, 1000};
    for (size_t i = 0; i < 2; i++) {
        struct candidate c = {.lasts_ms = -1, .brief = i == 1};
        struct rig *server = rig_start(rig_dir(), NULL);
        clave_client *session = session_of(server->connect, timeouts_ms[i]);
        enter_with(&c, session, (clave_selector_options){.policy = policies[i]});
        assert_true(within(&c.terms, 1));
        int64_t until = deadline_held(by_selector(c.s));
        rig_stop(server);
        assert_true(within(&c.returned, 1));
        if (policies[i] == CLAVE_POLICY_STANDARD)
            assert_true(clave_now() <= until);
        assert_false(clave_selector_has_leadership(c.s));
        clave_selector_free(c.s);
        clave_client_close(session, 0);
    }
}

/* testLostRestart (CURATOR-671), testKillServerThenCloseShouldElectNewLeader: requeue works once
 * leadership was seen lost, whatever has happened to the session. */
TEST(testLostRestart)
{
    const char *data = rig_dir();
    const char *address = rig_unix();
    struct candidate c = {.lasts_ms = -1, .brief = true};
    struct rig *server = rig_start(data, address);
    clave_client *session = session_of(server->connect, 1000);
    enter_with(&c, session, (clave_selector_options){.policy = CLAVE_POLICY_SESSION});
    assert_true(within(&c.terms, 1));
    rig_stop(server);
    assert_true(within(&c.returned, 1));
    server = rig_start(data, address);
    while (clave_selector_requeue(c.s) == CLAVE_EBUSY)
        usleep(100);
    assert_true(within(&c.terms, 2));
    assert_int_equal(atomic_load(&c.faults), 0);
    clave_selector_free(c.s);
    clave_client_close(session, 5000);
    rig_stop(server);
}

/* A leader that is asked to release hears it as an interruption. */
static void revoke_first(clave_async_client *client, clave_err err, const clave_participant *list,
                         size_t n, void *arg)
{
    char path[256];
    (void)arg;
    if (err != CLAVE_OK || n == 0)
        return;
    snprintf(path, sizeof path, "/e/%s", list[0].node);
    (void)clave_async_revoke(client, path, NULL, NULL);
}

static void ask_for_it(clave_async_client *client, void *arg)
{
    (void)clave_async_participants(client, "/e", revoke_first, arg);
}

TEST(a_revocable_leader_is_interrupted_when_asked)
{
    struct candidate c = {.lasts_ms = -1};
    clave_client *session = rig_session(rig->connect);
    enter_with(&c, session, (clave_selector_options){.revocable = true});
    assert_true(within(&c.terms, 1));
    clave_client_run(session, ask_for_it, NULL);
    assert_true(within(&c.returned, 1));
    clave_selector_free(c.s);
    clave_client_close(session, 5000);
}

/* ---- an executor of the caller's --------------------------------------------------------- */

struct job {
    void (*run)(void *);
    void *arg;
};

static void *run_job(void *arg)
{
    struct job *j = arg;
    j->run(j->arg);
    free(j);
    return NULL;
}

static bool execute(void (*run)(void *), void *run_arg, void *arg)
{
    atomic_int *left = arg;
    pthread_t thread;
    struct job *j = malloc(sizeof *j);
    *j = (struct job){run, run_arg};
    if (atomic_fetch_sub(left, 1) <= 0 || pthread_create(&thread, NULL, run_job, j) != 0) {
        free(j);
        return false;
    }
    pthread_detach(thread);
    return true;
}

/* TestLeaderSelectorWithExecutor (CURATOR-51): one leader at a time, on the caller's threads. */
TEST(testWithExecutor)
{
    enum { N = 3 };
    struct candidate c[N] = {0};
    atomic_int leading = 0, left = INT_MAX; /* the first may lead often before the last stands */
    clave_client *session = rig_session(rig->connect);
    for (size_t i = 0; i < N; i++) {
        c[i].leading = &leading;
        c[i].lasts_ms = 1;
        enter_with(&c[i], session,
                   (clave_selector_options){
                       .auto_requeue = true, .execute = execute, .execute_arg = &left});
    }
    for (size_t i = 0; i < N; i++)
        assert_true(within(&c[i].returned, 5));
    for (size_t i = 0; i < N; i++) {
        clave_selector_free(c[i].s);
        assert_int_equal(atomic_load(&c[i].faults), 0);
    }
    assert_true(wait_for_candidates(session, 0));
    atomic_store(&left, 0);
    clave_selector_options o = {.size = sizeof o,
                                .take = take,
                                .take_arg = &c[0],
                                .execute = execute,
                                .execute_arg = &left};
    assert_int_equal(clave_selector_new(&c[0].s, session, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_selector_start(c[0].s), CLAVE_EIO);
    clave_selector_free(c[0].s);
    /* One that it refuses later stands no more, and says why. */
    struct candidate once = {0};
    atomic_store(&left, 1);
    enter_with(
        &once, session,
        (clave_selector_options){.auto_requeue = true, .execute = execute, .execute_arg = &left});
    for (int i = 0; i < RIG_PATIENCE_MS && clave_selector_error(once.s) == CLAVE_OK; i++)
        usleep(1000);
    assert_int_equal(clave_selector_error(once.s), CLAVE_EIO);
    clave_selector_free(once.s);
    clave_client_close(session, 5000);
}

struct onlooker {
    clave_selector *s;
    atomic_bool ends;
};

static void *look_on(void *arg)
{
    struct onlooker *o = arg;
    while (!atomic_load(&o->ends))
        (void)clave_selector_is_interrupted(o->s);
    return NULL;
}

/* A requeue that says it stands again does, at whichever moment of the task's end it comes. */
TEST(a_requeue_at_the_end_of_a_task)
{
    enum { TERMS = 300, LOOKERS = 3 };
    struct onlooker o = {.ends = false};
    pthread_t lookers[LOOKERS];
    struct candidate c = {0};
    atomic_int left = 2 * TERMS;
    clave_client *session = rig_session(rig->connect);
    enter_with(&c, session, (clave_selector_options){.execute = execute, .execute_arg = &left});
    o.s = c.s;
    for (size_t i = 0; i < LOOKERS; i++)
        assert_int_equal(pthread_create(&lookers[i], NULL, look_on, &o), 0);
    for (int i = 1; i < TERMS; i++) {
        clave_err err;
        assert_true(within(&c.terms, i));
        while (atomic_load(&c.returned) < i)
            continue;
        for (volatile int spin = 0; spin < i * 7919 % 20000; spin++)
            continue;
        while ((err = clave_selector_requeue(c.s)) == CLAVE_EBUSY)
            continue;
        assert_int_equal(err, CLAVE_OK);
    }
    assert_true(within(&c.terms, TERMS));
    atomic_store(&o.ends, true);
    for (size_t i = 0; i < LOOKERS; i++)
        pthread_join(lookers[i], NULL);
    clave_selector_free(c.s);
    clave_client_close(session, 5000);
}

TEST_GROUP(rig_start_group, rig_stop_group)
