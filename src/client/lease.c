/* lease.c - the arithmetic of lease.h, used by session.c, pipeline.c and heartbeat.c. `proven`
 * never exceeds the time from which the leader counts: a deadline computed here is never too late.
 */
#include "client/lease.h"

void clave__lease_init(struct lease *l)
{
    *l = (struct lease){.proven = LEASE_NONE, .contact = LEASE_NONE, .attached = LEASE_NONE};
}

static void move_on(int64_t *t, int64_t to)
{
    if (to > *t)
        *t = to;
}

void clave__lease_agreed(struct lease *l, int64_t timeout_ms, int64_t margin_ms)
{
    int64_t longer = (timeout_ms - margin_ms) - (l->timeout_ms - l->margin_ms);
    if (l->proven != LEASE_NONE && longer > 0)
        l->proven -= longer;
    l->timeout_ms = timeout_ms;
    l->margin_ms = margin_ms;
}

void clave__lease_attached_read_only(struct lease *l, int64_t sent)
{
    l->first = l->count = 0;
    l->attached = LEASE_NONE;
    move_on(&l->contact, sent);
}

void clave__lease_attached(struct lease *l, int64_t sent)
{
    clave__lease_attached_read_only(l, sent);
    l->attached = sent;
}

void clave__lease_made(struct lease *l, int64_t sent)
{
    clave__lease_attached_read_only(l, sent);
    move_on(&l->proven, sent);
}

void clave__lease_set_relay(struct lease *l, int64_t relay_ms)
{
    l->relay_ms = relay_ms;
    if (relay_ms == 0)
        move_on(&l->proven, l->contact);
}

/* Keeps an answer only when it is far enough from the newest sample: a busy session has thousands
 * of answers in a relay interval, and the oldest of a group counts first. */
static void keep_sample(struct lease *l, int64_t sent, int64_t now)
{
    size_t newest = (l->first + l->count + LEASE_SAMPLES - 1) % LEASE_SAMPLES;
    if (l->count && now < l->samples[newest].answered + l->relay_ms / (LEASE_SAMPLES / 2))
        return;
    if (l->count == LEASE_SAMPLES) {
        l->first = (l->first + 1) % LEASE_SAMPLES;
        l->count--;
    }
    l->samples[(l->first + l->count++) % LEASE_SAMPLES] = (struct lease_sample){sent, now};
}

void clave__lease_answered(struct lease *l, int64_t sent, int64_t now)
{
    move_on(&l->contact, sent);
    if (l->relay_ms == 0)
        move_on(&l->proven, sent);
    else
        keep_sample(l, sent, now);
}

int64_t clave__lease_vouch(const struct lease *l, int64_t now)
{
    int64_t newest = l->attached;
    for (size_t i = 0; i < l->count; i++) {
        const struct lease_sample *s = &l->samples[(l->first + i) % LEASE_SAMPLES];
        if (s->answered + l->relay_ms <= now)
            newest = s->sent;
    }
    return newest;
}

void clave__lease_confirmed(struct lease *l, int64_t vouched)
{
    move_on(&l->proven, vouched);
}

int64_t clave__lease_hold_deadline(const struct lease *l)
{
    return l->proven == LEASE_NONE ? INT64_MIN : l->proven + l->timeout_ms - l->margin_ms;
}

int64_t clave__lease_best(const struct lease *l)
{
    return l->timeout_ms - l->margin_ms - l->relay_ms;
}

int64_t clave__lease_contact_deadline(const struct lease *l)
{
    return l->contact == LEASE_NONE ? INT64_MIN : l->contact + l->timeout_ms;
}
