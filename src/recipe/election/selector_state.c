/* selector_state.c - the state of a LeaderSelector. Called by runtime/blocking/selector.c and the
 * simulated world, under the caller's lock. What must stay true: it leads only between _elect and
 * _end. */
#include "recipe/election/selector_state.h"

#include <assert.h>

#define TO(phase) (1u << SELECTOR_STATE_##phase)
static const unsigned moves[] = {
    [SELECTOR_STATE_LATENT] = TO(QUEUED),
    [SELECTOR_STATE_IDLE] = TO(IDLE) | TO(QUEUED),
    [SELECTOR_STATE_QUEUED] = TO(IDLE) | TO(QUEUED) | TO(LEADING),
    [SELECTOR_STATE_LEADING] = TO(IDLE) | TO(QUEUED),
};
#undef TO

static void selector_state_enter(struct selector_state *s, enum selector_state_phase to)
{
    bool allowed = moves[s->phase] & (1u << to);
    assert(allowed);
    (void)allowed;
    s->phase = to;
}

clave_err clave__selector_state_start(struct selector_state *s)
{
    if (s->phase != SELECTOR_STATE_LATENT || s->closed)
        return CLAVE_EINVAL;
    selector_state_enter(s, SELECTOR_STATE_QUEUED);
    return CLAVE_OK;
}

clave_err clave__selector_state_requeue(struct selector_state *s)
{
    if (s->closed)
        return CLAVE_ECLOSED;
    if (s->phase == SELECTOR_STATE_LATENT)
        return CLAVE_EINVAL;
    if (s->phase != SELECTOR_STATE_IDLE)
        return CLAVE_EBUSY;
    selector_state_enter(s, SELECTOR_STATE_QUEUED);
    s->err =
        CLAVE_OK; /* the user asks for it, so there is no pause, whatever ended the last task */
    return CLAVE_OK;
}

/* ---- the task ------------------------------------------------------------------------------ */

clave_err clave__selector_state_begin(struct selector_state *s)
{
    s->interrupted = s->closed;
    if (!s->closed)
        return CLAVE_OK;
    clave__selector_state_end(s, CLAVE_ECLOSED);
    return CLAVE_ECLOSED;
}

/* True if the connection is in doubt. (The loss of the lock is a separate event.) */
static bool selector_state_is_doubtful(const struct selector_state *s)
{
    return s->suspended && s->policy == CLAVE_POLICY_STANDARD;
}

/* As Curator's testRaceAtStateChanged demands, leadership must not begin with a lock that was lost
 * since its grant. */
bool clave__selector_state_elect(struct selector_state *s, bool valid)
{
    if (!valid || selector_state_is_doubtful(s) || s->closed)
        return false;
    selector_state_enter(s, SELECTOR_STATE_LEADING);
    return true;
}

void clave__selector_state_end(struct selector_state *s, clave_err err)
{
    s->err = err;
    bool again = s->auto_requeue && !s->closed;
    selector_state_enter(s, again ? SELECTOR_STATE_QUEUED : SELECTOR_STATE_IDLE);
}

void clave__selector_state_rest(struct selector_state *s)
{
    selector_state_enter(s, SELECTOR_STATE_IDLE);
}

bool clave__selector_state_goes_on(const struct selector_state *s)
{
    return s->phase == SELECTOR_STATE_QUEUED && !s->closed && s->err == CLAVE_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

void clave__selector_state_connection(struct selector_state *s, clave_state state)
{
    s->suspended = state != CLAVE_STATE_CONNECTED && state != CLAVE_STATE_RECONNECTED;
    if (s->phase == SELECTOR_STATE_LEADING && selector_state_is_doubtful(s))
        s->interrupted = true;
}

/* An acquire that began after the close shows up with this event. */
bool clave__selector_state_event(struct selector_state *s, clave_mutex_event_kind kind)
{
    if (kind == CLAVE_MUTEX_LOST || kind == CLAVE_MUTEX_ASKED)
        s->interrupted = true;
    return s->closed && kind == CLAVE_MUTEX_QUEUED;
}

clave_err clave__selector_state_interrupt(struct selector_state *s)
{
    if (s->phase != SELECTOR_STATE_LEADING)
        return CLAVE_ENOTHELD;
    s->interrupted = true;
    return CLAVE_OK;
}

bool clave__selector_state_close(struct selector_state *s)
{
    s->closed = s->interrupted = true;
    return s->phase == SELECTOR_STATE_QUEUED;
}

bool clave__selector_state_leads(const struct selector_state *s)
{
    return s->phase == SELECTOR_STATE_LEADING && !selector_state_is_doubtful(s);
}
