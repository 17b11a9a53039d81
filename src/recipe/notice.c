#include "recipe/notice.h"

static void run(struct notice *n)
{
    clave__notice_withdraw(n);
    n->run(n);
}

static void on_timer(struct timer *t, int64_t now)
{
    (void)now;
    run(LIST_ENTRY(t, struct notice, timer));
}

static void on_state(struct listener *l, clave_state state, clave_err why)
{
    (void)why;
    struct notices *b = LIST_ENTRY(l, struct notices, listener);
    if (state != CLAVE_STATE_CLOSED)
        return;
    b->hold(b);
    while (!list_empty(&b->due))
        run(LIST_ENTRY(b->due.next, struct notice, link));
    b->drop(b);
}

void clave__notices_init(struct notices *b, clave_client *c, void (*hold)(struct notices *b),
                         void (*drop)(struct notices *b))
{
    b->client = c;
    b->hold = hold;
    b->drop = drop;
    list_init(&b->due);
    list_init(&b->listener.link);
    b->listener.on_state = on_state;
    clave__client_listen(c, &b->listener);
}

void clave__notices_fini(struct notices *b)
{
    clave__client_unlisten(&b->listener);
}

void clave__notice_init(struct notice *n, struct notices *b, void (*run_it)(struct notice *n))
{
    list_init(&n->link);
    clave__timer_init(&n->timer, on_timer);
    n->board = b;
    n->run = run_it;
}

void clave__notice_post(struct notice *n)
{
    list_push_back(&n->board->due, &n->link);
    clave__client_timer_set(n->board->client, &n->timer, clave__client_now(n->board->client));
}

void clave__notice_withdraw(struct notice *n)
{
    clave__client_timer_clear(n->board->client, &n->timer);
    list_remove(&n->link);
}
