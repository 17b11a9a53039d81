/* handover_replay.c - a settled run of handover.pml, on standard input, played to the contenders of
 * src/recipe with a server in one process. Whatever is begun or goes wrong does so here too. Before
 * each such turn the same contenders hold as in the model, and the server has been asked for as
 * many creates, listings, looks and deletes by each. Prints the turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memnet.h"
#include "lib/mutex_owner.h"

enum { CONTENDERS = 3, OPERATOR = CONTENDERS, REDIAL_MS = 50 };
static const char path[] = "/model";

enum { CREATES, LISTINGS, LOOKS, DELETES, ASKED };
static const char *const asked_names[ASKED] = {"CREATE", "LIST", "GET", "DELETE"};

struct play {
    struct memnet *p;
    struct mutex_owner owner[CONTENDERS];
    bool holds[CONTENDERS]; /* in the model */
    uint64_t asked[CONTENDERS][ASKED];
    unsigned line, turns;
};

static void fail(const struct play *p, const char *what, unsigned who)
{
    fprintf(stderr, "line %u: %s: %u\n", p->line, what, who);
    exit(1);
}

static void compare(const struct play *p)
{
    static const int ops[ASKED] = {OP_CREATE2, OP_GET_CHILDREN2, OP_GET_DATA, OP_DELETE};
    for (unsigned c = 0; c < CONTENDERS; c++) {
        if (owner_holds(&p->owner[c]) != p->holds[c])
            fail(p, p->holds[c] ? "does not hold" : "holds", c);
        for (int i = 0; i < ASKED; i++)
            if (p->p->clients[c].requests[ops[i]] != p->asked[c][i]) {
                fprintf(stderr,
                        "%llu for %llu: ", (unsigned long long)p->p->clients[c].requests[ops[i]],
                        (unsigned long long)p->asked[c][i]);
                fail(p, asked_names[i], c);
            }
    }
}

/* A node's number is the model's. */
static void delete_node(struct play *p, unsigned node)
{
    char names[CONTENDERS * 2][96], full[128], number[16];
    size_t n = memnet_list(p->p, OPERATOR, path, names, CONTENDERS * 2);
    snprintf(number, sizeof number, "-%010u", node);
    for (size_t i = 0; i < n; i++) {
        snprintf(full, sizeof full, "%s/%s", path, names[i]);
        if (strstr(names[i], number) && memnet_delete(p->p, OPERATOR, full) == CLAVE_OK)
            return;
    }
    fail(p, "no such node", node);
}

static void turn(struct play *p, const char *what, unsigned who)
{
    compare(p);
    p->turns++;
    if (strcmp(what, "join") == 0) {
        owner_begin_acquire(&p->owner[who], OWNER_FOREVER);
    } else if (strcmp(what, "release") == 0) {
        p->holds[who] = false;
        clave_async_mutex_release(p->owner[who].m, p->owner[who].owner, NULL, NULL);
    } else if (strcmp(what, "cut") == 0) {
        memnet_cut(p->p, who);
        p->asked[who][LOOKS]++; /* each connection asks for the server's configuration */
    } else if (strcmp(what, "expire") == 0) {
        memnet_kill_session(p->p, who);
        p->asked[who][LOOKS]++;
    } else {
        delete_node(p, who);
    }
    memnet_advance(p->p, REDIAL_MS);
}

static void request(struct play *p, unsigned who, const char *what)
{
    for (int i = 0; i < ASKED; i++)
        p->asked[who][i] += strcmp(what, asked_names[i]) == 0;
    /* The protected search of a create whose answer was lost lists too. */
    p->asked[who][LISTINGS] += strcmp(what, "FIND") == 0;
}

static bool is_turn(const char *what)
{
    static const char *const turns[] = {"join", "release", "cut", "expire", "delete"};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        if (strcmp(what, turns[i]) == 0)
            return true;
    return false;
}

static void act(struct play *p, const char *text)
{
    char what[16], message[16];
    unsigned who;
    int n = sscanf(text, "%15s %u %15s", what, &who, message);
    if (n < 2)
        fail(p, "not a step of the model", 0);
    if (is_turn(what))
        turn(p, what, who);
    else if (strcmp(what, "held") == 0)
        p->holds[who] = true;
    else if (strcmp(what, "lost") == 0)
        p->holds[who] = false;
    else if (strcmp(what, "request") == 0 && n == 3)
        request(p, who, message);
}

static void begin(struct play *p)
{
    struct memnet_options o = {.clients = CONTENDERS + 1, .timeout_ms = 20000};
    p->p = memnet_new(&o);
    memnet_create(p->p, OPERATOR, path);
    for (unsigned c = 0; c < CONTENDERS; c++)
        if (owner_open(&p->owner[c], p->p, c, path, NULL) != CLAVE_OK)
            fail(p, "no mutex", c);
    memnet_settle(p->p);
    memnet_reset_counts(p->p);
}

static void end(struct play *p)
{
    compare(p);
    if (memnet_list(p->p, OPERATOR, path, NULL, 0) != 0)
        fail(p, "nodes are left", 0);
    for (unsigned c = 0; c < CONTENDERS; c++)
        owner_close(&p->owner[c]);
    memnet_free(p->p);
}

int main(void)
{
    struct play p = {0};
    char text[256];
    begin(&p);
    while (fgets(text, sizeof text, stdin)) {
        const char *at = strstr(text, "TRACE ");
        p.line++;
        if (at)
            act(&p, at + strlen("TRACE "));
    }
    end(&p);
    printf("%u\n", p.turns);
    return p.turns > 0 ? 0 : 1;
}
