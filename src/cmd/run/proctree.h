/* proctree.h - every descendant of this process, wherever it has moved to: those in other
 * process groups and sessions too, provided that this process is a child sub-reaper, so that
 * an orphan comes back to it.
 *
 * The local server of "local:" is nobody's offspring, although a client that starts it may be
 * one of ours: it is left alone, when it is this very program and as detached as such a client
 * leaves it. What it may have below it is not. */
#ifndef CLAVE_CMD_RUN_PROCTREE_H
#define CLAVE_CMD_RUN_PROCTREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends `sig` to all of them; 0 sends nothing. The process group `group` (0: none) gets it in
 * one piece, so that no shell in it sees its child die and goes on to the next. Returns how
 * many are alive; -1: /proc cannot be read, and only the group got it. */
int proctree_signal(int sig, pid_t group);

/* Nothing of it is alive: certain, as far as the kernel has CONFIG_PROC_CHILDREN, as those of all
 * distributions have; else none was seen. By a process that waits for no child meanwhile. */
bool proctree_is_gone(void);

/* Kills all of them: stops them (SIGSTOP) until no look at the machine finds more, so that none
 * starts another meanwhile, and then ends them. Returns how many were alive, or -1, as above. What
 * was started behind the last look is met by the next call: until nothing is alive. */
int proctree_kill(pid_t group);

/* Calls `tell` for each local server that is left alone. */
void proctree_each_server(void (*diag)(const void *arg, pid_t server), const void *arg);

#endif
