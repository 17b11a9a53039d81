/* An ordered set against an array: the same nodes in the same order, whatever comes and goes. */
#include "base/ordered_set.h"
#include "base/rand.h"
#include "lib/unit.h"

enum { KEYS = 200, MARKS = 3 };

struct number {
    struct ordered_node node;
    int key;
    bool there;
};

static int number_compare(const void *key, const struct ordered_node *node)
{
    int at = ORDERED_ENTRY(node, struct number, node)->key;
    return *(const int *)key < at ? -1 : *(const int *)key > at;
}

static bool number_counts(const struct number *n, uint16_t marks)
{
    return n->there && (marks == ORDERED_ANY || n->node.marks & marks);
}

/* The first that counts from `from` on, upwards or downwards. */
static struct number *array_search(struct number *all, int from, int step, uint16_t marks)
{
    for (; from >= 0 && from < KEYS; from += step)
        if (number_counts(&all[from], marks))
            return &all[from];
    return NULL;
}

static void assert_is(const struct ordered_node *node, const struct number *n)
{
    assert_ptr_equal(node, n ? &n->node : NULL);
}

static void compare_all(const struct ordered *o, struct number *all)
{
    for (uint16_t marks = 0; marks < 1 << MARKS; marks++) {
        assert_is(clave__ordered_first(o, marks), array_search(all, 0, 1, marks));
        assert_is(clave__ordered_last(o, marks), array_search(all, KEYS - 1, -1, marks));
        for (int key = -1; key < KEYS; key++)
            assert_is(clave__ordered_after(o, &key, marks), array_search(all, key + 1, 1, marks));
    }
    for (int key = 0; key < KEYS; key++)
        assert_is(clave__ordered_find(o, &key), all[key].there ? &all[key] : NULL);
}

TEST(it_equals_a_sorted_array)
{
    static struct number all[KEYS];
    struct ordered o;
    struct rand_state rand;
    size_t count = 0;
    clave__rand_seed(&rand, 3);
    clave__ordered_init(&o, number_compare, 5);
    for (int i = 0; i < KEYS; i++)
        all[i].key = i;
    for (int round = 0; round < 4000; round++) {
        struct number *n = &all[clave__rand_below(&rand, KEYS)];
        uint16_t marks = (uint16_t)clave__rand_below(&rand, 1 << MARKS);
        if (!n->there)
            clave__ordered_insert(&o, &n->node, &n->key, marks);
        else if (clave__rand_below(&rand, 2))
            clave__ordered_mark(&o, &n->node, &n->key, marks);
        else
            clave__ordered_remove(&o, &n->key);
        if (!n->there || !clave__ordered_find(&o, &n->key)) {
            n->there = !n->there;
            count += n->there ? 1 : -1;
        }
        assert_int_equal(o.count, count);
        if (round % 50 == 0)
            compare_all(&o, all);
    }
    compare_all(&o, all);
}

static int depth_of(const struct ordered_node *n)
{
    int left = n ? depth_of(n->left) : 0, right = n ? depth_of(n->right) : 0;
    return n ? 1 + (left > right ? left : right) : 0;
}

/* As lock nodes do: by growing number. A tree without balance would be 100 000 deep. */
TEST(it_stays_flat_when_keys_only_grow)
{
    enum { MANY = 100000 };
    static struct number all[MANY];
    struct ordered o;
    clave__ordered_init(&o, number_compare, 5);
    for (int i = 0; i < MANY; i++) {
        all[i].key = i;
        clave__ordered_insert(&o, &all[i].node, &all[i].key, 0);
    }
    assert_in_range(depth_of(o.root), 17, 80);
}
