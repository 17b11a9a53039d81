/* request.c - making, answering and failing one request; see request.h. The pipeline owns a request
 * from clave__pipeline_submit to its callback. Everything is one block, so freeing cannot forget a
 * part. What a failure is told as is in request_errmsg.c. */
#include "client/request/request.h"

#include <assert.h>
#include <string.h>

#include "client/client_internal.h"
#include "wire/opcode.h"

/* Encodes the body as a frame in c->encode; the xid is filled in when the request is sent. */
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

static size_t request_align(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static size_t request_created_room(const clave_async_client *c, const char *path)
{
    return strlen(path) + c->hosts.chroot_len + SEQUENCE_ROOM + 1;
}

/* Allocates one block: the request, op results, Stats, the names that ops create, the path, the
 * frame. */
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
    size_t size = request_align(sizeof(struct request)) + nops * sizeof(clave_op_result) +
                  nops * sizeof(clave_stat) + names + created + npath + frame;
    char *at = clave__mem_alloc(&c->mem, size);
    if (!at)
        return NULL;
    struct request *r = (struct request *)(void *)at;
    *r = (struct request){.created_cap = created + names, .nops = spec->nops, .frame_len = frame};
    at += request_align(sizeof *r);
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

/* The one place that knows which requests may be done twice. */
static enum request_again request_again_of(int32_t op)
{
    return clave__opcode(op)->flags & OPCODE_WRITE ? AGAIN_NEVER : AGAIN_BY_POLICY;
}

bool clave__mode_is_sequential(clave_create_mode mode)
{
    return mode == CLAVE_PERSISTENT_SEQUENTIAL || mode == CLAVE_EPHEMERAL_SEQUENTIAL ||
           mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
}

/* What a refusal by the server may be about. */
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
    r->again = spec->again != AGAIN_BY_OPCODE ? spec->again : request_again_of(spec->op);
    r->vouched = HOLD_DEADLINE_NONE;
    r->quiet = spec->quiet;
    r->raw = spec->raw;
    r->place = (uint8_t)spec->place;
    request_note_purpose(r, spec, body);
    r->cb = spec->cb;
    r->arg = spec->arg;
    memcpy(r->frame, clave__buf_bytes(&c->encode), r->frame_len);
    *out = r;
    return CLAVE_OK;
}

void clave__request_free(struct request *r)
{
    assert(list_empty(&r->link) && !r->watch);
    clave__timers_clear(&r->client->timers, &r->pause);
    clave__mem_free(&r->client->mem, r);
}

void clave__request_answer(struct request *r, const clave_result *res)
{
    /* Without an answer, the fault that the link has set says more. */
    if (res->err != CLAVE_OK && r->err == CLAVE_OK)
        clave__request_tell(r, res->err, res);
    if (r->cb)
        r->cb(r->client, res, r->arg);
    clave__request_free(r);
}
