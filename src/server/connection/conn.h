/* conn.h - one connection of a client: frames in, messages out, and when each message may leave.
 *
 *   NEW ───────────────▶ SERVING ──▶ CLOSING     (a four-letter word is answered in NEW, then the
 *    └───▶ RESUMING ───────┘                       connection closes)
 *
 * A client that comes back to its session while --require-auth is set is RESUMING until it has
 * authenticated, unless its certificate or its user on this machine already identifies it. It has
 * been told that its session continues, but the session is not yet attached to this connection.
 *
 * A message leaves once the newest transaction that it shows is durable and all messages before it
 * have left. */
#ifndef CLAVE_SERVER_CONNECTION_CONN_H
#define CLAVE_SERVER_CONNECTION_CONN_H

#include "server/access/auth.h"
#include "server/server_internal.h"
#include "wire/frame.h"
#include "wire/record.h"

enum conn_state { CONN_NEW, CONN_RESUMING, CONN_SERVING, CONN_CLOSING };

/* A count of replies that leave together. */
struct replies {
    uint32_t all;
    uint32_t writes; /* of these, answers to requests that are logged */
};

/* The output up to `end` may leave once transaction `zxid` is durable. */
struct mark {
    uint64_t end; /* bytes since the connection began */
    int64_t zxid;
    int64_t since;          /* when the requests that it answers were read */
    struct replies replies; /* how many end in this part of the output */
};

struct server_conn {
    struct server *s;
    void *user;
    struct peer_addr peer;
    enum conn_state state;
    struct list in_conns;
    struct list in_sessionless;
    struct list in_ready;
    struct list in_waiting;
    struct list in_with_output;
    struct list in_paused;
    struct list in_left; /* in server_turn.left */
    size_t owed;         /* the cost of its requests in looks at owed_at, less what has drained
                            (fair_schedule.c) */
    int64_t owed_at;
    struct word_list *list; /* the list that answers its four-letter word; NULL: none */
    bool list_goes_on;      /* that list has more pieces to come */
    bool wanted_read;       /* as last reported to the driver */

    struct frame_reader frames;
    struct buf backlog;   /* input that could not be processed when it arrived */
    int64_t unread_since; /* when input that is still unprocessed, here or in the socket, began to
                             wait; INT64_MAX: there is none */
    struct buf out;
    size_t undelivered; /* memory of `out`, as counted in s->undelivered; 0: `out` is empty */
    int64_t undelivered_since; /* when `out` was last empty, or the client last took some */
    uint64_t written;          /* bytes since the connection began, up to the end of `out` */
    uint64_t releasable;       /* of these, how many may leave */
    struct mark *marks;        /* a ring of mark_cap, a power of two */
    size_t mark_cap;
    size_t mark_head;
    size_t mark_count;
    size_t undurable; /* replies that are waiting for the disk */
    struct list slow; /* struct slow_request: requests whose replies are waiting */

    int64_t accepted_at;
    int64_t start_by;   /* by when it must have a session; INT64_MAX: it still waits for its turn to
                           shake hands */
    int64_t told_id;    /* the session named in our answer to its handshake; 0: none yet */
    int32_t told_ms;    /* the timeout named there */
    uint32_t handshake; /* the number of its handshake (sessions.handshakes) */
    struct session *session; /* NULL: none yet, or it has ended */
    struct identities who;
    struct watcher watcher;

    struct latency latency;
    uint64_t received;
    uint64_t sent;
    int32_t last_op;
    int32_t last_xid;
    int64_t last_zxid;
    int64_t last_reply_at;
    int64_t last_latency;
};

/* ---- messages out (conn_output.c) ------------------------------------------------------------ */

/* A frame that is being written at the end of a connection's output. */
struct message {
    struct server_conn *c;
    struct jwriter w;
    size_t begin;
    int32_t xid;
    bool refused; /* it has become an error; see clave__message_bound */
    int64_t zxid; /* it may leave when this transaction is durable */
};

/* For a message that shows nothing of the tree or the sessions, and so need not wait. */
enum { SHOWS_NOTHING = 0 };

/* Begins a message. `shows` is the newest transaction that the message may reveal. s->last_zxid is
 * always safe, but makes the message wait for every other client's fsync; visible_zxid_at
 * often finds a smaller one. */
struct message clave__message_begin(struct server_conn *c, int64_t shows);
/* Ends the message. `reply`: it answers a request, and counts as outstanding while it waits for the
 * disk. If there is no memory the connection is cut: a message is never skipped. */
