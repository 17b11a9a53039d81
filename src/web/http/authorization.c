/* authorization.c - senders, roles, hosts and origins. Called by admission.c, by handlers, and by
 * the driver, which reads the configuration. Invariant: what is not named is refused. */
#include "web/http/authorization.h"

#include <string.h>

#include "base/http_host.h"
#include "base/ip_range.h"
#include "web/http/exchange.h"

/* ---- roles ---------------------------------------------------------------------------------- */

static const char *const role_names[] = {
    [WEB_NONE] = "none",   [WEB_READ] = "read",   [WEB_LOCK] = "lock",
    [WEB_WRITE] = "write", [WEB_ADMIN] = "admin",
};

const char *clave__web_role_name(enum web_role role)
{
    return role_names[role];
}

bool clave__web_role_parse(const char *name, enum web_role *out)
{
    for (int role = WEB_READ; role <= WEB_ADMIN; role++) {
        if (strcmp(name, role_names[role]) == 0) {
            *out = (enum web_role)role;
            return true;
        }
    }
    return false;
}

/* `path` has `len` bytes. */
static bool authorization_prefix_covers(const char *prefix, const char *path, size_t len)
{
    size_t n = strlen(prefix);
    while (n > 0 && prefix[n - 1] == '/')
        n--;
    return n <= len && memcmp(path, prefix, n) == 0 && (n == len || path[n] == '/');
}

/* Locking creates nodes, which do not belong below the server's own /zookeeper. */
static bool authorization_covers(const struct web_grant *grants, size_t n, enum web_role role,
                                 const char *path, size_t len)
{
    if (role == WEB_LOCK && path && authorization_prefix_covers("/zookeeper", path, len))
        role = WEB_WRITE;
    for (size_t i = 0; i < n; i++)
        if (grants[i].role >= role &&
            (!path || authorization_prefix_covers(grants[i].prefix, path, len)))
            return true;
    return role == WEB_NONE;
}

bool clave__access_covers(const struct web_grant *grants, size_t n, enum web_role role,
                          const char *path)
{
    return authorization_covers(grants, n, role, path, path ? strlen(path) : 0);
}

/* ---- who ------------------------------------------------------------------------------------ */

static const struct web_grant all_of_it = {WEB_ADMIN, "/"};
static const struct web_grant read_and_lock = {WEB_LOCK, "/"};
static const struct web_user owner = {
    .name = "owner", .uid = -1, .grants = &all_of_it, .ngrants = 1};
static const struct web_user loopback = {
    .name = "loopback", .uid = -1, .grants = &read_and_lock, .ngrants = 1};
static const struct web_user machine = {
    .name = "fleetlock", .uid = -1, .grants = &read_and_lock, .ngrants = 1};

/* The time does not depend on where the two differ. */
static bool authorization_token_is(const char *token, const char *given, size_t n)
{
    size_t len = strlen(token);
    volatile unsigned char differ = len != n;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)(given[i] ^ token[len ? i % len : 0]);
    return differ == 0;
}

/* The token of "Bearer TOKEN"; NULL: it is something else. */
static const char *authorization_bearer_token(const char *authorization, size_t *n)
{
    static const char scheme[] = "bearer ";
    size_t i = 0;
    while (scheme[i] && (authorization[i] | 0x20) == scheme[i])
        i++;
    if (scheme[i])
        return NULL;
    const char *token = authorization + i + strspn(authorization + i, " ");
    *n = strcspn(token, " ");
    return *n > 0 ? token : NULL;
}

static enum access_found authorization_find_by_token(const struct web_access *a,
                                                     const char *authorization,
                                                     const struct web_user **out)
{
    size_t n = 0;
    const char *token = authorization_bearer_token(authorization, &n);
    enum access_found found = ACCESS_WRONG_TOKEN;
    for (size_t i = 0; a && token && i < a->nusers; i++) {
        if (a->users[i].token && authorization_token_is(a->users[i].token, token, n)) {
            *out = &a->users[i];
            found = ACCESS_KNOWN;
        }
    }
    return found;
}

