/* offspring.h - every descendant of this process, wherever it has moved to: those in other
 * process groups and sessions too, provided that this process is a child sub-reaper, so that
 * an orphan comes back to it.
 *
 * The local server of "local:" is nobody's offspring, although a client that starts it may be
 * one of ours: it is left alone. */
#ifndef CLAVE_CMD_OFFSPRING_H
#define CLAVE_CMD_OFFSPRING_H

#include <sys/types.h>

/* Sends `sig` to all of them; 0 sends nothing. The process group `group` (0: none) gets it in
 * one piece, so that no shell in it sees its child die and goes on to the next. Returns how
 * many are alive; -1: /proc cannot be read, and only the group got it. */
int offspring_signal(int sig, pid_t group);

#endif
