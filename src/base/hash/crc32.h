/* crc32.h - CRC-32 as zlib computes it, eight bytes at a time by a table: for the few bytes of a
 * path or of a Stat it takes a third of zlib's time, and for more than a kilobyte longer, unless
 * the processor multiplies without carries: then it takes a third for those, too. */
#ifndef CLAVE_BASE_HASH_CRC32_H
#define CLAVE_BASE_HASH_CRC32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* by[k][b]: what the byte b contributes when k more bytes follow it. */
struct crc32 {
    uint32_t by[8][256];
    bool folds; /* many bytes take less time than zlib's */
};

void clave__crc32_init(struct crc32 *t);
/* Continues from `crc`, which is 0 at first. */
uint32_t clave__crc32(const struct crc32 *t, uint32_t crc, const void *p, size_t n);

#endif
