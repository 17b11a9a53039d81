/* slots_test.c - slots, for threads. */
#include "rig.h"

#include <stdatomic.h>
#include <unistd.h>

static clave_slots *make_slots(clave_client *c, const char *path, uint32_t limit)
{
    clave_slots *s;
    assert_int_equal(clave_slots_new(&s, c, path, NULL), CLAVE_OK);
    if (limit > 0)
        assert_int_equal(clave_slots_set_limit(s, limit, RIG_PATIENCE_MS), CLAVE_OK);
    return s;
}

static clave_err take(clave_slots *s, const char *id, int64_t timeout_ms, int64_t *token)
{
    const clave_slot as = {.id = id, .host = "here"};
    clave_slot *slot;
    clave_err err = clave_slots_take(s, &as, timeout_ms, &slot, NULL);
    assert_true((err == CLAVE_OK) == (slot != NULL));
    if (slot && token)
        *token = slot->token;
    clave_slot_free(slot);
    return err;
}

TEST(a_slot_outlives_its_taker)
{
    const clave_slot as = {.id = "web/1", .host = "h", .by = "ann", .reason = "kernel"};
    clave_client *a = rig_session(rig->connect);
    clave_slots *s = make_slots(a, "/outlive", 1);
    clave_slot *slot, *again;
    bool taken = false;
    assert_int_equal(clave_slots_take(s, &as, 0, &slot, &taken), CLAVE_OK);
    assert_true(taken);
    assert_string_equal(slot->id, "web/1");
    assert_string_equal(slot->reason, "kernel");
    assert_int_equal(strncmp(slot->node, "/outlive/owners/slot-web%2F1/", 29), 0);
    clave_slots_free(s);
    clave_client_close(a, RIG_PATIENCE_MS);

    clave_client *b = rig_session(rig->connect);
    s = make_slots(b, "/outlive", 0);
    assert_int_equal(take(s, "web2", 0, NULL), CLAVE_EBUSY);
    assert_int_equal(clave_slots_take(s, &(clave_slot){.id = "web/1"}, 0, &again, &taken),
                     CLAVE_OK);
    assert_false(taken);
    assert_int_equal(again->token, slot->token);
    assert_string_equal(again->by, "ann"); /* more than this take said, and so allocated later */
    clave_slot_free(again);

    clave_slots_view *view;
    assert_int_equal(clave_slots_list(b, "/outlive", RIG_PATIENCE_MS, &view), CLAVE_OK);
    assert_int_equal(view->limit, 1);
    assert_int_equal(view->n, 1);
    assert_string_equal(view->slots[0].id, "web/1");
    assert_int_equal(view->slots[0].token, slot->token);
    assert_true(view->slots[0].since > 0);
    assert_null(view->broken.id);
    clave_slots_view_free(view);
    clave_slot_free(slot);
    clave_slots_free(s);
    clave_client_close(b, RIG_PATIENCE_MS);
}

TEST(a_give_and_a_break_say_whose_it_was)
{
    clave_client *c = rig_session(rig->connect);
    clave_slots *s = make_slots(c, "/give", 2);
    int64_t first, second, given = -1;
    assert_int_equal(take(s, "a", 0, &first), CLAVE_OK);
    assert_int_equal(clave_slots_give(s, "a", first + 1, RIG_PATIENCE_MS, &given), CLAVE_OK);
    assert_int_equal(given, 0);
    assert_int_equal(clave_slots_give(s, "a", first, RIG_PATIENCE_MS, &given), CLAVE_OK);
    assert_int_equal(given, first);
    assert_int_equal(clave_slots_give(s, "a", 0, RIG_PATIENCE_MS, &given), CLAVE_OK);
    assert_int_equal(given, 0);
    assert_int_equal(take(s, "a", 0, &second), CLAVE_OK);
    assert_true(second > first);

    clave_slot which = {.id = "a", .by = "op"};
    assert_int_equal(clave_slots_break(s, &which, RIG_PATIENCE_MS, NULL), CLAVE_EINVAL);
    which.reason = "gone";
    assert_int_equal(clave_slots_break(s, &which, RIG_PATIENCE_MS, &given), CLAVE_OK);
    assert_int_equal(given, second);
    clave_slots_view *view;
    assert_int_equal(clave_slots_list(c, "/give", RIG_PATIENCE_MS, &view), CLAVE_OK);
    assert_int_equal(view->n, 0);
    assert_string_equal(view->broken.id, "a");
    assert_string_equal(view->broken.reason, "gone");
    assert_int_equal(view->broken.token, second);
    clave_slots_view_free(view);
    clave_slots_free(s);
    clave_client_close(c, RIG_PATIENCE_MS);
}

