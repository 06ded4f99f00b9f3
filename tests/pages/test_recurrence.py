"""The page "Recurrence or all at once": its pictures carry core's numbers, its sentences say what the numbers say."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import attention, draws, recurrence
from core.recurrence import Timing, costs, costs_by_length, crossings
from tests.pages.charts import array, open_page, specs, texts
from ui import recurrence_figures, recurrence_words

PAGE = "recurrence"


@pytest.fixture(scope="module")
def opened() -> AppTest:
    """The page without parameters; not to be changed by a test."""
    return open_page(PAGE)


def expected(n: int, d: int, seed: int = 0, gain: float = 1.0, scale: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """The reach of each random token in the RNN, and the last token's attention weights."""
    x, (w_x, w_h) = draws.tokens(n, d, seed), draws.recurrent_weights(d, seed, gain)
    w = draws.attention_weights(d, seed, scale)
    reach = recurrence.reach_of_tokens(recurrence.rnn(x, w_x, w_h), w_x, w_h)
    return reach, attention.self_attention(x, w.w_q, w.w_k, w.w_v).weights[-1]


def drawn(at: AppTest) -> tuple[np.ndarray, np.ndarray]:
    reach, weights = specs(at)["memory"]["data"]
    return array(reach["y"]), array(weights["y"])


def row(at: AppTest, name: str) -> list[str]:
    return at.table[0].value.loc[name].tolist()


# --- who waits for whom ----------------------------------------------------------------------------------------------


def test_staircase_beside_one_row(opened: AppTest) -> None:
    links, others, into_last, *_, rnn, at_once = specs(opened)["dependencies"]["data"]
    np.testing.assert_array_equal(rnn["x"], rnn["y"])
    np.testing.assert_array_equal(rnn["x"], range(1, 13))
    np.testing.assert_array_equal(at_once["x"], range(1, 13))
    np.testing.assert_array_equal(at_once["y"], [1] * 12)
    assert (rnn.get("yaxis", "y"), at_once["yaxis"]) == ("y", "y2")
    assert links["x"].count(None) == 11 + 12  # each state but the first needs the one before, and each its token
    assert others["x"].count(None) + into_last["x"].count(None) == 12**2
    assert "RNN: 12 steps" in texts(opened)
    assert "144 links" in texts(opened)


@pytest.mark.parametrize(("n", "others"), [(1, 0), (2, 2), (24, 23 * 24), (25, 0), (256, 0)])
def test_dependencies_from_shortest_to_longest(n: int, others: int) -> None:
    figure = recurrence_figures.dependencies([str(i) for i in range(1, n + 1)])
    assert list(figure.data[5].y) == list(range(1, n + 1))
    assert list(figure.data[1].x).count(None) == others
    into_last = list(zip(figure.data[2].x, figure.data[2].y, strict=True))
    assert into_last == [point for key in range(1, n + 1) for point in ((key, 0), (n, 1), (None, None))]
    assert sum(len(trace.x) for trace in figure.data) < 3000  # it is drawn again while a slider moves


@pytest.mark.parametrize("n", [2, 12, 16, 24, 256])
def test_the_step_of_attention_is_high_enough_to_see_what_the_last_token_needs(n: int) -> None:
    layout = recurrence_figures.dependencies([str(i) for i in range(1, n + 1)]).layout

    def pixels_of_a_step(axis: Any) -> float:
        inside = layout.height - layout.margin.t - layout.margin.b
        return inside * (axis.domain[1] - axis.domain[0]) / (axis.range[1] - axis.range[0])

    assert pixels_of_a_step(layout.yaxis2) > 60
    assert pixels_of_a_step(layout.yaxis2) > pixels_of_a_step(layout.yaxis)  # as the page says


def test_links_left_out_are_said_so(opened: AppTest) -> None:
    assert "Those to attention's last token stand out." in texts(opened)
    assert "only the RNN's lines from state to state are drawn" not in texts(opened)
    assert "only the RNN's lines from state to state are drawn" in texts(open_page(PAGE, seq_len="25"))
    assert "drawn higher" in texts(opened)
    assert "drawn higher" not in texts(open_page(PAGE, sentence="word"))


