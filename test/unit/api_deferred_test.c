/* No call of the asynchronous API runs a callback inside itself, whatever the state of its client:
 * each is made with a flag up, which every callback looks at; and what was accepted is answered
 * once. tools/check-api sees to it that every call with a callback is among these. */
#include "clave/async/cache.h"
#include "clave/async/client.h"
#include "clave/async/counter.h"
#include "clave/async/instances.h"
#include "clave/async/latch.h"
#include "clave/async/leader.h"
#include "clave/async/lock_delay.h"
#include "clave/async/multilock.h"
#include "clave/async/mutex.h"
#include "clave/async/once.h"
#include "clave/async/persistent_node.h"
#include "clave/async/persistent_watcher.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "clave/async/slots.h"
#include "clave/deadlock.h"
#include "lib/async_grants.h"
#include "lib/memnet.h"
#include "lib/unit.h"

static bool inside;       /* a call of the API is under way */
static unsigned owed;     /* callbacks of calls that were accepted */
static unsigned answered; /* those that have run */
static unsigned told;     /* events, states and news */

/* Makes the call. One that is accepted owes a callback when it has one. */
#define ASK(call)                                                                                  \
    do {                                                                                           \
        inside = true;                                                                             \
        clave_err err_ = (call);                                                                   \
        inside = false;                                                                            \
        owed += err_ == CLAVE_OK;                                                                  \
    } while (0)
#define DO(call)                                                                                   \
    do {                                                                                           \
        inside = true;                                                                             \
        (void)(call);                                                                              \
        inside = false;                                                                            \
    } while (0)
#define DO_VOID(call)                                                                              \
    do {                                                                                           \
        inside = true;                                                                             \
        (call);                                                                                    \
        inside = false;                                                                            \
    } while (0)

static void on_answer(void)
{
    assert_false(inside);
    answered++;
}

static void on_news(void)
{
    assert_false(inside);
    told++;
}

/* ---- callbacks ------------------------------------------------------------------------- */

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c, (void)res, (void)arg;
    on_answer();
}

static void on_watch(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    (void)c, (void)w, (void)ev, (void)arg;
    on_news();
}

static void on_mutex(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner, (void)err, (void)arg;
    on_answer();
}

static void on_mutex_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m, (void)ev, (void)arg;
    on_news();
}

static void on_multilock(clave_async_multilock *ml, uint64_t owner, clave_err err,
                         const char *failed, void *arg)
{
    (void)ml, (void)owner, (void)err, (void)failed, (void)arg;
    on_answer();
}

static void on_multilock_event(clave_async_multilock *ml, const clave_multilock_event *ev,
                               void *arg)
{
    (void)ml, (void)ev, (void)arg;
    on_news();
}

static clave_async_lease *lease; /* of the newest acquire of one */

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    (void)s, (void)arg;
    on_answer();
    lease = err == CLAVE_OK && n > 0 ? leases[0] : NULL;
}

static void on_lease_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    (void)s, (void)err, (void)arg;
    on_answer();
}

static void on_lease_event(clave_async_semaphore *s, const clave_lease_event *ev, void *arg)
{
    (void)s, (void)ev, (void)arg;
    on_news();
}

static void on_take(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                    void *arg)
{
    (void)s, (void)err, (void)slot, (void)taken, (void)arg;
    on_answer();
}

static void on_give(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    (void)s, (void)err, (void)slot, (void)arg;
    on_answer();
}

static void on_slots_limit(clave_async_slots *s, clave_err err, void *arg)
{
    (void)s, (void)err, (void)arg;
    on_answer();
}

static void on_slots(clave_async_client *c, clave_err err, const clave_slots_view *view, void *arg)
{
    (void)c, (void)err, (void)view, (void)arg;
    on_answer();
}

static void on_slots_event(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    (void)s, (void)ev, (void)arg;
    on_news();
}

static void on_latch(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l, (void)err, (void)arg;
    on_answer();
}

static void on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    (void)l, (void)ev, (void)arg;
    on_news();
}

static void on_leader(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    (void)w, (void)news, (void)arg;
    on_news();
}

static void on_persistent(clave_async_persistent_watcher *w,
                          const clave_persistent_watcher_event *ev, void *arg)
{
    (void)w, (void)ev, (void)arg;
    on_news();
}

static void on_cache(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    (void)cache, (void)ev, (void)arg;
    on_news();
}

