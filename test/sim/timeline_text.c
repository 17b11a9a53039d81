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

static bool is_named(const struct record *r, const char *who)
{
    char name[STORY_WHO];
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

static bool is_told(const struct record *r, const struct record_line *l)
{
    return !is_routine(l->text) || (is_named(r, l->who) && l->at > r->end - r->timeout_us);
}

static void tell_faults(const struct record *r)
{
    size_t struck = 0;
    for (size_t i = 0; i < r->nstrikes; i++)
        struck += r->strikes[i].struck;
    printf("%zu fault%s:\n", struck, struck == 1 ? "" : "s");
    for (size_t i = 0; i < r->nstrikes; i++)
        if (r->strikes[i].struck)
            printf("  %9.3f s  %s (number %u)\n", seconds(r->strikes[i].at - r->end),
                   r->strikes[i].name, r->strikes[i].number);
}

/* Times are before the end; a pause is a line of its own. */
static void tell_lines(const struct record *r)
{
    int64_t begin = record_begin(r), last = begin;
    for (size_t i = 0; i < r->nlines; i++) {
        const struct record_line *l = &r->lines[i];
        if (l->at < begin || !is_told(r, l))
            continue;
        if (l->at - last > r->timeout_us / 4)
            printf("             ... %.3f s later\n", seconds(l->at - last));
        last = l->at;
        printf("  %9.3f s  %-9s %s\n", seconds(l->at - r->end), l->who, l->text);
    }
}

void story_tell(const struct record *r)
{
    if (r->broken)
        printf("Seed %" PRIu64 " breaks: %s.\n  %s\n\n", r->seed, r->broken, r->why);
    else
        printf("Seed %" PRIu64 " breaks nothing.\n\n", r->seed);
    printf("The world: %s.\n\n", r->weather);
    tell_faults(r);
    printf("\nWhat happened, in seconds before the end:\n");
    tell_lines(r);
}
