"""Positions: the encoding of the paper, the schemes beside it, and the experiments that need them."""

from collections.abc import Callable

import numpy as np
import pytest

from core import draws
from core.attention import softmax
from core.positional import (
    PERMUTATIONS,
    SCHEMES,
    add_positions,
    alibi_bias,
    alibi_slopes,
    attend_with_positions,
    by_offset,
    changes_nothing,
    closest,
    frequencies,
    norms,
    permutation,
    recover_positions,
    rises_again,
    rotary_scores,
    rotary_waves,
    rotate,
    shares_right,
    shuffle,
    similarity,
    sinusoidal,
    wavelengths,
    waves,
)

Refusal = Callable[[Callable[[], object]], str]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


# --- sinusoidal ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_model", [1, 2, 5, 16, 33])
def test_equation_by_loops(d_model: int) -> None:
    """Both columns of a pair share the exponent 2⌊i/2⌋/d; an odd width ends with a sine."""
    encoding = sinusoidal(12, d_model)
    for position in range(12):
        for i in range(d_model):
            angle = position / 10000 ** (2 * (i // 2) / d_model)
            expected = np.sin(angle) if i % 2 == 0 else np.cos(angle)
            assert encoding[position, i] == pytest.approx(expected, abs=1e-12)


def test_every_encoding_is_equally_long() -> None:
    for d_model in (2, 16, 64, 128):
        np.testing.assert_allclose(norms(sinusoidal(128, d_model)), np.sqrt(d_model / 2), rtol=1e-12)


def test_similarity_depends_on_the_distance_alone() -> None:
    found = similarity(sinusoidal(40, 32))
    read = by_offset(found)
    np.testing.assert_allclose(read.mean[39:], found[0], atol=1e-10)
    np.testing.assert_allclose(read.mean, read.mean[::-1], atol=1e-10)
    assert read.spread < 1e-10


def test_similarity_is_largest_at_home_but_does_not_fall_steadily() -> None:
    found = similarity(sinusoidal(40, 32))[0]
    np.testing.assert_allclose(found[:7], [16, 15.3, 13.7, 12.3, 11.7, 11.8, 11.9], atol=0.05)
    assert found.argmax() == 0
    assert rises_again(found) == 5
    assert rises_again(np.array([3.0, 2, 2])) is None


def test_the_first_dimensions_turn_fastest() -> None:
    def sign_changes(column: np.ndarray) -> int:
        return int(np.count_nonzero(column[1:] * column[:-1] < 0))

    encoding = sinusoidal(50, 64)
    assert sign_changes(encoding[:, 0]) == 15
    assert sign_changes(encoding[:, 62]) == 0


def test_waves_between_whole_positions() -> None:
    np.testing.assert_array_equal(waves(np.arange(9), 6), sinusoidal(9, 6))
    np.testing.assert_allclose(waves(np.array([2.5]), 2), [[np.sin(2.5), np.cos(2.5)]])


def test_values_by_offset() -> None:
    found = by_offset(np.array([[1.0, 5.0], [7.0, 2.0]]))
    np.testing.assert_array_equal(found.offsets, [-1, 0, 1])
    np.testing.assert_array_equal(found.mean, [7, 1.5, 5])
    np.testing.assert_array_equal(found.low, [7, 1, 5])
    np.testing.assert_array_equal(found.high, [7, 2, 5])
    assert found.spread == 1


def test_the_closest_pair() -> None:
    assert closest(np.array([[0.0, 0], [3, 0], [3, 1], [9, 9]])) == (1, 2, 1.0)
    assert closest(np.array([[0.0], [1], [2]])) == (0, 1, 1.0)  # the earliest of equal ones
    assert closest(np.ones((1, 4))) is None
    first, second, distance = closest(sinusoidal(64, 2)) or (0, 0, 0)
    assert (first, second) == (0, 44)  # 44 is nearly 7 turns of 2π
    assert distance == pytest.approx(2 * np.sin((44 - 14 * np.pi) / 2))


def test_wavelengths() -> None:
    found = wavelengths(64)
    assert found.shape == (64,)
    np.testing.assert_allclose(found[:2], 2 * np.pi)
    assert (np.diff(found) >= 0).all()
    assert found[-1] == found[-2] == pytest.approx(2 * np.pi * 10000 ** (62 / 64))
    assert wavelengths(5).shape == (5,)
    np.testing.assert_allclose(wavelengths(1), [2 * np.pi])


def test_frequencies_are_angles_per_position() -> None:
    np.testing.assert_allclose(frequencies(4), [1, 0.01])
    np.testing.assert_allclose(2 * np.pi / frequencies(16), wavelengths(16)[::2])
    assert frequencies(5).shape == (3,)


# --- RoPE ------------------------------------------------------------------------------------------------------------


def test_rotation_pairs_neighbouring_dimensions() -> None:
    turned = rotate(np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 0, 0, 1.0]]))
    np.testing.assert_allclose(turned[0], [1, 0, 0, 0])
    np.testing.assert_allclose(turned[1], [np.cos(1), np.sin(1), 0, 0])
    np.testing.assert_allclose(turned[2], [0, 0, -np.sin(0.02), np.cos(0.02)])


