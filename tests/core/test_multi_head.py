"""Several heads beside each other: how they are cut, joined, switched off and described."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import draws
from core.attention import causal_mask, entropy, scaled_dot_product_attention
from core.multi_head import (
    EXAMPLE,
    Layer,
    _one_back,
    attend,
    built_heads,
    example_sentence,
    head_statistics,
    mean_of_heads,
    merge_heads,
    multi_head_attention,
    random_heads,
    same_word_share,
    split_heads,
    splits,
    switch_off,
    uniform_weights,
)
from core.positional import sinusoidal

Refusal = Callable[[Callable[[], object]], str]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


N, D = 5, 12
X = normal(N, D)
W = draws.attention_weights(D, 1, 0.3)
WEIGHTS = (W.w_q, W.w_k, W.w_v, W.w_o)
B: dict[str, Any] = {name: normal(D, seed=seed) for seed, name in enumerate(("b_q", "b_k", "b_v", "b_o"))}


# --- split and merge -------------------------------------------------------------------------------------------------


def test_a_head_gets_its_slice_of_the_columns() -> None:
    """reshape(heads, n, d_k) alone would mix tokens, and the rows would still sum to 1."""
    split = split_heads(X, 3)
    assert split.shape == (3, N, 4)
    for head in range(3):
        np.testing.assert_array_equal(split[head], X[:, 4 * head : 4 * (head + 1)])


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 12])
def test_merging_undoes_splitting(heads: int) -> None:
    np.testing.assert_array_equal(merge_heads(split_heads(X, heads)), X)


# --- the computation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 12])
def test_heads_one_by_one(heads: int) -> None:
    """Each head is attention with its columns of the matrices; their outputs side by side go through W_O."""
    allowed, d_k = causal_mask(N), D // heads
    result = multi_head_attention(X, *WEIGHTS, heads, allowed=allowed, **B)
    outputs = []
    for head in range(heads):
        columns = slice(head * d_k, (head + 1) * d_k)
        alone = scaled_dot_product_attention(
            X @ W.w_q[:, columns] + B["b_q"][columns],
            X @ W.w_k[:, columns] + B["b_k"][columns],
            X @ W.w_v[:, columns] + B["b_v"][columns],
            allowed,
        )
        np.testing.assert_allclose(result.heads.weights[head], alone.weights, rtol=1e-10)
        outputs.append(alone.output)
    np.testing.assert_allclose(result.concatenated, np.concatenate(outputs, axis=1), rtol=1e-10)
    np.testing.assert_allclose(result.output, np.concatenate(outputs, axis=1) @ W.w_o + B["b_o"], rtol=1e-10)


def test_each_head_divides_by_the_root_of_its_own_width() -> None:
    """512 wide with 8 heads: 8, not √512. With independent queries and keys, scores of variance 64 become 1."""
    x = normal(8, 512)
    heads = multi_head_attention(x, normal(512, 512, seed=1), normal(512, 512, seed=2), np.eye(512), None, 8).heads
    np.testing.assert_allclose(heads.scaled, heads.scores / 8, rtol=1e-12)
    unscaled = multi_head_attention(X, *WEIGHTS, 3, scaling=False).heads
    np.testing.assert_array_equal(unscaled.scaled, unscaled.scores)


def test_rows_of_every_head_sum_to_one() -> None:
    np.testing.assert_allclose(multi_head_attention(X, *WEIGHTS, 4).heads.weights.sum(axis=-1), 1, rtol=1e-12)


def test_without_w_o_the_output_is_the_concatenation() -> None:
    result = multi_head_attention(X, W.w_q, W.w_k, W.w_v, None, 3, **B)
    np.testing.assert_array_equal(result.output, result.concatenated)


def test_each_head_can_have_its_own_mask() -> None:
    allowed = np.stack([causal_mask(N), np.ones((N, N), dtype=bool)])
    weights = multi_head_attention(X, *WEIGHTS, 2, allowed=allowed).heads.weights
    assert (weights[0][~causal_mask(N)] == 0).all()
    assert (weights[1] > 0).all()


def test_float32_stays_float32() -> None:
    x, w = X.astype(np.float32), W.w_q.astype(np.float32)
    result = multi_head_attention(x, w, w.T, w, w, 3, keep=[True, False, True])
    assert result.output.dtype == result.concatenated.dtype == result.heads.weights.dtype == np.float32


# --- switching heads off ---------------------------------------------------------------------------------------------


def test_a_head_is_switched_off_before_w_o() -> None:
    """The output loses that head's share; zeroing its columns after W_O would be something else."""
    whole = multi_head_attention(X, *WEIGHTS, 3, **B)
    without = multi_head_attention(X, *WEIGHTS, 3, keep=[False, True, True], **B)
    columns = slice(0, 4)
    np.testing.assert_array_equal(without.concatenated[:, columns], 0)
    share = whole.heads.output[0] @ W.w_o[columns]
    np.testing.assert_allclose(without.output, whole.output - share, atol=1e-12)
    assert np.abs(without.output[:, columns]).min() > 0
    np.testing.assert_array_equal(without.heads.output, whole.heads.output)  # what the head does is still there to see


