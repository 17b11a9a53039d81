/* serve_log.c - formats the server's log (serve_log.h); serve.c passes it to the engine. Any thread
 * may log: each line is written as one piece. */
#include "cmd/serve/serve_log.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clave/mem.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"

enum { VALUE_CAP = 256 };

/* ---- what a line is about ------------------------------------------------------------------
 * The engine's lines use fixed wording: "session 0x..", an address with its port, a path. */

static void serve_log_copy(const char *from, size_t n, char out[VALUE_CAP])
{
    n = n < VALUE_CAP ? n : VALUE_CAP - 1;
    memcpy(out, from, n);
    out[n] = '\0';
}

static bool find_session(const char *msg, char out[VALUE_CAP])
{
    const char *at = strstr(msg, "session 0x");
    if (!at)
        return false;
    at += strlen("session ");
    serve_log_copy(at, 2 + strspn(at + 2, "0123456789abcdef"), out);
    return true;
}

/* "1.2.3.4:5" or "[::1]:5". */
static bool is_address(const char *word, size_t n)
{
    size_t host = *word == '[' ? strcspn(word, "]") + 1 : strspn(word, "0123456789.");
    if (host < 3 || host + 1 >= n || word[host] != ':' ||
        !memchr(word, *word == '[' ? ':' : '.', host))
        return false;
    return strspn(word + host + 1, "0123456789") == n - host - 1;
}

static bool serve_log_find_word(const char *msg, bool (*is)(const char *word, size_t n),
                                char out[VALUE_CAP])
{
    for (const char *at = msg; *at;) {
        at += strspn(at, " (");
        size_t n = strcspn(at, " "), end = n;
        while (end > 0 && strchr(",:;)", at[end - 1]))
            end--;
        if (end > 0 && is(at, end)) {
            serve_log_copy(at, end, out);
            return true;
        }
        at += n;
    }
    return false;
}

static bool is_path(const char *word, size_t n)
{
    return *word == '/' && n > 1;
}

/* ---- the line ---------------------------------------------------------------------------------
 */

static void put_json(int level, const char *msg)
{
    static const char *const names[] = {"error", "error", "warn", "info", "debug"};
    struct timespec now;
    struct tm utc;
    char when[40], value[VALUE_CAP];
    struct json j;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(when + n, sizeof when - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
    json_begin(&j, stderr);
    clave__json_string(&j, "time", when);
    clave__json_string(&j, "level", names[level > 0 && level <= CLAVE_LOG_DEBUG ? level : 0]);
    clave__json_string(&j, "message", msg);
    if (serve_log_find_word(msg, is_address, value))
        clave__json_string(&j, "connection", value);
    if (find_session(msg, value))
        clave__json_string(&j, "session", value);
    if (serve_log_find_word(msg, is_path, value))
        clave__json_string(&j, "path", value);
    json_end(&j);
}

static void serve_log_put(const struct serve_log *l, int level, const char *msg)
{
    if (l->format == LOG_JSON)
        put_json(level, msg);
    else
        diag(NULL, "%s: %s", l->verb, msg);
}

void serve_log_line(void *arg, int level, const char *msg)
{
    const struct serve_log *l = arg;
    if (level <= l->level)
        serve_log_put(l, level, msg);
}

void serve_log_notice(const struct serve_log *l, const char *msg)
{
    serve_log_put(l, CLAVE_LOG_INFO, msg);
}
