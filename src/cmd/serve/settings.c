/* settings.c - the settings of `clave serve` and `clave gate`: one table, and the functions that
 * check, store and compare a value (see settings.h).
 *
 * A row of the table is a setting: its flag, its line in --help, its key in the configuration file,
 * what its value may be and where it is stored, its default, and the key of Apache's zoo.cfg with
 * the same meaning. Whether a value comes from a flag, a file or a zoo.cfg, it passes through
 * settings_set. The defaults of the server's engine and of the gate are defined there, as constants
 * that the rows name; in the struct 0 means "not given". */
#include "cmd/serve/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/cmd_options.h"
#include "runtime/gate/gate_run.h"
#include "runtime/start_error.h"
#include "runtime/tcp_address.h"
#include "web/web.h"
#include "wire/proto.h"

struct settings_text {
    struct settings_text *next;
    char text[];
};

/* ---- the table ------------------------------------------------------------------------------- */

enum kind {
    KIND_TEXT,
    KIND_MS32, /* a duration, stored as int32_t milliseconds */
    KIND_MS64,
    KIND_INT32,
    KIND_SIZE,
    KIND_LIMIT,        /* size_t; 0: no limit, stored as the largest value */
    KIND_LIMIT32,      /* int32_t; 0: no limit, stored as -1 */
    KIND_CLIENT_LIMIT, /* like KIND_LIMIT, in the server's table of limits: `at` is the index */
    KIND_SWITCH,
    KIND_WORD, /* an enum; `words` are its values */
    KIND_LISTEN,
    KIND_HTTP, /* addresses separated by commas */
};

enum verbs {
    IN_SERVE = SETTINGS_OF_SERVE,
    IN_GATE = SETTINGS_OF_GATE,
    IN_BOTH = IN_SERVE | IN_GATE
};

/* For `fallback`: the default is not a number. It is `otherwise` if that is set, else there is
 * none. */
enum { NO_DEFAULT = -1 };

/* The first request of a connection has 45 to 49 bytes; with a smaller limit no client could
 * connect. */
enum { LEAST_REQUEST = 64, MOST_REQUEST = 0x1fffffff };

struct setting {
    const char *name, *arg, *help; /* of the flag, as in struct flag */
    enum verbs in;                 /* the verbs that have this setting */
    char letter;                   /* short flag; 0: none */
    bool live;                     /* may change while the server runs */
    bool secret;                   /* the value must never be shown */
    enum kind kind;
    size_t at; /* offset in struct serve_settings */
    int64_t min, max;
    const char *const *words; /* ended by NULL */
    clave_err (*verify)(const char *value, const struct fault *f);
    int64_t fallback;      /* default of a number, for --help; or NO_DEFAULT */
    const char *otherwise; /* default in words, for --help; NULL: none */
    const char *zoocfg; /* Apache's key, or several separated by spaces; NULL: see zoocfg_keys.c */
    enum zoocfg_form form; /* how Apache writes the value */
};

static clave_err verify_super_digest(const char *value, const struct fault *f);
static clave_err verify_uid(const char *value, const struct fault *f);
static clave_err verify_schemes(const char *value, const struct fault *f);
static clave_err verify_words(const char *value, const struct fault *f);
static clave_err verify_paths(const char *value, const struct fault *f);
static clave_err verify_listen(const char *value, const struct fault *f);
static clave_err verify_admin(const char *value, const struct fault *f);
static clave_err verify_url(const char *value, const struct fault *f);

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

#define AT(member) .at = offsetof(struct serve_settings, member)
#define TEXT(member) .kind = KIND_TEXT, AT(member)
#define WORD(member, list) .kind = KIND_WORD, AT(member), .words = (list)
#define SWITCH(member) .kind = KIND_SWITCH, AT(member)
#define NUMBER(type, member, least, most)                                                          \
    .kind = KIND_##type, AT(member), .min = (least), .max = (most)
/* A limit on what a client may make the server keep; see server.h and client_limits.c. */
#define CLIENT_LIMIT(what, least)                                                                  \
    .kind = KIND_CLIENT_LIMIT, .at = LIMIT_##what, .min = (least), .max = INT32_MAX

