"""Headless Chromium, driven by the DevTools protocol over a pair of pipes."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
# Chromium reads commands from descriptor 3 and writes responses to 4.
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
    """A browser process."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes, self._number = reads, writes, 0
        self._left = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """Send a command to the browser, or to the tab of a session, and return its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._writes, json.dumps(command).encode() + b"\0")
        while (message := self._next(method)).get("id") != self._number:
            self.events.append(message)
        if "error" in message:
            raise ProtocolError(f"{method}: {message['error']}")
        return message["result"]

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
        """Open a tab that shares no cookies with other tabs; close it afterwards."""
        self.events.clear()
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        yield Tab(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        self.call("Target.disposeBrowserContext", browserContextId=context)


class Tab:
    """A page in a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of this tab."""
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command to this tab and return its result."""
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def eventually(self, script: str, wanted: object = True) -> Any:
        """Wait until a JavaScript expression has a value; with True, any true value is enough."""
        return eventually(lambda: self._value(script), wanted, details=lambda: f"{script}; the page shows: {self.text}")

    def _value(self, script: str) -> Any:
        try:
            return self.evaluate(script)
        except ProtocolError:  # a new page is being loaded: its scripts run in another context
            return None

    def wait_for_text(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.eventually(f"document.body.innerText.includes({json.dumps(text)})")

    @property
    def text(self) -> str:
        """The text of the page."""
        return str(self.evaluate("document.body.innerText"))

    def open(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        self.call("Page.navigate", url=url)
        self.eventually("[location.href, document.readyState]", [url, "complete"])

    def type_into(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.eventually(f"document.querySelector({json.dumps(selector)}) !== null")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, name: str) -> None:
        """Press a key."""
        text = {"Enter": "\r"}.get(name, "")
        code = {"Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Escape": 27}[name]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, text=text)

    def click(self, text: str) -> None:
        """Click the button or link with this text."""
        find = (
            f"[...document.querySelectorAll('button, a')].find((each) => each.innerText.trim() === {json.dumps(text)})"
        )
        self.eventually(f"Boolean({find})")
        self.evaluate(f"{find}.click()")

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        """Set the size of the window and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    @property
    def requests(self) -> list[str]:
        """All addresses that were requested."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["request"]["url"] for event in sent]

    @property
    def errors(self) -> list[Any]:
        """Errors and warnings of the console, and exceptions of scripts."""
        found = []
        for event in self.events:
            details = event.get("params", {})
            if event["method"] == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
                found.append(details["entry"]["text"])
            elif event["method"] == "Runtime.exceptionThrown" or details.get("type") in ("error", "warning"):
                found.append(details)
        return found


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Start a browser; end it afterwards."""
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
            os.killpg(process.pid, signal.SIGKILL)  # the process group: the browser and its helpers
            process.wait()
            os.close(reads)
            os.close(writes)
