/* hand_over.c - clave_client_hand_over: the session as a text, and the file that it is written to.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/blocking/call.h"
#include "runtime/client/session_file.h"

static void hand_over_on_text(clave_async_client *c, clave_err err, const char *session, void *arg)
{
    (void)c;
    clave__call_answer_block(arg, err, session ? strdup(session) : NULL);
}

static clave_err hand_over_begin(struct call *c, const struct args *a)
{
    return clave_async_client_hand_over(c->client->async, a->deadline, hand_over_on_text, c);
}

clave_err clave_client_hand_over(clave_client *client, const char *file, int64_t timeout_ms)
{
    const struct args a = {.deadline = clave__deadline_after(timeout_ms)};
    char why[512] = "";
    const struct fault f = {why, sizeof why};
    struct session_file o;
    void *text = NULL;
    clave_err err = clave__session_file_begin(&o, file, &f);
    if (err == CLAVE_OK) /* the client answers when the time is over */
        err = clave__call_block(client, hand_over_begin, &a, -1, &text);
    clave_err kept = clave__session_file_end(&o, err == CLAVE_OK ? text : NULL, &f);
    if (why[0] != '\0')
        clave__blocking_tell(client, why);
    free(text);
    return err == CLAVE_OK ? kept : err;
}
