/* completion.c - `clave completion`: prints what may replace the last of the words typed after
 * "clave", one candidate per line. The shells call it (contrib/completion). Verbs and flags come
 * from the tables of the verbs; paths come from the server, within 300 ms or not at all. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/cli/cmd_options.h"
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

/* Offers the flags of the verb; NULL: the flags that may be given before a verb. */
static void completion_offer_flags(const struct verb *v, const char *typed)
{
    char word[64];
    const struct flag *f;
    for (size_t i = 0; (f = usage_flag(v, i)); i++) {
        snprintf(word, sizeof word, "--%s", f->name);
        completion_offer(word, typed);
    }
}

/* If the word is a flag whose value is the next word, that flag; else NULL. */
static const struct flag *completion_flag_with_value(const struct verb *v, const char *word)
{
    const struct flag *f;
    for (size_t i = 0; (f = usage_flag(v, i)); i++) {
        bool is_long = strncmp(word, "--", 2) == 0 && strcmp(word + 2, f->name) == 0;
        bool is_short = word[0] == '-' && word[1] == f->id && word[2] == '\0';
        if ((is_long || is_short) && f->arg && *f->arg != '[')
            return f;
    }
    return NULL;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Uses the server of "local:" if it is running. false: it is not; none is started just for this. */
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

/* Offers paths. A server that does not answer must not delay the shell, hence the timer. */
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

/* ---- the words before the last one ----------------------------------------------------------- */

/* What these words mean, parsed the way options_next would. */
struct completion_words {
    const struct verb *verb; /* NULL: not given yet */
    int arguments;           /* number of arguments of the verb */
    bool is_over;            /* what follows belongs to a command, or the verb is unknown */
    bool wants_value;        /* the next word is the value of the preceding flag */
};

/* Parses a flag. Returns how many further words belong to it. */
static int completion_read_flag(struct options *o, struct completion_words *w, char **words, int n)
{
    const struct flag *f = completion_flag_with_value(w->verb, *words);
    if (strncmp(*words, "--connect=", 10) == 0)
        o->connect = *words + 10;
    if (!f)
        return 0;
    w->wants_value = n == 1;
    if (f->id == 'c' && n > 1)
        o->connect = words[1];
    return 1;
}

static struct completion_words completion_read(struct options *o, char **words, int n)
{
    struct completion_words w = {.verb = NULL};
    for (int i = 0; i < n && !w.is_over; i++)
        if (strcmp(words[i], "--") == 0)
            w.is_over = true;
        else if (words[i][0] == '-' && words[i][1] != '\0')
            i += completion_read_flag(o, &w, words + i, n - i);
        else if (!w.verb)
            w.is_over = !(w.verb = options_verb(o, words[i]));
        else
            w.is_over = ++w.arguments > w.verb->max_args && w.verb->max_args >= 0;
    return w;
}

static int run_completion(struct options *o, int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--") != 0) /* --help, or no words at all */
        return options_next(o, argc, argv) == OPTIONS_STOP
                   ? o->status
                   : diag_usage(o, "it is for shells: clave completion -- WORD...");
    char **words = argv + 2;
    int n = argc - 3; /* complete words; the last one is still being typed */
    const char *typed = n >= 0 ? words[n] : "";
    struct completion_words w = completion_read(o, words, n);
    const struct verb *v = w.verb;
    if (w.is_over || w.wants_value)
        return EXIT_OK;
    if (*typed == '-')
        completion_offer_flags(v, typed);
    else if (v && w.arguments != v->max_args && strstr(v->args, "PATH") &&
             (*typed == '/' || !*typed))
        completion_offer_paths(o, typed);
    for (const struct verb *const *each = o->verbs; *each && (!v || strcmp(v->name, "help") == 0);
         each++)
        completion_offer((*each)->name, typed);
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
