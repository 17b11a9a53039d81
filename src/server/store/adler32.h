/* adler32.h - Adler-32, as in Apache's files, over any number of bytes. */
#ifndef CLAVE_SERVER_STORE_ADLER32_H
#define CLAVE_SERVER_STORE_ADLER32_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

enum { CHECKSUM_START = 1 };

/* Continues a checksum that started as CHECKSUM_START. */
static inline uint32_t clave__checksum(uint32_t sum, const uint8_t *p, size_t n)
{
    const size_t most = (size_t)1 << 30; /* zlib takes the length as an unsigned int */
    while (n > 0) {
        size_t part = n < most ? n : most;
        sum = (uint32_t)adler32(sum, p, (uInt)part);
        p += part;
        n -= part;
    }
    return sum;
}

#endif
