/* each_fault.h - tests whose body runs once for every fault of a kind. */
#ifndef CLAVE_TEST_EACH_FAULT_H
#define CLAVE_TEST_EACH_FAULT_H

#include "lib/failmem.h"
#include "lib/memnet.h"
#include "lib/unit.h"

/* The body runs with `mem` and `which` = 1, 2, ... and arms `mem` with that number, until a run in
 * which no allocation has failed. After each run all memory is back. There must have been more runs
 * than `least`. */
#define TEST_EACH_ALLOCATION(name, least)                                                          \
    static void name##_each(struct failmem *mem, size_t which);                                    \
    TEST(name)                                                                                     \
    {                                                                                              \
        each_allocation(name##_each, least);                                                       \
    }                                                                                              \
    static void name##_each(struct failmem *mem, size_t which)
void each_allocation(void (*run)(struct failmem *mem, size_t which), size_t least);
/* Clients on this memory. */
struct memnet *memnet_on(struct failmem *mem, size_t clients, int32_t timeout_ms);

/* The body runs with `p`, which it may not free, and `loss`, a rule for it to set: of each client,
 * each kind of message that recipes send or get, the first or one of the `skips` - 1 after it, is
 * lost or is the last one of its connection. */
#define TEST_EACH_LOSS(name, clients, timeout_ms, skips)                                           \
    static void name##_each(struct memnet *p, struct memnet_rule loss);                            \
    TEST(name)                                                                                     \
    {                                                                                              \
        each_loss(name##_each, clients, timeout_ms, skips);                                        \
    }                                                                                              \
    static void name##_each(struct memnet *p, struct memnet_rule loss)
void each_loss(void (*run)(struct memnet *p, struct memnet_rule loss), size_t clients,
               int32_t timeout_ms, unsigned skips);
/* Each way to lose a message of client 0 with this opcode, and the number of ways. */
enum { LOSSES = 4 };
struct memnet_rule loss_of(size_t way, int op);

#endif
