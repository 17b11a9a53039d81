/* zoocfg_server.c - see zoocfg_server.h. What Apache refuses is refused, and so is a form that it
 * only takes by accident: the line decides who may connect. */
#include "cmd/serve/zoocfg_server.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/text_file.h"

static const char zoocfg_server_form[] =
    "expected host:port:port, maybe with :participant, and after a ';' the client port: "
    "localhost:2888:3888;2181, or ;127.0.0.1:2181";

static bool zoocfg_server_is_port(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n <= 5 && strspn(text, "0123456789") == n && atoi(text) >= 1 &&
           atoi(text) <= 65535;
}

/* Cuts "host:rest" or "[v6]:rest". NULL: there is no ':' behind a host. */
static char *zoocfg_server_cut_host(char *text, char **host)
{
    bool bracket = *text == '[';
    char *end = strchr(text, bracket ? ']' : ':');
    *host = bracket ? text + 1 : text;
    if (!end || end == *host || (bracket && end[1] != ':'))
        return NULL;
    *end = '\0';
    return end + (bracket ? 2 : 1);
}

/* The address of other servers: of no use here, but it may be that the line is not understood. */
static clave_err zoocfg_server_check_peer(char *text, const struct fault *f)
{
    char *host, *rest = zoocfg_server_cut_host(text, &host), *next = NULL;
    char *port = rest ? strtok_r(rest, ":", &next) : NULL;
    char *election = port ? strtok_r(NULL, ":", &next) : NULL;
    char *role = election ? strtok_r(NULL, ":", &next) : NULL;
    bool more = role && strtok_r(NULL, ":", &next);
    if (!election || !zoocfg_server_is_port(port) || !zoocfg_server_is_port(election) || more ||
        (role && strcasecmp(role, "participant") != 0 && strcasecmp(role, "observer") != 0))
        return clave__start_error(f, CLAVE_EINVAL, "%s", zoocfg_server_form);
    if (role && strcasecmp(role, "observer") == 0)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "an observer needs other servers: clave is a single server; name "
                                  "this one a participant, or leave the line out");
    return CLAVE_OK;
}

/* "2181", "address:2181" or "[v6]:2181"; "": none. */
static clave_err zoocfg_server_take_client(char *text, struct zoocfg_client_address *out,
                                           const struct fault *f)
{
    char *host = NULL, *port = text;
    if (*text == '\0')
        return CLAVE_OK;
    if (strchr(text, ':'))
        port = zoocfg_server_cut_host(text, &host);
    if (!port || !zoocfg_server_is_port(port) || (host && strlen(host) >= ZOOCFG_HOST_CAP))
        return clave__start_error(f, CLAVE_EINVAL, "%s", zoocfg_server_form);
    strcpy(out->host, host ? host : "");
    strcpy(out->port, port);
    return CLAVE_OK;
}

clave_err zoocfg_server_parse(const char *value, struct zoocfg_server *out, const struct fault *f)
{
    enum { PARTS = 3 };
    char *text = strdup(value), *parts[PARTS], none[] = "", *next = NULL;
    size_t n = 0;
    memset(out, 0, sizeof *out);
    if (!text)
        return CLAVE_ENOMEM;
    char *rest = text;
    for (; n < PARTS && rest; n++)
        parts[n] = strsep(&rest, ";");
    clave_err err = rest || strspn(parts[0], "|") == strlen(parts[0])
                        ? clave__start_error(f, CLAVE_EINVAL, "%s", zoocfg_server_form)
                        : CLAVE_OK;
    for (char *peer = strtok_r(parts[0], "|", &next); peer && err == CLAVE_OK;
         peer = strtok_r(NULL, "|", &next))
        err = zoocfg_server_check_peer(peer, f);
    if (err == CLAVE_OK)
        err = zoocfg_server_take_client(n > 1 ? parts[1] : none, &out->client, f);
    if (err == CLAVE_OK)
        err = zoocfg_server_take_client(n > 2 ? parts[2] : none, &out->secure_client, f);
    free(text);
    return err;
}

clave_err zoocfg_server_check_id(const char *data_dir, const char *id, const struct fault *f)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/myid", data_dir) >= (int)sizeof path)
        return clave__start_error(f, CLAVE_EINVAL, "%.40s... is too long", data_dir);
    char why[TEXT_FILE_WHY];
    char *text = clave__text_file_read(path, why), *end;
    if (!text && (errno == ENOENT || errno == ENOTDIR))
        return CLAVE_OK;
    if (!text)
        return clave__start_error(f, errno == ENOMEM ? CLAVE_ENOMEM : CLAVE_EINVAL, "%s", why);
    text[strcspn(text, "\r\n")] = '\0';
    long long own = strtoll(text, &end, 10);
    bool is_number = end != text && *end == '\0', same = is_number && own == atoll(id);
    clave_err err = CLAVE_OK;
    if (!is_number)
        err = clave__start_error(f, CLAVE_EINVAL, "%s: '%.40s' is not a number", path, text);
    else if (!same)
        err = clave__start_error(
            f, CLAVE_EINVAL,
            "the line is another server's: %s says %lld. Write this server's line, or clientPort",
            path, own);
    free(text);
    return err;
}
