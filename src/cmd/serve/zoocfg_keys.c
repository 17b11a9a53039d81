/* zoocfg_keys.c - the table of the settings of Apache ZooKeeper, up to version 3.9, that do not
 * correspond to one setting of clave (those are in settings.c): keys of zoo.cfg, and system
 * properties, which Apache also takes from that file. zoocfg.c looks them up. A key is ignored only
 * if nobody relies on it for safety or correctness; otherwise the server does not start. */
#include "cmd/serve/zoocfg_keys.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char alone[] = "no effect on a single server, ignored";
static const char threads[] = "tunes Apache's threads, buffers and caches, ignored";
static const char no_sasl[] = "clave has no SASL, ignored";
static const char no_throttle[] =
    "clave has bounds of its own (max-outstanding, max-undelivered), ignored";
static const char no_meaning[] = "no effect in clave, ignored";
static const char no_password[] = "ignored: clave reads only keys without a password";
static const char no_commands[] = "no effect: clave has no such command, ignored";
static const char by_openssl[] = "ignored: clave uses OpenSSL's defaults, and TLS 1.2 or later";
static const char by_openssl_file[] =
    "clave takes versions and ciphers from OpenSSL's configuration: name them there (MinProtocol, "
    "CipherString, Ciphersuites), and leave the line out";
static const char no_https[] =
    "clave serves HTTP without TLS to every client that can reach it: leave the line out, and "
    "choose an address that only trusted clients can reach";
static const char require_sasl[] =
    "clave has no SASL: stay with Apache ZooKeeper, or leave the line out, and have clients "
    "authenticate otherwise (enforce.auth.enabled, enforce.auth.schemes)";
static const char unrevoked[] =
    "clave does not check for revoked certificates: use short-lived ones, and leave the "
    "line out";
static const char pem[] =
    "clave reads PEM files only; 'keytool' and 'openssl pkcs12' convert the store";

