/* server_watch_test.c - which watcher gets which event, when, and how often. */
#include "lib/memserver.h"
#include "lib/unit.h"

/* One who watches and one who writes. */
struct two_conns {
    struct memserver d;
    struct memserver_conn watcher, writer;
};

static void open_pair_with(struct two_conns *p, const struct server_options *o)
{
    memserver_open(&p->d, o);
    memserver_connect(&p->watcher, &p->d, 40000);
    memserver_connect(&p->writer, &p->d, 40000);
}

static void open_pair(struct two_conns *p)
{
    open_pair_with(p, NULL);
}

static void close_pair(struct two_conns *p)
{
    memserver_hang_up(&p->watcher);
    memserver_hang_up(&p->writer);
    assert_int_equal(memserver_stats(&p->d).watches, 0); /* they go with their connection */
    memserver_close(&p->d);
}

static clave_err set_acl(struct memserver_conn *c, const char *path, int32_t perms)
{
    union wire_body b = {.set_acl = {clave__jbytes(path), {0, NULL, 0}, -1}};
    b.set_acl.acl = memserver_acl(perms, "world", "anyone");
    return memserver_call(c, OP_SET_ACL, &b, NULL);
}

/* "create /a", "set /a", "delete /a", "acl /a"; several are separated by ", ". */
static void act(struct memserver_conn *c, const char *steps)
{
    char verb[16], path[64];
    for (const char *at = steps; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 2 : NULL) {
        clave_err err = CLAVE_EBADARGS;
        if (sscanf(at, "%15s %63[^,]", verb, path) != 2)
            fail_msg("no step: %s", at);
        if (strcmp(verb, "create") == 0)
            err = memserver_create(c, path, "", MODE_PERSISTENT);
        else if (strcmp(verb, "set") == 0)
            err = memserver_set(c, path, "new", -1);
        else if (strcmp(verb, "delete") == 0)
            err = memserver_delete(c, path, -1);
        else if (strcmp(verb, "acl") == 0)
            err = set_acl(c, path, PERM_ALL);
        if (err != CLAVE_OK)
            fail_msg("%s %s: %s", verb, path, clave_err_name(err));
    }
}

static void add_watch(struct memserver_conn *c, const char *path, int32_t mode)
{
    struct wire_reply r;
    union wire_body b = {.typed = {clave__jbytes(path), mode}};
    assert_int_equal(memserver_call(c, OP_ADD_WATCH, &b, &r), CLAVE_OK);
    assert_int_equal(r.number, 0);
}

/* ---- one-shot watches ------------------------------------------------------------------------ */

TEST(one_watch_one_event)
{
    static const struct {
        const char *before;
        int32_t op;
        const char *path;
        const char *steps;
        const char *events;
    } cases[] = {
        {"", OP_EXISTS, "/n", "create /n", "CREATED /n"},
        {"", OP_EXISTS, "/n", "create /n, set /n, delete /n", "CREATED /n"},
        {"create /n", OP_EXISTS, "/n", "set /n", "DATA /n"},
        {"create /n", OP_EXISTS, "/n", "delete /n", "DELETED /n"},
        {"create /n", OP_EXISTS, "/n", "create /n/c, delete /n/c, acl /n", ""},
        {"create /n", OP_GET_DATA, "/n", "set /n, set /n", "DATA /n"},
        {"create /n", OP_GET_DATA, "/n", "delete /n, create /n, set /n", "DELETED /n"},
        {"create /n", OP_GET_DATA, "/n", "create /n/c, set /n/c, delete /n/c, acl /n", ""},
        {"create /n", OP_GET_CHILDREN, "/n", "create /n/c, create /n/d", "CHILDREN /n"},
        {"create /n, create /n/c", OP_GET_CHILDREN, "/n", "delete /n/c", "CHILDREN /n"},
        {"create /n", OP_GET_CHILDREN, "/n", "delete /n, create /n", "DELETED /n"},
        {"create /n, create /n/c", OP_GET_CHILDREN, "/n",
         "set /n, set /n/c, create /n/c/d, delete /n/c/d, acl /n/c", ""},
        {"create /n", OP_GET_CHILDREN2, "/n", "create /n/c", "CHILDREN /n"},
        {"create /n", OP_GET_CHILDREN2, "/n", "delete /n", "DELETED /n"},
        {"", OP_GET_CHILDREN, "/", "create /n, delete /n", "CHILDREN /"},
        {"", OP_GET_DATA, "/", "create /n, set /", "DATA /"},
        {"", OP_EXISTS, "", "set /", "DATA /"}, /* the root by its other name */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(close_pair) struct two_conns p;
        open_pair(&p);
        act(&p.writer, cases[i].before);
        memserver_watch(&p.watcher, cases[i].op, cases[i].path);
        assert_int_equal(memserver_stats(&p.d).watches, 1);
        act(&p.writer, cases[i].steps);
        const char *events = memserver_events(&p.watcher);
        if (strcmp(events, cases[i].events) != 0)
            fail_msg("case %zu: '%s', not '%s'", i, events, cases[i].events);
        assert_int_equal(memserver_stats(&p.d).watches, *cases[i].events ? 0 : 1);
    }
}

