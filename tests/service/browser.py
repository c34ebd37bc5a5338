"""A browser to look at the page with: headless Chromium, driven by its DevTools protocol over a pair of pipes."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless=new", "--hide-scrollbars", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-extensions", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 30.0  # seconds
# Chromium reads commands from descriptor 3 and answers to 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in enumerate(ends, 3):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Tab:
    """A page in a browser: what it asked for and complained of, and ways to use it."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes, self._number, self._session = reads, writes, 0, None
        self._left = b""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **words: Any) -> Any:
        """Ask the browser for something."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": words}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            read = os.read(self._reads, 1 << 16)
            assert read, "the browser has gone"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def do(self, script: str) -> Any:
        """What an expression of JavaScript comes to."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait for an expression to become true."""
        end = time.monotonic() + PATIENCE
        while not (found := self.do(script)):
            assert time.monotonic() < end, f"{script} did not become true; the page says: {self.text}"
            time.sleep(0.1)
        return found

    def says(self, text: str) -> None:
        """Wait for the page to show a text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    @property
    def text(self) -> str:
        return str(self.do("document.body.innerText"))

    def open(self, url: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

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
        )  # fmt: skip
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
def browser() -> Iterator[Tab]:
    """A browser with one tab, gone afterwards."""
    reads, child_writes = os.pipe()
    child_reads, writes = os.pipe()
    ends = (str(child_reads), str(child_writes))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *ends, str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(child_reads, child_writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(child_reads)
        os.close(child_writes)
        try:
            yield Tab(reads, writes)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # a group of its own: the browser and its helpers
            process.wait()
            os.close(reads)
            os.close(writes)
