/* top_lines.h - text as the lines of a screen: what may be printed of it, cut to the width, and
 * tables. It knows neither locks nor a terminal: each line is given to a function. */
#ifndef CLAVE_CMD_TOP_TOP_LINES_H
#define CLAVE_CMD_TOP_TOP_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum { TOP_COLUMNS = 7, TOP_CELL_CAP = 1024, TOP_LINE_CAP = 4096 };

/* They may be combined. What has no colour is bold instead. */
enum top_style { TOP_PLAIN, TOP_BOLD = 1, TOP_REVERSE = 2, TOP_AMBER = 4, TOP_RED = 8 };
/* Takes the next line, which has a terminating NUL and no control character. */
typedef void top_put(void *arg, enum top_style style, const char *line);

/* Where they go. */
struct top_lines {
    size_t columns; /* 0: no limit */
    bool ascii;     /* other characters cannot be shown */
    top_put *put;
    void *arg;
};

/* What is not to be printed is escaped: "\x1b". What is too long ends with a '~'. */
const char *top_lines_clean(const struct top_lines *to, const char *text, char out[TOP_CELL_CAP]);
/* A line, cut to the width; of what others wrote, only what is clean. */
void top_lines_say(const struct top_lines *to, enum top_style style, const char *text);
/* The same in as many lines as it needs; returns how many. */
size_t top_lines_wrap(const struct top_lines *to, enum top_style style, const char *text);

struct top_cells {
    char text[TOP_COLUMNS][TOP_CELL_CAP];
};
struct top_column {
    const char *title;
    bool right;  /* numbers */
    bool narrow; /* cut to a third where the screen is not wide enough for all */
};
/* A table of n rows, of which some are seen. */
struct top_table {
    const struct top_column *columns;
    void (*row)(const void *arg, size_t i, struct top_cells *out);
    enum top_style (*style)(const void *arg, size_t i);
    const void *arg;
    size_t n, first, seen, bar; /* bar: the row under it; n: none */
};

/* The titles and the rows that are seen. */
void top_lines_table(const struct top_lines *to, const struct top_table *t);

#endif
