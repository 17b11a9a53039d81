/* clave_sim - plays seeds of the simulated world.
 *
 *   clave_sim --seeds N --first K --jobs J [--minutes M] [--trace] [--twice] */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs.h"

static void usage(void)
{
    fputs("usage: clave_sim [--seeds N] [--first K] [--jobs J] [--minutes M] [--trace] [--twice]\n"
          "  --seeds N    so many seeds (1000)\n"
          "  --first K    beginning with this one (1)\n"
          "  --jobs J     in so many processes (1)\n"
          "  --minutes M  until M minutes have passed, however many seeds that is\n"
          "  --trace      tell each seed's story on stdout; with one job\n"
          "  --twice      play each seed twice: the traces have to be equal\n",
          stderr);
}

static bool take_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

static bool take_option(struct jobs_options *o, const char *name, const char *value)
{
    static const char *const names[] = {"--seeds", "--first", "--jobs", "--minutes"};
    uint64_t *const places[] = {&o->seeds, &o->first, &o->jobs, &o->minutes};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return value && take_number(value, places[i]);
    return false;
}

int main(int argc, char **argv)
{
    struct jobs_options o = {.seeds = 1000, .first = 1, .jobs = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            o.aloud = true;
        else if (strcmp(argv[i], "--twice") == 0)
            o.twice = true;
        else if (take_option(&o, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
            i++;
        else {
            usage();
            return 64;
        }
    }
    return jobs_run(&o);
}
