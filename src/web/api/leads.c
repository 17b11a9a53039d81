/* leads.c - whether a candidate leads, for programs that route requests: GET
 * /v1/elections/PATH?leads=ID, and its other forms /v1/leader/PATH?id=ID and
 * /v1/replica/PATH?id=ID. A balancer takes 200 as up and anything else as down.
 *
 * Answered from the gate's copy in memory, at once: a balancer's check that has to wait for its
 * answer is a check that fails. An answer "no" has the code EBUSY; "not known", while the copy is
 * not current or not whole, has EUNREACHABLE. Both are 503.
 *
 * A balancer takes a former leader out only some time after the first answer "no", and by then it
 * could have the new leader in already. ?min_term delays the 200 of a new leader by a time that the
 * administrator of the balancer chooses, counted from when this gate saw the term begin (struct
 * election, seen_from), by the engine's clock, which nobody sets. docs/guide/elections.md has the
 * arithmetic.
 *
 * Invariant: among IDs each of which names one candidate, at most one gets 200 from one gate at a
 * time, and min_term lies between the last 200 of a leader and the first 200 of the next. */
#include "web/api/api.h"

#include <inttypes.h>
#include <string.h>

#include "base/time_format.h"
#include "observe/lock_json.h"
#include "observe/lock_who.h"
#include "web/observe/observe.h"

enum { LONGEST_MIN_TERM_MS = 3600 * 1000, MOST_STANDING = 1000 };

struct leads {
    struct web_exchange *x;
    struct observe *o;
    const char *path, *id;
    int64_t min_term_ms;
    const struct lock_queue *q;     /* NULL: there are no candidates */
    const struct lock_node *leader; /* NULL: nobody leads */
    const struct lock_node *at;     /* the candidate that the answer is about; NULL: none */
    int64_t led_ms;                 /* for how long this gate has seen the leader lead */
};

/* ---- whose place it is ----------------------------------------------------------------------- */

/* True if the text is an id as `clave elect` makes one by itself, "web1:4711", and `host` is the
 * host in it, which names the candidate, too. */
static bool leads_is_host_of(const char *host, const char *text)
{
    size_t n = strlen(host);
    return strncmp(text, host, n) == 0 && text[n] == ':' && text[n + 1] != '\0' &&
           strspn(text + n + 1, "0123456789") == strlen(text + n + 1);
}

/* The id of a claim is the UUID in the name of its node, "_c_UUID-latch-0000000001". */
static bool leads_is_claim(const char *id, const char *node)
{
    return strlen(id) == CLAVE_UUID_TEXT && strncmp(node, "_c_", 3) == 0 &&
           strncmp(node + 3, id, CLAVE_UUID_TEXT) == 0 && node[3 + CLAVE_UUID_TEXT] == '-';
}

static bool leads_is_named(const struct lock_node *p, const char *id)
{
    char text[LOCK_TEXT_CAP];
    clave_identity says;
    if (strcmp(p->name, id) == 0 || leads_is_claim(id, p->name))
        return true;
    clave__lock_who_identity(p, text, &says);
    const char *const names[] = {says.name, says.host, says.text};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] && strcmp(names[i], id) == 0)
            return true;
    return says.text && leads_is_host_of(id, says.text);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* For how many ms the leader's session is certain to keep its lead, counted from when this request
 * was sent. That is known only of a claim that this gate made and that no other gate can have
 * released; otherwise 0. */
static int64_t leads_valid_ms(const struct leads *l)
{
    const struct lock_node *p = l->leader;
    struct http_session *s =
        p->session ? clave__http_session_by_id(l->x->web->sessions, p->session->id) : NULL;
    if (!s || clave__http_session_is_shared(s))
        return 0;
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        if (c->part.token != p->token)
            continue;
        int64_t ms = clave__claim_valid_ms(c, l->x->arrived),
                reported = c->reported_until - l->x->arrived;
        return ms < reported ? ms : reported;
    }
    return 0;
}

static void leads_members(struct json *j, const void *arg)
{
    const struct leads *l = arg;
    int64_t age = clave__observe_age(l->o);
    if (l->leader) {
        clave__lock_place_json(j, "holder", l->leader);
        clave__lock_token_json(j, "term", l->leader->token);
        clave__json_int(j, "led_ms", l->led_ms);
    } else {
        clave__json_string(j, "holder", NULL);
    }
    if (age >= 0)
        clave__json_int(j, "as_of_ms", clave__observe_now(l->o) - age);
    clave__observe_copy_json(j, l->x);
}

static void leads_answer_yes(struct leads *l, const char *role)
{
    struct json *j = &l->x->json;
    clave__observe_copy_set_headers(l->x);
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", l->path);
    clave__json_string(j, "id", l->id);
    clave__json_string(j, "role", role);
    int64_t valid = l->at == l->leader ? leads_valid_ms(l) : 0;
    if (valid > 0)
        clave__json_int(j, "valid_ms", valid);
    leads_members(j, l);
    clave__web_answer_object(l->x, 200);
}