def test_all_heads_off_leaves_the_bias_alone() -> None:
    result = multi_head_attention(X, *WEIGHTS, 3, keep=[False] * 3, **B)
    np.testing.assert_allclose(result.output, np.tile(B["b_o"], (N, 1)))


@pytest.mark.parametrize("keep", [[True, True, True], [True, True, False], [False, False, False]])
def test_switching_off_afterwards_is_the_same_as_leaving_out(keep: list[bool]) -> None:
    whole = multi_head_attention(X, *WEIGHTS, 3)
    found = switch_off(whole, W.w_o, keep)
    np.testing.assert_allclose(found.output, multi_head_attention(X, *WEIGHTS, 3, keep=keep).output, atol=1e-12)
    np.testing.assert_allclose(found.change, found.output - whole.output, atol=1e-12)
    np.testing.assert_allclose(found.sizes, np.linalg.norm(found.change, axis=1))
    np.testing.assert_allclose(found.full_sizes, np.linalg.norm(whole.output, axis=1))


# --- statistics ------------------------------------------------------------------------------------------------------


def test_statistics_of_heads_with_one_habit() -> None:
    on_itself = np.eye(4)
    on_previous = np.eye(4, k=-1)
    on_previous[0, 0] = 1
    on_first = np.zeros((4, 4))
    on_first[:, 0] = 1
    found = head_statistics(np.stack([on_itself, on_previous, on_first, np.full((4, 4), 0.25)]))
    np.testing.assert_allclose(found.entropy, [0, 0, 0, 2])
    np.testing.assert_allclose(found.on_itself, [1, 0.25, 0.25, 0.25])
    np.testing.assert_allclose(found.on_previous, [0, 1, 1 / 3, 0.25])
    np.testing.assert_allclose(found.on_first, [0.25, 0.5, 1, 0.25])
    np.testing.assert_allclose(found.distance, [0, 3 / 4, 6 / 4, (6 + 4 + 4 + 6) / 16])


def test_statistics_of_one_token() -> None:
    found = head_statistics(np.ones((2, 1, 1)))
    for name, expected in {"entropy": 0, "distance": 0, "on_itself": 1, "on_previous": 0, "on_first": 1}.items():
        np.testing.assert_array_equal(getattr(found, name), [expected] * 2, err_msg=name)


def test_the_mean_of_the_heads_is_no_heads_map() -> None:
    heads = np.array([[[0.0, 1, 0]], [[0.0, 0, 1]]])
    found = mean_of_heads(heads)
    np.testing.assert_array_equal(found.weights, [[0, 0.5, 0.5]])
    np.testing.assert_array_equal(found.distances, [0.5, 0.5])
    np.testing.assert_array_equal(mean_of_heads(heads[[0, 0]]).distances, [0, 0])
    assert entropy(heads).max() == 0
    assert entropy(found.weights) == pytest.approx(1)


def test_share_of_the_same_word() -> None:
    maps = np.stack([np.eye(3), np.full((3, 3), 1 / 3)])
    np.testing.assert_allclose(same_word_share(maps, ["the", "cat", "the"]), [1, (2 + 1 + 2) / 9])


def test_uniform_weights_are_equal_where_looking_is_allowed() -> None:
    allowed = np.array([[True, False, False], [True, True, False], [False, False, False]])
    np.testing.assert_array_equal(uniform_weights(allowed), [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]])


# --- layers ----------------------------------------------------------------------------------------------------------


def test_a_layer_attends_to_its_own_input() -> None:
    layer = random_heads(X, W, 3)
    np.testing.assert_array_equal(attend(layer).output, multi_head_attention(X, *WEIGHTS, 3).output)
    masked = attend(layer, causal_mask(N)).output
    np.testing.assert_array_equal(masked, multi_head_attention(X, *WEIGHTS, 3, allowed=causal_mask(N)).output)
    biased = Layer(X, *WEIGHTS, B["b_q"], layer.names)
    np.testing.assert_array_equal(attend(biased).output, multi_head_attention(X, *WEIGHTS, 3, b_q=B["b_q"]).output)


