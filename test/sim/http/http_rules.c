#include "http/http_rules.h"

#include <stdarg.h>
#include <stdio.h>

struct rule {
    const char *name;
    const char *off; /* why it is not looked at; NULL: it is */
};

static const struct rule rules[HTTP_RULES] = {
    [RULE_HELD_IS_TRUE] = {"what an answer says is held was held since it was asked", NULL},
    [RULE_RELIED_ON_STANDS] = {"what an answer says is held stays for valid_ms", NULL},
    [RULE_REFUSED_IS_NOT_BEGUN] = {"what is refused with class retry is not begun", NULL},
    [RULE_STOPPED_IS_NOT_BEGUN] = {"what a gate that stops refuses with class retry is not begun",
                                   NULL},
    [RULE_ONE_PLACE] = {"a session has one place a path", NULL},
    [RULE_GUARD_HOLDS] = {"a guarded write is done while its token holds", NULL},
    [RULE_TOKEN_IS_TRUE] = {"?token= says what was so since it was asked", NULL},
    [RULE_ROLE_ENDS] = {"no answer extends a hold whose role is taken away", NULL},
    [RULE_ROLE_BEFORE_GRANT] = {"a role that is taken away before the grant gives no hold", NULL},
    [RULE_ROLE_LEAVES] = {"a place whose role is taken away goes", NULL},
    [RULE_COPY_IS_TRUE] = {"what a copy says was so within the age that it gives", NULL},
};

void http_rule_broken(struct world *w, enum http_rule rule, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (rules[rule].off)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    world_break(w, rules[rule].name, "%s", text);
}
