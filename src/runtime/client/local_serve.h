/* local_serve.h - the server's side of "local:" (local_paths.h): serving it, and reporting to the
 * client that started it. */
#ifndef CLAVE_RUNTIME_CLIENT_LOCAL_SERVE_H
#define CLAVE_RUNTIME_CLIENT_LOCAL_SERVE_H

#include "runtime/server/server_run.h"

/* What a server reports on its descriptor 1 to the client that started it, before it serves or
 * ends: a letter, followed by the text of a fault if there is one. */
enum { LOCAL_WORD_CAP = 512 };
enum local_word {
    LOCAL_SAYS_NOTHING = 0, /* it ended without a report */
    LOCAL_SAYS_READY = 'r',
    LOCAL_SAYS_BUSY = 'b',  /* another server has the directory */
    LOCAL_SAYS_LATER = 'l', /* a fault that may pass */
    LOCAL_SAYS_NEVER = 'n', /* a fault that the user has to correct */
};

/* Reports to the client that has started this process that it will not serve, because of
 * `fault`. */
void clave__local_refuse(const char *fault);
/* Serves DIR until no client has been connected for o->idle_exit_ms (0: a minute). The data
 * directory and the addresses in o are ignored. Also returns CLAVE_OK if another process is already
 * serving DIR. Reports the outcome on descriptor 1 to the client that started it. */
clave_err clave__local_serve(const char *dir, const struct server_run_options *o, char *fault,
                             size_t cap);

#endif
