/* client_fuzz.c - the client between a real server and anybody: what it asks is answered by the
 * engine of the server, whole or with a byte changed, or by any bytes; time passes and connections
 * go. Each request completes once, never inside the call that made it. */
#include <string.h>

#include "base/mem.h"
#include "clave/client.h"
#include "fuzz/fuzz.h"
#include "lib/desk.h"

enum { WATCHES = 4, REQUESTS = 14 };

struct play {
    struct desk d;
    struct desk_conn conn; /* the transport: conn.c NULL when there is none */
    clave_client *c;
    clave_watch *watches[WATCHES];
    bool linked; /* the client has a transport */
    bool starting;
    size_t submitted, completed;
};

/* ---- the client ------------------------------------------------------------------------------ */

static void on_result(clave_client *c, const clave_result *res, void *arg)
{
    struct play *p = arg;
    (void)c;
    must(!p->starting);
    p->completed++;
    must(p->completed <= p->submitted);
    must(res->err != CLAVE_OK || res->nnames == 0 || res->names[res->nnames - 1] != NULL);
}

static void on_event(clave_client *c, clave_watch *w, const clave_event *ev, void *arg)
{
    const struct play *p = arg;
    (void)c;
    (void)w;
    must(!p->starting && ev->path != NULL);
}

static clave_err submit(struct play *p, uint8_t kind, clave_watch *w)
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
        return clave_create(p->c, "/a", "data", 4, NULL, on_result, p);
    case 1:
        return clave_create(p->c, "/l/lock-", NULL, 0, &protected, on_result, p);
    case 2:
        return clave_create(p->c, "/l/n_", NULL, 0, &certain, on_result, p);
    case 3:
        return clave_delete(p->c, "/a", -1, on_result, p);
    case 4:
        return clave_delete_guaranteed(p->c, "/l", on_result, p);
    case 5:
        return clave_exists(p->c, "/a", w, on_result, p);
    case 6:
        return clave_get(p->c, "/a", w, on_result, p);
    case 7:
        return clave_children(p->c, "/", w, on_result, p);
    case 8:
        return clave_set(p->c, "/a", "new", 3, -1, on_result, p);
    case 9:
        return clave_get_acl(p->c, "/a", on_result, p);
    case 10:
        return clave_sync(p->c, "/", on_result, p);
    case 11:
        return clave_add_auth(p->c, "digest", "u:p", 3, on_result, p);
    case 12:
        return clave_children(p->c, "/l", NULL, on_result, p);
    default:
        return clave_multi(p->c, ops, 3, on_result, p);
    }
}

static void request(struct play *p, uint8_t kind)
{
    clave_watch *w = p->watches[kind / REQUESTS % WATCHES];
    if (clave_watch_is_armed(w))
        clave_watch_disarm(w);
    p->starting = true;
    p->submitted++;
    if (submit(p, kind, w) != CLAVE_OK)
        p->submitted--;
    p->starting = false;
}

/* ---- the transport --------------------------------------------------------------------------- */

static void hang_up(struct play *p)
{
    if (!p->linked)
        return;
    p->linked = false;
    desk_hang_up(&p->conn);
    clave_client_disconnected(p->c, p->d.now);
}

/* Dials and hangs up as often as it is wanted. */
static void obey(struct play *p)
{
    for (unsigned turn = 0; turn < 10; turn++) {
        unsigned wants = clave_client_wants(p->c);
        if (wants & CLAVE_WANT_HANGUP) {
            must(p->linked);
            hang_up(p);
        } else if (wants & CLAVE_WANT_DIAL) {
            must(!p->linked && clave_client_target(p->c).host != NULL);
            desk_dial(&p->conn, &p->d);
            p->linked = true;
            clave_client_connected(p->c, p->d.now);
        } else {
            return;
        }
    }
}

static void pass_on(struct play *p, const uint8_t *bytes, size_t n)
{
    if (p->linked && clave_client_wants(p->c) & CLAVE_WANT_READ)
        clave_client_input(p->c, p->d.now, bytes, n);
    obey(p);
}

/* All that is said goes to the other side; of the server's, one byte may be another. */
static void relay(struct play *p, size_t at, uint8_t flip)
{
    const void *out;
    size_t n;
    while (p->linked && (n = clave_client_output(p->c, &out)) > 0) {
        desk_send(&p->conn, out, n);
        clave_client_sent(p->c, p->d.now, n);
    }
    n = p->linked ? clave__buf_len(&p->conn.in) : 0;
    if (n > 0) {
        uint8_t *copy = malloc(n);
        must(copy != NULL);
        memcpy(copy, clave__buf_bytes(&p->conn.in), n);
        clave__buf_clear(&p->conn.in);
        copy[at % n] ^= flip;
        pass_on(p, copy, n);
        free(copy);
    }
    if (p->linked && !p->conn.c)
        hang_up(p);
    obey(p);
}

static void send_frame(struct play *p, struct input part)
{
    uint8_t frame[4 + 255] = {0, 0, 0, (uint8_t)part.n};
    if (part.n > 0)
        memcpy(frame + 4, part.p, part.n);
    pass_on(p, frame, 4 + part.n);
}

static void wait(struct play *p, int64_t ms)
{
    int64_t until = p->d.now + ms;
    for (unsigned turn = 0; clave_client_deadline(p->c) <= until; turn++) {
        int64_t at = clave_client_deadline(p->c);
        must(turn < 10000);
        if (at > p->d.now)
            desk_advance(&p->d, at - p->d.now);
        clave_client_tick(p->c, p->d.now);
        obey(p);
        if (p->linked && clave_client_wants(p->c) & CLAVE_WANT_WRITE)
            break; /* what it says has to be relayed, or it would say it for ever */
    }
    if (until > p->d.now)
        desk_advance(&p->d, until - p->d.now);
    clave_client_tick(p->c, p->d.now);
    obey(p);
}

/* ---- the play -------------------------------------------------------------------------------- */

static void step(struct play *p, struct input *in)
{
    switch ((enum client_step)(input_byte(in) % CLIENT_STEPS)) {
    case CLIENT_REQUEST:
        request(p, input_byte(in));
        break;
    case CLIENT_RELAY:
        relay(p, 0, 0);
        break;
    case CLIENT_DAMAGE: {
        size_t at = input_byte(in);
        relay(p, at, input_byte(in));
        break;
    }
    case CLIENT_BYTES: {
        struct input part = input_part(in, input_byte(in));
        pass_on(p, part.p, part.n);
        break;
    }
    case CLIENT_FRAME:
        send_frame(p, input_part(in, input_byte(in)));
        break;
    case CLIENT_TIME:
        wait(p, 100 * input_byte(in));
        break;
    case CLIENT_HANG_UP:
        hang_up(p);
        obey(p);
        break;
    case CLIENT_CLOSE:
        clave_client_close(p->c, p->d.now);
        obey(p);
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
    desk_open(&p.d, NULL);
    o.seed = input_byte(&in);
    must(clave_client_new(&p.c, &o) == CLAVE_OK);
    for (size_t i = 0; i < WATCHES; i++)
        must(clave_watch_new(&p.watches[i], p.c, on_event, &p) == CLAVE_OK);
    clave_client_start(p.c, p.d.now);
    obey(&p);
    while (in.n > 0)
        step(&p, &in);
    for (size_t i = 0; i < WATCHES; i++)
        clave_watch_free(p.watches[i]);
    clave_client_free(p.c);
    must(p.completed == p.submitted);
    if (p.linked)
        desk_hang_up(&p.conn);
    desk_close(&p.d);
    return 0;
}
