/* create.c - creates of more than one request: with the missing ancestors, with a listing of the
 * parent sent together with the create, and protected creates, whose outcome is found out even when
 * the answer was lost. identify.c does that for creates with CLAVE_CREATE_CERTAIN, in the same
 * states.
 *
 *   CREATING ──▶ SEARCHING ──▶ CHECKING ──▶ REMOVING
 *    ▲ │ ▲          │  ▲ │ found   │ of an older session │
 *    │ │ │          │  │ ▼         │           │         │
 *    │ │ └──────────┴──┴─PAUSED◀───┴───────────┘         │
 *    │ └─ no parent: again, after its ancestors          │
 *    └───────────────────────────────────────────────────┘
 *
 * An ephemeral node found is ours only if it belongs to the present session. A node of the older
 * session in which the create was sent is about to vanish and is removed, never adopted
 * (CURATOR-604). A node of any other session is another client's, whatever its name says, and the
 * search goes on. */
#include <assert.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "client/create_internal.h"
#include "client/engine.h"

enum { MAX_PARENT_ATTEMPTS = 5, PAUSE_MS = 100, UUID_AT = 3 };

static void client_create_search(struct creation *k);

void clave__creation_enter(struct creation *k, enum creation_state to)
{
    k->state = to;
    if (to != CREATION_PAUSED)
        clave__timers_clear(&k->client->timers, &k->pause);
}

void clave__creation_finish(struct creation *k, clave_err err, const clave_result *listing)
{
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
        clave__creation_identified(k);
    list_remove(&k->link);
    if (k->cb)
        k->cb(k->client, &res, k->arg);
    clave__mem_free(&k->client->mem, k->numbers);
    clave__mem_free(&k->client->mem, k->matches);
    clave__mem_free(&k->client->mem, k);
}

/* Only waiting helps: there is no memory, or the server cannot serve now. For a closed client no
 * time passes, so a creation that failed after _creations_end would wait for ever. */
void clave__creation_pause(struct creation *k)
{
    if (k->client->session.state == CLAVE_STATE_CLOSED) {
        clave__creation_finish(k, CLAVE_ECLOSED, NULL);
        return;
    }
    clave__creation_enter(k, CREATION_PAUSED);
    clave__timers_set(&k->client->timers, &k->pause, k->client->now + PAUSE_MS);
}

static void search_again(struct creation *k)
{
    if (k->flags & CLAVE_CREATE_CERTAIN)
        clave__creation_identify(k);
    else
        client_create_search(k);
}

static void client_create_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    search_again(LIST_ENTRY(t, struct creation, pause));
}

/* ---- CREATING -------------------------------------------------------------------------------- */

static void client_create_conclude(struct creation *k, const clave_result *listing);

static void client_create_on_parent(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    if (res->err == CLAVE_EUNIMPLEMENTED)
        c->no_containers = true; /* a server before 3.5: use persistent nodes */
    else if (res->err != CLAVE_OK && res->err != CLAVE_ENODEEXISTS && k->parent_err == CLAVE_OK) {
        k->parent_err = res->err; /* the first error causes the others */
        k->parent_len = strlen(res->path);
    }
    if (--k->busy == 0)
        client_create_conclude(k, NULL);
}

static void client_create_on_created(clave_async_client *c, const clave_result *res, void *arg)
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
        client_create_conclude(k, NULL);
}

static void client_create_on_listed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    if (--k->busy == 0)
        client_create_conclude(k, res->err == CLAVE_OK ? res : NULL);
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
static clave_err client_create_submit(struct creation *k)
{
    clave_async_client *c = k->client;
    clave_err err = clave__submit_check(c, "/", false);
    if (err == CLAVE_OK)
        err = clave__submit_create(c, &k->what, client_create_on_created, k);
    if (err)
        return err;
    k->busy++;
    k->sent_in = c->session.id;
    if (k->stake)
        k->stake->sent = true;
    if (k->flags & CLAVE_CREATE_CERTAIN)
        clave__creation_sent(k);
    if (!k->with_names)
        return CLAVE_OK;
    /* It is not sent again: a listing of a later connection would be of no use. */
    struct request_spec spec = {.again = k->named ? AGAIN_NOT_UNSENT : AGAIN_NEVER,
                                .path = clave__creation_parent(k),
                                .cb = client_create_on_listed,
                                .arg = k,
                                .quiet = true};
    if (clave__submit_read(c, OP_GET_CHILDREN2, &spec) == CLAVE_OK)
        k->busy++;
    return CLAVE_OK;
}

/* A search has proved each time that it was not done: a server closes the connection of a request
 * that is larger than it takes. A small one pauses: there is something else the matter. */
