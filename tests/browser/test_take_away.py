"""What leaves a page in a browser: files that are saved and opened again, and the link."""

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Download, Locator, expect

from tests.browser import harness
from tests.browser.harness import Visit
from tests.browser.reading import CONCEPTS, go_to, quiet_tab, redrawn, slider


@pytest.fixture(scope="module", params=CONCEPTS, ids=lambda entry: entry.name)
def opened(request: pytest.FixtureRequest, server: str, profile: BrowserContext) -> Iterator[Visit]:
    """Each concept page with another seed, and "Take it away" opened."""
    with quiet_tab(profile, server, f"/{request.param.name}?seed=3") as visit:
        open_box(visit)
        yield visit


def open_box(visit: Visit) -> Locator:
    visit.page.get_by_text("Take it away", exact=True).click()
    expect(visit.page.get_by_role("button", name="Script (.py)")).to_be_visible()
    visit.settle()
    return visit.page.get_by_test_id("stExpander").filter(has_text="Take it away")


def saved(visit: Visit, button: Locator | str) -> Download:
    with visit.page.expect_download() as download:
        (visit.page.get_by_text(button, exact=True) if isinstance(button, str) else button).click()
    download.value.path()  # to its end: Chromium drops one of two downloads that are asked for at once
    visit.page.wait_for_timeout(300)
    return download.value


def content(download: Download) -> bytes:
    return Path(download.path()).read_bytes()


def test_script_notebook_and_arrays_are_saved(opened: Visit) -> None:
    script, notebook = saved(opened, "Script (.py)"), saved(opened, "Notebook (.ipynb)")
    arrays = saved(opened, "All arrays (.npz)")

    assert script.suggested_filename.endswith("_seed-3.py")
    assert compile(content(script), "script", "exec")
    assert json.loads(content(notebook))["nbformat"] == 4
    assert {"x.npy", "weights.npy", "w_q.npy"} & set(zipfile.ZipFile(io.BytesIO(content(arrays))).namelist())


def test_every_table_is_saved(opened: Visit) -> None:
    buttons = opened.page.get_by_role("button").filter(has_text="(.csv)").all()
    assert buttons
    for button in buttons:
        table = content(saved(opened, button))
        assert table.startswith(b'\xef\xbb\xbf""')
        assert table.count(b"\n") > 1


def test_a_picture_has_twice_the_screens_resolution(opened: Visit) -> None:
    chart = opened.page.get_by_test_id("stPlotlyChart").first
    chart.hover()
    with opened.page.expect_download() as download:
        chart.locator('[data-title="Download plot as a PNG"]').click()
    width, height = struct.unpack(">II", content(download.value)[16:24])
    shown = chart.locator(".main-svg").first.bounding_box()

    assert shown is not None
    assert (width, height) == (2 * round(shown["width"]), 2 * round(shown["height"]))
    assert download.value.suggested_filename.endswith("_seed-3.png")


def test_the_numbers_of_a_figure_follow_a_slider_with_the_figure(profile: BrowserContext, server: str) -> None:
    """With the figure off the screen: the expander alone is seen when the slider rests."""
    with quiet_tab(profile, server, "/self_attention") as visit:
        visit.page.get_by_text("The numbers", exact=True).click()
        told = visit.page.get_by_test_id("stExpander").get_by_text("The largest weight: ")
        told.first.scroll_into_view_if_needed()
        visit.settle()
        before = told.first.inner_text()
        slider(visit, "Size of the random weights").press("End")
        visit.page.wait_for_timeout(500)
        visit.settle()
        figure = visit.page.get_by_test_id("stMain").get_by_text("The largest weight: ").first.inner_text()
        largest = figure.splitlines()[0]
        expect(told.first).to_contain_text(largest)
        assert largest not in before


def test_a_figure_opens_without_a_network(opened: Visit, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "figure.html"
    page.write_bytes(content(saved(opened, "Figure (.html)")))
    alone = browser.new_context(offline=True)
    visit = harness.watch(alone)
    visit.page.goto(page.as_uri())

    expect(visit.page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert visit.page.locator("h1").inner_text()
    assert (visit.errors, visit.foreign_requests) == ([], [])
    alone.close()


def test_the_link_is_that_of_the_page_and_can_be_copied(server: str, browser: Browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], reduced_motion="reduce")
    visit = harness.watch(context)
    visit.page.goto(f"{server}/recurrence")
    visit.settle()
    go_to(visit, CONCEPTS[1])
    box = open_box(visit)
    with redrawn(visit, "map"):
        slider(visit, "Sequence length").press("ArrowRight")

    code = box.get_by_test_id("stCode").first
    assert visit.page.url.endswith("/self_attention?seq_len=6")
    expect(code).to_contain_text(visit.page.url)
    code.hover()
    code.get_by_role("button").click()
    assert visit.page.evaluate("() => navigator.clipboard.readText()") == visit.page.url
    assert (visit.errors, visit.foreign_requests) == ([], [])
    context.close()


def test_it_fits_on_a_phone(server: str, profile: BrowserContext) -> None:
    with quiet_tab(profile, server, f"/self_attention?sentence={'unbelievable+' * 60}&stage=all", 390) as visit:
        open_box(visit)
        assert visit.sideways_scroll() == {}
