/* lock_flags.h - the flags of `clave lock`, `rwlock`, `semaphore` and `elect`, and the plan that
 * they are parsed into. */
#ifndef CLAVE_CMD_RUN_LOCK_FLAGS_H
#define CLAVE_CMD_RUN_LOCK_FLAGS_H

#include "clave/async/mutex.h"
#include "cmd/cli/acl.h"
#include "cmd/cli/options.h"
#include "cmd/run/guardian.h"
#include "cmd/run/owner.h"
#include "cmd/run/run_policy.h"
#include "cmd/run/sd_notify.h"

enum { LOCK_TRY = 0, LOCK_FOR_EVER = -1, LOCK_GRACE_DEFAULT = -1 };
/* The longest duration that can be asked for: a year. */
#define LOCK_FLAG_YEAR_MS (INT64_C(366) * 24 * 3600 * 1000)

enum lock_kind { KIND_MUTEX, KIND_READ, KIND_WRITE, KIND_LEASE };

struct lock_plan {
    struct options *o;
    bool elects; /* a leadership, not a lock */
    enum lock_kind kind;
    uint32_t limit;         /* KIND_LEASE: how many there are; 0: as the shared one says */
    const char *limit_path; /* KIND_LEASE: the node that has it; may be NULL */
    const char *path;
    const char *holders; /* where the nodes of those who hold it stand: the path, or below */
    const char *connect;
    char *const *argv;   /* the command */
    const char *name;    /* of this participant, for others to see; may be NULL. Elects: the id */
    int64_t wait_ms;     /* LOCK_TRY, LOCK_FOR_EVER, or for so long */
    int64_t grace_ms;    /* LOCK_GRACE_DEFAULT: by the session timeout */
    int64_t max_hold_ms; /* 0: no limit */
    enum on_lost on_lost;
    bool revocable;    /* the command is ended when somebody asks for the lock */
    bool detects;      /* gives up to end a deadlock */
    const char *root;  /* where it looks for one; NULL: the parent of the path */
    int conflict_code; /* the exit code when it is not acquired in time */
    bool quiet;
    struct acl_list acl; /* of the lock node; empty: open */
    struct run_policy_plan run_policy;
    char owner[OWNER_CAP]; /* of the lock; "": nobody's in particular */
    enum sd_notify_when notify;

    /* Elects. */
    int32_t priority; /* 0: none */
    bool spread;      /* the priority is made of path and id */
    bool preempt;
    bool again; /* it stands again when the command has ended */
    /* Each may be NULL. */
    const char *value;   /* published while it leads */
    const char *standby; /* the hooks: shell commands */
    const char *on_elected;
    const char *on_deposed;
};

/* The flags both verbs take. */
enum {
    LOCK_FLAG_GRACE = FLAG_LONG,
    LOCK_FLAG_ON_LOST,
    LOCK_FLAG_MAX_HOLD,
    LOCK_FLAG_NAME,
    LOCK_FLAG_ACL,
    LOCK_FLAG_REVOCABLE,
    LOCK_FLAG_ONCE,
    LOCK_FLAG_FOR,
    LOCK_FLAG_AT_MOST_ONCE,
    LOCK_FLAG_DONE_CODE,
    LOCK_FLAG_MIN_HOLD,
    LOCK_FLAG_LOCK_DELAY,
    LOCK_FLAG_NOTIFY,
    LOCK_FLAG_DETECT,
    LOCK_FLAG_OWN /* and up: a verb's own */
};
/* Takes one; false: told. `max_hold` is what the verb calls that flag. (lock_flags.c) */
bool lock_flags_take(struct lock_plan *p, int id, const char *max_hold);
/* The path and the command, and the servers. EXIT_OK, or the exit code, having told why. */
int lock_flags_take_args(struct lock_plan *p);

#endif
