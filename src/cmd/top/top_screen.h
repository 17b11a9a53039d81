/* top_screen.h - what `clave top` shows: the locks and elections of a top_view, as lines of text.
 *
 * A top_selection is what the user has chosen: which locks are listed, in which order, the lock
 * whose queue is shown, and the row under the bar. Keys change it; top_screen_draw lays out a view
 * by it. Neither knows a terminal: each line is given to a function. */
#ifndef CLAVE_CMD_TOP_TOP_SCREEN_H
#define CLAVE_CMD_TOP_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/top/top_feed.h"

/* Styles may be combined. Without colours, amber and red are shown as bold. */
enum top_style { TOP_PLAIN, TOP_BOLD = 1, TOP_REVERSE = 2, TOP_AMBER = 4, TOP_RED = 8 };
/* Takes the next line, which is NUL-terminated and has no control character. */
typedef void top_put(void *arg, enum top_style style, const char *line);

/* ---- the selection --------------------------------------------------------------------------- */

enum { TOP_FILTER_CAP = 256 };

enum top_listed { TOP_LOCKS_AND_ELECTIONS, TOP_LOCKS, TOP_ELECTIONS, TOP_LISTED };

/* All zeroes: everything is listed, by the oldest wait, and the bar is on the first row. */
struct top_selection {
    size_t order; /* of those in top_screen.c; locks that two may hold come first, then deadlocked
                     ones */
    enum top_listed listed;
    char filter[TOP_FILTER_CAP]; /* only locks with this in their path, holder or command */
    bool typing;                 /* the filter is being typed */
    bool help;
    char *one; /* the lock whose queue is shown, owned; NULL: the list is shown */
    bool one_leases;
    char *chosen; /* path of the lock under the bar, owned; NULL: the first */
    bool chosen_leases;
    char *place;  /* node under the bar in the queue of `one`, owned; NULL: the first */
    size_t first; /* row of the list, or of the queue, at the top of the screen */
};

void top_selection_fini(struct top_selection *c);
void top_selection_next_listed(struct top_selection *c);
void top_selection_next_order(struct top_selection *c);

/* Moves the listed locks, sorted, to the front of the view and returns their number. Every change
 * of the view or the selection must be followed by this before the calls below. */
size_t top_selection_arrange(const struct top_selection *c, struct top_view *v);
/* The row under the bar: of the n listed locks or, if a queue is shown, of its places. */
size_t top_selection_at(const struct top_selection *c, const struct top_view *v, size_t n);
/* Moves the bar by this many rows; negative: up. */
void top_selection_move(struct top_selection *c, const struct top_view *v, size_t n, long by);
/* Shows the queue of the lock under the bar. */
void top_selection_enter(struct top_selection *c, const struct top_view *v, size_t n);
/* Shows the list again. */
void top_selection_leave(struct top_selection *c);

/* ---- the screen ------------------------------------------------------------------------------ */

struct top_screen {
    const char *connect;  /* the servers, as they were given */
    size_t rows, columns; /* 0: no limit */
    bool ascii;           /* other characters cannot be shown */
};

struct top_shown {
    const struct top_screen *screen;
    const struct top_view *view; /* arranged */
    size_t n;                    /* the locks that are listed */
    const char *said;            /* a question or its outcome, instead of the keys; NULL: none */
    int64_t now;                 /* wall clock */
};

/* Gives the lines of the screen to `put`, and scrolls to the bar. */
void top_screen_draw(const struct top_shown *shown, struct top_selection *c, top_put *put,
                     void *arg);

#endif