static const struct setting settings[] = {
    {"data", "DIR", "the data directory, created if missing", IN_SERVE, TEXT(run.data_dir)},
    {"local", "DIR", "serve this user on this machine, for 'local:'", IN_SERVE, TEXT(local)},
    {"listen", "ADDR", "[tls:]host[:port] or unix:/path; repeatable", IN_SERVE, .letter = 'l',
     .kind = KIND_LISTEN, .verify = verify_listen, .otherwise = SETTINGS_LISTEN},
    {"admin", "ADDR", "HTTP with Apache's admin commands and metrics: host:port", IN_SERVE,
     TEXT(run.admin), .verify = verify_admin},
    {"admin-url", "PATH", "the URL path of the commands", IN_SERVE, TEXT(run.admin_url),
     .verify = verify_url, .otherwise = ADMIN_COMMANDS},
    {"metrics", "ADDR", "HTTP with only the metrics, for Prometheus", IN_SERVE, TEXT(run.metrics),
     .verify = verify_admin},
    {"audit", "FILE", "an audit log in ZooKeeper's format; -: standard output", IN_SERVE,
     TEXT(run.audit)},

    {"connect", "HOSTS", "the ZooKeeper servers: host[:port],...", IN_GATE, TEXT(gate.connect),
     .otherwise = "local:"},
    {"http", "ADDR", "locks over HTTP: [proxy:][tls:]host:port,... or unix:/path", IN_BOTH,
     .kind = KIND_HTTP},
    {"http-tokens", "FILE", "the tokens it accepts: lines 'TOKEN ROLE [PREFIX...]'", IN_BOTH,
     .live = true, TEXT(gate.access.tokens)},
    {"http-host", "NAMES", "further host names of the gate, separated by commas", IN_BOTH,
     .live = true, TEXT(gate.access.hosts)},
    {"http-public", "URL", "its URL as clients behind a proxy see it: https://host/x", IN_BOTH,
     .live = true, TEXT(gate.access.publics)},
    {"http-prefix", "PATH", "a prefix that its paths may have", IN_BOTH, .live = true,
     TEXT(gate.access.prefix), .otherwise = "that of http-public"},
    {"http-proxy", "ADDRS", "proxies whose X-Forwarded-For counts: 10.0.0.0/8,unix", IN_BOTH,
     .live = true, TEXT(gate.access.proxies)},
    {"fleetlock", "PATH", "let machines reboot by slots below this path (FleetLock)", IN_BOTH,
     .live = true, TEXT(gate.access.fleetlock)},
    {"fleetlock-from", "ADDRS", "machines that need no token for FleetLock: 10.0.0.0/8", IN_BOTH,
     .live = true, TEXT(gate.access.fleets)},
    {"http-key", "FILE", "the key that seals sessions' secrets", IN_BOTH, TEXT(gate.key),
     .otherwise = "drawn at the start"},
    {"http-audit", "FILE", "an audit log of changes over HTTP; -: standard output", IN_BOTH,
     TEXT(gate.audit)},
    {"http-metric-paths", "PATHS", "lock paths below these become labels of the metrics", IN_BOTH,
     TEXT(gate.metric_paths), .verify = verify_paths},
    {"http-max-connections", "N", "HTTP connections at a time", IN_BOTH, .live = true,
     NUMBER(LIMIT, gate.max_connections, 1, GATE_MOST_CONNECTIONS), .fallback = GATE_CONNECTIONS},
    {"http-max-waiting", "N", "waiting requests at a time", IN_BOTH, .live = true,
     NUMBER(LIMIT, gate.max_waiting, 1, GATE_MOST_CONNECTIONS), .otherwise = "3/4 of connections"},
    {"http-max-sender-sessions", "N", "sessions of one sender", IN_BOTH, .live = true,
     NUMBER(LIMIT, gate.max_sender_sessions, 1, GATE_MOST_CONNECTIONS),
     .otherwise = "4/5 of what there is"},
    {"http-max-body", "BYTES", "bytes of a request's body", IN_BOTH,
     NUMBER(SIZE, gate.max_body, 1024, 64 << 20), .fallback = WEB_MAX_BODY},
    {"http-tls-cert", "FILE", "the certificate for tls:, with its chain (PEM)", IN_BOTH,
     TEXT(gate.tls.cert_file)},
    {"http-tls-key", "FILE", "the key of that certificate", IN_BOTH, TEXT(gate.tls.key_file),
     .otherwise = "in the same file"},
    {"http-tls-ca", "FILE", "the authorities of its clients' certificates", IN_BOTH,
     TEXT(gate.tls.ca_file)},
    {"http-tls-clients", "HOW", "client certificates: need, want or none", IN_BOTH,
     WORD(gate.tls.clients, client_words), .otherwise = "want with a CA"},

    {"tick", "DURATION", "the unit of session timeouts", IN_SERVE,
     NUMBER(MS32, run.engine.tick_ms, 1, 60000), .fallback = SERVER_TICK_MS, .zoocfg = "tickTime"},
    {"min-session-timeout", "DURATION", "shortest session timeout", IN_SERVE, .live = true,
     NUMBER(MS32, run.engine.min_session_ms, 1, OPTIONS_MAX_MS), .otherwise = "2 ticks",
     .zoocfg = "minSessionTimeout"},
    {"max-session-timeout", "DURATION", "longest session timeout", IN_SERVE, .live = true,
     NUMBER(MS32, run.engine.max_session_ms, 1, OPTIONS_MAX_MS), .otherwise = "20 ticks",
     .zoocfg = "maxSessionTimeout"},

    {"max-connections", "N", "connections from one address", IN_SERVE, .live = true,
     NUMBER(LIMIT32, run.max_per_address, 1, INT32_MAX), .fallback = SERVER_PER_ADDRESS,
     .zoocfg = "maxClientCnxns"},
    {"max-all-connections", "N", "connections in total", IN_SERVE, .live = true,
     NUMBER(LIMIT, run.engine.max_connections, 1, INT32_MAX), .zoocfg = "maxCnxns"},
    {"max-sessionless", "N", "connections of one address without a session", IN_SERVE, .live = true,
     NUMBER(LIMIT32, run.max_sessionless, 1, INT32_MAX)},
    {"sessionless-timeout", "DURATION", "time for a connection to get a session", IN_SERVE,
     .live = true, NUMBER(MS32, run.engine.sessionless_ms, 1, OPTIONS_MAX_MS),
     .fallback = SERVER_SESSIONLESS_MS,
     .zoocfg = "nio.sessionlessCnxnTimeout sessionlessCnxnTimeout"},
    {"max-outstanding", "N", "writes waiting for the disk", IN_SERVE, .live = true,
     NUMBER(LIMIT, run.engine.max_outstanding, 1, INT32_MAX), .fallback = SERVER_OUTSTANDING,
     .zoocfg = "globalOutstandingLimit"},
    {"max-undelivered", "BYTES", "bytes of answers clients have not read", IN_SERVE, .live = true,
     NUMBER(LIMIT, run.engine.max_undelivered, 1024 * 1024, INT64_MAX / 4),
     .fallback = SERVER_UNDELIVERED},
    {"max-request", "BYTES", "bytes of one request: jute.maxbuffer", IN_SERVE,
     NUMBER(LIMIT, run.engine.max_frame, LEAST_REQUEST, MOST_REQUEST), .fallback = WIRE_MAX_FRAME,
     .zoocfg = "jute.maxbuffer", .form = ZOOCFG_DECODED},
    {"max-watches", "N", "watches of all connections", IN_SERVE, .live = true,
     CLIENT_LIMIT(WATCHES, 1)},
    {"max-connection-watches", "N", "watches of one connection", IN_SERVE, .live = true,
     CLIENT_LIMIT(CONNECTION_WATCHES, 1)},
    {"max-sessions", "N", "sessions", IN_SERVE, .live = true, CLIENT_LIMIT(SESSIONS, 1)},
    {"max-disconnected", "N", "disconnected sessions of one address", IN_SERVE, .live = true,
     CLIENT_LIMIT(DISCONNECTED, 1)},
    {"max-answer", "BYTES", "bytes of the answer to a read", IN_SERVE, .live = true,
     CLIENT_LIMIT(ANSWER, 1024)},
    {"max-name", "BYTES", "bytes of a new node's name", IN_SERVE, .live = true,
     CLIENT_LIMIT(NAME, 255)},
    {"max-path", "BYTES", "bytes of a new node's path", IN_SERVE, .live = true,
     CLIENT_LIMIT(PATH, 255)},
    {"max-depth", "N", "nodes in a new node's path", IN_SERVE, .live = true,
     CLIENT_LIMIT(DEPTH, 8)},

    {"snap-count", "N", "transactions between snapshots, or the tree size", IN_SERVE, .live = true,
     NUMBER(INT32, run.engine.snap_count, 2, INT32_MAX), .fallback = SERVER_SNAP_COUNT,
     .zoocfg = "snapCount"},
    {"container-check", "DURATION", "pause between checks of containers and TTL nodes", IN_SERVE,
     .live = true, NUMBER(MS32, run.engine.container_check_ms, 1, INT32_MAX),
     .fallback = SERVER_CONTAINER_CHECK_MS, .zoocfg = "znode.container.checkIntervalMs"},
    {"container-rate", "N", "containers and TTL nodes removed a minute", IN_SERVE, .live = true,
     NUMBER(INT32, run.engine.container_rate, 1, INT32_MAX), .fallback = SERVER_CONTAINER_RATE,
     .zoocfg = "znode.container.maxPerMinute"},
    {"container-unused", "DURATION", "also remove containers never used for this long; 0: keep",
     IN_SERVE, .live = true, NUMBER(MS64, run.engine.never_used_ms, 0, OPTIONS_MAX_MS),
     .zoocfg = "znode.container.maxNeverUsedIntervalMs"},
    {"extended-types", NULL, "allow nodes with a time to live", IN_SERVE, .live = true,
     SWITCH(run.engine.extended_types), .zoocfg = "extendedTypesEnabled"},
    {"enforce-quota", NULL, "refuse writes beyond a hard limit", IN_SERVE, .live = true,
     SWITCH(run.engine.enforce_quota), .zoocfg = "enforceQuota"},

    {"super-digest", "USER:HASH", "the user that passes every access check", IN_SERVE, .live = true,
     .secret = true, TEXT(run.engine.super_digest), .verify = verify_super_digest,
     .zoocfg = "DigestAuthenticationProvider.superDigest"},
    {"super-uid", "UID", "the user that passes every access check over a Unix socket", IN_SERVE,
     .live = true, TEXT(run.engine.super_uid), .verify = verify_uid},
    {"require-auth", "SCHEMES", "serve only clients that authenticate: digest, uid, x509", IN_SERVE,
     .live = true, TEXT(run.engine.require_auth), .verify = verify_schemes},
    {"words", "LIST", "the four-letter words to answer; *: all", IN_SERVE, .live = true,
     TEXT(run.engine.words), .verify = verify_words, .zoocfg = "4lw.commands.whitelist",
     .form = ZOOCFG_WORDS},
    {"tls-cert", "FILE", "the server's certificate, with its chain (PEM)", IN_SERVE,
     TEXT(tls.cert_file)},
    {"tls-key", "FILE", "the key of that certificate", IN_SERVE, TEXT(tls.key_file),
     .otherwise = "in the same file"},
    {"tls-ca", "FILE", "the authorities of clients' certificates (PEM)", IN_SERVE,
     TEXT(tls.ca_file)},
    {"tls-clients", "HOW", "client certificates: need, want or none", IN_SERVE,
     WORD(tls.clients, client_words), .otherwise = "need"},
    {"x509-super", "DN", "the certificate subject that passes every access check", IN_SERVE,
     .live = true, TEXT(run.engine.x509_super)},

    {"idle-exit", "DURATION", "end after this long without a connection", IN_SERVE, .live = true,
     NUMBER(MS64, run.idle_exit_ms, 1, OPTIONS_MAX_MS), .fallback = NO_DEFAULT},
    {"slow-ms", "N", "log requests that take N milliseconds or more; 0: none", IN_SERVE,
     .live = true, NUMBER(INT32, run.engine.slow_ms, 0, INT32_MAX),
     .zoocfg = "fsync.warningthresholdms", .form = ZOOCFG_DECODED},
    {"log-format", "FORMAT", "format of the log: text or json", IN_BOTH, .live = true,
     WORD(log_format, format_words), .otherwise = "text"},
    {"log-time", "WHEN", "the time in lines of text: auto, yes or no", IN_BOTH, .live = true,
     WORD(log_time, time_words), .otherwise = "auto"},
    {"log-level", "LEVEL", "error, warn, info or debug", IN_BOTH, .live = true,
     WORD(log_level, level_words), .otherwise = "warn"},
};
enum { NSETTINGS = sizeof settings / sizeof *settings };
_Static_assert((int)NSETTINGS <= (int)SETTINGS_CAP,
               "there is room for each in struct serve_settings");

