/* inherited_fds.h - what clave inherits from the process that starts it: descriptors, signals, the
 * umask. clave changes these to what it needs itself, and restores them before it executes another
 * program.
 *
 *     SIGTERM   ends clave, whether it was blocked or ignored
 *     blocked   no signal stays blocked; one that is pending takes effect at once
 *     ignored   other signals stay ignored, as nohup and the background jobs of a shell need it
 *     SIGCHLD   is not ignored, which would hide how children have ended
 *     SIGPIPE, SIGXFSZ   are ignored: the write fails instead
 *     umask     takes no permission away from the owner */
#ifndef CLAVE_CMD_CLI_INHERITED_FDS_H
#define CLAVE_CMD_CLI_INHERITED_FDS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { INHERITANCE_SIGNALS = 4 };

struct inheritance {
    sigset_t mask;
    /* Previous actions of the signals that clave changes. */
    struct sigaction actions[INHERITANCE_SIGNALS];
    mode_t umask;
    pid_t parent; /* the process that started this one; it may have ended since */
};

/* Opens /dev/null for those of the descriptors 0 to 2 that are closed. false: this failed. */
bool inheritance_hold_descriptors(void);

/* Notes how this process was started, then makes the changes above. Call this once, before there
 * are threads. */
void inheritance_take(struct inheritance *out);

/* Undoes the changes, before an exec. */
void inheritance_restore(const struct inheritance *in);

/* Blocks SIGINT, SIGTERM and SIGHUP, except those that are ignored, and the signal `also` (0:
 * none). Returns a signalfd for them; -1: see errno. */
int inheritance_open_signals(int also);

#endif
