/* serve_settings.c - the table of all settings, their checks and defaults (serve_settings.h). Every
 * way in, flag, file or zoo.cfg, goes through settings_set and the same checks. */
#include "cmd/serve/serve_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/cmd_options.h"

enum { DEFAULT_TICK_MS = 2000 };
/* The first request of a connection has 45 to 49 bytes: with less no client could connect. */
enum { LEAST_REQUEST = 64 };

struct settings_text {
    struct settings_text *next;
    char text[];
};

enum kind {
    KIND_TEXT,
    KIND_MS32, /* a duration, as int32_t milliseconds */
    KIND_MS64,
    KIND_INT32,
    KIND_SIZE,
    KIND_SWITCH,
    KIND_WORD, /* an enum, by `words` */
    KIND_LISTEN,
    KIND_HTTP, /* addresses, with commas between them */
};

enum verbs { IN_SERVE, IN_BOTH, IN_GATE };

struct setting {
    const char *name;
    enum kind kind;
    size_t at; /* in struct serve_settings */
    int64_t min, max;
    const char *const *words; /* NULL after the last one */
    clave_err (*verify)(const char *value, const struct fault *f);
    enum verbs in; /* whose setting it is */
    bool live;     /* may change while the server runs */
    bool secret;   /* its value is never shown */
};

void settings_init(struct serve_settings *v, bool is_gate)
{
    memset(v, 0, sizeof *v);
    v->is_gate = is_gate;
    v->run.signals = true;
    v->run.listen = v->listen;
}

void settings_fini(struct serve_settings *v)
{
    while (v->texts) {
        struct settings_text *next = v->texts->next;
        free(v->texts);
        v->texts = next;
    }
}

const char *settings_keep(struct serve_settings *v, const char *text)
{
    size_t n = strlen(text) + 1;
    struct settings_text *t = malloc(sizeof *t + n);
    if (!t)
        return NULL;
    memcpy(t->text, text, n);
    t->next = v->texts;
    v->texts = t;
    return t->text;
}

/* ---- what values may be --------------------------------------------------------------------- */

static clave_err verify_super_digest(const char *value, const struct fault *f)
{
    enum { HASH_LEN = 28 };
    const char *colon = strchr(value, ':');
    if (colon && colon > value && strlen(colon + 1) == HASH_LEN)
        return CLAVE_OK;
    return clave__start_error(
        f, CLAVE_EINVAL, "expected USER:HASH, HASH being the base64 of the SHA-1 of user:password");
}

static clave_err verify_uid(const char *value, const struct fault *f)
{
    enum { MOST_DIGITS = 10 };
    size_t n = strlen(value);
    bool fine = strspn(value, "0123456789") == n && n > 0 && n <= MOST_DIGITS &&
                (*value != '0' || n == 1) && strtoull(value, NULL, 10) < UINT32_MAX;
    return fine ? CLAVE_OK
                : clave__start_error(f, CLAVE_EINVAL, "expected the number of a user: 'id -u'");
}

static clave_err verify_schemes(const char *value, const struct fault *f)
{
    static const char known[] = ",digest,ip,uid,x509,";
    size_t n = 0;
    for (const char *at = value;; at += n + 1) {
        char word[16];
        n = strcspn(at, ",");
        snprintf(word, sizeof word, ",%.*s,", (int)n, at);
        if (n == 0 || n > sizeof word - 3 || !strstr(known, word))
            return clave__start_error(
                f, CLAVE_EINVAL, "no such scheme '%.*s'; known: digest, ip, uid, x509", (int)n, at);
        if (at[n] == '\0')
            return CLAVE_OK;
    }
}

static clave_err verify_words(const char *value, const struct fault *f)
{
    enum { WORD_LEN = 4 };
    static const char known[] = SERVER_WORDS "," SERVER_OTHER_WORDS;
    size_t n = 0;
    bool fine = strcmp(value, "*") == 0;
    for (const char *at = value; !fine; at += n + 1) {
        char word[WORD_LEN + 1] = "";
        n = strcspn(at, ",");
        memcpy(word, at, n == WORD_LEN ? n : 0);
        if (!*word || !strstr(known, word))
            return clave__start_error(f, CLAVE_EINVAL, "no such word '%.*s'; known: %s", (int)n, at,
                                      known);
        fine = at[n] == '\0';
    }
    return CLAVE_OK;
}

