/* listing.c - makes an answer in pieces; see listing.h. Each part starts with its place cleared and
 * leaves no cursor behind. */
#include "server/monitoring/listing.h"

#include <assert.h>

#include "server/connection/conn.h"

/* Begins the part at l->at. */
static void listing_clear_place(struct listing *l)
{
    list_cursor_close(&l->outer);
    list_cursor_close(&l->inner);
    l->walk = (struct map_walk){0};
    l->begun = l->has_group = false;
}

void clave__listing_begin(struct listing *l, struct server *s, listing_part *const *parts)
{
    *l = (struct listing){.s = s, .json = clave__json_to(NULL)};
    for (size_t i = 0; i < LISTING_PARTS; i++)
        l->parts[i] = parts[i];
    list_cursor_init(&l->outer);
    list_cursor_init(&l->inner);
    clave__buf_init(&l->heap, &s->mem, SIZE_MAX / 2);
}

void clave__listing_enclose(struct listing *l, listing_part *before, listing_part *after)
{
    size_t n = LISTING_PARTS;
    while (n > 0 && !l->parts[n - 1])
        n--;
    for (size_t i = n; i > 0; i--)
        l->parts[i] = l->parts[i - 1];
    l->parts[0] = before;
    assert(n + 2 < sizeof l->parts / sizeof *l->parts); /* a NULL ends them */
    l->parts[n + 1] = after;
}

void clave__listing_end(struct listing *l)
{
    listing_clear_place(l);
    clave__buf_fini(&l->heap);
}

clave_err clave__listing_step(struct listing *l, struct buf *out)
{
    assert(l->at < sizeof l->parts / sizeof *l->parts);
    size_t enough = clave__buf_len(out) + LISTING_BYTES;
    l->text.out = l->json.to = out;
    for (int looks = 0; looks < LISTING_LOOKS && clave__buf_len(out) < enough; looks++) {
        if (clave__listing_is_over(l))
            break;
        if (l->parts[l->at](l)) {
            l->begun = true;
        } else {
            l->at++;
            listing_clear_place(l);
        }
    }
    return l->text.err != CLAVE_OK ? l->text.err : l->json.err;
}

struct server_conn *clave__listing_next_conn(struct listing *l)
{
    struct list *e;
    if (!l->begun)
        list_cursor_open(&l->outer, &l->s->conns.cursors, &l->s->conns.all);
    e = list_cursor_next(&l->outer);
    return e ? LIST_ENTRY(e, struct server_conn, in_conns) : NULL;
}
