/* revoke.c - `clave locks revoke` and `clave locks break` (revoke.h); locks.c calls it. A node
 * whose owner may be alive is deleted only with --force, and on a terminal only after a
 * question. */
#include "cmd/queue/revoke.h"

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
#include "cmd/queue/participant_text.h"
#include "cmd/queue/queue_view.h"

enum { AGAIN_MS = 100 };

/* ---- which one ------------------------------------------------------------------------------ */

static bool revoke_is_meant(const struct revoke_request *w, const struct queue_view_place *at)
{
    char token[TOKEN_CAP];
    char *path = queue_view_node_path(w->path, at);
    bool meant = strcmp(w->node, at->p->node) == 0 || (path && strcmp(w->node, path) == 0) ||
                 strcmp(w->node, participant_text_token(&at->p->stat, token)) == 0;
    free(path);
    return meant;
}

static const struct queue_view_place *revoke_find(const struct revoke_request *w,
                                                  const struct queue_view *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (revoke_is_meant(w, &l->list[i]))
            return &l->list[i];
    return NULL;
}

/* ---- breaking ------------------------------------------------------------------------------- */

/* An ephemeral node lives as long as its session, so its owner may be alive: unless no session owns
 * the node, or its process was on this machine and is gone. For a node that may not be read, the
 * owner is not known. */
static bool owner_may_be_alive(const clave_participant *p)
{
    char here[256] = "";
    const clave_identity *id = &p->identity;
    if (!participant_text_is_known(&p->stat))
        return true;
    if (p->stat.ephemeral_owner == 0)
        return false;
    gethostname(here, sizeof here - 1);
    bool local = id->host && id->pid > 0 && id->pid <= INT32_MAX && strcmp(id->host, here) == 0;
    return !local || kill((pid_t)id->pid, 0) == 0 || errno != ESRCH;
}

static bool confirmed(const struct revoke_request *w, const struct queue_view_place *at)
{
    char who[PARTICIPANT_TEXT_CAP], answer[16];
    if (w->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    fprintf(stderr, "%s: %s, %s. Delete its node? [y/N] ", w->path, at->role,
            participant_text_format(&at->p->identity, who, sizeof who));
    fflush(stderr);
    bool said = fgets(answer, sizeof answer, stdin);
    return said && (answer[0] == 'y' || answer[0] == 'Y');
}

static int revoke_break(struct options *o, const struct revoke_request *w, clave_client *s,
                        const struct queue_view_place *at, const char *path)
{
    char who[PARTICIPANT_TEXT_CAP];
    if (owner_may_be_alive(at->p) && !w->force) {
        bool known = participant_text_is_known(&at->p->stat);
        diag(o,
             "%s: it belongs to %s, which may be alive: ask it ('clave locks revoke'), "
             "end it, or use --force",
             w->path,
             known ? participant_text_format(&at->p->identity, who, sizeof who)
                   : "a client whose node may not be read (--auth)");
        return EXIT_REFUSED;
    }
    if (!confirmed(w, at)) {
        diag(o, "%s: not deleted", w->path);
        return EXIT_REFUSED;
    }
    clave_err err = clave_delete(s, path, -1, o->timeout_ms);
    if (err != CLAVE_OK && err != CLAVE_ENONODE)
        return diag_err(o, path, err, s);
    diag_note(o, "%s: deleted", path);
    return EXIT_OK;
}

/* ---- asking --------------------------------------------------------------------------------- */

static int revoke_await_end(struct options *o, const struct revoke_request *w, clave_client *s,
                            const char *path)
{
    int64_t until = clave_now() + w->wait_ms;
    struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
    clave_err err;
    while ((err = clave_exists(s, path, o->timeout_ms, NULL)) == CLAVE_OK) {
        if (clave_now() >= until) {
            diag(o, "%s: asked, but it was not released in time (only revocable locks are)",
                 w->path);
            return EXIT_TIMEOUT;
        }
        nanosleep(&pause, NULL);
    }
    return err == CLAVE_ENONODE ? EXIT_OK : diag_err(o, path, err, s);
}

static int revoke_ask(struct options *o, const struct revoke_request *w, clave_client *s,
                      const char *path)
{
    clave_err err =
        clave_set(s, path, CLAVE_REVOKE_WORD, strlen(CLAVE_REVOKE_WORD), -1, o->timeout_ms, NULL);
    if (err == CLAVE_ENONODE)
        return EXIT_OK; /* it has just been released */
    if (err != CLAVE_OK)
        return diag_err(o, path, err, s);
    return w->wait_ms > 0 ? revoke_await_end(o, w, s, path) : EXIT_OK;
}

/* ---- either --------------------------------------------------------------------------------- */

int revoke_node(struct options *o, const struct revoke_request *w)
{
    clave_client *s;
    struct queue_view l;
    int code = connect_open(o, NULL, &s);
    if (code != EXIT_OK)
        return code;
    clave_err err = queue_view_read(s, w->path, o->timeout_ms, &l);
    const struct queue_view_place *at = err == CLAVE_OK ? revoke_find(w, &l) : NULL;
    char *path = at ? queue_view_node_path(w->path, at) : NULL;
    if (at && !path)
        err = CLAVE_ENOMEM;
    if (err != CLAVE_OK) {
        code = diag_err(o, w->path, err, s);
    } else if (!at) {
        diag(o, "%s: no participant has the node or the token '%s'", w->path, w->node);
        code = EXIT_PATH;
    } else {
        code = w->breaks ? revoke_break(o, w, s, at, path) : revoke_ask(o, w, s, path);
    }
    free(path);
    queue_view_fini(&l);
    connect_close(s);
    return code;
}
