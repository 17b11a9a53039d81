/* server.h - the embedded ZooKeeper server as an engine without I/O: bytes and time in,
 * bytes and log records out. A driver (src/runtime) or the simulated world feeds it.
 *
 * A write is applied to the tree at once, but nothing that shows it leaves the server before its
 * log record is durable: every message to a client is tied to the newest zxid that it shows, and
 * _output yields only messages whose zxid, and that of those before them, _durable has confirmed.
 * So reads show durable state only, one fsync serves all requests in flight, replies and events
 * keep their order, and a ping or a read of what is durable waits for nobody else's write. */
#ifndef CLAVE_SERVER_SERVER_H
#define CLAVE_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/ip_range.h"
#include "base/log_line.h"
#include "clave/err.h"
#include "clave/mem.h"

struct server;      /* opaque */
struct server_conn; /* opaque */

/* The four-letter words that cost little and show no client's paths: those enabled by default. */
#define SERVER_WORDS "conf,cons,dirs,envi,isro,mntr,ruok,srvr,stat,wchs"
#define SERVER_OTHER_WORDS "crst,dump,srst,wchc,wchp"
#define SERVER_WORDS_BETWEEN ", \t" /* what is between two of a list, as in a zoo.cfg */

/* The limits on what one client may have the server keep or send. connection/client_limits.c has
 * their names and defaults, src/cmd/serve/settings.c their flags. */
enum server_limit {
    LIMIT_WATCHES,            /* of all connections */
    LIMIT_CONNECTION_WATCHES, /* of one */
    LIMIT_SESSIONS,
    LIMIT_DISCONNECTED, /* sessions of one address without a connection */
    LIMIT_ANSWER,       /* bytes of the answer to a read */
    LIMIT_NAME,         /* bytes of a new node's name */
    LIMIT_PATH,         /* bytes of its path, and of the path of a watch */
    LIMIT_DEPTH,        /* nodes in its path */
    LIMIT_SEQUENCE,     /* sequence numbers of one parent */
    LIMIT_REQUEST,      /* bytes of one request: server_options.max_frame */
    SERVER_LIMITS
};

/* Gets a line of the audit log, without its end; NULL: one is lost for want of memory. It does not
 * call the server. What the line tells is not durable before the records pending now are. */
typedef void server_audit_cb(void *arg, bool failed, const char *line, size_t n);

/* An ephemeral node is gone. The call does not call the server. */
enum server_gone {
    GONE_DELETED,          /* by its own session */
    GONE_DELETED_BY_OTHER, /* by another one */
    GONE_SESSION_CLOSED,   /* with its session, which its client closed */
    GONE_SESSION_EXPIRED
};
typedef void server_gone_cb(void *arg, int64_t czxid, enum server_gone how);

/* Defaults of the options below. */
enum {
    SERVER_TICK_MS = 2000,
    SERVER_SESSIONLESS_MS = 10000,
    SERVER_SNAP_COUNT = 100000,
    SERVER_CONTAINER_CHECK_MS = 60000,
    SERVER_CONTAINER_RATE = 10000,
    SERVER_OUTSTANDING = 100000,
    SERVER_UNDELIVERED = 256 * 1024 * 1024,
};

