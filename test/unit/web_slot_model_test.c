/* Slots in the model of locks: whose they are, who waits, what is told of them and why they end. */
#include "base/memory.h"
#include "lib/observe_scene.h"
#include "lib/queue_text.h"
#include "lib/unit.h"
#include "observe/lock_replay.h"
#include "observe/lock_who.h"

#define SLOT(id) "/s/owners/slot-" id
#define SAYS(id) "clave/1\nhost=web1\nname=" id "\n"
#define PLACE1 "/s/queue/_c_" UUID "-lock-0000000001"
#define PLACE2 "/s/queue/_c_" UUID "-lock-0000000002"

static struct clave_mem mem;
static char told[4096]; /* "queued NUMBER@TIME " and so on, as far as it is told at all */

static void note_told(void *arg, enum lock_change what, const struct lock_node *p, int64_t at)
{
    static const char *const words[] = {"queued", "granted", "asked", "ended"};
    size_t n = strlen(told);
    (void)arg;
    const char *path = clave__lock_told_path(what, p);
    if (path)
        snprintf(told + n, sizeof told - n, "%s%s %s %d@%d", n ? ", " : "", words[what], path,
                 atoi(p->name + p->number), (int)at);
}

static void model_open(struct lock_model *m)
{
    mem = clave__mem_or_default(NULL);
    told[0] = '\0';
    assert_int_equal(clave__lock_model_init(m, &mem, 1, 0), CLAVE_OK);
    m->changed = note_told;
}

static void model_close(struct lock_model *m)
{
    clave__lock_model_fini(m);
    assert_int_equal(m->bytes, 0);
}

static void add(struct lock_model *m, int64_t at, const char *path, const char *data)
{
    bool place = strstr(path, "/queue/") != NULL;
    clave_stat stat = {.czxid = at, .ctime = at, .ephemeral_owner = place ? at : 0};
    clave__lock_model_node(m, at, path, &stat, data, strlen(data));
}

static void set_limit(struct lock_model *m, const char *path, char limit)
{
    const char data[4] = {0, 0, 0, limit};
    clave_stat stat = {.czxid = 1};
    clave__lock_model_node(m, 1, path, &stat, data, sizeof data);
}

static const char *show_at(const struct lock_model *m, const char *path)
{
    return queue_text(clave__lock_model_find(m, path));
}

/* ---- what is there --------------------------------------------------------------------------- */

/* Whatever order the names and the nodes come in. */
TEST(those_kept_longest_come_first)
{
    CLOSED_BY(model_close) struct lock_model m;
    model_open(&m);
    add(&m, 7, SLOT("a"), SAYS("a"));
    add(&m, 3, SLOT("z"), SAYS("z"));
    add(&m, 5, SLOT("m"), SAYS("m"));
    add(&m, 8, PLACE1, SAYS("q"));
    set_limit(&m, "/s/limit", 2); /* lowered: nobody lost a slot */
    clave__lock_model_loaded(&m);
    assert_string_equal(show_at(&m, "/s"), "slot 3 5 7 | 1");
    assert_null(clave__lock_model_find(&m, "/s/queue"));
    const struct lock_queue *q = clave__lock_model_find(&m, "/s");
    assert_int_equal(clave__lock_limit(q), 2);
    const struct lock_node *first = clave__lock_holder_after(q, NULL);
    enum lock_since how;
    assert_int_equal(clave__lock_held_since(first, &how), 3);
    assert_int_equal(how, LOCK_SINCE_NODE);
    char number[64], name[128];
    struct lock_key key = clave__lock_key(first), gone = {number, name};
    snprintf(number, sizeof number, "%s", key.number);
    snprintf(name, sizeof name, "%s", key.name);
    clave__lock_model_gone(&m, 9, SLOT("z"));
    assert_int_equal(clave__lock_holder_after_key(q, &gone)->token, 5);
    assert_string_equal(show_at(&m, "/s"), "slot 5 7 | 1");
}

