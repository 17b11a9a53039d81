"""Locks of threads: one holder, losses, interrupts, forks, many threads, nothing left behind."""
import copy
import datetime
import dis
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import clave
from rig import CLAVE, PATIENCE, Case, Server, descriptors, memory, until


class Locks(Case):
    def test_block(self):
        c = self.open()
        with c.lock("/block", timeout=10) as first:
            self.assertIsInstance(first.token, int)
            self.assertTrue(first.valid_for(1))
            self.assertGreater(first.remaining(), 1)
            first.check(datetime.timedelta(seconds=1))
        self.assertEqual(self.queue(c, "/block"), [])
        with c.lock("/block") as second:
            self.assertGreater(second.token, first.token)
        with self.assertRaises(clave.NotHeld):
            first.check()

    def test_busy(self):
        c, d = self.open(), self.open()
        with c.lock("/busy"):
            for timeout in 0, 0.05, datetime.timedelta(milliseconds=50):
                with self.assertRaises(clave.Busy) as failed:
                    d.lock("/busy", timeout).acquire()
                self.assertIsInstance(failed.exception, TimeoutError)
            self.assertEqual(len(self.queue(c, "/busy")), 1)

    def test_reentrant_for_a_thread_only(self):
        lock = self.open().lock("/reentrant")
        with lock as outer, lock as inner:
            self.assertEqual(outer.token, inner.token)
            failed = []

            def other():
                try:
                    lock.acquire(0)
                except clave.Busy as e:
                    failed.append(e)

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            self.assertEqual(len(failed), 1)

    def test_decorator(self):
        c = self.open()
        lock = c.lock("/decorated")

        @lock
        def work(path):
            """Says who is in the queue."""
            return c.children(path)

        self.assertEqual(len(work("/decorated")), 1)
        self.assertEqual(work.__doc__, "Says who is in the queue.")
        self.assertEqual(self.queue(c, "/decorated"), [])

    def test_release_is_confirmed(self):
        c = self.open()
        hold = c.lock("/confirmed").acquire()
        hold.release(confirm=True)
        self.assertEqual(c.children("/confirmed"), [])
        with self.assertRaises(clave.NotHeld):
            hold.release()

    def test_a_lock_that_is_forgotten_is_released(self):
        c = self.open()
        hold = c.lock("/forgotten").acquire()
        self.assertEqual(len(self.queue(c, "/forgotten")), 1)
        del hold
        self.assertEqual(self.queue(c, "/forgotten"), [])

    def test_the_end_of_a_hold_is_not_the_end_of_the_next(self):
        c = self.open()
        lock = c.lock("/ends")
        hold = lock.acquire()
        for _ in range(3):
            hold.release()
            hold = lock.acquire()  # only now the one before is forgotten; libclave may use its memory again
            self.assertIn(hold._grant, c._session._objects)
            hold.check()

    def test_a_hold_depends_on_its_work(self):
        c = self.open()
        hold = c.lock("/depends").acquire()
        with hold.depending(60) as alive:
            alive()
            self.assertLessEqual(hold.remaining(), 60)
        hold.alive()  # it depends on nothing any more
        for wrong in (0, -1):
            with self.assertRaises(ValueError):
                hold.depend(wrong)
        began = time.monotonic()
        hold.depend(0.2)
        with self.assertLogs("clave", "WARNING") as told:
            self.assertTrue(hold.lost.wait(PATIENCE))  # no sign of life: it is lost
        self.assertIn("no sign of life", told.output[0])
        self.assertGreaterEqual(time.monotonic() - began, 0.19)
        self.assertFalse(hold.valid_for())
        for late in (hold.alive, hold.check, lambda: hold.depend(1), hold.release):
            with self.assertRaises(clave.Lost):
                late()
        with self.assertRaises(clave.NotHeld):
            hold.alive()
        c.lock("/depends").acquire(PATIENCE).release()  # after the reserve

    def test_a_hold_passes_to_another_process(self):
        file = f"{self.server.folder}/session"
        old = self.open()
        with self.assertRaises(clave.NotHeld):
            old.hand_over(file)
        hold = old.lock("/handed").acquire()
        self.assertFalse(hold.resumed)
        old.hand_over(file)
        self.assertFalse(hold.valid_for())
        self.assertTrue(hold.lost.wait(PATIENCE))
        heir = self.open(resume=file)
        self.assertFalse(os.path.exists(file))
        with heir.lock("/handed") as goes_on:
            self.assertTrue(goes_on.resumed)
            self.assertEqual(goes_on.token, hold.token)
            goes_on.check()

    def test_other_threads_go_on_during_a_hand_over(self):
        file = f"{self.server.folder}/slowly"
        c = self.open()
        hold = c.lock("/slowly").acquire()
        failed = []

        def hand_over():
            try:
                c.hand_over(file, 2)
            except clave.Error as e:
                failed.append(e)

        thread = threading.Thread(target=hand_over)
        self.server.signal(signal.SIGSTOP)
        try:
            thread.start()
            until(lambda: os.path.exists(file + ".tmp"), "the hand-over has begun")
            self.assertTrue(hold.valid_for())
            self.assertTrue(thread.is_alive(), "valid_for waited for the hand-over")
            c.close(0.1)  # waits for it
            self.assertFalse(hold.valid_for())
        finally:
            self.server.signal(signal.SIGCONT)
        thread.join()
        self.assertEqual(len(failed), 1)
        self.assertFalse(os.path.exists(file))

    def test_a_function_gives_signs_of_life(self):
        c = self.open()
        with c.lock("/decorated-work") as hold:

            @hold.depending(60)
            def step(n):
                hold.alive()
                self.assertLessEqual(hold.remaining(), 60)
                return n + 1

            self.assertEqual([step(1), step(2)], [2, 3])

    def test_a_silent_term_is_followed_by_another(self):
        c = self.open()
        tokens = []
        for term in c.election("/silent-terms").terms():
            tokens.append(term.token)
            if len(tokens) == 2:
                break
            term.depend(0.1)
            self.assertTrue(term.lost.wait(PATIENCE))
        self.assertLess(tokens[0], tokens[1])

    def test_a_hold_is_released_while_other_threads_ask_it(self):
        c = self.open()
        lock, failed = c.lock("/shared-hold"), []

        def ask(hold):
            try:
                while hold.valid_for():
                    hold.create("/shared-hold-", mode=clave.Mode.PERSISTENT_SEQUENTIAL)
            except (clave.NotHeld, clave.Lost):
                pass
            except BaseException as e:
                failed.append(e)

        for _ in range(20):
            hold = lock.acquire()
            threads = [threading.Thread(target=ask, args=(hold,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            hold.create("/shared-hold-", mode=clave.Mode.PERSISTENT_SEQUENTIAL)
            hold.release()
            for thread in threads:
                thread.join()
        self.assertEqual(failed, [])

    def test_hundred_threads(self):
        c = self.open()
        lock, inside, seen, errors = c.lock("/threads"), [], [], []

        def work():
            try:
                for _ in range(3):
                    with lock as hold:
                        inside.append(hold)
                        seen.append(len(inside))
                        inside.remove(hold)
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=work) for _ in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])
        self.assertEqual(seen, [1] * 300, "SAFETY VIOLATED: two threads in one lock")
        self.assertEqual(self.queue(c, "/threads"), [])

    def test_read_and_write(self):
        c, d = self.open().rwlock("/rw"), self.open().rwlock("/rw")
        with c.read, d.read:
            with self.assertRaises(clave.Busy):
                d.write.__class__.acquire(self.open().rwlock("/rw").write, 0)
            with self.assertRaises(clave.Error) as failed:
                c.write.acquire(0)
            self.assertEqual(failed.exception.name, "EUPGRADE")
        with c.write as write, c.read as read:
            self.assertEqual(write.token, read.token)  # a downgrade
            with self.assertRaises(clave.Busy):
                d.read.acquire(0)

    def test_several_as_one(self):
        c, d = self.open(), self.open()
        both = c.multilock("/both/b", ("/both/a", "read"), timeout=5)
        with both as held:
            self.assertEqual(sorted(held.holds), ["/both/a", "/both/b"])
            held.check()
            tokens = [h.token for h in held.holds.values()]
            self.assertLess(tokens[0], tokens[1])
            held.holds["/both/a"].multi([clave.Create("/both/c")], [held.holds["/both/b"]])
            with self.assertRaises(clave.Busy) as failed:
                d.multilock("/both/z", "/both/b", timeout=0).acquire()
            self.assertIn("/both/b", str(failed.exception))
            self.assertEqual(len(self.queue(c, "/both/b")), 1)
        self.assertEqual(self.queue(c, "/both/b"), [])

    def test_lost(self):
        c = self.open()
        told = []
        with self.assertRaises(clave.Lost), c.lock("/lost", on_lost=told.append) as hold:
            c.delete(hold.node)  # an operator breaks the lock
            self.assertTrue(hold.lost.wait(PATIENCE))
            until(lambda: told, "on_lost")
            self.assertIs(told[0], hold)
            with self.assertRaises(clave.Lost):
                hold.check()
            with self.assertRaises(clave.Lost):
                hold.create("/too-late")
        self.assertIsNone(c.exists("/too-late"))

    def test_a_callback_that_ends_its_thread_does_not_end_the_others(self):
        c = self.open()
        first, second = c.lock("/exits", on_lost=lambda hold: sys.exit(1)).acquire(), c.lock("/told").acquire()
        self.assertFalse(second.lost.is_set())
        with self.assertLogs("clave", "ERROR"):
            c.delete(first.node)
            until(lambda: not first.valid_for(), "the loss")
            c.delete(second.node)
            self.assertTrue(second.lost.wait(PATIENCE))

    def test_the_error_of_a_block_is_not_hidden_by_a_loss(self):
        c = self.open()
        with self.assertRaises(ZeroDivisionError), c.lock("/hidden") as hold:
            c.delete(hold.node)
            self.assertTrue(hold.lost.wait(PATIENCE))
            raise ZeroDivisionError

    def test_asked(self):
        c, d = self.open(), self.open()
        asked = threading.Event()
        with c.lock("/asked", on_asked=lambda hold: asked.set()) as hold:
            d.set(hold.node, b"__REVOKE__")  # as Curator's Revoker
            self.assertTrue(asked.wait(PATIENCE))

    def test_guarded_writes(self):
        c = self.open()
        with c.lock("/guard") as hold:
            self.assertEqual(hold.create("/guarded", b"1"), "/guarded")
            hold.set("/guarded", b"2", 0)
            with self.assertRaises(clave.BadVersion):
                hold.set("/guarded", b"3", 7)
            made = hold.multi([clave.Set("/guarded", b"4"),
                               clave.Create("/guarded/n-", b"", clave.Mode.PERSISTENT_SEQUENTIAL)])
            self.assertEqual(c.get("/guarded").data, b"4")
            self.assertEqual(c.children("/guarded"), [made[1].split("/")[-1]])
            hold.delete(made[1])
            with self.assertRaises(clave.NoNode) as failed:
                hold.multi([clave.Set("/guarded", b"5"), clave.Delete("/missing")])
            self.assertIn("operation 1 on /missing", str(failed.exception))
        with self.assertRaises(clave.NotHeld):
            hold.delete("/guarded")

    def test_one_queue_with_the_program(self):
        c = self.open()
        with c.lock("/program"):
            self.assertEqual(self.program("lock", "--no-wait", "/program", "--", "true").returncode, 75)
            self.assertIn(str(os.getpid()), self.program("locks", "/program").stdout)
        self.assertEqual(self.program("lock", "--wait", "30s", "/program", "--", "true").returncode, 0)

    def program(self, *words):
        return subprocess.run([CLAVE, "--connect", self.server.connect, *words], capture_output=True, text=True, check=False)


