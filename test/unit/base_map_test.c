/* base_map_test.c - the hash map against a plain table, its iteration, and growing in vain. */
#include "base/map.h"
#include "base/rand.h"
#include "lib/failmem.h"
#include "lib/unit.h"

enum { KEYS = 500 };

struct item {
    struct map_node in_map;
    int key;
    bool in;
    int seen;
};

static bool has_key(const struct map_node *node, const void *key)
{
    return ((const struct item *)(const void *)node)->key == *(const int *)key;
}

/* With few hashes most keys are in one chain. */
static uint32_t hash_of(int key, uint32_t hashes)
{
    return clave__map_hash_u64((uint64_t)(unsigned)key) % hashes;
}

/* Each that is in comes once. */
static void check_iteration(const struct map *m, struct item *items)
{
    size_t count = 0;
    for (int k = 0; k < KEYS; k++)
        items[k].seen = 0;
    for (struct map_node *n = NULL; (n = clave__map_next(m, n)); count++)
        MAP_ENTRY(n, struct item, in_map)->seen++;
    assert_int_equal(count, m->count);
    for (int k = 0; k < KEYS; k++)
        assert_int_equal(items[k].seen, items[k].in);
}

static void check_iteration_ends(const struct map *m, size_t after)
{
    for (struct map_node *n = NULL; (n = clave__map_next(m, n)); after--)
        assert_true(after > 0);
    assert_int_equal(after, 0);
}

/* While others come and go and the map grows, each that stays is visited once, in as many looks as
 * there are buckets and nodes. */
TEST(a_walk_survives_changes)
{
    static struct item items[KEYS];
    static const uint32_t hashes[] = {UINT32_MAX, 70, 3, 1};
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct failmem mem;
        struct rand_state rand;
        struct map m;
        struct map_walk w = {0};
        struct map_node *n;
        memset(items, 0, sizeof items);
        failmem_init(&mem);
        clave__rand_seed(&rand, seed);
        assert_int_equal(clave__map_init(&m, &mem.mem, 1), CLAVE_OK);
        for (int k = 0; k < KEYS; k++)
            items[k].key = k;
        for (int k = 0; k < KEYS / 10; k++) /* they stay */
            clave__map_insert(&m, &items[k].in_map, hash_of(k, hashes[seed % 4]));
        size_t looks = 0;
        for (; clave__map_walk(&m, &w, &n); looks++) {
            if (n)
                MAP_ENTRY(n, struct item, in_map)->seen++;
            int k = KEYS / 10 + (int)clave__rand_below(&rand, KEYS - KEYS / 10);
            if (items[k].in)
                clave__map_remove(&m, &items[k].in_map);
            else
                clave__map_insert(&m, &items[k].in_map, hash_of(k, hashes[seed % 4]));
            items[k].in = !items[k].in;
        }
        assert_false(clave__map_walk(&m, &w, &n));
        for (int k = 0; k < KEYS / 10; k++)
            assert_int_equal(items[k].seen, 1);
        assert_true(looks <= m.nbuckets + KEYS);
        clave__map_fini(&m);
        assert_int_equal(mem.live, 0);
    }
}

static void play(uint64_t seed, uint32_t hashes, bool never_grows)
{
    static struct item items[KEYS];
    struct failmem mem;
    struct rand_state rand;
    struct map m;
    size_t count = 0;
    memset(items, 0, sizeof items);
    failmem_init(&mem);
    clave__rand_seed(&rand, seed);
    assert_int_equal(clave__map_init(&m, &mem.mem, 1), CLAVE_OK);
    if (never_grows)
        failmem_arm(&mem, 1, SIZE_MAX);
    for (int turn = 0; turn < 5000; turn++) {
        int key = (int)clave__rand_below(&rand, KEYS);
        struct item *it = &items[key];
        struct map_node *found = clave__map_find(&m, hash_of(key, hashes), has_key, &key);
        assert_ptr_equal(found, it->in ? &it->in_map : NULL);
        if (it->in) {
            clave__map_remove(&m, &it->in_map);
        } else {
            it->key = key;
            clave__map_insert(&m, &it->in_map, hash_of(key, hashes));
        }
        it->in = !it->in;
        count += it->in ? 1 : (size_t)-1;
        assert_int_equal(m.count, count);
        if (turn % 100 == 0)
            check_iteration(&m, items);
    }
    assert_true(never_grows ? m.nbuckets == 16 : m.nbuckets >= 128);
    clave__map_fini(&m);
    assert_int_equal(mem.live, 0);
}

