/* server.h - the embedded ZooKeeper server as an engine without I/O: bytes and time go in, bytes
 * and log records come out. It is fed by a driver (src/runtime) or by the simulated world.
 *
 * A write is applied to the tree at once, but nothing that shows it leaves the server before its
 * log record is durable. Every message to a client depends on the newest zxid that it shows, and
 * clave__server_conn_output yields only messages for which clave__server_durable has confirmed that
 * zxid and those of all messages before them. As a result reads show durable state only, one fsync
 * serves all requests in flight, replies and events keep their order, and a ping, or a read of what
 * is already durable, does not wait for anybody else's write. */
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

/* The four-letter words that cost little and show no client's paths, which are enabled by
 * default. */
#define SERVER_WORDS "conf,cons,dirs,envi,isro,mntr,ruok,srvr,stat,wchs"
#define SERVER_OTHER_WORDS "crst,dump,srst,wchc,wchp"
#define SERVER_WORDS_BETWEEN ", \t" /* what is between two of a list, as in a zoo.cfg */

/* The limits on what a single client may make the server keep or send. Their names and defaults are
 * in connection/client_limits.c, their flags in src/cmd/serve/settings.c. */
enum server_limit {
    LIMIT_WATCHES,            /* of all connections together */
    LIMIT_CONNECTION_WATCHES, /* of one connection */
    LIMIT_SESSIONS,
    LIMIT_DISCONNECTED, /* sessions of one address without a connection */
    LIMIT_ANSWER,       /* bytes of the answer to a read */
    LIMIT_NAME,         /* bytes of a new node's name */
    LIMIT_PATH,         /* bytes of a path, of a node or of a watch */
    LIMIT_DEPTH,        /* depth of a node: the number of names in its path */
    LIMIT_SEQUENCE,     /* sequence numbers handed out below one parent */
    LIMIT_REQUEST,      /* bytes of one request: server_options.max_frame */
    SERVER_LIMITS
};

/* Receives a line of the audit log, without a newline; NULL means that a line was lost for want of
 * memory. Must not call the server. What the line reports is durable only once the records pending
 * at this time are. */
typedef void server_audit_cb(void *arg, bool failed, const char *line, size_t n);

/* Reports that an ephemeral node is gone, and why. Must not call the server. */
enum server_gone {
    GONE_DELETED,          /* by its own session */
    GONE_DELETED_BY_OTHER, /* by another session */
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
    server_audit_cb *audit;  /* may be NULL: no audit log */
    void *audit_arg;
    server_gone_cb *node_gone; /* may be NULL */
    void *node_gone_arg;
    const char *audit_user; /* the user named in the audit log for what the server does on its own;
                               must outlive the server */
    int32_t tick_ms;        /* 0: SERVER_TICK_MS */
    int32_t min_session_ms; /* 0: 2 ticks */
    int32_t max_session_ms; /* 0: 20 ticks */
    size_t max_frame;       /* 0: WIRE_MAX_FRAME */
    size_t max_output;      /* bytes queued for one connection before it is no longer read;
                               0: 512 KiB. At 512 times as much the client is disconnected */
    int32_t sessionless_ms; /* how long a connection may stay without a session; 0: 10 s */
    int32_t slow_ms; /* requests that take this long or longer are logged; 0: none. To account for
                        time not spent waiting for the disk, the driver must call _end_turn and
                        _left_unread */
    /* Transactions between snapshots. 0: automatic. A snapshot is then due after 100000
     * transactions, or as many as there are znodes if that is more, provided that the log has
     * also grown by the size of the tree; or else after ten times as many transactions. With
     * either setting, one is due once 256 MiB of log have been written, or the size of the tree
     * if that is more. */
    int32_t snap_count;
    int32_t snapshot_piece; /* how many sessions, access lists and nodes make a piece of a snapshot,
                               which also ends after 256 bytes for each of them; 0: 1000 */
    int32_t container_check_ms; /* interval between sweeps of containers and nodes with a TTL; 0:
                                   60000 */
    int32_t container_rate;     /* how many of them are removed per minute at most; 0: 10000 */
    int64_t never_used_ms; /* a container that never had children is also removed this long after
                              its last change; 0: never */
    uint64_t seed; /* keys the hash maps of paths and spreads snapshots over time: draw it from the
                      system and keep it secret */
    bool extended_types;      /* nodes with a TTL may be created; off by default as in Apache,
                                 which also removes existing ones when it starts without
                                 zookeeper.extendedTypesEnabled */
    bool enforce_quota;       /* refuse writes that exceed a hard quota */
    const char *super_digest; /* "user:base64(SHA1(user:password))": the user that passes every
                                 check; NULL: nobody */
    bool x509;                /* the x509 scheme is available, as with Apache's provider for it */
    const char *x509_super; /* the subject whose certificate passes every check, written as in an id
                               of the x509 scheme; NULL: none */
    const char *super_uid; /* the user of this machine, as a decimal number, that passes every check
                              over a Unix socket; NULL: none */
    /* "digest,x509": a client without an identity of one of these schemes cannot reach any node,
     * nor a session that others made; NULL: none is required. */
    const char *require_auth;
    /* The four-letter words that are answered, "ruok,mntr" or "*"; NULL: SERVER_WORDS. */
    const char *words;
    size_t max_connections; /* 0: unlimited */
    size_t max_outstanding; /* replies of all connections that may wait for the disk; above this a
                               connection that has some waiting is not read; 0: 100000 */
    /* Memory for queued output of all connections; above this a connection with queued output is
     * not read; at twice as much none is read, and one that has taken nothing for a second is
     * disconnected; 0: 256 MiB. */
    size_t max_undelivered;
    /* 0: the default, which well-behaved clients do not reach. */
    size_t client_limits[SERVER_LIMITS];
    size_t work_a_turn; /* how much work requests may cause between two calls of _tick, in units of
                           0.2 us as the engine estimates them: a small read is 3, a write 13. Input
                           beyond that waits, and connections take turns; 0: unlimited */
};

