/* resign.c - `clave resign`: asks the leader of an election to resign, and waits until it has
 * (cmd/queues/leader_resign.h). Any client that may write to the election's path may ask. */
#include "cmd/cli/cmd_options.h"
#include "cmd/queues/leader_resign.h"

static int resign_run(struct options *o, int argc, char **argv)
{
    struct handover h;
    int code;
    return handover_begin(&h, o, argc, argv, 1, &code) ? handover_run(&h) : code;
}

const struct verb verb_resign = {
    .name = "resign",
    .args = "PATH",
    .summary = "Ask the leader of an election to resign, and wait until it has",
    .text = "'clave elect' ends its command and resigns; other programs that use clave decide\n"
            "for themselves; Curator's leaders do not notice. Exit code 75: not in time; 66: the\n"
            "election has no leader.\n",
    .flags = handover_flags,
    .elects = true,
    .max_args = -1,
    .run = resign_run,
};
