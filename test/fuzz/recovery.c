#include "fuzz/recovery.h"

#include "fuzz/fuzz.h"

/* The digest of the whole tree, as a snapshot ends with it. */
static uint64_t digest_of(const struct memserver *d)
{
    enum { BEHIND = 13 + 8 + 13 + 8 };
    struct buf b;
    int64_t zxid;
    clave__buf_init(&b, &d->mem, SIZE_MAX / 4);
    must(clave__server_save_snapshot(d->s, &b, &zxid) == CLAVE_OK);
    struct jreader r = clave__jreader(b.data + b.tail - BEHIND, 8);
    uint64_t digest = (uint64_t)clave__jget_long(&r);
    clave__buf_fini(&b);
    return digest;
}

void recovery_check(const struct memserver *d)
{
    struct memserver e;
    struct log_replay r;
    must(memserver_open_bare(&e, NULL) == CLAVE_OK);
    must(clave__server_replay_log(e.s, d->log.data, d->log.tail, &r) == CLAVE_OK);
    must(!r.torn && e.lines[0] == '\0');
    must(digest_of(&e) == digest_of(d));
    struct server_stats x = memserver_stats(d), y = memserver_stats(&e);
    must(x.last_zxid == y.last_zxid && x.sessions == y.sessions && x.nodes == y.nodes &&
         x.ephemerals == y.ephemerals && x.data_bytes == y.data_bytes);
    memserver_close(&e);
}
