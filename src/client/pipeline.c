/* pipeline.c - the public requests, from submission to answer. A request checks its arguments,
 * encodes itself (client_request.c) and waits in `unsent` until the link's output has room; then it
 * is in `sent` until its reply arrives. The bytes leave when the driver calls
 * clave_async_client_output, at the end of the loop's pass (uv_client_drive). A read whose
 * connection was lost may wait in `paused` to be sent again. driver_calls.c passes in the replies.
 * Operations made of several requests are in client_create.c and guaranteed_delete.c.
 *
 * What must stay true: replies come in the order of the requests (ZooKeeper's FIFO guarantee), so a
 * reply can only belong to the head of `sent`. A request that cannot be submitted returns an error
 * and never runs its callback; one that was submitted is answered exactly once. A write is never
 * sent a second time unless its last byte did not leave the first time. */
#include <assert.h>
#include <string.h>

#include "base/check.h"
#include "client/client_internal.h"
#include "wire/opcode.h"

/* At most OUT_AHEAD bytes are encoded ahead of a slow connection. */
enum { OUT_AHEAD = 64 * 1024, XID_AT = 4 };
/* The pause after more than MOST_CUTS cuts in a row. */
enum { CUT_PAUSE_MS = 100 };

static int32_t pipeline_xid_after(int32_t xid)
{
    return xid == INT32_MAX ? 1 : xid + 1; /* xids below 1 are reserved */
}

/* Checks that sent requests have consecutive xids, up to the newest one, apart from that of
 * closeSession, and that their frames are adjacent in the stream. */
static void pipeline_check(const clave_async_client *c)
{
    const struct pipeline *p = &c->pipeline;
    const struct request *last = NULL;
    size_t n = 0;
    for (struct list *l = p->sent.next; l != &p->sent && clave__check_is_due(n); l = l->next, n++) {
        const struct request *r = LIST_ENTRY(l, struct request, link);
        CHECK(r->client == c && r->xid > 0);
        CHECK(!last || (r->xid == pipeline_xid_after(last->xid) &&
                        r->sent_end >= last->sent_end + r->frame_len));
        last = r;
    }
    if (last && last->link.next == &p->sent)
        CHECK(p->xid == (p->close_sent ? pipeline_xid_after(last->xid) : last->xid));
}

void clave__pipeline_submit(clave_async_client *c, struct request *r)
{
    pipeline_check(c);
    list_push_back(&c->pipeline.unsent, &r->link);
    /* Moves it into the link's output if there is room; the driver's next _output takes it. */
    clave__pipeline_fill(c);
    pipeline_check(c);
}

/* ---- sending --------------------------------------------------------------------------------- */

static int32_t pipeline_next_xid(struct pipeline *p)
{
    p->xid = pipeline_xid_after(p->xid);
    return p->xid;
}

static clave_err pipeline_send_request(clave_async_client *c, struct request *r)
{
    assert(r->vouched == HOLD_DEADLINE_NONE);
    struct pipeline *p = &c->pipeline;
    struct link *l = &c->link;
    clave_err err = clave__buf_reserve(&l->out, r->frame_len);
    if (err)
        return err;
    r->xid = pipeline_next_xid(p);
    clave__jute_store(r->frame + XID_AT, (uint32_t)r->xid);
    (void)clave__buf_append(&l->out, r->frame, r->frame_len);
    r->sent_at = l->wrote = c->base.now;
    r->sent_end = l->out_begin + clave__buf_len(&l->out);
    /* A write is answered when it has been committed, so it has passed the leader. */
    if (clave__opcode(r->op)->flags & OPCODE_WRITE)
        r->vouched = clave__hold_deadline_vouch(&c->hold_deadline, c->base.now);
    list_remove(&r->link);
    list_push_back(&p->sent, &r->link);
    p->counts[clave__client_opcode_place(r->op)]++;
    return CLAVE_OK;
}

/* Sends closeSession after all other requests. */
static clave_err pipeline_send_close(clave_async_client *c)
{
    assert(list_empty(&c->pipeline.unsent));
    struct wire_request q = {.xid = pipeline_next_xid(&c->pipeline), .op = OP_CLOSE_SESSION};
    clave_err err = clave__unqueued_request_put(c, &q);
    c->pipeline.close_sent = err == CLAVE_OK;
    c->session.may_be_over |= c->pipeline.close_sent;
    return err;
}

