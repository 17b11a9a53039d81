/* gate_run.c - see gate_run.h. The engine is called by HTTP, by its clients' callbacks and by its
 * timer; what it requests inside such a call is done later (gate_clients.c, http_server.c). */
#include "runtime/gate/gate_run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clave/uv.h"
#include "runtime/gate/gate_internal.h"
#include "runtime/gate/gate_jansson.h"
#include "runtime/gate/gate_key.h"
#include "runtime/start_error.h"
#include "runtime/thread_start.h"

/* The gate does not start without this many files left for sessions and clients. */
enum { LEAST_FILES = 16 };

/* ---- stopping -------------------------------------------------------------------------------- */

static void gate_enter(struct gate *g, enum gate_phase to)
{
    assert(to == g->phase + 1); /* one phase after the other */
    g->phase = to;
    if (to == GATE_CLOSING) {
        g->closed_by = clave_now() + g->grace_ms;
        clave__http_server_quiet(g->http);
        clave__web_close(g->web, clave_now());
    } else if (to == GATE_DRAINING) {
        clave__http_server_stop(g->http);
        g->http = NULL;
        gate_clients_stop(&g->clients);
    } else if (to == GATE_STOPPED) {
        uv_stop(&g->loop);
    }
}

static void gate_go_on(struct gate *g)
{
    if (g->phase == GATE_CLOSING &&
        (clave_now() >= g->closed_by ||
         (clave__web_is_closed(g->web) && clave__http_server_is_answered(g->http))))
        gate_enter(g, GATE_DRAINING);
    if (g->phase == GATE_DRAINING && g->clients.running == 0)
        gate_enter(g, GATE_STOPPED);
}