static clave_err verify_file(const char *value, const struct fault *f)
{
    return *value ? CLAVE_OK : clave__start_error(f, CLAVE_EINVAL, "expected a file, or -");
}

static clave_err verify_paths(const char *value, const struct fault *f)
{
    size_t n = 0;
    for (const char *at = value;; at += n + 1) {
        n = strcspn(at, ",");
        if (n == 0 || *at != '/')
            return clave__start_error(f, CLAVE_EINVAL, "expected paths with commas between: /a,/b");
        if (at[n] == '\0')
            return CLAVE_OK;
    }
}

static bool is_tls(const char *address)
{
    return strncmp(address, "tls:", 4) == 0;
}

static clave_err verify_http(const char *value, const struct fault *f)
{
    const char *at = is_tls(value) ? value + 4 : value;
    const char *end = strrchr(at, ']'), *colon = strchr(end ? end : at, ':');
    if (is_tls(value) && strncmp(at, "unix:", 5) == 0)
        return clave__start_error(f, CLAVE_EINVAL, "a Unix socket has no TLS");
    if (strncmp(value, "unix:", 5) == 0 || (colon && colon[1] != '\0'))
        return CLAVE_OK;
    return clave__start_error(f, CLAVE_EINVAL,
                              "expected host:port, [v6]:port, *:port or unix:/path");
}

/* TLS is not supported here: three ways to say who may ask would be confusing. */
static clave_err verify_admin(const char *value, const struct fault *f)
{
    return is_tls(value)
               ? clave__start_error(f, CLAVE_EINVAL, "the admin pages are served only without TLS")
               : verify_http(value, f);
}

/* Normalised, so that it can be compared with request paths and put into a page. */
static clave_err verify_url(const char *value, const struct fault *f)
{
    static const char fine[] =
        "/-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strlen(value);
    if (n > 1 && n < ADMIN_URL_CAP && *value == '/' && value[n - 1] != '/' &&
        strspn(value, fine) == n && strcmp(value, "/metrics") != 0)
        return CLAVE_OK;
    return clave__start_error(
        f, CLAVE_EINVAL,
        "expected a path such as /commands: letters, digits and -._~ between '/', "
        "shorter than %d bytes, and not /metrics",
        ADMIN_URL_CAP);
}

static const char *const switch_words[] = {"false", "true", NULL};
static const char *const client_words[] = {
    [TLS_CLIENTS_NEED] = "need", [TLS_CLIENTS_WANT] = "want", [TLS_CLIENTS_NONE] = "none", NULL};
static const char *const format_words[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};
static const char *const level_words[] = {[CLAVE_LOG_ERROR - 1] = "error",
                                          [CLAVE_LOG_WARN - 1] = "warn",
                                          [CLAVE_LOG_INFO - 1] = "info",
                                          [CLAVE_LOG_DEBUG - 1] = "debug",
                                          NULL};

