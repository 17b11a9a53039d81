/* Memory that runs out at any point of a client's life. */
#include "lib/candidate.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

/* A story with everything: two clients, the lock, contention, a lost connection, a guarded
 * write, release. Whatever allocation fails, once or from then on for a while: an error or
 * none, nothing left, and the lock works afterwards. */
static void story(struct failmem *mem, size_t first, size_t fails)
{
    struct memnet_options o = {.clients = 2, .timeout_ms = 6000, .mem = &mem->mem};
    failmem_init(mem);
    struct memnet *p = memnet_new(&o);
    struct mutex_owner a, b;
    failmem_arm(mem, first, fails);
    clave_err opened = owner_open(&a, p, 0, "/l", NULL);
    clave_err opened_too = owner_open(&b, p, 1, "/l", NULL);
    if (opened == CLAVE_OK && opened_too == CLAVE_OK) {
        owner_acquire(&a, OWNER_FOREVER);
        owner_acquire(&b, 60000);
        memnet_cut(p, 0);
        memnet_advance(p, 2000);
        owner_write(&a, "/l/data", "x");
        owner_release(&a);
        memnet_advance(p, 4000);
        assert_false(owner_holds(&a) && owner_holds(&b));
        owner_release(&b);
        memnet_advance(p, 4000);
        mem->first = 0; /* there is enough from now on */
        /* Both are as good as new. */
        memnet_advance(p, 4000);
        if (owner_holds(&b))
            owner_release(&b);
        if (!owner_holds(&a))
            assert_int_equal(owner_acquire(&a, OWNER_FOREVER), CLAVE_OK);
        memnet_advance(p, 10000);
        assert_true(owner_holds(&a));
        owner_release(&a);
    }
    mem->first = 0;
    if (opened == CLAVE_OK)
        owner_close(&a);
    if (opened_too == CLAVE_OK)
        owner_close(&b);
    memnet_advance(p, 20000);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    memnet_free(p);
    assert_int_equal(mem->live, 0);
}

/* The same for two candidates: standing, a resignation, a cut, a lost session. */
static void election_story(struct failmem *mem, size_t first, size_t fails)
{
    struct memnet_options o = {.clients = 2, .timeout_ms = 6000, .mem = &mem->mem};
    failmem_init(mem);
    struct memnet *p = memnet_new(&o);
    struct candidate s[2];
    clave_err opened[2];
    failmem_arm(mem, first, fails);
    for (size_t i = 0; i < 2; i++) {
        opened[i] = candidate_open(&s[i], p, i, "/e", NULL);
        if (opened[i] == CLAVE_OK)
            candidate_start(&s[i]);
    }
    if (opened[0] == CLAVE_OK && opened[1] == CLAVE_OK) {
        candidate_await(&s[0], 100);
        candidate_resign(&s[0]);
        memnet_cut(p, 1);
        memnet_advance(p, 3000);
        memnet_kill_session(p, 0);
        memnet_advance(p, 4000);
        assert_true(candidate_count_leaders(s, 2) <= 1);
        mem->first = 0; /* there is enough from now on */
        for (size_t i = 0; i < 2; i++)
            if (clave_async_latch_state_of(s[i].l) == CLAVE_LATCH_LATENT)
                candidate_start(&s[i]);
        memnet_advance(p, 20000);
        assert_int_equal(candidate_count_leaders(s, 2), 1);
        assert_int_equal(memnet_stats(p).ephemerals, 2);
    }
    mem->first = 0;
    for (size_t i = 0; i < 2; i++)
        if (opened[i] == CLAVE_OK)
            candidate_close(&s[i]);
    memnet_advance(p, 20000);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    memnet_free(p);
    assert_int_equal(mem->live, 0);
}

typedef void a_story(struct failmem *mem, size_t first, size_t fails);

static void with_any_failure(a_story *tell)
{
    struct failmem mem;
    static const size_t runs[] = {1, 3, 20};
    for (size_t i = 0; i < 3; i++) {
        size_t first = 1;
        do
            tell(&mem, first++, runs[i]);
        while (mem.failed);
        assert_true(first > 50);
    }
}

TEST(any_allocation_may_fail)
{
    with_any_failure(story);
}

TEST(any_allocation_of_an_election_may_fail)
{
    with_any_failure(election_story);
}

TEST(a_client_without_memory_is_none)
{
    struct failmem mem;
    clave_async_client *c = NULL;
    clave_client_options o = {.size = sizeof o, .hosts = "a,b/c", .seed = 7, .mem = &mem.mem};
    for (size_t n = 1; !c; n++) {
        failmem_init(&mem);
        failmem_arm(&mem, n, 1);
        clave_err err = clave_async_client_new(&c, &o);
        assert_true(err == CLAVE_OK || err == CLAVE_ENOMEM);
        assert_int_equal(err == CLAVE_OK, c != NULL);
        if (!c)
            assert_int_equal(mem.live, 0);
    }
    clave_async_client_free(c);
    assert_int_equal(mem.live, 0);
}
