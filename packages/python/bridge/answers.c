/* answers.c - the callbacks that end a call: each writes its note and completes the call, which is
 * their `arg`. Those that were granted something say how it is taken back. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

/* What every answer begins with. */
static struct bridge_note *answer_begin(void *arg, clave_err err)
{
    struct bridge_call *c = arg;
    bridge__put_int(&c->note, err);
    return &c->note;
}

/* A call whose answer is nothing but an error. */
static void answer_end(void *arg, clave_err err)
{
    answer_begin(arg, err);
    bridge__complete(arg);
}

/* ---- mutex, multilock ----------------------------------------------------------------------- */

static void answer_undo_mutex(struct bridge_call *c)
{
    if (!c->read)
        clave_async_grant_free(c->grant);
    (void)clave_async_mutex_release(c->object, c->number, NULL, NULL);
}

void bridge_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct bridge_call *c = arg;
    if (err == CLAVE_OK) {
        err = clave_async_mutex_grant(m, owner, &c->grant);
        c->object = m;
        c->number = owner;
        c->undo = answer_undo_mutex;
        if (err != CLAVE_OK) { /* no memory, or lost in the same moment */
            answer_undo_mutex(c);
            c->undo = NULL;
        }
    }
    answer_begin(c, err);
    if (err == CLAVE_OK)
        bridge__put_grant(&c->note, c->grant);
    bridge__complete(c);
}

void bridge_on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    answer_end(arg, err);
}

static void answer_undo_multilock(struct bridge_call *c)
{
    (void)clave_async_multilock_release(c->object, c->number, NULL, NULL);
}

void bridge_on_multilock(clave_async_multilock *ml, uint64_t owner, clave_err err,
                         const char *failed, void *arg)
{
    struct bridge_call *c = arg;
    c->object = ml;
    c->number = owner;
    c->undo = err == CLAVE_OK ? answer_undo_multilock : NULL;
    bridge__put_text(answer_begin(c, err), failed);
    bridge__complete(c);
}

void bridge_on_multilock_left(clave_async_multilock *ml, uint64_t owner, clave_err err,
                              const char *failed, void *arg)
{
    (void)ml;
    (void)owner;
    bridge__put_text(answer_begin(arg, err), failed);
    bridge__complete(arg);
}

/* ---- semaphore ------------------------------------------------------------------------------ */

static void answer_undo_leases(struct bridge_call *c)
{
    for (size_t i = 0; i < c->nleases; i++)
        (void)clave_async_lease_release(c->leases[i], NULL, NULL);
}

/* A list of leases: each with its handle and its grant. */
static clave_err answer_put_leases(struct bridge_call *c)
{
    bridge__put_list(&c->note, c->nleases);
    for (size_t i = 0; i < c->nleases; i++) {
        clave_async_grant *grant;
        clave_err err = clave_async_lease_grant(c->leases[i], &grant);
        bridge__put_list(&c->note, err == CLAVE_OK ? 5 : 1);
        bridge__put_int(&c->note, (intptr_t)c->leases[i]);
        if (err == CLAVE_OK)
            bridge__put_grant(&c->note, grant);
    }
    return c->note.failed ? CLAVE_ENOMEM : CLAVE_OK;
}

void bridge_on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    struct bridge_call *c = arg;
    (void)s;
    answer_begin(c, err);
    if (err == CLAVE_OK) {
        c->leases = calloc(n, sizeof *c->leases);
        if (!c->leases) { /* nobody would have their handles */
            for (size_t i = 0; i < n; i++)
                (void)clave_async_lease_release(leases[i], NULL, NULL);
            c->note.failed = true;
        } else {
            memcpy(c->leases, leases, n * sizeof *leases);
            c->nleases = n;
            c->undo = answer_undo_leases;
            if (answer_put_leases(c) != CLAVE_OK) {
                answer_undo_leases(c);
                c->undo = NULL;
            }
        }
    }
    bridge__complete(c);
}

void bridge_on_lease_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    (void)s;
    answer_end(arg, err);
}

/* ---- slots ---------------------------------------------------------------------------------- */

static void answer_put_slot(struct bridge_note *n, const clave_slot *s)
{
    bridge__put_list(n, 7);
    bridge__put_text(n, s->id);
    bridge__put_text(n, s->host);
    bridge__put_text(n, s->by);
    bridge__put_text(n, s->reason);
    bridge__put_text(n, s->node);
    bridge__put_int(n, s->token);
    bridge__put_int(n, s->since);
}

static void answer_undo_slot(struct bridge_call *c)
{
    (void)clave_async_slots_give(c->object, c->text, (int64_t)c->number, CLAVE_NEVER, NULL, NULL);
}

void bridge_on_slot_taken(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                          void *arg)
{
    struct bridge_call *c = arg;
    struct bridge_note *n = answer_begin(c, err);
    if (err == CLAVE_OK) {
        bridge__put_int(n, taken);
        answer_put_slot(n, slot);
        c->text = taken ? strdup(slot->id) : NULL;
        c->object = s;
        c->number = (uint64_t)slot->token;
        c->undo = c->text ? answer_undo_slot : NULL;
    }
    bridge__complete(c);
}

void bridge_on_slot_given(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    (void)s;
    bridge__put_int(answer_begin(arg, err), slot ? slot->token : 0);
    bridge__complete(arg);
}

