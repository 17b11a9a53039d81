/* hold_deadline.c - the arithmetic of hold_deadline.h, used by session.c, pipeline.c and
 * heartbeat.c. `proven` never exceeds the time from which the leader counts: a deadline computed
 * here is never too late.
 */
#include "client/hold_deadline.h"

void clave__hold_deadline_init(struct hold_deadline *l)
{
    *l = (struct hold_deadline){.proven = HOLD_DEADLINE_NONE,
                                .contact = HOLD_DEADLINE_NONE,
                                .attached = HOLD_DEADLINE_NONE};
}

static void move_on(int64_t *t, int64_t to)
{
    if (to > *t)
        *t = to;
}

void clave__hold_deadline_agreed(struct hold_deadline *l, int64_t timeout_ms, int64_t margin_ms)
{
    int64_t longer = (timeout_ms - margin_ms) - (l->timeout_ms - l->margin_ms);
    if (l->proven != HOLD_DEADLINE_NONE && longer > 0)
        l->proven -= longer;
    l->timeout_ms = timeout_ms;
    l->margin_ms = margin_ms;
}

void clave__hold_deadline_attached_read_only(struct hold_deadline *l, int64_t sent)
{
    l->first = l->count = 0;
    l->attached = HOLD_DEADLINE_NONE;
    move_on(&l->contact, sent);
}

void clave__hold_deadline_attached(struct hold_deadline *l, int64_t sent)
{
    clave__hold_deadline_attached_read_only(l, sent);
    l->attached = sent;
}

void clave__hold_deadline_made(struct hold_deadline *l, int64_t sent)
{
    clave__hold_deadline_attached_read_only(l, sent);
    move_on(&l->proven, sent);
}

void clave__hold_deadline_set_relay(struct hold_deadline *l, int64_t relay_ms)
{
    l->relay_ms = relay_ms;
    if (relay_ms == 0)
        move_on(&l->proven, l->contact);
}

/* Keeps an answer only when it is far enough from the newest sample: a busy session has thousands
 * of answers in a relay interval, and the oldest of a group counts first. */
static void keep_sample(struct hold_deadline *l, int64_t sent, int64_t now)
{
    size_t newest = (l->first + l->count + HOLD_DEADLINE_SAMPLES - 1) % HOLD_DEADLINE_SAMPLES;
    if (l->count && now < l->samples[newest].answered + l->relay_ms / (HOLD_DEADLINE_SAMPLES / 2))
        return;
    if (l->count == HOLD_DEADLINE_SAMPLES) {
        l->first = (l->first + 1) % HOLD_DEADLINE_SAMPLES;
        l->count--;
    }
    l->samples[(l->first + l->count++) % HOLD_DEADLINE_SAMPLES] =
        (struct hold_deadline_sample){sent, now};
}

void clave__hold_deadline_answered(struct hold_deadline *l, int64_t sent, int64_t now)
{
    move_on(&l->contact, sent);
    if (l->relay_ms == 0)
        move_on(&l->proven, sent);
    else
        keep_sample(l, sent, now);
}

int64_t clave__hold_deadline_vouch(const struct hold_deadline *l, int64_t now)
{
    int64_t newest = l->attached;
    for (size_t i = 0; i < l->count; i++) {
        const struct hold_deadline_sample *s = &l->samples[(l->first + i) % HOLD_DEADLINE_SAMPLES];
        if (s->answered + l->relay_ms <= now)
            newest = s->sent;
    }
    return newest;
}

void clave__hold_deadline_confirmed(struct hold_deadline *l, int64_t vouched)
{
    move_on(&l->proven, vouched);
}

int64_t clave__hold_deadline_get(const struct hold_deadline *l)
{
    return l->proven == HOLD_DEADLINE_NONE ? INT64_MIN : l->proven + l->timeout_ms - l->margin_ms;
}

int64_t clave__hold_deadline_best(const struct hold_deadline *l)
{
    return l->timeout_ms - l->margin_ms - l->relay_ms;
}

int64_t clave__hold_deadline_contact(const struct hold_deadline *l)
{
    return l->contact == HOLD_DEADLINE_NONE ? INT64_MIN : l->contact + l->timeout_ms;
}
