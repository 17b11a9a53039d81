/* server_multi_test.c - several operations as one: all or nothing, each seeing those before it. */
#include "lib/memserver.h"
#include "lib/unit.h"

enum { MOST_OPS = 8 };

struct place {
    struct memserver d;
    struct memserver_conn c;
};

static void open_place(struct place *p)
{
    memserver_open(&p->d, NULL);
    memserver_connect(&p->c, &p->d, 10000);
}

static void close_place(struct place *p)
{
    memserver_hang_up(&p->c);
    memserver_close(&p->d);
}

/* One operation, as short as a table wants it. */
struct step {
    int32_t op;
    const char *path;
    int32_t number; /* the mode of a create, the version of the others */
};

static struct wire_op op_of(const struct step *s)
{
    struct wire_op op = {.op = s->op};
    switch (s->op) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        op.body = memserver_create_body(s->path, "data", s->number);
        op.body.create.ttl_ms = 1000;
        break;
    case OP_SET_DATA:
        op.body.set = (struct wire_set_data){clave__jbytes(s->path), clave__jbytes("set"), 0};
        op.body.set.version = s->number;
        break;
    case OP_DELETE:
    case OP_CHECK:
        op.body.check = (struct wire_path_version){clave__jbytes(s->path), s->number};
        break;
    default: /* reads */
        op.body.read = (struct wire_path_watch){clave__jbytes(s->path), s->number};
        break;
    }
    return op;
}

static size_t count_steps(const struct step *s)
{
    size_t n = 0;
    while (n < MOST_OPS && s[n].path)
        n++;
    return n;
}

/* Sends the steps up to the first one without a path. */
static clave_err send_steps(struct memserver_conn *c, int32_t op, const struct step *s,
                            struct wire_reply *out)
{
    struct buf b;
    clave__buf_init(&b, &c->d->mem, 1 << 20);
    struct jwriter w = clave__jwriter(&b);
    size_t n = count_steps(s);
    for (size_t i = 0; i < n; i++) {
        struct wire_op one = op_of(&s[i]);
        clave__wire_put_op(&w, &one);
    }
    clave__wire_put_ops_end(&w);
    assert_int_equal(w.err, CLAVE_OK);
    union wire_body body = {.multi = {(int32_t)n, b.data, b.tail}};
    clave_err err = memserver_call(c, op, &body, out);
    clave__buf_fini(&b);
    return err;
}

static int put_result(char *to, size_t room, const struct wire_result *r)
{
    switch (r->op) {
    case OP_CREATE:
        return snprintf(to, room, "create %.*s", (int)r->reply.path.n, r->reply.path.p);
    case OP_CREATE2:
        return snprintf(to, room, "create2 %.*s v%d", (int)r->reply.path.n, r->reply.path.p,
                        (int)r->reply.stat.version);
    case OP_DELETE:
        return snprintf(to, room, "delete");
    case OP_CHECK:
        return snprintf(to, room, "check");
    case OP_SET_DATA:
        return snprintf(to, room, "set v%d", (int)r->reply.stat.version);
    case OP_GET_DATA:
        return snprintf(to, room, "data %.*s", (int)r->reply.data.n, r->reply.data.p);
    case OP_GET_CHILDREN:
        return snprintf(to, room, "children %d", (int)r->reply.names.count);
    case OP_ERROR:
        return snprintf(to, room, "%s", clave_err_name((clave_err)r->err));
    default:
        return snprintf(to, room, "?");
    }
}

/* The results as text, separated by ", "; an error by its name. */
static const char *text_of(const struct wire_reply *reply)
{
    static char text[1024];
    struct jreader r = clave__wire_ops_reader(&reply->results);
    struct wire_result res;
    size_t n = 0;
    text[0] = '\0';
    while (clave__wire_get_result(&r, &res)) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", n ? ", " : "");
        n += (size_t)put_result(text + n, sizeof text - n, &res);
        assert_true(n < sizeof text);
    }
    return text;
}

static const char *multi(struct memserver_conn *c, const struct step *s)
{
    struct wire_reply r;
    clave_err err = send_steps(c, OP_MULTI, s, &r);
    return err == CLAVE_OK ? text_of(&r) : clave_err_name(err);
}

