"""The page on multi-head attention, and the control that switches heads off."""

import re
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import attention, draws, multi_head, trained, training
from tests.pages.charts import array, cells, control, open_page, specs, texts
from ui import controls, multi_head_figures, multi_head_words
from ui.link import read_link, resolve, write_link

PAGE, BUILT = "multi_head_attention", "built by hand"


def tiles(at: AppTest, heads: int, n: int) -> np.ndarray:
    """(heads, n, n): the maps in the picture of all heads, the empty cells between them left out.

    Where there are many cells their colours come as bytes: the weight that each stands for.
    """
    grid = cells(at, "all_heads")
    if grid.size > 90_000:
        assert grid.dtype == np.uint8
        grid = np.where(grid > 0, (grid - 1.0) / 254 * colour_end(at), np.nan)
    else:
        assert grid.dtype == np.float32
    rows, columns = (np.flatnonzero(~np.isnan(grid).all(axis=axis)).reshape(-1, n) for axis in (1, 0))
    assert (np.diff(rows) == 1).all()
    assert (np.diff(columns) == 1).all()
    assert (rows[1:, 0] > rows[:-1, -1] + 1).all()  # no map touches the next one
    assert (columns[1:, 0] > columns[:-1, -1] + 1).all()
    found = grid[np.ix_(rows.ravel(), columns.ravel())].reshape(len(rows), n, len(columns), n).swapaxes(1, 2)
    maps = found.reshape(-1, n, n)
    assert np.isnan(maps[heads:]).all()
    return maps[:heads]


def colour_end(at: AppTest) -> float:
    """The weight at which the colours of all maps end."""
    return specs(at)["one_head"]["layout"]["coloraxis"]["cmax"]


def random_layer(n: int, d_model: int, heads: int, *, seed: int = 0, scale: float = 0.3) -> multi_head.Layer:
    x = draws.tokens(n, d_model, seed)
    return multi_head.random_heads(x, draws.attention_weights(d_model, seed, scale), heads)


