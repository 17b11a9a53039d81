/* What a node's name says it is, and that who holds by the table of kinds is who holds by each
 * recipe's own rule. */
#include "base/rand.h"
#include "lib/unit.h"
#include "recipe/queue/queue_kind.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define HEX "0123456789abcdef0123456789abcdef"

TEST(a_name_says_what_it_is)
{
    static const struct {
        const char *name;
        enum queue_kind kind;
    } table[] = {
        {"_c_" UUID "-lock-0000000003", QUEUE_LOCK},
        {"_c_" UUID "-latch-0000000003", QUEUE_LATCH},
        {"_c_" UUID "-priority-9-latch-0000000003", QUEUE_LATCH},
        {"_c_" UUID "-__READ__0000000003", QUEUE_READ},
        {"_c_" UUID "-__WRIT__0000000003", QUEUE_WRITE},
        {"_c_" UUID "-lease-0000000003", QUEUE_LEASE},
        {HEX "__lock__0000000003", QUEUE_KAZOO_LOCK},
        {HEX "__rlock__0000000003", QUEUE_KAZOO_READ},
        {HEX "-lock-0000000003", QUEUE_LOCK}, /* kazoo with _NODE_NAME */
        {"lock--2147483648", QUEUE_LOCK},
        {"lock-3", QUEUE_OTHER},
        {"lock-00000000031", QUEUE_OTHER},
        {"0000000003", QUEUE_OTHER},
        {"locks", QUEUE_OTHER},
        {"", QUEUE_OTHER},
    };
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(clave__queue_kind_of(table[i].name), table[i].kind);
}

TEST(the_rule_of_a_queue_is_that_of_its_kinds)
{
    assert_null(clave__queue_kind_rule(0));
    assert_null(clave__queue_kind_rule(1 << QUEUE_OTHER));
    assert_ptr_equal(clave__queue_kind_rule(1 << QUEUE_KAZOO_LOCK), &clave__queue_order_mutex);
    assert_ptr_equal(clave__queue_kind_rule(1 << QUEUE_LOCK | 1 << QUEUE_READ),
                     &clave__queue_order_write);
    assert_ptr_equal(clave__queue_kind_rule(1 << QUEUE_KAZOO_READ), &clave__queue_order_write);
    assert_ptr_equal(clave__queue_kind_rule(1 << QUEUE_LATCH | 1 << QUEUE_KAZOO_LOCK),
                     &clave__queue_order_latch);
    assert_ptr_equal(clave__queue_kind_rule(1 << QUEUE_LEASE), &clave__queue_order_lease);
}

static const struct queue_order_rule *rule_of_recipe(enum queue_kind kind)
{
    switch (kind) {
    case QUEUE_READ:
        return &clave__queue_order_read;
    case QUEUE_WRITE:
        return &clave__queue_order_write;
    case QUEUE_LATCH:
        return &clave__queue_order_latch;
    default:
        return &clave__queue_order_mutex;
    }
}

/* Queues of all kinds mixed: by the table, a node holds if and only if its recipe would find nobody
 * ahead of it. */
TEST(who_holds_is_who_has_nobody_ahead)
{
    static const char *const words[] = {"-lock-", "-__READ__", "-__WRIT__", "-latch-", "__lock__"};
    enum { MOST = 12 };
    struct rand_state rand;
    size_t holding = 0;
    clave__rand_seed(&rand, 7);
    for (int round = 0; round < 5000; round++) {
        char text[MOST][64];
        const char *names[MOST];
        size_t n = 1 + clave__rand_below(&rand, MOST), kinds = 1 + round % COUNT(words);
        unsigned before = 0;
        for (size_t i = 0; i < n; i++) {
            snprintf(text[i], sizeof text[i], "x%s%010zu", words[clave__rand_below(&rand, kinds)],
                     i);
            names[i] = text[i];
        }
        for (size_t i = 0; i < n; i++) {
            enum queue_kind kind = clave__queue_kind_of(names[i]);
            bool holds = !(before & clave__queue_kind_waits_for(kind));
            before |= 1u << kind;
            if (kind == QUEUE_KAZOO_LOCK)
                continue; /* has no rule of ours */
            struct queue_order_place at =
                clave__queue_order_locate(rule_of_recipe(kind), names, n, names[i]);
            assert_int_equal(holds, at.ahead == 0);
            holding += holds;
        }
    }
    assert_true(holding > 5000);
}

TEST(a_stock_kazoo_lock_does_not_see_other_kinds)
{
    unsigned unseen = clave__queue_kind_unseen(QUEUE_KAZOO_LOCK, HEX "__lock__0000000003");
    assert_true(unseen & 1 << QUEUE_LOCK && unseen & 1 << QUEUE_LATCH);
    assert_false(unseen & 1 << QUEUE_KAZOO_LOCK);
    assert_int_equal(clave__queue_kind_unseen(QUEUE_KAZOO_LOCK, "x__lock__0000000003"), 0);
    assert_int_equal(clave__queue_kind_unseen(QUEUE_LOCK, HEX "-lock-0000000003"), 0);
}
