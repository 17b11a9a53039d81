/* top.c - `clave top`: the locks and elections of a tree, live on a terminal. It is a client of the
 * servers like any verb, and needs no gate.
 *
 * The file has three parts: the terminal, through ncurses, which is loaded when it is needed;
 * revoke and break, with the question to the user; and the verb, whose loop waits for keys and
 * changes, and draws.
 *
 * What must stay true: a drawing shows a single moment, and there is at most one per DRAW_MS unless
 * a key is pressed; between top_terminal_open and top_terminal_close the terminal belongs to
 * ncurses, and however the verb ends, it calls top_terminal_close; revoke and break act on the node
 * that the question named, whatever has changed since. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/queues/locks_revoke.h"
#include "cmd/top/top_screen.h"
#include "runtime/clock.h"
#include "runtime/load_library.h"

/* ---- the terminal ---------------------------------------------------------------------------- */

/* A key is a byte that was typed, or one of these. */
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

/* ncurses' functions are declared here, so that clave can be built without its headers. These
 * functions, and the numbers of keys and attributes, are the same in all versions of ABI 6. */
#define LIBRARY "libncursesw.so.6"
LOADS_LIBRARY(LIBRARY, "suggested", "top", "the screen of clave top");

enum {
    ATTRIBUTE_REVERSE = 1 << 18,
    ATTRIBUTE_BOLD = 1 << 21,
    ATTRIBUTE_PAIR = 1 << 8, /* the first pair of colours; the second is twice this */
    COLOR_RED = 1,
    COLOR_YELLOW = 3,
    PAIR_AMBER = 1,
    PAIR_RED = 2,
    ESCAPE_MS = 25, /* within which the rest of a key's sequence arrives */
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
    void *screen, *window; /* NULL: not open */
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

/* Honours NO_COLOR (https://no-color.org): colours are off if it has any value but the empty
 * one. */
static bool terminal_begin_colors(void)
{
    const char *none = getenv("NO_COLOR");
    if ((none && *none) || !terminal.lib.has_colors() || terminal.lib.start_color() != 0)
        return false;
    short ground = terminal.lib.use_default_colors() == 0 ? -1 : 0;
    return terminal.lib.init_pair(PAIR_AMBER, COLOR_YELLOW, ground) == 0 &&
           terminal.lib.init_pair(PAIR_RED, COLOR_RED, ground) == 0;
}

/* Restores the terminal. Harmless if it is not open. */
static void top_terminal_close(void)
{
    if (terminal.window)
        terminal.lib.delwin(terminal.window);
    if (terminal.screen) {
        terminal.lib.endwin();
        terminal.lib.delscreen(terminal.screen);
    }
    terminal.window = terminal.screen = NULL;
}

/* Opens the screen. Returns NULL, or the reason why it cannot be opened, valid until the next
 * call. */
static const char *top_terminal_open(void)
{
    assert(!terminal.screen); /* there is only one */
    const char *name = getenv("TERM");
    if (!terminal_load())
        return terminal.fault;
    int known = 0;
    bool moves = terminal.lib.setupterm(NULL, STDOUT_FILENO, &known) == 0 &&
                 terminal.lib.tigetstr("cup") != NULL;
    terminal.lib.del_curterm(terminal.lib.set_curterm(NULL)); /* newterm makes one of its own */
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

/* Finds out the present size, and tells ncurses. */
static void top_terminal_size(size_t *rows, size_t *columns)
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

static void top_terminal_clear(void)
{
    assert(terminal.window);
    terminal.lib.werase(terminal.window);
}

/* A top_put. `arg` points to the number of the row, which is incremented. */
static void top_terminal_put(void *arg, enum top_style style, const char *line)
{
    assert(terminal.window);
    int *row = arg, attributes = style & TOP_REVERSE ? ATTRIBUTE_REVERSE : 0;
    int pair = style & TOP_AMBER ? PAIR_AMBER : 0;
    if (style & TOP_RED)
        pair = PAIR_RED;
    if (pair && terminal.colors)
        attributes |= pair * ATTRIBUTE_PAIR;
    if (style & TOP_BOLD || (pair && !terminal.colors))
        attributes |= ATTRIBUTE_BOLD;
    terminal.lib.wattrset(terminal.window, attributes);
    if (terminal.lib.wmove(terminal.window, *row, 0) == 0)
        terminal.lib.waddnstr(terminal.window, line, -1);
    ++*row;
}

static void top_terminal_show(void)
{
    assert(terminal.window);
    terminal.lib.wrefresh(terminal.window);
}

/* The next key that was pressed, or TOP_KEY_NONE. Does not wait. */
static int top_terminal_key(void)
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
    if (key < 0)
        return TOP_KEY_NONE;
    return key > 255 ? 0 : key;
}

/* ---- revoke and break ------------------------------------------------------------------------ */

/* Asks the user for confirmation, does what `clave locks revoke` or `clave locks break` does, and
 * keeps what they print. */
struct top_revoke {
    bool open;   /* the question is on the screen, and waits for a key */
    bool breaks; /* delete the node; otherwise ask its owner to release the lock */
    char *path, *node;
    /* The question or the outcome; NULL: nothing. Contains text of others as they wrote it. */
    char *said;
};

static void top_revoke_clear(struct top_revoke *a)
{
    free(a->path);
    free(a->node);
    free(a->said);
    *a = (struct top_revoke){.open = false};
}

static const char *top_revoke_refusal(const struct top_view *v, const struct top_lock *l,
                                      const struct top_place *p, bool breaks)
{
    if (v->stale_at)
        return "not connected: nothing can be asked now";
    if (p->left_over && !breaks)
        return "no session owns this node, so nobody can be asked; b deletes it";
    if (l->kind == LOCK_KIND_ELECTION && !breaks)
        return "this is an election: 'clave resign' asks its leader to resign";
    if (l->kind == LOCK_KIND_SLOT && !p->left_over)
        return "a slot is its owner's until 'clave slot give PATH --id ID' or "
               "'clave slot break PATH ID --reason TEXT'";
    return NULL;
}

static void top_revoke_question(FILE *to, const struct top_lock *l, const struct top_place *p,
                                bool breaks)
{
    fprintf(to, breaks ? "Delete the node of %s" : "Ask %s", p->whose);
    if (*p->task)
        fprintf(to, " (%s)", p->task);
    fprintf(to, breaks ? " at %s (%s)?" : " to release %s (%s)?", l->path, p->role);
    fputs(" y: yes, any other key: no", to);
}

/* Asks the question about a place in the queue of this lock. */
static void top_revoke_begin(struct top_revoke *a, const struct top_view *v,
                             const struct top_lock *l, const struct top_place *p, bool breaks)
{
    const char *refusal = top_revoke_refusal(v, l, p, breaks);
    size_t n;
    top_revoke_clear(a);
    FILE *to = open_memstream(&a->said, &n);
    if (!to)
        return;
    if (refusal)
        fprintf(to, "%s: %s", l->path, refusal);
    else
        top_revoke_question(to, l, p, breaks);
    if (fclose(to) != 0 || refusal)
        return;
    a->breaks = breaks;
    /* The queue of slots is below their path. */
    if (asprintf(&a->path, "%s%s", l->path, l->kind == LOCK_KIND_SLOT ? "/queue" : "") < 0)
        a->path = NULL;
    a->node = strdup(p->node);
    a->open = a->path && a->node;
}

/* What the command prints would disturb the screen, so it goes to the file `printed`. Returns the
 * exit code. */
static int top_revoke_do(const struct top_revoke *a, struct options *o, int printed)
{
    struct revoke_request request = {
        .path = a->path, .node = a->node, .breaks = a->breaks, .yes = true};
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), code = EXIT_INTERNAL;
    int err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    o->deadline_ms = 0; /* the command opens a session, which gets its own time to connect */
    if (out >= 0 && err >= 0 && dup2(printed, STDOUT_FILENO) >= 0 &&
        dup2(printed, STDERR_FILENO) >= 0)
        code = revoke_node(o, &request);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    return code;
}

