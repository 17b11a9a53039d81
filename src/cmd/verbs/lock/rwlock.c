/* rwlock.c - `clave rwlock`: its flags, and its text. lock.c runs it. */
#include "cmd/verbs/lock/lock.h"

static const struct flag rwlock_flags[] = {
    {'r', "read", NULL, "a read lock, shared with other readers"},
    {'W', "write", NULL, "a write lock, exclusive [the default]"},
    {'n', "no-wait", NULL, "only if it is free now"},
    LOCK_FLAGS_OF_EXCLUSIVE,
    LOCK_FLAGS_OF_ALL,
};

static int run_rwlock(struct options *o, int argc, char **argv)
{
    return lock_run(o, argc, argv, KIND_WRITE);
}

const struct verb verb_rwlock = {
    .name = "rwlock",
    .args = "[-r|-W] PATH [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command while holding a read or a write lock",
    .text = "Readers run together, a writer alone, in the order in which they queued: a reader\n"
            "waits for the writers before it. The layout is that of Curator's\n"
            "InterProcessReadWriteLock. Everything else is as for 'clave lock'.\n",
    .flags = rwlock_flags,
    .max_args = 1,
    .runs_command = true,
    .run = run_rwlock,
};
