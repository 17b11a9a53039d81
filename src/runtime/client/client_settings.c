/* client_settings.c - reads the environment and the configuration files (client_settings.h). The
 * program does so once, after its flags; clave_client_open does so if no server is named. A value
 * that an earlier source has set is never overwritten, except that "local = never" wins wherever it
 * is. */
#include "runtime/client/client_settings.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/time_format.h"
#include "clave/tls.h"
#include "runtime/client/local_paths.h"
#include "runtime/text_file.h"

#ifndef CLAVE_SYSTEM_CONFIG_FILE /* packagers define it */
#define CLAVE_SYSTEM_CONFIG_FILE "/etc/clave/config"
#endif

enum { CONFIG_PATH_CAP = 4096 };

/* What earlier sources have left unset for later ones. */
struct unset {
    bool connect, session_timeout, timeout, auth, local;
    bool tls[CLIENT_TLS_TEXTS];
};

/* A source that is being read. */
struct source {
    struct client_settings *s;
    struct unset unset;
    const struct fault *f;
    clave_err err; /* what was wrong in this source */
    unsigned connect_line;
};

__attribute__((format(printf, 3, 4))) static bool
settings_error(struct source *from, const struct origin *at, const char *fmt, ...)
{
    assert(from->f && from->err != CLAVE_OK);
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (at->file)
        clave__start_error(from->f, from->err, "%s:%u: %s", at->file, at->line, what);
    else
        clave__start_error(from->f, from->err, "environment variable %s: %s", at->key, what);
    return false;
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* Refuses what would only fail at the server. */
static bool settings_auth_is_ok(const char *auth, const char **fault)
{
    const char *id = strchr(auth, ':');
    *fault = "an identity is SCHEME:ID, such as digest:user:password";
    if (!id || id == auth || id[1] == '\0')
        return false;
    if (id - auth >= CLIENT_SCHEME_CAP) {
        *fault = "the scheme of this identity is too long";
        return false;
    }
    if (strncmp(auth, "digest:", 7) == 0 && !strchr(id + 1, ':')) {
        *fault = "a digest identity is digest:user:password";
        return false;
    }
    return true;
}

bool clave__client_settings_add_auth(struct client_settings *s, const char *auth,
                                     const char **fault)
{
    if (!settings_auth_is_ok(auth, fault))
        return false;
    if (s->nauths == CLIENT_MAX_AUTH) {
        *fault = "at most 16 identities";
        return false;
    }
    char *scheme = s->schemes[s->nauths];
    size_t n = strcspn(auth, ":");
    assert(n < CLIENT_SCHEME_CAP); /* settings_auth_is_ok has made sure of that */
    memcpy(scheme, auth, n);
    scheme[n] = '\0';
    s->auths[s->nauths++] =
        (clave_auth){.scheme = scheme, .auth = auth + n + 1, .len = strlen(auth + n + 1)};
    return true;
}

static bool settings_duration_in(struct source *from, const struct origin *at, const char *value,
                                 int64_t *ms)
{
    static const int64_t bounds[2] = {1, CLIENT_MAX_MS};
    char text[DURATION_FAULT_CAP];
    const char *fault = clave__duration_within(value, bounds, ms, text);
    return !fault || settings_error(from, at, "'%s': %s", value, fault);
}

static struct source settings_source_begin(struct client_settings *s, const struct fault *f)
{
    struct source from = {.s = s,
                          .f = f,
                          .err = CLAVE_EINVAL,
                          .unset = {.connect = !s->connect,
                                    .session_timeout = s->session_timeout_ms == 0,
                                    .timeout = s->timeout_ms == 0,
                                    .auth = s->nauths == 0,
                                    .local = s->local == CLIENT_LOCAL_UNSAID}};
    for (size_t i = 0; i < CLIENT_TLS_TEXTS; i++)
        from.unset.tls[i] = !s->tls_texts[i];
    return from;
}

/* Returns false if this is not one of these keys. */
static bool settings_set_tls(struct source *from, const char *key, const char *value)
{
    static const char *const keys[CLIENT_TLS_TEXTS] = {"tls-ca", "tls-cert", "tls-key", "tls-name"};
    for (size_t i = 0; i < CLIENT_TLS_TEXTS; i++) {
        if (strcmp(key, keys[i]) != 0)
            continue;
        if (from->unset.tls[i])
            from->s->tls_texts[i] = value;
        return true;
    }
    return false;
}

/* Refuses a second list of servers in a file: depending on which one a reader believes, there would
 * be two locks of one name. */
static bool settings_set_connect(struct source *from, const struct origin *at, const char *value)
{
    unsigned before = from->connect_line;
    from->connect_line = at->line;
    if (before > 0)
        return settings_error(from, at, "connect: already set on line %u", before);
    if (!from->unset.connect)
        return true;
    const char *fault = clave_async_client_host_fault(value);
    from->s->connect = value;
    if (!fault)
        return true;
    from->err = CLAVE_EHOST;
    return settings_error(from, at, "invalid server list '%s': %s", value, fault);
}

/* "never" counts wherever it is set, so that a value left over in a file or in the environment
 * cannot lift a ban set elsewhere. */
static bool settings_set_local(struct source *from, const struct origin *at, const char *value)
{
    static const char *const words[] = {
        [CLIENT_LOCAL_WARN] = "warn", [CLIENT_LOCAL_YES] = "yes", [CLIENT_LOCAL_NEVER] = "never"};
    struct client_settings *s = from->s;
    enum client_local given = CLIENT_LOCAL_WARN;
    while (given <= CLIENT_LOCAL_NEVER && strcmp(value, words[given]) != 0)
        given++;
    if (given > CLIENT_LOCAL_NEVER)
        return settings_error(from, at, "'%s': expected yes, warn or never", value);
    if (s->local == CLIENT_LOCAL_NEVER || (given != CLIENT_LOCAL_NEVER && !from->unset.local))
        return true;
    s->local = given;
    if (at->file)
        snprintf(s->local_from, sizeof s->local_from, "%s:%u: local = never", at->file, at->line);
    else
        snprintf(s->local_from, sizeof s->local_from, "%s=never", at->key);
    return true;
}

static bool settings_set(struct source *from, const struct origin *at, const char *key,
                         const char *value)
{
    struct client_settings *s = from->s;
    const char *fault;
    int64_t ms;
    if (strcmp(key, "connect") == 0) {
        return settings_set_connect(from, at, value);
    } else if (strcmp(key, "session-timeout") == 0) {
        if (!settings_duration_in(from, at, value, &ms))
            return false;
        if (from->unset.session_timeout)
            s->session_timeout_ms = (int32_t)ms;
    } else if (strcmp(key, "timeout") == 0) {
        if (!settings_duration_in(from, at, value, &ms))
            return false;
        if (from->unset.timeout)
            s->timeout_ms = ms;
    } else if (strcmp(key, "auth") == 0) {
        if (from->unset.auth ? !clave__client_settings_add_auth(s, value, &fault)
                             : !settings_auth_is_ok(value, &fault))
            return settings_error(from, at, "%s", fault);
    } else if (strcmp(key, "local") == 0) {
        return settings_set_local(from, at, value);
    } else if (!settings_set_tls(from, key, value)) {
        return settings_error(from, at,
                              "unknown key '%s' (known: connect, session-timeout, timeout, auth, "
                              "local, tls-ca, tls-cert, tls-key and tls-name)",
                              key);
    }
    return true;
}

static clave_err settings_apply_environment(struct client_settings *s, const struct fault *f)
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
    struct source from = settings_source_begin(s, f);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = secure_getenv(names[i].name);
        struct origin at = {.key = names[i].name};
        if (value && *value && !settings_set(&from, &at, names[i].key, value))
            return from.err;
    }
    return CLAVE_OK;
}

