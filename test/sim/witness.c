#include "witness.h"

#include <stdio.h>
#include <string.h>

#include "server/request/session_tracker.h"
#include "wire/frame.h"
#include "wire/opcode.h"

enum { BURST = 8, MULTI_ROOM = 512 };

static void witness_wake_at(struct witness *v, int64_t at)
{
    world_set_earlier(v->w, &v->alarm, at);
}

/* ---- asking -------------------------------------------------------------------------- */

static void send_frame(struct witness *v, void (*put)(struct jwriter *w, void *arg), void *arg)
{
    struct buf b;
    clave__buf_init(&b, &v->net->mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    size_t begin = clave__frame_begin(&w);
    put(&w, arg);
    world_must(clave__frame_end(&w, begin) == CLAVE_OK);
    net_write(v->socket, clave__buf_bytes(&b), clave__buf_len(&b));
    clave__buf_fini(&b);
}

static void put_hello(struct jwriter *w, void *arg)
{
    const struct witness *v = arg;
    uint8_t passwd[WIRE_PASSWORD_LEN] = {0};
    if (v->session)
        clave__session_password(v->session, passwd);
    struct wire_connect_request q = {
        .last_zxid_seen = v->zxid,
        .timeout_ms = v->timeout_ms,
        .session_id = v->session,
        .passwd = clave__jbytes_n(passwd, sizeof passwd),
        .has_read_only = true,
    };
    clave__wire_put_connect_request(w, &q);
}

static void put_any(struct jwriter *w, void *arg)
{
    clave__wire_put_request(w, arg);
}

static void ask(struct witness *v, const struct witness_request *what, const union wire_body *body)
{
    struct wire_request q = {.xid = what->xid, .op = what->op, .body = *body};
    v->asked[(v->asked_head + v->nasked++) % WITNESS_ASKED] = *what;
    send_frame(v, put_any, &q);
}

static void ask_multi_read(struct witness *v, const struct witness_request *what)
{
    struct buf b;
    clave__buf_init(&b, &v->net->mem, MULTI_ROOM);
    struct jwriter w = clave__jwriter(&b);
    const unsigned nodes[] = {what->node, what->other};
    for (size_t i = 0; i < 2; i++) {
        struct wire_op op = {OP_GET_DATA, {.read = {clave__jbytes(past_paths[nodes[i]]), false}}};
        clave__wire_put_op(&w, &op);
    }
    clave__wire_put_ops_end(&w);
    union wire_body body = {.multi = {2, clave__buf_bytes(&b), clave__buf_len(&b)}};
    ask(v, what, &body);
    clave__buf_fini(&b);
}

static struct jvec acl_of(int32_t perms, struct buf *room)
{
    struct wire_acl a = {perms, clave__jbytes("world"), clave__jbytes("anyone")};
    struct jwriter w = clave__jwriter(room);
    clave__wire_put_acl(&w, &a);
    return (struct jvec){1, clave__buf_bytes(room), clave__buf_len(room)};
}

static void ask_of_node(struct witness *v, const struct witness_request *what)
{
    struct world *w = v->w;
    struct jbytes path = clave__jbytes(past_paths[what->node]);
    char text[24];
    struct buf room;
    union wire_body body = {.path = path};
    clave__buf_init(&room, &v->net->mem, MULTI_ROOM);
    snprintf(text, sizeof text, "%lld", (long long)(world_u64(w) >> 20));
    int32_t perms = world_chance(w, 300) ? PERM_ALL & ~PERM_READ : PERM_ALL;
    int32_t mode = world_chance(w, 300) ? MODE_EPHEMERAL : MODE_PERSISTENT;
    if (what->op == OP_CREATE)
        body.create = (struct wire_create){
            .path = path,
            .data = clave__jbytes(text),
            .acl = acl_of(perms, &room),
            .flags = what->node == PAST_TOP || what->node == PAST_A ? MODE_PERSISTENT : mode};
    else if (what->op == OP_SET_DATA)
        body.set = (struct wire_set_data){path, clave__jbytes(text), -1};
    else if (what->op == OP_SET_ACL)
        body.set_acl = (struct wire_set_acl){path, acl_of(perms, &room), -1};
    else if (what->op == OP_DELETE)
        body.check = (struct wire_path_version){path, -1};
    else if (clave__opcode(what->op)->flags & OPCODE_WATCH_ANY)
        body.read = (struct wire_path_watch){path, world_chance(w, 300)};
    ask(v, what, &body);
    clave__buf_fini(&room);
}

static void ask_something(struct witness *v)
{
    static const int32_t ops[] = {
        OP_EXISTS,       OP_EXISTS,        OP_GET_DATA,       OP_GET_DATA,
        OP_GET_CHILDREN, OP_GET_CHILDREN2, OP_GET_ACL,        OP_PING,
        OP_PING,         OP_SET_DATA,      OP_SET_DATA,       OP_CREATE,
        OP_CREATE,       OP_CREATE,        OP_DELETE,         OP_SET_ACL,
        OP_MULTI_READ,   OP_MULTI_READ,    OP_GET_EPHEMERALS, OP_GET_ALL_CHILDREN_NUMBER,
        OP_SYNC,
    };
    struct world *w = v->w;
    struct witness_request q = {
        .op = ops[world_between(w, 0, sizeof ops / sizeof *ops - 1)],
        .node = (unsigned)world_between(w, 0, PAST_NODES - 1),
        .other = (unsigned)world_between(w, 0, PAST_NODES - 1),
    };
    if (q.op == OP_GET_ALL_CHILDREN_NUMBER || q.op == OP_GET_EPHEMERALS)
        q.node = PAST_TOP;
    q.xid = q.op == OP_PING ? XID_PING : ++v->xid;
    if (q.op == OP_MULTI_READ)
        ask_multi_read(v, &q);
    else
        ask_of_node(v, &q);
}

/* What it missed of all nodes, by all kinds of watches. */
static void ask_for_missed(struct witness *v)
{
    struct buf b;
    clave__buf_init(&b, &v->net->mem, MULTI_ROOM);
    struct jwriter w = clave__jwriter(&b);
    for (unsigned i = 0; i < PAST_NODES; i++)
        clave__jput_str(&w, past_paths[i]);
    struct jvec paths = {PAST_NODES, clave__buf_bytes(&b), clave__buf_len(&b)};
    union wire_body body = {.watches = {v->zxid, paths, paths, paths, {0}, {0}}};
    struct witness_request q = {.xid = XID_SET_WATCHES, .op = OP_SET_WATCHES};
    v->missing = v->zxid;
    ask(v, &q, &body);
    clave__buf_fini(&b);
}

static void ask_to_leave(struct witness *v)
{
    static const union wire_body none;
    struct witness_request q = {.xid = ++v->xid, .op = OP_CLOSE_SESSION};
    ask(v, &q, &none);
    v->leaving = true;
}

/* ---- judging ------------------------------------------------------------------------- */

static void break_answer(struct witness *v, const struct witness_request *q, int64_t zxid,
                         const char *what)
{
    world_break(v->w, "an answer is what was so as of its transaction",
                "%s: %s %s as of zxid %lld: %s", v->name, clave__opcode(q->op)->name,
                past_paths[q->node], (long long)zxid, what);
}

static bool is_stat_of(const struct past_state *s, const struct wire_stat *stat)
{
    return stat->mzxid == s->mzxid && stat->pzxid == s->pzxid && stat->version == s->version &&
           stat->aversion == s->aversion && stat->num_children == s->children &&
           stat->ephemeral_owner == s->owner;
}

static bool is_value_of(const struct past_state *s, struct jbytes data)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)s->value);
    return clave__jbytes_eq(data, clave__jbytes(text));
}

