/* fuzz.h - what the fuzz targets share. */
#ifndef CLAVE_TEST_FUZZ_H
#define CLAVE_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert, whatever the build. */
#define must(fine) ((fine) ? (void)0 : must_not(__FILE__, __LINE__, #fine))
static inline _Noreturn void must_not(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
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

/* And for the recipes:
 *   0 what how  something is asked of a recipe
 *   1           all that was said is heard on the other side
 *   2 at x      the same, but one byte of the server's is another
 *   3 n bytes   a frame in place of the server's
 *   4 how dir n bytes   a client of another kind makes, writes or removes a node
 *   5 n         n * 100 ms pass
 *   6           the connection goes
 *   7 0         the session is closed */
enum recipe_step {
    RECIPE_ASK,
    RECIPE_RELAY,
    RECIPE_DAMAGE,
    RECIPE_FRAME,
    RECIPE_FOREIGN,
    RECIPE_TIME,
    RECIPE_HANG_UP,
    RECIPE_CLOSE,
    RECIPE_STEPS,
};

/* And for several sessions at one server: a byte for the step, one for the session (its number, and
 * above it which node is meant), then what it needs.
 *   0 op how n bytes   a request, well-formed, with this data
 *   1 n         what it said is heard up to there only, and the rest with its next step
 *   2           it takes nothing of what it is told, or all again
 *   3           its connection goes; the next goes on with the session
 *   4           two connections of one session at a time: the first is cut off
 *   5 n         n * 100 ms pass
 *   6           the disk stands, or works again
 *   7           the server is started anew, from its log */
enum session_step {
    SESSION_REQUEST,
    SESSION_SPLIT,
    SESSION_DEAF,
    SESSION_AGAIN,
    SESSION_MOVE,
    SESSION_TIME,
    SESSION_DISK,
    SESSION_RESTART,
    SESSION_STEPS,
};

#endif