TEST(what_is_not_there_is_watched_by_exists_only)
{
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair(&p);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_DATA, "/n"), CLAVE_ENONODE);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_CHILDREN, "/n"), CLAVE_ENONODE);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_CHILDREN2, "/n"), CLAVE_ENONODE);
    assert_int_equal(memserver_stats(&p.d).watches, 0);
    assert_int_equal(memserver_watch(&p.watcher, OP_EXISTS, "/n"), CLAVE_ENONODE);
    assert_int_equal(memserver_stats(&p.d).watches, 1);
}

/* Two requests on one path are one watch; data and exists share a table, the child's is another;
 * and a client with both is told once that the node is gone. */
TEST(one_change_is_told_once)
{
    CLOSED_BY(close_pair) struct two_conns p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn other;
    open_pair(&p);
    memserver_connect(&other, &p.d, 40000);
    act(&p.writer, "create /n");
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_DATA, "/n"), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_DATA, "/n"), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_EXISTS, "/n"), CLAVE_OK);
    assert_int_equal(memserver_stats(&p.d).watches, 1);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_CHILDREN, "/n"), CLAVE_OK);
    assert_int_equal(memserver_stats(&p.d).watches, 2);
    assert_int_equal(memserver_watch(&other, OP_EXISTS, "/n"), CLAVE_OK);
    act(&p.writer, "delete /n");
    assert_string_equal(memserver_events(&p.watcher), "DELETED /n");
    assert_string_equal(memserver_events(&other), "DELETED /n");
    assert_int_equal(memserver_stats(&p.d).watches, 0);
}

/* As the client's library sees it: nothing that depends on a change may come before its event. */
TEST(an_event_comes_before_the_reply)
{
    CLOSED_BY(close_pair) struct two_conns p;
    struct wire_reply_header h;
    struct jreader r;
    union wire_body create = memserver_create_body("/n", "", MODE_PERSISTENT);
    open_pair(&p);
    assert_int_equal(memserver_watch(&p.writer, OP_EXISTS, "/n"), CLAVE_ENONODE);
    assert_int_equal(memserver_watch(&p.watcher, OP_EXISTS, "/n"), CLAVE_ENONODE);
    int32_t xid = memserver_request(&p.writer, OP_CREATE, &create);
    int64_t zxid = memserver_stats(&p.d).last_zxid;
    assert_true(memserver_next(&p.writer, &h, &r));
    assert_int_equal(h.xid, XID_EVENT);
    assert_true(h.zxid == zxid && h.err == 0);
    struct wire_event e = clave__wire_get_event(&r);
    assert_int_equal(e.type, EVENT_CREATED);
    assert_int_equal(e.state, STATE_SYNC_CONNECTED);
    assert_true(clave__jbytes_eq(e.path, clave__jbytes("/n")));
    assert_true(memserver_next(&p.writer, &h, &r));
    assert_int_equal(h.xid, xid);
    assert_true(h.zxid == zxid);
    assert_string_equal(memserver_events(&p.watcher), "CREATED /n");
}

