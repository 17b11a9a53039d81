/* leader.c - a process that works only while it leads.
 *
 *   cc leader.c $(pkg-config --cflags --libs clave) -o leader && ./leader
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>

/* Asks before each step, which takes less than a second. The answer comes from memory, by this
 * machine's clock: after a pause that was too long it is no, at once. */
static void work(clave_grant *term)
{
    for (int step = 1; step <= 3 && clave_grant_valid_for(term, 1000); step++)
        printf("term %lld, step %d\n", (long long)clave_grant_token(term), step);
}

int main(void)
{
    clave_client *client;
    clave_latch *latch = NULL;
    clave_grant *term = NULL;
    clave_latch_options o = CLAVE_LATCH_OPTIONS_INIT;

    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err != CLAVE_OK) {
        fprintf(stderr, "open: %s\n", clave_strerror(err));
        return 1;
    }
    err = clave_latch_new(&latch, client, "/dispatcher/leader", &o);
    if (err == CLAVE_OK)
        err = clave_latch_start(latch);
    if (err == CLAVE_OK)
        err = clave_latch_await(latch, -1); /* for as long as it takes */
    if (err == CLAVE_OK)
        err = clave_latch_grant(latch, &term);
    if (err == CLAVE_OK)
        work(term);
    else
        fprintf(stderr, "election: %s\n", clave_strerror(err));
    clave_grant_free(term);
    clave_latch_free(latch); /* the next one leads */
    clave_client_close(client, 1000);
    return err != CLAVE_OK;
}
