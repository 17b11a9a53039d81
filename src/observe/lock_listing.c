/* lock_listing.c - see lock_listing.h. What must stay true: the model equals that of a tree with
 * just these nodes. It stays in the state of loading, because nobody wants to hear of changes. */
#include "observe/lock_listing.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "observe/lock_holders.h"
#include "observe/lock_json.h"

/* ---- the paths of a lock --------------------------------------------------------------------- */

static char *lock_path_beside(const struct clave_mem *mem, const char *path, const char *suffix)
{
    size_t n = strlen(path), nsuffix = strlen(suffix) + 1;
    char *out = clave__mem_alloc(mem, n + nsuffix);
    if (!out)
        return NULL;
    memcpy(out, path, n);
    memcpy(out + n, suffix, nsuffix);
    return out;
}

char *clave__lock_side_path(const struct clave_mem *mem, const char *path, enum lock_side side)
{
    switch (side) {
    case LOCK_SIDE_LEASES:
        return clave__path_child(mem, path, "leases");
    case LOCK_SIDE_LOCKS:
        return clave__path_child(mem, path, "locks");
    case LOCK_SIDE_KAZOO:
        return lock_path_beside(mem, path, "-__lock__");
    case LOCK_SIDE_PATH:
    case LOCK_SIDES:
        break;
    }
    return lock_path_beside(mem, path, "");
}

char *clave__lock_mark_path(const struct clave_mem *mem, const char *path)
{
    return lock_path_beside(mem, path, "-held");
}
/* ---- adding what was read -------------------------------------------------------------------- */

clave_err clave__lock_listing_init(struct lock_listing *l, const struct clave_mem *mem,
                                   uint64_t seed, const char *path)
{
    *l = (struct lock_listing){.path = path};
    clave_err err = clave__lock_model_init(&l->model, mem, seed, 0);
    l->locks = clave__lock_side_path(mem, path, LOCK_SIDE_LOCKS);
    return l->locks ? err : CLAVE_ENOMEM;
}

void clave__lock_listing_fini(struct lock_listing *l)
{
    clave__mem_free(l->model.mem, l->locks);
    clave__lock_model_fini(&l->model);
}

static clave_err lock_listing_err(const struct lock_listing *l)
{
    return l->model.left_out > 0 ? CLAVE_ENOMEM : CLAVE_OK;
}

/* True if places, or the sides of a semaphore, are among the names. */
static bool lock_listing_is_known(const char *const *names, size_t n)
{
    bool known = false;
    for (size_t i = 0; i < n && !known; i++)
        known = clave__queue_kind_of(names[i]) != QUEUE_OTHER || clave__lock_is_bare(names[i]) ||
                strcmp(names[i], "leases") == 0 || strcmp(names[i], "locks") == 0;
    return known;
}

static bool lock_listing_may_be_place(const struct lock_listing *l, const char *name)
{
    return clave__queue_kind_of(name) != QUEUE_OTHER || clave__lock_is_bare(name) ||
           (l->model.plain && clave__lock_is_plain(name));
}

clave_err clave__lock_listing_names(struct lock_listing *l, enum lock_side side,
                                    const char *const *names, size_t n)
{
    assert(side != LOCK_SIDES && l->model.loading);
    static const clave_stat unknown = {0};
    const struct clave_mem *mem = l->model.mem;
    char *dir = clave__lock_side_path(mem, l->path, side);
    if (!dir)
        return CLAVE_ENOMEM;
    if (side == LOCK_SIDE_KAZOO) /* its existence shows that the path is a semaphore's */
        clave__lock_model_node(&l->model, 0, dir, &unknown, NULL, 0);
    l->model.plain = l->certain && side == LOCK_SIDE_PATH && !lock_listing_is_known(names, n);
    clave_err err = lock_listing_err(l);
    for (size_t i = 0; i < n && err == CLAVE_OK; i++) {
        bool dedicated = side == LOCK_SIDE_LEASES || side == LOCK_SIDE_LOCKS;
        if (!dedicated && !lock_listing_may_be_place(l, names[i]))
            continue;
        char *path = clave__path_child(mem, dir, names[i]);
        if (path)
            clave__lock_model_node(&l->model, 0, path, &unknown, NULL, 0);
        err = path ? lock_listing_err(l) : CLAVE_ENOMEM;
        clave__mem_free(mem, path);
    }
    clave__mem_free(mem, dir);
    return err;
}

clave_err clave__lock_listing_node(struct lock_listing *l, const char *path, const clave_stat *stat,
                                   const void *data, size_t len)
{
    clave__lock_model_node(&l->model, 0, path, stat, data, len);
    return lock_listing_err(l);
}

void clave__lock_listing_gone(struct lock_listing *l, const char *path)
{
    clave__lock_model_gone(&l->model, 0, path);
}

/* ---- the result ------------------------------------------------------------------------------ */

bool clave__lock_listing_holds(const struct lock_listing *l, const struct lock_node *p)
{
    return p->holds && strcmp(p->queue->path, l->path) == 0;
}

/* The queue of those waiting for a lease, even if no lease is taken. */
static const struct lock_queue *lock_listing_acquires(const struct lock_listing *l)
{
    const struct lock_queue *leases = clave__lock_model_get(&l->model, l->path, true);
    const struct lock_queue_key key = {l->locks, strlen(l->locks), false};
    return leases && leases->partner ? leases->partner : clave__lock_queue_at(&l->model, &key);
}

/* The next place after p in this queue that has these marks. */
static const struct lock_node *lock_listing_of(const struct lock_queue *q,
                                               const struct lock_node *p, uint32_t marks)
{
    struct lock_key key = p ? clave__lock_key(p) : (struct lock_key){"", ""};
    struct ordered_node *n = q ? clave__ordered_after(&q->places, &key, marks) : NULL;
    return n ? ORDERED_ENTRY(n, struct lock_node, node) : NULL;
}

const struct lock_node *clave__lock_listing_after(const struct lock_listing *l,
                                                  const struct lock_node *p)
{
    const struct lock_queue *q = clave__lock_model_get(&l->model, l->path, false);
    const struct lock_queue *leases = clave__lock_model_get(&l->model, l->path, true);
    const struct lock_node *next = NULL;
    const uint32_t holding = clave__lock_mark_holding(~0u);
    const uint32_t left_over = clave__lock_mark_left_over(~0u);
    const uint32_t others = clave__lock_mark_waiting(~0u) | left_over;
    bool here = !p || p->queue == q, lease = p && p->queue == leases;
    if (here && (!p || p->holds))
        next = lock_listing_of(q, p, holding);
    if (here && !next)
        next = lock_listing_of(q, p && !p->holds ? p : NULL, others);
    if ((here || (lease && p->holds)) && !next)
        next = lock_listing_of(leases, lease ? p : NULL, holding);
    if ((here || lease) && !next)
        next = lock_listing_of(leases, lease && !p->holds ? p : NULL, left_over);
    if (next)
        return next;
    return lock_listing_of(lock_listing_acquires(l), here || lease ? NULL : p, ORDERED_ANY);
}

const char *clave__lock_listing_role(const struct lock_listing *l, const struct lock_node *p)
{
    bool there = p->left_over || strcmp(p->queue->path, l->path) == 0;
    return there ? clave__lock_role_of_side(p) : "waiting";
}
