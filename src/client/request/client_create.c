/* client_create.c - clave_async_create and its kin. A plain create is a single request
 * (pipeline.c). This file is about creates that may take several: those that also create missing
 * ancestors (CLAVE_CREATE_PARENTS), those followed at once by a listing of the parent, and those
 * whose outcome has to be found out even if the answer is lost, either by the node's name
 * (CLAVE_CREATE_PROTECTED) or by the order of execution (CLAVE_CREATE_CERTAIN).
 *
 *   CREATING ──▶ SEARCHING ──▶ CHECKING ──▶ REMOVING
 *    ▲ │ ▲          │  ▲ │ found   │ of an older session │
 *    │ │ │          │  │ ▼         │           │         │
 *    │ │ └──────────┴──┴─PAUSED◀───┴───────────┘         │
 *    │ └─ no parent: again, after its ancestors          │
 *    └───────────────────────────────────────────────────┘
 *
 * When an answer is lost, the create may have been done or not, or may still be done by the next
 * leader. So each search begins with a transaction that changes nothing: whatever is read after it
 * shows the node if the create was or ever will be committed. The create is sent again only once a
 * search has proved that there is no node.
 *
 * By name: a protected name is "_c_<uuid>-", as Curator and kazoo read it. The UUID is random,
 * mixed with the id of the session and the time: clients with equal seeds draw equal numbers, but
 * no two of them have the same session at the same time. Each create gets one name and keeps it
 * when the session changes, because the search looks for the name that was sent. A create submitted
 * while there is no session is sent in the next one; its name is completed inside the waiting
 * request when that session has been made.
 *
 * By czxid, if the name does not identify the node: the server executes the requests of one session
 * in the order in which they were sent. So if the node exists, it belongs to the present session,
 * and its czxid is greater than every zxid answered before the create was sent and less than the
 * czxid of every create sent after it. A node in between is ours, or that of a later create whose
 * answer was lost as well. If there are several, ours is the one with the least czxid; for that to
 * hold, creates sent before ours must have found their nodes first.
 *
 * What must stay true: an ephemeral node is adopted only if it belongs to the present session. If
 * it belongs to the older session in which the create was sent, it is about to vanish and must
 * never be adopted (CURATOR-604): the search by name removes it, the search by czxid leaves that to
 * the server. A node of any other session is another client's, whatever its name says.
 * creation_enter is the only function that changes the state, and creation_finish the only one that
 * ends a creation; it answers exactly once. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "client/client_for_gate.h"
#include "client/client_internal.h"

/* ---- a create under way ---------------------------------------------------------------------- */

enum creation_state {
    CREATION_CREATING,
    CREATION_SEARCHING,
    CREATION_CHECKING,
    CREATION_REMOVING,
    CREATION_PAUSED,
};

/* Creating the missing ancestors of its path. */
struct creation_ancestors {
    unsigned attempts;
    clave_err err; /* why one of them could not be created */
    size_t len;    /* the length of that one's path on the server */
};

/* Searching by name for the node whose answer was lost. */
struct creation_lost {
    bool named; /* the caller chose the UUID, so another process that has the session may create the
                   same node at any time, and what a search has proved holds only for its own
                   connection */
    bool only_found; /* from here to excludes_arg as in client_named_create */
    const char *below;
    bool (*excludes)(void *arg, const char *path);
    void *excludes_arg;
    /* The names that begin like ours and have not been checked yet, each NUL-terminated, with an
     * empty one at the end. */
    char *matches;
    const char *next_match;
    bool proven;        /* from now on, reads show everything committed before the search began */
    uint64_t proven_on; /* the number of the connection for which that holds */
};

/* For CLAVE_CREATE_CERTAIN: if the node exists, its czxid lies between `after` and `before`. During
 * the search, also the numbers of the nodes still to be checked, and the best match so far. */
struct creation_certain {
    int64_t after, before;
    int32_t *numbers;
    size_t nnumbers;
    bool matched;
    int32_t match;
};

struct creation {
    struct list link; /* in the client's list; creates with CLAVE_CREATE_CERTAIN are there in the
                         order in which they were sent */
    clave_async_client *client;
    enum creation_state state;
    unsigned busy; /* how many requests are under way */
    unsigned cuts; /* how often in a row the server closed the connection after part of the create
                      had left */
    bool rested;   /* it has paused since the last of many such cuts */
    unsigned flags;
    bool with_names;
    bool once;
    struct create_stake *stake;
    struct timer pause;
    void (*search)(struct creation *k); /* searches for the node whose answer was lost; NULL: this
                                           create does not search */
    clave_result_cb *cb;
    void *arg;
    struct submit_create what; /* its texts are in the same allocation, after the struct */
    char *name; /* the name within what.path, which may still change while there is no session */
    int64_t sent_in; /* the session in which the create was sent last; 0: it waits for the next
                        session. No node of an earlier attempt is left, since a create is sent again
                        only after a search has proved that */
    char *found;     /* the path of the node, from the answer or from a search */
    size_t found_cap;
    /* The outcome so far. */
    clave_err err;
    int64_t zxid;
    clave_stat stat;

    struct creation_ancestors ancestors;
    struct creation_lost lost;
    struct creation_certain certain;
};

/* ---- states ---------------------------------------------------------------------------------- */

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

