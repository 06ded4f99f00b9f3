"""What a link says beside the settings: presenting, and what of the controls is locked or hidden."""

import random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests.asking import random_settings, random_value
from tests.pages.charts import cells, control, open_page, specs, texts
from ui import take_away_files as files
from ui.handout import Handout, only_here, read, write
from ui.link import read_link, resolve, shown_link
from ui.page_controls import CONTROLS, STAGES, declared

NAMES = ("d_model", "seed", "temperature")


@pytest.mark.parametrize(
    "handout", [Handout(), Handout(3), Handout(0, False), Handout(1, True, ("seed", "d_model"), ("temperature",))]
)
def test_what_is_written_is_read_again(handout: Handout) -> None:
    link = {name: [text] for name, text in write(handout).items()}
    assert read(link, NAMES, Handout()) == (handout, [])


@pytest.mark.parametrize(
    ("link", "after", "said"),
    [
        ({"present": ["yes"]}, Handout(), "present “yes” is not the number of a section: showing the whole page."),
        ({"present": ["-1"]}, Handout(), "present “-1” is not the number of a section: showing the whole page."),
        ({"questions": ["no"]}, Handout(), "questions “no” is neither 0 nor 1: showing them."),
        (
            {"lock": ["seed,<b>"]},
            Handout(locked=("seed",)),
            "The link locks or hides what this page does not have: “<b>”.",
        ),
    ],
)
def test_what_cannot_be_done_is_said(link: dict[str, list[str]], after: Handout, said: str) -> None:
    assert read(link, NAMES, Handout()) == (after, [said])


def test_a_link_leaves_what_it_does_not_name() -> None:
    before = Handout(1, False, ("seed",), ("d_model",))
    assert read({}, NAMES, before) == (before, [])
    assert read({"hide": ["seed"], "lock": ["seed"]}, NAMES, before)[0] == Handout(1, False, (), ("seed",))


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost:8501", True),
        ("127.0.0.1", True),
        ("[::1]:8501", True),
        ("0.0.0.0:8501", True),
        ("192.168.0.7:8501", False),
        ("transformer-live.streamlit.app", False),
        ("localhost.example.org", False),
    ],
)
def test_a_link_that_works_on_one_computer_only_says_so(host: str, here: bool) -> None:
    said = only_here(f"http://{host}/self_attention?seed=3")
    assert said.startswith("This link works on this computer only") is here
    assert bool(said) is here
    assert not only_here("/self_attention")


# Locked and hidden controls


def names_of_widgets(at: AppTest) -> set[str]:
    widgets = [*at.slider, *at.select_slider, *at.toggle, *at.button_group, *at.number_input, *at.text_input]
    return {widget.key.split()[0] for widget in widgets if widget.key}


def go_to(at: AppTest, page: str) -> None:
    """To another page by the menu, whose links have no settings."""
    at.switch_page(f"pages/{page}.py")
    at.query_params.clear()
    at.run()


def buttons(at: AppTest) -> list[str]:
    return [button.label for button in at.button]


def test_locked_controls_show_their_value_and_hidden_ones_are_gone() -> None:
    at = open_page("self_attention", lock="d_model,query", hide="seed", d_model="8", query="2", seed="3")
    assert "Model width d_model: 8 (locked)" in texts(at)
    assert "Query token: 2 (locked)" in texts(at)
    assert not {"d_model", "query", "seed"} & names_of_widgets(at)
    assert "New weights" not in buttons(at)
    free = open_page("self_attention", d_model="8", query="2", seed="3")
    assert (cells(at, "map") == cells(free, "map")).all()
    assert at.query_params["lock"] == "d_model,query"
    assert at.query_params["hide"] == "seed"


def test_nothing_moves_a_locked_control() -> None:
    at = open_page("self_attention", lock="d_model,stage", d_model="8", stage="scores")
    assert not any("√d_k at d_model 64" in label for label in buttons(at))  # that experiment would set it
    assert at.button(key="self_attention_next").disabled
    next(button for button in at.button if button.label == "Lesson example").click().run()
    assert "Model width d_model: 8 (locked)" in texts(at)
    go_to(at, "recurrence")
    at.slider(key="d_model").set_value(32).run()  # free on another page
    go_to(at, "self_attention")
    assert "Model width d_model: 8 (locked)" in texts(at)
    assert cells(at, "stage_scores").shape == (5, 5)
    assert at.query_params["lock"] == "d_model,stage"
    go_to(at, "recurrence")
    assert at.slider(key="d_model").value == 32


