/* elect.c - `clave elect`: the flags that only elections have, and --forever, which re-executes the
 * program after each term. run/run_flags.h has the flags shared with `clave lock`; run/runner.h
 * does the rest. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/deadline.h"
#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/runner.h"

enum {
    ELECT_VALUE = RUN_FLAG_OWN,
    ELECT_STANDBY,
    ELECT_ON_ELECTED,
    ELECT_ON_DEPOSED,
    ELECT_FOREVER,
    ELECT_PRIORITY,
    ELECT_SPREAD,
    ELECT_PREEMPT,
};
enum { ID_CAP = 320, AGAIN_MS = 1000, MEEK_MS = 10000 };

/* The name that others see if --id is not given. */
static const char *elect_default_id(char *out)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    snprintf(out, ID_CAP, "%s:%d", host, (int)getpid());
    return out;
}

static bool elect_take_priority(struct run_plan *p)
{
    int64_t n;
    if (!options_number(p->o, "priority", 0, INT32_MAX, &n))
        return false;
    p->priority = (int32_t)n;
    return true;
}

static bool elect_take_flag(struct run_plan *p, int id, bool *forever)
{
    const char *value = p->o->value;
    switch (id) {
    case 'n':
        p->wait_ms = LOCK_TRY;
        return true;
    case ELECT_VALUE:
        p->value = value;
        return true;
    case ELECT_STANDBY:
        p->standby = value;
        return true;
    case ELECT_ON_ELECTED:
        p->on_elected = value;
        return true;
    case ELECT_ON_DEPOSED:
        p->on_deposed = value;
        return true;
    case ELECT_FOREVER:
        *forever = true;
        return true;
    case ELECT_PRIORITY:
        return elect_take_priority(p);
    case ELECT_SPREAD:
        p->spread = true;
        return true;
    case ELECT_PREEMPT:
        p->preempt = true;
        return true;
    default:
        return run_flags_take(p, id);
    }
}

/* Waits until `then`, or until the parent ends. Hooks that end in the meantime must not remain
 * zombies: the kernel discards children while SIGCHLD is ignored, and those that have ended before
 * are waited for. */
static void elect_pause(const struct run_plan *p, int64_t then)
{
    const struct parent_watch *parent = &p->parent;
    const struct sigaction discard = {.sa_handler = SIG_IGN};
    struct sigaction before, usr2;
    struct pollfd end = {.fd = parent_watch_fd(parent), .events = POLLIN};
    int64_t left, pause = parent_watch_pause_ms(parent);
    sigaction(SIGCHLD, &discard, &before);
    if (p->replaceable) /* the next term is begun by the program that is there by then */
        sigaction(SIGUSR2, &discard, &usr2);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    while ((left = deadline_left(then, clave_now())) > 0 && !parent_watch_has_ended(parent))
        poll(&end, 1, (int)(pause > 0 && pause < left ? pause : left));
    sigaction(SIGCHLD, &before, NULL);
    if (p->replaceable)
        sigaction(SIGUSR2, &usr2, NULL);
}

/* Starts the next term, at the time `then`. The guardian must be forked by a process without
 * threads, which this one no longer is, so it executes itself again. */
static int elect_stand_again(const struct run_plan *p, int64_t then)
{
    const struct options *o = p->o;
    char text[PARENT_WATCH_TEXT_CAP];
    elect_pause(p, then);
    if (parent_watch_has_ended(&p->parent))
        return diag_end(o, p->path, EXIT_LOST, "%s", parent_watch_text(&p->parent, text));
    char **words = inheritance_words();
    inheritance_restore(&o->inherited);
    if (words && parent_watch_pass_on(&p->parent))
        execv("/proc/self/exe", words);
    return diag_end(o, NULL, EXIT_INTERNAL, "cannot start again: %s", strerror(errno));
}

/* Whether the reason for this exit code may be gone in another term. */
static bool elect_worth_another(int code)
{
    return code != EXIT_UNREACHABLE && code != EXIT_NOAUTH && code != EXIT_INTERNAL &&
           code != EXIT_PATH && code != EXIT_NOEXEC && code != EXIT_NOTFOUND;
}

