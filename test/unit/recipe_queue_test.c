/* Who stands where: Curator's sort rule, kazoo's names, foreign names, used-up counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipe/kazoo.h"
#include "recipe/queue.h"

#define UUID "_c_2f4a7c1e-9d53-4b0a-8a35-000000000000-"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static void key_is_the_text_behind_the_last_base_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key;
        bool plain, exhausted;
    } cases[] = {
        {UUID "lock-0000000007", "0000000007", true, false},
        {"lock-0000000007", "0000000007", true, false},
        /* The last occurrence counts. */
        {"lock-9-lock-0000000001", "0000000001", true, false},
        {"lock-lock-lock-", "", false, false},
        /* No base name: the whole name. */
        {"0abc", "0abc", false, false},
        {"", "", false, false},
        {"lock", "lock", false, false},
        /* Not exactly ten digits. */
        {"lock-000000001", "000000001", false, false},
        {"lock-00000000011", "00000000011", false, false},
        {"lock-000000001x", "000000001x", false, false},
        /* Kazoo's own names count by their digits, only at the end. */
        {"0f3c5d__lock__0000000012", "0000000012", true, false},
        {"0f3c5d__lock__0000000012x", "0f3c5d__lock__0000000012x", false, false},
        {"0f3c5d__lock__012", "0f3c5d__lock__012", false, false},
        {"0f3c5d__rlock__0000000012", "0f3c5d__rlock__0000000012", false, false},
        /* A kazoo lock with _NODE_NAME = "-lock-". */
        {"0f3c5d-lock-0000000012", "0000000012", true, false},
        /* Counters that ran over, or are about to. */
        {UUID "lock-2147482646", "2147482646", true, false},
        {UUID "lock-2147482647", "2147482647", true, true},
        {UUID "lock-2147483647", "2147483647", true, true},
        {UUID "lock--2147483648", "-2147483648", false, true},
        {"0f3c5d__lock__-2147483648", "-2147483648", false, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct queue_key key = clave__queue_key(&clave__queue_mutex, cases[i].name);
        assert_string_equal(key.text, cases[i].key);
        assert_int_equal(key.plain, cases[i].plain);
        assert_int_equal(key.exhausted, cases[i].exhausted);
    }
}

static struct queue_place locate(const char *const *names, size_t n, const char *own)
{
    return clave__queue_locate(&clave__queue_mutex, names, n, own);
}

static void place_counts_every_name_before_ours(void **state)
{
    (void)state;
    static const char *const names[] = {
        UUID "lock-0000000004", UUID "lock-0000000001", "0f3c5d__lock__0000000003",
        UUID "lock-0000000002", UUID "lock-0000000009",
    };
    struct queue_place at = locate(names, 5, names[0]);
    assert_true(at.found);
    assert_true(at.plain);
    assert_false(at.exhausted);
    assert_int_equal(at.ahead, 3);
    assert_string_equal(at.last, names[2]);
    assert_string_equal(at.last_but, names[3]);

    at = locate(names, 5, names[3]);
    assert_int_equal(at.ahead, 1);
    assert_string_equal(at.last, names[1]);
    assert_null(at.last_but);

    at = locate(names, 5, names[1]);
    assert_int_equal(at.ahead, 0);
    assert_null(at.last);

    assert_false(locate(names, 5, UUID "lock-0000000005").found);
    assert_false(locate(names, 0, names[0]).found);
}

/* CURATOR-43: a child named "0abc" sorts first and blocks everybody; letters sort behind
 * the digits. Either way the queue is no longer plain. */
static void foreign_names_count_as_curator_counts_them(void **state)
{
    (void)state;
    static const char *const names[] = {UUID "lock-0000000001", "0abc", "readme"};
    struct queue_place at = locate(names, 3, names[0]);
    assert_int_equal(at.ahead, 0);
    assert_false(at.plain);
    static const char *const before[] = {UUID "lock-0000000001", "00000"};
    at = locate(before, 2, before[0]);
    assert_int_equal(at.ahead, 1);
    assert_string_equal(at.last, "00000");
    static const char *const behind[] = {UUID "lock-0000000001", "readme"};
    assert_int_equal(locate(behind, 2, behind[0]).ahead, 0);
    assert_false(locate(behind, 2, behind[0]).plain);
}