/* Keeps the lines of the file as a single line or, if it is empty, `otherwise`. */
static void top_revoke_keep(struct top_revoke *a, int printed, const char *otherwise)
{
    char text[2048], *said = NULL;
    ssize_t n = pread(printed, text, sizeof text - 1, 0);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\n')
            text[i] = ' ';
    text[n > 0 ? n : 0] = '\0';
    if (n > 0)
        said = strdup(text);
    else if (asprintf(&said, "%s: %s", a->path, otherwise) < 0)
        said = NULL;
    free(a->said);
    a->said = said;
}

/* 'y' does it now, which may take as long as the time limits of `o` allow; any other key
 * cancels. */
static void top_revoke_answer(struct top_revoke *a, struct options *o, int key)
{
    assert(a->open && a->path && a->node);
    a->open = false;
    if (key != 'y') {
        top_revoke_clear(a);
        return;
    }
    int printed = memfd_create("clave-top", MFD_CLOEXEC);
    int code = printed < 0 ? EXIT_INTERNAL : top_revoke_do(a, o, printed);
    const char *otherwise = a->breaks ? "deleted" : "asked to release it";
    top_revoke_keep(a, printed, code == EXIT_OK ? otherwise : "it failed");
    if (printed >= 0)
        close(printed);
}

/* ---- the verb -------------------------------------------------------------------------------- */