@pytest.mark.parametrize("width", [1, 2, 5, 16])
def test_rotation_keeps_norms(width: int) -> None:
    x = normal(3, 9, width)
    turned = rotate(x)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-12)
    if width % 2:
        np.testing.assert_array_equal(turned[..., -1], x[..., -1])
    assert width == 1 or np.abs(turned - x).max() > 0.1


def test_rotated_scores_depend_on_the_difference_of_positions_alone() -> None:
    query, key = normal(1, 16, seed=1), normal(1, 16, seed=2)

    def score(m: int, n: int) -> float:
        return (rotate(query, np.array([m])) @ rotate(key, np.array([n])).T).item()

    for distance in (-7, 0, 3):
        assert score(20 + distance, 20) == pytest.approx(score(8 + distance, 8), abs=1e-12)
    assert abs(score(3, 0) - score(0, 3)) > 1e-3  # the direction counts
    assert score(5, 5) == pytest.approx((query @ key.T).item())


def test_rotary_scores_of_one_query_and_one_key_anywhere() -> None:
    query, key = normal(6, seed=1), normal(6, seed=2)
    found = rotary_scores(query, key, 5)
    for m in range(5):
        for n in range(5):
            expected = rotate(query[None], np.array([m])) @ rotate(key[None], np.array([n])).T
            assert found[m, n] == pytest.approx(expected.item(), abs=1e-12)
    assert by_offset(found).spread < 1e-12


def test_rotary_waves_are_the_angles_of_the_rotation() -> None:
    for width in (1, 4, 5):
        pairs = width // 2
        ones = np.zeros((3, width))
        ones[:, 0 : 2 * pairs : 2] = 1  # the unit vector of each pair turns to (cos, sin)
        turned = rotate(ones)
        found = rotary_waves(3, width)
        assert found.shape == (3, 2 * pairs)
        np.testing.assert_allclose(found[:, 0::2], turned[:, 1 : 2 * pairs : 2])
        np.testing.assert_allclose(found[:, 1::2], turned[:, 0 : 2 * pairs : 2])


def test_rotation_leaves_its_input_alone_and_keeps_float32() -> None:
    x = np.ones((3, 4), np.float32)
    assert rotate(x).dtype == np.float32
    np.testing.assert_array_equal(x, 1)


# --- ALiBi -----------------------------------------------------------------------------------------------------------


