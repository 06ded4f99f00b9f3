"""Live sliders: the picture follows the hand, the link says where it came to rest, and a keyboard does it all."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from benchmarks.classroom import ON_SCREEN
from tests.browser.conftest import OpenPage, OpenTab
from tests.browser.harness import Scheme, Visit
from tests.browser.reading import link, redrawn, slider, state, wait_until

LENGTH, WIDTH, HEADS = "Sequence length", "Model width d_model", "Attention heads"

COUNT_PICTURES = """() => {
    window.pictures = new Set();
    new MutationObserver(() => {
        const map = document.querySelector('.st-key-map image');
        if (map) window.pictures.add(map.getAttribute('href') || map.getAttribute('xlink:href'));
    }).observe(document.body, { childList: true, subtree: true });
}"""


def press_at(visit: Visit, thumb: Locator, share: float) -> tuple[float, float, float]:
    """Press the mouse on the track; returns its left end, its width and the height of the hand."""
    thumb.scroll_into_view_if_needed()
    box = thumb.bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    visit.page.mouse.move(box["x"] + share * box["width"], y)
    visit.page.mouse.down()
    return box["x"], box["width"], y


def test_the_picture_follows_the_hand_and_the_link_where_it_rests(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention?d_model=8")
    visit.page.evaluate(COUNT_PICTURES)
    left, width, y = press_at(visit, slider(visit, LENGTH), 0.05)
    for step in range(6, 60):
        visit.page.mouse.move(left + step / 60 * width, y)
        visit.page.wait_for_timeout(20)
    assert wait_until(visit, "() => window.pictures.size >= 3")  # the button is still down
    assert link(visit) == {"d_model": "8"}  # the link waits for the hand
    shown = slider(visit, LENGTH).get_attribute("aria-valuetext")
    assert shown == slider(visit, LENGTH).input_value()
    visit.page.mouse.up()

    assert wait_until(visit, "shown => new URLSearchParams(location.search).get('seq_len') === shown", shown)
    visit.settle()
    assert slider(visit, LENGTH).get_attribute("aria-valuetext") == shown
    expect(visit.page.get_by_text(f"Each of the {shown} rows sums to 1")).to_be_visible()

    visit.page.go_back()  # one drag is one step back
    assert wait_until(visit, "() => document.querySelector('.live-slider input').value === '5'")
    visit.settle()
    assert link(visit) == {"d_model": "8"}
    visit.page.go_forward()
    assert wait_until(visit, "shown => document.querySelector('.live-slider input').value === shown", shown)


def test_every_key_of_a_slider_and_choices_by_their_names(open_tab: OpenTab) -> None:
    visit = open_tab("/multi_head_attention?d_model=12")
    expect(slider(visit, HEADS)).to_have_attribute("aria-valuetext", "2")
    for key, shown in (("End", "12"), ("ArrowLeft", "6"), ("Home", "1"), ("ArrowRight", "2"), ("ArrowUp", "3")):
        slider(visit, HEADS).press(key)
        expect(slider(visit, HEADS)).to_have_attribute("aria-valuetext", shown)
    assert wait_until(visit, "() => new URLSearchParams(location.search).get('heads') === '3'")
    visit.settle()
    assert state(visit).controls[HEADS] == "3"


def test_a_button_moves_the_slider_and_the_slider_goes_on_from_there(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention")
    slider(visit, LENGTH).press("End")
    assert wait_until(visit, "() => location.search === '?seq_len=64'")
    visit.page.get_by_role("button", name="Lesson example").click()
    expect(slider(visit, LENGTH)).to_have_attribute("aria-valuetext", "5")
    slider(visit, LENGTH).press("ArrowRight")
    assert wait_until(visit, "() => location.search === '?seq_len=6'")


def test_what_a_slider_is_for_is_said_and_can_be_read(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention")
    told = "How many numbers stand for one token"
    expect(slider(visit, WIDTH)).to_have_accessible_description(told)
    expect(visit.page.get_by_text(told)).to_be_hidden()
    visit.page.locator(".st-key-d_model").get_by_role("button", name="Help").press("Enter")
    expect(visit.page.get_by_text(told)).to_be_visible()


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_it_can_be_touched_on_a_phone_and_keeps_nobody_out(color_scheme: Scheme, open_page: OpenPage) -> None:
    visit = open_page("/self_attention", color_scheme=color_scheme, width=390, height=844)
    visit.page.get_by_test_id("stExpandSidebarButton").click()
    visit.settle()
    box = slider(visit, LENGTH).bounding_box()
    assert box
    assert box["height"] >= 24
    assert box["x"] + box["width"] <= 390
    slider(visit, LENGTH).focus()
    visit.page.keyboard.press("ArrowRight")
    expect(slider(visit, LENGTH)).to_have_attribute("aria-valuetext", "6")
    assert slider(visit, LENGTH).evaluate("input => getComputedStyle(input).outlineStyle") == "solid"
    assert [each["id"] for each in Axe().run(visit.page, context=".live-slider").response["violations"]] == []
    assert (visit.errors, visit.foreign_requests) == ([], [])


def test_keys_pressed_slower_than_a_hand_rests_leave_the_last_value_in_the_link(open_tab: OpenTab) -> None:
    """Each pause is long enough for the page to be drawn with a new link, and too short to be a press by itself."""
    visit = open_tab("/multi_head_attention?d_model=12&heads=4")
    slider(visit, WIDTH).focus()
    for pause in (420, 600, 600, 600, 600):
        visit.page.keyboard.press("ArrowRight")
        visit.page.wait_for_timeout(pause)
    visit.settle()
    assert slider(visit, WIDTH).input_value() == "22"
    assert link(visit) == {"d_model": "22", "heads": "4"}


BUSY = """() => [...document.querySelectorAll('[aria-busy="true"] > [class*="st-key-wire"]')]
    .map(each => each.className.match(/st-key-wire-part-(\\d+)/)[1])"""


@pytest.mark.parametrize("name", list(ON_SCREEN))
def test_the_class_of_the_benchmark_sees_what_a_screen_shows(name: str, open_tab: OpenTab) -> None:
    visit = open_tab(f"/{name}")
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    visit.settle()
    assert tuple(visit.page.evaluate("() => [...sliderLine.seen().keys()].sort()")) == ON_SCREEN[name]


@pytest.mark.parametrize(("height", "late", "reports"), [(900, "3", 2), (700, "2,3", 1)])
def test_a_key_asks_once_where_the_part_that_follows_is_all_that_is_seen(
    height: int, late: str, reports: int, open_tab: OpenTab
) -> None:
    visit = open_tab("/self_attention?seq_len=3")
    visit.page.set_viewport_size({"width": 1280, "height": height})  # with the next part at its foot, or without
    visit.settle()
    before = visit.page.evaluate("messages")
    slider(visit, LENGTH).press("ArrowLeft")
    visit.page.wait_for_function(f"late => ({BUSY})().join() === late", arg=late)
    assert visit.page.evaluate("messages") == before + reports
    visit.settle()
    expect(visit.page.get_by_text("Each of the 2 rows sums to 1")).to_be_attached()
    expect(slider(visit, "Query token")).to_have_attribute("max", "1")  # two to choose from
    assert link(visit) == {"seq_len": "2"}


def test_what_is_further_down_follows_when_it_is_scrolled_to_or_after_a_while(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention")
    visit.page.set_viewport_size({"width": 1280, "height": 700})
    slider(visit, LENGTH).press("ArrowRight")
    visit.page.wait_for_function(f"() => ({BUSY})().join() === '2,3'")  # the map is on the screen
    visit.page.locator(".st-key-row").scroll_into_view_if_needed()
    visit.page.wait_for_function(f"() => !({BUSY})().includes('2')", timeout=1_400)  # long before it is quiet
    expect(slider(visit, "Query token")).to_have_attribute("max", "5")  # six to choose from
    visit.page.wait_for_function(f"() => ({BUSY})().join() === ''", timeout=5_000)
    visit.settle()
    assert visit.page.locator(".st-key-stage_X .js-plotly-plot").count() == 1

    # There the row follows the hand, not the map above it, which is late then.
    visit.page.locator(".st-key-row").evaluate("row => row.scrollIntoView({ block: 'center' })")
    with redrawn(visit, "row"):
        slider(visit, LENGTH).press("ArrowRight")
    expect(visit.page.get_by_text("Each of the 7 rows sums to 1")).to_be_attached()


def test_a_link_to_a_section_shows_its_heading_when_all_is_drawn(open_tab: OpenTab) -> None:
    visit = open_tab("/transformer_block?blocks=24#how-the-gradient-gets-back")
    top = "() => document.getElementById('how-the-gradient-gets-back').getBoundingClientRect().top"
    visit.page.wait_for_function(f"() => !({BUSY})().length && ({top})() > -10 && ({top})() < 100")
    visit.settle()
    assert -10 < visit.page.evaluate(top) < 100
    visit.page.mouse.move(800, 400)
    visit.page.mouse.wheel(0, -700)
    visit.page.wait_for_function(f"() => ({top})() > 500")  # whoever scrolls on is not called back
    visit.page.set_viewport_size({"width": 1100, "height": 700})
    visit.settle()
    assert visit.page.evaluate(top) > 400


def test_a_sheet_printed_while_parts_are_late_holds_one_set_of_numbers(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention")
    visit.page.set_viewport_size({"width": 1280, "height": 700})
    slider(visit, LENGTH).press("End")
    visit.page.wait_for_function(f"() => ({BUSY})().join() === '2,3'")
    visit.page.emulate_media(media="print")
    printed = """() => [1, 2, 3].map(part => document.querySelector(`:has(> .st-key-wire-part-${part})
        :is(.js-plotly-plot, [data-testid="stText"])`).checkVisibility())"""
    assert visit.page.evaluate(printed) == [True, False, False]
    visit.page.wait_for_function(f"() => !({BUSY})().length")
    assert visit.page.evaluate(printed) == [True, True, True]
