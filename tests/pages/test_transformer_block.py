"""The page on the transformer block: its diagram, its pictures, what it says about them."""

import re
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import block, draws, gradients
from tests.pages.charts import array, cells, open_page, specs, texts
from ui import block_figures, block_words, words

PAGE, BARE = "transformer_block", "no residual, no norm"


def written(at: AppTest) -> list[str]:
    """Every text in the diagram, without its markup, from top to bottom."""
    annotations = [a for a in specs(at)["diagram"]["layout"]["annotations"] if a.get("text")]
    return [re.sub(r"<[^>]+>", " ", a["text"]).strip() for a in sorted(annotations, key=lambda a: a["y"])]


def titles(at: AppTest) -> list[str]:
    return [annotation["text"] for annotation in specs(at)["stages"]["layout"]["annotations"]]


def stack(
    n: int, d_model: int, d_ff: int, blocks: int = 1, *, scale: float = 0.2, **kind: Any
) -> tuple[np.ndarray, list[block.Block]]:
    x = draws.tokens(n, d_model, 0)
    weights = [draws.block_weights(d_model, d_ff, 0, scale, block=i) for i in range(blocks)]
    return x, list(block.stack(x, weights, block.Settings(**kind)))


# --- the lesson's block ----------------------------------------------------------------------------------------------


def test_opens_on_the_block_of_the_lesson(lesson: dict[str, Any]) -> None:
    at = open_page(PAGE)
    assert not at.exception
    assert len(specs(at)["stages"]["data"]) == 5
    for trace, name in enumerate(("x", "attn_out", "x_after_attn", "ff_out", "block_output")):
        shown = cells(at, "stages", trace)
        assert shown.dtype == np.float32
        np.testing.assert_allclose(shown, lesson["block"][name], atol=1e-6)
    assert [metric.value for metric in at.metric] == ["472", "2,640"]
    assert "600" in texts(at)
    assert "random weights" in texts(at).lower()


def test_the_maps_share_one_scale_with_zero_in_the_middle(lesson: dict[str, Any]) -> None:
    layout = specs(open_page(PAGE))["stages"]["layout"]
    largest = np.abs(lesson["block"]["x"]).max()
    assert layout["coloraxis"]["cmax"] == pytest.approx(largest)
    assert layout["coloraxis"]["cmin"] == pytest.approx(-largest)


# --- the diagram -----------------------------------------------------------------------------------------------------


def test_every_arrow_has_its_shape_and_every_box_its_parameters() -> None:
    said = written(open_page(PAGE, seq_len="7", d_model="12", heads="3", d_ff="20", output_projection="true"))
    assert said.count("3 × 7 × 4") == 3  # queries, keys, values
    assert "joined: 7 × 12" in said
    assert "7 × 20" in said
    boxes = [text for text in said if "parameter" in text]
    assert [int(re.search(r"(\d+) *parameters", text)[1]) for text in boxes] == [  # type: ignore[index]
        *[144] * 3,
        0,
        144,
        0,
        12 * 20 + 20,
        20 * 12 + 12,
        0,
    ]
    assert any("Attention, 3 heads" in text and "weights 3 × 7 × 7" in text for text in boxes)
    for arrow in ("x", "add 1", "norm 1", "feed-forward output", "add 2", "norm 2", "both lanes"):
        assert said.count("7 × 12") == 9, arrow


def test_the_residual_lanes_go_with_their_switch() -> None:
    with_lanes, without = open_page(PAGE), open_page(PAGE, residual="false")
    assert written(with_lanes).count("+") == 2
    assert "+" not in written(without)
    violet = "#C026D3"
    assert violet in str(specs(with_lanes)["diagram"])
    assert violet not in str(specs(without)["diagram"])


