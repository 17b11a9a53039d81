/* history_api.c - see history_api.h. Called by routes.c. Invariant: the oldest entry comes first;
 * without `since` the answer is the newest entries there are. */
#include "web/api/history_api.h"

#include <string.h>

#include "base/time_format.h"
#include "observe/lock_json.h"
#include "web/api/observe_request.h"
#include "web/http/json_pieces.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

enum { PIECE_ENTRIES = 200, PIECE_LOOKS = 2000 };

struct history_list {
    struct web_exchange *x;
    struct observe *o;
    const char *path; /* of the lock; NULL: any */
    int64_t from;     /* wall clock */
    uint64_t n;       /* was looked at; SEEKING: is looked at next */
    size_t left;      /* to write */
    size_t before;    /* SEEKING: to go back by */
    int64_t as_of;    /* of list_request */
    enum { HISTORY_SEEKING, HISTORY_BEGINNING, HISTORY_WRITING } phase;
};

static bool history_list_takes(const struct history_list *l, const struct history_entry *e)
{
    return e->at >= l->from && (!l->path || strcmp(l->path, e->path) == 0) &&
           clave__observe_may_see(l->x, e->path);
}

/* One step back, until there are `before` entries that it takes. */
static void history_list_seek(struct history_list *l)
{
    const struct history *h = &l->o->history;
    const struct history_entry *first = clave__history_after(h, 0);
    if (l->before == 0 || !first || l->n < first->n) {
        l->phase = HISTORY_BEGINNING;
        return;
    }
    const struct history_entry *e = clave__history_find(h, l->n); /* NULL: it was forgotten */
    l->before -= e && history_list_takes(l, e);
    l->n--;
}

/* One entry; false: that was the last one. */
static bool history_list_write(struct history_list *l, struct json *j, size_t *written)
{
    const struct history_entry *e = l->left > 0 ? clave__history_after(&l->o->history, l->n) : NULL;
    if (!e)
        return false;
    l->n = e->n;
    if (!history_list_takes(l, e))
        return true;
    clave__history_json(j, e);
    l->left--;
    ++*written;
    return true;
}

static clave_err history_list_piece(void *arg, struct json *j, bool *done)
{
    struct history_list *l = arg;
    size_t written = 0;
    for (int i = 0; i < PIECE_LOOKS && written < PIECE_ENTRIES && !*done; i++) {
        if (l->phase == HISTORY_SEEKING) {
            history_list_seek(l);
            continue;
        }
        if (l->phase == HISTORY_BEGINNING) {
            clave__json_open(j, NULL, '{');
            clave__lock_time_json(j, "from", l->o->history.from);
            clave__json_open(j, "entries", '[');
            l->phase = HISTORY_WRITING;
        }
        *done = !history_list_write(l, j, &written);
    }
    if (*done) {
        clave__json_close(j, ']');
        clave__copy_json_since(l->x, j, l->as_of);
        clave__json_close(j, '}');
    }
    return CLAVE_OK;
}

/* After a number, or from a moment on. false: it is neither. */
static bool history_list_since(struct history_list *l, const char *since)
{
    int64_t n;
    l->phase = since ? HISTORY_BEGINNING : HISTORY_SEEKING;
    if (!since)
        l->n = l->o->history.last;
    else if (clave__web_parse_int(since, &n) && n >= 0)
        l->n = (uint64_t)n <= l->o->history.last ? (uint64_t)n : 0; /* or of another history */
    else
        return clave__rfc3339_parse(since, &l->from);
    return true;
}

void clave__web_get_history(struct web_exchange *x)
{
    struct observe *o = clave__observe_with_past(x);
    struct list_request request;
    if (!o || !clave__list_request_read(x, &request) || !clave__query_path(x, "path"))
        return;
    struct history_list *l = clave__web_alloc(x, sizeof *l);
    if (!l) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "list", "/");
        return;
    }
    *l = (struct history_list){.x = x,
                               .o = o,
                               .path = clave__web_query(x, "path"),
                               .from = INT64_MIN,
                               .left = request.limit,
                               .before = request.limit,
                               .as_of = request.as_of};
    if (history_list_since(l, clave__web_query(x, "since")))
        clave__web_answer_pieces(x, history_list_piece, NULL, l);
    else
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                           "since is the number of an entry, or a time as 2026-11-23T09:35:19Z");
}
