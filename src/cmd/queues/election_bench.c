/* election_bench.c - many candidates of one election, each with its own session, all on one loop;
 * bench.c calls it. The leader leaves, and everything that all of them then ask the server and
 * receive from it is counted until nothing is in flight any more. */
#include "cmd/queues/election_bench.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clave/async/latch.h"
#include "client/client_metrics.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/unreachable.h"
#include "runtime/clock.h"
#include "wire/proto.h"

enum { POLL_NS = 200000 };

struct candidate {
    struct election_bench *herd;
    clave_client *session;
    clave_async_client *client; /* the loop's thread only, like the latch */
    clave_async_latch *latch;
    clave_err err;
};

struct election_bench {
    struct options *o;
    const struct election_bench_plan *plan;
    bool fair;
    char path[256];
    clave_loop *loop;
    struct candidate *all;
    size_t n; /* sessions open */
    /* The loop's thread only. */
    struct candidate *leader;
    int64_t left_at, led_at;
    uint64_t requests, events; /* counted by `count` */
    /* Every thread. */
    atomic_uint leaderships;
};

/* ---- on the loop's thread ------------------------------------------------------------------- */

static void election_bench_on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct candidate *c = arg;
    struct election_bench *h = c->herd;
    (void)l;
    if (ev->kind != CLAVE_LATCH_LEADER)
        return;
    h->leader = c;
    h->led_at = clave__clock_us();
    atomic_fetch_add(&h->leaderships, 1);
}

static void election_bench_stand(clave_async_client *client, void *arg)
{
    struct candidate *c = arg;
    const struct election_bench *h = c->herd;
    clave_latch_options o = {.size = sizeof o, .event_cb = election_bench_on_event, .event_arg = c};
    c->client = client;
    o.layout = h->fair ? CLAVE_LATCH_FAIR : CLAVE_LATCH_UNFAIR;
    o.prefix = h->fair ? "c_" : NULL;
    c->err = clave_async_latch_new(&c->latch, client, h->path, &o);
    if (c->err == CLAVE_OK)
        c->err = clave_async_latch_start(c->latch);
}

static void election_bench_withdraw(clave_async_client *client, void *arg)
{
    struct candidate *c = arg;
    (void)client;
    clave_async_latch_free(c->latch);
    c->latch = NULL;
}

static void election_bench_depose(clave_async_client *client, void *arg)
{
    struct election_bench *h = arg;
    assert(h->leader);
    h->left_at = clave__clock_us();
    election_bench_withdraw(client, h->leader);
}

/* Of all candidates, excluding heartbeats and our own observing requests. */
static void election_bench_count(clave_async_client *client, void *arg)
{
    struct election_bench *h = arg;
    (void)client;
    h->requests = h->events = 0;
    for (size_t i = 0; i < h->n; i++) {
        const clave_async_client *c = h->all[i].client;
        for (int op = 1; c && op < 128; op++)
            if (op != OP_PING && op != OP_SYNC)
                h->requests += clave__client_requests_sent(c, op);
        h->events += c ? clave__client_events_received(c) : 0;
    }
}

/* ---- rounds --------------------------------------------------------------------------------- */

static clave_err election_bench_look(struct election_bench *h)
{
    return clave_client_run(h->all[0].session, election_bench_count, h);
}

/* Once a sync is answered, everything due to a session has arrived. It is quiet when such a round
 * trip of every session has triggered no request. */
static clave_err election_bench_settle(struct election_bench *h)
{
    uint64_t before;
    clave_err err = election_bench_look(h);
    do {
        before = h->requests + h->events;
        for (size_t i = 0; i < h->n && err == CLAVE_OK; i++)
            err = clave_sync(h->all[i].session, "/", h->o->timeout_ms);
        if (err == CLAVE_OK)
            err = election_bench_look(h);
    } while (err == CLAVE_OK && h->requests + h->events != before);
    return err;
}

/* Waits for the next leader, and then for quiet. Until it leads we send nothing, which would take
 * time from the candidates that are measured. */
