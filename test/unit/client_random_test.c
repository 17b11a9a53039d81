/* Random operations: one client is asked for anything, at any time, from inside and outside of
 * callbacks, while connections, servers, sessions and memory go and come back; and another client
 * wants the same lock. Whatever happens,
 *
 *   every accepted request is answered once, later, and never inside another callback;
 *   a watch that was freed or disarmed, and a mutex that was freed, tell nothing any more;
 *   a deadline that has come is served by a tick;
 *   two never hold the lock, each sure of it;
 *   when the harm is over, everything is answered in good time, those that wait for the lock too;
 *   nothing is left when all has been freed.
 *
 * A failure prints its seed; RANDOM_SEED=n runs that one alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "lib/async_grants.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"

enum { STORIES = 3000, STEPS = 80, PROMISES = 1024, WATCHES = 4, MUTEXES = 2, OWNERS = 2 };
enum { TIMEOUT_MS = 4000, NESTING = 3 };

struct story;

/* One accepted request. */
struct promise {
    struct story *story;
    unsigned answers;
    bool patient; /* it may wait for ever */
    struct watched *watch;
};

struct watched {
    struct story *story;
    clave_async_watch *w;
    bool may_fire;
};

struct locker {
    struct story *story;
    clave_async_mutex *m;
    bool holds[OWNERS]; /* told OK, not lost, not given back */
};

struct story {
    struct rand_state rand;
    struct failmem mem;
    struct memnet *p;
    clave_async_client *c; /* the one it is about */
    struct mutex_owner foreign;
    struct promise promises[PROMISES];
    size_t npromises;
    struct watched watches[WATCHES];
    struct locker lockers[MUTEXES];
    unsigned inside;  /* callbacks */
    unsigned calling; /* public calls */
    unsigned left;    /* what callbacks may still do */
    bool silent;      /* its end: only answers are expected */
    int64_t killed;   /* a session that somebody else ended, behind its owner's back */
};

static uint64_t pick(struct story *t, uint64_t n)
{
    return clave__rand_below(&t->rand, n);
}

static bool chance(struct story *t, unsigned percent)
{
    return pick(t, 100) < percent;
}

static void act(struct story *t);

static void enter_callback(struct story *t)
{
    assert_int_equal(t->inside, 0);
    assert_int_equal(t->calling, 0);
    t->inside++;
}

static void leave_callback(struct story *t)
{
    while (!t->silent && t->left > 0 && chance(t, 30)) {
        t->left--;
        act(t);
    }
    t->inside--;
}

/* ---- promises ------------------------------------------------------------------------ */

static struct promise *promise(struct story *t)
{
    assert_true(t->npromises < PROMISES);
    struct promise *p = &t->promises[t->npromises++];
    *p = (struct promise){.story = t};
    t->calling++;
    return p;
}

/* Behind every call that was given the newest promise. */
static bool accepted(struct story *t, clave_err err)
{
    t->calling--;
    if (err != CLAVE_OK)
        t->npromises--;
    return err == CLAVE_OK;
}

static void answered(struct promise *p)
{
    assert_int_equal(p->answers, 0);
    p->answers++;
}

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    struct promise *p = arg;
    struct story *t = p->story;
    (void)c;
    enter_callback(t);
    answered(p);
    assert_non_null(res->path);
    for (size_t i = 0; i < res->nnames; i++)
        assert_true(strlen(res->names[i]) > 0);
    bool armed = res->err == CLAVE_OK || res->err == CLAVE_ENONODE;
    if (p->watch && !armed && p->watch->w)
        p->watch->may_fire = clave_async_watch_is_armed(p->watch->w); /* by a later request */
    leave_callback(t);
}

/* ---- watches ------------------------------------------------------------------------- */

static void on_event(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    struct watched *seen = arg;
    (void)c;
    enter_callback(seen->story);
    assert_ptr_equal(w, seen->w);
    assert_true(seen->may_fire);
    assert_false(clave_async_watch_is_armed(w));
    seen->may_fire = false;
    size_t length = strlen(ev->path);
    leave_callback(seen->story);
    /* Though the watch may have been used again, or freed. */
    assert_int_equal(strlen(ev->path), length);
}

static struct watched *some_watch(struct story *t)
{
    struct watched *seen = &t->watches[pick(t, WATCHES)];
    if (!seen->w && clave_async_watch_new(&seen->w, t->c, on_event, seen) != CLAVE_OK)
        return NULL;
    seen->story = t;
    return seen;
}

static void drop_watch(struct story *t)
{
    struct watched *seen = &t->watches[pick(t, WATCHES)];
    if (!seen->w)
        return;
    seen->may_fire = false;
    if (chance(t, 50)) {
        clave_async_watch_disarm(seen->w);
    } else {
        clave_async_watch_free(seen->w);
        seen->w = NULL;
    }
}

