/* What `clave top` shows of locks and elections that are made up: which, in which order, how far
 * scrolled, what is highlighted. The program on a terminal: test/cmd/top_test.py. */
#include "cmd/top/top_screen.h"
#include "lib/unit.h"

enum { NOW = 1000000, MOST = 300 };

static struct top_lock locks[MOST];
static struct top_view view;
static struct top_selection choice;
static const char *said;
static struct top_screen screen;
static char shown[1 << 16]; /* the lines of the last screen */
static size_t lines;

/* A line, with a mark for its style in front: '*' amber, '!' red, '>' the bar. */
static void keep_line(void *arg, enum top_style style, const char *line)
{
    size_t n = strlen(shown);
    (void)arg;
    snprintf(shown + n, sizeof shown - n, "%s%s%s%s\n", style & TOP_REVERSE ? ">" : "",
             style & TOP_RED ? "!" : "", style & TOP_AMBER ? "*" : "", line);
    lines++;
}

static void draw(void)
{
    size_t n = top_selection_arrange(&choice, &view);
    const struct top_shown s = {&screen, &view, n, said, NOW};
    shown[0] = '\0';
    lines = 0;
    top_screen_draw(&s, &choice, keep_line, NULL);
}

static void move(long by)
{
    top_selection_move(&choice, &view, top_selection_arrange(&choice, &view), by);
    draw();
}

static int begin(void **state)
{
    (void)state;
    view = (struct top_view){.loaded = true, .server = "one:2181", .locks = locks};
    choice = (struct top_selection){.order = 0};
    said = NULL;
    screen = (struct top_screen){.connect = "one:2181"};
    return 0;
}

static int end(void **state)
{
    (void)state;
    top_selection_fini(&choice);
    return 0;
}

static struct top_lock *add(const char *path, enum lock_queue_kind kind, int64_t held_ms,
                            int64_t waits_ms)
{
    struct top_lock *l = &locks[view.nlocks++];
    *l = (struct top_lock){.path = (char *)path,
                           .kind = kind,
                           .nholders = 1,
                           .nwaiters = waits_ms >= 0,
                           .waiting_since = waits_ms >= 0 ? NOW - waits_ms : -1};
    l->holder = (struct top_place){
        .role = "holder", .whose = "web1 pid 47", .task = "nightly", .since = NOW - held_ms};
    return l;
}

/* Where a row begins; the test fails when there is none. */
static const char *row(const char *text)
{
    const char *at = strstr(shown, text);
    if (!at)
        fail_msg("no '%s' in:\n%s", text, shown);
    return at;
}

TEST_WITH(deadlocks_come_first_then_the_oldest_wait_and_a_minute_is_late, begin, end)
{
    add("/a/idle", LOCK_KIND_LOCK, 500000, -1);
    add("/b/election", LOCK_KIND_ELECTION, 900000, -1)->nwaiters = 5;
    add("/c/minute", LOCK_KIND_LOCK, 70000, 60000);
    add("/d/late", LOCK_KIND_RW, 70000, 60001);
    add("/e/dead", LOCK_KIND_LOCK, 70000, 3000)->deadlocked = true;
    draw();
    assert_true(row("\n!/e/dead") < row("\n*/d/late"));
    assert_true(row("\n*/d/late") < row("\n/c/minute"));
    assert_true(row("\n/c/minute") < row("\n/b/election"));
    assert_true(row("\n/b/election") < row("\n/a/idle"));
    row("4 held, 3 waiting, oldest wait 1m00s, 1 election, ");
    for (int i = 0; i < 3; i++) {
        top_selection_next_order(&choice);
        draw();
        assert_true(row("/e/dead") < row("/a/idle"));
    }
    assert_true(row("/a/idle") < row("/b/election")); /* by path */
}

TEST_WITH(who_was_asked_to_release_is_told_before_the_command, begin, end)
{
    add("/a/asked", LOCK_KIND_LOCK, 70000, -1)->holder.asked = true;
    add("/b/leader", LOCK_KIND_ELECTION, 70000, -1)->holder =
        (struct top_place){.role = "leader", .whose = "n1", .task = "", .asked = true};
    draw();
    row("  (asked to release it) nightly\n");
    row("  (asked to resign)\n");
}

TEST_WITH(a_table_that_is_longer_than_the_screen_says_which_part_is_seen, begin, end)
{
    static char paths[200][16];
    for (int i = 0; i < 200; i++)
        snprintf(paths[i], sizeof paths[i], "/jobs/%03d", i);
    for (int i = 0; i < 200; i++)
        add(paths[i], LOCK_KIND_LOCK, 1000000 - i, -1);
    draw();
    row("Locks and elections  1-200 of 200\n");
    screen = (struct top_screen){.connect = "one:2181", .rows = 25, .columns = 80};
    draw();
    row("Locks and elections  1-20 of 200\n");
    row(">/jobs/000");
    assert_int_equal(lines, 25);
    move(39);
    row("21-40 of 200\n");
    row(">/jobs/039");
    assert_int_equal(lines, 25);
    move(1000);
    row("181-200 of 200\n");
    move(-1);
    row("181-200 of 200\n");
    row(">/jobs/198");
    view.nlocks = 190; /* those that were shown last are gone: the screen stays full */
    draw();
    row("171-190 of 190\n");
}

