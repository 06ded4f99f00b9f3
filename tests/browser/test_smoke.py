"""Every page in a real browser: reachable by its link, whole, quiet, and no wider than a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.harness import Visit
from ui.navigation import ENTRIES, Entry

EACH_PAGE = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
HEADINGS = {entry.name: entry.title for entry in ENTRIES} | {"home": "The transformer, live"}


def path_of(entry: Entry) -> str:
    return "/" if entry is ENTRIES[0] else f"/{entry.name}"


def background_of(page: Page) -> tuple[int, ...]:
    colour = page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor")
    return tuple(map(int, re.findall(r"\d+", colour)[:3]))


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
    expect(labels).to_have_text([other.title for other in ENTRIES])
    assert entry.title in visit.page.title()
    assert_whole_and_quiet(visit)


@EACH_PAGE
@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_on_a_phone_and_then_on_a_wide_screen(entry, color_scheme, open_page):
    visit = open_page(path_of(entry), color_scheme=color_scheme, width=390, height=844)

    assert (max(background_of(visit.page)) < 100) == (color_scheme == "dark")
    assert_whole_and_quiet(visit)

    visit.page.set_viewport_size({"width": 1280, "height": 800})
    visit.settle()
    assert_whole_and_quiet(visit)


def test_every_page_is_reached_through_the_navigation(open_page):
    visit = open_page("/")

    for entry in ENTRIES:
        visit.page.get_by_test_id("stSidebarNav").get_by_role("link", name=entry.title, exact=True).click()
        expect(visit.page.locator('[data-testid="stMain"] h1')).to_have_text(HEADINGS[entry.name])
        visit.settle()
    assert visit.errors == []
