/* server_loop.c - a running server: its connections, the turns of its loop, what it passes to the
 * threads that write and what follows when they are done, what it takes over while running, and why
 * and how it ends. server_run.c starts and frees it.
 *
 * A connection is a channel (channel.h) with the engine above it. It is accepted or turned away,
 * takes turns to shake hands if it uses TLS and to be read (fair_reading.h), is written to, and is
 * closed. Whatever may happen to thousands of connections at once is done for a few of them in each
 * turn of the loop: accepting, TLS handshakes, closing. A TLS connection that waits for its
 * handshake is not read and has no filter yet, so it takes no memory for that.
 *
 * Each turn begins by passing the time to the engine. At its end, the connections that have output
 * are served, the log's batch and a piece of the snapshot go to the threads of runtime/store, and
 * the timer is set for what is due next. A turn that has left work undone is followed by another
 * one without a pause.
 *
 * What must stay true: nothing is acknowledged that is not on the disk, and after a fault of the
 * disk nothing is acknowledged at all. A server that is told to stop accepts nothing more, and
 * makes durable and answers what it has read, within a second. stop_enter is the only function that
 * changes the phase. The engine's bytes are never kept across a call into the engine. A connection
 * that was counted for its address is uncounted exactly once, when it begins to close. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log_line.h"
#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"
#include "runtime/server/server_run_internal.h"
#include "runtime/tls/tls_filter.h"
#include "server/store/restore.h"

struct conn {
    struct list link;
    struct list in_handshakes; /* waiting for its turn to shake hands; it is not read before */
    struct list in_hung_up;
    int why; /* why its client hung up */
    struct fair_reader reader;
    struct server_conn *engine; /* NULL: not accepted yet, or closing */
    struct address *address;    /* NULL: not counted */
    bool has_session;           /* it has, or had, a session */
    struct channel channel;
};

static struct conn *conn_of(struct channel *ch)
{
    return LIST_ENTRY(ch, struct conn, channel);
}

/* The server whose loop the channel is on. */
static struct server_run *conn_run(struct channel *ch)
{
    return LIST_ENTRY(ch->socket.handle.loop, struct server_run, loop);
}

/* How many are closed in one turn of the loop; closing a socket takes the kernel about 15 us. */
enum { CLOSED_A_TURN = 64 };

static void conn_note_session(struct conn *c)
{
    assert(c->engine);
    if (c->has_session || !clave__server_conn_has_session(c->engine))
        return;
    c->has_session = true;
    clave__address_limit_note_session(c->address);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* The client has hung up. If thousands do so at once, they are closed a few per turn. */
static void conn_hung_up(struct channel *ch, int why)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    if (r->closed < CLOSED_A_TURN) {
        clave__channel_close(ch, why);
        return;
    }
    c->why = why;
    list_push_back(&r->hung_up, &c->in_hung_up);
    clave__channel_set_reading(ch, false);
}

static void conn_on_closing(struct channel *ch, enum channel_state was, int why)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    (void)was;
    list_remove(&c->in_hung_up);
    clave__fair_reading_leave(&r->reading, &c->reader);
    r->closed++;
    if (why != 0)
        clave__run_tick(r);
    if (c->engine)
        clave__server_conn_closed(c->engine);
    c->engine = NULL;
    clave__address_limit_leave(&r->address_limit, c->address, c->has_session);
    c->address = NULL;
    list_remove(&c->in_handshakes);
}

static void conn_on_closed(struct channel *ch)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    assert(!c->engine && !c->address && r->nconns > 0);
    list_remove(&c->link);
    r->nconns--;
    free(c);
    clave__run_count(r);
}

void clave__conn_drop(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    clave__channel_close(&c->channel, 0);
}

