/* hold_deadline.h - until when the session is certain to live: the arithmetic of the hold deadline.
 *
 * A standalone server counts a session's time from the newest request it has seen, which is no
 * earlier than the moment at which the client sent its newest request that was answered. In an
 * ensemble it is the leader that counts, and it hears of a session only what the member in between
 * relays, once every relay interval; a member that is cut off from its leader keeps answering. So
 * in an ensemble a request counts only once another one, sent at least one relay interval after the
 * first one's answer arrived, has passed the leader and been answered. On a standalone server every
 * answer counts.
 *
 * A deposed leader may take long to learn that it was deposed. It can commit nothing, but answers
 * everything else on its own, even the handshake of a session. So only something that had to be
 * committed, on the same connection, proves that a request passed the leader.
 *
 * Times are in milliseconds of the client's clock and never go backwards within a connection. */
#ifndef CLAVE_CLIENT_HOLD_HOLD_DEADLINE_H
#define CLAVE_CLIENT_HOLD_HOLD_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOLD_DEADLINE_SAMPLES = 16 };
#define HOLD_DEADLINE_NONE INT64_MIN

struct hold_deadline_sample {
    int64_t sent;
    int64_t answered;
};

struct hold_deadline {
    int64_t timeout_ms;
    int64_t margin_ms;
    int64_t relay_ms; /* 0: a standalone server, for which every answer counts */
    int64_t proven;   /* the leader counts from this time or later; HOLD_DEADLINE_NONE */
    int64_t contact;  /* when the newest answered request was sent; HOLD_DEADLINE_NONE */
    int64_t attached; /* when the connection's handshake was sent; HOLD_DEADLINE_NONE: that proves
                         nothing */
    /* Answers that may count later, spaced by a fraction of the relay interval. */
    struct hold_deadline_sample samples[HOLD_DEADLINE_SAMPLES];
    size_t first, count;
};

/* Starts without a session. */
void clave__hold_deadline_init(struct hold_deadline *d);
/* A server has agreed to a timeout, perhaps a new one. For whatever was proven before, the leader
 * counts by the previous timeout, so a longer timeout does not move the deadline. A margin of 0
 * means an eighth of the timeout; more than half of it is cut to half. */
void clave__hold_deadline_agreed(struct hold_deadline *d, int64_t timeout_ms, int64_t margin_ms);
/* The session was made by a handshake sent at `sent`, which was committed. */
void clave__hold_deadline_made(struct hold_deadline *d, int64_t sent);
/* The session was re-attached. The member's leader hears of it at once, but it counts only when
 * something has been committed. Samples of the previous connection no longer count. */
void clave__hold_deadline_attached(struct hold_deadline *d, int64_t sent);
/* The session was re-attached by a read-only server, which has no leader; that proves nothing. */
void clave__hold_deadline_attached_read_only(struct hold_deadline *d, int64_t sent);
/* Assumes an ensemble whose members relay at this interval; 0: a quarter of the timeout. */
void clave__hold_deadline_expect_relay(struct hold_deadline *d, int64_t relay_ms);
/* The kind of server is now known; a relay_ms of 0 means that it is standalone. */
void clave__hold_deadline_set_relay(struct hold_deadline *d, int64_t relay_ms);

/* Any request that was sent at `sent` was answered. */
void clave__hold_deadline_answered(struct hold_deadline *d, int64_t sent, int64_t now);
/* Call it when a request that passes the leader is sent: returns what its answer will prove. */
int64_t clave__hold_deadline_vouch(const struct hold_deadline *d, int64_t now);
/* The answer to such a request has arrived. */
void clave__hold_deadline_confirmed(struct hold_deadline *d, int64_t vouched);

/* The time until which nobody else can own what the session holds; INT64_MIN: unknown. */
int64_t clave__hold_deadline_get(const struct hold_deadline *d);

/* How far ahead that deadline is at best, which is right after a proof has arrived. */
static inline int64_t clave__hold_deadline_best(const struct hold_deadline *d)
{
    return d->timeout_ms - d->margin_ms - d->relay_ms;
}

/* When a session without holds must be assumed to have ended. */
static inline int64_t clave__hold_deadline_contact(const struct hold_deadline *d)
{
    return d->contact == HOLD_DEADLINE_NONE ? INT64_MIN : d->contact + d->timeout_ms;
}

#endif
