/* metrics_page.c - the page for Prometheus: the figures of mntr_and_metrics.c, and those with
 * labels. The driver's HTTP server calls clave__metrics. docs/monitoring.md lists the names. */
#include "server/figures/metrics_page.h"

#include <inttypes.h>

#include "server/figures/mntr_and_metrics.h"
#include "server/request/bounds.h"
#include "wire/opcode.h"

static void metrics_head(struct text *p, const char *name, const char *type, const char *help)
{
    clave__text_put(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_put(void *arg, const struct figure *f, const char *value)
{
    metrics_head(arg, f->name, f->type, f->help);
    clave__text_put(arg, "%s %s\n", f->name, value);
}

/* A label's value is quoted: \, " and newlines are escaped. */
static void metrics_put_label(struct text *p, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            clave__text_put(p, "\\n");
        else
            clave__text_put(p, *text == '\\' || *text == '"' ? "\\%c" : "%c", *text);
    }
}

static void metrics_put_info(struct text *p)
{
    metrics_head(p, "zookeeper_info", "gauge", "Version and state of the server.");
    clave__text_put(p, "zookeeper_info{version=\"");
    metrics_put_label(p, clave__server_version);
    clave__text_put(p, "\",server_state=\"standalone\"} 1\n");
}

static void metrics_put_latency(struct text *p, const struct latency *l)
{
    metrics_head(p, "request_latency_ms", "summary", "Milliseconds from a request to its answer.");
    clave__text_put(p, "request_latency_ms_sum %" PRId64 "\nrequest_latency_ms_count %" PRIu64 "\n",
                    l->sum, l->count);
}

/* With its sync: what a write waits for. */
static void metrics_put_appends(struct text *p, const struct driver_stats *d)
{
    if (d->appends < 0)
        return;
    metrics_head(p, "log_append_ms", "summary",
                 "Milliseconds to write a batch of transactions to the disk.");
    clave__text_put(p, "log_append_ms_sum %" PRId64 ".%03d\nlog_append_ms_count %" PRId64 "\n",
                    d->append_us / 1000, (int)(d->append_us % 1000), d->appends);
}

static void metrics_put_requests(struct text *p, const struct server *s)
{
    metrics_head(p, "requests_total", "counter", "Requests of clients, by operation.");
    for (int32_t op = 0; op < (int32_t)(sizeof s->requests / sizeof *s->requests); op++)
        if (clave__opcode(op)->body)
            clave__text_put(p, "requests_total{op=\"%s\"} %" PRIu64 "\n", clave__opcode(op)->name,
                            s->requests[op]);
}

static void metrics_put_bounds(struct text *p, const struct server *s)
{
    metrics_head(p, "refused_total", "counter", "Requests beyond a bound, by bound.");
    for (enum server_bound b = 0; b < SERVER_BOUNDS; b++)
        clave__text_put(p, "refused_total{bound=\"%s\"} %" PRIu64 "\n", clave__bound_name(b),
                        s->bounds[b].refused);
}

clave_err clave__metrics(const struct server *s, struct buf *out)
{
    struct text p = {.out = out};
    metrics_put_info(&p);
    clave__figures_each(s, IN_LATENCY, metrics_put, &p);
    metrics_put_latency(&p, &s->latency);
    metrics_put_appends(&p, &s->driver_stats);
    for (unsigned section = IN_LOAD; section <= IN_DISK; section *= 2)
        clave__figures_each(s, section, metrics_put, &p);
    metrics_put_requests(&p, s);
    metrics_put_bounds(&p, s);
    clave__figures_each(s, IN_PROCESS, metrics_put, &p);
    return p.err;
}
