/* A command under the kill policy: when it gets SIGTERM, when SIGKILL, and from whom when the
 * guardian does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clave/async/client.h"
#include "supervise/holder_policy.h"

enum { NOW = 1000, GRACE = 200, LEAD = 20, DEADLINE = 3000 };

static const struct kill_policy_terms usual = {
    .on_lost = ON_LOST_TERM, .grace_ms = GRACE, .lead_ms = LEAD, .until = CLAVE_NEVER};

static struct kill_policy running(const struct kill_policy_terms *terms)
{
    struct kill_policy l = {0};
    assert_true(clave__kill_policy_run(&l, terms, DEADLINE, NOW));
    assert_int_equal(l.phase, KILL_POLICY_RUNNING);
    return l;
}

static unsigned step(struct kill_policy *l, struct kill_policy_sight s, int64_t now)
{
    return clave__kill_policy_step(l, &s, now);
}

static void warned_and_ended_before_the_deadline(void **state)
{
    (void)state;
    struct kill_policy l = running(&usual);
    int64_t term = DEADLINE - LEAD - GRACE, kill = DEADLINE - LEAD;
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, NOW), term);
    assert_int_equal(step(&l, (struct kill_policy_sight){.deadline = DEADLINE}, term - 1), 0);
    assert_int_equal(step(&l, (struct kill_policy_sight){.deadline = DEADLINE}, term),
                     KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_DEADLINE);
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, term), kill);
    assert_int_equal(step(&l, (struct kill_policy_sight){.deadline = DEADLINE}, kill - 1), 0);
    assert_int_equal(step(&l, (struct kill_policy_sight){.deadline = DEADLINE}, kill),
                     KILL_POLICY_KILL);
    /* Again and again: what was being born when it was counted lives on. */
    assert_true(clave__kill_policy_wake_at(&l, DEADLINE, kill) <= kill + LEAD / 2);
    assert_int_equal(
        step(&l, (struct kill_policy_sight){.deadline = DEADLINE, .reaped = true}, kill + 1),
        KILL_POLICY_KILL);
    assert_int_equal(
        step(&l, (struct kill_policy_sight){.reaped = true, .nothing_left = true}, kill + 2),
        KILL_POLICY_TELL_END);
    assert_int_equal(l.phase, KILL_POLICY_ENDED);
    assert_true(clave__kill_policy_wake_at(&l, DEADLINE, kill) == CLAVE_NEVER);
}

/* A watchdog resets the machine soon after a loss: the grace is no longer than that leaves. */
static void a_lost_hold_may_leave_less_than_the_grace(void **state)
{
    (void)state;
    struct kill_policy_terms terms = usual;
    terms.grace_lost_ms = 50;
    struct kill_policy l = running(&terms);
    const struct kill_policy_sight lost = {.told_to_stop = true};
    assert_true(step(&l, lost, NOW + 10) & KILL_POLICY_TERM);
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, NOW + 10), NOW + 60);
    assert_int_equal(step(&l, lost, NOW + 60), KILL_POLICY_KILL);
    /* Asked for, the hold is kept; when it is lost after all, that counts from then. */
    l = running(&terms);
    const struct kill_policy_sight asked = {.deadline = DEADLINE, .told_to_stop = true};
    assert_true(step(&l, asked, NOW + 10) & KILL_POLICY_TERM);
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, NOW + 10), NOW + 10 + GRACE);
    assert_int_equal(step(&l, lost, NOW + 20), 0);
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, NOW + 20), NOW + 70);
}

static void the_deadline_moves_on(void **state)
{
    (void)state;
    struct kill_policy l = running(&usual);
    assert_int_equal(step(&l, (struct kill_policy_sight){.deadline = 2 * DEADLINE}, DEADLINE), 0);
    assert_int_equal(clave__kill_policy_wake_at(&l, 2 * DEADLINE, DEADLINE),
                     2 * DEADLINE - LEAD - GRACE);
    /* That there is none any more does not move it. */
    assert_int_equal(clave__kill_policy_wake_at(&l, KILL_POLICY_NO_DEADLINE, DEADLINE),
                     2 * DEADLINE - LEAD - GRACE);
}

/* The guardian was stopped, or the machine asleep. */
static void one_that_is_late_kills_at_once(void **state)
{
    (void)state;
    struct kill_policy l = running(&usual);
    assert_int_equal(step(&l, (struct kill_policy_sight){.deadline = DEADLINE}, DEADLINE),
                     KILL_POLICY_TELL | KILL_POLICY_TERM | KILL_POLICY_KILL);
    struct kill_policy never = {0};
    assert_false(clave__kill_policy_run(&never, &usual, DEADLINE, DEADLINE - LEAD - GRACE));
    assert_int_equal(never.phase, KILL_POLICY_ENDED);
    assert_int_equal(never.cause, CAUSE_DEADLINE);
}

