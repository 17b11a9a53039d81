#include "net.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PIECES = 3, NO_CUT = -1 };

enum chunk_kind { CHUNK_BYTES, CHUNK_END, CHUNK_RESET };

struct chunk {
    struct list link;
    int64_t at;
    enum chunk_kind kind;
    size_t n;
    uint8_t bytes[];
};

struct pipe {
    struct alarm alarm; /* the first chunk arrives */
    struct net_link *link;
    enum net_way way;
    struct list chunks;
    int64_t newest;   /* arrival of the last chunk */
    int64_t written;  /* ever */
    int64_t arrived;  /* ever */
    int64_t cut_in;   /* bytes; NO_CUT */
    int64_t trip_at;  /* when so many have arrived, the other way is cut; NO_CUT */
    int64_t trip_cut; /* in so many bytes */
};

struct net_link {
    struct list in_links;
    struct list in_backlog;
    struct net *net;
    struct net_listener *listener;
    const struct net_route *route;
    uint64_t number;
    struct pipe pipe[2];
    struct net_socket end[2]; /* by the way it writes: the dialler, the server */
    struct alarm dial;
    bool answered; /* the dial has reached the listener */
    bool half_open;
    bool broken; /* reset: nothing written from now on arrives */
};

static struct pipe *pipe_from(const struct net_socket *s)
{
    struct net_link *l = s->link;
    return &l->pipe[s == &l->end[NET_UP] ? NET_UP : NET_DOWN];
}

/* ---- arrival ------------------------------------------------------------------------- */

static void tell(struct net_socket *s)
{
    if (!s->closed && s->callback.fn)
        s->callback.fn(s->callback.owner);
}

static void arm(struct pipe *p)
{
    struct world *w = p->link->net->w;
    if (list_empty(&p->chunks))
        world_clear(w, &p->alarm);
    else
        world_set(w, &p->alarm, LIST_ENTRY(p->chunks.next, struct chunk, link)->at);
}

static int64_t arrival(struct pipe *p)
{
    struct world *w = p->link->net->w;
    const struct net_route *route = p->link->route;
    int64_t at = w->now + route->delay_us + world_between(w, 0, route->jitter_us);
    if (at < route->stall_to[p->way])
        at = route->stall_to[p->way];
    p->newest = at > p->newest ? at : p->newest;
    return p->newest;
}

static void push(struct pipe *p, enum chunk_kind kind, const void *bytes, size_t n)
{
    struct chunk *c = world_alloc(sizeof *c + n);
    c->kind = kind;
    c->n = n;
    c->at = arrival(p);
    if (n)
        memcpy(c->bytes, bytes, n);
    list_push_back(&p->chunks, &c->link);
    if (p->chunks.next == &c->link)
        arm(p);
}

static void note_loss(const struct net_link *l, size_t n)
{
    l->net->stats.lost_bytes += n;
    if (l->route->lost)
        *l->route->lost += n;
}

static void drop_chunks(struct pipe *p)
{
    struct list *e;
    while ((e = list_pop_front(&p->chunks))) {
        struct chunk *c = LIST_ENTRY(e, struct chunk, link);
        note_loss(p->link, c->n);
        free(c);
    }
    arm(p);
}

static void end_socket(struct net_socket *s)
{
    if (s->state == NET_ENDED)
        return;
    s->state = NET_ENDED;
    tell(s);
}

/* A reset has come to this end: the kernel may have thrown away what was not read. */
static void on_reset(struct net_socket *s)
{
    if (world_chance(s->link->net->w, 500))
        clave__buf_clear(&s->inbox);
    end_socket(s);
}

/* All up to the mark has arrived: the answer will be cut. */
static void trip(struct pipe *p)
{
    if (p->trip_at == NO_CUT || p->arrived < p->trip_at)
        return;
    p->link->pipe[!p->way].cut_in = p->trip_cut;
    p->trip_at = NO_CUT;
}

static void deliver(struct pipe *p, const struct chunk *c)
{
    struct net_link *l = p->link;
    struct net_socket *to = &l->end[!p->way];
    struct world *w = l->net->w;
    if (c->kind == CHUNK_RESET)
        on_reset(to);
    else if (c->kind == CHUNK_END)
        end_socket(to);
    if (c->n == 0)
        return;
    p->arrived += (int64_t)c->n;
    l->net->stats.bytes += c->n;
    world_hash_u64(w, (uint64_t)w->now ^ l->number << 48 ^ (uint64_t)p->way << 47);
    world_hash(w, c->bytes, c->n);
    trip(p);
    if (to->closed || to->state == NET_ENDED) {
        net_reset(&l->end[p->way]); /* bytes for nobody are answered with a reset */
        return;
    }
    world_must(clave__buf_append(&to->inbox, c->bytes, c->n) == CLAVE_OK);
    tell(to);
}