/* What a read of one node has to say. */
static int32_t verdict_on(const struct past_state *s, int32_t op)
{
    if (!s->exists)
        return CLAVE_ENONODE;
    return s->readable || op == OP_GET_ACL ? CLAVE_OK : CLAVE_ENOAUTH;
}

static bool is_acl_of(const struct past_state *s, struct jvec acl)
{
    struct jreader r = clave__jvec_reader(acl);
    return acl.count == 1 && ((clave__wire_get_acl(&r).perms & PERM_READ) != 0) == s->readable;
}

static int32_t nodes_below_top(const struct tree_past *p, int64_t zxid, int64_t owner)
{
    int32_t count = 0;
    for (unsigned i = PAST_TOP + 1; i < PAST_NODES; i++) {
        const struct past_state *s = tree_past_at(p, i, zxid);
        count += s->exists && (owner == 0 || s->owner == owner);
    }
    return count;
}

static void judge_parts(struct witness *v, const struct witness_request *q, int64_t zxid,
                        const struct wire_reply *reply)
{
    struct jreader r = clave__wire_ops_reader(&reply->results);
    const unsigned nodes[] = {q->node, q->other};
    for (size_t i = 0; i < 2; i++) {
        const struct past_state *s = tree_past_at(v->past, nodes[i], zxid);
        struct wire_result part;
        world_must(clave__wire_get_result(&r, &part));
        if (part.err != verdict_on(s, OP_GET_DATA) ||
            (part.err == 0 &&
             (!is_stat_of(s, &part.reply.stat) || !is_value_of(s, part.reply.data))))
            break_answer(v, q, zxid, "one of its reads is of another time");
    }
}

