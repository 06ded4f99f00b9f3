"""The controls: every link opens on legal settings, what is chosen is remembered, and the clean link brings it back."""

import random
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.charts import control, open_page
from ui import control_kinds, controls, navigation
from ui.control_kinds import MAX_SENTENCE, Control, Settings
from ui.link import read_link, resolve, write_link

CONTROLS: list[Control] = [
    controls.sentence(),
    controls.seq_len(2, 64, default=5),
    controls.d_model(4, 64, step=2, default=8),
    controls.heads(default=2),
    controls.choice_up_to("query", "Query token", low=1, high=lambda s: s.n_tokens, default=1),
    controls.switch("scaling", "Scaling", default=True),
    controls.slider("temperature", "Temperature", 0.1, 5.0, step=0.1, default=1.0),
    controls.option("norm", "Norm", ["post-norm", "pre-norm"], default="post-norm"),
    controls.slider("depth", "Depth", 1, 9, default=3, only_if=lambda s: s.norm == "pre-norm"),
    controls.flags("off", "Heads off", high=lambda s: s.heads),
    controls.seed(),
]
NASTY = [
    *["", " ", "abc", "nan", "NaN", "inf", "-inf", "1e999", "-1e999", "1e-400", "9" * 5000, "-0", "+4", " 6 ", "6.0"],
    *["1_0", "0x10", "٣", "4,6", "4;6", "1e3", "33", "0.30000000000000004", "2.9999999999", "None", "true", "FALSE"],
    *["<b>x</b>", "$x$", "*a*", ":red[x]", "\x00", "\ud800", "\u202e", "a" * 100_000, "dog bites man", "pre-norm"],
]


def opened(link: dict[str, list[str]], chosen: dict[str, Any] | None = None) -> tuple[Settings, list[str]]:
    after, notes = read_link(CONTROLS, link, chosen or {})
    return resolve(CONTROLS, after), notes


def assert_legal(settings: Settings) -> None:
    assert settings.d_model in range(4, 65, 2)
    assert settings.d_model % settings.heads == 0
    assert 1 <= settings.query <= settings.n_tokens
    assert settings.n_tokens == (len(settings.tokens) or settings.seq_len) <= 64
    assert round(settings.temperature * 10) in range(1, 51)
    assert settings.temperature == round(settings.temperature, 1)
    assert settings.scaling in (True, False)
    assert settings.norm in ("post-norm", "pre-norm")
    assert settings.depth in range(1, 10)
    assert settings.seed in range(10_000)
    assert set(settings.off) <= set(range(1, settings.heads + 1))
    assert len(settings.sentence) <= MAX_SENTENCE
    for name in ("seq_len", "d_model", "heads", "query", "seed", "depth"):
        assert type(settings.values[name]) is int


# --- the door -------------------------------------------------------------------------------------------------------


def test_no_link_means_the_defaults_and_nothing_to_say() -> None:
    settings, notes = opened({})
    assert notes == []
    assert settings.values == {control.name: control.default for control in CONTROLS}
    assert write_link(CONTROLS, settings) == {}


@pytest.mark.parametrize("name", [control.name for control in CONTROLS])
@pytest.mark.parametrize("text", NASTY)
def test_any_text_for_any_control_opens_on_legal_settings(name: str, text: str) -> None:
    settings, notes = opened({name: [text]})
    assert_legal(settings)
    assert all(len(note) < 120 for note in notes)