/* A read with a watch and the write after it, in one piece: the watch is there in time. */
TEST(a_watch_is_set_when_its_read_is_done)
{
    static const uint8_t both[] = {
        0, 0, 0, 15, 0, 0, 0, 1, 0, 0, 0, 4, 0,   0,   0, 2, '/', 'n', 1,    0,    0,    0,    22,
        0, 0, 0, 2,  0, 0, 0, 5, 0, 0, 0, 2, '/', 'n', 0, 0, 0,   0,   0xff, 0xff, 0xff, 0xff,
    };
    CLOSED_BY(close_pair) struct two_conns p;
    struct wire_reply_header h;
    struct jreader r;
    open_pair(&p);
    act(&p.writer, "create /n");
    memserver_send(&p.watcher, both, sizeof both);
    assert_true(memserver_next(&p.watcher, &h, &r));
    assert_int_equal(h.xid, 1);
    assert_string_equal(memserver_events(&p.watcher), "DATA /n");
    assert_true(memserver_next(&p.watcher, &h, &r));
    assert_int_equal(h.xid, 2);
}

TEST(a_failed_write_tells_nobody)
{
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair(&p);
    act(&p.writer, "create /n, create /n/c");
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_DATA, "/n"), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_CHILDREN, "/n"), CLAVE_OK);
    assert_int_equal(memserver_set(&p.writer, "/n", "", 7), CLAVE_EBADVERSION);
    assert_int_equal(memserver_delete(&p.writer, "/n", -1), CLAVE_ENOTEMPTY);
    assert_int_equal(memserver_create(&p.writer, "/n/c", "", MODE_PERSISTENT), CLAVE_ENODEEXISTS);
    assert_string_equal(memserver_events(&p.watcher), "");
    assert_int_equal(memserver_stats(&p.d).watches, 2);
}

/* A closing session's nodes: each its own event, the parent's watch once. */
TEST(the_end_of_a_session_is_told)
{
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair(&p);
    act(&p.writer, "create /n");
    assert_int_equal(memserver_create(&p.writer, "/n/a", "", MODE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(memserver_create(&p.writer, "/n/b", "", MODE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_EXISTS, "/n/a"), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_EXISTS, "/n/b"), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_CHILDREN, "/n"), CLAVE_OK);
    memserver_request(&p.writer, OP_CLOSE_SESSION, NULL);
    assert_string_equal(memserver_events(&p.watcher), "DELETED /n/a, CHILDREN /n, DELETED /n/b");
}

TEST(the_sweeping_of_a_container_is_told)
{
    struct server_options o = {.container_check_ms = 1000};
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair_with(&p, &o);
    assert_int_equal(memserver_create(&p.writer, "/box", "", MODE_CONTAINER), CLAVE_OK);
    act(&p.writer, "create /box/x, delete /box/x");
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_DATA, "/box"), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_CHILDREN, "/"), CLAVE_OK);
    memserver_advance(&p.d, 1000);
    assert_string_equal(memserver_events(&p.watcher), "DELETED /box, CHILDREN /");
}

/* The session goes on; what its connection watched is forgotten. */
TEST(watches_go_with_the_connection)
{
    CLOSED_BY(close_pair) struct two_conns p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn again;
    open_pair(&p);
    act(&p.writer, "create /n");
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_DATA, "/n"), CLAVE_OK);
    add_watch(&p.watcher, "/n", ADD_WATCH_PERSISTENT_RECURSIVE);
    assert_int_equal(memserver_stats(&p.d).watches, 2);
    assert_true(memserver_resume(&again, &p.watcher));
    assert_int_equal(memserver_stats(&p.d).watches, 0);
    act(&p.writer, "set /n");
    assert_string_equal(memserver_events(&again), "");
}

