#include "recipe/candidacy.h"

clave_err clave__candidacy_start(struct candidacy *c)
{
    if (c->started || c->closed)
        return CLAVE_EINVAL;
    c->started = true;
    c->phase = CANDIDACY_QUEUED;
    return CLAVE_OK;
}

clave_err clave__candidacy_requeue(struct candidacy *c)
{
    if (c->closed)
        return CLAVE_ECLOSED;
    if (!c->started)
        return CLAVE_EINVAL;
    if (c->phase != CANDIDACY_IDLE)
        return CLAVE_EBUSY;
    c->phase = CANDIDACY_QUEUED;
    c->err = CLAVE_OK; /* asked for anew: at once, whatever has ended the last */
    return CLAVE_OK;
}

/* ---- the task ------------------------------------------------------------------------------ */

clave_err clave__candidacy_begin(struct candidacy *c)
{
    c->interrupted = c->closed;
    if (!c->closed)
        return CLAVE_OK;
    clave__candidacy_end(c, CLAVE_ECLOSED);
    return CLAVE_ECLOSED;
}

/* That the lock is lost, it says itself. */
static bool is_doubtful(const struct candidacy *c)
{
    return c->suspended && c->policy == CLAVE_POLICY_STANDARD;
}

/* testRaceAtStateChanged: what was lost between the grant and this moment must not begin. */
bool clave__candidacy_elect(struct candidacy *c, bool valid)
{
    if (!valid || is_doubtful(c) || c->closed)
        return false;
    c->phase = CANDIDACY_LEADING;
    return true;
}

void clave__candidacy_end(struct candidacy *c, clave_err err)
{
    c->err = err;
    c->phase = c->auto_requeue && !c->closed ? CANDIDACY_QUEUED : CANDIDACY_IDLE;
}

bool clave__candidacy_goes_on(const struct candidacy *c)
{
    return c->phase == CANDIDACY_QUEUED && !c->closed && c->err == CLAVE_OK;
}

/* ---- what happens to it -------------------------------------------------------------------- */

void clave__candidacy_connection(struct candidacy *c, clave_state state)
{
    c->suspended = state != CLAVE_STATE_CONNECTED && state != CLAVE_STATE_RECONNECTED;
    if (c->phase == CANDIDACY_LEADING && is_doubtful(c))
        c->interrupted = true;
}

/* An acquire that began behind the close is heard of here. */
bool clave__candidacy_event(struct candidacy *c, clave_mutex_event_kind kind)
{
    if (kind == CLAVE_MUTEX_LOST || kind == CLAVE_MUTEX_ASKED)
        c->interrupted = true;
    return c->closed && kind == CLAVE_MUTEX_QUEUED;
}

clave_err clave__candidacy_interrupt(struct candidacy *c)
{
    if (c->phase != CANDIDACY_LEADING)
        return CLAVE_ENOTHELD;
    c->interrupted = true;
    return CLAVE_OK;
}

bool clave__candidacy_close(struct candidacy *c)
{
    c->closed = c->interrupted = true;
    return c->phase == CANDIDACY_QUEUED;
}

bool clave__candidacy_leads(const struct candidacy *c)
{
    return c->phase == CANDIDACY_LEADING && !is_doubtful(c);
}
