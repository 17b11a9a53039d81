/* deadline.pml - the hold deadline: is a session ever taken for alive when its leader may have
 * ended it?
 *
 * A client asks a member of an ensemble: reads and pings, which the member answers by itself, and
 * writes, which the leader has to commit. The leader counts a session's time from the newest report
 * of the member, which comes at the leader's ping, no more than R apart; between the two everything
 * is in order. At any moment the member may be cut off from its leader, or the leader from its
 * quorum: then the next one gives the session its whole time, and the one before goes on answering
 * what needs no commit. The client may come back at any moment, by a handshake at another member.
 * Messages take as long as they like.
 *
 * Time goes in steps, and has no end: all that is kept of a moment is its age, which is not counted
 * beyond T, since nothing depends on how much older something is. Clocks are alike (the margin is
 * for clocks that are not).
 *
 * The rule (src/client/hold/hold_deadline.c): the deadline is T behind the sending of the newest answered request
 * such that a write, sent R or more after that answer had come on the same connection, was answered
 * too; a handshake counts with the first write behind it.
 *
 * Weaker rules, each of which has to be refuted:
 *   -DANY_ANSWER      behind the sending of the newest answered request of any kind
 *   -DANY_PING        of a read or ping
 *   -DANY_WRITE       of a write, for the moment it was sent itself
 *   -DWHEN_ANSWERED   the rule, but behind the coming of the answer instead of the sending
 *   -DNO_RELAY        the rule, without the relay interval
 *   -DSINCE_SENDING   the rule, the relay interval counted from the request's sending
 *   -DHANDSHAKE       the rule, but a handshake counts at once
 *   -DSYNC            the rule, with what a deposed leader answers too in the place of writes
 * A stronger one, which has to hold as well:
 *   -DALL_KEPT        every answer is remembered, not the first of each step alone
 * For the test that plays the model's random runs to the code (deadline_replay.c):
 *   -DPLAYED          what goes wrong goes wrong rarely */
#ifndef T
#define T 5 /* the session's timeout */
#endif
#ifndef R
#define R 2 /* the relay interval */
#endif
#ifndef FLIGHT
#define FLIGHT 2 /* requests under way */
#endif
#define NONE (T + 1)

mtype = { READ, WRITE, HANDSHAKEN, REPORT };
mtype = { UP, ASKED, READY };
mtype = { FOLLOWS, CUT, DEPOSED };

/* Requests under way, in the order in which they were sent and will be answered. */
byte n;
mtype kind[FLIGHT], stage[FLIGHT];
byte sent[FLIGHT], vouched[FLIGHT];

/* The client: when the request was sent that was answered so many steps ago, R and more in one. */
byte sample[R + 1];
byte attached = T;
byte proven;

/* The member; from member to leader, a report behind a report left out. */
mtype member = FOLLOWS;
bool busy;     /* since its last report */
byte reported; /* when that was */
chan to_leader = [2 * FLIGHT + 1] of { mtype };
bool report_last;

/* The leader that counts; T: the session is over. A leader that was deposed may be reached. */
byte heard;
bool deposed;

#ifdef PLAYED
byte moment;
#define MAY_GO_WRONG (moment == 31)
#define MAY_COME_BACK (moment == 7 || (member != FOLLOWS && moment % 8 == 7))
#else
#define MAY_GO_WRONG true
#define MAY_COME_BACK true
#endif

#define AGED(a) (a < T -> a + 1 : a)
#define NEWER(a, b) (a < b -> a : b)
#define STATE printf("TRACE state %d\n", proven)

inline check() {
    assert(heard < T || proven == T)
}

/* ---- the client ------------------------------------------------------------------------ */

inline vouch(i) {
#if defined(NO_RELAY)
    vouched[i] = attached;
    for (k : 0 .. R) {
        vouched[i] = NEWER(vouched[i], sample[k])
    }
#else
    vouched[i] = (sample[R] == NONE -> attached : sample[R])
#endif
}

inline ask(what) {
    kind[n] = what;
    stage[n] = UP;
    sent[n] = 0;
    vouched[n] = T;
    if :: what == WRITE -> vouch(n) :: else fi;
    n++
}

inline remember(moment) {
#if defined(SINCE_SENDING)
    k = (sent[0] < R -> sent[0] : R);
#else
    k = 0;
#endif
#if defined(ALL_KEPT) || defined(SINCE_SENDING)
    sample[k] = moment
#else
    if :: sample[k] == NONE -> sample[k] = moment :: else fi
#endif
}

inline prove() {
#if defined(ANY_ANSWER)
    proven = NEWER(proven, sent[0]);
#elif defined(ANY_PING)
    if :: kind[0] == READ -> proven = NEWER(proven, sent[0]) :: else fi;
#elif defined(ANY_WRITE)
    if :: kind[0] == WRITE -> proven = NEWER(proven, sent[0]) :: else fi;
#else
    if :: kind[0] == WRITE -> proven = NEWER(proven, vouched[0]) :: else fi;
#endif
}

inline forget_samples() {
    for (k : 0 .. R) {
        sample[k] = NONE
    }
}

