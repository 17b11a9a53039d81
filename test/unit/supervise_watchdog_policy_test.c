/* When the watchdog of the machine is fed, and what that promises: the arithmetic at the head of
 * watchdog_policy.h, played with deadlines that move as those of a session do. */
#include "clave/async/client.h"
#include "lib/unit.h"
#include "supervise/kill_policy.h"
#include "supervise/watchdog_policy.h"

enum { NOW = 100000 };
/* As long as devices with whole seconds allow, and as tests and the simulated world have them. */
static const int64_t sessions[] = {400, 8000, 10000, 30000, 40000, 60000};
#define EACH_SESSION(i) (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++)

static struct watchdog_policy begun(int64_t session, int64_t deadline)
{
    struct watchdog_policy p;
    assert_true(clave__watchdog_policy_begin(&p, session, session / 8, deadline, NOW));
    return p;
}

static unsigned step(struct watchdog_policy *p, int64_t deadline, bool nothing_left, int64_t now)
{
    const struct watchdog_sight s = {.deadline = deadline, .nothing_left = nothing_left};
    return clave__watchdog_policy_step(p, &s, now);
}

TEST(it_fires_before_the_deadline_that_does_not_move)
{
    for
        EACH_SESSION(i)
        {
            int64_t t = sessions[i], w = t / 8, deadline = NOW + t * 5 / 8, fed = NOW, told = 0;
            struct watchdog_policy p = begun(t, deadline);
            for (int64_t now = NOW; now <= deadline; now = clave__watchdog_policy_wake_at(&p)) {
                unsigned todo = step(&p, deadline, false, now);
                if (todo & WATCHDOG_FEED)
                    fed = now;
                told += (todo & WATCHDOG_TELL) != 0;
            }
            assert_int_equal(told, 1);
            assert_true(fed + w <= deadline - t / 16);
            assert_true(fed + w > deadline - t / 16 - t / 32 - 1);
        }
}

TEST(one_that_can_be_ended_is_killed_before_it_fires)
{
    for
        EACH_SESSION(i)
        {
            int64_t t = sessions[i], deadline = NOW + t * 5 / 8;
            const struct kill_policy_terms terms = {.on_lost = ON_LOST_TERM,
                                                    .grace_ms = clave__watchdog_policy_grace(t),
                                                    .lead_ms = clave__watchdog_policy_lead(t),
                                                    .until = CLAVE_NEVER};
            struct kill_policy k = {0};
            const struct kill_policy_sight s = {.deadline = deadline};
            assert_true(clave__kill_policy_run(&k, &terms, deadline, NOW));
            int64_t term = clave__kill_policy_wake_at(&k, deadline, NOW);
            assert_true(term >= deadline - t / 4 - 1);
            assert_int_equal(clave__kill_policy_step(&k, &s, term),
                             KILL_POLICY_TELL | KILL_POLICY_TERM);
            int64_t kill = clave__kill_policy_wake_at(&k, deadline, term);
            assert_true(clave__kill_policy_step(&k, &s, kill) & KILL_POLICY_KILL);
            assert_true(kill <= deadline - t / 16 - t / 32 - t / 32);
        }
}

/* In an ensemble the deadline is 5/8 of the session away when a heartbeat is answered, and the next
 * answer comes a quarter, and three times the time of an answer, later (heartbeat.c). */
TEST(while_heartbeats_are_answered_it_never_fires)
{
    for
        EACH_SESSION(i)
        {
            int64_t t = sessions[i], w = t / 8, slowest = t / 24, fed = NOW, answered = NOW;
            int64_t deadline = NOW + t * 5 / 8;
            struct watchdog_policy p = begun(t, deadline);
            for (int64_t now = NOW; now < NOW + 10 * t; now++) {
                assert_true(deadline - now >= t / 4 - 3);
                if (now == answered + t / 4 + 3 * slowest) {
                    answered = now;
                    deadline = now + t * 5 / 8;
                }
                if (step(&p, deadline, false, now) & WATCHDOG_FEED)
                    fed = now;
                assert_true(now - fed <= w / 4 + 1);
            }
        }
}

TEST(it_is_fed_again_when_the_deadline_moves_on)
{
    int64_t t = 8000, deadline = NOW + 2000;
    struct watchdog_policy p = begun(t, deadline);
    assert_int_equal(step(&p, deadline, false, NOW + 249), 0);
    assert_int_equal(step(&p, deadline, false, NOW + 500), WATCHDOG_FEED);
    assert_int_equal(step(&p, deadline, false, NOW + 750), WATCHDOG_TELL);
    assert_int_equal(p.phase, WATCHDOG_STARVED);
    assert_int_equal(clave__watchdog_policy_wake_at(&p), NOW + 750 + 62);
    assert_int_equal(step(&p, deadline, false, NOW + 812), 0);
    assert_int_equal(step(&p, deadline + 1000, false, NOW + 874), WATCHDOG_FEED);
    assert_int_equal(p.phase, WATCHDOG_FED);
}

TEST(a_lost_hold_is_not_fed_for)
{
    struct watchdog_policy p = begun(8000, NOW + 5000);
    assert_int_equal(step(&p, KILL_POLICY_NO_DEADLINE, false, NOW + 250), WATCHDOG_TELL);
    assert_true(clave__watchdog_policy_grace_lost(1000) <= 1000 - 1000 / 4 - 1000 / 4);
}

/* The lock is kept, by heartbeats that go on: only the reset makes room for another. */
TEST(unhealthy_work_that_cannot_be_killed_is_not_fed_for)
{
    struct watchdog_policy p = begun(8000, NOW + 5000);
    const struct watchdog_sight worthless = {.deadline = NOW + 5000, .worthless = true};
    assert_int_equal(clave__watchdog_policy_step(&p, &worthless, NOW + 250), WATCHDOG_TELL);
    assert_int_equal(p.phase, WATCHDOG_STARVED);
}

TEST(it_stops_when_nothing_is_left_and_only_then)
{
    struct watchdog_policy p = begun(8000, NOW + 5000);
    assert_int_equal(step(&p, NOW + 5000, true, NOW + 1), WATCHDOG_DISARM);
    assert_int_equal(p.phase, WATCHDOG_OFF);
    assert_int_equal(step(&p, NOW + 5000, true, NOW + 2), 0);
    assert_true(clave__watchdog_policy_wake_at(&p) == CLAVE_NEVER);
    p = begun(8000, NOW + 2000);
    (void)step(&p, NOW + 2000, false, NOW + 1000);
    assert_int_equal(p.phase, WATCHDOG_STARVED);
    assert_int_equal(step(&p, NOW + 2000, true, NOW + 1001), WATCHDOG_DISARM);
}

TEST(it_does_not_begin_too_late)
{
    struct watchdog_policy p;
    assert_true(clave__watchdog_policy_begin(&p, 8000, 1000, NOW + 1500, NOW));
    assert_false(clave__watchdog_policy_begin(&p, 8000, 1000, NOW + 1499, NOW));
    assert_false(clave__watchdog_policy_begin(&p, 8000, 1000, KILL_POLICY_NO_DEADLINE, NOW));
    assert_int_equal(p.phase, WATCHDOG_OFF);
}
