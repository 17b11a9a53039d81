#include "lib/slot_bench.h"
#include "lib/unit.h"

static void slot_bench_on_event(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    struct slot_bench *u = arg;
    assert_ptr_equal(s, u->s);
    u->queued++;
    u->ahead = ev->ahead;
}

void slot_bench_open(struct slot_bench *u, struct memnet *p, size_t client, uint32_t limit)
{
    *u = (struct slot_bench){.p = p, .client = client};
    clave_slots_options o = CLAVE_SLOTS_OPTIONS_INIT;
    o.limit = limit;
    o.event_cb = slot_bench_on_event;
    o.event_arg = u;
    assert_int_equal(clave_async_slots_new(&u->s, p->clients[client].c, "/s", &o), CLAVE_OK);
}

void slot_bench_close(struct slot_bench *u)
{
    clave_async_grant_free(u->grant);
    clave_async_slots_free(u->s);
    u->grant = NULL;
    u->s = NULL;
    memnet_settle(u->p);
}

static void slot_bench_on_taken(clave_async_slots *s, clave_err err, const clave_slot *slot,
                                bool taken, void *arg)
{
    struct slot_bench *u = arg;
    u->answers++;
    u->err = err;
    u->taken = taken;
    assert_int_equal(err == CLAVE_OK, slot != NULL);
    if (!slot)
        return;
    u->token = slot->token;
    u->since = slot->since;
    assert_true(slot->token > 0 && slot->since > 0);
    clave_async_grant_free(u->grant);
    assert_int_equal(clave_async_slots_grant(s, slot, &u->grant), CLAVE_OK);
    assert_int_equal(clave_async_grant_token(u->grant), slot->token);
}

clave_err slot_bench_begin_take(struct slot_bench *u, uint64_t request, const char *id,
                                int64_t within_ms)
{
    int64_t deadline = within_ms == OWNER_TRY       ? CLAVE_TRY
                       : within_ms == OWNER_FOREVER ? CLAVE_NEVER
                                                    : u->p->now + within_ms;
    const clave_slot as = {.id = id, .host = "here", .by = "me", .reason = "a kernel"};
    return clave_async_slots_take(u->s, request, &as, deadline, slot_bench_on_taken, u);
}

void slot_bench_take(struct slot_bench *u, const char *id, int64_t within_ms)
{
    assert_int_equal(slot_bench_begin_take(u, 0, id, within_ms), CLAVE_OK);
    memnet_settle(u->p);
}

static void slot_bench_on_given(clave_async_slots *s, clave_err err, const clave_slot *slot,
                                void *arg)
{
    (void)s;
    struct slot_bench *u = arg;
    u->given++;
    u->err = err;
    u->gave = slot != NULL;
    if (slot)
        assert_true(slot->token > 0);
}

void slot_bench_give(struct slot_bench *u, const char *id, int64_t token)
{
    assert_int_equal(clave_async_slots_give(u->s, id, token, CLAVE_NEVER, slot_bench_on_given, u),
                     CLAVE_OK);
    memnet_settle(u->p);
}

void slot_bench_break(struct slot_bench *u, const char *id, const char *reason)
{
    assert_int_equal(clave_async_slots_break(u->s,
                                             &(clave_slot){.id = id, .by = "op", .reason = reason},
                                             CLAVE_NEVER, slot_bench_on_given, u),
                     CLAVE_OK);
    memnet_settle(u->p);
}

static void slot_bench_on_set(clave_async_slots *s, clave_err err, void *arg)
{
    (void)s;
    struct slot_bench *u = arg;
    u->set++;
    u->set_err = err;
}

void slot_bench_set_limit(struct slot_bench *u, uint32_t limit)
{
    assert_int_equal(clave_async_slots_set_limit(u->s, limit, slot_bench_on_set, u), CLAVE_OK);
    memnet_settle(u->p);
}

static void slot_bench_on_list(clave_async_client *c, clave_err err, const clave_slots_view *view,
                               void *arg)
{
    (void)c;
    struct slot_bench *u = arg;
    assert_int_equal(err, CLAVE_OK);
    u->limit = view->limit;
    u->n = view->n;
    assert_true(view->n <= 8);
    for (size_t i = 0; i < view->n; i++) {
        snprintf(u->ids[i], sizeof u->ids[i], "%s", view->slots[i].id);
        u->tokens[i] = view->slots[i].token;
        assert_string_equal(view->slots[i].host, "here");
        assert_string_equal(view->slots[i].by, "me");
        assert_true(i == 0 || u->tokens[i - 1] < u->tokens[i]);
    }
    u->broken[0] = '\0';
    if (view->broken.id)
        snprintf(u->broken, sizeof u->broken, "%s %s %s", view->broken.id, view->broken.by,
                 view->broken.reason);
}

void slot_bench_list(struct slot_bench *u)
{
    assert_int_equal(
        clave_async_slots_list(u->p->clients[u->client].c, "/s", slot_bench_on_list, u), CLAVE_OK);
    memnet_settle(u->p);
}

static void slot_bench_on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

clave_err slot_bench_write(struct slot_bench *u)
{
    clave_err err = CLAVE_ETIMEDOUT;
    clave_err asked =
        clave_async_grant_set(u->grant, "/data", "x", 1, -1, slot_bench_on_written, &err);
    memnet_settle(u->p);
    return asked == CLAVE_OK ? err : asked;
}
