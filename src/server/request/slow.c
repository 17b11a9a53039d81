/* slow.c - see slow.h; request.c notes requests, conn_output.c releases them. It keeps what a line
 * needs, and only while slow_ms is set and a reply waits. */
#include "server/request/slow.h"

#include <string.h>

#include "base/memory.h"
#include "wire/opcode.h"

enum { PATH_CAP = 120, LINES_A_SECOND = 10, SECOND_MS = 1000 };

struct slow_request {
    struct list link;
    uint64_t end; /* of its reply, as in struct mark */
    int64_t since;
    int32_t op;
    size_t bytes;
    int64_t session;
    int32_t path_len;
    char path[];
};

/* The path is the first thing in the body of every request that has one. */
static struct jbytes slow_path(const struct server_conn *c, const void *frame, size_t n)
{
    enum { HEADER = 8 };
    struct jreader r = clave__jreader((const uint8_t *)frame + HEADER, n - HEADER);
    struct jbytes path = clave__jget_bytes(&r);
    bool is_path = !r.bad && path.n > 0 && *path.p == '/' && c->last_op != OP_SASL;
    return is_path ? path : JBYTES_NULL;
}

void clave__slow_note(struct server_conn *c, const void *frame, size_t n)
{
    if (!c->session || c->last_op == OP_PING || c->releasable == c->written)
        return;
    struct jbytes path = slow_path(c, frame, n);
    int32_t len = path.n < 0 ? 0 : path.n < PATH_CAP ? path.n : PATH_CAP;
    struct slow_request *q = clave__mem_alloc(&c->s->mem, sizeof *q + (size_t)len);
    if (!q)
        return; /* a line is lost, no request */
    *q = (struct slow_request){.end = c->written,
                               .since = c->s->now,
                               .op = c->last_op,
                               .bytes = n,
                               .session = c->session->id,
                               .path_len = len};
    for (int32_t i = 0; i < len; i++)
        q->path[i] = (unsigned char)path.p[i] < ' ' ? '?' : path.p[i];
    list_push_back(&c->slow, &q->link);
}

/* ---- lines ----------------------------------------------------------------------------------- */

void clave__slow_tell_rest(struct server *s)
{
    if (s->now < s->slow_second + SECOND_MS)
        return;
    if (s->slow_untold > 0)
        clave__log(&s->log, CLAVE_LOG_WARN, "%llu more slow requests in a second",
                   (unsigned long long)s->slow_untold);
    s->slow_second = s->now;
    s->slow_told = 0;
    s->slow_untold = 0;
}

static void slow_tell(const struct server_conn *c, const struct slow_request *q)
{
    struct server *s = c->s;
    clave__slow_tell_rest(s);
    if (s->slow_told == LINES_A_SECOND) {
        s->slow_untold++;
        return;
    }
    s->slow_told++;
    clave__log(&s->log, CLAVE_LOG_WARN,
               "slow request: %s %.*s took %lld ms, %zu bytes, session 0x%llx of %s",
               clave__opcode(q->op)->name, q->path_len > 0 ? (int)q->path_len : 1,
               q->path_len > 0 ? q->path : "-", (long long)(s->now - q->since), q->bytes,
               (unsigned long long)q->session, c->peer.text);
}

void clave__slow_release(struct server_conn *c)
{
    while (!list_empty(&c->slow)) {
        struct slow_request *q = LIST_ENTRY(c->slow.next, struct slow_request, link);
        if (q->end > c->releasable)
            return;
        if (c->s->slow_ms > 0 && c->s->now - q->since >= c->s->slow_ms)
            slow_tell(c, q);
        list_remove(&q->link);
        clave__mem_free(&c->s->mem, q);
    }
}

void clave__slow_drop(struct server_conn *c)
{
    struct list *e;
    while ((e = list_pop_front(&c->slow)))
        clave__mem_free(&c->s->mem, LIST_ENTRY(e, struct slow_request, link));
}
