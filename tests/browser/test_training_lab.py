"""The training lab at work: the bar moves, the maps change while it trains, and the link brings the same run back."""

import re

import numpy as np
from playwright.sync_api import BrowserContext, Locator, expect

from core.training import Settings, train
from tests.browser.conftest import OpenTab
from tests.browser.harness import Visit
from tests.browser.reading import assert_state, charts, go_to, link, redrawn, state, wait_until
from tests.pages.charts import array
from ui.navigation import entry

SHORT = "/training_lab?steps=1000"
LONG = "/training_lab?layers=3&d_model=64&steps=2000"

# Notes what is seen while it trains: the steps that the bar says, and the different maps.
WATCH = """() => {
    window.bars = new Set(); window.maps = new Set();
    setInterval(() => {
        const bar = document.querySelector('[data-testid="stProgress"]')?.innerText.match(/Step ([\\d,]+) of/);
        if (bar) window.bars.add(Number(bar[1].replace(',', '')));
        const map = document.querySelector('[class*="st-key-maps"] .js-plotly-plot')?.data?.[0].z;
        if (map) window.maps.add(map.bdata);
    }, 20);
}"""

# Whether the bar has come beyond this step.
BEYOND = """step => {
    const bar = document.querySelector('[data-testid="stProgress"]')?.innerText.match(/Step ([\\d,]+) of/);
    return bar && Number(bar[1].replace(',', '')) > step;
}"""


def press(visit: Visit, name: str) -> None:
    visit.page.get_by_role("button", name=name, exact=True).click()


def trained(visit: Visit, steps: int) -> None:
    visit.page.get_by_text(f"Trained: {steps:,} steps.").wait_for(timeout=120_000)
    visit.settle()


def step_shown(visit: Visit) -> Locator:
    """Streamlit's own slider, which says its name twice."""
    return visit.page.get_by_role("slider", name="Step shown")


def maps(visit: Visit) -> np.ndarray:
    return array(charts(visit)["maps"][0]["z"])


def paused_at(visit: Visit) -> int:
    """The step at which the page says that the run is paused."""
    said = visit.page.get_by_text("Paused after").inner_text()
    found = re.match(r"Paused after ([\d,]+) of", said)
    assert found
    return int(found[1].replace(",", ""))


def test_train_watch_scrub_back_and_share_the_link(open_tab: OpenTab, other_profile: BrowserContext) -> None:
    visit = open_tab(f"{SHORT}&seed=41")
    untrained = maps(visit)
    visit.page.evaluate(WATCH)

    press(visit, "Train")
    trained(visit, 1000)
    bars, seen = visit.page.evaluate("[[...window.bars], window.maps.size]")
    assert len(bars) > 2
    assert bars == sorted(bars)
    assert seen > 3
    at_the_end = maps(visit)
    assert np.nanmax(np.abs(at_the_end - untrained)) > 0.1

    with redrawn(visit, "maps"):
        step_shown(visit).press("Home")
    np.testing.assert_array_equal(maps(visit), untrained)
    with redrawn(visit, "maps"):
        step_shown(visit).press("End")
    np.testing.assert_array_equal(maps(visit), at_the_end)

    assert link(visit) == {"steps": "1000", "seed": "41"}
    copied = visit.page.url.partition("/training_lab")[2]
    other = open_tab(f"/training_lab{copied}", profile=other_profile)
    trained(other, 1000)
    assert state(other).charts == state(visit).charts
    expected = [each.loss for each in train(Settings(steps=1000, seed=41))]
    np.testing.assert_allclose(array(charts(other)["loss"][0]["y"]), expected, rtol=1e-4)


def test_pause_goes_on_later_and_leaving_the_page_stops_it(open_tab: OpenTab) -> None:
    visit = open_tab(f"{LONG}&seed=42")
    press(visit, "Train")
    assert wait_until(visit, BEYOND, 100)
    press(visit, "Pause")
    visit.page.get_by_text("Paused after").wait_for()
    visit.settle()
    first = paused_at(visit)
    assert 100 < first < 2000

    press(visit, "Train")
    assert wait_until(visit, BEYOND, first + 20)
    go_to(visit, entry("home"))
    go_to(visit, entry("training_lab"))
    second = paused_at(visit)
    assert first + 20 < second < 2000
    visit.page.wait_for_timeout(1500)
    assert paused_at(visit) == second
    assert array(charts(visit)["loss"][0]["x"]).size == second + 1


def test_who_comes_third_waits_until_a_tab_is_closed(open_tab: OpenTab, other_profile: BrowserContext) -> None:
    first, second, third = (open_tab(f"{LONG}&seed={seed}") for seed in (43, 44, 45))
    for visit in (first, second):
        press(visit, "Train")
        visit.page.get_by_text("of 2,000,").wait_for()
    press(third, "Train")
    waiting = third.page.get_by_text("Two trainings are running. Yours starts when one of them ends.")
    waiting.wait_for()
    assert third.page.get_by_test_id("stProgress").count() == 0
    first.page.goto("about:blank")
    third.page.get_by_text("of 2,000,").wait_for()
    expect(waiting).to_have_count(0)
    press(third, "Pause")
    third.page.get_by_text("Paused after").wait_for()
    press(second, "Pause")
    second.page.get_by_text("Paused after").wait_for()


def test_a_task_brings_its_settings_along_and_all_of_it_is_there_on_coming_back(
    open_tab: OpenTab, other_profile: BrowserContext
) -> None:
    visit = open_tab("/training_lab?heads=4")
    with redrawn(visit, "maps"):
        visit.page.get_by_role("radio", name="induction", exact=True).click()
    chosen = state(visit)
    assert chosen.link == {"task": "induction", "heads": "1", "layers": "2", "encoding": "learned"}
    assert (chosen.controls["Attention heads"], chosen.controls["Layers"]) == ("1", "2")

    go_to(visit, entry("home"))
    visit.page.go_back()
    assert_state(visit, chosen)
    copied = visit.page.url.partition("/training_lab")[2]
    assert_state(open_tab(f"/training_lab{copied}", profile=other_profile), chosen)
