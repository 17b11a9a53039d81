/* zoocfg.c - Apache ZooKeeper's zoo.cfg: translates its keys to settings. config_file.c calls it.
 *
 * A key that corresponds to one setting of clave is set at once, by the table in settings.c. The
 * other keys are in the table in zoocfg_keys.c; some of them depend on each other (ports and
 * addresses, the line of the server, TLS, HTTP), so these are remembered, and set when the whole
 * file has been read.
 *
 * What must stay true: every key that clave does not implement is either logged or refused, so that
 * nobody relies on a setting without effect. What Apache refuses is refused. Forms of the server's
 * line that Apache accepts only by accident are refused as well, since this line decides who may
 * connect. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/serve/config_file.h"
#include "cmd/serve/java_properties.h"
#include "cmd/serve/zoocfg_keys.h"
#include "runtime/start_error.h"
#include "runtime/text_file.h"

/* ---- dataLogDir: Apache keeps its logs there, clave keeps them in dataDir -------------------- */

/* Whether both are the same directory, however its name is written. */
static bool zoocfg_dirs_same(const char *a, const char *b)
{
    struct stat one, other;
    return strcmp(a, b) == 0 || (stat(a, &one) == 0 && stat(b, &other) == 0 &&
                                 one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

/* Whether dir/version-2 contains a file whose name begins with `prefix`. A missing directory
 * contains none. */
static clave_err zoocfg_dirs_look(const char *dir, const char *prefix, bool *found,
                                  const struct fault *f)
{
    char path[PATH_MAX];
    *found = false;
    if (snprintf(path, sizeof path, "%s/version-2", dir) >= (int)sizeof path)
        return clave__start_error(f, CLAVE_EINVAL, "%.40s... is too long", dir);
    DIR *d = opendir(path);
    if (!d && (errno == ENOENT || errno == ENOTDIR))
        return CLAVE_OK;
    if (!d)
        return clave__start_error(f, CLAVE_EINVAL, "cannot open %s: %s", path, strerror(errno));
    const struct dirent *e;
    while (!*found && (e = readdir(d)))
        *found = strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return CLAVE_OK;
}

/* Whether clave has served this directory before; then all logs there are must be in it. */
static bool zoocfg_dirs_are_ours(const char *data_dir)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/clave.lock", data_dir) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* Whether the log directory may be ignored. EINVAL, with the fault: a start from data_dir alone
 * would lose transactions, which are in log_dir, or should be. */
static clave_err zoocfg_dirs_check(const char *data_dir, const char *log_dir, const struct fault *f)
{
    bool logs_there, logs_here, snapshots;
    clave_err err = zoocfg_dirs_look(log_dir, "log.", &logs_there, f);
    if (err == CLAVE_OK)
        err = zoocfg_dirs_look(data_dir, "log.", &logs_here, f);
    if (err == CLAVE_OK)
        err = zoocfg_dirs_look(data_dir, "snapshot.", &snapshots, f);
    if (err != CLAVE_OK)
        return err;
    if (logs_there)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "clave keeps snapshots and logs in one directory; move "
                                  "version-2/log.* to %s/version-2, and leave the line out",
                                  data_dir);
    if (snapshots && !logs_here && !zoocfg_dirs_are_ours(data_dir))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "%s/version-2 has snapshots, but no logs are here or there: is "
                                  "a disk not mounted? If there are none, leave the line out",
                                  data_dir);
    return CLAVE_OK;
}

/* ---- the line of the server ------------------------------------------------------------------ */

/* The line "server.1=...", which may name the client port since version 3.5:
 *
 *   host:2888:3888[:participant][|host:2888:3888...][;[[address:]2181][;[address:]2281]]
 *
 * The last part, a port for TLS, exists in the versions after 3.9. */

enum { ZOOCFG_HOST_CAP = 256, ZOOCFG_PORT_CAP = 8 };

struct zoocfg_client_address {
    char host[ZOOCFG_HOST_CAP]; /* without brackets; "": every address */
    char port[ZOOCFG_PORT_CAP]; /* "": the line names no port */
};
struct zoocfg_server {
    struct zoocfg_client_address client, secure_client;
};

static const char zoocfg_server_form[] =
    "expected host:port:port, maybe with :participant, and after a ';' the client port: "
    "localhost:2888:3888;2181, or ;127.0.0.1:2181";