static clave_err election_bench_await_leader(struct election_bench *h, unsigned known)
{
    int64_t deadline = clave__clock_us() + h->o->timeout_ms * 1000;
    while (atomic_load(&h->leaderships) == known && clave__clock_us() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    return atomic_load(&h->leaderships) == known ? CLAVE_ETIMEDOUT : election_bench_settle(h);
}

static clave_err election_bench_stand_all(struct election_bench *h)
{
    clave_err err = CLAVE_OK;
    for (size_t i = 0; i < h->n && err == CLAVE_OK; i++) {
        err = clave_client_run(h->all[i].session, election_bench_stand, &h->all[i]);
        err = err == CLAVE_OK ? h->all[i].err : err;
    }
    return err == CLAVE_OK ? election_bench_await_leader(h, 0) : err;
}

static clave_err election_bench_change_leaders(struct election_bench *h,
                                               const struct election_bench_figures *out,
                                               size_t round)
{
    uint64_t requests = h->requests, events = h->events;
    unsigned known = atomic_load(&h->leaderships);
    struct candidate *old = h->leader; /* all is quiet: nothing writes to it */
    clave_err err = clave_client_run(old->session, election_bench_depose, h);
    if (err == CLAVE_OK)
        err = election_bench_await_leader(h, known);
    if (err != CLAVE_OK)
        return err;
    out->requests[round] = h->requests - requests;
    out->events[round] = h->events - events;
    out->leader_us[round] = h->led_at - h->left_at;
    err = clave_client_run(old->session, election_bench_stand, old);
    err = err == CLAVE_OK ? old->err : err;
    return err == CLAVE_OK ? election_bench_settle(h) : err;
}

/* ---- sessions ------------------------------------------------------------------------------- */

static int election_bench_open_all(struct election_bench *h)
{
    clave_client_options co;
    char fault[512];
    const char *connect = connect_dial(h->o);
    if (!connect)
        return EXIT_USAGE;
    connect_client_options(h->o, &co);
    clave_err err = clave_loop_new(&h->loop);
    while (err == CLAVE_OK && h->n < h->plan->candidates) {
        struct candidate *c = &h->all[h->n];
        c->herd = h;
        err = clave_client_open(&c->session, h->loop, connect, &co);
        h->n += err == CLAVE_OK;
    }
    if (err != CLAVE_OK)
        return diag_err(h->o, connect, err, NULL);
    for (size_t i = 0; i < h->n && err == CLAVE_OK; i++) {
        err = clave_client_wait(h->all[i].session, h->o->timeout_ms);
        if (err == CLAVE_EUNREACHABLE && i > 0)
            diag(h->o,
                 "only %zu of %zu sessions opened: does the server limit the connections from one "
                 "address ('clave serve --max-connections', maxClientCnxns)?",
                 i, h->n);
        if (err == CLAVE_EUNREACHABLE)
            return unreachable_give_up(h->o, connect, h->o->timeout_ms,
                                       clave_client_errmsg(h->all[i].session, fault, sizeof fault));
        if (err != CLAVE_OK)
            return diag_err(h->o, connect, err, h->all[i].session);
    }
    return EXIT_OK;
}

static void election_bench_close_all(struct election_bench *h)
{
    for (size_t i = 0; i < h->n; i++) {
        clave_client_run(h->all[i].session, election_bench_withdraw, &h->all[i]);
        connect_close(h->all[i].session);
    }
    if (h->loop)
        clave_loop_free(h->loop);
    free(h->all);
}

/* What is left are containers, which the server would delete in time. */
static void election_bench_tidy(struct election_bench *h)
{
    if (h->fair)
        (void)clave_delete(h->all[0].session, h->path, -1, h->o->timeout_ms);
    (void)clave_delete(h->all[0].session, h->plan->path, -1, h->o->timeout_ms);
}

static void election_bench_withdraw_all(struct election_bench *h)
{
    for (size_t i = 0; i < h->n; i++)
        clave_client_run(h->all[i].session, election_bench_withdraw, &h->all[i]);
    (void)election_bench_settle(h);
}

int election_bench_run(struct options *o, const struct election_bench_plan *plan, bool fair,
                       const struct election_bench_figures *out)
{
    struct election_bench h = {.o = o, .plan = plan, .fair = fair};
    snprintf(h.path, sizeof h.path, "%s/%s", plan->path, fair ? "fair" : "unfair");
    h.all = calloc(plan->candidates, sizeof *h.all);
    if (!h.all)
        return diag_err(o, h.path, CLAVE_ENOMEM, NULL);
    int code = election_bench_open_all(&h);
    if (code == EXIT_OK) {
        clave_err err = election_bench_stand_all(&h);
        for (size_t i = 0; i < plan->rounds && err == CLAVE_OK; i++)
            err = election_bench_change_leaders(&h, out, i);
        if (err != CLAVE_OK)
            code = diag_err(o, h.path, err, h.all[0].session);
        election_bench_withdraw_all(&h);
        election_bench_tidy(&h);
    }
    election_bench_close_all(&h);
    return code;
}
