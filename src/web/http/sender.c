/* sender.c - see sender.h. Called by sender_limits.c for requests, and by those that keep a sender.
 */
#include "web/http/sender.h"

#include <assert.h>
#include <string.h>

clave_err clave__senders_new(struct web *w)
{
    w->senders = clave__mem_zalloc(&w->mem, sizeof *w->senders);
    return w->senders ? clave__map_init(&w->senders->map, &w->mem, clave__rand_u64(&w->rand))
                      : CLAVE_ENOMEM;
}

void clave__senders_free(struct web *w)
{
    if (w->senders)
        clave__map_fini(&w->senders->map);
    clave__mem_free(&w->mem, w->senders);
    w->senders = NULL;
}

/* ---- finding --------------------------------------------------------------------------------- */

enum { V6_BYTES = 16, V6_PREFIX = 8 };

struct sender_name {
    enum sender_kind kind;
    const char *text;
    size_t len;
};

/* The groups of an IPv6 address, as its text has them, up to `end`: at most n bytes. */
static size_t sender_v6_groups(const char *text, const char *end, uint8_t *out, size_t n)
{
    size_t len = 0;
    while (text < end && len < n) {
        unsigned group = 0;
        for (; text < end && *text != ':'; text++) {
            char c = (char)(*text | 0x20);
            group = group << 4 | (unsigned)(c <= '9' ? c - ('0' | 0x20) : c - 'a' + 10);
        }
        out[len++] = (uint8_t)(group >> 8);
        out[len++] = (uint8_t)group;
        text += text < end;
    }
    return len;
}

/* The network that one host has: 64 bits of its address. */
static void sender_v6_prefix(const char *text, size_t n, uint8_t out[V6_PREFIX])
{
    uint8_t back[V6_BYTES], all[V6_BYTES] = {0};
    const char *end = text + n, *gap = strstr(text, "::");
    gap = gap && gap < end ? gap : end;
    sender_v6_groups(text, gap, all, sizeof all);
    size_t len = gap < end ? sender_v6_groups(gap + 2, end, back, sizeof back) : 0;
    memcpy(all + sizeof all - len, back, len);
    memcpy(out, all, V6_PREFIX);
}

/* "10.0.0.1:80", "[2001:db8::1%eth0]:80", and both without port and brackets. An IPv4 address
 * within one of IPv6 counts as it is written. */
static struct sender_name sender_name_of_address(const char *address, uint8_t prefix[V6_PREFIX])
{
    const char *first = strchr(address, ':'), *last = strrchr(address, ':');
    size_t n = first ? (size_t)(last - address) : strlen(address);
    bool bracket = address[0] == '[', is_v6 = bracket || first != last;
    if (!is_v6 || strchr(address, '.'))
        return (struct sender_name){.text = address, .len = n};
    address += bracket;
    sender_v6_prefix(address, strcspn(address, "]%"), prefix);
    return (struct sender_name){.text = (const char *)prefix, .len = V6_PREFIX};
}

static bool sender_is(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct sender, node);
    const struct sender *s = (const void *)at;
    const struct sender_name *name = key;
    return s->kind == name->kind && s->len == name->len && memcmp(s->name, name->text, s->len) == 0;
}

struct sender *clave__sender_get(struct web *w, enum sender_kind kind, const char *text)
{
    struct map *m = &w->senders->map;
    uint8_t prefix[V6_PREFIX];
    struct sender_name name = kind == SENDER_NAMED
                                  ? (struct sender_name){.text = text, .len = strlen(text)}
                                  : sender_name_of_address(text, prefix);
    name.kind = kind;
    uint32_t hash = clave__map_hash_bytes(m, name.text, name.len);
    struct map_node *found = clave__map_find(m, hash, sender_is, &name);
    if (found)
        return clave__sender_ref(MAP_ENTRY(found, struct sender, node));
    struct sender *s = clave__mem_zalloc(&w->mem, sizeof *s + name.len);
    if (!s)
        return NULL;
    s->refs = 1;
    s->kind = kind;
    s->len = name.len;
    memcpy(s->name, name.text, name.len);
    clave__map_insert(m, &s->node, hash);
    return s;
}

struct sender *clave__sender_ref(struct sender *s)
{
    assert(s->refs > 0);
    s->refs++;
    return s;
}

void clave__sender_unref(struct web *w, struct sender *s)
{
    assert(!s || s->refs > 0);
    if (!s || --s->refs > 0)
        return;
    for (size_t i = 0; i < POOLS; i++)
        assert(s->used[i] == 0);
    clave__map_remove(&w->senders->map, &s->node);
    clave__mem_free(&w->mem, s);
}

/* ---- whose a request is --------------------------------------------------------------------- */

/* The address as the rules about proxies give it. */
static const char *sender_of_address(const struct web_exchange *x)
{
    return x->peer.address ? x->peer.address : "";
}

struct sender *clave__web_sender(struct web_exchange *x)
{
    bool named = x->who.is_known && x->who.name[0];
    enum sender_kind kind = SENDER_STRANGER;
    if (x->who.found == ACCESS_KNOWN)
        kind = named ? SENDER_NAMED : SENDER_ADMITTED;
    if (!x->sender)
        x->sender = clave__sender_get(x->web, kind, named ? x->who.name : sender_of_address(x));
    return x->sender;
}
