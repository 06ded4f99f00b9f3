"""Scaled dot-product attention, one visible stage at a time.

Vaswani et al. 2017, "Attention Is All You Need", equation 1.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt

import numpy as np

from core.checks import Array, all_finite, at_least, matrix, numbers, positive, projection, same, stretched

STAGES = ("queries", "keys", "values", "scores", "scaled", "allowed", "masked", "weights", "output")  # of Attention


@dataclass(frozen=True)
class Attention:
    """Every stage of one attention computation; a head axis, where there is one, comes first in all of them.

    queries (n_q, d_k), keys (n_k, d_k), values (n_k, d_v);
    scores = queries · keysᵀ, scaled = scores / divisor + bias, where divisor = √d_k · temperature,
    masked = scaled with -inf where not allowed (`allowed` is True where a query may look),
    weights = softmax(masked), all (n_q, n_k): row = who looks, column = who is looked at;
    output = weights · values (n_q, d_v).

    The weights were written over scores, scaled and masked, which are computed anew, once, when they are asked for:
    most callers do not, and with many heads the memory for them takes longer to get than the numbers in it.
    """

    queries: Array
    keys: Array
    values: Array
    divisor: float
    bias: Array | None
    allowed: Array
    weights: Array
    output: Array

    @cached_property
    def scores(self) -> Array:
        return _products(self.queries, self.keys)

    @cached_property
    def scaled(self) -> Array:
        scaled = self.scores / self.divisor
        return scaled if self.bias is None else scaled + self.bias

    @cached_property
    def masked(self) -> Array:
        return np.where(self.allowed, self.scaled, -np.inf)


def softmax(scores: Array, out: Array | None = None) -> Array:
    """Softmax over the last axis, stable for any finite score.

    A row in which everything is -inf (nothing may be looked at) becomes a row of zeros, not NaN.

    Args:
        scores: (..., n), finite or -inf.
        out: the array to write into, as in numpy; it may be `scores` itself.

    Raises:
        ValueError: no scores, NaN or +inf.
    """
    scores = numbers("scores", scores)
    if scores.ndim == 0 or scores.size == 0:
        raise ValueError(f"softmax needs at least one score and got shape {scores.shape}.")
    lowest = np.finfo(scores.dtype).min  # of a row of -inf: a number that can be subtracted
    highest = scores.max(axis=-1, keepdims=True, initial=lowest)
    if not isfinite(highest.max()):
        raise ValueError("softmax needs scores that are finite or -inf.")
    with np.errstate(over="ignore"):  # a difference beyond the range of floats is -inf, and its exponential 0
        shares = np.subtract(scores, highest, out=out)
    np.exp(shares, out=shares)
    total = shares.sum(axis=-1, keepdims=True)
    shares /= np.maximum(total, 1.0)  # the highest adds exp(0) = 1; only the total of a row of -inf is below, 0
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
        scores = _products(queries, keys)  # (n_q, d_k) @ (d_k, n_k) -> (n_q, n_k)
        # In place: a new array takes longer than its numbers. To divide by 1 takes as long as by another number.
        scaled = scores if divisor == 1.0 else np.divide(scores, divisor, out=scores)
        if bias is not None:
            bias = stretched("bias", matrix("bias", bias), scaled.shape)
            scaled = scaled + bias
    all_finite("the scaled scores", scaled)
    may_look = _mask(allowed, scaled.shape)
    masked = scaled if allowed is None else np.where(may_look, scaled, -np.inf)
    weights = softmax(masked, out=masked)  # each row sums to 1, or to 0 where nothing is allowed
    output = weights @ values  # (n_q, n_k) @ (n_k, d_v) -> (n_q, d_v)
    return Attention(queries, keys, values, divisor, bias, may_look, weights, output)


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


def _products(queries: Array, keys: Array) -> Array:
    """(..., n_q, n_k) the product of every query (..., n_q, d_k) with every key (..., n_k, d_k)."""
    if queries.shape[-1] == 1:  # numpy multiplies columns with rows three times as fast here as by a matrix product
        return np.einsum("...qd,...kd->...qk", queries, np.ascontiguousarray(keys), order="C")
    return queries @ keys.mT


def _mask(allowed: Array | None, shape: tuple[int, ...]) -> Array:
    if allowed is None:
        return np.ones(shape, dtype=bool)
    allowed = np.asarray(allowed)
    if allowed.dtype != bool:
        raise ValueError(f"allowed must hold True and False, not {allowed.dtype}.")
    return stretched("allowed", allowed, shape)
