/* serve_log.c - formats the lines of the log and has them written (see serve_log.h). serve.c and
 * settings_load.c pass its callbacks to the engine. Lines come out in the order in which they were
 * logged, and never interleaved. */
#include "cmd/serve/serve_log.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/log_line.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "cmd/cli/format.h"
#include "cmd/cli/standard_error.h"
#include "runtime/clock.h"

/* How many bytes of lines may wait for the thread, and how much memory it keeps for its next
 * job. */
enum { MOST_WAITING = 256 * 1024, KEEP_LINES = 16 * 1024 };

/* ---- the line -------------------------------------------------------------------------------- */

static void serve_log_put_json(struct buf *out, int level, const char *msg,
                               const struct log_about *about)
{
    static const char *const names[] = {"error", "error", "warn", "info", "debug"};
    char when[TIME_TEXT_CAP], id[24];
    struct json j = clave__json_to(out);
    clave__json_open(&j, NULL, '{');
    clave__json_string(&j, "time", time_text(clave__clock_wall(), when));
    clave__json_string(&j, "level", names[level > 0 && level <= CLAVE_LOG_DEBUG ? level : 0]);
    clave__json_string(&j, "message", msg);
    if (about->connection)
        clave__json_string(&j, "connection", about->connection);
    if (about->session != 0) {
        snprintf(id, sizeof id, "0x%llx", (unsigned long long)about->session);
        clave__json_string(&j, "session", id);
    }
    if (about->path)
        clave__json_string(&j, "path", about->path);
    clave__json_close(&j, '}');
}

static bool serve_log_shows_time(const struct serve_log *l)
{
    enum log_time time = l->time;
    return time == LOG_TIME_YES || (time == LOG_TIME_AUTO && l->is_timed && l->has_served);
}

/* Replaces control characters: paths and names come from other people, and must neither end the
 * line nor be obeyed by a terminal. */
static void serve_log_put_message(struct buf *out, const char *msg)
{
    const char *from = msg;
    for (size_t len; *msg; msg += len) {
        len = clave__utf8_printable(msg, strnlen(msg, 4));
        if (len > 0)
            continue;
        clave__buf_append(out, from, (size_t)(msg - from));
        clave__buf_append(out, "?", 1);
        for (len = 1; (msg[len] & 0xc0) == 0x80;) /* the rest of the same character */
            len++;
        from = msg + len;
    }
    clave__buf_append(out, from, (size_t)(msg - from));
}

