/* crc32.c - the tables of crc32.h and the sum ("slicing by eight", Kounavis and Berry, 2005); the
 * server's nodes use it for their digests. */
#include "base/crc32.h"

void clave__crc32_init(struct crc32 *t)
{
    const uint32_t polynomial = 0xedb88320u; /* of IEEE 802.3, its lowest bit first */
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        t->by[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            t->by[k][b] = t->by[0][t->by[k - 1][b] & 0xff] ^ t->by[k - 1][b] >> 8;
}

uint32_t clave__crc32(const struct crc32 *t, uint32_t crc, const void *p, size_t n)
{
    const uint8_t *at = p;
    crc = ~crc;
    for (; n >= 8; at += 8, n -= 8)
        crc = t->by[7][at[0] ^ (crc & 0xff)] ^ t->by[6][at[1] ^ (crc >> 8 & 0xff)] ^
              t->by[5][at[2] ^ (crc >> 16 & 0xff)] ^ t->by[4][at[3] ^ crc >> 24] ^ t->by[3][at[4]] ^
              t->by[2][at[5]] ^ t->by[1][at[6]] ^ t->by[0][at[7]];
    for (; n > 0; at++, n--)
        crc = t->by[0][(crc ^ *at) & 0xff] ^ crc >> 8;
    return ~crc;
}
