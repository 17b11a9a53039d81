/* http_get.c - see http_get.h. Called by verbs that read from a gate. */
#include "cmd/cli/http_get.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/diag.h"
#include "runtime/gate/gate_jansson.h"
#include "runtime/load_library.h"

#define LIBRARY "libcurl.so.4"
LOADS_LIBRARY(LIBRARY, "suggested", "history", "what a gate says, over HTTP");

/* The numbers in curl/curl.h are part of libcurl's binary interface, so they never change. */
enum {
    CURL_URL = 10002,
    CURL_WRITE_DATA = 10001,
    CURL_ERROR_BUFFER = 10010,
    CURL_HEADERS = 10023,
    CURL_CA_FILE = 10065,
    CURL_UNIX_SOCKET = 10231,
    CURL_WRITE_FUNCTION = 20011,
    CURL_NO_SIGNAL = 99,
    CURL_TIMEOUT_MS = 155,
    CURL_PROTOCOLS = 181,
    CURL_GETS_STATUS = 0x200002,
    CURL_HTTP_AND_HTTPS = 3,
    CURL_BAD_URL = 3,
    CURL_BAD_PROTOCOL = 1,
    CURL_TIMED_OUT = 28,
    CURL_NO_TLS = 35,
    CURL_NO_ANSWER = 52,
    CURL_ERROR_CAP = 256,
};

struct curl {
    void *(*curl_easy_init)(void);
    int (*curl_easy_setopt)(void *c, int option, ...);
    int (*curl_easy_perform)(void *c);
    int (*curl_easy_getinfo)(void *c, int info, ...);
    void (*curl_easy_cleanup)(void *c);
    const char *(*curl_easy_strerror)(int code);
    void *(*curl_slist_append)(void *list, const char *line);
    void (*curl_slist_free_all)(void *list);
};

/* false: libcurl cannot be loaded, and a message has been printed. */
static bool http_get_load_curl(const struct options *o, struct curl *out)
{
    static const struct load_row wanted[] = {
        {"curl_easy_init", offsetof(struct curl, curl_easy_init)},
        {"curl_easy_setopt", offsetof(struct curl, curl_easy_setopt)},
        {"curl_easy_perform", offsetof(struct curl, curl_easy_perform)},
        {"curl_easy_getinfo", offsetof(struct curl, curl_easy_getinfo)},
        {"curl_easy_cleanup", offsetof(struct curl, curl_easy_cleanup)},
        {"curl_easy_strerror", offsetof(struct curl, curl_easy_strerror)},
        {"curl_slist_append", offsetof(struct curl, curl_slist_append)},
        {"curl_slist_free_all", offsetof(struct curl, curl_slist_free_all)},
    };
    const char *why;
    void *lib = clave__load(LIBRARY, &why);
    const char *missing =
        lib ? clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, out) : NULL;
    if (!lib)
        diag_end(o, NULL, EXIT_INTERNAL, "cannot load libcurl, which is needed to ask a gate: %s",
                 why);
    else if (missing)
        diag_end(o, NULL, EXIT_INTERNAL, "%s has no function %s", LIBRARY, missing);
    return lib && !missing;
}

/* libcurl ends the transfer if this returns fewer bytes than it was given. */
static size_t http_get_take(char *p, size_t size, size_t n, void *arg)
{
    return clave__buf_append(arg, p, size * n) == CLAVE_OK ? size * n : 0;
}

/* The member `detail` of a problem (RFC 9457), else the beginning of the body as it is. */
static void http_get_detail(const struct buf *body, char *out, size_t cap)
{
    const char *why;
    const struct jansson *json = gate_jansson(&why);
    json_error_t fault;
    json_t *problem = json ? json->json_loadb((const char *)clave__buf_bytes(body),
                                              clave__buf_len(body), 0, &fault)
                           : NULL;
    const char *detail =
        problem ? json->json_string_value(json->json_object_get(problem, "detail")) : NULL;
    if (detail)
        snprintf(out, cap, "%s", detail);
    else
        snprintf(out, cap, "%.*s", (int)(clave__buf_len(body) < 200 ? clave__buf_len(body) : 200),
                 clave__buf_len(body) ? (const char *)clave__buf_bytes(body) : "");
    for (char *c = out; *c; c++) /* the text may come from anybody */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    if (problem)
        json->json_delete(problem);
}

