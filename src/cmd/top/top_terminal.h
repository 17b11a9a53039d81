/* top_terminal.h - the terminal of `clave top`, by ncurses, which is loaded when it is needed. One
 * at a time, on one thread. */
#ifndef CLAVE_CMD_TOP_TOP_TERMINAL_H
#define CLAVE_CMD_TOP_TOP_TERMINAL_H

#include <stddef.h>

#include "cmd/top/top_lines.h"

/* Keys: bytes of what was typed, and these. */
enum top_key {
    TOP_KEY_NONE = -1,
    TOP_KEY_UP = 256,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_ERASE,
};

/* Takes the terminal. NULL, or why it cannot: valid until the next call. */
const char *top_terminal_open(void);
/* Gives it back as it was. Harmless when it is not open. */
void top_terminal_close(void);

/* Its size, which may have changed. */
void top_terminal_size(size_t *rows, size_t *columns);
/* Empties the screen; then puts lines (top_put; arg: where the next goes), then shows all. */
void top_terminal_clear(void);
void top_terminal_put(void *arg, enum top_style style, const char *line);
void top_terminal_show(void);

/* The next key that was pressed; does not wait. */
int top_terminal_key(void);

#endif