void clave__conn_close_quiet(struct server_run *r, bool all)
{
    struct list *e = r->conns.next;
    while (e != &r->conns) {
        struct conn *c = LIST_ENTRY(e, struct conn, link);
        e = e->next;
        if (all || !c->channel.writing)
            clave__channel_close(&c->channel, 0);
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static uv_buf_t conn_buffer(struct channel *ch)
{
    struct conn *c = conn_of(ch);
    struct server_run *r = conn_run(ch);
    assert(c->engine);
    size_t n = clave__fair_reading_share(&r->reading, &c->reader, clave__server_taken(r->server));
    if (n == 0) {
        clave__server_conn_left_unread(c->engine);
        return uv_buf_init(NULL, 0);
    }
    return uv_buf_init(r->input, (unsigned)(n < RUN_INPUT_SIZE ? n : RUN_INPUT_SIZE));
}

static bool conn_input(struct channel *ch, const void *p, size_t n)
{
    assert(conn_of(ch)->engine);
    struct server_run *r = conn_run(ch);
    clave__run_tick(r);
    clave__server_conn_input(conn_of(ch)->engine, p, n);
    clave__fair_reading_count(&r->reading, n);
    conn_note_session(conn_of(ch));
    return true;
}

static size_t conn_output(struct channel *ch, const void **p)
{
    return clave__server_conn_output(conn_of(ch)->engine, p);
}

static void conn_sent(struct channel *ch, size_t n)
{
    conn_run(ch)->sent += n;
    clave__server_conn_sent(conn_of(ch)->engine, n);
}

static bool conn_is_done(struct channel *ch)
{
    return clave__server_conn_wants_close(conn_of(ch)->engine);
}

static void conn_set_reading(struct conn *c)
{
    assert(c->engine);
    bool serving = conn_run(&c->channel)->phase != RUN_STOPPING && list_empty(&c->in_handshakes) &&
                   list_empty(&c->in_hung_up) && !clave__fair_reader_is_declined(&c->reader);
    bool wanted = serving && clave__server_conn_wants_read(c->engine);
    if (!wanted)
        clave__fair_reading_pass(&conn_run(&c->channel)->reading, &c->reader);
    clave__channel_set_reading(&c->channel, wanted);
}

void clave__conn_serve(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    while (clave__channel_write(&c->channel))
        continue;
    if (clave__channel_is_live(&c->channel))
        conn_set_reading(c);
}

static void conn_drained(struct channel *ch)
{
    clave__run_tick(conn_run(ch));
    clave__conn_serve(conn_of(ch)->engine);
}

/* The engine's answers are sent at the end of the pass, but messages of a filter (TLS) must be sent
 * here. */
static void conn_received(struct channel *ch)
{
    if (ch->filter)
        conn_drained(ch);
    else
        conn_set_reading(conn_of(ch)); /* now, or libuv keeps reading */
}

static const struct channel_ops conn_channel = {
    .buffer = conn_buffer,
    .input = conn_input,
    .output = conn_output,
    .sent = conn_sent,
    .is_done = conn_is_done,
    .received = conn_received,
    .drained = conn_drained,
    .hung_up = conn_hung_up,
    .closing = conn_on_closing,
    .closed = conn_on_closed,
};

/* ---- a new one, and turns of the loop -------------------------------------------------------- */

static struct conn *conn_new(struct server_run *r, int fd, bool is_unix, struct address *a)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c) {
        clave__address_limit_leave(&r->address_limit, a, false);
        close(fd);
        return NULL;
    }
    c->address = a;
    list_init(&c->in_handshakes);
    list_init(&c->in_hung_up);
    clave__fair_reader_init(&c->reader);
    clave__channel_init(&c->channel, &conn_channel, &r->mem);
    if (clave__channel_adopt(&c->channel, &r->loop, fd, !is_unix) != 0) {
        clave__address_limit_leave(&r->address_limit, a, false);
        free(c);
        return NULL;
    }
    list_push_back(&r->conns, &c->link);
    r->nconns++;
    clave__run_count(r);
    return c;
}

