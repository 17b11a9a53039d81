/* stopped_holder.c - one holder of stopped_test.py, of any of clave's recipes.
 *
 *   stopped_holder KIND CONNECT PATH SESSION_MS
 *
 * It says "held TOKEN" and holds until its input ends, or until it wakes: SIGUSR1 is sent to it
 * while it is stopped. Then it says, at once, whether it holds by its own account ("woke 0"), what
 * became of a guarded write to PATH-data ("write ELOST"), and, when it has a session again, how
 * often it was told of the loss ("lost 1") and what its release says ("release ELOST"). */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clave/clave.h"
#include "clave/uv.h"

struct holder;

struct kind {
    const char *name;
    clave_err (*acquire)(struct holder *h);
    int64_t (*token)(struct holder *h); /* once, before the others */
    bool (*valid)(struct holder *h);
    clave_err (*write)(struct holder *h, const clave_op *op);
    clave_err (*release)(struct holder *h);
};

struct holder {
    const struct kind *kind;
    clave_client *session;
    const char *path;
    char data[256];
    atomic_uint lost; /* how often it was told */
    atomic_bool led;
    clave_mutex *lock, *other_side;
    clave_semaphore *permits;
    clave_lease *permit;
    clave_multilock *set;
    clave_grant *grants[2]; /* of what it holds, from the beginning to the release */
    size_t ngrants;
    clave_async_latch *latch; /* the loop's thread only */
    clave_selector *selector;
    /* Of what is done on the loop's thread. */
    clave_async_grant *term;
    bool holds;
    const clave_op *op;
    atomic_int outcome;
};

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "stopped_holder: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void on_lost(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct holder *h = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_LOST)
        atomic_fetch_add(&h->lost, 1);
}

/* ---- locks ------------------------------------------------------------------------------- */

static clave_err acquire_mutex(struct holder *h)
{
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lost, .event_arg = h};
    check(clave_mutex_new(&h->lock, h->session, h->path, &o), "lock");
    return clave_mutex_acquire(h->lock, -1);
}

static clave_err acquire_simple(struct holder *h)
{
    clave_mutex_options o = {
        .size = sizeof o, .event_cb = on_lost, .event_arg = h, .simple_prefix = "lock_"};
    check(clave_mutex_new(&h->lock, h->session, h->path, &o), "lock");
    return clave_mutex_acquire(h->lock, -1);
}

static clave_err acquire_read(struct holder *h)
{
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lost, .event_arg = h};
    check(clave_rwlock_new(&h->lock, &h->other_side, h->session, h->path, &o, NULL), "lock");
    return clave_mutex_acquire(h->lock, -1);
}

static clave_err acquire_write(struct holder *h)
{
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lost, .event_arg = h};
    check(clave_rwlock_new(&h->other_side, &h->lock, h->session, h->path, NULL, &o), "lock");
    return clave_mutex_acquire(h->lock, -1);
}

static int64_t token_of_lock(struct holder *h)
{
    check(clave_mutex_grant(h->lock, &h->grants[h->ngrants++]), "grant");
    return clave_grant_token(h->grants[0]);
}

/* The same for all that is held by threads. */
static bool grants_are_valid(struct holder *h)
{
    bool valid = true;
    for (size_t i = 0; i < h->ngrants; i++)
        valid = valid && clave_grant_valid_for(h->grants[i], 0);
    return valid;
}

static clave_err write_with_grants(struct holder *h, const clave_op *op)
{
    return clave_grant_multi(h->grants, h->ngrants, op, 1, 10000, NULL);
}

static void free_grants(struct holder *h)
{
    while (h->ngrants > 0)
        clave_grant_free(h->grants[--h->ngrants]);
}

static clave_err release_lock(struct holder *h)
{
    clave_err err = clave_mutex_release(h->lock);
    clave_mutex_free(h->lock);
    clave_mutex_free(h->other_side);
    return err;
}

/* ---- a semaphore of one --------------------------------------------------------------------- */

static void on_lease(clave_async_semaphore *s, const clave_lease_event *ev, void *arg)
{
    struct holder *h = arg;
    (void)s;
    if (ev->kind == CLAVE_LEASE_LOST)
        atomic_fetch_add(&h->lost, 1);
}

static clave_err acquire_permit(struct holder *h)
{
    clave_semaphore_options o = {
        .size = sizeof o, .limit = 1, .event_cb = on_lease, .event_arg = h};
    check(clave_semaphore_new(&h->permits, h->session, h->path, &o), "semaphore");
    return clave_semaphore_acquire(h->permits, 1, -1, &h->permit);
}

static int64_t token_of_permit(struct holder *h)
{
    check(clave_lease_grant(h->permit, &h->grants[h->ngrants++]), "grant");
    return clave_grant_token(h->grants[0]);
}

