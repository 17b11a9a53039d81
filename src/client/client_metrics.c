/* client_metrics.c - the metrics of a client; see client_metrics.h. The contenders of the recipes
 * note grants and losses, client_connection.c what becomes of the session. The names of the metrics
 * are part of the API: clave/metrics.h. */
#include "client/client_metrics.h"

#include <string.h>

#include "client/client_internal.h"
#include "wire/opcode.h"

/* ---- counting -------------------------------------------------------------------------------- */

/* In ms. */
static const struct histogram_bounds acquire_bounds = {
    14, {1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30000, 120000, 600000}};
static const struct histogram_bounds deadline_bounds = {
    10, {50, 100, 250, 500, 1000, 2500, 5000, 10000, 20000, 40000}};

void clave__client_metrics_init(struct client_metrics *m)
{
    *m = (struct client_metrics){0};
    clave__histogram_init(&m->acquire_ms, &acquire_bounds);
    clave__histogram_init(&m->slack_ms, &deadline_bounds);
}

void clave__client_note_grant(clave_async_client *c, bool elects, int64_t waited_ms)
{
    c->metrics.holds++;
    if (elects)
        c->metrics.leading++;
    else
        clave__histogram_note(&c->metrics.acquire_ms, waited_ms);
    if (c->grant_warning)
        clave__log(&c->base.log, CLAVE_LOG_WARN, "%s", c->grant_warning);
    clave__mem_free(&c->base.mem, c->grant_warning);
    c->grant_warning = NULL;
}

clave_err clave__client_warn_at_grant(clave_async_client *c, const char *text)
{
    size_t size = strlen(text) + 1;
    c->grant_warning = clave__mem_alloc(&c->base.mem, size);
    if (!c->grant_warning)
        return CLAVE_ENOMEM;
    memcpy(c->grant_warning, text, size);
    return CLAVE_OK;
}

void clave__client_note_end(clave_async_client *c, bool elects)
{
    c->metrics.holds--;
    c->metrics.leading -= elects;
}

