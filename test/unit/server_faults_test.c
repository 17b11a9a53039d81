/* server_faults_test.c - every allocation of the server fails once, and again from there on: an
 * answer as if nothing had been, or a closed connection; never half a change, never a leak. */
#include "lib/failmem.h"
#include "lib/memserver.h"
#include "lib/unit.h"

/* ---- the stage ------------------------------------------------------------------------------- */

/* The server has the memory that fails; the memserver around it has its own. */
struct stage {
    struct failmem mem;
    struct server_options o;
    struct memserver d;
    struct memserver_conn actor, watcher, helper;
    const struct memserver_conn *asked; /* of an act: it answers, or it is closed */
};

/* Nothing kept from before: the next record has to allocate its room. */
static void forget_room(struct stage *st)
{
    CLOSED_BY(clave__buf_fini) struct buf empty;
    clave__buf_init(&empty, &st->mem.mem, 1 << 20);
    clave__server_log_swap(st->d.s, &empty);
}

static void set_stage(struct stage *st)
{
    static char bytes[9000];
    union wire_body big = memserver_create_body("/big", NULL, MODE_PERSISTENT);
    union wire_body all = {.typed = {clave__jbytes("/"), ADD_WATCH_PERSISTENT_RECURSIVE}};
    failmem_init(&st->mem);
    st->o = (struct server_options){
        .mem = &st->mem.mem, .max_output = 20000, .container_check_ms = 1000};
    memserver_open(&st->d, &st->o);
    memserver_connect(&st->actor, &st->d, 10000);
    memserver_connect(&st->watcher, &st->d, 10000);
    memserver_connect(&st->helper, &st->d, 10000);
    big.create.data = clave__jbytes_n(bytes, sizeof bytes);
    assert_int_equal(memserver_call(&st->helper, OP_CREATE, &big, NULL), CLAVE_OK);
    assert_int_equal(memserver_create(&st->helper, "/p", "old", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_create(&st->helper, "/p/x", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_create(&st->helper, "/box", "", MODE_CONTAINER), CLAVE_OK);
    assert_int_equal(memserver_create(&st->helper, "/box/x", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_delete(&st->helper, "/box/x", -1), CLAVE_OK);
    assert_int_equal(memserver_create(&st->actor, "/mine", "", MODE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(memserver_watch(&st->watcher, OP_GET_DATA, "/p"), CLAVE_OK);
    assert_int_equal(memserver_watch(&st->watcher, OP_GET_CHILDREN, "/p"), CLAVE_OK);
    assert_int_equal(memserver_call(&st->watcher, OP_ADD_WATCH, &all, NULL), CLAVE_OK);
    forget_room(st);
}

/* ---- the acts -------------------------------------------------------------------------------- */

static clave_err connect_anew(struct stage *st)
{
    struct wire_connect_request q = {.timeout_ms = 10000};
    struct wire_connect_response r;
    struct memserver_conn c;
    memserver_dial(&c, &st->d);
    q.passwd = clave__jbytes_n(c.passwd, sizeof c.passwd);
    bool fine = c.c && memserver_handshake(&c, &q, &r);
    assert_true(fine || !c.c);
    memserver_hang_up(&c);
    st->asked = NULL;
    return fine ? CLAVE_OK : CLAVE_ECONNLOSS;
}

static clave_err resume(struct stage *st)
{
    struct wire_connect_request q = {.timeout_ms = 10000, .session_id = st->actor.session};
    struct wire_connect_response r;
    struct memserver_conn c;
    memserver_dial(&c, &st->d);
    q.passwd = clave__jbytes_n(st->actor.passwd, sizeof st->actor.passwd);
    bool fine = c.c && memserver_handshake(&c, &q, &r);
    assert_true(fine || !c.c);
    memserver_hang_up(&c);
    st->asked = NULL;
    return fine ? CLAVE_OK : CLAVE_ECONNLOSS;
}

static clave_err create_small(struct stage *st)
{
    return memserver_create(&st->actor, "/p/new", "data", MODE_PERSISTENT);
}

static clave_err create_big(struct stage *st)
{
    static char big[9000];
    union wire_body b = memserver_create_body("/p/big", NULL, MODE_PERSISTENT);
    b.create.data = clave__jbytes_n(big, sizeof big);
    return memserver_call(&st->actor, OP_CREATE2, &b, NULL);
}

static clave_err create_first_ephemeral(struct stage *st)
{
    static char big[9000];
    union wire_body b = memserver_create_body("/p/e-", NULL, MODE_EPHEMERAL_SEQUENTIAL);
    b.create.data = clave__jbytes_n(big, sizeof big);
    st->asked = &st->helper;
    return memserver_call(&st->helper, OP_CREATE, &b, NULL);
}

static clave_err create_second_ephemeral(struct stage *st)
{
    return memserver_create(&st->actor, "/p/e-", NULL, MODE_EPHEMERAL_SEQUENTIAL);
}

static clave_err create_container(struct stage *st)
{
    return memserver_create(&st->actor, "/p/box", "", MODE_CONTAINER);
}

static clave_err create_with_a_new_list(struct stage *st)
{
    union wire_body b = memserver_create_body("/p/secret", "", MODE_PERSISTENT);
    b.create.acl = memserver_acl(PERM_ALL, "digest", "u:p");
    return memserver_call(&st->actor, OP_CREATE, &b, NULL);
}

static clave_err create_in_vain(struct stage *st)
{
    return memserver_create(&st->actor, "/p", "", MODE_PERSISTENT);
}

static clave_err delete_one(struct stage *st)
{
    return memserver_delete(&st->actor, "/p/x", -1);
}

static clave_err set_small(struct stage *st)
{
    return memserver_set(&st->actor, "/p", "new", 0);
}

static clave_err set_big(struct stage *st)
{
    static char big[9000];
    union wire_body b = {.set = {clave__jbytes("/p"), clave__jbytes_n(big, sizeof big), -1}};
    return memserver_call(&st->actor, OP_SET_DATA, &b, NULL);
}

static clave_err set_list(struct stage *st)
{
    union wire_body b = {.set_acl = {clave__jbytes("/p/x"), {0, NULL, 0}, -1}};
    b.set_acl.acl = memserver_acl(PERM_READ, "ip", "10.0.0.0/8");
    return memserver_call(&st->actor, OP_SET_ACL, &b, NULL);
}

static clave_err say_who(struct stage *st)
{
    union wire_body b = {.auth = {0, clave__jbytes("digest"), clave__jbytes("u:p")}};
    struct wire_reply_header h;
    struct jreader r;
    memserver_request(&st->actor, OP_AUTH, &b);
    return memserver_next(&st->actor, &h, &r) ? (clave_err)h.err : CLAVE_ECONNLOSS;
}

static clave_err watch_a_new_path(struct stage *st)
{
    return memserver_watch(&st->actor, OP_EXISTS, "/p/none");
}

static clave_err watch_a_known_path(struct stage *st)
{
    return memserver_watch(&st->actor, OP_GET_CHILDREN2, "/p");
}

static clave_err watch_again(struct stage *st)
{
    static const uint8_t paths[] = {0, 0, 0, 3, '/', '/', 'a', 0, 0, 0, 2, '/', 'p'};
    union wire_body b = {
        .watches = {.exist = {2, paths, sizeof paths}, .persistent = {2, paths, sizeof paths}}};
    struct wire_reply_header h;
    struct jreader r;
    memserver_request(&st->actor, OP_SET_WATCHES2, &b);
    memserver_events(&st->actor);
    return memserver_next(&st->actor, &h, &r) ? (clave_err)h.err : CLAVE_ECONNLOSS;
}

static clave_err multi(struct stage *st, int32_t last_version)
{
    struct wire_op ops[5] = {{OP_CREATE2, memserver_create_body("/p/m", "data", MODE_EPHEMERAL)},
                             {OP_SET_DATA, {.set = {clave__jbytes("/p"), JBYTES_NULL, -1}}},
                             {OP_DELETE, {.check = {clave__jbytes("/p/x"), -1}}},
                             {OP_CREATE, memserver_create_body("/p/x", "", MODE_PERSISTENT)},
                             {OP_CHECK, {.check = {clave__jbytes("/"), last_version}}}};
    struct wire_reply r;
    struct buf b;
    ops[1].body.set.data = clave__jbytes("set in a multi");
    clave__buf_init(&b, &st->d.mem, 4096);
    struct jwriter w = clave__jwriter(&b);
    for (size_t i = 0; i < 5; i++)
        clave__wire_put_op(&w, &ops[i]);
    clave__wire_put_ops_end(&w);
    union wire_body body = {.multi = {5, b.data, b.tail}};
    clave_err err = memserver_call(&st->actor, OP_MULTI, &body, &r);
    clave__buf_fini(&b);
    return err;
}

static clave_err multi_done(struct stage *st)
{
    return multi(st, 0);
}

static clave_err multi_undone(struct stage *st)
{
    return multi(st, 7);
}

static clave_err long_answer(struct stage *st)
{
    union wire_body b = {.read = {clave__jbytes("/big"), false}};
    return memserver_call(&st->actor, OP_GET_DATA, &b, NULL);
}

/* Replies that wait for the disk, frames in pieces, and more than may be taken at once. */
static clave_err in_pieces_while_the_disk_stands(struct stage *st)
{
    union wire_body b = memserver_create_body("/p/s-", "", MODE_PERSISTENT_SEQUENTIAL);
    struct wire_reply_header h;
    struct jreader r;
    int answers = 0;
    st->d.disk_stands = true;
    for (int i = 0; i < 3; i++) {
        memserver_request(&st->actor, OP_CREATE, &b);
        st->d.now++;
        clave__server_tick(st->d.s, st->d.now, memserver_wall(&st->d));
    }
    static const uint8_t ping[] = {0, 0, 0, 8, 255, 255, 255, 254, 0, 0, 0, 11};
    for (size_t i = 0; i < sizeof ping; i++)
        memserver_send(&st->actor, ping + i, 1);
    memserver_flush(&st->d);
    st->d.disk_stands = false;
    memserver_settle(&st->d);
    while (memserver_next(&st->actor, &h, &r))
        answers++;
    return answers == 4 ? CLAVE_OK : CLAVE_ECONNLOSS;
}

static clave_err more_than_is_taken(struct stage *st)
{
    static uint8_t many[19 * 600];
    static const uint8_t one[] = {0, 0, 0, 15, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2, '/', 'p', 0};
    struct wire_reply_header h;
    struct jreader r;
    int answers = 0;
    for (size_t i = 0; i < sizeof many; i += sizeof one)
        memcpy(many + i, one, sizeof one);
    st->actor.deaf = true;
    memserver_send(&st->actor, many, sizeof many);
    st->actor.deaf = false;
    for (const void *p; st->actor.c;) { /* there is room in the socket again */
        size_t n = clave__server_conn_output(st->actor.c, &p);
        if (n == 0)
            break;
        assert_int_equal(clave__buf_append(&st->actor.in, p, n), CLAVE_OK);
        clave__server_conn_sent(st->actor.c, n);
        memserver_settle(&st->d);
    }
    while (memserver_next(&st->actor, &h, &r))
        answers++;
    return answers == 600 ? CLAVE_OK : CLAVE_ECONNLOSS;
}

static clave_err ask_a_word(struct stage *st)
{
    struct memserver_conn c;
    memserver_dial(&c, &st->d);
    memserver_send(&c, "mntr", 4);
    bool answered = clave__buf_len(&c.in) > 0;
    assert_null(c.c);
    memserver_hang_up(&c);
    st->asked = NULL;
    return answered ? CLAVE_OK : CLAVE_ECONNLOSS;
}

static clave_err close_session(struct stage *st)
{
    return memserver_call(&st->actor, OP_CLOSE_SESSION, NULL, NULL);
}

/* Time does what it has to, sooner or later: there is nobody to tell that it could not. */
static clave_err sweep(struct stage *st)
{
    memserver_advance(&st->d, 1000);
    return CLAVE_OK;
}

static clave_err expire(struct stage *st)
{
    memserver_hang_up(&st->actor);
    for (int i = 0; i < 14; i++) {
        memserver_advance(&st->d, 1000);
        if (st->helper.c)
            memserver_call(&st->helper, OP_PING, NULL, NULL);
        if (st->watcher.c)
            clave__server_conn_input(st->watcher.c, "\0\0\0\x8\xff\xff\xff\xfe\0\0\0\xb", 12);
    }
    return CLAVE_OK;
}

#define ACT(f)                                                                                     \
    {                                                                                              \
#f, f                                                                                      \
    }
static const struct act {
    const char *name;
    clave_err (*play)(struct stage *st);
} acts[] = {
    ACT(connect_anew),
    ACT(resume),
    ACT(create_small),
    ACT(create_big),
    ACT(create_first_ephemeral),
    ACT(create_second_ephemeral),
    ACT(create_container),
    ACT(create_with_a_new_list),
    ACT(create_in_vain),
    ACT(delete_one),
    ACT(set_small),
    ACT(set_big),
    ACT(set_list),
    ACT(say_who),
    ACT(watch_a_new_path),
    ACT(watch_a_known_path),
    ACT(watch_again),
    ACT(multi_done),
    ACT(multi_undone),
    ACT(long_answer),
    ACT(in_pieces_while_the_disk_stands),
    ACT(more_than_is_taken),
    ACT(ask_a_word),
    ACT(close_session),
    ACT(sweep),
    ACT(expire),
};

/* ---- what came of it ------------------------------------------------------------------------- */

struct outcome {
    clave_err err;
    uint64_t digest;
    size_t nodes;
    bool watcher_left;
    char events[2048];
};

/* The digest of the whole tree, as a snapshot ends with it. */
static uint64_t digest_of(const struct memserver *d)
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

/* Events of the watcher, without the replies to its pings. */
static void note_events(struct stage *st, struct outcome *o)
{
    struct wire_reply_header h;
    struct jreader r;
    size_t n = 0;
    o->events[0] = '\0';
    do {
        const char *events = memserver_events(&st->watcher);
        n += (size_t)snprintf(o->events + n, sizeof o->events - n, "%s%s", events,
                              *events ? "; " : "");
        assert_true(n < sizeof o->events);
    } while (memserver_next(&st->watcher, &h, &r));
}

static struct outcome play(struct stage *st, const struct act *act, size_t first, size_t fails)
{
    struct outcome o;
    set_stage(st);
    st->asked = &st->actor;
    failmem_arm(&st->mem, first, fails);
    o.err = act->play(st);
    st->mem.first = 0;
    if (o.err == CLAVE_ECONNLOSS && st->asked && st->asked->c)
        fail_msg("%s, allocation %zu: neither an answer nor closed", act->name, first);
    o.digest = digest_of(&st->d);
    o.nodes = memserver_stats(&st->d).nodes;
    o.watcher_left = !st->watcher.c;
    note_events(st, &o);
    return o;
}

/* The log has what the tree has, to the last digest. */
static void assert_log_agrees(const struct stage *st)
{
    CLOSED_BY(memserver_close) struct memserver e;
    struct log_replay r;
    assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
    assert_int_equal(clave__server_replay_log(e.s, st->d.log.data, st->d.log.tail, &r), CLAVE_OK);
    assert_string_equal(e.lines, "");
    assert_true(digest_of(&e) == digest_of(&st->d));
    assert_int_equal(memserver_stats(&e).sessions, memserver_stats(&st->d).sessions);
    assert_int_equal(memserver_stats(&e).last_zxid, memserver_stats(&st->d).last_zxid);
}

/* It goes on as if nothing had been, and leaves nothing behind. */
static void strike_stage(struct stage *st)
{
    struct memserver_conn c;
    assert_log_agrees(st);
    memserver_connect(&c, &st->d, 10000);
    assert_int_equal(memserver_create(&c, "/after", "", MODE_EPHEMERAL), CLAVE_OK);
    memserver_hang_up(&c);
    memserver_hang_up(&st->actor);
    memserver_hang_up(&st->watcher);
    memserver_hang_up(&st->helper);
    assert_int_equal(memserver_stats(&st->d).watches, 0);
    assert_int_equal(memserver_stats(&st->d).connections, 0);
    memserver_advance(&st->d, 60000);
    struct server_stats stats = memserver_stats(&st->d);
    assert_int_equal(stats.sessions, 0);
    assert_int_equal(stats.ephemerals, 0);
    assert_log_agrees(st);
    memserver_close(&st->d);
    assert_int_equal(st->mem.live, 0);
}

static void judge(const struct act *act, size_t first, const struct outcome *before,
                  const struct outcome *fine, const struct outcome *got)
{
    if (got->err != CLAVE_ECONNLOSS && got->err != fine->err)
        fail_msg("%s, allocation %zu: answered with %s", act->name, first,
                 clave_err_name(got->err));
    bool as_before = got->digest == before->digest && got->nodes == before->nodes;
    bool as_meant = got->digest == fine->digest && got->nodes == fine->nodes;
    bool in_parts =
        act->play == in_pieces_while_the_disk_stands || act->play == sweep || act->play == expire;
    if (got->err != CLAVE_ECONNLOSS ? !as_meant && !in_parts : !as_meant && !as_before && !in_parts)
        fail_msg("%s, allocation %zu: half a change", act->name, first);
    if (!got->watcher_left && as_meant && strcmp(got->events, fine->events) != 0)
        fail_msg("%s, allocation %zu: '%s', not '%s'", act->name, first, got->events, fine->events);
}

/* The allocations of one act, each in its turn. */
static size_t fail_each(const struct act *act, size_t fails)
{
    static struct stage st;
    static const struct act nothing = {"nothing", ask_a_word};
    struct outcome before = play(&st, &nothing, 0, 0);
    strike_stage(&st);
    struct outcome fine = play(&st, act, 0, 0);
    assert_true(fine.err != CLAVE_ECONNLOSS);
    strike_stage(&st);
    for (size_t first = 1;; first++) {
        assert_true(first < 1000);
        struct outcome got = play(&st, act, first, fails);
        bool failed = st.mem.failed;
        judge(act, first, &before, &fine, &got);
        strike_stage(&st);
        if (!failed)
            return first - 1;
    }
}

TEST(each_allocation_fails_once)
{
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        fail_each(&acts[i], 1);
}

TEST(all_fail_from_one_on)
{
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        fail_each(&acts[i], SIZE_MAX);
}

/* ---- life and recovery ----------------------------------------------------------------------- */

TEST(a_server_without_memory)
{
    struct failmem mem;
    struct server_options o = {.mem = &mem.mem};
    struct server *s;
    failmem_init(&mem);
    for (size_t first = 1;; first++) {
        failmem_arm(&mem, first, 1);
        clave_err err = clave__server_new(&s, &o);
        if (!mem.failed)
            break;
        assert_int_equal(err, CLAVE_ENOMEM);
        assert_null(s);
        assert_int_equal(mem.live, 0);
    }
    clave__server_free(s);
    assert_int_equal(mem.live, 0);
}

/* What could not be loaded can be loaded once there is memory. */
TEST(a_snapshot_without_memory)
{
    struct stage st;
    struct buf b;
    int64_t zxid;
    char fault[200];
    set_stage(&st);
    clave__buf_init(&b, &st.d.mem, SIZE_MAX / 4);
    assert_int_equal(clave__server_save_snapshot(st.d.s, &b, &zxid), CLAVE_OK);
    for (size_t first = 1, fails = 1;; first++) {
        struct failmem mem;
        struct server_options o = {.mem = &mem.mem};
        struct server *s;
        failmem_init(&mem);
        assert_int_equal(clave__server_new(&s, &o), CLAVE_OK);
        failmem_arm(&mem, first, fails);
        clave_err err = clave__server_load_snapshot(s, b.data, b.tail, fault, sizeof fault);
        bool failed = mem.failed;
        failmem_arm(&mem, 0, 0);
        if (err != CLAVE_OK) {
            assert_int_equal(err, CLAVE_ENOMEM);
            assert_int_equal(clave__server_load_snapshot(s, b.data, b.tail, fault, sizeof fault),
                             CLAVE_OK);
        }
        struct memserver loaded = {.s = s, .mem = st.d.mem};
        assert_true(digest_of(&loaded) == digest_of(&st.d));
        clave__server_free(s);
        assert_int_equal(mem.live, 0);
        if (!failed && fails == SIZE_MAX)
            break;
        if (!failed) {
            fails = SIZE_MAX;
            first = 0;
        }
    }
    clave__buf_fini(&b);
    strike_stage(&st);
}

/* Replaying goes on where it stopped. */
TEST(a_log_without_memory)
{
    struct stage st;
    set_stage(&st);
    assert_int_equal(multi_done(&st), CLAVE_OK);
    assert_int_equal(set_big(&st), CLAVE_OK);
    assert_int_equal(create_with_a_new_list(&st), CLAVE_OK);
    assert_int_equal(close_session(&st), CLAVE_OK);
    for (size_t first = 1;; first++) {
        struct failmem mem;
        struct server_options o = {.mem = &mem.mem};
        struct memserver e;
        struct log_replay r;
        failmem_init(&mem);
        assert_int_equal(memserver_open_bare(&e, &o), CLAVE_OK);
        failmem_arm(&mem, first, 1);
        clave_err err = clave__server_replay_log(e.s, st.d.log.data, st.d.log.tail, &r);
        bool failed = mem.failed;
        if (err != CLAVE_OK) {
            assert_int_equal(err, CLAVE_ENOMEM);
            err = clave__server_replay_log(e.s, st.d.log.data, st.d.log.tail, &r);
        }
        assert_int_equal(err, CLAVE_OK);
        failmem_arm(&mem, 0, 0);
        assert_true(digest_of(&e) == digest_of(&st.d));
        assert_string_equal(e.lines, "");
        memserver_close(&e);
        assert_int_equal(mem.live, 0);
        if (!failed)
            break;
    }
    strike_stage(&st);
}

/* Orphans that could not be removed at the start are removed later. */
TEST(a_start_without_memory)
{
    struct stage st;
    set_stage(&st);
    int64_t zxid = memserver_stats(&st.d).last_zxid;
    for (size_t first = 1;; first++) {
        struct failmem mem;
        struct server_options o = {.mem = &mem.mem};
        struct memserver e;
        struct buf b;
        char fault[200];
        clave__buf_init(&b, &st.d.mem, SIZE_MAX / 4);
        assert_int_equal(clave__server_save_snapshot(st.d.s, &b, &zxid), CLAVE_OK);
        memset(b.data + 16, 0, 4); /* no sessions: */
        memmove(b.data + 20, b.data + 20 + 3 * 12, b.tail - 20 - 3 * 12);
        b.tail -= 3 * 12;
        /* then what they own is nobody's, and the first seal is another. */
        size_t end = b.tail - 13 - 8 - 13 - 20 - 13;
        uint32_t x = 1, y = 0;
        for (size_t i = 0; i < end; i++) {
            x = (x + b.data[i]) % 65521;
            y = (y + x) % 65521;
        }
        struct jwriter w = clave__jwriter(&b);
        clave__jput_int_at(&w, end + 4, (int32_t)(y << 16 | x));
        failmem_init(&mem);
        assert_int_equal(memserver_open_bare(&e, &o), CLAVE_OK);
        assert_int_equal(clave__server_load_snapshot(e.s, b.data, end + 13, fault, sizeof fault),
                         CLAVE_OK);
        assert_int_equal(memserver_stats(&e).ephemerals, 1);
        failmem_arm(&mem, first, 3);
        memserver_start(&e);
        assert_int_equal(memserver_stats(&e).ephemerals, mem.failed);
        bool failed = mem.failed;
        memserver_advance(&e, 20000);
        assert_int_equal(memserver_stats(&e).ephemerals, 0);
        clave__buf_fini(&b);
        memserver_close(&e);
        assert_int_equal(mem.live, 0);
        if (!failed)
            break;
    }
    strike_stage(&st);
}
