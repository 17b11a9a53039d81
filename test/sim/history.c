/* Room is never wanted more than when every hold begins as late as it may, and the tokens say in
 * which order they begin. So each begins at its answer, or when the next token's does, whichever
 * is first: if that is before its own call, no order is right; and if so there is no room, there
 * is none otherwise. */
#include "history.h"

#include <stdlib.h>

size_t history_add(struct history *h, const struct history_hold *hold)
{
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 256;
        h->holds = realloc(h->holds, h->cap * sizeof *h->holds);
        if (!h->holds)
            abort();
    }
    h->holds[h->n] = *hold;
    return h->n++;
}

void history_fini(struct history *h)
{
    free(h->holds);
    *h = (struct history){0};
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_token(const void *a, const void *b)
{
    const struct history_hold *x = a, *y = b;
    int order = compare(x->token, y->token);
    return order ? order : compare(x->answered, y->answered);
}

struct change {
    int64_t at;
    int64_t by; /* what begins, or, negative, ends */
    size_t hold;
};

/* Of one moment the ends first: at its bounds a hold is not certain. */
static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    int order = compare(x->at, y->at);
    return order ? order : compare(x->by, y->by);
}

static enum history_fault check_tokens(const struct history *h, struct change *begins, size_t *at)
{
    int64_t latest = INT64_MAX;
    for (size_t i = h->n; i-- > 0;) {
        const struct history_hold *k = &h->holds[i];
        bool again = i > 0 && h->holds[i - 1].token == k->token;
        *at = i;
        if (again && h->holds[i - 1].holder != k->holder)
            return HISTORY_TOKENS;
        latest = k->answered < latest ? k->answered : latest;
        if (latest < k->called)
            return HISTORY_TOKENS;
        begins[i] = (struct change){latest, k->weight, i};
    }
    return HISTORY_FINE;
}

static enum history_fault check_room(const struct history *h, struct change *changes,
                                     unsigned capacity, size_t *at)
{
    int64_t held = 0;
    size_t n = h->n;
    for (size_t i = 0; i < h->n; i++) {
        const struct history_hold *k = &h->holds[i];
        if (k->ended > changes[i].at)
            changes[n++] = (struct change){k->ended, -(int64_t)k->weight, i};
        else
            changes[i].by = 0;
    }
    qsort(changes, n, sizeof *changes, by_time);
    for (size_t i = 0; i < n; i++) {
        held += changes[i].by;
        *at = changes[i].hold;
        if (held > capacity)
            return HISTORY_ROOM;
    }
    return HISTORY_FINE;
}

enum history_fault history_check(struct history *h, unsigned capacity, size_t *at)
{
    if (h->n == 0)
        return HISTORY_FINE;
    struct change *changes = malloc(2 * h->n * sizeof *changes);
    if (!changes)
        abort();
    qsort(h->holds, h->n, sizeof *h->holds, by_token);
    enum history_fault fault = check_tokens(h, changes, at);
    if (fault == HISTORY_FINE)
        fault = check_room(h, changes, capacity, at);
    free(changes);
    return fault;
}
