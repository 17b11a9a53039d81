/* diag.c - maps errors to exit codes, texts and hints (see diag.h). Every verb reports through this
 * file. A message is a single line, written in one piece. */
#include "cmd/cli/diag.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/cli/shell_command.h"
#include "cmd/cli/standard_error.h"
#include "runtime/blocking/call.h"
#include "runtime/client/local_paths.h"
#include "runtime/clock.h"

enum { HINT_LINE_CAP = PATH_MAX + HINT_CAP + 64, DIAG_CAP = 16384 };

int exit_code_of(clave_err err)
{
    static const struct {
        clave_err err;
        int code;
    } table[] = {
        {CLAVE_OK, EXIT_OK},
        {CLAVE_ENONODE, EXIT_PATH},
        {CLAVE_ENODEEXISTS, EXIT_PATH},
        {CLAVE_EBADVERSION, EXIT_PATH},
        {CLAVE_ENOTEMPTY, EXIT_PATH},
        {CLAVE_ENOCHILDREN, EXIT_PATH},
        {CLAVE_EINVALIDACL, EXIT_PATH},
        {CLAVE_EPATH, EXIT_PATH},
        {CLAVE_EBADARGS, EXIT_PATH},
        {CLAVE_EMARSHALLING, EXIT_PATH},
        {CLAVE_ESEQUENCE, EXIT_PATH},
        {CLAVE_EQUOTA, EXIT_PATH},
        {CLAVE_ETOOBIG, EXIT_USAGE},
        {CLAVE_EINVAL, EXIT_USAGE},
        {CLAVE_EUNIMPLEMENTED, EXIT_USAGE},
        {CLAVE_ETLS, EXIT_USAGE},
        {CLAVE_ENOAUTH, EXIT_NOAUTH},
        {CLAVE_EAUTHFAILED, EXIT_NOAUTH},
        {CLAVE_ESASLREQUIRED, EXIT_NOAUTH},
        {CLAVE_EUNREACHABLE, EXIT_UNREACHABLE},
        {CLAVE_EHOST, EXIT_UNREACHABLE},
        {CLAVE_ECONNLOSS, EXIT_UNREACHABLE},
        {CLAVE_ENOTSENT, EXIT_UNREACHABLE},
        {CLAVE_EPROTO, EXIT_UNREACHABLE},
        {CLAVE_EEXPIRED, EXIT_UNREACHABLE},
        {CLAVE_EREPLACED, EXIT_UNREACHABLE},
        {CLAVE_ENOTREADONLY, EXIT_UNREACHABLE},
        {CLAVE_ELOCAL, EXIT_UNREACHABLE},
        {CLAVE_ETIMEDOUT, EXIT_TIMEOUT},
        {CLAVE_EREQUESTTIMEOUT, EXIT_TIMEOUT},
        {CLAVE_EOPTIMEOUT, EXIT_TIMEOUT},
        {CLAVE_ETHROTTLED, EXIT_TIMEOUT},
        {CLAVE_EBUSY, EXIT_TIMEOUT},
        {CLAVE_ELOST, EXIT_LOST},
        {CLAVE_EDEADLOCK, EXIT_DEADLOCK},
        {CLAVE_EMAXHOLD, EXIT_LOST},
        {CLAVE_EIO, EXIT_IO},
        {CLAVE_ECORRUPT, EXIT_IO},
        {CLAVE_EINUSE, EXIT_IO},
        {CLAVE_EFULL, EXIT_IO},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return table[i].code;
    return EXIT_INTERNAL;
}

const char *diag_text(const struct options *o, clave_err err)
{
    static const struct {
        clave_err err;
        const char *text;
    } table[] = {
        {CLAVE_EBUSY, "not elected in time: another candidate leads"},
        {CLAVE_ELOST, "the leadership was lost"},
        {CLAVE_ENOTHELD, "this candidate is not the leader"},
        {CLAVE_ESEQUENCE, "the sequence counter of the election's path is used up"},
    };
    for (size_t i = 0; o && o->verb && o->verb->elects && i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return table[i].text;
    return clave_strerror(err);
}

/* What the user can do about the error; "" if the text says it all. */
static const char *diag_advice(const struct options *o, const char *path, clave_err err,
                               char out[HINT_CAP])
{
    static const struct {
        clave_err err;
        const char *text;
    } table[] = {
        {CLAVE_EBADVERSION, "another client has written it since: read it again"},
        {CLAVE_ENOAUTH, "name an identity with --auth digest:user:password"},
        {CLAVE_ENOCHILDREN, "choose another parent"},
        {CLAVE_EAUTHFAILED, "--auth names the identity"},
        {CLAVE_ECONNLOSS, "it may have taken effect: check before retrying"},
        {CLAVE_ETIMEDOUT, "it may have taken effect; --timeout allows more time"},
        {CLAVE_ENOTSENT, "nothing was changed: try again"},
    };
    static const char to_remove[] = "to remove the whole tree: ", to_set[] = "to change its data: ";
    char command[HINT_CAP];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return table[i].text;
    *out = '\0';
    if (o && path && err == CLAVE_ENOTEMPTY)
        snprintf(out, HINT_CAP, "%s%.*s", to_remove, (int)(HINT_CAP - sizeof to_remove),
                 hint_command(o, (const char *const[]){"rm", "-r", path, NULL}, command));
    else if (o && path && err == CLAVE_ENODEEXISTS)
        snprintf(out, HINT_CAP, "%s%.*s", to_set, (int)(HINT_CAP - sizeof to_set),
                 hint_command(o, (const char *const[]){"set", path, "DATA", NULL}, command));
    return out;
}

/* What a line says besides its text. */
struct diag_facts {
    const char *event; /* name of the JSON event */
    int level;         /* CLAVE_LOG_*, for the journal; 0: error */
    const char *path;  /* NULL: no path */
    clave_err err;     /* CLAVE_OK: no error of the library */
    int code;          /* exit code; 0: not mentioned */
};

/* Locks the stream, since the client's log comes from another thread: each line is written in one
 * piece. */
static void diag_put_line(const struct options *o, const struct diag_facts *f, const char *text)
{
    const char *verb = o && o->verb ? o->verb->name : "";
    char when[TIME_TEXT_CAP];
    struct json j;
    FILE *out = standard_error();
    flockfile(out);
    fputs(standard_error_priority(f->level > 0 ? f->level : CLAVE_LOG_ERROR), out);
    if (!o || !o->json) {
        fprintf(out, "clave: %s%s%s\n", verb, *verb ? ": " : "", text);
        fflush(out);
        funlockfile(out);
        return;
    }
    json_begin(&j, out);
    clave__json_string(&j, "time", time_text(clave__clock_wall(), when));
    clave__json_string(&j, "event", f->event);
    clave__json_string(&j, "verb", verb);
    if (f->path)
        clave__json_string(&j, "path", f->path);
    if (f->err != CLAVE_OK)
        clave__json_string(&j, "code", clave_err_name(f->err));
    if (f->code != 0)
        clave__json_int(&j, "exit", f->code);
    clave__json_string(&j, "message", text);
    json_end(&j);
    funlockfile(out);
}

static void diag_put(const struct options *o, const struct diag_facts *f, const char *fmt,
                     va_list ap)
{
    char text[DIAG_CAP]; /* longer texts are cut: a forked child must not allocate */
    vsnprintf(text, sizeof text, fmt, ap);
    diag_put_line(o, f, text);
}

__attribute__((format(printf, 3, 4))) static void
diag_say(const struct options *o, const struct diag_facts *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_put(o, f, fmt, ap);
    va_end(ap);
}

void diag(const struct options *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_put(o, &(struct diag_facts){.event = "message", .level = CLAVE_LOG_WARN}, fmt, ap);
    va_end(ap);
}

int diag_usage(struct options *o, const char *fmt, ...)
{
    char text[DIAG_CAP];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    diag_say(o, &(struct diag_facts){.event = "error", .code = EXIT_USAGE},
             "%s (see 'clave help%s%s')", text, *o->verb->name ? " " : "", o->verb->name);
    o->status = EXIT_USAGE;
    return EXIT_USAGE;
}

int diag_end(const struct options *o, const char *path, int code, const char *fmt, ...)
{
    char text[DIAG_CAP];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    diag_say(o, &(struct diag_facts){.event = "error", .path = path, .code = code}, "%s%s%s",
             path ? path : "", path ? ": " : "", text);
    return code;
}

void diag_note(const struct options *o, const char *fmt, ...)
{
    va_list ap;
    if (o->verbose == 0)
        return;
    va_start(ap, fmt);
    diag_put(o, &(struct diag_facts){.event = "message", .level = CLAVE_LOG_INFO}, fmt, ap);
    va_end(ap);
}

static bool diag_is_connected(clave_client *c)
{
    clave_state state = clave_client_state(c);
    return state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED ||
           state == CLAVE_STATE_READ_ONLY;
}

/* Whether the session's latest fault explains the error better than the general text: that is so if
 * the way to the server is the problem. If a request times out while the session is connected, the
 * latest fault is about something else. */
static bool diag_is_about_the_way(clave_err err, clave_client *c)
{
    int code = exit_code_of(err);
    if (err == CLAVE_ETIMEDOUT && diag_is_connected(c))
        return false;
    return code == EXIT_UNREACHABLE || code == EXIT_TIMEOUT || err == CLAVE_EAUTHFAILED ||
           err == CLAVE_EPATH;
}

/* What to do about a missing node: names the flag that creates it. The root always exists, unless
 * it is that of a chroot. */
static const char *diag_advice_missing(const struct options *o, const char *path)
{
    const char *verb = o && o->verb ? o->verb->name : "";
    if (path && strcmp(path, "/") == 0)
        return "the chroot in the server list does not exist";
    if (strcmp(verb, "create") == 0)
        return "its parent does not exist: --parents creates it";
    return strcmp(verb, "set") == 0 ? "--create creates it" : "";
}

/* Formats the hint. If a "local:" server is gone, adds where its log is, since its clients do not
 * know why it is gone. */
static const char *diag_hint(const struct options *o, const char *path, clave_err err,
                             char out[HINT_LINE_CAP])
{
    char fault[512], text[HINT_CAP];
    const char *hint =
        err == CLAVE_ENONODE ? diag_advice_missing(o, path) : diag_advice(o, path, err, text);
    struct local_paths p;
    bool local = o && (!o->connect || strncmp(o->connect, "local:", 6) == 0);
    *out = '\0';
    if (err == CLAVE_ECONNLOSS && local &&
        clave__local_paths(&p, NULL, fault, sizeof fault) == CLAVE_OK)
        snprintf(out, HINT_LINE_CAP, " (%s; the server's log: %s/serve.log)", hint, p.dir);
    else if (*hint)
        snprintf(out, HINT_LINE_CAP, " (%s)", hint);
    return out;
}

static int diag_put_err(const struct options *o, const char *path, clave_err err,
                        const char *detail)
{
    assert(err != CLAVE_OK);
    /* The bytes that a server could not read were ours, so what the library says is all there is to
     * say. */
    const char *text = *detail && err == CLAVE_EMARSHALLING ? detail : diag_text(o, err);
    const struct diag_facts f = {
        .event = "error", .path = path, .err = err, .code = exit_code_of(err)};
    bool more = *detail && strcmp(detail, text) != 0;
    char hint[HINT_LINE_CAP];
    diag_say(o, &f, "%s%s%s%s%s%s%s", path ? path : "", path ? diag_colon(path) : "",
             path ? " " : "", text, more ? ": " : "", more ? detail : "",
             diag_hint(o, path, err, hint));
    return f.code;
}

int diag_err(const struct options *o, const char *path, clave_err err, clave_client *c)
{
    struct client_fault fault = {.err = CLAVE_OK};
    if (c)
        clave__blocking_fault(c, &fault);
    if (c && diag_is_about_the_way(err, c))
        return diag_put_err(o, path, err, fault.text);
    return diag_fault(o, path, err, &fault);
}

int diag_fault(const struct options *o, const char *path, clave_err err,
               const struct client_fault *fault)
{
    return diag_put_err(o, path, err, clave__client_fault_detail(fault, err));
}

const char *diag_path_hint(const struct options *o, char out[DIAG_HINT_CAP])
{
    *out = '\0';
    if (o->path_flag)
        snprintf(out, DIAG_HINT_CAP, "; '%.*s' was taken as the value of --%s", DIAG_HINT_CAP / 2,
                 o->path_value, o->path_flag->name);
    return out;
}

int diag_path(const struct options *o, const char *path, const char *fault)
{
    char shown[PARTICIPANT_TEXT_CAP], whole[256], word[HINT_CAP], taken[DIAG_HINT_CAP];
    int n = snprintf(whole, sizeof whole, "%s%s", *path == '/' ? "" : "/", path);
    bool fits = n < (int)sizeof whole;
    while (fits && n > 1 && whole[n - 1] == '/')
        whole[--n] = '\0';
    /* All that is wrong is a slash, at its beginning or at its end. */
    bool only_slash = *path && fits && !clave__path_fault(whole, (size_t)n, false);
    if (*path != '/' && *diag_path_hint(o, taken))
        only_slash = false;
    else
        *taken = '\0';
    const struct diag_facts f = {
        .event = "error", .path = path, .err = CLAVE_EPATH, .code = EXIT_PATH};
    diag_say(o, &f, "%s: invalid path: %s%s%s%s",
             *path ? participant_text_printable(path, shown, sizeof shown) : "''", fault,
             only_slash ? ": write " : "", only_slash ? hint_word(whole, word) : "", taken);
    return EXIT_PATH;
}

const char *diag_colon(const char *connect)
{
    size_t n = strlen(connect);
    return n > 0 && connect[n - 1] == ':' ? "" : ":";
}

int diag_refused(const struct options *o, const char *connect, const char *fault)
{
    const struct diag_facts f = {
        .event = "error", .err = CLAVE_EUNREACHABLE, .code = EXIT_UNREACHABLE};
    diag_say(o, &f, "%s%s %s", connect, diag_colon(connect), fault);
    return EXIT_UNREACHABLE;
}

int finish_stdout(const struct options *o)
{
    int fault = 0;
    if (ferror(stdout))
        fault = errno ? errno : EIO;
    if (fflush(stdout) != 0)
        fault = errno;
    if (fault == 0)
        return EXIT_OK;
    if (fault != EPIPE) /* EPIPE: the reader has seen enough, as in `clave ls / | head -1` */
        diag_end(o, NULL, EXIT_IO, "standard output: %s%s", strerror(fault),
                 fault == EAGAIN ? " (the pipe is full and non-blocking)" : "");
    return EXIT_IO;
}
