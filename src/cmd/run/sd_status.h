/* sd_status.h - what `clave lock` and its like tell the service manager, where there is one. The
 * watchdog is fed only while the servers confirm the session: a holder by its hold deadline, who
 * waits by the connection. */
#ifndef CLAVE_CMD_RUN_SD_STATUS_H
#define CLAVE_CMD_RUN_SD_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "cmd/run/sd_notify.h"

struct wrapper;

struct status {
    struct notify notify;
    uv_timer_t watchdog;
};

void sd_status_open(struct wrapper *w);
void sd_status_waiting(struct wrapper *w, size_t ahead, bool known);
void sd_status_delayed(struct wrapper *w); /* held, and the holder before was lost */
void sd_status_started(struct wrapper *w); /* the command runs */
void sd_status_connection(struct wrapper *w, bool up);
void sd_status_ending(struct wrapper *w);  /* the command is being ended */
void sd_status_resting(struct wrapper *w); /* the command has ended, the minimum hold has not */
void sd_status_leaving(struct wrapper *w);
void sd_status_close(struct wrapper *w);

#endif