static void client_create_cut_often(struct creation *k)
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

static bool client_create_is_unwanted(const struct creation *k)
{
    return k->stake && k->stake->unwanted;
}

void clave__creation_create(struct creation *k)
{
    if (k->only_found || client_create_is_unwanted(k)) {
        clave__creation_finish(k, CLAVE_ENONODE, NULL);
        return;
    }
    if (k->once && k->err == CLAVE_EOPTIMEOUT) {
        clave__creation_finish(k, k->err, NULL);
        return;
    }
    if (k->cuts >= MOST_CUTS && !k->rested) {
        client_create_cut_often(k);
        return;
    }
    k->rested = false;
    clave__creation_enter(k, CREATION_CREATING);
    k->err = client_create_submit(k);
    if (k->err && k->busy == 0)
        clave__creation_finish(k, k->err, NULL);
}

/* The path as the server knows it, in k->found. */
static clave_err client_create_put_full_path(struct creation *k, struct jbytes *full)
{
    clave_err err = clave__path_to_create(k->client, k->what.path, k->what.mode, full);
    if (err != CLAVE_OK || full->n >= (int32_t)k->found_cap)
        return CLAVE_ENOMEM;
    memcpy(k->found, full->p, (size_t)full->n);
    return CLAVE_OK;
}

/* Sends the creates of all ancestors, including those in the chroot, right before the create and
 * without waiting for answers: for existing ones the server answers NODEEXISTS. */
static void make_parents(struct creation *k)
{
    clave_async_client *c = k->client;
    struct jbytes full;
    k->parent_attempts++;
    k->parent_err = CLAVE_OK;
    if (client_create_put_full_path(k, &full) != CLAVE_OK) {
        clave__creation_finish(k, CLAVE_ENOMEM, NULL);
        return;
    }
    /* Empty data, as Curator and kazoo write it: kazoo cannot read null data. */
    struct submit_create parent = {
        .path = k->found, .data = "", .raw = true, .place = CREATE_ANCESTOR};
    parent.mode = c->no_containers ? CLAVE_PERSISTENT : CLAVE_CONTAINER;
    for (int32_t i = 1; i < full.n; i++) {
        if (k->found[i] != '/')
            continue;
        k->found[i] = '\0';
        if (clave__submit_create(c, &parent, client_create_on_parent, k) == CLAVE_OK)
            k->busy++;
        else
            k->parent_err = CLAVE_ENOMEM;
        k->found[i] = '/';
    }
    clave__creation_create(k);
}

/* Whether the ancestors are worth another attempt: they existed and are gone again, or their
 * creates were lost with a connection while the create itself went out on the next. */
static bool may_retry_parents(const struct creation *k)
{
    return (k->flags & CLAVE_CREATE_PARENTS) && k->parent_attempts < MAX_PARENT_ATTEMPTS &&
           (k->parent_err == CLAVE_OK || clave__err_passes(k->parent_err));
}

/* Without an answer, the fault that the link has set says more. */
static void client_create_no_parent(struct creation *k)
{
    struct jbytes full;
    bool answered = clave_err_classify(k->parent_err) == CLAVE_CLASS_FINAL;
    if (answered && client_create_put_full_path(k, &full) == CLAVE_OK) {
        k->found[k->parent_len] = '\0';
        clave__request_tell_ancestor(k->client, k->found, k->parent_err);
    }
    clave__creation_finish(k, k->parent_err, NULL);
}

static bool searches(const struct creation *k)
{
    return (k->flags & (CLAVE_CREATE_PROTECTED | CLAVE_CREATE_CERTAIN)) != 0;
}

static void client_create_end(struct creation *k, const clave_result *listing)
{
    char shown[PATH_SHOWN_CAP];
    if (k->err == CLAVE_ENONODE && k->what.place == CREATE_BELOW)
        clave__client_fault(k->client,
                            "cannot create %s: its ancestors were removed again each time",
                            clave__path_shown(k->what.path, shown));
    clave__creation_finish(k, k->err, listing);
}

