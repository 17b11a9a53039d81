#include "lib/cache_mirror.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cache_mirror_init(struct cache_mirror *m)
{
    *m = (struct cache_mirror){0};
}

static void mirror_node_clear(struct mirror_node *n)
{
    free(n->path);
    free(n->data);
}

void cache_mirror_fini(struct cache_mirror *m)
{
    for (size_t i = 0; i < m->count; i++)
        mirror_node_clear(&m->nodes[i]);
    free(m->nodes);
    *m = (struct cache_mirror){0};
}

__attribute__((format(printf, 2, 3))) static void mirror_fault(struct cache_mirror *m,
                                                               const char *fmt, ...)
{
    va_list args;
    if (m->fault[0])
        return;
    va_start(args, fmt);
    vsnprintf(m->fault, sizeof m->fault, fmt, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void mirror_note(struct cache_mirror *m,
                                                              const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(m->story + m->nstory, sizeof m->story - m->nstory, fmt, args);
    va_end(args);
    m->nstory += (size_t)n < sizeof m->story - m->nstory ? (size_t)n : 0;
    m->story[m->nstory] = '\0';
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct mirror_node *mirror_find(const struct cache_mirror *m, const char *path)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->nodes[i].path, path) == 0)
            return &m->nodes[i];
    return NULL;
}

const struct mirror_node *cache_mirror_find(const struct cache_mirror *m, const char *path)
{
    return mirror_find(m, path);
}

static bool is_below(const char *path, const char *top)
{
    size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    return strncmp(path, top, n) == 0 && path[n] == '/' && path[n + 1] != '\0';
}

static void mirror_set(struct mirror_node *n, const clave_cache_node *now)
{
    free(n->data);
    n->stat = now->stat;
    n->has_data = now->has_data;
    n->len = now->len;
    n->data = now->data ? malloc(now->len + 1) : NULL;
    if (n->data)
        memcpy(n->data, now->data, now->len);
}

static bool is_same_data(const struct mirror_node *n, const clave_cache_node *now)
{
    if (n->has_data != now->has_data || n->len != now->len || !n->data != !now->data)
        return false;
    return n->len == 0 || memcmp(n->data, now->data, n->len) == 0;
}

static char *copy_of(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    if (!copy)
        abort();
    return memcpy(copy, text, n);
}

static void mirror_add(struct cache_mirror *m, const clave_cache_node *now)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 16;
        m->nodes = realloc(m->nodes, m->cap * sizeof *m->nodes);
        if (!m->nodes)
            abort();
    }
    struct mirror_node *n = &m->nodes[m->count++];
    *n = (struct mirror_node){.path = copy_of(now->path)};
    mirror_set(n, now);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void mirror_created(struct cache_mirror *m, const clave_cache_event *ev, const char *root)
{
    const char *slash = strrchr(ev->path, '/');
    char up[1024];
    snprintf(up, sizeof up, "%.*s", slash == ev->path ? 1 : (int)(slash - ev->path), ev->path);
    if (cache_mirror_find(m, ev->path))
        mirror_fault(m, "%s is CREATED twice", ev->path);
    else if (strcmp(ev->path, root) != 0 && !cache_mirror_find(m, up))
        mirror_fault(m, "%s is CREATED before its parent", ev->path);
    else
        mirror_add(m, ev->now);
}

static void mirror_changed(struct cache_mirror *m, const clave_cache_event *ev)
{
    struct mirror_node *n = mirror_find(m, ev->path);
    if (!n) {
        mirror_fault(m, "%s is CHANGED, and is not there", ev->path);
        return;
    }
    if (n->stat.czxid != ev->now->stat.czxid || n->stat.czxid != ev->was->stat.czxid)
        mirror_fault(m, "%s is CHANGED to another node", ev->path);
    if (n->stat.mzxid != ev->was->stat.mzxid || !is_same_data(n, ev->was))
        mirror_fault(m, "%s is CHANGED from what it was not", ev->path);
    if (ev->now->stat.mzxid <= n->stat.mzxid && !m->partial && !m->goes_back)
        mirror_fault(m, "%s is CHANGED from 0x%llx to 0x%llx", ev->path,
                     (unsigned long long)n->stat.mzxid, (unsigned long long)ev->now->stat.mzxid);
    mirror_set(n, ev->now);
}

