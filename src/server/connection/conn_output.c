/* conn_output.c - the output of a connection: composing messages, deciding when each may leave,
 * bounding how much may queue up, and closing, which drops what is queued. See conn.h. Every path
 * that answers or refuses a client ends here; nothing in this file looks at input.
 *
 * How it works: messages are appended to `out`. Each one depends on a transaction, and a ring of
 * marks records which part of the output depends on which; clave__conn_release moves `releasable`
 * forward as transactions become durable. A client that does not read its answers costs memory, so
 * a connection is not read while it has max_output bytes queued or thousands of replies waiting for
 * the disk. While all connections together have more than max_undelivered queued, no connection
 * that has output is read; at twice that, none is read at all, and the client that has gone longest
 * without taking any output is disconnected.
 *
 * What must stay true: no byte leaves before the transaction that it shows is durable. A closed
 * connection has no session and takes no input. Every connection whose output is counted in
 * conns.undelivered is in conns.with_output. */
#include <assert.h>
#include <stdarg.h>

#include "base/memory.h"
#include "server/connection/conn.h"
#include "wire/opcode.h"

enum { FIRST_MARKS = 4 };
/* Producing this much of an answer takes about as long as a small request. */
enum { BYTES_A_REQUEST = 1024 };

/* ---- telling the driver and the log ---------------------------------------------------------- */

void clave__conn_mark_ready(struct server_conn *c)
{
    if (list_empty(&c->in_ready))
        list_push_back(&c->s->conns.ready[clave__fair_schedule_class_of(c)], &c->in_ready);
}

void clave__conn_log(const struct server_conn *c, int level, const char *fmt, ...)
{
    const struct log_about about = {.connection = c->peer.text,
                                    .session = c->session ? c->session->id : c->told_id};
    va_list ap;
    va_start(ap, fmt);
    clave__log_list(&c->s->log, level, &about, fmt, ap);
    va_end(ap);
}

/* ---- closing --------------------------------------------------------------------------------- */

void clave__conn_end_list(struct server_conn *c)
{
    c->list_goes_on = false;
    clave__conn_mark_ready(c);
}

static void conn_drop_output(struct server_conn *c)
{
    assert(c->s->counts.outstanding >= c->undurable);
    c->s->counts.outstanding -= c->undurable;
    c->undurable = 0;
    c->mark_count = 0;
    c->releasable = c->written;
    list_remove(&c->in_waiting);
    clave__buf_fini(&c->out);
    clave__conn_count_output(c, true);
}

void clave__conn_close(struct server_conn *c)
{
    if (!clave__conn_is_open(c))
        return;
    c->state = CONN_CLOSING;
    if (c->session)
        clave__session_detach(&c->s->sessions, c->session, &c->peer);
    c->session = NULL;
    list_remove(&c->in_sessionless);
    list_remove(&c->in_paused);
    list_remove(&c->in_left);
    clave__conn_mark_ready(c);
}

void clave__conn_cut(struct server_conn *c)
{
    clave__conn_close(c);
    clave__conn_end_list(c);
    conn_drop_output(c);
}

void clave__conn_cut_without_memory(struct server_conn *c)
{
    clave__conn_log(c, CLAVE_LOG_WARN, "%s is disconnected: out of memory", c->peer.text);
    clave__conn_cut(c);
}

bool clave__server_conn_wants_close(const struct server_conn *c)
{
    return !clave__conn_is_open(c) && c->mark_count == 0 && !c->list_goes_on;
}

/* ---- how much output may queue up ------------------------------------------------------------ */

/* Once the output of all connections is at twice its bound, how long the server waits for a client
 * that takes none before it disconnects that client. */
enum { NO_PROGRESS_MS = 1000 };
/* Above either of these, a connection that has replies waiting for the disk is not read: its number
 * of such replies, and the bytes of log records that the driver has not taken yet. */
enum { MAX_UNDURABLE = 4096, MAX_PENDING = 64 * 1024 * 1024 };

