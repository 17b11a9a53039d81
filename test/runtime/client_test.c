/* client_test.c - the blocking client against our own server, and against what is none. */
#include "rig.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clave/testserver.h"

/* ---- every call --------------------------------------------------------------------- */

static void assert_reply(clave_reply *r, const char *data, int32_t version)
{
    assert_non_null(r);
    assert_int_equal(r->len, strlen(data));
    assert_memory_equal(r->data, data, r->len);
    assert_true(r->has_stat);
    assert_int_equal(r->stat.version, version);
    clave_reply_free(r);
}

static void create_and_read(clave_client *s)
{
    clave_reply *r;
    clave_create_options seq = {.size = sizeof seq,
                                .mode = CLAVE_EPHEMERAL_SEQUENTIAL,
                                .flags = CLAVE_CREATE_PROTECTED,
                                .with_names = true};
    assert_int_equal(clave_create(s, "/a", "one", 3, NULL, 5000, &r), CLAVE_OK);
    assert_string_equal(r->path, "/a");
    clave_reply_free(r);
    assert_int_equal(clave_create(s, "/a", "", 0, NULL, 5000, &r), CLAVE_ENODEEXISTS);
    assert_null(r);
    assert_int_equal(clave_get(s, "/a", 5000, &r), CLAVE_OK);
    assert_reply(r, "one", 0);
    assert_int_equal(clave_set(s, "/a", "two!", 4, 0, 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_set(s, "/a", "x", 1, 0, 5000, NULL), CLAVE_EBADVERSION);
    assert_int_equal(clave_get(s, "/a", 5000, &r), CLAVE_OK);
    assert_reply(r, "two!", 1);
    assert_int_equal(clave_create(s, "/a/n-", "", 0, &seq, 5000, &r), CLAVE_OK);
    assert_non_null(strstr(r->path, "-n-0000000000"));
    assert_int_equal(r->nnames, 1);
    assert_string_equal(r->names[0], r->path + strlen("/a/"));
    clave_reply_free(r);
}

static void multi(clave_client *s)
{
    clave_op ops[] = {{.kind = CLAVE_OP_CREATE, .path = "/m", .data = "x", .len = 1},
                      {.kind = CLAVE_OP_CHECK, .path = "/nowhere", .version = -1},
                      {.kind = CLAVE_OP_DELETE, .path = "/m", .version = -1}};
    clave_reply *r;
    assert_int_equal(clave_multi(s, ops, 3, 5000, &r), CLAVE_ENONODE);
    assert_non_null(r);
    assert_int_equal(r->nops, 3);
    assert_int_equal(r->op_errs[0], CLAVE_OK);
    assert_int_equal(r->op_errs[1], CLAVE_ENONODE);
    clave_reply_free(r);
    ops[1].path = "/";
    assert_int_equal(clave_multi(s, ops, 3, 5000, &r), CLAVE_OK);
    assert_int_equal(r->nops, 3);
    clave_reply_free(r);
    assert_int_equal(clave_exists(s, "/m", 5000, NULL), CLAVE_ENONODE);
}

static void access_lists(clave_client *s)
{
    static const clave_acl list[] = {{CLAVE_PERM_READ | CLAVE_PERM_ADMIN, "world", "anyone"},
                                     {CLAVE_PERM_ALL, "ip", "10.0.0.0/8"}};
    static const clave_acl wrong = {CLAVE_PERM_ALL, "world", "nobody"};
    clave_reply *r;
    assert_int_equal(clave_create(s, "/acl", "", 0, NULL, 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_set_acl(s, "/acl", list, 2, 0, 5000, &r), CLAVE_OK);
    assert_int_equal(r->stat.aversion, 1);
    clave_reply_free(r);
    assert_int_equal(clave_get_acl(s, "/acl", 5000, &r), CLAVE_OK);
    assert_int_equal(r->nacls, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(r->acls[i].perms, list[i].perms);
        assert_string_equal(r->acls[i].scheme, list[i].scheme);
        assert_string_equal(r->acls[i].id, list[i].id);
    }
    assert_int_equal(r->stat.aversion, 1);
    clave_reply_free(r);
    assert_int_equal(clave_set_acl(s, "/acl", list, 1, 0, 5000, NULL), CLAVE_EBADVERSION);
    assert_int_equal(clave_set_acl(s, "/acl", &wrong, 1, -1, 5000, NULL), CLAVE_EINVALIDACL);
    assert_int_equal(clave_get_acl(s, "/none", 5000, &r), CLAVE_ENONODE);
    assert_null(r);
    assert_int_equal(clave_delete(s, "/acl", -1, 5000), CLAVE_OK);
}

static void every_call(const char *address)
{
    struct rig *rig = rig_start(rig_dir(), address);
    clave_client *s = rig_session(rig->connect);
    clave_reply *r;
    assert_int_equal(clave_client_state(s), CLAVE_STATE_CONNECTED);
    assert_int_not_equal(clave_client_id(s), 0);
    create_and_read(s);
    multi(s);
    access_lists(s);
    assert_int_equal(clave_children(s, "/", 5000, &r), CLAVE_OK);
    assert_int_equal(r->nnames, 2); /* /a and /zookeeper */
    clave_reply_free(r);
    assert_int_equal(clave_exists(s, "/a", 5000, &r), CLAVE_OK);
    assert_int_equal(r->stat.num_children, 1);
    clave_reply_free(r);
    assert_int_equal(clave_sync(s, "/", 5000), CLAVE_OK);
    assert_int_equal(clave_add_auth(s, "digest", "u:p", 3, 5000), CLAVE_OK);
    assert_int_equal(clave_delete(s, "/a", -1, 5000), CLAVE_ENOTEMPTY);
    assert_int_equal(clave_get(s, "a", 5000, NULL), CLAVE_EPATH);
    clave_client_close(s, 5000);
    assert_int_equal(rig_stop(rig), CLAVE_OK);
}

TEST(calls_over_tcp)
{
    every_call("127.0.0.1:0");
}

TEST(calls_over_ipv6)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0;
    close(fd);
    if (!has)
        skip();
    every_call("[::1]:0");
}

TEST(calls_over_unix)
{
    every_call(rig_unix());
}

TEST(a_name_is_resolved)
{
    struct rig *rig = rig_start(rig_dir(), "127.0.0.1:0");
    char connect[64];
    snprintf(connect, sizeof connect, "localhost%s", strrchr(rig->connect, ':'));
    clave_client_close(rig_session(connect), 5000);
    rig_stop(rig);
}

TEST(closing_ends_the_session_at_the_server)
{
    clave_create_options eph = {.size = sizeof eph, .mode = CLAVE_EPHEMERAL};
    struct rig *rig = rig_start(rig_dir(), NULL);
    clave_client *a = rig_session(rig->connect), *b = rig_session(rig->connect);
    assert_int_equal(clave_create(a, "/e", "", 0, &eph, 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_exists(b, "/e", 5000, NULL), CLAVE_OK);
    clave_client_close(a, 5000);
    assert_int_equal(clave_exists(b, "/e", 5000, NULL), CLAVE_ENONODE);
    clave_client_close(b, 5000);
    rig_stop(rig);
}

/* ---- peers that are none -------------------------------------------------------------- */

/* A socket that is bound, and listens when asked to; its port. */
static int open_port(bool listening, uint16_t *port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t n = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &n), 0);
    if (listening)
        assert_int_equal(listen(fd, 16), 0);
    *port = ntohs(addr.sin_port);
    return fd;
}

