/* memnet_internal.h - what the files of memnet share: one client's connection, and its messages. */
#ifndef CLAVE_TEST_MEMNET_INTERNAL_H
#define CLAVE_TEST_MEMNET_INTERNAL_H

#include <stdlib.h>

#include "lib/memnet.h"

enum { MEMNET_SPINS = 100000 };

/* As assert, but also in a build without asserts. */
static inline void must(bool fine)
{
    if (!fine)
        abort();
}

/* Takes what the server wants to say, and makes durable what it wants to write. */
bool memnet__collect(struct memnet *p);

/* Both sides hear that the connection is gone; what was on its way is lost. */
void memnet__cut(struct memnet *p, struct memnet_client *e);
/* No connection, and nothing on the way; nobody hears of it. */
void memnet__forget_connection(struct memnet_client *e);

/* Length of the whole frame at the head, its prefix included; 0: not all there. */
size_t memnet__whole_frame(const struct buf *b);
/* The number that stands there in the frame. */
int32_t memnet__frame_int(const uint8_t *b);
/* The operation of the request at p: an opcode, MEMNET_HANDSHAKE or MEMNET_CONFIG. */
int memnet__op_of_request(const struct memnet_client *e, const uint8_t *p, size_t n);
/* Of the reply at p, likewise. */
int memnet__op_of_reply(const struct memnet_client *e, const uint8_t *p);

/* What the client has to say is on its way; false: nothing, or no connection. */
bool memnet__send_up(struct memnet *p, struct memnet_client *e);
/* Delivers the frame at the head of one direction; false: none, or held. */
bool memnet__carry(struct memnet *p, struct memnet_client *e, enum memnet_direction way);
/* Whatever can go on now, of this client; false: nothing. */
bool memnet__step(struct memnet *p, struct memnet_client *e);

#endif