#define HEX "0f3c5d7e9a1b4c2d8e6f0a1b2c3d4e5f"

static void default_names_of_kazoo(void **state)
{
    (void)state;
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
        HEX "-lock-0000000012", /* as docs/recipes.md advises */
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

static void equal_keys_keep_the_servers_order(void **state)
{
    (void)state;
    static const char *const names[] = {"a-lock-0000000001", "b-lock-0000000001",
                                        "c-lock-0000000001"};
    assert_int_equal(locate(names, 3, names[0]).ahead, 0);
    struct queue_place at = locate(names, 3, names[2]);
    assert_int_equal(at.ahead, 2);
    assert_string_equal(at.last, names[1]);
    assert_string_equal(at.last_but, names[0]);
}

static void a_counter_that_ran_over_is_noticed_in_any_name(void **state)
{
    (void)state;
    static const char *const names[] = {UUID "lock-2147482000", UUID "lock--2147483648"};
    assert_true(locate(names, 2, names[0]).exhausted);
    assert_true(locate(names, 2, names[1]).exhausted);
    /* Another's number near the limit says nothing about ours. */
    static const char *const near[] = {UUID "lock-2147482000", UUID "lock-2147483000"};
    assert_false(locate(near, 2, near[0]).exhausted);
    assert_true(locate(near, 2, near[1]).exhausted);
}

static void order_is_that_of_the_places(void **state)
{
    (void)state;
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
        assert_int_equal(clave__queue_order(&clave__queue_mutex, &mem, names, n, order), CLAVE_OK);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(locate(names, n, names[order[i]]).ahead, i);
    }
}

static void the_two_kinds_of_a_read_write_lock_are_one_queue(void **state)
{
    (void)state;
    static const char *const names[] = {
        UUID "__WRIT__0000000004", UUID "__READ__0000000001", "0f3c__rlock__0000000002",
        UUID "__READ__0000000004", UUID "__WRIT__0000000003", "0abc",
        "0f3c__lock__0000000000",
    };
    static const struct {
        const struct queue_rule *rule;
        size_t own, ahead;
        int last, last_but; /* -1: none */
        bool plain;
    } cases[] = {
        /* A write waits for all before it, foreign names included; of equal numbers the server's
         * order decides. */
        {&clave__queue_write, 0, 4, 4, 2, false},
        {&clave__queue_write, 4, 3, 2, 1, false},
        {&clave__queue_write, 6, 0, -1, -1, false},
        /* A read for the writes before it only, and never for one with its own number. */
        {&clave__queue_read, 1, 1, 6, -1, true},
        {&clave__queue_read, 3, 2, 4, 6, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct queue_place at =
            clave__queue_locate(cases[i].rule, names, COUNT(names), names[cases[i].own]);
        assert_true(at.found);
        assert_int_equal(at.ahead, cases[i].ahead);
        assert_int_equal(at.plain, cases[i].plain);
        assert_ptr_equal(at.last, cases[i].last < 0 ? NULL : names[cases[i].last]);
        assert_ptr_equal(at.last_but, cases[i].last_but < 0 ? NULL : names[cases[i].last_but]);
    }
    assert_true(clave__queue_is_kind(&clave__queue_read, names[2]));
    assert_false(clave__queue_is_kind(&clave__queue_read, names[0]));
    assert_false(clave__queue_is_kind(&clave__queue_write, names[5]));
    /* What stands behind the last base name of either kind. */
    assert_string_equal(clave__queue_key(&clave__queue_read, "__READ__1__WRIT__2").text, "2");
    assert_string_equal(clave__queue_key(&clave__queue_read, "__WRIT__1__READ__2").text, "2");
    assert_string_equal(clave__queue_key(&clave__queue_write, "__WRIT__1__READ__2").text, "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_is_the_text_behind_the_last_base_name),
        cmocka_unit_test(place_counts_every_name_before_ours),
        cmocka_unit_test(foreign_names_count_as_curator_counts_them),
        cmocka_unit_test(default_names_of_kazoo),
        cmocka_unit_test(equal_keys_keep_the_servers_order),
        cmocka_unit_test(a_counter_that_ran_over_is_noticed_in_any_name),
        cmocka_unit_test(order_is_that_of_the_places),
        cmocka_unit_test(the_two_kinds_of_a_read_write_lock_are_one_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
