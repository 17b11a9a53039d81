"""The image of `make image`, as a container runtime runs it: its own command as process 1 of namespaces of its
own, as an odd user, on a read-only root, with a volume; health by its own check; SIGTERM ends it at once, and
what it acknowledged is there at the next start.

  image_test.py SOURCE-DIR BUILD-DIR VERSION
"""
import atexit
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

SOURCE, BUILD, VERSION = sys.argv[1:4]
USER = "54321:54321"
NAMESPACES = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork"]


def run(*command):
    """Its output; ends the test when it fails."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def expect(fine, what):
    if not fine:
        sys.exit(f"FAILED: {what}")


def unpack(folder):
    """The root directory of the image, and its configuration."""
    run(f"{SOURCE}/tools/image", BUILD, folder)
    archive, root = f"{folder}/image", f"{folder}/root"
    os.mkdir(archive)
    os.mkdir(root)
    run("tar", "-C", archive, "-xf", f"{folder}/clave-{VERSION}-image.tar")
    with open(f"{archive}/manifest.json", encoding="utf-8") as f:
        manifest = json.load(f)[0]
    expect(manifest["RepoTags"] == [f"localhost/clave:{VERSION}"], f"its name: {manifest['RepoTags']}")
    for layer in manifest["Layers"]:
        run("tar", "-C", root, "-xpf", f"{archive}/{layer}")
    with open(f"{archive}/{manifest['Config']}", encoding="utf-8") as f:
        return root, json.load(f)["config"]


class Container:
    """The image's command as a runtime starts it."""

    def __init__(self, root, config, volume, *flags):
        self.root, self.config = root, config
        command = ["/usr/sbin/chroot", f"--userspec={USER}", "--groups=", root] + config["Entrypoint"] + config["Cmd"] + list(flags)
        script = f"""
            ip link set lo up
            mount --bind {root} {root}
            # The only place to write.
            mount --bind {volume} {root}/var/lib/clave
            mount -o remount,bind,ro {root}
            cd /
            exec env -i {shlex.join(config['Env'])} {shlex.join(command)}"""
        self.process = subprocess.Popen(NAMESPACES + ["sh", "-euc", script], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        line = self.process.stdout.readline()
        expect("serving on" in line, f"it serves: {line}{'' if line else self.process.communicate()[0]}")
        self.pid = int(run("pgrep", "-P", str(self.process.pid)))
        atexit.register(self.kill)

    def kill(self):
        """A failed test ends its server, since unshare's --kill-child is lost when it becomes another user."""
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def entered(self, command):
        return ["nsenter", "--target", str(self.pid), "--mount", "--net", "--pid", "env", "-i",
                *self.config["Env"], "/usr/sbin/chroot", f"--userspec={USER}", "--groups=", self.root, *command]

    def inside(self, *command):
        """A command of the image in the container, with the image's environment."""
        return run(*self.entered(command))

    def fails(self, *command):
        done = subprocess.run(self.entered(command), capture_output=True, text=True, check=False)
        expect(done.returncode != 0, f"{command} fails: {done.stdout}")
        return done.stderr

    def healthy(self):
        check = self.config["Healthcheck"]["Test"]
        expect(check[0] == "CMD", f"health is checked without a shell: {check}")
        return self.inside(*check[1:])

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        try:
            said = self.process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            sys.exit("FAILED: process 1 does not end at SIGTERM")
        expect(self.process.returncode == 0, f"ended by SIGTERM, it exits with 0: {self.process.returncode}, {said}")


def as_containers_run(root, config, volume):
    first = Container(root, config, volume)
    with open(f"/proc/{first.pid}/status", encoding="ascii") as f:
        status = f.read()
    expect("\nUid:\t54321\t54321" in status and status.split("NSpid:")[1].split()[1] == "1",
           f"process 1 of an odd user: {status}")
    first.healthy()
    first.inside("/usr/bin/clave", "create", "/kept", "value")
    run("nsenter", "--target", str(first.pid), "--mount", "sh", "-c", f"! touch {root}/etc/written 2>/dev/null")
    first.stop()
    # HTTP, of which the server loads the libraries at its start.
    second = Container(root, config, volume, "--http", "127.0.0.1:8080")
    said = second.inside("/usr/bin/clave", "get", "/kept")
    expect(said.strip() == "value", f"what was written is there: {said}")
    refused = second.fails("/usr/bin/clave", "ping", "--connect", "tls:127.0.0.1:1", "--timeout", "1s")
    expect("refused" in refused, f"OpenSSL is loaded, and nobody listens there: {refused}")
    second.stop()


def main():
    if os.geteuid() != 0 or not shutil.which("buildah"):
        print("SKIPPED: the image is made by root with buildah (tools/setup image)")
        sys.exit(77)
    if subprocess.run(NAMESPACES + ["true"], capture_output=True, check=False).returncode:
        print("SKIPPED: this system gives no namespaces")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        root, config = unpack(folder)
        expect(not [n for n in ("sh", "bash") for d in ("bin", "usr/bin") if os.path.exists(f"{root}/{d}/{n}")],
               "no shell")
        volume = f"{folder}/volume"
        os.mkdir(volume)
        shutil.copymode(f"{root}/var/lib/clave", volume) # as a runtime makes a new volume
        as_containers_run(root, config, volume)


main()
