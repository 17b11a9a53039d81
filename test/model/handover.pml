/* handover.pml - a lock handed over without a round trip: does anybody ever take it too early, and
 * does anybody wait for ever?
 *
 * Three contenders (src/recipe/contender/contender.c, queue_order.c) queue with sequential nodes at one
 * server. Requests, replies and events go through one channel each way for each connection, in
 * order. A node goes by its owner's release, with its owner's session, or because an operator
 * deletes it. A connection may be cut at any moment: requests under way are applied or not, replies
 * and events are lost; behind the reconnect the watches are registered again, and tell of what went
 * meanwhile in any order.
 *
 * Whoever waits takes the end of the one before it for its turn, without a listing, under the
 * conditions of docs/evidence/queues.md (P3); with more than one before it, it lists when the one before the
 * last goes (P4). The hold deadline (deadline.pml) is taken for granted: nobody is granted with a
 * session that is over, and a holder gives up before its session ends.
 *
 * Weaker rules, each of which has to be refuted:
 *   -DNO_OWN_WATCH     nobody watches its own node
 *   -DTWO_AHEAD        taken over although more than one stood before us
 *   -DANY_CONNECTION   ... with an event of another connection than the listing's
 *   -DFROM_CREATE      decided by the number in the create's reply alone
 * For the tests that play the model's runs to the code:
 *   -DSETTLED          nothing is begun and nothing goes wrong before all that is under way is done
 *                      (handover_replay.c)
 *   -DPLAYED           message by message (handover_messages_replay.c): a session ends only when its client
 *                      has heard all that was said to it, as it has then been silent for longer than
 *                      its hold deadline. Nobody gives its session up. Behind each step of a
 *                      client its whole state is told */
#define CLIENTS 3
#ifndef MISHAPS
#define MISHAPS 2 /* cuts, sessions ended, nodes deleted by an operator */
#endif
#define NODES (CLIENTS + MISHAPS)
#define NONE NODES

#define OWN 0
#define LAST 1
#define LAST_BUT 2

#define BIT(node) (1 << (node))
#define BEFORE(node) (BIT(node) - 1)

mtype = { CREATE, FIND, CHECK, LIST, GET, DELETE, SET_WATCHES }; /* requests */
mtype = { CREATED, FOUND, CHECKED, LISTED, GOT, MISSING, DELETED, EVENT, EXPIRED }; /* replies */
mtype = { IDLE, JOINING, WAITING, CONFIRMING, HELD, LEAVING, DONE };

/* ---- the server ------------------------------------------------------------------------ */

byte nodes;      /* created so far */
byte standing;   /* a bit for each */
byte been_first; /* stood when there was none before it */
byte owner[NODES];
byte watched[CLIENTS]; /* through this connection */
bool over[CLIENTS];    /* its session */
byte mishaps;

chan up[CLIENTS] = [5] of { mtype, byte };
chan down[CLIENTS] = [8] of { mtype, byte };
bool linked[CLIENTS];
chan reads[CLIENTS] = [4] of { mtype, byte }; /* unanswered: sent again on the next connection */

inline note_first() {
    d = 0;
    do
    :: d < NODES && !(standing & BIT(d)) -> d++
    :: else -> break
    od;
    if :: d < NODES -> been_first = been_first | BIT(d) :: else fi;
    d = 0
}

inline tell(whom, news, news_of) {
    if
    :: linked[whom] -> assert(nfull(down[whom])); down[whom] ! news, news_of
    :: else
    fi
}

/* Events go out before any reply that shows a later state. */
inline remove(gone) {
    standing = standing & ~BIT(gone);
    note_first();
    for (d : 0 .. CLIENTS - 1) {
        if
        :: watched[d] & BIT(gone) -> watched[d] = watched[d] & ~BIT(gone); tell(d, EVENT, gone)
        :: else
        fi
    }
    d = 0
}

/* A getData's value: the node, and which lookout asks. */
inline watch(by, asked) {
    if
#ifdef NO_OWN_WATCH
    :: asked % 4 == OWN
#endif
    :: linked[by] -> watched[by] = watched[by] | BIT(asked / 4)
    :: else
    fi
}