static void on_instances(clave_async_instances *d, const clave_instances_event *ev, void *arg)
{
    (void)d, (void)ev, (void)arg;
    on_news();
}

static void on_transfer(clave_async_client *c, clave_err err, void *arg)
{
    (void)c, (void)err, (void)arg;
    on_answer();
}

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    (void)c, (void)err, (void)list, (void)n, (void)arg;
    on_answer();
}

static void on_deadlocks(clave_async_client *c, clave_err err, const clave_deadlock *list, size_t n,
                         void *arg)
{
    (void)c, (void)err, (void)list, (void)n, (void)arg;
    on_answer();
}

static void on_once(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o, (void)err, (void)former, (void)arg;
    on_answer();
}

static void on_delay(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d, (void)err, (void)arg;
    on_answer();
}

static void on_delay_event(clave_async_delay *d, const clave_identity *who, int64_t delay_ms,
                           void *arg)
{
    (void)d, (void)who, (void)delay_ms, (void)arg;
    on_news();
}

/* ---- the states of a client ------------------------------------------------------------- */

struct stage {
    const char *name;
    void (*set)(struct memnet *p); /* of client 0, which was connected */
};

static void stay(struct memnet *p)
{
    (void)p;
}

/* Nobody has told the client yet that it has no connection, and it cannot get another. */
static void refuse(struct memnet *p)
{
    memnet_refuse(p, 0, true);
}

/* No answer comes any more. */
static void hold_replies(struct memnet *p)
{
    memnet_rule(p, (struct memnet_rule){
                       .client = 0, .way = MEMNET_REPLY, .op = MEMNET_ANY, .fate = MEMNET_HOLD});
}

static void suspend(struct memnet *p)
{
    memnet_refuse(p, 0, true);
    memnet_settle(p);
}

static void lose(struct memnet *p)
{
    memnet_refuse(p, 0, true);
    memnet_settle(p);
    memnet_advance(p, 20000);
}

static void close_client(struct memnet *p)
{
    clave_async_client_close(p->clients[0].c, p->now);
    memnet_settle(p);
}

static void abandon(struct memnet *p)
{
    clave_async_client_abandon(p->clients[0].c, p->now);
}

static const struct stage stages[] = {
    {"connected", stay},    {"cut", refuse},        {"deaf", hold_replies},
    {"suspended", suspend}, {"session lost", lose}, {"closed", close_client},
    {"abandoned", abandon},
};

/* Runs the play once for each stage: set up, come to the stage, play, let time pass, clean up. */
static void at_every_stage(void (*play)(struct memnet *p, clave_async_client *c,
                                        void (*set)(struct memnet *)))
{
    unsigned all = 0;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        memnet_settle(p);
        owed = answered = told = 0;
        lease = NULL;
        play(p, p->clients[0].c, stages[i].set);
        memnet_clear(p);
        memnet_refuse(p, 0, false);
        memnet_settle(p);
        memnet_advance(p, 60000);
        memnet_free(p); /* what still waits is told ECLOSED */
        if (owed != answered)
            fail_msg("%s: %u callbacks were owed, %u have run", stages[i].name, owed, answered);
        all += answered;
    }
    assert_true(all > 0);
}

/* ---- requests --------------------------------------------------------------------------- */

