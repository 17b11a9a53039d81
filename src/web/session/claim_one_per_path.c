/* claim_one_per_path.c - a session has one place a path. Called while the place of a claim is
 * looked for, with what else the session has there: another gate may have made it. */
#include <stdlib.h>
#include <string.h>

#include "web/session/claim.h"

/* Each permit has a name of its own, made of the claim's id. */
static bool claim_has_name(const struct claim *c, const char *uuid)
{
    size_t n = c->permits ? c->permits : 1;
    for (size_t i = 0; i < n; i++) {
        char one[CLAVE_UUID_TEXT + 1];
        memcpy(one, c->place.uuid, sizeof one);
        clave__uuid_mix(one, i, 0);
        if (strcmp(one, uuid) == 0)
            return true;
    }
    return false;
}

/* Of several nodes the first tells the id: that which queues for leases, else the first lease. */
static void claim_note_other(struct claim *c, const char *uuid, bool fits, int number)
{
    struct claim_other *o = &c->other;
    if (o->uuid[0] && o->number <= number)
        return;
    memcpy(o->uuid, uuid, sizeof o->uuid);
    o->fits = fits;
    o->number = number;
}

/* The number in "_c_<uuid>-lock-0000000001". */
static int claim_node_number(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash ? atoi(dash + 1) : 0;
}

bool clave__claim_excludes(void *place, const char *path)
{
    struct claim *c = LIST_ENTRY((struct queue_place *)place, struct claim, place);
    size_t len = strlen(c->path);
    const char *name = path + len + (len > 1); /* a slash follows all paths but the root */
    bool queues = strncmp(name, "locks/", strlen("locks/")) == 0;
    bool leased = strncmp(name, "leases/", strlen("leases/")) == 0;
    char uuid[CLAVE_UUID_TEXT + 1] = "";
    name = queues || leased ? strchr(name, '/') + 1 : name;
    if (strncmp(name, "_c_", 3) != 0 || strlen(name) <= 3 + CLAVE_UUID_TEXT || strchr(name, '/'))
        return false; /* of no claim, or of one on another path */
    memcpy(uuid, name + 3, CLAVE_UUID_TEXT);
    enum queue_kind kind = queues || leased ? QUEUE_LEASE : clave__queue_kind_of(name);
    bool fits = kind == c->kind->queue;
    if (fits && claim_has_name(c, uuid))
        return false;
    claim_note_other(c, uuid, fits, queues ? -1 : claim_node_number(name));
    return true;
}
