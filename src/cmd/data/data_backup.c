/* data_backup.c - `clave data backup`: copies the newest snapshot and the logs after it, while a
 * server may be writing. It loads what it copies: so the copy contains only bytes that lead to a
 * tree, and ends with a whole transaction. data.c calls it. */
#include "cmd/data/data_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log_line.h"
#include "cmd/cli/diag.h"
#include "runtime/store/datadir.h"

/* A try may fail although nothing is damaged: a server may have removed a file since the names were
 * listed, and the end of a batch that it is writing may be visible before its beginning. Real
 * damage is still there the next time. */
enum { BACKUP_TRIES = 10 };

struct backup {
    struct data_files *f;
    struct copy_dir copy;
    struct server_stats st;
    bool history;
    bool failed; /* writing the copy failed, so another try is useless */
    char text[1024];
};

static clave_err backup_take(void *arg, const char *name, const void *p, size_t n)
{
    struct backup *b = arg;
    const struct fault fault = {b->text, sizeof b->text};
    clave_err err = clave__copy_dir_put(&b->copy, name, p, n, &fault);
    b->failed = err != CLAVE_OK;
    return err;
}

static clave_err backup_try(struct backup *b)
{
    const struct fault fault = {b->text, sizeof b->text};
    const struct datadir_taker taker = {backup_take, b, b->history};
    struct server *s = data_files_server(b->f);
    if (!s)
        return CLAVE_ENOMEM;
    clave_err err = clave__datadir_recover_each(&b->f->dir, s, &taker, &fault);
    clave__server_stats(s, &b->st);
    clave__server_free(s);
    return err;
}

/* Copies a file other than snapshots and logs, if it exists. */
static clave_err backup_beside(struct backup *b, const char *name)
{
    const struct fault fault = {b->text, sizeof b->text};
    struct file_content c;
    int number = data_files_beside(b->f, name, &c, &fault);
    clave_err err = number == 0 ? backup_take(b, name, c.p, c.n) : CLAVE_EIO;
    clave__file_free(&c);
    return number == ENOENT ? CLAVE_OK : err;
}

static clave_err backup_copy(struct backup *b)
{
    const struct fault fault = {b->text, sizeof b->text};
    clave_err err = backup_try(b);
    for (int i = 1; i < BACKUP_TRIES && err != CLAVE_OK && !b->failed; i++) {
        diag_note(b->f->o, "%s; trying again", b->text);
        err = clave__copy_dir_clear(&b->copy, &fault);
        if (err == CLAVE_OK)
            err = backup_try(b);
    }
    for (size_t i = 0; i < DATA_EPOCHS && err == CLAVE_OK; i++)
        err = backup_beside(b, data_files_epochs[i]);
    if (err == CLAVE_OK)
        err = backup_beside(b, FILE_LONGEST_SESSION);
    return err == CLAVE_OK ? clave__copy_dir_finish(&b->copy, &fault) : err;
}

static void backup_tell(const struct backup *b, const char *to)
{
    const struct server_stats *st = &b->st;
    struct json j;
    if (!b->f->o->json) {
        printf("%s: zxid 0x%" PRIx64 ", digest %" PRIu64 ", %zu node%s, %zu session%s; %zu file%s, "
               "%" PRId64 " byte%s\n",
               to, (uint64_t)st->last_zxid, st->digest, st->nodes, clave__plural(st->nodes),
               st->sessions, clave__plural(st->sessions), b->copy.files,
               clave__plural(b->copy.files), b->copy.bytes, clave__plural((uint64_t)b->copy.bytes));
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "to", to);
    json_hex(&j, "zxid", st->last_zxid);
    data_files_json_digest(&j, st->digest);
    clave__json_int(&j, "nodes", (int64_t)st->nodes);
    clave__json_int(&j, "sessions", (int64_t)st->sessions);
    clave__json_int(&j, "files", (int64_t)b->copy.files);
    clave__json_int(&j, "bytes", b->copy.bytes);
    json_end(&j);
}

int data_backup(struct data_files *f, const char *to, bool history)
{
    struct backup b = {.f = f, .history = history};
    const struct fault fault = {b.text, sizeof b.text};
    clave_err err = clave__copy_dir_begin(&b.copy, to, &f->dir.log, &fault);
    if (err == CLAVE_OK)
        err = backup_copy(&b);
    clave__copy_dir_end(&b.copy);
    if (err != CLAVE_OK)
        return diag_end(f->o, NULL, data_files_exit(err), "%s",
                        b.text[0] ? b.text : clave_strerror(err));
    if (b.st.digest_mismatches > 0)
        fprintf(stderr, "clave: data: %s: %s\n", f->dir.path, f->noted);
    backup_tell(&b, to);
    return finish_stdout(f->o);
}
