/* plain_layouts.c - mutexes and latches with the layouts of programs written by hand. Their rules
 * say what is different: see queue_order.h, and contender_race.c for the layout without a queue.
 */
#include "clave/async/plain_layouts.h"

#include <string.h>

#include "base/path.h"
#include "recipe/election/latch_internal.h"
#include "recipe/lock/mutex_parts.h"

clave_err clave_async_mutex_new_simple(clave_async_mutex **out, clave_async_client *c,
                                       const char *path, const char *prefix,
                                       const clave_mutex_options *o)
{
    struct queue_order_rule rule;
    *out = NULL;
    clave_err err = clave__queue_order_unprotected(&rule, prefix);
    return err == CLAVE_OK ? clave__mutex_new(out, c, path, o, &rule) : err;
}

clave_err clave_async_latch_new_fair(clave_async_latch **out, clave_async_client *c,
                                     const char *path, const char *prefix,
                                     const clave_latch_options *o)
{
    struct queue_order_rule rule;
    *out = NULL;
    clave_err err = clave__queue_order_unprotected(&rule, prefix);
    return err == CLAVE_OK ? clave__latch_new(out, c, path, o, &rule) : err;
}

clave_err clave_async_latch_new_unfair(clave_async_latch **out, clave_async_client *c,
                                       const char *node, const clave_latch_options *o)
{
    struct queue_order_rule rule = {
        .base = clave__path_name(node), .unprotected = true, .race = true};
    size_t len = strlen(node);
    const char *fault = len == 1 ? "is the root" : clave__path_fault(node, len, false);
    *out = NULL;
    if (fault) {
        clave__client_fault(c, "the election's node \"%s\" %s", node, fault);
        return CLAVE_EPATH;
    }
    const struct clave_mem *mem = clave__client_mem(c);
    char *parent = clave__mem_strndup(mem, node, clave__path_parent_len(node, len));
    if (!parent)
        return CLAVE_ENOMEM;
    clave_err err = clave__latch_new(out, c, parent, o, &rule);
    clave__mem_free(mem, parent);
    return err;
}
