/* snapshot_save.c - saving snapshots in Apache's format: deciding when one is due, and writing it
 * piece by piece, one in each turn of the loop, as the driver asks for them (snapshot.h).
 * snapshot_load.c reads such files.
 *
 * The file shows the tree as it was when the snapshot began, although clients go on writing.
 * tree.c, session_tracker.c and acl.c report what is about to change or disappear; if it is not in
 * the file yet, it is copied first into snapshot_save.ahead.
 *
 * What must stay true: nothing is in the file twice, and no node comes before its parent. Within a
 * phase, nothing else is written while some of `ahead` is left. The end of the file is written only
 * once the log is durable up to the snapshot's zxid, because a server that finds a complete file
 * loads it in place of the log. */
#include "server/store/snapshot.h"

#include <assert.h>

#include "base/memory.h"
#include "server/server_internal.h"
#include "server/store/adler32.h"

/* ---- when a snapshot is due ------------------------------------------------------------------ */

enum { LONG_LOG = 256 << 20, NODE_BYTES = 80, ALL = 1024 };
/* A log this many times longer than usual, a million transactions, takes about half a second to
 * replay. */
enum { MANY = 10 };

/* Begins counting towards the next snapshot, and draws how much of the limits it may use up:
 * between a half and all, as in Apache. */
void clave__snapshot_schedule(struct server *s)
{
    s->snapshot.txns_since = 0;
    s->snapshot.bytes_since = 0;
    s->snapshot.share = ALL / 2 + (int64_t)clave__rand_below(&s->rand, ALL / 2 + 1);
}

void clave__snapshot_count(struct server *s, size_t bytes)
{
    s->snapshot.txns_since++;
    s->snapshot.bytes_since += (int64_t)bytes;
}

/* Roughly the size that a snapshot would have. */
static int64_t schedule_tree_bytes(const struct server *s)
{
    return (int64_t)(s->tree.data_bytes + s->tree.nodes.count * NODE_BYTES);
}

static bool schedule_is_over(const struct server *s, int64_t value, int64_t most)
{
    return value > most * s->snapshot.share / ALL;
}

/* True if enough transactions have been logged. A large tree is saved only after as many
 * transactions as it has nodes, with as many bytes as it has, so that saving costs no more than
 * logging. However, a log of many short transactions takes long to replay however large the tree
 * is, so there is a bound on their number too. An explicit snap_count is taken literally. */
static bool schedule_has_enough(const struct server *s)
{
    int64_t nodes = (int64_t)s->tree.nodes.count;
    int64_t most = nodes > SERVER_SNAP_COUNT ? nodes : SERVER_SNAP_COUNT;
    if (s->limits.snap_count > 0)
        return schedule_is_over(s, s->snapshot.txns_since, s->limits.snap_count);
    return schedule_is_over(s, s->snapshot.txns_since, MANY * most) ||
           (schedule_is_over(s, s->snapshot.txns_since, most) &&
            schedule_is_over(s, s->snapshot.bytes_since, schedule_tree_bytes(s)));
}

/* True if enough bytes have been logged, whatever the number of transactions: 100000 transactions
 * that each write a megabyte would fill any disk. */
static bool schedule_is_long(const struct server *s)
{
    int64_t most = schedule_tree_bytes(s);
    return schedule_is_over(s, s->snapshot.bytes_since, most > LONG_LOG ? most : LONG_LOG);
}

bool clave__server_wants_snapshot(const struct server *s)
{
    return s->snapshot.save.phase == SAVE_IDLE && (schedule_has_enough(s) || schedule_is_long(s));
}

/* ---- the bytes ------------------------------------------------------------------------------- */

enum { VERSION = 2 };

static const char magic[4] = {'Z', 'K', 'S', 'N'};

static void snapshot_put_header(struct jwriter *w)
{
    for (size_t i = 0; i < sizeof magic; i++)
        clave__jput_byte(w, (uint8_t)magic[i]);
    clave__jput_int(w, VERSION);
    clave__jput_long(w, -1);
}

/* Writes the number of sessions. If the newest session has ended, the log that tells so may be
 * purged, and a server could hand out its id again. To prevent that, the next id is written as a
 * session with a timeout of 0. To Apache that is a session that expires at once, and no client
 * knows its id. */
static void snapshot_put_session_count(struct jwriter *w, const struct sessions *t)
{
    bool ended = t->newest_id != 0 && !clave__sessions_find(t, t->newest_id);
    clave__jput_int(w, (int32_t)t->table.count + ended);
    if (ended) {
        clave__jput_long(w, t->newest_id + 1);
        clave__jput_int(w, 0);
    }
}

