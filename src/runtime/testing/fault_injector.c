/* fault_injector.c - splits both directions into messages and applies the faults
 * (fault_injector.h); uv_conn.c calls it for a test server. A reply that is not durable never
 * leaves. */
#include "runtime/testing/fault_injector.h"

#include <string.h>

#include "base/memory.h"
#include "server/request/conn.h"

enum { LENGTH = 4, HEAD = 12, MAX_ASKED = 1 << 20 };
/* Lengths from here on are four-letter words. */
enum { MOST_FRAME = 0x20000000 };

struct fault_entry {
    struct list link;
    clave_test_fault f;
    unsigned passed;
    unsigned struck;
};

/* A whole message on its way to the client. */
struct held {
    struct list link;
    int64_t at; /* not before */
    size_t n;
    uint8_t bytes[];
};

/* ---- faults --------------------------------------------------------------------------------- */

static void drop_faults(struct fault_injectors *gs)
{
    struct list *e;
    while ((e = list_pop_front(&gs->faults)))
        clave__mem_free(&gs->mem, LIST_ENTRY(e, struct fault_entry, link));
}

void clave__fault_injectors_init(struct fault_injectors *gs)
{
    memset(gs, 0, sizeof *gs);
    gs->mem = clave__mem_or_default(NULL);
    list_init(&gs->fault_injectors);
    list_init(&gs->faults);
}

void clave__fault_injectors_fini(struct fault_injectors *gs)
{
    drop_faults(gs);
}

clave_err clave__fault_injectors_inject(struct fault_injectors *gs, const clave_test_fault *f)
{
    struct fault_entry *e = clave__mem_zalloc(&gs->mem, sizeof *e);
    if (!e)
        return CLAVE_ENOMEM;
    e->f = *f;
    list_push_back(&gs->faults, &e->link);
    return CLAVE_OK;
}

void clave__fault_injectors_heal(struct fault_injectors *gs)
{
    drop_faults(gs);
    for (struct list *e = gs->fault_injectors.next; e != &gs->fault_injectors; e = e->next) {
        const struct fault_injector *g = LIST_ENTRY(e, struct fault_injector, link);
        for (struct list *m = g->held.next; m != &g->held; m = m->next)
            LIST_ENTRY(m, struct held, link)->at = 0;
    }
}

static bool fault_injector_fits(const struct fault_entry *e, const struct fault_injector *g,
                                clave_test_kind kind)
{
    return (e->f.kind == CLAVE_TEST_ANY || e->f.kind == kind) &&
           (e->f.session == 0 || e->f.session == g->session);
}

/* Does a fault apply to this message, and which: *out. */
static bool strikes(struct fault_injector *g, clave_test_kind kind, bool is_request,
                    clave_test_fault *out)
{
    struct fault_injectors *gs = g->of;
    for (struct list *l = gs->faults.next; l != &gs->faults; l = l->next) {
        struct fault_entry *e = LIST_ENTRY(l, struct fault_entry, link);
        if ((e->f.action == CLAVE_TEST_LOSE_REQUEST) != is_request ||
            !fault_injector_fits(e, g, kind) || e->passed++ < e->f.after)
            continue;
        *out = e->f;
        if (++e->struck == e->f.times) {
            list_remove(&e->link);
            clave__mem_free(&gs->mem, e);
        }
        gs->strikes++;
        if (gs->on_strike)
            gs->on_strike(gs);
        return true;
    }
    return false;
}

/* ---- from the client ------------------------------------------------------------------------ */

