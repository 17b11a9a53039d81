/* herd.h - what a change of leaders costs, measured with candidates of our own. */
#ifndef CLAVE_CMD_VERBS_SERVER_HERD_H
#define CLAVE_CMD_VERBS_SERVER_HERD_H

#include "cmd/cli/options.h"

struct herd_plan {
    size_t candidates;
    size_t rounds;
    const char *path; /* below which the elections are held */
};

/* Of all rounds, sorted: the first is the least, the middle one the median. */
struct herd_figures {
    uint64_t *requests; /* at the server, from a leader's leaving until all is quiet */
    uint64_t *events;
    int64_t *leader_us; /* until the next one leads */
};

/* Runs the elections of one kind: of the fair one or of the unfair one. Returns an exit code,
 * having told why; the figures have room for plan->rounds each. */
int herd_run(struct options *o, const struct herd_plan *plan, bool fair,
             const struct herd_figures *out);

#endif