/* ---- setWatches ------------------------------------------------------------------------------ */

enum { LISTS = 5 }; /* data, exist, child, persistent, recursive */

/* A vector of the paths in a text, separated by spaces; at most one buffer's worth. */
static struct jvec paths_in(struct buf *b, const char *text)
{
    size_t begin = clave__buf_len(b);
    struct jwriter w = clave__jwriter(b);
    struct jvec v = {0, NULL, 0};
    while (*text) {
        size_t n = strcspn(text, " ");
        clave__jput_bytes(&w, clave__jbytes_n(text, n));
        v.count++;
        text += n + (text[n] == ' ' ? 1 : 0);
    }
    assert_int_equal(w.err, CLAVE_OK);
    v.p = b->data + begin;
    v.n = clave__buf_len(b) - begin;
    return v;
}

/* Asks, and gives the events that came in front of the answer. */
static const char *set_watches(struct memserver_conn *c, int32_t op, int64_t since,
                               const char *const lists[LISTS])
{
    union wire_body body = {.watches = {.relative_zxid = since}};
    struct jvec *to[LISTS] = {&body.watches.data, &body.watches.exist, &body.watches.child,
                              &body.watches.persistent, &body.watches.persistent_recursive};
    struct wire_reply_header h;
    struct jreader r;
    struct buf b;
    clave__buf_init(&b, &c->d->mem, 4096);
    assert_int_equal(clave__buf_reserve(&b, 2048), CLAVE_OK); /* it does not move */
    for (size_t i = 0; i < LISTS; i++)
        *to[i] = paths_in(&b, lists[i] ? lists[i] : "");
    memserver_request(c, op, &body);
    clave__buf_fini(&b);
    const char *events = memserver_events(c);
    assert_true(memserver_next(c, &h, &r));
    assert_int_equal(h.xid, XID_SET_WATCHES);
    assert_int_equal(h.err, CLAVE_OK);
    assert_int_equal(h.zxid, memserver_stats(c->d).last_zxid);
    assert_int_equal(r.n, 0);
    return events;
}

/* Missed events are sent at once, all other watches are set. */
/* However many it had, no turn drops more than a piece of them, and none is sent meanwhile. */
TEST(very_many_go_in_pieces)
{
    enum { MANY = 3000, PIECE = 500 };
    struct two_conns p;
    char path[32];
    open_pair(&p);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/none-%d", i);
        memserver_watch(&p.watcher, OP_EXISTS, path);
    }
    memserver_watch(&p.writer, OP_EXISTS, "/none-2999");
    memserver_hang_up(&p.watcher);
    size_t left = memserver_stats(&p.d).watches, turns = 0;
    assert_true(left > MANY - PIECE);
    assert_int_equal(memserver_stats(&p.d).connections, 1);
    assert_int_equal(memserver_create(&p.writer, "/none-2998", "", 0), CLAVE_OK);
    for (left = memserver_stats(&p.d).watches; left > 1; turns++) {
        assert_int_equal(clave__server_deadline(p.d.s), p.d.now + 1);
        clave__server_tick(p.d.s, ++p.d.now, memserver_wall(&p.d));
        size_t now = memserver_stats(&p.d).watches;
        assert_true(now < left && left - now <= PIECE);
        left = now;
    }
    assert_int_equal(turns, MANY / PIECE);
    close_pair(&p);
    /* The server may end before they are gone. */
    open_pair(&p);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/none-%d", i);
        memserver_watch(&p.watcher, OP_EXISTS, path);
    }
    memserver_hang_up(&p.watcher);
    memserver_hang_up(&p.writer);
    memserver_close(&p.d);
}