static bool zoocfg_server_is_port(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n <= 5 && strspn(text, "0123456789") == n && atoi(text) >= 1 &&
           atoi(text) <= 65535;
}

/* Splits "host:rest" or "[v6]:rest" and returns the rest. NULL: no host with a ':' behind it. */
static char *zoocfg_server_cut_host(char *text, char **host)
{
    bool bracket = *text == '[';
    char *end = strchr(text, bracket ? ']' : ':');
    *host = bracket ? text + 1 : text;
    if (!end || end == *host || (bracket && end[1] != ':'))
        return NULL;
    *end = '\0';
    return end + (bracket ? 2 : 1);
}

/* Checks the address of another server, which we do not need, in order to be sure that we
 * understand the line. */
static clave_err zoocfg_server_check_peer(char *text, const struct fault *f)
{
    char *host, *rest = zoocfg_server_cut_host(text, &host), *next = NULL;
    char *port = rest ? strtok_r(rest, ":", &next) : NULL;
    char *election = port ? strtok_r(NULL, ":", &next) : NULL;
    char *role = election ? strtok_r(NULL, ":", &next) : NULL;
    bool more = role && strtok_r(NULL, ":", &next);
    if (!election || !zoocfg_server_is_port(port) || !zoocfg_server_is_port(election) || more ||
        (role && strcasecmp(role, "participant") != 0 && strcasecmp(role, "observer") != 0))
        return clave__start_error(f, CLAVE_EINVAL, "%s", zoocfg_server_form);
    if (role && strcasecmp(role, "observer") == 0)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "an observer needs other servers: clave is a single server; name "
                                  "this one a participant, or leave the line out");
    return CLAVE_OK;
}

/* Takes "2181", "address:2181" or "[v6]:2181"; "" is no port. */
static clave_err zoocfg_server_take_client(char *text, struct zoocfg_client_address *out,
                                           const struct fault *f)
{
    char *host = NULL, *port = text;
    if (*text == '\0')
        return CLAVE_OK;
    if (strchr(text, ':'))
        port = zoocfg_server_cut_host(text, &host);
    if (!port || !zoocfg_server_is_port(port) || (host && strlen(host) >= ZOOCFG_HOST_CAP))
        return clave__start_error(f, CLAVE_EINVAL, "%s", zoocfg_server_form);
    strcpy(out->host, host ? host : "");
    strcpy(out->port, port);
    return CLAVE_OK;
}

/* Parses the line. EINVAL, with the fault: it does not have the form above, or it is an
 * observer's. */
static clave_err zoocfg_server_parse(const char *value, struct zoocfg_server *out,
                                     const struct fault *f)
{
    enum { PARTS = 3 };
    char *text = strdup(value), *parts[PARTS], none[] = "", *next = NULL;
    size_t n = 0;
    memset(out, 0, sizeof *out);
    if (!text)
        return CLAVE_ENOMEM;
    char *rest = text;
    for (; n < PARTS && rest; n++)
        parts[n] = strsep(&rest, ";");
    clave_err err = rest || strspn(parts[0], "|") == strlen(parts[0])
                        ? clave__start_error(f, CLAVE_EINVAL, "%s", zoocfg_server_form)
                        : CLAVE_OK;
    for (char *peer = strtok_r(parts[0], "|", &next); peer && err == CLAVE_OK;
         peer = strtok_r(NULL, "|", &next))
        err = zoocfg_server_check_peer(peer, f);
    if (err == CLAVE_OK)
        err = zoocfg_server_take_client(n > 1 ? parts[1] : none, &out->client, f);
    if (err == CLAVE_OK)
        err = zoocfg_server_take_client(n > 2 ? parts[2] : none, &out->secure_client, f);
    free(text);
    return err;
}

/* Checks that the line is this server's: `id` is what follows "server." in the key. EINVAL, with
 * the fault: the file DATA_DIR/myid exists and contains something else. A server without
 * replication does not need that file. */
