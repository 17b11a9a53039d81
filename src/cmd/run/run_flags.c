/* run_flags.c - the table of the flags that lock, rwlock, semaphore and elect share (member and
 * register also have those of health), and how each flag is parsed into the plan. The verbs call
 * this and add flags of their own. The runner can carry out every plan that is accepted here. */
#include "cmd/run/run_flags.h"

#include <stdio.h>
#include <string.h>

#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/shell_command.h"
#include "cmd/run/in_place.h"
#include "cmd/run/nested_lock.h"

/* ---- the table ------------------------------------------------------------------------------- */

enum {
    EXCLUSIVE = RUN_LOCK | RUN_RWLOCK,
    LOCKS = EXCLUSIVE | RUN_SEMAPHORE,
    ALL = LOCKS | RUN_ELECT,
    HOLDERS = ALL | RUN_SLOT,
    NODES = RUN_MEMBER | RUN_REGISTER,
    HEALTH = HOLDERS | NODES,
};

static const struct {
    struct flag flag;
    unsigned of; /* the verbs that have this flag */
} table[] = {
    {{RUN_FLAG_ONCE, "once", "KEY", "only if no run of this KEY has succeeded yet"}, EXCLUSIVE},
    {{RUN_FLAG_FOR, "for", "DURATION", "--once: how long a run counts, from its start [forever]"},
     EXCLUSIVE},
    {{RUN_FLAG_AT_MOST_ONCE, "at-most-once", NULL, "--once: a run that failed or died counts too"},
     EXCLUSIVE},
    {{RUN_FLAG_DONE_CODE, "done-code", "N", "--once: the exit code when already done [0]"},
     EXCLUSIVE},
    {{'w', "wait", "DURATION", "give up after this long [wait forever]"}, ALL},
    {{'E', "conflict-code", "N", "the exit code after waiting in vain [75]"}, ALL},
    {{RUN_FLAG_GRACE, "grace", "DURATION",
      "from SIGTERM to SIGKILL [an eighth of the session timeout]"},
     ALL},
    {{RUN_FLAG_ON_LOST, "on-lost", "WHAT",
      "if it is lost: term, kill or ignore the command [term]"},
     ALL},
    {{RUN_FLAG_MAX_HOLD, "max-hold", "DURATION",
      "end the command after this long: SIGTERM, then SIGKILL"},
     LOCKS},
    {{RUN_FLAG_MAX_HOLD, "max-term", "DURATION",
      "end the command after this long: SIGTERM, then SIGKILL"},
     RUN_ELECT},
    {{RUN_FLAG_SAME_USER, "require-killable", NULL,
      "keep sudo and the like from becoming a user clave cannot kill"},
     ALL},
    {{RUN_FLAG_WITH_PARENT, "with-parent", "[=PID]",
      "end when PID ends [the process that started this one]"},
     ALL},
    {{RUN_FLAG_REVOCABLE, "revocable", NULL,
      "end the command when another participant asks for the lock"},
     LOCKS},
    {{RUN_FLAG_LOCK_DELAY, "lock-delay", "DURATION",
      "wait this long if the previous holder was lost"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_FENCE, "fence", "SHELL-COMMAND",
      "run this first if the last holder did not end properly"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_FENCE_TIMEOUT, "fence-timeout", "DURATION",
      "--fence: it has failed after this long [1m]"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_FENCE_FAILS, "fence-fails", "WHAT",
      "--fence: when it fails: wait (try again), pass or exit [wait]"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_FENCE_FOREIGN, "fence-foreign", "WHEN",
      "--fence: holders that leave no mark: always or never [never]"},
     EXCLUSIVE},
    {{RUN_FLAG_MIN_HOLD, "min-hold", "DURATION", "keep the lock for at least this long"}, LOCKS},
    {{RUN_FLAG_RESUME, "resume", "FILE",
      "go on with the lock left in FILE; at SIGUSR2 leave it there"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_IN_PLACE, "in-place", NULL, "at SIGUSR2 a newer clave goes on; the command runs on"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_NAME, "name", "TEXT", "what 'clave locks' shows for this participant"}, LOCKS},
    {{RUN_FLAG_ACL, "acl", "ACL", "the access list of its node: see 'clave create' [open]"}, ALL},
    {{RUN_FLAG_DETECT, "detect-deadlock", "[=ROOT]",
      "give up to end a deadlock of locks below ROOT [PATH's parent]"},
     LOCKS},
    {{RUN_FLAG_HEALTH, "health", "SHELL-COMMAND",
      "stand only while this succeeds; end the command when it fails"},
     HOLDERS},
    {{RUN_FLAG_HEALTH, "health", "SHELL-COMMAND", "be there only while this succeeds"}, NODES},
    {{RUN_FLAG_HEALTH_EVERY, "health-every", "DURATION", "--health: from check to check [5s]"},
     HEALTH},
    {{RUN_FLAG_HEALTH_TIMEOUT, "health-timeout", "DURATION",
      "--health: how long a check may take [as --health-every]"},
     HEALTH},
    {{RUN_FLAG_HEALTH_FAILS, "health-fails", "N", "--health: how many failures in a row count [3]"},
     HEALTH},
    {{RUN_FLAG_HEALTH_GRACE, "health-grace", "DURATION",
      "--health: how long after its start the command may fail [30s]"},
     HOLDERS},
    {{RUN_FLAG_HEALTH_GRACE, "health-grace", "DURATION",
      "--on-unhealthy end: not before this long after its start [30s]"},
     NODES},
    {{RUN_FLAG_ON_UNHEALTHY, "on-unhealthy", "WHAT",
      "remove: no node meanwhile; end: the command, too [remove]"},
     RUN_MEMBER},
    {{RUN_FLAG_ON_UNHEALTHY, "on-unhealthy", "WHAT",
      "remove: no node meanwhile; disable; end the command [remove]"},
     RUN_REGISTER},
    {{RUN_FLAG_WATCHDOG, "watchdog", "DEVICE",
      "have this reset the machine if the command cannot be ended"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_WATCHDOG_MODE, "watchdog-mode", "WHAT",
      "--watchdog: required, try (go on without it) or off [required]"},
     EXCLUSIVE | RUN_ELECT},
    {{RUN_FLAG_NOTIFY, "notify", "WHEN",
      "for systemd: ready when held, waiting, command, or off [held]"},
     HOLDERS},
    {{RUN_FLAG_READY, "ready", NULL, "the lock counts as taken when the command says READY=1"},
     HOLDERS},
    {{RUN_FLAG_READY_TIMEOUT, "ready-timeout", "DURATION",
      "--ready: how long the command may take for that [90s]"},
     HOLDERS},
    {{RUN_FLAG_WATCHDOG_SEC, "watchdog-sec", "DURATION",
      "end a ready command unless it says WATCHDOG=1 this often"},
     HOLDERS},
    {{'q', "quiet", NULL, "do not report the wait, or that it was in vain"}, ALL},
};

