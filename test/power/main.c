/* main.c - clave_power: runs a server, records what it does to its disk, and opens the data
 * directory as a power cut at any moment could have left it.
 *
 *   clave_power [--seed N] [--writes N] [--epochs N] [--random N] [--bytes N]
 *               [--samples DIR EVERY] [--lie files|names]
 *
 * What must hold in every one: the server starts; what had been acknowledged is there; and the tree
 * is exactly the one after some transaction, by the digest that was logged with it, so that
 * nothing is half there. Each epoch begins with what a power cut left of the one before. With
 * --samples, one of EVERY directories (as it was left, "raw", and as clave has put it right) is
 * kept for ZooKeeper to open, with what has to be found there in DIR/expected, and what was true
 * when in DIR/history-EPOCH. With --lie the disk does not do what it says, which has to be found:
 * exit 1. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crash_disk.h"
#include "history.h"
#include "runtime/rig.h"
#include "runtime/store/datadir.h"
#include "workload.h"

struct power {
    uint64_t seed;
    unsigned writes;
    unsigned epochs;
    unsigned epoch;  /* at hand */
    unsigned random; /* images by chance at each event */
    unsigned bytes;  /* tears of one write, at most: at each byte, or so many */
    const char *samples;
    unsigned every; /* so many images one is sampled */
    const char *lie;

    struct rand_state rand;
    struct history history;
    struct crash_disk disk;
    const char *image; /* a data directory */
    FILE *expected;
    int64_t acknowledged; /* at the event at hand */
    unsigned long images;
    unsigned long mended; /* of them, had something cut off or removed */
    unsigned long sampled;
    char lines[4096]; /* what recovery said of the image at hand */
    char where[200];  /* for the text of a violation */
};

static _Noreturn void violation(const struct power *p, const char *fmt, ...)
{
    va_list ap;
    printf("VIOLATION: ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n  at %s, image %lu, seed %" PRIu64 ": kept in %s\n", p->where, p->images, p->seed,
           p->image);
    fflush(stdout);
    _exit(1); /* the directory stays */
}

/* ---- one image ------------------------------------------------------------------------------- */

static void keep_line(void *arg, int level, const char *msg)
{
    struct power *p = arg;
    size_t n = strlen(p->lines);
    if (level <= CLAVE_LOG_WARN)
        snprintf(p->lines + n, sizeof p->lines - n, "%s\n", msg);
}

/* As a server that starts; the moment it has found. */
static const struct moment *open_image(struct power *p)
{
    struct datadir d;
    struct server *s;
    struct server_stats st;
    char text[600] = "";
    const struct fault f = {text, sizeof text};
    const struct log log = {.cb = keep_line, .arg = p};
    struct server_options o = {.log = keep_line, .log_arg = p};
    p->lines[0] = '\0';
    clave_err err = clave__datadir_open(&d, p->image, &log, &f);
    if (err == CLAVE_OK)
        err = clave__server_new(&s, &o);
    if (err == CLAVE_OK)
        err = clave__datadir_recover(&d, s, &f);
    if (err != CLAVE_OK)
        violation(p, "%s: %s", clave_err_name(err), text);
    clave__server_stats(s, &st);
    if (st.last_zxid < p->acknowledged)
        violation(p, "zxid %" PRId64 " was acknowledged, and the newest there is %" PRId64,
                  p->acknowledged, st.last_zxid);
    const struct moment *m = history_find(&p->history, st.last_zxid, st.digest);
    if (!m || st.digest_mismatches != 0)
        violation(p, "at zxid %" PRId64 " there never was this tree: %" PRIu64, st.last_zxid,
                  st.digest);
    if (st.sessions != m->sessions)
        violation(p, "%zu sessions at zxid %" PRId64 ", not %zu", st.sessions, st.last_zxid,
                  m->sessions);
    clave__server_free(s);
    clave__datadir_close(&d);
    p->images++;
    p->mended += p->lines[0] != '\0';
    return m;
}

static void write_image(const struct power *p, const struct cut *how, const char *dir)
{
    char path[512];
    snprintf(path, sizeof path, "%s/version-2", dir);
    mkdir(dir, 0700);
    mkdir(path, 0700);
    crash_disk_write(&p->disk, how, path);
}

