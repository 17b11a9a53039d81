/* admin.c - Apache's admin commands and the metrics, as pages of http_server.h. Figures are read on
 * the loop's thread, at the time of the request. The numbers of open files and memory are a few
 * seconds older (clave__run_measure), so no request makes the loop access a file. */
#include "runtime/server/server_run_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/http_host.h"
#include "base/prometheus.h"
#include "runtime/http/http_server.h"
#include "server/monitoring/listing.h"
#include "server/monitoring/server_metrics.h"

/* A client is disconnected if it has been silent for this long, and in any case after this long in
 * total, so that a client that trickles bytes cannot keep its place. */
enum { SILENT_S = 5, TOTAL_MS = 20000 };

/* ---- figures of the driver ------------------------------------------------------------------- */

static int64_t run_admin_ms(const struct timeval *t)
{
    return (int64_t)t->tv_sec * 1000 + t->tv_usec / 1000;
}

/* Measures what takes no access to files. */
static void run_admin_measure(struct server_run *r)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        r->stats.cpu_ms = run_admin_ms(&usage.ru_utime) + run_admin_ms(&usage.ru_stime);
    clave__server_set_driver_stats(r->server, &r->stats);
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* An answer. Its request may be gone before all of it was made. */
struct admin_page {
    struct web_answer answer;
    const char *accept; /* the request's header; NULL: it had none, or the request is gone */
    clave_err err;
    struct listing listing;
    bool is_listing;
    char name[]; /* of the command */
};

static void run_admin_put(struct admin_page *page, const char *text)
{
    if (page->err == CLAVE_OK)
        page->err = clave__buf_append(&page->answer.body, text, strlen(text));
}

static void run_admin_head(struct admin_page *page, const char *name, const char *value)
{
    assert(page->answer.nheaders < WEB_MAX_HEADERS);
    page->answer.headers[page->answer.nheaders++] = (struct web_header){name, value};
}

static void run_admin_type(struct admin_page *page, const char *type)
{
    run_admin_head(page, "Content-Type", type);
}

static void run_admin_refuse(struct admin_page *page, unsigned status, const char *text)
{
    page->answer.status = status;
    run_admin_type(page, "text/plain; charset=utf-8");
    run_admin_put(page, text);
}

static void run_admin_list(const struct server_run *r, struct admin_page *page)
{
    char line[300];
    const char *name;
    run_admin_type(page, "text/html; charset=utf-8");
    for (size_t i = 0; (name = clave__admin_name(i)); i++) {
        snprintf(line, sizeof line, "<a href=\"%s/%s\">%s</a>\n<br/>\n", r->admin_url, name, name);
        run_admin_put(page, line);
    }
}

static clave_err run_admin_more(void *arg, struct buf *body, bool *done)
{
    struct admin_page *page = arg;
    clave_err err = clave__listing_step(&page->listing, body);
    *done = clave__listing_is_over(&page->listing);
    return err;
}

static void run_admin_command(struct server_run *r, struct admin_page *page)
{
    bool done = false;
    run_admin_type(page, "application/json");
    run_admin_measure(r);
    if (clave__admin_begin(&page->listing, r->server, page->name) != CLAVE_OK)
        page->answer.status = 404;
    page->is_listing = true;
    page->err = run_admin_more(page, &page->answer.body, &done);
    page->answer.more = done ? NULL : run_admin_more;
}

static void run_admin_metrics(struct server_run *r, struct admin_page *page)
{
    enum prometheus_format format = clave__prometheus_accepted(page->accept);
    run_admin_type(page, clave__prometheus_content_type(format));
    run_admin_measure(r);
    page->err = clave__metrics(r->server, format, &page->answer.body);
}

/* Returns NULL if the path is not below the command URL, otherwise what follows that and its
 * '/'. */
static const char *run_admin_command_name(const struct server_run *r, const char *path)
{
    size_t n = strlen(r->admin_url);
    if (strncmp(path, r->admin_url, n) != 0)
        return NULL;
    if (path[n] == '/')
        return path + n + 1;
    return path[n] == '\0' ? path + n : NULL;
}

static bool run_admin_is_metrics(const char *path)
{
    return strcmp(path, "/metrics") == 0;
}

/* Makes the figures current: timeouts that are due are handled first, as they are before a client's
 * input. */
static void run_admin_refresh(struct server_run *r)
{
    clave__run_tick(r);
    clave__run_pump(r);
}

static void run_admin_make(struct server_run *r, const char *path, struct admin_page *page)
{
    const char *name = run_admin_command_name(r, path);
    if (name && *name) {
        memcpy(page->name, name, strlen(name) + 1);
        run_admin_command(r, page);
    } else if (name) {
        run_admin_list(r, page);
    } else if (run_admin_is_metrics(path)) {
        run_admin_metrics(r, page);
    } else {
        run_admin_refuse(page, 404, "there are /metrics and ");
        run_admin_put(page, r->admin_url);
        run_admin_put(page, "\n");
    }
}

static void run_admin_make_metrics(struct server_run *r, const char *path, struct admin_page *page)
{
    if (run_admin_is_metrics(path))
        run_admin_metrics(r, page);
    else
        run_admin_refuse(page, 404, "there is /metrics\n");
}