def test_a_locked_control_that_finds_no_room_says_so_and_comes_back() -> None:
    at = open_page("multi_head_attention", lock="heads", heads="5", d_model="10")
    at.slider(key="d_model").set_value(14).run()
    assert "Attention heads: 7 (locked)" in texts(at)
    assert "5 heads do not divide d_model 14: showing 7." in texts(at)
    at.slider(key="d_model").set_value(20).run()
    assert "Attention heads: 5 (locked)" in texts(at)
    assert "do not divide" not in texts(at)


def test_a_page_that_was_handed_out_is_handed_on_with_its_locks() -> None:
    at = open_page("self_attention", lock="d_model", hide="seed", d_model="8")
    assert "Hand this page out" not in [link.proto.label for link in at.get("page_link")]
    go_to(at, "hand_out")
    assert at.multiselect(key="hand_out_locked_self_attention").value == ["d_model"]
    assert "lock=d_model&hide=seed" in at.code[0].value


def test_a_locked_sentence_is_shown_as_typed() -> None:
    at = open_page("self_attention", lock="sentence", sentence="<b>a</b> $x$ *y*")
    assert "Sentence: <b>a</b> $x$ *y* (locked)" in [text.value for text in at.text]


# Presenting


def headings(at: AppTest) -> list[str]:
    return [header.value for header in at.header]


def press(at: AppTest, label: str) -> None:
    next(button for button in at.button if button.label == label).click().run()
    assert not at.exception


def test_presenting_shows_one_section_after_the_other_and_walks_through_stages() -> None:
    at = open_page("self_attention", questions="0")
    whole = headings(at)
    press(at, "Present")
    seen, stages = [], []
    for _ in range(30):
        assert len(headings(at)) <= 1
        seen += headings(at)
        if headings(at) == ["The way there, stage by stage"]:
            stages.append(control(at, "stage").value)
        following = next(button for button in at.button if button.label == "Next")
        if following.disabled:
            break
        following.click().run()
    assert list(dict.fromkeys(seen)) == whole
    assert tuple(stages) == STAGES[:-1]
    assert at.query_params["present"] == "4"
    press(at, "Previous")
    assert control(at, "stage").value == "output"
    press(at, "Whole page")
    assert headings(at) == whole
    assert "present" not in at.query_params


@pytest.mark.parametrize(
    "page",
    [
        "recurrence",
        "self_attention",
        "positional_encoding",
        "multi_head_attention",
        "transformer_block",
        "training_lab",
    ],
)
def test_every_section_of_every_page_can_be_presented_alone(page: str) -> None:
    at = open_page(page)
    whole, figures = headings(at), len(specs(at))
    press(at, "Present")
    seen, drawn = headings(at), len(specs(at))
    while not next(button for button in at.button if button.label == "Next").disabled:
        press(at, "Next")
        seen += headings(at)
        drawn += len(specs(at))
    assert list(dict.fromkeys(seen)) == whole
    assert drawn >= figures


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("positional_encoding", {"scheme": "rope", "permutation": "shuffled", "causal": "true", "pair": "2"}),
        ("multi_head_attention", {"head": "2", "off": "1"}),
        ("transformer_block", {"blocks": "2", "block": "2", "layer_norm": "second", "compare": "true"}),
    ],
)
def test_what_a_section_sets_stays_in_the_link_while_another_is_presented(page: str, link: dict[str, str]) -> None:
    at = open_page(page, present="1", **link)
    while not next(button for button in at.button if button.label == "Next").disabled:
        press(at, "Next")
        assert {name: at.query_params.get(name) for name in link} == link
    press(at, "Whole page")
    assert at.query_params == link


def test_a_control_that_has_no_place_for_now_stays_in_the_link() -> None:
    at = open_page("positional_encoding", seq_len="6", causal="true")
    at.text_input(key="sentence").set_value("hello").run()
    assert "One token has only one order." in texts(at)
    assert at.query_params["causal"] == "true"


def test_a_section_that_is_not_there_is_the_last_one() -> None:
    at = open_page("recurrence", present="70", questions="0")
    assert headings(at) == ["What to notice"]
    assert at.query_params["present"] == "5"


def test_presenting_goes_on_on_the_next_page_from_its_beginning() -> None:
    at = open_page("recurrence", present="3")
    go_to(at, "self_attention")
    assert headings(at) == []
    assert at.query_params["present"] == "1"


