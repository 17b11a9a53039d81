#include "cache_user.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "inspector.h"
#include "lib/cache_mirror.h"
#include "lib/mirror_disk.h"

struct cache_user {
    struct workload *load;
    clave_async_cache *cache;
    struct cache_mirror mirror;
    char path[PATH_SIZE];
    clave_cache_options o;
    struct mirror *on_disk; /* of /mirrored; NULL: none */
    struct mirror_disk *disk;
};

static void cache_user_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    static const char *const what[] = {
        [CLAVE_CACHE_CREATED] = "finds",     [CLAVE_CACHE_CHANGED] = "sees a change of",
        [CLAVE_CACHE_DELETED] = "misses",    [CLAVE_CACHE_INITIALIZED] = "has loaded",
        [CLAVE_CACHE_STALE] = "may be late", [CLAVE_CACHE_RESYNCED] = "has caught up with",
        [CLAVE_CACHE_FULL] = "is full of",   [CLAVE_CACHE_ENDED] = "ends with",
    };
    struct cache_user *u = arg;
    struct host *h = u->load->host;
    cache_mirror_on_event(cache, ev, &u->mirror);
    world_log(h->w, h->name, "its cache %s %s", what[ev->type], ev->path);
    if (u->mirror.fault[0])
        world_break(h->w, "a cache tells each change once and in order", "%s: %s", h->name,
                    u->mirror.fault);
    if (ev->type == CLAVE_CACHE_ENDED && ev->err != CLAVE_ECLOSED)
        world_break(h->w, "a cache follows as long as its client lives", "%s: it ended with %s",
                    h->name, clave_err_name(ev->err));
}

static bool is_at_or_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* What the servers keep for themselves changes without events. Some of the witnesses' znodes may
 * not be read: then a watch of one event is used up in silence, and before 3.6 there was nothing
 * else, but nothing was withheld either. */
static clave_cache_take take(const char *path, void *arg)
{
    const struct cache_user *u = arg;
    bool is_left_out = is_at_or_below(path, "/zookeeper") ||
                       (u->o.without_persistent_watch && is_at_or_below(path, "/w"));
    return is_left_out ? CLAVE_CACHE_TAKE_NOTHING : CLAVE_CACHE_TAKE_TREE;
}

/* What may be read of the witnesses' znodes changes without events. Elsewhere a refresh would hide
 * that an event was missed. */
static bool cache_user_needs_refresh(const struct cache_user *u)
{
    return strcmp(u->path, "/") == 0 && !u->o.without_persistent_watch && !u->o.single_node;
}

static void cache_user_draw(struct cache_user *u)
{
    struct workload *l = u->load;
    struct world *w = l->host->w;
    const struct lock_layout *at =
        workload_layout(l, (unsigned)world_between(w, 0, l->o->locks - 1));
    snprintf(u->path, sizeof u->path, "%s", world_chance(w, 600) ? "/" : at->path);
    u->o = (clave_cache_options)CLAVE_CACHE_OPTIONS_INIT;
    u->o.filter = take;
    u->o.filter_arg = u;
    u->o.without_data = world_chance(w, 300);
    u->o.window = (uint32_t)world_between(w, 1, world_chance(w, 500) ? 3 : 64);
    u->o.without_persistent_watch = world_chance(w, 350);
    u->o.single_node = world_chance(w, 100);
    u->o.refresh_ms = cache_user_needs_refresh(u) || world_chance(w, 200) ? 2000 : 0;
}

/* ---- the same on a disk ---------------------------------------------------------------------- */

static void on_news(void *arg)
{
    (void)arg; /* the disk is as slow as the process: cache_user_act */
}

/* A small tree that those who mirror it change, so that its nodes get children and lose them. */
static const char *const mirrored[] = {"/mirrored", "/mirrored/a", "/mirrored/a/b", "/mirrored/c"};