/* True if there is a request that may leave now. */
static bool pipeline_has_next(const clave_async_client *c)
{
    const struct list *unsent = &c->pipeline.unsent;
    return !list_empty(unsent) && (!clave__handed_is_unclaimed(c) ||
                                   LIST_ENTRY(unsent->next, struct request, link)->claims);
}

/* Identities and watches come first on a connection, because requests depend on them. */
static clave_err pipeline_fill(clave_async_client *c)
{
    struct pipeline *p = &c->pipeline;
    clave_err err = clave__auth_fill(c);
    while (err == CLAVE_OK && clave__buf_len(&c->link.out) < OUT_AHEAD) {
        if (clave__client_watches_are_owed(c))
            err = clave__client_watches_fill(c);
        else if (pipeline_has_next(c))
            err = pipeline_send_request(c, LIST_ENTRY(p->unsent.next, struct request, link));
        else
            break;
    }
    bool done =
        list_empty(&p->unsent) && list_empty(&p->paused) && !clave__client_watches_are_owed(c);
    if (err == CLAVE_OK && c->session.closing && done && !p->close_sent)
        err = pipeline_send_close(c);
    return err;
}

void clave__pipeline_fill(clave_async_client *c)
{
    if (!clave__link_is_open(&c->link) || c->pipeline.close_sent)
        return;
    if (pipeline_fill(c) == CLAVE_OK)
        return;
    /* There is no memory for more output, so what is there has to be sent first. If there is
     * nothing, nothing can ever be sent on this connection. */
    if (clave__buf_len(&c->link.out) == 0)
        clave__link_report(c, VERDICT_DROP, CLAVE_ENOMEM, NULL);
}

/* ---- failures, answered by deliveries.c once the engine is consistent ------------------------ */

static void pipeline_fail_request(clave_async_client *c, struct request *r, clave_err err)
{
    assert(err != CLAVE_OK);
    assert(list_empty(&r->link));
    clave__timers_clear(&c->base.timers, &r->pause);
    r->err = err;
    list_push_back(&c->deliveries.failed, &r->link);
}

