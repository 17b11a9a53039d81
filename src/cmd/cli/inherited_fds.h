/* inherited_fds.h - what the process that started clave has left it: descriptors, signals, umask.
 * clave makes of it what it needs for itself, and gives back what it found to whatever it executes.
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
    struct sigaction actions[INHERITANCE_SIGNALS]; /* of the signals that clave changes */
    mode_t umask;
    pid_t parent; /* the process that started this one; it may have ended since */
};

/* Opens those of the descriptors 0 to 2 that are closed. false: it cannot. */
bool inheritance_hold_descriptors(void);

/* Notes how this process was started, and changes it. Called once, before there are threads. */
void inheritance_take(struct inheritance *out);

/* Undoes that, before an exec. */
void inheritance_restore(const struct inheritance *in);

/* Blocks SIGINT, SIGTERM and SIGHUP, except those that are ignored, and `also` (0: none), and
 * returns a signalfd of them. -1: errno. */
int inheritance_open_signals(int also);

#endif
