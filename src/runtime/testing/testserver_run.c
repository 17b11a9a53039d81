/* testserver_run.c - the server of a test server, and its thread: started, stopped, killed. A
 * stopped one keeps its port. */
#include <stdio.h>

#include "runtime/testing/testserver_internal.h"
#include "runtime/thread_start.h"

static void *testserver_serve(void *arg)
{
    clave_test_server *t = arg;
    char text[sizeof t->fault] = "";
    clave_err err = clave__server_run_loop(t->run, text, sizeof text);
    if (err != CLAVE_OK)
        clave__testserver_fault(t, err, "%s", text);
    pthread_mutex_lock(&t->mutex);
    t->serving = false;
    t->end = err;
    t->order = NULL; /* with ECLOSED */
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

static void testserver_install(clave_test_server *t)
{
    t->run->ahead_ms = t->ahead_ms;
    /* Their handles are closed with the loop. */
    clave__testserver_init_calls(t);
    clave__testserver_init_faults(t);
}

static bool testserver_start_thread(clave_test_server *t)
{
    pthread_mutex_lock(&t->mutex);
    bool started = clave__thread_start(&t->thread, "clave-server", testserver_serve, t) == 0;
    t->serving = started;
    pthread_mutex_unlock(&t->mutex);
    return started;
}

clave_err clave__testserver_start(clave_test_server *t)
{
    const char *listen = t->connect;
    char text[sizeof t->fault] = "";
    struct server_run_options o = {
        .data_dir = t->dir,
        .listen = &listen,
        .nlisten = 1,
        .engine = t->engine,
        .max_per_address = -1,
    };
    clave_err err = clave__server_run_new(&t->run, &o, text, sizeof text);
    if (err != CLAVE_OK)
        return clave__testserver_fault(t, err, "%s", text);
    testserver_install(t);
    if (testserver_start_thread(t))
        return CLAVE_OK;
    clave__server_run_free(t->run);
    t->run = NULL;
    return clave__testserver_fault(t, CLAVE_ETHREAD, "cannot start a thread");
}

/* Its thread has ended, or is about to. */
static clave_err testserver_join(clave_test_server *t)
{
    if (!t->run)
        return CLAVE_ECLOSED;
    pthread_join(t->thread, NULL);
    t->ahead_ms = t->run->ahead_ms;
    clave__server_run_free(t->run);
    t->run = NULL;
    return t->end;
}

static clave_err testserver_halt(clave_test_server *t, void *arg)
{
    (void)arg;
    clave__run_halt(t->run);
    return CLAVE_OK;
}

clave_err clave__testserver_kill(clave_test_server *t)
{
    clave__testserver_order(t, testserver_halt, NULL);
    return testserver_join(t);
}

static clave_err testserver_stop(clave_test_server *t)
{
    if (t->run)
        clave__server_run_stop(t->run);
    return testserver_join(t);
}

clave_err clave_test_server_stop(clave_test_server *t)
{
    clave_err err = clave__testserver_enter(t);
    return err == CLAVE_OK ? clave__testserver_leave(t, testserver_stop(t)) : err;
}

clave_err clave_test_server_kill(clave_test_server *t)
{
    clave_err err = clave__testserver_enter(t);
    return err == CLAVE_OK ? clave__testserver_leave(t, clave__testserver_kill(t)) : err;
}

clave_err clave_test_server_start(clave_test_server *t)
{
    clave_err err = clave__testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    err = t->run ? clave__testserver_fault(t, CLAVE_EINVAL, "it is already running")
                 : clave__testserver_start(t);
    return clave__testserver_leave(t, err);
}

clave_err clave_test_server_restart(clave_test_server *t)
{
    clave_err err = clave__testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    testserver_stop(t);
    return clave__testserver_leave(t, clave__testserver_start(t));
}
