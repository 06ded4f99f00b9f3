"""The self-attention page: the lesson's numbers, every switch, and sentences that are true of their numbers."""

import numpy as np
import pytest

from core import attention, draws
from tests.pages.charts import array, cells, open_page, specs, texts


def table(at, alt):
    """The first table of the page with this description."""
    return next(frame.value for frame in at.dataframe if frame.proto.alt == alt)


def test_opens_on_the_lessons_weights(lesson):
    at = open_page("self_attention")

    np.testing.assert_allclose(cells(at, "map"), lesson["self_attention"]["weights"], atol=1e-6)
    np.testing.assert_allclose(cells(at, "stage_X"), lesson["self_attention"]["X"], atol=1e-6)
    assert "Output" not in [frame.proto.alt for frame in at.dataframe]  # made when the expander is opened
    at.session_state["numbers"] = True
    at.run()
    np.testing.assert_allclose(table(at, "Output").to_numpy(), lesson["self_attention"]["output"], atol=1e-12)


@pytest.mark.parametrize(
    ("stage", "chart", "name"),
    [
        ("projections", "stage_Q", "Q"),
        ("projections", "stage_K", "K"),
        ("projections", "stage_V", "V"),
        ("scaling", "stage_scaled", "scores"),  # the lesson calls the scaled scores scores
        ("softmax", "stage_weights", "weights"),
        ("output", "stage_output", "output"),
    ],
)
def test_each_stage_shows_the_lessons_matrix(lesson, stage, chart, name):
    at = open_page("self_attention", stage=stage)

    np.testing.assert_allclose(cells(at, chart), lesson["self_attention"][name], atol=1e-6)


def test_next_and_previous_walk_the_stages_and_the_link_follows():
    at = open_page("self_attention")

    at.button(key="self_attention_next").click().run()
    assert at.button_group(key="stage").value == "projections"
    assert at.query_params["stage"] == "projections"
    at.button(key="self_attention_previous").click().run()
    assert "stage_X" in specs(at)


def test_both_sequences_share_one_colour_scale() -> None:
    at = open_page("self_attention", cross="true")
    ends = [specs(at)[key]["layout"]["coloraxis"]["cmax"] for key in ("stage_X", "stage_S")]
    largest = max(float(np.abs(cells(at, key)).max()) for key in ("stage_X", "stage_S"))
    np.testing.assert_allclose(ends, largest, rtol=1e-6)


def test_all_stages_at_once():
    at = open_page("self_attention", stage="all")

    assert {key for key in specs(at) if key.startswith("stage_")} == {
        f"stage_{name}" for name in ("X", "Q", "K", "V", "scores", "scaled", "masked", "weights", "output")
    }


