/* sd_notify.h - reports the state to the service manager with the protocol of sd_notify(3): one
 * datagram of lines, sent to the socket that NOTIFY_SOCKET names. */
#ifndef CLAVE_CMD_SERVICE_SD_NOTIFY_H
#define CLAVE_CMD_SERVICE_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

enum { SD_NOTIFY_CAP = 4096 }; /* the longest message, as systemd has it */

/* When clave reports that it is ready. */
enum sd_notify_when {
    SD_NOTIFY_HELD,    /* once the command runs */
    SD_NOTIFY_WAITING, /* once it has a place in the queue */
    SD_NOTIFY_COMMAND, /* once the command has said that it is (run/command_notify.h) */
    SD_NOTIFY_OFF,     /* never, nor anything else */
};

struct sd_notify {
    int fd; /* -1: there is no service manager */
    bool ready, stopping;
    /* The longest allowed interval between two notifications; 0: no watchdog. */
    int64_t watchdog_ms;
};

/* Opens the socket that the environment names. */
void sd_notify_open(struct sd_notify *n);
void sd_notify_close(struct sd_notify *n);

/* Sends lines such as "STATUS=waiting". Never waits; what the service manager does not accept at
 * once is lost. */
void sd_notify_send(const struct sd_notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* READY=1 and STOPPING=1. Each is sent at most once. */
void sd_notify_ready(struct sd_notify *n);
void sd_notify_stopping(struct sd_notify *n);
void sd_notify_watchdog(const struct sd_notify *n);

/* How often the watchdog of this process wants to be fed, in milliseconds, as the environment says;
 * 0: it has none. WATCHDOG_PID names the process that has it; other processes merely inherit the
 * variable. */
int64_t sd_notify_watchdog_ms(void);
/* In the process that becomes the command: what it is to talk to, in place of the service manager
 * of this process. NULL: nothing. `watchdog_ms` is 0 if nothing wants to be fed. */
void sd_notify_offer(const char *socket, int64_t watchdog_ms);
/* Whether `text`, of the form "NAME=value", sets one of these variables. */
bool sd_notify_is_variable(const char *text);

#endif
