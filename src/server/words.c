/* words.c - the four-letter words: a text, then the end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/conn.h"

/* What monitoring programs look for: the protocol's release, a date they can read. */
#define RELEASE "3.9.2-clave-" CLAVE_VERSION_STRING
#define BUILT "01/01/2026 00:00 UTC"

/* The text grows in the server's scratch buffer; what does not fit is left out. */
__attribute__((format(printf, 2, 3))) static void say(struct server *s, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    clave__buf_append(&s->scratch, line, len);
}

/* ---- figures ------------------------------------------------------------------------------- */

static size_t count_outstanding(const struct server *s)
{
    return (size_t)s->outstanding;
}

/* As Java shows a double with up to four decimals: "0.0", "4.25". */
static const char *average(const struct latency *l, char out[32])
{
    int64_t count = l->count ? (int64_t)l->count : 1;
    int64_t whole = l->sum / count, rest = l->sum % count * 10000 / count;
    int n = snprintf(out, 32, "%" PRId64 ".%04" PRId64, whole, rest);
    while (n > 3 && out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = '\0';
    return out;
}

/* Apache counts its root twice, as "" and as "/". */
static size_t count_nodes(const struct server *s)
{
    return s->tree.nodes.count + 2;
}

static void say_version(struct server *s)
{
    say(s, "Zookeeper version: %s, built on %s\n", RELEASE, BUILT);
}

static void say_server(struct server *s)
{
    char avg[32];
    const struct latency *l = &s->latency;
    say(s, "Latency min/avg/max: %" PRId64 "/%s/%" PRId64 "\n", l->min, average(l, avg), l->max);
    say(s, "Received: %" PRIu64 "\nSent: %" PRIu64 "\nConnections: %zu\nOutstanding: %zu\n",
        s->packets_received, s->packets_sent, s->nconns, count_outstanding(s));
    say(s, "Zxid: 0x%" PRIx64 "\nMode: standalone\nNode count: %zu\n", (uint64_t)s->durable_zxid,
        count_nodes(s));
}

/* ---- connections ------------------------------------------------------------------------------
 */

static const char *op_name(int32_t op)
{
    static const struct {
        int32_t op;
        const char *name;
    } names[] = {
        {OP_CREATE, "CREA"},        {OP_DELETE, "DELE"},        {OP_EXISTS, "EXIS"},
        {OP_GET_DATA, "GETD"},      {OP_SET_DATA, "SETD"},      {OP_GET_ACL, "GETA"},
        {OP_SET_ACL, "SETA"},       {OP_GET_CHILDREN, "GETC"},  {OP_SYNC, "SYNC"},
        {OP_PING, "PING"},          {OP_GET_CHILDREN2, "GETC"}, {OP_MULTI, "MULT"},
        {OP_CREATE2, "CREA"},       {OP_SET_WATCHES, "SETW"},   {OP_AUTH, "AUTH"},
        {OP_CLOSE_SESSION, "CLOS"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].op == op)
            return names[i].name;
    return "NA";
}

static void say_conn(struct server *s, const struct server_conn *c, bool full)
{
    char avg[32];
    say(s, " /%s[%d](queued=%zu,recved=%" PRIu64 ",sent=%" PRIu64, c->peer.text,
        clave__server_conn_wants_read(c) ? 1 : 0, c->undurable, c->received, c->sent);
    if (full && c->session) {
        const struct latency *l = &c->latency;
        int64_t ago = s->now - c->accepted_at;
        say(s, ",sid=0x%" PRIx64 ",lop=%s,est=%" PRId64 ",to=%d", (uint64_t)c->session->id,
            op_name(c->last_op), s->wall - ago, (int)c->session->timeout_ms);
        say(s, ",lcxid=0x%" PRIx64 ",lzxid=0x%" PRIx64 ",lresp=%" PRId64,
            (uint64_t)(int64_t)c->last_xid, (uint64_t)c->last_zxid, c->last_reply_at);
        /* The average of a connection is a whole number. */
        average(l, avg);
        avg[strcspn(avg, ".")] = '\0';
        say(s, ",llat=%" PRId64 ",minlat=%" PRId64 ",avglat=%s,maxlat=%" PRId64, c->last_latency,
            l->min, avg, l->max);
    }
    say(s, ")\n");
}

static void say_conns(struct server *s, bool full)
{
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        if (clave__conn_is_open(c))
            say_conn(s, c, full);
    }
    say(s, "\n");
}

