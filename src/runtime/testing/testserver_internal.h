/* testserver_internal.h - a server for tests (clave/testserver.h), and how it is divided.
 *
 * Map of src/runtime/testing:
 *   testserver           a test server's life, its port and its directory
 *   testserver_run       its server: started, stopped, killed
 *   testserver_calls     how any thread has something done on the server's
 *   testserver_sessions  sessions expired and disconnected, time skipped, figures
 *   testserver_faults    what it does wrong, on fault_injector: a filter of each connection */
#ifndef CLAVE_RUNTIME_TESTING_TESTSERVER_INTERNAL_H
#define CLAVE_RUNTIME_TESTING_TESTSERVER_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <uv.h>

#include "clave/testserver.h"
#include "runtime/server/uv_server_internal.h"
#include "runtime/testing/fault_injector.h"

struct order; /* of a caller, for the server's thread */

struct clave_test_server {
    clave_log_cb *log;
    void *log_arg;
    struct server_options engine;
    char dir[PATH_MAX];
    bool owns_dir;
    int reserve; /* bound to the port, never listening: keeps it ours */
    uint16_t port;
    char connect[32];

    pthread_mutex_t calls;  /* one call at a time; below it */
    struct server_run *run; /* NULL: stopped */
    int64_t ahead_ms;       /* while it is stopped; otherwise the run has it */

    pthread_mutex_t mutex; /* what follows */
    pthread_cond_t turned;
    bool serving;
    pthread_t thread; /* the server's, while there is a run */
    struct order *order;
    clave_err end; /* of the loop */
    uint64_t strikes;
    char fault[512];

    /* Belongs to the server's thread while it serves, otherwise to the calling thread. */
    struct fault_injectors fault_injectors;
    uv_async_t wake;
    uv_timer_t release; /* the time of delayed messages */
    uv_prepare_t prepare;
};

/* ---- calls (testserver_calls.c) -------------------------------------------------------------- */

/* Keeps the text for _errmsg, and logs it. Returns err. */
__attribute__((format(printf, 3, 4))) clave_err
clave__testserver_fault(clave_test_server *t, clave_err err, const char *fmt, ...);
void clave__testserver_init_calls(clave_test_server *t);
/* One call at a time. ELOOPTHREAD: on the server's thread; otherwise _leave comes next. */
clave_err clave__testserver_enter(clave_test_server *t);
clave_err clave__testserver_leave(clave_test_server *t, clave_err err);
/* Runs on the server's thread while the caller waits. ECLOSED: the server is stopped. */
clave_err clave__testserver_order(clave_test_server *t,
                                  clave_err (*fn)(clave_test_server *t, void *arg), void *arg);
/* A whole call: enters, runs it there, leaves; _anyhow: here if the server is stopped. */
clave_err clave__testserver_call(clave_test_server *t,
                                 clave_err (*fn)(clave_test_server *t, void *arg), void *arg);
clave_err clave__testserver_call_anyhow(clave_test_server *t,
                                        clave_err (*fn)(clave_test_server *t, void *arg),
                                        void *arg);

/* ---- the server (testserver_run.c) ----------------------------------------------------------- */

clave_err clave__testserver_start(clave_test_server *t);
/* Ends it like a process that is killed. ECLOSED: it is stopped already. */
clave_err clave__testserver_kill(clave_test_server *t);

/* ---- faults (testserver_faults.c) ------------------------------------------------------------ */

void clave__testserver_init_faults(clave_test_server *t);

#endif
