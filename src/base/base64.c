/* base64.c - see base64.h. Its decoders take nothing but what the encoders make. */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char for_urls[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Returns how many digits it has written, without padding. */
static size_t base64_encode(const char *digits, const void *p, size_t n, char *out)
{
    const uint8_t *b = p;
    char *to = out;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)b[i] << 16;
        if (i + 1 < n)
            v |= (uint32_t)b[i + 1] << 8;
        if (i + 2 < n)
            v |= b[i + 2];
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        if (i + 1 < n)
            *to++ = digits[v >> 6 & 63];
        if (i + 2 < n)
            *to++ = digits[v & 63];
    }
    return (size_t)(to - out);
}

void clave__base64(const void *p, size_t n, char *out)
{
    size_t len = base64_encode(standard, p, n, out);
    while (len % 4 != 0)
        out[len++] = '=';
    out[len] = '\0';
}

void clave__base64url(const void *p, size_t n, char *out)
{
    out[base64_encode(for_urls, p, n, out)] = '\0';
}

/* n digits without padding. */
static bool base64_decode(const char *digits, const char *text, size_t n, uint8_t *out, size_t *len)
{
    *len = 0;
    if (n % 4 == 1)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        size_t here = n - i < 4 ? n - i : 4;
        uint32_t v = 0;
        for (size_t k = 0; k < here; k++) {
            const char *digit = text[i + k] ? strchr(digits, text[i + k]) : NULL;
            if (!digit)
                return false;
            v |= (uint32_t)(digit - digits) << (18 - 6 * k);
        }
        if (v & ((1u << 8 * (4 - here)) - 1)) /* two texts for the same bytes */
            return false;
        for (size_t k = 0; k + 1 < here; k++)
            out[(*len)++] = (uint8_t)(v >> (16 - 8 * k));
    }
    return true;
}

bool clave__base64_decode(const char *text, size_t n, void *out, size_t *len)
{
    size_t padded = n;
    while (n > 0 && padded - n < 2 && text[n - 1] == '=')
        n--;
    *len = 0;
    return padded % 4 == 0 && base64_decode(standard, text, n, out, len);
}

bool clave__base64url_decode(const char *text, size_t n, void *out, size_t *len)
{
    return base64_decode(for_urls, text, n, out, len);
}
