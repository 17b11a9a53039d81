/* server_metrics.h - what monitoring reads. Map of the folder:
 *
 *   server_metrics.c   the table of figures: a new field of mntr or a new metric is a line; the
 * page for Prometheus, most of it from the table; what the driver measures four_letter.c      the
 * four-letter words, as text; mntr has figures of the table admin_commands.c   the admin commands,
 * as JSON; monitor has figures of the table listing.c          answers in pieces: cons, dump, wchc
 * and so on, as text and as JSON quantiles.c        quantiles of recent times
 *
 * Prometheus' formats are in base/prometheus.h. Nothing here waits until a write is on
 * the disk. */
#ifndef CLAVE_SERVER_MONITORING_SERVER_METRICS_H
#define CLAVE_SERVER_MONITORING_SERVER_METRICS_H

#include "base/prometheus.h"
#include "server/connection/conn.h"

/* version.c: "3.9.2-clave-0.1.0, built on 11/22/2026 21:30 UTC". The date has Apache's format up
 * to 3.4, the only one that go-zookeeper reads. */
extern const char clave__server_version[];

enum { DECIMAL_CAP = 32 }; /* room for a number and its NUL */

/* ---- the table ------------------------------------------------------------------------------- */

/* Who shows a figure: mntr, monitor, and the sections of the page of metrics, in their order. */
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
    /* Its name is the field of monitor, too; mntr puts "zk_" before it. Only those that a section
     * of the page shows have the rest of it. */
    struct prometheus_family metric;
    unsigned shown;
    /* The value: a number in struct server, below 0 when it is not known; or what is computed,
     * which may be NULL when it is not known; or a constant. */
    size_t at;
    size_t size;
    const char *(*get)(const struct server *s, char out[DECIMAL_CAP]);
    const char *constant;
};

/* Calls `visit` with each figure that is shown there and known, in the order of the table. */
typedef void figure_visit(void *arg, const struct figure *f, const char *value);
void clave__figures_each(const struct server *s, unsigned shown, figure_visit *visit, void *arg);

/* ---- values that are shown in other places too ----------------------------------------------- */

/* As Java prints a double with up to four decimals: "0.0", "4.25". */
const char *clave__latency_average(const struct latency *l, char out[DECIMAL_CAP]);
/* Apache counts its root twice, as "" and as "/". */
size_t clave__count_nodes(const struct server *s);
/* Bytes of the snapshots and of the logs; 0: not known. */
struct data_sizes {
    int64_t snapshots;
    int64_t logs;
};
struct data_sizes clave__data_sizes(const struct server *s);

/* Resets the counters of the server. */
void clave__stats_reset(struct server *s);

/* ---- the page that Prometheus reads -----------------------------------------------------------
 */

/* Appends all metrics. ETOOBIG, ENOMEM: discard them. */
clave_err clave__metrics(const struct server *s, enum prometheus_format format, struct buf *out);

#endif
