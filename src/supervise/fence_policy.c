/* fence_policy.c - the table of moves of fence_policy.h. Called by src/cmd/run and the simulated
 * world. What must stay true: RUNNING is left for CLEAR only by a success, or by a failure that the
 * user has told to pass. */
#include "supervise/fence_policy.h"

#include <assert.h>

struct fence_move {
    bool legal;
    enum fence_phase to;
    enum fence_act act;
};

/* FENCE_FAILED has a table of its own, since it depends on what the user wants. */
static const struct fence_move moves[FENCE_PHASES][FENCE_EVENTS] = {
    [FENCE_CLEAR][FENCE_OWED] = {true, FENCE_RUNNING, FENCE_RUN},
    [FENCE_RUNNING][FENCE_SUCCEEDED] = {true, FENCE_CLEAR, FENCE_GO_ON},
    [FENCE_PAUSING][FENCE_DUE] = {true, FENCE_RUNNING, FENCE_RUN},
};
static const struct fence_move after_failure[] = {
    [FENCE_FAILS_WAIT] = {true, FENCE_PAUSING, FENCE_PAUSE},
    [FENCE_FAILS_PASS] = {true, FENCE_CLEAR, FENCE_GO_ON},
    [FENCE_FAILS_EXIT] = {true, FENCE_REFUSED, FENCE_LEAVE},
};

void clave__fence_policy_init(struct fence_policy *p, enum fence_fails fails)
{
    *p = (struct fence_policy){.phase = FENCE_CLEAR, .fails = fails};
}

static int64_t fence_policy_next_pause(int64_t last_ms)
{
    if (last_ms == 0)
        return FENCE_PAUSE_FIRST_MS;
    return 2 * last_ms < FENCE_PAUSE_LAST_MS ? 2 * last_ms : FENCE_PAUSE_LAST_MS;
}

enum fence_act clave__fence_policy_step(struct fence_policy *p, enum fence_event event)
{
    const struct fence_move *m = &moves[p->phase][event];
    if (event == FENCE_FAILED && p->phase == FENCE_RUNNING)
        m = &after_failure[p->fails];
    assert(m->legal);
    p->phase = m->to;
    if (event == FENCE_OWED)
        p->pause_ms = 0;
    else if (m->act == FENCE_PAUSE)
        p->pause_ms = fence_policy_next_pause(p->pause_ms);
    return m->act;
}

bool clave__fence_policy_is_clear(const struct fence_policy *p)
{
    return p->phase == FENCE_CLEAR;
}
