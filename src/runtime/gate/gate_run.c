/* gate_run.c - a running gate (gate_run.h): its limits, its HTTP, the engine of src/web, and its
 * loop. The engine is called by HTTP, by its clients' callbacks and by its timer; what it requests
 * inside such a call is done later (gate_clients.c, http_server.c). The verbs call gate_change and
 * gate_reopen at SIGHUP, on any thread. */
#include "runtime/gate/gate_run.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clave/uv.h"
#include "client/hosts.h"
#include "observe/lock_history.h"
#include "runtime/clock.h"
#include "runtime/gate/gate_audit.h"
#include "runtime/gate/gate_clients.h"
#include "runtime/gate/gate_jansson.h"
#include "runtime/gate/gate_key.h"
#include "runtime/gate/gate_replay.h"
#include "runtime/http/http_server.h"
#include "runtime/server/audit_log.h"
#include "runtime/start_error.h"
#include "runtime/thread_start.h"
#include "runtime/tls/tls_context.h"
#include "web/api/api.h"
#include "web/http/admission.h"

enum { MAX_METRIC_PATHS = 64, MOST_ENDS = 4096 };

/*   SERVING ──_stop──▶ CLOSING ──sessions ended, or grace──▶ DRAINING ──no clients──▶ STOPPED */
enum gate_phase { GATE_SERVING, GATE_CLOSING, GATE_DRAINING, GATE_STOPPED };

/* What the server in the same process has reported, and the gate's thread has not read yet. */
struct server_news {
    pthread_mutex_t
        mutex; /* held no longer than a copy takes: the gate never holds up the server */
    size_t nends;
    struct end {
        int64_t czxid;
        enum server_gone how;
    } ends[MOST_ENDS];
    bool measured; /* `health` is new */
    struct server_health health;
    struct end taken[MOST_ENDS]; /* belongs to the gate's thread */
};

struct gate {
    uv_loop_t loop;
    struct clave_mem mem;
    struct log log;
    struct gate_clients clients;
    struct web_env env;
    struct web *web;
    struct http *http;
    clave_tls *http_tls; /* NULL: no address uses it */
    enum gate_phase phase;
    uv_timer_t timer; /* for the engine's deadlines and the grace */
    uv_prepare_t prepare;
    uv_async_t stop;
    uv_async_t changed; /* wakes the loop when there are new settings */
    struct gate_access *access;
    pthread_mutex_t mutex;
    struct gate_access *next_access; /* under the mutex; NULL: no change */
    struct gate_limits next_limits;  /* under the mutex: the limits that go with next_access */
    size_t file_connections;         /* how many the limit of open files allows */
    size_t sender_sessions; /* the limit for one sender, unless it is set; 0: four fifths of all */
    char *metric_text;      /* what metric_paths point into */
    const char *metric_paths[MAX_METRIC_PATHS];
    size_t nmetric_paths;
    struct gate_audit *audit; /* NULL: none */
    struct notifier audit_done;
    bool reopens;               /* under the mutex: the audit log has to be opened again */
    struct gate_replay *replay; /* NULL: none */
    uv_async_t replayed;
    struct server_news *news; /* NULL: not in a server */
    uv_async_t told;
    int64_t grace_ms;
    int64_t closed_by; /* for CLOSING: until when */
};

/* ---- limits: connections, files, and of what the servers take from its address --------------- */

enum { RESERVED_FILES = 64 };
/* The connections that a server takes from one address (maxClientCnxns, --max-connections), as far
 * as a gate can know: the default of Apache's and ours. */
enum { OF_ADDRESS = 60 };

/* HTTP's share of the files that may be open; if the gate is in a server, the
 * server's clients have the rest. */
static size_t gate_files(const struct gate_options *o, size_t part, size_t most)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return most;
    size_t room =
        files.rlim_cur > 2 * RESERVED_FILES ? files.rlim_cur - RESERVED_FILES : files.rlim_cur / 2;
    room = (o->in_server ? room / 4 : room) / part;
    return most < room ? most : room;
}

