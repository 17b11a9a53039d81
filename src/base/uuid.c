/* uuid.c - UUIDs as text: protected names, claims and cookies have one. They are drawn by rand.c,
 * so equal seeds draw equal ones; who shares a seed with others mixes in what differs. */
#include "base/uuid.h"

static const char uuid_hex[] = "0123456789abcdef";

void clave__rand_uuid(struct rand_state *r, char out[CLAVE_UUID_TEXT + 1])
{
    uint64_t hi = (clave__rand_u64(r) & ~UINT64_C(0xf000)) | 0x8000;
    uint64_t lo = (clave__rand_u64(r) & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62);
    int at = 0;
    for (int i = 0; i < 32; i++) {
        uint64_t word = i < 16 ? hi : lo;
        if (i == 8 || i == 12 || i == 16 || i == 20)
            out[at++] = '-';
        out[at++] = uuid_hex[(word >> (60 - 4 * (i & 15))) & 15];
    }
    out[at] = '\0';
}

static unsigned uuid_digit_value(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* Digits 12 and 16 hold the version and the variant and are left alone. */
void clave__uuid_mix(char *uuid, uint64_t a, uint64_t b)
{
    int digit = 0, mixed = 0;
    for (char *at = uuid; *at && digit < 32; at++) {
        if (*at == '-')
            continue;
        if (digit != 12 && digit != 16) {
            uint64_t bits = mixed < 16 ? a >> (60 - 4 * mixed) : b >> (52 - 4 * (mixed - 16));
            *at = uuid_hex[(uuid_digit_value(*at) ^ bits) & 15];
            mixed++;
        }
        digit++;
    }
}