TEST(without_owners_those_who_wait_are_seen_by_the_limit)
{
    CLOSED_BY(model_close) struct lock_model m;
    model_open(&m);
    add(&m, 2, PLACE1, SAYS("q"));
    assert_string_equal(show_at(&m, "/s/queue"), "lock 1 |");
    set_limit(&m, "/s/limit", 0);
    assert_null(clave__lock_model_find(&m, "/s/queue"));
    assert_string_equal(show_at(&m, "/s"), "slot | 1");
    clave__lock_model_gone(&m, 3, "/s/limit");
    assert_null(clave__lock_model_find(&m, "/s"));
    assert_string_equal(show_at(&m, "/s/queue"), "lock 1 |");
    set_limit(&m, "/s/limit", 1);
    clave__lock_model_gone(&m, 4, PLACE1);
    assert_null(clave__lock_model_find(&m, "/s")); /* nobody is there */
}

/* A semaphore has "leases", and may have a lock at "queue"; anybody may have "owners". */
TEST(what_is_no_slot_is_not_shown_as_one)
{
    CLOSED_BY(model_close) struct lock_model m;
    model_open(&m);
    add(&m, 2, "/s/leases/_c_" UUID "-lease-0000000003", "");
    add(&m, 3, PLACE1, "");
    add(&m, 4, SLOT("theirs"), "{}");
    add(&m, 5, "/s/owners/readme", SAYS("x"));
    assert_string_equal(show_at(&m, "/s"), "semaphore | ! 3"); /* it is persistent, as slots are */
    assert_string_equal(show_at(&m, "/s/queue"), "lock 1 |");
}

TEST(a_slot_is_shown_by_the_id_in_its_name)
{
    static const struct {
        const char *data, *who, *task;
    } rows[] = {
        {"clave/1\nhost=web1\nname=other\nreason=kernel update\n", "rack 4 (web1)",
         "web1: kernel update"},
        {"clave/1\nreason=by hand\n", "rack 4", "by hand"},
        {"clave/1\nhost=web1\n", "rack 4 (web1)", "web1"},
        {NULL, "rack 4", ""}, /* it may not be read */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLOSED_BY(model_close) struct lock_model m;
        struct lock_label label;
        char who[LOCK_WHO_CAP];
        model_open(&m);
        add(&m, rows[i].data ? 1 : 0, SLOT("rack%204"), rows[i].data ? rows[i].data : "");
        const struct lock_queue *q = clave__lock_model_find(&m, "/s");
        const struct lock_node *p = clave__lock_holder_after(q, NULL);
        clave__lock_label(p, &label);
        assert_string_equal(clave__lock_who(p, who), rows[i].who);
        assert_string_equal(label.whose, "rack 4");
        assert_string_equal(label.task, rows[i].task);
    }
}

/* ---- what is told ---------------------------------------------------------------------------- */

TEST(a_place_that_became_a_slot_is_one_stay)
{
    CLOSED_BY(model_close) struct lock_model m;
    model_open(&m);
    set_limit(&m, "/s/limit", 1);
    clave__lock_model_loaded(&m);
    add(&m, 2, PLACE1, SAYS("a"));
    add(&m, 3, SLOT("a"), SAYS("a"));
    clave__lock_model_gone(&m, 3, PLACE1);
    assert_string_equal(told, "queued /s 1@2, granted /s 3@3");
    told[0] = '\0';
    add(&m, 5, PLACE2, SAYS("b"));
    clave__lock_model_gone(&m, 6, SLOT("a"));
    clave__lock_model_gone(&m, 7, PLACE2); /* it gave up */
    assert_string_equal(told, "queued /s 2@5, ended /s 3@6, ended /s 2@7");
    told[0] = '\0';
    add(&m, 8, SLOT("c"), SAYS("c")); /* it did not wait */
    assert_string_equal(told, "queued /s 8@8, granted /s 8@8");
}

/* ---- at the gate ----------------------------------------------------------------------------- */

