/* local.h - "local:", the server of this user on this machine, started by the first client
 * that needs it and ended when nobody does.
 *
 * Its directory (CLAVE_LOCAL_DIR, else $XDG_STATE_HOME/clave, else ~/.local/state/clave)
 * holds the data directory, serve.log, and the socket unless its path would be too long for
 * the kernel. Two first clients may start two servers: the one that gets the lock of the
 * data directory serves, the other one ends, and both clients find the first.
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
    char socket[104]; /* sun_path has 108 */
    /* The variable that was not followed, since what it names is another user's and this is root,
     * who leaves nothing there; NULL: none. */
    const char *passed_over;
};

/* `dir` NULL: that of the environment. EINVAL: there is no usable directory; `fault` says
 * why. Creates nothing. */
clave_err clave__local_paths(struct local_paths *out, const char *dir, char *fault, size_t cap);

/* Makes the directory, those above it and that of the socket: this user's alone. */
clave_err clave__local_make_dirs(const struct local_paths *p, const struct fault *f);

/* What a server says on its descriptor 1 to the client that started it, before it serves or ends:
 * a letter, and of a fault the text. */
enum { LOCAL_WORD_CAP = 512 };
enum local_word {
    LOCAL_SAYS_NOTHING = 0, /* it has ended before it could */
    LOCAL_SAYS_READY = 'r',
    LOCAL_SAYS_BUSY = 'b',  /* another has the directory */
    LOCAL_SAYS_LATER = 'l', /* a fault that may go by itself */
    LOCAL_SAYS_NEVER = 'n', /* one that somebody has to mend */
};

/* What to start as `PROGRAM serve --local DIR`; the program itself sets "/proc/self/exe" at
 * its start. Not set: $CLAVE_BIN, else "clave" in PATH. The string must stay. */
void clave__local_set_program(const char *program);

/* A connected descriptor (non-blocking), having started the server when nobody listens; or
 * -1: `fault` says why, and `for_good` whether that stays until somebody mends it. Blocks, for some
 * seconds at most. Any thread. */
int clave__local_dial(bool *for_good, char *fault, size_t cap);

/* To the client that has started this process: it will not serve, since `fault`. */
void clave__local_refuse(const char *fault);
/* Serves DIR until nobody has been connected for o->idle_exit_ms (0: a minute). o's data
 * directory and addresses are ignored. CLAVE_OK too when another process serves DIR
 * already. Says on descriptor 1, to the client that started it, how it went. */
clave_err clave__local_serve(const char *dir, const struct server_run_options *o, char *fault,
                             size_t cap);

#endif
