/* request_limits.c - see request_limits.h. Called by head_checks.c, body.c, and by handlers
 * that wait, ask a server, or make a session. */
#include "web/http/request_limits.h"

#include <assert.h>

#include "web/http/http_metrics.h"
#include "web/http/problem.h"

/* Of the body of a sender who has proved nothing. */
enum { STRANGE_BODY = 65536 };

static void limit_refuse(struct web_exchange *x, enum sender_share share, enum sender_found found,
                         size_t most)
{
    static const struct {
        const char *nouns, *verb, *limit, *limit_of_one;
        unsigned reason;
    } of[] = {
        [SENDER_WAITS] = {"requests", "wait", " (--http-max-waiting)", " (--http-max-waiting)",
                          HTTP_REFUSED_WAITING},
        [SENDER_CALLS] = {"requests", "wait", " (--http-max-waiting)", " (--http-max-waiting)",
                          HTTP_REFUSED_WAITING},
        [SENDER_BYTES] = {"bytes of bodies and answers", "are held", "", "", HTTP_REFUSED_MEMORY},
        [SENDER_SESSIONS] = {"sessions", "are alive", "", " (--http-max-sender-sessions)", 0},
    };
    bool all = found == SENDER_ALL_TAKEN, named = x->who.is_known && x->who.name[0];
    assert(found != SENDER_MAY && share < sizeof of / sizeof *of && of[share].nouns);
    const struct problem p = {.status = all && share != SENDER_SESSIONS ? 503 : 429,
                              .err = CLAVE_ETHROTTLED,
                              .retry_after_s = 1};
    if (found == SENDER_NO_MEMORY) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "begin", NULL);
        return;
    }
    x->refused = of[share].reason;
    if (all)
        clave__web_problem(x, &p, "%zu %s %s already, and this gate takes no more%s", most,
                           of[share].nouns, of[share].verb, of[share].limit);
    else
        clave__web_problem(x, &p, "%zu %s of %s %s already, and no sender may have more%s", most,
                           of[share].nouns, named ? x->who.name : "this address", of[share].verb,
                           of[share].limit_of_one);
}

static bool limit_enter(struct web_exchange *x, enum sender_share share)
{
    size_t most = 0;
    enum sender_found found = clave__shares_enter(x, share, &most);
    if (found != SENDER_MAY)
        limit_refuse(x, share, found, most);
    return found == SENDER_MAY;
}

bool clave__web_may_wait(struct web_exchange *x)
{
    return limit_enter(x, SENDER_WAITS);
}

bool clave__web_may_keep_waiting(struct web_exchange *x)
{
    size_t most = 0;
    enum sender_found found = clave__shares_may(x, SENDER_WAITS, 1, &most);
    if (found != SENDER_MAY)
        limit_refuse(x, SENDER_WAITS, found, most);
    return found == SENDER_MAY;
}

bool clave__web_may_call(struct web_exchange *x)
{
    return clave__shares_is_own(x) || x->waits || limit_enter(x, SENDER_CALLS);
}

bool clave__web_may_make_session(struct web_exchange *x)
{
    size_t most = 0;
    enum sender_found found = clave__shares_may(x, SENDER_SESSIONS, 1, &most);
    if (found != SENDER_MAY)
        limit_refuse(x, SENDER_SESSIONS, found, most);
    return found == SENDER_MAY && clave__web_may_call(x);
}

/* What all have together is no reason: when another gate has gone, this one has all that was held
 * there, and no sender may keep another's holders from it. */
bool clave__web_may_take_up(struct web_exchange *x)
{
    size_t most = 0;
    enum sender_found found = clave__shares_may(x, SENDER_SESSIONS, 1, &most);
    bool exceeds = clave__shares_has_most(x, SENDER_SESSIONS, 1, &most);
    if (found != SENDER_NO_MEMORY && !exceeds)
        return true;
    limit_refuse(x, SENDER_SESSIONS, exceeds ? SENDER_HAS_MOST : found, most);
    return false;
}

/* n bytes alone are more than there can ever be for it, or there is no room at present. */
static void limit_refuse_bytes(struct web_exchange *x, enum sender_found found, size_t n,
                               size_t most)
{
    if (found == SENDER_NO_MEMORY || n <= most) {
        limit_refuse(x, SENDER_BYTES, found, most);
        return;
    }
    x->refused = HTTP_REFUSED_MEMORY;
    clave__web_problem(x, &(struct problem){.status = 413, .err = CLAVE_ETOOBIG},
                       "the body takes too much memory: more than the %zu bytes that one sender "
                       "may have",
                       most);
}

/* ---- the body -------------------------------------------------------------------------------- */

/* A GET, a DELETE and a renewal need none. */
static size_t limit_of_body(const struct web_exchange *x)
{
    size_t most = clave__web_max_body(x->web), least = SHARES_SMALL;
    if (!clave__shares_is_own(x) && !clave__shares_reads(x) && !clave__web_is_method(x, "DELETE"))
        least = x->who.is_known ? most : STRANGE_BODY;
    return most < least ? most : least;
}

bool clave__web_may_receive(struct web_exchange *x, int64_t n)
{
    size_t most = limit_of_body(x);
    if (n <= 0)
        return true;
    if ((uint64_t)n > most) {
        const char *why = most == clave__web_max_body(x->web) ? " (--http-max-body)"
                          : most == STRANGE_BODY ? " of a sender without a token or other proof"
                                                 : "";
        clave__web_problem(x, &(struct problem){.status = 413, .err = CLAVE_ETOOBIG},
                           "the body is too large: more than %zu bytes%s", most, why);
        return false;
    }
    enum sender_found found = clave__shares_take_body(x, (size_t)n, &most);
    if (found != SENDER_MAY)
        limit_refuse_bytes(x, found, (size_t)n, most);
    return found == SENDER_MAY;
}

bool clave__web_may_parse(struct web_exchange *x, size_t n)
{
    size_t most = 0;
    enum sender_found found =
        clave__shares_is_own(x) ? SENDER_MAY : clave__shares_take_tree(x, n, &most);
    if (found != SENDER_MAY)
        limit_refuse_bytes(x, found, n + x->received.cap, most);
    return found == SENDER_MAY;
}
