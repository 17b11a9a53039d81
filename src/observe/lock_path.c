/* lock_path.c - see lock_path.h. Called by lock_model.c, and by those who look once. Invariant: a
 * path alone tells; what the nodes of that path say may show that it is nothing of a lock after
 * all. */
#include "observe/lock_path.h"

#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "observe/lock_node.h"
#include "recipe/slots/slot_node.h"

static const char leases_name[] = "/leases", owners_name[] = "/owners";

bool clave__lock_path_ends(const char *path, size_t len, const char *end, size_t n)
{
    return len >= n && memcmp(path + len - n, end, n) == 0;
}

static bool lock_path_is_slot(const struct lock_path *s)
{
    char id[CLAVE_SLOT_ID_MAX + 1];
    return clave__lock_path_ends(s->key.path, s->key.len, owners_name, sizeof owners_name - 1) &&
           clave__slot_name_parse(s->name, id);
}

/* Without a folder of that many characters at its end: "/" is there for a root. */
void clave__lock_path_go_up(struct lock_path *s, size_t n)
{
    s->key.len = s->key.len > n ? s->key.len - n : 1;
    s->key.leases = true;
}

/* A lease is below "leases", or has a bare UUID as its name: kazoo's, there or right below the
 * path. A slot is below "owners". */
struct lock_path clave__lock_path_of(const struct lock_model *m, const char *path)
{
    struct lock_path s = {.name = clave__path_name(path)};
    size_t len = (size_t)(s.name - path);
    len -= len > 1; /* the slash, unless it is the root */
    s.key = (struct lock_queue_key){path, len, false};
    if (lock_path_is_slot(&s)) {
        s.kept = true;
        s.kind = QUEUE_LEASE;
        clave__lock_path_go_up(&s, sizeof owners_name - 1);
        return s;
    }
    s.kind = clave__queue_kind_of(s.name);
    if (m && m->plain && s.kind == QUEUE_OTHER && clave__lock_is_plain(s.name))
        s.kind = QUEUE_LOCK;
    bool counted = s.kind == QUEUE_LEASE || (s.kind == QUEUE_OTHER && clave__lock_is_bare(s.name));
    if (!counted)
        return s;
    bool below = clave__lock_path_ends(path, len, leases_name, sizeof leases_name - 1);
    s.bare = s.kind == QUEUE_OTHER && !below;
    s.kind = below || s.bare ? QUEUE_LEASE : QUEUE_OTHER;
    s.key.leases = true;
    if (below)
        clave__lock_path_go_up(&s, sizeof leases_name - 1);
    return s;
}

bool clave__lock_is_place(const char *path)
{
    return clave__lock_path_of(NULL, path).kind != QUEUE_OTHER;
}

bool clave__lock_may_be_below(const char *path)
{
    return clave__queue_kind_of(clave__path_name(path)) == QUEUE_OTHER;
}

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
