/* admin.c - Apache's admin commands and the metrics as pages of http.h; uv_server.c calls it.
 * Figures are read on the loop's thread, at the time of the request; open files and memory are at
 * most two seconds older, and no request makes the loop touch a file. */
#include "runtime/server/admin.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/server/http.h"
#include "server/figures/admin_commands.h"
#include "server/figures/metrics_page.h"

enum { MEASURE_MS = 2000 };

/* ---- what the driver measures ------------------------------------------------------------- */

static int64_t run_admin_count_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int64_t n = 0;
    if (!dir)
        return -1;
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* not the one that looks */
}

static int64_t run_admin_resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long long pages = -1;
    if (!f)
        return -1;
    if (fscanf(f, "%*d %lld", &pages) != 1)
        pages = -1;
    fclose(f);
    return pages >= 0 ? pages * sysconf(_SC_PAGESIZE) : -1;
}

static int64_t run_admin_ms(const struct timeval *t)
{
    return (int64_t)t->tv_sec * 1000 + t->tv_usec / 1000;
}

/* On the thread pool: listing the files of fifty thousand connections takes longer than a turn of
 * the loop may. */
static void run_admin_measure_files(uv_work_t *work)
{
    struct server_run *r = work->data;
    r->measured.open_files = run_admin_count_files();
    r->measured.resident_bytes = run_admin_resident_bytes();
}

static void run_admin_take_files(uv_work_t *work, int status)
{
    struct server_run *r = work->data;
    (void)status;
    r->stats.open_files = r->measured.open_files;
    r->stats.resident_bytes = r->measured.resident_bytes;
    r->is_measuring = false;
}

static void run_admin_on_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    if (r->is_measuring)
        return;
    r->is_measuring =
        uv_queue_work(&r->loop, &r->measuring, run_admin_measure_files, run_admin_take_files) == 0;
}

static void run_admin_begin_measuring(struct server_run *r)
{
    uv_timer_init(&r->loop, &r->measure_timer);
    r->measure_timer.data = r->measuring.data = r;
    run_admin_measure_files(&r->measuring);
    run_admin_take_files(&r->measuring, 0);
    uv_timer_start(&r->measure_timer, run_admin_on_timer, MEASURE_MS, MEASURE_MS);
}

/* What costs no file. */
static void run_admin_measure(struct server_run *r)
{
    struct rlimit limit;
    struct rusage usage;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        r->stats.max_files = (int64_t)limit.rlim_cur;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        r->stats.cpu_ms = run_admin_ms(&usage.ru_utime) + run_admin_ms(&usage.ru_stime);
    clave__server_set_driver_stats(r->server, &r->stats);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void run_admin_put(struct http_page *page, const char *text)
{
    if (page->err == CLAVE_OK)
        page->err = clave__buf_append(&page->body, text, strlen(text));
}

static void run_admin_list(const struct server_run *r, struct http_page *page)
{
    char line[300];
    const char *name;
    page->type = "text/html; charset=utf-8";
    for (size_t i = 0; (name = clave__admin_name(i)); i++) {
        snprintf(line, sizeof line, "<a href=\"%s/%s\">%s</a>\n<br/>\n", r->admin_url, name, name);
        run_admin_put(page, line);
    }
}

/* An answer that is longer than its first piece. The request's path may be gone by then. */
struct admin_answer {
    struct listing listing;
    char name[];
};

static clave_err run_admin_more(void *arg, struct buf *body, bool *done)
{
    struct admin_answer *a = arg;
    clave_err err = clave__listing_step(&a->listing, body);
    *done = clave__listing_is_over(&a->listing);
    return err;
}

static void run_admin_end(void *arg)
{
    struct admin_answer *a = arg;
    clave__listing_end(&a->listing);
    free(a);
}

static void run_admin_command(struct server_run *r, const char *name, struct http_page *page)
{
    size_t n = strlen(name) + 1;
    struct admin_answer *a = malloc(sizeof *a + n);
    bool done = false;
    page->type = "application/json";
    page->err = CLAVE_ENOMEM;
    if (!a)
        return;
    memcpy(a->name, name, n);
    run_admin_measure(r);
    if (clave__admin_begin(&a->listing, r->server, a->name) != CLAVE_OK)
        page->status = 404;
    page->err = run_admin_more(a, &page->body, &done);
    if (done) {
        run_admin_end(a);
        return;
    }
    page->more = run_admin_more;
    page->end = run_admin_end;
    page->arg = a;
}

static void run_admin_metrics(struct server_run *r, struct http_page *page)
{
    page->type = "text/plain; version=0.0.4; charset=utf-8";
    run_admin_measure(r);
    page->err = clave__metrics(r->server, &page->body);
}

/* NULL: not below the command URL; otherwise what follows it and its '/'. */
static const char *run_admin_command_name(const struct server_run *r, const char *path)
{
    size_t n = strlen(r->admin_url);
    if (strncmp(path, r->admin_url, n) != 0)
        return NULL;
    return path[n] == '/' ? path + n + 1 : path[n] == '\0' ? path + n : NULL;
}

static bool run_admin_is_metrics(const char *path)
{
    return strcmp(path, "/metrics") == 0;
}

/* The figures are current: due timeouts are carried out first, as before a client's input. */
static void run_admin_refresh(struct server_run *r)
{
    clave__run_tick(r);
    clave__run_pump(r);
}

static void on_admin(void *arg, const char *path, struct http_page *page)
{
    struct server_run *r = arg;
    const char *name = run_admin_command_name(r, path);
    run_admin_refresh(r);
    if (name && *name)
        run_admin_command(r, name, page);
    else if (name)
        run_admin_list(r, page);
    else if (run_admin_is_metrics(path))
        run_admin_metrics(r, page);
    else {
        page->status = 404;
        run_admin_put(page, "there are /metrics and ");
        run_admin_put(page, r->admin_url);
        run_admin_put(page, "\n");
    }
}

static void on_metrics(void *arg, const char *path, struct http_page *page)
{
    struct server_run *r = arg;
    run_admin_refresh(r);
    if (run_admin_is_metrics(path)) {
        run_admin_metrics(r, page);
    } else {
        page->status = 404;
        run_admin_put(page, "there is /metrics\n");
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

clave_err clave__admin_start(struct server_run *r, const struct server_run_options *o,
                             const struct fault *f)
{
    struct http_options http = {.loop = &r->loop, .mem = &r->mem, .log = r->log, .arg = r};
    clave_err err = CLAVE_OK;
    snprintf(r->admin_url, sizeof r->admin_url, "%s", o->admin_url ? o->admin_url : "/commands");
    http.answer = on_admin;
    if (o->admin)
        err = clave__http_start(&r->admin, o->admin, &http, f);
    http.answer = on_metrics;
    if (o->metrics && err == CLAVE_OK)
        err = clave__http_start(&r->metrics, o->metrics, &http, f);
    if (r->admin || r->metrics)
        run_admin_begin_measuring(r);
    return err;
}

void clave__admin_stop(struct server_run *r)
{
    if (r->admin || r->metrics)
        uv_timer_stop(&r->measure_timer);
    clave__http_stop(r->admin);
    clave__http_stop(r->metrics);
    r->admin = r->metrics = NULL;
}
