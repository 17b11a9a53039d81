/* no_queue.c - see no_queue.h. The verbs of locks and elections call it when a queue is empty.
 * Which nodes are places in queues is the model's (observe/lock_model.h). */
#include "cmd/queues/no_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/shell_command.h"
#include "observe/lock_model.h"

/* The children: candidates, places in other queues, "leases" and "locks" of a semaphore, others;
 * "owners" and "limit", which together are slots. */
struct no_queue {
    size_t latches, places, sides, others, slots;
};

static void no_queue_count(struct no_queue *q, const char *path, const char *name)
{
    char *node = clave__path_child(NULL, path, name);
    if (strcmp(name, "leases") == 0 || strcmp(name, "locks") == 0)
        q->sides++;
    else if (strcmp(name, "owners") == 0 || strcmp(name, "limit") == 0)
        q->slots++;
    else if (clave__queue_kind_of(name) == QUEUE_LATCH)
        q->latches++;
    else if (node && clave__lock_is_place(node))
        q->places++;
    else
        q->others++;
    free(node);
}

bool no_queue_report(const struct options *o, clave_client *c, const char *path)
{
    struct no_queue q = {0};
    clave_reply *r = NULL;
    char hint[HINT_CAP];
    const char *const locks[] = {"locks", NULL}, *const one[] = {"locks", path, NULL},
                      *const slots[] = {"slot", "list", path, NULL};
    if (clave_children(c, path, o->timeout_ms, &r) == CLAVE_OK)
        for (size_t i = 0; i < r->nnames; i++)
            no_queue_count(&q, path, r->names[i]);
    clave_reply_free(r);
    bool elects = o->verb->elects;
    if (q.slots == 2) {
        diag_end(o, path, EXIT_PATH, "no %s, but slots; to see them: %s",
                 elects ? "election" : "lock", hint_command(o, slots, hint));
        return true;
    }
    q.others += q.slots;
    if (q.latches > 0 || (!elects && q.places > 0))
        return false;
    if (elects && q.places + q.sides > 0 && q.others == 0)
        diag_end(o, path, EXIT_PATH, "no election, but a lock; to see it: %s",
                 hint_command(o, one, hint));
    else if (q.others > 0)
        diag_end(o, path, EXIT_PATH,
                 "no %s: none of its children is a %s; to see all locks and elections: %s",
                 elects ? "election" : "lock", elects ? "candidate" : "place in a queue",
                 hint_command(o, locks, hint));
    else
        return false;
    return true;
}