static enum client_loss metrics_loss_of(clave_err why)
{
    static const struct {
        clave_err why;
        enum client_loss loss;
    } losses[] = {
        {CLAVE_EEXPIRED, CLIENT_LOSS_EXPIRED}, {CLAVE_ETIMEDOUT, CLIENT_LOSS_DEADLINE},
        {CLAVE_ENONODE, CLIENT_LOSS_DELETED},  {CLAVE_EMAXHOLD, CLIENT_LOSS_MAX_HOLD},
        {CLAVE_ESILENT, CLIENT_LOSS_SILENT},   {CLAVE_ECLOSED, CLIENT_LOSS_CLOSED},
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (losses[i].why == why)
            return losses[i].loss;
    return CLIENT_LOSS_OTHER;
}

void clave__client_note_loss(clave_async_client *c, clave_err why)
{
    c->metrics.losses[metrics_loss_of(why)]++;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void client_metrics_add(struct client_metrics *m, const struct client_metrics *more)
{
    clave__histogram_add(&m->acquire_ms, &more->acquire_ms);
    clave__histogram_add(&m->slack_ms, &more->slack_ms);
    for (size_t i = 0; i < CLIENT_LOSSES; i++)
        m->losses[i] += more->losses[i];
    m->reconnects += more->reconnects;
    m->sessions_lost += more->sessions_lost;
    m->holds += more->holds;
    m->leading += more->leading;
}

void clave__client_totals_init(struct client_totals *t)
{
    *t = (struct client_totals){0};
    clave__client_metrics_init(&t->metrics);
}

void clave__client_totals_add_client(struct client_totals *t, const clave_async_client *c)
{
    client_metrics_add(&t->metrics, &c->metrics);
    for (size_t i = 0; i < CLIENT_OPCODES; i++)
        t->requests[i] += c->pipeline.counts[i];
    if (c->session.state != CLAVE_STATE_CLOSED)
        t->sessions[c->session.state]++;
}

void clave__client_totals_add(struct client_totals *t, const struct client_totals *more)
{
    client_metrics_add(&t->metrics, &more->metrics);
    for (size_t i = 0; i < CLIENT_OPCODES; i++)
        t->requests[i] += more->requests[i];
    for (size_t i = 0; i < CLIENT_STATES; i++)
        t->sessions[i] += more->sessions[i];
}

/* ---- writing --------------------------------------------------------------------------------- */

static void client_put_number(struct prometheus *p, const struct prometheus_family *f, uint64_t n)
{
    clave__prometheus_family(p, f);
    clave__prometheus_put(p, NULL, (int64_t)n);
}

static void client_put_labelled(struct prometheus *p, const char *label, const char *value,
                                uint64_t n)
{
    const struct prometheus_label labels[] = {{label, value}, {NULL, NULL}};
    clave__prometheus_put(p, labels, (int64_t)n);
}

static void client_put_losses(struct prometheus *p, const struct client_metrics *m)
{
    static const struct prometheus_family f = {"clave_client_losses", PROMETHEUS_COUNTER, 0,
                                               "What was held and lost, by cause."};
    static const char *const causes[CLIENT_LOSSES] = {
        [CLIENT_LOSS_EXPIRED] = "expired", [CLIENT_LOSS_DEADLINE] = "deadline",
        [CLIENT_LOSS_DELETED] = "deleted", [CLIENT_LOSS_MAX_HOLD] = "max_hold",
        [CLIENT_LOSS_SILENT] = "silent",   [CLIENT_LOSS_CLOSED] = "closed",
        [CLIENT_LOSS_OTHER] = "other"};
    clave__prometheus_family(p, &f);
    for (size_t i = 0; i < CLIENT_LOSSES; i++)
        client_put_labelled(p, "cause", causes[i], m->losses[i]);
}

static void client_put_sessions(struct prometheus *p, const struct client_totals *t)
{
    static const struct prometheus_family f = {"clave_client_sessions", PROMETHEUS_GAUGE, 0,
                                               "Clients that are not closed, by state."};
    const uint64_t *n = t->sessions;
    clave__prometheus_family(p, &f);
    client_put_labelled(p, "state", "latent", n[CLAVE_STATE_LATENT]);
    client_put_labelled(p, "state", "connected",
                        n[CLAVE_STATE_CONNECTED] + n[CLAVE_STATE_RECONNECTED]);
    client_put_labelled(p, "state", "read_only", n[CLAVE_STATE_READ_ONLY]);
    client_put_labelled(p, "state", "suspended", n[CLAVE_STATE_SUSPENDED]);
    client_put_labelled(p, "state", "lost", n[CLAVE_STATE_LOST]);
}

static void client_put_requests(struct prometheus *p, const struct client_totals *t)
{
    static const struct prometheus_family f = {"clave_client_requests", PROMETHEUS_COUNTER, 0,
                                               "Requests sent, by operation."};
    clave__prometheus_family(p, &f);
    for (int32_t op = 0; op <= OP_WHO_AM_I; op++)
        if (clave__opcode(op)->body)
            client_put_labelled(p, "op", clave__opcode(op)->name,
                                t->requests[clave__client_opcode_place(op)]);
}

void clave__client_totals_put(struct prometheus *p, const struct client_totals *t)
{
    static const struct prometheus_family
        acquire = {"clave_client_acquire_seconds", PROMETHEUS_HISTOGRAM, 3,
                   "Time from an acquire to its grant."},
        slack = {"clave_client_deadline_slack_seconds", PROMETHEUS_HISTOGRAM, 3,
                 "Time left to the hold deadline when it moved on, while something was held."},
        holds = {"clave_client_holds", PROMETHEUS_GAUGE, 0, "Locks, leases and terms held."},
        leader = {"clave_client_is_leader", PROMETHEUS_GAUGE, 0, "Elections that are won."},
        reconnects = {"clave_client_reconnects", PROMETHEUS_COUNTER, 0,
                      "Connections after a client's first."},
        lost = {"clave_client_sessions_lost", PROMETHEUS_COUNTER, 0, "Sessions that ended early."};
    const struct client_metrics *m = &t->metrics;
    clave__prometheus_family(p, &acquire);
    clave__prometheus_histogram(p, NULL, &m->acquire_ms);
    clave__prometheus_family(p, &slack);
    clave__prometheus_histogram(p, NULL, &m->slack_ms);
    client_put_losses(p, m);
    client_put_number(p, &holds, m->holds);
    client_put_number(p, &leader, m->leading);
    client_put_number(p, &reconnects, m->reconnects);
    client_put_number(p, &lost, m->sessions_lost);
    client_put_sessions(p, t);
    client_put_requests(p, t);
}
