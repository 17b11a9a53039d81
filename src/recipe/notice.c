#include "recipe/notice.h"

static void on_errand(struct errand *e)
{
    struct notice *n = LIST_ENTRY(e, struct notice, errand);
    struct notices *b = n->board;
    b->hold(b);
    n->run(n);
    b->drop(b);
}

void clave__notices_init(struct notices *b, clave_client *c, void (*hold)(struct notices *b),
                         void (*drop)(struct notices *b))
{
    *b = (struct notices){.client = c, .hold = hold, .drop = drop};
}

void clave__notice_init(struct notice *n, struct notices *b, void (*run)(struct notice *n))
{
    list_init(&n->errand.link);
    n->errand.run = on_errand;
    n->board = b;
    n->run = run;
}

void clave__notice_post(struct notice *n)
{
    clave__client_later(n->board->client, &n->errand);
}

void clave__notice_withdraw(struct notice *n)
{
    list_remove(&n->errand.link);
}
