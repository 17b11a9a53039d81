#include "replica.h"

#include <string.h>

#include "base/path.h"
#include "inspector.h"
#include "operator.h"
#include "server/connection/conn.h"
#include "server/store/txn_log.h"
#include "wire/frame.h"

/* ---- who watches is told ------------------------------------------------------------- */

struct telling {
    struct server *server;
    int64_t zxid;
};

static void tell(void *arg, struct watcher *w, const struct watch_event *ev)
{
    const struct telling *t = arg;
    clave__conn_send_event(LIST_ENTRY(w, struct server_conn, watcher), t->zxid, t->zxid, ev);
}

static void fire(struct telling *t, int32_t type, struct jbytes path)
{
    struct watch_event ev = {type, path, ++t->server->event_number};
    clave__watch_fire(&t->server->watches, &ev, tell, t);
}

static void fire_both(struct telling *t, int32_t type, struct jbytes path)
{
    struct jbytes parent = path;
    parent.n = (int32_t)clave__path_parent_len((const char *)path.p, (size_t)path.n);
    fire(t, type, path);
    fire(t, EVENT_CHILDREN_CHANGED, parent);
}

/* Each record of a change begins with its path. */
static void tell_change(struct telling *t, int32_t type, struct jreader r)
{
    switch (type) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        fire_both(t, EVENT_CREATED, clave__jget_bytes(&r));
        break;
    case OP_DELETE:
    case OP_DELETE_CONTAINER:
        fire_both(t, EVENT_DELETED, clave__jget_bytes(&r));
        break;
    case OP_SET_DATA:
        fire(t, EVENT_DATA_CHANGED, clave__jget_bytes(&r));
        break;
    default:
        break;
    }
}

static void tell_ended(struct telling *t, struct jreader r)
{
    struct jvec paths = clave__jget_strings(&r);
    struct jreader each = clave__jvec_reader(paths);
    for (int32_t i = 0; i < paths.count; i++)
        fire_both(t, EVENT_DELETED, clave__jget_bytes(&each));
}

/* One that failed has an error among its records, and has changed nothing. */
static void tell_multi(struct telling *t, struct jreader r)
{
    int32_t count = clave__jget_count(&r, 8);
    struct jreader ahead = r;
    for (int32_t i = 0; i < count; i++) {
        if (clave__jget_int(&ahead) == OP_ERROR)
            return;
        clave__jget_bytes(&ahead);
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t type = clave__jget_int(&r);
        struct jbytes record = clave__jget_bytes(&r);
        tell_change(t, type, clave__jreader(record.p, (size_t)record.n));
    }
}

/* ---- one record ---------------------------------------------------------------------- */

struct head {
    int64_t client;
    int64_t zxid;
    int32_t type;
};

static struct head get_head(struct jreader *r)
{
    struct head h;
    h.client = clave__jget_long(r);
    (void)clave__jget_int(r); /* cxid */
    h.zxid = clave__jget_long(r);
    (void)clave__jget_long(r); /* time */
    h.type = clave__jget_int(r);
    return h;
}

/* As a log of one record is recovered. */
static void replay(struct replica *r, const struct log_entry *e, const void *bytes)
{
    uint8_t header[SERVER_LOG_HEADER];
    struct log_replay done;
    struct buf file;
    clave__buf_init(&file, &r->allocator.mem, SIZE_MAX / 4);
    clave__server_log_header(header);
    world_must(clave__buf_append(&file, header, sizeof header) == CLAVE_OK);
    world_must(clave__buf_append(&file, bytes, e->n) == CLAVE_OK);
    world_must(clave__server_replay_log(r->server, clave__buf_bytes(&file), clave__buf_len(&file),
                                        &done) == CLAVE_OK);
    clave__buf_fini(&file);
    world_must(r->server->last_zxid == e->zxid);
    if (r->server->replay.digest_mismatches > 0)
        world_break(r->w, "a replica has the leader's tree", "it differs from zxid 0x%llx on",
                    (unsigned long long)e->zxid);
}