static void creation_enter(struct creation *k, enum creation_state to)
{
    bool allowed = creation_moves[k->state] & (1u << to);
    assert(allowed);
    (void)allowed;
    k->state = to;
    if (to != CREATION_PAUSED)
        clave__timers_clear(&k->client->base.timers, &k->pause);
}

static void creation_sent(struct creation *k)
{
    clave_async_client *c = k->client;
    list_remove(&k->link);
    list_push_back(&c->creations, &k->link);
    k->certain.after = c->session.last_zxid;
    k->certain.before = INT64_MAX;
}

static void creation_identified(struct creation *k)
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

static void creation_finish(struct creation *k, clave_err err, const clave_result *listing)
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
    clave__timers_clear(&k->client->base.timers, &k->pause);
    if (ok && (k->flags & CLAVE_CREATE_CERTAIN))
        creation_identified(k);
    list_remove(&k->link);
    if (k->cb)
        k->cb(k->client, &res, k->arg);
    clave__mem_free(&k->client->base.mem, k->certain.numbers);
    clave__mem_free(&k->client->base.mem, k->lost.matches);
    clave__mem_free(&k->client->base.mem, k);
}

/* Waits before continuing, because there is no memory or the server cannot serve at the moment. On
 * a closed client no time passes, so a creation that failed after _creations_end would wait
 * forever; it ends instead. */
static void creation_pause(struct creation *k)
{
    assert(k->search);
    if (k->client->session.state == CLAVE_STATE_CLOSED) {
        creation_finish(k, CLAVE_ECLOSED, NULL);
        return;
    }
    creation_enter(k, CREATION_PAUSED);
    clave__timers_set(&k->client->base.timers, &k->pause, k->client->base.now + PAUSE_MS);
}

static void creation_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    struct creation *k = LIST_ENTRY(t, struct creation, pause);
    k->search(k);
}

/* ---- protected names ------------------------------------------------------------------------- */

/* In the frame of a create, the path follows the length of the frame, the xid, the opcode and the
 * length of the path. */
enum { PATH_AT = 16, UUID_AT = 3 };

void clave__client_protect(clave_async_client *c, char out[CLAVE_PROTECTED_PREFIX + 1])
{
    memcpy(out, "_c_", UUID_AT);
    clave__rand_uuid(&c->rand, out + UUID_AT);
    clave__uuid_mix(out + UUID_AT, (uint64_t)c->session.id, (uint64_t)c->base.now);
    memcpy(out + CLAVE_PROTECTED_PREFIX - 1, "-", 2);
}

/* Completes the name in the request of the create, if that has not been sent yet. */
static void creation_complete_name(struct creation *k)
{
    const clave_async_client *c = k->client;
    struct request *r = NULL;
    for (struct list *l = c->pipeline.unsent.next; l != &c->pipeline.unsent && !r; l = l->next) {
        struct request *waiting = LIST_ENTRY(l, struct request, link);
        if (waiting->arg == k && strcmp(waiting->path, k->what.path) == 0)
            r = waiting;
    }
    size_t dir = (size_t)(clave__path_name(k->what.path) - k->what.path);
    size_t in_frame = PATH_AT + c->hosts.chroot_len + dir;
    char *name = k->name;
    if (!r)
        return;
    assert(memcmp(r->frame + in_frame, name, CLAVE_PROTECTED_PREFIX) == 0);
    clave__uuid_mix(name + UUID_AT, (uint64_t)k->sent_in, 0);
    memcpy(r->frame + in_frame, name, CLAVE_PROTECTED_PREFIX);
    memcpy(r->path + dir, name, CLAVE_PROTECTED_PREFIX);
}

void clave__creations_session_made(clave_async_client *c, int64_t id)
{
    for (struct list *l = c->creations.next; l != &c->creations; l = l->next) {
        struct creation *k = LIST_ENTRY(l, struct creation, link);
        if (k->sent_in != 0)
            continue;
        k->sent_in = id;
        if ((k->flags & CLAVE_CREATE_PROTECTED) && !k->lost.named)
            creation_complete_name(k);
    }
}

/* ---- missing ancestors ----------------------------------------------------------------------- */

enum { MAX_PARENT_ATTEMPTS = 5 };

/* Puts the path as the server knows it into k->found. */
static clave_err creation_full_path(struct creation *k, struct jbytes *full)
{
    clave_err err = clave__path_to_create(k->client, k->what.path, k->what.mode, full);
    if (err != CLAVE_OK || full->n >= (int32_t)k->found_cap)
        return CLAVE_ENOMEM;
    memcpy(k->found, full->p, (size_t)full->n);
    return CLAVE_OK;
}

static void creation_conclude(struct creation *k, const clave_result *listing);

static void creation_on_parent(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    if (res->err == CLAVE_EUNIMPLEMENTED)
        k->client->no_containers = true; /* the server is older than 3.5: use persistent nodes */
    else if (res->err != CLAVE_OK && res->err != CLAVE_ENODEEXISTS &&
             k->ancestors.err == CLAVE_OK) {
        k->ancestors.err = res->err; /* the first error is the cause of the others */
        k->ancestors.len = strlen(res->path);
    }
    if (--k->busy == 0)
        creation_conclude(k, NULL);
}

