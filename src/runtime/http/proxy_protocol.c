/* proxy_protocol.c - see proxy_protocol.h; proxy_protocol_filter.c calls it. Nothing is believed of
 * a header before all of it has come. */
#include "runtime/http/proxy_protocol.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V1_MAX = 107, V2_FIXED = 16, V2_TCP4 = 12, V2_TCP6 = 36 };
/* The second nibbles of version and command, and families with their transport. */
enum { V2_LOCAL = 0x20, V2_PROXY = 0x21, V2_OVER_TCP4 = 0x11, V2_OVER_TCP6 = 0x21 };

static const char v2_signature[] = "\r\n\r\n\0\r\nQUIT\n";

/* Everything of `out` but the user. */
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

/* The next word, up to a blank or the end; the first of two blanks ends an empty one. */
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

/* After "PROXY "; false: it is not well-formed. */
static bool proxy_parse_line(char *line, bool *is_named, struct peer_addr *out)
{
    uint8_t from[16], to[16];
    unsigned from_port, to_port;
    const char *kind = proxy_word(&line);
    *is_named = strcmp(kind, "UNKNOWN") != 0;
    if (!*is_named)
        return true;
    int family = strcmp(kind, "TCP4") == 0 ? AF_INET : strcmp(kind, "TCP6") == 0 ? AF_INET6 : -1;
    if (family < 0 || inet_pton(family, proxy_word(&line), from) != 1 ||
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

/* ---- either --------------------------------------------------------------------------------- */

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
