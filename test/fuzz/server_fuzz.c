/* server_fuzz.c - anything a client may send, cut anywhere, while time passes, the disk stands and
 * connections go: afterwards the log gives the same tree, and nothing is left over. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/recovery.h"
#include "lib/memserver.h"

struct play {
    struct memserver d;
    struct memserver_conn c, other;
    unsigned listed; /* by the other */
};

enum { LISTS = 32 }; /* their work grows with the square of them */

static void drain(struct memserver_conn *c)
{
    clave__buf_clear(&c->in);
}

/* The next connection; without an old session, or when that is gone, with a new one. */
static void connect_again(struct play *p)
{
    struct memserver_conn old = p->c;
    memserver_hang_up(&p->c);
    if (old.session != 0 && memserver_resume(&p->c, &old))
        return;
    if (old.session != 0)
        memserver_hang_up(&p->c);
    p->d.disk_stands = false;
    memserver_settle(&p->d);
    memserver_connect(&p->c, &p->d, 10000);
}

/* A frame around the bytes: its xid and operation are theirs. */
static void send_frame(struct play *p, struct input part)
{
    memserver_send_frame(&p->c, part.p, part.n);
}

static void other_client(struct play *p)
{
    static const uint8_t create[] = {0, 0, 0, 2,   '/', 'o', 255, 255, 255, 255, 0,   0,   0,   1,
                                     0, 0, 0, 31,  0,   0,   0,   5,   'w', 'o', 'r', 'l', 'd', 0,
                                     0, 0, 6, 'a', 'n', 'y', 'o', 'n', 'e', 0,   0,   0,   2};
    uint8_t request[8 + sizeof create] = {0, 0, 0, 1, 0, 0, 0, OP_CREATE};
    static const uint8_t read[] = {0, 0, 0, 1, 0, 0, 0, OP_GET_CHILDREN, 0, 0, 0, 1, '/', 1};
    memcpy(request + 8, create, sizeof create);
    memserver_send_frame(&p->other, request, sizeof request);
    if (p->listed++ < LISTS)
        memserver_send_frame(&p->other, read, sizeof read);
    drain(&p->other);
}

static void step(struct play *p, struct input *in)
{
    switch ((enum step)(input_byte(in) % STEPS)) {
    case STEP_BYTES: {
        struct input part = input_part(in, input_byte(in));
        memserver_send(&p->c, part.p, part.n);
        break;
    }
    case STEP_FRAME:
        send_frame(p, input_part(in, input_byte(in)));
        break;
    case STEP_TIME:
        memserver_advance(&p->d, 100 * input_byte(in));
        break;
    case STEP_DISK:
        p->d.disk_stands = !p->d.disk_stands;
        memserver_settle(&p->d);
        break;
    case STEP_AGAIN:
        connect_again(p);
        break;
    case STEP_OTHER:
        other_client(p);
        break;
    case STEPS:
        break;
    }
    drain(&p->c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play p;
    struct server_options o = {.max_frame = 4096, .max_output = 4096, .container_check_ms = 1000};
    struct input in = {data, size};
    memserver_open(&p.d, &o);
    memserver_connect(&p.other, &p.d, 40000);
    p.listed = 0;
    if (input_byte(&in) & 1)
        memserver_connect(&p.c, &p.d, 10000);
    else
        memserver_dial(&p.c, &p.d); /* the handshake is the input's */
    while (in.n > 0)
        step(&p, &in);
    p.d.disk_stands = false;
    memserver_settle(&p.d);
    recovery_check(&p.d);
    memserver_hang_up(&p.c);
    memserver_hang_up(&p.other);
    must(memserver_stats(&p.d).watches == 0);
    must(memserver_stats(&p.d).connections == 0);
    memserver_advance(&p.d, 60000);
    must(memserver_stats(&p.d).sessions == 0);
    must(memserver_stats(&p.d).ephemerals == 0);
    recovery_check(&p.d);
    memserver_close(&p.d);
    return 0;
}
