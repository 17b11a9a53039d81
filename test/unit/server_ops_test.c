/* server_ops_test.c - each operation, its checks in ZooKeeper's order, and what it answers. */
#include "lib/memserver.h"
#include "lib/unit.h"

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

static void must_create(struct memserver_conn *c, const char *path, int32_t mode)
{
    clave_err err = memserver_create(c, path, "", mode);
    if (err != CLAVE_OK)
        fail_msg("create %s: %s", path, clave_err_name(err));
}

/* ---- Stat ------------------------------------------------------------------------------------ */

TEST(the_stat_of_a_new_node)
{
    CLOSED_BY(close_place) struct place p;
    struct wire_stat st, up;
    open_place(&p);
    memserver_advance(&p.d, 5);
    assert_int_equal(memserver_create(&p.c, "/n", "12345", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_stat(&p.c, "/n", &st), CLAVE_OK);
    assert_int_equal(st.czxid, 2);
    assert_int_equal(st.mzxid, 2);
    assert_int_equal(st.pzxid, 2);
    assert_true(st.ctime == memserver_wall(&p.d) && st.mtime == st.ctime);
    assert_int_equal(st.version + st.cversion + st.aversion + st.num_children, 0);
    assert_int_equal(st.data_length, 5);
    assert_int_equal(st.ephemeral_owner, 0);
    assert_int_equal(memserver_stat(&p.c, "/", &up), CLAVE_OK);
    assert_int_equal(up.pzxid, 2);
    assert_int_equal(up.num_children, 2); /* /zookeeper */
}

/* On the wire cversion counts creations and deletions; the number of a sequential node is the
 * stored one, which counts creations. */
TEST(cversion_on_the_wire)
{
    CLOSED_BY(close_place) struct place p;
    struct wire_stat st;
    open_place(&p);
    must_create(&p.c, "/p", MODE_PERSISTENT);
    must_create(&p.c, "/p/a", MODE_PERSISTENT);
    must_create(&p.c, "/p/b", MODE_PERSISTENT);
    assert_int_equal(memserver_stat(&p.c, "/p", &st), CLAVE_OK);
    assert_int_equal(st.cversion, 2);
    assert_int_equal(memserver_delete(&p.c, "/p/a", -1), CLAVE_OK);
    assert_int_equal(memserver_stat(&p.c, "/p", &st), CLAVE_OK);
    assert_int_equal(st.cversion, 3);
    assert_int_equal(st.num_children, 1);
    assert_int_equal(st.pzxid, memserver_stats(&p.d).last_zxid);
    must_create(&p.c, "/p/s", MODE_PERSISTENT_SEQUENTIAL);
    assert_int_equal(memserver_stat(&p.c, "/p/s0000000002", &st), CLAVE_OK);
}

TEST(setting_data_and_acl)
{
    CLOSED_BY(close_place) struct place p;
    struct wire_stat before, st;
    struct wire_reply r;
    union wire_body set = {.set = {clave__jbytes("/n"), clave__jbytes("new"), 0}};
    union wire_body acl = {.set_acl = {clave__jbytes("/n"), {0, NULL, 0}, 0}};
    open_place(&p);
    assert_int_equal(memserver_create(&p.c, "/n", "old", MODE_PERSISTENT), CLAVE_OK);
    memserver_advance(&p.d, 7);
    assert_int_equal(memserver_stat(&p.c, "/n", &before), CLAVE_OK);
    assert_int_equal(memserver_call(&p.c, OP_SET_DATA, &set, &r), CLAVE_OK);
    assert_int_equal(r.stat.version, 1);
    assert_int_equal(r.stat.mzxid, before.mzxid + 1);
    assert_true(r.stat.mtime == memserver_wall(&p.d));
    assert_true(r.stat.ctime == before.ctime && r.stat.pzxid == before.pzxid);
    acl.set_acl.acl = memserver_acl(PERM_ALL, "world", "anyone");
    assert_int_equal(memserver_call(&p.c, OP_SET_ACL, &acl, &r), CLAVE_OK);
    assert_int_equal(r.stat.aversion, 1);
    assert_int_equal(memserver_stat(&p.c, "/n", &st), CLAVE_OK);
    assert_int_equal(st.mzxid, before.mzxid + 1); /* a list is no data */
    assert_int_equal(memserver_call(&p.c, OP_SET_ACL, &acl, &r), CLAVE_EBADVERSION);
}

TEST(null_data_stay_null)
{
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    union wire_body get = {.read = {clave__jbytes("/n"), false}};
    open_place(&p);
    assert_int_equal(memserver_create(&p.c, "/n", NULL, MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_call(&p.c, OP_GET_DATA, &get, &r), CLAVE_OK);
    assert_int_equal(r.data.n, -1);
    assert_int_equal(r.stat.data_length, 0);
    assert_int_equal(memserver_set(&p.c, "/n", "", -1), CLAVE_OK);
    assert_int_equal(memserver_call(&p.c, OP_GET_DATA, &get, &r), CLAVE_OK);
    assert_int_equal(r.data.n, 0);
    assert_int_equal(memserver_set(&p.c, "/n", NULL, -1), CLAVE_OK);
    assert_int_equal(memserver_call(&p.c, OP_GET_DATA, &get, &r), CLAVE_OK);
    assert_int_equal(r.data.n, -1);
}

/* Data of every size keep their bytes: short ones stand inside the node. */
TEST(data_of_many_sizes)
{
    static const int32_t sizes[] = {1, 255, 256, 257, 70000};
    static char bytes[70004];
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    union wire_body get = {.read = {clave__jbytes("/n"), false}};
    union wire_body create = memserver_create_body("/n", NULL, MODE_PERSISTENT);
    open_place(&p);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    for (size_t i = 0; i < 5; i++) {
        create.create.data = clave__jbytes_n(bytes, (size_t)sizes[i]);
        assert_int_equal(memserver_call(&p.c, OP_CREATE, &create, NULL), CLAVE_OK);
        for (size_t k = 0; k < 5; k++) {
            union wire_body set = {.set = {clave__jbytes("/n"), {bytes + k, sizes[k] - 1}, -1}};
            assert_int_equal(memserver_call(&p.c, OP_GET_DATA, &get, &r), CLAVE_OK);
            assert_int_equal(r.data.n, k ? sizes[k - 1] - 1 : sizes[i]);
            assert_memory_equal(r.data.p, bytes + (k ? k - 1 : 0), (size_t)r.data.n);
            assert_int_equal(memserver_call(&p.c, OP_SET_DATA, &set, NULL), CLAVE_OK);
        }
        assert_int_equal(memserver_delete(&p.c, "/n", 5), CLAVE_OK);
    }
    assert_int_equal(memserver_stats(&p.d).data_bytes, strlen("/zookeeper/zookeeper/config"
                                                              "/zookeeper/quota"));
}

/* ---- create ---------------------------------------------------------------------------------- */

TEST(the_modes)
{
    static const struct {
        int32_t op, mode;
        const char *path; /* of the node; NULL: the error */
        clave_err err;
        bool ephemeral;
    } cases[] = {
        {OP_CREATE, MODE_PERSISTENT, "/x", CLAVE_OK, false},
        {OP_CREATE, MODE_EPHEMERAL, "/x", CLAVE_OK, true},
        {OP_CREATE, MODE_PERSISTENT_SEQUENTIAL, "/x0000000001", CLAVE_OK, false},
        {OP_CREATE, MODE_EPHEMERAL_SEQUENTIAL, "/x0000000001", CLAVE_OK, true},
        {OP_CREATE, MODE_CONTAINER, "/x", CLAVE_OK, false},
        {OP_CREATE, MODE_PERSISTENT_TTL, NULL, CLAVE_EUNIMPLEMENTED, false},
        {OP_CREATE, 7, NULL, CLAVE_EBADARGS, false},
        {OP_CREATE, -1, NULL, CLAVE_EBADARGS, false},
        {OP_CREATE2, MODE_PERSISTENT, "/x", CLAVE_OK, false},
        {OP_CREATE2, MODE_EPHEMERAL, "/x", CLAVE_OK, true},
        {OP_CREATE2, 255, NULL, CLAVE_EBADARGS, false},
        {OP_CREATE_CONTAINER, MODE_CONTAINER, "/x", CLAVE_OK, false},
        {OP_CREATE_CONTAINER, MODE_PERSISTENT, "/x", CLAVE_OK, false},
        {OP_CREATE_TTL, MODE_PERSISTENT_TTL, NULL, CLAVE_EUNIMPLEMENTED, false},
        {OP_CREATE_TTL, MODE_PERSISTENT_SEQUENTIAL_TTL, NULL, CLAVE_EUNIMPLEMENTED, false},
        {OP_CREATE_TTL, MODE_PERSISTENT, NULL, CLAVE_EBADARGS, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(close_place) struct place p;
        struct wire_reply r;
        struct wire_stat st;
        union wire_body b = memserver_create_body("/x", "d", cases[i].mode);
        b.create.ttl_ms = -1; /* kills Apache's server */
        open_place(&p);
        must_create(&p.c, "/other", MODE_PERSISTENT);
        assert_int_equal(memserver_call(&p.c, cases[i].op, &b, &r), cases[i].err);
        if (cases[i].path) {
            assert_int_equal((size_t)r.path.n, strlen(cases[i].path));
            assert_memory_equal(r.path.p, cases[i].path, strlen(cases[i].path));
            assert_int_equal(memserver_stat(&p.c, cases[i].path, &st), CLAVE_OK);
            assert_true(st.ephemeral_owner == (cases[i].ephemeral ? p.c.session : 0));
            if (cases[i].op != OP_CREATE)
                assert_memory_equal(&r.stat, &st, sizeof st);
        }
    }
}

/* In this order: mode, shape, list, parent, permission, name, existence, ephemeral parent. */
TEST(the_checks_of_create)
{
    static const struct {
        const char *path;
        int32_t mode;
        clave_err err;
    } cases[] = {
        {"", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"x", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"/", MODE_PERSISTENT, CLAVE_ENODEEXISTS},
        {"/t/", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"/t//x", MODE_PERSISTENT, CLAVE_ENONODE},
        {"/none/x", MODE_PERSISTENT, CLAVE_ENONODE},
        {"/none/..", MODE_PERSISTENT, CLAVE_ENONODE},
        {"/t/.", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"/t/..", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"/t/...", MODE_PERSISTENT, CLAVE_OK},
        {"/t/.x", MODE_PERSISTENT, CLAVE_OK},
        {"/t/a b", MODE_PERSISTENT, CLAVE_OK},
        {"/t/\x01", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"/t/\x7f", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"/t/\xc2\x9f", MODE_PERSISTENT, CLAVE_EBADARGS},
        {"/t/\xc2\xa0", MODE_PERSISTENT, CLAVE_OK},
        {"/t/\xee\x80\x80", MODE_PERSISTENT, CLAVE_EBADARGS},     /* U+E000 */
        {"/t/\xef\xbf\xb0", MODE_PERSISTENT, CLAVE_EBADARGS},     /* U+FFF0 */
        {"/t/\xf0\x9f\x98\x80", MODE_PERSISTENT, CLAVE_EBADARGS}, /* above the BMP */
        {"/t/\xc3\xa9", MODE_PERSISTENT, CLAVE_OK},
        {"/e/x", MODE_PERSISTENT, CLAVE_ENOCHILDREN},
        {"/e/x", MODE_EPHEMERAL, CLAVE_ENOCHILDREN},
        {"/t", MODE_PERSISTENT, CLAVE_ENODEEXISTS},
        {"/closed/x", MODE_PERSISTENT, CLAVE_ENOAUTH},
        {"/closed/.", MODE_PERSISTENT, CLAVE_ENOAUTH},
        {"/t/", MODE_PERSISTENT_SEQUENTIAL, CLAVE_OK},
        {"/t/x/", MODE_PERSISTENT_SEQUENTIAL, CLAVE_ENONODE},
        {"/zookeeper/x", MODE_PERSISTENT, CLAVE_OK},
    };
    CLOSED_BY(close_place) struct place p;
    union wire_body closed = memserver_create_body("/closed", "", MODE_PERSISTENT);
    open_place(&p);
    must_create(&p.c, "/t", MODE_PERSISTENT);
    must_create(&p.c, "/e", MODE_EPHEMERAL);
    closed.create.acl = memserver_acl(PERM_READ, "world", "anyone");
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &closed, NULL), CLAVE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clave_err err = memserver_create(&p.c, cases[i].path, "", cases[i].mode);
        if (err != cases[i].err)
            fail_msg("'%s': %s, not %s", cases[i].path, clave_err_name(err),
                     clave_err_name(cases[i].err));
    }
    union wire_body nul = memserver_create_body("/t/x", "", MODE_PERSISTENT);
    nul.create.path = clave__jbytes_n("/t/\0x", 5);
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &nul, NULL), CLAVE_EBADARGS);
    nul.create.path = JBYTES_NULL;
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &nul, NULL), CLAVE_EMARSHALLING);
}

