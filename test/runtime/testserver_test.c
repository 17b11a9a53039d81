/* testserver_test.c - the server for tests of others: its life, its sessions and time, and every
 * fault. */
#include "rig.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clave/testserver.h"

enum { SESSION_MS = 20000 }; /* nothing here waits for the end of one */

static clave_test_server *start(void)
{
    clave_test_server *t;
    assert_int_equal(clave_test_server_new(&t, NULL), CLAVE_OK);
    return t;
}

static clave_client *session_of(const clave_test_server *t)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = SESSION_MS};
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, clave_test_server_connect_string(t), &o), 0);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
    return s;
}

static clave_err create(clave_client *s, const char *path, clave_create_mode mode)
{
    clave_create_options o = {.size = sizeof o, .mode = mode};
    return clave_create(s, path, "x", 1, &o, RIG_PATIENCE_MS, NULL);
}

static clave_err exists(clave_client *s, const char *path)
{
    return clave_exists(s, path, RIG_PATIENCE_MS, NULL);
}

static clave_test_stats stats_of(clave_test_server *t)
{
    clave_test_stats st = {.size = sizeof st};
    assert_int_equal(clave_test_server_stats(t, &st), CLAVE_OK);
    return st;
}

/* The connection was cut. It may not have heard of that yet, and what it asks for then is lost; but
 * a read, which is asked for again, is answered on the next one. */
static void await_return(clave_client *s)
{
    assert_int_equal(exists(s, "/"), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
}

/* ---- life ----------------------------------------------------------------------------- */

TEST(it_comes_back_with_everything)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t);
    int64_t id = clave_client_id(s);
    char before[32];
    strcpy(before, clave_test_server_connect_string(t));
    for (int i = 0; i < 6; i++) {
        char path[16];
        snprintf(path, sizeof path, "/n%d", i);
        assert_int_equal(create(s, path, CLAVE_EPHEMERAL), CLAVE_OK);
        if (i % 3 == 0)
            assert_int_equal(clave_test_server_restart(t), CLAVE_OK);
        if (i % 3 == 1)
            assert_int_equal(clave_test_server_kill(t), CLAVE_OK);
        if (i % 3 == 2)
            assert_int_equal(clave_test_server_stop(t), CLAVE_OK);
        if (i % 3 != 0)
            assert_int_equal(clave_test_server_start(t), CLAVE_OK);
        assert_string_equal(clave_test_server_connect_string(t), before);
        await_return(s);
        assert_int_equal(exists(s, path), CLAVE_OK);
    }
    assert_true(clave_client_id(s) == id);
    assert_int_equal(stats_of(t).ephemerals, 6);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

TEST(a_stopped_one_says_so)
{
    char text[200];
    clave_test_server *t = start();
    assert_int_equal(clave_test_server_start(t), CLAVE_EINVAL);
    assert_int_equal(clave_test_server_stop(t), CLAVE_OK);
    assert_int_equal(clave_test_server_stop(t), CLAVE_ECLOSED);
    assert_int_equal(clave_test_server_kill(t), CLAVE_ECLOSED);
    assert_int_equal(clave_test_server_expire(t, 1), CLAVE_ECLOSED);
    assert_int_equal(clave_test_server_drop(t, 0), CLAVE_ECLOSED);
    assert_int_equal(clave_test_server_skip_time(t, 1), CLAVE_ECLOSED);
    clave_test_server_errmsg(t, text, sizeof text);
    assert_string_equal(text, "the server is not running");
    assert_int_equal(clave_test_server_heal(t), CLAVE_OK);
    assert_int_equal(stats_of(t).nodes, 0);
    clave_test_server_free(t);
    clave_test_server_free(NULL);
}

static void keep(void *arg, int level, const char *msg)
{
    if (level == CLAVE_LOG_ERROR)
        snprintf(arg, 512, "%s", msg);
}

