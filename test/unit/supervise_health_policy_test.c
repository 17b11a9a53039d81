/* The health of work under a hold: when it is checked, when a candidate stands, and when a hold has
 * to end. */
#include "clave/async/client.h"
#include "lib/unit.h"
#include "supervise/health_policy.h"
#include "supervise/holder_policy.h"

enum { NOW = 1000, EVERY = 100, TIMEOUT = 40, GRACE = 250, FAILS = 3 };

static const struct health_terms usual = {
    .every_ms = EVERY, .timeout_ms = TIMEOUT, .grace_ms = GRACE, .fails = FAILS};

static struct health_policy begun(void)
{
    struct health_policy p;
    clave__health_policy_begin(&p, &usual, NOW);
    assert_int_equal(p.phase, HEALTH_UNTRIED);
    return p;
}

/* Lets one check run that ends at once. Returns when it began. */
static int64_t check(struct health_policy *p, bool passes)
{
    int64_t at = clave__health_policy_wake_at(p);
    while (clave__health_policy_step(p, at) != HEALTH_START_CHECK) {
        assert_true(clave__health_policy_wake_at(p) > at); /* the end of the grace */
        at = clave__health_policy_wake_at(p);
    }
    clave__health_policy_ended(p, passes);
    return at;
}

/* A command that runs and was healthy at its first check. Returns when that began. */
static int64_t alive(struct health_policy *p)
{
    *p = begun();
    check(p, true);
    clave__health_policy_run(p, NOW + 1);
    int64_t at = check(p, true);
    assert_int_equal(p->phase, HEALTH_ALIVE);
    return at;
}

TEST(the_first_check_is_due_at_once_and_the_next_a_period_later)
{
    struct health_policy p = begun();
    assert_int_equal(clave__health_policy_wake_at(&p), NOW);
    assert_int_equal(clave__health_policy_step(&p, NOW), HEALTH_START_CHECK);
    assert_int_equal(clave__health_policy_step(&p, NOW + 1), 0);
    clave__health_policy_ended(&p, true);
    assert_int_equal(clave__health_policy_wake_at(&p), NOW + EVERY);
    assert_int_equal(clave__health_policy_step(&p, NOW + EVERY - 1), 0);
    assert_int_equal(clave__health_policy_step(&p, NOW + EVERY), HEALTH_START_CHECK);
}

TEST(a_candidate_stands_while_it_is_fit)
{
    struct health_policy p = begun();
    static const struct {
        bool passes;
        enum health_phase then;
    } row[] = {
        {false, HEALTH_UNFIT}, /* the first one decides */
        {false, HEALTH_UNFIT}, {true, HEALTH_FIT},  {false, HEALTH_FIT}, {false, HEALTH_FIT},
        {true, HEALTH_FIT},    {false, HEALTH_FIT}, {false, HEALTH_FIT}, {false, HEALTH_UNFIT},
        {false, HEALTH_UNFIT}, {true, HEALTH_FIT},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        check(&p, row[i].passes);
        assert_int_equal(p.phase, row[i].then);
    }
}

TEST(too_many_failures_in_a_row_end_a_hold_for_good)
{
    struct health_policy p;
    int64_t good = alive(&p), last = 0;
    for (int i = 1; i < FAILS; i++)
        check(&p, false);
    assert_int_equal(p.phase, HEALTH_ALIVE);
    check(&p, true);
    for (int i = 1; i <= FAILS; i++) {
        assert_int_equal(p.phase, HEALTH_ALIVE);
        last = check(&p, false);
    }
    assert_int_equal(p.phase, HEALTH_OVER);
    assert_int_equal(last, good + (2 * FAILS) * EVERY);
    assert_true(clave__health_policy_wake_at(&p) == CLAVE_NEVER);
    assert_int_equal(clave__health_policy_step(&p, last + 10 * EVERY), 0);
}

TEST(failures_in_the_grace_do_not_count)
{
    struct health_policy p = begun();
    check(&p, true);
    clave__health_policy_run(&p, NOW + 1);
    int64_t at = NOW;
    while (at + EVERY < NOW + 1 + GRACE) {
        at = check(&p, false);
        assert_int_equal(p.phase, HEALTH_STARTING);
        assert_int_equal(p.failures, 0);
    }
    for (int i = 1; i <= FAILS; i++) {
        assert_int_not_equal(p.phase, HEALTH_OVER);
        check(&p, false);
    }
    assert_int_equal(p.phase, HEALTH_OVER);
}

