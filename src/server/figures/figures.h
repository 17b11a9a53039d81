/* figures.h - the parts of the four-letter words that the admin commands use too. The folder
 * renders the same figures three ways: four_letter.c and list_watches.c as text, admin.c and
 * list_sessions.c as JSON, metrics.c for Prometheus. */
#ifndef CLAVE_SERVER_FIGURES_FIGURES_H
#define CLAVE_SERVER_FIGURES_FIGURES_H

#include "server/figures/text.h"
#include "server/request/conn.h"

/* version.c: "3.9.2-clave-0.1.0, built on 11/22/2026 21:30 UTC". The date has Apache's format up
 * to 3.4, the only one that go-zookeeper reads. */
extern const char clave__server_version[];

/* As Java prints a double with up to four decimals: "0.0", "4.25". */
const char *clave__latency_average(const struct latency *l, char out[32]);
/* "GETD"; "NA" for those without a name. */
const char *clave__op_word(int32_t op);
/* Apache counts its root twice, as "" and as "/". */
size_t clave__count_nodes(const struct server *s);
/* Bytes of the snapshots and of the logs; false: not known, and 0. */
bool clave__data_sizes(const struct server *s, uint64_t *snapshots, uint64_t *logs);
/* Reset the counters of the server, and those of its connections. */
void clave__stats_reset(struct server *s);
void clave__conn_stats_reset(struct server *s);

/* Apache lists one of its two tables of watches: all but those on children. */
enum { WORDS_WATCHES = WATCH_DATA | WATCH_PERSISTENT | WATCH_RECURSIVE };
struct watch_figures {
    size_t conns; /* that watch something */
    size_t paths;
    size_t watches;
};
struct watch_figures clave__watch_figures(struct server *s);

/* list_watches.c: sessions and watches, which may be many. */
void clave__say_dump(struct text *t, struct server *s);
void clave__say_wchc(struct text *t, struct server *s);
void clave__say_wchp(struct text *t, struct server *s);
void clave__say_wchs(struct text *t, struct server *s);

#endif
