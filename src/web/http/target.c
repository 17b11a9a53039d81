/* target.c - see target.h. Called by admission.c and by handlers. Invariant: decoding never
 * lengthens, so it is done in place. */
#include "web/http/target.h"

#include <string.h>

static int target_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool clave__percent_decode(char *to, const char *from, size_t n, bool plus)
{
    for (size_t i = 0; i < n; i++) {
        char c = from[i] == '+' && plus ? ' ' : from[i];
        if (c == '%') {
            int high = n - i > 2 ? target_hex_digit(from[i + 1]) : -1;
            int low = high >= 0 ? target_hex_digit(from[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0')
            return false;
        *to++ = c;
    }
    *to = '\0';
    return true;
}

void clave__percent_encode(char *to, const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("/-._~", *c);
        if (plain) {
            *to++ = (char)*c;
            continue;
        }
        *to++ = '%';
        *to++ = hex[*c >> 4];
        *to++ = hex[*c & 15];
    }
    *to = '\0';
}

/* `text` is one argument: NAME or NAME=VALUE. */
static const char *target_add_arg(struct target *t, char *text)
{
    if (t->nargs == TARGET_MAX_ARGS)
        return "the query has too many arguments";
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    else
        value = text + strlen(text);
    if (!clave__percent_decode(text, text, strlen(text), true) ||
        !clave__percent_decode(value, value, strlen(value), true))
        return "the query has a malformed percent escape";
    t->args[t->nargs].name = text;
    t->args[t->nargs++].value = value;
    return NULL;
}

/* `lower` with capitals, too, is what it begins with: how many bytes; 0: it does not. */
static size_t target_scheme(const char *text, const char *lower)
{
    size_t n = 0;
    for (; lower[n]; n++) {
        char c = text[n] >= 'A' && text[n] <= 'Z' ? (char)(text[n] | 0x20) : text[n];
        if (c != lower[n])
            return 0;
    }
    return n;
}

/* RFC 9112, 3.2.2: a client that takes the gate for a proxy sends the whole URI. The host moves to
 * the front, and makes room for the slash of an empty path. Returns the path. */
static char *target_take_host(struct target *t, char *text)
{
    size_t scheme = target_scheme(text, "http://") + target_scheme(text, "https://");
    if (scheme == 0)
        return text;
    size_t n = strcspn(text + scheme, "/?");
    char *path = text + scheme + n;
    memmove(text, text + scheme, n);
    text[n] = '\0';
    t->host = text;
    if (*path != '/')
        *--path = '/';
    return path;
}

const char *clave__target_parse(struct target *t, char *text)
{
    *t = (struct target){.path = text};
    t->path = text = target_take_host(t, text);
    if (text[0] != '/')
        return "the target does not begin with /: send the path, and the host in Host";
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '#')
            return "the target contains a character that must be percent-encoded";
    char *query = strchr(text, '?');
    if (!query)
        return NULL;
    *query++ = '\0';
    const char *fault = NULL;
    for (char *next; query && !fault; query = next) {
        next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        if (query[0] != '\0')
            fault = target_add_arg(t, query);
    }
    return fault;
}

const char *clave__target_arg(const struct target *t, const char *name)
{
    for (size_t i = 0; i < t->nargs; i++)
        if (strcmp(t->args[i].name, name) == 0)
            return t->args[i].value;
    return NULL;
}

/* ---- patterns ------------------------------------------------------------------------------- */

/* The part for {path}, which ends where `rest` of the pattern begins. */
static bool target_part_of_path(const char *rest, const char *path, struct target_part *out)
{
    size_t n = strlen(path), end = strlen(rest);
    if (n < end || strcmp(path + n - end, rest) != 0)
        return false;
    *out = (struct target_part){path, n - end};
    return true;
}

/* Where a pattern has no slash before {path}, the path's own is there, or there is no path. */
static bool target_is_path_apart(const char *pattern, const char *at, const char *path)
{
    return (at > pattern && at[-1] == '/') || *path == '/' || *path == '\0';
}

bool clave__target_matches(const struct target *t, const char *pattern, struct target_part *parts)
{
    const char *all = pattern, *path = t->path;
    while (*pattern) {
        if (strncmp(pattern, "{path}", 6) == 0)
            return target_is_path_apart(all, pattern, path) &&
                   target_part_of_path(pattern + 6, path, parts);
        if (*pattern == '{') {
            *parts = (struct target_part){path, strcspn(path, "/")};
            if (parts->n == 0)
                return false;
            path += parts++->n;
            pattern += strcspn(pattern, "}") + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}
