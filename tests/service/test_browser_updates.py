"""Updates of the page in a real browser: without a connection, while the page is hidden, after a lost response."""

from pathlib import Path

import pytest

from larl.service.http.auth import Auth
from larl.service.storage.database import Database
from tests.service.browser import Tab
from tests.service.page_site import STATUS, Site, log_in
from tests.service.processes import reserve_port
from tests.service.service_process import serving

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timing]


def test_lost_connection_is_shown_until_the_service_is_back(tab: Tab, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    token = Auth(Database(storage, create=True)).create("*", "analyst")
    with reserve_port() as reserved:
        port = int(reserved.getsockname()[1])
        with serving(storage, port=port) as url:
            tab.open(f"{url}/")
            tab.type_into("#token", token)
            tab.press("Enter")
            tab.wait_for_text("There is no study yet")
            tab.evaluate("location.hash = '#/study/none'")
            tab.wait_for_text("there is no such study")
            tab.evaluate("location.hash = '#/'")
            tab.wait_for_text("There is no study yet")
        tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        tab.wait_for_text("No connection")
        with serving(storage, port=port):
            tab.evaluate("window.dispatchEvent(new Event('online'))")
            tab.eventually(STATUS, "Live")


# Timers that the test fires: `timers` has those that are set, by number.
TIMERS = """
window.timers = new Map();
let last = 0;
window.setTimeout = (work, wait) => { last += 1; timers.set(last, { work, wait }); return last; };
window.clearTimeout = (number) => { timers.delete(number); };
window.fire = () => { const all = [...timers.values()]; timers.clear(); all.forEach(({ work }) => work()); };
"""
DELAYS = "[...timers.values()].map(({ wait }) => wait)"


def test_hidden_page_is_updated_rarely(tab: Tab, site: Site) -> None:
    """The page requests an update every 2 seconds, and every 30 seconds while it is hidden."""

    def updates() -> int:
        return sum("/overview" in url for url in tab.requests)

    tab.call("Page.addScriptToEvaluateOnNewDocument", source=TIMERS)
    log_in(tab, site)
    tab.eventually(DELAYS, [2_000])
    tab.evaluate(
        "Object.defineProperty(document, 'hidden', { get: () => window.isHidden ?? false, configurable: true })"
    )
    tab.evaluate("window.isHidden = true; document.dispatchEvent(new Event('visibilitychange'))")
    assert tab.evaluate(DELAYS) == [2_000]
    before = updates()
    tab.evaluate("fire()")  # the update that was due
    tab.eventually(DELAYS, [30_000])
    assert updates() == before + 1
    tab.evaluate("window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    tab.eventually(DELAYS, [2_000])
    assert updates() == before + 2


LOSES_RESPONSE = """
const send = window.fetch;
window.fetch = (path, options) => {
  if (!window.lose || !path.includes(window.lose)) return send(path, options);
  window.lose = null;
  return Promise.reject(new TypeError("the response was lost"));
};
"""


def test_list_of_units_is_requested_again_after_a_lost_response(tab: Tab, site: Site) -> None:
    site.create_study("lost")
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=TIMERS + LOSES_RESPONSE)
    log_in(tab, site, "#/study/lost")
    tab.wait_for_text("This study has no units yet.")
    site.post("studies/lost/decisions", {"unit": "first-unit", "key": "1"})
    tab.evaluate("window.lose = '/roster'; fire()")
    tab.eventually(f"{STATUS}.startsWith('No connection')")
    tab.evaluate("fire()")
    tab.eventually(STATUS, "Live")
    tab.wait_for_text("first-unit")