/* True if this connection has to pause because of what all connections together have queued.
 * Between the bound and twice the bound, a connection without output may still be read, so that
 * clients that do read their answers need not wait for those that do not. */
static bool conn_is_throttled(const struct server_conn *c)
{
    const struct server *s = c->s;
    return clave__conns_are_full(s) ||
           (c->undurable > 0 && s->counts.outstanding >= s->limits.max_outstanding) ||
           (c->undelivered > 0 && s->conns.undelivered >= s->limits.max_undelivered);
}

bool clave__conn_is_full(const struct server_conn *c)
{
    return conn_is_throttled(c) || clave__buf_len(&c->out) >= c->s->limits.max_output ||
           c->undurable >= MAX_UNDURABLE ||
           (c->undurable > 0 && (clave__buf_len(&c->s->txn_log.pending) >= MAX_PENDING ||
                                 clave__server_log_waits(c->s)));
}

bool clave__conns_are_full(const struct server *s)
{
    return s->conns.undelivered / 2 >= s->limits.max_undelivered;
}

bool clave__server_conn_wants_read(const struct server_conn *c)
{
    return clave__conn_is_open(c) && !clave__conn_is_full(c) && list_empty(&c->in_left);
}

void clave__conn_count_output(struct server_conn *c, bool some_taken)
{
    struct server *s = c->s;
    size_t now = clave__buf_len(&c->out) > 0 ? c->out.cap : 0;
    if (c->undelivered == 0 || now == 0 || some_taken) {
        list_remove(&c->in_with_output);
        c->undelivered_since = s->now;
        if (now > 0)
            list_push_back(&s->conns.with_output, &c->in_with_output);
    }
    assert(s->conns.undelivered >= c->undelivered);
    s->conns.undelivered = s->conns.undelivered - c->undelivered + now;
    c->undelivered = now;
}

int64_t clave__conns_deadline(const struct server *s)
{
    if (list_empty(&s->conns.with_output) || !clave__conns_are_full(s))
        return INT64_MAX;
    return LIST_ENTRY(s->conns.with_output.next, struct server_conn, in_with_output)
               ->undelivered_since +
           NO_PROGRESS_MS;
}

struct server_conn *clave__conns_next_stalled(struct server *s)
{
    while (clave__conns_deadline(s) <= s->now) {
        struct server_conn *c =
            LIST_ENTRY(s->conns.with_output.next, struct server_conn, in_with_output);
        if (c->mark_count == 0)
            return c;
        clave__conn_count_output(c, true); /* it waits for our disk, not for its client */
    }
    return NULL;
}

/* ---- when output may leave ------------------------------------------------------------------- */

static struct mark *conn_mark_at(const struct server_conn *c, size_t i)
{
    assert(i < c->mark_cap);
    return &c->marks[(c->mark_head + i) & (c->mark_cap - 1)];
}

static bool conn_grow_marks(struct server_conn *c)
{
    assert(c->mark_count == c->mark_cap);
    size_t cap = c->mark_cap ? c->mark_cap * 2 : FIRST_MARKS;
    struct mark *grown = clave__mem_alloc(&c->s->mem, cap * sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = 0; i < c->mark_count; i++)
        grown[i] = *conn_mark_at(c, i);
    clave__mem_free(&c->s->mem, c->marks);
    c->marks = grown;
    c->mark_cap = cap;
    c->mark_head = 0;
    return true;
}

/* The transaction that must be durable before a message that shows transaction `shows` may leave.
 * Messages leave in order, so it is at least the one that the output queued before this message
 * depends on. As of this transaction the message describes the tree correctly: nothing that it
 * shows has changed since `shows`. */
static int64_t conn_depends_on(const struct server_conn *c, int64_t shows)
{
    const struct server *s = c->s;
    int64_t queued =
        c->mark_count ? conn_mark_at(c, c->mark_count - 1)->zxid : s->txn_log.durable_zxid;
    int64_t zxid = shows < s->last_zxid
                       ? shows
                       : s->last_zxid; /* data written by another server may name a later zxid */
    return zxid > queued ? zxid : queued;
}

