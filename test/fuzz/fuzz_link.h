/* fuzz_link.h - what lies between a client and a server on a desk: all it carries may be cut,
 * changed or replaced. */
#ifndef CLAVE_TEST_FUZZ_FUZZ_LINK_H
#define CLAVE_TEST_FUZZ_FUZZ_LINK_H

#include "clave/async/client.h"
#include "fuzz/fuzz.h"
#include "lib/memserver.h"

struct line {
    struct desk *d;
    clave_async_client *c;
    struct desk_conn conn; /* the server's side */
    bool linked;           /* the client has a transport */
};

/* Dials and hangs up as often as the client wants it. */
void line_obey(struct line *l);
void line_hang_up(struct line *l);
/* All that the client has said is heard, and then what the server has; of that one byte is
 * another, unless `flip` is 0. */
void line_relay(struct line *l, size_t at, uint8_t flip);
/* To the client, in place of the server's. */
void line_say(struct line *l, const uint8_t *bytes, size_t n);
/* A frame around at most 255 bytes. */
void line_say_frame(struct line *l, struct input part);
/* Both clocks go on. */
void line_wait(struct line *l, int64_t ms);

#endif
