/* fuzz_link.h - the link between a client and a memserver: all it carries may be cut, changed
 * or replaced. */
#ifndef CLAVE_TEST_FUZZ_FUZZ_LINK_H
#define CLAVE_TEST_FUZZ_FUZZ_LINK_H

#include "clave/async/client.h"
#include "fuzz/fuzz.h"
#include "lib/memserver.h"

struct fuzz_link {
    struct memserver *d;
    clave_async_client *c;
    struct memserver_conn conn; /* the server's side */
    bool linked;                /* the client has a transport */
};

/* Dials and hangs up as the client wants. */
void link_follow(struct fuzz_link *l);
void link_hang_up(struct fuzz_link *l);
/* All that the client has said is heard, and then what the server has; of that one byte is
 * another, unless `flip` is 0. */
void link_carry(struct fuzz_link *l, size_t at, uint8_t flip);
/* To the client, in place of the server's. */
void link_send(struct fuzz_link *l, const uint8_t *bytes, size_t n);
/* A frame around at most 255 bytes. */
void link_send_frame(struct fuzz_link *l, struct input part);
/* Both clocks go on. */
void link_advance(struct fuzz_link *l, int64_t ms);

#endif