/* Counts the message just written: nothing if it is not a reply. */
static struct replies conn_replies(const struct server_conn *c, bool reply)
{
    bool writes = reply && clave__opcode(c->last_op)->flags & OPCODE_WRITE;
    return (struct replies){reply, writes};
}

/* Makes the output up to its present end depend on transaction `zxid`. Returns false if there is no
 * memory for another mark. */
static bool conn_put_mark(struct server_conn *c, int64_t zxid, struct replies replies)
{
    const struct server *s = c->s;
    struct mark *last = c->mark_count ? conn_mark_at(c, c->mark_count - 1) : NULL;
    if (!last || last->zxid != zxid || last->since != s->now) {
        if (c->mark_count == c->mark_cap && !conn_grow_marks(c))
            return false;
        last = conn_mark_at(c, c->mark_count++);
        *last = (struct mark){.zxid = zxid, .since = s->now};
    }
    assert(last->end <= c->written);
    last->end = c->written;
    last->replies.all += replies.all;
    last->replies.writes += replies.writes;
    return true;
}

static void conn_note_replies(struct server_conn *c, int64_t since, struct replies n)
{
    struct server *s = c->s;
    int64_t ms = s->now - since;
    if (n.all == 0)
        return;
    clave__latency_note(&c->latency, ms, n.all);
    clave__latency_note(&s->counts.latency, ms, n.all);
    if (n.writes > 0)
        clave__quantiles_note(&s->counts.write_ms, s->now, ms, n.writes);
    if (n.all > n.writes)
        clave__quantiles_note(&s->counts.read_ms, s->now, ms, n.all - n.writes);
    c->last_reply_at = s->now;
    c->last_latency = ms;
}

/* Called when a message is complete: lets it leave now if what it depends on is durable, and
 * otherwise makes it wait. */
static void conn_settle(struct server_conn *c, int64_t zxid, bool reply)
{
    struct server *s = c->s;
    struct replies replies = conn_replies(c, reply);
    s->counts.packets_sent++;
    c->sent++;
    /* If marks are left, clave__server_durable has yet to come to this connection, and order must
     * be kept. */
    if (zxid <= s->txn_log.durable_zxid && c->mark_count == 0) {
        c->releasable = c->written;
        conn_note_replies(c, s->now, replies);
        clave__conn_mark_ready(c);
        return;
    }
    if (!conn_put_mark(c, zxid, replies)) {
        clave__conn_cut_without_memory(c);
        return;
    }
    if (list_empty(&c->in_waiting))
        list_push_back(&s->conns.waiting, &c->in_waiting);
    c->undurable += replies.all;
    s->counts.outstanding += replies.all;
}