static void creation_create(struct creation *k);

/* Creates the ancestors, and then the node, without waiting for answers; for those that exist, the
 * server answers NODEEXISTS. */
static void creation_with_parents(struct creation *k)
{
    clave_async_client *c = k->client;
    struct jbytes full;
    k->ancestors.attempts++;
    k->ancestors.err = CLAVE_OK;
    if (creation_full_path(k, &full) != CLAVE_OK) {
        creation_finish(k, CLAVE_ENOMEM, NULL);
        return;
    }
    /* Write empty data as Curator and kazoo do, because kazoo cannot read null. */
    struct submit_create parent = {
        .path = k->found, .data = "", .raw = true, .place = CREATE_ANCESTOR};
    parent.mode = c->no_containers ? CLAVE_PERSISTENT : CLAVE_CONTAINER;
    for (int32_t i = 1; i < full.n; i++) {
        if (k->found[i] != '/')
            continue;
        k->found[i] = '\0';
        if (clave__submit_create(c, &parent, creation_on_parent, k) == CLAVE_OK)
            k->busy++;
        else
            k->ancestors.err = CLAVE_ENOMEM;
        k->found[i] = '/';
    }
    creation_create(k);
}

/* True if creating the ancestors is worth another attempt: they existed and were removed again, or
 * their creates were lost with a connection while the create itself went out on the next one. */
static bool creation_may_retry_parents(const struct creation *k)
{
    return (k->flags & CLAVE_CREATE_PARENTS) && k->ancestors.attempts < MAX_PARENT_ATTEMPTS &&
           (k->ancestors.err == CLAVE_OK || clave__err_passes(k->ancestors.err));
}

/* Reports why an ancestor could not be created. Without an answer, the fault that the link has set
 * is more specific. */
static void creation_tell_parent(struct creation *k)
{
    struct jbytes full;
    bool answered = clave_err_classify(k->ancestors.err) == CLAVE_CLASS_FINAL;
    if (answered && creation_full_path(k, &full) == CLAVE_OK) {
        k->found[k->ancestors.len] = '\0';
        clave__request_tell_ancestor(k->client, k->found, k->ancestors.err);
    }
}

/* ---- the create itself ----------------------------------------------------------------------- */

static void creation_on_created(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->err = res->err;
    k->zxid = res->zxid;
    if (res->err == CLAVE_OK) {
        k->stat = *res->stat;
        assert(strlen(res->path) <
               k->found_cap); /* both have room for any name the server can make */
        memcpy(k->found, res->path, strlen(res->path) + 1);
    }
    if (--k->busy == 0)
        creation_conclude(k, NULL);
}

static void creation_on_listed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    if (--k->busy == 0)
        creation_conclude(k, res->err == CLAVE_OK ? res : NULL);
}

/* The path of the node's parent, NUL-terminated, in k->found, which is not in use until the node is
 * found. */
static const char *creation_parent(struct creation *k)
{
    size_t n = clave__path_parent_len(k->what.path, strlen(k->what.path));
    n = n > 0 ? n : 1; /* the parent of the root is the root */
    memcpy(k->found, k->what.path, n);
    k->found[n] = '\0';
    return k->found;
}

/* Submits the create and, right after it, the listing. If there is no memory for the listing, the
 * result has no names. */
static clave_err creation_submit(struct creation *k)
{
    clave_async_client *c = k->client;
    clave_err err = clave__encode_check(c, "/", false);
    if (err == CLAVE_OK)
        err = clave__submit_create(c, &k->what, creation_on_created, k);
    if (err)
        return err;
    k->busy++;
    k->sent_in = c->session.id;
    if (k->stake)
        k->stake->sent = true;
    if (k->flags & CLAVE_CREATE_CERTAIN)
        creation_sent(k);
    if (!k->with_names)
        return CLAVE_OK;
    /* The listing is not sent again: on a later connection it would be of no use. */
    struct request_spec spec = {.again = k->lost.named ? AGAIN_NOT_UNSENT : AGAIN_NEVER,
                                .path = creation_parent(k),
                                .cb = creation_on_listed,
                                .arg = k,
                                .quiet = true};
    if (clave__submit_read(c, OP_GET_CHILDREN2, &spec) == CLAVE_OK)
        k->busy++;
    return CLAVE_OK;
}

/* The server has closed the connection on this create several times in a row, and each time a
 * search has proved that nothing was created. For a large request the reason must be its size,
 * which the server does not accept. A small one has some other reason: it pauses. */
static void creation_cut_often(struct creation *k)
{
    if (k->what.len >= LARGE_REQUEST) {
        clave__client_fault(k->client,
                            "the server closed the connection each of the %u times that a node "
                            "with %zu bytes of data was to be created: " LARGE_REQUEST_ADVICE,
                            k->cuts, k->what.len);
        creation_finish(k, CLAVE_ETOOBIG, NULL);
        return;
    }
    k->rested = true;
    creation_pause(k);
}

/* True if the caller does not want the node any more; see create_stake. */
static bool creation_is_unwanted(const struct creation *k)
{
    return k->stake && k->stake->unwanted;
}