def test_random_links_open_on_legal_settings_and_their_clean_link_opens_on_the_same() -> None:
    rng = random.Random(0)
    names = [control.name for control in CONTROLS] + ["nonsense", "embed", "", "*a*"]
    for _ in range(1000):
        link = {rng.choice(names): rng.choices(NASTY, k=rng.choice([1, 1, 1, 2])) for _ in range(rng.randint(0, 6))}
        settings, _ = opened(link)
        assert_legal(settings)
        clean = write_link(CONTROLS, settings)
        again, notes = opened({name: [text] for name, text in clean.items()})
        assert (again.values, notes) == (settings.values, []), link
        assert write_link(CONTROLS, again) == clean


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ({"d_model": ["33"]}, "d_model 33 is not a step of this slider: showing 34."),
        ({"d_model": ["1000"]}, "d_model 1000 is outside 4 to 64: showing 64."),
        ({"d_model": ["1e999"]}, "d_model inf is outside 4 to 64: showing 64."),
        ({"d_model": ["nan"]}, "d_model “nan” is not a number: showing 8."),
        ({"d_model": ["6", "10"]}, "d_model stands in the link 2 times: showing 10."),
        ({"heads": ["7"], "d_model": ["16"]}, "7 heads do not divide d_model 16: showing 8."),
        ({"heads": ["99"], "d_model": ["16"]}, "heads 99 is outside 1 to 16: showing 16."),
        ({"query": ["6"]}, "query 6 is outside 1 to 5: showing 5."),
        ({"query": ["2.5"]}, "query 2.5 is not a whole number: showing 2."),
        ({"scaling": ["maybe"]}, "scaling “maybe” is neither true nor false: showing true."),
        ({"temperature": ["0"]}, "temperature 0 is outside 0.1 to 5: showing 0.1."),
        ({"norm": ["rms"]}, "norm “rms” is not one of post-norm, pre-norm: showing post-norm."),
        ({"seed": ["-1"]}, "seed -1 is outside 0 to 9999: showing 0."),
        ({"seed": ["1.2"]}, "seed 1.2 is not a whole number: showing 1."),
        ({"depth": ["5"]}, "depth does not apply with these settings and is left out."),
        ({"off": ["5"]}, "off “5” is none of 1 to 2: showing none."),
        ({"off": ["1,x"]}, "off “x” is none of 1 to 2: showing 1."),
        ({"sentence": ["a b"], "seq_len": ["9"]}, "seq_len 9 gives way to the length of the sentence: showing 2."),
        ({"sentence": ["x" * 2000]}, "“Sentence” has 2,000 characters: only the first 1,000 are kept."),
        ({"foo": ["1"], "*b*": ["2"]}, "The link names what this page does not have: “foo”, “*b*”."),
    ],
)
def test_what_is_corrected_is_told_in_one_sentence(link: dict[str, list[str]], told: str) -> None:
    assert opened(link)[1] == [told]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("d_model", "34", 34),
        ("d_model", "34.0", 34),
        ("temperature", "0.3", 0.3),
        ("temperature", "0.30000000000000004", 0.3),
        ("scaling", "False", False),
        ("norm", "Pre-Norm", "pre-norm"),
        ("seed", "0042", 42),
        ("sentence", "dog bites man", "dog bites man"),
        ("sentence", "   ", "   "),
    ],
)
def test_a_legal_value_is_taken_without_a_word(name: str, text: str, value: object) -> None:
    settings, notes = opened({name: [text]})
    assert (settings.values[name], notes) == (value, [])


def test_a_slider_gives_exact_steps() -> None:
    slider = controls.slider("x", "x", 0.1, 5.0, step=0.1, default=1.0)
    assert [slider.nearest(0.1 + 0.1 * i, Settings()) for i in range(50)] == [round(0.1 * i, 1) for i in range(1, 51)]
    assert controls.slider("n", "n", 4, 13, step=2, default=4).nearest(13, Settings()) == 12  # 13 is no step of it


def test_a_link_speaks_for_the_names_it_holds_and_leaves_the_others() -> None:
    settings, notes = opened({"d_model": ["12"]}, chosen={"d_model": 20, "query": 4, "elsewhere": 1})
    assert (settings.d_model, settings.query, notes) == (12, 4, [])


def test_a_chosen_value_that_does_not_fit_is_told_but_not_forgotten() -> None:
    after, notes = read_link(CONTROLS, {}, {"d_model": 128, "heads": 3})
    assert after == {"d_model": 128, "heads": 3}
    assert notes == [
        "d_model 128 is outside 4 to 64: showing 64.",
        "3 heads do not divide d_model 64: showing 2.",
    ]