#define AT(member) offsetof(struct serve_settings, member)
#define BOUND(what) AT(run.engine.bounds[BOUND_##what])
static const struct setting settings[] = {
    {"data", KIND_TEXT, AT(run.data_dir), .live = false},
    {"local", KIND_TEXT, AT(local), .live = false},
    {"listen", KIND_LISTEN, 0, .live = false},
    {"admin", KIND_TEXT, AT(run.admin), .verify = verify_admin, .live = false},
    {"admin-url", KIND_TEXT, AT(run.admin_url), .verify = verify_url, .live = false},
    {"metrics", KIND_TEXT, AT(run.metrics), .verify = verify_admin, .live = false},
    {"audit", KIND_TEXT, AT(run.audit), .verify = verify_file, .live = false},
    {"connect", KIND_TEXT, AT(gate.connect), .in = IN_GATE, .live = false},
    {"http", KIND_HTTP, 0, .in = IN_BOTH, .live = false},
    {"http-tokens", KIND_TEXT, AT(gate.tokens), .in = IN_BOTH, .live = true},
    {"http-host", KIND_TEXT, AT(gate.hosts), .in = IN_BOTH, .live = true},
    {"http-audit", KIND_TEXT, AT(gate.audit), .verify = verify_file, .in = IN_BOTH, .live = false},
    {"http-key", KIND_TEXT, AT(gate.key), .in = IN_BOTH, .live = false},
    {"http-metric-paths", KIND_TEXT, AT(gate.metric_paths), .verify = verify_paths, .in = IN_BOTH,
     .live = false},
    {"http-max-connections", KIND_SIZE, AT(gate.max_connections), 1, 1000000, .in = IN_BOTH,
     .live = false},
    {"http-max-waiting", KIND_SIZE, AT(gate.max_waiting), 1, 1000000, .in = IN_BOTH, .live = false},
    {"http-max-body", KIND_SIZE, AT(gate.max_body), 1024, 64 << 20, .in = IN_BOTH, .live = false},
    {"http-tls-cert", KIND_TEXT, AT(gate.tls.cert_file), .in = IN_BOTH, .live = false},
    {"http-tls-key", KIND_TEXT, AT(gate.tls.key_file), .in = IN_BOTH, .live = false},
    {"http-tls-ca", KIND_TEXT, AT(gate.tls.ca_file), .in = IN_BOTH, .live = false},
    {"http-tls-clients", KIND_WORD, AT(gate.tls.clients), .words = client_words, .in = IN_BOTH,
     .live = false},
    {"tick", KIND_MS32, AT(run.engine.tick_ms), 1, 60000, .live = false},
    {"max-request", KIND_SIZE, AT(run.engine.max_frame), LEAST_REQUEST, 0x1fffffff, .live = false},
    {"tls-cert", KIND_TEXT, AT(tls.cert_file), .live = false},
    {"tls-key", KIND_TEXT, AT(tls.key_file), .live = false},
    {"tls-ca", KIND_TEXT, AT(tls.ca_file), .live = false},
    {"tls-clients", KIND_WORD, AT(tls.clients), .words = client_words, .live = false},
    {"min-session-timeout", KIND_MS32, AT(run.engine.min_session_ms), 1, OPTIONS_MAX_MS,
     .live = true},
    {"max-session-timeout", KIND_MS32, AT(run.engine.max_session_ms), 1, OPTIONS_MAX_MS,
     .live = true},
    {"max-connections", KIND_INT32, AT(run.max_per_address), 0, INT32_MAX, .live = true},
    {"max-sessionless", KIND_INT32, AT(run.max_sessionless), 0, INT32_MAX, .live = true},
    {"max-all-connections", KIND_SIZE, AT(run.engine.max_connections), 0, INT32_MAX, .live = true},
    {"sessionless-timeout", KIND_MS32, AT(run.engine.sessionless_ms), 1, OPTIONS_MAX_MS,
     .live = true},
    {"max-outstanding", KIND_SIZE, AT(run.engine.max_outstanding), 1, INT32_MAX, .live = true},
    {"max-undelivered", KIND_SIZE, AT(run.engine.max_undelivered), 1024 * 1024, INT64_MAX / 4,
     .live = true},
    {"max-watches", KIND_SIZE, BOUND(WATCHES), 1, INT32_MAX, .live = true},
    {"max-connection-watches", KIND_SIZE, BOUND(CONNECTION_WATCHES), 1, INT32_MAX, .live = true},
    {"max-sessions", KIND_SIZE, BOUND(SESSIONS), 1, INT32_MAX, .live = true},
    {"max-answer", KIND_SIZE, BOUND(ANSWER), 1024, INT32_MAX, .live = true},
    {"max-name", KIND_SIZE, BOUND(NAME), 255, INT32_MAX, .live = true},
    {"max-path", KIND_SIZE, BOUND(PATH), 255, INT32_MAX, .live = true},
    {"max-depth", KIND_SIZE, BOUND(DEPTH), 8, INT32_MAX, .live = true},
    {"snap-count", KIND_INT32, AT(run.engine.snap_count), 2, INT32_MAX, .live = true},
    {"slow-ms", KIND_INT32, AT(run.engine.slow_ms), 0, INT32_MAX, .live = true},
    {"container-check", KIND_MS32, AT(run.engine.container_check_ms), 1, INT32_MAX, .live = true},
    {"container-rate", KIND_INT32, AT(run.engine.container_rate), 1, INT32_MAX, .live = true},
    {"container-unused", KIND_MS64, AT(run.engine.never_used_ms), 0, OPTIONS_MAX_MS, .live = true},
    {"extended-types", KIND_SWITCH, AT(run.engine.extended_types), .live = true},
    {"enforce-quota", KIND_SWITCH, AT(run.engine.enforce_quota), .live = true},
    {"super-digest", KIND_TEXT, AT(run.engine.super_digest), .verify = verify_super_digest,
     .live = true, .secret = true},
    {"x509-super", KIND_TEXT, AT(run.engine.x509_super), .live = true},
    {"super-uid", KIND_TEXT, AT(run.engine.super_uid), .verify = verify_uid, .live = true},
    {"require-auth", KIND_TEXT, AT(run.engine.require_auth), .verify = verify_schemes,
     .live = true},
    {"words", KIND_TEXT, AT(run.engine.words), .verify = verify_words, .live = true},
    {"idle-exit", KIND_MS64, AT(run.idle_exit_ms), 1, OPTIONS_MAX_MS, .live = true},
    {"log-format", KIND_WORD, AT(log_format), .words = format_words, .in = IN_BOTH, .live = true},
    {"log-level", KIND_WORD, AT(log_level), .words = level_words, .in = IN_BOTH, .live = true},
};
enum { NSETTINGS = sizeof settings / sizeof *settings };
_Static_assert((int)NSETTINGS <= (int)SETTINGS_CAP,
               "there is room for each in struct serve_settings");

