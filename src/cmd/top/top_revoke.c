/* top_revoke.c - see top_revoke.h. Called by top.c. Invariant: what is done is to the node that the
 * question was about, whatever has changed since. */
#include "cmd/top/top_revoke.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/queues/locks_revoke.h"

void top_revoke_clear(struct top_revoke *a)
{
    free(a->path);
    free(a->node);
    free(a->said);
    *a = (struct top_revoke){.open = false};
}

/* ---- the question --------------------------------------------------------------------------- */

static const char *top_revoke_refusal(const struct top_view *v, const struct top_lock *l,
                                      bool breaks)
{
    if (v->stale_at)
        return "not connected: nothing can be asked now";
    if (l->kind == LOCK_KIND_ELECTION && !breaks)
        return "this is an election: 'clave resign' asks its leader to resign";
    if (l->kind == LOCK_KIND_SLOT)
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

void top_revoke_begin(struct top_revoke *a, const struct top_view *v, const struct top_lock *l,
                      const struct top_place *p, bool breaks)
{
    const char *refusal = top_revoke_refusal(v, l, breaks);
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
    a->path = strdup(l->path);
    a->node = strdup(p->node);
    a->open = a->path && a->node;
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* What it prints would be on the screen: it is kept in a file meanwhile. Returns the exit code. */
static int top_revoke_do(const struct top_revoke *a, struct options *o, int printed)
{
    struct revoke_request request = {
        .path = a->path, .node = a->node, .breaks = a->breaks, .yes = true};
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), code = EXIT_INTERNAL;
    int err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    o->deadline_ms = 0; /* it opens a session, which has its own time to connect */
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

/* The lines of the file as one text. */
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

void top_revoke_answer(struct top_revoke *a, struct options *o, int key)
{
    assert(a->open && a->path && a->node);
    a->open = false;
    if (key != 'y') {
        top_revoke_clear(a);
        return;
    }
    int printed = memfd_create("clave-top", MFD_CLOEXEC);
    int code = printed < 0 ? EXIT_INTERNAL : top_revoke_do(a, o, printed);
    top_revoke_keep(a, printed,
                    code != EXIT_OK ? "it failed"
                    : a->breaks     ? "deleted"
                                    : "asked to release it");
    if (printed >= 0)
        close(printed);
}
