/* The model of locks: the kinds of locks of clave, Curator and kazoo. Trees that change are in
 * web_lock_listing_test.c. */
#include "base/memory.h"
#include "base/rand.h"
#include "lib/failmem.h"
#include "lib/queue_text.h"
#include "lib/unit.h"
#include "observe/lock_holders.h"
#include "observe/lock_json.h"
#include "observe/lock_model.h"
#include "observe/lock_who.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define HEX "0123456789abcdef0123456789abcdef"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct clave_mem mem;
static char told[4096]; /* what the model told: "queued NAME " and so on */

static void note_change(void *arg, enum lock_change what, const struct lock_node *p, int64_t at)
{
    static const char *const words[] = {"queued", "granted", "asked", "ended"};
    size_t n = strlen(told);
    (void)arg;
    snprintf(told + n, sizeof told - n, "%s %s@%d ", words[what], p->name + p->number, (int)at);
}

static void model_open(struct lock_model *m)
{
    mem = clave__mem_or_default(NULL);
    told[0] = '\0';
    assert_int_equal(clave__lock_model_init(m, &mem, 1, 0), CLAVE_OK);
    m->changed = note_change;
}

static void add_of(struct lock_model *m, int64_t at, const char *path, int64_t session,
                   const char *data)
{
    clave_stat stat = {.czxid = at, .ctime = at, .ephemeral_owner = session};
    clave__lock_model_node(m, at, path, &stat, data, strlen(data));
}

static void add(struct lock_model *m, int64_t at, const char *path)
{
    add_of(m, at, path, at, "");
}

static const char *show_at(const struct lock_model *m, const char *path)
{
    return queue_text(clave__lock_model_find(m, path));
}

/* ---- kinds ----------------------------------------------------------------------------------- */

TEST(locks_of_all_kinds_are_told_from_their_nodes)
{
    struct lock_model m;
    model_open(&m);
    add(&m, 5, "/a/_c_" UUID "-lock-0000000002");
    add(&m, 6, "/a/" HEX "-lock-0000000001");
    add(&m, 7, "/e/_c_" UUID "-latch-0000000001");
    add(&m, 8, "/e/_c_" UUID "-priority-9-latch-0000000002");
    add(&m, 9, "/k/" HEX "__lock__0000000004");
    add(&m, 10, "/r/_c_" UUID "-__READ__0000000001");
    add(&m, 11, "/r/_c_" UUID "-__READ__0000000002");
    add(&m, 12, "/r/_c_" UUID "-__WRIT__0000000003");
    add(&m, 13, "/r/_c_" UUID "-__READ__0000000004");
    add(&m, 14, "/x/_c_" UUID "-lock-0000000001");
    add(&m, 15, "/x/_c_" UUID "-latch-0000000002");
    add(&m, 16, "/lock-0000000001");
    add(&m, 17, "/a");
    add(&m, 18, "/a/config");
    assert_string_equal(show_at(&m, "/a"), "lock 1 | 2");
    assert_string_equal(show_at(&m, "/e"), "election 1 | 2");
    assert_string_equal(show_at(&m, "/k"), "lock 4 |");
    assert_string_equal(show_at(&m, "/r"), "rw 1 2 | 3 4");
    assert_string_equal(show_at(&m, "/x"), "mixed 1 2 |");
    assert_string_equal(show_at(&m, "/"), "lock 1 |");
    assert_null(clave__lock_model_find(&m, "/config"));
    assert_string_equal(told, "");
    clave__lock_model_fini(&m);
    assert_int_equal(m.bytes, 0);
}

/* What a node says, its session, and how it is shown: in one piece, and in the two of a table. */
TEST(a_place_is_shown_by_what_is_known_of_it)
{
#define U10 "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"
#define U49 U10 U10 U10 U10 "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"
    static const struct {
        const char *data;
        int64_t session;
        const char *who, *whose, *task;
    } rows[] = {
        {"clave/1\nhost=web1\npid=47\nname=nightly\ncommand=./x\n", 1, "web1 pid 47 (nightly)",
         "web1 pid 47", "nightly"},
        {"clave/1\nhost=web1\ncommand=./x\n", 1, "web1 (./x)", "web1", "./x"},
        {"clave/1\npid=47\n", 1, "pid 47", "pid 47", ""},
        {"clave/1\nname=nightly\ncommand=./x\n", 1, "nightly", "nightly", "./x"},
        {"clave/1\nhost=\nname=\ncommand=./x\n", 1, "./x", "./x", ""},
        {"clave/1\nlimit=3\n", 26, "session 0x1a", "session 0x1a", ""},
        {"backup-17", 1, "backup-17", "backup-17", ""}, /* kazoo's identifier */
        {"10.0.0.7", 1, "10.0.0.7", "10.0.0.7", ""},    /* Curator's default */
        {"", 26, "session 0x1a", "session 0x1a", ""},   /* kazoo's default */
        {"\x01\x02", 26, "session 0x1a", "session 0x1a", ""},
        {CLAVE_REVOKE_WORD, 26, "session 0x1a", "session 0x1a", ""},
        {"clave/1\nhost=a%1Bb\n", 1, "a?b",
         "a\x1b"
         "b",
         ""},
        {"clave/1\nhost=x" U49 U10 "\n", 1, "x" U49, "x" U49, ""}, /* 100 bytes at most */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLOSED_BY(clave__lock_model_fini) struct lock_model m;
        struct lock_label label;
        char who[LOCK_WHO_CAP];
        model_open(&m);
        add_of(&m, 1, "/a/_c_" UUID "-lock-0000000001", rows[i].session, rows[i].data);
        const struct lock_node *p =
            clave__lock_holder_after(clave__lock_model_find(&m, "/a"), NULL);
        clave__lock_label(p, &label);
        assert_string_equal(clave__lock_who(p, who), rows[i].who);
        assert_string_equal(label.whose, rows[i].whose);
        assert_string_equal(label.task, rows[i].task);
    }
}

