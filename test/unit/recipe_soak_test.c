/* Read-write locks, semaphores and shared places under random faults: whatever is cut, lost,
 * frozen or restarted, what is valid by its holder's own clock excludes what it should, each
 * callback comes once, and nothing is left. A failure names its seed. */
#include "base/rand.h"
#include "lib/async_grants.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"

enum { CLIENTS = 4, OWNERS = 2, SEEDS = 40, STEPS = 400, TIMEOUT = 6000, LIMIT = 2 };

struct soak {
    struct memnet *p;
    struct rand_state rng;
    uint64_t seed;
    struct rwlock_owner rw[CLIENTS][OWNERS];
    struct semaphore_user sem[CLIENTS];
    unsigned asked[CLIENTS]; /* of the semaphore */
    unsigned asked_side[CLIENTS][OWNERS][2];
    unsigned grants;
};

static uint64_t roll(struct soak *k, uint64_t n)
{
    return clave__rand_below(&k->rng, n);
}

static void check(const struct soak *k, bool fine, const char *what)
{
    if (!fine)
        fail_msg("seed %llu at %lld ms: %s", (unsigned long long)k->seed, (long long)k->p->now,
                 what);
}

static bool is_valid(const struct mutex_owner *s)
{
    return mutex_valid_for(s->m, s->owner, s->p->now, 0);
}

static void look_around(struct soak *k)
{
    unsigned readers = 0, leases = 0;
    int writer = -1;
    for (int i = 0; i < CLIENTS * OWNERS; i++) {
        struct rwlock_owner *s = &k->rw[i / OWNERS][i % OWNERS];
        if (is_valid(&s->write)) {
            check(k, writer < 0, "two writers");
            writer = i;
        }
    }
    for (int i = 0; i < CLIENTS * OWNERS; i++) {
        bool reads = is_valid(&k->rw[i / OWNERS][i % OWNERS].read);
        readers += reads;
        check(k, !reads || writer < 0 || writer == i, "a reader beside another's write");
    }
    for (int i = 0; i < CLIENTS; i++)
        for (size_t n = 0; n < k->sem[i].n; n++)
            leases += lease_valid_for(k->sem[i].held[n], k->p->now, 0);
    check(k, leases <= LIMIT, "more leases than the limit");
    k->grants += readers + leases + (writer >= 0);
}

/* One owner does something with its sides: asks, cancels, or gives back. */
static void use_sides(struct soak *k)
{
    size_t c = roll(k, CLIENTS), o = roll(k, OWNERS), side = roll(k, 2);
    struct rwlock_owner *s = &k->rw[c][o];
    struct mutex_owner *at = side ? &s->write : &s->read;
    int64_t within = roll(k, 4) == 0 ? OWNER_TRY : (int64_t)roll(k, 20000);
    if (roll(k, 8) == 0)
        (void)clave_async_mutex_cancel(at->m, at->owner);
    else if (roll(k, 2) == 0)
        k->asked_side[c][o][side] += owner_begin_acquire(at, within) == CLAVE_OK;
    else
        (void)clave_async_mutex_release(at->m, at->owner, NULL, NULL);
}

static void use_semaphore(struct soak *k)
{
    size_t c = roll(k, CLIENTS);
    struct semaphore_user *a = &k->sem[c];
    if (roll(k, 8) == 0)
        (void)clave_async_semaphore_cancel(a->s, 0);
    else if (a->n > 0)
        (void)semaphore_user_release(a);
    else
        k->asked[c] += semaphore_user_begin_acquire(a, 0, 1 + roll(k, LIMIT),
                                                    (int64_t)roll(k, 20000)) == CLAVE_OK;
}

/* Of the faults of a network, a process and a server: none that ends a session early. */
static void do_harm(struct soak *k)
{
    static const int ops[] = {OP_CREATE2,      OP_GET_CHILDREN2, OP_GET_DATA,     OP_DELETE,
                              OP_NOTIFICATION, OP_MULTI,         MEMNET_HANDSHAKE};
    struct memnet *p = k->p;
    size_t c = roll(k, CLIENTS);
    switch (roll(k, 6)) {
    case 0:
        memnet_cut(p, c);
        break;
    case 1:
        memnet_refuse(p, c, roll(k, 3) == 0);
        break;
    case 2:
        memnet_freeze(p, c, roll(k, 3) == 0);
        break;
    case 3:
        memnet_stop_server(p);
        memnet_advance(p, (int64_t)roll(k, 500));
        memnet_start_server(p);
        break;
    default:
        if (p->nrules == MEMNET_RULES)
            memnet_clear(p);
        memnet_rule(p, (struct memnet_rule){c, roll(k, 2) ? MEMNET_REQUEST : MEMNET_REPLY,
                                            ops[roll(k, sizeof ops / sizeof *ops)],
                                            roll(k, 2) ? MEMNET_LOSE : MEMNET_PASS_CUT,
                                            (unsigned)roll(k, 3)});
    }
}

static void begin(struct soak *k, uint64_t seed)
{
    *k = (struct soak){.seed = seed};
    clave__rand_seed(&k->rng, seed);
    k->p = memnet_new(&(struct memnet_options){.clients = CLIENTS, .timeout_ms = TIMEOUT});
    for (size_t c = 0; c < CLIENTS; c++) {
        assert_int_equal(rwlock_owner_open(&k->rw[c][0], k->p, c, "/rw", NULL), CLAVE_OK);
        rwlock_owner_share(&k->rw[c][1], &k->rw[c][0], 1);
        semaphore_user_open(&k->sem[c], k->p, c, LIMIT);
    }
}

/* The faults end: waiters are served or time out, and everything is released. */
static void end(struct soak *k)
{
    CLOSED_BY(memnet_freed) struct memnet *p = k->p;
    memnet_clear(p);
    for (size_t c = 0; c < CLIENTS; c++) {
        memnet_refuse(p, c, false);
        memnet_freeze(p, c, false);
    }
    memnet_advance(p, 60000);
    look_around(k);
    for (size_t c = 0; c < CLIENTS; c++) {
        check(k, k->sem[c].answers == k->asked[c], "a lease's callback did not come once");
        for (size_t o = 0; o < OWNERS; o++) {
            struct rwlock_owner *s = &k->rw[c][o];
            check(k, s->read.answers == k->asked_side[c][o][0], "a read's callback");
            check(k, s->write.answers == k->asked_side[c][o][1], "a write's callback");
        }
        rwlock_owner_close(&k->rw[c][0]);
        semaphore_user_close(&k->sem[c]);
    }
    memnet_advance(p, 3000);
    struct server_stats stats = memnet_stats(p);
    check(k, stats.ephemerals == 0, "a node is left");
    check(k, stats.watches == 0, "a watch is left");
}

TEST(random_faults_break_nothing)
{
    unsigned grants = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct soak k;
        begin(&k, seed);
        for (int step = 0; step < STEPS; step++) {
            if (roll(&k, 12) == 0)
                do_harm(&k);
            else if (roll(&k, 3) == 0)
                use_semaphore(&k);
            else
                use_sides(&k);
            look_around(&k);
            memnet_advance(k.p, (int64_t)roll(&k, 300));
            look_around(&k);
        }
        end(&k);
        grants += k.grants;
    }
    assert_true(grants > SEEDS * STEPS / 4);
}
