/* A server whose bound on watches is reached refuses each watch of a client. What needs one fails,
 * or asks again at times: nothing asks without a pause. */
#include "clave/async/leader.h"
#include "lib/candidate.h"
#include "lib/mutex_owner.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"
#include "server/connection/conn.h"

enum { ACTOR = 0, USER = 1, MINUTE_MS = 60000, MOST_REQUESTS = 300 };

static struct memnet *p;
static clave_async_watch *taken; /* the one that the bound allows */

static void on_taken(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    (void)c, (void)w, (void)ev, (void)arg;
}

static void bound_watches(size_t most)
{
    const size_t limits[SERVER_LIMITS] = {[LIMIT_WATCHES] = most};
    clave__client_limits_set(p->server, limits);
}

static void begin(void)
{
    p = memnet_new(&(struct memnet_options){.clients = 2});
    clave_async_client *actor = p->clients[ACTOR].c;
    memnet_settle(p);
    assert_int_equal(clave_async_watch_new(&taken, actor, on_taken, NULL), CLAVE_OK);
    assert_int_equal(clave_async_exists(actor, "/taken", taken, NULL, NULL), CLAVE_OK);
    memnet_settle(p);
}

/* From here on the user is refused. */
static void refuse(void)
{
    bound_watches(1);
    memnet_reset_counts(p);
}

static void assert_paced(const char *what)
{
    memnet_settle(p);
    memnet_advance(p, MINUTE_MS);
    uint64_t asked = memnet_requests(p, USER);
    if (asked > MOST_REQUESTS)
        fail_msg("%s: %u requests a minute", what, (unsigned)asked);
}

static void end(void)
{
    clave_async_watch_free(taken);
    memnet_free(p);
}

TEST(a_mutex)
{
    struct mutex_owner holder, waiter;
    begin();
    assert_int_equal(owner_open(&holder, p, ACTOR, "/m", NULL), CLAVE_OK);
    assert_int_equal(owner_acquire(&holder, OWNER_TRY), CLAVE_OK);
    assert_int_equal(owner_open(&waiter, p, USER, "/m", NULL), CLAVE_OK);
    refuse();
    assert_int_equal(owner_begin_acquire(&waiter, OWNER_FOREVER), CLAVE_OK);
    assert_paced("mutex");
    assert_false(owner_holds(&waiter));
    owner_close(&waiter);
    owner_close(&holder);
    end();
}

TEST(a_latch)
{
    struct candidate leader, other;
    begin();
    candidate_enter(&leader, p, ACTOR, "/l", NULL);
    assert_int_equal(candidate_open(&other, p, USER, "/l", NULL), CLAVE_OK);
    refuse();
    candidate_start(&other);
    assert_paced("latch");
    assert_false(candidate_leads(&other));
    candidate_close(&other);
    candidate_close(&leader);
    end();
}

TEST(a_semaphore)
{
    struct semaphore_user holder, waiter;
    begin();
    semaphore_user_open(&holder, p, ACTOR, 1);
    assert_int_equal(semaphore_user_acquire(&holder, 1, OWNER_TRY), CLAVE_OK);
    semaphore_user_open(&waiter, p, USER, 1);
    refuse();
    assert_int_equal(semaphore_user_begin_acquire(&waiter, 1, 1, OWNER_FOREVER), CLAVE_OK);
    assert_paced("semaphore");
    assert_int_equal(waiter.n, 0);
    semaphore_user_close(&waiter);
    semaphore_user_close(&holder);
    end();
}

TEST(a_semaphore_with_a_shared_limit)
{
    struct semaphore_user user;
    clave_semaphore_options o = {.size = sizeof o, .limit = 1, .limit_path = "/limit"};
    begin();
    refuse();
    (void)semaphore_user_open_with(&user, p, USER, o);
    assert_paced("shared limit");
    semaphore_user_close(&user);
    end();
}

static void count_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    (void)w;
    *(clave_err *)arg = news->err;
}

TEST(a_leader_watch)
{
    struct candidate leader;
    clave_async_leader_watch *w;
    clave_err told = CLAVE_OK;
    begin();
    candidate_enter(&leader, p, ACTOR, "/l", NULL);
    refuse();
    assert_int_equal(clave_async_leader_watch_new(&w, p->clients[USER].c, "/l", count_news, &told),
                     CLAVE_OK);
    assert_paced("leader watch");
    assert_int_equal(told, CLAVE_EBADARGS);
    bound_watches(0);
    memnet_advance(p, MINUTE_MS);
    assert_int_equal(told, CLAVE_OK);
    clave_async_leader_watch_free(w);
    candidate_close(&leader);
    end();
}
