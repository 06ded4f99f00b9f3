"""The positional encoding page: the lesson's picture, every scheme and switch, and sentences true of their numbers."""

import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import attention, draws, positional
from tests.pages.charts import array, cells, open_page, specs, texts
from ui import positional_words
from ui.words import number as said

PAGE = "positional_encoding"


def trace(at: AppTest, key: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the named curve of a chart."""
    found = next(data for data in specs(at)[key]["data"] if data.get("name") == name)
    y = array(found["y"])
    return array(found["x"]) if "x" in found else found["x0"] + found["dx"] * np.arange(len(y)), y


def names(at: AppTest, key: str, number: int = 0) -> list[str]:
    return specs(at)[key]["data"][number]["y"]


def case(at: AppTest, place: int) -> str:
    """The finding under the shuffle picture at this place."""
    told = ("in both orders", "changed with the order")
    return [text.value for text in at.text if any(part in text.value for part in told)][place]


def shuffled(sentence: list[str], order: list[int], scheme: str, causal: bool, d_model: int = 16) -> positional.Shuffle:
    x, w = draws.words(sentence, d_model, 0), draws.attention_weights(d_model, 0, 0.3)
    table = draws.position_table(len(sentence), d_model, 0)
    return positional.shuffle(x, w.w_q, w.w_k, w.w_v, np.array(order), scheme, table, causal=causal, slope=0.5)


def test_opens_on_the_lessons_picture(lesson):
    at = open_page(PAGE)

    chart = specs(at)["encoding"]
    np.testing.assert_allclose(cells(at, "encoding").T, lesson["positional_encoding"]["pe"], atol=1e-6)
    assert (chart["layout"]["coloraxis"]["cmin"], chart["layout"]["coloraxis"]["cmax"]) == (-1, 1)
    assert chart["layout"]["xaxis"]["title"]["text"] == "position"
    assert chart["layout"]["yaxis"]["title"]["text"] == "dimension"
    assert chart["layout"]["yaxis"]["autorange"] == "reversed"  # dimension 0 at the top, as in the lesson
    assert not at.query_params


def test_waves_pass_through_the_encoding_and_name_their_lengths():
    at = open_page(PAGE, pair="2")

    pe, chart = positional.sinusoidal(20, 16), specs(at)["waves"]
    for data, dimension in zip(chart["data"], (0, 1, 4, 5, 14, 15), strict=True):
        places = data["x0"] + data["dx"] * np.arange(len(array(data["y"])))
        np.testing.assert_allclose(places[::4], np.arange(20), atol=1e-6)
        np.testing.assert_allclose(array(data["y"])[::4], pe[:, dimension], atol=1e-6)
    titles = [note["text"] for note in chart["layout"]["annotations"]]
    assert titles[0] == "Dimensions 0–1: wavelength 6.3 positions"  # 2π
    assert titles[1] == "Dimensions 4–5: wavelength 62.8 positions"
    assert "the fastest pair of dimensions goes round 3.0 times" in texts(at)
    assert "Pair 2 is dimensions 4 and 5" in texts(at)


@pytest.mark.parametrize("scheme", ["sinusoidal", "table", "rope"])
@pytest.mark.parametrize("d_model", [2, 3, 4, 5, 6, 7, 16])
def test_a_third_panel_is_drawn_or_it_is_said_why_not(scheme: str, d_model: int) -> None:
    last = (d_model if scheme == "rope" else d_model + 1) // 2 - 1
    for pair in {0, 1, last - 1, last} & set(range(last + 1)):
        at = open_page(PAGE, scheme=scheme, d_model=str(d_model), pair=str(pair))
        panels = len(specs(at)["waves"]["layout"]["annotations"])
        drawn = f"Pair {pair} is dimensions {2 * pair} and {2 * pair + 1}" in texts(at)
        why_not = f"Pair {pair} is drawn anyway" in texts(at) or "a third one cannot be drawn" in texts(at)
        assert (drawn, why_not) == (panels == 3, panels < 3)


@pytest.mark.parametrize("head", [1, 4, 8])
def test_the_lines_of_alibi_are_counted(head: int) -> None:
    at = open_page(PAGE, scheme="alibi", alibi_head=str(head))
    lines = [data["name"] for data in specs(at)["by_offset"]["data"]]
    assert f"head {head}" in lines
    assert (f"the gentlest, and between them head {head}." in texts(at)) == (len(lines) == 3)
    assert ("head 8, the gentlest.\n" in texts(at) + "\n") == (len(lines) == 2)


def test_negative_numbers_have_a_minus_sign():
    found = positional.by_offset(np.array([[5.0, -2.434], [-2.434, 5.0]]))
    assert "With its neighbour: −2.43." in positional_words.near_and_far(found, "table", 2)[0]
    at = open_page(PAGE, scheme="table")
    assert "−" in texts(at)
    assert not re.search(r"average between .*-\d", texts(at))


def test_similarity_is_symmetric_and_not_monotone():
    at = open_page(PAGE, seq_len="50", d_model="32")

    distance, mean = trace(at, "by_offset", "mean")
    right = mean[distance >= 0]
    np.testing.assert_allclose(right[:7], [16, 15.3, 13.7, 12.3, 11.7, 11.8, 11.9], atol=0.05)
    np.testing.assert_allclose(mean, mean[::-1], atol=1e-6)
    assert "Largest at distance 0: 16.00, which is d_model / 2 = 16." in texts(at)
    assert "at distance 5 it rises again for the first time" in texts(at)
    assert "all pairs at one distance have the same similarity" in texts(at)
    assert "All encodings are 4.00 long: √(d_model / 2)." in texts(at)


def test_an_odd_width_is_told_apart():
    at = open_page(PAGE, d_model="5", seq_len="64")

    assert cells(at, "encoding").shape == (5, 64)
    assert "at the odd width 5 the last sine has no cosine" in texts(at)
    assert "√(d_model / 2)." not in texts(at)


def test_lengths_follow_the_size_of_the_embeddings():
    at = open_page(PAGE, embedding_scale="0.5")

    np.testing.assert_allclose(
        trace(at, "norms", "embedding")[1], 0.5 * positional.norms(draws.tokens(20, 16, 0)), rtol=1e-6
    )
    np.testing.assert_allclose(trace(at, "norms", "encoding")[1], np.sqrt(8), rtol=1e-6)


def test_the_shuffle_in_three_cases():
    at = open_page(PAGE)

    words = ["dog", "bites", "man"]
    cases = [("none", False), ("sinusoidal", False), ("none", True)]
    for place, (scheme, causal) in enumerate(cases):
        result = shuffled(words, [2, 1, 0], scheme, causal)
        for number, values in enumerate((result.before, result.after, result.change)):
            np.testing.assert_allclose(cells(at, f"shuffle_{place}", number), values, atol=1e-6)
        assert names(at, f"shuffle_{place}", 0) == ["1 dog", "2 bites", "3 man"]
        assert names(at, f"shuffle_{place}", 1) == ["3 man", "2 bites", "1 dog"]
    ends = [specs(at)[f"shuffle_{place}"]["layout"]["coloraxis"]["cmax"] for place in range(3)]
    largest = max(float(np.abs(cells(at, f"shuffle_{p}", number)).max()) for p in range(3) for number in range(2))
    np.testing.assert_allclose(ends, largest, rtol=1e-6)  # one scale: the cases are compared with each other
    assert "Each token has the same output in both orders." in case(at, 0)
    assert "rounding error" in case(at, 0) or "difference: 0." in case(at, 0)
    assert "changed with the order" in case(at, 1)
    assert "changed with the order" in case(at, 2)
    assert said(float(shuffled(words, [2, 1, 0], "none", True).differences.max())) in case(at, 2)


@pytest.mark.parametrize("d_model", ["16", "64"])
def test_a_difference_is_seen_however_small_beside_the_outputs_and_rounding_errors_are_not(d_model: str) -> None:
    at = open_page(PAGE, d_model=d_model)

    for place in range(3):
        figure = specs(at)[f"shuffle_{place}"]
        before, after, difference = figure["data"]
        assert before["coloraxis"] == after["coloraxis"] == "coloraxis"
        colours = figure["layout"][difference["coloraxis"]]
        largest = float(np.abs(cells(at, f"shuffle_{place}", 2)).max())
        assert (colours["cmax"], colours["colorbar"]["title"]["text"]) == (-colours["cmin"], "difference")
        if place == 0:
            assert largest < 1e-12 < colours["cmax"]
        else:
            assert colours["cmax"] == pytest.approx(largest, rel=1e-6)
        assert colours["colorbar"]["tickvals"] == [colours["cmin"], 0, colours["cmax"]]


def test_the_slowest_wave_is_told_in_words_where_it_hardly_turns() -> None:
    at = open_page(PAGE)
    assert 19 / (2 * np.pi * 10000 ** (14 / 16)) < 0.001
    assert "the slowest makes less than a thousandth of a turn." in texts(at)
    faster = positional_words.turns(positional.wavelengths(4), 20)
    assert faster.endswith(f"the slowest goes round {19 / (2 * np.pi * 100):.3f} times.")


def test_the_causal_switch_masks_the_chosen_scheme():
    at = open_page(PAGE, causal="true", permutation="rotated")

    result = shuffled(["dog", "bites", "man"], [2, 0, 1], "sinusoidal", True)
    np.testing.assert_allclose(cells(at, "shuffle_1", 1), result.after, atol=1e-6)
    assert "**Sinusoidal encoding, causal mask**" in texts(at)


def test_equal_words_that_change_places_change_nothing():
    at = open_page(PAGE, sentence="the the dog", permutation="first two swapped", causal="true")

    assert "The new order has the same word at every place, so nothing can change." in texts(at)
    assert not [key for key in specs(at) if key.startswith("shuffle")]


def test_repeated_words_still_move_with_their_tokens():
    at = open_page(PAGE, sentence="the cat saw the cat", permutation="shuffled", seed="3")

    assert sorted(names(at, "shuffle_0", 1)) == ["1 the", "2 cat", "3 saw", "4 the", "5 cat"]
    assert "Each token has the same output in both orders." in case(at, 0)


def test_alibi_does_not_tell_a_sentence_from_its_mirror_image_without_a_mask():
    at = open_page(PAGE, scheme="alibi")
    assert "read backwards" in case(at, 1)
    assert "rounding error" in case(at, 1)

    assert "changed with the order" in case(open_page(PAGE, scheme="alibi", causal="true"), 1)
    assert "changed with the order" in case(open_page(PAGE, scheme="alibi", permutation="rotated"), 1)


def test_where_am_i():
    at = open_page(PAGE)

    x = draws.tokens(20, 16, 0)
    recovered = positional.recover_positions(x, positional.sinusoidal(20, 16))
    right, wrong = trace(at, "guesses", "right"), trace(at, "guesses", "wrong")
    guessed = dict(zip(np.concatenate([right[0], wrong[0]]), np.concatenate([right[1], wrong[1]]), strict=True))
    assert [guessed[place] for place in range(20)] == recovered.positions.tolist()
    widths, shares = trace(at, "shares", "Sinusoidal encoding")
    assert widths.tolist() == [2, 4, 8, 16, 32, 64, 128]
    assert shares[3] == pytest.approx(recovered.share_right)
    assert f"{len(right[0])} of 20 tokens find the right position ({recovered.share_right:.0%})" in texts(at)


def test_the_width_of_the_page_is_on_the_curve():
    at = open_page(PAGE, d_model="11", scheme="table")

    assert 11 in trace(at, "shares", "Random table")[0]
    assert specs(at)["shares"]["layout"]["shapes"][0]["x0"] == 11


def test_the_table_is_random_and_has_no_waves():
    at = open_page(PAGE, scheme="table")

    table = draws.position_table(20, 16, 0)
    np.testing.assert_allclose(cells(at, "encoding"), table.T, atol=1e-6)
    np.testing.assert_allclose(cells(at, "pairs"), table @ table.T, atol=1e-5)
    assert "no wave and no wavelength" in texts(at)


def test_rope_turns_and_keeps_lengths():
    at = open_page(PAGE, scheme="rope", d_model="7")

    np.testing.assert_allclose(cells(at, "encoding"), positional.sinusoidal(20, 7)[:, :6].T, atol=1e-6)
    x, w = draws.tokens(20, 7, 0), draws.attention_weights(7, 0, 0.3)
    asked = attention.self_attention(x, w.w_q, w.w_k, w.w_v)
    scores = np.array(
        [
            [
                positional.rotate(asked.queries[:1], np.array([m]))[0]
                @ positional.rotate(asked.keys[-1:], np.array([k]))[0]
                for k in range(20)
            ]
            for m in range(20)
        ]
    )
    np.testing.assert_allclose(cells(at, "pairs"), scores, atol=1e-5)
    np.testing.assert_allclose(trace(at, "norms", "query")[1], trace(at, "norms", "query, turned")[1], rtol=1e-6)
    assert "the score depends on the difference of their positions alone" in texts(at)
    assert "guesses" not in specs(at)


def test_alibi_shows_the_bias_of_the_chosen_head():
    at = open_page(PAGE, scheme="alibi", alibi_head="3")

    np.testing.assert_allclose(cells(at, "encoding"), positional.alibi_bias(20, 1 / 8), atol=1e-6)
    slopes = array(specs(at)["slopes"]["data"][0]["y"])
    np.testing.assert_allclose(slopes, 0.5 ** np.arange(1, 9), rtol=1e-6)
    assert "This head has the slope 0.125." in texts(at)
    result = shuffled(["dog", "bites", "man"], [2, 1, 0], "alibi", False)
    assert not np.allclose(cells(at, "shuffle_1", 0), result.before, atol=1e-6)  # another head's slope


def test_without_encoding_the_page_says_so():
    at = open_page(PAGE, scheme="none")

    assert not cells(at, "encoding").any()
    assert "Every number is 0: all positions look alike." in texts(at)
    assert set(specs(at)) == {"encoding", "shuffle_0", "shuffle_1"}


def test_words_are_shown_as_typed():
    at = open_page(PAGE, sentence="<b>x</b> $y$ *z*", permutation="reversed")

    assert "Before: 1 <, 2 b, 3 >, 4 x" in texts(at)
    assert names(at, "shuffle_0")[0] == "1 &lt;"
    assert not at.exception


@pytest.mark.parametrize("scheme", positional.SCHEMES)
@pytest.mark.parametrize(
    "link",
    [
        {"sentence": "one", "d_model": "2"},
        {"sentence": "one one", "d_model": "3", "permutation": "shuffled"},
        {"seq_len": "2", "d_model": "2", "embedding_scale": "0.1"},
        {"seq_len": "128", "d_model": "127", "embedding_scale": "5", "pair": "63"},
        {"sentence": " ".join(f"w{i}" for i in range(70)), "d_model": "128", "causal": "true"},
    ],
    ids=["one word", "equal words", "smallest", "largest", "64 words"],
)
def test_the_ends_of_the_settings(scheme, link):
    at = open_page(PAGE, scheme=scheme, **link)

    assert not at.exception
    assert not re.search(r"\b(nan|inf)\b", texts(at))
    if "seq_len" in link or len(link["sentence"]) > 10:
        assert "Each token has the same output in both orders." in case(at, 0)
        assert "rounding error" in case(at, 0) or "difference: 0." in case(at, 0)
    else:
        assert "order" in texts(at)