/* `wait_ms`: after this time the answer may be yes; 0: not known. */
static struct problem leads_no(const struct leads *l, int64_t wait_ms)
{
    clave__observe_copy_set_headers(l->x);
    return (struct problem){.status = 503,
                            .err = CLAVE_EBUSY,
                            .path = l->path,
                            .retry_after_s = (unsigned)((wait_ms + 999) / 1000),
                            .members = leads_members,
                            .arg = l};
}

/* ---- the question ---------------------------------------------------------------------------- */

/* false: it has answered. */
static bool leads_read(struct web_exchange *x, const char *id, struct leads *l)
{
    static const int64_t bounds[] = {0, LONGEST_MIN_TERM_MS};
    const char *min_term = clave__web_query(x, "min_term");
    char fault[DURATION_FAULT_CAP];
    *l = (struct leads){.x = x, .o = x->web->observe, .path = x->params[0], .id = id};
    if (!clave__param_path(x))
        return false;
    if (!id || !*id)
        return clave__web_bad_request(
            x, "%s is %s: it is the name, the host or the claim's id of a candidate",
            clave__web_query(x, "leads") ? "leads" : "id", id ? "empty" : "missing");
    const char *wrong =
        min_term ? clave__duration_within(min_term, bounds, &l->min_term_ms, fault) : NULL;
    return !wrong || clave__web_bad_request(x, "min_term: %s", wrong);
}

/* Finds out who leads and sets l->leader (NULL: nobody does). Returns false, having answered, if
 * the copy cannot tell. */
static bool leads_is_known(struct leads *l)
{
    struct web_exchange *x = l->x;
    clave__observe_feed_start(l->o);
    if (!clave__observe_copy_covers(x, l->path, "who leads at"))
        return false;
    if (!clave__observe_is_current(l->o) || !clave__observe_is_complete(l->o)) {
        clave__observe_copy_answer_old(x, l->path, "who leads at");
        return false;
    }
    l->q = clave__lock_model_get(&l->o->model, l->path, false);
    struct lock_node *first = l->q ? clave__lock_holder_after(l->q, NULL) : NULL;
    l->leader = first && first->kind == QUEUE_LATCH ? first : NULL;
    if (l->leader)
        l->led_ms = clave__observe_led_ms(l->o, l->leader);
    return true;
}

static void leads_ask(struct web_exchange *x, const char *id)
{
    struct leads *l = clave__web_must_alloc(x, sizeof *l);
    if (!l || !leads_read(x, id, l) || !leads_is_known(l))
        return;
    char who[LOCK_WHO_CAP];
    bool leads = l->leader && leads_is_named(l->leader, id);
    struct problem no = leads_no(l, leads ? l->min_term_ms - l->led_ms : 0);
    if (!l->leader) {
        clave__web_problem(x, &no, "nobody leads at %s", l->path);
    } else if (!leads) {
        clave__web_problem(x, &no, "%s does not lead at %s: %s does", id, l->path,
                           clave__lock_who(l->leader, who));
    } else if (l->led_ms < l->min_term_ms) {
        clave__web_problem(x, &no,
                           "%s leads at %s, as this gate has seen for %" PRId64
                           " ms, and min_term is %" PRId64 " ms",
                           id, l->path, l->led_ms, l->min_term_ms);
    } else {
        l->at = l->leader;
        leads_answer_yes(l, "leader");
    }
}

void clave__web_get_election_or_leads(struct web_exchange *x)
{
    const char *id = clave__web_query(x, "leads");
    if (id && clave__web_query(x, "fresh"))
        clave__web_bad_request(x, "leads is answered from memory: leave out fresh");
    else if (id)
        leads_ask(x, id);
    else if (clave__web_query(x, "min_term"))
        clave__web_bad_request(x, "min_term belongs to leads=ID");
    else
        clave__web_get_election(x);
}

void clave__web_get_leader(struct web_exchange *x)
{
    leads_ask(x, clave__web_query(x, "id"));
}

/* 200 for a candidate that stands in the election and does not lead: it follows the leader and may
 * take over. */
void clave__web_get_replica(struct web_exchange *x)
{
    const char *id = clave__web_query(x, "id");
    struct leads *l = clave__web_must_alloc(x, sizeof *l);
    if (!l || !leads_read(x, id, l) || !leads_is_known(l))
        return;
    const struct lock_node *p = NULL;
    bool leads = l->leader && leads_is_named(l->leader, id);
    for (int i = 0;
         !leads && !l->at && l->q && i < MOST_STANDING && (p = clave__lock_waiter_after(l->q, p));
         i++)
        if (p->kind == QUEUE_LATCH && leads_is_named(p, id))
            l->at = p;
    struct problem no = leads_no(l, 0);
    if (l->at)
        leads_answer_yes(l, "replica");
    else if (leads)
        clave__web_problem(x, &no, "%s leads at %s", id, l->path);
    else
        clave__web_problem(x, &no, "%s is no candidate at %s", id, l->path);
}
