#include "cmd/lock.h"

#include "cmd/tell.h"

static int run_lock(struct options *o, int argc, char **argv)
{
    struct lock_plan p = {.o = o,
                          .wait_ms = LOCK_FOR_EVER,
                          .grace_ms = LOCK_GRACE_DEFAULT,
                          .conflict_code = EXIT_TIMEOUT};
    int id, code = EXIT_USAGE;
    while ((id = options_next(o, argc, argv)) > 0)
        if (id == 'n')
            p.wait_ms = LOCK_TRY;
        else if (!plan_take_flag(&p, id, "max-hold"))
            goto end;
    if (id == OPTIONS_STOP) {
        code = o->status;
        goto end;
    }
    code = plan_take_args(&p);
    if (code == EXIT_OK)
        code = wrapper_run(&p, NULL);
end:
    acl_fini(&p.acl);
    return code;
}

static const struct flag flags[] = {
    {'n', "no-wait", NULL, "only if it is free now"},
    {'w', "wait", "DURATION", "give up after so long [wait for ever]"},
    {'E', "conflict-code", "N", "the exit code when it is not acquired in time [75]"},
    {PLAN_GRACE, "grace", "DURATION", "from SIGTERM to SIGKILL [an eighth of the session timeout]"},
    {PLAN_ON_LOST, "on-lost", "WHAT", "to the command: term, kill or ignore [term]"},
    {PLAN_MAX_HOLD, "max-hold", "DURATION", "end the command so that the lock is free after that"},
    {PLAN_NAME, "name", "TEXT", "what 'clave locks' shows for this participant"},
    {PLAN_ACL, "acl", "ACL", "of the lock's node: see 'clave create' [open]"},
    {'q', "quiet", NULL, "say nothing of waiting, and of not having acquired it"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_lock = {
    .name = "lock",
    .args = "PATH [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command while holding a lock",
    .text =
        "The command gets its arguments as they are (no shell), this process's streams, and\n"
        "CLAVE_PATH, CLAVE_NODE, CLAVE_TOKEN, CLAVE_SESSION, CLAVE_DEADLINE and CLAVE_CONNECT\n"
        "in its environment. It is ended before somebody else can hold the lock, and nothing\n"
        "of it survives this process.\n"
        "\n"
        "Exit codes: the command's own; 128+N when signal N ended it; 69 no server reached;\n"
        "75 not acquired in time; 76 the lock was lost; 77 not authorised; 126, 127 the command\n"
        "cannot be run or found.\n",
    .flags = flags,
    .max_args = 1,
    .run = run_lock,
};