TEST(slots_are_shown_with_their_reasons)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add_of(&s, 0, SLOT("b"), "clave/1\nhost=web2\nname=b\nby=ops\nreason=kernel update\n");
    scene_add_of(&s, 0, SLOT("a"), SAYS("a"));
    scene_add(&s, PLACE1, SAYS("c"));
    scene_loaded(&s);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, "/v1/locks/s", 200);
    assert_string_equal(webrig_member(c, "kind"), "slot");
    assert_string_equal(webrig_member(c, "nholders"), "2");
    assert_string_equal(webrig_member(c, "nwaiters"), "1");
    const char *first = strstr(webrig_body(c), "\"holders\": [{\"node\": \"slot-b\"");
    assert_non_null(first);
    assert_non_null(strstr(first, "\"session\": null, \"role\": \"slot\", \"client\": \"clave\", "
                                  "\"host\": \"web2\", \"pid\": null, \"name\": \"b\""));
    assert_non_null(strstr(first, "\"by\": \"ops\", \"reason\": \"kernel update\"}"));
    assert_non_null(strstr(first, "\"by\": null, \"reason\": null}], \"waiters\": "));
}

/* What a gate sees go was given back, unless the record of the last break names it. */
TEST(a_slot_that_is_gone_was_given_or_broken)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    scene_add_of(&s, 0, SLOT("a"), SAYS("a"));
    scene_add_of(&s, 0, SLOT("b"), SAYS("b"));
    clave__observe_gone(s.o, SLOT("a"));
    clave__observe_gone(s.o, SLOT("b"));
    scene_add_of(&s, 0, "/s/broken", "clave/1\nname=b\nreason=dead\ntoken=2\n");
    webrig_advance(s.rig, 200);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, "/v1/history?path=/s", 200);
    assert_int_equal(scene_count(webrig_body(c), "\"cause\": \"released\""), 1);
    assert_int_equal(scene_count(webrig_body(c), "\"cause\": \"broken\""), 1);
    assert_int_equal(scene_count(webrig_body(c), "\"kind\": \"slot\""), 6);
}

TEST(slots_have_events_and_metrics_of_their_own)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    struct webrig_call *events = scene_follow(&s, "/v1/events", "");
    scene_add_of(&s, 0, SLOT("a"), SAYS("a"));
    webrig_advance(s.rig, 100);
    assert_string_equal(scene_events(events), "reset lock:/s/1/0 ");
    webrig_end(events);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, "/metrics", 200);
    assert_non_null(strstr(webrig_body(c), "clave_lock_holders{path=\"other\",kind=\"slot\"} 1\n"));
    assert_non_null(strstr(
        webrig_body(c), "clave_lock_held_since_timestamp_seconds{path=\"other\",kind=\"slot\"} "));
}

TEST(a_log_tells_which_slot_was_broken)
{
    static const char record[] = "clave/1\nname=b\nreason=dead\ntoken=11\n";
    struct lock_replay *r;
    mem = clave__mem_or_default(NULL);
    assert_int_equal(clave__lock_replay_new(&r, &mem, 7), CLAVE_OK);
    clave__lock_replay_loaded(r);
    for (int i = 0; i < 2; i++) {
        clave__lock_replay_txn(r, &(struct lock_replay_txn){10 + i, 10 + i, 5});
        clave__lock_replay_created(r, i ? SLOT("b") : SLOT("a"), false, SAYS("x"),
                                   sizeof SAYS("x") - 1);
    }
    clave__lock_replay_txn(r, &(struct lock_replay_txn){12, 12, 6});
    clave__lock_replay_deleted(r, SLOT("a"));
    clave__lock_replay_txn(r, &(struct lock_replay_txn){13, 13, 6});
    clave__lock_replay_deleted(r, SLOT("b"));
    clave__lock_replay_written(r, "/s/broken", 1, record, sizeof record - 1);
    const struct history_entry *e = clave__history_find(&r->history, r->history.last - 1);
    assert_true(e->zxid == 12 && e->what == LOCK_ENDED && e->cause == LOCK_RELEASED);
    e = clave__history_find(&r->history, r->history.last);
    assert_true(e->zxid == 13 && e->what == LOCK_ENDED && e->cause == LOCK_BROKEN);
    clave__lock_replay_free(r);
}
