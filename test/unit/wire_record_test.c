/* wire_record_test.c - every message against its layout, both ways, and cut at every byte. */
#include "lib/failmem.h"
#include "lib/unit.h"
#include "wire/opcode.h"
#include "wire/record.h"

/* ---- layouts --------------------------------------------------------------------------------- */

/* Bytes written as words, independent of the code under test: i7 an int, l7 a long, b1 a boolean,
 * s/a a string, s an empty one, n a null one, h1 the MultiHeader of type 1, end the last one, stat
 * and acl those of STAT and ACL below. */
struct bytes {
    uint8_t at[1024];
    size_t n;
};

static void lay_number(struct bytes *b, int64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++)
        b->at[b->n++] = (uint8_t)((uint64_t)v >> (8 * (width - 1 - i)));
}

static void lay_out(struct bytes *b, const char *layout);

static void lay_word(struct bytes *b, const char *word, size_t n)
{
    int64_t v = strtoll(word + 1, NULL, 10);
    if (n == 4 && memcmp(word, "stat", 4) == 0) {
        lay_out(b, "l1 l2 l3 l4 i5 i6 i7 l8 i9 i10 l11");
    } else if (n == 3 && memcmp(word, "acl", 3) == 0) {
        lay_out(b, "i2 i31 sworld sanyone i1 sdigest su:p");
    } else if (n == 3 && memcmp(word, "end", 3) == 0) {
        lay_out(b, "i-1 b1 i-1");
    } else if (*word == 'h') {
        lay_number(b, v, 4);
        lay_out(b, "b0 i-1");
    } else if (*word == 'n') {
        lay_number(b, -1, 4);
    } else if (*word == 's') {
        lay_number(b, (int64_t)n - 1, 4);
        memcpy(b->at + b->n, word + 1, n - 1);
        b->n += n - 1;
    } else {
        lay_number(b, v, *word == 'i' ? 4 : *word == 'l' ? 8 : 1);
    }
}

static void lay_out(struct bytes *b, const char *layout)
{
    while (*layout) {
        size_t n = strcspn(layout, " ");
        lay_word(b, layout, n);
        layout += n + (layout[n] == ' ' ? 1 : 0);
    }
}

static struct bytes laid_out(const char *layout)
{
    struct bytes b = {.n = 0};
    lay_out(&b, layout);
    return b;
}

/* ---- samples --------------------------------------------------------------------------------- */

#define S(text)                                                                                    \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }
#define NUL                                                                                        \
    {                                                                                              \
        NULL, -1                                                                                   \
    }
#define V(count, bytes)                                                                            \
    {                                                                                              \
        count, (const uint8_t *)bytes, sizeof bytes - 1                                            \
    }
#define ACL                                                                                        \
    V(2, "\0\0\0\x1f\0\0\0\5world\0\0\0\6anyone"                                                   \
         "\0\0\0\1\0\0\0\6digest\0\0\0\3u:p")
#define STAT                                                                                       \
    {                                                                                              \
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11                                                          \
    }
#define OPS(count, bytes)                                                                          \
    {                                                                                              \
        count, (const uint8_t *)bytes, sizeof bytes - 1                                            \
    }
#define END "\xff\xff\xff\xff\1\xff\xff\xff\xff"