static void creation_create(struct creation *k)
{
    assert(k->busy == 0 || k->state == CREATION_CREATING);
    if (k->lost.only_found || creation_is_unwanted(k)) {
        creation_finish(k, CLAVE_ENONODE, NULL);
        return;
    }
    if (k->once && k->err == CLAVE_EOPTIMEOUT) {
        creation_finish(k, k->err, NULL);
        return;
    }
    if (k->cuts >= MOST_CUTS && !k->rested) {
        creation_cut_often(k);
        return;
    }
    k->rested = false;
    creation_enter(k, CREATION_CREATING);
    k->err = creation_submit(k);
    if (k->err && k->busy == 0)
        creation_finish(k, k->err, NULL);
}

static void creation_no_parent(struct creation *k)
{
    creation_tell_parent(k);
    creation_finish(k, k->ancestors.err, NULL);
}

/* Called when all answers have arrived: those of the create, the ancestors and the listing. */
static void creation_conclude(struct creation *k, const clave_result *listing)
{
    bool lost = clave_err_classify(k->err) == CLAVE_CLASS_UNKNOWN;
    bool unanswered = k->err == CLAVE_ECONNLOSS || k->err == CLAVE_ENOTSENT;
    bool cut = unanswered && k->client->link.cut > k->what.len;
    k->cuts = cut ? k->cuts + 1 : 0;
    if (k->err == CLAVE_ENONODE && creation_is_unwanted(k))
        creation_finish(k, k->err, NULL);
    else if (k->err == CLAVE_ENONODE && creation_may_retry_parents(k))
        creation_with_parents(k);
    else if (k->err == CLAVE_ENONODE && k->ancestors.err != CLAVE_OK)
        creation_no_parent(k);
    else if (k->err == CLAVE_EOPTIMEOUT && !k->once && k->search)
        creation_pause(
            k); /* the server is up, and would be asked again and again without a pause */
    else if (k->search && (lost || (k->lost.named && k->err == CLAVE_ENOTSENT)))
        k->search(k);
    else {
        char shown[PATH_SHOWN_CAP];
        if (k->err == CLAVE_ENONODE && k->what.place == CREATE_BELOW)
            clave__client_fault(k->client,
                                "cannot create %s: its ancestors were removed again each time",
                                clave__path_shown(k->what.path, shown));
        creation_finish(k, k->err, listing);
    }
}

/* ---- what a search can prove ----------------------------------------------------------------- */

/* A step of the search has failed, perhaps without an answer. */
static void creation_step_failed(struct creation *k, clave_err err)
{
    assert(err != CLAVE_OK);
    if (err == CLAVE_ECLOSED)
        creation_finish(k, err, NULL);
    else if (err == CLAVE_ECONNLOSS || err == CLAVE_ENOTSENT)
        k->search(k);
    else if (clave_err_classify(err) == CLAVE_CLASS_FINAL)
        /* The node may exist, but the server does not let us see it. */
        creation_finish(k, CLAVE_ECONNLOSS, NULL);
    else
        creation_pause(k);
}

/* True if the check was answered in a way that serves as proof. If the server refuses it for good
 * (no such parent, no permission to read it, no transactions), no better proof can be had. */
static bool creation_proves(clave_err err)
{
    return err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL;
}

/* The first step of a search: commits a transaction of the present epoch that changes nothing. What
 * is read afterwards shows the node if its create was or ever will be committed. A sync would not
 * do: a deposed leader answers it on its own, and its successor may still commit what that leader
 * had proposed. */
static clave_err creation_prove(struct creation *k, clave_result_cb *cb)
{
    assert(k->busy == 0);
    clave_op check = {.kind = CLAVE_OP_CHECK, .path = creation_parent(k), .version = -1};
    struct request_spec spec = {.ops = &check, .nops = 1, .cb = cb, .arg = k, .quiet = true};
    k->lost.proven = false;
    k->ancestors.err = CLAVE_OK;
    creation_enter(k, CREATION_SEARCHING);
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
            creation_finish(k, CLAVE_ECLOSED, NULL);
    }
}

/* ---- the search by name ---------------------------------------------------------------------- */

static void by_name_search(struct creation *k);

static void by_name_on_removed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        creation_create(k);
    else
        creation_step_failed(k, res->err);
}

/* Whose node was found. If the node is not ephemeral, the name is all there is to tell by. */
enum whose { WHOSE_OURS, WHOSE_OLDER, WHOSE_OTHERS };

static enum whose by_name_whose_node(const struct creation *k, const clave_stat *stat)
{
    bool ephemeral = k->what.mode == CLAVE_EPHEMERAL || k->what.mode == CLAVE_EPHEMERAL_SEQUENTIAL;
    if (!ephemeral || stat->ephemeral_owner == k->client->session.id)
        return WHOSE_OURS;
    return stat->ephemeral_owner == k->sent_in ? WHOSE_OLDER : WHOSE_OTHERS;
}

static void by_name_remove_found(struct creation *k)
{
    creation_enter(k, CREATION_REMOVING);
    clave_err err = clave__submit_delete(k->client, k->found, -1, by_name_on_removed, k);
    k->busy += err == CLAVE_OK;
    if (err)
        creation_step_failed(k, err);
}

static void by_name_check_next(struct creation *k);

