/* local_serve.c - serves this user's local server, and reports the outcome to the client that
 * started it; called by `clave serve --local`. At most one report is made: the client reads it
 * before its first connection. */
#include "runtime/client/local_serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/client/local_paths.h"
#include "runtime/start_error.h"

enum { IDLE_EXIT_MS = 60000 };

/* Reports to the client that is waiting at the other end of a pipe, then closes descriptor 1. */
static void local_say(char word, const char *fault)
{
    struct stat st;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    char text[LOCAL_WORD_CAP];
    if (fstat(1, &st) != 0 || !S_ISFIFO(st.st_mode))
        return; /* it was started by hand */
    int n = snprintf(text, sizeof text, "%c%s", word, fault);
    sigaction(SIGPIPE, &ignore, &before); /* the client may not have waited */
    ssize_t ignored = write(1, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    (void)ignored;
    sigaction(SIGPIPE, &before, NULL);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 1);
        close(null);
    }
}

/* A fault that does not pass has to be corrected by the user. */
static clave_err local_say_fault(clave_err err, const char *fault)
{
    local_say(clave__start_error_passes(err) ? LOCAL_SAYS_LATER : LOCAL_SAYS_NEVER,
              *fault ? fault : clave_strerror(err));
    return err;
}

void clave__local_refuse(const char *fault)
{
    local_say(LOCAL_SAYS_NEVER, fault);
}

clave_err clave__local_serve(const char *dir, const struct server_run_options *o, char *fault,
                             size_t cap)
{
    const struct fault f = {fault, cap};
    struct server_run_options own = *o;
    struct local_paths p;
    struct server_run *r;
    char address[sizeof p.socket + 8];
    const char *listen = address;
    fault[0] = '\0';
    clave_err err = clave__local_paths(&p, dir, fault, cap);
    if (err == CLAVE_OK)
        err = clave__local_make_dirs(&p, &f);
    if (err != CLAVE_OK)
        return local_say_fault(err, fault);
    snprintf(address, sizeof address, "unix:%s", p.socket);
    own.data_dir = p.dir;
    own.listen = &listen;
    own.nlisten = 1;
    if (own.idle_exit_ms == 0)
        own.idle_exit_ms = IDLE_EXIT_MS;
    err = clave__server_run_new(&r, &own, fault, cap);
    /* two servers were started at the same time, and the other was first */
    if (err == CLAVE_EINUSE) {
        local_say(LOCAL_SAYS_BUSY, "");
        return CLAVE_OK;
    }
    if (err != CLAVE_OK)
        return local_say_fault(err, fault);
    local_say(LOCAL_SAYS_READY, "");
    err = clave__server_run_loop(r, fault, cap);
    clave__server_run_free(r);
    return err;
}