static void snapshot_put_session(struct jwriter *w, const struct session *session)
{
    clave__jput_long(w, session->id);
    clave__jput_int(w, session->logged_timeout_ms);
}

static void snapshot_put_list(struct jwriter *w, const struct acl *list)
{
    clave__jput_long(w, list->key);
    clave__jput_vec(w, clave__acl_entries(list));
}

static void snapshot_put_node(struct jwriter *w, const struct node *n)
{
    const struct node_stat *s = &n->stat;
    clave__jput_bytes(w, clave__node_path_bytes(n));
    clave__jput_bytes(w, clave__node_data(n));
    clave__jput_long(w, n->acl->key);
    clave__jput_long(w, s->czxid);
    clave__jput_long(w, s->mzxid);
    clave__jput_long(w, s->ctime);
    clave__jput_long(w, s->mtime);
    clave__jput_int(w, s->version);
    clave__jput_int(w, s->cversion);
    clave__jput_int(w, s->aversion);
    clave__jput_long(w, s->owner);
    clave__jput_long(w, s->pzxid);
}

/* ---- copying what is about to change --------------------------------------------------------- */

enum { FEW_PARENTS = 32 };

/* After memory has run out this writer writes nothing, but the callers go on marking everything as
 * written. */
static struct jwriter snapshot_writer(const struct snapshot_save *v, struct buf *b)
{
    struct jwriter w = clave__jwriter(b);
    w.err = v->err;
    return w;
}

static void copy_before_session_goes(struct sessions *t, const struct session *session)
{
    struct snapshot_save *v = t->observer;
    assert(v->phase != SAVE_IDLE);
    struct jwriter w = snapshot_writer(v, &v->ahead[SAVE_SESSIONS]);
    snapshot_put_session(&w, session);
    v->err = w.err;
}

static void copy_before_list_goes(struct acls *t, const struct acl *list)
{
    struct snapshot_save *v = t->observer;
    assert(v->phase != SAVE_IDLE);
    struct jwriter w = snapshot_writer(v, &v->ahead[SAVE_LISTS]);
    snapshot_put_list(&w, list);
    v->err = w.err;
}

/* Writes a node together with those of its ancestors that have not been written, topmost first,
 * since the loader needs a parent before its children. */
static void copy_with_parents(struct snapshot_save *v, struct jwriter *w, struct tree *t,
                              struct node *n)
{
    struct node *few[FEW_PARENTS], **chain = few;
    size_t depth = 0;
    for (struct node *m = n; m && m->saved != t->saved; m = m->parent)
        depth++;
    if (depth > FEW_PARENTS) {
        chain = clave__mem_alloc(t->mem, depth * sizeof(struct node *));
        w->err = chain ? w->err : CLAVE_ENOMEM;
    }
    for (size_t i = 0; i < depth; i++, n = n->parent) {
        n->saved = t->saved;
        if (chain)
            chain[i] = n;
    }
    while (chain && depth > 0)
        snapshot_put_node(w, chain[--depth]);
    if (chain != few)
        clave__mem_free(t->mem, chain);
    v->err = w->err;
}

static void copy_before_node_changes(struct tree *t, struct node *n)
{
    struct snapshot_save *v = t->observer;
    assert(v->phase != SAVE_IDLE);
    struct jwriter w = snapshot_writer(v, &v->ahead[SAVE_NODES]);
    copy_with_parents(v, &w, t, n);
    if (n == v->next) /* the node may be about to disappear */
        v->next = clave__tree_next(n, t->root);
}

/* Turns the reports of upcoming changes on when a snapshot begins, and off when it ends. */
static void snapshot_copy_on_write(struct server *s, bool begin)
{
    s->sessions.before_remove = begin ? copy_before_session_goes : NULL;
    s->tree.acls.before_free = begin ? copy_before_list_goes : NULL;
    s->tree.before_change = begin ? copy_before_node_changes : NULL;
    s->sessions.observer = s->tree.acls.observer = s->tree.observer = &s->snapshot.save;
}

/* ---- the file -------------------------------------------------------------------------------- */

enum { DIGEST_VERSION = 2 };

/* A piece ends after server_options.snapshot_piece elements, or after as many bytes as if each had
 * ELEMENT_BYTES. Either is about a millisecond's work. */
enum { ELEMENT_BYTES = 256 };
/* How many pieces' worth of bytes may be written ahead before the log has to wait. */
enum { PIECES_AHEAD = 8 };

