/* top_screen.c - selects, sorts and lays out the locks and elections of a top_view (see
 * top_screen.h).
 *
 * There are four parts, each built on the one before: text as lines and tables of a given width;
 * the sort orders; the selection with its bar; and the screen.
 *
 * What must stay true: text written by others gets into a line only through top_clean, so no line
 * contains anything that a terminal would obey; no line is wider than the screen or ends within a
 * character; and the bar is tied to the path or node under it, so it stays there while others come
 * and go. */
#include "cmd/top/top_screen.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/log_line.h"
#include "base/utf8.h"
#include "cmd/cli/participant.h"

/* ---- text as lines --------------------------------------------------------------------------- */

enum { TOP_COLUMNS = 7, TOP_CELL_CAP = 1024, TOP_LINE_CAP = 4096 };

/* Where lines are sent, and how wide they may be. */
struct top_lines {
    size_t columns; /* 0: no limit */
    bool ascii;     /* the terminal can show ASCII only */
    top_put *put;
    void *arg;
};

enum { GAP = 2, NARROWEST = 12, WIDE_ENOUGH = 28, LAST_COLUMN = 16 }; /* in columns */

/* Copies text that others wrote. What is not printable is escaped ("\\x1b"); what is too long is
 * cut and ends with a '~'. */
static const char *top_clean(const struct top_lines *to, const char *text, char out[TOP_CELL_CAP])
{
    size_t used = 0;
    const char *p = text;
    while (*p && used + 6 < TOP_CELL_CAP) {
        size_t len = clave__utf8_printable(p, strnlen(p, 4));
        if (len > 1 && to->ascii)
            out[used++] = '?';
        for (size_t i = 0; i < len && (len == 1 || !to->ascii); i++)
            out[used++] = p[i];
        if (len == 0)
            used += (size_t)snprintf(out + used, 5, "\\x%02x", (unsigned char)*p);
        p += len + (len == 0);
    }
    if (*p)
        out[used++] = '~';
    out[used] = '\0';
    return out;
}

/* How many columns the character at `p`, which must be valid, takes. */
static size_t top_width_of(const char *p, size_t *len)
{
    uint32_t c = '?';
    *len = clave__utf8_decode(p, strnlen(p, 4), &c);
    *len += *len == 0;
    int width = c < 0x80 ? 1 : wcwidth((wchar_t)c);
    return width < 0 ? 1 : (size_t)width;
}

static size_t top_width(const char *text)
{
    size_t width = 0, len;
    for (const char *p = text; *p; p += len)
        width += top_width_of(p, &len);
    return width;
}

/* Appends the characters of the text that lie between the columns `from` and `to`. */
static void top_append(char line[TOP_LINE_CAP], const char *text, size_t from, size_t to)
{
    size_t used = strlen(line), at = 0, len, w;
    for (const char *p = text; *p; p += len, at += w) {
        w = top_width_of(p, &len);
        if (at < from || at + w > to || used + len >= TOP_LINE_CAP)
            continue;
        memcpy(line + used, p, len);
        used += len;
    }
    line[used] = '\0';
}

static void top_append_spaces(char line[TOP_LINE_CAP], size_t n)
{
    size_t used = strlen(line);
    for (; n > 0 && used + 1 < TOP_LINE_CAP; n--)
        line[used++] = ' ';
    line[used] = '\0';
}

/* How a text is fitted into a column. A text that is too long gets a '~' where it is cut: at its
 * end, or in its middle, so that both ends of a path can be seen. */
enum top_fitting { FIT_LEFT, FIT_RIGHT, FIT_ENDS };

/* Appends `text` to the line, exactly `width` columns wide: cut or padded. */
static void top_fit(char line[TOP_LINE_CAP], const char *text, size_t width, enum top_fitting how)
{
    size_t need = top_width(text), before = top_width(line);
    size_t end = how == FIT_ENDS ? width * 3 / 5 : 0;
    if (how == FIT_RIGHT && need < width)
        top_append_spaces(line, width - need);
    if (need <= width) {
        top_append(line, text, 0, need);
    } else if (width > 0) {
        top_append(line, text, 0, width - 1 - end);
        top_append(line, "~", 0, 1);
        top_append(line, text, need - end, need);
    }
    size_t taken = top_width(line) - before;
    top_append_spaces(line, taken < width ? width - taken : 0);
}

