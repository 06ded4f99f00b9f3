"""The transformer block: attention and feed-forward sublayers, each with a residual connection and a norm.

Post-norm is the lesson's and the 2017 paper's: LN(x + f(x)). Pre-norm is GPT-2's: x + f(LN(x)), with one more
norm after the last block of a stack, which is not part of any block here: it is `layer_norm` of the last output.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import erf, pi, sqrt

import numpy as np

from core.attention import causal_mask
from core.checks import Array, at_least, divides, matrix, numbers, positive, projection, same, vector
from core.draws import AttentionWeights, FeedForwardWeights
from core.multi_head import MultiHead, multi_head_attention

EPS = 1e-6

_erf = np.vectorize(erf, otypes=[float])


@dataclass(frozen=True)
class Settings:
    """What can be switched in a block. activation is "relu" or "gelu"; order is "post-norm" or "pre-norm"."""

    heads: int = 1
    residual: bool = True
    norm: bool = True
    order: str = "post-norm"
    activation: str = "relu"
    output_projection: bool = False
    causal: bool = False


@dataclass(frozen=True)
class Sublayer:
    """One sublayer f with its residual connection and norm; all (n, d_model).

    post-norm: entered = x, computed = f(x), added = x + computed, left = LN(added).
    pre-norm: entered = LN(x), computed = f(entered), added = x + computed, left = added.
    Without the residual connection added is computed; without the norm LN changes nothing.
    """

    entered: Array
    computed: Array
    added: Array
    left: Array


@dataclass(frozen=True)
class Block:
    """Every stage of one block: x and output (n, d_model), both sublayers, the heads, hidden layer (n, d_ff)."""

    x: Array
    attention: Sublayer
    multi_head: MultiHead
    feed_forward: Sublayer
    hidden: Array
    output: Array


@dataclass(frozen=True)
class Tensor:
    """One row of the table of tensors: name, shape, trainable parameters in it, multiply-adds to make it, and how."""

    name: str
    shape: tuple[int, ...]
    parameters: int
    multiply_adds: int
    made_by: str


@dataclass(frozen=True)
class Depth:
    """What becomes of the activations through a stack: one number for the input and one for each block's output.

    spread: standard deviation of a token's features, the mean over the tokens.
    alikeness: cosine of the angle between two tokens, the mean over all pairs; NaN where there is no pair that has one.
    """

    spread: Array
    alikeness: Array


def layer_norm(x: Array, gain: Array | float = 1.0, bias: Array | float = 0.0, eps: float = EPS) -> Array:
    """(x - mean) / √(variance + eps) · gain + bias over each token's own features.

    Ba et al. 2016, eq. 3 and 4. The variance is the biased one (divided by d_model), eps stands inside the root.

    Args:
        x: (..., d_model). gain, bias: (d_model,) or numbers; the lesson has none.

    Raises:
        ValueError: eps is not above 0; x is no matrix, empty or not finite; gain or bias do not fit.
    """
    x = matrix("x", x)
    gain, bias = vector("gain", gain, x.shape[-1]), vector("bias", bias, x.shape[-1])
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + positive("eps", eps)) * gain + bias


def batch_norm(x: Array, eps: float = EPS) -> Array:
    """The same formula over each feature's column of tokens instead: the axis that BatchNorm averages over.

    Ioffe & Szegedy 2015, algorithm 1, with the tokens of one sequence in the place of a batch. x: (n, d_model).

    Raises:
        ValueError: eps is not above 0; x has not two axes, is empty or not finite.
    """
    return layer_norm(matrix("x", x, axes=2).T, eps=eps).T


def relu(z: Array) -> Array:
    """max(0, z)."""
    return np.maximum(0, numbers("z", z))


def gelu(z: Array) -> Array:
    """z · Φ(z) with the normal distribution function Φ, the exact form (Hendrycks & Gimpel 2016, eq. 1)."""
    z = numbers("z", z)
    return z * 0.5 * (1 + _erf(z / sqrt(2)))


def gelu_tanh(z: Array) -> Array:
    """The tanh approximation of GELU that GPT-2 uses; it differs from the exact form by up to 4.7e-4."""
    z = numbers("z", z)
    return 0.5 * z * (1 + np.tanh(sqrt(2 / pi) * (z + 0.044715 * z**3)))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": relu, "gelu": gelu}


def feed_forward(x: Array, weights: FeedForwardWeights, activation: str = "relu") -> tuple[Array, Array]:
    """activation(x W_1 + b_1) W_2 + b_2, the same for every token (Vaswani et al. 2017, eq. 2).

    Args:
        x: (n, d_model). activation: "relu" or "gelu".

    Returns:
        The hidden layer (n, d_ff) and the output (n, d_model).

    Raises:
        ValueError: an unknown activation; sizes that do not fit.
    """
    function = _activation(activation)
    x = matrix("x", x, axes=2)
    d_model = x.shape[1]
    w_1 = projection("w_1", weights.w_1, d_model)
    w_2 = projection("w_2", weights.w_2, w_1.shape[1])
    same("w_2's number of columns", w_2.shape[1], "d_model", d_model)
    b_1, b_2 = vector("b_1", weights.b_1, w_1.shape[1]), vector("b_2", weights.b_2, d_model)
    hidden = function(x @ w_1 + b_1)  # (n, d_model) @ (d_model, d_ff) -> (n, d_ff)
    return hidden, hidden @ w_2 + b_2  # (n, d_ff) @ (d_ff, d_model) -> (n, d_model)


def transformer_block(
    x: Array, attention: AttentionWeights, feed: FeedForwardWeights, settings: Settings | None = None
) -> Block:
    """One transformer block (Vaswani et al. 2017, section 3.1), every stage kept.

    Args:
        x: (n, d_model). settings: the lesson's block where None.

    Raises:
        ValueError: an unknown order or activation; heads that do not divide d_model; sizes that do not fit.
    """
    settings = _checked(settings)
    x = matrix("x", x, axes=2)
    norm = layer_norm if settings.norm else _unchanged
    before, after = (norm, _unchanged) if settings.order == "pre-norm" else (_unchanged, norm)

    entered = before(x)
    multi_head = multi_head_attention(
        entered,
        attention.w_q,
        attention.w_k,
        attention.w_v,
        attention.w_o if settings.output_projection else None,
        settings.heads,
        allowed=causal_mask(len(x)) if settings.causal else None,
    )
    same("the attention sublayer's width", multi_head.output.shape[1], "d_model", x.shape[1])
    added = x + multi_head.output if settings.residual else multi_head.output
    first = Sublayer(entered, multi_head.output, added, after(added))

    entered = before(first.left)
    hidden, computed = feed_forward(entered, feed, settings.activation)
    added = first.left + computed if settings.residual else computed
    second = Sublayer(entered, computed, added, after(added))
    return Block(x, first, multi_head, second, hidden, second.left)


def stack(
    x: Array, weights: Sequence[tuple[AttentionWeights, FeedForwardWeights]], settings: Settings | None = None
) -> Iterator[Block]:
    """The blocks of a stack, one after the other, each fed with the output of the one before.

    Raises:
        ValueError: as in `transformer_block`, when the block that does not fit is asked for.
    """
    for attention, feed in weights:
        block = transformer_block(x, attention, feed, settings)
        yield block
        x = block.output


def final_norm(x: Array, settings: Settings | None = None) -> Array:
    """What leaves a stack whose last block gave x: LN(x) in pre-norm, x itself in post-norm or without norms.

    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.

    Raises:
        ValueError: x is no matrix, empty or not finite; an unknown order.
    """
    settings = _checked(settings)
    return layer_norm(x) if settings.norm and settings.order == "pre-norm" else matrix("x", x)


def norm_inputs_and_outputs(block: Block, settings: Settings | None = None) -> list[tuple[Array, Array]]:
    """What goes into each LayerNorm of a block and what comes out, in their order; empty without norms."""
    settings = _checked(settings)
    first, second = block.attention, block.feed_forward
    if not settings.norm:
        return []
    if settings.order == "pre-norm":
        return [(block.x, first.entered), (first.left, second.entered)]
    return [(first.added, first.left), (second.added, second.left)]


def mean_and_spread(x: Array, axis: int = -1) -> tuple[Array, Array]:
    """Mean and standard deviation (biased) over one axis.

    Over the last axis, the features, it is one number per token, each (n,): what LayerNorm brings to 0 and 1.

    Raises:
        ValueError: x is no matrix, empty or not finite.
    """
    x = matrix("x", x)
    return x.mean(axis=axis), x.std(axis=axis)


def depth(states: Sequence[Array]) -> Depth:
    """How widely the features spread and how alike the tokens are at each depth. Args: states, each (n, d_model).

    Raises:
        ValueError: a state is no matrix, empty or not finite.
    """
    spread = np.array([mean_and_spread(x)[1].mean() for x in states])
    return Depth(spread, np.array([_mean_cosine(matrix("x", x, axes=2)) for x in states]))


def _mean_cosine(x: Array) -> float:
    x = x / (np.abs(x).max() or 1.0)  # so that squares neither overflow nor vanish
    lengths = np.linalg.norm(x, axis=-1)
    towards = x[lengths > 0] / lengths[lengths > 0][:, None]  # a token of zeros has no direction
    pairs = len(towards) * (len(towards) - 1)
    return float((np.sum(towards.sum(axis=0) ** 2) - len(towards)) / pairs) if pairs else float("nan")


def tensors(seq_len: int, d_model: int, d_ff: int, settings: Settings | None = None) -> list[Tensor]:
    """Every tensor of the block in the order in which it is made, with its parameters and multiply-adds.

    Counts the lesson's block: projections without biases, feed-forward with biases, norms without gain and bias.
    Multiply-adds are those of the matrix products, over all n² scores, masked or not.

    Raises:
        ValueError: sizes below 1; heads that do not divide d_model; an unknown order or activation.
    """
    settings = _checked(settings)
    n, d, f = at_least("seq_len", seq_len, 1), at_least("d_model", d_model, 1), at_least("d_ff", d_ff, 1)
    heads, d_k = settings.heads, divides(settings.heads, d)
    split, maps = ((heads, n, d_k), (heads, n, n)) if heads > 1 else ((n, d), (n, n))
    activation = "GELU" if _activation(settings.activation) is gelu else "ReLU"

    rows = [Tensor("x", (n, d), 0, 0, "the input")]

    def then(name: str, shape: tuple[int, ...], made_by: str, parameters: int = 0, multiply_adds: int = 0) -> None:
        rows.append(Tensor(name, shape, parameters, multiply_adds, made_by))

    def then_norm(place: int, when: str) -> None:
        if settings.norm and settings.order == when:
            then(f"after norm {place}", (n, d), f"LN({rows[-1].name})")

    def then_add(place: int, skipped: str) -> None:
        if settings.residual:
            then(f"after add {place}", (n, d), f"{skipped} + {rows[-1].name}")

    then_norm(1, "pre-norm")
    entered = rows[-1].name
    for name, letter in (("queries", "Q"), ("keys", "K"), ("values", "V")):
        then(name, split, f"{entered} · W_{letter}", d * d, n * d * d)
    then("scores", maps, "queries · keysᵀ / √d_k", multiply_adds=n * n * d)
    then("weights", maps, "softmax(masked scores)" if settings.causal else "softmax(scores)")
    then("mixed values", split, "weights · values", multiply_adds=n * n * d)
    if heads > 1:
        then("concatenated heads", (n, d), "mixed values of all heads, side by side")
    if settings.output_projection:
        then("output projection", (n, d), f"{rows[-1].name} · W_O", d * d, n * d * d)
    then_add(1, "x")
    then_norm(1, "post-norm")

    skipped = rows[-1].name
    then_norm(2, "pre-norm")
    then("hidden layer", (n, f), f"{activation}({rows[-1].name} · W_1 + b_1)", d * f + f, n * d * f)
    then("feed-forward output", (n, d), "hidden layer · W_2 + b_2", f * d + d, n * f * d)
    then_add(2, skipped)
    then_norm(2, "post-norm")
    return rows


def attention_parameters(d_model: int, *, output_projection: bool = True, biases: bool = False) -> int:
    """Trainable numbers of multi-head attention: 4d² (3d² without W_O), and d more for each matrix with a bias.

    The number of heads does not enter: heads share the same matrices, cut into slices.

    Raises:
        ValueError: d_model below 1.
    """
    matrices = 4 if output_projection else 3
    at_least("d_model", d_model, 1)
    return matrices * (d_model * d_model + (d_model if biases else 0))


def block_parameters(d_model: int, d_ff: int) -> int:
    """Trainable numbers of a full block: all biases, W_O and two norms with gain and bias, as in PyTorch.

    4d² + 4d, 2·d·d_ff + d_ff + d and 4d: for d_model 512 and d_ff 2048 together 3,152,384.

    Raises:
        ValueError: d_model or d_ff below 1.
    """
    at_least("d_ff", d_ff, 1)
    return attention_parameters(d_model, biases=True) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model


def _checked(settings: Settings | None) -> Settings:
    """The settings, the lesson's where None; a ValueError for an order that is none."""
    settings = settings or Settings()
    if settings.order not in ("post-norm", "pre-norm"):
        raise ValueError(f"{settings.order} is neither post-norm nor pre-norm.")
    return settings


def _activation(name: str) -> Callable[[Array], Array]:
    if name not in ACTIVATIONS:
        raise ValueError(f"{name} is none of the activations {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def _unchanged(x: Array) -> Array:
    return x