TEST_WITH(what_is_listed_contains_the_filter_somewhere, begin, end)
{
    static const struct {
        const char *filter;
        enum top_listed listed;
        const char *title;
    } rows[] = {
        {"", TOP_LOCKS_AND_ELECTIONS, "Locks and elections  1-4 of 4\n"},
        {"", TOP_LOCKS, "Locks  1-3 of 3\n"},
        {"", TOP_ELECTIONS, "Elections  1-1 of 1\n"},
        {"ight", TOP_LOCKS_AND_ELECTIONS, "Locks and elections  1-1 of 1, matching ight\n"},
        {"IGHT", TOP_LOCKS, "Locks  1-1 of 1, matching IGHT\n"},
        {"DB7 pid", TOP_LOCKS, "Locks  1-1 of 1, matching DB7 pid\n"},
        {"backup", TOP_LOCKS, "Locks  1-1 of 1, matching backup\n"},
        {"nothing", TOP_LOCKS, "Locks, matching nothing\nNothing that is listed contains it.\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        view.nlocks = 0;
        add("/a/nightly", LOCK_KIND_LOCK, 1, -1)->holder.task = "";
        add("/b", LOCK_KIND_LOCK, 1, -1)->holder =
            (struct top_place){.role = "holder", .whose = "db7 pid 3", .task = "backup.sh"};
        add("/c", LOCK_KIND_LOCK, 1, -1)->nholders = 0;
        add("/d", LOCK_KIND_ELECTION, 1, -1)->holder.task = "";
        snprintf(choice.filter, sizeof choice.filter, "%s", rows[i].filter);
        choice.listed = rows[i].listed;
        draw();
        row(rows[i].title);
    }
}

TEST_WITH(the_bar_of_a_queue_stays_on_its_place, begin, end)
{
    static struct top_place places[40];
    static char nodes[40][16];
    for (int i = 0; i < 40; i++) {
        snprintf(nodes[i], sizeof nodes[i], "n%d", i);
        places[i] = (struct top_place){.role = i ? "waiting" : "holder",
                                       .client = "clave",
                                       .node = nodes[i],
                                       .whose = nodes[i],
                                       .task = "",
                                       .token = i,
                                       .since = NOW - 59990 - 2 * (40 - i),
                                       .waits = i > 0};
    }
    add("/a", LOCK_KIND_LOCK, 70000, 60070);
    screen = (struct top_screen){.connect = "one:2181", .rows = 15, .columns = 80};
    top_selection_enter(&choice, &view, top_selection_arrange(&choice, &view));
    view.places = places;
    view.nplaces = 40;
    move(20);
    row("/a  12-21 of 40\n");
    row(">*20  waiting");
    row("\n*19  waiting");
    view.places = places + 5; /* the first five are gone */
    view.nplaces = 35;
    draw();
    row("/a  12-21 of 35\n");
    row(">*15  waiting  n20");
    move(-1000);
    row(">* 0  waiting  n5");
    move(1000);
    row(">34  waiting  n39"); /* not a minute yet */
    top_selection_leave(&choice);
    draw();
    row(">*/a ");
}

/* Where a column of the table begins in its line of titles. */
static size_t title(const char *text)
{
    const char *titles = row("LOCK "), *at = strstr(titles, text);
    if (!at)
        fail_msg("no column %s in:\n%s", text, shown);
    return (size_t)(at - titles);
}

TEST_WITH(a_narrow_screen_keeps_who_waits_and_shortens_paths, begin, end)
{
    static char deep[200] = "/tenants/";
    while (strlen(deep) < 180)
        strcat(deep, "department/");
    strcat(deep, "nightly");
    add(deep, LOCK_KIND_SEMAPHORE, 70000, 61000)->nwaiters = 1234567;
    locks[0].holder.whose = "a-very-long-name-of-a-host.example.org pid 4194304";
    locks[0].holder.task = "/usr/local/bin/a-command --with arguments";
    add("/b", LOCK_KIND_LOCK, 70000, -1);
    screen = (struct top_screen){.connect = "one:2181", .rows = 24, .columns = 80};
    draw();
    assert_true(title("OLDEST") + strlen("OLDEST") <= 80);
    const char *line = row(">*/tenant~ment/nightly") + 2;
    assert_true(strcspn(line, "\n") <= 80);
    assert_int_equal(strncmp(line + title("WAITING"), "1234567", 7), 0);
    assert_int_equal(strncmp(line + title("OLDEST"), " 1m01s", 6), 0);
    row("/nightly  semaphore  a-very-l~ pid 4194304  "); /* both ends of each */
    screen.columns = 120;
    draw();
    assert_true(title("COMMAND") + 16 <= 120);
    row("  /usr/local/bin/");
    screen.columns = 0;
    draw();
    row(deep);
}

TEST_WITH(two_that_may_hold_are_worse_than_a_deadlock, begin, end)
{
    static struct top_place places[] = {
        {.role = "holder", .client = "clave", .node = "n0", .whose = "web1", .task = ""},
        {.role = "outside",
         .client = "kazoo",
         .node = "n1",
         .whose = "db7",
         .task = "",
         .outside = true}};
    add("/a/dead", LOCK_KIND_LOCK, 70000, 90000)->deadlocked = true;
    add("/b/twice", LOCK_KIND_LOCK, 70000, 3000)->outside = true;
    draw();
    row("\n!MAY BE HELD TWICE: 1 lock, where a kazoo lock of default name does not see the "
        "others\n");
    assert_true(row("\n!/b/twice") < row("\n!/a/dead"));
    view.places = places;
    view.nplaces = 2;
    top_selection_enter(&choice, &view, top_selection_arrange(&choice, &view));
    draw();
    row("\n!1  outside  db7");
}

TEST_WITH(a_question_is_shown_whole, begin, end)
{
    add("/jobs/nightly", LOCK_KIND_LOCK, 1, -1);
    screen = (struct top_screen){.connect = "one:2181", .rows = 12, .columns = 30};
    said = "Ask web1 pid 47, holder of \x1b[31m/jobs/nightly, to release it?";
    draw();
    row(">Ask web1 pid 47, holder of\n>\\x1b[31m/jobs/nightly, to\n>release it?\n");
}
