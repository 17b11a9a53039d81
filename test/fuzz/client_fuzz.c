/* client_fuzz.c - the client between a real server and anybody: what it asks is answered by the
 * engine of the server, whole or with a byte changed, or by any bytes; time passes and connections
 * go. Each request completes once, never inside the call that made it. */
#include <string.h>

#include "base/memory.h"
#include "clave/async/client.h"
#include "fuzz/fuzz_link.h"

enum { WATCHES = 4, REQUESTS = 14 };

struct play {
    struct memserver d;
    struct fuzz_link line;
    clave_async_client *c;
    clave_async_watch *watches[WATCHES];
    bool starting;
    size_t submitted, completed;
};

/* ---- the client ------------------------------------------------------------------------------ */

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    struct play *p = arg;
    (void)c;
    must(!p->starting);
    p->completed++;
    must(p->completed <= p->submitted);
    must(res->err != CLAVE_OK || res->nnames == 0 || res->names[res->nnames - 1] != NULL);
}

static void on_event(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    const struct play *p = arg;
    (void)c;
    (void)w;
    must(!p->starting && ev->path != NULL);
}

static clave_err submit(struct play *p, uint8_t kind, clave_async_watch *w)
{
    static const clave_op ops[] = {{.kind = CLAVE_OP_CREATE, .path = "/m", .data = "x", .len = 1},
                                   {.kind = CLAVE_OP_SET, .path = "/m", .version = -1},
                                   {.kind = CLAVE_OP_DELETE, .path = "/m", .version = -1}};
    const clave_create_options protected = {.size = sizeof protected,
                                            .mode = CLAVE_EPHEMERAL_SEQUENTIAL,
                                            .flags = CLAVE_CREATE_PROTECTED | CLAVE_CREATE_PARENTS,
                                            .with_names = true};
    const clave_create_options certain = {.size = sizeof certain,
                                          .mode = CLAVE_EPHEMERAL_SEQUENTIAL,
                                          .flags = CLAVE_CREATE_CERTAIN | CLAVE_CREATE_PARENTS};
    switch (kind % REQUESTS) {
    case 0:
        return clave_async_create(p->c, "/a", "data", 4, NULL, on_result, p);
    case 1:
        return clave_async_create(p->c, "/l/lock-", NULL, 0, &protected, on_result, p);
    case 2:
        return clave_async_create(p->c, "/l/n_", NULL, 0, &certain, on_result, p);
    case 3:
        return clave_async_delete(p->c, "/a", -1, on_result, p);
    case 4:
        return clave_async_delete_guaranteed(p->c, "/l", on_result, p);
    case 5:
        return clave_async_exists(p->c, "/a", w, on_result, p);
    case 6:
        return clave_async_get(p->c, "/a", w, on_result, p);
    case 7:
        return clave_async_children(p->c, "/", w, on_result, p);
    case 8:
        return clave_async_set(p->c, "/a", "new", 3, -1, on_result, p);
    case 9:
        return clave_async_get_acl(p->c, "/a", on_result, p);
    case 10:
        return clave_async_sync(p->c, "/", on_result, p);
    case 11:
        return clave_async_add_auth(p->c, "digest", "u:p", 3, on_result, p);
    case 12:
        return clave_async_children(p->c, "/l", NULL, on_result, p);
    default:
        return clave_async_multi(p->c, ops, 3, on_result, p);
    }
}

static void request(struct play *p, uint8_t kind)
{
    clave_async_watch *w = p->watches[kind / REQUESTS % WATCHES];
    if (clave_async_watch_is_armed(w))
        clave_async_watch_disarm(w);
    p->starting = true;
    p->submitted++;
    if (submit(p, kind, w) != CLAVE_OK)
        p->submitted--;
    p->starting = false;
}

/* ---- the play -------------------------------------------------------------------------------- */

static void step(struct play *p, struct input *in)
{
    switch ((enum client_step)(input_byte(in) % CLIENT_STEPS)) {
    case CLIENT_REQUEST:
        request(p, input_byte(in));
        break;
    case CLIENT_RELAY:
        link_carry(&p->line, 0, 0);
        break;
    case CLIENT_DAMAGE: {
        size_t at = input_byte(in);
        link_carry(&p->line, at, input_byte(in));
        break;
    }
    case CLIENT_BYTES: {
        struct input part = input_part(in, input_byte(in));
        link_send(&p->line, part.p, part.n);
        break;
    }
    case CLIENT_FRAME:
        link_send_frame(&p->line, input_part(in, input_byte(in)));
        break;
    case CLIENT_TIME:
        link_advance(&p->line, 100 * input_byte(in));
        break;
    case CLIENT_HANG_UP:
        link_hang_up(&p->line);
        link_follow(&p->line);
        break;
    case CLIENT_CLOSE:
        clave_async_client_close(p->c, p->d.now);
        link_follow(&p->line);
        break;
    case CLIENT_STEPS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play p;
    clave_client_options o = {.size = sizeof o, .hosts = "a:1,b:2", .max_frame = 4096};
    struct input in = {data, size};
    memset(&p, 0, sizeof p);
    memserver_open(&p.d, NULL);
    o.seed = 1 + (uint64_t)input_byte(&in);
    must(clave_async_client_new(&p.c, &o) == CLAVE_OK);
    for (size_t i = 0; i < WATCHES; i++)
        must(clave_async_watch_new(&p.watches[i], p.c, on_event, &p) == CLAVE_OK);
    p.line = (struct fuzz_link){.d = &p.d, .c = p.c};
    clave_async_client_start(p.c, p.d.now);
    link_follow(&p.line);
    while (in.n > 0)
        step(&p, &in);
    for (size_t i = 0; i < WATCHES; i++)
        clave_async_watch_free(p.watches[i]);
    clave_async_client_free(p.c);
    must(p.completed == p.submitted);
    if (p.line.linked)
        memserver_hang_up(&p.line.conn);
    memserver_close(&p.d);
    return 0;
}