/* ---- the files ------------------------------------------------------------------------------ */

static bool settings_set_line(void *arg, const struct origin *at, const char *key,
                              const char *value)
{
    return settings_set(arg, at, key, value);
}

static bool settings_bad_line(void *arg, const struct origin *at, const char *what)
{
    return settings_error(arg, at, "%s", what);
}

clave_err clave__client_settings_parse(struct client_settings *s, char *text, const char *path,
                                       const struct fault *f)
{
    struct source from = settings_source_begin(s, f);
    const struct keyfile_visitor v = {settings_set_line, settings_bad_line, &from};
    return clave__keyfile_each(text, path, &v) ? CLAVE_OK : from.err;
}

/* True if a source has named servers. The user's file might name servers, or forbid "local:". */
static bool settings_names_servers(const struct client_settings *s)
{
    return s->connect && !local_is(s->connect);
}

struct settings_file {
    char path[CONFIG_PATH_CAP]; /* "": there is none */
    bool must;                  /* a variable names it, so it has to exist */
};

static clave_err settings_apply_file(struct client_settings *s, const struct settings_file *file,
                                     char **text, const struct log *log, const struct fault *f)
{
    const char *path = file->path;
    char why[TEXT_FILE_WHY];
    *text = *path ? clave__text_file_read(path, why) : NULL;
    if (*text)
        return clave__client_settings_parse(s, *text, path, f);
    if (!*path || (!file->must && (errno == ENOENT || errno == ENOTDIR)))
        return CLAVE_OK;
    bool not_ours =
        !file->must && (errno == EACCES || errno == EPERM); /* HOME belongs to another user */
    if (not_ours && settings_names_servers(s)) {
        clave__log(log, CLAVE_LOG_WARN, "configuration %s: continuing without it", why);
        return CLAVE_OK;
    }
    clave_err err = clave__err_of_errno(errno);
    return clave__start_error(
        f, clave__start_error_passes(err) ? err : CLAVE_EINVAL, "configuration %s%s", why,
        not_ours ? " (--connect or CLAVE_CONNECT names the servers without it)" : "");
}