static const struct setting *setting_find(const char *name)
{
    for (size_t i = 0; i < NSETTINGS; i++)
        if (strcmp(name, settings[i].name) == 0)
            return &settings[i];
    return NULL;
}

/* Whether `word` is one of the words in `list`, which are separated by spaces. */
static bool setting_list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; n > 0 && at && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static bool setting_is_duration(const struct setting *s)
{
    return s->kind == KIND_MS32 || s->kind == KIND_MS64;
}

static bool setting_is_limit(const struct setting *s)
{
    return s->kind == KIND_LIMIT || s->kind == KIND_LIMIT32 || s->kind == KIND_CLIENT_LIMIT;
}

static bool setting_is_number(const struct setting *s)
{
    return s->kind == KIND_INT32 || s->kind == KIND_SIZE || setting_is_limit(s);
}

const char *settings_of_zoocfg(const char *key, enum zoocfg_form *form)
{
    for (size_t i = 0; i < NSETTINGS; i++) {
        const struct setting *s = &settings[i];
        if (!setting_list_has(s->zoocfg, key))
            continue;
        *form = s->form;
        if (s->kind == KIND_SWITCH)
            *form = ZOOCFG_SWITCH;
        else if (setting_is_duration(s))
            *form = ZOOCFG_MS;
        return s->name;
    }
    return NULL;
}

