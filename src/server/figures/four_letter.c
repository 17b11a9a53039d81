/* four_letter.c - the four-letter words (ruok, mntr, ...): each is answered with a text, then the
 * connection closes. conn.c calls clave__conn_word for a first frame whose length is a word. A new
 * one is a say_ function and a line in `words`. Answers never wait for the disk. */
#include "server/figures/four_letter.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void clave__say(struct server *s, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    clave__buf_append(&s->scratch, line, len);
}

void clave__say_path(struct server *s, struct jbytes path)
{
    if (path.n > 0)
        clave__buf_append(&s->scratch, path.p, (size_t)path.n);
}

/* ---- figures --------------------------------------------------------------------------------- */

static size_t count_outstanding(const struct server *s)
{
    return (size_t)s->outstanding;
}

const char *clave__latency_average(const struct latency *l, char out[32])
{
    int64_t count = l->count ? (int64_t)l->count : 1;
    int64_t whole = l->sum / count, rest = l->sum % count * 10000 / count;
    int n = snprintf(out, 32, "%" PRId64 ".%04" PRId64, whole, rest);
    while (n > 3 && out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = '\0';
    return out;
}

size_t clave__count_nodes(const struct server *s)
{
    return s->tree.nodes.count + 2;
}

static void say_version(struct server *s)
{
    clave__say(s, "Zookeeper version: %s\n", clave__server_version);
}

static void say_server(struct server *s)
{
    char avg[32];
    const struct latency *l = &s->latency;
    clave__say(s, "Latency min/avg/max: %" PRId64 "/%s/%" PRId64 "\n", l->min,
               clave__latency_average(l, avg), l->max);
    clave__say(s, "Received: %" PRIu64 "\nSent: %" PRIu64 "\nConnections: %zu\nOutstanding: %zu\n",
               s->packets_received, s->packets_sent, s->nconns, count_outstanding(s));
    clave__say(s, "Zxid: 0x%" PRIx64 "\nMode: standalone\nNode count: %zu\n",
               (uint64_t)s->durable_zxid, clave__count_nodes(s));
}

/* ---- connections ----------------------------------------------------------------------------- */

const char *clave__op_word(int32_t op)
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
    clave__say(s, " /%s[%d](queued=%zu,recved=%" PRIu64 ",sent=%" PRIu64, c->peer.text,
               clave__server_conn_wants_read(c) ? 1 : 0, c->undurable, c->received, c->sent);
    if (full && c->session) {
        const struct latency *l = &c->latency;
        int64_t ago = s->now - c->accepted_at;
        clave__say(s, ",sid=0x%" PRIx64 ",lop=%s,est=%" PRId64 ",to=%d", (uint64_t)c->session->id,
                   clave__op_word(c->last_op), s->wall - ago, (int)c->session->timeout_ms);
        clave__say(s, ",lcxid=0x%" PRIx64 ",lzxid=0x%" PRIx64 ",lresp=%" PRId64,
                   (uint64_t)(int64_t)c->last_xid, (uint64_t)c->last_zxid, c->last_reply_at);
        /* The average of a connection is a whole number. */
        clave__latency_average(l, avg);
        avg[strcspn(avg, ".")] = '\0';
        clave__say(s, ",llat=%" PRId64 ",minlat=%" PRId64 ",avglat=%s,maxlat=%" PRId64,
                   c->last_latency, l->min, avg, l->max);
    }
    clave__say(s, ")\n");
}

static void say_conns(struct server *s, bool full)
{
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        if (clave__conn_is_open(c))
            say_conn(s, c, full);
    }
    clave__say(s, "\n");
}

/* ---- the words ------------------------------------------------------------------------------- */

static void say_ruok(struct server *s)
{
    clave__say(s, "imok");
}

static void say_isro(struct server *s)
{
    clave__say(s, "rw");
}

static void say_srvr(struct server *s)
{
    say_version(s);
    say_server(s);
}

static void say_stat(struct server *s)
{
    say_version(s);
    clave__say(s, "Clients:\n");
    say_conns(s, false);
    say_server(s);
}

static void say_cons(struct server *s)
{
    say_conns(s, true);
}

static void say_conf(struct server *s)
{
    const struct server_place *at = &s->place;
    const char *dir = at->data_dir ? at->data_dir : "";
    uint64_t snapshots = 0, logs = 0;
    if (at->sizes)
        at->sizes(at->arg, &snapshots, &logs);
    int secure = at->secure_client_port > 0 ? (int)at->secure_client_port : -1;
    clave__say(s, "clientPort=%d\nsecureClientPort=%d\ndataDir=", (int)at->client_port, secure);
    clave__say_path(s, clave__jbytes(dir));
    clave__say(s, "\ndataDirSize=%" PRIu64 "\ndataLogDir=", snapshots);
    clave__say_path(s, clave__jbytes(dir));
    clave__say(s, "\ndataLogSize=%" PRIu64 "\ntickTime=%d\nmaxClientCnxns=%d\n", logs,
               (int)s->tick_ms, (int)at->max_per_address);
    clave__say(s, "minSessionTimeout=%d\nmaxSessionTimeout=%d\n", (int)s->min_session_ms,
               (int)s->max_session_ms);
    clave__say(s, "clientPortListenBacklog=-1\nserverId=0\n");
}