def test_the_norms_go_with_their_switch_and_move_with_the_order() -> None:
    def places(at: AppTest) -> list[str]:
        names = {"LayerNorm": "norm", "Attention": "attention", "+": "add", "W 2": "feed-forward", "Final": "final"}
        return [short for text in written(at) for name, short in names.items() if name in text]

    assert places(open_page(PAGE)) == ["attention", "add", "norm", "feed-forward", "add", "norm"]
    assert places(open_page(PAGE, norm="false")) == ["attention", "add", "feed-forward", "add"]
    pre_norm = ["norm", "attention", "add", "norm", "feed-forward", "add", "norm", "final"]
    assert places(open_page(PAGE, order="pre-norm")) == pre_norm


def test_the_frame_counts_the_blocks() -> None:
    assert not [text for text in written(open_page(PAGE)) if "blocks" in text]
    assert "× 24 blocks" in written(open_page(PAGE, blocks="24"))


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("norm", "order"), [(False, "post-norm"), (True, "post-norm"), (True, "pre-norm")])
@pytest.mark.parametrize("output_projection", [True, False])
def test_nothing_in_the_diagram_overlaps(residual: bool, norm: bool, order: str, output_projection: bool) -> None:
    kind = block.Settings(8, residual, norm, order, "gelu", output_projection, causal=True)
    figure = block_figures.block_diagram(64, 64, 256, kind, blocks=24)
    height = figure.layout.height
    boxes = [shape for shape in figure.layout.shapes if shape.type == "rect" and not shape.line.dash]
    for box in boxes:
        assert 0 <= box.y0 < box.y1 <= height
        others = [other for other in boxes if other is not box]
        assert all(
            other.y1 <= box.y0 or other.y0 >= box.y1 or other.x1 <= box.x0 or other.x0 >= box.x1 for other in others
        )
    sizes = [note for note in figure.layout.annotations if note.text and re.fullmatch(r"[\d ×]+", note.text)]
    for note in sizes:
        assert not any(box.x0 <= note.x <= box.x1 and box.y0 < note.y < box.y1 for box in boxes), note.text


# --- the pictures ----------------------------------------------------------------------------------------------------


def test_pre_norm_shows_its_own_order_and_the_final_norm_after_the_last_block() -> None:
    at = open_page(PAGE, order="pre-norm", blocks="3", block="3")
    _, blocks = stack(5, 8, 16, 3, order="pre-norm")
    last = blocks[-1]
    expected = [
        last.x,
        last.attention.entered,
        last.attention.computed,
        last.attention.left,
        last.feed_forward.entered,
        last.feed_forward.computed,
        last.output,
        block.layer_norm(last.output),
    ]
    assert len(specs(at)["stages"]["data"]) == len(expected)
    for trace, values in enumerate(expected):
        np.testing.assert_allclose(cells(at, "stages", trace), values, atol=1e-6)
    assert [title.split(". ")[1] for title in titles(at)[1:6]] == [
        "After norm",
        "After attention",
        "After add",
        "After norm",
        "After feed-forward",
    ]
    assert titles(at)[7] == "8. After the final norm: the stack's output"
    inner = open_page(PAGE, order="pre-norm", blocks="3", block="2")
    assert len(specs(inner)["stages"]["data"]) == 7


@pytest.mark.parametrize(
    ("link", "third"),
    [
        ({"residual": "false"}, "3. After norm"),
        ({"norm": "false"}, "3. After add"),
        ({"norm": "false", "residual": "false"}, "3. After feed-forward: the block's output"),
    ],
)
def test_titles_name_what_is_on(link: dict[str, str], third: str) -> None:
    assert titles(open_page(PAGE, **link))[2] == third


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("activation", "GELU", {"activation": "gelu"}),
        ("output_projection", "true", {"output_projection": True}),
        ("causal", "true", {"causal": True}),
        ("residual", "false", {"residual": False}),
        ("norm", "false", {"norm": False}),
        ("heads", "4", {"heads": 4}),
    ],
)
def test_each_switch_changes_the_numbers(name: str, value: str, kind: dict[str, Any]) -> None:
    at = open_page(PAGE, **{name: value})
    _, (shown,) = stack(5, 8, 16, **kind)
    last = len(specs(at)["stages"]["data"]) - 1
    np.testing.assert_allclose(cells(at, "stages", last), shown.output, atol=1e-6)
    assert not np.allclose(shown.output, stack(5, 8, 16)[1][0].output, atol=1e-3)


