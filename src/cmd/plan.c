#include <string.h>

#include "cmd/link.h"
#include "cmd/lock.h"
#include "cmd/tell.h"

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

bool plan_take_flag(struct lock_plan *p, int id, const char *max_hold)
{
    struct options *o = p->o;
    switch (id) {
    case 'w':
        return options_duration(o, "wait", p->elects ? 1 : 0, YEAR_MS, &p->wait_ms);
    case 'E':
        return take_code(o, &p->conflict_code);
    case 'q':
        p->quiet = true;
        return true;
    case PLAN_GRACE:
        return options_duration(o, "grace", 0, YEAR_MS, &p->grace_ms);
    case PLAN_ON_LOST:
        return take_on_lost(o, &p->on_lost);
    case PLAN_MAX_HOLD:
        return options_duration(o, max_hold, 1, YEAR_MS, &p->max_hold_ms);
    case PLAN_NAME:
        p->name = o->value;
        return true;
    case PLAN_ACL:
        return take_acl(o, &p->acl);
    case PLAN_REVOCABLE:
        p->revocable = true;
        return true;
    default:
        return false;
    }
}

int plan_take_args(struct lock_plan *p)
{
    struct options *o = p->o;
    if (!options_args(o, 1, -1))
        return EXIT_USAGE;
    if (o->argc < 2)
        return tell_usage(o, "the command is missing: clave %s %s -- COMMAND...", o->verb->name,
                          o->argv[0]);
    if (!acl_has_identity(o, &p->acl))
        return EXIT_PATH;
    p->path = p->holders = o->argv[0];
    p->argv = o->argv + 1;
    p->connect = link_connect(o);
    if (!p->connect)
        return EXIT_USAGE;
    return link_path_ok(o, p->path) ? EXIT_OK : EXIT_PATH;
}
