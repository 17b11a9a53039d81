/* cache_test.c - a cache of a tree for threads: clave/cache.h. What a cache promises is tested by
 * test/unit/recipe_cache_test.c and in the simulated world. close_first_test.c frees it behind its
 * session. */
#include "rig.h"

#include "clave/testserver.h"

enum { PATIENCE = RIG_PATIENCE_MS, EVENT_TYPES = CLAVE_CACHE_ENDED + 1 };

/* ---- the events, counted ------------------------------------------------------------------- */

struct record {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned seen[EVENT_TYPES];
    clave_err ended;
};
#define RECORD_INIT                                                                                \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                    \
    }

static void record_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct record *r = arg;
    (void)cache;
    pthread_mutex_lock(&r->mutex);
    r->seen[ev->type]++;
    if (ev->type == CLAVE_CACHE_ENDED)
        r->ended = ev->err;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

/* Until there were `n` events of the type, however long: the test has a time limit. */
static void await_event(struct record *r, clave_cache_event_type type, unsigned n)
{
    pthread_mutex_lock(&r->mutex);
    while (r->seen[type] < n)
        pthread_cond_wait(&r->changed, &r->mutex);
    pthread_mutex_unlock(&r->mutex);
}

/* ---- a server with a small tree, and a session --------------------------------------------- */

static clave_test_server *server;
static clave_client *session;

static void make(const char *path, const char *data)
{
    assert_int_equal(clave_create(session, path, data, strlen(data), NULL, PATIENCE, NULL),
                     CLAVE_OK);
}

static void change(clave_client *s, const char *path, const char *data)
{
    assert_int_equal(clave_set(s, path, data, strlen(data), -1, PATIENCE, NULL), CLAVE_OK);
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(clave_test_server_new(&server, NULL), CLAVE_OK);
    session = rig_session(clave_test_server_connect_string(server));
    make("/t", "top");
    make("/t/a", "1");
    make("/t/b", "2");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    clave_client_close(session, 5000);
    clave_test_server_free(server);
    return 0;
}

static clave_cache *load(const clave_cache_options *o, struct record *r)
{
    clave_cache *cache;
    assert_int_equal(clave_cache_new(&cache, session, "/t", o, r ? record_event : NULL, r),
                     CLAVE_OK);
    assert_int_equal(clave_cache_wait(cache, PATIENCE), CLAVE_OK);
    return cache;
}

static void expect_data(clave_cache *cache, const char *path, const char *data)
{
    clave_reply *r;
    assert_int_equal(clave_cache_get(cache, path, &r), CLAVE_OK);
    assert_true(r->has_stat);
    assert_int_equal(r->stat.data_length, strlen(data));
    assert_int_equal(r->len, strlen(data));
    assert_memory_equal(r->data, data, r->len);
    clave_reply_free(r);
}

static void expect_none(clave_cache *cache, const char *path)
{
    clave_reply *r;
    assert_int_equal(clave_cache_get(cache, path, &r), CLAVE_ENONODE);
    assert_null(r);
    assert_int_equal(clave_cache_children(cache, path, &r), CLAVE_ENONODE);
    assert_null(r);
}

/* ---- queries ------------------------------------------------------------------------------- */

static bool count_visit(const clave_cache_node *node, void *arg)
{
    (void)node;
    return ++*(unsigned *)arg < 2;
}

TEST_WITH(answers_from_memory, set_up, tear_down)
{
    clave_cache *cache = load(NULL, NULL);
    clave_reply *r;
    unsigned visits = 0;
    expect_data(cache, "/t", "top");
    expect_data(cache, "/t/a", "1");
    expect_none(cache, "/t/c");
    assert_int_equal(clave_cache_children(cache, "/t", &r), CLAVE_OK);
    assert_int_equal(r->nnames, 2);
    assert_int_equal(r->stat.num_children, 2);
    bool in_order = strcmp(r->names[0], "a") == 0;
    assert_string_equal(r->names[in_order ? 0 : 1], "a");
    assert_string_equal(r->names[in_order ? 1 : 0], "b");
    clave_reply_free(r);
    assert_int_equal(clave_cache_children(cache, "/t/a", &r), CLAVE_OK);
    assert_int_equal(r->nnames, 0);
    assert_true(r->has_stat);
    clave_reply_free(r);
    assert_int_equal(clave_cache_walk(cache, "/t", count_visit, &visits), CLAVE_OK);
    assert_int_equal(visits, 2); /* it ended the walk */
    assert_int_equal(clave_cache_walk(cache, "/none", count_visit, &visits), CLAVE_ENONODE);
    assert_int_equal(clave_cache_status_of(cache).count, 3);
    assert_true(clave_cache_status_of(cache).bytes > 0);
    assert_true(clave_cache_status_of(cache).zxid > 0);
    assert_true(clave_cache_status_of(cache).current);
    assert_true(clave_cache_status_of(cache).complete);
    clave_cache_free(cache);
    clave_cache_free(NULL);
}

