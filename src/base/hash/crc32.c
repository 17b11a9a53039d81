/* crc32.c - the tables of crc32.h and the sum ("slicing by eight", Kounavis and Berry, 2005), for
 * many bytes with carry-less multiplication (Gopal and others, Intel, 2009) where the processor has
 * it; the server's nodes use it for their digests. */
#include "base/hash/crc32.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#if defined(__x86_64__)
enum { FOLD = 64, LAST = 16, LEAST_TO_FOLD = 2 * FOLD };

static bool crc32_can_fold(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_PCLMUL) != 0;
}

__attribute__((target("pclmul"))) static __m128i crc32_fold_one(__m128i x, __m128i by, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Makes sixteen bytes of a multiple of 64, at least 64: their sum from a state of zero is that of
 * all from the state of `crc`. The factors are powers of x, of the distance, modulo the polynomial.
 */
__attribute__((target("pclmul"))) static void crc32_fold(uint32_t crc, const uint8_t *p, size_t n,
                                                         uint8_t out[LAST])
{
    const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i x[FOLD / LAST];
    for (int i = 0; i < FOLD / LAST; i++)
        x[i] = _mm_loadu_si128((const void *)(p + LAST * i));
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)~crc));
    for (size_t at = FOLD; at < n; at += FOLD)
        for (int i = 0; i < FOLD / LAST; i++)
            x[i] = crc32_fold_one(x[i], by_64, _mm_loadu_si128((const void *)(p + at + LAST * i)));
    for (int i = 1; i < FOLD / LAST; i++)
        x[i] = crc32_fold_one(x[i - 1], by_16, x[i]);
    _mm_storeu_si128((void *)out, x[FOLD / LAST - 1]);
}
#else
enum { FOLD = 1, LAST = 1, LEAST_TO_FOLD = 1 };

static bool crc32_can_fold(void)
{
    return false;
}

static void crc32_fold(uint32_t crc, const uint8_t *p, size_t n, uint8_t out[LAST])
{
    (void)crc, (void)p, (void)n;
    *out = 0;
}
#endif

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
    t->folds = crc32_can_fold();
}

static uint32_t crc32_slice(const struct crc32 *t, uint32_t crc, const void *p, size_t n)
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

uint32_t clave__crc32(const struct crc32 *t, uint32_t crc, const void *p, size_t n)
{
    if (!t->folds || n < LEAST_TO_FOLD)
        return crc32_slice(t, crc, p, n);
    const size_t whole = n / FOLD * FOLD;
    uint8_t last[LAST];
    crc32_fold(crc, p, whole, last);
    crc = crc32_slice(t, ~0u, last, sizeof last);
    return crc32_slice(t, crc, (const uint8_t *)p + whole, n - whole);
}
