"""Scaled dot-product attention: each row of a map is one query's look at all keys."""

from collections.abc import Callable

import numpy as np
import pytest

from core import draws
from core.attention import (
    causal_mask,
    cross_attention,
    entropy,
    padding_mask,
    scaled_dot_product_attention,
    self_attention,
    softmax,
    strongest,
)

Refusal = Callable[[Callable[[], object]], str]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def by_the_book(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, may_look: np.ndarray) -> np.ndarray:
    """One query and one key at a time, straight from the equation."""
    output = np.zeros((len(queries), values.shape[1]))
    for i, query in enumerate(queries):
        parts = [np.exp(query @ key / len(query) ** 0.5) * may_look[i, j] for j, key in enumerate(keys)]
        for j, part in enumerate(parts):
            output[i] += part / sum(parts) * values[j]
    return output


# --- softmax ---------------------------------------------------------------------------------------------------------


def test_softmax_stays_in_range() -> None:
    for dtype in (np.float32, np.float64):  # exp alone overflows above 88.7 in float32
        np.testing.assert_allclose(softmax(np.array([1000, 1001], dtype)), [0.26894142, 0.73105858], rtol=1e-6)
    np.testing.assert_array_equal(softmax(np.array([1e308, -1e308])), [1, 0])
    np.testing.assert_array_equal(softmax(np.array([5e-324, 0.0])), [0.5, 0.5])


def test_softmax_of_a_row_without_anything_allowed_is_zeros() -> None:
    np.testing.assert_array_equal(softmax(np.array([[-np.inf, -np.inf], [-np.inf, 3.0]])), [[0, 0], [0, 1]])


def test_softmax_writes_where_it_is_told() -> None:
    scores = normal(3, 4)
    copy = scores.copy()
    expected = softmax(scores)
    np.testing.assert_array_equal(scores, copy)
    assert softmax(scores, out=scores) is scores
    np.testing.assert_array_equal(scores, expected)


def test_softmax_does_not_change_when_all_scores_move_together() -> None:
    scores = normal(3, 4)
    np.testing.assert_allclose(softmax(scores + 123.0), softmax(scores), rtol=1e-12)


@pytest.mark.parametrize("scores", [[], 1.0, [np.nan, 1.0], [np.inf, 1.0], [[0.0, 0.0], [0.0, np.nan]], ["a"]])
def test_softmax_refuses(scores: object, refusal: Refusal) -> None:
    assert "scores" in refusal(lambda: softmax(scores)) or "score" in refusal(lambda: softmax(scores))  # type: ignore[arg-type]


# --- the equation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_q", "n_k", "d_k", "d_v"), [(1, 1, 1, 1), (5, 5, 6, 6), (3, 7, 4, 2), (7, 3, 1, 5)])
def test_equation_by_loops(n_q: int, n_k: int, d_k: int, d_v: int) -> None:
    queries, keys, values = normal(n_q, d_k, seed=1), normal(n_k, d_k, seed=2), normal(n_k, d_v, seed=3)
    allowed = np.random.default_rng(4).random((n_q, n_k)) < 0.6
    allowed[:, 0] = True
    result = scaled_dot_product_attention(queries, keys, values, allowed)
    np.testing.assert_allclose(result.output, by_the_book(queries, keys, values, allowed), rtol=1e-12)


def test_rows_sum_to_one_and_columns_do_not() -> None:
    weights = self_attention(normal(5, 6), normal(6, 6, seed=1), normal(6, 6, seed=2), normal(6, 6, seed=3)).weights
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)
    assert np.abs(weights.sum(axis=-2) - 1).max() > 0.1


def test_rows_are_queries_and_columns_are_keys() -> None:
    keys = np.eye(3)
    queries = 100 * np.eye(3)[[1, 2]]  # the first asks for the second key, the second for the third
    weights = scaled_dot_product_attention(queries, keys, keys).weights
    np.testing.assert_allclose(weights, [[0, 1, 0], [0, 0, 1]], atol=1e-12)


