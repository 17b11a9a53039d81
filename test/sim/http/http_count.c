#include "http/http_count.h"

#include "http/http_world.h"
#include "server/server_internal.h"

enum { MOST_AT_ONCE = 3 };

void http_count_init(struct http_count *t, struct http_world *of)
{
    *t = (struct http_count){.of = of};
    t->changes[t->nchanges++] = (struct count_change){.version = -1};
}

static struct count_request *count_find(struct http_count *t, uint64_t number)
{
    return &t->requests[(number - 1) % COUNT_REQUESTS];
}

uint64_t http_count_new(struct http_count *t, int64_t amount)
{
    *count_find(t, ++t->nrequests) = (struct count_request){.amount = amount};
    return t->nrequests;
}

int64_t http_count_amount(struct http_count *t, uint64_t number)
{
    return count_find(t, number)->amount;
}

void http_count_asked(struct http_count *t, uint64_t number)
{
    struct count_request *r = count_find(t, number);
    r->tries++;
    r->refused = false;
}

/* ---- what stands at the servers -------------------------------------------------------------- */

static struct count_change *count_newest(struct http_count *t)
{
    return &t->changes[(t->nchanges - 1) % COUNT_CHANGES];
}

static struct count_change count_read(const struct http_count *t)
{
    const struct node *n =
        clave__tree_find(&t->of->server->server->tree, clave__jbytes(COUNT_PATH));
    struct count_change now = {.version = -1, .at = t->of->w->now};
    struct jbytes data = n ? clave__node_data(n) : clave__jbytes("");
    uint64_t value = 0;
    for (int i = 0; data.n == 8 && i < 8; i++)
        value = value << 8 | (uint8_t)data.p[i];
    if (n) {
        now.czxid = n->stat.czxid;
        now.version = n->stat.version;
        now.value = (int64_t)value;
    }
    return now;
}

/* A crash of the server undoes what was not on its disk, and a backup more than that. */
static void count_go_back(struct http_count *t, const struct count_change *now)
{
    while (t->nchanges > 1 &&
           (count_newest(t)->czxid != now->czxid || count_newest(t)->version > now->version))
        t->nchanges--;
    t->went_back_at = t->of->w->now;
    for (size_t i = 0; i < COUNT_REQUESTS; i++) {
        struct count_request *r = &t->requests[i];
        if (r->made == 0 || r->made <= 1 + (int64_t)count_newest(t)->version)
            continue;
        r->made = 0;
    }
}

static void count_judge_acknowledged(struct http_count *t)
{
    for (size_t i = 0; i < COUNT_REQUESTS && !t->of->checker->restored && !t->lost_track; i++)
        if (t->requests[i].told && t->requests[i].made == 0)
            http_rule_broken(t->of->w, RULE_COUNT_STAYS, "the acknowledged change by %lld is gone",
                             (long long)t->requests[i].amount);
}

/* Marks n requests that were not made yet, and whose amounts make this sum. */
static bool count_match(struct http_count *t, size_t from, int n, int64_t sum, int64_t made)
{
    for (size_t i = from; i < COUNT_REQUESTS && n > 0; i++) {
        struct count_request *r = &t->requests[i];
        if (r->tries == 0 || r->made != 0 || r->amount > sum || (n == 1 && r->amount != sum))
            continue;
        if (n > 1 && !count_match(t, i + 1, n - 1, sum - r->amount, made))
            continue;
        r->made = made;
        if (r->refused)
            http_rule_broken(t->of->w, RULE_REFUSED_IS_NOT_BEGUN,
                             "the change by %lld is made, which was refused", (long long)r->amount);
        return true;
    }
    return false;
}

