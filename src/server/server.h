/* server.h - the embedded ZooKeeper server as an engine without I/O: bytes and time in,
 * bytes and log records out. A driver (src/runtime) or the simulated world feeds it.
 *
 * A write is applied to the tree at once, but nothing that depends on it leaves the
 * server before its log record is durable: every message to a client carries the zxid it
 * shows, and _output yields only messages whose zxid _durable has confirmed. So reads show
 * durable state only, one fsync serves all requests in flight, and replies and events keep
 * their order. */
#ifndef CLAVE_SERVER_SERVER_H
#define CLAVE_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "clave/err.h"
#include "clave/mem.h"

struct server;      /* opaque */
struct server_conn; /* opaque */

/* The words that cost little and show no client's paths. */
#define SERVER_WORDS "conf,cons,dirs,envi,isro,mntr,ruok,srvr,stat,wchs"
#define SERVER_OTHER_WORDS "crst,dump,srst,wchc,wchp"

struct server_options {
    const struct clave_mem *mem; /* copied; NULL: libc */
    clave_log_cb *log;
    void *log_arg;
    int32_t tick_ms;            /* 0: 2000 */
    int32_t min_session_ms;     /* 0: 2 ticks */
    int32_t max_session_ms;     /* 0: 20 ticks */
    size_t max_frame;           /* 0: WIRE_MAX_FRAME */
    size_t max_output;          /* bytes queued for one connection before it is no longer read;
                                   0: 4 MiB. A client that never reads is cut off at 64 times it */
    int32_t snap_count;         /* txns between snapshots; 0: 100000, and with more znodes than
                                   that as many as there are */
    int32_t container_check_ms; /* 0: 60000 */
    uint64_t seed;              /* spreads the snapshots */
    bool extended_types;        /* nodes with a TTL may be made; Apache removes them when it starts
                                   without zookeeper.extendedTypesEnabled, and so has it off too */
    bool enforce_quota;         /* hard limits refuse what goes beyond them */
    const char *super_digest;   /* "user:base64(SHA1(user:password))": who passes every check;
                                   NULL: nobody */
    bool x509;                  /* the scheme x509 exists, as with Apache's provider for it */
    const char *x509_super;     /* the subject of the certificate that passes every check, as in
                                   an id of the scheme x509; NULL: nobody's */
    const char *words;          /* four-letter words that are answered, "ruok,mntr" or "*";
                                   NULL: SERVER_WORDS */
    size_t max_connections;     /* 0: any number */
    size_t max_outstanding;     /* replies that wait for the disk, of all connections: beyond it one
                                   that waits for some is not read; 0: 100000 */
    size_t max_undelivered; /* memory of what is queued for all connections: beyond it one that has
                               some queued is not read, at twice as many none is read, and who has
                               taken none for a second is cut off; 0: 256 MiB */
};

/* ---- life and recovery ---------------------------------------------------------- */

clave_err clave__server_new(struct server **out, const struct server_options *o);
void clave__server_free(struct server *s);
/* From now on the limits, switches, words and super users are these; the tick, the longest frame,
 * the output of one connection, mem, seed and log stay. Sessions keep the timeout they have, and
 * who is the super user stays so until the connection ends. ENOMEM: nothing is changed. */
clave_err clave__server_change(struct server *s, const struct server_options *o);

/* The zxid in the name of the snapshot that is loaded next. Apache saves while writes go on:
 * its file may show some of what came after that zxid, and the log is replayed from there.
 * Not called: the newest zxid in the file, as is right for one that clave saved. */
void clave__server_snapshot_named(struct server *s, int64_t zxid);
/* Loads a whole snapshot file. ECORRUPT: `fault` (cap bytes) names what and at which
 * offset; the server is empty again and another snapshot may be tried. */
clave_err clave__server_load_snapshot(struct server *s, const void *p, size_t n, char *fault,
                                      size_t cap);

struct log_replay {
    int64_t first_zxid; /* of the file's records; 0: none */
    int64_t last_zxid;
    size_t valid_len; /* bytes up to the end of the last whole record */
    bool torn;        /* bytes behind valid_len are a torn tail (never acknowledged): may
                         be cut off when this is the newest file */
    bool lost_tail;   /* ECORRUPT, and all up to valid_len is whole and replayed: when a file
                         follows that goes on there, its writer had found no more either */
    char fault[200];  /* ECORRUPT: what, where */
    /* Zxids that are passed over behind this one, when nothing has shown yet that they were
     * never logged; 0: none. */
    int64_t gap_from;
    int64_t gap_to;
    size_t gap_at;
};
/* Replays one log file's content (header included); records up to the zxid already
 * applied are skipped. Files are given in order. ECORRUPT: what was durable once is damaged, as
 * a batch behind the place shows, or a record without a missing block; an impossible record; a
 * gap in the zxids that no digest behind it shows to be Apache's own. (log_read.h) */
