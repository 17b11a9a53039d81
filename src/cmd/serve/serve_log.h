/* serve_log.h - the log of `clave serve` and `clave gate` on standard error, one line an event:
 * text for people, or a JSON object with the time, the level, the message and what it is about. */
#ifndef CLAVE_CMD_SERVE_SERVE_LOG_H
#define CLAVE_CMD_SERVE_SERVE_LOG_H

enum log_format { LOG_TEXT, LOG_JSON };

struct serve_log {
    const char *verb;                /* before each line of text */
    _Atomic(enum log_format) format; /* these change at SIGHUP, and any thread logs */
    _Atomic int level;               /* the lowest priority that is shown: CLAVE_LOG_* */
};

/* A clave_log_cb; `arg` is a struct serve_log. */
void serve_log_line(void *arg, int level, const char *msg);
/* What is shown at any level, without being an error: an operator waits for it. */
void serve_log_notice(const struct serve_log *l, const char *msg);

#endif