enum { SOON_MS = 8000 }; /* for a busy machine; what is not given up lasts longer */

static void assert_unreachable(const char *connect, const char *why)
{
    clave_client *s;
    char text[512];
    assert_int_equal(clave_client_open(&s, NULL, connect, NULL), CLAVE_OK);
    int64_t before = clave_now();
    assert_int_equal(clave_client_wait(s, 400), CLAVE_EUNREACHABLE);
    assert_in_range(clave_now() - before, 400, SOON_MS);
    /* A first attempt may take longer than that, where names are looked up far away. */
    while (!strstr(clave_client_errmsg(s, text, sizeof text), why) &&
           clave_now() - before < RIG_PATIENCE_MS)
        assert_int_equal(clave_client_wait(s, 100), CLAVE_EUNREACHABLE);
    if (!strstr(text, why))
        fail_msg("%s: '%s' does not say '%s'", connect, text, why);
    clave_client_close(s, 1000);
}

TEST(nobody_listens)
{
    uint16_t port;
    int fd = open_port(false, &port);
    char connect[64];
    snprintf(connect, sizeof connect, "127.0.0.1:%u", (unsigned)port);
    assert_unreachable(connect, "refused");
    assert_unreachable("unix:/nowhere/at/all", "no such file");
    close(fd);
}

