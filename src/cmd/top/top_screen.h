/* top_screen.h - what `clave top` shows of what is known, as lines of text. It knows no terminal:
 * each line is given to a function. */
#ifndef CLAVE_CMD_TOP_TOP_SCREEN_H
#define CLAVE_CMD_TOP_TOP_SCREEN_H

#include "cmd/top/top_feed.h"
#include "cmd/top/top_lines.h"

enum { TOP_FILTER_CAP = 256 };

/* What the user has chosen. */
struct top_screen {
    const char *connect;         /* the servers, as they were given */
    size_t rows, columns;        /* 0: no limit */
    bool ascii;                  /* other characters cannot be shown */
    size_t order;                /* index: see top_order_next */
    char filter[TOP_FILTER_CAP]; /* only paths that begin with it */
    bool typing;                 /* the filter */
    bool help;
    char *one; /* the lock whose queue is shown, owned; NULL: the list is */
    bool one_leases;
    char *chosen; /* path of the lock under the bar, owned; NULL: the first */
    bool chosen_leases;
    size_t first; /* row of the list, or of the queue, at the top */
};

void top_screen_fini(struct top_screen *s);
void top_order_next(struct top_screen *s);

/* Sorts the locks and leaves only those that the filter lets pass, at the front; returns how many
 * those are. Before the next two. */
size_t top_screen_arrange(const struct top_screen *s, struct top_view *v);
/* Moves the bar by so many of the n locks, or scrolls what has no bar. */
void top_screen_move(struct top_screen *s, const struct top_view *v, size_t n, long by);
/* Opens the lock under the bar. */
void top_screen_enter(struct top_screen *s, const struct top_view *v, size_t n);

/* The lines of a screen; `now` is wall clock. */
void top_screen_draw(struct top_screen *s, const struct top_view *v, size_t n, int64_t now,
                     top_put *put, void *arg);

#endif
