/* hostile_verbs.c - every verb that reads, in this process, over trees that strangers have left
 * (test/fuzz/hostile_tree.h) on a server at $CLAVE_CONNECT; a gate of it is at $CLAVE_HTTP.
 *
 *   hostile_verbs N [FIRST [THIN]]   the trees of N seeds, some at a time
 *
 * The verbs that list everything see all of them; those that take a path see a sample of the paths,
 * and THIN times fewer when that is given, so that many more trees fit into the same time.
 * Each ends within its timeout, with an exit code of its own; with --json it writes valid JSON, and
 * without nothing that a terminal would obey. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "fuzz/hostile_tree.h"

enum {
    AT_A_TIME = 40,
    AT_A_TIME_THIN = 200,
    MOST_THIN = 10, /* steps are a byte */
    STRANGERS = 2,
    MOST_PATHS = 16 * AT_A_TIME_THIN,
    MOST_ARGS = 12,
    SECONDS = 120
};

static struct world {
    clave_client *strangers[STRANGERS];
    clave_client *shared;    /* of most verbs of a batch */
    bool own_session;        /* the next verb opens one of its own */
    char *paths[MOST_PATHS]; /* of nodes and locks, to be asked about */
    size_t npaths;
    char *texts[2];           /* what the newest verb has written to stdout and stderr */
    uint64_t runs, failed;    /* failed: with another exit code than 0 */
    int captured[2], said[2]; /* files in memory in place of these two, and these */
} w;

/* ---- the trees ------------------------------------------------------------------------------- */

static void keep_path(const char *path)
{
    if (w.npaths == MOST_PATHS)
        return;
    w.paths[w.npaths] = strdup(path);
    must(w.paths[w.npaths++] != NULL);
}

static void make_node(void *arg, const struct hostile_node *node)
{
    const clave_acl everybody = {node->perms, "world", "anyone"};
    const clave_create_options o = {
        .size = sizeof o, .mode = (clave_create_mode)node->mode, .acls = &everybody, .nacls = 1};
    clave_reply *reply = NULL;
    (void)arg;
    if (clave_create(w.strangers[node->owner], node->path, node->data, node->n, &o, 10000,
                     &reply) == CLAVE_OK)
        keep_path(reply->path);
    clave_reply_free(reply);
}

static void make_tree(uint64_t seed)
{
    uint8_t bytes[2048];
    char prefix[32], root[HOSTILE_PATH];
    struct input in = {bytes, sizeof bytes};
    hostile_seed(seed, bytes, sizeof bytes);
    (void)input_part(&in, 2); /* tree_fuzz.c takes them for the questions */
    snprintf(prefix, sizeof prefix, "/t%llu", (unsigned long long)seed);
    hostile_tree(&in, prefix, make_node, NULL);
    for (size_t i = 0; hostile_root(i, prefix, root); i++)
        keep_path(root);
}

static void open_strangers(void)
{
    for (size_t i = 0; i < STRANGERS; i++) {
        must(clave_client_open(&w.strangers[i], NULL, NULL, NULL) == CLAVE_OK);
        must(clave_client_wait(w.strangers[i], 10000) == CLAVE_OK);
    }
}

/* Their ephemeral nodes go, too. */
static void close_strangers(void)
{
    for (size_t i = 0; i < STRANGERS; i++)
        clave_client_close(w.strangers[i], 10000);
    for (size_t i = 0; i < w.npaths; i++)
        free(w.paths[i]);
    w.npaths = 0;
}

/* ---- sessions of the verbs ------------------------------------------------------------------- */

/* The linker puts these in place of cmd/cli/connect.c's (--wrap): most verbs use one session, since
 * to open and end one takes longer than all that a verb does with it. */
int __real_connect_open(struct options *o, const clave_client_options *co, clave_client **out);
void __real_connect_close(clave_client *c);
int __wrap_connect_open(struct options *o, const clave_client_options *co, clave_client **out);
void __wrap_connect_close(clave_client *c);

