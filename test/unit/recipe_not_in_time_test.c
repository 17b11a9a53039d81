/* What every acquire says when its time is over: EBUSY only if a server has shown it another before
 * it since the connection was lost last, EUNREACHABLE otherwise. One table: each recipe, each thing
 * that may be in the way, waiting and trying. */
#include "clave/async/multilock.h"
#include "lib/candidate.h"
#include "lib/semaphore_user.h"
#include "lib/slot_user.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000, WAIT = 1000, FOR_EVER = OWNER_FOREVER };

/* ---- the recipes ----------------------------------------------------------------------------- */

/* One process at a recipe; what is open depends on the recipe. */
struct party {
    struct memnet *p;
    size_t client;
    struct mutex_owner mutex;
    struct rwlock_owner rw;
    struct semaphore_user semaphore;
    struct slot_user slots;
    struct candidate candidate;
    clave_async_multilock *multilock;
    unsigned answers;
    clave_err err;
};

static void party_answer(struct party *a, clave_err err)
{
    a->answers++;
    a->err = err;
}

static void party_on_mutex(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    party_answer(arg, err);
}

static int64_t party_deadline(const struct party *a, int64_t within)
{
    if (within == OWNER_TRY)
        return CLAVE_TRY;
    return within == FOR_EVER ? CLAVE_NEVER : a->p->now + within;
}

static void mutex_open(struct party *a)
{
    assert_int_equal(owner_open(&a->mutex, a->p, a->client, "/x", NULL), CLAVE_OK);
}

static void mutex_begin(struct party *a, int64_t within)
{
    assert_int_equal(
        clave_async_mutex_acquire(a->mutex.m, 0, party_deadline(a, within), party_on_mutex, a),
        CLAVE_OK);
}

static void mutex_close(struct party *a)
{
    owner_close(&a->mutex);
}

static void rwlock_open(struct party *a)
{
    assert_int_equal(rwlock_owner_open(&a->rw, a->p, a->client, "/x", NULL), CLAVE_OK);
}

static void read_begin(struct party *a, int64_t within)
{
    assert_int_equal(
        clave_async_mutex_acquire(a->rw.read.m, 0, party_deadline(a, within), party_on_mutex, a),
        CLAVE_OK);
}

static void write_begin(struct party *a, int64_t within)
{
    assert_int_equal(
        clave_async_mutex_acquire(a->rw.write.m, 0, party_deadline(a, within), party_on_mutex, a),
        CLAVE_OK);
}

static void rwlock_close(struct party *a)
{
    rwlock_owner_close(&a->rw);
}

static void party_on_multilock(clave_async_multilock *ml, uint64_t owner, clave_err err,
                               const char *failed, void *arg)
{
    (void)ml;
    (void)owner;
    (void)failed;
    party_answer(arg, err);
}

static void multilock_open(struct party *a)
{
    const clave_multilock_part parts[] = {{.path = "/x"}, {.path = "/y"}};
    const clave_multilock_options o = {.size = sizeof o};
    assert_int_equal(
        clave_async_multilock_new(&a->multilock, a->p->clients[a->client].c, parts, 2, &o),
        CLAVE_OK);
}

static void multilock_begin(struct party *a, int64_t within)
{
    assert_int_equal(clave_async_multilock_acquire(a->multilock, 0, party_deadline(a, within),
                                                   party_on_multilock, a),
                     CLAVE_OK);
}

static void multilock_close(struct party *a)
{
    clave_async_multilock_free(a->multilock);
    memnet_settle(a->p);
}

static void semaphore_open(struct party *a)
{
    semaphore_user_open(&a->semaphore, a->p, a->client, 1);
}

static void party_on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *l,
                            size_t n, void *arg)
{
    (void)s;
    (void)l;
    (void)n;
    party_answer(arg, err);
}

static void semaphore_begin(struct party *a, int64_t within)
{
    assert_int_equal(clave_async_semaphore_acquire(a->semaphore.s, 1, 1, party_deadline(a, within),
                                                   party_on_leases, a),
                     CLAVE_OK);
}

