/* server_acl_test.c - access lists: what a request's list becomes, who a connection is, and what
 * each operation asks for. */
#include "lib/log_records.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/access/auth.h"

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

struct entry {
    int32_t perms;
    const char *scheme, *id;
};

/* n entries as a vector, in `b`. */
static struct jvec list_of(struct buf *b, const struct entry *e, size_t n)
{
    struct jwriter w = clave__jwriter(b);
    for (size_t i = 0; i < n; i++) {
        struct wire_acl a = {e[i].perms, clave__jbytes(e[i].scheme), clave__jbytes(e[i].id)};
        clave__wire_put_acl(&w, &a);
    }
    assert_int_equal(w.err, CLAVE_OK);
    return (struct jvec){(int32_t)n, b->data, b->tail};
}

static clave_err set_acl(struct memserver_conn *c, const char *path, const struct entry *e,
                         size_t n)
{
    struct buf b;
    clave__buf_init(&b, &c->d->mem, 1 << 20);
    union wire_body body = {.set_acl = {clave__jbytes(path), list_of(&b, e, n), -1}};
    clave_err err = memserver_call(c, OP_SET_ACL, &body, NULL);
    clave__buf_fini(&b);
    return err;
}

static clave_err set_one(struct memserver_conn *c, const char *path, int32_t perms,
                         const char *scheme, const char *id)
{
    const struct entry e = {perms, scheme, id};
    return set_acl(c, path, &e, 1);
}

static clave_err authenticate(struct memserver_conn *c, const char *scheme, const char *auth)
{
    union wire_body b = {.auth = {0, clave__jbytes(scheme), clave__jbytes(auth)}};
    struct wire_reply_header h;
    struct jreader r;
    memserver_request(c, OP_AUTH, &b);
    if (!memserver_next(c, &h, &r))
        return CLAVE_ECONNLOSS;
    assert_int_equal(h.xid, XID_AUTH);
    assert_int_equal(h.zxid, 0);
    return (clave_err)h.err;
}

/* "perms scheme id, ..." */
static const char *text_of(struct jvec acl)
{
    static char text[512];
    struct jreader r = clave__jvec_reader(acl);
    size_t n = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < acl.count; i++) {
        struct wire_acl a = clave__wire_get_acl(&r);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d %.*s %.*s", i ? ", " : "",
                              (int)a.perms, (int)a.scheme.n, a.scheme.p, (int)a.id.n, a.id.p);
        assert_true(n < sizeof text);
    }
    return text;
}

/* As getACL gives it. */
static const char *acl_of(struct memserver_conn *c, const char *path)
{
    struct wire_reply r;
    union wire_body b = {.path = clave__jbytes(path)};
    clave_err err = memserver_call(c, OP_GET_ACL, &b, &r);
    return err == CLAVE_OK ? text_of(r.acl) : clave_err_name(err);
}

/* As it is on the disk: the newest record is a setACL. */
static const char *logged_acl(const struct memserver *d)
{
    enum { TXN_HEADER = 32 };
    size_t at = record_newest(&d->log);
    struct jreader r = clave__jreader(d->log.data + at + RECORD_HEAD + TXN_HEADER,
                                      record_end(&d->log, at) - at - RECORD_HEAD - TXN_HEADER);
    assert_int_equal(record_int(&d->log, at + RECORD_HEAD + TXN_HEADER - 4), OP_SET_ACL);
    clave__jget_bytes(&r);
    struct jvec acl = clave__wire_get_acls(&r);
    assert_false(r.bad);
    return text_of(acl);
}

/* ---- what a list becomes --------------------------------------------------------------------- */

/* The users u:p and v:q. */
#define U "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="
#define V "v:Mfy8apI9YguGKmh+AxUmAFSwkII="

