"""In front of a class: presenting by keyboard, a link that is handed out, a page on paper."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.harness import Visit
from tests.browser.reading import CONCEPTS, charts, link, slider, wait_until
from ui.navigation import Entry

# Sizes of all type in charts, in pixels, with what it says.
SMALL_TYPE = """() => [...document.querySelectorAll('.js-plotly-plot svg text')]
    .filter(text => text.textContent.trim() && parseFloat(getComputedStyle(text).fontSize) < 18)
    .map(text => `${text.textContent}: ${getComputedStyle(text).fontSize}`)
"""
PRINTED_WIDTH = 718  # of A4 between margins of 10 mm, in CSS pixels; Letter is wider


def press_until(visit: Visit, key: str, place: str) -> int:
    """Press a key until the bar at the foot says so; how many times that took."""
    for times in range(1, 8):
        visit.page.keyboard.press(key)
        visit.settle()
        if visit.page.locator(".st-key-way_on").get_by_text(place).count():
            return times
    raise AssertionError(f"{key} does not lead to {place}")


def at_top(visit: Visit) -> bool:
    return visit.page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0


def test_keys_present_a_page_section_by_section(open_page: OpenPage) -> None:
    visit = open_page("/self_attention", width=1024, height=768)
    page = visit.page
    page.keyboard.press("p")
    visit.settle()
    expect(page).to_have_url(re.compile(r"present=1"))
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    width = page.get_by_role("slider", name="Model width d_model")
    expect(page.get_by_text("Model width d_model", exact=True)).to_be_in_viewport()  # beside the picture
    before = charts(visit)["map"]
    width.press("ArrowRight")
    visit.settle()
    assert charts(visit)["map"] != before

    assert press_until(visit, "PageDown", "Section 2 of 5") <= 2
    expect(page.get_by_role("heading", level=2)).to_have_text("One row, checked by hand")
    assert at_top(visit)
    assert press_until(visit, "PageDown", "Section 3 of 5, stage 1 of 7") >= 2  # the section is longer than the screen
    expect(page.get_by_role("radio", name="inputs")).to_be_checked()
    press_until(visit, "PageDown", "Section 3 of 5, stage 2 of 7")
    expect(page.get_by_role("radio", name="projections")).to_be_checked()
    assert at_top(visit)
    press_until(visit, "PageUp", "Section 3 of 5, stage 1 of 7")
    expect(page.get_by_role("radio", name="inputs")).to_be_checked()
    page.get_by_role("slider", name="Sequence length").focus()
    page.keyboard.press("p")  # from a slider too
    visit.settle()
    expect(page.get_by_test_id("stSidebar")).to_be_in_viewport()
    assert "present" not in page.url
    assert visit.errors == []


@pytest.mark.parametrize("entry", CONCEPTS, ids=lambda entry: entry.name)
def test_all_type_of_a_presented_page_can_be_read_from_the_last_row(open_page: OpenPage, entry: Entry) -> None:
    visit = open_page(f"/{entry.name}?present=1", width=1024, height=768)
    assert [each["id"] for each in Axe().run(visit.page).response["violations"]] == []
    while True:
        assert visit.page.evaluate(SMALL_TYPE) == []
        assert visit.sideways_scroll() == {}
        following = visit.page.get_by_role("button", name="Next", exact=False).last
        if following.is_disabled():
            break
        following.click()
        visit.settle()


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("/self_attention?present=3&stage=softmax", "Temperature"),
        ("/recurrence?present=4", "Gain of the recurrent weights"),
        ("/transformer_block?present=6&blocks=4", "Size of the random weights"),
    ],
)
def test_the_section_on_show_follows_a_slider_while_it_is_dragged(
    address: str, label: str, open_page: OpenPage
) -> None:
    visit = open_page(address, width=1024, height=768)
    page, thumb = visit.page, slider(visit, label)
    drawn = "() => document.querySelector('.js-plotly-plot .main-svg')?.innerHTML"  # none while it is put in its place
    before = page.evaluate(drawn)
    thumb.scroll_into_view_if_needed()
    box = thumb.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2, steps=5)
    # the button is still down
    assert wait_until(visit, f"before => ![undefined, before].includes(({drawn})())", before)
    page.mouse.up()
    visit.settle()
    reports = page.evaluate("sliderLine.sent")
    page.wait_for_timeout(2_000)
    assert page.evaluate("sliderLine.sent") == reports, "nothing moves, and the page goes on asking"
    assert visit.errors == []


def test_back_to_the_lesson_example_the_section_stays_on_show(open_page: OpenPage) -> None:
    visit = open_page("/multi_head_attention?present=4&heads=4&lock=d_model", width=1024, height=768)
    visit.page.get_by_role("button", name="Lesson example").click()
    assert wait_until(visit, "() => !location.search.includes('heads')")
    visit.settle()
    assert link(visit) == {"present": "4", "lock": "d_model"}
    expect(visit.page.get_by_role("button", name="Whole page")).to_be_visible()


def test_a_locked_slider_cannot_be_moved(open_page: OpenPage) -> None:
    visit = open_page("/self_attention?d_model=8&lock=d_model&hide=seed")
    page = visit.page
    expect(page.get_by_text("Model width d_model: 8 (locked)")).to_be_visible()
    expect(page.get_by_role("slider", name="Model width d_model")).to_have_count(0)
    expect(page.get_by_label("Seed of the random weights")).to_have_count(0)
    page.get_by_role("slider", name="Sequence length").press("ArrowRight")  # this one is free
    visit.settle()
    expect(page).to_have_url(re.compile(r"seq_len=6"))
    expect(page).to_have_url(re.compile(r"lock=d_model"))
    page.reload()
    visit.settle()
    expect(page.get_by_text("Model width d_model: 8 (locked)")).to_be_visible()


def test_a_printed_page_has_all_figures_its_settings_and_light_colours(open_page: OpenPage) -> None:
    visit = open_page("/transformer_block?sentence=the+cat+sat", color_scheme="dark", width=1920)
    page = visit.page
    widths = page.locator(".js-plotly-plot").evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")
    page.emulate_media(media="print")
    style = page.evaluate(
        """() => {
            const of = (name, what) => getComputedStyle(document.querySelector(name))[what];
            const main = '[data-testid="stMain"]', block = '[data-testid="stMainBlockContainer"]';
            return {zoom: of(block, 'zoom'), overflow: of(main, 'overflow'), text: of(`${block} p`, 'color'),
                background: of('body', 'backgroundColor'), app: of('[data-testid="stApp"]', 'backgroundColor')};
        }"""
    )
    assert len(widths) == 5
    assert max(widths) * float(style["zoom"]) <= PRINTED_WIDTH
    assert style["overflow"] == "visible"  # else the sheet ends where the screen does
    assert style["text"] == "rgb(0, 0, 0)"
    assert style["background"] == style["app"] == "rgba(0, 0, 0, 0)"
    expect(page.get_by_text("Sentence: the cat sat · Sequence length: 3")).to_be_visible()
    for hidden in ("stSidebar", "stHeader", "stExpander", "stButton"):
        expect(page.get_by_test_id(hidden).first).to_be_hidden()
    for chart in page.locator(".js-plotly-plot").all():
        expect(chart).to_be_visible()