# --- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d_model", "heads"), [(6, 8, 2), (2, 4, 1), (5, 20, 5), (7, 62, 31), (20, 16, 8), (64, 64, 64)]
)
def test_pictures_carry_the_numbers_of_core(n: int, d_model: int, heads: int) -> None:
    at = open_page(PAGE, seq_len=str(n), d_model=str(d_model), heads=str(heads), head=str(heads), off="1")
    assert not at.exception
    layer = random_layer(n, d_model, heads)
    result = multi_head.attend(layer)
    weights = result.heads.weights
    exact = heads < 64
    np.testing.assert_allclose(tiles(at, heads, n), weights, atol=1e-6 if exact else colour_end(at) / 254 / 2 + 1e-6)
    assert exact or specs(at)["all_heads"]["data"][0]["hoverinfo"] == "skip"  # no number that is not exact
    np.testing.assert_allclose(cells(at, "one_head"), weights[-1], atol=1e-6)
    np.testing.assert_allclose(cells(at, "mean_of_heads"), weights.mean(axis=0), atol=1e-6)

    keep = [head > 0 for head in range(heads)]
    without = multi_head.multi_head_attention(layer.x, layer.w_q, layer.w_k, layer.w_v, layer.w_o, heads, keep=keep)
    change = without.output - result.output
    np.testing.assert_allclose(cells(at, "change_of_output"), change, atol=1e-5)
    lengths = [array(trace["x"]) for trace in specs(at)["change_lengths"]["data"]]
    np.testing.assert_allclose(lengths[0], np.linalg.norm(result.output, axis=1), rtol=1e-5)
    np.testing.assert_allclose(lengths[1], np.linalg.norm(change, axis=1), rtol=1e-5)

    bars = [array(trace["y"]) for trace in specs(at)["head_statistics"]["data"] if trace["type"] == "bar"]
    np.testing.assert_allclose(bars[0], attention.entropy(weights).mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(bars[2], np.einsum("hii->h", weights) / n, rtol=1e-5)
    np.testing.assert_allclose(bars[4], weights[:, :, 0].mean(axis=1), rtol=1e-5)


def test_all_maps_have_one_colour_scale() -> None:
    charts = specs(open_page(PAGE, seq_len="64", weight_scale="0.1"))
    ends = {charts[key]["layout"]["coloraxis"]["cmax"] for key in ("all_heads", "one_head", "mean_of_heads")}
    assert len(ends) == 1
    assert ends.pop() < 1  # small weights can be told apart


def test_colours_of_many_cells_are_those_of_few() -> None:
    shares = np.linspace(0, 0.5, 11)
    few, many = (
        multi_head_figures.head_grid(
            np.resize(shares, (heads, 64, 64)), [""] * heads, [""] * 64, chosen=0, limit=0.5
        ).layout.coloraxis
        for heads in (1, 64)
    )
    assert few.colorbar.title == many.colorbar.title
    written = {float(text): byte for byte, text in zip(many.colorbar.tickvals, many.colorbar.ticktext, strict=True)}
    assert written == pytest.approx({share: 1 + 254 * share / 0.5 for share in (0, 0.1, 0.2, 0.3, 0.4, 0.5)})
    for (share, colour), (place, same) in zip(few.colorscale, many.colorscale[3:], strict=True):
        assert same == colour
        assert place * 255 == pytest.approx(1 + 254 * share)
    assert many.colorscale[0] == (0, "rgba(0,0,0,0)")


@pytest.mark.parametrize("heads", [1, 4, 5, 16, 31, 64])
def test_every_map_stands_in_its_own_place(heads: int) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=(heads, 3))
    names = [f"head {i}" for i in range(1, heads + 1)]
    figure = multi_head_figures.head_grid(weights, names, ["a", "b", "c"], chosen=heads - 1, limit=1.0)
    grid, titles = figure.data
    rows, columns = len(grid.y) // 4, len(grid.x) // 4
    assert rows * columns >= heads
    assert list(titles.text) == names
    assert (np.diff(grid.x) > 0).all()
    assert (np.diff(grid.y) > 0).all()
    for head, (x, y) in enumerate(zip(titles.x, titles.y, strict=True)):
        row, column = divmod(head, columns)
        assert (int(x), int(y)) == (column, row)
        assert column < grid.x[column * 4] < grid.x[column * 4 + 3] < column + 1
        assert y < grid.y[row * 4] < grid.y[row * 4 + 3] < row + 1  # the title is above the map
        np.testing.assert_array_equal(grid.customdata[row * 4 + 2, column * 4 + 1], [head + 1, 3, 2])
        assert grid.z[row * 4 + 2, column * 4 + 1] == np.float32(weights[head, 2, 1])
    low, high = figure.layout.yaxis.range
    assert low > high == 0  # the first query is at the top
    frame = figure.layout.shapes[0]
    assert max(row + 1, frame.y1) < low  # nothing is cut
    assert frame.x0 < titles.x[-1] < frame.x1
    assert titles.y[-1] < frame.y0 < frame.y1


def test_causal_mask_reaches_every_picture() -> None:
    at = open_page(PAGE, causal="true")
    assert (np.triu(cells(at, "one_head"), 1) == 0).all()
    assert (np.triu(cells(at, "mean_of_heads"), 1) == 0).all()
    assert (np.triu(tiles(at, 2, 6), 1) == 0).all()
    reference = [trace["y"][0] for trace in specs(at)["head_statistics"]["data"] if trace["type"] == "scatter"]
    assert reference[2] == pytest.approx(np.mean(1 / np.arange(1, 7)))  # alike over what may be seen
    assert reference[3] == pytest.approx(np.mean(1 / np.arange(2, 7)))


# --- heads built by hand ---------------------------------------------------------------------------------------------


