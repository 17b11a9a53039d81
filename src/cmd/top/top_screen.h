/* top_screen.h - what `clave top` shows: the locks and elections of a top_view, as lines of text.
 *
 * A top_selection is what the user has chosen: which locks are listed and in which order, the lock
 * whose queue is shown, and the row under the bar. Keys change it, and top_screen_draw lays out a
 * view accordingly. Neither knows about terminals: each line is passed to a function. */
#ifndef CLAVE_CMD_TOP_TOP_SCREEN_H
#define CLAVE_CMD_TOP_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/top/top_feed.h"

/* Styles may be combined. Without colours, amber and red appear as bold. */
enum top_style { TOP_PLAIN, TOP_BOLD = 1, TOP_REVERSE = 2, TOP_AMBER = 4, TOP_RED = 8 };
/* Takes the next line, which ends with a NUL and contains no control characters. */
typedef void top_put(void *arg, enum top_style style, const char *line);

/* ---- the selection --------------------------------------------------------------------------- */

enum { TOP_FILTER_CAP = 256 };

enum top_listed { TOP_LOCKS_AND_ELECTIONS, TOP_LOCKS, TOP_ELECTIONS, TOP_LISTED };

/* All zeros: everything is listed, the longest wait first, and the bar is on the first row. */
struct top_selection {
    /* Index into `orders` of top_screen.c. Locks that two may hold always come first, then
     * deadlocked ones. */
    size_t order;
    enum top_listed listed;
    /* list only locks with this text in their path, holder or command */
    char filter[TOP_FILTER_CAP];
    bool typing; /* the user is typing the filter */
    bool help;
    char *one; /* lock whose queue is shown; owned. NULL: the list is shown */
    bool one_leases;
    char *chosen; /* path of the lock under the bar; owned. NULL: the first */
    bool chosen_leases;
    char *place;  /* node under the bar in the queue of `one`; owned. NULL: the first */
    size_t first; /* row at the top of the screen, in the list or in the queue */
};

void top_selection_fini(struct top_selection *c);
void top_selection_next_listed(struct top_selection *c);
void top_selection_next_order(struct top_selection *c);

/* Moves the locks to be listed to the front of the view, sorted, and returns their number. To be
 * called after every change of the view or of the selection, before the functions below. */
size_t top_selection_arrange(const struct top_selection *c, struct top_view *v);
/* The row under the bar, among the `n` listed locks or, if a queue is shown, among its places. */
size_t top_selection_at(const struct top_selection *c, const struct top_view *v, size_t n);
/* Moves the bar by `by` rows; negative: up. */
void top_selection_move(struct top_selection *c, const struct top_view *v, size_t n, long by);
/* Shows the queue of the lock under the bar. */
void top_selection_enter(struct top_selection *c, const struct top_view *v, size_t n);
/* Goes back to the list. */
void top_selection_leave(struct top_selection *c);

/* ---- the screen ------------------------------------------------------------------------------ */

struct top_screen {
    const char *connect;  /* the servers as the user gave them */
    size_t rows, columns; /* 0: no limit */
    bool ascii;           /* only ASCII can be shown */
};

struct top_shown {
    const struct top_screen *screen;
    const struct top_view *view; /* must be arranged */
    size_t n;                    /* how many locks are listed */
    const char *said;            /* a question or its outcome, in place of the keys; NULL: none */
    int64_t now;                 /* wall clock */
};

/* Sends the lines of the screen to `put`. Scrolls so that the bar is visible. */
void top_screen_draw(const struct top_shown *shown, struct top_selection *c, top_put *put,
                     void *arg);

#endif
