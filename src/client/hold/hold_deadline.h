/* hold_deadline.h - until when the session is certain to live: the arithmetic of the hold deadline.
 *
 * The server counts a session's time from the newest request it has seen, so it counts from
 * no earlier than the moment the client sent one that was answered. In an ensemble "it" is
 * the leader, which hears of a session only what the member in between relays, every relay
 * interval; a member cut off from its leader keeps answering. So a request counts there only when
 * another one, sent at least one relay interval after the first one's answer arrived, passed the
 * leader and was answered (design: the hold deadline). On a standalone server every answer counts.
 *
 * A deposed leader may not know for long that it is deposed: it commits nothing, but it answers
 * everything else by itself, the handshake of a session included. So only something that had to be
 * committed, on the same connection, proves that a request passed the leader.
 *
 * Times are milliseconds of the client's clock; those of one connection come in order. */
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
    int64_t relay_ms; /* 0: standalone, every answer counts */
    int64_t proven;   /* the leader counts from then or later; HOLD_DEADLINE_NONE */
    int64_t contact;  /* when the newest answered request was sent; HOLD_DEADLINE_NONE */
    int64_t attached; /* when the connection's handshake was sent; HOLD_DEADLINE_NONE: it proves
                         nothing */
    /* Answers that may count later, a fraction of the relay interval apart. */
    struct hold_deadline_sample samples[HOLD_DEADLINE_SAMPLES];
    size_t first, count;
};

/* No session. */
void clave__hold_deadline_init(struct hold_deadline *d);
/* The timeout agreed with a server, perhaps anew. For what is already proven the leader counts by
 * the previous timeout, so a longer one moves no deadline. The margin is an eighth of the timeout
 * if it is 0, and half of it at most. */
void clave__hold_deadline_agreed(struct hold_deadline *d, int64_t timeout_ms, int64_t margin_ms);
/* The session was made by a handshake sent at `sent`, which was committed. */
void clave__hold_deadline_made(struct hold_deadline *d, int64_t sent);
/* The session was re-attached. The member's leader hears of that at once; it counts as soon as
 * something was committed. Samples of the previous connection no longer count. */
void clave__hold_deadline_attached(struct hold_deadline *d, int64_t sent);
/* It was re-attached by a read-only server, which has no leader: nothing is proven. */
void clave__hold_deadline_attached_read_only(struct hold_deadline *d, int64_t sent);
/* The servers may be an ensemble, whose members relay so often; 0: a quarter of the timeout. */
void clave__hold_deadline_expect_relay(struct hold_deadline *d, int64_t relay_ms);
/* The kind of server has become known: 0 for a standalone one. */
void clave__hold_deadline_set_relay(struct hold_deadline *d, int64_t relay_ms);

/* Any answer, to a request sent at `sent`. */
void clave__hold_deadline_answered(struct hold_deadline *d, int64_t sent, int64_t now);
/* Called when a request that passes the leader is sent: returns what its answer will prove. */
int64_t clave__hold_deadline_vouch(const struct hold_deadline *d, int64_t now);
/* That answer has arrived. */
void clave__hold_deadline_confirmed(struct hold_deadline *d, int64_t vouched);

/* Until then nobody else can own what the session holds; INT64_MIN: not known. */
int64_t clave__hold_deadline_get(const struct hold_deadline *d);
/* How far ahead that deadline can be at best: right after a proof has arrived. */
int64_t clave__hold_deadline_best(const struct hold_deadline *d);
/* When a session without holds must be considered ended. */
int64_t clave__hold_deadline_contact(const struct hold_deadline *d);

#endif