/* ---- requests ------------------------------------------------------------------------ */

static const char *some_path(struct story *t)
{
    static const char *const paths[] = {"/a", "/a/b", "/a/b/c",          "/l",
                                        "/d", "/",    "/longer/than/all"};
    return paths[pick(t, sizeof paths / sizeof *paths)];
}

static void read_something(struct story *t)
{
    const char *path = some_path(t);
    struct watched *seen = chance(t, 60) ? some_watch(t) : NULL;
    clave_async_watch *w = seen ? seen->w : NULL;
    struct promise *p = promise(t);
    clave_err err;
    p->watch = seen;
    switch (pick(t, 5)) {
    case 0:
        err = clave_async_exists(t->c, path, w, on_result, p);
        break;
    case 1:
        err = clave_async_get(t->c, path, w, on_result, p);
        break;
    case 2:
        err = clave_async_children(t->c, path, w, on_result, p);
        break;
    case 3:
        seen = NULL;
        err = clave_async_sync(t->c, path, on_result, p);
        break;
    default:
        seen = NULL;
        err = clave_async_get_acl(t->c, path, on_result, p);
    }
    p->watch = seen;
    if (accepted(t, err) && seen)
        seen->may_fire = true;
}

static void create_something(struct story *t)
{
    clave_create_options o = {
        .size = sizeof o,
        .mode = (clave_create_mode)pick(t, 5),
        .flags = (unsigned)pick(t, 4),
        .with_names = chance(t, 50),
    };
    bool ephemeral = o.mode == CLAVE_EPHEMERAL || o.mode == CLAVE_EPHEMERAL_SEQUENTIAL;
    if (ephemeral && chance(t, 50))
        o.flags = (o.flags & CLAVE_CREATE_PARENTS) | CLAVE_CREATE_CERTAIN;
    struct promise *p = promise(t);
    accepted(t, clave_async_create(t->c, some_path(t), "data", 4, &o, on_result, p));
}

static void write_something(struct story *t)
{
    const char *path = some_path(t);
    clave_op ops[2] = {{.kind = CLAVE_OP_CHECK, .path = path, .version = -1},
                       {.kind = CLAVE_OP_SET, .path = path, .version = -1}};
    struct promise *p = promise(t);
    clave_err err;
    switch (pick(t, 5)) {
    case 0:
        err = clave_async_set(t->c, path, "more", 4, -1, on_result, p);
        break;
    case 1:
        err = clave_async_delete(t->c, path, -1, on_result, p);
        break;
    case 2:
        err = clave_async_delete_guaranteed(t->c, path, on_result, p);
        break;
    case 3:
        err = clave_async_multi(t->c, ops, pick(t, 3), on_result, p);
        break;
    default:
        err = clave_async_add_auth(t->c, chance(t, 80) ? "digest" : "none", "a:b", 3, on_result, p);
    }
    accepted(t, err);
}

/* ---- the lock ------------------------------------------------------------------------ */

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct promise *p = arg;
    struct story *t = p->story;
    enter_callback(t);
    answered(p);
    for (size_t i = 0; i < MUTEXES; i++)
        if (t->lockers[i].m == m && err == CLAVE_OK)
            t->lockers[i].holds[owner] = true;
    leave_callback(t);
}

static void on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct promise *p = arg;
    (void)m;
    (void)owner;
    (void)err;
    enter_callback(p->story);
    answered(p);
    leave_callback(p->story);
}

static void on_lock_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct locker *k = arg;
    enter_callback(k->story);
    assert_ptr_equal(m, k->m); /* NULL when it was freed */
    if (ev->kind == CLAVE_MUTEX_LOST) {
        assert_true(k->holds[ev->owner]);
        k->holds[ev->owner] = false;
    }
    leave_callback(k->story);
}

static struct locker *some_locker(struct story *t)
{
    struct locker *k = &t->lockers[pick(t, MUTEXES)];
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lock_event, .event_arg = k};
    if (k->m)
        return k;
    *k = (struct locker){.story = t};
    o.max_hold_ms = chance(t, 20) ? 500 : 0;
    o.strict = chance(t, 20);
    return clave_async_mutex_new(&k->m, t->c, "/l", &o) == CLAVE_OK ? k : NULL;
}

