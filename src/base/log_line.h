/* log_line.h - a log line from a pure layer, handed to the owner's hook: its text, what it is
 * about, and how often one is written that others can cause without end. */
#ifndef CLAVE_BASE_LOG_LINE_H
#define CLAVE_BASE_LOG_LINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "clave/mem.h"

/* What a line is about, for those that take lines as data. */
struct log_about {
    const char *connection; /* the client's address; NULL: none */
    int64_t session;        /* 0: none */
    const char *path;       /* of a znode or a file; NULL: none */
};
/* As clave_log_cb. */
typedef void log_about_cb(void *arg, int level, const char *msg, const struct log_about *about);

struct log {
    clave_log_cb *cb; /* NULL: no log */
    void *arg;
    log_about_cb *about_cb;   /* called in its place; may be NULL */
    const _Atomic int *level; /* lines that are less important would be dropped by the hook, so they
                               * are not formatted; NULL: the hook gets every line */
};

/* Formats into a buffer of 2048 bytes (longer lines are cut), and only when there is a
 * hook that takes lines of this level. Lines are a contract: the wording is stable, with no
 * pointers and no wall time. */
__attribute__((format(printf, 3, 4))) void clave__log(const struct log *l, int level,
                                                      const char *fmt, ...);
__attribute__((format(printf, 4, 5))) void clave__log_about(const struct log *l, int level,
                                                            const struct log_about *about,
                                                            const char *fmt, ...);
__attribute__((format(printf, 4, 0))) void clave__log_list(const struct log *l, int level,
                                                           const struct log_about *about,
                                                           const char *fmt, va_list ap);

/* ---- how often ------------------------------------------------------------------------------- */

/* Whether one is written now: one a second, by a clock of milliseconds. */
static inline bool clave__log_may_tell(uint64_t *again_at, uint64_t now)
{
    enum { PAUSE_MS = 1000 };
    if (now < *again_at)
        return false;
    *again_at = now + PAUSE_MS;
    return true;
}

/* ---- numbers in messages --------------------------------------------------------------------- */

static inline const char *clave__plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
