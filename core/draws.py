"""Every random array of the lesson, from a seed.

The lesson draws its tokens row by row, then its weights, from one legacy generator. Its five rows and its
weights are taken from that stream, so that the lesson's own settings give the lesson's own numbers; further
rows, output projections, words and further blocks come from streams of their own. So a longer sequence changes
neither a weight nor an earlier row.

Every function raises a ValueError for a size below 1, a seed outside 0 to 2³² - 1, a scale that is not finite.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.checks import Array, at_least, finite

LESSON_ROWS = 5
HIGHEST_SEED = 2**32 - 1  # the legacy generator takes no larger one

# Which stream a draw comes from, so that no two kinds of draw share numbers.
_ROWS, _WORDS, _OUTPUT, _BLOCKS, _MEMORY, _TABLE, _RECURRENT = range(7)


@dataclass(frozen=True)
class AttentionWeights:
    """The projections of one attention layer: w_q, w_k, w_v (d_model, d_model) and w_o (d_model, d_model)."""

    w_q: Array
    w_k: Array
    w_v: Array
    w_o: Array


@dataclass(frozen=True)
class FeedForwardWeights:
    """w_1 (d_model, d_ff), b_1 (d_ff,), w_2 (d_ff, d_model), b_2 (d_model,)."""

    w_1: Array
    b_1: Array
    w_2: Array
    b_2: Array


def tokens(seq_len: int, d_model: int, seed: int) -> Array:
    """(seq_len, d_model) standard normal rows: the lesson's X for its first five, further ones beyond."""
    at_least("seq_len", seq_len, 1)
    first = _lesson_stream(seed, d_model)[1][:seq_len]
    further = _generator(_ROWS, seed, d_model).standard_normal((max(0, seq_len - LESSON_ROWS), d_model))
    return np.concatenate([first, further])


def words(sentence: Sequence[str], d_model: int, seed: int) -> Array:
    """(n, d_model) standard normal rows; a word's row depends on the word, the width and the seed alone.

    Raises:
        ValueError: no words.
    """
    if not sentence:
        raise ValueError("A sentence needs at least one word.")
    streams = {word: _generator(_WORDS, seed, d_model, *_digest(word)) for word in set(sentence)}
    rows = {word: stream.standard_normal(d_model) for word, stream in streams.items()}
    return np.stack([rows[word] for word in sentence])


def memory_tokens(seq_len: int, d_model: int, seed: int) -> Array:
    """(seq_len, d_model) standard normal rows for a second sequence, the one that gives keys and values."""
    at_least("seq_len", seq_len, 1)
    return _generator(_MEMORY, seed, d_model).standard_normal((seq_len, d_model))


def attention_weights(d_model: int, seed: int, scale: float) -> AttentionWeights:
    """Standard normal projections times `scale`.

    w_q, w_k and w_v continue the lesson's stream after its five rows; w_o, which the lesson has not, does not.
    """
    stream, _ = _lesson_stream(seed, d_model)
    w_q, w_k, w_v = (stream.randn(d_model, d_model) * finite("scale", scale) for _ in range(3))
    w_o = _generator(_OUTPUT, seed, d_model).standard_normal((d_model, d_model)) * scale
    return AttentionWeights(w_q, w_k, w_v, w_o)


def output_projection(width: int, d_model: int, seed: int) -> Array:
    """(width, d_model) normal with standard deviation 1/√width, from a stream of its own."""
    generator = _generator(_OUTPUT, seed, d_model, at_least("width", width, 1))
    return generator.standard_normal((width, d_model)) / np.sqrt(width)


def block_weights(
    d_model: int, d_ff: int, seed: int, scale: float, block: int = 0
) -> tuple[AttentionWeights, FeedForwardWeights]:
    """The weights of one transformer block, standard normal times `scale`, biases zero.

    Block 0 continues the lesson's stream; each later block of a stack has a stream of its own.
    """
    at_least("d_ff", d_ff, 1)
    finite("scale", scale)
    stream: np.random.RandomState | np.random.Generator
    if at_least("block", block, 0) == 0:
        stream, _ = _lesson_stream(seed, d_model)
        w_o = _generator(_OUTPUT, seed, d_model).standard_normal((d_model, d_model)) * scale
    else:
        stream = _generator(_BLOCKS, seed, d_model, block)
        w_o = stream.standard_normal((d_model, d_model)) * scale

    w_q, w_k, w_v = (stream.standard_normal((d_model, d_model)) * scale for _ in range(3))
    w_1 = stream.standard_normal((d_model, d_ff)) * scale
    w_2 = stream.standard_normal((d_ff, d_model)) * scale
    return (
        AttentionWeights(w_q, w_k, w_v, w_o),
        FeedForwardWeights(w_1, np.zeros(d_ff), w_2, np.zeros(d_model)),
    )


def position_table(seq_len: int, d_model: int, seed: int) -> Array:
    """(seq_len, d_model) random rows, one per position, as a learned table looks before training.

    The standard deviation is √½, so that a row is as long on average as a sinusoidal encoding, √(d_model/2).
    """
    at_least("seq_len", seq_len, 1)
    return _generator(_TABLE, seed, d_model).standard_normal((seq_len, d_model)) * np.sqrt(0.5)


def recurrent_weights(d_model: int, seed: int, gain: float) -> tuple[Array, Array]:
    """w_x and w_h (d_model, d_model), normal with standard deviation 1/√d_model, w_h times `gain`."""
    w_x, w_h = _generator(_RECURRENT, seed, d_model).standard_normal((2, d_model, d_model)) / np.sqrt(d_model)
    return w_x, w_h * finite("gain", gain)


def _lesson_stream(seed: int, d_model: int) -> tuple[np.random.RandomState, Array]:
    """The lesson's generator, standing just after its five rows, and these rows."""
    stream = np.random.RandomState(_seed(seed))
    return stream, stream.randn(LESSON_ROWS, at_least("d_model", d_model, 1))


def _generator(kind: int, seed: int, d_model: int, *more: int) -> np.random.Generator:
    return np.random.default_rng([kind, _seed(seed), at_least("d_model", d_model, 1), *more])


def _seed(seed: int) -> int:
    if at_least("the seed", seed, 0) > HIGHEST_SEED:
        raise ValueError(f"the seed must be at most {HIGHEST_SEED}, not {seed}.")
    return seed


def _digest(word: str) -> list[int]:
    """Eight numbers from a word that are the same on every machine, unlike hash()."""
    return np.frombuffer(hashlib.sha256(word.encode(errors="surrogatepass")).digest(), dtype="<u4").tolist()