inline serve() {
    up[who] ? what, value;
    printf("TRACE request %d %e %d\n", who, what, value);
    if
    :: what == CREATE ->
        owner[nodes] = who;
        standing = standing | BIT(nodes);
        begun[who] = true;
        note_first();
        tell(who, CREATED, nodes);
        nodes++
    :: what == FIND -> /* the protected search: our node, if it was made */
        for (e : 0 .. NODES - 1) {
            if :: standing & BIT(e) && owner[e] == who -> mine = e :: else fi
        }
        tell(who, FOUND, mine)
    :: what == CHECK ->
        if :: standing & BIT(value) -> mine = value :: else fi;
        tell(who, CHECKED, mine)
    :: what == LIST -> tell(who, LISTED, standing)
    :: what == GET ->
        if
        :: standing & BIT(value / 4) -> watch(who, value); tell(who, GOT, value % 4)
        :: else -> tell(who, MISSING, value % 4)
        fi
    :: what == DELETE ->
        if :: standing & BIT(value) -> remove(value) :: else fi;
        tell(who, DELETED, value)
    :: what == SET_WATCHES ->
        if :: linked[who] -> watched[who] = watched[who] | (value & standing) :: else fi;
        value = value & ~standing;
        do
        :: value == 0 -> break
        :: else ->
            do /* in any order */
            :: value & BIT(e) -> break
            :: value >> (e + 1) -> e++
            od;
            value = value & ~BIT(e);
            tell(who, EVENT, e);
            e = 0
        od
    fi;
    e = 0;
    mine = NONE;
    value = 0;
    what = 0
}

/* With the session go its nodes; then the connection is closed. */
inline end_session() {
    printf("TRACE expire %d\n", who);
    over[who] = true;
#if defined(PLAYED) || defined(SETTLED)
    watched[who] = 0; /* clave's server says nothing more on its connection */
#endif
    for (e : 0 .. NODES - 1) {
        if :: standing & BIT(e) && owner[e] == who -> remove(e) :: else fi
    }
    e = 0;
    tell(who, EXPIRED, 0);
    do :: up[who] ? _, _ :: empty(up[who]) -> break od
}

/* ---- contenders ------------------------------------------------------------------------ */

typedef lookout {
    byte at; /* NONE: nothing */
    bool asking, moved, armed;
    bool here; /* asked for or registered through this connection */
}

typedef contender {
    mtype state;
    byte own, ahead; /* ahead 2: two or more */
    bool own_seen, listing, listed_here;
    bool deleting, again;
    bool failed; /* something has, since the last listing: a pause comes before the next attempt */
    bool given_up; /* the session, by its own deadline */
}
contender it[CLIENTS];
lookout on[3 * CLIENTS];
bool begun[CLIENTS];

#ifdef SETTLED
#define QUIET(i) (empty(up[i]) && empty(down[i]) && (linked[i] || !begun[i] || it[i].state == DONE))
#define MAY_BEGIN (QUIET(0) && QUIET(1) && QUIET(2))
#else
#define MAY_BEGIN true
#endif

#define C it[c]
#define ON(l) on[3 * c + l]

#ifdef PLAYED
#define MAY_END(i) empty(down[i])
#define TELL_LOOKOUT(l) printf(" %d %d %d", ON(l).at, ON(l).armed && !ON(l).asking, ON(l).asking)
inline tell_state() {
    printf("TRACE state %d %e %d %d %d %d %d", c, C.state, C.own, C.ahead, C.own_seen, C.listing,
           (linked[c] && !over[c] -> len(up[c]) : 0));
    TELL_LOOKOUT(OWN);
    TELL_LOOKOUT(LAST);
    TELL_LOOKOUT(LAST_BUT);
    printf("\n")
}
#else
#define MAY_END(i) true
#define tell_state()
#endif

inline send(request, about) {
    if
    :: linked[c] -> assert(nfull(up[c])); up[c] ! request, about
    :: else
    fi
}

