/* locks_revoke.c - `clave locks revoke` and `clave locks break` (see locks_revoke.h). locks.c and
 * top.c call it. A node whose owner may be alive is deleted only with --force and, on a terminal,
 * only after a question. */
#include "cmd/queues/locks_revoke.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/shell_command.h"
#include "cmd/queues/queue_view.h"
#include "cmd/znodes/request_window.h"

enum { AGAIN_MS = 100 };

/* ---- finding the node ------------------------------------------------------------------------ */

static bool locks_revoke_is_meant(const struct revoke_request *w, const struct queue_view_place *at)
{
    char token[TOKEN_CAP];
    return strcmp(w->node, at->p->node) == 0 || strcmp(w->node, at->path) == 0 ||
           strcmp(w->node, participant_text_token(&at->p->stat, token)) == 0;
}

static const struct queue_view_place *locks_revoke_find(const struct revoke_request *w,
                                                        const struct queue_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (locks_revoke_is_meant(w, &v->list[i]))
            return &v->list[i];
    return NULL;
}

/* The place in the queue that the command is about. */
struct revoke_target {
    const struct revoke_request *request;
    const struct queue_view_place *at;
    const char *path;               /* path of its node */
    char who[PARTICIPANT_TEXT_CAP]; /* description of its owner */
};

static void locks_revoke_show_json(const struct revoke_target *t, const char *what, bool done)
{
    const clave_identity *id = &t->at->p->identity;
    struct json j;
    json_begin(&j, stdout);
    clave__json_string(&j, "path", t->request->path);
    clave__json_bool(&j, what, done);
    clave__json_string(&j, "role", t->at->role);
    participant_json_place(&j, t->at->p->node, &t->at->p->stat);
    participant_json_revocable(&j, id);
    participant_json_identity(&j, id);
    json_end(&j);
}

/* Prints what was done to whom. If not `done`, the owner had released the lock a moment before. */
static void locks_revoke_show(const struct options *o, const struct revoke_target *t,
                              const char *what, bool done)
{
    const char *path = t->request->path, *doubt = "";
    if (t->at->p->identity.revocable == 0)
        doubt = "; its node does not say whether it takes requests";
    if (o->json)
        locks_revoke_show_json(t, what, done);
    else if (!done)
        printf("%s: %s has just released it\n", path, t->who);
    else if (t->request->breaks)
        printf("%s: deleted the node of %s\n", path, t->who);
    else
        printf("%s: asked %s to release it%s\n", path, t->who, doubt);
}

/* ---- breaking ------------------------------------------------------------------------------- */

/* Whether the owner may be alive. An ephemeral node lives as long as its session, so the answer is
 * yes, unless no session owns the node, or its process ran on this machine and is gone. It is also
 * yes if the node may not be read, as then we do not know the owner. */
static bool locks_revoke_owner_may_be_alive(const clave_participant *p)
{
    char here[256] = "";
    const clave_identity *id = &p->identity;
    if (!participant_text_is_known(&p->stat))
        return true;
    if (p->left_over)
        return false;
    gethostname(here, sizeof here - 1);
    bool local = id->host && id->pid > 0 && id->pid <= INT32_MAX && strcmp(id->host, here) == 0;
    return !local || kill((pid_t)id->pid, 0) == 0 || errno != ESRCH;
}

