/* memnet_internal.h - what the files of the pair share: one end's connection, and its messages. */
#ifndef CLAVE_TEST_MEMNET_INTERNAL_H
#define CLAVE_TEST_MEMNET_INTERNAL_H

#include <stdlib.h>

#include "lib/memnet.h"

enum { PAIR_SPINS = 100000 };

/* As assert, but also in a build without asserts. */
static inline void must(bool fine)
{
    if (!fine)
        abort();
}

/* Takes what the server wants to say, and makes durable what it wants to write. */
bool pair__collect(struct pair *p);

/* Both sides hear that the connection is gone; what was on its way is lost. */
void pair__cut(struct pair *p, struct pair_end *e);
/* No connection, and nothing on the way; nobody hears of it. */
void pair__forget_connection(struct pair_end *e);

/* Length of the whole frame at the head, its prefix included; 0: not all there. */
size_t pair__whole_frame(const struct buf *b);
/* The number that stands there in the frame. */
int32_t pair__frame_int(const uint8_t *b);
/* The operation of the request at p: an opcode, PAIR_HANDSHAKE or PAIR_CONFIG. */
int pair__op_of_request(const struct pair_end *e, const uint8_t *p, size_t n);
/* Of the reply at p, likewise. */
int pair__op_of_reply(const struct pair_end *e, const uint8_t *p);

/* What the client has to say is on its way; false: nothing, or no connection. */
bool pair__send_up(struct pair *p, struct pair_end *e);
/* Delivers the frame at the head of one direction; false: none, or held. */
bool pair__carry(struct pair *p, struct pair_end *e, enum pair_way way);
/* Whatever can go on now, of this client; false: nothing. */
bool pair__step(struct pair *p, struct pair_end *e);

#endif
