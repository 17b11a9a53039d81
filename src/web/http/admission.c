/* admission.c - whether a request may begin and go on: its head, whom it is from, what that sender
 * may do, and what it may take of what all senders share. Called by web.c, by request.c for the
 * body, by handlers that ask for a role, wait, ask a server or make a session, and by the driver,
 * which reads the configuration. Invariants: what is not named is refused; a request whose head is
 * refused has reached no handler. */
#include "web/http/admission.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/http_host.h"
#include "base/ip_range.h"
#include "web/http/exchange.h"
#include "web/http/sender.h"

/* ==== what a sender may ======================================================================= */

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
static bool access_prefix_covers(const char *prefix, const char *path, size_t len)
{
    size_t n = strlen(prefix);
    while (n > 0 && prefix[n - 1] == '/')
        n--;
    return n <= len && memcmp(path, prefix, n) == 0 && (n == len || path[n] == '/');
}

/* Locking creates nodes, which do not belong below the server's own /zookeeper. */
static bool access_covers(const struct web_grant *grants, size_t n, enum web_role role,
                          const char *path, size_t len)
{
    if (role == WEB_LOCK && path && access_prefix_covers("/zookeeper", path, len))
        role = WEB_WRITE;
    for (size_t i = 0; i < n; i++)
        if (grants[i].role >= role && (!path || access_prefix_covers(grants[i].prefix, path, len)))
            return true;
    return role == WEB_NONE;
}

bool clave__access_covers(const struct web_grant *grants, size_t n, enum web_role role,
                          const char *path)
{
    return access_covers(grants, n, role, path, path ? strlen(path) : 0);
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
static bool access_token_is(const char *token, const char *given, size_t n)
{
    size_t len = strlen(token);
    volatile unsigned char differ = len != n;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)(given[i] ^ token[len ? i % len : 0]);
    return differ == 0;
}

/* The token of "Bearer TOKEN"; NULL: it is something else. */
static const char *access_bearer_token(const char *authorization, size_t *n)
{
    size_t scheme = strlen("bearer ");
    if (!clave__http_begins(authorization, "bearer ", scheme))
        return NULL;
    const char *token = authorization + scheme + strspn(authorization + scheme, " ");
    *n = strcspn(token, " ");
    return *n > 0 ? token : NULL;
}

static enum access_found access_find_by_token(const struct web_access *a, const char *authorization,
                                              const struct web_user **out)
{
    size_t n = 0;
    const char *token = access_bearer_token(authorization, &n);
    enum access_found found = ACCESS_WRONG_TOKEN;
    for (size_t i = 0; a && token && i < a->nusers; i++) {
        if (a->users[i].token && access_token_is(a->users[i].token, token, n)) {
            *out = &a->users[i];
            found = ACCESS_KNOWN;
        }
    }
    return found;
}

static const struct web_user *access_find_by_peer(const struct web_access *a,
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
        return access_find_by_token(a, authorization, out);
    *out = access_find_by_peer(a, peer);
    return *out ? ACCESS_KNOWN : ACCESS_NOBODY;
}

/* ---- hosts and origins ---------------------------------------------------------------------- */

/* True if the host is named by one of the origins: "https://gate.example:8443". */
static bool access_is_public(const struct web_access *a, const char *host, size_t n)
{
    for (size_t i = 0; a && i < a->norigins; i++) {
        const char *name = strstr(a->origins[i], "://") + 3;
        if (strcspn(name, ":") == n && clave__http_begins(name, host, n))
            return true;
    }
    return false;
}

static bool head_host_ok(const struct web_access *a, const char *host)
{
    if (!host || clave__http_host_is_ours(host, NULL))
        return true;
    size_t n = clave__http_host_len(host);
    if (n == 0)
        return false;
    for (size_t i = 0; a && i < a->nhosts; i++)
        if (clave__http_name_is(host, n, a->hosts[i]))
            return true;
    return access_is_public(a, host, n);
}

static bool head_origin_ok(const struct web_access *a, const char *origin, const char *host,
                           bool is_tls)
{
    if (!origin)
        return true;
    for (size_t i = 0; a && i < a->norigins; i++)
        if (clave__http_name_is(origin, strlen(origin), a->origins[i]))
            return true;
    const char *at = strstr(origin, "://");
    if (is_tls && strncmp(origin, "https://", 8) != 0)
        return false;
    return host && at && clave__http_name_is(at + 3, strlen(at + 3), host);
}

