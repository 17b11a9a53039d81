/* config.c - reads the environment and the configuration files (config.h); cmd_options.c calls it
 * once, after the flags. A value that an earlier source has set is never overwritten, except that
 * "local = never" wins wherever it is. */
#include "cmd/cli/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/diag.h"
#include "cmd/cli/key_value_file.h"
#include "cmd/cli/local_warning.h"

__attribute__((format(printf, 2, 3))) static bool config_error(const struct origin *at,
                                                               const char *fmt, ...)
{
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (at->file)
        diag(NULL, "%s:%u: %s", at->file, at->line, what);
    else
        diag(NULL, "environment variable %s: %s", at->key, what);
    return false;
}

/* Refuses what would only fail at the server. */
static bool auth_is_ok(const char *auth, const char **fault)
{
    const char *id = strchr(auth, ':');
    *fault = "an identity is SCHEME:ID, such as digest:user:password";
    if (!id || id == auth || id[1] == '\0')
        return false;
    if (id - auth >= OPTIONS_SCHEME_CAP) {
        *fault = "the scheme of this identity is too long";
        return false;
    }
    if (strncmp(auth, "digest:", 7) == 0 && !strchr(id + 1, ':')) {
        *fault = "a digest identity is digest:user:password";
        return false;
    }
    return true;
}

bool config_add_auth(struct options *o, const char *auth, const char **fault)
{
    if (!auth_is_ok(auth, fault))
        return false;
    if (o->nauths == OPTIONS_MAX_AUTH) {
        *fault = "at most 16 identities";
        return false;
    }
    char *scheme = o->schemes[o->nauths];
    size_t n = strcspn(auth, ":");
    memcpy(scheme, auth, n);
    scheme[n] = '\0';
    o->auths[o->nauths++] =
        (clave_auth){.scheme = scheme, .auth = auth + n + 1, .len = strlen(auth + n + 1)};
    return true;
}

#ifndef CLAVE_SYSTEM_CONFIG_FILE /* packagers define it */
#define CLAVE_SYSTEM_CONFIG_FILE "/etc/clave/config"
#endif

enum { CONFIG_PATH_CAP = 4096 };

/* ---- keys ----------------------------------------------------------------------------------- */

static bool duration_in(const struct origin *at, const char *value, int64_t *ms)
{
    const char *fault;
    if (!duration_parse(value, ms, &fault))
        return config_error(at, "'%s': %s", value, fault);
    if (*ms < 1 || *ms > OPTIONS_MAX_MS)
        return config_error(at, "'%s': not between 1ms and 24d", value);
    return true;
}

/* What the earlier sources have left open for the later ones. */
struct unset {
    bool connect, session_timeout, timeout, auth, local;
    bool tls[OPTIONS_TLS_TEXTS];
};

static struct unset unset_options(const struct options *o)
{
    struct unset unset = {.connect = !o->connect,
                          .session_timeout = o->session_timeout_ms == 0,
                          .timeout = !o->timeout_given,
                          .auth = o->nauths == 0,
                          .local = o->local == OPTIONS_LOCAL_UNSAID};
    for (size_t i = 0; i < OPTIONS_TLS_TEXTS; i++)
        unset.tls[i] = !o->tls_texts[i];
    return unset;
}

/* false: not one of these keys. */
static bool config_set_tls(struct options *o, const struct unset *unset, const char *key,
                           const char *value)
{
    static const char *const keys[OPTIONS_TLS_TEXTS] = {"tls-ca", "tls-cert", "tls-key",
                                                        "tls-name"};
    for (size_t i = 0; i < OPTIONS_TLS_TEXTS; i++) {
        if (strcmp(key, keys[i]) != 0)
            continue;
        if (unset->tls[i])
            o->tls_texts[i] = value;
        return true;
    }
    return false;
}

/* "never" counts wherever it is set: a value left in a file or in the environment must not lift a
 * ban set elsewhere. */
static bool set_local(struct options *o, const struct unset *unset, const struct origin *at,
                      const char *value)
{
    static const char *const words[] = {[OPTIONS_LOCAL_WARN] = "warn",
                                        [OPTIONS_LOCAL_YES] = "yes",
                                        [OPTIONS_LOCAL_NEVER] = "never"};
    enum options_local given = OPTIONS_LOCAL_WARN;
    while (given <= OPTIONS_LOCAL_NEVER && strcmp(value, words[given]) != 0)
        given++;
    if (given > OPTIONS_LOCAL_NEVER)
        return config_error(at, "'%s': expected yes, warn or never", value);
    if (o->local == OPTIONS_LOCAL_NEVER || (given != OPTIONS_LOCAL_NEVER && !unset->local))
        return true;
    o->local = given;
    if (at->file)
        snprintf(o->local_from, sizeof o->local_from, "%s:%u: local = never", at->file, at->line);
    else
        snprintf(o->local_from, sizeof o->local_from, "%s=never", at->key);
    return true;
}

static bool config_set(struct options *o, const struct unset *unset, const struct origin *at,
                       const char *key, const char *value)
{
    const char *fault;
    int64_t ms;
    if (strcmp(key, "connect") == 0) {
        if (unset->connect)
            o->connect = value;
    } else if (strcmp(key, "session-timeout") == 0) {
        if (!duration_in(at, value, &ms))
            return false;
        if (unset->session_timeout)
            o->session_timeout_ms = (int32_t)ms;
    } else if (strcmp(key, "timeout") == 0) {
        if (!duration_in(at, value, &ms))
            return false;
        if (unset->timeout) {
            o->timeout_ms = ms;
            o->timeout_given = true;
        }
    } else if (strcmp(key, "auth") == 0) {
        if (unset->auth ? !config_add_auth(o, value, &fault) : !auth_is_ok(value, &fault))
            return config_error(at, "%s", fault);
    } else if (strcmp(key, "local") == 0) {
        return set_local(o, unset, at, value);
    } else if (!config_set_tls(o, unset, key, value)) {
        return config_error(
            at,
            "unknown key '%s' (known: connect, session-timeout, timeout, auth, local, "
            "tls-ca, tls-cert, tls-key and tls-name)",
            key);
    }
    return true;
}

