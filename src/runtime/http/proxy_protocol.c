/* proxy_protocol.c - the header that a proxy sends before everything else (proxy_protocol.h), and
 * the filter of a channel that strips it; http_connection.c adds that filter. Nothing in a header
 * is trusted until all of it has arrived. */
#include "runtime/http/proxy_protocol.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/memory.h"

enum { V1_MAX = 107, V2_FIXED = 16, V2_TCP4 = 12, V2_TCP6 = 36 };
/* The second nibbles of version and command, and address families with their transport. */
enum { V2_LOCAL = 0x20, V2_PROXY = 0x21, V2_OVER_TCP4 = 0x11, V2_OVER_TCP6 = 0x21 };

static const char v2_signature[] = "\r\n\r\n\0\r\nQUIT\n";

/* Fills in everything in `out` except the user. */
static void proxy_name(struct peer_addr *out, int family, const void *ip, unsigned port)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];
    *out = (struct peer_addr){.family = family == AF_INET ? 4 : 6, .port = (uint16_t)port};
    if (out->family == 6 && memcmp(ip, mapped, sizeof mapped) == 0) {
        out->family = 4;
        ip = (const uint8_t *)ip + sizeof mapped;
    }
    memcpy(out->ip, ip, out->family == 4 ? 4 : 16);
    inet_ntop(out->family == 4 ? AF_INET : AF_INET6, out->ip, text, sizeof text);
    snprintf(out->text, sizeof out->text, out->family == 4 ? "%s:%u" : "[%s]:%u", text, port);
}

/* ---- version 1 ------------------------------------------------------------------------------ */

/* The next word, up to a space or the end. The first of two spaces ends an empty word. */
static const char *proxy_word(char **at)
{
    char *word = *at;
    size_t n = strcspn(word, " ");
    *at = word + n + (word[n] == ' ');
    word[n] = '\0';
    return word;
}

static bool proxy_port(const char *text, unsigned *port)
{
    size_t n = strspn(text, "0123456789");
    *port = n > 0 && n <= 5 && text[n] == '\0' ? (unsigned)strtoul(text, NULL, 10) : 65536;
    return *port < 65536;
}

/* Parses what follows "PROXY ". Returns false if it is not well-formed. */
static bool proxy_parse_line(char *line, bool *is_named, struct peer_addr *out)
{
    uint8_t from[16], to[16];
    unsigned from_port, to_port;
    const char *kind = proxy_word(&line);
    *is_named = strcmp(kind, "UNKNOWN") != 0;
    if (!*is_named)
        return true;
    const bool is_4 = strcmp(kind, "TCP4") == 0;
    const int family = is_4 ? AF_INET : AF_INET6;
    if ((!is_4 && strcmp(kind, "TCP6") != 0) || inet_pton(family, proxy_word(&line), from) != 1 ||
        inet_pton(family, proxy_word(&line), to) != 1 ||
        !proxy_port(proxy_word(&line), &from_port) || !proxy_port(line, &to_port))
        return false;
    proxy_name(out, family, from, from_port);
    return true;
}

static enum proxy_parsed proxy_parse_v1(const char *p, size_t n, size_t *used, bool *is_named,
                                        struct peer_addr *out)
{
    char line[V1_MAX + 1];
    const char *lf = memchr(p, '\n', n < V1_MAX ? n : V1_MAX);
    if (!lf)
        return n < V1_MAX ? PROXY_MORE : PROXY_FAULT;
    size_t len = (size_t)(lf - p);
    if (len < 1 || p[len - 1] != '\r' || memchr(p, '\0', len))
        return PROXY_FAULT;
    snprintf(line, sizeof line, "%.*s", (int)(len - 1), p);
    *used = len + 1;
    return proxy_parse_line(line + 6, is_named, out) ? PROXY_DONE : PROXY_FAULT;
}

/* ---- version 2 ------------------------------------------------------------------------------ */

static unsigned proxy_u16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static enum proxy_parsed proxy_parse_v2(const uint8_t *p, size_t n, size_t *used, bool *is_named,
                                        struct peer_addr *out)
{
    if (n < V2_FIXED)
        return PROXY_MORE;
    size_t len = proxy_u16(p + 14);
    const uint8_t *from = p + V2_FIXED;
    bool is_v4 = p[13] == V2_OVER_TCP4, is_v6 = p[13] == V2_OVER_TCP6;
    if ((p[12] != V2_LOCAL && p[12] != V2_PROXY) || V2_FIXED + len > PROXY_MAX_HEADER)
        return PROXY_FAULT;
    if (n < V2_FIXED + len)
        return PROXY_MORE;
    *used = V2_FIXED + len;
    *is_named = p[12] == V2_PROXY && (is_v4 || is_v6);
    if (!*is_named)
        return PROXY_DONE;
    if (len < (size_t)(is_v4 ? V2_TCP4 : V2_TCP6))
        return PROXY_FAULT;
    if (is_v4)
        proxy_name(out, AF_INET, from, proxy_u16(from + 8));
    else
        proxy_name(out, AF_INET6, from, proxy_u16(from + 32));
    return PROXY_DONE;
}

