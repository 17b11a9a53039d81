/* client_request.c - a single request: what it consists of (paths under the chroot, data, ACLs, the
 * operations of a multi), its bytes, and its answer, decoded into a clave_result. Nothing is
 * submitted here: pipeline.c owns a request from its submission to its callback. The text of a
 * failure is written by errmsg.c.
 *
 * What must stay true: everything that the answer to a write needs is in the one block in which the
 * request was allocated, so such an answer cannot fail for want of memory, and freeing cannot miss
 * a part. Texts that must end in a NUL are copied: final paths into room that the request has
 * reserved, names and ACLs in a reply to a read into c->decoded. */
#include "client/request/client_request.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"
#include "wire/opcode.h"

/* ---- paths and data -------------------------------------------------------------------------- */

clave_err clave__full_path(clave_async_client *c, const char *path, struct jbytes *out)
{
    const struct hosts *h = &c->hosts;
    bool root = strcmp(path, "/") == 0;
    clave__buf_clear(&c->path);
    clave_err err = clave__buf_append(&c->path, h->chroot, h->chroot_len);
    if (err == CLAVE_OK && !(root && h->chroot_len))
        err = clave__buf_append(&c->path, path, strlen(path));
    *out = clave__jbytes_n(clave__buf_bytes(&c->path), clave__buf_len(&c->path));
    return err;
}

clave_err clave__path_to_create(clave_async_client *c, const char *path, clave_create_mode mode,
                                struct jbytes *out)
{
    clave_err err = clave__full_path(c, path, out);
    if (err == CLAVE_OK && path[1] == '\0' && c->hosts.chroot_len &&
        clave__mode_is_sequential(mode))
        err = clave__buf_append(&c->path, "/", 1);
    *out = clave__jbytes_n(clave__buf_bytes(&c->path), clave__buf_len(&c->path));
    return err;
}

struct jbytes clave__strip_chroot(const clave_async_client *c, struct jbytes full)
{
    const struct hosts *h = &c->hosts;
    size_t n = h->chroot_len;
    if (full.n < 0 || (size_t)full.n < n || memcmp(full.p, h->chroot, n) != 0)
        return JBYTES_NULL;
    if (n == 0)
        return full;
    if ((size_t)full.n == n)
        return clave__jbytes("/");
    return full.p[n] == '/' ? clave__jbytes_n(full.p + n, (size_t)full.n - n) : JBYTES_NULL;
}

clave_err clave__encode_check(clave_async_client *c, const char *path, bool sequential)
{
    if (c->session.closing || c->session.state == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    const char *fault = path ? clave__path_fault(path, strlen(path), sequential) : "is missing";
    if (!fault)
        return CLAVE_OK;
    clave__client_fault(c, "the path \"%s\" is not valid: %s", path ? path : "", fault);
    return CLAVE_EPATH;
}

clave_err clave__encode_too_big(clave_async_client *c, const char *path)
{
    char shown[PATH_SHOWN_CAP];
    clave__client_fault_of(c, CLAVE_ETOOBIG, "",
                           "the request for %s is larger than the %zu bytes of one frame",
                           clave__path_shown(path, shown), c->max_frame);
    return CLAVE_ETOOBIG;
}

clave_err clave__encode_data(clave_async_client *c, const char *path, const void *data, size_t len,
                             struct jbytes *out)
{
    if (len > c->max_frame)
        return clave__encode_too_big(c, path);
    *out = data ? clave__jbytes_n(data, len) : JBYTES_NULL;
    return CLAVE_OK;
}

/* ---- ACLs ------------------------------------------------------------------------------------ */

size_t clave__acls_size(const clave_acl *acls, size_t n)
{
    size_t size = n * sizeof *acls;
    for (size_t i = 0; i < n; i++)
        size += strlen(acls[i].scheme) + strlen(acls[i].id) + 2;
    return size;
}

char *clave__acls_copy(clave_acl *to, const clave_acl *acls, size_t n)
{
    char *text = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        size_t nscheme = strlen(acls[i].scheme) + 1, nid = strlen(acls[i].id) + 1;
        to[i] = (clave_acl){acls[i].perms, text, text + nscheme};
        memcpy(text, acls[i].scheme, nscheme);
        memcpy(text + nscheme, acls[i].id, nid);
        text += nscheme + nid;
    }
    return text;
}

