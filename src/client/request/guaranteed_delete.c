/* guaranteed_delete.c - guaranteed deletes of ephemeral nodes, which are repeated until the node is
 * certainly gone: deleted, or removed with its session. They are like Curator's guaranteed deletes,
 * but bound to the session that owns the node, so that a node of another session is never deleted.
 * Recipes use them to release.
 *
 * If others may create a node of the same name as soon as ours is gone, the czxid tells them apart:
 * after a lost answer, and if there is no connection when the delete is asked for, the node is
 * looked up before it is deleted. */
#include <assert.h>
#include <string.h>

#include "client/client_internal.h"

enum { PAUSE_MS = 100 };

struct cleanup {
    struct list link; /* in the client's list of cleanups */
    clave_async_client *client;
    int64_t session_id; /* 0: there was no session yet, so it cannot own a node */
    int64_t czxid;      /* of the node; 0: nobody else uses its name */
    bool busy;
    struct timer pause;
    clave_result_cb *cb;
    void *arg;
    char path[]; /* NUL-terminated */
};

static void guaranteed_delete_finish(struct cleanup *k, const clave_result *res)
{
    assert(!k->busy);
    clave__timers_clear(&k->client->base.timers, &k->pause);
    list_remove(&k->link);
    if (k->cb)
        k->cb(k->client, res, k->arg);
    clave__mem_free(&k->client->base.mem, k);
}

static void guaranteed_delete_finish_with(struct cleanup *k, clave_err err)
{
    clave_result res = {.err = err, .path = k->path};
    guaranteed_delete_finish(k, &res);
}

static void guaranteed_delete_submit(struct cleanup *k);

/* Tries again after a while. On a closed client no time passes, so a cleanup that failed after
 * _cleanups_end would wait forever; it ends instead. */
static void guaranteed_delete_pause(struct cleanup *k)
{
    assert(!k->busy);
    if (k->client->session.state == CLAVE_STATE_CLOSED) {
        guaranteed_delete_finish_with(k, CLAVE_ECLOSED);
        return;
    }
    clave__timers_set(&k->client->base.timers, &k->pause, k->client->base.now + PAUSE_MS);
}

static void guaranteed_delete_on_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    struct cleanup *k = arg;
    clave_err_class class_ = clave_err_classify(res->err);
    k->busy = false;
    if (res->err == CLAVE_ENONODE)
        guaranteed_delete_finish_with(k, CLAVE_OK);
    else if (res->err == CLAVE_OK || class_ == CLAVE_CLASS_FINAL || class_ == CLAVE_CLASS_FATAL)
        guaranteed_delete_finish(k, res);
    else if (c->session.id != k->session_id)
        guaranteed_delete_finish_with(k,
                                      CLAVE_EEXPIRED); /* and the node is gone with the session */
    else if (res->err == CLAVE_ECONNLOSS)
        guaranteed_delete_submit(k);
    else
        guaranteed_delete_pause(k);
}

static void guaranteed_delete_submitted(struct cleanup *k, clave_err err)
{
    k->busy = err == CLAVE_OK;
    if (err == CLAVE_ENOMEM)
        guaranteed_delete_pause(k);
    else if (err)
        guaranteed_delete_finish_with(k, err);
}

static void delete (struct cleanup *k)
{
    guaranteed_delete_submitted(
        k, clave__submit_delete(k->client, k->path, -1, guaranteed_delete_on_deleted, k));
}

static void guaranteed_delete_on_looked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct cleanup *k = arg;
    k->busy = false;
    if (c->session.id != k->session_id)
        guaranteed_delete_finish_with(k, CLAVE_EEXPIRED);
    else if (res->err == CLAVE_ENONODE || (res->err == CLAVE_OK && res->stat->czxid != k->czxid))
        guaranteed_delete_finish_with(k, CLAVE_OK);
    else if (res->err == CLAVE_OK)
        delete (k);
    else if (res->err == CLAVE_ECLOSED)
        guaranteed_delete_finish_with(k, CLAVE_ECLOSED);
    else
        guaranteed_delete_pause(k);
}

static void guaranteed_delete_on_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    struct cleanup *k = arg;
    if (res->err != CLAVE_OK) {
        guaranteed_delete_on_looked(c, res, arg);
        return;
    }
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .path = k->path,
                                .cb = guaranteed_delete_on_looked,
                                .arg = k,
                                .quiet = true};
    guaranteed_delete_submitted(k, clave__submit_read(c, OP_EXISTS, &spec));
}

/* Looks the node up, after a sync, because a server that lags behind would still show a node that
 * is gone. */
static void guaranteed_delete_look(struct cleanup *k)
{
    struct request_spec spec = {.again = AGAIN_ALWAYS,
                                .op = OP_SYNC,
                                .path = k->path,
                                .cb = guaranteed_delete_on_synced,
                                .arg = k,
                                .quiet = true};
    guaranteed_delete_submitted(k, clave__submit_path(k->client, &spec));
}

static void guaranteed_delete_submit(struct cleanup *k)
{
    assert(!k->busy);
    if (k->czxid)
        guaranteed_delete_look(k);
    else
        delete (k);
}

static void guaranteed_delete_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    struct cleanup *k = LIST_ENTRY(t, struct cleanup, pause);
    if (k->client->session.id == k->session_id)
        guaranteed_delete_submit(k);
    else
        guaranteed_delete_finish_with(k, CLAVE_EEXPIRED);
}

void clave__cleanups_end(clave_async_client *c)
{
    for (struct list *l = c->cleanups.next, *next; l != &c->cleanups; l = next) {
        struct cleanup *k = LIST_ENTRY(l, struct cleanup, link);
        next = l->next;
        if (!k->busy)
            guaranteed_delete_finish_with(k, CLAVE_ECLOSED);
    }
}

clave_err clave__client_delete_node(clave_async_client *c, const char *path, int64_t czxid,
                                    clave_result_cb *cb, void *arg)
{
    clave_err err = clave__encode_check(c, path, false);
    if (err)
        return err;
    size_t n = strlen(path) + 1;
    struct cleanup *k = clave__mem_zalloc(&c->base.mem, sizeof *k + n);
    if (!k)
        return CLAVE_ENOMEM;
    k->client = c;
    k->session_id = c->session.id;
    k->czxid = czxid;
    k->cb = cb;
    k->arg = arg;
    clave__timer_init(&k->pause, guaranteed_delete_on_pause);
    memcpy(k->path, path, n);
    if (czxid && c->session.state == CLAVE_STATE_SUSPENDED) {
        list_push_back(&c->cleanups, &k->link);
        clave__timers_set(&c->base.timers, &k->pause, c->base.now);
        return CLAVE_OK;
    }
    err = clave__submit_delete(c, path, -1, guaranteed_delete_on_deleted, k);
    if (err) {
        clave__mem_free(&c->base.mem, k);
        return err;
    }
    k->busy = true;
    list_push_back(&c->cleanups, &k->link);
    return CLAVE_OK;
}

clave_err clave_async_delete_guaranteed(clave_async_client *c, const char *path,
                                        clave_result_cb *cb, void *arg)
{
    return clave__client_delete_node(c, path, 0, cb, arg);
}
