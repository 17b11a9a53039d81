/* errmsg.c - the latest fault of a client (errmsg.h), which clave_async_client_errmsg returns: what
 * was tried, on which path, why it failed, and what to do about it. The text for a failed request
 * is composed from its opcode and its error with the tables here; where the link knows a better
 * reason, it sets that. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/sized_options.h"
#include "client/client_internal.h"
#include "client/request/client_request.h"
#include "wire/opcode.h"

static void errmsg_set(clave_async_client *c, const char *before, const char *fmt, va_list args)
{
    struct client_fault *f = &c->fault;
    int n = snprintf(f->text, sizeof f->text, "%s", before);
    f->detail = n < (int)sizeof f->text ? (size_t)n : sizeof f->text - 1;
    vsnprintf(f->text + f->detail, sizeof f->text - f->detail, fmt, args);
    c->fault_is_news = true;
    clave__log(&c->base.log, CLAVE_LOG_DEBUG, "%s", f->text);
}

void clave__client_fault(clave_async_client *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    errmsg_set(c, "", fmt, args);
    va_end(args);
    c->fault.err = CLAVE_OK;
}

void clave__client_fault_of(clave_async_client *c, clave_err err, const char *before,
                            const char *fmt, ...)
{
    va_list args;
    assert(err != CLAVE_OK);
    va_start(args, fmt);
    errmsg_set(c, before, fmt, args);
    va_end(args);
    c->fault.err = err;
}

const struct client_fault *clave__client_latest_fault(const clave_async_client *c)
{
    return &c->fault;
}

const char *clave__client_fault_detail(const struct client_fault *f, clave_err err)
{
    return err != CLAVE_OK && f->err == err ? f->text + f->detail : "";
}

const char *clave_async_client_errmsg(const clave_async_client *c)
{
    if (c->fault.text[0])
        return c->fault.text;
    switch (c->link.phase) {
    case LINK_HANDSHAKE:
        return "a server was connected to, but has not answered yet";
    case LINK_DIALLING:
    case LINK_SECURING:
        return "the attempt to connect has not been answered yet";
    case LINK_IDLE:
    case LINK_OPEN:
    case LINK_HANGUP:
        break;
    }
    return "no fault so far";
}

clave_err clave__client_take_options(clave_async_client *c, void *dst, size_t dst_size,
                                     const void *src, const char *name)
{
    const char *fault = clave__options_fault(dst_size, src);
    if (fault)
        clave__client_fault(c, "%s %s", name, fault);
    return clave__options_take(dst, dst_size, src);
}

/* ---- the failure of a request ---------------------------------------------------------------- */

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

/* ---- what a refusal can mean ----------------------------------------------------------------- */

/* The protocol has a single code for all arguments that a server refuses. The client has already
 * checked the path, so one of the server's limits is the likely reason. Only the server's log knows
 * which. */
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

/* True if the server may have refused to send the answer because of its length, for which it has no
 * code of its own. */
static bool request_answer_is_too_long(const struct request *r, clave_err err)
{
    const struct opcode *op = clave__opcode(r->op);
    bool tells = op->reply & (REPLY_DATA | REPLY_NAMES | REPLY_RESULTS);
    return err == CLAVE_EMARSHALLING && tells && !(op->flags & OPCODE_WRITE);
}

/* Writes what follows the text of the error; "" where that says everything. */
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
        n--; /* do not cut a character of UTF-8 */
    snprintf(out, PATH_SHOWN_CAP, "%.*s%s", (int)n, path, whole ? "" : "...");
    return out;
}

enum { FRAME_LENGTH = 4 }; /* bytes before the request itself */

/* The operation of a multi that failed. If the server has named none, the last one: in a guarded
 * write, the first is a check that the caller did not ask for. */
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

/* Writes the operation's path as the caller gave it, if necessary with dots for what was cut
 * off. */
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

void clave__request_tell(const struct request *r, clave_err err, const clave_result *res)
{
    char advice[ADVICE_CAP], path[PATH_SHOWN_CAP], before[CLIENT_FAULT_CAP];
    bool alone = request_answer_is_too_long(r, err);
    bool expected = r->quiet || (r->place == CREATE_BELOW && err == CLAVE_ENONODE);
    int32_t op = r->op;
    if (r->place == CREATE_ANCESTOR)
        return;
    request_advise(r, err, advice);
    if (!advice[0] && expected)
        return; /* hitting a limit is reported even if the client sent the request on its own */
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
    clave__request_tell(&r, err, NULL);
}
