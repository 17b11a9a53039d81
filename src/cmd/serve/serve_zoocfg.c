/* serve_zoocfg.c - Apache ZooKeeper's zoo.cfg: translates its keys to settings. serve_config.c
 * calls it. Every key that clave does not implement is logged or refused, so that nobody relies on
 * a setting without effect. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/serve/java_properties.h"
#include "cmd/serve/serve_config.h"

enum meaning {
    IGNORED, /* `text`: why it has no effect */
    REFUSED, /* `text`: what to do; unless the value is Java's "false" */
    AS_IS,   /* `text`: the setting */
    AS_MS,
    AS_SWITCH,
    AS_NUMBER, /* 0x.. too, as Java's decode() */
    WORDS,
    KEPT, /* remembered in slot `slot`, for the end */
    SERVER,
};

enum slot {
    DATA_DIR,
    LOG_DIR,
    PORT,
    ADDRESS,
    SECURE_PORT,
    SECURE_ADDRESS,
    CERT,
    CA,
    CLIENTS,
    SUPER,
    ADMIN_ENABLED,
    ADMIN_ADDRESS,
    ADMIN_PORT,
    ADMIN_URL,
    METRICS_CLASS,
    METRICS_HOST,
    METRICS_PORT,
    SLOTS
};

struct key {
    const char *name; /* ending with '.': all keys that begin so */
    enum meaning meaning;
    const char *text;
    enum slot slot;
};

static const char alone[] = "no effect on a single server, ignored";
static const char no_https[] =
    "clave serves HTTP without TLS to every client that can reach it: leave the line out, and "
    "choose an address that only trusted clients can reach";
static const char no_commands[] = "no effect: clave has no such command, ignored";
static const char prometheus[] =
    "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";
static const char no_meaning[] = "no effect in clave, ignored";
static const char no_sasl[] =
    "clave does not reject clients that do not authenticate: stay with Apache ZooKeeper, or leave "
    "the line out, and restrict clients with access lists and certificates (secureClientPort)";
static const char unrevoked[] =
    "clave does not check for revoked certificates: use short-lived ones, and leave the "
    "line out";

