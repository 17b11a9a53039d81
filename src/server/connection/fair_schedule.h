/* fair_schedule.h - how much of whose input one turn of the driver's loop takes; conn.c asks.
 *
 * A turn takes s->work_a_turn looks' worth of requests. What is beyond that waits in the backlog of
 * its connection, and comes in the next turn. So that a client that asks for little does not wait
 * for a turn of each client that asks for much, connections are of two classes: one is light as
 * long as it costs less than a tenth of the loop's time. Light ones come first, and a quarter of
 * each turn is for those of them whose input arrives in it. Neither class ever waits for more than
 * one turn of the other. */
#ifndef CLAVE_SERVER_CONNECTION_FAIR_SCHEDULE_H
#define CLAVE_SERVER_CONNECTION_FAIR_SCHEDULE_H

#include "server/connection/conn.h"

void clave__fair_schedule_init(struct server *s, size_t work_a_turn);
/* By what it has cost lately. */
enum turn_class clave__fair_schedule_class_of(const struct server_conn *c);

void clave__fair_schedule_begin(struct server *s);
/* Call it after _begin until it is NULL: the next connection whose input the last turn has left. */
struct server_conn *clave__fair_schedule_next(struct server *s);
/* Whether some input waits for the next turn. */
bool clave__fair_schedule_has_left(const struct server *s);

/* Whether this turn takes no more of the connection's requests: other clients, and the disk, would
 * wait for them. */
bool clave__fair_schedule_is_full(const struct server_conn *c);
/* A request of it has cost so many looks. */
void clave__fair_schedule_charge(struct server_conn *c, size_t looks);
/* Call it when the connection has had its chance: it stays in the queue if the turn is the reason
 * that it has a backlog. `had_some`: some of its input was taken; those that had none come first.
 */
void clave__fair_schedule_leave(struct server_conn *c, bool had_some);

#endif