TEST(does_as_a_plain_table)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        play(seed, UINT32_MAX, false);
}

TEST(also_when_all_hashes_collide)
{
    play(1, 1, false);
    play(2, 3, false);
}

/* An insertion cannot fail: without memory the chains get longer. */
TEST(also_when_it_cannot_grow)
{
    play(1, UINT32_MAX, true);
}

TEST(a_node_may_go_once_the_next_is_known)
{
    static struct item items[KEYS];
    struct failmem mem;
    struct map m;
    failmem_init(&mem);
    assert_int_equal(clave__map_init(&m, &mem.mem, 1), CLAVE_OK);
    for (int k = 0; k < KEYS; k++) {
        items[k].key = k;
        clave__map_insert(&m, &items[k].in_map, hash_of(k, UINT32_MAX));
    }
    size_t left = 0;
    struct map_node *at = clave__map_next(&m, NULL);
    while (at) {
        struct map_node *next = clave__map_next(&m, at);
        if (MAP_ENTRY(at, struct item, in_map)->key % 3)
            clave__map_remove(&m, at);
        else
            left++;
        at = next;
    }
    assert_int_equal(m.count, left);
    assert_int_equal(left, (KEYS + 2) / 3);
    clave__map_fini(&m);
    assert_int_equal(mem.live, 0);
}

/* The buckets that a map grows to are not even cleared at once: of millions that takes long. */
TEST(growing_begins_without_a_look_at_the_buckets)
{
    static struct item items[KEYS];
    struct failmem mem;
    struct map m;
    size_t begun = 0, touched = 0;
    failmem_init(&mem);
    mem.fills = true;
    assert_int_equal(clave__map_init(&m, &mem.mem, 1), CLAVE_OK);
    for (int k = 0; k < KEYS; k++) {
        size_t before = m.nbuckets;
        items[k].key = k;
        clave__map_insert(&m, &items[k].in_map, hash_of(k, UINT32_MAX));
        begun += m.nbuckets != before;
        for (size_t i = 0; i < m.nbuckets && m.nbuckets != before; i++)
            touched += *(const unsigned char *)&m.buckets[i] != FAILMEM_FILL;
        if (m.nbuckets == before && m.previous)
            check_iteration_ends(&m, (size_t)k + 1);
    }
    assert_true(begun >= 4);
    assert_int_equal(touched, 0);
    clave__map_fini(&m);
    assert_int_equal(mem.live, 0);
}

TEST(one_that_was_never_made)
{
    struct failmem mem;
    struct map m;
    int key = 1;
    failmem_init(&mem);
    failmem_arm(&mem, 1, 1);
    assert_int_equal(clave__map_init(&m, &mem.mem, 1), CLAVE_ENOMEM);
    assert_null(clave__map_find(&m, 1, has_key, &key));
    assert_null(clave__map_next(&m, NULL));
    clave__map_fini(&m);
    clave__map_fini(&m);
    assert_int_equal(mem.live, 0);
}

