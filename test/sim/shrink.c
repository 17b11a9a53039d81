#include "shrink.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenario.h"

enum {
    PLAY_SECONDS = 60,
    SALTS = 6, /* tries of a subset before it is given up */
    MOST_PLAYS = 1000,
    MOST_STEPS = 12000000, /* of all plays together; a machine plays a million in a second */
};

static const char *const dies = "the process dies", *const hangs = "the process hangs";

struct search {
    uint64_t seed;
    int64_t drift_ppm;
    struct outcome *played; /* by the last process, in memory shared with it */
    struct shrunk *out;
    uint64_t sizes[SIZES]; /* of the least */
    uint64_t steps;        /* so far */
    uint64_t most_steps;   /* then it has to do */
    uint64_t salts;        /* used so far */
};

/* ---- one play ------------------------------------------------------------------------ */

static void play_in_child(const struct search *s, const struct subset *subset)
{
    struct play p = {.seed = s->seed, .drift_ppm = s->drift_ppm, .quiet = true, .subset = subset};
    alarm(PLAY_SECONDS); /* one that hangs dies of it */
    scenario_play(&p, s->played);
    _exit(0);
}

/* A violation may be the death of the process. NULL: it is none. */
static const char *play(struct search *s, const struct subset *subset)
{
    int status = 0;
    memset(s->played, 0, sizeof *s->played);
    s->out->plays++;
    pid_t pid = fork();
    if (pid == 0)
        play_in_child(s, subset);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return NULL;
    s->steps += s->played->totals.steps;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? hangs : dies;
    return s->played->broken;
}

/* ---- smaller ------------------------------------------------------------------------- */

/* The last play failed as it should: what did not strike in it is not needed. */
static void keep(struct search *s, const struct subset *tried)
{
    s->out->least = *tried;
    s->out->least.chosen = true;
    s->out->least.faults = s->played->happened;
    memcpy(s->sizes, s->played->sizes, sizeof s->sizes);
}

static bool is_over(const struct search *s)
{
    return s->steps >= s->most_steps || s->out->plays >= MOST_PLAYS;
}

/* What is left out shifts whatever else is drawn: so the same is tried with other random numbers,
 * too. */
static bool will_do(struct search *s, struct subset *p)
{
    for (unsigned i = 0; i < SALTS && !is_over(s); i++) {
        if (i > 0)
            p->salt = ++s->salts;
        const char *broken = play(s, p);
        if (broken && strcmp(broken, s->out->broken) == 0) {
            keep(s, p);
            return true;
        }
    }
    return false;
}

/* Without the faults [first, first + count) of those left. */
static bool go_without(struct search *s, size_t first, size_t count)
{
    struct subset p = s->out->least;
    struct fault_list *l = &p.faults;
    size_t behind = first + count < l->n ? first + count : l->n;
    memmove(l->numbers + first, l->numbers + behind, (l->n - behind) * sizeof *l->numbers);
    l->n -= behind - first;
    return will_do(s, &p);
}

/* By halves, and then one by one until none can go. True: some could. */
static bool drop_faults(struct search *s)
{
    const struct fault_list *left = &s->out->least.faults;
    size_t before = left->n;
    for (size_t size = (before + 1) / 2; size > 0 && left->n > 0 && !is_over(s);) {
        bool gone = false;
        for (size_t first = 0; first < left->n && !is_over(s);) {
            if (go_without(s, first, size))
                gone = true;
            else
                first += size;
        }
        if (!gone || size > 1)
            size /= 2;
    }
    return left->n < before;
}

static bool go_with(struct search *s, enum size which, uint64_t n)
{
    struct subset p = s->out->least;
    p.sizes[which] = n;
    return n > 0 && will_do(s, &p);
}

/* By halves, and then by one or an eighth. True: it has become less. */
static bool lessen(struct search *s, enum size which)
{
    const uint64_t *n = &s->sizes[which];
    uint64_t before = *n;
    while (!is_over(s) &&
           (go_with(s, which, *n / 2) || (*n > 2 && go_with(s, which, *n - 1 - *n / 8))))
        ;
    return *n < before;
}

static bool drop_world(struct search *s)
{
    bool less = false;
    for (int i = 0; i < SIZES; i++)
        less = lessen(s, (enum size)i) || less;
    return less;
}

/* The faults first, for where much goes on few are needed; but a small world is played sooner. */
static void reduce(struct search *s)
{
    s->most_steps = MOST_STEPS / 3;
    drop_faults(s);
    s->most_steps = MOST_STEPS;
    while (drop_world(s) && drop_faults(s))
        ;
    drop_faults(s);
}

void shrink(uint64_t seed, int64_t drift_ppm, const struct subset *from, struct shrunk *out)
{
    memset(out, 0, sizeof *out);
    out->least = *from;
    struct outcome *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return;
    struct search s = {.seed = seed, .drift_ppm = drift_ppm, .played = shared, .out = out};
    out->broken = play(&s, from);
    if (out->broken) {
        keep(&s, from);
        out->happened = out->least.faults.n;
        if (out->broken != hangs) /* each try would last as long */
            reduce(&s);
    }
    munmap(shared, sizeof *shared);
}
