/* priority_tag.c - the priority in the name of a candidate's node. What must stay true: a name that
 * does not have the tag in exactly this form has priority 0. */
#include "recipe/queue/priority_tag.h"

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

/* Parses the digits right before the last "-latch-", which must follow the tag's word. */
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