/* The names of a queue differ in their last digits: no bucket may take much more than its part. */
TEST(names_that_are_alike_spread)
{
    enum { NAMES = 4096, BUCKETS = 1024 };
    static int in[BUCKETS];
    struct failmem mem;
    CLOSED_BY(clave__map_fini) struct map m;
    char name[64];
    failmem_init(&mem);
    assert_int_equal(clave__map_init(&m, &mem.mem, 1), CLAVE_OK);
    memset(in, 0, sizeof in);
    for (int i = 0; i < NAMES; i++) {
        int n = snprintf(name, sizeof name, "/locks/ledger/_c_-lock-%010d", i);
        in[clave__map_hash_bytes(&m, name, (size_t)n) % BUCKETS]++;
    }
    for (int i = 0; i < BUCKETS; i++)
        assert_true(in[i] < 20); /* 4 on the average */
    memset(in, 0, sizeof in);
    for (uint64_t i = 0; i < NAMES; i++)
        in[clave__map_hash_u64(i << 24) % BUCKETS]++;
    for (int i = 0; i < BUCKETS; i++)
        assert_true(in[i] < 20);
}

/* ---- names chosen to collide ----------------------------------------------------------------- */

enum { CHOSEN = 512, CHOSEN_BUCKETS = 4096, CHOSEN_NAME = 32 };

/* FNV-1a with a final mix, by which the map hashed until 0.2: anybody could compute it. */
static uint32_t unkeyed_hash(const struct map *m, const char *name, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    (void)m;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)name[i]) * 0x100000001b3u;
    return clave__map_hash_u64(h);
}

static uint32_t keyed_hash(const struct map *m, const char *name, size_t n)
{
    return clave__map_hash_bytes(m, name, n);
}

typedef uint32_t hash_fn(const struct map *m, const char *name, size_t n);

/* Names that one bucket takes: what somebody would send who could compute the hash. */
static void choose_names(char names[CHOSEN][CHOSEN_NAME], hash_fn *hash, const struct map *m)
{
    size_t chosen = 0;
    for (unsigned i = 0; chosen < CHOSEN; i++) {
        int n = snprintf(names[chosen], CHOSEN_NAME, "/locks/n%08x", i);
        chosen += hash(m, names[chosen], (size_t)n) % CHOSEN_BUCKETS == 0;
    }
}

static int longest_chain(char names[CHOSEN][CHOSEN_NAME], const struct map *m)
{
    static int in[CHOSEN_BUCKETS];
    int longest = 0;
    memset(in, 0, sizeof in);
    for (int i = 0; i < CHOSEN; i++) {
        int *bucket = &in[keyed_hash(m, names[i], strlen(names[i])) % CHOSEN_BUCKETS];
        longest = ++*bucket > longest ? *bucket : longest;
    }
    return longest;
}

TEST(names_chosen_against_the_old_hash_spread)
{
    static char names[CHOSEN][CHOSEN_NAME];
    struct failmem mem;
    CLOSED_BY(clave__map_fini) struct map m;
    failmem_init(&mem);
    assert_int_equal(clave__map_init(&m, &mem.mem, 7), CLAVE_OK);
    choose_names(names, unkeyed_hash, NULL);
    assert_true(longest_chain(names, &m) < 8);
}

/* Fails for every hash that another map computes too. */
TEST(names_chosen_against_one_map_spread_in_another)
{
    static char names[CHOSEN][CHOSEN_NAME];
    struct failmem mem;
    CLOSED_BY(clave__map_fini) struct map one, other;
    failmem_init(&mem);
    assert_int_equal(clave__map_init(&one, &mem.mem, 7), CLAVE_OK);
    assert_int_equal(clave__map_init(&other, &mem.mem, 8), CLAVE_OK);
    choose_names(names, keyed_hash, &one);
    assert_int_equal(longest_chain(names, &one), CHOSEN);
    assert_true(longest_chain(names, &other) < 8);
}

/* The values of CPython 3.11, whose strings are hashed so with a key of zeroes when PYTHONHASHSEED
 * is 0. */
TEST(siphash_gives_known_values)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } known[] = {
        {"a", 0x407448d2b89b1813u},
        {"1234567", 0xa33d651594fdae81u},
        {"12345678", 0x3489982430560a87u},
        {"/locks/ledger/_c_-lock-0000000001", 0xc72023baf4a1c1bbu},
    };
    const struct siphash_key zero = {0, 0};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(clave__siphash(zero, known[i].text, strlen(known[i].text)), known[i].hash);
}
