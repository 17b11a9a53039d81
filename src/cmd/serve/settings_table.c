/* settings_table.c - the table of all settings, and how each is taken and compared
 * (settings_table.h). Every way in, flag, file or zoo.cfg, goes through settings_set. */
#include "cmd/serve/settings_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/serve/settings_values.h"

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

/* ---- the table ------------------------------------------------------------------------------ */

static const char *const switch_words[] = {"false", "true", NULL};
static const char *const client_words[] = {
    [TLS_CLIENTS_NEED] = "need", [TLS_CLIENTS_WANT] = "want", [TLS_CLIENTS_NONE] = "none", NULL};
static const char *const format_words[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};
static const char *const time_words[] = {
    [LOG_TIME_AUTO] = "auto", [LOG_TIME_YES] = "yes", [LOG_TIME_NO] = "no", NULL};
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
    {"listen", KIND_LISTEN, 0, .verify = settings_verify_listen, .live = false},
    {"admin", KIND_TEXT, AT(run.admin), .verify = settings_verify_admin, .live = false},
    {"admin-url", KIND_TEXT, AT(run.admin_url), .verify = settings_verify_url, .live = false},
    {"metrics", KIND_TEXT, AT(run.metrics), .verify = settings_verify_admin, .live = false},
    {"audit", KIND_TEXT, AT(run.audit), .live = false},
    {"connect", KIND_TEXT, AT(gate.connect), .in = IN_GATE, .live = false},
    {"http", KIND_HTTP, 0, .in = IN_BOTH, .live = false},
    {"http-tokens", KIND_TEXT, AT(gate.access.tokens), .in = IN_BOTH, .live = true},
    {"http-host", KIND_TEXT, AT(gate.access.hosts), .in = IN_BOTH, .live = true},
    {"http-public", KIND_TEXT, AT(gate.access.publics), .in = IN_BOTH, .live = true},
    {"http-prefix", KIND_TEXT, AT(gate.access.prefix), .in = IN_BOTH, .live = true},
    {"http-proxy", KIND_TEXT, AT(gate.access.proxies), .in = IN_BOTH, .live = true},
    {"fleetlock", KIND_TEXT, AT(gate.access.fleetlock), .in = IN_BOTH, .live = true},
    {"fleetlock-from", KIND_TEXT, AT(gate.access.fleets), .in = IN_BOTH, .live = true},
    {"http-audit", KIND_TEXT, AT(gate.audit), .in = IN_BOTH, .live = false},
    {"http-key", KIND_TEXT, AT(gate.key), .in = IN_BOTH, .live = false},
    {"http-metric-paths", KIND_TEXT, AT(gate.metric_paths), .verify = settings_verify_paths,
     .in = IN_BOTH, .live = false},
    {"http-max-connections", KIND_SIZE, AT(gate.max_connections), 1, 1000000, .in = IN_BOTH,
     .live = true},
    {"http-max-waiting", KIND_SIZE, AT(gate.max_waiting), 1, 1000000, .in = IN_BOTH, .live = true},
    {"http-max-sender-sessions", KIND_SIZE, AT(gate.max_sender_sessions), 1, 1000000, .in = IN_BOTH,
     .live = true},
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
    {"max-disconnected", KIND_SIZE, BOUND(DISCONNECTED), 1, INT32_MAX, .live = true},
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
    {"super-digest", KIND_TEXT, AT(run.engine.super_digest), .verify = settings_verify_super_digest,
     .live = true, .secret = true},
    {"x509-super", KIND_TEXT, AT(run.engine.x509_super), .live = true},
    {"super-uid", KIND_TEXT, AT(run.engine.super_uid), .verify = settings_verify_uid, .live = true},
    {"require-auth", KIND_TEXT, AT(run.engine.require_auth), .verify = settings_verify_schemes,
     .live = true},
    {"words", KIND_TEXT, AT(run.engine.words), .verify = settings_verify_words, .live = true},
    {"idle-exit", KIND_MS64, AT(run.idle_exit_ms), 1, OPTIONS_MAX_MS, .live = true},
    {"log-format", KIND_WORD, AT(log_format), .words = format_words, .in = IN_BOTH, .live = true},
    {"log-time", KIND_WORD, AT(log_time), .words = time_words, .in = IN_BOTH, .live = true},
    {"log-level", KIND_WORD, AT(log_level), .words = level_words, .in = IN_BOTH, .live = true},
};
enum { NSETTINGS = sizeof settings / sizeof *settings };
_Static_assert((int)NSETTINGS <= (int)SETTINGS_CAP,
               "there is room for each in struct serve_settings");

static const struct setting *settings_table_find(const char *name)
{
    for (size_t i = 0; i < NSETTINGS; i++)
        if (strcmp(name, settings[i].name) == 0)
            return &settings[i];
    return NULL;
}

bool settings_exist(const char *name)
{
    return settings_table_find(name) != NULL;
}

const char *settings_given(const struct serve_settings *v, const char *name)
{
    return v->given[settings_table_find(name) - settings];
}

/* ---- taking a value ------------------------------------------------------------------------- */

static clave_err settings_parse_duration(const struct setting *s, const char *value, int64_t *out,
                                         const struct fault *f)
{
    const int64_t bounds[2] = {s->min, s->max};
    char text[DURATION_FAULT_CAP];
    const char *why = clave__duration_within(value, bounds, out, text);
    return why ? clave__start_error(f, CLAVE_EINVAL, "%s", why) : CLAVE_OK;
}

