/* http_rules.h - what must hold over HTTP beside what a single program sees, in one table. */
#ifndef CLAVE_SIM_HTTP_RULES_H
#define CLAVE_SIM_HTTP_RULES_H

#include "world.h"

enum http_rule {
    RULE_HELD_IS_TRUE,
    RULE_RELIED_ON_STANDS,
    RULE_HOLD_IS_LIMITED,
    RULE_SILENCE_ENDS,
    RULE_SIGN_IS_ASKED,
    RULE_REFUSED_IS_NOT_BEGUN,
    RULE_STOPPED_IS_NOT_BEGUN,
    RULE_RELEASED_STAYS,
    RULE_RELEASED_IS_GONE,
    RULE_CLOSED_IS_OVER,
    RULE_WAITING_IS_TRUE,
    RULE_ONE_PLACE,
    RULE_GUARD_HOLDS,
    RULE_TOKEN_IS_TRUE,
    RULE_ROLE_ENDS,
    RULE_ROLE_BEFORE_GRANT,
    RULE_ROLE_LEAVES,
    RULE_COPY_IS_TRUE,
    RULE_MIN_TERM,
    RULE_ONE_IS_IN,
    RULE_SLOT_STAYS,
    RULE_SLOT_OVER,
    RULE_OVER_IS_TRUE,
    RULE_SLOT_ROOM,
    RULE_SLOT_TOKENS,
    RULE_COUNT_ONCE,
    RULE_COUNT_STAYS,
    RULE_COUNT_IS_TRUE,
    RULE_NODE_IS_TRUE,
    RULE_NODE_STAYS,
    RULE_NODE_OVER,
    RULE_LIST_IS_TRUE,
    HTTP_RULES,
};

/* Breaks the world. */
__attribute__((format(printf, 3, 4))) void http_rule_broken(struct world *w, enum http_rule rule,
                                                            const char *fmt, ...);

#endif