static const struct setting *serve_settings_find(const char *name)
{
    for (size_t i = 0; i < NSETTINGS; i++)
        if (strcmp(name, settings[i].name) == 0)
            return &settings[i];
    return NULL;
}

bool settings_exist(const char *name)
{
    return serve_settings_find(name) != NULL;
}

/* ---- taking a value ------------------------------------------------------------------------- */

static clave_err parse_duration(const struct setting *s, const char *value, int64_t *out,
                                const struct fault *f)
{
    char least[DURATION_CAP], most[DURATION_CAP];
    const char *why;
    if (!duration_parse(value, out, &why))
        return clave__start_error(f, CLAVE_EINVAL, "%s", why);
    if (*out < s->min || *out > s->max)
        return clave__start_error(f, CLAVE_EINVAL, "not between %s and %s",
                                  duration_format(s->min, least), duration_format(s->max, most));
    return CLAVE_OK;
}

static clave_err serve_settings_parse_number(const struct setting *s, const char *value,
                                             int64_t *out, const struct fault *f)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || n < s->min || n > s->max)
        return clave__start_error(f, CLAVE_EINVAL, "not a number from %lld to %lld",
                                  (long long)s->min, (long long)s->max);
    *out = n;
    return CLAVE_OK;
}

static clave_err parse_word(const char *const *words, const char *value, int64_t *out,
                            const struct fault *f)
{
    char all[64] = "";
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(value, words[i]) == 0) {
            *out = (int64_t)i;
            return CLAVE_OK;
        }
        strcat(strcat(all, i == 0 ? "" : words[i + 1] ? ", " : " or "), words[i]);
    }
    return clave__start_error(f, CLAVE_EINVAL, "it is %s", all);
}

