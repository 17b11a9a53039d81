/* testserver.c - a test server is made and freed; its port, which it keeps while it is stopped, and
 * its directory. */
#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sized_options.h"
#include "runtime/testing/testserver_internal.h"

enum { DEFAULT_TICK_MS = 100, DEFAULT_MAX_SESSION_MS = 60000 };

/* ---- the port and the directory ------------------------------------------------------------- */

/* The kernel gives the port to nobody while this socket is bound to it, and still lets the server
 * listen. */
static clave_err testserver_reserve_port(clave_test_server *t, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t len = sizeof a;
    int on = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    t->reserve = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (t->reserve < 0 || setsockopt(t->reserve, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(t->reserve, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(t->reserve, (struct sockaddr *)&a, &len) != 0)
        return clave__testserver_fault(
            t, errno == EADDRINUSE ? CLAVE_EINUSE : clave__err_of_errno(errno), "127.0.0.1:%u: %s",
            (unsigned)port, strerror(errno));
    t->port = ntohs(a.sin_port);
    snprintf(t->connect, sizeof t->connect, "127.0.0.1:%u", (unsigned)t->port);
    return CLAVE_OK;
}

static clave_err testserver_choose_dir(clave_test_server *t, const char *given)
{
    const char *tmp = getenv("TMPDIR");
    int n =
        given ? snprintf(t->dir, sizeof t->dir, "%s", given)
              : snprintf(t->dir, sizeof t->dir, "%s/clave-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n <= 0 || (size_t)n >= sizeof t->dir)
        return clave__testserver_fault(t, CLAVE_EINVAL, "no path for a data directory");
    if (given)
        return CLAVE_OK;
    if (!mkdtemp(t->dir))
        return clave__testserver_fault(t, clave__err_of_errno(errno), "cannot create %s: %s",
                                       t->dir, strerror(errno));
    t->owns_dir = true;
    return CLAVE_OK;
}

static int testserver_remove_entry(const char *path, const struct stat *st, int type,
                                   struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void testserver_init_locks(clave_test_server *t)
{
    pthread_mutexattr_t checked;
    pthread_condattr_t clock;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&t->calls, &checked);
    pthread_mutexattr_destroy(&checked);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&t->turned, &clock);
    pthread_condattr_destroy(&clock);
}

static clave_err testserver_begin(clave_test_server *t, const clave_test_server_options *o)
{
    if (o->tick_ms < 0 || o->min_session_ms < 0 || o->max_session_ms < 0)
        return clave__testserver_fault(t, CLAVE_EINVAL, "a time in the options is negative");
    t->engine = (struct server_options){
        .log = o->log,
        .log_arg = o->log_arg,
        .tick_ms = o->tick_ms ? o->tick_ms : DEFAULT_TICK_MS,
        .min_session_ms = o->min_session_ms,
        .max_session_ms = o->max_session_ms ? o->max_session_ms : DEFAULT_MAX_SESSION_MS,
        .extended_types = o->extended_types,
    };
    clave_err err = testserver_reserve_port(t, o->port);
    if (err == CLAVE_OK)
        err = testserver_choose_dir(t, o->data_dir);
    return err == CLAVE_OK ? clave__testserver_start(t) : err;
}

clave_err clave_test_server_new(clave_test_server **out, const clave_test_server_options *given)
{
    clave_test_server_options o;
    *out = NULL;
    clave_err err = clave__options_take(&o, sizeof o, given);
    if (err != CLAVE_OK)
        return err;
    clave_test_server *t = calloc(1, sizeof *t);
    if (!t)
        return CLAVE_ENOMEM;
    t->log = o.log;
    t->log_arg = o.log_arg;
    t->reserve = -1;
    testserver_init_locks(t);
    clave__fault_injectors_init(&t->fault_injectors);
    err = testserver_begin(t, &o);
    if (err == CLAVE_OK)
        *out = t;
    else
        clave_test_server_free(t);
    return err;
}

void clave_test_server_free(clave_test_server *t)
{
    if (!t)
        return;
    clave__testserver_kill(t);
    if (t->owns_dir)
        nftw(t->dir, testserver_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (t->reserve >= 0)
        close(t->reserve);
    clave__fault_injectors_fini(&t->fault_injectors);
    pthread_cond_destroy(&t->turned);
    pthread_mutex_destroy(&t->mutex);
    pthread_mutex_destroy(&t->calls);
    free(t);
}

const char *clave_test_server_connect_string(const clave_test_server *t)
{
    return t->connect;
}

uint16_t clave_test_server_port(const clave_test_server *t)
{
    return t->port;
}

const char *clave_test_server_data_dir(const clave_test_server *t)
{
    return t->dir;
}