inline ask(l) {
    if
    :: !ON(l).asking && linked[c] ->
        ON(l).asking = true;
        reads[c] ! GET, ON(l).at * 4 + l;
        send(GET, ON(l).at * 4 + l)
    :: else
    fi
}

inline list() {
    if
    :: !C.listing && linked[c] -> C.listing = true; reads[c] ! LIST, 0; send(LIST, 0)
    :: else
    fi
}

inline aim(a, to) {
    if
    :: ON(a).at == to && (ON(a).asking || ON(a).armed) ->
        ON(a).here = ON(a).here || !ON(a).asking
    :: else ->
        ON(a).at = to;
        ON(a).armed = false;
        ON(a).moved = ON(a).asking;
        ask(a)
    fi
}

inline rest(r) {
    ON(r).at = NONE;
    ON(r).moved = false;
    ON(r).armed = false;
    ON(r).here = false
}

inline join() {
    C.state = JOINING;
    C.own_seen = false;
    C.again = false;
    C.own = NONE;
    C.ahead = 2;
    rest(OWN);
    send(CREATE, 0);
    send(LIST, 0)
}

inline settle() {
    if
    :: C.state == LEAVING && !C.deleting && !C.listing && !ON(OWN).asking && !ON(LAST).asking &&
       !ON(LAST_BUT).asking ->
        if
        :: C.again && C.failed -> C.state = IDLE
        :: C.again && !C.failed -> join()
        :: else -> C.state = DONE
        fi
    :: else
    fi
}

inline stop_waiting() {
    rest(LAST);
    rest(LAST_BUT);
    C.ahead = 0;
    C.own_seen = false
}

inline leave(anew) {
    C.state = LEAVING;
    C.again = anew;
    stop_waiting()
}

inline turn_has_come() {
    if
    :: over[c] -> C.state = CONFIRMING /* the hold deadline has passed */
    :: else ->
        assert(!(standing & BEFORE(C.own)));
        assert(been_first & BIT(C.own));
        for (k : 0 .. CLIENTS - 1) {
            assert(k == c || it[k].state != HELD || !(standing & BIT(it[k].own)) ||
                   !(standing & BIT(C.own)))
        }
        k = 0;
        C.state = HELD;
        stop_waiting();
        printf("TRACE held %d\n", c)
    fi
}

inline by_listing(names) {
    if
    :: !(names & BIT(C.own)) -> C.failed = true; leave(true)
    :: else ->
        C.failed = false;
        last = NONE;
        last_but = NONE;
        for (k : 0 .. NODES - 1) {
            if
            :: k < C.own && names & BIT(k) -> last_but = last; last = k
            :: else
            fi
        }
        k = 0;
        C.ahead = (last == NONE -> 0 : (last_but == NONE -> 1 : 2));
        if
        :: C.ahead == 0 -> turn_has_come()
        :: else ->
            aim(LAST, last);
            aim(OWN, C.own);
            if
            :: last_but != NONE -> aim(LAST_BUT, last_but)
            :: else -> rest(LAST_BUT)
            fi
        fi;
        last = 0;
        last_but = 0
    fi
}

inline find_out() {
    if :: !C.own_seen -> ask(OWN) :: else fi;
    list()
}

inline node_gone() {
    if
    :: C.state == HELD -> printf("TRACE lost %d\n", c); leave(false)
    :: C.state == WAITING || C.state == CONFIRMING -> leave(true)
    :: else
    fi
}

#if defined(TWO_AHEAD)
#define MAY_TAKE_OVER (C.own_seen && ON(OWN).armed && !ON(OWN).asking && C.listed_here && \
    ON(OWN).here && ON(LAST).here)
#elif defined(ANY_CONNECTION)
#define MAY_TAKE_OVER (C.ahead == 1 && ON(OWN).armed)
#else
#define MAY_TAKE_OVER (C.ahead == 1 && C.own_seen && ON(OWN).armed && !ON(OWN).asking && \
    C.listed_here && ON(OWN).here && ON(LAST).here)
#endif