static void use_lock(struct story *t)
{
    struct locker *k = some_locker(t);
    uint64_t owner = pick(t, OWNERS);
    if (!k)
        return;
    struct promise *p = promise(t);
    clave_err err;
    switch (pick(t, 8)) {
    case 0:
        err = clave_async_mutex_acquire(k->m, owner, CLAVE_TRY, on_acquired, p);
        break;
    case 1:
        err = clave_async_mutex_acquire(k->m, owner, t->p->now + 700, on_acquired, p);
        break;
    case 2:
    case 3:
        p->patient = true;
        err = clave_async_mutex_acquire(k->m, owner, CLAVE_NEVER, on_acquired, p);
        break;
    case 4:
        err = guarded_set(of_mutex(k->m, owner), "/a", "x", 1, -1, on_result, p);
        break;
    default:
        err = clave_async_mutex_release(k->m, owner, on_released, p);
        k->holds[owner] = clave__mutex_held(k->m, owner, &(struct grant_facts){0});
    }
    accepted(t, err);
}

static void leave_lock(struct story *t)
{
    struct locker *k = &t->lockers[pick(t, MUTEXES)];
    t->calling++;
    if (k->m && chance(t, 70)) {
        clave_async_mutex_cancel(k->m, pick(t, OWNERS));
    } else {
        clave_async_mutex *m = k->m;
        k->m = NULL;
        clave_async_mutex_free(m);
    }
    t->calling--;
}

/* ---- anything ------------------------------------------------------------------------ */

/* A callback that is slow, and knows the time afterwards. */
static void take_time(struct story *t)
{
    t->p->now += (int64_t)pick(t, 300);
    clave_async_client_tick(t->c, t->p->now);
}

/* What may be done inside a callback too. */
static void act(struct story *t)
{
    unsigned what = (unsigned)pick(t, 100);
    if (what < 20)
        read_something(t);
    else if (what < 35)
        create_something(t);
    else if (what < 50)
        write_something(t);
    else if (what < 60)
        drop_watch(t);
    else if (what < 85)
        use_lock(t);
    else if (what < 94)
        leave_lock(t);
    else if (t->inside > 0)
        take_time(t);
    else if (chance(t, 20))
        clave_async_client_close(t->c, t->p->now);
    else if (chance(t, 10))
        clave_async_client_abandon(t->c, t->p->now);
}

static void harm_connection(struct story *t)
{
    static const int ops[] = {MEMNET_ANY,      OP_GET_DATA, OP_GET_CHILDREN2, OP_CREATE2, OP_DELETE,
                              OP_NOTIFICATION, OP_MULTI,    MEMNET_HANDSHAKE, OP_PING,    OP_SYNC};
    struct memnet *p = t->p;
    if (p->nrules == MEMNET_RULES || chance(t, 15))
        memnet_clear(p);
    memnet_rule(p, (struct memnet_rule){.client = pick(t, 4) == 0,
                                        .way = chance(t, 50) ? MEMNET_REQUEST : MEMNET_REPLY,
                                        .op = ops[pick(t, sizeof ops / sizeof *ops)],
                                        .fate = (enum memnet_action)pick(t, 3),
                                        .skip = (unsigned)pick(t, 3)});
}

static void harm(struct story *t)
{
    struct memnet *p = t->p;
    switch (pick(t, 12)) {
    case 0:
    case 1:
        memnet_cut(p, 0);
        break;
    case 2:
        memnet_refuse(p, 0, chance(t, 40));
        break;
    case 3:
        memnet_clear(p);
        memnet_settle(p);
        if (p->clients[0].conn && clave_async_client_is_connected(t->c)) {
            t->killed = clave_async_client_session_id(t->c);
            memnet_kill_session(p, 0);
        }
        break;
    case 4:
        if (p->server)
            memnet_stop_server(p);
        break;
    case 5:
    case 6:
        if (!p->server)
            memnet_start_server(p);
        break;
    case 7:
        failmem_arm(&t->mem, pick(t, 20), pick(t, 4));
        break;
    case 8:
        memnet_freeze(p, 0, !p->clients[0].frozen && chance(t, 50));
        break;
    default:
        harm_connection(t);
    }
}

static void use_stranger(struct story *t)
{
    if (owner_holds(&t->foreign) || t->foreign.lost)
        owner_release(&t->foreign);
    else
        owner_acquire(&t->foreign, 300);
    t->foreign.lost = 0;
}

static void go_on(struct story *t)
{
    switch (pick(t, 4)) {
    case 0:
        memnet_settle(t->p);
        break;
    case 1:
        memnet_advance(t->p, (int64_t)pick(t, 20));
        break;
    case 2:
        memnet_advance(t->p, (int64_t)pick(t, 1000));
        break;
    default:
        if (chance(t, 20))
            memnet_advance(t->p, (int64_t)pick(t, 2 * TIMEOUT_MS));
    }
}

/* ---- what always holds --------------------------------------------------------------- */

static void deadlines_are_served(struct story *t)
{
    if (t->p->clients[0].frozen)
        return;
    for (unsigned ticks = 0; clave_async_client_deadline(t->c) <= t->p->now; ticks++) {
        assert_true(ticks < 20);
        clave_async_client_tick(t->c, t->p->now);
    }
}