TEST(what_it_cannot_use_is_named)
{
    char text[512] = "";
    clave_test_server *t = start(), *u;
    clave_test_server_options o = {.size = sizeof o, .log = keep, .log_arg = text};
    o.port = clave_test_server_port(t);
    assert_int_equal(clave_test_server_new(&u, &o), CLAVE_EINUSE);
    assert_null(u);
    assert_non_null(strstr(text, clave_test_server_connect_string(t)));
    o.port = 0;
    o.data_dir = clave_test_server_data_dir(t);
    assert_int_equal(clave_test_server_new(&u, &o), CLAVE_EINUSE);
    assert_non_null(strstr(text, "in use by process"));
    o.data_dir = "/dev/null/x";
    assert_int_equal(clave_test_server_new(&u, &o), CLAVE_EIO);
    o.data_dir = NULL;
    o.tick_ms = -1;
    assert_int_equal(clave_test_server_new(&u, &o), CLAVE_EINVAL);
    o.tick_ms = 0;
    o.size = 0;
    assert_int_equal(clave_test_server_new(&u, &o), CLAVE_EINVAL);
    /* The port of a stopped one is not given away. */
    clave_test_server_stop(t);
    o = (clave_test_server_options){.size = sizeof o};
    for (int i = 0; i < 50; i++) {
        assert_int_equal(clave_test_server_new(&u, &o), CLAVE_OK);
        assert_true(clave_test_server_port(u) != clave_test_server_port(t));
        clave_test_server_free(u);
    }
    assert_int_equal(clave_test_server_start(t), CLAVE_OK);
    clave_test_server_free(t);
}

TEST(only_its_own_directory_goes)
{
    char own[256];
    struct stat st;
    clave_test_server_options o = {.size = sizeof o, .data_dir = rig_path(rig_dir(), "mine")};
    clave_test_server *t = start();
    snprintf(own, sizeof own, "%s", clave_test_server_data_dir(t));
    assert_int_equal(stat(own, &st), 0);
    clave_test_server_free(t);
    assert_int_not_equal(stat(own, &st), 0);
    assert_int_equal(clave_test_server_new(&t, &o), CLAVE_OK);
    clave_client *s = session_of(t);
    assert_int_equal(create(s, "/kept", CLAVE_PERSISTENT), CLAVE_OK);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_test_server_free(t);
    assert_int_equal(clave_test_server_new(&t, &o), CLAVE_OK);
    s = session_of(t);
    assert_int_equal(exists(s, "/kept"), CLAVE_OK);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_test_server_free(t);
    assert_int_equal(stat(o.data_dir, &st), 0);
}

/* From the server's own thread: it would wait for itself. */
struct caller {
    _Atomic(clave_test_server *) t;
    atomic_int answers[3];
    atomic_bool called;
};

static void call_from_log(void *arg, int level, const char *msg)
{
    struct caller *c = arg;
    clave_test_server *t = atomic_load(&c->t);
    (void)level;
    if (!t || !strstr(msg, "has expired"))
        return;
    clave_test_stats st = {.size = sizeof st};
    atomic_store(&c->answers[0], clave_test_server_stats(t, &st));
    atomic_store(&c->answers[1], clave_test_server_stop(t));
    atomic_store(&c->answers[2], clave_test_server_await_strikes(t, 1, -1));
    atomic_store(&c->called, true);
}

TEST(a_call_from_its_own_thread)
{
    struct caller c = {.t = NULL};
    clave_test_server *t;
    clave_test_server_options o = {.size = sizeof o, .log = call_from_log, .log_arg = &c};
    assert_int_equal(clave_test_server_new(&t, &o), CLAVE_OK);
    clave_client *s = session_of(t);
    atomic_store(&c.t, t);
    assert_int_equal(clave_test_server_expire(t, clave_client_id(s)), CLAVE_OK);
    assert_true(atomic_load(&c.called));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&c.answers[i]), CLAVE_ELOOPTHREAD);
    atomic_store(&c.t, NULL);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

/* ---- sessions and time ------------------------------------------------------------------ */