/* ---- behind a proxy --------------------------------------------------------------------------
 *
 * X-Forwarded-For is trusted only from the proxies that the configuration names: the last address
 * in it that is not such a proxy's is the client's. From anybody else the header is not believed,
 * but a request that has it does not come from a program of this machine: it is neither "loopback"
 * nor a user of a Unix socket. */

/* The address in "ADDRESS", "ADDRESS:PORT" or "[ADDRESS]:PORT"; *n becomes its length. */
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

static bool forwarded_parse(struct ip_range *out, const char *text, size_t n)
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
    return peer->address && forwarded_parse(&address, peer->address, strlen(peer->address)) &&
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
            if (!forwarded_parse(&address, entry, n))
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
static void head_find_peer(struct web_exchange *x)
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

/* ---- whom a request is from ------------------------------------------------------------------ */

static bool access_copy_user(struct web_exchange *x, const struct web_user *u)
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
static bool access_is_machine(const struct web_exchange *x)
{
    const struct web_access *a = x->web->o.access;
    const char *text = x->peer.address;
    struct ip_range address;
    bool is_client = !x->is_passed_on || text != x->q->peer.address;
    if (!a || !x->route || !(x->route->flags & ROUTE_FLEETLOCK) || !text || !is_client ||
        !forwarded_parse(&address, text, strlen(text)))
        return false;
    for (size_t i = 0; i < a->nfleets; i++)
        if (clave__ip_range_has(&a->fleets[i], &address))
            return true;
    return false;
}

static bool head_identify(struct web_exchange *x)
{
    const struct web_user *u;
    const char *authorization = clave__web_header(x, "Authorization");
    x->who.name = "";
    x->who.ngrants = 0; /* these were of an earlier access configuration */
    x->who.found = clave__access_find(x->web->o.access, &x->peer, authorization, &u);
    if (x->who.found == ACCESS_NOBODY && access_is_machine(x)) {
        x->who.found = ACCESS_KNOWN;
        u = &machine;
    }
    x->who.is_known = u && u != &loopback && u != &machine; /* which prove nothing by themselves */
    if (x->who.found != ACCESS_KNOWN || access_copy_user(x, u))
        return true;
    x->who.name = "";
    x->who.ngrants = 0;
    return false;
}

/* ---- what it may ----------------------------------------------------------------------------- */

static const char guard_mark[] = ";token=";

/* The end of the guard whose mark ";token=" is here: after its number, where the text ends or
 * another guard follows. NULL: this is not the mark, but part of the path. */
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
static bool access_is_record(const char *path, const char *lock, size_t n)
{
    static const char suffix[] = "-once";
    size_t m = sizeof suffix - 1;
    if (strncmp(path, lock, n) != 0 || strncmp(path + n, suffix, m) != 0)
        return false;
    const char *rest = path + n + m;
    return *rest == '\0' || (*rest == '/' && rest[1] != '\0' && !strchr(rest + 1, '/'));
}

/* True if the sender may lock what guards the request, and `path` is a record beside that lock.
 * `path` NULL: the body has paths, and the handler asks about each of them. */
static bool access_may_record(const struct web_exchange *x, const char *path)
{
    const char *text, *number;
    size_t len, digits;
    for (size_t i = 0; (text = clave__web_header_at(x, "Clave-Guard", i)) != NULL; i++) {
        for (const char *lock = text; clave__guard_next(&text, &len, &number, &digits);
             lock = text) {
            if ((!path || access_is_record(path, lock, len)) &&
                access_covers(x->who.grants, x->who.ngrants, WEB_LOCK, lock, len))
                return true;
        }
    }
    return false;
}

bool clave__web_may(const struct web_exchange *x, enum web_role role, const char *path)
{
    return clave__access_covers(x->who.grants, x->who.ngrants, role, path) ||
           (role == WEB_WRITE && access_may_record(x, path));
}

