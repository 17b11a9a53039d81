/* handover_messages_replay.c - a run of handover.pml, on standard input, played to the contenders
 * of src/recipe and the server, message by message: what arrives in the model arrives here, and
 * nothing else does; what is lost there is lost here. Behind each step of a contender its state is
 * the model's, and it has as many requests under way. Prints the messages.
 *
 * Of what the model does not have, a client's handshake, its look at the configuration, pings,
 * removals of watches and the answers to these and to setWatches arrive as soon as it is their
 * turn. An event that the model's contender does not mind need not come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memnet.h"
#include "lib/mutex_owner.h"
#include "recipe/contender/contender.h"
#include "recipe/lock/mutex_for_recipes.h"
#include "wire/jute.h"

enum { CONTENDERS = 3, OPERATOR = CONTENDERS, NAMES = 16, NAME_CAP = 128, MANY = 2 };
static const char path[] = "/model";

struct play {
    struct memnet *p;
    struct mutex_owner owner[CONTENDERS];
    unsigned line, messages;
    /* Of an event that the model tells: it may still be nobody's. */
    bool event_due;
    unsigned event_for, event_of;
    char names[NAMES][NAME_CAP]; /* the operator's listing */
    size_t n;
};

static void fail(const struct play *p, const char *what, unsigned who, long is, long wanted)
{
    fprintf(stderr, "line %u: contender %u: %s: %ld, in the model %ld\n", p->line, who, what, is,
            wanted);
    exit(1);
}

static void expect(const struct play *p, const char *what, unsigned who, long is, long wanted)
{
    if (is != wanted)
        fail(p, what, who, is, wanted);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* In the model, as requests and as what they are answered by. */
static const struct message {
    const char *name;
    int op;
} messages[] = {
    {"CREATE", OP_CREATE2},      {"FIND", OP_GET_CHILDREN2},       {"LIST", OP_GET_CHILDREN2},
    {"CHECK", OP_EXISTS},        {"CHECKED", OP_EXISTS},           {"GET", OP_GET_DATA},
    {"DELETE", OP_DELETE},       {"SET_WATCHES", OP_SET_WATCHES2}, {"CREATED", OP_CREATE2},
    {"FOUND", OP_GET_CHILDREN2}, {"LISTED", OP_GET_CHILDREN2},     {"GOT", OP_GET_DATA},
    {"MISSING", OP_GET_DATA},    {"DELETED", OP_DELETE},           {"EVENT", OP_NOTIFICATION},
};

static int op_of(const struct play *p, const char *name)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (strcmp(name, messages[i].name) == 0)
            return messages[i].op;
    fail(p, name, 0, -1, -1);
    return MEMNET_NONE;
}

static bool is_modelled(int op, enum memnet_direction way)
{
    switch (op) {
    case OP_CREATE2:
    case OP_GET_CHILDREN2:
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_DELETE:
    case MEMNET_NONE:
        return true;
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
        return way == MEMNET_REQUEST;
    default:
        return op == OP_NOTIFICATION && way == MEMNET_REPLY;
    }
}

/* What the model does not have arrives. */
static void clear_way(struct play *p, unsigned who)
{
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++)
        while (!is_modelled(memnet_next(p->p, who, way), way))
            memnet_pass(p->p, who, way);
}

static void pass(struct play *p, unsigned who, enum memnet_direction way, const char *name)
{
    int wanted = op_of(p, name);
    clear_way(p, who);
    int op = memnet_next(p->p, who, way);
    expect(p, name, who, op == OP_SET_WATCHES ? OP_SET_WATCHES2 : op, wanted);
    memnet_pass(p->p, who, way);
    clear_way(p, who);
    p->messages++;
}

/* The number of the node that the event at the head is of; -1: there is no event. */
static long next_event(struct play *p, unsigned who)
{
    enum { HEADER = 4 + 4 + 8 + 4, TYPE_AND_STATE = 8, DIGITS = 10 };
    char digits[DIGITS + 1] = "";
    clear_way(p, who);
    if (memnet_next(p->p, who, MEMNET_REPLY) != OP_NOTIFICATION)
        return -1;
    const struct buf *b = &p->p->clients[who].down;
    const uint8_t *at = clave__buf_bytes(b) + HEADER + TYPE_AND_STATE;
    struct jreader r = clave__jreader(at, clave__buf_len(b) - HEADER - TYPE_AND_STATE);
    struct jbytes name = clave__jget_bytes(&r);
    if (r.bad || name.n < DIGITS)
        return -1;
    memcpy(digits, name.p + name.n - DIGITS, DIGITS);
    return strtol(digits, NULL, 10);
}