static void conn_resume(struct fair_reader *reader)
{
    conn_set_reading(LIST_ENTRY(reader, struct conn, reader));
}

/* Called at the end of a turn: continues what it left undone. Returns true if something is left. */
static bool conns_go_on(struct server_run *r)
{
    while (!list_empty(&r->hung_up) && r->closed < CLOSED_A_TURN) {
        struct conn *c = LIST_ENTRY(r->hung_up.next, struct conn, in_hung_up);
        clave__channel_close(&c->channel, c->why);
    }
    r->closed = 0;
    clave__fair_reading_begin_turn(&r->reading, clave__server_taken(r->server), conn_resume);
    return !list_empty(&r->hung_up) || clave__fair_reading_has_more(&r->reading);
}

/* ---- TLS handshakes, by turns ---------------------------------------------------------------- */

static bool handshake_secured(struct channel *ch, struct tls *t)
{
    const void *der;
    size_t n = clave__tls_subject(t, &der);
    return n == 0 || clave__server_conn_certify(conn_of(ch)->engine, der, n) == CLAVE_OK;
}

/* The handshake has failed. The client may need some time to read why, and could not read it at all
 * if the socket were closed while it has unread bytes from the client. So it gets as long as any
 * connection without a session. */
static bool handshake_failed(struct channel *ch, struct tls *t)
{
    bool turned_away = ch->state == CHANNEL_SECURING;
    struct peer_addr peer;
    char why[600];
    uv_os_fd_t fd = -1;
    clave__tls_fault(t, why, sizeof why);
    uv_fileno(&ch->socket.handle, &fd);
    clave__listen_name_peer(fd, false, &peer);
    clave__log_about(&conn_run(ch)->log, CLAVE_LOG_WARN,
                     &(struct log_about){.connection = peer.text}, "%s is %s: %s", peer.text,
                     turned_away ? "turned away" : "closed", why);
    return turned_away && !clave__tls_is_foreign(t);
}

/* True if the client has waited too long and is gone: a handshake with it would only make the
 * others wait too long as well. */
