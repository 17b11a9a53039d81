/* clave_sim - plays seeds of the simulated world.
 *
 *   clave_sim --seeds N --first K --jobs J [--minutes M] [--trace] [--twice]
 *   clave_sim --seed N [--shrink] [--timeline] [--svg FILE] [a part of it] */
#include <stdio.h>
#include <string.h>

#include "jobs.h"
#include "replay.h"

static void usage(void)
{
    fputs(
        "usage: clave_sim [--seeds N] [--first K] [--jobs J] [--minutes M] [--drift N]\n"
        "                 [--trace] [--twice]\n"
        "       clave_sim --seed N [--shrink] [--timeline] [--svg FILE] [--trace] [--drift N]\n"
        "                 [--faults LIST] [--salt N] [--clients N] [--actors N] [--locks N]\n"
        "                 [--day MS]\n"
        "  --seeds N    so many seeds (1000)\n"
        "  --first K    beginning with this one (1)\n"
        "  --jobs J     in so many processes (1)\n"
        "  --minutes M  until M minutes have passed, however many seeds that is\n"
        "  --drift N    clocks are off by up to so many permille (65); beyond 66 the margin does\n"
        "               not cover it, and holds that are valid by their clocks only are counted\n"
        "  --trace      print each seed's log on stdout; with one job\n"
        "  --twice      play each seed twice: the traces have to be equal\n"
        "  --seed N     this one alone\n"
        "  --shrink     with as few of its faults as will do, fewer clients and a shorter day,\n"
        "               printed as a timeline\n"
        "  --timeline   as text that a person can follow\n"
        "  --svg FILE   drawn as a picture\n"
        "  --faults L   only those of its plan that have these numbers (3,17,40), or none\n"
        "  --salt N     with other random numbers for whatever is not drawn before the day begins\n"
        "  --clients N --actors N --locks N --day MS\n"
        "               at most so many clients, actors a client and locks, so long a day\n",
        stderr);
}

struct options {
    struct jobs_options jobs;
    struct replay replay;
    bool close;
};

static bool take_flag(struct options *o, const char *name)
{
    const char *const names[] = {"--trace", "--twice", "--shrink", "--timeline"};
    bool *const places[] = {&o->jobs.aloud, &o->jobs.twice, &o->replay.shrink, &o->replay.text};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return *places[i] = true;
    return false;
}

static bool take_option(struct options *o, const char *name, const char *value)
{
    const char *const names[] = {"--seeds", "--first", "--jobs", "--minutes", "--drift", "--seed"};
    uint64_t *const places[] = {&o->jobs.seeds,   &o->jobs.first, &o->jobs.jobs,
                                &o->jobs.minutes, &o->jobs.drift, &o->replay.seed};
    if (strcmp(name, "--svg") == 0) {
        o->replay.svg = value;
        return value != NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            o->close |= places[i] == &o->replay.seed;
            return value && subset_take_number(value, places[i]);
        }
    return subset_take(&o->replay.subset, name, value);
}

int main(int argc, char **argv)
{
    struct options o = {.jobs = {.seeds = 1000, .first = 1, .jobs = 1, .drift = DRIFT_PERMILLE}};
    for (int i = 1; i < argc; i++) {
        if (take_flag(&o, argv[i]))
            continue;
        if (!take_option(&o, argv[i], argv[i + 1])) {
            usage();
            return 64;
        }
        i++;
    }
    bool closely =
        o.replay.shrink || o.replay.text || o.replay.svg || !subset_is_all(&o.replay.subset);
    if (closely && !o.close) {
        usage();
        return 64;
    }
    o.replay.drift_ppm = (int64_t)o.jobs.drift * 1000;
    o.replay.aloud = o.jobs.aloud;
    o.replay.text |= o.replay.shrink || (!o.replay.svg && !o.replay.aloud);
    if (closely)
        return replay_run(&o.replay);
    if (o.close) {
        o.jobs.first = o.replay.seed;
        o.jobs.seeds = 1;
    }
    return jobs_run(&o.jobs);
}