inline drop(i) { /* so that states that differ in it alone are one */
    kind[i] = 0;
    stage[i] = 0;
    sent[i] = 0;
    vouched[i] = 0
}

inline take_answer() {
    if
    :: kind[0] == HANDSHAKEN ->
        forget_samples();
        attached = sent[0];
#ifdef HANDSHAKE
        proven = NEWER(proven, sent[0]);
#endif
    :: else ->
#ifdef WHEN_ANSWERED
        remember(0);
#else
        remember(sent[0]);
#endif
        prove()
    fi;
    n--;
    for (k : 1 .. FLIGHT - 1) {
        kind[k - 1] = kind[k];
        stage[k - 1] = stage[k];
        sent[k - 1] = sent[k];
        vouched[k - 1] = vouched[k]
    }
    drop(FLIGHT - 1)
}

inline come_back() {
    for (k : 0 .. FLIGHT - 1) {
        drop(k)
    }
    n = 0;
    do :: to_leader ? _ :: empty(to_leader) -> break od;
    report_last = false;
    busy = false;
    reported = 0;
    if
    :: member = FOLLOWS
    :: deposed -> member = DEPOSED
    fi;
    attached = T;
    forget_samples();
    ask(HANDSHAKEN)
}

active proctype client() {
    byte k;
    atomic { forget_samples() }
    do
    :: atomic { n < FLIGHT && (n == 0 || kind[0] != HANDSHAKEN) ->
            if
            :: printf("TRACE ask read\n"); ask(READ)
            :: printf("TRACE ask write\n"); ask(WRITE)
            fi;
            k = 0;
            STATE
        }
    :: atomic { n > 0 && stage[0] == READY ->
            printf("TRACE answer\n");
            take_answer();
            k = 0;
            STATE;
            check()
        }
    :: atomic { heard < T && MAY_COME_BACK ->
            printf("TRACE connect\n");
            come_back();
            k = 0;
            STATE
        }
    od
}

/* ---- member, leader, time -------------------------------------------------------------- */

inline ping() {
    if
    :: busy && !report_last -> to_leader ! REPORT; report_last = true
    :: else
    fi;
    busy = false;
    reported = 0
}

inline receive(i) {
    busy = true;
    if
    :: kind[i] == READ || (kind[i] == HANDSHAKEN && member == DEPOSED) -> stage[i] = READY
    :: else ->
        stage[i] = ASKED;
        if
        :: member == FOLLOWS -> to_leader ! kind[i]; report_last = false
#ifdef SYNC
        :: member == DEPOSED -> stage[i] = READY
#endif
        :: else /* never answered */
        fi
    fi
}

active proctype at_member() {
    byte i;
    do
    :: atomic { n > 0 && stage[n - 1] == UP ->
            i = 0;
            do :: stage[i] != UP -> i++ :: else -> break od;
            receive(i);
            i = 0
        }
    :: atomic { member == FOLLOWS && (busy || reported > 0) -> ping() }
    :: atomic { member == FOLLOWS && MAY_GO_WRONG -> member = CUT; busy = false; reported = 0 }
    od
}

inline answer_first_asked(answered) {
    i = 0;
    do :: stage[i] != ASKED -> i++ :: else -> break od;
    if :: answered -> stage[i] = READY :: else fi
}

active proctype leader() {
    mtype what;
    byte i;
    do
    :: atomic { heard < T && nempty(to_leader) ->
            to_leader ? what;
            report_last = report_last && nempty(to_leader);
            if
            :: what == REPORT -> heard = 0
            :: else ->
                if :: what == HANDSHAKEN -> heard = 0 :: else fi;
                if :: member == FOLLOWS -> answer_first_asked(true) :: else fi
            fi;
            what = 0;
            i = 0
        }
    /* The quorum has another. */
    :: atomic { heard < T && member != DEPOSED && MAY_GO_WRONG ->
            heard = 0;
            deposed = true;
            if :: member == FOLLOWS -> member = DEPOSED :: else fi;
            do :: to_leader ? _ :: empty(to_leader) -> break od;
            report_last = false;
            busy = false;
            reported = 0
        }
    od
}

active proctype time() {
    byte j;
    do
    :: atomic { true ->
            j = 0;
            do
            :: j < n -> sent[j] = AGED(sent[j]); vouched[j] = AGED(vouched[j]); j++
            :: else -> break
            od;
            if :: sample[R - 1] != NONE -> sample[R] = sample[R - 1] :: else fi;
            for (j : 1 .. R - 1) {
                sample[R - j] = sample[R - j - 1]
            }
            sample[0] = NONE;
            for (j : 1 .. R) {
                sample[j] = AGED(sample[j])
            }
            attached = AGED(attached);
            proven = AGED(proven);
            heard = AGED(heard);
            if
            :: member == FOLLOWS ->
                reported++;
                if :: reported == R -> ping() :: else fi
            :: else
            fi;
            j = 0;
#ifdef PLAYED
            moment = (moment + 1) % 32;
#endif
            printf("TRACE step\n");
            STATE;
            check()
        }
    od
}
