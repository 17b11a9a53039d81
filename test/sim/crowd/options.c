/* options.c - the command line of clave_crowd, and the scenarios of docs/evidence/scale.md: each is
 * a list of these options, and those that follow its name on the command line replace its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

struct scenario {
    const char *name;
    const char *flags;
};

#define LEADER_20K "--clients 20000 --locks 20000 --candidates 200 --fault leader"
#define LEADER_100K                                                                                \
    "--clients 100000 --locks 100000 --timeout 60000 --start 60000 --after 40000 --fault leader"

static const struct scenario scenarios[] = {
    {"leader-20k", LEADER_20K},
    {"member-20k", LEADER_20K " --fault member"},
    {"network-20k", LEADER_20K " --fault network --outage 3000"},
    {"rack-20k", LEADER_20K " --locks 2000 --fault rack"},
    {"leader-20k-3+2", LEADER_20K " --observers 2"},
    {"leader-100k", LEADER_100K},
    {"leader-100k-5", LEADER_100K " --members 5"},
    {"leader-100k-3+2", LEADER_100K " --observers 2"},
    {"leader-100k-3+5", LEADER_100K " --observers 5"},
    {"observer-100k-3+5", LEADER_100K " --observers 5 --fault member"},
    {"network-100k", LEADER_100K " --fault network --outage 10000"},
    {"network-100k-3+5", LEADER_100K " --observers 5 --fault network --outage 10000"},
    {"rack-100k", LEADER_100K " --locks 10000 --fault rack --after 75000"},
    {"election-10k", "--clients 10000 --locks 10000 --candidates 10000 --timeout 40000 "
                     "--start 30000 --after 30000 --fault leader"},
    {"serve-100k", "--clients 100000 --locks 100000 --members 1 --after 20000 --fault leader "
                   "--election 1000000 --accept 25 --attach 1 --read 1 --write 5 --apply 1"},
};

static _Noreturn void options_usage(void)
{
    fputs("usage: clave_crowd [--scenario NAME]\n"
          "                   [--clients N] [--locks N] [--candidates N] [--members N]\n"
          "                   [--observers N] [--fault none|leader|member|rack|network]\n"
          "                   [--hold MS] [--timeout MS] [--start MS] [--outage MS] [--after MS]\n"
          "                   [--backoff MS --backoff-max MS] [--pause MS] [--seed N]\n"
          "                   [--read US] [--write US] [--send US] [--apply US] [--attach US]\n"
          "                   [--accept US] [--refuse US] [--kib US] [--commit US] [--net US]\n"
          "                   [--election US]\n"
          "  --fault member: the last one, which is an observer if there are any.\n"
          "  --backoff: the clients' first pause, growing to the longest, with jitter; --pause:\n"
          "  always the same. Without: their default.\n"
          "  Costs are microseconds of CPU (--commit, --net, --election: of time). "
          "docs/evidence/scale.md\n"
          "  Scenarios:\n",
          stderr);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        fprintf(stderr, "    %-18s %s\n", scenarios[i].name, scenarios[i].flags);
    exit(64);
}

static bool options_set_fault(struct crowd_options *o, const char *name)
{
    static const char *const faults[] = {"none", "leader", "member", "rack", "network"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (strcmp(name, faults[i]) == 0) {
            o->fault = faults[i];
            return true;
        }
    return false;
}

/* Where a number goes: one of the two. */
struct crowd_flag {
    const char *name;
    size_t *size;
    int64_t *number;
};

static bool options_set_number(struct crowd_options *o, const char *name, const char *value)
{
    struct costs *c = &o->costs;
    const struct crowd_flag flags[] = {
        {"--clients", &o->clients, NULL},
        {"--locks", &o->locks, NULL},
        {"--candidates", &o->candidates, NULL},
        {"--members", &o->members, NULL},
        {"--observers", &o->observers, NULL},
        {"--hold", NULL, &o->hold_ms},
        {"--timeout", NULL, &o->timeout_ms},
        {"--start", NULL, &o->start_ms},
        {"--outage", NULL, &o->outage_ms},
        {"--after", NULL, &o->after_ms},
        {"--backoff", NULL, &o->backoff_ms},
        {"--backoff-max", NULL, &o->backoff_max_ms},
        {"--pause", NULL, &o->pause_ms},
        {"--seed", NULL, &o->seed},
        {"--read", NULL, &c->read},
        {"--write", NULL, &c->write},
        {"--send", NULL, &c->send},
        {"--apply", NULL, &c->apply},
        {"--attach", NULL, &c->attach},
        {"--accept", NULL, &c->accept},
        {"--refuse", NULL, &c->refuse},
        {"--kib", NULL, &c->kib},
        {"--commit", NULL, &c->commit},
        {"--net", NULL, &c->net},
        {"--election", NULL, &c->election},
    };
    char *end;
    long long n = strtoll(value, &end, 10);
    for (size_t i = 0; i < sizeof flags / sizeof *flags && *end == 0 && n >= 0; i++) {
        if (strcmp(name, flags[i].name) != 0)
            continue;
        if (flags[i].size)
            *flags[i].size = (size_t)n;
        else
            *flags[i].number = n;
        return true;
    }
    return false;
}

static bool options_set(struct crowd_options *o, const char *name, const char *value)
{
    return strcmp(name, "--fault") == 0 ? options_set_fault(o, value)
                                        : options_set_number(o, name, value);
}

static bool options_set_scenario(struct crowd_options *o, const char *name)
{
    const struct scenario *s = scenarios, *end = s + sizeof scenarios / sizeof *scenarios;
    while (s < end && strcmp(s->name, name) != 0)
        s++;
    if (s == end)
        return false;
    char flags[400], *rest = flags, *flag;
    crowd_require(snprintf(flags, sizeof flags, "%s", s->flags) < (int)sizeof flags);
    while ((flag = strtok_r(rest, " ", &rest)))
        crowd_require(options_set(o, flag, strtok_r(rest, " ", &rest)));
    return true;
}

static bool options_are_valid(const struct crowd_options *o)
{
    return o->clients > 0 && o->locks > 0 && o->locks <= o->clients &&
           o->candidates <= o->clients && o->members > 0 &&
           o->members + o->observers <= CROWD_MEMBERS;
}

void crowd_options_read(struct crowd_options *o, int argc, char **argv)
{
    *o = (struct crowd_options){
        .clients = 1000,
        .locks = 1000,
        .members = 3,
        .timeout_ms = 10000,
        .start_ms = 10000,
        .outage_ms = 5000,
        .after_ms = 60000,
        .fault = "none",
        .seed = 1,
        .costs = {.read = 20,
                  .write = 32,
                  .send = 4,
                  .apply = 20,
                  .attach = 20,
                  .accept = 75,
                  .refuse = 50,
                  .kib = 1,
                  .commit = 2000,
                  .net = 250,
                  .election = 500000},
    };
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc ||
            !(strcmp(argv[i], "--scenario") == 0 ? options_set_scenario(o, argv[i + 1])
                                                 : options_set(o, argv[i], argv[i + 1])))
            options_usage();
    if (!options_are_valid(o))
        options_usage();
}
