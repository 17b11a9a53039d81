/* serve_log.h - the log of `clave serve` and `clave gate` on standard error, one line per event:
 * text for people, or a JSON object with the time, the level, the message, and what the message is
 * about.
 *
 * While clients are served, a thread writes the log, so that a full pipe or a disk that hangs
 * delays nobody; it costs lines, which are counted. Before and after that, each line is written at
 * once, in order with the other output of the program. */
#ifndef CLAVE_CMD_SERVE_SERVE_LOG_H
#define CLAVE_CMD_SERVE_SERVE_LOG_H

#include <pthread.h>

#include "base/log_line.h"
#include "runtime/line_file.h"
#include "runtime/store/disk_thread.h"

enum log_format { LOG_TEXT, LOG_JSON };
/* LOG_TIME_AUTO shows the time once clients are served, unless standard error is a terminal, where
 * the user sees the lines as they come, or systemd's journal, which records the time itself. */
enum log_time { LOG_TIME_AUTO, LOG_TIME_YES, LOG_TIME_NO };

/* DIRECT ──_begin_queue──▶ QUEUES ──_end_queue──▶ ENDS ──▶ DIRECT
 *                                     (until the thread has ended) */
enum log_mode { LOG_DIRECT, LOG_QUEUES, LOG_ENDS };

struct serve_log {
    struct disk_thread thread; /* started when there is the first line to write */
    const char *verb;          /* precedes each line of text */
    /* These three change on SIGHUP, while any thread may log. */
    _Atomic(enum log_format) format;
    _Atomic(enum log_time) time; /* for text; JSON always contains the time */
    _Atomic int level;           /* the least important level that is shown: CLAVE_LOG_* */
    struct clave_mem mem;
    struct line_file file; /* belongs to the job while there is one */
    pthread_mutex_t mutex; /* guards the members below and the state of the thread */
    enum log_mode mode;
    bool has_served;    /* clients have been served, whatever the mode is now */
    bool is_timed;      /* AUTO shows the time: the reader of standard error does not */
    struct buf waiting; /* lines that wait for the thread */
    /* Lines lost because there was no room, or because they could not be written. */
    uint64_t dropped;
    int fault; /* errno of the failed write */
};

/* `verb` must outlive the log. */
void serve_log_init(struct serve_log *l, const char *verb);
/* To be called after serve_log_end_queue, if the queue was begun. */
void serve_log_fini(struct serve_log *l);

/* From now on a thread writes the lines. */
void serve_log_begin_queue(struct serve_log *l);
/* Writes the lines that are left and ends the thread. If a pipe stays full for a second, they are
 * lost. */
void serve_log_end_queue(struct serve_log *l);

/* A clave_log_cb that may be called from any thread; `arg` is the struct serve_log. */
void serve_log_line(void *arg, int level, const char *msg);
/* A log_about_cb, with the same `arg` and thread rule. */
void serve_log_about(void *arg, int level, const char *msg, const struct log_about *about);
/* Shows a line at every log level, although it is not an error, because an operator is waiting for
 * it. */
void serve_log_notice(struct serve_log *l, const char *msg);

#endif
