/* frame.h - messages on a byte stream: each is a 4-byte length, then that many bytes. */
#ifndef CLAVE_WIRE_FRAME_H
#define CLAVE_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "clave/err.h"

/* Cuts a stream into frames. It holds the bytes of at most one incomplete frame;
 * whole frames inside the fed bytes are never copied. */
struct frame_reader {
    struct buf held; /* its maximum is max_frame + 4 */
    size_t max_frame;
    const uint8_t *in; /* the bytes of the current feed not yet read */
    size_t in_len;
    size_t drop; /* bytes of `held` that the last _next returned */
};

void clave__frame_reader_init(struct frame_reader *f, const struct clave_mem *mem,
                              size_t max_frame);
static inline void clave__frame_reader_fini(struct frame_reader *f)
{
    clave__buf_fini(&f->held);
}

/* Drops everything held, since a new connection begins. */
void clave__frame_reader_reset(struct frame_reader *f);

/* Offers n bytes. Call _next until it yields no frame before feeding again: _next
 * keeps the incomplete rest. `p` must stay valid until then. */
void clave__frame_feed(struct frame_reader *f, const void *p, size_t n);

/* Returns 1 and the payload of the next frame (valid until the next call), 0 when more
 * bytes are needed, or a negative error: CLAVE_ETOOBIG (length over the maximum; the length
 * is in *n), CLAVE_EPROTO (negative length), CLAVE_ENOMEM. */
int clave__frame_next(struct frame_reader *f, const uint8_t **payload, size_t *n);

/* Begins a frame at the end of the writer's buffer. Returns the frame's offset from the head of the
 * content, which has to be passed to _end, which fills in the length. If the writer has an error,
 * _end cuts the half-written frame off again and returns the error. */
struct jwriter;
size_t clave__frame_begin(struct jwriter *w);
clave_err clave__frame_end(struct jwriter *w, size_t begin);

#endif
