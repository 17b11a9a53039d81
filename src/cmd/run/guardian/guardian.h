/* guardian.h - the runner's side of the guardian, the process that starts the command and ends it
 * in time. guardian.c explains how. The folder:
 *   guardian   the process, and the runner's side: start, orders, reports
 *   cgroup     the command's control group, where the system lets us have one
 *   proctree   all descendants, and killing them; holdout: those that cannot be killed */
#ifndef CLAVE_CMD_RUN_GUARDIAN_GUARDIAN_H
#define CLAVE_CMD_RUN_GUARDIAN_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/run/deadline_page.h"
#include "cmd/run/guardian/cgroup.h"
#include "cmd/run/guardian/holdout.h"
#include "cmd/run/parent_watch.h"
#include "supervise/kill_policy.h"

/* The command, from its flags to its exec: run_flags.c fills this in, guardian_become acts on it,
 * and nothing in between looks at its members. */
struct command {
    char *const *argv;
    bool notifies;  /* it inherits the service manager's variables */
    bool same_user; /* neither it nor what it starts can become another user, whom clave could not
                       end (PR_SET_NO_NEW_PRIVS) */
};

struct guardian_plan {
    struct options *o;
    const char *connect;
    const char *path;
    const char *holders; /* the parent of the holders' nodes */
    const char *owner;   /* CLAVE_OWNER for the command; "": none */
    const struct command *command;
    const struct parent_watch *parent;
};

/* The credentials of a session, for the process that has to close it. */
struct session_key {
    int64_t id; /* 0: none */
    int32_t timeout_ms;
    uint8_t passwd[16];
};

struct guardian_task {
    int64_t token;
    int64_t session_id;
    struct kill_policy_terms terms;
    char node[448]; /* name of the lock node, below `holders`; of a slot's it is long */
};

enum guardian_event {
    GUARDIAN_STARTED,    /* value: the command's process and group */
    GUARDIAN_REFUSED,    /* it cannot be run; value: errno */
    GUARDIAN_NO_PROCESS, /* the system has no process for it; value: errno */
    GUARDIAN_STOPPED,    /* value: the signal that stopped the command */
    GUARDIAN_ENDING,     /* cause: SIGTERM or SIGKILL is being sent */
    GUARDIAN_DENIED,     /* value: a signal to pass on, which `holdout`, the command, refuses */
    GUARDIAN_HOLDOUT,    /* `holdout` could not be ended if that became necessary */
    GUARDIAN_STUCK,      /* the command is being killed, and `holdout` cannot be; cause */
    GUARDIAN_ENDED,      /* nothing of it is alive; value: the status of waitpid; cause */
};
struct guardian_report {
    enum guardian_event event;
    enum kill_policy_cause cause;
    int value;
    struct holdout holdout;
};

struct guardian {
    pid_t pid; /* 0: none */
    int socket;
    struct cgroup cgroup; /* the command's, while it runs */
    struct deadline_page *page;
};

/* Forks the guardian. Call it before this process has other threads. EXIT_OK, or the exit code
 * after a message. */
int guardian_start(struct guardian *g, const struct guardian_plan *plan);
/* Which session to close if the runner dies. */
void guardian_set_session(struct guardian *g, const struct session_key *key);
/* Starts the command. The page must hold its deadline by now. */
void guardian_run(struct guardian *g, const struct guardian_task *task);
/* Sends a signal to the command's process group. */
void guardian_forward(struct guardian *g, int sig);
/* The lock is lost: ends the command as --on-lost says. */
void guardian_stop(struct guardian *g);
/* 1: *out is filled in; 0: nothing to read; -1: the guardian is dead. Never waits. */
int guardian_read(struct guardian *g, struct guardian_report *out);
/* A child of this process has been waited for: if it was the guardian, its number is free. */
void guardian_note_reaped(struct guardian *g, pid_t pid);
/* Kills the guardian (SIGKILL): there is nothing left to guard. */
void guardian_dismiss(struct guardian *g);
/* The exit code of clave for the errno of GUARDIAN_REFUSED. */
int guardian_exit_code(int error);

#endif
