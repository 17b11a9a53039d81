/* proctree.h - every descendant of this process, wherever it has moved to: those in other process
 * groups and sessions too, provided that this process is a child sub-reaper, so that orphans come
 * back to it.
 *
 * The local server of "local:" belongs to no command, although a client that starts it may be one
 * of ours: it is left alone if it runs this very program and is as detached as such a client leaves
 * it. Processes that it may have below it are not left alone. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_PROCTREE_H
#define CLAVE_CMD_RUN_GUARDIAN_PROCTREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/run/guardian/cgroup.h"
#include "supervise/kill_policy.h"

/* Sends `sig` to all of them; 0 sends nothing. The process group `group` (0: none) is signalled as
 * a whole, so that no shell in it sees its child die and goes on to the next. Returns how many are
 * alive; -1: /proc cannot be read, and only the group was signalled. */
int proctree_signal(int sig, pid_t group);

/* No descendant is alive. Certain where the kernel has CONFIG_PROC_CHILDREN, as those of all
 * distributions do; elsewhere it means that none was seen. The caller must not wait for children
 * meanwhile. */
bool proctree_is_gone(void);

/* Kills all of them: stops them (SIGSTOP) until another look finds no more, so that none starts
 * another meanwhile, then kills them. Returns how many were alive, or -1 as above. What was started
 * after the last look is met by the next call: call it until nothing is alive. */
int proctree_kill(pid_t group);

/* Calls `visit` for each descendant, dead ones too, a parent before its children. Costs what there
 * are descendants, not what there are processes, where the kernel has CONFIG_PROC_CHILDREN. Those
 * that begin or move meanwhile may be missed. */
void proctree_each(void (*visit)(void *arg, pid_t pid), void *arg);

/* Calls `visit` for each local server that is left alone. */
void proctree_each_server(void (*visit)(const void *arg, pid_t server), const void *arg);

/* ---- one process ----------------------------------------------------------------------------- */

struct proc_stat {
    pid_t parent, group, session;
    /* In ticks since the machine was started. Together with the pid this identifies a process, even
     * if the number is reused. */
    unsigned long long start;
    bool dead; /* a zombie, without a thread that runs */
};

/* false: there is no /proc, or it is that of another PID namespace, whose numbers mean other
 * processes (`unshare --pid` without --mount-proc). */
bool proc_is_ours(void);
/* By the letter of its state and its number of threads. A process whose first thread has ended is a
 * zombie that counts other threads: those run on. */
bool proc_state_is_dead(char state, int threads);
/* false: there is no such process, /proc is not ours, or it is hidden from us (hidepid). */
bool proc_stat_read(pid_t pid, struct proc_stat *out);

/* ---- those that cannot be ended -------------------------------------------------------------- */

/* A holdout is a descendant that clave cannot end: another user's, to whom this process may send no
 * signal (sudo, and whatever else is set-user-ID), or one that sleeps in the kernel where SIGKILL
 * does not reach it (state D). Those in the command's control group are none: the kernel ends them.
 * Nothing is inferred from user ids: signal 0 is sent, and it is refused or not. */

enum { HOLDOUT_NAME_CAP = 64, HOLDOUT_TEXT_CAP = 160, HOLDOUT_UNKNOWN = -1 };

struct holdout {
    pid_t pid;   /* 0: none */
    int64_t uid; /* the user that it runs as; HOLDOUT_UNKNOWN: /proc does not tell */
    char name[HOLDOUT_NAME_CAP]; /* of its program, as /proc has it; may be "" */
    bool asleep;                 /* SIGKILL waits until it wakes; else signals are refused */
};

struct holdouts {
    struct holdout first; /* one whose ancestors are none */
    int n;
};

/* Looks at every descendant of this process. `c`: the command's group, if any. */
void holdout_look(struct holdouts *out, const struct cgroup *c);
/* Nothing but these is left of the `alive` that proctree_kill has counted. */
static inline bool holdout_is_all(const struct holdouts *h, int alive)
{
    return h->n > 0 && alive <= h->n;
}
/* There are some; what sleeps is one when SIGKILL has been tried for so long that the attempts have
 * become rare, not for a moment's wait for a disk. */
static inline bool holdout_is_certain(const struct holdouts *h, int64_t pace_ms)
{
    return h->n > 0 && (!h->first.asleep || pace_ms >= KILL_POLICY_SLOWEST_MS);
}
/* Is this a process that refuses our signals? Then fills in *out. */
bool holdout_refuses(struct holdout *out, pid_t pid);
/* "process 1234 (sudo) of user root"; the name is printable. */
const char *holdout_text(const struct holdout *h, char out[HOLDOUT_TEXT_CAP]);
/* "root", or its number: a user database may be on another machine, and is not asked. */
const char *holdout_user(const struct holdout *h, char out[HOLDOUT_NAME_CAP]);

#endif