/* `kept` is v's own, and is cut at the commas. */
static clave_err set_http(struct serve_settings *v, const char *kept, const struct fault *f)
{
    char *rest = NULL, *text = (char *)(uintptr_t)kept;
    for (char *a = strtok_r(text, ",", &rest); a; a = strtok_r(NULL, ",", &rest)) {
        clave_err err = verify_http(a, f);
        if (err != CLAVE_OK)
            return err;
        if (v->gate.nhttp == SETTINGS_MAX_LISTEN)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d addresses", SETTINGS_MAX_LISTEN);
        v->gate.http[v->gate.nhttp++] = a;
    }
    return CLAVE_OK;
}

static clave_err set_text(struct serve_settings *v, const struct setting *s, const char *value,
                          const struct fault *f)
{
    clave_err err = s->verify ? s->verify(value, f) : CLAVE_OK;
    const char *kept = err == CLAVE_OK ? settings_keep(v, value) : NULL;
    if (err != CLAVE_OK)
        return err;
    if (!kept)
        return CLAVE_ENOMEM;
    if (s->kind == KIND_HTTP)
        return set_http(v, kept, f);
    if (s->kind == KIND_TEXT) {
        memcpy((char *)v + s->at, &kept, sizeof kept);
        return CLAVE_OK;
    }
    if (v->run.nlisten == SETTINGS_MAX_LISTEN)
        return clave__start_error(f, CLAVE_EINVAL, "at most %d addresses", SETTINGS_MAX_LISTEN);
    v->listen[v->run.nlisten++] = kept;
    return CLAVE_OK;
}

static void store(struct serve_settings *v, const struct setting *s, int64_t n)
{
    char *to = (char *)v + s->at;
    /* 0 in a file means "no limit", but in the struct "not given" */
    if (to == (char *)&v->run.max_per_address && n == 0)
        n = -1;
    if (to == (char *)&v->log_level) /* levels start at 1 */
        n++;
    switch (s->kind) {
    case KIND_SWITCH:
        *(bool *)to = n != 0;
        break;
    case KIND_MS64:
        memcpy(to, &n, sizeof n);
        break;
    case KIND_SIZE:
        *(size_t *)(void *)to = (size_t)n;
        break;
    case KIND_MS32:
    case KIND_INT32:
    case KIND_WORD:
        *(int32_t *)(void *)to = (int32_t)n;
        break;
    case KIND_TEXT: /* not numbers: set_text */
    case KIND_LISTEN:
    case KIND_HTTP:
        break;
    }
}

_Static_assert(sizeof(enum tls_clients) == sizeof(int32_t), "stored as one");
_Static_assert(sizeof(enum log_format) == sizeof(int32_t), "likewise");

static clave_err settings_take(struct serve_settings *v, const struct setting *s, const char *value,
                               const struct fault *f)
{
    clave_err err;
    int64_t n = 0;
    switch (s->kind) {
    case KIND_TEXT:
    case KIND_LISTEN:
    case KIND_HTTP:
        return set_text(v, s, value, f);
    case KIND_MS32:
    case KIND_MS64:
        err = parse_duration(s, value, &n, f);
        break;
    case KIND_SWITCH:
        err = parse_word(switch_words, value, &n, f);
        break;
    case KIND_WORD:
        err = parse_word(s->words, value, &n, f);
        break;
    case KIND_INT32:
    case KIND_SIZE:
    default:
        err = serve_settings_parse_number(s, value, &n, f);
        break;
    }
    if (err == CLAVE_OK)
        store(v, s, n);
    return err;
}

clave_err settings_set(struct serve_settings *v, const char *name, const char *value,
                       const struct fault *f)
{
    const struct setting *s = serve_settings_find(name);
    if (!s || s->in == (v->is_gate ? IN_SERVE : IN_GATE))
        return clave__start_error(f, CLAVE_EINVAL,
                                  v->is_gate
                                      ? "there is no such setting of a gate; --auth, --tls-* and "
                                        "--session-timeout are flags, or in clave's configuration: "
                                        "clave(1)"
                                      : "there is no such setting");
    clave_err err = settings_take(v, s, value, f);
    const char *given = err == CLAVE_OK ? settings_keep(v, value) : NULL;
    v->given[s - settings] = given;
    return err == CLAVE_OK && !given ? CLAVE_ENOMEM : err;
}

/* ---- all of it together --------------------------------------------------------------------- */

