/* message_fault.h - a fault that waits for a certain message of a client; and the scanner
 * that finds its opcode in the byte stream. */
#ifndef CLAVE_SIM_MESSAGE_FAULT_H
#define CLAVE_SIM_MESSAGE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world.h"

enum { OPCODE_HANDSHAKE = -100, OPCODE_ANY = -101, SCANNER_HEAD = 12 };

struct opcode_scanner {
    uint8_t head[SCANNER_HEAD]; /* length, xid, opcode */
    size_t have;
    size_t skip; /* of the frame at hand */
    bool shaken;
    size_t body; /* of the message found: where it begins in the bytes that were fed */
};

enum message_fault_kind {
    MESSAGE_NONE,
    MESSAGE_LOSE_REQUEST, /* cut in the middle of it */
    MESSAGE_LOSE_REPLY,   /* it arrives, and is done; the answer is cut */
    MESSAGE_FORGET,       /* half-open from then on */
    MESSAGE_PAUSE,        /* the process is stopped right after sending it */
    MESSAGE_KILL,         /* it is killed some steps after sending it */
    MESSAGE_LATE,         /* its answer is late, and nothing else gets through for a while */
    MESSAGE_LATE_UP,      /* it arrives late */
    MESSAGE_BESIDE,       /* something else happens while it is on its way */
    MESSAGE_REFUSE,       /* setWatches: the server answers with an error, and goes on */
};

struct message_fault {
    enum message_fault_kind kind;
    int32_t op;
    int64_t us;         /* of MESSAGE_PAUSE and the late ones */
    unsigned again;     /* MESSAGE_REFUSE: so many more after it */
    struct alarm *then; /* NULL, or set when it is triggered */
    int64_t then_us;
};

/* A new connection. */
void scanner_reset(struct opcode_scanner *t);
/* Bytes on their way; true when a message of that opcode begins in them. */
bool scanner_feed(struct opcode_scanner *t, const void *p, size_t n, int32_t op);

/* "create2"; for the log. */
const char *opcode_name(int32_t op);

#endif