def test_built_heads_say_what_they_do() -> None:
    at = open_page(PAGE, heads_from=BUILT, d_model="16", off="3")
    shown, weights = texts(at), tiles(at, 3, 6)
    found = multi_head.head_statistics(weights.astype(float))
    assert f"Head 1 puts {found.on_previous[0]:.2f} of its weight on the previous token" in shown
    assert f"Head 2 puts {found.on_first[1]:.2f} of its weight on the first token, 1 “the”." in shown
    assert "“the” stands 2 times" in shown
    assert "the cat saw the dog and" in shown  # the example sentence, which nobody typed
    assert "built by hand, not learned" in shown.lower()
    assert "who looks at whom means nothing" not in shown
    assert specs(at)["all_heads"]["data"][1]["text"] == [
        "head 1<br>previous token",
        "head 2<br>first token",
        "head 3, off<br>same word",
    ]
    assert not [slider for slider in at.select_slider if slider.key == "heads"]  # three, and not to be chosen


def test_same_word_head_without_a_repeated_word() -> None:
    shown = texts(open_page(PAGE, heads_from=BUILT, sentence="dog bites man"))
    assert "No word comes twice here, so all that head 3 can find is the token itself" in shown
    assert "times." not in shown  # a word that “stands 4 times.”


def test_few_dimensions_are_explained() -> None:
    shown = texts(open_page(PAGE, heads_from=BUILT, d_model="4", seq_len="64"))
    assert "only 1 sine-cosine pair, so some distant places look alike" in shown
    assert "look alike" not in texts(open_page(PAGE, heads_from=BUILT, d_model="32", seq_len="64"))


def test_random_heads_claim_no_meaning() -> None:
    shown = texts(open_page(PAGE))
    assert "Random weights" in shown
    assert "of its weight on the previous token" not in shown


# --- findings --------------------------------------------------------------------------------------------------------


def test_finding_of_the_switched_off_head() -> None:
    shown = texts(open_page(PAGE, off="2"))
    layer = random_layer(6, 8, 2)
    found = multi_head.switch_off(multi_head.attend(layer), layer.w_o, [True, False])
    most = int(found.sizes.argmax())
    after = np.linalg.norm(found.output[most])
    assert f"Without head 2 the output changes most at token {most + 1}: " in shown
    assert f"the change has length {found.sizes[most]:.2f}. The output of token {most + 1} had length" in shown
    assert f"{found.full_sizes[most]:.2f} with all heads and has {after:.2f} now" in shown


def test_all_heads_off_and_none() -> None:
    at = open_page(PAGE, off="1,2")
    assert "All heads are off: nothing is left to project, and the output is 0 at every token." in texts(at)
    result = multi_head.attend(random_layer(6, 8, 2))
    np.testing.assert_allclose(cells(at, "change_of_output"), -result.output, atol=1e-6)
    assert "All heads are on, so nothing changes." in texts(open_page(PAGE))
    assert "change_of_output" not in specs(open_page(PAGE))


def test_mean_says_how_near_the_nearest_head_is() -> None:
    found = multi_head.mean_of_heads(multi_head.attend(random_layer(6, 8, 4)).heads.weights)
    nearest = int(found.distances.argmin())
    shown = texts(open_page(PAGE, heads="4"))
    assert (
        f"The nearest is head {nearest + 1}, and even there, {found.distances[nearest]:.0%} of a row's weight, on "
        "average, would have to move to other tokens to make it the mean." in shown
    )
    assert "There is one head, so the mean is that head's own map." in texts(open_page(PAGE, heads="1"))
    assert "All heads have the same map here" in texts(open_page(PAGE, sentence="dog"))


def test_two_heads_are_equally_far_from_their_mean() -> None:
    shown = texts(open_page(PAGE))
    assert "No head has this map. It lies halfway between the two: in each," in shown
    assert "nearest is" not in shown


def test_of_two_heads_one_looks_further_and_of_more_one_looks_furthest() -> None:
    two, four = (texts(open_page(PAGE, heads=heads)) for heads in ("2", "4"))
    assert re.search(r"Head \d looks nearer, .* and head \d further, ", two)
    assert re.search(r"Head \d looks nearest, .* and head \d furthest, ", four)