inline hear(event) {
    if
    :: ON(OWN).armed && ON(OWN).at == event -> ON(OWN).armed = false; node_gone()
    :: ON(LAST).armed && ON(LAST).at == event ->
        ON(LAST).armed = false;
        if
        :: C.state == WAITING && MAY_TAKE_OVER -> turn_has_come()
        :: C.state == WAITING && !MAY_TAKE_OVER -> list()
        :: else
        fi
    :: ON(LAST_BUT).armed && ON(LAST_BUT).at == event ->
        ON(LAST_BUT).armed = false;
        if :: C.state == WAITING -> list() :: else fi
    :: else -> printf("TRACE unheard %d\n", c) /* nobody's */
    fi
}

inline looked(seen_by, stands) {
    ON(seen_by).asking = false;
    if
    :: ON(seen_by).moved -> ON(seen_by).moved = false; ON(seen_by).armed = false; ask(seen_by)
    :: else ->
        ON(seen_by).armed = stands && ON(seen_by).at != NONE;
        ON(seen_by).here = ON(seen_by).at != NONE;
        if
        :: seen_by == OWN && !stands -> node_gone()
        :: seen_by == OWN && stands && C.state == WAITING && !C.own_seen -> C.own_seen = true; list()
        :: seen_by != OWN && !stands && C.state == WAITING -> list()
        :: else
        fi
    fi
}

inline created(number) {
    C.own = number;
    ON(OWN).at = number;
#ifdef FROM_CREATE
    /* Ours is the number behind our last: nobody has come between. */
    if :: number == before -> C.state = WAITING; C.own_seen = true; turn_has_come() :: else fi;
    before = number + 1
#endif
}

inline create() {
    send(CREATE, 0);
    send(LIST, 0)
}

inline found(search) {
    if :: search == NONE -> create() :: else -> send(CHECK, search) fi
}

inline checked(stands) {
    if
    :: stands == NONE -> create()
    :: else ->
        created(stands);
        C.state = WAITING;
        C.own_seen = true;
        list()
    fi
}

inline forget_connection() {
    do :: down[c] ? _, _ :: empty(down[c]) -> break od;
    watched[c] = 0;
    C.own_seen = false;
    C.listed_here = false;
    for (k : 0 .. 2) {
        ON(k).here = false
    }
    k = 0
}

inline forget_reads() {
    do :: reads[c] ? _, _ :: empty(reads[c]) -> break od;
    C.listing = false;
    for (k : 0 .. 2) {
        ON(k).asking = false;
        ON(k).moved = false
    }
    k = 0
}

inline read_again() {
    for (k : 1 .. len(reads[c])) {
        reads[c] ? what, value;
        reads[c] ! what, value;
        send(what, value)
    }
    k = 0;
    what = 0;
    value = 0
}

inline another_session() {
    forget_connection();
    forget_reads();
    do :: up[c] ? _, _ :: empty(up[c]) -> break od;
    over[c] = false;
    linked[c] = true;
    C.deleting = false;
    ON(OWN).armed = false;
    if
    :: C.state == WAITING || C.state == CONFIRMING -> leave(true)
    :: C.state == JOINING && C.own != NONE -> leave(true)
    :: C.state == JOINING && C.own == NONE -> send(FIND, 0)
    :: else
    fi
}

inline reconnect() {
    printf("TRACE connect %d\n", c);
    do :: up[c] ? _, _ :: empty(up[c]) -> break od; /* the server lets nobody in by two doors */
    linked[c] = true;
    if
    :: over[c] -> another_session()
    :: else ->
        last = 0;
        for (k : 0 .. 2) {
            if :: ON(k).armed -> last = last | BIT(ON(k).at) :: else fi
        }
        k = 0;
        if :: last -> send(SET_WATCHES, last) :: else fi;
        last = 0;
        read_again();
        if
        :: C.state == JOINING -> send(FIND, 0)
        :: C.state == WAITING || C.state == CONFIRMING -> C.state = WAITING; find_out()
        :: C.state == HELD && !ON(OWN).armed -> ask(OWN)
        :: C.state == LEAVING && C.deleting -> send(DELETE, C.own)
        :: else
        fi
    fi
}

