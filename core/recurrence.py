"""A recurrent network beside self-attention: what each computes, in how many steps, how far it reaches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from statistics import median
from time import perf_counter

import numpy as np

from core import draws
from core.attention import self_attention
from core.checks import Array, at_least, matrix, projection, same

_ONE_THREAD = 2**18  # multiply-adds up to which OpenBLAS leaves a product to one thread


@dataclass(frozen=True)
class Costs:
    """Exact counts for one sequence of n tokens of width d, without biases and elementwise functions.

    Multiply-adds: `rnn` 2·n·d² (input and recurrent product), `projections` 4·n·d² (Q, K, V and the output
    projection), `mixing` 2·n²·d (QKᵀ and weights·V), `attention` both together.
    Steps that must follow each other, with the sequence given: `rnn_steps` n, `attention_steps` 1.
    `generation_steps` n: when n new tokens are written, each must be there before the next, whatever computes it.
    Longest path between two tokens, in layers or time steps: `rnn_path` n - 1, `attention_path` 1 (0 for one
    token).
    `weights`: n², the entries of the attention map.
    """

    rnn: int
    projections: int
    mixing: int
    attention: int
    rnn_steps: int
    attention_steps: int
    generation_steps: int
    rnn_path: int
    attention_path: int
    weights: int


@dataclass(frozen=True)
class Crossings:
    """Lengths at which the mixing part of attention needs as many multiply-adds as something else.

    `rnn`: as the recurrent network, 2·n²·d = 2·n·d² at n = d. `projections`: as attention's own projections,
    2·n²·d = 4·n·d² at n = 2·d.
    """

    rnn: int
    projections: int


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs at one length: the median, and the shortest and the longest of them."""

    seq_len: int
    rnn: float
    attention: float
    rnn_range: tuple[float, float]
    attention_range: tuple[float, float]


def rnn(x: Array, w_x: Array, w_h: Array) -> Array:
    """h_t = tanh(x_t W_x + h_{t-1} W_h) with h_0 = 0 (Elman 1990). Step t needs step t - 1.

    Args:
        x: (n, d). w_x, w_h: (d, d). Returns the states (n, d).

    Raises:
        ValueError: sizes that do not fit, empty or non-finite input.
    """
    x = matrix("x", x, axes=2)
    w_x, w_h = projection("w_x", w_x, x.shape[1]), projection("w_h", w_h, np.shape(w_x)[-1])
    same("w_h's number of columns", w_h.shape[1], "its number of rows", w_h.shape[0])
    states = np.empty((x.shape[0], w_h.shape[1]), dtype=x.dtype)
    state = np.zeros(w_h.shape[0], dtype=x.dtype)
    for t, driven in enumerate(x @ w_x):  # the input's part needs no waiting: (n, d) @ (d, d)
        state = np.tanh(driven + state @ w_h)  # (d,) @ (d, d) -> (d,)
        states[t] = state
    return states


def scaled_jacobians(states: Array, w_x: Array, w_h: Array) -> Iterator[tuple[Array, int]]:
    """The Jacobians of `jacobians` in the same order, each as a matrix and the power of 2 it is to be multiplied by.

    Scaling by powers of 2 loses no digit. It keeps the squares in a norm from becoming 0 long before the norm
    does, and spares the processor numbers near the smallest float, with which it is many times slower.

    Raises:
        ValueError: as in `rnn`, when the first one is asked for.
    """
    states = matrix("states", states, axes=2)
    w_h = projection("w_h", w_h, states.shape[1])
    same("w_h's number of columns", w_h.shape[1], "its number of rows", w_h.shape[0])
    w_x = matrix("w_x", w_x, axes=2)
    same("w_x's number of columns", w_x.shape[1], "the states' width", states.shape[1])
    back_to_input, back_in_time = np.ascontiguousarray(w_x.T), np.ascontiguousarray(w_h.T)  # contiguous: twice as fast
    slopes = 1 - states**2  # tanh' at each step, (n, d)
    through, exponent = np.diag(slopes[-1]), 0  # d h_T / d (what goes into the tanh of step t), (d, d)
    for earlier in reversed(range(-1, len(states) - 1)):
        yield _product(through, back_to_input), exponent
        if earlier >= 0:
            through = _product(through, back_in_time) * slopes[earlier]
            size = int(np.frexp(np.abs(through).max())[1])
            through, exponent = np.ldexp(through, -size), exponent + size


