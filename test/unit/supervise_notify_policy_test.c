/* What a command says to its service manager: when it is ready, and when its silence ends the
 * hold. */
#include "clave/async/client.h"
#include "lib/unit.h"
#include "supervise/notify_policy.h"

enum { NOW = 1000, READY = 500, WATCHDOG = 100 };

static const struct notify_said says_ready = {.ready = true}, says_alive = {.alive = true},
                                says_stopping = {.stopping = true}, says_failed = {.failed = true};

static struct notify_policy begun(bool ready, int64_t watchdog_ms)
{
    struct notify_policy p;
    const struct notify_terms terms = {
        .ready = ready, .ready_ms = READY, .watchdog_ms = watchdog_ms};
    clave__notify_policy_begin(&p, &terms, NOW);
    assert_int_equal(p.phase, NOTIFY_STARTING);
    return p;
}

/* It is given up at `at`, and not before. */
static void assert_over_at(struct notify_policy *p, int64_t at, int why)
{
    assert_int_equal(clave__notify_policy_wake_at(p), at);
    clave__notify_policy_step(p, at - 1);
    assert_int_not_equal(p->phase, NOTIFY_OVER);
    clave__notify_policy_step(p, at);
    assert_int_equal(p->phase, NOTIFY_OVER);
    assert_int_equal(p->why, why);
    assert_true(clave__notify_policy_wake_at(p) == CLAVE_NEVER);
}

TEST(without_terms_nothing_ends_it)
{
    struct notify_policy p = begun(false, 0);
    const struct notify_said all[] = {says_alive, says_ready, says_alive, says_stopping};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(clave__notify_policy_wake_at(&p) == CLAVE_NEVER);
        clave__notify_policy_hear(&p, &all[i], NOW + (int64_t)i);
    }
    assert_true(clave__notify_policy_wake_at(&p) == CLAVE_NEVER);
    assert_int_equal(p.phase, NOTIFY_STOPPING);
    assert_true(p.ready);
}

TEST(it_has_to_be_ready_in_time)
{
    for (int watchdog = 0; watchdog <= WATCHDOG; watchdog += WATCHDOG) {
        struct notify_policy p = begun(true, watchdog);
        clave__notify_policy_hear(&p, &says_alive, NOW + 10); /* that is not to be ready */
        assert_int_equal(p.phase, NOTIFY_STARTING);
        assert_over_at(&p, NOW + READY, NOTIFY_NOT_READY);
        p = begun(true, watchdog);
        clave__notify_policy_hear(&p, &says_ready, NOW + READY - 1);
        assert_true(p.ready);
        if (watchdog > 0)
            assert_over_at(&p, NOW + READY - 1 + WATCHDOG, NOTIFY_SILENT);
        else
            assert_true(clave__notify_policy_wake_at(&p) == CLAVE_NEVER);
    }
}

/* A start that takes longer than the watchdog allows is no reason, one without an end is. */
TEST(with_a_watchdog_alone_any_sign_of_life_ends_the_start)
{
    struct notify_policy p = begun(false, WATCHDOG);
    assert_over_at(&p, NOW + READY, NOTIFY_NOT_READY);
    const struct notify_said signs[] = {says_alive, says_ready};
    for (size_t i = 0; i < 2; i++) {
        p = begun(false, WATCHDOG);
        clave__notify_policy_hear(&p, &signs[i], NOW + 300);
        assert_int_equal(p.ready, signs[i].ready);
        assert_over_at(&p, NOW + 300 + WATCHDOG, NOTIFY_SILENT);
    }
}

TEST(only_a_sign_of_life_feeds_the_watchdog)
{
    struct notify_policy p = begun(true, WATCHDOG);
    int64_t fed = NOW;
    clave__notify_policy_hear(&p, &says_ready, fed);
    for (int i = 0; i < 5; i++) {
        fed += WATCHDOG - 1;
        clave__notify_policy_step(&p, fed);
        clave__notify_policy_hear(&p, &says_alive, fed);
    }
    const struct notify_said others[] = {
        {.ready = true}, {.extend_ms = 10 * WATCHDOG}, {.ready = false}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        clave__notify_policy_hear(&p, &others[i], fed + 50);
    assert_over_at(&p, fed + WATCHDOG, NOTIFY_SILENT);
    clave__notify_policy_hear(&p, &says_alive, fed + WATCHDOG + 1); /* too late */
    assert_int_equal(p.phase, NOTIFY_OVER);
}

TEST(one_that_stops_has_a_watchdog_once_more)
{
    struct notify_policy p = begun(true, WATCHDOG);
    clave__notify_policy_hear(&p, &says_ready, NOW);
    clave__notify_policy_hear(&p, &says_stopping, NOW + 60);
    clave__notify_policy_hear(&p, &says_stopping, NOW + 90); /* said already */
    assert_int_equal(clave__notify_policy_wake_at(&p), NOW + 60 + WATCHDOG);
    clave__notify_policy_hear(&p, &(struct notify_said){.extend_ms = 300}, NOW + 100);
    clave__notify_policy_hear(&p, &says_alive, NOW + 110); /* takes nothing away */
    assert_over_at(&p, NOW + 100 + 300, NOTIFY_SILENT);
}

/* It was never ready, which it had promised to be. */
TEST(one_that_stops_before_it_was_ready_has_the_rest_of_that_time)
{
    struct notify_policy p = begun(true, 0);
    clave__notify_policy_hear(&p, &says_stopping, NOW + 60);
    assert_over_at(&p, NOW + READY, NOTIFY_NOT_READY);
}

TEST(a_start_may_ask_for_more_time)
{
    struct notify_policy p = begun(true, WATCHDOG);
    clave__notify_policy_hear(&p, &(struct notify_said){.extend_ms = 10},
                              NOW + 1); /* it has more */
    assert_int_equal(clave__notify_policy_wake_at(&p), NOW + READY);
    clave__notify_policy_hear(&p, &(struct notify_said){.extend_ms = READY}, NOW + 100);
    assert_over_at(&p, NOW + 100 + READY, NOTIFY_NOT_READY);
}

TEST(it_may_give_itself_up)
{
    for (int watchdog = 0; watchdog <= WATCHDOG; watchdog += WATCHDOG) {
        struct notify_policy p = begun(false, watchdog);
        clave__notify_policy_hear(&p, &says_ready, NOW);
        clave__notify_policy_hear(&p, &says_failed, NOW + 5);
        assert_int_equal(p.phase, NOTIFY_OVER);
        assert_int_equal(p.why, NOTIFY_FAILED);
        assert_true(clave__notify_policy_wake_at(&p) == CLAVE_NEVER);
    }
}
