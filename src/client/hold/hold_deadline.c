/* hold_deadline.c - the arithmetic of hold_deadline.h, used by client_connection.c, pipeline.c and
 * heartbeat.c. `proven` is never later than the time from which the leader counts, so a deadline
 * computed here is never too late. */
#include "client/hold/hold_deadline.h"

void clave__hold_deadline_init(struct hold_deadline *d)
{
    *d = (struct hold_deadline){.proven = HOLD_DEADLINE_NONE,
                                .contact = HOLD_DEADLINE_NONE,
                                .attached = HOLD_DEADLINE_NONE};
}

static void hold_deadline_move_on(int64_t *t, int64_t to)
{
    if (to > *t)
        *t = to;
}

void clave__hold_deadline_agreed(struct hold_deadline *d, int64_t timeout_ms, int64_t margin_ms)
{
    margin_ms = margin_ms > 0 ? margin_ms : timeout_ms / 8;
    margin_ms = margin_ms < timeout_ms / 2 ? margin_ms : timeout_ms / 2;
    int64_t longer = (timeout_ms - margin_ms) - (d->timeout_ms - d->margin_ms);
    if (d->proven != HOLD_DEADLINE_NONE && longer > 0)
        d->proven -= longer;
    d->timeout_ms = timeout_ms;
    d->margin_ms = margin_ms;
}

void clave__hold_deadline_attached_read_only(struct hold_deadline *d, int64_t sent)
{
    d->first = d->count = 0;
    d->attached = HOLD_DEADLINE_NONE;
    hold_deadline_move_on(&d->contact, sent);
}

void clave__hold_deadline_attached(struct hold_deadline *d, int64_t sent)
{
    clave__hold_deadline_attached_read_only(d, sent);
    d->attached = sent;
}

void clave__hold_deadline_made(struct hold_deadline *d, int64_t sent)
{
    clave__hold_deadline_attached_read_only(d, sent);
    hold_deadline_move_on(&d->proven, sent);
}

void clave__hold_deadline_set_relay(struct hold_deadline *d, int64_t relay_ms)
{
    d->relay_ms = relay_ms;
    if (relay_ms == 0)
        hold_deadline_move_on(&d->proven, d->contact);
}

void clave__hold_deadline_expect_relay(struct hold_deadline *d, int64_t relay_ms)
{
    relay_ms = relay_ms > 0 ? relay_ms : d->timeout_ms / 4;
    clave__hold_deadline_set_relay(
        d, relay_ms > 0 ? relay_ms : 1); /* 0 would mean that the server is standalone */
}

/* Keeps an answer only if it is far enough from the newest sample: a busy session gets thousands of
 * answers in a relay interval, and the oldest of a group is the first to count. */
static void hold_deadline_keep_sample(struct hold_deadline *d, int64_t sent, int64_t now)
{
    size_t newest = (d->first + d->count + HOLD_DEADLINE_SAMPLES - 1) % HOLD_DEADLINE_SAMPLES;
    if (d->count && now < d->samples[newest].answered + d->relay_ms / (HOLD_DEADLINE_SAMPLES / 2))
        return;
    if (d->count == HOLD_DEADLINE_SAMPLES) {
        d->first = (d->first + 1) % HOLD_DEADLINE_SAMPLES;
        d->count--;
    }
    d->samples[(d->first + d->count++) % HOLD_DEADLINE_SAMPLES] =
        (struct hold_deadline_sample){sent, now};
}

void clave__hold_deadline_answered(struct hold_deadline *d, int64_t sent, int64_t now)
{
    hold_deadline_move_on(&d->contact, sent);
    if (d->relay_ms == 0)
        hold_deadline_move_on(&d->proven, sent);
    else
        hold_deadline_keep_sample(d, sent, now);
}

int64_t clave__hold_deadline_vouch(const struct hold_deadline *d, int64_t now)
{
    int64_t newest = d->attached;
    for (size_t i = 0; i < d->count; i++) {
        const struct hold_deadline_sample *s = &d->samples[(d->first + i) % HOLD_DEADLINE_SAMPLES];
        if (s->answered + d->relay_ms <= now)
            newest = s->sent;
    }
    return newest;
}

void clave__hold_deadline_confirmed(struct hold_deadline *d, int64_t vouched)
{
    hold_deadline_move_on(&d->proven, vouched);
}

int64_t clave__hold_deadline_get(const struct hold_deadline *d)
{
    return d->proven == HOLD_DEADLINE_NONE ? INT64_MIN : d->proven + d->timeout_ms - d->margin_ms;
}