static void free_link_if_unused(struct net_link *l);

static void on_arrival(struct alarm *a)
{
    struct pipe *p = LIST_ENTRY(a, struct pipe, alarm);
    struct chunk *c = LIST_ENTRY(p->chunks.next, struct chunk, link);
    list_remove(&c->link);
    arm(p);
    deliver(p, c);
    free(c);
    free_link_if_unused(p->link);
}

/* ---- writing ------------------------------------------------------------------------- */

/* The connection is gone; each end learns of it when news from the break reaches it. */
static void break_link(struct net_link *l)
{
    if (l->broken || l->half_open)
        return;
    l->broken = true;
    l->net->stats.resets++;
    push(&l->pipe[NET_UP], CHUNK_RESET, NULL, 0);
    push(&l->pipe[NET_DOWN], CHUNK_RESET, NULL, 0);
}

void net_reset(struct net_socket *s)
{
    break_link(s->link);
}

static void write_pieces(struct pipe *p, const uint8_t *bytes, size_t n)
{
    struct world *w = p->link->net->w;
    for (int i = 1; i < PIECES && p->link->route->pieces && n > 1; i++) {
        size_t piece = (size_t)world_between(w, 1, (int64_t)n);
        push(p, CHUNK_BYTES, bytes, piece);
        bytes += piece;
        n -= piece;
    }
    if (n > 0)
        push(p, CHUNK_BYTES, bytes, n);
}

void net_write(struct net_socket *s, const void *bytes, size_t n)
{
    struct net_link *l = s->link;
    struct pipe *p = pipe_from(s);
    if (l->broken || l->half_open || s->state != NET_OPEN) {
        note_loss(l, n);
        return;
    }
    size_t whole = p->cut_in != NO_CUT && (size_t)p->cut_in < n ? (size_t)p->cut_in : n;
    p->written += (int64_t)whole;
    write_pieces(p, bytes, whole);
    if (p->cut_in == NO_CUT)
        return;
    p->cut_in -= (int64_t)whole;
    if (whole < n || p->cut_in == 0) {
        note_loss(l, n - whole);
        break_link(l);
    }
}

/* ---- dialling ------------------------------------------------------------------------ */

static void on_dialled(struct alarm *a)
{
    struct net_link *l = LIST_ENTRY(a, struct net_link, dial);
    struct net_socket *s = &l->end[NET_UP];
    if (l->answered) { /* and the answer is back */
        if (!s->closed)
            s->state = l->broken ? NET_ENDED : NET_OPEN;
        tell(s);
        free_link_if_unused(l);
        return;
    }
    struct world *w = l->net->w;
    l->answered = true;
    if (w->now < l->route->unanswered_to)
        return;
    if (!l->listener->open || w->now < l->route->refuse_to) {
        l->broken = true;
    } else {
        l->end[NET_DOWN].state = NET_OPEN;
        list_push_back(&l->listener->backlog, &l->in_backlog);
        l->listener->callback.fn(l->listener->callback.owner);
    }
    world_set(w, &l->dial, w->now + l->route->delay_us);
}

static void init_pipe(struct net_link *l, enum net_way way)
{
    struct pipe *p = &l->pipe[way];
    p->alarm.fire = on_arrival;
    p->link = l;
    p->way = way;
    p->cut_in = p->trip_at = NO_CUT;
    list_init(&p->chunks);
    l->end[way].link = l;
    clave__buf_init(&l->end[way].inbox, &l->net->mem, SIZE_MAX / 4);
}

struct net_socket *net_dial(struct net *n, struct net_listener *listener,
                            const struct net_route *route, struct net_callback callback)
{
    struct net_link *l = world_alloc(sizeof *l);
    l->net = n;
    l->listener = listener;
    l->route = route;
    l->number = n->numbers++;
    l->dial.fire = on_dialled;
    init_pipe(l, NET_UP);
    init_pipe(l, NET_DOWN);
    l->end[NET_UP].callback = callback;
    l->end[NET_DOWN].closed = true; /* until it is accepted */
    list_push_back(&n->links, &l->in_links);
    list_init(&l->in_backlog);
    n->stats.dials++;
    int64_t at = n->w->now + route->delay_us + world_between(n->w, 0, route->jitter_us);
    world_set(n->w, &l->dial, at > route->stall_to[NET_UP] ? at : route->stall_to[NET_UP]);
    return &l->end[NET_UP];
}

