#include "lib/each_fault.h"

void each_allocation(void (*run)(struct failmem *mem, size_t which), size_t least)
{
    struct failmem mem;
    size_t which = 0;
    do {
        failmem_init(&mem);
        run(&mem, ++which);
        assert_int_equal(mem.live, 0);
    } while (mem.failed);
    assert_true(which > least);
}

struct memnet *memnet_on(struct failmem *mem, size_t clients, int32_t timeout_ms)
{
    return memnet_new(
        &(struct memnet_options){.clients = clients, .timeout_ms = timeout_ms, .mem = &mem->mem});
}

struct memnet_rule loss_of(size_t way, int op)
{
    static const struct memnet_rule ways[LOSSES] = {
        {.way = MEMNET_REQUEST, .fate = MEMNET_LOSE},
        {.way = MEMNET_REQUEST, .fate = MEMNET_PASS_CUT},
        {.way = MEMNET_REPLY, .fate = MEMNET_LOSE},
        {.way = MEMNET_REPLY, .fate = MEMNET_PASS_CUT},
    };
    struct memnet_rule loss = ways[way];
    loss.op = op;
    return loss;
}

void each_loss(void (*run)(struct memnet *p, struct memnet_rule loss), size_t clients,
               int32_t timeout_ms, unsigned skips)
{
    static const int ops[] = {OP_CREATE2, OP_CREATE_CONTAINER, OP_GET_CHILDREN2, OP_GET_DATA,
                              OP_DELETE,  OP_NOTIFICATION,     OP_MULTI,         OP_SYNC,
                              OP_PING,    MEMNET_HANDSHAKE};
    for (size_t i = 0; i < sizeof ops / sizeof *ops * LOSSES * skips * clients; i++) {
        struct memnet_rule loss = loss_of(i / clients % LOSSES, ops[i / clients / LOSSES / skips]);
        loss.client = i % clients;
        loss.skip = (unsigned)(i / clients / LOSSES % skips);
        struct memnet *p = memnet_of(clients, timeout_ms);
        run(p, loss);
        memnet_free(p);
    }
}
