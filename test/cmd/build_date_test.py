"""The date that the server tells is that of the build: SOURCE_DATE_EPOCH's when it is given, else the
commit's, else today's; and all who tell it tell one."""
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import ClaveServer, ask

SOURCE = os.environ["CLAVE_SOURCE"]
FORM = re.compile(r"3\.9\.\d+-clave-\d+\.\d+\.\d+, built on (\d\d/\d\d/\d{4} \d\d:\d\d) UTC")
PROJECT = """cmake_minimum_required(VERSION 3.18)
project(tiny LANGUAGES C)
include(cmake/built.cmake)
clave_built(built)
add_executable(tiny main.c version.c)
target_include_directories(tiny PRIVATE {source}/include {source}/src)
set_source_files_properties(version.c PROPERTIES COMPILE_DEFINITIONS "CLAVE_BUILT=\\"${{built}}\\"")
"""
MAIN = """#include <stdio.h>
#include "server/monitoring/server_metrics.h"
int main(void)
{
    return puts(clave__server_version) < 0;
}
"""


def seconds(text):
    return int(time.mktime(time.strptime(text, "%m/%d/%Y %H:%M")) - time.timezone)


def run(*words, cwd, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("SOURCE_DATE_EPOCH", "GIT_DIR")}
    # No repository above the scratch directory counts.
    clean["GIT_CEILING_DIRECTORIES"] = os.path.dirname(cwd)
    done = subprocess.run(words, cwd=cwd, env={**clean, **env}, capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


class Built(unittest.TestCase):
    """A project of one file with the version, as the tree configures it."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        os.mkdir(self.dir + "/cmake")
        shutil.copy(SOURCE + "/cmake/built.cmake", self.dir + "/cmake")
        shutil.copy(SOURCE + "/src/server/version.c", self.dir)
        for name, text in (("CMakeLists.txt", PROJECT.format(source=SOURCE)), ("main.c", MAIN)):
            with open(f"{self.dir}/{name}", "w", encoding="ascii") as f:
                f.write(text)

    def date(self, **env):
        for words in (["cmake", "-S", ".", "-B", "b"], ["cmake", "--build", "b"]):
            code, said = run(*words, cwd=self.dir, **env)
            self.assertEqual(code, 0, said)
        code, said = run("b/tiny", cwd=self.dir)
        self.assertRegex(said, FORM)
        return FORM.match(said).group(1)

    def test_it_is_what_source_date_epoch_says(self):
        self.assertEqual(self.date(SOURCE_DATE_EPOCH="1000000000"), "09/09/2001 01:46")

    def test_what_is_no_number_is_refused(self):
        code, said = run("cmake", "-S", ".", "-B", "b", cwd=self.dir, SOURCE_DATE_EPOCH="today")
        self.assertNotEqual(code, 0)
        self.assertIn("SOURCE_DATE_EPOCH is 'today'", said)

    def test_else_it_is_now(self):
        before = time.time() - 60
        self.assertLessEqual(before, seconds(self.date()))
        self.assertLessEqual(seconds(self.date()), time.time())

    @unittest.skipUnless(shutil.which("git"), "no git here")
    def test_of_a_commit_it_is_the_commits(self):
        who = {"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@x", "GIT_COMMITTER_NAME": "x",
               "GIT_COMMITTER_EMAIL": "x@x", "GIT_COMMITTER_DATE": "1234567890 +0000"}
        for words in (["git", "init", "-q"], ["git", "add", "."], ["git", "commit", "-qm", "x"]):
            code, said = run(*words, cwd=self.dir, **who)
            self.assertEqual(code, 0, said)
        self.assertEqual(self.date(), "02/13/2009 23:31")


class Told(unittest.TestCase):
    def test_all_tell_one_date_and_it_can_be_true(self):
        server = ClaveServer(["--words", "*"])
        server.start()
        self.addCleanup(server.stop)
        said = {word: ask(server.port, word.encode()).decode() for word in ("srvr", "envi", "mntr")}
        self.assertRegex(said["srvr"], "^Zookeeper version: " + FORM.pattern + "\n")
        told = {word: FORM.search(text).group(0) for word, text in said.items()}
        self.assertEqual(len(set(told.values())), 1, told)
        built = seconds(FORM.match(told["srvr"]).group(1))
        self.assertGreater(built, seconds("09/09/2001 00:00"))
        self.assertLessEqual(built, time.time())


if __name__ == "__main__":
    unittest.main()