static int http_get_exit_code(long status)
{
    switch (status) {
    case 400:
        return EXIT_USAGE;
    case 401:
    case 403:
    case 421:
        return EXIT_NOAUTH;
    case 404:
        return EXIT_PATH;
    case 429:
    case 503:
        return EXIT_UNREACHABLE;
    case 504:
        return EXIT_TIMEOUT;
    default:
        return EXIT_INTERNAL;
    }
}

static int http_get_refused(const struct options *o, const struct http_get *g, long status,
                            const struct buf *body)
{
    char detail[512];
    http_get_detail(body, detail, sizeof detail);
    return diag_end(o, NULL, http_get_exit_code(status), "the gate %s answers %ld: %s", g->gate,
                    status, detail);
}

static int http_get_failed(const struct options *o, const struct http_get *g, int code,
                           const char *why)
{
    if (code == CURL_BAD_URL || code == CURL_BAD_PROTOCOL)
        return diag_end(
            o, NULL, EXIT_USAGE,
            "--http %s is not the URL of a gate: http://HOST:PORT, https://HOST:PORT or unix:/PATH",
            g->gate);
    const char *hint = "";
    if (code == CURL_NO_TLS)
        hint = ": does it have TLS, or is it http://?";
    else if (code == CURL_NO_ANSWER)
        hint = ": is this the port for HTTP?";
    return diag_end(o, NULL, code == CURL_TIMED_OUT ? EXIT_TIMEOUT : EXIT_UNREACHABLE,
                    "the gate %s cannot be asked: %s%s (--http names another)", g->gate, why, hint);
}

static int http_get_perform(const struct options *o, const struct http_get *g, const char *url,
                            void *headers, struct buf *body)
{
    struct curl curl;
    char fault[CURL_ERROR_CAP] = "";
    long status = 0;
    if (!http_get_load_curl(o, &curl))
        return EXIT_INTERNAL;
    void *c = curl.curl_easy_init(), *list = NULL;
    if (!c)
        return diag_err(o, NULL, CLAVE_ENOMEM, NULL);
    if (headers)
        list = curl.curl_slist_append(NULL, headers);
    if (strncmp(g->gate, "unix:", 5) == 0)
        curl.curl_easy_setopt(c, CURL_UNIX_SOCKET, g->gate + 5);
    if (g->ca)
        curl.curl_easy_setopt(c, CURL_CA_FILE, g->ca);
    curl.curl_easy_setopt(c, CURL_URL, url);
    curl.curl_easy_setopt(c, CURL_PROTOCOLS, (long)CURL_HTTP_AND_HTTPS);
    curl.curl_easy_setopt(c, CURL_NO_SIGNAL, 1L);
    curl.curl_easy_setopt(c, CURL_TIMEOUT_MS, (long)g->timeout_ms);
    curl.curl_easy_setopt(c, CURL_ERROR_BUFFER, fault);
    curl.curl_easy_setopt(c, CURL_HEADERS, list);
    curl.curl_easy_setopt(c, CURL_WRITE_FUNCTION, http_get_take);
    curl.curl_easy_setopt(c, CURL_WRITE_DATA, body);
    int code = curl.curl_easy_perform(c);
    curl.curl_easy_getinfo(c, CURL_GETS_STATUS, &status);
    int result = EXIT_OK;
    if (code != 0)
        result = http_get_failed(o, g, code, *fault ? fault : curl.curl_easy_strerror(code));
    else if (status != 200)
        result = http_get_refused(o, g, status, body);
    curl.curl_easy_cleanup(c);
    curl.curl_slist_free_all(list);
    return result;
}

int http_get(const struct options *o, const struct http_get *g, const char *target,
             struct buf *body)
{
    assert(g->gate && *target == '/');
    bool is_unix = strncmp(g->gate, "unix:", 5) == 0;
    const char *base = is_unix ? "http://localhost" : g->gate;
    size_t nbase = strlen(base), cap = nbase + strlen(target) + 1;
    size_t nheader = g->token ? sizeof "Authorization: Bearer " + strlen(g->token) : 1;
    char *url = malloc(cap), *header = malloc(nheader);
    int code = EXIT_INTERNAL;
    while (nbase > 0 && base[nbase - 1] == '/')
        nbase--;
    if (url && header) {
        snprintf(url, cap, "%.*s%s", (int)nbase, base, target);
        if (g->token)
            snprintf(header, nheader, "Authorization: Bearer %s", g->token);
        code = http_get_perform(o, g, url, g->token ? header : NULL, body);
    }
    free(url);
    free(header);
    return code;
}