static const struct key keys[] = {
    {"dataDir", KEPT, NULL, DATA_DIR},
    {"dataLogDir", KEPT, NULL, LOG_DIR},
    {"clientPort", KEPT, NULL, PORT},
    {"clientPortAddress", KEPT, NULL, ADDRESS},
    {"secureClientPort", KEPT, NULL, SECURE_PORT},
    {"secureClientPortAddress", KEPT, NULL, SECURE_ADDRESS},
    {"tickTime", AS_MS, "tick", 0},
    {"minSessionTimeout", AS_MS, "min-session-timeout", 0},
    {"maxSessionTimeout", AS_MS, "max-session-timeout", 0},
    {"maxClientCnxns", AS_IS, "max-connections", 0},
    {"maxCnxns", AS_IS, "max-all-connections", 0},
    {"sessionlessCnxnTimeout", AS_MS, "sessionless-timeout", 0},
    {"snapCount", AS_IS, "snap-count", 0},
    {"globalOutstandingLimit", AS_IS, "max-outstanding", 0},
    {"jute.maxbuffer", AS_NUMBER, "max-request", 0},
    {"extendedTypesEnabled", AS_SWITCH, "extended-types", 0},
    {"enforceQuota", AS_SWITCH, "enforce-quota", 0},
    {"DigestAuthenticationProvider.superDigest", AS_IS, "super-digest", 0},
    {"znode.container.checkIntervalMs", AS_MS, "container-check", 0},
    {"znode.container.maxPerMinute", AS_IS, "container-rate", 0},
    {"znode.container.maxNeverUsedIntervalMs", AS_MS, "container-unused", 0},
    {"4lw.commands.whitelist", WORDS, NULL, 0},
    {"ssl.keyStore.location", KEPT, NULL, CERT},
    {"ssl.trustStore.location", KEPT, NULL, CA},
    {"ssl.clientAuth", KEPT, NULL, CLIENTS},
    {"X509AuthenticationProvider.superUser", KEPT, NULL, SUPER},
    {"ssl.keyStore.password", IGNORED, "ignored: clave reads only keys without a password", 0},
    {"ssl.keyStore.passwordPath", IGNORED, "ignored: clave reads only keys without a password", 0},
    {"ssl.quorum.", IGNORED, alone, 0},
    {"ssl.crl", REFUSED, unrevoked, 0},
    {"ssl.ocsp", REFUSED, unrevoked, 0},
    {"ssl.", IGNORED, "ignored: clave uses OpenSSL's defaults", 0},
    {"sslQuorum", IGNORED, alone, 0},
    {"client.portUnification", REFUSED,
     "one port for clients with and without TLS is not supported: use secureClientPort for TLS", 0},
    {"portUnification", IGNORED, alone, 0},
    {"server.", SERVER, NULL, 0},
    {"dynamicConfigFile", REFUSED,
     "it names the servers of an ensemble, and clave is a single server without replication: stay "
     "with "
     "Apache ZooKeeper, or leave the line out to serve this server's data",
     0},
    {"group.", IGNORED, alone, 0},
    {"weight.", IGNORED, alone, 0},
    {"initLimit", IGNORED, alone, 0},
    {"syncLimit", IGNORED, alone, 0},
    {"connectToLearnerMasterLimit", IGNORED, alone, 0},
    {"electionAlg", IGNORED, alone, 0},
    {"electionPortBindRetry", IGNORED, alone, 0},
    {"peerType", IGNORED, alone, 0},
    {"standaloneEnabled", IGNORED, alone, 0},
    {"reconfigEnabled", IGNORED, alone, 0},
    {"quorum.", IGNORED, alone, 0},
    {"quorumListenOnAllIPs", IGNORED, alone, 0},
    {"multiAddress.", IGNORED, alone, 0},
    {"leaderServes", IGNORED, alone, 0},
    {"cnxTimeout", IGNORED, alone, 0},
    {"syncEnabled", IGNORED, alone, 0},
    {"observer.", IGNORED, alone, 0},
    {"observerMasterPort", IGNORED, alone, 0},
    {"localSessionsEnabled", IGNORED, alone, 0},
    {"localSessionsUpgradingEnabled", IGNORED, alone, 0},
    {"admin.enableServer", KEPT, NULL, ADMIN_ENABLED},
    {"admin.serverAddress", KEPT, NULL, ADMIN_ADDRESS},
    {"admin.serverPort", KEPT, NULL, ADMIN_PORT},
    {"admin.commandURL", KEPT, NULL, ADMIN_URL},
    {"admin.forceHttps", REFUSED, no_https, 0},
    {"admin.needClientAuth", REFUSED, no_https, 0},
    {"admin.portUnification", REFUSED, no_https, 0},
    {"admin.rateLimiterIntervalInMS", IGNORED, no_commands, 0},
    {"admin.snapshot.", IGNORED, no_commands, 0},
    {"admin.restore.", IGNORED, no_commands, 0},
    {"admin.idleTimeout", IGNORED,
     "ignored: clave closes a connection after five seconds without a request", 0},
    {"admin.", REFUSED, "clave does not know this key, and does not serve HTTP without it", 0},
    {"metricsProvider.className", KEPT, NULL, METRICS_CLASS},
    {"metricsProvider.httpHost", KEPT, NULL, METRICS_HOST},
    {"metricsProvider.httpPort", KEPT, NULL, METRICS_PORT},
    {"metricsProvider.httpsPort", REFUSED, no_https, 0},
    {"metricsProvider.ssl.", REFUSED, no_https, 0},
    {"metricsProvider.", IGNORED, no_meaning, 0},
    {"autopurge.", IGNORED, "ignored: files that no start needs are removed after each snapshot",
     0},
    {"preAllocSize", IGNORED, no_meaning, 0},
    {"txnLogSizeLimitInKb", IGNORED, no_meaning, 0},
    {"forceSync", IGNORED, "ignored: every write is on disk before it is answered", 0},
    {"skipACL", REFUSED, "ACLs are always checked: leave the line out, and use --super-digest", 0},
    {"enforce.auth.enabled", REFUSED, no_sasl, 0},
    {"enforce.auth.schemes", IGNORED, no_meaning, 0},
    {"sessionRequireClientSASLAuth", REFUSED, no_sasl, 0},
    {"requireClientAuthScheme", REFUSED, no_sasl, 0},
    {"emulate353TTLNodes", REFUSED,
     "3.5.3's nodes with a time to live would be taken for nodes of dead sessions: stay "
     "with Apache ZooKeeper until they are gone",
     0},
    {"serverCnxnFactory", IGNORED, no_meaning, 0},
    {"clientPortListenBacklog", IGNORED, no_meaning, 0},
    {"maxResponseCacheSize", IGNORED, no_meaning, 0},
    {"maxGetChildrenResponseCacheSize", IGNORED, no_meaning, 0},
    {"commitProcessor.", IGNORED, no_meaning, 0},
    {"nio.", IGNORED, no_meaning, 0},
    {"netty.", IGNORED, no_meaning, 0},
    {"fsync.", IGNORED, no_meaning, 0},
    {"snapshot.", IGNORED, "ignored: snapshots are not compressed", 0},
    {"digest.enabled", IGNORED, "ignored: digests are always kept", 0},
    {"authProvider.", IGNORED,
     "ignored: the schemes are digest, ip, uid, world and, with TLS, x509", 0},
    {"jvm.", IGNORED, no_meaning, 0},
    {"secure", IGNORED, no_meaning, 0},
};

