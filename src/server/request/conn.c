/* conn.c - one connection: its buffers, which of its output may leave, and flow control over all
 * connections together; see conn.h. The driver calls the clave__server_conn_ functions, the other
 * files of this folder write messages. No byte leaves before the zxid it depends on is durable. */
#include "server/request/conn.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

/* Replies of one connection that wait for the disk, and bytes of records not yet given to the disk.
 */
enum { MAX_UNDURABLE = 4096, MAX_PENDING = 64 * 1024 * 1024 };
/* A client that does not read is disconnected at this many times max_output. */
enum { DISCONNECT_FACTOR = 64 };
/* Bytes an idle connection keeps of each of its buffers. */
enum { KEEP_BUFFER = 1024, FIRST_MARKS = 16 };
/* How long all clients wait for one that takes no output. */
enum { NO_PROGRESS_MS = 1000 };
/* The longest frame of a client without a session: a ConnectRequest has 49 bytes. */
enum { MAX_FIRST_FRAME = 1024 };
/* The longest chunk of input from the driver, in addition to a frame. */
enum { MAX_CHUNK = 1024 * 1024 };

/* ---- what the driver has to know ------------------------------------------------------------- */

static void make_ready(struct server_conn *c)
{
    if (list_empty(&c->in_ready))
        list_push_back(&c->s->ready, &c->in_ready);
}

/* Whether the bound on the output of all connections holds this one up. Up to twice the bound, a
 * connection without output may still get a little, so that clients that read do not wait for the
 * others. */
static bool is_throttled(const struct server_conn *c)
{
    const struct server *s = c->s;
    return clave__conns_are_choked(s) ||
           (c->undurable > 0 && s->outstanding >= s->max_outstanding) ||
           (c->undelivered > 0 && s->undelivered >= s->max_undelivered);
}

static bool is_full(const struct server_conn *c)
{
    return is_throttled(c) || clave__buf_len(&c->out) >= c->s->max_output ||
           c->undurable >= MAX_UNDURABLE ||
           (c->undurable > 0 && clave__buf_len(&c->s->pending) >= MAX_PENDING);
}

bool clave__server_conn_wants_read(const struct server_conn *c)
{
    return clave__conn_is_open(c) && !is_full(c);
}

bool clave__server_conn_wants_close(const struct server_conn *c)
{
    return !clave__conn_is_open(c) && c->mark_count == 0;
}

