/* deadlock_list.c - see deadlock_list.h. Called by deadlock_search.c and by the HTTP gate's model
 * of locks. What must stay true: the first member of each deadlock is the victim or, if there is
 * none, the member that completed the cycle. */
#include "recipe/deadlock/deadlock_list.h"

#include <stdint.h>

#include "recipe/deadlock/deadlock_text.h"

static const char *deadlock_list_path_of(const struct queue_scan *scan,
                                         const struct wait_step *step)
{
    return step->blocker == WAIT_NONE ? NULL : scan->queues[step->queue].path;
}

static void deadlock_list_set_member(const struct queue_scan *scan, const struct queue_snapshot *p,
                                     const struct wait_step *step, clave_deadlock_member *out)
{
    const struct queue_node *node = clave__queue_snapshot_node(p, step->queue, step->claim);
    *out = (clave_deadlock_member){
        .path = deadlock_list_path_of(scan, step),
        .node = node->path,
        .stat = node->stat,
        .identity = node->identity,
    };
    if (step->blocker != WAIT_NONE)
        out->blocker = clave__queue_snapshot_node(p, step->queue, step->blocker)->path;
}

/* The member that gives up; if none does, the one that completed the cycle. */
static size_t deadlock_list_first_of(const struct queue_snapshot *p, const struct wait_cycle *c)
{
    size_t first = 0;
    int64_t newest = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct wait_step *step = &c->steps[i];
        int64_t token = clave__queue_snapshot_node(p, step->queue, step->claim)->stat.czxid;
        if (step->blocker == WAIT_NONE || token < newest)
            continue;
        first = i;
        newest = token;
    }
    return c->victim != WAIT_NONE ? c->victim : first;
}

static clave_err deadlock_list_fill(struct deadlock_list *f, const struct queue_scan *scan,
                                    const struct queue_snapshot *p, const struct wait_verdict *v)
{
    clave_deadlock_member *at = f->members;
    for (size_t i = 0; i < v->n; i++) {
        const struct wait_cycle *c = &v->cycles[i];
        size_t first = deadlock_list_first_of(p, c);
        clave_deadlock *d = &f->list[f->n++];
        *d = (clave_deadlock){.members = at, .n = c->n, .certain = c->certain};
        d->victim = c->victim != WAIT_NONE ? 0 : c->n;
        for (size_t k = 0; k < c->n; k++)
            deadlock_list_set_member(scan, p, &c->steps[(first + k) % c->n], at++);
        d->text = clave__deadlock_text(f->mem, d);
        if (!d->text)
            return CLAVE_ENOMEM;
    }
    return CLAVE_OK;
}

clave_err clave__deadlock_list_init(struct deadlock_list *f, const struct queue_scan *scan,
                                    const struct queue_snapshot *p, const struct wait_verdict *v)
{
    *f = (struct deadlock_list){.mem = scan->mem};
    if (v->n == 0)
        return CLAVE_OK;
    f->list = clave__mem_zalloc(f->mem, v->n * sizeof *f->list);
    f->members = clave__mem_zalloc(f->mem, v->stuck * sizeof *f->members);
    clave_err err = f->list && f->members ? deadlock_list_fill(f, scan, p, v) : CLAVE_ENOMEM;
    if (err != CLAVE_OK)
        clave__deadlock_list_fini(f);
    return err;
}

void clave__deadlock_list_fini(struct deadlock_list *f)
{
    for (size_t i = 0; i < f->n; i++)
        clave__mem_free(f->mem, (void *)(uintptr_t)f->list[i].text);
    clave__mem_free(f->mem, f->list);
    clave__mem_free(f->mem, f->members);
    *f = (struct deadlock_list){.mem = f->mem};
}
