/* rwlock_upgrade.c - the rule of a read-write lock for an owner that has the other side already: an
 * upgrade is refused (EUPGRADE), since the write would wait for the owner's own read; a downgrade
 * takes over the write's place. mutex_acquire.c asks. Invariant: nothing is changed here. */
#include "recipe/lock/mutex_internal.h"

clave_err clave__rwlock_upgrade_check(const clave_async_mutex *m, uint64_t owner,
                                      const struct contender **downgrade)
{
    const struct owner_entry *e = m->other ? clave__mutex_find(m->other, owner) : NULL;
    *downgrade = NULL;
    if (!e)
        return CLAVE_OK;
    if (!m->config.spec.rule->shares)
        return CLAVE_EUPGRADE;
    if (e->count == 0)
        return CLAVE_EINVAL; /* one is pending */
    if (e->lost != CLAVE_OK)
        return CLAVE_ELOST;
    *downgrade = e->place;
    return CLAVE_OK;
}