clave_err clave__encode_acls(clave_async_client *c, const clave_acl *acls, size_t n,
                             struct jvec *out)
{
    static const clave_acl open_acl = {CLAVE_PERM_ALL, "world", "anyone"};
    if (!acls) {
        acls = &open_acl;
        n = 1;
    }
    clave__buf_clear(&c->acls);
    struct jwriter w = clave__jwriter(&c->acls);
    for (size_t i = 0; i < n; i++) {
        struct wire_acl a = {acls[i].perms, clave__jbytes(acls[i].scheme),
                             clave__jbytes(acls[i].id)};
        clave__wire_put_acl(&w, &a);
    }
    *out = (struct jvec){(int32_t)n, clave__buf_bytes(&c->acls), clave__buf_len(&c->acls)};
    return w.err;
}

/* ---- multi ----------------------------------------------------------------------------------- */

static bool encode_op_is_possible(const clave_op *op)
{
    bool ttl = op->mode == CLAVE_PERSISTENT_TTL || op->mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
    return op->kind != CLAVE_OP_CREATE ||
           (op->mode <= CLAVE_PERSISTENT_SEQUENTIAL_TTL && (ttl ? op->ttl_ms > 0 : !op->ttl_ms));
}

/* The variant of create to use inside a multi: every server accepts this one there, and Curator
 * sends it as well. */
static int32_t encode_create_part(clave_create_mode mode)
{
    if (mode == CLAVE_CONTAINER)
        return OP_CREATE_CONTAINER;
    return mode > CLAVE_CONTAINER ? OP_CREATE_TTL : OP_CREATE;
}

static clave_err encode_put_op(clave_async_client *c, struct jwriter *w, const clave_op *op)
{
    struct jbytes path, data = JBYTES_NULL;
    struct wire_op out = {0};
    clave_create_mode mode = op->kind == CLAVE_OP_CREATE ? op->mode : CLAVE_PERSISTENT;
    clave_err err = clave__path_to_create(c, op->path, mode, &path);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, op->path, op->data, op->len, &data);
    switch (op->kind) {
    case CLAVE_OP_CREATE:
        out.op = encode_create_part(op->mode);
        out.body.create = (struct wire_create){
            .path = path, .data = data, .flags = (int32_t)op->mode, .ttl_ms = op->ttl_ms};
        if (err == CLAVE_OK)
            err = clave__encode_acls(c, op->acls, op->nacls, &out.body.create.acl);
        break;
    case CLAVE_OP_SET:
        out.op = OP_SET_DATA;
        out.body.set = (struct wire_set_data){path, data, op->version};
        break;
    case CLAVE_OP_DELETE:
    case CLAVE_OP_CHECK:
        out.op = op->kind == CLAVE_OP_DELETE ? OP_DELETE : OP_CHECK;
        out.body.check = (struct wire_path_version){path, op->version};
        break;
    default:
        return CLAVE_EINVAL;
    }
    if (err == CLAVE_OK)
        clave__wire_put_op(w, &out);
    return err;
}

/* Encodes the operations into c->multi. */
static clave_err encode_ops(clave_async_client *c, const clave_op *ops, size_t nops,
                            struct wire_ops *out)
{
    clave__buf_clear(&c->multi);
    struct jwriter w = clave__jwriter(&c->multi);
    for (size_t i = 0; i < nops; i++) {
        bool sequential = ops[i].kind == CLAVE_OP_CREATE && clave__mode_is_sequential(ops[i].mode);
        clave_err err = encode_op_is_possible(&ops[i])
                            ? clave__encode_check(c, ops[i].path, sequential)
                            : CLAVE_EINVAL;
        if (err == CLAVE_OK)
            err = encode_put_op(c, &w, &ops[i]);
        if (err)
            return err;
    }
    clave__wire_put_ops_end(&w);
    *out = (struct wire_ops){(int32_t)nops, clave__buf_bytes(&c->multi), clave__buf_len(&c->multi)};
    return w.err;
}

