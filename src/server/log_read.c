#include "server/log_read.h"

#include <string.h>

#include "server/checksum.h"
#include "server/server.h"
#include "wire/jute.h"

enum { LEAST_PAYLOAD = 32 };

static int64_t long_at(const uint8_t *p)
{
    struct jreader r = clave__jreader(p, 8);
    return clave__jget_long(&r);
}

enum found clave__log_look_at(const uint8_t *p, size_t n, struct record *out)
{
    if (n == 0)
        return FOUND_END;
    if (n < LOG_RECORD_HEAD)
        return FOUND_TORN;
    struct jreader r = clave__jreader(p, n);
    int64_t sum = clave__jget_long(&r);
    int32_t len = clave__jget_int(&r);
    if (len <= 0 || (size_t)len >= r.n)
        return FOUND_TORN;
    if (r.p[len] != LOG_END_MARK)
        return FOUND_TORN;
    *out = (struct record){.payload = r.p, .n = (size_t)len};
    if (len < LEAST_PAYLOAD || sum != (int64_t)clave__checksum(CHECKSUM_START, r.p, out->n))
        return FOUND_DAMAGED;
    out->zxid = long_at(r.p + 12);
    return FOUND_RECORD;
}

size_t clave__log_skip_zeros(const uint8_t *p, size_t from, size_t n)
{
    static const uint8_t zeros[4096];
    while (n - from >= sizeof zeros && memcmp(p + from, zeros, sizeof zeros) == 0)
        from += sizeof zeros;
    while (from < n && p[from] == 0)
        from++;
    return from;
}

size_t clave__log_find_record(const uint8_t *p, size_t from, size_t n, int64_t last_zxid)
{
    struct record rec;
    for (size_t at = from; at < n; at++) {
        /* Padding may be long: no record begins more than eight bytes, its checksum, before
         * the first byte that is not zero. */
        if (p[at] == 0) {
            size_t other = clave__log_skip_zeros(p, at, n);
            if (other == n)
                return n;
            if (other - at > LOG_RECORD_HEAD)
                at = other - LOG_RECORD_HEAD;
        }
        if (clave__log_look_at(p + at, n - at, &rec) == FOUND_RECORD && rec.zxid > last_zxid)
            return at;
    }
    return n;
}

bool clave__log_follows(int64_t last, int64_t zxid)
{
    return zxid == last + 1 || (zxid >> 32 > last >> 32 && (uint32_t)zxid == 1);
}

bool clave__log_has_torn_header(const uint8_t *p, size_t n)
{
    uint8_t header[SERVER_LOG_HEADER];
    size_t same = 0;
    clave__server_log_header(header);
    while (same < n && same < sizeof header && p[same] == header[same])
        same++;
    return same < sizeof header && clave__log_skip_zeros(p, same, n) == n;
}
