/* lock.c - `clave lock`, `clave rwlock` and `clave semaphore`: three verbs with one implementation.
 * This file has the arguments, and the flags that are not shared with `clave elect`;
 * run/run_flags.h has the shared flags, run/runner.h does the rest. */
#include <stdio.h>
#include <stdlib.h>

#include "base/path.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/runner.h"

enum { LOCK_LIMIT_NODE = RUN_FLAG_OWN };

/* Parses a flag that only one of the kinds has. false: it is invalid, and a message has been
 * printed. */
static bool lock_take_flag(struct run_plan *p, int id)
{
    int64_t n;
    switch (id) {
    case 'r':
    case 'W':
        p->kind = id == 'r' ? KIND_READ : KIND_WRITE;
        return true;
    case 'n':
        if (p->kind != KIND_LEASE) {
            p->wait_ms = LOCK_TRY;
            return true;
        }
        if (!options_number(p->o, "number", 1, INT32_MAX, &n))
            return false;
        p->limit = (uint32_t)n;
        return true;
    case 't':
        p->wait_ms = LOCK_TRY;
        return true;
    case LOCK_LIMIT_NODE:
        p->limit_path = p->o->value;
        return true;
    default:
        return run_flags_take(p, id);
    }
}

static int lock_take_args(struct run_plan *p, bool tries, bool waits)
{
    if (tries && waits)
        return diag_usage(p->o, "--no-wait and --wait contradict each other");
    if (p->kind == KIND_LEASE && p->limit == 0 && !p->limit_path)
        return diag_usage(p->o,
                          "the number of leases is missing: -n N, the same for every participant");
    if (p->limit_path && !connect_path_ok(p->o, p->limit_path))
        return EXIT_PATH;
    return run_flags_take_args(p);
}

/* The leases are in a node below the path. */
static int lock_run_lease(struct run_plan *p)
{
    char *holders = clave__path_child(NULL, p->path, "leases");
    if (!holders)
        return diag_err(p->o, p->path, CLAVE_ENOMEM, NULL);
    p->holders = holders;
    int code = runner_run(p, NULL);
    free(holders);
    return code;
}

static int lock_run(struct options *o, int argc, char **argv, enum lock_kind kind)
{
    struct run_plan p = {.o = o,
                         .kind = kind,
                         .wait_ms = LOCK_FOR_EVER,
                         .grace_ms = LOCK_GRACE_DEFAULT,
                         .conflict_code = EXIT_TIMEOUT,
                         .health = HEALTH_PLAN_INIT};
    int id, code = EXIT_USAGE;
    bool taken = true, tries = false, waits = false;
    while (taken && (id = options_next(o, argc, argv)) > 0) {
        taken = lock_take_flag(&p, id);
        tries |= id == (kind == KIND_LEASE ? 't' : 'n');
        waits |= id == 'w';
    }
    if (taken)
        code = id == OPTIONS_STOP ? o->status : lock_take_args(&p, tries, waits);
    if (taken && id != OPTIONS_STOP && code == EXIT_OK)
        code = kind == KIND_LEASE ? lock_run_lease(&p) : runner_run(&p, NULL);
    run_flags_free(&p);
    return code;
}

/* ---- lock ------------------------------------------------------------------------------------ */

static int run_lock(struct options *o, int argc, char **argv)
{
    return lock_run(o, argc, argv, KIND_MUTEX);
}

static const struct flag lock_flags[] = {
    {'n', "no-wait", NULL, "only if it is free now"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_lock = {
    .name = "lock",
    .args = "PATH [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command while holding a lock",
    .text =
        "The command gets its arguments as they are (no shell), this process's streams, and\n"
        "CLAVE_PATH, CLAVE_NODE, CLAVE_TOKEN, CLAVE_SESSION, CLAVE_OWNER, CLAVE_DEADLINE and\n"
        "CLAVE_CONNECT in its environment. It is ended before another participant can hold the\n"
        "lock, and none of its processes outlives this one, except those that cannot be killed:\n"
        "another user's (sudo), or one stuck in the kernel. For these there is --watchdog.\n"
        "\n"
        "Exit codes: the command's own; 128+N when signal N ended it; 0 also when --once finds\n"
        "it already done; 69 no server reached; 73 the parent cannot be watched; 74 the file of\n"
        "--resume is not fit for it; 75 not acquired in time; 76 the lock was lost, or the\n"
        "process of --with-parent has ended; 77 not authorised; 79 given up to end a deadlock,\n"
        "or held by the clave lock it runs under; 80 unhealthy (--health); 81 the last holder\n"
        "could not be fenced; 82 the watchdog cannot be used; 126 command not executable; 127\n"
        "command not found.\n",
    .flags = lock_flags,
    .more_flags = run_flags_of,
    .shares = RUN_LOCK,
    .max_args = 1,
    .runs_command = true,
    .run = run_lock,
};

/* ---- rwlock ---------------------------------------------------------------------------------- */

static const struct flag rwlock_flags[] = {
    {'r', "read", NULL, "a read lock, shared with other readers"},
    {'W', "write", NULL, "a write lock, exclusive [the default]"},
    {'n', "no-wait", NULL, "only if it is free now"},
    {0, NULL, NULL, NULL},
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
    .more_flags = run_flags_of,
    .shares = RUN_RWLOCK,
    .max_args = 1,
    .runs_command = true,
    .run = run_rwlock,
};

/* ---- semaphore ------------------------------------------------------------------------------- */

static const struct flag semaphore_flags[] = {
    {'n', "number", "N", "how many may hold it at once, the same for every participant"},
    {LOCK_LIMIT_NODE, "limit-node", "PATH",
     "take the number from this node; -n is its initial value"},
    {'t', "no-wait", NULL, "only if there is room now"},
    {0, NULL, NULL, NULL},
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
    .more_flags = run_flags_of,
    .shares = RUN_SEMAPHORE,
    .max_args = 1,
    .runs_command = true,
    .run = run_semaphore,
};
