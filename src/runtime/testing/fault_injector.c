/* fault_injector.c - splits both directions into messages and applies faults (fault_injector.h);
 * testserver.c adds it to the channels of its server. A reply that is not durable never leaves. */
#include "runtime/testing/fault_injector.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "clave/uv.h"
#include "server/connection/conn.h"
#include "wire/opcode.h"

enum { LENGTH = 4, HEAD = 12, MAX_ASKED = 1 << 20 };
/* From here on, a length is really a four-letter word. */
enum { MOST_FRAME = 0x20000000 };

struct fault_entry {
    struct list link;
    clave_test_fault f;
    unsigned passed;
    unsigned struck;
};

/* A complete message on its way to the client. */
struct held {
    struct list link;
    int64_t at; /* it must not leave before this time */
    size_t n;
    uint8_t bytes[];
};

static struct fault_injector *fault_injector_of(struct filter *f)
{
    return LIST_ENTRY(f, struct fault_injector, filter);
}

/* ---- faults --------------------------------------------------------------------------------- */

static void fault_injector_drop_faults(struct fault_injectors *all)
{
    struct list *e;
    while ((e = list_pop_front(&all->faults)))
        clave__mem_free(&all->mem, LIST_ENTRY(e, struct fault_entry, link));
}

void clave__fault_injectors_init(struct fault_injectors *all)
{
    memset(all, 0, sizeof *all);
    all->mem = clave__mem_or_default(NULL);
    list_init(&all->injectors);
    list_init(&all->faults);
}

void clave__fault_injectors_fini(struct fault_injectors *all)
{
    fault_injector_drop_faults(all);
}

clave_err clave__fault_injectors_inject(struct fault_injectors *all, const clave_test_fault *f)
{
    struct fault_entry *e = clave__mem_zalloc(&all->mem, sizeof *e);
    if (!e)
        return CLAVE_ENOMEM;
    e->f = *f;
    list_push_back(&all->faults, &e->link);
    return CLAVE_OK;
}

void clave__fault_injectors_heal(struct fault_injectors *all)
{
    fault_injector_drop_faults(all);
    for (struct list *e = all->injectors.next; e != &all->injectors; e = e->next) {
        const struct fault_injector *inj = LIST_ENTRY(e, struct fault_injector, link);
        for (struct list *m = inj->held.next; m != &inj->held; m = m->next)
            LIST_ENTRY(m, struct held, link)->at = 0;
    }
}

static bool fault_injector_fits(const struct fault_entry *e, const struct fault_injector *inj,
                                clave_test_kind kind)
{
    return (e->f.kind == CLAVE_TEST_ANY || e->f.kind == kind) &&
           (e->f.session == 0 || e->f.session == inj->session);
}

/* Returns true if a fault applies to this message; *out is that fault. */
static bool fault_injector_strikes(struct fault_injector *inj, clave_test_kind kind,
                                   bool is_request, clave_test_fault *out)
{
    struct fault_injectors *all = inj->of;
    for (struct list *l = all->faults.next; l != &all->faults; l = l->next) {
        struct fault_entry *e = LIST_ENTRY(l, struct fault_entry, link);
        if ((e->f.action == CLAVE_TEST_LOSE_REQUEST) != is_request ||
            !fault_injector_fits(e, inj, kind) || e->passed++ < e->f.after)
            continue;
        *out = e->f;
        if (++e->struck == e->f.times) {
            list_remove(&e->link);
            clave__mem_free(&all->mem, e);
        }
        all->strikes++;
        if (all->on_strike)
            all->on_strike(all);
        return true;
    }
    return false;
}

/* ---- from the client ------------------------------------------------------------------------ */

