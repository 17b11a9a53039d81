/* log_line.h - a log line from a pure layer, handed to the owner's hook as text. */
#ifndef CLAVE_BASE_LOG_LINE_H
#define CLAVE_BASE_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "clave/mem.h"

struct log {
    clave_log_cb *cb; /* NULL: no log */
    void *arg;
};

/* Formats into a buffer of 2048 bytes (longer lines are cut), and only when there is a
 * hook. Lines are a contract: the wording is stable, with no pointers and no wall time. */
__attribute__((format(printf, 3, 4))) void clave__log(const struct log *l, int level,
                                                      const char *fmt, ...);
/* Whether a line that others can cause without end is written now: one a second, by a clock of
 * milliseconds. */
bool clave__log_may_tell(uint64_t *again_at, uint64_t now);

#endif