static const struct {
    int32_t op;
    union wire_body body;
    const char *layout;
} requests[] = {
    {OP_CREATE, {.create = {S("/a"), S("xy"), ACL, 3, 0}}, "s/a sxy acl i3"},
    {OP_CREATE, {.create = {S("/a"), NUL, {-1, NULL, 0}, 0, 0}}, "s/a n i-1 i0"},
    {OP_CREATE, {.create = {NUL, S(""), {0, NULL, 0}, 0, 0}}, "n s i0 i0"},
    {OP_CREATE2, {.create = {S("/a"), S("xy"), ACL, 1, 0}}, "s/a sxy acl i1"},
    {OP_CREATE_CONTAINER, {.create = {S("/a"), S(""), ACL, 4, 0}}, "s/a s acl i4"},
    {OP_CREATE_TTL, {.create = {S("/a"), S(""), ACL, 5, 60000}}, "s/a s acl i5 l60000"},
    {OP_DELETE, {.check = {S("/a"), -1}}, "s/a i-1"},
    {OP_EXISTS, {.read = {S("/a"), true}}, "s/a b1"},
    {OP_GET_DATA, {.read = {S("/a"), false}}, "s/a b0"},
    {OP_GET_CHILDREN, {.read = {S("/a"), true}}, "s/a b1"},
    {OP_GET_CHILDREN2, {.read = {S("/a"), true}}, "s/a b1"},
    {OP_SET_DATA, {.set = {S("/a"), S("xy"), 7}}, "s/a sxy i7"},
    {OP_SET_DATA, {.set = {S("/a"), NUL, -1}}, "s/a n i-1"},
    {OP_GET_ACL, {.path = S("/a")}, "s/a"},
    {OP_SET_ACL, {.set_acl = {S("/a"), ACL, 7}}, "s/a acl i7"},
    {OP_SYNC, {.path = S("/a")}, "s/a"},
    {OP_PING, {.path = NUL}, ""},
    {OP_CHECK, {.check = {S("/a"), 7}}, "s/a i7"},
    {OP_RECONFIG, {.reconfig = {S("j"), NUL, S("m"), -1}}, "sj n sm l-1"},
    {OP_CHECK_WATCHES, {.typed = {S("/a"), 3}}, "s/a i3"},
    {OP_REMOVE_WATCHES, {.typed = {S("/a"), 2}}, "s/a i2"},
    {OP_ADD_WATCH, {.typed = {S("/a"), 1}}, "s/a i1"},
    {OP_DELETE_CONTAINER, {.path = S("/a")}, "s/a"},
    {OP_AUTH, {.auth = {0, S("digest"), S("u:p")}}, "i0 sdigest su:p"},
    {OP_SASL, {.path = S("token")}, "stoken"},
    {OP_SET_WATCHES,
     {.watches = {99,
                  V(1, "\0\0\0\2/d"),
                  V(1, "\0\0\0\2/e"),
                  V(2, "\0\0\0\2/c\0\0\0\2/k"),
                  {0, NULL, 0},
                  {0, NULL, 0}}},
     "l99 i1 s/d i1 s/e i2 s/c s/k"},
    {OP_SET_WATCHES2,
     {.watches = {99,
                  V(1, "\0\0\0\2/d"),
                  {0, NULL, 0},
                  {-1, NULL, 0},
                  V(1, "\0\0\0\2/p"),
                  V(1, "\0\0\0\2/r")}},
     "l99 i1 s/d i0 i-1 i1 s/p i1 s/r"},
    {OP_GET_EPHEMERALS, {.path = S("/a")}, "s/a"},
    {OP_GET_ALL_CHILDREN_NUMBER, {.path = S("/a")}, "s/a"},
    {OP_WHO_AM_I, {.path = NUL}, ""},
    {OP_CLOSE_SESSION, {.path = NUL}, ""},
    {OP_MULTI, {.multi = OPS(0, END)}, "end"},
    {OP_MULTI,
     {.multi = OPS(3, "\0\0\0\2\0\xff\xff\xff\xff\0\0\0\2/a\0\0\0\5"
                      "\0\0\0\5\0\xff\xff\xff\xff\0\0\0\2/b\0\0\0\1x\xff\xff\xff\xff"
                      "\0\0\0\x0d\0\xff\xff\xff\xff\0\0\0\2/c\0\0\0\6" END)},
     "h2 s/a i5 h5 s/b sx i-1 h13 s/c i6 end"},
    {OP_MULTI_READ,
     {.multi = OPS(2, "\0\0\0\4\0\xff\xff\xff\xff\0\0\0\2/a\0"
                      "\0\0\0\x08\0\xff\xff\xff\xff\0\0\0\2/b\1" END)},
     "h4 s/a b0 h8 s/b b1 end"},
};