static uint32_t fault_injector_int_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static clave_test_kind fault_injector_kind_of(int32_t op)
{
    if (clave__opcode(op)->effect == EFFECT_CREATE)
        return CLAVE_TEST_CREATE;
    switch (op) {
    case OP_DELETE:
        return CLAVE_TEST_DELETE;
    case OP_EXISTS:
        return CLAVE_TEST_EXISTS;
    case OP_GET_DATA:
        return CLAVE_TEST_GET;
    case OP_SET_DATA:
        return CLAVE_TEST_SET;
    case OP_GET_CHILDREN:
    case OP_GET_CHILDREN2:
        return CLAVE_TEST_CHILDREN;
    case OP_MULTI:
        return CLAVE_TEST_MULTI;
    case OP_SYNC:
        return CLAVE_TEST_SYNC;
    case OP_PING:
        return CLAVE_TEST_PING;
    case OP_CLOSE_SESSION:
        return CLAVE_TEST_CLOSE;
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
    case OP_ADD_WATCH:
    case OP_REMOVE_WATCHES:
    case OP_CHECK_WATCHES:
        return CLAVE_TEST_WATCHES;
    default:
        return CLAVE_TEST_OTHER;
    }
}

/* A header is complete. Returns false if the request has to be dropped. */
static bool fault_injector_take_head(struct fault_injector *inj)
{
    size_t len = fault_injector_int_at(inj->head), seen = inj->nhead - LENGTH;
    clave_test_fault f;
    uint8_t kind = CLAVE_TEST_CONNECT;
    inj->nhead = 0;
    if (len >= MOST_FRAME || len < seen) {
        inj->opaque = true; /* it is a four-letter word, or something that the engine refuses */
        return true;
    }
    if (inj->greeted)
        kind = (uint8_t)fault_injector_kind_of((int32_t)fault_injector_int_at(inj->head + 8));
    inj->greeted = true;
    inj->body = len - seen;
    inj->of->seen[CLAVE_TEST_ANY]++;
    inj->of->seen[kind]++;
    if (fault_injector_strikes(inj, kind, true, &f))
        return false;
    return clave__buf_append(&inj->asked, &kind, 1) == CLAVE_OK;
}

/* Returns how many of the n bytes the engine may have. If fewer than n, the connection is closed
 * after them. */
static size_t fault_injector_inspect(struct fault_injector *inj, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    size_t at = 0;
    while (at < n && !inj->opaque) {
        size_t part = n - at < inj->body ? n - at : inj->body;
        inj->body -= part;
        at += part;
        if (at == n)
            break;
        inj->head[inj->nhead++] = bytes[at++];
        if (inj->nhead == (inj->greeted ? HEAD : LENGTH) && !fault_injector_take_head(inj))
            return at - 1; /* so that the engine cannot make a request of it */
    }
    return n;
}

static bool fault_injector_input(struct filter *f, const void *p, size_t n)
{
    size_t taken = fault_injector_inspect(fault_injector_of(f), p, n);
    return clave__channel_input(f->channel, f->above, p, taken) && taken == n;
}

/* ---- to the client -------------------------------------------------------------------------- */

static clave_test_kind fault_injector_kind_of_reply(struct fault_injector *inj,
                                                    const uint8_t *frame, size_t n)
{
    if (n >= 8 && (int32_t)fault_injector_int_at(frame + LENGTH) == XID_EVENT) {
        inj->of->seen[CLAVE_TEST_EVENT]++;
        return CLAVE_TEST_EVENT;
    }
    const uint8_t *first = clave__buf_bytes(&inj->asked);
    if (!first || clave__buf_len(&inj->asked) == 0)
        return CLAVE_TEST_OTHER;
    clave_test_kind kind = (clave_test_kind)*first;
    clave__buf_consume(&inj->asked, 1);
    return kind;
}

/* Queues a message behind those that are held. */
static void fault_injector_hold(struct fault_injector *inj, int64_t now, const uint8_t *p, size_t n)
{
    clave_test_fault f;
    int64_t at = now;
    if (!inj->opaque &&
        fault_injector_strikes(inj, fault_injector_kind_of_reply(inj, p, n), false, &f)) {
        inj->ending = f.action == CLAVE_TEST_LOSE_REPLY || f.action == CLAVE_TEST_CUT_REPLY;
        if (inj->ending)
            n = f.action == CLAVE_TEST_CUT_REPLY && f.bytes < n ? f.bytes : 0;
        if (f.action == CLAVE_TEST_DELAY_REPLY)
            at = f.delay_ms < INT64_MAX - now ? now + f.delay_ms : INT64_MAX;
        if (f.action == CLAVE_TEST_SILENCE)
            at = INT64_MAX;
    }
    if (n == 0)
        return;
    struct held *m = clave__mem_alloc(&inj->of->mem, sizeof *m + n);
    if (!m) {
        inj->ending = true;
        return;
    }
    if (!list_empty(&inj->held)) {
        int64_t before = LIST_ENTRY(inj->held.prev, struct held, link)->at;
        at = at > before ? at : before;
    }
    m->at = at;
    m->n = n;
    memcpy(m->bytes, p, n);
    list_push_back(&inj->held, &m->link);
}

