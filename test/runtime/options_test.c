/* options_test.c - one rule for every options struct of the API, at every call that takes one
 * (clave/options.h). tools/check-api sees to it that no struct and no call is missing here. */
#include "rig.h"

#include "base/sized_options.h"
#include "clave/testserver.h"
#include "recipe/contender/contender.h"
#include "recipe/contender/contender_grant.h"

enum { ROOM = OPTIONS_SIZE_MAX + 64 };

static clave_async_client *client; /* never started */
static clave_client *session;      /* connected: no fault of its own takes the place of a text */
static clave_mutex *lock;          /* of that session, held under: */
static clave_grant *grant;
static clave_test_server *test_server;

/* ---- valid options -------------------------------------------------------------------------- */

static void no_result(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c, (void)res, (void)arg;
}

static void no_once(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o, (void)err, (void)former, (void)arg;
}

static void no_delay(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d, (void)err, (void)arg;
}

static void no_leadership(clave_selector *s, void *arg)
{
    (void)s, (void)arg;
}

static const clave_client_options of_client = {.size = sizeof of_client, .hosts = "h", .seed = 1};
static const clave_client_options of_session = CLAVE_CLIENT_OPTIONS_INIT;
static const clave_create_options of_create = CLAVE_CREATE_OPTIONS_INIT;
static const clave_mutex_options of_mutex = CLAVE_MUTEX_OPTIONS_INIT;
static const clave_latch_options of_latch = CLAVE_LATCH_OPTIONS_INIT;
static const clave_multilock_options of_multilock = CLAVE_MULTILOCK_OPTIONS_INIT;
static const clave_tls_options of_tls = CLAVE_TLS_OPTIONS_INIT;
static const clave_test_server_options of_test_server = CLAVE_TEST_SERVER_OPTIONS_INIT;
static const clave_test_fault of_fault = CLAVE_TEST_FAULT_INIT;
static const clave_semaphore_options of_semaphore = {.size = sizeof of_semaphore, .limit = 1};
static const clave_slots_options of_slots = {.size = sizeof of_slots};
static const clave_once_options of_once = {.size = sizeof of_once, .path = "/o"};
static const clave_delay_options of_delay = {.size = sizeof of_delay, .path = "/d"};
static const clave_persistent_watcher_options of_persistent_watcher =
    CLAVE_PERSISTENT_WATCHER_OPTIONS_INIT;
static const clave_persistent_node_options of_persistent_node = CLAVE_PERSISTENT_NODE_OPTIONS_INIT;
static const clave_cache_options of_cache = CLAVE_CACHE_OPTIONS_INIT;
static const clave_instances_options of_instances = CLAVE_INSTANCES_OPTIONS_INIT;
static const clave_selector_options of_selector = {.size = sizeof of_selector,
                                                   .take = no_leadership};

/* ---- the calls: each frees what it has made ---------------------------------------------------
 */

static clave_err try_client(const void *o)
{
    clave_async_client *c;
    clave_err err = clave_async_client_new(&c, o);
    clave_async_client_free(c);
    return err;
}

/* The rule and the text, without a client: both have to say the same of the same options. */
static clave_err try_client_fault(const void *o)
{
    return clave_async_client_options_fault(o) ? CLAVE_EINVAL : CLAVE_OK;
}

static clave_err try_session(const void *o)
{
    clave_client *s;
    clave_err err = clave_client_open(&s, NULL, "127.0.0.1:1", o);
    clave_client_close(s, 0);
    return err;
}

static clave_err try_create(const void *o)
{
    return clave_async_create(client, "/a", NULL, 0, o, no_result, NULL);
}

static clave_err try_session_create(const void *o)
{
    return clave_create(session, "/a", NULL, 0, o, 0, NULL);
}

static clave_err try_mutex(const void *o)
{
    clave_async_mutex *m;
    clave_err err = clave_async_mutex_new(&m, client, "/m", o);
    clave_async_mutex_free(m);
    return err;
}

static clave_err try_rwlock(const void *o)
{
    clave_async_rwlock *rw;
    clave_err err = clave_async_rwlock_new(&rw, client, "/m", o);
    clave_async_rwlock_free(rw);
    return err;
}

static const clave_multilock_part parts[] = {{"/a", CLAVE_MULTILOCK_MUTEX},
                                             {"/b", CLAVE_MULTILOCK_READ}};

