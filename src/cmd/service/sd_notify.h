/* sd_notify.h - reports the state to the service manager by sd_notify(3)'s protocol: one datagram
 * of lines to the socket that NOTIFY_SOCKET names. */
#ifndef CLAVE_CMD_SERVICE_SD_NOTIFY_H
#define CLAVE_CMD_SERVICE_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* When a holder reports that it is ready. */
enum sd_notify_when {
    SD_NOTIFY_HELD,    /* once the command runs */
    SD_NOTIFY_WAITING, /* once it is in the queue */
    SD_NOTIFY_COMMAND, /* never: that is up to the command, which gets NOTIFY_SOCKET */
    SD_NOTIFY_OFF,     /* never, and the command does not inherit NOTIFY_SOCKET */
};

struct sd_notify {
    int fd; /* -1: there is no service manager */
    bool ready, stopping;
    int64_t watchdog_ms; /* the longest interval between two notifications; 0: no watchdog */
};

/* Reads the environment. */
void sd_notify_open(struct sd_notify *n);
void sd_notify_close(struct sd_notify *n);

/* Sends lines such as "STATUS=waiting". Never waits: what the service manager does not take is
 * lost. */
void sd_notify_send(const struct sd_notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Send READY=1 and STOPPING=1, each at most once. */
void sd_notify_ready(struct sd_notify *n);
void sd_notify_stopping(struct sd_notify *n);
void sd_notify_watchdog(const struct sd_notify *n);

/* For the process that starts the command. `own`: the notifications are clave's, and the command
 * inherits none of the variables; otherwise it does. */
void sd_notify_pass_on(bool own);
/* Is this "NAME=value" one of the variables? */
bool sd_notify_is_variable(const char *text);

#endif
