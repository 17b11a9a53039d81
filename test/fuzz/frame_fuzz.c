/* frame_fuzz.c - a stream in any pieces gives the frames it gives in one. The first byte seeds the
 * sizes of the pieces, the second is the longest frame. */
#include <string.h>

#include "base/memory.h"
#include "base/rand.h"
#include "fuzz/fuzz.h"
#include "wire/frame.h"

/* What was read: the lengths and a sum over the bytes, and how it ended. */
struct seen {
    size_t frames;
    uint64_t sum;
    int end;
};

static void take_all(struct frame_reader *f, struct seen *s)
{
    const uint8_t *p;
    size_t n;
    while ((s->end = clave__frame_next(f, &p, &n)) == 1) {
        must(n <= f->max_frame);
        s->frames++;
        s->sum = s->sum * 31 + n;
        for (size_t i = 0; i < n; i++)
            s->sum = s->sum * 31 + p[i];
    }
}

static struct seen read_in_pieces(const struct input *in, size_t max, size_t most, uint8_t seed)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct frame_reader f;
    struct rand_state rand;
    struct seen s = {0, 0, 0};
    clave__rand_seed(&rand, seed);
    clave__frame_reader_init(&f, &mem, max);
    for (size_t at = 0, n; at < in->n && s.end == 0; at += n) {
        n = (size_t)clave__rand_below(&rand, most) + 1;
        n = n < in->n - at ? n : in->n - at;
        uint8_t *copy = malloc(n); /* of its own size: what lies after it may not be read */
        must(copy != NULL);
        memcpy(copy, in->p + at, n);
        clave__frame_feed(&f, copy, n);
        take_all(&f, &s);
        free(copy);
    }
    clave__frame_reader_fini(&f);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t seed = input_byte(&in);
    size_t max = input_byte(&in);
    struct seen whole = read_in_pieces(&in, max, SIZE_MAX - 1, seed);
    for (size_t most = 1; most <= 64; most *= 4) {
        struct seen pieces = read_in_pieces(&in, max, most, seed);
        must(pieces.frames == whole.frames && pieces.sum == whole.sum);
        must(pieces.end == whole.end);
    }
    return 0;
}
