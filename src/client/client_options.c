/* client_options.c - clave_client_options: their checks, and their defaults, for client.c; and how
 * recipes take options of their own. */
#include "client/client_options.h"

#include <string.h>

#include "base/sized_options.h"
#include "wire/opcode.h"

enum { DEFAULT_TIMEOUT_MS = 10000 };

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

const char *clave__client_options_fault(const clave_client_options *o)
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
    return clave__client_options_fault(&o);
}

void clave__client_options_apply(clave_async_client *c, const clave_client_options *o)
{
    static const clave_retry reconnect = {
        .kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 50, .max_ms = 2000};
    static const clave_retry reads = {.kind = CLAVE_RETRY_N_TIMES, .times = 3};
    c->log = (struct log){.cb = o->log, .arg = o->log_arg};
    c->state_cb = o->state_cb;
    c->state_arg = o->state_arg;
    c->tls = o->tls;
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
    c->hash_seed = o->seed;
    clave__rand_seed(&c->rand, o->seed);
}

clave_err clave__client_take_options(clave_async_client *c, void *dst, size_t dst_size,
                                     const void *src, const char *name)
{
    const char *fault = clave__options_fault(dst_size, src);
    if (fault)
        clave__client_fault(c, "%s %s", name, fault);
    return clave__options_take(dst, dst_size, src);
}
