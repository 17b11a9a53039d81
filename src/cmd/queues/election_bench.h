/* election_bench.h - the cost of a change of leaders, measured with candidates of our own. */
#ifndef CLAVE_CMD_QUEUES_ELECTION_BENCH_H
#define CLAVE_CMD_QUEUES_ELECTION_BENCH_H

#include "cmd/cli/cmd_options.h"

struct election_bench_plan {
    size_t candidates;
    size_t rounds;
    const char *path; /* the elections are held below this path */
};

/* Of all rounds, sorted: the first is the minimum, the middle one the median. */
struct election_bench_figures {
    uint64_t *requests; /* at the server, from a leader's leaving until it is quiet */
    uint64_t *events;
    int64_t *leader_us; /* until the next one leads */
};

/* Runs the elections of one kind, fair or unfair. Returns an exit code, after a message on failure;
 * the figures have room for plan->rounds each. */
int election_bench_run(struct options *o, const struct election_bench_plan *plan, bool fair,
                       const struct election_bench_figures *out);

#endif