/* The same image once more: the random numbers are its own. */
static void sample(struct power *p, struct cut how, struct rand_state rand)
{
    static const char *const kinds[] = {"raw", "mended"};
    const char *image = p->image;
    char dir[256];
    for (size_t i = 0; i < 2; i++) {
        struct rand_state again = rand;
        how.rand = &again;
        snprintf(dir, sizeof dir, "%s/%lu-%s", p->samples, p->sampled, kinds[i]);
        write_image(p, &how, dir);
        p->image = dir;
        int64_t zxid = i == 1 ? open_image(p)->zxid : 0;
        fprintf(p->expected, "%s %s %u %" PRId64 " %" PRId64 "\n", kinds[i], dir, p->epoch,
                p->acknowledged, zxid);
    }
    p->image = image;
    p->sampled++;
}

static void try_image(struct power *p, enum loss loss, enum names names, size_t byte)
{
    struct cut how = {.loss = loss, .names = names, .byte = byte, .rand = &p->rand};
    struct rand_state before = p->rand;
    write_image(p, &how, p->image);
    open_image(p);
    if (p->samples && p->images % p->every == 0)
        sample(p, how, before);
}

/* ---- the images of a moment --------------------------------------------------------------------
 */

static void try_moment(struct power *p)
{
    size_t n = crash_disk_unsynced(&p->disk);
    for (enum loss loss = 0; loss < LOSS_KINDS; loss++)
        for (enum names names = 0; names < NAMES_KINDS; names++)
            if (names == NAMES_NEW || crash_disk_has_pending_names(&p->disk))
                try_image(p, loss, names, SIZE_MAX);
    for (unsigned i = 0; i < p->random; i++)
        try_image(p, (enum loss)clave__rand_below(&p->rand, LOSS_KINDS), NAMES_ANY, SIZE_MAX);
    size_t step = p->bytes > 0 ? n / p->bytes + 1 : n + 1;
    for (size_t byte = 1; byte < n; byte += step) {
        try_image(p, LOSS_TAIL, NAMES_NEW, byte);
        try_image(p, LOSS_TAIL_ZEROS, NAMES_NEW, byte);
    }
}

static const char *name_of(const struct event *e, char *buf, size_t cap)
{
    static const char *const kinds[] = {"create",      "write",          "length", "sync",
                                        "failed sync", "sync directory", "mkdir",  "sync above",
                                        "rename",      "unlink",         "ack"};
    snprintf(buf, cap, "%s %s %s", kinds[e->kind], e->name, e->renamed);
    return buf;
}

static void try_recording(struct power *p, const struct recording *r)
{
    char event[150];
    crash_disk_fini(&p->disk);
    crash_disk_init(&p->disk);
    p->disk.lies_about_files = p->lie && strcmp(p->lie, "files") == 0;
    p->disk.lies_about_names = p->lie && strcmp(p->lie, "names") == 0;
    bool begun = false;
    for (size_t i = 0; i < r->n; i++) {
        const struct event *e = &r->events[i];
        crash_disk_apply(&p->disk, e);
        if (e->kind == EVENT_ACK && e->at > p->acknowledged)
            p->acknowledged = e->at;
        begun = begun || e->kind == EVENT_SYNC_DIR; /* what was there before */
        snprintf(p->where, sizeof p->where, "event %zu of %zu, %s", i, r->n,
                 name_of(e, event, sizeof event));
        /* An acknowledgement alone changes what has to be found, and no disk. */
        if (begun && e->kind != EVENT_ACK)
            try_moment(p);
        else if (begun && (i + 1 == r->n || r->events[i + 1].kind != EVENT_ACK))
            try_image(p, LOSS_ALL, NAMES_OLD, SIZE_MAX);
    }
}

/* ---- epochs ------------------------------------------------------------------------------------
 */

static void keep_history(const struct power *p)
{
    char path[512];
    snprintf(path, sizeof path, "%s/history-%u", p->samples, p->epoch);
    FILE *f = fopen(path, "w");
    must(f != NULL);
    for (size_t i = 0; i < p->history.n; i++)
        fprintf(f, "%" PRId64 " %" PRIu64 "\n", p->history.of[i].zxid, p->history.of[i].digest);
    fclose(f);
}