static const struct web_user *authorization_find_by_peer(const struct web_access *a,
                                                         const struct web_peer *peer)
{
    for (size_t i = 0; a && i < a->nusers; i++) {
        const struct web_user *u = &a->users[i];
        bool uid = peer->is_unix && peer->uid >= 0 && u->uid == peer->uid;
        bool subject =
            peer->tls_subject && u->tls_subject && strcmp(u->tls_subject, peer->tls_subject) == 0;
        if (uid || subject)
            return u;
    }
    if (peer->is_unix && (peer->uid == 0 || (a && peer->uid >= 0 && peer->uid == a->owner_uid)))
        return &owner;
    return peer->is_loopback && (!a || a->nusers == 0) ? &loopback : NULL;
}

enum access_found clave__access_find(const struct web_access *a, const struct web_peer *peer,
                                     const char *authorization, const struct web_user **out)
{
    *out = NULL;
    if (authorization)
        return authorization_find_by_token(a, authorization, out);
    *out = authorization_find_by_peer(a, peer);
    return *out ? ACCESS_KNOWN : ACCESS_NOBODY;
}

/* ---- hosts and origins ---------------------------------------------------------------------- */

/* True if `text` begins with the n characters of `s`, ignoring case. */
static bool authorization_text_is(const char *text, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] | 0x20) : s[i];
        char d = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
        if (c != d)
            return false;
    }
    return true;
}

static bool authorization_name_is(const char *name, const char *s, size_t n)
{
    return authorization_text_is(name, s, n) && name[n] == '\0';
}

/* True if the host is named by one of the origins: "https://gate.example:8443". */
static bool authorization_is_public(const struct web_access *a, const char *host, size_t n)
{
    for (size_t i = 0; a && i < a->norigins; i++) {
        const char *name = strstr(a->origins[i], "://") + 3;
        if (strcspn(name, ":") == n && authorization_text_is(name, host, n))
            return true;
    }
    return false;
}

bool clave__access_host_ok(const struct web_access *a, const char *host)
{
    if (!host || clave__http_host_is_ours(host, NULL))
        return true;
    size_t n = clave__http_host_len(host);
    if (n == 0)
        return false;
    for (size_t i = 0; a && i < a->nhosts; i++)
        if (authorization_name_is(a->hosts[i], host, n))
            return true;
    return authorization_is_public(a, host, n);
}

bool clave__access_origin_ok(const struct web_access *a, const char *origin, const char *host,
                             bool is_tls)
{
    if (!origin)
        return true;
    for (size_t i = 0; a && i < a->norigins; i++)
        if (authorization_name_is(a->origins[i], origin, strlen(origin)))
            return true;
    const char *at = strstr(origin, "://");
    if (is_tls && strncmp(origin, "https://", 8) != 0)
        return false;
    return host && at && authorization_name_is(host, at + 3, strlen(at + 3));
}

/* ---- whom a request is from ------------------------------------------------------------------ */

static bool authorization_copy_user(struct web_exchange *x, const struct web_user *u)
{
    const char *name = u->name ? u->name : "";
    x->who.name = clave__web_strndup(x, name, strlen(name));
    x->who.grants = clave__web_alloc(x, (u->ngrants + 1) * sizeof *u->grants);
    if (!x->who.name || !x->who.grants)
        return false;
    for (size_t i = 0; i < u->ngrants; i++) {
        const char *prefix = u->grants[i].prefix;
        x->who.grants[i].role = u->grants[i].role;
        x->who.grants[i].prefix = clave__web_strndup(x, prefix, strlen(prefix));
        if (!x->who.grants[i].prefix)
            return false;
        x->who.ngrants = i + 1;
    }
    return true;
}

/* True if this is a machine of a fleet at an endpoint that is open to it. If a proxy has passed the
 * request on, the machine's address must be known. */
static bool authorization_is_machine(const struct web_exchange *x)
{
    const struct web_access *a = x->web->o.access;
    const char *text = x->peer.address;
    struct ip_range address;
    bool is_client = !x->is_passed_on || text != x->q->peer.address;
    if (!a || !x->route || !(x->route->flags & ROUTE_FLEETLOCK) || !text || !is_client ||
        !clave__forwarded_parse(&address, text, strlen(text)))
        return false;
    for (size_t i = 0; i < a->nfleets; i++)
        if (clave__ip_range_has(&a->fleets[i], &address))
            return true;
    return false;
}

