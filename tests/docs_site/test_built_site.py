"""The built site (`make site`) in a browser: nothing is loaded from elsewhere, nothing is cut off, search works."""

import pytest

from tests.documents import ROOT
from tests.service.browser import running_browser

SITE = ROOT / "site"
WIDE = ["index", "reproduction", "performance", "rest", "theory", "api/policies", "notebooks/2-the-papers-figures"]
# Elements that reach beyond the window, except inside an element that scrolls.
OVERFLOWING = """(() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (each) => each && (["auto", "scroll", "hidden"].includes(getComputedStyle(each).overflowX)
    && each.getBoundingClientRect().right <= width + 1 || scrolls(each.parentElement));
  return [...document.querySelectorAll(".md-content *")]
    .filter((each) => each.getBoundingClientRect().right > width + 1 && !scrolls(each))
    .map((each) => each.outerHTML.slice(0, 80));
})()"""


@pytest.mark.timing
@pytest.mark.needs("chromium", "site")
def test_pages_fit_a_phone_and_search_works_without_a_server() -> None:
    with running_browser() as browser:
        for path in (SITE / f"{name}.html" for name in WIDE):
            with browser.tab() as tab:
                tab.resize(390, 844)
                tab.open(path.as_uri())
                assert tab.evaluate(OVERFLOWING) == [], path.name
                assert {url.partition(":")[0] for url in tab.requests} <= {"file", "data", "about", "blob"}, path.name
        with browser.tab() as tab:
            tab.resize(1280, 900)
            tab.open((SITE / "api" / "worlds.html").as_uri())
            tab.type_into("input[name=query]", "regret floor")
            tab.press("End")  # the search starts when a key is released
            tab.eventually("document.querySelector('.md-search-result__list').innerText.includes('regret floor')")
            assert not tab.errors


# How far the first column of the widest table is from the left edge, after the table was scrolled to its end.
FIRST_COLUMN = """(() => {
  const wide = [...document.querySelectorAll(".md-typeset__scrollwrap")].filter((each) => each.querySelector(".key"))
    .sort((one, other) => other.scrollWidth - one.scrollWidth)[0];
  wide.scrollLeft = wide.scrollWidth;
  return [wide.scrollLeft > 0, Math.abs(wide.querySelector(".key").getBoundingClientRect().left
    - wide.getBoundingClientRect().left) < 2];
})()"""


@pytest.mark.timing
@pytest.mark.needs("chromium", "site")
def test_first_column_of_a_wide_table_stays_in_view() -> None:
    with running_browser() as browser, browser.tab() as tab:
        tab.resize(1280, 900)
        tab.open((SITE / "real-data.html").as_uri())
        tab.eventually("document.querySelector('.md-typeset__scrollwrap .key') !== null")
        assert tab.evaluate(FIRST_COLUMN) == [True, True]