TEST(a_name_that_does_not_exist)
{
    assert_unreachable("no-such-host.invalid:2181", "no-such-host.invalid");
}

static void *answer_http(void *arg)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    int listener = *(int *)arg, fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        ssize_t n = send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
        (void)n;
        close(fd);
    }
    return NULL;
}

TEST(a_peer_that_speaks_http)
{
    uint16_t port;
    pthread_t thread;
    char connect[64];
    int fd = open_port(true, &port);
    assert_int_equal(pthread_create(&thread, NULL, answer_http, &fd), 0);
    snprintf(connect, sizeof connect, "127.0.0.1:%u", (unsigned)port);
    assert_unreachable(connect, connect);
    shutdown(fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(fd);
}

TEST(a_list_that_makes_no_sense)
{
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, "host:port", NULL), CLAVE_EHOST);
    assert_null(s);
}

/* ---- time ---------------------------------------------------------------------------- */

/* The kernel accepts for a listener that never does: connected, and not a word. Calls that
 * were given up must leave nothing behind (ASan tells). */
TEST(calls_end_in_time)
{
    uint16_t port;
    clave_client *s;
    clave_reply *r;
    char connect[64];
    int fd = open_port(true, &port);
    snprintf(connect, sizeof connect, "127.0.0.1:%u", (unsigned)port);
    assert_int_equal(clave_client_open(&s, NULL, connect, NULL), CLAVE_OK);
    int64_t before = clave_now();
    assert_int_equal(clave_get(s, "/", 50, &r), CLAVE_ETIMEDOUT);
    assert_null(r);
    assert_int_equal(clave_create(s, "/x", "", 0, NULL, 0, &r), CLAVE_ETIMEDOUT);
    assert_int_equal(clave_client_wait(s, 0), CLAVE_EUNREACHABLE);
    clave_client_close(s, 50);
    assert_in_range(clave_now() - before, 50, SOON_MS);
    close(fd);
}

struct getter {
    clave_client *s;
    clave_err err;
};

static void *list_for_ever(void *arg)
{
    struct getter *g = arg;
    g->err = clave_children(g->s, "/", -1, NULL);
    return NULL;
}

TEST(closing_ends_waiting_calls)
{
    clave_test_fault silence = {.size = sizeof silence, .action = CLAVE_TEST_SILENCE};
    clave_test_server *server;
    pthread_t thread;
    silence.kind = CLAVE_TEST_CHILDREN;
    assert_int_equal(clave_test_server_new(&server, NULL), CLAVE_OK);
    assert_int_equal(clave_test_server_inject(server, &silence), CLAVE_OK);
    struct getter g = {.s = rig_session(clave_test_server_connect_string(server))};
    assert_int_equal(pthread_create(&thread, NULL, list_for_ever, &g), 0);
    assert_int_equal(clave_test_server_await_strikes(server, 1, RIG_PATIENCE_MS), CLAVE_OK);
    clave_client_close(g.s, 0);
    pthread_join(thread, NULL);
    assert_int_equal(g.err, CLAVE_ECLOSED);
    clave_test_server_free(server);
}

/* ---- threads ---------------------------------------------------------------------------- */