clave_err clave__encode_multi(clave_async_client *c, struct request_spec *spec,
                              union wire_body *body)
{
    clave_err err = clave__encode_check(c, "/", false);
    if (err == CLAVE_OK)
        err = encode_ops(c, spec->ops, spec->nops, &body->multi);
    spec->op = OP_MULTI;
    spec->path = spec->nops ? spec->ops[0].path : "/";
    return err;
}

/* ---- requests that bypass the pipeline ------------------------------------------------------- */

clave_err clave__unqueued_request_put(clave_async_client *c, const struct wire_request *q)
{
    assert(clave__link_is_open(&c->link));
    struct jwriter w = clave__jwriter(&c->link.out);
    size_t begin = clave__frame_begin(&w);
    clave__wire_put_request(&w, q);
    clave_err err = clave__frame_end(&w, begin);
    if (err != CLAVE_OK)
        return err;
    c->link.wrote = c->base.now;
    if (q->op >= 0) /* closeSession has a negative opcode and is not counted */
        c->pipeline.counts[clave__client_opcode_place(q->op)]++;
    return CLAVE_OK;
}

/* ---- making and freeing a request ------------------------------------------------------------ */

/* Encodes the body as a frame in c->encode; its xid is filled in when the request is sent. */
static clave_err client_request_encode(clave_async_client *c, const struct request_spec *spec,
                                       const union wire_body *body)
{
    struct wire_request q = {.xid = 0, .op = spec->op};
    if (body)
        q.body = *body;
    clave__buf_clear(&c->encode);
    struct jwriter w = clave__jwriter(&c->encode);
    size_t begin = clave__frame_begin(&w);
    clave__wire_put_request(&w, &q);
    return clave__frame_end(&w, begin);
}

static size_t request_created_room(const clave_async_client *c, const char *path)
{
    return strlen(path) + c->hosts.chroot_len + SEQUENCE_ROOM + 1;
}

/* Allocates one block for the request, the results of operations, Stats, the names of nodes that
 * operations create, the path, and the frame. */
static struct request *request_alloc(clave_async_client *c, const struct request_spec *spec,
                                     size_t frame)
{
    assert(spec->path);
    size_t npath = strlen(spec->path) + 1;
    bool creates = clave__opcode(spec->op)->effect == EFFECT_CREATE;
    size_t created = creates ? request_created_room(c, spec->path) : 0;
    size_t nops = spec->ops ? spec->nops : 0;
    size_t names = 0;
    for (size_t i = 0; i < nops; i++)
        if (spec->ops[i].kind == CLAVE_OP_CREATE)
            names += request_created_room(c, spec->ops[i].path);
    const size_t head = (sizeof(struct request) + 7) & ~(size_t)7;
    size_t size = head + nops * sizeof(clave_op_result) + nops * sizeof(clave_stat) + names +
                  created + npath + frame;
    char *at = clave__mem_alloc(&c->base.mem, size);
    if (!at)
        return NULL;
    struct request *r = (struct request *)(void *)at;
    *r = (struct request){.created_cap = created + names, .nops = spec->nops, .frame_len = frame};
    at += head;
    r->ops = (clave_op_result *)(void *)at;
    at += nops * sizeof *r->ops;
    r->stats = (clave_stat *)(void *)at;
    at += nops * sizeof *r->stats;
    r->created = at;
    at += created + names;
    r->path = at;
    memcpy(r->path, spec->path, npath);
    r->frame = (uint8_t *)at + npath;
    return r;
}