static void serve_log_put_text(struct buf *out, const struct serve_log *l, const char *msg)
{
    char when[TIME_TEXT_CAP] = "";
    bool timed = serve_log_shows_time(l);
    if (timed)
        time_text(clave__clock_wall(), when);
    const char *const parts[] = {when, timed ? " " : "", "clave: ", l->verb, ": "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        clave__buf_append(out, parts[i], strlen(parts[i]));
    serve_log_put_message(out, msg);
}

static const struct log_about serve_log_about_nothing;

static size_t serve_log_len(const char *text)
{
    return text ? strlen(text) : 0;
}

/* Reserves enough for the longest possible result, in which each byte becomes six. */
static void serve_log_put(struct serve_log *l, int level, const char *msg,
                          const struct log_about *about)
{
    size_t n = strlen(msg) + serve_log_len(about->connection) + serve_log_len(about->path);
    size_t most = 6 * n + strlen(l->verb) + TIME_TEXT_CAP + 200;
    if (clave__buf_len(&l->waiting) >= MOST_WAITING ||
        clave__buf_reserve(&l->waiting, most) != CLAVE_OK) {
        l->dropped++;
        return;
    }
    const char *priority = standard_error_priority(level);
    clave__buf_append(&l->waiting, priority, strlen(priority));
    if (l->format == LOG_JSON)
        serve_log_put_json(&l->waiting, level, msg, about);
    else
        serve_log_put_text(&l->waiting, l, msg);
    clave__buf_append(&l->waiting, "\n", 1);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int serve_log_job(struct disk_thread *t)
{
    struct serve_log *l = (struct serve_log *)(void *)t; /* `thread` is the first member */
    return clave__line_file_write(&l->file, &t->bytes);
}

/* Returns 0 or an errno. */
static int serve_log_write_now(struct serve_log *l)
{
    int fault = clave__line_file_write(&l->file, &l->waiting);
    clave__buf_trim(&l->waiting, 0);
    return fault;
}

/* Hands the waiting lines to the thread if it is idle. If there is no thread, writes them here. */
static void serve_log_pump(struct serve_log *l)
{
    struct disk_thread *t = &l->thread;
    if (clave__buf_len(&l->waiting) == 0 || (t->running && clave__disk_thread_state(t) != JOB_FREE))
        return;
    if (!t->running &&
        clave__disk_thread_start(t, "clave-log", serve_log_job, &l->mem, NULL) != CLAVE_OK) {
        serve_log_write_now(l);
        return;
    }
    struct buf empty = t->bytes;
    t->bytes = l->waiting;
    l->waiting = empty;
    clave__disk_thread_post(t);
}

/* Adds a line that says how many lines were lost, as soon as there is room for it and lines can be
 * written again. */
static void serve_log_tell_lost(struct serve_log *l)
{
    char msg[160];
    l->dropped += l->file.lost;
    l->file.lost = 0;
    if (l->dropped == 0 || clave__buf_len(&l->waiting) >= MOST_WAITING)
        return;
    bool is_late = l->fault == 0 || l->fault == ETIMEDOUT;
    snprintf(msg, sizeof msg, "the log has lost %llu line%s: %s", (unsigned long long)l->dropped,
             clave__plural(l->dropped),
             is_late ? "they come faster than they can be written" : strerror(l->fault));
    l->dropped = 0;
    l->fault = 0;
    serve_log_put(l, CLAVE_LOG_WARN, msg, &serve_log_about_nothing);
}

/* Hands over the lines that have come in the meantime. */
static void serve_log_on_done(struct disk_thread *t)
{
    struct serve_log *l = (struct serve_log *)(void *)t;
    pthread_mutex_lock(&l->mutex);
    clave__disk_thread_take(t, KEEP_LINES);
    if (t->fault != 0)
        l->fault = t->fault;
    else
        serve_log_tell_lost(l);
    if (l->mode == LOG_QUEUES)
        serve_log_pump(l);
    pthread_mutex_unlock(&l->mutex);
}

/* ---- called by others ------------------------------------------------------------------------ */

static void serve_log_add(struct serve_log *l, int level, const char *msg,
                          const struct log_about *about)
{
    pthread_mutex_lock(&l->mutex);
    serve_log_put(l, level, msg, about);
    if (l->mode == LOG_QUEUES)
        serve_log_pump(l);
    else if (l->mode == LOG_DIRECT)
        serve_log_write_now(l);
    pthread_mutex_unlock(&l->mutex);
}

void serve_log_line(void *arg, int level, const char *msg)
{
    serve_log_about(arg, level, msg, &serve_log_about_nothing);
}

void serve_log_about(void *arg, int level, const char *msg, const struct log_about *about)
{
    struct serve_log *l = arg;
    if (level <= l->level)
        serve_log_add(l, level, msg, about);
}

void serve_log_notice(struct serve_log *l, const char *msg)
{
    serve_log_add(l, CLAVE_LOG_INFO, msg, &serve_log_about_nothing);
}

void serve_log_init(struct serve_log *l, const char *verb)
{
    memset(l, 0, sizeof *l);
    l->verb = verb;
    l->mem = clave__mem_or_default(NULL);
    l->file.fd = STDERR_FILENO;
    l->is_timed = !isatty(STDERR_FILENO) && !standard_error_is_journal();
    l->thread.on_done = serve_log_on_done;
    atomic_init(&l->file.waits, true);
    pthread_mutex_init(&l->mutex, NULL);
    clave__buf_init(&l->waiting, &l->mem, 2 * MOST_WAITING);
}

void serve_log_fini(struct serve_log *l)
{
    assert(l->mode == LOG_DIRECT);
    clave__buf_fini(&l->waiting);
    pthread_mutex_destroy(&l->mutex);
}

static void serve_log_enter(struct serve_log *l, enum log_mode mode)
{
    pthread_mutex_lock(&l->mutex);
    assert(mode != LOG_QUEUES || l->mode == LOG_DIRECT);
    assert(mode != LOG_ENDS || l->mode == LOG_QUEUES);
    assert(mode != LOG_DIRECT || l->mode == LOG_ENDS);
    l->mode = mode;
    l->has_served |= mode == LOG_QUEUES;
    if (mode == LOG_DIRECT && serve_log_write_now(l) == 0) {
        serve_log_tell_lost(l);
        serve_log_write_now(l);
    }
    pthread_mutex_unlock(&l->mutex);
}

void serve_log_begin_queue(struct serve_log *l)
{
    serve_log_enter(l, LOG_QUEUES);
}

void serve_log_end_queue(struct serve_log *l)
{
    serve_log_enter(l, LOG_ENDS);
    atomic_store(&l->file.waits, false);
    clave__disk_thread_stop(&l->thread);
    serve_log_enter(l, LOG_DIRECT);
}