static void pipeline_fail_all(clave_async_client *c, struct list *requests, clave_err err)
{
    struct list *l;
    while ((l = list_pop_front(requests)))
        pipeline_fail_request(c, LIST_ENTRY(l, struct request, link), err);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* A write that failed because of what is in the tree was committed as a failure. Any other error
 * may come from that one server: it is read-only, or overloaded, or it checks ACLs before it asks
 * its leader (zookeeper.enableEagerACLCheck). */
bool clave__pipeline_was_committed(clave_err err)
{
    return err == CLAVE_OK ||
           (err <= CLAVE_ENONODE && err > CLAVE_EEXPIRED && err != CLAVE_ENOAUTH);
}

static void pipeline_take_proof(clave_async_client *c, const struct request *r, clave_err err)
{
    clave__hold_deadline_answered(&c->hold_deadline, r->sent_at, c->base.now);
    if (r->vouched != HOLD_DEADLINE_NONE && clave__pipeline_was_committed(err))
        clave__hold_deadline_confirmed(&c->hold_deadline, r->vouched);
    clave__session_hold_moved(c);
}

/* Answers a request. A watch that it leaves behind may have to be removed. */
static void pipeline_answer(struct request *r, clave_err server_err, const clave_result *res)
{
    if (clave__client_watch_answered(r, server_err))
        clave__pipeline_fill(r->client);
    clave__request_answer(r, res);
}

bool clave__pipeline_reply(clave_async_client *c, const struct wire_reply_header *h,
                           struct jreader *body)
{
    struct pipeline *p = &c->pipeline;
    pipeline_check(c);
    if (list_empty(&p->sent)) {
        if (!p->close_sent || h->xid != p->xid)
            return false;
        /* A server that does not end the session (read-only, overloaded) leaves everything that it
         * holds in place, so another server has to be asked. */
        c->session.is_over =
            h->err == CLAVE_OK || h->err == CLAVE_EEXPIRED || h->err == CLAVE_EUNKNOWNSESSION;
        if (c->session.is_over)
            clave__link_report(c, VERDICT_ENDED, CLAVE_OK, NULL);
        else
            clave__link_report(c, VERDICT_REFUSED, (clave_err)h->err, "to close the session");
        return true;
    }
    struct request *r = LIST_ENTRY(p->sent.next, struct request, link);
    clave_stat stat;
    clave_result res = {.err = (clave_err)h->err, .zxid = h->zxid, .path = r->path};
    clave_err fault = CLAVE_OK;
    if (r->xid != h->xid)
        return false;
    if (h->err == CLAVE_OK)
        fault = clave__reply_decode(r, body, &res, &stat);
    if (fault == CLAVE_EPROTO)
        return false;
    if (fault != CLAVE_OK) {
        res.err = fault;
        if (r->watch)
            (void)clave__client_watch_disarm(r->watch); /* as for any request that fails */
    }
    list_remove(&r->link);
    if (h->err == CLAVE_EEXPIRED) {
        /* Answered after LOST, so that no callback takes a grant of this session for valid. */
        pipeline_fail_request(c, r, CLAVE_EEXPIRED);
        clave__client_fault(c, "the server says that the session has expired");
        clave__link_report(c, VERDICT_LOST, CLAVE_EEXPIRED, NULL);
        return true;
    }
    if (h->zxid > c->session.last_zxid)
        c->session.last_zxid = h->zxid;
    pipeline_take_proof(c, r, (clave_err)h->err);
    pipeline_answer(r, (clave_err)h->err, &res);
    if (h->err == CLAVE_ESASLREQUIRED) { /* the server now closes the connection and executes none
                                            of the others */
        pipeline_fail_all(c, &p->sent, CLAVE_ESASLREQUIRED);
        clave__link_report(c, VERDICT_REFUSED, CLAVE_ESASLREQUIRED, "requests");
    }
    return true;
}

void clave__pipeline_reply_too_big(clave_async_client *c)
{
    if (list_empty(&c->pipeline.sent))
        return;
    struct request *r = LIST_ENTRY(c->pipeline.sent.next, struct request, link);
    if (clave__opcode(r->op)->flags & OPCODE_WRITE)
        return; /* the write may have been done */
    list_remove(&r->link);
    pipeline_fail_request(c, r, CLAVE_ETOOBIG);
}

bool clave__pipeline_deliver_failed(clave_async_client *c)
{
    struct list *l = list_pop_front(&c->deliveries.failed);
    if (!l)
        return false;
    struct request *r = LIST_ENTRY(l, struct request, link);
    assert(r->err != CLAVE_OK);
    clave_result res = {.err = r->err, .path = r->path};
    pipeline_answer(r, r->err, &res);
    return true;
}

/* ---- losing the connection ------------------------------------------------------------------- */

/* True if the last byte of the request was never sent, so that the server cannot have executed
 * it. */
static bool pipeline_never_left(const clave_async_client *c, const struct request *r)
{
    return r->sent_end > c->link.out_begin;
}

static bool pipeline_has_begun(const clave_async_client *c, const struct request *r)
{
    return r->sent_end - r->frame_len < c->link.out_begin;
}

size_t clave__pipeline_cut(clave_async_client *c)
{
    assert(clave__link_is_open(&c->link));
    size_t largest = 0;
    for (struct list *l = c->pipeline.sent.next; l != &c->pipeline.sent; l = l->next) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        if (!pipeline_has_begun(c, r))
            continue;
        r->cuts++;
        if (r->frame_len > largest)
            largest = r->frame_len;
    }
    return largest;
}

/* How long a read waits before it is sent again; negative if it fails. */
static int64_t pipeline_read_retry_delay(clave_async_client *c, struct request *r)
{
    if (r->again == AGAIN_NEVER || r->again == AGAIN_NOT_UNSENT)
        return -1;
    if (r->again == AGAIN_ALWAYS)
        return r->cuts < MOST_CUTS ? 0 : CUT_PAUSE_MS;
    if (r->losses == 0)
        r->first_loss = c->base.now;
    return clave_retry_delay(&c->reads, r->losses++, c->base.now - r->first_loss,
                             clave__rand_u64(&c->rand));
}

/* Fails the requests that are useful on the present connection only, instead of sending them on the
 * next. */
