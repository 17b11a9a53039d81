/* http_host.c - see http_host.h. Called by runtime/server/admin.c. */
#include "base/http_host.h"

#include <string.h>
#include <strings.h>

/* ":80", or nothing. What else stands after a name could be taken for another name by somebody who
 * reads it: "localhost:80@evil". */
static bool http_host_ends(const char *s)
{
    size_t n = s[0] == ':' ? strspn(s + 1, "0123456789") : 0;
    return s[0] == '\0' || (s[0] == ':' && n <= 5 && s[n + 1] == '\0');
}

static bool http_host_is(const char *name, size_t len, const char *host, size_t n)
{
    return len == n && strncasecmp(name, host, n) == 0;
}

bool clave__http_host_is_ours(const char *host, const char *names)
{
    if (host[0] == '[') {
        size_t end = 1 + strspn(host + 1, "0123456789abcdefABCDEF:.");
        return host[end] == ']' && http_host_ends(host + end + 1);
    }
    size_t n = strcspn(host, ":");
    if (n == 0 || !http_host_ends(host + n))
        return false;
    if (strspn(host, "0123456789.") >= n || http_host_is("localhost", 9, host, n))
        return true;
    for (size_t len; names && *names; names += len) {
        names += strspn(names, ", ");
        len = strcspn(names, ", ");
        if (http_host_is(names, len, host, n))
            return true;
    }
    return false;
}
