/* mirror.c - see mirror.h. The places that may differ from the tree are a set, in the order of
 * paths. An event adds the node's place, and, as a node that comes or goes may turn its parent from
 * a file into a directory or back, the parent's. What has to be there is looked up in the cache
 * only when the step is taken, so a place that changes a hundred times meanwhile is one step. */
#include "recipe/mirror.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/ordered_set.h"
#include "base/path.h"
#include "client/client_for_recipes.h"

enum { MIRROR_NAME_MAX = 255 };

struct mirror_place {
    struct ordered_node node;
    char path[];
};

struct mirror {
    clave_async_client *client;
    struct clave_mem mem;
    clave_async_cache *cache; /* NULL: it has ended */
    mirror_changed *changed;
    void *arg;
    struct ordered places;      /* that may differ */
    struct mirror_place *taken; /* the place of the newest step */
    struct buf file;            /* its name */
    bool loaded;
    clave_err err;
    char path[];
};

static struct mirror_place *mirror_place_of(const struct ordered_node *n)
{
    return n ? ORDERED_ENTRY(n, struct mirror_place, node) : NULL;
}

static int mirror_compare(const void *key, const struct ordered_node *n)
{
    return strcmp(key, ORDERED_ENTRY(n, const struct mirror_place, node)->path);
}

static void mirror_end(struct mirror *m, clave_err err)
{
    if (m->err == CLAVE_OK)
        m->err = err;
}

/* ---- which places ---------------------------------------------------------------------------- */

static void mirror_add(struct mirror *m, const char *path, size_t n)
{
    struct mirror_place *p = clave__mem_zalloc(&m->mem, sizeof *p + n + 1);
    if (!p) {
        mirror_end(m, CLAVE_ENOMEM);
        return;
    }
    memcpy(p->path, path, n);
    if (clave__ordered_find(&m->places, p->path))
        clave__mem_free(&m->mem, p);
    else
        clave__ordered_insert(&m->places, &p->node, p->path, 0);
}

static bool mirror_is_root(const struct mirror *m, const char *path)
{
    return strcmp(path, m->path) == 0;
}

static void mirror_add_with_parent(struct mirror *m, const char *path)
{
    size_t n = strlen(path);
    mirror_add(m, path, n);
    if (!mirror_is_root(m, path))
        mirror_add(m, path, clave__path_parent_len(path, n));
}

static void mirror_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct mirror *m = arg;
    (void)cache;
    switch (ev->type) {
    case CLAVE_CACHE_CREATED:
    case CLAVE_CACHE_DELETED:
        mirror_add_with_parent(m, ev->path);
        break;
    case CLAVE_CACHE_CHANGED:
        mirror_add(m, ev->path, strlen(ev->path));
        break;
    case CLAVE_CACHE_INITIALIZED:
        m->loaded = true;
        mirror_add(m, m->path, strlen(m->path)); /* the directory is there without a node, too */
        break;
    case CLAVE_CACHE_FULL: /* no bound was set, but a list of children may be too long */
        mirror_end(m, CLAVE_ETOOBIG);
        break;
    case CLAVE_CACHE_ENDED:
        mirror_end(m, ev->err);
        break;
    case CLAVE_CACHE_STALE:
    case CLAVE_CACHE_RESYNCED:
        break;
    }
    m->changed(m->arg);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

clave_err clave__mirror_new(struct mirror **out, clave_async_client *c, const char *path,
                            mirror_changed *changed, void *arg)
{
    size_t n = strlen(path);
    struct mirror *m = clave__mem_zalloc(clave__client_mem(c), sizeof *m + n + 1);
    *out = NULL;
    if (!m)
        return CLAVE_ENOMEM;
    m->client = c;
    m->mem = *clave__client_mem(c);
    m->changed = changed;
    m->arg = arg;
    memcpy(m->path, path, n);
    clave__client_ref(c);
    clave__buf_init(&m->file, &m->mem, SIZE_MAX);
    clave__ordered_init(&m->places, mirror_compare, clave__client_hash_seed(c));
    clave_err err = clave_async_cache_new(&m->cache, c, path, NULL, mirror_on_event, m);
    if (err == CLAVE_OK)
        *out = m;
    else
        clave__mirror_free(m);
    return err;
}

void clave__mirror_free(struct mirror *m)
{
    if (!m)
        return;
    clave_async_client *c = m->client;
    struct clave_mem mem = m->mem;
    clave_async_cache_free(m->cache);
    for (struct ordered_node *n; (n = clave__ordered_first(&m->places, ORDERED_ANY));) {
        clave__ordered_remove(&m->places, mirror_place_of(n)->path);
        clave__mem_free(&mem, mirror_place_of(n));
    }
    clave__mem_free(&mem, m->taken);
    clave__buf_fini(&m->file);
    clave__mem_free(&mem, m);
    clave__client_unref(c);
}