static unsigned gate_max_connections(const struct gate *g, const struct gate_limits *limits)
{
    size_t most = limits->max_connections > 0 ? limits->max_connections : GATE_CONNECTIONS;
    return (unsigned)(most < g->file_connections ? most : g->file_connections);
}

/* One sender's sessions must not use up what the servers take from this address: nobody else could
 * make a session then. Returns four fifths of what half of the servers take, since the others may
 * be down, less the gate's own session. Returns 0 if the servers do not count this gate's
 * connections: then four fifths of all sessions are the limit. */
static size_t gate_default_sender_sessions(const struct gate *g, const struct gate_options *o)
{
    struct hosts hosts;
    if (o->in_server || clave__hosts_init(&hosts, &g->mem, o->hosts) != CLAVE_OK)
        return 0;
    size_t servers = (hosts.count + 1) / 2;
    bool counted = true;
    for (size_t i = 0; i < hosts.count; i++)
        counted = counted && hosts.list[i].port != 0; /* not a Unix socket */
    clave__hosts_fini(&hosts);
    return counted ? (servers * OF_ADDRESS - 1) * 4 / 5 : 0;
}

static size_t gate_max_sender_sessions(const struct gate *g, const struct gate_limits *limits)
{
    return limits->max_sender_sessions > 0 ? limits->max_sender_sessions : g->sender_sessions;
}

/* A waiting request must not use up the connection that renewals and releases need. */
static size_t gate_max_waiting(const struct gate *g, const struct gate_limits *limits)
{
    size_t connections = gate_max_connections(g, limits);
    return limits->max_waiting > 0 ? limits->max_waiting : connections - connections / 4;
}

/* ---- requests of HTTP on their way to the engine --------------------------------------------- */

/* The longest head of a request. */
enum { MAX_HEAD = 8192 };
/* How long to wait for the next request and its head; for a TLS handshake; for a body; and for a
 * client to read. */
enum { IDLE_MS = 60000, HANDSHAKE_MS = 10000, BODY_MS = 20000, SENDING_MS = 30000 };

static void gate_on_request(void *arg, const struct web_request *q, struct http_exchange *x,
                            void **user)
{
    struct gate *g = arg;
    struct web_exchange *made;
    if (clave__web_begin(g->web, clave_now(), q, x, &made) != CLAVE_OK)
        clave__http_answer(x, NULL);
    *user = made;
}

static bool gate_on_body(void *arg, void *user, const void *p, size_t n)
{
    (void)arg;
    return clave__web_take_body(user, clave_now(), p, n);
}

static void gate_on_body_done(void *arg, void *user)
{
    (void)arg;
    clave__web_body_done(user, clave_now());
}

static bool gate_is_known(void *arg, void *user, void **kept)
{
    (void)arg;
    *kept = clave__web_keep(user);
    return *kept != NULL;
}

static void gate_kept_gone(void *arg, void *kept)
{
    const struct gate *g = arg;
    clave__web_keep_no_more(g->web, kept);
}

static bool gate_is_exempt(void *arg, const struct peer_addr *peer)
{
    const struct gate *g = arg;
    const struct web_peer as_engine = {.is_unix = peer->family == 0, .address = peer->text};
    return clave__forwarded_is_proxy(gate_access_of(g->access), &as_engine);
}

static void gate_on_ended(void *arg, void *user)
{
    (void)arg;
    clave__web_end(user, clave_now());
}

/* ---- the addresses of HTTP ------------------------------------------------------------------- */

static bool gate_has_tls(const struct gate_options *o)
{
    for (size_t i = 0; i < o->nhttp; i++)
        if (clave__http_is_tls(o->http[i]))
            return true;
    return false;
}

/* *out is NULL if no address needs it. */
static clave_err gate_make_tls(clave_tls **out, const struct gate_options *o, const struct fault *f)
{
    struct tls_server_options t = o->http_tls;
    t.alpn = clave__http_alpn;
    t.to_foreign = clave__http_to_foreign;
    *out = NULL;
    return gate_has_tls(o) ? clave__tls_context_serve(out, &t, f) : CLAVE_OK;
}

