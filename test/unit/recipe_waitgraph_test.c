/* Graphs in a line each, and who of them can never go on. */
#include "lib/failmem.h"
#include "lib/unit.h"
#include "recipe/deadlock/waitgraph.h"

enum { QUEUES = 12, CLAIMS = 12 };
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Queues, '|' between them; the words of each are its claims in order. "P" has named itself, "p"
 * is a session. Before a name: "r:" a read, "=" of the rank before it. Behind: "*" it yields, "+"
 * it has been seen to move. A first word of "2" makes it leases, so many, whose gate is the
 * next queue; "?" leases of an unknown number. Ages are those of the words. */
struct graph {
    struct wait_queue queues[QUEUES];
    struct wait_claim claims[QUEUES][CLAIMS];
    size_t n;
    char text[256];
};

static void parse_claim(struct wait_claim *claim, char *word, size_t i, int64_t token)
{
    char *mark;
    *claim = (struct wait_claim){.rank = i, .token = token};
    if (*word == '=') {
        claim->rank = i - 1;
        word++;
    }
    if (strncmp(word, "r:", 2) == 0) {
        claim->kind = WAIT_SHARED;
        word += 2;
    }
    claim->known = *word >= 'A' && *word <= 'Z';
    claim->owner = word;
    while ((mark = strpbrk(word, "*+"))) {
        claim->yields |= strchr(mark, '*') != NULL;
        claim->moving |= strchr(mark, '+') != NULL;
        *mark = '\0';
    }
}

static void parse(struct graph *g, const char *line)
{
    int64_t token = 1;
    *g = (struct graph){.n = 1};
    snprintf(g->text, sizeof g->text, "%s", line);
    struct wait_queue *q = g->queues;
    *q = (struct wait_queue){.claims = g->claims[0], .mutex_queue = WAIT_NONE};
    for (char *word = strtok(g->text, " "); word; word = strtok(NULL, " ")) {
        if (*word == '|') {
            q = &g->queues[g->n];
            *q = (struct wait_queue){.claims = g->claims[g->n++], .mutex_queue = WAIT_NONE};
        } else if ((*word >= '0' && *word <= '9') || *word == '?') {
            q->limit = (size_t)atoi(word);
            q->mutex_queue = g->n;
        } else {
            struct wait_claim *claim = &g->claims[q - g->queues][q->n];
            parse_claim(claim, word, q->n++, token++);
            if (q->mutex_queue != WAIT_NONE)
                claim->kind = WAIT_LEASE;
        }
    }
}

/* The queues in the reverse order. */
static void turn_over(const struct graph *g, struct wait_queue *out)
{
    for (size_t i = 0; i < g->n; i++) {
        out[i] = g->queues[g->n - 1 - i];
        if (out[i].mutex_queue != WAIT_NONE)
            out[i].mutex_queue = g->n - 1 - out[i].mutex_queue;
    }
}

static const char *name(const struct wait_queue *queues, const struct wait_step *s)
{
    return queues[s->queue].claims[s->claim].owner;
}