static clave_err release_permit(struct holder *h)
{
    clave_err err = clave_lease_release(h->permit);
    clave_semaphore_free(h->permits);
    return err;
}

/* ---- two locks as one ----------------------------------------------------------------------- */

static clave_err acquire_set(struct holder *h)
{
    char second[256];
    snprintf(second, sizeof second, "%s-second", h->path);
    const clave_multilock_part parts[] = {{h->path, CLAVE_MULTILOCK_MUTEX},
                                          {second, CLAVE_MULTILOCK_MUTEX}};
    clave_mutex_options o = {.size = sizeof o, .event_cb = on_lost, .event_arg = h};
    check(clave_multilock_new(&h->set, h->session, parts, 2, &o), "set");
    return clave_multilock_acquire(h->set, -1, NULL);
}

/* One after the other, that of its path first. */
static int64_t token_of_set(struct holder *h)
{
    char second[256];
    snprintf(second, sizeof second, "%s-second", h->path);
    const char *const paths[] = {h->path, second};
    for (size_t i = 0; i < 2; i++)
        check(clave_mutex_grant(clave_multilock_at(h->set, paths[i]), &h->grants[h->ngrants++]),
              "grant");
    return clave_grant_token(h->grants[0]);
}

static clave_err release_set(struct holder *h)
{
    clave_err err = clave_multilock_release(h->set, NULL);
    clave_multilock_free(h->set);
    return err;
}

/* ---- candidates: fair as Curator's, and the unfair one ----------------------------------------
 */

static void on_latch(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct holder *h = arg;
    (void)l;
    if (ev->kind == CLAVE_LATCH_LEADER)
        atomic_store(&h->led, true);
    else if (ev->kind == CLAVE_LATCH_NOT_LEADER)
        atomic_fetch_add(&h->lost, 1);
}

/* By the session policy: SUSPENDED is no loss, so there is one that can be counted. */
static void stand(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    clave_latch_options o = {
        .size = sizeof o, .policy = CLAVE_POLICY_SESSION, .event_cb = on_latch, .event_arg = h};
    if (strcmp(h->kind->name, "unfair") == 0)
        o.layout = CLAVE_LATCH_UNFAIR;
    check(clave_async_latch_new(&h->latch, c, h->path, &o), "latch");
    check(clave_async_latch_start(h->latch), "start");
}

static clave_err acquire_latch(struct holder *h)
{
    check(clave_client_run(h->session, stand, h), "run");
    while (!atomic_load(&h->led))
        rest();
    return CLAVE_OK;
}

static void look_at_latch(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    (void)c;
    if (!h->term)
        check(clave_async_latch_grant(h->latch, &h->term), "grant");
    h->holds = clave_async_grant_valid_for(h->term, clave_now(), 0);
}

static int64_t token_of_latch(struct holder *h)
{
    check(clave_client_run(h->session, look_at_latch, h), "run");
    return clave_async_grant_token(h->term);
}

static bool latch_is_valid(struct holder *h)
{
    check(clave_client_run(h->session, look_at_latch, h), "run");
    return h->holds;
}

enum { UNDECIDED = 1 };

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct holder *h = arg;
    (void)c;
    atomic_store(&h->outcome, res->err);
}

static void begin_write(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    (void)c;
    atomic_store(&h->outcome, UNDECIDED);
    clave_err err = clave_async_grant_multi(&h->term, 1, h->op, 1, on_written, h);
    if (err != CLAVE_OK)
        atomic_store(&h->outcome, err);
}

static clave_err write_with_latch(struct holder *h, const clave_op *op)
{
    h->op = op;
    check(clave_client_run(h->session, begin_write, h), "run");
    while (atomic_load(&h->outcome) == UNDECIDED)
        rest();
    return (clave_err)atomic_load(&h->outcome);
}

static void withdraw(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    (void)c;
    h->holds = clave_async_latch_has_leadership(h->latch, clave_now());
    clave_async_latch_free(h->latch);
    clave_async_grant_free(h->term);
}

/* There is nothing to give back of a term that is over. */
static clave_err release_latch(struct holder *h)
{
    check(clave_client_run(h->session, withdraw, h), "run");
    return h->holds ? CLAVE_OK : CLAVE_ELOST;
}

/* ---- what every holder does -------------------------------------------------------------------
 */

/* By the clock it could not be told from a process that only had to wait for the processor. */
static volatile sig_atomic_t has_slept;

static void note_sleep(int number)
{
    (void)number;
    has_slept = 1;
}

/* To the thread that holds, and so in front of all that this one does when it goes on. */
static void mask_notice(int how)
{
    sigset_t notice;
    sigemptyset(&notice);
    sigaddset(&notice, SIGUSR1);
    check(pthread_sigmask(how, &notice, NULL) == 0 ? CLAVE_OK : CLAVE_EIO, "mask");
}

