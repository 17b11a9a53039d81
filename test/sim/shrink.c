#include "shrink.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenario.h"

enum { PLAN_SIZE = 4096, PLAY_SECONDS = 60 };

/* What a play in a process of its own leaves, in memory shared with it. */
struct result {
    const char *broken; /* static text: the child has the parent's */
    size_t planned;
    bool struck[PLAN_SIZE];
};

struct search {
    uint64_t seed;
    int64_t drift_ppm;
    struct result *result;
    struct shrunk *out;
};

static void play_in_child(const struct search *s, const bool *skip, size_t n)
{
    struct record r;
    struct outcome o;
    struct play p = {.seed = s->seed,
                     .drift_ppm = s->drift_ppm,
                     .quiet = true,
                     .skip = skip,
                     .nskip = n,
                     .record = &r};
    alarm(PLAY_SECONDS); /* one that hangs dies of it */
    record_init(&r, s->seed);
    scenario_play(&p, &o);
    s->result->broken = o.broken;
    s->result->planned = r.nstrikes < PLAN_SIZE ? r.nstrikes : PLAN_SIZE;
    for (size_t i = 0; i < s->result->planned; i++)
        s->result->struck[i] = r.strikes[i].struck;
    _exit(0);
}

/* A violation may be the death of the process. NULL: it is none. */
static const char *play(struct search *s, const bool *skip, size_t n)
{
    int status = 0;
    memset(s->result, 0, sizeof *s->result);
    s->out->plays++;
    pid_t pid = fork();
    if (pid == 0)
        play_in_child(s, skip, n);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return NULL;
    return WIFSIGNALED(status) ? "the process dies" : s->result->broken;
}

static size_t count_left(const struct shrunk *out)
{
    size_t n = 0;
    for (size_t i = 0; i < out->planned; i++)
        n += !out->skip[i];
    return n;
}

/* The last play failed as it should: what did not strike in it is not needed. */
static void keep(struct search *s, bool *tried)
{
    struct shrunk *out = s->out;
    for (size_t i = 0; i < out->planned && s->result->planned > 0; i++)
        tried[i] |= !s->result->struck[i];
    memcpy(out->skip, tried, out->planned * sizeof *tried);
    out->left = count_left(out);
}

/* Tries the plan without the left-over faults [first, first + count); true: it goes. */
static bool go_without(struct search *s, size_t first, size_t count)
{
    struct shrunk *out = s->out;
    bool *tried = world_alloc(out->planned * sizeof *tried);
    size_t nth = 0;
    memcpy(tried, out->skip, out->planned * sizeof *tried);
    for (size_t i = 0; i < out->planned; i++)
        if (!out->skip[i] && nth++ >= first && nth <= first + count)
            tried[i] = true;
    const char *broken = play(s, tried, out->planned);
    bool same = broken && strcmp(broken, out->broken) == 0;
    if (same)
        keep(s, tried);
    free(tried);
    return same;
}

/* One round with pieces of this size; true: some were not needed. */
static bool try_pieces(struct search *s, size_t size)
{
    bool gone = false;
    for (size_t first = 0; first < s->out->left;) {
        if (go_without(s, first, size))
            gone = true;
        else
            first += size;
    }
    return gone;
}

static void reduce(struct search *s)
{
    for (size_t size = (s->out->left + 1) / 2; size > 0; size /= 2)
        while (try_pieces(s, size) && size == 1)
            ;
}

void shrink(uint64_t seed, int64_t drift_ppm, struct shrunk *out)
{
    memset(out, 0, sizeof *out);
    struct result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return;
    struct search s = {seed, drift_ppm, shared, out};
    out->broken = play(&s, NULL, 0);
    out->planned = shared->planned > 0 ? shared->planned : PLAN_SIZE;
    out->skip = world_alloc(out->planned * sizeof *out->skip);
    if (out->broken) {
        bool *tried = world_alloc(out->planned * sizeof *tried);
        keep(&s, tried);
        free(tried);
        out->struck = out->left;
        reduce(&s);
    }
    munmap(shared, sizeof *shared);
}

void shrink_fini(struct shrunk *s)
{
    free(s->skip);
}
