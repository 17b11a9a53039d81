/* handed_session.c - see handed_session.h. */
#include "client/handed_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "base/err_class.h"
#include "base/hash/fnv.h"
#include "base/path.h"
#include "client/client_internal.h"
#include "wire/opcode.h"

static const char first_line[] = "clave-session 1\n";

/* ---- reading --------------------------------------------------------------------------------- */

/* True if the text goes on with this; then moves behind it. */
static bool handed_skip(const char **at, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

static int handed_digit(char ch, unsigned base)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = ch ? strchr(digits, ch) : NULL;
    return at && at - digits < (int)base ? (int)(at - digits) : -1;
}

/* A number of at most `most` digits, and the character behind it. */
static bool handed_number(const char **at, unsigned base, unsigned most, char behind, uint64_t *out)
{
    unsigned n = 0;
    for (*out = 0; n < most && handed_digit((*at)[n], base) >= 0; n++)
        *out = *out * base + (uint64_t)handed_digit((*at)[n], base);
    if (n == 0 || (*at)[n] != behind)
        return false;
    *at += n + 1;
    return true;
}

static bool handed_passwd(const char **at, uint8_t out[16])
{
    for (size_t i = 0; i < 16; i++, *at += 2) {
        int high = handed_digit((*at)[0], 16);
        int low = high < 0 ? -1 : handed_digit((*at)[1], 16);
        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return handed_skip(at, "\n");
}

/* A path up to the end of the line. */
static bool handed_path(const char **at, const char **out)
{
    size_t n = strcspn(*at, "\n");
    *out = *at;
    if ((*at)[n] == '\0' || clave__path_fault(*at, n, false))
        return false;
    *at += n + 1;
    return true;
}

static bool handed_hold(const char **at, struct handed_hold *h)
{
    enum { DIGITS = 18 };
    uint64_t czxid, version, mark, ends = (uint64_t)CLAVE_NEVER;
    bool ok = handed_number(at, 10, DIGITS, ' ', &czxid) && czxid > 0 &&
              handed_number(at, 10, 10, ' ', &version) && version <= INT32_MAX &&
              (handed_skip(at, "never ") || handed_number(at, 10, DIGITS, ' ', &ends)) &&
              handed_number(at, 16, 16, ' ', &mark) && handed_path(at, &h->path);
    if (ok)
        *h = (struct handed_hold){.path = h->path,
                                  .czxid = (int64_t)czxid,
                                  .version = (int32_t)version,
                                  .mark = mark,
                                  .ends = (int64_t)ends};
    return ok;
}

/* Returns what is wrong, or NULL. The texts of *h point into `text`, up to the ends of their lines.
 * Without `holds` they are only counted. */
static const char *handed_scan(const char *text, struct handed_session *h,
                               struct handed_hold *holds)
{
    const char *at = text;
    uint64_t id = 0, timeout = 0;
    if (!handed_skip(&at, first_line))
        return "the session to resume does not begin with \"clave-session 1\": it was not handed "
               "over by clave, or by a later version";
    bool ok = handed_skip(&at, "id ") && handed_number(&at, 16, 16, '\n', &id) && id != 0 &&
              handed_skip(&at, "passwd ") && handed_passwd(&at, h->passwd) &&
              handed_skip(&at, "timeout ") && handed_number(&at, 10, 9, '\n', &timeout) &&
              timeout > 0 && handed_skip(&at, "ticket ") &&
              handed_number(&at, 16, 16, '\n', &h->ticket) && handed_skip(&at, "chroot ") &&
              handed_path(&at, &h->chroot);
    h->id = (int64_t)id;
    h->timeout_ms = (int32_t)timeout;
    for (h->nholds = 0; ok && handed_skip(&at, "held "); h->nholds++) {
        struct handed_hold one;
        ok = handed_hold(&at, holds ? &holds[h->nholds] : &one);
    }
    ok = ok && h->nholds > 0 && strcmp(at, "end\n") == 0;
    return ok ? NULL : "the session to resume has a damaged line, or lacks its end";
}

const char *clave__handed_fault(const char *text)
{
    struct handed_session h;
    return handed_scan(text, &h, NULL);
}

/* Cuts a text off at the end of its line. */
static void handed_cut(struct handed_session *h, const char *text)
{
    h->text[(size_t)(text - h->text) + strcspn(text, "\n")] = '\0';
}

clave_err clave__handed_parse(struct handed_session *h, const struct clave_mem *mem,
                              const char *text)
{
    h->text = clave__mem_strdup(mem, text);
    if (!h->text)
        return CLAVE_ENOMEM;
    (void)handed_scan(h->text, h, NULL);
    h->holds = clave__mem_alloc(mem, h->nholds * sizeof *h->holds);
    if (!h->holds)
        return CLAVE_ENOMEM;
    (void)handed_scan(h->text, h, h->holds);
    handed_cut(h, h->chroot);
    if (strcmp(h->chroot, "/") == 0)
        h->chroot = "";
    for (size_t i = 0; i < h->nholds; i++)
        handed_cut(h, h->holds[i].path);
    return CLAVE_OK;
}

void clave__handed_fini(struct handed_session *h, const struct clave_mem *mem)
{
    for (size_t i = 0; i < h->nholds && h->holds; i++)
        clave__mem_free(mem, h->holds[i].data);
    clave__mem_free(mem, h->text);
    clave__mem_free(mem, h->holds);
    h->text = NULL;
    h->holds = NULL;
    h->nholds = 0;
    h->id = 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

clave_err clave__handed_format(const struct handed_session *h, struct buf *out)
{
    enum { HEAD = 256, NUMBERS = 100 };
    char head[HEAD], passwd[33], ends[24] = "never";
    for (size_t i = 0; i < sizeof h->passwd; i++)
        snprintf(passwd + 2 * i, 3, "%02x", h->passwd[i]);
    snprintf(head, sizeof head,
             "%sid %" PRIx64 "\npasswd %s\ntimeout %" PRId32 "\nticket %016" PRIx64 "\nchroot ",
             first_line, (uint64_t)h->id, passwd, h->timeout_ms, h->ticket);
    const char *chroot = h->chroot[0] ? h->chroot : "/";
    clave_err err = clave__buf_append(out, head, strlen(head));
    if (err == CLAVE_OK)
        err = clave__buf_append(out, chroot, strlen(chroot));
    for (size_t i = 0; i < h->nholds && err == CLAVE_OK; i++) {
        const struct handed_hold *one = &h->holds[i];
        if (one->ends != CLAVE_NEVER)
            snprintf(ends, sizeof ends, "%" PRId64, one->ends > 0 ? one->ends : 0);
        else
            memcpy(ends, "never", sizeof "never");
        char numbers[NUMBERS];
        snprintf(numbers, sizeof numbers, "\nheld %" PRId64 " %" PRId32 " %s %" PRIx64 " ",
                 one->czxid, one->version, ends, one->mark);
        err = clave__buf_append(out, numbers, strlen(numbers));
        if (err == CLAVE_OK)
            err = clave__buf_append(out, one->path, strlen(one->path));
    }
    static const char end[] = "\nend\n";
    return err == CLAVE_OK ? clave__buf_append(out, end, sizeof end) : err;
}

void clave__client_hand_over_session(const clave_async_client *c, struct handed_session *h)
{
    h->id = c->session.id;
    memcpy(h->passwd, c->session.passwd, sizeof h->passwd);
    h->timeout_ms = c->session.timeout_ms;
    h->chroot = c->hosts.chroot;
}

/* ---- whose it is ----------------------------------------------------------------------------- */

static const char mark_key[] = "\n" HANDED_MARK_KEY "=";

static bool handed_is_form(const void *data, size_t n)
{
    static const char form[] = "clave/1\n";
    return n >= sizeof form - 1 && memcmp(data, form, sizeof form - 1) == 0;
}

/* The newest mark in a node's data; NULL: there is none. */
static const char *handed_find_mark(const char *data, size_t n)
{
    size_t nkey = sizeof mark_key - 1;
    const char *found = NULL;
    for (size_t i = 0; i + nkey + HANDED_MARK <= n; i++)
        if (memcmp(data + i, mark_key, nkey) == 0)
            found = data + i + nkey;
    return found;
}

uint64_t clave__handed_mark_of(const void *data, size_t n)
{
    const char *mark = handed_find_mark(data, n);
    return mark ? clave__fnv1a(FNV1A_BASIS, mark, HANDED_MARK) : 0;
}

char *clave__client_handed_put_mark(const clave_async_client *c, const void *data, size_t n,
                                    size_t *out)
{
    size_t nkey = sizeof mark_key - 1;
    char *copy = clave__mem_alloc(&c->base.mem, n + nkey + HANDED_MARK + 1 /* newline */);
    if (!copy)
        return NULL;
    if (n > 0)
        memcpy(copy, data, n);
    *out = n;
    if (!handed_is_form(copy, n))
        return copy;
    const char *old = handed_find_mark(copy, n);
    char *at = copy + (old ? (size_t)(old - copy) : n);
    if (!old) {
        at -= at[-1] == '\n'; /* the key begins with one */
        memcpy(at, mark_key, nkey);
        at += nkey;
        at[HANDED_MARK] = '\n';
        *out = (size_t)(at - copy) + HANDED_MARK + 1;
    }
    memcpy(at, c->handed.mark, HANDED_MARK);
    return copy;
}

/* Tells from a node's data which process has the hold. If the mark is not the one that was handed
 * over, another process has taken the hold up, with this text or a later one. If the mark is the
 * same but the version of data in clave's form is not, somebody has asked for a release, because a
 * process that takes a hold up always marks such data. */
enum handed_whose { HANDED_NOBODYS, HANDED_OURS, HANDED_OTHERS };
static enum handed_whose handed_tell_whose(const clave_async_client *c, const struct handed_hold *h,
                                           const clave_result *res)
{
    const char *mark = handed_find_mark(res->data, res->len);
    if (mark && memcmp(mark, c->handed.mark, HANDED_MARK) == 0)
        return HANDED_OURS;
    if (clave__handed_mark_of(res->data, res->len) != h->mark)
        return HANDED_OTHERS;
    bool has_room = handed_is_form(res->data, res->len);
    return has_room || res->stat->version == h->version ? HANDED_NOBODYS : HANDED_OTHERS;
}

/* ---- the claim ------------------------------------------------------------------------------- */

enum { CLAIM_MOST = 32, CLAIM_BYTES = LARGE_REQUEST / 2, CLAIM_PAUSE_MS = 100 };

static void claim_go_on(clave_async_client *c);

/* True if the claim can make its next requests now. */
static bool claim_is_free(const clave_async_client *c)
{
    return clave__handed_is_unclaimed(c) && c->handed.asking == 0 &&
           clave__link_is_open(&c->link) && c->link.verdict.kind == VERDICT_NONE;
}

static void claim_drop_data(clave_async_client *c, struct handed_hold *h)
{
    clave__mem_free(&c->base.mem, h->data);
    h->data = NULL;
    h->writing = false;
}

/* Another process has the session. */
static void claim_lost(clave_async_client *c, const struct handed_hold *h)
{
    clave__client_fault(c,
                        "%s was handed over once and is no longer as it was: another process has "
                        "taken the session up, or has asked for the hold",
                        h->path);
    clave__link_report(c, VERDICT_ENDED, CLAVE_EREPLACED, NULL);
}

/* A server refuses it for good, for lack of permissions for instance. */
static void claim_refused(clave_async_client *c, clave_err err)
{
    clave__log(&c->base.log, CLAVE_LOG_WARN,
               "what was handed over with the session cannot be taken up: %s; the session is given "
               "up",
               clave_strerror(err));
    clave__link_report(c, VERDICT_LOST, err, NULL);
}

/* Makes a request that leaves before all others. */
static void claim_ask(clave_async_client *c, struct request_spec *spec)
{
    struct list others;
    list_init(&others);
    list_splice(&others, &c->pipeline.unsent);
    spec->again = AGAIN_NOT_UNSENT;
    spec->quiet = spec->claims = true;
    clave_err err =
        spec->nops > 0 ? clave__submit_multi(c, spec) : clave__submit_read(c, OP_GET_DATA, spec);
    list_splice(&c->pipeline.unsent, &others);
    c->handed.asking += err == CLAVE_OK;
    if (err == CLAVE_ENOMEM)
        clave__link_report(c, VERDICT_DROP, CLAVE_ENOMEM, NULL);
    else if (err != CLAVE_OK)
        claim_refused(c, err);
}

/* What was read says whose the hold is, and what the claim is to write. ENOMEM. */
static clave_err claim_take_read(clave_async_client *c, struct handed_hold *h,
                                 const clave_result *res)
{
    enum handed_whose whose = handed_tell_whose(c, h, res);
    if (whose == HANDED_OTHERS) {
        claim_lost(c, h);
        return CLAVE_OK;
    }
    h->claimed = whose == HANDED_OURS;
    h->asked |= res->stat->version > h->version + h->claimed;
    h->version = res->stat->version;
    if (h->claimed) {
        h->mark = clave__handed_mark_of(res->data, res->len);
        return CLAVE_OK;
    }
    h->data = clave__client_handed_put_mark(c, res->data, res->len, &h->ndata);
    return h->data ? CLAVE_OK : CLAVE_ENOMEM;
}

static void claim_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    struct handed_hold *h = arg;
    clave_err err = res->err;
    c->handed.asking--;
    if (!clave__handed_is_unclaimed(c))
        return;
    if (err == CLAVE_OK)
        err = claim_take_read(c, h, res);
    h->gone = err == CLAVE_ENONODE;
    if (err == CLAVE_ENOMEM)
        clave__link_report(c, VERDICT_DROP, CLAVE_ENOMEM, NULL);
    else if (err != CLAVE_OK && err != CLAVE_ENONODE)
        c->handed.trouble = err;
    claim_go_on(c);
}

/* Reads the nodes that have no mark of this process yet. */
static void claim_read(clave_async_client *c)
{
    struct handed_session *s = &c->handed;
    clave__timers_clear(&c->base.timers, &s->pause);
    s->trouble = CLAVE_OK;
    for (size_t i = 0; i < s->nholds; i++) {
        struct handed_hold *h = &s->holds[i];
        struct request_spec spec = {.path = h->path, .cb = claim_on_read, .arg = h};
        claim_drop_data(c, h);
        if (!h->gone && !h->claimed)
            claim_ask(c, &spec);
    }
}

static void claim_on_pause(struct timer *t, int64_t now)
{
    struct handed_session *s = LIST_ENTRY(t, struct handed_session, pause);
    clave_async_client *c = LIST_ENTRY(s, clave_async_client, handed);
    (void)now;
    if (claim_is_free(c))
        claim_read(c);
}

static void claim_on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct handed_session *s = &c->handed;
    (void)arg;
    s->asking--;
    for (size_t i = 0; i < s->nholds; i++) {
        struct handed_hold *h = &s->holds[i];
        if (!h->writing)
            continue;
        if (res->err == CLAVE_OK) {
            h->claimed = true;
            h->version++;
            h->mark = clave__handed_mark_of(h->data, h->ndata);
        }
        claim_drop_data(c, h);
    }
    bool changed = res->err == CLAVE_EBADVERSION || res->err == CLAVE_ENONODE;
    if (changed && claim_is_free(c)) {
        claim_read(c);
        return;
    }
    s->trouble = res->err;
    claim_go_on(c);
}

