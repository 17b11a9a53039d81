#include "cmd/lock.h"

#include <string.h>

#include "cmd/link.h"
#include "cmd/tell.h"

enum { LOCK_GRACE = FLAG_LONG, LOCK_ON_LOST, LOCK_MAX_HOLD, LOCK_NAME, LOCK_ACL };

#define YEAR_MS (INT64_C(366) * 24 * 3600 * 1000)

static bool take_on_lost(struct options *o, enum on_lost *out)
{
    static const char *const words[] = {
        [ON_LOST_TERM] = "term", [ON_LOST_KILL] = "kill", [ON_LOST_IGNORE] = "ignore"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(o->value, words[i]) == 0) {
            *out = (enum on_lost)i;
            return true;
        }
    tell_usage(o, "--on-lost '%s': it is term, kill or ignore", o->value);
    return false;
}

static bool take_code(struct options *o, int *out)
{
    int64_t n;
    if (!options_number(o, "conflict-code", 0, 255, &n))
        return false;
    *out = (int)n;
    return true;
}

static bool take_acl(struct options *o, struct acl_list *out)
{
    const char *fault;
    acl_fini(out);
    *out = (struct acl_list){0};
    if (acl_parse(o->value, out, &fault))
        return true;
    tell_usage(o, "--acl '%s': %s", o->value, fault);
    return false;
}

static bool take_flag(struct options *o, struct lock_plan *p, int id)
{
    switch (id) {
    case 'n':
        p->wait_ms = LOCK_TRY;
        return true;
    case 'w':
        return options_duration(o, "wait", 0, YEAR_MS, &p->wait_ms);
    case 'E':
        return take_code(o, &p->conflict_code);
    case 'q':
        p->quiet = true;
        return true;
    case LOCK_GRACE:
        return options_duration(o, "grace", 0, YEAR_MS, &p->grace_ms);
    case LOCK_ON_LOST:
        return take_on_lost(o, &p->on_lost);
    case LOCK_MAX_HOLD:
        return options_duration(o, "max-hold", 1, YEAR_MS, &p->max_hold_ms);
    case LOCK_NAME:
        p->name = o->value;
        return true;
    case LOCK_ACL:
        return take_acl(o, &p->acl);
    default:
        return false;
    }
}

/* EXIT_OK, or the exit code. */
static int check(struct options *o, struct lock_plan *p)
{
    if (!options_args(o, 1, -1))
        return EXIT_USAGE;
    if (o->argc < 2)
        return tell_usage(o, "the command is missing: clave lock %s -- COMMAND...", o->argv[0]);
    if (!acl_has_identity(o, &p->acl))
        return EXIT_PATH;
    p->path = o->argv[0];
    p->argv = o->argv + 1;
    p->connect = link_connect(o);
    if (!p->connect)
        return EXIT_USAGE;
    return link_path_ok(o, p->path) ? EXIT_OK : EXIT_PATH;
}

static int run_lock(struct options *o, int argc, char **argv)
{
    struct lock_plan p = {.o = o,
                          .wait_ms = LOCK_FOR_EVER,
                          .grace_ms = LOCK_GRACE_DEFAULT,
                          .conflict_code = EXIT_TIMEOUT};
    int id, code = EXIT_USAGE;
    while ((id = options_next(o, argc, argv)) > 0)
        if (!take_flag(o, &p, id))
            goto end;
    if (id == OPTIONS_STOP) {
        code = o->status;
        goto end;
    }
    code = check(o, &p);
    if (code == EXIT_OK)
        code = wrapper_run(&p);
end:
    acl_fini(&p.acl);
    return code;
}

static const struct flag flags[] = {
    {'n', "no-wait", NULL, "only if it is free now"},
    {'w', "wait", "DURATION", "give up after so long [wait for ever]"},
    {'E', "conflict-code", "N", "the exit code when it is not acquired in time [75]"},
    {LOCK_GRACE, "grace", "DURATION", "from SIGTERM to SIGKILL [an eighth of the session timeout]"},
    {LOCK_ON_LOST, "on-lost", "WHAT", "to the command: term, kill or ignore [term]"},
    {LOCK_MAX_HOLD, "max-hold", "DURATION", "end the command so that the lock is free after that"},
    {LOCK_NAME, "name", "TEXT", "what 'clave locks' shows for this participant"},
    {LOCK_ACL, "acl", "ACL", "of the lock's node: see 'clave create' [open]"},
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
