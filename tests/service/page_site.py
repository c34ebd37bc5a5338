"""A service with a study to show on the page, and steps that tests of the page share."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from larl.service.clock import now
from larl.service.core.issues import IssueLog
from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from tests.service.browser import Tab
from tests.service.processes import reserve_port
from tests.service.service_process import serving
from tests.waiting import eventually

TRICKY = "<img src=x onerror=alert(1)>"  # must be shown as text
STATUS = "document.querySelector('#status').innerText"
ARMS = ["rest", "walk", TRICKY]


@dataclass
class Site:
    """A running service, and tokens of a host and an admin."""

    url: str
    host: str
    admin: str

    def post(self, path: str, body: dict[str, Any], token: str = "") -> Any:
        headers = {"Authorization": f"Bearer {token or self.host}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=300) as response:
            return json.load(response)

    def create_study(self, study: str, **more: Any) -> None:
        self.post("studies", {"study": study, "arms": ARMS, "policy": {"policy": "UCB"}} | more, self.admin)

    def decide(self, key: str, unit: str, value: float | None = None) -> str:
        """Request a decision and send its reward, if it has one; return the id of the decision."""
        decision = str(self.post("studies/sleep/decisions", {"unit": unit, "key": key})["id"])
        if value is not None:
            self.reward(decision, key, value)
        return decision

    def reward(self, decision: str, key: str, value: float) -> None:
        self.post(f"decisions/{decision}/reward", {"key": key, "value": value})


@contextmanager
def serving_site(storage: str) -> Iterator[Site]:
    """Serve a study of two units with twelve decisions and an open issue."""
    database = Database(storage, create=True)
    host, admin = Auth(database).create("*", "host"), Auth(database).create("*", "admin")
    with reserve_port() as reserved:
        port = int(reserved.getsockname()[1])
        with serving(storage, port=port) as url:
            site = Site(url, host, admin)
            site.create_study("sleep", min_probability=0.1, max_delay=3)
            for i in range(12):
                site.decide(f"first-{i}", f"unit-{i % 2}", i / 10 if i != 3 else None)
        with Journal(database).transaction() as tx:
            texts = ("the policy failed: it lost its way", "the fallback probabilities decided")
            IssueLog().record(tx, "sleep", "red", "policy", "unit-1", *texts, now())
        with serving(storage, port=port):  # a new process: it continues after the number of this event
            yield site
    database.close()


def log_in(tab: Tab, site: Site, view: str = "#/study/sleep") -> None:
    """Open a view of the page and log in as admin."""
    tab.open(f"{site.url}/{view}")
    tab.type_into("#token", site.admin)
    tab.press("Enter")
    tab.eventually(f"document.querySelector('#session button') !== null && {STATUS} === 'Live'")


def wait_for_figure(tab: Tab, name: str, value: object) -> None:
    """Wait until a key figure has a value."""
    terms = "[...document.querySelectorAll('.figures dt')]"
    script = f"{terms}.find((each) => each.innerText === '{name}')?.nextElementSibling.innerText"
    eventually(lambda: tab.evaluate(script), str(value), details=lambda: f"{name}; the page shows: {tab.text}")
