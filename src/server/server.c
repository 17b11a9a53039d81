/* server.c - creating and freeing a server, its options, its clock, and the expiry of sessions and
 * of connections without one. The driver sets the time with clave__server_tick before it calls
 * anything else. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "server/connection/conn.h"
#include "server/request/request.h"
#include "server/store/restore.h"

enum { DEFAULT_SNAPSHOT_PIECE = 1000 };
enum { DEFAULT_OUTPUT = 512 * 1024, LEAST_OUTPUT = 1024, MOST_OUTPUT = 1 << 30 };
/* The cost in looks of ending a session, which includes a line in the log, and of removing each of
 * its nodes. */
enum { LOOKS_AN_END = 30, LOOKS_A_NODE = 2 };
/* How many connections without a session are cut in one tick at most. */
enum { CUT_A_TICK = 1000 };
/* How many watches of closed connections are dropped in one tick, which takes less than a
 * millisecond. */
enum { DROPPED_A_TICK = 500 };
/* An upper bound for max_frame: the first four bytes of a four-letter word, read as a length,
 * exceed it. */
enum { MOST_FRAME = 0x20000000 };

/* ---- life ------------------------------------------------------------------------------------ */

static int32_t server_or_default(int32_t v, int32_t fallback)
{
    return v > 0 ? v : fallback;
}

/* Takes over the options that may change while the server is serving. */
static void server_take_limits(struct server *s, const struct server_options *o)
{
    assert(s->limits.tick_ms > 0); /* the defaults follow from it */
    s->limits.min_session_ms = server_or_default(o->min_session_ms, 2 * s->limits.tick_ms);
    s->limits.max_session_ms = server_or_default(o->max_session_ms, 20 * s->limits.tick_ms);
    if (s->limits.max_session_ms < s->limits.min_session_ms)
        s->limits.max_session_ms = s->limits.min_session_ms;
    s->limits.sessionless_ms = server_or_default(o->sessionless_ms, SERVER_SESSIONLESS_MS);
    s->limits.slow_ms = o->slow_ms;
    s->limits.snap_count = server_or_default(o->snap_count, 0);
    s->limits.container_check_ms =
        server_or_default(o->container_check_ms, SERVER_CONTAINER_CHECK_MS);
    s->limits.container_rate = server_or_default(o->container_rate, SERVER_CONTAINER_RATE);
    s->limits.never_used_ms = o->never_used_ms;
    s->limits.extended_types = o->extended_types;
    s->limits.enforce_quota = o->enforce_quota;
    s->limits.max_connections = o->max_connections ? o->max_connections : SIZE_MAX;
    s->limits.max_outstanding = o->max_outstanding ? o->max_outstanding : SERVER_OUTSTANDING;
    s->limits.max_undelivered = o->max_undelivered ? o->max_undelivered : SERVER_UNDELIVERED;
    clave__client_limits_set(s, o->client_limits);
}

static void server_take_options(struct server *s, const struct server_options *o)
{
    s->log = (struct log){o->log, o->log_arg, o->log_about, NULL};
    s->audit.write = o->audit;
    s->audit.arg = o->audit_arg;
    s->driver.node_gone = o->node_gone;
    s->driver.node_gone_arg = o->node_gone_arg;
    s->audit.user = o->audit_user ? o->audit_user : "";
    s->limits.tick_ms = server_or_default(o->tick_ms, SERVER_TICK_MS);
    s->limits.max_frame = o->max_frame ? o->max_frame : WIRE_MAX_FRAME;
    if (s->limits.max_frame > MOST_FRAME)
        s->limits.max_frame = MOST_FRAME;
    server_take_limits(s, o);
    s->limits.snapshot_piece = server_or_default(o->snapshot_piece, DEFAULT_SNAPSHOT_PIECE);
    s->limits.max_output = o->max_output ? o->max_output : DEFAULT_OUTPUT;
    if (s->limits.max_output < LEAST_OUTPUT)
        s->limits.max_output = LEAST_OUTPUT;
    if (s->limits.max_output > MOST_OUTPUT)
        s->limits.max_output = MOST_OUTPUT;
    clave__fair_schedule_init(s, o->work_a_turn ? o->work_a_turn : SIZE_MAX);
    s->driver.info.client_port = -1;
    s->x509 = o->x509;
    s->hash_seed = o->seed;
    clave__rand_seed(&s->rand, o->seed);
}

