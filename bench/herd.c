/* herd.c - the cost of a change of leaders among many candidates, each with its own session, in an
 * unfair election (one node that all of them watch) and in a fair one (each watches the one before
 * it). The leader leaves, again and again; counted are the requests that the server gets from all
 * of them, the watch events it sends, and the time until the next one leads. bench/herd runs it.
 *
 *   herd HOSTS CANDIDATES ROUNDS     a line for each kind: the medians and the maxima */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clave/async/latch.h"
#include "clave/clave.h"
#include "clave/uv.h"
#include "client/client_metrics.h"
#include "runtime/clock.h"
#include "wire/proto.h"

enum { POLL_NS = 200000, TIMEOUT_MS = 60000 };

struct candidate {
    struct herd *herd;
    clave_client *session;
    clave_async_client *client; /* the loop's thread only, like the latch */
    clave_async_latch *latch;
    clave_err err;
};

struct herd {
    bool fair;
    char parent[64], path[128];
    clave_loop *loop;
    struct candidate *all;
    size_t n;
    /* The loop's thread only. */
    struct candidate *leader;
    int64_t left_at, led_at;
    uint64_t requests, events; /* counted by herd_count */
    /* Every thread. */
    atomic_uint leaderships;
};

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "herd: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

/* ---- on the loop's thread -------------------------------------------------------------------- */

static void herd_on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct candidate *c = arg;
    (void)l;
    if (ev->kind != CLAVE_LATCH_LEADER)
        return;
    c->herd->leader = c;
    c->herd->led_at = clave__clock_us();
    atomic_fetch_add(&c->herd->leaderships, 1);
}

static void herd_stand(clave_async_client *client, void *arg)
{
    struct candidate *c = arg;
    const struct herd *h = c->herd;
    clave_latch_options o = {.size = sizeof o, .event_cb = herd_on_event, .event_arg = c};
    c->client = client;
    o.layout = h->fair ? CLAVE_LATCH_FAIR : CLAVE_LATCH_UNFAIR;
    o.prefix = h->fair ? "c_" : NULL;
    c->err = clave_async_latch_new(&c->latch, client, h->path, &o);
    if (c->err == CLAVE_OK)
        c->err = clave_async_latch_start(c->latch);
}

static void herd_withdraw(clave_async_client *client, void *arg)
{
    struct candidate *c = arg;
    (void)client;
    clave_async_latch_free(c->latch);
    c->latch = NULL;
}

static void herd_depose(clave_async_client *client, void *arg)
{
    struct herd *h = arg;
    assert(h->leader);
    h->left_at = clave__clock_us();
    herd_withdraw(client, h->leader);
}