static bool is_read_of_node(int32_t op)
{
    return op == OP_EXISTS || op == OP_GET_DATA || op == OP_GET_CHILDREN ||
           op == OP_GET_CHILDREN2 || op == OP_GET_ACL || op == OP_GET_ALL_CHILDREN_NUMBER;
}

/* What an answer without an error shows. */
static void judge_content(struct witness *v, const struct witness_request *q, int64_t zxid,
                          const struct wire_reply *reply)
{
    const struct past_state *s = tree_past_at(v->past, q->node, zxid);
    unsigned parts = clave__opcode(q->op)->reply;
    if ((q->op == OP_CREATE || q->op == OP_SET_DATA) && s->mzxid != zxid)
        break_answer(v, q, zxid, "its write is not there");
    if (q->op == OP_DELETE && s->exists)
        break_answer(v, q, zxid, "its deletion is not there");
    if (q->op == OP_MULTI_READ)
        judge_parts(v, q, zxid, reply);
    else if ((parts & REPLY_STAT) && !is_stat_of(s, &reply->stat))
        break_answer(v, q, zxid, "another Stat");
    if (q->op == OP_GET_DATA && !is_value_of(s, reply->data))
        break_answer(v, q, zxid, "other data");
    if (q->op == OP_GET_ACL && !is_acl_of(s, reply->acl))
        break_answer(v, q, zxid, "another access list");
    if (q->op == OP_GET_CHILDREN && reply->names.count != s->children)
        break_answer(v, q, zxid, "other children");
    if (q->op == OP_GET_ALL_CHILDREN_NUMBER && reply->number != nodes_below_top(v->past, zxid, 0))
        break_answer(v, q, zxid, "another number of nodes");
    if (q->op == OP_GET_EPHEMERALS &&
        reply->names.count != nodes_below_top(v->past, zxid, v->session))
        break_answer(v, q, zxid, "other ephemeral nodes");
}

/* The zxid of a header: durable, and none that goes back. */
static void judge_zxid(struct witness *v, int64_t zxid)
{
    tree_past_note_shown(v->past, v->name, zxid);
    if (zxid < v->zxid || zxid < v->event)
        world_break(v->w, "a client's zxid does not go back", "%s: %lld after %lld", v->name,
                    (long long)zxid, (long long)(v->zxid > v->event ? v->zxid : v->event));
    v->zxid = zxid;
}