enum { TOP_ONCE = FLAG_LONG, DRAW_MS = 200, AGES_MS = 1000 };

struct top {
    struct options *o;
    struct top_feed *feed;
    struct top_screen screen;
    struct top_selection choice;
    struct top_revoke ask;
    struct top_view view; /* as it was last read */
    size_t n;             /* how many locks are listed */
    const char *path;
    int wakeup, signals;
};

/* ---- keys ----------------------------------------------------------------------------------- */

static void top_type(struct top_selection *c, int key)
{
    size_t n = strlen(c->filter);
    if (key == TOP_KEY_ESCAPE)
        *c->filter = '\0';
    if (key == TOP_KEY_ESCAPE || key == TOP_KEY_ENTER) {
        c->typing = false;
    } else if (key == TOP_KEY_ERASE) {
        while (n > 0 && (c->filter[n - 1] & 0xc0) == 0x80)
            n--; /* all bytes of the last character */
        c->filter[n > 0 ? n - 1 : 0] = '\0';
    } else if (key >= ' ' && key < 256 && n + 1 < TOP_FILTER_CAP) {
        c->filter[n] = (char)key;
        c->filter[n + 1] = '\0';
    }
}

/* How many rows a key moves the bar; 0: it is not one of those keys. */
static long top_distance(const struct top *t, int key)
{
    long page = t->screen.rows > 8 ? (long)t->screen.rows - 6 : 1;
    long all = (long)(t->view.nlocks + t->view.nplaces);
    switch (key) {
    case 'k':
    case TOP_KEY_UP:
        return -1;
    case 'j':
    case TOP_KEY_DOWN:
        return 1;
    case TOP_KEY_PAGE_UP:
        return -page;
    case TOP_KEY_PAGE_DOWN:
        return page;
    case TOP_KEY_HOME:
        return -all;
    case TOP_KEY_END:
        return all;
    default:
        return 0;
    }
}

/* Begins revoke or break for the place under the bar or, in the list, for the first holder of the
 * lock under the bar. */
static void top_begin_ask(struct top *t, bool breaks)
{
    const struct top_selection *c = &t->choice;
    const struct top_view *v = &t->view;
    const struct top_lock *l = NULL;
    size_t at = top_selection_at(c, v, t->n);
    for (size_t i = 0; c->one && i < v->nlocks; i++)
        if (v->locks[i].leases == c->one_leases && strcmp(v->locks[i].path, c->one) == 0)
            l = &v->locks[i];
    if (c->one && l && at < v->nplaces)
        top_revoke_begin(&t->ask, v, l, &v->places[at], breaks);
    else if (!c->one && at < t->n && v->locks[at].nholders + v->locks[at].nleft_over > 0)
        top_revoke_begin(&t->ask, v, &v->locks[at], &v->locks[at].holder, breaks);
}

