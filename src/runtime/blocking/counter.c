/* counter.c - clave_counter: clave_async_counter for threads. */
#include "clave/counter.h"

#include <stdlib.h>

#include "runtime/blocking/call.h"

struct clave_counter {
    struct child child;
    clave_async_counter *counter; /* used by the loop's thread only, as is everything below */
    struct list waiting;          /* of struct counter_wait */
};

/* A call under way; its thread may have given up. */
struct counter_wait {
    struct list link;
    struct call *call;
    clave_counter_change *change; /* allocated beforehand: the answer cannot fail */
};

/* What a call asks for. */
struct counter_question {
    clave_counter *n;
    enum { ASK_GET, ASK_ADD, ASK_SET, ASK_COMPARE } what;
    int64_t value, expected;
};

static clave_err counter_make(clave_async_client *c, const struct args *a)
{
    clave_counter *n = a->of;
    return clave_async_counter_new(&n->counter, c, a->path);
}

static void counter_on_ended(struct child *c)
{
    clave_counter *n = LIST_ENTRY(c, clave_counter, child);
    clave_async_counter_free(n->counter);
    n->counter = NULL;
    for (struct list *e; (e = list_pop_front(&n->waiting));) {
        struct counter_wait *w = LIST_ENTRY(e, struct counter_wait, link);
        free(w->change);
        clave__call_finish(w->call, CLAVE_ECLOSED);
        free(w);
    }
}

clave_err clave_counter_new(clave_counter **out, clave_client *c, const char *path)
{
    static const struct child_kind kind = {.ended = counter_on_ended};
    *out = NULL;
    clave_counter *n = calloc(1, sizeof *n);
    if (!n)
        return CLAVE_ENOMEM;
    list_init(&n->waiting);
    clave_err err =
        clave__child_open(&n->child, c, &kind, counter_make, &(struct args){.of = n, .path = path});
    if (err == CLAVE_OK)
        *out = n;
    else
        free(n);
    return err;
}

void clave_counter_free(clave_counter *n)
{
    if (n && clave__child_close(&n->child))
        free(n);
}

static void counter_on_answer(clave_async_counter *n, clave_err err, int64_t before, int64_t after,
                              void *arg)
{
    struct counter_wait *w = arg;
    (void)n;
    list_remove(&w->link);
    *w->change = (clave_counter_change){.before = before, .after = after};
    if (err == CLAVE_OK) {
        clave__call_answer_block(w->call, CLAVE_OK, w->change);
    } else {
        free(w->change);
        clave__call_finish(w->call, err);
    }
    free(w);
}

static clave_err counter_begin_call(struct call *call, const struct args *a)
{
    const struct counter_question *q = a->of;
    clave_async_counter *n = q->n->counter;
    struct counter_wait *w = malloc(sizeof *w);
    clave_counter_change *change = malloc(sizeof *change);
    clave_err err = w && change ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK) {
        *w = (struct counter_wait){.call = call, .change = change};
        list_push_back(&q->n->waiting, &w->link);
        if (q->what == ASK_GET)
            err = clave_async_counter_get(n, counter_on_answer, w);
        else if (q->what == ASK_ADD)
            err = clave_async_counter_add(n, q->value, counter_on_answer, w);
        else if (q->what == ASK_SET)
            err = clave_async_counter_set(n, q->value, counter_on_answer, w);
        else
            err =
                clave_async_counter_compare_and_set(n, q->expected, q->value, counter_on_answer, w);
        if (err != CLAVE_OK)
            list_remove(&w->link);
    }
    if (err != CLAVE_OK) {
        free(w);
        free(change);
    }
    return err;
}

static clave_err counter_call(struct counter_question q, int64_t timeout_ms,
                              clave_counter_change *change)
{
    void *block = NULL;
    clave_err err = clave__call_block(q.n->child.client, counter_begin_call,
                                      &(struct args){.of = &q}, timeout_ms, &block);
    if (err == CLAVE_OK && change)
        *change = *(clave_counter_change *)block;
    free(block);
    return err;
}

clave_err clave_counter_get(clave_counter *n, int64_t timeout_ms, int64_t *value)
{
    clave_counter_change change;
    clave_err err =
        counter_call((struct counter_question){.n = n, .what = ASK_GET}, timeout_ms, &change);
    if (err == CLAVE_OK)
        *value = change.after;
    return err;
}

clave_err clave_counter_add(clave_counter *n, int64_t delta, int64_t timeout_ms,
                            clave_counter_change *change)
{
    return counter_call((struct counter_question){.n = n, .what = ASK_ADD, .value = delta},
                        timeout_ms, change);
}

clave_err clave_counter_set(clave_counter *n, int64_t value, int64_t timeout_ms,
                            clave_counter_change *change)
{
    return counter_call((struct counter_question){.n = n, .what = ASK_SET, .value = value},
                        timeout_ms, change);
}

clave_err clave_counter_compare_and_set(clave_counter *n, int64_t expected, int64_t value,
                                        int64_t timeout_ms, clave_counter_change *change)
{
    return counter_call(
        (struct counter_question){
            .n = n, .what = ASK_COMPARE, .value = value, .expected = expected},
        timeout_ms, change);
}
