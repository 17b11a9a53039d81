/* contrib_rest_session.h - sessions as Apache's contrib REST gateway has them: known by a UUID,
 * which is all the proof there is, and ended when they were not used for as long as their maker
 * said. Each is an HTTP session whose client counts as present all the time. */
#ifndef CLAVE_WEB_SESSION_CONTRIB_REST_SESSION_H
#define CLAVE_WEB_SESSION_CONTRIB_REST_SESSION_H

#include "base/rand.h"
#include "web/session/http_session.h"

struct contrib_rest_session {
    struct list link; /* of struct web.rest_sessions */
    struct web *web;
    struct http_session *s;
    char uuid[CLAVE_UUID_TEXT + 1];
    int32_t expire_ms;
    struct timer timer; /* ends it */
    struct session_wait wait;
    bool closing;
    /* Begun, or ended; called once for each, with `arg`. NULL: nobody asks. */
    void (*done)(struct contrib_rest_session *r, clave_err err, void *arg);
    void *arg;
};

/* `done`, perhaps at once, with OK: it lives. Otherwise it is gone after that. */
clave_err clave__contrib_rest_session_open(struct web *w, const struct session_terms *t,
                                           void (*done)(struct contrib_rest_session *r,
                                                        clave_err err, void *arg),
                                           void *arg, struct contrib_rest_session **out);
/* One that lives, used now; NULL: there is none. */
struct contrib_rest_session *clave__contrib_rest_session_find(struct web *w, const char *uuid);
/* Ends it; `done` (NULL: none) before it is freed. */
void clave__contrib_rest_session_close(struct contrib_rest_session *r,
                                       void (*done)(struct contrib_rest_session *r, clave_err err,
                                                    void *arg),
                                       void *arg);
/* Forgets all of them, which end with the engine's sessions. */
void clave__rest_sessions_free(struct web *w);

#endif
