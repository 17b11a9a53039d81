/* election.c - leadership as a function call: it is called when this process is elected, and
 * leads until it returns.
 *
 *   cc election.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Uses the servers that `clave` would: clave_client_open with NULL. Run it
 * on several machines, and one of them works at a time. */
#include <clave/clave.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 3 };

static atomic_int steps;

/* One step of the work, done by the server only while this leader's node exists: however long
 * this thread was paused, it cannot write into a later leader's term. */
static clave_err work(clave_grant *term)
{
    return clave_grant_set(term, "/progress", "x", 1, -1, 5000);
}

/* On a thread of its own. clave_selector_pause returns false at once when leadership is in
 * doubt, or when somebody wants this one to end. */
static void lead(clave_selector *s, void *arg)
{
    clave_grant *term;
    (void)arg;
    if (clave_selector_grant(s, &term) != CLAVE_OK)
        return; /* lost already */
    printf("elected, term %lld\n", (long long)clave_grant_token(term));
    while (atomic_load(&steps) < STEPS && clave_selector_pause(s, 10)) {
        clave_err err = work(term);
        if (err != CLAVE_OK)
            fprintf(stderr, "work: %s\n", clave_strerror(err));
        atomic_fetch_add(&steps, 1);
    }
    clave_grant_free(term);
}

static int run(clave_client *session)
{
    clave_selector *s;
    clave_selector_options o = CLAVE_SELECTOR_OPTIONS_INIT;
    o.id = "example";
    o.take = lead;
    clave_err err = clave_create(session, "/progress", "", 0, NULL, 10000, NULL);
    if (err != CLAVE_OK && err != CLAVE_ENODEEXISTS)
        return EXIT_FAILURE;
    if (clave_selector_new(&s, session, "/scheduler", &o) != CLAVE_OK)
        return EXIT_FAILURE;
    err = clave_selector_start(s);
    /* What else a process does; here it waits for its turn to be over. EBUSY: it stands, or
     * leads. From the moment it does neither, it may stand again. */
    while (err == CLAVE_OK && atomic_load(&steps) < STEPS)
        err = clave_sync(session, "/", 10000);
    clave_selector_free(s);
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void)
{
    clave_client *session;
    if (clave_client_open(&session, NULL, NULL, NULL) != CLAVE_OK)
        return EXIT_FAILURE;
    int code = run(session);
    clave_client_close(session, 1000);
    return code;
}
