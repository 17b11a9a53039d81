/* slot.c - `clave slot`: parses the flags and finds out which part is meant (slot.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant_text.h"
#include "cmd/cli/suggestion.h"
#include "cmd/run/run_flags.h"
#include "cmd/verbs/lock/slot.h"
#include "recipe/slots/slot_node.h"

enum { SLOT_ID = FLAG_LONG, SLOT_BY, SLOT_REASON, SLOT_TOKEN, SLOT_KEEP, SLOT_WAITERS, SLOT_ACL };

/* Which flags are given, -w and -n as one. */
enum { BIT_WAIT = 1, BIT_ID = 2, BIT_BY = 4, BIT_REASON = 8, BIT_TOKEN = 16, BIT_KEEP = 32 };
enum { BIT_WAITERS = 64, BIT_ACL = 128, BIT_QUIET = 256 };

struct slot_part {
    const char *name;
    int least, most; /* arguments after its name; -1: any number */
    const char *args;
    unsigned flags; /* that it takes */
    int (*run)(struct slot_command *s);
};

static const struct slot_part parts[] = {
    {"limit", 1, 2, "PATH [N]", BIT_ACL, slot_limit},
    {"take", 1, 1, "PATH", BIT_WAIT | BIT_ID | BIT_BY | BIT_REASON | BIT_ACL | BIT_QUIET,
     slot_take},
    {"give", 1, 1, "PATH", BIT_ID | BIT_TOKEN | BIT_QUIET, slot_give},
    {"list", 1, 1, "PATH", BIT_WAITERS, slot_list},
    {"break", 2, 2, "PATH ID", BIT_BY | BIT_REASON | BIT_TOKEN, slot_break},
    {"run", 2, -1, "PATH -- COMMAND...",
     BIT_WAIT | BIT_ID | BIT_BY | BIT_REASON | BIT_KEEP | BIT_ACL | BIT_QUIET, slot_run},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* ---- flags ---------------------------------------------------------------------------------- */

static bool slot_take_keep(struct slot_command *s)
{
    static const char *const words[] = {
        [SLOT_KEEP_NEVER] = "never", [SLOT_KEEP_FAILED] = "failed", [SLOT_KEEP_ALWAYS] = "always"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(s->o->value, words[i]) == 0) {
            s->plan.keep = (enum slot_keep)i;
            return true;
        }
    }
    diag_usage(s->o, "--keep '%s': expected never, failed or always", s->o->value);
    return false;
}

static bool slot_take_acl(struct slot_command *s)
{
    const char *fault = "a slot's nodes have no parent to copy it from: give the list";
    acl_fini(&s->acl);
    s->acl = (struct acl_list){0};
    if (acl_parse(s->o->value, &s->acl, &fault) && !s->acl.of_parent)
        return true;
    diag_usage(s->o, "--acl '%s': %s", s->o->value, fault);
    return false;
}