static clave_err try_multilock(const void *o)
{
    clave_async_multilock *ml;
    clave_err err = clave_async_multilock_new(&ml, client, parts, 2, o);
    clave_async_multilock_free(ml);
    return err;
}

static clave_err try_multilock_each(const void *o)
{
    const clave_multilock_options all = {.size = sizeof all, .each = o};
    return try_multilock(&all);
}

static clave_err try_lock(const void *o)
{
    clave_mutex *l;
    clave_err err = clave_mutex_new(&l, session, "/m", o);
    clave_mutex_free(l);
    return err;
}

static clave_err try_lock_pair_reads(const void *o)
{
    clave_mutex *r, *w;
    clave_err err = clave_rwlock_new(&r, &w, session, "/m", o, NULL);
    clave_mutex_free(r);
    clave_mutex_free(w);
    return err;
}

static clave_err try_lock_pair_writes(const void *o)
{
    clave_mutex *r, *w;
    clave_err err = clave_rwlock_new(&r, &w, session, "/m", NULL, o);
    clave_mutex_free(r);
    clave_mutex_free(w);
    return err;
}

static clave_err try_lockset(const void *o)
{
    clave_multilock *l;
    clave_err err = clave_multilock_new(&l, session, parts, 2, o);
    clave_multilock_free(l);
    return err;
}

static clave_err try_latch(const void *o)
{
    clave_async_latch *l;
    clave_err err = clave_async_latch_new(&l, client, "/e", o);
    clave_async_latch_free(l);
    return err;
}

static clave_err try_candidate(const void *o)
{
    clave_latch *c;
    clave_err err = clave_latch_new(&c, session, "/e", o);
    clave_latch_free(c);
    return err;
}

static clave_err try_selector(const void *o)
{
    clave_selector *s;
    clave_err err = clave_selector_new(&s, session, "/e", o);
    clave_selector_free(s);
    return err;
}

static clave_err try_semaphore(const void *o)
{
    clave_async_semaphore *s;
    clave_err err = clave_async_semaphore_new(&s, client, "/s", o);
    clave_async_semaphore_free(s);
    return err;
}

static clave_err try_permits(const void *o)
{
    clave_semaphore *p;
    clave_err err = clave_semaphore_new(&p, session, "/s", o);
    clave_semaphore_free(p);
    return err;
}

static clave_err try_slots(const void *o)
{
    clave_async_slots *s;
    clave_err err = clave_async_slots_new(&s, client, "/s", o);
    clave_async_slots_free(s);
    return err;
}

static clave_err try_blocking_slots(const void *o)
{
    clave_slots *s;
    clave_err err = clave_slots_new(&s, session, "/s", o);
    clave_slots_free(s);
    return err;
}

/* Of a client that never was connected. */
static clave_async_grant *forge_grant(void)
{
    static struct contender place;
    const struct grant_facts f = {.token = 1, .node = "/m/x", .place = &place};
    clave_async_grant *g;
    place = (struct contender){
        .client = client, .mem = clave__client_mem(client), .state = CONTENDER_HELD};
    list_init(&place.grant.watchers);
    assert_int_equal(clave__grant_new(&g, &f), CLAVE_OK);
    return g;
}

static clave_err try_once(const void *o)
{
    clave_async_grant *g = forge_grant();
    clave_async_once *once;
    clave_err err = clave_async_once_begin(&once, g, o, no_once, NULL);
    clave_async_grant_free(g);
    clave_async_once_free(once);
    return err;
}

static clave_err try_job(const void *o)
{
    clave_once *j;
    clave_err err = clave_once_begin(&j, grant, o, RIG_PATIENCE_MS, NULL);
    clave_once_free(j);
    return err;
}

static void no_watcher_event(clave_async_persistent_watcher *w,
                             const clave_persistent_watcher_event *ev, void *arg)
{
    (void)w, (void)ev, (void)arg;
}

static clave_err try_persistent_watcher(const void *o)
{
    clave_async_persistent_watcher *w;
    clave_err err = clave_async_persistent_watcher_new(&w, client, "/w", o, no_watcher_event, NULL);
    clave_async_persistent_watcher_free(w);
    return err;
}

static clave_err try_persistent_node(const void *o)
{
    clave_async_persistent_node *n;
    clave_err err = clave_async_persistent_node_new(&n, client, "/n", o);
    clave_async_persistent_node_free(n);
    return err;
}

