#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more. */
static void *grow(void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    *cap = *cap ? 2 * *cap : 256;
    return world_grow(items, *cap * size);
}

static void on_line(void *arg, const struct story_line *l)
{
    struct record *r = arg;
    r->lines = grow(r->lines, r->nlines, &r->lines_cap, sizeof *r->lines);
    struct record_line *line = &r->lines[r->nlines++];
    line->at = l->at;
    snprintf(line->who, sizeof line->who, "%s", l->who);
    snprintf(line->text, sizeof line->text, "%s", l->text);
}

void record_listen(struct record *r, struct world *w)
{
    w->listener = on_line;
    w->listener_arg = r;
}

/* ---- lanes --------------------------------------------------------------------------- */

unsigned record_add_lane(struct record *r, const char *name)
{
    world_must(r->nlanes < RECORD_LANES);
    struct record_lane *l = &r->lanes[r->nlanes];
    snprintf(l->name, sizeof l->name, "%s", name);
    return r->nlanes++;
}

static void close_span(struct record *r, struct record_span *s, int64_t at)
{
    if (s->kind == RECORD_NOTHING)
        return;
    r->spans = grow(r->spans, r->nspans, &r->spans_cap, sizeof *r->spans);
    s->to = at;
    r->spans[r->nspans++] = *s;
    s->kind = RECORD_NOTHING;
}

void record_is(struct record *r, unsigned lane, int64_t at, enum record_kind kind,
               const char *label)
{
    struct record_span *s = &r->lanes[lane].now;
    if (s->kind == kind && strcmp(s->label, label) == 0)
        return;
    close_span(r, s, at);
    *s = (struct record_span){.lane = lane, .kind = kind, .from = at};
    snprintf(s->label, sizeof s->label, "%s", label);
}

void record_lost(struct record *r, unsigned lane, int64_t at, uint64_t bytes)
{
    if (bytes == r->lanes[lane].lost)
        return;
    r->lanes[lane].lost = bytes;
    r->losses = grow(r->losses, r->nlosses, &r->losses_cap, sizeof *r->losses);
    r->losses[r->nlosses++] = (struct record_loss){lane, at};
}

/* ---- life ---------------------------------------------------------------------------- */

int64_t record_begin(const struct record *r)
{
    int64_t first = r->end - 2 * r->timeout_us;
    for (size_t i = 0; i < r->nstrikes; i++)
        if (r->strikes[i].struck && r->strikes[i].at < first)
            first = r->strikes[i].at;
    first -= r->timeout_us / 4;
    return first > 0 ? first : 0;
}

void record_end(struct record *r, const struct world *w)
{
    r->end = w->now;
    r->broken = w->broken;
    snprintf(r->why, sizeof r->why, "%s", w->why);
    for (unsigned i = 0; i < r->nlanes; i++)
        close_span(r, &r->lanes[i].now, w->now);
}

void record_init(struct record *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
}

void record_fini(struct record *r)
{
    free(r->lines);
    free(r->spans);
    free(r->losses);
    free(r->strikes);
}
