/* top_screen.c - see top_screen.h. Called by top.c. Invariant: what others wrote reaches a line
 * through top_lines_clean only, so a line has nothing that a terminal would obey. */
#include "cmd/top/top_screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "cmd/cli/format.h"
#include "cmd/queue/participant_text.h"

/* A screen being drawn. */
struct top_drawing {
    struct top_screen *s;
    const struct top_view *v;
    size_t n;    /* locks that the filter lets pass */
    int64_t now; /* of the view, if that is older */
    struct top_lines to;
};

void top_screen_fini(struct top_screen *s)
{
    free(s->one);
    free(s->chosen);
}

/* ---- the order ------------------------------------------------------------------------------ */

/* -1 is "none", which comes last. */
static int top_compare_times(int64_t a, int64_t b)
{
    if (a == b)
        return 0;
    return a < 0 ? 1 : b < 0 ? -1 : a < b ? -1 : 1;
}

static int top_by_path(const void *a, const void *b)
{
    const struct top_lock *one = a, *other = b;
    int cmp = strcmp(one->path, other->path);
    return cmp ? cmp : one->leases - other->leases;
}

static int top_by_held(const void *a, const void *b)
{
    const struct top_lock *one = a, *other = b;
    int cmp = top_compare_times(one->holder.since, other->holder.since);
    return cmp ? cmp : top_by_path(a, b);
}