/* Further keys of the 3.8 administrator's guide, for features that clave does not have. */
static const char others[] =
    " advancedFlowControlEnabled audit.enable audit.impl.class bitHashCacheSize client.certReload "
    "closeSessionTxn.enabled commitLogCount connectionDecreaseRatio connectionDropDecrease "
    "connectionDropIncrease connectionFreezeTime connectionGlobalSessionWeight "
    "connectionLocalSessionWeight connectionMaxTokens connectionRenewSessionWeight "
    "connectionTokenFillCount connectionTokenFillTime connectionWeightEnabled "
    "fastleader.maxNotificationInterval fastleader.minNotificationInterval flushDelay "
    "forward_learner_requests_to_commit_processor_disabled intBufferStartingSizeBytes "
    "jute.maxbuffer.extrasize kerberos.canonicalizeHostNames kerberos.removeHostFromPrincipal "
    "largeRequestMaxBytes largeRequestThreshold leader.closeSocketAsync learner.asyncSending "
    "learner.closeSocketAsync maxBatchSize maxInProcessingDeadWatchers maxWriteQueuePollTime "
    "nioDirectBufferBytes nioNumSelectorThreads nioNumWorkerThreads nioWorkerThreadShutdownTimeout "
    "outstandingHandshake.limit quorumCnxnTimeoutMs readonlymode.enabled "
    "request_throttler.shutdownTimeout requestStaleConnectionCheck requestStaleLatencyCheck "
    "requestThrottleDropStale requestThrottleLimit requestThrottleStallTime "
    "serializeLastProcessedZxid.enabled snapSizeLimitInKb "
    "sslQuorumReloadCertFiles tcpKeepAlive throttledOpWaitTime watchManagerName "
    "watcherCleanIntervalInSeconds watcherCleanThreadsNum watcherCleanThreshold ";

/* Keys of which one value describes what clave does anyway, and no other is possible. */
static const struct {
    const char *name, *value, *text;
} only[] = {
    {"ssl.keyStore.type", "PEM",
     "clave reads PEM files only; 'keytool' and 'openssl pkcs12' convert the store"},
    {"ssl.trustStore.type", "PEM",
     "clave reads PEM files only; 'keytool' and 'openssl pkcs12' convert the store"},
    {"ssl.authProvider", "x509",
     "every certificate of an authority in ssl.trustStore.location is accepted, and no other "
     "verifier is asked"},
    {"DigestAuthenticationProvider.digestAlg", "SHA1",
     "clave knows only SHA1 digests of passwords: access lists with others would admit nobody"},
    {"X509AuthenticationProvider.clientCertIdType", "SUBJECT",
     "a certificate's subject is its identity: access lists with others would admit nobody"},
};