def test_a_head_that_has_the_mean_by_coincidence() -> None:
    even, left, right = np.full((2, 2), 0.5), np.array([[0.75, 0.25]] * 2), np.array([[0.25, 0.75]] * 2)
    said = multi_head_words.mean_finding(multi_head.mean_of_heads(np.stack([even, left, right])), ["a", "b", "c"])
    assert said == (
        "Only by coincidence does a head have this map: a. "
        "In b, 25% of a row's weight, on average, would have to move to other tokens to make it the mean."
    )


def test_one_head_is_not_called_several() -> None:
    shown = texts(open_page(PAGE, heads="1"))
    assert "One head takes all 8 columns of Q, K and V" in shown
    assert "without seeing each other" not in shown
    assert multi_head_words.heads_in_a_row(2) == r"\text{head}_{1}, \text{head}_{2}"
    assert multi_head_words.heads_in_a_row(5) == r"\text{head}_{1}, \dots, \text{head}_{5}"


def test_several_largest_weights_are_counted() -> None:
    maps = np.array([[[1.0, 0.0], [0.3, 0.7]], [[0.0, 1.0], [0.4, 0.6]]])
    said = multi_head_words.largest_weight(maps, ["head 1", "head 2"], ["1 a", "2 b"])
    assert said == (
        "The largest weight of all maps, 1.00, stands in 2 cells. One is in head 1: token 1 “a” looks at token 1 “a”."
    )
    near = np.array([[[0.314, 0.686], [0.312, 0.688]]])
    assert multi_head_words.largest_weight(near, ["head 1"], ["1 a", "2 b"]) == (
        "The largest weight of the map is in head 1: token 2 “b” looks at token 2 “b” with 0.69."
    )
    three_are_seen = np.array([[[0.7, 0.3], [0.699, 0.301]], [[0.5, 0.5], [0.3, 0.7]]])
    said = multi_head_words.largest_weight(three_are_seen, ["head 1", "head 2"], ["1 a", "2 b"])
    assert "0.70, stands in 2 cells, and after rounding in 1 more. One is in head 1:" in said


def test_distance_finding_where_heads_agree() -> None:
    maps = np.full((3, 2, 2), 0.5)
    names = multi_head_words.head_labels(("", "", ""))
    said = multi_head_words.distance_finding(multi_head.head_statistics(maps), names)
    assert said == "All heads look as far, to two digits: 0.50 tokens away on average."


def test_parameters_do_not_depend_on_the_number_of_heads() -> None:
    tables = [table.value for table in open_page(PAGE, d_model="12").dataframe]
    found = next(table for table in tables if "heads" in table.columns)
    assert found["heads"].tolist() == [1, 2, 3, 4, 6, 12]
    assert set(found["parameters of all heads"]) == {4 * 12 * 12}
    assert (found["heads"] * found["parameters of one head"] == 4 * 12 * 12).all()


def test_shape_table_follows_the_sizes() -> None:
    table = open_page(PAGE, seq_len="9", d_model="12", heads="3").table[0].value
    assert table["Shape"].tolist() == ["9 × 12", "9 × 12", "3 × 9 × 4", "3 × 9 × 9", "3 × 9 × 4", "9 × 12", "9 × 12"]
    built = open_page(PAGE, seq_len="9", d_model="12", heads_from=BUILT).table[0].value
    assert built["Shape"].tolist() == ["9 × 12", "9 × 18", "3 × 9 × 6", "3 × 9 × 9", "3 × 9 × 6", "9 × 18", "9 × 12"]


# --- trained heads ---------------------------------------------------------------------------------------------------

TRAINED = {"heads_from": "trained"}


def test_trained_heads_are_those_of_the_shipped_model() -> None:
    at = open_page(PAGE, **TRAINED, letters="abc def ghi jkl", mark="5", head="2")
    settings, parameters = trained.load("two questions at once")
    trace = trained.trace(parameters, settings, range(12), 4)
    expected = multi_head.attend(trace.layers[0], trace.allowed).heads.weights
    np.testing.assert_allclose(cells(at, "one_head"), expected[1], atol=1e-6)
    assert specs(at)["one_head"]["layout"]["xaxis"]["ticktext"][3:5] == ["4 D", "5 E ◆"]
    table = next(frame.value for frame in at.dataframe if frame.proto.alt == "The model's answers")
    assert table.loc["“marked”"].tolist() == ["E"] * 12
    assert table.loc["“previous”"].tolist() == ["", *"ABCDEFGHIJK"]
    assert "Right answers: 11 of 11 “previous”, 12 of 12 “marked”." in texts(at)