static void mirror_deleted(struct cache_mirror *m, const clave_cache_event *ev)
{
    struct mirror_node *n = mirror_find(m, ev->path);
    if (!n) {
        mirror_fault(m, "%s is DELETED, and is not there", ev->path);
        return;
    }
    if (n->stat.mzxid != ev->was->stat.mzxid || n->stat.czxid != ev->was->stat.czxid)
        mirror_fault(m, "%s is DELETED as what it was not", ev->path);
    for (size_t i = 0; i < m->count; i++)
        if (is_below(m->nodes[i].path, ev->path))
            mirror_fault(m, "%s is DELETED before %s", ev->path, m->nodes[i].path);
    mirror_node_clear(n);
    *n = m->nodes[--m->count];
}

static void mirror_take_node(struct cache_mirror *m, const clave_async_cache *cache,
                             const clave_cache_event *ev)
{
    clave_cache_node known;
    bool is_there = clave_async_cache_get(cache, ev->path, &known) == CLAVE_OK;
    if (is_there != (ev->type != CLAVE_CACHE_DELETED))
        mirror_fault(m, "the cache does not answer as the event of %s said", ev->path);
    if (ev->now && (!is_there || known.stat.mzxid != ev->now->stat.mzxid))
        mirror_fault(m, "the cache has another %s than the event said", ev->path);
}

void cache_mirror_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct cache_mirror *m = arg;
    static const char signs[] = {'+', '~', '-'};
    if (ev->type <= CLAVE_CACHE_DELETED) {
        const clave_cache_node *now = ev->now;
        mirror_note(m, "%c%s%s%.*s ", signs[ev->type], ev->path, now && now->len ? "=" : "",
                    now && now->len < 40 ? (int)now->len : 0,
                    now && now->data ? (const char *)now->data : "");
        mirror_take_node(m, cache, ev);
    }
    switch (ev->type) {
    case CLAVE_CACHE_CREATED:
        m->created++;
        /* The first node of all is the cache's own. */
        mirror_created(m, ev, m->count ? m->nodes[0].path : ev->path);
        break;
    case CLAVE_CACHE_CHANGED:
        m->changed++;
        mirror_changed(m, ev);
        break;
    case CLAVE_CACHE_DELETED:
        m->deleted++;
        mirror_deleted(m, ev);
        break;
    case CLAVE_CACHE_INITIALIZED:
        m->initialized++;
        mirror_note(m, "initialized ");
        break;
    case CLAVE_CACHE_STALE:
        m->stale++;
        mirror_note(m, "stale ");
        break;
    case CLAVE_CACHE_RESYNCED:
        m->resynced++;
        mirror_note(m, "resynced ");
        break;
    case CLAVE_CACHE_FULL:
        m->full++;
        mirror_note(m, "full ");
        break;
    case CLAVE_CACHE_ENDED:
        m->ended++;
        m->why = ev->err;
        mirror_note(m, "ended ");
        break;
    }
    if (m->ended && ev->type != CLAVE_CACHE_ENDED)
        mirror_fault(m, "an event came after the last");
}

bool cache_mirror_differs(struct cache_mirror *m, const clave_async_cache *cache)
{
    if (m->count != clave_async_cache_status_of(cache).count)
        mirror_fault(m, "the cache has %zu nodes, its events told of %zu",
                     clave_async_cache_status_of(cache).count, m->count);
    for (size_t i = 0; i < m->count; i++) {
        const struct mirror_node *n = &m->nodes[i];
        clave_cache_node known;
        if (clave_async_cache_get(cache, n->path, &known) != CLAVE_OK)
            mirror_fault(m, "the cache has no %s", n->path);
        else if (known.stat.czxid != n->stat.czxid || known.stat.mzxid != n->stat.mzxid ||
                 !is_same_data(n, &known))
            mirror_fault(m, "the cache has another %s than its events told of", n->path);
    }
    return m->fault[0] != '\0';
}