static clave_err server_copy_text(const struct server *s, const char *text, char **out)
{
    size_t n = strlen(text) + 1;
    *out = clave__mem_alloc(&s->mem, n);
    if (!*out)
        return CLAVE_ENOMEM;
    memcpy(*out, text, n);
    return CLAVE_OK;
}

static void server_free_access(const struct server *s, const struct server_access *a)
{
    clave__mem_free(&s->mem, a->super_digest);
    clave__mem_free(&s->mem, a->x509_super);
    clave__mem_free(&s->mem, a->super_uid);
    clave__mem_free(&s->mem, a->require_auth);
    clave__mem_free(&s->mem, a->words);
}

/* Takes over all of the access options, or none. */
static clave_err server_take_access(struct server *s, const struct server_options *o)
{
    struct server_access a = {NULL};
    clave_err err = server_copy_text(s, o->super_digest ? o->super_digest : "", &a.super_digest);
    if (err == CLAVE_OK)
        err = server_copy_text(s, o->x509_super ? o->x509_super : "", &a.x509_super);
    if (err == CLAVE_OK)
        err = server_copy_text(s, o->super_uid ? o->super_uid : "", &a.super_uid);
    if (err == CLAVE_OK)
        err = server_copy_text(s, o->require_auth ? o->require_auth : "", &a.require_auth);
    if (err == CLAVE_OK)
        err = server_copy_text(s, o->words ? o->words : SERVER_WORDS, &a.words);
    if (err != CLAVE_OK) {
        server_free_access(s, &a);
        return err;
    }
    server_free_access(s, &s->access);
    s->access = a;
    return CLAVE_OK;
}

clave_err clave__server_change(struct server *s, const struct server_options *o)
{
    clave_err err = server_take_access(s, o);
    if (err != CLAVE_OK)
        return err;
    server_take_limits(s, o);
    if (s->serving && s->sweep.next > s->now + s->limits.container_check_ms)
        s->sweep.next = s->now + s->limits.container_check_ms;
    return CLAVE_OK;
}

static void server_init_buffers(struct server *s)
{
    clave__buf_init(&s->txn_log.pending, &s->mem, SIZE_MAX / 2);
    clave__buf_init(&s->scratch.results, &s->mem, SIZE_MAX / 2);
    s->driver.stats = DRIVER_STATS_UNKNOWN;
    clave__buf_init(&s->scratch.request, &s->mem, s->limits.max_frame + 4096);
    clave__buf_init(&s->scratch.name, &s->mem, s->limits.max_frame + 4096);
    clave__buf_init(&s->scratch.quota_path, &s->mem, s->limits.max_frame + 4096);
    clave__buf_init(&s->audit.line, &s->mem, SIZE_MAX / 2);
}

clave_err clave__server_new(struct server **out, const struct server_options *o)
{
    struct clave_mem mem = clave__mem_or_default(o->mem);
    struct server *s = clave__mem_zalloc(&mem, sizeof *s);
    *out = NULL;
    if (!s)
        return CLAVE_ENOMEM;
    s->mem = mem;
    server_take_options(s, o);
    server_init_buffers(s);
    list_init(&s->conns.all);
    list_init(&s->conns.gone);
    list_init(&s->conns.sessionless);
    for (int k = 0; k < TURN_CLASSES; k++)
        list_init(&s->conns.ready[k]);
    list_init(&s->conns.waiting);
    list_init(&s->conns.with_output);
    list_init(&s->conns.paused);
    list_init(&s->conns.cursors);
    list_init(&s->listings.ready);
    list_init(&s->listings.all);
    list_init(&s->sweep.end);
    s->replay.named_zxid = -1;
    s->replay.until = INT64_MAX;
    s->sweep.next = INT64_MAX;
    clave__snapshot_save_init(s);
    clave__snapshot_schedule(s);
    clave__txn_init(&s->txn, &s->tree);
    clave_err err = clave__tree_init(&s->tree, &s->mem, s->hash_seed);
    if (err == CLAVE_OK)
        err = clave__sessions_init(&s->sessions, &s->mem, s->limits.tick_ms, s->hash_seed);
    if (err == CLAVE_OK)
        err = clave__watches_init(&s->watches, &s->mem, s->hash_seed);
    if (err == CLAVE_OK)
        err = server_take_access(s, o);
    if (err != CLAVE_OK) {
        clave__server_free(s);
        return err;
    }
    *out = s;
    return CLAVE_OK;
}