static void by_name_on_checked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    if (res->err == CLAVE_ENONODE) {
        by_name_check_next(k);
        return;
    }
    if (res->err != CLAVE_OK) {
        creation_step_failed(k, res->err);
        return;
    }
    switch (by_name_whose_node(k, res->stat)) {
    case WHOSE_OURS:
        k->stat = *res->stat;
        k->zxid = res->zxid;
        creation_finish(k, CLAVE_OK, NULL);
        break;
    case WHOSE_OLDER:
        by_name_remove_found(k);
        break;
    case WHOSE_OTHERS:
        by_name_check_next(k);
        break;
    }
}

/* True if the last search proved that no node has our name. If the connection has changed since,
 * another process that has the session may have made one that the new server does not know yet. */
static bool by_name_is_proven(const struct creation *k)
{
    return k->lost.proven && (!k->lost.named || k->lost.proven_on == k->client->link.connections);
}

/* Checks the next name in the listing that begins like ours. If none is left, our node does not
 * exist, provided the listing was proof. */
static void by_name_check_next(struct creation *k)
{
    assert(k->busy == 0 && k->lost.next_match);
    size_t n = strlen(k->lost.next_match);
    if (n == 0 && by_name_is_proven(k))
        creation_create(k);
    else if (n == 0)
        creation_pause(k);
    if (n == 0)
        return;
    size_t dir = (size_t)(k->name - k->what.path);
    memcpy(k->found, k->what.path, dir);
    memcpy(k->found + dir, k->lost.next_match, n + 1);
    k->lost.next_match += n + 1;
    creation_enter(k, CREATION_CHECKING);
    struct request_spec spec = {
        .again = AGAIN_ALWAYS, .path = k->found, .cb = by_name_on_checked, .arg = k, .quiet = true};
    clave_err err = clave__submit_read(k->client, OP_EXISTS, &spec);
    k->busy += err == CLAVE_OK;
    if (err)
        creation_step_failed(k, err);
}

static bool by_name_is_match(const struct creation *k, const char *name)
{
    size_t dir = (size_t)(k->name - k->what.path);
    return name && strncmp(name, k->name, CLAVE_PROTECTED_PREFIX) == 0 &&
           dir + strlen(name) < k->found_cap;
}

/* True if the listing is of the session's ephemeral nodes rather than of the parent. */
static bool by_name_lists_own(const struct creation *k)
{
    return k->lost.below && !k->client->no_ephemerals;
}

/* The part of a listed name or path that may be the name of our node; NULL: none. */
static const char *by_name_name_of(const struct creation *k, const char *listed)
{
    size_t dir = (size_t)(k->name - k->what.path);
    struct jbytes path = clave__strip_chroot(k->client, clave__jbytes(listed));
    if (!by_name_lists_own(k))
        return listed;
    return path.n > 0 && strncmp(path.p, k->what.path, dir) == 0 ? path.p + dir : NULL;
}

/* Keeps the names that begin like ours. Usually there is one or none; others come from clients that
 * drew the same name or copied ours. */
static clave_err by_name_take_matches(struct creation *k, const clave_result *res)
{
    const struct clave_mem *mem = &k->client->base.mem;
    size_t size = 1;
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = by_name_name_of(k, res->names[i]);
        size += by_name_is_match(k, name) ? strlen(name) + 1 : 0;
    }
    clave__mem_free(mem, k->lost.matches);
    k->lost.matches = clave__mem_zalloc(mem, size);
    if (!k->lost.matches)
        return CLAVE_ENOMEM;
    char *at = k->lost.matches;
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = by_name_name_of(k, res->names[i]);
        if (!by_name_is_match(k, name))
            continue;
        memcpy(at, name, strlen(name) + 1);
        at += strlen(name) + 1;
    }
    k->lost.next_match = k->lost.matches;
    return CLAVE_OK;
}

/* True if any of the listed nodes excludes ours. Each is asked about, even after the first that
 * does. */
static bool by_name_is_excluded(const struct creation *k, const clave_result *res)
{
    bool excluded = false;
    for (size_t i = 0; by_name_lists_own(k) && i < res->nnames; i++) {
        struct jbytes path = clave__strip_chroot(k->client, clave__jbytes(res->names[i]));
        excluded |= path.n > 0 && k->lost.excludes(k->lost.excludes_arg, path.p);
    }
    return excluded;
}

static void by_name_on_searched(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    static const clave_result nobody = {0};
    k->busy--;
    if (res->err == CLAVE_EUNIMPLEMENTED && by_name_lists_own(k)) {
        c->no_ephemerals = true;
        by_name_search(k);
        return;
    }
    clave_err err = res->err == CLAVE_ENONODE ? CLAVE_OK : res->err;
    if (err == CLAVE_OK)
        err = by_name_take_matches(k, res->err == CLAVE_OK ? res : &nobody);
    if (err != CLAVE_OK)
        creation_step_failed(k, err);
    else if (!creation_is_unwanted(k) && by_name_is_excluded(k, res) && by_name_is_proven(k))
        creation_finish(k, CLAVE_ENODEEXISTS, NULL);
    else
        by_name_check_next(k);
}

/* The outcome of the first step. The listing, sent right after it, decides. */
static void by_name_on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    k->lost.proven = creation_proves(res->err);
    k->lost.proven_on = c->link.connections;
    if (--k->busy > 0)
        return;
    if (res->err == CLAVE_ECLOSED)
        creation_finish(k, CLAVE_ECLOSED, NULL);
    else
        creation_pause(k); /* there was no memory for the listing */
}