# --- costs -----------------------------------------------------------------------------------------------------------


def test_cost_table_and_findings() -> None:
    at = open_page(PAGE, seq_len="100", d_model="40")
    assert row(at, "Multiply-adds: projections") == ["n·d² = 160,000", "4·n·d² = 640,000"]
    assert row(at, "Multiply-adds: mixing") == ["n·d² = 160,000", "2·n²·d = 800,000"]
    assert row(at, "Multiply-adds: all") == ["2·n·d² = 320,000", "1,440,000"]
    assert row(at, "Sequential steps to read a given sequence") == ["n = 100", "1"]
    assert row(at, "Sequential steps to write n new tokens") == ["n = 100", "n = 100"]
    assert row(at, "Longest path between two tokens") == ["n − 1 = 99", "1"]
    assert row(at, "Entries of the attention map") == ["none", "n² = 10,000"]
    assert "4.5 times the multiply-adds of this RNN" in texts(at)
    assert "costs more than the whole RNN at n = 100 and d = 40. The two are equal at n = d = 40" in texts(at)
    assert "projections are equal at n = 2d = 80" in texts(at)


@pytest.mark.parametrize(("n", "said"), [(39, "less than"), (40, "as much as"), (41, "more than")])
def test_mixing_beside_the_rnn(n: int, said: str) -> None:
    finding = recurrence_words.cost_findings(costs(n, 40), crossings(40))[1]
    assert f"costs {said} the whole RNN at n = {n} and d = 40." in finding


def test_all_tokens_with_the_largest_weight_are_named() -> None:
    reach, weights = np.array([0.1, 0.5, 1.0]), np.array([0.4, 0.2, 0.4])
    said = recurrence_words.memory_findings(reach, weights, ["1 the", "2 cat", "3 the"])[1]
    assert said.endswith("Its largest weight, 0.4, is for tokens 1 “the” and 3 “the” alike.")


@pytest.mark.parametrize(("n", "d"), [(2, 4), (12, 8), (256, 128)])
def test_projections_and_mixing_add_up_to_all(n: int, d: int) -> None:
    table = recurrence_words.cost_table(costs(n, d))
    counts = {
        name: [int(text.split("= ")[-1].replace(",", "")) for text in texts]
        for name, texts in table.items()
        if name.startswith("Multiply-adds")
    }
    parts = np.array([counts["Multiply-adds: projections"], counts["Multiply-adds: mixing"]])
    assert parts.sum(axis=0).tolist() == counts["Multiply-adds: all"]
    assert parts[0, 0] == n * d * d  # one product of a row with a matrix per token


@pytest.mark.parametrize("d_model", [4, 8, 128])
def test_crossings_lie_on_both_curves(d_model: int) -> None:
    at = crossings(d_model)
    assert costs(at.rnn, d_model).mixing == costs(at.rnn, d_model).rnn
    assert costs(at.projections, d_model).mixing == costs(at.projections, d_model).projections
    lengths = range(2, 257)
    counts = costs_by_length(lengths[0], lengths[-1], d_model)
    figure = recurrence_figures.multiply_adds(counts, lengths, at, now=2)
    marks = {trace.name: (trace.x[0], trace.y[0]) for trace in figure.data[4:]}
    assert marks == {
        f"mixing = RNN at n = {d_model}": (d_model, 2 * d_model**3),
        f"mixing = projections at n = {2 * d_model}": (2 * d_model, 8 * d_model**3),
    }


def test_curves_are_the_counts() -> None:
    at = open_page(PAGE, d_model="16")
    counts = [costs(n, 16) for n in range(2, 257)]
    curves = {trace["name"]: array(trace["y"]) for trace in specs(at)["multiply_adds"]["data"][:4]}
    np.testing.assert_allclose(curves["RNN"], [cost.rnn for cost in counts])
    np.testing.assert_allclose(curves["attention, all of it"], [cost.attention for cost in counts])
    np.testing.assert_allclose(curves["its projections"], [cost.projections for cost in counts])
    np.testing.assert_allclose(curves["its mixing"], [cost.mixing for cost in counts])
    curves = {trace["name"]: array(trace["y"]) for trace in specs(at)["steps"]["data"]}
    np.testing.assert_array_equal(curves["RNN: steps"], [cost.rnn_steps for cost in counts])
    np.testing.assert_array_equal(curves["RNN: longest path"], [cost.rnn_path for cost in counts])
    np.testing.assert_array_equal(curves["attention: map entries"], [cost.weights for cost in counts])
    both = curves["attention: steps, longest path"]  # one curve for two numbers
    np.testing.assert_array_equal(both, [cost.attention_steps for cost in counts])
    np.testing.assert_array_equal(both, [cost.attention_path for cost in counts])