int __wrap_connect_open(struct options *o, const clave_client_options *co, clave_client **out)
{
    if (co || w.own_session)
        return __real_connect_open(o, co, out);
    if (!w.shared) {
        int code = __real_connect_open(o, NULL, &w.shared);
        if (code != EXIT_OK)
            return code;
    }
    *out = w.shared;
    return EXIT_OK;
}

void __wrap_connect_close(clave_client *c)
{
    if (c != w.shared || !c)
        __real_connect_close(c);
}

static void end_shared_session(void)
{
    __real_connect_close(w.shared);
    w.shared = NULL;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static void capture(bool on)
{
    for (int i = 0; i < 2; i++)
        must(dup2(on ? w.captured[i] : w.said[i], i + 1) == i + 1);
}

static void take_output(void)
{
    for (int i = 0; i < 2; i++) {
        off_t n = lseek(w.captured[i], 0, SEEK_END);
        must(n >= 0);
        free(w.texts[i]);
        w.texts[i] = malloc((size_t)n + 1);
        must(w.texts[i] && pread(w.captured[i], w.texts[i], (size_t)n, 0) == n);
        w.texts[i][n] = '\0';
        must(ftruncate(w.captured[i], 0) == 0 && lseek(w.captured[i], 0, SEEK_SET) == 0);
    }
}

static void complain(char *const *argv, int code, const char *what, const char *where)
{
    fprintf(stderr, "\n%s\n%s\n%s (exit code %d):", where, w.texts[1], what, code);
    for (; *argv; argv++)
        fprintf(stderr, " '%s'", *argv);
    fprintf(stderr, "\n");
    abort();
}

/* Where a line begins that is not one value; NULL: all are. */
static const char *not_json(char *text)
{
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            return line;
        *end = '\0';
        json_t *value = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!value)
            return line;
        *end = '\n';
        json_decref(value);
    }
    return NULL;
}

/* What a terminal would obey; NULL: nothing. */
static const char *not_harmless(const char *text)
{
    const char *c = text;
    while (((unsigned char)*c >= ' ' && *c != 0x7f) || *c == '\n' || *c == '\t')
        c++;
    return *c ? c : NULL;
}

/* The words of a command up to NULL; the first is the verb. */
static int run_verb(const char *verb, ...)
{
    char *argv[MOST_ARGS + 1] = {(char *)verb};
    int argc = 1, code;
    bool json = false;
    va_list more;
    struct options o;
    va_start(more, verb);
    for (char *arg; (arg = va_arg(more, char *)) && argc < MOST_ARGS; argc++) {
        argv[argc] = arg;
        json |= strcmp(arg, "--json") == 0;
    }
    va_end(more);
    w.own_session = w.runs % 16 == 0;
    capture(true);
    alarm(SECONDS);
    options_init(&o, all_verbs);
    o.verb = options_verb(&o, verb);
    must(o.verb != NULL);
    inheritance_take(&o.inherited);
    code = o.verb->run(&o, argc, argv);
    int flushed = finish_stdout(&o);
    options_fini(&o);
    fflush(stdout);
    fflush(stderr);
    alarm(0);
    capture(false);
    take_output();
    w.runs++;
    w.failed += code != 0;
    bool is_id = strcmp(verb, "slot") == 0; /* a name may be no id of a slot */
    if (code < 0 || (code == EXIT_USAGE && !is_id) || flushed != EXIT_OK)
        complain(argv, code, "not an end of its own", w.texts[0]);
    bool raw = strcmp(verb, "get") == 0 && !json; /* as it is */
    const char *at = json ? not_json(w.texts[0]) : raw ? NULL : not_harmless(w.texts[0]);
    at = at ? at : not_harmless(w.texts[1]);
    if (at)
        complain(argv, code, json ? "no JSON" : "control characters", at);
    return code;
}

static void read_path(const char *path, uint8_t how)
{
    static const char *const plain[] = {"leader", "candidates", "locks",  "ls",      "tree",
                                        "get",    "stat",       "getacl", "sessions"};
    const char *json = how & 1 ? "--json" : NULL;
    const char *verb = plain[how / 2 % (sizeof plain / sizeof *plain)];
    run_verb("slot", "list", path, "--waiters", json, NULL);
    run_verb("locks", path, how & 2 ? "--json" : NULL, NULL);
    if (strcmp(verb, "sessions") == 0)
        run_verb(verb, json, NULL);
    else
        run_verb(verb, path, json, NULL);
    run_verb(how & 4 ? "leader" : "candidates", path, how & 8 ? "--json" : NULL, NULL);
}

