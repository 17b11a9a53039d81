/* semaphore.c - `clave semaphore`: its flags, and its text. lock.c runs it. */
#include "cmd/verbs/lock/lock.h"

static const struct flag semaphore_flags[] = {
    {'n', "number", "N", "how many may hold it at once, the same for every participant"},
    {LOCK_LIMIT_NODE, "limit-node", "PATH",
     "the node that holds the number; -n: its initial value"},
    {'t', "no-wait", NULL, "only if there is room now"},
    LOCK_FLAGS_OF_ALL,
};

static int run_semaphore(struct options *o, int argc, char **argv)
{
    return lock_run(o, argc, argv, KIND_LEASE);
}

const struct verb verb_semaphore = {
    .name = "semaphore",
    .args = "-n N PATH [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command while holding one of N leases",
    .text =
        "At most N such commands run at once, on any number of machines. The layout is that of\n"
        "Curator's InterProcessSemaphoreV2. With --limit-node the number is what that node\n"
        "holds (four bytes, as Curator's SharedCount), and is followed as it changes.\n"
        "Everything else is as for 'clave lock'.\n",
    .flags = semaphore_flags,
    .max_args = 1,
    .runs_command = true,
    .run = run_semaphore,
};