/* The next epoch begins at a moment of this one, where a part of what was not synced is lost. */
static void go_on_from(struct power *p, const struct recording *r, const char *data)
{
    struct cut how = {.loss = LOSS_SECTORS, .names = NAMES_ANY, .byte = SIZE_MAX, .rand = &p->rand};
    size_t n = r->n / 2 + (size_t)clave__rand_below(&p->rand, r->n / 2);
    crash_disk_fini(&p->disk);
    crash_disk_init(&p->disk);
    p->acknowledged = 0;
    for (size_t i = 0; i < n; i++) {
        crash_disk_apply(&p->disk, &r->events[i]);
        if (r->events[i].kind == EVENT_ACK && r->events[i].at > p->acknowledged)
            p->acknowledged = r->events[i].at;
    }
    struct rand_state again = p->rand; /* the same once more, to look at */
    write_image(p, &how, data);
    how.rand = &again;
    write_image(p, &how, p->image);
    history_go_to(&p->history, open_image(p));
}

static void run_epoch(struct power *p, const char *data)
{
    char path[512];
    snprintf(path, sizeof path, "%s/version-2", data);
    recorder_begin(path);
    workload_run(data, p->writes, clave__rand_u64(&p->rand));
    struct recording r = recorder_end();
    history_read(&p->history, &r);
    if (p->samples)
        keep_history(p);
    try_recording(p, &r);
    if (p->epoch + 1 < p->epochs)
        go_on_from(p, &r, data);
    recording_free(&r);
}

static bool take_options(struct power *p, int argc, char **argv)
{
    const struct {
        const char *name;
        unsigned *value;
    } numbers[] = {{"--writes", &p->writes},
                   {"--epochs", &p->epochs},
                   {"--random", &p->random},
                   {"--bytes", &p->bytes}};
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers && i + 1 < argc && !known; k++) {
            known = strcmp(argv[i], numbers[k].name) == 0;
            if (known)
                *numbers[k].value = (unsigned)strtoul(argv[++i], NULL, 10);
        }
        if (known)
            continue;
        if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            p->seed = strtoull(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--lie") == 0) {
            p->lie = argv[++i];
        } else if (i + 2 < argc && strcmp(argv[i], "--samples") == 0) {
            p->samples = argv[++i];
            p->every = (unsigned)strtoul(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    return p->writes > 0 && p->epochs > 0 && p->every > 0;
}

/* For the images: in memory where there is a place for it, because each is synced when it is put
 * right. */
static const char *make_place(void)
{
    static char place[] = "/dev/shm/clave-power-XXXXXX", other[] = "/tmp/clave-power-XXXXXX";
    const char *made = mkdtemp(place) ? place : mkdtemp(other);
    must(made != NULL);
    return made;
}

int main(int argc, char **argv)
{
    static struct power p = {
        .seed = 1, .writes = 150, .epochs = 2, .random = 2, .bytes = 4, .every = 7};
    char expected[512];
    if (!take_options(&p, argc, argv)) {
        fprintf(stderr,
                "usage: %s [--seed N] [--writes N] [--epochs N] [--random N] [--bytes N] "
                "[--samples DIR EVERY] [--lie files|names]\n",
                argv[0]);
        return 64;
    }
    clave__rand_seed(&p.rand, p.seed);
    history_init(&p.history);
    crash_disk_init(&p.disk);
    p.image = make_place();
    if (p.samples) {
        snprintf(expected, sizeof expected, "%s/expected", p.samples);
        p.expected = fopen(expected, "w");
        if (!p.expected)
            return 74;
    }
    const char *data = rig_path(rig_dir(), "made/by/it");
    for (p.epoch = 0; p.epoch < p.epochs; p.epoch++)
        run_epoch(&p, data);
    printf("%lu images of %u epochs, %lu with something cut off, %lu pairs kept for ZooKeeper\n",
           p.images, p.epochs, p.mended, p.sampled);
    if (p.expected)
        fclose(p.expected);
    rig_remove(p.image);
    crash_disk_fini(&p.disk);
    history_fini(&p.history);
    return 0;
}
