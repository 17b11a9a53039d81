/* snapshot_record.c - see snapshot_record.h. Called by snapshot_save.c and
 * snapshot_copy_on_write.c; snapshot_read.c reads it. */
#include "server/store/snapshot_record.h"

#include "server/server_internal.h"

enum { VERSION = 2 };

static const char magic[4] = {'Z', 'K', 'S', 'N'};

void clave__snapshot_put_header(struct jwriter *w)
{
    for (size_t i = 0; i < sizeof magic; i++)
        clave__jput_byte(w, (uint8_t)magic[i]);
    clave__jput_int(w, VERSION);
    clave__jput_long(w, -1);
}

/* If the newest session has ended, the log that has it may be purged. So that its id is not given
 * out again, the next id is written with a timeout of 0. Apache takes that for a session that
 * expires at once, and no client has its id. */
void clave__snapshot_put_session_count(struct jwriter *w, const struct sessions *t)
{
    bool ended = t->newest_id != 0 && !clave__sessions_find(t, t->newest_id);
    clave__jput_int(w, (int32_t)t->table.count + ended);
    if (ended) {
        clave__jput_long(w, t->newest_id + 1);
        clave__jput_int(w, 0);
    }
}

void clave__snapshot_put_session(struct jwriter *w, const struct session *session)
{
    clave__jput_long(w, session->id);
    clave__jput_int(w, session->logged_timeout_ms);
}

void clave__snapshot_put_list(struct jwriter *w, const struct acl *list)
{
    clave__jput_long(w, list->key);
    clave__jput_vec(w, clave__acl_entries(list));
}

void clave__snapshot_put_node(struct jwriter *w, const struct node *n)
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