bool clave__web_identify(struct web_exchange *x)
{
    const struct web_user *u;
    const char *authorization = clave__web_header(x, "Authorization");
    x->who.name = "";
    x->who.ngrants = 0; /* of another access, in which the sender was known */
    x->who.found = clave__access_find(x->web->o.access, &x->peer, authorization, &u);
    if (x->who.found == ACCESS_NOBODY && authorization_is_machine(x)) {
        x->who.found = ACCESS_KNOWN;
        u = &machine;
    }
    x->who.is_known = u && u != &loopback && u != &machine; /* which are no proof of their own */
    if (x->who.found != ACCESS_KNOWN || authorization_copy_user(x, u))
        return true;
    x->who.name = "";
    x->who.ngrants = 0;
    return false;
}

/* ---- what it may ----------------------------------------------------------------------------- */

static const char guard_mark[] = ";token=";

/* The end of a guard that has its mark here: after its number, where the text ends or another
 * guard follows. NULL: it is no mark, but in the path. */
static const char *guard_end(const char *mark)
{
    const char *end = mark + sizeof guard_mark - 1;
    end += strspn(end, "-0123456789");
    const char *next = end + strspn(end, " \t");
    if (*next == '\0')
        return end;
    return *next == ',' && next[1 + strspn(next + 1, " \t")] == '/' ? end : NULL;
}

bool clave__guard_next(const char **text, size_t *len, const char **number, size_t *digits)
{
    const char *begin = *text, *mark = strstr(begin, guard_mark), *end = NULL;
    while (mark && !(end = guard_end(mark)))
        mark = strstr(mark + 1, guard_mark);
    if (!mark)
        return false;
    *len = (size_t)(mark - begin);
    *number = mark + sizeof guard_mark - 1;
    *digits = (size_t)(end - *number);
    *text = end + strspn(end, ", \t");
    return true;
}

/* True if `path` is "PATH-once", the parent of the records of this lock, or one of the records. */
static bool authorization_is_record(const char *path, const char *lock, size_t n)
{
    static const char suffix[] = "-once";
    size_t m = sizeof suffix - 1;
    if (strncmp(path, lock, n) != 0 || strncmp(path + n, suffix, m) != 0)
        return false;
    const char *rest = path + n + m;
    return *rest == '\0' || (*rest == '/' && rest[1] != '\0' && !strchr(rest + 1, '/'));
}

/* The sender may lock what guards the request, and `path` is beside that. NULL: the body has paths,
 * each of which its handler asks about. */
static bool authorization_may_record(const struct web_exchange *x, const char *path)
{
    const char *text, *number;
    size_t len, digits;
    for (size_t i = 0; (text = clave__web_header_at(x, "Clave-Guard", i)) != NULL; i++) {
        for (const char *lock = text; clave__guard_next(&text, &len, &number, &digits);
             lock = text) {
            if ((!path || authorization_is_record(path, lock, len)) &&
                authorization_covers(x->who.grants, x->who.ngrants, WEB_LOCK, lock, len))
                return true;
        }
    }
    return false;
}

bool clave__web_may(const struct web_exchange *x, enum web_role role, const char *path)
{
    return clave__access_covers(x->who.grants, x->who.ngrants, role, path) ||
           (role == WEB_WRITE && authorization_may_record(x, path));
}

/* ==== behind a proxy ========================================================================== */

/* Of "ADDRESS", "ADDRESS:PORT" or "[ADDRESS]:PORT" the address alone; *n becomes its length. */
static const char *forwarded_host(const char *text, size_t *n)
{
    const char *colon = memchr(text, ':', *n), *bracket = memchr(text, ']', *n);
    if (*n > 0 && text[0] == '[') {
        *n = bracket ? (size_t)(bracket - text - 1) : 0;
        return text + 1;
    }
    if (colon && !memchr(colon + 1, ':', *n - (size_t)(colon + 1 - text)))
        *n = (size_t)(colon - text);
    return text;
}