static void semaphore_close(struct party *a)
{
    semaphore_user_close(&a->semaphore);
}

static void slots_open(struct party *a)
{
    slot_user_open(&a->slots, a->p, a->client, 1);
}

static void party_on_slot(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                          void *arg)
{
    (void)s;
    (void)slot;
    (void)taken;
    party_answer(arg, err);
}

static void slots_begin(struct party *a, int64_t within)
{
    const clave_slot as = {.id = a->client == 0 ? "ours" : "theirs"};
    assert_int_equal(
        clave_async_slots_take(a->slots.s, 1, &as, party_deadline(a, within), party_on_slot, a),
        CLAVE_OK);
}

static void slots_close(struct party *a)
{
    slot_user_close(&a->slots);
}

static void latch_open(struct party *a)
{
    assert_int_equal(candidate_open(&a->candidate, a->p, a->client, "/x", NULL), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(a->candidate.l), CLAVE_OK);
}

static void race_open(struct party *a)
{
    assert_int_equal(candidate_open_plain(&a->candidate, a->p, a->client, "/x/leader", NULL, NULL),
                     CLAVE_OK);
    assert_int_equal(clave_async_latch_start(a->candidate.l), CLAVE_OK);
}

static void party_on_latch(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    party_answer(arg, err);
}

static void latch_begin(struct party *a, int64_t within)
{
    assert_int_equal(
        clave_async_latch_await(a->candidate.l, party_deadline(a, within), party_on_latch, a),
        CLAVE_OK);
}

static void latch_close(struct party *a)
{
    candidate_close(&a->candidate);
}

struct recipe {
    const char *name;
    void (*open)(struct party *a);
    void (*begin)(struct party *a, int64_t within);
    void (*close)(struct party *a);
    void (*held)(struct party *a, int64_t within); /* the other's acquire; NULL: as `begin` */
};

static const struct recipe recipes[] = {
    {"mutex", mutex_open, mutex_begin, mutex_close, NULL},
    {"read lock", rwlock_open, read_begin, rwlock_close, write_begin},
    {"write lock", rwlock_open, write_begin, rwlock_close, read_begin},
    {"locks of several paths", multilock_open, multilock_begin, multilock_close, NULL},
    {"semaphore", semaphore_open, semaphore_begin, semaphore_close, NULL},
    {"slots", slots_open, slots_begin, slots_close, NULL},
    {"latch", latch_open, latch_begin, latch_close, NULL},
    {"latch of one node", race_open, latch_begin, latch_close, NULL},
};

/* ---- what is in the way ---------------------------------------------------------------------- */

/* Before the acquire begins, and while it waits; the deadline comes after that. */
struct scene {
    const char *name;
    bool held; /* by the other client */
    void (*before)(struct memnet *p);
    void (*during)(struct memnet *p);
    clave_err waits, tries; /* CLAVE_OK: not played */
};

static void no_server(struct memnet *p)
{
    memnet_refuse(p, 0, true);
    memnet_settle(p);
}

static void session_lost(struct memnet *p)
{
    no_server(p);
    memnet_advance(p, 2 * TIMEOUT);
    assert_true(memnet_saw(p, 0, CLAVE_STATE_LOST));
}

/* Nothing the server says arrives. */
static void silence(struct memnet *p)
{
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
}

static void creates_unanswered(struct memnet *p)
{
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 0});
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE, MEMNET_HOLD, 0});
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE_CONTAINER, MEMNET_HOLD, 0});
}

/* The connection is back, and nobody has said yet whether the others are still before us. */
static void back_and_silent(struct memnet *p)
{
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_GET_CHILDREN, MEMNET_HOLD, 0});
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_GET_DATA, MEMNET_HOLD, 0});
    memnet_cut(p, 0);
    memnet_settle(p);
    memnet_advance(p, WAIT / 2);
    assert_true(clave_async_client_is_connected(p->clients[0].c));
}

static void cut_and_back(struct memnet *p)
{
    memnet_cut(p, 0);
    memnet_settle(p);
    memnet_advance(p, WAIT / 2);
    assert_true(clave_async_client_is_connected(p->clients[0].c));
}

