/* server_metrics.h - what monitoring reads. Map of the folder:
 *
 *   server_metrics.c   the table of figures, where a new field of mntr or a new metric is a line;
 *                      the page for Prometheus, mostly made from it; what the driver measures
 *   four_letter.c      the four-letter words, as text; mntr has figures of the table
 *   admin_commands.c   the admin commands, as JSON; monitor has figures of the table
 *   listing.c          answers made in pieces: cons, dump, wchc and so on, as text and as JSON
 *   quantiles.c        quantiles of recent times
 *
 * Prometheus' formats are in base/prometheus.h. No answer here waits for the disk. */
#ifndef CLAVE_SERVER_MONITORING_SERVER_METRICS_H
#define CLAVE_SERVER_MONITORING_SERVER_METRICS_H

#include "base/prometheus.h"
#include "server/connection/conn.h"

/* In version.c: "3.9.2-clave-0.1.0, built on 11/22/2026 21:30 UTC". The date has the format that
 * Apache used up to 3.4, since go-zookeeper reads no other. */
extern const char clave__server_version[];

enum { DECIMAL_CAP = 32 }; /* room for a number and its NUL */

/* ---- the table ------------------------------------------------------------------------------- */

/* Where a figure is shown: in mntr, in monitor, and in one of the page's sections, in their
 * order. */
enum {
    IN_MNTR = 1,
    IN_MONITOR = 2,
    IN_LATENCY = 4,
    IN_LOAD = 8,
    IN_NODES = 16,
    IN_STATE = 32,
    IN_DISK = 64,
    IN_PROCESS = 128,
};

struct figure {
    /* Its name is also the field's name in monitor, and in mntr after "zk_". The rest is set only
     * if a section of the page shows the figure. */
    struct prometheus_family metric;
    unsigned shown;
    /* The value is one of: the offset of a number in struct server, unknown if negative; a
     * function, which may return NULL if the value is unknown; a constant. */
    size_t at;
    size_t size;
    const char *(*get)(const struct server *s, char out[DECIMAL_CAP]);
    const char *constant;
};

/* Calls `visit` with each figure shown in this place whose value is known, in the order of the
 * table. */
typedef void figure_visit(void *arg, const struct figure *f, const char *value);
void clave__figures_each(const struct server *s, unsigned shown, figure_visit *visit, void *arg);

/* ---- values that are also shown elsewhere ---------------------------------------------------- */

/* Formats the average as Java prints a double with up to four decimals: "0.0", "4.25". */
const char *clave__latency_average(const struct latency *l, char out[DECIMAL_CAP]);
/* The number of nodes as Apache counts them: the root twice, as "" and as "/". */
size_t clave__count_nodes(const struct server *s);
/* Sizes of the snapshots and the logs in bytes; 0: unknown. */
struct data_sizes {
    int64_t snapshots;
    int64_t logs;
};
struct data_sizes clave__data_sizes(const struct server *s);

/* Resets the counters, as srst does. */
void clave__stats_reset(struct server *s);

/* ---- the page that Prometheus reads -----------------------------------------------------------
 */

/* Appends the page. ETOOBIG, ENOMEM: discard what was appended. */
clave_err clave__metrics(const struct server *s, enum prometheus_format format, struct buf *out);

#endif
