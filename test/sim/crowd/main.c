/* clave_crowd - very many clients of one ensemble, in simulated time: what they ask of it, and how
 * long it takes until all hold again after a fault. docs/evidence/scale.md has its results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "crowd.h"

enum { SECOND = 1000000, STEADY_S = 20, START_LIMIT_S = 600 };

_Noreturn void crowd_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "clave_crowd: %s:%d: not true: %s\n", file, line, what);
    exit(2);
}

int64_t crowd_ms(const struct crowd *w)
{
    return w->now / 1000;
}

void crowd_put(struct crowd *w, int64_t at, enum event_kind kind, struct participant *p,
               uint32_t detail)
{
    struct event e = {.at = at, .kind = kind, .detail = detail};
    if (p) {
        e.client = (uint32_t)(p - w->participants);
        e.generation = p->conn.generation;
    }
    event_queue_put(&w->queue, e);
}

void crowd_look(struct crowd *w)
{
    bool well = w->connected == w->alive && w->locks_held == w->locks_wanted &&
                w->leaders == (w->o.candidates > 0);
    if (w->o.hold_ms > 0)
        well = w->connected == w->alive; /* locks change hands all the time */
    if (well && !w->well)
        w->well_since = w->now;
    w->well = well;
}

/* ---- events -----------------------------------------------------------------------------------
 */

static void crowd_down(struct crowd *w, struct participant *p, uint32_t n)
{
    struct connection *c = &p->conn;
    uint8_t *copy = malloc(n);
    crowd_require(copy && n <= clave__buf_len(&c->down));
    memcpy(copy, clave__buf_bytes(&c->down), n);
    clave__buf_consume(&c->down, n);
    clave_async_client_input(p->client, crowd_ms(w), copy, n);
    free(copy);
    participant_pump(p);
}

static void crowd_gone(struct crowd *w, struct participant *p, uint32_t detail)
{
    (void)detail;
    connection_reset(p);
    clave_async_client_disconnected(p->client, crowd_ms(w));
    participant_pump(p);
}

struct event_handler {
    void (*handle)(struct crowd *w, struct participant *p, uint32_t detail);
    bool of_connection; /* void once the connection is another one */
};

static const struct event_handler handlers[] = {
    [EVENT_START] = {participant_begin, false},
    [EVENT_TIMER] = {participant_timer, false},
    [EVENT_HOLD_OVER] = {participant_release, false},
    [EVENT_ASKED] = {connection_asked, true},
    [EVENT_TURNED_AWAY] = {connection_turned_away, true},
    [EVENT_DIALLED] = {connection_dialled, true},
    [EVENT_REFUSED] = {crowd_gone, true},
    [EVENT_ARRIVED] = {connection_arrived, true},
    [EVENT_PASSED] = {connection_passed, true},
    [EVENT_AT_LEADER] = {connection_at_leader, true},
    [EVENT_LED] = {connection_led, true},
    [EVENT_DOWN] = {crowd_down, true},
    [EVENT_GONE] = {crowd_gone, true},
    [EVENT_COMMITTED] = {cluster_committed, false},
    [EVENT_SERVER_TICK] = {cluster_tick, false},
    [EVENT_FAULT] = {cluster_fault, false},
    [EVENT_FAULT_OVER] = {cluster_fault_over, false},
    [EVENT_END] = {NULL, false},
};

static void crowd_do(struct crowd *w, const struct event *e)
{
    const struct event_handler *h = &handlers[e->kind];
    struct participant *p = &w->participants[e->client];
    bool is_void = h->of_connection && (p->dead || p->conn.generation != e->generation);
    if (h->handle && !is_void)
        h->handle(w, p, e->detail);
}

/* Lets things happen until the time, or until all is well. */
static void crowd_run(struct crowd *w, int64_t until, bool stop_when_well)
{
    struct event e;
    crowd_put(w, until, EVENT_END, NULL, 0);
    do {
        crowd_require(event_queue_take(&w->queue, &e));
        w->now = e.at;
        crowd_do(w, &e);
    } while (e.kind != EVENT_END && !(stop_when_well && w->well));
}

/* ---- the report -------------------------------------------------------------------------------
 */

static uint64_t crowd_requests(const struct crowd *w)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < w->cluster.size; i++)
        sum += w->cluster.members[i].requests;
    return sum;
}

