/* claim_scene.h - programs that claim locks over HTTP from an engine of webrig: for the tests of
 * claims. */
#ifndef CLAVE_TEST_CLAIM_SCENE_H
#define CLAVE_TEST_CLAIM_SCENE_H

#include "lib/webrig.h"

#define LOCK "{\"path\": \"/l\"}" /* the body of most claims */

struct user {
    char id[32], secret[96]; /* of its session */
    char claim[64];          /* its id */
};

/* The call is answered, and with this status. */
void user_expects(struct webrig_call *c, unsigned status);
/* Makes its session. */
void user_enter(struct webrig *r, struct user *u);
/* A request for its claim, or with POST for a new one. `wait` in seconds; -1: no preference. `more`
 * are headers, or NULL. */
struct webrig_call *user_sends(struct webrig *r, const struct user *u, const char *method, int wait,
                               const char *more, const char *body);
/* A sign of life of the work under its claim. */
struct webrig_call *user_gives_sign(struct webrig *r, const struct user *u);
/* The claim of this answer is its own from now on; ends the call. */
void user_takes_claim(struct user *u, struct webrig_call *c);

#endif