# --- times -----------------------------------------------------------------------------------------------------------


def test_nothing_is_measured_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("measured on load")

    monkeypatch.setattr(recurrence, "time_both", refuse)
    at = open_page(PAGE)
    assert not at.exception
    assert "times" not in specs(at)


def test_a_real_measurement_is_drawn_and_told() -> None:
    at = open_page(PAGE)
    at.button(key="recurrence_measure").click().run()
    assert not at.exception
    rnn, self_attention = specs(at)["times"]["data"]
    np.testing.assert_array_equal(array(rnn["x"]), [2**i for i in range(1, 11)])
    kept = at.session_state["recurrence_measured"][8, 0]
    np.testing.assert_allclose(array(rnn["y"]), [1e3 * timing.rnn for timing in kept], rtol=1e-6)
    np.testing.assert_allclose(array(self_attention["y"]), [1e3 * timing.attention for timing in kept], rtol=1e-6)
    assert "\n".join(recurrence_words.time_findings(kept)) in texts(at)


def test_a_measurement_belongs_to_its_width_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(lengths: Sequence[int], d_model: int, seed: int, repeats: int) -> Iterator[Timing]:
        assert (d_model, seed, repeats) == (8, 0, 7)
        return (timing(n, rnn=n * 1e-3, attention=1e-3) for n in lengths)

    monkeypatch.setattr(recurrence, "time_both", pretend)
    at = open_page(PAGE)
    at.button(key="recurrence_measure").click().run()
    assert "the RNN was 1,024 times" not in texts(at)
    assert "self-attention was 1,024 times as fast as the RNN" in texts(at)

    at.slider(key="d_model").set_value(16).run()
    assert "times" not in specs(at)
    assert "Not measured yet with d_model 16 and seed 0; measured so far: d_model 8 with seed 0." in texts(at)

    at.switch_page("pages/self_attention.py").run()
    at.switch_page("pages/recurrence.py").run()
    at.slider(key="d_model").set_value(8).run()
    assert "Measured with d_model 8 and seed 0." in texts(at)
    assert "times" in specs(at)


def timing(n: int, rnn: float, attention: float) -> Timing:
    """With ranges from 0.9 to 1.1 times the median."""
    return Timing(n, rnn, attention, (0.9 * rnn, 1.1 * rnn), (0.9 * attention, 1.1 * attention))


def test_what_is_said_of_times() -> None:
    mixed = [timing(2, 1e-5, 9e-5), timing(4, 4e-4, 2e-4), timing(8, 8e-4, 1.6e-3)]
    assert recurrence_words.time_findings(mixed) == [
        "In this run self-attention was faster at 4 tokens, and not at 2 and 8.",
        "At 8 tokens the RNN took 0.8 ms (0.72 to 0.88) and self-attention 1.6 ms (1.44 to 1.76).",
        "By the medians the RNN was 2 times as fast as self-attention. "
        "Another run, or a busier machine, gives another number.",
        "From 4 to 8 tokens the RNN's time was multiplied by 2, self-attention's by 8.",
    ]
    assert "faster at none of these lengths" in recurrence_words.time_findings(mixed[:1])[0]
    assert "faster at every length measured" in recurrence_words.time_findings(mixed[1:2])[0]
    close = recurrence_words.time_findings([timing(8, 1e-3, 1.15e-3)])
    assert "Their ranges overlap, so another run may turn out the other way." in close
    assert "as fast as" not in " ".join(close)


# --- memory ----------------------------------------------------------------------------------------------------------


