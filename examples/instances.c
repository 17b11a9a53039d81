/* instances.c - finds an instance of the service "web", and tries another when it does not work.
 *
 *   cc instances.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Uses the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On the loop's thread: it should only copy what it needs. */
static bool connect_to(const clave_instances_entry *e, void *arg)
{
    (void)arg;
    printf("use %s port %d\n", e->instance->address, (int)e->instance->port);
    return true;
}

static clave_err find(clave_client *client)
{
    clave_instances *web = NULL;
    const clave_instances_options o = {.size = sizeof o, .service = "web"};
    clave_err err = clave_instances_new(&web, client, &o, NULL, NULL);
    if (err == CLAVE_OK)
        err = clave_instances_wait(web, 10000);
    if (err == CLAVE_OK)
        err = clave_instances_pick(web, CLAVE_PICK_ROUND_ROBIN, connect_to, NULL);
    if (err == CLAVE_OK) /* and if that one does not work: */
        err = clave_instances_note_error(web, "/services/web/a");
    if (err == CLAVE_OK)
        err = clave_instances_pick(web, CLAVE_PICK_ROUND_ROBIN, connect_to, NULL);
    clave_instances_free(web);
    return err;
}

/* What an instance would do itself, or `clave create`. */
static clave_err announce(clave_client *client)
{
    char json[256];
    const clave_instance i = {.name = "web", .id = "a", .address = "10.0.0.7", .port = 8080};
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.mode = CLAVE_EPHEMERAL;
    o.flags = CLAVE_CREATE_PARENTS;
    clave_instance_format(&i, json, sizeof json);
    clave_err err = clave_create(client, "/services/web/a", json, strlen(json), &o, 10000, NULL);
    return err == CLAVE_ENODEEXISTS ? CLAVE_OK : err;
}

int main(void)
{
    clave_client *client;
    if (clave_client_open(&client, NULL, NULL, NULL) != CLAVE_OK)
        return EXIT_FAILURE;
    clave_err err = announce(client);
    if (err == CLAVE_OK)
        err = find(client);
    if (err != CLAVE_OK)
        fprintf(stderr, "%s\n", clave_strerror(err));
    clave_client_close(client, 1000);
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