@pytest.mark.parametrize(("order", "which"), [("post-norm", "first"), ("post-norm", "second"), ("pre-norm", "second")])
def test_mean_and_spread_before_and_after_the_norm(order: str, which: str) -> None:
    at = open_page(PAGE, order=order, layer_norm=which)
    _, (shown,) = stack(5, 8, 16, order=order)
    sublayer = shown.attention if which == "first" else shown.feed_forward
    before = shown.attention.left if order == "pre-norm" else sublayer.added
    mean, spread = block.mean_and_spread(before)
    first, second = specs(at)["norm_chart"]["data"]
    np.testing.assert_allclose(array(first["y"]), mean, atol=1e-6)
    np.testing.assert_allclose(array(first["error_y"]["array"]), spread, atol=1e-6)
    np.testing.assert_allclose(array(second["y"]), 0, atol=1e-6)
    np.testing.assert_allclose(array(second["error_y"]["array"]), 1, atol=1e-4)
    assert f"spread between {spread.min():.2f} and {spread.max():.2f}; after it mean 0.00 and spread 1.00" in texts(at)


def test_layer_norm_takes_rows_and_batch_norm_columns() -> None:
    at = open_page(PAGE)
    layer, batch = cells(at, "norm_axes", 0), cells(at, "norm_axes", 1)
    np.testing.assert_allclose(layer.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(batch.mean(axis=0), 0, atol=1e-6)
    row, column = specs(at)["norm_axes"]["layout"]["shapes"]
    assert (row["x0"], row["x1"], row["y0"], row["y1"]) == (-0.5, 7.5, -0.5, 0.5)
    assert (column["x0"], column["x1"], column["y0"], column["y1"]) == (-0.5, 0.5, -0.5, 4.5)
    assert (column["xref"], column["yref"]) == ("x2", "y2")
    assert f"means of the columns between −{-layer.mean(axis=0).min():.2f}" in texts(at)


def test_norms_that_leave_nothing_say_why() -> None:
    assert "The tokens are equal here" in texts(open_page(PAGE, sentence="a a"))
    gone = texts(open_page(PAGE, blocks="24", residual="false", norm="false", block="24"))
    assert "outweighs it" in gone
    assert "The tokens are equal here" not in gone
    plain = texts(open_page(PAGE))
    assert "outweighs it" not in plain
    assert "The tokens are equal here" not in plain


def test_without_norm_the_page_says_so() -> None:
    at = open_page(PAGE, norm="false")
    assert "norm_chart" not in specs(at)
    assert "norm_axes" in specs(at)
    assert "LayerNorm is off" in texts(at)


# --- depth -----------------------------------------------------------------------------------------------------------


def test_spread_and_alikeness_of_every_block() -> None:
    at = open_page(PAGE, blocks="24", norm="false", weight_scale="1.0")
    x, blocks = stack(5, 8, 16, 24, norm=False, scale=1.0)
    depth = block.depth([x, *(each.output for each in blocks)])
    spread, alikeness = specs(at)["depth_chart"]["data"]
    np.testing.assert_allclose(array(spread["y"]), depth.spread, rtol=1e-12)  # beyond float32
    np.testing.assert_allclose(array(alikeness["y"]), depth.alikeness, atol=1e-12)
    assert "After block 24 it is 2.07 × 10³²" in texts(at)


def test_comparison_of_the_orders_with_the_same_weights() -> None:
    at = open_page(PAGE, blocks="12", compare="true", order="pre-norm")
    curves = {
        trace["name"]: array(trace["y"]) for trace in specs(at)["depth_chart"]["data"] if trace.get("yaxis") == "y"
    }
    assert list(curves) == ["post-norm", "pre-norm (this setting)", "no norm"]
    kinds: list[dict[str, Any]] = [{}, {"order": "pre-norm"}, {"norm": False}]
    for curve, kind in zip(curves.values(), kinds, strict=True):
        x, blocks = stack(5, 8, 16, 12, **kind)
        np.testing.assert_allclose(curve, block.depth([x, *(each.output for each in blocks)]).spread, rtol=1e-9)
    np.testing.assert_allclose(curves["post-norm"][1:], 1, atol=1e-3)
    star = specs(at)["depth_chart"]["data"][-1]
    assert star["name"] == "after the final norm"
    np.testing.assert_allclose(array(star["y"]), 1, atol=1e-3)


def test_a_stack_that_died_says_where() -> None:
    depth = block.Depth(np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.1, 0.9, np.nan, np.nan]))
    assert "After block 2 it is exactly 0" in block_words.spread_finding(depth, None)
    assert "no two tokens are left that are not all zeros" in block_words.alikeness_finding(depth, 3)