static clave_err try_blocking_persistent_node(const void *o)
{
    clave_persistent_node *n;
    clave_err err = clave_persistent_node_new(&n, session, "/n", o);
    if (err == CLAVE_OK) /* what it still asks for would change the session's error text */
        assert_int_equal(clave_persistent_node_close(n, RIG_PATIENCE_MS), CLAVE_OK);
    clave_persistent_node_free(n);
    return err;
}

static clave_err try_cache(const void *o)
{
    clave_async_cache *cache;
    clave_err err = clave_async_cache_new(&cache, client, "/c", o, NULL, NULL);
    clave_async_cache_free(cache);
    return err;
}

static clave_err try_blocking_cache(const void *o)
{
    clave_cache *cache;
    clave_err err = clave_cache_new(&cache, session, "/c", o, NULL, NULL);
    clave_cache_free(cache);
    return err;
}

static clave_err try_instances(const void *o)
{
    clave_async_instances *d;
    clave_err err = clave_async_instances_new(&d, client, o, NULL, NULL);
    clave_async_instances_free(d);
    return err;
}

static clave_err try_blocking_instances(const void *o)
{
    clave_instances *d;
    clave_err err = clave_instances_new(&d, session, o, NULL, NULL);
    clave_instances_free(d);
    return err;
}

static clave_err try_delay(const void *o)
{
    clave_async_grant *g = forge_grant();
    clave_async_delay *d;
    clave_err err = clave_async_delay_begin(&d, g, o, no_delay, NULL);
    clave_async_grant_free(g);
    clave_async_delay_free(d);
    return err;
}

static char tls_fault[512];

static clave_err try_tls(const void *o)
{
    clave_tls *t;
    clave_err err = clave_tls_new(&t, o, tls_fault, sizeof tls_fault);
    clave_tls_free(t);
    return err;
}

static clave_err try_test_server(const void *o)
{
    clave_test_server *t;
    clave_err err = clave_test_server_new(&t, o);
    clave_test_server_free(t);
    return err;
}

static clave_err try_inject(const void *o)
{
    return clave_test_server_inject(test_server, o);
}

/* ---- the rule -----------------------------------------------------------------------------------
 */

enum text { NO_TEXT, CLIENT_TEXT, SESSION_TEXT, TLS_TEXT };

struct taker {
    const char *what;
    const char *name; /* of the struct */
    size_t size;
    size_t enough; /* of it, for options that are accepted */
    const void *valid;
    clave_err (*take)(const void *o);
    clave_err accepted; /* what it says then */
    clave_err null;     /* and without options */
    enum text text;
};

#define UNTIL(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))
#define TAKER(type, valid, until, take, ...)                                                       \
    {                                                                                              \
#take, #type, sizeof(type), UNTIL(type, until), &(valid), take, __VA_ARGS__                \
    }

