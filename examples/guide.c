/* guide.c - the examples of docs/guide, one function each.
 *
 *   cc guide.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static clave_err open_session(clave_client **client)
{
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.session_timeout_ms = 10000;
    /* CLAVE_CONNECT, else what ~/.config/clave/config or /etc/clave/config names, else local:. */
    clave_err err = clave_client_open(client, NULL, NULL, &o);
    return err == CLAVE_OK ? clave_client_wait(*client, 15000) : err;
}

static clave_err open_tls_session(clave_client **client)
{
    clave_tls_options files = CLAVE_TLS_OPTIONS_INIT;
    files.ca_file = "ca.pem";
    files.cert_file = "worker.pem";
    files.key_file = "worker.key";
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    char why[256];
    clave_err err = clave_tls_new(&o.tls, &files, why, sizeof why);
    if (err == CLAVE_OK)
        err = clave_client_open(client, NULL, "tls:zk1:2281,zk2:2281", &o);
    else
        fprintf(stderr, "%s\n", why);
    clave_tls_free(o.tls); /* the client keeps it */
    return err;
}

static clave_err mutex(clave_client *client)
{
    clave_mutex *lock;
    clave_grant *grant;
    clave_err err = clave_mutex_new(&lock, client, "/guide/mutex", NULL);
    if (err != CLAVE_OK)
        return err;
    err = clave_mutex_acquire(lock, 10000); /* 0: only if it is free; negative: for ever */
    if (err == CLAVE_OK && clave_mutex_grant(lock, &grant) == CLAVE_OK) {
        printf("mutex: held, token %lld\n", (long long)clave_grant_token(grant));
        clave_grant_free(grant);
        err = clave_mutex_release(lock);
    }
    clave_mutex_free(lock);
    return err;
}

static clave_err guarded(clave_client *client, clave_mutex *lock)
{
    clave_grant *grant;
    clave_err err = clave_create(client, "/guide/report", "", 0, NULL, 5000, NULL);
    if (err != CLAVE_OK && err != CLAVE_ENODEEXISTS)
        return err;
    err = clave_mutex_grant(lock, &grant);
    if (err != CLAVE_OK)
        return err;
    if (!clave_grant_valid_for(grant, 1000)) /* from memory */
        err = CLAVE_ELOST;
    else /* in one transaction with a check of the lock node */
        err = clave_grant_set(grant, "/guide/report", "done", 4, -1, 5000);
    clave_grant_free(grant);
    return err;
}

static void on_lock_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m;
    (void)arg;
    if (ev->kind == CLAVE_MUTEX_LOST)
        fprintf(stderr, "lost: %s\n", clave_strerror(ev->why)); /* on the loop's thread */
    if (ev->kind == CLAVE_MUTEX_ASKED)
        puts("listener: somebody would like to have it");
}

static clave_err listener(clave_client *client)
{
    clave_mutex_options o = CLAVE_MUTEX_OPTIONS_INIT;
    o.event_cb = on_lock_event;
    o.revocable = true;
    clave_mutex *lock;
    clave_participant_list *roll = NULL;
    clave_err err = clave_mutex_new(&lock, client, "/guide/listener", &o);
    if (err != CLAVE_OK)
        return err;
    err = clave_mutex_acquire(lock, 10000);
    if (err == CLAVE_OK)
        err = guarded(client, lock);
    if (err == CLAVE_OK)
        err = clave_participants(client, clave_async_participants, "/guide/listener", 5000, &roll);
    for (size_t i = 0; roll && i < roll->n; i++)
        printf("listener: %s by process %lld\n", i == 0 ? "held" : "awaited",
               (long long)roll->list[i].identity.pid);
    clave_participant_list_free(roll);
    clave_mutex_free(lock); /* releases */
    return err;
}

static clave_err lost_answer(clave_client *client)
{
    clave_err err = clave_set(client, "/guide/report", "paid", 4, -1, 5000, NULL);
    if (clave_err_classify(err) != CLAVE_CLASS_UNKNOWN)
        return err;
    /* It may have been done, and the server that answers now may not know it yet. */
    err = clave_sync(client, "/guide/report", 5000);
    clave_reply *report = NULL;
    if (err == CLAVE_OK)
        err = clave_get(client, "/guide/report", 5000, &report);
    if (err == CLAVE_OK && (report->len != 4 || memcmp(report->data, "paid", 4) != 0))
        err = CLAVE_ENOTSENT; /* it was not done */
    clave_reply_free(report);
    return err;
}

static clave_err read_write(clave_client *client)
{
    clave_mutex *read, *write;
    clave_err err = clave_rwlock_new(&read, &write, client, "/guide/rw", NULL, NULL);
    if (err != CLAVE_OK)
        return err;
    err = clave_mutex_acquire(write, 10000);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(read, 10000); /* the downgrade: no writer comes between */
    if (err == CLAVE_OK)
        err = clave_mutex_release(write);
    if (err == CLAVE_OK && clave_mutex_acquire(write, 0) == CLAVE_EUPGRADE)
        puts("read_write: a reader does not become a writer");
    clave_mutex_free(read);
    clave_mutex_free(write);
    return err;
}

