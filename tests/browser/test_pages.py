"""What each page shows in a browser: charts that can be read and heard, stages, a measurement, words as typed."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, expect

from core.tokens import tokenize
from tests.browser import harness
from tests.browser.conftest import OpenTab
from tests.browser.harness import TOO_WIDE, Scheme, Visit
from tests.browser.reading import CONCEPTS, charts, go_to, link, quiet_tab, redrawn, slider, wait_until
from tests.pages.charts import array
from ui.figures import token_names
from ui.navigation import ENTRIES, EVERY

# Every text of a chart but the numbers inside coloured cells, with its colour; and what it stands on.
TEXT_COLOURS = """() => [...document.querySelectorAll('.js-plotly-plot svg text')]
    .filter(text => text.textContent.trim() && !text.closest('.heatmap-label'))
    .map(text => [text.textContent, getComputedStyle(text).fill, text.classList.value])
"""
HAS_BACKGROUND = """wanted =>
    getComputedStyle(document.querySelector('[data-testid="stApp"]')).backgroundColor === wanted
"""
# The page's own style: Streamlit loads what writes it last.
HAS_STYLE = "() => [...document.querySelectorAll('style')].some(style => style.textContent.includes('katex-display'))"
BACKGROUNDS: dict[Scheme, str] = {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 22, 20)"}


# Axis titles that begin above the end of their axis' labels.
TITLES_AMONG_LABELS = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(chart =>
    [...chart.querySelectorAll('.xtitle')].filter(title => {
        const ends = [...chart.querySelectorAll('.xtick text')].map(label => label.getBoundingClientRect().bottom);
        return title.getBoundingClientRect().top < Math.max(...ends) - 3;
    }).map(title => title.textContent))
"""


# Numbers of a map that run into another one.
COLLIDING_NUMBERS = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(chart => {
    const numbers = [...chart.querySelectorAll('.heatmap-label text')].map(text => text.getBoundingClientRect());
    return numbers.filter((one, place) => numbers.some((other, elsewhere) => place !== elsewhere &&
        one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom));
}).length
"""
# Text that a table's toolbar stands on.
UNDER_A_TOOLBAR = """() => [...document.querySelectorAll('[data-testid=stElementToolbar]')].flatMap(toolbar => {
    const bar = toolbar.firstElementChild.getBoundingClientRect();
    return [...document.querySelectorAll('[data-testid=stMain] :is(p, h2, [data-testid=stText])')].filter(text => {
        const box = text.getBoundingClientRect();
        return box.bottom > bar.top && box.top < bar.bottom && box.right > bar.left && box.left < bar.right;
    }).map(text => text.textContent);
})
"""
FITS = f"() => Object.keys(({TOO_WIDE})()).length === 0"


@pytest.fixture(scope="module", params=EVERY, ids=lambda entry: entry.name)
def opened(request: pytest.FixtureRequest, server: str, profile: BrowserContext) -> Iterator[Visit]:
    """Each page as it opens, for tests that set nothing."""
    path = "/" if request.param is ENTRIES[0] else f"/{request.param.name}"
    with quiet_tab(profile, server, path) as visit:
        yield visit


def test_every_chart_has_a_spoken_description_of_its_own(opened: Visit) -> None:
    drawn = opened.page.get_by_test_id("stPlotlyChart")
    figures = opened.page.get_by_role("figure")
    labels = figures.evaluate_all("figures => figures.map(figure => figure.ariaLabel)")

    assert drawn.count() == figures.count()
    assert [label for label in labels if len(label.split()) < 4] == []
    assert len(set(labels)) == len(labels)


def test_every_chart_has_room_for_its_labels_from_the_start(opened: Visit) -> None:
    """Where Plotly has to make room, it draws everything twice, on each redraw."""
    made = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(({ _fullLayout: { margin, _size } }) =>
        ['l', 'r', 't', 'b'].map(side => [side, _size[side] - margin[side]]).filter(([, more]) => more > 1))"""
    assert opened.page.evaluate(made) == []


def test_axis_titles_stand_below_the_labels(opened: Visit) -> None:
    assert opened.page.evaluate(TITLES_AMONG_LABELS) == []


@pytest.mark.parametrize("color_scheme", BACKGROUNDS)
def test_axe_finds_nothing_that_keeps_anybody_out(color_scheme: Scheme, opened: Visit) -> None:
    opened.page.set_viewport_size({"width": 1280, "height": 800})
    opened.page.emulate_media(color_scheme=color_scheme)
    assert wait_until(opened, HAS_BACKGROUND, BACKGROUNDS[color_scheme])
    assert wait_until(opened, HAS_STYLE)
    opened.settle()

    violations = Axe().run(opened.page).response["violations"]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in violations] == []