static void ask_everything(clave_async_client *c, clave_async_watch *const w[4])
{
    static const clave_create_options protected_ = {
        .size = sizeof protected_,
        .mode = CLAVE_EPHEMERAL_SEQUENTIAL,
        .flags = CLAVE_CREATE_PARENTS | CLAVE_CREATE_PROTECTED,
        .with_names = true,
    };
    static const clave_create_options certain = {
        .size = sizeof certain,
        .mode = CLAVE_EPHEMERAL,
        .flags = CLAVE_CREATE_CERTAIN,
    };
    static const clave_acl open = {CLAVE_PERM_ALL, "world", "anyone"};
    const clave_op check = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    ASK(clave_async_create(c, "/a", "x", 1, NULL, on_result, NULL));
    ASK(clave_async_create(c, "/p/a", "x", 1, &protected_, on_result, NULL));
    ASK(clave_async_create(c, "/e", "x", 1, &certain, on_result, NULL));
    ASK(clave_async_exists(c, "/a", w[0], on_result, NULL));
    ASK(clave_async_get(c, "/a", w[1], on_result, NULL));
    ASK(clave_async_children(c, "/", w[2], on_result, NULL));
    ASK(clave_async_add_watch(c, "/", CLAVE_WATCH_PERSISTENT_RECURSIVE, w[3], on_result, NULL));
    ASK(clave_async_set(c, "/a", "y", 1, -1, on_result, NULL));
    ASK(clave_async_get_acl(c, "/a", on_result, NULL));
    ASK(clave_async_set_acl(c, "/a", &open, 1, -1, on_result, NULL));
    ASK(clave_async_sync(c, "/", on_result, NULL));
    ASK(clave_async_add_auth(c, "digest", "u:p", 3, on_result, NULL));
    ASK(clave_async_multi(c, &check, 1, on_result, NULL));
    ASK(clave_async_multi(c, NULL, 0, on_result, NULL));
    ASK(clave_async_delete_guaranteed(c, "/e", on_result, NULL));
    ASK(clave_async_delete(c, "/a", -1, on_result, NULL));
    ASK(clave_async_revoke(c, "/none", on_result, NULL));
    ASK(clave_async_participants(c, "/q", on_participants, NULL));
    ASK(clave_async_rwlock_participants(c, "/q", CLAVE_RWLOCK_BOTH, on_participants, NULL));
    ASK(clave_async_semaphore_participants(c, "/q", on_participants, NULL));
    ASK(clave_async_latch_participants(c, "/q", on_participants, NULL));
    ASK(clave_async_latch_leader(c, "/q", on_participants, NULL));
    ASK(clave_async_leader_transfer(c, "/q", NULL, on_transfer, NULL));
    ASK(clave_async_deadlocks_find(c, (const char *const[]){"/"}, 1, on_deadlocks, NULL));
}

static void play_requests(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    clave_async_watch *w[4];
    clave_async_leader_watch *lw;
    clave_async_persistent_watcher *pw;
    clave_async_cache *caches[2];
    clave_async_instances *instances;
    clave_cache_options each = {.size = sizeof each, .without_persistent_watch = true};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(clave_async_watch_new(&w[i], c, on_watch, NULL), CLAVE_OK);
    ask_everything(c, w);
    memnet_settle(p);
    set(p);
    for (size_t i = 0; i < 4; i++)
        DO_VOID(clave_async_watch_disarm(w[i]));
    ask_everything(c, w);
    DO(clave_async_leader_watch_new(&lw, c, "/q", on_leader, NULL));
    DO(clave_async_persistent_watcher_new(&pw, c, "/", NULL, on_persistent, NULL));
    DO(clave_async_cache_new(&caches[0], c, "/", NULL, on_cache, NULL));
    DO(clave_async_cache_new(&caches[1], c, "/", &each, on_cache, NULL));
    DO(clave_async_instances_new(&instances, c, NULL, on_instances, NULL));
    memnet_settle(p);
    for (size_t i = 0; i < 4; i++)
        DO_VOID(clave_async_watch_free(w[i]));
    DO_VOID(clave_async_leader_watch_free(lw));
    DO_VOID(clave_async_persistent_watcher_free(pw));
    DO_VOID(clave_async_cache_free(caches[0]));
    DO_VOID(clave_async_cache_free(caches[1]));
    DO_VOID(clave_async_instances_free(instances));
}

TEST(no_request_is_answered_inside_its_call)
{
    at_every_stage(play_requests);
}

/* ---- other hosts -------------------------------------------------------------------------- */

static void play_hosts(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    clave_async_latch *l;
    const clave_latch_options o = {.size = sizeof o, .event_cb = on_latch_event};
    assert_int_equal(clave_async_latch_new(&l, c, "/q", &o), CLAVE_OK);
    DO(clave_async_latch_start(l));
    memnet_settle(p);
    unsigned leader = told;
    set(p);
    ASK(clave_async_get(c, "/", NULL, on_result, NULL));
    /* The one it is connected to is in none of these. */
    DO(clave_async_client_set_hosts(c, "elsewhere:1", p->now));
    DO(clave_async_client_set_hosts(c, "anywhere:1", p->now + 30000));
    assert_true(leader > 0);
    memnet_settle(p);
    clave_async_latch_free(l);
}

TEST(other_hosts_are_not_told_of_inside_the_call)
{
    at_every_stage(play_hosts);
}