TEST_WITH(what_cannot_be_made, set_up, tear_down)
{
    clave_cache *cache;
    const clave_cache_options wide = {.size = sizeof wide, .window = UINT32_MAX};
    assert_int_equal(clave_cache_new(&cache, session, "t", NULL, NULL, NULL), CLAVE_EPATH);
    assert_null(cache);
    assert_int_equal(clave_cache_new(&cache, session, "/t", &wide, NULL, NULL), CLAVE_EINVAL);
    assert_null(cache);
}

TEST_WITH(what_does_not_fit_is_left_out, set_up, tear_down)
{
    struct record r = RECORD_INIT;
    const clave_cache_options o = {.size = sizeof o, .max_nodes = 2};
    clave_cache *cache = load(&o, &r);
    assert_false(clave_cache_status_of(cache).complete);
    assert_int_equal(clave_cache_status_of(cache).count, 2);
    assert_int_equal(r.seen[CLAVE_CACHE_FULL], 1);
    clave_cache_free(cache);
}

TEST_WITH(data_that_is_not_kept_has_a_length, set_up, tear_down)
{
    const clave_cache_options o = {.size = sizeof o, .without_data = true};
    clave_cache *cache = load(&o, NULL);
    clave_reply *r;
    assert_int_equal(clave_cache_get(cache, "/t", &r), CLAVE_OK);
    assert_null(r->data);
    assert_int_equal(r->stat.data_length, 3);
    clave_reply_free(r);
    clave_cache_free(cache);
}

/* ---- changes ------------------------------------------------------------------------------- */

TEST_WITH(follows_what_happens, set_up, tear_down)
{
    struct record r = RECORD_INIT;
    clave_cache *cache = load(NULL, &r);
    await_event(&r, CLAVE_CACHE_INITIALIZED, 1);
    assert_int_equal(r.seen[CLAVE_CACHE_CREATED], 3);
    change(session, "/t/a", "changed");
    await_event(&r, CLAVE_CACHE_CHANGED, 1);
    expect_data(cache, "/t/a", "changed");
    make("/t/a/new", "n");
    await_event(&r, CLAVE_CACHE_CREATED, 4);
    expect_data(cache, "/t/a/new", "n");
    assert_int_equal(clave_delete(session, "/t/b", -1, PATIENCE), CLAVE_OK);
    await_event(&r, CLAVE_CACHE_DELETED, 1);
    expect_none(cache, "/t/b");
    assert_int_equal(clave_cache_status_of(cache).count, 3);
    clave_cache_free(cache);
    assert_int_equal(r.seen[CLAVE_CACHE_ENDED], 0);
}

TEST_WITH(is_stale_without_a_server_and_current_again_with_it, set_up, tear_down)
{
    struct record r = RECORD_INIT;
    clave_cache *cache = load(NULL, &r);
    assert_int_equal(clave_test_server_stop(server), CLAVE_OK);
    await_event(&r, CLAVE_CACHE_STALE, 1);
    assert_false(clave_cache_status_of(cache).current);
    assert_int_equal(clave_cache_wait(cache, 20), CLAVE_ETIMEDOUT);
    expect_data(cache, "/t/a", "1"); /* what is known */
    assert_int_equal(clave_test_server_start(server), CLAVE_OK);
    assert_int_equal(clave_cache_wait(cache, PATIENCE), CLAVE_OK);
    await_event(&r, CLAVE_CACHE_RESYNCED, 1);
    assert_true(clave_cache_status_of(cache).current);
    expect_data(cache, "/t/a", "1");
    clave_cache_free(cache);
}