void clave__server_free(struct server *s)
{
    if (!s)
        return;
    while (!list_empty(&s->conns.all))
        clave__server_conn_closed(LIST_ENTRY(s->conns.all.next, struct server_conn, in_conns));
    assert(s->conns.n == 0 && s->conns.undelivered == 0);
    clave__conns_drop_watches(s, SIZE_MAX);
    clave__snapshot_save_fini(s);
    clave__txn_fini(&s->txn);
    clave__tree_fini(&s->tree);
    clave__sessions_fini(&s->sessions);
    clave__watches_fini(&s->watches);
    clave__buf_fini(&s->txn_log.pending);
    clave__buf_fini(&s->scratch.results);
    clave__buf_fini(&s->scratch.request);
    clave__buf_fini(&s->scratch.name);
    clave__buf_fini(&s->scratch.quota_path);
    clave__buf_fini(&s->audit.line);
    clave__mem_free(&s->mem, s->slow.turn);
    server_free_access(s, &s->access);
    struct clave_mem mem = s->mem;
    clave__mem_free(&mem, s);
}

static struct owner *server_next_owner(const struct tree *t, const struct owner *o)
{
    struct map_node *at = clave__map_next(&t->owners, o ? &o->in_tree : NULL);
    return at ? MAP_ENTRY(at, struct owner, in_tree) : NULL;
}

/* Removes nodes whose sessions are in no log and no snapshot, as Apache does. Removing a node may
 * remove nodes of other owners below it; if that took away the owner that would have been next, the
 * walk starts again. */
static void server_expire_orphans(struct server *s)
{
    struct owner *o = server_next_owner(&s->tree, NULL);
    s->sweep.orphans = false;
    while (o) {
        const struct owner *next = server_next_owner(&s->tree, o);
        int64_t id = o->id, next_id = next ? next->id : 0;
        if (!clave__sessions_find(&s->sessions, id) && clave__session_expire(s, id) != CLAVE_OK)
            s->sweep.orphans = true;
        o = next ? clave__tree_find_owner(&s->tree, next_id) : NULL;
        if (next && !o)
            o = server_next_owner(&s->tree, NULL);
    }
}

