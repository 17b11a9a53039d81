/* admission.h - whom a request is from, what that sender may do, and whether the request may begin
 * and take some of what all senders share.
 *
 * A sender is known by a token, the uid at a Unix socket or a client certificate, each with a role
 * below a path. The driver makes a struct web_access from its configuration, which also says which
 * hosts and origins a request may name, and which proxies are believed; the engine decides.
 *
 * The head of a request is checked before any of its body is read: sizes, framing, target, host,
 * route, origin, sender and role, arguments, room for its body; in this order. Further on, whatever
 * takes some of what all senders share (waiting, a session, memory) is asked for here. */
#ifndef CLAVE_WEB_HTTP_ADMISSION_H
#define CLAVE_WEB_HTTP_ADMISSION_H

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
/* Finds the role of this name, except NONE. Returns false if there is none. */
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
    const struct ip_range *proxies; /* proxies that are believed */
    size_t nproxies;
    bool unix_proxies;     /* a peer on a Unix socket is a proxy */
    const char *fleetlock; /* the path of the slots of FleetLock; NULL: its endpoints are off */
    const struct ip_range *fleets; /* addresses of machines that need no token there */
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

/* The guard at *text, in the value of a Clave-Guard header, "PATH;token=NUMBER, ...". The first
 * *len bytes are its path; its number has *digits digits. Moves *text on to the next guard. Returns
 * false if there is no guard. */
bool clave__guard_next(const char **text, size_t *len, const char **number, size_t *digits);

/* ---- of a request ---------------------------------------------------------------------------- */

/* True if the sender has the role on this path; NULL: on any path. A sender that may lock a path
 * may also write the records of `clave lock --once` beside it, PATH-once/KEY, in a request that
 * holds the lock: Clave-Guard names the lock, and the handler has the servers check it. */
bool clave__web_may(const struct web_exchange *x, enum web_role role, const char *path);
/* Answers 401 or 403, because the sender lacks the role on the path (NULL: on any). */
void clave__web_refuse_role(struct web_exchange *x, enum web_role role, const char *path);
/* Requires that the sender has the role on the path, which is valid as long as the exchange. This
 * is checked again if the access changes while the request waits. Returns false if it has answered
 * 401, 403 or 503. */
bool clave__web_must(struct web_exchange *x, enum web_role role, const char *path);
/* True if the connection comes from a proxy that the configuration names. */
bool clave__forwarded_is_proxy(const struct web_access *a, const struct web_peer *peer);
/* What clients put before a path of the gate, which begins with '/': the prefix behind a proxy, and
 * "" for a request that came straight here without it. */
const char *clave__web_prefix(const struct web_exchange *x);

/* ---- whether it may begin -------------------------------------------------------------------- */

/* Checks the head of a request: sets target, route, params and who. Returns false if it has
 * answered with what is wrong. */
bool clave__web_admit(struct web_exchange *x);

/* The access has changed. Returns false if the sender may not make this request any more. */
bool clave__web_admit_again(struct web_exchange *x);
/* The result of the latest such check. A request that acts in several steps asks before each step,
 * because a step under way is not called off. */
bool clave__web_may_still(const struct web_exchange *x);
/* Answers 401 or 403 if the sender may not go on. */
void clave__web_refuse_now(struct web_exchange *x);

/* ---- what it may take ------------------------------------------------------------------------ */

/* The longest that a request waits for news, whatever its `Prefer: wait` says, in milliseconds. */
enum { LONGEST_POLL_MS = 300000 };

/* The request is about to wait, or to be answered by a stream. false: too many do, and it has
 * answered 429 or 503. */
bool clave__web_may_wait(struct web_exchange *x);
/* The request is about to leave behind something that waits after its answer. false: as _may_wait.
 */
bool clave__web_may_keep_waiting(struct web_exchange *x);
/* The request is about to ask a server, which may be slow. false: as _may_wait. Always true of a
 * route that needs nothing of what all share. */
bool clave__web_may_call(struct web_exchange *x);
/* The request is about to make a session for its sender. false: it has answered 429 or 503. */
bool clave__web_may_make_session(struct web_exchange *x);
/* The same for a request that is about to take up a session which another gate has made, but only
 * what the sender itself has counts. */
bool clave__web_may_take_up(struct web_exchange *x);
/* The body will have n bytes in all. false: it has answered 413, 429 or 503. */
bool clave__web_may_receive(struct web_exchange *x, int64_t n);
/* True if the body may be parsed, which takes at most n bytes. */
bool clave__web_may_parse(struct web_exchange *x, size_t n);

#endif