struct zoocfg {
    struct serve_settings *v;
    const char *path;
    const struct log *log;
    clave_err err;
    const char *slots[SLOTS];
    unsigned lines[SLOTS];
    unsigned servers;
    unsigned server_line; /* of the last key */
};

__attribute__((format(printf, 3, 4))) static bool refuse(struct zoocfg *z, unsigned line,
                                                         const char *fmt, ...)
{
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    clave__log(z->log, CLAVE_LOG_ERROR, "%s:%u: %s", z->path, line, what);
    z->err = CLAVE_EINVAL;
    return false;
}

static void serve_zoocfg_pass_over(const struct zoocfg *z, unsigned line, const char *key,
                                   const char *why)
{
    clave__log(z->log, CLAVE_LOG_WARN, "%s:%u: %s: %s", z->path, line, key, why);
}

static bool serve_zoocfg_set(struct zoocfg *z, unsigned line, const char *name, const char *key,
                             const char *value)
{
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    z->err = settings_set(z->v, name, value, &f);
    if (z->err == CLAVE_OK)
        return true;
    clave__log(z->log, CLAVE_LOG_ERROR, "%s:%u: %s '%s': %s", z->path, line, key, value,
               why[0] ? why : clave_strerror(z->err));
    return false;
}

/* ---- values --------------------------------------------------------------------------------- */

static bool is_true(const char *value)
{
    return strcasecmp(value, "true") == 0;
}

static bool set_number(struct zoocfg *z, unsigned line, const struct key *k, const char *value)
{
    char text[32], *end;
    errno = 0;
    long long n = strtoll(value, &end, k->meaning == AS_NUMBER ? 0 : 10);
    if (end == value || *end != '\0' || errno != 0)
        return refuse(z, line, "%s '%s': not a number", k->name, value);
    if (k->meaning == AS_MS && n == -1) /* in Apache this means "not given" */
        return true;
    snprintf(text, sizeof text, k->meaning == AS_MS ? "%lldms" : "%lld", n);
    return serve_zoocfg_set(z, line, k->text, k->name, text);
}

static bool is_known_word(const char *word, size_t n)
{
    static const char known[] = SERVER_WORDS "," SERVER_OTHER_WORDS;
    char text[5] = "";
    memcpy(text, word, n == 4 ? n : 0);
    return n == 4 && strstr(known, text);
}

/* "stat, ruok": those that clave knows, and srvr, which Apache answers whatever the list says. */
static bool set_words(struct zoocfg *z, unsigned line, const struct key *k, const char *value)
{
    char list[200] = "srvr";
    for (const char *at = value; *at;) {
        at += strspn(at, ", \t");
        size_t n = strcspn(at, ", \t");
        if (n == 1 && *at == '*')
            return serve_zoocfg_set(z, line, "words", k->name, "*");
        if (is_known_word(at, n) && strlen(list) + n + 2 < sizeof list) {
            strcat(list, ",");
            strncat(list, at, n);
        } else if (n > 0) {
            clave__log(z->log, CLAVE_LOG_WARN, "%s:%u: %s: no such word '%.*s', ignored", z->path,
                       line, k->name, (int)n, at);
        }
        at += n;
    }
    return serve_zoocfg_set(z, line, "words", k->name, list);
}

static bool serve_zoocfg_keep(struct zoocfg *z, unsigned line, const struct key *k,
                              const char *value)
{
    z->slots[k->slot] = settings_keep(z->v, value);
    z->lines[k->slot] = line;
    z->err = z->slots[k->slot] ? CLAVE_OK : CLAVE_ENOMEM;
    return z->err == CLAVE_OK;
}

/* true: the key is one of `only`; refused unless it has its one value. */
static bool take_only(struct zoocfg *z, unsigned line, const char *name, const char *value)
{
    size_t i = 0, n = sizeof only / sizeof *only;
    while (i < n && strcmp(name, only[i].name) != 0)
        i++;
    if (i < n && strcasecmp(value, only[i].value) != 0)
        refuse(z, line, "%s=%s: %s", name, value, only[i].text);
    return i < n;
}