void clave__web_refuse_role(struct web_exchange *x, enum web_role role, const char *path)
{
    assert(!clave__web_may(x, role, path));
    if (x->who.found == ACCESS_KNOWN && !x->who.is_known) {
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, path,
                          "%s needs the role \"%s\"%s%s, which only a token gives: (umask 077; "
                          "echo $(openssl rand -hex 16) %s >tokens) makes one, --http-tokens "
                          "tokens tells the gate, and Authorization: Bearer TOKEN is sent",
                          x->who.name, clave__web_role_name(role), path ? " on " : "",
                          path ? path : "", clave__web_role_name(role));
        return;
    }
    if (x->who.found == ACCESS_KNOWN) {
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, path,
                          "%s needs the role \"%s\"%s%s: see /v1/whoami, and --http-tokens of "
                          "the gate",
                          x->who.name[0] ? x->who.name : "the sender", clave__web_role_name(role),
                          path ? " on " : "", path ? path : "");
        return;
    }
    clave__web_set_header(x, "WWW-Authenticate", "Bearer");
    clave__web_refuse(x, 401, CLAVE_EAUTHFAILED, NULL, "%s",
                      x->who.found == ACCESS_WRONG_TOKEN
                          ? "unknown token: it is not in the gate's file of tokens"
                          : "a token is needed: Authorization: Bearer TOKEN");
}

bool clave__web_must(struct web_exchange *x, enum web_role role, const char *path)
{
    if (!clave__web_may(x, role, path)) {
        clave__web_refuse_role(x, role, path);
        return false;
    }
    struct web_need *need = clave__web_alloc(x, sizeof *need);
    if (!need)
        return clave__web_refuse(x, 503, CLAVE_ENOMEM, path, "out of memory");
    *need = (struct web_need){x->needs, role, path};
    x->needs = need;
    return true;
}

/* ==== a head that may begin =================================================================== */

enum { MAX_HEADER_BYTES = 16384 };

/* ---- the head ------------------------------------------------------------------------------- */

static bool head_size(struct web_exchange *x, unsigned status, const char *what, size_t n,
                      size_t most)
{
    if (n <= most)
        return true;
    return clave__web_refuse(x, status, CLAVE_ETOOBIG, NULL, "%s: more than %zu bytes", what, most);
}

static bool head_sizes(struct web_exchange *x)
{
    const struct web_request *q = x->q;
    size_t headers = 0;
    for (size_t i = 0; i < q->nheaders; i++)
        headers += strlen(q->headers[i].name) + strlen(q->headers[i].value);
    return head_size(x, 414, "the path and query are too long", strlen(q->target), TARGET_MAX) &&
           head_size(x, 431, "the headers are too large", headers, MAX_HEADER_BYTES) &&
           head_size(x, 413, "the body is too large (--http-max-body)",
                     q->body_length > 0 ? (size_t)q->body_length : 0, clave__web_max_body(x->web));
}

static bool head_is_header_name(const char *name)
{
    const char *c = name;
    while ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
           (*c && strchr("-_.!#$%&'*+^`|~", *c)))
        c++;
    return c > name && *c == '\0';
}

/* Headers whose value decides something. If one is given twice, a proxy in front of the gate could
 * act on the other value. */
static const char *head_twice(const struct web_exchange *x)
{
    static const char *const once[] = {"Host",
                                       "Content-Length",
                                       "Transfer-Encoding",
                                       "Content-Type",
                                       "Authorization",
                                       "Origin",
                                       "Sec-Fetch-Site",
                                       "Clave-Session",
                                       "If-Match",
                                       "If-None-Match",
                                       "Idempotency-Key",
                                       "Clave-Owner",
                                       "fleet-lock-protocol"};
    return clave__web_header_beyond(x, once, sizeof once / sizeof *once, 1);
}

static bool head_are_header_names(const struct web_request *q)
{
    for (size_t i = 0; i < q->nheaders; i++)
        if (!head_is_header_name(q->headers[i].name))
            return false;
    return true;
}

/* The end of the body must be beyond doubt, because what follows it is read as the next request. So
 * the connection is closed, too. */
