/* four_letter.c - the four-letter words (ruok, mntr, ...), each answered with a text, after which
 * the connection closes. conn.c calls clave__conn_word when the first frame's length is in fact a
 * word. A new word is a function and a line in the table `words`.
 *
 * Answers never wait for the disk. Long ones are made in pieces: a client gets its next piece when
 * it has taken the last one, and each turn makes one piece for all clients together. */
#include "server/monitoring/listing.h"
#include "server/monitoring/server_metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"

static void four_letter_put_version(struct text *t)
{
    clave__text_put(t, "Zookeeper version: %s\n", clave__server_version);
}

static void four_letter_put_server(struct server *s, struct text *t)
{
    char avg[DECIMAL_CAP];
    const struct latency *l = &s->counts.latency;
    clave__text_put(t, "Latency min/avg/max: %" PRId64 "/%s/%" PRId64 "\n", l->min,
                    clave__latency_average(l, avg), l->max);
    clave__text_put(
        t, "Received: %" PRIu64 "\nSent: %" PRIu64 "\nConnections: %zu\nOutstanding: %zu\n",
        s->counts.packets_received, s->counts.packets_sent, s->conns.n,
        (size_t)s->counts.outstanding);
    clave__text_put(t, "Zxid: 0x%" PRIx64 "\nMode: standalone\nNode count: %zu\n",
                    (uint64_t)s->txn_log.durable_zxid, clave__count_nodes(s));
}

/* ---- the words ------------------------------------------------------------------------------- */

static void four_letter_ruok(struct server *s, struct text *t)
{
    (void)s;
    clave__text_put(t, "imok");
}

static void four_letter_isro(struct server *s, struct text *t)
{
    (void)s;
    clave__text_put(t, "rw");
}

static void four_letter_srvr(struct server *s, struct text *t)
{
    four_letter_put_version(t);
    four_letter_put_server(s, t);
}

static bool four_letter_stat(struct listing *l)
{
    four_letter_put_version(&l->text);
    clave__text_put(&l->text, "Clients:\n");
    l->brief = true;
    return false;
}

static bool four_letter_stat_end(struct listing *l)
{
    four_letter_put_server(l->s, &l->text);
    return false;
}

static void four_letter_conf(struct server *s, struct text *t)
{
    const struct driver_info *at = &s->driver.info;
    const char *dir = at->data_dir ? at->data_dir : "";
    struct data_sizes sizes = clave__data_sizes(s);
    int secure = at->secure_client_port > 0 ? (int)at->secure_client_port : -1;
    clave__text_put(t, "clientPort=%d\nsecureClientPort=%d\ndataDir=", (int)at->client_port,
                    secure);
    clave__text_path(t, clave__jbytes(dir));
    clave__text_put(t, "\ndataDirSize=%" PRId64 "\ndataLogDir=", sizes.snapshots);
    clave__text_path(t, clave__jbytes(dir));
    clave__text_put(t, "\ndataLogSize=%" PRId64 "\ntickTime=%d\nmaxClientCnxns=%d\n", sizes.logs,
                    (int)s->limits.tick_ms, (int)at->max_per_address);
    clave__text_put(t, "minSessionTimeout=%d\nmaxSessionTimeout=%d\n",
                    (int)s->limits.min_session_ms, (int)s->limits.max_session_ms);
    clave__text_put(t, "clientPortListenBacklog=-1\nserverId=0\n");
}

static void four_letter_dirs(struct server *s, struct text *t)
{
    struct data_sizes sizes = clave__data_sizes(s);
    clave__text_put(t, "datadir_size: %" PRId64 "\nlogdir_size: %" PRId64 "\n", sizes.snapshots,
                    sizes.logs);
}

static void four_letter_envi(struct server *s, struct text *t)
{
    clave__text_put(t, "Environment:\nzookeeper.version=%s\n", clave__server_version);
    for (size_t i = 0; i < ENVIRONMENT_LINES; i++) {
        const struct environment_line *l = &s->driver.info.environment[i];
        if (l->name)
            clave__text_put(t, "%s=%s\n", l->name, l->value);
    }
}

