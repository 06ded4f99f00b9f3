"""Backward passes by hand: how the loss changes with every number that went into it.

Each forward pass here computes what its counterpart in `core.attention`, `core.multi_head` and `core.block` computes
(tests compare them), but takes whole batches as leading axes, keeps only what its backward pass needs, and does not
search its input for NaN and infinity: a training step runs all of them, and sees by its loss when numbers run away.

`d_y` is the gradient of the loss with respect to y and has the shape of y. A backward pass takes the gradient of what
its forward pass gave and returns that of what it was given: the chain rule (Rumelhart et al. 1986, "Learning
representations by back-propagating errors"). Shapes: `...` any leading axes, n tokens, d = d_model, h heads of width
d_k = d/h. Float32 stays float32.

Every function raises a ValueError where shapes do not fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, pi, sqrt
from typing import NamedTuple

import numpy as np

from core.attention import causal_mask
from core.block import EPS, Settings
from core.checks import Array, divides, same
from core.draws import AttentionWeights, FeedForwardWeights

_LONG_ROW = 32  # numbers from which numpy's sums along rows are as fast as sums down columns
_ONE_THREAD = 2**18  # multiply-adds up to which OpenBLAS leaves a product to one thread
_DIRECTION = 200  # the stream of `unit_direction`; it shares no numbers with those of `core.draws` and `core.training`

_erf = np.vectorize(erf, otypes=[float])


# --- linear ----------------------------------------------------------------------------------------------------------


def linear(x: Array, w: Array, b: Array | None = None) -> Array:
    """x w + b. Args: x (..., n, d_in), w (d_in, d_out), b (d_out,). Returns (..., n, d_out)."""
    same("the input's width", x.shape[-1], "w's number of rows", w.shape[0])
    output = x @ w
    if b is not None:
        output += b
    return output


def linear_backward(d_output: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """d_x = d_output wᵀ and d_w = xᵀ d_output, summed over all tokens of the batch.

    Args:
        d_output: (..., n, d_out). x: (..., n, d_in). w: (d_in, d_out).

    Returns:
        d_x (..., n, d_in), d_w (d_in, d_out). The bias has `bias_backward`.
    """
    return _through_linear(d_output, x, w), _sum_over_tokens(x, d_output)


def _through_linear(d_output: Array, x: Array, w: Array) -> Array:
    """The d_x of `linear_backward`."""
    same("the gradient's shape", d_output.shape, "the output's shape", (*x.shape[:-1], w.shape[1]))
    return d_output @ np.ascontiguousarray(w.T)


def bias_backward(d_output: Array) -> Array:
    """(d_out,): a bias is added to every token, so its gradient is the sum over all of them."""
    return np.einsum("ij->j", d_output.reshape(-1, d_output.shape[-1]))


def _sum_over_tokens(left: Array, right: Array) -> Array:
    """leftᵀ right over all tokens: (..., n, a), (..., n, b) -> (a, b).

    As many pieces as keep each product on one thread of BLAS: shared between threads, small products wait for one
    another, which on a busy machine takes many times as long, and the pieces' sum does not depend on the threads.
    """
    a, b = left.shape[-1], right.shape[-1]
    tokens = left.size // a
    fewest = max(1, min(tokens, -(-tokens * a * b // _ONE_THREAD)))
    pieces = next(count for count in range(fewest, tokens + 1) if tokens % count == 0)
    left, right = left.reshape(pieces, -1, a), right.reshape(pieces, -1, b)
    return (left.swapaxes(-1, -2) @ right).sum(axis=0)


# --- softmax and attention -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AttentionPass:
    """queries (..., n_q, d_k), keys (..., n_k, d_k), values (..., n_k, d_v), weights (..., n_q, n_k)."""

    queries: Array
    keys: Array
    values: Array
    weights: Array


def softmax(scores: Array) -> Array:
    """Softmax over the last axis, as `core.attention.softmax`: a row of -inf alone becomes zeros. scores: (..., n)."""
    if scores.shape[-1] >= _LONG_ROW:
        return _softmax_of_long_rows(scores)
    exponentials, total = _exponentials(_below_highest(scores))
    exponentials /= total
    return exponentials.T.reshape(scores.shape)


def _softmax_of_long_rows(scores: Array) -> Array:
    """Row by row, so that the rows also lie in memory as rows: what is done with long ones is faster then."""
    highest = scores.max(axis=-1, keepdims=True)
    shares = scores - np.where(highest > -np.inf, highest, 0)
    np.exp(shares, out=shares)
    shares /= np.maximum(shares.sum(axis=-1, keepdims=True), 1)  # only of a row of -inf is it below 1, namely 0
    return shares


def _below_highest(scores: Array) -> Array:
    """score - highest of its row, for scores (..., n) as (n, rows): a row becomes a column.

    numpy takes the highest and the sum of many short rows several times faster down the first axis.
    """
    columns = scores.reshape(-1, scores.shape[-1]).T.copy()
    highest = columns.max(axis=0)
    columns -= np.where(highest > -np.inf, highest, 0)
    return columns


def _exponentials(columns: Array) -> tuple[Array, Array]:
    """exp of all, written in their place, and the sum of each column, or 1 where it is 0."""
    np.exp(columns, out=columns)
    total = columns.sum(axis=0)
    total[total == 0] = 1
    return columns, total


def softmax_backward(d_weights: Array, weights: Array) -> Array:
    """d_scores = weights · (d_weights - Σ_k d_weights_k weights_k), both (..., n): each row has its own Jacobian.

    Where a weight is 0, as under a mask, so is the gradient of its score.
    """
    same("the gradient's shape", d_weights.shape, "the weights' shape", weights.shape)
    d_scores = d_weights - np.einsum("...k,...k->...", d_weights, weights)[..., np.newaxis]
    d_scores *= weights
    return d_scores


def attention(queries: Array, keys: Array, values: Array, allowed: Array | None = None) -> tuple[Array, AttentionPass]:
    """softmax(Q Kᵀ / √d_k) V (Vaswani et al. 2017, eq. 1), (..., n_q, d_v), and what the backward pass needs.

    Args:
        queries: (..., n_q, d_k). keys: (..., n_k, d_k). values: (..., n_k, d_v).
        allowed: booleans that broadcast to (..., n_q, n_k), True where a query may look.
    """
    weights = _attention_weights(queries, keys, allowed)
    same("the number of keys", keys.shape[-2], "the number of values", values.shape[-2])
    return weights @ values, AttentionPass(queries, keys, values, weights)


def _attention_weights(queries: Array, keys: Array, allowed: Array | None) -> Array:
    same("the queries' width", queries.shape[-1], "the keys' width", keys.shape[-1])
    scores = queries @ keys.swapaxes(-1, -2)  # (..., n_q, d_k) @ (..., d_k, n_k) -> (..., n_q, n_k)
    scores *= 1 / sqrt(queries.shape[-1])
    return softmax(scores if allowed is None else np.where(allowed, scores, -np.inf).astype(scores.dtype, copy=False))


def attention_backward(
    d_output: Array, passed: AttentionPass, out: tuple[Array, Array, Array] | None = None
) -> tuple[Array, Array, Array]:
    """d_queries, d_keys, d_values, shaped as queries, keys and values; written into `out` where it is given.

    Args:
        d_output: (..., n_q, d_v).
    """
    same("the gradient's shape", d_output.shape, "the output's", (*passed.weights.shape[:-1], passed.values.shape[-1]))
    to_queries, to_keys, to_values = out or (None, None, None)
    d_weights = d_output @ passed.values.swapaxes(-1, -2)  # (..., n_q, d_v) @ (..., d_v, n_k) -> (..., n_q, n_k)
    d_scores = softmax_backward(d_weights, passed.weights)
    d_scores *= 1 / sqrt(passed.queries.shape[-1])
    return (
        np.matmul(d_scores, passed.keys, out=to_queries),
        np.matmul(d_scores.swapaxes(-1, -2), passed.queries, out=to_keys),
        np.matmul(passed.weights.swapaxes(-1, -2), d_output, out=to_values),
    )


# --- multi-head attention --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MultiHeadPass:
    """x (..., n, d), all heads' attention (..., h, n, d_k), concatenated (..., n, d)."""

    x: Array
    heads: AttentionPass
    concatenated: Array