def test_heads_do_not_change_the_number_of_parameters() -> None:
    rows = splits(W)
    assert [row.heads for row in rows] == [1, 2, 3, 4, 6, 12]
    assert {row.total for row in rows} == {4 * D * D}
    for row in rows:
        assert row.heads * row.d_k == D
        assert row.heads * row.one_head == row.total


def test_example_sentence_has_any_length() -> None:
    assert example_sentence(3) == EXAMPLE[:3]
    assert example_sentence(64)[len(EXAMPLE) :][: len(EXAMPLE)] == EXAMPLE
    assert len(example_sentence(64)) == 64


# --- heads built by hand ---------------------------------------------------------------------------------------------

WORDS = [f"word{i}" for i in range(64)]


@pytest.mark.parametrize("width", [2, 3, 8, 17, 64])
def test_turning_an_encoding_back_gives_the_position_before(width: int) -> None:
    paired = width - width % 2
    encoding = np.zeros((65, width))
    encoding[:, :paired] = sinusoidal(65, paired)
    np.testing.assert_allclose(encoding[1:] @ _one_back(width), encoding[:-1], atol=1e-12)
    if width == paired:  # and keeps lengths: it is a rotation
        np.testing.assert_allclose(_one_back(width) @ _one_back(width).T, np.eye(width), atol=1e-12)


@pytest.mark.parametrize("d_model", [16, 18, 32, 64])
@pytest.mark.parametrize("n", [1, 2, 11, 64])
@pytest.mark.parametrize("seed", [0, 1])
def test_built_heads_do_what_their_names_say(d_model: int, n: int, seed: int) -> None:
    built = built_heads(WORDS[:n], d_model, seed)
    assert built.names == ("previous token", "first token", "same word")
    previous, first, same = attend(built).heads.weights
    places = np.arange(n)
    assert (previous[places[1:], places[:-1]] > 0.95).all()
    assert (first[:, 0] > 0.95).all()
    assert (same[places, places] > 0.9).all()  # all words differ here


def test_the_same_word_head_shares_among_repetitions() -> None:
    sentence = ["the", "dog", "saw", "the", "cat", "and", "the", "cat", "ran"]
    weights = attend(built_heads(sentence, 16, 0)).heads.weights[2]
    for i, word in enumerate(sentence):
        for j, other in enumerate(sentence):
            expected = (word == other) / sentence.count(word)
            assert weights[i, j] == pytest.approx(expected, abs=0.01)


def test_with_few_dimensions_distant_positions_look_alike() -> None:
    for n, told_apart in ((5, True), (11, True), (64, False)):
        previous, first, _ = attend(built_heads(WORDS[:n], 4, 0)).heads.weights
        assert (np.diagonal(previous, -1).min() > 0.95) == told_apart
        assert (first[:, 0].min() > 0.95) == told_apart


def test_a_perfect_match_scores_the_sharpness() -> None:
    scaled = attend(built_heads(WORDS[:6], 16, 0, sharpness=7.0)).heads.scaled
    np.testing.assert_allclose(np.diagonal(scaled[0], -1), 7)
    np.testing.assert_allclose(scaled[1][:, 0], 7)
    np.testing.assert_allclose(np.diagonal(scaled[2]), 7)
    assert scaled.max() < 7 + 1e-9