static bool handshake_is_abandoned(const struct conn *c)
{
    struct pollfd p = {.fd = -1, .events = POLLRDHUP};
    uv_fileno(&c->channel.socket.handle, &p.fd);
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void handshake_begin(struct conn *c)
{
    assert(c->engine && !c->channel.filter);
    static const struct tls_events events = {handshake_secured, handshake_failed};
    struct server_run *r = conn_run(&c->channel);
    if (!clave__tls_add_filter(&c->channel, r->tls, NULL, &events)) {
        clave__channel_close(&c->channel, UV_ENOMEM);
        return;
    }
    clave__run_tick(r);
    clave__server_conn_set_waiting(c->engine, false);
    conn_set_reading(c);
}

/* Lets some connections shake hands. Each handshake costs up to a millisecond of CPU time, so many
 * of them in one turn would delay the clients that are being served. */
static void handshake_on_turn(uv_idle_t *turn)
{
    enum { HANDSHAKES_A_TURN = 4, ABANDONED_A_TURN = 64 };
    struct server_run *r = turn->data;
    struct list *e;
    int begun = 0, abandoned = 0;
    while (begun < HANDSHAKES_A_TURN && abandoned < ABANDONED_A_TURN &&
           (e = list_pop_front(&r->handshakes))) {
        struct conn *c = LIST_ENTRY(e, struct conn, in_handshakes);
        if (handshake_is_abandoned(c)) {
            abandoned++;
            clave__channel_close(&c->channel, 0);
        } else {
            begun++;
            handshake_begin(c);
        }
    }
    if (list_empty(&r->handshakes))
        uv_idle_stop(turn);
}

/* Makes a TLS connection wait for its turn to shake hands. Until then it is not read and has no
 * filter, so that thousands can wait without taking memory. Afterwards it is read like the others:
 * the later steps cost little, and a client should not have to queue twice. */
static void conn_await_handshake(struct conn *c)
{
    assert(list_empty(&c->in_handshakes));
    struct server_run *r = conn_run(&c->channel);
    list_push_back(&r->handshakes, &c->in_handshakes);
    clave__server_conn_set_waiting(c->engine, true);
    uv_idle_start(&r->handshake_turn, handshake_on_turn);
}

/* ---- accepting connections, or turning them away --------------------------------------------- */

/* The most that may be buffered in the kernel for a slow client. */
enum { UNSENT_SIZE = 128 * 1024 };
/* How many are accepted in one turn of the loop; accepting one takes the kernel about 15 us. */
enum { ACCEPTED_A_TURN = 64 };

/* Limits the kernel's buffers. Otherwise the kernel would buffer megabytes for a client that does
 * not read, which is more than the documented limit for all clients, and slow to send. */
static void accept_set_options(int fd)
{
#ifdef TCP_NOTSENT_LOWAT
    const int most = UNSENT_SIZE;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
#endif
}

/* True if a refusal may be logged: a client that connects too often must not fill the log as
 * well. */
static bool accept_may_tell(struct server_run *r)
{
    return clave__log_may_tell(&r->may_tell_at, uv_now(&r->loop));
}

static void accept_note_turned_away(struct server_run *r, const struct peer_addr *peer,
                                    const char *why)
{
    clave__server_note_rejected(r->server);
    r->turned_away++;
    if (!accept_may_tell(r))
        return;
    clave__log_about(&r->log, CLAVE_LOG_WARN, &(struct log_about){.connection = peer->text},
                     "turned away %s: %s (%zu turned away since the last message)", peer->text, why,
                     r->turned_away);
    r->turned_away = 0;
}

/* Returns false if there is no memory. */
static bool accept_begin(struct conn *c, const struct peer_addr *peer)
{
    struct server_run *r = conn_run(&c->channel);
    c->engine = clave__server_accept(r->server, peer, c);
    if (!c->engine || (r->add_filter && !r->add_filter(r->filter_arg, &c->channel, c->engine)))
        return false;
    if (peer->secure)
        conn_await_handshake(c);
    else
        clave__channel_opened(&c->channel);
    clave__conn_serve(c->engine);
    return true;
}

/* Returns NULL if there is room, having counted the connection for *a; otherwise why it is turned
 * away. */
static const char *accept_fault(struct server_run *r, const struct peer_addr *peer,
                                struct address **a)
{
    if (r->nconns >= r->max_conns)
        return "no more connections: the limit of open files allows no more (ulimit -n, "
               "LimitNOFILE=)";
    if (clave__server_is_full(r->server))
        return "too many connections (--max-all-connections)";
    return clave__address_limit_enter(&r->address_limit, peer, a);
}

/* Accepts one connection. A client that is turned away takes no memory. */
static void accept_one(struct server_run *r, const struct listener *l, int fd)
{
    struct address *a;
    struct peer_addr peer;
    clave__listen_name_peer(fd, l->is_unix, &peer);
    peer.secure = l->tls;
    if (l->is_gate) {
        peer.has_uid = false; /* otherwise every user of HTTP would be this user */
        peer.is_gate = true;
        strcpy(peer.text, "gate");
    }
    const char *why = accept_fault(r, &peer, &a);
    if (why) {
        accept_note_turned_away(r, &peer, why);
        close(fd);
        return;
    }
    if (!l->is_unix)
        accept_set_options(fd);
    struct conn *c = conn_new(r, fd, l->is_unix, a);
    if (c && (!clave__channel_is_live(&c->channel) || accept_begin(c, &peer)))
        return;
    accept_note_turned_away(r, &peer, "out of memory");
    if (c)
        clave__channel_close(&c->channel, 0);
}

/* Accepts a few at a time, since existing connections have to wait meanwhile. */
void clave__conn_on_connection(struct listener *l)
{
    struct server_run *r = l->data;
    int fd = 0;
    clave__run_tick(r);
    for (int i = 0; i < ACCEPTED_A_TURN && (fd = clave__listener_accept(l)) >= 0; i++)
        accept_one(r, l, fd);
    if (fd < 0 && fd != -EAGAIN && accept_may_tell(r))
        clave__log(&r->log, CLAVE_LOG_WARN, "cannot accept a connection: %s", uv_strerror(fd));
}

/* ---- stopping -------------------------------------------------------------------------------- */

enum { GRACE_MS = 1000 };

static void stop_enter(struct server_run *r, enum run_phase phase)
{
    assert(phase >= r->phase);
    r->phase = phase;
    if (phase == RUN_STOPPED)
        clave__txn_log_thread_end(&r->log_thread);
}

/* Stops at once; the first fault is the one that is kept. */
__attribute__((format(printf, 3, 4))) static void run_fail(struct server_run *r, clave_err err,
                                                           const char *fmt, ...)
{
    assert(err != CLAVE_OK);
    if (r->result == CLAVE_OK) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(r->fault, sizeof r->fault, fmt, ap);
        va_end(ap);
        r->result = err;
    }
    stop_enter(r, RUN_STOPPED); /* the caller of the loop gets the reason */
}