static const struct {
    int32_t op;
    struct wire_reply reply;
    const char *layout;
} replies[] = {
    {OP_CREATE, {.path = S("/a")}, "s/a"},
    {OP_CREATE2, {.path = S("/a"), .stat = STAT}, "s/a stat"},
    {OP_CREATE_CONTAINER, {.path = S("/a"), .stat = STAT}, "s/a stat"},
    {OP_CREATE_TTL, {.path = S("/a"), .stat = STAT}, "s/a stat"},
    {OP_DELETE, {.path = NUL}, ""},
    {OP_EXISTS, {.stat = STAT}, "stat"},
    {OP_GET_DATA, {.data = S("xy"), .stat = STAT}, "sxy stat"},
    {OP_GET_DATA, {.data = NUL, .stat = STAT}, "n stat"},
    {OP_SET_DATA, {.stat = STAT}, "stat"},
    {OP_GET_ACL, {.acl = ACL, .stat = STAT}, "acl stat"},
    {OP_SET_ACL, {.stat = STAT}, "stat"},
    {OP_GET_CHILDREN, {.names = V(2, "\0\0\0\1a\0\0\0\1b")}, "i2 sa sb"},
    {OP_GET_CHILDREN, {.names = {0, NULL, 0}}, "i0"},
    {OP_GET_CHILDREN2, {.names = V(2, "\0\0\0\1a\0\0\0\1b"), .stat = STAT}, "i2 sa sb stat"},
    {OP_SYNC, {.path = S("/a")}, "s/a"},
    {OP_RECONFIG, {.data = S("conf"), .stat = STAT}, "sconf stat"},
    {OP_SASL, {.data = NUL}, "n"},
    {OP_GET_EPHEMERALS, {.names = V(1, "\0\0\0\2/a")}, "i1 s/a"},
    {OP_GET_ALL_CHILDREN_NUMBER, {.number = 12}, "i12"},
    {OP_ADD_WATCH, {.number = 0}, "i0"},
    {OP_WHO_AM_I, {.ids = V(1, "\0\0\0\6digest\0\0\0\1u")}, "i1 sdigest su"},
    {OP_MULTI, {.results = OPS(0, END)}, "end"},
    {OP_PING, {.path = NUL}, ""},
    {OP_CHECK_WATCHES, {.path = NUL}, ""},
    {OP_REMOVE_WATCHES, {.path = NUL}, ""},
    {OP_SET_WATCHES, {.path = NUL}, ""},
    {OP_SET_WATCHES2, {.path = NUL}, ""},
    {OP_DELETE_CONTAINER, {.path = NUL}, ""},
    {OP_CLOSE_SESSION, {.path = NUL}, ""},
    {OP_AUTH, {.path = NUL}, ""},
};

static const struct {
    struct wire_result result;
    const char *layout;
} results[] = {
    {{.op = OP_CREATE, .reply = {.path = S("/a"), .data = NUL}}, "i1 b0 i0 s/a"},
    {{.op = OP_CREATE2, .reply = {.path = S("/a"), .stat = STAT}}, "i15 b0 i0 s/a stat"},
    {{.op = OP_CREATE_CONTAINER, .reply = {.path = S("/a"), .stat = STAT}}, "i19 b0 i0 s/a stat"},
    {{.op = OP_CREATE_TTL, .reply = {.path = S("/a"), .stat = STAT}}, "i21 b0 i0 s/a stat"},
    {{.op = OP_DELETE}, "i2 b0 i0"},
    {{.op = OP_CHECK}, "i13 b0 i0"},
    {{.op = OP_SET_DATA, .reply = {.stat = STAT}}, "i5 b0 i0 stat"},
    {{.op = OP_GET_CHILDREN, .reply = {.names = V(1, "\0\0\0\1a")}}, "i8 b0 i0 i1 sa"},
    {{.op = OP_GET_DATA, .reply = {.data = S("xy"), .stat = STAT}}, "i4 b0 i0 sxy stat"},
    {{.op = OP_ERROR, .err = -101}, "i-1 b0 i-101 i-101"},
    {{.op = OP_ERROR, .err = 0}, "i-1 b0 i0 i0"},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- writing and reading --------------------------------------------------------------------- */

struct out {
    struct failmem mem;
    struct buf b;
    struct jwriter w;
};

static void begin(struct out *o)
{
    failmem_init(&o->mem);
    clave__buf_init(&o->b, &o->mem.mem, 4096);
    o->w = clave__jwriter(&o->b);
}

static void expect(struct out *o, const char *what, size_t number, const struct bytes *want)
{
    assert_int_equal(o->w.err, CLAVE_OK);
    if (o->b.tail != want->n || (want->n > 0 && memcmp(o->b.data, want->at, want->n) != 0))
        fail_msg("%s %zu is written otherwise", what, number);
    clave__buf_fini(&o->b);
    assert_int_equal(o->mem.live, 0);
}

TEST(requests_are_laid_out_so)
{
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct bytes want = laid_out(requests[i].layout);
        struct out o;
        begin(&o);
        clave__wire_put_body(&o.w, requests[i].op, &requests[i].body);
        expect(&o, "request", i, &want);
        assert_non_null(clave__opcode(requests[i].op)->body);
    }
}

