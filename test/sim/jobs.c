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
struct progress {
    uint64_t seed; /* being played */
    bool broken;
    bool done;
    struct tally tally;
};

/* Seeds are handed out one at a time: some take longer than others. */
struct board {
    _Atomic uint64_t next;
    _Atomic bool stop;
    struct progress jobs[MAX_JOBS];
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool play(const struct jobs_options *o, struct progress *p)
{
    struct outcome first, second;
    alarm(o->aloud ? 0 : SEED_SECONDS); /* one that hangs dies of it */
    struct play play = {.seed = p->seed, .drift_ppm = (int64_t)o->drift * 1000, .aloud = o->aloud};
    scenario_play(&play, &first);
    tally_add(&p->tally, &first.tally);
    if (first.broken || !o->twice)
        return !first.broken;
    play.aloud = false;
    scenario_play(&play, &second);
    if (first.trace == second.trace)
        return true;
    printf("seed %" PRIu64 " BREAKS: the same seed gives the same trace\n    %016" PRIx64
           " and then %016" PRIx64 "\n",
           p->seed, first.trace, second.trace);
    return false;
}

static void work(const struct jobs_options *o, struct board *b, struct progress *p, double until)
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

static pid_t start(const struct jobs_options *o, struct board *b, struct progress *p, double until)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(o, b, p, until);
    exit(0);
}

/* A job that died did so in the seed it was playing. */
static bool collect(pid_t pid, struct board *b, const struct progress *p, struct tally *sum)
{
    int status = 0;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid)
        return false;
    tally_add(sum, &p->tally);
    if (p->done && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return !p->broken;
    b->stop = true;
    if (WIFSIGNALED(status))
        printf("\nseed %" PRIu64 " BREAKS: the process died of signal %d%s\n", p->seed,
               WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": it hangs" : "");
    else
        printf("\nseed %" PRIu64 " BREAKS: the process ended with %d\n", p->seed,
               WEXITSTATUS(status));
    printf("replay: clave_sim --first %" PRIu64 " --seeds 1 --trace\n\n", p->seed);
    return false;
}

int jobs_run(const struct jobs_options *o)
{
    struct board *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[MAX_JOBS];
    struct tally sum = {0};
    uint64_t n = o->aloud || o->jobs == 0 ? 1 : o->jobs < MAX_JOBS ? o->jobs : MAX_JOBS;
    bool fine = b != MAP_FAILED;
    if (!fine)
        return 1;
    double begin = seconds(), until = begin + 60.0 * (double)o->minutes;
    fflush(stdout);
    for (uint64_t i = 0; i < n; i++)
        pids[i] = start(o, b, &b->jobs[i], until);
    for (uint64_t i = 0; i < n; i++)
        fine = collect(pids[i], b, &b->jobs[i], &sum) && fine;
    tally_print(&sum);
    printf("%s, %.1f s\n", fine ? "no violation" : "VIOLATION", seconds() - begin);
    munmap(b, sizeof *b);
    return fine ? 0 : 1;
}