static clave_err settings_table_parse_number(const struct setting *s, const char *value,
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

static clave_err settings_parse_word(const char *const *words, const char *value, int64_t *out,
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
static clave_err settings_set_http(struct serve_settings *v, const char *kept,
                                   const struct fault *f)
{
    char *rest = NULL, *text = (char *)(uintptr_t)kept;
    size_t before = v->gate.nhttp;
    for (char *a = strtok_r(text, ",", &rest); a; a = strtok_r(NULL, ",", &rest)) {
        clave_err err = settings_verify_http(a, f);
        if (err != CLAVE_OK)
            return err;
        if (v->gate.nhttp == SETTINGS_MAX_LISTEN)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d addresses", SETTINGS_MAX_LISTEN);
        v->gate.http[v->gate.nhttp++] = a;
    }
    return v->gate.nhttp > before ? CLAVE_OK
                                  : clave__start_error(f, CLAVE_EINVAL, "it names no address");
}

/* Without a name of a file a certificate would be taken as not given, and the authorities as those
 * of the system. */
static clave_err settings_set_text(struct serve_settings *v, const struct setting *s,
                                   const char *value, const struct fault *f)
{
    if (!*value)
        return clave__start_error(f, CLAVE_EINVAL, "it is empty");
    clave_err err = s->verify ? s->verify(value, f) : CLAVE_OK;
    const char *kept = err == CLAVE_OK ? settings_keep(v, value) : NULL;
    if (err != CLAVE_OK)
        return err;
    if (!kept)
        return CLAVE_ENOMEM;
    if (s->kind == KIND_HTTP)
        return settings_set_http(v, kept, f);
    if (s->kind == KIND_TEXT) {
        memcpy((char *)v + s->at, &kept, sizeof kept);
        return CLAVE_OK;
    }
    if (v->run.nlisten == SETTINGS_MAX_LISTEN)
        return clave__start_error(f, CLAVE_EINVAL, "at most %d addresses", SETTINGS_MAX_LISTEN);
    v->listen[v->run.nlisten++] = kept;
    return CLAVE_OK;
}

static void settings_store(struct serve_settings *v, const struct setting *s, int64_t n)
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
    case KIND_TEXT: /* not numbers: settings_set_text */
    case KIND_LISTEN:
    case KIND_HTTP:
        break;
    }
}

_Static_assert(sizeof(enum tls_clients) == sizeof(int32_t), "stored as one");
_Static_assert(sizeof(enum log_format) == sizeof(int32_t), "likewise");
_Static_assert(sizeof(enum log_time) == sizeof(int32_t), "likewise");

static clave_err settings_take(struct serve_settings *v, const struct setting *s, const char *value,
                               const struct fault *f)
{
    clave_err err;
    int64_t n = 0;
    switch (s->kind) {
    case KIND_TEXT:
    case KIND_LISTEN:
    case KIND_HTTP:
        return settings_set_text(v, s, value, f);
    case KIND_MS32:
    case KIND_MS64:
        err = settings_parse_duration(s, value, &n, f);
        break;
    case KIND_SWITCH:
        err = settings_parse_word(switch_words, value, &n, f);
        break;
    case KIND_WORD:
        err = settings_parse_word(s->words, value, &n, f);
        break;
    case KIND_INT32:
    case KIND_SIZE:
    default:
        err = settings_table_parse_number(s, value, &n, f);
        break;
    }
    if (err == CLAVE_OK)
        settings_store(v, s, n);
    return err;
}

clave_err settings_set(struct serve_settings *v, const char *name, const char *value,
                       const struct fault *f)
{
    const struct setting *s = settings_table_find(name);
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

/* ---- what cannot change --------------------------------------------------------------------- */

static bool settings_table_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool settings_same_list(const char *const *a, size_t na, const char *const *b, size_t nb)
{
    bool same = na == nb;
    for (size_t i = 0; same && i < na; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

static bool settings_same(const struct setting *s, const struct serve_settings *a,
                          const struct serve_settings *b)
{
    const char *at_a = (const char *)a + s->at, *at_b = (const char *)b + s->at;
    const char *text_a, *text_b;
    if (s->kind == KIND_LISTEN)
        return settings_same_list(a->listen, a->run.nlisten, b->listen, b->run.nlisten);
    if (s->kind == KIND_HTTP)
        return settings_same_list(a->gate.http, a->gate.nhttp, b->gate.http, b->gate.nhttp);
    if (s->kind == KIND_TEXT) {
        memcpy(&text_a, at_a, sizeof text_a);
        memcpy(&text_b, at_b, sizeof text_b);
        return settings_table_same_text(text_a, text_b);
    }
    if (s->kind == KIND_SIZE)
        return memcmp(at_a, at_b, sizeof(size_t)) == 0;
    return memcmp(at_a, at_b, sizeof(int32_t)) == 0; /* what else is fixed is an int32_t */
}

void settings_tell_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         const struct log *log)
{
    for (size_t i = 0; i < NSETTINGS; i++)
        if (!settings[i].live && !settings_same(&settings[i], now, wanted))
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
        if (!settings[i].live || settings_table_same_text(from, to))
            continue;
        n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? ", " : "", settings[i].name);
        if (n < cap && !settings[i].secret)
            n += (size_t)snprintf(out + n, cap - n, " %s -> %s", from ? from : unset,
                                  to ? to : unset);
        else if (n < cap)
            n += (size_t)snprintf(out + n, cap - n, " %s", to ? "changed" : "removed");
    }
}