TEST(an_expired_session_loses_its_nodes)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t), *other = session_of(t);
    int64_t id = clave_client_id(s);
    assert_int_equal(create(s, "/e", CLAVE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(clave_test_server_expire(t, id), CLAVE_OK);
    assert_int_equal(exists(other, "/e"), CLAVE_ENONODE);
    assert_int_equal(clave_test_server_expire(t, id), CLAVE_EUNKNOWNSESSION);
    while (clave_client_id(s) == id || exists(s, "/") != CLAVE_OK)
        sched_yield();
    assert_int_equal(exists(s, "/e"), CLAVE_ENONODE);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_client_close(other, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

TEST(a_dropped_connection_comes_back)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t);
    int64_t id = clave_client_id(s);
    assert_int_equal(create(s, "/e", CLAVE_EPHEMERAL), CLAVE_OK);
    for (int i = 0; i < 2; i++) {
        uint64_t before = stats_of(t).requests[CLAVE_TEST_CONNECT];
        assert_int_equal(clave_test_server_drop(t, i == 0 ? id : 0), CLAVE_OK);
        while (stats_of(t).requests[CLAVE_TEST_CONNECT] == before)
            sched_yield();
        while (exists(s, "/e") != CLAVE_OK)
            sched_yield();
        assert_true(clave_client_id(s) == id);
    }
    assert_int_equal(clave_test_server_drop(t, 4711), CLAVE_EUNKNOWNSESSION);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

TEST(time_that_is_skipped_has_passed)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t);
    int64_t id = clave_client_id(s);
    assert_int_equal(create(s, "/e", CLAVE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(clave_test_server_skip_time(t, -1), CLAVE_EINVAL);
    assert_int_equal(clave_test_server_skip_time(t, 0), CLAVE_OK);
    assert_int_equal(stats_of(t).ephemerals, 1);
    assert_int_equal(clave_test_server_skip_time(t, SESSION_MS + 200), CLAVE_OK);
    assert_int_equal(stats_of(t).ephemerals, 0);
    while (clave_client_id(s) == id || exists(s, "/") != CLAVE_OK)
        sched_yield();
    /* It goes on from there, also over a restart. */
    assert_int_equal(clave_test_server_restart(t), CLAVE_OK);
    await_return(s);
    clave_reply *r = NULL;
    assert_int_equal(create(s, "/late", CLAVE_PERSISTENT), CLAVE_OK);
    assert_int_equal(clave_exists(s, "/late", RIG_PATIENCE_MS, &r), CLAVE_OK);
    assert_true(r->stat.ctime > (int64_t)time(NULL) * 1000 + SESSION_MS / 2);
    clave_reply_free(r);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* What a create comes to, and whether its node is there. */
static const struct {
    clave_test_action action;
    size_t bytes;
    clave_err comes_to;
    clave_err node;
} fates[] = {
    {CLAVE_TEST_LOSE_REQUEST, 0, CLAVE_ECONNLOSS, CLAVE_ENONODE},
    {CLAVE_TEST_LOSE_REPLY, 0, CLAVE_ECONNLOSS, CLAVE_OK},
    {CLAVE_TEST_CUT_REPLY, 0, CLAVE_ECONNLOSS, CLAVE_OK},
    {CLAVE_TEST_CUT_REPLY, 3, CLAVE_ECONNLOSS, CLAVE_OK},
    {CLAVE_TEST_CUT_REPLY, 19, CLAVE_ECONNLOSS, CLAVE_OK},
    {CLAVE_TEST_CUT_REPLY, 100000, CLAVE_ECONNLOSS, CLAVE_OK},
    {CLAVE_TEST_DELAY_REPLY, 0, CLAVE_OK, CLAVE_OK},
};

TEST(the_fates_of_a_request)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t), *other = session_of(t);
    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        char path[16];
        clave_test_fault f = {.size = sizeof f, .times = 1, .after = 1, .bytes = fates[i].bytes};
        f.action = fates[i].action;
        f.kind = CLAVE_TEST_CREATE;
        f.session = clave_client_id(s);
        f.delay_ms = 50;
        uint64_t before = stats_of(t).strikes;
        snprintf(path, sizeof path, "/f%zu", i);
        assert_int_equal(clave_test_server_inject(t, &f), CLAVE_OK);
        assert_int_equal(exists(s, path), CLAVE_ENONODE); /* another kind */
        snprintf(path, sizeof path, "/a%zu", i);
        assert_int_equal(create(other, path, CLAVE_PERSISTENT), CLAVE_OK); /* another session */
        snprintf(path, sizeof path, "/b%zu", i);
        assert_int_equal(create(s, path, CLAVE_PERSISTENT), CLAVE_OK); /* the first passes */
        assert_true(stats_of(t).strikes == before);
        int64_t begin = clave_now();
        snprintf(path, sizeof path, "/f%zu", i);
        clave_err err = create(s, path, CLAVE_EPHEMERAL);
        assert_int_equal(err, fates[i].comes_to);
        assert_int_equal(clave_test_server_await_strikes(t, before + 1, 0), CLAVE_OK);
        assert_int_equal(exists(other, path), fates[i].node);
        if (f.action == CLAVE_TEST_DELAY_REPLY)
            assert_true(clave_now() - begin >= f.delay_ms - 2);
        assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
        snprintf(path, sizeof path, "/c%zu", i);
        assert_int_equal(create(s, path, CLAVE_PERSISTENT), CLAVE_OK); /* it struck once */
        assert_true(clave_client_id(s) == f.session);
    }
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_client_close(other, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

TEST(a_silent_server_is_heard_again)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t), *other = session_of(t);
    clave_test_fault f = {.size = sizeof f, .action = CLAVE_TEST_SILENCE};
    f.session = clave_client_id(s);
    assert_int_equal(clave_test_server_inject(t, &f), CLAVE_OK);
    do /* what its thread did not come to in that time was never asked for */
        assert_int_equal(clave_create(s, "/x", "", 0, NULL, 20, NULL), CLAVE_ETIMEDOUT);
    while (stats_of(t).requests[CLAVE_TEST_CREATE] == 0);
    assert_int_equal(exists(other, "/x"), CLAVE_OK);
    assert_int_equal(clave_test_server_heal(t), CLAVE_OK);
    assert_int_equal(create(s, "/x", CLAVE_PERSISTENT), CLAVE_ENODEEXISTS);
    assert_int_equal(stats_of(t).requests[CLAVE_TEST_CONNECT], 2); /* the same connection */
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_client_close(other, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

TEST(a_server_that_does_not_greet)
{
    static const clave_test_action actions[] = {CLAVE_TEST_SILENCE, CLAVE_TEST_LOSE_REQUEST,
                                                CLAVE_TEST_LOSE_REPLY};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        clave_test_server *t = start();
        clave_client *s;
        clave_test_fault f = {.size = sizeof f, .action = actions[i], .kind = CLAVE_TEST_CONNECT};
        assert_int_equal(clave_test_server_inject(t, &f), CLAVE_OK);
        assert_int_equal(clave_client_open(&s, NULL, clave_test_server_connect_string(t), NULL), 0);
        assert_int_equal(clave_test_server_await_strikes(t, 1, RIG_PATIENCE_MS), CLAVE_OK);
        assert_int_equal(clave_client_wait(s, 20), CLAVE_EUNREACHABLE);
        clave_test_stats st = stats_of(t);
        assert_true(st.requests[CLAVE_TEST_CONNECT] >= 1);
        assert_int_equal(st.sessions > 0, actions[i] != CLAVE_TEST_LOSE_REQUEST);
        assert_int_equal(clave_test_server_heal(t), CLAVE_OK);
        assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
        clave_client_close(s, RIG_PATIENCE_MS);
        clave_test_server_free(t);
    }
}

/* A watch on /w, and whether its event has come. */
struct sentry {
    clave_async_watch *watch;
    atomic_bool told;
};

static void on_event(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    struct sentry *y = arg;
    (void)c;
    (void)w;
    if (ev->type == CLAVE_EVENT_CREATED)
        atomic_store(&y->told, true);
}

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)res;
    (void)arg;
}