/* Returns false if there is nothing to write. */
static bool claim_write(clave_async_client *c)
{
    struct handed_session *s = &c->handed;
    clave_op ops[CLAIM_MOST];
    struct request_spec spec = {.ops = ops, .cb = claim_on_written};
    size_t bytes = 0;
    for (size_t i = 0; i < s->nholds && spec.nops < CLAIM_MOST; i++) {
        struct handed_hold *h = &s->holds[i];
        if (!h->data)
            continue;
        bytes += h->ndata;
        if (spec.nops > 0 && bytes > CLAIM_BYTES)
            break;
        h->writing = true;
        ops[spec.nops++] = (clave_op){.kind = CLAVE_OP_SET,
                                      .path = h->path,
                                      .data = h->data,
                                      .len = h->ndata,
                                      .version = h->version};
    }
    if (spec.nops > 0)
        claim_ask(c, &spec);
    return spec.nops > 0;
}

/* The time in which a recipe may take up the rest begins anew. */
static void handed_wait(clave_async_client *c)
{
    clave__timers_set(&c->base.timers, &c->handed.leftover,
                      deadline_after(c->base.now, c->session.timeout_ms));
}

/* The requests that were made since have waited for this. */
static void claim_made(clave_async_client *c)
{
    c->handed.claimed = true;
    clave__timers_clear(&c->base.timers, &c->handed.unconfirmed);
    handed_wait(c);
    clave__pipeline_fill(c);
}

