/* read_write_order.c - see read_write_order.h. Called by queue_order.c. */
#include "recipe/queue/read_write_order.h"

/* Curator's names have the same length, so that the number is at the same place in both. */
const struct queue_order_rule clave__queue_order_read = {.base = "__READ__",
                                                         .kazoo_base = "__rlock__",
                                                         .other = &clave__queue_order_write,
                                                         .shares = true};
const struct queue_order_rule clave__queue_order_write = {.base = "__WRIT__",
                                                          .kazoo_base = "__lock__",
                                                          .other = &clave__queue_order_read,
                                                          .overtaken = true};
bool clave__read_write_blocks(const struct queue_order_rule *rule, bool is_other)
{
    return !rule->shares || is_other;
}

size_t clave__read_write_index(const struct queue_order_rule *rule, size_t theirs, size_t own)
{
    return rule->shares ? own : theirs;
}
