/* base64.c - see base64.h. Its decoder takes nothing but what the encoder makes. */
#include "base/base64.h"

#include <stdint.h>

void clave__base64(const void *p, size_t n, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)b[i] << 16;
        if (i + 1 < n)
            v |= (uint32_t)b[i + 1] << 8;
        if (i + 2 < n)
            v |= b[i + 2];
        *out++ = digits[v >> 18];
        *out++ = digits[v >> 12 & 63];
        *out++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
        *out++ = i + 2 < n ? digits[v & 63] : '=';
    }
    *out = '\0';
}

static int base64_digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

bool clave__base64_decode(const char *text, size_t n, void *out, size_t *len)
{
    uint8_t *to = out;
    *len = 0;
    if (n % 4 != 0)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        size_t padding = 0;
        if (i + 4 == n && text[i + 3] == '=')
            padding = text[i + 2] == '=' ? 2 : 1;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k < 4 - padding ? base64_digit_value(text[i + k]) : 0;
            if (digit < 0)
                return false;
            v = v << 6 | (uint32_t)digit;
        }
        if (padding && v & ((1u << 8 * padding) - 1)) /* two texts for the same bytes */
            return false;
        for (size_t k = 0; k < 3 - padding; k++)
            to[(*len)++] = (uint8_t)(v >> (16 - 8 * k));
    }
    return true;
}
