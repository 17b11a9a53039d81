/* reach.c - the messages of reach.h; connect.c and run/progress.c call it. Each reason is printed
 * once. */
#include "cmd/cli/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/queue/participant_text.h"

void reach_begin(struct reach *r, const struct options *o, const char *connect, int64_t until)
{
    const char *term = getenv("TERM");
    bool terminal = isatty(STDERR_FILENO);
    *r = (struct reach){.o = o, .connect = connect, .began = clave_now(), .until = until};
    r->says = terminal || o->verbose > 0;
    r->live = terminal && term && strcmp(term, "dumb") != 0 && o->verbose == 0;
}

int64_t reach_due_ms(const struct reach *r)
{
    if (!r->says)
        return INT64_MAX;
    int64_t first = r->began + REACH_FIRST_MS - clave_now();
    return first > 0 ? first : REACH_AGAIN_MS;
}

static uint64_t reach_hash(const char *s) /* FNV-1a */
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return h;
}

bool reach_is_news(struct reach *r, const char *fault)
{
    uint64_t h = reach_hash(fault);
    for (size_t i = 0; i < r->nreported; i++)
        if (r->reported[i] == h)
            return false;
    if (r->nreported == REACH_REASONS)
        return false;
    r->reported[r->nreported++] = h;
    return true;
}

/* Whole seconds, so that it counts down to 1. */
static const char *left(const struct reach *r, char out[AGE_CAP])
{
    int64_t ms = r->until - clave_now();
    return age_format((ms > 0 ? ms + 999 : 1000) / 1000 * 1000, out);
}

static void reach_draw(struct reach *r)
{
    char text[AGE_CAP];
    fprintf(stderr, "\rclave: %s: connecting, %s left\033[K", r->o->verb->name, left(r, text));
    fflush(stderr);
    r->drawn = true;
}

void reach_report(struct reach *r, const char *fault)
{
    char text[AGE_CAP];
    if (!r->says)
        return;
    if (reach_is_news(r, fault)) {
        reach_clear(r);
        diag(r->o, "%s%s no server has answered yet: %s; trying for %s more", r->connect,
             tell_colon(r->connect), fault, left(r, text));
    }
    if (r->live)
        reach_draw(r);
}

void reach_clear(struct reach *r)
{
    if (r->drawn)
        fputs("\r\033[K", stderr);
    r->drawn = false;
}
