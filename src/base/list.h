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

#endif