static void by_name_search(struct creation *k)
{
    assert(k->flags & CLAVE_CREATE_PROTECTED);
    clave_err err = creation_prove(k, by_name_on_proven);
    if (err) {
        creation_step_failed(k, err);
        return;
    }
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .op = OP_GET_EPHEMERALS,
                                .path = by_name_lists_own(k) ? k->lost.below : creation_parent(k),
                                .cb = by_name_on_searched,
                                .arg = k,
                                .quiet = true};
    err = by_name_lists_own(k) ? clave__submit_path(k->client, &spec)
                               : clave__submit_read(k->client, OP_GET_CHILDREN2, &spec);
    k->busy += err == CLAVE_OK;
}

/* The name of the node is known: checks only whether it exists and belongs to the session. */
static clave_err by_name_look_at(struct creation *k, const char *node)
{
    size_t n = strlen(node);
    k->lost.matches = clave__mem_zalloc(&k->client->base.mem, n + 2);
    if (!k->lost.matches)
        return CLAVE_ENOMEM;
    memcpy(k->lost.matches, node, n);
    k->lost.next_match = k->lost.matches;
    k->lost.proven = true;
    k->lost.proven_on = k->client->link.connections;
    creation_enter(k, CREATION_SEARCHING);
    by_name_check_next(k);
    return CLAVE_OK;
}

clave_err clave__client_list_own(clave_async_client *c, clave_result_cb *cb, void *arg)
{
    struct request_spec spec = {.again = AGAIN_NEVER,
                                .op = OP_GET_EPHEMERALS,
                                .path = "/",
                                .cb = cb,
                                .arg = arg,
                                .quiet = true};
    return clave__submit_path(c, &spec);
}

const char *clave__client_own_path(const clave_async_client *c, const char *name)
{
    struct jbytes path = clave__strip_chroot(c, clave__jbytes(name));
    return path.n > 0 ? path.p : NULL;
}

/* ---- the search by czxid --------------------------------------------------------------------- */

static bool by_czxid_is_certain(const struct creation *k)
{
    return k->flags & CLAVE_CREATE_CERTAIN;
}

static bool by_czxid_is_sequential(const struct creation *k)
{
    return k->what.mode == CLAVE_EPHEMERAL_SEQUENTIAL;
}

/* True if the outcome of a create that was sent earlier is still unknown. */
static bool by_czxid_has_to_wait(const struct creation *k)
{
    for (struct list *l = k->client->creations.next; l != &k->link; l = l->next)
        if (by_czxid_is_certain(LIST_ENTRY(l, struct creation, link)))
            return true;
    return false;
}

static void by_czxid_decide(struct creation *k)
{
    assert(k->certain.numbers);
    if (!k->certain.matched) {
        creation_create(k);
        return;
    }
    snprintf(k->found, k->found_cap, "%s%010ld", k->what.path, (long)k->certain.match);
    creation_finish(k, CLAVE_OK, NULL);
}

/* ---- by czxid: one node after another -------------------------------------------------------- */

static void by_czxid_on_looked(clave_async_client *c, const clave_result *res, void *arg);

static void by_czxid_look_at(struct creation *k)
{
    creation_enter(k, CREATION_CHECKING);
    struct request_spec spec = {
        .again = AGAIN_ALWAYS, .path = k->found, .cb = by_czxid_on_looked, .arg = k, .quiet = true};
    clave_err err = clave__submit_read(k->client, OP_EXISTS, &spec);
    k->busy += err == CLAVE_OK;
    if (err)
        creation_step_failed(k, err);
}

/* Compares sequence numbers, which wrap from 2147483647 to -2147483648. */
static bool by_czxid_is_newer(int32_t a, int32_t b)
{
    return (uint32_t)a > (uint32_t)b;
}

/* Checks the next node, newest number first, so that it can stop at the first one that is too
 * old. */
static void by_czxid_look_at_next(struct creation *k)
{
    if (k->certain.nnumbers == 0) {
        by_czxid_decide(k);
        return;
    }
    size_t newest = 0;
    for (size_t i = 1; i < k->certain.nnumbers; i++)
        if (by_czxid_is_newer(k->certain.numbers[i], k->certain.numbers[newest]))
            newest = i;
    int32_t number = k->certain.numbers[newest];
    k->certain.numbers[newest] = k->certain.numbers[--k->certain.nnumbers];
    k->certain.numbers[k->certain.nnumbers] = number;
    snprintf(k->found, k->found_cap, "%s%010ld", k->what.path, (long)number);
    by_czxid_look_at(k);
}

static void by_czxid_looked_at_one_of_many(struct creation *k, const clave_result *res, bool ours)
{
    if (ours) {
        k->certain.matched = true;
        k->certain.match = k->certain.numbers[k->certain.nnumbers];
        k->stat = *res->stat;
        k->zxid = res->zxid;
    }
    if (res->err == CLAVE_OK && res->stat->czxid <= k->certain.after)
        by_czxid_decide(k);
    else
        by_czxid_look_at_next(k);
}