/* All answers have arrived: the create's, the ancestors' and the listing's. */
static void client_create_conclude(struct creation *k, const clave_result *listing)
{
    bool lost = clave_err_classify(k->err) == CLAVE_CLASS_UNKNOWN;
    bool unanswered = k->err == CLAVE_ECONNLOSS || k->err == CLAVE_ENOTSENT;
    bool cut = unanswered && k->client->link.cut > k->what.len;
    k->cuts = cut ? k->cuts + 1 : 0;
    if (k->err == CLAVE_ENONODE && client_create_is_unwanted(k))
        clave__creation_finish(k, k->err, NULL);
    else if (k->err == CLAVE_ENONODE && may_retry_parents(k))
        make_parents(k);
    else if (k->err == CLAVE_ENONODE && k->parent_err != CLAVE_OK)
        client_create_no_parent(k);
    else if (k->err == CLAVE_EOPTIMEOUT && !k->once && searches(k))
        clave__creation_pause(k); /* the server is there, and would be asked without a pause */
    else if ((lost || (k->named && k->err == CLAVE_ENOTSENT)) &&
             (k->flags & CLAVE_CREATE_PROTECTED))
        client_create_search(k);
    else if (lost && (k->flags & CLAVE_CREATE_CERTAIN))
        clave__creation_identify(k);
    else
        client_create_end(k, listing);
}

/* ---- SEARCHING ------------------------------------------------------------------------------- */

void clave__creation_step_failed(struct creation *k, clave_err err)
{
    if (err == CLAVE_ECLOSED)
        clave__creation_finish(k, err, NULL);
    else if (err == CLAVE_ECONNLOSS || err == CLAVE_ENOTSENT)
        search_again(k);
    else if (clave_err_classify(err) == CLAVE_CLASS_FINAL)
        /* The node may exist, but the server does not let us see it. */
        clave__creation_finish(k, CLAVE_ECONNLOSS, NULL);
    else
        clave__creation_pause(k);
}

static void on_removed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        clave__creation_create(k);
    else
        clave__creation_step_failed(k, res->err);
}

/* Whose node is it? For a node that is not ephemeral only the name can tell. */
enum whose { WHOSE_OURS, WHOSE_OLDER, WHOSE_OTHERS };

static enum whose whose_node(const struct creation *k, const clave_stat *stat)
{
    bool ephemeral = k->what.mode == CLAVE_EPHEMERAL || k->what.mode == CLAVE_EPHEMERAL_SEQUENTIAL;
    if (!ephemeral || stat->ephemeral_owner == k->client->session.id)
        return WHOSE_OURS;
    return stat->ephemeral_owner == k->sent_in ? WHOSE_OLDER : WHOSE_OTHERS;
}

static void remove_found(struct creation *k)
{
    clave__creation_enter(k, CREATION_REMOVING);
    clave_err err = clave__submit_delete(k->client, k->found, -1, on_removed, k);
    k->busy += err == CLAVE_OK;
    if (err)
        clave__creation_step_failed(k, err);
}

static void check_next(struct creation *k);

static void on_checked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    (void)c;
    k->busy--;
    if (res->err == CLAVE_ENONODE) {
        check_next(k);
        return;
    }
    if (res->err != CLAVE_OK) {
        clave__creation_step_failed(k, res->err);
        return;
    }
    switch (whose_node(k, res->stat)) {
    case WHOSE_OURS:
        k->stat = *res->stat;
        k->zxid = res->zxid;
        clave__creation_finish(k, CLAVE_OK, NULL);
        break;
    case WHOSE_OLDER:
        remove_found(k);
        break;
    case WHOSE_OTHERS:
        check_next(k);
        break;
    }
}

/* The proof that there is none of our name; between two connections another process that has the
 * session may have made one, which the server of the second need not know yet. */
static bool client_create_is_proven(const struct creation *k)
{
    return k->proven && (!k->named || k->proven_on == k->client->link.connections);
}

/* Checks the next name of the listing that begins as ours does. When none is left, our node does
 * not exist, provided that the listing proves it. */
static void check_next(struct creation *k)
{
    size_t n = strlen(k->next_match);
    if (n == 0 && client_create_is_proven(k))
        clave__creation_create(k);
    else if (n == 0)
        clave__creation_pause(k);
    if (n == 0)
        return;
    size_t dir = (size_t)(k->name - k->what.path);
    memcpy(k->found, k->what.path, dir);
    memcpy(k->found + dir, k->next_match, n + 1);
    k->next_match += n + 1;
    clave__creation_enter(k, CREATION_CHECKING);
    struct request_spec spec = {
        .again = AGAIN_ALWAYS, .path = k->found, .cb = on_checked, .arg = k, .quiet = true};
    clave_err err = clave__submit_read(k->client, OP_EXISTS, &spec);
    k->busy += err == CLAVE_OK;
    if (err)
        clave__creation_step_failed(k, err);
}

static bool is_match(const struct creation *k, const char *name)
{
    size_t dir = (size_t)(k->name - k->what.path);
    return name && strncmp(name, k->name, CLAVE_PROTECTED_PREFIX) == 0 &&
           dir + strlen(name) < k->found_cap;
}