/* "P Q !Q ?": the members from the least name on, who gives up, and that it is only possible. */
static void spell(const struct wait_queue *queues, const struct wait_cycle *c, char *out)
{
    size_t first = 0;
    *out = '\0';
    for (size_t i = 1; i < c->n; i++)
        if (strcmp(name(queues, &c->steps[i]), name(queues, &c->steps[first])) < 0)
            first = i;
    for (size_t i = 0; i < c->n; i++)
        sprintf(out + strlen(out), "%s%s", i > 0 ? " " : "",
                name(queues, &c->steps[(first + i) % c->n]));
    if (c->victim != WAIT_NONE)
        sprintf(out + strlen(out), " !%s", name(queues, &c->steps[c->victim]));
    if (!c->certain)
        strcat(out, " ?");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The cycles, sorted, ", " between them; then how many more are stuck. */
static void tell(const struct wait_queue *queues, size_t n, char *out)
{
    struct wait_verdict v;
    char cycles[QUEUES][64];
    struct failmem f;
    failmem_init(&f);
    assert_int_equal(clave__waitgraph_solve(&f.mem, 1, queues, n, &v), CLAVE_OK);
    size_t members = 0;
    for (size_t i = 0; i < v.n; i++) {
        members += v.cycles[i].n;
        spell(queues, &v.cycles[i], cycles[i]);
    }
    qsort(cycles, v.n, sizeof *cycles, by_text);
    *out = '\0';
    for (size_t i = 0; i < v.n; i++)
        sprintf(out + strlen(out), "%s%s", i > 0 ? ", " : "", cycles[i]);
    if (v.stuck > members)
        sprintf(out + strlen(out), " +%zu", v.stuck - members);
    clave__waitgraph_fini(&f.mem, &v);
    assert_int_equal(f.live, 0);
}

static const struct {
    const char *graph, *verdict;
} cases[] = {
    {"", ""},
    {"P", ""},
    {"P Q R", ""},
    /* Mutexes. */
    {"P Q | Q P", "P Q"},
    {"P Q | Q R | R P", "P R Q"},
    {"P Q | Q R | R S", ""},
    {"P Q S | Q P | S | P", "P Q +1"},
    {"P Q | Q P | R S | S R", "P Q, R S"},
    /* After one that waits itself. */
    {"S Q P | P Q", "P Q"},
    {"S Q P | Q P | S", ""},
    {"P Q R | R P", "P R +1"},
    /* Its own lock, again. */
    {"P P", "P"},
    {"P P | P Q", "P +1"},
    /* The youngest that yields gives up, wherever it stands. */
    {"P Q* | Q P*", "P Q !P"},
    {"P Q* | Q P", "P Q !Q"},
    {"P* Q | Q* P", "P Q"},
    {"Q P* | P Q*", "P Q !Q"},
    {"P Q* | Q R* | R P", "P R Q !R"},
    /* Reads: readers are in each other's way no more than in their own. */
    {"r:P r:Q | Q P", ""},
    {"r:P r:Q | r:Q r:P", ""},
    {"r:P Q | Q P", "P Q"},
    {"P r:Q | Q P", "P Q"},
    {"r:P Q r:R | R P", "P R Q"},
    {"r:P Q r:R | R Q", "Q R"},
    {"r:P r:R Q | Q R | P", "Q R"},
    {"r:P r:R Q | Q P | Q R", "P Q +1"},
    /* Downgraded: the read has the number of its write. */
    {"P =r:P", ""},
    {"r:P =P", ""},
    {"P =r:P Q", ""},
    /* An upgrade waits for itself. */
    {"r:P P", "P"},
    /* Parts. */
    {"P P/1", "P P/1"},
    {"P Q | Q P/1", "P P/1 Q"},
    {"P Q/2 | Q P/1", "P P/1 Q Q/2"},
    {"P Q | P/1 | Q P/2", "P P/2 Q"},
    {"P/1 Q | Q P/2 | P", ""},
    {"P/1 P/2", ""},
    {"P P/1/1", "P P/1/1"},
    {"P PP/1 | PP/1", ""},
    /* Leases: any of the others will do. */
    {"1 P Q | Q | Q P", "P Q"},
    {"2 P R Q | Q | Q P", ""},
    {"2 P R Q | Q | Q P | Q R", "P Q +1"},
    {"2 P R Q | Q | Q P | P R", "P Q +1"},
    {"2 P Q | Q | Q P", ""},
    {"? P Q | Q | Q P", ""},
    {"1 P | Q | Q P", ""},
    {"1 P Q | R Q | Q P", ""},
    {"1 P Q | Q R | R P", "P R Q"},
    {"1 P Q | Q R | R P | P", "P R Q"},
    /* Two acquire several: each has a part, and one is at the gate. */
    {"2 P Q P | P Q", "P Q"},
    {"2 P P P | P", "P"},
    {"3 P P | P", ""},
    /* A limit that was lowered: two would have to go. */
    {"1 P R Q | Q | Q P", "P Q"},
    {"1 P R Q* | Q | Q P* | R", "P Q !P"},
    /* Sessions of nobody knows how many owners: it is a deadlock if each has one only. */
    {"p q | q p", "p q ?"},
    {"p p", ""},
    {"p p q | q p", "p q ?"},
    {"p q | q p | s p", ""},
    {"p q | q p | Q p | p Q", "p q ? +1"},
    {"p+ q | q p", ""},
    {"p q+ | q p", ""},
    {"1 p p | p", ""},
    {"2 p q p | p q", ""},
    {"1 p q | q | q p", "p q ?"},
    {"P q* | q P*", "P q !P ?"},
    /* One is enough. */
    {"P Q | Q r | r P", "P r Q ?"},
    {"P P/1 | q P/1 | P q", "P P/1 +1"},
    /* A certain one beside it, and with an owner of it, whose older wait is for the session. */
    {"P Q | Q P | r s | s r", "P Q, r s ?"},
    {"r P | P r | P Q | Q P", "P Q +1"},
    {"P Q | Q P | r Q | Q r", "P Q +1"},
    /* Whether a session that holds a lease goes on decides for those that wait for room. */
    {"2 P r Q | Q | Q P | Q r", "P Q ? +1"},
};

TEST(who_can_never_go_on)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct graph g;
        struct wait_queue over[QUEUES];
        char ahead[512], back[512];
        parse(&g, cases[i].graph);
        turn_over(&g, over);
        tell(g.queues, g.n, ahead);
        tell(over, g.n, back);
        if (strcmp(ahead, cases[i].verdict) != 0 || strcmp(back, cases[i].verdict) != 0)
            fail_msg("\"%s\": \"%s\", \"%s\"; not \"%s\"", cases[i].graph, ahead, back,
                     cases[i].verdict);
    }
}

