#include "lib/queue_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *queue_text(const struct lock_queue *q)
{
    static char text[1024];
    if (!q)
        return "none";
    snprintf(text, sizeof text, "%s", clave__lock_kind_name(clave__lock_kind(q)));
    for (int side = 0; side < 2; side++) {
        struct lock_node *p = NULL;
        size_t n = 0, said = side == 0 ? q->nholders : clave__lock_nwaiters(q);
        while ((p = side == 0 ? clave__lock_holder_after(q, p) : clave__lock_waiter_after(q, p))) {
            size_t len = strlen(text);
            snprintf(text + len, sizeof text - len, " %d", atoi(p->name + p->number));
            n++;
        }
        assert_int_equal(n, said);
        if (side == 0)
            strcat(text, " |");
    }
    return text;
}