static void by_czxid_on_looked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    k->busy--;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE) {
        creation_step_failed(k, res->err);
        return;
    }
    bool ours = res->err == CLAVE_OK && res->stat->ephemeral_owner == c->session.id &&
                res->stat->czxid > k->certain.after && res->stat->czxid < k->certain.before;
    if (by_czxid_is_sequential(k)) {
        by_czxid_looked_at_one_of_many(k, res, ours);
    } else if (ours) {
        k->stat = *res->stat;
        k->zxid = res->zxid;
        creation_finish(k, CLAVE_OK, NULL);
    } else if (res->err == CLAVE_OK) {
        creation_finish(k, CLAVE_ENODEEXISTS, NULL);
    } else {
        creation_create(k);
    }
}

/* ---- by czxid: the listing ------------------------------------------------------------------- */

static bool by_czxid_parse_number(const char *name, const char *prefix, int32_t *out)
{
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0)
        return false;
    char *end, made[SEQUENCE_ROOM + 1];
    long number = strtol(name + n, &end, 10);
    if (*end != '\0' || number < INT32_MIN || number > INT32_MAX)
        return false;
    *out = (int32_t)number;
    /* accept it only in the form in which the server writes it */
    snprintf(made, sizeof made, "%010ld", number);
    return strcmp(made, name + n) == 0;
}

static clave_err by_czxid_take_numbers(struct creation *k, const clave_result *res)
{
    const struct clave_mem *mem = &k->client->base.mem;
    const char *prefix = clave__path_name(k->what.path);
    clave__mem_free(mem, k->certain.numbers);
    k->certain.nnumbers = 0;
    k->certain.matched = false;
    /* One element at least, so that NULL means out of memory. */
    k->certain.numbers = clave__mem_alloc(mem, (res->nnames + 1) * sizeof *k->certain.numbers);
    if (!k->certain.numbers)
        return CLAVE_ENOMEM;
    for (size_t i = 0; i < res->nnames; i++)
        if (by_czxid_parse_number(res->names[i], prefix, &k->certain.numbers[k->certain.nnumbers]))
            k->certain.nnumbers++;
    return CLAVE_OK;
}

static void by_czxid_on_listed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    clave_err err = res->err;
    if (err == CLAVE_OK)
        err = by_czxid_take_numbers(k, res);
    if (err == CLAVE_OK)
        by_czxid_look_at_next(k);
    else if (err == CLAVE_ENONODE)
        creation_create(k);
    else
        creation_step_failed(k, err);
}

static void by_czxid_on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    k->lost.proven = creation_proves(res->err);
    if (!k->lost.proven) {
        creation_step_failed(k, res->err);
        return;
    }
    if (!by_czxid_is_sequential(k)) {
        memcpy(k->found, k->what.path, strlen(k->what.path) + 1);
        by_czxid_look_at(k);
        return;
    }
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .path = creation_parent(k),
                                .cb = by_czxid_on_listed,
                                .arg = k,
                                .quiet = true};
    clave_err err = clave__submit_read(k->client, OP_GET_CHILDREN2, &spec);
    k->busy += err == CLAVE_OK;
    if (err)
        creation_step_failed(k, err);
}

static void by_czxid_search(struct creation *k)
{
    assert(by_czxid_is_certain(k));
    if (by_czxid_has_to_wait(k)) {
        creation_pause(k);
        return;
    }
    clave_err err = creation_prove(k, by_czxid_on_proven);
    if (err)
        creation_step_failed(k, err);
}

/* ---- clave_async_create ---------------------------------------------------------------------- */

/* Writes the caller's path, with Curator's prefix before the name if it is protected. */
static char *client_create_put_path(struct creation *k, char *at, const char *path,
                                    const char *uuid)
{
    size_t dir = (size_t)(clave__path_name(path) - path);
    k->what.path = at;
    memcpy(at, path, dir);
    at += dir;
    k->name = at;
    if (k->flags & CLAVE_CREATE_PROTECTED) {
        clave__client_protect(k->client, at);
        if (uuid)
            memcpy(at + UUID_AT, uuid, CLAVE_UUID_TEXT);
        at += CLAVE_PROTECTED_PREFIX;
    }
    size_t nname = strlen(path + dir) + 1;
    memcpy(at, path + dir, nname);
    return at + nname;
}

/* Allocates one block for the creation, ACLs, path, room for the path found, and data. */
static struct creation *create_new(clave_async_client *c, const char *path,
                                   const struct jbytes *data, const clave_create_options *o,
                                   const char *uuid)
{
    size_t npath = strlen(path) + CLAVE_PROTECTED_PREFIX + 1;
    size_t nfound = npath + c->hosts.chroot_len + SEQUENCE_ROOM;
    size_t len = data->n > 0 ? (size_t)data->n : 0;
    struct creation *k = clave__mem_zalloc(
        &c->base.mem, sizeof *k + clave__acls_size(o->acls, o->nacls) + npath + nfound + len);
    if (!k)
        return NULL;
    k->client = c;
    k->flags = o->flags;
    k->with_names = o->with_names;
    if (o->flags & CLAVE_CREATE_PROTECTED)
        k->search = by_name_search;
    else if (o->flags & CLAVE_CREATE_CERTAIN)
        k->search = by_czxid_search;
    k->what.mode = o->mode;
    k->what.ttl_ms = o->ttl_ms;
    clave__timer_init(&k->pause, creation_on_pause);
    clave_acl *acls = (clave_acl *)(void *)(k + 1);
    k->what.acls = o->acls ? acls : NULL;
    k->what.nacls = o->nacls;
    char *at = clave__acls_copy(acls, o->acls, o->nacls);
    at = client_create_put_path(k, at, path, uuid);
    k->lost.named = uuid != NULL;
    k->what.place = o->flags & CLAVE_CREATE_PARENTS ? CREATE_BELOW : CREATE_ALONE;
    k->what.again = uuid ? AGAIN_NOT_UNSENT : AGAIN_BY_OPCODE;
    k->found = at;
    k->found_cap = nfound;
    if (data->n >= 0) {
        k->what.data = memcpy(at + nfound, data->p, len);
        k->what.len = len;
    }
    list_push_back(&c->creations, &k->link);
    return k;
}

