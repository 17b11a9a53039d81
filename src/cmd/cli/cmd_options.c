/* cmd_options.c - parses the flags of every verb with getopt_long (see cmd_options.h). Each verb
 * calls options_next until it returns OPTIONS_END or OPTIONS_STOP. The environment and the
 * configuration files are read before OPTIONS_END is returned. */
#include "cmd/cli/cmd_options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "clave/tls.h"
#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/suggestion.h"
#include "cmd/cli/usage.h"

enum { MAX_FLAGS = 80, DEFAULT_TIMEOUT_MS = 10000 };

void options_init(struct options *o, const struct verb *const *verbs)
{
    *o = (struct options){.verbs = verbs, .timeout_ms = DEFAULT_TIMEOUT_MS};
}

void options_fini(struct options *o)
{
    clave_tls_free(o->tls);
    o->tls = NULL;
    clave__client_settings_fini(&o->client);
}

const struct verb *options_verb(const struct options *o, const char *name)
{
    for (const struct verb *const *v = o->verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}

/* ---- getopt ---------------------------------------------------------------------------------- */

struct getopt_tables {
    struct option longs[MAX_FLAGS + 1];
    char shorts[2 * MAX_FLAGS + 3];
};

static void options_getopt_tables_add(struct getopt_tables *s, size_t *n, char **p,
                                      const struct flag *f)
{
    int has_arg = no_argument;
    if (f->arg)
        has_arg = *f->arg == '[' ? optional_argument : required_argument;
    if (*n == MAX_FLAGS)
        abort(); /* MAX_FLAGS is too small; every run of the verb ends here */
    s->longs[(*n)++] = (struct option){.name = f->name, .has_arg = has_arg, .val = f->id};
    if (f->id >= FLAG_LONG)
        return;
    *(*p)++ = (char)f->id;
    if (f->arg)
        *(*p)++ = ':';
}

static void options_getopt_tables_init(struct getopt_tables *s, const struct verb *v)
{
    size_t n = 0;
    char *p = s->shorts;
    memset(s, 0, sizeof *s);
    *p++ = '+'; /* stop at the first argument; what follows may be for another program */
    *p++ = ':'; /* tell a missing value from an unknown flag */
    const struct flag *own;
    for (size_t i = 0; (own = verb_flag(v, i)); i++)
        options_getopt_tables_add(s, &n, &p, own);
    for (const struct flag *f = global_flags; f->id != 0; f++)
        if (!global_is_absent(v, f))
            options_getopt_tables_add(s, &n, &p, f);
}

/* The flag that getopt has just stopped at, as the user wrote it. */
static const char *options_flag_as_written(char **argv)
{
    static char letter[3] = "-?";
    const char *word = argv[optind - 1];
    if (optopt == '=') /* "-n=3", where the flag takes no value */
        return argv[optind];
    if (optopt > 0 && optopt < FLAG_LONG && strncmp(word, "--", 2) != 0) {
        letter[1] = (char)optopt;
        return letter;
    }
    return word;
}

enum { BEGINNINGS_CAP = 160 };

/* Lists the flags that begin with `flag`, as many as there is room for; "": none does. */
static const char *options_beginnings(const struct getopt_tables *s, const char *flag,
                                      char out[BEGINNINGS_CAP])
{
    size_t n = strncmp(flag, "--", 2) == 0 ? strcspn(flag + 2, "=") : 0, len = 0;
    *out = '\0';
    for (const struct option *f = s->longs; n > 0 && f->name; f++) {
        if (strncmp(f->name, flag + 2, n) != 0)
            continue;
        bool fits = len + strlen(f->name) + sizeof ", --, ..." < BEGINNINGS_CAP;
        len += (size_t)snprintf(out + len, BEGINNINGS_CAP - len, "%s%s%s", len ? ", " : "",
                                fits ? "--" : "...", fits ? f->name : "");
        if (!fits)
            break;
    }
    return out;
}

static int options_no_such_flag(struct options *o, const char *flag)
{
    char instead[SUGGESTION_CAP];
    diag_usage(o, "no such flag: %s%s", flag, suggestion_for_flag(o->verb, flag, instead));
    return OPTIONS_STOP;
}

static int cmd_options_refuse(struct options *o, const struct getopt_tables *s, int id, char **argv)
{
    const char *flag = options_flag_as_written(argv);
    char several[BEGINNINGS_CAP];
    if (id == ':')
        diag_usage(o, "%s needs a value", flag);
    else if (optopt != 0 && strncmp(flag, "--", 2) == 0)
        diag_usage(o, "%s takes no value", flag);
    else if (*options_beginnings(s, flag, several))
        diag_usage(o, "%s is ambiguous: it begins %s", flag, several);
    else
        return options_no_such_flag(o, flag);
    return OPTIONS_STOP;
}

/* Refuses "-w=1": getopt would take "=1" as the value of the short flag, and no flag of ours has
 * such a value. */
static bool options_refuse_equals_sign(struct options *o, char **argv)
{
    const char *word = argv[optind - 1];
    if (!optarg || *optarg != '=' || word[0] != '-' || word[1] == '-')
        return false;
    diag_usage(o, "%s: the value of a short flag follows without '=': %.*s %s", word,
               (int)(optarg - word), word, optarg + 1);
    return true;
}

/* NULL: it is a global flag. */
static const struct flag *options_own_flag(const struct verb *v, int id)
{
    const struct flag *f;
    size_t i = 0;
    while ((f = verb_flag(v, i)) && f->id != id)
        i++;
    return f;
}

/* Remembers the last flag whose value is a word of its own that looks like a path. */
static void options_note_path(struct options *o, int id, char **argv)
{
    const struct flag *f = options_own_flag(o->verb, id);
    if (f && optarg && *optarg == '/' && optarg == argv[optind - 1]) {
        o->path_flag = f;
        o->path_value = optarg;
    }
}

/* Refuses "" for a command or an id: `--fence "$FENCE"` without the variable would run nothing, and
 * succeed. */
static bool options_refuse_empty(struct options *o, int id)
{
    static const char *const never_empty[] = {"SHELL-COMMAND", "CMD", "ID"};
    const struct flag *f = options_own_flag(o->verb, id);
    if (!f || !f->arg || !optarg || *optarg)
        return false;
    for (size_t i = 0; i < sizeof never_empty / sizeof *never_empty; i++)
        if (strcmp(f->arg, never_empty[i]) == 0) {
            diag_usage(o,
                       "--%s is empty, as it is with a variable that is not set: give the %s, or "
                       "leave the flag out",
                       f->name, f->arg);
            return true;
        }
    return false;
}

/* ---- global flags ---------------------------------------------------------------------------- */

static int options_stop_with_help(struct options *o)
{
    if (*o->verb->name)
        usage_verb(o->verb);
    else
        usage_all(o->verbs);
    o->status = EXIT_OK;
    return OPTIONS_STOP;
}

static int options_set_auth(struct options *o)
{
    const char *fault;
    if (!clave__client_settings_add_auth(&o->client, o->value, &fault)) {
        diag_usage(o, "--auth: %s", fault);
        return OPTIONS_STOP;
    }
    return 0;
}

static void options_note_client_flag(struct options *o, int id)
{
    for (const struct flag *f = global_flags; f->id != 0; f++)
        if (f->id == id && global_is_of_clients(f))
            o->client_flag = f;
}

/* Refuses a client's flag, perhaps given before the name of the verb, if the verb connects to no
 * server. */
static bool options_refuse_client_flag(struct options *o)
{
    const struct verb *v = o->verb;
    const char *name = o->client_flag ? o->client_flag->name : NULL;
    if (!name || !v->offline || v->ignores_client_flags ||
        !*v->name) /* without a name it is `program`: the verb is not known yet */
        return false;
    if (global_is_absent(v, o->client_flag))
        diag_usage(o, "--%s: give it after '%s'; before it, it is a flag of clients", name,
                   v->name);
    else
        diag_usage(o, "--%s is a flag of clients; %s connects to no server", name, v->name);
    return true;
}

/* Returns 0 or OPTIONS_STOP. */
static int options_set_global(struct options *o, int id)
{
    int64_t ms;
    switch (id) {
    case 'h':
        return options_stop_with_help(o);
    case 'v':
        o->verbose++;
        return 0;
    case 'c':
        o->connect = o->flags.connect = o->value;
        o->flags.connect_after = o->argc;
        return 0;
    case GLOBAL_JSON:
        o->json = true;
        return 0;
    case GLOBAL_AUTH:
        return options_set_auth(o);
    case GLOBAL_TLS_CA:
    case GLOBAL_TLS_CERT:
    case GLOBAL_TLS_KEY:
    case GLOBAL_TLS_NAME:
        o->client.tls_texts[id - GLOBAL_TLS_CA] =
            o->value; /* the ids are in the order of enum client_tls */
        o->flags.tls[id - GLOBAL_TLS_CA] = o->value;
        return 0;
    case GLOBAL_TLS_ANY_NAME:
        o->tls_any_name = true;
        return 0;
    case GLOBAL_SESSION_TIMEOUT:
        if (!options_duration(o, "session-timeout", 1, OPTIONS_MAX_MS, &ms))
            return OPTIONS_STOP;
        o->session_timeout_ms = (int32_t)ms;
        return 0;
    case GLOBAL_TIMEOUT:
        if (!options_duration(o, "timeout", 1, OPTIONS_MAX_MS, &ms))
            return OPTIONS_STOP;
        o->timeout_ms = ms;
        o->timeout_given = true;
        return 0;
    default:
        return OPTIONS_STOP;
    }
}

/* ---- environment and configuration files ----------------------------------------------------- */

static void config_on_log(void *arg, int level, const char *msg)
{
    (void)level;
    diag(arg, "%s", msg);
}

bool config_apply(struct options *o)
{
    char text[1024] = "";
    const struct fault f = {text, sizeof text};
    const struct log log = {.cb = config_on_log, .arg = o};
    struct client_settings *s = &o->client;
    s->connect = o->connect;
    s->session_timeout_ms = o->session_timeout_ms;
    s->timeout_ms = o->timeout_given ? o->timeout_ms : 0;
    clave_err err = clave__client_settings_read(s, &log, &f);
    if (err != CLAVE_OK) {
        bool passes =
            clave__start_error_passes(err); /* such as no memory: the file is not at fault */
        o->status = diag_end(o, NULL, passes ? EXIT_INTERNAL : EXIT_USAGE, "%s", text);
        return false;
    }
    o->connect = s->connect;
    o->session_timeout_ms = s->session_timeout_ms;
    o->timeout_given = s->timeout_ms != 0;
    o->timeout_ms = o->timeout_given ? s->timeout_ms : o->timeout_ms;
    return true;
}

/* ---- going through the arguments ------------------------------------------------------------- */

/* Looks for --json in advance, so that an invalid flag before it is reported as JSON too. */
static bool cmd_options_has_json(char **argv)
{
    for (char **word = argv + 1; *word && strcmp(*word, "--") != 0; word++)
        if (strcmp(*word, "--json") == 0)
            return true;
    return false;
}

static void options_scan_begin(struct options *o, char **argv)
{
    o->scanning = true;
    o->json = o->json || (o->verb->max_args < 0 && cmd_options_has_json(argv));
    o->argc = 0;
    o->argv = argv + 1;
    optind = 0; /* tells glibc to start over with another argv */
    opterr = 0;
}

/* Gathers the arguments at the front of argv, after its first word. getopt is always further on, so
 * this overwrites nothing that has not been read yet. */
static void cmd_options_keep(struct options *o, char *word)
{
    o->argv[o->argc++] = word;
}

static int options_scan_end(struct options *o, int argc, char **argv)
{
    while (optind < argc)
        cmd_options_keep(o, argv[optind++]);
    o->argv[o->argc] = NULL;
    o->scanning = false;
    if (o->verb->waits_forever && o->timeout_given) /* it was given before the verb */
        return options_no_such_flag(o, "--timeout");
    if (options_refuse_client_flag(o))
        return OPTIONS_STOP;
    return o->verb->offline || config_apply(o) ? OPTIONS_END : OPTIONS_STOP;
}

int options_next(struct options *o, int argc, char **argv)
{
    struct getopt_tables s;
    options_getopt_tables_init(&s, o->verb);
    if (!o->scanning)
        options_scan_begin(o, argv);
    for (;;) {
        int before = optind > 0 ? optind : 1;
        if (before < argc && suggestion_is_long(o->verb, argv[before])) {
            o->scanning = false;
            return options_no_such_flag(o, argv[before]);
        }
        int id = getopt_long(argc, argv, s.shorts, s.longs, NULL);
        o->value = optarg;
        if (id == '?' || id == ':') {
            o->scanning = false;
            return cmd_options_refuse(o, &s, id, argv);
        }
        if (id != -1 && (options_refuse_equals_sign(o, argv) || options_refuse_empty(o, id))) {
            o->scanning = false;
            return OPTIONS_STOP;
        }
        if (id == -1) {
            bool dashes = optind > before && optind > 1 && strcmp(argv[optind - 1], "--") == 0;
            bool more = o->verb->max_args < 0 || o->argc < o->verb->max_args;
            if (dashes || optind >= argc || !more)
                return options_scan_end(o, argc, argv);
            cmd_options_keep(o, argv[optind++]);
            continue;
        }
        if (options_own_flag(o->verb, id)) {
            options_note_path(o, id, argv);
            return id;
        }
        options_note_client_flag(o, id);
        if (options_set_global(o, id) == OPTIONS_STOP) {
            o->scanning = false;
            return OPTIONS_STOP;
        }
    }
}

bool options_args(struct options *o, int min, int max)
{
    char hint[DIAG_HINT_CAP];
    if (o->argc < min) {
        diag_usage(o, "%s: clave %s %s%s",
                   o->argc == 0 ? "an argument is missing" : "too few arguments", o->verb->name,
                   o->verb->args, diag_path_hint(o, hint));
        return false;
    }
    if (max >= 0 && o->argc > max) {
        diag_usage(o, "unexpected argument '%s'", o->argv[max]);
        return false;
    }
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool options_duration(struct options *o, const char *flag, int64_t min_ms, int64_t max_ms,
                      int64_t *ms)
{
    assert(o->value);
    const int64_t bounds[2] = {min_ms, max_ms};
    char text[DURATION_FAULT_CAP];
    const char *fault = clave__duration_within(o->value, bounds, ms, text);
    if (fault)
        diag_usage(o, "--%s '%s': %s", flag, o->value, fault);
    return !fault;
}

bool options_number(struct options *o, const char *flag, int64_t min, int64_t max, int64_t *out)
{
    assert(o->value && min <= max);
    char *end;
    errno = 0;
    long long n = strtoll(o->value, &end, 10);
    if (end == o->value || *end != '\0' || errno != 0 || n < min || n > max) {
        diag_usage(o, "--%s '%s': not a number from %lld to %lld", flag, o->value, (long long)min,
                   (long long)max);
        return false;
    }
    *out = n;
    return true;
}

bool options_word(struct options *o, const char *flag, const char *const *words, int *out)
{
    char list[64] = "";
    size_t n = 0;
    for (int i = 0; words[i]; i++) {
        if (strcmp(o->value, words[i]) == 0) {
            *out = i;
            return true;
        }
        const char *between = words[i + 1] ? ", " : " or ";
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i == 0 ? "" : between, words[i]);
    }
    diag_usage(o, "--%s '%s': expected %s", flag, o->value, list);
    return false;
}

int64_t options_left_ms(struct options *o)
{
    int64_t now = clave_now();
    if (o->deadline_ms == 0)
        o->deadline_ms = now + o->timeout_ms;
    return deadline_left(o->deadline_ms, now);
}