def jacobians(states: Array, w_x: Array, w_h: Array) -> Iterator[Array]:
    """d h_T / d x_t for t = T, T - 1, …, 1: the exact product of the steps' Jacobians.

    Pascanu et al. 2013, eq. 5.

    Args:
        states: (n, d) from `rnn`. w_x, w_h: (d, d). Yields (d, d): entry [i, j] = d h_T[i] / d x_t[j].

    Raises:
        ValueError: as in `rnn`, when the first Jacobian is asked for.
    """
    for scaled, exponent in scaled_jacobians(states, w_x, w_h):
        yield np.ldexp(scaled, exponent)


def reach_of_tokens(states: Array, w_x: Array, w_h: Array) -> Array:
    """(n,) Frobenius norm of d h_T / d x_t, the first token first: how much the last state still answers to each.

    Norms are float64 whatever the states are; 0 is a norm below the smallest float (4.9e-324), or an exact 0.

    Raises:
        ValueError: as in `rnn`.
    """
    squares, exponents = zip(
        *((np.einsum("ij,ij->", scaled, scaled), exponent) for scaled, exponent in scaled_jacobians(states, w_x, w_h)),
        strict=True,
    )
    return np.ldexp(np.sqrt(np.array(squares, dtype=np.float64)), exponents)[::-1]


def _product(left: Array, right: Array) -> Array:
    """left @ right, a few rows at a time, so that BLAS keeps each part on one thread.

    Hundreds of small products in a row, each shared between threads, wait for one another: on a busy machine
    that made the Jacobians of 256 tokens at width 128 twenty times as slow.
    """
    rows = max(1, _ONE_THREAD // right.size)
    return np.concatenate([left[first : first + rows] @ right for first in range(0, len(left), rows)])


def costs(seq_len: int, d_model: int) -> Costs:
    """Exact counts for one sequence.

    Raises:
        ValueError: seq_len or d_model below 1.
    """
    n, d = at_least("seq_len", seq_len, 1), at_least("d_model", d_model, 1)
    return Costs(
        rnn=2 * n * d * d,
        projections=4 * n * d * d,
        mixing=2 * n * n * d,
        attention=4 * n * d * d + 2 * n * n * d,
        rnn_steps=n,
        attention_steps=1,
        generation_steps=n,
        rnn_path=n - 1,
        attention_path=min(1, n - 1),
        weights=n * n,
    )


@lru_cache(maxsize=64)  # a row of numbers for each count: 20 KB for 255 lengths, 1.3 MB in all
def costs_by_length(shortest: int, longest: int, d_model: int) -> dict[str, Array]:
    """The counts of `costs` by their names, each for all lengths from the shortest to the longest, (m,).

    Raises:
        ValueError: a length or d_model below 1.
    """
    found = [vars(costs(seq_len, d_model)) for seq_len in range(shortest, longest + 1)]
    return {field.name: np.array([counts[field.name] for counts in found]) for field in fields(Costs)}


def crossings(d_model: int) -> Crossings:
    """Where the curves of `costs` against the length cross.

    Raises:
        ValueError: d_model below 1.
    """
    d = at_least("d_model", d_model, 1)
    return Crossings(rnn=d, projections=2 * d)


def time_both(
    lengths: Sequence[int],
    d_model: int,
    seed: int,
    repeats: int = 7,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[Timing]:
    """Run the recurrent network and self-attention over growing lengths and yield the times of each.

    Both run in float32 on the same tokens; one run of each before the clock starts is not counted.

    Args:
        clock: seconds; another one makes the function testable.

    Raises:
        ValueError: a length, d_model or repeats below 1, when the first time is asked for.
    """
    at_least("repeats", repeats, 1)
    w_x, w_h = (w.astype(np.float32) for w in draws.recurrent_weights(d_model, seed, 1.0))
    w = draws.attention_weights(d_model, seed, 1 / np.sqrt(d_model))
    w_q, w_k, w_v, w_o = (m.astype(np.float32) for m in (w.w_q, w.w_k, w.w_v, w.w_o))
    for seq_len in lengths:
        x = draws.tokens(seq_len, d_model, seed).astype(np.float32)
        rnn_times = _times(partial(rnn, x, w_x, w_h), repeats, clock)
        attention_times = _times(partial(_attend, x, w_q, w_k, w_v, w_o), repeats, clock)
        yield Timing(
            seq_len,
            median(rnn_times),
            median(attention_times),
            (min(rnn_times), max(rnn_times)),
            (min(attention_times), max(attention_times)),
        )


def _attend(x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array) -> Array:
    return self_attention(x, w_q, w_k, w_v).output @ w_o


def _times(run: Callable[[], object], repeats: int, clock: Callable[[], float]) -> list[float]:
    run()
    times = []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return times
