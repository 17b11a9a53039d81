/* The plan of a mirror, on a disk in memory. */
#include "lib/failmem.h"
#include "lib/mirror_disk.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { ACTOR = 0, USER = 1 };

struct scene {
    struct memnet *p;
    struct mirror *m;
    struct mirror_disk *disk;
    unsigned news;
    char steps[512]; /* "D: F:a -:b ": taken so far */
};

static void on_changed(void *arg)
{
    ((struct scene *)arg)->news++;
}

static void scene_open(struct scene *s, const clave_mem *mem)
{
    *s = (struct scene){
        .p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = 6000, .mem = mem}),
        .disk = mirror_disk_new()};
    memnet_settle(s->p);
}

static clave_err scene_follow(struct scene *s, const char *path)
{
    clave_err err = clave__mirror_new(&s->m, s->p->clients[USER].c, path, on_changed, s);
    memnet_settle(s->p);
    return err;
}

static void scene_close(struct scene *s)
{
    clave__mirror_free(s->m);
    mirror_disk_free(s->disk);
    memnet_settle(s->p);
    memnet_free(s->p);
}

static void take(struct scene *s)
{
    struct mirror_step step;
    memnet_settle(s->p);
    s->steps[0] = '\0';
    while (clave__mirror_next(s->m, &step)) {
        size_t n = strlen(s->steps);
        snprintf(s->steps + n, sizeof s->steps - n, "%c:%.20s%s ", "-FD"[step.kind], step.file,
                 step.fault ? "!" : "");
        assert_true(mirror_disk_do(s->disk, &step));
    }
}

static void takes(struct scene *s, const char *steps)
{
    char why[256];
    take(s);
    assert_string_equal(s->steps, steps);
    mirror_disk_compare(s->disk, clave__mirror_cache(s->m), "/t", why, sizeof why);
    assert_string_equal(why, "");
}

static void create(struct scene *s, const char *path)
{
    assert_int_equal(memnet_create(s->p, ACTOR, path), CLAVE_OK);
}

static void delete (struct scene *s, const char *path)
{
    assert_int_equal(memnet_delete(s->p, ACTOR, path), CLAVE_OK);
}

TEST(a_tree_becomes_files)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s, NULL);
    create(&s, "/t");
    create(&s, "/t/a");
    create(&s, "/t/d");
    create(&s, "/t/d/e");
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    takes(&s, "D: F:a D:d F:d/e ");
    assert_true(clave__mirror_is_current(s.m));
    assert_int_equal(memnet_set(s.p, ACTOR, "/t/a", "x"), CLAVE_OK);
    assert_int_equal(memnet_set(s.p, ACTOR, "/t/a", "y"), CLAVE_OK);
    takes(&s, "F:a ");
    takes(&s, "");
}

TEST(a_file_becomes_a_directory_and_back)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s, NULL);
    create(&s, "/t");
    create(&s, "/t/a");
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    takes(&s, "D: F:a ");
    create(&s, "/t/a/b");
    takes(&s, "D:a F:a/b ");
    delete (&s, "/t/a/b");
    takes(&s, "F:a -:a/b ");
    delete (&s, "/t/a");
    takes(&s, "D: -:a ");
    delete (&s, "/t");
    takes(&s, "D: ");
    create(&s, "/t");
    create(&s, "/t/a");
    takes(&s, "D: F:a ");
}

/* Nothing is taken before the tree is known, or what was there would be deleted for nothing. */
TEST(nothing_is_told_before_the_tree_is_loaded)
{
    CLOSED_BY(scene_close) struct scene s;
    struct mirror_step step;
    scene_open(&s, NULL);
    create(&s, "/t");
    memnet_rule(s.p, (struct memnet_rule){USER, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    assert_false(clave__mirror_next(s.m, &step));
    memnet_clear(s.p);
    takes(&s, "D: ");
}

TEST(changes_of_a_time_without_connection_are_told)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s, NULL);
    create(&s, "/t");
    create(&s, "/t/a");
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    takes(&s, "D: F:a ");
    memnet_refuse(s.p, USER, true);
    memnet_settle(s.p);
    delete (&s, "/t/a");
    create(&s, "/t/b");
    assert_false(clave__mirror_is_current(s.m));
    takes(&s, "");
    memnet_refuse(s.p, USER, false);
    memnet_advance(s.p, 3000);
    takes(&s, "D: -:a F:b ");
    assert_true(clave__mirror_is_current(s.m));
}

