/* seeds.c - the first inputs of the fuzz targets, as files below a folder: what the encoders write
 * and what the engine logs and saves.
 *
 *   fuzz_seeds FOLDER */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "fuzz/seeds.h"
#include "lib/memserver.h"

static const char *folder;

void keep(const char *target, const void *head, size_t head_len, const void *p, size_t n)
{
    static int number;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, target);
    must(mkdir(path, 0777) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/%s/seed-%03d", folder, target, ++number);
    FILE *f = fopen(path, "wb");
    must(f != NULL);
    must(fwrite(head, 1, head_len, f) == head_len && fwrite(p, 1, n, f) == n);
    must(fclose(f) == 0);
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct jvec one_path(const char *path)
{
    static uint8_t room[64];
    size_t n = strlen(path);
    memset(room, 0, 4);
    room[3] = (uint8_t)n;
    memcpy(room + 4, path, n);
    return (struct jvec){1, room, 4 + n};
}

static size_t put_multi(struct buf *b)
{
    struct wire_op ops[] = {{OP_CREATE2, memserver_create_body("/m", "data", MODE_EPHEMERAL)},
                            {OP_SET_DATA, {.set = {clave__jbytes("/m"), clave__jbytes("x"), 0}}},
                            {OP_CHECK, {.check = {clave__jbytes("/"), -1}}},
                            {OP_DELETE, {.check = {clave__jbytes("/m"), 1}}}};
    struct jwriter w = clave__jwriter(b);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        clave__wire_put_op(&w, &ops[i]);
    clave__wire_put_ops_end(&w);
    return sizeof ops / sizeof *ops;
}

/* The body of an operation, in this order for wire_fuzz and each as a step for server_fuzz. */
static union wire_body body_of(int32_t op, struct buf *room)
{
    union wire_body b = {.read = {clave__jbytes("/a"), true}};
    switch (op) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        b = memserver_create_body("/a", "data", op == OP_CREATE ? MODE_EPHEMERAL_SEQUENTIAL : 0);
        b.create.ttl_ms = 1000;
        break;
    case OP_DELETE:
    case OP_CHECK:
        b = (union wire_body){.check = {clave__jbytes("/a"), -1}};
        break;
    case OP_SET_DATA:
        b = (union wire_body){.set = {clave__jbytes("/a"), clave__jbytes("new"), -1}};
        break;
    case OP_SET_ACL:
        b = (union wire_body){.set_acl = {clave__jbytes("/a"), {0, NULL, 0}, -1}};
        b.set_acl.acl = memserver_acl(PERM_ALL, "digest", "u:p");
        break;
    case OP_AUTH:
        b = (union wire_body){.auth = {0, clave__jbytes("digest"), clave__jbytes("u:p")}};
        break;
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
        b = (union wire_body){.watches = {.relative_zxid = 1}};
        b.watches.data = b.watches.exist = b.watches.child = one_path("/a");
        b.watches.persistent = b.watches.persistent_recursive = one_path("/a");
        break;
    case OP_CHECK_WATCHES:
    case OP_REMOVE_WATCHES:
    case OP_ADD_WATCH:
        b = (union wire_body){.typed = {clave__jbytes("/a"), 1}};
        break;
    case OP_GET_ACL:
    case OP_SYNC:
    case OP_SASL:
    case OP_GET_EPHEMERALS:
    case OP_GET_ALL_CHILDREN_NUMBER:
    case OP_DELETE_CONTAINER:
        b = (union wire_body){.path = clave__jbytes("/a")};
        break;
    case OP_RECONFIG:
        b = (union wire_body){.reconfig = {JBYTES_NULL, JBYTES_NULL, clave__jbytes("x"), -1}};
        break;
    case OP_MULTI:
        b = (union wire_body){.multi = {(int32_t)put_multi(room), room->data, room->tail}};
        break;
    default:
        break;
    }
    return b;
}

static const int32_t ops[] = {
    OP_CREATE,
    OP_EXISTS,
    OP_GET_DATA,
    OP_SET_DATA,
    OP_GET_ACL,
    OP_SET_ACL,
    OP_GET_CHILDREN,
    OP_SYNC,
    OP_PING,
    OP_GET_CHILDREN2,
    OP_CHECK_WATCHES,
    OP_MULTI,
    OP_CREATE2,
    OP_RECONFIG,
    OP_CREATE_CONTAINER,
    OP_REMOVE_WATCHES,
    OP_CREATE_TTL,
    OP_AUTH,
    OP_SET_WATCHES,
    OP_SASL,
    OP_GET_EPHEMERALS,
    OP_GET_ALL_CHILDREN_NUMBER,
    OP_SET_WATCHES2,
    OP_ADD_WATCH,
    OP_WHO_AM_I,
    OP_DELETE_CONTAINER,
    OP_DELETE,
    OP_CLOSE_SESSION,
};

/* One file with each operation, and one with all of them one after the other. */
static void keep_requests(void)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct buf all, frame, room;
    clave__buf_init(&all, &mem, SIZE_MAX / 4);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        clave__buf_init(&frame, &mem, SIZE_MAX / 4);
        clave__buf_init(&room, &mem, SIZE_MAX / 4);
        struct wire_request q = {
            .xid = (int32_t)i + 1, .op = ops[i], .body = body_of(ops[i], &room)};
        struct jwriter w = clave__jwriter(&frame);
        clave__wire_put_request(&w, &q);
        must(w.err == CLAVE_OK && frame.tail < 256);
        for (uint8_t op = 0; op < 30; op++) { /* wire_fuzz has them in its own order */
            const uint8_t head[2] = {0, op};
            keep("wire_fuzz", head, sizeof head, frame.data + 8, frame.tail - 8);
        }
        const uint8_t step[2] = {STEP_FRAME, (uint8_t)frame.tail};
        const uint8_t with_session[3] = {1, step[0], step[1]};
        keep("server_fuzz", with_session, sizeof with_session, frame.data, frame.tail);
        must(clave__buf_append(&all, step, sizeof step) == CLAVE_OK);
        must(clave__buf_append(&all, frame.data, frame.tail) == CLAVE_OK);
        clave__buf_fini(&frame);
        clave__buf_fini(&room);
    }
    keep("server_fuzz", "\1", 1, all.data, all.tail);
    clave__buf_fini(&all);
}

