/* frame.c - cuts a byte stream into frames and writes frame headers; see frame.h. At most one of
 * `held` (an incomplete frame) and `in` (the current feed) supplies the next frame: `held` first.
 */
#include "wire/frame.h"

#include <assert.h>
#include <string.h>

#include "wire/jute.h"

enum { LENGTH = 4 };

void clave__frame_reader_init(struct frame_reader *f, const struct clave_mem *mem, size_t max_frame)
{
    *f = (struct frame_reader){.max_frame = max_frame};
    clave__buf_init(&f->held, mem, max_frame + LENGTH);
}

void clave__frame_reader_reset(struct frame_reader *f)
{
    clave__buf_clear(&f->held);
    f->in = NULL;
    f->in_len = 0;
    f->drop = 0;
}

void clave__frame_feed(struct frame_reader *f, const void *p, size_t n)
{
    assert(f->in_len == 0);
    f->in = p;
    f->in_len = n;
}

/* Moves bytes of the feed into `held` until it has `want` bytes or the feed ends. */
static clave_err frame_hold(struct frame_reader *f, size_t want)
{
    size_t have = clave__buf_len(&f->held);
    size_t n = want > have ? want - have : 0;
    if (n > f->in_len)
        n = f->in_len;
    clave_err err = clave__buf_append(&f->held, f->in, n);
    if (err)
        return err;
    f->in += n;
    f->in_len -= n;
    return CLAVE_OK;
}

/* Stores the length in the first four bytes at p in *n. Returns 1 if a frame may have that length,
 * otherwise the error. */
static int frame_length_at(const struct frame_reader *f, const uint8_t *p, size_t *n)
{
    struct jreader r = clave__jreader(p, LENGTH);
    int32_t length = clave__jget_int(&r);
    *n = (size_t)length;
    if (length < 0)
        return CLAVE_EPROTO;
    return (size_t)length > f->max_frame ? CLAVE_ETOOBIG : 1;
}

static int frame_next_held(struct frame_reader *f, const uint8_t **payload, size_t *n)
{
    clave_err err = frame_hold(f, LENGTH);
    if (err)
        return err;
    if (clave__buf_len(&f->held) < LENGTH)
        return 0;
    int rc = frame_length_at(f, clave__buf_bytes(&f->held), n);
    if (rc < 0)
        return rc;
    /* Reserves room for the whole frame, so that a long one is not copied each time the room has
     * doubled. Bytes that have not arrived yet take no memory, only addresses. */
    err = clave__buf_reserve(&f->held, LENGTH + *n - clave__buf_len(&f->held));
    if (err == CLAVE_OK)
        err = frame_hold(f, LENGTH + *n);
    if (err)
        return err;
    if (clave__buf_len(&f->held) < LENGTH + *n)
        return 0;
    *payload = clave__buf_bytes(&f->held) + LENGTH;
    f->drop = LENGTH + *n;
    return 1;
}

int clave__frame_next(struct frame_reader *f, const uint8_t **payload, size_t *n)
{
    if (f->drop) {
        clave__buf_consume(&f->held, f->drop);
        f->drop = 0;
    }
    if (clave__buf_len(&f->held) > 0)
        return frame_next_held(f, payload, n);
    if (f->in_len >= LENGTH) {
        int rc = frame_length_at(f, f->in, n);
        if (rc < 0)
            return rc;
        if (f->in_len - LENGTH >= *n) { /* the whole frame is in the feed: no copy is needed */
            *payload = f->in + LENGTH;
            f->in += LENGTH + *n;
            f->in_len -= LENGTH + *n;
            return 1;
        }
    }
    return f->in_len ? frame_next_held(f, payload, n) : 0;
}

size_t clave__frame_begin(struct jwriter *w)
{
    size_t begin = clave__buf_len(w->b);
    clave__jput_int(w, 0);
    return begin;
}

clave_err clave__frame_end(struct jwriter *w, size_t begin)
{
    assert(clave__buf_len(w->b) >= begin + LENGTH || w->err);
    size_t n = clave__buf_len(w->b) - begin;
    if (w->err) {
        w->b->tail -= n;
        return w->err;
    }
    clave__jput_int_at(w, begin, (int32_t)(n - LENGTH));
    return CLAVE_OK;
}