/* The default of a limit. */
size_t clave__client_limit_default(enum server_limit limit);

/* ---- life and recovery ----------------------------------------------------------------------- */

clave_err clave__server_new(struct server **out, const struct server_options *o);
void clave__server_free(struct server *s);
/* Changes the limits, switches, words and super users to those given. The tick, the longest frame,
 * the output bound of a connection, mem, seed and log stay as they are. Sessions keep their
 * timeouts, and a connection that is already a super user remains one until it ends. ENOMEM:
 * nothing was changed. */
clave_err clave__server_change(struct server *s, const struct server_options *o);

/* Announces the zxid in the name of the snapshot that is loaded next. Apache saves snapshots while
 * writes continue, so its file may contain some later changes, and the log has to be replayed from
 * the zxid in the name. Without this call it is replayed from the newest zxid in the file, which is
 * right for files that clave saved. */
void clave__server_snapshot_named(struct server *s, int64_t zxid);
/* Loads a complete snapshot file. ECORRUPT: `fault` (cap bytes) says what is wrong and at which
 * offset; the server is empty again, so another snapshot can be tried. */
clave_err clave__server_load_snapshot(struct server *s, const void *p, size_t n, char *fault,
                                      size_t cap);

struct log_replay {
    int64_t first_zxid; /* of the file's records; 0: none */
    int64_t last_zxid;
    size_t valid_len;  /* bytes up to the end of the last whole record */
    size_t last_batch; /* offset of the batch that the newest whole record belongs to; the file's
                          header counts as part of the first batch, and a log without marks is a
                          single batch */
    bool torn; /* the bytes after valid_len are a torn tail, which was never acknowledged: it may be
                  cut off if this is the newest file */
    bool lost_tail;  /* with ECORRUPT: everything up to valid_len is whole and has been replayed. If
                        the next file continues from there, the server that wrote it had not found
                        any more either */
    char fault[200]; /* ECORRUPT: what is wrong, and where */
};
/* Replays the content of one log file, header included; records up to the zxid already applied are
 * skipped. Pass files in order. ECORRUPT: something durable is damaged, which is certain if a later
 * batch follows or if a bad record has no block missing; or a record is impossible; or zxids are
 * missing, and no later digest shows that Apache itself left them out (see txn_log.h). */