static void update_wants_read(struct server_conn *c)
{
    bool wants = clave__server_conn_wants_read(c);
    if (!wants && clave__conn_is_open(c) && list_empty(&c->in_choked) &&
        clave__conns_are_choked(c->s))
        list_push_back(&c->s->choked, &c->in_choked);
    if (wants != c->wanted_read)
        make_ready(c);
    c->wanted_read = wants;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Updates the totals; called after every change to the output. What counts is its memory. */
static void count_output(struct server_conn *c, bool some_taken)
{
    struct server *s = c->s;
    size_t now = clave__buf_len(&c->out) > 0 ? c->out.cap : 0;
    if (c->undelivered == 0 || now == 0 || some_taken) {
        list_remove(&c->in_with_output);
        c->undelivered_since = s->now;
        if (now > 0)
            list_push_back(&s->with_output, &c->in_with_output);
    }
    s->undelivered = s->undelivered - c->undelivered + now;
    c->undelivered = now;
}

/* Resumes connections in the order in which they were stopped, until there is too much output
 * again. Not called while a request is being processed, since resuming processes theirs. */
static void resume_choked(struct server *s)
{
    while (!list_empty(&s->choked) && !clave__conns_are_choked(s))
        clave__conn_resume(LIST_ENTRY(list_pop_front(&s->choked), struct server_conn, in_choked));
}

static void drop_output(struct server_conn *c)
{
    c->s->outstanding -= c->undurable;
    c->undurable = 0;
    c->mark_count = 0;
    c->releasable = c->written;
    list_remove(&c->in_waiting);
    clave__buf_fini(&c->out);
    count_output(c, true);
}

void clave__conn_close(struct server_conn *c)
{
    if (!clave__conn_is_open(c))
        return;
    c->state = CONN_CLOSING;
    if (c->session)
        c->session->conn = NULL;
    c->session = NULL;
    list_remove(&c->in_sessionless);
    list_remove(&c->in_choked);
    make_ready(c);
}

void clave__conn_cut(struct server_conn *c)
{
    clave__conn_close(c);
    drop_output(c);
}

bool clave__conns_are_choked(const struct server *s)
{
    return s->undelivered / 2 >= s->max_undelivered;
}

int64_t clave__conns_deadline(const struct server *s)
{
    if (list_empty(&s->with_output) || !clave__conns_are_choked(s))
        return INT64_MAX;
    return LIST_ENTRY(s->with_output.next, struct server_conn, in_with_output)->undelivered_since +
           NO_PROGRESS_MS;
}

void clave__conns_drop_stalled(struct server *s)
{
    while (clave__conns_deadline(s) <= s->now) {
        struct server_conn *c = LIST_ENTRY(s->with_output.next, struct server_conn, in_with_output);
        if (c->mark_count > 0) { /* its output waits for our disk */
            count_output(c, true);
            continue;
        }
        clave__log(&s->log, CLAVE_LOG_WARN, "%s is disconnected: it does not read its output",
                   c->peer.text);
        clave__conn_cut(c);
    }
    resume_choked(s);
}

/* ---- which output may leave ------------------------------------------------------------------ */

static struct mark *mark_at(const struct server_conn *c, size_t i)
{
    return &c->marks[(c->mark_head + i) & (c->mark_cap - 1)];
}

static bool grow_marks(struct server_conn *c)
{
    size_t cap = c->mark_cap ? c->mark_cap * 2 : FIRST_MARKS;
    struct mark *grown = clave__mem_alloc(&c->s->mem, cap * sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = 0; i < c->mark_count; i++)
        grown[i] = *mark_at(c, i);
    clave__mem_free(&c->s->mem, c->marks);
    c->marks = grown;
    c->mark_cap = cap;
    c->mark_head = 0;
    return true;
}

/* Ties the output up to its present end to the newest zxid. */
static bool put_mark(struct server_conn *c, bool reply)
{
    const struct server *s = c->s;
    struct mark *last = c->mark_count ? mark_at(c, c->mark_count - 1) : NULL;
    if (!last || last->zxid != s->last_zxid || last->since != s->now) {
        if (c->mark_count == c->mark_cap && !grow_marks(c))
            return false;
        last = mark_at(c, c->mark_count++);
        *last = (struct mark){.zxid = s->last_zxid, .since = s->now};
    }
    last->end = c->written;
    last->replies += reply ? 1 : 0;
    return true;
}

static void note_replies(struct server_conn *c, int64_t since, uint32_t replies)
{
    int64_t ms = c->s->now - since;
    if (replies == 0)
        return;
    clave__latency_note(&c->latency, ms, replies);
    clave__latency_note(&c->s->latency, ms, replies);
    c->last_reply_at = c->s->now;
    c->last_latency = ms;
}

/* A message was written, and depends on everything applied so far. */
static void conn_settle(struct server_conn *c, bool reply)
{
    struct server *s = c->s;
    s->packets_sent++;
    c->sent++;
    if (c->mark_count == 0 && s->last_zxid <= s->durable_zxid) {
        c->releasable = c->written;
        note_replies(c, s->now, reply ? 1 : 0);
        make_ready(c);
        return;
    }
    if (!put_mark(c, reply)) {
        clave__conn_cut(c);
        return;
    }
    if (list_empty(&c->in_waiting))
        list_push_back(&s->waiting, &c->in_waiting);
    c->undurable += reply ? 1 : 0;
    s->outstanding += reply ? 1 : 0;
}

void clave__conn_release(struct server_conn *c)
{
    struct server *s = c->s;
    while (c->mark_count > 0 && mark_at(c, 0)->zxid <= s->durable_zxid) {
        const struct mark *m = mark_at(c, 0);
        c->releasable = m->end;
        c->undurable -= m->replies;
        s->outstanding -= m->replies;
        note_replies(c, m->since, m->replies);
        c->mark_head = (c->mark_head + 1) & (c->mark_cap - 1);
        c->mark_count--;
        make_ready(c);
    }
    if (c->mark_count == 0)
        list_remove(&c->in_waiting);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct message clave__message_begin(struct server_conn *c)
{
    struct message m = {.c = c, .w = clave__jwriter(&c->out)};
    m.begin = clave__frame_begin(&m.w);
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
        clave__log(&c->s->log, CLAVE_LOG_WARN, "%s is disconnected: %s", c->peer.text,
                   err == CLAVE_ENOMEM ? "out of memory" : "it does not read its output");
        clave__conn_cut(c);
        return;
    }
    c->written += clave__buf_len(&c->out) - m->begin;
    count_output(c, false);
    conn_settle(c, reply);
}

void clave__message_header(struct message *m, int32_t xid, int64_t zxid, clave_err err)
{
    struct wire_reply_header h = {xid, zxid, err};
    clave__wire_put_reply_header(&m->w, &h);
    if (zxid > 0)
        m->c->last_zxid = zxid;
}

void clave__conn_reply(struct server_conn *c, int32_t xid, int64_t zxid, clave_err err)
{
    struct message m = clave__message_begin(c);
    clave__message_header(&m, xid, zxid, err);
    clave__message_end(&m, true);
}

void clave__conn_send_event(struct server_conn *c, int64_t zxid, const struct watch_event *ev)
{
    if (!clave__conn_is_open(c))
        return;
    struct message m = clave__message_begin(c);
    struct wire_reply_header h = {XID_EVENT, zxid, 0};
    struct wire_event e = {ev->type, STATE_SYNC_CONNECTED, ev->path};
    clave__wire_put_reply_header(&m.w, &h);
    clave__wire_put_event(&m.w, &e);
    clave__message_end(&m, false);
}

void clave__conn_send_text(struct server_conn *c, const char *text, size_t n)
{
    if (clave__buf_append(&c->out, text, n) != CLAVE_OK) {
        clave__conn_cut(c);
        return;
    }
    c->written += n;
    count_output(c, false);
    c->releasable = c->written;
    c->s->packets_sent++;
    c->sent++;
    make_ready(c);
}

/* ---- output ---------------------------------------------------------------------------------- */

size_t clave__server_conn_output(struct server_conn *c, const void **p)
{
    *p = clave__buf_bytes(&c->out);
    return clave__buf_len(&c->out) - (size_t)(c->written - c->releasable);
}

void clave__server_conn_sent(struct server_conn *c, size_t n)
{
    if (n == 0)
        return;
    clave__buf_consume(&c->out, n);
    if (clave__buf_len(&c->out) == 0)
        clave__buf_trim(&c->out, KEEP_BUFFER);
    count_output(c, true);
    clave__conn_resume(c);
    resume_choked(c->s);
}

/* ---- input ----------------------------------------------------------------------------------- */

static void take_frame(struct server_conn *c, const uint8_t *p, size_t n)
{
    if (c->state == CONN_NEW)
        clave__conn_connect(c, p, n);
    else
        clave__conn_request(c, p, n);
}

/* The input is not a frame: a four-letter word, or not our protocol. */
static void refuse_frame(struct server_conn *c, int why, size_t n)
{
    if (c->state == CONN_NEW && why == CLAVE_ETOOBIG) {
        clave__conn_word(c, (uint32_t)n);
        return;
    }
    if (why == CLAVE_ETOOBIG)
        clave__log(&c->s->log, CLAVE_LOG_WARN,
                   "%s is closed: it sent a request of %zu bytes, the limit is %zu", c->peer.text,
                   n, c->frames.max_frame);
    else
        clave__log(&c->s->log, CLAVE_LOG_WARN, "%s is closed: %s", c->peer.text,
                   why == CLAVE_ENOMEM ? "out of memory" : "it sent a frame of impossible length");
    clave__conn_close(c);
}

/* Processes frames while there is room for their output; returns how many bytes were used. */
static size_t conn_take(struct server_conn *c, const void *p, size_t n)
{
    const uint8_t *frame;
    size_t len;
    clave__frame_feed(&c->frames, p, n);
    while (clave__conn_is_open(c) && !is_full(c)) {
        int rc = clave__frame_next(&c->frames, &frame, &len);
        if (rc == 0)
            break;
        if (rc > 0)
            take_frame(c, frame, len);
        else
            refuse_frame(c, rc, len);
    }
    size_t left = c->frames.in_len;
    c->frames.in = NULL;
    c->frames.in_len = 0;
    clave__buf_trim(&c->frames.held, KEEP_BUFFER);
    return n - left;
}

static void conn_keep(struct server_conn *c, const void *p, size_t n)
{
    if (n > 0 && clave__conn_is_open(c) && clave__buf_append(&c->backlog, p, n) != CLAVE_OK)
        clave__conn_cut(c);
}

void clave__server_conn_input(struct server_conn *c, const void *p, size_t n)
{
    if (!clave__conn_is_open(c))
        return;
    if (clave__buf_len(&c->backlog) > 0) {
        conn_keep(c, p, n);
        clave__conn_resume(c);
        return;
    }
    size_t used = conn_take(c, p, n);
    conn_keep(c, (const uint8_t *)p + used, n - used);
    update_wants_read(c);
}

void clave__conn_resume(struct server_conn *c)
{
    size_t n = clave__buf_len(&c->backlog);
    if (n > 0 && clave__server_conn_wants_read(c)) {
        size_t used = conn_take(c, clave__buf_bytes(&c->backlog), n);
        clave__buf_consume(&c->backlog, used);
        clave__buf_trim(&c->backlog, 0);
    }
    update_wants_read(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct server_conn *clave__server_accept(struct server *s, const struct peer_addr *peer, void *user)
{
    bool room = s->serving && s->nconns < s->max_connections;
    struct server_conn *c = room ? clave__mem_zalloc(&s->mem, sizeof *c) : NULL;
    if (!c)
        return NULL;
    c->s = s;
    c->user = user;
    c->peer = *peer;
    c->wanted_read = true;
    c->accepted_at = c->last_reply_at = s->now;
    clave__frame_reader_init(&c->frames, &s->mem, s->max_frame);
    if (c->frames.max_frame > MAX_FIRST_FRAME)
        c->frames.max_frame = MAX_FIRST_FRAME;
    clave__buf_init(&c->backlog, &s->mem, s->max_frame + MAX_CHUNK);
    clave__buf_init(&c->out, &s->mem, s->max_output * DISCONNECT_FACTOR);
    clave__identities_init(&c->who, &s->mem, peer);
    c->who.knows_x509 = s->x509;
    clave__watcher_init(&c->watcher);
    list_push_back(&s->conns, &c->in_conns);
    list_push_back(&s->sessionless, &c->in_sessionless);
    list_init(&c->in_ready);
    list_init(&c->in_waiting);
    list_init(&c->in_with_output);
    list_init(&c->in_choked);
    s->nconns++;
    return c;
}

static bool is_one_line(struct jbytes text)
{
    for (int32_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ')
            return false;
    return true;
}

clave_err clave__server_conn_certify(struct server_conn *c, const void *der, size_t n)
{
    assert(c->state != CONN_SERVING);
    clave_err err = clave__identities_certify(&c->who, der, n);
    if (err != CLAVE_OK)
        return err;
    struct jbytes subject = clave__identities_subject(&c->who);
    bool fit = is_one_line(subject);
    clave__identities_note_x509_super(&c->who, clave__jbytes(c->s->x509_super));
    clave__log(&c->s->log, CLAVE_LOG_INFO, "%s is %.*s%s", c->peer.text, fit ? (int)subject.n : 1,
               fit ? subject.p : "?", c->who.is_super ? ", the super user" : "");
    return CLAVE_OK;
}

void *clave__server_conn_user(const struct server_conn *c)
{
    return c->user;
}

void clave__server_conn_closed(struct server_conn *c)
{
    struct server *s = c->s;
    clave__conn_cut(c);
    list_remove(&c->in_conns);
    list_remove(&c->in_ready);
    s->nconns--;
    clave__watcher_fini(&s->watches, &c->watcher);
    clave__identities_fini(&c->who);
    clave__frame_reader_fini(&c->frames);
    clave__buf_fini(&c->backlog);
    clave__mem_free(&s->mem, c->marks);
    clave__mem_free(&s->mem, c);
    resume_choked(s);
}

struct server_conn *clave__server_next_ready(struct server *s)
{
    struct list *e = list_pop_front(&s->ready);
    return e ? LIST_ENTRY(e, struct server_conn, in_ready) : NULL;
}