def test_alikeness_is_the_mean_cosine_over_pairs() -> None:
    x = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    expected = (0 + np.sqrt(0.5) + np.sqrt(0.5)) / 3
    for scale in (1.0, 1e100, 1e-100):
        assert block.depth([x * scale]).alikeness[0] == pytest.approx(expected)
    assert np.isnan(block.depth([x[:1]]).alikeness[0])
    assert np.isnan(block.depth([np.zeros((3, 2))]).alikeness[0])


# --- the gradient ----------------------------------------------------------------------------------------------------


def test_a_block_without_output_projection_says_so() -> None:
    without, with_it = (texts(open_page(PAGE, output_projection=on)) for on in ("false", "true"))
    assert "leaves the output projection W_O out" in without
    assert "leaves the output projection W_O out" not in with_it


def test_a_spread_of_one_is_written_as_what_was_measured() -> None:
    said = texts(open_page(PAGE))  # post-norm: LayerNorm comes last
    assert "After block 1 it is 1.00, which is" in said
    assert "The final norm leaves it at 1.00." in block_words.spread_finding(
        block.depth([draws.tokens(5, 8, 0), block.layer_norm(draws.tokens(5, 8, 0))]), 1.0
    )


def lengths(n: int, d_model: int, d_ff: int, blocks: int, *, scale: float = 0.2, **kind: Any) -> np.ndarray:
    x = draws.tokens(n, d_model, 0)
    weights = [gradients.block_weights(*draws.block_weights(d_model, d_ff, 0, scale, block=i)) for i in range(blocks)]
    direction = gradients.unit_direction(n, d_model, 0)
    return gradients.gradient_lengths(x, weights, block.Settings(**kind), direction)[:-1]


@pytest.mark.parametrize("order", ["post-norm", "pre-norm"])
def test_four_lines_of_the_gradient(order: str) -> None:
    at = open_page(PAGE, blocks="24", order=order, heads="2", causal="true")
    drawn = specs(at)["gradient_chart"]["data"]
    assert [line["name"] for line in drawn] == [
        "residual and norm (this setting)",
        "residual only",
        "norm only",
        BARE,
    ]
    for line, (residual, norm) in zip(drawn, [(True, True), (True, False), (False, True), (False, False)], strict=True):
        expected = lengths(5, 8, 16, 24, heads=2, causal=True, residual=residual, norm=norm, order=order)
        np.testing.assert_allclose(array(line["y"]), expected, rtol=1e-9)
        assert array(line["x"]).tolist() == list(range(1, 25))
    assert len({(line["line"]["dash"], line["marker"]["symbol"]) for line in drawn}) == 4
    assert specs(at)["gradient_chart"]["layout"]["yaxis"]["type"] == "log"


def test_what_is_said_about_the_gradient_is_what_is_drawn() -> None:
    said = texts(open_page(PAGE, blocks="24"))
    both, bare = lengths(5, 8, 16, 24), lengths(5, 8, 16, 24, residual=False, norm=False)
    assert f"“residual and norm” {both[0] / both[-1]:.3g};" in said
    power = int(np.floor(np.log10(bare[0] / bare[-1])))
    assert power < -10
    assert f" × {words.power_of_ten(power)}." in said
    assert f"It vanishes with “{BARE}”: less than a thousandth is left." in said
    assert "explodes" not in said