static const struct zoocfg_key keys[] = {
    /* ---- where the data are, who may connect ---- */
    {"dataDir", ZOOCFG_KEPT, "data", DATA_DIR, NULL},
    {"dataLogDir", ZOOCFG_KEPT, "data", LOG_DIR, NULL},
    {"clientPort", ZOOCFG_KEPT, "listen", PORT, NULL},
    {"clientPortAddress", ZOOCFG_KEPT, "listen", ADDRESS, NULL},
    {"secureClientPort", ZOOCFG_KEPT, "listen", SECURE_PORT, NULL},
    {"secureClientPortAddress", ZOOCFG_KEPT, "listen", SECURE_ADDRESS, NULL},
    {"db.autocreate", ZOOCFG_ONLY,
     "clave starts with an empty tree where there are no data: check that the directory is mounted "
     "before the start, and leave the line out",
     0, "true"},
    {"datadir.autocreate", ZOOCFG_ONLY,
     "clave creates a data directory that is missing: check that it is mounted before the start, "
     "and leave the line out",
     0, "true"},

    /* ---- sessions, limits ---- */
    {"emulate353TTLNodes", ZOOCFG_REFUSED,
     "3.5.3's nodes with a time to live would be taken for nodes of dead sessions: stay "
     "with Apache ZooKeeper until they are gone",
     0, NULL},

    /* ---- authentication ---- */
    {"DigestAuthenticationProvider.digestAlg", ZOOCFG_ONLY,
     "clave knows only SHA1 digests of passwords: access lists with others would admit nobody", 0,
     "SHA1"},
    {"DigestAuthenticationProvider.enabled", ZOOCFG_ONLY,
     "clave always has the scheme digest: access lists with it would go on to admit clients", 0,
     "true"},
    {"X509AuthenticationProvider.superUser", ZOOCFG_KEPT, "x509-super", SUPER, NULL},
    {"X509AuthenticationProvider.clientCertIdType", ZOOCFG_ONLY,
     "a certificate's subject is its identity: access lists with others would admit nobody", 0,
     "SUBJECT"},
    {"X509AuthenticationProvider.", ZOOCFG_IGNORED, no_meaning, 0, NULL},
    {"authProvider.", ZOOCFG_PROVIDER,
     "clave runs no Java class; the schemes are digest, ip, uid, world and, with TLS, x509: "
     "leave the line out if these admit only the right clients",
     0, NULL},
    {"IPAuthenticationProvider.usexforwardedfor", ZOOCFG_IGNORED, no_commands, 0, NULL},
    {"skipACL", ZOOCFG_REFUSED,
     "ACLs are always checked: leave the line out, and use --super-digest", 0, NULL},
    {"enforce.auth.enabled", ZOOCFG_KEPT, "require-auth", ENFORCE, NULL},
    {"enforce.auth.schemes", ZOOCFG_KEPT, "require-auth", SCHEMES, NULL},
    {"sessionRequireClientSASLAuth", ZOOCFG_REFUSED, require_sasl, 0, NULL},
    {"requireClientAuthScheme", ZOOCFG_REFUSED, require_sasl, 0, NULL},
    {"ensembleAuthName", ZOOCFG_IGNORED, "ignored: clave has no scheme ensemble", 0, NULL},
    {"enableEagerACLCheck", ZOOCFG_IGNORED, alone, 0, NULL},
    {"allowSaslFailedClients", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"SASLAuthenticationProvider.superPassword", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"letAnySaslUserDoX", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"superUser", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"superUser.", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"sasl.", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"kerberos.", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"kinit", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"requireKerberosConfig", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"security.auth_to_local", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"server.principal", ZOOCFG_IGNORED, no_sasl, 0, NULL},
    {"server.realm", ZOOCFG_IGNORED, no_sasl, 0, NULL},

    /* ---- TLS ---- */
    {"ssl.keyStore.location", ZOOCFG_KEPT, "tls-cert", CERT, NULL},
    {"ssl.trustStore.location", ZOOCFG_KEPT, "tls-ca", CA, NULL},
    {"ssl.clientAuth", ZOOCFG_KEPT, "tls-clients", CLIENTS, NULL},
    {"ssl.keyStore.type", ZOOCFG_ONLY, pem, 0, "PEM"},
    {"ssl.trustStore.type", ZOOCFG_ONLY, pem, 0, "PEM"},
    {"ssl.keyStore.password", ZOOCFG_IGNORED, no_password, 0, NULL},
    {"ssl.keyStore.passwordPath", ZOOCFG_IGNORED, no_password, 0, NULL},
    {"ssl.trustStore.password", ZOOCFG_IGNORED, no_password, 0, NULL},
    {"ssl.trustStore.passwordPath", ZOOCFG_IGNORED, no_password, 0, NULL},
    {"ssl.authProvider", ZOOCFG_ONLY,
     "every certificate of an authority in ssl.trustStore.location is accepted, and no other "
     "verifier is asked",
     0, "x509"},
    {"ssl.context.supplier.class", ZOOCFG_REFUSED,
     "clave has no other source of certificates than PEM files: name them with "
     "ssl.keyStore.location and ssl.trustStore.location",
     0, NULL},
    {"ssl.clientHostnameVerification", ZOOCFG_REFUSED,
     "clave accepts a client's certificate from every address: leave the line out, and name "
     "clients "
     "in access lists",
     0, NULL},
    {"ssl.crl", ZOOCFG_REFUSED, unrevoked, 0, NULL},
    {"ssl.ocsp", ZOOCFG_REFUSED, unrevoked, 0, NULL},
    {"ssl.tcnative.ocsp", ZOOCFG_REFUSED, unrevoked, 0, NULL},
    {"ssl.protocol", ZOOCFG_ONLY, by_openssl_file, 0, "TLSv1.2"},
    {"ssl.enabledProtocols", ZOOCFG_ONLY, by_openssl_file, 0, "TLSv1.2,TLSv1.3"},
    {"ssl.ciphersuites", ZOOCFG_REFUSED, by_openssl_file, 0, NULL},
    {"ssl.sslProvider", ZOOCFG_IGNORED, by_openssl, 0, NULL},
    {"ssl.hostnameVerification", ZOOCFG_IGNORED, alone, 0, NULL},
    {"ssl.allowReverseDnsLookup", ZOOCFG_IGNORED, no_meaning, 0, NULL},
    {"ssl.handshakeDetectionTimeoutMillis", ZOOCFG_IGNORED,
     "ignored: a handshake has sessionless-timeout", 0, NULL},
    {"ssl.quorum.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"ssl.", ZOOCFG_REFUSED,
     "clave does not know this key, and does not serve without it: it may turn clients away", 0,
     NULL},
    {"fips-mode", ZOOCFG_IGNORED, by_openssl, 0, NULL},
    {"sslQuorum", ZOOCFG_IGNORED, alone, 0, NULL},
    {"sslQuorumReloadCertFiles", ZOOCFG_IGNORED, alone, 0, NULL},
    {"client.certReload", ZOOCFG_IGNORED, "ignored: SIGHUP makes clave read the files again", 0,
     NULL},
    {"client.portUnification", ZOOCFG_REFUSED,
     "one port for clients with and without TLS is not supported: use secureClientPort for TLS", 0,
     NULL},
    {"portUnification", ZOOCFG_IGNORED, alone, 0, NULL},
    {"secure", ZOOCFG_IGNORED, no_meaning, 0, NULL},

    /* ---- ensembles ---- */
    {"server.", ZOOCFG_SERVER, "listen", 0, NULL},
    {"dynamicConfigFile", ZOOCFG_REFUSED,
     "it names the servers of an ensemble, and clave is a single server without replication: stay "
     "with Apache ZooKeeper, or leave the line out to serve this server's data",
     0, NULL},
    {"version", ZOOCFG_IGNORED, alone, 0, NULL},
    {"group.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"weight.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"oraclePath", ZOOCFG_IGNORED, alone, 0, NULL},
    {"initLimit", ZOOCFG_IGNORED, alone, 0, NULL},
    {"syncLimit", ZOOCFG_IGNORED, alone, 0, NULL},
    {"connectToLearnerMasterLimit", ZOOCFG_IGNORED, alone, 0, NULL},
    {"electionAlg", ZOOCFG_IGNORED, alone, 0, NULL},
    {"electionPortBindRetry", ZOOCFG_IGNORED, alone, 0, NULL},
    {"peerType", ZOOCFG_IGNORED, alone, 0, NULL},
    {"standaloneEnabled", ZOOCFG_IGNORED, alone, 0, NULL},
    {"reconfigEnabled", ZOOCFG_IGNORED, alone, 0, NULL},
    {"quorum.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"quorumListenOnAllIPs", ZOOCFG_IGNORED, alone, 0, NULL},
    {"quorumCnxnTimeoutMs", ZOOCFG_IGNORED, alone, 0, NULL},
    {"multiAddress.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"leaderServes", ZOOCFG_IGNORED, alone, 0, NULL},
    {"leader.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"maxConcurrentSnapSyncs", ZOOCFG_IGNORED, alone, 0, NULL},
    {"maxConcurrentDiffSyncs", ZOOCFG_IGNORED, alone, 0, NULL},
    {"maxTimeToWaitForEpoch", ZOOCFG_IGNORED, alone, 0, NULL},
    {"leaderConnectDelayDuringRetryMs", ZOOCFG_IGNORED, alone, 0, NULL},
    {"learner.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"follower.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"fastleader.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"forceSnapshotSync", ZOOCFG_IGNORED, alone, 0, NULL},
    {"forward_learner_requests_to_commit_processor_disabled", ZOOCFG_IGNORED, alone, 0, NULL},
    {"commitLogCount", ZOOCFG_IGNORED, alone, 0, NULL},
    {"snapshotSizeFactor", ZOOCFG_IGNORED, alone, 0, NULL},
    {"serializeLastProcessedZxid.enabled", ZOOCFG_IGNORED, alone, 0, NULL},
    {"cnxTimeout", ZOOCFG_IGNORED, alone, 0, NULL},
    {"tcpKeepAlive", ZOOCFG_IGNORED, alone, 0, NULL},
    {"syncEnabled", ZOOCFG_IGNORED, alone, 0, NULL},
    {"observer.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"observerMaster.", ZOOCFG_IGNORED, alone, 0, NULL},
    {"observerMasterPort", ZOOCFG_IGNORED, alone, 0, NULL},
    {"localSessionsEnabled", ZOOCFG_IGNORED, alone, 0, NULL},
    {"localSessionsUpgradingEnabled", ZOOCFG_IGNORED, alone, 0, NULL},
    {"readonlymode.enabled", ZOOCFG_IGNORED, alone, 0, NULL},

    /* ---- HTTP, metrics, logs ---- */
    {"admin.enableServer", ZOOCFG_KEPT, "admin", ADMIN_ENABLED, NULL},
    {"admin.serverAddress", ZOOCFG_KEPT, "admin", ADMIN_ADDRESS, NULL},
    {"admin.serverPort", ZOOCFG_KEPT, "admin", ADMIN_PORT, NULL},
    {"admin.commandURL", ZOOCFG_KEPT, "admin-url", ADMIN_URL, NULL},
    {"admin.forceHttps", ZOOCFG_REFUSED, no_https, 0, NULL},
    {"admin.needClientAuth", ZOOCFG_REFUSED, no_https, 0, NULL},
    {"admin.portUnification", ZOOCFG_REFUSED, no_https, 0, NULL},
    {"admin.httpVersion", ZOOCFG_IGNORED, no_meaning, 0, NULL},
    {"admin.rateLimiterIntervalInMS", ZOOCFG_IGNORED, no_commands, 0, NULL},
    {"admin.snapshot.", ZOOCFG_IGNORED, no_commands, 0, NULL},
    {"admin.restore.", ZOOCFG_IGNORED, no_commands, 0, NULL},
    {"admin.idleTimeout", ZOOCFG_IGNORED,
     "ignored: clave closes a connection after five seconds without a request", 0, NULL},
    {"admin.", ZOOCFG_REFUSED, "clave does not know this key, and does not serve HTTP without it",
     0, NULL},
    {"metricsProvider.className", ZOOCFG_KEPT, "metrics", METRICS_CLASS, NULL},
    {"metricsProvider.httpHost", ZOOCFG_KEPT, "metrics", METRICS_HOST, NULL},
    {"metricsProvider.httpPort", ZOOCFG_KEPT, "metrics", METRICS_PORT, NULL},
    {"metricsProvider.httpsPort", ZOOCFG_REFUSED, no_https, 0, NULL},
    {"metricsProvider.ssl.", ZOOCFG_REFUSED, no_https, 0, NULL},
    {"metricsProvider.", ZOOCFG_IGNORED, no_meaning, 0, NULL},
    {"audit.enable", ZOOCFG_KEPT, "audit", AUDIT, NULL},
    {"audit.impl.class", ZOOCFG_IGNORED, "ignored: the lines go to the file of --audit", 0, NULL},
    {"pathStats.", ZOOCFG_IGNORED, no_meaning, 0, NULL},
    {"messageTracker.", ZOOCFG_IGNORED, no_meaning, 0, NULL},
    {"jmx.", ZOOCFG_IGNORED, no_meaning, 0, NULL},
    {"jvm.", ZOOCFG_IGNORED, no_meaning, 0, NULL},

    /* ---- the disk ---- */
    {"autopurge.", ZOOCFG_IGNORED,
     "ignored: files that no start needs are removed after each snapshot", 0, NULL},
    {"preAllocSize", ZOOCFG_IGNORED, "ignored: clave reserves space for the log by itself", 0,
     NULL},
    {"txnLogSizeLimitInKb", ZOOCFG_IGNORED, "ignored: a log ends with each snapshot", 0, NULL},
    {"snapSizeLimitInKb", ZOOCFG_IGNORED,
     "ignored: a log ends at 256 MiB, or at the size of the tree", 0, NULL},
    {"forceSync", ZOOCFG_IGNORED, "ignored: every write is on disk before it is answered", 0, NULL},
    {"snapshot.trust.empty", ZOOCFG_IGNORED,
     "ignored: clave never starts from logs without a snapshot", 0, NULL},
    {"snapshot.", ZOOCFG_IGNORED, "ignored: snapshots are not compressed", 0, NULL},
    {"digest.enabled", ZOOCFG_IGNORED, "ignored: digests are always kept", 0, NULL},
    {"closeSessionTxn.enabled", ZOOCFG_IGNORED,
     "ignored: the nodes of a session are always in its last transaction", 0, NULL},

    /* ---- the inside of Apache's server ---- */
    {"serverCnxnFactory", ZOOCFG_IGNORED, threads, 0, NULL},
    {"clientPortListenBacklog", ZOOCFG_IGNORED, threads, 0, NULL},
    {"clientTcpKeepAlive", ZOOCFG_IGNORED, threads, 0, NULL},
    {"maxResponseCacheSize", ZOOCFG_IGNORED, threads, 0, NULL},
    {"maxGetChildrenResponseCacheSize", ZOOCFG_IGNORED, threads, 0, NULL},
    {"commitProcessor.", ZOOCFG_IGNORED, threads, 0, NULL},
    {"nio.", ZOOCFG_IGNORED, threads, 0, NULL},
    {"nioDirectBufferBytes", ZOOCFG_IGNORED, threads, 0, NULL},
    {"nioNumSelectorThreads", ZOOCFG_IGNORED, threads, 0, NULL},
    {"nioNumWorkerThreads", ZOOCFG_IGNORED, threads, 0, NULL},
    {"nioWorkerThreadShutdownTimeout", ZOOCFG_IGNORED, threads, 0, NULL},
    {"netty.", ZOOCFG_IGNORED, threads, 0, NULL},
    {"advancedFlowControlEnabled", ZOOCFG_IGNORED, threads, 0, NULL},
    {"outstandingHandshake.limit", ZOOCFG_IGNORED, threads, 0, NULL},
    {"bitHashCacheSize", ZOOCFG_IGNORED, threads, 0, NULL},
    {"intBufferStartingSizeBytes", ZOOCFG_IGNORED, threads, 0, NULL},
    {"jute.maxbuffer.extrasize", ZOOCFG_IGNORED, threads, 0, NULL},
    {"maxBatchSize", ZOOCFG_IGNORED, threads, 0, NULL},
    {"flushDelay", ZOOCFG_IGNORED, threads, 0, NULL},
    {"maxWriteQueuePollTime", ZOOCFG_IGNORED, threads, 0, NULL},
    {"watchManagerName", ZOOCFG_IGNORED, threads, 0, NULL},
    {"watcherCleanIntervalInSeconds", ZOOCFG_IGNORED, threads, 0, NULL},
    {"watcherCleanThreadsNum", ZOOCFG_IGNORED, threads, 0, NULL},
    {"watcherCleanThreshold", ZOOCFG_IGNORED, threads, 0, NULL},
    {"maxInProcessingDeadWatchers", ZOOCFG_IGNORED, threads, 0, NULL},
    {"largeRequestMaxBytes", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"largeRequestThreshold", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"request_stale_connection_check", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"request_stale_latency_check", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"request_throttle_drop_stale", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"request_throttle_max_requests", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"request_throttle_stall_time", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"request_throttler.shutdownTimeout", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"requestStaleConnectionCheck", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"requestStaleLatencyCheck", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"requestThrottleDropStale", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"requestThrottleLimit", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"requestThrottleStallTime", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"throttledOpWaitTime", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"throttled_op_wait_time", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionDecreaseRatio", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionDropDecrease", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionDropIncrease", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionFreezeTime", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionGlobalSessionWeight", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionLocalSessionWeight", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionMaxTokens", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionRenewSessionWeight", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionTokenFillCount", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionTokenFillTime", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connectionWeightEnabled", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_decrease_ratio", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_drop_decrease", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_drop_increase", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_fill_count", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_fill_time", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_freeze_time", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_global_session_weight", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_local_session_weight", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_renew_session_weight", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_tokens", ZOOCFG_IGNORED, no_throttle, 0, NULL},
    {"connection_throttle_weight_enabled", ZOOCFG_IGNORED, no_throttle, 0, NULL},
};

static bool zoocfg_key_matches(const struct zoocfg_key *k, const char *name)
{
    size_t n = strlen(k->name);
    return k->name[n - 1] == '.' ? strncmp(name, k->name, n) == 0 : strcmp(name, k->name) == 0;
}

/* Names that end with '.' come after the more specific keys that they would otherwise hide. */
const struct zoocfg_key *zoocfg_key_find(const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (zoocfg_key_matches(&keys[i], name))
            return &keys[i];
    return NULL;
}