def multi_head(
    x: Array, w_qkv: Array, w_o: Array | None, heads: int, allowed: Array | None = None
) -> tuple[Array, MultiHeadPass]:
    """Concat(head_1, …, head_h) W_O (Vaswani et al. 2017, section 3.2.2), (..., n, d), without biases.

    Args:
        x: (..., n, d). w_qkv: (d, 3d), W_Q, W_K and W_V side by side: one product in place of three.
        w_o: (d, d), or None to stop at the concatenation.
        allowed: booleans that broadcast to (..., h, n, n), True where a query may look.

    Raises:
        ValueError: heads do not divide d_model.
    """
    same("w_qkv's number of columns", w_qkv.shape[1], "three times d_model", 3 * x.shape[-1])
    queries, keys, values = _three_by_heads(linear(x, w_qkv), heads)
    weights = _attention_weights(queries, keys, allowed)
    concatenated = np.empty_like(x)
    np.matmul(weights, values, out=_by_heads(concatenated, heads))
    passed = MultiHeadPass(x, AttentionPass(queries, keys, values, weights), concatenated)
    return concatenated if w_o is None else linear(concatenated, w_o), passed


def multi_head_backward(
    d_output: Array, passed: MultiHeadPass, w_qkv: Array, w_o: Array | None
) -> tuple[Array, Array, Array | None]:
    """d_x (..., n, d), d_w_qkv (d, 3d), d_w_o (d, d) or None. Args: d_output (..., n, d)."""
    d_x, d_qkv = _through_multi_head(d_output, passed, w_qkv, w_o)
    return d_x, *_multi_head_weights(d_output, d_qkv, passed, w_o)