def slopes_of_the_authors(heads: int) -> list[float]:
    """As in github.com/ofirpress/attention_with_linear_biases, `get_slopes`."""

    def for_power_of_two(n: int) -> list[float]:
        start = 2 ** (-(2 ** -(np.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if np.log2(heads).is_integer():
        return for_power_of_two(heads)
    below = 2 ** int(np.log2(heads))
    return for_power_of_two(below) + slopes_of_the_authors(2 * below)[0::2][: heads - below]


def test_slopes_of_eight_heads() -> None:
    np.testing.assert_allclose(alibi_slopes(8), [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256])


def test_slopes_of_any_number_of_heads() -> None:
    for heads in range(1, 70):
        np.testing.assert_allclose(alibi_slopes(heads), slopes_of_the_authors(heads), rtol=1e-12)


def test_bias_grows_with_the_distance() -> None:
    np.testing.assert_allclose(alibi_bias(3, 0.5), [[0, -0.5, -1], [-0.5, 0, -0.5], [-1, -0.5, 0]])


# --- attention with positions ----------------------------------------------------------------------------------------

N, D = 6, 8
X = draws.words(["dog", "bites", "man", "and", "runs", "off"], D, 0)
W = draws.attention_weights(D, 0, 0.3)
WEIGHTS = (W.w_q, W.w_k, W.w_v)
TABLE = draws.position_table(N, D, 0)
ORDER = np.array([2, 1, 0, 5, 3, 4])


def test_each_scheme_enters_where_it_should() -> None:
    plain = attend_with_positions(X, *WEIGHTS, "none")
    np.testing.assert_array_equal(plain.queries, X @ W.w_q)
    np.testing.assert_array_equal(plain.scaled, plain.scores / np.sqrt(D))

    added = attend_with_positions(X, *WEIGHTS, "sinusoidal")
    np.testing.assert_array_equal(added.values, (X + sinusoidal(N, D)) @ W.w_v)
    table = attend_with_positions(X, *WEIGHTS, "table", draws.position_table(2 * N, D, 0))
    np.testing.assert_array_equal(table.values, (X + TABLE) @ W.w_v)

    turned = attend_with_positions(X, *WEIGHTS, "rope")
    np.testing.assert_array_equal(turned.queries, rotate(X @ W.w_q))
    np.testing.assert_array_equal(turned.keys, rotate(X @ W.w_k))
    np.testing.assert_array_equal(turned.values, X @ W.w_v)

    biased = attend_with_positions(X, *WEIGHTS, "alibi", causal=True)
    np.testing.assert_array_equal(biased.scores, plain.scores)
    np.testing.assert_allclose(biased.scaled, plain.scaled + alibi_bias(N, alibi_slopes(1)[0]), rtol=1e-12)
    assert (biased.weights[np.triu_indices(N, 1)] == 0).all()
    steep = attend_with_positions(X, *WEIGHTS, "alibi", slope=0.5)
    np.testing.assert_allclose(steep.scaled, plain.scaled + alibi_bias(N, 0.5), rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_without_positions_outputs_move_with_their_tokens(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(N)
    found = shuffle(X, *WEIGHTS, order)
    assert found.differences.max() < 1e-12
    np.testing.assert_array_equal(found.moved, found.before[order])
    assert np.abs(found.before - found.after).max() > 1e-3  # they do move


@pytest.mark.parametrize(("scheme", "least"), [("sinusoidal", 0.01), ("table", 0.01), ("rope", 0.01), ("alibi", 1e-4)])
@pytest.mark.parametrize("causal", [False, True])
def test_with_positions_they_do_not(scheme: str, least: float, causal: bool) -> None:
    assert shuffle(X, *WEIGHTS, ORDER, scheme, TABLE, causal=causal).differences.max() > least


def test_under_a_causal_mask_order_shows_without_positions() -> None:
    assert shuffle(X, *WEIGHTS, ORDER, causal=True).differences.max() > 0.01


def test_every_scheme_leaves_the_order_alone_when_nothing_is_moved() -> None:
    for scheme in SCHEMES:
        np.testing.assert_array_equal(shuffle(X, *WEIGHTS, np.arange(N), scheme, TABLE, causal=True).differences, 0)


def test_shuffle_differences_are_per_token_in_the_new_order() -> None:
    found = shuffle(X, *WEIGHTS, ORDER, "sinusoidal")
    np.testing.assert_array_equal(found.change, found.after - found.before[ORDER])
    for place, token in enumerate(ORDER):
        assert found.differences[place] == np.abs(found.after[place] - found.before[token]).max()


def test_every_kind_of_permutation_is_an_order_that_changes_something() -> None:
    assert permutation("reversed", 4, 0).tolist() == [3, 2, 1, 0]
    assert permutation("first two swapped", 4, 0).tolist() == [1, 0, 2, 3]
    assert permutation("rotated", 4, 0).tolist() == [3, 0, 1, 2]
    for kind in PERMUTATIONS:
        assert permutation(kind, 1, 0).tolist() == [0]
        for n in (2, 3, 5):
            for seed in range(20):
                order = permutation(kind, n, seed)
                assert sorted(order.tolist()) == list(range(n))
                assert order.tolist() != list(range(n))
    assert permutation("shuffled", 9, 1).tolist() == permutation("shuffled", 9, 1).tolist()


def test_equal_words_that_change_places_change_nothing() -> None:
    x = draws.words(["the", "dog", "the"], 4, 0)
    assert changes_nothing(x, np.array([2, 1, 0]))
    assert not changes_nothing(x, np.array([1, 0, 2]))


# --- where am I? -----------------------------------------------------------------------------------------------------


def test_positions_are_found_where_the_embeddings_say_nothing() -> None:
    encoding = sinusoidal(30, 16)
    found = recover_positions(np.zeros((30, 16)), encoding)
    np.testing.assert_array_equal(found.positions, np.arange(30))
    assert found.share_right == 1
    np.testing.assert_allclose(np.diagonal(found.distances), 0, atol=1e-6)


def test_distances_are_distances() -> None:
    x, encoding = normal(7, 6), sinusoidal(7, 6)
    found = recover_positions(x, encoding)
    expected = np.linalg.norm((x + encoding)[:, None] - encoding, axis=-1)
    np.testing.assert_allclose(found.distances, expected, rtol=1e-9)
    np.testing.assert_array_equal(found.positions, expected.argmin(axis=1))
    assert found.share_right == np.mean(expected.argmin(axis=1) == np.arange(7))


def test_large_embeddings_drown_the_encoding_and_width_helps() -> None:
    def share(d_model: int, size: float) -> float:
        return recover_positions(draws.tokens(40, d_model, 0) * size, sinusoidal(40, d_model)).share_right

    assert share(64, 0.1) == 1
    assert share(64, 30.0) < 0.3
    assert share(128, 1.0) > share(4, 1.0)
    shares = shares_right([4, 128], lambda d: draws.tokens(40, d, 0), lambda d: sinusoidal(40, d))
    np.testing.assert_array_equal(shares, [share(4, 1.0), share(128, 1.0)])


def test_sequences_of_one_token() -> None:
    x, w = normal(1, 4), normal(4, 4)
    for scheme in SCHEMES:
        found = shuffle(x, w, w.T, w, np.array([0]), scheme, normal(1, 4))
        np.testing.assert_array_equal(found.differences, [0])
    assert recover_positions(x, sinusoidal(1, 4)).share_right == 1
    np.testing.assert_array_equal(softmax(similarity(sinusoidal(1, 4))), [[1]])


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sinusoidal(0, 4), "seq_len must be a whole number of at least 1, not 0"),
        (lambda: sinusoidal(4, 0), "d_model must be a whole number of at least 1, not 0"),
        (lambda: sinusoidal(5.0, 4), "seq_len must be a whole number of at least 1, not 5.0"),  # type: ignore[arg-type]
        (lambda: frequencies(0), "d_model must be"),
        (lambda: wavelengths(0), "d_model must be"),
        (lambda: similarity(np.ones(3)), "encoding needs 2 axes and has shape (3,)"),
        (lambda: similarity(np.ones((2, 3, 4))), "encoding needs 2 axes"),
        (lambda: norms(np.array([[np.nan]])), "rows must hold finite numbers"),
        (lambda: rotate(np.ones(3)), "x needs at least 2 axes"),
        (lambda: rotate(X, np.arange(3)), "positions has shape (3,) and needs 6 numbers"),
        (lambda: rotate(X, np.full(N, np.nan)), "positions must hold finite numbers"),
        (lambda: alibi_slopes(0), "heads must be a whole number of at least 1, not 0"),
        (lambda: alibi_bias(0, 1.0), "seq_len must be"),
        (lambda: alibi_bias(3, np.nan), "slope must be a finite number, not nan"),
        (
            lambda: attend_with_positions(X, *WEIGHTS, "learned"),
            "learned is none of the schemes none, sinusoidal, table",
        ),
        (lambda: add_positions(X, "learned"), "learned is none of the schemes"),
        (lambda: add_positions(X, "table"), "needs a table of encodings"),
        (lambda: add_positions(X, "table", TABLE[:3]), "table's rows and width (3, 8) does not match x's (6, 8)"),
        (lambda: add_positions(X, "table", TABLE[:, :1]), "table's rows and width (6, 1) does not match x's (6, 8)"),
        (lambda: add_positions(X, "table", TABLE * np.nan), "table must hold finite numbers"),
        (lambda: add_positions(X[0], "sinusoidal"), "x needs 2 axes and has shape (8,)"),
        (lambda: add_positions(X[None], "sinusoidal"), "x needs 2 axes and has shape (1, 6, 8)"),
        (lambda: attend_with_positions(X, W.w_q[:3], W.w_k, W.w_v, "none"), "w_q's number of rows 3 does not match"),
        (lambda: attend_with_positions(X, W.w_q, W.w_k[:, :3], W.w_v, "none"), "queries' width 8 does not match"),
        (lambda: shuffle(X, *WEIGHTS, np.arange(5)), "[0, 1, 2, 3, 4] is not an order of 6 tokens"),
        (lambda: shuffle(X, *WEIGHTS, np.array([0, 0, 1, 2, 3, 4])), "is not an order of 6 tokens"),
        (lambda: shuffle(X, *WEIGHTS, np.arange(6.0)), "is not an order of 6 tokens"),
        (lambda: shuffle(X[:2], *WEIGHTS, np.array([False, True])), "[False, True] is not an order of 2 tokens"),
        (lambda: shuffle(X, *WEIGHTS, np.arange(6)[None]), "is not an order of 6 tokens"),
        (lambda: shuffle(X, *WEIGHTS, np.array(3)), "3 is not an order of 6 tokens"),
        (lambda: waves(np.array([np.nan]), 4), "positions must hold finite numbers"),
        (lambda: waves(np.array([]), 4), "positions is empty"),
        (lambda: closest(X[0]), "encoding needs 2 axes"),
        (lambda: by_offset(np.ones((2, 3))), "number of rows 2 does not match the number of columns 3"),
        (lambda: rotary_scores(np.ones(3), np.ones(4), 5), "query's shape (3,) does not match the key's shape (4,)"),
        (lambda: rotary_scores(np.ones(3), np.ones(3), 0), "seq_len must be"),
        (
            lambda: permutation("sorted", 3, 0),
            "sorted is none of the orders reversed, first two swapped, rotated, shuffled",
        ),
        (lambda: permutation("rotated", 0, 0), "the number of tokens must be"),
        (lambda: permutation("shuffled", 3, -1), "the seed must be"),
        (lambda: changes_nothing(X, np.arange(3)), "is not an order of 6 tokens"),
        (lambda: recover_positions(X, TABLE[:3]), "number of encodings 3 does not match the number of tokens 6"),
        (lambda: recover_positions(X, TABLE[:, :1]), "encodings' width 1 does not match the embeddings' width 8"),
        (lambda: recover_positions(X[None], TABLE), "x needs 2 axes"),
    ],
)
def test_refuses(call: Callable[[], object], words: str, refusal: Refusal) -> None:
    assert words in refusal(call)
