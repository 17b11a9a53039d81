#include "lib/log_records.h"

#include "server/server.h"

int32_t record_int(const struct buf *log, size_t at)
{
    struct jreader r = clave__jreader(log->data + at, 4);
    return clave__jget_int(&r);
}

int64_t record_long(const struct buf *log, size_t at)
{
    struct jreader r = clave__jreader(log->data + at, 8);
    return clave__jget_long(&r);
}

size_t record_end(const struct buf *log, size_t at)
{
    return at + RECORD_HEAD + (size_t)record_int(log, at + 8) + 1;
}

size_t record_count(const struct buf *log)
{
    size_t n = 0;
    for (size_t at = SERVER_LOG_HEADER; at < log->tail; at = record_end(log, at))
        n++;
    return n;
}

size_t record_newest(const struct buf *log)
{
    size_t at = SERVER_LOG_HEADER;
    while (record_end(log, at) < log->tail)
        at = record_end(log, at);
    return at;
}
