/* history.c - `clave history`: shows who queued for, held and lost a lock, as a gate has observed
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/http_get.h"
#include "observe/lock_who.h"
#include "runtime/gate/gate_jansson.h"
#include "web/http/exchange.h"

enum { HISTORY_HTTP = FLAG_LONG, HISTORY_TOKEN_FILE, HISTORY_CA, HISTORY_SINCE, HISTORY_TIMEOUT };
enum { HISTORY_LIMIT_MAX = 1000, TOKEN_CAP = 4096, ANSWER_MAX = 64 << 20 };

struct history_request {
    struct http_get get;
    const char *token_file, *path, *since;
    int64_t limit;
    char token[TOKEN_CAP];
};

/* ---- output ---------------------------------------------------------------------------------- */

static const char *history_text(const struct jansson *json, const json_t *of, const char *key)
{
    const char *text = of ? json->json_string_value(json->json_object_get(of, key)) : NULL;
    return text ? text : "";
}

static const char *history_or_null(const char *text)
{
    return *text ? text : NULL;
}

/* " by ops: its host is gone", of what was done through a gate; others wrote the texts. */
static void history_show_deed(const struct jansson *json, const json_t *entry)
{
    const json_t *deed = json->json_object_get(entry, "deed");
    const char *by = history_text(json, deed, "by"), *reason = history_text(json, deed, "reason");
    printf("%s", *by ? " by " : "");
    format_text(stdout, by);
    printf("%s", *reason ? ": " : "");
    format_text(stdout, reason);
}

static void history_show(const struct jansson *json, const json_t *entry)
{
    char who[LOCK_WHO_CAP];
    const json_t *place = json->json_object_get(entry, "place");
    const char *token = history_text(json, place, "token");
    const char *cause = history_text(json, entry, "cause");
    clave_identity id = {.host = history_or_null(history_text(json, place, "host")),
                         .name = history_or_null(history_text(json, place, "name")),
                         .command = history_or_null(history_text(json, place, "command")),
                         .text = history_or_null(history_text(json, place, "text")),
                         .pid = json->json_integer_value(json->json_object_get(place, "pid"))};
    int64_t session = strtoll(history_text(json, place, "session"), NULL, 10);
    clave__lock_who_says(&id, session, who);
    printf("%s  %-7s  %s  %s", history_text(json, entry, "time"), history_text(json, entry, "what"),
           history_text(json, entry, "path"), who);
    printf("%s%s%s%s", *token ? "  token " : "", token, *cause ? "  " : "", cause);
    history_show_deed(json, entry);
    putchar('\n');
}

