/* local_paths.h - "local:", this user's server on this machine, started by the first client that
 * needs it and ended when it is idle.
 *
 * Its directory (CLAVE_LOCAL_DIR, else $XDG_STATE_HOME/clave, else ~/.local/state/clave) holds the
 * data directory, serve.log, and the socket unless its path would be too long for the kernel. Two
 * first clients may start two servers: the one that gets the lock of the data directory serves, the
 * other ends, and both clients find the first.
 *
 * CLAVE_LOCAL=never, or "local = never" in the user's configuration or the machine's: it is neither
 * used nor started. */
#ifndef CLAVE_RUNTIME_CLIENT_LOCAL_PATHS_H
#define CLAVE_RUNTIME_CLIENT_LOCAL_PATHS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "clave/err.h"
#include "runtime/start_error.h"

struct local_paths {
    char dir[PATH_MAX];
    char socket[104]; /* sun_path has 108 bytes */
    /* A variable that was ignored because it names another user's directory while this process is
     * root's, which creates nothing there; NULL: none. */
    const char *passed_over;
};

/* If `dir` is NULL, finds it from the environment. EINVAL: there is no usable directory; `fault`
 * says why. Creates nothing. */
clave_err clave__local_paths(struct local_paths *out, const char *dir, char *fault, size_t cap);

/* Creates the directory, its parents and that of the socket, accessible to this user only. */
clave_err clave__local_make_dirs(const struct local_paths *p, const struct fault *f);

#endif
