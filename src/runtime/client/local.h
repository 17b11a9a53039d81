/* local.h - "local:", this user's server on this machine, started by the first client that needs it
 * and ended when it is idle.
 *
 * Its directory (CLAVE_LOCAL_DIR, else $XDG_STATE_HOME/clave, else ~/.local/state/clave) holds the
 * data directory, serve.log, and the socket unless its path would be too long for the kernel. Two
 * first clients may start two servers: the one that gets the lock of the data directory serves, the
 * other ends, and both clients find the first.
 *
 * CLAVE_LOCAL=never: it is neither used nor started. */
#ifndef CLAVE_RUNTIME_CLIENT_LOCAL_H
#define CLAVE_RUNTIME_CLIENT_LOCAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/server/uv_server.h"
#include "runtime/start_error.h"

struct local_paths {
    char dir[PATH_MAX];
    char socket[104]; /* sun_path has 108 bytes */
    /* The variable that was ignored because it names another user's directory and this process is
     * root's, which creates nothing there; NULL: none. */
    const char *passed_over;
};

/* `dir` NULL: from the environment. EINVAL: there is no usable directory; `fault` says why. Creates
 * nothing. */
clave_err clave__local_paths(struct local_paths *out, const char *dir, char *fault, size_t cap);

/* Creates the directory, its parents and that of the socket, for this user alone. */
clave_err clave__local_make_dirs(const struct local_paths *p, const struct fault *f);

/* What a server reports on its descriptor 1 to the client that started it, before it serves or
 * ends: a letter, followed by the text of a fault. */
enum { LOCAL_WORD_CAP = 512 };
enum local_word {
    LOCAL_SAYS_NOTHING = 0, /* it ended before it could report */
    LOCAL_SAYS_READY = 'r',
    LOCAL_SAYS_BUSY = 'b',  /* another server has the directory */
    LOCAL_SAYS_LATER = 'l', /* a fault that may pass by itself */
    LOCAL_SAYS_NEVER = 'n', /* a fault that the user has to fix */
};

/* The program to start as `PROGRAM serve --local DIR`; the program itself sets "/proc/self/exe"
 * when it starts. Not set: $CLAVE_BIN, else "clave" in PATH. The string must stay valid. */
void clave__local_set_program(const char *program);

/* A connected descriptor (non-blocking), after starting the server if nothing listens; or -1:
 * `fault` says why, and `for_good` whether it stays so until the user fixes it. Blocks for a few
 * seconds at most. Any thread. */
int clave__local_dial(bool *for_good, char *fault, size_t cap);

/* Reports to the client that has started this process that it will not serve, because of `fault`.
 */
void clave__local_refuse(const char *fault);
/* Serves DIR until no client has been connected for o->idle_exit_ms (0: a minute). o's data
 * directory and addresses are ignored. Returns CLAVE_OK too if another process serves DIR already.
 * Reports the outcome on descriptor 1 to the client that started it. */
clave_err clave__local_serve(const char *dir, const struct server_run_options *o, char *fault,
                             size_t cap);

#endif