void clave__run_halt(struct server_run *r)
{
    stop_enter(r, RUN_STOPPED);
}

void clave__run_close_listeners(struct server_run *r)
{
    while (!list_empty(&r->listeners))
        clave__listener_close(LIST_ENTRY(r->listeners.next, struct listener, link));
}

void clave__run_stop_http(struct server_run *r)
{
    clave__http_server_stop(r->admin);
    clave__http_server_stop(r->metrics);
    r->admin = r->metrics = NULL;
}

static void stop_on_grace(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__conn_close_quiet(r, true);
}

static void stop_begin(struct server_run *r, const char *why)
{
    if (r->phase != RUN_SERVING)
        return;
    if (r->notify)
        r->notify(r->notify_arg, true);
    clave__log(&r->log, CLAVE_LOG_INFO, "stopping: %s", why);
    clave__run_close_listeners(r);
    clave__run_stop_http(r);
    uv_timer_start(&r->grace, stop_on_grace, GRACE_MS, 0);
    stop_enter(r, RUN_STOPPING);
    clave__run_pump(r);
}

static void stop_on_request(uv_async_t *a)
{
    stop_begin(a->data, "requested");
}

static void stop_on_signal(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    if (r->phase ==
        RUN_STOPPING) /* the second time: do not wait for replies that clients have not read */
        clave__conn_close_quiet(r, true);
    else
        stop_begin(r, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void stop_on_idle(uv_timer_t *t)
{
    stop_begin(t->data, "no client is connected");
}

void clave__run_count(struct server_run *r)
{
    bool none = list_empty(&r->conns);
    if (r->phase == RUN_STOPPING && none && clave__run_is_durable(r))
        stop_enter(r, RUN_STOPPED);
    if (r->idle_exit_ms == 0 || r->phase != RUN_SERVING)
        return;
    if (none)
        uv_timer_start(&r->idle, stop_on_idle, r->idle_exit_ms, 0);
    else
        uv_timer_stop(&r->idle);
}

static void stop_init(struct server_run *r, bool signals)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    uv_async_init(&r->loop, &r->stop, stop_on_request);
    uv_timer_init(&r->loop, &r->idle);
    uv_timer_init(&r->loop, &r->grace);
    r->stop.data = r->idle.data = r->grace.data = r;
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&r->loop, &r->signals[i]);
        r->signals[i].data = r;
        if (signals)
            uv_signal_start(&r->signals[i], stop_on_signal, numbers[i]);
    }
}

/* How much memory is kept between batches, and between the pieces of a snapshot. */
enum { KEEP_BYTES = 1 << 20 };

/* ---- to the disk ----------------------------------------------------------------------------- */

