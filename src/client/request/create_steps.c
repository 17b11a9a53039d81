/* create_steps.c - the states of a create of more than one request: with the missing ancestors
 * (create_parents.c), with a listing of the parent sent together with it, and with a search for its
 * node when the answer was lost. Which search that is, create.c has chosen: lost_create_by_name.c
 * by the protected name, lost_create_by_czxid.c by the order in which the server executes. Both
 * step back into the states here.
 *
 *   CREATING ──▶ SEARCHING ──▶ CHECKING ──▶ REMOVING
 *    ▲ │ ▲          │  ▲ │ found   │ of an older session │
 *    │ │ │          │  │ ▼         │           │         │
 *    │ │ └──────────┴──┴─PAUSED◀───┴───────────┘         │
 *    │ └─ no parent: again, after its ancestors          │
 *    └───────────────────────────────────────────────────┘ */
#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"
#include "client/request/create_steps.h"

enum { PAUSE_MS = 100 };

/* Which states may follow which. */
#define TO(state) (1u << CREATION_##state)
static const unsigned creation_moves[] = {
    [CREATION_CREATING] = TO(CREATING) | TO(SEARCHING) | TO(PAUSED),
    [CREATION_SEARCHING] = TO(CREATING) | TO(SEARCHING) | TO(CHECKING) | TO(PAUSED),
    [CREATION_CHECKING] = TO(CREATING) | TO(SEARCHING) | TO(CHECKING) | TO(REMOVING) | TO(PAUSED),
    [CREATION_REMOVING] = TO(CREATING) | TO(SEARCHING) | TO(PAUSED),
    [CREATION_PAUSED] = TO(SEARCHING) | TO(PAUSED),
};
#undef TO

void clave__creation_enter(struct creation *k, enum creation_state to)
{
    bool allowed = creation_moves[k->state] & (1u << to);
    assert(allowed);
    (void)allowed;
    k->state = to;
    if (to != CREATION_PAUSED)
        clave__timers_clear(&k->client->timers, &k->pause);
}

static void create_steps_sent(struct creation *k)
{
    clave_async_client *c = k->client;
    list_remove(&k->link);
    list_push_back(&c->creations, &k->link);
    k->certain.after = c->session.last_zxid;
    k->certain.before = INT64_MAX;
}

static void create_steps_identified(struct creation *k)
{
    struct list *all = &k->client->creations;
    bool later = false;
    for (struct list *l = all->next; l != all; l = l->next) {
        struct creation *other = LIST_ENTRY(l, struct creation, link);
        if (other == k)
            later = true;
        else if (later && other->certain.after < k->stat.czxid)
            other->certain.after = k->stat.czxid;
        else if (!later && other->certain.before > k->stat.czxid)
            other->certain.before = k->stat.czxid;
    }
}

void clave__creation_finish(struct creation *k, clave_err err, const clave_result *listing)
{
    assert(k->busy == 0);
    bool ok = err == CLAVE_OK;
    clave_result res = {
        .err = err,
        .zxid = k->zxid,
        .path = ok ? k->found : k->what.path,
        .stat = ok ? &k->stat : NULL,
        .names = ok && listing ? listing->names : NULL,
        .nnames = ok && listing ? listing->nnames : 0,
    };
    clave__timers_clear(&k->client->timers, &k->pause);
    if (ok && (k->flags & CLAVE_CREATE_CERTAIN))
        create_steps_identified(k);
    list_remove(&k->link);
    if (k->cb)
        k->cb(k->client, &res, k->arg);
    clave__mem_free(&k->client->mem, k->certain.numbers);
    clave__mem_free(&k->client->mem, k->lost.matches);
    clave__mem_free(&k->client->mem, k);
}

/* Only waiting helps: there is no memory, or the server cannot serve now. For a closed client no
 * time passes, so a creation that failed after _creations_end would wait for ever. */
void clave__creation_pause(struct creation *k)
{
    assert(k->search);
    if (k->client->session.state == CLAVE_STATE_CLOSED) {
        clave__creation_finish(k, CLAVE_ECLOSED, NULL);
        return;
    }
    clave__creation_enter(k, CREATION_PAUSED);
    clave__timers_set(&k->client->timers, &k->pause, k->client->now + PAUSE_MS);
}

