/* data_files.c - the files of one data directory, for the parts of `clave data` and for `clave
 * grow` (see data_files.h). The directory is opened without taking its lock: a server may be
 * writing to it. */
#include "cmd/data/data_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/diag.h"

const char *const data_files_epochs[DATA_EPOCHS] = {"currentEpoch", "acceptedEpoch"};

int data_files_exit(clave_err err)
{
    if (err == CLAVE_EINVAL)
        return EXIT_USAGE;
    return err == CLAVE_EINUSE ? EXIT_REFUSED : EXIT_IO;
}

/* Keeps the engine's first warning: only the engine notices that a tree does not match its
 * digests. */
static void data_files_on_engine_log(void *arg, int level, const char *msg)
{
    struct data_files *f = arg;
    if (level <= CLAVE_LOG_WARN && f->noted[0] == '\0')
        snprintf(f->noted, sizeof f->noted, "%s", msg);
}

/* Shows warnings about the directory only with -v: what matters here is in the faults. */
static void data_files_on_directory_log(void *arg, int level, const char *msg)
{
    const struct data_files *f = arg;
    if (level <= CLAVE_LOG_WARN)
        diag_note(f->o, "%s", msg);
}

void data_files_json_digest(struct json *j, uint64_t digest)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, digest);
    clave__json_string(j, "digest", text);
}

int data_files_open(struct data_files *f, const struct options *o, const char *path)
{
    char text[1024] = "";
    const struct fault fault = {text, sizeof text};
    const struct log log = {.cb = data_files_on_directory_log, .arg = f};
    *f = (struct data_files){.o = o, .dir = {.lock = -1, .dir = -1}};
    clave_err err = clave__datadir_look(&f->dir, path, &log, &fault);
    if (err != CLAVE_OK)
        return diag_end(o, NULL, data_files_exit(err), "%s", text);
    int number = clave__file_list_read(f->dir.dir, FILE_SNAPSHOT, &f->snapshots);
    if (number == 0)
        number = clave__file_list_read(f->dir.dir, FILE_LOG, &f->logs);
    if (number != 0)
        return diag_end(o, NULL, EXIT_IO, "cannot read %s: %s", path, strerror(number));
    if (f->snapshots.n + f->logs.n > 0)
        return EXIT_OK;
    return diag_end(o, NULL, EXIT_IO,
                    "%s has no snapshots and no logs: name the directory that contains version-2",
                    path);
}

void data_files_close(struct data_files *f)
{
    clave__file_list_free(&f->snapshots);
    clave__file_list_free(&f->logs);
    clave__datadir_close(&f->dir);
}

bool data_files_read(const struct data_files *f, const char *name, struct file_content *out)
{
    int number = clave__file_read(f->dir.dir, name, out);
    char why[200];
    if (number == 0)
        return true;
    clave__file_read_fault(out, number, why, sizeof why);
    diag(f->o, "cannot read %s in %s: %s", name, f->dir.path, why);
    return false;
}

int data_files_beside(const struct data_files *f, const char *name, struct file_content *out,
                      const struct fault *fault)
{
    int number = clave__file_read(f->dir.dir, name, out);
    char why[200];
    if (number == 0 || number == ENOENT)
        return number;
    clave__file_read_fault(out, number, why, sizeof why);
    clave__start_error(fault, CLAVE_EIO, "cannot read %s/version-2/%s: %s", f->dir.path, name, why);
    return number;
}

struct server *data_files_server(struct data_files *f)
{
    struct server *s;
    const struct server_options engine = {.log = data_files_on_engine_log, .log_arg = f};
    f->noted[0] = '\0';
    if (clave__server_new(&s, &engine) == CLAVE_OK)
        return s;
    diag(f->o, "out of memory");
    return NULL;
}
