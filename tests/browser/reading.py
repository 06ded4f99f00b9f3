"""Reading and working an open page: its charts' numbers, what its controls show, its link."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import BrowserContext, Locator, TimeoutError, expect

from tests.browser import harness
from tests.browser.harness import Visit
from ui import navigation
from ui.navigation import ENTRIES, EVERY, Entry

CONCEPTS = ENTRIES[1:-1]  # without home and the training lab
HEADINGS = {entry.name: entry.title for entry in EVERY} | {"home": "The transformer, live"}

# Each chart's data by the key it was drawn under; what Plotly itself adds begins with an underscore.
_CHARTS = """() => Object.fromEntries(
    [...document.querySelectorAll('[data-testid="stPlotlyChart"]')].map(chart => [
        chart.closest('[class*="st-key-"]').className.match(/st-key-(\\S+)/)[1],
        JSON.stringify(
            chart.querySelector('.js-plotly-plot')?.data,
            (name, value) => name.startsWith('_') ? undefined : value
        ),
    ])
)"""

# What every control shows, by its spoken label. Switches are checkboxes, words to choose from are radio buttons.
_CONTROLS = """() => {
    const shown = {};
    for (const input of document.querySelectorAll('[data-testid="stApp"] :is(input[aria-label], .live-slider input)')) {
        shown[input.ariaLabel ?? input.labels[0]?.innerText] = input.type === 'checkbox' ? input.checked
            : input.type === 'range' ? input.getAttribute('aria-valuetext') : input.value;
    }
    for (const group of document.querySelectorAll('[role="radiogroup"]')) {
        shown[group.ariaLabel] = group.querySelector('[aria-checked="true"]')?.innerText;
    }
    return shown;
}"""
_STATE = f"""() => ({{
    link: Object.fromEntries(new URLSearchParams(location.search)),
    controls: ({_CONTROLS})(),
    charts: ({_CHARTS})(),
}})"""


class State(NamedTuple):
    """All that a page must keep."""

    link: dict[str, str]
    controls: dict[str, Any]
    charts: dict[str, str]  # each chart's data as JSON text, by key


def state(visit: Visit) -> State:
    return State(**visit.page.evaluate(_STATE))


def link(visit: Visit) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(visit.page.url).query))


def charts(visit: Visit) -> dict[str, list[dict[str, Any]]]:
    """The traces of every chart by its key, as Plotly holds them."""
    return visit.page.evaluate(
        f"() => Object.fromEntries(Object.entries(({_CHARTS})()).map(([key, data]) => [key, JSON.parse(data)]))"
    )


def slider(visit: Visit, label: str) -> Locator:
    return visit.page.get_by_role("slider", name=label, exact=True)


def wait_until(visit: Visit, predicate: str, argument: Any = None) -> bool:
    """Whether this JavaScript comes true of the page, within Playwright's usual patience."""
    try:
        visit.page.wait_for_function(predicate, arg=argument, polling=100)
    except TimeoutError:
        return False
    return True


def assert_state(visit: Visit, wanted: State) -> None:
    """The page comes to show this state."""
    same = f"""wanted => {{
        const sorted = value => JSON.stringify(value, (name, inner) => inner?.constructor !== Object ? inner
            : Object.fromEntries(Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1)));
        return sorted(({_STATE})()) === sorted(wanted);
    }}"""
    wait_until(visit, same, wanted._asdict())
    assert state(visit) == wanted


@contextmanager
def redrawn(visit: Visit, key: str) -> Iterator[None]:
    """What is done inside must change the data of the chart `key`; leaves when the page is drawn to the end."""
    before = visit.page.evaluate(_CHARTS)[key]
    yield
    changed = f"([key, before]) => ![before, undefined].includes(({_CHARTS})()[key])"
    assert wait_until(visit, changed, [key, before]), f"the chart {key} stays as it was"
    visit.settle()


def arrive(visit: Visit, name: str) -> None:
    """Wait until the page `name` is drawn down to its foot."""
    expect(visit.page.locator('[data-testid="stMain"] h1')).to_have_text(HEADINGS[name])
    before, after = navigation.neighbours(name)
    foot = [f"Previous: {before.title}"] if before else []
    foot += [f"Next: {after.title}"] if after else []
    for label in foot:
        expect(visit.page.get_by_test_id("stPageLink").filter(has_text=re.compile(f"{label}$"))).to_be_visible()
    visit.settle()


def go_to(visit: Visit, entry: Entry) -> None:
    """Over the menu at the side."""
    visit.page.get_by_test_id("stSidebarNav").get_by_role("link", name=entry.title, exact=True).click()
    arrive(visit, entry.name)


@contextmanager
def quiet_tab(profile: BrowserContext, server: str, path: str, width: int = 1280) -> Iterator[Visit]:
    """A path of the app in a new tab, drawn down to its foot.

    When it is closed, there may be no exception on it, and never a console error or a request to another host.
    """
    visit = harness.watch(profile)
    visit.page.set_viewport_size({"width": width, "height": 800})
    visit.page.goto(server + path)
    arrive(visit, urlsplit(path).path.strip("/") or ENTRIES[0].name)
    yield visit
    exceptions = visit.page.get_by_test_id("stException").all_inner_texts()
    visit.page.close()
    assert (exceptions, visit.errors, visit.foreign_requests) == ([], [], [])
