/* request_window.h - many requests on one session: a window of them is kept in flight, instead of
 * one per round trip. */
#ifndef CLAVE_CMD_ZNODES_REQUEST_WINDOW_H
#define CLAVE_CMD_ZNODES_REQUEST_WINDOW_H

#include "clave/client.h"

/* Both functions run on the loop's thread. `submit` sends request number `i` with the given
 * callback and argument. */
typedef clave_err request_window_submit_fn(clave_async_client *c, size_t i, clave_result_cb *cb,
                                           void *cb_arg, void *arg);
typedef void request_window_done_fn(size_t i, const clave_result *res, void *arg);

struct request_window_plan {
    size_t n;
    request_window_submit_fn *submit;
    request_window_done_fn *done;
    void *arg;
};

/* Sends the requests 0 to n-1 in this order and waits for all answers. `done` is called for each;
 * if a request cannot be sent, the error is its result. ETIMEDOUT: no answer came for timeout_ms;
 * after that neither function is called again. */
clave_err request_window_run(clave_client *c, const struct request_window_plan *plan,
                             int64_t timeout_ms);

#endif
