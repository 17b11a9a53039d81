/* clave_mutex.c - clave's mutex on the public API.
 *
 *   clave_mutex cycle CONNECT CYCLES PAUSE_US       acquire + release, one owner
 *   clave_mutex confirmed CONNECT CYCLES PAUSE_US   the same, each release confirmed
 *   clave_mutex write CONNECT CYCLES PAUSE_US       one durable write by the same API
 *   clave_mutex during CONNECT SECONDS PAUSE_US     as confirmed, for so long
 *   clave_mutex handoff CONNECT N CYCLES            N sessions of one process in one queue
 *
 * A hand-off is the time from the call of release to the grant of the next one. Prints
 * {"p50_us": ..., "p99_us": ...}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "clave/clave.h"
#include "clave/uv.h"
#include "measure.h"

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "clave_mutex: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void report(double *us, size_t n)
{
    times_sort(us, n);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", times_p50(us, n), times_p99(us, n));
}

static void run_cycles(const char *connect, int cycles, int pause_us, bool confirmed)
{
    double *us = malloc((size_t)cycles * sizeof *us);
    clave_client *s = NULL;
    clave_mutex *l = NULL;
    if (!us)
        exit(1);
    check(clave_client_open(&s, NULL, connect, NULL), "open");
    check(clave_client_wait(s, 10000), "connect");
    check(clave_mutex_new(&l, s, "/bench/clave", NULL), "lock");
    for (int i = -cycles / 10; i < cycles; i++) {
        double start = now_us();
        check(clave_mutex_acquire(l, -1), "acquire");
        check(confirmed ? clave_mutex_release_confirmed(l, -1) : clave_mutex_release(l), "release");
        if (i >= 0)
            us[i] = now_us() - start;
        if (pause_us > 0)
            usleep((useconds_t)pause_us);
    }
    report(us, (size_t)cycles);
    clave_mutex_free(l);
    clave_client_close(s, 1000);
    free(us);
}

static void run_during(const char *connect, double seconds, int pause_us)
{
    size_t n = 0, cap = (size_t)(seconds * 1e6 / (pause_us > 0 ? pause_us : 1)) + 1;
    double *us = malloc(cap * sizeof *us), until = now_s() + seconds;
    clave_client *s = NULL;
    clave_mutex *l = NULL;
    if (!us)
        exit(1);
    check(clave_client_open(&s, NULL, connect, NULL), "open");
    check(clave_client_wait(s, 10000), "connect");
    check(clave_mutex_new(&l, s, "/bench/clave", NULL), "lock");
    do {
        double start = now_us();
        check(clave_mutex_acquire(l, -1), "acquire");
        check(clave_mutex_release_confirmed(l, -1), "release");
        us[n++] = now_us() - start;
        usleep((useconds_t)pause_us);
    } while (n < cap && now_s() < until);
    times_sort(us, n);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"longest_us\": %.1f}\n",
           times_p50(us, n), times_p99(us, n), us[n * 999 / 1000], us[n - 1]);
    clave_mutex_free(l);
    clave_client_close(s, 1000);
    free(us);
}

static void run_writes(const char *connect, int cycles, int pause_us)
{
    static const clave_create_options parents = {.size = sizeof parents,
                                                 .flags = CLAVE_CREATE_PARENTS};
    double *us = malloc((size_t)cycles * sizeof *us);
    clave_client *s = NULL;
    if (!us)
        exit(1);
    check(clave_client_open(&s, NULL, connect, NULL), "open");
    check(clave_client_wait(s, 10000), "connect");
    clave_err err = clave_create(s, "/bench/written", NULL, 0, &parents, 10000, NULL);
    check(err == CLAVE_ENODEEXISTS ? CLAVE_OK : err, "create");
    for (int i = -cycles / 10; i < cycles; i++) {
        double start = now_us();
        check(clave_set(s, "/bench/written", "data", 4, -1, 10000, NULL), "set");
        if (i >= 0)
            us[i] = now_us() - start;
        if (pause_us > 0)
            usleep((useconds_t)pause_us);
    }
    report(us, (size_t)cycles);
    clave_client_close(s, 1000);
    free(us);
}

/* ---- hand-off: everybody waits again as soon as it has released ---------------------- */