static bool is_dismissed(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, 0) > 0; /* the notice may come here */
}

/* Until it is dismissed (false), or was stopped (true): then what it believed first of all. */
static bool hold(struct holder *h, bool *believed)
{
    while (!is_dismissed()) {
        bool before = has_slept;
        *believed = h->kind->valid(h);
        if (has_slept && !before) /* while it looked */
            *believed = h->kind->valid(h);
        if (has_slept)
            return true;
        if (!*believed)
            check(CLAVE_ELOST, "without being stopped");
        rest();
    }
    return false;
}

static void tell_of_waking(struct holder *h, bool believed)
{
    const clave_op op = {
        .kind = CLAVE_OP_SET, .path = h->data, .data = "stale", .len = 5, .version = -1};
    printf("woke %d\n", believed);
    printf("write %s\n", clave_err_name(h->kind->write(h, &op)));
    /* In the session that follows: all that was to be told has been. */
    check(clave_client_wait(h->session, 30000), "wait");
    check(clave_sync(h->session, "/", 30000), "sync");
    printf("lost %u\n", atomic_load(&h->lost));
}

static clave_err run(struct holder *h)
{
    bool believed;
    mask_notice(SIG_UNBLOCK);
    printf("held %lld\n", (long long)h->kind->token(h));
    bool woke = hold(h, &believed);
    if (woke)
        tell_of_waking(h, believed);
    return woke ? CLAVE_ELOST : CLAVE_OK;
}

/* ---- leadership as a function call
 * --------------------------------------------------------------- */

static int64_t token_of_selector(struct holder *h)
{
    check(clave_selector_grant(h->selector, &h->grants[h->ngrants++]), "grant");
    return clave_grant_token(h->grants[0]);
}

static clave_err write_with_selector(struct holder *h, const clave_op *op)
{
    clave_err err = write_with_grants(h, op);
    /* To be interrupted is how a leader hears of it. */
    while (!clave_selector_is_interrupted(h->selector))
        rest();
    atomic_fetch_add(&h->lost, 1);
    return err;
}

static void take(clave_selector *s, void *arg)
{
    struct holder *h = arg;
    h->selector = s;
    atomic_store(&h->outcome, run(h));
}

static clave_err acquire_selector(struct holder *h)
{
    clave_selector_options o = {
        .size = sizeof o, .policy = CLAVE_POLICY_SESSION, .take = take, .take_arg = h};
    atomic_store(&h->outcome, UNDECIDED);
    check(clave_selector_new(&h->selector, h->session, h->path, &o), "selector");
    check(clave_selector_start(h->selector), "start");
    while (atomic_load(&h->outcome) == UNDECIDED)
        rest();
    return CLAVE_OK;
}

static clave_err release_selector(struct holder *h)
{
    clave_selector_free(h->selector);
    return (clave_err)atomic_load(&h->outcome);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

static const struct kind kinds[] = {
    {"mutex", acquire_mutex, token_of_lock, grants_are_valid, write_with_grants, release_lock},
    {"simple", acquire_simple, token_of_lock, grants_are_valid, write_with_grants, release_lock},
    {"read", acquire_read, token_of_lock, grants_are_valid, write_with_grants, release_lock},
    {"write", acquire_write, token_of_lock, grants_are_valid, write_with_grants, release_lock},
    {"semaphore", acquire_permit, token_of_permit, grants_are_valid, write_with_grants,
     release_permit},
    {"multilock", acquire_set, token_of_set, grants_are_valid, write_with_grants, release_set},
    {"latch", acquire_latch, token_of_latch, latch_is_valid, write_with_latch, release_latch},
    {"unfair", acquire_latch, token_of_latch, latch_is_valid, write_with_latch, release_latch},
    {"selector", acquire_selector, token_of_selector, grants_are_valid, write_with_selector,
     release_selector},
};

int main(int argc, char **argv)
{
    struct holder h = {0};
    clave_client_options o = {.size = sizeof o};
    for (size_t i = 0; argc == 5 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            h.kind = &kinds[i];
    if (!h.kind)
        return 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    h.path = argv[3];
    snprintf(h.data, sizeof h.data, "%s-data", h.path);
    o.session_timeout_ms = atoi(argv[4]);
    signal(SIGUSR1, note_sleep);
    mask_notice(SIG_BLOCK); /* for the threads of the session, too */
    check(clave_client_open(&h.session, NULL, argv[2], &o), "open");
    check(clave_client_wait(h.session, 30000), "connect");
    check(h.kind->acquire(&h), "acquire");
    if (!h.selector)
        (void)run(&h); /* a selector has done it */
    free_grants(&h);
    printf("release %s\n", clave_err_name(h.kind->release(&h)));
    clave_client_close(h.session, 1000);
    return 0;
}
