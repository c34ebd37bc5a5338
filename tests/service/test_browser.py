"""The page as people meet it: a real browser, a real service, and a study in which things happen."""

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from larl.service.clock import now
from larl.service.core.issues import IssueLog
from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from larl.service.storage.journal import Journal
from tests.service.browser import Browser, Tab, browser
from tests.service.processes import reserve_port
from tests.service.running import serving
from tests.waiting import eventually

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timing]
TRICKY = "<img src=x onerror=alert(1)>"
SPOKEN = "document.querySelector('.chart [aria-live]').innerText"
STATUS = "document.querySelector('#status').innerText"
ARMS = ["rest", "walk", TRICKY]


@dataclass
class Site:
    """A service, and who uses it."""

    url: str
    host: str
    admin: str

    def post(self, path: str, words: dict[str, Any], token: str = "") -> Any:
        headers = {"Authorization": f"Bearer {token or self.host}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/{path}", json.dumps(words).encode(), headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def decide(self, key: str, unit: str, value: float | None = None) -> str:
        """A decision and, if there is a value, its reward."""
        found = self.post("studies/sleep/decisions", {"unit": unit, "key": key})["id"]
        if value is not None:
            self.post(f"decisions/{found}/reward", {"key": key, "value": value})
        return str(found)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('page') / 'study.db'}"


@pytest.fixture(scope="module")
def site(storage: str) -> Iterator[Site]:
    """A service with a study of two units, in which something has gone wrong."""
    database = Database(storage, create=True)
    host, admin = Auth(database).create("*", "host"), Auth(database).create("*", "admin")
    with reserve_port() as reserved:
        port = int(reserved.getsockname()[1])
        with serving(storage, port=port) as url:
            found = Site(url, host, admin)
            words = {
                "study": "sleep",
                "arms": ARMS,
                "policy": {"policy": "UCB"},
                "min_probability": 0.1,
                "max_delay": 3,
            }
            found.post("studies", words, admin)
            for i in range(12):
                found.decide(f"first-{i}", f"unit-{i % 2}", i / 10 if i != 3 else None)
        journal = Journal(database)
        with journal.transaction() as tx:
            words_of_it = ("the policy failed: it lost its way", "the fixed probabilities decided")
            IssueLog().record(tx, "sleep", "red", "policy", "unit-1", *words_of_it, now())
        with serving(storage, port=port):  # anew: it numbers the rows after those
            yield found
    database.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    with chromium.tab() as found:
        found.size(1280, 900)
        yield found


def enter(tab: Tab, site: Site, place: str = "#/study/sleep") -> None:
    tab.open(f"{site.url}/{place}")
    tab.write("#token", site.admin)
    tab.press("Enter")
    tab.until(f"document.querySelector('#session button') !== null && {STATUS} === 'Live'")


def shows(tab: Tab, name: str, value: object) -> None:
    """Wait until a figure of the list of figures has a value."""
    eventually(lambda: figure(tab, name), str(value), details=lambda: f"{name}; the page shows: {tab.text}")


def figure(tab: Tab, name: str) -> str | None:
    """A figure of the list of figures as it is now; None where there is none."""
    terms = "[...document.querySelectorAll('.figures dt')]"
    return tab.do(f"{terms}.find((each) => each.innerText === '{name}')?.nextElementSibling.innerText")


