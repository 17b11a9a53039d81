/* fair_reading.c - shares between connections what a turn of the loop may read; see
 * fair_reading.h. */
#include "runtime/server/fair_reading.h"

#include <assert.h>

/* What one turn reads, which is about two milliseconds' work. A request, and each read, count as
 * this many bytes. */
enum { READ_A_TURN = 512 * 1024, REQUEST_COST = 512, READ_COST = 2048, LEAST_READ = 4096 };
/* How many declined connections a turn resumes. The others are not even polled: if more than 1024
 * descriptors have input, libuv polls all of them again and again in one turn. */
enum { RESUMED_AT_ONCE = 128 };

void clave__fair_reading_init(struct fair_reading *f)
{
    *f = (struct fair_reading){.turn = 1};
    list_init(&f->declined);
    list_init(&f->had_some);
}

void clave__fair_reader_init(struct fair_reader *c)
{
    *c = (struct fair_reader){.read_in = 0};
    list_init(&c->in_declined);
}

static void fair_reading_set_overdue(struct fair_reading *f, struct fair_reader *c, bool is_overdue)
{
    assert(!c->is_overdue || f->overdue > 0);
    f->overdue += (size_t)is_overdue - (size_t)c->is_overdue;
    c->is_overdue = is_overdue;
}

/* What is left of this turn. Requests that were read earlier but taken in this turn count as
 * well. */
static size_t fair_reading_left(const struct fair_reading *f, uint64_t taken)
{
    uint64_t cost = f->read + (taken - f->taken_before) * REQUEST_COST;
    return cost < READ_A_TURN ? (size_t)(READ_A_TURN - cost) : 0;
}

/* Connections that an earlier turn declined come first. */
size_t clave__fair_reading_share(struct fair_reading *f, struct fair_reader *c, uint64_t taken)
{
    assert(!clave__fair_reader_is_declined(c));
    size_t left = fair_reading_left(f, taken);
    if (c->is_overdue && left < LEAST_READ) /* however expensive the answers to others were */
        left = LEAST_READ;
    bool must_wait = left < LEAST_READ || (f->overdue > 0 && !c->is_overdue);
    fair_reading_set_overdue(f, c, false);
    if (must_wait) {
        c->had_some = c->read_in == f->turn;
        list_push_back(c->had_some ? &f->had_some : &f->declined, &c->in_declined);
        return 0;
    }
    c->read_in = f->turn;
    return left;
}

void clave__fair_reading_count(struct fair_reading *f, size_t n)
{
    f->read += n + READ_COST;
}

bool clave__fair_reader_is_declined(const struct fair_reader *c)
{
    return !list_empty(&c->in_declined);
}

void clave__fair_reading_pass(struct fair_reading *f, struct fair_reader *c)
{
    fair_reading_set_overdue(f, c, false);
}

void clave__fair_reading_leave(struct fair_reading *f, struct fair_reader *c)
{
    list_remove(&c->in_declined);
    fair_reading_set_overdue(f, c, false);
}

/* A connection that was read in its turn and may have more comes after those that the turn
 * declined, and before those declined later. The others do not wait for it, since a read that
 * filled its buffer may have been the last one. */
static void fair_reading_resume(struct fair_reading *f, void (*resume)(struct fair_reader *c))
{
    struct list *e;
    if (list_empty(&f->declined))
        list_splice(&f->declined, &f->had_some);
    for (int left = RESUMED_AT_ONCE; left > 0 && (e = list_pop_front(&f->declined)); left--) {
        struct fair_reader *c = LIST_ENTRY(e, struct fair_reader, in_declined);
        fair_reading_set_overdue(f, c, !c->had_some);
        resume(c);
    }
    list_splice(&f->declined, &f->had_some);
}

void clave__fair_reading_begin_turn(struct fair_reading *f, uint64_t taken,
                                    void (*resume)(struct fair_reader *c))
{
    f->read = 0;
    f->taken_before = taken;
    f->turn++;
    if (f->overdue == 0)
        fair_reading_resume(f, resume);
}

bool clave__fair_reading_has_more(const struct fair_reading *f)
{
    return !list_empty(&f->declined) || !list_empty(&f->had_some);
}
