#include "znode_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clave/async/client.h"
#include "znode_answer.h"

const char *const znode_paths[ZNODES] = {"/register-a", "/register-b"};
static const char *const op_names[] = {"create", "set", "delete", "get", "exists"};

/* ---- answers --------------------------------------------------------------------------------- */

static void take_result(struct znode_call *call, const clave_result *res)
{
    call->zxid = res->zxid;
    if (res->stat) {
        call->version = res->stat->version;
        call->czxid = res->stat->czxid;
        call->mzxid = res->stat->mzxid;
    }
    if (call->op == ZNODE_GET) {
        char text[32];
        snprintf(text, sizeof text, "%.*s", (int)res->len, (const char *)res->data);
        call->value = atoll(text);
    }
}

static void on_answer(clave_async_client *c, const clave_result *res, void *arg)
{
    struct znode_slot *slot = arg;
    struct znode_client *z = slot->owner;
    struct znode_call *call = &z->world->history.calls[slot->call];
    struct world *w = z->host->w;
    (void)c;
    if (!slot->busy)
        world_break(w, "each request completes exactly once", "%s: its %s has two answers",
                    z->host->name, op_names[call->op]);
    slot->busy = false;
    call->answer = znode_answer_of(res->err);
    if (call->answer == ZNODE_UNKNOWN && clave_err_classify(res->err) == CLAVE_CLASS_FINAL)
        world_break(w, "each call ends as its header says", "%s: %s of %s: %s", z->host->name,
                    op_names[call->op], res->path, clave_err_name(res->err));
    if (call->answer != ZNODE_UNKNOWN)
        call->answered = w->now;
    if (call->answer == ZNODE_DONE)
        take_result(call, res);
    if (call->answer == ZNODE_DONE && call->op != ZNODE_DELETE)
        z->world->version[call->znode] = call->version;
    world_log(w, z->host->name, "its %s of %s: %s, version %d", op_names[call->op],
              znode_paths[call->znode], clave_err_name(res->err), (int)call->version);
}

/* ---- calls ------------------------------------------------------------------------------------
 */

/* Mostly the version that somebody saw last, which another may have changed meanwhile. */
static int32_t draw_expected(struct znode_client *z, unsigned znode)
{
    struct world *w = z->host->w;
    if (world_chance(w, 500))
        return -1;
    return z->world->version[znode] + (world_chance(w, 800) ? 0 : 1);
}

static enum znode_op draw_op(struct world *w)
{
    int64_t percent = world_between(w, 0, 99);
    return percent < 18   ? ZNODE_CREATE
           : percent < 48 ? ZNODE_SET
           : percent < 60 ? ZNODE_DELETE
           : percent < 88 ? ZNODE_GET
                          : ZNODE_EXISTS;
}

static struct znode_call draw_call(struct znode_client *z)
{
    struct world *w = z->host->w;
    struct znode_call call = {
        .znode = (unsigned)world_between(w, 0, ZNODES - 1),
        .op = draw_op(w),
        .answer = ZNODE_UNKNOWN,
        .called = w->now,
        .answered = INT64_MAX,
        .session = clave_async_client_session_id(z->host->client),
    };
    call.expected = draw_expected(z, call.znode);
    if (call.op == ZNODE_CREATE || call.op == ZNODE_SET)
        call.value = ++z->world->values;
    return call;
}

static clave_err send_call(struct znode_slot *slot, const struct znode_call *call)
{
    clave_async_client *c = slot->owner->host->client;
    const char *path = znode_paths[call->znode];
    char text[32];
    size_t n = (size_t)snprintf(text, sizeof text, "%lld", (long long)call->value);
    switch (call->op) {
    case ZNODE_CREATE:
        return clave_async_create(c, path, text, n, NULL, on_answer, slot);
    case ZNODE_SET:
        return clave_async_set(c, path, text, n, call->expected, on_answer, slot);
    case ZNODE_DELETE:
        return clave_async_delete(c, path, call->expected, on_answer, slot);
    case ZNODE_GET:
        return clave_async_get(c, path, NULL, on_answer, slot);
    case ZNODE_EXISTS:
        return clave_async_exists(c, path, NULL, on_answer, slot);
    }
    return CLAVE_EINVAL;
}

static void begin_call(struct znode_client *z, struct znode_slot *slot)
{
    struct znode_call call = draw_call(z);
    clave_err err = send_call(slot, &call);
    if (err != CLAVE_OK) {
        if (clave_err_classify(err) == CLAVE_CLASS_FINAL)
            world_break(z->host->w, "each call ends as its header says", "%s: %s of %s: %s",
                        z->host->name, op_names[call.op], znode_paths[call.znode],
                        clave_err_name(err));
        return;
    }
    slot->busy = true;
    slot->call = znode_history_add(&z->world->history, &call);
    z->left--;
}

/* ---- the process ------------------------------------------------------------------------------
 */

static void rest(struct znode_client *z)
{
    if (z->left > 0)
        world_set(z->host->w, &z->alarm, z->host->w->now + world_wait(z->host->w, z->rest_us));
}

static void on_due(struct alarm *a)
{
    struct znode_client *z = LIST_ENTRY(a, struct znode_client, alarm);
    z->due = true;
    host_wake(z->host);
}

void znode_client_start(struct znode_client *z)
{
    rest(z);
}

/* Now and then all at once, which the server then answers in their order. */
void znode_client_act(struct znode_client *z)
{
    if (!z->due || z->host->closing)
        return;
    z->due = false;
    bool all = world_chance(z->host->w, 200);
    for (unsigned i = 0; i < ZNODE_CALLS && z->left > 0; i++) {
        if (z->slots[i].busy)
            continue;
        begin_call(z, &z->slots[i]);
        if (!all)
            break;
    }
    rest(z);
}

void znode_client_end(struct znode_client *z)
{
    world_clear(z->host->w, &z->alarm);
    z->due = false;
}

void znode_client_finish(struct znode_client *z)
{
    z->left = 0;
    znode_client_end(z);
}

bool znode_client_is_idle(const struct znode_client *z)
{
    for (unsigned i = 0; i < ZNODE_CALLS; i++)
        if (z->slots[i].busy)
            return false;
    return true;
}

void znode_client_init(struct znode_client *z, struct host *h, struct znode_world *w,
                       unsigned calls, int64_t rest_us)
{
    *z = (struct znode_client){.host = h, .world = w, .left = calls, .rest_us = rest_us};
    z->alarm.fire = on_due;
    for (unsigned i = 0; i < ZNODE_CALLS; i++)
        z->slots[i].owner = z;
}
