/* deadline_replay.c - a run of deadline.pml, on standard input, played to
 * src/client/hold/hold_deadline.c: the same requests, answers and handshakes at the same times.
 * Behind each step the hold deadline has to be the model's: T after what is proven. Prints how
 * often a proof has moved it. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/hold/hold_deadline.h"

enum { STEP_MS = 1000, MARGIN_MS = 125, FLIGHT = 16 };

enum kind { READ, WRITE, HANDSHAKE };

struct request {
    enum kind kind;
    int64_t sent, vouched;
};

struct play {
    int64_t timeout; /* in steps */
    struct hold_deadline lease;
    int64_t now;
    struct request flight[FLIGHT];
    size_t n;
    unsigned line, proofs;
};

static void fail(const struct play *p, const char *what)
{
    fprintf(stderr, "line %u: %s\n", p->line, what);
    exit(1);
}

static void ask(struct play *p, enum kind kind)
{
    struct request r = {.kind = kind, .sent = p->now, .vouched = HOLD_DEADLINE_NONE};
    if (p->n == FLIGHT)
        fail(p, "too many requests under way");
    if (kind == WRITE)
        r.vouched = clave__hold_deadline_vouch(&p->lease, p->now);
    p->flight[p->n++] = r;
}

/* As session_tracker.c and pipeline.c do. */
static void answer(struct play *p)
{
    struct request r = p->flight[0];
    if (p->n == 0)
        fail(p, "an answer to nothing");
    p->n--;
    memmove(p->flight, p->flight + 1, p->n * sizeof *p->flight);
    if (r.kind == HANDSHAKE) {
        clave__hold_deadline_attached(&p->lease, r.sent);
        return;
    }
    clave__hold_deadline_answered(&p->lease, r.sent, p->now);
    if (r.vouched != HOLD_DEADLINE_NONE)
        clave__hold_deadline_confirmed(&p->lease, r.vouched);
}

static void act(struct play *p, const char *what)
{
    if (strcmp(what, "ask read\n") == 0) {
        ask(p, READ);
    } else if (strcmp(what, "ask write\n") == 0) {
        ask(p, WRITE);
    } else if (strcmp(what, "connect\n") == 0) {
        p->n = 0;
        ask(p, HANDSHAKE);
    } else if (strcmp(what, "answer\n") == 0) {
        answer(p);
    } else if (strcmp(what, "step\n") == 0) {
        p->now += STEP_MS;
    } else {
        fail(p, "not a step of the model");
    }
}

/* `age`: of what is proven, in steps; the timeout stands for that and more. */
static void compare(struct play *p, int64_t age)
{
    int64_t deadline = clave__hold_deadline_get(&p->lease);
    int64_t wanted = p->now + (p->timeout - age) * STEP_MS - MARGIN_MS;
    if (age < p->timeout ? deadline == wanted : deadline <= wanted)
        return;
    fprintf(stderr, "line %u: the hold deadline is %" PRId64 ", the model's %" PRId64 "\n", p->line,
            deadline, wanted);
    exit(1);
}

int main(int argc, char **argv)
{
    struct play p = {0};
    char text[256];
    if (argc != 3) {
        fprintf(stderr, "usage: deadline_replay TIMEOUT RELAY <trace\n");
        return 64;
    }
    p.timeout = atoi(argv[1]);
    clave__hold_deadline_init(&p.lease);
    p.lease.timeout_ms = p.timeout * STEP_MS;
    p.lease.margin_ms = MARGIN_MS;
    clave__hold_deadline_set_relay(&p.lease, atoi(argv[2]) * STEP_MS);
    clave__hold_deadline_made(&p.lease, 0);
    int64_t before = p.lease.proven;
    while (fgets(text, sizeof text, stdin)) {
        const char *at = strstr(text, "TRACE ");
        p.line++;
        if (!at)
            continue;
        at += strlen("TRACE ");
        if (strncmp(at, "state ", 6) == 0)
            compare(&p, atoi(at + 6));
        else
            act(&p, at);
        p.proofs += p.lease.proven > before;
        before = p.lease.proven;
    }
    printf("%u\n", p.proofs);
    return p.line > 0 ? 0 : 1;
}
