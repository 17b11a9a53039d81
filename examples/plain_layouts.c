/* plain_layouts.c - the three exercises everybody writes first on ZooKeeper: the simple lock, the
 * fair election and the unfair one. Two sessions stand for two processes; either could be a
 * program written by hand, in any language, since the nodes have the names that those have.
 *
 *   cc plain_layouts.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>
#include <stdlib.h>

static int check(const char *what, clave_err err)
{
    printf("%s: %s\n", what, clave_strerror(err));
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the simple lock: /exercise/lock/lock_0000000000 ... ------------------------------------ */

static int take_turns(clave_client *a, clave_client *b)
{
    clave_mutex *mine, *yours = NULL;
    /* A hold that lasts longer than a minute is lost. */
    clave_mutex_options o = CLAVE_MUTEX_OPTIONS_INIT;
    o.max_hold_ms = 60000;
    o.simple_prefix = "lock_";
    int code = EXIT_FAILURE;
    if (clave_mutex_new(&mine, a, "/exercise/lock", &o) == CLAVE_OK &&
        clave_mutex_new(&yours, b, "/exercise/lock", &o) == CLAVE_OK &&
        clave_mutex_acquire(mine, 10000) == CLAVE_OK) {
        puts("the first has the lock");
        printf("the second tries: %s\n", clave_strerror(clave_mutex_acquire(yours, 0)));
        clave_mutex_release(mine); /* EMAXHOLD, had it taken too long */
        code = check("the second acquires", clave_mutex_acquire(yours, 10000));
        clave_mutex_release(yours);
    }
    clave_mutex_free(yours);
    clave_mutex_free(mine);
    return code;
}

/* ---- the elections ------------------------------------------------------------------------ */

static void on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    const char *name = arg;
    (void)l;
    if (ev->kind == CLAVE_LATCH_LEADER)
        printf("%s leads\n", name);
    else if (ev->kind == CLAVE_LATCH_QUEUED)
        printf("%s watches %s\n", name, ev->predecessor);
}

/* Fair: each watches the one before it. Unfair: all watch the one node there is. */
static clave_latch *stand(clave_client *client, bool fair, char *name)
{
    clave_latch *c;
    clave_latch_options o = CLAVE_LATCH_OPTIONS_INIT;
    o.id = name;
    o.event_cb = on_event;
    o.event_arg = name;
    o.layout = fair ? CLAVE_LATCH_FAIR : CLAVE_LATCH_UNFAIR;
    o.prefix = fair ? "c_" : NULL;
    clave_err err =
        clave_latch_new(&c, client, fair ? "/exercise/election" : "/exercise/leader", &o);
    if (err == CLAVE_OK)
        err = clave_latch_start(c);
    if (err == CLAVE_OK)
        return c;
    clave_latch_free(c);
    return NULL;
}

static int elect(clave_client *a, clave_client *b, bool fair)
{
    char first_name[] = "the first", second_name[] = "the second";
    clave_latch *first = stand(a, fair, first_name), *second = NULL;
    clave_err err = first ? clave_latch_await(first, 10000) : CLAVE_ENOMEM;
    if (err == CLAVE_OK) {
        second = stand(b, fair, second_name);
        err = second ? clave_latch_await(second, 100) : CLAVE_ENOMEM;
        printf("the second, while the first leads: %s\n", clave_strerror(err));
    }
    clave_latch_free(first);
    err = second ? clave_latch_await(second, 10000) : err;
    clave_latch_free(second);
    return check(fair ? "fair election" : "unfair election", err);
}

int main(void)
{
    clave_client *a, *b;
    if (clave_client_open(&a, NULL, NULL, NULL) != CLAVE_OK)
        return EXIT_FAILURE;
    int code = EXIT_FAILURE;
    if (clave_client_open(&b, NULL, NULL, NULL) == CLAVE_OK) {
        code = take_turns(a, b);
        if (code == EXIT_SUCCESS)
            code = elect(a, b, true);
        if (code == EXIT_SUCCESS)
            code = elect(a, b, false);
        clave_client_close(b, 1000);
    }
    clave_client_close(a, 1000);
    return code;
}