void clave__server_start(struct server *s, int64_t now, int64_t wall)
{
    assert(!s->serving);
    s->now = s->started_at = s->turn.began = s->turn.input_since = now;
    s->wall = wall;
    s->serving = true;
    s->txn_log.durable_zxid = s->counts.started_zxid = s->last_zxid;
    s->sweep.next = now + s->limits.container_check_ms;
    clave__restore_start(s);
    clave__sessions_start(&s->sessions, now, wall);
    clave__quota_recount(s);
    server_expire_orphans(s);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* True if the session's client may have sent something that we have not taken because of the disk
 * or of other clients: then its silence does not count. It does not count either until the driver
 * has been told to read from the connection again. */
static bool server_is_held_up(const struct server *s, const struct session *session)
{
    const struct server_conn *c = session->conn;
    return c && (c->undurable > 0 || !list_empty(&c->in_left) || clave__conns_are_full(s)) &&
           (!c->wanted_read || !clave__server_conn_wants_read(c));
}

static const struct server_conn *server_oldest_sessionless(const struct server *s)
{
    return list_empty(&s->conns.sessionless)
               ? NULL
               : LIST_ENTRY(s->conns.sessionless.next, struct server_conn, in_sessionless);
}

/* True if the session's client may be among those still reconnecting. After a restart all clients
 * come back at once, perhaps behind a queue of TLS handshakes, so a connection that was accepted in
 * time and has no session yet may belong to this session, unless the session cannot be resumed by
 * anyone. Such a connection delays a session's expiry only until its own time to start a session is
 * up, and only connections that were accepted within one timeout of the start count. */
static bool server_client_may_return(const struct server *s, const struct session *session)
{
    const struct server_conn *oldest = server_oldest_sessionless(s);
    return !session->barred && !session->conn && oldest &&
           oldest->accepted_at <= s->started_at + session->timeout_ms;
}

/* Expires the sessions that are due, a bounded number per turn, so that clients that are alive need
 * not wait until thousands of dead sessions have been removed. A session that is heard from while
 * it is due stays alive. */
static void server_expire_sessions(struct server *s)
{
    struct session *session;
    int looks = LOOKS_A_TURN;
    clave__sessions_advance(&s->sessions, s->now);
    while ((session = clave__sessions_next_due(&s->sessions, &looks))) {
        const size_t owned = s->tree.ephemerals;
        const uint64_t sent = s->counts.packets_sent;
        if (server_is_held_up(s, session) || server_client_may_return(s, session) ||
            clave__session_expire(s, session->id) != CLAVE_OK)
            clave__session_postpone(&s->sessions, session);
        looks -= LOOKS_AN_END + LOOKS_A_NODE * (int)(owned - s->tree.ephemerals) +
                 LOOKS_AN_EVENT * (int)(s->counts.packets_sent - sent);
    }
}

/* When the oldest connection without a session is to be cut; the next tick, if this one had more of
 * them than it may cut. While the oldest is still waiting for its turn to shake hands, none behind
 * it is cut either. */
static int64_t server_sessionless_deadline(const struct server *s)
{
    const struct server_conn *oldest = server_oldest_sessionless(s);
    if (!oldest)
        return INT64_MAX;
    return oldest->start_by > s->now ? oldest->start_by : s->now + 1;
}

static void server_close_sessionless(struct server *s)
{
    for (int left = CUT_A_TICK; left > 0 && !list_empty(&s->conns.sessionless); left--) {
        struct server_conn *c =
            LIST_ENTRY(s->conns.sessionless.next, struct server_conn, in_sessionless);
        if (s->now < c->start_by)
            return;
        s->counts.sessionless_expired++;
        clave__conn_cut(c);
    }
}

void clave__server_tick(struct server *s, int64_t now, int64_t wall)
{
    s->now = now > s->now ? now : s->now;
    s->wall = wall;
    /* If there was no pause after the last turn, what is read now may have arrived while that turn
     * was running. */
    bool at_once = now <= s->turn.ended + 1;
    s->turn.input_since = s->now - (at_once ? s->turn.ended - s->turn.began : 0);
    s->turn.began = s->now;
    if (!s->serving)
        return;
    if (s->sweep.orphans)
        server_expire_orphans(s);
    server_expire_sessions(s);
    server_close_sessionless(s);
    clave__conns_drop_stalled(s);
    if (s->slow.untold > 0)
        clave__slow_requests_tell_rest(s);
    if (s->now >= s->sweep.next)
        clave__sweep(s);
    clave__word_step(s);
    clave__conns_drop_watches(s, DROPPED_A_TICK);
    clave__conns_take_left(
        s); /* comes last: the work above has bounds of its own and is not charged to this turn */
}

void clave__server_end_turn(struct server *s, int64_t now)
{
    s->turn.ended = now;
    if (s->slow.turn)
        clave__slow_requests_end_turn(s, now);
}

void clave__server_woke_late(struct server *s, int64_t since, int64_t now)
{
    if (!s->serving || now - since <= s->limits.tick_ms)
        return;
    clave__log(&s->log, CLAVE_LOG_WARN,
               "was not running for %lld ms: no session expires for a tick",
               (long long)(now - since));
    clave__sessions_postpone_all(&s->sessions, now);
}

int64_t clave__server_deadline(const struct server *s)
{
    if (!s->serving)
        return INT64_MAX;
    if (clave__fair_schedule_has_left(s))
        return s->now;
    if (!list_empty(&s->listings.ready) || !list_empty(&s->conns.gone))
        return s->now + 1;
    int64_t at = clave__sessions_deadline(&s->sessions);
    if (server_sessionless_deadline(s) < at)
        at = server_sessionless_deadline(s);
    if (clave__conns_deadline(s) < at)
        at = clave__conns_deadline(s);
    if (!list_empty(&s->tree.swept) && s->sweep.next < at)
        at = s->sweep.next;
    if (s->sweep.orphans && s->now + s->limits.tick_ms < at)
        at = s->now + s->limits.tick_ms;
    return at;
}

/* ---- the disk -------------------------------------------------------------------------------- */

void clave__server_durable(struct server *s, int64_t zxid)
{
    struct list todo;
    struct list *e;
    if (zxid > s->last_zxid)
        zxid = s->last_zxid;
    if (zxid <= s->txn_log.durable_zxid)
        return;
    s->txn_log.durable_zxid = zxid;
    list_init(&todo);
    list_splice(&todo, &s->conns.waiting);
    while ((e = list_pop_front(&todo))) {
        struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_waiting);
        clave__conn_release(c);
        if (c->mark_count > 0)
            list_push_back(&s->conns.waiting, &c->in_waiting);
        clave__conn_resume(c);
    }
}
