/* conn.c - a connection as its driver sees it: accepted, fed with input, gone; and flow control
 * across all connections. The driver calls the clave__server_conn_ functions. A complete frame goes
 * to session.c, request.c or, if it is a four-letter word, four_letter.c. Answering and closing are
 * in conn_output.c; how much input a turn takes from each connection is decided in fair_schedule.c.
 *
 * What must stay true: input that cannot be taken now stays in the backlog, in order, until its
 * connection's turn comes. Connections that were paused because of the total output resume in the
 * order in which they were paused. */
#include "server/connection/conn.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

/* How many bytes of each buffer an idle connection keeps. */
enum { KEEP_BUFFER = 1024 };
/* How many watches are dropped together with their connection; the rest are dropped a few per
 * turn. */
enum { DROPPED_AT_ONCE = 16 };
/* How many light connections (conn.h) may send their output before a heavy one does. */
enum { LIGHT_IN_A_ROW = 16 };

/* ---- accepting ------------------------------------------------------------------------------- */

/* The longest frame accepted from a client without a session. A ConnectRequest has 49 bytes. */
enum { MAX_FIRST_FRAME = 1024 };
/* The longest chunk of input that the driver passes in, beyond a frame. */
enum { MAX_CHUNK = 1024 * 1024 };
/* A client that does not read is disconnected when its output reaches this many times
 * max_output. */
enum { DISCONNECT_FACTOR = 512 };

bool clave__server_is_full(const struct server *s)
{
    return s->conns.n >= s->limits.max_connections;
}

void clave__server_note_rejected(struct server *s)
{
    s->counts.connections_rejected++;
}

struct server_conn *clave__server_accept(struct server *s, const struct peer_addr *peer, void *user)
{
    bool room = s->serving && !clave__server_is_full(s);
    struct server_conn *c = room ? clave__mem_zalloc(&s->mem, sizeof *c) : NULL;
    if (!c)
        return NULL;
    c->s = s;
    c->user = user;
    c->peer = *peer;
    c->wanted_read = true;
    c->accepted_at = c->last_reply_at = s->now;
    c->start_by = s->now + s->limits.sessionless_ms;
    c->unread_since = INT64_MAX;
    clave__frame_reader_init(&c->frames, &s->mem, s->limits.max_frame);
    if (c->frames.max_frame > MAX_FIRST_FRAME)
        c->frames.max_frame = MAX_FIRST_FRAME;
    clave__buf_init(&c->backlog, &s->mem, s->limits.max_frame + MAX_CHUNK);
    clave__buf_init(&c->out, &s->mem, s->limits.max_output * DISCONNECT_FACTOR);
    clave__identities_init(&c->who, &s->mem, peer);
    c->who.knows_x509 = s->x509;
    clave__identities_note_super_uid(&c->who, clave__jbytes(s->access.super_uid));
    clave__watcher_init(&c->watcher);
    list_push_back(&s->conns.all, &c->in_conns);
    list_push_back(&s->conns.sessionless, &c->in_sessionless);
    list_init(&c->in_ready);
    list_init(&c->in_waiting);
    list_init(&c->in_with_output);
    list_init(&c->in_paused);
    list_init(&c->in_left);
    list_init(&c->slow);
    s->conns.n++;
    return c;
}

/* ---- flow control ---------------------------------------------------------------------------- */

static void conn_update_wants_read(struct server_conn *c)
{
    bool wants = clave__server_conn_wants_read(c);
    if (!wants && clave__conn_is_open(c) && list_empty(&c->in_paused) &&
        clave__conns_are_full(c->s))
        list_push_back(&c->s->conns.paused, &c->in_paused);
    if (wants != c->wanted_read)
        clave__conn_mark_ready(c);
    c->wanted_read = wants;
}

/* Resumes paused connections in the order in which they were paused, until there is too much output
 * again. Must not be called while a request is being processed, because resuming a connection
 * processes its requests. */
static void conn_resume_paused(struct server *s)
{
    while (!list_empty(&s->conns.paused) && !clave__conns_are_full(s))
        clave__conn_resume(
            LIST_ENTRY(list_pop_front(&s->conns.paused), struct server_conn, in_paused));
}