static void create_steps_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    struct creation *k = LIST_ENTRY(t, struct creation, pause);
    k->search(k);
}

void clave__creation_init(struct creation *k)
{
    clave__timer_init(&k->pause, create_steps_on_pause);
}

/* ---- CREATING -------------------------------------------------------------------------------- */

static void create_steps_conclude(struct creation *k, const clave_result *listing);

static void create_steps_on_parent(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    clave__creation_parent_answered(k, res);
    if (--k->busy == 0)
        create_steps_conclude(k, NULL);
}

static void create_steps_on_created(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->err = res->err;
    k->zxid = res->zxid;
    if (res->err == CLAVE_OK) {
        k->stat = *res->stat;
        assert(strlen(res->path) < k->found_cap); /* both have room for any name the server makes */
        memcpy(k->found, res->path, strlen(res->path) + 1);
    }
    if (--k->busy == 0)
        create_steps_conclude(k, NULL);
}

static void create_steps_on_listed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    if (--k->busy == 0)
        create_steps_conclude(k, res->err == CLAVE_OK ? res : NULL);
}

const char *clave__creation_parent(struct creation *k)
{
    size_t n = clave__path_parent_len(k->what.path, strlen(k->what.path));
    n = n > 0 ? n : 1; /* the root is its own parent */
    memcpy(k->found, k->what.path, n);
    k->found[n] = '\0';
    return k->found;
}

/* Submits the create and the listing right after it. Without memory for the listing, the result
 * has no names. */
clave_err clave__creation_submit(struct creation *k)
{
    clave_async_client *c = k->client;
    clave_err err = clave__encode_check(c, "/", false);
    if (err == CLAVE_OK)
        err = clave__submit_create(c, &k->what, create_steps_on_created, k);
    if (err)
        return err;
    k->busy++;
    k->sent_in = c->session.id;
    if (k->stake)
        k->stake->sent = true;
    if (k->flags & CLAVE_CREATE_CERTAIN)
        create_steps_sent(k);
    if (!k->with_names)
        return CLAVE_OK;
    /* It is not sent again: a listing of a later connection would be of no use. */
    struct request_spec spec = {.again = k->lost.named ? AGAIN_NOT_UNSENT : AGAIN_NEVER,
                                .path = clave__creation_parent(k),
                                .cb = create_steps_on_listed,
                                .arg = k,
                                .quiet = true};
    if (clave__submit_read(c, OP_GET_CHILDREN2, &spec) == CLAVE_OK)
        k->busy++;
    return CLAVE_OK;
}

/* A search has proved each time that it was not done: a server closes the connection of a request
 * that is larger than it takes. A small one pauses: there is something else the matter. */
static void create_steps_cut_often(struct creation *k)
{
    if (k->what.len >= LARGE_REQUEST) {
        clave__client_fault(k->client,
                            "the server closed the connection each of the %u times that a node "
                            "with %zu bytes of data was to be created: " LARGE_REQUEST_ADVICE,
                            k->cuts, k->what.len);
        clave__creation_finish(k, CLAVE_ETOOBIG, NULL);
        return;
    }
    k->rested = true;
    clave__creation_pause(k);
}

bool clave__creation_is_unwanted(const struct creation *k)
{
    return k->stake && k->stake->unwanted;
}

void clave__creation_create(struct creation *k)
{
    assert(k->busy == 0 || k->state == CREATION_CREATING);
    if (k->lost.only_found || clave__creation_is_unwanted(k)) {
        clave__creation_finish(k, CLAVE_ENONODE, NULL);
        return;
    }
    if (k->once && k->err == CLAVE_EOPTIMEOUT) {
        clave__creation_finish(k, k->err, NULL);
        return;
    }
    if (k->cuts >= MOST_CUTS && !k->rested) {
        create_steps_cut_often(k);
        return;
    }
    k->rested = false;
    clave__creation_enter(k, CREATION_CREATING);
    k->err = clave__creation_submit(k);
    if (k->err && k->busy == 0)
        clave__creation_finish(k, k->err, NULL);
}

