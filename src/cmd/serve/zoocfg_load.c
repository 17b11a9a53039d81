/* zoocfg_load.c - Apache ZooKeeper's zoo.cfg: translates its keys to settings, by the table of
 * zoocfg_keys.c. config_file.c calls it. Every key that clave does not implement is logged or
 * refused, so that nobody relies on a setting without effect. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/serve/config_file.h"
#include "cmd/serve/java_properties.h"
#include "cmd/serve/zoocfg_dirs.h"
#include "cmd/serve/zoocfg_keys.h"
#include "cmd/serve/zoocfg_server.h"

static const char prometheus[] =
    "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

struct zoocfg {
    struct serve_settings *v;
    const char *path;
    const struct log *log;
    clave_err err;
    const char *slots[ZOOCFG_SLOTS];
    unsigned lines[ZOOCFG_SLOTS];
    const char *server_id, *server; /* of the last line with "server."; NULL: there is none */
    unsigned servers, server_line;
};

__attribute__((format(printf, 3, 4))) static bool refuse(struct zoocfg *z, unsigned line,
                                                         const char *fmt, ...)
{
    char what[800];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    clave__log_about(z->log, CLAVE_LOG_ERROR, &(struct log_about){.path = z->path}, "%s:%u: %s",
                     z->path, line, what);
    z->err = CLAVE_EINVAL;
    return false;
}

static void zoocfg_load_pass_over(const struct zoocfg *z, unsigned line, const char *key,
                                  const char *why)
{
    clave__log_about(z->log, CLAVE_LOG_WARN, &(struct log_about){.path = z->path}, "%s:%u: %s: %s",
                     z->path, line, key, why);
}

static bool zoocfg_load_set(struct zoocfg *z, unsigned line, const char *name, const char *key,
                            const char *value)
{
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    clave_err err = settings_set(z->v, name, value, &f);
    if (err == CLAVE_OK)
        return true;
    z->err = err;
    clave__log_about(z->log, CLAVE_LOG_ERROR, &(struct log_about){.path = z->path},
                     "%s:%u: %s '%s': %s", z->path, line, key, value,
                     why[0] ? why : clave_strerror(err));
    return false;
}

/* ---- values --------------------------------------------------------------------------------- */

static bool zoocfg_load_is_true(const char *value)
{
    return strcasecmp(value, "true") == 0;
}

static bool zoocfg_load_set_number(struct zoocfg *z, unsigned line, const struct zoocfg_key *k,
                                   const char *value)
{
    char text[32], *end;
    errno = 0;
    long long n = strtoll(value, &end, k->meaning == ZOOCFG_AS_NUMBER ? 0 : 10);
    if (end == value || *end != '\0' || errno != 0)
        return refuse(z, line, "%s '%s': not a number", k->name, value);
    if (k->meaning == ZOOCFG_AS_MS && n == -1) /* in Apache this means "not given" */
        return true;
    snprintf(text, sizeof text, k->meaning == ZOOCFG_AS_MS ? "%lldms" : "%lld", n);
    return zoocfg_load_set(z, line, k->text, k->name, text);
}

static bool zoocfg_load_is_known_word(const char *word, size_t n)
{
    static const char known[] = SERVER_WORDS "," SERVER_OTHER_WORDS;
    char text[5] = "";
    memcpy(text, word, n == 4 ? n : 0);
    return n == 4 && strstr(known, text);
}

/* "stat, ruok": those that clave knows, and srvr, which Apache answers whatever the list says. */
static bool zoocfg_load_set_words(struct zoocfg *z, unsigned line, const struct zoocfg_key *k,
                                  const char *value)
{
    char list[200] = "srvr";
    for (const char *at = value; *at;) {
        at += strspn(at, ", \t");
        size_t n = strcspn(at, ", \t");
        if (n == 1 && *at == '*')
            return zoocfg_load_set(z, line, "words", k->name, "*");
        if (zoocfg_load_is_known_word(at, n) && strlen(list) + n + 2 < sizeof list) {
            strcat(list, ",");
            strncat(list, at, n);
        } else if (n > 0) {
            clave__log_about(z->log, CLAVE_LOG_WARN, &(struct log_about){.path = z->path},
                             "%s:%u: %s: no such word '%.*s', ignored", z->path, line, k->name,
                             (int)n, at);
        }
        at += n;
    }
    return zoocfg_load_set(z, line, "words", k->name, list);
}