/* Each row: whose node is at the head of the queue, and what the queue is then. */
TEST(what_no_session_owns_neither_holds_nor_waits)
{
    static const struct {
        int64_t owner;
        const char *name, *then;
    } rows[] = {
        {1, "-lock-", "lock 1 | 2"},
        {0, "-lock-", "lock | 2 ! 1"},
        {INT64_MIN, "-lock-", "lock | 2 ! 1"},
        {(int64_t)0xff0000000000ea60, "-lock-", "lock | 2 ! 1"}, /* a TTL of a minute */
        {(int64_t)0xff12345600000001, "-lock-", "lock 1 | 2"},   /* a session, of server 255 */
        {0, "-latch-", "election | 2 ! 1"},
        {0, "-__WRIT__", "rw | 2 ! 1"},
        {0, "-__READ__", "rw 2 | ! 1"}, /* readers do not wait for one another */
        {0, "__lock__", "lock | 2 ! 1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLOSED_BY(clave__lock_model_fini) struct lock_model m;
        char path[96], next[96];
        model_open(&m);
        snprintf(path, sizeof path, "/a/" HEX "%s0000000001", rows[i].name);
        snprintf(next, sizeof next, "/a/" HEX "%s0000000002",
                 strcmp(rows[i].name, "-__WRIT__") == 0 ? "-__READ__" : rows[i].name);
        clave__lock_model_loaded(&m);
        add_of(&m, 1, path, rows[i].owner, "clave/1\nhost=web1\n");
        add_of(&m, 2, next, 7, "");
        assert_string_equal(show_at(&m, "/a"), rows[i].then);
        if (strchr(rows[i].then, '!')) {
            const struct lock_node *p =
                clave__lock_left_over_after(clave__lock_model_find(&m, "/a"), NULL);
            assert_string_equal(clave__lock_role_of_side(p), "left-over");
            assert_null(p->session);
        }
        clave__lock_model_gone(&m, 3, path);
        assert_non_null(strstr(told, "granted 0000000002"));
        assert_null(strchr(show_at(&m, "/a"), '!'));
    }
}

/* A lease that is left over takes room for ever; one who acquires, before others who do, lets
 * nobody pass. Of kazoo's leases, whose names are UUIDs, the queue beside the path tells that they
 * are leases at all. */
TEST(a_semaphore_has_what_is_left_over_on_both_sides)
{
    struct lock_model m;
    model_open(&m);
    add_of(&m, 1, "/s/leases/_c_" UUID "-lease-0000000000", 0, "clave/1\nlimit=1\n");
    add_of(&m, 2, "/s/leases/_c_" UUID "-lease-0000000001", 21, "clave/1\nlimit=1\n");
    add_of(&m, 3, "/s/locks/_c_" UUID "-lock-0000000004", 0, "clave/1\nlimit=1\n");
    add_of(&m, 4, "/s/locks/_c_" UUID "-lock-0000000005", 22, "clave/1\nlimit=1\n");
    assert_string_equal(show_at(&m, "/s"), "semaphore | 5 ! 0 4");
    clave__lock_model_gone(&m, 5, "/s/leases/_c_" UUID "-lease-0000000000");
    assert_string_equal(show_at(&m, "/s"), "semaphore 1 | 5 ! 4");
    clave__lock_model_gone(&m, 6, "/s/leases/_c_" UUID "-lease-0000000001");
    clave__lock_model_gone(&m, 7, "/s/locks/_c_" UUID "-lock-0000000005");
    assert_string_equal(show_at(&m, "/s"), "semaphore | ! 4");
    add_of(&m, 8, "/p/" HEX, 0, "");
    assert_null(clave__lock_model_find(&m, "/p"));
    add_of(&m, 9, "/k-__lock__", 0, "");
    add_of(&m, 10, "/k/" HEX, 0, "");
    assert_string_equal(show_at(&m, "/k"), "semaphore | ! 123456789");
    clave__lock_model_fini(&m);
    assert_int_equal(m.bytes, 0);
}

TEST(a_semaphore_is_its_leases_and_those_who_queue_for_one)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add(&m, 1, "/s/locks/_c_" UUID "-lock-0000000001");
    assert_string_equal(show_at(&m, "/s/locks"), "lock 1 |");
    add_of(&m, 2, "/s/leases/_c_" UUID "-lease-0000000000", 20, "");
    add_of(&m, 3, "/s/leases/_c_" UUID "-lease-0000000001", 21, "");
    assert_null(clave__lock_model_find(&m, "/s/locks"));
    assert_string_equal(show_at(&m, "/s"), "semaphore 0 1 | 1");
    assert_int_equal(clave__lock_limit(clave__lock_model_find(&m, "/s")), 0);
    assert_string_equal(clave__lock_model_after(&m, "", false)->path, "/s");
    assert_null(clave__lock_model_after(&m, "/s", true));
    clave__lock_model_gone(&m, 4, "/s/leases/_c_" UUID "-lease-0000000000");
    clave__lock_model_gone(&m, 4, "/s/leases/_c_" UUID "-lease-0000000001");
    assert_string_equal(show_at(&m, "/s/locks"), "lock 1 |");
    add(&m, 5, "/s/leases/" HEX); /* kazoo's */
    assert_string_equal(show_at(&m, "/s"), "semaphore 123456789 | 1");
}

