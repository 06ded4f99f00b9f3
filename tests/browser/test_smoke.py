"""Every page in a real browser, by its link, on a server that nobody has visited yet: whole and quiet."""

import pytest
from playwright.sync_api import expect

from tests.browser.harness import Visit
from ui.navigation import EVERY, Entry

EACH_PAGE = pytest.mark.parametrize("entry", EVERY, ids=lambda entry: entry.name)
HEADINGS = {entry.name: entry.title for entry in EVERY} | {"home": "The transformer, live"}


def path_of(entry: Entry) -> str:
    return "/" if entry is EVERY[0] else f"/{entry.name}"


def assert_whole_and_quiet(visit: Visit) -> None:
    assert visit.page.get_by_test_id("stException").all_inner_texts() == []
    assert visit.sideways_scroll() == {}
    assert visit.errors == []
    assert visit.foreign_requests == []


@EACH_PAGE
def test_deep_link_on_a_server_nobody_has_visited(entry, fresh_server, open_page):
    """Until app.py has run once, Streamlit takes pages/ for its old automatic kind and runs a page alone."""
    visit = open_page(path_of(entry), base=fresh_server())

    heading = visit.page.locator('[data-testid="stMain"] h1')
    expect(heading).to_have_count(1)
    expect(heading).to_have_text(HEADINGS[entry.name])
    labels = visit.page.locator('[data-testid="stSidebarNavLink"] p')
    expect(labels).to_have_text([other.title for other in EVERY])
    assert entry.title in visit.page.title()
    assert_whole_and_quiet(visit)
