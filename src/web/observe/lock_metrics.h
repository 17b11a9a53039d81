/* lock_metrics.h - all locks and elections as metrics, in pieces: a page of 10 000 locks is
 * made in turns of a few milliseconds.
 *
 * A path is a label only below the prefixes that are given, and of the first `max_paths` locks
 * there; all others are one sample each kind, with path="other". */
#ifndef CLAVE_WEB_OBSERVE_LOCK_METRICS_H
#define CLAVE_WEB_OBSERVE_LOCK_METRICS_H

#include "base/prometheus.h"
#include "web/observe/observe.h"

struct metrics_labels {
    const char *const *prefixes; /* none: no path is a label */
    size_t nprefixes;
    size_t max_paths; /* 0: 1000 */
};

/* The sums of all locks of one kind whose path is not a label. */
struct metrics_others {
    size_t n, holders, unhealthy, waiters, left_over;
    int64_t queued, held; /* the earliest; INT64_MAX: none */
    int64_t terms, vacant_ms;
};

struct metrics_page {
    const struct observe *o;
    struct metrics_labels labels;
    struct prometheus p;
    size_t step;      /* of those in lock_metrics.c */
    bool within;      /* the step has begun */
    size_t nlabelled; /* in this step */
    struct buf at;    /* the path this step has come to, with its NUL */
    bool at_leases;
    struct metrics_others others[LOCK_KINDS];
};

void clave__lock_metrics_init(struct metrics_page *p, const struct observe *o,
                              const struct metrics_labels *labels, enum prometheus_format format);
void clave__lock_metrics_fini(struct metrics_page *p);
/* Appends some more; *done: that was all, but for clave__prometheus_end. ETOOBIG, ENOMEM. */
clave_err clave__lock_metrics_piece(struct metrics_page *p, struct buf *out, bool *done);

#endif