TEST(lists_are_checked_and_fixed_up)
{
    static const struct {
        struct entry e[3];
        size_t n;
        const char *becomes; /* NULL: EINVALIDACL */
    } cases[] = {
        {{{0}}, 0, NULL},
        {{{31, "world", "anyone"}}, 1, "31 world anyone"},
        {{{255, "world", "anyone"}}, 1, "255 world anyone"},
        {{{0, "world", "anyone"}}, 1, "0 world anyone"},
        {{{31, "world", "bob"}}, 1, NULL},
        {{{31, "world", NULL}}, 1, NULL},
        {{{31, NULL, "anyone"}}, 1, NULL},
        {{{31, "nobody", "x"}}, 1, NULL},
        {{{31, "super", ""}}, 1, NULL},
        {{{31, "digest", "bob:x"}}, 1, "31 digest bob:x"},
        {{{31, "digest", "bob"}}, 1, NULL},
        {{{31, "digest", "bob:"}}, 1, NULL},
        {{{31, "digest", "a:b:c"}}, 1, NULL},
        {{{31, "digest", "a:b:"}}, 1, "31 digest a:b:"}, /* as Java splits it: two parts */
        {{{31, "digest", ":b"}}, 1, "31 digest :b"},
        {{{31, "digest", NULL}}, 1, NULL},
        {{{31, "ip", "10.0.0.1"}}, 1, "31 ip 10.0.0.1"},
        {{{31, "ip", "10.0.0.0/8"}}, 1, "31 ip 10.0.0.0/8"},
        {{{31, "ip", ":::1"}}, 1, NULL},
        {{{31, "ip", ""}}, 1, NULL},
        {{{31, "ip", NULL}}, 1, NULL}, /* found by fuzzing: no text at all */
        {{{1, "world", "anyone"}, {31, "digest", "a:b"}, {1, "world", "anyone"}},
         3,
         "1 world anyone, 31 digest a:b"},
        {{{1, "world", "anyone"}, {2, "world", "anyone"}}, 2, "1 world anyone, 2 world anyone"},
        {{{1, "world", "anyone"}, {31, "what", "a:b"}}, 2, NULL},
        {{{3, "auth", "ignored"}}, 1, "3 digest " U ", 3 digest " V},
        {{{1, "world", "anyone"}, {3, "auth", ""}},
         2,
         "1 world anyone, 3 digest " U ", 3 digest " V},
        {{{3, "digest", V}, {3, "auth", ""}}, 2, "3 digest " V ", 3 digest " U},
    };
    CLOSED_BY(close_place) struct place p;
    char path[16];
    open_place(&p);
    assert_int_equal(authenticate(&p.c, "digest", "u:p"), CLAVE_OK);
    assert_int_equal(authenticate(&p.c, "digest", "v:q"), CLAVE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "/n%zu", i);
        assert_int_equal(memserver_create(&p.c, path, "", MODE_PERSISTENT), CLAVE_OK);
        clave_err err = set_acl(&p.c, path, cases[i].e, cases[i].n);
        if (err != (cases[i].becomes ? CLAVE_OK : CLAVE_EINVALIDACL))
            fail_msg("case %zu: %s", i, clave_err_name(err));
        if (cases[i].becomes)
            assert_string_equal(logged_acl(&p.d), cases[i].becomes);
        else
            assert_string_equal(acl_of(&p.c, path), "31 world anyone");
    }
}

/* The same on the way of create, and a null list is none. */
TEST(lists_of_a_new_node)
{
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(clave__buf_fini) struct buf room;
    const struct entry twice[] = {{31, "auth", ""}, {31, "digest", U}};
    union wire_body b = memserver_create_body("/n", "", MODE_PERSISTENT);
    open_place(&p);
    clave__buf_init(&room, &p.d.mem, 4096);
    b.create.acl = (struct jvec){-1, NULL, 0};
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &b, NULL), CLAVE_EINVALIDACL);
    b.create.acl = list_of(&room, twice, 2);
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &b, NULL), CLAVE_EINVALIDACL);
    assert_int_equal(authenticate(&p.c, "digest", "u:p"), CLAVE_OK);
    assert_int_equal(memserver_call(&p.c, OP_CREATE, &b, NULL), CLAVE_OK);
    assert_string_equal(acl_of(&p.c, "/n"), "31 digest " U);
}

