/* bench.c - `clave bench`: runs election_bench.h's elections and prints the figures. It deletes the
 * nodes it has made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/queues/election_bench.h"

enum { MAX_CANDIDATES = 10000, MAX_ROUNDS = 1000 };
enum { BENCH_CANDIDATES = 'n', BENCH_ROUNDS = 'r' };

struct kind {
    const char *name;
    bool fair;
    struct election_bench_figures figures;
};

static int bench_compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int bench_compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void bench_sort_figures(struct election_bench_figures *f, size_t n)
{
    qsort(f->requests, n, sizeof *f->requests, bench_compare_u64);
    qsort(f->events, n, sizeof *f->events, bench_compare_u64);
    qsort(f->leader_us, n, sizeof *f->leader_us, bench_compare_i64);
}

static void bench_show_json(const struct election_bench_plan *plan, const struct kind *kinds,
                            size_t nkinds)
{
    struct json j;
    size_t mid = plan->rounds / 2, last = plan->rounds - 1;
    json_begin(&j, stdout);
    clave__json_int(&j, "candidates", (int64_t)plan->candidates);
    clave__json_int(&j, "rounds", (int64_t)plan->rounds);
    for (size_t i = 0; i < nkinds; i++) {
        const struct election_bench_figures *f = &kinds[i].figures;
        clave__json_open(&j, kinds[i].name, '{');
        clave__json_int(&j, "requests", (int64_t)f->requests[mid]);
        clave__json_int(&j, "requests_most", (int64_t)f->requests[last]);
        clave__json_int(&j, "events", (int64_t)f->events[mid]);
        clave__json_int(&j, "events_most", (int64_t)f->events[last]);
        clave__json_int(&j, "new_leader_us", f->leader_us[mid]);
        clave__json_int(&j, "new_leader_us_most", f->leader_us[last]);
        clave__json_close(&j, '}');
    }
    json_end(&j);
}

static void bench_show_text(const struct election_bench_plan *plan, const struct kind *kinds,
                            size_t nkinds)
{
    size_t mid = plan->rounds / 2, last = plan->rounds - 1;
    printf("%zu candidates, each with a session; the cost of a change of leaders,\n"
           "median (most) of %zu:\n\n",
           plan->candidates, plan->rounds);
    printf("%-10s %18s %18s %22s\n", "", "requests", "watch events", "new leader after ms");
    for (size_t i = 0; i < nkinds; i++) {
        const struct election_bench_figures *f = &kinds[i].figures;
        char requests[48], events[48], leader[64];
        snprintf(requests, sizeof requests, "%llu (%llu)", (unsigned long long)f->requests[mid],
                 (unsigned long long)f->requests[last]);
        snprintf(events, sizeof events, "%llu (%llu)", (unsigned long long)f->events[mid],
                 (unsigned long long)f->events[last]);
        snprintf(leader, sizeof leader, "%.2f (%.2f)", (double)f->leader_us[mid] / 1000,
                 (double)f->leader_us[last] / 1000);
        printf("%-10s %18s %18s %22s\n", kinds[i].name, requests, events, leader);
    }
}

static bool bench_figures_alloc(struct election_bench_figures *f, size_t n)
{
    f->requests = calloc(n, sizeof *f->requests);
    f->events = calloc(n, sizeof *f->events);
    f->leader_us = calloc(n, sizeof *f->leader_us);
    return f->requests && f->events && f->leader_us;
}

static void bench_figures_free(struct election_bench_figures *f)
{
    free(f->requests);
    free(f->events);
    free(f->leader_us);
}

static int bench_measure(struct options *o, const struct election_bench_plan *plan)
{
    struct kind kinds[] = {{.name = "unfair"}, {.name = "fair", .fair = true}};
    size_t nkinds = sizeof kinds / sizeof *kinds;
    int code = EXIT_OK;
    for (size_t i = 0; i < nkinds && code == EXIT_OK; i++) {
        if (!bench_figures_alloc(&kinds[i].figures, plan->rounds))
            code = diag_err(o, plan->path, CLAVE_ENOMEM, NULL);
        else
            code = election_bench_run(o, plan, kinds[i].fair, &kinds[i].figures);
        if (code == EXIT_OK)
            bench_sort_figures(&kinds[i].figures, plan->rounds);
    }
    if (code == EXIT_OK && o->json)
        bench_show_json(plan, kinds, nkinds);
    else if (code == EXIT_OK)
        bench_show_text(plan, kinds, nkinds);
    for (size_t i = 0; i < nkinds; i++)
        bench_figures_free(&kinds[i].figures);
    return code;
}

static int run_bench(struct options *o, int argc, char **argv)
{
    int64_t candidates = 50, rounds = 9;
    char path[64];
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == BENCH_CANDIDATES &&
            !options_number(o, "candidates", 2, MAX_CANDIDATES, &candidates))
            return EXIT_USAGE;
        if (id == BENCH_ROUNDS && !options_number(o, "rounds", 1, MAX_ROUNDS, &rounds))
            return EXIT_USAGE;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    if (strcmp(o->argv[0], "herd") != 0)
        return diag_usage(o, "there is no bench '%s'", o->argv[0]);
    snprintf(path, sizeof path, "/clave-bench-%016llx", (unsigned long long)clave_random_seed());
    const struct election_bench_plan plan = {
        .candidates = (size_t)candidates, .rounds = (size_t)rounds, .path = path};
    return bench_measure(o, &plan);
}

static const struct flag flags[] = {
    {BENCH_CANDIDATES, "candidates", "N", "the number of candidates [50]"},
    {BENCH_ROUNDS, "rounds", "N", "how often the leader leaves [9]"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_bench = {
    .name = "bench",
    .args = "herd",
    .summary = "Measure the cost of a change of leaders, with and without a queue",
    .text =
        "herd: N candidates, each with its own session, run an unfair election (one\n"
        "node that all of them watch), and then a fair one (each watches the one before it).\n"
        "The leader leaves, again and again. Counted are the requests that the server gets from\n"
        "all of them, the watch events it sends, and the time until the next one\n"
        "leads. Below /clave-bench-..., which is deleted at the end.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_bench,
};
