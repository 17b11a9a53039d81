/* settings_load.c - see settings_load.h; the verbs `serve` and `gate` call it. */
#include "cmd/serve/settings_load.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/cli/diag.h"
#include "cmd/serve/config_file.h"
#include "runtime/start_error.h"

struct log configured_log(const struct configured *c)
{
    return (struct log){serve_log_line, (void *)(uintptr_t)&c->log, serve_log_about, &c->log.level};
}

const struct serve_settings *configured_now(const struct configured *c)
{
    return c->reloaded ? c->reloaded : &c->settings;
}

/* How a fault is reported when the verb ends with `code`: as lines of the log or, with --json, the
 * way every verb reports it. */
struct configured_end {
    const struct configured *c;
    int code;
};

static void settings_load_on_fault_about(void *arg, int level, const char *msg,
                                         const struct log_about *about)
{
    const struct configured_end *end = arg;
    const struct log log = configured_log(end->c);
    if (end->c->o->json && level == CLAVE_LOG_ERROR)
        diag_end(end->c->o, NULL, end->code, "%s", msg);
    else
        clave__log_about(&log, level, about, "%s", msg);
}

static void settings_load_on_fault(void *arg, int level, const char *msg)
{
    settings_load_on_fault_about(arg, level, msg, &(struct log_about){0});
}

/* Logs one line per line of `faults`, preceded by `what` unless that is NULL. Modifies `faults`. */
static void settings_load_log_faults(const struct log *log, const char *what, char *faults)
{
    char *rest = NULL;
    for (char *f = strtok_r(faults, "\n", &rest); f; f = strtok_r(NULL, "\n", &rest))
        clave__log(log, CLAVE_LOG_ERROR, "%s%s%s", what ? what : "", what ? ": " : "", f);
}

int configured_fail(const struct configured *c, clave_err err, char *fault)
{
    struct configured_end end = {c, err == CLAVE_EINVAL ? EXIT_USAGE : exit_code_of(err)};
    const struct log log = {settings_load_on_fault, &end, settings_load_on_fault_about, NULL};
    if (*fault)
        settings_load_log_faults(&log, NULL, fault);
    else
        clave__log(&log, CLAVE_LOG_ERROR, "%s", clave_strerror(err));
    return end.code;
}

int configured_worse(int code, int other)
{
    return code == EXIT_OK || other == EXIT_USAGE ? other : code;
}

void configured_end_ready(const struct configured *c)
{
    const struct log log = configured_log(c);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    clave__log(&log, CLAVE_LOG_WARN,
               "standard output: %s: the line that says where it serves is lost", strerror(errno));
    __fpurge(stdout);
    clearerr(stdout);
}

/* ---- flags ----------------------------------------------------------------------------------- */

/* false: the flag is invalid, and a message has been printed. */
static bool settings_load_take_flag(struct configured *c, struct serve_settings *scratch, int id)
{
    struct options *o = c->o;
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    if (id == CONFIGURED_FILE) {
        c->config = o->value;
        return true;
    }
    if (id == CONFIGURED_CHECK) {
        c->check = true;
        return true;
    }
    struct given g = {settings_name_of_flag(id), o->value ? o->value : "true"};
    if (c->ngiven == SETTINGS_MAX_FLAGS) {
        diag_usage(o, "at most %d flags", SETTINGS_MAX_FLAGS);
        return false;
    }
    clave_err err = settings_set(scratch, g.name, g.value, &f);
    if (err == CLAVE_ENOMEM)
        o->status = diag_err(o, NULL, err, NULL);
    else if (err != CLAVE_OK)
        diag_usage(o, "--%s '%s': %s", g.name, g.value, why);
    if (err != CLAVE_OK)
        return false;
    c->given[c->ngiven++] = g;
    return true;
}

static void settings_load_set_log(struct configured *c, const struct serve_settings *settings)
{
    c->log.format = settings->log_format;
    c->log.time = settings->log_time;
    int level = settings->log_level > 0 ? settings->log_level : CLAVE_LOG_WARN;
    if (c->check && level < CLAVE_LOG_WARN)
        /* --check-config is there to show what would be ignored, so warnings are not hidden */
        level = CLAVE_LOG_WARN;
    c->log.level = level + c->o->verbose;
}

int configured_take_flags(struct configured *c, int argc, char **argv)
{
    struct serve_settings scratch;
    int id;
    settings_init(&scratch, c->is_gate);
    serve_log_init(&c->log, c->o->verb->name);
    while ((id = options_next(c->o, argc, argv)) > 0)
        c->bad_flags |= !settings_load_take_flag(c, &scratch, id);
    if (id == OPTIONS_END && c->bad_flags && !c->check) {
        if (c->o->status == EXIT_OK)
            c->o->status = EXIT_USAGE;
        id = OPTIONS_STOP;
    }
    settings_load_set_log(c, &scratch);
    settings_fini(&scratch);
    return id == OPTIONS_STOP || options_args(c->o, 0, 0) ? id : OPTIONS_STOP;
}

/* ---- the file, then the flags on top of it --------------------------------------------------- */

/* Reads the file, sets the flags on top of it, and checks the whole. Addresses given by flags
 * replace all of the file's. An error in the file does not keep the rest from being checked.
 * EINVAL, ENOMEM: each thing that is wrong is either a line of `f` or has been logged. */
