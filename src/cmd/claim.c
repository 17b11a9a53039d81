#include "cmd/claim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OWNER = 0, IDENTITY_CAP = 4096, COMMAND_CAP = 1024 };

/* ---- a lock -------------------------------------------------------------------------------- */

static void on_acquired(clave_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct claim *c = arg;
    (void)m;
    (void)owner;
    c->events->verdict(c->arg, err);
}

static void on_mutex_event(clave_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct claim *c = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_QUEUED)
        c->events->moved(c->arg, ev->ahead, ev->predecessor);
    else if (ev->kind == CLAVE_MUTEX_NEXT)
        c->events->next(c->arg);
    else if (ev->kind == CLAVE_MUTEX_LOST)
        c->events->lost(c->arg, ev->why);
}

/* The command's words, as far as they fit. */
static void join_words(char *const *argv, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; argv[i] && n < cap; i++) {
        int added = snprintf(out + n, cap - n, "%s%s", i > 0 ? " " : "", argv[i]);
        n += added > 0 ? (size_t)added : 0;
    }
}

static size_t format_identity(const struct lock_plan *plan, char *out, size_t cap)
{
    char host[256] = "", command[COMMAND_CAP];
    gethostname(host, sizeof host - 1);
    join_words(plan->argv, command, sizeof command);
    clave_identity id = {
        .host = *host ? host : NULL, .pid = getpid(), .name = plan->name, .command = command};
    size_t n = clave_identity_format(&id, out, cap);
    return n < cap ? n : cap - 1;
}

static clave_err begin_lock(struct claim *c, clave_client *client, const struct lock_plan *plan,
                            const struct claim_terms *terms)
{
    char identity[IDENTITY_CAP];
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_mutex_event, .event_arg = c};
    o.data = identity;
    o.len = format_identity(plan, identity, sizeof identity);
    o.acls = plan->acl.n > 0 ? plan->acl.list : NULL;
    o.nacls = plan->acl.n;
    o.min_valid_ms = terms->min_valid_ms;
    clave_err err = clave_mutex_new(&c->mutex, client, plan->path, &o);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(c->mutex, OWNER, terms->deadline, on_acquired, c);
    return err;
}

/* ---- a leadership -------------------------------------------------------------------------- */

static void on_verdict(clave_latch *l, clave_err err, void *arg)
{
    struct claim *c = arg;
    if (err != CLAVE_OK)
        (void)clave_latch_close(l, CLAVE_CLOSE_SILENT, NULL, NULL);
    c->events->verdict(c->arg, err);
}

static void on_latch_event(clave_latch *l, const clave_latch_event *ev, void *arg)
{
    struct claim *c = arg;
    switch (ev->kind) {
    case CLAVE_LATCH_QUEUED:
        c->events->moved(c->arg, ev->ahead, ev->predecessor);
        break;
    case CLAVE_LATCH_NEXT:
        c->events->next(c->arg);
        break;
    case CLAVE_LATCH_NOT_LEADER:
        /* One command, one leadership: it does not stand again. */
        (void)clave_latch_close(l, CLAVE_CLOSE_SILENT, NULL, NULL);
        c->events->lost(c->arg, ev->why);
        break;
    case CLAVE_LATCH_ASKED:
        c->events->asked(c->arg);
        break;
    case CLAVE_LATCH_LEADER: /* the await says both of these */
    case CLAVE_LATCH_FAILED:
        break;
    }
}

/* The session policy: the guardian ends the command by the hold deadline, so a connection that
 * is away for a moment is no reason to. */
static clave_err begin_election(struct claim *c, clave_client *client, const struct lock_plan *plan,
                                const struct claim_terms *terms)
{
    clave_latch_options o = {.size = sizeof o, .event_cb = on_latch_event, .event_arg = c};
    o.id = plan->name;
    o.policy = CLAVE_POLICY_SESSION;
    o.acls = plan->acl.n > 0 ? plan->acl.list : NULL;
    o.nacls = plan->acl.n;
    o.min_valid_ms = terms->min_valid_ms;
    o.revocable = true;
    clave_err err = clave_latch_new(&c->latch, client, plan->path, &o);
    if (err == CLAVE_OK)
        err = clave_latch_await(c->latch, terms->deadline, on_verdict, c);
    return err == CLAVE_OK ? clave_latch_start(c->latch) : err;
}

/* ---- either -------------------------------------------------------------------------------- */

clave_err claim_begin(struct claim *c, clave_client *client, const struct lock_plan *plan,
                      const struct claim_terms *terms)
{
    return (plan->elects ? begin_election : begin_lock)(c, client, plan, terms);
}

bool claim_grant(const struct claim *c, clave_grant *out)
{
    if (c->latch)
        return clave_latch_grant(c->latch, out);
    return c->mutex && clave_mutex_grant(c->mutex, OWNER, out);
}

clave_err claim_publish(struct claim *c, const char *value)
{
    return clave_latch_publish(c->latch, value, strlen(value), NULL, NULL);
}

void claim_free(struct claim *c)
{
    clave_mutex_free(c->mutex);
    clave_latch_free(c->latch);
    c->mutex = NULL;
    c->latch = NULL;
}
