/* snapshot_copy_on_write.c - see snapshot_copy_on_write.h. tree.c, session_tracker.c and acl.c
 * report what is about to change. A node is never in the file twice, and never before its parent.
 */
#include "server/store/snapshot_copy_on_write.h"

#include <assert.h>

#include "base/memory.h"
#include "server/server_internal.h"
#include "server/store/snapshot_record.h"

enum { FEW_PARENTS = 32 };

struct jwriter clave__snapshot_writer(const struct snapshot_save *v, struct buf *b)
{
    struct jwriter w = clave__jwriter(b);
    w.err = v->err;
    return w;
}

static void copy_before_session_goes(struct sessions *t, const struct session *session)
{
    struct snapshot_save *v = t->observer;
    assert(v->phase != SAVE_IDLE);
    struct jwriter w = clave__snapshot_writer(v, &v->ahead[SAVE_SESSIONS]);
    clave__snapshot_put_session(&w, session);
    v->err = w.err;
}

static void copy_before_list_goes(struct acls *t, const struct acl *list)
{
    struct snapshot_save *v = t->observer;
    assert(v->phase != SAVE_IDLE);
    struct jwriter w = clave__snapshot_writer(v, &v->ahead[SAVE_LISTS]);
    clave__snapshot_put_list(&w, list);
    v->err = w.err;
}

/* Writes a node and those above it that are not written yet, the highest first: the loader needs
 * the parent before the child. */
static void copy_with_parents(struct snapshot_save *v, struct jwriter *w, struct tree *t,
                              struct node *n)
{
    struct node *few[FEW_PARENTS], **chain = few;
    size_t depth = 0;
    for (struct node *m = n; m && m->saved != t->saved; m = m->parent)
        depth++;
    if (depth > FEW_PARENTS) {
        chain = clave__mem_alloc(t->mem, depth * sizeof(struct node *));
        w->err = chain ? w->err : CLAVE_ENOMEM;
    }
    for (size_t i = 0; i < depth; i++, n = n->parent) {
        n->saved = t->saved;
        if (chain)
            chain[i] = n;
    }
    while (chain && depth > 0)
        clave__snapshot_put_node(w, chain[--depth]);
    if (chain != few)
        clave__mem_free(t->mem, chain);
    v->err = w->err;
}

static void copy_before_node_changes(struct tree *t, struct node *n)
{
    struct snapshot_save *v = t->observer;
    assert(v->phase != SAVE_IDLE);
    struct jwriter w = clave__snapshot_writer(v, &v->ahead[SAVE_NODES]);
    copy_with_parents(v, &w, t, n);
    if (n == v->next) /* it may be about to go */
        v->next = clave__tree_next(n, t->root);
}

void clave__snapshot_copy_on_write(struct server *s, bool begin)
{
    s->sessions.before_remove = begin ? copy_before_session_goes : NULL;
    s->tree.acls.before_free = begin ? copy_before_list_goes : NULL;
    s->tree.before_change = begin ? copy_before_node_changes : NULL;
    s->sessions.observer = s->tree.acls.observer = s->tree.observer = &s->snapshot.save;
}