/* What it brings is told by the next call that runs callbacks, and that is due at once. */
TEST(the_loss_of_the_host_is_told_by_the_next_tick)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    clave_async_client *c = p->clients[0].c;
    memnet_settle(p);
    assert_int_equal(clave_async_client_set_hosts(c, "elsewhere:1", p->now), CLAVE_OK);
    assert_false(memnet_saw(p, 0, CLAVE_STATE_SUSPENDED));
    assert_int_equal(clave_async_client_state(c), CLAVE_STATE_SUSPENDED);
    assert_int_equal(clave_async_client_wants(c), CLAVE_WANT_HANGUP);
    assert_int_equal(clave_async_client_deadline(c), p->now);
    clave_async_client_tick(c, p->now);
    assert_true(memnet_saw(p, 0, CLAVE_STATE_SUSPENDED));
}

/* ---- locks -------------------------------------------------------------------------------- */

static const clave_mutex_options mutex_options = {
    .size = sizeof mutex_options, .event_cb = on_mutex_event, .revocable = true};

static void use_grant(struct granted g)
{
    if (g.err == CLAVE_OK) {
        ASK(clave_async_grant_create(g.grant, "/g", "x", 1, CLAVE_PERSISTENT, on_result, NULL));
        ASK(clave_async_grant_set(g.grant, "/g", "x", 1, -1, on_result, NULL));
        ASK(clave_async_grant_delete(g.grant, "/g", -1, on_result, NULL));
        ASK(clave_async_grant_multi(&g.grant, 1, NULL, 0, on_result, NULL));
    }
    DO_VOID(clave_async_grant_free(g.grant));
}

static void use_mutex(struct memnet *p, clave_async_mutex *m)
{
    ASK(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL));
    ASK(clave_async_mutex_acquire(m, 2, CLAVE_TRY, on_mutex, NULL));
    ASK(clave_async_mutex_acquire(m, 3, p->now, on_mutex, NULL));
    ASK(clave_async_mutex_acquire(m, 4, p->now + 1000, on_mutex, NULL));
    DO(clave_async_mutex_cancel(m, 4));
    memnet_settle(p);
    ASK(clave_async_mutex_acquire(m, 1, CLAVE_TRY, on_mutex, NULL)); /* again */
    ASK(clave_async_mutex_acquire(m, 5, CLAVE_NEVER, on_mutex, NULL));
    use_grant(of_mutex(m, 1));
    memnet_settle(p);
    ASK(clave_async_mutex_release(m, 1, on_mutex, NULL));
    ASK(clave_async_mutex_release(m, 1, on_mutex, NULL));
    DO(clave_async_mutex_cancel(m, 5));
}

static void play_mutex(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    clave_async_mutex *m;
    assert_int_equal(clave_async_mutex_new(&m, c, "/m", &mutex_options), CLAVE_OK);
    use_mutex(p, m);
    ASK(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL));
    ASK(clave_async_mutex_acquire(m, 6, CLAVE_NEVER, on_mutex, NULL));
    memnet_settle(p);
    set(p);
    use_mutex(p, m);
    ASK(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL));
    ASK(clave_async_mutex_acquire(m, 7, CLAVE_NEVER, on_mutex, NULL));
    DO_VOID(clave_async_mutex_free(m));
}

static void on_hand_over(clave_async_client *c, clave_err err, const char *session, void *arg)
{
    (void)c, (void)err, (void)session, (void)arg;
    on_answer();
}

static void play_hand_over(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    clave_async_mutex *m;
    assert_int_equal(clave_async_mutex_new(&m, c, "/m", &mutex_options), CLAVE_OK);
    ASK(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL));
    ASK(clave_async_mutex_acquire(m, 2, CLAVE_NEVER, on_mutex, NULL));
    memnet_settle(p);
    set(p);
    ASK(clave_async_client_hand_over(c, p->now + 1000, on_hand_over, NULL));
    ASK(clave_async_client_hand_over(c, CLAVE_NEVER, on_hand_over, NULL));
    ASK(clave_async_mutex_acquire(m, 3, CLAVE_NEVER, on_mutex, NULL));
    memnet_settle(p);
    DO_VOID(clave_async_mutex_free(m));
}

TEST(no_hand_over_is_answered_inside_its_call)
{
    at_every_stage(play_hand_over);
}