/* Beyond a thousand entries a list is refused: each is compared with each. */
TEST(a_list_has_an_end)
{
    enum { MOST = 1024 };
    static struct entry e[MOST + 1];
    static char ids[MOST + 1][16];
    CLOSED_BY(close_place) struct place p;
    open_place(&p);
    assert_int_equal(memserver_create(&p.c, "/n", "", MODE_PERSISTENT), CLAVE_OK);
    for (size_t i = 0; i <= MOST; i++) {
        snprintf(ids[i], sizeof ids[i], "u%zu:x", i);
        e[i] = (struct entry){PERM_ALL, "digest", ids[i]};
    }
    e[0] = (struct entry){PERM_ALL, "world", "anyone"};
    assert_int_equal(set_acl(&p.c, "/n", e, MOST + 1), CLAVE_EINVALIDACL);
    assert_int_equal(set_acl(&p.c, "/n", e, MOST), CLAVE_OK);
}

/* ---- who a connection is --------------------------------------------------------------------- */

TEST(digest_users)
{
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn other;
    open_place(&p);
    memserver_connect(&other, &p.d, 10000);
    assert_int_equal(memserver_create(&p.c, "/n", "x", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(set_one(&p.c, "/n", 31, "auth", ""), CLAVE_EINVALIDACL); /* nobody yet */
    assert_int_equal(authenticate(&p.c, "digest", "bob:pw"), CLAVE_OK);
    assert_int_equal(set_one(&p.c, "/n", 31, "auth", ""), CLAVE_OK);
    assert_string_equal(acl_of(&p.c, "/n"), "31 digest bob:ikIaKsbtGweaHnb/jKn7OHqbunM=");
    assert_int_equal(memserver_set(&other, "/n", "", -1), CLAVE_ENOAUTH);
    assert_int_equal(authenticate(&other, "digest", "bob:wrong"), CLAVE_OK);
    assert_int_equal(memserver_set(&other, "/n", "", -1), CLAVE_ENOAUTH);
    assert_int_equal(authenticate(&other, "digest", "bob:pw"), CLAVE_OK); /* they add up */
    assert_int_equal(memserver_set(&other, "/n", "", -1), CLAVE_OK);
}

/* Users are the connection's, not the session's: who goes on has to say again who it is. */
TEST(users_go_with_the_connection)
{
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn again;
    open_place(&p);
    assert_int_equal(authenticate(&p.c, "digest", "u:p"), CLAVE_OK);
    assert_int_equal(memserver_create(&p.c, "/n", "x", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(set_one(&p.c, "/n", 31, "auth", ""), CLAVE_OK);
    assert_true(memserver_resume(&again, &p.c));
    assert_int_equal(memserver_set(&again, "/n", "", -1), CLAVE_ENOAUTH);
    assert_int_equal(authenticate(&again, "digest", "u:p"), CLAVE_OK);
    assert_int_equal(memserver_set(&again, "/n", "", -1), CLAVE_OK);
}

TEST(who_am_i)
{
    static const char *const expected[] = {"ip",     "127.0.0.1", "digest", "bob",
                                           "digest", "bob",       "digest", "no-colon"};
    CLOSED_BY(close_place) struct place p;
    struct wire_reply r;
    open_place(&p);
    assert_int_equal(authenticate(&p.c, "digest", "bob:pw"), CLAVE_OK);
    assert_int_equal(authenticate(&p.c, "digest", "bob:pw"), CLAVE_OK); /* known */
    assert_int_equal(authenticate(&p.c, "digest", "bob:other"), CLAVE_OK);
    assert_int_equal(authenticate(&p.c, "digest", "no-colon"), CLAVE_OK);
    assert_int_equal(authenticate(&p.c, "ip", ""), CLAVE_OK); /* has it already */
    assert_int_equal(memserver_call(&p.c, OP_WHO_AM_I, NULL, &r), CLAVE_OK);
    assert_int_equal(r.ids.count, 4);
    struct jreader ids = clave__jvec_reader(r.ids);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(clave__jbytes_eq(clave__jget_bytes(&ids), clave__jbytes(expected[i])));
}

TEST_SERVER(wrong_authentication_closes)
{
    static const struct {
        const char *scheme, *auth;
    } bad[] = {{"world", "anyone"}, {"auth", ""},      {"super", "x"},  {"", "x"},
               {NULL, "x"},         {"Digest", "a:b"}, {"digest", NULL}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        memserver_connect(&c, d, 10000);
        assert_int_equal(authenticate(&c, bad[i].scheme, bad[i].auth), CLAVE_EAUTHFAILED);
        assert_null(c.c);
    }
    assert_int_equal(memserver_stats(d).sessions, 7); /* they go on without a connection */
}

TEST(a_connection_has_so_many_users)
{
    CLOSED_BY(close_place) struct place p;
    char auth[16];
    open_place(&p);
    for (int i = 0; i < 64; i++) {
        snprintf(auth, sizeof auth, "u%d:p", i);
        assert_int_equal(authenticate(&p.c, "digest", auth), CLAVE_OK);
    }
    assert_int_equal(authenticate(&p.c, "digest", "u0:p"), CLAVE_OK);
    assert_int_equal(authenticate(&p.c, "digest", "one:more"), CLAVE_EAUTHFAILED);
    assert_null(p.c.c);
}

TEST(addresses)
{
    static const struct {
        const char *id;
        bool valid, matches; /* 127.0.0.1 */
    } cases[] = {
        {"127.0.0.1", true, true},
        {"127.0.0.1/32", true, true},
        {"127.0.0.0/32", true, false},
        {"127.0.0.0/31", true, true},
        {"127.0.0.2/31", true, false},
        {"127.255.255.255/8", true, true},
        {"10.0.0.0/8", true, false},
        {"10.1.2.3/0", true, true},
        {"0.0.0.0", true, false},
        {"255.255.255.255", true, false},
        {"", false, false},
        {"127.0.0", false, false},
        {"127.0.0.1.", false, false},
        {"127.0.0.1.5", false, false},
        {"127.0.0.256", false, false},
        {"127.0.0.1/", false, false},
        {"127.0.0.1/33", false, false},
        {"127.0.0.1/8x", false, false},
        {"127.0.0.1/-1", false, false},
        {" 127.0.0.1", false, false},
        {"127..0.1", false, false},
        {"a.b.c.d", false, false},
        {"127.0.0.00001", false, false},
        {"::1", true, false},
        {"::7f00:1", true, false}, /* another family */
    };
    const struct identities v4 = {.family = 4, .ip = {127, 0, 0, 1}};
    const struct identities v6 = {.family = 6, .ip = {127, 0, 0, 1}};
    const struct identities local = {.family = 0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jbytes id = clave__jbytes(cases[i].id);
        if (clave__ip_valid(id) != cases[i].valid || clave__ip_matches(id, &v4) != cases[i].matches)
            fail_msg("'%s'", cases[i].id);
        assert_false(clave__ip_matches(id, &v6));
        assert_false(clave__ip_matches(id, &local));
    }
    assert_false(clave__ip_valid(JBYTES_NULL));
}

TEST(addresses_of_version_6)
{
    static const struct {
        const char *id;
        bool valid, matches; /* fd00:1::a:b */
    } cases[] = {
        {"fd00:1::a:b", true, true},
        {"FD00:0001:0:0:0:0:000A:B", true, true},
        {"fd00:1::a:b/128", true, true},
        {"fd00:1::a:c/127", true, false},
        {"fd00:1::a:a/127", true, true},
        {"fd00:1::/32", true, true},
        {"fd00::/31", true, true},
        {"fd00::/32", true, false},
        {"fc00::/7", true, true},
        {"::/0", true, true},
        {"::", true, false},
        {"::a:b", true, false},
        {"1:2:3:4:5:6:7:8", true, false},
        {"1:2:3:4:5:6:7::", true, false},
        {"1:2:3:4:5:6:7:8:9", false, false},
        {"1:2:3:4:5:6:7", false, false},
        {"1:2:3:4:5:6:7:8::", false, false},
        {"fd00::1::b", false, false},
        {"fd00:1::a:b/129", false, false},
        {"fd00:1::a:b/", false, false},
        {"fd00:1::a:b:", false, false},
        {":fd00::1", false, false},
        {":::", false, false},
        {"fd00:1::a:0000b", false, false},
        {"fd00:1::g", false, false},
        {":", false, false},
        {"::ffff:127.0.0.1", false, false},
    };
    const struct identities v6 = {.family = 6,
                                  .ip = {0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa, 0, 0xb}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jbytes id = clave__jbytes(cases[i].id);
        if (clave__ip_valid(id) != cases[i].valid || clave__ip_matches(id, &v6) != cases[i].matches)
            fail_msg("'%s'", cases[i].id);
    }
}

/* The uid is an identity of a connection over a Unix socket, as a certificate's subject is of one
 * over TLS; the connection over TCP may name it in a list and never has it. */
TEST(users_of_the_machine)
{
    static const struct {
        const char *id;
        clave_err err;
        bool is_1000;
    } cases[] = {{"1000", CLAVE_OK, true},
                 {"0", CLAVE_OK, false},
                 {"1001", CLAVE_OK, false},
                 {"10000", CLAVE_OK, false},
                 {"4294967294", CLAVE_OK, false},
                 {"4294967295", CLAVE_EINVALIDACL, false},
                 {"4294968296", CLAVE_EINVALIDACL, false}, /* 2^32 + 1000 */
                 {"01000", CLAVE_EINVALIDACL, false},
                 {"1000 ", CLAVE_EINVALIDACL, false},
                 {"-1", CLAVE_EINVALIDACL, false},
                 {"root", CLAVE_EINVALIDACL, false},
                 {"", CLAVE_EINVALIDACL, false},
                 {NULL, CLAVE_EINVALIDACL, false}};
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn local;
    open_place(&p);
    memserver_connect_local(&local, &p.d, 1000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[16];
        snprintf(path, sizeof path, "/u%zu", i);
        assert_int_equal(memserver_create(&p.c, path, "", 0), CLAVE_OK);
        assert_int_equal(set_one(&p.c, path, PERM_WRITE, "uid", cases[i].id), cases[i].err);
        if (cases[i].err != CLAVE_OK)
            continue;
        assert_int_equal(memserver_set(&p.c, path, "", -1), CLAVE_ENOAUTH);
        assert_int_equal(memserver_set(&local, path, "", -1),
                         cases[i].is_1000 ? CLAVE_OK : CLAVE_ENOAUTH);
    }
}

TEST(the_user_in_auth_and_who_am_i)
{
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn local;
    struct wire_reply r;
    open_place(&p);
    memserver_connect_local(&local, &p.d, 1000);
    assert_int_equal(memserver_create(&p.c, "/n", "", 0), CLAVE_OK);
    assert_int_equal(authenticate(&local, "uid", ""), CLAVE_OK); /* has it already */
    assert_int_equal(set_one(&p.c, "/n", 31, "auth", ""), CLAVE_EINVALIDACL);
    assert_int_equal(set_one(&local, "/n", 31, "auth", ""), CLAVE_OK);
    assert_string_equal(logged_acl(&p.d), "31 uid 1000");
    assert_int_equal(memserver_call(&local, OP_WHO_AM_I, NULL, &r), CLAVE_OK);
    assert_int_equal(r.ids.count, 1);
    struct jreader ids = clave__jvec_reader(r.ids);
    assert_true(clave__jbytes_eq(clave__jget_bytes(&ids), clave__jbytes("uid")));
    assert_true(clave__jbytes_eq(clave__jget_bytes(&ids), clave__jbytes("1000")));
    assert_int_equal(authenticate(&p.c, "uid", "1000"), CLAVE_EAUTHFAILED);
}

/* ---- what each operation asks for ------------------------------------------------------------ */

static clave_err check_in_multi(struct memserver_conn *c, const char *path)
{
    struct wire_op op = {OP_CHECK, {.check = {clave__jbytes(path), -1}}};
    struct wire_reply r;
    struct wire_result res;
    struct buf b;
    clave__buf_init(&b, &c->d->mem, 4096);
    struct jwriter w = clave__jwriter(&b);
    clave__wire_put_op(&w, &op);
    clave__wire_put_ops_end(&w);
    union wire_body body = {.multi = {1, b.data, b.tail}};
    assert_int_equal(memserver_call(c, OP_MULTI, &body, &r), CLAVE_OK);
    clave__buf_fini(&b);
    struct jreader results = clave__wire_ops_reader(&r.results);
    assert_true(clave__wire_get_result(&results, &res));
    return (clave_err)res.err;
}

static clave_err try_op(struct memserver_conn *c, int32_t op)
{
    union wire_body b = {.read = {clave__jbytes("/n"), false}};
    union wire_body path = {.path = clave__jbytes("/n")};
    switch (op) {
    case OP_CREATE:
        return memserver_create(c, "/n/new", "", MODE_PERSISTENT);
    case OP_CREATE_CONTAINER:
        return memserver_create(c, "/n/new", "", MODE_CONTAINER);
    case OP_DELETE:
        return memserver_delete(c, "/n/old", -1);
    case OP_SET_DATA:
        return memserver_set(c, "/n", "", -1);
    case OP_SET_ACL:
        return set_one(c, "/n", PERM_ALL, "world", "anyone");
    case OP_CHECK:
        return check_in_multi(c, "/n");
    case OP_GET_ACL:
    case OP_GET_ALL_CHILDREN_NUMBER:
    case OP_SYNC:
        return memserver_call(c, op, &path, NULL);
    default:
        return memserver_call(c, op, &b, NULL);
    }
}

TEST(the_permissions_of_each_operation)
{
    static const struct {
        int32_t op, needs; /* any of these bits; 0: none */
    } cases[] = {
        {OP_EXISTS, PERM_READ},
        {OP_GET_DATA, PERM_READ},
        {OP_GET_CHILDREN, PERM_READ},
        {OP_GET_CHILDREN2, PERM_READ},
        {OP_GET_ALL_CHILDREN_NUMBER, PERM_READ},
        {OP_GET_ACL, PERM_READ | PERM_ADMIN},
        {OP_CHECK, PERM_READ},
        {OP_SET_DATA, PERM_WRITE},
        {OP_SET_ACL, PERM_ADMIN},
        {OP_CREATE, PERM_CREATE}, /* of the parent, as delete's */
        {OP_CREATE_CONTAINER, PERM_CREATE},
        {OP_DELETE, PERM_DELETE},
        {OP_SYNC, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int32_t perms = 0; perms <= PERM_ALL; perms++) {
            CLOSED_BY(close_place) struct place p;
            open_place(&p);
            assert_int_equal(memserver_create(&p.c, "/n", "", MODE_PERSISTENT), CLAVE_OK);
            assert_int_equal(memserver_create(&p.c, "/n/old", "", MODE_PERSISTENT), CLAVE_OK);
            assert_int_equal(set_one(&p.c, "/n/old", 0, "world", "anyone"), CLAVE_OK);
            assert_int_equal(set_one(&p.c, "/n", perms, "world", "anyone"), CLAVE_OK);
            bool allowed = cases[i].needs == 0 || (cases[i].needs & perms);
            clave_err err = try_op(&p.c, cases[i].op);
            if (err != (allowed ? CLAVE_OK : CLAVE_ENOAUTH))
                fail_msg("op %d with %d: %s", cases[i].op, perms, clave_err_name(err));
        }
    }
}

/* Each entry counts by itself: a bit in one, for somebody else, is none for me. */
TEST(entries_count_by_themselves)
{
    static const struct entry mixed[] = {{PERM_WRITE, "digest", U},
                                         {PERM_READ, "world", "anyone"},
                                         {PERM_ADMIN, "ip", "127.0.0.1"},
                                         {PERM_CREATE, "ip", "10.0.0.0/8"}};
    CLOSED_BY(close_place) struct place p;
    open_place(&p);
    assert_int_equal(memserver_create(&p.c, "/n", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(set_acl(&p.c, "/n", mixed, 4), CLAVE_OK);
    assert_int_equal(try_op(&p.c, OP_GET_DATA), CLAVE_OK);
    assert_int_equal(try_op(&p.c, OP_SET_DATA), CLAVE_ENOAUTH);
    assert_int_equal(try_op(&p.c, OP_CREATE), CLAVE_ENOAUTH);
    assert_int_equal(authenticate(&p.c, "digest", "u:p"), CLAVE_OK);
    assert_int_equal(try_op(&p.c, OP_SET_DATA), CLAVE_OK);
    assert_int_equal(try_op(&p.c, OP_CREATE), CLAVE_ENOAUTH);
    assert_int_equal(try_op(&p.c, OP_SET_ACL), CLAVE_OK);
    assert_int_equal(try_op(&p.c, OP_CREATE), CLAVE_OK);
}

/* One who may not administer the node does not see the secrets in its list. */
TEST(secrets_are_masked)
{
    static const struct entry readable[] = {
        {PERM_ALL, "digest", U}, {PERM_READ, "world", "anyone"}, {PERM_READ, "ip", "10.0.0.1"}};
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn other;
    open_place(&p);
    memserver_connect(&other, &p.d, 10000);
    assert_int_equal(authenticate(&p.c, "digest", "u:p"), CLAVE_OK);
    assert_int_equal(memserver_create(&p.c, "/n", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(set_acl(&p.c, "/n", readable, 3), CLAVE_OK);
    assert_string_equal(acl_of(&p.c, "/n"), "31 digest " U ", 1 world anyone, 1 ip 10.0.0.1");
    assert_string_equal(acl_of(&other, "/n"), "31 digest u:x, 1 world anyone, 1 ip 10.0.0.1");
    assert_int_equal(set_one(&p.c, "/n", PERM_ALL, "digest", U), CLAVE_OK);
    assert_string_equal(acl_of(&other, "/n"), "ENOAUTH");
}

/* ---- after a restart ------------------------------------------------------------------------- */

TEST(lists_outlive_the_server)
{
    for (int by_snapshot = 0; by_snapshot < 2; by_snapshot++) {
        CLOSED_BY(close_place) struct place p;
        CLOSED_BY(memserver_close) struct memserver again;
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        struct log_replay replay;
        CLOSED_BY(clave__buf_fini) struct buf snapshot;
        int64_t zxid;
        char fault[200];
        open_place(&p);
        assert_int_equal(authenticate(&p.c, "digest", "u:p"), CLAVE_OK);
        assert_int_equal(memserver_create(&p.c, "/n", "", MODE_PERSISTENT), CLAVE_OK);
        assert_int_equal(set_one(&p.c, "/n", PERM_ALL, "auth", ""), CLAVE_OK);
        assert_int_equal(memserver_create(&p.c, "/open", "", MODE_PERSISTENT), CLAVE_OK);
        assert_int_equal(memserver_open_bare(&again, NULL), CLAVE_OK);
        clave__buf_init(&snapshot, &p.d.mem, SIZE_MAX / 4);
        assert_int_equal(clave__server_save_snapshot(p.d.s, &snapshot, &zxid), CLAVE_OK);
        if (by_snapshot)
            assert_int_equal(clave__server_load_snapshot(again.s, snapshot.data, snapshot.tail,
                                                         fault, sizeof fault),
                             CLAVE_OK);
        else
            assert_int_equal(clave__server_replay_log(again.s, p.d.log.data, p.d.log.tail, &replay),
                             CLAVE_OK);
        memserver_start(&again);
        memserver_connect(&c, &again, 10000);
        assert_string_equal(acl_of(&c, "/open"), "31 world anyone");
        assert_int_equal(memserver_set(&c, "/n", "", -1), CLAVE_ENOAUTH);
        assert_int_equal(authenticate(&c, "digest", "u:p"), CLAVE_OK);
        assert_int_equal(memserver_set(&c, "/n", "", -1), CLAVE_OK);
        assert_string_equal(acl_of(&c, "/n"), "31 digest " U);
    }
}
