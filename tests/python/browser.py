"""A headless Chromium, driven by its own protocol over two pipes (--remote-debugging-pipe): no package is needed.

    with Browser() as b:
        page = b.open(Path("report.html"))
        page.eval("document.title")
        page.key("t")
        page.screenshot(Path("a.png"))
        page.problems                       # errors on the console, exceptions, requests that left the file

Browser.find() is None where no Chromium is installed.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

LIMIT = 60  # seconds for any answer


class Browser:
    @staticmethod
    def find():
        return next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        # The browser reads from 3 and writes to 4, whatever numbers the pipes have here.
        line = [self.find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                f"--user-data-dir={self.folder.name}", "--no-first-run", "--disable-background-networking", *options, "about:blank"]
        shell = 'exec "$@" 3<&%d 4>&%d %d<&- %d>&-' % (theirs_in, theirs_out, theirs_in, theirs_out)
        if {theirs_in, theirs_out} & {3, 4}:
            shell = 'exec "$@" 8<&%d 9>&%d 3<&8 4>&9' % (theirs_in, theirs_out)
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *line], pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.rest, self.number, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(LIMIT)
        except Exception:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.folder.cleanup()

    def message(self):
        """The next one that comes."""
        end = time.monotonic() + LIMIT
        while b"\0" not in self.rest:
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.back, 1 << 20)
            if not more:
                raise ConnectionError("the browser has ended")
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, session=None, **parameters):
        self.number += 1
        m = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(m).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            m = self.message()
            if m.get("id") != self.number:
                self.events.append(m)
                continue
            if "error" in m:
                raise RuntimeError(f"{method}: {m['error']['message']}")
            return m["result"]

    def open(self, path, width=1400, height=900, dark=False):
        return Page(self, path, width, height, dark)


class Page:
    def __init__(self, browser, path, width, height, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.url = path.resolve().as_uri()
        self.call("Page.navigate", url=self.url)
        self.wait("document.documentElement?.dataset.ready === ''")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def eval(self, script):
        r = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"].get("exception", {}).get("description", r["exceptionDetails"]["text"]))
        return r["result"].get("value")

    def wait(self, condition):
        end = time.monotonic() + LIMIT
        while not self.eval(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def key(self, key, text=None, modifiers=0):
        text = text if text is not None else key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, modifiers=modifiers)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def type(self, text):
        for c in text:
            self.key(c)

    def click(self, script, dx=0, dy=0):
        """In the middle of the element that the script gives."""
        x, y = self.eval(f"(r => [r.x + r.width / 2, r.y + r.height / 2])(({script}).getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x + dx, y=y + dy, button="left", clickCount=1)

    def drag(self, x, y, dx, dy):
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for k in (1, 2, 3, 4):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + dx * k / 4, y=y + dy * k / 4, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x + dx, y=y + dy, button="left", clickCount=1)

    def wheel(self, x, y, dy, ctrl=False):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=dy, modifiers=2 if ctrl else 0)

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    @property
    def problems(self):
        """What went wrong in this page so far: exceptions, errors and warnings of the console, requests for anything but the file."""
        self.eval("0")
        found = []
        for m in self.browser.events:
            p = m.get("params", {})
            if m.get("sessionId") != self.session:
                continue
            if m["method"] == "Runtime.exceptionThrown":
                d = p["exceptionDetails"]
                found.append(d.get("exception", {}).get("description", d["text"]))
            elif m["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                found.append(f"console: {p['args']}")
            elif m["method"] == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {p['entry']['text']}")
            elif m["method"] == "Network.requestWillBeSent":
                url = p["request"]["url"]
                if not url.startswith("data:") and url.split("#")[0] not in (self.url, "about:blank"):
                    found.append(f"request: {url}")
        return found