const struct flag *run_flags_of(const struct verb *v, size_t i)
{
    for (size_t row = 0; row < sizeof table / sizeof *table; row++)
        if ((table[row].of & v->shares) && i-- == 0)
            return &table[row].flag;
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool run_flags_take_on_lost(struct options *o, enum on_lost *out)
{
    static const char *const words[] = {
        [ON_LOST_TERM] = "term", [ON_LOST_KILL] = "kill", [ON_LOST_IGNORE] = "ignore", NULL};
    int n;
    if (!options_word(o, "on-lost", words, &n))
        return false;
    *out = (enum on_lost)n;
    return true;
}

bool run_flags_take_notify(struct options *o, enum sd_notify_when *out)
{
    static const char *const words[] = {[SD_NOTIFY_HELD] = "held",
                                        [SD_NOTIFY_WAITING] = "waiting",
                                        [SD_NOTIFY_COMMAND] = "command",
                                        [SD_NOTIFY_OFF] = "off",
                                        NULL};
    int n;
    if (!options_word(o, "notify", words, &n))
        return false;
    *out = (enum sd_notify_when)n;
    return true;
}

static bool run_flags_take_watchdog_mode(struct options *o, struct watchdog_plan *out)
{
    static const char *const words[] = {[WATCHDOG_REQUIRED] = "required",
                                        [WATCHDOG_TRY] = "try",
                                        [WATCHDOG_NOT_USED] = "off",
                                        NULL};
    int n;
    out->tuned = true;
    if (!options_word(o, "watchdog-mode", words, &n))
        return false;
    out->mode = n;
    return true;
}

static bool run_flags_take_code(struct options *o, int *out)
{
    int64_t n;
    if (!options_number(o, "conflict-code", 0, 255, &n))
        return false;
    *out = (int)n;
    return true;
}

static bool run_flags_take_acl(struct options *o, struct acl_list *out)
{
    const char *fault;
    acl_fini(out);
    *out = (struct acl_list){0};
    if (acl_parse(o->value, out, &fault))
        return true;
    diag_usage(o, "--acl '%s': %s", o->value, fault);
    return false;
}

/* Keeps the number that was given (0: none) until run_flags_take_args opens the watch. */
static bool run_flags_take_parent(struct run_plan *p)
{
    int64_t pid = 0;
    p->with_parent = true;
    if (p->o->value && !options_number(p->o, "with-parent", 2, INT32_MAX, &pid))
        return false;
    p->parent = (struct parent_watch){.pid = (pid_t)pid, .fd = -1};
    return true;
}

bool run_flags_take(struct run_plan *p, int id)
{
    struct options *o = p->o;
    switch (id) {
    case 'w':
        return options_duration(o, "wait", 0, RUN_FLAG_YEAR_MS, &p->wait_ms);
    case 'E':
        return run_flags_take_code(o, &p->conflict_code);
    case 'q':
        p->quiet = true;
        return true;
    case RUN_FLAG_GRACE:
        return options_duration(o, "grace", 0, RUN_FLAG_YEAR_MS, &p->grace_ms);
    case RUN_FLAG_ON_LOST:
        return run_flags_take_on_lost(o, &p->on_lost);
    case RUN_FLAG_MAX_HOLD:
        return options_duration(o, p->elects ? "max-term" : "max-hold", 1, RUN_FLAG_YEAR_MS,
                                &p->max_hold_ms);
    case RUN_FLAG_NAME:
        p->name = o->value;
        return true;
    case RUN_FLAG_RESUME:
        p->resume = o->value;
        return true;
    case RUN_FLAG_IN_PLACE:
        p->replaceable = true;
        return true;
    case RUN_FLAG_ACL:
        return run_flags_take_acl(o, &p->acl);
    case RUN_FLAG_REVOCABLE:
        p->revocable = true;
        return true;
    case RUN_FLAG_DETECT:
        p->detects = true;
        p->root = o->value;
        return true;
    case RUN_FLAG_SAME_USER:
        p->command.same_user = true;
        return true;
    case RUN_FLAG_WITH_PARENT:
        return run_flags_take_parent(p);
    case RUN_FLAG_NOTIFY:
        return run_flags_take_notify(o, &p->notify);
    case RUN_FLAG_WATCHDOG:
        p->watchdog.device = o->value;
        return true;
    case RUN_FLAG_WATCHDOG_MODE:
        return run_flags_take_watchdog_mode(o, &p->watchdog);
    case RUN_FLAG_HEALTH:
    case RUN_FLAG_HEALTH_EVERY:
    case RUN_FLAG_HEALTH_TIMEOUT:
    case RUN_FLAG_HEALTH_FAILS:
    case RUN_FLAG_HEALTH_GRACE:
        return health_plan_take_flag(&p->health, o, id);
    case RUN_FLAG_READY:
    case RUN_FLAG_READY_TIMEOUT:
    case RUN_FLAG_WATCHDOG_SEC:
        return command_notify_take_flag(&p->command_notify, o, id);
    default:
        return run_stages_take_flag(p, id);
    }
}

/* A participant that waits watches the node before its own, and needs permission to read that
 * node. */
void run_flags_warn_of_acl(const struct run_plan *p)
{
    if (!p->quiet && !acl_lets_all_read(&p->acl))
        diag(p->o,
             "%s: with this --acl only a participant that may read the node can queue after it: "
             "others exit with code 77, and Curator's fail",
             p->path);
}

/* Explains a missing command. flock(1)'s -c takes a command, while ours takes the servers, so users
 * of flock may have mixed them up. */
static int run_flags_no_command(struct options *o)
{
    char path[HINT_CAP], command[HINT_CAP], taken[DIAG_HINT_CAP];
    hint_word(o->argv[0], path);
    bool no_hosts = o->flags.connect && strpbrk(o->flags.connect, " |&;<>");
    if (*o->argv[0] != '/' && o->path_flag)
        return diag_usage(o, "the path is missing: clave %s %s%s", o->verb->name, o->verb->args,
                          diag_path_hint(o, taken));
    if (!o->flags.connect || (o->flags.connect_after == 0 && !no_hosts))
        return diag_usage(o, "no command given: clave %s %s -- COMMAND...", o->verb->name, path);
    return diag_usage(
        o, "no command given, and -c names the servers; with a shell: clave %s %s -- sh -c %s",
        o->verb->name, path, hint_word(o->flags.connect, command));
}

/* These flags leave a record or a mark beside the lock's node, which says who held the lock last.
 * After a hand-over it would name the process that has handed the lock over. */
static int run_flags_check_resume(const struct run_plan *p)
{
    const struct run_stages_plan *s = &p->stages;
    if (p->resume && !*p->resume)
        return diag_usage(p->o, "--resume is empty, as it is with a variable that is not set: give "
                                "the FILE, or leave the flag out");
    if (p->resume && (s->once || s->marks))
        return diag_usage(p->o, "--resume cannot be used with --once, --lock-delay or --fence");
    if (p->replaceable && (s->once || s->marks))
        return diag_usage(p->o, "--in-place cannot be used with --once, --lock-delay or --fence");
    if (p->replaceable && p->resume)
        return diag_usage(p->o, "--in-place and --resume both say what SIGUSR2 does: give one");
    return EXIT_OK;
}

/* Opening a watchdog starts it, so here it is only looked at. */
static int run_flags_check_watchdog(struct run_plan *p)
{
    struct watchdog_plan *w = &p->watchdog;
    char text[WATCHDOG_TEXT_CAP];
    if (w->tuned && !w->device)
        return diag_usage(p->o, "--watchdog-mode needs --watchdog DEVICE");
    if (w->mode == WATCHDOG_NOT_USED)
        w->device = NULL;
    if (!w->device)
        return EXIT_OK;
    if (p->on_lost == ON_LOST_IGNORE)
        return diag_usage(p->o, "--watchdog resets the machine of a command that does not end, and "
                                "--on-lost ignore lets it run on");
    struct watchdog_trouble t = watchdog_device_look(w->device);
    if (t.fault == WATCHDOG_FAULT_NONE || w->mode == WATCHDOG_TRY)
        return EXIT_OK;
    return diag_end(p->o, NULL, EXIT_WATCHDOG, "--watchdog %s: %s", w->device,
                    watchdog_trouble_text(&t, 0, text));
}

void run_flags_free(struct run_plan *p)
{
    in_place_free(p);
    parent_watch_close(&p->parent);
    acl_fini(&p->acl);
}

int run_flags_take_args(struct run_plan *p)
{
    struct options *o = p->o;
    if (!options_args(o, 1, -1))
        return EXIT_USAGE;
    if (o->argc < 2)
        return run_flags_no_command(o);
    size_t digits = strspn(o->argv[0], "0123456789");
    if (!p->elects && digits > 0 && o->argv[0][digits] == '\0')
        return diag_usage(o, "%s is not a path; N may hold a lock with: clave semaphore -n N PATH",
                          o->argv[0]);
    if (!acl_has_identity(o, &p->acl))
        return EXIT_PATH;
    p->parent_acl = p->acl.of_parent ? &p->acl : NULL;
    p->path = p->holders = o->argv[0];
    run_flags_warn_of_acl(p);
    if (p->root && !connect_path_ok(o, p->root))
        return EXIT_PATH;
    if (!p->elects)
        nested_make_owner(p->owner);
    p->command.argv = o->argv + 1;
    int code = run_stages_check(p);
    if (code == EXIT_OK)
        code = run_flags_check_resume(p);
    if (code == EXIT_OK)
        code = health_plan_check(&p->health, o, p->on_lost);
    if (code == EXIT_OK)
        code = command_notify_check(p);
    if (code == EXIT_OK)
        code = run_flags_check_watchdog(p);
    if (code == EXIT_OK && p->with_parent && o->inherited.in_place == IN_PLACE_NOT)
        code = parent_watch_open(&p->parent, o, p->path, p->parent.pid);
    if (code == EXIT_OK && o->inherited.in_place >= 0)
        code = in_place_take(p);
    if (code != EXIT_OK)
        return code;
    p->connect = connect_dial(o);
    if (!p->connect)
        return EXIT_USAGE;
    return connect_path_ok(o, p->path) ? EXIT_OK : EXIT_PATH;
}