/* ---- by chance --------------------------------------------------------------------------- */

enum { NAMES = 12, TRIALS = 20000 };

static size_t draw(uint64_t *rng, size_t n)
{
    *rng = *rng * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*rng >> 33) % n;
}

/* Some queues of both kinds, and perhaps leases with their gate; half of the owners are sessions.
 */
static void draw_graph(struct graph *g, uint64_t *rng)
{
    static const char *const names[NAMES] = {"A", "B", "C", "D", "E", "F",
                                             "a", "b", "c", "d", "e", "f"};
    int64_t tokens[QUEUES * CLAIMS] = {0};
    size_t used = 0;
    *g = (struct graph){.n = 2 + draw(rng, 3)};
    for (size_t i = 0; i < QUEUES * CLAIMS; i++) {
        size_t k = draw(rng, i + 1);
        tokens[i] = tokens[k];
        tokens[k] = (int64_t)i + 1;
    }
    for (size_t q = 0; q < g->n; q++) {
        struct wait_queue *queue = &g->queues[q];
        bool leases = q == 0 && draw(rng, 2) == 0;
        *queue = (struct wait_queue){.claims = g->claims[q], .mutex_queue = leases ? 1 : WAIT_NONE};
        queue->n = draw(rng, 5);
        queue->limit = leases ? draw(rng, 4) : 0;
        for (size_t i = 0; i < queue->n; i++) {
            size_t who = draw(rng, NAMES);
            g->claims[q][i] = (struct wait_claim){.owner = names[who], .known = who < 6};
            g->claims[q][i].rank = i;
            g->claims[q][i].token = tokens[used++];
            g->claims[q][i].yields = draw(rng, 3) == 0;
            g->claims[q][i].kind = leases              ? WAIT_LEASE
                                   : draw(rng, 3) == 0 ? WAIT_SHARED
                                                       : WAIT_ALONE;
        }
    }
}