TEST(catching_up)
{
    static const struct {
        const char *before, *missed; /* done before and after the zxid the client has seen */
        const char *lists[LISTS];
        const char *events;
        size_t armed;
    } cases[] = {
        {"create /n", "", {"/n", NULL, "/n"}, "", 2},
        {"create /n", "set /n", {"/n"}, "DATA /n", 0},
        {"create /n", "set /n", {NULL, NULL, "/n"}, "", 1},
        {"create /n", "create /n/c", {"/n"}, "", 1},
        {"create /n", "create /n/c", {NULL, NULL, "/n"}, "CHILDREN /n", 0},
        {"create /n, create /n/c", "delete /n/c", {NULL, NULL, "/n"}, "CHILDREN /n", 0},
        {"create /n, create /n/c", "set /n/c", {NULL, NULL, "/n"}, "", 1},
        {"create /n", "delete /n", {"/n"}, "DELETED /n", 0},
        {"create /n", "delete /n", {NULL, NULL, "/n"}, "DELETED /n", 0},
        {"create /n", "delete /n, create /n", {"/n"}, "DATA /n", 0},
        {"", "", {NULL, "/n"}, "", 1},
        {"", "create /n", {NULL, "/n"}, "CREATED /n", 0},
        {"create /n", "", {NULL, "/n"}, "CREATED /n", 0}, /* also when it was there before */
        {"create /n", "delete /n", {NULL, "/n"}, "", 1},
        {"create /a, create /b, create /c",
         "set /b, delete /a, create /c/x",
         {"/b /a /c", "/c /d", "/c"},
         "DATA /b, DELETED /a, CREATED /c, CHILDREN /c",
         2},
        {"", "", {"any-string"}, "DELETED any-string", 0},
        {"", "set /", {"/", NULL, "/"}, "DATA /", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int32_t op = OP_SET_WATCHES; op <= OP_SET_WATCHES2; op += 4) {
            CLOSED_BY(close_pair) struct two_conns p;
            open_pair(&p);
            act(&p.writer, cases[i].before);
            int64_t seen = memserver_stats(&p.d).last_zxid;
            act(&p.writer, cases[i].missed);
            const char *events = set_watches(&p.watcher, op, seen, cases[i].lists);
            if (strcmp(events, cases[i].events) != 0)
                fail_msg("case %zu: '%s', not '%s'", i, events, cases[i].events);
            assert_int_equal(memserver_stats(&p.d).watches, cases[i].armed);
        }
    }
}

/* What was caught up with bears no zxid of its own. */
TEST(caught_up_events_bear_no_zxid)
{
    CLOSED_BY(close_pair) struct two_conns p;
    struct wire_reply_header h;
    struct jreader r;
    union wire_body b = {.watches = {.relative_zxid = 1}};
    struct buf room;
    open_pair(&p);
    clave__buf_init(&room, &p.d.mem, 256);
    b.watches.data = paths_in(&room, "/gone");
    memserver_request(&p.watcher, OP_SET_WATCHES, &b);
    clave__buf_fini(&room);
    assert_true(memserver_next(&p.watcher, &h, &r));
    assert_int_equal(h.xid, XID_EVENT);
    assert_int_equal(h.zxid, -1);
}

TEST(armed_again_they_work)
{
    static const char *const lists[LISTS] = {"/n", "/new", "/n", "/p", "/r"};
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair(&p);
    act(&p.writer, "create /n, create /p, create /r");
    int64_t seen = memserver_stats(&p.d).last_zxid;
    act(&p.writer, "set /p, set /r"); /* persistent ones are not told of the past */
    assert_string_equal(set_watches(&p.watcher, OP_SET_WATCHES2, seen, lists), "");
    assert_int_equal(memserver_stats(&p.d).watches, 5);
    act(&p.writer, "set /n, create /new, create /n/c, create /p/c, create /r/c, set /r/c");
    assert_string_equal(memserver_events(&p.watcher),
                        "DATA /n, CREATED /new, CHILDREN /n, CHILDREN /p, CREATED /r/c, DATA /r/c");
    assert_int_equal(memserver_stats(&p.d).watches, 2);
}

