/* The fence before a command: when it runs, when the command may start, and what a failure does. */
#include "lib/unit.h"
#include "supervise/fence_policy.h"

static struct fence_policy owed(enum fence_fails fails)
{
    struct fence_policy p;
    clave__fence_policy_init(&p, fails);
    assert_true(clave__fence_policy_is_clear(&p));
    assert_int_equal(clave__fence_policy_step(&p, FENCE_OWED), FENCE_RUN);
    assert_false(clave__fence_policy_is_clear(&p));
    return p;
}

TEST(a_success_clears_the_way)
{
    struct fence_policy p = owed(FENCE_FAILS_EXIT);
    assert_int_equal(clave__fence_policy_step(&p, FENCE_SUCCEEDED), FENCE_GO_ON);
    assert_true(clave__fence_policy_is_clear(&p));
    /* A second mark is owed a fence of its own. */
    assert_int_equal(clave__fence_policy_step(&p, FENCE_OWED), FENCE_RUN);
    assert_false(clave__fence_policy_is_clear(&p));
}

TEST(it_is_tried_again_at_growing_intervals)
{
    static const int64_t pauses[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct fence_policy p = owed(FENCE_FAILS_WAIT);
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        assert_int_equal(clave__fence_policy_step(&p, FENCE_FAILED), FENCE_PAUSE);
        assert_int_equal(p.pause_ms, pauses[i]);
        assert_false(clave__fence_policy_is_clear(&p));
        assert_int_equal(clave__fence_policy_step(&p, FENCE_DUE), FENCE_RUN);
    }
    assert_int_equal(clave__fence_policy_step(&p, FENCE_SUCCEEDED), FENCE_GO_ON);
    assert_int_equal(clave__fence_policy_step(&p, FENCE_OWED), FENCE_RUN);
    assert_int_equal(clave__fence_policy_step(&p, FENCE_FAILED), FENCE_PAUSE);
    assert_int_equal(p.pause_ms, 1000);
}

TEST(a_failure_passes_only_if_told_to)
{
    struct fence_policy p = owed(FENCE_FAILS_PASS);
    assert_int_equal(clave__fence_policy_step(&p, FENCE_FAILED), FENCE_GO_ON);
    assert_true(clave__fence_policy_is_clear(&p));
    p = owed(FENCE_FAILS_EXIT);
    assert_int_equal(clave__fence_policy_step(&p, FENCE_FAILED), FENCE_LEAVE);
    assert_false(clave__fence_policy_is_clear(&p));
}
