/* event_queue.c - a binary heap. */
#include "event_queue.h"

#include <stdlib.h>

#include "crowd.h"

static bool event_is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void event_queue_put(struct event_queue *q, struct event e)
{
    if (q->n == q->cap) {
        q->cap = q->cap ? q->cap * 2 : 1024;
        q->heap = realloc(q->heap, q->cap * sizeof *q->heap);
        crowd_require(q->heap != NULL);
    }
    e.order = q->order++;
    size_t i = q->n++;
    for (size_t up; i > 0 && event_is_before(&e, &q->heap[up = (i - 1) / 2]); i = up)
        q->heap[i] = q->heap[up];
    q->heap[i] = e;
}

bool event_queue_take(struct event_queue *q, struct event *out)
{
    if (q->n == 0)
        return false;
    *out = q->heap[0];
    struct event last = q->heap[--q->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < q->n; i = child) {
        if (child + 1 < q->n && event_is_before(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (!event_is_before(&q->heap[child], &last))
            break;
        q->heap[i] = q->heap[child];
    }
    q->heap[i] = last;
    return true;
}

void event_queue_free(struct event_queue *q)
{
    free(q->heap);
}