static size_t save_piece_bytes(const struct server *s)
{
    return (size_t)s->limits.snapshot_piece * ELEMENT_BYTES;
}

/* A piece of the file that is being written. */
struct save_piece {
    struct jwriter w;
    size_t items;  /* how many elements it may still look at */
    size_t end;    /* it is large enough at this many bytes in the buffer */
    size_t summed; /* how many bytes in the buffer the checksum covers */
    bool waits;    /* holds back the end of the file until the log is durable */
};

static void save_sum(struct snapshot_save *v, struct save_piece *p)
{
    size_t n = clave__buf_len(p->w.b) - p->summed;
    v->sum = clave__checksum(v->sum, clave__buf_bytes(p->w.b) + p->summed, n);
    p->summed += n;
}

/* Writes the checksum of the file so far. */
static void save_put_seal(struct snapshot_save *v, struct save_piece *p)
{
    save_sum(v, p);
    clave__jput_long(&p->w, v->sum);
    clave__jput_str(&p->w, "/");
}

static void save_put_end(struct snapshot_save *v, struct save_piece *p)
{
    clave__jput_str(&p->w, "/");
    save_put_seal(v, p);
    clave__jput_long(&p->w, v->zxid);
    clave__jput_int(&p->w, DIGEST_VERSION);
    clave__jput_long(&p->w, (int64_t)v->digest);
    save_put_seal(v, p);
    clave__jput_long(&p->w, v->zxid);
    save_put_seal(v, p);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool save_piece_has_room(const struct save_piece *p)
{
    return p->items > 0 && clave__buf_len(p->w.b) < p->end;
}

/* Moves what was written ahead for the phase into the piece, as far as there is room. Returns true
 * if nothing is left of it. Until then nothing else of this phase may be written, because a node's
 * parent may be in the rest. */
static bool save_take_ahead(struct snapshot_save *v, struct save_piece *p)
{
    assert(v->phase != SAVE_IDLE && v->phase != SAVE_END);
    struct buf *ahead = &v->ahead[v->phase];
    size_t n = clave__buf_len(ahead), used = clave__buf_len(p->w.b);
    size_t room = used < p->end ? p->end - used : 0;
    if (p->w.err == CLAVE_OK && n > room)
        n = room;
    if (p->w.err == CLAVE_OK)
        p->w.err = clave__buf_append(p->w.b, clave__buf_bytes(ahead), n);
    clave__buf_consume(ahead, n);
    return clave__buf_len(ahead) == 0;
}

/* The phases. Each function returns true when its phase is complete. */

static bool save_sessions(struct server *s, struct save_piece *p)
{
    struct list *unsaved = &s->snapshot.save.sessions;
    for (; !list_empty(unsaved) && save_piece_has_room(p); p->items--) {
        struct list *at = list_pop_front(unsaved);
        struct session *session = LIST_ENTRY(at, struct session, in_all);
        snapshot_put_session(&p->w, session);
        session->saved = s->sessions.saved;
        list_push_back(&s->sessions.all, at);
    }
    return list_empty(unsaved);
}

static bool save_lists(struct server *s, struct save_piece *p)
{
    struct acls *acls = &s->tree.acls;
    struct list *unsaved = &s->snapshot.save.lists;
    for (; !list_empty(unsaved) && save_piece_has_room(p); p->items--) {
        struct list *at = list_pop_front(unsaved);
        struct acl *list = LIST_ENTRY(at, struct acl, in_all);
        snapshot_put_list(&p->w, list);
        list->saved = acls->saved;
        list_push_back(&acls->all, at);
    }
    return list_empty(unsaved);
}

static bool save_nodes(struct server *s, struct save_piece *p)
{
    struct snapshot_save *v = &s->snapshot.save;
    for (; v->next && save_piece_has_room(p); p->items--) {
        struct node *n = v->next;
        if (n->saved != s->tree.saved)
            snapshot_put_node(&p->w, n);
        n->saved = s->tree.saved;
        v->next = clave__tree_next(n, s->tree.root);
    }
    return !v->next;
}

/* Writes the end of the file, which declares it complete. A server that finds a complete file loads
 * it in place of the log, so the log must be on the disk up to this point first. */
static bool save_end(struct server *s, struct save_piece *p)
{
    struct snapshot_save *v = &s->snapshot.save;
    assert(list_empty(&v->sessions) && list_empty(&v->lists) && !v->next);
    if (p->waits && v->err == CLAVE_OK && s->txn_log.durable_zxid < v->zxid)
        return false;
    save_put_end(v, p);
    return true;
}

static bool save_phase_is_over(struct server *s, struct save_piece *p)
{
    static bool (*const work[])(struct server *, struct save_piece *) = {
        [SAVE_SESSIONS] = save_sessions,
        [SAVE_LISTS] = save_lists,
        [SAVE_NODES] = save_nodes,
        [SAVE_END] = save_end,
    };
    return work[s->snapshot.save.phase](s, p);
}

/* Begins a snapshot. Flipping the `saved` flags makes every element count as unsaved without
 * visiting it. */
static void save_begin(struct server *s)
{
    assert(s->txn.count == 0); /* a change that might be undone must not get into it */
    struct snapshot_save *v = &s->snapshot.save;
    struct jwriter w = clave__jwriter(&v->ahead[SAVE_SESSIONS]);
    struct jwriter lists = clave__jwriter(&v->ahead[SAVE_LISTS]);
    snapshot_put_header(&w);
    snapshot_put_session_count(&w, &s->sessions);
    clave__jput_int(&lists, (int32_t)s->tree.acls.lists.count);
    v->err = w.err != CLAVE_OK ? w.err : lists.err;
    v->sum = CHECKSUM_START;
    v->zxid = s->last_zxid;
    v->digest = s->tree.digest;
    list_splice(&v->sessions, &s->sessions.all);
    list_splice(&v->lists, &s->tree.acls.all);
    v->next = s->tree.root;
    s->sessions.saved = !s->sessions.saved;
    s->tree.acls.saved = !s->tree.acls.saved;
    s->tree.saved = !s->tree.saved;
    v->phase = SAVE_SESSIONS;
    snapshot_copy_on_write(s, true);
}

static clave_err save_step(struct server *s, struct buf *out, bool waits, bool *done)
{
    struct snapshot_save *v = &s->snapshot.save;
    size_t begin = clave__buf_len(out);
    struct save_piece p = {snapshot_writer(v, out), (size_t)s->limits.snapshot_piece,
                           begin + save_piece_bytes(s), begin, waits};
    for (; v->phase != SAVE_IDLE; v->phase = v->phase == SAVE_END ? SAVE_IDLE : v->phase + 1) {
        bool taken = v->phase == SAVE_END || save_take_ahead(v, &p);
        if (!taken || !save_phase_is_over(s, &p))
            break;
    }
    *done = v->phase == SAVE_IDLE;
    v->err = p.w.err;
    save_sum(v, &p);
    for (size_t i = 0; *done && i < SAVE_END; i++)
        clave__buf_trim(&v->ahead[i], 0);
    if (*done)
        snapshot_copy_on_write(s, false);
    return *done ? v->err : CLAVE_OK;
}

/* ---- what the driver calls (server.h) -------------------------------------------------------- */

int64_t clave__server_snapshot_begin(struct server *s)
{
    assert(s->snapshot.save.phase == SAVE_IDLE);
    save_begin(s);
    clave__snapshot_schedule(s);
    return s->snapshot.save.zxid;
}

clave_err clave__server_snapshot_step(struct server *s, struct buf *out, bool *done)
{
    assert(s->snapshot.save.phase != SAVE_IDLE);
    return save_step(s, out, true, done);
}

clave_err clave__server_save_snapshot(struct server *s, struct buf *out, int64_t *zxid)
{
    size_t begin = clave__buf_len(out);
    clave_err err = CLAVE_OK;
    *zxid = clave__server_snapshot_begin(s);
    for (bool done = false; !done;)
        err = save_step(s, out, false, &done);
    if (err != CLAVE_OK)
        out->tail -= clave__buf_len(out) - begin;
    return err;
}

bool clave__server_log_waits(const struct server *s)
{
    const struct snapshot_save *v = &s->snapshot.save;
    size_t ahead = 0;
    for (size_t i = 0; i < SAVE_END; i++)
        ahead += clave__buf_len(&v->ahead[i]);
    return v->err == CLAVE_OK && ahead >= PIECES_AHEAD * save_piece_bytes(s);
}

/* ---- life ------------------------------------------------------------------------------------ */

void clave__snapshot_save_init(struct server *s)
{
    list_init(&s->snapshot.save.sessions);
    list_init(&s->snapshot.save.lists);
    for (size_t i = 0; i < SAVE_END; i++)
        clave__buf_init(&s->snapshot.save.ahead[i], &s->mem, SIZE_MAX / 2);
}

void clave__snapshot_save_fini(struct server *s)
{
    snapshot_copy_on_write(s, false);
    for (size_t i = 0; i < SAVE_END; i++)
        clave__buf_fini(&s->snapshot.save.ahead[i]);
}