static bool apply_environment(struct options *o)
{
    static const struct {
        const char *name, *key;
    } names[] = {
        {"CLAVE_CONNECT", "connect"}, {"CLAVE_SESSION_TIMEOUT", "session-timeout"},
        {"CLAVE_TIMEOUT", "timeout"}, {"CLAVE_AUTH", "auth"},
        {"CLAVE_TLS_CA", "tls-ca"},   {"CLAVE_TLS_CERT", "tls-cert"},
        {"CLAVE_TLS_KEY", "tls-key"}, {"CLAVE_TLS_NAME", "tls-name"},
        {"CLAVE_LOCAL", "local"},
    };
    struct unset unset = unset_options(o);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i].name);
        struct origin at = {.key = names[i].name};
        if (value && *value && !config_set(o, &unset, &at, names[i].key, value))
            return false;
    }
    return true;
}

/* ---- the file ------------------------------------------------------------------------------- */

struct config_target {
    struct options *o;
    struct unset unset;
};

static bool config_set_line(void *arg, const struct origin *at, const char *key, const char *value)
{
    const struct config_target *f = arg;
    return config_set(f->o, &f->unset, at, key, value);
}

static bool config_bad_line(void *arg, const struct origin *at, const char *what)
{
    (void)arg;
    return config_error(at, "%s", what);
}

bool config_read(struct options *o, char *text, const char *path)
{
    struct config_target f = {o, unset_options(o)};
    const struct keyfile_visitor v = {config_set_line, config_bad_line, &f};
    return keyfile_each(text, path, &v);
}

/* That file might name servers, or forbid "local:". */
static bool names_servers(const struct options *o)
{
    return o->connect && !local_is(o->connect);
}

/* `path` "": there is none. `must`: the user named the file, so it has to exist. */
static bool apply_file(struct options *o, const char *path, bool must, char **text)
{
    char why[KEYFILE_WHY];
    *text = *path ? keyfile_read(path, why) : NULL;
    if (*text)
        return config_read(o, *text, path);
    if (!*path || (!must && (errno == ENOENT || errno == ENOTDIR)))
        return true;
    bool not_ours = !must && (errno == EACCES || errno == EPERM); /* HOME is another user's */
    if (not_ours && names_servers(o)) {
        diag(NULL, "configuration %s: continuing without it", why);
        return true;
    }
    diag(NULL, "configuration %s%s", why,
         not_ours ? " (--connect or CLAVE_CONNECT names the servers without it)" : "");
    return false;
}

/* The paths of the user's file and of the machine's; "": none. true: a variable named it. */
static bool user_path(char out[CONFIG_PATH_CAP])
{
    const char *given = getenv("CLAVE_CONFIG"), *xdg = getenv("XDG_CONFIG_HOME"),
               *home = getenv("HOME");
    bool named = given && *given;
    int n = 0;
    if (named)
        n = snprintf(out, CONFIG_PATH_CAP, "%s", given);
    else if (xdg && *xdg == '/') /* the XDG specification: ignore relative paths */
        n = snprintf(out, CONFIG_PATH_CAP, "%s/clave/config", xdg);
    else if (home && *home)
        n = snprintf(out, CONFIG_PATH_CAP, "%s/.config/clave/config", home);
    if (n <= 0 || n >= CONFIG_PATH_CAP)
        out[0] = '\0';
    return named;
}

/* Like GIT_CONFIG_SYSTEM: whoever sets the variable could name other servers just as well. It is
 * ignored in a program that runs with another user's rights than its caller's. */
static bool system_path(char out[CONFIG_PATH_CAP])
{
    const char *given = secure_getenv("CLAVE_SYSTEM_CONFIG");
    bool named = given && *given;
    snprintf(out, CONFIG_PATH_CAP, "%s", named ? given : CLAVE_SYSTEM_CONFIG_FILE);
    return named;
}

bool config_apply(struct options *o)
{
    char path[CONFIG_PATH_CAP];
    if (!apply_environment(o))
        return false;
    bool named = user_path(path);
    if (!apply_file(o, path, named, &o->config))
        return false;
    named = system_path(path);
    return apply_file(o, path, named, &o->system_config);
}

/* ---- one key alone -------------------------------------------------------------------------- */

static bool take_local(void *arg, const struct origin *at, const char *key, const char *value)
{
    struct options *o = arg;
    const struct unset unset = {.local = true};
    if (strcmp(key, "local") == 0 && strcmp(value, "never") == 0)
        (void)set_local(o, &unset, at, value);
    return true;
}

static bool config_pass_over(void *arg, const struct origin *at, const char *what)
{
    (void)arg;
    (void)at;
    (void)what;
    return true;
}

static void look_for_never(struct options *o, const char *path)
{
    const struct keyfile_visitor v = {take_local, config_pass_over, o};
    char why[KEYFILE_WHY];
    char *text = *path ? keyfile_read(path, why) : NULL;
    if (text)
        (void)keyfile_each(text, path, &v);
    free(text);
}

void config_find_never(struct options *o)
{
    char path[CONFIG_PATH_CAP];
    const char *value = getenv("CLAVE_LOCAL");
    const struct origin at = {.key = "CLAVE_LOCAL"};
    if (value)
        (void)take_local(o, &at, "local", value);
    user_path(path);
    look_for_never(o, path);
    system_path(path);
    look_for_never(o, path);
}