/* ---- requests ------------------------------------------------------------------------------- */

typedef void run_admin_maker(struct server_run *r, const char *path, struct admin_page *page);

enum { MAX_PAGE = 64 * 1024 * 1024 };

static struct admin_page *run_admin_page_new(struct server_run *r, size_t n)
{
    struct admin_page *page = calloc(1, sizeof *page + n + 1);
    if (!page)
        return NULL;
    clave__buf_init(&page->answer.body, &r->mem, MAX_PAGE);
    page->answer.status = 200;
    page->answer.arg = page;
    run_admin_head(page, "Cache-Control", "no-store");
    return page;
}

static void run_admin_ended(void *arg, void *user)
{
    struct admin_page *page = user;
    (void)arg;
    if (!page)
        return;
    if (page->is_listing)
        clave__listing_end(&page->listing);
    clave__buf_fini(&page->answer.body);
    free(page);
}

/* The answer could not be made. */
static void run_admin_give_up(struct server_run *r, struct admin_page *page)
{
    clave__log(&r->log, CLAVE_LOG_WARN, "cannot answer an HTTP request: %s",
               clave_strerror(page->err));
    page->err = CLAVE_OK;
    page->answer.more = NULL;
    page->answer.nheaders = 1;
    clave__buf_clear(&page->answer.body);
    run_admin_refuse(page, 503, "out of memory\n");
}

/* Protects against web pages from elsewhere. Such a page must not read the answers of commands by
 * giving this address a name of its own, nor change anything through the address of an image or a
 * form. The metrics are only numbers, so they are given out under any name that a scraper uses. */
static bool run_admin_admits(const struct server_run *r, const char *path,
                             const struct http_exchange *x, struct admin_page *page)
{
    const char *host = clave__http_header(x, "Host");
    if (run_admin_is_metrics(path) || !host || clave__http_host_is_ours(host, r->admin_hosts) ||
        clave__http_host_is_ours(host, r->host_name)) {
        if (!clave__http_header(x, "Origin"))
            return true;
        run_admin_refuse(page, 403, "not for pages: the request has an Origin\n");
        return false;
    }
    run_admin_refuse(page, 421,
                     "this is not a name of this server: ask by its address or its host name, or "
                     "name it with --http-host\n");
    return false;
}

static void run_admin_fill(struct server_run *r, const char *method, struct http_exchange *x,
                           struct admin_page *page, run_admin_maker *make)
{
    const char *path = clave__http_path(x), *name = run_admin_command_name(r, path);
    bool changes = make == run_admin_make && name && clave__admin_changes(name);
    bool gets = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (changes ? strcmp(method, "POST") != 0 : !gets) {
        run_admin_refuse(page, 405,
                         changes ? "POST only: it changes something\n" : "GET or HEAD only\n");
        run_admin_head(page, "Allow", changes ? "POST" : "GET, HEAD");
        return;
    }
    if (!run_admin_admits(r, path, x, page))
        return;
    run_admin_refresh(r);
    make(r, path, page);
    if (page->err != CLAVE_OK)
        run_admin_give_up(r, page);
}

static void *run_admin_answer(struct server_run *r, const struct web_request *q,
                              struct http_exchange *x, run_admin_maker *make)
{
    const char *path = clave__http_path(x);
    struct admin_page *page = run_admin_page_new(r, strlen(path));
    if (page) {
        page->accept = clave__http_header(x, "Accept");
        run_admin_fill(r, q->method, x, page, make);
        page->accept = NULL;
    }
    clave__http_answer(x, page ? &page->answer : NULL);
    return page;
}

static void run_admin_on_request(void *arg, const struct web_request *q, struct http_exchange *x,
                                 void **user)
{
    *user = run_admin_answer(arg, q, x, run_admin_make);
}

static void run_admin_on_metrics(void *arg, const struct web_request *q, struct http_exchange *x,
                                 void **user)
{
    *user = run_admin_answer(arg, q, x, run_admin_make_metrics);
}

/* ---- life ----------------------------------------------------------------------------------- */

clave_err clave__admin_start(struct server_run *r, const struct server_run_options *o,
                             const struct fault *f)
{
    struct http_options http = {.loop = &r->loop, .mem = &r->mem, .log = r->log, .arg = r};
    clave_err err = CLAVE_OK;
    http.ended = run_admin_ended;
    http.max_connections = ADMIN_MAX_CONNECTIONS;
    http.silent_s = SILENT_S;
    http.total_ms = TOTAL_MS;
    http.one_request = http.piece_a_turn = true;
    r->admin_hosts = o->admin_hosts;
    snprintf(r->admin_url, sizeof r->admin_url, "%s", o->admin_url ? o->admin_url : ADMIN_COMMANDS);
    http.begin = run_admin_on_request;
    if (o->admin)
        err = clave__http_server_start(&r->admin, o->admin, &http, f);
    http.begin = run_admin_on_metrics;
    if (o->metrics && err == CLAVE_OK)
        err = clave__http_server_start(&r->metrics, o->metrics, &http, f);
    return err;
}
