/* forwarded.c - see forwarded.h. Called by head_checks.c, and by the driver for a connection. */
#include "web/http/forwarded.h"

#include <string.h>

#include "base/ip_range.h"
#include "web/http/exchange.h"

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

/* NULL: none of the proxies has said whom the request is from. */
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

/* What is loopback to a proxy elsewhere is that machine. */
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