/* ---- both versions --------------------------------------------------------------------------- */

static bool proxy_begins(const void *p, size_t n, const char *with, size_t len)
{
    return memcmp(p, with, n < len ? n : len) == 0;
}

enum proxy_parsed clave__proxy_parse(const void *p, size_t n, size_t *used, bool *is_named,
                                     struct peer_addr *out)
{
    *used = 0;
    *is_named = false;
    if (n == 0)
        return PROXY_MORE;
    if (proxy_begins(p, n, v2_signature, sizeof v2_signature - 1))
        return proxy_parse_v2(p, n, used, is_named, out);
    if (!proxy_begins(p, n, "PROXY ", 6))
        return PROXY_FAULT;
    return n < 6 ? PROXY_MORE : proxy_parse_v1(p, n, used, is_named, out);
}

/* ---- the filter ------------------------------------------------------------------------------ */

struct http_proxy {
    struct filter filter;
    const struct http_proxy_events *events;
    const struct clave_mem *mem;
    bool is_done;
    struct buf head; /* the header so far, while it is incomplete */
};

static struct http_proxy *proxy_protocol_filter_of(struct filter *f)
{
    return LIST_ENTRY(f, struct http_proxy, filter);
}

/* Parses the header, which usually arrives in one piece. */
static bool proxy_protocol_filter_take(struct http_proxy *x, const char *p, size_t n)
{
    struct channel *ch = x->filter.channel;
    struct peer_addr peer;
    bool is_named;
    size_t used, had = clave__buf_len(&x->head);
    size_t most = PROXY_MAX_HEADER - had < n ? PROXY_MAX_HEADER - had : n;
    if (clave__buf_append(&x->head, p, most) != CLAVE_OK)
        return false;
    enum proxy_parsed what = clave__proxy_parse(clave__buf_bytes(&x->head),
                                                clave__buf_len(&x->head), &used, &is_named, &peer);
    if (what == PROXY_MORE && clave__buf_len(&x->head) < PROXY_MAX_HEADER)
        return true;
    if (what != PROXY_DONE) {
        x->events->failed(ch);
        return false;
    }
    x->is_done = true;
    clave__buf_fini(&x->head);
    clave__buf_init(&x->head, x->mem, PROXY_MAX_HEADER);
    if (!x->events->named(ch, is_named ? &peer : NULL))
        return false;
    used -= had; /* the first `had` bytes were consumed earlier */
    return used == n || clave__channel_input(ch, x->filter.above, p + used, n - used);
}

static bool proxy_protocol_filter_input(struct filter *f, const void *p, size_t n)
{
    struct http_proxy *x = proxy_protocol_filter_of(f);
    return x->is_done ? clave__channel_input(f->channel, f->above, p, n)
                      : proxy_protocol_filter_take(x, p, n);
}

static size_t proxy_protocol_filter_output(struct filter *f, const void **p)
{
    return proxy_protocol_filter_of(f)->is_done ? clave__channel_output(f->channel, f->above, p)
                                                : 0;
}

static void proxy_protocol_filter_sent(struct filter *f, size_t n)
{
    clave__channel_sent(f->channel, f->above, n);
}

static bool proxy_protocol_filter_is_done(struct filter *f)
{
    return proxy_protocol_filter_of(f)->is_done && clave__channel_is_done(f->channel, f->above);
}

static size_t proxy_protocol_filter_farewell(struct filter *f, const void **p)
{
    struct filter *above = f->above;
    return proxy_protocol_filter_of(f)->is_done && above && above->ops->farewell
               ? above->ops->farewell(above, p)
               : 0;
}

static void proxy_protocol_filter_free(struct filter *f)
{
    struct http_proxy *x = proxy_protocol_filter_of(f);
    clave__buf_fini(&x->head);
    clave__mem_free(x->mem, x);
}

bool clave__http_proxy_add_filter(struct channel *ch, const struct http_proxy_events *events)
{
    static const struct filter_ops ops = {
        .input = proxy_protocol_filter_input,
        .output = proxy_protocol_filter_output,
        .sent = proxy_protocol_filter_sent,
        .is_done = proxy_protocol_filter_is_done,
        .farewell = proxy_protocol_filter_farewell,
        .free = proxy_protocol_filter_free,
    };
    struct http_proxy *x = clave__mem_zalloc(ch->mem, sizeof *x);
    if (!x)
        return false;
    x->events = events;
    x->mem = ch->mem;
    clave__buf_init(&x->head, ch->mem, PROXY_MAX_HEADER);
    clave__channel_add_filter(ch, &x->filter, &ops);
    return true;
}
