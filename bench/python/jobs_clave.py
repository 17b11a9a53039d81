"""Ten jobs with clave: bench/python/run counts the lines of each, and runs it."""
import clave


def under_a_lock(c, work):
    with c.lock("/jobs/a"):
        work()


def only_if_free(c, work):
    try:
        with c.lock("/jobs/b", timeout=0):
            work()
    except clave.Busy:
        pass


def beside_other_readers(c, work):
    with c.rwlock("/jobs/c").read:
        work()


def three_at_a_time(c, work):
    with c.semaphore("/jobs/d", 3):
        work()


def as_leader(c, work):
    with c.election("/jobs/e"):
        work()


def until_it_is_lost(c, work):
    with c.lock("/jobs/f") as hold:
        for _ in range(3):
            hold.check()
            work()


def write_only_while_held(c, work):
    with c.lock("/jobs/g") as hold:
        hold.set("/jobs/result", work())


def once_a_day(c, work):
    c.once("/jobs/h", "daily", lambda hold: work(), period=86400)


def from_a_copy_of_the_settings(c, work):
    with c.cache("/jobs/settings") as settings:
        work(settings["/jobs/settings/colour"])


def two_locks(c, work):
    with c.multilock("/jobs/i", "/jobs/j"):
        work()