TEST(sequence_numbers)
{
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    union wire_body b = memserver_create_body("/q/", "", MODE_EPHEMERAL_SEQUENTIAL);
    open_place(&p);
    must_create(&p.c, "/q", MODE_PERSISTENT);
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &b, &r), CLAVE_OK);
    assert_memory_equal(r.path.p, "/q/0000000000", 13);
    must_create(&p.c, "/q/plain", MODE_PERSISTENT); /* counts too */
    assert_int_equal(memserver_delete(&p.c, "/q/plain", -1), CLAVE_OK);
    b.create.path = clave__jbytes("/q/n-");
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &b, &r), CLAVE_OK);
    assert_memory_equal(r.path.p, "/q/n-0000000002", 15);
    assert_int_equal(memserver_create(&p.c, "/q/.", "", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
}

/* ---- the other writes ------------------------------------------------------------------------ */

TEST(the_checks_of_delete)
{
    static const struct {
        const char *path;
        int32_t version;
        clave_err err;
    } cases[] = {
        {"", -1, CLAVE_EBADARGS},
        {"x", -1, CLAVE_EBADARGS},
        {"/", -1, CLAVE_EBADARGS},
        {"/zookeeper", -1, CLAVE_EBADARGS},
        {"/zookeeper/config", -1, CLAVE_EBADARGS},
        {"/zookeeper/quota", -1, CLAVE_EBADARGS},
        {"/t/", -1, CLAVE_ENONODE},
        {"/none", -1, CLAVE_ENONODE},
        {"/none/x", -1, CLAVE_ENONODE},
        {"/closed/x", -1, CLAVE_ENOAUTH},
        {"/t", 1, CLAVE_EBADVERSION},
        {"/t", -2, CLAVE_EBADVERSION},
        {"/t", -1, CLAVE_ENOTEMPTY},
        {"/t/x", 0, CLAVE_OK},
        {"/t", 0, CLAVE_OK},
    };
    CLOSED_BY(close_place) struct place p;
    union wire_body closed = {.set_acl = {clave__jbytes("/closed"), {0, NULL, 0}, -1}};
    open_place(&p);
    must_create(&p.c, "/t", MODE_PERSISTENT);
    must_create(&p.c, "/t/x", MODE_PERSISTENT);
    must_create(&p.c, "/closed", MODE_PERSISTENT);
    must_create(&p.c, "/closed/x", MODE_PERSISTENT);
    closed.set_acl.acl = memserver_acl(PERM_ALL & ~PERM_DELETE, "world", "anyone");
    assert_int_equal(memserver_call(&p.c, OP_SET_ACL, &closed, NULL), CLAVE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clave_err err = memserver_delete(&p.c, cases[i].path, cases[i].version);
        if (err != cases[i].err)
            fail_msg("'%s' %d: %s", cases[i].path, cases[i].version, clave_err_name(err));
    }
}

TEST(the_checks_of_set_data)
{
    static const struct {
        const char *path;
        int32_t version;
        clave_err err;
    } cases[] = {
        {"", -1, CLAVE_EBADARGS},      {"x", -1, CLAVE_EBADARGS},     {"/t/", -1, CLAVE_EBADARGS},
        {"/none", -1, CLAVE_ENONODE},  {"/closed", 9, CLAVE_ENOAUTH}, {"/t", 1, CLAVE_EBADVERSION},
        {"/t", -2, CLAVE_EBADVERSION}, {"/t", 0, CLAVE_OK},           {"/t", 0, CLAVE_EBADVERSION},
        {"/t", -1, CLAVE_OK},          {"/", -1, CLAVE_OK},
    };
    CLOSED_BY(close_place) struct place p;
    union wire_body closed = memserver_create_body("/closed", "", MODE_PERSISTENT);
    open_place(&p);
    must_create(&p.c, "/t", MODE_PERSISTENT);
    closed.create.acl = memserver_acl(PERM_READ, "world", "anyone");
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &closed, NULL), CLAVE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clave_err err = memserver_set(&p.c, cases[i].path, "x", cases[i].version);
        if (err != cases[i].err)
            fail_msg("'%s' %d: %s", cases[i].path, cases[i].version, clave_err_name(err));
    }
}