/* Not used by a process that runs with another user's rights than its caller's, because the caller
 * sets these variables. */
static struct settings_file settings_user_file(void)
{
    struct settings_file file;
    const char *given = secure_getenv("CLAVE_CONFIG"), *xdg = secure_getenv("XDG_CONFIG_HOME"),
               *home = secure_getenv("HOME");
    file.must = given && *given;
    int n = 0;
    if (file.must)
        n = snprintf(file.path, CONFIG_PATH_CAP, "%s", given);
    else if (xdg && *xdg == '/') /* the XDG specification says to ignore relative paths */
        n = snprintf(file.path, CONFIG_PATH_CAP, "%s/clave/config", xdg);
    else if (home && *home)
        n = snprintf(file.path, CONFIG_PATH_CAP, "%s/.config/clave/config", home);
    if (n <= 0 || n >= CONFIG_PATH_CAP)
        file.path[0] = '\0';
    return file;
}

/* The variable is like GIT_CONFIG_SYSTEM: somebody who can set it could just as well name other
 * servers. */
static struct settings_file settings_machine_file(void)
{
    struct settings_file file;
    const char *given = secure_getenv("CLAVE_SYSTEM_CONFIG");
    file.must = given && *given;
    snprintf(file.path, CONFIG_PATH_CAP, "%s", file.must ? given : CLAVE_SYSTEM_CONFIG_FILE);
    return file;
}

clave_err clave__client_settings_read(struct client_settings *s, const struct log *log,
                                      const struct fault *f)
{
    const struct settings_file user = settings_user_file(), machine = settings_machine_file();
    clave_err err = settings_apply_environment(s, f);
    if (err == CLAVE_OK)
        err = settings_apply_file(s, &user, &s->user_text, log, f);
    return err == CLAVE_OK ? settings_apply_file(s, &machine, &s->machine_text, log, f) : err;
}