def sizes(part: object, inside: str = "") -> list[float]:
    """Every size of type in a part of a figure."""
    if isinstance(part, dict):
        return [size for name, value in part.items() for size in sizes(value, f"{inside}.{name}")]
    if isinstance(part, list):
        return [size for each in part for size in sizes(each, inside)]
    return [float(part)] if inside.endswith("font.size") and isinstance(part, (int, float)) else []


def test_a_presented_figure_has_the_same_numbers_in_larger_type() -> None:
    page, presented = open_page("self_attention"), open_page("self_attention", present="1")
    assert (cells(page, "map") == cells(presented, "map")).all()
    assert min(sizes(specs(presented)["map"])) >= 18


# The page that makes the link


def test_a_link_that_is_handed_out_opens_as_it_says() -> None:
    at = open_page("self_attention", d_model="12", sentence="the cat sat")
    at.switch_page("pages/hand_out.py")
    at.query_params["page"] = "Self-attention"
    at.run()
    at.multiselect(key="hand_out_locked_self_attention").set_value(["d_model", "sentence"]).run()
    at.multiselect(key="hand_out_hidden_self_attention").set_value(["seed"]).run()
    at.toggle(key="hand_out_questions").set_value(False).run()
    at.toggle(key="hand_out_present").set_value(True).run()
    assert not at.exception
    assert "Model width d_model: 12 (locked)" in texts(at)
    address = urlsplit(at.code[0].value)
    assert address.path.endswith("/self_attention")
    link = dict(parse_qsl(address.query))
    assert link == {
        "sentence": "the cat sat",
        "d_model": "12",
        "present": "1",
        "questions": "0",
        "lock": "sentence,d_model",
        "hide": "seed",
    } | {"lock": link["lock"]}
    assert set(link["lock"].split(",")) == {"sentence", "d_model"}
    opened = open_page("self_attention", **link)
    assert dict(opened.query_params) == link
    assert not {"d_model", "sentence", "seed"} & names_of_widgets(opened)


@pytest.mark.parametrize(("host", "here"), [("localhost:8501", True), ("192.168.0.7:8501", False)])
def test_the_page_says_where_its_link_works(monkeypatch: pytest.MonkeyPatch, host: str, here: bool) -> None:
    written = files.url
    monkeypatch.setattr(files, "url", lambda base, link: written(f"http://{host}{base}", link))
    at = open_page("hand_out", page="Self-attention")
    assert at.code[0].value == f"http://{host}/self_attention"
    assert ("This link works on this computer only" in texts(at)) is here


def test_a_link_that_is_given_away_holds_what_is_shown() -> None:
    at = open_page("transformer_block", heads="4", d_model="20")
    at.slider(key="d_model").set_value(18).run()
    assert "4 heads do not divide d_model 18: showing 3." in texts(at)
    assert at.query_params["heads"] == "4"  # the page itself remembers what was chosen
    at.session_state["take_away"] = True
    at.run()
    assert dict(parse_qsl(urlsplit(at.code[0].value).query)) == {"heads": "3", "d_model": "18"}
    assert "transformer_block_diagram_d_model-18_heads-3" in at.get("plotly_chart")[0].proto.config
    at.switch_page("pages/hand_out.py")
    at.query_params["page"] = "Transformer block"
    at.run()
    link = dict(parse_qsl(urlsplit(at.code[0].value).query))
    assert link == {"heads": "3", "d_model": "18"}
    assert "showing" not in texts(open_page("transformer_block", **link))


@pytest.mark.parametrize("page", CONTROLS)
def test_whatever_was_chosen_a_link_that_is_given_away_opens_without_a_complaint(page: str) -> None:
    controls, rng = declared(page), random.Random(page)
    for _ in range(50):
        chosen: dict[str, Any] = {}
        for each in controls:  # legal when it was chosen, before another one moved on
            chosen[each.name] = random_value(each, rng, random_settings(page, rng))
        shown = resolve(controls, chosen)
        link = {name: [text] for name, text in shown_link(controls, shown).items()}
        opened, notes = read_link(controls, link, {})
        assert notes == []
        assert resolve(controls, opened).values == shown.values


def test_what_is_locked_cannot_be_hidden_too_and_the_teachers_own_page_is_free() -> None:
    at = open_page("hand_out", page="Transformer block")
    at.multiselect(key="hand_out_locked_transformer_block").set_value(["blocks"]).run()
    assert "Stacked blocks" not in at.multiselect(key="hand_out_hidden_transformer_block").options
    go_to(at, "transformer_block")
    assert "blocks" in names_of_widgets(at)
