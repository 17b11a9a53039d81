/* progress.h - telling who waits what for: a line that is rewritten on a terminal, else a line
 * when something has changed. Asks the server who the holder is, seldom. */
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
    bool live;    /* a terminal: the line is rewritten */
    bool drawn;   /* it is there */
    bool waiting; /* between _begin and _end */
    bool asking;
    bool reported_away; /* that no server answers */
    bool reported_lack; /* that there is no limit */
    struct reach reach; /* before there is a session */
    int64_t began;
    size_t ahead;
    char predecessor[256]; /* name of the node just before ours */
    /* What was told last, so that only news is. */
    size_t reported_ahead;
    int64_t reported_holder; /* its token; 0: none */
};

void progress_init(struct progress *p, const struct lock_plan *plan, uv_loop_t *loop);
/* No server is connected yet; it is tried until then. */
void progress_connect(struct progress *p, clave_async_client *c, int64_t until);
void progress_begin(struct progress *p, const struct acquisition *acquisition,
                    clave_async_client *c, clave_uv *uv);
/* So many stand before us, the last of them (its path) right before. */
void progress_moved(struct progress *p, size_t ahead, const char *predecessor);
/* Wipes the line until it is drawn again: another is about to be told. */
void progress_clear(struct progress *p);
/* Wipes the line, for good. Harmless at any time. */
void progress_end(struct progress *p);
void progress_close(struct progress *p); /* its handle */

#endif
