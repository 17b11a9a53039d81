/* lock_flags.h - `clave lock`, `rwlock`, `semaphore` and `elect`: what was asked for, and what is
 * told about it. */
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
#define PLAN_YEAR_MS (INT64_C(366) * 24 * 3600 * 1000) /* the longest that can be asked for */

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
    enum notify_when notify;

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
    PLAN_GRACE = FLAG_LONG,
    PLAN_ON_LOST,
    PLAN_MAX_HOLD,
    PLAN_NAME,
    PLAN_ACL,
    PLAN_REVOCABLE,
    PLAN_ONCE,
    PLAN_FOR,
    PLAN_AT_MOST_ONCE,
    PLAN_DONE_CODE,
    PLAN_MIN_HOLD,
    PLAN_LOCK_DELAY,
    PLAN_NOTIFY,
    PLAN_DETECT,
    PLAN_OWN /* and up: a verb's own */
};
/* Takes one; false: told. `max_hold` is what the verb calls that flag. (lock_flags.c) */
bool plan_take_flag(struct lock_plan *p, int id, const char *max_hold);
/* The path and the command, and the servers. EXIT_OK, or the exit code, having told why. */
int plan_take_args(struct lock_plan *p);

/* Takes the lock, runs the command, gives the lock back. The exit code. *told_to_end (may be
 * NULL): a signal said so. (runner.c) */
int wrapper_run(const struct lock_plan *plan, bool *told_to_end);

/* ---- what is told, on standard error: lines, or JSON with --json (lock_report.c) ------------ */

/* `holder` may be NULL: not known. */
void lock_report_waiting(const struct lock_plan *p, size_t ahead, const clave_participant *holder);
/* No server has answered yet: `fault` says why. Only with --json: see reach.h. */
void lock_report_connecting(const struct lock_plan *p, const char *fault);
/* Waiting, and no server answers: `fault` says why. */
void lock_report_away(const struct lock_plan *p, const char *fault);
/* Waiting, and nobody gets a lease: the node that has their number has none. */
void lock_report_lack(const struct lock_plan *p, size_t ahead);
/* `fault`: why no server answers; NULL: one does. */
void lock_report_not_acquired(const struct lock_plan *p, int64_t waited_ms, const char *fault,
                              bool lacks_limit);
/* The library's own words, which name the path. */
void lock_report_warning(const struct lock_plan *p, const char *msg);
void lock_report_deadlock(const struct lock_plan *p, const char *text);
/* Behind "not authorised": what that takes. */
void lock_report_unreadable(const struct lock_plan *p);
/* It waits for the one that it runs under. */
void lock_report_nested(const struct lock_plan *p, const clave_participant *outer);
void lock_report_acquired(const struct lock_plan *p, const clave_grant *g, int64_t waited_ms);
/* The connection is gone, with so long until the deadline, or back. */
void lock_report_connection(const struct lock_plan *p, bool up, int64_t left_ms);
void lock_report_lost(const struct lock_plan *p, clave_err why);
/* Somebody wants the lock, or the leader to resign. */
void lock_report_asked(const struct lock_plan *p);
void lock_report_ending(const struct lock_plan *p, enum kill_policy_cause cause);
/* The holder before was lost: this one begins so much later. */
void lock_report_delay(const struct lock_plan *p, const clave_identity *who, int64_t delay_ms);
/* It has been run already. */
void lock_report_done(const struct lock_plan *p, const clave_once_record *former);
/* The command has ended, and the minimum hold has not. */
void lock_report_resting(const struct lock_plan *p, int64_t left_ms);
void lock_report_ended(const struct lock_plan *p, int code, int64_t held_ms);

#endif