/* Binds the addresses. */
static clave_err gate_listen(struct gate *g, const struct gate_options *o, const struct fault *f)
{
    clave_err err = gate_make_tls(&g->http_tls, o, f);
    if (err != CLAVE_OK)
        return err;
    const struct http_options http = {
        .tls = g->http_tls,
        .loop = &g->loop,
        .mem = &g->mem,
        .log = g->log,
        .begin = gate_on_request,
        .take_body = gate_on_body,
        .body_done = gate_on_body_done,
        .ended = gate_on_ended,
        .is_known = gate_is_known,
        .kept_gone = gate_kept_gone,
        .is_exempt = gate_is_exempt,
        .arg = g,
        .max_connections = gate_max_connections(g, &o->limits),
        .ever_connections = (unsigned)g->file_connections,
        .max_head = MAX_HEAD,
        .ms = {[HTTP_IDLE] = IDLE_MS,
               [HTTP_BODY] = BODY_MS,
               [HTTP_SENDING] = SENDING_MS,
               [HTTP_SHAKING] = HANDSHAKE_MS},
    };
    err = clave__http_server_start(&g->http, o->http[0], &http, f);
    for (size_t i = 1; i < o->nhttp && err == CLAVE_OK; i++)
        err = clave__http_server_listen(g->http, o->http[i], f);
    if (err == CLAVE_OK && g->http_tls)
        clave__tls_context_tell_date(g->http_tls, &g->log);
    return err;
}

enum { MAX_SESSIONS = 10000 };

/* ---- the engine: what it requests ------------------------------------------------------------ */

static clave_err gate_client_open(void *arg, const clave_client_options *o,
                                  clave_async_client **out)
{
    struct gate *g = arg;
    return gate_clients_open(&g->clients, o, out);
}

static void gate_client_free(void *arg, clave_async_client *c)
{
    struct gate *g = arg;
    gate_clients_free(&g->clients, c);
}

static void gate_client_flush(void *arg, clave_async_client *c)
{
    struct gate *g = arg;
    gate_clients_flush(&g->clients, c);
}

static void gate_answered(void *arg, struct web_exchange *x, void *transport)
{
    (void)arg;
    clave__http_answer(transport, clave__web_exchange_answer(x));
}

static void gate_wake(void *arg, struct web_exchange *x, void *transport)
{
    (void)arg;
    (void)x;
    clave__http_wake(transport);
}

static void gate_on_audit(void *arg, const struct web_audit *a)
{
    const struct gate *g = arg;
    gate_audit_put(g->audit, a);
}

static void gate_on_loaded(void *arg, int64_t zxid)
{
    const struct gate *g = arg;
    gate_replay_start(g->replay, zxid);
}

/* ---- the engine: what other threads of the process tell it ----------------------------------- */

/* On the loop: take over what other threads have left for the engine. */
static void gate_on_replayed(uv_async_t *a)
{
    struct gate *g = a->data;
    clave__web_take_replay(g->web, clave_now(), gate_replay_take(g->replay));
}

static void gate_take_figures(struct gate *g, const struct server_health *h)
{
    const struct driver_stats *d = &h->driver;
    bool sizes = d->snapshot_bytes >= 0 && d->log_bytes >= 0;
    const int64_t figures[WEB_FIGURES] = {
        [WEB_UPTIME_MS] = h->uptime_ms,
        [WEB_SESSIONS] = h->sessions,
        [WEB_CONNECTIONS] = h->connections,
        [WEB_REQUESTS] = h->requests,
        [WEB_OUTSTANDING] = h->outstanding,
        [WEB_ZNODES] = h->nodes,
        [WEB_WATCHES] = h->watches,
        [WEB_DATA_BYTES] = h->data_bytes,
        [WEB_READ_MS] = h->read_ms,
        [WEB_WRITE_MS] = h->write_ms,
        [WEB_FSYNC_US] = h->fsync_us,
        [WEB_FILES_BYTES] = sizes ? d->snapshot_bytes + d->log_bytes : -1,
        [WEB_FREE_BYTES] = d->free_bytes,
        [WEB_DISK_BYTES] = d->total_bytes,
        [WEB_MEMORY_BYTES] = d->resident_bytes,
        [WEB_SNAPSHOT_SECONDS] = d->snapshot_seconds,
        [WEB_SNAPSHOT_BEHIND] = h->snapshot_behind,
        [WEB_QUIET_MS] = h->quiet_ms,
    };
    clave__web_take_figures(g->web, clave_now(), figures);
}

