/* usage.c - the flags that all verbs share, and the texts of `clave help` and --help. help.c and
 * cmd_options.c call it. What is printed about a verb's flags comes from its struct verb alone. */
#include "cmd/cli/usage.h"

#include <stdio.h>
#include <string.h>

const struct flag global_flags[] = {
    {'c', "connect", "HOSTS", "the servers: h1:2181,h2/app, tls:h1:2281, unix:/path or local:"},
    {GLOBAL_SESSION_TIMEOUT, "session-timeout", "DURATION", "the session timeout to ask for [10s]"},
    {GLOBAL_TIMEOUT, "timeout", "DURATION",
     "how long to wait for a connection, and for an answer [10s]"},
    {GLOBAL_AUTH, "auth", "SCHEME:ID", "an identity: digest:user:password (repeatable)"},
    {GLOBAL_TLS_CA, "tls-ca", "FILE", "tls: the trusted authorities [the system's list]"},
    {GLOBAL_TLS_CERT, "tls-cert", "FILE", "tls: the certificate to present, with its chain"},
    {GLOBAL_TLS_KEY, "tls-key", "FILE", "tls: the key of that certificate [in the same file]"},
    {GLOBAL_TLS_NAME, "tls-name", "NAME",
     "tls: the name expected in the servers' certificates [HOSTS]"},
    {GLOBAL_TLS_ANY_NAME, "tls-any-name", NULL,
     "tls: accept any name in the servers' certificates"},
    {GLOBAL_JSON, "json", NULL, "print JSON, one value a line"},
    {'v', "verbose", NULL, "log what happens to stderr; given twice: everything"},
    {'h', "help", NULL, "print this help"},
    {0, NULL, NULL, NULL},
};

const struct flag *verb_flag(const struct verb *v, size_t i)
{
    size_t own = 0;
    for (const struct flag *f = v->flags; f && f->id != 0; f++)
        if (own++ == i)
            return f;
    return v->more_flags ? v->more_flags(v, i - own) : NULL;
}

bool global_is_absent(const struct verb *v, const struct flag *global)
{
    if (global->id == GLOBAL_TIMEOUT && v->waits_forever)
        return true;
    const struct flag *f;
    for (size_t i = 0; (f = verb_flag(v, i)); i++)
        if (strcmp(f->name, global->name) == 0)
            return true;
    return false;
}

bool global_is_of_clients(const struct flag *f)
{
    return f->id == 'c' || f->id == GLOBAL_SESSION_TIMEOUT || f->id == GLOBAL_TIMEOUT ||
           f->id == GLOBAL_AUTH || (f->id >= GLOBAL_TLS_CA && f->id <= GLOBAL_TLS_ANY_NAME);
}

const struct flag *usage_flag(const struct verb *v, size_t i)
{
    size_t n = 0;
    for (const struct flag *f; v && (f = verb_flag(v, n)); n++)
        if (n == i)
            return f;
    for (const struct flag *f = global_flags; f->id != 0; f++) {
        bool refused = v && v->offline && *v->name && global_is_of_clients(f);
        if (!refused && !(v && global_is_absent(v, f)) && n++ == i)
            return f;
    }
    return NULL;
}

static void usage_print_flag(const struct flag *f)
{
    char left[64];
    const char *gap = f->arg && *f->arg != '[' ? " " : "";
    if (f->id < FLAG_LONG)
        snprintf(left, sizeof left, "-%c, --%s%s%s", f->id, f->name, gap, f->arg ? f->arg : "");
    else
        snprintf(left, sizeof left, "    --%s%s%s", f->name, gap, f->arg ? f->arg : "");
    if (strlen(left) > 30)
        printf("  %s\n  %-30s  %s\n", left, "", f->help);
    else
        printf("  %-30s  %s\n", left, f->help);
}

void usage_verb(const struct verb *v)
{
    printf("usage: clave %s [FLAG]...%s%s\n\n%s.\n", v->name, *v->args ? " " : "", v->args,
           v->summary);
    if (v->text)
        printf("\n%s", v->text);
    const struct flag *f;
    size_t n = 0;
    for (; (f = verb_flag(v, n)); n++) {
        if (n == 0)
            puts("\nFlags:");
        usage_print_flag(f);
    }
    puts("\nFlags for every verb:");
    for (size_t i = n; (f = usage_flag(v, i)); i++)
        usage_print_flag(f);
}

/* ---- topics ---------------------------------------------------------------------------------- */

struct topic {
    const char *name;
    /* NULL: print `text`; else the verbs to list, each with a space on either side. */
    const char *verbs;
    const char *text;
};

