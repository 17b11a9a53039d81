/* fair_reading_test.c - how much one turn of a server's loop reads, and of which connections. */
#include "rig.h"

#include "runtime/server/fair_reading.h"

enum { ALL = 512 * 1024, READERS = 200 };

static struct fair_reading turns;
static struct fair_reader readers[READERS];
static size_t resumed[READERS], nresumed;

static int set_up(void **state)
{
    (void)state;
    clave__fair_reading_init(&turns);
    for (size_t i = 0; i < READERS; i++)
        clave__fair_reader_init(&readers[i]);
    return 0;
}

static size_t share(size_t i)
{
    return clave__fair_reading_share(&turns, &readers[i], 0);
}

static void note_resumed(struct fair_reader *c)
{
    resumed[nresumed++] = (size_t)(c - readers);
}

static void begin_turn(void)
{
    nresumed = 0;
    clave__fair_reading_begin_turn(&turns, 0, note_resumed);
}

/* One reads all that there is. */
static void exhaust(size_t i)
{
    assert_true(share(i) > 0);
    clave__fair_reading_count(&turns, ALL);
}

TEST_WITH(what_one_has_left_is_read_by_the_next, set_up, NULL)
{
    const size_t all = share(0);
    assert_int_equal(all, ALL);
    clave__fair_reading_count(&turns, 1000);
    assert_in_range(share(1), all / 2, all - 1000 - 1); /* a read costs, too */
    clave__fair_reading_begin_turn(&turns, 0, note_resumed);
    assert_int_equal(share(0), all);
    assert_in_range(clave__fair_reading_share(&turns, &readers[0], 10), all / 2, all - 10);
}

TEST_WITH(who_is_declined_is_read_first, set_up, NULL)
{
    exhaust(0);
    assert_int_equal(share(1), 0);
    assert_true(clave__fair_reader_is_declined(&readers[1]));
    assert_true(clave__fair_reading_has_more(&turns));
    begin_turn();
    assert_int_equal(nresumed, 1);
    assert_int_equal(resumed[0], 1);
    assert_false(clave__fair_reader_is_declined(&readers[1]));
    assert_int_equal(share(2), 0); /* however much there is left: reader 1 comes first */
    assert_int_equal(share(1), ALL);
    assert_int_equal(share(3), ALL);
}

TEST_WITH(who_is_overdue_reads_though_nothing_is_left, set_up, NULL)
{
    exhaust(0);
    assert_int_equal(share(1), 0);
    begin_turn();
    clave__fair_reading_count(&turns, ALL);
    assert_in_range(share(1), 1, ALL / 2);
    assert_int_equal(share(2), 0);
}

TEST_WITH(who_has_had_some_comes_after_the_others, set_up, NULL)
{
    exhaust(0);
    assert_int_equal(share(0), 0);
    assert_int_equal(share(1), 0);
    begin_turn();
    assert_int_equal(nresumed, 1);
    assert_int_equal(resumed[0], 1);
    assert_true(share(1) > 0);
    begin_turn();
    assert_int_equal(nresumed, 1);
    assert_int_equal(resumed[0], 0);
}

TEST_WITH(nobody_waits_for_one_that_does_not_read, set_up, NULL)
{
    exhaust(0);
    assert_int_equal(share(1), 0);
    assert_int_equal(share(2), 0);
    begin_turn();
    clave__fair_reading_pass(&turns, &readers[1]);
    assert_int_equal(share(3), 0);
    clave__fair_reading_leave(&turns, &readers[2]);
    assert_true(share(4) > 0);
    clave__fair_reading_leave(&turns, &readers[3]);
    assert_false(clave__fair_reading_has_more(&turns));
}

TEST_WITH(thousands_are_not_looked_at_in_one_turn, set_up, NULL)
{
    exhaust(0);
    for (size_t i = 1; i < READERS; i++)
        assert_int_equal(share(i), 0);
    begin_turn();
    const size_t first = nresumed;
    assert_in_range(first, 1, READERS / 2 + READERS / 4);
    for (size_t i = 0; i < first; i++) {
        assert_int_equal(resumed[i], i + 1);
        assert_true(share(resumed[i]) > 0);
    }
    begin_turn();
    assert_int_equal(first + nresumed, READERS - 1);
}
