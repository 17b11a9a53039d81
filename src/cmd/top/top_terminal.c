/* top_terminal.c - see top_terminal.h. Called by top.c. Invariant: between _open and _close the
 * terminal is ncurses'; whatever ends the verb goes through _close.
 *
 * The functions are declared here, so that the program is built without ncurses' headers. What is
 * used of them, and the numbers of keys and attributes, is the same in all of ABI 6. */
#include "cmd/top/top_terminal.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/load_library.h"

#define LIBRARY "libncursesw.so.6"
LOADS_LIBRARY(LIBRARY, "suggested", "top", "the screen of clave top");

enum {
    ATTRIBUTE_REVERSE = 1 << 18,
    ATTRIBUTE_BOLD = 1 << 21,
    ATTRIBUTE_PAIR = 1 << 8, /* the first pair of colours; the next is twice that */
    COLOR_RED = 1,
    COLOR_YELLOW = 3,
    PAIR_AMBER = 1,
    PAIR_RED = 2,
    ESCAPE_MS = 25, /* within which the rest of a key's sequence comes */
};

#define NCURSES_FUNCTIONS(F)                                                                       \
    F(int, setupterm, (const char *, int, int *))                                                  \
    F(void *, newterm, (const char *, FILE *, FILE *))                                             \
    F(void, delscreen, (void *))                                                                   \
    F(void *, newwin, (int, int, int, int))                                                        \
    F(int, delwin, (void *))                                                                       \
    F(int, endwin, (void))                                                                         \
    F(int, cbreak, (void))                                                                         \
    F(int, noecho, (void))                                                                         \
    F(int, curs_set, (int))                                                                        \
    F(int, set_escdelay, (int))                                                                    \
    F(int, resizeterm, (int, int))                                                                 \
    F(int, wresize, (void *, int, int))                                                            \
    F(int, keypad, (void *, bool))                                                                 \
    F(int, nodelay, (void *, bool))                                                                \
    F(int, werase, (void *))                                                                       \
    F(int, wmove, (void *, int, int))                                                              \
    F(int, wattrset, (void *, int))                                                                \
    F(bool, has_colors, (void))                                                                    \
    F(int, start_color, (void))                                                                    \
    F(int, use_default_colors, (void))                                                             \
    F(int, init_pair, (short, short, short))                                                       \
    F(int, waddnstr, (void *, const char *, int))                                                  \
    F(int, wrefresh, (void *))                                                                     \
    F(int, wgetch, (void *))                                                                       \
    F(char *, tigetstr, (const char *))                                                            \
    F(void *, set_curterm, (void *))                                                               \
    F(int, del_curterm, (void *))

struct ncurses {
#define NCURSES_MEMBER(type, name, arguments) type(*name) arguments;
    NCURSES_FUNCTIONS(NCURSES_MEMBER)
#undef NCURSES_MEMBER
};

static struct {
    struct ncurses lib;
    void *screen, *window; /* NULL: it is not open */
    bool colors;
    char fault[256];
} terminal;

static bool terminal_load(void)
{
    static const struct load_row wanted[] = {
#define NCURSES_ROW(type, name, arguments) {#name, offsetof(struct ncurses, name)},
        NCURSES_FUNCTIONS(NCURSES_ROW)
#undef NCURSES_ROW
    };
    const char *why;
    void *lib = clave__load(LIBRARY, &why);
    const char *missing =
        lib ? clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, &terminal.lib)
            : NULL;
    if (!lib)
        snprintf(terminal.fault, sizeof terminal.fault,
                 "cannot load ncurses, which the screen needs (--once does not): %s", why);
    else if (missing)
        snprintf(terminal.fault, sizeof terminal.fault, "%s has no function %s", LIBRARY, missing);
    return lib && !missing;
}

/* https://no-color.org: any value but none asks for none. */
static bool terminal_begin_colors(void)
{
    const char *none = getenv("NO_COLOR");
    if ((none && *none) || !terminal.lib.has_colors() || terminal.lib.start_color() != 0)
        return false;
    short ground = terminal.lib.use_default_colors() == 0 ? -1 : 0;
    return terminal.lib.init_pair(PAIR_AMBER, COLOR_YELLOW, ground) == 0 &&
           terminal.lib.init_pair(PAIR_RED, COLOR_RED, ground) == 0;
}

