/* quota.c - counting and enforcing quotas; see request.h. request.c checks before a change and
 * reports it afterwards; server.c recounts when it starts. Where no quota is set, every call
 * returns after one lookup. */
#include "server/request/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "wire/opcode.h"

static const char quota_root[] = "/zookeeper/quota";
static const char limits_name[] = "/zookeeper_limits";
static const char stats_name[] = "/zookeeper_stats";

struct quota_stats {
    int64_t nodes;
    int64_t bytes;
};

/* ---- finding --------------------------------------------------------------------------------- */

static bool quota_has_any(const struct server *s)
{
    const struct node *root = clave__tree_find(&s->tree, clave__jbytes(quota_root));
    return root && root->stat.num_children > 0;
}

/* The node called `name` that belongs to the quota on `path`. NULL: there is none, or no memory to
 * look it up. */
static struct node *quota_find_part(struct server *s, struct jbytes path, const char *name)
{
    struct buf *b = &s->scratch.quota_path;
    clave__buf_clear(b);
    if (clave__buf_append(b, quota_root, sizeof quota_root - 1) != CLAVE_OK ||
        clave__buf_append(b, path.p, (size_t)path.n) != CLAVE_OK ||
        clave__buf_append(b, name, strlen(name)) != CLAVE_OK)
        return NULL;
    struct jbytes part = clave__jbytes_n(clave__buf_bytes(b), clave__buf_len(b));
    struct node *n = clave__tree_find(&s->tree, part);
    return n == s->tree.root ? NULL : n;
}

/* The nearest path at or above `path` that has limits; *limits is the node with them. n is 0 if
 * there is none. */
static struct jbytes quota_nearest(struct server *s, struct jbytes path, struct node **limits)
{
    for (; path.n > 1; path.n = (int32_t)clave__path_parent_len(path.p, (size_t)path.n)) {
        *limits = quota_find_part(s, path, limits_name);
        if (*limits)
            return path;
    }
    return (struct jbytes){path.p, 0};
}

static bool quota_ends_with(struct jbytes path, const char *name)
{
    size_t n = strlen(name);
    return (size_t)path.n > n && memcmp(path.p + path.n - n, name, n) == 0;
}

/* The path whose quota the node at `part` belongs to; n is 0 if it is not part of a quota. */
static struct jbytes quota_of(struct jbytes part, const char *name)
{
    const size_t root = sizeof quota_root - 1;
    if ((size_t)part.n <= root || memcmp(part.p, quota_root, root) != 0 ||
        !quota_ends_with(part, name))
        return (struct jbytes){part.p, 0};
    return clave__jbytes_n(part.p + root, (size_t)part.n - root - strlen(name));
}

/* ---- stats ----------------------------------------------------------------------------------- */

/* Finds the number after `key` in text such as "count=2,bytes=8" or "...=;byteHardLimit=9". Returns
 * false if it is not there. */
static bool quota_get_number(const struct node *n, const char *key, int64_t *out)
{
    const size_t len = strlen(key);
    const char *p = (const char *)n->data;
    const char *end = p ? p + n->data_len : NULL;
    for (; p && (size_t)(end - p) > len; p++) {
        if (memcmp(p, key, len) != 0)
            continue;
        char digits[24] = "";
        size_t k = 0;
        for (p += len; p < end && k + 1 < sizeof digits && strchr("-0123456789", *p); p++)
            digits[k++] = *p;
        *out = 0;
        bool negative = digits[0] == '-';
        for (size_t i = negative; i < k && i < 18; i++)
            *out = *out * 10 + (digits[i] - '0');
        *out = negative ? -*out : *out;
        return k > 0;
    }
    return false;
}

static bool quota_get_stats(const struct node *n, struct quota_stats *out)
{
    return quota_get_number(n, "count=", &out->nodes) && quota_get_number(n, "bytes=", &out->bytes);
}

/* Writes the counts into the stats node. Only its data change, not its version. If there is no
 * memory, the counts are wrong until the next start. */
