/* config_fuzz.c - what an administrator or a user writes: the configuration of the server, its own
 * or zoo.cfg, that of the client, access lists, durations. Whatever is not understood is told in a
 * line, and what is understood can be used. The first byte says which. */
#define _GNU_SOURCE /* as uv.h asks for */
#include <string.h>

#include "base/time_format.h"
#include "clave/tls.h"
#include "cmd/cli/acl_text.h"
#include "cmd/cli/diag.h"
#include "cmd/serve/config_file.h"
#include "fuzz/fuzz.h"
#include "runtime/client/client_settings.h"
#include "runtime/client/local_paths.h"

/* What the files under test call after the parsing, for which these targets have no need. */
int diag_end(const struct options *o, const char *path, int code, const char *fmt, ...)
{
    (void)o;
    (void)path;
    (void)fmt;
    must(false);
    return code;
}

clave_err clave_tls_new(clave_tls **out, const clave_tls_options *o, char *fault, size_t cap)
{
    (void)out;
    (void)o;
    (void)fault;
    (void)cap;
    must(false);
    return CLAVE_ETLS;
}

void clave_tls_free(clave_tls *t)
{
    must(!t);
}

clave_err clave__local_paths(struct local_paths *out, const char *dir, char *fault, size_t cap)
{
    (void)out;
    (void)dir;
    (void)fault;
    (void)cap;
    must(false);
    return CLAVE_ELOCAL;
}

static void hear(void *arg, int level, const char *msg)
{
    unsigned *errors = arg;
    must(*msg != '\0');
    *errors += level == CLAVE_LOG_ERROR;
}

static void fuzz_server(char *text)
{
    struct serve_settings v, defaults;
    unsigned errors = 0;
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    const struct log log = {.cb = hear, .arg = &errors};
    settings_init(&v, false);
    settings_init(&defaults, false);
    clave_err err = serve_config_read(&v, text, "file", &log);
    must((err == CLAVE_OK) == (errors == 0));
    must(err == CLAVE_OK || err == CLAVE_EINVAL);
    if (err == CLAVE_OK && settings_check(&v, &f) == CLAVE_OK) {
        must(v.run.nlisten <= SETTINGS_MAX_LISTEN && v.run.engine.tick_ms >= 0);
        must(v.run.engine.max_frame == 0 || v.run.engine.max_frame >= 64);
        settings_tell_fixed(&defaults, &v, &log);
    }
    settings_fini(&v);
    settings_fini(&defaults);
}

static void fuzz_client(char *text)
{
    struct client_settings c = {.connect = NULL};
    char why[1024] = "";
    const struct fault f = {why, sizeof why};
    clave_err err = clave__client_settings_parse(&c, text, "file", &f);
    must(err == CLAVE_OK ? *why == '\0' : (err == CLAVE_EINVAL || err == CLAVE_EHOST) && *why);
    must(c.nauths <= CLIENT_MAX_AUTH && c.timeout_ms >= 0 && c.session_timeout_ms >= 0);
    if (c.connect)
        (void)clave_async_client_host_fault(c.connect);
}

static void fuzz_acl(const char *text)
{
    struct acl_list list = {.n = 0};
    const char *fault = NULL;
    bool fine = acl_parse(text, &list, &fault);
    must(fine ? list.n > 0 : fault && *fault);
    for (size_t i = 0; fine && i < list.n; i++)
        must(*list.list[i].scheme && list.list[i].id && list.list[i].perms > 0 &&
             list.list[i].perms <= 31);
    acl_fini(&list);
}

static void fuzz_duration(const char *text)
{
    const char *fault = NULL;
    char back[DURATION_CAP];
    int64_t ms = -1, again;
    if (!clave__duration_parse(text, &ms, &fault)) {
        must(fault && *fault);
        return;
    }
    must(ms >= 0);
    must(clave__duration_parse(clave__duration_format(ms, back), &again, &fault) && again == ms);
}

static void fuzz_auth(const char *text)
{
    struct client_settings c = {.connect = NULL};
    const char *fault = NULL;
    bool fine = clave__client_settings_add_auth(&c, text, &fault);
    must(fine ? c.nauths == 1 : c.nauths == 0 && fault && *fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t which = input_byte(&in);
    char *text = malloc(in.n + 1);
    must(text != NULL);
    if (in.n > 0)
        memcpy(text, in.p, in.n);
    text[in.n] = '\0';
    switch (which % 4) {
    case 0:
        fuzz_server(text);
        break;
    case 1:
        fuzz_client(text);
        break;
    case 2:
        fuzz_acl(text);
        break;
    default:
        fuzz_duration(text);
        fuzz_auth(text);
    }
    free(text);
    return 0;
}