static void gate_on_told(uv_async_t *a)
{
    static const enum lock_cause causes[] = {
        [GONE_DELETED] = LOCK_RELEASED,
        [GONE_DELETED_BY_OTHER] = LOCK_BROKEN,
        [GONE_SESSION_CLOSED] = LOCK_CLOSED,
        [GONE_SESSION_EXPIRED] = LOCK_EXPIRED,
    };
    struct gate *g = a->data;
    struct server_news *news = g->news;
    pthread_mutex_lock(&news->mutex);
    size_t n = news->nends;
    memcpy(news->taken, news->ends, n * sizeof *news->ends);
    news->nends = 0;
    bool measured = news->measured;
    news->measured = false;
    const struct server_health health = news->health;
    pthread_mutex_unlock(&news->mutex);
    for (size_t i = 0; i < n; i++)
        clave__web_tell_cause(g->web, news->taken[i].czxid, causes[news->taken[i].how]);
    if (measured)
        gate_take_figures(g, &health);
}

void gate_server_health(struct gate *g, const struct server_health *health)
{
    assert(g->news); /* it is in a server */
    pthread_mutex_lock(&g->news->mutex);
    g->news->health = *health;
    g->news->measured = true;
    pthread_mutex_unlock(&g->news->mutex);
    uv_async_send(&g->told);
}

void gate_node_gone(struct gate *g, int64_t czxid, enum server_gone how)
{
    struct server_news *news = g->news;
    assert(news);
    pthread_mutex_lock(&news->mutex);
    if (news->nends < MOST_ENDS)
        news->ends[news->nends++] = (struct end){czxid, how};
    pthread_mutex_unlock(&news->mutex);
    uv_async_send(&g->told);
}

static void gate_on_audited(void *arg)
{
    struct gate *g = arg;
    if (g->audit)
        gate_audit_pump(g->audit);
}

static void gate_set_wall(struct gate *g)
{
    clave__web_set_wall(g->web, clave__clock_wall() - clave_now());
}

/* ---- the engine: how it is made -------------------------------------------------------------- */

static clave_err gate_take_metric_paths(struct gate *g, const char *paths, const struct fault *f)
{
    char *rest = NULL;
    g->metric_text = clave__mem_strdup(&g->mem, paths);
    if (!g->metric_text)
        return CLAVE_ENOMEM;
    for (char *p = strtok_r(g->metric_text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
        if (g->nmetric_paths == MAX_METRIC_PATHS)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d paths of metrics",
                                      MAX_METRIC_PATHS);
        g->metric_paths[g->nmetric_paths++] = p;
    }
    return CLAVE_OK;
}