static void four_letter_put_figure(void *arg, const struct figure *f, const char *value)
{
    clave__text_put(arg, "zk_%s\t%s\n", f->metric.name, value);
}

static void four_letter_mntr(struct server *s, struct text *t)
{
    clave__figures_each(s, IN_MNTR, four_letter_put_figure, t);
}

static bool four_letter_wchs(struct listing *l)
{
    const struct watch_counts *n = &l->counts;
    clave__text_put(&l->text, "%zu connections watching %zu paths\nTotal watches:%zu\n", n->conns,
                    n->paths, n->watches);
    return false;
}

static void four_letter_srst(struct server *s, struct text *t)
{
    clave__stats_reset(s);
    clave__text_put(t, "Server stats reset.\n");
}

static bool four_letter_crst(struct listing *l)
{
    clave__text_put(&l->text, "Connection stats reset.\n");
    return false;
}

/* All words of Apache 3.9. */
static const struct word {
    const char *name;
    void (*answer)(struct server *s, struct text *t); /* answers with one text, or */
    listing_part *parts[LISTING_PARTS];               /* with a list, or */
    const char *lacks; /* completes "this server has ...", the only answer to this word */
} words[] = {
    {"conf", .answer = four_letter_conf},
    {"cons", .parts = {clave__connections_text}},
    {"crst", .parts = {clave__connections_reset, four_letter_crst}},
    {"dirs", .answer = four_letter_dirs},
    {"dump", .parts = {clave__sessions_text, clave__owners_text, clave__session_connections_text}},
    {"envi", .answer = four_letter_envi},
    {"gtmk", .lacks = "no trace mask"},
    {"hash", .lacks = "no log of digests"},
    {"isro", .answer = four_letter_isro},
    {"mntr", .answer = four_letter_mntr},
    {"ruok", .answer = four_letter_ruok},
    {"srst", .answer = four_letter_srst},
    {"srvr", .answer = four_letter_srvr},
    {"stat", .parts = {four_letter_stat, clave__connections_text, four_letter_stat_end}},
    {"stmk", .lacks = "no trace mask"},
    {"wchc", .parts = {clave__watches_text}},
    {"wchp", .parts = {clave__watches_by_path_text}},
    {"wchs",
     .parts = {clave__watches_count_by_connection, clave__watches_count_by_path, four_letter_wchs}},
};

static const struct word *four_letter_find(uint32_t word)
{
    const char name[] = {(char)(word >> 24), (char)(word >> 16), (char)(word >> 8), (char)word};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memcmp(words[i].name, name, sizeof name) == 0)
            return &words[i];
    return NULL;
}

/* True if the whitelist contains the word or is "*". */
static bool four_letter_is_listed(const struct server *s, const char *name)
{
    const char *at = s->access.words;
    if (strcmp(at, "*") == 0)
        return true;
    for (size_t n; *(at += strspn(at, SERVER_WORDS_BETWEEN)); at += n) {
        n = strcspn(at, SERVER_WORDS_BETWEEN);
        if (n == strlen(name) && memcmp(at, name, n) == 0)
            return true;
    }
    return false;
}

/* True if the word is the beginning of a TLS record with a ClientHello. */
static bool four_letter_is_tls_hello(uint32_t word)
{
    return word >> 16 == 0x1603;
}

/* ---- short answers --------------------------------------------------------------------------- */