struct deadlock {
    clave_client *s;
    clave_err get, wait, run;
    clave_err post, set_hosts;
    const char *hosts;
};

static void do_nothing(clave_async_client *c, void *arg)
{
    (void)c;
    (void)arg;
}

static void block_on_the_loop(clave_async_client *c, void *arg)
{
    struct deadlock *d = arg;
    (void)c;
    d->get = clave_get(d->s, "/", 1000, NULL);
    d->wait = clave_client_wait(d->s, 1000);
    d->run = clave_client_run(d->s, do_nothing, NULL);
    d->post = clave_client_post(d->s, do_nothing, NULL);
    d->set_hosts = clave_client_set_hosts(d->s, d->hosts);
}

TEST(blocking_on_the_loop_is_refused)
{
    struct rig *rig = rig_start(rig_dir(), NULL);
    struct deadlock d = {.s = rig_session(rig->connect), .hosts = rig->connect};
    assert_int_equal(clave_client_run(d.s, block_on_the_loop, &d), CLAVE_OK);
    assert_int_equal(d.get, CLAVE_ELOOPTHREAD);
    assert_int_equal(d.wait, CLAVE_ELOOPTHREAD);
    assert_int_equal(d.run, CLAVE_ELOOPTHREAD);
    assert_int_equal(d.post, CLAVE_OK);
    assert_int_equal(d.set_hosts, CLAVE_OK); /* does not wait */
    clave_client_close(d.s, 5000);
    rig_stop(rig);
}

struct relay {
    clave_client *s;
    atomic_bool ends;
};

static void post_again(clave_async_client *c, void *arg)
{
    struct relay *r = arg;
    (void)c;
    if (!atomic_load(&r->ends))
        assert_int_equal(clave_client_post(r->s, post_again, r), CLAVE_OK);
}