static void a_lost_lock_leaves_a_grace(void **state)
{
    (void)state;
    struct kill_policy l = running(&usual);
    struct kill_policy_sight lost = {.told_to_stop = true};
    assert_int_equal(step(&l, lost, NOW + 1), KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_LOST);
    assert_int_equal(step(&l, lost, NOW + GRACE), 0);
    assert_int_equal(step(&l, lost, NOW + 1 + GRACE), KILL_POLICY_KILL);

    struct kill_policy_terms terms = usual;
    terms.on_lost = ON_LOST_KILL;
    l = running(&terms);
    assert_int_equal(step(&l, lost, NOW + 1), KILL_POLICY_TELL | KILL_POLICY_KILL);
    terms.on_lost = ON_LOST_IGNORE;
    l = running(&terms);
    assert_int_equal(step(&l, lost, 2 * DEADLINE), 0);
    assert_true(clave__kill_policy_wake_at(&l, DEADLINE, NOW) == CLAVE_NEVER);
}

static void what_outlives_the_command_or_the_holder_is_ended(void **state)
{
    (void)state;
    struct kill_policy l = running(&usual);
    assert_int_equal(step(&l, (struct kill_policy_sight){.reaped = true}, NOW),
                     KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_NONE);
    l = running(&usual);
    assert_int_equal(step(&l, (struct kill_policy_sight){.alone = true}, NOW),
                     KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_KILLED);
    struct kill_policy idle = {0};
    assert_int_equal(step(&idle, (struct kill_policy_sight){.alone = true}, NOW), 0);
    assert_int_equal(idle.phase, KILL_POLICY_ENDED);
}

/* Whatever --on-lost says: the hold goes on until nothing of the command is left. */
static void the_end_of_the_parent_ends_it(void **state)
{
    (void)state;
    const struct kill_policy_sight orphan = {.deadline = DEADLINE, .parent_ended = true};
    struct kill_policy_terms terms = usual;
    for (int n = 0; n < 3; n++) {
        terms.on_lost = (enum on_lost[]){ON_LOST_TERM, ON_LOST_KILL, ON_LOST_IGNORE}[n];
        struct kill_policy l = running(&terms);
        assert_int_equal(step(&l, orphan, NOW + 1), KILL_POLICY_TELL | KILL_POLICY_TERM);
        assert_int_equal(l.cause, CAUSE_PARENT);
        assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, NOW + 1), NOW + 1 + GRACE);
        assert_int_equal(step(&l, orphan, NOW + GRACE), 0);
        assert_int_equal(step(&l, orphan, NOW + 1 + GRACE), KILL_POLICY_KILL);
    }
    struct kill_policy idle = {0};
    assert_int_equal(step(&idle, orphan, NOW), 0);
    assert_int_equal(idle.phase, KILL_POLICY_IDLE);
    struct holder_policy s;
    clave__holder_policy_begin(&s, &usual);
    assert_true(clave__holder_policy_was_cut_short(&s, CAUSE_PARENT));
}

static void a_maximum_hold_is_the_commands_in_full(void **state)
{
    (void)state;
    const struct kill_policy_sight held = {.deadline = DEADLINE};
    struct kill_policy_terms terms = usual;
    terms.until = NOW + GRACE;
    struct kill_policy l = running(&terms);
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, NOW), terms.until);
    assert_int_equal(step(&l, held, terms.until - 1), 0);
    assert_int_equal(step(&l, held, terms.until), KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_MAX_HOLD);
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, terms.until), terms.until + GRACE);
    assert_int_equal(step(&l, held, terms.until + GRACE - 1), 0);
    assert_int_equal(step(&l, held, terms.until + GRACE), KILL_POLICY_KILL);
    /* It is over before the command has been started. */
    struct kill_policy never = {0};
    assert_false(clave__kill_policy_run(&never, &terms, DEADLINE, terms.until));
}

/* The guardian was stopped beyond it, and clave lock was killed meanwhile: no further grace. */
static void a_maximum_hold_counts_whatever_ends_the_command(void **state)
{
    (void)state;
    const struct kill_policy_sight alone = {.deadline = DEADLINE, .alone = true};
    struct kill_policy_terms terms = usual;
    terms.until = NOW + GRACE;
    struct kill_policy l = running(&terms);
    assert_int_equal(step(&l, alone, terms.until + GRACE - 1), KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_KILLED);
    assert_int_equal(step(&l, alone, terms.until + GRACE), KILL_POLICY_KILL);
}

