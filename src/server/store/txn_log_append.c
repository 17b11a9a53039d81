/* txn_log_append.c - writes the records of Apache's transaction log: checksum, length, payload,
 * 'B'. The requests that write append; the driver takes what is pending. Invariant: s->last_zxid is
 * the zxid of the newest record appended. */
#include <assert.h>

#include "server/server_internal.h"
#include "server/store/adler32.h"
#include "server/store/txn_log_read.h"
#include "server/store/txn_record.h"

clave_err clave__txn_log_append(struct server *s)
{
    assert(s->txn.head.zxid == s->last_zxid + 1);
    struct jwriter w = clave__jwriter(&s->txn_log.pending);
    size_t begin = clave__buf_len(&s->txn_log.pending), head = begin + LOG_RECORD_HEAD;
    clave__jput_long(&w, 0);
    clave__jput_int(&w, 0);
    clave__txn_write(&w, &s->txn);
    if (s->txn.head.type != OP_ERROR) {
        clave__jput_int(&w, TXN_DIGEST_VERSION);
        clave__jput_long(&w, (int64_t)s->tree.digest);
    }
    if (begin == 0)
        clave__jput_byte(&w, LOG_BATCH_MARK);
    size_t n = clave__buf_len(&s->txn_log.pending) - head;
    clave__jput_byte(&w, LOG_END_MARK);
    if (w.err != CLAVE_OK) {
        s->txn_log.pending.tail -= clave__buf_len(&s->txn_log.pending) - begin;
        return w.err;
    }
    uint32_t sum = clave__checksum(CHECKSUM_START, clave__buf_bytes(&s->txn_log.pending) + head, n);
    clave__jput_int_at(&w, begin + 4, (int32_t)sum);
    clave__jput_int_at(&w, begin + 8, (int32_t)n);
    if (begin == 0)
        s->txn_log.pending_first = s->txn.head.zxid;
    s->last_zxid = s->txn.head.zxid;
    clave__snapshot_count(s, LOG_RECORD_HEAD + n);
    return CLAVE_OK;
}

struct log_batch clave__server_log_pending(const struct server *s)
{
    size_t n = clave__buf_len(&s->txn_log.pending);
    if (n == 0)
        return (struct log_batch){NULL, 0, 0, 0};
    return (struct log_batch){clave__buf_bytes(&s->txn_log.pending), n, s->txn_log.pending_first,
                              s->last_zxid};
}

void clave__server_log_taken(struct server *s)
{
    clave__buf_clear(&s->txn_log.pending);
}

/* Only the memory changes hands, not the limits. */
void clave__server_log_swap(struct server *s, struct buf *empty)
{
    assert(clave__buf_len(empty) == 0);
    struct buf full = s->txn_log.pending;
    s->txn_log.pending.data = empty->data;
    s->txn_log.pending.cap = empty->cap;
    s->txn_log.pending.head = s->txn_log.pending.tail = 0;
    empty->data = full.data;
    empty->cap = full.cap;
    empty->head = full.head;
    empty->tail = full.tail;
}
