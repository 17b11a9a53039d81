#include <stdio.h>
#include <string.h>

#include "cmd/json.h"
#include "cmd/options.h"
#include "cmd/tell.h"
#include "drive/local.h"
#include "drive/uv_server.h"

enum {
    SERVE_DATA = FLAG_LONG,
    SERVE_LOCAL,
    SERVE_TICK,
    SERVE_IDLE_EXIT,
    SERVE_MIN_SESSION,
    SERVE_MAX_SESSION,
    SERVE_MAX_CONNECTIONS,
    SERVE_SNAP_COUNT,
    SERVE_EXTENDED_TYPES,
    SERVE_ENFORCE_QUOTA,
    SERVE_SUPER_DIGEST,
    SERVE_WORDS,
    SERVE_ALL_CONNECTIONS,
    MAX_LISTEN = 16,
    DEFAULT_TICK_MS = 2000,
};

struct serve {
    struct server_run_options run;
    const char *listen[MAX_LISTEN];
    const char *local;
};

/* What of the server's log is shown: faults and warnings, with -v what happens, with -vv
 * everything. */
static void on_log(void *arg, int level, const char *msg)
{
    const struct options *o = arg;
    if (level <= CLAVE_LOG_WARN + o->verbose)
        tell(o, "%s", msg);
}

/* ---- flags -------------------------------------------------------------------------------- */

static bool set_int32(int64_t value, int32_t *out)
{
    *out = (int32_t)value;
    return true;
}

static bool take_listen(struct options *o, struct serve *v)
{
    if (v->run.nlisten == MAX_LISTEN) {
        tell_usage(o, "--listen: at most %d addresses", MAX_LISTEN);
        return false;
    }
    v->listen[v->run.nlisten++] = o->value;
    return true;
}

static bool take_connections(struct options *o, struct serve *v)
{
    int64_t n;
    if (!options_number(o, "max-connections", 0, INT32_MAX, &n))
        return false;
    v->run.max_per_address = n == 0 ? -1 : (int)n;
    return true;
}

static bool take_all_connections(struct options *o, struct server_options *engine)
{
    int64_t n;
    if (!options_number(o, "max-all-connections", 0, INT32_MAX, &n))
        return false;
    engine->max_connections = (size_t)n;
    return true;
}

/* "user:" and the base64 of a SHA-1. */
static bool take_super_digest(struct options *o, struct server_options *engine)
{
    enum { HASH_LEN = 28 };
    const char *colon = strchr(o->value, ':');
    engine->super_digest = o->value;
    if (colon && colon > o->value && strlen(colon + 1) == HASH_LEN)
        return true;
    tell_usage(o,
               "--super-digest '%s': it is USER:HASH, HASH the base64 of the SHA-1 of "
               "user:password",
               o->value);
    return false;
}

static bool take_words(struct options *o, struct server_options *engine)
{
    enum { WORD_LEN = 4 };
    static const char known[] = SERVER_WORDS "," SERVER_OTHER_WORDS;
    const char *at = o->value;
    size_t n = 0;
    bool fine = strcmp(at, "*") == 0;
    engine->words = at;
    for (; !fine; at += n + 1) {
        char word[WORD_LEN + 1] = "";
        n = strcspn(at, ",");
        memcpy(word, at, n == WORD_LEN ? n : 0);
        if (!*word || !strstr(known, word)) {
            tell_usage(o, "--words: no such word '%.*s'; there are %s", (int)n, at, known);
            return false;
        }
        fine = at[n] == '\0';
    }
    return true;
}

/* What the engine alone is about. */
static bool take_engine_flag(struct options *o, struct server_options *engine, int id)
{
    switch (id) {
    case SERVE_EXTENDED_TYPES:
        engine->extended_types = true;
        return true;
    case SERVE_ENFORCE_QUOTA:
        engine->enforce_quota = true;
        return true;
    case SERVE_SUPER_DIGEST:
        return take_super_digest(o, engine);
    case SERVE_WORDS:
        return take_words(o, engine);
    case SERVE_ALL_CONNECTIONS:
        return take_all_connections(o, engine);
    default:
        return false;
    }
}

static bool take_flag(struct options *o, struct serve *v, int id)
{
    struct server_options *engine = &v->run.engine;
    int64_t n;
    switch (id) {
    case SERVE_DATA:
        v->run.data_dir = o->value;
        return true;
    case SERVE_LOCAL:
        v->local = o->value;
        return true;
    case 'l':
        return take_listen(o, v);
    case SERVE_TICK:
        return options_duration(o, "tick", 1, 60000, &n) && set_int32(n, &engine->tick_ms);
    case SERVE_IDLE_EXIT:
        return options_duration(o, "idle-exit", 1, OPTIONS_MAX_MS, &v->run.idle_exit_ms);
    case SERVE_MIN_SESSION:
        return options_duration(o, "min-session-timeout", 1, OPTIONS_MAX_MS, &n) &&
               set_int32(n, &engine->min_session_ms);
    case SERVE_MAX_SESSION:
        return options_duration(o, "max-session-timeout", 1, OPTIONS_MAX_MS, &n) &&
               set_int32(n, &engine->max_session_ms);
    case SERVE_MAX_CONNECTIONS:
        return take_connections(o, v);
    case SERVE_SNAP_COUNT:
        return options_number(o, "snap-count", 2, INT32_MAX, &n) &&
               set_int32(n, &engine->snap_count);
    default:
        return take_engine_flag(o, engine, id);
    }
}

