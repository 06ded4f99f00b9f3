"""The transformer block: its stages by the formulas, its switches, and the numbers that are counted about it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from core import draws
from core.block import (
    Block,
    Settings,
    attention_parameters,
    batch_norm,
    block_parameters,
    depth,
    feed_forward,
    final_norm,
    gelu,
    gelu_tanh,
    layer_norm,
    mean_and_spread,
    norm_inputs_and_outputs,
    relu,
    stack,
    tensors,
    transformer_block,
)
from core.draws import AttentionWeights, FeedForwardWeights
from core.multi_head import multi_head_attention
from core.recurrence import costs

Refusal = Callable[[Callable[[], object]], str]

N, D, D_FF = 5, 8, 12
X = draws.tokens(N, D, 1)
ATTENTION, FEED = draws.block_weights(D, D_FF, 1, 0.3)
FEED = replace(FEED, b_1=np.linspace(-1, 1, D_FF), b_2=np.linspace(1, 2, D))

EVERY_SETTING = [
    Settings(heads, residual, norm, order, activation, output_projection, causal)
    for heads, residual, norm, order, activation, output_projection, causal in product(
        (1, 4),
        (True, False),
        (True, False),
        ("post-norm", "pre-norm"),
        ("relu", "gelu"),
        (True, False),
        (True, False),
    )
]


def named(settings: Settings) -> str:
    """What a test of these settings is called: the switches that are on."""
    return "-".join(str(value) if value is not True else name for name, value in vars(settings).items() if value)


# --- norms -----------------------------------------------------------------------------------------------------------


def test_layer_norm_divides_by_the_biased_deviation() -> None:
    """[1, 0, 0, 0]: with n - 1 in the variance the first number would be 1.5."""
    found = layer_norm(np.array([[1.0, 0, 0, 0]]), eps=1e-15)
    np.testing.assert_allclose(found, [[1.7320508, -0.5773503, -0.5773503, -0.5773503]], rtol=1e-6)


def test_eps_stands_inside_the_root() -> None:
    """Of numbers ±1 the variance is 1: 1/√(1 + 3) inside, 1/(1 + 3) or 1/(1 + √3) outside."""
    np.testing.assert_allclose(layer_norm(np.array([[1.0, -1.0]]), eps=3.0), [[0.5, -0.5]])


def test_layer_norm_looks_at_each_token_alone() -> None:
    found = layer_norm(X)
    mean, spread = mean_and_spread(found)
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(spread, 1, rtol=1e-5)
    np.testing.assert_array_equal(layer_norm(X[2:3]), found[2:3])
    np.testing.assert_allclose(layer_norm(100 * X + 7), found, atol=1e-5)


def test_gain_and_bias_come_after() -> None:
    gain, bias = np.arange(1.0, D + 1), np.arange(D)
    np.testing.assert_allclose(layer_norm(X, gain, bias), layer_norm(X) * gain + bias, rtol=1e-12)


def test_batch_norm_looks_at_each_feature_alone() -> None:
    found = batch_norm(X)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(batch_norm(X[:, 3:4]), found[:, 3:4])
    assert np.abs(found - layer_norm(X)).max() > 0.1


def test_equal_features_become_zero_not_nan() -> None:
    np.testing.assert_array_equal(layer_norm(np.full((2, 3), 7.0)), 0)
    np.testing.assert_array_equal(layer_norm(np.ones((2, 1))), 0)


def test_mean_and_spread_are_one_number_per_token() -> None:
    mean, spread = mean_and_spread(np.array([[1.0, 3.0], [5.0, 5.0], [0.0, 4.0]]))
    np.testing.assert_array_equal(mean, [2, 5, 2])
    np.testing.assert_array_equal(spread, [1, 0, 2])


# --- activations and the feed-forward layer --------------------------------------------------------------------------


def test_activations_at_known_points() -> None:
    np.testing.assert_array_equal(relu(np.array([-2.0, 0, 3])), [0, 0, 3])
    np.testing.assert_allclose(
        gelu(np.array([0, 1.0, -1.0])), [0, 0.8413447460685429, -0.15865525393145707], rtol=1e-12
    )
    np.testing.assert_allclose(gelu(np.array([-40.0, 40.0])), [0, 40], atol=1e-12)


def test_the_two_forms_of_gelu_differ_a_little() -> None:
    z = np.linspace(-6, 6, 12_001)
    assert np.abs(gelu(z) - gelu_tanh(z)).max() == pytest.approx(4.73e-4, rel=0.01)


@pytest.mark.parametrize(("activation", "function"), [("relu", relu), ("gelu", gelu)])
def test_feed_forward_by_its_formula(activation: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    hidden, output = feed_forward(X, FEED, activation)
    np.testing.assert_allclose(hidden, function(X @ FEED.w_1 + FEED.b_1), rtol=1e-12)
    np.testing.assert_allclose(output, hidden @ FEED.w_2 + FEED.b_2, rtol=1e-12)
    np.testing.assert_allclose(feed_forward(X[3:4], FEED, activation)[1], output[3:4], rtol=1e-12)  # token by token


# --- the block -------------------------------------------------------------------------------------------------------


def attended(x: np.ndarray, settings: Settings) -> np.ndarray:
    w_o = ATTENTION.w_o if settings.output_projection else None
    allowed = np.tri(len(x), dtype=bool) if settings.causal else None
    weights = (ATTENTION.w_q, ATTENTION.w_k, ATTENTION.w_v, w_o)
    return multi_head_attention(x, *weights, settings.heads, allowed=allowed).output


@pytest.mark.parametrize("settings", EVERY_SETTING, ids=named)
def test_block_by_its_formula(settings: Settings) -> None:
    """post-norm: LN(x + f(x)), the lesson and the 2017 paper. pre-norm: x + f(LN(x)), GPT-2."""

    def norm(x: np.ndarray) -> np.ndarray:
        return layer_norm(x) if settings.norm else x

    def sublayer(x: np.ndarray, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        skipped = x if settings.residual else 0
        return norm(skipped + f(x)) if settings.order == "post-norm" else skipped + f(norm(x))

    middle = sublayer(X, lambda x: attended(x, settings))
    expected = sublayer(middle, lambda x: feed_forward(x, FEED, settings.activation)[1])
    block = transformer_block(X, ATTENTION, FEED, settings)
    np.testing.assert_allclose(block.attention.left, middle, rtol=1e-12)
    np.testing.assert_allclose(block.output, expected, rtol=1e-12)

    for stage, x in ((block.attention, X), (block.feed_forward, middle)):
        np.testing.assert_array_equal(stage.added, x + stage.computed if settings.residual else stage.computed)
        if settings.order == "post-norm":
            np.testing.assert_array_equal(stage.entered, x)
            np.testing.assert_array_equal(stage.left, norm(stage.added))
        else:
            np.testing.assert_array_equal(stage.entered, norm(x))
            np.testing.assert_array_equal(stage.left, stage.added)
    for given, normed in norm_inputs_and_outputs(block, settings):
        np.testing.assert_array_equal(normed, layer_norm(given))
    assert len(norm_inputs_and_outputs(block, settings)) == 2 * settings.norm


def test_no_setting_is_without_effect() -> None:
    usual = Settings(heads=2)
    outputs = [transformer_block(X, ATTENTION, FEED, usual).output]
    for change in (
        {"heads": 4},
        {"residual": False},
        {"norm": False},
        {"order": "pre-norm"},
        {"activation": "gelu"},
        {"output_projection": True},
        {"causal": True},
    ):
        outputs.append(transformer_block(X, ATTENTION, FEED, replace(usual, **change)).output)
    for i, output in enumerate(outputs):
        assert all(np.abs(output - other).max() > 1e-3 for other in outputs[:i])


def test_the_lessons_block_is_the_usual_one() -> None:
    usual = transformer_block(X, ATTENTION, FEED).output
    np.testing.assert_array_equal(usual, transformer_block(X, ATTENTION, FEED, Settings()).output)


# --- stacks ----------------------------------------------------------------------------------------------------------

WEIGHTS = [draws.block_weights(D, D_FF, 0, 0.2, block) for block in range(24)]
LARGE_WEIGHTS = [draws.block_weights(64, 128, 0, 1.0, block) for block in range(24)]


def test_a_stack_feeds_each_block_with_the_one_before() -> None:
    x = X
    blocks = list(stack(X, WEIGHTS[:3], Settings(order="pre-norm")))
    for block, weights in zip(blocks, WEIGHTS[:3], strict=True):
        np.testing.assert_array_equal(block.x, x)
        x = transformer_block(x, *weights, Settings(order="pre-norm")).output
        np.testing.assert_array_equal(block.output, x)
    assert list(stack(X, [])) == []


@pytest.mark.parametrize("settings", EVERY_SETTING[::7], ids=named)
def test_a_deep_stack_stays_finite(settings: Settings) -> None:
    """Of wide blocks with large weights too, where the activations pass 1e38."""
    for x, weights in ((X, WEIGHTS), (draws.tokens(N, 64, 0), LARGE_WEIGHTS)):
        blocks = list(stack(x, weights, settings))
        assert len(blocks) == 24
        assert np.isfinite(blocks[-1].output).all()


def test_post_norm_keeps_the_spread_and_pre_norm_lets_it_grow() -> None:
    def spreads(order: str) -> np.ndarray:
        return depth([X, *(block.output for block in stack(X, WEIGHTS, Settings(order=order)))]).spread

    np.testing.assert_allclose(spreads("post-norm")[1:], 1, rtol=1e-3)
    assert spreads("pre-norm")[-1] > 2 * spreads("pre-norm")[1]


def test_pre_norm_stacks_end_with_one_more_norm() -> None:
    np.testing.assert_array_equal(final_norm(X, Settings(order="pre-norm")), layer_norm(X))
    for settings in (None, Settings(), Settings(order="pre-norm", norm=False)):
        np.testing.assert_array_equal(final_norm(X, settings), X)


def test_depth_of_known_states() -> None:
    alike, opposite, upright = np.array([[1.0, 2], [2, 4]]), np.array([[1.0, 2], [-1, -2]]), np.eye(2)
    found = depth([alike, opposite, upright])
    np.testing.assert_allclose(found.alikeness, [1, -1, 0], atol=1e-12)
    np.testing.assert_allclose(found.spread, [0.75, 0.5, 0.5])
    np.testing.assert_allclose(depth([alike * 1e150, alike * 1e-200]).alikeness, 1)
    assert np.isnan(depth([X[:1], np.zeros((3, 2))]).alikeness).all()  # no pair of directions


def test_alikeness_by_loops() -> None:
    cosines = [X[i] @ X[j] / np.linalg.norm(X[i]) / np.linalg.norm(X[j]) for i in range(N) for j in range(N) if i != j]
    np.testing.assert_allclose(depth([X]).alikeness, [np.mean(cosines)])


# --- counts ----------------------------------------------------------------------------------------------------------


def test_parameters_are_pytorchs() -> None:
    """nn.TransformerEncoderLayer(512, 8, 2048) has 3,152,384, whatever the number of heads."""
    assert block_parameters(512, 2048) == 3_152_384
    assert attention_parameters(512, biases=True) == 4 * 512**2 + 4 * 512
    assert attention_parameters(512) == 4 * 512**2
    assert attention_parameters(512, output_projection=False) == 3 * 512**2
    assert attention_parameters(512, output_projection=False, biases=True) == 3 * 512**2 + 3 * 512


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("output_projection", [False, True])
def test_the_table_of_tensors_counts_what_the_block_holds(heads: int, output_projection: bool) -> None:
    rows = tensors(N, D, D_FF, Settings(heads=heads, output_projection=output_projection))
    arrays = [ATTENTION.w_q, ATTENTION.w_k, ATTENTION.w_v, FEED.w_1, FEED.b_1, FEED.w_2, FEED.b_2]
    held = sum(array.size for array in arrays) + output_projection * ATTENTION.w_o.size
    assert sum(row.parameters for row in rows) == held

    projections = costs(N, D).projections * (4 if output_projection else 3) // 4
    assert sum(row.multiply_adds for row in rows) == projections + costs(N, D).mixing + 2 * N * D * D_FF


def test_the_table_of_tensors_has_a_row_for_every_array_of_the_block_and_no_other() -> None:
    for settings in EVERY_SETTING:
        made = arrays_of(transformer_block(X, ATTENTION, FEED, settings), settings)
        rows = tensors(N, D, D_FF, settings)
        assert {row.name: row.shape for row in rows} == {name: array.shape for name, array in made.items()}, settings
        assert len(rows) == len(made)


def arrays_of(block: Block, settings: Settings) -> dict[str, np.ndarray]:
    heads = block.multi_head.heads
    made = {
        "queries": heads.queries,
        "keys": heads.keys,
        "values": heads.values,
        "scores": heads.scores,
        "weights": heads.weights,
        "mixed values": heads.output,
    }
    if settings.heads == 1:  # shown without the axis of heads
        made = {name: array[0] for name, array in made.items()}
    else:
        made["concatenated heads"] = block.multi_head.concatenated
    if settings.output_projection:
        made["output projection"] = block.multi_head.output
    made |= {"x": block.x, "hidden layer": block.hidden, "feed-forward output": block.feed_forward.computed}
    for place, stage in ((1, block.attention), (2, block.feed_forward)):
        if settings.residual:
            made[f"after add {place}"] = stage.added
        if settings.norm:
            made[f"after norm {place}"] = stage.left if settings.order == "post-norm" else stage.entered
    return made


# --- refusals --------------------------------------------------------------------------------------------------------


def attention_with(**arrays: np.ndarray) -> AttentionWeights:
    return replace(ATTENTION, **arrays)


def feed_with(**arrays: np.ndarray) -> FeedForwardWeights:
    return replace(FEED, **arrays)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: layer_norm(X[0]), "x needs at least 2 axes and has shape (8,)"),
        (lambda: layer_norm(X, eps=0), "eps must be a finite number above 0, not 0"),
        (lambda: layer_norm(X, gain=np.ones(3)), "gain has shape (3,) and needs 8 numbers"),
        (lambda: layer_norm(X, bias=np.ones((N, 1))), "bias has shape (5, 1) and needs 8 numbers"),
        (lambda: batch_norm(np.ones((2, 3, 4))), "x needs 2 axes and has shape (2, 3, 4)"),
        (lambda: batch_norm(X, eps=-1), "eps must be a finite number above 0, not -1"),
        (lambda: mean_and_spread(X * np.nan), "x must hold finite numbers"),
        (lambda: gelu(np.array(["a"])), "z must hold real numbers, not <U1"),
        (lambda: feed_forward(X, FEED, "tanh"), "tanh is none of the activations relu, gelu"),
        (lambda: feed_forward(X[None], FEED), "x needs 2 axes and has shape (1, 5, 8)"),
        (lambda: feed_forward(X[:, :3], FEED), "w_1's number of rows 8 does not match the input's width 3"),
        (
            lambda: feed_forward(X, feed_with(w_2=FEED.w_2[:3])),
            "w_2's number of rows 3 does not match the input's width 12",
        ),
        (lambda: feed_forward(X, feed_with(w_2=FEED.w_2[:, :1])), "w_2's number of columns 1 does not match d_model 8"),
        (lambda: feed_forward(X, feed_with(b_1=np.ones(3))), "b_1 has shape (3,) and needs 12 numbers"),
        (lambda: feed_forward(X, feed_with(b_1=np.ones((N, 1)))), "b_1 has shape (5, 1) and needs 12 numbers"),
        (lambda: feed_forward(X, feed_with(b_2=np.full(D, np.nan))), "b_2 must hold finite numbers"),
        (lambda: transformer_block(X, ATTENTION, FEED, Settings(heads=3)), "d_model 8 is not divisible by 3 heads"),
        (lambda: transformer_block(X, ATTENTION, FEED, Settings(heads=0)), "the number of heads must be"),
        (
            lambda: transformer_block(X, ATTENTION, FEED, Settings(order="post")),
            "post is neither post-norm nor pre-norm",
        ),
        (lambda: transformer_block(X, ATTENTION, FEED, Settings(activation="elu")), "elu is none of the activations"),
        (lambda: transformer_block(X[0], ATTENTION, FEED), "x needs 2 axes and has shape (8,)"),
        (lambda: transformer_block(X[None], ATTENTION, FEED), "x needs 2 axes and has shape (1, 5, 8)"),
        (lambda: transformer_block(X[:0], ATTENTION, FEED), "x is empty: its shape is (0, 8)"),
        (lambda: transformer_block(X * np.inf, ATTENTION, FEED), "x must hold finite numbers"),
        (
            lambda: transformer_block(X, attention_with(w_v=ATTENTION.w_v[:, :1]), FEED),
            "the attention sublayer's width 1 does not match d_model 8",
        ),
        (
            lambda: transformer_block(X, attention_with(w_o=np.ones((D, 1))), FEED, Settings(output_projection=True)),
            "the attention sublayer's width 1 does not match d_model 8",
        ),
        (lambda: list(stack(X, [(ATTENTION, FEED)], Settings(heads=5))), "d_model 8 is not divisible by 5 heads"),
        (lambda: final_norm(X, Settings(order="none")), "none is neither"),
        (lambda: depth([X[0]]), "x needs at least 2 axes"),
        (lambda: tensors(5, 10, 8, Settings(heads=4)), "d_model 10 is not divisible by 4 heads"),
        (lambda: tensors(0, 10, 8), "seq_len must be a whole number of at least 1, not 0"),
        (lambda: tensors(5, 0, 8), "d_model must be"),
        (lambda: tensors(5, 8, 0), "d_ff must be"),
        (lambda: tensors(5, 8, 8, Settings(order="none")), "none is neither"),
        (lambda: attention_parameters(0), "d_model must be"),
        (lambda: block_parameters(0, 4), "d_model must be"),
        (lambda: block_parameters(4, 0), "d_ff must be"),
    ],
)
def test_refuses(call: Callable[[], object], words: str, refusal: Refusal) -> None:
    assert words in refusal(call)