/* In the way of a claim are so many of those that are not gone; `bound`: so few may be. */
static size_t count_in_way(const struct graph *g, size_t q, size_t i, const bool *gone,
                           size_t *bound)
{
    const struct wait_queue *queue = &g->queues[q];
    const struct wait_claim *own = &queue->claims[i];
    bool lease = own->kind == WAIT_LEASE;
    size_t n = 0;
    *bound = lease && queue->limit > 0 && queue->n > queue->limit ? queue->limit - 1 : 0;
    if (lease && *bound == 0 && (queue->limit == 0 || queue->n <= queue->limit))
        return 0;
    const struct wait_queue *gate = lease ? &g->queues[queue->mutex_queue] : NULL;
    if (gate && (gate->n == 0 || strcmp(gate->claims[0].owner, own->owner) != 0))
        return 0;
    for (size_t k = 0; k < queue->n; k++) {
        const struct wait_claim *other = &queue->claims[k];
        bool same = strcmp(other->owner, own->owner) == 0;
        if (lease && k > i && same)
            return 0; /* not its newest */
        bool counts = k != i && (lease || k < i) && !(same && !own->known) &&
                      !gone[(unsigned char)other->owner[0]];
        n += counts && !(own->kind == WAIT_SHARED && other->kind == WAIT_SHARED);
    }
    return n;
}

static bool may_go(const struct graph *g, char owner, const bool *gone)
{
    static const bool nobody[128];
    size_t waits = 0, stuck = 0, bound;
    for (size_t q = 0; q < g->n; q++)
        for (size_t i = 0; i < g->queues[q].n; i++) {
            if (g->queues[q].claims[i].owner[0] != owner)
                continue;
            waits += count_in_way(g, q, i, nobody, &bound) > bound;
            stuck += count_in_way(g, q, i, gone, &bound) > bound;
        }
    return owner < 'a' ? stuck == 0 : waits == 0 || stuck < waits;
}

/* Lets everybody go who may, in whatever order; how many never may. */
static size_t count_stuck(const struct graph *g, bool *gone)
{
    bool present[128] = {false};
    size_t stuck = 0;
    for (size_t q = 0; q < g->n; q++)
        for (size_t i = 0; i < g->queues[q].n; i++)
            present[(unsigned char)g->queues[q].claims[i].owner[0]] = true;
    for (bool progress = true; progress;) {
        progress = false;
        for (int c = 127; c > 0; c--)
            if (present[c] && !gone[c] && may_go(g, (char)c, gone))
                progress = gone[c] = true;
    }
    for (int c = 1; c < 128; c++)
        stuck += present[c] && !gone[c];
    return stuck;
}

/* Each step waits, for the next one's owner; nobody is there twice; the victim is who it should. */
static void check_cycle(const struct graph *g, const struct wait_cycle *c, bool *seen)
{
    int64_t youngest = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct wait_step *s = &c->steps[i], *next = &c->steps[(i + 1) % c->n];
        const struct wait_claim *claims = g->queues[s->queue].claims;
        const char *owner = claims[s->claim].owner;
        assert_false(seen[(unsigned char)owner[0]]);
        seen[(unsigned char)owner[0]] = true;
        assert_true(s->blocker != WAIT_NONE && s->blocker != s->claim);
        assert_string_equal(claims[s->blocker].owner, name(g->queues, next));
        if (claims[s->claim].yields && claims[s->claim].token > youngest)
            youngest = claims[s->claim].token;
    }
    assert_int_equal(c->victim != WAIT_NONE, youngest > 0);
    if (c->victim != WAIT_NONE) {
        const struct wait_step *v = &c->steps[c->victim];
        assert_int_equal(g->queues[v->queue].claims[v->claim].token, youngest);
    }
}

/* Certain is what stays when all sessions go on. */
static void check_certain(const struct graph *g, const struct wait_verdict *v, bool *gone)
{
    size_t certain = 0;
    for (int c = 'a'; c < 128; c++)
        gone[c] = true;
    size_t stuck = count_stuck(g, gone);
    for (size_t i = 0; i < v->n; i++) {
        certain += v->cycles[i].certain;
        for (size_t k = 0; k < v->cycles[i].n; k++) {
            char owner = *name(g->queues, &v->cycles[i].steps[k]);
            assert_int_equal(!gone[(unsigned char)owner], v->cycles[i].certain);
        }
    }
    assert_int_equal(certain > 0, stuck > 0);
}

