/* testserver_faults.c - what a test server does wrong: faults are injected, strike, and are healed.
 */
#include <errno.h>
#include <time.h>

#include "base/sized_options.h"
#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/testing/testserver_internal.h"

static void testserver_serve_fault_injectors(clave_test_server *t)
{
    struct list *e = t->fault_injectors.injectors.next;
    clave__run_tick(t->run);
    while (e != &t->fault_injectors.injectors) {
        const struct fault_injector *inj = LIST_ENTRY(e, struct fault_injector, link);
        e = e->next; /* the connection may close */
        clave__conn_serve(inj->engine);
    }
    clave__run_pump(t->run);
}

static void testserver_on_release(uv_timer_t *timer)
{
    testserver_serve_fault_injectors(timer->data);
}

/* Before the loop waits. */
static void testserver_on_prepare(uv_prepare_t *p)
{
    clave_test_server *t = p->data;
    int64_t at = clave__fault_injectors_deadline(&t->fault_injectors), left = at - clave_now();
    if (at == INT64_MAX)
        uv_timer_stop(&t->release);
    else
        uv_timer_start(&t->release, testserver_on_release, left > 0 ? (uint64_t)left : 0, 0);
}

static void testserver_on_strike(struct fault_injectors *all)
{
    clave_test_server *t = LIST_ENTRY(all, clave_test_server, fault_injectors);
    pthread_mutex_lock(&t->mutex);
    t->strikes = all->strikes;
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->mutex);
}

static bool testserver_add_filter(void *arg, struct channel *ch, struct server_conn *engine)
{
    clave_test_server *t = arg;
    return clave__fault_injector_add(&t->fault_injectors, ch, engine) == CLAVE_OK;
}

static clave_err testserver_inject(clave_test_server *t, void *arg)
{
    return clave__fault_injectors_inject(&t->fault_injectors, arg);
}

clave_err clave_test_server_inject(clave_test_server *t, const clave_test_fault *given)
{
    clave_test_fault f;
    if (!given || clave__options_take(&f, sizeof f, given) != CLAVE_OK)
        return CLAVE_EINVAL;
    if ((unsigned)f.action > CLAVE_TEST_SILENCE || (unsigned)f.kind >= CLAVE_TEST_KINDS ||
        f.delay_ms < 0 || (f.action == CLAVE_TEST_LOSE_REQUEST && f.kind == CLAVE_TEST_EVENT))
        return CLAVE_EINVAL;
    return clave__testserver_call_anyhow(t, testserver_inject, &f);
}

static clave_err testserver_heal(clave_test_server *t, void *arg)
{
    (void)arg;
    clave__fault_injectors_heal(&t->fault_injectors);
    if (t->run && t->serving)
        testserver_serve_fault_injectors(t);
    return CLAVE_OK;
}

clave_err clave_test_server_heal(clave_test_server *t)
{
    return clave__testserver_call_anyhow(t, testserver_heal, NULL);
}

clave_err clave_test_server_await_strikes(clave_test_server *t, uint64_t strikes,
                                          int64_t timeout_ms)
{
    clave_err err = CLAVE_OK;
    struct timespec until = clave__clock_after(timeout_ms);
    pthread_mutex_lock(&t->mutex);
    if (t->serving && clave__run_is_current(t->run))
        err = CLAVE_ELOOPTHREAD;
    while (err == CLAVE_OK && t->strikes < strikes) {
        int rc = timeout_ms < 0 ? pthread_cond_wait(&t->turned, &t->mutex)
                                : pthread_cond_timedwait(&t->turned, &t->mutex, &until);
        if (rc == ETIMEDOUT && t->strikes < strikes)
            err = CLAVE_ETIMEDOUT;
    }
    pthread_mutex_unlock(&t->mutex);
    return err;
}

void clave__testserver_init_faults(clave_test_server *t)
{
    struct server_run *r = t->run;
    r->add_filter = testserver_add_filter;
    r->filter_arg = t;
    t->fault_injectors.on_strike = testserver_on_strike;
    uv_timer_init(&r->loop, &t->release);
    uv_prepare_init(&r->loop, &t->prepare);
    uv_prepare_start(&t->prepare, testserver_on_prepare);
    t->release.data = t->prepare.data = t;
}