/* Sends one line, cut to the width. */
static void top_say(const struct top_lines *to, enum top_style style, const char *text)
{
    char line[TOP_LINE_CAP] = "";
    size_t width = top_width(text);
    size_t most = to->columns ? to->columns : SIZE_MAX;
    top_fit(line, text, width > most ? most : width, FIT_LEFT);
    to->put(to->arg, style, line);
}

/* Sends the text wrapped at spaces. Returns the number of lines. */
static size_t top_wrap(const struct top_lines *to, enum top_style style, const char *text)
{
    char line[TOP_LINE_CAP];
    size_t lines = 0, most = to->columns ? to->columns : SIZE_MAX;
    for (const char *p = text; *p || lines == 0; lines++) {
        size_t width = 0, n = 0, len, w;
        while (p[n] && n + 4 < sizeof line && (w = top_width_of(p + n, &len)) + width <= most)
            n += len, width += w;
        const char *space = p[n] ? memrchr(p, ' ', n) : NULL;
        n = space && space > p ? (size_t)(space - p) : n;
        n += n == 0 && *p; /* take at least one byte, even if no character fits */
        snprintf(line, sizeof line, "%.*s", (int)n, p);
        top_say(to, style, line);
        p += n + (p[n] == ' ');
    }
    return lines;
}

/* ---- tables --------------------------------------------------------------------------------- */

struct top_cells {
    char text[TOP_COLUMNS][TOP_CELL_CAP];
};
struct top_column {
    const char *title;
    enum top_fitting how;
    bool gives; /* may be made narrower if the screen is too narrow for all columns */
};
/* A table of `n` rows, of which `seen` are shown, beginning with row `first`. */
struct top_table {
    const struct top_column *columns;
    void (*row)(const void *arg, size_t i, struct top_cells *out);
    enum top_style (*style)(const void *arg, size_t i);
    const void *arg;
    size_t n, first, seen, bar; /* bar: the row under the bar; n: no row */
};

/* Narrows columns with `gives`, always the widest one and none below `least`, until all columns but
 * the last one fit in `room`, with their gaps. */
static void top_narrow(const struct top_table *t, size_t room, size_t least,
                       size_t width[TOP_COLUMNS])
{
    for (;;) {
        size_t all = 0, widest = TOP_COLUMNS;
        for (size_t c = 0; c + 1 < TOP_COLUMNS; c++) {
            all += width[c] + GAP;
            if (t->columns[c].gives && width[c] > least &&
                (widest == TOP_COLUMNS || width[c] > width[widest]))
                widest = c;
        }
        if (all <= room || widest == TOP_COLUMNS)
            return;
        width[widest]--;
    }
}

/* Paths are shortened to make room for a part of the last column, but only to a width at which they
 * can still be recognised. To make room for the other columns they are shortened further. */
static void top_fit_columns(const struct top_table *t, size_t columns, size_t width[TOP_COLUMNS])
{
    size_t last = width[TOP_COLUMNS - 1] < LAST_COLUMN ? width[TOP_COLUMNS - 1] : LAST_COLUMN;
    top_narrow(t, columns > last ? columns - last : 0, WIDE_ENOUGH, width);
    top_narrow(t, columns, NARROWEST, width);
}

static void top_column_widths(const struct top_lines *to, const struct top_table *t,
                              size_t width[TOP_COLUMNS])
{
    struct top_cells cells;
    for (size_t c = 0; c < TOP_COLUMNS; c++)
        width[c] = strlen(t->columns[c].title);
    for (size_t i = 0; i < t->n; i++) {
        t->row(t->arg, i, &cells);
        for (size_t c = 0; c < TOP_COLUMNS; c++) {
            size_t w = top_width(cells.text[c]);
            width[c] = w > width[c] ? w : width[c];
        }
    }
    if (to->columns)
        top_fit_columns(t, to->columns, width);
}

static void top_draw_row(const struct top_lines *to, const struct top_table *t,
                         const struct top_cells *cells, const size_t width[TOP_COLUMNS],
                         enum top_style style)
{
    char line[TOP_LINE_CAP] = "";
    for (size_t c = 0; c < TOP_COLUMNS; c++) {
        bool last = c + 1 == TOP_COLUMNS;
        const char *text = cells ? cells->text[c] : t->columns[c].title;
        top_fit(line, text, last ? top_width(text) : width[c], t->columns[c].how);
        if (!last)
            top_append_spaces(line, GAP);
    }
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ' && !(style & TOP_REVERSE))
        line[--n] = '\0';
    top_say(to, style, line);
}