bool clave__forwarded_parse(struct ip_range *out, const char *text, size_t n)
{
    const char *host = forwarded_host(text, &n);
    return !memchr(host, '/', n) && clave__ip_range_parse(out, host, n);
}

static bool forwarded_is_loopback(const struct ip_range *address)
{
    static const struct ip_range v4 = {.family = 4, .ip = {127}, .bits = 8};
    static const struct ip_range v6 = {.family = 6, .ip = {[15] = 1}, .bits = 128};
    return clave__ip_range_has(&v4, address) || clave__ip_range_has(&v6, address);
}

static bool forwarded_is_proxy(const struct web_access *a, const struct ip_range *address)
{
    for (size_t i = 0; i < a->nproxies; i++)
        if (clave__ip_range_has(&a->proxies[i], address))
            return true;
    return false;
}

bool clave__forwarded_is_proxy(const struct web_access *a, const struct web_peer *peer)
{
    struct ip_range address;
    if (!a || peer->is_unix)
        return a && a->unix_proxies;
    return peer->address &&
           clave__forwarded_parse(&address, peer->address, strlen(peer->address)) &&
           forwarded_is_proxy(a, &address);
}

/* The last entry of the first *n bytes of a list, without the blanks around it; *n becomes what is
 * before it. Returns its length. */
static size_t forwarded_last(const char *list, size_t *n, const char **entry)
{
    size_t end = *n, at;
    while (end > 0 && (list[end - 1] == ' ' || list[end - 1] == '\t'))
        end--;
    for (at = end; at > 0 && list[at - 1] != ','; at--) {
    }
    *n = at > 0 ? at - 1 : 0;
    *entry = list + at + strspn(list + at, " \t");
    return *entry < list + end ? (size_t)(list + end - *entry) : 0;
}

/* Returns NULL if no trusted proxy has named the client. */
static const char *forwarded_client(struct web_exchange *x, bool *is_loopback)
{
    const struct web_access *a = x->web->o.access;
    size_t nlists = 0;
    while (clave__web_header_at(x, "X-Forwarded-For", nlists))
        nlists++;
    for (; nlists > 0; nlists--) {
        const char *list = clave__web_header_at(x, "X-Forwarded-For", nlists - 1), *entry;
        size_t left = strlen(list);
        while (left > 0) {
            struct ip_range address;
            size_t n = forwarded_last(list, &left, &entry);
            if (!clave__forwarded_parse(&address, entry, n))
                return NULL;
            if (forwarded_is_proxy(a, &address))
                continue;
            *is_loopback = forwarded_is_loopback(&address);
            return clave__web_strndup(x, entry, n);
        }
    }
    return NULL;
}

static bool forwarded_is_passed_on(const struct web_exchange *x)
{
    static const char *const headers[] = {"Forwarded",        "X-Forwarded-For",
                                          "X-Forwarded-Host", "X-Forwarded-Proto",
                                          "X-Real-IP",        "Via"};
    return clave__web_header_beyond(x, headers, sizeof headers / sizeof *headers, 0);
}

/* A loopback address that a proxy on another machine reports is that machine's own. */
void clave__web_find_peer(struct web_exchange *x)
{
    bool is_loopback = false;
    const char *client = NULL;
    x->peer = x->q->peer;
    x->is_passed_on = forwarded_is_passed_on(x);
    if (clave__forwarded_is_proxy(x->web->o.access, &x->q->peer)) {
        x->is_passed_on = true;
        client = forwarded_client(x, &is_loopback);
        x->peer.is_tls |= clave__web_header_is(x, "X-Forwarded-Proto", "https");
    }
    if (!x->is_passed_on)
        return;
    x->peer.is_loopback = is_loopback && (x->q->peer.is_loopback || x->q->peer.is_unix);
    x->peer.is_unix = false;
    x->peer.uid = -1;
    if (client)
        x->peer.address = client;
}

const char *clave__web_prefix(const struct web_exchange *x)
{
    const struct web_access *a = x->web->o.access;
    return a && a->prefix && (x->has_prefix || x->is_passed_on) ? a->prefix : "";
}