def test_a_leftover_of_another_page_is_no_mistake_of_the_link() -> None:
    assert opened({"elsewhere": ["1"]}, chosen={"elsewhere": 1})[1] == []


def test_heads_show_the_nearest_divisor_and_stay_chosen() -> None:
    shown = {d: resolve(CONTROLS, {"d_model": d, "heads": 4}) for d in (16, 18, 20, 22)}
    assert {d: settings.heads for d, settings in shown.items()} == {16: 4, 18: 3, 20: 4, 22: 2}
    assert write_link(CONTROLS, shown[18]) == {"d_model": "18", "heads": "4"}


def test_a_sentence_decides_the_length() -> None:
    settings, _ = opened({"sentence": ["dog bites man"], "query": ["9"]})
    assert (settings.tokens, settings.n_tokens, settings.seq_len, settings.query) == (("dog", "bites", "man"), 3, 3, 3)
    assert "seq_len" not in write_link(CONTROLS, settings)
    assert opened({"sentence": [" \t "]})[0].tokens == ()


def test_a_long_sentence_is_cut_and_counted() -> None:
    settings, _ = opened({"sentence": ["word " * 300]})
    assert len(settings.sentence) == MAX_SENTENCE
    assert len(settings.tokens) == 64


def test_what_is_kept_of_sentences_is_bounded() -> None:
    kept = control_kinds._tokens_of
    kept.cache_clear()
    for turn in range(20):
        assert control_kinds._tokenize(f"{turn} " * 10).tokens[0] == str(turn)
    control_kinds._tokenize("word " * 30_000)
    assert kept.cache_info().currsize == kept.cache_info().maxsize == 8
    assert kept.cache_info().misses == 20  # the last text was too long to be kept


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(AttributeError, match="no control named 'width'"):
        _ = resolve(CONTROLS, {}).width


def test_the_same_name_is_the_same_kind_of_control_on_every_page() -> None:
    kinds: dict[str, set[str]] = {}
    for entry in navigation.ENTRIES:
        at = open_page(entry.name)
        for widget in [*at.slider, *at.select_slider, *at.toggle, *at.number_input, *at.text_input, *at.button_group]:
            if widget.key:
                kinds.setdefault(widget.key, set()).add(widget.type)
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


# --- drawn ----------------------------------------------------------------------------------------------------------


def laboratory() -> None:
    """A small page, run in the place of the self-attention page."""
    import streamlit as st

    from ui import controls, navigation

    navigation.build()
    settings = controls.open_page(
        "self_attention",
        [
            "Sequence",
            controls.sentence(),
            controls.seq_len(2, 64, default=5),
            controls.d_model(4, 64, step=2, default=8),
            controls.heads(default=1),
            controls.choice_up_to("query", "Query token", high=lambda s: s.n_tokens, default=1, in_page=True),
            controls.switch("scaling", "Scaling", default=True),
            controls.seed(),
        ],
    )
    settings.draw("query")
    st.json(settings.values)


def enter(**link: str) -> AppTest:
    at = AppTest.from_function(laboratory, default_timeout=60)
    for parameter, text in link.items():
        at.query_params[parameter] = text
    return at.run()


def move_to(at: AppTest, page: str) -> AppTest:
    """As the menu does it: the other page, without a link."""
    at.query_params.clear()
    return at.switch_page(f"pages/{page}.py").run().run()  # twice: AppTest's link of the page before is put away late


def links(at: AppTest) -> dict[str, str]:
    return {name: texts[-1] if isinstance(texts, list) else texts for name, texts in at.query_params.items()}


def test_a_wrong_link_is_told_once_and_made_clean() -> None:
    at = enter(d_model="33", heads="7", nonsense="*a*")
    assert not at.exception
    assert links(at) == {"d_model": "34", "heads": "2"}
    assert at.text[0].value.splitlines() == [
        "d_model 33 is not a step of this slider: showing 34.",
        "7 heads do not divide d_model 34: showing 2.",
        "The link names what this page does not have: “nonsense”.",
    ]
    at.run()
    assert at.text  # still there: nothing was changed
    at.slider(key="d_model").set_value(16).run()
    assert not any("showing" in text.value for text in at.text)


