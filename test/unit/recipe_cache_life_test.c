/* The cache of trees: its bounds, its queries, its life and its memory. What it tells of changes is
 * in recipe_cache_test.c. */
#include "lib/cache_play.h"
#include "lib/failmem.h"

static bool count_visit(const clave_cache_node *node, void *arg)
{
    size_t *n = arg;
    assert_true(node->stat.czxid > 0);
    return ++*n < 70000;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

TEST_BOTH(beyond_its_bound_a_cache_says_so)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    o.max_nodes = 4;
    play_init(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_open(&y, "/t", &o);
    play_create(&y, "/t/b");
    play_create(&y, "/t/c");
    assert_true(clave_async_cache_status_of(y.cache).complete);
    play_create(&y, "/t/d");
    play_create(&y, "/t/e");
    play_told(&y, "+/t +/t/a initialized +/t/b +/t/c full ");
    assert_int_equal(clave_async_cache_status_of(y.cache).count, 4);
    assert_false(clave_async_cache_status_of(y.cache).complete);
    play_delete(&y, "/t/a");
    play_delete(&y, "/t/b");
    assert_int_equal(y.m.resynced, 1);
    assert_int_equal(y.m.full, 1);
    assert_true(clave_async_cache_status_of(y.cache).complete);
    play_assert_equals_the_tree(&y);
}

TEST_BOTH(data_that_does_not_fit_is_left_out)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    clave_cache_node n;
    static char big[3000];
    memset(big, 'x', sizeof big - 1);
    o.max_bytes = 2500;
    play_init(&y, each);
    y.m.partial = true;
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_create(&y, "/t/b");
    play_open(&y, "/t", &o);
    play_set(&y, "/t/a", big);
    assert_int_equal(y.m.full, 1);
    assert_true(clave_async_cache_status_of(y.cache).bytes <= o.max_bytes);
    assert_int_equal(clave_async_cache_get(y.cache, "/t/a", &n), CLAVE_OK);
    assert_false(n.has_data);
    assert_int_equal(n.stat.data_length, 2999);
    play_set(&y, "/t/a", "small");
    assert_int_equal(clave_async_cache_get(y.cache, "/t/a", &n), CLAVE_OK);
    assert_true(n.has_data);
    assert_true(clave_async_cache_status_of(y.cache).complete);
}