void clave__conns_drop_stalled(struct server *s)
{
    struct server_conn *c;
    while ((c = clave__conns_next_stalled(s))) {
        clave__conn_log(c, CLAVE_LOG_WARN, "%s is disconnected: it does not read its output",
                        c->peer.text);
        clave__conn_cut(c);
    }
    conn_resume_paused(s);
}

void clave__server_conn_sent(struct server_conn *c, size_t n)
{
    if (n == 0)
        return;
    assert(n <= clave__buf_len(&c->out) - (size_t)(c->written - c->releasable));
    clave__buf_consume(&c->out, n);
    if (clave__buf_len(&c->out) == 0)
        clave__buf_trim(&c->out, KEEP_BUFFER);
    clave__conn_count_output(c, true);
    clave__word_go_on(c);
    clave__conn_resume(c);
    conn_resume_paused(c->s);
}

/* ---- input ----------------------------------------------------------------------------------- */

static void conn_take_frame(struct server_conn *c, const uint8_t *p, size_t n)
{
    if (c->state == CONN_NEW)
        clave__conn_connect(c, p, n);
    else
        clave__conn_request(c, p, n);
}

/* Handles input that is not a frame: a four-letter word, or something that is not ZooKeeper's
 * protocol. */
static void conn_refuse_frame(struct server_conn *c, int why, size_t n)
{
    if (c->state == CONN_NEW && why == CLAVE_ETOOBIG) {
        clave__conn_word(c, (uint32_t)n);
        return;
    }
    if (why == CLAVE_ETOOBIG)
        (void)clave__client_limit_allows(c, LIMIT_REQUEST,
                                         n); /* counts it, and names the flag in the log */
    else
        clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: %s", c->peer.text,
                        why == CLAVE_ENOMEM ? "out of memory"
                                            : "it sent a frame of impossible length");
    clave__conn_close(c);
}

/* Processes frames as long as there is room for their output and the turn has room for them.
 * Returns how many bytes were used. */
static size_t conn_take(struct server_conn *c, const void *p, size_t n)
{
    const uint8_t *frame;
    size_t len;
    clave__frame_feed(&c->frames, p, n);
    while (clave__conn_is_open(c) && !clave__conn_is_full(c) && !clave__fair_schedule_is_full(c)) {
        const size_t before = c->s->turn.looks;
        int rc = clave__frame_next(&c->frames, &frame, &len);
        if (rc == 0)
            break;
        c->s->counts.taken++;
        c->s->turn.looks += LOOKS_A_READ + (rc > 0 ? len / 1024 * LOOKS_A_KIB : 0);
        if (rc > 0)
            conn_take_frame(c, frame, len);
        else
            conn_refuse_frame(c, rc, len);
        clave__fair_schedule_charge(c, c->s->turn.looks - before);
    }
    size_t left = c->frames.in_len;
    c->frames.in = NULL;
    c->frames.in_len = 0;
    clave__buf_trim(&c->frames.held, KEEP_BUFFER);
    return n - left;
}

static void conn_keep(struct server_conn *c, const void *p, size_t n)
{
    if (n == 0 || !clave__conn_is_open(c))
        return;
    clave__server_conn_left_unread(c);
    if (clave__buf_append(&c->backlog, p, n) != CLAVE_OK)
        clave__conn_cut_without_memory(c);
}

void clave__server_conn_input(struct server_conn *c, const void *p, size_t n)
{
    c->s->counts.bytes_received += n;
    if (!clave__conn_is_open(c))
        return;
    if (clave__buf_len(&c->backlog) > 0) {
        conn_keep(c, p, n);
        clave__conn_resume(c);
        return;
    }
    size_t used = conn_take(c, p, n);
    if (used == n)
        c->unread_since = INT64_MAX;
    conn_keep(c, (const uint8_t *)p + used, n - used);
    clave__fair_schedule_leave(c, used > 0);
    conn_update_wants_read(c);
}

uint64_t clave__server_taken(const struct server *s)
{
    return s->counts.taken;
}

