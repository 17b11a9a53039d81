/* four_letter.c - the four-letter words (ruok, mntr, ...): each is answered with a text, then the
 * connection closes. conn.c calls clave__conn_word for a first frame whose length is a word. A new
 * one is a function and a line in `words`. Answers never wait for the disk. */
#include "server/figures/mntr_and_metrics.h"

#include <inttypes.h>
#include <string.h>

static void word_put_version(struct text *t)
{
    clave__text_put(t, "Zookeeper version: %s\n", clave__server_version);
}

static void word_put_server(struct server *s, struct text *t)
{
    char avg[DECIMAL_CAP];
    const struct latency *l = &s->latency;
    clave__text_put(t, "Latency min/avg/max: %" PRId64 "/%s/%" PRId64 "\n", l->min,
                    clave__latency_average(l, avg), l->max);
    clave__text_put(
        t, "Received: %" PRIu64 "\nSent: %" PRIu64 "\nConnections: %zu\nOutstanding: %zu\n",
        s->packets_received, s->packets_sent, s->nconns, (size_t)s->outstanding);
    clave__text_put(t, "Zxid: 0x%" PRIx64 "\nMode: standalone\nNode count: %zu\n",
                    (uint64_t)s->durable_zxid, clave__count_nodes(s));
}

/* ---- the words ------------------------------------------------------------------------------- */

static void word_ruok(struct server *s, struct text *t)
{
    (void)s;
    clave__text_put(t, "imok");
}

static void word_isro(struct server *s, struct text *t)
{
    (void)s;
    clave__text_put(t, "rw");
}

static void word_srvr(struct server *s, struct text *t)
{
    word_put_version(t);
    word_put_server(s, t);
}

static void word_stat(struct server *s, struct text *t)
{
    word_put_version(t);
    clave__text_put(t, "Clients:\n");
    clave__connections_text(s, t, false);
    word_put_server(s, t);
}

static void word_cons(struct server *s, struct text *t)
{
    clave__connections_text(s, t, true);
}

static void word_conf(struct server *s, struct text *t)
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

static void word_dirs(struct server *s, struct text *t)
{
    struct data_sizes sizes = clave__data_sizes(s);
    clave__text_put(t, "datadir_size: %" PRId64 "\nlogdir_size: %" PRId64 "\n", sizes.snapshots,
                    sizes.logs);
}

static void word_envi(struct server *s, struct text *t)
{
    clave__text_put(t, "Environment:\nzookeeper.version=%s\n", clave__server_version);
    for (size_t i = 0; i < ENVIRONMENT_LINES; i++) {
        const struct environment_line *l = &s->driver.environment[i];
        if (l->name)
            clave__text_put(t, "%s=%s\n", l->name, l->value);
    }
}

static void word_put_figure(void *arg, const struct figure *f, const char *value)
{
    clave__text_put(arg, "zk_%s\t%s\n", f->name, value);
}

static void word_mntr(struct server *s, struct text *t)
{
    clave__figures_each(s, IN_MNTR, word_put_figure, t);
}

static void word_wchs(struct server *s, struct text *t)
{
    struct watch_counts n = clave__watch_counts(s);
    clave__text_put(t, "%zu connections watching %zu paths\nTotal watches:%zu\n", n.conns, n.paths,
                    n.watches);
}

static void word_srst(struct server *s, struct text *t)
{
    clave__stats_reset(s);
    clave__text_put(t, "Server stats reset.\n");
}

static void word_crst(struct server *s, struct text *t)
{
    clave__conn_stats_reset(s);
    clave__text_put(t, "Connection stats reset.\n");
}

/* NULL: a word of Apache that is never in the whitelist here: there is no trace mask, and no log of
 * digests. */
static const struct word {
    const char *name;
    void (*answer)(struct server *s, struct text *t);
} words[] = {
    {"conf", word_conf},
    {"cons", word_cons},
    {"crst", word_crst},
    {"dirs", word_dirs},
    {"dump", clave__sessions_text},
    {"envi", word_envi},
    {"gtmk", NULL},
    {"hash", NULL},
    {"isro", word_isro},
    {"mntr", word_mntr},
    {"ruok", word_ruok},
    {"srst", word_srst},
    {"srvr", word_srvr},
    {"stat", word_stat},
    {"stmk", NULL},
    {"wchc", clave__watches_text},
    {"wchp", clave__watches_by_path_text},
    {"wchs", word_wchs},
};

static const struct word *word_find(uint32_t word)
{
    const char name[] = {(char)(word >> 24), (char)(word >> 16), (char)(word >> 8), (char)word};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memcmp(words[i].name, name, sizeof name) == 0)
            return &words[i];
    return NULL;
}

/* Whether the word is in the whitelist, or the whitelist is "*". */
static bool word_is_listed(const struct server *s, const char *name)
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
    const struct word *w = word_find(word);
    struct text t = {.out = &s->scratch};
    clave__buf_clear(&s->scratch);
    if (w && w->answer && word_is_listed(s, w->name))
        w->answer(s, &t);
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
