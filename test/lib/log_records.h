/* log_records.h - the records of a log file as they lie in it: checksum, length, payload, 'B'. */
#ifndef CLAVE_TEST_LOG_RECORDS_H
#define CLAVE_TEST_LOG_RECORDS_H

#include "base/buf.h"
#include "wire/jute.h"

/* What is in front of a record's payload. */
enum { RECORD_HEAD = 12 };

int32_t record_int(const struct buf *log, size_t at);
int64_t record_long(const struct buf *log, size_t at);

/* The end of the record at an offset, which is where the next one begins. */
size_t record_end(const struct buf *log, size_t at);
size_t record_count(const struct buf *log);
/* The offset of the newest record. There is one. */
size_t record_newest(const struct buf *log);

#endif
