#include "lib/slot_user.h"
#include "lib/unit.h"

static void on_event(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    struct slot_user *a = arg;
    assert_ptr_equal(s, a->s);
    a->queued += !ev->refused;
    a->refused += ev->refused;
    a->ahead = ev->ahead;
    a->owned = ev->owned;
    a->limit = ev->limit;
    snprintf(a->strange, sizeof a->strange, "%s", ev->strange ? ev->strange : "");
}

void slot_user_open(struct slot_user *a, struct memnet *p, size_t client, uint32_t limit)
{
    *a = (struct slot_user){.p = p, .client = client};
    const clave_slots_options o = {
        .size = sizeof o, .limit = limit, .event_cb = on_event, .event_arg = a};
    assert_int_equal(clave_async_slots_new(&a->s, p->clients[client].c, "/s", &o), CLAVE_OK);
}

void slot_user_close(struct slot_user *a)
{
    clave_async_slots_free(a->s);
    a->s = NULL;
    memnet_settle(a->p);
}

static void on_take(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                    void *arg)
{
    struct slot_user *a = arg;
    (void)s;
    a->answers++;
    a->err = err;
    a->taken = taken;
    assert_int_equal(err == CLAVE_OK, slot != NULL);
    if (!slot)
        return;
    a->token = slot->token;
    a->since = slot->since;
    snprintf(a->node, sizeof a->node, "%s", slot->node);
    snprintf(a->id, sizeof a->id, "%s", slot->id);
    snprintf(a->host, sizeof a->host, "%s", slot->host ? slot->host : "");
    snprintf(a->reason, sizeof a->reason, "%s", slot->reason ? slot->reason : "");
}

clave_err slot_user_begin_take(struct slot_user *a, uint64_t request, const char *id,
                               int64_t within_ms)
{
    char host[32];
    snprintf(host, sizeof host, "host%zu", a->client);
    const clave_slot as = {.id = id, .host = host, .by = "me", .reason = "test"};
    int64_t deadline = within_ms == OWNER_TRY       ? CLAVE_TRY
                       : within_ms == OWNER_FOREVER ? CLAVE_NEVER
                                                    : a->p->now + within_ms;
    return clave_async_slots_take(a->s, request, &as, deadline, on_take, a);
}

clave_err slot_user_take(struct slot_user *a, const char *id, int64_t within_ms)
{
    clave_err err = slot_user_begin_take(a, 0, id, within_ms);
    memnet_settle(a->p);
    return err;
}

void slot_user_on_gone(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct slot_user *a = arg;
    (void)s;
    a->gives++;
    a->give_err = err;
    a->given = slot ? slot->token : 0;
}

void slot_user_give_by(struct slot_user *a, const char *id, int64_t within_ms)
{
    assert_int_equal(
        clave_async_slots_give(a->s, id, 0, a->p->now + within_ms, slot_user_on_gone, a), CLAVE_OK);
    memnet_settle(a->p);
}

clave_err slot_user_give(struct slot_user *a, const char *id, int64_t token)
{
    clave_err err = clave_async_slots_give(a->s, id, token, CLAVE_NEVER, slot_user_on_gone, a);
    memnet_settle(a->p);
    return err;
}

void slot_user_break(struct slot_user *a, const char *id, const char *reason)
{
    const clave_slot slot = {.id = id, .by = "op", .reason = reason};
    assert_int_equal(clave_async_slots_break(a->s, &slot, CLAVE_NEVER, slot_user_on_gone, a),
                     CLAVE_OK);
    memnet_settle(a->p);
}

static void on_limit(clave_async_slots *s, clave_err err, void *arg)
{
    struct slot_user *a = arg;
    (void)s;
    a->limits++;
    a->limit_err = err;
}

clave_err slot_user_set_limit(struct slot_user *a, uint32_t limit)
{
    clave_err err = clave_async_slots_set_limit(a->s, limit, on_limit, a);
    memnet_settle(a->p);
    return err;
}

void slot_user_on_list(clave_async_client *c, clave_err err, const clave_slots_view *view,
                       void *arg)
{
    struct slot_view *v = arg;
    (void)c;
    v->calls++;
    v->err = err;
    if (err != CLAVE_OK)
        return;
    v->limit = view->limit;
    v->n = view->n;
    v->text[0] = v->broken[0] = '\0';
    for (size_t i = 0; i < view->n; i++) {
        const clave_slot *s = &view->slots[i];
        size_t len = strlen(v->text);
        snprintf(v->text + len, sizeof v->text - len, "%s %s %s;", s->id ? s->id : "-",
                 s->host ? s->host : "-", s->reason ? s->reason : "-");
        assert_true(i == 0 || view->slots[i - 1].token < s->token);
        v->newest = s->token;
    }
    const clave_slot *b = &view->broken;
    if (b->id)
        snprintf(v->broken, sizeof v->broken, "%s %s %s %s", b->id, b->host ? b->host : "-",
                 b->by ? b->by : "-", b->reason);
    v->broken_token = b->token;
    v->broken_since = b->since;
}

struct slot_view slot_user_list(struct memnet *p)
{
    struct slot_view v = {.err = CLAVE_EPROTO};
    assert_int_equal(
        clave_async_slots_list(p->clients[p->o.clients - 1].c, "/s", slot_user_on_list, &v),
        CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(v.calls, 1);
    assert_int_equal(v.err, CLAVE_OK);
    return v;
}

size_t slot_user_owned(struct memnet *p)
{
    return memnet_list(p, p->o.clients - 1, "/s/owners", NULL, 0);
}