TEST(any_graph_is_reduced_as_by_hand)
{
    uint64_t rng = 7;
    size_t with_cycles = 0;
    struct failmem f;
    failmem_init(&f);
    for (size_t t = 0; t < TRIALS; t++) {
        struct graph g;
        struct wait_verdict v;
        bool gone[128] = {false}, seen[128] = {false};
        draw_graph(&g, &rng);
        assert_int_equal(clave__waitgraph_solve(&f.mem, 1, g.queues, g.n, &v), CLAVE_OK);
        assert_int_equal(v.stuck, count_stuck(&g, gone));
        assert_int_equal(v.n > 0, v.stuck > 0);
        for (size_t i = 0; i < v.n; i++)
            check_cycle(&g, &v.cycles[i], seen);
        for (int c = 0; c < 128; c++)
            assert_false(seen[c] && gone[c]);
        check_certain(&g, &v, gone);
        with_cycles += v.n > 0;
        clave__waitgraph_fini(&f.mem, &v);
    }
    assert_true(with_cycles > TRIALS / 20 && with_cycles < TRIALS);
    assert_int_equal(f.live, 0);
}

/* One queue of many: nothing that grows with the square of what is asked for in practice. */
TEST(a_long_queue_takes_a_moment)
{
    enum { N = 5000 };
    struct failmem f;
    struct wait_claim *claims = calloc(N, sizeof *claims);
    char(*names)[16] = calloc(N, sizeof *names);
    struct wait_verdict v;
    assert_non_null(claims);
    assert_non_null(names);
    for (size_t i = 0; i < N; i++) {
        sprintf(names[i], "S%zu", i);
        claims[i] = (struct wait_claim){.owner = names[i], .known = true, .rank = i};
        claims[i].token = (int64_t)i;
    }
    struct wait_claim back[] = {claims[N - 1], claims[0]};
    struct wait_queue queues[] = {{.claims = claims, .n = N, .mutex_queue = WAIT_NONE},
                                  {.claims = back, .n = 2, .mutex_queue = WAIT_NONE}};
    failmem_init(&f);
    assert_int_equal(clave__waitgraph_solve(&f.mem, 1, queues, 1, &v), CLAVE_OK);
    assert_int_equal(v.stuck, 0);
    clave__waitgraph_fini(&f.mem, &v);
    assert_int_equal(clave__waitgraph_solve(&f.mem, 1, queues, 2, &v), CLAVE_OK);
    assert_int_equal(v.stuck, N);
    assert_int_equal(v.n, 1);
    assert_int_equal(v.cycles[0].n, 2);
    clave__waitgraph_fini(&f.mem, &v);
    free(claims);
    free(names);
}

/* The one that waits at the end of the queue has a lease that is looked at first: the queue is gone
 * through from its end, and each time one more goes on. */
TEST(a_long_queue_backwards_takes_a_moment)
{
    enum { N = 4000 };
    struct failmem f;
    struct wait_claim *claims = calloc(2 * N, sizeof *claims);
    char(*names)[16] = calloc(N, sizeof *names);
    struct wait_verdict v;
    assert_non_null(claims);
    assert_non_null(names);
    for (size_t i = 0; i < N; i++) {
        sprintf(names[i], "S%zu", i);
        struct wait_claim *waits = &claims[i], *has = &claims[2 * N - 1 - i];
        *waits = (struct wait_claim){.owner = names[i], .known = true, .rank = i};
        *has = *waits;
        has->kind = WAIT_LEASE;
        has->rank = N - 1 - i;
    }
    struct wait_queue queues[] = {{.claims = claims + N, .n = N, .mutex_queue = WAIT_NONE},
                                  {.claims = claims, .n = N, .mutex_queue = WAIT_NONE}};
    failmem_init(&f);
    assert_int_equal(clave__waitgraph_solve(&f.mem, 1, queues, 2, &v), CLAVE_OK);
    assert_true(v.looked < 10 * 2 * N);
    assert_int_equal(v.stuck, 0);
    clave__waitgraph_fini(&f.mem, &v);
    free(claims);
    free(names);
}

enum { CHAIN = 10000 };

/* Each owner has a lock and waits for that of the next one; the last one for nothing, or for the
 * lock of the first. All ways to number them and to order the queues. */