/* What is written again, after it was read, is what it was. */
TEST(requests_are_read_so)
{
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct bytes want = {.n = 0};
        struct out o;
        lay_number(&want, 77, 4);
        lay_number(&want, requests[i].op, 4);
        lay_out(&want, requests[i].layout);
        struct jreader r = clave__jreader(want.at, want.n);
        struct wire_request q = clave__wire_get_request(&r);
        assert_false(r.bad);
        assert_int_equal(r.n, 0);
        assert_int_equal(q.xid, 77);
        assert_int_equal(q.op, requests[i].op);
        begin(&o);
        clave__wire_put_request(&o.w, &q);
        expect(&o, "request", i, &want);
    }
}

TEST(replies_are_laid_out_and_read_so)
{
    for (size_t i = 0; i < COUNT(replies); i++) {
        struct bytes want = laid_out(replies[i].layout);
        struct out o;
        begin(&o);
        clave__wire_put_reply(&o.w, replies[i].op, &replies[i].reply);
        expect(&o, "reply", i, &want);
        struct jreader r = clave__jreader(want.at, want.n);
        struct wire_reply m = clave__wire_get_reply(&r, replies[i].op);
        assert_false(r.bad);
        assert_int_equal(r.n, 0);
        begin(&o);
        clave__wire_put_reply(&o.w, replies[i].op, &m);
        expect(&o, "reply", i, &want);
    }
}

TEST(results_are_laid_out_and_read_so)
{
    struct bytes all = {.n = 0};
    for (size_t i = 0; i < COUNT(results); i++) {
        struct bytes want = laid_out(results[i].layout);
        struct out o;
        begin(&o);
        clave__wire_put_result(&o.w, &results[i].result);
        expect(&o, "result", i, &want);
        lay_out(&all, results[i].layout);
    }
    lay_out(&all, "end");
    struct jreader r = clave__jreader(all.at, all.n);
    struct wire_reply m = clave__wire_get_reply(&r, OP_MULTI);
    assert_false(r.bad);
    assert_int_equal(m.results.count, COUNT(results));
    struct out o;
    begin(&o);
    clave__wire_put_reply(&o.w, OP_MULTI, &m);
    expect(&o, "reply of all", 0, &all);
}

/* ---- the fields, by name --------------------------------------------------------------------- */

TEST(a_multi_op_by_op)
{
    struct bytes b = laid_out("h1 s/a sxy acl i3 h2 s/b i5 h5 s/c n i-1 h13 s/d i6 end");
    struct jreader r = clave__jreader(b.at, b.n);
    union wire_body body;
    struct wire_op op;
    clave__wire_get_body(&r, OP_MULTI, &body);
    assert_false(r.bad);
    assert_int_equal(body.multi.count, 4);
    struct jreader ops = clave__wire_ops_reader(&body.multi);
    assert_true(clave__wire_get_op(&ops, &op));
    assert_int_equal(op.op, OP_CREATE);
    assert_true(clave__jbytes_eq(op.body.create.path, clave__jbytes("/a")));
    assert_true(clave__jbytes_eq(op.body.create.data, clave__jbytes("xy")));
    assert_int_equal(op.body.create.acl.count, 2);
    assert_int_equal(op.body.create.flags, 3);
    assert_true(clave__wire_get_op(&ops, &op));
    assert_int_equal(op.op, OP_DELETE);
    assert_int_equal(op.body.check.version, 5);
    assert_true(clave__wire_get_op(&ops, &op));
    assert_int_equal(op.op, OP_SET_DATA);
    assert_int_equal(op.body.set.data.n, -1);
    assert_true(clave__wire_get_op(&ops, &op));
    assert_int_equal(op.op, OP_CHECK);
    assert_int_equal(op.body.check.version, 6);
    assert_false(clave__wire_get_op(&ops, &op));
    assert_false(ops.bad);
}