void clave__message_end(struct message *m, bool reply);
/* Writes the header of a reply. Its zxid is m->zxid, except where Apache sends 0 or -1. It must not
 * be the last transaction applied: the client presents it when it reconnects, and a server that
 * lost that transaction in a crash would refuse the client. */
void clave__message_header(struct message *m, int32_t xid, int64_t zxid, clave_err err);
/* Enforces LIMIT_ANSWER. Call it before _end of the answer to a read, and between the parts of an
 * answer that has many. An answer that is too large becomes a header with MARSHALLINGERROR, because
 * it would use up everybody's memory and few clients could read it. Returns false if that has
 * happened; write nothing more then. Code that writes a list stops as soon as
 * clave__jwriter_is_full, so the rest costs neither memory nor time. */
bool clave__message_bound(struct message *m);
/* Sends a reply that consists of a header only. */
void clave__conn_reply(struct server_conn *c, int32_t xid, int64_t shows, clave_err err);
/* As clave__conn_reply, for an answer that shows nothing and has a given zxid, as Apache's has. */
void clave__conn_reply_as_apache(struct server_conn *c, int32_t xid, int64_t zxid, clave_err err);
/* Sends a watch event. `zxid` is that of the header; -1 if the client missed the event, so that its
 * zxid is unknown. */
void clave__conn_send_event(struct server_conn *c, int64_t shows, int64_t zxid,
                            const struct watch_event *ev);
/* Call it after appending n bytes of the answer to a four-letter word to the output, which are not
 * a frame. They do not wait for the disk, so a server whose disk hangs can still be asked. `err`:
 * the bytes are incomplete; the connection is cut. */
void clave__conn_count_text(struct server_conn *c, size_t n, clave_err err);

/* Lets the output leave whose transactions have become durable. */
void clave__conn_release(struct server_conn *c);

/* ---- the end (conn_output.c) ----------------------------------------------------------------- */

static inline bool clave__conn_is_open(const struct server_conn *c)
{
    return c->state != CONN_CLOSING;
}

/* Sends nothing more, and closes once the queued output has left. */
void clave__conn_close(struct server_conn *c);
/* Drops the output and closes at once. */
void clave__conn_cut(struct server_conn *c);
/* The same because there is no memory for it, which the log says. */
void clave__conn_cut_without_memory(struct server_conn *c);

/* Notes that the four-letter word's list is complete, or abandoned. */
void clave__conn_end_list(struct server_conn *c);

/* Logs a message with this connection and its session as its subject. */
__attribute__((format(printf, 3, 4))) void clave__conn_log(const struct server_conn *c, int level,
                                                           const char *fmt, ...);

/* Makes clave__server_next_ready return this connection. */
void clave__conn_mark_ready(struct server_conn *c);

/* ---- output that waits for its client (conn_output.c) ---------------------------------------- */

/* True if the output of all connections is at twice its bound. No connection is read until clients
 * have taken some, or those that take none have been disconnected. */
bool clave__conns_are_full(const struct server *s);
/* True if no request may be taken from this connection until some of its output has left or the
 * disk has caught up. */
bool clave__conn_is_full(const struct server_conn *c);
/* Updates the totals to the memory that this connection's output occupies; call it after every
 * change to the output. `some_taken`: the client took some. */
void clave__conn_count_output(struct server_conn *c, bool some_taken);
/* The client that has gone longest without taking output, if that is too long while others wait for
 * it; else NULL. clave__conns_deadline is when the next one will be due, INT64_MAX if none is. */
struct server_conn *clave__conns_next_stalled(struct server *s);
int64_t clave__conns_deadline(const struct server *s);

/* ---- input, and all connections (conn.c) ----------------------------------------------------- */

/* Disconnects the clients that are stalled. */
void clave__conns_drop_stalled(struct server *s);
/* Drops up to `most` watches of connections that are gone. */
void clave__conns_drop_watches(struct server *s, size_t most);
/* Begins a turn: takes the input that the last turn left over, until this turn has had enough. */
void clave__conns_take_left(struct server *s);

/* Processes input from the backlog, if it may be processed now. */
void clave__conn_resume(struct server_conn *c);

/* ---- messages in ----------------------------------------------------------------------------- */

