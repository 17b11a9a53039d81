/* prefer.c - see prefer.h. Called by the endpoints that wait. */
#include "web/http/prefer.h"

#include <string.h>

int64_t clave__web_prefer_wait(const struct web_exchange *x)
{
    const char *prefer = clave__web_header(x, "Prefer");
    const char *at = prefer ? strstr(prefer, "wait=") : NULL;
    if (!at || at[5] < '0' || at[5] > '9')
        return -1;
    int64_t s = 0;
    for (at += 5; *at >= '0' && *at <= '9' && s < 1000000; at++)
        s = s * 10 + (*at - '0');
    return s * 1000;
}