static void hear_event(struct play *p, bool minded)
{
    bool is_there = next_event(p, p->event_for) == (long)p->event_of;
    p->event_due = false;
    if (minded && !is_there)
        fail(p, "event", p->event_for, next_event(p, p->event_for), p->event_of);
    if (is_there)
        pass(p, p->event_for, MEMNET_REPLY, "EVENT");
}

/* ---- the operator ---------------------------------------------------------------------------- */

static void on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct play *p = arg;
    (void)c;
    p->n = res->nnames < NAMES ? res->nnames : NAMES;
    for (size_t i = 0; i < p->n; i++)
        snprintf(p->names[i], NAME_CAP, "%s/%s", path, res->names[i]);
}

static void on_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

/* Only its own messages move. */
static void operate(struct play *p)
{
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++)
        while (memnet_next(p->p, OPERATOR, way) != MEMNET_NONE)
            memnet_pass(p->p, OPERATOR, way);
}

/* Those that stand; the number of the i-th. */
static long list(struct play *p, size_t i)
{
    clave_async_children(p->p->clients[OPERATOR].c, path, NULL, on_names, p);
    operate(p);
    return i < p->n ? strtol(strrchr(p->names[i], '-') + 1, NULL, 10) : -1;
}

static void delete_node(struct play *p, unsigned node)
{
    clave_err err = CLAVE_ENONODE;
    size_t i = 0;
    while (list(p, i) >= 0 && list(p, i) != (long)node)
        i++;
    if (i < p->n)
        clave_async_delete(p->p->clients[OPERATOR].c, p->names[i], -1, on_deleted, &err);
    operate(p);
    expect(p, "deleted by the operator", OPERATOR, err, CLAVE_OK);
}

/* ---- states ---------------------------------------------------------------------------------- */

struct model_node_watch {
    int at, armed, asking;
};

struct model_state {
    char name[16];
    int own, ahead, own_seen, listing, under_way;
    struct model_node_watch node_watches[3];
};

static const struct contender *place_of(const struct play *p, unsigned who)
{
    return clave__mutex_place(p->owner[who].m, p->owner[who].owner);
}

static const char *state_of(const struct contender *c)
{
    static const char *const names[] = {
        [CONTENDER_IDLE] = "IDLE",       [CONTENDER_JOINING] = "JOINING",
        [CONTENDER_WAITING] = "WAITING", [CONTENDER_CONFIRMING] = "CONFIRMING",
        [CONTENDER_HELD] = "HELD",       [CONTENDER_LEAVING] = "LEAVING",
        [CONTENDER_ENDED] = "DONE"};
    return c ? names[c->state] : "DONE";
}

static long number_of(const struct node_watch *l)
{
    const char *at = strrchr(l->path, '-');
    return at ? strtol(at + 1, NULL, 10) : -1;
}

static void compare_node_watch(const struct play *p, unsigned who, const struct node_watch *l,
                               const struct model_node_watch *m)
{
    expect(p, "asking", who, l->asking, m->asking);
    expect(p, "armed", who, clave__node_watch_is_armed(l), m->armed);
    if (m->armed || m->asking)
        expect(p, "looks at", who, number_of(l), m->at);
}

/* Of one that has nothing to wait for any more the code keeps nothing but what is under way. */
static void compare(struct play *p, unsigned who, const struct model_state *m)
{
    static const int ops[] = {OP_CREATE2, OP_EXISTS,      OP_GET_CHILDREN2, OP_GET_DATA,
                              OP_DELETE,  OP_SET_WATCHES, OP_SET_WATCHES2};
    const struct contender *c = place_of(p, who);
    const char *state = state_of(c);
    bool left = !c && strcmp(m->name, "LEAVING") == 0;
    clear_way(p, who);
    if (strcmp(state, m->name) != 0 && !left) {
        fprintf(stderr, "%s, in the model %s: ", state, m->name);
        fail(p, "state", who, -1, -1);
    }
    if (!p->p->clients[who].severed && strcmp(m->name, "DONE") != 0)
        expect(p, "under way", who,
               (long)memnet_under_way(p->p, who, ops, sizeof ops / sizeof *ops), m->under_way);
    if (!c || c->state == CONTENDER_LEAVING || c->state <= CONTENDER_JOINING)
        return;
    expect(p, "own", who, number_of(&c->node.watch), m->own);
    if (c->state != CONTENDER_WAITING)
        return;
    expect(p, "ahead", who, c->queue.ahead < MANY ? (long)c->queue.ahead : MANY, m->ahead);
    if (p->p->clients[who].severed || p->p->clients[who].closing)
        return; /* what it asks for meanwhile goes with the next connection */
    expect(p, "own seen", who, c->node.seen, m->own_seen);
    expect(p, "listing", who, c->queue.listing, m->listing);
    compare_node_watch(p, who, &c->node.watch, &m->node_watches[0]);
    compare_node_watch(p, who, &c->queue.predecessor, &m->node_watches[1]);
    compare_node_watch(p, who, &c->queue.before_predecessor, &m->node_watches[2]);
}