/* Makes the engine, and what it needs of this process. */
static clave_err gate_make_engine(struct gate *g, const struct gate_options *o,
                                  const struct fault *f)
{
    const char *why;
    const struct jansson *jansson = gate_jansson(&why);
    uint8_t key[GATE_KEY_LEN];
    if (!jansson)
        return clave__start_error(f, CLAVE_EIO, "%s", why);
    clave_err err = CLAVE_OK;
    if (o->key)
        err = gate_key_read(o->key, key, f);
    else if (o->data_dir)
        err = gate_key_keep(o->data_dir, key, f);
    else
        err = gate_key_draw(key, f);
    if (err == CLAVE_OK && !o->key && !o->data_dir)
        clave__log(&o->log, CLAVE_LOG_INFO,
                   "a random key is used: the secrets of sessions become invalid when this process "
                   "ends (--http-key keeps them)");
    if (err == CLAVE_OK && o->metric_paths)
        err = gate_take_metric_paths(g, o->metric_paths, f);
    if (err == CLAVE_OK && o->audit)
        err = gate_audit_open(&g->audit, o->audit, &g->mem, &g->log, &g->audit_done, f);
    if (err == CLAVE_OK && o->data_dir)
        err = gate_replay_new(&g->replay, o->data_dir, &g->mem, &g->log, &g->replayed);
    if (err == CLAVE_OK && o->in_server) {
        g->news = clave__mem_zalloc(&g->mem, sizeof *g->news);
        err = g->news ? CLAVE_OK : CLAVE_ENOMEM;
    }
    if (err != CLAVE_OK)
        return err;
    if (g->news)
        pthread_mutex_init(&g->news->mutex, NULL);
    g->env = (struct web_env){.arg = g,
                              .client_open = gate_client_open,
                              .client_free = gate_client_free,
                              .client_flush = gate_client_flush,
                              .answered = gate_answered,
                              .wake = gate_wake,
                              .audit = o->audit ? gate_on_audit : NULL,
                              .loaded = o->data_dir ? gate_on_loaded : NULL};
    const struct web_options wo = {.mem = &g->mem,
                                   .seed = clave_random_seed(),
                                   .log = g->log,
                                   .env = &g->env,
                                   .hosts = o->hosts,
                                   .connect = o->connect,
                                   .tls = o->tls,
                                   .auths = o->auths,
                                   .nauths = o->nauths,
                                   .session_timeout_ms = o->session_timeout_ms,
                                   .session_key = key,
                                   .key_is_shared = o->key != NULL,
                                   .jansson = jansson,
                                   .access = gate_access_of(o->access),
                                   .assets = clave__page_assets,
                                   .nassets = clave__page_nassets,
                                   .max_body = o->max_body,
                                   .max_waiting = gate_max_waiting(g, &o->limits),
                                   .max_sessions = gate_files(o, 2, MAX_SESSIONS),
                                   .max_connections = gate_max_connections(g, &o->limits),
                                   .max_sender_sessions = gate_max_sender_sessions(g, &o->limits),
                                   .observe = true,
                                   .metric_paths = g->metric_paths,
                                   .nmetric_paths = g->nmetric_paths};
    err = clave__web_new(&g->web, &wo);
    explicit_bzero(key, sizeof key);
    if (err == CLAVE_OK)
        gate_set_wall(g);
    return err;
}

/* ---- what may change while it runs ----------------------------------------------------------- */

/* On the loop: takes over what gate_change and gate_reopen have left. */
static void gate_on_changed(uv_async_t *a)
{
    struct gate *g = a->data;
    pthread_mutex_lock(&g->mutex);
    struct gate_access *next = g->next_access;
    const struct gate_limits limits = g->next_limits;
    bool reopens = g->reopens;
    g->next_access = NULL;
    g->reopens = false;
    pthread_mutex_unlock(&g->mutex);
    if (reopens && g->audit)
        gate_audit_reopen(g->audit);
    if (!next)
        return;
    clave__web_set_access(g->web, gate_access_of(next));
    gate_access_free(g->access);
    g->access = next;
    clave__web_set_max_waiting(g->web, gate_max_waiting(g, &limits));
    clave__web_set_max_sender_sessions(g->web, gate_max_sender_sessions(g, &limits));
    clave__web_set_max_connections(g->web, gate_max_connections(g, &limits));
    if (g->http)
        clave__http_server_set_max_connections(g->http, gate_max_connections(g, &limits));
}

void gate_change(struct gate *g, struct gate_access *access, const struct gate_limits *limits)
{
    assert(access);
    pthread_mutex_lock(&g->mutex);
    struct gate_access *unused = g->next_access;
    g->next_access = access;
    g->next_limits = *limits;
    pthread_mutex_unlock(&g->mutex);
    gate_access_free(unused);
    uv_async_send(&g->changed);
}

