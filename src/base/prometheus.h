/* prometheus.h - a writer of metrics: Prometheus's text format 0.0.4 and OpenMetrics 1.0.
 *
 *     static const struct prometheus_family waiters = {"clave_lock_waiters", PROMETHEUS_GAUGE, 0,
 *                                                      "Clients that wait."};
 *     struct prometheus p = clave__prometheus_to(out, PROMETHEUS_TEXT);
 *     clave__prometheus_family(&p, &waiters);
 *     for (...)
 *         clave__prometheus_put(&p, (struct prometheus_label[]){{"path", path}, {0}}, n);
 *     clave__prometheus_end(&p);
 *
 * All samples of a family follow its _family; each family comes once. Numbers are integers in a
 * decimal fraction of the unit, so nothing depends on the locale and nothing is rounded.
 * The first error sticks: after it every call does nothing. `out` may be emptied or exchanged
 * between two calls, so a long page can be made in pieces. */
#ifndef CLAVE_BASE_PROMETHEUS_H
#define CLAVE_BASE_PROMETHEUS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/histogram.h"

enum prometheus_format { PROMETHEUS_TEXT, PROMETHEUS_OPENMETRICS };

enum prometheus_type {
    PROMETHEUS_GAUGE,
    PROMETHEUS_COUNTER,
    /* Of one sample, which Apache names without "_total": it has both names. Prometheus asks for
     * OpenMetrics, where no counter may have the first one; there it is of unknown type. */
    PROMETHEUS_BARE_COUNTER,
    PROMETHEUS_HISTOGRAM, /* by _histogram */
    PROMETHEUS_SUMMARY,   /* by _summary */
};

struct prometheus_family {
    const char *name; /* of a counter: without "_total", which is added */
    enum prometheus_type type;
    unsigned decimals; /* values are in units of 10^-decimals: 3 if seconds are given as ms */
    const char *help;  /* a sentence without backslashes, quotes and newlines */
};

/* A list ends with a name of NULL. The value is escaped; bytes that are not UTF-8 become U+FFFD. */
struct prometheus_label {
    const char *name;
    const char *value;
};

struct prometheus {
    struct buf *out;
    enum prometheus_format format;
    const struct prometheus_family *family;
    clave_err err; /* ETOOBIG, ENOMEM: the page is of no use */
};

/* The Content-Type of a page. */
const char *clave__prometheus_content_type(enum prometheus_format format);

struct prometheus clave__prometheus_to(struct buf *out, enum prometheus_format format);
/* Begins a family; `f` is valid until the next one. */
void clave__prometheus_family(struct prometheus *p, const struct prometheus_family *f);
/* A sample of a gauge or counter. Labels of NULL: none. */
void clave__prometheus_put(struct prometheus *p, const struct prometheus_label *labels,
                           int64_t value);
/* The same for a value already in digits: "4.25". */
void clave__prometheus_digits(struct prometheus *p, const struct prometheus_label *labels,
                              const char *digits);
void clave__prometheus_histogram(struct prometheus *p, const struct prometheus_label *labels,
                                 const struct histogram *h);

/* The values below which 0.5, 0.9 and 0.99 of the others were; below 0: there were none lately,
 * which is written as NaN. */
enum { PROMETHEUS_QUANTILES = 3 };
struct prometheus_summary {
    int64_t quantiles[PROMETHEUS_QUANTILES];
    bool has_quantiles;
    int64_t sum;
    uint64_t count;
};
void clave__prometheus_summary(struct prometheus *p, const struct prometheus_label *labels,
                               const struct prometheus_summary *s);
/* After the last family. */
void clave__prometheus_end(struct prometheus *p);

/* ---- which of the two formats ---------------------------------------------------------------- */

/* The format for an Accept header (NULL: none): OpenMetrics if it is named there, and the text
 * format is not preferred to it. */
enum prometheus_format clave__prometheus_accepted(const char *accept);

#endif