clave_err clave__server_replay_log(struct server *s, const void *p, size_t n,
                                   struct log_replay *out);
/* Ends recovery: clients may connect. Every session gets its full timeout from now. `now`:
 * boot-time ms; `wall`: ms since the epoch. */
void clave__server_start(struct server *s, int64_t now, int64_t wall);

/* ---- time ------------------------------------------------------------------------------------ */

/* Sets the time; call it before each group of calls below. Expires sessions, sweeps, and does
 * whatever else is due. */
void clave__server_tick(struct server *s, int64_t now, int64_t wall);
/* The latest time at which _tick must be called again; INT64_MAX: never. If it is not in the
 * future, call _tick at once: input waits for the next turn (work_a_turn), or something is
 * overdue. */
int64_t clave__server_deadline(const struct server *s);
/* Call it before a _tick that is late because the process or the machine was stopped since the
 * deadline `since`, so that what clients sent meanwhile has not been read yet. If the delay was
 * longer than a tick, every session lives for at least another tick, to give its client the chance
 * to be heard. */
void clave__server_woke_late(struct server *s, int64_t since, int64_t now);

/* Ends a turn: everything that arrived since the last _tick has been passed in, and the loop may
 * now sleep. Needed only for slow_ms, which learns from it how long the turn took. */
void clave__server_end_turn(struct server *s, int64_t now);

/* ---- connections ----------------------------------------------------------------------------- */

/* True if the number of connections is at its limit, so that _accept would refuse. */
bool clave__server_is_full(const struct server *s);
/* Counts a connection that was turned away. */
void clave__server_note_rejected(struct server *s);
/* Returns NULL if there is no memory, there are too many connections, or the server is not serving
 * yet; then close the transport. */
struct server_conn *clave__server_accept(struct server *s, const struct peer_addr *peer,
                                         void *user);
/* true: the new connection is waiting for its turn to shake hands. false: its turn has come, and
 * the time in which it must start a session begins now. Connections get their turns in the order in
 * which they were accepted. */
void clave__server_conn_set_waiting(struct server_conn *c, bool waiting);
/* The client has proved to be this subject, a Name in DER. Call it before the first _input. EINVAL:
 * not a Name. ENOMEM. In either case close the transport. */
clave_err clave__server_conn_certify(struct server_conn *c, const void *der, size_t n);
void *clave__server_conn_user(const struct server_conn *c);
void clave__server_conn_input(struct server_conn *c, const void *p, size_t n);
/* The connection has input that is left for a later turn: for slow_ms it has been waiting from now
 * on. */
void clave__server_conn_left_unread(struct server_conn *c);
/* A measure of the work that input has caused: the number of requests taken from all connections
 * since the start, plus the KiB of long answers, each of which takes about as long as a request. */
uint64_t clave__server_taken(const struct server *s);
/* False if the driver should leave the connection's input in the socket for now. */
bool clave__server_conn_wants_read(const struct server_conn *c);
/* The bytes that may leave now: sets *p and returns their number. */
size_t clave__server_conn_output(struct server_conn *c, const void **p);
void clave__server_conn_sent(struct server_conn *c, size_t n);
/* True if the connection has a session. */
bool clave__server_conn_has_session(const struct server_conn *c);
/* True if nothing more will be sent: close the transport once _output is empty. */
bool clave__server_conn_wants_close(const struct server_conn *c);
/* The transport is gone; frees c. The session lives on until its timeout. */
void clave__server_conn_closed(struct server_conn *c);
/* Returns, each once, the connections that have new output or whose _wants_close or _wants_read has
 * changed; NULL when there are no more. Call it after anything that could have changed them. */
struct server_conn *clave__server_next_ready(struct server *s);

/* ---- the log --------------------------------------------------------------------------------- */

/* The header (16 bytes) of a fresh log file. */
enum { SERVER_LOG_HEADER = 16 };
void clave__server_log_header(uint8_t out[SERVER_LOG_HEADER]);