static void count_changes(struct http_count *t, const struct count_change *now)
{
    const struct count_change *was = count_newest(t);
    int64_t n = (int64_t)now->version - was->version, sum = now->value - was->value;
    if (n == 0)
        return;
    t->counted += n > 0 ? (uint64_t)n : 0;
    t->lost_track |= n > MOST_AT_ONCE;
    bool fine = n > 0 && (was->version < 0 || now->czxid == was->czxid) &&
                (t->lost_track || count_match(t, 0, (int)n, sum, 1 + (int64_t)now->version));
    if (!fine && !t->of->checker->restored)
        http_rule_broken(
            t->of->w, RULE_COUNT_ONCE,
            "it goes from %lld to %lld in %lld changes, which are none that were asked "
            "for and not made yet",
            (long long)was->value, (long long)now->value, (long long)n);
    t->changes[t->nchanges++ % COUNT_CHANGES] = *now;
}

void http_count_look(struct http_count *t)
{
    struct server_host *server = t->of->server;
    int64_t zxid = inspector_zxid(server);
    bool goes_back = server->stats.starts != t->start || zxid < t->zxid;
    if (zxid == t->zxid && !goes_back)
        return;
    t->zxid = zxid;
    t->start = server->stats.starts;
    struct count_change now = count_read(t);
    if (goes_back)
        count_go_back(t, &now);
    count_changes(t, &now);
    if (goes_back)
        count_judge_acknowledged(t);
}

/* ---- what the gates tell --------------------------------------------------------------------- */

/* As of then, or after it; -1: that is not known any more. */
static int64_t count_as_of(struct http_count *t, int64_t at)
{
    for (size_t i = t->nchanges; i > 0 && i + COUNT_CHANGES > t->nchanges; i--)
        if (t->changes[(i - 1) % COUNT_CHANGES].at <= at)
            return t->changes[(i - 1) % COUNT_CHANGES].value;
    return -1;
}

/* A member that lags does not answer a sync, but a leader that was deposed does by itself. */
static void count_judge_reading(struct http_count *t, const struct http_call *c)
{
    int64_t value = c->status == 200 ? http_json_int(c->answer, "value") : 0;
    int64_t least = count_as_of(t, c->sent_at), most = count_newest(t)->value;
    if ((c->status != 200 && c->status != 404) || c->gate->nservers > 1 || least < 0 ||
        t->went_back_at >= c->sent_at || t->lost_track)
        return;
    if (value < least || value > most)
        http_rule_broken(t->of->w, RULE_COUNT_IS_TRUE, "%s reads %lld, and it was %lld to %lld",
                         c->gate->name, (long long)value, (long long)least, (long long)most);
}

static void count_judge_change(struct http_count *t, const struct http_call *c)
{
    struct count_request *r = count_find(t, c->number);
    int64_t before = http_json_int(c->answer, "before"), value = http_json_int(c->answer, "value");
    r->told = true;
    if (value - before != r->amount)
        http_rule_broken(t->of->w, RULE_COUNT_IS_TRUE, "%s says that %lld became %lld, by %lld",
                         c->gate->name, (long long)before, (long long)value, (long long)r->amount);
    if (t->of->server->server)
        count_judge_acknowledged(t);
}

void http_count_told(struct http_count *t, const struct http_call *c)
{
    bool runs = t->of->server->server != NULL;
    if (runs)
        http_count_look(t);
    struct count_request *r = c->number > 0 ? count_find(t, c->number) : NULL;
    char kind[16] = "";
    http_json(c->answer, "class", kind, sizeof kind);
    if (!r && runs)
        count_judge_reading(t, c);
    else if (!r)
        return;
    else if (c->status == 200)
        count_judge_change(t, c);
    else if (r->tries == 1 && (strcmp(kind, "retry") == 0 || strcmp(kind, "final") == 0)) {
        r->refused = true;
        if (r->made != 0)
            http_rule_broken(t->of->w, RULE_REFUSED_IS_NOT_BEGUN,
                             "%s refuses a change by %lld with class %s, and it is made",
                             c->gate->name, (long long)r->amount, kind);
    }
}