/* Draws the titles and the visible rows. */
static void top_draw_table(const struct top_lines *to, const struct top_table *t)
{
    assert(t->row && t->style && t->bar <= t->n);
    struct top_cells cells;
    size_t width[TOP_COLUMNS];
    top_column_widths(to, t, width);
    top_draw_row(to, t, NULL, width, TOP_BOLD);
    for (size_t i = t->first; i < t->n && i < t->first + t->seen; i++) {
        t->row(t->arg, i, &cells);
        top_draw_row(to, t, &cells, width, t->style(t->arg, i) | (i == t->bar ? TOP_REVERSE : 0));
    }
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Earlier comes first. -1 means "no time" and comes last. */
static int top_order_by_time(int64_t a, int64_t b)
{
    if (a == b)
        return 0;
    if (a < 0 || b < 0)
        return a < 0 ? 1 : -1;
    return a < b ? -1 : 1;
}

static int top_order_by_path(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = strcmp(one->path, other->path);
    return cmp ? cmp : one->leases - other->leases;
}

static int top_order_by_held(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = top_order_by_time(one->holder.since, other->holder.since);
    return cmp ? cmp : top_order_by_path(one, other);
}

static int top_order_by_waiters(const struct top_lock *one, const struct top_lock *other)
{
    if (one->nwaiters != other->nwaiters)
        return one->nwaiters > other->nwaiters ? -1 : 1;
    int cmp = top_order_by_time(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_order_by_held(one, other);
}

static int top_order_by_wait(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = top_order_by_time(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_order_by_waiters(one, other);
}

static const struct {
    const char *name;
    int (*compare)(const struct top_lock *one, const struct top_lock *other);
} orders[] = {{"oldest wait", top_order_by_wait},
              {"waiters", top_order_by_waiters},
              {"held longest", top_order_by_held},
              {"path", top_order_by_path}};

enum { TOP_ORDERS = sizeof orders / sizeof *orders };

static int top_order_compare(const void *a, const void *b, void *order)
{
    const struct top_lock *one = a, *other = b;
    if (one->outside != other->outside)
        return other->outside - one->outside;
    if (one->deadlocked != other->deadlocked)
        return other->deadlocked - one->deadlocked;
    return orders[*(const size_t *)order].compare(one, other);
}

/* ---- the selection --------------------------------------------------------------------------- */

void top_selection_fini(struct top_selection *c)
{
    free(c->one);
    free(c->chosen);
    free(c->place);
}

/* ---- what is listed ------------------------------------------------------------------------- */

void top_selection_next_order(struct top_selection *c)
{
    c->order = (c->order + 1) % TOP_ORDERS;
}

void top_selection_next_listed(struct top_selection *c)
{
    c->listed = (c->listed + 1) % TOP_LISTED;
}

static const char *top_listed_name(const struct top_selection *c)
{
    static const char *const names[TOP_LISTED] = {"Locks and elections", "Locks", "Elections"};
    return names[c->listed];
}

static bool top_is_listed(const struct top_selection *c, const struct top_lock *l)
{
    bool election = l->kind == LOCK_KIND_ELECTION;
    if (election ? c->listed == TOP_LOCKS : c->listed == TOP_ELECTIONS)
        return false;
    return strcasestr(l->path, c->filter) ||
           (l->nholders > 0 &&
            (strcasestr(l->holder.whose, c->filter) || strcasestr(l->holder.task, c->filter)));
}

size_t top_selection_arrange(const struct top_selection *c, struct top_view *v)
{
    size_t n = 0, order = c->order;
    for (size_t i = 0; i < v->nlocks; i++) {
        if (!top_is_listed(c, &v->locks[i]))
            continue;
        struct top_lock l = v->locks[n];
        v->locks[n++] = v->locks[i];
        v->locks[i] = l;
    }
    if (n > 1)
        qsort_r(v->locks, n, sizeof *v->locks, top_order_compare, &order);
    return n;
}

/* ---- the bar -------------------------------------------------------------------------------- */

/* `row`, or the last row if there are fewer. */
static size_t top_last_row(size_t row, size_t rows)
{
    if (row < rows)
        return row;
    return rows > 0 ? rows - 1 : 0;
}

/* If the lock or node under the bar is gone, the bar moves to the top row of the screen. */
size_t top_selection_at(const struct top_selection *c, const struct top_view *v, size_t n)
{
    size_t rows = c->one ? v->nplaces : n;
    for (size_t i = 0; c->one && c->place && i < rows; i++)
        if (strcmp(v->places[i].node, c->place) == 0)
            return i;
    for (size_t i = 0; !c->one && c->chosen && i < rows; i++)
        if (v->locks[i].leases == c->chosen_leases && strcmp(v->locks[i].path, c->chosen) == 0)
            return i;
    return top_last_row(c->first, rows);
}

static void top_keep(char **to, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    free(*to);
    *to = copy;
}

static size_t top_moved(size_t at, size_t n, long by)
{
    size_t step = by < 0 ? (size_t)-by : (size_t)by;
    if (by < 0)
        return at > step ? at - step : 0;
    return top_last_row(at + step, n);
}

static void top_choose(struct top_selection *c, const struct top_lock *l)
{
    c->chosen_leases = l->leases;
    top_keep(&c->chosen, l->path);
}

void top_selection_move(struct top_selection *c, const struct top_view *v, size_t n, long by)
{
    size_t rows = c->one ? v->nplaces : n;
    size_t at = top_moved(top_selection_at(c, v, n), rows, by);
    if (at >= rows)
        return;
    if (c->one)
        top_keep(&c->place, v->places[at].node);
    else
        top_choose(c, &v->locks[at]);
}

void top_selection_enter(struct top_selection *c, const struct top_view *v, size_t n)
{
    size_t at = top_selection_at(c, v, n);
    if (c->one || at >= n)
        return;
    top_choose(c, &v->locks[at]);
    c->one_leases = c->chosen_leases;
    top_keep(&c->one, v->locks[at].path);
    top_keep(&c->place, NULL);
    c->first = 0;
}

void top_selection_leave(struct top_selection *c)
{
    top_keep(&c->one, NULL);
    c->help = false;
    c->first = 0;
}

/* Scrolls as little as needed to bring row `at` into the `seen` visible rows, of `n`. */
static void top_selection_scroll(struct top_selection *c, size_t at, size_t seen, size_t n)
{
    assert(seen > 0);
    size_t last = n > seen ? n - seen : 0; /* leaves no empty rows at the bottom */
    if (at < c->first)
        c->first = at;
    if (at >= c->first + seen)
        c->first = at - seen + 1;
    if (c->first > last)
        c->first = last;
}

/* ---- the screen ------------------------------------------------------------------------------ */

enum {
    LATE_MS = 60000, /* from then on a wait is late, as on the page at /ui/ */
    MOST_DEADLOCKS = 3,
};

/* The state of drawing one screen. */
struct top_drawing {
    const struct top_screen *s;
    const struct top_view *v;
    const struct top_selection *c;
    const char *said;
    size_t n;    /* how many locks are listed */
    int64_t now; /* the time of the view, if it is out of date */
    struct top_lines to;
};

static const char dash[] = "-";

/* ---- rows ----------------------------------------------------------------------------------- */

static void top_age(const struct top_place *p, int64_t now, char out[TOP_CELL_CAP])
{
    char age[AGE_CAP];
    snprintf(out, TOP_CELL_CAP, "%s%s", p->at_most ? "<" : "",
             p->since < 0 ? dash : age_format(now - p->since, age));
}

static const struct top_column list_columns[TOP_COLUMNS] = {
    {"LOCK", FIT_ENDS, true},    {"KIND", FIT_LEFT, false},     {"HOLDER", FIT_ENDS, true},
    {"HELD", FIT_RIGHT, false},  {"WAITING", FIT_RIGHT, false}, {"OLDEST", FIT_RIGHT, false},
    {"COMMAND", FIT_LEFT, false}};

static void top_who(const struct top_drawing *d, const struct top_lock *l, char out[TOP_CELL_CAP])
{
    char who[TOP_CELL_CAP], others[32] = "";
    if (l->nholders > 1)
        snprintf(others, sizeof others, " +%zu", l->nholders - 1);
    snprintf(who, sizeof who, "%s%s%s", l->holder.left_over ? "left over: " : "", l->holder.whose,
             others);
    top_clean(&d->to, who, out);
}

/* The note about a request comes first, since the command may be long. */
static void top_task(const struct top_drawing *d, const struct top_place *p, char out[TOP_CELL_CAP])
{
    char text[TOP_CELL_CAP];
    const char *request =
        strcmp(p->role, "leader") == 0 ? "(asked to resign)" : "(asked to release it)";
    if (p->left_over)
        request = "(left over: no session owns its node, b deletes it)";
    bool noted = p->asked || p->left_over;
    snprintf(text, sizeof text, "%s%s%s", noted ? request : "", noted && *p->task ? " " : "",
             *p->task || noted ? p->task : dash);
    top_clean(&d->to, text, out);
}

/* A stranger among the nodes is mentioned before the command. */
static void top_stranger(const struct top_drawing *d, const struct top_lock *l,
                         char out[TOP_CELL_CAP])
{
    char text[2 * TOP_CELL_CAP];
    bool command = l->nholders > 0;
    snprintf(text, sizeof text, "(%.200s: %s)%s%s", l->stranger, l->stranger_what,
             command ? " " : "", command ? out : "");
    top_clean(&d->to, text, out);
}

static void top_list_row(const void *arg, size_t i, struct top_cells *out)
{
    const struct top_drawing *d = arg;
    const struct top_lock *l = &d->v->locks[i];
    char age[AGE_CAP];
    top_clean(&d->to, l->path, out->text[0]);
    strcpy(out->text[1], clave__lock_kind_name(l->kind));
    strcpy(out->text[2], dash);
    strcpy(out->text[3], dash);
    strcpy(out->text[6], dash);
    if (l->nholders > 0 || l->nleft_over > 0) {
        top_who(d, l, out->text[2]);
        top_age(&l->holder, d->now, out->text[3]);
        top_task(d, &l->holder, out->text[6]);
    }
    if (l->bad_limit)
        strcpy(out->text[6], "(the limit is no number)");
    else if (l->stranger)
        top_stranger(d, l, out->text[6]);
    snprintf(out->text[4], TOP_CELL_CAP, "%zu", l->nwaiters);
    snprintf(out->text[5], TOP_CELL_CAP, "%s",
             l->waiting_since < 0 ? dash : age_format(d->now - l->waiting_since, age));
}

static bool top_is_late(const struct top_drawing *d, int64_t since)
{
    return since >= 0 && d->now - since > LATE_MS;
}

static enum top_style top_list_style(const void *arg, size_t i)
{
    const struct top_drawing *d = arg;
    const struct top_lock *l = &d->v->locks[i];
    if (l->deadlocked || l->outside)
        return TOP_RED;
    bool faulty = l->nleft_over > 0 || l->nstrangers > 0 || l->bad_limit;
    return faulty || top_is_late(d, l->waiting_since) ? TOP_AMBER : TOP_PLAIN;
}

static const struct top_column queue_columns[TOP_COLUMNS] = {
    {"#", FIT_RIGHT, false},     {"ROLE", FIT_LEFT, false},   {"WHO", FIT_ENDS, true},
    {"SINCE", FIT_RIGHT, false}, {"TOKEN", FIT_RIGHT, false}, {"CLIENT", FIT_LEFT, false},
    {"COMMAND", FIT_LEFT, false}};

static void top_queue_row(const void *arg, size_t i, struct top_cells *out)
{
    const struct top_drawing *d = arg;
    const struct top_place *p = &d->v->places[i];
    snprintf(out->text[0], TOP_CELL_CAP, "%zu", i);
    strcpy(out->text[1], p->role);
    top_clean(&d->to, p->whose, out->text[2]);
    top_age(p, d->now, out->text[3]);
    snprintf(out->text[4], TOP_CELL_CAP, "%" PRId64, p->token);
    if (p->unreadable)
        strcpy(out->text[4], dash);
    strcpy(out->text[5], p->client);
    top_task(d, p, out->text[6]);
}

static enum top_style top_queue_style(const void *arg, size_t i)
{
    const struct top_drawing *d = arg;
    const struct top_place *p = &d->v->places[i];
    if (p->outside)
        return TOP_RED;
    return p->left_over || (p->waits && top_is_late(d, p->since)) ? TOP_AMBER : TOP_PLAIN;
}

/* ---- above the rows -------------------------------------------------------------------------- */

static void top_draw_servers(const struct top_drawing *d)
{
    const struct top_view *v = d->v;
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    const char *mode = v->read_only ? ", read-only" : ", read-write";
    bool known = !v->stale_at;
    snprintf(text, sizeof text, "clave top  %.800s  %s%.250s%s",
             top_clean(&d->to, d->s->connect, clean), known ? "on " : "not connected",
             known ? v->server : "", known ? mode : "");
    top_say(&d->to, TOP_BOLD, text);
}

static void top_draw_sums(const struct top_drawing *d)
{
    const struct top_view *v = d->v;
    char text[TOP_LINE_CAP], age[AGE_CAP];
    size_t held = 0, waiting = 0, elections = 0, left_over = 0;
    int64_t oldest = -1;
    for (size_t i = 0; i < d->n; i++) {
        const struct top_lock *l = &v->locks[i];
        bool election = l->kind == LOCK_KIND_ELECTION;
        elections += election;
        left_over += l->nleft_over;
        held += !election && l->nholders > 0;
        waiting += election ? 0 : l->nwaiters;
        if (l->waiting_since >= 0 && (oldest < 0 || l->waiting_since < oldest))
            oldest = l->waiting_since;
    }
    snprintf(text, sizeof text, "%zu held, %zu waiting, oldest wait %s, %zu election%s, ", held,
             waiting, oldest < 0 ? dash : age_format(d->now - oldest, age), elections,
             clave__plural(elections));
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%zu deadlock%s", v->ndeadlocks,
             clave__plural(v->ndeadlocks));
    n = strlen(text);
    if (left_over > 0)
        snprintf(text + n, sizeof text - n, ", %zu left over", left_over);
    top_say(&d->to, TOP_PLAIN, text);
}

static size_t top_count_outside(const struct top_view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->nlocks; i++)
        n += v->locks[i].outside;
    return n;
}

/* Returns the number of lines. */
static size_t top_draw_warnings(const struct top_drawing *d)
{
    const struct top_view *v = d->v;
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    size_t lines = 0;
    if (v->partial)
        top_say(&d->to, TOP_REVERSE, "There are more nodes than there is room for."), lines++;
    if (v->hidden)
        top_say(&d->to, TOP_PLAIN, "Some nodes may not be read: locks below them are not seen."),
            lines++;
    size_t outside = top_count_outside(v);
    if (outside > 0) {
        snprintf(
            text, sizeof text,
            "MAY BE HELD TWICE: %zu lock%s, where a kazoo lock of default name does not see the "
            "others",
            outside, clave__plural(outside));
        lines += top_wrap(&d->to, TOP_BOLD | TOP_RED, text);
    }
    for (size_t i = 0; i < v->ndeadlocks && i < MOST_DEADLOCKS; i++, lines++) {
        snprintf(text, sizeof text, "DEADLOCK: %s", top_clean(&d->to, v->deadlocks[i], clean));
        top_say(&d->to, TOP_BOLD | TOP_RED, text);
    }
    return lines;
}

/* Draws the question, its outcome, the filter being typed, or the keys. Returns the number of
 * lines. */
static size_t top_draw_keys(const struct top_drawing *d)
{
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    if (d->said)
        return top_wrap(&d->to, TOP_REVERSE, top_clean(&d->to, d->said, clean));
    if (d->c->typing)
        snprintf(text, sizeof text, "show what contains: %s_",
                 top_clean(&d->to, d->c->filter, clean));
    else if (d->c->one)
        snprintf(text, sizeof text, "q quit  h help  left back  r revoke  b break");
    else
        snprintf(text, sizeof text, "q quit  h help  enter queue  / filter  v view  s sort: %s",
                 orders[d->c->order].name);
    top_say(&d->to, d->c->typing ? TOP_BOLD : TOP_PLAIN, text);
    return 1;
}

static void top_draw_help(const struct top_drawing *d)
{
    static const char *const lines[] = {
        "up, k        the line before",
        "down, j      the next line",
        "page keys    a screen further; home, end: the first, the last",
        "enter        the queue of the lock; left, u, escape: back to the list",
        "/            show what contains a text in its path, holder or command;",
        "             enter: done, escape: show all",
        "v            locks and elections, only locks, only elections",
        "s            sort by oldest wait, waiters, longest held, path",
        "r            ask for a release, as 'clave locks revoke' does: of the line in a",
        "             queue, of the first holder in the list",
        "b            delete its node, as 'clave locks break' does",
        "h, ?         this help",
        "q            quit",
        "",
        "HELD         how long it has been held; <: at most",
        "WAITING      how many wait, or are candidates; OLDEST: how long the first of",
        "             them has waited: highlighted from a minute on",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        top_say(&d->to, TOP_PLAIN, lines[i]);
}

/* ---- the list, or a queue -------------------------------------------------------------------- */

/* For example "Locks 21-40 of 200, matching web". */
static void top_draw_title(const struct top_drawing *d, const struct top_table *t)
{
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP], range[80] = "";
    size_t to = t->first + t->seen < t->n ? t->first + t->seen : t->n;
    if (t->n > 0)
        snprintf(range, sizeof range, "  %zu-%zu of %zu", t->first + 1, to, t->n);
    if (d->c->one)
        snprintf(text, sizeof text, "%s%s", top_clean(&d->to, d->c->one, clean),
                 t->n ? range : ": nobody is in this queue");
    else
        snprintf(text, sizeof text, "%s%s%s%s", top_listed_name(d->c), range,
                 *d->c->filter && !d->c->typing ? ", matching " : "",
                 d->c->typing ? "" : top_clean(&d->to, d->c->filter, clean));
    top_say(&d->to, TOP_BOLD, text);
}

static const char *top_nothing(const struct top_selection *c)
{
    static const char *const none[TOP_LISTED] = {"No lock is held and no election has a leader.",
                                                 "No lock is held.", "No election has a leader."};
    return *c->filter ? "Nothing that is listed contains it." : none[c->listed];
}

static void top_draw_rows(const struct top_drawing *d, struct top_selection *c, size_t seen)
{
    bool queue = c->one;
    struct top_table t = {.columns = queue ? queue_columns : list_columns,
                          .row = queue ? top_queue_row : top_list_row,
                          .style = queue ? top_queue_style : top_list_style,
                          .arg = d,
                          .n = queue ? d->v->nplaces : d->n,
                          .seen = seen};
    size_t at = top_selection_at(c, d->v, d->n);
    if (d->s->rows)
        top_selection_scroll(c, at, seen, t.n);
    t.first = d->s->rows ? c->first : 0;
    t.bar = d->s->rows ? at : t.n;
    top_draw_title(d, &t);
    if (t.n > 0)
        top_draw_table(&d->to, &t);
    else if (!queue)
        top_say(&d->to, TOP_PLAIN, top_nothing(c));
}

static void top_draw_body(const struct top_drawing *d, struct top_selection *c, size_t taken)
{
    enum { TITLES = 2 };
    size_t rows = d->s->rows ? d->s->rows : SIZE_MAX / 2; /* 0: no limit */
    taken += TITLES;
    if (rows <= taken)
        rows = taken + 1;
    if (c->help)
        top_draw_help(d);
    else if (!d->v->loaded)
        top_say(&d->to, TOP_PLAIN, "Reading the tree ...");
    else
        top_draw_rows(d, c, rows - taken);
}

void top_screen_draw(const struct top_shown *shown, struct top_selection *c, top_put *put,
                     void *arg)
{
    const struct top_screen *s = shown->screen;
    const struct top_view *v = shown->view;
    assert(shown->n <= v->nlocks);
    const struct top_drawing d = {.s = s,
                                  .v = v,
                                  .c = c,
                                  .said = shown->said,
                                  .n = shown->n,
                                  .now = v->stale_at ? v->stale_at : shown->now,
                                  .to = {s->columns, s->ascii, put, arg}};
    char text[TOP_LINE_CAP], age[AGE_CAP];
    if (v->stale_at) { /* nothing is known about the present, so the times stand still */
        snprintf(text, sizeof text, "NOT LIVE: the connection was lost %s ago; this is from then",
                 age_format(shown->now - v->stale_at, age));
        top_say(&d.to, TOP_REVERSE, text);
    }
    size_t taken = 2 + (v->stale_at != 0);
    top_draw_servers(&d);
    top_draw_sums(&d);
    taken += top_draw_warnings(&d);
    if (s->rows)
        taken += top_draw_keys(&d);
    else
        put(arg, TOP_PLAIN, "");
    top_draw_body(&d, c, taken);
}