/* /n with data "old", /n/c, and /e, which is ephemeral. */
static void furnish(struct place *p)
{
    open_place(p);
    assert_int_equal(memserver_create(&p->c, "/n", "old", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_create(&p->c, "/n/c", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_create(&p->c, "/e", "", MODE_EPHEMERAL), CLAVE_OK);
}

/* ---- what succeeds --------------------------------------------------------------------------- */

TEST(each_sees_those_before_it)
{
    static const struct {
        struct step steps[MOST_OPS];
        const char *results;
    } cases[] = {
        {{{0}}, ""},
        {{{OP_CREATE, "/m", 0},
          {OP_CREATE, "/m/x", 0},
          {OP_SET_DATA, "/m/x", 0},
          {OP_DELETE, "/m/x", 1},
          {OP_DELETE, "/m", 0}},
         "create /m, create /m/x, set v1, delete, delete"},
        {{{OP_DELETE, "/n/c", -1}, {OP_DELETE, "/n", -1}, {OP_CREATE, "/n", 0}},
         "delete, delete, create /n"},
        {{{OP_CREATE2, "/m", 0},
          {OP_CREATE_CONTAINER, "/m/c", MODE_CONTAINER},
          {OP_CHECK, "/m/c", 0}},
         "create2 /m v0, create2 /m/c v0, check"},
        {{{OP_CREATE, "/n/s-", MODE_PERSISTENT_SEQUENTIAL},
          {OP_CREATE2, "/n/s-", MODE_EPHEMERAL_SEQUENTIAL},
          {OP_SET_DATA, "/n/s-0000000001", 0},
          {OP_DELETE, "/n/s-0000000002", 0}},
         "create /n/s-0000000001, create2 /n/s-0000000002 v0, set v1, delete"},
        {{{OP_SET_DATA, "/n", 0},
          {OP_SET_DATA, "/n", 1},
          {OP_CHECK, "/n", 2},
          {OP_SET_DATA, "/n", -1}},
         "set v1, set v2, check, set v3"},
        {{{OP_CHECK, "/n", 0}, {OP_CHECK, "/n", -1}}, "check, check"},
        {{{OP_DELETE, "/e", -1}, {OP_CREATE, "/e", MODE_EPHEMERAL}}, "delete, create /e"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(close_place) struct place p;
        furnish(&p);
        int64_t zxid = memserver_stats(&p.d).last_zxid;
        assert_string_equal(multi(&p.c, cases[i].steps), cases[i].results);
        assert_int_equal(memserver_stats(&p.d).last_zxid, zxid + 1); /* one for all, or for none */
    }
}

/* A Stat in the results is the one of that moment; all share one zxid and one time. */
TEST(stats_are_of_their_moment)
{
    static const struct step steps[MOST_OPS] = {{OP_CREATE2, "/m", 0},
                                                {OP_CREATE2, "/m/x", 0},
                                                {OP_SET_DATA, "/m", 0},
                                                {OP_DELETE, "/m/x", 0},
                                                {OP_SET_DATA, "/m", 1}};
    CLOSED_BY(close_place) struct place p;
    struct wire_reply reply;
    struct wire_result r[5];
    struct wire_stat now;
    open_place(&p);
    memserver_advance(&p.d, 123);
    assert_int_equal(send_steps(&p.c, OP_MULTI, steps, &reply), CLAVE_OK);
    struct jreader reader = clave__wire_ops_reader(&reply.results);
    for (size_t i = 0; i < 5; i++)
        assert_true(clave__wire_get_result(&reader, &r[i]));
    assert_int_equal(r[0].reply.stat.num_children, 0);
    assert_int_equal(r[0].reply.stat.version, 0);
    assert_int_equal(r[2].reply.stat.num_children, 1);
    assert_int_equal(r[2].reply.stat.cversion, 1);
    assert_int_equal(r[4].reply.stat.num_children, 0);
    assert_int_equal(r[4].reply.stat.cversion, 2);
    for (size_t i = 0; i < 5; i++) {
        if (r[i].op == OP_DELETE)
            continue;
        assert_int_equal(r[i].reply.stat.mzxid, 2);
        assert_true(r[i].reply.stat.mtime == memserver_wall(&p.d));
    }
    assert_int_equal(memserver_stat(&p.c, "/m", &now), CLAVE_OK);
    assert_memory_equal(&now, &r[4].reply.stat, sizeof now);
}

TEST(a_thousand_at_once)
{
    enum { MANY = 1000 };
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(clave__buf_fini) struct buf b;
    struct wire_reply r;
    struct wire_stat st;
    const struct step one = {OP_CREATE, "/s-", MODE_EPHEMERAL_SEQUENTIAL};
    struct wire_op op = op_of(&one);
    open_place(&p);
    clave__buf_init(&b, &p.d.mem, 1 << 20);
    struct jwriter w = clave__jwriter(&b);
    for (int i = 0; i < MANY; i++)
        clave__wire_put_op(&w, &op);
    clave__wire_put_ops_end(&w);
    union wire_body body = {.multi = {MANY, b.data, b.tail}};
    assert_int_equal(memserver_call(&p.c, OP_MULTI, &body, &r), CLAVE_OK);
    assert_int_equal(r.results.count, MANY);
    assert_int_equal(memserver_stats(&p.d).ephemerals, MANY);
    assert_int_equal(memserver_stat(&p.c, "/s-0000000999", &st), CLAVE_OK);
    assert_int_equal(st.czxid, 2);
    memserver_request(&p.c, OP_CLOSE_SESSION, NULL);
    assert_int_equal(memserver_stats(&p.d).ephemerals, 0);
}

/* ---- what fails ------------------------------------------------------------------------------ */

/* The digest of the whole tree, as a snapshot ends with it. */
static uint64_t digest_of(struct memserver *d)
{
    enum { BEHIND = 13 + 8 + 13 + 8 };
    struct buf b;
    int64_t zxid;
    clave__buf_init(&b, &d->mem, SIZE_MAX / 4);
    assert_int_equal(clave__server_save_snapshot(d->s, &b, &zxid), CLAVE_OK);
    struct jreader r = clave__jreader(b.data + b.tail - BEHIND, 8);
    uint64_t digest = (uint64_t)clave__jget_long(&r);
    clave__buf_fini(&b);
    return digest;
}

/* Five that are done, one that fails, and two after it that would have succeeded. */
static void steps_around(struct step steps[MOST_OPS], const struct step *culprit, bool delete_e)
{
    const struct step all[MOST_OPS] = {
        {OP_SET_DATA, "/n", 0},
        {OP_DELETE, "/n/c", -1},
        {OP_CREATE, "/m", 0},
        {OP_CREATE, "/m/s-", MODE_EPHEMERAL_SEQUENTIAL},
        {delete_e ? OP_DELETE : OP_CHECK, "/e", -1},
        *culprit,
        {OP_CREATE, "/late", 0},
        {OP_CHECK, "/", -1},
    };
    memcpy(steps, all, sizeof all);
}

static void assert_undone(const struct server_stats *before, const struct server_stats *after)
{
    assert_int_equal(after->last_zxid, before->last_zxid + 1);
    assert_int_equal(after->nodes, before->nodes);
    assert_int_equal(after->ephemerals, before->ephemerals);
    assert_int_equal(after->data_bytes, before->data_bytes);
    assert_int_equal(after->watches, before->watches);
}

TEST(all_or_nothing)
{
    static const struct {
        struct step culprit;
        const char *error;
    } cases[] = {
        {{OP_CREATE, "/n", 0}, "ENODEEXISTS"},
        {{OP_CREATE, "/none/x", 0}, "ENONODE"},
        {{OP_CREATE, "/e/x", 0}, "ENOCHILDREN"},
        {{OP_CREATE, "/n/.", 0}, "EBADARGS"},
        {{OP_CREATE, "/x", 9}, "EBADARGS"},
        {{OP_CREATE_TTL, "/x", MODE_PERSISTENT_TTL}, "EUNIMPLEMENTED"},
        {{OP_DELETE, "/none", -1}, "ENONODE"},
        {{OP_DELETE, "/m", -1}, "ENOTEMPTY"},
        {{OP_DELETE, "/n/c", -1}, "ENONODE"}, /* it was deleted before */
        {{OP_DELETE, "/", -1}, "EBADARGS"},
        {{OP_SET_DATA, "/n", 0}, "EBADVERSION"}, /* it was set before */
        {{OP_SET_DATA, "/none", -1}, "ENONODE"},
        {{OP_CHECK, "/n", 0}, "EBADVERSION"},
        {{OP_CHECK, "/none", -1}, "ENONODE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(close_place) struct place p;
        CLOSED_BY(memserver_hang_up) struct memserver_conn watcher;
        struct step steps[MOST_OPS];
        char expected[128];
        steps_around(steps, &cases[i].culprit, strcmp(cases[i].error, "ENOCHILDREN") != 0);
        snprintf(expected, sizeof expected, "OK, OK, OK, OK, OK, %s, ERUNTIME, ERUNTIME",
                 cases[i].error);
        furnish(&p);
        memserver_connect(&watcher, &p.d, 10000);
        memserver_watch(&watcher, OP_GET_DATA, "/n");
        memserver_watch(&watcher, OP_GET_CHILDREN, "/");
        memserver_watch(&watcher, OP_EXISTS, "/m");
        uint64_t digest = digest_of(&p.d);
        struct server_stats before = memserver_stats(&p.d);
        assert_string_equal(multi(&p.c, steps), expected);
        struct server_stats after = memserver_stats(&p.d);
        assert_undone(&before, &after);
        assert_true(digest_of(&p.d) == digest);
        assert_string_equal(memserver_events(&watcher), "");
        /* And as if nothing had been: the same numbers, the same owners. */
        assert_int_equal(memserver_create(&p.c, "/n/s-", "", MODE_PERSISTENT_SEQUENTIAL), CLAVE_OK);
        assert_int_equal(memserver_delete(&p.c, "/n/s-0000000001", 0), CLAVE_OK);
        memserver_request(&p.c, OP_CLOSE_SESSION, NULL);
        assert_int_equal(memserver_stats(&p.d).ephemerals, 0);
    }
}

/* A body that is no list of writes: the request fails as a whole, and takes its zxid. */
TEST(what_is_no_multi)
{
    static const struct step reads[MOST_OPS] = {{OP_CREATE, "/m", 0}, {OP_GET_DATA, "/n", 0}};
    static const uint8_t unknown[] = {0,    0,    0,    99,   0, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff};
    CLOSED_BY(close_place) struct place p;
    uint8_t frame[8 + sizeof unknown] = {0, 0, 0, 50, 0, 0, 0, OP_MULTI};
    struct wire_reply_header h;
    struct jreader r;
    furnish(&p);
    int64_t zxid = memserver_stats(&p.d).last_zxid;
    assert_string_equal(multi(&p.c, reads), "EMARSHALLING");
    assert_int_equal(memserver_stats(&p.d).last_zxid, zxid + 1);
    memcpy(frame + 8, unknown, sizeof unknown);
    for (size_t n = 8; n <= sizeof frame; n++) {
        memserver_send_frame(&p.c, frame, n);
        assert_true(memserver_next(&p.c, &h, &r));
        assert_int_equal(h.xid, 50);
        assert_int_equal(h.err, CLAVE_EMARSHALLING);
        assert_int_equal(h.zxid, ++zxid + 1);
    }
}

TEST(its_events_stand_in_its_order)
{
    static const struct step steps[MOST_OPS] = {{OP_CREATE, "/b", 0},
                                                {OP_SET_DATA, "/n", -1},
                                                {OP_DELETE, "/n/c", -1},
                                                {OP_CREATE, "/b/x", 0},
                                                {OP_DELETE, "/b/x", 0}};
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn watcher;
    union wire_body all = {.typed = {clave__jbytes("/"), ADD_WATCH_PERSISTENT_RECURSIVE}};
    furnish(&p);
    memserver_connect(&watcher, &p.d, 10000);
    assert_int_equal(memserver_call(&watcher, OP_ADD_WATCH, &all, NULL), CLAVE_OK);
    assert_int_equal(memserver_watch(&watcher, OP_GET_CHILDREN, "/n"), CLAVE_OK);
    multi(&p.c, steps);
    assert_string_equal(memserver_events(&watcher),
                        "CREATED /b, DATA /n, DELETED /n/c, CHILDREN /n, "
                        "CREATED /b/x, DELETED /b/x");
}

/* ---- several reads --------------------------------------------------------------------------- */

TEST(reads_fail_one_by_one)
{
    static const struct step steps[MOST_OPS] = {{OP_GET_DATA, "/n", 1},
                                                {OP_GET_DATA, "/none", 0},
                                                {OP_GET_CHILDREN, "/n", 1},
                                                {OP_GET_CHILDREN, "/closed", 0},
                                                {OP_GET_DATA, "/", 0}};
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    union wire_body closed = memserver_create_body("/closed", "", MODE_PERSISTENT);
    furnish(&p);
    closed.create.acl = memserver_acl(PERM_WRITE, "world", "anyone");
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &closed, NULL), CLAVE_OK);
    int64_t zxid = memserver_stats(&p.d).last_zxid;
    assert_int_equal(send_steps(&p.c, OP_MULTI_READ, steps, &r), CLAVE_OK);
    assert_string_equal(text_of(&r), "data old, ENONODE, children 1, ENOAUTH, data ");
    assert_int_equal(memserver_stats(&p.d).watches, 0); /* their watch flag means nothing */
    assert_int_equal(memserver_stats(&p.d).last_zxid, zxid);
}

TEST(what_is_no_multi_read)
{
    static const struct step none[MOST_OPS] = {{0}};
    static const struct step bad[][MOST_OPS] = {
        {{OP_GET_DATA, "/n", 0}, {OP_CREATE, "/m", 0}},
        {{OP_CHECK, "/n", 0}},
    };
    static const uint8_t exists[] = {
        0, 0, 0, 9, 0,   0,   0, OP_MULTI_READ, 0,    0,    0,    3, 0,    0xff, 0xff, 0xff, 0xff,
        0, 0, 0, 2, '/', 'n', 0, 0xff,          0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff};
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    struct wire_reply_header h;
    struct jreader rest;
    furnish(&p);
    memserver_send_frame(&p.c, exists, sizeof exists);
    assert_true(memserver_next(&p.c, &h, &rest));
    assert_int_equal(h.err, CLAVE_EMARSHALLING);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(send_steps(&p.c, OP_MULTI_READ, bad[i], &r), CLAVE_EMARSHALLING);
    assert_int_equal(send_steps(&p.c, OP_MULTI_READ, none, &r), CLAVE_OK);
    assert_int_equal(r.results.count, 0);
}