/* ---- flags ----------------------------------------------------------------------------------- */

enum { HELP_CAP = 96 };

/* For example " [64 MiB]", " [10s]" or " [60]"; "" if no default is worth showing. */
static void setting_put_default(const struct setting *s, char *out, size_t cap)
{
    char text[DURATION_CAP] = "";
    int64_t n = s->fallback;
    if (s->kind == KIND_CLIENT_LIMIT)
        n = (int64_t)clave__client_limit_default((enum server_limit)s->at);
    bool has_number = n != NO_DEFAULT && (setting_is_duration(s) || setting_is_number(s));
    *out = '\0';
    if (s->otherwise)
        snprintf(out, cap, " [%s]", s->otherwise);
    else if (has_number && n > 0 && setting_is_duration(s))
        snprintf(out, cap, " [%s]", clave__duration_format(n, text));
    else if (has_number && n >= 1 << 20 && n % (1 << 20) == 0)
        snprintf(out, cap, " [%lld MiB]", (long long)(n >> 20));
    else if (has_number)
        snprintf(out, cap, " [%lld]", (long long)n);
}

/* The id of a setting's flag: its letter, or SETTINGS_FLAG plus the number of the row. */
static int setting_id(const struct setting *s)
{
    return s->letter ? s->letter : SETTINGS_FLAG + (int)(s - settings);
}

