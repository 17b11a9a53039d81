/* guardian.h - the runner's side of the guardian, the process that starts the command and ends it
 * in time. guardian.c explains how that works. Map of this folder:
 *   guardian   the process, and the runner's side: start, orders, reports
 *   cgroup     the command's control group, where the system lets us have one
 *   proctree   all descendants, and killing them; holdout: those that cannot be killed
 *   watchdog_device  --watchdog: what resets the machine if a process cannot be killed */
#ifndef CLAVE_CMD_RUN_GUARDIAN_GUARDIAN_H
#define CLAVE_CMD_RUN_GUARDIAN_GUARDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/run/deadline_page.h"
#include "cmd/run/guardian/cgroup.h"
#include "cmd/run/guardian/holdout.h"
#include "cmd/run/guardian/watchdog_device.h"
#include "cmd/run/parent_watch.h"
#include "supervise/kill_policy.h"

/* How the command is to be run, from the flags to exec: run_flags.c fills this in and
 * guardian_become acts on it; nothing in between looks at the members. */
struct command {
    char *const *argv;
    /* the socket that the command is to use as its service manager's, and how often
     * (sd_notify_offer) */
    const char *notify_socket;
    int64_t watchdog_ms;
    /* sets PR_SET_NO_NEW_PRIVS: neither the command nor what it starts can become another user,
     * whose processes clave could not end */
    bool same_user;
    /* this is not the command but something that clave runs besides: it gets no standard input, and
     * its output goes to standard error */
    bool aside;
};

/* The holder that is to be fenced, as the fence's environment describes it (CLAVE_FENCE_...). */
struct fence_target {
    int64_t token, pid;                                 /* 0: unknown */
    bool foreign;                                       /* it left no mark */
    char host[256], name[256], command[512], text[512]; /* "": unknown */
};

struct watchdog_plan {
    const char *device; /* NULL: none */
    enum { WATCHDOG_REQUIRED, WATCHDOG_TRY, WATCHDOG_NOT_USED } mode;
    bool tuned; /* the mode was given */
};

struct guardian_plan {
    struct options *o;
    const char *connect;
    const char *path;
    const char *holders; /* the parent node of the holders' nodes */
    const char *owner;   /* CLAVE_OWNER of the command; "": not set */
    const struct command *command;
    const struct command *fence; /* run before the command if its task says so; NULL: none */
    /* The mark that the runner leaves while the command runs. If the runner is dead by the end of
     * the command, the guardian removes it, since it knows that nothing is left. NULL: none. */
    const char *mark;
    const struct watchdog_plan *watchdog; /* for the command, not for the fence */
    const struct parent_watch *parent;
    bool in_place; /* the runner may be replaced by another program, which goes on with this
                      guardian */
};

/* What another process needs to re-attach to a session and close it. */
struct session_key {
    int64_t id; /* 0: no session */
    int32_t timeout_ms;
    uint8_t passwd[16];
};

struct guardian_task {
    int64_t token;
    int64_t session_id, session_ms;
    struct kill_policy_terms terms;
    char node[448]; /* name of the lock's node, below `holders`; that of a slot is long */
    bool fences;    /* runs the fence against `fence`; the command follows later */
    struct fence_target fence;
};

enum guardian_event {
    GUARDIAN_STARTED,    /* value: process id of the command, and of its group */
    GUARDIAN_REFUSED,    /* the command cannot be run; value: errno */
    GUARDIAN_NO_PROCESS, /* the system has no process for it; value: errno */
    GUARDIAN_STOPPED,    /* value: the signal that stopped the command */
    GUARDIAN_ENDING,     /* the command is being ended; cause */
    /* value: a signal that could not be passed on, because the command, `holdout`, refuses it */
    GUARDIAN_DENIED,
    GUARDIAN_HOLDOUT, /* `holdout` runs, which could not be ended if that became necessary */
    GUARDIAN_STUCK,   /* the command is being killed, but `holdout` cannot be; cause */
    GUARDIAN_ARMING,  /* the watchdog is about to be opened, which starts it */
    GUARDIAN_ARMED,   /* the watchdog is fed; value: its timeout in milliseconds */
    GUARDIAN_UNARMED, /* the watchdog cannot be used: `watchdog` says why. If it is required, the
                         command is not started */
    GUARDIAN_STARVED, /* the watchdog is not fed any more */
    GUARDIAN_ENDED,   /* no process of the command is alive; value: the status of waitpid; cause */
};
struct guardian_report {
    enum guardian_event event;
    enum kill_policy_cause cause;
    int value;
    struct holdout holdout;
    struct watchdog_trouble watchdog;
};

struct guardian {
    pid_t pid; /* 0: no guardian */
    int socket;
    struct cgroup cgroup; /* the command's control group while it runs */
    struct deadline_page *page;
    int page_fd; /* of the page, if the runner may be replaced; otherwise -1 */
};

/* Forks the guardian. Call this before the process starts any thread. Returns EXIT_OK, or an exit
 * code after a message. */
int guardian_start(struct guardian *g, const struct guardian_plan *plan);
/* Goes on with the guardian that the program before this one has started: all but `page` is set.
 * Returns false if its page cannot be mapped; errno says why. */
bool guardian_adopt(struct guardian *g);
/* The sizes of orders and reports, which a program that adopts a guardian has to have in common
 * with it. */
size_t guardian_size_of_order(void);
/* Tells the guardian which session to close if the runner dies. */
void guardian_set_session(struct guardian *g, const struct session_key *key);
/* Starts the command, or the fence before it. The page must contain the deadline already. */
void guardian_run(struct guardian *g, const struct guardian_task *task);
/* Sends a signal to the command's process group. */
void guardian_forward(struct guardian *g, int sig);
/* Ends the command the way --on-lost says. `cause`: CAUSE_LOST (or it was asked for), or
 * CAUSE_UNHEALTHY. */
void guardian_stop(struct guardian *g, enum kill_policy_cause cause);
/* Reads the next report without blocking. 1: *out is filled in; 0: there is none; -1: the guardian
 * is dead. */
int guardian_read(struct guardian *g, struct guardian_report *out);
/* A child `pid` of this process has been waited for. If it was the guardian, its number may be
 * reused from now on, so it is forgotten. */
void guardian_note_reaped(struct guardian *g, pid_t pid);
/* Kills the guardian (SIGKILL) and waits for it: there is nothing left to guard. */
void guardian_dismiss(struct guardian *g);
/* The exit code of clave for the errno in GUARDIAN_REFUSED. */
int guardian_exit_code(int error);

#endif