static int history_answer(const struct options *o, const struct history_request *h,
                          const struct buf *body)
{
    const char *why;
    const struct jansson *json = gate_jansson(&why);
    const char *text = clave__buf_len(body) ? (const char *)clave__buf_bytes(body) : "";
    json_error_t fault;
    if (o->json) {
        printf("%.*s\n", (int)clave__buf_len(body), text);
        return finish_stdout(o);
    }
    if (!json)
        return diag_end(o, NULL, EXIT_INTERNAL, "%s", why);
    json_t *answer = json->json_loadb(text, clave__buf_len(body), 0, &fault);
    const json_t *entries = answer ? json->json_object_get(answer, "entries") : NULL;
    if (!entries) {
        if (answer)
            json->json_delete(answer);
        return diag_end(o, NULL, EXIT_UNREACHABLE,
                        "%s does not answer as a gate does (--http names another)", h->get.gate);
    }
    for (size_t i = 0; i < json->json_array_size(entries); i++)
        history_show(json, json->json_array_get(entries, i));
    json->json_delete(answer);
    return finish_stdout(o);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Reads the first line of the file with the token, or takes the token from the environment. */
static int history_read_token(struct options *o, struct history_request *h)
{
    int fd = h->token_file ? open(h->token_file, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, h->token, TOKEN_CAP - 1) : -1;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (h->token_file && n < 0)
        return diag_end(o, NULL, EXIT_USAGE, "cannot read the token in %s: %s", h->token_file,
                        strerror(why));
    if (h->token_file) {
        h->token[n] = '\0';
        h->token[strcspn(h->token, "\r\n")] = '\0';
        h->get.token = h->token;
    } else {
        h->get.token = getenv("CLAVE_HTTP_TOKEN");
    }
    if (h->get.token && strpbrk(h->get.token, "\r\n"))
        return diag_end(o, NULL, EXIT_USAGE, "a token is one line");
    return EXIT_OK;
}

static char *history_encode(const char *text)
{
    char *out = malloc(3 * strlen(text) + 1);
    if (out)
        clave__percent_encode(out, text);
    return out;
}

static int history_ask(struct options *o, const struct history_request *h)
{
    const struct clave_mem mem = clave__mem_or_default(NULL);
    char *path = history_encode(h->path ? h->path : ""),
         *since = history_encode(h->since ? h->since : "");
    size_t cap = 128 + (path ? strlen(path) : 0) + (since ? strlen(since) : 0);
    char *target = malloc(cap);
    int code = EXIT_INTERNAL;
    struct buf body;
    clave__buf_init(&body, &mem, ANSWER_MAX);
    if (path && since && target) {
        snprintf(target, cap, "/v1/history?limit=%" PRId64 "%s%s%s%s", h->limit,
                 *path ? "&path=" : "", path, *since ? "&since=" : "", since);
        code = http_get(o, &h->get, target, &body);
        if (code == EXIT_OK)
            code = history_answer(o, h, &body);
    }
    clave__buf_fini(&body);
    free(path);
    free(since);
    free(target);
    return code;
}

static bool history_flag(struct options *o, struct history_request *h, int id)
{
    switch (id) {
    case HISTORY_HTTP:
        h->get.gate = o->value;
        return true;
    case HISTORY_TOKEN_FILE:
        h->token_file = o->value;
        return true;
    case HISTORY_CA:
        h->get.ca = o->value;
        return true;
    case HISTORY_SINCE:
        h->since = o->value;
        return true;
    case HISTORY_TIMEOUT:
        return options_duration(o, "timeout", 1, OPTIONS_MAX_MS, &h->get.timeout_ms);
    default:
        return options_number(o, "count", 1, HISTORY_LIMIT_MAX, &h->limit);
    }
}

static int run_history(struct options *o, int argc, char **argv)
{
    struct history_request h = {.get = {.gate = getenv("CLAVE_HTTP"), .timeout_ms = 10000},
                                .limit = 100};
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        if (!history_flag(o, &h, id))
            return EXIT_USAGE;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 1))
        return EXIT_USAGE;
    h.path = o->argc > 0 ? o->argv[0] : NULL;
    const char *fault = h.path ? clave__path_fault(h.path, strlen(h.path), false) : NULL;
    if (fault)
        return diag_path(o, h.path, fault);
    if (!h.get.gate || !*h.get.gate)
        return diag_usage(o, "it asks a gate: name it with --http URL or CLAVE_HTTP");
    int code = history_read_token(o, &h);
    return code == EXIT_OK ? history_ask(o, &h) : code;
}

static const struct flag flags[] = {
    {HISTORY_HTTP, "http", "URL", "the gate: http://HOST:PORT, https://... or unix:/PATH"},
    {HISTORY_TOKEN_FILE, "token-file", "FILE", "a file whose first line is the token"},
    {HISTORY_CA, "ca", "FILE", "certificates to verify a gate at https:// with"},
    {'n', "count", "N", "at most N entries, the newest ones [100]"},
    {HISTORY_SINCE, "since", "WHEN", "entries after this number, or from this time on"},
    {HISTORY_TIMEOUT, "timeout", "DURATION", "how long to wait for the answer [10s]"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_history = {
    .name = "history",
    .args = "[PATH]",
    .summary = "Show who queued for, held and lost a lock, as a gate has seen it",
    .text =
        "One entry a line, the oldest first: time, event, path, participant, token, the cause of\n"
        "an end, and who asked for it or broke it through the gate, and why. CLAVE_HTTP can\n"
        "name the gate, and CLAVE_HTTP_TOKEN give the token.\n",
    .flags = flags,
    .max_args = -1,
    .offline = true,
    .ignores_client_flags = true,
    .run = run_history,
};
