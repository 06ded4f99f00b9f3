"""Scaled dot-product attention, one visible stage at a time.

Vaswani et al. 2017, "Attention Is All You Need", equation 1.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from core.checks import Array, at_least, matrix, numbers, positive, projection, same, stretched


@dataclass(frozen=True)
class Attention:
    """Every stage of one attention computation; a head axis, where there is one, comes first in all of them.

    queries (n_q, d_k), keys (n_k, d_k), values (n_k, d_v);
    scores = queries · keysᵀ, scaled = scores / (√d_k · temperature) + bias,
    masked = scaled with -inf where not allowed (`allowed` is True where a query may look),
    weights = softmax(masked), all (n_q, n_k): row = who looks, column = who is looked at;
    output = weights · values (n_q, d_v).
    """

    queries: Array
    keys: Array
    values: Array
    scores: Array
    scaled: Array
    allowed: Array
    masked: Array
    weights: Array
    output: Array


def softmax(scores: Array) -> Array:
    """Softmax over the last axis, stable for any finite score.

    A row in which everything is -inf (nothing may be looked at) becomes a row of zeros, not NaN.

    Args:
        scores: (..., n), finite or -inf.

    Raises:
        ValueError: no scores, NaN or +inf.
    """
    scores = numbers("scores", scores)
    if scores.ndim == 0 or scores.size == 0:
        raise ValueError(f"softmax needs at least one score and got shape {scores.shape}.")
    highest = scores.max(axis=-1, keepdims=True)
    if not (highest < np.inf).all():
        raise ValueError("softmax needs scores that are finite or -inf.")
    with np.errstate(over="ignore"):  # a difference beyond the range of floats is -inf, and its exponential 0
        shares = scores - np.where(highest > -np.inf, highest, 0.0)
        np.exp(shares, out=shares)  # in place: a new array of this size takes longer than its numbers
    total = shares.sum(axis=-1, keepdims=True)
    shares /= np.where(total > 0, total, 1.0)
    return shares


def scaled_dot_product_attention(
    queries: Array,
    keys: Array,
    values: Array,
    allowed: Array | None = None,
    *,
    scaling: bool = True,
    temperature: float = 1.0,
    bias: Array | None = None,
) -> Attention:
    """softmax(Q Kᵀ / √d_k) V (Vaswani et al. 2017, eq. 1), with all its stages.

    Args:
        queries: (..., n_q, d_k). keys: (..., n_k, d_k). values: (..., n_k, d_v).
        allowed: booleans that broadcast to (..., n_q, n_k), True where a query may look; None allows all.
        scaling: divide the scores by √d_k.
        temperature: divides the scores too; above 1 flattens the rows, below 1 sharpens them.
        bias: added to the scaled scores before the mask, broadcasts to (..., n_q, n_k) (ALiBi).

    Raises:
        ValueError: sizes that do not fit, empty or non-finite input, scores too large for a float,
            a mask that is not boolean, a temperature that is not above 0.
    """
    queries, keys, values = matrix("queries", queries), matrix("keys", keys), matrix("values", values)
    same("the queries' width", queries.shape[-1], "the keys' width", keys.shape[-1])
    same("the number of keys", keys.shape[-2], "the number of values", values.shape[-2])
    same("the queries' leading shape", queries.shape[:-2], "the keys' leading shape", keys.shape[:-2])
    same("the keys' leading shape", keys.shape[:-2], "the values' leading shape", values.shape[:-2])
    # A Python float: numpy's own would turn float32 scores into float64.
    divisor = (sqrt(queries.shape[-1]) if scaling else 1.0) * positive("temperature", temperature)

    with np.errstate(over="ignore", invalid="ignore"):  # the check below names what overflows
        scores = queries @ keys.swapaxes(-1, -2)  # (n_q, d_k) @ (d_k, n_k) -> (n_q, n_k)
        scaled = scores / divisor
        if bias is not None:
            scaled = scaled + stretched("bias", matrix("bias", bias), scores.shape)
    matrix("the scaled scores", scaled)
    masked = scaled if allowed is None else np.where(_mask(allowed, scores.shape), scaled, -np.inf)
    weights = softmax(masked)  # each row sums to 1, or to 0 where nothing is allowed
    output = weights @ values  # (n_q, n_k) @ (n_k, d_v) -> (n_q, d_v)
    return Attention(queries, keys, values, scores, scaled, _mask(allowed, scores.shape), masked, weights, output)


def self_attention(
    x: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    allowed: Array | None = None,
    *,
    scaling: bool = True,
    temperature: float = 1.0,
) -> Attention:
    """Attention within one sequence: queries, keys and values all come from x.

    Args:
        x: (n, d_model), one row per token. w_q, w_k: (d_model, d_k). w_v: (d_model, d_v).
        allowed, scaling, temperature: as in `scaled_dot_product_attention`.

    Raises:
        ValueError: as in `scaled_dot_product_attention`.
    """
    return cross_attention(x, x, w_q, w_k, w_v, allowed, scaling=scaling, temperature=temperature)


def cross_attention(
    x: Array,
    memory: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    allowed: Array | None = None,
    *,
    scaling: bool = True,
    temperature: float = 1.0,
) -> Attention:
    """Attention from one sequence to another: the decoder's asks, the encoder's answers.

    Queries come from x (the decoder), keys and values from memory (the encoder).

    Args:
        x: (n_q, d_model). memory: (n_k, d_model). w_q, w_k: (d_model, d_k). w_v: (d_model, d_v).
        allowed, scaling, temperature: as in `scaled_dot_product_attention`; the weights are (n_q, n_k).

    Raises:
        ValueError: as in `scaled_dot_product_attention`.
    """
    x, memory = matrix("x", x, axes=2), matrix("memory", memory, axes=2)
    return scaled_dot_product_attention(
        x @ projection("w_q", w_q, x.shape[1]),  # (n_q, d_model) @ (d_model, d_k) -> (n_q, d_k)
        memory @ projection("w_k", w_k, memory.shape[1]),  # (n_k, d_model) @ (d_model, d_k) -> (n_k, d_k)
        memory @ projection("w_v", w_v, memory.shape[1]),  # (n_k, d_model) @ (d_model, d_v) -> (n_k, d_v)
        allowed,
        scaling=scaling,
        temperature=temperature,
    )


def causal_mask(seq_len: int) -> Array:
    """(n, n) booleans, True where the key stands at or before the query: no token sees a later one."""
    return np.tri(at_least("seq_len", seq_len, 1), dtype=bool)


def padding_mask(n_queries: int, n_keys: int, padding: int) -> Array:
    """(n_q, n_k) booleans, False in the columns of the last `padding` keys: nobody may look at filler.

    Raises:
        ValueError: sizes below 1; padding is negative or larger than the number of keys.
    """
    at_least("n_queries", n_queries, 1)
    at_least("n_keys", n_keys, 1)
    if at_least("padding", padding, 0) > n_keys:
        raise ValueError(f"padding must lie between 0 and the {n_keys} keys, not at {padding}.")
    return np.tile(np.arange(n_keys) < n_keys - padding, (n_queries, 1))


def entropy(weights: Array) -> Array:
    """How widely each row looks, in bits: 0 for all on one key, log2(n) for the same weight on n keys.

    Args:
        weights: (..., n_q, n_k), rows that sum to 1 or to 0. Returns (..., n_q).

    Raises:
        ValueError: the weights are no matrix, empty or not finite.
    """
    weights = matrix("weights", weights)
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.abs(-np.sum(weights * logarithms, axis=-1))  # abs: no minus sign before a zero


def strongest(weights: Array) -> Array:
    """(..., n_q) index of the key with the largest weight in each row; the earliest of equal ones.

    A row of zeros, which looks at nothing, gives 0 like any other row of equal weights.

    Raises:
        ValueError: the weights are no matrix, empty or not finite.
    """
    return np.argmax(matrix("weights", weights), axis=-1)


def _mask(allowed: Array | None, shape: tuple[int, ...]) -> Array:
    if allowed is None:
        return np.broadcast_to(np.True_, shape)
    allowed = np.asarray(allowed)
    if allowed.dtype != bool:
        raise ValueError(f"allowed must hold True and False, not {allowed.dtype}.")
    return stretched("allowed", allowed, shape)
