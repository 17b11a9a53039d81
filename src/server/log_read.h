/* log_read.h - what stands at an offset of a transaction log: checksum, length, payload, 'B'. */
#ifndef CLAVE_SERVER_LOG_READ_H
#define CLAVE_SERVER_LOG_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_RECORD_HEAD = 12, LOG_END_MARK = 'B' };

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
/* The offset of a whole record that would have followed, at or behind `from`: then what is
 * in front of it was once durable too. n: there is none. */
size_t clave__log_find_record(const uint8_t *p, size_t from, size_t n, int64_t last_zxid);
/* Consecutive, or the first of a later leader. */
bool clave__log_follows(int64_t last, int64_t zxid);
/* The size of a file may reach the disk before its first bytes do: they are zeros then, from
 * somewhere in the header on, and no record of it was ever acknowledged. */
bool clave__log_has_torn_header(const uint8_t *p, size_t n);

#endif
