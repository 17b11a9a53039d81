#include "http/http_rules.h"

#include <stdarg.h>
#include <stdio.h>

struct rule {
    const char *name;
    const char *off; /* why it is not looked at; NULL: it is */
};

static const struct rule rules[HTTP_RULES] = {
    [RULE_HELD_IS_TRUE] = {"what an answer says is held was held since it was asked",
                           "answers come from memory: branch session"},
    [RULE_RELIED_ON_STANDS] = {"what an answer says is held stays for valid_ms",
                               "a try with the key of a held claim deletes its node at another "
                               "gate: branch claims"},
    [RULE_REFUSED_IS_NOT_BEGUN] = {"what is refused with class retry is not begun",
                                   "503 after it was done: branch senders"},
    [RULE_STOPPED_IS_NOT_BEGUN] = {"what a gate that stops refuses with class retry is not begun",
                                   "it answers 503 to what waits, whose place is kept"},
    [RULE_ONE_PLACE] = {"a session has one place a path", "a second one queues: branch claims"},
    [RULE_GUARD_HOLDS] = {"a guarded write is done while its token holds",
                          "a waiter's token will do: branch observe"},
    [RULE_TOKEN_IS_TRUE] = {"?token= says what was so since it was asked",
                            "a deposed leader answers, and elections are not known: branch "
                            "observe"},
    [RULE_ROLE_ENDS] = {"no answer extends a hold whose role is taken away",
                        "a role is judged once: branch session"},
    [RULE_ROLE_LEAVES] = {"a place whose role is taken away goes",
                          "a role is judged once: branch session"},
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