TEST(containers_are_swept)
{
    struct server_options o = {.container_check_ms = 1000};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct wire_stat st;
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 40000);
    must_create(&c, "/used", MODE_CONTAINER);
    must_create(&c, "/used/x", MODE_PERSISTENT);
    must_create(&c, "/unused", MODE_CONTAINER);
    must_create(&c, "/full", MODE_CONTAINER);
    must_create(&c, "/full/x", MODE_PERSISTENT);
    assert_int_equal(memserver_stat(&c, "/used", &st), CLAVE_OK);
    assert_int_equal(st.ephemeral_owner, 0);
    memserver_advance(&d, 3000);
    assert_int_equal(memserver_stat(&c, "/used", &st), CLAVE_OK);
    assert_int_equal(memserver_delete(&c, "/used/x", -1), CLAVE_OK);
    int64_t zxid = memserver_stats(&d).last_zxid;
    memserver_advance(&d, 1000);
    assert_int_equal(memserver_stat(&c, "/used", &st), CLAVE_ENONODE);
    assert_int_equal(memserver_stat(&c, "/unused", &st), CLAVE_OK);
    assert_int_equal(memserver_stat(&c, "/full", &st), CLAVE_OK);
    assert_int_equal(memserver_stats(&d).last_zxid, zxid + 1);
}