/* ---- keys -------------------------------------------------------------------------------------
 */

static const struct key *serve_zoocfg_find(const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t n = strlen(keys[i].name);
        bool all = keys[i].name[n - 1] != '.';
        if (all ? strcmp(name, keys[i].name) == 0 : strncmp(name, keys[i].name, n) == 0)
            return &keys[i];
    }
    return NULL;
}

static bool is_other(const char *name)
{
    char word[80];
    int n = snprintf(word, sizeof word, " %s ", name);
    return n < (int)sizeof word && strstr(others, word);
}

static bool serve_zoocfg_take(void *arg, unsigned line, const char *name, const char *value)
{
    struct zoocfg *z = arg;
    const struct key *k = serve_zoocfg_find(name);
    if (take_only(z, line, name, value))
        return z->err == CLAVE_OK;
    if (!k) {
        serve_zoocfg_pass_over(z, line, name, is_other(name) ? no_meaning : "unknown key, ignored");
        return true;
    }
    switch (k->meaning) {
    case IGNORED:
        serve_zoocfg_pass_over(z, line, name, k->text);
        return true;
    case REFUSED:
        if (strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0)
            return refuse(z, line, "%s: %s", name, k->text);
        return true;
    case AS_IS:
        return serve_zoocfg_set(z, line, k->text, name, value);
    case AS_SWITCH:
        return serve_zoocfg_set(z, line, k->text, name, is_true(value) ? "true" : "false");
    case AS_MS:
    case AS_NUMBER:
        return set_number(z, line, k, value);
    case WORDS:
        return set_words(z, line, k, value);
    case KEPT:
        return serve_zoocfg_keep(z, line, k, value);
    case SERVER:
        z->servers++;
        z->server_line = line;
        return true;
    }
    return true;
}

/* ---- what depends on several keys ----------------------------------------------------------- */

static bool set_slot(struct zoocfg *z, enum slot slot, const char *name, const char *key)
{
    return !z->slots[slot] || serve_zoocfg_set(z, z->lines[slot], name, key, z->slots[slot]);
}

/* Sets `name` to this port of the remembered host, or of all addresses without one. */
static bool set_address(struct zoocfg *z, unsigned line, const char *name, const char *key,
                        enum slot address, const char *port)
{
    const char *host = z->slots[address];
    const char *prefix = address == SECURE_ADDRESS ? "tls:" : "";
    char text[300];
    bool bare_v6 = host && strchr(host, ':') && *host != '[';
    snprintf(text, sizeof text, "%s%s%s%s:%s", prefix, bare_v6 ? "[" : "", host ? host : "*",
             bare_v6 ? "]" : "", port);
    return serve_zoocfg_set(z, line, name, key, text);
}

/* -1 after a message: not a port. */
static long port_of(struct zoocfg *z, enum slot port, const char *key)
{
    char *end;
    long number = strtol(z->slots[port], &end, 10);
    if (end != z->slots[port] && *end == '\0' && number >= 0 && number <= 65535)
        return number;
    refuse(z, z->lines[port], "%s '%s': not a port, 1 to 65535", key, z->slots[port]);
    return -1;
}

static bool listen_on(struct zoocfg *z, enum slot port, enum slot address)
{
    const char *key = port == PORT ? "clientPort" : "secureClientPort";
    if (!z->slots[port])
        return true;
    long number = port_of(z, port, key);
    if (number == 0) /* in Apache this means "none" */
        z->slots[port] = NULL;
    return number == 0 ||
           (number > 0 && set_address(z, z->lines[port], "listen", key, address, z->slots[port]));
}

static bool http_on(struct zoocfg *z, const char *name, enum slot port, enum slot address,
                    const char *key, const char *standard)
{
    if (z->slots[port] && port_of(z, port, key) < 0)
        return false;
    unsigned line = z->lines[port] ? z->lines[port] : z->lines[address];
    return set_address(z, line, name, key, address, z->slots[port] ? z->slots[port] : standard);
}