def luminance(colour: str) -> float:
    """Relative luminance of an opaque CSS colour (WCAG 2.2)."""
    assert re.fullmatch(r"rgb\(\d+, \d+, \d+\)", colour), colour
    shares = np.array(re.findall(r"\d+", colour), dtype=float) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(colour: str, background: str) -> float:
    low, high = sorted([luminance(colour), luminance(background)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color_scheme", BACKGROUNDS)
def test_labels_stand_out_and_nothing_is_too_wide(color_scheme: Scheme, opened: Visit) -> None:
    background = BACKGROUNDS[color_scheme]
    opened.page.emulate_media(color_scheme=color_scheme)
    assert wait_until(opened, HAS_BACKGROUND, background)

    for width in (390, 1280):
        opened.page.set_viewport_size({"width": width, "height": 800})
        opened.settle()
        assert wait_until(opened, FITS)  # charts follow a new width when the page is drawn

    texts = opened.page.evaluate(TEXT_COLOURS)
    if opened.page.get_by_test_id("stPlotlyChart").count():
        assert {"xtitle", "ytitle"} <= {kind for _, _, kind in texts}
    assert [(text, colour) for text, colour, _ in texts if contrast(colour, background) < 4.5] == []


@pytest.mark.parametrize(
    "path",
    [
        "/self_attention?cross=true&sentence=the+cat+saw+the+dog&source=die+Katze+sah+den+Hund+gern&stage=all",
        "/self_attention?stage=projections",
        "/self_attention?d_model=12&seq_len=12&cross=true&source_len=12",
        "/positional_encoding?seq_len=12&d_model=12",
        "/multi_head_attention?d_model=12&seq_len=12&off=1&sentence=" + "+incomprehensible" * 12,
    ],
)
def test_numbers_of_a_map_do_not_run_into_each_other(path: str, open_tab: OpenTab) -> None:
    visit = open_tab(path)
    assert visit.page.locator(".heatmap-label text").count() > 0
    assert visit.page.evaluate(COLLIDING_NUMBERS) == 0


@pytest.mark.parametrize("name", ["self_attention", "multi_head_attention", "training_lab"])
def test_on_a_phone_no_toolbar_of_a_table_covers_what_stands_above_it(name: str, browser: Browser, server: str) -> None:
    visit = harness.visit(browser, f"{server}/{name}", "light", 390, 844, has_touch=True, is_mobile=True)
    toolbars = visit.page.get_by_test_id("stElementToolbar")
    assert toolbars.count() == visit.page.get_by_test_id("stDataFrame").count() > 0
    assert visit.page.evaluate(UNDER_A_TOOLBAR) == []
    visit.page.context.close()


# As much as fits into a link: 64 tokens, the first of them longer than a phone is wide.
LONG_SENTENCE = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz" + "+unbelievable" * 63
LARGEST = {
    "home": "",
    "recurrence": "&d_model=128&gain=2.5",
    "self_attention": f"&d_model=64&cross=true&source={LONG_SENTENCE}&stage=all&query=64",
    "positional_encoding": "&d_model=128",
    "multi_head_attention": "&d_model=64&heads=32&head=32&off=1,32",
    "transformer_block": "&d_model=64&d_ff=256&heads=64&blocks=24&block=24&compare=true",
}


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_settings_fit_on_a_phone(name: str, open_tab: OpenTab) -> None:
    query = f"sentence={LONG_SENTENCE}{LARGEST[name]}"
    visit = open_tab(f"{'/' if name == 'home' else f'/{name}'}?{query}", width=390)

    assert link(visit) == dict(parse_qsl(query))  # it is legal as it is
    assert visit.sideways_scroll() == {}


TYPED = "<img src=x onerror=alert(1)> <script> $x$ *a* :red[b] &lt;"
# On each page: a chart with the tokens along its axis, and the class of that axis's labels.
TOKEN_LABELS = {
    "recurrence": ("memory", "xtick"),
    "self_attention": ("map", "ytick"),
    "positional_encoding": ("shuffle_0", "ytick"),
    "multi_head_attention": ("one_head", "ytick"),
    "transformer_block": ("norm_chart", "xtick"),
}


def test_a_sentence_typed_at_home_is_used_on_every_page_as_it_was_typed(open_tab: OpenTab) -> None:
    visit = open_tab("/")
    visit.page.evaluate("() => { window.alerts = 0; window.alert = () => { window.alerts += 1; }; }")
    tokens = tokenize(TYPED).tokens
    names = token_names(tokens, len(tokens))
    box = visit.page.get_by_label("Sentence", exact=True)

    box.fill(TYPED)
    box.press("Enter")
    said = visit.page.get_by_text("now use these tokens:  " + "   ".join(names))
    said.wait_for()
    assert link(visit) == {"sentence": TYPED}

    for concept in CONCEPTS:
        go_to(visit, concept)
        assert link(visit) == {"sentence": TYPED}
        assert visit.page.get_by_label("Sentence", exact=True).input_value() == TYPED
        key, axis = TOKEN_LABELS[concept.name]
        labels = visit.page.locator(f".st-key-{key} .{axis} text").all_text_contents()
        every = -(-len(names) // 16)  # of many tokens every second or third is labelled
        assert [label for label in labels if label in names] == names[::every]
        assert visit.page.locator('[data-testid="stMain"] img').count() == 0
    assert visit.page.evaluate("window.alerts") == 0


# The bar may be gone before a test that waits for it looks.
NOTE_PROGRESS = """() => {
    window.progress = [];
    new MutationObserver(() => {
        const bar = document.querySelector('[role="progressbar"]');
        if (bar) window.progress.push(Number(bar.ariaValueNow));
    }).observe(document.body, { childList: true, subtree: true, attributes: true });
}"""


def test_measuring_draws_two_curves(open_tab: OpenTab) -> None:
    visit = open_tab("/recurrence?d_model=128")  # a small width is measured before the browser has drawn the bar
    assert "times" not in charts(visit)

    visit.page.evaluate(NOTE_PROGRESS)
    visit.page.get_by_role("button", name="Measure on this machine").click()
    visit.page.locator(".st-key-times .js-plotly-plot").wait_for()
    visit.settle(timeout=60_000)

    assert visit.page.evaluate("window.progress").pop() > 0
    assert visit.page.get_by_role("progressbar").count() == 0
    curves = charts(visit)["times"]
    assert len(curves) == 2
    for curve in curves:
        np.testing.assert_array_equal(array(curve["x"]), 2.0 ** np.arange(1, 11))
        assert (array(curve["y"]) > 0).all()


def test_stages_of_self_attention_one_after_the_other(open_tab: OpenTab, lesson: dict[str, Any]) -> None:
    visit = open_tab("/self_attention")
    on = visit.page.get_by_role("button", name="Next stage")
    back = visit.page.get_by_role("button", name="Previous stage")
    arrays = lesson["self_attention"]
    scores = np.array(arrays["Q"]) @ np.transpose(arrays["K"])
    stages = {
        "inputs": {"X": arrays["X"]},
        "projections": {name: arrays[name] for name in "QKV"},
        "scores": {"scores": scores},
        "scaling": {"scaled": scores / np.sqrt(6)},
        "mask": {"masked": scores / np.sqrt(6)},
        "softmax": {"weights": arrays["weights"]},
        "output": {"output": arrays["output"]},
    }

    expect(back).to_be_disabled()
    for number, (stage, matrices) in enumerate(stages.items()):
        if number:
            on.click()
        visit.page.get_by_text(f"{number + 1}. {stage.capitalize()}.").wait_for()
        visit.settle()
        drawn = {key: data for key, data in charts(visit).items() if key.startswith("stage_")}
        assert drawn.keys() == {f"stage_{name}" for name in matrices}
        for name, matrix in matrices.items():
            np.testing.assert_allclose(array(drawn[f"stage_{name}"][0]["z"]), matrix, atol=1e-5)
        assert link(visit) == ({"stage": stage} if number else {})
        expect(visit.page.get_by_role("radio", name=stage, exact=True)).to_be_checked()
    expect(on).to_be_disabled()

    back.click()
    visit.page.get_by_text("6. Softmax.").wait_for()
    visit.settle()
    assert link(visit) == {"stage": "softmax"}


def test_an_experiment_sets_the_sliders_and_the_picture_and_says_what_to_look_for(open_tab: OpenTab) -> None:
    visit = open_tab("/self_attention")
    with redrawn(visit, "map"):
        visit.page.get_by_role("button", name="Without √d_k at d_model 64").click()

    expect(slider(visit, "Model width d_model")).to_have_attribute("aria-valuetext", "64")
    expect(slider(visit, "Size of the random weights")).to_have_attribute("aria-valuetext", "0.1")
    expect(visit.page.get_by_role("switch", name="Divide scores by √d_k")).not_to_be_checked()
    expect(visit.page.get_by_text("Read the bits at the right of the map.")).to_be_visible()
    assert link(visit) == {"d_model": "64", "weight_scale": "0.1", "scaling": "false"}

    slider(visit, "Sequence length").press("ArrowRight")
    visit.settle()
    with redrawn(visit, "map"):
        visit.page.get_by_role("button", name="Cold, then hot").click()  # starts from the lesson's example again
    expect(slider(visit, "Model width d_model")).to_have_attribute("aria-valuetext", "6")
    expect(slider(visit, "Sequence length")).to_have_attribute("aria-valuetext", "5")
    expect(visit.page.get_by_role("switch", name="Divide scores by √d_k")).to_be_checked()
    expect(visit.page.get_by_text("Read the bits at the right of the map.")).to_have_count(1)
    assert link(visit) == {"temperature": "0.1"}