static bool zoocfg_load_keep(struct zoocfg *z, unsigned line, const struct zoocfg_key *k,
                             const char *value)
{
    z->slots[k->slot] = settings_keep(z->v, value);
    z->lines[k->slot] = line;
    if (!z->slots[k->slot])
        z->err = CLAVE_ENOMEM;
    return z->slots[k->slot];
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Apache puts this before the name of a system property itself. */
static const char *zoocfg_load_bare(const char *name)
{
    static const char prefix[] = "zookeeper.";
    size_t n = sizeof prefix - 1;
    return strncmp(name, prefix, n) == 0 ? name + n : name;
}

/* In Java's properties the last line of a key is the one that counts. */
static bool zoocfg_load_take_server(struct zoocfg *z, unsigned line, const char *id,
                                    const char *value)
{
    if (strspn(id, "0123456789") != strlen(id) || !*id || strlen(id) > 18)
        return refuse(z, line, "server.%.40s: the number of a server is expected", id);
    z->servers += !z->server_id || strcmp(z->server_id, id) != 0;
    z->server_line = line;
    z->server_id = settings_keep(z->v, id);
    z->server = settings_keep(z->v, value);
    if (!z->server_id || !z->server)
        z->err = CLAVE_ENOMEM;
    return z->server_id && z->server;
}

/* Apache's own schemes are here, or admit nobody by their absence; another class may well turn
 * clients away that a scheme of the same name admits here. */
static bool zoocfg_load_take_provider(struct zoocfg *z, unsigned line, const char *name,
                                      const char *value, const struct zoocfg_key *k)
{
    static const char own[] = "org.apache.zookeeper.server.auth.";
    static const char *const here[] = {"DigestAuthenticationProvider", "IPAuthenticationProvider",
                                       "X509AuthenticationProvider"};
    const char *class = value + sizeof own - 1;
    if (strncmp(value, own, sizeof own - 1) != 0 || strchr(class, '.'))
        return refuse(z, line, "%s=%s: %s", name, value, k->text);
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (strcmp(class, here[i]) == 0)
            return true;
    zoocfg_load_pass_over(z, line, name, "clave does not have this scheme, ignored");
    return true;
}

/* false: it was refused. */
static bool zoocfg_load_take(struct zoocfg *z, unsigned line, const char *name, const char *value)
{
    const struct zoocfg_key *k = zoocfg_key_find(zoocfg_load_bare(name));
    if (!k) {
        zoocfg_load_pass_over(z, line, name, "unknown key, ignored");
        return true;
    }
    switch (k->meaning) {
    case ZOOCFG_IGNORED:
        zoocfg_load_pass_over(z, line, name, k->text);
        return true;
    case ZOOCFG_REFUSED:
        if (strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0)
            return refuse(z, line, "%s: %s", name, k->text);
        return true;
    case ZOOCFG_ONLY:
        if (strcasecmp(value, k->only) != 0)
            return refuse(z, line, "%s=%s: %s, or write %s=%s", name, value, k->text, name,
                          k->only);
        return true;
    case ZOOCFG_AS_IS:
        return zoocfg_load_set(z, line, k->text, name, value);
    case ZOOCFG_AS_SWITCH:
        return zoocfg_load_set(z, line, k->text, name,
                               zoocfg_load_is_true(value) ? "true" : "false");
    case ZOOCFG_AS_MS:
    case ZOOCFG_AS_NUMBER:
        return zoocfg_load_set_number(z, line, k, value);
    case ZOOCFG_AS_WORDS:
        return zoocfg_load_set_words(z, line, k, value);
    case ZOOCFG_KEPT:
        return zoocfg_load_keep(z, line, k, value);
    case ZOOCFG_PROVIDER:
        return zoocfg_load_take_provider(z, line, name, value, k);
    case ZOOCFG_SERVER:
        return zoocfg_load_take_server(z, line, zoocfg_load_bare(name) + strlen(k->name), value);
    }
    return true;
}

/* Whatever is wrong with a line, those after it are looked at too. */
static bool zoocfg_load_visit(void *arg, unsigned line, const char *name, const char *value)
{
    (void)zoocfg_load_take(arg, line, name, value);
    return true;
}

/* ---- what depends on several keys ----------------------------------------------------------- */

static bool zoocfg_load_set_slot(struct zoocfg *z, enum zoocfg_slot slot, const char *name,
                                 const char *key)
{
    return !z->slots[slot] || zoocfg_load_set(z, z->lines[slot], name, key, z->slots[slot]);
}

/* Sets `name` to this port of the remembered host, or of all addresses without one. */
static bool zoocfg_load_set_address(struct zoocfg *z, unsigned line, const char *name,
                                    const char *key, enum zoocfg_slot address, const char *port)
{
    const char *host = z->slots[address];
    const char *prefix = address == SECURE_ADDRESS ? "tls:" : "";
    char text[300];
    bool bare_v6 = host && strchr(host, ':') && *host != '[';
    snprintf(text, sizeof text, "%s%s%s%s:%s", prefix, bare_v6 ? "[" : "", host ? host : "*",
             bare_v6 ? "]" : "", port);
    return zoocfg_load_set(z, line, name, key, text);
}

/* -1 after a message: not a port. */
static long zoocfg_load_port_of(struct zoocfg *z, enum zoocfg_slot port, const char *key)
{
    char *end;
    long number = strtol(z->slots[port], &end, 10);
    if (end != z->slots[port] && *end == '\0' && number >= 0 && number <= 65535)
        return number;
    refuse(z, z->lines[port], "%s '%s': not a port, 1 to 65535", key, z->slots[port]);
    return -1;
}

static bool zoocfg_load_listen_on(struct zoocfg *z, enum zoocfg_slot port, enum zoocfg_slot address)
{
    const char *key = port == PORT ? "clientPort" : "secureClientPort";
    if (!z->slots[port])
        return true;
    long number = zoocfg_load_port_of(z, port, key);
    if (number == 0) /* in Apache this means "none" */
        z->slots[port] = NULL;
    return number == 0 || (number > 0 && zoocfg_load_set_address(z, z->lines[port], "listen", key,
                                                                 address, z->slots[port]));
}

static bool zoocfg_load_http_on(struct zoocfg *z, const char *name, enum zoocfg_slot port,
                                enum zoocfg_slot address, const char *key, const char *standard)
{
    if (z->slots[port] && zoocfg_load_port_of(z, port, key) < 0)
        return false;
    unsigned line = z->lines[port] ? z->lines[port] : z->lines[address];
    return zoocfg_load_set_address(z, line, name, key, address,
                                   z->slots[port] ? z->slots[port] : standard);
}

/* Apache opens it by default, on every address: here it is opened only if the file mentions it. */
static bool zoocfg_load_set_admin(struct zoocfg *z)
{
    bool asked = z->slots[ADMIN_ADDRESS] || z->slots[ADMIN_PORT] || z->slots[ADMIN_ENABLED];
    if (!asked && z->slots[ADMIN_URL])
        zoocfg_load_pass_over(z, z->lines[ADMIN_URL], "admin.commandURL",
                              "no effect without admin.serverPort, ignored");
    if (!asked || (z->slots[ADMIN_ENABLED] && !zoocfg_load_is_true(z->slots[ADMIN_ENABLED])))
        return true;
    return zoocfg_load_http_on(z, "admin", ADMIN_PORT, ADMIN_ADDRESS, "admin.serverPort", "8080") &&
           zoocfg_load_set_slot(z, ADMIN_URL, "admin-url", "admin.commandURL");
}

static bool zoocfg_load_set_metrics(struct zoocfg *z)
{
    const char *class = z->slots[METRICS_CLASS];
    if (class && strcmp(class, prometheus) == 0)
        return zoocfg_load_http_on(z, "metrics", METRICS_PORT, METRICS_HOST,
                                   "metricsProvider.httpPort", "7000");
    for (enum zoocfg_slot i = METRICS_CLASS; i <= METRICS_PORT; i++)
        if (z->slots[i])
            zoocfg_load_pass_over(
                z, z->lines[i], "metricsProvider",
                "no effect without Apache's className=PrometheusMetricsProvider, ignored");
    return true;
}

/* Where Apache's lines go is in the configuration of its logger. */
static bool zoocfg_load_set_audit(struct zoocfg *z)
{
    return !z->slots[AUDIT] || !zoocfg_load_is_true(z->slots[AUDIT]) ||
           zoocfg_load_set(z, z->lines[AUDIT], "audit", "audit.enable", "-");
}

/* Apache does not start without schemes, or with one that it does not have. */
static bool zoocfg_load_set_required(struct zoocfg *z)
{
    const char *schemes = z->slots[SCHEMES];
    bool enforced = z->slots[ENFORCE] && zoocfg_load_is_true(z->slots[ENFORCE]);
    char list[100];
    size_t n = 0;
    if (!enforced && schemes)
        zoocfg_load_pass_over(z, z->lines[SCHEMES], "enforce.auth.schemes",
                              "no effect without enforce.auth.enabled, ignored");
    if (!enforced)
        return true;
    if (!schemes)
        return refuse(z, z->lines[ENFORCE], "enforce.auth.enabled needs enforce.auth.schemes");
    for (; *schemes && n < sizeof list - 1; schemes++)
        if (*schemes != ' ' && *schemes != '\t')
            list[n++] = *schemes;
    list[n] = '\0';
    return zoocfg_load_set(z, z->lines[SCHEMES], "require-auth", "enforce.auth.schemes", list);
}

/* Apache reads these only if there is a secure port. */
static bool zoocfg_load_set_tls(struct zoocfg *z)
{
    if (!z->slots[SECURE_PORT])
        return true;
    if (!z->slots[CERT])
        return refuse(
            z, z->lines[SECURE_PORT],
            "secureClientPort needs ssl.keyStore.location, a PEM file with the certificate "
            "and its key");
    return zoocfg_load_set_slot(z, CERT, "tls-cert", "ssl.keyStore.location") &&
           zoocfg_load_set_slot(z, CA, "tls-ca", "ssl.trustStore.location") &&
           zoocfg_load_set_slot(z, CLIENTS, "tls-clients", "ssl.clientAuth") &&
           zoocfg_load_set_slot(z, SUPER, "x509-super", "X509AuthenticationProvider.superUser");
}

/* ---- the line of the server ------------------------------------------------------------------ */

static bool zoocfg_load_is_every_address(const char *host)
{
    return !*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* What the server line says goes into the slots of a client port. It may repeat what these have, or
 * narrow it to an address: as with Apache, anything else is a contradiction. */
static bool zoocfg_load_merge_client(struct zoocfg *z, const struct zoocfg_client_address *a,
                                     enum zoocfg_slot port, enum zoocfg_slot address,
                                     const char *key)
{
    const char *given = z->slots[port], *host = z->slots[address] ? z->slots[address] : "";
    if (!*a->port)
        return true;
    if (given && strcmp(given, a->port) != 0)
        return refuse(z, z->server_line,
                      "server.%s: its client port is %s, but %s on line %u is %s", z->server_id,
                      a->port, key, z->lines[port], given);
    if (!zoocfg_load_is_every_address(host) && strcasecmp(host, a->host) != 0)
        return refuse(z, z->server_line,
                      "server.%s: its client address is %s, but %sAddress on line %u is %s",
                      z->server_id, *a->host ? a->host : "every address", key, z->lines[address],
                      host);
    z->slots[port] = settings_keep(z->v, a->port);
    z->slots[address] = *a->host ? settings_keep(z->v, a->host) : NULL;
    z->lines[port] = z->lines[address] = z->server_line;
    bool kept = z->slots[port] && (z->slots[address] || !*a->host);
    if (!kept)
        z->err = CLAVE_ENOMEM;
    return kept;
}

static bool zoocfg_load_merge_server(struct zoocfg *z)
{
    struct zoocfg_server server;
    char why[600] = "";
    const struct fault f = {why, sizeof why};
    if (!z->server)
        return true;
    clave_err err = zoocfg_server_parse(z->server, &server, &f);
    if (err == CLAVE_OK && (*server.client.port || *server.secure_client.port))
        err = zoocfg_server_check_id(z->slots[DATA_DIR], z->server_id, &f);
    if (err == CLAVE_OK)
        return zoocfg_load_merge_client(z, &server.client, PORT, ADDRESS, "clientPort") &&
               zoocfg_load_merge_client(z, &server.secure_client, SECURE_PORT, SECURE_ADDRESS,
                                        "secureClientPort");
    refuse(z, z->server_line, "server.%s=%s: %s", z->server_id, z->server,
           *why ? why : clave_strerror(err));
    z->err = err;
    return false;
}

static bool zoocfg_load_check_servers(struct zoocfg *z)
{
    if (z->servers <= 1)
        return true;
    return refuse(
        z, z->server_line,
        "an ensemble of %u servers: clave is a single server without replication. Stay with "
        "Apache ZooKeeper, or leave only this server's 'server.' line to serve its data",
        z->servers);
}

/* Apache does not start either. */
static bool zoocfg_load_check_ports(struct zoocfg *z)
{
    if (z->slots[ADDRESS] && !z->slots[PORT])
        return refuse(z, z->lines[ADDRESS], "clientPortAddress has no effect without clientPort");
    if (z->slots[SECURE_ADDRESS] && !z->slots[SECURE_PORT])
        return refuse(z, z->lines[SECURE_ADDRESS],
                      "secureClientPortAddress has no effect without secureClientPort");
    return true;
}

static bool zoocfg_load_check_dirs(struct zoocfg *z)
{
    return *z->slots[DATA_DIR] || refuse(z, z->lines[DATA_DIR], "dataDir has no value");
}

/* Apache's own image has one. */
static bool zoocfg_load_check_log_dir(struct zoocfg *z)
{
    const char *data = z->slots[DATA_DIR], *log = z->slots[LOG_DIR];
    char why[600] = "";
    const struct fault f = {why, sizeof why};
    if (!log || !*data || zoocfg_dirs_same(data, log))
        return true;
    if (zoocfg_dirs_check(data, log, &f) != CLAVE_OK)
        return refuse(z, z->lines[LOG_DIR], "dataLogDir=%s: %s", log, why);
    zoocfg_load_pass_over(z, z->lines[LOG_DIR], "dataLogDir",
                          "it has no logs, and clave keeps its own in dataDir, ignored");
    return true;
}

static void zoocfg_load_finish(struct zoocfg *z)
{
    bool fine = zoocfg_load_check_servers(z);
    fine &= zoocfg_load_check_ports(z) && fine && zoocfg_load_merge_server(z);
    fine &= zoocfg_load_check_dirs(z) && zoocfg_load_set_slot(z, DATA_DIR, "data", "dataDir");
    fine &= zoocfg_load_listen_on(z, PORT, ADDRESS);
    fine &= zoocfg_load_listen_on(z, SECURE_PORT, SECURE_ADDRESS);
    fine &= zoocfg_load_set_tls(z);
    fine &= zoocfg_load_set_admin(z);
    fine &= zoocfg_load_set_metrics(z);
    fine &= zoocfg_load_set_audit(z);
    fine &= zoocfg_load_set_required(z);
    fine &= zoocfg_load_check_log_dir(z);
    if (fine && !z->slots[PORT] && !z->slots[SECURE_PORT])
        refuse(z, z->lines[DATA_DIR],
               "there is a dataDir but no clientPort, here or in a line 'server.1=...;2181'");
}

clave_err serve_zoocfg_load(struct serve_settings *v, char *text, const char *path,
                            const struct log *log)
{
    struct zoocfg z = {.v = v, .path = path, .log = log};
    unsigned bad_line;
    if (java_properties_each(text, zoocfg_load_visit, &z, &bad_line))
        zoocfg_load_finish(&z);
    else if (bad_line > 0)
        refuse(&z, bad_line, "a malformed \\uXXXX");
    return z.err;
}