static void pipeline_drop_unsent(clave_async_client *c)
{
    struct pipeline *p = &c->pipeline;
    for (struct list *l = p->unsent.next, *next; l != &p->unsent; l = next) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        next = l->next;
        if (r->again != AGAIN_NOT_UNSENT)
            continue;
        list_remove(l);
        pipeline_fail_request(c, r, CLAVE_ENOTSENT);
    }
}

/* How long to wait before the request is sent again; negative if it fails with *err. A write that
 * has not left completely is sent again at once, so that no later one overtakes it. */
static int64_t pipeline_delay(clave_async_client *c, struct request *r, clave_err *err)
{
    bool left = !pipeline_never_left(c, r);
    bool too_large = r->cuts >= MOST_CUTS && r->frame_len >= LARGE_REQUEST;
    *err = left ? CLAVE_ECONNLOSS : CLAVE_ETOOBIG;
    if (left)
        return pipeline_read_retry_delay(c, r);
    return too_large ? -1 : 0;
}

static void pipeline_resume(struct timer *t, int64_t now)
{
    (void)now;
    struct request *r = LIST_ENTRY(t, struct request, pause);
    list_remove(&r->link);
    clave__pipeline_submit(r->client, r);
}

void clave__pipeline_detached(clave_async_client *c)
{
    struct pipeline *p = &c->pipeline;
    struct list again, *l;
    list_init(&again);
    p->close_sent = false;
    while ((l = list_pop_front(&p->sent))) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        clave_err err;
        int64_t delay = pipeline_delay(c, r, &err);
        r->vouched = HOLD_DEADLINE_NONE;
        if (delay < 0)
            pipeline_fail_request(c, r, err);
        else if (delay == 0)
            list_push_back(&again, l);
        else {
            list_push_back(&p->paused, l);
            r->pause.fire = pipeline_resume;
            clave__timers_set(&c->base.timers, &r->pause, c->base.now + delay);
        }
    }
    list_splice(&again, &p->unsent); /* requests to be sent again come first */
    list_splice(&p->unsent, &again);
    pipeline_drop_unsent(c);
    pipeline_check(c);
}

static bool pipeline_is_withdrawn(const struct request *r, const void *arg)
{
    return r->cb && r->arg == arg && (clave__opcode(r->op)->flags & OPCODE_WRITE);
}

void clave__pipeline_withdraw(clave_async_client *c, const void *arg)
{
    struct pipeline *p = &c->pipeline;
    for (struct list *l = p->sent.next; l != &p->sent; l = l->next)
        if (pipeline_is_withdrawn(LIST_ENTRY(l, struct request, link), arg))
            LIST_ENTRY(l, struct request, link)->again = AGAIN_NOT_UNSENT;
    for (struct list *l = p->unsent.next, *next; l != &p->unsent; l = next) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        next = l->next;
        if (!pipeline_is_withdrawn(r, arg))
            continue;
        list_remove(l);
        pipeline_fail_request(c, r, CLAVE_ENOTSENT);
    }
}

void clave__pipeline_fail(clave_async_client *c, clave_err unsent, clave_err sent)
{
    pipeline_fail_all(c, &c->pipeline.sent, sent);
    pipeline_fail_all(c, &c->pipeline.paused, unsent);
    pipeline_fail_all(c, &c->pipeline.unsent, unsent);
}

/* ---- the public requests --------------------------------------------------------------------- */

