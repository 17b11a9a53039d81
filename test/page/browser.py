"""A Chromium without a window, and waiting for what it shows: never for a time."""
import json
import os
import shutil
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.common.exceptions import (JavascriptException, StaleElementReferenceException, TimeoutException,
                                            WebDriverException)
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    sys.exit("python3-selenium is missing: tools/setup test")

PATIENCE = float(os.environ.get("PATIENCE", 30))  # seconds until something that should be shown is given up
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--force-color-profile=srgb",
         "--font-render-hinting=none", "--lang=en"]
TEXT = "((e) => e ? e.innerText ?? e.textContent : '')(document.querySelector(arguments[0]))"
UNTIL = """const done = arguments[arguments.length - 1];
    const test = function () { %s };
    const watch = new MutationObserver(ask);
    const all = arguments;
    function ask() {
        const found = test.apply(null, all);
        if (found) { watch.disconnect(); done(found); }
        return found;
    }
    if (!ask()) watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});"""


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="clave-chromium-")
        options = Options()
        options.binary_location = shutil.which("chromium") or sys.exit("chromium is missing: tools/setup test")
        for flag in FLAGS + [f"--user-data-dir={self.profile}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(shutil.which("chromedriver") or sys.exit("chromium-driver is missing: tools/setup test"))
        os.environ["TZ"] = "UTC"
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(PATIENCE)
        self.size(1440, 900)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})

    def dark(self, dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def blank(self):
        if self.driver.current_url != "about:blank":
            self.driver.get("about:blank")

    def open(self, url):
        """A page that knows nothing of the one before."""
        self.blank()
        self.driver.get(url)

    def go(self, route):
        self.js("location.hash = arguments[0]", "#/" + route)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.until("return document.querySelector(arguments[0])", selector, what=selector)

    def text(self, selector="body"):
        """The text of the first that matches, as it is seen; "" when there is none."""
        return self.js(f"return {TEXT}", selector)

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)

    def until(self, test, *arguments, what):
        """What JavaScript returns, as soon as that is something: the page asks again whenever it changes."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return self.driver.execute_async_script(UNTIL % test, *arguments)
            except TimeoutException:
                break
            except JavascriptException as e:
                if "unloaded" not in str(e):
                    raise  # another page came meanwhile
        self.not_seen(what)

    def not_seen(self, what):
        raise AssertionError(f"not seen within {PATIENCE} s: {what}\n{self.text('body')[:1500]}")

    def wait(self, condition, what=None):
        """As until, for what only Python can tell."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                value = condition()
            except StaleElementReferenceException:
                value = None
            if value:
                return value
            if time.monotonic() > end:
                self.not_seen(what or condition)
            time.sleep(0.01)

    def see(self, text, selector="body"):
        self.until(f"return {TEXT}.includes(arguments[1])", selector, text, what=f"{text!r} in {selector}")

    def see_not(self, text, selector="body"):
        self.until(f"return !{TEXT}.includes(arguments[1])", selector, text, what=f"no {text!r} in {selector}")

    def click(self, selector):
        self.one(selector).click()

    def keys(self, *keys):
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def pointer_away(self):
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 2, "y": 2})

    def focused(self):
        return self.js("const e = document.activeElement; return e ? (e.innerText || e.id || e.tagName) : ''")

    def complaints(self):
        """What the console has of errors, but for connections that a test cut."""
        return [e["message"] for e in self.driver.get_log("browser") if e["level"] == "SEVERE"
                and "Failed to load resource" not in e["message"] and "net::ERR" not in e["message"]]

    def axe(self, source, rules=None):
        """What axe finds, by those of its rules that it has on, or by the ones named."""
        if not self.js("return Boolean(window.axe)"):
            self.js(source)
        answer = self.driver.execute_async_script(
            "const [rules, done] = arguments;"
            " axe.run(document, {resultTypes: ['violations'], ...(rules && {runOnly: {type: 'rule', values: rules}})})"
            ".then(({violations}) => done({violations}), (e) => done({error: String(e)}))", rules)
        if "error" in answer:
            raise AssertionError(answer["error"])
        return [f"{v['id']}: {v['help']}\n    " + "\n    ".join(f"{n['html'][:160]} {json.dumps(n['any'][:1] and n['any'][0]['message'])}"
                for n in v["nodes"][:4]) for v in answer["violations"]]


__all__ = ["Browser", "By", "Keys", "PATIENCE", "WebDriverException"]