bool clave__mode_is_sequential(clave_create_mode mode)
{
    return mode == CLAVE_PERSISTENT_SEQUENTIAL || mode == CLAVE_EPHEMERAL_SEQUENTIAL ||
           mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
}

/* Notes what the request is for, by which a refusal by the server can be explained. */
static void request_note_purpose(struct request *r, const struct request_spec *spec,
                                 const union wire_body *body)
{
    r->watches = spec->watch || spec->op == OP_ADD_WATCH;
    if (clave__opcode(spec->op)->effect == EFFECT_CREATE) {
        r->creates = true;
        r->sequential = clave__mode_is_sequential((clave_create_mode)body->create.flags);
    }
    for (size_t i = 0; spec->ops && i < spec->nops; i++) {
        bool creates = spec->ops[i].kind == CLAVE_OP_CREATE;
        r->creates |= creates;
        r->sequential |= creates && clave__mode_is_sequential(spec->ops[i].mode);
    }
}

clave_err clave__request_new(clave_async_client *c, const struct request_spec *spec,
                             const union wire_body *body, struct request **out)
{
    clave_err err = client_request_encode(c, spec, body);
    if (err)
        return err;
    struct request *r = request_alloc(c, spec, clave__buf_len(&c->encode));
    if (!r)
        return CLAVE_ENOMEM;
    list_init(&r->link);
    clave__timer_init(&r->pause, NULL);
    r->client = c;
    r->op = spec->op;
    r->again = spec->again;
    if (r->again == AGAIN_BY_OPCODE) /* nothing else decides which requests may be sent twice */
        r->again = clave__opcode(spec->op)->flags & OPCODE_WRITE ? AGAIN_NEVER : AGAIN_BY_POLICY;
    r->vouched = HOLD_DEADLINE_NONE;
    r->quiet = spec->quiet;
    r->claims = spec->claims;
    r->raw = spec->raw;
    r->place = (uint8_t)spec->place;
    request_note_purpose(r, spec, body);
    r->cb = spec->cb;
    r->arg = spec->arg;
    memcpy(r->frame, clave__buf_bytes(&c->encode), r->frame_len);
    *out = r;
    return CLAVE_OK;
}

void clave__request_answer(struct request *r, const clave_result *res)
{
    /* Without an answer, the fault that the link has set is more specific. */
    if (res->err != CLAVE_OK && r->err == CLAVE_OK)
        clave__request_tell(r, res->err, res);
    if (r->cb)
        r->cb(r->client, res, r->arg);
    assert(list_empty(&r->link) && !r->watch);
    clave__timers_clear(&r->client->base.timers, &r->pause);
    clave__mem_free(&r->client->base.mem, r);
}

/* ---- decoding the answer --------------------------------------------------------------------- */

static clave_stat reply_stat(const struct wire_stat *s)
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

/* Copies a final path into the room that the request reserved, after the *used bytes already taken.
 * NULL: it does not fit. */
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
        r->stats[i] = reply_stat(&w->reply.stat);
        res.stat = &r->stats[i];
    }
    return res;
}

/* The reply header of a failed multi reports success; the error is in the results of its
 * operations. */
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

/* Checks the results of a multiRead. The caller decodes them later, one at a time. */
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
        w = (struct wire_result){.err = CLAVE_EPROTO}; /* there are as many as were asked for */
    out->err = (clave_err)w.err;
    *stat = reply_stat(&w.reply.stat);
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

/* Room for n decoded bytes at the beginning of c->decoded. It is never empty, so there is always
 * something to point to, even if nothing is decoded. */
static void *reply_decoding_room(clave_async_client *c, size_t n)
{
    clave__buf_clear(&c->decoded);
    return clave__buf_reserve(&c->decoded, n + 1) ? NULL : clave__buf_bytes(&c->decoded);
}

/* Decodes names into an array of pointers followed by the texts they point to. */
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
        *stat = reply_stat(&m.stat);
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
