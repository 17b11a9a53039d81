/* guard.c - see guard.h. */
#include "cmd/znodes/guard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/diag.h"

const char *guard_node(struct options *o)
{
    const char *node = getenv("CLAVE_NODE");
    if (!node || !*node) {
        diag_usage(o, "--guard works only in a command run by 'clave lock', which sets CLAVE_NODE");
        return NULL;
    }
    if (clave__path_fault(node, strlen(node), false)) {
        diag_usage(o, "--guard: CLAVE_NODE '%s' is not the path of a lock node", node);
        return NULL;
    }
    return node;
}

/* Finds the error that counts: that of the first operation that failed. The operations before it
 * have no error. If it is the guard's check, the lock is lost. */
static clave_err guard_culprit(const clave_reply *r, clave_err err)
{
    if (!r || r->nops == 0)
        return err;
    if (r->op_errs[0] == CLAVE_ENONODE)
        return CLAVE_ELOST;
    for (size_t i = 0; i < r->nops; i++)
        if (r->op_errs[i] != CLAVE_OK)
            return r->op_errs[i];
    return err;
}

clave_err guard_multi(clave_client *c, const char *node, const clave_op *ops, size_t nops,
                      int64_t timeout_ms)
{
    clave_op all[GUARDED_WRITE_MAX_OPS + 1] = {
        {.kind = CLAVE_OP_CHECK, .path = node, .version = -1}};
    clave_reply *r = NULL;
    if (nops > GUARDED_WRITE_MAX_OPS)
        return CLAVE_EINVAL;
    memcpy(all + 1, ops, nops * sizeof *ops);
    clave_err err = clave_multi(c, all, nops + 1, timeout_ms, &r);
    if (err != CLAVE_OK)
        err = guard_culprit(r, err);
    clave_reply_free(r);
    return err;
}

/* Finds the missing ancestors of the path: `ends` gets the lengths of their paths, the topmost
 * first. EINVAL: there are more than `max`. */
static clave_err guard_missing_ancestors(clave_client *c, char *path, int64_t timeout_ms,
                                         size_t *ends, size_t max, size_t *count)
{
    size_t n = clave__path_parent_len(path, strlen(path));
    *count = 0;
    for (; n > 1; n = clave__path_parent_len(path, n)) {
        path[n] = '\0';
        clave_err err = clave_exists(c, path, timeout_ms, NULL);
        path[n] = '/';
        if (err == CLAVE_OK)
            return CLAVE_OK;
        if (err != CLAVE_ENONODE)
            return err;
        if (*count == max)
            return CLAVE_EINVAL;
        memmove(ends + 1, ends, *count * sizeof *ends);
        ends[0] = n;
        ++*count;
    }
    return CLAVE_OK;
}

/* One attempt of guard_create_deep. *is_alone says that no ancestor was missing; otherwise
 * ENODEEXISTS may be about an ancestor that another client has created in the meantime. */
static clave_err guard_try_create_deep(clave_client *c, const char *node, const clave_op *op,
                                       char *path, int64_t timeout_ms, bool *is_alone)
{
    size_t ends[GUARDED_WRITE_MAX_OPS - 1], n;
    clave_op ops[GUARDED_WRITE_MAX_OPS];
    char *names[GUARDED_WRITE_MAX_OPS - 1] = {NULL};
    clave_err err =
        guard_missing_ancestors(c, path, timeout_ms, ends, GUARDED_WRITE_MAX_OPS - 1, &n);
    if (err != CLAVE_OK)
        return err;
    for (size_t i = 0; i < n && err == CLAVE_OK; i++) {
        names[i] = strndup(path, ends[i]);
        if (!names[i])
            err = CLAVE_ENOMEM;
        ops[i] = (clave_op){.kind = CLAVE_OP_CREATE, .path = names[i], .mode = CLAVE_PERSISTENT};
    }
    assert(n < GUARDED_WRITE_MAX_OPS);
    ops[n] = *op;
    *is_alone = n == 0;
    if (err == CLAVE_OK)
        err = guard_multi(c, node, ops, n + 1, timeout_ms);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    return err;
}

clave_err guard_create_deep(clave_client *c, const char *node, const clave_op *op,
                            int64_t timeout_ms)
{
    enum { TRIES = 8 };
    bool is_alone = false;
    clave_err err = CLAVE_ENODEEXISTS;
    char *path = strdup(op->path);
    if (!path)
        return CLAVE_ENOMEM;
    for (int i = 0; i < TRIES; i++) {
        err = guard_try_create_deep(c, node, op, path, timeout_ms, &is_alone);
        bool raced = (err == CLAVE_ENODEEXISTS && !is_alone) || err == CLAVE_ENONODE;
        if (!raced)
            break;
    }
    free(path);
    return err;
}

int guard_tell(struct options *o, const char *path, clave_err err, clave_client *c)
{
    if (err != CLAVE_ELOST)
        return diag_err(o, path, err, c);
    return diag_end(o, path, EXIT_LOST,
                    "not written: the lock node %s is gone, so the lock was lost",
                    getenv("CLAVE_NODE"));
}