def test_the_causal_mask_leaves_the_upper_triangle_empty():
    at = open_page("self_attention", causal="true", stage="mask")

    weights = cells(at, "map")
    assert np.all(weights[np.triu_indices(5, 1)] == 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
    assert "10 of 25 cells" in texts(at)
    assert np.isnan(cells(at, "stage_masked")[0, 1])


def test_first_token_on_top_and_first_key_on_the_left():
    layout = specs(open_page("self_attention", causal="true"))["map"]["layout"]

    assert layout["yaxis"]["autorange"] == "reversed"
    assert layout["xaxis"]["title"]["text"] == "key token"
    assert layout["yaxis"]["title"]["text"] == "query token"


def test_padding_of_the_whole_sequence_gives_zeros_and_says_so():
    at = open_page("self_attention", padding="5")

    assert not cells(at, "map").any()
    assert "every row is all zeros" in texts(at)
    assert not at.exception


def test_without_scaling_the_scores_are_not_divided(lesson):
    at = open_page("self_attention", scaling="false", stage="scaling")

    np.testing.assert_allclose(
        cells(at, "stage_scaled"), np.array(lesson["self_attention"]["scores"]) * np.sqrt(6), atol=1e-5
    )


def test_temperature_flattens():
    cold, warm = (cells(open_page("self_attention", temperature=t), "map") for t in ("0.5", "5.0"))

    assert attention.entropy(warm.astype(float)).min() > attention.entropy(cold.astype(float)).max()


def test_cross_attention_may_be_wide_and_has_no_causal_mask():
    at = open_page("self_attention", cross="true", source="die Katze sah den Hund und lief", causal="true")

    weights = cells(at, "map")
    assert weights.shape == (5, 7)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
    assert (weights > 0).all()


def test_the_bars_are_the_chosen_row_and_the_table_adds_up_to_its_output(lesson):
    at = open_page("self_attention", query="4")

    np.testing.assert_allclose(
        array(specs(at)["row"]["data"][0]["y"]), lesson["self_attention"]["weights"][3], atol=1e-6
    )
    shown = table(at, "Weights and values").drop(columns="row").to_numpy()
    weights, values, output = shown[:-1, 0], shown[:-1, 1:], shown[-1, 1:]
    np.testing.assert_allclose(weights, lesson["self_attention"]["weights"][3], atol=1e-12)
    np.testing.assert_allclose(weights @ values, output, atol=1e-12)
    np.testing.assert_allclose(output, lesson["self_attention"]["output"][3], atol=1e-12)
    assert shown[-1, 0] == pytest.approx(1)
    assert "Token 4 looks most at token 3: 0.28." in texts(at)


def test_a_sum_by_hand_that_comes_out_otherwise_is_told_with_the_reason():
    differs, agrees = (texts(open_page("self_attention", query=query)) for query in ("1", "3"))
    assert "with these rounded numbers it is −0.988. The page computes with all digits: −0.987." in differs
    assert "these rounded numbers" not in agrees


def test_the_bits_beside_the_map_are_explained():
    for page in ("self_attention", "multi_head_attention"):
        assert "*bits* is the entropy of a row: 0 where one key takes all" in texts(open_page(page))


def test_repeated_words_stay_apart_and_have_the_same_row_without_positions():
    at = open_page("self_attention", sentence="the cat saw the dog")

    spec = specs(at)["map"]
    assert spec["layout"]["xaxis"]["ticktext"] == ["1 the", "2 cat", "3 saw", "4 the", "5 dog"]
    weights = cells(at, "map")
    assert weights.shape == (5, 5)
    np.testing.assert_allclose(weights[0], weights[3], atol=1e-7)


def test_markup_in_a_sentence_is_shown_as_typed():
    at = open_page("self_attention", sentence="<b> $x$ *a* :red[x]")

    ticks = specs(at)["map"]["layout"]["xaxis"]["ticktext"]
    assert ticks[:3] == ["1 &lt;", "2 b", "3 &gt;"]  # Plotly reads labels as HTML: escaped is as typed
    assert "Token 1 “<”" in "\n".join(text.value for text in at.text)
    assert "“<”" not in "\n".join(element.value for element in at.markdown)


def test_dates_are_words_on_a_category_axis():
    axis = specs(open_page("self_attention", sentence="2026-11-29 2026-11-30"))["map"]["layout"]["xaxis"]

    assert axis["type"] == "category"
    assert axis["ticktext"] == ["1 2026-11-29"[:9] + "…", "2 2026-11-30"[:9] + "…"]


def test_a_longer_sequence_keeps_the_rows_and_the_weights():
    short, long = (cells(open_page("self_attention", seq_len=n, stage="scores"), "stage_scores") for n in ("5", "12"))

    np.testing.assert_array_equal(long[:5, :5], short)


def test_no_numbers_in_the_cells_beyond_twelve_tokens():
    assert "texttemplate" in specs(open_page("self_attention", seq_len="12"))["map"]["data"][0]
    assert "texttemplate" not in specs(open_page("self_attention", seq_len="13"))["map"]["data"][0]


@pytest.mark.parametrize("sentence", ["dog", "dog dog", "word " * 64, "x" * 300])
def test_short_long_and_repeated_sentences(sentence):
    at = open_page("self_attention", sentence=sentence, d_model="8")

    assert not at.exception
    n = len(sentence.split())
    expected = attention.self_attention(
        draws.words(tuple(sentence.split()), 8, 0),
        *(getattr(draws.attention_weights(8, 0, 0.3), f"w_{p}") for p in "qkv"),
    )
    np.testing.assert_allclose(cells(at, "map"), expected.weights, atol=1e-6)
    assert cells(at, "map").shape == (n, n)