static uint32_t int_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static clave_test_kind fault_injector_kind_of(int32_t op)
{
    switch (op) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        return CLAVE_TEST_CREATE;
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

/* A header is complete. false: the request is dropped. */
static bool take_head(struct fault_injector *g)
{
    size_t len = int_at(g->head), seen = g->nhead - LENGTH;
    clave_test_fault f;
    uint8_t kind = CLAVE_TEST_CONNECT;
    g->nhead = 0;
    if (len >= MOST_FRAME || len < seen) {
        g->opaque = true; /* a four-letter word, or what the engine refuses */
        return true;
    }
    if (g->greeted)
        kind = (uint8_t)fault_injector_kind_of((int32_t)int_at(g->head + 8));
    g->greeted = true;
    g->body = len - seen;
    g->of->seen[CLAVE_TEST_ANY]++;
    g->of->seen[kind]++;
    if (strikes(g, kind, true, &f))
        return false;
    return clave__buf_append(&g->asked, &kind, 1) == CLAVE_OK;
}

size_t clave__fault_injector_input(struct fault_injector *g, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    size_t at = 0;
    while (at < n && !g->opaque) {
        size_t part = n - at < g->body ? n - at : g->body;
        g->body -= part;
        at += part;
        if (at == n)
            break;
        g->head[g->nhead++] = bytes[at++];
        if (g->nhead == (g->greeted ? HEAD : LENGTH) && !take_head(g))
            return at - 1; /* of which the engine makes no request */
    }
    return n;
}

/* ---- to the client -------------------------------------------------------------------------- */

static clave_test_kind kind_of_reply(struct fault_injector *g, const uint8_t *frame, size_t n)
{
    if (n >= 8 && (int32_t)int_at(frame + LENGTH) == XID_EVENT) {
        g->of->seen[CLAVE_TEST_EVENT]++;
        return CLAVE_TEST_EVENT;
    }
    const uint8_t *first = clave__buf_bytes(&g->asked);
    if (!first || clave__buf_len(&g->asked) == 0)
        return CLAVE_TEST_OTHER;
    clave_test_kind kind = (clave_test_kind)*first;
    clave__buf_consume(&g->asked, 1);
    return kind;
}

/* Queues one message after those that are held. */
static void fault_injector_hold(struct fault_injector *g, int64_t now, const uint8_t *p, size_t n)
{
    clave_test_fault f;
    int64_t at = now;
    if (!g->opaque && strikes(g, kind_of_reply(g, p, n), false, &f)) {
        g->ending = f.action == CLAVE_TEST_LOSE_REPLY || f.action == CLAVE_TEST_CUT_REPLY;
        if (g->ending)
            n = f.action == CLAVE_TEST_CUT_REPLY && f.bytes < n ? f.bytes : 0;
        if (f.action == CLAVE_TEST_DELAY_REPLY)
            at = f.delay_ms < INT64_MAX - now ? now + f.delay_ms : INT64_MAX;
        if (f.action == CLAVE_TEST_SILENCE)
            at = INT64_MAX;
    }
    if (n == 0)
        return;
    struct held *m = clave__mem_alloc(&g->of->mem, sizeof *m + n);
    if (!m) {
        g->ending = true;
        return;
    }
    if (!list_empty(&g->held)) {
        int64_t before = LIST_ENTRY(g->held.prev, struct held, link)->at;
        at = at > before ? at : before;
    }
    m->at = at;
    m->n = n;
    memcpy(m->bytes, p, n);
    list_push_back(&g->held, &m->link);
}

/* Takes what the engine has, in whole messages only, because the engine releases none before all of
 * it is durable. */
static void pull(struct fault_injector *g, int64_t now)
{
    const void *p;
    size_t n;
    const struct session *s = g->engine->session;
    g->session = s ? s->id : g->session;
    while ((n = clave__server_conn_output(g->engine, &p)) > 0) {
        for (size_t at = 0; at < n && !g->ending;) {
            const uint8_t *frame = (const uint8_t *)p + at;
            size_t len = g->opaque ? n : LENGTH + int_at(frame);
            fault_injector_hold(g, now, frame, len);
            at += len;
        }
        clave__server_conn_sent(g->engine, n);
    }
}

size_t clave__fault_injector_output(struct fault_injector *g, int64_t now, const void **p)
{
    pull(g, now);
    if (list_empty(&g->held))
        return 0;
    const struct held *m = LIST_ENTRY(g->held.next, struct held, link);
    g->offered = m->at <= now;
    *p = m->bytes + g->left;
    return g->offered ? m->n - g->left : 0;
}

void clave__fault_injector_sent(struct fault_injector *g, size_t n)
{
    struct held *m = LIST_ENTRY(g->held.next, struct held, link);
    g->left += n;
    if (g->left < m->n)
        return;
    g->left = 0;
    g->offered = false;
    list_remove(&m->link);
    clave__mem_free(&g->of->mem, m);
}

bool clave__fault_injector_wants_close(const struct fault_injector *g)
{
    return list_empty(&g->held) && (g->ending || clave__server_conn_wants_close(g->engine));
}

int64_t clave__fault_injectors_deadline(const struct fault_injectors *gs)
{
    int64_t first = INT64_MAX;
    for (struct list *e = gs->fault_injectors.next; e != &gs->fault_injectors; e = e->next) {
        const struct fault_injector *g = LIST_ENTRY(e, struct fault_injector, link);
        if (list_empty(&g->held) || g->offered)
            continue;
        int64_t at = LIST_ENTRY(g->held.next, struct held, link)->at;
        first = at < first ? at : first;
    }
    return first;
}

/* ---- life ----------------------------------------------------------------------------------- */

struct fault_injector *clave__fault_injector_new(struct fault_injectors *gs,
                                                 struct server_conn *engine)
{
    struct fault_injector *g = clave__mem_zalloc(&gs->mem, sizeof *g);
    if (!g)
        return NULL;
    g->of = gs;
    g->engine = engine;
    clave__buf_init(&g->asked, &gs->mem, MAX_ASKED);
    list_init(&g->held);
    list_push_back(&gs->fault_injectors, &g->link);
    return g;
}

void clave__fault_injector_free(struct fault_injector *g)
{
    struct list *e;
    if (!g)
        return;
    while ((e = list_pop_front(&g->held)))
        clave__mem_free(&g->of->mem, LIST_ENTRY(e, struct held, link));
    list_remove(&g->link);
    clave__buf_fini(&g->asked);
    clave__mem_free(&g->of->mem, g);
}