/* ---- the play -------------------------------------------------------------------------------- */

/* Timers of the client itself may come before. */
static void end_pause(struct play *p, unsigned who)
{
    enum { TIMERS = 10 };
    const struct contender *c = place_of(p, who);
    for (unsigned i = 0; i < TIMERS && c && c->state == CONTENDER_IDLE; i++)
        memnet_tick(p->p, who);
}

static bool read_state(const char *text, struct model_state *m)
{
    struct model_node_watch *l = m->node_watches;
    return sscanf(text, "state %*u %15s %d %d %d %d %d %d %d %d %d %d %d %d %d %d", m->name,
                  &m->own, &m->ahead, &m->own_seen, &m->listing, &m->under_way, &l[0].at,
                  &l[0].armed, &l[0].asking, &l[1].at, &l[1].armed, &l[1].asking, &l[2].at,
                  &l[2].armed, &l[2].asking) == 15;
}

static void reply(struct play *p, unsigned who, const char *name, unsigned value)
{
    if (strcmp(name, "EXPIRED") == 0) {
        clear_way(p, who);
        expect(p, "said before the end", who, memnet_next(p->p, who, MEMNET_REPLY), MEMNET_NONE);
        memnet_connect(p->p, who);
    } else if (strcmp(name, "EVENT") == 0) {
        p->event_due = true;
        p->event_for = who;
        p->event_of = value;
    } else {
        pass(p, who, MEMNET_REPLY, name);
    }
}

static void act(struct play *p, const char *text)
{
    char what[16], name[16] = "";
    unsigned who, value = 0;
    struct model_state m;
    if (sscanf(text, "%15s %u %15s %u", what, &who, name, &value) < 2)
        fail(p, "not a step of the model", 0, -1, -1);
    if (p->event_due)
        hear_event(p, strcmp(what, "unheard") != 0);
    if (strcmp(what, "join") == 0)
        owner_begin_acquire(&p->owner[who], OWNER_FOREVER);
    else if (strcmp(what, "release") == 0)
        clave_async_mutex_release(p->owner[who].m, p->owner[who].owner, NULL, NULL);
    else if (strcmp(what, "cut") == 0)
        memnet_sever(p->p, who);
    else if (strcmp(what, "connect") == 0)
        memnet_connect(p->p, who);
    else if (strcmp(what, "timer") == 0)
        end_pause(p, who);
    else if (strcmp(what, "expire") == 0)
        memnet_expire(p->p, who);
    else if (strcmp(what, "delete") == 0)
        delete_node(p, who);
    else if (strcmp(what, "request") == 0)
        pass(p, who, MEMNET_REQUEST, name);
    else if (strcmp(what, "reply") == 0)
        reply(p, who, name, value);
    else if (strcmp(what, "state") == 0 && read_state(text, &m))
        compare(p, who, &m);
}

static void begin(struct play *p)
{
    struct memnet_options o = {.clients = CONTENDERS + 1, .timeout_ms = 20000};
    p->p = memnet_new(&o);
    memnet_create(p->p, OPERATOR, path);
    for (unsigned c = 0; c < CONTENDERS; c++)
        if (owner_open(&p->owner[c], p->p, c, path, NULL) != CLAVE_OK)
            fail(p, "no mutex", c, -1, -1);
    memnet_settle(p->p);
}

static void end(struct play *p)
{
    memnet_settle(p->p);
    expect(p, "nodes are left", OPERATOR, list(p, 0), -1);
    for (unsigned c = 0; c < CONTENDERS; c++)
        owner_close(&p->owner[c]);
    memnet_free(p->p);
}

int main(void)
{
    struct play p = {0};
    char text[512];
    begin(&p);
    while (fgets(text, sizeof text, stdin)) {
        const char *at = strstr(text, "TRACE ");
        p.line++;
        if (at)
            act(&p, at + strlen("TRACE "));
    }
    end(&p);
    printf("%u\n", p.messages);
    return p.messages > 0 ? 0 : 1;
}
