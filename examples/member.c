/* member.c - a member of a group: its node is there while it runs, and names who is in the group.
 *
 *   cc member.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECOND = 1000 };

static void print_members(clave_client *client)
{
    clave_reply *group;
    if (clave_children(client, "/workers", 5 * SECOND, &group) != CLAVE_OK)
        return;
    for (size_t i = 0; i < group->nnames; i++)
        printf("%s is a worker\n", group->names[i]);
    clave_reply_free(group);
}

/* Be there, say something new, leave. */
static clave_err work(clave_client *client, const char *path)
{
    const clave_persistent_node_options idle = {.size = sizeof idle, .data = "idle", .len = 4};
    clave_persistent_node *node;
    clave_err err = clave_persistent_node_new(&node, client, path, &idle);
    if (err == CLAVE_OK) {
        err = clave_persistent_node_await(node, 5 * SECOND);
        if (err == CLAVE_OK)
            err = clave_persistent_node_set(node, "busy", 4, 5 * SECOND);
        print_members(client);
        clave_persistent_node_free(node);
    }
    return err;
}

int main(void)
{
    clave_client *client;
    char path[64];
    snprintf(path, sizeof path, "/workers/%ld", (long)getpid());
    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err == CLAVE_OK) {
        err = work(client, path);
        clave_client_close(client, SECOND);
    }
    if (err != CLAVE_OK)
        fprintf(stderr, "%s: %s\n", path, clave_strerror(err));
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
