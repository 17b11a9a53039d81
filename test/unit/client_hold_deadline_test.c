/* The hold deadline's arithmetic: what counts from when. */
#include "base/rand.h"
#include "client/hold/hold_deadline.h"
#include "lib/unit.h"

enum { T = 8000, MARGIN = 1000, RELAY = 2000 };

static struct hold_deadline ensemble(void)
{
    struct hold_deadline l;
    clave__hold_deadline_init(&l);
    l.timeout_ms = T;
    l.margin_ms = MARGIN;
    clave__hold_deadline_set_relay(&l, RELAY);
    return l;
}

TEST(nothing_is_known_without_a_session)
{
    struct hold_deadline l;
    clave__hold_deadline_init(&l);
    assert_int_equal(clave__hold_deadline_get(&l), INT64_MIN);
    assert_int_equal(clave__hold_deadline_contact(&l), INT64_MIN);
}

TEST(a_session_that_was_made_counts_at_once_from_its_sending)
{
    struct hold_deadline l = ensemble();
    clave__hold_deadline_made(&l, 100);
    assert_int_equal(clave__hold_deadline_get(&l), 100 + T - MARGIN);
    clave__hold_deadline_attached_read_only(&l, 500); /* there is no leader behind it */
    assert_int_equal(clave__hold_deadline_get(&l), 100 + T - MARGIN);
    assert_int_equal(clave__hold_deadline_contact(&l), 500 + T);
    assert_int_equal(clave__hold_deadline_vouch(&l, 100000), HOLD_DEADLINE_NONE);
}

/* The leader that answered may have been deposed; what it commits shows that it had not. */
TEST(an_attachment_counts_when_something_is_committed)
{
    struct hold_deadline l = ensemble();
    clave__hold_deadline_made(&l, 100);
    clave__hold_deadline_attached(&l, 3000);
    assert_int_equal(clave__hold_deadline_get(&l), 100 + T - MARGIN);
    assert_int_equal(clave__hold_deadline_contact(&l), 3000 + T);
    int64_t vouched = clave__hold_deadline_vouch(&l, 3010); /* no relay in between */
    assert_int_equal(vouched, 3000);
    clave__hold_deadline_confirmed(&l, vouched);
    assert_int_equal(clave__hold_deadline_get(&l), 3000 + T - MARGIN);
    clave__hold_deadline_attached_read_only(&l, 5000);
    assert_int_equal(clave__hold_deadline_vouch(&l, 100000), HOLD_DEADLINE_NONE);
    clave__hold_deadline_attached(&l, 6000);
    clave__hold_deadline_set_relay(&l, 0); /* it is standalone: nobody deposes it */
    assert_int_equal(clave__hold_deadline_get(&l), 6000 + T - MARGIN);
}

TEST(on_a_standalone_server_every_answer_counts)
{
    struct hold_deadline l = ensemble();
    clave__hold_deadline_made(&l, 100);
    clave__hold_deadline_answered(&l, 200, 210);
    assert_int_equal(clave__hold_deadline_get(&l), 100 + T - MARGIN);
    clave__hold_deadline_set_relay(&l, 0);
    assert_int_equal(clave__hold_deadline_get(&l), 200 + T - MARGIN);
    clave__hold_deadline_answered(&l, 300, 900);
    assert_int_equal(clave__hold_deadline_get(&l), 300 + T - MARGIN); /* not 900 */
}

