/* flight.h - many requests of one session at once: a window of them is on its way instead of
 * one for each round trip. */
#ifndef CLAVE_CMD_FLIGHT_H
#define CLAVE_CMD_FLIGHT_H

#include "clave/session.h"

/* Both run on the loop's thread. Submits request number i with this callback and argument. */
typedef clave_err flight_submit_fn(clave_client *c, size_t i, clave_result_cb *cb, void *cb_arg,
                                   void *arg);
typedef void flight_done_fn(size_t i, const clave_result *res, void *arg);

struct flight_plan {
    size_t n;
    flight_submit_fn *submit;
    flight_done_fn *done;
    void *arg;
};

/* Sends requests 0 to n-1 in this order and waits for all. `done` runs for each; a request
 * that could not be submitted gets its error as a result. ETIMEDOUT: nothing was answered for
 * timeout_ms; neither function runs any more then. */
clave_err flight_run(clave_session *s, const struct flight_plan *plan, int64_t timeout_ms);

#endif
