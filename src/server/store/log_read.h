/* log_read.h - what stands at an offset of a transaction log: checksum, length, payload, 'B'.
 *
 * And what the first thing in it that is no record means. Batches are written whole, and the next
 * one only when the one before is durable, so a power cut can have torn the newest batch and
 * nothing else: anywhere, because a disk writes the blocks of a batch in any order. The first
 * record of each batch of clave's says that it is one, by a byte behind all that Apache reads. So
 * where such a record stands behind the place, what is at the place was durable once. */
#ifndef CLAVE_SERVER_STORE_LOG_READ_H
#define CLAVE_SERVER_STORE_LOG_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_RECORD_HEAD = 12, LOG_END_MARK = 'B', LOG_BATCH_MARK = 'S' };
/* In the place of Apache's dbid, which it writes as 0 and never reads: batches are marked. */
#define LOG_DBID "clave\0\0\1"

enum found { FOUND_RECORD, FOUND_END, FOUND_TORN, FOUND_DAMAGED };

struct record {
    const uint8_t *payload;
    size_t n;
    int64_t zxid;
};

/* DAMAGED: a record with its end mark, and a wrong checksum; payload and n are set. */
enum found clave__log_look_at(const uint8_t *p, size_t n, struct record *out);
/* The offset of the first byte at or behind `from` that is not zero; n: there is none. */
size_t clave__log_skip_zeros(const uint8_t *p, size_t from, size_t n);

enum tail_kind {
    TAIL_PADDING, /* zeros: there is nothing */
    TAIL_TORN,    /* of the newest batch, which was not finished: none of it was acknowledged */
    TAIL_DAMAGED, /* was durable once, or may have been */
};
struct log_tail {
    enum tail_kind kind;
    char fault[160]; /* DAMAGED */
};
/* The bytes p[0..n) of a whole file from `at` on, where no record is, behind the zxid. */
struct log_tail clave__log_tail(const uint8_t *p, size_t at, size_t n, int64_t last_zxid);
/* Consecutive, or the first of a later leader. */
bool clave__log_follows(int64_t last, int64_t zxid);
/* The size of a file may reach the disk before its first bytes do: they are zeros then, from
 * somewhere in the header on, and no record of it was ever acknowledged. */
bool clave__log_has_torn_header(const uint8_t *p, size_t n);

#endif