static int top_by_waiters(const void *a, const void *b)
{
    const struct top_lock *one = a, *other = b;
    if (one->nwaiters != other->nwaiters)
        return one->nwaiters > other->nwaiters ? -1 : 1;
    int cmp = top_compare_times(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_by_held(a, b);
}

/* As the page at /ui/: the worst first. */
static int top_by_wait(const void *a, const void *b)
{
    const struct top_lock *one = a, *other = b;
    int cmp = top_compare_times(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_by_waiters(a, b);
}

static const struct {
    const char *name;
    int (*compare)(const void *a, const void *b);
} orders[] = {{"oldest wait", top_by_wait},
              {"waiters", top_by_waiters},
              {"held longest", top_by_held},
              {"path", top_by_path}};

void top_order_next(struct top_screen *s)
{
    s->order = (s->order + 1) % (sizeof orders / sizeof *orders);
}

size_t top_screen_arrange(const struct top_screen *s, struct top_view *v)
{
    size_t n = 0, len = strlen(s->filter);
    for (size_t i = 0; i < v->nlocks; i++) {
        if (strncmp(v->locks[i].path, s->filter, len) != 0)
            continue;
        struct top_lock l = v->locks[n];
        v->locks[n++] = v->locks[i];
        v->locks[i] = l;
    }
    if (n > 1)
        qsort(v->locks, n, sizeof *v->locks, orders[s->order].compare);
    return n;
}

/* ---- the bar -------------------------------------------------------------------------------- */

/* The lock under it; when that is gone, the one in its place at the top of the screen. */
static size_t top_chosen(const struct top_screen *s, const struct top_view *v, size_t n)
{
    for (size_t i = 0; s->chosen && i < n; i++)
        if (v->locks[i].leases == s->chosen_leases && strcmp(v->locks[i].path, s->chosen) == 0)
            return i;
    return s->first < n ? s->first : n ? n - 1 : 0;
}

static void top_keep_path(char **to, const char *path)
{
    char *copy = strdup(path);
    free(*to);
    *to = copy;
}

static size_t top_moved(size_t at, size_t n, long by)
{
    size_t step = by < 0 ? (size_t)-by : (size_t)by;
    if (by < 0)
        return at > step ? at - step : 0;
    return at + step < n ? at + step : n ? n - 1 : 0;
}

void top_screen_move(struct top_screen *s, const struct top_view *v, size_t n, long by)
{
    if (s->one) {
        s->first = top_moved(s->first, v->nplaces, by);
        return;
    }
    size_t at = top_moved(top_chosen(s, v, n), n, by);
    if (at >= n)
        return;
    s->chosen_leases = v->locks[at].leases;
    top_keep_path(&s->chosen, v->locks[at].path);
}

void top_screen_enter(struct top_screen *s, const struct top_view *v, size_t n)
{
    size_t at = top_chosen(s, v, n);
    if (s->one || at >= n)
        return;
    s->one_leases = v->locks[at].leases;
    top_keep_path(&s->one, v->locks[at].path);
    top_keep_path(&s->chosen, v->locks[at].path);
    s->chosen_leases = s->one_leases;
    s->first = 0;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static const char dash[] = "-";

static void top_age(const struct top_place *p, int64_t now, char out[TOP_CELL_CAP])
{
    char age[AGE_CAP];
    snprintf(out, TOP_CELL_CAP, "%s%s", p->at_most ? "<" : "",
             p->since < 0 ? dash : age_format(now - p->since, age));
}

static const struct top_column list_columns[TOP_COLUMNS] = {
    {"LOCK", false, true},    {"KIND", false, false},   {"HOLDER", false, true},
    {"HELD", true, false},    {"WAITING", true, false}, {"OLDEST", true, false},
    {"COMMAND", false, false}};

/* NULL: not known. */
static const char *top_host(const struct top_place *p)
{
    return p->unreadable ? "(not readable)" : p->host;
}

static void top_who(const struct top_drawing *d, const struct top_place *p, size_t more,
                    char out[TOP_CELL_CAP])
{
    char who[TOP_LINE_CAP], pid[32] = "", others[32] = "";
    if (p->pid)
        snprintf(pid, sizeof pid, " pid %" PRId64, p->pid);
    if (more)
        snprintf(others, sizeof others, " +%zu", more);
    const char *host = top_host(p);
    snprintf(who, sizeof who, "%s%s%s", host ? host : "unnamed", pid, others);
    top_lines_clean(&d->to, who, out);
}

static void top_list_row(const void *arg, size_t i, struct top_cells *out)
{
    const struct top_drawing *d = arg;
    const struct top_lock *l = &d->v->locks[i];
    const struct top_place *p = l->nholders ? &l->holder : NULL;
    char age[AGE_CAP];
    top_lines_clean(&d->to, l->path, out->text[0]);
    strcpy(out->text[1], l->kind);
    strcpy(out->text[2], dash);
    strcpy(out->text[3], dash);
    strcpy(out->text[6], dash);
    if (p) {
        top_who(d, p, l->nholders - 1, out->text[2]);
        top_age(p, d->now, out->text[3]);
    }
    if (p && p->command)
        top_lines_clean(&d->to, p->command, out->text[6]);
    snprintf(out->text[4], TOP_CELL_CAP, "%zu", l->nwaiters);
    snprintf(out->text[5], TOP_CELL_CAP, "%s",
             l->waiting_since < 0 ? dash : age_format(d->now - l->waiting_since, age));
}

static const struct top_column queue_columns[TOP_COLUMNS] = {
    {"#", true, false},     {"ROLE", false, false}, {"WHO", false, true},     {"PID", true, false},
    {"SINCE", true, false}, {"TOKEN", true, false}, {"COMMAND", false, false}};

static void top_queue_row(const void *arg, size_t i, struct top_cells *out)
{
    const struct top_drawing *d = arg;
    const struct top_place *p = &d->v->places[i];
    snprintf(out->text[0], TOP_CELL_CAP, "%zu", i);
    strcpy(out->text[1], p->role);
    const char *host = top_host(p);
    top_lines_clean(&d->to, host ? host : dash, out->text[2]);
    snprintf(out->text[3], TOP_CELL_CAP, "%" PRId64, p->pid);
    if (!p->pid)
        strcpy(out->text[3], dash);
    top_age(p, d->now, out->text[4]);
    snprintf(out->text[5], TOP_CELL_CAP, "%" PRId64, p->token);
    if (p->unreadable)
        strcpy(out->text[5], dash);
    top_lines_clean(&d->to, p->command ? p->command : dash, out->text[6]);
}

/* ---- the screen ----------------------------------------------------------------------------- */

static size_t top_draw_head(const struct top_drawing *d)
{
    const struct top_screen *s = d->s;
    const struct top_view *v = d->v;
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP], age[AGE_CAP];
    size_t held = 0, waiting = 0, lines = 2;
    int64_t oldest = -1;
    for (size_t i = 0; i < d->n; i++) {
        held += v->locks[i].nholders > 0;
        waiting += v->locks[i].nwaiters;
        if (top_compare_times(v->locks[i].waiting_since, oldest) < 0)
            oldest = v->locks[i].waiting_since;
    }
    snprintf(text, sizeof text, "clave top  %.800s  %s%.250s%s",
             top_lines_clean(&d->to, s->connect, clean), v->stale_at ? "not connected" : "on ",
             v->stale_at ? "" : v->server,
             v->stale_at    ? ""
             : v->read_only ? ", read-only"
                            : ", read-write");
    top_lines_say(&d->to, TOP_BOLD, text);
    snprintf(text, sizeof text, "%zu held, %zu waiting, oldest wait %s, %zu deadlock%s%s%s", held,
             waiting, oldest < 0 ? dash : age_format(d->now - oldest, age), v->ndeadlocks,
             clave__plural(v->ndeadlocks), *s->filter && !s->typing ? ", below " : "",
             s->typing ? "" : top_lines_clean(&d->to, s->filter, clean));
    top_lines_say(&d->to, TOP_PLAIN, text);
    if (v->partial)
        top_lines_say(&d->to, TOP_REVERSE, "There are more nodes than there is room for."), lines++;
    if (v->hidden)
        top_lines_say(&d->to, TOP_PLAIN,
                      "Some nodes may not be read: locks below them are not seen."),
            lines++;
    for (size_t i = 0; i < v->ndeadlocks && i < 3; i++, lines++) {
        snprintf(text, sizeof text, "DEADLOCK: %s",
                 top_lines_clean(&d->to, v->deadlocks[i], clean));
        top_lines_say(&d->to, TOP_BOLD, text);
    }
    return lines;
}

static void top_draw_keys(const struct top_drawing *d)
{
    const struct top_screen *s = d->s;
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    if (s->typing)
        snprintf(text, sizeof text, "paths that begin with: %s_",
                 top_lines_clean(&d->to, s->filter, clean));
    else if (s->one)
        snprintf(text, sizeof text, "q quit  left back  h help");
    else
        snprintf(text, sizeof text,
                 "q quit  up/down choose  enter queue  / filter  s sort: %s  h help",
                 orders[s->order].name);
    top_lines_say(&d->to, s->typing ? TOP_BOLD : TOP_PLAIN, text);
}

static void top_draw_help(const struct top_drawing *d)
{
    static const char *const lines[] = {
        "up, k        the lock before",
        "down, j      the next lock",
        "page keys    a screen further; home, end: the first, the last",
        "enter        the queue of the lock; left, u, escape: back to the list",
        "/            show only locks whose paths begin so; enter: done, escape: all",
        "s            sort by oldest wait, waiters, longest held, path",
        "h, ?         this help",
        "q            quit",
        "",
        "HELD         how long it has been held; <: at most",
        "WAITING      how many wait; OLDEST: how long the first of them has",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        top_lines_say(&d->to, TOP_PLAIN, lines[i]);
}

/* A screen scrolls as little as it must. */
static void top_scroll(struct top_screen *s, size_t at, size_t seen, size_t n)
{
    if (at < s->first)
        s->first = at;
    if (at >= s->first + seen)
        s->first = at - seen + 1;
    if (s->first >= n)
        s->first = n ? n - 1 : 0;
}

static void top_draw_body(const struct top_drawing *d, size_t seen)
{
    struct top_screen *s = d->s;
    const struct top_view *v = d->v;
    size_t n = d->n;
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    struct top_table list = {list_columns, top_list_row, d, n, 0, seen, n};
    struct top_table queue = {queue_columns, top_queue_row, d, v->nplaces, 0, seen, v->nplaces};
    if (!v->loaded) {
        top_lines_say(&d->to, TOP_PLAIN, "Reading the tree ...");
    } else if (s->one) {
        snprintf(text, sizeof text, "%s%s", top_lines_clean(&d->to, s->one, clean),
                 v->nplaces ? "" : ": nobody holds this lock");
        top_lines_say(&d->to, TOP_BOLD, text);
        queue.seen -= queue.seen > 1;
        size_t last = queue.n > queue.seen ? queue.n - queue.seen : 0;
        queue.first = s->first = s->first < last ? s->first : last;
        top_lines_table(&d->to, &queue);
    } else if (n == 0) {
        top_lines_say(&d->to, TOP_PLAIN,
                      *s->filter ? "No lock is held below it." : "No lock is held.");
    } else {
        size_t at = top_chosen(s, v, n);
        list.bar = s->rows ? at : n;
        top_scroll(s, at, seen, n);
        list.first = s->rows ? s->first : 0;
        top_lines_table(&d->to, &list);
    }
}

void top_screen_draw(struct top_screen *s, const struct top_view *v, size_t n, int64_t now,
                     top_put *put, void *arg)
{
    const struct top_drawing d = {
        s, v, n, v->stale_at ? v->stale_at : now, {s->columns, s->ascii, put, arg}};
    char text[TOP_LINE_CAP], age[AGE_CAP];
    if (v->stale_at) { /* nothing of it is known to be so now: times stand still */
        snprintf(text, sizeof text, "NOT LIVE: the connection was lost %s ago; this is from then",
                 age_format(now - v->stale_at, age));
        top_lines_say(&d.to, TOP_REVERSE, text);
    }
    size_t head = top_draw_head(&d) + (v->stale_at != 0);
    size_t taken = head + 2; /* and the keys and the titles */
    size_t seen = !s->rows ? SIZE_MAX / 2 : s->rows > taken + 1 ? s->rows - taken : 1;
    if (s->rows)
        top_draw_keys(&d);
    else
        put(arg, TOP_PLAIN, "");
    if (s->help)
        top_draw_help(&d);
    else
        top_draw_body(&d, seen);
}