static void judge_answer(struct witness *v, const struct wire_reply_header *h, struct jreader *r)
{
    const struct witness_request *q = &v->asked[v->asked_head];
    if (v->nasked == 0 || q->xid != h->xid) {
        world_break(v->w, "answers come in the order of the requests", "%s: xid %d, asked was %d",
                    v->name, (int)h->xid, v->nasked ? (int)q->xid : 0);
        return;
    }
    v->asked_head = (v->asked_head + 1) % WITNESS_ASKED;
    v->nasked--;
    v->answers++;
    judge_zxid(v, h->zxid);
    int32_t due = verdict_on(tree_past_at(v->past, q->node, h->zxid), q->op);
    if (is_read_of_node(q->op) && h->err != due)
        break_answer(v, q, h->zxid, h->err ? "an error" : "no error");
    else if (h->err == 0) {
        struct wire_reply reply = clave__wire_get_reply(r, q->op);
        judge_content(v, q, h->zxid, &reply);
    }
    if (q->op == OP_CLOSE_SESSION)
        v->gone = true;
}

static bool is_event_of(const struct past_state *s, int32_t type, int64_t since)
{
    switch (type) {
    case EVENT_CREATED:
        return s->exists;
    case EVENT_DELETED:
        return !s->exists;
    case EVENT_DATA_CHANGED:
        return s->exists && s->mzxid > since;
    default:
        return s->exists && s->pzxid > since;
    }
}

/* Of an event that it missed nobody says when it was: some time since then, and it is on the disk.
 */
static bool has_been_missed(const struct witness *v, unsigned node, int32_t type)
{
    const struct past_node *n = &v->past->nodes[node];
    if (is_event_of(tree_past_at(v->past, node, v->missing), type, v->missing))
        return true;
    for (size_t i = n->n; i > 0 && n->states[i - 1].zxid > v->missing; i--)
        if (n->states[i - 1].zxid <= v->past->durable &&
            is_event_of(&n->states[i - 1], type, v->missing))
            return true;
    return false;
}

static void judge_event(struct witness *v, int64_t zxid, struct jreader *r)
{
    struct wire_event e = clave__wire_get_event(r);
    unsigned node = 0;
    while (!clave__jbytes_eq(e.path, clave__jbytes(past_paths[node])))
        world_must(++node < PAST_NODES);
    v->events++;
    if (zxid == -1) {
        if (!has_been_missed(v, node, e.type))
            world_break(v->w, "what is shown is on the disk", "%s: missed event %d of %s", v->name,
                        (int)e.type, past_paths[node]);
        return;
    }
    tree_past_note_shown(v->past, v->name, zxid);
    const struct past_state *s = tree_past_at(v->past, node, zxid);
    if (s->zxid != zxid || !is_event_of(s, e.type, zxid - 1))
        world_break(v->w, "an event is of its transaction", "%s: event %d of %s at zxid %lld",
                    v->name, (int)e.type, past_paths[node], (long long)zxid);
    if (zxid <= v->zxid || zxid < v->event)
        world_break(v->w, "an event comes before what it announces",
                    "%s: event of zxid %lld after %lld", v->name, (long long)zxid,
                    (long long)v->zxid);
    v->event = zxid;
}

/* A session of which its client is told that it has ended has ended for ever. */
static void judge_hello(struct witness *v, struct jreader *r)
{
    struct wire_connect_response h = clave__wire_get_connect_response(r);
    if (h.session_id == 0 && v->session != 0 && !tree_past_has_ended(v->past, v->session))
        world_break(v->w, "what is shown is on the disk", "%s: the end of session 0x%llx", v->name,
                    (unsigned long long)v->session);
    bool is_back = h.session_id != 0 && h.session_id == v->session;
    v->session = h.session_id;
    v->serving = h.session_id != 0;
    if (is_back)
        ask_for_missed(v);
}

static void judge_frame(struct witness *v, const uint8_t *p, size_t n)
{
    struct jreader r = clave__jreader(p, n);
    v->heard_at = v->w->now;
    if (!v->serving) {
        judge_hello(v, &r);
        return;
    }
    struct wire_reply_header h = clave__wire_get_reply_header(&r);
    if (h.xid == XID_EVENT)
        judge_event(v, h.zxid, &r);
    else
        judge_answer(v, &h, &r);
}

/* ---- its connection ------------------------------------------------------------------ */

static void witness_on_socket(void *owner)
{
    struct witness *v = owner;
    witness_wake_at(v, v->w->now);
}