static void create_steps_with_parents(struct creation *k)
{
    if (clave__creation_send_parents(k, create_steps_on_parent) == CLAVE_OK)
        clave__creation_create(k);
    else
        clave__creation_finish(k, CLAVE_ENOMEM, NULL);
}

static void create_steps_no_parent(struct creation *k)
{
    clave__creation_tell_parent(k);
    clave__creation_finish(k, k->ancestors.err, NULL);
}

static void create_steps_end(struct creation *k, const clave_result *listing)
{
    char shown[PATH_SHOWN_CAP];
    if (k->err == CLAVE_ENONODE && k->what.place == CREATE_BELOW)
        clave__client_fault(k->client,
                            "cannot create %s: its ancestors were removed again each time",
                            clave__path_shown(k->what.path, shown));
    clave__creation_finish(k, k->err, listing);
}

/* All answers have arrived: the create's, the ancestors' and the listing's. */
static void create_steps_conclude(struct creation *k, const clave_result *listing)
{
    bool lost = clave_err_classify(k->err) == CLAVE_CLASS_UNKNOWN;
    bool unanswered = k->err == CLAVE_ECONNLOSS || k->err == CLAVE_ENOTSENT;
    bool cut = unanswered && k->client->link.cut > k->what.len;
    k->cuts = cut ? k->cuts + 1 : 0;
    if (k->err == CLAVE_ENONODE && clave__creation_is_unwanted(k))
        clave__creation_finish(k, k->err, NULL);
    else if (k->err == CLAVE_ENONODE && clave__creation_may_retry_parents(k))
        create_steps_with_parents(k);
    else if (k->err == CLAVE_ENONODE && k->ancestors.err != CLAVE_OK)
        create_steps_no_parent(k);
    else if (k->err == CLAVE_EOPTIMEOUT && !k->once && k->search)
        clave__creation_pause(k); /* the server is there, and would be asked without a pause */
    else if (k->search && (lost || (k->lost.named && k->err == CLAVE_ENOTSENT)))
        k->search(k);
    else
        create_steps_end(k, listing);
}

/* ---- for the searches ------------------------------------------------------------------------ */

void clave__creation_step_failed(struct creation *k, clave_err err)
{
    assert(err != CLAVE_OK);
    if (err == CLAVE_ECLOSED)
        clave__creation_finish(k, err, NULL);
    else if (err == CLAVE_ECONNLOSS || err == CLAVE_ENOTSENT)
        k->search(k);
    else if (clave_err_classify(err) == CLAVE_CLASS_FINAL)
        /* The node may exist, but the server does not let us see it. */
        clave__creation_finish(k, CLAVE_ECONNLOSS, NULL);
    else
        clave__creation_pause(k);
}

/* When the server refuses the check for good (no such parent, no permission to read it, no
 * transactions), there is no better proof to be had. */
bool clave__creation_proves(clave_err err)
{
    return err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL;
}

clave_err clave__creation_prove(struct creation *k, clave_result_cb *cb)
{
    assert(k->busy == 0);
    clave_op check = {.kind = CLAVE_OP_CHECK, .path = clave__creation_parent(k), .version = -1};
    struct request_spec spec = {.ops = &check, .nops = 1, .cb = cb, .arg = k, .quiet = true};
    k->lost.proven = false;
    k->ancestors.err = CLAVE_OK;
    clave__creation_enter(k, CREATION_SEARCHING);
    clave_err err = clave__submit_multi(k->client, &spec);
    k->busy += err == CLAVE_OK;
    return err;
}

void clave__creations_end(clave_async_client *c)
{
    for (struct list *l = c->creations.next, *next; l != &c->creations; l = next) {
        struct creation *k = LIST_ENTRY(l, struct creation, link);
        next = l->next;
        if (k->state == CREATION_PAUSED && k->busy == 0)
            clave__creation_finish(k, CLAVE_ECLOSED, NULL);
    }
}
