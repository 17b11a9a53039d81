/* lease.h - until when the session surely lives: the arithmetic of the hold deadline.
 *
 * The server counts a session's time from the newest request it has seen, so it counts from
 * no earlier than the moment the client sent one that was answered. In an ensemble "it" is
 * the leader, which hears of a session only what the member in between relays, every relay
 * interval; a member cut off from its leader answers on. So a request counts there when
 * another one, sent at least one relay interval after its answer had come, passed the leader
 * and was answered (design: the hold deadline). On a standalone server every answer counts.
 *
 * A leader that was deposed may not know it for long: it commits nothing, but it answers all
 * else by itself, the handshake of a session included. So passing the leader is proven by what
 * had to be committed, on the same connection, and by nothing else.
 *
 * Times are milliseconds of the client's clock; all of one connection, in order. */
#ifndef CLAVE_CLIENT_LEASE_H
#define CLAVE_CLIENT_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEASE_SAMPLES = 16 };
#define LEASE_NONE INT64_MIN

struct lease_sample {
    int64_t sent;
    int64_t answered;
};

struct lease {
    int64_t timeout_ms;
    int64_t margin_ms;
    int64_t relay_ms; /* 0: standalone, every answer counts */
    int64_t proven;   /* the leader counts from then or later; LEASE_NONE */
    int64_t contact;  /* when the newest answered request was sent; LEASE_NONE */
    int64_t attached; /* when the connection's handshake was sent; LEASE_NONE: nothing by it */
    /* Answers that may count one day, a fraction of the relay interval apart. */
    struct lease_sample samples[LEASE_SAMPLES];
    size_t first, count;
};

/* No session. */
void clave__lease_init(struct lease *l);
/* As agreed with a server, perhaps anew: on what is proven already the leader counts by the timeout
 * of before, so a longer one moves nothing. */
void clave__lease_agreed(struct lease *l, int64_t timeout_ms, int64_t margin_ms);
/* The session was made by a handshake sent at `sent`: that is committed. */
void clave__lease_made(struct lease *l, int64_t sent);
/* It was re-attached. The member's leader hears of that at once; it counts as soon as something
 * was committed. What was sampled on the connection before counts no more. */
void clave__lease_attached(struct lease *l, int64_t sent);
/* The same by a read-only server, which has no leader: nothing is proven. */
void clave__lease_attached_read_only(struct lease *l, int64_t sent);
/* What kind of server it is has become known. */
void clave__lease_set_relay(struct lease *l, int64_t relay_ms);

/* Any answer. */
void clave__lease_answered(struct lease *l, int64_t sent, int64_t now);
/* For a request that passes the leader, when it is sent: what its answer will prove. */
int64_t clave__lease_vouch(const struct lease *l, int64_t now);
/* That answer has come. */
void clave__lease_confirmed(struct lease *l, int64_t vouched);

/* Until then nobody else can own what the session holds; INT64_MIN: not known. */
int64_t clave__lease_hold_deadline(const struct lease *l);
/* How far ahead that is at best, by a proof that has just come. */
int64_t clave__lease_best(const struct lease *l);
/* When the session must have ended, as far as one without holds cares. */
int64_t clave__lease_contact_deadline(const struct lease *l);

#endif