struct server_options {
    const struct clave_mem *mem; /* copied; NULL: libc */
    clave_log_cb *log;
    void *log_arg;
    log_about_cb *log_about; /* called in place of `log`; may be NULL */
    server_audit_cb *audit;  /* NULL: no audit log */
    void *audit_arg;
    server_gone_cb *node_gone; /* NULL: nobody wants to know */
    void *node_gone_arg;
    const char *audit_user;     /* named for what the server does by itself; outlives the server */
    int32_t tick_ms;            /* 0: SERVER_TICK_MS */
    int32_t min_session_ms;     /* 0: 2 ticks */
    int32_t max_session_ms;     /* 0: 20 ticks */
    size_t max_frame;           /* 0: WIRE_MAX_FRAME */
    size_t max_output;          /* bytes queued for one connection before it is no longer read;
                                   0: 512 KiB. At 512 times as much the client is disconnected */
    int32_t sessionless_ms;     /* how long a connection may stay without a session; 0: 10 s */
    int32_t slow_ms;            /* a request that takes so long is logged; 0: none is. Needs
                                   _end_turn and _left_unread for what the disk does not delay */
    int32_t snap_count;         /* txns between snapshots; 0: 100000, or the number of znodes if
                                   that is larger, and as many bytes as the tree has, but at most
                                   ten times as many txns. One is due in any case after 256 MiB of
                                   log, or as much as the tree has if that is more */
    int32_t snapshot_piece;     /* sessions, access lists and nodes in one piece of a snapshot,
                                   which also ends after 256 bytes for each; 0: 1000 */
    int32_t container_check_ms; /* between two sweeps of containers and TTL nodes; 0: 60000 */
    int32_t container_rate;     /* how many of them are removed a minute, at most; 0: 10000 */
    int64_t never_used_ms;      /* so long after its last change a container that never had children
                                   is removed, too; 0: never */
    uint64_t seed;              /* spreads the snapshots, and keys the maps of paths: draw it from
                                   the system, and show it to nobody */
    bool extended_types;        /* nodes with a TTL may be created; off by default as in Apache,
                                   which also removes existing ones when it starts without
                                   zookeeper.extendedTypesEnabled */
    bool enforce_quota;         /* writes beyond a hard limit are refused */
    const char *super_digest;   /* "user:base64(SHA1(user:password))": the user that passes every
                                   check; NULL: nobody */
    bool x509;                  /* the x509 scheme is available, as with Apache's provider for it */
    const char *x509_super;     /* the subject of the certificate that passes every check, as in
                                   an id of the x509 scheme; NULL: nobody's */
    const char *super_uid; /* the user of this machine, in decimal, that passes every check over a
                              Unix socket; NULL: nobody */
    const char
        *require_auth;      /* "digest,x509": until it has an identity of one of these schemes, a
                               client gets no node and no session of others; NULL: none is needed */
    const char *words;      /* the four-letter words to answer, "ruok,mntr" or "*";
                               NULL: SERVER_WORDS */
    size_t max_connections; /* 0: any number */
    size_t max_outstanding; /* replies of all connections waiting for the disk: beyond this a
                               connection that waits for some is not read; 0: 100000 */
    size_t max_undelivered; /* memory of the output queued for all connections: beyond this a
                               connection with queued output is not read; at twice as much none is
                               read, and one that has taken nothing for a second is disconnected;
                               0: 256 MiB */
    size_t client_limits[SERVER_LIMITS]; /* 0: the default, which no honest client meets */
    size_t work_a_turn; /* what requests may take from one _tick to the next, in fifths of a
                           microsecond as the engine reckons them: a small read is 3, a write 13.
                           What is beyond it waits, and the clients have it in turn; 0: any */
};

/* The limit of server_options without one of its own. */
size_t clave__client_limit_default(enum server_limit limit);

/* ---- life and recovery ----------------------------------------------------------------------- */

clave_err clave__server_new(struct server **out, const struct server_options *o);
void clave__server_free(struct server *s);
/* Changes the limits, switches, words and super users to those given; the tick, the longest frame,
 * the output of one connection, mem, seed and log stay. Sessions keep their timeouts, and a
 * connection that is the super user stays so until it ends. ENOMEM: nothing is changed. */
clave_err clave__server_change(struct server *s, const struct server_options *o);

/* The zxid in the name of the snapshot to be loaded next. Apache saves while writes continue:
 * its file may contain some later changes, and the log is replayed from that zxid.
 * Without this call the newest zxid in the file counts, as is right for files that clave saved. */
void clave__server_snapshot_named(struct server *s, int64_t zxid);
/* Loads a whole snapshot file. ECORRUPT: `fault` (cap bytes) says what is wrong and at which
 * offset; the server is empty again and another snapshot may be tried. */
clave_err clave__server_load_snapshot(struct server *s, const void *p, size_t n, char *fault,
                                      size_t cap);

struct log_replay {
    int64_t first_zxid; /* of the file's records; 0: none */
    int64_t last_zxid;
    size_t valid_len;  /* bytes up to the end of the last whole record */
    size_t last_batch; /* where the newest whole record's batch begins; the header is of the first
                          one, and a log without marks is one batch */
    bool torn;         /* the bytes after valid_len are a torn tail (never acknowledged): they may
                          be cut off when this is the newest file */
    bool lost_tail;  /* ECORRUPT, and everything up to valid_len is whole and replayed: if the next
                        file continues there, its writer had found no more either */
    char fault[200]; /* ECORRUPT: what is wrong, and where */
};
/* Replays one log file's content (header included); records up to the zxid already
 * applied are skipped. Files are given in order. ECORRUPT: something that was durable is damaged,
 * as shown by a later batch, or by a bad record with no block missing; an impossible record; or a
 * gap in the zxids that no later digest shows to be Apache's own. (txn_log.h) */
