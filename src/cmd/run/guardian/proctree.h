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
#include <sys/types.h>

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

#endif