/* false, after a message: the flags contradict each other. */
static bool elect_check_flags(struct run_plan *p, bool forever, bool tries, bool waits)
{
    if (tries && waits)
        diag_usage(p->o, "--no-wait and --wait contradict each other");
    else if (forever && p->wait_ms != LOCK_FOR_EVER)
        diag_usage(p->o, "--forever contradicts --wait and --no-wait");
    else if (p->spread && p->priority > 0)
        diag_usage(p->o, "--spread sets the priority: it excludes --priority");
    else if (p->preempt && !p->spread && p->priority == 0)
        diag_usage(p->o, "--preempt needs --priority or --spread");
    else
        return true;
    return false;
}

/* When to start the next term. Not at once, since a command that fails immediately would make us
 * spin. A preempting candidate that was made to resign waits longer, since it would lead again at
 * once. */
static int64_t elect_again_at(const struct run_plan *p, int64_t began, int code)
{
    if (code == EXIT_LOST && p->preempt)
        return clave_now() + (p->o->session_timeout_ms > 0 ? p->o->session_timeout_ms : MEEK_MS);
    return began + AGAIN_MS;
}

static int run_elect(struct options *o, int argc, char **argv)
{
    char own_id[ID_CAP];
    struct run_plan p = {.o = o,
                         .elects = true,
                         .name = elect_default_id(own_id),
                         .wait_ms = LOCK_FOR_EVER,
                         .grace_ms = LOCK_GRACE_DEFAULT,
                         .conflict_code = EXIT_TIMEOUT,
                         .health = HEALTH_PLAN_INIT};
    bool forever = false, tries = false, waits = false, told_to_end = false;
    int id, code = EXIT_USAGE;
    int64_t began = clave_now();
    while ((id = options_next(o, argc, argv)) > 0) {
        if (!elect_take_flag(&p, id, &forever))
            goto end;
        tries |= id == 'n';
        waits |= id == 'w';
    }
    if (id == OPTIONS_STOP) {
        code = o->status;
        goto end;
    }
    if (!elect_check_flags(&p, forever, tries, waits))
        goto end;
    p.again = forever;
    code = run_flags_take_args(&p);
    if (code == EXIT_OK)
        code = runner_run(&p, &told_to_end);
    else
        forever = false;
    if (forever && !told_to_end && elect_worth_another(code))
        code = elect_stand_again(&p, elect_again_at(&p, began, code));
end:
    run_flags_free(&p);
    return code;
}

static const struct flag flags[] = {
    {RUN_FLAG_NAME, "id", "ID", "what others see of this candidate [host:pid]"},
    {ELECT_VALUE, "value", "TEXT", "publish this while leading: 'clave leader' shows it"},
    {ELECT_STANDBY, "standby", "SHELL-COMMAND", "run this when only the leader is ahead"},
    {ELECT_ON_ELECTED, "on-elected", "SHELL-COMMAND",
     "run this when elected, without waiting for it"},
    {ELECT_ON_DEPOSED, "on-deposed", "SHELL-COMMAND", "run this when the command has ended"},
    {ELECT_FOREVER, "forever", NULL, "become a candidate again when the command has ended"},
    {ELECT_PRIORITY, "priority", "N",
     "the candidate with the highest one leads next [0: no priority]"},
    {ELECT_SPREAD, "spread", NULL, "a priority derived from PATH and id, to spread leaders"},
    {ELECT_PREEMPT, "preempt", NULL, "ask a leader of a lower priority to resign"},
    {'n', "no-wait", NULL, "only if nobody leads now"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_elect = {
    .name = "elect",
    .args = "PATH [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command while leading",
    .text =
        "Like 'clave lock', for an election: the candidates of a Curator LeaderLatch are in the\n"
        "same queue. The command is ended before another can lead, and when the leader is\n"
        "asked to resign ('clave resign', 'clave transfer'). The shell commands of --standby,\n"
        "--on-elected and --on-deposed get CLAVE_EVENT; clave neither waits for nor ends them.\n"
        "\n"
        "Exit codes: the command's own; 128+N when signal N ended it; 69 no server reached;\n"
        "73 the parent cannot be watched; 74 the file of --resume is not fit for it; 75 not\n"
        "elected in time; 76 the leadership was lost, or given up on request, or the process of\n"
        "--with-parent has ended; 77 not authorised; 80 unhealthy (--health); 81 the last\n"
        "leader could not be fenced; 82 the watchdog cannot be used; 126 command not\n"
        "executable; 127 command not found.\n",
    .flags = flags,
    .more_flags = run_flags_of,
    .shares = RUN_ELECT,
    .elects = true,
    .max_args = 1,
    .runs_command = true,
    .run = run_elect,
};