INTERRUPTED = """
import signal, sys, clave
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins without
with clave.Client(sys.argv[1]) as c:
    try:
        c.lock("/interrupted", on_queued=lambda ahead: print(ahead, flush=True)).acquire()
    except KeyboardInterrupt:
        c.sync()
        print(len(c.children("/interrupted")), c.state, flush=True)
"""


def refused():
    raise clave.errors.error(clave.errors.EDONE, "cannot do it twice")


class OtherProcesses(Case):
    """What may leave a process, and what may not."""

    def test_errors_are_pickled(self):
        for code in -101, -1003, -1006, -1010, -1014, -1024:
            made = clave.errors.error(code, "cannot do /it", "since it is a test")
            for copied in pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made):
                self.assertIs(type(copied), type(made))
                self.assertEqual((str(copied), copied.code, copied.name, copied.kind),
                                 (str(made), made.code, made.name, made.kind))
        self.assertIs(type(pickle.loads(pickle.dumps(clave.Forked("of the parent", -1003)))), clave.Forked)

    def test_a_pool_is_told(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool, self.assertRaises(clave.Done):
            pool.apply_async(refused).get(PATIENCE)

    def test_the_rest_is_refused_and_stays_whole(self):
        c = self.open()
        lock = c.lock("/process")
        with lock as hold, c.semaphore("/process/semaphore", 1) as lease, c.election("/process/election") as term:
            for what in (c, lock, hold, lease, term, c.semaphore("/s", 1), c.slots("/s", 1), c.election("/e"), c.rwlock("/rw"),
                         c.cache("/process"), c.multilock("/m")):
                for how in copy.copy, copy.deepcopy, pickle.dumps:
                    with self.assertRaisesRegex(TypeError, "belongs to its process and can be neither pickled nor copied"):
                        how(what)
            gc.collect()
            for held in hold, lease, term:
                held.check()


class Interrupts(Case):
    """Ctrl-C before each instruction of Python between the beginning of an acquire and its return."""

    # CPython does not look for signals at RETURN_VALUE, at PUSH_EXC_INFO, or at the POP_EXCEPT of a `return` in an `except`
    # block. If a trace function raises at one of the last two, CPython's handled exception stays wrong after its block: up
    # to 3.10 the returned value becomes a part of it, which crashes the interpreter later; from 3.11 on it is never cleared.
    UNINTERRUPTED = [dis.opmap.get(name) for name in ("RETURN_VALUE", "POP_EXCEPT", "PUSH_EXC_INFO")]

    def setUp(self):
        ignored = warnings.catch_warnings()
        ignored.__enter__()
        self.addCleanup(ignored.__exit__, None, None, None)
        warnings.filterwarnings("ignore", "coroutine .* was never awaited")  # the interrupt came before its first step
        sys._getframe().f_trace_opcodes = True  # CPython 3.12 traces instructions only if one was set before sys.settrace

    def interrupted(self, work, n):
        """Whether `work` was interrupted at the n-th instruction; it ends by itself when it has fewer."""
        left, raised = [n], []

        def in_del(frame):  # where Python does not pass an exception on
            while frame and frame.f_code.co_name != "__del__":
                frame = frame.f_back
            return frame is not None

        def trace(frame, event, arg):
            if "/clave/" not in frame.f_code.co_filename or in_del(frame):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and not raised and frame.f_code.co_code[frame.f_lasti] not in self.UNINTERRUPTED:
                left[0] -= 1
                if left[0] < 0:
                    raised.append(True)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        self.assertEqual(sys.exc_info(), (None, None, None), f"no exception is being handled after an interrupt at {n}")
        return bool(raised)

    def everywhere(self, enter, leave, c, path, step=1):
        c.create(path, parents=True)
        for n in range(0, 20000, step):
            got = []
            if not self.interrupted(lambda: got.append(enter()), n):
                leave(got[0])
                self.assertGreater(n, 50)
                self.assertEqual(len(self.queue(c, path)), 0)
                return
            self.assertEqual(got, [])
            self.assertEqual(len(self.queue(c, path)), 0, f"held by nobody, after an interrupt at {n}")
        self.fail("it never ends")

    def test_a_lock(self):
        c = self.open()
        lock = c.lock("/i/lock")
        self.everywhere(lock.acquire, lambda hold: hold.release(), c, "/i/lock", 3)
        c.delete("/i/lock")
        self.everywhere(lock.__enter__, lambda hold: lock.__exit__(None, None, None), c, "/i/lock")

    def released_everywhere(self, c, path, enter, leave, release):
        """Interrupts `leave` before each instruction, but for those with which its outermost function begins: what it
        was to release is released all the same, or `release` can be repeated."""
        c.create(path, parents=True)
        repeated = []
        for n in range(0, 20000):
            hold = enter()
            if not self.interrupted(leave, n):
                self.assertGreater(n, 50)
                self.assertEqual(self.queue(c, path), [])
                self.assertLess(len(repeated), 45, "a block almost always ends what it held")
                return
            if not hold.released:
                repeated.append(n)
                release(hold)
            self.assertEqual(len(self.queue(c, path)), 0, f"held by nobody, after an interrupt at {n}")
        self.fail("it never ends")

    def test_the_end_of_a_block(self):
        c = self.open()
        lock, leases = c.lock("/i/end"), c.semaphore("/i/leases", 1)
        self.released_everywhere(c, "/i/end", lock.__enter__, lambda: lock.__exit__(None, None, None),
                                 lambda hold: lock.__exit__(None, None, None))
        self.released_everywhere(c, "/i/leases/leases", leases.__enter__, lambda: leases.__exit__(None, None, None),
                                 lambda hold: leases.__exit__(None, None, None))

    def test_a_release(self):
        c = self.open()
        lock, held = c.lock("/i/release"), []

        def enter():
            held[:] = [lock.acquire()]
            return held[0]

        c.create("/i/release", parents=True)
        for confirm in False, True:
            for n in range(0, 20000):
                hold = enter()
                if not self.interrupted(lambda h=hold, how=confirm: h.release(how), n):
                    self.assertGreater(n, 20)
                    break
                while not hold.released:
                    hold.release(confirm)
                self.assertEqual(len(self.queue(c, "/i/release")), 0, f"held by nobody, after an interrupt at {n}")

    def test_an_inner_block_of_a_lock(self):
        c = self.open()
        lock = c.lock("/i/inner")
        for n in range(0, 20000, 3):
            with lock as outer:
                inner = lock.__enter__()
                interrupted = self.interrupted(lambda: lock.__exit__(None, None, None), n)
                if not inner.released:
                    lock.__exit__(None, None, None)
                outer.check()
            self.assertEqual(self.queue(c, "/i/inner"), [])
            if not interrupted:
                return

    def test_a_lock_that_this_thread_holds_stays_held(self):
        c = self.open()
        lock = c.lock("/i/again")
        with lock as outer:
            for n in range(0, 20000, 7):
                if not self.interrupted(lock.__enter__, n):
                    lock.__exit__(None, None, None)
                    break
                outer.check()
            self.assertEqual(len(self.queue(c, "/i/again")), 1)
        self.assertEqual(self.queue(c, "/i/again"), [])

    def test_a_semaphore(self):
        c = self.open()
        pool = c.semaphore("/i/pool", 1)
        c.create("/i/pool", parents=True)
        self.everywhere(pool.__enter__, lambda hold: pool.__exit__(None, None, None), c, "/i/pool/leases", 3)

    def test_several_as_one(self):
        c = self.open()
        both = c.multilock("/i/a", "/i/b")
        self.everywhere(both.__enter__, lambda hold: both.__exit__(None, None, None), c, "/i/a", 7)


class Processes(Case):
    def test_keyboard_interrupt_leaves_nothing_behind(self):
        c = self.open()
        with c.lock("/interrupted"):
            other = subprocess.Popen([sys.executable, "-c", INTERRUPTED, self.server.connect], stdout=subprocess.PIPE,
                                     text=True)
            self.addCleanup(other.stdout.close)
            self.assertEqual(other.stdout.readline(), "1\n")  # it waits
            other.send_signal(signal.SIGINT)
            self.assertEqual(other.stdout.readline(), "1 CONNECTED\n")
            self.assertEqual(other.wait(PATIENCE), 0)

    def test_fork(self):
        c = self.open()
        with c.lock("/forked") as hold:
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    for use in hold.check, c.sync, lambda: c.lock("/forked"), lambda: c.state, hold.release:
                        try:
                            use()
                            os._exit(2)
                        except clave.Forked:
                            pass
                    with clave.Client(self.server.connect) as own:
                        code = 0 if len(own.children("/forked")) == 1 else 3
                finally:
                    os._exit(code)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
            hold.check()
            self.assertEqual(len(self.queue(c, "/forked")), 1)

    def test_a_client_that_is_closed_says_so(self):
        c, d = self.open(), self.open()
        hold = d.lock("/closed").acquire()
        ended = []

        def wait():
            try:
                c.lock("/closed").acquire()
            except clave.Closed as e:
                ended.append(e)

        thread = threading.Thread(target=wait)
        thread.start()
        self.queued(d, "/closed", 2)
        c.close()
        thread.join(PATIENCE)
        self.assertEqual(len(ended), 1)
        for use in c.sync, lambda: c.lock("/closed"), lambda: c.state:
            with self.assertRaises(clave.Closed):
                use()
        c.close()
        self.assertEqual(len(self.queue(d, "/closed")), 1)
        hold.release()


class Loss(unittest.TestCase):
    """The server stops: the holder knows in time that it holds nothing any more."""

    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.stop)

    def test_a_server_that_stands_still(self):
        states = []
        with clave.Client(self.server.connect, session_timeout=4, on_state=lambda s, why: states.append(s)) as c:
            told = threading.Event()
            hold = c.lock("/still", on_lost=lambda h: told.set()).acquire()
            self.server.signal(signal.SIGSTOP)
            left = hold.remaining()
            self.assertTrue(hold.lost.wait(PATIENCE))
            self.assertTrue(told.wait(PATIENCE))
            self.assertLess(left, 4)
            self.assertEqual(hold.remaining(), 0)
            with self.assertRaises(clave.Lost):
                hold.check()
            with self.assertRaises(clave.Lost):
                hold.release()
            self.server.signal(signal.SIGCONT)
            with c.lock("/still", timeout=PATIENCE):
                pass
            self.assertIn("LOST", states)

    def test_no_server(self):
        self.server.process.kill()
        self.server.process.wait()
        with self.assertRaises(clave.Unreachable):
            clave.Client(self.server.connect, connect_timeout=0.2).__enter__()
        with self.assertRaises(clave.Unreachable):
            clave.Client(self.server.connect).lock("/x").acquire(0.1)
        c = clave.Client(self.server.connect, timeout=0.1)
        with self.assertRaises(clave.Unknown):
            c.get("/")
        c.close(0)


class Leaks(Case):
    def test_ten_thousand_locks(self):
        c = self.open()

        def turn(n):
            for i in range(n):
                hold = c.lock(f"/leaks/{i % 10}").acquire()
                hold.release()

        turn(1000)
        files, bytes_before = descriptors(), memory()
        turn(10000)
        self.assertEqual(descriptors(), files)
        self.assertLess(memory() - bytes_before, 2 << 20)


if __name__ == "__main__":
    unittest.main()
