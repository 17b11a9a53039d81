/* notice.h - a callback that is due: it never runs inside the call that caused it, but as an
 * errand of the client, a closed one too. */
#ifndef CLAVE_RECIPE_NOTICE_H
#define CLAVE_RECIPE_NOTICE_H

#include "base/list.h"
#include "core/client.h"

struct notice {
    struct errand errand;
    struct notices *board;
    void (*run)(struct notice *n); /* may free it */
};

/* Those of one recipe object; the struct must stay where it is. */
struct notices {
    clave_client *client;
    /* Around each of them: the object must outlive it. */
    void (*hold)(struct notices *b);
    void (*drop)(struct notices *b);
};

void clave__notices_init(struct notices *b, clave_client *c, void (*hold)(struct notices *b),
                         void (*drop)(struct notices *b));

void clave__notice_init(struct notice *n, struct notices *b, void (*run)(struct notice *n));
void clave__notice_post(struct notice *n);
/* It will not run; nothing when it is not due. */
void clave__notice_withdraw(struct notice *n);

#endif
