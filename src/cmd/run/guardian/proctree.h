/* proctree.h - all descendants of this process, wherever they have moved, including those in other
 * process groups and sessions. This needs a process that is a child sub-reaper, so that orphans
 * come back to it.
 *
 * The local server, which serves the connect string "local:", belongs to no command, although the
 * client that started it may be one of our descendants. It is left alone if it runs this very
 * program and is as detached as the client that starts it leaves it. Processes below it are not
 * left alone. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_PROCTREE_H
#define CLAVE_CMD_RUN_GUARDIAN_PROCTREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends `sig` to all descendants; 0 sends nothing. The process group `group` (0: none) is signalled
 * as a whole, so that no shell in it sees its child die and goes on to its next command. Returns
 * how many are alive. -1: /proc cannot be read, and only the group was signalled. */
int proctree_signal(int sig, pid_t group);

/* Returns true if no descendant is alive. This is certain if the kernel has CONFIG_PROC_CHILDREN,
 * as the kernels of all distributions do; otherwise true means only that none was seen. The caller
 * must not wait for children during the call. */
bool proctree_is_gone(void);

/* Kills all descendants. Stops them first (SIGSTOP), until another look finds no more, so that none
 * can start another meanwhile; then kills them. Returns how many were alive, or -1 as above.
 * Processes started after the last look are found by the next call: call this until nothing is
 * alive. */
int proctree_kill(pid_t group);

/* Calls `visit` for each descendant, including dead ones, a parent before its children. With
 * CONFIG_PROC_CHILDREN the cost depends on the number of descendants, not on that of all processes.
 * Processes that start or move during the call may be missed. */
void proctree_each(void (*visit)(void *arg, pid_t pid), void *arg);

/* Calls `visit` for each local server that the functions above leave alone. */
void proctree_each_server(void (*visit)(const void *arg, pid_t server), const void *arg);

/* ---- one process ----------------------------------------------------------------------------- */

struct proc {
    pid_t parent, group, session;
    bool dead; /* it is a zombie, and none of its threads runs */
};

/* True if /proc can be used. false: there is none, or it belongs to another PID namespace, whose
 * numbers mean other processes (`unshare --pid` without --mount-proc). */
bool proc_is_ours(void);
/* Judges by the letter of the state and the number of threads: a process whose first thread has
 * ended is shown as a zombie, but its other threads are counted and run on. */
bool proc_state_is_dead(char state, int threads);
/* false: there is no such process, /proc is not ours, or the process is hidden from us
 * (hidepid). */
bool proc_read(pid_t pid, struct proc *out);
/* When it was started, in clock ticks since boot: together with the pid this identifies a process
 * even if the number is reused. 0: it cannot be read. Waits while the process is within execve(2).
 */
unsigned long long proc_start_time(pid_t pid);
/* True if the process descends from `ancestor`, as far as this can be determined: while we look,
 * its parents may end, and it may get another one. */
bool proc_is_below(pid_t pid, pid_t ancestor);

#endif
