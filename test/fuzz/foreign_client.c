#include "fuzz/foreign_client.h"

#include <string.h>

/* Where the recipes of recipe_fuzz.c have their nodes. */
static const char *const dirs[] = {"/l", "/rw",    "/s/locks",      "/s/leases",   "/e",
                                   "/",  "/limit", "/slots/owners", "/slots/queue"};
enum { DIRS = sizeof dirs / sizeof *dirs, NAME_CAP = 64, DATA_CAP = 255 };

/* The child of that number, as the server lists them; "" when there is none. */
static void child(struct memserver_conn *c, const char *dir, uint8_t number, char out[128])
{
    const union wire_body body = {.read = {clave__jbytes(dir), false}};
    struct wire_reply reply;
    out[0] = '\0';
    if (memserver_call(c, OP_GET_CHILDREN, &body, &reply) != CLAVE_OK || reply.names.count == 0)
        return;
    struct jreader r = clave__jvec_reader(reply.names);
    for (int32_t i = 0; i <= number % reply.names.count; i++) {
        struct jbytes name = clave__jget_bytes(&r);
        snprintf(out, 128, "%s/%.*s", dir[1] ? dir : "", (int)name.n, name.p);
    }
}

bool foreign_client_act(struct memserver_conn *c, struct input *in)
{
    uint8_t deed = input_byte(in);
    const char *dir = dirs[input_byte(in) % DIRS];
    char path[128 + NAME_CAP], text[DATA_CAP + 1] = "";
    struct input part = input_part(in, input_byte(in) % (deed % 4 < 2 ? NAME_CAP : DATA_CAP));
    if (part.n > 0)
        memcpy(text, part.p, part.n);
    switch (deed % 4) {
    case 0: /* a node of any name, or numbered */
    case 1:
        snprintf(path, sizeof path, "%s/%s", dir[1] ? dir : "", text);
        memserver_create(c, path, NULL, deed >> 2 & 3);
        break;
    case 2:
        child(c, dir, deed >> 2, path);
        memserver_set(c, path, text, -1);
        break;
    default:
        child(c, dir, deed >> 2, path);
        memserver_delete(c, path, -1);
        return true;
    }
    return false;
}
