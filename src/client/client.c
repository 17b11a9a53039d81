/* client.c - creating, closing and freeing a client, its options, queries about it, and the handles
 * of watches. Each public call that may run callbacks is enclosed in clave__engine_enter and _leave
 * (deliveries.c).
 *
 * A client lives as long as its user, or any object of the API made on it, needs it; that is what
 * clave__client_ref and _unref count. Zeros in the options are replaced by their defaults here and
 * nowhere else. */
#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/sized_options.h"
#include "client/client_for_gate.h"
#include "client/client_internal.h"
#include "wire/opcode.h"

/* ---- options --------------------------------------------------------------------------------- */

enum { DEFAULT_TIMEOUT_MS = 10000 };
/* A server may send longer frames than it accepts, since the length of a listing is not limited. */
enum { CLIENT_REPLY_FRAMES = 4 };

static const char *client_options_retry_text(const clave_retry *reconnect, const clave_retry *reads)
{
#define RETRY_TEXTS(name)                                                                          \
    {                                                                                              \
        [RETRY_FAULT_KIND] = name ".kind is not a clave_retry_kind",                               \
        [RETRY_FAULT_NO_KIND] = name ".kind is not set, but another of its fields is",             \
        [RETRY_FAULT_NEGATIVE] = name " has a negative field",                                     \
        [RETRY_FAULT_NO_PAUSE] = name ".base_ms is 0, so it would retry without a pause",          \
        [RETRY_FAULT_NO_TIME] = name ".elapsed_ms is 0, so it would never retry",                  \
    }
    static const char *const texts[][RETRY_FAULTS] = {RETRY_TEXTS("reconnect"),
                                                      RETRY_TEXTS("reads")};
#undef RETRY_TEXTS
    const char *text = texts[0][clave__retry_fault(reconnect)];
    return text ? text : texts[1][clave__retry_fault(reads)];
}

static const char *client_options_fault(const clave_client_options *o)
{
    int64_t timeout = o->session_timeout_ms ? o->session_timeout_ms : DEFAULT_TIMEOUT_MS;
    if (o->seed == 0)
        return "seed is 0: draw 64 bits from the system, as clave_random_seed() does";
    if (o->session_timeout_ms < 0)
        return "session_timeout_ms is negative";
    if (o->margin_ms < 0 || o->relay_interval_ms < 0)
        return "margin_ms or relay_interval_ms is negative";
    if ((int64_t)o->margin_ms + o->relay_interval_ms >= timeout)
        return "margin_ms and relay_interval_ms together reach session_timeout_ms";
    if (o->max_frame > INT32_MAX / CLIENT_REPLY_FRAMES)
        return "max_frame is above 536870911";
    if (o->resume && o->resume_session_id)
        return "resume and resume_session_id are both set";
    const char *unfit = o->resume ? clave__handed_fault(o->resume) : NULL;
    if (unfit)
        return unfit;
    for (size_t i = 0; i < o->nauths; i++)
        if (!o->auths || !o->auths[i].scheme || (o->auths[i].len > 0 && !o->auths[i].auth))
            return "auths has an identity without a scheme or without its bytes";
    return client_options_retry_text(&o->reconnect, &o->reads);
}

const char *clave_async_client_options_fault(const clave_client_options *given)
{
    clave_client_options o;
    const char *fault = clave__options_fault(sizeof o, given);
    if (fault)
        return fault;
    (void)clave__options_take(&o, sizeof o, given);
    return client_options_fault(&o);
}

