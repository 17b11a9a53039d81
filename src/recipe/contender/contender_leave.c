/* contender_leave.c - how a contender leaves: given up, failed, lost or to start over; and the
 * delete of its node. Invariant: the owner is forgotten first, and told last. */
#include <assert.h>

#include "client/client_metrics.h"
#include "recipe/contender/contender.h"

/* ---- the delete of its node ------------------------------------------------------------------ */

static void contender_on_deleted(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    /* The session has ended, and the node with it. */
    bool gone =
        res->err == CLAVE_ENONODE || res->err == CLAVE_EEXPIRED || res->err == CLAVE_ENOTSENT;
    c->leaving.err = gone ? CLAVE_OK : res->err;
    clave__contender_end(c);
}

/* The watch on our own node stays armed: its event comes before the answer, and costs the server
 * less than a request to forget it. */
void clave__contender_remove_node(struct contender *c, const char *path)
{
    clave_err err = clave__client_delete_node(c->client, path, c->acquire.race ? c->node.token : 0,
                                              contender_on_deleted, c);
    c->leaving.must_delete = err == CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        c->busy++;
    else if (err == CLAVE_ENOMEM)
        clave__contender_check_later(c);
    else
        c->leaving.err = err; /* ECLOSED: the node goes with the session */
}

void clave__contender_remove_own(struct contender *c)
{
    clave__contender_remove_node(c, c->node.watch.path);
}

/* A try that fails leaves what it only found, and so does whoever spares it: another process with
 * the session may have been granted it. */
bool clave__contender_may_remove(const struct contender *c)
{
    enum queue_place_spares spares = c->place ? c->place->spares : SPARES_NOTHING;
    bool found = !c->leaving.stake.sent && !c->downgrade.node;
    if (spares == SPARES_ALL)
        return false;
    return !(found && (spares == SPARES_FOUND || (c->leaving.failed && c->acquire.trying)));
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void contender_begin_leaving(struct contender *c, bool remove)
{
    assert(c->state >= CONTENDER_JOINING && c->state <= CONTENDER_HELD);
    bool has_node = c->state >= CONTENDER_WAITING;
    clave__contender_enter(c, CONTENDER_LEAVING);
    if (remove && has_node)
        clave__contender_remove_node(c, c->node.watch.path);
}

/* Nobody wants the lock from here on. The caller tells the owner. */
static void *contender_forget_owner(struct contender *c)
{
    void *owner = c->owner;
    c->owner = NULL;
    c->spec = NULL;
    c->leaving.stake.unwanted = true;
    c->leaving.again = false;
    clave__client_timer_clear(c->client, &c->acquire.limit);
    return owner;
}

static bool contender_has_place(const struct contender *c)
{
    return c->state >= CONTENDER_JOINING && c->state <= CONTENDER_HELD;
}

static void contender_fail(struct contender *c, clave_err err, bool remove)
{
    assert(c->owner && err != CLAVE_OK);
    void *owner = contender_forget_owner(c);
    c->leaving.failed = true;
    /* The delete first, then the event: an acquire made in the callback must queue after the
     * delete. */
    if (contender_has_place(c))
        contender_begin_leaving(c, remove && clave__contender_may_remove(c));
    c->events->ended(owner, err);
}

void clave__contender_fail(struct contender *c, clave_err err)
{
    contender_fail(c, err, true);
}

void clave__contender_fail_gone(struct contender *c, clave_err err)
{
    contender_fail(c, err, false);
}

void clave__contender_lose(struct contender *c, clave_err why, bool remove)
{
    assert(c->owner && c->state == CONTENDER_HELD);
    void *owner = contender_forget_owner(c);
    clave__client_note_loss(c->client, why);
    contender_begin_leaving(c, remove);
    c->events->lost(owner, why);
}

void clave__contender_start_over(struct contender *c, bool remove)
{
    assert(c->owner);
    c->leaving.again = true;
    contender_begin_leaving(c, remove);
}

void clave__contender_leave(struct contender *c, contender_left *left, void *arg)
{
    assert(c->owner);
    clave__contender_begin(c);
    contender_forget_owner(c);
    c->leaving.done = left;
    c->leaving.arg = arg;
    if (contender_has_place(c))
        contender_begin_leaving(c, clave__contender_may_remove(c));
    clave__contender_end(c);
}

void clave__contender_spend(struct contender *c)
{
    assert(c->owner && c->state >= CONTENDER_WAITING && c->state <= CONTENDER_HELD);
    clave__contender_begin(c);
    contender_forget_owner(c);
    contender_begin_leaving(c, false);
    clave__contender_end(c);
}

void clave__contender_closed(struct contender *c)
{
    c->leaving.must_delete = false;
    if (!c->owner)
        return;
    if (c->state == CONTENDER_HELD) {
        clave__contender_lose(c, CLAVE_ECLOSED, false);
        return;
    }
    void *owner = contender_forget_owner(c);
    if (contender_has_place(c))
        contender_begin_leaving(c, false);
    c->events->ended(owner, CLAVE_ECLOSED);
}