/* Its grace lasts no longer than the hold is certain. */
static void the_deadline_ends_the_grace_of_a_maximum_hold(void **state)
{
    (void)state;
    const struct kill_policy_sight held = {.deadline = DEADLINE};
    struct kill_policy_terms terms = usual;
    terms.on_lost = ON_LOST_KILL; /* so that the deadline does not warn first */
    terms.until = DEADLINE - LEAD - GRACE / 2;
    struct kill_policy l = running(&terms);
    assert_int_equal(step(&l, held, terms.until), KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_MAX_HOLD);
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, terms.until), DEADLINE - LEAD);
    assert_int_equal(step(&l, held, DEADLINE - LEAD), KILL_POLICY_KILL);
}

static void a_second_sigterm_ends_it_after_the_grace(void **state)
{
    (void)state;
    const struct kill_policy_sight held = {.deadline = DEADLINE};
    struct kill_policy l = running(&usual);
    assert_false(clave__kill_policy_ask(&l, NOW));
    /* As long as it likes: it was told once, if by two signals. */
    assert_false(clave__kill_policy_ask(&l, NOW + 1));
    assert_int_equal(step(&l, held, NOW + GRACE), 0);
    assert_true(clave__kill_policy_ask(&l, NOW + GRACE / 2));
    assert_int_equal(step(&l, held, NOW + GRACE / 2), KILL_POLICY_TELL | KILL_POLICY_TERM);
    assert_int_equal(l.cause, CAUSE_SIGNAL);
    /* What comes after it changes nothing: the grace counts from the first. */
    assert_false(clave__kill_policy_ask(&l, NOW + GRACE - 1));
    assert_int_equal(clave__kill_policy_wake_at(&l, DEADLINE, NOW + GRACE - 1), NOW + GRACE);
    assert_int_equal(step(&l, held, NOW + GRACE - 1), 0);
    assert_int_equal(step(&l, held, NOW + GRACE), KILL_POLICY_KILL);

    l = running(&usual);
    assert_false(clave__kill_policy_ask(&l, NOW));
    assert_true(clave__kill_policy_ask(&l, NOW + 2 * GRACE));
    assert_int_equal(step(&l, held, NOW + 2 * GRACE),
                     KILL_POLICY_TELL | KILL_POLICY_TERM | KILL_POLICY_KILL);
    /* It is nobody's loss. */
    struct holder_policy s;
    clave__holder_policy_begin(&s, &usual);
    assert_false(clave__holder_policy_was_cut_short(&s, CAUSE_SIGNAL));
}

/* ---- without the guardian ------------------------------------------------------------------ */

static void a_guardian_that_does_not_answer_is_overdue(void **state)
{
    (void)state;
    struct holder_policy s;
    clave__holder_policy_begin(&s, &usual);
    assert_true(clave__holder_policy_limit(&s) == CLAVE_NEVER);
    assert_int_equal(clave__holder_policy_extend(&s, DEADLINE), DEADLINE);
    /* Behind the guardian's moment, and before the deadline. */
    assert_int_equal(clave__holder_policy_limit(&s), DEADLINE - LEAD / 2);
    assert_false(clave__holder_policy_is_overdue(&s, DEADLINE - LEAD / 2 - 1));
    assert_true(clave__holder_policy_is_overdue(&s, DEADLINE - LEAD / 2));
    assert_int_equal(s.phase, HOLD_POLICY_SWEEPING);
    assert_true(clave__holder_policy_was_cut_short(&s, CAUSE_NONE));
}

/* So what is to be done while it is held, as putting a run on record, can be done. */
static void behind_a_maximum_the_hold_is_not_lost(void **state)
{
    (void)state;
    struct kill_policy_terms terms = usual;
    struct holder_policy s;
    terms.until = NOW + GRACE;
    clave__holder_policy_begin(&s, &terms);
    assert_int_equal(clave__holder_policy_extend(&s, DEADLINE), terms.until);
    /* The command has had its grace, and the guardian a moment. */
    assert_false(clave__holder_policy_is_overdue(&s, terms.until + GRACE + LEAD / 2 - 1));
    assert_true(clave__holder_policy_is_overdue(&s, terms.until + GRACE + LEAD / 2));
    assert_true(clave__holder_policy_was_cut_short(&s, CAUSE_NONE));
    assert_false(s.lost);
    /* Unless it is, by then. */
    clave__holder_policy_begin(&s, &terms);
    clave__holder_policy_extend(&s, DEADLINE);
    assert_true(clave__holder_policy_is_overdue(&s, DEADLINE));
    assert_true(s.lost);
}

static void a_node_that_is_deleted_leaves_a_grace(void **state)
{
    (void)state;
    struct holder_policy s;
    clave__holder_policy_begin(&s, &usual);
    clave__holder_policy_extend(&s, DEADLINE);
    clave__holder_policy_lose(&s, NOW);
    assert_int_equal(clave__holder_policy_limit(&s), NOW + GRACE + LEAD / 2);
}