struct net_socket *net_accept(struct net *n, struct net_listener *listener,
                              struct net_callback callback)
{
    (void)n;
    struct list *e = list_pop_front(&listener->backlog);
    if (!e)
        return NULL;
    struct net_socket *s = &LIST_ENTRY(e, struct net_link, in_backlog)->end[NET_DOWN];
    s->callback = callback;
    s->closed = false;
    return s;
}

void net_listener_init(struct net_listener *l, struct net_callback callback)
{
    *l = (struct net_listener){.callback = callback};
    list_init(&l->backlog);
}

void net_stop_listening(struct net *n, struct net_listener *l)
{
    struct net_socket *s;
    l->open = false;
    while ((s = net_accept(n, l, (struct net_callback){NULL, NULL}))) {
        net_reset(s);
        net_close(s);
    }
}

/* ---- reading, ending ----------------------------------------------------------------- */

size_t net_peek(struct net_socket *s, const void **p)
{
    *p = clave__buf_bytes(&s->inbox);
    return clave__buf_len(&s->inbox);
}

void net_read(struct net_socket *s, size_t n)
{
    clave__buf_consume(&s->inbox, n);
}

bool net_is_over(const struct net_socket *s)
{
    return s->state == NET_ENDED && clave__buf_len(&s->inbox) == 0;
}

static void free_link(struct net_link *l)
{
    struct world *w = l->net->w;
    for (int way = NET_UP; way <= NET_DOWN; way++) {
        drop_chunks(&l->pipe[way]);
        clave__buf_fini(&l->end[way].inbox);
    }
    world_clear(w, &l->dial);
    list_remove(&l->in_backlog);
    list_remove(&l->in_links);
    free(l);
}

static void free_link_if_unused(struct net_link *l)
{
    bool waits = !list_empty(&l->in_backlog) || alarm_is_set(&l->dial);
    bool flies = !list_empty(&l->pipe[NET_UP].chunks) || !list_empty(&l->pipe[NET_DOWN].chunks);
    if (l->end[NET_UP].closed && l->end[NET_DOWN].closed && !waits && !flies)
        free_link(l);
}

void net_close(struct net_socket *s)
{
    struct net_link *l = s->link;
    bool up = s->state == NET_OPEN || (s->state == NET_DIALLING && l->answered);
    bool told = up && !l->broken && !l->half_open;
    /* Closing with bytes unread is a reset, as in Linux. */
    enum chunk_kind kind = clave__buf_len(&s->inbox) > 0 ? CHUNK_RESET : CHUNK_END;
    s->closed = true;
    clave__buf_clear(&s->inbox);
    if (s == &l->end[NET_UP] && !l->answered)
        world_clear(l->net->w, &l->dial);
    if (told)
        push(pipe_from(s), kind, NULL, 0);
    s->state = NET_ENDED;
    free_link_if_unused(l);
}

/* ---- faults -------------------------------------------------------------------------- */

void net_cut_after(struct net_socket *s, size_t bytes)
{
    if (bytes == 0)
        net_reset(s);
    else
        pipe_from(s)->cut_in = (int64_t)bytes;
}

void net_lose_answer(struct net_socket *s, size_t bytes)
{
    struct pipe *p = pipe_from(s);
    p->trip_at = p->written;
    p->trip_cut = (int64_t)bytes;
    trip(p);
}

void net_break(struct net_socket *s)
{
    if (s->link->broken || s->link->half_open)
        return;
    drop_chunks(&s->link->pipe[NET_UP]);
    drop_chunks(&s->link->pipe[NET_DOWN]);
    break_link(s->link);
}

void net_forget(struct net_socket *s)
{
    s->link->half_open = true;
    drop_chunks(&s->link->pipe[NET_UP]);
    drop_chunks(&s->link->pipe[NET_DOWN]);
}

void net_heal(struct net *n)
{
    for (struct list *at = n->links.next; at != &n->links; at = at->next) {
        struct net_link *l = LIST_ENTRY(at, struct net_link, in_links);
        if (!l->half_open)
            continue;
        l->half_open = false;
        break_link(l);
    }
}

/* ---- life ---------------------------------------------------------------------------- */

void net_init(struct net *n, struct world *w)
{
    memset(n, 0, sizeof *n);
    n->w = w;
    n->mem = clave__mem_or_default(NULL);
    list_init(&n->links);
}

void net_fini(struct net *n)
{
    while (!list_empty(&n->links))
        free_link(LIST_ENTRY(n->links.next, struct net_link, in_links));
}
