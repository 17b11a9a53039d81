/* fuzz.h - what the fuzz targets share. */
#ifndef CLAVE_TEST_FUZZ_H
#define CLAVE_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert, whatever the build. */
static inline void must(bool fine)
{
    if (!fine)
        abort();
}

/* An input that is taken from the front; zeros when it is used up. */
struct input {
    const uint8_t *p;
    size_t n;
};

static inline uint8_t input_byte(struct input *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

/* The next n bytes, or what is left. */
static inline struct input input_part(struct input *in, size_t n)
{
    struct input part = {in->p, n < in->n ? n : in->n};
    in->p += part.n;
    in->n -= part.n;
    return part;
}

/* Steps of an input for the server: a byte for the step, then what it needs.
 *   0 n bytes   n raw bytes to the connection (n is one byte)
 *   1 n bytes   a frame around them
 *   2 n         n * 100 ms pass
 *   3           the disk stands, or works again
 *   4           the connection goes; the next one goes on with the session
 *   5           a second client writes and reads
 * Any other byte counts as it does modulo their number. */
enum step { STEP_BYTES, STEP_FRAME, STEP_TIME, STEP_DISK, STEP_AGAIN, STEP_OTHER, STEPS };

/* And for the client:
 *   0 n         a request, one of several, with one of several watches
 *   1           all that was said is heard on the other side
 *   2 at x      the same, but one byte of the server's is another
 *   3 n bytes   n raw bytes in place of the server's
 *   4 n bytes   a frame around them
 *   5 n         n * 100 ms pass
 *   6           the connection goes
 *   7           the session is closed */
enum client_step {
    CLIENT_REQUEST,
    CLIENT_RELAY,
    CLIENT_DAMAGE,
    CLIENT_BYTES,
    CLIENT_FRAME,
    CLIENT_TIME,
    CLIENT_HANG_UP,
    CLIENT_CLOSE,
    CLIENT_STEPS,
};

#endif