/* Takes the next step when every request of the last one was answered. */
static void claim_go_on(clave_async_client *c)
{
    struct handed_session *s = &c->handed;
    bool any = false;
    /* A server that wants another identity is left for the next one. */
    if (!claim_is_free(c) || s->trouble == CLAVE_ESASLREQUIRED)
        return;
    if (s->trouble != CLAVE_OK) {
        if (clave__err_passes(s->trouble))
            clave__timers_set(&c->base.timers, &s->pause, c->base.now + CLAIM_PAUSE_MS);
        else
            claim_refused(c, s->trouble);
        return;
    }
    if (claim_write(c))
        return;
    for (size_t i = 0; i < s->nholds; i++)
        any = any || s->holds[i].claimed;
    if (any) {
        claim_made(c);
        return;
    }
    clave__log(&c->base.log, CLAVE_LOG_WARN,
               "nothing is left of what was handed over with the session: it may be another "
               "process's, and is given up");
    clave__link_report(c, VERDICT_LOST, CLAVE_EREPLACED, NULL);
}

/* ---- what the recipes take up ---------------------------------------------------------------- */

void clave__client_handed_gone(const clave_async_client *c, struct handed_hold *h)
{
    h->gone = true;
    if (c->handed.id != 0)
        clave__log(&c->base.log, CLAVE_LOG_WARN,
                   "%s was handed over, and somebody has deleted it: it is queued for anew",
                   h->path);
}