/* They say its limit, so it is known as one before there is a lease, and for as long as anybody
 * queues. Real locks may be named so, too. */
TEST(a_semaphore_is_known_by_those_who_queue)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    clave__lock_model_loaded(&m);
    add_of(&m, 1, "/r/locks/_c_" UUID "-lock-0000000001", 20, "clave/1\n");
    assert_string_equal(show_at(&m, "/r/locks"), "lock 1 |");
    told[0] = '\0';
    add_of(&m, 2, "/s/locks/_c_" UUID "-lock-0000000001", 21, "clave/1\nlimit=2\n");
    add_of(&m, 2, "/s/locks/_c_" UUID "-lock-0000000002", 22, "clave/1\nlimit=2\n");
    for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&m));)
        clave__lock_model_settle(&m, q);
    assert_string_equal(show_at(&m, "/s"), "semaphore | 1 2");
    assert_null(clave__lock_model_find(&m, "/s/locks"));
    assert_int_equal(clave__lock_limit(clave__lock_model_find(&m, "/s")), 2);
    add_of(&m, 3, "/s/leases/_c_" UUID "-lease-0000000000", 21, "clave/1\nlimit=2\n");
    clave__lock_model_gone(&m, 4, "/s/locks/_c_" UUID "-lock-0000000001");
    assert_string_equal(show_at(&m, "/s"), "semaphore 0 | 2");
    clave__lock_model_gone(&m, 5, "/s/leases/_c_" UUID "-lease-0000000000");
    assert_string_equal(show_at(&m, "/s"), "semaphore | 2");
    clave__lock_model_gone(&m, 6, "/s/locks/_c_" UUID "-lock-0000000002");
    clave__lock_model_gone(&m, 6, "/r/locks/_c_" UUID "-lock-0000000001");
    assert_null(clave__lock_model_after(&m, "", false));
    for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&m));)
        clave__lock_model_settle(&m, q);
    assert_int_equal(m.queues.count, 0);
}

/* Its leases are right below the path, and so are the members of a party, which is no lock. */
TEST(a_stock_semaphore_of_kazoo_is_told_from_a_party)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add(&m, 1, "/p/" HEX);
    add(&m, 2, "/s/" HEX);
    add(&m, 3, "/s/1123456789abcdef0123456789abcdef");
    assert_null(clave__lock_model_after(&m, "", false));
    add(&m, 4, "/s-__lock__");
    assert_string_equal(show_at(&m, "/s"), "semaphore 123456789 1123456789 |");
    add(&m, 5, "/s-__lock__/" HEX "__lock__0000000003");
    assert_string_equal(show_at(&m, "/s"), "semaphore 123456789 1123456789 | 3");
    assert_null(clave__lock_model_find(&m, "/s-__lock__"));
    clave__lock_model_gone(&m, 6, "/s/" HEX);
    clave__lock_model_gone(&m, 7, "/s/1123456789abcdef0123456789abcdef");
    assert_string_equal(show_at(&m, "/s-__lock__"), "lock 3 |");
    clave__lock_model_gone(&m, 8, "/s-__lock__/" HEX "__lock__0000000003");
    clave__lock_model_gone(&m, 9, "/s-__lock__");
    clave__lock_model_gone(&m, 10, "/p/" HEX);
    for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&m));)
        clave__lock_model_settle(&m, q);
    assert_int_equal(m.queues.count, 0);
}

/* Of Curator's layout, kazoo's and slots: whichever comes first. */
TEST(two_queues_may_claim_to_be_of_one_semaphore)
{
    static const struct {
        const char *path, *data;  /* what is there first */
        const char *lock, *shown; /* and how it is shown, with all the rest */
    } rows[] = {
        {"/s-__lock__/" HEX "__lock__0000000003", "", "/s-__lock__", "lock 3 |"},
        {"/s/limit", "\0\0\0\1", "/s", "slot | 4"},
        {"/s/owners/slot-a", "clave/1\nname=a\n", "/s", "slot 2 | 4"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lock_model m;
        model_open(&m);
        clave_stat stat = {.czxid = 2, .ephemeral_owner = i ? 0 : 20};
        size_t n = i == 1 ? 4 : strlen(rows[i].data);
        if (i == 0)
            add(&m, 1, "/s-__lock__");
        clave__lock_model_node(&m, 2, rows[i].path, &stat, rows[i].data, n);
        if (i > 0)
            add_of(&m, 3, "/s/queue/_c_" UUID "-lock-0000000004", 21, "");
        add_of(&m, 4, "/s/locks/_c_" UUID "-lock-0000000001", 22, "clave/1\nlimit=2\n");
        assert_string_equal(show_at(&m, rows[i].lock), rows[i].shown);
        add_of(&m, 5, "/s/leases/_c_" UUID "-lease-0000000000", 22, "clave/1\nlimit=2\n");
        clave__lock_model_gone(&m, 6, "/s/leases/_c_" UUID "-lease-0000000000");
        clave__lock_model_gone(&m, 7, "/s/locks/_c_" UUID "-lock-0000000001");
        for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&m));)
            clave__lock_model_settle(&m, q);
        assert_string_equal(show_at(&m, rows[i].lock), rows[i].shown);
        clave__lock_model_fini(&m);
        assert_int_equal(m.bytes, 0);
    }
}

