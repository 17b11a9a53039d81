/* reply.c - the answer of a call, copied out of the loop's thread (call.h). Memory for the answer
 * to a write is taken before the write is sent. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/blocking/call.h"

void clave_reply_free(clave_reply *r)
{
    if (!r)
        return;
    free(r->path);
    free(r->data);
    free(r->names);
    free(r->op_errs);
    free(r->acls);
    free(r);
}

clave_reply *clave__reply_new(size_t path_cap, size_t nops)
{
    clave_reply *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->path = path_cap > 0 ? calloc(1, path_cap) : NULL;
    r->op_errs = nops > 0 ? calloc(nops, sizeof *r->op_errs) : NULL;
    r->nops = nops;
    if ((path_cap > 0 && !r->path) || (nops > 0 && !r->op_errs)) {
        clave_reply_free(r);
        return NULL;
    }
    return r;
}

/* One block: the pointers, then the texts. */
static char **blocking_reply_copy_names(const char *const *names, size_t n)
{
    size_t bytes = n * sizeof *names;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(names[i]) + 1;
    char **copy = malloc(bytes > 0 ? bytes : 1);
    if (!copy)
        return NULL;
    char *at = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]) + 1;
        copy[i] = memcpy(at, names[i], len);
        at += len;
    }
    return copy;
}

/* Likewise: the entries, then the texts. */
static clave_acl *reply_copy_acls(const clave_acl *acls, size_t n)
{
    size_t bytes = n * sizeof *acls;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(acls[i].scheme) + strlen(acls[i].id) + 2;
    clave_acl *copy = malloc(bytes);
    if (!copy)
        return NULL;
    char *at = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        copy[i] = (clave_acl){.perms = acls[i].perms, .scheme = at};
        at = stpcpy(at, acls[i].scheme) + 1;
        copy[i].id = at;
        at = stpcpy(at, acls[i].id) + 1;
    }
    return copy;
}

clave_err clave__reply_fill(clave_reply *r, size_t path_cap, const clave_result *res)
{
    assert(!r->data && !r->names && !r->acls);
    assert(path_cap == 0 || r->path);
    r->err = res->err;
    if (res->path && strlen(res->path) < path_cap)
        strcpy(r->path, res->path);
    if (res->stat) {
        r->has_stat = true;
        r->stat = *res->stat;
    }
    r->nops = res->nops < r->nops ? res->nops : r->nops;
    for (size_t i = 0; i < r->nops; i++)
        r->op_errs[i] = res->ops[i].err;
    if (res->data) {
        r->data = malloc(res->len > 0 ? res->len : 1);
        if (!r->data)
            return r->err = CLAVE_ENOMEM;
        memcpy(r->data, res->data, res->len);
        r->len = res->len;
    }
    if (res->names) {
        r->names = blocking_reply_copy_names(res->names, res->nnames);
        if (r->names)
            r->nnames = res->nnames;
        else if (path_cap == 0) /* the Stat of a create may be missing, that of a read may not */
            return r->err = CLAVE_ENOMEM;
    }
    if (res->nacls > 0) {
        r->acls = reply_copy_acls(res->acls, res->nacls);
        if (!r->acls)
            return r->err = CLAVE_ENOMEM;
        r->nacls = res->nacls;
    }
    return res->err;
}