static void play_rwlock(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    clave_async_rwlock *rw;
    assert_int_equal(clave_async_rwlock_new(&rw, c, "/rw", &mutex_options), CLAVE_OK);
    for (int round = 0; round < 2; round++) {
        ASK(clave_async_mutex_acquire(clave_async_rwlock_write(rw), 1, CLAVE_NEVER, on_mutex,
                                      NULL));
        memnet_settle(p);
        ASK(clave_async_mutex_acquire(clave_async_rwlock_read(rw), 1, CLAVE_NEVER, on_mutex, NULL));
        ASK(clave_async_mutex_acquire(clave_async_rwlock_read(rw), 2, CLAVE_NEVER, on_mutex, NULL));
        ASK(clave_async_mutex_release(clave_async_rwlock_write(rw), 1, on_mutex, NULL));
        if (round == 0)
            set(p);
        memnet_settle(p);
        ASK(clave_async_mutex_release(clave_async_rwlock_read(rw), 1, on_mutex, NULL));
        ASK(clave_async_mutex_release(clave_async_rwlock_read(rw), 2, on_mutex, NULL));
    }
    DO_VOID(clave_async_rwlock_free(rw));
}

static void play_multilock(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    static const clave_multilock_part parts[] = {{"/m1", CLAVE_MULTILOCK_MUTEX},
                                                 {"/m2", CLAVE_MULTILOCK_WRITE}};
    const clave_multilock_options o = {.size = sizeof o, .event_cb = on_multilock_event};
    clave_async_multilock *ml;
    assert_int_equal(clave_async_multilock_new(&ml, c, parts, 2, &o), CLAVE_OK);
    for (int round = 0; round < 2; round++) {
        ASK(clave_async_multilock_acquire(ml, 1, CLAVE_NEVER, on_multilock, NULL));
        ASK(clave_async_multilock_acquire(ml, 2, CLAVE_TRY, on_multilock, NULL));
        ASK(clave_async_multilock_acquire(ml, 3, CLAVE_NEVER, on_multilock, NULL));
        DO(clave_async_multilock_cancel(ml, 3));
        memnet_settle(p);
        if (round == 0)
            set(p);
        ASK(clave_async_multilock_acquire(ml, 1, CLAVE_NEVER, on_multilock, NULL));
        memnet_settle(p);
        ASK(clave_async_multilock_release(ml, 1, on_multilock, NULL));
        ASK(clave_async_multilock_release(ml, 1, on_multilock, NULL));
    }
    ASK(clave_async_multilock_acquire(ml, 4, CLAVE_NEVER, on_multilock, NULL));
    DO_VOID(clave_async_multilock_free(ml));
}

TEST(no_lock_answers_inside_a_call)
{
    at_every_stage(play_mutex);
    at_every_stage(play_rwlock);
    at_every_stage(play_multilock);
}

/* ---- semaphores ---------------------------------------------------------------------------- */

static void play_semaphore_of(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *),
                              const char *limit_path)
{
    const clave_semaphore_options o = {
        .size = sizeof o, .limit = 1, .limit_path = limit_path, .event_cb = on_lease_event};
    clave_async_semaphore *s;
    assert_int_equal(clave_async_semaphore_new(&s, c, "/s", &o), CLAVE_OK);
    for (int round = 0; round < 2; round++) {
        ASK(clave_async_semaphore_acquire(s, 1, 1, CLAVE_NEVER, on_leases, NULL));
        memnet_settle(p);
        ASK(clave_async_semaphore_acquire(s, 2, 1, CLAVE_TRY, on_leases, NULL));
        ASK(clave_async_semaphore_acquire(s, 3, 1, CLAVE_NEVER, on_leases, NULL));
        DO(clave_async_semaphore_cancel(s, 3));
        clave_async_lease *mine = lease;
        if (round == 0)
            set(p);
        if (limit_path)
            ASK(clave_async_semaphore_set_limit(s, 2, on_result, NULL));
        if (mine) {
            use_grant(of_lease(mine));
            ASK(clave_async_lease_release(mine, on_lease_left, NULL));
        }
        memnet_settle(p);
    }
    ASK(clave_async_semaphore_acquire(s, 4, 1, CLAVE_NEVER, on_leases, NULL));
    DO_VOID(clave_async_semaphore_free(s));
}

static void play_semaphore(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    play_semaphore_of(p, c, set, NULL);
}

static void play_shared_limit(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    play_semaphore_of(p, c, set, "/limit");
}