/* All strangers of a lock, as a row has them; "!" first: its limit is no number. */
static const char *strangers_at(const struct lock_model *m, const char *path)
{
    static char text[512];
    const struct lock_queue *q = clave__lock_model_find(m, path);
    const struct lock_stranger *s;
    snprintf(text, sizeof text, "%s", q && clave__lock_has_bad_limit(q) ? "!" : "");
    for (const char *at = ""; q && (s = clave__lock_stranger_after(q, at));
         at = clave__lock_stranger_name(s)) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s ", clave__lock_stranger_name(s));
    }
    return text;
}

/* Each row: a node of others, in a tree where one of slots and one of a semaphore's leases is full;
 * "=": it says the number 1. */
TEST(what_is_no_place_is_a_stranger_where_only_places_belong)
{
    static const struct {
        const char *tree[4], *node, *data; /* the nodes before; who comes last */
        const char *path, *shown, *strangers;
    } rows[] = {
        {{"/s/limit", "/s/owners"}, "/s/owners/foo", "", "/s", "slot |", "owners/foo "},
        {{"/s/limit", "/s/owners/slot-a"}, "/s/owners/foo", "", "/s", "slot 3 |", "owners/foo "},
        {{"/s/limit", "/s/owners/slot-a"},
         "/s/owners/slot-b",
         "x",
         "/s",
         "slot 3 |",
         "owners/slot-b "},
        {{"/s/limit", "/s/owners/slot-a"}, "/s/queue/foo", "", "/s", "slot 3 |", "queue/foo "},
        {{"/s/limit", "/s/owners/slot-a"}, "/s/foo", "", "/s", "slot 3 |", ""},
        {{"/s/limit", "/s/owners/slot-a"}, "/s/leases/foo", "", "/s", "slot 3 |", ""},
        {{"/s/owners/slot-a"}, "/s/limit", "four", "/s", "slot 2 |", "!"},
        {{"/s/owners/slot-a"}, "/s/limit", "2024", "/s", "slot 2 |", "!"},
        {{"/s/owners/slot-a"}, "/s/limit", "ten per team", "/s", "slot 2 |", "!"},
        {{"/s/owners", "/s/queue/_c_" UUID "-lock-0000000004"},
         "/s/limit",
         "four",
         "/s",
         "slot | 4",
         "!"},
        {{"/s/queue/_c_" UUID "-lock-0000000004"}, "/s/limit", "four", "/s/queue", "lock 4 |", ""},
        {{"/s/owners"}, "/s/owners/foo", "", "/s", "none", ""},
        {{"/s/owners", "/s/owners/foo"}, "/s/limit", "four", "/s", "none", ""},
        {{"/s/leases/_c_" UUID "-lease-0000000000"},
         "/s/leases/foo",
         "",
         "/s",
         "semaphore 0 |",
         "leases/foo "},
        {{"/s/leases/_c_" UUID "-lease-0000000000"},
         "/s/locks/foo",
         "",
         "/s",
         "semaphore 0 |",
         "locks/foo "},
        {{"/s/leases/foo"},
         "/s/locks/_c_" UUID "-lock-0000000004",
         "clave/1\nlimit=1\n",
         "/s",
         "semaphore | 4",
         "leases/foo "},
        {{"/s/_c_" UUID "-lock-0000000004"}, "/s/foo", "", "/s", "lock 4 |", ""},
        {{"/limit", "/owners"}, "/owners/foo", "", "/", "slot |", "owners/foo "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lock_model m;
        int64_t at = 1;
        model_open(&m);
        for (const char *const *path = rows[i].tree; *path; path++) {
            bool limit = strcmp(*path + strlen(*path) - 5, "limit") == 0;
            bool slot = strstr(*path, "slot-") != NULL;
            clave_stat stat = {.czxid = ++at, .ephemeral_owner = strstr(*path, "_c_") ? 20 : 0};
            clave__lock_model_node(&m, at, *path, &stat,
                                   limit  ? "\0\0\0\1"
                                   : slot ? "clave/1\n"
                                          : "",
                                   limit  ? 4
                                   : slot ? 8
                                          : 0);
        }
        clave__lock_model_loaded(&m);
        char before[64];
        snprintf(before, sizeof before, "%s", show_at(&m, rows[i].path));
        uint64_t etag = 0;
        const struct lock_queue *q = clave__lock_model_find(&m, rows[i].path);
        if (q)
            etag = clave__lock_etag(q);
        add_of(&m, 9, rows[i].node, strstr(rows[i].node, "_c_") ? 20 : 0, rows[i].data);
        assert_string_equal(show_at(&m, rows[i].path), rows[i].shown);
        assert_string_equal(strangers_at(&m, rows[i].path), rows[i].strangers);
        if (q && *rows[i].strangers)
            assert_true(clave__lock_etag(clave__lock_model_find(&m, rows[i].path)) != etag);
        clave__lock_model_gone(&m, 10, rows[i].node);
        assert_string_equal(show_at(&m, rows[i].path), before);
        for (const char *const *path = rows[i].tree; *path; path++)
            clave__lock_model_gone(&m, 11, *path);
        for (struct lock_queue *dirty; (dirty = clave__lock_model_take_dirty(&m));)
            clave__lock_model_settle(&m, dirty);
        assert_int_equal(m.queues.count, 0);
        clave__lock_model_fini(&m);
        assert_int_equal(m.bytes, 0);
    }
}

/* Every child of the leases takes room: the newest lease waits. */
TEST(a_stranger_among_leases_takes_room)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add_of(&m, 1, "/s/locks/_c_" UUID "-lock-0000000001", 20, "clave/1\nlimit=1\n");
    add_of(&m, 2, "/s/leases/_c_" UUID "-lease-0000000000", 20, "clave/1\nlimit=1\n");
    assert_string_equal(show_at(&m, "/s"), "semaphore 0 | 1");
    add_of(&m, 3, "/s/leases/foo", 0, "");
    assert_string_equal(show_at(&m, "/s"), "semaphore | 1");
    clave__lock_model_gone(&m, 4, "/s/leases/foo");
    assert_string_equal(show_at(&m, "/s"), "semaphore 0 | 1");
}