static clave_err zoocfg_server_check_id(const char *data_dir, const char *id, const struct fault *f)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/myid", data_dir) >= (int)sizeof path)
        return clave__start_error(f, CLAVE_EINVAL, "%.40s... is too long", data_dir);
    char why[TEXT_FILE_WHY];
    char *text = clave__text_file_read(path, why), *end;
    if (!text && (errno == ENOENT || errno == ENOTDIR))
        return CLAVE_OK;
    if (!text)
        return clave__start_error(f, errno == ENOMEM ? CLAVE_ENOMEM : CLAVE_EINVAL, "%s", why);
    text[strcspn(text, "\r\n")] = '\0';
    long long own = strtoll(text, &end, 10);
    bool is_number = end != text && *end == '\0', same = is_number && own == atoll(id);
    clave_err err = CLAVE_OK;
    if (!is_number)
        err = clave__start_error(f, CLAVE_EINVAL, "%s: '%.40s' is not a number", path, text);
    else if (!same)
        err = clave__start_error(
            f, CLAVE_EINVAL,
            "the line is another server's: %s says %lld. Write this server's line, or clientPort",
            path, own);
    free(text);
    return err;
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char prometheus[] =
    "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

struct zoocfg {
    struct serve_settings *v;
    const char *path;
    const struct log *log;
    clave_err err;
    const char *slots[ZOOCFG_SLOTS];
    unsigned lines[ZOOCFG_SLOTS];
    const char *server_id, *server; /* of the last "server." line; NULL: none */
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

static void zoocfg_pass_over(const struct zoocfg *z, unsigned line, const char *key,
                             const char *why)
{
    clave__log_about(z->log, CLAVE_LOG_WARN, &(struct log_about){.path = z->path}, "%s:%u: %s: %s",
                     z->path, line, key, why);
}

static bool zoocfg_set(struct zoocfg *z, unsigned line, const char *name, const char *key,
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

/* ---- values ---------------------------------------------------------------------------------- */

static bool zoocfg_is_true(const char *value)
{
    return strcasecmp(value, "true") == 0;
}

static bool zoocfg_set_number(struct zoocfg *z, unsigned line, const char *name, const char *key,
                              const char *value, enum zoocfg_form form)
{
    char text[32], *end;
    errno = 0;
    long long n = strtoll(value, &end, form == ZOOCFG_DECODED ? 0 : 10);
    if (end == value || *end != '\0' || errno != 0)
        return refuse(z, line, "%s '%s': not a number", key, value);
    if (form == ZOOCFG_MS && n == -1) /* for Apache this means "not given" */
        return true;
    snprintf(text, sizeof text, form == ZOOCFG_MS ? "%lldms" : "%lld", n);
    return zoocfg_set(z, line, name, key, text);
}

static bool zoocfg_is_known_word(const char *word, size_t n)
{
    static const char known[] = SERVER_WORDS "," SERVER_OTHER_WORDS;
    char text[5] = "";
    memcpy(text, word, n == 4 ? n : 0);
    return n == 4 && strstr(known, text);
}

/* Takes a list such as "stat, ruok": sets the words that clave knows, and adds srvr, which Apache
 * answers whatever the list says. */
static bool zoocfg_set_words(struct zoocfg *z, unsigned line, const char *key, const char *value)
{
    char list[200] = "srvr";
    for (const char *at = value; *at;) {
        at += strspn(at, SERVER_WORDS_BETWEEN);
        size_t n = strcspn(at, SERVER_WORDS_BETWEEN);
        if (n == 1 && *at == '*')
            return zoocfg_set(z, line, "words", key, "*");
        if (zoocfg_is_known_word(at, n) && strlen(list) + n + 2 < sizeof list) {
            strcat(list, ",");
            strncat(list, at, n);
        } else if (n > 0) {
            clave__log_about(z->log, CLAVE_LOG_WARN, &(struct log_about){.path = z->path},
                             "%s:%u: %s: no such word '%.*s', ignored", z->path, line, key, (int)n,
                             at);
        }
        at += n;
    }
    return zoocfg_set(z, line, "words", key, list);
}

static bool zoocfg_keep(struct zoocfg *z, unsigned line, const struct zoocfg_key *k,
                        const char *value)
{
    z->slots[k->slot] = settings_keep(z->v, value);
    z->lines[k->slot] = line;
    if (!z->slots[k->slot])
        z->err = CLAVE_ENOMEM;
    return z->slots[k->slot];
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Apache itself puts this prefix before the name of a system property. */
static const char *zoocfg_bare(const char *name)
{
    static const char prefix[] = "zookeeper.";
    size_t n = sizeof prefix - 1;
    return strncmp(name, prefix, n) == 0 ? name + n : name;
}

/* Remembers the line; in Java's properties the last line of a key is the one that counts. */
static bool zoocfg_take_server(struct zoocfg *z, unsigned line, const char *id, const char *value)
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

/* A class that authenticates clients. clave either has the scheme of Apache's own class, or nobody
 * is admitted by it. Any other class is refused, since it may turn away clients that the scheme of
 * that name would admit here. */
static bool zoocfg_take_provider(struct zoocfg *z, unsigned line, const char *name,
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
    zoocfg_pass_over(z, line, name, "clave does not have this scheme, ignored");
    return true;
}

/* Sets a key that corresponds to one setting. */
static bool zoocfg_take_setting(struct zoocfg *z, unsigned line, const char *setting,
                                const char *key, const char *value, enum zoocfg_form form)
{
    switch (form) {
    case ZOOCFG_SWITCH:
        return zoocfg_set(z, line, setting, key, zoocfg_is_true(value) ? "true" : "false");
    case ZOOCFG_MS:
    case ZOOCFG_DECODED:
        return zoocfg_set_number(z, line, setting, key, value, form);
    case ZOOCFG_WORDS:
        return zoocfg_set_words(z, line, key, value);
    case ZOOCFG_AS_IS:
        break;
    }
    return zoocfg_set(z, line, setting, key, value);
}

/* false: the key or its value was refused. */
static bool zoocfg_take(struct zoocfg *z, unsigned line, const char *name, const char *value)
{
    enum zoocfg_form form;
    const char *setting = settings_of_zoocfg(zoocfg_bare(name), &form);
    if (setting)
        return zoocfg_take_setting(z, line, setting, name, value, form);
    const struct zoocfg_key *k = zoocfg_key_find(zoocfg_bare(name));
    if (!k) {
        zoocfg_pass_over(z, line, name, "unknown key, ignored");
        return true;
    }
    switch (k->meaning) {
    case ZOOCFG_IGNORED:
        zoocfg_pass_over(z, line, name, k->text);
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
    case ZOOCFG_KEPT:
        return zoocfg_keep(z, line, k, value);
    case ZOOCFG_PROVIDER:
        return zoocfg_take_provider(z, line, name, value, k);
    case ZOOCFG_SERVER:
        return zoocfg_take_server(z, line, zoocfg_bare(name) + strlen(k->name), value);
    }
    return true;
}

/* Looks at every line, even if an earlier one is wrong. */
static bool zoocfg_visit(void *arg, unsigned line, const char *name, const char *value)
{
    (void)zoocfg_take(arg, line, name, value);
    return true;
}

/* ---- what depends on several keys ------------------------------------------------------------ */

static bool zoocfg_set_slot(struct zoocfg *z, enum zoocfg_slot slot, const char *name,
                            const char *key)
{
    return !z->slots[slot] || zoocfg_set(z, z->lines[slot], name, key, z->slots[slot]);
}

/* Sets `name` to the given port on the remembered host, or on all addresses if there is none. */
static bool zoocfg_set_address(struct zoocfg *z, unsigned line, const char *name, const char *key,
                               enum zoocfg_slot address, const char *port)
{
    const char *host = z->slots[address];
    const char *prefix = address == SECURE_ADDRESS ? "tls:" : "";
    char text[300];
    bool bare_v6 = host && strchr(host, ':') && *host != '[';
    snprintf(text, sizeof text, "%s%s%s%s:%s", prefix, bare_v6 ? "[" : "", host ? host : "*",
             bare_v6 ? "]" : "", port);
    return zoocfg_set(z, line, name, key, text);
}

/* -1, after a message: this is not a port. */
static long zoocfg_port_of(struct zoocfg *z, enum zoocfg_slot port, const char *key)
{
    char *end;
    long number = strtol(z->slots[port], &end, 10);
    if (end != z->slots[port] && *end == '\0' && number >= 0 && number <= 65535)
        return number;
    refuse(z, z->lines[port], "%s '%s': not a port, 1 to 65535", key, z->slots[port]);
    return -1;
}

static bool zoocfg_listen_on(struct zoocfg *z, enum zoocfg_slot port, enum zoocfg_slot address)
{
    const char *key = port == PORT ? "clientPort" : "secureClientPort";
    if (!z->slots[port])
        return true;
    long number = zoocfg_port_of(z, port, key);
    if (number == 0) /* for Apache this means "none" */
        z->slots[port] = NULL;
    return number == 0 || (number > 0 && zoocfg_set_address(z, z->lines[port], "listen", key,
                                                            address, z->slots[port]));
}

static bool zoocfg_http_on(struct zoocfg *z, const char *name, enum zoocfg_slot port,
                           enum zoocfg_slot address, const char *key, const char *standard)
{
    if (z->slots[port] && zoocfg_port_of(z, port, key) < 0)
        return false;
    unsigned line = z->lines[port] ? z->lines[port] : z->lines[address];
    return zoocfg_set_address(z, line, name, key, address,
                              z->slots[port] ? z->slots[port] : standard);
}

/* Apache opens this port by default, on every address; here it is opened only if the file mentions
 * it. */
static bool zoocfg_set_admin(struct zoocfg *z)
{
    bool asked = z->slots[ADMIN_ADDRESS] || z->slots[ADMIN_PORT] || z->slots[ADMIN_ENABLED];
    if (!asked && z->slots[ADMIN_URL])
        zoocfg_pass_over(z, z->lines[ADMIN_URL], "admin.commandURL",
                         "no effect without admin.serverPort, ignored");
    if (!asked || (z->slots[ADMIN_ENABLED] && !zoocfg_is_true(z->slots[ADMIN_ENABLED])))
        return true;
    return zoocfg_http_on(z, "admin", ADMIN_PORT, ADMIN_ADDRESS, "admin.serverPort", "8080") &&
           zoocfg_set_slot(z, ADMIN_URL, "admin-url", "admin.commandURL");
}

static bool zoocfg_set_metrics(struct zoocfg *z)
{
    const char *class = z->slots[METRICS_CLASS];
    if (class && strcmp(class, prometheus) == 0)
        return zoocfg_http_on(z, "metrics", METRICS_PORT, METRICS_HOST, "metricsProvider.httpPort",
                              "7000");
    for (enum zoocfg_slot i = METRICS_CLASS; i <= METRICS_PORT; i++)
        if (z->slots[i])
            zoocfg_pass_over(
                z, z->lines[i], "metricsProvider",
                "no effect without Apache's className=PrometheusMetricsProvider, ignored");
    return true;
}

/* Apache's logger configuration says where its audit lines go; here they go to standard output. */
static bool zoocfg_set_audit(struct zoocfg *z)
{
    return !z->slots[AUDIT] || !zoocfg_is_true(z->slots[AUDIT]) ||
           zoocfg_set(z, z->lines[AUDIT], "audit", "audit.enable", "-");
}

/* Apache does not start without schemes, or with a scheme it does not have. */
static bool zoocfg_set_required(struct zoocfg *z)
{
    const char *schemes = z->slots[SCHEMES];
    bool enforced = z->slots[ENFORCE] && zoocfg_is_true(z->slots[ENFORCE]);
    char list[100];
    size_t n = 0;
    if (!enforced && schemes)
        zoocfg_pass_over(z, z->lines[SCHEMES], "enforce.auth.schemes",
                         "no effect without enforce.auth.enabled, ignored");
    if (!enforced)
        return true;
    if (!schemes)
        return refuse(z, z->lines[ENFORCE], "enforce.auth.enabled needs enforce.auth.schemes");
    for (; *schemes && n < sizeof list - 1; schemes++)
        if (*schemes != ' ' && *schemes != '\t')
            list[n++] = *schemes;
    list[n] = '\0';
    return zoocfg_set(z, z->lines[SCHEMES], "require-auth", "enforce.auth.schemes", list);
}

/* Apache reads these keys only if there is a secure port. */
static bool zoocfg_set_tls(struct zoocfg *z)
{
    if (!z->slots[SECURE_PORT])
        return true;
    if (!z->slots[CERT])
        return refuse(
            z, z->lines[SECURE_PORT],
            "secureClientPort needs ssl.keyStore.location, a PEM file with the certificate "
            "and its key");
    return zoocfg_set_slot(z, CERT, "tls-cert", "ssl.keyStore.location") &&
           zoocfg_set_slot(z, CA, "tls-ca", "ssl.trustStore.location") &&
           zoocfg_set_slot(z, CLIENTS, "tls-clients", "ssl.clientAuth") &&
           zoocfg_set_slot(z, SUPER, "x509-super", "X509AuthenticationProvider.superUser");
}

static bool zoocfg_is_every_address(const char *host)
{
    return !*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* Puts the address from the server's line into the slots of a client port. It may repeat what is
 * there, or narrow it to one address; anything else is a contradiction, for Apache too. */
static bool zoocfg_merge_client(struct zoocfg *z, const struct zoocfg_client_address *a,
                                enum zoocfg_slot port, enum zoocfg_slot address, const char *key)
{
    const char *given = z->slots[port], *host = z->slots[address] ? z->slots[address] : "";
    if (!*a->port)
        return true;
    if (given && strcmp(given, a->port) != 0)
        return refuse(z, z->server_line,
                      "server.%s: its client port is %s, but %s on line %u is %s", z->server_id,
                      a->port, key, z->lines[port], given);
    if (!zoocfg_is_every_address(host) && strcasecmp(host, a->host) != 0)
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

static bool zoocfg_merge_server(struct zoocfg *z)
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
        return zoocfg_merge_client(z, &server.client, PORT, ADDRESS, "clientPort") &&
               zoocfg_merge_client(z, &server.secure_client, SECURE_PORT, SECURE_ADDRESS,
                                   "secureClientPort");
    refuse(z, z->server_line, "server.%s=%s: %s", z->server_id, z->server,
           *why ? why : clave_strerror(err));
    z->err = err;
    return false;
}

static bool zoocfg_check_servers(struct zoocfg *z)
{
    if (z->servers <= 1)
        return true;
    return refuse(
        z, z->server_line,
        "an ensemble of %u servers: clave is a single server without replication. Stay with "
        "Apache ZooKeeper, or leave only this server's 'server.' line to serve its data",
        z->servers);
}

/* Apache does not start in these cases either. */
static bool zoocfg_check_ports(struct zoocfg *z)
{
    if (z->slots[ADDRESS] && !z->slots[PORT])
        return refuse(z, z->lines[ADDRESS], "clientPortAddress has no effect without clientPort");
    if (z->slots[SECURE_ADDRESS] && !z->slots[SECURE_PORT])
        return refuse(z, z->lines[SECURE_ADDRESS],
                      "secureClientPortAddress has no effect without secureClientPort");
    return true;
}

static bool zoocfg_check_dirs(struct zoocfg *z)
{
    return *z->slots[DATA_DIR] || refuse(z, z->lines[DATA_DIR], "dataDir has no value");
}

/* Apache's own image sets dataLogDir, so the key is accepted if that directory has no logs. */
static bool zoocfg_check_log_dir(struct zoocfg *z)
{
    const char *data = z->slots[DATA_DIR], *log = z->slots[LOG_DIR];
    char why[600] = "";
    const struct fault f = {why, sizeof why};
    if (!log || !*data || zoocfg_dirs_same(data, log))
        return true;
    if (zoocfg_dirs_check(data, log, &f) != CLAVE_OK)
        return refuse(z, z->lines[LOG_DIR], "dataLogDir=%s: %s", log, why);
    zoocfg_pass_over(z, z->lines[LOG_DIR], "dataLogDir",
                     "it has no logs, and clave keeps its own in dataDir, ignored");
    return true;
}

static void zoocfg_finish(struct zoocfg *z)
{
    bool fine = zoocfg_check_servers(z);
    fine &= zoocfg_check_ports(z) && fine && zoocfg_merge_server(z);
    fine &= zoocfg_check_dirs(z) && zoocfg_set_slot(z, DATA_DIR, "data", "dataDir");
    fine &= zoocfg_listen_on(z, PORT, ADDRESS);
    fine &= zoocfg_listen_on(z, SECURE_PORT, SECURE_ADDRESS);
    fine &= zoocfg_set_tls(z);
    fine &= zoocfg_set_admin(z);
    fine &= zoocfg_set_metrics(z);
    fine &= zoocfg_set_audit(z);
    fine &= zoocfg_set_required(z);
    fine &= zoocfg_check_log_dir(z);
    if (fine && !z->slots[PORT] && !z->slots[SECURE_PORT])
        refuse(z, z->lines[DATA_DIR],
               "there is a dataDir but no clientPort, here or in a line 'server.1=...;2181'");
}

clave_err serve_zoocfg_load(struct serve_settings *v, char *text, const char *path,
                            const struct log *log)
{
    struct zoocfg z = {.v = v, .path = path, .log = log};
    unsigned bad_line;
    if (java_properties_each(text, zoocfg_visit, &z, &bad_line))
        zoocfg_finish(&z);
    else if (bad_line > 0)
        refuse(&z, bad_line, "a malformed \\uXXXX");
    return z.err;
}