void bridge_on_slots_limit(clave_async_slots *s, clave_err err, void *arg)
{
    (void)s;
    answer_end(arg, err);
}

void bridge_on_slots_list(clave_async_client *client, clave_err err, const clave_slots_view *view,
                          void *arg)
{
    (void)client;
    struct bridge_note *n = answer_begin(arg, err);
    if (err == CLAVE_OK) {
        bridge__put_int(n, view->limit);
        bridge__put_list(n, view->n);
        for (size_t i = 0; i < view->n; i++)
            answer_put_slot(n, &view->slots[i]);
        answer_put_slot(n, &view->broken);
    }
    bridge__complete(arg);
}

/* ---- elections ------------------------------------------------------------------------------ */

static void answer_undo_latch(struct bridge_call *c)
{
    if (!c->read)
        clave_async_grant_free(c->grant);
}

/* Leadership that was over again in the same moment is no error: the caller waits once more. */
void bridge_on_leader(clave_async_latch *l, clave_err err, void *arg)
{
    struct bridge_call *c = arg;
    if (err == CLAVE_OK) {
        err = clave_async_latch_grant(l, &c->grant);
        c->undo = err == CLAVE_OK ? answer_undo_latch : NULL;
    }
    answer_begin(c, err);
    if (err == CLAVE_OK)
        bridge__put_grant(&c->note, c->grant);
    bridge__complete(c);
}

clave_err bridge_cancel_await(clave_async_latch *l, struct bridge_call *c)
{
    return clave_async_latch_cancel(l, bridge_on_leader, c);
}

void bridge_on_latch_closed(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    answer_end(arg, err);
}

void bridge_on_transfer(clave_async_client *client, clave_err err, void *arg)
{
    (void)client;
    answer_end(arg, err);
}

void bridge_on_counted(clave_async_counter *counter, clave_err err, int64_t before, int64_t after,
                       void *arg)
{
    (void)counter;
    struct bridge_note *n = answer_begin(arg, err);
    bridge__put_int(n, before);
    bridge__put_int(n, after);
    bridge__complete(arg);
}

void bridge_on_persistent_node(clave_async_persistent_node *node, clave_err err, void *arg)
{
    (void)node;
    answer_end(arg, err);
}

/* ---- jobs and delays ------------------------------------------------------------------------ */

void bridge_on_once(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o;
    struct bridge_note *n = answer_begin(arg, err);
    if (former) {
        bridge__put_int(n, former->state);
        bridge__put_int(n, former->began);
        bridge__put_int(n, former->age_ms);
        bridge__put_int(n, former->took_ms);
        bridge__put_int(n, former->token);
        bridge__put_identity(n, &former->identity);
    }
    bridge__complete(arg);
}

void bridge_on_delay(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d;
    answer_end(arg, err);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void answer_put_ops(struct bridge_note *n, const clave_result *res)
{
    bridge__put_list(n, res->nops);
    for (size_t i = 0; i < res->nops; i++) {
        bridge__put_list(n, 3);
        bridge__put_int(n, res->ops[i].err);
        bridge__put_text(n, res->ops[i].path);
        bridge__put_stat(n, res->ops[i].stat);
    }
}

void bridge_on_result(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct bridge_note *n = answer_begin(arg, res->err);
    bridge__put_text(n, res->path);
    bridge__put_bytes(n, res->data, res->len);
    bridge__put_stat(n, res->stat);
    bridge__put_list(n, res->nnames);
    for (size_t i = 0; i < res->nnames; i++)
        bridge__put_text(n, res->names[i]);
    bridge__put_list(n, res->nacls);
    for (size_t i = 0; i < res->nacls; i++) {
        bridge__put_list(n, 3);
        bridge__put_int(n, res->acls[i].perms);
        bridge__put_text(n, res->acls[i].scheme);
        bridge__put_text(n, res->acls[i].id);
    }
    answer_put_ops(n, res);
    bridge__complete(arg);
}

void bridge_on_participants(clave_async_client *client, clave_err err,
                            const clave_participant *list, size_t n, void *arg)
{
    (void)client;
    bridge__put_participants(answer_begin(arg, err), list, err == CLAVE_OK ? n : 0);
    bridge__complete(arg);
}

static void answer_put_deadlock(struct bridge_note *n, const clave_deadlock *d)
{
    bridge__put_list(n, 4);
    bridge__put_text(n, d->text);
    bridge__put_int(n, d->certain);
    bridge__put_int(n, d->victim < d->n ? (int64_t)d->victim : -1);
    bridge__put_list(n, d->n);
    for (size_t i = 0; i < d->n; i++) {
        bridge__put_list(n, 5);
        bridge__put_text(n, d->members[i].path);
        bridge__put_text(n, d->members[i].node);
        bridge__put_text(n, d->members[i].blocker);
        bridge__put_stat(n, &d->members[i].stat);
        bridge__put_identity(n, &d->members[i].identity);
    }
}

void bridge_on_deadlocks(clave_async_client *client, clave_err err, const clave_deadlock *list,
                         size_t n, void *arg)
{
    (void)client;
    struct bridge_note *note = answer_begin(arg, err);
    bridge__put_list(note, err == CLAVE_OK ? n : 0);
    for (size_t i = 0; err == CLAVE_OK && i < n; i++)
        answer_put_deadlock(note, &list[i]);
    bridge__complete(arg);
}