static void keep_handshake(void)
{
    static const uint8_t hello[] = {0, STEP_FRAME, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                    0, 39,         16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16};
    static const uint8_t rest[] = {
        0,   0,          0,         0,          0, 0,   0,   0,         0,          0,
        0,   0,          0,         0,          0, 0,   0,   STEP_DISK, STEP_OTHER, STEP_TIME,
        200, STEP_AGAIN, STEP_DISK, STEP_BYTES, 4, 'r', 'u', 'o',       'k'};
    static const char words[] = SERVER_WORDS "," SERVER_OTHER_WORDS;
    static const uint8_t say[] = {0, STEP_BYTES, 4};
    keep("server_fuzz", hello, sizeof hello, rest, sizeof rest);
    for (size_t i = 0; i < sizeof words; i += 5)
        keep("server_fuzz", say, sizeof say, words + i, 4);
    keep("wire_fuzz", "\2", 2, hello + 3, sizeof hello - 3);
    keep("wire_fuzz", "\3", 2, hello + 3, sizeof hello - 3);
    keep("frame_fuzz", "\1\x40", 2, "\0\0\0\0\0\0\0\3abc\0\0\0\1x\0\0\0\x41", 20);
}

/* Each kind of request, answered; then all of them, and a new connection, and the end. */
static void keep_conversations(void)
{
    uint8_t all[256] = {1, CLIENT_RELAY};
    size_t n = 2;
    for (uint8_t kind = 0; kind < 14; kind++) {
        const uint8_t one[] = {kind, CLIENT_RELAY, CLIENT_REQUEST, kind, CLIENT_RELAY};
        keep("client_fuzz", one, sizeof one, "", 0);
        memcpy(all + n, one + 2, 3);
        n += 3;
    }
    static const uint8_t end[] = {CLIENT_HANG_UP, CLIENT_TIME,  5,           CLIENT_RELAY,
                                  CLIENT_RELAY,   CLIENT_CLOSE, CLIENT_RELAY};
    static const uint8_t event[] = {CLIENT_FRAME,
                                    26,
                                    255,
                                    255,
                                    255,
                                    255,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    9,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    3,
                                    0,
                                    0,
                                    0,
                                    3,
                                    0,
                                    0,
                                    0,
                                    2,
                                    '/',
                                    'a'};
    keep("client_fuzz", all, n, end, sizeof end);
    keep("client_fuzz", all, n, event, sizeof event);
}

/* ---- replies --------------------------------------------------------------------------------- */

/* What the server answers, without its length, for the reader of replies. */
static void keep_replies(struct memserver_conn *c)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    for (size_t i = 0; i < sizeof ops / sizeof *ops && c->c; i++) {
        struct wire_reply_header h;
        struct jreader r;
        struct buf room;
        clave__buf_init(&room, &mem, SIZE_MAX / 4);
        union wire_body body = body_of(ops[i], &room);
        memserver_request(c, ops[i], &body);
        while (memserver_next(c, &h, &r))
            for (uint8_t op = 0; op < 30; op++) {
                const uint8_t head[2] = {1, op};
                keep("wire_fuzz", head, sizeof head, r.p, r.n);
            }
        clave__buf_fini(&room);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void keep_files(void)
{
    struct memserver d;
    struct memserver_conn c;
    struct buf b;
    int64_t zxid;
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 10000);
    must(memserver_create(&c, "/a", "data", MODE_PERSISTENT) == CLAVE_OK);
    must(memserver_create(&c, "/a/e-", NULL, MODE_EPHEMERAL_SEQUENTIAL) == CLAVE_OK);
    must(memserver_create(&c, "/box", "", MODE_CONTAINER) == CLAVE_OK);
    clave__buf_init(&b, &d.mem, SIZE_MAX / 4);
    must(clave__server_save_snapshot(d.s, &b, &zxid) == CLAVE_OK);
    keep("snapshot_fuzz", "\0", 1, b.data, b.tail);
    keep("snapshot_fuzz", "\1", 1, b.data, b.tail - 21 - 33);
    clave__buf_fini(&b);
    keep_replies(&c);
    memserver_hang_up(&c);
    memserver_advance(&d, 20000);
    keep("log_fuzz", "\0", 1, d.log.data, d.log.tail);
    keep("log_fuzz", "\1", 1, d.log.data, d.log.tail);
    keep("log_fuzz", "\0", 1, d.log.data, d.log.tail - 7); /* torn */
    must(clave__buf_reserve(&d.log, 512) == CLAVE_OK);
    memset(d.log.data + d.log.tail, 0, 512); /* room that was taken ahead */
    keep("log_fuzz", "\0", 1, d.log.data, d.log.tail + 512);
    keep("log_fuzz", "\0", 1, d.log.data + d.log.tail, 512); /* a header that was never written */
    memserver_close(&d);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 64;
    }
    folder = argv[1];
    keep_requests();
    keep_handshake();
    keep_conversations();
    keep_files();
    keep_texts();
    keep_plays();
    keep_http();
    return 0;
}