static void assert_shows(const struct lock_model *m, const char *path, const char *part)
{
    CLOSED_BY(clave__buf_fini) struct buf out;
    clave__buf_init(&out, &mem, SIZE_MAX);
    struct json j = clave__json_to(&out);
    clave__lock_json(&j, NULL, clave__lock_model_find(m, path), 0, 10);
    if (!strstr(clave__buf_text(&out), part))
        fail_msg("%s is not in %s", part, clave__buf_text(&out));
}

/* What anybody may have chosen as a name does not become a command of its own. */
TEST(a_stranger_is_shown_with_what_removes_it)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    clave_stat stat = {.czxid = 1};
    clave__lock_model_node(&m, 1, "/s/limit", &stat, "\0\0\0\1", 4);
    add_of(&m, 2, "/s/owners/a b;c'd", 0, "");
    assert_shows(&m, "/s",
                 "\"nstrangers\": 1, \"strangers\": [{\"node\": \"/s/owners/a b;c'd\", "
                 "\"detail\": \"this is not a slot, but counts as one; to remove it: "
                 "clave rm -r '/s/owners/a b;c'\\\\''d'\"}]");
    add_of(&m, 3, "/s/owners/slot-a", 0, "clave/1\n");
    clave__lock_model_node(&m, 4, "/s/limit", &stat, "ten", 3);
    assert_shows(&m, "/s", "\"limit\": null,");
    assert_shows(&m, "/s",
                 "\"detail\": \"the limit is no number, so nobody takes a slot; to set it: "
                 "clave slot limit /s N\"");
}

/* Its owner is the first of those who acquire, and there are more leases than the limit. */
TEST(a_lease_without_room_is_no_holder)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add_of(&m, 1, "/s/leases/_c_" UUID "-lease-0000000000", 20, "clave/1\nlimit=2\n");
    add_of(&m, 2, "/s/leases/_c_" UUID "-lease-0000000001", 21, "clave/1\nlimit=2\n");
    clave__lock_model_loaded(&m);
    add_of(&m, 3, "/s/locks/_c_" UUID "-lock-0000000005", 22, "");
    add_of(&m, 4, "/s/leases/_c_" UUID "-lease-0000000002", 22, "");
    assert_int_equal(clave__lock_limit(clave__lock_model_find(&m, "/s")), 2);
    assert_string_equal(show_at(&m, "/s"), "semaphore 0 1 | 5");
    told[0] = '\0';
    clave__lock_model_gone(&m, 9, "/s/leases/_c_" UUID "-lease-0000000000");
    assert_string_equal(show_at(&m, "/s"), "semaphore 1 2 | 5");
    assert_string_equal(told, "ended 0000000000@9 granted 0000000002@9 ");
}

/* Curator's leases say no limit: what tells that one holds is that its session has left the queue
 * of those who wait for room. A lease of kazoo's is made when there is room. */
TEST(without_a_limit_a_lease_holds_when_its_owner_queues_no_more)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add_of(&m, 1, "/s/leases/_c_" UUID "-lease-0000000000", 20, "");
    add_of(&m, 2, "/s/locks/_c_" UUID "-lock-0000000005", 21, "");
    clave__lock_model_loaded(&m);
    add_of(&m, 3, "/s/leases/_c_" UUID "-lease-0000000001", 21, "");
    assert_string_equal(show_at(&m, "/s"), "semaphore 0 | 5");
    clave__lock_model_gone(&m, 4, "/s/locks/_c_" UUID "-lock-0000000005");
    assert_string_equal(show_at(&m, "/s"), "semaphore 0 1 |");
    assert_string_equal(told, "queued 0000000001@3 ended 0000000005@4 granted 0000000001@4 ");
    add_of(&m, 5, "/k-__lock__", 0, "");
    add_of(&m, 6, "/k-__lock__/" HEX "__lock__0000000001", 30, "");
    add_of(&m, 7, "/k/" HEX, 30, "");
    assert_int_equal(clave__lock_model_find(&m, "/k")->nholders, 1);
}

