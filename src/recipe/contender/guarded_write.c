/* guarded_write.c - guarded writes. What must stay true: the first operations of the multi are the
 * checks of the nodes, and their results never reach the caller. */
#include "recipe/contender/guarded_write.h"

#include <stdint.h>
#include <string.h>

#include "client/client_for_recipes.h"

struct guarded_write {
    const struct clave_mem *mem;
    clave_result_cb *cb;
    void *arg;
    size_t nchecks; /* how many operations are not the caller's */
    bool kept;      /* as in the guard */
    bool single;    /* the caller requested a single operation, on `path` */
    char *path;     /* in the same block */
};

static bool guarded_write_lacks_node(const clave_result *res, size_t nchecks)
{
    for (size_t i = 0; i < nchecks && i < res->nops; i++)
        if (res->ops[i].err == CLAVE_ENONODE)
            return true;
    return false;
}

static void guarded_write_on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct guarded_write *g = arg;
    clave_result out = *res;
    bool has_ops = res->nops > g->nchecks;
    /* If a check failed with NoNode, the node is gone, and the grant with it. If the session
     * expired, or the request was never sent because the session had ended, the grant is gone too,
     * unless no session keeps it. */
    bool ended = res->err == CLAVE_EEXPIRED || res->err == CLAVE_ENOTSENT;
    if (guarded_write_lacks_node(res, g->nchecks) || (ended && !g->kept))
        out.err = CLAVE_ELOST;
    out.ops = has_ops ? res->ops + g->nchecks : NULL;
    out.nops = has_ops ? res->nops - g->nchecks : 0;
    if (g->single) {
        out.path = out.nops && out.ops[0].path ? out.ops[0].path : g->path;
        out.stat = out.nops ? out.ops[0].stat : NULL;
        out.ops = NULL;
        out.nops = 0;
    }
    if (g->cb)
        g->cb(c, &out, g->arg);
    clave__mem_free(g->mem, g);
}

static clave_err guarded_write_submit(clave_async_client *c, const char *const *nodes,
                                      const clave_op *ops, size_t nops, struct guarded_write model)
{
    const struct clave_mem *mem = clave__client_mem(c);
    size_t npath = model.single ? strlen(ops[0].path) + 1 : 0, n = model.nchecks;
    if (n > SIZE_MAX / sizeof *ops - nops)
        return CLAVE_ETOOBIG;
    struct guarded_write *g = clave__mem_alloc(mem, sizeof *g + npath);
    clave_op *all = clave__mem_alloc(mem, (n + nops) * sizeof *all);
    clave_err err = g && all ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK) {
        *g = model;
        g->mem = mem;
        g->path = (char *)(g + 1);
        if (npath)
            memcpy(g->path, ops[0].path, npath);
        for (size_t i = 0; i < n; i++)
            all[i] = (clave_op){.kind = CLAVE_OP_CHECK, .path = nodes[i], .version = -1};
        if (nops)
            memcpy(all + n, ops, nops * sizeof *ops);
        err = clave_async_multi(c, all, n + nops, guarded_write_on_done, g);
    }
    if (err != CLAVE_OK)
        clave__mem_free(mem, g);
    clave__mem_free(mem, all);
    return err;
}

clave_err clave__guarded_write_one(clave_async_client *c, struct write_guard guard,
                                   const clave_op *op, clave_result_cb *cb, void *arg)
{
    struct guarded_write model = {
        .cb = cb, .arg = arg, .nchecks = guard.n, .kept = guard.kept, .single = true};
    return guarded_write_submit(c, guard.nodes, op, 1, model);
}

clave_err clave__guarded_write_multi(clave_async_client *c, struct write_guard guard,
                                     const clave_op *ops, size_t nops, clave_result_cb *cb,
                                     void *arg)
{
    struct guarded_write model = {.cb = cb, .arg = arg, .nchecks = guard.n, .kept = guard.kept};
    return guarded_write_submit(c, guard.nodes, ops, nops, model);
}
