"""No setting and no link may break a page: seeded random settings of every control, and random links."""

import random

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.charts import open_page, texts
from ui.navigation import ENTRIES

pytestmark = pytest.mark.slow
PAGES = [entry.name for entry in ENTRIES if entry.name != "home"]
SETTINGS_PER_PAGE, LINKS_PER_PAGE = 340, 170
SENTENCES = (
    "",
    "dog",
    "   ",
    "the cat saw the cat and the cat ran",
    "<script>alert('x')</script> $x$ *a* :red[x] `code` [MASK] </s>",
    "我喜欢猫 and ねこ",
    "مرحبا بالعالم",
    "👩‍👩‍👧 🇩🇪 👍🏽",
    "2026-11-29 2026-11-30 3.14",
    "word " * 100,
    "x" * 5000,
)
NAMES = (
    "seq_len",
    "d_model",
    "heads",
    "seed",
    "sentence",
    "scaling",
    "temperature",
    "causal",
    "padding",
    "cross",
    "source",
    "source_len",
    "weight_scale",
    "query",
    "stage",
    "scheme",
    "d_ff",
    "residual",
    "norm",
    "order",
    "activation",
    "output_projection",
    "blocks",
    "block",
    "head",
    "gain",
    "embedding_scale",
    "permutation",
    "pair",
    "alibi_head",
    "heads_from",
    "off",
    "layer_norm",
    "compare",
    "model",
    "letters",
    "mark",
    "example",
    "layer",
    "task",
    "layers",
    "encoding",
    "steps",
    "learning_rate",
    "beside",
    "nonsense",
)
VALUES = (
    "",
    "0",
    "1",
    "2",
    "3",
    "7",
    "16",
    "33",
    "64",
    "-1",
    "1e9",
    "1e400",
    "nan",
    "inf",
    "abc",
    "true",
    "False",
    "0.25",
    "9" * 40,
    "pre-norm",
    "GELU",
    "rope",
    "all",
    "trained",
    "built by hand",
    "induction",
    "ABCDEFGHIJKL",
    "none",
    "٣",
    "<b>",
    "$x$",
    "dog bites man",
)


def set_something(at: AppTest, rng: random.Random) -> dict[str, object]:
    """Move a random choice of the page's controls to random legal values, and say which."""
    moved: dict[str, object] = {}
    for widget in [*at.slider, *at.select_slider, *at.toggle, *at.button_group, *at.number_input, *at.text_input]:
        if widget.key is None or rng.random() < 0.5:
            continue
        kind = widget.type
        if kind == "slider":
            steps = round((widget.max - widget.min) / widget.step)
            value = widget.min + widget.step * rng.choice([0, 1, steps // 2, steps - 1, steps, rng.randint(0, steps)])
            value = round(value, 6) if isinstance(widget.value, float) else int(value)
        elif kind == "select_slider":
            value = type(widget.value)(rng.choice(widget.options))
        elif kind == "toggle":
            value = rng.random() < 0.5
        elif kind == "number_input":
            value = rng.randint(0, 9999)
        elif kind == "text_input":
            value = rng.choice(SENTENCES) if rng.random() < 0.5 else ""
        elif isinstance(widget.value, list):
            value = [option for option in widget.options if rng.random() < 0.4]
        else:
            value = rng.choice(widget.options)
        widget.set_value(value)
        moved[widget.key] = value
    return moved


def assert_sound(at: AppTest, told: object) -> None:
    assert not at.exception, (told, [error.value for error in at.exception])
    shown = texts(at).lower()
    assert "traceback" not in shown, told
    assert " nan" not in shown or "nan" in str(told), (told, shown)  # unless a reader typed it


@pytest.mark.parametrize("page", PAGES)
def test_no_setting_breaks_a_page(page: str) -> None:
    rng = random.Random(f"settings of {page}")
    at = open_page(page)
    assert_sound(at, page)
    for _ in range(SETTINGS_PER_PAGE):
        moved = set_something(at, rng)
        at.run()
        assert_sound(at, moved)


@pytest.mark.parametrize("page", PAGES)
def test_no_link_breaks_a_page(page: str) -> None:
    rng = random.Random(f"links to {page}")
    for _ in range(LINKS_PER_PAGE):
        link = {rng.choice(NAMES): rng.choice(VALUES) for _ in range(rng.randint(1, 6))}
        assert_sound(open_page(page, **link), link)