void clave__conn_release(struct server_conn *c)
{
    struct server *s = c->s;
    while (c->mark_count > 0 && conn_mark_at(c, 0)->zxid <= s->txn_log.durable_zxid) {
        const struct mark *m = conn_mark_at(c, 0);
        assert(s->counts.outstanding >= m->replies.all);
        assert(m->end >= c->releasable && c->undurable >= m->replies.all);
        c->releasable = m->end;
        c->undurable -= m->replies.all;
        s->counts.outstanding -= m->replies.all;
        conn_note_replies(c, m->since, m->replies);
        c->mark_head = (c->mark_head + 1) & (c->mark_cap - 1);
        c->mark_count--;
        clave__conn_mark_ready(c);
    }
    if (c->mark_count == 0)
        list_remove(&c->in_waiting);
    clave__slow_requests_release(c);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct message clave__message_begin(struct server_conn *c, int64_t shows)
{
    struct message m = {.c = c, .w = clave__jwriter(&c->out)};
    m.zxid = conn_depends_on(c, shows);
    m.begin = clave__frame_begin(&m.w);
    m.w.most = m.begin + c->s->refused.limits[LIMIT_ANSWER].most;
    return m;
}

void clave__message_end(struct message *m, bool reply)
{
    struct server_conn *c = m->c;
    clave_err err = clave__frame_end(&m->w, m->begin);
    if (!clave__conn_is_open(c)) {
        c->out.tail = c->out.head + m->begin;
        return;
    }
    if (err != CLAVE_OK) {
        clave__conn_log(c, CLAVE_LOG_WARN, "%s is disconnected: %s", c->peer.text,
                        err == CLAVE_ENOMEM ? "out of memory" : "it does not read its output");
        clave__conn_cut(c);
        return;
    }
    size_t n = clave__buf_len(&c->out) - m->begin;
    assert(n > 0);
    c->written += n;
    c->s->counts.bytes_written += n;
    c->s->counts.taken += n / BYTES_A_REQUEST;
    c->s->turn.looks += n / 1024 * LOOKS_A_KIB;
    clave__conn_count_output(c, false);
    conn_settle(c, m->zxid, reply);
}

void clave__message_header(struct message *m, int32_t xid, int64_t zxid, clave_err err)
{
    struct wire_reply_header h = {xid, zxid, err};
    clave__wire_put_reply_header(&m->w, &h);
    m->xid = xid;
    if (zxid > 0)
        m->c->last_zxid = zxid;
}

bool clave__message_bound(struct message *m)
{
    struct server_conn *c = m->c;
    if (m->refused ||
        clave__client_limit_allows(c, LIMIT_ANSWER, clave__buf_len(&c->out) - m->begin))
        return !m->refused;
    int32_t xid = m->xid;
    c->out.tail = c->out.head + m->begin;
    *m = clave__message_begin(c, m->zxid);
    m->refused = true;
    clave__message_header(m, xid, m->zxid, CLAVE_EMARSHALLING);
    return false;
}

void clave__conn_reply(struct server_conn *c, int32_t xid, int64_t shows, clave_err err)
{
    struct message m = clave__message_begin(c, shows);
    clave__message_header(&m, xid, m.zxid, err);
    clave__message_end(&m, true);
}

void clave__conn_reply_as_apache(struct server_conn *c, int32_t xid, int64_t zxid, clave_err err)
{
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, xid, zxid, err);
    clave__message_end(&m, true);
}

void clave__conn_send_event(struct server_conn *c, int64_t shows, int64_t zxid,
                            const struct watch_event *ev)
{
    if (!clave__conn_is_open(c))
        return;
    struct message m = clave__message_begin(c, shows);
    struct wire_reply_header h = {XID_EVENT, zxid, 0};
    struct wire_event e = {ev->type, STATE_SYNC_CONNECTED, ev->path};
    clave__wire_put_reply_header(&m.w, &h);
    clave__wire_put_event(&m.w, &e);
    clave__message_end(&m, false);
    c->s->turn.looks += LOOKS_AN_EVENT;
}

void clave__conn_count_text(struct server_conn *c, size_t n, clave_err err)
{
    if (err != CLAVE_OK) {
        clave__conn_log(c, CLAVE_LOG_WARN,
                        "%s is disconnected: no memory to answer its four-letter word",
                        c->peer.text);
        clave__conn_cut(c);
        return;
    }
    if (n == 0)
        return;
    c->written += n;
    clave__conn_count_output(c, false);
    c->releasable = c->written;
    c->s->counts.packets_sent++;
    c->sent++;
    clave__conn_mark_ready(c);
}

/* ---- what the driver may send ---------------------------------------------------------------- */

size_t clave__server_conn_output(struct server_conn *c, const void **p)
{
    assert(c->written >= c->releasable && clave__buf_len(&c->out) >= c->written - c->releasable);
    *p = clave__buf_bytes(&c->out);
    return clave__buf_len(&c->out) - (size_t)(c->written - c->releasable);
}
