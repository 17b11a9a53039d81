/* utf8.h - UTF-8, one character at a time. Each function returns the length of the character at p,
 * of at most n bytes (n >= 1), or 0. */
#ifndef CLAVE_BASE_UTF8_H
#define CLAVE_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* 0: malformed, which overlong forms are. Surrogates are decoded. */
size_t clave__utf8_decode(const void *p, size_t n, uint32_t *out);
/* 0 for surrogates too, and beyond U+10FFFF: readers of JSON refuse them. */
size_t clave__utf8_len(const void *p, size_t n);
/* How many of the n bytes at p are left without a character that is cut short at their end. */
size_t clave__utf8_whole(const void *p, size_t n);
/* 0 also for what a terminal would obey: the controls U+0000-001F and U+007F-009F, what separates
 * lines (U+2028, U+2029), and what changes the order of the characters after it (U+202A-202E,
 * U+2066-2069). */
size_t clave__utf8_printable(const void *p, size_t n);

#endif
