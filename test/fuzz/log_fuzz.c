/* log_fuzz.c - recovery from any bytes. With an odd first byte the checksums are made right, so
 * that the records after them are read; what is recovered can be served and saved. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "lib/memserver.h"
#include "server/store/adler32.h"
#include "server/store/txn_log.h"

enum { RECORD_HEAD = 12, END_MARK = 'B' };

/* Record by record, as far as the lengths go. */
static void mend(uint8_t *p, size_t n)
{
    if (n >= 4)
        memcpy(p, "ZKLG", 4);
    for (size_t at = SERVER_LOG_HEADER; at < n && n - at > RECORD_HEAD;) {
        struct jreader r = clave__jreader(p + at + 8, 4);
        int32_t len = clave__jget_int(&r);
        if (len <= 0 || (size_t)len >= n - at - RECORD_HEAD)
            return;
        uint32_t sum = clave__checksum(CHECKSUM_START, p + at + RECORD_HEAD, (size_t)len);
        for (size_t i = 0; i < 8; i++)
            p[at + i] = i < 4 ? 0 : (uint8_t)(sum >> (8 * (7 - i)));
        at += RECORD_HEAD + (size_t)len;
        p[at++] = END_MARK;
    }
}

static void serve_and_save(struct memserver *d)
{
    struct memserver e;
    struct memserver_conn c;
    struct buf b;
    char fault[200];
    int64_t zxid;
    memserver_start(d);
    memserver_connect(&c, d, 10000);
    memserver_hang_up(&c);
    clave__buf_init(&b, &d->mem, SIZE_MAX / 4);
    must(clave__server_save_snapshot(d->s, &b, &zxid) == CLAVE_OK);
    must(memserver_open_bare(&e, NULL) == CLAVE_OK);
    must(clave__server_load_snapshot(e.s, b.data, b.tail, fault, sizeof fault) == CLAVE_OK);
    must(e.lines[0] == '\0');
    must(memserver_stats(&e).nodes == memserver_stats(d).nodes);
    memserver_close(&e);
    clave__buf_fini(&b);
}

/* What `clave data` does with it. */
static void look_through(const uint8_t *p, size_t n)
{
    struct log_walk w;
    struct txn_log_entry e;
    struct change_record c;
    bool is_log = clave__txn_log_walk(&w, p, n);
    must(is_log == (w.fault[0] == '\0'));
    while (is_log && clave__txn_log_next_entry(&w, &e) == LOG_STEP_RECORD) {
        int32_t changes = 0;
        for (struct jreader at = e.txn.body; clave__txn_record_next(&e.txn, &at, &c);)
            changes++;
        must(changes == e.txn.changes && e.offset + e.size == w.at && w.at <= n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    bool mended = input_byte(&in) & 1;
    uint8_t *copy = malloc(in.n ? in.n : 1);
    struct memserver d;
    struct log_replay r;
    must(copy != NULL);
    if (in.n > 0)
        memcpy(copy, in.p, in.n);
    if (mended)
        mend(copy, in.n);
    look_through(copy, in.n);
    must(memserver_open_bare(&d, NULL) == CLAVE_OK);
    clave_err err = clave__server_replay_log(d.s, copy, in.n, &r);
    must(err == CLAVE_OK || err == CLAVE_ECORRUPT);
    must((err == CLAVE_OK) == (r.fault[0] == '\0') && r.valid_len <= in.n);
    if (err == CLAVE_OK)
        serve_and_save(&d);
    memserver_close(&d);
    free(copy);
    return 0;
}