static const struct topic topics[] = {
    {"locking", " lock rwlock semaphore slot locks top check history ctdb-lock ", NULL},
    {"elections", " elect leader candidates resign transfer top ", NULL},
    {"nodes", " get set create rm ls tree stat getacl setacl watch sync ", NULL},
    {"services", " register instances member members counter mirror ", NULL},
    {"servers", " serve gate ping sessions data grow acl ", NULL},
    {"environment", NULL,
     "Flags not given are taken from the environment (CLAVE_CONNECT, CLAVE_SESSION_TIMEOUT,\n"
     "CLAVE_TIMEOUT, CLAVE_AUTH, CLAVE_TLS_CA, _CERT, _KEY, _NAME), then from\n"
     "$XDG_CONFIG_HOME/clave/config (or the file CLAVE_CONFIG names), then from\n"
     "/etc/clave/config, in lines such as 'connect = zk1,zk2'.\n"},
    {"local", NULL,
     "Without a server, clave uses local:, this user's private server on this machine. It\n"
     "excludes no other user and no other machine. 'local = never' in the configuration, or\n"
     "CLAVE_LOCAL=never, forbids it; 'local = yes' silences the warning.\n"},
    {"durations", NULL,
     "A DURATION is a number of seconds, or numbers with units: 500ms, 0.5s, 10, 3m, 1h30m, 2d.\n"},
    {"exit-codes", NULL,
     "Exit codes: 0 done; 64 usage; 66 no such node, exists, wrong version, invalid path;\n"
     "69 no server answered; 70 internal; 73 refused: harm to others, or in vain;\n"
     "74 input or output; 75 not in time; 76 lock lost; 77 not authorised; 79 deadlock;\n"
     "80 unhealthy; 81 not fenced; 82 no watchdog; 126 command not executable;\n"
     "127 command not found.\n"},
};
enum { TOPICS = sizeof topics / sizeof *topics };

static void usage_put_verbs(const struct verb *const *verbs, const char *only)
{
    char word[64];
    for (const struct verb *const *v = verbs; *v; v++) {
        snprintf(word, sizeof word, " %s ", (*v)->name);
        if (!only || strstr(only, word))
            printf("  %-10s  %s\n", (*v)->name, (*v)->summary);
    }
}

bool usage_topic(const struct verb *const *verbs, const char *topic)
{
    for (size_t i = 0; i < TOPICS; i++) {
        const struct topic *t = &topics[i];
        if (strcmp(t->name, topic) != 0)
            continue;
        if (t->verbs)
            usage_put_verbs(verbs, t->verbs);
        else
            fputs(t->text, stdout);
        return true;
    }
    return false;
}

/* ---- finding a flag -------------------------------------------------------------------------- */

static bool usage_has_words(const struct flag *f, char *const *words)
{
    for (; *words; words++) {
        const char *word = *words + strspn(*words, "-");
        if (!strcasestr(f->name, word) && !strcasestr(f->help, word))
            return false;
    }
    return true;
}

bool usage_find(const struct verb *const *verbs, char *const *words)
{
    bool found = false, any = false;
    const struct flag *f;
    for (; *verbs; verbs++, found = false)
        for (size_t i = 0; (f = verb_flag(*verbs, i)); i++) {
            if (!usage_has_words(f, words))
                continue;
            if (!found)
                printf("%sclave %s:\n", any ? "\n" : "", (*verbs)->name);
            found = any = true;
            usage_print_flag(f);
        }
    for (f = global_flags; f->id != 0; f++) {
        if (!usage_has_words(f, words))
            continue;
        if (!found)
            printf("%sFlags for every verb:\n", any ? "\n" : "");
        found = any = true;
        usage_print_flag(f);
    }
    return any;
}

/* ---- the program ----------------------------------------------------------------------------- */

void usage_all(const struct verb *const *verbs)
{
    puts("usage: clave [FLAG]... VERB [ARGUMENT]...\n\n"
         "Distributed locks and leader elections on any server that speaks the ZooKeeper\n"
         "protocol, including its own ('clave serve').\n\nVerbs:");
    usage_put_verbs(verbs, NULL);
    puts("\nFlags for every verb:");
    for (const struct flag *f = global_flags; f->id != 0; f++)
        usage_print_flag(f);
    puts("      --version                   print the version (as does the verb)\n");
    for (size_t i = 0; i < TOPICS; i++)
        if (topics[i].text)
            printf("%s\n", topics[i].text);
    printf("See 'clave help VERB' and clave(1) for more, 'clave help WORD...' for flags. Topics, "
           "as 'clave help %s':",
           topics[0].name);
    for (size_t i = 0; i < TOPICS; i++)
        printf("%s %s", i ? "," : "", topics[i].name);
    putchar('\n');
}
