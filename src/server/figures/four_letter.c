/* four_letter.c - the four-letter words (ruok, mntr, ...): each is answered with a text, then the
 * connection closes. conn.c calls clave__conn_word for a first frame whose length is a word. A new
 * one is a say_ function and a line in `words`. Answers never wait for the disk. */
#include "server/figures/figures.h"

#include <inttypes.h>
#include <string.h>

#include "server/figures/text.h"

static void say_version(struct text *t)
{
    clave__text_put(t, "Zookeeper version: %s\n", clave__server_version);
}

static void say_server(struct text *t, struct server *s)
{
    char avg[32];
    const struct latency *l = &s->latency;
    clave__text_put(t, "Latency min/avg/max: %" PRId64 "/%s/%" PRId64 "\n", l->min,
                    clave__latency_average(l, avg), l->max);
    clave__text_put(
        t, "Received: %" PRIu64 "\nSent: %" PRIu64 "\nConnections: %zu\nOutstanding: %zu\n",
        s->packets_received, s->packets_sent, s->nconns, (size_t)s->outstanding);
    clave__text_put(t, "Zxid: 0x%" PRIx64 "\nMode: standalone\nNode count: %zu\n",
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

static void say_conn(struct text *t, struct server *s, const struct server_conn *c, bool full)
{
    char avg[32];
    clave__text_put(t, " /%s[%d](queued=%zu,recved=%" PRIu64 ",sent=%" PRIu64, c->peer.text,
                    clave__server_conn_wants_read(c) ? 1 : 0, c->undurable, c->received, c->sent);
    if (full && c->session) {
        const struct latency *l = &c->latency;
        int64_t ago = s->now - c->accepted_at;
        clave__text_put(t, ",sid=0x%" PRIx64 ",lop=%s,est=%" PRId64 ",to=%d",
                        (uint64_t)c->session->id, clave__op_word(c->last_op), s->wall - ago,
                        (int)c->session->timeout_ms);
        clave__text_put(t, ",lcxid=0x%" PRIx64 ",lzxid=0x%" PRIx64 ",lresp=%" PRId64,
                        (uint64_t)(int64_t)c->last_xid, (uint64_t)c->last_zxid, c->last_reply_at);
        /* The average of a connection is a whole number. */
        clave__latency_average(l, avg);
        avg[strcspn(avg, ".")] = '\0';
        clave__text_put(t, ",llat=%" PRId64 ",minlat=%" PRId64 ",avglat=%s,maxlat=%" PRId64,
                        c->last_latency, l->min, avg, l->max);
    }
    clave__text_put(t, ")\n");
}

static void say_conns(struct text *t, struct server *s, bool full)
{
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        if (clave__conn_is_open(c))
            say_conn(t, s, c, full);
    }
    clave__text_put(t, "\n");
}

/* ---- the words ------------------------------------------------------------------------------- */

static void say_ruok(struct text *t, struct server *s)
{
    (void)s;
    clave__text_put(t, "imok");
}

static void say_isro(struct text *t, struct server *s)
{
    (void)s;
    clave__text_put(t, "rw");
}

static void say_srvr(struct text *t, struct server *s)
{
    say_version(t);
    say_server(t, s);
}

static void say_stat(struct text *t, struct server *s)
{
    say_version(t);
    clave__text_put(t, "Clients:\n");
    say_conns(t, s, false);
    say_server(t, s);
}

static void say_cons(struct text *t, struct server *s)
{
    say_conns(t, s, true);
}

static void say_conf(struct text *t, struct server *s)
{
    const struct driver_info *at = &s->driver;
    const char *dir = at->data_dir ? at->data_dir : "";
    struct data_sizes sizes = clave__data_sizes(s);
    int secure = at->secure_client_port > 0 ? (int)at->secure_client_port : -1;
    clave__text_put(t, "clientPort=%d\nsecureClientPort=%d\ndataDir=", (int)at->client_port,
                    secure);
    clave__text_path(t, clave__jbytes(dir));
    clave__text_put(t, "\ndataDirSize=%" PRId64 "\ndataLogDir=", sizes.snapshots);
    clave__text_path(t, clave__jbytes(dir));
    clave__text_put(t, "\ndataLogSize=%" PRId64 "\ntickTime=%d\nmaxClientCnxns=%d\n", sizes.logs,
                    (int)s->tick_ms, (int)at->max_per_address);
    clave__text_put(t, "minSessionTimeout=%d\nmaxSessionTimeout=%d\n", (int)s->min_session_ms,
                    (int)s->max_session_ms);
    clave__text_put(t, "clientPortListenBacklog=-1\nserverId=0\n");
}

static void four_letter_say_dirs(struct text *t, struct server *s)
{
    struct data_sizes sizes = clave__data_sizes(s);
    clave__text_put(t, "datadir_size: %" PRId64 "\nlogdir_size: %" PRId64 "\n", sizes.snapshots,
                    sizes.logs);
}

static void say_envi(struct text *t, struct server *s)
{
    (void)s;
    clave__text_put(t, "Environment:\nzookeeper.version=%s\n", clave__server_version);
}

static void word_put_figure(void *arg, const struct figure *f, const char *value)
{
    clave__text_put(arg, "zk_%s\t%s\n", f->name, value);
}

static void say_mntr(struct text *t, struct server *s)
{
    clave__figures_each(s, IN_MNTR, word_put_figure, t);
}

static void say_srst(struct text *t, struct server *s)
{
    clave__stats_reset(s);
    clave__text_put(t, "Server stats reset.\n");
}

static void say_crst(struct text *t, struct server *s)
{
    clave__conn_stats_reset(s);
    clave__text_put(t, "Connection stats reset.\n");
}

/* NULL: a word of Apache that is never in the whitelist here: there is no trace mask, and no log of
 * digests. */
static const struct word {
    const char *name;
    void (*say)(struct text *t, struct server *s);
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
    struct text t = {.out = &s->scratch};
    clave__buf_clear(&s->scratch);
    if (w && w->say && is_listed(s, w->name))
        w->say(&t, s);
    else if (w)
        clave__text_put(&t, "%s is not executed because it is not in the whitelist.\n", w->name);
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