/* ---- the words ---------------------------------------------------------------------------------
 */

static void say_ruok(struct server *s)
{
    say(s, "imok");
}

static void say_isro(struct server *s)
{
    say(s, "rw");
}

static void say_srvr(struct server *s)
{
    say_version(s);
    say_server(s);
}

static void say_stat(struct server *s)
{
    say_version(s);
    say(s, "Clients:\n");
    say_conns(s, false);
    say_server(s);
}

static void say_cons(struct server *s)
{
    say_conns(s, true);
}

/* What the engine knows; addresses and directories are its driver's. */
static void say_conf(struct server *s)
{
    say(s, "tickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=0\n", (int)s->tick_ms,
        (int)s->min_session_ms, (int)s->max_session_ms);
}

static void say_envi(struct server *s)
{
    say(s, "Environment:\nzookeeper.version=%s, built on %s\n", RELEASE, BUILT);
}

static void say_mntr(struct server *s)
{
    char avg[32];
    const struct latency *l = &s->latency;
    say(s, "zk_version\t%s, built on %s\nzk_server_state\tstandalone\n", RELEASE, BUILT);
    say(s, "zk_avg_latency\t%s\nzk_max_latency\t%" PRId64 "\nzk_min_latency\t%" PRId64 "\n",
        average(l, avg), l->max, l->min);
    say(s, "zk_packets_received\t%" PRIu64 "\nzk_packets_sent\t%" PRIu64 "\n", s->packets_received,
        s->packets_sent);
    say(s, "zk_num_alive_connections\t%zu\nzk_outstanding_requests\t%zu\n", s->nconns,
        count_outstanding(s));
    say(s, "zk_znode_count\t%zu\nzk_watch_count\t%zu\nzk_ephemerals_count\t%zu\n", count_nodes(s),
        s->watches.count, s->tree.ephemerals);
    say(s, "zk_approximate_data_size\t%zu\nzk_uptime\t%" PRId64 "\n", s->tree.data_bytes,
        s->now - s->started_at);
    say(s,
        "zk_global_sessions\t%zu\nzk_local_sessions\t0\nzk_digest_mismatches_count\t%" PRIu64 "\n",
        s->sessions.table.count, s->digest_mismatches);
}

/* NULL: known to Apache, and as if not in its whitelist. */
static const struct word {
    const char *name;
    void (*say)(struct server *s);
} words[] = {
    {"ruok", say_ruok}, {"isro", say_isro}, {"srvr", say_srvr}, {"stat", say_stat},
    {"cons", say_cons}, {"conf", say_conf}, {"envi", say_envi}, {"mntr", say_mntr},
    {"crst", NULL},     {"dirs", NULL},     {"dump", NULL},     {"gtmk", NULL},
    {"hash", NULL},     {"srst", NULL},     {"stmk", NULL},     {"wchc", NULL},
    {"wchp", NULL},     {"wchs", NULL},
};

static const struct word *find_word(uint32_t word)
{
    const char name[] = {(char)(word >> 24), (char)(word >> 16), (char)(word >> 8), (char)word};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memcmp(words[i].name, name, sizeof name) == 0)
            return &words[i];
    return NULL;
}

void clave__conn_word(struct server_conn *c, uint32_t word)
{
    struct server *s = c->s;
    const struct word *w = find_word(word);
    clave__buf_clear(&s->scratch);
    if (w && w->say)
        w->say(s);
    else if (w)
        say(s, "%s is not executed because it is not in the whitelist.\n", w->name);
    else
        clave__log(&s->log, CLAVE_LOG_WARN, "%s is closed: its first four bytes are no length",
                   c->peer.text);
    if (clave__buf_len(&s->scratch) > 0)
        clave__conn_send_text(c, (const char *)clave__buf_bytes(&s->scratch),
                              clave__buf_len(&s->scratch));
    clave__conn_close(c);
    clave__buf_trim(&s->scratch, 0);
}