def test_trained_heads_say_what_each_of_them_looks_at() -> None:
    shown = texts(open_page(PAGE, **TRAINED))
    assert "Trained: 400 steps of learning" in shown
    assert "Random weights" not in shown
    assert "of its weight on the marked letter; head 2 puts 0." in shown
    assert "of its weight on the previous letter." in shown


def test_answers_without_a_trained_head_are_those_of_the_silenced_model() -> None:
    shown = texts(open_page(PAGE, **TRAINED, off="1"))
    settings, parameters = trained.load("two questions at once")
    letters, width = training.examples(settings).letters[0], settings.d_model // settings.heads
    parameters["0.w_o"][:width] = 0  # head 1 looks at the mark
    trace = trained.trace(parameters, settings, letters.tolist(), 5)
    marked = int((trace.answers == trace.expected)[:, 1].sum())
    assert marked < 12
    assert f"Right answers without head 1: {(trace.answers == trace.expected)[1:, 0].sum()} of 11 “previous”," in shown
    assert f", {marked} of 12 “marked”." in shown
    assert shown.count("Right answers without head 1") == 2  # beside the switch too
    assert "Right answers: 11 of 11 “previous”, 12 of 12 “marked”." in texts(open_page(PAGE, **TRAINED))


def test_a_trained_model_has_its_own_alphabet_sizes_and_seed() -> None:
    at = open_page(PAGE, **TRAINED)
    assert {slider.key for slider in at.slider} == {"example", "mark"}
    assert [box.key for box in at.text_input] == ["letters"]
    assert not at.number_input
    assert "New weights" not in [button.label for button in at.button]


def test_letters_that_the_model_does_not_know_are_answered_with_one_sentence_and_kept() -> None:
    at = open_page(PAGE, **TRAINED, letters="<b>x $y$")
    assert not at.exception
    assert at.text_input(key="letters").value == "<b>x $y$"
    message = "“<b>x $y$” cannot be read by this model: it reads 12 letters from A to L. An example is shown instead."
    assert message in [text.value for text in at.text]
    np.testing.assert_array_equal(cells(at, "one_head"), cells(open_page(PAGE, **TRAINED), "one_head"))


def test_the_induction_model_has_two_layers_and_sees_nothing_ahead() -> None:
    at = open_page(PAGE, **TRAINED, model="induction", layer="2", letters="abcdefghijklabcd")
    assert not at.exception
    weights = cells(at, "one_head")
    assert weights.shape == (16, 16)
    assert not np.triu(weights, 1).any()
    # where a letter comes back, its head looks at the letter that followed it the first time
    assert [int(row.argmax()) for row in weights[12:]] == [1, 2, 3, 4]
    assert "The head of layer 2 puts" in texts(at)
    assert "Right answers: 4 of 4 “after the last time”." in texts(at)


# --- settings --------------------------------------------------------------------------------------------------------

ODD_SETTINGS: list[dict[str, str]] = [
    {"sentence": "dog"},
    {"sentence": "dog", "heads_from": BUILT, "causal": "true"},
    {"sentence": "dog dog", "heads_from": BUILT, "d_model": "4", "off": "1,2,3"},
    {"seq_len": "2", "d_model": "4", "heads": "4", "causal": "true"},
    {"seq_len": "64", "heads_from": BUILT, "d_model": "10"},
    {"sentence": "<b>x</b> $x$ *a* :red[x] [MASK]", "heads_from": BUILT},
    {"sentence": "word " * 70, "heads_from": BUILT},
]


@pytest.mark.parametrize("link", ODD_SETTINGS, ids=str)
def test_odd_settings(link: dict[str, str]) -> None:
    at = open_page(PAGE, **link)
    assert not at.exception
    assert np.isfinite(cells(at, "one_head")).all()
    assert " nan" not in texts(at)