/* Handles a key. false: the user wants to quit. */
static bool top_obey(struct top *t, int key)
{
    struct top_selection *c = &t->choice;
    long by = top_distance(t, key);
    if (t->ask.open) {
        top_revoke_answer(&t->ask, t->o, key);
        return true;
    }
    top_revoke_clear(&t->ask);
    if (c->typing) {
        top_type(c, key);
        return true;
    }
    if (by != 0)
        top_selection_move(c, &t->view, t->n, by);
    else if (key == TOP_KEY_ENTER)
        top_selection_enter(c, &t->view, t->n);
    else if (key == TOP_KEY_LEFT || key == TOP_KEY_ESCAPE || key == 'u')
        top_selection_leave(c);
    else if (key == '/' && !c->one)
        c->typing = true;
    else if (key == 's')
        top_selection_next_order(c);
    else if (key == 'v')
        top_selection_next_listed(c);
    else if (key == 'r' || key == 'b')
        top_begin_ask(t, key == 'b');
    else if (key == 'h' || key == '?')
        c->help = !c->help;
    return key != 'q';
}

/* ---- the loop ------------------------------------------------------------------------------- */

static clave_err top_read(struct top *t)
{
    eventfd_t count;
    eventfd_read(t->wakeup, &count);
    top_view_fini(&t->view);
    clave_err err = top_feed_read(t->feed, t->choice.one, t->choice.one_leases, &t->view);
    if (err == CLAVE_OK)
        err = t->view.err;
    t->n = top_selection_arrange(&t->choice, &t->view);
    return err;
}

static void top_lay_out(struct top *t, top_put *put, void *arg)
{
    const struct top_shown shown = {&t->screen, &t->view, t->n, t->ask.said, clave__clock_wall()};
    top_screen_draw(&shown, &t->choice, put, arg);
}

static void top_draw(struct top *t)
{
    int row = 0;
    top_terminal_clear();
    top_lay_out(t, top_terminal_put, &row);
    top_terminal_show();
}

/* Handles a key, and brings the selection up to date at once, since the next key may come before
 * the screen is drawn again. */
static bool top_take_key(struct top *t, int key)
{
    bool queue = t->choice.one, asked = t->ask.open;
    bool goes_on = top_obey(t, key);
    while (t->ask.open && !asked && top_terminal_key() != TOP_KEY_NONE)
        continue; /* typed before the question was on the screen, so it is not an answer */
    if (queue != (t->choice.one != NULL))
        top_read(t); /* if this fails, the loop gets the same error */
    else
        t->n = top_selection_arrange(&t->choice, &t->view);
    return goes_on;
}

/* Waits for a key, a signal or, once DRAW_MS have passed since `drawn`, a change; and no longer
 * than AGES_MS, since the ages must be redrawn. Returns the number of a signal, or 0. */
static int top_wait(const struct top *t, int64_t drawn)
{
    int64_t early = drawn + DRAW_MS, late = drawn + AGES_MS;
    struct signalfd_siginfo info;
    for (;;) {
        int64_t now = clave_now();
        bool listens = now >= early;
        int64_t left = (listens ? late : early) - now;
        struct pollfd fds[] = {{.fd = t->signals, .events = POLLIN},
                               {.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = listens ? t->wakeup : -1, .events = POLLIN}};
        int n = left > 0 ? poll(fds, 3, (int)left) : 0;
        if (n > 0 && fds[0].revents && read(t->signals, &info, sizeof info) == sizeof info)
            return (int)info.ssi_signo;
        if (n > 0 && fds[1].revents & (POLLHUP | POLLERR | POLLNVAL))
            return SIGHUP;
        if (n > 0 || clave_now() >= late)
            return 0;
    }
}

static int top_follow(struct top *t)
{
    for (;;) {
        clave_err err = top_read(t);
        if (err != CLAVE_OK) {
            top_terminal_close();
            return diag_err(t->o, t->path, err, NULL);
        }
        top_draw(t);
        int signo = top_wait(t, clave_now());
        if (signo == SIGWINCH)
            top_terminal_size(&t->screen.rows, &t->screen.columns);
        else if (signo)
            return 128 + signo;
        for (int key; (key = top_terminal_key()) != TOP_KEY_NONE;)
            if (!top_take_key(t, key))
                return EXIT_OK;
    }
}