/* True if the node is of the kind that a recipe with this stem makes. */
static bool handed_fits(const char *path, const char *stem)
{
    size_t dir = (size_t)(clave__path_name(stem) - stem);
    const char *name = path + dir;
    return strncmp(path, stem, dir) == 0 && name == clave__path_name(path) &&
           strncmp(name, "_c_", 3) == 0 && strlen(name) > CLAVE_PROTECTED_PREFIX &&
           strncmp(name + CLAVE_PROTECTED_PREFIX, stem + dir, strlen(stem + dir)) == 0;
}

struct handed_hold *clave__client_take_handed(clave_async_client *c, const char *stem)
{
    struct handed_session *h = &c->handed;
    for (size_t i = 0; i < h->nholds && h->id != 0; i++) {
        if (h->holds[i].taken || !handed_fits(h->holds[i].path, stem))
            continue;
        h->holds[i].taken = true;
        return &h->holds[i];
    }
    return NULL;
}

const struct handed_hold *clave__client_next_untaken(const clave_async_client *c,
                                                     const struct handed_hold *after)
{
    const struct handed_session *h = &c->handed;
    const struct handed_hold *one = after ? after + 1 : h->holds;
    const struct handed_hold *end = h->holds + (h->id != 0 ? h->nholds : 0);
    while (one < end && (one->taken || one->gone))
        one++;
    return one < end ? one : NULL;
}