/* The listing is of the session's ephemeral nodes, else of the parent. */
static bool client_create_lists_own(const struct creation *k)
{
    return k->below && !k->client->no_ephemerals;
}

/* What of a listed name may be the name of our node; NULL: nothing. */
static const char *client_create_name_of(const struct creation *k, const char *listed)
{
    size_t dir = (size_t)(k->name - k->what.path);
    struct jbytes path = clave__strip_chroot(k->client, clave__jbytes(listed));
    if (!client_create_lists_own(k))
        return listed;
    return path.n > 0 && strncmp(path.p, k->what.path, dir) == 0 ? path.p + dir : NULL;
}

/* Usually there is one match or none. Others come from clients that drew the same name or copied
 * ours. */
static clave_err take_matches(struct creation *k, const clave_result *res)
{
    const struct clave_mem *mem = &k->client->mem;
    size_t size = 1;
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = client_create_name_of(k, res->names[i]);
        size += is_match(k, name) ? strlen(name) + 1 : 0;
    }
    clave__mem_free(mem, k->matches);
    k->matches = clave__mem_zalloc(mem, size);
    if (!k->matches)
        return CLAVE_ENOMEM;
    char *at = k->matches;
    for (size_t i = 0; i < res->nnames; i++) {
        const char *name = client_create_name_of(k, res->names[i]);
        if (!is_match(k, name))
            continue;
        memcpy(at, name, strlen(name) + 1);
        at += strlen(name) + 1;
    }
    k->next_match = k->matches;
    return CLAVE_OK;
}

/* Asks for each of them. */
static bool client_create_is_excluded(const struct creation *k, const clave_result *res)
{
    bool excluded = false;
    size_t n = k->below ? strlen(k->below) : 0;
    for (size_t i = 0; client_create_lists_own(k) && i < res->nnames; i++) {
        struct jbytes path = clave__strip_chroot(k->client, clave__jbytes(res->names[i]));
        /* A server takes the path for the beginning of any text. */
        bool below = path.n > 0 && strncmp(path.p, k->below, n) == 0 && path.p[n] == '/';
        excluded |= below && k->excludes(k->excludes_arg, path.p);
    }
    return excluded;
}

static void on_searched(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    static const clave_result nobody = {0};
    k->busy--;
    if (res->err == CLAVE_EUNIMPLEMENTED && client_create_lists_own(k)) {
        c->no_ephemerals = true;
        client_create_search(k);
        return;
    }
    clave_err err = res->err == CLAVE_ENONODE ? CLAVE_OK : res->err;
    if (err == CLAVE_OK)
        err = take_matches(k, res->err == CLAVE_OK ? res : &nobody);
    if (err != CLAVE_OK)
        clave__creation_step_failed(k, err);
    else if (!client_create_is_unwanted(k) && client_create_is_excluded(k, res) &&
             client_create_is_proven(k))
        clave__creation_finish(k, CLAVE_ENODEEXISTS, NULL);
    else
        check_next(k);
}

/* The listing sent right after it decides. */
static void client_create_on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    struct creation *k = arg;
    k->proven = clave__creation_proves(res->err);
    k->proven_on = c->link.connections;
    if (--k->busy > 0)
        return;
    if (res->err == CLAVE_ECLOSED)
        clave__creation_finish(k, CLAVE_ECLOSED, NULL);
    else
        clave__creation_pause(k); /* there was no memory for the listing */
}

/* When the server refuses the check for good (no such parent, no permission to read it, no
 * transactions), there is no better proof to be had. */
bool clave__creation_proves(clave_err err)
{
    return err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL;
}

clave_err clave__creation_prove(struct creation *k, clave_result_cb *cb)
{
    clave_op check = {.kind = CLAVE_OP_CHECK, .path = clave__creation_parent(k), .version = -1};
    struct request_spec spec = {.ops = &check, .nops = 1, .cb = cb, .arg = k, .quiet = true};
    k->proven = false;
    k->parent_err = CLAVE_OK;
    clave__creation_enter(k, CREATION_SEARCHING);
    clave_err err = clave__submit_multi(k->client, &spec);
    k->busy += err == CLAVE_OK;
    return err;
}

static void client_create_search(struct creation *k)
{
    clave_err err = clave__creation_prove(k, client_create_on_proven);
    if (err) {
        clave__creation_step_failed(k, err);
        return;
    }
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .op = OP_GET_EPHEMERALS,
                                .path = client_create_lists_own(k) ? k->below
                                                                   : clave__creation_parent(k),
                                .cb = on_searched,
                                .arg = k,
                                .quiet = true};
    err = client_create_lists_own(k) ? clave__submit_path(k->client, &spec)
                                     : clave__submit_read(k->client, OP_GET_CHILDREN2, &spec);
    k->busy += err == CLAVE_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

