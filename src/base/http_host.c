/* http_host.c - see http_host.h. Called by runtime/server/admin.c and web/http. */
#include "base/http_host.h"

#include <string.h>

/* ":80", or nothing. What else stands after a name could be taken for another name by somebody who
 * reads it: "localhost:80@evil". */
static bool http_host_ends(const char *s)
{
    size_t n = s[0] == ':' ? strspn(s + 1, "0123456789") : 0;
    return s[0] == '\0' || (s[0] == ':' && n <= 5 && s[n + 1] == '\0');
}

static char http_host_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool clave__http_begins(const char *text, const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && http_host_lower(text[i]) == http_host_lower(s[i]))
        i++;
    return i == n;
}

bool clave__http_name_is(const char *text, size_t n, const char *name)
{
    return clave__http_begins(name, text, n) && name[n] == '\0';
}

size_t clave__http_host_len(const char *host)
{
    size_t n = strcspn(host, ":");
    if (host[0] == '[') { /* an address of IPv6 */
        n = 1 + strspn(host + 1, "0123456789abcdefABCDEF:.");
        n = host[n] == ']' ? n + 1 : 0;
    }
    return http_host_ends(host + n) ? n : 0;
}

bool clave__http_host_is_ours(const char *host, const char *names)
{
    size_t n = clave__http_host_len(host);
    if (n == 0)
        return false;
    if (host[0] == '[' || strspn(host, "0123456789.") >= n ||
        clave__http_name_is(host, n, "localhost"))
        return true;
    for (size_t len; names && *names; names += len) {
        names += strspn(names, ", ");
        len = strcspn(names, ", ");
        if (len == n && clave__http_begins(names, host, n))
            return true;
    }
    return false;
}
