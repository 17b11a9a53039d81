#include "cmd/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/keyfile.h"
#include "cmd/tell.h"

__attribute__((format(printf, 2, 3))) static bool bad(const struct origin *at, const char *fmt, ...)
{
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (at->file)
        tell(NULL, "%s:%u: %s", at->file, at->line, what);
    else
        tell(NULL, "environment variable %s: %s", at->key, what);
    return false;
}

bool config_auth_ok(const char *auth, const char **fault)
{
    const char *id = strchr(auth, ':');
    *fault = "an identity is SCHEME:ID, such as digest:user:password";
    if (!id || id == auth || id[1] == '\0')
        return false;
    if (id - auth >= CONFIG_SCHEME_CAP) {
        *fault = "no scheme of an identity is that long";
        return false;
    }
    if (strncmp(auth, "digest:", 7) == 0 && !strchr(id + 1, ':')) {
        *fault = "a digest identity is digest:user:password";
        return false;
    }
    return true;
}

/* ---- keys --------------------------------------------------------------------------- */

static bool duration_in(const struct origin *at, const char *value, int64_t *ms)
{
    const char *fault;
    if (!duration_parse(value, ms, &fault))
        return bad(at, "'%s': %s", value, fault);
    if (*ms < 1 || *ms > OPTIONS_MAX_MS)
        return bad(at, "'%s': not between 1ms and 24d", value);
    return true;
}

/* What each source has left open for the ones behind it. */
struct open {
    bool connect, session_timeout, timeout, auth;
    bool tls[OPTIONS_TLS_TEXTS];
};

static struct open still_open(const struct options *o)
{
    struct open open = {.connect = !o->connect,
                        .session_timeout = o->session_timeout_ms == 0,
                        .timeout = !o->timeout_given,
                        .auth = o->nauth == 0};
    for (size_t i = 0; i < OPTIONS_TLS_TEXTS; i++)
        open.tls[i] = !o->tls_texts[i];
    return open;
}

/* false: it is no key of these. */
static bool set_tls(struct options *o, const struct open *open, const char *key, const char *value)
{
    static const char *const keys[OPTIONS_TLS_TEXTS] = {"tls-ca", "tls-cert", "tls-key",
                                                        "tls-name"};
    for (size_t i = 0; i < OPTIONS_TLS_TEXTS; i++) {
        if (strcmp(key, keys[i]) != 0)
            continue;
        if (open->tls[i])
            o->tls_texts[i] = value;
        return true;
    }
    return false;
}

static bool set(struct options *o, const struct open *open, const struct origin *at,
                const char *key, const char *value)
{
    const char *fault;
    int64_t ms;
    if (strcmp(key, "connect") == 0) {
        if (open->connect)
            o->connect = value;
    } else if (strcmp(key, "session-timeout") == 0) {
        if (!duration_in(at, value, &ms))
            return false;
        if (open->session_timeout)
            o->session_timeout_ms = (int32_t)ms;
    } else if (strcmp(key, "timeout") == 0) {
        if (!duration_in(at, value, &ms))
            return false;
        if (open->timeout) {
            o->timeout_ms = ms;
            o->timeout_given = true;
        }
    } else if (strcmp(key, "auth") == 0) {
        if (!config_auth_ok(value, &fault))
            return bad(at, "%s", fault);
        if (open->auth && o->nauth == OPTIONS_MAX_AUTH)
            return bad(at, "at most %d identities", OPTIONS_MAX_AUTH);
        if (open->auth)
            o->auth[o->nauth++] = value;
    } else if (!set_tls(o, open, key, value)) {
        return bad(at,
                   "unknown key '%s' (there are connect, session-timeout, timeout, auth, tls-ca, "
                   "tls-cert, tls-key and tls-name)",
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
    };
    struct open open = still_open(o);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i].name);
        struct origin at = {.key = names[i].name};
        if (value && *value && !set(o, &open, &at, names[i].key, value))
            return false;
    }
    return true;
}

/* ---- the file ----------------------------------------------------------------------------- */

struct filling {
    struct options *o;
    struct open open;
};

static bool set_line(void *arg, const struct origin *at, const char *key, const char *value)
{
    const struct filling *f = arg;
    return set(f->o, &f->open, at, key, value);
}

static bool bad_line(void *arg, const struct origin *at, const char *what)
{
    (void)arg;
    return bad(at, "%s", what);
}

bool config_read(struct options *o, char *text, const char *path)
{
    struct filling f = {o, still_open(o)};
    const struct keyfile_visitor v = {set_line, bad_line, &f};
    return keyfile_each(text, path, &v);
}

static bool apply_file(struct options *o, const char *path, bool must)
{
    o->config = keyfile_read(path);
    if (!o->config) {
        if (!must && (errno == ENOENT || errno == ENOTDIR))
            return true;
        tell(NULL, "configuration %s: %s", path, strerror(errno));
        return false;
    }
    return config_read(o, o->config, path);
}

bool config_apply(struct options *o)
{
    char path[4096];
    const char *given = getenv("CLAVE_CONFIG"), *xdg = getenv("XDG_CONFIG_HOME"),
               *home = getenv("HOME");
    if (!apply_environment(o))
        return false;
    if (given && *given)
        return apply_file(o, given, true);
    int n = 0;
    if (xdg && *xdg == '/') /* the XDG specification: relative paths are to be ignored */
        n = snprintf(path, sizeof path, "%s/clave/config", xdg);
    else if (home && *home)
        n = snprintf(path, sizeof path, "%s/.config/clave/config", home);
    if (n <= 0 || (size_t)n >= sizeof path)
        return true;
    return apply_file(o, path, false);
}
