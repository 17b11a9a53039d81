/* settings_values.c - see settings_values.h; the table in settings_table.c names these functions.
 */
#include "cmd/serve/settings_values.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/server/server_run.h"
#include "runtime/tcp_address.h"
#include "wire/proto.h"

clave_err settings_verify_super_digest(const char *value, const struct fault *f)
{
    enum { HASH_LEN = 28 };
    const char *colon = strchr(value, ':');
    if (colon && colon > value && strlen(colon + 1) == HASH_LEN)
        return CLAVE_OK;
    return clave__start_error(
        f, CLAVE_EINVAL, "expected USER:HASH, HASH being the base64 of the SHA-1 of user:password");
}

clave_err settings_verify_uid(const char *value, const struct fault *f)
{
    enum { MOST_DIGITS = 10 };
    size_t n = strlen(value);
    bool fine = strspn(value, "0123456789") == n && n > 0 && n <= MOST_DIGITS &&
                (*value != '0' || n == 1) && strtoull(value, NULL, 10) < UINT32_MAX;
    return fine ? CLAVE_OK
                : clave__start_error(f, CLAVE_EINVAL, "expected the number of a user: 'id -u'");
}

clave_err settings_verify_schemes(const char *value, const struct fault *f)
{
    static const char known[] = ",digest,ip,uid,x509,";
    size_t n = 0;
    for (const char *at = value;; at += n + 1) {
        char word[16];
        n = strcspn(at, ",");
        snprintf(word, sizeof word, ",%.*s,", (int)n, at);
        if (n == 0 || n > sizeof word - 3 || !strstr(known, word))
            return clave__start_error(
                f, CLAVE_EINVAL, "no such scheme '%.*s'; known: digest, ip, uid, x509", (int)n, at);
        if (at[n] == '\0')
            return CLAVE_OK;
    }
}

clave_err settings_verify_words(const char *value, const struct fault *f)
{
    enum { WORD_LEN = 4 };
    static const char known[] = SERVER_WORDS "," SERVER_OTHER_WORDS;
    size_t n = 0;
    bool fine = strcmp(value, "*") == 0;
    for (const char *at = value; !fine; at += n + 1) {
        char word[WORD_LEN + 1] = "";
        n = strcspn(at, ",");
        memcpy(word, at, n == WORD_LEN ? n : 0);
        if (!*word || !strstr(known, word))
            return clave__start_error(f, CLAVE_EINVAL, "no such word '%.*s'; known: %s", (int)n, at,
                                      known);
        fine = at[n] == '\0';
    }
    return CLAVE_OK;
}

clave_err settings_verify_paths(const char *value, const struct fault *f)
{
    size_t n = 0;
    for (const char *at = value;; at += n + 1) {
        n = strcspn(at, ",");
        if (n == 0 || *at != '/')
            return clave__start_error(f, CLAVE_EINVAL, "expected paths with commas between: /a,/b");
        if (at[n] == '\0')
            return CLAVE_OK;
    }
}

bool settings_is_tls(const char *address)
{
    return strncmp(address, "tls:", 4) == 0;
}

/* Here, so that the fault has the flag or the line: a name is looked up when the server starts. */
clave_err settings_verify_listen(const char *value, const struct fault *f)
{
    struct tcp_address a;
    const char *at = settings_is_tls(value) ? value + 4 : value;
    if (strncmp(value, "unix:", 5) == 0)
        return CLAVE_OK;
    return clave__tcp_address_parse(at, WIRE_DEFAULT_PORT, &a, f);
}

const char *settings_past_proxy(const char *address)
{
    static const char proxy[] = "proxy:";
    return strncmp(address, proxy, sizeof proxy - 1) == 0 ? address + sizeof proxy - 1 : address;
}

clave_err settings_verify_http(const char *whole, const struct fault *f)
{
    const char *value = settings_past_proxy(whole);
    const char *at = settings_is_tls(value) ? value + 4 : value;
    const char *end = strrchr(at, ']'), *colon = strchr(end ? end : at, ':');
    if (settings_is_tls(value) && strncmp(at, "unix:", 5) == 0)
        return clave__start_error(f, CLAVE_EINVAL, "a Unix socket has no TLS");
    if (strncmp(value, "unix:", 5) == 0)
        return CLAVE_OK;
    if (colon && colon[1] != '\0')
        return settings_verify_listen(value, f);
    return clave__start_error(f, CLAVE_EINVAL,
                              "expected host:port, [v6]:port, *:port or unix:/path");
}

/* TLS is not supported here: three ways to say who may ask would be confusing. */
clave_err settings_verify_admin(const char *value, const struct fault *f)
{
    return settings_is_tls(value)
               ? clave__start_error(f, CLAVE_EINVAL, "the admin pages are served only without TLS")
               : settings_verify_http(value, f);
}

/* Normalised, so that it can be compared with request paths and put into a page. */
clave_err settings_verify_url(const char *value, const struct fault *f)
{
    static const char fine[] =
        "/-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strlen(value);
    if (n > 1 && n < ADMIN_URL_CAP && *value == '/' && value[n - 1] != '/' &&
        strspn(value, fine) == n && strcmp(value, "/metrics") != 0)
        return CLAVE_OK;
    return clave__start_error(
        f, CLAVE_EINVAL,
        "expected a path such as /commands: letters, digits and -._~ between '/', "
        "shorter than %d bytes, and not /metrics",
        ADMIN_URL_CAP);
}