void clave__client_untake_handed(clave_async_client *c, struct handed_hold *h)
{
    h->taken = false;
    if (c->handed.id != 0 && c->handed.claimed)
        handed_wait(c);
}

static void handed_on_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    struct handed_hold *h = arg;
    if (clave_err_classify(res->err) == CLAVE_CLASS_FINAL)
        clave__log(&c->base.log, CLAVE_LOG_ERROR, "%s was handed over and cannot be given back: %s",
                   h->path, clave_strerror(res->err));
}

static void handed_on_leftover(struct timer *t, int64_t now)
{
    struct handed_session *s = LIST_ENTRY(t, struct handed_session, leftover);
    clave_async_client *c = LIST_ENTRY(s, clave_async_client, handed);
    (void)now;
    for (size_t i = 0; i < s->nholds; i++) {
        struct handed_hold *h = &s->holds[i];
        if (h->taken || h->gone)
            continue;
        clave__log(&c->base.log, CLAVE_LOG_WARN,
                   "%s was handed over and has not been taken up for %d ms: it is given back",
                   h->path, (int)c->session.timeout_ms);
        h->taken = true;
        if (clave__client_delete_node(c, h->path, h->czxid, handed_on_deleted, h) == CLAVE_ENOMEM)
            clave__client_untake_handed(c, h);
    }
}

