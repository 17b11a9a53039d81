/* validity.h - for how long a client may rely on what it holds, told so that it can never be told
 * too much. The client counts it from the moment when it sent its request, on its own clock: that
 * is before the request's arrival, whatever the delay, so its deadline is never late. Only the
 * rates of the clocks differ. For what comes after the arrival of the request at the servers, the
 * margin of the hold deadline covers that; for the time before, which is long when the request
 * waited for its turn, a part of it is taken off.
 *
 * `arrived` must be read from the clock after the request has been received. */
#ifndef CLAVE_WEB_SESSION_VALIDITY_H
#define CLAVE_WEB_SESSION_VALIDITY_H

#include <stdint.h>

/* Clocks that differ by less than 1 in so many. */
enum { VALIDITY_RATE = 64 };

struct validity {
    int64_t arrived;       /* the request that is answered */
    int64_t granted;       /* when the client's claim became held */
    int64_t hold_deadline; /* until when nobody else can own it; INT64_MIN: nothing is known */
    int64_t ttl_ms;        /* so long the gate keeps a session that it hears nothing of */
    int64_t now;
};

/* In ms after the request was sent; 0: nothing is certain any more. */
int64_t clave__validity_ms(const struct validity *v);

#endif
