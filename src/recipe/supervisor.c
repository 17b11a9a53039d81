#include "recipe/supervisor.h"

#include "clave/client.h"

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void clave__supervisor_begin(struct supervisor *s, const struct leash_terms *terms)
{
    *s = (struct supervisor){.terms = *terms, .deadline = CLAVE_NEVER, .gone_by = CLAVE_NEVER};
}

int64_t clave__supervisor_extend(struct supervisor *s, int64_t deadline)
{
    s->deadline = deadline;
    return earlier(deadline, s->terms.until);
}

/* What is lost by its deadline had to be over by then; what is lost before has a grace from now
 * on. */
void clave__supervisor_lose(struct supervisor *s, int64_t now)
{
    s->lost = true;
    s->gone_by = now + s->terms.grace_ms + s->terms.lead_ms;
}

/* A moment before the end, which is one behind the guardian's own. */
static int64_t limit_before(const struct supervisor *s, int64_t end)
{
    return end == CLAVE_NEVER ? end : end - s->terms.lead_ms / 2;
}

/* By then the command has had its grace behind the maximum hold. */
static int64_t end_of_max_hold(const struct supervisor *s)
{
    int64_t until = s->terms.until;
    return until == CLAVE_NEVER ? until : until + s->terms.grace_ms + s->terms.lead_ms;
}

static int64_t limit_of_hold(const struct supervisor *s)
{
    bool never = s->terms.on_lost == ON_LOST_IGNORE;
    return limit_before(s, never ? CLAVE_NEVER : earlier(s->deadline, s->gone_by));
}

int64_t clave__supervisor_limit(const struct supervisor *s)
{
    return earlier(limit_of_hold(s), limit_before(s, end_of_max_hold(s)));
}

bool clave__supervisor_is_overdue(struct supervisor *s, int64_t now)
{
    if (s->phase != SUPERVISOR_WATCHING || now < clave__supervisor_limit(s))
        return false;
    s->lost |= now >= limit_of_hold(s);
    s->overdue = true;
    s->phase = SUPERVISOR_SWEEPING;
    return true;
}

void clave__supervisor_bereave(struct supervisor *s)
{
    s->phase = SUPERVISOR_SWEEPING;
}

bool clave__supervisor_was_cut_short(const struct supervisor *s, enum leash_cause cause)
{
    return s->lost || s->overdue || cause == CAUSE_DEADLINE || cause == CAUSE_LOST ||
           cause == CAUSE_MAX_HOLD;
}