const struct flag *settings_flag(const struct verb *v, size_t i)
{
    static struct flag flags[NSETTINGS]; /* filled in by the first call */
    static char help[NSETTINGS][HELP_CAP];
    for (size_t k = 0; k < NSETTINGS && flags[0].id == 0; k++) {
        /* The first row is filled in last: its id shows that all is done. */
        const struct setting *s = &settings[NSETTINGS - 1 - k];
        size_t at = (size_t)(s - settings);
        char fallback[HELP_CAP];
        setting_put_default(s, fallback, sizeof fallback);
        snprintf(help[at], sizeof help[at], "%s%s%s", s->help,
                 setting_is_limit(s) ? "; 0: no limit" : "", fallback);
        flags[at] = (struct flag){setting_id(s), s->name, s->arg, help[at]};
    }
    for (size_t k = 0; k < NSETTINGS; k++)
        if ((settings[k].in & v->shares) && i-- == 0)
            return &flags[k];
    return NULL;
}

const char *settings_name_of_flag(int id)
{
    for (size_t i = 0; i < NSETTINGS; i++)
        if (setting_id(&settings[i]) == id)
            return settings[i].name;
    return NULL;
}

bool settings_exist(const char *name)
{
    return setting_find(name) != NULL;
}

static const char *settings_given(const struct serve_settings *v, const char *name)
{
    return v->given[setting_find(name) - settings];
}

/* ---- the struct ------------------------------------------------------------------------------ */

/* Where the value of the setting is stored. */
static void *setting_place(const struct serve_settings *v, const struct setting *s)
{
    size_t at = s->at;
    if (s->kind == KIND_CLIENT_LIMIT)
        at = offsetof(struct serve_settings, run.engine.client_limits) + s->at * sizeof(size_t);
    return (char *)(uintptr_t)v + at;
}

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

/* ---- values that are not just a number or a word --------------------------------------------- */

/* Each of these functions returns EINVAL with a fault that says what is expected. */

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
    if (strcmp(value, "*") == 0)
        return CLAVE_OK;
    const char *at = value + strspn(value, SERVER_WORDS_BETWEEN);
    do {
        char word[WORD_LEN + 1] = "";
        size_t n = strcspn(at, SERVER_WORDS_BETWEEN);
        memcpy(word, at, n == WORD_LEN ? n : 0);
        if (!*word || !strstr(known, word))
            return clave__start_error(f, CLAVE_EINVAL, "no such word '%.*s'; known: %s", (int)n, at,
                                      known);
        at += n + strspn(at + n, SERVER_WORDS_BETWEEN);
    } while (*at);
    return CLAVE_OK;
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

/* Whether the address is for TLS. */
static bool address_is_tls(const char *address)
{
    return strncmp(address, "tls:", 4) == 0;
}

/* Checks the syntax here, so that the fault can name the flag or the line. A host name is looked up
 * only when the server starts. */
static clave_err verify_listen(const char *value, const struct fault *f)
{
    struct tcp_address a;
    const char *at = address_is_tls(value) ? value + 4 : value;
    if (strncmp(value, "unix:", 5) == 0)
        return CLAVE_OK;
    return clave__tcp_address_parse(at, WIRE_DEFAULT_PORT, &a, f);
}

/* An address for HTTP without its "proxy:" prefix. */
static const char *address_past_proxy(const char *address)
{
    static const char proxy[] = "proxy:";
    return strncmp(address, proxy, sizeof proxy - 1) == 0 ? address + sizeof proxy - 1 : address;
}

static clave_err verify_http(const char *whole, const struct fault *f)
{
    const char *value = address_past_proxy(whole);
    const char *at = address_is_tls(value) ? value + 4 : value;
    const char *end = strrchr(at, ']'), *colon = strchr(end ? end : at, ':');
    if (address_is_tls(value) && strncmp(at, "unix:", 5) == 0)
        return clave__start_error(f, CLAVE_EINVAL, "a Unix socket has no TLS");
    if (strncmp(value, "unix:", 5) == 0)
        return CLAVE_OK;
    if (colon && colon[1] != '\0')
        return verify_listen(value, f);
    return clave__start_error(f, CLAVE_EINVAL,
                              "expected host:port, [v6]:port, *:port or unix:/path");
}

/* TLS is refused here: tokens, certificates and this address would be three ways to say who may
 * ask, which would confuse people. */
static clave_err verify_admin(const char *value, const struct fault *f)
{
    return address_is_tls(value)
               ? clave__start_error(f, CLAVE_EINVAL, "the admin pages are served only without TLS")
               : verify_http(value, f);
}

/* Accepts only a normalised path, which can be compared with the paths of requests and put into a
 * page as it is. */
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

/* ---- taking a value -------------------------------------------------------------------------- */