/* The machine slept, its guardian was stopped: what is lost by its deadline has no grace left. */
static void a_deadline_that_has_passed_leaves_none(void **state)
{
    (void)state;
    struct holder_policy s;
    clave__holder_policy_begin(&s, &usual);
    clave__holder_policy_extend(&s, DEADLINE);
    clave__holder_policy_lose(&s, DEADLINE + 1);
    assert_true(clave__holder_policy_is_overdue(&s, DEADLINE + 1));
}

static void what_looks_after_itself_is_let_be(void **state)
{
    (void)state;
    struct kill_policy_terms terms = usual;
    struct holder_policy s;
    terms.on_lost = ON_LOST_IGNORE;
    clave__holder_policy_begin(&s, &terms);
    clave__holder_policy_extend(&s, DEADLINE);
    clave__holder_policy_lose(&s, NOW);
    assert_false(clave__holder_policy_is_overdue(&s, 2 * DEADLINE));
    clave__holder_policy_bereave(&s);
    assert_int_equal(s.phase, HOLD_POLICY_SWEEPING);
}

/* sudo within a lock: attempts become rare while nothing else is left, and the guardian that says
 * so is not taken for stopped. */
static void what_cannot_be_killed_is_tried_ever_more_rarely(void **state)
{
    (void)state;
    const struct kill_policy_sight late = {.deadline = DEADLINE};
    struct kill_policy l = running(&usual);
    assert_int_equal(step(&l, late, DEADLINE),
                     KILL_POLICY_TELL | KILL_POLICY_TERM | KILL_POLICY_KILL);
    int64_t now = DEADLINE, last = 0;
    for (int i = 0; i < 12; i++) {
        clave__kill_policy_killed(&l, true);
        int64_t pace = clave__kill_policy_wake_at(&l, DEADLINE, now) - now;
        assert_true(pace > last || pace == KILL_POLICY_SLOWEST_MS);
        last = pace;
        now += pace;
        assert_int_equal(step(&l, late, now), KILL_POLICY_KILL);
    }
    assert_int_equal(last, KILL_POLICY_SLOWEST_MS);
    /* Something else is there again. */
    clave__kill_policy_killed(&l, false);
    assert_true(clave__kill_policy_wake_at(&l, DEADLINE, now) - now <= LEAD / 2);

    struct holder_policy s;
    clave__holder_policy_begin(&s, &usual);
    clave__holder_policy_extend(&s, DEADLINE);
    clave__holder_policy_excuse(&s);
    assert_true(clave__holder_policy_limit(&s) == CLAVE_NEVER);
    assert_false(clave__holder_policy_is_overdue(&s, DEADLINE));
    clave__holder_policy_lose(&s, DEADLINE);
    assert_false(clave__holder_policy_is_overdue(&s, 2 * DEADLINE));
    assert_true(clave__holder_policy_was_cut_short(&s, CAUSE_NONE));
}

static void times_follow_from_the_session(void **state)
{
    (void)state;
    assert_int_equal(clave__kill_policy_grace(4000, -1), 500);
    assert_int_equal(clave__kill_policy_grace(400000, -1), 5000);
    assert_int_equal(clave__kill_policy_grace(4000, 3000), 1000);
    assert_int_equal(clave__kill_policy_grace(4000, 0), 0);
    assert_int_equal(clave__kill_policy_lead(400), 20);
    assert_int_equal(clave__kill_policy_lead(2000), 50);
    assert_int_equal(clave__kill_policy_lead(40000), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warned_and_ended_before_the_deadline),
        cmocka_unit_test(a_lost_hold_may_leave_less_than_the_grace),
        cmocka_unit_test(the_deadline_moves_on),
        cmocka_unit_test(one_that_is_late_kills_at_once),
        cmocka_unit_test(a_lost_lock_leaves_a_grace),
        cmocka_unit_test(what_outlives_the_command_or_the_holder_is_ended),
        cmocka_unit_test(the_end_of_the_parent_ends_it),
        cmocka_unit_test(a_maximum_hold_is_the_commands_in_full),
        cmocka_unit_test(a_maximum_hold_counts_whatever_ends_the_command),
        cmocka_unit_test(the_deadline_ends_the_grace_of_a_maximum_hold),
        cmocka_unit_test(a_second_sigterm_ends_it_after_the_grace),
        cmocka_unit_test(a_guardian_that_does_not_answer_is_overdue),
        cmocka_unit_test(behind_a_maximum_the_hold_is_not_lost),
        cmocka_unit_test(a_node_that_is_deleted_leaves_a_grace),
        cmocka_unit_test(a_deadline_that_has_passed_leaves_none),
        cmocka_unit_test(what_looks_after_itself_is_let_be),
        cmocka_unit_test(what_cannot_be_killed_is_tried_ever_more_rarely),
        cmocka_unit_test(times_follow_from_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
