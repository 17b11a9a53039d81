/* progress.h - shows what the user is waiting for: a line that is redrawn on a terminal, elsewhere
 * a line when something has changed. Asks the server for the holder, at long intervals. */
#ifndef CLAVE_CMD_RUN_PROGRESS_H
#define CLAVE_CMD_RUN_PROGRESS_H

#include <uv.h>

#include "clave/uv.h"
#include "cmd/cli/reach.h"
#include "cmd/run/acquisition.h"
#include "cmd/run/lock_flags.h"

struct progress {
    const struct lock_plan *plan;
    const struct acquisition *acquisition;
    clave_async_client *client;
    clave_uv *uv;
    uv_timer_t timer;
    bool live;    /* a terminal: the line is redrawn */
    bool drawn;   /* the line is on the screen */
    bool waiting; /* between _begin and _end */
    bool asking;
    bool reported_away; /* that no server is answering */
    bool reported_lack; /* that the number of leases is missing */
    struct reach reach; /* until there is a session */
    int64_t began;
    size_t ahead;
    char predecessor[256]; /* name of the node right before ours */
    /* What was reported last, so that only changes are. */
    size_t reported_ahead;
    int64_t reported_holder; /* its token; 0: none */
};

void progress_init(struct progress *p, const struct lock_plan *plan, uv_loop_t *loop);
/* No server is connected yet; the client tries until `until`. */
void progress_connect(struct progress *p, clave_async_client *c, int64_t until);
void progress_begin(struct progress *p, const struct acquisition *acquisition,
                    clave_async_client *c, clave_uv *uv);
/* `ahead` participants are before us; `predecessor` is the path of the node right before ours. */
void progress_moved(struct progress *p, size_t ahead, const char *predecessor);
/* Clears the line until it is drawn again, because a message is about to be printed. */
void progress_clear(struct progress *p);
/* Clears the line for good. Harmless at any time. */
void progress_end(struct progress *p);
void progress_close(struct progress *p); /* its handle */

#endif
