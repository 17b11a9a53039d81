/* proxy_protocol_filter.c - see proxy_protocol_filter.h; http_connection.c adds it. */
#include "runtime/http/proxy_protocol_filter.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/memory.h"

struct http_proxy {
    struct filter filter;
    const struct http_proxy_events *events;
    const struct clave_mem *mem;
    bool is_done;
    struct buf head; /* of which more is to come */
};

static struct http_proxy *proxy_protocol_filter_of(struct filter *f)
{
    return LIST_ENTRY(f, struct http_proxy, filter);
}

/* The header is in one piece, as a rule. */
static bool proxy_protocol_filter_take(struct http_proxy *x, const char *p, size_t n)
{
    struct channel *ch = x->filter.channel;
    struct peer_addr peer;
    bool is_named;
    size_t used, had = clave__buf_len(&x->head);
    size_t most = PROXY_MAX_HEADER - had < n ? PROXY_MAX_HEADER - had : n;
    if (clave__buf_append(&x->head, p, most) != CLAVE_OK)
        return false;
    enum proxy_parsed what = clave__proxy_parse(clave__buf_bytes(&x->head),
                                                clave__buf_len(&x->head), &used, &is_named, &peer);
    if (what == PROXY_MORE && clave__buf_len(&x->head) < PROXY_MAX_HEADER)
        return true;
    if (what != PROXY_DONE) {
        x->events->failed(ch);
        return false;
    }
    x->is_done = true;
    clave__buf_fini(&x->head);
    clave__buf_init(&x->head, x->mem, PROXY_MAX_HEADER);
    if (!x->events->named(ch, is_named ? &peer : NULL))
        return false;
    used -= had; /* it was not complete before */
    return used == n || clave__channel_input(ch, x->filter.above, p + used, n - used);
}

static bool proxy_protocol_filter_input(struct filter *f, const void *p, size_t n)
{
    struct http_proxy *x = proxy_protocol_filter_of(f);
    return x->is_done ? clave__channel_input(f->channel, f->above, p, n)
                      : proxy_protocol_filter_take(x, p, n);
}

static size_t proxy_protocol_filter_output(struct filter *f, const void **p)
{
    return proxy_protocol_filter_of(f)->is_done ? clave__channel_output(f->channel, f->above, p)
                                                : 0;
}

static void proxy_protocol_filter_sent(struct filter *f, size_t n)
{
    clave__channel_sent(f->channel, f->above, n);
}

static bool proxy_protocol_filter_is_done(struct filter *f)
{
    return proxy_protocol_filter_of(f)->is_done && clave__channel_is_done(f->channel, f->above);
}

static size_t proxy_protocol_filter_farewell(struct filter *f, const void **p)
{
    struct filter *above = f->above;
    return proxy_protocol_filter_of(f)->is_done && above && above->ops->farewell
               ? above->ops->farewell(above, p)
               : 0;
}

static void proxy_protocol_filter_free(struct filter *f)
{
    struct http_proxy *x = proxy_protocol_filter_of(f);
    clave__buf_fini(&x->head);
    clave__mem_free(x->mem, x);
}

bool clave__http_proxy_add_filter(struct channel *ch, const struct http_proxy_events *events)
{
    static const struct filter_ops ops = {
        .input = proxy_protocol_filter_input,
        .output = proxy_protocol_filter_output,
        .sent = proxy_protocol_filter_sent,
        .is_done = proxy_protocol_filter_is_done,
        .farewell = proxy_protocol_filter_farewell,
        .free = proxy_protocol_filter_free,
    };
    struct http_proxy *x = clave__mem_zalloc(ch->mem, sizeof *x);
    if (!x)
        return false;
    x->events = events;
    x->mem = ch->mem;
    clave__buf_init(&x->head, ch->mem, PROXY_MAX_HEADER);
    clave__channel_add_filter(ch, &x->filter, &ops);
    return true;
}
