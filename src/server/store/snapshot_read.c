/* snapshot_read.c - see snapshot_read.h: Apache's format. */
#include "server/store/snapshot_read.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/store/adler32.h"
#include "wire/record.h"

enum { HEADER = 16, DIGEST_VERSION = 2 };

static const char magic[4] = {'Z', 'K', 'S', 'N'};

clave_err clave__snapshot_damaged(struct snapshot_reader *in, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(in->fault, in->cap, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < in->cap)
        snprintf(in->fault + n, in->cap - (size_t)n, ", at offset %zu",
                 (size_t)(in->r.p - in->begin));
    return CLAVE_ECORRUPT;
}

static clave_err snapshot_get_header(struct snapshot_reader *in)
{
    if (in->r.n < HEADER || memcmp(in->r.p, magic, sizeof magic) != 0)
        return clave__snapshot_damaged(in, "it does not begin with ZKSN, as a snapshot does");
    clave__jget_int(&in->r);
    clave__jget_int(&in->r);
    clave__jget_long(&in->r);
    return CLAVE_OK;
}

static clave_err snapshot_get_sessions(struct snapshot_reader *in)
{
    int32_t count = clave__jget_count(&in->r, 12);
    clave_err err = CLAVE_OK;
    for (int32_t i = 0; i < count && err == CLAVE_OK; i++) {
        int64_t id = clave__jget_long(&in->r);
        int32_t timeout_ms = clave__jget_int(&in->r);
        if (in->visitor->session)
            err = in->visitor->session(in->arg, id, timeout_ms);
    }
    if (err != CLAVE_OK)
        return err;
    return in->r.bad ? clave__snapshot_damaged(in, "the sessions are cut short") : CLAVE_OK;
}

static clave_err snapshot_get_lists(struct snapshot_reader *in)
{
    int32_t count = clave__jget_count(&in->r, 12);
    if (in->r.bad)
        return clave__snapshot_damaged(in, "the access lists are cut short");
    size_t n = count > 0 ? (size_t)count : 0;
    clave_err err = in->visitor->lists ? in->visitor->lists(in->arg, n) : CLAVE_OK;
    for (size_t i = 0; i < n && err == CLAVE_OK; i++) {
        int64_t key = clave__jget_long(&in->r);
        struct jvec entries = clave__wire_get_acls(&in->r);
        if (in->r.bad)
            return clave__snapshot_damaged(in, "the access lists are not well formed");
        if (in->visitor->list)
            err = in->visitor->list(in->arg, key, entries);
    }
    return err;
}

static struct node_stat snapshot_get_stat(struct jreader *r)
{
    struct node_stat s = {0};
    s.czxid = clave__jget_long(r);
    s.mzxid = clave__jget_long(r);
    s.ctime = clave__jget_long(r);
    s.mtime = clave__jget_long(r);
    s.version = clave__jget_int(r);
    s.cversion = clave__jget_int(r);
    s.aversion = clave__jget_int(r);
    s.owner = clave__jget_long(r);
    s.pzxid = clave__jget_long(r);
    return s;
}

static void snapshot_note_zxid(struct snapshot_reader *in, int64_t zxid)
{
    if (zxid > in->newest)
        in->newest = zxid;
}

static bool snapshot_is_end(struct jbytes path)
{
    return path.n == 1 && path.p[0] == '/';
}

static clave_err snapshot_get_nodes(struct snapshot_reader *in)
{
    for (;;) {
        struct snapshot_node n = {.path = clave__jget_bytes(&in->r)};
        if (!in->r.bad && snapshot_is_end(n.path))
            return CLAVE_OK;
        n.data = clave__jget_bytes(&in->r);
        n.acl_key = clave__jget_long(&in->r);
        n.stat = snapshot_get_stat(&in->r);
        if (in->r.bad || n.path.n < 0)
            return clave__snapshot_damaged(in, "the nodes are cut short");
        snapshot_note_zxid(in, n.stat.mzxid);
        snapshot_note_zxid(in, n.stat.pzxid);
        clave_err err = in->visitor->node(in->arg, &n);
        if (err != CLAVE_OK)
            return err;
    }
}

/* A seal is the checksum of everything before it. */
static clave_err snapshot_get_seal(struct snapshot_reader *in, const uint8_t **from, uint32_t *sum)
{
    *sum = clave__checksum(*sum, *from, (size_t)(in->r.p - *from));
    *from = in->r.p;
    int64_t seal = clave__jget_long(&in->r);
    struct jbytes end = clave__jget_bytes(&in->r);
    if (in->r.bad || !snapshot_is_end(end))
        return clave__snapshot_damaged(in, "a seal is cut short");
    return seal == (int64_t)*sum
               ? CLAVE_OK
               : clave__snapshot_damaged(in, "a seal is not the checksum of the file");
}

/* The parts added in 3.6 and 3.9 may be missing. */
static clave_err snapshot_get_seals(struct snapshot_reader *in)
{
    const uint8_t *from = in->begin;
    uint32_t sum = CHECKSUM_START;
    clave_err err = snapshot_get_seal(in, &from, &sum);
    if (err != CLAVE_OK || in->r.n == 0)
        return err;
    /* Without digests Apache 3.9 writes only its zxid and a seal: 21 bytes. */
    if (in->r.n != 8 + 8 + 5) {
        in->digest_zxid = clave__jget_long(&in->r);
        in->has_digest = clave__jget_int(&in->r) == DIGEST_VERSION;
        in->digest = (uint64_t)clave__jget_long(&in->r);
        snapshot_note_zxid(in, in->digest_zxid);
        err = snapshot_get_seal(in, &from, &sum);
        if (err != CLAVE_OK || in->r.n == 0)
            return err;
    }
    snapshot_note_zxid(in, clave__jget_long(&in->r));
    return snapshot_get_seal(in, &from, &sum);
}

clave_err clave__snapshot_read(struct snapshot_reader *in, const void *p, size_t n)
{
    assert(in->visitor->node && (in->visitor->lists || !in->visitor->list));
    assert(in->newest == 0 && !in->has_digest); /* one reader for each file */
    in->begin = p;
    in->r = clave__jreader(p, n);
    clave_err err = snapshot_get_header(in);
    if (err == CLAVE_OK)
        err = snapshot_get_sessions(in);
    if (err == CLAVE_OK)
        err = snapshot_get_lists(in);
    if (err == CLAVE_OK)
        err = snapshot_get_nodes(in);
    return err == CLAVE_OK ? snapshot_get_seals(in) : err;
}