struct phase {
    int64_t begin;
    uint64_t requests;
    uint64_t lost;
};

static struct phase phase_begin(struct crowd *w)
{
    w->cluster.longest_wait = 0;
    return (struct phase){w->now, crowd_requests(w), w->lost};
}

static void phase_report(const struct crowd *w, const struct phase *f, const char *name)
{
    double s = (double)(w->now - f->begin) / SECOND;
    uint64_t sum = 0;
    uint32_t peak = 0;
    for (int64_t bin = f->begin / BIN_US; bin <= w->now / BIN_US; bin++) {
        sum += w->cluster.at_leader[bin];
        peak = w->cluster.at_leader[bin] > peak ? w->cluster.at_leader[bin] : peak;
    }
    printf("%-8s all requests %8.0f/s; at the leader %8.0f/s, peak %7u in 0.1 s, longest wait "
           "%7.1f ms; sessions lost %llu\n",
           name, (double)(crowd_requests(w) - f->requests) / s, (double)sum / s, peak,
           (double)w->cluster.longest_wait / 1000, (unsigned long long)(w->lost - f->lost));
}

static void crowd_report_restored(const struct crowd *w, int64_t fault_at)
{
    if (!w->well)
        printf("         NOT restored after %.1f s: %zu of %zu connected, %zu of %zu locks held, "
               "%zu leaders\n",
               (double)(w->now - fault_at) / SECOND, w->connected, w->alive, w->locks_held,
               w->locks_wanted, w->leaders);
    else if (w->well_since > fault_at)
        printf("         all connected and all held again %.2f s after the fault\n",
               (double)(w->well_since - fault_at) / SECOND);
    else
        printf("         nobody lost anything\n");
}

/* ---- the course of a run ----------------------------------------------------------------------
 */

static void crowd_begin(struct crowd *w)
{
    w->mem = clave__mem_or_default(NULL);
    w->now = SECOND;
    w->alive = w->o.clients;
    clave__rand_seed(&w->rand, (uint64_t)w->o.seed);
    w->participants = calloc(w->o.clients, sizeof *w->participants);
    w->lock_users = calloc(w->o.locks, sizeof *w->lock_users);
    crowd_require(w->participants && w->lock_users);
    cluster_begin(w);
    for (size_t i = 0; i < w->o.clients; i++) {
        struct participant *p = &w->participants[i];
        p->crowd = w;
        connection_init(&p->conn, &w->mem);
        w->locks_wanted += w->lock_users[i % w->o.locks]++ == 0;
        int64_t after = (int64_t)clave__rand_below(&w->rand, (uint64_t)w->o.start_ms * 1000 + 1);
        crowd_put(w, w->now + after, EVENT_START, p, 0);
    }
}

static void crowd_end(struct crowd *w)
{
    for (size_t i = 0; i < w->o.clients; i++)
        participant_free(&w->participants[i]);
    cluster_free(w);
    event_queue_free(&w->queue);
    free(w->participants);
    free(w->lock_users);
    free(w);
}

/* 0: all is well at the end. */
static int crowd_play(const struct crowd_options *o)
{
    struct crowd *w = calloc(1, sizeof *w);
    crowd_require(w != NULL);
    w->o = *o;
    crowd_begin(w);
    struct phase phase = phase_begin(w);
    crowd_run(w, w->now + (int64_t)START_LIMIT_S * SECOND, true);
    phase_report(w, &phase, "start");
    printf("         all connected, all held after %.2f s\n",
           (double)(w->now - phase.begin) / SECOND);

    crowd_run(w, w->now + 5 * (int64_t)SECOND, false);
    phase = phase_begin(w);
    crowd_run(w, w->now + (int64_t)STEADY_S * SECOND, false);
    phase_report(w, &phase, "steady");

    if (strcmp(o->fault, "none") != 0) {
        phase = phase_begin(w);
        crowd_put(w, w->now, EVENT_FAULT, NULL, 0);
        crowd_run(w, w->now + o->after_ms * 1000, false);
        phase_report(w, &phase, o->fault);
        crowd_report_restored(w, phase.begin);
    }
    int status = w->well ? 0 : 1;
    crowd_end(w);
    return status;
}

int main(int argc, char **argv)
{
    struct crowd_options o;
    crowd_options_read(&o, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    return crowd_play(&o);
}