/* Makes a request and hands it to the pipeline. */
static clave_err submit(clave_async_client *c, const struct request_spec *spec,
                        const union wire_body *body)
{
    struct request *r;
    if (c->session.state == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED; /* nothing would answer it */
    clave_err err = clave__request_new(c, spec, body, &r);
    if (err == CLAVE_OK && spec->watch)
        clave__client_watch_asked(spec->watch, r);
    if (err == CLAVE_OK)
        clave__pipeline_submit(c, r);
    return err == CLAVE_ETOOBIG ? clave__encode_too_big(c, spec->path) : err;
}

/* Checks the client and the path, and makes the full path. */
static clave_err submit_begin(clave_async_client *c, const char *path, struct jbytes *full)
{
    clave_err err = clave__encode_check(c, path, false);
    return err ? err : clave__full_path(c, path, full);
}

clave_err clave__submit_create(clave_async_client *c, const struct submit_create *s,
                               clave_result_cb *cb, void *arg)
{
    struct wire_create q = {.flags = (int32_t)s->mode, .ttl_ms = s->ttl_ms};
    clave_err err = clave__encode_data(c, s->path, s->data, s->len, &q.data);
    if (s->raw)
        q.path = clave__jbytes(s->path);
    else if (err == CLAVE_OK)
        err = clave__path_to_create(c, s->path, s->mode, &q.path);
    if (err == CLAVE_OK)
        err = clave__encode_acls(c, s->acls, s->nacls, &q.acl);
    if (err)
        return err;
    struct request_spec spec = {.again = s->again,
                                .op = OP_CREATE2,
                                .path = s->path,
                                .cb = cb,
                                .arg = arg,
                                .quiet = s->quiet,
                                .raw = s->raw,
                                .place = s->place};
    if (s->mode == CLAVE_CONTAINER)
        spec.op = OP_CREATE_CONTAINER;
    else if (s->mode >= CLAVE_PERSISTENT_TTL)
        spec.op = OP_CREATE_TTL;
    union wire_body body = {.create = q};
    return submit(c, &spec, &body);
}

clave_err clave__submit_delete(clave_async_client *c, const char *path, int32_t version,
                               clave_result_cb *cb, void *arg)
{
    union wire_body body = {.check = {.version = version}};
    clave_err err = submit_begin(c, path, &body.check.path);
    struct request_spec spec = {.op = OP_DELETE, .path = path, .cb = cb, .arg = arg};
    return err ? err : submit(c, &spec, &body);
}

clave_err clave_async_delete(clave_async_client *c, const char *path, int32_t version,
                             clave_result_cb *cb, void *arg)
{
    return clave__submit_delete(c, path, version, cb, arg);
}

clave_err clave__submit_read(clave_async_client *c, int32_t op, struct request_spec *spec)
{
    union wire_body body = {.read = {.watch = spec->watch != NULL}};
    clave_err err = submit_begin(c, spec->path, &body.read.path);
    if (err == CLAVE_OK && spec->watch) {
        bool children = clave__opcode(op)->flags & OPCODE_WATCH_CHILD;
        err = clave__client_watch_prepare(spec->watch, spec->path,
                                          children ? WATCH_CHILD : WATCH_DATA);
    }
    spec->op = op;
    return err ? err : submit(c, spec, &body);
}

clave_err clave_async_exists(clave_async_client *c, const char *path, clave_async_watch *watch,
                             clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.path = path, .cb = cb, .arg = arg, .watch = watch};
    return clave__submit_read(c, OP_EXISTS, &spec);
}

clave_err clave_async_get(clave_async_client *c, const char *path, clave_async_watch *watch,
                          clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.path = path, .cb = cb, .arg = arg, .watch = watch};
    return clave__submit_read(c, OP_GET_DATA, &spec);
}

clave_err clave_async_children(clave_async_client *c, const char *path, clave_async_watch *watch,
                               clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.path = path, .cb = cb, .arg = arg, .watch = watch};
    return clave__submit_read(c, OP_GET_CHILDREN2, &spec);
}

clave_err clave__client_read_once(clave_async_client *c, int32_t op, const char *path,
                                  clave_async_watch *watch, clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {
        .again = AGAIN_NEVER, .path = path, .cb = cb, .arg = arg, .watch = watch, .quiet = true};
    return clave__submit_read(c, op, &spec);
}

/* Collects the operations in c->multi. */
void clave__client_gets_begin(clave_async_client *c)
{
    clave__buf_clear(&c->multi);
}

clave_err clave__client_gets_add(clave_async_client *c, const char *path)
{
    struct wire_op op = {.op = OP_GET_DATA};
    struct jwriter w = clave__jwriter(&c->multi);
    clave_err err = submit_begin(c, path, &op.body.read.path);
    if (err == CLAVE_OK)
        clave__wire_put_op(&w, &op);
    return err ? err : w.err;
}

