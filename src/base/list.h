/* list.h - an intrusive doubly linked ring. Linking cannot fail, so a completion
 * that only moves entries between lists cannot fail either. */
#ifndef CLAVE_BASE_LIST_H
#define CLAVE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

/* The struct of type `type` whose member `member` is at `ptr`. */
#define LIST_ENTRY(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_push_back(struct list *head, struct list *e)
{
    e->next = head;
    e->prev = head->prev;
    head->prev->next = e;
    head->prev = e;
}

static inline void list_push_front(struct list *head, struct list *e)
{
    list_push_back(head->next, e);
}

/* Leaves `e` as an empty ring, so removing twice is harmless. */
static inline void list_remove(struct list *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
    list_init(e);
}

/* The first entry, unlinked; NULL when empty. */
static inline struct list *list_pop_front(struct list *head)
{
    struct list *e = head->next;
    if (e == head)
        return NULL;
    list_remove(e);
    return e;
}

/* Appends every entry of `from` to `to`; `from` becomes empty. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* A place in a list that changes while it is walked in pieces. Code that removes an entry of such a
 * list calls list_cursors_leave first. Entries added at the end meanwhile are found, unless the
 * walk has ended before. */
struct list_cursor {
    struct list in_cursors;
    const struct list *head; /* not looked at once `next` is NULL: it may be gone */
    struct list *next;       /* NULL: the walk has ended */
};

static inline void list_cursor_init(struct list_cursor *c)
{
    list_init(&c->in_cursors);
    c->head = NULL;
    c->next = NULL;
}

static inline void list_cursor_open(struct list_cursor *c, struct list *cursors,
                                    const struct list *head)
{
    list_remove(&c->in_cursors);
    list_push_back(cursors, &c->in_cursors);
    c->head = head;
    c->next = list_empty(head) ? NULL : head->next;
}

static inline void list_cursor_close(struct list_cursor *c)
{
    list_remove(&c->in_cursors);
    c->next = NULL;
}

/* The entry it was at, which it leaves; NULL: there is none left. */
static inline struct list *list_cursor_next(struct list_cursor *c)
{
    struct list *e = c->next;
    if (e)
        c->next = e->next == c->head ? NULL : e->next;
    return e;
}

/* Before `e` is removed: the cursors that are at it go on to the next entry. */
static inline void list_cursors_leave(const struct list *cursors, const struct list *e)
{
    for (struct list *at = cursors->next; at != cursors; at = at->next) {
        struct list_cursor *c = LIST_ENTRY(at, struct list_cursor, in_cursors);
        if (c->next == e)
            list_cursor_next(c);
    }
}

#endif
