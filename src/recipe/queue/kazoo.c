/* kazoo.c - recognises nodes of kazoo's default names and warns about them. */
#include "recipe/queue/kazoo.h"

#include <string.h>

enum { UUID_DIGITS = 32, NUMBER_DIGITS = 10 };

static bool kazoo_is_one_of(const char *set, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] == '\0' || !strchr(set, p[i]))
            return false;
    return true;
}

bool clave__kazoo_is_name(const char *name)
{
    return kazoo_is_one_of("0123456789abcdef", name, UUID_DIGITS);
}

bool clave__kazoo_is_default(const char *name)
{
    static const char *const words[] = {"__lock__", "__rlock__"};
    if (!clave__kazoo_is_name(name))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *number = name + UUID_DIGITS + strlen(words[i]);
        if (strncmp(name + UUID_DIGITS, words[i], strlen(words[i])) != 0)
            continue;
        number += *number == '-'; /* of a counter that has wrapped */
        return kazoo_is_one_of("0123456789", number, NUMBER_DIGITS) &&
               number[NUMBER_DIGITS] == '\0';
    }
    return false;
}

bool clave__kazoo_warn(const struct log *log, const char *path, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!clave__kazoo_is_default(names[i]))
            continue;
        clave__log(log, CLAVE_LOG_WARN,
                   "%s/%s has the default name of a kazoo lock, which takes no part in this queue "
                   "and may hold at the same time as another, unless its extra_lock_patterns name "
                   "the others: give it a name of this queue (_NODE_NAME, see clave-locks(1))",
                   strcmp(path, "/") == 0 ? "" : path, names[i]);
        return true;
    }
    return false;
}
