/* latch_layout.c - whose nodes a latch's are: Curator's, or those of programs written by hand.
 * Their rules say what is different: see queue_order.h, and contender_single_node.c for the layout
 * without a queue. Called by latch.c. */
#include "recipe/election/latch_layout.h"

#include <string.h>

#include "base/path.h"
#include "client/client_for_recipes.h"

static clave_err latch_layout_unfair(struct latch_layout *l, clave_async_client *c,
                                     const char *node)
{
    size_t len = strlen(node);
    const char *fault = len == 1 ? "is the root" : clave__path_fault(node, len, false);
    if (fault) {
        clave__client_fault(c, "the election's node \"%s\" %s", node, fault);
        return CLAVE_EPATH;
    }
    l->own = (struct queue_order_rule){
        .base = clave__path_name(node), .unprotected = true, .race = true};
    l->parent = clave__mem_strndup(clave__client_mem(c), node, clave__path_parent_len(node, len));
    l->path = l->parent;
    return l->parent ? CLAVE_OK : CLAVE_ENOMEM;
}

clave_err clave__latch_layout_init(struct latch_layout *l, clave_async_client *c, const char *path,
                                   const clave_latch_options *o)
{
    bool ranks = o->priority > 0 || o->spread; /* the node's name must say it */
    *l = (struct latch_layout){.rule = &clave__queue_order_latch, .path = path};
    if (o->layout == CLAVE_LATCH_CURATOR)
        return o->prefix ? CLAVE_EINVAL : CLAVE_OK;
    if (ranks)
        return CLAVE_EINVAL;
    l->rule = &l->own;
    if (o->layout == CLAVE_LATCH_FAIR)
        return o->prefix ? clave__queue_order_unprotected(&l->own, o->prefix) : CLAVE_EINVAL;
    return o->layout == CLAVE_LATCH_UNFAIR ? latch_layout_unfair(l, c, path) : CLAVE_EINVAL;
}

void clave__latch_layout_fini(struct latch_layout *l, clave_async_client *c)
{
    clave__mem_free(clave__client_mem(c), l->parent);
}
