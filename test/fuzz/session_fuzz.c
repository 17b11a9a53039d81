/* session_fuzz.c - several sessions at one server, whose requests are well-formed, cut anywhere and
 * mixed, while connections go and move, the disk stands, time passes and the server dies. Each
 * request is answered once, in order, and not before what it shows is durable; what was durable is
 * there after each death. */
#include <string.h>

#include "base/memory.h"
#include "fuzz/fuzz.h"
#include "fuzz/recovery.h"

enum { SESSIONS = 3, AWAITED = 256, TIMEOUT_MS = 10000 };

struct session_client {
    struct memserver_conn conns[2], *c; /* the present one; the server knows where it is */
    struct buf out;                     /* said, and not heard yet */
    size_t keep;                        /* of the next request so much is held back */
    int32_t xids[AWAITED], ops[AWAITED];
    size_t asked, answered;
    int64_t zxid; /* the newest it has seen */
};

struct play {
    struct memserver d;
    struct server_options o;
    struct session_client clients[SESSIONS];
    size_t durable; /* so much of the log */
};

/* ---- what comes back ------------------------------------------------------------------------- */

static void check_event(struct jreader *r)
{
    struct wire_event e = clave__wire_get_event(r);
    must(!r->bad && r->n == 0 && e.path.n > 0);
}

static void check_reply(struct session_client *q, const struct wire_reply_header *h,
                        struct jreader *r)
{
    must(q->answered < q->asked && h->xid == q->xids[q->answered % AWAITED]);
    int32_t op = q->ops[q->answered++ % AWAITED];
    if (h->err != 0) {
        must(h->err < 0 && (op == OP_MULTI || op == OP_MULTI_READ || r->n == 0));
        return;
    }
    (void)clave__wire_get_reply(r, op);
    must(!r->bad && r->n == 0);
}

static void listen(struct play *p, struct session_client *q)
{
    struct wire_reply_header h;
    struct jreader r;
    int64_t durable = memserver_stats(&p->d).durable_zxid;
    while (memserver_next(q->c, &h, &r)) {
        if (h.xid == XID_EVENT) {
            check_event(&r);
            continue;
        }
        check_reply(q, &h, &r);
        if (h.xid == XID_AUTH) /* shows nothing */
            continue;
        must(h.zxid <= durable && h.zxid >= q->zxid);
        q->zxid = h.zxid;
    }
}

/* ---- what is asked --------------------------------------------------------------------------- */

static const char *const paths[] = {"/a",     "/a/b",
                                    "/a/b/c", "/",
                                    "/q",     "/zookeeper/quota/a/zookeeper_limits",
                                    "/q/",    "/zookeeper/quota/a"};
enum { PATHS = sizeof paths / sizeof *paths };

static const int32_t ops[] = {
    OP_CREATE,         OP_CREATE2,       OP_CREATE_CONTAINER,
    OP_CREATE_TTL,     OP_DELETE,        OP_SET_DATA,
    OP_SET_ACL,        OP_GET_ACL,       OP_EXISTS,
    OP_GET_DATA,       OP_GET_CHILDREN,  OP_GET_CHILDREN2,
    OP_MULTI,          OP_MULTI_READ,    OP_ADD_WATCH,
    OP_REMOVE_WATCHES, OP_CHECK_WATCHES, OP_SET_WATCHES2,
    OP_GET_EPHEMERALS, OP_SYNC,          OP_GET_ALL_CHILDREN_NUMBER,
    OP_WHO_AM_I,       OP_AUTH,          OP_PING,
    OP_CLOSE_SESSION,
};
enum { OPS = sizeof ops / sizeof *ops, SIMPLE = 12 };

static struct jvec acl_of(uint8_t how)
{
    static const char *const all[][2] = {
        {"world", "anyone"}, {"auth", ""}, {"ip", "127.0.0.0/8"}, {"digest", "u:p"}};
    return memserver_acl(how & 64 ? PERM_READ : PERM_ALL, all[how >> 4 & 3][0],
                         all[how >> 4 & 3][1]);
}

static struct jvec path_list(const char *path, uint8_t room[64])
{
    size_t n = strlen(path);
    memset(room, 0, 4);
    room[3] = (uint8_t)n;
    memcpy(room + 4, path, n);
    return (struct jvec){1, room, 4 + n};
}