clave_err clave__client_gets_submit(clave_async_client *c, size_t n, clave_result_cb *cb, void *arg)
{
    struct jwriter w = clave__jwriter(&c->multi);
    clave__wire_put_ops_end(&w);
    union wire_body body = {
        .multi = {(int32_t)n, clave__buf_bytes(&c->multi), clave__buf_len(&c->multi)}};
    struct request_spec spec = {.again = AGAIN_NEVER,
                                .op = OP_MULTI_READ,
                                .path = "/",
                                .cb = cb,
                                .arg = arg,
                                .nops = n,
                                .quiet = true};
    return w.err ? w.err : submit(c, &spec, &body);
}

clave_err clave_async_add_watch(clave_async_client *c, const char *path, clave_watch_mode mode,
                                clave_async_watch *watch, clave_result_cb *cb, void *arg)
{
    bool recursive = mode == CLAVE_WATCH_PERSISTENT_RECURSIVE;
    union wire_body body = {.typed = {.type = (int32_t)mode}};
    if (!watch || (mode != CLAVE_WATCH_PERSISTENT && !recursive))
        return CLAVE_EINVAL;
    clave_err err = submit_begin(c, path, &body.typed.path);
    if (err == CLAVE_OK)
        err = clave__client_watch_prepare(watch, path,
                                          recursive ? WATCH_RECURSIVE : WATCH_PERSISTENT);
    struct request_spec spec = {
        .op = OP_ADD_WATCH, .path = path, .cb = cb, .arg = arg, .watch = watch};
    return err ? err : submit(c, &spec, &body);
}

clave_err clave_async_set(clave_async_client *c, const char *path, const void *data, size_t len,
                          int32_t version, clave_result_cb *cb, void *arg)
{
    union wire_body body = {.set = {.version = version}};
    clave_err err = submit_begin(c, path, &body.set.path);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, path, data, len, &body.set.data);
    struct request_spec spec = {.op = OP_SET_DATA, .path = path, .cb = cb, .arg = arg};
    return err ? err : submit(c, &spec, &body);
}

clave_err clave__submit_path(clave_async_client *c, const struct request_spec *spec)
{
    union wire_body body;
    clave_err err = submit_begin(c, spec->path, &body.path);
    return err ? err : submit(c, spec, &body);
}

clave_err clave_async_get_acl(clave_async_client *c, const char *path, clave_result_cb *cb,
                              void *arg)
{
    struct request_spec spec = {.op = OP_GET_ACL, .path = path, .cb = cb, .arg = arg};
    return clave__submit_path(c, &spec);
}

clave_err clave_async_set_acl(clave_async_client *c, const char *path, const clave_acl *acls,
                              size_t nacls, int32_t version, clave_result_cb *cb, void *arg)
{
    union wire_body body = {.set_acl = {.version = version}};
    clave_err err = submit_begin(c, path, &body.set_acl.path);
    if (err == CLAVE_OK)
        err = clave__encode_acls(c, acls, nacls, &body.set_acl.acl);
    struct request_spec spec = {.op = OP_SET_ACL, .path = path, .cb = cb, .arg = arg};
    return err ? err : submit(c, &spec, &body);
}

clave_err clave_async_sync(clave_async_client *c, const char *path, clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.op = OP_SYNC, .path = path, .cb = cb, .arg = arg};
    return clave__submit_path(c, &spec);
}

clave_err clave__submit_multi(clave_async_client *c, struct request_spec *spec)
{
    union wire_body body;
    clave_err err = clave__encode_multi(c, spec, &body);
    if (err == CLAVE_ETOOBIG)
        return clave__encode_too_big(c, spec->path);
    return err ? err : submit(c, spec, &body);
}

clave_err clave_async_multi(clave_async_client *c, const clave_op *ops, size_t nops,
                            clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.ops = ops, .nops = nops, .cb = cb, .arg = arg};
    return clave__submit_multi(c, &spec);
}

clave_err clave_async_add_auth(clave_async_client *c, const char *scheme, const void *auth,
                               size_t len, clave_result_cb *cb, void *arg)
{
    const clave_auth q = {.scheme = scheme, .auth = auth, .len = len};
    if (c->session.closing || c->session.state == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    clave_err err = clave__auth_add(c, &q, cb, arg);
    if (err == CLAVE_OK)
        clave__pipeline_fill(c);
    return err;
}
