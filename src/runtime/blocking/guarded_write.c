/* guarded_write.c - see guarded_write.h; mutex.c, semaphore.c and latch.c call it. The node is
 * looked up on the loop's thread, so that the write goes out under the grant of that moment. */
#include "runtime/blocking/guarded_write.h"

#include "recipe/contender/fenced_write.h"

struct guarded_write {
    const struct guard *guard;
    const clave_op *ops;
    size_t nops;
    bool single; /* not a multi: the result is that of the operation */
};

static clave_err guarded_write_begin(struct call *c, void *args)
{
    const struct guarded_write *w = args;
    clave_async_client *client = c->session->client;
    const char *node;
    clave_err err = w->guard->find_node(w->guard, &node);
    if (err != CLAVE_OK)
        return err;
    return w->single
               ? clave__fenced_write_one(client, node, w->ops, clave__call_on_result, c)
               : clave__fenced_write_multi(client, node, w->ops, w->nops, clave__call_on_result, c);
}

clave_err clave__guarded_write(const struct guard *g, const clave_op *op, int64_t timeout_ms,
                               clave_reply **out)
{
    struct guarded_write w = {.guard = g, .ops = op, .single = true};
    struct call_spec spec = {.begin = guarded_write_begin, .args = &w};
    spec.path = op->kind == CLAVE_OP_CREATE ? op->path : NULL;
    return clave__call(g->session, &spec, timeout_ms, out);
}

clave_err clave__guarded_multi(const struct guard *g, const clave_op *ops, size_t nops,
                               int64_t timeout_ms, clave_reply **out)
{
    struct guarded_write w = {.guard = g, .ops = ops, .nops = nops};
    struct call_spec spec = {.begin = guarded_write_begin, .args = &w, .nops = nops};
    return clave__call(g->session, &spec, timeout_ms, out);
}
