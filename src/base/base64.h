/* base64.h - bytes as text: the standard alphabet with padding (RFC 4648, 4), and the one for URLs
 * without padding (RFC 4648, 5). */
#ifndef CLAVE_BASE_BASE64_H
#define CLAVE_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* The number of characters n bytes encode to, without the NUL. */
#define BASE64_LEN(n) (((n) + 2) / 3 * 4)

/* Writes BASE64_LEN(n) characters and a NUL to out. */
void clave__base64(const void *p, size_t n, char *out);

/* Decodes a text of n characters to out, which has room for n / 4 * 3 bytes; *len is how many there
 * are. false: it is not base64, or its padding is missing. */
bool clave__base64_decode(const char *text, size_t n, void *out, size_t *len);

/* The same for URLs. Writes at most BASE64_LEN(n) characters and a NUL. */
void clave__base64url(const void *p, size_t n, char *out);

/* The same for URLs; out has room for n * 3 / 4 bytes. false: it is not base64url. */
bool clave__base64url_decode(const char *text, size_t n, void *out, size_t *len);

#endif