const char *top_terminal_open(void)
{
    assert(!terminal.screen); /* one at a time */
    const char *name = getenv("TERM");
    if (!terminal_load())
        return terminal.fault;
    int known = 0;
    bool moves = terminal.lib.setupterm(NULL, STDOUT_FILENO, &known) == 0 &&
                 terminal.lib.tigetstr("cup") != NULL;
    terminal.lib.del_curterm(terminal.lib.set_curterm(NULL)); /* a screen has its own */
    if (moves)
        terminal.screen = terminal.lib.newterm(NULL, stdout, stdin);
    if (terminal.screen)
        terminal.window = terminal.lib.newwin(0, 0, 0, 0);
    if (!terminal.window) {
        snprintf(terminal.fault, sizeof terminal.fault,
                 "this terminal (TERM=%.60s) has no screen that ncurses knows of; use --once",
                 name ? name : "");
        top_terminal_close();
        return terminal.fault;
    }
    terminal.colors = terminal_begin_colors();
    terminal.lib.cbreak();
    terminal.lib.noecho();
    terminal.lib.curs_set(0);
    terminal.lib.set_escdelay(ESCAPE_MS);
    terminal.lib.keypad(terminal.window, true);
    terminal.lib.nodelay(terminal.window, true);
    return NULL;
}

void top_terminal_close(void)
{
    if (terminal.window)
        terminal.lib.delwin(terminal.window);
    if (terminal.screen) {
        terminal.lib.endwin();
        terminal.lib.delscreen(terminal.screen);
    }
    terminal.window = terminal.screen = NULL;
}

void top_terminal_size(size_t *rows, size_t *columns)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
    *rows = known ? size.ws_row : 24;
    *columns = known ? size.ws_col : 80;
    if (*rows == 0 || !terminal.window)
        return;
    terminal.lib.resizeterm((int)*rows, (int)*columns);
    terminal.lib.wresize(terminal.window, (int)*rows, (int)*columns);
}

void top_terminal_clear(void)
{
    assert(terminal.window);
    terminal.lib.werase(terminal.window);
}

void top_terminal_put(void *arg, enum top_style style, const char *line)
{
    assert(terminal.window);
    int *row = arg, attributes = style & TOP_REVERSE ? ATTRIBUTE_REVERSE : 0;
    int pair = style & TOP_RED ? PAIR_RED : style & TOP_AMBER ? PAIR_AMBER : 0;
    if (pair && terminal.colors)
        attributes |= pair * ATTRIBUTE_PAIR;
    if (style & TOP_BOLD || (pair && !terminal.colors))
        attributes |= ATTRIBUTE_BOLD;
    terminal.lib.wattrset(terminal.window, attributes);
    if (terminal.lib.wmove(terminal.window, *row, 0) == 0)
        terminal.lib.waddnstr(terminal.window, line, -1);
    ++*row;
}

void top_terminal_show(void)
{
    assert(terminal.window);
    terminal.lib.wrefresh(terminal.window);
}

int top_terminal_key(void)
{
    assert(terminal.window);
    static const struct {
        int theirs, ours;
    } keys[] = {
        {0402, TOP_KEY_DOWN},    {0403, TOP_KEY_UP},    {0404, TOP_KEY_LEFT},
        {0406, TOP_KEY_HOME},    {0407, TOP_KEY_ERASE}, {0522, TOP_KEY_PAGE_DOWN},
        {0523, TOP_KEY_PAGE_UP}, {0527, TOP_KEY_ENTER}, {0550, TOP_KEY_END},
        {'\n', TOP_KEY_ENTER},   {'\r', TOP_KEY_ENTER}, {0x1b, TOP_KEY_ESCAPE},
        {0x7f, TOP_KEY_ERASE},   {'\b', TOP_KEY_ERASE},
    };
    int key = terminal.lib.wgetch(terminal.window);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].theirs == key)
            return keys[i].ours;
    return key < 0 ? TOP_KEY_NONE : key > 255 ? 0 : key;
}