static const struct taker takers[] = {
    TAKER(clave_client_options, of_client, seed, try_client, CLAVE_OK, CLAVE_EINVAL, NO_TEXT),
    TAKER(clave_client_options, of_client, seed, try_client_fault, CLAVE_OK, CLAVE_EINVAL, NO_TEXT),
    TAKER(clave_client_options, of_session, size, try_session, CLAVE_OK, CLAVE_OK, NO_TEXT),
    TAKER(clave_create_options, of_create, size, try_create, CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_create_options, of_create, size, try_session_create, CLAVE_ETIMEDOUT,
          CLAVE_ETIMEDOUT, SESSION_TEXT),
    TAKER(clave_mutex_options, of_mutex, size, try_mutex, CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_mutex_options, of_mutex, size, try_rwlock, CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_mutex_options, of_mutex, size, try_multilock_each, CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_mutex_options, of_mutex, size, try_lock, CLAVE_OK, CLAVE_OK, SESSION_TEXT),
    TAKER(clave_mutex_options, of_mutex, size, try_lock_pair_reads, CLAVE_OK, CLAVE_OK,
          SESSION_TEXT),
    TAKER(clave_mutex_options, of_mutex, size, try_lock_pair_writes, CLAVE_OK, CLAVE_OK,
          SESSION_TEXT),
    TAKER(clave_mutex_options, of_mutex, size, try_lockset, CLAVE_OK, CLAVE_OK, SESSION_TEXT),
    TAKER(clave_multilock_options, of_multilock, size, try_multilock, CLAVE_OK, CLAVE_OK,
          CLIENT_TEXT),
    TAKER(clave_latch_options, of_latch, size, try_latch, CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_latch_options, of_latch, size, try_candidate, CLAVE_OK, CLAVE_OK, SESSION_TEXT),
    TAKER(clave_selector_options, of_selector, take, try_selector, CLAVE_OK, CLAVE_EINVAL,
          SESSION_TEXT),
    TAKER(clave_semaphore_options, of_semaphore, limit, try_semaphore, CLAVE_OK, CLAVE_EINVAL,
          CLIENT_TEXT),
    TAKER(clave_semaphore_options, of_semaphore, limit, try_permits, CLAVE_OK, CLAVE_EINVAL,
          SESSION_TEXT),
    TAKER(clave_slots_options, of_slots, size, try_slots, CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_slots_options, of_slots, size, try_blocking_slots, CLAVE_OK, CLAVE_OK,
          SESSION_TEXT),
    TAKER(clave_once_options, of_once, path, try_once, CLAVE_OK, CLAVE_EINVAL, CLIENT_TEXT),
    TAKER(clave_once_options, of_once, path, try_job, CLAVE_OK, CLAVE_EINVAL, SESSION_TEXT),
    TAKER(clave_delay_options, of_delay, path, try_delay, CLAVE_OK, CLAVE_EINVAL, CLIENT_TEXT),
    TAKER(clave_persistent_watcher_options, of_persistent_watcher, size, try_persistent_watcher,
          CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_persistent_node_options, of_persistent_node, size, try_persistent_node, CLAVE_OK,
          CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_persistent_node_options, of_persistent_node, size, try_blocking_persistent_node,
          CLAVE_OK, CLAVE_OK, SESSION_TEXT),
    TAKER(clave_cache_options, of_cache, size, try_cache, CLAVE_OK, CLAVE_OK, CLIENT_TEXT),
    TAKER(clave_cache_options, of_cache, size, try_blocking_cache, CLAVE_OK, CLAVE_OK,
          SESSION_TEXT),
    TAKER(clave_instances_options, of_instances, size, try_instances, CLAVE_OK, CLAVE_OK,
          CLIENT_TEXT),
    TAKER(clave_instances_options, of_instances, size, try_blocking_instances, CLAVE_OK, CLAVE_OK,
          SESSION_TEXT),
    TAKER(clave_tls_options, of_tls, size, try_tls, CLAVE_OK, CLAVE_OK, TLS_TEXT),
    TAKER(clave_test_server_options, of_test_server, size, try_test_server, CLAVE_OK, CLAVE_OK,
          NO_TEXT),
    TAKER(clave_test_fault, of_fault, size, try_inject, CLAVE_OK, CLAVE_EINVAL, NO_TEXT),
};

/* A struct of `size`, by what it says: the valid one as far as it goes, `tail` after `used`. */
static const void *options(const struct taker *t, size_t size, size_t used, unsigned char tail)
{
    static _Alignas(max_align_t) unsigned char room[ROOM];
    memset(room, tail, sizeof room);
    memcpy(room, t->valid, used < t->size ? used : t->size);
    if (used > t->size)
        memset(room + t->size, 0, used - t->size);
    memcpy(room, &size, sizeof size);
    return room;
}

static void expect(const struct taker *t, const char *how, clave_err want, clave_err got)
{
    if (got != want)
        fail_msg("%s, %s: %s in the place of %s", t->what, how, clave_err_name(got),
                 clave_err_name(want));
}

static void expect_text(const struct taker *t, const char *how, const char *says)
{
    char buf[512];
    const char *text = t->text == CLIENT_TEXT    ? clave_async_client_errmsg(client)
                       : t->text == SESSION_TEXT ? clave_client_errmsg(session, buf, sizeof buf)
                       : t->text == TLS_TEXT     ? tls_fault
                                                 : NULL;
    if (text && (!strstr(text, t->name) || !strstr(text, says)))
        fail_msg("%s, %s: the error text is \"%s\"", t->what, how, text);
}

static void refuses(const struct taker *t, const char *how, const void *o, const char *says)
{
    expect(t, how, CLAVE_EINVAL, t->take(o));
    expect_text(t, how, says);
}