/* Posts the records since the last batch. If they have to wait for a piece of the snapshot, the
 * loop is woken when that piece has been written. */
static void disk_post_records(struct server_run *r)
{
    struct txn_log_thread *log = &r->log_thread;
    struct log_batch pending = clave__server_log_pending(r->server);
    if (pending.n == 0 || log->state != LOG_FREE || clave__server_log_waits(r->server))
        return;
    assert(clave__buf_len(&log->bytes) == 0);
    log->first_zxid = pending.first_zxid;
    log->last_zxid = pending.last_zxid;
    log->new_file = r->new_log;
    r->new_log = false;
    clave__server_log_swap(r->server, &log->bytes);
    clave__txn_log_thread_post(log);
    if (r->audit)
        clave__audit_log_posted(r->audit);
}

static void disk_post_snapshot_job(struct server_run *r, enum snapshot_job job)
{
    assert(clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_FREE);
    r->snapshot_thread.job = job;
    r->is_saving = job == SNAPSHOT_PIECE;
    clave__disk_thread_post(&r->snapshot_thread.thread);
}

/* Posts the next piece, one per turn of the loop. The engine has none while it waits for the
 * log. */
static void disk_post_piece(struct server_run *r)
{
    assert(r->is_saving);
    bool done;
    struct buf *bytes = &r->snapshot_thread.thread.bytes;
    clave_err err = clave__server_snapshot_step(r->server, bytes, &done);
    if (err != CLAVE_OK) {
        clave__log(&r->log, CLAVE_LOG_ERROR, "cannot make a snapshot: %s", clave_strerror(err));
        disk_post_snapshot_job(r, SNAPSHOT_ABANDON);
    } else if (done || clave__buf_len(bytes) > 0) {
        disk_post_snapshot_job(r, done ? SNAPSHOT_LAST : SNAPSHOT_PIECE);
    }
}

/* Begins a snapshot, between two batches so that the next batch starts a log of its own. */
static void disk_post_snapshot(struct server_run *r)
{
    if (clave__disk_thread_state(&r->snapshot_thread.thread) != JOB_FREE)
        return;
    if (!r->is_saving && r->phase == RUN_SERVING && clave__server_wants_snapshot(r->server) &&
        clave__server_log_pending(r->server).n == 0) {
        r->snapshot_thread.zxid = clave__server_snapshot_begin(r->server);
        r->is_saving = r->new_log = true;
        r->saving_since = uv_now(&r->loop);
    }
    if (r->is_saving)
        disk_post_piece(r);
}

/* Gives the threads whatever there is to be written. */
static void run_post(struct server_run *r)
{
    disk_post_records(r);
    disk_post_snapshot(r);
}

/* ---- a turn of the loop ---------------------------------------------------------------------- */

/* How much one turn writes, which is a millisecond's work. */
enum { SERVED_A_TURN = 128, SENT_A_TURN = 1024 * 1024 };

bool clave__run_is_current(const struct server_run *r)
{
    return clave__txn_log_thread_is_current(&r->log_thread);
}

int64_t clave__run_now(const struct server_run *r)
{
    return clave_now() + r->ahead_ms;
}

int64_t clave__run_wall(const struct server_run *r)
{
    return clave__clock_wall() + r->ahead_ms;
}

void clave__run_tick(struct server_run *r)
{
    if (r->ticked)
        return;
    r->ticked = true;
    int64_t now = clave__run_now(r);
    if (r->armed_at < now) {
        clave__server_woke_late(r->server, r->armed_at, now);
        r->armed_at = INT64_MAX; /* it was notified once; the timer is set again later */
    }
    clave__server_tick(r->server, now, clave__run_wall(r));
}

static void loop_on_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX;
    clave__run_pump(r); /* timers come before the loop waits, loop_on_check after */
}

/* Sets the timer. If the deadline moves back, the timer stays: it will fire early, and is then set
 * again. */
