/* reply.c - turns the body of a successful reply into a clave_result. Texts that must end in a NUL
 * are copied: final paths into room that their request reserved, so that the answer to a write
 * needs no memory; names and ACLs of a reply to a read into c->decoded. */
#include <assert.h>
#include <string.h>

#include "client/client_internal.h"
#include "client/request/encode.h"
#include "wire/opcode.h"

clave_stat clave__stat_of(const struct wire_stat *s)
{
    return (clave_stat){
        .czxid = s->czxid,
        .mzxid = s->mzxid,
        .ctime = s->ctime,
        .mtime = s->mtime,
        .version = s->version,
        .cversion = s->cversion,
        .aversion = s->aversion,
        .ephemeral_owner = s->ephemeral_owner,
        .data_length = s->data_length,
        .num_children = s->num_children,
        .pzxid = s->pzxid,
    };
}

static void reply_data(const struct wire_reply *m, clave_result *out)
{
    out->data = m->data.n >= 0 ? m->data.p : NULL;
    out->len = m->data.n > 0 ? (size_t)m->data.n : 0;
}

/* Copies a final path to the request's room, after the `*used` bytes already taken. NULL: it does
 * not fit. */
static const char *reply_keep_path(struct request *r, struct jbytes full, size_t *used)
{
    assert(*used <= r->created_cap);
    struct jbytes path = r->raw ? full : clave__strip_chroot(r->client, full);
    if (path.n < 0 || (size_t)path.n + 1 > r->created_cap - *used)
        return NULL;
    char *at = r->created + *used;
    memcpy(at, path.p, (size_t)path.n);
    at[path.n] = '\0';
    *used += (size_t)path.n + 1;
    return at;
}

static clave_op_result reply_op_result(struct request *r, const struct wire_result *w, size_t i,
                                       size_t *used)
{
    const struct opcode *op = clave__opcode(w->op);
    clave_op_result res = {.err = (clave_err)w->err};
    if (op->effect == EFFECT_CREATE)
        res.path = reply_keep_path(r, w->reply.path, used);
    if (op->reply & REPLY_STAT) {
        r->stats[i] = clave__stat_of(&w->reply.stat);
        res.stat = &r->stats[i];
    }
    return res;
}

/* The reply header of a failed multi says success; the results of its ops have the error. */
static clave_err reply_decode_multi(struct request *r, const struct wire_ops *results,
                                    clave_result *out)
{
    struct jreader reader = clave__wire_ops_reader(results);
    struct wire_result w;
    size_t n = 0, used = 0;
    if (results->count < 0 || (size_t)results->count != r->nops)
        return CLAVE_EPROTO;
    while (n < r->nops && clave__wire_get_result(&reader, &w)) {
        r->ops[n] = reply_op_result(r, &w, n, &used);
        if (clave__opcode(w.op)->effect == EFFECT_CREATE && !r->ops[n].path)
            return CLAVE_EPROTO;
        if (out->err == CLAVE_OK)
            out->err = r->ops[n].err;
        n++;
    }
    out->ops = r->ops;
    out->nops = n;
    return n == r->nops ? CLAVE_OK : CLAVE_EPROTO;
}

/* Of a multiRead: they are decoded one at a time, by the caller. */
static clave_err reply_keep_gets(const struct request *r, const struct wire_ops *results,
                                 clave_result *out)
{
    out->data = results->p;
    out->len = results->n;
    return results->count >= 0 && (size_t)results->count == r->nops ? CLAVE_OK : CLAVE_EPROTO;
}

struct jreader clave__client_gets_reader(const clave_result *res)
{
    return clave__jreader(res->data, res->len);
}

void clave__client_gets_take(struct jreader *r, clave_result *out, clave_stat *stat)
{
    struct wire_result w;
    if (!clave__wire_get_result(r, &w) || (w.err == CLAVE_OK && w.op != OP_GET_DATA))
        w = (struct wire_result){.err = CLAVE_EPROTO}; /* as many as were asked for were found */
    out->err = (clave_err)w.err;
    *stat = clave__stat_of(&w.reply.stat);
    out->stat = w.err == CLAVE_OK ? stat : NULL;
    reply_data(&w.reply, out);
}

static char *client_reply_put_text(char *at, struct jbytes s)
{
    size_t n = s.n > 0 ? (size_t)s.n : 0;
    if (n)
        memcpy(at, s.p, n);
    at[n] = '\0';
    return at + n + 1;
}

/* Room for n decoded bytes, from the beginning of c->decoded. It is never empty, so that there is
 * something to point to even when nothing is decoded. */
static void *reply_decoding_room(clave_async_client *c, size_t n)
{
    clave__buf_clear(&c->decoded);
    return clave__buf_reserve(&c->decoded, n + 1) ? NULL : clave__buf_bytes(&c->decoded);
}

/* An array of pointers, then the texts they point to. */
static clave_err reply_decode_names(clave_async_client *c, struct jvec names, clave_result *out)
{
    size_t count = names.count > 0 ? (size_t)names.count : 0;
    const char **list = reply_decoding_room(c, count * sizeof(char *) + names.n + count);
    if (!list)
        return CLAVE_ENOMEM;
    char *text = (char *)(list + count);
    struct jreader r = clave__jvec_reader(names);
    for (size_t i = 0; i < count; i++) {
        list[i] = text;
        text = client_reply_put_text(text, clave__jget_bytes(&r));
    }
    out->names = list;
    out->nnames = count;
    return CLAVE_OK;
}

static clave_err reply_decode_acls(clave_async_client *c, struct jvec acls, clave_result *out)
{
    size_t count = acls.count > 0 ? (size_t)acls.count : 0;
    clave_acl *list = reply_decoding_room(c, count * (sizeof(clave_acl) + 2) + acls.n);
    if (!list)
        return CLAVE_ENOMEM;
    char *text = (char *)(list + count);
    struct jreader r = clave__jvec_reader(acls);
    for (size_t i = 0; i < count; i++) {
        struct wire_acl a = clave__wire_get_acl(&r);
        list[i] = (clave_acl){.perms = a.perms, .scheme = text};
        text = client_reply_put_text(text, a.scheme);
        list[i].id = text;
        text = client_reply_put_text(text, a.id);
    }
    out->acls = list;
    out->nacls = count;
    return CLAVE_OK;
}

clave_err clave__reply_decode(struct request *r, struct jreader *body, clave_result *out,
                              clave_stat *stat)
{
    assert(out->err == CLAVE_OK);
    const struct opcode *op = clave__opcode(r->op);
    struct wire_reply m = clave__wire_get_reply(body, r->op);
    size_t used = 0;
    if (body->bad)
        return CLAVE_EPROTO;
    if (op->reply & REPLY_STAT) {
        *stat = clave__stat_of(&m.stat);
        out->stat = stat;
    }
    if (op->reply & REPLY_DATA)
        reply_data(&m, out);
    if (op->effect == EFFECT_CREATE) {
        out->path = reply_keep_path(r, m.path, &used);
        return out->path ? CLAVE_OK : CLAVE_EPROTO;
    }
    if (op->reply & REPLY_NAMES)
        return reply_decode_names(r->client, m.names, out);
    if (op->reply & REPLY_ACL)
        return reply_decode_acls(r->client, m.acl, out);
    if (r->op == OP_MULTI_READ)
        return reply_keep_gets(r, &m.results, out);
    if (op->reply & REPLY_RESULTS)
        return reply_decode_multi(r, &m.results, out);
    return CLAVE_OK;
}