struct race {
    uv_loop_t loop;
    int warm, cycles, done;
    double *us;
    double released_at;
    int stopping;
};

struct runner {
    struct race *race;
    clave_async_client *client;
    clave_uv *uv;
    clave_async_mutex *mutex;
};

static void stop_all(struct race *r)
{
    uv_stop(&r->loop);
}

static void acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct runner *me = arg;
    struct race *r = me->race;
    if (r->stopping)
        return;
    check(err, "acquire");
    double at = now_us();
    if (r->released_at > 0 && ++r->done > r->warm)
        r->us[r->done - r->warm - 1] = at - r->released_at;
    if (r->done == r->warm + r->cycles) {
        r->stopping = 1;
        stop_all(r);
        return;
    }
    r->released_at = now_us();
    check(clave_async_mutex_release(m, owner, NULL, NULL), "release");
    check(clave_async_mutex_acquire(m, owner, CLAVE_NEVER, acquired, me), "acquire");
}

static void run_handoff(const char *connect, int n, int cycles)
{
    struct race r = {.cycles = cycles, .warm = cycles / 10};
    struct runner *runners = calloc((size_t)n, sizeof *runners);
    r.us = malloc((size_t)cycles * sizeof *r.us);
    if (!runners || !r.us)
        exit(1);
    uv_loop_init(&r.loop);
    for (int i = 0; i < n; i++) {
        clave_client_options o = {.size = sizeof o, .hosts = connect, .seed = clave_random_seed()};
        runners[i].race = &r;
        check(clave_async_client_new(&runners[i].client, &o), "client");
        check(clave_async_mutex_new(&runners[i].mutex, runners[i].client, "/bench/handoff", NULL),
              "mutex");
        check(clave_uv_start(&runners[i].uv, &r.loop, runners[i].client), "start");
        check(clave_async_mutex_acquire(runners[i].mutex, 0, CLAVE_NEVER, acquired, &runners[i]),
              "acquire");
        clave_uv_flush(runners[i].uv);
    }
    uv_run(&r.loop, UV_RUN_DEFAULT);
    report(r.us, (size_t)cycles);
    fflush(stdout);
    for (int i = 0; i < n; i++)
        clave_async_client_close(runners[i].client, clave_now());
    for (int i = 0; i < n; i++)
        clave_uv_flush(runners[i].uv);
    for (int i = 0; i < n; i++)
        while (clave_async_client_state(runners[i].client) != CLAVE_STATE_CLOSED)
            uv_run(&r.loop, UV_RUN_ONCE);
    _Exit(0); /* the sessions are closed: nothing else to tidy up in a benchmark */
}

int main(int argc, char **argv)
{
    bool confirmed = argc == 5 && strcmp(argv[1], "confirmed") == 0;
    if (confirmed || (argc == 5 && strcmp(argv[1], "cycle") == 0)) {
        run_cycles(argv[2], atoi(argv[3]), atoi(argv[4]), confirmed);
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "during") == 0) {
        run_during(argv[2], atof(argv[3]), atoi(argv[4]));
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "write") == 0) {
        run_writes(argv[2], atoi(argv[3]), atoi(argv[4]));
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "handoff") == 0) {
        run_handoff(argv[2], atoi(argv[3]), atoi(argv[4]));
        return 0;
    }
    fprintf(stderr,
            "usage: clave_mutex cycle|confirmed|write CONNECT CYCLES PAUSE_US | during CONNECT "
            "SECONDS PAUSE_US | handoff CONNECT N CYCLES\n");
    return 64;
}