TEST(stat_and_acl_by_name)
{
    struct bytes b = laid_out("i2 sa sb stat");
    struct jreader r = clave__jreader(b.at, b.n);
    struct wire_reply m = clave__wire_get_reply(&r, OP_GET_CHILDREN2);
    const struct wire_stat *s = &m.stat;
    assert_int_equal(m.names.count, 2);
    assert_true(s->czxid == 1 && s->mzxid == 2 && s->ctime == 3 && s->mtime == 4);
    assert_true(s->version == 5 && s->cversion == 6 && s->aversion == 7);
    assert_true(s->ephemeral_owner == 8 && s->data_length == 9 && s->num_children == 10);
    assert_int_equal(s->pzxid, 11);
    b = laid_out("i31 sworld sanyone");
    r = clave__jreader(b.at, b.n);
    struct wire_acl a = clave__wire_get_acl(&r);
    assert_int_equal(a.perms, 31);
    assert_true(clave__jbytes_eq(a.scheme, clave__jbytes("world")));
    assert_true(clave__jbytes_eq(a.id, clave__jbytes("anyone")));
}

/* ---- headers and the handshake --------------------------------------------------------------- */

TEST(headers_and_events)
{
    struct wire_reply_header h = {-1, 0x100000001, -101};
    struct wire_event e = {3, 4, S("/a")};
    struct bytes want = laid_out("i-1 l4294967297 i-101 i3 i4 s/a i5 i11");
    struct out o;
    begin(&o);
    clave__wire_put_reply_header(&o.w, &h);
    clave__wire_put_event(&o.w, &e);
    clave__wire_put_request(&o.w, &(struct wire_request){.xid = 5, .op = OP_PING});
    expect(&o, "headers", 0, &want);
    struct jreader r = clave__jreader(want.at, want.n);
    struct wire_reply_header h2 = clave__wire_get_reply_header(&r);
    assert_true(h2.xid == -1 && h2.zxid == 0x100000001 && h2.err == -101);
    struct wire_event e2 = clave__wire_get_event(&r);
    assert_true(e2.type == 3 && e2.state == 4 && clave__jbytes_eq(e2.path, clave__jbytes("/a")));
    assert_false(r.bad);
}

/* The byte readOnly came with 3.4: it may be missing, and is answered only when it was there. */
TEST(connect_with_and_without_read_only)
{
    static const char *const layout[] = {"i0 l7 i10000 l9 s0123456789abcdef",
                                         "i0 l7 i10000 l9 s0123456789abcdef b1"};
    static const char *const answer[] = {"i0 i4000 l9 s0123456789abcdef",
                                         "i0 i4000 l9 s0123456789abcdef b1"};
    for (int has = 0; has < 2; has++) {
        struct bytes want = laid_out(layout[has]);
        struct wire_connect_request q = {0, 7, 10000, 9, S("0123456789abcdef"), true, has};
        struct wire_connect_response p = {0, 4000, 9, S("0123456789abcdef"), true, has};
        struct out o;
        assert_int_equal(want.n, has ? 45 : 44);
        begin(&o);
        clave__wire_put_connect_request(&o.w, &q);
        expect(&o, "connect", (size_t)has, &want);
        struct jreader r = clave__jreader(want.at, want.n);
        q = clave__wire_get_connect_request(&r);
        assert_true(!r.bad && r.n == 0 && q.has_read_only == has && q.read_only == has);
        assert_true(q.last_zxid_seen == 7 && q.timeout_ms == 10000 && q.session_id == 9);
        assert_int_equal(q.passwd.n, 16);

        want = laid_out(answer[has]);
        assert_int_equal(want.n, has ? 37 : 36);
        begin(&o);
        clave__wire_put_connect_response(&o.w, &p);
        expect(&o, "connected", (size_t)has, &want);
        r = clave__jreader(want.at, want.n);
        p = clave__wire_get_connect_response(&r);
        assert_true(!r.bad && r.n == 0 && p.has_read_only == has && p.read_only == has);
        assert_true(p.timeout_ms == 4000 && p.session_id == 9);
        for (size_t n = 0; n < 36; n++) {
            r = clave__jreader(want.at, n);
            clave__wire_get_connect_response(&r);
            assert_true(r.bad);
        }
    }
}