/* false after a message. */
static bool slot_take_flag(struct slot_command *s, int id, unsigned *given)
{
    static const unsigned bits[] = {BIT_ID,   BIT_BY,      BIT_REASON, BIT_TOKEN,
                                    BIT_KEEP, BIT_WAITERS, BIT_ACL};
    struct options *o = s->o;
    *given |= id >= SLOT_ID ? bits[id - SLOT_ID] : id == 'q' ? BIT_QUIET : BIT_WAIT;
    switch (id) {
    case 'w':
        return options_duration(o, "wait", 0, RUN_FLAG_YEAR_MS, &s->plan.wait_ms);
    case 'n':
        s->plan.wait_ms = LOCK_TRY;
        return true;
    case 'q':
        s->quiet = true;
        return true;
    case SLOT_ID:
        s->plan.as.id = o->value;
        return true;
    case SLOT_BY:
        s->plan.as.by = o->value;
        return true;
    case SLOT_REASON:
        s->plan.as.reason = o->value;
        return true;
    case SLOT_TOKEN:
        return options_number(o, "token", 1, INT64_MAX, &s->token);
    case SLOT_KEEP:
        return slot_take_keep(s);
    case SLOT_WAITERS:
        s->waiters = true;
        return true;
    default:
        return slot_take_acl(s);
    }
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* NULL after a message. */
static const struct slot_part *slot_find_part(struct slot_command *s, unsigned given)
{
    static const char *const names[] = {"limit", "take", "give", "list", "break", "run", NULL};
    struct options *o = s->o;
    char instead[SUGGESTION_CAP];
    const struct slot_part *p = parts;
    while (p < parts + PARTS && strcmp(o->argv[0], p->name) != 0)
        p++;
    int n = o->argc - 1;
    if (p == parts + PARTS)
        diag_usage(o, "'%s': expected limit, take, give, list, break or run%s", o->argv[0],
                   suggestion_for_word(names, o->argv[0], instead));
    else if (n < p->least || (p->most >= 0 && n > p->most))
        diag_usage(o, "%s takes %s", p->name, p->args);
    else if (given & ~p->flags)
        diag_usage(o, "%s: a flag is given that is not for this", p->name);
    else
        return p;
    return NULL;
}

/* EXIT_OK, or the exit code after a message. */
static int slot_find_id(struct slot_command *s, const struct slot_part *p)
{
    char shown[PARTICIPANT_TEXT_CAP];
    clave_slot *as = &s->plan.as;
    if (p->run == slot_break)
        as->id = s->o->argv[2];
    if (p->run == slot_limit || p->run == slot_list)
        return EXIT_OK;
    if (!as->id) {
        s->plan.id_defaulted = true;
        as->id = s->machine_id;
        return slot_id_of_machine(s->o, s->machine_id) ? EXIT_OK : EXIT_USAGE;
    }
    if (!clave__slot_id_is_valid(as->id))
        return diag_usage(
            s->o, "the id '%s': it has 1 to %d bytes of UTF-8, without control characters",
            participant_text_printable(as->id, shown, sizeof shown), CLAVE_SLOT_ID_MAX);
    return EXIT_OK;
}

static int slot_check_texts(struct slot_command *s, const struct slot_part *p)
{
    const clave_slot *as = &s->plan.as;
    if (!clave__slot_text_is_valid(as->by) || !clave__slot_text_is_valid(as->reason))
        return diag_usage(s->o,
                          "--by and --reason have at most %d bytes of UTF-8, without control "
                          "characters",
                          CLAVE_SLOT_TEXT_MAX);
    if (p->run == slot_break && (!as->reason || !*as->reason))
        return diag_usage(s->o, "break needs --reason TEXT, which is recorded");
    return acl_has_identity(s->o, &s->acl) ? EXIT_OK : EXIT_PATH;
}

static int slot_do(struct slot_command *s, unsigned given)
{
    struct options *o = s->o;
    const struct slot_part *p = slot_find_part(s, given);
    if (!p)
        return EXIT_USAGE;
    s->plan.path = o->argv[1];
    s->limit = p->run == slot_limit ? o->argv[2] : NULL;
    s->argv = p->run == slot_run ? o->argv + 2 : NULL;
    gethostname(s->host, sizeof s->host - 1);
    s->plan.as.host = *s->host ? s->host : NULL;
    int code = connect_path_ok(o, s->plan.path) ? slot_find_id(s, p) : EXIT_PATH;
    if (code == EXIT_OK)
        code = slot_check_texts(s, p);
    return code == EXIT_OK ? p->run(s) : code;
}

static int run_slot(struct options *o, int argc, char **argv)
{
    struct slot_command s = {.o = o, .plan = {.wait_ms = LOCK_FOR_EVER, .keep = SLOT_KEEP_FAILED}};
    unsigned given = 0;
    int id, code = EXIT_USAGE;
    bool taken = true;
    while (taken && (id = options_next(o, argc, argv)) > 0)
        taken = slot_take_flag(&s, id, &given);
    if (taken && id == OPTIONS_STOP)
        code = o->status;
    else if (taken && options_args(o, 2, -1))
        code = slot_do(&s, given);
    acl_fini(&s.acl);
    return code;
}

static const struct flag flags[] = {
    {'w', "wait", "DURATION", "take, run: give up after this long [wait forever]"},
    {'n', "no-wait", NULL, "take, run: only if a slot is free now"},
    {SLOT_ID, "id", "ID", "take, give, run: whose slot [this machine's]"},
    {SLOT_BY, "by", "WHO", "take, run, break: the person or role"},
    {SLOT_REASON, "reason", "TEXT", "take, run: what it is for; break: why"},
    {SLOT_TOKEN, "token", "TOKEN", "give, break: only the slot of this token"},
    {SLOT_KEEP, "keep", "WHEN", "run: keep the slot never, failed or always [failed]"},
    {SLOT_WAITERS, "waiters", NULL, "list: those who wait too"},
    {SLOT_ACL, "acl", "ACL", "limit, take, run: of the nodes: see 'clave create' [open]"},
    {'q', "quiet", NULL, "take, give, run: do not report waiting, or what was so already"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_slot = {
    .name = "slot",
    .args = "limit|take|give|list|break|run PATH [ARGUMENT]...",
    .summary = "Own one of N slots by an id, until it is given back",
    .text =
        "A slot belongs to an id, not to a session: it survives the process that took it, its\n"
        "machine's reboot and the servers' restart. No time ends it.\n"
        "\n"
        "limit PATH [N]        set how many may be owned, and create PATH; print it\n"
        "take PATH             own a slot, and print its token; also when it is owned already\n"
        "give PATH             give the slot back; also when none is owned\n"
        "list PATH             print the ids that own one, the oldest first\n"
        "break PATH ID         take the slot away from an id, and record why (--reason)\n"
        "run PATH -- COMMAND   take, run the command, give when it ends with 0\n"
        "\n"
        "An id has 1 to 128 bytes. Exit codes: 66 no limit is set, or break found no slot; 73\n"
        "the slot of this machine's id was taken by another host; 75 not in time, or run: this\n"
        "id runs a command already; that of the command of run. After 69 or 75 of a lost answer\n"
        "the slot may have been taken or given: the message says so, and list tells.\n",
    .flags = flags,
    .max_args = -1,
    .runs_command = true,
    .run = run_slot,
};