static bool head_framing(struct web_exchange *x)
{
    const char *coding = clave__web_header(x, "Transfer-Encoding"), *twice = NULL, *fault = NULL;
    unsigned status = 400;
    if (!head_are_header_names(x->q)) {
        fault = "the name of a header has a character that no name may have";
    } else if ((twice = head_twice(x)) != NULL) {
        fault = "this header is given twice: ";
    } else if (coding && !clave__web_header_is(x, "Transfer-Encoding", "chunked")) {
        fault = "of Transfer-Encoding only \"chunked\" is known";
        status = 501;
    } else if (coding && clave__web_header(x, "Content-Length")) {
        fault = "Content-Length and Transfer-Encoding exclude each other";
    }
    if (!fault)
        return true;
    clave__web_set_header(x, "Connection", "close");
    return clave__web_refuse(x, status, CLAVE_EINVAL, NULL, "%s%s", fault, twice ? twice : "");
}

/* A host in the target overrides the header. */
static const char *head_named_host(const struct web_exchange *x)
{
    return x->target.host ? x->target.host : clave__web_header(x, "Host");
}

static bool head_host(struct web_exchange *x)
{
    const char *host = head_named_host(x);
    bool missing = x->q->must_have_host && !clave__web_header(x, "Host");
    if (!missing && (!host || head_host_ok(x->web->o.access, host)))
        return true;
    if (missing)
        return clave__web_bad_request(x, "a request of HTTP/1.1 has the header Host");
    return clave__web_refuse(
        x, 421, CLAVE_EINVAL, NULL,
        "the Host \"%.200s\" is not a name of this gate: add it with --http-host", host);
}

/* ---- the target ----------------------------------------------------------------------------- */

/* The prefix behind a proxy, "/clave/v1/locks", is no part of the path. */
static void head_take_prefix(struct web_exchange *x)
{
    const struct web_access *a = x->web->o.access;
    size_t n = a && a->prefix ? strlen(a->prefix) : 0;
    x->has_prefix = n > 0 && strncmp(x->target.path, a->prefix, n) == 0 && x->target.path[n] == '/';
    x->target.path += x->has_prefix ? n : 0;
}

static bool head_target(struct web_exchange *x)
{
    char *text = clave__web_strndup(x, x->q->target, strlen(x->q->target));
    const char *fault = text ? clave__target_parse(&x->target, text) : NULL;
    if (!text)
        clave__web_refuse(x, 503, CLAVE_ENOMEM, NULL, "out of memory");
    else if (fault)
        clave__web_bad_request(x, "%s", fault);
    else
        head_take_prefix(x);
    return text && !fault;
}