def test_a_built_input_is_a_word_half_and_a_position_half() -> None:
    built = built_heads(["a", "b", "a"], 16, 0)
    np.testing.assert_array_equal(built.x[0, :8], built.x[2, :8])
    np.testing.assert_allclose(np.linalg.norm(built.x[:, :8], axis=1), np.sqrt(8))
    np.testing.assert_array_equal(built.x[:, 8:], sinusoidal(3, 8))
    assert attend(built).output.shape == (3, 16)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split_heads(np.ones((3, 10)), 4), "d_model 10 is not divisible by 4 heads"),
        (lambda: split_heads(X, 0), "the number of heads must be a whole number of at least 1, not 0"),
        (lambda: split_heads(X, 2.0), "the number of heads must be a whole number"),  # type: ignore[arg-type]
        (lambda: split_heads(X, 10**12), "d_model 12 is not divisible by 1000000000000 heads"),
        (lambda: split_heads(X[0], 2), "x needs 2 axes and has shape (12,)"),
        (lambda: merge_heads(X), "x needs 3 axes and has shape (5, 12)"),
        (lambda: multi_head_attention(X, *WEIGHTS, 7), "d_model 12 is not divisible by 7 heads"),
        (lambda: multi_head_attention(X[0], *WEIGHTS, 3), "x needs 2 axes and has shape (12,)"),
        (lambda: multi_head_attention(X[None], *WEIGHTS, 3), "x needs 2 axes and has shape (1, 5, 12)"),
        (lambda: multi_head_attention(X[:0], *WEIGHTS, 3), "x is empty: its shape is (0, 12)"),
        (lambda: multi_head_attention(X * np.inf, *WEIGHTS, 3), "x must hold finite numbers"),
        (
            lambda: multi_head_attention(X, W.w_q[:3], *WEIGHTS[1:], 3),
            "w_q's number of rows 3 does not match the input's width 12",
        ),
        (
            lambda: multi_head_attention(X, W.w_q[:, :9], *WEIGHTS[1:], 3),
            "queries' width 3 does not match the keys' width 4",
        ),
        (
            lambda: multi_head_attention(X, *WEIGHTS[:3], W.w_o[:4], 3),
            "w_o's number of rows 4 does not match the input's width 12",
        ),
        (lambda: multi_head_attention(X, *WEIGHTS[:3], W.w_o[0], 3), "w_o needs 2 axes"),
        (lambda: multi_head_attention(X, *WEIGHTS, 3, b_q=np.ones(4)), "b_q has shape (4,) and needs 12 numbers"),
        (
            lambda: multi_head_attention(X, *WEIGHTS, 3, b_v=np.ones((N, D))),
            "b_v has shape (5, 12) and needs 12 numbers",
        ),
        (lambda: multi_head_attention(X, *WEIGHTS, 3, b_o=np.nan), "b_o must hold finite numbers"),
        (lambda: multi_head_attention(X, *WEIGHTS, 3, allowed=np.ones((2, N, N), bool)), "allowed has shape (2, 5, 5)"),
        (lambda: multi_head_attention(X, *WEIGHTS, 3, allowed=np.ones((N, N))), "allowed must hold True and False"),
        (lambda: multi_head_attention(X, *WEIGHTS, 3, keep=[True]), "keep must be True or False for each of 3 heads"),
        (
            lambda: multi_head_attention(X, *WEIGHTS, 3, keep=[1, 0, 2]),  # type: ignore[list-item]
            "keep must be True or False for each of 3 heads",
        ),
        (lambda: head_statistics(np.ones((3, 3))), "weights needs 3 axes and has shape (3, 3)"),
        (lambda: head_statistics(np.ones((2, 3, 4))), "number of queries 3 does not match the number of keys 4"),
        (lambda: head_statistics(np.full((1, 2, 2), np.nan)), "weights must hold finite numbers"),
        (lambda: random_heads(X, W, 5), "d_model 12 is not divisible by 5 heads"),
        (
            lambda: switch_off(multi_head_attention(X, *WEIGHTS, 3), W.w_o, [True]),
            "keep must be True or False for each of 3",
        ),
        (
            lambda: switch_off(multi_head_attention(X, *WEIGHTS, 3), W.w_o[:3], [True] * 3),
            "w_o's number of rows 3 does not match",
        ),
        (lambda: mean_of_heads(np.ones((3, 3))), "weights needs 3 axes and has shape (3, 3)"),
        (
            lambda: same_word_share(np.ones((1, 2, 2)), ["a"]),
            "maps' size (2, 2) does not match the number of words (1, 1)",
        ),
        (lambda: uniform_weights(np.ones((2, 2))), "allowed must hold True and False, not float64"),
        (lambda: example_sentence(0), "seq_len must be"),
        (lambda: built_heads([], 8, 0), "A sentence needs at least one word"),
        (lambda: built_heads(["a"], 2, 0), "d_model must be a whole number of at least 4, not 2"),
        (lambda: built_heads(["a"], 9, 0), "d_model 9 is odd"),
        (lambda: built_heads(["a"], 8, -1), "seed must be"),
        (lambda: built_heads(["a"], 8, 0, sharpness=np.inf), "sharpness must be a finite number, not inf"),
    ],
)
def test_refuses(call: Callable[[], object], words: str, refusal: Refusal) -> None:
    assert words in refusal(call)
