#include "timeline_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double seconds(int64_t us)
{
    return (double)us / (double)SECOND;
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "client1" of "client1.0". */
static size_t client_len(const char *who)
{
    return strcspn(who, ".");
}

static bool is_named(const struct recording *r, const char *who)
{
    char name[LOG_WHO];
    snprintf(name, sizeof name, "%.*s", (int)client_len(who), who);
    return r->broken && strstr(r->why, name) != NULL;
}

/* What everybody does all day is told only of those the violation names, near its end. */
static bool is_routine(const char *text)
{
    return begins_with(text, "asks for") || strstr(text, "before it") ||
           begins_with(text, "its write of") || begins_with(text, "releases") ||
           begins_with(text, "acquire:");
}

static bool is_told(const struct recording *r, const struct recording_line *l)
{
    return !is_routine(l->text) || (is_named(r, l->who) && l->at > r->end - r->timeout_us);
}

static void tell_faults(const struct recording *r)
{
    size_t happened = 0;
    for (size_t i = 0; i < r->nplanned; i++)
        happened += r->planned[i].happened;
    printf("%zu fault%s:\n", happened, happened == 1 ? "" : "s");
    for (size_t i = 0; i < r->nplanned; i++)
        if (r->planned[i].happened)
            printf("  %9.3f s  %s (number %u)\n", seconds(r->planned[i].at - r->end),
                   r->planned[i].name, r->planned[i].number);
}

/* Times are before the end; a pause is a line of its own. */
static void tell_lines(const struct recording *r)
{
    int64_t begin = recording_begin(r), last = begin;
    for (size_t i = 0; i < r->nlines; i++) {
        const struct recording_line *l = &r->lines[i];
        if (l->at < begin || !is_told(r, l))
            continue;
        if (l->at - last > r->timeout_us / 4)
            printf("             ... %.3f s later\n", seconds(l->at - last));
        last = l->at;
        printf("  %9.3f s  %-9s %s\n", seconds(l->at - r->end), l->who, l->text);
    }
}

void timeline_text(const struct recording *r)
{
    if (r->broken)
        printf("Seed %" PRIu64 " breaks: %s.\n  %s\n\n", r->seed, r->broken, r->why);
    else
        printf("Seed %" PRIu64 " breaks nothing.\n\n", r->seed);
    printf("The world: %s.\n\n", r->settings);
    tell_faults(r);
    printf("\nWhat happened, in seconds before the end:\n");
    tell_lines(r);
}