void clave__creations_end(clave_async_client *c)
{
    for (struct list *l = c->creations.next, *next; l != &c->creations; l = next) {
        struct creation *k = LIST_ENTRY(l, struct creation, link);
        next = l->next;
        if (k->state == CREATION_PAUSED && k->busy == 0)
            clave__creation_finish(k, CLAVE_ECLOSED, NULL);
    }
}

static char *put_acls(struct creation *k, const clave_create_options *o)
{
    clave_acl *acls = (clave_acl *)(void *)(k + 1);
    k->what.acls = o->acls ? acls : NULL;
    k->what.nacls = o->nacls;
    return clave__acls_copy(acls, o->acls, o->nacls);
}

/* Writes the path the caller gave, with Curator's prefix before the name if it is protected. */
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

/* Allocates one block: the creation, ACLs, path, room for the path found, data. */
static struct creation *creation_new(clave_async_client *c, const char *path,
                                     const struct jbytes *data, const clave_create_options *o,
                                     const char *uuid)
{
    size_t npath = strlen(path) + CLAVE_PROTECTED_PREFIX + 1;
    size_t nfound = npath + c->hosts.chroot_len + SEQUENCE_ROOM;
    size_t len = data->n > 0 ? (size_t)data->n : 0;
    struct creation *k = clave__mem_zalloc(
        &c->mem, sizeof *k + clave__acls_size(o->acls, o->nacls) + npath + nfound + len);
    if (!k)
        return NULL;
    k->client = c;
    k->flags = o->flags;
    k->with_names = o->with_names;
    k->what.mode = o->mode;
    k->what.ttl_ms = o->ttl_ms;
    clave__timer_init(&k->pause, client_create_on_pause);
    char *at = put_acls(k, o);
    at = client_create_put_path(k, at, path, uuid);
    k->named = uuid != NULL;
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

static clave_err creation_start(struct creation *k, clave_result_cb *cb, void *arg)
{
    k->cb = cb;
    k->arg = arg;
    clave_err err = client_create_submit(k);
    if (err) {
        list_remove(&k->link);
        clave__mem_free(&k->client->mem, k);
    }
    return err;
}

static clave_err client_create_check(clave_async_client *c, const char *path,
                                     const clave_create_options *o)
{
    bool ttl = o->mode >= CLAVE_PERSISTENT_TTL;
    /* CLAVE_CREATE_CERTAIN recognises its node by the session, so the node must be ephemeral; a
     * protected name does the same better. */
    bool ephemeral = o->mode == CLAVE_EPHEMERAL || o->mode == CLAVE_EPHEMERAL_SEQUENTIAL;
    if ((o->flags & CLAVE_CREATE_CERTAIN) && (!ephemeral || (o->flags & CLAVE_CREATE_PROTECTED)))
        return CLAVE_EINVAL;
    if (o->mode > CLAVE_PERSISTENT_SEQUENTIAL_TTL || (ttl && o->ttl_ms <= 0))
        return CLAVE_EINVAL;
    return clave__submit_check(c, path, clave__mode_is_sequential(o->mode));
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
        err = clave__submit_data(c, path, data, len, &bytes);
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
    struct creation *k = creation_new(c, path, &bytes, &o, NULL);
    if (!k)
        return CLAVE_ENOMEM;
    return creation_start(k, cb, arg);
}

/* The search that follows a lost answer does the same for a node that another process made: it may
 * begin with it. */
clave_err clave__client_create_named(clave_async_client *c, const struct client_named_create *n,
                                     clave_result_cb *cb, void *arg)
{
    struct jbytes bytes;
    assert(!n->uuid ||
           ((n->o->flags & CLAVE_CREATE_PROTECTED) && strlen(n->uuid) == CLAVE_UUID_TEXT));
    clave_err err = client_create_check(c, n->path, n->o);
    if (err == CLAVE_OK)
        err = clave__submit_data(c, n->path, n->data, n->len, &bytes);
    if (err)
        return err;
    struct creation *k = creation_new(c, n->path, &bytes, n->o, n->uuid);
    if (!k)
        return CLAVE_ENOMEM;
    k->once = n->once;
    k->below = n->below;
    k->excludes = n->excludes;
    k->excludes_arg = n->excludes_arg;
    k->stake = n->stake;
    if (!n->search)
        return creation_start(k, cb, arg);
    k->cb = cb;
    k->arg = arg;
    k->sent_in = c->session.id;
    k->only_found = n->only_found;
    client_create_search(k);
    return CLAVE_OK;
}