TEST(the_grace_is_over_with_the_first_check_that_passes)
{
    struct health_policy p;
    alive(&p);
    for (int i = 1; i <= FAILS; i++)
        check(&p, false);
    assert_int_equal(p.phase, HEALTH_OVER);
}

/* It asked a machine that did not run the command yet. */
TEST(a_check_of_before_the_command_does_not_count)
{
    struct health_policy p = begun();
    check(&p, true);
    assert_int_equal(clave__health_policy_step(&p, NOW + EVERY), HEALTH_START_CHECK);
    clave__health_policy_run(&p, NOW + EVERY + 1);
    clave__health_policy_ended(&p, true);
    assert_int_equal(p.phase, HEALTH_STARTING);
    assert_int_equal(clave__health_policy_wake_at(&p), NOW + 2 * EVERY);
    check(&p, true);
    assert_int_equal(p.phase, HEALTH_ALIVE);
}

TEST(a_check_that_hangs_has_failed)
{
    struct health_policy p;
    int64_t at = alive(&p) + EVERY;
    for (int i = 1; i <= FAILS; i++, at += EVERY) {
        assert_int_equal(clave__health_policy_step(&p, at), HEALTH_START_CHECK);
        assert_int_equal(clave__health_policy_wake_at(&p), at + TIMEOUT);
        assert_int_equal(clave__health_policy_step(&p, at + TIMEOUT), HEALTH_KILL_CHECK);
        assert_int_equal(p.failures, i);
        clave__health_policy_ended(&p, true); /* it was killed: too late */
        assert_int_equal(p.failures, i);
    }
    assert_int_equal(p.phase, HEALTH_OVER);
}

TEST(a_check_that_cannot_be_killed_fails_again_each_period)
{
    struct health_policy p;
    int64_t at = alive(&p) + EVERY;
    assert_int_equal(clave__health_policy_step(&p, at), HEALTH_START_CHECK);
    at += TIMEOUT;
    assert_int_equal(clave__health_policy_step(&p, at), HEALTH_KILL_CHECK);
    for (int i = 2; i <= FAILS; i++) {
        assert_int_equal(clave__health_policy_wake_at(&p), at + EVERY);
        at += EVERY;
        assert_int_equal(clave__health_policy_step(&p, at), 0);
        assert_int_equal(p.failures, i);
    }
    assert_int_equal(p.phase, HEALTH_OVER);
}

/* The process was stopped, and the check has ended in the meantime. */
TEST(one_that_ended_in_time_passes_however_late_it_is_seen)
{
    struct health_policy p;
    int64_t at = alive(&p) + EVERY;
    assert_int_equal(clave__health_policy_step(&p, at), HEALTH_START_CHECK);
    clave__health_policy_ended(&p, true);
    assert_int_equal(clave__health_policy_step(&p, at + 20 * EVERY), HEALTH_START_CHECK);
    assert_int_equal(p.failures, 0);
}

/* ---- the end of a hold that is not lost ------------------------------------------------------ */

TEST(a_guardian_that_does_not_end_it_is_overdue)
{
    const struct kill_policy_terms terms = {
        .on_lost = ON_LOST_TERM, .grace_ms = 200, .lead_ms = 20, .until = CLAVE_NEVER};
    struct holder_policy h;
    clave__holder_policy_begin(&h, &terms);
    clave__holder_policy_extend(&h, 100000); /* the servers go on confirming the session */
    clave__holder_policy_end(&h, NOW);
    int64_t limit = clave__holder_policy_limit(&h);
    assert_true(limit > NOW + 200 && limit < NOW + 200 + 20);
    clave__holder_policy_end(&h, NOW + 100); /* the first order counts */
    clave__holder_policy_extend(&h, 200000);
    assert_int_equal(clave__holder_policy_limit(&h), limit);
    struct holder_policy watched = h;
    clave__holder_policy_watch(&watched); /* one that only takes its time is not to be killed */
    assert_true(clave__holder_policy_limit(&watched) > 200000 - terms.lead_ms);
    assert_false(clave__holder_policy_is_overdue(&h, limit - 1));
    assert_true(clave__holder_policy_is_overdue(&h, limit));
    assert_false(h.lost);
}