TEST(what_is_wrong_is_said)
{
    clave_client *c = rig_session(rig->connect);
    clave_slots *s;
    clave_slots_view *view;
    assert_int_equal(clave_slots_new(&s, c, "relative", NULL), CLAVE_EPATH);
    assert_null(s);
    s = make_slots(c, "/wrong", 0);
    assert_int_equal(take(s, "a", 0, NULL), CLAVE_ENONODE); /* no limit is set */
    assert_int_equal(take(s, "", 0, NULL), CLAVE_EINVAL);
    assert_int_equal(take(s, "a\nb", 0, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_slots_set_limit(s, UINT32_MAX, RIG_PATIENCE_MS), CLAVE_EINVAL);
    assert_int_equal(clave_slots_list(c, "/nothing", RIG_PATIENCE_MS, &view), CLAVE_OK);
    assert_int_equal(view->limit, -1);
    assert_int_equal(view->n, 0);
    clave_slots_view_free(view);
    clave_slots_free(s);
    clave_client_close(c, RIG_PATIENCE_MS);
}

TEST(a_grant_guards_writes_until_the_slot_is_given)
{
    clave_client *c = rig_session(rig->connect);
    clave_slots *s = make_slots(c, "/granted", 1);
    clave_slot *slot;
    clave_grant *g;
    assert_int_equal(clave_slots_take(s, &(clave_slot){.id = "a"}, 0, &slot, NULL), CLAVE_OK);
    assert_int_equal(clave_slots_grant(s, slot, &g), CLAVE_OK);
    assert_int_equal(clave_grant_token(g), slot->token);
    assert_int_equal(clave_grant_session_id(g), 0);
    assert_true(clave_grant_valid_for(g, 1000000));
    assert_int_equal(
        clave_grant_create(g, "/guarded", "x", 1, CLAVE_PERSISTENT, RIG_PATIENCE_MS, NULL),
        CLAVE_OK);
    assert_int_equal(clave_slots_give(s, "a", 0, RIG_PATIENCE_MS, NULL), CLAVE_OK);
    assert_int_equal(clave_grant_set(g, "/guarded", "y", 1, -1, RIG_PATIENCE_MS), CLAVE_ELOST);
    clave_grant_free(g);
    slot->node = "/elsewhere";
    assert_int_equal(clave_slots_grant(s, slot, &g), CLAVE_EINVAL);
    clave_slot_free(slot);
    clave_slots_free(s);
    clave_client_close(c, RIG_PATIENCE_MS);
}

struct waiter {
    clave_slots *s;
    clave_err err;
};

static void *wait_for_room(void *arg)
{
    struct waiter *w = arg;
    w->err = take(w->s, "waits", -1, NULL);
    return NULL;
}

static void on_waiting(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    (void)s;
    (void)ev;
    atomic_store((atomic_bool *)arg, true);
}

/* A take that waits in another thread; it has said so. */
static void begin_to_wait(struct waiter *w, clave_client *c, pthread_t *thread)
{
    atomic_bool waits = false;
    const clave_slots_options o = {
        .size = sizeof o, .limit = 1, .event_cb = on_waiting, .event_arg = &waits};
    assert_int_equal(clave_slots_new(&w->s, c, "/waits", &o), CLAVE_OK);
    assert_int_equal(take(w->s, "has", 0, NULL), CLAVE_OK);
    pthread_create(thread, NULL, wait_for_room, w);
    for (int i = 0; i < RIG_PATIENCE_MS && !atomic_load(&waits); i++)
        usleep(1000);
    assert_true(atomic_load(&waits));
}

TEST(a_cancel_ends_a_take_that_waits)
{
    struct waiter w;
    pthread_t thread;
    clave_client *c = rig_session(rig->connect);
    begin_to_wait(&w, c, &thread);
    clave_slots_cancel(w.s);
    pthread_join(thread, NULL);
    assert_int_equal(w.err, CLAVE_ECANCELED);
    clave_slots_free(w.s);
    clave_client_close(c, RIG_PATIENCE_MS);
}

TEST(a_client_may_be_closed_before_its_slots)
{
    struct waiter w;
    pthread_t thread;
    clave_client *c = rig_session(rig->connect);
    begin_to_wait(&w, c, &thread);
    clave_client_close(c, RIG_PATIENCE_MS);
    pthread_join(thread, NULL);
    assert_int_equal(w.err, CLAVE_ECLOSED);
    assert_int_equal(take(w.s, "late", 0, NULL), CLAVE_ECLOSED);
    assert_int_equal(clave_slots_give(w.s, "has", 0, 0, NULL), CLAVE_ECLOSED);
    clave_slots_free(w.s);
}

/* ---- many ------------------------------------------------------------------------------------ */

enum { TAKERS = 8, TURNS = 25, LIMIT = 3 };

struct taker {
    clave_client *client;
    int number;
    atomic_int *owners, *faults;
};

static void *take_and_give(void *arg)
{
    struct taker *t = arg;
    char id[16];
    clave_slots *s = make_slots(t->client, "/many", 0);
    int64_t token = 0, last = 0;
    snprintf(id, sizeof id, "t%d", t->number);
    for (int i = 0; i < TURNS; i++) {
        if (take(s, id, RIG_PATIENCE_MS, &token) != CLAVE_OK || token <= last) {
            atomic_fetch_add(t->faults, 1);
            break;
        }
        last = token;
        if (atomic_fetch_add(t->owners, 1) >= LIMIT)
            atomic_fetch_add(t->faults, rig_unsafe("more owners than slots"));
        atomic_fetch_sub(t->owners, 1);
        if (clave_slots_give(s, id, token, RIG_PATIENCE_MS, NULL) != CLAVE_OK)
            atomic_fetch_add(t->faults, 1);
    }
    clave_slots_free(s);
    return NULL;
}

TEST(threads_share_the_slots)
{
    atomic_int owners = 0, faults = 0;
    struct taker takers[TAKERS];
    pthread_t threads[TAKERS];
    clave_client *clients[2] = {rig_session(rig->connect), rig_session(rig->connect)};
    clave_slots_free(make_slots(clients[0], "/many", LIMIT));
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){clients[i % 2], i, &owners, &faults};
        pthread_create(&threads[i], NULL, take_and_give, &takers[i]);
    }
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&faults), 0);
    clave_client_close(clients[0], RIG_PATIENCE_MS);
    clave_client_close(clients[1], RIG_PATIENCE_MS);
}

TEST_GROUP(rig_start_group, rig_stop_group)