bool gate_reopen(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->reopens = true;
    pthread_mutex_unlock(&g->mutex);
    uv_async_send(&g->changed);
    return g->http_tls && clave__tls_context_renew(g->http_tls, &g->log);
}

/* The gate does not start without this many files left for sessions and clients. */
enum { LEAST_FILES = 16 };

/* ---- stopping -------------------------------------------------------------------------------- */

static void gate_enter(struct gate *g, enum gate_phase to)
{
    assert(to == g->phase + 1); /* one phase after the other */
    g->phase = to;
    if (to == GATE_CLOSING) {
        g->closed_by = clave_now() + g->grace_ms;
        clave__http_server_quiet(g->http);
        clave__web_close(g->web, clave_now());
    } else if (to == GATE_DRAINING) {
        clave__http_server_stop(g->http);
        g->http = NULL;
        gate_clients_stop(&g->clients);
    } else if (to == GATE_STOPPED) {
        uv_stop(&g->loop);
    }
}

static void gate_go_on(struct gate *g)
{
    if (g->phase == GATE_CLOSING &&
        (clave_now() >= g->closed_by ||
         (clave__web_is_closed(g->web) && clave__http_server_is_answered(g->http))))
        gate_enter(g, GATE_DRAINING);
    if (g->phase == GATE_DRAINING && g->clients.running == 0)
        gate_enter(g, GATE_STOPPED);
}