static void handed_on_unconfirmed(struct timer *t, int64_t now)
{
    struct handed_session *h = LIST_ENTRY(t, struct handed_session, unconfirmed);
    clave_async_client *c = LIST_ENTRY(h, clave_async_client, handed);
    (void)now;
    if (!clave__handed_is_unclaimed(c))
        return;
    clave__client_fault(c, "no server has answered for %d ms in the session that was handed over",
                        (int)h->timeout_ms);
    clave__link_report(c, VERDICT_LOST, CLAVE_ETIMEDOUT, NULL);
}

clave_err clave__client_resume(clave_async_client *c, const char *text)
{
    struct handed_session *h = &c->handed;
    clave__timer_init(&h->pause, claim_on_pause);
    clave__timer_init(&h->leftover, handed_on_leftover);
    clave__timer_init(&h->unconfirmed, handed_on_unconfirmed);
    clave_err err = text ? clave__handed_parse(h, &c->base.mem, text) : CLAVE_OK;
    if (err != CLAVE_OK || !text)
        return err;
    if (strcmp(h->chroot, c->hosts.chroot) != 0) {
        clave__log(&c->base.log, CLAVE_LOG_ERROR,
                   "the session to resume was used below %s, and the server list says %s",
                   h->chroot[0] ? h->chroot : "/", c->hosts.chroot[0] ? c->hosts.chroot : "/");
        return CLAVE_EINVAL;
    }
    char unique[CLAVE_PROTECTED_PREFIX + 1];
    clave__client_protect(c, unique);
    snprintf(h->mark, sizeof h->mark, "%016" PRIx64 ":%.*s", h->ticket, CLAVE_UUID_TEXT,
             unique + 3 /* "_c_" */);
    c->session.id = h->id;
    c->session.known = true;
    memcpy(c->session.passwd, h->passwd, sizeof c->session.passwd);
    /* a server that lags behind might not have the nodes yet */
    for (size_t i = 0; i < h->nholds; i++)
        if (h->holds[i].czxid > c->session.last_zxid)
            c->session.last_zxid = h->holds[i].czxid;
    if (c->session.told_ms == 0)
        c->asked_timeout_ms = h->timeout_ms;
    return CLAVE_OK;
}

bool clave__client_is_unclaimed(const clave_async_client *c)
{
    return clave__handed_is_unclaimed(c);
}

void clave__handed_begin(clave_async_client *c)
{
    struct handed_session *h = &c->handed;
    if (clave__handed_is_unclaimed(c) && !h->unconfirmed.armed)
        clave__timers_set(&c->base.timers, &h->unconfirmed,
                          deadline_after(c->base.now, h->timeout_ms));
}

void clave__handed_attached(clave_async_client *c)
{
    clave__handed_begin(c);
    if (claim_is_free(c))
        claim_read(c);
}

void clave__handed_over(clave_async_client *c, bool ending)
{
    if (clave__handed_is_unclaimed(c) && !ending)
        clave__log(&c->base.log, CLAVE_LOG_WARN,
                   "the session that was handed over has ended: what it held is queued for anew");
    clave__timers_clear(&c->base.timers, &c->handed.pause);
    clave__timers_clear(&c->base.timers, &c->handed.leftover);
    clave__timers_clear(&c->base.timers, &c->handed.unconfirmed);
    c->handed.id = 0;
}
