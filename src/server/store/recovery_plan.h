/* recovery_plan.h - decides from which files of a directory a server is loaded, in which order, and
 * what to make of each: an intact snapshot, then the logs that continue it. Reading and changing
 * files and reporting on them is up to the caller: the driver (runtime/store/recovery_load.c), both
 * for a server that starts and for `clave data`, and the simulated world. `clave data` and the
 * tests then look at the nodes and sessions without serving them. */
#ifndef CLAVE_SERVER_STORE_RECOVERY_PLAN_H
#define CLAVE_SERVER_STORE_RECOVERY_PLAN_H

#include "server/server.h"
#include "wire/record.h"

enum recovery_start {
    RECOVER_FROM_NEWEST, /* the newest intact snapshot, as a server does */
    RECOVER_FROM_OLDEST, /* the oldest snapshot that the logs reach back to, so that as much as
                            possible is checked */
};

struct recovery_files {
    const int64_t *snapshots; /* the zxids in their names, ascending */
    size_t nsnapshots;
    const int64_t *logs;
    size_t nlogs;
};

struct recovery {
    struct server *s;
    struct recovery_files files;
    enum recovery_start start;
    size_t snapshot; /* index of the next one to try; at or beyond nsnapshots: none is left */
    size_t log;      /* index of the next one */
    int64_t from;    /* zxid of the snapshot that was loaded; -1: none yet */
};

struct recovery_file {
    bool is_log;
    int64_t zxid; /* as in its name */
};

enum recovery_verdict {
    RECOVERY_FINE,
    RECOVERY_SKIPPED,   /* a damaged snapshot; another is tried */
    RECOVERY_NO_RECORD, /* the newest log does not even have a complete header; it may be removed */
    RECOVERY_TORN, /* the newest log ends in something that was never acknowledged and may be cut
                      off */
    RECOVERY_UNFINISHED, /* so does an older log, but the next one belongs to a later leader */
    RECOVERY_REFUSED,    /* damage, or no memory; recovery has failed */
};

/* What a single file turned out to be. */
struct recovery_finding {
    enum recovery_verdict verdict;
    clave_err err;     /* for REFUSED */
    size_t valid_len;  /* of a log: up to where its last whole record ends */
    size_t last_batch; /* of a log: where the batch with that record begins */
    bool lost_tail;    /* with REFUSED: everything up to valid_len is whole */
    char fault[200];   /* for SKIPPED, and for REFUSED because of damage */
};

/* Begins the recovery of `s`. `files` must outlive it. */
void clave__recovery_plan_begin(struct recovery *r, struct server *s,
                                const struct recovery_files *files, enum recovery_start start);
/* Recovers only up to this zxid: from a snapshot that is not newer, and the logs as far as that
 * zxid. A snapshot that Apache saved while writes continued is skipped if it contains later
 * changes. Call it right after _begin. */
void clave__recovery_plan_until(struct recovery *r, int64_t zxid);
/* The file to read next. Returns false if there are no more; if no snapshot was loaded by then, the
 * server is empty. */
bool clave__recovery_plan_next(const struct recovery *r, struct recovery_file *out);
/* Loads or replays the content of that file, and reports what was found. */
void clave__recovery_plan_read(struct recovery *r, const void *p, size_t n,
                               struct recovery_finding *out);

/* True if a log named `next` begins right after zxid `last`. Whoever wrote it had not found
 * anything after `last` either, so it replaces whatever the previous log has there. That is not so
 * for the first log of a later leader, which follows everything in the previous log. */
static inline bool clave__recovery_plan_continues(int64_t last, int64_t next)
{
    return next == last + 1;
}

/* ---- what was loaded ------------------------------------------------------------------------- */

struct node_view {
    struct jbytes path; /* "" is the root */
    struct jbytes data;
    struct jvec acl;
    struct wire_stat stat;
    int32_t stored_cversion;
    int64_t stored_owner; /* also tells containers and nodes with a TTL */
};

/* Visit every node, parents first, and every session. */
void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg);
void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms),
                                void *arg);

#endif
