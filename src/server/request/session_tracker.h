/* session_tracker.h - the server's sessions: their ids and passwords, and when each expires.
 *
 * Expiry uses a ring of ticks, in which each session is in the slot of the tick that it expires in.
 * Hearing from a session only updates its time; when its slot comes up, it is moved to the right
 * one or has expired. */
#ifndef CLAVE_SERVER_REQUEST_SESSION_TRACKER_H
#define CLAVE_SERVER_REQUEST_SESSION_TRACKER_H

#include "base/histogram.h"
#include "base/list.h"
#include "base/map.h"
#include "clave/err.h"
#include "server/server.h"
#include "wire/proto.h"

/* A session that expires beyond the end of the ring waits in the last slot and is looked at again
 * from there. */
enum { SESSION_RING = 64 };

/* The session of a restored directory (store/restore.h). It belongs to nobody: no client may resume
 * it, and it owns nothing. Its timeout is how long clients from before the restore may still
 * believe that they hold a lock. Like any session it is in logs and snapshots, gets its full
 * timeout again after a restart, and expires. While it exists, the server creates no ephemeral
 * node. */
enum { SESSION_OF_RESTORE = 1 };

/* What the server has told clients that resumed the session without having authenticated, since the
 * session was last heard from. */
enum session_lent {
    LENT_NOTHING,
    LENT_TIME, /* that the session continues; when it comes due, its timeout runs once more */
    LENT_LAST  /* the same, and that last timeout is running */
};

struct session {
    struct map_node in_table;
    struct list in_ring;
    struct list in_all;
    int64_t id;
    int64_t expires;           /* the end of a tick; but see clave__session_expires */
    int32_t timeout_ms;        /* as negotiated in the last handshake */
    int32_t logged_timeout_ms; /* as in the log, from createSession */
    struct server_conn *conn;  /* NULL: no client is connected */
    bool saved;                /* as in struct node (tree/tree.h) */
    bool barred;  /* ended by an operator, or the session of a restore: nobody can resume it, but it
                     stays until it expires */
    uint8_t lent; /* enum session_lent */
    uint32_t detached_from; /* the key in sessions.detached under which it is counted; 0: none */
};

/* How a session came to end. */
enum session_end {
    SESSION_EXPIRED, /* its client was not heard from for its timeout */
    SESSION_CLOSED,  /* closed by its client */
    SESSION_BARRED,  /* ended by an operator */
    SESSION_ENDS
};

struct snapshot_save;

struct sessions {
    const struct clave_mem *mem;
    struct map table;
    struct list
        all; /* all sessions except those that the snapshot being written has yet to write */
    struct list ring[SESSION_RING];
    struct list due;
    int64_t tick_ms;
    int64_t done; /* the last tick whose slot has been looked at */
    int64_t now;
    uint32_t handshakes; /* the number of handshakes so far */
    int64_t none_before; /* no session expires earlier than this */
    int64_t first_id;    /* the first id to hand out, derived from the clock */
    int64_t newest_id;   /* the greatest id that this server ever gave out, even if that session has
                            ended; 0: none */
    struct session *of_restore; /* NULL: there is none */
    /* How many sessions have lost their connection, keyed by the hash of the address that it came
     * from. Addresses with the same hash share a count; since the hash is keyed, a client cannot
     * choose which address it shares with, and storing the address itself would need more room in
     * every session. */
    struct map detached;
    bool saved;
    uint64_t ends[SESSION_ENDS]; /* number of sessions that ended in each way since the start */
    struct histogram
        slack_ms; /* how much time a session had left when it was heard from, noted once a tick */
    /* Called before a session that is not in the snapshot yet is removed; may be NULL. */
    void (*before_remove)(struct sessions *t, const struct session *s);
    struct snapshot_save *observer;
};

/* `seed` keys the hashes of addresses. */
clave_err clave__sessions_init(struct sessions *t, const struct clave_mem *mem, int32_t tick_ms,
                               uint64_t seed);
void clave__sessions_fini(struct sessions *t);

/* An id that no session has or ever had. A client that returns with the id of its ended session
 * must not be given somebody else's, which it could resume, because the password is derived from
 * the id. */
int64_t clave__sessions_new_id(const struct sessions *t);
/* The first id that a server started at this time would give out; `wall` is in ms since 1970. */
int64_t clave__session_id_at(int64_t wall);
/* Notes that a session with this id existed. */
void clave__sessions_note_id(struct sessions *t, int64_t id);
/* Adds a session with its full timeout. If the session already exists, it gets this timeout.
 * ENOMEM. */
clave_err clave__sessions_add(struct sessions *t, int64_t id, int32_t timeout_ms,
                              struct session **out);
struct session *clave__sessions_find(const struct sessions *t, int64_t id);
/* _attach: a client has connected with the session. _detach: that connection, which came from
 * `from`, has ended; the client may come back. */
void clave__session_attach(struct sessions *t, struct session *s, struct server_conn *conn);
void clave__session_detach(struct sessions *t, struct session *s, const struct peer_addr *from);
/* How many sessions had their last connection from this address and have none now. Sessions over a
 * Unix socket are not counted. Sessions from before a restart count only once they have had a
 * connection again, since until then their address is unknown. */
size_t clave__sessions_detached(const struct sessions *t, const struct peer_addr *from);
/* Removes the session; dealing with its connection, if it has one, is up to the caller. */
void clave__sessions_remove(struct sessions *t, struct session *s);

/* Clients may now connect: gives every session its full timeout from now on. */
void clave__sessions_start(struct sessions *t, int64_t now, int64_t wall);
/* The client has given a sign of life: the session gets its full timeout anew. */
void clave__session_heard(struct sessions *t, struct session *s);
/* The number of the handshake that last took up the session (sessions.handshakes). A client that
 * came by an earlier handshake and authenticates only now may no longer have it. */
static inline uint32_t *clave__session_taken_by(struct session *s)
{
    return &s->in_table.user;
}
/* When the session expires unless its client is heard from. */
static inline int64_t clave__session_expires(const struct sessions *t, const struct session *s)
{
    return s->expires > t->none_before ? s->expires : t->none_before;
}
/* Asks whether a client that has not authenticated may be told that the session continues. If so
 * the client relies on it, so the session then lasts for at least one more timeout; that does not
 * count as a sign of life. Returns false if the session's own time is over: then nobody may be told
 * so again. */
bool clave__session_lend(struct session *s);
/* Postpones the session's expiry to the end of the present tick. */
void clave__session_postpone(struct sessions *t, struct session *s);
/* Postpones every session's expiry until at least one tick from now. */
void clave__sessions_postpone_all(struct sessions *t, int64_t now);
void clave__sessions_advance(struct sessions *t, int64_t now);
/* The next session that is due and has not been heard from since; the caller must remove or
 * postpone it. Examines at most *looks sessions and counts *looks down. NULL: none is left, or
 * *looks is used up. */
struct session *clave__sessions_next_due(struct sessions *t, int *looks);
/* When to call _advance again: in a millisecond if sessions are due now; INT64_MAX: never. */
int64_t clave__sessions_deadline(const struct sessions *t);

/* The password that every ZooKeeper server derives from an id. */
void clave__session_password(int64_t id, uint8_t out[WIRE_PASSWORD_LEN]);

#endif
