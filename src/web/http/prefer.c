/* prefer.c - see prefer.h. Called by the endpoints that wait. */
#include "web/http/prefer.h"

#include <string.h>
#include <strings.h>

enum { MOST_S = 1000000 };

static const char blanks[] = " \t";

/* Beyond the end of a token, or of a quoted string. */
static const char *prefer_end_of_word(const char *at)
{
    if (*at != '"')
        return at + strcspn(at, " \t,;=\"\\");
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* NAME, NAME=VALUE; [value, end) has the quotes that it was written with. Returns what comes
 * behind, after blanks. */
static const char *prefer_part(const char *at, const char **value, const char **end)
{
    at = prefer_end_of_word(at);
    at += strspn(at, blanks);
    *value = *end = at;
    if (*at == '=') {
        *value = at + 1 + strspn(at + 1, blanks);
        at = *end = prefer_end_of_word(*value);
    }
    return at + strspn(at, blanks);
}

/* delta-seconds, in ms; -1: it is none. */
static int64_t prefer_seconds(const char *at, const char *end)
{
    int64_t s = 0;
    bool quoted = end - at >= 2 && *at == '"' && end[-1] == '"', any = false;
    for (at += quoted, end -= quoted; at < end; at++) {
        if (quoted && *at == '\\') /* "1\0" is 10 */
            at++;
        if (*at < '0' || *at > '9')
            return -1;
        s = s * 10 + (*at - '0');
        s = s < MOST_S ? s : MOST_S;
        any = true;
    }
    return any ? s * 1000 : -1;
}

bool clave__prefer_find_wait(const char *at, int64_t *ms)
{
    static const char wait[] = "wait";
    for (at += strspn(at, " \t,"); *at; at += strspn(at, " \t,")) {
        const char *name = at, *value, *end, *other;
        at = prefer_part(at, &value, &end);
        while (*at == ';') { /* parameters of the preference */
            at += 1 + strspn(at + 1, blanks);
            at = prefer_part(at, &other, &other);
        }
        bool is_whole = *at == ',' || *at == '\0';
        at += strcspn(at, ",");
        if (prefer_end_of_word(name) - name != sizeof wait - 1 ||
            strncasecmp(name, wait, sizeof wait - 1) != 0)
            continue;
        *ms = is_whole ? prefer_seconds(value, end) : -1;
        return true;
    }
    return false;
}

int64_t clave__web_prefer_wait(const struct web_exchange *x)
{
    const char *prefer;
    int64_t ms = -1;
    for (size_t i = 0; (prefer = clave__web_header_at(x, "Prefer", i)); i++)
        if (clave__prefer_find_wait(prefer, &ms))
            break;
    return ms;
}
