#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "lib/memnet_internal.h"
#include "server/request/request.h"
#include "server/server_internal.h"

enum { WALL = 1700000000 };

static int64_t wall(const struct memnet *p)
{
    return (int64_t)WALL * 1000 + p->now + p->wall_shift;
}

/* ---- the server ----------------------------------------------------------------------------- */

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

static struct server *open_server(struct memnet *p)
{
    struct server *s;
    struct server_options so = {.tick_ms = 1000,
                                .seed = 1,
                                .container_check_ms = p->o.container_check_ms,
                                .extended_types = p->o.extended_types,
                                .max_session_ms = p->o.max_session_ms,
                                .require_auth = p->o.require_auth};
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

/* ---- time ----------------------------------------------------------------------------------- */

static void pump(struct memnet *p)
{
    bool any = true;
    for (unsigned spin = 0; any; spin++) {
        must(spin < MEMNET_SPINS);
        any = memnet__collect(p);
        for (size_t i = 0; i < p->o.clients; i++)
            any = memnet__step(p, &p->clients[i]) || any;
    }
}

/* As a driver does, which has one timer a client: one with nothing due keeps an older time. */
static void tick(struct memnet *p)
{
    if (p->server)
        clave__server_tick(p->server, p->now, wall(p));
    for (size_t i = 0; i < p->o.clients; i++) {
        const struct memnet_client *e = &p->clients[i];
        if (e->c && !e->frozen && clave_async_client_deadline(e->c) <= p->now)
            clave_async_client_tick(e->c, p->now);
    }
}

static int64_t next_deadline(const struct memnet *p)
{
    int64_t next = p->server ? clave__server_deadline(p->server) : INT64_MAX;
    for (size_t i = 0; i < p->o.clients; i++) {
        const struct memnet_client *e = &p->clients[i];
        int64_t at = e->frozen || !e->c ? INT64_MAX : clave_async_client_deadline(e->c);
        next = at < next ? at : next;
    }
    return next;
}

void memnet_advance(struct memnet *p, int64_t ms)
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

void memnet_settle(struct memnet *p)
{
    memnet_advance(p, 0);
}

/* ---- what may go wrong ---------------------------------------------------------------------- */

void memnet_rule(struct memnet *p, struct memnet_rule rule)
{
    must(p->nrules < MEMNET_RULES);
    p->rules[p->nrules++] = rule;
}

void memnet_clear(struct memnet *p)
{
    p->nrules = 0;
}

void memnet_cut(struct memnet *p, size_t client)
{
    memnet__cut(p, &p->clients[client]);
}

void memnet_refuse(struct memnet *p, size_t client, bool refuse)
{
    p->clients[client].refused = refuse;
    if (refuse)
        memnet__cut(p, &p->clients[client]);
}

void memnet_feed_at_once(struct memnet *p, size_t client)
{
    struct memnet_client *e = &p->clients[client];
    clave_async_client_input(e->c, p->now, clave__buf_bytes(&e->down), clave__buf_len(&e->down));
    clave__buf_clear(&e->down);
}

void memnet_freeze(struct memnet *p, size_t client, bool freeze)
{
    struct memnet_client *e = &p->clients[client];
    bool was_cut = e->frozen && !e->conn && !e->closing;
    e->frozen = freeze;
    if (freeze)
        return;
    /* It wakes: the time is another, and then the socket's news. */
    clave_async_client_tick(e->c, p->now);
    if (was_cut)
        clave_async_client_disconnected(e->c, p->now);
}

void memnet_kill_session(struct memnet *p, size_t client)
{
    const clave_async_client *victim = p->clients[client].c;
    clave_client_options o = {
        .size = sizeof o,
        .hosts = "pair:1",
        .session_timeout_ms = p->o.timeout_ms,
        .seed = 99,
        .resume_session_id = clave_async_client_session_id(victim),
    };
    memcpy(o.resume_passwd, clave_async_client_session_passwd(victim), sizeof o.resume_passwd);
    struct memnet_client *killer = &p->clients[p->o.clients];
    must(p->o.clients < MEMNET_CLIENTS);
    must(clave_async_client_new(&killer->c, &o) == CLAVE_OK);
    p->o.clients++;
    clave_async_client_start(killer->c, p->now);
    clave_async_client_close(killer->c, p->now);
    memnet_settle(p);
    must(clave_async_client_state(killer->c) == CLAVE_STATE_CLOSED);
    memnet__cut(p, killer);
    clave_async_client_free(killer->c);
    p->o.clients--;
}

void memnet_stop_server(struct memnet *p)
{
    for (size_t i = 0; i < p->o.clients; i++)
        memnet__cut(p, &p->clients[i]);
    clave__server_free(p->server);
    p->server = NULL;
}

void memnet_start_server(struct memnet *p)
{
    p->server = open_server(p);
}

/* ---- what is to be seen --------------------------------------------------------------------- */

uint64_t memnet_requests(const struct memnet *p, size_t client)
{
    uint64_t sum = 0;
    for (size_t op = 0; op < MEMNET_OPS; op++)
        if (op != OP_PING)
            sum += p->clients[client].requests[op];
    return sum;
}

void memnet_reset_counts(struct memnet *p)
{
    for (size_t i = 0; i < p->o.clients; i++) {
        memset(p->clients[i].requests, 0, sizeof p->clients[i].requests);
        p->clients[i].events = 0;
        p->clients[i].nstates = 0;
    }
}

bool memnet_saw(const struct memnet *p, size_t client, clave_state state)
{
    for (size_t i = 0; i < p->clients[client].nstates; i++)
        if (p->clients[client].states[i] == state)
            return true;
    return false;
}

struct server_stats memnet_stats(const struct memnet *p)
{
    struct server_stats stats;
    clave__server_stats(p->server, &stats);
    return stats;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    (void)c;
    (void)why;
    struct memnet_client *e = arg;
    if (e->nstates < MEMNET_STATES)
        e->states[e->nstates++] = state;
}

static void log_line(void *arg, int level, const char *msg)
{
    (void)level;
    fprintf(stderr, "[%zu] %s\n", *(const size_t *)arg, msg);
}

static void add_client(struct memnet *p, size_t i)
{
    static const size_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct memnet_client *e = &p->clients[i];
    char hosts[64];
    snprintf(hosts, sizeof hosts, "pair:1%s", p->o.chroot ? p->o.chroot : "");
    clave_client_options o = {
        .size = sizeof o,
        .hosts = hosts,
        .session_timeout_ms = p->o.timeout_ms,
        .margin_ms = p->o.margin_ms,
        .seed = p->o.seed ? p->o.seed : i + 1,
        .mem = p->o.mem,
        .auths = p->o.auth,
        .nauths = p->o.auth != NULL,
        .state_cb = on_state,
        .state_arg = e,
        .log = getenv("MEMNET_LOG") ? log_line : p->o.client_log,
        .log_arg = getenv("MEMNET_LOG") ? (void *)(uintptr_t)&numbers[i % 8] : p->o.client_log_arg,
    };
    must(clave_async_client_new(&e->c, &o) == CLAVE_OK);
    clave_async_client_start(e->c, p->now);
}

size_t memnet_open(struct memnet *p, const clave_client_options *o)
{
    size_t i = 0;
    while (i < p->o.clients && p->clients[i].c)
        i++;
    must(i < MEMNET_CLIENTS);
    must(clave_async_client_new(&p->clients[i].c, o) == CLAVE_OK);
    p->o.clients = i < p->o.clients ? p->o.clients : i + 1;
    clave_async_client_start(p->clients[i].c, p->now);
    return i;
}

void memnet_close(struct memnet *p, size_t client)
{
    struct memnet_client *e = &p->clients[client];
    clave_async_client *c = e->c;
    e->c = NULL;
    clave_async_client_free(c);
    if (e->conn)
        clave__server_conn_closed(e->conn);
    memnet__forget_connection(e);
    memnet__collect(p);
}

struct memnet *memnet_new(const struct memnet_options *o)
{
    struct memnet *p = calloc(1, sizeof *p);
    must(p);
    p->o = *o;
    p->mem = clave__mem_or_default(NULL);
    p->now = 1000;
    clave__buf_init(&p->log, &p->mem, SIZE_MAX / 4);
    for (size_t i = 0; i < MEMNET_CLIENTS; i++) {
        clave__buf_init(&p->clients[i].up, &p->mem, SIZE_MAX / 4);
        clave__buf_init(&p->clients[i].down, &p->mem, SIZE_MAX / 4);
    }
    p->server = open_server(p);
    for (size_t i = 0; i < o->clients; i++)
        add_client(p, i);
    memnet_settle(p);
    return p;
}

void memnet_free(struct memnet *p)
{
    for (size_t i = 0; i < p->o.clients; i++)
        clave_async_client_free(p->clients[i].c);
    for (size_t i = 0; i < MEMNET_CLIENTS; i++) {
        if (p->clients[i].conn)
            clave__server_conn_closed(p->clients[i].conn);
        clave__buf_fini(&p->clients[i].up);
        clave__buf_fini(&p->clients[i].down);
    }
    clave__server_free(p->server);
    clave__buf_fini(&p->log);
    free(p);
}

struct memnet *memnet_of(size_t clients, int32_t timeout_ms)
{
    return memnet_new(&(struct memnet_options){.clients = clients, .timeout_ms = timeout_ms});
}

void memnet_freed(struct memnet **p)
{
    memnet_free(*p);
}