clave_err clave__mirror_err(const struct mirror *m)
{
    return m->err;
}

bool clave__mirror_is_current(const struct mirror *m)
{
    return m->err == CLAVE_OK && clave_async_cache_status_of(m->cache).current;
}

const clave_async_cache *clave__mirror_cache(const struct mirror *m)
{
    return m->cache;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Writes the name of the place. *fits: no part of it is too long. ENOMEM. */
static clave_err mirror_name(struct mirror *m, const char *path, bool *fits)
{
    const char *p = path + (m->path[1] ? strlen(m->path) : 0);
    size_t part = 0;
    clave_err err = CLAVE_OK;
    clave__buf_clear(&m->file);
    *fits = true;
    for (p += *p == '/'; *p && err == CLAVE_OK; p++) {
        size_t n = *p == '%' ? 3 : 1;
        part = *p == '/' ? 0 : part + n;
        *fits = *fits && part <= MIRROR_NAME_MAX;
        err = clave__buf_append(&m->file, *p == '%' ? "%25" : p, n);
    }
    return err == CLAVE_OK ? clave__buf_append(&m->file, "", 1) : err;
}

/* True if the parent of a place exists. Otherwise the place is removed, or left out, together with
 * its parent. */
static bool mirror_has_parent(const struct mirror *m, char *path)
{
    clave_cache_node parent;
    size_t n = clave__path_parent_len(path, strlen(path));
    char cut = path[n];
    path[n] = '\0';
    bool has = clave_async_cache_get(m->cache, path, &parent) == CLAVE_OK && !parent.unreadable;
    path[n] = cut;
    return has;
}

static bool mirror_has_seen_one(const clave_cache_node *child, void *arg)
{
    (void)child;
    *(bool *)arg = true;
    return false;
}

/* A node's num_children may count children that the cache has not seen yet, and will never see if
 * they go before it lists them. So this asks the cache for the children that it has seen: those
 * come and go with an event, at which the place is looked at again. ENOMEM: it is unknown whether
 * there are children, so nothing may be removed. */
static clave_err mirror_has_children(const struct mirror *m, const char *path, bool *has)
{
    *has = false;
    return clave_async_cache_children(m->cache, path, mirror_has_seen_one, has);
}

/* ENOMEM. */
static clave_err mirror_look(const struct mirror *m, char *path, bool fits, struct mirror_step *out)
{
    clave_cache_node n;
    bool root = mirror_is_root(m, path);
    bool there = clave_async_cache_get(m->cache, path, &n) == CLAVE_OK;
    if (root)
        out->kind = MIRROR_DIRECTORY;
    bool has_children;
    if (!there || (!root && !mirror_has_parent(m, path)))
        return CLAVE_OK;
    if (n.unreadable || !n.has_data) {
        out->fault = n.unreadable ? "may not be read" : "could not be read";
        return CLAVE_OK;
    }
    if (!fits) {
        out->fault = "has a name of more than 255 bytes";
        return CLAVE_OK;
    }
    if (mirror_has_children(m, path, &has_children) != CLAVE_OK)
        return CLAVE_ENOMEM;
    out->kind = root || has_children ? MIRROR_DIRECTORY : MIRROR_FILE;
    out->data = n.data ? n.data : "";
    out->len = n.len;
    out->has_data = n.len > 0;
    return CLAVE_OK;
}

bool clave__mirror_next(struct mirror *m, struct mirror_step *out)
{
    struct mirror_place *p = mirror_place_of(clave__ordered_first(&m->places, ORDERED_ANY));
    bool fits;
    if (!m->loaded || m->err != CLAVE_OK || !p)
        return false;
    if (mirror_name(m, p->path, &fits) != CLAVE_OK) {
        mirror_end(m, CLAVE_ENOMEM);
        return false;
    }
    clave__ordered_remove(&m->places, p->path);
    clave__mem_free(&m->mem, m->taken);
    m->taken = p;
    *out = (struct mirror_step){.path = p->path, .file = (const char *)clave__buf_bytes(&m->file)};
    if (mirror_look(m, p->path, fits, out) != CLAVE_OK) {
        mirror_end(m, CLAVE_ENOMEM);
        return false;
    }
    return true;
}

void clave__mirror_again(struct mirror *m, const char *path)
{
    mirror_add_with_parent(m, path);
}