/* Of all candidates, without heartbeats and our own observing requests. */
static void herd_count(clave_async_client *client, void *arg)
{
    struct herd *h = arg;
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

/* ---- rounds ---------------------------------------------------------------------------------- */

static void herd_do(clave_client *c, void (*what)(clave_async_client *client, void *arg), void *arg)
{
    check(clave_client_run(c, what, arg), "a session");
}

/* Once a sync is answered, everything due to a session has arrived. All is quiet when such a round
 * trip of every session has triggered no request. */
static void herd_settle(struct herd *h)
{
    uint64_t before;
    herd_do(h->all[0].session, herd_count, h);
    do {
        before = h->requests + h->events;
        for (size_t i = 0; i < h->n; i++)
            check(clave_sync(h->all[i].session, "/", TIMEOUT_MS), "sync");
        herd_do(h->all[0].session, herd_count, h);
    } while (h->requests + h->events != before);
}

/* Until the next one leads nothing is sent, which would take time from the candidates that are
 * measured. */
static void herd_await_leader(struct herd *h, unsigned known)
{
    int64_t deadline = clave__clock_us() + TIMEOUT_MS * INT64_C(1000);
    while (atomic_load(&h->leaderships) == known && clave__clock_us() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    check(atomic_load(&h->leaderships) == known ? CLAVE_ETIMEDOUT : CLAVE_OK, "the next leader");
    herd_settle(h);
}

static void herd_join(struct candidate *c)
{
    herd_do(c->session, herd_stand, c);
    check(c->err, "a candidate");
}

/* out: requests, events, microseconds until the next one leads. */
static void herd_change_leaders(struct herd *h, int64_t out[3])
{
    uint64_t requests = h->requests, events = h->events;
    unsigned known = atomic_load(&h->leaderships);
    struct candidate *old = h->leader; /* all is quiet: nothing writes to it */
    herd_do(old->session, herd_depose, h);
    herd_await_leader(h, known);
    out[0] = (int64_t)(h->requests - requests);
    out[1] = (int64_t)(h->events - events);
    out[2] = h->led_at - h->left_at;
    herd_join(old);
    herd_settle(h);
}

/* ---- an election ----------------------------------------------------------------------------- */

static void herd_open(struct herd *h, const char *hosts, size_t n)
{
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    h->all = calloc(n, sizeof *h->all);
    check(h->all ? CLAVE_OK : CLAVE_ENOMEM, "candidates");
    check(clave_loop_new(&h->loop), "a loop");
    for (; h->n < n; h->n++) {
        h->all[h->n].herd = h;
        check(clave_client_open(&h->all[h->n].session, h->loop, hosts, &o), hosts);
    }
    for (size_t i = 0; i < n; i++)
        check(clave_client_wait(h->all[i].session, TIMEOUT_MS), "a session");
}

static void herd_close(struct herd *h)
{
    for (size_t i = 0; i < h->n; i++)
        herd_do(h->all[i].session, herd_withdraw, &h->all[i]);
    herd_settle(h);
    if (h->fair) /* a container: the server would delete it in time */
        (void)clave_delete(h->all[0].session, h->path, -1, TIMEOUT_MS);
    (void)clave_delete(h->all[0].session, h->parent, -1, TIMEOUT_MS);
    for (size_t i = 0; i < h->n; i++)
        clave_client_close(h->all[i].session, TIMEOUT_MS);
    clave_loop_free(h->loop);
    free(h->all);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void herd_run(const char *hosts, size_t candidates, size_t rounds, bool fair)
{
    struct herd h = {.fair = fair};
    int64_t(*figures)[3] = calloc(rounds, sizeof *figures),
    *column = calloc(rounds, sizeof *column);
    check(figures && column ? CLAVE_OK : CLAVE_ENOMEM, "figures");
    snprintf(h.parent, sizeof h.parent, "/clave-herd-%016llx",
             (unsigned long long)clave_random_seed());
    snprintf(h.path, sizeof h.path, "%s/%s", h.parent, fair ? "fair" : "unfair");
    herd_open(&h, hosts, candidates);
    for (size_t i = 0; i < candidates; i++)
        herd_join(&h.all[i]);
    herd_await_leader(&h, 0);
    for (size_t i = 0; i < rounds; i++)
        herd_change_leaders(&h, figures[i]);
    herd_close(&h);
    printf("%s", fair ? "fair" : "unfair");
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < rounds; i++)
            column[i] = figures[i][k];
        qsort(column, rounds, sizeof *column, by_number);
        printf(" %lld %lld", (long long)column[rounds / 2], (long long)column[rounds - 1]);
    }
    putchar('\n');
    free(figures);
    free(column);
}

int main(int argc, char **argv)
{
    long candidates = argc == 4 ? atol(argv[2]) : 0, rounds = argc == 4 ? atol(argv[3]) : 0;
    if (candidates < 2 || rounds < 1) {
        fputs("usage: herd HOSTS CANDIDATES ROUNDS\n", stderr);
        return 64;
    }
    herd_run(argv[1], (size_t)candidates, (size_t)rounds, false);
    herd_run(argv[1], (size_t)candidates, (size_t)rounds, true);
    return 0;
}