static void four_letter_say_dirs(struct server *s)
{
    uint64_t snapshots = 0, logs = 0;
    if (s->place.sizes)
        s->place.sizes(s->place.arg, &snapshots, &logs);
    clave__say(s, "datadir_size: %" PRIu64 "\nlogdir_size: %" PRIu64 "\n", snapshots, logs);
}

static void say_envi(struct server *s)
{
    clave__say(s, "Environment:\nzookeeper.version=%s\n", clave__server_version);
}

static void say_mntr(struct server *s)
{
    char avg[32];
    const struct latency *l = &s->latency;
    clave__say(s, "zk_version\t%s\nzk_server_state\tstandalone\n", clave__server_version);
    clave__say(s, "zk_avg_latency\t%s\nzk_max_latency\t%" PRId64 "\nzk_min_latency\t%" PRId64 "\n",
               clave__latency_average(l, avg), l->max, l->min);
    clave__say(s, "zk_packets_received\t%" PRIu64 "\nzk_packets_sent\t%" PRIu64 "\n",
               s->packets_received, s->packets_sent);
    clave__say(s, "zk_num_alive_connections\t%zu\nzk_outstanding_requests\t%zu\n", s->nconns,
               count_outstanding(s));
    clave__say(s, "zk_znode_count\t%zu\nzk_watch_count\t%zu\nzk_ephemerals_count\t%zu\n",
               clave__count_nodes(s), s->watches.count, s->tree.ephemerals);
    clave__say(s, "zk_approximate_data_size\t%zu\nzk_uptime\t%" PRId64 "\n", s->tree.data_bytes,
               s->now - s->started_at);
    clave__say(s,
               "zk_global_sessions\t%zu\nzk_local_sessions\t0\nzk_digest_mismatches_count\t%" PRIu64
               "\n",
               s->sessions.table.count, s->digest_mismatches);
}

void clave__stats_reset(struct server *s)
{
    s->latency = (struct latency){0};
    s->packets_received = s->packets_sent = 0;
}

void clave__conn_stats_reset(struct server *s)
{
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        c->latency = (struct latency){0};
        c->received = c->sent = 0;
    }
}

static void say_srst(struct server *s)
{
    clave__stats_reset(s);
    clave__say(s, "Server stats reset.\n");
}

static void say_crst(struct server *s)
{
    clave__conn_stats_reset(s);
    clave__say(s, "Connection stats reset.\n");
}

/* NULL: a word of Apache that is never in the whitelist here: there is no trace mask, and no log of
 * digests. */
static const struct word {
    const char *name;
    void (*say)(struct server *s);
} words[] = {
    {"conf", say_conf},
    {"cons", say_cons},
    {"crst", say_crst},
    {"dirs", four_letter_say_dirs},
    {"dump", clave__say_dump},
    {"envi", say_envi},
    {"gtmk", NULL},
    {"hash", NULL},
    {"isro", say_isro},
    {"mntr", say_mntr},
    {"ruok", say_ruok},
    {"srst", say_srst},
    {"srvr", say_srvr},
    {"stat", say_stat},
    {"stmk", NULL},
    {"wchc", clave__say_wchc},
    {"wchp", clave__say_wchp},
    {"wchs", clave__say_wchs},
};

static const struct word *four_letter_find_word(uint32_t word)
{
    const char name[] = {(char)(word >> 24), (char)(word >> 16), (char)(word >> 8), (char)word};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memcmp(words[i].name, name, sizeof name) == 0)
            return &words[i];
    return NULL;
}

/* Whether the word is in the whitelist, or the whitelist is "*". */
static bool is_listed(const struct server *s, const char *name)
{
    const char *at = s->words;
    if (strcmp(at, "*") == 0)
        return true;
    while (*at) {
        size_t n = strcspn(at, ",");
        const char *next = at + n + (at[n] == ',' ? 1 : 0);
        while (n > 0 && *at == ' ')
            at++, n--;
        while (n > 0 && at[n - 1] == ' ')
            n--;
        if (n == strlen(name) && memcmp(at, name, n) == 0)
            return true;
        at = next;
    }
    return false;
}

/* The beginning of a TLS record with the first message of a handshake. */
static bool is_tls_hello(uint32_t word)
{
    return word >> 16 == 0x1603;
}

void clave__conn_word(struct server_conn *c, uint32_t word)
{
    struct server *s = c->s;
    const struct word *w = four_letter_find_word(word);
    clave__buf_clear(&s->scratch);
    if (w && w->say && is_listed(s, w->name))
        w->say(s);
    else if (w)
        clave__say(s, "%s is not executed because it is not in the whitelist.\n", w->name);
    else
        clave__log(&s->log, CLAVE_LOG_WARN, "%s is closed: %s", c->peer.text,
                   is_tls_hello(word) ? "it speaks TLS, but this address does not"
                                      : "its first four bytes are not a length");
    if (clave__buf_len(&s->scratch) > 0)
        clave__conn_send_text(c, (const char *)clave__buf_bytes(&s->scratch),
                              clave__buf_len(&s->scratch));
    clave__conn_close(c);
    clave__buf_trim(&s->scratch, 0);
}