static void client_options_apply(clave_async_client *c, const clave_client_options *o)
{
    static const clave_retry reconnect = {
        .kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 50, .max_ms = 2000};
    static const clave_retry reads = {.kind = CLAVE_RETRY_N_TIMES, .times = 3};
    c->base.log = (struct log){.cb = o->log, .arg = o->log_arg};
    c->state_cb = o->state_cb;
    c->state_arg = o->state_arg;
    c->base.tls = o->tls;
    c->asked_timeout_ms = o->session_timeout_ms ? o->session_timeout_ms : DEFAULT_TIMEOUT_MS;
    c->session.told_ms = o->session_timeout_ms;
    c->margin_ms = o->margin_ms;
    c->relay_ms = o->relay_interval_ms;
    c->read_only = o->read_only;
    c->keep_order = o->keep_order;
    c->max_frame = o->max_frame ? o->max_frame : WIRE_MAX_FRAME;
    c->reconnect_is_users = o->reconnect.kind != CLAVE_RETRY_DEFAULT;
    c->reconnect = c->reconnect_is_users ? o->reconnect : reconnect;
    c->reads = o->reads.kind ? o->reads : reads;
    c->session.id = o->resume_session_id;
    c->session.known = o->resume_session_id != 0;
    if (o->resume_session_id)
        memcpy(c->session.passwd, o->resume_passwd, sizeof c->session.passwd);
    c->session.reported_deadline = INT64_MIN;
    c->link.until = CLAVE_NEVER;
    c->base.hash_seed = o->seed;
    clave__rand_seed(&c->rand, o->seed);
}

enum { OUT_ROOM = 256 * 1024 };

/* ---- creating, closing, freeing -------------------------------------------------------------- */

static void client_init_members(clave_async_client *c)
{
    const struct clave_mem *mem = &c->base.mem;
    size_t frame = c->max_frame + 4;
    list_init(&c->base.listeners);
    list_init(&c->base.contenders);
    list_init(&c->holds);
    list_init(&c->confirms);
    list_init(&c->creations);
    list_init(&c->cleanups);
    list_init(&c->auths.list);
    list_init(&c->pipeline.unsent);
    list_init(&c->pipeline.sent);
    list_init(&c->pipeline.paused);
    list_init(&c->deliveries.failed);
    list_init(&c->deliveries.lost);
    list_init(&c->deliveries.client_tasks);
    clave__hold_deadline_init(&c->hold_deadline);
    clave__client_metrics_init(&c->metrics);
    clave__frame_reader_init(&c->link.in, mem, c->max_frame * CLIENT_REPLY_FRAMES);
    clave__buf_init(&c->link.out, mem, frame + OUT_ROOM);
    clave__buf_init(&c->encode, mem, frame);
    clave__buf_init(&c->multi, mem, frame);
    clave__buf_init(&c->path, mem, frame);
    clave__buf_init(&c->acls, mem, frame);
    /* A name of one byte takes five in the frame, but a pointer and a NUL more once decoded. */
    clave__buf_init(&c->decoded, mem, frame * CLIENT_REPLY_FRAMES * 4);
}

clave_err clave_async_client_new(clave_async_client **out, const clave_client_options *given)
{
    clave_client_options o;
    *out = NULL;
    clave_err err = clave__options_take(&o, sizeof o, given);
    const char *fault = err == CLAVE_OK ? client_options_fault(&o) : NULL;
    if (fault) {
        clave__log(&(struct log){.cb = o.log, .arg = o.log_arg}, CLAVE_LOG_ERROR,
                   "invalid clave_client_options: %s", fault);
        err = CLAVE_EINVAL;
    }
    if (err)
        return err;
    struct clave_mem mem = clave__mem_or_default(o.mem);
    clave_async_client *c = clave__mem_zalloc(&mem, sizeof *c);
    if (!c)
        return CLAVE_ENOMEM;
    c->base.mem = mem;
    c->refs = 1;
    client_options_apply(c, &o);
    client_init_members(c);
    err = clave__client_watches_init(&c->watches, &c->base.mem, c->base.hash_seed);
    if (err == CLAVE_OK)
        err = clave__hosts_init(&c->hosts, &c->base.mem, o.hosts);
    if (err == CLAVE_EHOST)
        clave__log(&c->base.log, CLAVE_LOG_ERROR, "invalid server list '%s': %s",
                   o.hosts ? o.hosts : "", clave__hosts_fault(o.hosts));
    if (err == CLAVE_OK)
        err = clave__client_resume(c, o.resume);
    if (err == CLAVE_OK)
        err = clave__auth_need(c, o.auths, o.nauths);
    if (err) {
        c->session.state = CLAVE_STATE_CLOSED;
        clave_async_client_free(c);
        return err;
    }
    if (!c->keep_order)
        clave__hosts_shuffle(&c->hosts, &c->rand);
    *out = c;
    return CLAVE_OK;
}

