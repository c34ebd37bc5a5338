"""The page in a real browser, of a service that runs as a process."""

import pytest

from tests.service.browser import Tab
from tests.service.page_site import TRICKY, Site, log_in, wait_for_figure

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timing]
ANNOUNCED = "document.querySelector('.chart [aria-live]').innerText"


def test_study_is_updated_from_log_in_to_log_out(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/")
    tab.wait_for_text("Log in")
    tab.type_into("#token", site.admin)
    tab.click("Log in")
    tab.wait_for_text("Open issues")
    tab.click("sleep")
    tab.eventually("document.querySelectorAll('.plot svg .line').length > 1")
    tab.evaluate("window.notReloaded = true")
    wait_for_figure(tab, "Units", 2)
    wait_for_figure(tab, "Decisions", 12)
    for i in range(5):
        site.decide(f"live-{i}", "unit-2", 1.0)
    wait_for_figure(tab, "Decisions", 17)
    wait_for_figure(tab, "Units", 3)
    last = site.decide("live-5", "unit-2")  # no event follows, so the page keeps showing that it is new
    tab.wait_for_text("1 new decision, last event")
    wait_for_figure(tab, "Decisions", 18)
    site.reward(last, "live-5", 1.0)

    tab.click("unit-2")
    tab.wait_for_text("Pending and late rewards")
    tab.eventually("document.querySelectorAll('[aria-label^=\"Decisions,\"] tbody tr').length", 6)
    tab.eventually("document.querySelectorAll('.mark').length", 6)
    wait_for_figure(tab, "Pending", 0)
    pending = site.decide("pending", "unit-2")
    tab.eventually("document.querySelectorAll('.mark').length", 7)
    wait_for_figure(tab, "Pending", 1)
    site.reward(pending, "pending", 2.5)
    wait_for_figure(tab, "Pending", 0)
    tab.wait_for_text("2.500")

    tab.evaluate("history.back()")
    tab.eventually("document.querySelector('.issue') !== null")
    tab.wait_for_text("he policy failed: it lost its way")
    tab.click("Resolve…")
    tab.evaluate("document.querySelector('.issue textarea').focus()")
    tab.call("Input.insertText", text=f"restarted it {TRICKY}")
    site.decide("meanwhile", "unit-0", 0.0)  # an update keeps the text that is being written
    wait_for_figure(tab, "Decisions", 20)
    assert tab.evaluate("document.querySelector('.issue textarea').value") == f"restarted it {TRICKY}"
    tab.click("Mark as resolved")
    tab.wait_for_text("none open")
    tab.evaluate("document.querySelector('.issues + details summary').click()")
    tab.wait_for_text(f"restarted it {TRICKY}")
    assert tab.evaluate("window.notReloaded"), "the page was loaded again"

    tab.click("Log out")
    tab.wait_for_text("You are logged out.")
    assert "unit-2" not in tab.text
    assert tab.evaluate("fetch('v1/studies').then((response) => response.status)") == 401
    assert [error for error in tab.errors if "401" not in str(error)] == []  # the request above is refused
    assert all(url.startswith((f"{site.url}/", "about:")) for url in tab.requests)


def test_requests_to_other_addresses_and_inline_scripts_are_blocked(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/")
    tab.wait_for_text("Log in")
    tab.evaluate("addEventListener('securitypolicyviolation', (each) => { window.violated = each.effectiveDirective })")
    assert tab.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')") == "blocked"
    tab.eventually("window.violated === 'connect-src'")
    tab.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))"
    )
    tab.eventually("window.violated === 'script-src-elem'")
    assert tab.evaluate("window.ran === undefined")


def test_invalid_token_is_refused_with_a_message(tab: Tab, site: Site) -> None:
    tab.open(f"{site.url}/")
    tab.type_into("#token", "larl_nothing")
    tab.press("Enter")
    tab.wait_for_text("Refused: this token is unknown or revoked.")
    tab.evaluate("document.querySelector('#token').value = ''")
    tab.type_into("#token", site.host)
    tab.press("Enter")
    tab.wait_for_text("Refused: this token cannot read; accepted: a token with role analyst or admin.")


