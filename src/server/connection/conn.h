/* conn.h - one connection: frames in, messages out, and which of them may leave.
 *
 *   NEW ───────────────▶ SERVING ──▶ CLOSING     (a four-letter word is answered in NEW, then it
 *    └───▶ RESUMING ───────┘                       closes)
 *
 * With --require-auth, a client that comes back with a session and is not known by its certificate
 * or as a user of the machine is RESUMING until it has authenticated: it has been told that the
 * session goes on, and the session knows nothing of it.
 *
 * A message leaves when the newest transaction that it shows is durable, and the messages before it
 * have left. */
#ifndef CLAVE_SERVER_CONNECTION_CONN_H
#define CLAVE_SERVER_CONNECTION_CONN_H

#include "server/access/auth.h"
#include "server/server_internal.h"
#include "wire/frame.h"
#include "wire/record.h"

enum conn_state { CONN_NEW, CONN_RESUMING, CONN_SERVING, CONN_CLOSING };

/* Replies that leave together. */
struct replies {
    uint32_t all;
    uint32_t writes; /* to requests that are logged */
};

/* Output up to `end` depends on `zxid`. */
struct mark {
    uint64_t end; /* bytes since the connection began */
    int64_t zxid;
    int64_t since;          /* when its requests were read */
    struct replies replies; /* in this part of the output */
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
    struct list in_left; /* conn.h */
    size_t owed;         /* looks that it had cost at owed_at, less its share since */
    int64_t owed_at;
    struct word_list *list; /* a list is the answer to its four-letter word; NULL: none */
    bool list_goes_on;      /* there is more of it to come */
    bool wanted_read;       /* as last reported to the driver */

    struct frame_reader frames;
    struct buf backlog;   /* input that arrived while none could be processed */
    int64_t unread_since; /* when the first of it came, or what is in the socket; INT64_MAX: none */
    struct buf out;
    size_t undelivered; /* memory of `out`, as counted in s->undelivered; 0: `out` is empty */
    int64_t undelivered_since; /* when `out` was last empty, or the client last took some */
    uint64_t written;          /* bytes since the connection began, up to the end of `out` */
    uint64_t releasable;       /* of these, bytes that may leave */
    struct mark *marks;        /* a ring of mark_cap, a power of two */
    size_t mark_cap;
    size_t mark_head;
    size_t mark_count;
    size_t undurable; /* replies that wait for the disk */
    struct list slow; /* requests whose replies wait, for slow_requests.c */