static clave_err create_start(struct creation *k, clave_result_cb *cb, void *arg)
{
    k->cb = cb;
    k->arg = arg;
    clave_err err = creation_submit(k);
    if (err) {
        list_remove(&k->link);
        clave__mem_free(&k->client->base.mem, k);
    }
    return err;
}

static clave_err client_create_check(clave_async_client *c, const char *path,
                                     const clave_create_options *o)
{
    bool ttl = o->mode >= CLAVE_PERSISTENT_TTL;
    /* CLAVE_CREATE_CERTAIN recognises its node by the session, so the node must be ephemeral. For a
     * protected name it is not needed, since that does the same job better. */
    bool ephemeral = o->mode == CLAVE_EPHEMERAL || o->mode == CLAVE_EPHEMERAL_SEQUENTIAL;
    if ((o->flags & CLAVE_CREATE_CERTAIN) && (!ephemeral || (o->flags & CLAVE_CREATE_PROTECTED)))
        return CLAVE_EINVAL;
    if (o->mode > CLAVE_PERSISTENT_SEQUENTIAL_TTL || (ttl && o->ttl_ms <= 0))
        return CLAVE_EINVAL;
    return clave__encode_check(c, path, clave__mode_is_sequential(o->mode));
}

clave_err clave_async_create(clave_async_client *c, const char *path, const void *data, size_t len,
                             const clave_create_options *given, clave_result_cb *cb, void *arg)
{
    clave_create_options o;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_create_options");
    if (!o.acls)
        o.nacls = 0;
    struct jbytes bytes;
    if (err == CLAVE_OK)
        err = client_create_check(c, path, &o);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, path, data, len, &bytes);
    if (err)
        return err;
    if (!o.flags && !o.with_names) {
        struct submit_create what = {.path = path,
                                     .data = data,
                                     .len = len,
                                     .mode = o.mode,
                                     .ttl_ms = o.ttl_ms,
                                     .acls = o.acls,
                                     .nacls = o.nacls};
        return clave__submit_create(c, &what, cb, arg);
    }
    struct creation *k = create_new(c, path, &bytes, &o, NULL);
    if (!k)
        return CLAVE_ENOMEM;
    return create_start(k, cb, arg);
}

/* The search after a lost answer handles a node that another process made in just the same way, so
 * the create may begin with it. */
clave_err clave__client_create_named(clave_async_client *c, const struct client_named_create *n,
                                     clave_result_cb *cb, void *arg)
{
    assert(!(n->search || n->at) || (n->o->flags & CLAVE_CREATE_PROTECTED));
    assert(!n->below || n->excludes);
    struct jbytes bytes;
    assert(!n->uuid ||
           ((n->o->flags & CLAVE_CREATE_PROTECTED) && strlen(n->uuid) == CLAVE_UUID_TEXT));
    clave_err err = client_create_check(c, n->path, n->o);
    if (err == CLAVE_OK)
        err = clave__encode_data(c, n->path, n->data, n->len, &bytes);
    if (err)
        return err;
    struct creation *k = create_new(c, n->path, &bytes, n->o, n->uuid);
    if (!k)
        return CLAVE_ENOMEM;
    k->once = n->once;
    k->lost.below = n->below;
    k->lost.excludes = n->excludes;
    k->lost.excludes_arg = n->excludes_arg;
    k->stake = n->stake;
    if (!n->search && !n->at)
        return create_start(k, cb, arg);
    k->cb = cb;
    k->arg = arg;
    /* a node that another process has made is not removed as one of an older session of ours */
    k->sent_in = n->at ? 0 : c->session.id;
    k->lost.only_found = n->only_found || n->at;
    if (!n->at)
        k->search(k);
    else if ((err = by_name_look_at(k, n->at)) != CLAVE_OK) {
        list_remove(&k->link);
        clave__mem_free(&c->base.mem, k);
    }
    return err;
}

/* ---- withdrawing ----------------------------------------------------------------------------- */

/* The requests of a create have the creation as their argument. */
void clave__creations_withdraw(clave_async_client *c, const void *arg)
{
    for (struct list *l = c->creations.next; l != &c->creations; l = l->next) {
        const struct creation *k = LIST_ENTRY(l, struct creation, link);
        if (k->arg == arg && !k->search)
            clave__pipeline_withdraw(c, k);
    }
}