def test_what_is_set_follows_to_the_other_page_and_back() -> None:
    at = open_page("recurrence")
    own_length = at.slider(key="seq_len").value
    at.slider(key="d_model").set_value(128).run()
    move_to(at, "self_attention")
    assert at.slider(key="d_model").value == 64
    assert at.slider(key="seq_len").value == 5  # not set: the page's own
    assert "d_model 128 is outside 2 to 64: showing 64." in [text.value for text in at.text]
    assert links(at) == {"d_model": "64"}
    at.number_input(key="seed").set_value(7).run()
    move_to(at, "recurrence")
    assert at.slider(key="d_model").value == 128
    assert at.slider(key="seq_len").value == own_length
    assert links(at) == {"d_model": "128", "seed": "7"}
    assert not at.exception


def test_heads_give_way_and_come_back() -> None:
    at = enter(d_model="16", heads="4")
    seen = []
    for d_model in (18, 20, 22, 24):
        at.slider(key="d_model").set_value(d_model).run()
        seen.append(control(at, "heads").value)
        assert ("4 heads do not divide" in "".join(caption.value for caption in at.caption)) == (seen[-1] != 4)
    assert seen == [3, 4, 2, 4]
    assert not at.exception


def test_the_query_follows_the_length() -> None:
    at = enter(seq_len="10", query="9")
    at.slider(key="seq_len").set_value(3).run()
    assert control(at, "query").value == 3
    at.text_input(key="sentence").set_value("one").run()
    assert [slider.key for slider in at.select_slider] == ["heads"]  # nothing to choose from
    assert {"Query token: 1", "Sequence length: 1, from the sentence"} <= {text.value for text in at.text}
    at.text_input(key="sentence").set_value("").run()
    at.slider(key="seq_len").set_value(10).run()
    assert control(at, "query").value == 9
    assert not at.exception


def button(at: AppTest, label: str) -> Any:
    return next(button for button in at.button if button.label == label)


def test_the_lesson_example_brings_the_pages_own_values_back() -> None:
    at = enter(d_model="16", heads="4", seed="3", sentence="dog bites man", scaling="false", query="2")
    button(at, "Lesson example").click().run()
    assert links(at) == {}
    assert at.text_input(key="sentence").value == ""
    assert (at.slider(key="d_model").value, control(at, "heads").value) == (8, 1)
    assert control(at, "query").value == 1
    assert at.toggle(key="scaling").value is True


@pytest.mark.parametrize(("before", "after"), [("0", 1), ("41", 42), ("9999", 0)])
def test_new_weights_take_the_next_seed(before: str, after: int) -> None:
    at = enter(seed=before)
    button(at, "New weights").click().run()
    assert at.number_input(key="seed").value == after
    assert links(at) == ({"seed": str(after)} if after else {})


def test_tokens_left_out_are_counted() -> None:
    at = enter(sentence="a " * 70)
    assert "The first 64 tokens are used; 6 are left out." in [caption.value for caption in at.caption]
    at.text_input(key="sentence").set_value("word " * 20_000).run()
    assert not at.exception
    assert at.text_input(key="sentence").value == ("word " * 200)
    assert "“Sentence” has 100,000 characters: only the first 1,000 are kept." in [c.value for c in at.caption]


# --- the pages ------------------------------------------------------------------------------------------------------


def test_neighbours() -> None:
    names = [entry.name for entry in navigation.ENTRIES]
    assert [before.name if before else None for before, _ in map(navigation.neighbours, names)] == [None, *names[:-1]]
    assert [after.name if after else None for _, after in map(navigation.neighbours, names)] == [*names[1:], None]
    with pytest.raises(ValueError, match="no page named 'nowhere'"):
        navigation.neighbours("nowhere")
