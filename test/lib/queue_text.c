#include "lib/queue_text.h"
#include "lib/unit.h"

const char *queue_text(const struct lock_queue *q)
{
    static char text[1024];
    if (!q)
        return "none";
    snprintf(text, sizeof text, "%s", clave__lock_kind_name(clave__lock_kind(q)));
    const struct {
        const char *sign;
        struct lock_node *(*after)(const struct lock_queue *q, const struct lock_node *p);
        size_t n;
    } lists[] = {
        {"", clave__lock_holder_after, q->nholders},
        {" |", clave__lock_waiter_after, clave__lock_nwaiters(q)},
        {" !", clave__lock_left_over_after, clave__lock_nleft_over(q)},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        size_t n = 0;
        if (i < 2 || lists[i].n > 0)
            strcat(text, lists[i].sign);
        for (struct lock_node *p = NULL; (p = lists[i].after(q, p)); n++) {
            size_t len = strlen(text);
            snprintf(text + len, sizeof text - len, " %d", atoi(p->name + p->number));
        }
        assert_int_equal(n, lists[i].n);
    }
    return text;
}