static void gate_on_stop(uv_async_t *a)
{
    struct gate *g = a->data;
    if (g->phase == GATE_SERVING)
        gate_enter(g, GATE_CLOSING);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void gate_on_timer(uv_timer_t *t)
{
    struct gate *g = t->data;
    if (clave__web_deadline(g->web) <= clave_now())
        clave__web_tick(g->web, clave_now());
}

/* Each turn may have moved the deadline, and the wall clock may have been set. */
static void gate_on_prepare(uv_prepare_t *p)
{
    struct gate *g = p->data;
    gate_go_on(g);
    gate_set_wall(g);
    int64_t at = clave__web_deadline(g->web), now = clave_now();
    if (g->phase == GATE_CLOSING && g->closed_by < at)
        at = g->closed_by;
    uv_update_time(&g->loop);
    if (at == CLAVE_NEVER)
        uv_timer_stop(&g->timer);
    else
        uv_timer_start(&g->timer, gate_on_timer, at > now ? (uint64_t)(at - now) : 0, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

clave_err gate_check(const struct gate_options *o, const struct fault *f)
{
    const char *why;
    uint8_t key[GATE_KEY_LEN];
    clave_tls *tls = NULL;
    struct findings all = clave__findings_in(f);
    if (!gate_jansson(&why))
        clave__findings_add(&all, clave__start_error(&all.next, CLAVE_EIO, "%s", why));
    if (o->key)
        clave__findings_add(&all, gate_key_read(o->key, key, &all.next));
    for (size_t i = 0; i < o->nhttp; i++)
        clave__findings_add(&all, clave__http_server_check(o->http[i], &all.next));
    if (o->http_tls.cert_file) /* a missing one is reported earlier */
        clave__findings_add(&all, gate_make_tls(&tls, o, &all.next));
    clave_tls_free(tls);
    if (o->audit)
        clave__findings_add(&all, gate_audit_check(o->audit, &all.next));
    return all.err;
}

static clave_err gate_refused(int number, const struct fault *f)
{
    clave_err err = clave__err_of_errno(number);
    return err == CLAVE_OK
               ? err
               : clave__start_error(f, err, "cannot start the gate: %s", strerror(number));
}

/* Checks that a thread can be started, because the names of servers are looked up in threads. A
 * gate in a server needs none. */
static clave_err gate_check_thread(const struct gate_options *o, const struct fault *f)
{
    int fault = o->in_server ? 0 : clave__thread_check();
    return fault == 0 ? CLAVE_OK
                      : clave__start_error(f, CLAVE_ETHREAD,
                                           "cannot start a thread to look up servers: %s",
                                           strerror(fault));
}

clave_err gate_new(struct gate **out, const struct gate_options *o, const struct fault *f)
{
    struct gate *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g)
        return CLAVE_ENOMEM;
    g->mem = clave__mem_or_default(NULL);
    g->log = o->log;
    g->grace_ms = o->grace_ms;
    g->file_connections = gate_file_connections(o);
    g->sender_sessions = gate_default_sender_sessions(g, o);
    clave_err err = gate_refused(clave__loop_init(&g->loop), f);
    if (err == CLAVE_OK)
        err = gate_clients_init(&g->clients, &g->loop, &g->mem);
    if (err != CLAVE_OK) { /* a loop without handles needs no turn */
        free(g);
        return err;
    }
    uv_timer_init(&g->loop, &g->timer);
    uv_prepare_init(&g->loop, &g->prepare);
    uv_async_init(&g->loop, &g->stop, gate_on_stop);
    uv_async_init(&g->loop, &g->changed, gate_on_changed);
    uv_async_init(&g->loop, &g->replayed, gate_on_replayed);
    uv_async_init(&g->loop, &g->ended, gate_on_ended_nodes);
    uv_async_init(&g->loop, &g->measured, gate_on_measured);
    g->measured.data = g->ended.data = g->replayed.data = g->timer.data = g->prepare.data =
        g->stop.data = g->changed.data = g;
    pthread_mutex_init(&g->mutex, NULL);
    err = gate_refused(clave__notifier_open(&g->audit_done, &g->loop, gate_on_audited, g), f);
    if (err == CLAVE_OK)
        err = gate_make_engine(g, o, f);
    if (err == CLAVE_OK)
        err = gate_listen(g, o, f);
    if (err == CLAVE_OK)
        err = gate_refused(clave__files_check(LEAST_FILES), f);
    if (err == CLAVE_OK)
        err = gate_check_thread(o, f);
    if (err == CLAVE_OK) {
        g->access = o->access;
        *out = g;
    } else {
        gate_free(g);
    }
    return err;
}

uv_loop_t *gate_loop(struct gate *g)
{
    return &g->loop;
}

const char *gate_address(const struct gate *g, size_t i)
{
    return clave__http_server_address(g->http, i);
}

void gate_run(struct gate *g)
{
    assert(g->phase == GATE_SERVING);
    uv_prepare_start(&g->prepare, gate_on_prepare);
    while (g->phase != GATE_STOPPED)
        uv_run(&g->loop, UV_RUN_DEFAULT);
}

void gate_stop(struct gate *g)
{
    uv_async_send(&g->stop);
}

/* The drivers of clients are gone, so the engine's frees of clients happen at once. */
void gate_free(struct gate *g)
{
    if (!g)
        return;
    clave__http_server_stop(g->http);
    uv_prepare_stop(&g->prepare);
    gate_clients_stop(&g->clients);
    while (g->clients.running > 0)
        uv_run(&g->loop, UV_RUN_ONCE);
    gate_replay_free(g->replay);
    clave__web_free(g->web);
    gate_clients_fini(&g->clients);
    uv_close((uv_handle_t *)&g->timer, NULL);
    uv_close((uv_handle_t *)&g->prepare, NULL);
    uv_close((uv_handle_t *)&g->stop, NULL);
    uv_close((uv_handle_t *)&g->changed, NULL);
    gate_audit_close(g->audit);
    clave__notifier_close(&g->audit_done);
    uv_close((uv_handle_t *)&g->replayed, NULL);
    uv_close((uv_handle_t *)&g->ended, NULL);
    uv_close((uv_handle_t *)&g->measured, NULL);
    gate_end_cause_free(g->ends);
    gate_server_stats_free(g->figures);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    int left = uv_loop_close(&g->loop);
    assert(left == 0);
    (void)left;
    clave__mem_free(&g->mem, g->metric_text);
    gate_access_free(g->access);
    gate_access_free(g->next_access);
    clave_tls_free(g->http_tls);
    pthread_mutex_destroy(&g->mutex);
    free(g);
}