static void four_letter_say(struct server_conn *c, void (*answer)(struct server *s, struct text *t))
{
    struct text t = {.out = &c->out};
    answer(c->s, &t);
    clave__conn_count_text(c, clave__buf_len(t.out), t.err);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The number of lists is bounded, since whenever a connection, node or watch is removed, the cursor
 * of each has to be checked. */
enum { MOST_LISTS = 64 };

struct word_list {
    struct list in_listings; /* while it waits for its next piece to be made */
    struct list in_lists;
    struct server_conn *c;
    struct listing listing;
};

/* Writes the next piece; the client has taken everything before it. */
static void four_letter_put_piece(struct word_list *w)
{
    struct server_conn *c = w->c;
    list_remove(&w->in_lists);
    list_push_back(&c->s->listings.all, &w->in_lists);
    clave_err err = clave__listing_step(&w->listing, &c->out);
    clave__conn_count_text(c, clave__buf_len(&c->out), err);
    if (!clave__listing_is_over(&w->listing)) {
        clave__word_go_on(c);
        return;
    }
    clave__conn_end_list(c);
    clave__word_end(c);
}

/* Makes room for another list by dropping the one whose client has gone longest without taking a
 * piece. With this many lists, that is never a client that reads. */
static void four_letter_make_room(struct server *s)
{
    if (s->listings.n < MOST_LISTS)
        return;
    struct server_conn *c = LIST_ENTRY(s->listings.all.next, struct word_list, in_lists)->c;
    clave__conn_log(c, CLAVE_LOG_WARN,
                    "%s is closed: it does not read its list, and %zu lists are being sent",
                    c->peer.text, s->listings.n);
    clave__conn_cut(c);
    clave__word_end(c);
}

static void four_letter_list_begin(struct server_conn *c, listing_part *const *parts)
{
    assert(!c->list);
    four_letter_make_room(c->s);
    struct word_list *w = clave__mem_alloc(&c->s->mem, sizeof *w);
    if (!w) {
        clave__conn_cut(c);
        return;
    }
    w->c = c;
    list_init(&w->in_listings);
    list_init(&w->in_lists);
    c->s->listings.n++;
    clave__listing_begin(&w->listing, c->s, parts);
    c->list = w;
    c->list_goes_on = true;
    four_letter_put_piece(w);
}

/* The list gets its next turn once the client has taken everything. */
void clave__word_go_on(struct server_conn *c)
{
    if (c->list_goes_on && clave__buf_len(&c->out) == 0 && list_empty(&c->list->in_listings))
        list_push_back(&c->s->listings.ready, &c->list->in_listings);
}

void clave__word_step(struct server *s)
{
    struct list *e = list_pop_front(&s->listings.ready);
    struct word_list *w = e ? LIST_ENTRY(e, struct word_list, in_listings) : NULL;
    if (w && w->c->list_goes_on)
        four_letter_put_piece(w);
}

void clave__word_end(struct server_conn *c)
{
    struct word_list *w = c->list;
    c->list = NULL;
    if (!w)
        return;
    list_remove(&w->in_listings);
    list_remove(&w->in_lists);
    assert(c->s->listings.n > 0);
    c->s->listings.n--;
    clave__listing_end(&w->listing);
    clave__mem_free(&c->s->mem, w);
}

/* ---- the word -------------------------------------------------------------------------------- */

static void four_letter_refuse(struct server_conn *c, uint32_t word, const struct word *w)
{
    struct text t = {.out = &c->out};
    if (w) {
        clave__text_put(&t, "%s is not executed because ", w->name);
        if (w->lacks)
            clave__text_put(&t, "this server has %s.\n", w->lacks);
        else
            clave__text_put(&t, "it is not in the whitelist.\n");
        clave__conn_count_text(c, clave__buf_len(t.out), t.err);
        return;
    }
    clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: %s", c->peer.text,
                    four_letter_is_tls_hello(word) ? "it speaks TLS, but this address does not"
                                                   : "its first four bytes are not a length");
}

void clave__conn_word(struct server_conn *c, uint32_t word)
{
    const struct word *w = four_letter_find(word);
    bool listed = w && four_letter_is_listed(c->s, w->name);
    if (listed && w->answer)
        four_letter_say(c, w->answer);
    else if (listed && w->parts[0])
        four_letter_list_begin(c, w->parts);
    else
        four_letter_refuse(c, word, w);
    clave__conn_close(c);
}