static void look_at_a_chain(struct wait_claim *claims, struct wait_queue *queues, bool closed,
                            unsigned way)
{
    static char names[CHAIN][16];
    struct failmem f;
    struct wait_verdict v;
    for (size_t i = 0; i < CHAIN; i++) {
        size_t at = way & 1 ? CHAIN - 1 - i : i;
        size_t before = i > 0 ? i - 1 : CHAIN - 1;
        struct wait_claim *c = &claims[2 * at];
        sprintf(names[i], "S%zu", way & 2 ? CHAIN - i : i);
        c[0] = (struct wait_claim){.owner = names[i], .known = !(way & 4), .token = (int64_t)i};
        c[1] = (struct wait_claim){.owner = names[before], .known = !(way & 4), .rank = 1};
        c[1].token = (int64_t)(CHAIN + i);
        queues[at] = (struct wait_queue){.claims = c, .n = 2, .mutex_queue = WAIT_NONE};
        queues[at].n = i > 0 || closed ? 2 : 1;
    }
    failmem_init(&f);
    assert_int_equal(clave__waitgraph_solve(&f.mem, 1, queues, CHAIN, &v), CLAVE_OK);
    assert_int_equal(v.stuck, closed ? CHAIN : 0);
    assert_int_equal(v.n, closed);
    assert_int_equal(closed ? v.cycles[0].n : CHAIN, CHAIN);
    assert_true(v.looked < 10 * 2 * CHAIN);
    clave__waitgraph_fini(&f.mem, &v);
    assert_int_equal(f.live, 0);
}

TEST(a_long_chain_takes_steps_in_proportion)
{
    struct wait_claim *claims = calloc(2 * CHAIN, sizeof *claims);
    struct wait_queue *queues = calloc(CHAIN, sizeof *queues);
    assert_non_null(claims);
    assert_non_null(queues);
    for (unsigned way = 0; way < 8; way++) {
        look_at_a_chain(claims, queues, false, way);
        look_at_a_chain(claims, queues, true, way);
    }
    free(claims);
    free(queues);
}

/* Readers before and after a writer, and one session that has them all. */
TEST(a_queue_of_readers_takes_steps_in_proportion)
{
    struct wait_claim *claims = calloc(CHAIN, sizeof *claims);
    static char names[CHAIN][16];
    struct failmem f;
    struct wait_verdict v;
    assert_non_null(claims);
    failmem_init(&f);
    for (int one_owner = 0; one_owner < 2; one_owner++) {
        for (size_t i = 0; i < CHAIN; i++) {
            sprintf(names[i], "s%zu", one_owner ? 0 : i);
            claims[i] = (struct wait_claim){.owner = names[i], .rank = i, .token = (int64_t)i};
            claims[i].kind = i % 1000 == 500 ? WAIT_ALONE : WAIT_SHARED;
        }
        struct wait_claim back[] = {claims[CHAIN - 1], claims[0]};
        back[0].kind = back[1].kind = WAIT_ALONE;
        struct wait_queue queues[] = {{.claims = claims, .n = CHAIN, .mutex_queue = WAIT_NONE},
                                      {.claims = back, .n = 2, .mutex_queue = WAIT_NONE}};
        for (size_t n = 1; n <= 2; n++) {
            assert_int_equal(clave__waitgraph_solve(&f.mem, 1, queues, n, &v), CLAVE_OK);
            assert_int_equal(v.stuck > 0, n == 2 && !one_owner);
            assert_true(v.looked < 10 * CHAIN);
            clave__waitgraph_fini(&f.mem, &v);
        }
    }
    free(claims);
}

TEST(every_allocation_may_fail_once)
{
    struct graph g;
    struct failmem f;
    struct wait_verdict v;
    parse(&g, "P Q | Q P");
    failmem_init(&f);
    for (size_t first = 1;; first++) {
        failmem_arm(&f, first, 1);
        clave_err err = clave__waitgraph_solve(&f.mem, 1, g.queues, g.n, &v);
        assert_int_equal(err, f.failed ? CLAVE_ENOMEM : CLAVE_OK);
        assert_int_equal(v.n, f.failed ? 0 : 1);
        clave__waitgraph_fini(&f.mem, &v);
        assert_int_equal(f.live, 0);
        if (!f.failed)
            break;
    }
}