/* What is posted without an end, by the loop's thread or by others, leaves time for the socket. */
TEST(posts_without_an_end)
{
    struct rig *rig = rig_start(rig_dir(), NULL);
    struct relay r = {.ends = false};
    assert_int_equal(clave_client_open(&r.s, NULL, rig->connect, NULL), CLAVE_OK);
    assert_int_equal(clave_client_post(r.s, post_again, &r), CLAVE_OK);
    assert_int_equal(clave_client_wait(r.s, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_create(r.s, "/a", "", 0, NULL, RIG_PATIENCE_MS, NULL), CLAVE_OK);
    atomic_store(&r.ends, true);
    clave_client_close(r.s, 5000); /* after the last */
    rig_stop(rig);
}

enum { THREADS = 4, SESSIONS = 3, EACH = 50 };

struct crowd {
    clave_client *sessions[SESSIONS];
    unsigned number;
};

static void *create_many(void *arg)
{
    struct crowd *c = arg;
    char path[64];
    for (unsigned i = 0; i < EACH; i++) {
        snprintf(path, sizeof path, "/t%u-%u", c->number, i);
        clave_err err = clave_create(c->sessions[i % SESSIONS], path, "", 0, NULL, 10000, NULL);
        if (err != CLAVE_OK)
            return (void *)(intptr_t)err;
    }
    return NULL;
}

TEST(threads_share_sessions_and_a_loop)
{
    struct rig *rig = rig_start(rig_dir(), NULL);
    clave_loop *loop;
    struct crowd crowds[THREADS];
    pthread_t threads[THREADS];
    clave_client *sessions[SESSIONS];
    clave_reply *r;
    assert_int_equal(clave_loop_new(&loop), CLAVE_OK);
    for (unsigned i = 0; i < SESSIONS; i++)
        assert_int_equal(clave_client_open(&sessions[i], loop, rig->connect, NULL), CLAVE_OK);
    for (unsigned i = 0; i < THREADS; i++) {
        crowds[i].number = i;
        memcpy(crowds[i].sessions, sessions, sizeof sessions);
        assert_int_equal(pthread_create(&threads[i], NULL, create_many, &crowds[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    assert_int_equal(clave_children(sessions[0], "/", 5000, &r), CLAVE_OK);
    assert_int_equal(r->nnames, THREADS * EACH + 1);
    clave_reply_free(r);
    for (unsigned i = 0; i < SESSIONS; i++)
        clave_client_close(sessions[i], 5000);
    clave_loop_free(loop);
    rig_stop(rig);
}

/* ---- a server that comes back ------------------------------------------------------------- */

struct states {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    unsigned seen[CLAVE_STATE_CLOSED + 1];
};

static void note_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct states *st = arg;
    (void)c;
    (void)why;
    pthread_mutex_lock(&st->mutex);
    st->seen[state]++;
    pthread_cond_broadcast(&st->cond);
    pthread_mutex_unlock(&st->mutex);
}

static void await_state(struct states *st, clave_state state, unsigned times)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RIG_PATIENCE_MS / 1000;
    pthread_mutex_lock(&st->mutex);
    while (st->seen[state] < times)
        assert_int_equal(pthread_cond_timedwait(&st->cond, &st->mutex, &until), 0);
    pthread_mutex_unlock(&st->mutex);
}

/* TestInterProcessSemaphoreCluster.testKilledServerWithEnsembleProvider: every server is another
 * one, at another address; the session goes on, and a waiter is served. */
TEST(every_server_may_be_replaced)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = 20000};
    clave_semaphore_options one = {.size = sizeof one, .limit = 1};
    const char *data = rig_dir();
    struct rig *rig = rig_start(data, NULL);
    clave_client *s;
    clave_semaphore *permits;
    clave_lease *mine, *next;
    assert_int_equal(clave_client_open(&s, NULL, rig->connect, &o), CLAVE_OK);
    assert_int_equal(clave_semaphore_new(&permits, s, "/s", &one), CLAVE_OK);
    assert_int_equal(clave_semaphore_acquire(permits, 1, 5000, &mine), CLAVE_OK);
    int64_t id = clave_client_id(s);
    assert_int_equal(rig_stop(rig), CLAVE_OK);
    rig = rig_start(data, rig_unix());
    assert_int_equal(clave_client_set_hosts(s, "nonsense:"), CLAVE_EHOST);
    assert_int_equal(clave_client_set_hosts(s, rig->connect), CLAVE_OK);
    assert_int_equal(clave_lease_release_confirmed(mine, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_semaphore_acquire(permits, 1, RIG_PATIENCE_MS, &next), CLAVE_OK);
    assert_true(clave_client_id(s) == id);
    assert_int_equal(clave_lease_release(next), CLAVE_OK);
    clave_semaphore_free(permits);
    clave_client_close(s, 5000);
    rig_stop(rig);
}

TEST(a_session_outlives_its_server)
{
    struct states st = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    clave_client_options o = {
        .size = sizeof o, .session_timeout_ms = 20000, .state_cb = note_state, .state_arg = &st};
    clave_create_options eph = {.size = sizeof eph, .mode = CLAVE_EPHEMERAL};
    const char *data = rig_dir(), *address = rig_unix();
    struct rig *rig = rig_start(data, address);
    clave_client *s;
    clave_reply *r;
    assert_int_equal(clave_client_open(&s, NULL, address, &o), CLAVE_OK);
    await_state(&st, CLAVE_STATE_CONNECTED, 1);
    int64_t id = clave_client_id(s);
    assert_int_equal(clave_create(s, "/e", "x", 1, &eph, 5000, NULL), CLAVE_OK);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(rig_stop(rig), CLAVE_OK);
        await_state(&st, CLAVE_STATE_SUSPENDED, i);
        rig = rig_start(data, address);
        await_state(&st, CLAVE_STATE_RECONNECTED, i);
        assert_int_equal(clave_get(s, "/e", 5000, &r), CLAVE_OK);
        assert_true(r->stat.ephemeral_owner == id);
        clave_reply_free(r);
    }
    assert_true(clave_client_id(s) == id);
    assert_int_equal(st.seen[CLAVE_STATE_LOST], 0);
    clave_client_close(s, 5000);
    rig_stop(rig);
}
