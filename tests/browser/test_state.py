"""What the reader has set is in the link, survives every way of leaving and coming back, and is never illegal."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import OpenPage, OpenTab
from tests.browser.harness import Visit
from tests.browser.reading import (
    CONCEPTS,
    arrive,
    assert_state,
    charts,
    go_to,
    link,
    redrawn,
    slider,
    state,
    wait_until,
)
from tests.pages.charts import array
from ui.navigation import Entry, entry

EACH_CONCEPT = pytest.mark.parametrize("concept", CONCEPTS, ids=lambda concept: concept.name)
LENGTH, WIDTH, HEADS, SEED = "Sequence length", "Model width d_model", "Attention heads", "Seed of the random weights"

# Of each page: the picture to watch, and a control that stands beside it, with what it adds to the link.
PICTURES = {
    "recurrence": "memory",
    "self_attention": "map",
    "positional_encoding": "encoding",
    "multi_head_attention": "all_heads",
    "transformer_block": "stages",
}
OWN_CONTROLS = {
    "recurrence": ("Gain of the recurrent weights", "memory", {"gain": "1.1"}),
    "self_attention": ("Query token", "row", {"query": "2"}),
    "positional_encoding": ("rope", "encoding", {"scheme": "rope"}),
    "multi_head_attention": ("Head shown large", "one_head", {"head": "2"}),
    "transformer_block": ("Stacked blocks", "depth_chart", {"blocks": "2"}),
}

COUNT_EXCEPTIONS = """() => {
    window.exceptions = 0;
    new MutationObserver(() => {
        window.exceptions += document.querySelectorAll('[data-testid="stException"]').length;
    }).observe(document.body, { childList: true, subtree: true });
}"""


def move(visit: Visit, label: str, key: str = "ArrowRight") -> None:
    slider(visit, label).press(key)


def shown(visit: Visit, *labels: str) -> list[str]:
    """What the controls of these labels show."""
    return [state(visit).controls[label] for label in labels]


@EACH_CONCEPT
def test_what_is_set_changes_picture_and_link_and_survives(
    concept: Entry, open_tab: OpenTab, other_profile: BrowserContext
) -> None:
    visit = open_tab(f"/{concept.name}")
    length, width = map(int, shown(visit, LENGTH, WIDTH))
    picture = PICTURES[concept.name]
    label, own_picture, in_link = OWN_CONTROLS[concept.name]

    with redrawn(visit, picture):
        move(visit, LENGTH)
    with redrawn(visit, picture):
        move(visit, WIDTH)
    with redrawn(visit, own_picture):
        if label == "rope":
            visit.page.get_by_role("radio", name=label, exact=True).click()
        else:
            move(visit, label)
    length, width = length + 1, width + (1 if concept.name == "positional_encoding" else 2)
    was = state(visit)
    assert was.link == {"seq_len": str(length), "d_model": str(width)} | in_link
    assert shown(visit, LENGTH, WIDTH) == [str(length), str(width)]

    go_to(visit, entry("home"))
    go_to(visit, concept)
    assert_state(visit, was)

    copied = visit.page.url.partition(concept.name)[2]
    assert_state(open_tab(f"/{concept.name}{copied}", profile=other_profile), was)


def test_a_value_follows_to_other_pages_and_is_cut_only_where_it_must_be(open_tab: OpenTab) -> None:
    visit = open_tab("/recurrence?seq_len=200")
    assert shown(visit, LENGTH, WIDTH) == ["200", "8"]

    # What nobody has set, here the width, is each page's own.
    for name, length, width, limits in (
        ("self_attention", "64", "6", "2 to 64"),
        ("positional_encoding", "128", "16", "2 to 128"),
        ("recurrence", "200", "8", ""),
    ):
        go_to(visit, entry(name))
        assert shown(visit, LENGTH, WIDTH) == [length, width]
        assert link(visit) == {"seq_len": length}
        notes = visit.page.get_by_test_id("stSidebar").get_by_text("seq_len").all_inner_texts()
        assert notes == ([f"seq_len 200 is outside {limits}: showing {length}."] if limits else [])

    # Moved where it was cut, it is a new value, and the old one is forgotten.
    go_to(visit, entry("self_attention"))
    told = visit.page.get_by_text("seq_len 200 is outside 2 to 64: showing 64.")
    with redrawn(visit, "map"):
        move(visit, WIDTH)
    expect(told).to_be_visible()
    with redrawn(visit, "map"):
        move(visit, LENGTH, "ArrowLeft")
    expect(told).to_have_count(0)
    go_to(visit, entry("recurrence"))
    assert shown(visit, LENGTH) == ["63"]
    assert array(charts(visit)["memory"][0]["x"]).shape == (63,)


@pytest.mark.parametrize(
    ("name", "query", "listing", "array_name", "trace"),
    [
        ("self_attention", "?causal=true&query=3&seq_len=9&temperature=2", "self_attention", "weights", 0),
        ("positional_encoding", "?d_model=33&scheme=table", "positional_encoding", "pe", 0),
        ("transformer_block", "?heads=2&norm=false&weight_scale=0.5", "block", "block_output", -1),
    ],
    ids=["self_attention", "positional_encoding", "transformer_block"],
)
def test_new_weights_and_the_way_back_to_the_lesson(
    name: str, query: str, listing: str, array_name: str, trace: int, open_tab: OpenTab, lesson: dict[str, Any]
) -> None:
    visit = open_tab(f"/{name}{query}")
    picture, given = PICTURES[name], link(visit)

    with redrawn(visit, picture):
        visit.page.get_by_role("button", name="New weights").click()
    assert shown(visit, SEED) == ["1"]
    assert link(visit) == given | {"seed": "1"}

    with redrawn(visit, picture):
        visit.page.get_by_role("button", name="Lesson example").click()
    assert shown(visit, SEED) == ["0"]
    assert link(visit) == {}
    cells = array(charts(visit)[picture][trace]["z"])
    if name == "positional_encoding":
        cells = cells.T  # positions across, dimensions down
    np.testing.assert_allclose(cells, lesson[listing][array_name], atol=1e-6)


def test_the_help_of_a_button_takes_no_click_from_the_one_above_it(open_tab: OpenTab) -> None:
    """On a busy machine it comes up late, when the pointer has gone on."""
    visit = open_tab("/self_attention?seed=5")
    visit.page.get_by_role("button", name="New weights").hover()
    told = visit.page.get_by_test_id("stTooltipContent")
    expect(told).to_be_visible()
    over, under = told.bounding_box(), visit.page.get_by_role("button", name="Lesson example").bounding_box()
    assert over
    assert under
    y = max(over["y"], under["y"]) + 4
    assert y < under["y"] + under["height"]
    with redrawn(visit, "map"):
        visit.page.mouse.click(over["x"] + over["width"] / 2, y)
    assert shown(visit, SEED) == ["0"]


def test_on_home_the_way_back_to_the_lesson_is_for_all_pages(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention?d_model=16&sentence=dog+bites+man")
    go_to(visit, entry("home"))
    visit.page.get_by_role("button", name="Lesson example").click()
    expect(visit.page.get_by_role("textbox")).to_have_value("")
    go_to(visit, entry("self_attention"))
    assert link(visit) == {}
    assert (shown(visit, WIDTH), shown(visit, LENGTH)) == (["6"], ["5"])


def test_a_key_held_down_on_the_width_while_four_heads_are_chosen(open_tab: OpenTab) -> None:
    """Every second width cannot be cut into 4 heads, and the browser runs ahead of the server."""
    visit = open_tab("/multi_head_attention?d_model=12&heads=4")
    visit.page.evaluate(COUNT_EXCEPTIONS)

    slider(visit, WIDTH).focus()
    for _ in range(5):
        messages = visit.page.evaluate("window.messages")
        visit.page.keyboard.down("ArrowRight")
        # The next key comes when this one has been reported, and before the answer is there.
        assert wait_until(visit, "before => window.messages > before", messages)
    visit.page.keyboard.up("ArrowRight")

    visit.page.get_by_text("4 heads do not divide d_model 22: showing 2.").wait_for()
    visit.settle()
    assert visit.page.evaluate("window.exceptions") == 0
    assert shown(visit, WIDTH, HEADS) == ["22", "2"]
    assert link(visit) == {"d_model": "22", "heads": "4"}
    assert len(charts(visit)["all_heads"][1]["text"]) == 2  # a heading for each head

    # Where 4 heads fit again they are back.
    with redrawn(visit, "all_heads"):
        move(visit, WIDTH)
    assert shown(visit, WIDTH, HEADS) == ["24", "4"]
    assert link(visit) == {"d_model": "24", "heads": "4"}
    assert len(charts(visit)["all_heads"][1]["text"]) == 4


def test_a_key_held_there_and_back_loses_nothing_that_was_chosen(open_tab: OpenTab) -> None:
    """At the rate of a keyboard that repeats: the browser is many answers behind, and options come and go."""
    visit = open_tab("/multi_head_attention?d_model=16&heads=4&head=3&off=2,4")
    before, given = state(visit), link(visit)

    slider(visit, WIDTH).focus()
    for key in ("ArrowRight", "ArrowLeft"):
        for _ in range(14):
            visit.page.keyboard.down(key)
            visit.page.wait_for_timeout(30)
        visit.page.keyboard.up(key)

    assert_state(visit, before)
    visit.settle()
    assert link(visit) == given == {"d_model": "16", "heads": "4", "head": "3", "off": "2,4"}
    assert visit.page.get_by_role("dialog").count() == 0  # "Connection error"


def test_back_forward_and_reload_in_the_browser(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention")
    with redrawn(visit, "map"):
        move(visit, LENGTH)
    first = state(visit)
    go_to(visit, entry("positional_encoding"))
    with redrawn(visit, "encoding"):
        visit.page.get_by_role("radio", name="rope", exact=True).click()
    second = state(visit)

    visit.page.go_back()
    arrive(visit, "self_attention")
    assert_state(visit, first)

    visit.page.go_forward()
    arrive(visit, "positional_encoding")
    assert_state(visit, second)

    visit.page.reload()
    assert_state(visit, second)


def test_coming_to_a_page_is_one_step_in_the_history(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention")
    length = "history.length"
    steps = visit.page.evaluate(length)
    for act in (
        lambda: move(visit, LENGTH),
        lambda: go_to(visit, entry("home")),
        lambda: go_to(visit, entry("recurrence")),
    ):
        act()
        visit.settle()
        steps += 1
        assert visit.page.evaluate(length) == steps
    # So says Streamlit where the browser saw the run that finds the link that belongs to the page.
    for addresses in (
        ("/recurrence?seq_len=7", "/self_attention?seq_len=7"),
        ("/positional_encoding", "/positional_encoding?seq_len=7"),
    ):
        visit.page.evaluate("addresses => addresses.forEach(each => history.pushState({}, '', each))", addresses)
        steps += 1
        assert visit.page.evaluate(length) == steps
        assert visit.page.url.endswith(addresses[-1])


def test_back_and_forward_over_a_choice_that_depends_on_another(open_tab: OpenTab) -> None:
    visit = open_tab("/multi_head_attention")
    states = [state(visit)]
    for _ in range(2):  # 2 heads, 4, 8
        with redrawn(visit, "all_heads"):
            move(visit, HEADS)
        states.append(state(visit))
    assert [link(visit).get("heads")] == ["8"]

    for go, wanted in (
        (visit.page.go_back, states[1]),
        (visit.page.go_back, states[0]),
        (visit.page.go_forward, states[1]),
    ):
        go()
        assert_state(visit, wanted)


@pytest.mark.parametrize(
    ("path", "told", "left"),
    [
        (
            "/multi_head_attention?d_model=33&heads=7&seq_len=abc&nonsense=1",
            [
                "seq_len “abc” is not a number: showing 6.",
                "d_model 33 is not a step of this slider: showing 34.",
                "7 heads do not divide d_model 34: showing 2.",
                "The link names what this page does not have: “nonsense”.",
            ],
            {"d_model": "34"},
        ),
        (
            "/self_attention?temperature=0&query=99&stage=**bold**&causal=perhaps&seed=5&seed=7",
            [
                "causal “perhaps” is neither true nor false: showing false.",
                "temperature 0 is outside 0.1 to 5: showing 0.1.",
                "seed stands in the link 2 times: showing 7.",
                "query 99 is outside 1 to 5: showing 5.",
                "stage “**bold**” is not one of "
                "inputs, projections, scores, scaling, mask, softmax, output, all: showing inputs.",
            ],
            {"query": "5", "seed": "7", "temperature": "0.1"},
        ),
    ],
    ids=["multi_head_attention", "self_attention"],
)
def test_a_malformed_link_tells_what_it_corrected(
    path: str, told: list[str], left: dict[str, str], open_tab: OpenTab
) -> None:
    visit = open_tab(path)

    note = visit.page.get_by_test_id("stMain").get_by_test_id("stText").first
    expect(note).to_have_text("\n".join(told))
    assert link(visit) == left


def test_back_restores_what_a_link_leaves_out(open_tab: OpenTab) -> None:
    visit = open_tab("/positional_encoding")
    slider(visit, LENGTH).press("End")
    visit.settle()
    visit.page.get_by_role("radio", name="alibi").click()
    visit.settle()
    assert link(visit) == {"seq_len": "128", "scheme": "alibi"}
    visit.page.go_back()
    visit.settle()
    assert link(visit) == {}
    expect(visit.page.get_by_role("radio", name="sinusoidal")).to_be_checked()
    expect(slider(visit, LENGTH)).to_have_value("20")
    visit.page.go_forward()
    visit.settle()
    assert link(visit) == {"seq_len": "128", "scheme": "alibi"}
    expect(visit.page.get_by_role("radio", name="alibi")).to_be_checked()


@pytest.mark.parametrize("pause", [40, 100])
def test_a_click_right_after_back_leaves_link_switches_and_picture_agreed(pause: int, open_tab: OpenTab) -> None:
    visit = open_tab("/transformer_block?heads=2&residual=false")
    visit.page.set_viewport_size({"width": 1280, "height": 1400})  # both switches are on the screen
    visit.settle()
    slider(visit, LENGTH).press("ArrowRight")
    visit.settle()
    beside = visit.page.get_by_test_id("stSidebar")
    boxes = [beside.get_by_text(name, exact=True).bounding_box() for name in ("Residual connections", "LayerNorm")]
    places = [(box["x"] + 10, box["y"] + box["height"] / 2) for box in boxes if box]
    visit.page.mouse.click(*places[0])
    visit.settle()
    visit.page.evaluate("history.back()")
    visit.page.wait_for_timeout(pause)
    visit.page.mouse.click(*places[1])
    assert wait_until(visit, "() => location.search.includes('norm=false')")
    visit.page.wait_for_timeout(1_000)  # the step is told once more when all is at rest
    visit.settle()
    given = link(visit)
    assert given == {"heads": "2", "residual": "false", "norm": "false"}
    assert_state(visit, state(open_tab("/transformer_block?heads=2&residual=false&norm=false")))


def test_back_leads_through_a_presentation_as_it_came(open_page: OpenPage) -> None:
    visit = open_page("/self_attention?present=2")
    ways = [link(visit)]
    for _ in range(3):
        visit.page.get_by_role("button", name="Next").click()
        visit.settle()
        ways.append(link(visit))
    assert ways[-1] == {"present": "3", "stage": "scores"}
    for way in reversed(ways[:-1]):
        visit.page.go_back()
        visit.settle()
        assert link(visit) == way
    assert visit.errors == []