/* ---- cut and broken -------------------------------------------------------------------------- */

/* A copy of its own size, so that a read beyond the end is caught. */
static void read_cut(const struct bytes *b, size_t n, int32_t op, bool reply, bool *bad)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, b->at, n);
    struct jreader r = clave__jreader(copy, n);
    if (reply) {
        clave__wire_get_reply(&r, op);
    } else {
        union wire_body body;
        clave__wire_get_body(&r, op, &body);
    }
    *bad = r.bad;
    free(copy);
}

TEST(every_message_cut_at_every_byte)
{
    bool bad;
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct bytes b = laid_out(requests[i].layout);
        for (size_t n = 0; n < b.n; n++) {
            read_cut(&b, n, requests[i].op, false, &bad);
            /* Before 3.9 a deleteContainer was a path without a length: any bytes are one. */
            assert_true(bad || requests[i].op == OP_DELETE_CONTAINER);
        }
    }
    for (size_t i = 0; i < COUNT(replies); i++) {
        struct bytes b = laid_out(replies[i].layout);
        for (size_t n = 0; n < b.n; n++) {
            read_cut(&b, n, replies[i].op, true, &bad);
            assert_true(bad);
        }
    }
    for (size_t i = 0; i < COUNT(results); i++) {
        struct bytes b = laid_out(results[i].layout);
        for (size_t n = 0; n <= b.n; n++) { /* the end is missing also from a whole result */
            read_cut(&b, n, OP_MULTI, true, &bad);
            assert_true(bad);
        }
    }
}

TEST(delete_container_of_both_times)
{
    struct jreader r = clave__jreader("\0\0\0\2/a", 6);
    union wire_body body;
    clave__wire_get_body(&r, OP_DELETE_CONTAINER, &body);
    assert_true(clave__jbytes_eq(body.path, clave__jbytes("/a")));
    r = clave__jreader("/abcdef", 7);
    clave__wire_get_body(&r, OP_DELETE_CONTAINER, &body);
    assert_true(clave__jbytes_eq(body.path, clave__jbytes("/abcdef")));
    assert_true(!r.bad && r.n == 0);
}

TEST(ops_that_are_none)
{
    static const int32_t none[] = {0, 10, 23, 99, 108, -2, -12, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT(none); i++) {
        struct bytes b = {.n = 0};
        lay_number(&b, 5, 4);
        lay_number(&b, none[i], 4);
        lay_out(&b, "swhatever");
        struct jreader r = clave__jreader(b.at, b.n);
        struct wire_request q = clave__wire_get_request(&r);
        assert_true(!r.bad && q.xid == 5 && q.op == none[i]);
        assert_null(clave__opcode(none[i])->body);
    }
}

/* The end of a body that is not known cannot be found: the whole list is bad. */
TEST(multis_that_are_none)
{
    static const char *const bad[] = {
        "h3",           "h3 s/a",         "h99 end",       "h14 end end", "h100 i0 sa sb end",
        "h2 s/a i1",    "h2 s/a i1 h2",   "i2 b0 i0",      "h-1 i0 end",  "h-11 end",
        "h1 s/a s end", "h12 s/a b0 end", "h3 s/a b1 end",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct bytes b = laid_out(bad[i]);
        struct jreader r = clave__jreader(b.at, b.n);
        union wire_body body;
        clave__wire_get_body(&r, OP_MULTI, &body);
        if (!r.bad)
            fail_msg("'%s' is taken", bad[i]);
        assert_int_equal(body.multi.n, 0);
    }
}