/* setWatches has three lists: nothing after them is read. */
TEST(the_older_request_has_three_lists)
{
    static const char *const lists[LISTS] = {"/n", NULL, NULL, "/n", "/n"};
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair(&p);
    act(&p.writer, "create /n");
    assert_string_equal(set_watches(&p.watcher, OP_SET_WATCHES, 1000, lists), "");
    assert_int_equal(memserver_stats(&p.d).watches, 1);
}

TEST(a_list_with_a_null_path)
{
    static const uint8_t null_path[] = {0xff, 0xff, 0xff, 0xff};
    CLOSED_BY(close_pair) struct two_conns p;
    union wire_body b = {.watches = {.relative_zxid = 1, .data = {1, null_path, 4}}};
    open_pair(&p);
    for (int32_t op = OP_SET_WATCHES; op <= OP_SET_WATCHES2; op += 4) {
        struct wire_reply_header h;
        struct jreader r;
        memserver_request(&p.watcher, op, &b);
        assert_true(memserver_next(&p.watcher, &h, &r));
        assert_int_equal(h.err, CLAVE_EMARSHALLING);
    }
    assert_int_equal(memserver_stats(&p.d).watches, 0);
}

/* ---- watches that stay ----------------------------------------------------------------------- */

TEST(persistent_watches)
{
    static const struct {
        int32_t mode;
        const char *path, *steps, *events;
    } cases[] = {
        {ADD_WATCH_PERSISTENT, "/n", "create /n, set /n, create /n/c, set /n/c, delete /n/c",
         "CREATED /n, DATA /n, CHILDREN /n, CHILDREN /n"},
        {ADD_WATCH_PERSISTENT, "/n", "create /n, delete /n, create /n",
         "CREATED /n, DELETED /n, CREATED /n"},
        {ADD_WATCH_PERSISTENT, "/n", "create /n, create /n/c, create /n/c/d",
         "CREATED /n, CHILDREN /n"},
        {ADD_WATCH_PERSISTENT_RECURSIVE, "/n", "create /n, set /n, create /n/c, set /n/c",
         "CREATED /n, DATA /n, CREATED /n/c, DATA /n/c"},
        {ADD_WATCH_PERSISTENT_RECURSIVE, "/n",
         "create /n, create /n/c, create /n/c/d, delete /n/c/d, delete /n/c, delete /n",
         "CREATED /n, CREATED /n/c, CREATED /n/c/d, DELETED /n/c/d, DELETED /n/c, DELETED /n"},
        {ADD_WATCH_PERSISTENT_RECURSIVE, "/n", "create /nn, create /x", ""},
        {ADD_WATCH_PERSISTENT_RECURSIVE, "/", "create /n, set /, create /n/c",
         "CREATED /n, DATA /, CREATED /n/c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(close_pair) struct two_conns p;
        open_pair(&p);
        add_watch(&p.watcher, cases[i].path, cases[i].mode);
        act(&p.writer, cases[i].steps);
        assert_string_equal(memserver_events(&p.watcher), cases[i].events);
        assert_int_equal(memserver_stats(&p.d).watches, 1);
    }
}

/* As from 3.9 on: each mode has its own mark on a path, but each event is still sent once, and
 * a one-shot watch does not take a persistent one away. */
TEST(the_modes_stand_side_by_side)
{
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair(&p);
    act(&p.writer, "create /n");
    add_watch(&p.watcher, "/n", ADD_WATCH_PERSISTENT);
    add_watch(&p.watcher, "/n", ADD_WATCH_PERSISTENT_RECURSIVE);
    add_watch(&p.watcher, "/", ADD_WATCH_PERSISTENT_RECURSIVE);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_DATA, "/n"), CLAVE_OK);
    assert_int_equal(memserver_watch(&p.watcher, OP_GET_CHILDREN, "/n"), CLAVE_OK);
    assert_int_equal(memserver_stats(&p.d).watches, 5);
    act(&p.writer, "set /n, set /n, create /n/c, create /n/d, set /n/d");
    assert_string_equal(memserver_events(&p.watcher),
                        "DATA /n, DATA /n, CREATED /n/c, CHILDREN /n, CREATED /n/d, CHILDREN /n, "
                        "DATA /n/d");
    assert_int_equal(memserver_stats(&p.d).watches, 3);
}

