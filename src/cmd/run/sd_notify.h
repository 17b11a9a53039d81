/* sd_notify.h - telling the service manager how it stands: sd_notify(3)'s protocol, which is one
 * datagram of lines to the socket that NOTIFY_SOCKET names. */
#ifndef CLAVE_CMD_RUN_SD_NOTIFY_H
#define CLAVE_CMD_RUN_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* When a holder says that it is ready. */
enum sd_notify_when {
    SD_NOTIFY_HELD,    /* once the command runs */
    SD_NOTIFY_WAITING, /* once it stands in the queue */
    SD_NOTIFY_COMMAND, /* never: that is up to the command, which gets NOTIFY_SOCKET */
    SD_NOTIFY_OFF,     /* nothing is said, and the command does not get it */
};

struct sd_notify {
    int fd; /* -1: nobody listens */
    bool ready, stopping;
    int64_t watchdog_ms; /* to be told of so often at least; 0: no watchdog */
};

/* What the environment says. */
void sd_notify_open(struct sd_notify *n);
void sd_notify_close(struct sd_notify *n);

/* Lines such as "STATUS=waiting". Never waits, and who does not listen misses it. */
void sd_notify_send(const struct sd_notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* READY=1 and STOPPING=1, each once. */
void sd_notify_ready(struct sd_notify *n);
void sd_notify_stopping(struct sd_notify *n);
void sd_notify_watchdog(const struct sd_notify *n);

/* In the process that starts the command. `own`: the notifications are clave's, and the command
 * inherits nothing of them; else they are the command's. */
void sd_notify_pass_on(bool own);
/* "NAME=value" is one of the variables. */
bool sd_notify_is_variable(const char *text);

#endif
