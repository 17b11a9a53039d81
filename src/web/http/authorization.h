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

/* Each role includes those before it. NONE needs no proof. */
enum web_role { WEB_NONE, WEB_READ, WEB_LOCK, WEB_WRITE, WEB_ADMIN };

/* "none", "read", "lock", "write", "admin". A static string. */
const char *clave__web_role_name(enum web_role role);
/* Finds the role of this name, except NONE. false: there is none. */
bool clave__web_role_parse(const char *name, enum web_role *out);

/* `role` on `prefix` and everything below it; "/" is everything. */
struct web_grant {
    enum web_role role;
    const char *prefix;
};

/* A user, known by any of token, uid and certificate. */
struct web_user {
    const char *name;        /* NULL: it has none */
    const char *token;       /* NULL: none */
    int64_t uid;             /* of a Unix socket's client; -1: none */
    const char *tls_subject; /* NULL: none */
    const struct web_grant *grants;
    size_t ngrants;
};

/* On a Unix socket, root and the gate's owner have the role admin. If there are no users, a
 * loopback address may read and lock. Everyone else has no role. */
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
    bool unix_proxies;     /* a peer on a Unix socket is a proxy */
    const char *fleetlock; /* the path of the slots of FleetLock; NULL: its endpoints are off */
    const struct ip_range *fleets; /* whose machines need no token there */
    size_t nfleets;
};

enum access_found { ACCESS_KNOWN, ACCESS_NOBODY, ACCESS_WRONG_TOKEN };
/* Finds the user that a request is from; `authorization` is the header, or NULL. If
 * ACCESS_KNOWN, *out is borrowed from `a` or static. A token, if given, decides alone. `a` may
 * be NULL: no users. */
enum access_found clave__access_find(const struct web_access *a, const struct web_peer *peer,
                                     const char *authorization, const struct web_user **out);

/* True if one of the grants gives the role on this path; NULL: on any path. */
bool clave__access_covers(const struct web_grant *grants, size_t n, enum web_role role,
                          const char *path);

/* True if the Host header names this gate: "localhost", an address, or one of a->hosts. This
 * detects pages that were loaded under another name which now leads here (DNS rebinding). NULL: the
 * request has none; those of browsers always have one. */
bool clave__access_host_ok(const struct web_access *a, const char *host);
/* True if the Origin header is NULL, this host's, or one of a->origins. If the request has come by
 * TLS, a page that was loaded without it is foreign, since anyone on the network path could have
 * written it. */
bool clave__access_origin_ok(const struct web_access *a, const char *origin, const char *host,
                             bool is_tls);

/* The guard at *text, in the value of a Clave-Guard header, "PATH;token=NUMBER, ...": its path are
 * the first *len bytes, its number has *digits. Moves *text on to the next one. false: it is none.
 */
bool clave__guard_next(const char **text, size_t *len, const char **number, size_t *digits);

/* ---- of a request ---------------------------------------------------------------------------- */

/* Sets x->who, from the peer and the header Authorization. false: no memory. */
bool clave__web_identify(struct web_exchange *x);
/* True if the sender has the role on this path; NULL: on any path. A sender that may lock a path
 * may also write the records of `clave lock --once` beside it, PATH-once/KEY, in a request that
 * holds the lock: Clave-Guard names the lock, and the handler has the servers check it. */
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
/* True if the connection comes from a proxy that the configuration names. */
bool clave__forwarded_is_proxy(const struct web_access *a, const struct web_peer *peer);
/* Sets x->peer, from the connection's peer and the headers. */
void clave__web_find_peer(struct web_exchange *x);
/* What clients put before a path of the gate, which begins with '/': the prefix behind a proxy, and
 * "" for a request that came straight here without it. */
const char *clave__web_prefix(const struct web_exchange *x);

#endif