void clave__client_ref(clave_async_client *c)
{
    assert(c->refs > 0);
    c->refs++;
}

/* clave__client_unref without delivering callbacks. */
static void client_drop(clave_async_client *c)
{
    assert(c->refs > 0);
    if (--c->refs > 0)
        return;
    clave__auth_fini(c);
    clave__client_watches_fini(&c->watches);
    clave__hosts_fini(&c->hosts);
    clave__frame_reader_fini(&c->link.in);
    clave__buf_fini(&c->link.out);
    clave__buf_fini(&c->encode);
    clave__buf_fini(&c->multi);
    clave__buf_fini(&c->path);
    clave__buf_fini(&c->acls);
    clave__buf_fini(&c->decoded);
    clave__handed_fini(&c->handed, &c->base.mem);
    struct clave_mem mem = c->base.mem;
    clave__mem_free(&mem, c->grant_warning);
    clave__mem_free(&mem, c);
}

void clave__client_unref(clave_async_client *c)
{
    if (c->freed && c->deliveries.depth == 0) {
        clave__engine_enter(c, c->base.now);
        clave__engine_leave(c);
    }
    client_drop(c);
}

void clave_async_client_free(clave_async_client *c)
{
    if (!c)
        return;
    assert(c->deliveries.depth == 0); /* never from a callback */
    clave__engine_enter(c, c->base.now);
    clave__session_end(c, CLAVE_OK);
    clave__engine_leave(c);
    /* What the user passed in may be freed together with the handle. */
    c->freed = true;
    c->base.log = (struct log){0};
    c->state_cb = NULL;
    client_drop(c);
}

void clave_async_client_start(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    if (c->session.state == CLAVE_STATE_LATENT && c->link.phase == LINK_IDLE) {
        clave__handed_begin(c);
        clave__link_dial(c);
    }
    clave__engine_leave(c);
}

void clave__client_withdraw(clave_async_client *c, int64_t now, const void *arg)
{
    clave__engine_enter(c, now);
    clave__pipeline_withdraw(c, arg);
    clave__creations_withdraw(c, arg);
    clave__engine_leave(c);
}

void clave_async_client_close(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    struct session *s = &c->session;
    if (s->state != CLAVE_STATE_CLOSED && !s->closing) {
        s->closing = true;
        /* by then the server will have ended the session on its own, even if our closeSession never
         * arrives */
        int64_t by = clave__hold_deadline_contact(&c->hold_deadline);
        s->close_by = by > c->base.now ? by : c->base.now + c->asked_timeout_ms;
        /* A handshake under way may already have created a session. One that was handed over and is
         * not claimed may be another process's, which closeSession would end. */
        if ((s->id == 0 && c->link.phase != LINK_HANDSHAKE) || clave__handed_is_unclaimed(c))
            clave__session_end(c, CLAVE_OK);
        else
            clave__pipeline_fill(c);
    }
    clave__engine_leave(c);
}

bool clave__client_session_is_over(const clave_async_client *c)
{
    return c->session.is_over;
}

void clave_async_client_abandon(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    clave__session_end(c, CLAVE_OK);
    clave__engine_leave(c);
}

void clave_async_client_tick(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    if (c->deliveries.depth == 1) { /* callbacks run one at a time */
        struct timer *t;
        clave__engine_deliver(c);
        clave__link_tick(c);
        clave__heartbeat_tick(c);
        clave__engine_deliver(c);
        while ((t = clave__timers_pop(&c->base.timers, c->base.now))) {
            t->fire(t, c->base.now);
            clave__engine_deliver(c);
        }
    }
    clave__engine_leave(c);
}

/* ---- queries --------------------------------------------------------------------------------- */

int64_t clave_async_client_deadline(const clave_async_client *c)
{
    if (clave__deliveries_wait(c))
        return c->base.now;
    int64_t at = deadline_earlier(clave__timers_next(&c->base.timers), clave__link_deadline(c));
    return deadline_earlier(
        at, deadline_earlier(clave__session_deadline(c), clave__heartbeat_deadline(c)));
}