void clave__conn_resume(struct server_conn *c)
{
    size_t n = clave__buf_len(&c->backlog), used = 0;
    if (n > 0 && clave__conn_is_open(c) && !clave__conn_is_full(c)) {
        used = conn_take(c, clave__buf_bytes(&c->backlog), n);
        clave__buf_consume(&c->backlog, used);
        clave__buf_trim(&c->backlog, 0);
        if (clave__buf_len(&c->backlog) == 0)
            c->unread_since = INT64_MAX;
    }
    clave__fair_schedule_leave(c, used > 0);
    conn_update_wants_read(c);
}

void clave__conns_take_left(struct server *s)
{
    struct server_conn *c;
    clave__fair_schedule_begin(s);
    while ((c = clave__fair_schedule_next(s)))
        clave__conn_resume(c);
}

void clave__server_conn_left_unread(struct server_conn *c)
{
    if (c->unread_since > c->s->now)
        c->unread_since = c->s->now;
}

/* ---- life ------------------------------------------------------------------------------------ */

void clave__server_conn_set_waiting(struct server_conn *c, bool waiting)
{
    c->start_by = waiting ? INT64_MAX : c->s->now + c->s->limits.sessionless_ms;
}

static bool conn_is_one_line(struct jbytes text)
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
    bool fit = conn_is_one_line(subject);
    clave__identities_note_x509_super(&c->who, clave__jbytes(c->s->access.x509_super));
    clave__conn_log(c, CLAVE_LOG_INFO, "%s is %.*s%s", c->peer.text, fit ? (int)subject.n : 1,
                    fit ? subject.p : "?", c->who.is_super ? ", the super user" : "");
    return CLAVE_OK;
}

bool clave__server_conn_has_session(const struct server_conn *c)
{
    return c->session != NULL;
}

void *clave__server_conn_user(const struct server_conn *c)
{
    return c->user;
}

/* Drops up to *most watches of a closed connection, and frees the connection after its last one.
 * Until then it stays closed and gets no events. Returns true if it was freed. */
static bool conn_drop_watches(struct server_conn *c, size_t *most)
{
    assert(!clave__conn_is_open(c) && !c->session);
    struct server *s = c->s;
    if (!clave__watcher_drop(&s->watches, &c->watcher, most))
        return false;
    list_remove(&c->in_conns);
    clave__mem_free(&s->mem, c);
    return true;
}

void clave__conns_drop_watches(struct server *s, size_t most)
{
    while (!list_empty(&s->conns.gone) &&
           conn_drop_watches(LIST_ENTRY(s->conns.gone.next, struct server_conn, in_conns), &most))
        continue;
}

void clave__server_conn_closed(struct server_conn *c)
{
    struct server *s = c->s;
    size_t most = DROPPED_AT_ONCE;
    s->counts.connections_dropped += clave__conn_is_open(c);
    clave__conn_cut(c);
    clave__word_end(c);
    list_cursors_leave(&s->conns.cursors, &c->in_conns);
    list_remove(&c->in_conns);
    list_remove(&c->in_ready);
    assert(s->conns.n > 0);
    s->conns.n--;
    clave__slow_requests_drop(c);
    clave__identities_fini(&c->who);
    clave__frame_reader_fini(&c->frames);
    clave__buf_fini(&c->backlog);
    clave__mem_free(&s->mem, c->marks);
    list_push_back(&s->conns.gone, &c->in_conns);
    conn_drop_watches(c, &most);
    conn_resume_paused(s);
}

/* Light connections go first, so that a short answer need not wait while long ones are sent, but
 * after LIGHT_IN_A_ROW of them a heavy one has its turn. */
struct server_conn *clave__server_next_ready(struct server *s)
{
    struct list *light = &s->conns.ready[TURN_LIGHT], *heavy = &s->conns.ready[TURN_HEAVY];
    bool is_light =
        !list_empty(light) && (list_empty(heavy) || s->conns.light_in_a_row < LIGHT_IN_A_ROW);
    s->conns.light_in_a_row = is_light ? s->conns.light_in_a_row + 1 : 0;
    struct list *e = list_pop_front(is_light ? light : heavy);
    return e ? LIST_ENTRY(e, struct server_conn, in_ready) : NULL;
}
