/* unreachable.c - prints the messages of unreachable.h. connect.c and run/lock_messages.c call it.
 * Each reason is printed once. */
#include "cmd/cli/unreachable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash/fnv.h"
#include "base/time_format.h"
#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/standard_error.h"

void unreachable_begin(struct unreachable *u, const struct options *o, const char *connect,
                       int64_t until)
{
    const char *term = getenv("TERM");
    bool terminal = isatty(STDERR_FILENO);
    *u = (struct unreachable){.o = o, .connect = connect, .began = clave_now(), .until = until};
    u->says = terminal || o->verbose > 0;
    u->live = terminal && term && strcmp(term, "dumb") != 0 && o->verbose == 0;
}

int64_t unreachable_due_ms(const struct unreachable *u)
{
    if (!u->says)
        return INT64_MAX;
    int64_t first = u->began + UNREACHABLE_FIRST_MS - clave_now();
    return first > 0 ? first : UNREACHABLE_AGAIN_MS;
}

bool unreachable_is_news(struct unreachable *u, const char *fault)
{
    uint64_t h = clave__fnv1a(FNV1A_BASIS, fault, strlen(fault));
    for (size_t i = 0; i < u->nreported; i++)
        if (u->reported[i] == h)
            return false;
    if (u->nreported == UNREACHABLE_REASONS)
        return false;
    u->reported[u->nreported++] = h;
    return true;
}

/* The time left in whole seconds, rounded up, so that the line counts down to 1. */
static const char *unreachable_left(const struct unreachable *u, char out[AGE_CAP])
{
    int64_t ms = u->until - clave_now();
    return age_format((ms > 0 ? ms + 999 : 1000) / 1000 * 1000, out);
}

static void unreachable_draw(struct unreachable *u)
{
    char text[AGE_CAP];
    fprintf(standard_error(), "\rclave: %s: connecting, %s left\033[K", u->o->verb->name,
            unreachable_left(u, text));
    fflush(standard_error());
    u->drawn = true;
}

void unreachable_report(struct unreachable *u, const char *fault)
{
    char text[AGE_CAP];
    if (!u->says)
        return;
    if (unreachable_is_news(u, fault)) {
        unreachable_clear(u);
        diag(u->o, "%s%s no server has answered yet: %s; trying for %s more", u->connect,
             diag_colon(u->connect), fault, unreachable_left(u, text));
    }
    if (u->live)
        unreachable_draw(u);
}

void unreachable_clear(struct unreachable *u)
{
    if (u->drawn) {
        fputs("\r\033[K", standard_error());
        fflush(standard_error());
    }
    u->drawn = false;
}

int unreachable_give_up(const struct options *o, const char *connect, int64_t within_ms,
                        const char *fault)
{
    char within[DURATION_CAP], text[1024];
    snprintf(text, sizeof text, "no server could be reached within %s: %s (--connect names others)",
             clave__duration_format(within_ms, within), fault);
    return diag_refused(o, connect, text);
}