static clave_err setting_parse_duration(const struct setting *s, const char *value, int64_t *out,
                                        const struct fault *f)
{
    const int64_t bounds[2] = {s->min, s->max};
    char text[DURATION_FAULT_CAP];
    const char *why = clave__duration_within(value, bounds, out, text);
    return why ? clave__start_error(f, CLAVE_EINVAL, "%s", why) : CLAVE_OK;
}

static clave_err setting_parse_number(const struct setting *s, const char *value, int64_t *out,
                                      const struct fault *f)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    bool is_number = end != value && *end == '\0' && errno == 0;
    bool is_none = is_number && n == 0 && setting_is_limit(s);
    if (!is_none && (!is_number || n < s->min || n > s->max))
        return clave__start_error(f, CLAVE_EINVAL, "not a number from %lld to %lld%s",
                                  (long long)s->min, (long long)s->max,
                                  setting_is_limit(s) ? ", or 0: no limit" : "");
    *out = n;
    return CLAVE_OK;
}

static clave_err setting_parse_word(const char *const *words, const char *value, int64_t *out,
                                    const struct fault *f)
{
    char all[64] = "";
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(value, words[i]) == 0) {
            *out = (int64_t)i;
            return CLAVE_OK;
        }
        const char *between = words[i + 1] ? ", " : " or ";
        strcat(strcat(all, i == 0 ? "" : between), words[i]);
    }
    return clave__start_error(f, CLAVE_EINVAL, "it is %s", all);
}

/* `kept` belongs to `v`; it is cut into pieces at the commas. */
static clave_err setting_set_http(struct serve_settings *v, const char *kept, const struct fault *f)
{
    char *rest = NULL, *text = (char *)(uintptr_t)kept;
    size_t before = v->gate.nhttp;
    for (char *a = strtok_r(text, ",", &rest); a; a = strtok_r(NULL, ",", &rest)) {
        clave_err err = verify_http(a, f);
        if (err != CLAVE_OK)
            return err;
        if (v->gate.nhttp == SETTINGS_MAX_LISTEN)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d addresses", SETTINGS_MAX_LISTEN);
        v->gate.http[v->gate.nhttp++] = a;
    }
    return v->gate.nhttp > before ? CLAVE_OK
                                  : clave__start_error(f, CLAVE_EINVAL, "it names no address");
}

/* An empty value is refused, since it would not mean what it seems to: an empty certificate name
 * would count as not given, and an empty list of authorities as that of the system. */
static clave_err setting_set_text(struct serve_settings *v, const struct setting *s,
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
        return setting_set_http(v, kept, f);
    if (s->kind == KIND_TEXT) {
        *(const char **)setting_place(v, s) = kept;
        return CLAVE_OK;
    }
    if (v->run.nlisten == SETTINGS_MAX_LISTEN)
        return clave__start_error(f, CLAVE_EINVAL, "at most %d addresses", SETTINGS_MAX_LISTEN);
    v->listen[v->run.nlisten++] = kept;
    return CLAVE_OK;
}

/* Stores a number, or the number of a word. In the struct 0 means "not given". */
static void setting_store(struct serve_settings *v, const struct setting *s, int64_t n)
{
    void *to = setting_place(v, s);
    switch (s->kind) {
    case KIND_SWITCH:
        *(bool *)to = n != 0;
        break;
    case KIND_MS64:
        *(int64_t *)to = n;
        break;
    case KIND_SIZE:
        *(size_t *)to = (size_t)n;
        break;
    case KIND_LIMIT:
    case KIND_CLIENT_LIMIT:
        *(size_t *)to = (size_t)(n == 0 ? s->max : n);
        break;
    case KIND_LIMIT32:
        *(int32_t *)to = n == 0 ? -1 : (int32_t)n;
        break;
    case KIND_MS32:
    case KIND_INT32:
    case KIND_WORD:
        *(int32_t *)to = (int32_t)n;
        if (to == &v->log_level) /* the levels start at 1 */
            v->log_level++;
        break;
    case KIND_TEXT: /* these are not numbers; see setting_set_text */
    case KIND_LISTEN:
    case KIND_HTTP:
        break;
    }
}

_Static_assert(sizeof(enum tls_clients) == sizeof(int32_t), "stored as one");
_Static_assert(sizeof(enum log_format) == sizeof(int32_t), "likewise");
_Static_assert(sizeof(enum log_time) == sizeof(int32_t), "likewise");

static clave_err setting_take(struct serve_settings *v, const struct setting *s, const char *value,
                              const struct fault *f)
{
    clave_err err;
    int64_t n = 0;
    switch (s->kind) {
    case KIND_TEXT:
    case KIND_LISTEN:
    case KIND_HTTP:
        return setting_set_text(v, s, value, f);
    case KIND_MS32:
    case KIND_MS64:
        err = setting_parse_duration(s, value, &n, f);
        break;
    case KIND_SWITCH:
        err = setting_parse_word(switch_words, value, &n, f);
        break;
    case KIND_WORD:
        err = setting_parse_word(s->words, value, &n, f);
        break;
    case KIND_INT32:
    case KIND_SIZE:
    case KIND_LIMIT:
    case KIND_LIMIT32:
    case KIND_CLIENT_LIMIT:
    default:
        err = setting_parse_number(s, value, &n, f);
        break;
    }
    if (err == CLAVE_OK)
        setting_store(v, s, n);
    return err;
}

