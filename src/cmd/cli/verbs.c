/* verbs.c - the list of all verbs, in the order of `clave help`. A new verb is added here and
 * nowhere else. */
#include <string.h>

#include "cmd/cli/verb.h"

static const struct verb *const table[] = {
    &verb_lock,       &verb_rwlock, &verb_semaphore, &verb_locks, &verb_elect, &verb_leader,
    &verb_candidates, &verb_resign, &verb_transfer,  &verb_check, &verb_get,   &verb_set,
    &verb_create,     &verb_rm,     &verb_ls,        &verb_tree,  &verb_stat,  &verb_watch,
    &verb_sync,       &verb_ping,   &verb_serve,     &verb_data,  &verb_grow,  &verb_bench,
    &verb_version,    &verb_help,
};

const struct verb *verb_at(unsigned i)
{
    return i < sizeof table / sizeof *table ? table[i] : NULL;
}

const struct verb *verb_find(const char *name)
{
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}