def test_stages_follow_from_each_other() -> None:
    result = scaled_dot_product_attention(
        normal(4, 9, seed=1), normal(4, 9, seed=2), normal(4, 2, seed=3), causal_mask(4), temperature=2.0
    )
    np.testing.assert_allclose(result.scores, result.queries @ result.keys.T, rtol=1e-12)
    np.testing.assert_allclose(result.scaled, result.scores / (3 * 2), rtol=1e-12)
    np.testing.assert_array_equal(result.masked[result.allowed], result.scaled[result.allowed])
    assert np.isneginf(result.masked[~result.allowed]).all()
    np.testing.assert_array_equal(result.weights, softmax(result.masked))
    np.testing.assert_array_equal(result.output, result.weights @ result.values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("allowed", [None, causal_mask(4), np.zeros((4, 4), dtype=bool)])
@pytest.mark.parametrize("bias", [None, 3 * normal(4, 4, seed=4)])
def test_stages_that_are_computed_when_asked_for_are_those_the_weights_came_from(
    bias: np.ndarray | None, allowed: np.ndarray | None, dtype: type
) -> None:
    queries, keys, values = np.stack([normal(2, 4, 3, seed=seed) for seed in (1, 2, 3)]).astype(dtype)
    result = scaled_dot_product_attention(queries, keys, values, allowed, temperature=0.3, bias=bias)
    scores = queries @ keys.swapaxes(-1, -2)
    scaled = scores / (3**0.5 * 0.3) + (0 if bias is None else bias)
    np.testing.assert_array_equal(result.scores, scores)
    np.testing.assert_allclose(result.scaled, scaled, rtol=1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(result.masked, np.where(result.allowed, result.scaled, -np.inf))
    np.testing.assert_array_equal(result.weights, softmax(result.masked))
    assert result.masked.dtype == result.weights.dtype


def test_scale_is_the_root_of_the_key_width() -> None:
    d_k = 64
    queries, keys = normal(400, d_k, seed=1), normal(400, d_k, seed=2)
    result = scaled_dot_product_attention(queries, keys, keys)
    assert result.scores.var() == pytest.approx(d_k, rel=0.05)
    assert result.scaled.var() == pytest.approx(1, rel=0.05)
    plain = scaled_dot_product_attention(queries, keys, keys, scaling=False)
    np.testing.assert_array_equal(plain.scaled, plain.scores)


def test_dividing_by_more_gives_flatter_rows() -> None:
    queries, keys = normal(8, 4, seed=1), normal(8, 4, seed=2)
    levels = [0.1, 0.5, 1.0, 2.0, 8.0]
    spread = [entropy(scaled_dot_product_attention(queries, keys, keys, temperature=t).weights) for t in levels]
    assert (np.diff(spread, axis=0) > 0).all()


def test_float32_stays_float32() -> None:
    x = normal(4, 6).astype(np.float32)
    result = self_attention(x, x.T[:, :2], x.T[:, 2:], x.T)
    for name in ("queries", "scores", "scaled", "masked", "weights", "output"):
        assert getattr(result, name).dtype == np.float32, name


def test_leading_axes_are_computed_one_by_one() -> None:
    queries, keys, values = normal(2, 3, 4, seed=1), normal(2, 5, 4, seed=2), normal(2, 5, 6, seed=3)
    together = scaled_dot_product_attention(queries, keys, values)
    for i in range(2):
        alone = scaled_dot_product_attention(queries[i], keys[i], values[i])
        np.testing.assert_allclose(together.output[i], alone.output, rtol=1e-12)


def test_input_stays_as_it_was() -> None:
    arrays = queries, keys, values = [normal(3, 4, seed=s) for s in range(3)]
    copies = [array.copy() for array in arrays]
    scaled_dot_product_attention(queries, keys, values, causal_mask(3), scaling=False, bias=np.ones((3, 3)))
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_random_weights_do_not_make_tokens_look_at_themselves() -> None:
    """With random W_q ≠ W_k the diagonal is the largest of its row about one time in n."""
    n, d_model = 5, 6
    hits = []
    for seed in range(300):
        w = draws.attention_weights(d_model, seed, 0.3)
        weights = self_attention(draws.tokens(n, d_model, seed), w.w_q, w.w_k, w.w_v).weights
        hits.append(np.mean(strongest(weights) == np.arange(n)))
    assert np.mean(hits) == pytest.approx(1 / n, abs=0.05)


# --- masks -----------------------------------------------------------------------------------------------------------


def test_causal_mask_lets_nobody_look_ahead() -> None:
    np.testing.assert_array_equal(causal_mask(3), [[True, False, False], [True, True, False], [True, True, True]])
    x, w = normal(5, 4), normal(4, 4, seed=1)
    before = self_attention(x, w, w.T, w, causal_mask(5)).output
    x[3:] += 10  # later tokens change, earlier outputs do not
    after = self_attention(x, w, w.T, w, causal_mask(5)).output
    np.testing.assert_array_equal(before[:3], after[:3])
    assert np.abs(before[3:] - after[3:]).max() > 0.1


def test_padding_mask_hides_the_last_keys() -> None:
    np.testing.assert_array_equal(padding_mask(2, 4, 1), [[True, True, True, False]] * 2)
    assert padding_mask(3, 4, 0).all()
    assert not padding_mask(3, 4, 4).any()


def test_masking_comes_before_softmax() -> None:
    """Rows still sum to 1, and equal the softmax over the allowed keys alone."""
    queries, keys = normal(4, 3, seed=1), normal(4, 3, seed=2)
    allowed = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]], dtype=bool)
    weights = scaled_dot_product_attention(queries, keys, keys, allowed).weights
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)
    assert (weights[~allowed] == 0).all()
    for row, may_look, scores in zip(weights, allowed, queries @ keys.T / np.sqrt(3), strict=True):
        np.testing.assert_allclose(row[may_look], softmax(scores[may_look]), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_without_any_allowed_key_is_zeros(dtype: type) -> None:
    """Neither NaN (-inf without a guard) nor uniform (-1e9 added to float32 scores)."""
    x: np.ndarray = normal(3, 4).astype(dtype)
    allowed = np.array([[True, True, False], [False, False, False], [False, False, True]])
    result = scaled_dot_product_attention(x, x, x, allowed)
    np.testing.assert_array_equal(result.weights[1], 0)
    np.testing.assert_array_equal(result.output[1], 0)
    np.testing.assert_allclose(result.weights[[0, 2]].sum(axis=-1), 1, rtol=1e-6)


def test_a_forbidden_key_stays_forbidden_beside_the_lowest_scores() -> None:
    """Where a mask of -1e9 would lose: the allowed score is lower than that."""
    result = scaled_dot_product_attention(
        np.array([[1e10]]), np.array([[-1.0], [5.0]]), np.eye(2), np.array([[True, False]])
    )
    np.testing.assert_array_equal(result.weights, [[1, 0]])


def test_masks_broadcast() -> None:
    x = normal(2, 3, 4)
    result = scaled_dot_product_attention(x, x, x, np.array([True, False, True]))
    assert result.allowed.shape == result.weights.shape == (2, 3, 3)
    assert (result.weights[..., 1] == 0).all()


def test_bias_is_added_to_the_scaled_scores_before_the_mask() -> None:
    x, bias = normal(3, 4), normal(3, 3, seed=1)
    result = scaled_dot_product_attention(x, x, x, causal_mask(3), bias=bias)
    np.testing.assert_allclose(result.scaled, result.scores / 2 + bias, rtol=1e-12)
    np.testing.assert_array_equal(result.weights[0], [1, 0, 0])


# --- two sequences ---------------------------------------------------------------------------------------------------


def test_cross_attention_asks_from_x_and_is_answered_from_memory() -> None:
    x, memory = normal(2, 6, seed=1), normal(5, 6, seed=2)
    w_q, w_k, w_v = (normal(6, 4, seed=s) for s in (3, 4, 5))
    result = cross_attention(x, memory, w_q, w_k, w_v)
    np.testing.assert_array_equal(result.queries, x @ w_q)
    np.testing.assert_array_equal(result.keys, memory @ w_k)
    np.testing.assert_array_equal(result.values, memory @ w_v)
    assert result.weights.shape == (2, 5)  # who asks × who answers
    assert result.output.shape == (2, 4)
    assert result.allowed.all()


def test_self_attention_is_cross_attention_with_itself() -> None:
    x, w = normal(3, 4), normal(4, 4, seed=1)
    np.testing.assert_array_equal(self_attention(x, w, w.T, w).output, cross_attention(x, x, w, w.T, w).output)


# --- figures about the rows ------------------------------------------------------------------------------------------


def test_entropy_in_bits() -> None:
    rows = np.array([[1, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0, 0, 0, 0]])
    found = entropy(rows)
    np.testing.assert_allclose(found, [0, 2, 1, 0])
    assert not np.signbit(found).any()  # "0.00", never "-0.00"


def test_entropy_of_the_mean_is_not_the_mean_of_the_entropies() -> None:
    """Two sharp heads: their mean looks wide, which neither head does."""
    heads = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    np.testing.assert_array_equal(entropy(heads), 0)
    np.testing.assert_allclose(entropy(heads.mean(axis=0)), 1)


def test_strongest_takes_the_earliest_of_equal_keys() -> None:
    np.testing.assert_array_equal(strongest(np.array([[0.2, 0.4, 0.4], [0, 0, 0], [0.1, 0.2, 0.7]])), [1, 0, 2])


# --- refusals --------------------------------------------------------------------------------------------------------

ONES = np.ones((3, 4))
HUGE = np.full((2, 2), 1e200)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: scaled_dot_product_attention(ONES[:, :3], ONES, ONES),
            "queries' width 3 does not match the keys' width 4",
        ),
        (
            lambda: scaled_dot_product_attention(ONES, ONES, ONES[:2]),
            "number of keys 3 does not match the number of values 2",
        ),
        (lambda: scaled_dot_product_attention(ONES[0], ONES, ONES), "queries needs at least 2 axes and has shape (4,)"),
        (lambda: scaled_dot_product_attention(np.ones((2, 3, 4)), ONES, ONES), "leading shape (2,) does not match"),
        (lambda: scaled_dot_product_attention(ONES, ONES, ONES * np.nan), "values must hold finite numbers"),
        (lambda: scaled_dot_product_attention(HUGE, HUGE, HUGE), "the scaled scores must hold finite numbers"),
        (
            lambda: scaled_dot_product_attention(ONES, ONES, ONES, temperature=1e-320),
            "the scaled scores must hold finite",
        ),
        (
            lambda: scaled_dot_product_attention(ONES, ONES, ONES, temperature=0),
            "temperature must be a finite number above 0",
        ),
        (
            lambda: scaled_dot_product_attention(ONES, ONES, ONES, np.ones((3, 3))),
            "allowed must hold True and False, not float64",
        ),
        (
            lambda: scaled_dot_product_attention(ONES, ONES, ONES, causal_mask(4)),
            "allowed has shape (4, 4) and the scores",
        ),
        (
            lambda: scaled_dot_product_attention(ONES, ONES, ONES, np.ones((2, 3, 3), bool)),
            "allowed has shape (2, 3, 3)",
        ),
        (lambda: scaled_dot_product_attention(ONES, ONES, ONES, bias=np.ones((2, 3, 3))), "bias has shape (2, 3, 3)"),
        (
            lambda: scaled_dot_product_attention(ONES, ONES, ONES, bias=np.full((3, 3), np.nan)),
            "bias must hold finite numbers",
        ),
        (
            lambda: self_attention(ONES, ONES, ONES.T, ONES.T),
            "w_q's number of rows 3 does not match the input's width 4",
        ),
        (
            lambda: self_attention(ONES, ONES.T, ONES.T, ONES),
            "w_v's number of rows 3 does not match the input's width 4",
        ),
        (lambda: self_attention(ONES[0], ONES.T, ONES.T, ONES.T), "x needs 2 axes and has shape (4,)"),
        (
            lambda: self_attention(ONES, ONES.T, ONES.T[:, :2], ONES.T),
            "queries' width 3 does not match the keys' width 2",
        ),
        (lambda: self_attention(ONES, ONES.T[None], ONES.T, ONES.T), "w_q needs 2 axes and has shape (1, 4, 3)"),
        (lambda: cross_attention(ONES, ONES[:0], ONES.T, ONES.T, ONES.T), "memory is empty: its shape is (0, 4)"),
        (lambda: causal_mask(0), "seq_len must be a whole number of at least 1, not 0"),
        (lambda: padding_mask(3, 4, 5), "padding must lie between 0 and the 4 keys, not at 5"),
        (lambda: padding_mask(3, 4, -1), "padding must be a whole number of at least 0, not -1"),
        (lambda: padding_mask(3, 4, 1.5), "padding must be a whole number"),  # type: ignore[arg-type]
        (lambda: padding_mask(3, 0, 0), "n_keys must be a whole number of at least 1, not 0"),
        (lambda: padding_mask(0, 3, 0), "n_queries must be a whole number of at least 1, not 0"),
        (lambda: entropy(np.array([0.5, 0.5])), "weights needs at least 2 axes"),
        (lambda: strongest(np.empty((2, 0))), "weights is empty"),
    ],
)
def test_refuses(call: Callable[[], object], words: str, refusal: Refusal) -> None:
    assert words in refusal(call)
