/* Who stands where: what counts as a contender's node, Curator's sort rule, kazoo's names, used-up
 * counters. */
#include "lib/unit.h"
#include "recipe/queue/queue_kind.h"
#include "recipe/queue/queue_order.h"

#define UUID "_c_2f4a7c1e-9d53-4b0a-8a35-000000000000-"
#define COUNT(a) (sizeof(a) / sizeof *(a))

TEST(a_contender_is_a_base_name_and_a_number)
{
    static const struct {
        const char *name, *key; /* NULL: it is none */
        bool plain, exhausted;
    } cases[] = {
        {UUID "lock-0000000007", "0000000007", true, false},
        {"lock-0000000007", "0000000007", true, false},
        {"deadlock-0000000007", "0000000007", true, false}, /* as Curator takes it */
        {"lock-9-lock-0000000001", "0000000001", true, false},
        {"0f3c5d-lock-0000000012", "0000000012", true, false}, /* kazoo's, named "-lock-" */
        /* No base name, or nothing after it that a server appends. */
        {"", NULL, false, false},
        {"0abc", NULL, false, false},
        {"readme", NULL, false, false},
        {"0000000003", NULL, false, false},
        {"lock", NULL, false, false},
        {"lock-", NULL, false, false},
        {"lock-lock-lock-", NULL, false, false},
        {"lock-000000001", NULL, false, false},
        {"lock-00000000011", NULL, false, false},
        {"lock-000000001x", NULL, false, false},
        {"lock-+000000001", NULL, false, false},
        {"lock- 000000001", NULL, false, false},
        {"_c_0-lock--3", NULL, false, false},
        {"deadlock--3", NULL, false, false},
        {"lock--", NULL, false, false},
        {"lock---000000003", NULL, false, false},
        {"lock--000000000", NULL, false, false},  /* zero is written without a sign */
        {"lock--0000000003", NULL, false, false}, /* ten digits and a sign: too long for it */
        {"lock--0999999999", NULL, false, false},
        {"lock--2147483649", NULL, false, false}, /* below the least number there is */
        {"lock--9999999999", NULL, false, false},
        {"lock--21474836480", NULL, false, false},
        /* Kazoo's own names. */
        {"0f3c5d__lock__0000000012", "0000000012", true, false},
        {"0f3c5d__lock__-2147483648", "-2147483648", false, true},
        {"0f3c5d__lock__0000000012x", NULL, false, false},
        {"0f3c5d__lock__012", NULL, false, false},
        {"0f3c5d__lock__-3", NULL, false, false},
        {"0f3c5d__rlock__0000000012", NULL, false, false},
        /* Counters that are about to run over, or did. */
        {UUID "lock-2147482646", "2147482646", true, false},
        {UUID "lock-2147482647", "2147482647", true, true},
        {UUID "lock-2147483647", "2147483647", true, true},
        {UUID "lock-9999999999", "9999999999", true, true}, /* no server's, and after them all */
        {UUID "lock--2147483648", "-2147483648", false, true},
        {UUID "lock--1000000000", "-1000000000", false, true},
        {UUID "lock--999999999", "-999999999", false, true},
        {UUID "lock--000000003", "-000000003", false, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct queue_order_key key =
            clave__queue_order_key(&clave__queue_order_mutex, cases[i].name);
        assert_int_equal(key.contender, cases[i].key != NULL);
        assert_int_equal(clave__queue_order_is_kind(&clave__queue_order_mutex, cases[i].name),
                         key.contender);
        assert_string_equal(key.text, cases[i].key ? cases[i].key : cases[i].name);
        assert_int_equal(key.plain, cases[i].plain);
        assert_int_equal(key.exhausted, cases[i].exhausted);
    }
}

static struct queue_order_place locate(const char *const *names, size_t n, const char *own)
{
    return clave__queue_order_locate(&clave__queue_order_mutex, names, n, own);
}

TEST(place_counts_every_name_before_ours)
{
    static const char *const names[] = {
        UUID "lock-0000000004", UUID "lock-0000000001", "0f3c5d__lock__0000000003",
        UUID "lock-0000000002", UUID "lock-0000000009",
    };
    struct queue_order_place at = locate(names, 5, names[0]);
    assert_true(at.found);
    assert_true(at.plain);
    assert_false(at.exhausted);
    assert_int_equal(at.ahead, 3);
    assert_string_equal(at.predecessor, names[2]);
    assert_string_equal(at.before_predecessor, names[3]);

    at = locate(names, 5, names[3]);
    assert_int_equal(at.ahead, 1);
    assert_string_equal(at.predecessor, names[1]);
    assert_null(at.before_predecessor);

    at = locate(names, 5, names[1]);
    assert_int_equal(at.ahead, 0);
    assert_null(at.predecessor);

    assert_false(locate(names, 5, UUID "lock-0000000005").found);
    assert_false(locate(names, 0, names[0]).found);
}

/* What does not queue is not waited for, wherever Curator sorts it (CURATOR-43). Curator waits for
 * such a child, and so never owns where clave does not. */
TEST(other_children_do_not_count)
{
    static const char *const names[] = {
        "0abc",    UUID "lock-0000000002", "00000",        "readme",
        "lock--3", "deadlock--3",          "lock-0000001", UUID "lock-0000000001",
    };
    struct queue_order_place at = locate(names, COUNT(names), names[7]);
    assert_true(at.found);
    assert_int_equal(at.ahead, 0);
    assert_int_equal(at.contenders, 2);
    assert_true(at.plain);
    assert_false(at.exhausted);
    at = locate(names, COUNT(names), names[1]);
    assert_int_equal(at.ahead, 1);
    assert_string_equal(at.predecessor, names[7]);
    assert_null(at.before_predecessor);
}

/* Nobody knows what such a server means by its numbers. */
TEST(an_own_name_without_a_number_is_refused)
{
    static const char *const names[] = {"lock-12", "lock-0000000011"};
    assert_true(locate(names, 2, names[0]).exhausted);
    assert_false(locate(names, 2, names[1]).exhausted);
}

#define HEX "0f3c5d7e9a1b4c2d8e6f0a1b2c3d4e5f"

TEST(default_names_of_kazoo)
{
    static const char *const are[] = {HEX "__lock__0000000012", HEX "__rlock__0000000000",
                                      HEX "__lock__-2147483648"};
    static const char *const are_not[] = {
        "",
        HEX,
        HEX "__lock__",
        HEX "__lock__000000012",
        HEX "__lock__00000000123",
        HEX "__lock__0000000012x",
        HEX "__lock__--000000012",
        HEX "-lock-0000000012", /* as docs/guide/from-kazoo.md advises */
        HEX "-__WRIT__0000000012",
        "f" HEX "__lock__0000000012",
        "0F3C5D7E9A1B4C2D8E6F0A1B2C3D4E5F__lock__0000000012",
        "0f3c__lock__0000000012",
        UUID "lock-0000000012",
        "lock-0000000012",
    };
    for (size_t i = 0; i < COUNT(are); i++)
        assert_true(clave__kazoo_is_default(are[i]));
    for (size_t i = 0; i < COUNT(are_not); i++)
        if (clave__kazoo_is_default(are_not[i]))
            fail_msg("'%s' is no default name of kazoo's", are_not[i]);
}

TEST(equal_keys_keep_the_servers_order)
{
    static const char *const names[] = {"a-lock-0000000001", "b-lock-0000000001",
                                        "c-lock-0000000001"};
    assert_int_equal(locate(names, 3, names[0]).ahead, 0);
    struct queue_order_place at = locate(names, 3, names[2]);
    assert_int_equal(at.ahead, 2);
    assert_string_equal(at.predecessor, names[1]);
    assert_string_equal(at.before_predecessor, names[0]);
}

/* Whoever may write below the path can make a name that has run over, as well as one that stands
 * first: it is waited for, and says nothing about the counter. Ours is the counter's own. */
TEST(only_our_own_number_says_that_the_counter_ran_over)
{
    static const char *const names[] = {UUID "lock-2147482000", UUID "lock--2147483648"};
    struct queue_order_place at = locate(names, 2, names[0]);
    assert_false(at.exhausted);
    assert_false(at.plain); /* numbers do not only grow here */
    assert_int_equal(at.ahead, 1);
    assert_true(locate(names, 2, names[1]).exhausted);
    static const char *const near[] = {UUID "lock-2147482000", UUID "lock-2147483000"};
    assert_false(locate(near, 2, near[0]).exhausted);
    assert_true(locate(near, 2, near[0]).plain);
    assert_true(locate(near, 2, near[1]).exhausted);
}

TEST(order_is_that_of_the_places)
{
    enum { N = 100 };
    static char text[N][64];
    const char *names[N];
    struct clave_mem mem = clave__mem_or_default(NULL);
    for (size_t i = 0; i < N; i++) {
        /* 37 is prime to 100: a shuffle; equal keys in pairs. */
        snprintf(text[i], sizeof text[i], "%zu-lock-%010zu", i, i * 37 % N / 2);
        names[i] = text[i];
    }
    for (size_t n = 0; n <= N; n += n < 4 ? 1 : 32) {
        size_t order[N];
        assert_int_equal(clave__queue_order_sort(&clave__queue_order_mutex, &mem, names, n, order),
                         CLAVE_OK);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(locate(names, n, names[order[i]]).ahead, i);
    }
}

TEST(the_two_kinds_of_a_read_write_lock_are_one_queue)
{
    static const char *const names[] = {
        UUID "__WRIT__0000000004", UUID "__READ__0000000001", "0f3c__rlock__0000000002",
        UUID "__READ__0000000004", UUID "__WRIT__0000000003", "0abc",
        "0f3c__lock__0000000000",
    };
    static const struct {
        const struct queue_order_rule *rule;
        size_t own, ahead;
        int predecessor, before_predecessor; /* -1: none */
        bool plain;
    } cases[] = {
        /* A write waits for both kinds before it; of equal numbers the server's order decides. */
        {&clave__queue_order_write, 0, 4, 4, 2, true},
        {&clave__queue_order_write, 4, 3, 2, 1, true},
        {&clave__queue_order_write, 6, 0, -1, -1, true},
        /* A read for the writes before it only, and never for one with its own number. */
        {&clave__queue_order_read, 1, 1, 6, -1, true},
        {&clave__queue_order_read, 3, 2, 4, 6, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct queue_order_place at =
            clave__queue_order_locate(cases[i].rule, names, COUNT(names), names[cases[i].own]);
        assert_true(at.found);
        assert_int_equal(at.ahead, cases[i].ahead);
        assert_int_equal(at.plain, cases[i].plain);
        assert_ptr_equal(at.predecessor,
                         cases[i].predecessor < 0 ? NULL : names[cases[i].predecessor]);
        assert_ptr_equal(at.before_predecessor, cases[i].before_predecessor < 0
                                                    ? NULL
                                                    : names[cases[i].before_predecessor]);
    }
    assert_true(clave__queue_order_is_kind(&clave__queue_order_read, names[2]));
    assert_false(clave__queue_order_is_kind(&clave__queue_order_read, names[0]));
    assert_false(clave__queue_order_is_kind(&clave__queue_order_write, names[5]));
    /* The kind is that of the last base name. */
    assert_true(
        clave__queue_order_is_kind(&clave__queue_order_read, "__WRIT__1__READ__0000000002"));
    assert_false(
        clave__queue_order_is_kind(&clave__queue_order_write, "__WRIT__1__READ__0000000002"));
    assert_true(
        clave__queue_order_key(&clave__queue_order_write, "__WRIT__1__READ__0000000002").contender);
    assert_false(clave__queue_order_key(&clave__queue_order_write, "__WRIT__1__READ__2").contender);
}

/* Every kind of queue, and whatever somebody has put below its path. */
TEST(hostile_names_stop_no_queue)
{
    struct queue_order_rule unprotected;
    assert_int_equal(clave__queue_order_unprotected(&unprotected, "n_"), CLAVE_OK);
    const struct queue_order_rule *const rules[] = {
        &clave__queue_order_mutex, &clave__queue_order_read,  &clave__queue_order_write,
        &clave__queue_order_lease, &clave__queue_order_latch, &unprotected};
    static const char *const tails[] = {"-3", "", "-", "3", "-0000000001", "000000000a", "-3-3"};
    for (size_t i = 0; i < COUNT(rules); i++) {
        char own[32], names[COUNT(tails)][32];
        const char *all[COUNT(tails) + 1] = {own};
        snprintf(own, sizeof own, "%s0000000009", rules[i]->base);
        for (size_t k = 0; k < COUNT(tails); k++) {
            snprintf(names[k], sizeof names[k], "%s%s", rules[i]->base, tails[k]);
            all[k + 1] = names[k];
        }
        struct queue_order_place at =
            clave__queue_order_locate(rules[i], all, COUNT(tails) + 1, own);
        assert_true(at.found);
        assert_false(at.exhausted);
        if (rules[i] == &clave__queue_order_lease) { /* they take room, and that is all */
            assert_int_equal(at.contenders, COUNT(tails) + 1);
            continue;
        }
        assert_int_equal(at.ahead, 0);
        assert_int_equal(at.contenders, 1);
    }
}

TEST(other_children_come_last_in_the_order)
{
    static const char *const names[] = {"b", "0", "lock-0000000002", "lock--3",
                                        "a-lock-0000000001"};
    struct clave_mem mem = clave__mem_or_default(NULL);
    static const size_t expected[] = {4, 2, 1, 0, 3};
    size_t order[COUNT(names)];
    assert_int_equal(
        clave__queue_order_sort(&clave__queue_order_mutex, &mem, names, COUNT(names), order),
        CLAVE_OK);
    assert_memory_equal(order, expected, sizeof order);
}
