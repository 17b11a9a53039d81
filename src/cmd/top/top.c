/* top.c - `clave top`: the locks and elections of a tree on a terminal, live: a client of the
 * servers as every verb, without a gate. Invariant: what is drawn is of one moment, and is drawn at
 * most every DRAW_MS unless a key is pressed. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/top/top_order.h"
#include "cmd/top/top_screen.h"
#include "cmd/top/top_terminal.h"
#include "runtime/clock.h"

enum { TOP_ONCE = FLAG_LONG, DRAW_MS = 200, AGES_MS = 1000 };

struct top {
    struct options *o;
    struct top_feed *feed;
    struct top_screen screen;
    struct top_selection choice;
    struct top_revoke ask;
    struct top_view view; /* as of the last read */
    size_t n;             /* locks that are listed */
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
            n--; /* of a character of several bytes, all */
        c->filter[n > 0 ? n - 1 : 0] = '\0';
    } else if (key >= ' ' && key < 256 && n + 1 < TOP_FILTER_CAP) {
        c->filter[n] = (char)key;
        c->filter[n + 1] = '\0';
    }
}

/* How far a key moves the bar; 0: it is none of those. */
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

/* Revoke or break: the place under the bar, or the first holder of the lock there. */
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
    else if (!c->one && at < t->n && v->locks[at].nholders > 0)
        top_revoke_begin(&t->ask, v, &v->locks[at], &v->locks[at].holder, breaks);
}

/* false: it is time to end. */
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
        c->order = top_order_next(c->order);
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
    const struct top_shown shown = {&t->screen, &t->view, t->n, &t->ask, clave__clock_wall()};
    top_screen_draw(&shown, &t->choice, put, arg);
}

static void top_draw(struct top *t)
{
    int row = 0;
    top_terminal_clear();
    top_lay_out(t, top_terminal_put, &row);
    top_terminal_show();
}

/* The next key, which may come before the screen is drawn, finds what this one has led to. */
static bool top_take_key(struct top *t, int key)
{
    bool queue = t->choice.one, asked = t->ask.open;
    bool goes_on = top_obey(t, key);
    while (t->ask.open && !asked && top_terminal_key() != TOP_KEY_NONE)
        continue; /* typed before the question was seen: no answer to it */
    if (queue != (t->choice.one != NULL))
        top_read(t); /* the loop meets its error again */
    else
        t->n = top_selection_arrange(&t->choice, &t->view);
    return goes_on;
}

/* Until there is a key, a signal or, from DRAW_MS after `drawn` on, something new; ages are drawn
 * anew in any case. A signal's number, or 0. */
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

/* ---- once ----------------------------------------------------------------------------------- */

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

/* ---- the verb ------------------------------------------------------------------------------- */

static int top_run(struct top *t, clave_client *c, bool once)
{
    t->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    clave_err err = top_feed_new(&t->feed, c, t->path, t->wakeup);
    int code = err != CLAVE_OK ? diag_err(t->o, t->path, err, c) : once ? top_once(t) : top_live(t);
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
    /* While it connected they had their default effect. The loop's thread blocks all. */
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
        "lock, /: only what contains what is typed, v: only locks, only elections, s: another\n"
        "order, r and b: revoke and break, as 'clave locks' does, h: help, q: quit. When the\n"
        "connection is lost, the first line says how long ago. Without a terminal, and with\n"
        "--once, all of them are printed as text; with --json a line for each, as GET /v1/locks\n"
        "has it. The library ncurses is loaded for the screen (Debian: libncursesw6).\n",
    .flags = flags,
    .max_args = -1,
    .run = run_top,
};
