/* completion.c - `clave completion`: what may stand in place of the last of the words typed after
 * "clave", one candidate a line. The shells call it (contrib/completion); verbs and flags come from
 * the tables of the verbs, paths from the server, within 300 ms or not at all. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/config.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/local_warning.h"
#include "cmd/cli/usage.h"
#include "runtime/client/local_paths.h"

enum { COMPLETION_MS = 300, LOCAL_CAP = 128 };

static void completion_offer(const char *candidate, const char *typed)
{
    if (strncmp(candidate, typed, strlen(typed)) == 0)
        puts(candidate);
}

static void completion_offer_flags(const struct verb *v, const char *typed)
{
    char word[64];
    for (int global = 0; global < 2; global++)
        for (const struct flag *f = global ? global_flags : v->flags; f && f->id != 0; f++) {
            if (global && (global_is_absent(v, f) || (v->offline && global_is_of_clients(f))))
                continue;
            snprintf(word, sizeof word, "--%s", f->name);
            completion_offer(word, typed);
        }
}

/* The flag that the word is, if its value is the next word. */
static const struct flag *completion_flag_with_value(const struct verb *v, const char *word)
{
    for (int global = 0; global < 2; global++)
        for (const struct flag *f = global ? global_flags : v->flags; f && f->id != 0; f++) {
            bool is_long = strncmp(word, "--", 2) == 0 && strcmp(word + 2, f->name) == 0;
            bool is_short = word[0] == '-' && word[1] == f->id && word[2] == '\0';
            if ((is_long || is_short) && f->arg && *f->arg != '[')
                return f;
        }
    return NULL;
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* The running server of local:; false: there is none, and none is started for this. */
static bool completion_use_local(struct options *o, char host[LOCAL_CAP])
{
    struct local_paths p;
    struct stat st;
    char fault[512];
    if (o->connect && !local_is(o->connect))
        return true;
    if (o->client.local == CLIENT_LOCAL_NEVER ||
        clave__local_paths(&p, NULL, fault, sizeof fault) != CLAVE_OK || stat(p.socket, &st) != 0 ||
        !S_ISSOCK(st.st_mode))
        return false;
    snprintf(host, LOCAL_CAP, "unix:%s", p.socket);
    o->connect = host;
    return true;
}

static void completion_offer_children(clave_client *c, const char *typed)
{
    char parent[1024];
    const char *slash = strrchr(typed, '/');
    size_t n = (size_t)(slash - typed);
    clave_reply *r;
    if (n + 1 >= sizeof parent)
        return;
    snprintf(parent, sizeof parent, "%.*s", n > 0 ? (int)n : 1, typed);
    if (clave_children(c, parent, COMPLETION_MS, &r) != CLAVE_OK)
        return;
    for (size_t i = 0; i < r->nnames; i++)
        if (strncmp(r->names[i], slash + 1, strlen(slash + 1)) == 0 &&
            !strpbrk(r->names[i], "\n \t'\"\\"))
            printf("%.*s/%s\n", (int)n, typed, r->names[i]);
    clave_reply_free(r);
}

static void completion_on_alarm(int number)
{
    (void)number;
    _exit(EXIT_OK);
}

/* A server that does not answer must not hold the shell up. */
static void completion_offer_paths(struct options *o, const char *typed)
{
    char host[LOCAL_CAP];
    clave_client *c;
    clave_client_options co;
    FILE *quiet = freopen("/dev/null", "w", stderr);
    o->timeout_ms = COMPLETION_MS;
    o->deadline_ms = clave_now() + COMPLETION_MS;
    if (!quiet || !config_apply(o) || !completion_use_local(o, host))
        return;
    signal(SIGALRM, completion_on_alarm);
    ualarm(COMPLETION_MS * 1000, 0);
    connect_client_options(o, &co);
    if (connect_open(o, &co, &c) != EXIT_OK)
        return;
    completion_offer_children(c, *typed ? typed : "/");
    fflush(stdout);
    connect_close(c);
}

/* ---- the words ------------------------------------------------------------------------------ */

static const struct verb *completion_find_verb(struct options *o, char **words, int n)
{
    for (int i = 0; i < n; i++) {
        const struct verb *v = options_verb(o, words[i]);
        if (v)
            return v;
        if (strcmp(words[i], "-c") == 0 || strcmp(words[i], "--connect") == 0) {
            if (i + 1 < n)
                o->connect = words[i + 1];
            i++;
        }
    }
    return NULL;
}

/* What -c says after the verb. */
static void completion_read_connect(struct options *o, char **words, int n)
{
    for (int i = 0; i < n; i++)
        if (strncmp(words[i], "--connect=", 10) == 0)
            o->connect = words[i] + 10;
        else if (i + 1 < n && (strcmp(words[i], "-c") == 0 || strcmp(words[i], "--connect") == 0))
            o->connect = words[i + 1];
}

static bool completion_is_after_dashes(char **words, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], "--") == 0)
            return true;
    return false;
}

static int run_completion(struct options *o, int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--") != 0) /* --help, or no words */
        return options_next(o, argc, argv) == OPTIONS_STOP
                   ? o->status
                   : diag_usage(o, "it is for shells: clave completion -- WORD...");
    char **words = argv + 2;
    int n = argc - 3; /* whole words; the last one is being typed */
    const char *typed = n >= 0 ? words[n] : "";
    const struct verb *v = n > 0 ? completion_find_verb(o, words, n) : NULL;
    if (v)
        completion_read_connect(o, words, n);
    if (v && completion_is_after_dashes(words, n))
        return EXIT_OK; /* the command's */
    if (n > 0 && completion_flag_with_value(v ? v : o->verb, words[n - 1]))
        return EXIT_OK;
    if (v && *typed == '-')
        completion_offer_flags(v, typed);
    else if (v && strstr(v->args, "PATH") && (*typed == '/' || !*typed))
        completion_offer_paths(o, typed);
    for (const struct verb *const *w = o->verbs; *w && (!v || strcmp(v->name, "help") == 0); w++)
        completion_offer((*w)->name, typed);
    return finish_stdout(o);
}

const struct verb verb_completion = {
    .name = "completion",
    .args = "-- WORD...",
    .summary = "Print what may stand in place of the last word, for shells",
    .text = "contrib/completion has the functions of bash, zsh and fish that call it.\n",
    .max_args = 0,
    .offline = true,
    .ignores_client_flags = true,
    .run = run_completion,
};
