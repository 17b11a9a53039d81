/* counter.c - `clave counter`: shows a number that several processes change, or changes it, exactly
 * once. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clave/counter.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"

enum { COUNTER_SET = FLAG_LONG, COUNTER_IF };

struct counter_command {
    struct options *o;
    const char *path;
    bool adds, sets, compares;
    int64_t delta, value, expected;
};

/* A decimal number of 64 bits, with a sign or without. */
static bool counter_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    bool begins = (text[0] >= '0' && text[0] <= '9') || text[0] == '+' || text[0] == '-';
    return begins && *end == '\0' && end != text && errno == 0;
}

static void counter_show(const struct counter_command *k, const clave_counter_change *change)
{
    struct json j;
    if (!k->o->json) {
        printf("%" PRId64 "\n", change->after);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "path", k->path);
    clave__json_int(&j, "before", change->before);
    clave__json_int(&j, "after", change->after);
    json_end(&j);
}

static clave_err counter_change(const struct counter_command *k, clave_counter *n,
                                clave_counter_change *change)
{
    int64_t timeout = k->o->timeout_ms;
    if (k->adds)
        return clave_counter_add(n, k->delta, timeout, change);
    if (k->compares)
        return clave_counter_compare_and_set(n, k->expected, k->value, timeout, change);
    if (k->sets)
        return clave_counter_set(n, k->value, timeout, change);
    clave_err err = clave_counter_get(n, timeout, &change->after);
    change->before = change->after;
    return err;
}

static int counter_on(const struct counter_command *k, clave_client *session)
{
    clave_counter *n;
    clave_counter_change change = {0};
    clave_err err = clave_counter_new(&n, session, k->path);
    if (err == CLAVE_OK) {
        err = counter_change(k, n, &change);
        clave_counter_free(n);
    }
    if (err == CLAVE_EBADVERSION)
        return diag_end(k->o, k->path, EXIT_PATH, "it is not %" PRId64, k->expected);
    if (err != CLAVE_OK)
        return diag_err(k->o, k->path, err, session);
    counter_show(k, &change);
    return finish_stdout(k->o);
}

static int run_counter(struct options *o, int argc, char **argv)
{
    struct counter_command k = {.o = o};
    clave_client *session;
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        k.sets |= id == COUNTER_SET;
        k.compares |= id == COUNTER_IF;
        if (!options_number(o, id == COUNTER_SET ? "set" : "if", INT64_MIN, INT64_MAX,
                            id == COUNTER_SET ? &k.value : &k.expected))
            return EXIT_USAGE;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (o->argc > 1 && o->argv[1][0] == '-' && o->argv[1][1] == '-')
        return diag_usage(o, "%s: flags come before PATH", o->argv[1]);
    if (!options_args(o, 1, 2))
        return EXIT_USAGE;
    k.path = o->argv[0];
    k.adds = o->argc == 2;
    if (k.adds && !counter_number(o->argv[1], &k.delta))
        return diag_usage(
            o, "'%s': neither +N nor -N, with N of at most 64 bits: %" PRId64 " to %" PRId64,
            o->argv[1], INT64_MIN, INT64_MAX);
    if (k.adds && o->argv[1][0] >= '0' && o->argv[1][0] <= '9')
        return diag_usage(o, "\"%s\": say +%s to add, or --set %s %s", o->argv[1], o->argv[1],
                          o->argv[1], k.path);
    if (k.adds && k.sets)
        return diag_usage(o, "%s adds, and --set %" PRId64 " sets: give one of them", o->argv[1],
                          k.value);
    if (k.compares && !k.sets)
        return diag_usage(o, "--if %" PRId64 " is a condition of --set: add --set N", k.expected);
    if (!connect_path_ok(o, k.path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &session);
    if (code == EXIT_OK) {
        code = counter_on(&k, session);
        connect_close(session);
    }
    return code;
}

static const struct flag flags[] = {
    {COUNTER_SET, "set", "N", "set it to N"},
    {COUNTER_IF, "if", "N", "only if it is N; exit 66 if it is not, or there is none"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_counter = {
    .name = "counter",
    .args = "PATH [+N|-N]",
    .summary = "Show a counter, or change it exactly once",
    .text =
        "Prints the value, after the change. Flags come before PATH. Exit code 75 says that a\n"
        "change may have been made: it was not answered, and the session is over. The layout is\n"
        "that of Curator's DistributedAtomicLong.\n",
    .flags = flags,
    .max_args = 0,
    .run = run_counter,
};
