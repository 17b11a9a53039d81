/* webrig_answer.h - requests to the rig whose answers a test knows. Apart from webrig.h, which
 * programs without cmocka use. */
#ifndef CLAVE_TEST_WEBRIG_ANSWER_H
#define CLAVE_TEST_WEBRIG_ANSWER_H

#include "lib/webrig.h"

/* As webrig_request; the test fails unless the whole answer is there, and has this status. */
struct webrig_call *webrig_answer(struct webrig *r, const char *method, const char *target,
                                  const char *headers, const char *body, unsigned status);
/* And ends it. */
void webrig_done(struct webrig *r, const char *method, const char *target, const char *headers,
                 const char *body, unsigned status);

#endif
