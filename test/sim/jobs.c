#include "jobs.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scenario.h"

enum { MAX_JOBS = 64, SEED_SECONDS = 60 };

/* One job's, in memory shared with the parent. */
struct wait_progress {
    uint64_t seed; /* being played */
    bool broken;
    bool done;
    uint64_t traces[2]; /* of `seed`, where they differ */
    struct totals totals;
};

/* Seeds are handed out one at a time, in their order: some take longer than others. When one
 * fails, those before it are played or being played, and are played to their end: so the lowest
 * that fails is found, whatever the number of jobs. */
struct board {
    _Atomic uint64_t next;
    _Atomic bool stop;
    struct wait_progress jobs[MAX_JOBS];
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool play(const struct jobs_options *o, struct wait_progress *p)
{
    struct outcome first, second;
    alarm(o->aloud ? 0 : SEED_SECONDS); /* one that hangs dies of it */
    struct play play = {.seed = p->seed,
                        .drift_ppm = (int64_t)o->drift * 1000,
                        .aloud = o->aloud,
                        .quiet = !o->aloud};
    scenario_play(&play, &first);
    totals_add(&p->totals, &first.totals);
    if (first.broken || !o->twice)
        return !first.broken;
    play.aloud = false;
    play.quiet = true;
    scenario_play(&play, &second);
    p->traces[0] = first.trace;
    p->traces[1] = second.trace;
    return first.trace == second.trace;
}

static void work(const struct jobs_options *o, struct board *b, struct wait_progress *p,
                 double until)
{
    while (!b->stop && (o->minutes == 0 || seconds() < until)) {
        uint64_t n = b->next++;
        if (o->minutes == 0 && n >= o->seeds)
            break;
        p->seed = o->first + n;
        if (!play(o, p)) {
            p->broken = true;
            b->stop = true;
        }
        fflush(stdout);
    }
    p->done = true;
}

static pid_t start(const struct jobs_options *o, struct board *b, struct wait_progress *p,
                   double until)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(o, b, p, until);
    exit(0);
}

/* ---- what came of it ----------------------------------------------------------------- */

/* A job that died did so in the seed it was playing. */
static bool has_died(const struct wait_progress *p, int status)
{
    return !p->done || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* Waits for all of them. Any that dies ends the work of the others. */
static void await(struct board *b, const pid_t *pids, int *statuses, uint64_t n)
{
    for (uint64_t left = n; left > 0; left--) {
        int status;
        pid_t pid = wait(&status);
        for (uint64_t i = 0; i < n; i++)
            if (pids[i] == pid) {
                statuses[i] = status;
                b->stop = b->stop || has_died(&b->jobs[i], status);
            }
    }
}

static void tell_death(const struct jobs_options *o, const struct wait_progress *p, int status)
{
    static const struct subset all;
    if (WIFSIGNALED(status))
        printf("\nseed %" PRIu64 " BREAKS: the process died of signal %d%s\n", p->seed,
               WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": it hangs" : "");
    else
        printf("\nseed %" PRIu64 " BREAKS: the process ended with %d\n", p->seed,
               WEXITSTATUS(status));
    printf("replay: ");
    subset_print_command(p->seed, (int64_t)o->drift * 1000, &all);
    printf(" --trace\n\n");
}

/* The job was quiet, since another could have failed at a lower seed: it is played again. */
static void tell_violation(const struct jobs_options *o, const struct wait_progress *p)
{
    struct outcome again = {0};
    struct play play = {.seed = p->seed, .drift_ppm = (int64_t)o->drift * 1000};
    bool differ = p->traces[0] != p->traces[1];
    if (o->aloud && !differ)
        return; /* it was told as it happened */
    if (!differ)
        scenario_play(&play, &again);
    if (!again.broken)
        printf("seed %" PRIu64 " BREAKS: the same seed gives the same trace\n    %016" PRIx64
               " and then %016" PRIx64 "\n",
               p->seed, p->traces[0], p->traces[1]);
}

/* The lowest seed that failed; true: there is none. */
static bool tell(const struct jobs_options *o, const struct board *b, const int *statuses,
                 uint64_t n)
{
    const struct wait_progress *lowest = NULL;
    bool died = false;
    for (uint64_t i = 0; i < n; i++) {
        const struct wait_progress *p = &b->jobs[i];
        bool this_died = has_died(p, statuses[i]);
        if ((p->broken || this_died) && (!lowest || p->seed < lowest->seed)) {
            lowest = p;
            died = this_died;
        }
    }
    if (lowest && died)
        tell_death(o, lowest, statuses[lowest - b->jobs]);
    else if (lowest)
        tell_violation(o, lowest);
    return !lowest;
}

int jobs_run(const struct jobs_options *o)
{
    struct board *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[MAX_JOBS];
    int statuses[MAX_JOBS] = {0};
    struct totals sum = {0};
    uint64_t n = o->aloud || o->jobs == 0 ? 1 : o->jobs < MAX_JOBS ? o->jobs : MAX_JOBS;
    if (b == MAP_FAILED)
        return 1;
    double begin = seconds(), until = begin + 60.0 * (double)o->minutes;
    fflush(stdout);
    for (uint64_t i = 0; i < n; i++)
        pids[i] = start(o, b, &b->jobs[i], until);
    await(b, pids, statuses, n);
    bool fine = tell(o, b, statuses, n);
    for (uint64_t i = 0; i < n; i++)
        totals_add(&sum, &b->jobs[i].totals);
    if (fine || n == 1) /* else how far the others came is chance */
        totals_print(&sum);
    printf("%s, %.1f s\n", fine ? "no violation" : "VIOLATION", seconds() - begin);
    munmap(b, sizeof *b);
    return fine ? 0 : 1;
}
