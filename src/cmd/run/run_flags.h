/* run_flags.h - the flags of `clave lock`, `rwlock`, `semaphore` and `elect`, some of which `clave
 * slot run` has too, and the plan that they are parsed into. */
#ifndef CLAVE_CMD_RUN_RUN_FLAGS_H
#define CLAVE_CMD_RUN_RUN_FLAGS_H

#include "clave/async/mutex.h"
#include "cmd/cli/acl_text.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/run/command_notify.h"
#include "cmd/run/guardian/guardian.h"
#include "cmd/run/health_check.h"
#include "cmd/run/parent_watch.h"
#include "cmd/run/stages/once_and_min_hold.h"
#include "cmd/service/sd_notify.h"

enum { RUN_OWNER_CAP = 512 };
enum { LOCK_TRY = 0, LOCK_FOR_EVER = -1, LOCK_GRACE_DEFAULT = -1 };
/* The longest duration that a flag accepts: a year. */
#define RUN_FLAG_YEAR_MS (INT64_C(366) * 24 * 3600 * 1000)

enum lock_kind { KIND_MUTEX, KIND_READ, KIND_WRITE, KIND_LEASE };

struct run_plan {
    struct options *o;
    bool elects; /* a leadership instead of a lock */
    enum lock_kind kind;
    uint32_t limit;         /* KIND_LEASE: number of leases; 0: read it from limit_path */
    const char *limit_path; /* KIND_LEASE: the node that contains the number; may be NULL */
    const char *path;
    const char *holders; /* parent of the holders' nodes: `path`, or a node below it */
    const char *connect;
    struct command command;
    /* of this participant, as others see it; may be NULL. For elections, its id */
    const char *name;
    int64_t wait_ms;     /* LOCK_TRY, LOCK_FOR_EVER, or milliseconds */
    int64_t grace_ms;    /* LOCK_GRACE_DEFAULT: derived from the session timeout */
    int64_t max_hold_ms; /* 0: no limit */
    enum on_lost on_lost;
    bool revocable;    /* end the command when another participant asks for the lock */
    bool detects;      /* look for deadlocks, and give up to end one */
    const char *root;  /* where to look for them; NULL: below the parent of the path */
    int conflict_code; /* exit code when the lock is not acquired in time */
    bool quiet;
    const char *resume; /* the file through which the lock passes to the next process, or NULL */
    bool replaceable;   /* SIGUSR2 has this process replaced by a newer program (in_place.h) */
    /* What the program before this one has left for it, NULL: it was started as usual; and the
     * session in it. */
    struct in_place_state *in_place;
    char *handed_session;
    int64_t granted_wall_ms; /* when that program was granted the lock; 0: it was not */
    bool with_parent;        /* end when this process ends: */
    struct parent_watch parent;
    struct acl_list acl; /* of the lock's node; empty: open to all */
    /* &acl, to be filled in with the list of the node at `path`; NULL: the list was given */
    struct acl_list *parent_acl;
    struct run_stages_plan stages;
    char owner[RUN_OWNER_CAP]; /* CLAVE_OWNER; "": none */
    enum sd_notify_when notify;
    struct command_notify_plan command_notify;
    struct health_plan health;
    struct watchdog_plan watchdog;

    /* For elections only. */
    int32_t priority; /* 0: none */
    bool spread;      /* derive the priority from path and id */
    bool preempt;
    bool again; /* become a candidate again when the command has ended */
    /* Each of these may be NULL. */
    const char *value;   /* published while this process leads */
    const char *standby; /* this and the next two are hooks: shell commands */
    const char *on_elected;
    const char *on_deposed;
};

/* Ids of the shared flags. A verb's own flags have ids from RUN_FLAG_OWN on. */
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
    RUN_FLAG_FENCE,
    RUN_FLAG_FENCE_TIMEOUT,
    RUN_FLAG_FENCE_FAILS,
    RUN_FLAG_FENCE_FOREIGN,
    RUN_FLAG_DETECT,
    RUN_FLAG_SAME_USER,
    RUN_FLAG_WITH_PARENT,
    RUN_FLAG_HEALTH,
    RUN_FLAG_HEALTH_EVERY,
    RUN_FLAG_HEALTH_TIMEOUT,
    RUN_FLAG_HEALTH_FAILS,
    RUN_FLAG_HEALTH_GRACE,
    RUN_FLAG_ON_UNHEALTHY,
    RUN_FLAG_NOTIFY,
    RUN_FLAG_READY,
    RUN_FLAG_READY_TIMEOUT,
    RUN_FLAG_WATCHDOG_SEC,
    RUN_FLAG_WATCHDOG,
    RUN_FLAG_WATCHDOG_MODE,
    RUN_FLAG_RESUME,
    RUN_FLAG_IN_PLACE,
    RUN_FLAG_OWN
};

/* The verbs, as bits of `shares` in struct verb: which rows of the table each one has. */
enum { RUN_LOCK = 1, RUN_RWLOCK = 2, RUN_SEMAPHORE = 4, RUN_ELECT = 8, RUN_SLOT = 16 };
enum { RUN_MEMBER = 32, RUN_REGISTER = 64 };
/* `more_flags` of struct verb for these verbs. */
const struct flag *run_flags_of(const struct verb *v, size_t i);

/* Parses the word of --notify. false: it is invalid, and a message has been printed. */
bool run_flags_take_notify(struct options *o, enum sd_notify_when *out);
/* Parses one flag. false: it is invalid, and a message has been printed. */
bool run_flags_take(struct run_plan *p, int id);
/* Parses the path, the command and the servers. Returns EXIT_OK, or an exit code after a
 * message. */
int run_flags_take_args(struct run_plan *p);
/* Gives back what run_flags_take and run_flags_take_args have taken. */
void run_flags_free(struct run_plan *p);
/* Warns if the access list would keep other participants from queueing behind this one. */
void run_flags_warn_of_acl(const struct run_plan *p);

#endif
