"""A browser to look at the page with: headless Chromium, driven by its DevTools protocol over a pair of pipes."""

import base64
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.optional import CHROMIUM
from tests.waiting import PATIENCE, eventually

FLAGS = (
    "--headless=new",
    "--hide-scrollbars",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--remote-debugging-pipe",
)
# Chromium reads commands from descriptor 3 and answers to 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in enumerate(ends, 3):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class ProtocolError(AssertionError):
    """The browser refused a command."""


class Browser:
    """The process: commands go in, answers and events come out."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes, self._number = reads, writes, 0
        self._left = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """Send a command to the browser, or to the tab of a session, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while (answer := self._next(method)).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise ProtocolError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self, method: str) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._reads], [], [], PATIENCE)
            assert ready, f"the browser did not answer {method} within {PATIENCE:g} s"
            read = os.read(self._reads, 1 << 16)
            assert read, "the browser has ended"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    @contextmanager
    def tab(self) -> Iterator["Tab"]:
        """A new tab with cookies of its own; it is closed afterwards."""
        self.events.clear()
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        yield Tab(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        self.call("Target.disposeBrowserContext", browserContextId=context)


class Tab:
    """A page in a browser: what it asked for and complained of, and ways to use it."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    @property
    def events(self) -> list[dict[str, Any]]:
        """All that has happened in this tab."""
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def call(self, method: str, **words: Any) -> Any:
        """Ask the browser for something."""
        return self._browser.call(method, self._session, **words)

    def do(self, script: str) -> Any:
        """What an expression of JavaScript comes to."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def eventually(self, script: str, wanted: object = True) -> Any:
        """Wait until an expression has a value; with True, until it is true."""
        return eventually(lambda: self._found(script), wanted, details=lambda: f"{script}; the page shows: {self.text}")

    def until(self, script: str) -> Any:
        """Wait for an expression to become true."""
        return self.eventually(script)

    def _found(self, script: str) -> Any:
        try:
            return self.do(script)
        except ProtocolError:  # a new page was being loaded: its scripts run in another context
            return None

    def says(self, text: str) -> None:
        """Wait for the page to show a text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    @property
    def text(self) -> str:
        return str(self.do("document.body.innerText"))

    def open(self, url: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=url)
        self.eventually("[location.href, document.readyState]", [url, "complete"])

    def write(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.until(f"document.querySelector({json.dumps(selector)}) !== null")
        self.do(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, name: str) -> None:
        """Press a key."""
        text = {"Enter": "\r"}.get(name, "")
        code = {"Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Escape": 27}[name]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, text=text)

    def click(self, text: str) -> None:
        """Click the button or link that shows this text."""
        find = (
            f"[...document.querySelectorAll('button, a')].find((each) => each.innerText.trim() === {json.dumps(text)})"
        )
        self.until(f"Boolean({find})")
        self.do(f"{find}.click()")

    def size(self, width: int, height: int, dark: bool = False) -> None:
        """Be a window of this size, in the light or in the dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path, whole: bool = False) -> None:
        """Take a picture of the window, or of the whole page."""
        words: dict[str, Any] = {"captureBeyondViewport": whole}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            words["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **words)["data"]))

    @property
    def requests(self) -> list[str]:
        """Every address that was asked for."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["request"]["url"] for event in sent]

    @property
    def complaints(self) -> list[Any]:
        """Errors and warnings of the console, and scripts that failed."""
        found = []
        for event in self.events:
            said = event.get("params", {})
            if event["method"] == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                found.append(said["entry"]["text"])
            elif event["method"] == "Runtime.exceptionThrown" or said.get("type") in ("error", "warning"):
                found.append(said)
        return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser, gone afterwards."""
    reads, child_writes = os.pipe()
    child_reads, writes = os.pipe()
    ends = (str(child_reads), str(child_writes))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *ends, str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(child_reads, child_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(child_reads)
        os.close(child_writes)
        try:
            yield Browser(reads, writes)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # a group of its own: the browser and its helpers
            process.wait()
            os.close(reads)
            os.close(writes)