def test_a_study_is_watched_from_log_in_to_log_out(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/")
    tab.says("Log in")
    tab.write("#token", site.admin)
    tab.click("Log in")
    tab.says("Open issues")
    tab.click("sleep")
    tab.until("document.querySelectorAll('.plot svg .line').length > 1")
    tab.do("window.sameAsBefore = true")
    shows(tab, "Units", 2)
    shows(tab, "Decisions", 12)
    for i in range(5):
        site.decide(f"live-{i}", "unit-2", 1.0)
    shows(tab, "Decisions", 17)
    shows(tab, "Units", 3)
    last = site.decide("live-5", "unit-2")  # nothing follows, so the page goes on showing that it is new
    tab.says("1 new decision, last event")
    shows(tab, "Decisions", 18)
    site.post(f"decisions/{last}/reward", {"key": "live-5", "value": 1.0})

    tab.click("unit-2")
    tab.says("Pending and late rewards")
    tab.eventually("document.querySelectorAll('[aria-label^=\"Decisions,\"] tbody tr').length", 6)
    tab.eventually("document.querySelectorAll('.mark').length", 6)
    shows(tab, "Pending", 0)
    open_one = site.decide("waits", "unit-2")
    tab.eventually("document.querySelectorAll('.mark').length", 7)
    shows(tab, "Pending", 1)
    site.post(f"decisions/{open_one}/reward", {"key": "waits", "value": 2.5})
    shows(tab, "Pending", 0)
    tab.says("2.500")

    tab.do("history.back()")
    tab.until("document.querySelector('.issue') !== null")
    tab.says("he policy failed: it lost its way")
    tab.click("Resolve…")
    tab.do("document.querySelector('.issue textarea').focus()")
    tab.call("Input.insertText", text=f"restarted it {TRICKY}")
    site.decide("meanwhile", "unit-0", 0.0)  # the study moves on; what is being written stays
    shows(tab, "Decisions", 20)
    assert tab.do("document.querySelector('.issue textarea').value") == f"restarted it {TRICKY}"
    tab.click("Mark as resolved")
    tab.says("none open")
    tab.do("document.querySelector('.issues + details summary').click()")
    tab.says(f"restarted it {TRICKY}")
    assert tab.do("window.sameAsBefore"), "it was loaded again"

    tab.click("Log out")
    tab.says("You are logged out.")
    assert "unit-2" not in tab.text
    assert tab.do("fetch('v1/studies').then((answer) => answer.status)") == 401
    refused = [text for text in tab.complaints if "401" not in str(text)]  # that one was to be refused
    assert refused == []
    assert all(url.startswith((f"{site.url}/", "about:")) for url in tab.requests)


def test_nothing_leaves_the_address(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/")
    tab.says("Log in")
    tab.do("addEventListener('securitypolicyviolation', (each) => { window.broken = each.effectiveDirective })")
    assert tab.do("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')") == "blocked"
    tab.until("window.broken === 'connect-src'")
    tab.do("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))")
    tab.until("window.broken === 'script-src-elem'")
    assert tab.do("window.ran === undefined")


def test_a_wrong_token_is_refused_in_words(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/")
    tab.write("#token", "larl_nothing")
    tab.press("Enter")
    tab.says("Refused: this token is unknown or revoked.")
    tab.do("document.querySelector('#token').value = ''")
    tab.write("#token", site.host)
    tab.press("Enter")
    tab.says("Refused: this token cannot read; accepted: a token with role analyst or admin.")


@pytest.mark.parametrize("place", ["#/", "#/study/sleep", "#/study/sleep/unit/unit-0"])
def test_it_fits_a_phone_and_everything_has_a_name(tab: Tab, site: Site, place: str) -> None:
    tab.size(360, 740, dark=True)
    enter(tab, site, place)
    tab.until("document.querySelector('main h1') !== null && !document.body.innerText.includes('Loading…')")
    tab.eventually("document.documentElement.scrollWidth", 360)
    assert tab.do("document.querySelector('main img') === null"), "an arm's name became an element"
    small = (
        "[...document.querySelectorAll('button')].filter((each) => each.offsetHeight && each.offsetHeight < 32).length"
    )
    assert tab.do(small) == 0
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "textbox", "radio", "image", "table", "region", "heading", "group"}
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in roles and not node["ignored"]:
            assert node["name"]["value"] or role in ("group", "image"), node
    levels = tab.do("[...document.querySelectorAll('h1, h2, h3')].map((each) => Number(each.tagName[1]))")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert tab.do("['header', 'nav', 'main'].every((each) => document.querySelectorAll(each).length === 1)")
    assert tab.complaints == []


def test_it_can_be_used_without_a_pointer(tab: Tab, site: Site) -> None:
    enter(tab, site)
    tab.eventually("document.activeElement.tagName", "H1")
    tab.do("document.body.focus(); document.activeElement.blur()")
    tab.do("document.querySelector('.skip').focus()")
    tab.press("Enter")
    tab.eventually("document.activeElement.id", "main")
    assert tab.do("location.hash") == "#/study/sleep"
    tab.until("document.querySelector('.plot svg .line') !== null")
    tab.do("document.querySelector('.plot svg').focus()")
    tab.press("ArrowRight")
    tab.until(f"{SPOKEN}.startsWith('Step 0; Reward ')")
    tab.eventually("document.querySelector('.tip').hidden", False)
    tab.press("End")
    tab.until(f"{SPOKEN} && !{SPOKEN}.startsWith('Step 0; ')")
    tab.press("Escape")
    tab.eventually("document.querySelector('.tip').hidden", True)
    tab.eventually(SPOKEN, "")
    tab.do("document.querySelector('input[value=days]').click()")
    tab.do("document.querySelector('.plot svg').focus()")
    tab.press("End")
    tab.until(f"/^20\\d\\d-\\d\\d-\\d\\d; Reward .+; Expected /.test({SPOKEN})")
    tab.do("document.querySelector('input[value=steps]').click()")
    tab.do("document.querySelector('.chart summary').click()")
    tab.until("document.querySelectorAll('.chart table tbody tr').length > 3")
    heads = "[...document.querySelectorAll('.chart table thead th')].map((each) => each.innerText)"
    tab.eventually(heads, ["Step", "Reward", "Expected"])


def test_what_there_is_not_is_said(tab: Tab, site: Site) -> None:
    enter(tab, site, "#/study/sleep")
    tab.do("location.hash = '#/study/nowhere'")
    tab.says("there is no such study")
    tab.do("location.hash = '#/study/sleep/unit/nobody'")
    tab.says("there is no such unit")
    site.post("studies", {"study": "empty", "arms": ARMS, "policy": {"policy": "UCB"}}, site.admin)
    tab.do("location.hash = '#/study/empty'")
    tab.says("This study has no units yet.")
    tab.says("No data yet.")


def test_a_service_that_is_gone_is_said_to_be_and_comes_back(tab: Tab, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    with_token = Auth(Database(storage, create=True)).create("*", "analyst")
    with reserve_port() as reserved:
        port = int(reserved.getsockname()[1])
        with serving(storage, port=port) as url:
            tab.open(f"{url}/")
            tab.write("#token", with_token)
            tab.press("Enter")
            tab.says("There is no study yet")
            tab.do("location.hash = '#/study/none'")
            tab.says("there is no such study")
            tab.do("location.hash = '#/'")
            tab.says("There is no study yet")
        tab.do("document.dispatchEvent(new Event('visibilitychange'))")
        tab.says("No connection")
        with serving(storage, port=port):
            tab.do("window.dispatchEvent(new Event('online'))")
            tab.eventually(STATUS, "Live")


# Timers that the test fires: `timers` are those that are set, as [number, milliseconds].
TIMERS = """
window.timers = new Map();
let last = 0;
window.setTimeout = (work, wait) => { last += 1; timers.set(last, { work, wait }); return last; };
window.clearTimeout = (number) => { timers.delete(number); };
window.fire = () => { const all = [...timers.values()]; timers.clear(); all.forEach(({ work }) => work()); };
"""
WAITS = "[...timers.values()].map(({ wait }) => wait)"


def test_no_look_while_nobody_sees_it(tab: Tab, site: Site) -> None:
    """Between two looks there are 2 seconds while somebody sees the page, and 30 while nobody does."""

    def looks() -> int:
        return sum("/overview" in url for url in tab.requests)

    tab.call("Page.addScriptToEvaluateOnNewDocument", source=TIMERS)
    enter(tab, site)
    tab.eventually(WAITS, [2_000])
    tab.do("Object.defineProperty(document, 'hidden', { get: () => window.away ?? false, configurable: true })")
    tab.do("window.away = true; document.dispatchEvent(new Event('visibilitychange'))")
    assert tab.do(WAITS) == [2_000]
    before = looks()
    tab.do("fire()")  # the look that was due
    tab.eventually(WAITS, [30_000])
    assert looks() == before + 1
    tab.do("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    tab.eventually(WAITS, [2_000])
    assert looks() == before + 2


LOSES = """
const ask = window.fetch;
window.fetch = (path, options) => {
  if (!window.lose || !path.includes(window.lose)) return ask(path, options);
  window.lose = null;
  return Promise.reject(new TypeError("the answer was lost"));
};
"""


def test_a_list_of_units_whose_answer_was_lost_is_asked_for_again(tab: Tab, site: Site) -> None:
    site.post("studies", {"study": "lost", "arms": ARMS, "policy": {"policy": "UCB"}}, site.admin)
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=TIMERS + LOSES)
    enter(tab, site, "#/study/lost")
    tab.says("This study has no units yet.")
    site.post("studies/lost/decisions", {"unit": "first-unit", "key": "1"})
    tab.do("window.lose = '/roster'; fire()")
    tab.until(f"{STATUS}.startsWith('No connection')")
    tab.do("fire()")
    tab.eventually(STATUS, "Live")
    tab.says("first-unit")
