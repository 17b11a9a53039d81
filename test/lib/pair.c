#include "lib/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "server/state.h"
#include "server/write.h"

enum { WALL = 1700000000, SPINS = 100000 };

/* As assert, but also in a build without asserts. */
static void must(bool fine)
{
    if (!fine)
        abort();
}

static int64_t wall(const struct pair *p)
{
    return (int64_t)WALL * 1000 + p->now + p->wall_shift;
}

static int32_t get_int(const uint8_t *b)
{
    return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

static struct pair_end *end_of(const struct server_conn *conn)
{
    return clave__server_conn_user(conn);
}

/* ---- the server's side ----------------------------------------------------------------- */

static void persist(struct pair *p)
{
    struct log_batch batch = clave__server_log_pending(p->server);
    if (batch.n == 0)
        return;
    must(clave__buf_append(&p->log, batch.p, batch.n) == CLAVE_OK);
    clave__server_log_taken(p->server);
    clave__server_durable(p->server, batch.last_zxid);
}

/* Takes what the server wants to say; to whom does not matter, each has its own queue. */
static bool collect(struct pair *p)
{
    if (!p->server)
        return false;
    persist(p);
    bool any = false;
    struct server_conn *conn;
    while ((conn = clave__server_next_ready(p->server))) {
        struct pair_end *e = end_of(conn);
        const void *out;
        size_t n;
        while ((n = clave__server_conn_output(conn, &out)) > 0) {
            must(e->severed || clave__buf_append(&e->down, out, n) == CLAVE_OK);
            clave__server_conn_sent(conn, n);
        }
        if (clave__server_conn_wants_close(conn)) {
            clave__server_conn_closed(conn);
            e->conn = NULL;
            e->closing = !e->severed;
        }
        any = true;
    }
    return any;
}

static void pose_as_member(struct server *s)
{
    struct jbytes members = clave__jbytes("server.1=a:2888:3888:participant;2181");
    struct node *n = clave__tree_find(&s->tree, clave__jbytes("/zookeeper/config"));
    uint8_t *data;
    int32_t len = members.n;
    must(n && clave__tree_copy_data(&s->tree, members, &data) == CLAVE_OK);
    clave__tree_swap_data(&s->tree, n, &data, &len);
    clave__tree_free_data(&s->tree, n, data);
}

static struct server *open_server(struct pair *p)
{
    struct server *s;
    struct server_options so = {
        .tick_ms = 1000, .seed = 1, .container_check_ms = p->o.container_check_ms};
    must(clave__server_new(&s, &so) == CLAVE_OK);
    if (clave__buf_len(&p->log) == 0) {
        uint8_t header[SERVER_LOG_HEADER];
        clave__server_log_header(header);
        must(clave__buf_append(&p->log, header, sizeof header) == CLAVE_OK);
    } else {
        struct log_replay r;
        must(clave__server_replay_log(s, clave__buf_bytes(&p->log), clave__buf_len(&p->log), &r) ==
             CLAVE_OK);
    }
    clave__server_start(s, p->now, wall(p));
    if (p->o.ensemble)
        pose_as_member(s);
    return s;
}

/* ---- one connection -------------------------------------------------------------------- */

static void forget_connection(struct pair_end *e)
{
    clave__buf_clear(&e->up);
    clave__buf_clear(&e->down);
    e->conn = NULL;
    e->severed = e->closing = e->up_shaken = e->down_shaken = false;
    e->ops_head = e->ops_tail = 0;
}

static void cut(struct pair *p, struct pair_end *e)
{
    if (!e->conn && !e->closing)
        return;
    if (e->conn)
        clave__server_conn_closed(e->conn);
    forget_connection(e);
    if (!e->frozen)
        clave_client_disconnected(e->c, p->now);
    collect(p);
}

static void dial(struct pair *p, struct pair_end *e)
{
    struct peer_addr addr = {.text = "pair"};
    forget_connection(e);
    if (p->server && !e->refused)
        e->conn = clave__server_accept(p->server, &addr, e);
    if (e->conn)
        clave_client_connected(e->c, p->now);
    else
        clave_client_disconnected(e->c, p->now);
}

/* ---- messages -------------------------------------------------------------------------- */

/* Length of the whole frame at the head, its prefix included; 0: not all there. */
static size_t whole_frame(const struct buf *b)
{
    size_t len = clave__buf_len(b);
    if (len < 4)
        return 0;
    size_t n = 4 + (size_t)get_int(clave__buf_bytes(b));
    return n <= len ? n : 0;
}

static int op_of_request(const struct pair_end *e, const uint8_t *frame)
{
    return e->up_shaken ? get_int(frame + 8) : PAIR_HANDSHAKE;
}

static int op_of_reply(const struct pair_end *e, const uint8_t *frame)
{
    if (!e->down_shaken)
        return PAIR_HANDSHAKE;
    switch (get_int(frame + 4)) {
    case XID_EVENT:
        return OP_NOTIFICATION;
    case XID_PING:
        return OP_PING;
    case XID_AUTH:
        return OP_AUTH;
    default:
        return e->ops[e->ops_head % 4096] == PAIR_CONFIG ? OP_GET_DATA : e->ops[e->ops_head % 4096];
    }
}

static bool matches(const struct pair_rule *r, size_t client, enum pair_way way, int op)
{
    return r->client == client && r->way == way && (r->op == op || r->op == PAIR_ANY);
}

/* The rule that holds for a message, or NULL. */
static struct pair_rule *judge(struct pair *p, struct pair_end *e, enum pair_way way, int op)
{
    for (size_t i = 0; i < p->nrules; i++) {
        struct pair_rule *r = &p->rules[i];
        if (!matches(r, (size_t)(e - p->end), way, op))
            continue;
        if (r->skip == 0)
            return r;
        r->skip--;
    }
    return NULL;
}

/* A client asks for it by itself, on each connection. */
static bool asks_for_config(const uint8_t *frame, size_t n)
{
    static const char path[] = "/zookeeper/config";
    enum { AT = 4 + 4 + 4, LEN = sizeof path - 1 };
    return n >= AT + 4 + LEN && get_int(frame + AT) == LEN &&
           memcmp(frame + AT + 4, path, LEN) == 0;
}

static void note_request(struct pair_end *e, int op, int32_t xid, bool config)
{
    e->up_shaken = true;
    if (op >= 0 && op < PAIR_OPS)
        e->requests[op]++;
    if (op != PAIR_HANDSHAKE && xid != XID_PING && xid != XID_AUTH)
        e->ops[e->ops_tail++ % 4096] = config ? PAIR_CONFIG : op;
    must(e->ops_tail - e->ops_head <= 4096);
}

static void note_reply(struct pair_end *e, int op, int32_t xid)
{
    e->down_shaken = true;
    if (op == OP_NOTIFICATION)
        e->events++;
    if (op != PAIR_HANDSHAKE && xid != XID_EVENT && xid != XID_PING && xid != XID_AUTH)
        e->ops_head++;
}

/* Delivers the frame at the head of one direction; false: none, or held. */
static bool carry(struct pair *p, struct pair_end *e, enum pair_way way)
{
    struct buf *b = way == PAIR_REQUEST ? &e->up : &e->down;
    size_t n = whole_frame(b);
    if (n == 0 || (way == PAIR_REQUEST && !e->conn))
        return false;
    uint8_t *frame = clave__buf_bytes(b);
    int op = way == PAIR_REQUEST ? op_of_request(e, frame) : op_of_reply(e, frame);
    struct pair_rule *rule = judge(p, e, way, op);
    enum pair_fate fate = rule ? rule->fate : PAIR_HOLD;
    if (rule && fate == PAIR_HOLD)
        return false;
    if (rule)
        *rule = p->rules[--p->nrules];
    if (rule && fate == PAIR_LOSE) {
        cut(p, e);
        return true;
    }
    /* The buffer may be cleared from inside: the frame is carried as a copy. */
    uint8_t *copy = malloc(n);
    memcpy(copy, frame, n);
    clave__buf_consume(b, n);
    if (way == PAIR_REQUEST) {
        bool config = op == OP_GET_DATA && asks_for_config(copy, n);
        note_request(e, op, get_int(copy + 4), config);
        clave__server_conn_input(e->conn, copy, n);
        collect(p);
    } else {
        note_reply(e, op, get_int(copy + 4));
        clave_client_input(e->c, p->now, copy, n);
    }
    free(copy);
    if (rule)
        cut(p, e);
    return true;
}

static bool send_up(struct pair *p, struct pair_end *e)
{
    const void *out;
    size_t n = clave_client_output(e->c, &out);
    if (n == 0 || !e->conn)
        return false;
    must(clave__buf_append(&e->up, out, n) == CLAVE_OK);
    clave_client_sent(e->c, p->now, n);
    return true;
}

static bool step(struct pair *p, struct pair_end *e)
{
    if (e->frozen)
        return false;
    unsigned wants = clave_client_wants(e->c);
    if (wants & CLAVE_WANT_HANGUP) {
        bool open = e->conn || e->closing;
        cut(p, e);
        if (!open)
            clave_client_disconnected(e->c, p->now);
        return true;
    }
    if (wants & CLAVE_WANT_DIAL) {
        dial(p, e);
        return true;
    }
    bool any = (wants & CLAVE_WANT_WRITE) && send_up(p, e);
    any = carry(p, e, PAIR_REQUEST) || any;
    any = carry(p, e, PAIR_REPLY) || any;
    if (e->closing && clave__buf_len(&e->down) == 0) {
        cut(p, e);
        any = true;
    }
    return any;
}

/* ---- time ------------------------------------------------------------------------------ */

static void pump(struct pair *p)
{
    bool any = true;
    for (unsigned spin = 0; any; spin++) {
        must(spin < SPINS);
        any = collect(p);
        for (size_t i = 0; i < p->o.clients; i++)
            any = step(p, &p->end[i]) || any;
    }
}

static void tick(struct pair *p)
{
    if (p->server)
        clave__server_tick(p->server, p->now, wall(p));
    for (size_t i = 0; i < p->o.clients; i++)
        if (!p->end[i].frozen)
            clave_client_tick(p->end[i].c, p->now);
}

static int64_t next_deadline(const struct pair *p)
{
    int64_t next = p->server ? clave__server_deadline(p->server) : INT64_MAX;
    for (size_t i = 0; i < p->o.clients; i++) {
        int64_t at = p->end[i].frozen ? INT64_MAX : clave_client_deadline(p->end[i].c);
        next = at < next ? at : next;
    }
    return next;
}

void pair_advance(struct pair *p, int64_t ms)
{
    int64_t target = p->now + ms;
    unsigned spins = 0;
    pump(p);
    for (int64_t next; (next = next_deadline(p)) <= target;) {
        spins = next > p->now ? 0 : spins + 1;
        must(spins < 1000); /* a deadline that stays due */
        p->now = next > p->now ? next : p->now;
        tick(p);
        pump(p);
    }
    p->now = target;
    tick(p);
    pump(p);
}

void pair_settle(struct pair *p)
{
    pair_advance(p, 0);
}

/* ---- what may go wrong ----------------------------------------------------------------- */

void pair_rule(struct pair *p, struct pair_rule rule)
{
    must(p->nrules < PAIR_RULES);
    p->rules[p->nrules++] = rule;
}

void pair_clear(struct pair *p)
{
    p->nrules = 0;
}

void pair_cut(struct pair *p, size_t client)
{
    cut(p, &p->end[client]);
}

void pair_refuse(struct pair *p, size_t client, bool refuse)
{
    p->end[client].refused = refuse;
    if (refuse)
        cut(p, &p->end[client]);
}

void pair_freeze(struct pair *p, size_t client, bool freeze)
{
    struct pair_end *e = &p->end[client];
    bool was_cut = e->frozen && !e->conn && !e->closing;
    e->frozen = freeze;
    if (freeze)
        return;
    /* It wakes: the time is another, and then the socket's news. */
    clave_client_tick(e->c, p->now);
    if (was_cut)
        clave_client_disconnected(e->c, p->now);
}

void pair_kill_session(struct pair *p, size_t client)
{
    const clave_client *victim = p->end[client].c;
    clave_client_options o = {
        .size = sizeof o,
        .hosts = "pair:1",
        .session_timeout_ms = p->o.timeout_ms,
        .seed = 99,
        .resume_session_id = clave_client_session_id(victim),
    };
    memcpy(o.resume_passwd, clave_client_session_passwd(victim), sizeof o.resume_passwd);
    struct pair_end *killer = &p->end[p->o.clients];
    must(p->o.clients < PAIR_CLIENTS);
    must(clave_client_new(&killer->c, &o) == CLAVE_OK);
    p->o.clients++;
    clave_client_start(killer->c, p->now);
    clave_client_close(killer->c, p->now);
    pair_settle(p);
    must(clave_client_state(killer->c) == CLAVE_STATE_CLOSED);
    cut(p, killer);
    clave_client_free(killer->c);
    p->o.clients--;
}

void pair_stop_server(struct pair *p)
{
    for (size_t i = 0; i < p->o.clients; i++)
        cut(p, &p->end[i]);
    clave__server_free(p->server);
    p->server = NULL;
}

void pair_start_server(struct pair *p)
{
    p->server = open_server(p);
}

/* ---- message by message -------------------------------------------------------------------- */

/* The operation of the request at p. */
static int op_at(const struct pair_end *e, const uint8_t *p, size_t n)
{
    int op = op_of_request(e, p);
    return op == OP_GET_DATA && asks_for_config(p, n) ? PAIR_CONFIG : op;
}

int pair_next(struct pair *p, size_t client, enum pair_way way)
{
    struct pair_end *e = &p->end[client];
    struct buf *b = way == PAIR_REQUEST ? &e->up : &e->down;
    if (way == PAIR_REQUEST && !e->severed && clave_client_wants(e->c) & CLAVE_WANT_WRITE)
        send_up(p, e);
    size_t n = whole_frame(b);
    if (n == 0 || (way == PAIR_REQUEST && !e->conn))
        return PAIR_NONE;
    const uint8_t *frame = clave__buf_bytes(b);
    if (way == PAIR_REQUEST)
        return op_at(e, frame, n);
    int op = op_of_reply(e, frame);
    return op == OP_GET_DATA ? e->ops[e->ops_head % 4096] : op;
}

void pair_pass(struct pair *p, size_t client, enum pair_way way)
{
    must(carry(p, &p->end[client], way));
}

size_t pair_under_way(struct pair *p, size_t client, const int *ops, size_t n)
{
    const struct pair_end *e = &p->end[client];
    size_t count = 0;
    if (pair_next(p, client, PAIR_REQUEST) == PAIR_NONE)
        return 0;
    const uint8_t *at = clave__buf_bytes(&e->up), *end = at + clave__buf_len(&e->up);
    for (size_t len; at < end; at += len) {
        len = 4 + (size_t)get_int(at);
        for (size_t i = 0; i < n; i++)
            count += op_at(e, at, len) == ops[i];
    }
    return count;
}

void pair_sever(struct pair *p, size_t client)
{
    struct pair_end *e = &p->end[client];
    pair_next(p, client, PAIR_REQUEST); /* all that it has said is on its way */
    e->severed = true;
    e->closing = false;
    clave__buf_clear(&e->down);
    clave_client_disconnected(e->c, p->now);
}

void pair_connect(struct pair *p, size_t client)
{
    struct pair_end *e = &p->end[client];
    if (e->closing)
        clave_client_disconnected(e->c, p->now);
    if (e->conn)
        clave__server_conn_closed(e->conn);
    forget_connection(e);
    for (unsigned spin = 0; !clave_client_is_connected(e->c); spin++) {
        bool any = clave_client_wants(e->c) & (CLAVE_WANT_DIAL | CLAVE_WANT_HANGUP);
        must(spin < SPINS);
        if (any)
            step(p, e);
        for (int way = PAIR_REQUEST; way <= PAIR_REPLY; way++)
            if (pair_next(p, client, way) == PAIR_HANDSHAKE)
                any = carry(p, e, way);
        collect(p);
        if (e->closing && clave__buf_len(&e->down) == 0)
            cut(p, e);
        else if (!any) {
            pair_tick(p, client);
        }
    }
}

void pair_tick(struct pair *p, size_t client)
{
    int64_t at = clave_client_deadline(p->end[client].c);
    p->now = at > p->now ? at : p->now;
    clave_client_tick(p->end[client].c, p->now);
}

void pair_expire(struct pair *p, size_t client)
{
    must(clave__session_expire(p->server, clave_client_session_id(p->end[client].c)) == CLAVE_OK);
    collect(p);
}

/* ---- what is to be seen ---------------------------------------------------------------- */

uint64_t pair_requests(const struct pair *p, size_t client)
{
    uint64_t sum = 0;
    for (size_t op = 0; op < PAIR_OPS; op++)
        if (op != OP_PING)
            sum += p->end[client].requests[op];
    return sum;
}

void pair_reset_counts(struct pair *p)
{
    for (size_t i = 0; i < p->o.clients; i++) {
        memset(p->end[i].requests, 0, sizeof p->end[i].requests);
        p->end[i].events = 0;
        p->end[i].nstates = 0;
    }
}

bool pair_saw(const struct pair *p, size_t client, clave_state state)
{
    for (size_t i = 0; i < p->end[client].nstates; i++)
        if (p->end[client].states[i] == state)
            return true;
    return false;
}

struct server_stats pair_stats(const struct pair *p)
{
    struct server_stats stats;
    clave__server_stats(p->server, &stats);
    return stats;
}

/* ---- life ------------------------------------------------------------------------------ */

static void on_state(clave_client *c, clave_state state, clave_err why, void *arg)
{
    (void)c;
    (void)why;
    struct pair_end *e = arg;
    if (e->nstates < PAIR_STATES)
        e->states[e->nstates++] = state;
}

static void log_line(void *arg, int level, const char *msg)
{
    (void)level;
    fprintf(stderr, "[%zu] %s\n", *(const size_t *)arg, msg);
}

static void add_client(struct pair *p, size_t i)
{
    static const size_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct pair_end *e = &p->end[i];
    char hosts[64];
    snprintf(hosts, sizeof hosts, "pair:1%s", p->o.chroot ? p->o.chroot : "");
    clave_client_options o = {
        .size = sizeof o,
        .hosts = hosts,
        .session_timeout_ms = p->o.timeout_ms,
        .margin_ms = p->o.margin_ms,
        .seed = i + 1,
        .mem = p->o.mem,
        .state_cb = on_state,
        .state_arg = e,
        .log = getenv("PAIR_LOG") ? log_line : NULL,
        .log_arg = (void *)(uintptr_t)&numbers[i % 8],
    };
    must(clave_client_new(&e->c, &o) == CLAVE_OK);
    clave_client_start(e->c, p->now);
}

struct pair *pair_new(const struct pair_options *o)
{
    struct pair *p = calloc(1, sizeof *p);
    must(p);
    p->o = *o;
    p->mem = clave__mem_or_default(NULL);
    p->now = 1000;
    clave__buf_init(&p->log, &p->mem, SIZE_MAX / 4);
    for (size_t i = 0; i < PAIR_CLIENTS; i++) {
        clave__buf_init(&p->end[i].up, &p->mem, SIZE_MAX / 4);
        clave__buf_init(&p->end[i].down, &p->mem, SIZE_MAX / 4);
    }
    p->server = open_server(p);
    for (size_t i = 0; i < o->clients; i++)
        add_client(p, i);
    pair_settle(p);
    return p;
}

void pair_free(struct pair *p)
{
    for (size_t i = 0; i < p->o.clients; i++)
        clave_client_free(p->end[i].c);
    for (size_t i = 0; i < PAIR_CLIENTS; i++) {
        if (p->end[i].conn)
            clave__server_conn_closed(p->end[i].conn);
        clave__buf_fini(&p->end[i].up);
        clave__buf_fini(&p->end[i].down);
    }
    clave__server_free(p->server);
    clave__buf_fini(&p->log);
    free(p);
}