static void gate_on_stop(uv_async_t *a)
{
    struct gate *g = a->data;
    if (g->phase == GATE_SERVING)
        gate_enter(g, GATE_CLOSING);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void gate_on_timer(uv_timer_t *t)
{
    struct gate *g = t->data;
    if (clave__web_deadline(g->web) <= clave_now())
        clave__web_tick(g->web, clave_now());
}

/* Each turn may have moved the deadline, and the wall clock may have been set. */
static void gate_on_prepare(uv_prepare_t *p)
{
    struct gate *g = p->data;
    gate_go_on(g);
    gate_set_wall(g);
    int64_t at = clave__web_deadline(g->web), now = clave_now();
    if (g->phase == GATE_CLOSING && g->closed_by < at)
        at = g->closed_by;
    uv_update_time(&g->loop);
    if (at == CLAVE_NEVER)
        uv_timer_stop(&g->timer);
    else
        uv_timer_start(&g->timer, gate_on_timer, at > now ? (uint64_t)(at - now) : 0, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

clave_err gate_check(const struct gate_options *o, const struct fault *f)
{
    const char *why;
    uint8_t key[GATE_KEY_LEN];
    clave_tls *tls = NULL;
    struct findings all = clave__findings_in(f);
    if (!gate_jansson(&why))
        clave__findings_add(&all, clave__start_error(&all.next, CLAVE_EIO, "%s", why));
    if (o->key)
        clave__findings_add(&all, gate_key_read(o->key, key, &all.next));
    for (size_t i = 0; i < o->nhttp; i++)
        clave__findings_add(&all, clave__http_server_check(o->http[i], &all.next));
    if (o->http_tls.cert_file) /* a missing one is reported earlier */
        clave__findings_add(&all, gate_make_tls(&tls, o, &all.next));
    clave_tls_free(tls);
    if (o->audit)
        clave__findings_add(&all, clave__audit_log_check(o->audit, &all.next));
    return all.err;
}

static clave_err gate_refused(int number, const struct fault *f)
{
    clave_err err = clave__err_of_errno(number);
    return err == CLAVE_OK
               ? err
               : clave__start_error(f, err, "cannot start the gate: %s", strerror(number));
}

/* Checks that a thread can be started, because the names of servers are looked up in threads. A
 * gate in a server needs none. */
static clave_err gate_check_thread(const struct gate_options *o, const struct fault *f)
{
    int fault = o->in_server ? 0 : clave__thread_check();
    return fault == 0 ? CLAVE_OK
                      : clave__start_error(f, CLAVE_ETHREAD,
                                           "cannot start a thread to look up servers: %s",
                                           strerror(fault));
}

clave_err gate_new(struct gate **out, const struct gate_options *o, const struct fault *f)
{
    struct gate *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g)
        return CLAVE_ENOMEM;
    g->mem = clave__mem_or_default(NULL);
    g->log = o->log;
    g->grace_ms = o->grace_ms;
    g->file_connections = gate_files(o, 1, GATE_MOST_CONNECTIONS);
    g->sender_sessions = gate_default_sender_sessions(g, o);
    clave_err err = gate_refused(clave__loop_init(&g->loop), f);
    if (err == CLAVE_OK)
        err = gate_clients_init(&g->clients, &g->loop, &g->mem);
    if (err != CLAVE_OK) { /* a loop without handles needs no turn */
        free(g);
        return err;
    }
    uv_timer_init(&g->loop, &g->timer);
    uv_prepare_init(&g->loop, &g->prepare);
    uv_async_init(&g->loop, &g->stop, gate_on_stop);
    uv_async_init(&g->loop, &g->changed, gate_on_changed);
    uv_async_init(&g->loop, &g->replayed, gate_on_replayed);
    uv_async_init(&g->loop, &g->told, gate_on_told);
    g->told.data = g->replayed.data = g->timer.data = g->prepare.data = g->stop.data =
        g->changed.data = g;
    pthread_mutex_init(&g->mutex, NULL);
    err = gate_refused(clave__notifier_open(&g->audit_done, &g->loop, gate_on_audited, g), f);
    if (err == CLAVE_OK)
        err = gate_make_engine(g, o, f);
    if (err == CLAVE_OK)
        err = gate_listen(g, o, f);
    if (err == CLAVE_OK)
        err = gate_refused(clave__files_check(LEAST_FILES), f);
    if (err == CLAVE_OK)
        err = gate_check_thread(o, f);
    if (err == CLAVE_OK) {
        g->access = o->access;
        *out = g;
    } else {
        gate_free(g);
    }
    return err;
}

uv_loop_t *gate_loop(struct gate *g)
{
    return &g->loop;
}

const char *gate_address(const struct gate *g, size_t i)
{
    return clave__http_server_address(g->http, i);
}

void gate_run(struct gate *g)
{
    assert(g->phase == GATE_SERVING);
    uv_prepare_start(&g->prepare, gate_on_prepare);
    while (g->phase != GATE_STOPPED)
        uv_run(&g->loop, UV_RUN_DEFAULT);
}

void gate_stop(struct gate *g)
{
    uv_async_send(&g->stop);
}

/* The drivers of clients are gone, so the engine's frees of clients happen at once. */
void gate_free(struct gate *g)
{
    if (!g)
        return;
    clave__http_server_stop(g->http);
    uv_prepare_stop(&g->prepare);
    gate_clients_stop(&g->clients);
    while (g->clients.running > 0)
        uv_run(&g->loop, UV_RUN_ONCE);
    gate_replay_free(g->replay);
    clave__web_free(g->web);
    gate_clients_fini(&g->clients);
    uv_close((uv_handle_t *)&g->timer, NULL);
    uv_close((uv_handle_t *)&g->prepare, NULL);
    uv_close((uv_handle_t *)&g->stop, NULL);
    uv_close((uv_handle_t *)&g->changed, NULL);
    gate_audit_close(g->audit);
    clave__notifier_close(&g->audit_done);
    uv_close((uv_handle_t *)&g->replayed, NULL);
    uv_close((uv_handle_t *)&g->told, NULL);
    if (g->news)
        pthread_mutex_destroy(&g->news->mutex);
    clave__mem_free(&g->mem, g->news);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    int left = uv_loop_close(&g->loop);
    assert(left == 0);
    (void)left;
    clave__mem_free(&g->mem, g->metric_text);
    gate_access_free(g->access);
    gate_access_free(g->next_access);
    clave_tls_free(g->http_tls);
    pthread_mutex_destroy(&g->mutex);
    free(g);
}