static void at_most_one_is_sure(const struct story *t)
{
    unsigned sure = mutex_valid_for(t->foreign.m, 0, t->p->now, 0);
    if (t->killed && t->killed == clave_async_client_session_id(t->c))
        return; /* no promise holds against that */
    for (size_t i = 0; i < MUTEXES; i++)
        for (uint64_t owner = 0; owner < OWNERS && t->lockers[i].m; owner++)
            sure += mutex_valid_for(t->lockers[i].m, owner, t->p->now, 0);
    assert_true(sure <= 1);
}

/* ---- stories ------------------------------------------------------------------------- */

static void begin(struct story *t, uint64_t seed)
{
    static const clave_auth joe = {"digest", "joe:pw", 6};
    memset(t, 0, sizeof *t);
    clave__rand_seed(&t->rand, seed);
    failmem_init(&t->mem);
    t->p = memnet_new(&(struct memnet_options){.clients = 2,
                                               .timeout_ms = TIMEOUT_MS,
                                               .mem = &t->mem.mem,
                                               .chroot = seed % 3 ? "" : "/x",
                                               .ensemble = seed % 2 == 0,
                                               .auth = seed % 5 == 0 ? &joe : NULL});
    t->c = t->p->clients[0].c;
    assert_int_equal(owner_open(&t->foreign, t->p, 1, "/l", NULL), CLAVE_OK);
}

static void heal(struct story *t)
{
    memnet_clear(t->p);
    failmem_arm(&t->mem, 0, 0);
    if (!t->p->server)
        memnet_start_server(t->p);
    memnet_refuse(t->p, 0, false);
    if (t->p->clients[0].frozen)
        memnet_freeze(t->p, 0, false);
}

static bool all_answered(const struct story *t, bool patient)
{
    for (size_t i = 0; i < t->npromises; i++)
        if (t->promises[i].answers == 0 && t->promises[i].patient <= patient)
            return false;
    return true;
}

static void give_back(struct story *t)
{
    owner_release(&t->foreign);
    for (size_t i = 0; i < MUTEXES; i++)
        for (uint64_t owner = 0; owner < OWNERS && t->lockers[i].m; owner++)
            while (clave_async_mutex_release(t->lockers[i].m, owner, NULL, NULL) != CLAVE_ENOTHELD)
                continue;
}

/* No session has to time out for it, but those that were cut off or killed. */
static void all_are_answered_in_time(struct story *t)
{
    heal(t);
    t->left = 0; /* nothing new */
    memnet_advance(t->p, 2 * TIMEOUT_MS);
    assert_true(all_answered(t, false));
    for (size_t turns = 0; turns <= MUTEXES * OWNERS + 1; turns++) {
        give_back(t);
        memnet_advance(t->p, 1500);
    }
    assert_true(all_answered(t, true));
}

/* Freed at once, or after a close that comes through. */
static void end(struct story *t)
{
    if (chance(t, 50)) {
        all_are_answered_in_time(t);
        clave_async_client_close(t->c, t->p->now);
        memnet_advance(t->p, 2 * TIMEOUT_MS);
        assert_int_equal(clave_async_client_state(t->c), CLAVE_STATE_CLOSED);
    }
    t->silent = true;
    for (size_t i = 0; i < WATCHES; i++) {
        clave_async_watch_free(t->watches[i].w);
        t->watches[i] = (struct watched){0};
    }
    for (size_t i = 0; i < MUTEXES; i++) {
        clave_async_mutex *m = t->lockers[i].m;
        t->lockers[i].m = NULL;
        clave_async_mutex_free(m);
    }
    clave_async_mutex_free(t->foreign.m);
    memnet_free(t->p);
    for (size_t i = 0; i < t->npromises; i++)
        assert_int_equal(t->promises[i].answers, 1);
    assert_int_equal(t->mem.live, 0);
}

static void tell(struct story *t, uint64_t seed)
{
    begin(t, seed);
    for (int step = 0; step < STEPS; step++) {
        t->left = NESTING;
        if (chance(t, 55))
            act(t);
        else if (chance(t, 35))
            harm(t);
        else if (chance(t, 20))
            use_stranger(t);
        else
            go_on(t);
        deadlines_are_served(t);
        at_most_one_is_sure(t);
    }
    end(t);
}

static uint64_t seed_told;

static void print_seed(void)
{
    if (seed_told)
        fprintf(stderr, "RANDOM_SEED=%llu\n", (unsigned long long)seed_told);
}

static void every_story_ends_well(void **state)
{
    (void)state;
    static struct story t;
    const char *one = getenv("RANDOM_SEED");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one ? 1 : STORIES); seed++) {
        seed_told = seed;
        tell(&t, seed);
    }
    seed_told = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_story_ends_well)};
    atexit(print_seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
