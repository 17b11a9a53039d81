/* deadlocks_api.c - see deadlocks_api.h. Called by routes.c. Invariant: a deadlock is shown to
 * those who may see all of its locks. */
#include "web/api/deadlocks_api.h"

#include "web/api/observe_request.h"
#include "web/http/answer.h"

static bool deadlock_is_seen(const struct web_exchange *x, const struct lock_deadlock *d,
                             const char *prefix)
{
    bool below = false;
    for (size_t i = 0; i < d->npaths; i++) {
        below = below || clave__observe_is_below(d->paths[i], prefix);
        if (!clave__observe_may_see(x, d->paths[i]))
            return false;
    }
    return below;
}

void clave__web_get_deadlocks(struct web_exchange *x)
{
    struct observe *o = clave__observe_for(x);
    struct list_request request;
    if (!o || !clave__list_request_read(x, &request))
        return;
    clave__observe_look_for_deadlocks(o);
    clave__json_open(&x->json, NULL, '{');
    clave__json_open(&x->json, "deadlocks", '[');
    for (struct list *at = o->waits.found.next; at != &o->waits.found; at = at->next) {
        const struct lock_deadlock *d = LIST_ENTRY(at, struct lock_deadlock, link);
        if (deadlock_is_seen(x, d, request.prefix))
            clave__json_number(&x->json, NULL, d->data);
    }
    clave__json_close(&x->json, ']');
    clave__json_bool(&x->json, "complete", o->waits.complete);
    clave__copy_json(&x->json, x);
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, 200);
}
