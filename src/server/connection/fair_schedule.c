/* fair_schedule.c - fair scheduling of input: the two queues of connections whose input waits for
 * the next turn, and the recent cost of each connection. See conn.h, which has the rules.
 *
 * The cost of a connection is a debt that its requests add to and that drains at a fixed rate. A
 * connection with little debt is light, one with more is heavy. */
#include "server/connection/conn.h"

#include <assert.h>

/* A connection is light while its debt is at most a tenth of a turn's work. The debt drains by a
 * twentieth of a turn's work per millisecond: with the driver's turns of two milliseconds, that
 * lets a light connection have a tenth of the loop's time. */
enum { LIGHT_AT_ONCE = 10, LIGHT_A_MS = 20 };

void clave__fair_schedule_init(struct server *s, size_t work_a_turn)
{
    s->turn.most_looks = work_a_turn;
    for (int k = 0; k < TURN_CLASSES; k++) {
        list_init(&s->turn.left[k]);
        s->turn.most[k] = work_a_turn;
    }
}

static size_t fair_schedule_owed(const struct server_conn *c)
{
    assert(c->s->now >= c->owed_at);
    const size_t ms = (size_t)(c->s->now - c->owed_at),
                 a_ms = c->s->turn.most_looks / LIGHT_A_MS + 1;
    return ms <= c->owed / a_ms ? c->owed - ms * a_ms : 0;
}

enum turn_class clave__fair_schedule_class_of(const struct server_conn *c)
{
    return fair_schedule_owed(c) > c->s->turn.most_looks / LIGHT_AT_ONCE ? TURN_HEAVY : TURN_LIGHT;
}

bool clave__fair_schedule_is_full(const struct server_conn *c)
{
    return c->s->turn.looks >= c->s->turn.most[clave__fair_schedule_class_of(c)];
}

void clave__fair_schedule_charge(struct server_conn *c, size_t looks)
{
    c->owed = fair_schedule_owed(c) + looks;
    c->owed_at = c->s->now;
}

void clave__fair_schedule_leave(struct server_conn *c, bool had_some)
{
    bool is_left = clave__conn_is_open(c) && clave__buf_len(&c->backlog) > 0 &&
                   clave__fair_schedule_is_full(c);
    if (!is_left || had_some)
        list_remove(&c->in_left);
    if (is_left && list_empty(&c->in_left))
        list_push_back(&c->s->turn.left[clave__fair_schedule_class_of(c)], &c->in_left);
}

bool clave__fair_schedule_has_left(const struct server *s)
{
    return !list_empty(&s->turn.left[TURN_LIGHT]) || !list_empty(&s->turn.left[TURN_HEAVY]);
}

/* What class k may use of a turn. The last quarter is out of reach for heavy connections: it is for
 * light ones whose input arrives during the turn. */
static size_t fair_schedule_most_of(const struct server *s, enum turn_class k)
{
    return k == TURN_LIGHT ? s->turn.most_looks : s->turn.most_looks - s->turn.most_looks / 4;
}

/* Makes class k the next to have its waiting input taken, until the turn has cost `most` looks. */
static void fair_schedule_enter(struct server *s, enum turn_class k, size_t most)
{
    s->turn.class = k;
    s->turn.most[TURN_LIGHT] = most;
    s->turn.most[TURN_HEAVY] = k == TURN_HEAVY ? most : 0;
}

/* If both classes have input waiting, the first one is served until half of the turn is used. A
 * heavy queue that got nothing in the last turn goes first in this one, so both make progress
 * however little a turn takes. */
void clave__fair_schedule_begin(struct server *s)
{
    const bool both =
        !list_empty(&s->turn.left[TURN_LIGHT]) && !list_empty(&s->turn.left[TURN_HEAVY]);
    const enum turn_class first = s->turn.heavy_waited ? TURN_HEAVY : TURN_LIGHT;
    s->turn.looks = 0;
    s->turn.heavy_waited = both && first == TURN_LIGHT;
    s->turn.classes = TURN_CLASSES;
    fair_schedule_enter(s, first,
                        both ? s->turn.most_looks - s->turn.most_looks / 2
                             : fair_schedule_most_of(s, first));
}

struct server_conn *clave__fair_schedule_next(struct server *s)
{
    for (; s->turn.classes > 0; s->turn.classes--) {
        const enum turn_class k = s->turn.class, other = TURN_CLASSES - 1 - k;
        assert(k < TURN_CLASSES);
        if (!list_empty(&s->turn.left[k]) && s->turn.looks < s->turn.most[k]) {
            s->turn.heavy_waited = s->turn.heavy_waited && k == TURN_LIGHT;
            return LIST_ENTRY(list_pop_front(&s->turn.left[k]), struct server_conn, in_left);
        }
        fair_schedule_enter(s, other, fair_schedule_most_of(s, other));
    }
    for (int k = 0; k < TURN_CLASSES; k++)
        s->turn.most[k] = fair_schedule_most_of(s, k);
    return NULL;
}