clave_err clave__server_replay_log(struct server *s, const void *p, size_t n,
                                   struct log_replay *out);
/* Recovery is over: clients may connect. Every session gets its full timeout anew.
 * `now`: boot-time ms; `wall`: ms since the epoch. */
void clave__server_start(struct server *s, int64_t now, int64_t wall);

/* ---- time ------------------------------------------------------------------------------------ */

/* Sets the time; call it before each group of calls below. Runs expiry, sweeps, ... when due. */
void clave__server_tick(struct server *s, int64_t now, int64_t wall);
/* When to call _tick again, at the latest; INT64_MAX: never. Not after the present time: at once,
 * since some input waits for the next turn (work_a_turn) or something is overdue. */
int64_t clave__server_deadline(const struct server *s);
/* Call it before a _tick that comes late because the process or the machine was stopped since the
 * deadline `since`, so that what clients sent meanwhile is still unread. If the delay was longer
 * than a tick, every session lives for at least another tick, so that it can be heard. */
void clave__server_woke_late(struct server *s, int64_t since, int64_t now);

/* Everything that came in since the last _tick has been passed on, and the loop may wait now: what
 * was read in that turn has taken so long. Only slow_ms needs it. */
void clave__server_end_turn(struct server *s, int64_t now);

/* ---- connections ----------------------------------------------------------------------------- */

/* The limit of all connections is reached: _accept would refuse. */
bool clave__server_is_full(const struct server *s);
/* A connection has been turned away; only counts it. */
void clave__server_note_rejected(struct server *s);
/* NULL: no memory, too many connections, or not serving: close the transport. */
struct server_conn *clave__server_accept(struct server *s, const struct peer_addr *peer,
                                         void *user);
/* true: a new connection waits for its turn to shake hands; false: the turn has come, and the time
 * begins within which it must start a session. Turns come in the order of _accept. */
void clave__server_conn_set_waiting(struct server_conn *c, bool waiting);
/* The client has proved to be this subject, a Name in DER. Call it before the first _input. EINVAL
 * (not a Name), ENOMEM: close the transport. */
clave_err clave__server_conn_certify(struct server_conn *c, const void *der, size_t n);
void *clave__server_conn_user(const struct server_conn *c);
void clave__server_conn_input(struct server_conn *c, const void *p, size_t n);
/* Some input of the connection has come, and is left for a later turn: slow_ms counts from now. */
void clave__server_conn_left_unread(struct server_conn *c);
/* How many requests of all connections it has taken since the start, and KiB of long answers, which
 * take as long: what input costs. */
uint64_t clave__server_taken(const struct server *s);
/* false: leave the bytes in the socket for now. */
bool clave__server_conn_wants_read(const struct server_conn *c);
/* Bytes that may leave now. */
size_t clave__server_conn_output(struct server_conn *c, const void **p);
void clave__server_conn_sent(struct server_conn *c, size_t n);
/* It has a session. */
bool clave__server_conn_has_session(const struct server_conn *c);
/* true when nothing more will be sent: close the transport once _output is empty. */
bool clave__server_conn_wants_close(const struct server_conn *c);
/* The transport is gone; frees c. The session lives on until its timeout. */
void clave__server_conn_closed(struct server_conn *c);
/* Connections with new output, or whose _wants_close or _wants_read has changed, each once;
 * NULL when there are no more. Ask after every call that could have changed something. */
struct server_conn *clave__server_next_ready(struct server *s);

/* ---- the log --------------------------------------------------------------------------------- */

/* The header (16 bytes) of a fresh log file. */
enum { SERVER_LOG_HEADER = 16 };
void clave__server_log_header(uint8_t out[SERVER_LOG_HEADER]);

struct log_batch {
    const void *p; /* whole records; valid until _log_taken */
    size_t n;
    int64_t first_zxid;
    int64_t last_zxid;
};
/* Records not yet taken by the driver. n = 0: none. */
struct log_batch clave__server_log_pending(const struct server *s);
/* The driver leaves them pending until it has taken more pieces of the snapshot under way. Writers
 * change nodes faster than the snapshot is written, which first needs a copy of each: at the pace
 * of its disk they go on, and the copies stay within 8 pieces and a write of each connection. */
