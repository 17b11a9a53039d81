/* json_pieces.c - see json_pieces.h. Called by the endpoints that list. Invariant: `end` has run
 * once when the exchange is freed. */
#include "web/http/json_pieces.h"

#include <assert.h>

#include "web/http/answer.h"
#include "web/http/problem.h"

struct pieces {
    struct web_exchange *x;
    pieces_next *next;
    void (*end)(void *arg);
    void *arg;
};

static void json_pieces_end(void *arg)
{
    struct pieces *p = arg;
    if (p->end)
        p->end(p->arg);
}

/* The writer goes on where it was, into another buffer. A piece is empty when nothing that it
 * looked at was for this answer. */
static clave_err json_pieces_more(void *arg, struct buf *out, bool *done)
{
    struct pieces *p = arg;
    size_t before = clave__buf_len(out);
    p->x->json.to = out;
    clave_err err = p->next(p->arg, &p->x->json, done);
    if (!*done && clave__buf_len(out) == before)
        clave__web_wake(p->x);
    return err == CLAVE_OK ? p->x->json.err : err;
}

void clave__web_answer_pieces(struct web_exchange *x, pieces_next *next, void (*end)(void *arg),
                              void *arg)
{
    assert(!x->answered && !x->answer.more);
    struct pieces *p = clave__web_alloc(x, sizeof *p);
    bool done = false;
    clave_err err = CLAVE_ENOMEM;
    if (p) {
        *p = (struct pieces){x, next, end, arg};
        err = json_pieces_more(p, &x->answer.body, &done);
    }
    if (err == CLAVE_OK && !done) {
        x->answer.more = json_pieces_more;
        x->answer.end = json_pieces_end;
        x->answer.arg = p;
        clave__web_answer_stream(x, 200, "application/json");
        return;
    }
    if (end)
        end(arg);
    if (err == CLAVE_OK)
        clave__web_answer_json(x, 200);
    else
        clave__web_problem(x, &(struct problem){.status = 503, .err = err, .retry_after_s = 1},
                           "out of memory");
}
