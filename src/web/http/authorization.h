/* authorization.h - whom a request is from, and what that sender may do: tokens, uids of Unix
 * sockets, client certificates, each with a role below a path; which hosts and origins a request
 * may name; and the client's address when a proxy has passed the request on. The driver makes a
 * struct web_access from its configuration and hands it to the engine, which decides. */
#ifndef CLAVE_WEB_HTTP_AUTHORIZATION_H
#define CLAVE_WEB_HTTP_AUTHORIZATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ip_range;
struct web_exchange;
struct web_peer;

/* Each includes those before it. NONE: anybody, without proof. */
enum web_role { WEB_NONE, WEB_READ, WEB_LOCK, WEB_WRITE, WEB_ADMIN };

/* "none", "read", "lock", "write", "admin". A static string. */
const char *clave__web_role_name(enum web_role role);
/* The role of this name, NONE excepted; false: there is none. */
bool clave__web_role_parse(const char *name, enum web_role *out);

/* `role` on `prefix` and everything below it; "/" is everything. */
struct web_grant {
    enum web_role role;
    const char *prefix;
};

/* Somebody, known by any of token, uid and certificate. */
struct web_user {
    const char *name;        /* NULL: it has none */
    const char *token;       /* NULL: none */
    int64_t uid;             /* of a Unix socket's client; -1: none */
    const char *tls_subject; /* NULL: none */
    const struct web_grant *grants;
    size_t ngrants;
};

/* On a Unix socket the uid of the gate's owner, and root, are admin. Without any user a loopback
 * address may read and lock. Nobody else may anything that needs a role. */
struct web_access {
    const struct web_user *users;
    size_t nusers;
    int64_t owner_uid;        /* -1: not known */
    const char *const *hosts; /* further names of this gate, without ports: "gate.example.com" */
    size_t nhosts;
    const char *const *origins; /* of pages behind a proxy: "https://gate.example.com:8443" */
    size_t norigins;
    const char *prefix;             /* may stand before every path: "/clave"; NULL: none */
    const struct ip_range *proxies; /* that are believed */
    size_t nproxies;
    bool unix_proxies;     /* whoever comes by a Unix socket is one */
    const char *fleetlock; /* the path of the slots of FleetLock; NULL: its endpoints are off */
    const struct ip_range *fleets; /* whose machines need no token there */
    size_t nfleets;
};

enum access_found { ACCESS_KNOWN, ACCESS_NOBODY, ACCESS_WRONG_TOKEN };
/* Whom a request is from; `authorization` is the header, or NULL. KNOWN: *out, borrowed from `a` or
 * static. A token that is given counts, whatever else is known. `a` NULL: no users. */
enum access_found clave__access_find(const struct web_access *a, const struct web_peer *peer,
                                     const char *authorization, const struct web_user **out);

/* Any of the grants gives the role on the path; with NULL, on any path. */
bool clave__access_covers(const struct web_grant *grants, size_t n, enum web_role role,
                          const char *path);

/* The Host header names this gate: "localhost", an address, or one of a->hosts. A page that was
 * loaded under another name, which now leads here (DNS rebinding), is told apart by it. NULL: the
 * request has none, as those of no browser have. */
bool clave__access_host_ok(const struct web_access *a, const char *host);
/* The Origin header, or NULL, is this host's, or one of a->origins. A page that came without TLS is
 * not this host's, if the request has come with it: anybody on the way could have written it. */
bool clave__access_origin_ok(const struct web_access *a, const char *origin, const char *host,
                             bool is_tls);

/* The guard at *text, in the value of a Clave-Guard header, "PATH;token=NUMBER, ...": its path are
 * the first *len bytes, its number has *digits. Moves *text on to the next one. false: it is none.
 */
bool clave__guard_next(const char **text, size_t *len, const char **number, size_t *digits);

/* ---- of a request ---------------------------------------------------------------------------- */

/* Sets x->who, from the peer and the header Authorization. false: no memory. */
bool clave__web_identify(struct web_exchange *x);
/* The sender has the role on this path; NULL: on any. Who may lock a path may also write the
 * records of `clave lock --once` beside it, PATH-once/KEY, in a request that holds the lock:
 * Clave-Guard names it, and the handler has the servers check that. */
bool clave__web_may(const struct web_exchange *x, enum web_role role, const char *path);

/* ==== behind a proxy ========================================================================== */

/* Whom a request is from that a proxy has passed on.
 *
 * A proxy that is named in the configuration is believed what X-Forwarded-For says: the last
 * address in it that is not such a proxy's is the client's. Nobody else is believed; but a request
 * with such a header is from no program of this machine: neither "loopback" nor a user of a Unix
 * socket. */

struct ip_range;
struct web_access;
struct web_exchange;
struct web_peer;

/* "ADDRESS", "ADDRESS:PORT" or "[ADDRESS]:PORT". false: it is none. */
bool clave__forwarded_parse(struct ip_range *out, const char *text, size_t n);
/* The connection is one of a proxy that is named. */
bool clave__forwarded_is_proxy(const struct web_access *a, const struct web_peer *peer);
/* Sets x->peer, from the connection's peer and the headers. */
void clave__web_find_peer(struct web_exchange *x);
/* What clients put before a path of the gate, which begins with '/': the prefix behind a proxy, and
 * "" for a request that came straight here without it. */
const char *clave__web_prefix(const struct web_exchange *x);

#endif