/* Whether an address begins with this: "tls:", "unix:". */
static bool listens_on(const struct serve_settings *v, const char *kind)
{
    for (size_t i = 0; i < v->run.nlisten; i++)
        if (strncmp(v->listen[i], kind, strlen(kind)) == 0)
            return true;
    return false;
}

static bool has_unix_socket(const struct serve_settings *v)
{
    return v->local || listens_on(v, "unix:");
}

/* A scheme of which no client can have an identity locks everybody out. */
static clave_err check_schemes(const struct serve_settings *v, const struct fault *f)
{
    const char *schemes = v->run.engine.require_auth;
    if (!schemes || strstr(schemes, "digest") || strstr(schemes, "ip"))
        return CLAVE_OK;
    if (strstr(schemes, "uid") && has_unix_socket(v))
        return CLAVE_OK;
    if (strstr(schemes, "x509") && listens_on(v, "tls:") && v->tls.clients != TLS_CLIENTS_NONE)
        return CLAVE_OK;
    return clave__start_error(f, CLAVE_EINVAL,
                              "--require-auth %s locks everybody out: x509 needs --listen tls:ADDR "
                              "and clients with certificates, uid needs --listen unix:PATH",
                              schemes);
}

void settings_tell_useless(const struct serve_settings *v, const struct log *log)
{
    if (v->run.engine.super_uid && !has_unix_socket(v))
        clave__log(log, CLAVE_LOG_WARN,
                   "--super-uid %s applies to nobody: add --listen unix:PATH, over TCP nobody has "
                   "a uid",
                   v->run.engine.super_uid);
}

/* What the addresses with "tls:" of one flag need; their flags begin with `http`: "", "http-". */
static clave_err check_tls_files(const struct tls_server_options *t, const char *http,
                                 const struct fault *f)
{
    if (!t->cert_file && t->key_file)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--%stls-key %s has no certificate: name it with --%stls-cert "
                                  "FILE",
                                  http, t->key_file, http);
    if (!t->cert_file)
        return clave__start_error(
            f, CLAVE_EINVAL,
            "an address for TLS needs --%stls-cert FILE, and --%stls-key FILE unless "
            "the key is in the same file",
            http, http);
    if (!t->ca_file && t->clients != TLS_CLIENTS_NONE)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "name the authorities for clients' certificates with --%stls-ca "
                                  "FILE, or require none with --%stls-clients none",
                                  http, http);
    return CLAVE_OK;
}

static clave_err check_tls(struct serve_settings *v, const struct fault *f)
{
    const struct tls_server_options *t = &v->tls;
    bool listens = listens_on(v, "tls:");
    if (!listens && (t->ca_file || t->cert_file || t->key_file || v->run.engine.x509_super))
        return clave__start_error(f, CLAVE_EINVAL, "no address for TLS: add --listen tls:ADDR");
    if (!listens)
        return CLAVE_OK;
    v->run.tls = t;
    return check_tls_files(t, "", f);
}

/* Those of HTTP have tokens: a certificate is asked for if it could be verified, and needed only if
 * that is said. */
static clave_err check_http_tls(struct serve_settings *v, const struct fault *f)
{
    struct tls_server_options *t = &v->gate.tls;
    bool listens = false;
    for (size_t i = 0; i < v->gate.nhttp; i++)
        listens = listens || is_tls(v->gate.http[i]);
    if (!listens && (t->ca_file || t->cert_file || t->key_file))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "no address for HTTP with TLS: add --http tls:ADDR");
    if (!v->given[serve_settings_find("http-tls-clients") - settings])
        t->clients = t->ca_file ? TLS_CLIENTS_WANT : TLS_CLIENTS_NONE;
    return listens ? check_tls_files(t, "http-", f) : CLAVE_OK;
}

