/* sd_notify.h - telling the service manager how it stands: sd_notify(3)'s protocol, which is one
 * datagram of lines to the socket that NOTIFY_SOCKET names. */
#ifndef CLAVE_CMD_RUN_SD_NOTIFY_H
#define CLAVE_CMD_RUN_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* When a holder says that it is ready. */
enum notify_when {
    NOTIFY_HELD,    /* once the command runs */
    NOTIFY_WAITING, /* once it stands in the queue */
    NOTIFY_COMMAND, /* never: that is up to the command, which gets NOTIFY_SOCKET */
    NOTIFY_OFF,     /* nothing is said, and the command does not get it */
};

struct notify {
    int fd; /* -1: nobody listens */
    bool ready, stopping;
    int64_t watchdog_ms; /* to be told of so often at least; 0: no watchdog */
};

/* What the environment says. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);

/* Lines such as "STATUS=waiting". Never waits, and who does not listen misses it. */
void notify_tell(const struct notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* READY=1 and STOPPING=1, each once. */
void notify_ready(struct notify *n);
void notify_stopping(struct notify *n);
void notify_watchdog(const struct notify *n);

/* In the process that starts the command. `own`: the notifications are clave's, and the command
 * inherits nothing of them; else they are the command's. */
void notify_hand_on(bool own);
/* "NAME=value" is one of the variables. */
bool notify_is_variable(const char *text);

#endif
