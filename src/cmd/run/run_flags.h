/* run_flags.h - the flags of `clave lock`, `rwlock`, `semaphore` and `elect`, and the plan that
 * they are parsed into. */
#ifndef CLAVE_CMD_RUN_RUN_FLAGS_H
#define CLAVE_CMD_RUN_RUN_FLAGS_H

#include "clave/async/mutex.h"
#include "cmd/cli/acl_text.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/run/guardian/guardian.h"
#include "cmd/run/parent_watch.h"
#include "cmd/run/stages/once_and_min_hold.h"
#include "cmd/service/sd_notify.h"

enum { RUN_OWNER_CAP = 512 };
enum { LOCK_TRY = 0, LOCK_FOR_EVER = -1, LOCK_GRACE_DEFAULT = -1 };
/* The longest duration that can be asked for: a year. */
#define RUN_FLAG_YEAR_MS (INT64_C(366) * 24 * 3600 * 1000)

enum lock_kind { KIND_MUTEX, KIND_READ, KIND_WRITE, KIND_LEASE };

struct run_plan {
    struct options *o;
    bool elects; /* a leadership, not a lock */
    enum lock_kind kind;
    uint32_t limit;         /* KIND_LEASE: the number of leases; 0: as in limit_path */
    const char *limit_path; /* KIND_LEASE: the node that holds the number; may be NULL */
    const char *path;
    const char *holders; /* the parent of the holders' nodes: the path, or below it */
    const char *connect;
    struct command command;
    const char *name;    /* of this participant, as others see it; may be NULL. Elections: the id */
    int64_t wait_ms;     /* LOCK_TRY, LOCK_FOR_EVER, or how long */
    int64_t grace_ms;    /* LOCK_GRACE_DEFAULT: derived from the session timeout */
    int64_t max_hold_ms; /* 0: no limit */
    enum on_lost on_lost;
    bool revocable;    /* the command is ended when another participant asks for the lock */
    bool detects;      /* gives up to end a deadlock */
    const char *root;  /* where it looks for deadlocks; NULL: the parent of the path */
    int conflict_code; /* the exit code when it is not acquired in time */
    bool quiet;
    bool with_parent; /* ends when that process does: */
    struct parent_watch parent;
    struct acl_list acl; /* of the lock node; empty: open */
    struct acl_list
        *parent_acl; /* &acl, to be filled in with that of the path; NULL: it is given */
    struct run_stages_plan stages;
    char owner[RUN_OWNER_CAP]; /* the owner of the lock; "": none in particular */
    enum sd_notify_when notify;

    /* Elections only. */
    int32_t priority; /* 0: none */
    bool spread;      /* the priority is derived from path and id */
    bool preempt;
    bool again; /* it becomes a candidate again when the command has ended */
    /* Each may be NULL. */
    const char *value;   /* published while it leads */
    const char *standby; /* the hooks: shell commands */
    const char *on_elected;
    const char *on_deposed;
};

/* The shared flags. A verb's own have ids from RUN_FLAG_OWN on. */
enum {
    RUN_FLAG_GRACE = FLAG_LONG,
    RUN_FLAG_ON_LOST,
    RUN_FLAG_MAX_HOLD,
    RUN_FLAG_NAME,
    RUN_FLAG_ACL,
    RUN_FLAG_REVOCABLE,
    RUN_FLAG_ONCE,
    RUN_FLAG_FOR,
    RUN_FLAG_AT_MOST_ONCE,
    RUN_FLAG_DONE_CODE,
    RUN_FLAG_MIN_HOLD,
    RUN_FLAG_LOCK_DELAY,
    RUN_FLAG_NOTIFY,
    RUN_FLAG_DETECT,
    RUN_FLAG_SAME_USER,
    RUN_FLAG_WITH_PARENT,
    RUN_FLAG_OWN
};

/* verb.shares of the four verbs: which rows of the table they have. */
enum { RUN_LOCK = 1, RUN_RWLOCK = 2, RUN_SEMAPHORE = 4, RUN_ELECT = 8 };
/* verb.more_flags of the four verbs. */
const struct flag *run_flags_of(const struct verb *v, size_t i);

/* Parses one flag; false after a message. */
bool run_flags_take(struct run_plan *p, int id);
/* Parses the path, the command and the servers. EXIT_OK, or the exit code after a message. */
int run_flags_take_args(struct run_plan *p);
/* Warns if the access list keeps participants from queueing behind this one. */
void run_flags_warn_of_acl(const struct run_plan *p);

#endif