clave_err settings_set(struct serve_settings *v, const char *name, const char *value,
                       const struct fault *f)
{
    const struct setting *s = setting_find(name);
    bool is_ours = s && (s->in & (v->is_gate ? IN_GATE : IN_SERVE));
    if (!is_ours && v->is_gate)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "there is no such setting of a gate; --auth, --tls-* and "
                                  "--session-timeout are flags, or in clave's configuration: "
                                  "clave(1)");
    if (!is_ours)
        return clave__start_error(f, CLAVE_EINVAL, "there is no such setting");
    clave_err err = setting_take(v, s, value, f);
    const char *given = err == CLAVE_OK ? settings_keep(v, value) : NULL;
    v->given[s - settings] = given;
    return err == CLAVE_OK && !given ? CLAVE_ENOMEM : err;
}

/* ---- what cannot change, and what has -------------------------------------------------------- */

static bool setting_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool setting_same_list(const char *const *a, size_t na, const char *const *b, size_t nb)
{
    bool same = na == nb;
    for (size_t i = 0; same && i < na; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

static bool setting_same(const struct setting *s, const struct serve_settings *a,
                         const struct serve_settings *b)
{
    const void *at_a = setting_place(a, s), *at_b = setting_place(b, s);
    if (s->kind == KIND_LISTEN)
        return setting_same_list(a->listen, a->run.nlisten, b->listen, b->run.nlisten);
    if (s->kind == KIND_HTTP)
        return setting_same_list(a->gate.http, a->gate.nhttp, b->gate.http, b->gate.nhttp);
    if (s->kind == KIND_TEXT)
        return setting_same_text(*(const char *const *)at_a, *(const char *const *)at_b);
    if (s->kind == KIND_SIZE || s->kind == KIND_LIMIT)
        return memcmp(at_a, at_b, sizeof(size_t)) == 0;
    return memcmp(at_a, at_b, sizeof(int32_t)) ==
           0; /* all other settings that cannot change are int32_t */
}

void settings_tell_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         const struct log *log)
{
    for (size_t i = 0; i < NSETTINGS; i++)
        if (!settings[i].live && !setting_same(&settings[i], now, wanted))
            clave__log(log, CLAVE_LOG_WARN, "%s does not change until the next start",
                       settings[i].name);
}

void settings_list_fixed(const struct serve_settings *now, const struct serve_settings *wanted,
                         char *out, size_t cap)
{
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < NSETTINGS && n < cap; i++)
        if (!settings[i].live && !setting_same(&settings[i], now, wanted))
            n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? ", " : "", settings[i].name);
}

void settings_list_changes(const struct serve_settings *before, const struct serve_settings *now,
                           char *out, size_t cap)
{
    static const char unset[] = "(default)";
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < NSETTINGS && n < cap; i++) {
        const char *from = before->given[i], *to = now->given[i];
        if (!settings[i].live || setting_same_text(from, to))
            continue;
        n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? ", " : "", settings[i].name);
        if (n < cap && !settings[i].secret)
            n += (size_t)snprintf(out + n, cap - n, " %s -> %s", from ? from : unset,
                                  to ? to : unset);
        else if (n < cap)
            n += (size_t)snprintf(out + n, cap - n, " %s", to ? "changed" : "removed");
    }
}

/* ---- checks across settings ------------------------------------------------------------------ */

/* Whether an address begins with `kind`, such as "tls:" or "unix:". */
static bool check_listens_on(const struct serve_settings *v, const char *kind)
{
    for (size_t i = 0; i < v->run.nlisten; i++)
        if (strncmp(v->listen[i], kind, strlen(kind)) == 0)
            return true;
    return false;
}

static bool check_has_unix_socket(const struct serve_settings *v)
{
    return v->local || check_listens_on(v, "unix:");
}

/* Refuses --require-auth with schemes of which no client can have an identity, which would lock
 * everybody out. */
static clave_err check_schemes(const struct serve_settings *v, const struct fault *f)
{
    const char *schemes = v->run.engine.require_auth;
    if (!schemes || strstr(schemes, "digest") || strstr(schemes, "ip"))
        return CLAVE_OK;
    if (strstr(schemes, "uid") && check_has_unix_socket(v))
        return CLAVE_OK;
    if (strstr(schemes, "x509") && check_listens_on(v, "tls:") &&
        v->tls.clients != TLS_CLIENTS_NONE)
        return CLAVE_OK;
    return clave__start_error(f, CLAVE_EINVAL,
                              "--require-auth %s locks everybody out: x509 needs --listen tls:ADDR "
                              "and clients with certificates, uid needs --listen unix:PATH",
                              schemes);
}

