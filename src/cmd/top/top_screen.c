/* top_screen.c - see top_screen.h. Called by top.c. Invariant: what others wrote reaches a line
 * through top_lines_clean only, so a line has nothing that a terminal would obey. */
#include "cmd/top/top_screen.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "cmd/cli/participant_text.h"
#include "cmd/top/top_order.h"

enum {
    LATE_MS = 60000, /* a wait is, from then on: as on the page at /ui/ */
    MOST_DEADLOCKS = 3,
};

/* A screen being drawn. */
struct top_drawing {
    const struct top_screen *s;
    const struct top_view *v;
    const struct top_selection *c;
    const struct top_revoke *ask;
    size_t n;    /* locks that are listed */
    int64_t now; /* of the view, if that is older */
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
    {"LOCK", false, true},    {"KIND", false, false},   {"HOLDER", false, true},
    {"HELD", true, false},    {"WAITING", true, false}, {"OLDEST", true, false},
    {"COMMAND", false, false}};

static void top_who(const struct top_drawing *d, const struct top_lock *l, char out[TOP_CELL_CAP])
{
    char who[TOP_CELL_CAP], others[32] = "";
    if (l->nholders > 1)
        snprintf(others, sizeof others, " +%zu", l->nholders - 1);
    snprintf(who, sizeof who, "%s%s", l->holder.whose, others);
    top_lines_clean(&d->to, who, out);
}

/* The request comes before the command, which may be long. */
static void top_task(const struct top_drawing *d, const struct top_place *p, char out[TOP_CELL_CAP])
{
    char text[TOP_CELL_CAP];
    const char *request =
        strcmp(p->role, "leader") == 0 ? "(asked to resign)" : "(asked to release it)";
    snprintf(text, sizeof text, "%s%s%s", p->asked ? request : "", p->asked && *p->task ? " " : "",
             *p->task || p->asked ? p->task : dash);
    top_lines_clean(&d->to, text, out);
}

static void top_list_row(const void *arg, size_t i, struct top_cells *out)
{
    const struct top_drawing *d = arg;
    const struct top_lock *l = &d->v->locks[i];
    char age[AGE_CAP];
    top_lines_clean(&d->to, l->path, out->text[0]);
    strcpy(out->text[1], clave__lock_kind_name(l->kind));
    strcpy(out->text[2], dash);
    strcpy(out->text[3], dash);
    strcpy(out->text[6], dash);
    if (l->nholders > 0) {
        top_who(d, l, out->text[2]);
        top_age(&l->holder, d->now, out->text[3]);
        top_task(d, &l->holder, out->text[6]);
    }
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
    if (l->deadlocked)
        return TOP_RED;
    return top_is_late(d, l->waiting_since) ? TOP_AMBER : TOP_PLAIN;
}

static const struct top_column queue_columns[TOP_COLUMNS] = {
    {"#", true, false},       {"ROLE", false, false}, {"WHO", false, true},
    {"SINCE", true, false},   {"TOKEN", true, false}, {"CLIENT", false, false},
    {"COMMAND", false, false}};

static void top_queue_row(const void *arg, size_t i, struct top_cells *out)
{
    const struct top_drawing *d = arg;
    const struct top_place *p = &d->v->places[i];
    snprintf(out->text[0], TOP_CELL_CAP, "%zu", i);
    strcpy(out->text[1], p->role);
    top_lines_clean(&d->to, p->whose, out->text[2]);
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
    return p->waits && top_is_late(d, p->since) ? TOP_AMBER : TOP_PLAIN;
}

/* ---- above them ----------------------------------------------------------------------------- */

static void top_draw_servers(const struct top_drawing *d)
{
    const struct top_view *v = d->v;
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    const char *mode = v->read_only ? ", read-only" : ", read-write";
    bool known = !v->stale_at;
    snprintf(text, sizeof text, "clave top  %.800s  %s%.250s%s",
             top_lines_clean(&d->to, d->s->connect, clean), known ? "on " : "not connected",
             known ? v->server : "", known ? mode : "");
    top_lines_say(&d->to, TOP_BOLD, text);
}

