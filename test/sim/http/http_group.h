/* http_group.h - programs that each have a session, by which they are members of a group and
 * instances of a service, and count on one counter; each request at any gate. What has no answer is
 * asked for once more, undone at another gate, or given up. Now and then one takes the place of
 * another, or asks for it and does not get it.
 *
 * What must hold, on true time. An answer is certain when no older request of its program was left
 * at any gate when it was asked for.
 *   - A node that an answer says is there was there since it was asked, of that session and with
 *     those data.
 *   - From a certain answer on nothing that was asked for before takes effect: the session has that
 *     node, with these data, or it has none, until it asks for something else or ends. Except that
 *     others may take the place (?replace); and that the servers know versions and no owners: a
 *     request that has seen its own node may change or delete another session's that came to the
 *     same place and version before it got there.
 *   - A list names nothing that was not there since it was asked, less its age, and leaves nothing
 *     out that was there all that time.
 *   - Once the faults are over each program has its two nodes, and in the end nothing is left. */
#ifndef CLAVE_SIM_HTTP_GROUP_H
#define CLAVE_SIM_HTTP_GROUP_H

#include "http/http_caller.h"
#include "http/http_count.h"

enum { GROUP_PROGRAMS = 4, GROUP_SEATS = 2 * GROUP_PROGRAMS, SEAT_STATES = 64 };

#define GROUP_PATH "/group"

/* The node of a seat as it was from some moment until another. */
struct seat_state {
    int64_t czxid, owner;
    int64_t number; /* that its data name */
    int64_t since, gone;
};

struct group_seat {
    char path[48];
    struct seat_state past[SEAT_STATES]; /* the newest */
    size_t npast;                        /* ever */
    int64_t shaky_to; /* true time: a session that asked for it is not known any more */
};

/* What a program knows of its session's node at a seat. */
struct group_place {
    bool certain;
    int64_t number; /* of its data; 0: the session has no node there */
    /* What it has asked for to become certain: since when, until when (true times; it is not
     * certain: HTTP_NEVER), and to take another's place? */
    int64_t asked, answered;
    bool replaces;
};

enum group_task {
    GROUP_ENTERS,
    GROUP_RENEWS,
    GROUP_ENDS,
    GROUP_JOINS,
    GROUP_LEAVES,
    GROUP_LISTS,
    GROUP_ADDS,
    GROUP_SETS,
    GROUP_READS,
};

struct group_program {
    struct http_caller caller;
    struct http_group *group;
    unsigned index;
    char session[32], secret[160]; /* "": none */
    int64_t renew_at;              /* true time */
    struct group_place places[GROUP_SEATS];
    enum group_task task; /* the last one, of: */
    unsigned seat;
    bool replaces, again;
    int64_t number, expected;
    int64_t value; /* of the counter, as it was told last */
};

struct http_group {
    struct http_world *of;
    struct group_program programs[GROUP_PROGRAMS];
    size_t n; /* 0: there is none */
    struct group_seat seats[GROUP_SEATS];
    struct http_count count;
    int64_t numbers; /* so many were used for data */
    int64_t ttl_ms;
    int64_t went_back_at; /* true time: a server has lost what was not on its disk */
    int64_t zxid;
    uint64_t start;
    bool leaves;
    uint64_t joined, listed;
};

void http_group_draw(struct http_group *g, struct http_world *of);
void http_group_start(struct http_group *g);
/* After every step in which the server runs. */
void http_group_look(struct http_group *g);
/* Its day is over: each program has its nodes once more, and leaves or vanishes. */
void http_group_finish(struct http_group *g);
/* All have gone, and nothing of theirs is left in the tree. */
bool http_group_is_quiet(const struct http_group *g);
void http_group_fini(struct http_group *g);

#endif
