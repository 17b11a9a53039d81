#include "lib/webrig_answer.h"
#include "lib/unit.h"

struct webrig_call *webrig_answer(struct webrig *r, const char *method, const char *target,
                                  const char *headers, const char *body, unsigned status)
{
    struct webrig_call *c = webrig_request(r, method, target, headers, body);
    if (!c->answered || c->status != status)
        print_error("%s %s: %u, not %u: %s\n", method, target, c->status, status, webrig_body(c));
    assert_true(c->answered && c->done);
    assert_int_equal(c->status, status);
    return c;
}

void webrig_done(struct webrig *r, const char *method, const char *target, const char *headers,
                 const char *body, unsigned status)
{
    webrig_end(webrig_answer(r, method, target, headers, body, status));
}
