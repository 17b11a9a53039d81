/* request.c - making, answering and failing one request; see request.h. The pipeline owns a request
 * from clave__pipeline_submit to its callback. Everything is one block, so freeing cannot forget a
 * part. */
#include "client/request/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
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

/* For messages: "cannot VERB PATH". */
static const char *request_verb_of(int32_t op)
{
    static const char *const verbs[] = {
        [OP_CREATE] = "create",
        [OP_CREATE2] = "create",
        [OP_CREATE_CONTAINER] = "create",
        [OP_CREATE_TTL] = "create",
        [OP_DELETE] = "delete",
        [OP_EXISTS] = "look up",
        [OP_GET_DATA] = "read",
        [OP_SET_DATA] = "write",
        [OP_CHECK] = "check",
        [OP_GET_ACL] = "read the ACL of",
        [OP_SET_ACL] = "set the ACL of",
        [OP_GET_CHILDREN2] = "list",
        [OP_SYNC] = "sync",
        [OP_ADD_WATCH] = "watch",
    };
    bool known = op >= 0 && (size_t)op < sizeof verbs / sizeof *verbs && verbs[op];
    return known ? verbs[op] : "change";
}

/* ---- what a refusal may mean ----------------------------------------------------------------- */

/* The protocol has one code for all arguments that a server refuses. The client has looked at the
 * path itself, so a bound of the server is the likely reason; only its log knows which. */
enum { ADVICE_CAP = 300 };

static void request_advise_about_create(const struct request *r, char out[ADVICE_CAP])
{
    const char *numbers = r->sequential ? "; or the parent's sequence numbers are used up" : "";
    const char *chroot = r->raw ? "" : r->client->hosts.chroot;
    size_t digits = r->sequential ? SEQUENCE_ROOM - 1 : 0, depth = 0;
    if (r->nops > 0) {
        snprintf(out, ADVICE_CAP,
                 "a name, path or depth that it creates may be beyond the server's limits (clave "
                 "serve --max-name, --max-path, --max-depth)%s; the server's log says which",
                 numbers);
        return;
    }
    for (const char *p = chroot; *p; p++)
        depth += *p == '/';
    for (const char *p = r->path; *p; p++)
        depth += *p == '/';
    snprintf(out, ADVICE_CAP,
             "a name of %zu bytes, a path of %zu, or a depth of %zu may be beyond the server's "
             "limits (clave serve --max-name, --max-path, --max-depth)%s%s; the server's log says "
             "which",
             strlen(clave__path_name(r->path)) + digits, strlen(chroot) + strlen(r->path) + digits,
             depth, r->op == OP_CREATE_TTL ? ", or the time to live" : "", numbers);
}

static void request_advise_about_watch(const struct request *r, char out[ADVICE_CAP])
{
    snprintf(out, ADVICE_CAP,
             "the server may have no room for another watch (clave serve "
             "--max-connection-watches, --max-watches), or none for a path of %zu bytes "
             "(--max-path); its log says which",
             strlen(r->path) + (r->raw ? 0 : r->client->hosts.chroot_len));
}

/* Whether the server may have refused to send the answer: it has no code of its own for that. */
static bool request_answer_is_too_long(const struct request *r, clave_err err)
{
    const struct opcode *op = clave__opcode(r->op);
    bool tells = op->reply & (REPLY_DATA | REPLY_NAMES | REPLY_RESULTS);
    return err == CLAVE_EMARSHALLING && tells && !(op->flags & OPCODE_WRITE);
}

/* What follows the text of the error; "" where that says everything. */
static void request_advise(const struct request *r, clave_err err, char out[ADVICE_CAP])
{
    out[0] = '\0';
    if (err == CLAVE_EBADARGS && r->creates)
        request_advise_about_create(r, out);
    else if (err == CLAVE_EBADARGS && r->watches)
        request_advise_about_watch(r, out);
    else if (err == CLAVE_EQUOTA)
        snprintf(out, ADVICE_CAP,
                 "the quotas of this path and of those above it are below /zookeeper/quota");
    else if (request_answer_is_too_long(r, err))
        snprintf(
            out, ADVICE_CAP,
            "the server does not send an answer this long (clave serve --max-answer), or could "
            "not read the request");
}

