/* counter.c - a number of its own for each order, whichever process takes it.
 *
 *   cc counter.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SECOND = 1000 };

int main(void)
{
    clave_client *client;
    clave_counter *orders;
    clave_counter_change change;
    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err == CLAVE_OK) {
        err = clave_counter_new(&orders, client, "/counters/orders");
        if (err == CLAVE_OK) {
            err = clave_counter_add(orders, 1, 5 * SECOND, &change);
            clave_counter_free(orders);
        }
        clave_client_close(client, SECOND);
    }
    if (err == CLAVE_OK)
        printf("order number %" PRId64 "\n", change.after);
    else if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
        fprintf(stderr, "the number may have been taken: %s\n", clave_strerror(err));
    else
        fprintf(stderr, "no number: %s\n", clave_strerror(err));
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