static void add_mark(struct lock_model *m, int64_t at, const char *path, int token)
{
    char data[64];
    snprintf(data, sizeof data, "clave/1\nstate=held\nid=x\ntoken=%d\ntook=0\n", token);
    add_of(m, at, path, 0, data);
}

/* The first place does not hold while there is the mark of a holder that was lost, if it says that
 * it has a lock delay; a candidate's node does not say so. */
TEST(within_its_lock_delay_the_first_place_does_not_hold)
{
    static const struct {
        const char *name, *data, *then;
        int mark; /* 0: none */
    } rows[] = {
        {"-lock-", "clave/1\ndelays=1\n", "lock | 1 2", 9},
        {"-lock-", "clave/1\nhost=a\ndelays=1\ngranted=ctime\n", "lock | 1 2", 9},
        {"-lock-", "clave/1\ndelays=1\n", "lock 1 | 2", 20},
        {"-lock-", "clave/1\ndelays=1\n", "lock 1 | 2", 0},
        {"-lock-", "clave/1\ndelays=0\n", "lock 1 | 2", 9},
        {"-lock-", "clave/1\nname=delays%3D1\n", "lock 1 | 2", 9},
        {"-lock-", "delays=1\n", "lock 1 | 2", 9},
        {"-lock-", "", "lock 1 | 2", 9},
        {"-__WRIT__", "clave/1\ndelays=1\n", "rw | 1 2", 9},
        {"-__READ__", "clave/1\ndelays=1\n", "rw 1 2 |", 9},
        {"-latch-", "clave/1\ndelays=1\n", "election 1 | 2", 9},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        const size_t k = i / 2;
        CLOSED_BY(clave__lock_model_fini) struct lock_model m;
        char path[2][96];
        model_open(&m);
        for (int n = 0; n < 2; n++)
            snprintf(path[n], sizeof path[n], "/a/_c_" UUID "%s%010d", rows[k].name, n + 1);
        if (i % 2 && rows[k].mark)
            add_mark(&m, 1, "/a-held", rows[k].mark);
        add_of(&m, 20, path[0], 1, rows[k].data);
        add_of(&m, 21, path[1], 2, "");
        if (!(i % 2) && rows[k].mark)
            add_mark(&m, 1, "/a-held", rows[k].mark);
        assert_string_equal(show_at(&m, "/a"), rows[k].then);
    }
}

/* The grant is told, and dated, when the delay is over: the mark is its own then. */
TEST(a_grant_is_told_after_the_lock_delay)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add_mark(&m, 1, "/a-held", 5);
    clave__lock_model_loaded(&m);
    assert_null(clave__lock_model_find(&m, "/a"));
    add_of(&m, 20, "/a/_c_" UUID "-lock-0000000001", 1, "clave/1\ndelays=1\n");
    clave__lock_model_gone(&m, 25, "/a-held");
    add_mark(&m, 25, "/a-held", 20);
    assert_string_equal(told, "queued 0000000001@20 granted 0000000001@25 ");
    clave__lock_model_gone(&m, 30, "/a-held");
    clave__lock_model_gone(&m, 30, "/a/_c_" UUID "-lock-0000000001");
    for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&m));)
        clave__lock_model_settle(&m, q);
    assert_int_equal(m.queues.count, 0);
}

TEST(a_downgrade_holds_with_both_nodes)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add(&m, 1, "/r/_c_" UUID "-__WRIT__0000000001");
    add(&m, 2, "/r/_c_" UUID "-__READ__0000000002");
    add(&m, 3, "/r/_c_" UUID "-__READ__0000000001");
    assert_string_equal(show_at(&m, "/r"), "rw 1 1 | 2");
    clave__lock_model_gone(&m, 4, "/r/_c_" UUID "-__WRIT__0000000001");
    assert_string_equal(show_at(&m, "/r"), "rw 1 2 |");
}

/* Its name says where it stands; whose it is, and since when, is not known. */
TEST(a_place_that_may_not_be_read_holds_all_the_same)
{
    static const clave_stat unknown = {0};
    const char *holder = "/a/_c_" UUID "-lock-0000000001",
               *waiter = "/a/_c_" UUID "-lock-0000000003";
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add(&m, 5, "/a/_c_" UUID "-lock-0000000002");
    clave__lock_model_node(&m, 7, holder, &unknown, NULL, 0);
    clave__lock_model_loaded(&m);
    assert_string_equal(show_at(&m, "/a"), "lock 1 | 2");
    struct lock_node *p = clave__lock_holder_after(clave__lock_model_find(&m, "/a"), NULL);
    assert_true(p->unreadable);
    assert_int_equal(p->token, 0);
    enum lock_since how;
    assert_int_equal(clave__lock_held_since(p, &how), -1);
    assert_null(p->session);
    clave__lock_model_node(&m, 9, waiter, &unknown, NULL, 0);
    clave__lock_model_gone(&m, 11, holder);
    clave__lock_model_gone(&m, 13, "/a/_c_" UUID "-lock-0000000002");
    assert_string_equal(told, "queued 0000000003@9 ended 0000000001@11 granted 0000000002@11 "
                              "ended 0000000002@13 granted 0000000003@13 ");
    p = clave__lock_holder_after(clave__lock_model_find(&m, "/a"), NULL);
    assert_int_equal(clave__lock_held_since(p, &how), 13);
    assert_int_equal(how, LOCK_SINCE_SEEN);
}

