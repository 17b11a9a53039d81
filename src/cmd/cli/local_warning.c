/* local_warning.c - prints the warnings of local_warning.h. connect.c and lock_messages.c call it.
 * They concern "local:" only; for other servers nothing is printed. */
#include "cmd/cli/local_warning.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "runtime/client/local_paths.h"

enum { USER_CAP = 64 };

bool local_may_be_used(const struct options *o, const char *connect)
{
    if (!local_is(connect) || o->client.local != CLIENT_LOCAL_NEVER)
        return true;
    diag_end(
        o, NULL, EXIT_USAGE,
        "%s, and %s (%s): name one with --connect HOSTS, CLAVE_CONNECT, or 'connect = HOSTS' in "
        "~/.config/clave/config or /etc/clave/config",
        o->connect ? "local: is this user's own server" : "no server is named",
        o->connect ? "must not be used here" : "a local one must not be used here",
        o->client.local_from);
    return false;
}

static const char *local_warning_user_name(char out[USER_CAP])
{
    const struct passwd *pw = getpwuid(geteuid());
    if (pw)
        snprintf(out, USER_CAP, "%s", pw->pw_name);
    else
        snprintf(out, USER_CAP, "%u", (unsigned)geteuid());
    return out;
}

static bool local_server_find(struct local_paths *out)
{
    char fault[512];
    return clave__local_paths(out, NULL, fault, sizeof fault) == CLAVE_OK;
}

static bool local_warning_is_used(const struct options *o)
{
    return !o->connect || local_is(o->connect);
}

void local_note(const struct options *o)
{
    struct local_paths p;
    char user[USER_CAP];
    if (o->verbose == 0 || !local_warning_is_used(o) || !local_server_find(&p))
        return;
    if (p.passed_over)
        diag_note(o, "%s names another user's directory, in which root creates nothing",
                  p.passed_over);
    diag_note(o, "local: the server of user %s on this machine, %s", local_warning_user_name(user),
              p.socket);
}

void local_tell_acquired(struct options *o, const char *path, bool elected, int64_t session_id)
{
    struct local_paths p;
    char user[USER_CAP];
    bool unseen = !isatty(STDERR_FILENO) && o->client.local != CLIENT_LOCAL_YES;
    if (!local_warning_is_used(o) || o->json || o->told_local || (!unseen && o->verbose == 0) ||
        !local_server_find(&p))
        return;
    o->told_local = true;
    diag(o,
         "%s: %s at local:, user %s's own server at %s, session 0x%" PRIx64 ": other users and "
         "other machines are not excluded (name a shared server with --connect, or set 'local = "
         "yes' in the configuration)",
         path, elected ? "elected" : "acquired", local_warning_user_name(user), p.socket,
         (uint64_t)session_id);
}

void local_put(const struct options *o, struct json *j)
{
    struct local_paths p;
    char user[USER_CAP];
    if (!local_warning_is_used(o) || !local_server_find(&p))
        return;
    clave__json_open(j, "local", '{');
    clave__json_string(j, "user", local_warning_user_name(user));
    clave__json_string(j, "socket", p.socket);
    clave__json_close(j, '}');
}
