/* top_selection.h - what the user of `clave top` has chosen: which locks are listed, in which
 * order, the one whose queue is shown, and what is under the bar. It draws nothing. */
#ifndef CLAVE_CMD_TOP_TOP_SELECTION_H
#define CLAVE_CMD_TOP_TOP_SELECTION_H

#include "cmd/top/top_feed.h"

enum { TOP_FILTER_CAP = 256 };

enum top_listed { TOP_LOCKS_AND_ELECTIONS, TOP_LOCKS, TOP_ELECTIONS, TOP_LISTED };

struct top_selection {
    size_t order; /* see top_order.h */
    enum top_listed listed;
    char filter[TOP_FILTER_CAP]; /* only what has this in its path, holder or command */
    bool typing;                 /* the filter */
    bool help;
    char *one; /* the lock whose queue is shown, owned; NULL: the list is */
    bool one_leases;
    char *chosen; /* path of the lock under the bar, owned; NULL: the first */
    bool chosen_leases;
    char *place;  /* node under the bar in the queue of `one`, owned; NULL: the first */
    size_t first; /* row of the list, or of the queue, at the top */
};

void top_selection_fini(struct top_selection *c);

void top_selection_next_listed(struct top_selection *c);
/* "Locks and elections", ... */
const char *top_selection_listed(const struct top_selection *c);

/* Sorts the locks, those of a deadlock first, and leaves only those that are listed, at the front;
 * returns how many those are. Before all that follows. */
size_t top_selection_arrange(const struct top_selection *c, struct top_view *v);
/* The row under the bar, of the n locks or, when a queue is shown, of its places. */
size_t top_selection_at(const struct top_selection *c, const struct top_view *v, size_t n);
/* Moves the bar by so many rows. */
void top_selection_move(struct top_selection *c, const struct top_view *v, size_t n, long by);
/* Shows the queue of the lock under the bar; and the list again. */
void top_selection_enter(struct top_selection *c, const struct top_view *v, size_t n);
void top_selection_leave(struct top_selection *c);
/* Scrolls as little as it must, for the bar to be among `seen` rows of n. */
void top_selection_scroll(struct top_selection *c, size_t at, size_t seen, size_t n);

#endif