/* Found by a trial: a persistent node that anybody may change, without a word. */
TEST(options_without_a_size_make_nothing)
{
    clave_client *s = rig_session(clave_test_server_connect_string(test_server));
    const clave_create_options ephemeral = {.mode = CLAVE_EPHEMERAL};
    char text[512];
    assert_int_equal(clave_create(s, "/e", NULL, 0, &ephemeral, RIG_PATIENCE_MS, NULL),
                     CLAVE_EINVAL);
    assert_string_equal(clave_client_errmsg(s, text, sizeof text),
                        "clave_create_options has size 0: begin with its _INIT macro, or set .size "
                        "to its sizeof");
    assert_int_equal(clave_exists(s, "/e", RIG_PATIENCE_MS, NULL), CLAVE_ENONODE);
    clave_client_close(s, RIG_PATIENCE_MS);
}

TEST(every_options_struct_is_taken_by_one_rule)
{
    for (const struct taker *t = takers; t < takers + sizeof takers / sizeof *takers; t++) {
        const size_t size = t->size, more = t->size + 24;
        refuses(t, "size 0", options(t, 0, size, 0), "has size 0");
        refuses(t, "size 1", options(t, 1, size, 0), "no version");
        refuses(t, "size 7", options(t, sizeof(size_t) - 1, size, 0), "no version");
        /* What lies after the stated size is not looked at. */
        expect(t, "short", t->accepted, t->take(options(t, t->enough, t->enough, 0xAA)));
        expect(t, "exact", t->accepted, t->take(options(t, size, size, 0xAA)));
        expect(t, "long, zeros", t->accepted, t->take(options(t, more, more, 0xAA)));
        expect(t, "longest, zeros", t->accepted,
               t->take(options(t, OPTIONS_SIZE_MAX, OPTIONS_SIZE_MAX, 0xAA)));
        refuses(t, "long, the first byte set", options(t, more, size, 0xAA), "does not know");
        refuses(t, "long, the last byte set", options(t, more, more - 1, 1), "does not know");
        refuses(t, "too long", options(t, OPTIONS_SIZE_MAX + 1, OPTIONS_SIZE_MAX + 1, 0),
                "no version");
        refuses(t, "endless", options(t, SIZE_MAX, size, 0), "no version");
        expect(t, "NULL", t->null, t->take(NULL));
    }
}

/* The other way: a struct that the library fills. */
TEST(a_struct_of_results_is_filled_by_its_size)
{
    static _Alignas(max_align_t) unsigned char room[ROOM];
    clave_test_stats *out = (void *)room, now = CLAVE_TEST_STATS_INIT;
    assert_int_equal(clave_test_server_stats(test_server, &now), CLAVE_OK);
    assert_true(now.nodes > 0);
    static const size_t wrong[] = {0, 7, OPTIONS_SIZE_MAX + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        out->size = wrong[i];
        assert_int_equal(clave_test_server_stats(test_server, out), CLAVE_EINVAL);
    }
    memset(room, 0xAA, sizeof room);
    out->size = sizeof *out + 16;
    assert_int_equal(clave_test_server_stats(test_server, out), CLAVE_OK);
    assert_int_equal(out->nodes, now.nodes);
    assert_int_equal(out->size, sizeof *out + 16);
    for (size_t i = 0; i < 17; i++)
        assert_int_equal(room[sizeof *out + i], i < 16 ? 0 : 0xAA);
    memset(room, 0xAA, sizeof room);
    out->size = offsetof(clave_test_stats, nodes);
    assert_int_equal(clave_test_server_stats(test_server, out), CLAVE_OK);
    assert_int_equal(out->ephemerals, now.ephemerals);
    assert_int_equal(room[offsetof(clave_test_stats, nodes)], 0xAA);
}

static int open_all(void **state)
{
    (void)state;
    const clave_client_options o = {.size = sizeof o, .hosts = "h", .seed = 1};
    if (clave_test_server_new(&test_server, NULL) != CLAVE_OK)
        return -1;
    session = rig_session(clave_test_server_connect_string(test_server));
    bool fine = clave_async_client_new(&client, &o) == CLAVE_OK &&
                clave_mutex_new(&lock, session, "/l", NULL) == CLAVE_OK &&
                clave_mutex_acquire(lock, RIG_PATIENCE_MS) == CLAVE_OK &&
                clave_mutex_grant(lock, &grant) == CLAVE_OK;
    return fine ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    clave_test_server_heal(test_server); /* of what try_inject has injected */
    clave_grant_free(grant);
    clave_mutex_free(lock);
    clave_client_close(session, RIG_PATIENCE_MS);
    clave_async_client_free(client);
    clave_test_server_free(test_server);
    return 0;
}

TEST_GROUP(open_all, close_all)