static void loop_arm(struct server_run *r, int64_t at, int64_t now)
{
    if (at >= r->armed_at)
        return;
    r->armed_at = at > now ? at : now;
    if (at <= now) /* due at once: nothing is late, and loop_on_busy comes next */
        return;
    uv_timer_start(&r->timer, loop_on_timer, (uint64_t)(at - now), 0);
}

static void loop_pump_audit(struct server_run *r)
{
    if (!r->audit)
        return;
    if (clave__run_is_durable(r)) { /* including lines about the server itself */
        clave__audit_log_posted(r->audit);
        clave__audit_log_durable(r->audit);
    }
    clave__audit_log_pump(r->audit);
}

/* Begins a turn with what the last one has left. Being active, this handle keeps the loop from
 * sleeping. */
static void loop_on_busy(uv_idle_t *h)
{
    struct server_run *r = h->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX; /* the timer is set anew */
}

/* Writes to a bounded number of connections, and a bounded number of bytes, which is a
 * millisecond's work. Returns true if there may be more. */
static bool loop_serve_some(struct server_run *r)
{
    struct server_conn *c;
    const uint64_t most = r->sent + SENT_A_TURN;
    for (int left = SERVED_A_TURN; left > 0 && r->sent < most; left--) {
        if (!(c = clave__server_next_ready(r->server)))
            return false;
        clave__conn_serve(c);
    }
    return true;
}

void clave__run_pump(struct server_run *r)
{
    if (r->phase == RUN_STOPPED)
        return;
    bool more = conns_go_on(r);
    more = loop_serve_some(r) || more;
    run_post(r);
    loop_pump_audit(r);
    const int64_t at = clave__server_deadline(r->server), now = clave__run_now(r);
    more = more || at <= now;
    if (more)
        uv_idle_start(&r->busy, loop_on_busy);
    else
        uv_idle_stop(&r->busy);
    if (r->phase == RUN_STOPPING && clave__run_is_durable(r) && !more) {
        clave__conn_close_quiet(r, false);
        clave__run_count(r);
    }
    if (r->ticked)
        clave__server_end_turn(r->server, now);
    loop_arm(r, at, now);
    r->ticked = false;
}

/* Called after the reads, completions and wake-ups of one pass of the loop: makes one batch, and
 * one write per connection. */
static void loop_on_check(uv_check_t *check)
{
    clave__run_pump(check->data);
}

static void loop_init(struct server_run *r)
{
    r->armed_at = INT64_MAX;
    uv_timer_init(&r->loop, &r->timer);
    uv_idle_init(&r->loop, &r->busy);
    uv_check_init(&r->loop, &r->check);
    list_init(&r->handshakes);
    uv_idle_init(&r->loop, &r->handshake_turn);
    r->timer.data = r->busy.data = r->check.data = r->handshake_turn.data = r;
    uv_check_start(&r->check, loop_on_check);
}

/* ---- from the disk --------------------------------------------------------------------------- */

/* Returns false after a fault, from when on nothing more is acknowledged: an fsync need not report
 * the same error again, so believing a later success would be wrong. */
static bool disk_check(struct server_run *r, int number, const char *what)
{
    if (number == 0)
        return true;
    struct fault f = {r->fault, sizeof r->fault};
    if (r->result == CLAVE_OK)
        r->result = clave__start_error_errno(&f, number, what, r->dir.path);
    run_fail(r, r->result, "%s", r->fault);
    return false;
}

void clave__run_on_log_written(void *arg)
{
    struct server_run *r = arg;
    struct txn_log_thread *log = &r->log_thread;
    assert(log->state == LOG_FREE);
    clave__run_tick(r);
    clave__buf_clear(&log->bytes);
    clave__buf_trim(&log->bytes, KEEP_BYTES);
    if (disk_check(r, log->fault, "cannot write the log in")) {
        clave__server_durable(r->server, log->last_zxid);
        if (r->audit)
            clave__audit_log_durable(r->audit);
        clave__run_take_log(r, log);
    }
    clave__run_pump(r);
}