static int top_live(struct top *t)
{
    const char *fault = top_terminal_open();
    if (fault)
        return diag_end(t->o, NULL, EXIT_INTERNAL, "%s", fault);
    top_terminal_size(&t->screen.rows, &t->screen.columns);
    int code = top_follow(t);
    top_terminal_close();
    return code;
}

/* ---- once ------------------------------------------------------------------------------------ */

static void top_print(void *arg, enum top_style style, const char *line)
{
    (void)arg, (void)style;
    puts(line);
}

static int top_once(struct top *t)
{
    struct pollfd fds[] = {{.fd = t->signals, .events = POLLIN},
                           {.fd = t->wakeup, .events = POLLIN}};
    struct signalfd_siginfo info;
    int64_t until = clave_now() + t->o->timeout_ms;
    for (;;) {
        clave_err err = top_read(t);
        int64_t left = until - clave_now();
        if (err == CLAVE_OK && !t->view.loaded && left <= 0)
            err = CLAVE_ETIMEDOUT;
        if (err != CLAVE_OK)
            return diag_err(t->o, t->path, err, NULL);
        if (t->view.loaded)
            break;
        if (poll(fds, 2, (int)left) > 0 && fds[0].revents &&
            read(t->signals, &info, sizeof info) == sizeof info)
            return 128 + (int)info.ssi_signo;
    }
    if (!t->o->json) {
        top_lay_out(t, top_print, NULL);
        return EXIT_OK;
    }
    clave_err err = top_feed_json(t->feed);
    return err == CLAVE_OK ? EXIT_OK : diag_err(t->o, t->path, err, NULL);
}

static int top_run(struct top *t, clave_client *c, bool once)
{
    t->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    clave_err err = top_feed_new(&t->feed, c, t->path, t->wakeup);
    int code;
    if (err != CLAVE_OK)
        code = diag_err(t->o, t->path, err, c);
    else
        code = once ? top_once(t) : top_live(t);
    top_feed_free(t->feed);
    top_view_fini(&t->view);
    top_revoke_clear(&t->ask);
    top_selection_fini(&t->choice);
    close(t->wakeup);
    return code;
}

static int run_top(struct options *o, int argc, char **argv)
{
    struct top t = {.o = o};
    clave_client *c;
    bool once = !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        once |= id == TOP_ONCE;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 1))
        return EXIT_USAGE;
    t.path = o->argc > 0 ? o->argv[0] : "/";
    if (!connect_path_ok(o, t.path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    setlocale(LC_CTYPE, "");
    once = once || o->json;
    /* Until now, while we connected, these signals had their default action. The loop's thread
     * blocks all signals. */
    t.signals = inheritance_open_signals(once ? 0 : SIGWINCH);
    t.screen.connect = o->connect ? o->connect : "local:";
    t.screen.ascii = !once && strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    code = top_run(&t, c, once);
    connect_close(c);
    close(t.signals);
    return code;
}

static const struct flag flags[] = {
    {TOP_ONCE, "once", NULL, "print all of them as text, and end"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_top = {
    .name = "top",
    .args = "[PATH]",
    .summary = "Show who holds which lock, who leads and who waits, live",
    .text =
        "The locks and elections at and below PATH, or all: deadlocks first, then the oldest\n"
        "wait; what happens is shown as it happens. Keys: up and down, enter: the queue of a\n"
        "lock, /: only lines with the text typed, v: only locks, only elections, s: another\n"
        "order, r and b: revoke and break, as 'clave locks' does, h: help, q: quit. When the\n"
        "connection is lost, the first line says how long ago. Without a terminal, and with\n"
        "--once, all of them are printed as text; with --json a line for each, as GET /v1/locks\n"
        "has it. The library ncurses is loaded for the screen (Debian: libncursesw6).\n",
    .flags = flags,
    .max_args = -1,
    .run = run_top,
};
