/* top_screen.h - what `clave top` shows of what is known and chosen, as lines of text. It knows no
 * terminal: each line is given to a function. */
#ifndef CLAVE_CMD_TOP_TOP_SCREEN_H
#define CLAVE_CMD_TOP_TOP_SCREEN_H

#include "cmd/top/top_lines.h"
#include "cmd/top/top_revoke.h"
#include "cmd/top/top_selection.h"

struct top_screen {
    const char *connect;  /* the servers, as they were given */
    size_t rows, columns; /* 0: no limit */
    bool ascii;           /* other characters cannot be shown */
};

/* The lines of a screen, of which `n` locks are listed; `now` is wall clock. */
struct top_shown {
    const struct top_screen *screen;
    const struct top_view *view;
    size_t n;
    const struct top_revoke *ask;
    int64_t now;
};
/* Scrolls to the bar. */
void top_screen_draw(const struct top_shown *shown, struct top_selection *c, top_put *put,
                     void *arg);

#endif
