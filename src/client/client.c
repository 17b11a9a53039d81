/* client.c - creating, closing and freeing a client, and the queries about it. Each public call
 * that may run callbacks is surrounded by clave__engine_enter and _leave (run_callbacks.c). */
#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/sized_options.h"
#include "client/client_internal.h"
#include "client/client_options.h"
#include "wire/opcode.h"

enum { OUT_ROOM = 256 * 1024 };

/* ---- life ------------------------------------------------------------------------------------ */

static void client_init_lists(clave_async_client *c)
{
    list_init(&c->listeners);
    list_init(&c->holds);
    list_init(&c->confirms);
    list_init(&c->creations);
    list_init(&c->cleanups);
    clave__pipeline_init(&c->pipeline);
    clave__deliver_init(&c->deliveries);
    clave__auth_init(&c->auths);
    clave__hold_deadline_init(&c->hold_deadline);
    clave__client_metrics_init(&c->metrics);
}

static void client_init_buffers(clave_async_client *c)
{
    const struct clave_mem *mem = &c->mem;
    size_t frame = c->max_frame + 4;
    clave__frame_reader_init(&c->link.in, mem, c->max_frame * CLIENT_REPLY_FRAMES);
    clave__buf_init(&c->link.out, mem, frame + OUT_ROOM);
    clave__buf_init(&c->encode, mem, frame);
    clave__buf_init(&c->multi, mem, frame);
    clave__buf_init(&c->path, mem, frame);
    clave__buf_init(&c->acls, mem, frame);
    /* A name of one byte costs five in a frame, and a pointer and a NUL more here. */
    clave__buf_init(&c->decoded, mem, frame * CLIENT_REPLY_FRAMES * 4);
}

clave_err clave_async_client_new(clave_async_client **out, const clave_client_options *given)
{
    clave_client_options o;
    *out = NULL;
    clave_err err = clave__options_take(&o, sizeof o, given);
    const char *fault = err == CLAVE_OK ? clave__client_options_fault(&o) : NULL;
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
    c->mem = mem;
    c->refs = 1;
    clave__client_options_apply(c, &o);
    client_init_lists(c);
    client_init_buffers(c);
    err = clave__client_watches_init(&c->watches, &c->mem, c->hash_seed);
    if (err == CLAVE_OK)
        err = clave__hosts_init(&c->hosts, &c->mem, o.hosts);
    if (err == CLAVE_EHOST)
        clave__log(&c->log, CLAVE_LOG_ERROR, "invalid server list '%s': %s", o.hosts ? o.hosts : "",
                   clave__hosts_fault(o.hosts));
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

static void client_destroy(clave_async_client *c)
{
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
    struct clave_mem mem = c->mem;
    clave__mem_free(&mem, c->grant_warning);
    clave__mem_free(&mem, c);
}

void clave__client_ref(clave_async_client *c)
{
    assert(c->refs > 0);
    c->refs++;
}

void clave__client_drop(clave_async_client *c)
{
    assert(c->refs > 0);
    if (--c->refs == 0)
        client_destroy(c);
}

void clave__client_unref(clave_async_client *c)
{
    if (c->freed && c->deliveries.depth == 0) {
        clave__engine_enter(c, c->now);
        clave__engine_leave(c);
    }
    clave__client_drop(c);
}

void clave_async_client_free(clave_async_client *c)
{
    if (!c)
        return;
    assert(c->deliveries.depth == 0); /* never from a callback */
    clave__engine_enter(c, c->now);
    clave__session_end(c, CLAVE_OK);
    clave__engine_leave(c);
    /* The user may free what it passed in together with the handle. */
    c->freed = true;
    c->log = (struct log){0};
    c->state_cb = NULL;
    clave__client_drop(c);
}

void clave_async_client_start(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    if (c->session.state == CLAVE_STATE_LATENT && c->link.phase == LINK_IDLE)
        clave__link_start(c);
    clave__engine_leave(c);
}

/* The time by which the server has ended the session by itself, whether or not our closeSession
 * arrives. */
static int64_t client_latest_session_end(const clave_async_client *c)
{
    int64_t by = clave__hold_deadline_contact(&c->hold_deadline);
    int64_t from_now = c->now + c->asked_timeout_ms;
    return by > c->now ? by : from_now;
}

void clave_async_client_close(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    struct session *s = &c->session;
    if (s->state != CLAVE_STATE_CLOSED && !s->closing) {
        s->closing = true;
        s->close_by = client_latest_session_end(c);
        /* A handshake under way may already have made a session. */
        if (s->id == 0 && c->link.phase != LINK_HANDSHAKE)
            clave__session_end(c, CLAVE_OK);
        else
            clave__pipeline_fill(c);
    }
    clave__engine_leave(c);
}

void clave_async_client_abandon(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    clave__session_end(c, CLAVE_OK);
    clave__engine_leave(c);
}

static void client_run_timers(clave_async_client *c)
{
    struct timer *t;
    clave__engine_deliver(c);
    clave__link_tick(c);
    clave__heartbeat_tick(c);
    clave__engine_deliver(c);
    while ((t = clave__timers_pop(&c->timers, c->now))) {
        t->fire(t, c->now);
        clave__engine_deliver(c);
    }
}

void clave_async_client_tick(clave_async_client *c, int64_t now)
{
    clave__engine_enter(c, now);
    if (c->deliveries.depth == 1) /* callbacks run one at a time */
        client_run_timers(c);
    clave__engine_leave(c);
}

/* ---- queries --------------------------------------------------------------------------------- */

int64_t clave_async_client_deadline(const clave_async_client *c)
{
    if (clave__deliveries_wait(&c->deliveries))
        return c->now;
    int64_t at = deadline_earlier(clave__timers_next(&c->timers), clave__link_deadline(c));
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

int64_t clave__client_now(const clave_async_client *c)
{
    return c->now;
}

int64_t clave__client_contact(const clave_async_client *c)
{
    return c->hold_deadline.contact;
}

int64_t clave__client_best_hold(const clave_async_client *c)
{
    return clave__hold_deadline_best(&c->hold_deadline);
}

uint64_t clave__client_hash_seed(const clave_async_client *c)
{
    return c->hash_seed;
}

const struct clave_mem *clave__client_mem(const clave_async_client *c)
{
    return &c->mem;
}

struct clave_tls *clave__client_tls(const clave_async_client *c)
{
    return c->tls;
}

void clave__client_set_log(clave_async_client *c, const struct log *log)
{
    c->log = *log;
}

const struct log *clave__client_log(const clave_async_client *c)
{
    return &c->log;
}

void clave__client_listen(clave_async_client *c, struct listener *l)
{
    list_push_back(&c->listeners, &l->link);
}

void clave__client_unlisten(struct listener *l)
{
    list_remove(&l->link);
}

void clave__client_timer_set(clave_async_client *c, struct timer *t, int64_t at)
{
    assert(t->fire);
    clave__timers_set(&c->timers, t, at);
}

void clave__client_timer_clear(clave_async_client *c, struct timer *t)
{
    clave__timers_clear(&c->timers, t);
}

void clave__client_refused(clave_async_client *c, unsigned addresses)
{
    clave__hosts_refused(&c->hosts, addresses);
}

bool clave__client_all_refuse(const clave_async_client *c)
{
    return clave__hosts_all_refuse(&c->hosts);
}