/* After a reconnect a new node is read before its children are listed. A child that came in the
 * time without connection, and goes in between, has no event: it was never known. */
TEST(a_child_that_was_never_known_makes_no_directory)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s, NULL);
    create(&s, "/t");
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    takes(&s, "D: ");
    memnet_refuse(s.p, USER, true);
    memnet_settle(s.p);
    create(&s, "/t/a");
    create(&s, "/t/a/b");
    memnet_refuse(s.p, USER, false);
    memnet_rule(s.p, (struct memnet_rule){USER, MEMNET_REQUEST, OP_GET_CHILDREN2, MEMNET_HOLD, 1});
    memnet_advance(s.p, 3000);
    take(&s);
    assert_string_equal(s.steps, "D: F:a ");
    delete (&s, "/t/a/b");
    memnet_clear(s.p);
    memnet_advance(s.p, 3000);
    assert_true(clave__mirror_is_current(s.m));
    takes(&s, "");
}

TEST(what_failed_is_told_again_with_its_parent)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s, NULL);
    create(&s, "/t");
    create(&s, "/t/d");
    create(&s, "/t/d/e");
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    takes(&s, "D: D:d F:d/e ");
    clave__mirror_again(s.m, "/t/d/e");
    takes(&s, "D:d F:d/e ");
    clave__mirror_again(s.m, "/t");
    takes(&s, "D: ");
}

TEST(names_are_those_of_files)
{
    CLOSED_BY(scene_close) struct scene s;
    char longest[300] = "/t/";
    scene_open(&s, NULL);
    create(&s, "/t");
    create(&s, "/t/%data");
    create(&s, "/t/..a");
    memset(longest + 3, 'x', 255);
    create(&s, longest);
    memset(longest + 3, 'y', 256);
    create(&s, longest);
    strcat(longest, "/z");
    create(&s, longest);
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    take(&s);
    assert_string_equal(s.steps, "D: F:%25data F:..a F:xxxxxxxxxxxxxxxxxxxx "
                                 "-:yyyyyyyyyyyyyyyyyyyy! -:yyyyyyyyyyyyyyyyyyyy! ");
}

TEST(it_ends_with_its_client)
{
    struct scene s;
    scene_open(&s, NULL);
    assert_int_equal(scene_follow(&s, "/t"), CLAVE_OK);
    takes(&s, "D: ");
    clave_async_client_close(s.p->clients[USER].c, s.p->now);
    memnet_settle(s.p);
    assert_int_equal(clave__mirror_err(s.m), CLAVE_ECLOSED);
    scene_close(&s);
    scene_open(&s, NULL);
    assert_int_equal(scene_follow(&s, "t"), CLAVE_EPATH);
    assert_null(s.m);
    scene_close(&s);
}

/* Each allocation fails once: all is told, or the end. */
TEST(without_memory_nothing_is_missing_in_silence)
{
    struct failmem f;
    bool failed = true;
    for (size_t first = 1; failed; first++) {
        struct scene s;
        char why[256] = "";
        failmem_init(&f);
        scene_open(&s, &f.mem);
        create(&s, "/t");
        create(&s, "/t/a");
        create(&s, "/t/a/b"); /* so it must not become a file */
        failmem_arm(&f, first, 1);
        clave_err err = scene_follow(&s, "/t");
        memnet_advance(s.p, 5000);
        if (err == CLAVE_OK)
            take(&s);
        failed = f.failed;
        failmem_arm(&f, 0, 0);
        memnet_advance(s.p, 5000);
        if (err == CLAVE_OK && clave__mirror_err(s.m) == CLAVE_OK) {
            take(&s);
            mirror_disk_compare(s.disk, clave__mirror_cache(s.m), "/t", why, sizeof why);
            assert_string_equal(why, "");
        } else {
            assert_int_equal(err == CLAVE_OK ? clave__mirror_err(s.m) : err, CLAVE_ENOMEM);
        }
        scene_close(&s);
        assert_int_equal(f.live, 0);
    }
}