/* The first frame, which must be a ConnectRequest: session.c. */
void clave__conn_connect(struct server_conn *c, const uint8_t *p, size_t n);
/* True if the client has an identity that satisfies --require-auth, or if none is required. */
bool clave__conn_is_known(const struct server_conn *c);
/* For a RESUMING connection that has just authenticated: attaches the session to it and cuts the
 * connection that had the session. Returns false, and closes this connection, if the session has
 * ended or has continued on a later connection. */
bool clave__conn_take_up(struct server_conn *c);
/* The first frame had four letters where its length should be: monitoring/four_letter.c. */
void clave__conn_word(struct server_conn *c, uint32_t word);
/* Call it when the client has taken some of the list that answers its four-letter word. */
void clave__word_go_on(struct server_conn *c);
/* Writes the next piece of one of the lists whose clients are ready for it. */
void clave__word_step(struct server *s);
/* Frees the connection's list, if it has one. */
void clave__word_end(struct server_conn *c);
/* Handles a request: request.c. */
void clave__conn_request(struct server_conn *c, const uint8_t *p, size_t n);

/* ---- limits on what one client may have (client_limits.c) ------------------------------------ */

/* The limits on what a single client may make the server keep or send. The table in client_limits.c
 * has the name and default of each, from which its metric and its line in the log follow; its flag
 * is in src/cmd/serve/settings.c. Requests call clave__client_limit_allows before they keep or send
 * anything that is limited. */

/* True if n is within the limit. If not, the refusal is counted and, at most once a second for each
 * limit, logged; telling the client is up to the caller. */
bool clave__client_limit_allows(struct server_conn *c, enum server_limit limit, size_t n);
/* The limit's name as metrics show it: "connection_watches". */
const char *clave__client_limit_name(enum server_limit limit);
/* Sets every limit to most[i], or to its default where that is 0. */
void clave__client_limits_set(struct server *s, const size_t most[SERVER_LIMITS]);

/* ---- sharing a turn between connections (fair_schedule.c) ------------------------------------ */

/* A turn of the loop takes requests worth s->turn.most_looks; input beyond that stays in the
 * backlog of its connection until the next turn. So that a client that asks for little need not
 * wait behind each client that asks for much, connections fall into two classes: one is light as
 * long as it costs less than a tenth of the loop's time, otherwise it is heavy. Light ones go
 * first, and a quarter of each turn is kept for light ones whose input arrives during it. Neither
 * class ever waits for more than one turn of the other. */

void clave__fair_schedule_init(struct server *s, size_t work_a_turn);
/* The class of a connection, by its recent cost. */
enum turn_class clave__fair_schedule_class_of(const struct server_conn *c);

void clave__fair_schedule_begin(struct server *s);
/* The next connection whose input was left over by the last turn. Call it after _begin until it
 * returns NULL. */
struct server_conn *clave__fair_schedule_next(struct server *s);
/* True if any input is waiting for the next turn. */
bool clave__fair_schedule_has_left(const struct server *s);

/* True if this turn takes no more requests of the connection, since other clients and the disk
 * would have to wait. */
bool clave__fair_schedule_is_full(const struct server_conn *c);
/* Adds the cost of a request, in looks, to what the connection has cost recently. */
void clave__fair_schedule_charge(struct server_conn *c, size_t looks);
/* Call it when the connection has had its chance. It stays in the queue if it still has a backlog
 * only because the turn is full. `had_some`: some of its input was taken, so it goes to the end of
 * the queue; otherwise it keeps its place. */
void clave__fair_schedule_leave(struct server_conn *c, bool had_some);

/* ---- slow requests (slow_requests.c) --------------------------------------------------------- */

/* Logs requests that took slow_ms or longer, counted from when they began to wait to be read until
 * their replies could leave. Pings are left out. */

/* Call it after each request while slow_ms is set. Remembers the request, whose frame has n bytes,
 * until its turn has ended and its reply may leave. `work` is s->counts.bytes_written from before
 * the request. */
void clave__slow_requests_note(struct server_conn *c, uint64_t work, const void *frame, size_t n);
/* Call it at the end of a turn, only if s->slow.turn is set: reports the requests that were slow
 * without having to wait for the disk. */
void clave__slow_requests_end_turn(struct server *s, int64_t now);
/* Call it when replies have been released: reports those that took too long. */
void clave__slow_requests_release(struct server_conn *c);
/* The connection is gone: forgets its requests. */
void clave__slow_requests_drop(struct server_conn *c);
/* Once a second has passed since the first of them, logs how many slow requests were left out of
 * the log. */
void clave__slow_requests_tell_rest(struct server *s);

#endif
