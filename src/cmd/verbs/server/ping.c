/* ping.c - `clave ping`: measures round trips to the server, and shows its version, which it asks
 * for with "srvr". It needs no permission on any node. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "runtime/client/four_letter_client.h"
#include "runtime/client/local_paths.h"
#include "runtime/clock.h"

enum { PING_INTERVAL = FLAG_LONG };

struct ping {
    int64_t count;
    int64_t interval_ms;
    char host[256];
    uint16_t port;
    bool tls;
    char address[ADDRESS_CAP];
    char version[128]; /* "": the server does not tell */
};

/* ---- the server ----------------------------------------------------------------------------- */

static void ping_get_target(clave_async_client *c, void *arg)
{
    struct ping *p = arg;
    clave_target t = clave_async_client_target(c);
    snprintf(p->host, sizeof p->host, "%s", t.host ? t.host : "");
    p->port = t.port;
    p->tls = t.tls;
    connect_address(&t, p->address);
}

/* Takes the version from the answer to srvr, which looks like "Zookeeper version:
 * 3.8.0-5a02a05ea..., built on ...". Many servers have srvr disabled. */
static void ping_get_version(const struct options *o, struct ping *p)
{
    static const char lead[] = "version: ";
    char answer[2048];
    int patience = o->timeout_ms < 2000 ? (int)o->timeout_ms : 2000;
    struct local_paths local;
    struct four_letter_server server = {
        .host = p->host, .port = p->port, .tls = p->tls ? o->tls : NULL};
    if (strcmp(p->host, "local:") == 0 &&
        clave__local_paths(&local, NULL, answer, sizeof answer) == CLAVE_OK)
        server.host = local.socket;
    if (clave__four_letter_ask(&server, "srvr", answer, sizeof answer, patience) != CLAVE_OK)
        return;
    const char *at = strstr(answer, lead);
    if (!at)
        return;
    at += sizeof lead - 1;
    snprintf(p->version, sizeof p->version, "%.*s", (int)strcspn(at, ",\n"), at);
}

static void ping_show_server(const struct options *o, const struct ping *p)
{
    struct json j;
    if (!o->json) {
        printf("server %s%s%s\n", p->address, *p->version ? " version " : "", p->version);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "server", p->address);
    clave__json_string(&j, "host", p->host);
    clave__json_int(&j, "port", p->port);
    clave__json_string(&j, "version", *p->version ? p->version : NULL);
    json_end(&j);
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void ping_show_round(const struct options *o, int64_t us)
{
    struct json j;
    if (!o->json) {
        printf("answer in %lld.%03lld ms\n", (long long)(us / 1000), (long long)(us % 1000));
    } else {
        json_begin(&j, stdout);
        clave__json_int(&j, "round_trip_us", us);
        json_end(&j);
    }
    fflush(stdout);
}

static int ping_once(const struct options *o, clave_client *c)
{
    int64_t start = clave__clock_us();
    clave_err err = clave_exists(c, "/", o->timeout_ms, NULL);
    int64_t us = clave__clock_us() - start;
    /* Any answer will do: the root of a chroot may not exist or not be readable. */
    if (err != CLAVE_OK && err != CLAVE_ENONODE && err != CLAVE_ENOAUTH)
        return diag_err(o, "/", err, c);
    ping_show_round(o, us);
    return EXIT_OK;
}

static int ping_server(const struct options *o, clave_client *c, struct ping *p)
{
    int code = EXIT_OK;
    if (clave_client_run(c, ping_get_target, p) == CLAVE_OK)
        ping_get_version(o, p);
    ping_show_server(o, p);
    for (int64_t i = 0; i < p->count && code == EXIT_OK && !ferror(stdout); i++) {
        if (i > 0)
            poll(NULL, 0, (int)p->interval_ms);
        code = ping_once(o, c);
    }
    return code;
}

static int run_ping(struct options *o, int argc, char **argv)
{
    struct ping p = {.count = 3, .interval_ms = 200};
    clave_client *c;
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == 'n' && !options_number(o, "count", 1, INT32_MAX, &p.count))
            return EXIT_USAGE;
        if (id == PING_INTERVAL && !options_duration(o, "interval", 0, 86400000, &p.interval_ms))
            return EXIT_USAGE;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 0))
        return EXIT_USAGE;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    code = ping_server(o, c, &p);
    connect_close(c);
    return code;
}

static const struct flag flags[] = {
    {'n', "count", "N", "how many round trips [3]"},
    {PING_INTERVAL, "interval", "DURATION", "the time between two round trips [200ms]"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_ping = {
    .name = "ping",
    .args = "",
    .summary = "Measure round trips to the server, and print its version",
    .text = "The version comes from the four-letter word 'srvr', if the server answers it.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_ping,
};