def test_reach_and_weights_are_cores(opened: AppTest) -> None:
    reach, weights = expected(12, 8)
    np.testing.assert_allclose(drawn(opened)[0], reach, rtol=1e-12)
    np.testing.assert_allclose(drawn(opened)[1], weights, atol=1e-6)
    assert (
        f"token 1 reaches the last state with a norm of {reach[0]:.3g}. That is {reach[0] / reach[-1]:.3g} times"
        in (texts(opened))
    )
    assert f"the last token gives token 1 the weight {weights[0]:.3g}" in texts(opened)
    assert f"Its largest weight, {weights.max():.3g}, is for token {weights.argmax() + 1}" in texts(opened)


@pytest.mark.parametrize(
    ("link", "changed"),
    [({"gain": "0.5"}, (True, False)), ({"weight_scale": "0.6"}, (False, True)), ({"seed": "3"}, (True, True))],
)
def test_each_control_changes_its_own_picture(
    opened: AppTest, link: dict[str, str], changed: tuple[bool, bool]
) -> None:
    before, after = drawn(opened), drawn(open_page(PAGE, **link))
    assert tuple(not np.allclose(a, b) for a, b in zip(before, after, strict=True)) == changed


def test_norms_whose_squares_underflow() -> None:
    """The norm of numbers near 1e-200 once came out as 0, and numbers near 1e-308 took seconds."""
    small, large = (draws.recurrent_weights(16, 0, gain) for gain in (0.1, 1.0))
    x = draws.tokens(200, 16, 0)
    states = recurrence.rnn(x, *small)
    reach = recurrence.reach_of_tokens(states, *small)
    # The weights ten times as large at the same states: each factor is ten times as large, and nothing underflows.
    expected = np.log10(recurrence.reach_of_tokens(states, *large)) - np.arange(199, -1, -1)
    assert reach[0] < 1e-200
    np.testing.assert_allclose(np.log10(reach), expected, atol=1e-9)


def test_reach_too_small_for_a_float_is_said() -> None:
    at = open_page(PAGE, seq_len="256", d_model="4", gain="0.1", seed="5")
    reach, _ = expected(256, 4, seed=5, gain=0.1)
    lost = int((reach == 0).sum())
    assert lost > 0
    assert np.isnan(drawn(at)[0]).sum() == lost
    assert f"Not drawn: {lost} tokens with a norm too small" in texts(at)
    assert "shows no trace that a floating-point number can hold" in texts(at)


# --- words and edges -------------------------------------------------------------------------------------------------


def test_words_are_shown_as_typed() -> None:
    at = open_page(PAGE, sentence="the <b>cat</b> $x$ the 2020-01 *mat*")
    assert not at.exception
    chart = specs(at)["memory"]
    assert chart["data"][0]["customdata"][:4] == ["1 the", "2 &lt;", "3 b", "4 &gt;"]
    assert sum(name.endswith(" the") for name in chart["data"][0]["customdata"]) == 2
    assert chart["layout"]["xaxis"]["tickmode"] == "array"  # of numbers: a date as a word cannot turn it into dates
    assert "token 1 “the” reaches the last state" in texts(at)


@pytest.mark.parametrize(
    "link",
    [
        {"seq_len": "2", "d_model": "4"},
        {"seq_len": "256", "d_model": "128", "gain": "0.1"},
        {"seq_len": "256", "d_model": "128", "gain": "2.5", "weight_scale": "1"},
        {"sentence": "word"},
        {"sentence": "the " * 70},
        {"sentence": "the the the the"},
    ],
)
def test_edges_raise_nothing(link: dict[str, str]) -> None:
    at = open_page(PAGE, **link)
    assert not at.exception
    reach, weights = drawn(at)
    assert (reach[np.isfinite(reach)] > 0).all()
    np.testing.assert_allclose(weights.sum(), 1, atol=1e-5)


def test_one_word_waits_for_nobody() -> None:
    at = open_page(PAGE, sentence="word")
    assert "nothing to wait for" in texts(at)
    assert "the first one is the last one" in texts(at)
    assert row(at, "Longest path between two tokens") == ["n − 1 = 0", "0"]