def _through_multi_head(d_output: Array, passed: MultiHeadPass, w_qkv: Array, w_o: Array | None) -> tuple[Array, Array]:
    """d_x (..., n, d) and d_qkv (..., n, 3d)."""
    d_concatenated = d_output if w_o is None else _through_linear(d_output, passed.concatenated, w_o)
    heads = passed.heads.weights.shape[-3]
    d_qkv = np.empty((*passed.x.shape[:-1], w_qkv.shape[1]), dtype=d_output.dtype)
    attention_backward(_by_heads(d_concatenated, heads), passed.heads, out=_three_by_heads(d_qkv, heads))
    return _through_linear(d_qkv, passed.x, w_qkv), d_qkv


def _multi_head_weights(
    d_output: Array, d_qkv: Array, passed: MultiHeadPass, w_o: Array | None
) -> tuple[Array, Array | None]:
    """d_w_qkv (d, 3d), d_w_o (d, d) or None."""
    d_w_o = None if w_o is None else _sum_over_tokens(passed.concatenated, d_output)
    return _sum_over_tokens(passed.x, d_qkv), d_w_o


def _by_heads(x: Array, heads: int) -> Array:
    """(..., n, h·d_k) seen as (..., h, n, d_k): the same numbers, nothing copied."""
    return x.reshape(*x.shape[:-1], heads, divides(heads, x.shape[-1])).swapaxes(-2, -3)


def _three_by_heads(qkv: Array, heads: int) -> tuple[Array, Array, Array]:
    """(..., n, 3·h·d_k) seen as queries, keys and values, each (..., h, n, d_k); nothing copied."""
    d = qkv.shape[-1] // 3
    return (
        _by_heads(qkv[..., :d], heads),
        _by_heads(qkv[..., d : 2 * d], heads),
        _by_heads(qkv[..., 2 * d :], heads),
    )


# --- layer norm ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NormPass:
    """normalised (..., d): what LayerNorm gives before gain and bias. inverse (..., 1): 1 / √(variance + eps)."""

    normalised: Array
    inverse: Array


def layer_norm(
    x: Array, gain: Array | None = None, bias: Array | None = None, eps: float = EPS
) -> tuple[Array, NormPass]:
    """(x - mean) / √(variance + eps) · gain + bias over each token's features, as `core.block.layer_norm`.

    Ba et al. 2016, eq. 3 and 4. Args: x (..., d); gain, bias (d,), or None for the lesson's norm, which has neither.
    """
    d = x.shape[-1]
    centred = x - _mean(x)
    variance = np.einsum("...i,...i->...", centred, centred)[..., np.newaxis]
    variance /= d
    inverse = 1 / np.sqrt(variance + eps)
    centred *= inverse
    output = centred if gain is None else centred * gain
    return output if bias is None else output + bias, NormPass(centred, inverse)


def layer_norm_backward(d_output: Array, passed: NormPass, gain: Array | None = None) -> Array:
    """d_x (..., d): what is left of the gradient after its mean and its part along the normalised token are taken out.

    d_x = (g - mean(g) - x̂ · mean(g · x̂)) / √(variance + eps), with g = d_output · gain and x̂ the normalised token.
    """
    same("the gradient's shape", d_output.shape, "the output's shape", passed.normalised.shape)
    g = d_output if gain is None else d_output * gain
    along = np.einsum("...i,...i->...", g, passed.normalised)[..., np.newaxis]
    along /= g.shape[-1]
    d_x = passed.normalised * along
    d_x += _mean(g)
    np.subtract(g, d_x, out=d_x)
    d_x *= passed.inverse
    return d_x


