/* serve_log.h - the log of `clave serve` and `clave gate` on standard error, one line an event:
 * text for people, or a JSON object with the time, the level, the message and what it is about.
 *
 * While clients are served a thread writes it, so that a full pipe or a disk that hangs costs
 * lines, which are counted, and holds nobody up. Before and after, each line is written at once, in
 * order with what else the program says. */
#ifndef CLAVE_CMD_SERVE_SERVE_LOG_H
#define CLAVE_CMD_SERVE_SERVE_LOG_H

#include <pthread.h>

#include "base/log_line.h"
#include "runtime/line_file.h"
#include "runtime/store/disk_thread.h"

enum log_format { LOG_TEXT, LOG_JSON };
/* AUTO: from when clients are served, unless standard error is a terminal, whose user sees the
 * lines come, or systemd's journal, which has a time for each. */
enum log_time { LOG_TIME_AUTO, LOG_TIME_YES, LOG_TIME_NO };

/* DIRECT ──_begin_queue──▶ QUEUES ──_end_queue──▶ ENDS ──▶ DIRECT
 *                                     (until the thread has ended) */
enum log_mode { LOG_DIRECT, LOG_QUEUES, LOG_ENDS };

struct serve_log {
    struct disk_thread thread;       /* started by the first line that it has to write */
    const char *verb;                /* before each line of text */
    _Atomic(enum log_format) format; /* these change at SIGHUP, and any thread logs */
    _Atomic(enum log_time) time;     /* of text; JSON always has it */
    _Atomic int level;               /* the lowest priority that is shown: CLAVE_LOG_* */
    struct clave_mem mem;
    struct line_file file; /* of the job, if there is one */
    pthread_mutex_t mutex; /* guards what follows, and the states of the thread */
    enum log_mode mode;
    bool has_served;    /* whatever the mode is now */
    bool is_timed;      /* the reader of standard error has no time for each line */
    struct buf waiting; /* lines */
    uint64_t dropped;   /* lines for which there was no room, or that could not be written */
    int fault;          /* errno; why they could not */
};

/* `verb` outlives it. */
void serve_log_init(struct serve_log *l, const char *verb);
/* After _end_queue, if there was a _begin_queue. */
void serve_log_fini(struct serve_log *l);

/* From now on a thread writes. */
void serve_log_begin_queue(struct serve_log *l);
/* Writes what is left; a pipe that stays full for a second loses it. */
void serve_log_end_queue(struct serve_log *l);

/* A clave_log_cb for any thread; `arg` is a struct serve_log. */
void serve_log_line(void *arg, int level, const char *msg);
/* A log_about_cb, likewise. */
void serve_log_about(void *arg, int level, const char *msg, const struct log_about *about);
/* What is shown at any level, without being an error: an operator waits for it. */
void serve_log_notice(struct serve_log *l, const char *msg);

#endif
