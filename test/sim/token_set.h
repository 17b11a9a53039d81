/* token_set.h - the tokens of all grants of one path, to find one that comes again. They mostly
 * grow, so a new one is looked up only if it is not the largest. */
#ifndef CLAVE_SIM_TOKEN_SET_H
#define CLAVE_SIM_TOKEN_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "world.h"

struct token_set {
    int64_t *tokens; /* in ascending order */
    size_t n;
};

/* false: it was there. */
static inline bool token_set_add(struct token_set *s, int64_t token)
{
    size_t i = s->n;
    while (i > 0 && s->tokens[i - 1] > token)
        i--;
    if (i > 0 && s->tokens[i - 1] == token)
        return false;
    s->tokens = world_grow(s->tokens, (s->n + 1) * sizeof *s->tokens);
    for (size_t k = s->n++; k > i; k--)
        s->tokens[k] = s->tokens[k - 1];
    s->tokens[i] = token;
    return true;
}

static inline void token_set_fini(struct token_set *s)
{
    free(s->tokens);
    *s = (struct token_set){0};
}

#endif