void clave__client_settings_fini(struct client_settings *s)
{
    clave_tls_free(s->tls);
    free(s->user_text);
    free(s->machine_text);
    s->tls = NULL;
    s->user_text = s->machine_text = NULL;
}

/* ---- clients for which no servers are named -------------------------------------------------- */

static void settings_warn_of_local(char warning[CLIENT_WARNING_CAP])
{
    struct local_paths p;
    char fault[256];
    bool known = clave__local_paths(&p, NULL, fault, sizeof fault) == CLAVE_OK;
    snprintf(warning, CLIENT_WARNING_CAP,
             "acquired at local:, this user's own server at %s, since no server is named: other "
             "users and other machines are not excluded (CLAVE_CONNECT, or 'connect = HOSTS' in "
             "~/.config/clave/config or /etc/clave/config, names a shared one; 'local = yes' there "
             "ends this warning)",
             known ? p.socket : "an unknown place");
}

static clave_err settings_make_tls(struct client_settings *s, const struct fault *f)
{
    const clave_tls_options t = {.size = sizeof t,
                                 .ca_file = s->tls_texts[CLIENT_TLS_CA],
                                 .cert_file = s->tls_texts[CLIENT_TLS_CERT],
                                 .key_file = s->tls_texts[CLIENT_TLS_KEY],
                                 .server_name = s->tls_texts[CLIENT_TLS_NAME]};
    return clave_tls_new(&s->tls, &t, f->text, f->cap);
}

clave_err clave__client_settings_complete(struct client_settings *s, clave_client_options *o,
                                          char warning[CLIENT_WARNING_CAP], const struct fault *f)
{
    const struct log log = {.cb = o->log, .arg = o->log_arg};
    clave_err err = clave__client_settings_read(s, &log, f);
    warning[0] = '\0';
    if (err != CLAVE_OK)
        return err;
    o->hosts = s->connect ? s->connect : "local:";
    if (!s->connect && s->local != CLIENT_LOCAL_YES)
        settings_warn_of_local(warning);
    if (o->session_timeout_ms == 0)
        o->session_timeout_ms = s->session_timeout_ms;
    if (o->nauths == 0) {
        o->auths = s->auths;
        o->nauths = s->nauths;
    }
    if (!o->tls && strncmp(o->hosts, "tls:", 4) == 0)
        err = settings_make_tls(s, f);
    o->tls = s->tls ? s->tls : o->tls;
    return err;
}

/* ---- a single key ---------------------------------------------------------------------------- */

static bool settings_take_local(void *arg, const struct origin *at, const char *key,
                                const char *value)
{
    if (strcmp(key, "local") == 0 && strcmp(value, "never") == 0)
        (void)settings_set_local(arg, at, value);
    return true;
}

static bool settings_pass_over(void *arg, const struct origin *at, const char *what)
{
    (void)arg;
    (void)at;
    (void)what;
    return true;
}

static void settings_look_for_never(struct source *from, const struct settings_file *file)
{
    const struct keyfile_visitor v = {settings_take_local, settings_pass_over, from};
    char why[TEXT_FILE_WHY];
    char *text = *file->path ? clave__text_file_read(file->path, why) : NULL;
    if (text)
        (void)clave__keyfile_each(text, file->path, &v);
    free(text);
}

void clave__client_settings_find_never(struct client_settings *s)
{
    const struct settings_file user = settings_user_file(), machine = settings_machine_file();
    const char *value = secure_getenv("CLAVE_LOCAL");
    const struct origin at = {.key = "CLAVE_LOCAL"};
    struct source from = settings_source_begin(s, NULL);
    if (value)
        (void)settings_take_local(&from, &at, "local", value);
    settings_look_for_never(&from, &user);
    settings_look_for_never(&from, &machine);
}