TEST(a_stock_kazoo_lock_after_others_is_outside)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add(&m, 1, "/a/_c_" UUID "-lock-0000000001");
    add(&m, 2, "/a/" HEX "__lock__0000000002");
    add(&m, 3, "/a/_c_" UUID "-lock-0000000003");
    const struct lock_queue *q = clave__lock_model_find(&m, "/a");
    assert_string_equal(queue_text(q), "lock 1 | 2 3");
    struct lock_node *kazoo = clave__lock_waiter_after(q, NULL);
    assert_true(clave__lock_is_outside(kazoo));
    assert_false(clave__lock_is_outside(clave__lock_waiter_after(q, kazoo)));
}

/* Each row: three nodes of a queue, and whether one of them may hold beside its holder. */
TEST(a_stock_kazoo_lock_behind_others_may_hold_too)
{
    static const struct {
        const char *names[3];
        bool outside;
    } rows[] = {
        {{HEX "__lock__", "_c_" UUID "-lock-", "_c_" UUID "-lock-"}, false},
        {{"_c_" UUID "-lock-", HEX "__lock__", "_c_" UUID "-lock-"}, true},
        {{HEX "__lock__", "_c_" UUID "-lock-", HEX "__lock__"}, true},
        {{"_c_" UUID "-lock-", HEX "-lock-", HEX "-lock-"}, false}, /* with its name changed */
        {{HEX "__lock__", HEX "__lock__", HEX "__lock__"}, false},
        {{"_c_" UUID "-__WRIT__", HEX "__rlock__", HEX "__rlock__"}, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLOSED_BY(clave__lock_model_fini) struct lock_model m;
        model_open(&m);
        for (int k = 0; k < 3; k++) {
            char path[96];
            snprintf(path, sizeof path, "/a/%s000000000%d", rows[i].names[k], k);
            add_of(&m, k + 1, path, 7 + k, "");
        }
        assert_int_equal(clave__lock_has_outside(clave__lock_model_find(&m, "/a")),
                         rows[i].outside);
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

TEST(changes_are_told_once_loaded)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    add(&m, 1, "/a/_c_" UUID "-lock-0000000001");
    clave__lock_model_loaded(&m);
    struct lock_node *first = clave__lock_holder_after(clave__lock_model_find(&m, "/a"), NULL);
    assert_true(first->held_before);
    assert_int_equal(first->held, 1);
    add(&m, 2, "/a/_c_" UUID "-lock-0000000002");
    add(&m, 3, "/a/_c_" UUID "-lock-0000000003");
    clave__lock_model_gone(&m, 5, "/a/_c_" UUID "-lock-0000000001");
    clave_stat written = {.czxid = 2, .ctime = 2, .ephemeral_owner = 2, .version = 1};
    clave__lock_model_node(&m, 6, "/a/_c_" UUID "-lock-0000000002", &written, "x", 1);
    written.version = 2;
    clave__lock_model_node(&m, 7, "/a/_c_" UUID "-lock-0000000002", &written, "clave/1\nasked=1\n",
                           16);
    written.version = 3;
    clave__lock_model_node(&m, 8, "/a/_c_" UUID "-lock-0000000002", &written, "__REVOKE__", 10);
    clave__lock_model_gone(&m, 8, "/a/_c_" UUID "-lock-0000000009");
    assert_string_equal(told, "queued 0000000002@2 queued 0000000003@3 ended 0000000001@5 "
                              "granted 0000000002@5 asked 0000000002@7 ");
    struct lock_node *second = clave__lock_holder_after(clave__lock_model_find(&m, "/a"), NULL);
    assert_false(second->held_before);
    assert_int_equal(second->held, 5);
}

/* Curator's request replaces what the node said; a candidate's node is written as it was. */
TEST(a_place_that_is_asked_for_keeps_who_it_is)
{
    static const char id[] = "clave/1\nhost=web1\n";
    static const struct {
        const char *path, *first, *then;
    } rows[] = {
        {"/a/_c_" UUID "-lock-0000000001", id, "__REVOKE__"},
        {"/a/_c_" UUID "-lock-0000000001", "10.0.0.1", "__REVOKE__"},
        {"/a/_c_" UUID "-lock-0000000001", id, "clave/1\nhost=web1\nasked=1\n"},
        {"/s/leases/_c_" UUID "-lease-0000000001", id, "__REVOKE__"},
        {"/e/_c_" UUID "-latch-0000000001", "boss", "boss"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLOSED_BY(clave__lock_model_fini) struct lock_model m;
        model_open(&m);
        clave__lock_model_loaded(&m);
        add_of(&m, 1, rows[i].path, 1, rows[i].first);
        struct lock_queue *q = clave__lock_model_after(&m, "", false);
        struct lock_node *p = clave__lock_holder_after(q, NULL);
        assert_false(p->asked);
        clave__lock_model_written(&m, 2, rows[i].path, 0, "older", 5);
        clave__lock_model_written(&m, 3, rows[i].path, 1, rows[i].then, strlen(rows[i].then));
        clave__lock_model_written(&m, 4, "/a/_c_" UUID "-lock-0000000009", 1, "", 0);
        assert_true(p->asked);
        assert_memory_equal(p->data, rows[i].first, strlen(rows[i].first));
        assert_string_equal(told, "queued 0000000001@1 granted 0000000001@1 asked 0000000001@3 ");
    }
}

TEST(a_node_that_was_made_again_is_another)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    clave__lock_model_loaded(&m);
    add(&m, 1, "/a/_c_" UUID "-lock-0000000001");
    add(&m, 2, "/a/_c_" UUID "-lock-0000000001");
    assert_string_equal(told, "queued 0000000001@1 granted 0000000001@1 ended 0000000001@2 "
                              "queued 0000000001@2 granted 0000000001@2 ");
}

TEST(a_lock_that_vanished_is_given_once_more)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    clave__lock_model_loaded(&m);
    add(&m, 1, "/a/_c_" UUID "-lock-0000000001");
    struct lock_queue *q = clave__lock_model_take_dirty(&m);
    assert_string_equal(q->path, "/a");
    clave__lock_model_settle(&m, q);
    assert_null(clave__lock_model_take_dirty(&m));
    clave__lock_model_gone(&m, 2, "/a/_c_" UUID "-lock-0000000001");
    assert_null(clave__lock_model_find(&m, "/a"));
    q = clave__lock_model_take_dirty(&m);
    assert_int_equal(q->places.count, 0);
    clave__lock_model_settle(&m, q);
    assert_int_equal(m.queues.count, 0);
}

TEST(what_is_beyond_the_bound_is_counted)
{
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    model_open(&m);
    m.max_bytes = 2000;
    for (int i = 0; i < 100; i++) {
        char path[64];
        snprintf(path, sizeof path, "/a/lock-%010d", i);
        add(&m, i + 1, path);
    }
    assert_in_range(m.bytes, 1000, 2300);
    assert_int_equal(m.nplaces + m.left_out, 100);
    assert_true(m.left_out > 0);
    clave__lock_model_clear(&m);
    assert_int_equal(m.left_out, 0);
    assert_int_equal(m.bytes, 0);
}

TEST(without_memory_nodes_are_left_out_and_nothing_leaks)
{
    for (size_t failing = 1; failing < 12; failing++) {
        struct failmem fail;
        struct lock_model m;
        failmem_init(&fail);
        assert_int_equal(clave__lock_model_init(&m, &fail.mem, 1, 0), CLAVE_OK);
        failmem_arm(&fail, failing, 1);
        add_of(&m, 1, "/s/leases/_c_" UUID "-lease-0000000001", 5, "clave/1\nlimit=2\n");
        add_of(&m, 2, "/s/locks/_c_" UUID "-lock-0000000001", 6, "clave/1\nhost=a\n");
        assert_int_equal(m.nplaces + m.left_out, 2);
        clave__lock_model_fini(&m);
        assert_int_equal(m.bytes, 0);
        assert_int_equal(fail.live, 0);
    }
}

/* ---- cost ------------------------------------------------------------------------------------ */

/* 10 000 in one queue: what a place costs does not grow with the queue. */
TEST(a_long_queue_is_cheap)
{
    enum { PLACES = 10000 };
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    char path[64];
    model_open(&m);
    m.changed = NULL;
    clave__lock_model_loaded(&m);
    for (int round = 0; round < 2; round++) {
        const char *word = round ? "__READ__" : "lock-";
        for (int i = 0; i < PLACES; i++) {
            snprintf(path, sizeof path, "/a/%s%010d", word, i);
            add(&m, i + 1, path);
        }
        assert_int_equal(clave__lock_model_find(&m, "/a")->nholders, round ? PLACES : 1);
        for (int i = 0; i < PLACES; i++) {
            snprintf(path, sizeof path, "/a/%s%010d", word, i);
            clave__lock_model_gone(&m, i + 1, path);
        }
        assert_null(clave__lock_model_find(&m, "/a"));
    }
}

static ordered_compare *real_compare;
static size_t compared;

static int count_compare(const void *key, const struct ordered_node *node)
{
    compared++;
    return real_compare(key, node);
}

/* A program that holds many locks and takes one more: it waits for none, so that none of those it
 * has is looked at. */
TEST(one_more_lock_of_a_session_with_many_is_cheap)
{
    enum { LOCKS = 2000, MOST_COMPARED = 500 };
    CLOSED_BY(clave__lock_model_fini) struct lock_model m;
    char path[64];
    model_open(&m);
    m.changed = NULL;
    clave__lock_model_loaded(&m);
    real_compare = m.queues.compare;
    m.queues.compare = count_compare;
    for (int i = 0; i < LOCKS; i++) {
        snprintf(path, sizeof path, "/many/l%d/lock-0000000000", i);
        compared = 0;
        add_of(&m, i + 1, path, 7, "");
    }
    assert_in_range(compared, 1, MOST_COMPARED);
    assert_string_equal(show_at(&m, "/many/l0"), "lock 0 |");
}
