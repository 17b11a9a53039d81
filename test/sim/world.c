#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STANDSTILL = 200000 };

void world_must(bool fine)
{
    if (!fine)
        abort();
}

void *world_alloc(size_t size)
{
    void *p = calloc(1, size);
    world_must(p != NULL);
    return p;
}

void *world_grow(void *p, size_t size)
{
    void *grown = realloc(p, size);
    world_must(grown != NULL);
    return grown;
}

void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->trace = 0xcbf29ce484222325u;
    clave__rand_seed(&w->rand, seed);
    w->rng = &w->rand;
}

void world_fini(struct world *w)
{
    free(w->heap);
    w->heap = NULL;
}

/* ---- time: a binary heap ------------------------------------------------------------- */

static bool comes_before(const struct alarm *a, const struct alarm *b)
{
    return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

static void put(struct world *w, size_t slot, struct alarm *a)
{
    w->heap[slot] = a;
    a->slot = slot;
}

static void rise(struct world *w, size_t slot, struct alarm *a)
{
    while (slot > 1 && comes_before(a, w->heap[slot / 2])) {
        put(w, slot, w->heap[slot / 2]);
        slot /= 2;
    }
    put(w, slot, a);
}

static void sink(struct world *w, size_t slot, struct alarm *a)
{
    for (size_t child; (child = slot * 2) <= w->nheap; slot = child) {
        if (child < w->nheap && comes_before(w->heap[child + 1], w->heap[child]))
            child++;
        if (!comes_before(w->heap[child], a))
            break;
        put(w, slot, w->heap[child]);
    }
    put(w, slot, a);
}

void world_clear(struct world *w, struct alarm *a)
{
    size_t slot = a->slot;
    if (slot == 0)
        return;
    struct alarm *last = w->heap[w->nheap--];
    a->slot = 0;
    if (last == a)
        return;
    if (slot > 1 && comes_before(last, w->heap[slot / 2]))
        rise(w, slot, last);
    else
        sink(w, slot, last);
}

void world_set(struct world *w, struct alarm *a, int64_t at)
{
    world_clear(w, a);
    if (w->nheap + 2 > w->heap_cap) {
        w->heap_cap = w->heap_cap ? w->heap_cap * 2 : 64;
        w->heap = world_grow(w->heap, w->heap_cap * sizeof *w->heap);
    }
    a->at = at > w->now ? at : w->now;
    a->seq = w->seq++;
    rise(w, ++w->nheap, a);
}

void world_set_earlier(struct world *w, struct alarm *a, int64_t at)
{
    if (!alarm_is_set(a) || at < a->at)
        world_set(w, a, at);
}

bool world_step(struct world *w, int64_t end)
{
    if (w->nheap == 0 || w->heap[1]->at >= end) {
        w->now = end > w->now ? end : w->now;
        return false;
    }
    struct alarm *a = w->heap[1];
    w->steps++;
    w->steps_at_now = a->at > w->now ? 0 : w->steps_at_now + 1;
    w->now = a->at;
    world_clear(w, a);
    if (w->steps_at_now > STANDSTILL)
        world_break(w, "time goes on", "%d alarms fired at one moment", STANDSTILL);
    a->fire(a);
    return true;
}

/* ---- clocks -------------------------------------------------------------------------- */

struct clock world_clock(struct world *w)
{
    int64_t offset = world_between(w, 0, 1000 * SECOND);
    return (struct clock){offset, world_between(w, -w->drift_ppm, w->drift_ppm)};
}

int64_t clock_ms(const struct clock *c, int64_t now)
{
    return (c->offset_us + now + now * c->ppm / 1000000) / 1000;
}

int64_t clock_when(const struct clock *c, int64_t ms)
{
    if (ms >= INT64_MAX / 2000)
        return INT64_MAX;
    int64_t local = ms * 1000 - c->offset_us;
    int64_t at = local - local * c->ppm / (1000000 + c->ppm) - 2;
    while (clock_ms(c, at) < ms)
        at++;
    return at;
}

/* ---- random numbers ------------------------------------------------------------------ */

struct rand_state *world_use_rng(struct world *w, struct rand_state *rng)
{
    struct rand_state *before = w->rng;
    w->rng = rng;
    return before;
}

uint64_t world_u64(struct world *w)
{
    return clave__rand_u64(w->rng);
}

int64_t world_between(struct world *w, int64_t lo, int64_t hi)
{
    return hi <= lo ? lo : lo + (int64_t)clave__rand_below(w->rng, (uint64_t)(hi - lo) + 1);
}

bool world_chance(struct world *w, unsigned permille)
{
    return clave__rand_below(w->rng, 1000) < permille;
}

/* Without logarithms, which differ between machines. */
int64_t world_wait(struct world *w, int64_t mean)
{
    int64_t longest = world_chance(w, 100) ? 6 * mean : world_chance(w, 500) ? mean : 2 * mean;
    return world_between(w, mean / 16, longest);
}

/* ---- the log ------------------------------------------------------------------------- */

void world_hash(struct world *w, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    uint64_t h = w->trace;
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    w->trace = h;
}

void world_hash_u64(struct world *w, uint64_t v)
{
    w->trace = (w->trace ^ v) * 0x100000001b3u;
    w->trace ^= w->trace >> 29;
}

static void print_line(const struct log_line *l)
{
    printf("%10lld.%03lld  %-9s %s\n", (long long)(l->at / MS), (long long)(l->at % MS), l->who,
           l->text);
}

void world_log(struct world *w, const char *who, const char *fmt, ...)
{
    struct log_line *l = &w->log[w->nlog++ % LOG_LINES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(l->text, sizeof l->text, fmt, ap);
    va_end(ap);
    snprintf(l->who, sizeof l->who, "%s", who);
    l->at = w->now;
    world_hash_u64(w, (uint64_t)w->now);
    world_hash(w, l->who, strlen(l->who));
    world_hash(w, l->text, strlen(l->text));
    if (w->listener)
        w->listener(w->listener_arg, l);
    if (w->aloud)
        print_line(l);
}

void world_log_unhashed(const struct world *w, const char *who, const char *text)
{
    if (w->aloud)
        printf("%10lld.%03lld  %-9s   . %s\n", (long long)(w->now / MS), (long long)(w->now % MS),
               who, text);
}

void world_print_log(const struct world *w, size_t n)
{
    n = n < LOG_LINES ? n : LOG_LINES;
    size_t from = w->nlog > n ? w->nlog - n : 0;
    for (size_t i = from; i < w->nlog; i++)
        print_line(&w->log[i % LOG_LINES]);
}

void world_break(struct world *w, const char *invariant, const char *fmt, ...)
{
    va_list ap;
    if (w->broken)
        return;
    w->broken = invariant;
    va_start(ap, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
    world_log(w, "checker", "BROKEN: %s", w->why);
}
