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

static void on_line(void *arg, const struct log_line *l)
{
    struct recording *r = arg;
    r->lines = grow(r->lines, r->nlines, &r->lines_cap, sizeof *r->lines);
    struct recording_line *line = &r->lines[r->nlines++];
    line->at = l->at;
    snprintf(line->who, sizeof line->who, "%s", l->who);
    snprintf(line->text, sizeof line->text, "%s", l->text);
}

void recording_listen(struct recording *r, struct world *w)
{
    w->listener = on_line;
    w->listener_arg = r;
}

/* ---- lanes --------------------------------------------------------------------------- */

unsigned recording_add_lane(struct recording *r, const char *name)
{
    world_must(r->nlanes < RECORDING_LANES);
    struct recording_lane *l = &r->lanes[r->nlanes];
    snprintf(l->name, sizeof l->name, "%s", name);
    return r->nlanes++;
}

static void close_span(struct recording *r, struct recording_span *s, int64_t at)
{
    if (s->kind == RECORDING_NOTHING)
        return;
    r->spans = grow(r->spans, r->nspans, &r->spans_cap, sizeof *r->spans);
    s->to = at;
    r->spans[r->nspans++] = *s;
    s->kind = RECORDING_NOTHING;
}

void recording_is(struct recording *r, unsigned lane, int64_t at, enum recording_kind kind,
                  const char *label)
{
    struct recording_span *s = &r->lanes[lane].now;
    if (s->kind == kind && strcmp(s->label, label) == 0)
        return;
    close_span(r, s, at);
    *s = (struct recording_span){.lane = lane, .kind = kind, .from = at};
    snprintf(s->label, sizeof s->label, "%s", label);
}

void recording_lost(struct recording *r, unsigned lane, int64_t at, uint64_t bytes)
{
    if (bytes == r->lanes[lane].lost)
        return;
    r->lanes[lane].lost = bytes;
    r->losses = grow(r->losses, r->nlosses, &r->losses_cap, sizeof *r->losses);
    r->losses[r->nlosses++] = (struct recording_loss){lane, at};
}

/* ---- life ---------------------------------------------------------------------------- */

int64_t recording_begin(const struct recording *r)
{
    int64_t first = r->end - 2 * r->timeout_us;
    for (size_t i = 0; i < r->nplanned; i++)
        if (r->planned[i].happened && r->planned[i].at < first)
            first = r->planned[i].at;
    first -= r->timeout_us / 4;
    return first > 0 ? first : 0;
}

void recording_end(struct recording *r, const struct world *w)
{
    r->end = w->now;
    r->broken = w->broken;
    snprintf(r->why, sizeof r->why, "%s", w->why);
    for (unsigned i = 0; i < r->nlanes; i++)
        close_span(r, &r->lanes[i].now, w->now);
}

void recording_init(struct recording *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
}

void recording_fini(struct recording *r)
{
    free(r->lines);
    free(r->spans);
    free(r->losses);
    free(r->planned);
}
