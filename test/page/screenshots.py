#!/usr/bin/python3
"""Every screen as a picture, to be looked at: screenshots.py FOLDER [NAME...]. At 1280 and 390 pixels, light and
dark, with 0, 5 and 5 000 locks, with deadlocks, with the gate gone. "docs" alone makes those of docs/images, as WebP."""
import base64
import os
import sys

import scenes
from browser import Browser
from fixture_gate import FixtureGate

WORK = {"lock": ("locks/accounts/alice", "Queue"), "deadlocks": ("deadlocks", "Deadlock of 3"), "elections": ("elections", "nobody leads"),
        "election": ("elections/services/scheduler", "Candidates"), "sessions": ("sessions", "nightly backup"), "tree": ("tree", "Access list"),
        "node": ("tree/config", "JSON"), "events": ("events", "granted"), "event": ("events/17", "Event 17"), "server": ("server", "fsync"), "lock-table": ("locks/accounts/alice?as=table", "Ended by")}
EMPTY = {"deadlocks": ("deadlocks", "No deadlock"), "elections": ("elections", "No election"), "sessions": ("sessions", "No session"), "events": ("events", "Nothing yet"), "server": ("server", "Ask the servers"),
         "lock": ("locks/demo/first", "Nobody holds")}
SIZES = {"1280": (1280, 900), "390": (390, 844)}


DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "images")
IN_DOCS = {"locks": ("locks", "in all", (1440, 900), False), "lock": ("locks/accounts/alice", "Who held it when", (1440, 1000), False), "server": ("server", "fsync", (1440, 900), False),
           "deadlocks": ("deadlocks", "Deadlock of 3", (1440, 900), True), "phone": ("locks", "in all", (390, 844), True)}


class Camera:
    def __init__(self, folder, wanted):
        self.folder, self.wanted, self.browser = folder, wanted, Browser()

    def wants(self, name):
        return not self.wanted or any(name.startswith(w) for w in self.wanted)

    def take(self, name, route, seen):
        if not self.wants(name):
            return
        b = self.browser
        for size, (width, height) in SIZES.items():
            b.size(width, height)
            b.go(route)
            b.see(seen, "main")
            b.js("scrollTo(0, 0); document.activeElement.blur()")
            for dark in False, True:
                b.dark(dark)
                b.driver.execute_async_script("const done = arguments[0]; document.fonts.ready.then(() => requestAnimationFrame(() => requestAnimationFrame(done)))")
                path = os.path.join(self.folder, f"{name}-{size}{'-dark' if dark else ''}.png")
                b.driver.save_screenshot(path)

    def scene(self, gate):
        self.browser.size(1440, 900)
        self.browser.open(gate.url)
        self.browser.see("Live")


def docs(camera):
    b = camera.browser
    camera.scene(scenes.cluster(FixtureGate(), 9, deadlock=True))
    for name, (route, seen, size, dark) in IN_DOCS.items():
        b.size(*size)
        b.dark(dark)
        b.go(route)
        b.see(seen, "main")
        b.js("scrollTo(0, 0); document.activeElement.blur()")
        b.driver.execute_async_script("const done = arguments[0]; document.fonts.ready.then(() => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shot = b.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 80})
        with open(os.path.join(DOCS, f"page-{name}.webp"), "wb") as f:
            f.write(base64.b64decode(shot["data"]))


def dialogs(camera):
    b = camera.browser
    if not camera.wants("dialog"):
        return
    b.size(1440, 900)
    for name, route, button, dialog in (("break", "locks/accounts/alice", ".actions .danger", "#break"), ("help", "locks", ".foot button:last-child", "#help"),
                                        ("token", "locks", ".foot button", "#token")):
        b.go(route)
        b.click(button)
        b.one(dialog)
        for dark in False, True:
            b.dark(dark)
            b.driver.save_screenshot(os.path.join(camera.folder, f"dialog-{name}{'-dark' if dark else ''}.png"))
        b.js("document.querySelector(arguments[0]).close()", dialog)


def main(folder, *wanted):
    os.makedirs(folder, exist_ok=True)
    camera = Camera(folder, wanted)
    try:
        if wanted == ("docs",):
            return docs(camera)
        gate = scenes.cluster(FixtureGate(), 5)
        camera.scene(gate)
        camera.take("locks-5", "locks", "in all")
        gate = scenes.cluster(FixtureGate(), 9, deadlock=True)
        camera.scene(gate)
        camera.take("locks-deadlock", "locks", "in all")
        for name, (route, seen) in WORK.items():
            camera.take(name, route, seen)
        dialogs(camera)
        gate.stop()
        camera.browser.see("does not answer")
        camera.take("gone-locks", "locks", "in all")
        camera.take("gone-deadlocks", "deadlocks", "Deadlock of 3")
        camera.scene(FixtureGate(role="read"))
        camera.take("locks-0", "locks", "No lock is held")
        for name, (route, seen) in EMPTY.items():
            camera.take(f"empty-{name}", route, seen)
        camera.scene(scenes.cluster(FixtureGate(role="lock"), 5000))
        camera.take("locks-5000", "locks", "in all")
    finally:
        camera.browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