const char *clave__path_shown(const char *path, char out[PATH_SHOWN_CAP])
{
    size_t n = strlen(path);
    bool whole = n <= PATH_SHOWN;
    n = whole ? n : PATH_SHOWN;
    while (!whole && n > 0 && ((unsigned char)path[n] & 0xc0) == 0x80)
        n--; /* no character of UTF-8 is cut */
    snprintf(out, PATH_SHOWN_CAP, "%.*s%s", (int)n, path, whole ? "" : "...");
    return out;
}

/* Whether clave_async_client_errmsg shall say it. */
static bool request_is_fault(const struct request *r, clave_err err)
{
    if (r->place == CREATE_BELOW && err == CLAVE_ENONODE)
        return false;
    return !r->quiet;
}

enum { FRAME_LENGTH = 4 }; /* bytes before the request itself */

/* Of a multi, the operation that failed; where the server has told of none, the last: with a guard
 * the first is a check that the caller has not asked for. */
static struct wire_op request_failed_op(const struct request *r, const clave_result *res)
{
    struct jreader whole = clave__jreader(r->frame + FRAME_LENGTH, r->frame_len - FRAME_LENGTH);
    struct wire_request q = clave__wire_get_request(&whole);
    struct jreader ops = clave__wire_ops_reader(&q.body.multi);
    struct wire_op op = {.op = r->op};
    for (size_t i = 0; clave__wire_get_op(&ops, &op); i++)
        if (i < res->nops && res->ops[i].err != CLAVE_OK)
            break;
    return op;
}

/* Its path as the caller gave it, if need be with dots in place of what is cut. */
static void request_show_op(const struct request *r, const struct wire_op *op,
                            char out[PATH_SHOWN_CAP])
{
    char path[PATH_SHOWN + 2] = "/";
    size_t skip = r->raw ? 0 : r->client->hosts.chroot_len, n = (size_t)op->body.path.n;
    if (n > skip) {
        n = n - skip < sizeof path - 1 ? n - skip : sizeof path - 1;
        memcpy(path, op->body.path.p + skip, n);
        path[n] = '\0';
    }
    clave__path_shown(path, out);
}

/* `res` may be NULL. */
static void request_tell(const struct request *r, clave_err err, const clave_result *res)
{
    char advice[ADVICE_CAP], path[PATH_SHOWN_CAP], before[CLIENT_FAULT_CAP];
    bool alone = request_answer_is_too_long(r, err);
    int32_t op = r->op;
    if (r->place == CREATE_ANCESTOR)
        return;
    request_advise(r, err, advice);
    if (!advice[0] && !request_is_fault(r, err))
        return; /* who reaches a bound has to hear of it, whoever sent the request */
    clave__path_shown(r->path, path);
    if (res && op == OP_MULTI && r->nops > 0) {
        struct wire_op failed = request_failed_op(r, res);
        op = failed.op;
        request_show_op(r, &failed, path);
    }
    snprintf(before, sizeof before, "cannot %s %s: %s%s", request_verb_of(op), path,
             alone ? "" : clave_strerror(err), advice[0] && !alone ? ": " : "");
    clave__client_fault_of(r->client, err, before, "%s", advice);
}

void clave__request_tell_ancestor(clave_async_client *c, char *path, clave_err err)
{
    struct request r = {
        .client = c, .op = OP_CREATE_CONTAINER, .path = path, .raw = true, .creates = true};
    request_tell(&r, err, NULL);
}

void clave__request_answer(struct request *r, const clave_result *res)
{
    /* Without an answer, the fault that the link has set says more. */
    if (res->err != CLAVE_OK && r->err == CLAVE_OK)
        request_tell(r, res->err, res);
    if (r->cb)
        r->cb(r->client, res, r->arg);
    clave__request_free(r);
}
