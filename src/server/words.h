/* words.h - what the four-letter words share. */
#ifndef CLAVE_SERVER_WORDS_H
#define CLAVE_SERVER_WORDS_H

#include "server/conn.h"

/* The text grows in the server's scratch buffer; what does not fit is left out. */
__attribute__((format(printf, 2, 3))) void clave__say(struct server *s, const char *fmt, ...);
/* Of any length. */
void clave__say_path(struct server *s, struct jbytes path);

/* words_list.c: sessions and watches, which may be many. */
void clave__say_dump(struct server *s);
void clave__say_wchc(struct server *s);
void clave__say_wchp(struct server *s);
void clave__say_wchs(struct server *s);

#endif
