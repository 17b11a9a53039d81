#include "recipe/leash.h"

#include "clave/client.h"

enum { GRACE_MAX_MS = 5000, LEAD_MIN_MS = 20, LEAD_MAX_MS = 100, KILL_AGAIN_MS = 10 };

static int64_t clamp(int64_t n, int64_t min, int64_t max)
{
    return n < min ? min : n > max ? max : n;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t clave__leash_grace(int64_t timeout_ms, int64_t wish)
{
    int64_t grace = wish < 0 ? clamp(timeout_ms / 8, 0, GRACE_MAX_MS) : wish;
    return clamp(grace, 0, timeout_ms / 4);
}

int64_t clave__leash_lead(int64_t timeout_ms)
{
    return clamp(timeout_ms / 40, LEAD_MIN_MS, LEAD_MAX_MS);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void note_deadline(struct leash *l, int64_t deadline)
{
    if (deadline != LEASH_NO_DEADLINE)
        l->deadline = deadline;
}

/* When nothing of the command may be alive any more. The deadline tells the end of the maximum
 * hold where that comes first: then it is that one's matter. */
static int64_t limit_of_deadline(const struct leash *l)
{
    bool never = l->terms.on_lost == ON_LOST_IGNORE || l->deadline >= l->terms.until;
    return never ? CLAVE_NEVER : l->deadline - l->terms.lead_ms;
}

static int64_t limit_of_max_hold(const struct leash *l)
{
    return l->terms.until == CLAVE_NEVER ? CLAVE_NEVER : l->terms.until - l->terms.lead_ms;
}

static int64_t term_at_deadline(const struct leash *l)
{
    int64_t limit = limit_of_deadline(l);
    bool warned = limit != CLAVE_NEVER && l->terms.on_lost == ON_LOST_TERM;
    return warned ? limit - l->terms.grace_ms : limit;
}

static int64_t term_at_max_hold(const struct leash *l)
{
    int64_t limit = limit_of_max_hold(l);
    return limit == CLAVE_NEVER ? limit : limit - l->max_grace_ms;
}

static int64_t kill_at(const struct leash *l)
{
    return earlier(l->kill_at, earlier(limit_of_deadline(l), limit_of_max_hold(l)));
}

int64_t clave__leash_wake_at(struct leash *l, int64_t deadline, int64_t now)
{
    note_deadline(l, deadline);
    switch (l->phase) {
    case LEASH_RUNNING:
        return earlier(term_at_deadline(l), term_at_max_hold(l));
    case LEASH_ENDING:
        return kill_at(l);
    case LEASH_KILLING:
        return now + KILL_AGAIN_MS;
    case LEASH_IDLE:
    case LEASH_ENDED:
        break;
    }
    return CLAVE_NEVER;
}

/* ---- what is done -------------------------------------------------------------------------- */

bool clave__leash_run(struct leash *l, const struct leash_terms *terms, int64_t deadline,
                      int64_t now)
{
    l->terms = *terms;
    note_deadline(l, deadline);
    int64_t half = terms->until == CLAVE_NEVER ? CLAVE_NEVER : (terms->until - now) / 2;
    l->max_grace_ms = earlier(terms->grace_ms, half > 0 ? half : 0);
    bool late = now >= earlier(term_at_deadline(l), term_at_max_hold(l));
    if (late) /* the holder slept since it was granted */
        l->cause = CAUSE_DEADLINE;
    l->phase = late ? LEASH_ENDED : LEASH_RUNNING;
    return !late;
}

void clave__leash_refused(struct leash *l)
{
    l->phase = LEASH_ENDED;
}

static unsigned begin_ending(struct leash *l, enum leash_cause cause, int64_t now)
{
    bool loss = cause == CAUSE_DEADLINE || cause == CAUSE_LOST;
    bool at_once = loss && l->terms.on_lost == ON_LOST_KILL;
    l->cause = cause;
    l->kill_at = now + (cause == CAUSE_MAX_HOLD ? l->max_grace_ms : l->terms.grace_ms);
    l->phase = at_once ? LEASH_KILLING : LEASH_ENDING;
    return at_once ? LEASH_TELL : LEASH_TELL | LEASH_TERM;
}

static unsigned look_at_running(struct leash *l, const struct leash_sight *s, int64_t now)
{
    if (s->told_to_stop && l->terms.on_lost != ON_LOST_IGNORE)
        return begin_ending(l, CAUSE_LOST, now);
    if (s->reaped && s->nothing_left) {
        l->phase = LEASH_ENDED;
        return LEASH_TELL_END;
    }
    if (s->reaped)
        return begin_ending(l, CAUSE_NONE, now);
    if (s->alone)
        return begin_ending(l, CAUSE_WRAPPER, now);
    if (now >= term_at_max_hold(l))
        return begin_ending(l, CAUSE_MAX_HOLD, now);
    if (now >= term_at_deadline(l))
        return begin_ending(l, CAUSE_DEADLINE, now);
    return 0;
}

unsigned clave__leash_step(struct leash *l, const struct leash_sight *s, int64_t now)
{
    unsigned todo = 0;
    note_deadline(l, s->deadline);
    if (l->phase == LEASH_IDLE && s->alone)
        l->phase = LEASH_ENDED;
    if (l->phase == LEASH_RUNNING)
        todo = look_at_running(l, s, now);
    if (l->phase == LEASH_ENDING && now >= kill_at(l))
        l->phase = LEASH_KILLING;
    if (l->phase == LEASH_KILLING)
        todo |= LEASH_KILL;
    if ((l->phase == LEASH_ENDING || l->phase == LEASH_KILLING) && s->nothing_left) {
        l->phase = LEASH_ENDED;
        todo = (todo & LEASH_TELL) | LEASH_TELL_END;
    }
    return todo;
}