/* Apache opens it by default, on every address: here it is opened only if the file mentions it. */
static bool set_admin(struct zoocfg *z)
{
    bool asked = z->slots[ADMIN_ADDRESS] || z->slots[ADMIN_PORT] || z->slots[ADMIN_ENABLED];
    if (!asked && z->slots[ADMIN_URL])
        serve_zoocfg_pass_over(z, z->lines[ADMIN_URL], "admin.commandURL",
                               "no effect without admin.serverPort, ignored");
    if (!asked || (z->slots[ADMIN_ENABLED] && !is_true(z->slots[ADMIN_ENABLED])))
        return true;
    return http_on(z, "admin", ADMIN_PORT, ADMIN_ADDRESS, "admin.serverPort", "8080") &&
           set_slot(z, ADMIN_URL, "admin-url", "admin.commandURL");
}

static bool set_metrics(struct zoocfg *z)
{
    const char *class = z->slots[METRICS_CLASS];
    if (class && strcmp(class, prometheus) == 0)
        return http_on(z, "metrics", METRICS_PORT, METRICS_HOST, "metricsProvider.httpPort",
                       "7000");
    for (enum slot i = METRICS_CLASS; i <= METRICS_PORT; i++)
        if (z->slots[i])
            serve_zoocfg_pass_over(
                z, z->lines[i], "metricsProvider",
                "no effect without Apache's className=PrometheusMetricsProvider, ignored");
    return true;
}

/* Apache reads these only if there is a secure port. */
static bool serve_zoocfg_set_tls(struct zoocfg *z)
{
    if (!z->slots[SECURE_PORT])
        return true;
    if (!z->slots[CERT])
        return refuse(
            z, z->lines[SECURE_PORT],
            "secureClientPort needs ssl.keyStore.location, a PEM file with the certificate "
            "and its key");
    return set_slot(z, CERT, "tls-cert", "ssl.keyStore.location") &&
           set_slot(z, CA, "tls-ca", "ssl.trustStore.location") &&
           set_slot(z, CLIENTS, "tls-clients", "ssl.clientAuth") &&
           set_slot(z, SUPER, "x509-super", "X509AuthenticationProvider.superUser");
}

static bool check_servers(struct zoocfg *z)
{
    if (z->servers == 1)
        serve_zoocfg_pass_over(z, z->server_line, "server", alone);
    if (z->servers <= 1)
        return true;
    return refuse(
        z, z->server_line,
        "an ensemble of %u servers: clave is a single server without replication. Stay with "
        "Apache ZooKeeper, or leave out the 'server.' lines to serve this server's data",
        z->servers);
}

static bool check_dirs(struct zoocfg *z)
{
    const char *data = z->slots[DATA_DIR], *log = z->slots[LOG_DIR];
    if (!*data)
        return refuse(z, z->lines[DATA_DIR], "dataDir has no value");
    if (log && strcmp(log, data) != 0)
        return refuse(z, z->lines[LOG_DIR],
                      "dataLogDir=%s: clave keeps snapshots and logs in one directory; move "
                      "version-2/log.* to %s/version-2, and leave the line out",
                      log, data);
    return true;
}

static void serve_zoocfg_finish(struct zoocfg *z)
{
    bool fine = check_servers(z) && check_dirs(z) && set_slot(z, DATA_DIR, "data", "dataDir") &&
                listen_on(z, PORT, ADDRESS) && listen_on(z, SECURE_PORT, SECURE_ADDRESS) &&
                serve_zoocfg_set_tls(z) && set_admin(z) && set_metrics(z);
    if (fine && !z->slots[PORT] && !z->slots[SECURE_PORT])
        refuse(z, z->lines[DATA_DIR], "there is a dataDir but no clientPort");
}

clave_err serve_zoocfg_load(struct serve_settings *v, char *text, const char *path,
                            const struct log *log)
{
    struct zoocfg z = {.v = v, .path = path, .log = log};
    unsigned bad_line;
    if (java_properties_each(text, serve_zoocfg_take, &z, &bad_line))
        serve_zoocfg_finish(&z);
    else if (bad_line > 0)
        refuse(&z, bad_line, "a malformed \\uXXXX");
    return z.err;
}
