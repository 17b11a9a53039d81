/* inherited_fds.h - what clave inherits from the process that starts it: descriptors, signals, the
 * umask. clave changes these to what it needs itself, and restores them before it executes another
 * program.
 *
 *     SIGTERM   ends clave, whether it was blocked or ignored
 *     blocked   no signal stays blocked; one that is pending takes effect at once
 *     ignored   other signals stay ignored, as nohup and the background jobs of a shell need it
 *     SIGCHLD   is not ignored, which would hide how children have ended
 *     SIGPIPE, SIGXFSZ   are ignored: the write fails instead
 *     umask     takes no permission away from the owner
 *
 * A program that replaces this one in place (run/in_place.h) is given a descriptor, whose number is
 * in an environment variable. Its signals stay blocked until it can handle them. */
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
    /* The descriptor that the program before this one has left for it, or one of these. */
    int in_place;
};
enum {
    IN_PLACE_NOT = -1,  /* this program was started as usual */
    IN_PLACE_TRIED = -2 /* it is only to say whether it could replace the one that started it */
};

/* Opens /dev/null for those of the descriptors 0 to 2 that are closed. false: this failed. */
bool inheritance_hold_descriptors(void);

/* Notes how this process was started, then makes the changes above. Call this once, before there
 * are threads. */
void inheritance_take(struct inheritance *out);

/* The arguments with which this process was started; those of main have been reordered by the
 * parser. To be freed, with the first one. NULL: not known. */
char **inheritance_words(void);

/* This process's environment, for the program that replaces it, or is to say whether it could:
 * `in_place` as above. To be freed with inheritance_free_environment. NULL: no memory. */
char **inheritance_environment(int in_place);
void inheritance_free_environment(char **env);

/* Undoes the changes, before an exec. */
void inheritance_restore(const struct inheritance *in);

/* Blocks SIGINT, SIGTERM and SIGHUP, except those that are ignored, and the signal `also` (0:
 * none). Returns a signalfd for them; -1: see errno. */
int inheritance_open_signals(int also);

#endif
