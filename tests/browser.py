"""A headless Chromium that does what a reader does, over the pipe of its debugging protocol."""

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_SECONDS = 60
_KEYS = {
    "Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), "End": (35, ""), "Home": (36, ""),
    "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, ""),
}  # fmt: skip


class Browser:
    """One browser with one page."""

    def __init__(self, folder):
        self.folder = Path(folder)
        read_there, self._write = os.pipe()
        self._read, write_there = os.pipe()
        # The browser reads its orders from 3 and answers on 4. Two numbers that are free keep
        # both ends apart while they are put there.
        ours = [os.dup2(own, own + 100, inheritable=True) for own in (read_there, write_there)]
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--disable-background-networking", "--hide-scrollbars", "--force-color-profile=srgb",
            f"--user-data-dir={self.folder / 'profile'}", "about:blank",
        ]  # fmt: skip
        pipes = f"exec 3<&{ours[0]} 4>&{ours[1]}; exec "
        self._process = subprocess.Popen(
            ["bash", "-c", pipes + '"$@"', "bash", *command],
            pass_fds=ours, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for own in (read_there, write_there, *ours):
            os.close(own)
        self._numbers, self._waiting, self._session = itertools.count(1), b"", None
        self.events = []
        target = self.call("Target.getTargets")["targetInfos"]
        page = next(found for found in target if found["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")

    def close(self):
        with contextlib.suppress(Exception):
            self._session = None
            self.call("Browser.close")
        self._process.wait(_SECONDS)
        os.close(self._read)
        os.close(self._write)

    def call(self, method, **params):
        """Give an order and return the answer; what happens meanwhile is kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        until = time.monotonic() + _SECONDS
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            read = os.read(self._read, 1 << 20)
            assert read, "the browser has gone"
            self._waiting += read
        text, self._waiting = self._waiting.split(b"\0", 1)
        return json.loads(text)

    def wait_for(self, method):
        """Return the next event of a kind."""
        while True:
            answer = self._next()
            self.events.append(answer)
            if answer.get("method") == method:
                return answer["params"]

    def open(self, page, *, width=1280, height=900, dark=False, scripts=True, media=""):
        """Show a page, given as text or as the path of a file."""
        path = page
        if not isinstance(page, Path):
            path = self.folder / "report.html"
            path.write_text(page, encoding="utf-8")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url="about:blank")
        self.wait_for("Page.loadEventFired")
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired")
        return self

    def see(self, expression):
        """Return the value of an expression of the page's language."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def text(self, selector):
        return self.see(f"document.querySelector({json.dumps(selector)}).textContent.trim()")

    def count(self, selector):
        return self.see(f"document.querySelectorAll({json.dumps(selector)}).length")

    def box(self, selector):
        """Return left, top, width and height of an element, after moving it into sight."""
        return self.see(
            f"(() => {{ const node = document.querySelector({json.dumps(selector)});"
            "node.scrollIntoView({block: 'center'}); const b = node.getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height]; })()"
        )

    def mouse(self, kind, x, y, buttons=0):
        button = "none" if kind == "mouseMoved" else "left"
        event = {"type": kind, "x": x, "y": y, "button": button, "buttons": buttons}
        self.call("Input.dispatchMouseEvent", **event, clickCount=1)

    def click(self, selector, across=0.5, down=0.5):
        left, top, width, height = self.box(selector)
        x, y = left + across * width, top + down * height
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)

    def drag(self, selector, start, end):
        left, top, width, height = self.box(selector)
        (x0, y0), (x1, y1) = [(left + a * width, top + d * height) for a, d in (start, end)]
        self.mouse("mousePressed", x0, y0, 1)
        for part in (0.3, 0.6, 1.0):
            self.mouse("mouseMoved", x0 + part * (x1 - x0), y0 + part * (y1 - y0), 1)
        self.mouse("mouseReleased", x1, y1)

    def press(self, *keys):
        for key in keys:
            code, text = _KEYS[key]
            own = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            down = {**own, "text": text} if text else own
            self.call("Input.dispatchKeyEvent", type="keyDown", **down)
            self.call("Input.dispatchKeyEvent", type="keyUp", **own)

    def write(self, text):
        self.call("Input.insertText", text=text)

    def complaints(self):
        """Return what the console has been told, and errors that nobody caught."""
        self.see("1")
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self.events if event.get("method") in kinds]

    def requests(self):
        """Return all addresses that were asked for, beside the page itself."""
        self.see("1")
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.endswith(".html") and not url.startswith("blob:")]

    def screenshot(self, path, *, whole=True):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        more = {"captureBeyondViewport": True, "clip": clip} if whole else {}
        shot = self.call("Page.captureScreenshot", format="png", **more)
        Path(path).write_bytes(base64.b64decode(shot["data"]))
