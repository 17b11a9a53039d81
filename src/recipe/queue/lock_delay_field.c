/* lock_delay_field.c - what nodes say of a lock delay: see lock_delay_field.h. Called by those who
 * make places, and by src/observe. Invariant: only data in clave's form says it. */
#include "recipe/queue/lock_delay_field.h"

#include <string.h>

#include "recipe/queue/identity.h"

static const char delays[] = "delays=1\n";

static bool lock_delay_has_value(const void *data, size_t n, const char *key, const char *value)
{
    if (!clave__identity_is_form(data, n))
        return false;
    const char *end = (const char *)data + n;
    const char *at = clave__identity_find_value(data, end, key);
    size_t len = strlen(value);
    return at && (size_t)(end - at) >= len && memcmp(at, value, len) == 0;
}

size_t clave__lock_delay_field_put(char *data, size_t n, size_t cap)
{
    if (n + sizeof delays > cap)
        return n;
    memcpy(data + n, delays, sizeof delays);
    return n + sizeof delays - 1;
}

bool clave__lock_delay_field_is_set(const void *data, size_t n)
{
    return lock_delay_has_value(data, n, "delays", "1\n");
}

int64_t clave__lock_delay_mark_token(const void *data, size_t n)
{
    enum { DIGITS = 20 };
    char text[DIGITS] = "";
    if (!lock_delay_has_value(data, n, "state", "held\n"))
        return 0;
    const char *end = (const char *)data + n;
    const char *at = clave__identity_find_value(data, end, "token");
    size_t i = 0;
    for (; at && at + i < end && at[i] != '\n' && i + 1 < sizeof text; i++)
        text[i] = at[i];
    return clave__identity_number(text);
}