def gain_backward(d_output: Array, passed: NormPass) -> tuple[Array, Array]:
    """d_gain and d_bias of LayerNorm, (d,) each: sums over all tokens."""
    return bias_backward(d_output * passed.normalised), bias_backward(d_output)


def _mean(x: Array) -> Array:
    """(..., 1) mean over the last axis; einsum sums many short rows several times faster than numpy's mean."""
    return (np.einsum("...i->...", x) / np.asarray(x.shape[-1], dtype=x.dtype))[..., np.newaxis]


# --- feed-forward ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeedForwardPass:
    """x (..., n, d), before and hidden (..., n, d_ff): the hidden layer before and after its activation.

    normal (..., n, d_ff): Φ(before), where the activation is GELU.
    """

    x: Array
    before: Array
    hidden: Array
    normal: Array | None = None


def relu_backward(d_output: Array, z: Array) -> Array:
    """d_output where z > 0, else 0; at 0, where ReLU has a kink, 0 as in PyTorch. z may be ReLU's output as well."""
    return d_output * (z > 0)


def gelu_backward(d_output: Array, z: Array, normal: Array | None = None) -> Array:
    """d_output · (Φ(z) + z φ(z)), for the exact GELU z Φ(z) (Hendrycks & Gimpel 2016, eq. 1).

    Φ is the normal distribution function and φ its density. normal: Φ(z), where it is known.
    """
    slope = (_normal(z) if normal is None else normal) + z * np.exp(-0.5 * z * z) / sqrt(2 * pi)
    return d_output * slope.astype(z.dtype, copy=False)


def _normal(z: Array) -> Array:
    """The normal distribution function Φ."""
    return 0.5 * (1 + _erf(z / sqrt(2)))


def feed_forward(
    x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array, activation: str = "relu"
) -> tuple[Array, FeedForwardPass]:
    """activation(x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, eq. 2), (..., n, d).

    Args:
        x: (..., n, d). w_1: (d, d_ff). w_2: (d_ff, d). activation: "relu" or "gelu".

    Raises:
        ValueError: an unknown activation.
    """
    before, normal = linear(x, w_1, b_1), None
    if activation == "relu":
        hidden = np.maximum(before, np.zeros_like(b_1))  # an array of zeros: numpy is slower with the number 0
    elif activation == "gelu":
        normal = _normal(before)
        hidden = (before * normal).astype(x.dtype, copy=False)
    else:
        raise ValueError(f"{activation} is none of the activations relu, gelu.")
    return linear(hidden, w_2, b_2), FeedForwardPass(x, before, hidden, normal)


def feed_forward_backward(
    d_output: Array, passed: FeedForwardPass, w_1: Array, w_2: Array, activation: str = "relu"
) -> tuple[Array, Array, Array, Array, Array]:
    """d_x (..., n, d), d_w_1 (d, d_ff), d_b_1 (d_ff,), d_w_2 (d_ff, d), d_b_2 (d,). Args: d_output (..., n, d)."""
    d_x, d_before = _through_feed_forward(d_output, passed, w_1, w_2, activation)
    return d_x, *_feed_forward_weights(d_output, d_before, passed)


def _through_feed_forward(
    d_output: Array, passed: FeedForwardPass, w_1: Array, w_2: Array, activation: str
) -> tuple[Array, Array]:
    """d_x (..., n, d) and d_before (..., n, d_ff)."""
    d_hidden = _through_linear(d_output, passed.hidden, w_2)
    if activation == "relu":
        d_before = relu_backward(d_hidden, passed.before)
    else:
        d_before = gelu_backward(d_hidden, passed.before, passed.normal)
    return _through_linear(d_before, passed.x, w_1), d_before


def _feed_forward_weights(
    d_output: Array, d_before: Array, passed: FeedForwardPass
) -> tuple[Array, Array, Array, Array]:
    """d_w_1 (d, d_ff), d_b_1 (d_ff,), d_w_2 (d_ff, d), d_b_2 (d,)."""
    d_w_1, d_w_2 = _sum_over_tokens(passed.x, d_before), _sum_over_tokens(passed.hidden, d_output)
    return d_w_1, bias_backward(d_before), d_w_2, bias_backward(d_output)