/* An op for the server itself: a client may do no more with it than delete. */
TEST(delete_container_by_a_client)
{
    CLOSED_BY(close_place) struct place p;
    union wire_body b = {.path = clave__jbytes("/mine")};
    open_place(&p);
    must_create(&p.c, "/mine", MODE_EPHEMERAL);
    must_create(&p.c, "/plain", MODE_PERSISTENT);
    must_create(&p.c, "/c", MODE_CONTAINER);
    must_create(&p.c, "/c/x", MODE_PERSISTENT);
    assert_int_equal(memserver_call(&p.c, OP_DELETE_CONTAINER, &b, NULL), CLAVE_EBADVERSION);
    b.path = clave__jbytes("/plain");
    assert_int_equal(memserver_call(&p.c, OP_DELETE_CONTAINER, &b, NULL), CLAVE_OK);
    b.path = clave__jbytes("/c");
    assert_int_equal(memserver_call(&p.c, OP_DELETE_CONTAINER, &b, NULL), CLAVE_ENOTEMPTY);
    assert_int_equal(memserver_delete(&p.c, "/c/x", -1), CLAVE_OK);
    assert_int_equal(memserver_call(&p.c, OP_DELETE_CONTAINER, &b, NULL), CLAVE_OK);
}

/* ---- reads ----------------------------------------------------------------------------------- */