static clave_err settings_load_build(const struct configured *c, const struct log *log,
                                     struct serve_settings *out, const struct fault *f)
{
    struct findings all = clave__findings_in(f);
    bool listens = false, has_http = false, is_read = true;
    settings_init(out, c->is_gate);
    if (c->config)
        clave__findings_add(&all, serve_config_load(out, c->config, log, &is_read));
    if (!is_read)
        return all.err;
    for (size_t i = 0; i < c->ngiven; i++) {
        bool listen = strcmp(c->given[i].name, "listen") == 0;
        bool http = strcmp(c->given[i].name, "http") == 0;
        out->run.nlisten = listen && !listens ? 0 : out->run.nlisten;
        out->gate.nhttp = http && !has_http ? 0 : out->gate.nhttp;
        listens = listens || listen;
        has_http = has_http || http;
        clave__findings_add(&all,
                            settings_set(out, c->given[i].name, c->given[i].value, &all.next));
    }
    clave__findings_add(&all, settings_check(out, &all.next));
    return all.err;
}

int configured_read(struct configured *c)
{
    char why[FAULTS_CAP] = "", *rest = NULL;
    const struct fault f = {why, sizeof why};
    struct configured_end end = {c, EXIT_USAGE};
    const struct log log = {settings_load_on_fault, &end, settings_load_on_fault_about, NULL};
    /* The C library opens the file of the time zone when it first formats a time. Do that now:
     * later, for the date in the first answer over HTTP, it would make the loop wait for a disk. */
    tzset();
    clave_err err = settings_load_build(c, &log, &c->settings, &f);
    for (char *one = strtok_r(why, "\n", &rest); one; one = strtok_r(NULL, "\n", &rest))
        diag_usage(c->o, "%s", one);
    if (err == CLAVE_OK && c->bad_flags)
        return EXIT_USAGE;
    if (err != CLAVE_OK)
        return err == CLAVE_EINVAL ? EXIT_USAGE : exit_code_of(err);
    settings_load_set_log(c, &c->settings);
    c->settings.run.engine.log = serve_log_line;
    c->settings.run.engine.log_arg = &c->log;
    c->settings.run.engine.log_about = serve_log_about;
    const struct log to = configured_log(c);
    settings_tell_useless(&c->settings, &to);
    return EXIT_OK;
}

/* ---- reloading ------------------------------------------------------------------------------- */

/* Replaces the settings of the last reload by `wanted` (NULL: by none), and frees the old ones. */
static void settings_load_keep(struct configured *c, struct serve_settings *wanted)
{
    if (c->reloaded)
        settings_fini(c->reloaded);
    free(c->reloaded);
    c->reloaded = wanted;
}

void configured_read_again(struct configured *c, const char *what)
{
    size_t n = strlen(c->again);
    snprintf(c->again + n, sizeof c->again - n, "%s%s", n > 0 ? ", " : "", what);
}

/* Logs what this SIGHUP has read again other than the configuration file. */
static void settings_load_tell_again(struct configured *c)
{
    char line[sizeof c->again + 64];
    snprintf(line, sizeof line, "SIGHUP: read again: %s", c->again);
    if (*c->again)
        serve_log_notice(&c->log, line);
    c->again[0] = '\0';
}

/* Logs which settings have changed, and which will change at the next restart. */
static void settings_load_tell(struct configured *c, const struct serve_settings *wanted)
{
    char changes[1024], fixed[1024], line[PATH_MAX + 2400];
    settings_list_changes(configured_now(c), wanted, changes, sizeof changes);
    settings_list_fixed(&c->settings, wanted, fixed, sizeof fixed);
    const char *none = *changes || *fixed ? "" : "no setting has changed";
    snprintf(line, sizeof line, "%s reloaded: %s%s%s%s%s%s%s", c->config, none, changes,
             *changes && *fixed ? "; " : "", *fixed ? "needs a restart: " : "", fixed,
             *c->again ? "; read again: " : "", c->again);
    serve_log_notice(&c->log, line);
    c->again[0] = '\0';
}

/* Whether the path is a credential of systemd, which copies the files that LoadCredential= names
 * when the service starts, but not when it is reloaded. */
static bool settings_load_is_credential(const char *path)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    size_t n = dir ? strlen(dir) : 0;
    return n > 0 && strncmp(path, dir, n) == 0 && path[n] == '/';
}

static void settings_load_take(struct configured *c, struct serve_settings *wanted)
{
    const struct log log = configured_log(c);
    const char *tokens = wanted->gate.access.tokens;
    settings_load_set_log(c, wanted);
    settings_tell_fixed(&c->settings, wanted, &log);
    settings_tell_useless(wanted, &log);
    if (tokens && settings_load_is_credential(tokens))
        clave__log(
            &log, CLAVE_LOG_WARN,
            "%s is the copy that systemd made at the start (LoadCredential=): changed tokens "
            "count after a restart, unless http-tokens names the file itself",
            tokens);
    else if (tokens)
        configured_read_again(c, "tokens of HTTP");
    if (c->config)
        settings_load_tell(c, wanted);
    else
        settings_load_tell_again(c);
    settings_load_keep(c, wanted);
}

void configured_reload(struct configured *c,
                       clave_err (*apply)(void *arg, const struct serve_settings *wanted,
                                          const struct fault *f),
                       void *arg)
{
    const struct log log = configured_log(c);
    const char *what = c->config ? c->config : "SIGHUP";
    struct serve_settings *wanted = malloc(sizeof *wanted);
    char why[FAULTS_CAP] = "";
    const struct fault f = {why, sizeof why};
    clave_err err = wanted ? settings_load_build(c, &log, wanted, &f) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = apply(arg, wanted, &f);
    if (err == CLAVE_OK) {
        settings_load_take(c, wanted);
        return;
    }
    settings_load_tell_again(c);
    settings_load_log_faults(&log, what, why);
    clave__log(&log, CLAVE_LOG_ERROR, "%s: not reloaded, nothing is changed", what);
    if (wanted)
        settings_fini(wanted);
    free(wanted);
}

void configured_fini(struct configured *c)
{
    settings_load_keep(c, NULL);
    settings_fini(&c->settings);
    serve_log_fini(&c->log);
}