inline receive() {
    down[c] ? what, value;
    printf("TRACE reply %d %e %d\n", c, what, value);
    if
    :: what == CREATED -> created(value)
    :: what == FOUND -> found(value)
    :: what == CHECKED -> checked(value)
    :: what == LISTED && C.state == JOINING ->
        C.state = WAITING;
        C.own_seen = true;
        C.listed_here = true;
        by_listing(value)
    :: what == LISTED && C.state != JOINING ->
        if :: C.listing -> reads[c] ? _, _ :: else fi; /* FROM_CREATE: it may be the create's */
        C.listing = false;
        C.listed_here = true;
        if :: C.state == WAITING && C.own_seen -> by_listing(value) :: else fi
    :: what == GOT -> reads[c] ? _, _; looked(value, true)
    :: what == MISSING -> reads[c] ? _, _; looked(value, false)
    :: what == DELETED -> C.deleting = false
    :: what == EVENT -> hear(value)
    :: what == EXPIRED -> another_session()
    fi;
    what = 0;
    value = 0;
    settle()
}

proctype client(byte c) {
    byte value, last, last_but, k;
    mtype what;
#ifdef FROM_CREATE
    byte before;
#endif
    atomic {
        (c == 0 || begun[c - 1]) && MAY_BEGIN -> /* those who are alike, in this order */
        rest(OWN);
        rest(LAST);
        rest(LAST_BUT);
        linked[c] = true;
        printf("TRACE join %d\n", c);
        join();
        tell_state()
    }
    do
    :: atomic { linked[c] && nempty(down[c]) && C.state != DONE -> receive(); tell_state() }
    :: atomic { !linked[c] && C.state != DONE -> reconnect(); settle(); tell_state() }
    :: atomic { C.state == IDLE -> /* the pause is over */
            printf("TRACE timer %d\n", c);
            join();
            tell_state()
        }
    :: atomic { C.state == HELD && MAY_BEGIN -> /* release */
            printf("TRACE release %d\n", c);
            leave(false);
            C.deleting = true;
            send(DELETE, C.own);
            tell_state()
        }
    :: atomic { mishaps < MISHAPS && linked[c] && C.state != DONE && MAY_BEGIN -> /* cut */
            printf("TRACE cut %d\n", c);
            mishaps++;
            linked[c] = false;
            forget_connection();
            if /* the create was answered, its listing was not */
            :: C.state == JOINING && C.own != NONE -> C.state = WAITING; C.own_seen = true
            :: else
            fi;
            settle();
            tell_state()
        }
#if !defined(SETTLED) && !defined(PLAYED)
    :: atomic { C.state == HELD && !linked[c] && mishaps < MISHAPS -> /* its own deadline */
            mishaps++;
            C.given_up = true;
            C.state = DONE
        }
#endif
    :: atomic { C.state == DONE -> break }
    od;
    atomic {
        linked[c] = false;
        forget_connection();
        forget_reads();
        rest(OWN);
        C.own = 0;
        C.ahead = 0
    }
}

proctype server(byte who) {
    byte value, d, e, mine = NONE;
    mtype what;
end:
    do
    :: atomic { nempty(up[who]) && !over[who] -> serve() }
    :: atomic { nempty(up[who]) && over[who] -> up[who] ? _, _ }
    :: atomic { it[who].given_up && !over[who] -> end_session() }
    :: atomic { !over[who] && mishaps < MISHAPS && it[who].state != HELD &&
            it[who].state != DONE && begun[who] && MAY_BEGIN && MAY_END(who) ->
            mishaps++;
            end_session()
        }
    od
}

active proctype operator() {
    byte d, e;
end:
    do
    :: atomic { mishaps < MISHAPS && standing && MAY_BEGIN ->
            mishaps++;
            do
            :: standing & BIT(e) -> break
            :: standing >> (e + 1) -> e++
            od;
            printf("TRACE delete %d\n", e);
            remove(e);
            e = 0
        }
    od
}

init {
    atomic {
        run client(0);
        run client(1);
        run client(2);
        run server(0);
        run server(1);
        run server(2)
    }
}
