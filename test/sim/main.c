/* clave_sim - plays seeds of the simulated world.
 *
 *   clave_sim --seeds N --first K --jobs J [--minutes M] [--trace] [--twice]
 *   clave_sim --seed N [--shrink] [--story] [--svg FILE] */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "closeup.h"
#include "jobs.h"

static void usage(void)
{
    fputs(
        "usage: clave_sim [--seeds N] [--first K] [--jobs J] [--minutes M] [--drift N]\n"
        "                 [--trace] [--twice]\n"
        "       clave_sim --seed N [--shrink] [--story] [--svg FILE]\n"
        "  --seeds N    so many seeds (1000)\n"
        "  --first K    beginning with this one (1)\n"
        "  --jobs J     in so many processes (1)\n"
        "  --minutes M  until M minutes have passed, however many seeds that is\n"
        "  --drift N    clocks are off by up to so many permille (65); beyond 66 the margin does\n"
        "               not cover it, and holds that are valid by their clocks only are counted\n"
        "  --trace      tell each seed's story on stdout; with one job\n"
        "  --twice      play each seed twice: the traces have to be equal\n"
        "  --seed N     this one alone\n"
        "  --shrink     with as few of its faults as will do, told as a story\n"
        "  --story      told so that a person can follow it\n"
        "  --svg FILE   drawn as a line of time\n",
        stderr);
}

static bool take_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

struct options {
    struct jobs_options jobs;
    struct closeup closeup;
    bool close;
};

static bool take_flag(struct options *o, const char *name)
{
    const char *const names[] = {"--trace", "--twice", "--shrink", "--story"};
    bool *const places[] = {&o->jobs.aloud, &o->jobs.twice, &o->closeup.shrink, &o->closeup.story};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return *places[i] = true;
    return false;
}

static bool take_option(struct options *o, const char *name, const char *value)
{
    const char *const names[] = {"--seeds", "--first", "--jobs", "--minutes", "--drift", "--seed"};
    uint64_t *const places[] = {&o->jobs.seeds,   &o->jobs.first, &o->jobs.jobs,
                                &o->jobs.minutes, &o->jobs.drift, &o->closeup.seed};
    if (strcmp(name, "--svg") == 0) {
        o->closeup.svg = value;
        return value != NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            o->close |= places[i] == &o->closeup.seed;
            return value && take_number(value, places[i]);
        }
    return false;
}

int main(int argc, char **argv)
{
    struct options o = {.jobs = {.seeds = 1000, .first = 1, .jobs = 1, .drift = 65}};
    for (int i = 1; i < argc; i++) {
        if (take_flag(&o, argv[i]))
            continue;
        if (!take_option(&o, argv[i], argv[i + 1])) {
            usage();
            return 64;
        }
        i++;
    }
    bool closely = o.closeup.shrink || o.closeup.story || o.closeup.svg;
    if (closely && !o.close) {
        usage();
        return 64;
    }
    o.closeup.drift_ppm = (int64_t)o.jobs.drift * 1000;
    if (closely)
        return closeup_run(&o.closeup);
    if (o.close) {
        o.jobs.first = o.closeup.seed;
        o.jobs.seeds = 1;
    }
    return jobs_run(&o.jobs);
}
