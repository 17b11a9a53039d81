/* local_serve.h - serving "local:" (local_paths.h): the server's side, and what it reports to the
 * client that started it. */
#ifndef CLAVE_RUNTIME_CLIENT_LOCAL_SERVE_H
#define CLAVE_RUNTIME_CLIENT_LOCAL_SERVE_H

#include "runtime/server/server_run.h"

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

/* Reports to the client that has started this process that it will not serve, because of `fault`.
 */
void clave__local_refuse(const char *fault);
/* Serves DIR until no client has been connected for o->idle_exit_ms (0: a minute). o's data
 * directory and addresses are ignored. Returns CLAVE_OK too if another process serves DIR already.
 * Reports the outcome on descriptor 1 to the client that started it. */
clave_err clave__local_serve(const char *dir, const struct server_run_options *o, char *fault,
                             size_t cap);

#endif