# --- the block -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockWeights:
    """w_qkv (d, 3d), w_o (d, d) or None, w_1 (d, d_ff), b_1 (d_ff,), w_2 (d_ff, d), b_2 (d,); or their gradients."""

    w_qkv: Array
    w_o: Array | None
    w_1: Array
    b_1: Array
    w_2: Array
    b_2: Array


@dataclass(frozen=True)
class BlockPass:
    """What the backward pass of a block needs; the norms are None where there is none."""

    multi_head: MultiHeadPass
    feed_forward: FeedForwardPass
    norms: tuple[NormPass | None, NormPass | None]


def block_weights(attention: AttentionWeights, feed: FeedForwardWeights) -> BlockWeights:
    """The weights of `core.block.transformer_block` in one place, queries, keys and values side by side."""
    w_qkv = np.concatenate([attention.w_q, attention.w_k, attention.w_v], axis=1)
    return BlockWeights(w_qkv, attention.w_o, feed.w_1, feed.b_1, feed.w_2, feed.b_2)


def block(x: Array, weights: BlockWeights, settings: Settings) -> tuple[Array, BlockPass]:
    """One transformer block for batches: what `core.block.transformer_block` computes for each sequence.

    Args:
        x: (..., n, d). Returns the output (..., n, d) and what the backward pass needs.

    Raises:
        ValueError: heads do not divide d_model; an unknown order or activation.
    """
    before, after = _places_of_norms(settings)
    w_o = weights.w_o if settings.output_projection else None
    allowed = causal_mask(x.shape[-2]) if settings.causal else None

    entered, norm_1 = layer_norm(x) if before else (x, None)
    computed, heads = multi_head(entered, weights.w_qkv, w_o, settings.heads, allowed)
    x = x + computed if settings.residual else computed
    if after:
        x, norm_1 = layer_norm(x)

    entered, norm_2 = layer_norm(x) if before else (x, None)
    computed, feed = feed_forward(entered, weights.w_1, weights.b_1, weights.w_2, weights.b_2, settings.activation)
    x = x + computed if settings.residual else computed
    if after:
        x, norm_2 = layer_norm(x)
    return x, BlockPass(heads, feed, (norm_1, norm_2))


class Inside(NamedTuple):
    """The gradients inside a block from which those of its weights are made.

    d_attention, d_feed_forward (..., n, d): of what the sublayers gave. d_qkv (..., n, 3d), d_before (..., n, d_ff).
    """

    d_attention: Array
    d_qkv: Array
    d_feed_forward: Array
    d_before: Array


def through_block(
    d_output: Array, passed: BlockPass, weights: BlockWeights, settings: Settings
) -> tuple[Array, Inside]:
    """d_x (..., n, d), and what the gradient is inside the block. Args: d_output (..., n, d).

    A residual connection hands the gradient on unchanged, beside what comes through the sublayer: the direct path.
    """
    before, after = _places_of_norms(settings)
    norm_1, norm_2 = passed.norms
    w_o = weights.w_o if settings.output_projection else None

    d_feed_forward = _through_norm(d_output, norm_2, after)
    d_entered, d_before = _through_feed_forward(
        d_feed_forward, passed.feed_forward, weights.w_1, weights.w_2, settings.activation
    )
    d_x = _through_norm(d_entered, norm_2, before)
    if settings.residual:
        d_x = d_feed_forward + d_x

    d_attention = _through_norm(d_x, norm_1, after)
    d_entered, d_qkv = _through_multi_head(d_attention, passed.multi_head, weights.w_qkv, w_o)
    d_x = _through_norm(d_entered, norm_1, before)
    if settings.residual:
        d_x = d_attention + d_x
    return d_x, Inside(d_attention, d_qkv, d_feed_forward, d_before)


def block_backward(
    d_output: Array, passed: BlockPass, weights: BlockWeights, settings: Settings
) -> tuple[Array, BlockWeights]:
    """d_x (..., n, d), as `through_block`, and the gradients of the weights. Args: d_output (..., n, d)."""
    d_x, inside = through_block(d_output, passed, weights, settings)
    w_o = weights.w_o if settings.output_projection else None
    return d_x, BlockWeights(
        *_multi_head_weights(inside.d_attention, inside.d_qkv, passed.multi_head, w_o),
        *_feed_forward_weights(inside.d_feed_forward, inside.d_before, passed.feed_forward),
    )


