#include "message_fault.h"

#include <string.h>

#include "wire/opcode.h"

const char *opcode_name(int32_t op)
{
    if (op == OPCODE_HANDSHAKE)
        return "handshake";
    return op == OPCODE_ANY ? "next message" : clave__opcode(op)->name;
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void scanner_reset(struct opcode_scanner *t)
{
    memset(t, 0, sizeof *t);
}

static bool end_of_head(struct opcode_scanner *t, int32_t op)
{
    int32_t found = t->shaken ? (int32_t)get_u32(t->head + 8) : OPCODE_HANDSHAKE;
    size_t len = get_u32(t->head);
    t->shaken = true;
    t->have = 0;
    t->skip = len > SCANNER_HEAD - 4 ? len - (SCANNER_HEAD - 4) : 0;
    return op == OPCODE_ANY || op == found;
}

bool scanner_feed(struct opcode_scanner *t, const void *p, size_t n, int32_t op)
{
    const uint8_t *bytes = p;
    bool found = false;
    while (n > 0) {
        size_t step = t->skip < n ? t->skip : n;
        if (t->skip == 0) {
            step = SCANNER_HEAD - t->have < n ? SCANNER_HEAD - t->have : n;
            memcpy(t->head + t->have, bytes, step);
            t->have += step;
            if (t->have == SCANNER_HEAD && end_of_head(t, op)) {
                found = true;
                t->body = (size_t)(bytes + step - (const uint8_t *)p);
            }
        } else {
            t->skip -= step;
        }
        bytes += step;
        n -= step;
    }
    return found;
}