bool clave__server_log_waits(const struct server *s);
/* The driver has copied (or swapped out, see _log_swap) everything pending. */
void clave__server_log_taken(struct server *s);
/* Exchanges the pending buffer for an empty one of the driver's: no copy. */
void clave__server_log_swap(struct server *s, struct buf *empty);
/* Everything up to zxid is on the disk. */
void clave__server_durable(struct server *s, int64_t zxid);

/* Whether enough was logged since the last snapshot: between half of snap_count and snap_count, or
 * of the bytes, drawn anew each time, as in Apache. Not while one is being written. */
bool clave__server_wants_snapshot(const struct server *s);
/* Begins a snapshot of the tree as it is now, in Apache's format. Returns the last txn it holds,
 * which names the file. The driver begins a new log file with the next record. */
int64_t clave__server_snapshot_begin(struct server *s);
/* Appends the next piece of it to `out`: a millisecond's work, and one node at most beyond
 * snapshot_piece. *done: that was the last one, which
 * comes only when everything up to its zxid is durable. ENOMEM, with *done: the file is of no use.
 */
clave_err clave__server_snapshot_step(struct server *s, struct buf *out, bool *done);
/* All of it at once, durable or not. */
clave_err clave__server_save_snapshot(struct server *s, struct buf *out, int64_t *zxid);

/* ---- where it runs --------------------------------------------------------------------------- */

/* What only the driver knows. The four-letter words and the admin commands show it. */
enum { ENVIRONMENT_LINES = 4 };
struct environment_line {
    const char *name; /* as Apache names it: "os.name" */
    const char *value;
};
struct driver_info {
    /* The texts outlive the server. A name of NULL: no line. */
    struct environment_line environment[ENVIRONMENT_LINES];

    int32_t client_port;        /* -1: none */
    int32_t secure_client_port; /* with TLS; 0: none */
    int32_t max_per_address;
    const char *data_dir; /* version-2; outlives the server */
};
void clave__server_set_driver_info(struct server *s, const struct driver_info *info);

/* What only the driver can measure, as of the last call; below 0: not known. The four-letter words,
 * the admin commands and the metrics show it. */
struct driver_stats {
    int64_t open_files;
    int64_t max_files;
    int64_t resident_bytes;
    int64_t cpu_ms;
    int64_t snapshot_bytes; /* of all snapshots in the data directory */
    int64_t log_bytes;
    int64_t snapshot_zxid;    /* of the newest */
    int64_t snapshot_seconds; /* when it was written, since the epoch */
    int64_t free_bytes;       /* that may still be written to the data directory's file system */
    int64_t total_bytes;      /* of that file system */
};
#define DRIVER_STATS_UNKNOWN ((struct driver_stats){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1})
void clave__server_set_driver_stats(struct server *s, const struct driver_stats *stats);
/* A batch was written to the log, and so long it took, its sync included. Likewise a snapshot. */
void clave__server_note_fsync(struct server *s, int64_t us);
void clave__server_note_snapshot(struct server *s, int64_t ms);

/* ---- state ----------------------------------------------------------------------------------- */

struct server_stats {
    int64_t last_zxid;
    int64_t durable_zxid;
    size_t nodes;
    size_t sessions;
    size_t connections;
    size_t watches;
    size_t ephemerals;
    uint64_t packets_received;
    uint64_t packets_sent;
    uint64_t requests[128]; /* by opcode 0..127 */
    size_t data_bytes;
    size_t undelivered;              /* memory of output that no client has taken */
    uint64_t digest;                 /* of the tree, as in the log */
    uint64_t digest_mismatches;      /* transactions after which the log's digest differed */
    uint64_t refused[SERVER_LIMITS]; /* how often each limit was reached */
};
void clave__server_stats(const struct server *s, struct server_stats *out);

/* What an operator asks first; below 0: not known. Times are the 99th of 100, of the last minute or
 * two. */
struct server_health {
    int64_t uptime_ms;
    int64_t sessions;
    int64_t connections;
    int64_t requests; /* since the start */
    int64_t outstanding;
    int64_t nodes;
    int64_t watches;
    int64_t data_bytes;
    int64_t read_ms;
    int64_t write_ms;
    int64_t fsync_us;
    int64_t snapshot_behind; /* transactions since the newest snapshot */
    int64_t quiet_ms;        /* it was restored, and for so long no ephemeral node is created */
    struct driver_stats driver;
};
void clave__server_health(const struct server *s, struct server_health *out);

#endif
