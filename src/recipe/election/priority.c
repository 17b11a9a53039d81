#include "recipe/election/priority.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char word[] = "priority-";
static const char base[] = "-latch-";

void clave__priority_tag(int32_t priority, char out[CLAVE_PRIORITY_TAG])
{
    out[0] = '\0';
    if (priority > 0)
        snprintf(out, CLAVE_PRIORITY_TAG, "%s%d-", word, (int)priority);
}

/* The digits just before the last "-latch-", with the word just before them. */
int32_t clave__priority_of(const char *name)
{
    const char *end = NULL;
    for (const char *at = strstr(name, base); at; at = strstr(at + 1, base))
        end = at;
    if (!end)
        return 0;
    int64_t value = 0, unit = 1;
    const char *at = end;
    for (; at > name && at[-1] >= '0' && at[-1] <= '9' && end - at < 10; at--, unit *= 10)
        value += (at[-1] - '0') * unit;
    size_t nword = sizeof word - 1;
    bool tagged = at < end && (size_t)(at - name) >= nword && memcmp(at - nword, word, nword) == 0;
    return tagged && value <= INT32_MAX ? (int32_t)value : 0;
}

/* FNV-1a. */
static uint64_t priority_mix(uint64_t hash, const char *text)
{
    size_t n = strlen(text) + 1; /* with the NUL: "a" "bc" is not "ab" "c" */
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

int32_t clave__priority_spread(const char *path, const char *id)
{
    uint64_t h = priority_mix(priority_mix(UINT64_C(0xcbf29ce484222325), path), id);
    /* FNV's high bits hardly see the last bytes: MurmurHash3's finalizer. */
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    h = (h ^ (h >> 33)) & INT32_MAX;
    return h ? (int32_t)h : 1;
}

size_t clave__priority_highest(const char *const *names, const size_t *order, size_t n)
{
    size_t best = 0;
    int32_t highest = clave__priority_of(names[order[0]]);
    for (size_t i = 1; i < n; i++) {
        int32_t rank = clave__priority_of(names[order[i]]);
        if (rank > highest) {
            highest = rank;
            best = i;
        }
    }
    return best;
}