/* Of one operation that may stand in a multi too. */
static union wire_body simple_body(int32_t op, const char *path, uint8_t how, struct jbytes data)
{
    int32_t version = (how & 3) - 1;
    switch (op) {
    case OP_DELETE:
    case OP_CHECK:
        return (union wire_body){.check = {clave__jbytes(path), version}};
    case OP_SET_DATA:
        return (union wire_body){.set = {clave__jbytes(path), data, version}};
    case OP_SET_ACL:
        return (union wire_body){.set_acl = {clave__jbytes(path), acl_of(how), version}};
    case OP_GET_ACL:
        return (union wire_body){.path = clave__jbytes(path)};
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_GET_CHILDREN:
    case OP_GET_CHILDREN2:
        return (union wire_body){.read = {clave__jbytes(path), how & 1}};
    default:
        return (union wire_body){.create = {.path = clave__jbytes(path),
                                            .data = data,
                                            .acl = acl_of(how),
                                            .flags = op == OP_CREATE_CONTAINER ? MODE_CONTAINER
                                                     : op == OP_CREATE_TTL     ? MODE_PERSISTENT_TTL
                                                                               : how & 3,
                                            .ttl_ms = 100 * (how + 1)}};
    }
}

/* Each byte of the data is one operation more. */
static struct wire_ops several(struct buf *room, bool reads, struct jbytes data)
{
    static const int32_t writing[] = {OP_CREATE, OP_CREATE2, OP_DELETE, OP_SET_DATA, OP_CHECK};
    static const int32_t reading[] = {OP_GET_DATA, OP_GET_CHILDREN};
    struct jwriter w = clave__jwriter(room);
    int32_t count = data.n > 0 ? data.n : 0;
    for (int32_t i = 0; i < count; i++) {
        uint8_t b = (uint8_t)data.p[i];
        int32_t op = reads ? reading[b % 2] : writing[b % 5];
        union wire_body body = simple_body(op, paths[b / 8 % PATHS], b, clave__jbytes("m"));
        clave__wire_put_op(&w, &(struct wire_op){op, body});
    }
    clave__wire_put_ops_end(&w);
    return (struct wire_ops){count, room->data, room->tail};
}

static union wire_body body_of(int32_t op, const char *path, uint8_t how, struct jbytes data,
                               struct buf *room)
{
    static uint8_t list[64];
    switch (op) {
    case OP_MULTI:
    case OP_MULTI_READ:
        return (union wire_body){.multi = several(room, op == OP_MULTI_READ, data)};
    case OP_ADD_WATCH:
    case OP_REMOVE_WATCHES:
    case OP_CHECK_WATCHES:
        return (union wire_body){.typed = {clave__jbytes(path), how % 5}};
    case OP_SET_WATCHES2: {
        struct jvec one = path_list(path, list);
        return (union wire_body){.watches = {how, one, one, one, one, one}};
    }
    case OP_GET_EPHEMERALS:
    case OP_SYNC:
    case OP_GET_ALL_CHILDREN_NUMBER:
        return (union wire_body){.path = clave__jbytes(path)};
    case OP_AUTH:
        return (union wire_body){.auth = {0, clave__jbytes("digest"), clave__jbytes("u:p")}};
    default:
        return simple_body(op, path, how, data);
    }
}

/* What is kept is heard with what comes next. */
static void say(struct play *p, struct session_client *q)
{
    size_t n = clave__buf_len(&q->out), keep = q->keep < n ? q->keep : n;
    q->keep = 0;
    if (q->c->c && n > keep)
        clave__server_conn_input(q->c->c, clave__buf_bytes(&q->out), n - keep);
    clave__buf_consume(&q->out, n - keep);
    memserver_settle(&p->d);
}

static int32_t xid_of(struct session_client *q, int32_t op)
{
    return op == OP_PING           ? XID_PING
           : op == OP_AUTH         ? XID_AUTH
           : op == OP_SET_WATCHES2 ? XID_SET_WATCHES
                                   : ++q->c->xid;
}