def test_a_gradient_that_comes_out_as_zero_is_said_and_not_drawn() -> None:
    link = dict(seq_len="2", d_model="4", d_ff="4", blocks="24", weight_scale="0.1")
    at = open_page(PAGE, **link)
    assert (lengths(2, 4, 4, 24, scale=0.1, residual=False) == 0).all()
    drawn = {line["name"]: array(line["y"]) for line in specs(at)["gradient_chart"]["data"]}
    assert np.isnan(drawn["norm only"]).all()
    assert "Not drawn: with “norm only” it comes out as 0 at blocks 1 to 24, which this scale cannot show." in texts(at)
    assert "this: “residual and norm” 1.43; “residual only” 1.15." in texts(at)


def test_a_gradient_beyond_floating_point_is_said_and_not_drawn() -> None:
    at = open_page(PAGE, seq_len="64", d_model="64", d_ff="256", blocks="24", weight_scale="1.0")
    assert not at.exception
    drawn = {line["name"]: array(line["y"]) for line in specs(at)["gradient_chart"]["data"]}
    assert np.isnan(drawn[BARE][0])
    assert np.isfinite(drawn[BARE][-1])
    gone = np.count_nonzero(np.isnan(drawn[BARE]))
    assert f"with “{BARE}” it is too large for a floating-point number at blocks 1 to {gone}." in texts(at)
    assert f"“{BARE}” more than can be computed" in texts(at)
    assert "inf" not in texts(at).split()


@pytest.mark.parametrize(("link", "unsure"), [({}, False), ({"d_model": "64", "d_ff": "256"}, True)])
def test_where_rounding_decides_about_a_gradient_the_page_says_so(link: dict[str, str], unsure: bool) -> None:
    at = open_page(PAGE, blocks="24", **link)
    assert not at.exception
    assert (f"With “{BARE}” the number is not certain." in texts(at)) is unsure
    assert (f"“{BARE}” not certain, see below" in texts(at)) is unsure
    drawn = {line["name"]: array(line["y"]) for line in specs(at)["gradient_chart"]["data"]}
    ratio = drawn[BARE][0] / drawn[BARE][-1]
    assert (f"“{BARE}” {words.number(ratio)}" in texts(at)) is not unsure
    assert (f"the line drawn comes to {words.number(ratio)};" in texts(at)) is unsure


def test_words_about_the_gradient() -> None:
    def said(nearby: dict[str, list[float]] | None = None, **lengths: list[float]) -> str:
        both = ({name: np.array(x) for name, x in each.items()} for each in (lengths, nearby or {}))
        return "\n".join(block_words.gradient_findings(*both))

    assert said(a=[3, 2, 1], b=[0.5, 1, 1]) == (
        "From block 3 back to block 1 the length of the gradient is multiplied by this: “a” 3; “b” 0.5."
    )
    assert "It explodes with “a” and “b”: it grows more than a thousandfold." in said(a=[2e3, 1], b=[1e9, 1], c=[1, 1])
    assert "“a” 0." in said(a=[0, 1])
    assert "Not drawn: with “a” it comes out as 0 at block 1," in said(a=[0, 1])
    assert "No gradient arrives at all." in said(a=[0, 0])
    assert "not certain" not in said({"a": [3.001, 1]}, a=[3, 1])
    unsure = said({"a": [40, 1]}, a=[3, 1])
    assert "“a” not certain, see below." in unsure
    assert "the line drawn comes to 3; with every number of the input changed" in unsure
    assert unsure.endswith("by the least possible amount it would come to 40.")
    assert "explodes" not in said({"a": [40, 1]}, a=[3e6, 1])
    assert "It explodes with “a”:" in said({"a": [4e9, 1]}, a=[3e6, 1])