/* What is of use only with an address for it. */
static clave_err check_http(struct serve_settings *v, const struct fault *f)
{
    const struct gate_settings *g = &v->gate;
    if (g->nhttp == 0 && v->is_gate)
        return clave__start_error(f, CLAVE_EINVAL, "name an address with --http ADDR");
    if (g->nhttp == 0 && (g->tokens || g->hosts || g->audit || g->key || g->metric_paths ||
                          g->max_connections > 0 || g->max_waiting > 0 || g->max_body > 0))
        return clave__start_error(f, CLAVE_EINVAL, "no address for HTTP: add --http ADDR");
    return check_http_tls(v, f);
}

clave_err settings_check(struct serve_settings *v, const struct fault *f)
{
    const struct server_options *engine = &v->run.engine;
    clave_err err = check_http(v, f);
    if (err != CLAVE_OK || v->is_gate)
        return err;
    if (v->local && (v->run.data_dir || v->run.nlisten > 0))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--local has its own data directory and address");
    if (v->local && (v->run.admin || v->run.metrics || v->gate.nhttp > 0))
        return clave__start_error(f, CLAVE_EINVAL, "--local serves no HTTP");
    if (v->run.admin_url && !v->run.admin)
        return clave__start_error(f, CLAVE_EINVAL, "--admin-url needs --admin ADDR");
    if (!v->local && (!v->run.data_dir || !*v->run.data_dir))
        return clave__start_error(f, CLAVE_EINVAL, "name the data directory with --data DIR");
    int32_t tick = engine->tick_ms > 0 ? engine->tick_ms : DEFAULT_TICK_MS;
    int32_t least = engine->min_session_ms > 0 ? engine->min_session_ms : 2 * tick;
    if (engine->max_session_ms > 0 && least > engine->max_session_ms)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--min-session-timeout, 2 ticks unless given, is above "
                                  "--max-session-timeout");
    if (!v->local && v->run.nlisten == 0)
        v->listen[v->run.nlisten++] = "127.0.0.1:2181";
    err = check_tls(v, f);
    return err == CLAVE_OK ? check_schemes(v, f) : err;
}

/* ---- what cannot change --------------------------------------------------------------------- */

static bool serve_settings_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_list(const char *const *a, size_t na, const char *const *b, size_t nb)
{
    bool same = na == nb;
    for (size_t i = 0; same && i < na; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

static bool same(const struct setting *s, const struct serve_settings *a,
                 const struct serve_settings *b)
{
    const char *at_a = (const char *)a + s->at, *at_b = (const char *)b + s->at;
    const char *text_a, *text_b;
    if (s->kind == KIND_LISTEN)
        return same_list(a->listen, a->run.nlisten, b->listen, b->run.nlisten);
    if (s->kind == KIND_HTTP)
        return same_list(a->gate.http, a->gate.nhttp, b->gate.http, b->gate.nhttp);
    if (s->kind == KIND_TEXT) {
        memcpy(&text_a, at_a, sizeof text_a);
        memcpy(&text_b, at_b, sizeof text_b);
        return serve_settings_same_text(text_a, text_b);
    }
    if (s->kind == KIND_SIZE)
        return memcmp(at_a, at_b, sizeof(size_t)) == 0;
    return memcmp(at_a, at_b, sizeof(int32_t)) == 0; /* what else is fixed is an int32_t */
}

void settings_tell_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         const struct log *log)
{
    for (size_t i = 0; i < NSETTINGS; i++)
        if (!settings[i].live && !same(&settings[i], now, wanted))
            clave__log(log, CLAVE_LOG_WARN, "%s does not change until the next start",
                       settings[i].name);
}

void settings_list_changes(const struct serve_settings *before, const struct serve_settings *now,
                           char *out, size_t cap)
{
    static const char unset[] = "(default)";
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < NSETTINGS && n < cap; i++) {
        const char *from = before->given[i], *to = now->given[i];
        if (!settings[i].live || serve_settings_same_text(from, to))
            continue;
        n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? ", " : "", settings[i].name);
        if (n < cap && !settings[i].secret)
            n += (size_t)snprintf(out + n, cap - n, " %s -> %s", from ? from : unset,
                                  to ? to : unset);
        else if (n < cap)
            n += (size_t)snprintf(out + n, cap - n, " %s", to ? "changed" : "removed");
    }
}
