/* wait_progress.h - shows what the user is waiting for: a line that is redrawn on a terminal,
 * elsewhere a line when something has changed. Asks the server for the holder, at long intervals.
 */
#ifndef CLAVE_CMD_RUN_WAIT_PROGRESS_H
#define CLAVE_CMD_RUN_WAIT_PROGRESS_H

#include <uv.h>

#include "clave/uv.h"
#include "cmd/cli/unreachable.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/run_recipe.h"

/* `holder`: the first that holds it; NULL: not known. Valid during the call. */
typedef void wait_progress_holder(void *arg, const clave_participant *holder);

struct wait_progress {
    const struct run_plan *plan;
    const struct acquisition *acquisition;
    clave_async_client *client;
    clave_uv *uv;
    uv_timer_t timer;
    bool live;    /* a terminal: the line is redrawn */
    bool drawn;   /* the line is on the screen */
    bool waiting; /* between _begin and _end */
    bool queued;  /* it has had a place */
    bool asking;
    wait_progress_holder *found; /* of _find_holder, until it is called */
    void *found_arg;
    bool reported_disconnected;  /* that no server is answering */
    bool reported_limit_missing; /* that the number of leases is missing */
    bool reported_put_off;       /* that the server gives nobody a place */
    struct unreachable reach;    /* until there is a session */
    int64_t began;
    size_t ahead;
    char predecessor[256]; /* name of the node right before ours */
    /* What was reported last, so that only changes are. */
    size_t reported_ahead;
    int64_t reported_holder; /* its token; 0: none */
};

void wait_progress_init(struct wait_progress *p, const struct run_plan *plan, uv_loop_t *loop);
/* No server is connected yet; the client tries until `until`. */
void wait_progress_connect(struct wait_progress *p, clave_async_client *c, int64_t until);
void wait_progress_begin(struct wait_progress *p, const struct acquisition *acquisition,
                         clave_async_client *c, clave_uv *uv);
/* `ahead` participants are before us; `predecessor` is the path of the node right before ours. */
void wait_progress_moved(struct wait_progress *p, size_t ahead, const char *predecessor);
/* The server gives nobody a place: see LOCK_MESSAGE_PUT_OFF. */
bool wait_progress_is_put_off(const struct wait_progress *p);
/* Clears the line until it is drawn again, because a message is about to be printed. */
void wait_progress_clear(struct wait_progress *p);
/* Asks who holds it now, also after _end. false: that cannot be asked. */
bool wait_progress_find_holder(struct wait_progress *p, wait_progress_holder *found, void *arg);
/* Clears the line for good. Harmless at any time. */
void wait_progress_end(struct wait_progress *p);
void wait_progress_close(struct wait_progress *p); /* its handle */

#endif