TEST(the_checks_of_reads)
{
    static const struct {
        int32_t op;
        const char *path;
        clave_err err;
    } cases[] = {
        {OP_EXISTS, "/none", CLAVE_ENONODE},
        {OP_EXISTS, "", CLAVE_OK},
        {OP_EXISTS, "x", CLAVE_ENONODE},
        {OP_EXISTS, "/closed", CLAVE_ENOAUTH},
        {OP_GET_DATA, "/none", CLAVE_ENONODE},
        {OP_GET_DATA, "/closed", CLAVE_ENOAUTH},
        {OP_GET_DATA, "//", CLAVE_ENONODE},
        {OP_GET_CHILDREN, "/closed", CLAVE_ENOAUTH},
        {OP_GET_CHILDREN2, "/t/", CLAVE_ENONODE},
        {OP_GET_ACL, "/closed", CLAVE_OK},
        {OP_GET_ALL_CHILDREN_NUMBER, "/closed", CLAVE_ENOAUTH},
        {OP_GET_DATA, NULL, CLAVE_EMARSHALLING},
    };
    CLOSED_BY(close_place) struct place p;
    union wire_body closed = memserver_create_body("/closed", "", MODE_PERSISTENT);
    open_place(&p);
    must_create(&p.c, "/t", MODE_PERSISTENT);
    closed.create.acl = memserver_acl(PERM_ADMIN, "world", "anyone");
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &closed, NULL), CLAVE_OK);
    int64_t zxid = memserver_stats(&p.d).last_zxid;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jbytes path = clave__jbytes(cases[i].path);
        union wire_body b = {.read = {path, false}};
        if (cases[i].op == OP_GET_ACL || cases[i].op == OP_GET_ALL_CHILDREN_NUMBER)
            b = (union wire_body){.path = path};
        clave_err err = memserver_call(&p.c, cases[i].op, &b, NULL);
        if (err != cases[i].err)
            fail_msg("op %d '%s': %s", cases[i].op, cases[i].path, clave_err_name(err));
    }
    union wire_body nul = {.read = {clave__jbytes_n("/\0", 2), false}};
    assert_int_equal(memserver_call(&p.c, OP_EXISTS, &nul, NULL), CLAVE_EBADARGS);
    assert_int_equal(memserver_call(&p.c, OP_GET_DATA, &nul, NULL), CLAVE_ENONODE);
    assert_int_equal(memserver_stats(&p.d).last_zxid, zxid);
}