clave_err clave__server_replay_log(struct server *s, const void *p, size_t n,
                                   struct log_replay *out);
/* Recovery is over: clients may come. Every session gets its full timeout anew.
 * `now`: boot-time ms; `wall`: ms since the epoch. */
void clave__server_start(struct server *s, int64_t now, int64_t wall);

/* ---- time -------------------------------------------------------------------------- */

/* Before each group of calls below: what time it is. Fires expiry, sweeps, ... when due. */
void clave__server_tick(struct server *s, int64_t now, int64_t wall);
int64_t clave__server_deadline(const struct server *s); /* INT64_MAX: none */
/* Before that _tick, when it comes late: the process, or the machine, stood still since the
 * deadline `since`, and what clients have sent meanwhile is still to be read. By more than a tick:
 * every session lives for a tick at least, to be heard. */
void clave__server_woke_late(struct server *s, int64_t since, int64_t now);

/* ---- connections --------------------------------------------------------------------- */

struct peer_addr {
    uint8_t family; /* 4, 6, or 0 for a Unix socket */
    uint8_t ip[16];
    uint16_t port;
    char text[64]; /* as shown by cons: "127.0.0.1:42100", "local" */
    bool secure;   /* it came through TLS */
};
/* NULL: no memory, as many as there may be, or not serving: close the transport. */
struct server_conn *clave__server_accept(struct server *s, const struct peer_addr *peer,
                                         void *user);
/* The client has proved to be this subject, a Name in DER. Before the first _input. EINVAL, ENOMEM:
 * close the transport. */
clave_err clave__server_conn_certify(struct server_conn *c, const void *der, size_t n);
void *clave__server_conn_user(const struct server_conn *c);
void clave__server_conn_input(struct server_conn *c, const void *p, size_t n);
/* false: leave the bytes in the socket for now. */
bool clave__server_conn_wants_read(const struct server_conn *c);
/* Bytes that may leave now. */
size_t clave__server_conn_output(struct server_conn *c, const void **p);
void clave__server_conn_sent(struct server_conn *c, size_t n);
/* true when nothing more will be said: close the transport once _output is empty. */
bool clave__server_conn_wants_close(const struct server_conn *c);
/* The transport is gone; frees c. The session goes on to its timeout. */
void clave__server_conn_closed(struct server_conn *c);
/* Connections that have new output, a wish to close or a changed wish to read, each once;
 * NULL when there are no more. Ask after every call that could have changed something. */
struct server_conn *clave__server_next_ready(struct server *s);

/* ---- the log ---------------------------------------------------------------------------- */

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
/* The driver has copied (or swapped out, see _log_swap) all that was pending. */
void clave__server_log_taken(struct server *s);
/* Exchanges the pending buffer for an empty one of the driver's: no copy. */
void clave__server_log_swap(struct server *s, struct buf *empty);
/* Everything up to zxid is on the disk. */
void clave__server_durable(struct server *s, int64_t zxid);

/* So many txns came since the last snapshot: snap_count or, drawn anew each time, down to
 * half of it, as Apache does it. */
bool clave__server_wants_snapshot(const struct server *s);
/* The whole tree in Apache's format into `out`; *zxid is the last txn it holds (the
 * file's name). The driver begins a new log file with the next record. */
clave_err clave__server_save_snapshot(struct server *s, struct buf *out, int64_t *zxid);

/* ---- where it runs --------------------------------------------------------------------------- */

/* What only the driver knows, and the words and the admin commands tell. */
struct server_place {
    int32_t client_port;        /* -1: none */
    int32_t secure_client_port; /* with TLS; 0: none */
    int32_t max_per_address;
    const char *data_dir; /* version-2; outlives the server */
    /* Bytes of the snapshots and of the logs. NULL: not known. */
    void (*sizes)(void *arg, uint64_t *snapshots, uint64_t *logs);
    /* The newest snapshot, and when it was written, in seconds. NULL: not known. */
    void (*last_snapshot)(void *arg, int64_t *zxid, int64_t *seconds);
    void *arg;
};
void clave__server_set_place(struct server *s, const struct server_place *place);

/* ---- state --------------------------------------------------------------------------------- */

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
    size_t undelivered;         /* memory of output that no client has taken */
    uint64_t digest;            /* of the tree, as in the log */
    uint64_t digest_mismatches; /* transactions after which the log's was another */
};
void clave__server_stats(const struct server *s, struct server_stats *out);

#endif