static void set_watch(clave_async_client *c, void *arg)
{
    struct sentry *y = arg;
    assert_int_equal(clave_async_watch_new(&y->watch, c, on_event, y), CLAVE_OK);
    assert_int_equal(clave_async_exists(c, "/w", y->watch, on_result, NULL), CLAVE_OK);
}

static void free_watch(clave_async_client *c, void *arg)
{
    (void)c;
    clave_async_watch_free(((struct sentry *)arg)->watch);
}

/* The event is lost with its connection, and told when the watch is set again. */
TEST(a_lost_event_is_told_again)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t), *other = session_of(t);
    clave_test_fault f = {.size = sizeof f, .action = CLAVE_TEST_LOSE_REPLY, .times = 1};
    struct sentry y = {.told = false};
    f.kind = CLAVE_TEST_EVENT;
    assert_int_equal(clave_client_run(s, set_watch, &y), CLAVE_OK);
    while (stats_of(t).watches == 0)
        sched_yield();
    assert_int_equal(clave_test_server_inject(t, &f), CLAVE_OK);
    assert_int_equal(create(other, "/w", CLAVE_PERSISTENT), CLAVE_OK);
    assert_int_equal(clave_test_server_await_strikes(t, 1, RIG_PATIENCE_MS), CLAVE_OK);
    while (!atomic_load(&y.told))
        sched_yield();
    assert_int_equal(clave_client_run(s, free_watch, &y), CLAVE_OK);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_client_close(other, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}