TEST_BOTH(data_longer_than_max_data_is_not_kept)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    clave_cache_node n;
    o.max_data = 4;
    play_init(&y, each);
    play_create(&y, "/t");
    play_open(&y, "/t", &o);
    play_set(&y, "/t", "1234");
    assert_int_equal(clave_async_cache_get(y.cache, "/t", &n), CLAVE_OK);
    assert_true(n.has_data && n.len == 4);
    play_set(&y, "/t", "12345");
    assert_int_equal(clave_async_cache_get(y.cache, "/t", &n), CLAVE_OK);
    assert_false(n.has_data);
    assert_int_equal(y.m.full, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct freer {
    unsigned at, seen;
    bool freed;
};

static void free_at(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct freer *f = arg;
    (void)ev;
    assert_false(f->freed);
    if (++f->seen == f->at) {
        f->freed = true;
        clave_async_cache_free(cache);
    }
}

/* In each of its events, also with reads under way. */
TEST_BOTH(a_cache_may_be_freed_in_any_event)
{
    for (unsigned at = 1; at < 14; at++) {
        struct play y;
        struct freer f = {.at = at};
        clave_cache_options o = play_options();
        o.without_persistent_watch = each;
        play_init(&y, each);
        play_create(&y, "/t");
        play_create(&y, "/t/a");
        play_create(&y, "/t/b");
        play_create(&y, "/t/c");
        assert_int_equal(
            clave_async_cache_new(&y.cache, y.p->clients[USER].c, "/t", &o, free_at, &f), CLAVE_OK);
        memnet_settle(y.p);
        play_set(&y, "/t/a", "x");
        memnet_cut(y.p, USER);
        play_delete(&y, "/t/b");
        play_delete(&y, "/t/c");
        memnet_advance(y.p, 3000);
        play_create(&y, "/t/d");
        if (!f.freed)
            clave_async_cache_free(y.cache);
        memnet_settle(y.p);
        assert_int_equal(memnet_stats(y.p).watches, 0);
        cache_mirror_fini(&y.m);
        memnet_free(y.p);
    }
}

/* TestPersistentWatcher.testAfterClientClose (CURATOR-729): it ends with its client. */
TEST_PLAYED(a_cache_ends_with_its_client)
{
    play_create(y, "/t");
    play_open(y, "/t", NULL);
    clave_async_client_close(y->p->clients[USER].c, y->p->now);
    memnet_settle(y->p);
    assert_int_equal(y->m.ended, 1);
    assert_int_equal(y->m.why, CLAVE_ECLOSED);
    assert_int_equal(clave_async_cache_status_of(y->cache).count, 1);
}

static void visit_children(struct play *y, const char *path, clave_err err, size_t n)
{
    size_t visited = 0;
    assert_int_equal(clave_async_cache_children(y->cache, path, count_visit, &visited), err);
    assert_int_equal(visited, n);
}

TEST(a_cache_answers_queries)
{
    CLOSED_BY(play_end) struct play y;
    size_t visited = 0;
    play_init(&y, false);
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_create(&y, "/t/b");
    play_create(&y, "/t/b/c");
    play_open(&y, "/t", NULL);
    visit_children(&y, "/t", CLAVE_OK, 2);
    visit_children(&y, "/t/a", CLAVE_OK, 0);
    visit_children(&y, "/t/x", CLAVE_ENONODE, 0);
    assert_int_equal(clave_async_cache_walk(y.cache, "/t", count_visit, &visited), CLAVE_OK);
    assert_int_equal(visited, 4);
    assert_int_equal(clave_async_cache_walk(y.cache, "/t/b", count_visit, &visited), CLAVE_OK);
    assert_int_equal(visited, 6);
    assert_int_equal(clave_async_cache_walk(y.cache, "/u", count_visit, &visited), CLAVE_ENONODE);
    assert_true(clave_async_cache_status_of(y.cache).zxid > 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A load, changes, a reconnect, with the nth allocation of the user failing. */
static bool live_through_failure(bool each, size_t first, size_t fails)
{
    struct failmem mem;
    struct play y = {.each = each};
    clave_cache_options o = play_options();
    failmem_init(&mem);
    o.mem = &mem.mem;
    y.p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = PLAY_TIMEOUT});
    memnet_settle(y.p);
    cache_mirror_init(&y.m);
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_create(&y, "/t/a/b");
    failmem_arm(&mem, first, fails);
    o.without_persistent_watch = each;
    clave_err err = clave_async_cache_new(&y.cache, y.p->clients[USER].c, "/t", &o,
                                          cache_mirror_on_event, &y.m);
    if (err == CLAVE_OK) {
        memnet_settle(y.p);
        play_set(&y, "/t/a/b", "x");
        memnet_cut(y.p, USER);
        play_delete(&y, "/t/a/b");
        play_create(&y, "/t/c");
        memnet_advance(y.p, 4000);
        play_create(&y, "/t/d");
        memnet_advance(y.p, 4000);
        assert_true(clave_async_cache_status_of(y.cache).current);
        play_assert_equals_the_tree(&y);
        play_check(&y);
        clave_async_cache_free(y.cache);
        memnet_settle(y.p);
    } else {
        assert_int_equal(err, CLAVE_ENOMEM);
    }
    assert_int_equal(memnet_stats(y.p).watches, 0);
    bool failed = mem.failed;
    cache_mirror_fini(&y.m);
    memnet_free(y.p);
    assert_int_equal(mem.live, 0);
    return failed;
}

TEST_BOTH(any_allocation_may_fail)
{
    for (size_t fails = 1; fails <= 3; fails += 2) {
        size_t first = 1;
        while (live_through_failure(each, first, fails))
            first++;
        assert_true(first > 10);
    }
}

/* A reconnect, with the nth allocation of the client failing. */
static bool comes_back_through_failure(bool each, size_t first)
{
    struct failmem mem;
    struct play y = {.each = each};
    failmem_init(&mem);
    y.p = memnet_new(
        &(struct memnet_options){.clients = 2, .timeout_ms = PLAY_TIMEOUT, .mem = &mem.mem});
    memnet_settle(y.p);
    cache_mirror_init(&y.m);
    play_create(&y, "/t");
    play_open(&y, "/t", NULL);
    memnet_refuse(y.p, USER, true);
    play_set(&y, "/t", "x");
    memnet_refuse(y.p, USER, false);
    failmem_arm(&mem, first, 1);
    memnet_advance(y.p, 5000);
    bool failed = mem.failed;
    failmem_arm(&mem, 0, 0);
    memnet_advance(y.p, PLAY_TIMEOUT);
    play_told(&y, "+/t initialized stale ~/t=x resynced ");
    play_end(&y);
    return failed;
}

/* It is never said to be current before what happened meanwhile was told. */
TEST_BOTH(it_comes_back_when_memory_is_short)
{
    size_t first = 1;
    while (comes_back_through_failure(each, first))
        first++;
    assert_true(first > 3);
}

static void free_when_stale(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    bool *freed = arg;
    if (ev->type != CLAVE_CACHE_STALE || *freed)
        return;
    *freed = true;
    clave_async_cache_free(cache);
}

/* What could not be noted would be compared a second later: by nobody, any more. */
TEST_BOTH(a_cache_may_be_freed_when_memory_is_short)
{
    struct failmem mem;
    struct play y;
    bool freed = false;
    clave_cache_options o = play_options();
    failmem_init(&mem);
    o.mem = &mem.mem;
    o.without_persistent_watch = each;
    play_init(&y, each);
    play_create(&y, "/t");
    assert_int_equal(
        clave_async_cache_new(&y.cache, y.p->clients[USER].c, "/t", &o, free_when_stale, &freed),
        CLAVE_OK);
    memnet_settle(y.p);
    failmem_arm(&mem, 1, 2);
    play_create(&y, "/t/a");
    assert_true(freed);
    assert_int_equal(mem.live, 0);
    memnet_advance(y.p, 3000);
    assert_int_equal(mem.live, 0);
    assert_int_equal(memnet_stats(y.p).watches, 0);
    cache_mirror_fini(&y.m);
    memnet_free(y.p);
}

/* A refresh that has no memory to ask says STALE, and there is no next one. */
TEST(a_cache_may_be_freed_in_a_refresh)
{
    enum { REFRESH = 10000, NODES = 100 }; /* too many for a queue that is kept */
    struct failmem mem;
    struct play y;
    bool freed = false;
    clave_cache_options o = play_options();
    failmem_init(&mem);
    o.mem = &mem.mem;
    o.refresh_ms = REFRESH;
    play_init(&y, false);
    play_create(&y, "/t");
    play_create_many(&y, "/t", NODES);
    assert_int_equal(
        clave_async_cache_new(&y.cache, y.p->clients[USER].c, "/t", &o, free_when_stale, &freed),
        CLAVE_OK);
    memnet_settle(y.p);
    failmem_arm(&mem, 1, 1);
    memnet_advance(y.p, REFRESH);
    assert_true(freed);
    assert_int_equal(mem.live, 0);
    assert_int_equal(memnet_stats(y.p).watches, 0);
    cache_mirror_fini(&y.m);
    memnet_free(y.p);
}

TEST(an_invalid_cache_is_refused)
{
    struct play y;
    clave_cache_options o = play_options();
    play_init(&y, false);
    clave_async_client *c = y.p->clients[USER].c;
    assert_int_equal(clave_async_cache_new(&y.cache, c, "t", NULL, NULL, NULL), CLAVE_EPATH);
    assert_null(y.cache);
    assert_int_equal(clave_async_cache_new(&y.cache, c, NULL, NULL, NULL, NULL), CLAVE_EPATH);
    o.window = 70000;
    assert_int_equal(clave_async_cache_new(&y.cache, c, "/t", &o, NULL, NULL), CLAVE_EINVAL);
    clave_async_client_abandon(c, y.p->now);
    assert_int_equal(clave_async_cache_new(&y.cache, c, "/t", NULL, NULL, NULL), CLAVE_ECLOSED);
    clave_async_cache_free(NULL);
    cache_mirror_fini(&y.m);
    memnet_free(y.p);
}