static void change_mirrored(struct cache_user *u)
{
    struct host *h = u->load->host;
    const char *path = mirrored[world_between(h->w, 0, 3)];
    const char *data = world_chance(h->w, 500) ? "x" : "yy";
    switch (world_between(h->w, 0, 2)) {
    case 0:
        (void)clave_async_create(h->client, path, data, strlen(data), NULL, NULL, NULL);
        break;
    case 1:
        (void)clave_async_set(h->client, path, data, strlen(data), -1, NULL, NULL);
        break;
    default:
        (void)clave_async_delete(h->client, path, -1, NULL, NULL);
        break;
    }
}

/* Memory may run out: then it is made anew, as the program is started anew. */
static void mirror_begin(struct cache_user *u)
{
    struct host *h = u->load->host;
    mirror_disk_free(u->disk);
    u->disk = NULL;
    if (clave__mirror_new(&u->on_disk, h->client, mirrored[0], on_news, u) != CLAVE_OK)
        return;
    u->disk = mirror_disk_new();
}

static void mirror_end(struct cache_user *u)
{
    clave__mirror_free(u->on_disk);
    u->on_disk = NULL;
}

/* Takes this many steps. */
static void mirror_act(struct cache_user *u, int64_t most)
{
    struct mirror_step s;
    while (most-- > 0 && clave__mirror_next(u->on_disk, &s))
        if (!mirror_disk_do(u->disk, &s))
            clave__mirror_again(u->on_disk, s.path);
    if (clave__mirror_err(u->on_disk) == CLAVE_ENOMEM) {
        mirror_end(u);
        mirror_begin(u);
    }
}

void cache_user_act(struct workload *l)
{
    struct cache_user *u = l->cache;
    if (!u || l->host->closing)
        return;
    if (u->on_disk)
        mirror_act(u, world_between(l->host->w, 0, 2));
    if (!l->day_is_over && world_chance(l->host->w, 20))
        change_mirrored(u);
}

/* When nobody changes anything any more, what is left is done at once. */
static void mirror_tell(struct cache_user *u, char *out, size_t cap)
{
    enum { ALL = 10000 };
    mirror_act(u, ALL);
    if (!u->on_disk || !clave__mirror_is_current(u->on_disk))
        snprintf(out, cap, "the mirror of %s is not current", mirrored[0]);
    else
        mirror_disk_compare(u->disk, clave__mirror_cache(u->on_disk), mirrored[0], out, cap);
}

/* ---- both ------------------------------------------------------------------------------------ */

void cache_user_begin(struct workload *l)
{
    struct cache_user *u = world_alloc(sizeof *u);
    u->load = l;
    cache_mirror_init(&u->mirror);
    u->mirror.goes_back = l->checker->restores;
    cache_user_draw(u);
    world_must(clave_async_cache_new(&u->cache, l->host->client, u->path, &u->o,
                                     cache_user_on_event, u) == CLAVE_OK);
    world_log(l->host->w, l->host->name, "has a cache of %s%s%s%s, %u at a time", u->path,
              u->o.single_node ? " alone" : "", u->o.without_data ? " without data" : "",
              u->o.without_persistent_watch ? ", a watch each" : "", (unsigned)u->o.window);
    l->cache = u;
    mirror_begin(u);
}

void cache_user_end(struct workload *l)
{
    struct cache_user *u = l->cache;
    if (!u)
        return;
    l->cache = NULL;
    mirror_end(u);
    mirror_disk_free(u->disk);
    clave_async_cache_free(u->cache);
    cache_mirror_fini(&u->mirror);
    free(u);
}

void cache_user_tell(const struct workload *l, char *out, size_t cap)
{
    struct cache_user *u = l->cache;
    out[0] = '\0';
    if (!u)
        return;
    if (!clave_async_cache_status_of(u->cache).current)
        snprintf(out, cap, "%s is not current", u->path);
    else if (cache_mirror_differs(&u->mirror, u->cache))
        snprintf(out, cap, "%s: %s", u->path, u->mirror.fault);
    else
        inspector_compare(l->checker->server, u->cache, u->path, &u->o, out, cap);
    if (!out[0] && u->disk)
        mirror_tell(u, out, cap);
}

bool cache_user_is_right(const struct workload *l)
{
    char why[200];
    cache_user_tell(l, why, sizeof why);
    return why[0] == '\0';
}