TEST(faults_that_make_no_sense)
{
    static const clave_test_fault bad[] = {
        {.size = 1},
        {.size = 0},
        {.size = sizeof(clave_test_fault), .action = (clave_test_action)(CLAVE_TEST_SILENCE + 1)},
        {.size = sizeof(clave_test_fault), .kind = CLAVE_TEST_KINDS},
        {.size = sizeof(clave_test_fault), .delay_ms = -1},
        {.size = sizeof(clave_test_fault), .kind = CLAVE_TEST_EVENT},
    };
    clave_test_stats st = {.size = 1};
    clave_test_server *t = start();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(clave_test_server_inject(t, &bad[i]), CLAVE_EINVAL);
    assert_int_equal(clave_test_server_stats(t, &st), CLAVE_EINVAL);
    assert_int_equal(clave_test_server_await_strikes(t, 1, 10), CLAVE_ETIMEDOUT);
    clave_test_server_free(t);
}

TEST(what_was_asked_is_counted)
{
    static const clave_test_kind once[] = {CLAVE_TEST_CREATE,   CLAVE_TEST_SET,  CLAVE_TEST_GET,
                                           CLAVE_TEST_CHILDREN, CLAVE_TEST_SYNC, CLAVE_TEST_DELETE,
                                           CLAVE_TEST_EXISTS,   CLAVE_TEST_CLOSE};
    clave_test_server *t = start();
    clave_client *s = session_of(t);
    assert_int_equal(clave_sync(s, "/", RIG_PATIENCE_MS), CLAVE_OK);
    clave_test_stats before = stats_of(t), after; /* a client asks a thing or two by itself */
    assert_int_equal(before.requests[CLAVE_TEST_CONNECT], 1);
    assert_int_equal(create(s, "/a", CLAVE_PERSISTENT), CLAVE_OK);
    assert_int_equal(clave_set(s, "/a", "y", 1, -1, RIG_PATIENCE_MS, NULL), CLAVE_OK);
    assert_int_equal(clave_get(s, "/a", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    assert_int_equal(clave_children(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    assert_int_equal(clave_sync(s, "/", RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_delete(s, "/a", -1, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(exists(s, "/a"), CLAVE_ENONODE);
    clave_client_close(s, RIG_PATIENCE_MS);
    after = stats_of(t);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        assert_int_equal(after.requests[once[i]], before.requests[once[i]] + 1);
    assert_int_equal(after.requests[CLAVE_TEST_ANY] - after.requests[CLAVE_TEST_PING],
                     before.requests[CLAVE_TEST_ANY] - before.requests[CLAVE_TEST_PING] + 8);
    assert_int_equal(after.sessions, 0);
    assert_true(after.zxid > before.zxid);
    assert_int_equal(clave_test_server_stop(t), CLAVE_OK);
    assert_int_equal(stats_of(t).requests[CLAVE_TEST_CREATE], 1);
    clave_test_server_free(t);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void *tease(void *arg)
{
    clave_test_server *t = arg;
    clave_test_fault f = {.size = sizeof f, .action = CLAVE_TEST_DELAY_REPLY, .delay_ms = 1};
    f.times = 3;
    for (int i = 0; i < 40; i++) {
        clave_test_server_drop(t, 0);
        clave_test_server_inject(t, &f);
        clave_test_server_skip_time(t, 1);
        stats_of(t);
        if (i % 10 == 9)
            clave_test_server_restart(t);
        clave_test_server_heal(t);
    }
    return NULL;
}

TEST(many_threads)
{
    clave_test_server *t = start();
    clave_client *s = session_of(t);
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tease, t), 0);
    for (int i = 0; i < 50; i++)
        create(s, "/x", CLAVE_PERSISTENT);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
    clave_client_close(s, RIG_PATIENCE_MS);
    clave_test_server_free(t);
}