void settings_tell_useless(const struct serve_settings *v, const struct log *log)
{
    if (v->run.engine.super_uid && !check_has_unix_socket(v))
        clave__log(log, CLAVE_LOG_WARN,
                   "--super-uid %s applies to nobody: add --listen unix:PATH, over TCP nobody has "
                   "a uid",
                   v->run.engine.super_uid);
}

/* Checks that the addresses with "tls:" have the files they need. `http` is what the names of the
 * flags begin with, for the messages: "" or "http-". */
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
    bool listens = check_listens_on(v, "tls:");
    if (!listens && (t->ca_file || t->cert_file || t->key_file || v->run.engine.x509_super ||
                     settings_given(v, "tls-clients")))
        return clave__start_error(f, CLAVE_EINVAL, "no address for TLS: add --listen tls:ADDR");
    if (!listens)
        return CLAVE_OK;
    clave_err err = check_tls_files(t, "", f);
    if (err == CLAVE_OK)
        v->run.tls = t;
    return err;
}

/* Clients over HTTP identify themselves by tokens. So by default a certificate is asked for if
 * there are authorities to verify it, and needed only if the user says so. */
static clave_err check_http_tls(struct serve_settings *v, const struct fault *f)
{
    struct tls_server_options *t = &v->gate.tls;
    bool listens = false;
    for (size_t i = 0; i < v->gate.nhttp; i++)
        listens = listens || address_is_tls(address_past_proxy(v->gate.http[i]));
    if (!listens &&
        (t->ca_file || t->cert_file || t->key_file || settings_given(v, "http-tls-clients")))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "no address for HTTP with TLS: add --http tls:ADDR");
    if (!settings_given(v, "http-tls-clients"))
        t->clients = t->ca_file ? TLS_CLIENTS_WANT : TLS_CLIENTS_NONE;
    return listens ? check_tls_files(t, "http-", f) : CLAVE_OK;
}

/* Checks that there is an address, and refuses settings that are of no use without one. */
static clave_err check_http(struct serve_settings *v, const struct fault *f)
{
    const struct gate_settings *g = &v->gate;
    if (g->nhttp == 0 && v->is_gate)
        return clave__start_error(f, CLAVE_EINVAL, "name an address with --http ADDR");
    const struct gate_access_options *a = &g->access;
    if (g->nhttp == 0 && (a->tokens || (a->hosts && !v->run.admin) || a->publics || a->prefix ||
                          a->proxies || a->fleetlock || a->fleets || g->audit || g->key ||
                          g->metric_paths || g->max_connections > 0 || g->max_waiting > 0 ||
                          g->max_sender_sessions > 0 || g->max_body > 0))
        return clave__start_error(f, CLAVE_EINVAL, "no address for HTTP: add --http ADDR");
    return check_http_tls(v, f);
}

static clave_err check_local(const struct serve_settings *v, const struct fault *f)
{
    if (v->run.data_dir || v->run.nlisten > 0)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--local has its own data directory and address");
    if (v->run.admin || v->run.metrics || v->gate.nhttp > 0)
        return clave__start_error(f, CLAVE_EINVAL, "--local does not serve HTTP");
    return CLAVE_OK;
}

static clave_err check_session_limits(const struct server_options *engine, const struct fault *f)
{
    int32_t tick = engine->tick_ms > 0 ? engine->tick_ms : SERVER_TICK_MS;
    int32_t least = engine->min_session_ms > 0 ? engine->min_session_ms : 2 * tick;
    if (engine->max_session_ms > 0 && least > engine->max_session_ms)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--min-session-timeout, 2 ticks unless given, is above "
                                  "--max-session-timeout");
    return CLAVE_OK;
}

clave_err settings_check(struct serve_settings *v, const struct fault *f)
{
    struct findings all = clave__findings_in(f);
    clave__findings_add(&all, check_http(v, &all.next));
    if (v->is_gate)
        return all.err;
    if (v->local)
        clave__findings_add(&all, check_local(v, &all.next));
    else if (!v->run.data_dir)
        clave__findings_add(&all, clave__start_error(&all.next, CLAVE_EINVAL,
                                                     "name the data directory with --data DIR"));
    v->run.admin_hosts = v->gate.access.hosts;
    if (v->run.admin_url && !v->run.admin)
        clave__findings_add(
            &all, clave__start_error(&all.next, CLAVE_EINVAL, "--admin-url needs --admin ADDR"));
    clave__findings_add(&all, check_session_limits(&v->run.engine, &all.next));
    if (!v->local && v->run.nlisten == 0)
        v->listen[v->run.nlisten++] = SETTINGS_LISTEN;
    clave__findings_add(&all, check_tls(v, &all.next));
    clave__findings_add(&all, check_schemes(v, &all.next));
    return all.err;
}
