#include "lib/cache_play.h"

#include "lib/mutex_owner.h"
#include "lib/unit.h"

void play_init(struct play *y, bool each)
{
    *y = (struct play){.each = each};
    y->p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = PLAY_TIMEOUT});
    memnet_settle(y->p);
    cache_mirror_init(&y->m);
}

void play_begin(struct play *y, const char *path, const clave_cache_options *o)
{
    clave_cache_options options = CLAVE_CACHE_OPTIONS_INIT;
    if (o)
        options = *o;
    options.without_persistent_watch = y->each;
    assert_int_equal(clave_async_cache_new(&y->cache, y->p->clients[USER].c, path, &options,
                                           cache_mirror_on_event, &y->m),
                     CLAVE_OK);
}

void play_open(struct play *y, const char *path, const clave_cache_options *o)
{
    play_begin(y, path, o);
    memnet_settle(y->p);
}

void play_check(struct play *y)
{
    if (cache_mirror_differs(&y->m, y->cache))
        fail_msg("%s\n%s", y->m.fault, y->m.story);
}

void play_end(struct play *y)
{
    play_check(y);
    clave_async_cache_free(y->cache);
    memnet_settle(y->p);
    assert_int_equal(memnet_stats(y->p).watches, 0);
    cache_mirror_fini(&y->m);
    memnet_free(y->p);
}

void play_create(struct play *y, const char *path)
{
    assert_int_equal(memnet_create(y->p, ACTOR, path), CLAVE_OK);
    memnet_settle(y->p);
}

void play_set(struct play *y, const char *path, const char *text)
{
    assert_int_equal(memnet_set(y->p, ACTOR, path, text), CLAVE_OK);
    memnet_settle(y->p);
}

void play_delete(struct play *y, const char *path)
{
    assert_int_equal(memnet_delete(y->p, ACTOR, path), CLAVE_OK);
    memnet_settle(y->p);
}

/* What was told since the last time. */
void play_told(struct play *y, const char *story)
{
    if (strcmp(y->m.story, story) != 0)
        fail_msg("told \"%s\" instead of \"%s\"", y->m.story, story);
    y->m.nstory = 0;
    y->m.story[0] = '\0';
    play_check(y);
}

clave_cache_options play_options(void)
{
    return (clave_cache_options)CLAVE_CACHE_OPTIONS_INIT;
}

void play_create_many(struct play *y, const char *dir, unsigned n)
{
    char path[64];
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%05u", dir, i);
        clave_err err = clave_async_create(y->p->clients[ACTOR].c, path, "", 0, NULL, NULL, NULL);
        assert_int_equal(err, CLAVE_OK);
        if (i % 500 == 0)
            memnet_settle(y->p);
    }
    memnet_settle(y->p);
}

/* The truth: another cache, made when all is quiet. */
void play_assert_equals_the_tree(struct play *y)
{
    clave_async_cache *fresh;
    clave_cache_node a, b;
    struct cache_mirror m;
    cache_mirror_init(&m);
    assert_int_equal(clave_async_cache_new(&fresh, y->p->clients[ACTOR].c, "/t", NULL,
                                           cache_mirror_on_event, &m),
                     CLAVE_OK);
    memnet_settle(y->p);
    assert_int_equal(m.initialized, 1);
    assert_int_equal(m.count, y->m.count);
    for (size_t i = 0; i < m.count; i++) {
        const char *path = m.nodes[i].path;
        assert_int_equal(clave_async_cache_get(y->cache, path, &a), CLAVE_OK);
        assert_int_equal(clave_async_cache_get(fresh, path, &b), CLAVE_OK);
        assert_int_equal(a.stat.czxid, b.stat.czxid);
        assert_int_equal(a.stat.mzxid, b.stat.mzxid);
        assert_int_equal(a.stat.num_children, b.stat.num_children);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.data ? a.data : "", b.data ? b.data : "", a.len);
    }
    clave_async_cache_free(fresh);
    cache_mirror_fini(&m);
    memnet_settle(y->p);
}