/* Takes output from above, in whole messages only, because the engine releases none before all of
 * it is durable. */
static void fault_injector_pull(struct fault_injector *inj, int64_t now)
{
    const void *p;
    size_t n;
    const struct session *s = inj->engine->session;
    inj->session = s ? s->id : inj->session;
    while ((n = clave__channel_output(inj->filter.channel, inj->filter.above, &p)) > 0) {
        for (size_t at = 0; at < n && !inj->ending;) {
            const uint8_t *frame = (const uint8_t *)p + at;
            size_t len = inj->opaque ? n : LENGTH + fault_injector_int_at(frame);
            fault_injector_hold(inj, now, frame, len);
            at += len;
        }
        clave__channel_sent(inj->filter.channel, inj->filter.above, n);
    }
}

static size_t fault_injector_output(struct filter *f, const void **p)
{
    struct fault_injector *inj = fault_injector_of(f);
    int64_t now = clave_now();
    fault_injector_pull(inj, now);
    if (list_empty(&inj->held))
        return 0;
    const struct held *m = LIST_ENTRY(inj->held.next, struct held, link);
    inj->offered = m->at <= now;
    *p = m->bytes + inj->left;
    return inj->offered ? m->n - inj->left : 0;
}

static void fault_injector_sent(struct filter *f, size_t n)
{
    struct fault_injector *inj = fault_injector_of(f);
    assert(!list_empty(&inj->held));
    struct held *m = LIST_ENTRY(inj->held.next, struct held, link);
    inj->left += n;
    if (inj->left < m->n)
        return;
    inj->left = 0;
    inj->offered = false;
    list_remove(&m->link);
    clave__mem_free(&inj->of->mem, m);
}

static bool fault_injector_is_done(struct filter *f)
{
    struct fault_injector *inj = fault_injector_of(f);
    return list_empty(&inj->held) && (inj->ending || clave__channel_is_done(f->channel, f->above));
}

int64_t clave__fault_injectors_deadline(const struct fault_injectors *all)
{
    int64_t first = INT64_MAX;
    for (struct list *e = all->injectors.next; e != &all->injectors; e = e->next) {
        const struct fault_injector *inj = LIST_ENTRY(e, struct fault_injector, link);
        if (list_empty(&inj->held) || inj->offered)
            continue;
        int64_t at = LIST_ENTRY(inj->held.next, struct held, link)->at;
        first = at < first ? at : first;
    }
    return first;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void fault_injector_free(struct filter *f)
{
    struct fault_injector *inj = fault_injector_of(f);
    struct list *e;
    while ((e = list_pop_front(&inj->held)))
        clave__mem_free(&inj->of->mem, LIST_ENTRY(e, struct held, link));
    list_remove(&inj->link);
    clave__buf_fini(&inj->asked);
    clave__mem_free(&inj->of->mem, inj);
}

clave_err clave__fault_injector_add(struct fault_injectors *all, struct channel *ch,
                                    struct server_conn *engine)
{
    static const struct filter_ops ops = {
        .input = fault_injector_input,
        .output = fault_injector_output,
        .sent = fault_injector_sent,
        .is_done = fault_injector_is_done,
        .free = fault_injector_free,
    };
    struct fault_injector *inj = clave__mem_zalloc(&all->mem, sizeof *inj);
    if (!inj)
        return CLAVE_ENOMEM;
    inj->of = all;
    inj->engine = engine;
    clave__buf_init(&inj->asked, &all->mem, MAX_ASKED);
    list_init(&inj->held);
    list_push_back(&all->injectors, &inj->link);
    clave__channel_add_filter(ch, &inj->filter, &ops);
    return CLAVE_OK;
}