static void session_killed_and_back(struct memnet *p)
{
    memnet_kill_session(p, 0);
    memnet_settle(p);
    memnet_advance(p, WAIT / 2);
    assert_true(clave_async_client_is_connected(p->clients[0].c));
}

static const struct scene scenes[] = {
    {"no server", false, no_server, NULL, CLAVE_EUNREACHABLE, CLAVE_EUNREACHABLE},
    {"no server, held by another", true, no_server, NULL, CLAVE_EUNREACHABLE, CLAVE_EUNREACHABLE},
    {"a lost session", true, session_lost, NULL, CLAVE_EUNREACHABLE, CLAVE_EUNREACHABLE},
    {"a server that is silent", true, silence, NULL, CLAVE_EUNREACHABLE, CLAVE_OK},
    {"creates that are not answered", false, creates_unanswered, NULL, CLAVE_EUNREACHABLE,
     CLAVE_OK},
    {"queued, then no server", true, NULL, no_server, CLAVE_EUNREACHABLE, CLAVE_OK},
    {"queued, then a lost session", true, NULL, session_lost, CLAVE_EUNREACHABLE, CLAVE_OK},
    {"queued, cut, back, not looked at again", true, NULL, back_and_silent, CLAVE_EUNREACHABLE,
     CLAVE_OK},
    {"queued, cut, back", true, NULL, cut_and_back, CLAVE_EBUSY, CLAVE_OK},
    {"queued, session killed, back", true, NULL, session_killed_and_back, CLAVE_EBUSY, CLAVE_OK},
    {"held by another", true, NULL, NULL, CLAVE_EBUSY, CLAVE_EBUSY},
};

/* ---- the table ------------------------------------------------------------------------------- */

static unsigned wrong;

static clave_err play(const struct recipe *r, const struct scene *s, int64_t within)
{
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = TIMEOUT});
    struct party ours = {.p = p, .client = 0}, theirs = {.p = p, .client = 1};
    memnet_settle(p);
    r->open(&theirs);
    if (s->held)
        (r->held ? r->held : r->begin)(&theirs, FOR_EVER);
    memnet_settle(p);
    assert_int_equal(theirs.answers, s->held);
    assert_int_equal(theirs.err, CLAVE_OK);
    if (s->before)
        s->before(p);
    r->open(&ours);
    memnet_settle(p); /* a candidate that has just entered knows nothing yet */
    assert_int_equal(ours.answers, 0);
    r->begin(&ours, within);
    memnet_settle(p);
    if (s->during) {
        assert_int_equal(ours.answers, 0);
        s->during(p);
    }
    memnet_advance(p, within == OWNER_TRY ? 0 : within);
    clave_err err = ours.answers == 1 ? ours.err : CLAVE_OK;
    memnet_clear(p);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 3 * TIMEOUT);
    r->close(&ours);
    r->close(&theirs);
    struct server_stats stats = memnet_stats(p);
    assert_int_equal(stats.ephemerals, 0);
    memnet_free(p);
    return err;
}

static void check(const struct recipe *r, const struct scene *s, int64_t within, clave_err want)
{
    clave_err got = play(r, s, within);
    if (got == want)
        return;
    print_error("%s, %s, %s: %s, not %s\n", r->name, s->name,
                within == OWNER_TRY ? "a try" : "a wait", clave_err_name(got),
                clave_err_name(want));
    wrong++;
}

TEST(each_recipe_says_busy_only_when_it_was_shown)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        for (size_t k = 0; k < sizeof scenes / sizeof *scenes; k++) {
            const struct scene *s = &scenes[k];
            /* One whose session is lost on the way needs a longer wait than that. */
            int64_t within = s->during == session_lost ? 3 * TIMEOUT : WAIT;
            check(&recipes[i], s, within, s->waits);
            if (s->tries != CLAVE_OK)
                check(&recipes[i], s, OWNER_TRY, s->tries);
        }
    }
    assert_int_equal(wrong, 0);
}