def _places_of_norms(settings: Settings) -> tuple[bool, bool]:
    """Whether a norm stands before each sublayer, and whether one stands after the addition."""
    if settings.order not in ("post-norm", "pre-norm"):
        raise ValueError(f"{settings.order} is neither post-norm nor pre-norm.")
    return settings.norm and settings.order == "pre-norm", settings.norm and settings.order == "post-norm"


def _through_norm(d_output: Array, norm: NormPass | None, there: bool) -> Array:
    return layer_norm_backward(d_output, norm) if there and norm is not None else d_output


# --- a stack of blocks -----------------------------------------------------------------------------------------------


def unit_direction(n: int, d_model: int, seed: int) -> Array:
    """(n, d_model) random numbers whose squares sum to 1: the gradient of the loss Σ output · direction.

    The plain sum of the output would not do as a loss: after a LayerNorm it is 0, whatever the weights are.
    """
    drawn = np.random.default_rng([_DIRECTION, seed]).standard_normal((n, d_model))
    return drawn / np.linalg.norm(drawn)


def gradient_lengths(x: Array, weights: Sequence[BlockWeights], settings: Settings, d_output: Array) -> Array:
    """How long the gradient of the loss is where it comes past, going back through a stack of blocks.

    Forward through all blocks and, in pre-norm, the norm after the last one (`core.block.final_norm`), then back.

    Args:
        x, d_output: (n, d): the stack's input, and the gradient that arrives at its output.

    Returns:
        (blocks + 1,) square roots of the sum of squares over all tokens: at the input of each block, in order, and at
        the output of the last one. Where numbers outgrow floating point on the way, infinity or NaN.
    """
    before, _ = _places_of_norms(settings)
    passes = []
    with np.errstate(all="ignore"):  # what overflows shows in the lengths
        for each in weights:
            x, passed = block(x, each, settings)
            passes.append(passed)
        d_x = _through_norm(d_output, layer_norm(x)[1], before)
        lengths = [np.linalg.norm(d_x)]
        for each, passed in zip(reversed(weights), reversed(passes), strict=True):
            d_x, _ = through_block(d_x, passed, each, settings)
            lengths.append(np.linalg.norm(d_x))
    return np.array(lengths[::-1])


# --- embedding and loss ----------------------------------------------------------------------------------------------


def embedding_backward(d_rows: Array, indices: Array, size: int) -> Array:
    """(size, d): the gradient of a table whose rows were looked up, the sum over all places that took each row.

    A lookup table[indices] is a product with one-hot rows, and this is `linear_backward` of that product.

    Args:
        d_rows: (..., n, d). indices: (..., n), whole numbers from 0 to size - 1.
    """
    same("the number of gradients", d_rows.shape[:-1], "the number of indices", indices.shape)
    one_hot = (indices[..., np.newaxis] == np.arange(size)).astype(d_rows.dtype)
    return _sum_over_tokens(one_hot, d_rows)


def cross_entropy(logits: Array, answers: Array) -> tuple[float, Array]:
    """-log softmax(logits)[answer], in nats, the mean over everything that was asked; and the probabilities.

    Args:
        logits: (..., classes). answers: (...), whole numbers from 0 to classes - 1, or -1 where nothing is asked.

    Returns:
        The loss, and softmax(logits) (..., classes). A loss that is no finite number is returned as it is.

    Raises:
        ValueError: nothing is asked at all.
    """
    same("the number of predictions", logits.shape[:-1], "the number of answers", answers.shape)
    asked, rows = answers.reshape(-1) >= 0, np.arange(answers.size)
    if not asked.any():
        raise ValueError("The loss needs at least one answer that is asked for.")
    columns = _below_highest(logits)  # (classes, rows)
    right = columns[answers.reshape(-1), rows]  # -1 takes the last class, and is left out below
    exponentials, total = _exponentials(columns)
    losses = np.log(total) - right
    exponentials /= total
    return float(losses[asked].mean()), exponentials.T.reshape(logits.shape)


def cross_entropy_backward(probabilities: Array, answers: Array) -> Array:
    """d_logits (..., classes) = (probabilities - one-hot answers) / number of answers asked; 0 where none is asked."""
    same("the number of predictions", probabilities.shape[:-1], "the number of answers", answers.shape)
    asked = answers.reshape(-1) >= 0
    share = 1 / np.count_nonzero(asked)
    d_logits = probabilities.reshape(len(asked), -1) * np.asarray(share, dtype=probabilities.dtype)
    d_logits[np.arange(len(asked)), answers.reshape(-1)] -= share
    d_logits[~asked] = 0
    return d_logits.reshape(probabilities.shape)
