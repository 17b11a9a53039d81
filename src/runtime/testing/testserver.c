/* testserver.c - a server for tests (clave/testserver.h): a complete server on a thread of its own
 * in this process. From any thread it can be told to expire and disconnect sessions, skip time,
 * stop, be killed, and mistreat its messages in the ways of fault_injector.h.
 *
 * A stopped server keeps its port, with a socket that is bound but never listens, and its
 * directory. One call runs at a time; what touches the server is run on its thread, between two
 * turns of its loop, while the caller waits. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/sized_options.h"
#include "clave/testserver.h"
#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/server/server_run_internal.h"
#include "runtime/testing/fault_injector.h"
#include "runtime/thread_start.h"
#include "server/connection/conn.h"
#include "server/request/request.h"

struct order; /* a call to be run on the server's thread */

struct clave_test_server {
    clave_log_cb *log;
    void *log_arg;
    struct server_options engine;
    char dir[PATH_MAX];
    bool owns_dir;
    int reserve; /* bound to the port but never listening, which keeps it ours */
    uint16_t port;
    char connect[32];

    pthread_mutex_t calls;  /* held during a call; the mutex below is taken inside it */
    struct server_run *run; /* NULL: stopped */
    int64_t ahead_ms;       /* only while it is stopped; otherwise the run has it */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t turned;
    bool serving;
    pthread_t thread; /* the server's thread, while there is a run */
    struct order *order;
    clave_err end; /* how the loop ended */
    uint64_t strikes;
    char fault[512];

    /* Belongs to the server's thread while it serves, otherwise to the calling thread. */
    struct fault_injectors fault_injectors;
    uv_async_t wake;
    uv_timer_t release; /* for delayed messages */
    uv_prepare_t prepare;
};

/* ---- calls: running something on the server's thread ----------------------------------------- */

/* A call, run on the server's thread. */
struct order {
    clave_err (*fn)(clave_test_server *t, void *arg);
    void *arg;
    clave_err err;
};

__attribute__((format(printf, 3, 4))) static clave_err
testserver_fault(clave_test_server *t, clave_err err, const char *fmt, ...)
{
    char text[sizeof t->fault];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&t->mutex);
    memcpy(t->fault, text, sizeof text);
    pthread_mutex_unlock(&t->mutex);
    if (t->log)
        t->log(t->log_arg, CLAVE_LOG_ERROR, text);
    return err;
}

const char *clave_test_server_errmsg(clave_test_server *t, char *buf, size_t cap)
{
    pthread_mutex_lock(&t->mutex);
    snprintf(buf, cap, "%s", t->fault);
    pthread_mutex_unlock(&t->mutex);
    return buf;
}

static clave_err testserver_enter(clave_test_server *t)
{
    pthread_mutex_lock(&t->mutex);
    bool own = t->serving && clave__run_is_current(t->run);
    pthread_mutex_unlock(&t->mutex);
    return own || pthread_mutex_lock(&t->calls) != 0 ? CLAVE_ELOOPTHREAD : CLAVE_OK;
}

static clave_err testserver_leave(clave_test_server *t, clave_err err)
{
    pthread_mutex_unlock(&t->calls);
    return err;
}

