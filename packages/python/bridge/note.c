/* note.c - the encoding of what callbacks received, for Python to read later. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

void bridge__note_init(struct bridge_note *n, uint64_t id, struct bridge_call *call)
{
    n->next = NULL;
    n->id = id;
    n->call = call;
    n->bytes = n->room;
    n->len = 0;
    n->cap = sizeof n->room;
    n->failed = false;
}

void bridge__note_fini(struct bridge_note *n)
{
    if (n->bytes != n->room)
        free(n->bytes);
}

static bool note_reserve(struct bridge_note *n, size_t more)
{
    if (n->failed || more <= n->cap - n->len)
        return !n->failed;
    size_t cap = n->cap * 2 > n->len + more ? n->cap * 2 : n->len + more;
    unsigned char *bytes = realloc(n->bytes == n->room ? NULL : n->bytes, cap);
    if (!bytes) {
        n->failed = true;
        return false;
    }
    if (n->bytes == n->room)
        memcpy(bytes, n->room, n->len);
    n->bytes = bytes;
    n->cap = cap;
    return true;
}

static void note_put(struct bridge_note *n, char tag, const void *p, size_t len)
{
    if (!note_reserve(n, 1 + len))
        return;
    n->bytes[n->len++] = (unsigned char)tag;
    if (len > 0)
        memcpy(n->bytes + n->len, p, len);
    n->len += len;
}

static void note_put_run(struct bridge_note *n, char tag, const void *p, size_t len)
{
    uint32_t length = (uint32_t)len;
    note_put(n, tag, &length, sizeof length);
    if (len == 0 || !note_reserve(n, len))
        return;
    memcpy(n->bytes + n->len, p, len);
    n->len += len;
}

void bridge__put_none(struct bridge_note *n)
{
    note_put(n, 'N', NULL, 0);
}

void bridge__put_int(struct bridge_note *n, int64_t value)
{
    note_put(n, 'I', &value, sizeof value);
}

void bridge__put_bytes(struct bridge_note *n, const void *p, size_t len)
{
    if (p)
        note_put_run(n, 'B', p, len);
    else
        bridge__put_none(n);
}

void bridge__put_text(struct bridge_note *n, const char *s)
{
    if (s)
        note_put_run(n, 'S', s, strlen(s));
    else
        bridge__put_none(n);
}

void bridge__put_list(struct bridge_note *n, size_t count)
{
    uint32_t length = (uint32_t)count;
    note_put(n, 'L', &length, sizeof length);
}

void bridge__put_stat(struct bridge_note *n, const clave_stat *s)
{
    if (!s) {
        bridge__put_none(n);
        return;
    }
    const int64_t fields[] = {
        s->czxid,    s->mzxid,           s->ctime,       s->mtime,        s->version, s->cversion,
        s->aversion, s->ephemeral_owner, s->data_length, s->num_children, s->pzxid,
    };
    bridge__put_list(n, sizeof fields / sizeof fields[0]);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        bridge__put_int(n, fields[i]);
}

void bridge__put_grant(struct bridge_note *n, clave_async_grant *g)
{
    bridge__put_int(n, (intptr_t)g);
    bridge__put_int(n, clave_async_grant_token(g));
    bridge__put_int(n, clave_async_grant_session_id(g));
    bridge__put_text(n, clave_async_grant_node(g));
}

void bridge__put_identity(struct bridge_note *n, const clave_identity *id)
{
    bridge__put_list(n, 12);
    bridge__put_text(n, id->host);
    bridge__put_int(n, id->pid);
    bridge__put_text(n, id->name);
    bridge__put_text(n, id->command);
    bridge__put_text(n, id->text);
    bridge__put_text(n, id->owner);
    bridge__put_text(n, id->task);
    bridge__put_int(n, id->limit);
    bridge__put_int(n, id->yields);
    bridge__put_int(n, id->asked);
    bridge__put_int(n, id->revocable);
    bridge__put_text(n, id->traceparent);
}

void bridge__put_participants(struct bridge_note *n, const clave_participant *list, size_t count)
{
    bridge__put_list(n, count);
    for (size_t i = 0; i < count; i++) {
        bridge__put_list(n, 5);
        bridge__put_text(n, list[i].node);
        bridge__put_stat(n, &list[i].stat);
        bridge__put_identity(n, &list[i].identity);
        bridge__put_int(n, list[i].priority);
        bridge__put_int(n, list[i].left_over);
    }
}

struct bridge_note *bridge_note_new(void)
{
    struct bridge_note *n = malloc(sizeof *n);
    if (n)
        bridge__note_init(n, 0, NULL);
    return n;
}

size_t bridge_note_read(struct bridge_note *n, const void **bytes)
{
    if (n->call)
        n->call->read = true;
    *bytes = n->failed ? NULL : n->bytes;
    return n->failed ? 0 : n->len;
}
