"""Backward passes: against central differences, against PyTorch's gradients (data/make_torch_gradients.py made them
and knows nothing of core), and their forward passes against the ones that the pages show."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from core import adam, draws
from core import attention as shown_attention
from core import block as shown_block
from core import gradients as g
from core.attention import causal_mask
from core.block import Settings, transformer_block
from core.multi_head import multi_head_attention
from tests.conftest import DATA

Array = np.ndarray
Case = dict[str, Array]
Refusal = Callable[[Callable[[], object]], str]
Forward = Callable[..., Array]
Backward = Callable[..., Sequence[Array]]

B, N, D, H, F = 3, 5, 8, 2, 12  # sequences, tokens, d_model, heads, d_ff

BLOCKS = {
    "post_relu": Settings(heads=4, output_projection=True),
    "post_gelu": Settings(heads=4, output_projection=True, activation="gelu"),
    "pre_relu": Settings(heads=4, output_projection=True, order="pre-norm"),
    "pre_gelu": Settings(heads=4, output_projection=True, order="pre-norm", activation="gelu"),
    "post_relu_causal": Settings(heads=4, output_projection=True, causal=True),
    "pre_gelu_causal": Settings(heads=4, output_projection=True, order="pre-norm", activation="gelu", causal=True),
}
MORE_BLOCKS = {
    "lesson": Settings(),
    "no_residual": Settings(heads=2, residual=False, output_projection=True),
    "no_norm": Settings(heads=2, norm=False, output_projection=True),
    "neither": Settings(heads=2, residual=False, norm=False),
    "pre_no_residual": Settings(heads=2, residual=False, order="pre-norm", activation="gelu"),
    "pre_no_norm": Settings(heads=2, norm=False, order="pre-norm", output_projection=True),
}


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def weights_of_block(d: int = D, d_ff: int = F, seed: int = 3) -> g.BlockWeights:
    """Every number drawn, the biases too."""
    shapes = ((d, 3 * d), (d, d), (d, d_ff), (d_ff,), (d_ff, d), (d,))
    return g.BlockWeights(*(0.5 * normal(*shape, seed=seed + place) for place, shape in enumerate(shapes)))


def parts(weights: g.BlockWeights, settings: Settings) -> dict[str, Array]:
    """The weights that are used, by name."""
    return {name: w for name, w in vars(weights).items() if name != "w_o" or settings.output_projection}


@pytest.fixture(scope="session")
def torch_gradients() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    with np.load(DATA / "torch_gradients.npz") as arrays:
        for key in arrays.files:
            case, _, name = key.partition("/")
            cases.setdefault(case, {})[name] = arrays[key]
    return cases


# --- what each backward pass undoes ----------------------------------------------------------------------------------
#
# Each is: forward(inputs) -> output, and backward(d_output, inputs) -> the gradients of the inputs, in their order.


def linear_both() -> tuple[Forward, Backward]:
    def backward(d_output: Array, x: Array, w: Array, b: Array) -> Sequence[Array]:
        return *g.linear_backward(d_output, x, w), g.bias_backward(d_output)

    return g.linear, backward


def softmax_both() -> tuple[Forward, Backward]:
    return g.softmax, lambda d_output, scores: [g.softmax_backward(d_output, g.softmax(scores))]


def attention_both(allowed: Array | None = None) -> tuple[Forward, Backward]:
    def forward(queries: Array, keys: Array, values: Array) -> Array:
        return g.attention(queries, keys, values, allowed)[0]

    def backward(d_output: Array, queries: Array, keys: Array, values: Array) -> Sequence[Array]:
        return g.attention_backward(d_output, g.attention(queries, keys, values, allowed)[1])

    return forward, backward


def multi_head_both(heads: int, allowed: Array | None = None) -> tuple[Forward, Backward]:
    def backward(d_output: Array, x: Array, w_qkv: Array, w_o: Array | None = None) -> Sequence[Array]:
        passed = g.multi_head(x, w_qkv, w_o, heads, allowed)[1]
        return [d for d in g.multi_head_backward(d_output, passed, w_qkv, w_o) if d is not None]

    return lambda x, w_qkv, w_o=None: g.multi_head(x, w_qkv, w_o, heads, allowed)[0], backward


def layer_norm_both(eps: float) -> tuple[Forward, Backward]:
    def forward(x: Array, gain: Array | None = None, bias: Array | None = None) -> Array:
        return g.layer_norm(x, gain, bias, eps)[0]

    def backward(d_output: Array, x: Array, gain: Array | None = None, bias: Array | None = None) -> Sequence[Array]:
        passed = g.layer_norm(x, gain, bias, eps)[1]
        d_x = g.layer_norm_backward(d_output, passed, gain)
        return [d_x] if gain is None else [d_x, *g.gain_backward(d_output, passed)]

    return forward, backward


def feed_forward_both(activation: str) -> tuple[Forward, Backward]:
    def forward(x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array) -> Array:
        return g.feed_forward(x, w_1, b_1, w_2, b_2, activation)[0]

    def backward(d_output: Array, x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array) -> Sequence[Array]:
        passed = g.feed_forward(x, w_1, b_1, w_2, b_2, activation)[1]
        return g.feed_forward_backward(d_output, passed, w_1, w_2, activation)

    return forward, backward


def block_both(settings: Settings) -> tuple[Forward, Backward]:
    def weights_from(inputs: Sequence[Array]) -> g.BlockWeights:
        return g.BlockWeights(*inputs) if settings.output_projection else g.BlockWeights(inputs[0], None, *inputs[1:])

    def backward(d_output: Array, x: Array, *inputs: Array) -> Sequence[Array]:
        weights = weights_from(inputs)
        d_x, d_weights = g.block_backward(d_output, g.block(x, weights, settings)[1], weights, settings)
        return [d_x, *parts(d_weights, settings).values()]

    return lambda x, *inputs: g.block(x, weights_from(inputs), settings)[0], backward


def embedding_both(indices: Array) -> tuple[Forward, Backward]:
    return (
        lambda table: table[indices],
        lambda d_output, table: [g.embedding_backward(d_output, indices, len(table))],
    )


Z = np.concatenate([normal(20), [-3.0, 2.0]])
RELU: tuple[Forward, Backward] = (shown_block.relu, lambda d_output, z: [g.relu_backward(d_output, z)])
GELU: tuple[Forward, Backward] = (shown_block.gelu, lambda d_output, z: [g.gelu_backward(d_output, z)])


# --- central differences ---------------------------------------------------------------------------------------------


def central_differences(loss: Callable[[Array], float], at: Array, step: float = 1e-5) -> Array:
    """d loss / d at, each entry on its own: (loss(at + step) - loss(at - step)) / (2 step)."""
    slopes = np.empty_like(at)
    for place in np.ndindex(at.shape):
        there, back = at.copy(), at.copy()
        there[place] += step
        back[place] -= step
        slopes[place] = (loss(there) - loss(back)) / (2 * step)
    return slopes


def assert_close(actual: Array, expected: Array, relative: float = 1e-6) -> None:
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= relative * np.abs(expected).max()


def assert_backward(both: tuple[Forward, Backward], *inputs: Array) -> None:
    forward, backward = both
    d_output = normal(*forward(*inputs).shape, seed=9)
    found = backward(d_output, *inputs)
    assert len(found) == len(inputs)
    for place, (arrived, at) in enumerate(zip(found, inputs, strict=True)):

        def loss(changed: Array, place: int = place) -> float:
            return float(np.sum(forward(*inputs[:place], changed, *inputs[place + 1 :]) * d_output))

        assert_close(arrived, central_differences(loss, at))


def masked_row() -> Array:
    allowed = causal_mask(N)
    allowed[2] = False
    return allowed


@pytest.mark.parametrize(
    ("both", "inputs"),
    [
        pytest.param(linear_both(), (normal(B, N, D), normal(D, F), normal(F)), id="linear"),
        pytest.param(linear_both(), (normal(N, D), normal(D, F), normal(F)), id="linear, one sequence"),
        pytest.param(linear_both(), (normal(2, B, N, 3), normal(3, 4), normal(4)), id="linear, two leading axes"),
        pytest.param(softmax_both(), (3 * normal(B, N, N),), id="softmax"),
        pytest.param(attention_both(), tuple(normal(B, H, N, 4, seed=i) for i in range(3)), id="attention"),
        pytest.param(attention_both(), tuple(normal(N, 4, seed=i) for i in range(3)), id="attention, no batch"),
        pytest.param(
            attention_both(causal_mask(N)), tuple(normal(B, N, 4, seed=i) for i in range(3)), id="attention, causal"
        ),
        pytest.param(
            attention_both(masked_row()), tuple(normal(B, N, 4, seed=i) for i in range(3)), id="attention, masked row"
        ),
        pytest.param(attention_both(), (normal(3, 4), normal(6, 4), normal(6, 2)), id="attention, cross"),
        pytest.param(multi_head_both(2), (normal(B, N, D), normal(D, 3 * D) / 2, normal(D, D)), id="multi-head"),
        pytest.param(multi_head_both(1), (normal(B, N, D), normal(D, 3 * D) / 2), id="multi-head without W_O"),
        pytest.param(
            multi_head_both(4, causal_mask(N)), (normal(B, N, D), normal(D, 3 * D) / 2, normal(D, D)), id="causal heads"
        ),
        pytest.param(layer_norm_both(1e-6), (2 * normal(B, N, D) + 3,), id="layer norm"),
        pytest.param(layer_norm_both(1e-3), (normal(B, N, D), normal(D), normal(D, seed=1)), id="layer norm, gain"),
        pytest.param(RELU, (Z,), id="relu"),
        pytest.param(GELU, (Z,), id="gelu"),
        pytest.param(
            feed_forward_both("relu"),
            (normal(B, N, D), normal(D, F), normal(F), normal(F, D), normal(D)),
            id="feed-forward, relu",
        ),
        pytest.param(
            feed_forward_both("gelu"),
            (normal(B, N, D), normal(D, F), normal(F), normal(F, D), normal(D)),
            id="feed-forward, gelu",
        ),
        pytest.param(embedding_both(np.array([[0, 3, 3], [1, 0, 3]])), (normal(5, 4),), id="embedding"),
    ],
)
def test_central_differences(both: tuple[Forward, Backward], inputs: tuple[Array, ...]) -> None:
    assert_backward(both, *inputs)


@pytest.mark.parametrize("settings", [*BLOCKS.values(), *MORE_BLOCKS.values()], ids=[*BLOCKS, *MORE_BLOCKS])
def test_central_differences_of_a_block(settings: Settings) -> None:
    assert_backward(block_both(settings), normal(2, N, D), *parts(weights_of_block(), settings).values())


def test_central_differences_of_the_loss() -> None:
    logits, answers = 4 * normal(B, N, 6), np.random.default_rng(0).integers(-1, 6, (B, N))
    arrived = g.cross_entropy_backward(g.cross_entropy(logits, answers)[1], answers)
    assert_close(arrived, central_differences(lambda z: g.cross_entropy(z, answers)[0], logits))


# --- PyTorch ---------------------------------------------------------------------------------------------------------


def assert_as_in_torch(both: tuple[Forward, Backward], case: Case, *names: str) -> None:
    forward, backward = both
    inputs = [case[name] for name in names]
    np.testing.assert_allclose(forward(*inputs), case["output"], rtol=1e-11, atol=1e-12)
    for name, arrived in zip(names, backward(case["d_output"], *inputs), strict=True):
        np.testing.assert_allclose(arrived, case[f"d_{name}"], rtol=1e-11, atol=1e-12, err_msg=name)


def test_linear(torch_gradients: dict[str, Case]) -> None:
    assert_as_in_torch(linear_both(), torch_gradients["linear"], "x", "w", "b")


def test_softmax(torch_gradients: dict[str, Case]) -> None:
    assert_as_in_torch(softmax_both(), torch_gradients["softmax"], "scores")


@pytest.mark.parametrize("name", ["plain", "causal", "cross"])
def test_attention(name: str, torch_gradients: dict[str, Case]) -> None:
    case = torch_gradients[f"attention.{name}"]
    assert_as_in_torch(attention_both(case.get("allowed")), case, "queries", "keys", "values")


@pytest.mark.parametrize("name", ["one", "four", "causal"])
def test_multi_head(name: str, torch_gradients: dict[str, Case]) -> None:
    case = torch_gradients[f"mha.{name}"]
    assert_as_in_torch(multi_head_both(int(case["heads"]), case.get("allowed")), case, "x", "w_qkv", "w_o")


def test_layer_norm(torch_gradients: dict[str, Case]) -> None:
    for name, inputs in (("layer_norm", ("x", "gain", "bias")), ("layer_norm.plain", ("x",))):
        case = torch_gradients[name]
        assert_as_in_torch(layer_norm_both(float(case["eps"])), case, *inputs)


def test_activations(torch_gradients: dict[str, Case]) -> None:
    assert_as_in_torch(RELU, torch_gradients["relu"], "z")
    assert_as_in_torch(GELU, torch_gradients["gelu"], "z")


def test_embedding(torch_gradients: dict[str, Case]) -> None:
    case = torch_gradients["embedding"]
    assert_as_in_torch(embedding_both(case["indices"]), case, "table")


def test_cross_entropy(torch_gradients: dict[str, Case]) -> None:
    case = torch_gradients["cross_entropy"]
    loss, probabilities = g.cross_entropy(case["logits"], case["answers"])
    np.testing.assert_allclose(loss, case["loss"], rtol=1e-12)
    arrived = g.cross_entropy_backward(probabilities, case["answers"])
    np.testing.assert_allclose(arrived, case["d_logits"], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", BLOCKS)
def test_block(name: str, torch_gradients: dict[str, Case]) -> None:
    case = torch_gradients[f"block.{name}"]
    assert int(case["heads"]) == BLOCKS[name].heads
    assert_as_in_torch(block_both(BLOCKS[name]), case, "x", "w_qkv", "w_o", "w_1", "b_1", "w_2", "b_2")


@pytest.mark.parametrize(
    "name", ["post_on_on", "post_on_off", "post_off_on", "post_off_off", "pre_on_on", "pre_off_on"]
)
def test_gradient_lengths_through_a_stack(name: str, torch_gradients: dict[str, Case]) -> None:
    case = torch_gradients[f"flow.{name}"]
    order, residual, norm = name.split("_")
    settings = Settings(int(case["heads"]), residual == "on", norm == "on", f"{order}-norm", output_projection=True)
    weights = [
        g.BlockWeights(*(case[f"{i}.{part}"] for part in ("w_qkv", "w_o", "w_1", "b_1", "w_2", "b_2")))
        for i in range(3)
    ]
    found = g.gradient_lengths(case["x"], weights, settings, case["d_output"])
    expected = np.linalg.norm(case["d_inputs"], axis=(1, 2))
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_adam(torch_gradients: dict[str, Case]) -> None:
    case = torch_gradients["adam"]
    parameters = case["parameters"][0]
    state = adam.start(parameters)
    for gradient, expected in zip(case["gradients"], case["parameters"][1:], strict=True):
        parameters, state = adam.step(parameters, gradient, state, float(case["learning_rate"]))
        np.testing.assert_allclose(parameters, expected, rtol=1e-11, atol=1e-13)


# --- the forward passes are the ones that the pages show -------------------------------------------------------------


@pytest.mark.parametrize("n", [31, 32, 64])
def test_softmax_of_long_rows_is_the_one_shown(n: int) -> None:
    scores = np.where(causal_mask(n), normal(H, n, n), -np.inf)
    scores[0, 3] = -np.inf
    found = g.softmax(scores)
    np.testing.assert_allclose(found, shown_attention.softmax(scores), rtol=1e-12, atol=1e-16)
    assert (found[0, 3] == 0).all()
    assert g.softmax(scores.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("allowed", [None, causal_mask(N), masked_row()], ids=["all", "causal", "masked row"])
def test_attention_is_the_one_shown(allowed: Array | None) -> None:
    queries, keys, values = (normal(B, H, N, 4, seed=i) for i in range(3))
    output, passed = g.attention(queries, keys, values, allowed)
    shown = shown_attention.scaled_dot_product_attention(queries, keys, values, allowed)
    np.testing.assert_allclose(output, shown.output, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(passed.weights, shown.weights, rtol=1e-12)


def test_multi_head_is_the_one_shown() -> None:
    x, w_qkv, w_o = normal(B, N, D), normal(D, 3 * D), normal(D, D)
    output, passed = g.multi_head(x, w_qkv, w_o, 4)
    w_q, w_k, w_v = np.split(w_qkv, 3, axis=1)
    for place in range(B):
        shown = multi_head_attention(x[place], w_q, w_k, w_v, w_o, 4)
        np.testing.assert_allclose(output[place], shown.output, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(passed.heads.weights[place], shown.heads.weights, rtol=1e-11)


@pytest.mark.parametrize("settings", [*BLOCKS.values(), *MORE_BLOCKS.values()], ids=[*BLOCKS, *MORE_BLOCKS])
def test_block_is_the_one_shown(settings: Settings) -> None:
    attention, feed = draws.block_weights(D, F, seed=1, scale=0.4)
    x = normal(B, N, D)
    output, _ = g.block(x, g.block_weights(attention, feed), settings)
    for place in range(B):
        np.testing.assert_allclose(
            output[place], transformer_block(x[place], attention, feed, settings).output, rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("name", MORE_BLOCKS)
def test_gradient_lengths_are_those_of_the_stack_shown(name: str) -> None:
    """Central differences of the loss Σ output · direction of the stack that the page draws, at every depth."""
    settings = MORE_BLOCKS[name]
    drawn = [draws.block_weights(D, F, seed=1, scale=0.3, block=i) for i in range(3)]
    x, direction = normal(N, D), g.unit_direction(N, D, seed=5)
    states = [x, *(each.output for each in shown_block.stack(x, drawn, settings))]
    found = g.gradient_lengths(x, [g.block_weights(*each) for each in drawn], settings, direction)
    for place, state in enumerate(states):

        def loss(entered: Array, rest: Sequence = drawn[place:]) -> float:
            outputs = [entered, *(each.output for each in shown_block.stack(entered, rest, settings))]
            return float((shown_block.final_norm(outputs[-1], settings) * direction).sum())

        assert found[place] == pytest.approx(np.linalg.norm(central_differences(loss, state)), rel=1e-6)


def test_the_direction_of_the_loss_has_length_1_and_its_own_seed() -> None:
    one, other = g.unit_direction(N, D, seed=0), g.unit_direction(N, D, seed=1)
    assert one.shape == (N, D)
    assert np.linalg.norm(one) == pytest.approx(1)
    assert np.abs(one - other).max() > 0.1
    np.testing.assert_array_equal(one, g.unit_direction(N, D, seed=0))


def test_gradients_beyond_floating_point_are_no_numbers_and_no_warnings() -> None:
    drawn = [g.block_weights(*draws.block_weights(64, 256, seed=0, scale=1.0, block=i)) for i in range(24)]
    settings = Settings(residual=False, norm=False)
    found = g.gradient_lengths(draws.tokens(64, 64, 0), drawn, settings, g.unit_direction(64, 64, 0))
    assert np.isfinite(found[-1])
    assert not np.isfinite(found[0])


def test_softmax_and_loss_at_the_ends_of_the_range() -> None:
    scores = np.array([[1000.0, 1001.0], [-1000.0, 0.0], [-np.inf, -np.inf], [-np.inf, 3.0]])
    np.testing.assert_allclose(g.softmax(scores), shown_attention.softmax(scores))
    loss, probabilities = g.cross_entropy(np.array([[0.0, 1000.0]]), np.array([0]))
    assert loss == pytest.approx(1000.0)
    np.testing.assert_array_equal(g.cross_entropy_backward(probabilities, np.array([0])), [[-1, 1]])


def test_relu_has_no_slope_at_zero() -> None:
    np.testing.assert_array_equal(g.relu_backward(np.ones(3), np.array([-1.0, 0.0, 1.0])), [0, 0, 1])


def test_a_token_that_is_not_asked_for_gets_no_gradient() -> None:
    answers = np.array([[-1, 2, 0]])
    d_logits = g.cross_entropy_backward(g.cross_entropy(normal(1, 3, 4), answers)[1], answers)
    assert not d_logits[0, 0].any()
    np.testing.assert_allclose(d_logits.sum(axis=-1), 0, atol=1e-15)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_float32_stays_float32(activation: str) -> None:
    settings = Settings(heads=2, output_projection=True, activation=activation, causal=True)
    weights = g.BlockWeights(*(w.astype(np.float32) for w in vars(weights_of_block()).values()))
    output, passed = g.block(normal(B, N, D).astype(np.float32), weights, settings)
    d_x, d_weights = g.block_backward(output, passed, weights, settings)
    assert {array.dtype for array in (output, d_x, *vars(d_weights).values())} == {np.dtype(np.float32)}
    loss, probabilities = g.cross_entropy(output, np.zeros((B, N), dtype=int))
    assert isinstance(loss, float)
    assert g.cross_entropy_backward(probabilities, np.zeros((B, N), dtype=int)).dtype == np.float32
    parameters, state = adam.step(output, d_x, adam.start(output), 0.01)
    assert {array.dtype for array in (parameters, state.mean, state.square)} == {np.dtype(np.float32)}


@pytest.mark.parametrize("tokens", [1, 7, 97, 768, 1000])
def test_sums_over_many_tokens_in_pieces(tokens: int) -> None:
    left, right = normal(tokens, 32), normal(tokens, 128, seed=1)
    np.testing.assert_allclose(
        g.linear_backward(right, left, np.ones((32, 128)))[1], left.T @ right, rtol=1e-9, atol=1e-9
    )


def test_backward_passes_change_nothing_they_are_given() -> None:
    settings = Settings(heads=2, output_projection=True)
    weights, x = weights_of_block(), normal(B, N, D)
    output, passed = g.block(x, weights, settings)
    d_output = normal(B, N, D, seed=1)
    given = [x, output, d_output, *vars(weights).values()]
    copies = [array.copy() for array in given]
    first = g.block_backward(d_output, passed, weights, settings)
    again = g.block_backward(d_output, passed, weights, settings)
    for array, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(first[0], again[0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: g.linear(normal(2, 3), normal(4, 3)), "the input's width 3 does not match w's number of rows 4"),
        (lambda: g.linear_backward(normal(2, 3), normal(2, 4), normal(4, 4)), "the gradient's shape (2, 3)"),
        (lambda: g.softmax_backward(normal(2), normal(3)), "the gradient's shape (2,)"),
        (lambda: g.attention(normal(2, 3), normal(2, 4), normal(2, 4)), "the queries' width 3"),
        (lambda: g.attention(normal(2, 3), normal(2, 3), normal(4, 3)), "the number of keys 2"),
        (lambda: g.multi_head(normal(2, 6), normal(6, 6), None, 2), "w_qkv's number of columns 6"),
        (lambda: g.multi_head(normal(2, 6), normal(6, 18), None, 4), "d_model 6 is not divisible by 4 heads"),
        (lambda: g.block(normal(N, D), weights_of_block(), Settings(order="none")), "none is neither"),
        (lambda: g.block(normal(N, D), weights_of_block(), Settings(activation="elu")), "elu is none of the"),
        (lambda: g.embedding_backward(normal(2, 3), np.zeros(3, dtype=int), 4), "the number of gradients (2,)"),
        (lambda: g.cross_entropy(normal(2, 3), np.zeros(3, dtype=int)), "the number of predictions (2,)"),
        (lambda: g.cross_entropy(normal(2, 3), np.full(2, -1)), "at least one answer"),
        (lambda: adam.step(normal(2), normal(3), adam.start(normal(2)), 0.1), "the gradient's shape (3,)"),
        (lambda: adam.step(normal(2), normal(2), adam.start(normal(2)), 0.0), "learning_rate must be"),
    ],
)
def test_refuses(call: Callable[[], object], words: str, refusal: Refusal) -> None:
    assert words in refusal(call)