/* A name as the lists show it, given back to the verbs that take one. */
static void use_path(const char *path, uint8_t how)
{
    const char *name = strrchr(path, '/') + 1;
    char dir[HOSTILE_PATH], token[24];
    snprintf(dir, sizeof dir, "%.*s", (int)(name - path > 1 ? name - path - 1 : 1), path);
    snprintf(token, sizeof token, "%u", how * 7u);
    switch (how % 6) {
    case 0:
        run_verb("locks", "revoke", "--", dir, name, NULL);
        break;
    case 1:
        run_verb("locks", "break", "--yes", how & 64 ? "--force" : "--yes", "--", dir, name, NULL);
        break;
    case 2:
        run_verb("transfer", "--", dir, name, NULL);
        break;
    case 3:
        run_verb("check", dir, token, NULL);
        break;
    case 4:
        run_verb("slot", "break", "--reason", "test", "--", dir, name, NULL);
        break;
    default:
        run_verb("slot", "take", "-n", path, "--id", "web1", NULL);
        run_verb("slot", "give", path, "--id", "web1", NULL);
    }
}

static void read_all(void)
{
    const char *http = getenv("CLAVE_HTTP");
    static const char *const json[] = {NULL, "--json"};
    for (size_t i = 0; i < 2; i++) {
        run_verb("locks", json[i], NULL);
        run_verb("locks", "--deadlocks", json[i], NULL);
        run_verb("tree", "/", "--data", json[i], NULL);
        run_verb("sessions", json[i], NULL);
        run_verb("ls", "/", "-l", json[i], NULL);
        run_verb("top", "--once", json[i], NULL);
        if (http)
            run_verb("history", "--http", http, "-n", "1000", json[i], NULL);
    }
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void remove_all(void)
{
    clave_reply *top = NULL;
    must(w.shared && clave_children(w.shared, "/", 10000, &top) == CLAVE_OK);
    for (size_t i = 0; i < top->nnames; i++) {
        char path[HOSTILE_PATH];
        snprintf(path, sizeof path, "/%s", top->names[i]);
        if (strcmp(path, "/zookeeper") != 0)
            run_verb("rm", "-r", "--", path, NULL);
    }
    clave_reply_free(top);
}

static void play_batch(uint64_t first, uint64_t n, uint64_t thin)
{
    uint8_t dice[MOST_PATHS];
    hostile_seed(~first, dice, sizeof dice);
    open_strangers();
    for (uint64_t seed = first; seed < first + n; seed++)
        make_tree(seed);
    read_all();
    for (size_t i = 0; i < w.npaths; i += 1 + dice[i] % (8 * thin))
        read_path(w.paths[i], dice[i]);
    for (size_t i = 0; i < w.npaths; i += 1 + dice[i] % (24 * thin))
        use_path(w.paths[i], dice[i]);
    read_all();
    close_strangers();
    remove_all();
    end_shared_session();
}

/* Of the sanitizers: where they write to. Of thousands of threads that end one after the other,
 * each with a stack that another had, clang 14 reports its own access to the signal stack. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t thin = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    uint64_t most = thin > 1 ? AT_A_TIME_THIN : AT_A_TIME;
    must(thin > 0 && thin <= MOST_THIN && n > 0 && getenv("CLAVE_CONNECT"));
    for (int i = 0; i < 2; i++) {
        must((w.captured[i] = memfd_create("captured", MFD_CLOEXEC)) >= 0);
        must((w.said[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 10)) >= 0);
    }
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)w.said[1]);
    for (uint64_t done = 0; done < n; done += most)
        play_batch(first + done, n - done < most ? n - done : most, thin);
    printf("%llu trees, %llu verbs, %llu with an exit code above 0\n", (unsigned long long)n,
           (unsigned long long)w.runs, (unsigned long long)w.failed);
    free(w.texts[0]);
    free(w.texts[1]);
    return 0;
}