/* EXIT_OK, or the exit code. */
static int check(struct options *o, struct serve *v)
{
    const struct server_options *engine = &v->run.engine;
    if (!options_args(o, 0, 0))
        return EXIT_USAGE;
    if (v->local && (v->run.data_dir || v->run.nlisten > 0))
        return tell_usage(o, "--local has its own data directory and address");
    if (!v->local && (!v->run.data_dir || !*v->run.data_dir))
        return tell_usage(o, "name the data directory with --data DIR");
    int32_t tick = engine->tick_ms > 0 ? engine->tick_ms : DEFAULT_TICK_MS;
    int32_t least = engine->min_session_ms > 0 ? engine->min_session_ms : 2 * tick;
    if (engine->max_session_ms > 0 && least > engine->max_session_ms)
        return tell_usage(o, "--min-session-timeout, 2 ticks unless given, is above "
                             "--max-session-timeout");
    if (!v->local && v->run.nlisten == 0)
        v->listen[v->run.nlisten++] = "127.0.0.1:2181";
    return EXIT_OK;
}

/* ---- the server ----------------------------------------------------------------------------- */

static void show_ready(const struct options *o, const struct serve *v, struct server_run *r)
{
    struct server_stats st;
    struct json j;
    const char *address;
    clave__server_run_stats(r, &st);
    if (o->json) {
        json_begin(&j, stdout);
        json_open(&j, "listen", '[');
        for (size_t i = 0; (address = clave__server_run_address(r, i)); i++)
            json_text(&j, NULL, address);
        json_close(&j, ']');
        json_text(&j, "data", v->run.data_dir);
        json_hex(&j, "zxid", st.last_zxid);
        json_int(&j, "sessions", (int64_t)st.sessions);
        json_end(&j);
        return;
    }
    fputs("clave: serving on ", stdout);
    for (size_t i = 0; (address = clave__server_run_address(r, i)); i++)
        printf("%s%s", i > 0 ? " " : "", address);
    printf(", data %s, zxid 0x%llx, %zu sessions\n", v->run.data_dir,
           (unsigned long long)st.last_zxid, st.sessions);
    fflush(stdout); /* who started it may be waiting for this line */
}

static int fail(const struct options *o, clave_err err, const char *fault)
{
    tell(o, "%s", *fault ? fault : clave_strerror(err));
    return err == CLAVE_EINVAL ? EXIT_USAGE : exit_code_of(err);
}

static int serve(const struct options *o, const struct serve *v)
{
    struct server_run *r = NULL;
    char fault[1024] = "";
    clave_err err = clave__server_run_new(&r, &v->run, fault, sizeof fault);
    if (err != CLAVE_OK)
        return fail(o, err, fault);
    show_ready(o, v, r);
    err = clave__server_run_loop(r, fault, sizeof fault);
    clave__server_run_free(r);
    return err == CLAVE_OK ? EXIT_OK : fail(o, err, fault);
}

static int serve_local(const struct options *o, const struct serve *v)
{
    char fault[1024] = "";
    clave_err err = clave__local_serve(v->local, &v->run, fault, sizeof fault);
    return err == CLAVE_OK ? EXIT_OK : fail(o, err, fault);
}

static int run_serve(struct options *o, int argc, char **argv)
{
    struct serve v = {.run = {.signals = true}};
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        if (!take_flag(o, &v, id))
            return EXIT_USAGE;
    if (id == OPTIONS_STOP)
        return o->status;
    int code = check(o, &v);
    if (code != EXIT_OK)
        return code;
    v.run.listen = v.listen;
    v.run.engine.log = on_log;
    v.run.engine.log_arg = o;
    return v.local ? serve_local(o, &v) : serve(o, &v);
}

static const struct flag flags[] = {
    {SERVE_DATA, "data", "DIR", "the data directory, created when missing"},
    {'l', "listen", "ADDR", "host:port, *:port or unix:/path; repeatable [127.0.0.1:2181]"},
    {SERVE_TICK, "tick", "DURATION", "the unit of session timeouts [2s]"},
    {SERVE_MIN_SESSION, "min-session-timeout", "DURATION", "shortest session [2 ticks]"},
    {SERVE_MAX_SESSION, "max-session-timeout", "DURATION", "longest session [20 ticks]"},
    {SERVE_MAX_CONNECTIONS, "max-connections", "N", "from one address; 0: any number [60]"},
    {SERVE_SNAP_COUNT, "snap-count", "N",
     "transactions between two snapshots [100000, or the znodes]"},
    {SERVE_ALL_CONNECTIONS, "max-all-connections", "N", "from everywhere; 0: any number [0]"},
    {SERVE_EXTENDED_TYPES, "extended-types", NULL, "nodes with a time to live may be made"},
    {SERVE_ENFORCE_QUOTA, "enforce-quota", NULL, "hard limits refuse what goes beyond them"},
    {SERVE_SUPER_DIGEST, "super-digest", "USER:HASH", "who passes every access check"},
    {SERVE_WORDS, "words", "LIST", "the four-letter words that are answered; *: all"},
    {SERVE_IDLE_EXIT, "idle-exit", "DURATION", "end when nobody was connected for so long"},
    {SERVE_LOCAL, "local", "DIR", "serve this user on this machine, as 'local:' does"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_serve = {
    .name = "serve",
    .args = "--data DIR",
    .summary = "Serve the ZooKeeper protocol, durably, from one data directory",
    .text = "Prints one line when it is ready. SIGTERM and SIGINT end it; sessions and locks stay\n"
            "and go on when it starts again, or when Apache ZooKeeper is started on its data.\n",
    .flags = flags,
    .max_args = -1,
    .offline = true,
    .run = run_serve,
};