static const char *names_of(const struct wire_reply *r)
{
    static char text[256];
    struct jreader names = clave__jvec_reader(r->names);
    text[0] = '\0';
    for (int32_t i = 0; i < r->names.count; i++) {
        struct jbytes name = clave__jget_bytes(&names);
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%.*s", i ? " " : "", (int)name.n, name.p);
    }
    return text;
}

TEST(lists_of_names)
{
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    union wire_body b = {.read = {clave__jbytes("/p"), false}};
    union wire_body path = {.path = clave__jbytes("/p")};
    open_place(&p);
    must_create(&p.c, "/p", MODE_PERSISTENT);
    assert_int_equal(memserver_call(&p.c, OP_GET_CHILDREN, &b, &r), CLAVE_OK);
    assert_int_equal(r.names.count, 0);
    must_create(&p.c, "/p/one", MODE_PERSISTENT);
    must_create(&p.c, "/p/one/two", MODE_EPHEMERAL);
    must_create(&p.c, "/p/three", MODE_EPHEMERAL);
    assert_int_equal(memserver_call(&p.c, OP_GET_CHILDREN2, &b, &r), CLAVE_OK);
    assert_string_equal(names_of(&r), "one three");
    assert_int_equal(r.stat.num_children, 2);
    assert_int_equal(memserver_call(&p.c, OP_GET_ALL_CHILDREN_NUMBER, &path, &r), CLAVE_OK);
    assert_int_equal(r.number, 3);
    path.path = clave__jbytes("/p/three");
    assert_int_equal(memserver_call(&p.c, OP_GET_ALL_CHILDREN_NUMBER, &path, &r), CLAVE_OK);
    assert_int_equal(r.number, 0);
    path.path = clave__jbytes("/");
    assert_int_equal(memserver_call(&p.c, OP_GET_ALL_CHILDREN_NUMBER, &path, &r), CLAVE_OK);
    assert_int_equal(r.number, 7);
    assert_int_equal(memserver_call(&p.c, OP_GET_EPHEMERALS, &path, &r), CLAVE_OK);
    assert_string_equal(names_of(&r), "/p/one/two /p/three");
    path.path = clave__jbytes("/p/o"); /* a prefix of the text */
    assert_int_equal(memserver_call(&p.c, OP_GET_EPHEMERALS, &path, &r), CLAVE_OK);
    assert_string_equal(names_of(&r), "/p/one/two");
    path.path = JBYTES_NULL;
    assert_int_equal(memserver_call(&p.c, OP_GET_EPHEMERALS, &path, &r), CLAVE_OK);
    assert_int_equal(r.names.count, 2);
    path.path = clave__jbytes("any string");
    assert_int_equal(memserver_call(&p.c, OP_SYNC, &path, &r), CLAVE_OK);
    assert_true(clave__jbytes_eq(r.path, path.path));
}

TEST(what_apache_has_from_the_start)
{
    static const char *const paths[] = {"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"};
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    open_place(&p);
    for (size_t i = 0; i < 4; i++) {
        union wire_body b = {.read = {clave__jbytes(paths[i]), false}};
        assert_int_equal(memserver_call(&p.c, OP_GET_DATA, &b, &r), CLAVE_OK);
        assert_int_equal(r.data.n, 0);
        assert_int_equal(r.stat.aversion, i == 2 ? -1 : 0);
        union wire_body path = {.path = clave__jbytes(paths[i])};
        assert_int_equal(memserver_call(&p.c, OP_GET_ACL, &path, &r), CLAVE_OK);
        struct jreader acls = clave__jvec_reader(r.acl);
        assert_int_equal(clave__wire_get_acl(&acls).perms, i == 2 ? PERM_READ : PERM_ALL);
    }
}
