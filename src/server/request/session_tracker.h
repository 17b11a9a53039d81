/* session_tracker.h - the server's sessions: ids and passwords, and when each expires. */
#ifndef CLAVE_SERVER_REQUEST_SESSION_TRACKER_H
#define CLAVE_SERVER_REQUEST_SESSION_TRACKER_H

#include "base/histogram.h"
#include "base/list.h"
#include "base/map.h"
#include "clave/err.h"
#include "server/server.h"
#include "wire/proto.h"

/* Expiry is a ring of ticks. A session that expires beyond the ring waits in the last tick and is
 * looked at again. */
enum { SESSION_RING = 64 };

/* The session of a restored directory (store/restore.h). It is nobody's: no client may have
 * it, and it owns nothing. Its timeout is the time for which holders of before the restore may
 * still believe that they hold; as every session it is in logs and snapshots, has its whole timeout
 * anew after a restart, and expires. While it is there, the server creates no ephemeral node. */
enum { SESSION_OF_RESTORE = 1 };

/* What clients that have not authenticated were told since it was last heard. */
enum session_lent {
    LENT_NOTHING,
    LENT_TIME, /* that it goes on: when its time is over, it gets its timeout once more */
    LENT_LAST  /* that time is running */
};

struct session {
    struct map_node in_table;
    struct list in_ring;
    struct list in_all;
    int64_t id;
    int64_t expires;           /* the end of a tick; see clave__session_expires */
    int32_t timeout_ms;        /* as the last connect negotiated it */
    int32_t logged_timeout_ms; /* as createSession logged it */
    struct server_conn *conn;  /* NULL: nobody is connected */
    bool saved;                /* as of a node (tree/tree.h) */
    bool barred;               /* an operator has ended it, or it is that of a restore: nobody takes
                                  it up until it expires */
    uint8_t lent;              /* enum session_lent */
    uint32_t detached_from;    /* which of sessions.detached counts it; 0: none */
};

/* How a session ended. */
enum session_end {
    SESSION_EXPIRED, /* nobody heard of its client for its timeout */
    SESSION_CLOSED,  /* by its client */
    SESSION_BARRED,  /* by an operator */
    SESSION_ENDS
};

struct snapshot_save;

struct sessions {
    const struct clave_mem *mem;
    struct map table;
    struct list all; /* but for those that a snapshot has still to write */
    struct list ring[SESSION_RING];
    struct list due;
    int64_t tick_ms;
    int64_t done; /* ticks up to this one have been looked at */
    int64_t now;
    uint32_t handshakes; /* a number for each that asked for a session */
    int64_t none_before; /* no session expires earlier */
    int64_t first_id;    /* by the clock */
    int64_t newest_id;   /* the greatest that this server gave out, even if it has ended; 0: none */
    struct session *of_restore; /* NULL: there is none */
    /* Sessions that have lost their connections, counted by the hash of the address of these. Two
     * addresses of one hash share a count: a client that does not know the map's key cannot choose
     * whose, and a session has no room for more. */
    struct map detached;
    bool saved;
    uint64_t ends[SESSION_ENDS]; /* how often, since the start */
    struct histogram slack_ms; /* the time that a session had left when it was heard, once a tick */
    /* Runs before a session that is not saved is removed; NULL: nobody has to know. */
    void (*before_remove)(struct sessions *t, const struct session *s);
    struct snapshot_save *observer;
};

/* `seed`: for the hashes of addresses. */
clave_err clave__sessions_init(struct sessions *t, const struct clave_mem *mem, int32_t tick_ms,
                               uint64_t seed);
void clave__sessions_fini(struct sessions *t);

/* An id that no session has, nor had: a client that comes back with its ended session must not get
 * another's, since the password follows from the id. */
int64_t clave__sessions_new_id(const struct sessions *t);
/* The first id that a server gives out which starts at this time, in ms since 1970. */
int64_t clave__session_id_at(int64_t wall);
/* A session had this id. */
void clave__sessions_note_id(struct sessions *t, int64_t id);
/* Adds a session with its full timeout. A session that exists already is returned, with this
 * timeout. ENOMEM. */
clave_err clave__sessions_add(struct sessions *t, int64_t id, int32_t timeout_ms,
                              struct session **out);
struct session *clave__sessions_find(const struct sessions *t, int64_t id);
/* A client is connected with it; the connection ends, and it may come back. */
void clave__session_attach(struct sessions *t, struct session *s, struct server_conn *conn);
void clave__session_detach(struct sessions *t, struct session *s, const struct peer_addr *from);
/* How many sessions have lost a connection from this address and have none since. Those over a Unix
 * socket are not counted, nor those of before a restart, of which nobody knows where they came
 * from, until they have had a connection. */
size_t clave__sessions_detached(const struct sessions *t, const struct peer_addr *from);
/* The caller takes care of the session's connection, if any. */
void clave__sessions_remove(struct sessions *t, struct session *s);

/* Clients may connect: every session has its full timeout from now on. */
void clave__sessions_start(struct sessions *t, int64_t now, int64_t wall);
/* Its client has given a sign of life: it gets its full timeout anew. */
void clave__session_heard(struct sessions *t, struct session *s);
/* The handshake by which it was taken last (sessions.handshakes). An earlier one, whose client
 * authenticates later, may not have it any more. */
static inline uint32_t *clave__session_taken_by(struct session *s)
{
    return &s->in_table.user;
}
/* When it expires, if its client is not heard before. */
static inline int64_t clave__session_expires(const struct sessions *t, const struct session *s)
{
    return s->expires > t->none_before ? s->expires : t->none_before;
}
/* A client that has not authenticated may be told that it has this session, and relies on it from
 * now on: the session lasts for its timeout at least. That is no sign of life. false: its own time
 * is over, so nobody may be told so any more. */
bool clave__session_lend(struct session *s);
/* Postpones the session's expiry by a tick. */
void clave__session_postpone(struct sessions *t, struct session *s);
/* Postpones every expiry to at least a tick from now. */
void clave__sessions_postpone_all(struct sessions *t, int64_t now);
void clave__sessions_advance(struct sessions *t, int64_t now);
/* The next session whose time has passed, and which was not heard since it became due; the caller
 * removes or postpones it. Looks at *looks sessions at most, and counts them down. NULL: none yet,
 * or none. */
struct session *clave__sessions_next_due(struct sessions *t, int *looks);
/* When to call _advance: in a millisecond while some are due; INT64_MAX: never. */
int64_t clave__sessions_deadline(const struct sessions *t);

/* The password every ZooKeeper server derives from an id. */
void clave__session_password(int64_t id, uint8_t out[WIRE_PASSWORD_LEN]);

#endif
