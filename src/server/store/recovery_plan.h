/* recovery_plan.h - which files of a directory a server is loaded from, in which order, and what
 * each of them means: an intact snapshot, then the logs that continue it. Reading the files,
 * changing them and telling about them is the caller's: the driver (runtime/store/recovery_load.c),
 * for a server that starts and for `clave data`, and the simulated world. `clave data` and the
 * tests then look at the nodes and sessions, without serving them. */
#ifndef CLAVE_SERVER_STORE_RECOVERY_PLAN_H
#define CLAVE_SERVER_STORE_RECOVERY_PLAN_H

#include "server/server.h"
#include "wire/record.h"

enum recovery_start {
    RECOVER_FROM_NEWEST, /* intact snapshot, as a server does */
    RECOVER_FROM_OLDEST, /* that the logs reach back to: so as much as possible is compared */
};

struct recovery_files {
    const int64_t *snapshots; /* their zxids, ascending */
    size_t nsnapshots;
    const int64_t *logs;
    size_t nlogs;
};

struct recovery {
    struct server *s;
    struct recovery_files files;
    enum recovery_start start;
    size_t snapshot; /* index of the next one to try; nsnapshots or more: none is left */
    size_t log;      /* index of the next one */
    int64_t from;    /* zxid of the snapshot that was loaded; -1: none yet */
};

struct recovery_file {
    bool is_log;
    int64_t zxid; /* in its name */
};

enum recovery_verdict {
    RECOVERY_FINE,
    RECOVERY_SKIPPED,   /* a damaged snapshot; another is tried */
    RECOVERY_NO_RECORD, /* the newest log has not even a header: it may be removed */
    RECOVERY_TORN, /* the newest log ends in what was never acknowledged, which may be cut off */
    RECOVERY_UNFINISHED, /* an older log does, and the next one is of a later leader */
    RECOVERY_REFUSED,    /* damage, or no memory; the recovery is over */
};

/* What one file turned out to be. */
struct recovery_finding {
    enum recovery_verdict verdict;
    clave_err err;     /* REFUSED */
    size_t valid_len;  /* of a log: up to the end of its last whole record */
    size_t last_batch; /* of a log: where the batch of that record begins */
    bool lost_tail;    /* REFUSED: everything up to valid_len is whole */
    char fault[200];   /* SKIPPED; REFUSED, if it is damage */
};

/* `files` outlive the recovery. */
void clave__recovery_plan_begin(struct recovery *r, struct server *s,
                                const struct recovery_files *files, enum recovery_start start);
/* Only up to this zxid: a snapshot from before it, and the logs as far as they go to it. A snapshot
 * that Apache saved while writes went on is skipped if it has later changes. Call it right after
 * _begin. */
void clave__recovery_plan_until(struct recovery *r, int64_t zxid);
/* The file to be read next. false: there is no more. Without a snapshot by then, the server is
 * empty. */
bool clave__recovery_plan_next(const struct recovery *r, struct recovery_file *out);
/* Loads or replays the content of that file. */
void clave__recovery_plan_read(struct recovery *r, const void *p, size_t n,
                               struct recovery_finding *out);

/* Whether a log named by `next` begins right after `last`. Then its writer had found no more
 * either: it replaces whatever the log before it has after `last`. The first log of a later leader
 * does not: it comes after all of it, too. */
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
    int64_t stored_owner; /* also of containers and of nodes with a TTL */
};

/* Visit every node, parents first, and every session. */
void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg);
void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms),
                                void *arg);

#endif
