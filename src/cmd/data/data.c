/* data.c - `clave data`: opens a data directory and looks at it, copies it, or restores another
 * from it. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cli/diag.h"
#include "cmd/data/data_files.h"

enum { DATA_HISTORY = FLAG_LONG, DATA_UNTIL, DATA_EPOCH, DATA_LONGEST_SESSION };

enum data_work { DATA_CHECK, DATA_DUMP, DATA_DIGEST, DATA_BACKUP, DATA_RESTORE, DATA_WORKS };

/* The parts of the verb; each takes from `least` to `most` arguments after its name. */
static const struct {
    const char *name;
    int least, most;
} works[DATA_WORKS] = {
    [DATA_CHECK] = {"check", 1, 1},     [DATA_DUMP] = {"dump", 1, 2},
    [DATA_DIGEST] = {"digest", 1, 1},   [DATA_BACKUP] = {"backup", 2, 2},
    [DATA_RESTORE] = {"restore", 2, 2},
};

/* What the flags ask for, of backup and of restore. */
struct data_choice {
    bool history;
    bool of_restore; /* a flag of restore was given */
    struct restore_options restore;
};

static int data_do(enum data_work work, struct data_files *f, const char *other,
                   const struct data_choice *c)
{
    if (work == DATA_CHECK)
        return data_check(f);
    if (work == DATA_DUMP)
        return data_dump(f, other);
    if (work == DATA_DIGEST)
        return data_digest(f);
    if (work == DATA_BACKUP)
        return data_backup(f, other, c->history);
    return data_restore(f, other, &c->restore);
}

static bool data_take_flag(struct options *o, int id, struct data_choice *c)
{
    struct restore_options *r = &c->restore;
    c->history |= id == DATA_HISTORY;
    c->of_restore |= id != DATA_HISTORY;
    if (id == DATA_UNTIL)
        r->until = o->value;
    if (id == DATA_EPOCH)
        return options_number(o, "epoch", 1, INT32_MAX - 1, &r->epoch);
    return id != DATA_LONGEST_SESSION ||
           options_duration(o, "longest-session", 1, OPTIONS_MAX_MS, &r->longest_session);
}

/* Finds the part that the arguments name. DATA_WORKS, after a message, if there is none. */
static enum data_work data_find_work(struct options *o, const struct data_choice *c)
{
    int work = 0;
    const char *what = o->argv[0];
    while (work < DATA_WORKS && strcmp(what, works[work].name) != 0)
        work++;
    if (work == DATA_WORKS)
        diag_usage(o, "'%s': expected check, dump, digest, backup or restore", what);
    else if (o->argc - 1 < works[work].least)
        diag_usage(o, "%s takes two directories: the source and the destination", what);
    else if (o->argc - 1 > works[work].most)
        diag_usage(o, "%s takes one directory only", what);
    else if (c->of_restore && work != DATA_RESTORE)
        diag_usage(o, "%s: only restore has this flag", what);
    else if (c->history && work != DATA_BACKUP)
        diag_usage(o, "%s: only backup has the flag --history", what);
    else
        return (enum data_work)work;
    return DATA_WORKS;
}

/* Removes the last name from a path. false: there is none left. */
static bool data_go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (strcmp(path, ".") == 0 || strcmp(path, "/") == 0)
        return false;
    if (!slash)
        strcpy(path, ".");
    else
        slash[slash == path] = '\0';
    return true;
}

/* Whether `to`, which need not exist yet, is the directory `dir` or lies below it. */
static bool data_is_below(const char *to, const char *dir)
{
    char at[PATH_MAX];
    struct stat top, here, up = {0};
    if (strlen(to) >= sizeof at || stat(dir, &top) != 0)
        return false;
    strcpy(at, to);
    while (stat(at, &here) != 0)
        if (!data_go_up(at))
            return false;
    while (here.st_dev != up.st_dev || here.st_ino != up.st_ino) {
        size_t n = strlen(at);
        up = here;
        if (here.st_dev == top.st_dev && here.st_ino == top.st_ino)
            return true;
        if (n + 4 > sizeof at)
            return false;
        memcpy(at + n, "/..", 4);
        if (stat(at, &here) != 0)
            return false;
    }
    return false;
}

static int run_data(struct options *o, int argc, char **argv)
{
    struct data_choice c = {0};
    struct data_files f;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        if (!data_take_flag(o, id, &c))
            return EXIT_USAGE;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, 3))
        return EXIT_USAGE;
    enum data_work work = data_find_work(o, &c);
    if (work == DATA_WORKS)
        return EXIT_USAGE;
    if (works[work].least == 2 && data_is_below(o->argv[2], o->argv[1]))
        return diag_end(o, NULL, EXIT_REFUSED, "%s is in %s: name a directory outside it",
                        o->argv[2], o->argv[1]);
    int code = data_files_open(&f, o, o->argv[1]);
    if (code == EXIT_OK)
        code = data_do(work, &f, o->argv[2], &c);
    data_files_close(&f);
    return code;
}

static const struct flag flags[] = {
    {DATA_HISTORY, "history", NULL, "backup: copy all logs, not only the newest, for --until"},
    {DATA_UNTIL, "until", "ZXID|TIME",
     "restore: up to a zxid (0x1f) or a time (2026-11-23T05:55:00Z)"},
    {DATA_EPOCH, "epoch", "N", "restore: the epoch to begin with [by the clock]"},
    {DATA_LONGEST_SESSION, "longest-session", "DURATION",
     "restore: least time without locks at a start [by the backup]"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_data = {
    .name = "data",
    .args = "check|dump|digest|backup|restore DIR [FILE|TO]",
    .summary = "Inspect, back up or restore a data directory",
    .text = "The directory may be clave's or Apache ZooKeeper's.\n"
            "\n"
            "check    verify every checksum and digest; report each fault with file and offset\n"
            "dump     print every snapshot and every transaction, or those of one FILE\n"
            "digest   print the zxid and the digest of the tree that a server would start with\n"
            "backup   copy it to the new directory TO, even while a server runs on it: the\n"
            "         newest snapshot and the logs, up to one zxid, verified\n"
            "restore  make the new directory TO from the backup DIR, for a server that goes\n"
            "         on from it: without sessions and their nodes, and with zxids, so fencing\n"
            "         tokens, above any that were handed out before\n"
            "\n"
            "DIR is neither changed nor locked: a file that a running server is writing may look\n"
            "torn at its end. Stop the old server before a restored one starts.\n",
    .flags = flags,
    .max_args = -1,
    .offline = true,
    .run = run_data,
};