TEST(no_semaphore_answers_inside_a_call)
{
    at_every_stage(play_semaphore);
    at_every_stage(play_shared_limit);
}

/* ---- slots --------------------------------------------------------------------------------- */

static void play_slots(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    const clave_slots_options o = {.size = sizeof o, .limit = 1, .event_cb = on_slots_event};
    const clave_slot one = {.id = "one"}, two = {.id = "two"}, three = {.id = "three"};
    clave_async_slots *s;
    assert_int_equal(clave_async_slots_new(&s, c, "/slots", &o), CLAVE_OK);
    for (int round = 0; round < 2; round++) {
        ASK(clave_async_slots_take(s, 1, &one, CLAVE_NEVER, on_take, NULL));
        memnet_settle(p);
        ASK(clave_async_slots_take(s, 2, &two, CLAVE_TRY, on_take, NULL));
        ASK(clave_async_slots_take(s, 3, &three, CLAVE_NEVER, on_take, NULL));
        DO(clave_async_slots_cancel(s, 3));
        if (round == 0)
            set(p);
        ASK(clave_async_slots_set_limit(s, 2, on_slots_limit, NULL));
        ASK(clave_async_slots_list(c, "/slots", on_slots, NULL));
        ASK(clave_async_slots_give(s, "one", 0, CLAVE_NEVER, on_give, NULL));
        ASK(clave_async_slots_break(s, &(clave_slot){.id = "two", .reason = "gone"}, CLAVE_NEVER,
                                    on_give, NULL));
        memnet_settle(p);
    }
    ASK(clave_async_slots_take(s, 4, &one, CLAVE_NEVER, on_take, NULL));
    ASK(clave_async_slots_give(s, "two", 0, CLAVE_NEVER, on_give, NULL));
    DO_VOID(clave_async_slots_free(s));
}

TEST(no_slots_answer_inside_a_call)
{
    at_every_stage(play_slots);
}

/* ---- elections ------------------------------------------------------------------------------ */

static clave_latch_layout latch_layout;

static void use_latch(struct memnet *p, clave_async_latch *l)
{
    ASK(clave_async_latch_await(l, CLAVE_NEVER, on_latch, NULL));
    ASK(clave_async_latch_await(l, p->now, on_latch, NULL));
    ASK(clave_async_latch_await(l, CLAVE_NEVER, on_latch, l));
    DO(clave_async_latch_cancel(l, on_latch, l));
    memnet_settle(p);
    ASK(clave_async_latch_await(l, CLAVE_NEVER, on_latch, NULL)); /* leads already, perhaps */
    use_grant(of_latch(l));
    ASK(clave_async_latch_publish(l, "v", 1, on_result, NULL));
    ASK(clave_async_latch_transfer(l, "nobody", on_transfer, NULL));
    DO(clave_async_latch_resign(l));
}

