"""Projects outside the tree find clave, link it and run: by find_package, pkg-config and
add_subdirectory, shared and static. What they link was installed under DESTDIR, that is, into
another prefix than it was made for. The ways are those of docs/start/install.md.

  outside_test.py SOURCE-DIR BUILD-DIR VERSION [COMPILER-LAUNCHER]
"""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE, BUILD, VERSION = sys.argv[1:4]
LAUNCHER = sys.argv[4] if len(sys.argv) > 4 else ""
MADE_FOR = "/opt/elsewhere"
SAYS = f"clave {VERSION}\nheld\n"
NO_TLS = ("cannot load OpenSSL: this program was linked with -static, and cannot load a shared "
          "library")
CC = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def run(*command, **env):
    """Its output; ends the test when it fails."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **env}, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def expect(fine, what):
    if not fine:
        sys.exit(f"FAILED: {what}")


def notes(path):
    """The objects of the UAPI group's dlopen notes in an ELF file."""
    with tempfile.NamedTemporaryFile() as section:
        run("objcopy", "-O", "binary", "--only-section=.note.dlopen", path, section.name)
        with open(section.name, "rb") as f:
            left = f.read()
    found = []
    while left:
        owner, size, kind = struct.unpack_from("III", left)
        expect((owner, kind, left[12:16]) == (4, 0x407c0c0a, b"FDO\0"), f"{path}: a note {left[:16]}")
        text = left[16:16 + size]
        expect(text[-1:] == b"\0", f"{path}: {text} ends")
        found += json.loads(text[:-1])
        left = left[16 + (size + 3) // 4 * 4:]
    return found


class Outside:
    def __init__(self, folder):
        self.folder = folder
        self.prefix = f"{folder}/root{MADE_FOR}"
        self.program = f"{folder}/outside.c"
        shutil.copytree(HERE, folder, dirs_exist_ok=True)

    def install(self):
        run("cmake", "--install", BUILD, "--prefix", MADE_FOR, DESTDIR=f"{self.folder}/root")
        expect(not os.path.exists(MADE_FOR), "DESTDIR is respected")
        self.libdir = os.path.dirname(glob.glob(f"{self.prefix}/**/libclave.a", recursive=True)[0])
        texts = glob.glob(f"{self.libdir}/pkgconfig/*") + glob.glob(f"{self.libdir}/cmake/*/*")
        expect(len(texts) >= 5, f"what other projects find clave by: {texts}")
        for path in texts:
            with open(path, encoding="utf-8") as f:
                text = f.read()
            expect(SOURCE not in text and BUILD not in text, f"{path} knows nothing of the build")

    def dlopen_notes(self):
        """What is loaded at run time is noted in the object that loads it, and nowhere else."""
        loads = {"libssl.so.3": ("tls", "recommended"), "libhttp_parser.so.2.9": ("http", "suggested")}
        for path in (f"{self.libdir}/libclave.so", f"{self.prefix}/bin/clave"):
            found = {n["soname"][0]: (n["feature"], n["priority"]) for n in notes(path)}
            of_program = {"libcurl.so.4": ("history", "suggested"), "libjansson.so.4": ("gate", "suggested"), "libncursesw.so.6": ("top", "suggested")} if path.endswith("/clave") else {}
            expect(found == {**loads, **of_program}, f"{path} loads {found}")
        objects = f"{self.folder}/objects"
        os.makedirs(objects)
        run("ar", "x", f"{self.libdir}/libclave.a", "--output", objects)
        found = {os.path.basename(o): [n["soname"] for n in notes(o)] for o in glob.glob(f"{objects}/*.o")}
        expect({o: said for o, said in found.items() if said} ==
               {"openssl.c.o": [["libssl.so.3"]], "http_parse.c.o": [["libhttp_parser.so.2.9"]]},
               f"who loads what: {found}")

    def manual(self):
        """Each noun has a page, and each function leads to one."""
        made = f"{self.prefix}/share/man/man3"
        with open(f"{made}/clave_mutex_acquire.3", encoding="utf-8") as f:
            expect(f.read() == ".so man3/clave_mutex.3\n", "a function's page is its noun's")
        shown = run("groff", "-man", "-Tascii", "-P-cbou", f"{made}/clave_mutex.3")
        shown = " ".join(shown.split())
        expect("clave_err clave_mutex_acquire(clave_mutex *m, int64_t timeout_ms);" in shown and
               "EBUSY: not acquired in time" in shown, f"clave_mutex(3): {shown}")

    def runs(self, program, shared, tls="tls", **env):
        """It works, and has the library outside itself or within."""
        said = run(program, **env)
        expect(said == f"{SAYS}{tls}\n", f"{program} has a lock, and {tls}: {said}")
        needed = run("readelf", "-d", program)
        expect(("libclave.so" in needed) == shared,
               f"{program} {'needs' if shared else 'does not need'} libclave.so: {needed}")
        return needed

    # ---- CMake -----------------------------------------------------------------------------

    def configure(self, project, *options):
        return run("cmake", "-S", f"{self.folder}/{project}", "-B", f"{self.folder}/{project}.build",
                   f"-DCMAKE_C_COMPILER_LAUNCHER={LAUNCHER}", "-DCMAKE_BUILD_TYPE=", *options)

    def build(self, project):
        run("cmake", "--build", f"{self.folder}/{project}.build", "-j", "2")
        self.runs(f"{self.folder}/{project}.build/outside_shared", True)
        self.runs(f"{self.folder}/{project}.build/outside_static", False)

    def write_header_users(self):
        """One C++ file for each header, and one for all of them, there and back."""
        headers = sorted(os.path.relpath(h, f"{self.prefix}/include/clave")
                         for h in glob.glob(f"{self.prefix}/include/clave/**/*.h", recursive=True))
        expect(len(headers) > 20 and "uv.h" in headers, f"the public headers: {headers}")
        users = {h.replace("/", "_"): [h] for h in headers}
        users["main"] = headers + headers[::-1]
        os.makedirs(f"{self.folder}/find_package/headers")
        for name, included in users.items():
            with open(f"{self.folder}/find_package/headers/{name}.cc", "w", encoding="utf-8") as f:
                f.writelines(f"#include <clave/{h}>\n" for h in included)
                if name == "main":
                    f.write("#include <cstring>\nint main() { return "
                            "std::strcmp(clave_version(), CLAVE_VERSION_STRING); }\n")

    def find_package(self):
        self.write_header_users()
        self.configure("find_package", f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DWANTED={VERSION}")
        self.build("find_package")
        run(f"{self.folder}/find_package.build/headers")

    def find_package_refuses(self):
        """A project that wants another minor version is told which there is."""
        major, minor = VERSION.split(".")[:2]
        wanted = f"{major}.{int(minor) + 1}"
        done = subprocess.run(
            ["cmake", "-S", f"{self.folder}/find_package", "-B", f"{self.folder}/refused",
             f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DWANTED={wanted}"],
            capture_output=True, text=True, check=False)
        expect(done.returncode != 0 and f"version: {VERSION}" in done.stderr,
               f"find_package(clave {wanted}) fails: {done.stderr}")

    def add_subdirectory(self):
        with open(f"{self.folder}/add_subdirectory/own.c", "w", encoding="utf-8") as f:
            f.write("typedef int nothing;\n")
        self.configure("add_subdirectory", f"-DCLAVE_SOURCE={SOURCE}",
                       "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        self.build("add_subdirectory")
        expect("Total Tests: 0" in run("ctest", "-N", "--test-dir",
                                       f"{self.folder}/add_subdirectory.build"), "no tests")

    # ---- pkg-config ------------------------------------------------------------------------

    def flags(self, *arguments, libdir=None):
        return run("pkg-config", *arguments,
                   PKG_CONFIG_PATH=f"{libdir or self.libdir}/pkgconfig").split()

    def compile(self, name, flags):
        run(*CC, self.program, *flags, "-o", f"{self.folder}/{name}")
        return f"{self.folder}/{name}"

    def pkg_config(self):
        expect(self.flags("--modversion", "clave") == [VERSION], "the version")
        program = self.compile("shared", self.flags("--cflags", "--libs", "clave"))
        self.runs(program, True, LD_LIBRARY_PATH=self.libdir)
        program = self.compile("static", self.flags("--cflags", "--libs", "clave-static"))
        self.runs(program, False)

    def leader_page(self):
        """docs/start/leader.md: its program, built by its line, leads."""
        with open(f"{SOURCE}/docs/start/leader.md", encoding="utf-8") as f:
            page = f.read()
        program, line = page.split("```c\n")[1].split("```")[0], page.split("outside_test.py\n")[1].split("```")[0]
        with open(f"{self.folder}/leader.c", "w", encoding="utf-8") as f:
            f.write(program)
        run("sh", "-ec", f"cd {self.folder}; {line}", PKG_CONFIG_PATH=f"{self.libdir}/pkgconfig")
        there = f"unix:{self.folder}/socket"
        with subprocess.Popen([f"{self.prefix}/bin/clave", "serve", "--data", f"{self.folder}/data", "--listen", there],
                              stdout=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": self.libdir}) as server:
            server.stdout.readline()
            said = run(f"{self.folder}/leader", LD_LIBRARY_PATH=self.libdir, CLAVE_CONNECT=there)
            server.terminate()
        expect(re.fullmatch(r"(term [1-9]\d*), step 1\n\1, step 2\n\1, step 3\n", said), f"leader.md leads: {said}")

    def pkg_config_static(self):
        """Where there is no shared library, the names that --static adds are all that is needed."""
        archive = f"{self.folder}/archive"
        shutil.copytree(self.prefix, archive, symlinks=True)
        libdir = archive + self.libdir[len(self.prefix):]
        for path in glob.glob(f"{libdir}/libclave.so*"):
            os.remove(path)
        flags = self.flags("--static", "--cflags", "--libs", "clave", libdir=libdir)
        self.runs(self.compile("archived", flags), False)

    def without_any_shared_library(self):
        """-static: everything but TLS and HTTP."""
        flags = self.flags("--static", "--cflags", "--libs", "clave-static")
        needed = self.runs(self.compile("alone", ["-static", *flags]), False, NO_TLS)
        expect("NEEDED" not in needed, f"no shared library at all: {needed}")


def main():
    with tempfile.TemporaryDirectory(prefix="clave-outside-") as folder:
        outside = Outside(folder)
        for step in (outside.install, outside.dlopen_notes, outside.manual, outside.find_package, outside.find_package_refuses,
                     outside.add_subdirectory, outside.pkg_config, outside.leader_page, outside.pkg_config_static,
                     outside.without_any_shared_library):
            start = time.monotonic()
            step()
            print(f"ok: {step.__name__} ({time.monotonic() - start:.1f} s)", flush=True)


main()