/* The session is about to go: its connection, if there is one, goes after it. */
static struct server_conn *let_go(const struct replica *r, int64_t id)
{
    struct session *s = clave__sessions_find(&r->server->sessions, id);
    struct server_conn *c = s ? s->conn : NULL;
    if (c)
        c->session = NULL;
    return c;
}

void replica_apply(struct replica *r, const struct log_entry *e, const void *bytes)
{
    struct jreader payload =
        clave__jreader((const uint8_t *)bytes + LOG_RECORD_HEAD, e->n - LOG_RECORD_HEAD - 1);
    struct head h = get_head(&payload);
    struct telling t = {r->server, h.zxid};
    struct server_conn *ended = h.type == OP_CLOSE_SESSION ? let_go(r, h.client) : NULL;
    replay(r, e, bytes);
    if (h.type == OP_CLOSE_SESSION)
        tell_ended(&t, payload);
    else if (h.type == OP_MULTI)
        tell_multi(&t, payload);
    else
        tell_change(&t, h.type, payload);
    if (ended)
        clave__conn_cut(ended);
    clave__server_durable(r->server, e->zxid);
}

void replica_enter(struct replica *r, int64_t epoch)
{
    if (r->server->last_zxid >> 32 < epoch)
        r->server->last_zxid = epoch << 32;
    clave__server_durable(r->server, r->server->last_zxid);
}

int64_t replica_zxid(const struct replica *r)
{
    return r->server->last_zxid;
}

/* ---- its clients --------------------------------------------------------------------- */

bool replica_knows(const struct replica *r, int64_t session)
{
    return clave__sessions_find(&r->server->sessions, session) != NULL;
}

static void put_handshake(struct buf *b, int64_t session)
{
    uint8_t passwd[WIRE_PASSWORD_LEN];
    clave__session_password(session, passwd);
    struct wire_connect_request q = {.timeout_ms = ENGINE_TIMEOUT_MS,
                                     .session_id = session,
                                     .passwd = clave__jbytes_n(passwd, sizeof passwd),
                                     .has_read_only = true};
    struct jwriter w = clave__jwriter(b);
    size_t begin = clave__frame_begin(&w);
    clave__wire_put_connect_request(&w, &q);
    world_must(clave__frame_end(&w, begin) == CLAVE_OK);
}

struct server_conn *replica_attach(struct replica *r, int64_t session, void *user)
{
    struct peer_addr peer = {.text = "client"};
    struct buf b;
    if (!replica_knows(r, session))
        return NULL;
    clave__buf_init(&b, &r->allocator.mem, 256);
    put_handshake(&b, session);
    struct server_conn *c = clave__server_accept(r->server, &peer, user);
    world_must(c != NULL);
    clave__server_conn_input(c, clave__buf_bytes(&b), clave__buf_len(&b));
    clave__buf_fini(&b);
    return c;
}

void replica_detach(struct replica *r, struct server_conn *c)
{
    int64_t now = r->w->now / MS;
    clave__server_conn_closed(c);
    clave__server_tick(r->server, now, now);
}

/* ---- life ---------------------------------------------------------------------------- */

void replica_start(struct replica *r, const struct server_options *o, const char *config)
{
    struct server_options mine = *o;
    int64_t now = r->w->now / MS;
    mine.mem = &r->allocator.mem;
    mine.log = NULL;
    mine.min_session_ms = mine.max_session_ms = ENGINE_TIMEOUT_MS;
    mine.container_check_ms = INT32_MAX; /* the leader sweeps */
    world_must(clave__server_new(&r->server, &mine) == CLAVE_OK);
    operator_write_config(r->server, config);
    clave__server_start(r->server, now, now);
}

void replica_end(struct replica *r)
{
    if (r->server)
        clave__server_free(r->server);
    r->server = NULL;
    if (r->allocator.blocks != 0)
        world_break(r->w, "no leak", "a member leaves %zu blocks", r->allocator.blocks);
}

void replica_init(struct replica *r, struct world *w)
{
    r->w = w;
    r->server = NULL;
    allocator_init(&r->allocator);
}

void replica_fini(struct replica *r)
{
    replica_end(r);
}
