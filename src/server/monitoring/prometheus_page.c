/* prometheus_page.c - the page for Prometheus: the figures of mntr_and_metrics.c, and the metrics
 * that are more than a number. The driver's HTTP server calls clave__metrics.
 * docs/operate/monitoring.md lists the names: those of Apache 3.9 where it has such a metric, the
 * others begin with "clave_" or are older than that rule. A test holds that page and contrib/
 * against what is here. */
#include "server/monitoring/prometheus_page.h"

#include <stddef.h>

#include "server/connection/client_limits.h"
#include "server/monitoring/mntr_and_metrics.h"
#include "wire/opcode.h"

/* ---- the figures ----------------------------------------------------------------------------- */

static void prometheus_put(void *arg, const struct figure *f, const char *value)
{
    clave__prometheus_family(arg, &f->metric);
    clave__prometheus_digits(arg, NULL, value);
}

static void prometheus_put_info(struct prometheus *p)
{
    static const struct prometheus_family f = {"zookeeper_info", PROMETHEUS_GAUGE, 0,
                                               "Version and state of the server."};
    const struct prometheus_label labels[] = {
        {"version", clave__server_version}, {"server_state", "standalone"}, {NULL, NULL}};
    clave__prometheus_family(p, &f);
    clave__prometheus_put(p, labels, 1);
}

/* ---- times ----------------------------------------------------------------------------------- */

enum { NEVER = 0 };
#define AT(member) offsetof(struct server, member)

/* Apache has those of an ensemble on a single server, too, and they are empty there. */
static const struct {
    struct prometheus_family family;
    size_t at; /* its quantiles in struct server; NEVER: nothing is ever noted */
} summaries[] = {
    {{"readlatency", PROMETHEUS_SUMMARY, 0, "Milliseconds from a read to its answer."},
     AT(counts.read_ms)},
    {{"updatelatency", PROMETHEUS_SUMMARY, 0, "Milliseconds from a write to its answer."},
     AT(counts.write_ms)},
    {{"local_write_committed_time_ms", PROMETHEUS_SUMMARY, 0,
      "Milliseconds until a write is committed."},
     AT(counts.write_ms)},
    {{"server_write_committed_time_ms", PROMETHEUS_SUMMARY, 0,
      "Of other servers' writes: there are none."},
     NEVER},
    {{"proposal_latency", PROMETHEUS_SUMMARY, 0, "Of followers: there are none."}, NEVER},
    {{"election_time", PROMETHEUS_SUMMARY, 0, "Of elections of a leading server: there are none."},
     NEVER},
    {{"fsynctime", PROMETHEUS_SUMMARY, 3,
      "Milliseconds to write a batch of transactions to the disk."},
     AT(counts.fsync_us)},
    {{"log_append_ms", PROMETHEUS_SUMMARY, 3, "The same as fsynctime."}, AT(counts.fsync_us)},
    {{"snapshottime", PROMETHEUS_SUMMARY, 0, "Milliseconds to make and write a snapshot."},
     AT(counts.snapshot_ms)},
};

static struct prometheus_summary prometheus_summary_of(const struct quantiles *q, int64_t now)
{
    return (struct prometheus_summary){.quantiles = {clave__quantiles_at(q, now, 500),
                                                     clave__quantiles_at(q, now, 900),
                                                     clave__quantiles_at(q, now, 990)},
                                       .has_quantiles = true,
                                       .sum = q->sum,
                                       .count = q->count};
}

static void prometheus_put_times(struct prometheus *p, const struct server *s)
{
    static const struct prometheus_family all = {"request_latency_ms", PROMETHEUS_SUMMARY, 0,
                                                 "Milliseconds from a request to its answer."};
    struct prometheus_summary summary = {.sum = s->counts.latency.sum,
                                         .count = s->counts.latency.count};
    clave__prometheus_family(p, &all);
    clave__prometheus_summary(p, NULL, &summary);
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++) {
        const void *at = (const char *)s + summaries[i].at;
        summary = (struct prometheus_summary){{-1, -1, -1}, true, 0, 0};
        if (summaries[i].at != NEVER)
            summary = prometheus_summary_of(at, s->now);
        clave__prometheus_family(p, &summaries[i].family);
        clave__prometheus_summary(p, NULL, &summary);
    }
}

/* ---- with labels ----------------------------------------------------------------------------- */

static void prometheus_put_labelled(struct prometheus *p, const char *label, const char *value,
                                    uint64_t n)
{
    const struct prometheus_label labels[] = {{label, value}, {NULL, NULL}};
    clave__prometheus_put(p, labels, (int64_t)n);
}

static void prometheus_put_requests(struct prometheus *p, const struct server *s)
{
    static const struct prometheus_family f = {"requests", PROMETHEUS_COUNTER, 0,
                                               "Requests of clients, by operation."};
    clave__prometheus_family(p, &f);
    for (int32_t op = 0; op < (int32_t)(sizeof s->counts.requests / sizeof *s->counts.requests);
         op++)
        if (clave__opcode(op)->body)
            prometheus_put_labelled(p, "op", clave__opcode(op)->name, s->counts.requests[op]);
}

static void prometheus_put_bounds(struct prometheus *p, const struct server *s)
{
    static const struct prometheus_family f = {"refused", PROMETHEUS_COUNTER, 0,
                                               "Requests beyond a bound, by bound."};
    clave__prometheus_family(p, &f);
    for (enum server_bound b = 0; b < SERVER_BOUNDS; b++)
        prometheus_put_labelled(p, "bound", clave__client_limit_name(b),
                                s->refused.bounds[b].refused);
}

static void prometheus_put_sessions(struct prometheus *p, const struct sessions *t)
{
    static const struct prometheus_family
        slack = {"clave_session_slack_seconds", PROMETHEUS_HISTOGRAM, 3,
                 "Time that a session had left when its client was heard."},
        ends = {"clave_session_ends", PROMETHEUS_COUNTER, 0, "Sessions that ended, by cause."};
    static const char *const causes[SESSION_ENDS] = {
        [SESSION_EXPIRED] = "expired", [SESSION_CLOSED] = "closed", [SESSION_BARRED] = "operator"};
    clave__prometheus_family(p, &slack);
    clave__prometheus_histogram(p, NULL, &t->slack_ms);
    clave__prometheus_family(p, &ends);
    for (size_t i = 0; i < SESSION_ENDS; i++)
        prometheus_put_labelled(p, "cause", causes[i], t->ends[i]);
}

/* ---- the page -------------------------------------------------------------------------------- */

clave_err clave__metrics(const struct server *s, enum prometheus_format format, struct buf *out)
{
    struct prometheus p = clave__prometheus_to(out, format);
    prometheus_put_info(&p);
    clave__figures_each(s, IN_LATENCY, prometheus_put, &p);
    prometheus_put_times(&p, s);
    for (unsigned section = IN_LOAD; section <= IN_DISK; section *= 2)
        clave__figures_each(s, section, prometheus_put, &p);
    prometheus_put_requests(&p, s);
    prometheus_put_bounds(&p, s);
    prometheus_put_sessions(&p, &s->sessions);
    clave__figures_each(s, IN_PROCESS, prometheus_put, &p);
    clave__prometheus_end(&p);
    return p.err;
}