static void top_draw_sums(const struct top_drawing *d)
{
    const struct top_view *v = d->v;
    char text[TOP_LINE_CAP], age[AGE_CAP];
    size_t held = 0, waiting = 0, elections = 0;
    int64_t oldest = -1;
    for (size_t i = 0; i < d->n; i++) {
        const struct top_lock *l = &v->locks[i];
        bool election = l->kind == LOCK_KIND_ELECTION;
        elections += election;
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
    top_lines_say(&d->to, TOP_PLAIN, text);
}

/* Returns how many lines. */
static size_t top_draw_warnings(const struct top_drawing *d)
{
    const struct top_view *v = d->v;
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    size_t lines = 0;
    if (v->partial)
        top_lines_say(&d->to, TOP_REVERSE, "There are more nodes than there is room for."), lines++;
    if (v->hidden)
        top_lines_say(&d->to, TOP_PLAIN,
                      "Some nodes may not be read: locks below them are not seen."),
            lines++;
    for (size_t i = 0; i < v->ndeadlocks && i < MOST_DEADLOCKS; i++, lines++) {
        snprintf(text, sizeof text, "DEADLOCK: %s",
                 top_lines_clean(&d->to, v->deadlocks[i], clean));
        top_lines_say(&d->to, TOP_BOLD | TOP_RED, text);
    }
    return lines;
}

/* What is asked, said or typed, or which keys there are. Returns how many lines. */
static size_t top_draw_keys(const struct top_drawing *d)
{
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP];
    if (d->ask->said)
        return top_lines_wrap(&d->to, TOP_REVERSE, top_lines_clean(&d->to, d->ask->said, clean));
    if (d->c->typing)
        snprintf(text, sizeof text, "show what contains: %s_",
                 top_lines_clean(&d->to, d->c->filter, clean));
    else if (d->c->one)
        snprintf(text, sizeof text, "q quit  h help  left back  r revoke  b break");
    else
        snprintf(text, sizeof text, "q quit  h help  enter queue  / filter  v view  s sort: %s",
                 top_order_name(d->c->order));
    top_lines_say(&d->to, d->c->typing ? TOP_BOLD : TOP_PLAIN, text);
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
        top_lines_say(&d->to, TOP_PLAIN, lines[i]);
}

/* ---- the list, a queue ---------------------------------------------------------------------- */

/* "Locks 21-40 of 200, matching web" */
static void top_draw_title(const struct top_drawing *d, const struct top_table *t)
{
    char text[TOP_LINE_CAP], clean[TOP_CELL_CAP], range[80] = "";
    size_t to = t->first + t->seen < t->n ? t->first + t->seen : t->n;
    if (t->n > 0)
        snprintf(range, sizeof range, "  %zu-%zu of %zu", t->first + 1, to, t->n);
    if (d->c->one)
        snprintf(text, sizeof text, "%s%s", top_lines_clean(&d->to, d->c->one, clean),
                 t->n ? range : ": nobody is in this queue");
    else
        snprintf(text, sizeof text, "%s%s%s%s", top_selection_listed(d->c), range,
                 *d->c->filter && !d->c->typing ? ", matching " : "",
                 d->c->typing ? "" : top_lines_clean(&d->to, d->c->filter, clean));
    top_lines_say(&d->to, TOP_BOLD, text);
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
        top_lines_table(&d->to, &t);
    else if (!queue)
        top_lines_say(&d->to, TOP_PLAIN, top_nothing(c));
}

static void top_draw_body(const struct top_drawing *d, struct top_selection *c, size_t taken)
{
    enum { TITLES = 2 };
    size_t rows = d->s->rows;
    taken += TITLES;
    if (c->help)
        top_draw_help(d);
    else if (!d->v->loaded)
        top_lines_say(&d->to, TOP_PLAIN, "Reading the tree ...");
    else
        top_draw_rows(d, c, !rows ? SIZE_MAX / 2 : rows > taken + 1 ? rows - taken : 1);
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
                                  .ask = shown->ask,
                                  .n = shown->n,
                                  .now = v->stale_at ? v->stale_at : shown->now,
                                  .to = {s->columns, s->ascii, put, arg}};
    char text[TOP_LINE_CAP], age[AGE_CAP];
    if (v->stale_at) { /* nothing of it is known to be so now: times stand still */
        snprintf(text, sizeof text, "NOT LIVE: the connection was lost %s ago; this is from then",
                 age_format(shown->now - v->stale_at, age));
        top_lines_say(&d.to, TOP_REVERSE, text);
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