static bool locks_revoke_confirmed(const struct revoke_target *t)
{
    char answer[16];
    if (t->request->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    fprintf(stderr, "%s: %s, %s. Delete its node? [y/N] ", t->request->path, t->at->role, t->who);
    fflush(stderr);
    bool said = fgets(answer, sizeof answer, stdin);
    return said && (answer[0] == 'y' || answer[0] == 'Y');
}

static int locks_revoke_break(struct options *o, clave_client *c, const struct revoke_target *t)
{
    const struct revoke_request *w = t->request;
    assert(w->breaks);
    char hint[HINT_CAP];
    if (locks_revoke_owner_may_be_alive(t->at->p) && !w->force) {
        bool known = participant_text_is_known(&t->at->p->stat);
        return diag_end(
            o, w->path, EXIT_REFUSED,
            "it belongs to %s, which may be alive: end it, use --force, or ask it: %s",
            known ? t->who : "a client whose node may not be read (--auth)",
            hint_command(o, (const char *const[]){"locks", "revoke", w->path, w->node, NULL},
                         hint));
    }
    if (!locks_revoke_confirmed(t))
        return diag_end(o, w->path, EXIT_REFUSED, "not deleted");
    clave_err err = clave_delete(c, t->path, -1, o->timeout_ms);
    if (err != CLAVE_OK && err != CLAVE_ENONODE)
        return diag_err(o, t->path, err, c);
    locks_revoke_show(o, t, "deleted", err == CLAVE_OK);
    return EXIT_OK;
}

/* ---- asking --------------------------------------------------------------------------------- */

static int locks_revoke_await_end(struct options *o, clave_client *c, const struct revoke_target *t)
{
    assert(t->request->wait_ms > 0);
    int64_t until = clave_now() + t->request->wait_ms;
    struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
    clave_err err;
    while ((err = clave_exists(c, t->path, o->timeout_ms, NULL)) == CLAVE_OK) {
        if (clave_now() >= until)
            return diag_end(o, t->request->path, EXIT_TIMEOUT,
                            "asked, but it was not released in time (only revocable locks are)");
        nanosleep(&pause, NULL);
    }
    return err == CLAVE_ENONODE ? EXIT_OK : diag_err(o, t->path, err, c);
}

struct revoke_call {
    const char *path;
    clave_err err;
};

static clave_err locks_revoke_submit(clave_async_client *c, size_t i, clave_result_cb *cb,
                                     void *cb_arg, void *arg)
{
    const struct revoke_call *call = arg;
    (void)i;
    return clave_async_revoke(c, call->path, cb, cb_arg);
}

static void locks_revoke_done(size_t i, const clave_result *res, void *arg)
{
    struct revoke_call *call = arg;
    (void)i;
    call->err = res->err;
}

static int locks_revoke_refused(struct options *o, const struct revoke_target *t)
{
    const char *path = t->request->path;
    const char *const words[] = {"locks", "break", "--force", path, t->at->p->node, NULL};
    char hint[HINT_CAP];
    return diag_end(
        o, path, EXIT_REFUSED,
        "%s takes no requests to release it ('clave lock --revocable' does), so nothing was "
        "asked; end it, or delete its node: %s",
        t->who, hint_command(o, words, hint));
}

static int locks_revoke_ask(struct options *o, clave_client *c, const struct revoke_target *t)
{
    assert(!t->request->breaks);
    char text[LEFT_OVER_CAP];
    if (t->at->p->left_over)
        return diag_end(
            o, t->request->path, EXIT_REFUSED, "nobody can be asked: %s",
            participant_text_left_over(o, t->request->path, t->at->p->node, NULL, text));
    struct revoke_call call = {.path = t->path};
    const struct request_window_plan plan = {1, locks_revoke_submit, locks_revoke_done, &call};
    clave_err err = request_window_run(c, &plan, o->timeout_ms);
    err = err == CLAVE_OK ? call.err : err;
    if (err == CLAVE_EINVAL)
        return locks_revoke_refused(o, t);
    if (err != CLAVE_OK && err != CLAVE_ENONODE)
        return diag_err(o, t->path, err, c);
    locks_revoke_show(o, t, "asked", err == CLAVE_OK);
    return err == CLAVE_OK && t->request->wait_ms > 0 ? locks_revoke_await_end(o, c, t) : EXIT_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

int revoke_node(struct options *o, const struct revoke_request *w)
{
    clave_client *c;
    struct queue_view l;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    clave_err err = queue_view_read(c, w->path, o->timeout_ms, &l);
    const struct queue_view_place *at = err == CLAVE_OK ? locks_revoke_find(w, &l) : NULL;
    if (err != CLAVE_OK) {
        code = diag_err(o, w->path, err, c);
    } else if (!at && l.n == 0 && no_queue_report(o, c, w->path)) {
        code = EXIT_PATH;
    } else if (!at) {
        code = diag_end(o, w->path, EXIT_PATH, "no participant has the node or the token '%s'",
                        w->node);
    } else {
        struct revoke_target t = {.request = w, .at = at, .path = at->path};
        participant_text_format(&at->p->identity, t.who, sizeof t.who);
        code = w->breaks ? locks_revoke_break(o, c, &t) : locks_revoke_ask(o, c, &t);
    }
    queue_view_fini(&l);
    connect_close(c);
    return code;
}
