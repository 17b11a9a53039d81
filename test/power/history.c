#include "history.h"

#include <stdlib.h>
#include <string.h>

#include "server/store/txn_log.h"
#include "wire/proto.h"

/* Of a tree that only has what every tree has. */
static const uint64_t empty_tree = 1371985504;

void history_init(struct history *h)
{
    *h = (struct history){.n = 1, .cap = 1024};
    h->of = calloc(h->cap, sizeof *h->of);
    must(h->of != NULL);
    h->of[0].digest = empty_tree;
}

void history_fini(struct history *h)
{
    free(h->of);
}

/* The moment in front of a zxid. */
static struct moment before(const struct history *h, int64_t zxid)
{
    size_t i = h->tip;
    if (h->of[i].zxid != zxid - 1) /* some of what was written is gone */
        for (i = h->n - 1; h->of[i].zxid != zxid - 1; i--)
            must(i > 0); /* none is missing */
    return h->of[i];
}

static void add(struct history *h, const struct txn_record *t)
{
    if (h->n == h->cap) {
        h->cap *= 2;
        h->of = realloc(h->of, h->cap * sizeof *h->of);
        must(h->of != NULL);
    }
    struct moment m = before(h, t->head.zxid);
    m.zxid = t->head.zxid;
    m.digest = t->has_digest ? t->digest : m.digest; /* a failed request changes nothing */
    m.sessions += t->head.type == OP_CREATE_SESSION;
    m.sessions -= t->head.type == OP_CLOSE_SESSION;
    h->tip = h->n;
    h->of[h->n++] = m;
}

/* Whole records, as a batch has them. */
static void read_batch(struct history *h, const struct event *e)
{
    struct log_walk w;
    struct txn_log_entry entry;
    uint8_t *file = malloc(SERVER_LOG_HEADER + e->n);
    must(file != NULL);
    clave__server_log_header(file);
    memcpy(file + SERVER_LOG_HEADER, e->bytes, e->n);
    must(clave__txn_log_walk(&w, file, SERVER_LOG_HEADER + e->n));
    while (clave__txn_log_next_entry(&w, &entry) == LOG_STEP_RECORD)
        add(h, &entry.txn);
    free(file);
}

void history_read(struct history *h, const struct recording *r)
{
    bool *is_log = calloc(r->files + 1, sizeof *is_log);
    bool begun = false;
    must(is_log != NULL);
    for (size_t i = 0; i < r->n; i++) {
        const struct event *e = &r->events[i];
        begun = begun || e->kind == EVENT_SYNC_DIR; /* what was there before is known */
        if (e->kind == EVENT_CREATE)
            is_log[e->file] = strstr(e->name, "log") != NULL;
        if (begun && e->kind == EVENT_WRITE && is_log[e->file] && e->at > 0)
            read_batch(h, e);
    }
    free(is_log);
}

const struct moment *history_find(const struct history *h, int64_t zxid, uint64_t digest)
{
    for (size_t i = h->n; i-- > 0;)
        if (h->of[i].zxid == zxid && h->of[i].digest == digest)
            return &h->of[i];
    return NULL;
}

void history_go_to(struct history *h, const struct moment *m)
{
    h->tip = (size_t)(m - h->of);
}
