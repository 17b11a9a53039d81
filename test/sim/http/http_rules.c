#include "http/http_rules.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const rules[HTTP_RULES] = {
    [RULE_HELD_IS_TRUE] = "what an answer says is held was held since it was asked",
    [RULE_RELIED_ON_STANDS] = "what an answer says is held stays for valid_ms",
    [RULE_HOLD_IS_LIMITED] = "nothing is told as held beyond max_hold_ms, whichever gate tells it",
    [RULE_SILENCE_ENDS] = "nothing is told as held whose work was silent for depend_ms",
    [RULE_SIGN_IS_ASKED] = "nothing but a request for a sign of life is noted as one",
    [RULE_REFUSED_IS_NOT_BEGUN] = "what is refused with class retry is not begun",
    [RULE_STOPPED_IS_NOT_BEGUN] = "what a gate that stops refuses with class retry is not begun",
    [RULE_RELEASED_STAYS] =
        "after a certain answer that a claim is over nothing older makes it anew",
    [RULE_RELEASED_IS_GONE] = "a claim whose release is confirmed has no node any more",
    [RULE_CLOSED_IS_OVER] = "a session whose end is confirmed is over at the servers",
    [RULE_WAITING_IS_TRUE] = "what was told as held is not said to wait while it stands",
    [RULE_ONE_PLACE] = "a session has one place a path and owner",
    [RULE_GUARD_HOLDS] = "a guarded write is done while its token holds",
    [RULE_TOKEN_IS_TRUE] = "?token= says what was so since it was asked",
    [RULE_ROLE_ENDS] = "no answer extends a hold whose role is taken away",
    [RULE_ROLE_BEFORE_GRANT] = "a role that is taken away before the grant gives no hold",
    [RULE_ROLE_LEAVES] = "a place whose role is taken away goes",
    [RULE_COPY_IS_TRUE] = "what a copy says was so within the age that it gives",
    [RULE_MIN_TERM] = "of one gate no leader is said to lead sooner than min_term after another",
    [RULE_ONE_IS_IN] = "a balancer whose min_term is the page's has one leader in at a time",
    [RULE_SLOT_STAYS] = "after a certain answer that a slot is owned nothing older ends it",
    [RULE_SLOT_OVER] = "after a certain answer that no slot is owned nothing older takes one",
    [RULE_OVER_IS_TRUE] = "what is said to be over, or to wait, is not owned all the time",
    [RULE_SLOT_ROOM] = "a slot is taken over HTTP while fewer are owned than the limit says",
    [RULE_SLOT_TOKENS] = "tokens of a slot over HTTP grow",
    [RULE_COUNT_ONCE] = "a counter changes by what was asked for over HTTP, each request once",
    [RULE_COUNT_STAYS] = "a change of a counter that was acknowledged over HTTP is made and stays",
    [RULE_COUNT_IS_TRUE] = "what an answer says of a counter was so since it was asked",
    [RULE_NODE_IS_TRUE] = "a node that an answer says a session has was there since it was asked",
    [RULE_NODE_STAYS] = "after a certain answer that a session has its node nothing older ends it",
    [RULE_NODE_OVER] = "after a certain answer that it has none nothing older makes it",
    [RULE_LIST_IS_TRUE] = "a list of members or instances is as they were within its age",
};

void http_rule_broken(struct world *w, enum http_rule rule, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    world_break(w, rules[rule], "%s", text);
}