def test_one_block_has_no_way_back_and_no_choice() -> None:
    at = open_page(PAGE)
    assert "gradient_chart" not in specs(at)
    assert "Choose two or more *Stacked blocks*" in texts(at)
    assert "Block shown" not in texts(at)
    assert "dotted line" not in texts(at)


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["post-norm", "pre-norm"])
def test_the_table_of_tensors_adds_up(order: str) -> None:
    at = open_page(PAGE, order=order, output_projection="true", heads="2")
    table = at.table[0].value  # not a dataframe, which cuts what is wider than its columns
    for column in ("parameters", "multiply-adds"):
        table[column] = [int(count.replace(",", "")) for count in table[column]]
    body, total = table.iloc[:-1], table.iloc[-1]
    assert total["parameters"] == body["parameters"].sum() == 4 * 64 + 2 * 128 + 16 + 8
    assert total["multiply-adds"] == body["multiply-adds"].sum()
    assert table["tensor"].is_unique
    assert at.metric[0].value == f"{total['parameters']:,}"


# --- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "link",
    [
        {"seq_len": "2", "d_model": "4", "d_ff": "4", "blocks": "24", "weight_scale": "0.1", "residual": "false"},
        {
            "seq_len": "2",
            "d_model": "4",
            "d_ff": "4",
            "blocks": "24",
            "norm": "false",
            "residual": "false",
            "block": "24",
        },
        {"sentence": "one", "compare": "true", "order": "pre-norm"},
        {"sentence": "the cat saw the cat saw the cat", "heads": "8", "causal": "true", "layer_norm": "second"},
        {"sentence": "<b>x</b> $x$ *a* :red[x]", "blocks": "2"},
        {"sentence": "word " * 100, "d_model": "64", "heads": "64"},
    ],
)
def test_edge_settings_are_drawn(link: dict[str, str]) -> None:
    at = open_page(PAGE, **link)
    assert not at.exception
    assert "nan" not in texts(at).lower().replace("attention", "")


def test_numbers_beyond_float32_are_drawn_in_powers_of_ten() -> None:
    link = dict(seq_len="64", d_model="64", d_ff="256", blocks="24", block="24", norm="false", weight_scale="1.0")
    at = open_page(PAGE, **link)
    assert not at.exception
    _, blocks = stack(64, 64, 256, 24, norm=False, scale=1.0)
    assert specs(at)["stages"]["layout"]["coloraxis"]["colorbar"]["title"]["text"] == "value, in units of 10⁶⁹"
    np.testing.assert_allclose(cells(at, "stages", 4), blocks[-1].output / 1e69, atol=1e-5)


def test_words_of_the_reader_are_shown_as_typed() -> None:
    at = open_page(PAGE, sentence="<b> $x$")
    labels = specs(at)["stages"]["layout"]["yaxis"]["ticktext"]
    assert labels == ["1 &lt;", "2 b", "3 &gt;", "4 $", "5 x", "6 $"]


def test_block_shown_stays_within_the_stack() -> None:
    at = open_page(PAGE, blocks="4", block="4")
    _, blocks = stack(5, 8, 16, 4)
    np.testing.assert_allclose(cells(at, "stages", 0), blocks[3].x, atol=1e-6)
    at.slider(key="blocks").set_value(2).run()
    assert not at.exception
    np.testing.assert_allclose(cells(at, "stages", 0), blocks[1].x, atol=1e-6)


def test_what_flows_through_the_first_block_waits_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    through, back = Mock(wraps=block.transformer_block), Mock(wraps=gradients.gradient_lengths)
    monkeypatch.setattr(block, "transformer_block", through)
    monkeypatch.setattr(gradients, "gradient_lengths", back)
    at = open_page(PAGE, blocks="24", present="2")
    assert "stages" in specs(at)
    assert 0 < through.call_count < 24
    assert not back.called
    open_page(PAGE, blocks="24")
    assert back.call_count == 5  # once for each line, and once more for that which rounding may decide