/* A route for GET also serves HEAD. */
static bool head_is_method(const struct web_exchange *x, const struct route *r)
{
    return strcmp(x->q->method, r->method) == 0 ||
           (strcmp(x->q->method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

/* A znode's path has its slash in front, encoded or not; the pattern's own slash is not part of
 * it. */
static bool head_params(struct web_exchange *x, const char *pattern,
                        const struct target_part *parts)
{
    const char *param = strchr(pattern, '{');
    for (size_t i = 0; param; i++, param = strchr(param + 1, '{')) {
        bool is_path = strncmp(param, "{path}", 6) == 0;
        assert(i < WEB_MAX_PARAMS);
        char *to = clave__web_alloc(x, parts[i].n + 2);
        if (!to)
            return clave__web_refuse(x, 503, CLAVE_ENOMEM, NULL, "out of memory");
        to[0] = '/';
        if (!clave__percent_decode(to + 1, parts[i].at, parts[i].n, false))
            return clave__web_bad_request(x, "the path has a malformed percent escape");
        x->params[i] = is_path && to[1] != '/' ? to : to + 1;
    }
    return true;
}

enum { ALLOW_CAP = 64 };

static void head_allow(char allow[ALLOW_CAP], const char *method)
{
    size_t n = strlen(allow);
    assert(n + strlen(method) + 2 < ALLOW_CAP);
    if (!strstr(allow, method))
        snprintf(allow + n, ALLOW_CAP - n, "%s%s", n > 0 ? ", " : "", method);
}

/* `allow`: the methods of the routes whose patterns match; "": there is none. */
static void head_no_route(struct web_exchange *x, const char *allow)
{
    if (!allow[0]) {
        clave__web_refuse(x, 404, CLAVE_EINVAL, NULL,
                          "there is nothing at %.200s: see /v1/openapi.json", x->target.path);
        return;
    }
    clave__web_set_header(x, "Allow", "%s", allow);
    clave__web_refuse(x, 405, CLAVE_EINVAL, NULL, "this path does not take %.16s, only %s",
                      x->q->method, allow);
}

static bool head_is_on(const struct web_exchange *x, const struct route *r)
{
    const struct web_access *a = x->web->o.access;
    return !(r->flags & ROUTE_FLEETLOCK) || (a && a->fleetlock);
}

static bool head_route(struct web_exchange *x)
{
    char allow[ALLOW_CAP] = "";
    for (size_t i = 0; i < x->web->routes->n; i++) {
        const struct route *r = &x->web->routes->at[i];
        struct target_part parts[WEB_MAX_PARAMS];
        if (!clave__target_matches(&x->target, r->pattern, parts) || !head_is_on(x, r))
            continue;
        x->is_fleetlock = r->flags & ROUTE_FLEETLOCK;
        if (head_is_method(x, r)) {
            x->route = r;
            return head_params(x, r->pattern, parts);
        }
        head_allow(allow, r->method);
        if (strcmp(r->method, "GET") == 0)
            head_allow(allow, "HEAD");
    }
    head_no_route(x, allow);
    return false;
}

/* ---- the sender ----------------------------------------------------------------------------- */

/* Pages of other sites must not act through the browser of a user who has a role. What needs no
 * role may be linked to from anywhere. */
static bool head_origin(struct web_exchange *x)
{
    const char *site = clave__web_header(x, "Sec-Fetch-Site");
    bool foreign = site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
    if (!head_origin_ok(x->web->o.access, clave__web_header(x, "Origin"), head_named_host(x),
                        x->peer.is_tls))
        foreign = true;
    if (!foreign || x->route->role == WEB_NONE)
        return true;
    return clave__web_refuse(x, 403, CLAVE_ENOAUTH, NULL,
                             "the request comes from a page of another site");
}

/* The path that the role is needed on; NULL: none is known. */
static const char *head_path(const struct web_exchange *x)
{
    size_t i = 0;
    if (x->acts_on)
        return x->acts_on;
    for (const char *at = x->route->pattern; (at = strchr(at, '{')); at++, i++)
        if (strncmp(at, "{path}", 6) == 0)
            return x->params[i];
    return NULL;
}

static bool head_sender(struct web_exchange *x)
{
    if (!head_identify(x))
        return clave__web_refuse(x, 503, CLAVE_ENOMEM, NULL, "out of memory");
    bool may = clave__web_may(x, x->route->role, head_path(x));
    if (!may)
        clave__web_refuse_role(x, x->route->role, head_path(x));
    return may;
}

/* ---- the query ------------------------------------------------------------------------------ */

/* `names` are words with blanks between. */
static bool head_is_word_of(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = names; n > 0 && (at = strstr(at, name)); at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* Headers that restrict a request, or make it safe to repeat, are honoured or refused, since the
 * sender relies on them. A GET may ignore If-None-Match, and is always safe to repeat. */
static bool head_narrowing(struct web_exchange *x)
{
    static const struct {
        const char *name;
        const char *methods; /* that must not ignore the header; NULL: none may */
        unsigned honoured;   /* by routes with this flag */
        const char *text;
    } narrowing[] = {
        {"Clave-Guard", NULL, ROUTE_GUARDED,
         "Clave-Guard is for PUT, POST and DELETE of /v1/znodes and POST of /v1/multi"},
        {"If-Match", NULL, ROUTE_CONDITIONAL,
         "If-Match is for PUT and DELETE of /v1/znodes; an operation of /v1/multi has its "
         "\"version\""},
        {"If-None-Match", "PUT POST PATCH DELETE", ROUTE_CONDITIONAL,
         "of the requests that change something only PUT of /v1/znodes knows If-None-Match"},
        {"Idempotency-Key", "POST PATCH", ROUTE_KEYED,
         "Idempotency-Key is for POST of /v1/claims: nothing would keep this request from being "
         "done twice"},
    };
    for (size_t i = 0; i < sizeof narrowing / sizeof *narrowing; i++) {
        const char *methods = narrowing[i].methods;
        bool ignores = methods && !head_is_word_of(methods, x->q->method);
        if (ignores || x->route->flags & narrowing[i].honoured ||
            !clave__web_header(x, narrowing[i].name))
            continue;
        clave__web_bad_request(x, "%s", narrowing[i].text);
        return false;
    }
    return true;
}

/* Arguments that are flags. A value such as "false" would be misleading, so none is accepted. */
static bool head_flag(struct web_exchange *x, const struct target_arg *a)
{
    static const char flags[] = "acl children claims fresh parents recursive samples stat sync";
    if (!head_is_word_of(flags, a->name) || head_is_word_of("1 true", a->value) || !a->value[0])
        return true;
    return clave__web_bad_request(x, "%s is a flag: it stands alone, or is left out", a->name);
}

static bool head_query(struct web_exchange *x)
{
    const char *known = x->route->query ? x->route->query : "";
    for (size_t i = 0; i < x->target.nargs && strcmp(known, "*") != 0; i++) {
        const char *name = x->target.args[i].name;
        if (!head_is_word_of(known, name))
            return clave__web_bad_request(
                x, "unknown query parameter \"%.64s\": %s%s", name,
                known[0] ? "this request takes " : "this request takes none", known);
        if (clave__web_query(x, name) != x->target.args[i].value)
            return clave__web_bad_request(x, "the query parameter \"%.64s\" is given twice", name);
        if (!head_flag(x, &x->target.args[i]))
            return false;
    }
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------ */

bool clave__web_admit(struct web_exchange *x)
{
    assert(!x->route && !x->answered);
    head_find_peer(x);
    return head_sizes(x) && head_framing(x) && head_target(x) && head_host(x) && head_route(x) &&
           head_origin(x) && head_sender(x) && head_narrowing(x) && head_query(x) &&
           clave__web_may_receive(x, x->q->body_length);
}

/* Returns the first role that the request needs and the sender lacks; `route` has room for the role
 * of its route. */
static const struct web_need *head_missing(const struct web_exchange *x, struct web_need *route)
{
    assert(x->route);
    *route = (struct web_need){x->needs, x->route->role, head_path(x)};
    const struct web_need *n = route;
    while (n && clave__web_may(x, n->role, n->path))
        n = n->next;
    return n;
}

bool clave__web_admit_again(struct web_exchange *x)
{
    const char *name = x->who.name; /* the audit names who began the request */
    head_find_peer(x);
    if (!x->route || !head_identify(x))
        return true;
    if (x->who.found != ACCESS_KNOWN)
        x->who.name = name;
    return clave__web_may_still(x);
}

bool clave__web_may_still(const struct web_exchange *x)
{
    struct web_need route;
    return !head_missing(x, &route);
}

void clave__web_refuse_now(struct web_exchange *x)
{
    struct web_need route;
    const struct web_need *n = head_missing(x, &route);
    if (n)
        clave__web_refuse_role(x, n->role, n->path);
}

/* ==== limits ================================================================================== */

/* The largest body of a sender that has proved nothing, in bytes. */
enum { STRANGE_BODY = 65536 };

static void limit_refuse(struct web_exchange *x, enum sender_share share, enum sender_found found,
                         size_t most)
{
    static const struct {
        const char *nouns, *verb, *limit, *limit_of_one;
        unsigned reason;
    } of[] = {
        [SENDER_WAITS] = {"requests", "wait", " (--http-max-waiting)", " (--http-max-waiting)",
                          HTTP_REFUSED_WAITING},
        [SENDER_CALLS] = {"requests", "wait", " (--http-max-waiting)", " (--http-max-waiting)",
                          HTTP_REFUSED_WAITING},
        [SENDER_BYTES] = {"bytes of bodies and answers", "are held", "", "", HTTP_REFUSED_MEMORY},
        [SENDER_SESSIONS] = {"sessions", "are alive", "", " (--http-max-sender-sessions)",
                             HTTP_REFUSED_SESSIONS},
    };
    bool all = found == SENDER_ALL_TAKEN, named = x->who.is_known && x->who.name[0];
    assert(found != SENDER_MAY && share < sizeof of / sizeof *of && of[share].nouns);
    unsigned status = all && share != SENDER_SESSIONS ? 503 : 429;
    if (found == SENDER_NO_MEMORY) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "begin", NULL);
        return;
    }
    x->refused = of[share].reason;
    if (all)
        clave__web_refuse(x, status, CLAVE_ETHROTTLED, NULL,
                          "%zu %s %s already, and this gate takes no more%s", most, of[share].nouns,
                          of[share].verb, of[share].limit);
    else
        clave__web_refuse(x, status, CLAVE_ETHROTTLED, NULL,
                          "%zu %s of %s %s already, and no sender may have more%s", most,
                          of[share].nouns, named ? x->who.name : "this address", of[share].verb,
                          of[share].limit_of_one);
}

static bool limit_enter(struct web_exchange *x, enum sender_share share)
{
    size_t most = 0;
    enum sender_found found = clave__shares_enter(x, share, &most);
    if (found != SENDER_MAY)
        limit_refuse(x, share, found, most);
    return found == SENDER_MAY;
}

/* True if there is room for one more, which the caller counts. */
static bool limit_has_room(struct web_exchange *x, enum sender_share share)
{
    size_t most = 0;
    enum sender_found found = clave__shares_may(x, share, 1, &most);
    if (found != SENDER_MAY)
        limit_refuse(x, share, found, most);
    return found == SENDER_MAY;
}

bool clave__web_may_wait(struct web_exchange *x)
{
    return limit_enter(x, SENDER_WAITS);
}

bool clave__web_may_keep_waiting(struct web_exchange *x)
{
    return limit_has_room(x, SENDER_WAITS);
}

bool clave__web_may_call(struct web_exchange *x)
{
    return clave__shares_is_own(x) || x->waits || limit_enter(x, SENDER_CALLS);
}

bool clave__web_may_make_session(struct web_exchange *x)
{
    return limit_has_room(x, SENDER_SESSIONS) && clave__web_may_call(x);
}

/* The total of all senders does not matter here: when another gate fails, this one inherits
 * everything that was held there, and no sender may keep out the holders of another. */
bool clave__web_may_take_up(struct web_exchange *x)
{
    size_t most = 0;
    enum sender_found found = clave__shares_may(x, SENDER_SESSIONS, 1, &most);
    bool exceeds = clave__shares_has_most(x, SENDER_SESSIONS, 1, &most);
    if (found != SENDER_NO_MEMORY && !exceeds)
        return true;
    limit_refuse(x, SENDER_SESSIONS, exceeds ? SENDER_HAS_MOST : found, most);
    return false;
}

/* Answers that n bytes are more than this sender can ever have, or that there is no room at
 * present. */
static void limit_refuse_bytes(struct web_exchange *x, enum sender_found found, size_t n,
                               size_t most)
{
    if (found == SENDER_NO_MEMORY || n <= most) {
        limit_refuse(x, SENDER_BYTES, found, most);
        return;
    }
    x->refused = HTTP_REFUSED_MEMORY;
    clave__web_refuse(x, 413, CLAVE_ETOOBIG, NULL,
                      "the body takes too much memory: more than the %zu bytes that one sender "
                      "may have",
                      most);
}

/* ---- the body -------------------------------------------------------------------------------- */

/* GET, DELETE and renewals need no large body. */
static size_t limit_of_body(const struct web_exchange *x)
{
    size_t most = clave__web_max_body(x->web), least = SHARES_SMALL;
    if (!clave__shares_is_own(x) && !clave__web_reads(x) && !clave__web_is_method(x, "DELETE"))
        least = x->who.is_known ? most : STRANGE_BODY;
    return most < least ? most : least;
}

bool clave__web_may_receive(struct web_exchange *x, int64_t n)
{
    size_t most = limit_of_body(x);
    if (n <= 0)
        return true;
    if ((uint64_t)n > most) {
        const char *why = most == clave__web_max_body(x->web) ? " (--http-max-body)"
                          : most == STRANGE_BODY ? " of a sender without a token or other proof"
                                                 : "";
        clave__web_refuse(x, 413, CLAVE_ETOOBIG, NULL,
                          "the body is too large: more than %zu bytes%s", most, why);
        return false;
    }
    enum sender_found found = clave__shares_take_body(x, (size_t)n, &most);
    if (found != SENDER_MAY)
        limit_refuse_bytes(x, found, (size_t)n, most);
    return found == SENDER_MAY;
}

bool clave__web_may_parse(struct web_exchange *x, size_t n)
{
    size_t most = 0;
    enum sender_found found =
        clave__shares_is_own(x) ? SENDER_MAY : clave__shares_take_tree(x, n, &most);
    if (found != SENDER_MAY)
        limit_refuse_bytes(x, found, n + x->received.cap, most);
    return found == SENDER_MAY;
}