static void quota_put_stats(struct server *s, struct node *n, const struct quota_stats *f)
{
    char text[64];
    int len = snprintf(text, sizeof text, "count=%" PRId64 ",bytes=%" PRId64, f->nodes, f->bytes);
    uint8_t *data;
    if (clave__tree_copy_data(&s->tree, clave__jbytes_n(text, (size_t)len), &data) != CLAVE_OK)
        return;
    clave__tree_swap_data(&s->tree, n, &data, &len);
    clave__tree_free_data(&s->tree, n, data);
    clave__tree_changed(&s->tree, n);
}

static int64_t quota_size_of(int32_t len)
{
    return len > 0 ? len : 0;
}

static void quota_count(struct server *s, struct jbytes path)
{
    struct quota_stats f = {0, 0};
    const struct node *top = clave__tree_find(&s->tree, path);
    struct node *stats = quota_find_part(s, path, stats_name);
    for (const struct node *n = top; n; n = clave__tree_next(n, top)) {
        f.nodes++;
        f.bytes += quota_size_of(n->data_len);
    }
    s->turn.looks += (size_t)f.nodes;
    if (stats)
        quota_put_stats(s, stats, &f);
}

static void quota_add(struct server *s, struct jbytes path, int64_t nodes, int64_t bytes)
{
    struct quota_stats f;
    struct node *limits;
    struct jbytes at = quota_nearest(s, path, &limits);
    struct node *stats = at.n > 0 ? quota_find_part(s, at, stats_name) : NULL;
    if (!stats)
        return;
    if (!quota_get_stats(stats, &f)) {
        quota_count(s, at);
        return;
    }
    f.nodes += nodes;
    f.bytes += bytes;
    quota_put_stats(s, stats, &f);
}

/* ---- changes --------------------------------------------------------------------------------- */

static void quota_note(struct server *s, const struct change *c)
{
    struct jbytes path = c->path;
    switch (clave__opcode(c->type)->effect) {
    case EFFECT_CREATE:
        quota_add(s, path, 1, quota_size_of(c->data.n));
        break;
    case EFFECT_DELETE:
        quota_add(s, path, -1, -quota_size_of(c->node->data_len));
        break;
    case EFFECT_SET_DATA:
        quota_add(s, path, 0, quota_size_of(c->data.n) - quota_size_of(c->other_len));
        break;
    }
}

/* Lets a newly created stats node start with a count of what exists now. */
static void quota_begin(struct server *s, const struct change *c)
{
    bool is_new = clave__opcode(c->type)->effect == EFFECT_CREATE;
    struct jbytes path = quota_of(c->path, stats_name);
    if (is_new && path.n > 0)
        quota_count(s, path);
}

void clave__quota_note(struct server *s)
{
    if (!quota_has_any(s))
        return;
    for (size_t i = 0; i < s->txn.count; i++)
        if (s->txn.changes[i].state == CHANGE_DONE)
            quota_note(s, &s->txn.changes[i]);
    for (size_t i = 0; i < s->txn.count; i++)
        if (s->txn.changes[i].state == CHANGE_DONE)
            quota_begin(s, &s->txn.changes[i]);
}

void clave__quota_recount(struct server *s)
{
    const struct node *top = clave__tree_find(&s->tree, clave__jbytes(quota_root));
    if (!top || top == s->tree.root)
        return;
    for (const struct node *n = top; (n = clave__tree_next(n, top));) {
        struct jbytes path = quota_of(clave__node_path_bytes(n), limits_name);
        if (path.n > 0)
            quota_count(s, path);
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

clave_err clave__quota_check(struct server *s, struct jbytes path, int64_t nodes, int32_t from,
                             int32_t to)
{
    const int64_t bytes = quota_size_of(to) - quota_size_of(from);
    struct quota_stats f;
    struct node *limits;
    int64_t most;
    struct jbytes at =
        quota_has_any(s) ? quota_nearest(s, path, &limits) : (struct jbytes){path.p, 0};
    const struct node *stats = at.n > 0 ? quota_find_part(s, at, stats_name) : NULL;
    if (!stats || !quota_get_stats(stats, &f))
        return CLAVE_OK;
    if (nodes > 0 && quota_get_number(limits, "countHardLimit=", &most) && most >= 0 &&
        f.nodes + nodes > most)
        return CLAVE_EQUOTA;
    if (bytes > 0 && quota_get_number(limits, "byteHardLimit=", &most) && most >= 0 &&
        f.bytes + bytes > most)
        return CLAVE_EQUOTA;
    return CLAVE_OK;
}
