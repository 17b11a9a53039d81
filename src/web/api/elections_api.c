/* elections_api.c - see elections_api.h. Called by routes.c. Invariant: as that of locks_api.c. */
#include "web/api/elections_api.h"

#include <string.h>

#include "observe/lock_json.h"
#include "web/api/observe_request.h"
#include "web/http/answer.h"
#include "web/http/json_pieces.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

enum {
    PIECE_ELECTIONS = 40, /* that one piece shows */
    PIECE_LOOKS = 2000,   /* that it looks at */
    MOST_CANDIDATES = 20, /* of each in a list */
    ALL_CANDIDATES = 1000 /* of one */
};

struct election_list {
    struct web_exchange *x;
    struct observe *o;
    struct list_request request;
    bool begun;
    size_t left;
    struct buf at; /* the path looked at last, with its NUL */
};

static void election_list_end(void *arg)
{
    struct election_list *l = arg;
    clave__buf_fini(&l->at);
}

static bool election_list_takes(const struct election_list *l, const struct election *e)
{
    return clave__observe_is_below(e->path, l->request.prefix) &&
           clave__election_is_shown(e, &l->o->model) && clave__observe_may_see(l->x, e->path);
}

static clave_err election_list_piece(void *arg, struct json *j, bool *done)
{
    struct election_list *l = arg;
    struct election_view view = {.locks = &l->o->model, .most_candidates = MOST_CANDIDATES};
    clave_err err = CLAVE_OK;
    size_t written = 0;
    if (!l->begun) {
        clave__json_open(j, NULL, '{');
        clave__json_open(j, "elections", '[');
        l->begun = true;
    }
    for (int i = 0; i < PIECE_LOOKS && written < PIECE_ELECTIONS && err == CLAVE_OK; i++) {
        const char *at = clave__buf_text(&l->at);
        const struct election *e = clave__election_after(&l->o->elections, at);
        *done = !e || l->left == 0;
        if (*done) {
            clave__list_request_close(l->x, &l->request, j, e ? at : NULL);
            return CLAVE_OK;
        }
        err = clave__buf_set_text(&l->at, e->path);
        if (!election_list_takes(l, e))
            continue;
        clave__election_json(j, NULL, e, &view);
        l->left--;
        written++;
    }
    return err;
}

void clave__web_get_elections(struct web_exchange *x)
{
    struct observe *o = clave__observe_with_past(x);
    struct list_request request;
    if (!o || !clave__list_request_read(x, &request))
        return;
    struct election_list *l = clave__web_alloc(x, sizeof *l);
    clave_err err = l ? CLAVE_OK : CLAVE_ENOMEM;
    if (l) {
        *l = (struct election_list){.x = x, .o = o, .request = request, .left = request.limit};
        clave__buf_init(&l->at, &x->web->mem, SIZE_MAX);
        err = clave__buf_set_text(&l->at, request.after ? request.after : "");
    }
    if (err == CLAVE_OK)
        clave__web_answer_pieces(x, election_list_piece, election_list_end, l);
    else
        clave__web_problem_err(x, err, "list", request.prefix);
}

void clave__web_get_election(struct web_exchange *x)
{
    const char *path = x->params[0];
    struct observe *o = clave__param_path(x) ? clave__observe_with_past(x) : NULL;
    if (!o)
        return;
    const struct election *e = clave__election_find(&o->elections, path);
    if (!e || !clave__election_is_shown(e, &o->model)) {
        clave__copy_answer_none(x, path, "there is no election at");
        return;
    }
    char etag[COPY_ETAG_CAP];
    clave__copy_etag(etag,
                     clave__election_digest(e, clave__lock_model_get(&o->model, path, false)));
    if (!clave__copy_is_news(x, path, etag))
        return;
    struct election_view view = {&o->model, ALL_CANDIDATES, clave__copy_json, x};
    clave__election_json(&x->json, NULL, e, &view);
    clave__web_answer_json(x, 200);
}