static void hang_up(struct witness *v)
{
    net_close(v->socket);
    clave__buf_clear(&v->in);
    v->socket = NULL;
    v->greeted = v->serving = false;
    v->nasked = 0;
    witness_wake_at(v, v->w->now + world_wait(v->w, v->pace_us));
}

static void hear(struct witness *v)
{
    const void *p;
    size_t n = net_peek(v->socket, &p);
    if (n > 0)
        world_must(clave__buf_append(&v->in, p, n) == CLAVE_OK);
    net_read(v->socket, n);
    while (clave__buf_len(&v->in) >= 4 && !v->w->broken) {
        struct jreader r = clave__jreader(clave__buf_bytes(&v->in), clave__buf_len(&v->in));
        size_t len = (size_t)clave__jget_int(&r);
        if (clave__buf_len(&v->in) < 4 + len)
            break;
        judge_frame(v, clave__buf_bytes(&v->in) + 4, len);
        clave__buf_consume(&v->in, 4 + len);
    }
}

/* Some requests at once, or a hang-up without a word. */
static void witness_burst(struct witness *v)
{
    struct world *w = v->w;
    for (int64_t left = world_between(w, 1, BURST); left > 0 && v->nasked < WITNESS_ASKED; left--)
        ask_something(v);
    v->burst_at = w->now + world_wait(w, v->pace_us);
    if (world_chance(w, 15))
        hang_up(v);
}

static void witness_talk(struct witness *v)
{
    struct world *w = v->w;
    int64_t patience_us = v->timeout_ms * MS;
    hear(v);
    if (net_is_over(v->socket) || v->gone || w->now - v->heard_at > patience_us) {
        hang_up(v);
        return;
    }
    if (v->socket->state == NET_OPEN && !v->greeted) {
        send_frame(v, put_hello, v);
        v->greeted = true;
    }
    if (v->serving && !v->leaving && w->now >= v->burst_at)
        witness_burst(v);
    if (v->socket)
        witness_wake_at(v, v->serving && !v->leaving ? v->burst_at : v->heard_at + patience_us + 1);
}

static void witness_act(struct witness *v)
{
    if (v->socket) {
        witness_talk(v);
    } else if (!v->leaving) {
        v->heard_at = v->w->now;
        v->socket =
            net_dial(v->net, v->server, &v->route, (struct net_callback){witness_on_socket, v});
        witness_wake_at(v, v->w->now + v->timeout_ms * MS);
    }
}

static void witness_on_alarm(struct alarm *a)
{
    struct witness *v = LIST_ENTRY(a, struct witness, alarm);
    struct rand_state *before = world_use_rng(v->w, &v->rng);
    witness_act(v);
    world_use_rng(v->w, before);
}

/* ---- life ---------------------------------------------------------------------------- */

void witness_init(struct witness *v, struct server_host *h, struct tree_past *past, unsigned number,
                  int32_t timeout_ms)
{
    memset(v, 0, sizeof *v);
    snprintf(v->name, sizeof v->name, "witness %u", number);
    v->w = h->w;
    v->net = h->net;
    v->past = past;
    v->server = &h->listener;
    v->timeout_ms = timeout_ms;
    v->pace_us = world_between(v->w, timeout_ms * MS / 200, timeout_ms * MS / 10);
    v->route.delay_us = world_between(v->w, 20, 500);
    v->route.jitter_us = world_between(v->w, 0, 500);
    v->alarm.fire = witness_on_alarm;
    clave__buf_init(&v->in, &v->net->mem, SIZE_MAX / 4);
    clave__rand_seed(&v->rng, world_u64(v->w));
}

void witness_start(struct witness *v)
{
    witness_wake_at(v, v->w->now);
}

void witness_leave(struct witness *v)
{
    if (v->serving && v->nasked < WITNESS_ASKED)
        ask_to_leave(v);
    v->leaving = true;
    if (!v->serving && v->socket)
        hang_up(v);
}

void witness_fini(struct witness *v)
{
    if (v->socket)
        net_close(v->socket);
    world_clear(v->w, &v->alarm);
    clave__buf_fini(&v->in);
}