def test_markup_is_shown_as_typed() -> None:
    at = open_page(PAGE, sentence="<b>x</b>", heads_from=BUILT)
    assert "1 &lt;" in specs(at)["one_head"]["data"][0]["x"]
    assert any("1 “<”" in element.value for element in at.text)


def test_heads_off_stay_legal_and_are_remembered() -> None:
    at = open_page(PAGE, heads="8", off="2,7")
    assert control(at, "off").value == [2, 7]
    control(at, "heads").set_value(4).run()
    assert control(at, "off").value == [2]
    assert "off “7” is none of 1 to 4: showing 2." in texts(at)
    control(at, "heads").set_value(8).run()
    assert control(at, "off").value == [2, 7]
    control(at, "off").set_value([7, 1]).run()
    assert "Without head 1 and head 7" in texts(at)
    control(at, "off").set_value([]).run()
    assert "All heads are on" in texts(at)
    assert not at.exception


# --- the control -----------------------------------------------------------------------------------------------------

FLAGS = [
    controls.slider("n", "n", 1, 9, step=1, default=4),
    controls.flags("off", "Off", high=lambda s: s.n),
]


def open_link(**link: list[str]) -> tuple[Any, list[str]]:
    chosen, notes = read_link(FLAGS, link, {})
    return resolve(FLAGS, chosen).off, notes


def test_flags_are_read_together_or_one_by_one() -> None:
    assert open_link(off=["2", "4"]) == ((2, 4), [])
    assert open_link(off=["2,4"]) == ((2, 4), [])
    assert open_link(off=[""]) == ((), [])
    assert open_link() == ((), [])


def test_flags_that_cannot_be_shown_are_told() -> None:
    assert open_link(off=["2,7"]) == ((2,), ["off “7” is none of 1 to 4: showing 2."])
    assert open_link(off=["0"]) == ((), ["off “0” is none of 1 to 4: showing none."])
    assert open_link(off=["1e999", "2.5", "3"]) == ((3,), ["off “inf, 2.5” is none of 1 to 4: showing 3."])
    assert open_link(off=["2", "2"]) == ((2,), ["off names a number twice: showing 2."])
    assert open_link(off=["2", "x"]) == ((2,), ["off “x” is none of 1 to 4: showing 2."])


def test_flags_are_written_with_commas() -> None:
    assert write_link(FLAGS, resolve(FLAGS, {"off": (4, 2)})) == {"off": "4,2"}
    assert write_link(FLAGS, resolve(FLAGS, {})) == {}


def test_all_heads_wait_for_nothing_that_is_said_below_them(monkeypatch: pytest.MonkeyPatch) -> None:
    below = {name: Mock(wraps=getattr(multi_head, name)) for name in ("head_statistics", "mean_of_heads", "switch_off")}
    for name, function in below.items():
        monkeypatch.setattr(multi_head, name, function)
    assert "all_heads" in specs(open_page(PAGE, present="1"))
    assert not any(function.called for function in below.values())
    open_page(PAGE, off="1")
    assert {name: function.call_count for name, function in below.items()} == {
        "head_statistics": 2,  # of the heads, and of a uniform one
        "mean_of_heads": 1,
        "switch_off": 1,
    }


def test_the_output_changes_most_at_all_tokens_that_are_named() -> None:
    at = open_page(PAGE, heads_from="built by hand", seq_len="11", d_model="32", off="3")
    found = re.search(r"the output changes most at tokens (\d+) “saw” and (\d+) “saw” alike", texts(at))
    assert found is not None
    layer = multi_head.built_heads(multi_head.example_sentence(11), 32, 0)
    whole = multi_head.attend(layer, np.ones((11, 11), dtype=bool))
    lengths = multi_head.switch_off(whole, layer.w_o, [True, True, False]).sizes
    assert {int(found[1]) - 1, int(found[2]) - 1} == set(np.flatnonzero(np.isclose(lengths, lengths.max())).tolist())
    assert f"The output of token {found[1]} “saw” had length" in texts(at)