static clave_err semaphore(clave_client *client)
{
    clave_semaphore_options o = CLAVE_SEMAPHORE_OPTIONS_INIT;
    o.limit = 3;
    clave_semaphore *permits;
    clave_lease *mine[2];
    clave_grant *grant;
    clave_err err = clave_semaphore_new(&permits, client, "/guide/semaphore", &o);
    if (err != CLAVE_OK)
        return err;
    err = clave_semaphore_acquire(permits, 2, 10000, mine); /* both, or none */
    if (err == CLAVE_OK && clave_lease_grant(mine[0], &grant) == CLAVE_OK) {
        printf("semaphore: two of three, valid: %d\n", clave_grant_valid_for(grant, 1000));
        clave_grant_free(grant);
        clave_lease_release(mine[0]);
        clave_lease_release(mine[1]);
    }
    clave_semaphore_free(permits);
    return err;
}

static clave_err several(clave_client *client)
{
    const clave_multilock_part parts[] = {{.path = "/guide/from"}, {.path = "/guide/to"}};
    clave_multilock *both;
    const char *failed = NULL;
    clave_err err = clave_multilock_new(&both, client, parts, 2, NULL);
    if (err != CLAVE_OK)
        return err;
    err = clave_multilock_acquire(both, 10000, &failed);
    if (err == CLAVE_OK)
        err = clave_multilock_release(both, &failed);
    else
        fprintf(stderr, "several: %s: %s\n", failed, clave_strerror(err));
    clave_multilock_free(both);
    return err;
}

static clave_err candidate(clave_client *client)
{
    clave_latch_options o = CLAVE_LATCH_OPTIONS_INIT;
    o.id = "guide";
    clave_latch *c;
    clave_grant *term;
    clave_err err = clave_latch_new(&c, client, "/guide/leader", &o);
    if (err == CLAVE_OK)
        err = clave_latch_start(c);
    if (err == CLAVE_OK)
        err = clave_latch_await(c, 10000);
    if (err == CLAVE_OK)
        err = clave_latch_publish(c, "10.0.0.7:8080", 13, 5000);
    if (err == CLAVE_OK && clave_latch_grant(c, &term) == CLAVE_OK) {
        printf("candidate: leads, term %lld\n", (long long)clave_grant_token(term));
        clave_grant_free(term);
    }
    clave_latch_free(c);
    return err;
}

static void lead(clave_selector *e, void *arg)
{
    int *steps = arg;
    while (*steps < 3 && clave_selector_pause(e, 10)) /* false: stop at once */
        ++*steps;
}

static clave_err selector(clave_client *client)
{
    int steps = 0;
    clave_selector_options o = CLAVE_SELECTOR_OPTIONS_INIT;
    o.take = lead;
    o.take_arg = &steps;
    clave_selector *e;
    clave_err err = clave_selector_new(&e, client, "/guide/selector", &o);
    if (err != CLAVE_OK)
        return err;
    err = clave_selector_start(e);
    /* From the moment its function has returned it may stand again. */
    while (err == CLAVE_OK && clave_selector_requeue(e) == CLAVE_EBUSY)
        err = clave_sync(client, "/", 5000);
    clave_selector_free(e); /* waits for the function */
    printf("selector: led for %d steps\n", steps);
    return err;
}

static clave_err once(clave_client *client)
{
    const clave_once_options o = {
        .size = sizeof o, .path = "/guide/nightly-once", .period_ms = 3600 * 1000};
    clave_mutex *lock;
    clave_grant *grant = NULL;
    clave_once *job;
    clave_err err = clave_mutex_new(&lock, client, "/guide/nightly", NULL);
    if (err != CLAVE_OK)
        return err;
    err = clave_mutex_acquire(lock, 10000);
    if (err == CLAVE_OK)
        err = clave_mutex_grant(lock, &grant);
    if (err == CLAVE_OK)
        err = clave_once_begin(&job, grant, &o, 5000, NULL);
    if (err == CLAVE_OK) {
        puts("once: this process runs it");
        err = clave_once_end(job, true, 5000);
    } else if (err == CLAVE_EDONE) {
        puts("once: done within the hour");
        err = CLAVE_OK;
    }
    clave_grant_free(grant);
    clave_mutex_free(lock);
    return err;
}

static clave_err deadlocks(clave_client *client)
{
    const char *roots[] = {"/guide"};
    clave_deadlocks *found = NULL;
    clave_err err = clave_deadlocks_find(client, roots, 1, 5000, &found);
    for (size_t i = 0; found && i < found->n; i++)
        puts(found->list[i].text);
    clave_deadlocks_free(found);
    return err;
}

int main(void)
{
    static clave_err (*const examples[])(clave_client *) = {
        mutex,     listener, lost_answer, read_write, semaphore, several,
        candidate, selector, once,        once,       deadlocks,
    };
    clave_client *client;
    clave_err err = getenv("GUIDE_TLS") ? open_tls_session(&client) : open_session(&client);
    if (err != CLAVE_OK)
        return EXIT_FAILURE;
    err = clave_create(client, "/guide", "", 0, NULL, 5000, NULL);
    if (err == CLAVE_ENODEEXISTS)
        err = CLAVE_OK;
    for (size_t i = 0; err == CLAVE_OK && i < sizeof examples / sizeof *examples; i++)
        err = examples[i](client);
    if (err != CLAVE_OK)
        fprintf(stderr, "%s\n", clave_strerror(err));
    clave_client_close(client, 1000);
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