    int64_t accepted_at;
    int64_t start_by;        /* when it must have a session; INT64_MAX: it waits for its turn */
    int64_t told_id;         /* the session that the handshake's answer names; 0: none */
    int32_t told_ms;         /* and its timeout */
    uint32_t handshake;      /* its number (sessions.handshakes) */
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

/* A frame being written at the end of the output. */
struct message {
    struct server_conn *c;
    struct jwriter w;
    size_t begin;
    int32_t xid;
    bool refused; /* see _bound */
    int64_t zxid; /* it leaves when this is durable */
};

/* What a message shows that says nothing about the tree or sessions. */
enum { SHOWS_NOTHING = 0 };

/* `shows`: the newest transaction of which the message can show anything; s->last_zxid is always
 * right, and waits for every other client's fsync (see clave__visible_zxid_at). */
struct message clave__message_begin(struct server_conn *c, int64_t shows);
/* Ends the message. `reply`: it answers a request, and counts as outstanding if it waits for the
 * disk. Without memory the connection is cut: no message is ever skipped. */
void clave__message_end(struct message *m, bool reply);
/* The header of a reply. Its zxid is m->zxid, but where Apache has 0 or -1: never the last one
 * applied, since the client comes back with it, and is refused by a server that lost it. */
void clave__message_header(struct message *m, int32_t xid, int64_t zxid, clave_err err);
/* Call it before _end of the answer to a read, and between the parts of one that has many. An
 * answer beyond the bound becomes a header with MARSHALLINGERROR: it would take the memory of all,
 * and few clients could read it. false: it has become that, and gets nothing more. Whatever writes
 * a list stops there (clave__jwriter_is_full), so that the rest takes neither memory nor time. */
bool clave__message_bound(struct message *m);
/* A reply that is a header only. */
void clave__conn_reply(struct server_conn *c, int32_t xid, int64_t shows, clave_err err);
/* The same of an answer that shows nothing, with Apache's zxid. */
void clave__conn_reply_as_apache(struct server_conn *c, int32_t xid, int64_t zxid, clave_err err);
/* `zxid` of the header; -1: the client missed the event, nobody knows which it was. */
void clave__conn_send_event(struct server_conn *c, int64_t shows, int64_t zxid,
                            const struct watch_event *ev);
/* The n bytes that were put at the end of the output are no frame, but the answer to a four-letter
 * word, or a piece of it. They wait for nothing, so that a server whose disk hangs can still be
 * asked. `err`: they are not whole; the connection is cut. */
void clave__conn_count_text(struct server_conn *c, size_t n, clave_err err);

/* Releases output that has become durable. */
void clave__conn_release(struct server_conn *c);

/* ---- the end (conn_output.c) ----------------------------------------------------------------- */

static inline bool clave__conn_is_open(const struct server_conn *c)
{
    return c->state != CONN_CLOSING;
}

/* Sends nothing more, and closes when the output has left. */
void clave__conn_close(struct server_conn *c);
/* Closes at once and drops the output. */
void clave__conn_cut(struct server_conn *c);

/* That was the last piece of its list, if it has one. */
void clave__conn_end_list(struct server_conn *c);

/* A line about this connection, and its session. */
__attribute__((format(printf, 3, 4))) void clave__conn_log(const struct server_conn *c, int level,
                                                           const char *fmt, ...);

/* clave__server_next_ready returns it. */
void clave__conn_mark_ready(struct server_conn *c);

/* ---- output that waits for its client (conn_output.c) ---------------------------------------- */

/* The output of all connections together is at twice its bound: none is read until clients have
 * taken some, or those that take nothing have been disconnected. */
bool clave__conns_are_full(const struct server *s);
/* No request is taken from it until some of its output has left, or the disk has caught up. */
bool clave__conn_is_full(const struct server_conn *c);
/* Updates the totals; called after every change to the output. What counts is its memory. */
void clave__conn_count_output(struct server_conn *c, bool some_taken);
/* The next client that has taken nothing for too long while others wait for it, the longest first;
 * NULL: none. _deadline is when the next one is due, INT64_MAX: none. */
struct server_conn *clave__conns_next_stalled(struct server *s);
int64_t clave__conns_deadline(const struct server *s);

/* ---- input, and all connections (conn.c) ----------------------------------------------------- */

/* Disconnects the clients that are stalled. */
void clave__conns_drop_stalled(struct server *s);
/* Drops so many watches of connections that are gone. */
void clave__conns_drop_watches(struct server *s, size_t most);
/* A turn begins: takes what the last one has left, until this one has enough. */
void clave__conns_take_left(struct server *s);

/* Processes input from the backlog, if it may be processed now. */
void clave__conn_resume(struct server_conn *c);

/* ---- messages in ----------------------------------------------------------------------------- */

/* The first frame: session.c. */
void clave__conn_connect(struct server_conn *c, const uint8_t *p, size_t n);
/* Whether it has an identity that --require-auth asks for, or none is asked for. */
bool clave__conn_is_known(const struct server_conn *c);
/* It was RESUMING and is known now: the session becomes its own, and the connection that had it is
 * closed. false: there is no such session any more, and this connection is closed. */
bool clave__conn_take_up(struct server_conn *c);
/* Four letters in place of a length: monitoring/four_letter.c. */
void clave__conn_word(struct server_conn *c, uint32_t word);
/* The client has taken some of its list. */
void clave__word_go_on(struct server_conn *c);
/* Puts the next piece of one list whose client waits for it. */
void clave__word_step(struct server *s);
/* Frees the list of a connection, if any. */
void clave__word_end(struct server_conn *c);
/* A request: request.c. */
void clave__conn_request(struct server_conn *c, const uint8_t *p, size_t n);

/* ---- limits on what one client may have (client_limits.c) ------------------------------------ */

/* The limits on what one client may have the server keep or send. Each has a name and a default in
 * the table of client_limits.c, from which follow the metric and the line in the log;
 * src/cmd/serve/settings.c has its flag. Requests ask _allows before they keep or send it. */

/* Whether n is within the limit. If not, the refusal is counted and, once a second for each limit,
 * logged; what the client is told is the caller's part. */
bool clave__client_limit_allows(struct server_conn *c, enum server_limit limit, size_t n);
/* As the metrics name it: "connection_watches". */
const char *clave__client_limit_name(enum server_limit limit);
/* Takes those given; the others have their defaults. */
void clave__client_limits_set(struct server *s, const size_t most[SERVER_LIMITS]);

/* ---- how much of whose input a turn takes (fair_schedule.c) ---------------------------------- */

/* A turn takes s->work_a_turn looks' worth of requests. What is beyond that waits in the backlog of
 * its connection, and comes in the next turn. So that a client that asks for little does not wait
 * for a turn of each client that asks for much, connections are of two classes: one is light as
 * long as it costs less than a tenth of the loop's time. Light ones come first, and a quarter of
 * each turn is for those of them whose input arrives in it. Neither class ever waits for more than
 * one turn of the other. */

void clave__fair_schedule_init(struct server *s, size_t work_a_turn);
/* By what it has cost lately. */
enum turn_class clave__fair_schedule_class_of(const struct server_conn *c);

void clave__fair_schedule_begin(struct server *s);
/* Call it after _begin until it is NULL: the next connection whose input the last turn has left. */
struct server_conn *clave__fair_schedule_next(struct server *s);
/* Whether some input waits for the next turn. */
bool clave__fair_schedule_has_left(const struct server *s);

/* Whether this turn takes no more of the connection's requests: other clients, and the disk, would
 * wait for them. */
bool clave__fair_schedule_is_full(const struct server_conn *c);
/* A request of it has cost so many looks. */
void clave__fair_schedule_charge(struct server_conn *c, size_t looks);
/* Call it when the connection has had its chance: it stays in the queue if the turn is the reason
 * that it has a backlog. `had_some`: some of its input was taken; those that had none come first.
 */
void clave__fair_schedule_leave(struct server_conn *c, bool had_some);

/* ---- slow requests (slow_requests.c) --------------------------------------------------------- */

/* The log's lines about requests that took slow_ms or longer, from when they began to wait to be
 * read until their replies could leave. Pings are not among them. */

/* After a request, while slow_ms is set: remembers it, a frame of n bytes, until its reply may
 * leave and its turn has ended. `work`: s->work before it. */
void clave__slow_requests_note(struct server_conn *c, uint64_t work, const void *frame, size_t n);
/* The turn ends: reports what was too slow without the disk. With s->slow_turn only. */
void clave__slow_requests_end_turn(struct server *s, int64_t now);
/* Some replies may leave: reports those that took too long. */
void clave__slow_requests_release(struct server_conn *c);
/* The connection ends. */
void clave__slow_requests_drop(struct server_conn *c);
/* Says how many lines there would have been, when a second has passed without any more. */
void clave__slow_requests_tell_rest(struct server *s);

#endif