@pytest.mark.parametrize("view", ["#/", "#/study/sleep", "#/study/sleep/unit/unit-0"])
def test_page_fits_a_phone_and_all_elements_have_accessible_names(tab: Tab, site: Site, view: str) -> None:
    tab.resize(360, 740, dark=True)
    log_in(tab, site, view)
    tab.eventually("document.querySelector('main h1') !== null && !document.body.innerText.includes('Loading…')")
    tab.eventually("document.documentElement.scrollWidth", 360)
    assert tab.evaluate("document.querySelector('main img') === null"), "an arm's name became an element"
    small = (
        "[...document.querySelectorAll('button')].filter((each) => each.offsetHeight && each.offsetHeight < 32).length"
    )
    assert tab.evaluate(small) == 0
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "textbox", "radio", "image", "table", "region", "heading", "group"}
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in roles and not node["ignored"]:
            assert node["name"]["value"] or role in ("group", "image"), node
    levels = tab.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((each) => Number(each.tagName[1]))")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert tab.evaluate("['header', 'nav', 'main'].every((each) => document.querySelectorAll(each).length === 1)")
    assert tab.errors == []


def test_page_can_be_used_with_the_keyboard(tab: Tab, site: Site) -> None:
    log_in(tab, site)
    tab.eventually("document.activeElement.tagName", "H1")
    tab.evaluate("document.body.focus(); document.activeElement.blur()")
    tab.evaluate("document.querySelector('.skip').focus()")
    tab.press("Enter")
    tab.eventually("document.activeElement.id", "main")
    assert tab.evaluate("location.hash") == "#/study/sleep"
    tab.eventually("document.querySelector('.plot svg .line') !== null")
    tab.evaluate("document.querySelector('.plot svg').focus()")
    tab.press("ArrowRight")
    tab.eventually(f"{ANNOUNCED}.startsWith('Step 0; Reward ')")
    tab.eventually("document.querySelector('.tip').hidden", False)
    tab.press("End")
    tab.eventually(f"{ANNOUNCED} && !{ANNOUNCED}.startsWith('Step 0; ')")
    tab.press("Escape")
    tab.eventually("document.querySelector('.tip').hidden", True)
    tab.eventually(ANNOUNCED, "")
    tab.evaluate("document.querySelector('input[value=days]').click()")
    tab.evaluate("document.querySelector('.plot svg').focus()")
    tab.press("End")
    tab.eventually(f"/^20\\d\\d-\\d\\d-\\d\\d; Reward .+; Expected /.test({ANNOUNCED})")
    tab.evaluate("document.querySelector('input[value=steps]').click()")
    tab.evaluate("document.querySelector('.chart summary').click()")
    tab.eventually("document.querySelectorAll('.chart table tbody tr').length > 3")
    heads = "[...document.querySelectorAll('.chart table thead th')].map((each) => each.innerText)"
    tab.eventually(heads, ["Step", "Reward", "Expected"])


def test_units_named_with_dots_can_be_opened(tab: Tab, site: Site) -> None:
    """A browser drops these names from paths."""
    log_in(tab, site, "#/study/sleep")
    for name in (".", ".."):
        site.decide(f"dots-{name}", name, 1.0)
        tab.evaluate(f"location.hash = '#/study/sleep/unit/{name}'")
        tab.eventually("document.querySelector('h1').innerText", name)
        tab.wait_for_text("of study sleep")


def test_unknown_and_empty_studies_have_messages(tab: Tab, site: Site) -> None:
    log_in(tab, site, "#/study/sleep")
    tab.evaluate("location.hash = '#/study/nowhere'")
    tab.wait_for_text("there is no such study")
    tab.evaluate("location.hash = '#/study/sleep/unit/nobody'")
    tab.wait_for_text("there is no such unit")
    site.create_study("empty")
    tab.evaluate("location.hash = '#/study/empty'")
    tab.wait_for_text("This study has no units yet.")
    tab.wait_for_text("No data yet.")
