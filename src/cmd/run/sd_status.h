/* sd_status.h - what `clave lock` and the verbs like it report to the service manager, if there is
 * one. The watchdog is fed only while the servers confirm the session: for a holder that means
 * until its hold deadline, for a waiting participant while it is connected. */
#ifndef CLAVE_CMD_RUN_SD_STATUS_H
#define CLAVE_CMD_RUN_SD_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "cmd/service/sd_notify.h"

struct runner;

struct sd_status {
    struct sd_notify notify;
    uv_timer_t watchdog;
};

void sd_status_open(struct runner *r);
void sd_status_waiting(struct runner *r, size_t ahead, bool known);
void sd_status_unhealthy(struct runner *r); /* it does not queue */
void sd_status_delayed(struct runner *r);   /* granted, but the previous holder had lost the lock */
void sd_status_started(struct runner *r);   /* the command runs */
/* The command has sent READY=1; a new STATUS=; lines that only the service manager needs
 * (command_notify.h). */
void sd_status_said_ready(struct runner *r);
void sd_status_said(struct runner *r);
void sd_status_pass_on(struct runner *r, const char *lines, bool reloading);
void sd_status_connection(struct runner *r, bool up);
void sd_status_stopping(struct runner *r); /* the command has begun to end by itself */
void sd_status_ending(struct runner *r);   /* the command is being ended */
void sd_status_holdout(struct runner *r);  /* a process that cannot be ended was reported */
void sd_status_resting(struct runner *r);  /* the command has ended, the minimum hold has not */
void sd_status_leaving(struct runner *r);
void sd_status_close(struct runner *r);

#endif