clave_err clave__client_not_in_time(const clave_async_client *c, uint64_t seen_on)
{
    bool seen = seen_on > 0 && seen_on == c->link.connections && clave__link_is_open(&c->link);
    return seen ? CLAVE_EBUSY : CLAVE_EUNREACHABLE;
}

const char *clave_async_client_host_fault(const char *hosts)
{
    return clave__hosts_fault(hosts);
}

clave_state clave_async_client_state(const clave_async_client *c)
{
    return c->session.state;
}

bool clave_async_client_is_connected(const clave_async_client *c)
{
    return clave__link_is_open(&c->link);
}

int64_t clave_async_client_session_id(const clave_async_client *c)
{
    return c->session.id;
}

const uint8_t *clave_async_client_session_passwd(const clave_async_client *c)
{
    return c->session.passwd;
}

int32_t clave_async_client_session_timeout(const clave_async_client *c)
{
    return c->session.timeout_ms;
}

int64_t clave_async_client_hold_deadline(const clave_async_client *c)
{
    return c->session.may_be_over ? INT64_MIN : clave__hold_deadline_get(&c->hold_deadline);
}

uint64_t clave__client_requests_sent(const clave_async_client *c, int op)
{
    return clave__opcode(op)->body ? c->pipeline.counts[clave__client_opcode_place(op)] : 0;
}

uint64_t clave__client_events_received(const clave_async_client *c)
{
    return c->watches.events;
}

uint64_t clave_async_client_connection(const clave_async_client *c)
{
    return c->link.connections;
}

/* ---- for recipes ----------------------------------------------------------------------------- */

int64_t clave__client_contact(const clave_async_client *c)
{
    return c->hold_deadline.contact;
}

int64_t clave__client_best_hold(const clave_async_client *c)
{
    return clave__hold_deadline_best(&c->hold_deadline);
}

int64_t clave__client_hold_margin(const clave_async_client *c)
{
    return c->hold_deadline.margin_ms;
}

bool clave__client_is_quiet(const clave_async_client *c)
{
    const struct pipeline *p = &c->pipeline;
    return clave__link_is_open(&c->link) && !clave__handed_is_unclaimed(c) &&
           !clave__deliveries_wait(c) && list_empty(&p->unsent) && list_empty(&p->sent) &&
           list_empty(&p->paused) && list_empty(&c->creations) && list_empty(&c->cleanups);
}

void clave__client_set_log(clave_async_client *c, const struct log *log)
{
    c->base.log = *log;
}

void clave__client_refused(clave_async_client *c, unsigned addresses)
{
    clave__hosts_refused(&c->hosts, addresses);
}

bool clave__client_all_refuse(const clave_async_client *c)
{
    return clave__hosts_all_refuse(&c->hosts);
}

/* ---- watches as their users see them --------------------------------------------------------- */

clave_err clave_async_watch_new(clave_async_watch **out, clave_async_client *c, clave_watch_cb *cb,
                                void *arg)
{
    clave_async_watch *w = clave__mem_zalloc(&c->base.mem, sizeof *w);
    *out = w;
    if (!w)
        return CLAVE_ENOMEM;
    list_init(&w->link);
    w->client = c;
    w->cb = cb;
    w->arg = arg;
    clave__client_ref(c);
    return CLAVE_OK;
}

void clave_async_watch_disarm(clave_async_watch *w)
{
    if (clave__client_watch_disarm(w))
        clave__pipeline_fill(w->client);
}

void clave_async_watch_free(clave_async_watch *w)
{
    if (!w)
        return;
    clave_async_client *c = w->client;
    clave_async_watch_disarm(w);
    clave__mem_free(&c->base.mem, w->path);
    clave__mem_free(&c->base.mem, w);
    client_drop(c); /* not clave__client_unref: the watch may belong to a recipe that is in the
                       middle of something */
}

bool clave_async_watch_is_armed(const clave_async_watch *w)
{
    return w->phase != WATCH_IDLE;
}
