/* data_slots.c - see data_slots.h; data_restore.c calls it. A slot is a node of that name in a node
 * "owners". */
#include "cmd/data/data_slots.h"

#include <stdio.h>
#include <string.h>

#include "cmd/cli/time_text.h"
#include "recipe/slots/slot_node.h"
#include "server/store/recovery_plan.h"

enum { SLOT_PATH_CAP = 4096 };

/* A slot that is visited: the path of the slots, its id, and what its node tells. */
struct data_slot {
    char path[SLOT_PATH_CAP];
    char id[CLAVE_SLOT_ID_MAX + 1];
    int64_t since;
    int64_t token;
};

struct data_slots {
    void (*show)(struct data_slots *d, const struct data_slot *slot);
    struct json *json;
    size_t n;
};

static bool data_slots_parse(const struct node_view *n, struct data_slot *out)
{
    static const char owners[] = "/owners";
    if (n->path.n <= 0 || (size_t)n->path.n >= sizeof out->path || n->stored_owner != 0)
        return false;
    memcpy(out->path, n->path.p, (size_t)n->path.n);
    out->path[n->path.n] = '\0';
    char *name = strrchr(out->path, '/');
    if (!name || !clave__slot_name_parse(name + 1, out->id))
        return false;
    *name = '\0';
    size_t len = strlen(out->path);
    if (len <= sizeof owners - 1 || strcmp(name - (sizeof owners - 1), owners) != 0)
        return false;
    name[-(ptrdiff_t)(sizeof owners - 1)] = '\0';
    out->since = n->stat.ctime;
    out->token = n->stat.czxid;
    return true;
}

static void data_slots_visit(void *arg, const struct node_view *n)
{
    struct data_slots *d = arg;
    struct data_slot slot;
    if (data_slots_parse(n, &slot)) {
        d->show(d, &slot);
        d->n++;
    }
}

static void data_slots_print(struct data_slots *d, const struct data_slot *slot)
{
    char since[TIME_TEXT_CAP];
    if (d->n == 0)
        printf("Slots that are owned again, whatever was given back since the copy was made:\n");
    printf("  %s %s since %s\n", slot->path, slot->id, time_text(slot->since, since));
}

void data_slots_show(const struct server *s)
{
    clave__server_each_node(s, data_slots_visit, &(struct data_slots){.show = data_slots_print});
}

static void data_slots_put(struct data_slots *d, const struct data_slot *slot)
{
    char since[TIME_TEXT_CAP];
    clave__json_open(d->json, NULL, '{');
    clave__json_string(d->json, "path", slot->path);
    clave__json_string(d->json, "id", slot->id);
    clave__json_string(d->json, "since", time_text(slot->since, since));
    clave__json_int(d->json, "token", slot->token);
    clave__json_close(d->json, '}');
}

void data_slots_json(struct json *j, const struct server *s)
{
    clave__json_open(j, "slots", '[');
    clave__server_each_node(s, data_slots_visit,
                            &(struct data_slots){.show = data_slots_put, .json = j});
    clave__json_close(j, ']');
}