static void play_latch(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    clave_latch_options o = {
        .size = sizeof o, .id = "a", .revocable = true, .event_cb = on_latch_event};
    clave_async_latch *l, *second;
    o.layout = latch_layout;
    o.prefix = o.layout == CLAVE_LATCH_FAIR ? "n_" : NULL;
    assert_int_equal(clave_async_latch_new(&l, c, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_new(&second, c, "/e", &o), CLAVE_OK);
    DO(clave_async_latch_start(l));
    use_latch(p, l);
    memnet_settle(p);
    set(p);
    DO(clave_async_latch_start(second));
    ASK(clave_async_latch_await(second, CLAVE_NEVER, on_latch, NULL));
    use_latch(p, l);
    ASK(clave_async_latch_close(l, CLAVE_CLOSE_NOTIFY_LEADER, on_latch, NULL));
    memnet_settle(p);
    DO_VOID(clave_async_latch_free(l));
    DO_VOID(clave_async_latch_free(second));
}

TEST(no_latch_answers_inside_a_call)
{
    latch_layout = CLAVE_LATCH_CURATOR;
    at_every_stage(play_latch);
    latch_layout = CLAVE_LATCH_FAIR;
    at_every_stage(play_latch);
    latch_layout = CLAVE_LATCH_UNFAIR;
    at_every_stage(play_latch);
}

/* ---- jobs and pauses --------------------------------------------------------------------------
 */

static void play_once(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    const clave_once_options oo = {.size = sizeof oo, .path = "/o"};
    const clave_delay_options d = {.size = sizeof d, .path = "/d", .event_cb = on_delay_event};
    clave_async_mutex *m;
    clave_async_once *once = NULL;
    clave_async_delay *delay = NULL;
    clave_async_grant *g;
    assert_int_equal(clave_async_mutex_new(&m, c, "/m", &mutex_options), CLAVE_OK);
    ASK(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL));
    memnet_settle(p);
    assert_int_equal(clave_async_mutex_grant(m, 1, &g), CLAVE_OK);
    ASK(clave_async_once_begin(&once, g, &oo, on_once, NULL));
    ASK(clave_async_delay_begin(&delay, g, &d, on_delay, NULL));
    memnet_settle(p);
    set(p);
    if (clave_async_grant_deadline(g) != INT64_MIN) {
        clave_async_once *late_once = NULL;
        clave_async_delay *late = NULL;
        ASK(clave_async_once_begin(&late_once, g, &oo, on_once, NULL));
        ASK(clave_async_delay_begin(&late, g, &d, on_delay, NULL));
        memnet_clear(p);
        memnet_refuse(p, 0, false);
        memnet_settle(p);
        memnet_advance(p, 60000);
        DO_VOID(clave_async_once_free(late_once));
        DO_VOID(clave_async_delay_free(late));
    }
    ASK(clave_async_once_end(once, true, on_once, NULL));
    ASK(clave_async_delay_end(delay, on_delay, NULL));
    memnet_clear(p);
    memnet_refuse(p, 0, false);
    memnet_settle(p);
    memnet_advance(p, 60000);
    DO_VOID(clave_async_grant_free(g));
    DO_VOID(clave_async_once_free(once));
    DO_VOID(clave_async_delay_free(delay));
    DO_VOID(clave_async_mutex_free(m));
}

TEST(no_job_answers_inside_a_call)
{
    at_every_stage(play_once);
}

/* ---- nodes that stay ---------------------------------------------------------------------------
 */

static void on_node_event(clave_async_persistent_node *n, const clave_persistent_node_event *ev,
                          void *arg)
{
    (void)n, (void)ev, (void)arg;
    on_news();
}

static void on_node(clave_async_persistent_node *n, clave_err err, void *arg)
{
    (void)n, (void)err, (void)arg;
    on_answer();
}

static void play_persistent_node(struct memnet *p, clave_async_client *c,
                                 void (*set)(struct memnet *))
{
    const clave_persistent_node_options o = {.size = sizeof o, .event_cb = on_node_event};
    clave_async_persistent_node *n = NULL, *late = NULL;
    DO(clave_async_persistent_node_new(&n, c, "/n", &o));
    memnet_settle(p);
    set(p);
    DO(clave_async_persistent_node_new(&late, c, "/late", &o));
    ASK(clave_async_persistent_node_set(n, "x", 1, on_node, NULL));
    ASK(clave_async_persistent_node_close(n, on_node, NULL));
    memnet_clear(p);
    memnet_refuse(p, 0, false);
    memnet_settle(p);
    memnet_advance(p, 60000);
    DO_VOID(clave_async_persistent_node_free(late));
    DO_VOID(clave_async_persistent_node_free(n));
}

static void on_counted(clave_async_counter *n, clave_err err, int64_t before, int64_t after,
                       void *arg)
{
    (void)n, (void)err, (void)before, (void)after, (void)arg;
    on_answer();
}

static void play_counter(struct memnet *p, clave_async_client *c, void (*set)(struct memnet *))
{
    clave_async_counter *n;
    assert_int_equal(clave_async_counter_new(&n, c, "/n"), CLAVE_OK);
    ASK(clave_async_counter_set(n, 1, on_counted, NULL));
    memnet_settle(p);
    set(p);
    ASK(clave_async_counter_add(n, 1, on_counted, NULL));
    ASK(clave_async_counter_get(n, on_counted, NULL));
    ASK(clave_async_counter_compare_and_set(n, 2, 3, on_counted, NULL));
    memnet_clear(p);
    memnet_refuse(p, 0, false);
    memnet_settle(p);
    memnet_advance(p, 60000);
    DO_VOID(clave_async_counter_free(n));
}

TEST(no_counter_answers_inside_a_call)
{
    at_every_stage(play_counter);
}

TEST(no_persistent_node_answers_inside_a_call)
{
    at_every_stage(play_persistent_node);
}
