/* The rules of a selector, without threads: who leads, who is interrupted, who queues again. */
#include "lib/unit.h"
#include "recipe/election/selector_state.h"

static struct selector_state standing(clave_latch_policy policy)
{
    struct selector_state c = {.policy = policy};
    assert_int_equal(clave__selector_state_requeue(&c), CLAVE_EINVAL);
    assert_int_equal(clave__selector_state_start(&c), CLAVE_OK);
    assert_int_equal(clave__selector_state_start(&c), CLAVE_EINVAL);
    assert_int_equal(clave__selector_state_begin(&c), CLAVE_OK);
    return c;
}

static struct selector_state leading(clave_latch_policy policy)
{
    struct selector_state c = standing(policy);
    assert_true(clave__selector_state_elect(&c, true));
    assert_true(clave__selector_state_leads(&c));
    assert_false(c.interrupted);
    return c;
}

TEST(a_requeue_succeeds_once_the_function_has_returned)
{
    struct selector_state c = standing(CLAVE_POLICY_STANDARD);
    assert_int_equal(clave__selector_state_requeue(&c), CLAVE_EBUSY);
    assert_true(clave__selector_state_elect(&c, true));
    assert_int_equal(clave__selector_state_requeue(&c), CLAVE_EBUSY);
    clave__selector_state_end(&c, CLAVE_OK);
    assert_false(clave__selector_state_goes_on(&c));
    assert_int_equal(clave__selector_state_requeue(&c), CLAVE_OK);
    assert_true(clave__selector_state_goes_on(&c));
    /* Behind a failure too. */
    clave__selector_state_end(&c, CLAVE_ENOAUTH);
    assert_int_equal(clave__selector_state_requeue(&c), CLAVE_OK);
    assert_true(clave__selector_state_goes_on(&c));
}

TEST(one_may_stand_again_by_itself)
{
    struct selector_state c = leading(CLAVE_POLICY_STANDARD);
    c.auto_requeue = true;
    clave__selector_state_end(&c, CLAVE_OK);
    assert_true(clave__selector_state_goes_on(&c));
    /* Behind a failure whoever runs the task takes his time. */
    clave__selector_state_end(&c, CLAVE_ENOAUTH);
    assert_int_equal(c.phase, SELECTOR_STATE_QUEUED);
    assert_false(clave__selector_state_goes_on(&c));
}

/* testRaceAtStateChanged */
TEST(what_is_in_doubt_at_the_grant_is_no_leadership)
{
    struct selector_state c = standing(CLAVE_POLICY_STANDARD);
    assert_false(clave__selector_state_elect(&c, false));
    clave__selector_state_connection(&c, CLAVE_STATE_SUSPENDED);
    assert_false(c.interrupted); /* it only stands */
    assert_false(clave__selector_state_elect(&c, true));
    clave__selector_state_connection(&c, CLAVE_STATE_RECONNECTED);
    assert_true(clave__selector_state_elect(&c, true));

    struct selector_state patient = standing(CLAVE_POLICY_SESSION);
    clave__selector_state_connection(&patient, CLAVE_STATE_SUSPENDED);
    assert_true(clave__selector_state_elect(&patient, true));
}

TEST(what_interrupts_a_leader)
{
    struct selector_state c = leading(CLAVE_POLICY_STANDARD);
    clave__selector_state_connection(&c, CLAVE_STATE_SUSPENDED);
    assert_true(c.interrupted);
    assert_false(clave__selector_state_leads(&c));
    c = leading(CLAVE_POLICY_SESSION);
    clave__selector_state_connection(&c, CLAVE_STATE_SUSPENDED);
    assert_false(c.interrupted);
    assert_true(clave__selector_state_leads(&c));
    assert_false(clave__selector_state_event(&c, CLAVE_MUTEX_LOST));
    assert_true(c.interrupted);
    c = leading(CLAVE_POLICY_SESSION);
    assert_false(clave__selector_state_event(&c, CLAVE_MUTEX_ASKED));
    assert_true(c.interrupted);
    c = leading(CLAVE_POLICY_SESSION);
    assert_int_equal(clave__selector_state_interrupt(&c), CLAVE_OK);
    assert_true(c.interrupted);
    clave__selector_state_end(&c, CLAVE_OK);
    assert_int_equal(clave__selector_state_interrupt(&c), CLAVE_ENOTHELD);
    /* The next task begins without it. */
    assert_int_equal(clave__selector_state_requeue(&c), CLAVE_OK);
    assert_int_equal(clave__selector_state_begin(&c), CLAVE_OK);
    assert_false(c.interrupted);
}

TEST(one_that_is_closed_leads_no_more)
{
    struct selector_state c = standing(CLAVE_POLICY_STANDARD);
    c.auto_requeue = true;
    assert_true(clave__selector_state_close(&c)); /* its acquire is to be cancelled */
    /* One that began after it, too. */
    assert_true(clave__selector_state_event(&c, CLAVE_MUTEX_QUEUED));
    assert_false(clave__selector_state_elect(&c, true));
    clave__selector_state_end(&c, CLAVE_ECANCELED);
    assert_int_equal(c.phase, SELECTOR_STATE_IDLE);
    assert_int_equal(clave__selector_state_begin(&c), CLAVE_ECLOSED);
    assert_int_equal(clave__selector_state_requeue(&c), CLAVE_ECLOSED);
    struct selector_state leader = leading(CLAVE_POLICY_STANDARD);
    assert_false(clave__selector_state_close(&leader)); /* its function returns */
    assert_true(leader.interrupted);
}