TEST_WITH(learns_what_happened_while_its_session_was_killed, set_up, tear_down)
{
    struct record r = RECORD_INIT;
    clave_cache *cache = load(NULL, &r);
    clave_client *other = rig_session(clave_test_server_connect_string(server));
    const int64_t former = clave_client_id(session);
    assert_int_equal(clave_test_server_expire(server, former), CLAVE_OK);
    change(other, "/t/a", "meanwhile");
    await_event(&r, CLAVE_CACHE_RESYNCED, 1);
    assert_int_equal(r.seen[CLAVE_CACHE_STALE], 1);
    assert_int_equal(clave_cache_wait(cache, PATIENCE), CLAVE_OK);
    await_event(&r, CLAVE_CACHE_CHANGED, 1);
    expect_data(cache, "/t/a", "meanwhile");
    assert_true(clave_client_id(session) != former);
    clave_cache_free(cache);
    clave_client_close(other, 5000);
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { READERS = 2, LAST = 200 };

struct reader {
    pthread_t thread;
    clave_cache *cache;
    unsigned odd; /* answers that are none of those expected */
};

static long number_of(const clave_reply *r)
{
    char text[16] = "";
    memcpy(text, r->data, r->len < sizeof text ? r->len : sizeof text - 1);
    return strtol(text, NULL, 10);
}

/* Reads until the last value is there. */
static void *read_until_last(void *arg)
{
    struct reader *me = arg;
    for (long last = 0, now; last < LAST; last = now) {
        clave_reply *r;
        now = last;
        clave_err err = clave_cache_get(me->cache, "/t/a", &r);
        if (err == CLAVE_OK)
            now = number_of(r);
        me->odd += err != CLAVE_OK || now < last;
        clave_reply_free(r);
        if (err != CLAVE_OK)
            break;
    }
    return NULL;
}

TEST_WITH(threads_read_while_it_changes, set_up, tear_down)
{
    clave_cache *cache = load(NULL, NULL);
    struct reader readers[READERS];
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.cache = cache};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_until_last, &readers[i]), 0);
    }
    for (int i = 2; i <= LAST; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        change(session, "/t/a", text);
    }
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].odd, 0);
    }
    clave_cache_free(cache);
}

struct waiting {
    clave_cache *cache;
    clave_err err;
};

static void *wait_for_ever(void *arg)
{
    struct waiting *w = arg;
    w->err = clave_cache_wait(w->cache, -1);
    return NULL;
}

TEST_WITH(a_wait_ends_with_the_session, set_up, tear_down)
{
    struct record r = RECORD_INIT;
    struct waiting w = {.err = CLAVE_OK};
    clave_client *s;
    pthread_t thread;
    /* Nobody listens there. */
    assert_int_equal(clave_client_open(&s, NULL, "127.0.0.1:1", NULL), CLAVE_OK);
    assert_int_equal(clave_cache_new(&w.cache, s, "/t", NULL, record_event, &r), CLAVE_OK);
    assert_int_equal(clave_cache_wait(w.cache, 20), CLAVE_EUNREACHABLE);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &w), 0);
    clave_client_close(s, 5000); /* whether it waits already or not */
    pthread_join(thread, NULL);
    assert_int_equal(w.err, CLAVE_ECLOSED);
    assert_int_equal(r.seen[CLAVE_CACHE_ENDED], 1);
    assert_int_equal(r.ended, CLAVE_ECLOSED);
    clave_cache_free(w.cache);
}

/* ---- callbacks ----------------------------------------------------------------------------- */

struct inside {
    clave_cache *cache;
    struct record record;
    clave_err wait, get;
    size_t count;
};

/* At the change: asks, and frees the cache. */
static void ask_and_free(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct inside *in = arg;
    if (ev->type == CLAVE_CACHE_CHANGED) {
        clave_reply *r;
        in->wait = clave_cache_wait(in->cache, 1000);
        in->get = clave_cache_get(in->cache, ev->path, &r);
        in->count = clave_cache_status_of(in->cache).count;
        clave_reply_free(r);
        clave_cache_free(in->cache);
    }
    record_event(cache, ev, &in->record);
}

TEST_WITH(a_callback_asks_and_frees, set_up, tear_down)
{
    struct inside in = {.record = RECORD_INIT};
    assert_int_equal(clave_cache_new(&in.cache, session, "/t", NULL, ask_and_free, &in), CLAVE_OK);
    assert_int_equal(clave_cache_wait(in.cache, PATIENCE), CLAVE_OK);
    change(session, "/t/a", "x");
    await_event(&in.record, CLAVE_CACHE_CHANGED, 1);
    assert_int_equal(in.wait, CLAVE_ELOOPTHREAD);
    assert_int_equal(in.get, CLAVE_OK);
    assert_int_equal(in.count, 3);
}