static void disk_tell_snapshot_written(const struct server_run *r)
{
    clave__log(&r->log, CLAVE_LOG_INFO, "snapshot.%llx written",
               (unsigned long long)r->snapshot_thread.zxid);
    if (r->snapshot_thread.purge_fault != 0)
        clave__log_about(&r->log, CLAVE_LOG_WARN, &(struct log_about){.path = r->dir.path},
                         "cannot remove old snapshots and logs from %s: %s", r->dir.path,
                         strerror(r->snapshot_thread.purge_fault));
}

static void disk_collect_snapshot_job(struct server_run *r)
{
    struct snapshot_thread *t = &r->snapshot_thread;
    clave__disk_thread_take(&t->thread, r->is_saving ? KEEP_BYTES : 0);
    if (!disk_check(r, t->thread.fault, "cannot write a snapshot in"))
        return;
    clave__run_take_space(r, &t->space);
    if (t->job == SNAPSHOT_MEASURE)
        clave__run_take_process(r, &t->files);
    if (t->job == SNAPSHOT_LAST) {
        clave__run_take_snapshot(r);
        disk_tell_snapshot_written(r);
    }
    clave__server_set_driver_stats(r->server, &r->stats);
}

void clave__run_on_disk_done(void *run)
{
    struct server_run *r = run;
    clave__run_tick(r);
    if (clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_DONE)
        disk_collect_snapshot_job(r);
}

bool clave__run_is_durable(const struct server_run *r)
{
    return clave__server_log_pending(r->server).n == 0 && r->log_thread.state == LOG_FREE;
}

/* ---- changes while it runs ------------------------------------------------------------------- */

clave_err clave__run_note_longest_session(const struct server_run *r, const struct fault *f)
{
    return clave__datadir_note_longest_session(&r->dir, clave__restore_longest_session(r->server),
                                               f);
}

/* Updates the note on the longest session. Sessions may be longer now, or the note may have been
 * damaged since the start, which would also damage backups. */
static void reload_note(struct server_run *r)
{
    char text[600] = "";
    if (clave__run_note_longest_session(r, &(struct fault){text, sizeof text}) != CLAVE_OK)
        clave__log(&r->log, CLAVE_LOG_ERROR, "%s; until then a restore needs --longest-session",
                   text);
}

static void reload_on_hangup(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    (void)number;
    bool renewed = r->tls && clave__tls_context_renew(r->tls, &r->log);
    if (r->audit)
        clave__audit_log_reopen(r->audit);
    if (r->on_hangup)
        r->on_hangup(r->hangup_arg, renewed);
    reload_note(r);
}

void clave__run_take_limits(struct server_run *r, const struct server_run_options *o)
{
    r->idle_exit_ms = o->idle_exit_ms > 0 ? (uint64_t)o->idle_exit_ms : 0;
    clave__address_limit_set(&r->address_limit, o->max_per_address, o->max_sessionless);
}

clave_err clave__server_run_change(struct server_run *r, const struct server_run_options *o)
{
    assert(clave__run_is_current(r));
    clave_err err = clave__server_change(r->server, &o->engine);
    if (err != CLAVE_OK)
        return err;
    clave__run_take_limits(r, o);
    r->admin_hosts = o->admin_hosts;
    clave__run_set_driver_info(r);
    uv_timer_stop(&r->idle);
    clave__run_count(r);
    return CLAVE_OK;
}

static void reload_init(struct server_run *r, bool signals)
{
    uv_signal_init(&r->loop, &r->hangup);
    r->hangup.data = r;
    if (signals) /* caught even if there is nothing to reload, because by default it would kill the
                    process */
        uv_signal_start(&r->hangup, reload_on_hangup, SIGHUP);
}

void clave__run_init_loop(struct server_run *r, bool signals)
{
    loop_init(r);
    stop_init(r, signals);
    reload_init(r, signals);
}
