/* leader_reading.c - what one reading of an election has found, and how it differs from another.
 * Called by leader_watch.c. What must stay true: a value is kept only if it names the node of this
 * leader. */
#include "recipe/election/leader_reading.h"

#include <string.h>

#include "recipe/queue/identity.h"
#include "recipe/queue/queue_nodes.h"

void clave__leader_reading_fini(struct leader_reading *v, const struct clave_mem *mem)
{
    clave__mem_free(mem, v->node);
    clave__mem_free(mem, v->data);
    clave__mem_free(mem, v->value);
    *v = (struct leader_reading){0};
}

static bool leader_reading_same_bytes(const char *a, size_t na, const char *b, size_t nb)
{
    return a && b ? na == nb && memcmp(a, b, na) == 0 : a == b;
}

bool clave__leader_reading_equals(const struct leader_reading *a, const struct leader_reading *b)
{
    if (a->err != b->err || !a->node != !b->node)
        return false;
    return !b->node || (a->stat.czxid == b->stat.czxid && strcmp(a->node, b->node) == 0 &&
                        leader_reading_same_bytes(a->data, a->len, b->data, b->len) &&
                        leader_reading_same_bytes(a->value, a->nvalue, b->value, b->nvalue));
}

clave_err clave__leader_reading_begin(struct leader_reading *v, const struct clave_mem *mem,
                                      const char *node)
{
    clave__leader_reading_fini(v, mem);
    v->node = clave__mem_strdup(mem, node);
    return v->node ? CLAVE_OK : CLAVE_ENOMEM;
}

clave_err clave__leader_reading_begin_with(struct leader_reading *v, const struct clave_mem *mem,
                                           const struct leader_reading *from)
{
    clave_err err = clave__leader_reading_begin(v, mem, from->node);
    v->stat = from->stat;
    v->len = from->len;
    v->data = from->data ? clave__mem_strndup(mem, from->data, from->len) : NULL;
    return err == CLAVE_OK && !v->data && from->data ? CLAVE_ENOMEM : err;
}

clave_err clave__leader_reading_take_node(struct leader_reading *v, const struct clave_mem *mem,
                                          const clave_result *res)
{
    clave__mem_free(mem, v->data);
    v->data = NULL;
    v->len = res->len;
    if (res->stat)
        v->stat = *res->stat;
    if (res->err != CLAVE_OK)
        return CLAVE_OK;
    v->data = clave__mem_strndup(mem, res->len ? res->data : "", res->len);
    return v->data ? CLAVE_OK : CLAVE_ENOMEM;
}

/* The data is the name of the leader's node, a newline, and the value (leader_value.c). The value
 * of a former leader counts as none. */
clave_err clave__leader_reading_take_value(struct leader_reading *v, const struct clave_mem *mem,
                                           const clave_result *res)
{
    size_t nname = strlen(v->node);
    const char *data = res->data;
    clave__mem_free(mem, v->value);
    v->value = NULL;
    v->nvalue = 0;
    if (res->err != CLAVE_OK || res->len <= nname || data[nname] != '\n' ||
        memcmp(data, v->node, nname) != 0)
        return CLAVE_OK;
    v->nvalue = res->len - nname - 1;
    v->value = clave__mem_strndup(mem, data + nname + 1, v->nvalue);
    return v->value ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Parses a copy, because the parser modifies its input, and the original is compared with the next
 * reading. */
clave_err clave__leader_reading_describe(const struct leader_reading *v,
                                         const struct clave_mem *mem, clave_participant *p,
                                         char **text)
{
    *p = (clave_participant){
        .node = v->node, .stat = v->stat, .left_over = clave__queue_node_is_left_over(&v->stat)};
    *text = v->data ? clave__mem_strndup(mem, v->data, v->len) : NULL;
    if (v->data && !*text)
        return CLAVE_ENOMEM;
    if (*text)
        clave__identity_parse(*text, v->len, &p->identity);
    return CLAVE_OK;
}