static void request(struct play *p, struct session_client *q, const char *path, struct input *in)
{
    int32_t op = ops[input_byte(in) % OPS];
    uint8_t how = input_byte(in);
    struct input part = input_part(in, input_byte(in) % 64);
    struct jbytes data = clave__jbytes_n(part.p, part.n);
    struct buf room, frame;
    if (q->asked - q->answered == AWAITED)
        return;
    clave__buf_init(&room, &p->d.mem, SIZE_MAX / 4);
    clave__buf_init(&frame, &p->d.mem, SIZE_MAX / 4);
    struct wire_request it = {
        .xid = xid_of(q, op), .op = op, .body = body_of(op, path, how, data, &room)};
    struct jwriter w = clave__jwriter(&frame);
    clave__wire_put_request(&w, &it);
    struct jwriter out = clave__jwriter(&q->out);
    clave__jput_bytes(&out, clave__jbytes_n(frame.data, frame.tail));
    must(w.err == CLAVE_OK && out.err == CLAVE_OK);
    q->xids[q->asked % AWAITED] = it.xid;
    q->ops[q->asked++ % AWAITED] = op;
    clave__buf_fini(&frame);
    clave__buf_fini(&room);
    say(p, q);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* With the session while there is one, from beside the old connection or after it; else with a new
 * one. What was asked for is forgotten. */
static void connect_again(struct play *p, struct session_client *q, bool beside)
{
    struct memserver_conn *old = q->c, *next = q->c == q->conns ? q->conns + 1 : q->conns;
    if (!beside)
        memserver_hang_up(old);
    p->d.disk_stands = false;
    memserver_settle(&p->d);
    bool resumed = old->session != 0 && memserver_resume(next, old);
    must(!resumed || !old->c); /* nobody is in by two doors */
    memserver_hang_up(old);
    if (!resumed) {
        if (old->session != 0)
            memserver_hang_up(next);
        memserver_connect(next, &p->d, TIMEOUT_MS);
        q->zxid = 0;
    }
    q->c = next;
    q->keep = q->asked = q->answered = 0;
    clave__buf_clear(&q->out);
}

/* The process dies, and with it some of what was not durable; what comes up has the rest. */
static void restart(struct play *p, uint8_t how)
{
    struct server_stats before = memserver_stats(&p->d);
    struct log_replay r;
    struct buf log;
    int64_t now = p->d.now;
    for (size_t i = 0; i < SESSIONS; i++) {
        memserver_hang_up(p->clients[i].c);
        clave__buf_init(&p->clients[i].c->in, &p->d.mem, SIZE_MAX / 4);
    }
    size_t loose = p->d.log.tail - p->durable;
    log = p->d.log;
    log.tail = p->durable + (loose ? how * loose / 255 : 0);
    clave__server_free(p->d.s);
    must(memserver_open_bare(&p->d, &p->o) == CLAVE_OK);
    must(clave__server_replay_log(p->d.s, log.data, log.tail, &r) == CLAVE_OK);
    clave__buf_fini(&p->d.log);
    p->d.log = log;
    p->d.log.tail = r.valid_len;
    p->d.taken_zxid = memserver_stats(&p->d).last_zxid;
    must(p->d.taken_zxid >= before.durable_zxid && p->d.taken_zxid <= before.last_zxid);
    p->d.now = now;
    memserver_start(&p->d);
}

/* ---- the play -------------------------------------------------------------------------------- */

static void step(struct play *p, struct input *in)
{
    uint8_t what = input_byte(in), whom = input_byte(in);
    struct session_client *q = &p->clients[whom % SESSIONS];
    switch ((enum session_step)(what % SESSION_STEPS)) {
    case SESSION_REQUEST:
        request(p, q, paths[whom / SESSIONS % PATHS], in);
        break;
    case SESSION_SPLIT:
        q->keep = input_byte(in);
        break;
    case SESSION_DEAF:
        if (q->c->deaf)
            memserver_take_output(q->c);
        else
            q->c->deaf = true;
        break;
    case SESSION_AGAIN:
        connect_again(p, q, false);
        break;
    case SESSION_MOVE:
        connect_again(p, q, true);
        break;
    case SESSION_TIME:
        memserver_advance(&p->d, 100 * input_byte(in));
        break;
    case SESSION_DISK:
        p->d.disk_stands = !p->d.disk_stands;
        memserver_settle(&p->d);
        break;
    case SESSION_RESTART:
        restart(p, input_byte(in));
        break;
    case SESSION_STEPS:
        break;
    }
    if (!p->d.disk_stands)
        p->durable = p->d.log.tail;
    for (size_t i = 0; i < SESSIONS; i++)
        listen(p, &p->clients[i]);
}

/* What was heard whole is answered, and nothing is left over. */
static void end(struct play *p)
{
    p->d.disk_stands = false;
    memserver_settle(&p->d);
    recovery_check(&p->d);
    for (size_t i = 0; i < SESSIONS; i++) {
        struct session_client *q = &p->clients[i];
        q->keep = 0;
        memserver_take_output(q->c);
        say(p, q);
        listen(p, q);
        must(!q->c->c || q->answered == q->asked);
        memserver_hang_up(q->c);
        clave__buf_fini(&q->out);
    }
    must(memserver_stats(&p->d).watches == 0 && memserver_stats(&p->d).connections == 0);
    memserver_advance(&p->d, 3 * TIMEOUT_MS);
    must(memserver_stats(&p->d).sessions == 0 && memserver_stats(&p->d).ephemerals == 0);
    recovery_check(&p->d);
    memserver_close(&p->d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play p;
    struct input in = {data, size};
    memset(&p, 0, sizeof p);
    uint8_t how = input_byte(&in);
    p.o = (struct server_options){.max_output = 4096,
                                  .container_check_ms = 1000,
                                  .extended_types = how & 1,
                                  .enforce_quota = how & 2,
                                  .max_outstanding = how & 4 ? 3 : 0};
    memserver_open(&p.d, &p.o);
    for (size_t i = 0; i < SESSIONS; i++) {
        p.clients[i].c = p.clients[i].conns;
        clave__buf_init(&p.clients[i].out, &p.d.mem, SIZE_MAX / 4);
        memserver_connect(p.clients[i].c, &p.d, TIMEOUT_MS);
    }
    p.durable = p.d.log.tail;
    while (in.n > 0)
        step(&p, &in);
    end(&p);
    return 0;
}
