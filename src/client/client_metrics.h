/* client_metrics.h - the counters of a client for clave/metrics.h, and their sum over several
 * clients. They are part of the client and belong to its thread; src/runtime/blocking adds them
 * up. */
#ifndef CLAVE_CLIENT_CLIENT_METRICS_H
#define CLAVE_CLIENT_CLIENT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/prometheus.h"
#include "clave/async/client.h"

/* Why something that was held was lost. */
enum client_loss {
    CLIENT_LOSS_EXPIRED,  /* the server had ended the session */
    CLIENT_LOSS_DEADLINE, /* no server had confirmed the session in time */
    CLIENT_LOSS_DELETED,  /* somebody had deleted the node */
    CLIENT_LOSS_MAX_HOLD,
    CLIENT_LOSS_SILENT,
    CLIENT_LOSS_CLOSED, /* the client was closed */
    CLIENT_LOSS_OTHER,
    CLIENT_LOSSES
};

/* The counters of one client, or of several added up. */
struct client_metrics {
    struct histogram acquire_ms; /* from an acquire to its grant; elections not included */
    struct histogram slack_ms;   /* how much of the hold deadline was left when it moved on */
    uint64_t losses[CLIENT_LOSSES];
    uint64_t reconnects;
    uint64_t sessions_lost;
    uint64_t holds;   /* held at present, leaderships included */
    uint64_t leading; /* leaderships at present */
};

void clave__client_metrics_init(struct client_metrics *m);
/* Something was granted, `waited_ms` after it was requested. `elects`: it is a leadership. */
void clave__client_note_grant(clave_async_client *c, bool elects, int64_t waited_ms);
/* Something is no longer held, whether it was released or lost. */
void clave__client_note_end(clave_async_client *c, bool elects);
/* Something that was held was lost. */
void clave__client_note_loss(clave_async_client *c, clave_err why);
/* Makes the first grant write this text to the log, once. Call it once, before the start.
 * ENOMEM. */
clave_err clave__client_warn_at_grant(clave_async_client *c, const char *text);

/* How many requests with this wire opcode (0..127) were sent since the start. */
uint64_t clave__client_requests_sent(const clave_async_client *c, int op);
/* How many watch events were received since the start. */
uint64_t clave__client_events_received(const clave_async_client *c);

/* Room for counts by opcode; no two opcodes that clients send share a place. */
enum { CLIENT_OPCODES = 64, CLIENT_STATES = CLAVE_STATE_CLOSED + 1 };

static inline size_t clave__client_opcode_place(int32_t op)
{
    return (uint32_t)op % CLIENT_OPCODES;
}

struct client_totals {
    struct client_metrics metrics;
    uint64_t requests[CLIENT_OPCODES];
    uint64_t sessions[CLIENT_STATES]; /* by state; closed ones are not counted */
};

void clave__client_totals_init(struct client_totals *t);
void clave__client_totals_add_client(struct client_totals *t, const clave_async_client *c);
void clave__client_totals_add(struct client_totals *t, const struct client_totals *more);
/* Appends the sums as metrics. */
void clave__client_totals_put(struct prometheus *p, const struct client_totals *t);

#endif