struct log_batch {
    const void *p; /* whole records; valid until _log_taken or _log_swap */
    size_t n;
    int64_t first_zxid;
    int64_t last_zxid;
};
/* The records that the driver has not taken yet; n is 0 if there are none. */
struct log_batch clave__server_log_pending(const struct server *s);
/* True if the driver should leave records pending until it has written more pieces of the snapshot
 * under way. Clients can change nodes faster than the snapshot is written, and each change first
 * needs a copy of the old node for the snapshot. Holding up their writes lets them continue at the
 * pace of the snapshot's disk, and bounds the copies to 8 pieces and one write of each
 * connection. */
bool clave__server_log_waits(const struct server *s);
/* The driver has copied everything that was pending, or has swapped it out with _log_swap. */
void clave__server_log_taken(struct server *s);
/* Exchanges the pending buffer for an empty buffer of the driver's, which saves a copy. */
void clave__server_log_swap(struct server *s, struct buf *empty);
/* Everything up to zxid is on the disk. */
void clave__server_durable(struct server *s, int64_t zxid);

/* True if enough has been logged since the last snapshot: a random share, between a half and all,
 * of snap_count or of the bytes, drawn anew for each snapshot as in Apache. False while a snapshot
 * is being written. */
bool clave__server_wants_snapshot(const struct server *s);
/* Begins a snapshot of the tree as it is now, in Apache's format. Returns the last transaction in
 * it, which names the file. The driver must begin a new log file with the next record. */
int64_t clave__server_snapshot_begin(struct server *s);
/* Appends the next piece of the snapshot to `out`: about a millisecond's work, and at most one node
 * more than snapshot_piece. Sets *done after the last piece, which is held back until everything up
 * to the snapshot's zxid is durable. ENOMEM, with *done set: discard the file. */
clave_err clave__server_snapshot_step(struct server *s, struct buf *out, bool *done);
/* Saves a whole snapshot at once, whether or not its transactions are durable. */
clave_err clave__server_save_snapshot(struct server *s, struct buf *out, int64_t *zxid);

/* ---- where it runs --------------------------------------------------------------------------- */

/* Facts that only the driver knows, for the four-letter words and the admin commands. */
enum { ENVIRONMENT_LINES = 4 };
struct environment_line {
    const char *name; /* as Apache names it: "os.name" */
    const char *value;
};
struct driver_info {
    /* The texts must outlive the server. A line whose name is NULL is left out. */
    struct environment_line environment[ENVIRONMENT_LINES];

    int32_t client_port;        /* -1: there is none */
    int32_t secure_client_port; /* the port for TLS; 0: there is none */
    int32_t max_per_address;
    const char *data_dir; /* the directory version-2; must outlive the server */
};
void clave__server_set_driver_info(struct server *s, const struct driver_info *info);

/* Measurements that only the driver can take, as of its last call; negative if unknown. They are
 * shown by the four-letter words, the admin commands and the metrics. */
struct driver_stats {
    int64_t open_files;
    int64_t max_files;
    int64_t resident_bytes;
    int64_t cpu_ms;
    int64_t snapshot_bytes; /* total size of the snapshots in the data directory */
    int64_t log_bytes;
    int64_t snapshot_zxid;    /* of the newest snapshot */
    int64_t snapshot_seconds; /* when the newest was written, in seconds since the epoch */
    int64_t free_bytes;  /* how much may still be written to the data directory's file system */
    int64_t total_bytes; /* of that file system */
};
#define DRIVER_STATS_UNKNOWN ((struct driver_stats){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1})
void clave__server_set_driver_stats(struct server *s, const struct driver_stats *stats);
/* Each notes a duration: that of writing a batch to the log, sync included, or a snapshot. */
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
    size_t undelivered;              /* memory of output that clients have not taken */
    uint64_t digest;                 /* of the tree, as in the log */
    uint64_t digest_mismatches;      /* transactions after which the log's digest differed */
    uint64_t refused[SERVER_LIMITS]; /* how often each limit was reached */
};
void clave__server_stats(const struct server *s, struct server_stats *out);

/* What an operator asks first; negative if unknown. Times are 99th percentiles of the last minute
 * or two. */
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
    int64_t quiet_ms; /* time left until ephemeral nodes may be created again after a restore */
    struct driver_stats driver;
};
void clave__server_health(const struct server *s, struct server_health *out);

#endif
