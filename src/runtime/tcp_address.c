/* tcp_address.c - see tcp_address.h; listen.c calls it. */
#include "runtime/tcp_address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns false if the text has none of the forms. */
static bool tcp_address_split(const char *spec, int standard, struct tcp_address *out)
{
    const char *end = spec + strlen(spec), *colon;
    bool bracket = *spec == '[';
    const char *close_bracket = bracket ? strchr(spec, ']') : NULL;
    if (bracket && !close_bracket)
        return false;
    colon = bracket ? close_bracket + 1 : strchr(spec, ':');
    if (bracket && *colon != ':' && *colon != '\0')
        return false;
    const char *from = bracket ? spec + 1 : spec;
    const char *to = colon ? colon : end;
    if (bracket)
        to = close_bracket;
    if (to - from >= (long)sizeof out->host)
        return false;
    memcpy(out->host, from, (size_t)(to - from));
    out->host[to - from] = '\0';
    if (!colon || *colon == '\0') {
        snprintf(out->port, sizeof out->port, "%d", standard);
        return out->host[0] != '\0';
    }
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0' || atoi(colon + 1) > 65535)
        return false;
    memcpy(out->port, colon + 1, digits + 1);
    return true;
}

/* Refuses what the C library takes for a short form of an address: "24319" for 0.0.94.255, "127.1"
 * for 127.0.0.1 and "010.0.0.1" for 8.0.0.1. Nobody means those. */
static clave_err tcp_address_refuse_number(const char *spec, const char *host,
                                           const struct fault *f)
{
    struct in_addr address;
    if (inet_aton(host, &address) == 0 || inet_pton(AF_INET, host, &address) == 1)
        return CLAVE_OK;
    size_t digits = strspn(spec, "0123456789");
    if (spec[digits] == '\0' && digits <= 5 && atoi(spec) <= 65535)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "'%s' is a port without an address: write '*:%s' for every "
                                  "address of this machine, or '127.0.0.1:%s' for itself",
                                  host, host, host);
    return clave__start_error(f, CLAVE_EINVAL,
                              "'%s' is not an address: write IPv4 as four decimal numbers without "
                              "leading zeros, such as 127.0.0.1",
                              host);
}

clave_err clave__tcp_address_parse(const char *spec, int standard_port, struct tcp_address *out,
                                   const struct fault *f)
{
    if (!tcp_address_split(spec, standard_port, out))
        return clave__start_error(
            f, CLAVE_EINVAL,
            "invalid address '%s': expected host[:port], [v6][:port], *:port or "
            "unix:/path[?mode=MODE&group=GROUP], with a port up to 65535",
            spec);
    return tcp_address_refuse_number(spec, out->host, f);
}