/* The rule of the design: another request, sent a relay interval after the answer. */
TEST(an_answer_counts_when_a_later_one_passed_the_leader)
{
    struct hold_deadline l = ensemble();
    clave__hold_deadline_made(&l, 0);
    clave__hold_deadline_answered(&l, 1000, 1100);
    assert_int_equal(clave__hold_deadline_vouch(&l, 1100 + RELAY - 1), HOLD_DEADLINE_NONE);
    assert_int_equal(clave__hold_deadline_vouch(&l, 1100 + RELAY), 1000);
    clave__hold_deadline_confirmed(&l, HOLD_DEADLINE_NONE);
    assert_int_equal(clave__hold_deadline_get(&l), T - MARGIN);
    clave__hold_deadline_confirmed(&l, 1000);
    assert_int_equal(clave__hold_deadline_get(&l), 1000 + T - MARGIN);
    clave__hold_deadline_confirmed(&l, 500); /* it never goes back */
    assert_int_equal(clave__hold_deadline_get(&l), 1000 + T - MARGIN);
}

TEST(samples_of_the_connection_before_count_no_more)
{
    struct hold_deadline l = ensemble();
    clave__hold_deadline_made(&l, 0);
    clave__hold_deadline_answered(&l, 1000, 1100);
    clave__hold_deadline_attached(&l, 1200);
    assert_int_equal(clave__hold_deadline_vouch(&l, 100000), 1200);
}

TEST(a_timeout_agreed_anew_never_prolongs_what_is_proven)
{
    struct hold_deadline l = ensemble();
    clave__hold_deadline_made(&l, 100);
    clave__hold_deadline_agreed(&l, 3 * T, MARGIN);
    assert_int_equal(clave__hold_deadline_get(&l), 100 + T - MARGIN);
    clave__hold_deadline_agreed(&l, 3 * T, 2 * MARGIN);
    assert_int_equal(clave__hold_deadline_get(&l), 100 + T - 2 * MARGIN);
    clave__hold_deadline_agreed(&l, T, MARGIN);
    assert_true(clave__hold_deadline_get(&l) < 100 + T - 2 * MARGIN);
    clave__hold_deadline_attached(&l, 5000);
    clave__hold_deadline_confirmed(&l, clave__hold_deadline_vouch(&l, 5010));
    assert_int_equal(clave__hold_deadline_get(&l), 5000 + T - MARGIN);
}

TEST(the_margin_and_the_relay_have_defaults_and_bounds)
{
    struct hold_deadline l;
    clave__hold_deadline_init(&l);
    clave__hold_deadline_agreed(&l, T, 0);
    clave__hold_deadline_expect_relay(&l, 0);
    assert_int_equal(clave__hold_deadline_best(&l), T - T / 8 - T / 4);
    clave__hold_deadline_agreed(&l, T, T);
    clave__hold_deadline_expect_relay(&l, 10);
    assert_int_equal(clave__hold_deadline_best(&l), T - T / 2 - 10);
    clave__hold_deadline_agreed(&l, 1, 0);
    clave__hold_deadline_expect_relay(&l, 0);
    assert_int_equal(l.relay_ms, 1);
}

/* Against the rule itself, kept with every answer: never more, and little less. */
TEST(a_busy_session_keeps_samples_enough)
{
    static int64_t sent[20000], answered[20000];
    struct rand_state r;
    clave__rand_seed(&r, 1);
    for (int round = 0; round < 20; round++) {
        struct hold_deadline l = ensemble();
        int64_t now = 0;
        size_t n = 0;
        clave__hold_deadline_made(&l, 0);
        while (n < 20000) {
            int64_t at = now + (int64_t)clave__rand_below(&r, round < 10 ? 20 : 900);
            now = at + (int64_t)clave__rand_below(&r, 50);
            sent[n] = at;
            answered[n++] = now;
            clave__hold_deadline_answered(&l, at, now);
            int64_t best = HOLD_DEADLINE_NONE;
            for (size_t i = n; i-- > 0 && best == HOLD_DEADLINE_NONE;)
                if (answered[i] + RELAY <= now)
                    best = sent[i];
            int64_t vouched = clave__hold_deadline_vouch(&l, now);
            assert_true(vouched <= best);
            if (best != HOLD_DEADLINE_NONE)
                assert_true(vouched >= best - RELAY / 8 - 950);
        }
    }
}
