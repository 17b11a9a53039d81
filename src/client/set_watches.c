/* set_watches.c - the watches that a new connection owes its server, and the setWatches with which
 * they are registered again. */
#include <string.h>

#include "client/client_internal.h"
#include "client/request/encode.h"

/* As in Apache's client, no setWatches is longer than this, however many watches there are. */
enum { SET_WATCHES_BYTES = 128 * 1024 };

/* A server forgets a client's watches with the connection. They are registered again on the next
 * one, before any request: one-shot watches with setWatches, which every server knows; persistent
 * ones after them with setWatches2, which those before 3.6 refuse. */
void clave__client_watches_attached(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    struct list all, *l;
    list_init(&all);
    list_splice(&all, &ws->owed);
    list_splice(&all, &ws->owed_persistent);
    list_splice(&all, &ws->armed);
    while ((l = list_pop_front(&all))) {
        bool stays = LIST_ENTRY(l, clave_async_watch, link)->kind >= WATCH_PERSISTENT;
        list_push_back(stays ? &ws->owed_persistent : &ws->owed, l);
    }
    ws->owed_since = c->session.last_zxid;
    ws->unanswered = ws->unanswered_persistent = 0;
}

bool clave__client_watches_are_owed(const clave_async_client *c)
{
    return !list_empty(&c->watches.owed) || !list_empty(&c->watches.owed_persistent);
}

bool clave__client_watches_settled(const clave_async_client *c)
{
    return !clave__client_watches_are_owed(c) && c->watches.unanswered == 0;
}

bool clave__client_watches_answered(clave_async_client *c, bool *persistent)
{
    struct watches *ws = &c->watches;
    bool asked = ws->unanswered > 0;
    *persistent = asked && ws->unanswered == ws->unanswered_persistent;
    ws->unanswered -= asked;
    ws->unanswered_persistent -= *persistent;
    return asked;
}

/* Appends the paths of one kind, from the head of a list up to `end`, to c->encode as one vector.
 */
static struct jvec set_watches_paths_of_kind(clave_async_client *c, enum watch_kind kind,
                                             const struct list *head, const struct list *end)
{
    struct jwriter w = clave__jwriter(&c->encode);
    struct jvec v = {0};
    size_t at = clave__buf_len(&c->encode);
    for (struct list *l = head->next; l != end; l = l->next) {
        const clave_async_watch *watch = LIST_ENTRY(l, clave_async_watch, link);
        struct jbytes full;
        if (watch->kind != kind)
            continue;
        if (clave__full_path(c, watch->path, &full) != CLAVE_OK)
            w.err = CLAVE_ENOMEM;
        clave__jput_bytes(&w, full);
        v.count++;
    }
    v.n = clave__buf_len(&c->encode) - at;
    if (w.err)
        v.count = -1;
    return v;
}

/* Where the part of a list that fits in one setWatches ends: bounded in bytes, never empty. */
static struct list *set_watches_end(const clave_async_client *c, const struct list *head)
{
    size_t bytes = 0;
    struct list *l = head->next;
    do {
        bytes += strlen(LIST_ENTRY(l, clave_async_watch, link)->path) + c->hosts.chroot_len + 4;
        l = l->next;
    } while (l != head && bytes < SET_WATCHES_BYTES);
    return l;
}

/* Encodes these watches' paths, by kind, one vector after the other in c->encode. */
static clave_err set_watches_put_paths(clave_async_client *c, const struct list *head,
                                       const struct list *end, struct jvec v[WATCH_KINDS])
{
    clave__buf_clear(&c->encode);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        v[kind] = set_watches_paths_of_kind(c, (enum watch_kind)kind, head, end);
        if (v[kind].count < 0)
            return CLAVE_ENOMEM;
    }
    const uint8_t *at = clave__buf_bytes(&c->encode); /* the buffer no longer moves */
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        v[kind].p = at;
        at += v[kind].n;
    }
    return CLAVE_OK;
}

clave_err clave__client_watches_fill(clave_async_client *c)
{
    struct watches *ws = &c->watches;
    struct jvec v[WATCH_KINDS];
    bool persistent = list_empty(&ws->owed);
    struct list *owed = persistent ? &ws->owed_persistent : &ws->owed;
    if (list_empty(owed))
        return CLAVE_OK;
    struct list *end = set_watches_end(c, owed);
    clave_err err = set_watches_put_paths(c, owed, end, v);
    struct wire_request q = {
        .xid = XID_SET_WATCHES,
        .op = persistent ? OP_SET_WATCHES2 : OP_SET_WATCHES,
        .body.watches = {.relative_zxid = ws->owed_since,
                         .data = v[WATCH_DATA],
                         .exist = v[WATCH_EXIST],
                         .child = v[WATCH_CHILD],
                         .persistent = v[WATCH_PERSISTENT],
                         .persistent_recursive = v[WATCH_RECURSIVE]},
    };
    if (err == CLAVE_OK)
        err = clave__unqueued_request_put(c, &q);
    if (err)
        return err;
    ws->unanswered++;
    ws->unanswered_persistent += persistent;
    while (owed->next != end) {
        struct list *l = owed->next;
        list_remove(l);
        list_push_back(&ws->armed, l);
    }
    return CLAVE_OK;
}