TEST(what_cannot_be_added)
{
    static const struct {
        const char *path;
        int32_t mode;
        clave_err err;
    } cases[] = {
        {"/n", 2, CLAVE_EMARSHALLING},
        {"/n", -1, CLAVE_EMARSHALLING},
        {NULL, ADD_WATCH_PERSISTENT, CLAVE_EMARSHALLING},
        {"no path at all", ADD_WATCH_PERSISTENT, CLAVE_OK},
        {"", ADD_WATCH_PERSISTENT, CLAVE_OK}, /* the root */
    };
    CLOSED_BY(close_pair) struct two_conns p;
    open_pair(&p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        union wire_body b = {.typed = {clave__jbytes(cases[i].path), cases[i].mode}};
        assert_int_equal(memserver_call(&p.watcher, OP_ADD_WATCH, &b, NULL), cases[i].err);
    }
    assert_int_equal(memserver_stats(&p.d).watches, 2);
    act(&p.writer, "set /");
    assert_string_equal(memserver_events(&p.watcher), "DATA /");
}

/* ---- taking watches away --------------------------------------------------------------------- */

TEST(removing_and_checking)
{
    /* The marks on the path: d(ata) c(hildren) p(ersistent) r(ecursive). */
    static const struct {
        const char *there;
        int32_t type;
        clave_err err;
        size_t left;
    } cases[] = {
        {"", WATCHER_ANY, CLAVE_ENOWATCHER, 0},
        {"d", WATCHER_DATA, CLAVE_OK, 0},
        {"d", WATCHER_ANY, CLAVE_OK, 0},
        {"d", WATCHER_CHILDREN, CLAVE_ENOWATCHER, 1},
        {"c", WATCHER_CHILDREN, CLAVE_OK, 0},
        {"c", WATCHER_DATA, CLAVE_ENOWATCHER, 1},
        {"dc", WATCHER_DATA, CLAVE_OK, 1},
        {"dc", WATCHER_ANY, CLAVE_OK, 0},
        {"p", WATCHER_DATA, CLAVE_ENOWATCHER, 1},
        {"p", WATCHER_PERSISTENT, CLAVE_OK, 0},
        {"p", WATCHER_PERSISTENT_RECURSIVE, CLAVE_ENOWATCHER, 1},
        {"r", WATCHER_PERSISTENT_RECURSIVE, CLAVE_OK, 0},
        {"dcpr", WATCHER_PERSISTENT, CLAVE_OK, 3},
        {"dcpr", WATCHER_CHILDREN, CLAVE_OK, 3},
        {"dcpr", WATCHER_ANY, CLAVE_OK, 0},
        {"d", 0, CLAVE_EMARSHALLING, 1},
        {"d", 6, CLAVE_EMARSHALLING, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(close_pair) struct two_conns p;
        union wire_body b = {.typed = {clave__jbytes("/n"), cases[i].type}};
        open_pair(&p);
        act(&p.writer, "create /n");
        for (const char *c = cases[i].there; *c; c++) {
            if (*c == 'd')
                memserver_watch(&p.watcher, OP_GET_DATA, "/n");
            else if (*c == 'c')
                memserver_watch(&p.watcher, OP_GET_CHILDREN, "/n");
            else
                add_watch(&p.watcher, "/n", *c == 'r');
        }
        size_t there = memserver_stats(&p.d).watches;
        assert_int_equal(memserver_call(&p.watcher, OP_CHECK_WATCHES, &b, NULL), cases[i].err);
        assert_int_equal(memserver_stats(&p.d).watches, there);
        assert_int_equal(memserver_call(&p.writer, OP_REMOVE_WATCHES, &b, NULL),
                         cases[i].err == CLAVE_OK ? CLAVE_ENOWATCHER : cases[i].err);
        assert_int_equal(memserver_call(&p.watcher, OP_REMOVE_WATCHES, &b, NULL), cases[i].err);
        if (memserver_stats(&p.d).watches != cases[i].left)
            fail_msg("case %zu: %zu left", i, memserver_stats(&p.d).watches);
        assert_string_equal(memserver_events(&p.watcher), ""); /* nobody gets the event */
    }
}

/* ---- who may be told ------------------------------------------------------------------------- */

/* An event tells that something is there. One who may not read the node is not told, and its
 * one-shot watch is used up all the same. */
TEST(nobody_is_told_of_what_they_may_not_read)
{
    static const struct {
        const char *closed;
        int32_t op;
        const char *path, *steps, *events;
    } cases[] = {
        {"/n", OP_EXISTS, "/n", "set /n", ""},
        {"/n", OP_GET_DATA, "/n", "delete /n", ""},
        {"/n", OP_GET_CHILDREN, "/n", "create /n/c", ""},
        {"/n", OP_GET_CHILDREN, "/", "delete /n", "CHILDREN /"},
        {"/", OP_GET_CHILDREN, "/", "delete /n", ""},
        {"/", OP_GET_DATA, "/n", "delete /n", "DELETED /n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(close_pair) struct two_conns p;
        open_pair(&p);
        act(&p.writer, "create /n");
        assert_int_equal(memserver_watch(&p.watcher, cases[i].op, cases[i].path), CLAVE_OK);
        assert_int_equal(set_acl(&p.writer, cases[i].closed, PERM_ALL & ~PERM_READ), CLAVE_OK);
        act(&p.writer, cases[i].steps);
        const char *events = memserver_events(&p.watcher);
        if (strcmp(events, cases[i].events) != 0)
            fail_msg("case %zu: '%s', not '%s'", i, events, cases[i].events);
        assert_int_equal(memserver_stats(&p.d).watches, 0);
    }
}

/* Every watcher is told once, and nothing is left. */
TEST_SERVER(many_watchers)
{
    enum { PATHS = 1000, WATCHERS = 10 };
    struct memserver_conn writer, c[WATCHERS];
    char path[16], event[32];
    memserver_connect(&writer, d, 40000);
    for (size_t i = 0; i < WATCHERS; i++) {
        memserver_connect(&c[i], d, 40000);
        for (int n = 0; n < PATHS; n++) {
            snprintf(path, sizeof path, "/n%d", n);
            assert_int_equal(memserver_watch(&c[i], OP_EXISTS, path), CLAVE_ENONODE);
        }
    }
    assert_int_equal(memserver_stats(d).watches, PATHS * WATCHERS);
    for (int n = 0; n < PATHS; n += 2) {
        snprintf(path, sizeof path, "/n%d", n);
        snprintf(event, sizeof event, "CREATED %s", path);
        assert_int_equal(memserver_create(&writer, path, "", MODE_PERSISTENT), CLAVE_OK);
        for (size_t i = 0; i < WATCHERS; i++)
            assert_string_equal(memserver_events(&c[i]), event);
    }
    assert_int_equal(memserver_stats(d).watches, PATHS / 2 * WATCHERS);
    for (size_t i = 0; i < WATCHERS; i++) {
        memserver_hang_up(&c[i]);
        memserver_advance(d, 1);
        assert_int_equal(memserver_stats(d).watches, PATHS / 2 * (WATCHERS - 1 - i));
    }
    memserver_hang_up(&writer);
}
