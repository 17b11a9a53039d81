/* slots.c - machines that may be out of service, at most two at once: a slot for each, which a
 * reboot does not end.
 *
 *   cc slots.c $(pkg-config --cflags --libs clave) && ./a.out web1 take && ./a.out web1 give
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND = 1000 };

static clave_err take_slot(clave_slots *slots, const char *id)
{
    const clave_slot as = {.id = id, .reason = "maintenance"};
    clave_slot *slot;
    bool taken;
    clave_err err = clave_slots_take(slots, &as, 30 * SECOND, &slot, &taken);
    if (err != CLAVE_OK)
        return err;
    printf("%s %s a slot, token %" PRId64 "\n", id, taken ? "took" : "owned", slot->token);
    clave_slot_free(slot);
    return CLAVE_OK;
}

static clave_err give_slot(clave_slots *slots, const char *id)
{
    int64_t given;
    clave_err err = clave_slots_give(slots, id, 0, 5 * SECOND, &given);
    if (err == CLAVE_OK)
        printf("%s %s\n", id, given != 0 ? "gave its slot back" : "owned none");
    return err;
}

int main(int argc, char **argv)
{
    const char *id = argc > 1 ? argv[1] : "web1";
    bool gives = argc > 2 && strcmp(argv[2], "give") == 0;
    clave_slots_options o = CLAVE_SLOTS_OPTIONS_INIT;
    clave_client *client;
    clave_slots *slots = NULL;
    o.limit = 2; /* if no limit is set yet */
    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err == CLAVE_OK) {
        err = clave_slots_new(&slots, client, "/examples/maintenance", &o);
        if (err == CLAVE_OK)
            err = gives ? give_slot(slots, id) : take_slot(slots, id);
        clave_slots_free(slots);
        clave_client_close(client, SECOND);
    }
    /* Of class UNKNOWN: it may have been taken. Asking again for the same id is harmless. */
    if (err != CLAVE_OK)
        fprintf(stderr, "the slot: %s\n", clave_strerror(err));
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