static clave_err testserver_order(clave_test_server *t,
                                  clave_err (*fn)(clave_test_server *, void *), void *arg)
{
    struct order o = {.fn = fn, .arg = arg, .err = CLAVE_ECLOSED};
    pthread_mutex_lock(&t->mutex);
    if (t->serving) {
        assert(!t->order); /* there is one call at a time */
        t->order = &o;
        uv_async_send(&t->wake);
        while (t->order)
            pthread_cond_wait(&t->turned, &t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
    return o.err;
}

static clave_err testserver_call(clave_test_server *t, clave_err (*fn)(clave_test_server *, void *),
                                 void *arg)
{
    clave_err err = testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    err = testserver_order(t, fn, arg);
    if (err == CLAVE_ECLOSED)
        testserver_fault(t, err, "the server is not running");
    return testserver_leave(t, err);
}

static clave_err testserver_call_anyhow(clave_test_server *t,
                                        clave_err (*fn)(clave_test_server *, void *), void *arg)
{
    clave_err err = testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    err = testserver_order(t, fn, arg);
    return testserver_leave(t, err == CLAVE_ECLOSED ? fn(t, arg) : err);
}

static void testserver_on_wake(uv_async_t *a)
{
    clave_test_server *t = a->data;
    pthread_mutex_lock(&t->mutex);
    struct order *o = t->order;
    pthread_mutex_unlock(&t->mutex);
    if (!o)
        return;
    clave__run_tick(t->run);
    o->err = o->fn(t, o->arg);
    clave__run_pump(t->run);
    pthread_mutex_lock(&t->mutex);
    t->order = NULL;
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->mutex);
}

static void testserver_init_calls(clave_test_server *t)
{
    uv_async_init(&t->run->loop, &t->wake, testserver_on_wake);
    t->wake.data = t;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void testserver_serve_fault_injectors(clave_test_server *t)
{
    struct list *e = t->fault_injectors.injectors.next;
    clave__run_tick(t->run);
    while (e != &t->fault_injectors.injectors) {
        const struct fault_injector *inj = LIST_ENTRY(e, struct fault_injector, link);
        e = e->next; /* the connection may close */
        clave__conn_serve(inj->engine);
    }
    clave__run_pump(t->run);
}

static void testserver_on_release(uv_timer_t *timer)
{
    testserver_serve_fault_injectors(timer->data);
}

/* Called before the loop waits. */
static void testserver_on_prepare(uv_prepare_t *p)
{
    clave_test_server *t = p->data;
    int64_t at = clave__fault_injectors_deadline(&t->fault_injectors), left = at - clave_now();
    if (at == INT64_MAX)
        uv_timer_stop(&t->release);
    else
        uv_timer_start(&t->release, testserver_on_release, left > 0 ? (uint64_t)left : 0, 0);
}

static void testserver_on_strike(struct fault_injectors *all)
{
    clave_test_server *t = LIST_ENTRY(all, clave_test_server, fault_injectors);
    pthread_mutex_lock(&t->mutex);
    t->strikes = all->strikes;
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->mutex);
}

static bool testserver_add_filter(void *arg, struct channel *ch, struct server_conn *engine)
{
    clave_test_server *t = arg;
    return clave__fault_injector_add(&t->fault_injectors, ch, engine) == CLAVE_OK;
}

static clave_err testserver_inject(clave_test_server *t, void *arg)
{
    return clave__fault_injectors_inject(&t->fault_injectors, arg);
}

clave_err clave_test_server_inject(clave_test_server *t, const clave_test_fault *given)
{
    clave_test_fault f;
    if (!given || clave__options_take(&f, sizeof f, given) != CLAVE_OK)
        return CLAVE_EINVAL;
    if ((unsigned)f.action > CLAVE_TEST_SILENCE || (unsigned)f.kind >= CLAVE_TEST_KINDS ||
        f.delay_ms < 0 || (f.action == CLAVE_TEST_LOSE_REQUEST && f.kind == CLAVE_TEST_EVENT))
        return CLAVE_EINVAL;
    return testserver_call_anyhow(t, testserver_inject, &f);
}

static clave_err testserver_heal(clave_test_server *t, void *arg)
{
    (void)arg;
    clave__fault_injectors_heal(&t->fault_injectors);
    if (t->run && t->serving)
        testserver_serve_fault_injectors(t);
    return CLAVE_OK;
}

clave_err clave_test_server_heal(clave_test_server *t)
{
    return testserver_call_anyhow(t, testserver_heal, NULL);
}

clave_err clave_test_server_await_strikes(clave_test_server *t, uint64_t strikes,
                                          int64_t timeout_ms)
{
    clave_err err = CLAVE_OK;
    struct timespec until = clave__clock_after(timeout_ms);
    pthread_mutex_lock(&t->mutex);
    if (t->serving && clave__run_is_current(t->run))
        err = CLAVE_ELOOPTHREAD;
    while (err == CLAVE_OK && t->strikes < strikes) {
        int rc = timeout_ms < 0 ? pthread_cond_wait(&t->turned, &t->mutex)
                                : pthread_cond_timedwait(&t->turned, &t->mutex, &until);
        if (rc == ETIMEDOUT && t->strikes < strikes)
            err = CLAVE_ETIMEDOUT;
    }
    pthread_mutex_unlock(&t->mutex);
    return err;
}

static void testserver_init_faults(clave_test_server *t)
{
    struct server_run *r = t->run;
    r->add_filter = testserver_add_filter;
    r->filter_arg = t;
    t->fault_injectors.on_strike = testserver_on_strike;
    uv_timer_init(&r->loop, &t->release);
    uv_prepare_init(&r->loop, &t->prepare);
    uv_prepare_start(&t->prepare, testserver_on_prepare);
    t->release.data = t->prepare.data = t;
}

/* ---- its server: started, stopped, killed ---------------------------------------------------- */

static void *testserver_serve(void *arg)
{
    clave_test_server *t = arg;
    char text[sizeof t->fault] = "";
    clave_err err = clave__server_run_loop(t->run, text, sizeof text);
    if (err != CLAVE_OK)
        testserver_fault(t, err, "%s", text);
    pthread_mutex_lock(&t->mutex);
    t->serving = false;
    t->end = err;
    t->order = NULL; /* answered with ECLOSED */
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

static void testserver_install(clave_test_server *t)
{
    t->run->ahead_ms = t->ahead_ms;
    /* their handles were closed with the loop */
    testserver_init_calls(t);
    testserver_init_faults(t);
}

static bool testserver_start_thread(clave_test_server *t)
{
    pthread_mutex_lock(&t->mutex);
    bool started = clave__thread_start(&t->thread, "clave-server", testserver_serve, t) == 0;
    t->serving = started;
    pthread_mutex_unlock(&t->mutex);
    return started;
}

static clave_err testserver_start(clave_test_server *t)
{
    const char *listen = t->connect;
    char text[sizeof t->fault] = "";
    struct server_run_options o = {
        .data_dir = t->dir,
        .listen = &listen,
        .nlisten = 1,
        .engine = t->engine,
        .max_per_address = -1,
    };
    clave_err err = clave__server_run_new(&t->run, &o, text, sizeof text);
    if (err != CLAVE_OK)
        return testserver_fault(t, err, "%s", text);
    testserver_install(t);
    if (testserver_start_thread(t))
        return CLAVE_OK;
    clave__server_run_free(t->run);
    t->run = NULL;
    return testserver_fault(t, CLAVE_ETHREAD, "cannot start a thread");
}

/* Its thread has ended, or is about to. */
static clave_err testserver_join(clave_test_server *t)
{
    if (!t->run)
        return CLAVE_ECLOSED;
    pthread_join(t->thread, NULL);
    t->ahead_ms = t->run->ahead_ms;
    clave__server_run_free(t->run);
    t->run = NULL;
    return t->end;
}

static clave_err testserver_halt(clave_test_server *t, void *arg)
{
    (void)arg;
    clave__run_halt(t->run);
    return CLAVE_OK;
}

static clave_err testserver_kill(clave_test_server *t)
{
    testserver_order(t, testserver_halt, NULL);
    return testserver_join(t);
}

static clave_err testserver_stop(clave_test_server *t)
{
    if (t->run)
        clave__server_run_stop(t->run);
    return testserver_join(t);
}

clave_err clave_test_server_stop(clave_test_server *t)
{
    clave_err err = testserver_enter(t);
    return err == CLAVE_OK ? testserver_leave(t, testserver_stop(t)) : err;
}

clave_err clave_test_server_kill(clave_test_server *t)
{
    clave_err err = testserver_enter(t);
    return err == CLAVE_OK ? testserver_leave(t, testserver_kill(t)) : err;
}

clave_err clave_test_server_start(clave_test_server *t)
{
    clave_err err = testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    err = t->run ? testserver_fault(t, CLAVE_EINVAL, "it is already running") : testserver_start(t);
    return testserver_leave(t, err);
}

clave_err clave_test_server_restart(clave_test_server *t)
{
    clave_err err = testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    testserver_stop(t);
    return testserver_leave(t, testserver_start(t));
}

enum { DEFAULT_TICK_MS = 100, DEFAULT_MAX_SESSION_MS = 60000 };

/* ---- the port and the directory ------------------------------------------------------------- */

/* Reserves the port: while this socket is bound to it, the kernel gives it to nobody else, but
 * still lets the server listen on it. */
static clave_err testserver_reserve_port(clave_test_server *t, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t len = sizeof a;
    int on = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    t->reserve = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (t->reserve < 0 || setsockopt(t->reserve, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(t->reserve, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(t->reserve, (struct sockaddr *)&a, &len) != 0)
        return testserver_fault(t, errno == EADDRINUSE ? CLAVE_EINUSE : clave__err_of_errno(errno),
                                "127.0.0.1:%u: %s", (unsigned)port, strerror(errno));
    t->port = ntohs(a.sin_port);
    snprintf(t->connect, sizeof t->connect, "127.0.0.1:%u", (unsigned)t->port);
    return CLAVE_OK;
}

static clave_err testserver_choose_dir(clave_test_server *t, const char *given)
{
    const char *tmp = getenv("TMPDIR"), *above = tmp && *tmp ? tmp : "/tmp";
    int n = given ? snprintf(t->dir, sizeof t->dir, "%s", given)
                  : snprintf(t->dir, sizeof t->dir, "%s/clave-test-XXXXXX", above);
    if (n <= 0 || (size_t)n >= sizeof t->dir)
        return testserver_fault(t, CLAVE_EINVAL, "no path for a data directory");
    if (given)
        return CLAVE_OK;
    if (!mkdtemp(t->dir))
        return testserver_fault(t, clave__err_of_errno(errno), "cannot create %s: %s", t->dir,
                                strerror(errno));
    t->owns_dir = true;
    return CLAVE_OK;
}

static int testserver_remove_entry(const char *path, const struct stat *st, int type,
                                   struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void testserver_init_locks(clave_test_server *t)
{
    pthread_mutexattr_t checked;
    pthread_condattr_t clock;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&t->calls, &checked);
    pthread_mutexattr_destroy(&checked);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&t->turned, &clock);
    pthread_condattr_destroy(&clock);
}

static clave_err testserver_begin(clave_test_server *t, const clave_test_server_options *o)
{
    if (o->tick_ms < 0 || o->min_session_ms < 0 || o->max_session_ms < 0)
        return testserver_fault(t, CLAVE_EINVAL, "a time in the options is negative");
    t->engine = (struct server_options){
        .log = o->log,
        .log_arg = o->log_arg,
        .tick_ms = o->tick_ms ? o->tick_ms : DEFAULT_TICK_MS,
        .min_session_ms = o->min_session_ms,
        .max_session_ms = o->max_session_ms ? o->max_session_ms : DEFAULT_MAX_SESSION_MS,
        .extended_types = o->extended_types,
    };
    clave_err err = testserver_reserve_port(t, o->port);
    if (err == CLAVE_OK)
        err = testserver_choose_dir(t, o->data_dir);
    return err == CLAVE_OK ? testserver_start(t) : err;
}

clave_err clave_test_server_new(clave_test_server **out, const clave_test_server_options *given)
{
    clave_test_server_options o;
    *out = NULL;
    clave_err err = clave__options_take(&o, sizeof o, given);
    if (err != CLAVE_OK)
        return err;
    clave_test_server *t = calloc(1, sizeof *t);
    if (!t)
        return CLAVE_ENOMEM;
    t->log = o.log;
    t->log_arg = o.log_arg;
    t->reserve = -1;
    testserver_init_locks(t);
    clave__fault_injectors_init(&t->fault_injectors);
    err = testserver_begin(t, &o);
    if (err == CLAVE_OK)
        *out = t;
    else
        clave_test_server_free(t);
    return err;
}

void clave_test_server_free(clave_test_server *t)
{
    if (!t)
        return;
    testserver_kill(t);
    if (t->owns_dir)
        nftw(t->dir, testserver_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (t->reserve >= 0)
        close(t->reserve);
    clave__fault_injectors_fini(&t->fault_injectors);
    pthread_cond_destroy(&t->turned);
    pthread_mutex_destroy(&t->mutex);
    pthread_mutex_destroy(&t->calls);
    free(t);
}

const char *clave_test_server_connect_string(const clave_test_server *t)
{
    return t->connect;
}

uint16_t clave_test_server_port(const clave_test_server *t)
{
    return t->port;
}

const char *clave_test_server_data_dir(const clave_test_server *t)
{
    return t->dir;
}

/* ---- sessions, time, figures ----------------------------------------------------------------- */

static clave_err testserver_unknown(clave_test_server *t, int64_t id)
{
    return testserver_fault(t, CLAVE_EUNKNOWNSESSION, "there is no session 0x%llx",
                            (unsigned long long)id);
}

static clave_err testserver_expire(clave_test_server *t, void *arg)
{
    const int64_t *id = arg;
    struct server *s = t->run->server;
    return clave__sessions_find(&s->sessions, *id) ? clave__session_expire(s, *id)
                                                   : testserver_unknown(t, *id);
}

clave_err clave_test_server_expire(clave_test_server *t, int64_t session_id)
{
    return testserver_call(t, testserver_expire, &session_id);
}

static clave_err testserver_drop(clave_test_server *t, void *arg)
{
    const int64_t *id = arg;
    if (*id == 0) {
        clave__conn_close_quiet(t->run, true);
        return CLAVE_OK;
    }
    const struct session *s = clave__sessions_find(&t->run->server->sessions, *id);
    if (!s)
        return testserver_unknown(t, *id);
    if (!s->conn)
        return testserver_fault(t, CLAVE_ECONNLOSS, "session 0x%llx has no connection",
                                (unsigned long long)*id);
    clave__conn_drop(s->conn);
    return CLAVE_OK;
}

clave_err clave_test_server_drop(clave_test_server *t, int64_t session_id)
{
    return testserver_call(t, testserver_drop, &session_id);
}

static clave_err testserver_skip_time(clave_test_server *t, void *arg)
{
    const int64_t *ms = arg;
    t->run->ahead_ms += *ms;
    t->run->armed_at = INT64_MAX; /* skipping time does not make it late */
    t->run->ticked = false;
    clave__run_tick(t->run);
    return CLAVE_OK;
}

clave_err clave_test_server_skip_time(clave_test_server *t, int64_t ms)
{
    enum { YEAR_S = 366 * 24 * 3600 };
    if (ms < 0 || ms / 1000 > (int64_t)100 * YEAR_S)
        return CLAVE_EINVAL;
    return testserver_call(t, testserver_skip_time, &ms);
}

static clave_err testserver_stats(clave_test_server *t, void *arg)
{
    clave_test_stats *out = arg;
    struct server_stats st = {0};
    if (t->run)
        clave__server_run_stats(t->run, &st);
    memcpy(out->requests, t->fault_injectors.seen, sizeof out->requests);
    out->strikes = t->fault_injectors.strikes;
    out->connections = st.connections;
    out->sessions = st.sessions;
    out->watches = st.watches;
    out->ephemerals = st.ephemerals;
    out->nodes = st.nodes;
    out->zxid = st.last_zxid;
    return CLAVE_OK;
}

clave_err clave_test_server_stats(clave_test_server *t, clave_test_stats *out)
{
    clave_test_stats now = CLAVE_TEST_STATS_INIT;
    clave_err err = testserver_call_anyhow(t, testserver_stats, &now);
    return err == CLAVE_OK ? clave__options_give(out, &now, sizeof now) : err;
}
