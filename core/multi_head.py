"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), and what each head does."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from core import draws
from core.attention import Attention, entropy, scaled_dot_product_attention
from core.checks import Array, at_least, divides, finite, matrix, projection, same, vector
from core.draws import AttentionWeights
from core.positional import frequencies, sinusoidal

# Words that come back, for the head that looks for them.
EXAMPLE = ("the", "cat", "saw", "the", "dog", "and", "the", "dog", "saw", "the", "cat")


@dataclass(frozen=True)
class MultiHead:
    """All stages of multi-head attention.

    heads: queries, keys and values (heads, n, d_k), scores and weights (heads, n, n), output (heads, n, d_k);
    concatenated (n, heads·d_k), with zeros where a head is switched off;
    output = concatenated · w_o (n, d_model), or concatenated itself where there is no w_o.
    """

    heads: Attention
    concatenated: Array
    output: Array


@dataclass(frozen=True)
class HeadStatistics:
    """Per head, means over the query tokens; each (heads,).

    entropy in bits; distance in tokens, |query - key| weighted by attention;
    on_itself, on_previous, on_first: share of the weight. on_previous is taken over the tokens that have a
    previous one, and is 0 for a sequence of one token.
    """

    entropy: Array
    distance: Array
    on_itself: Array
    on_previous: Array
    on_first: Array


@dataclass(frozen=True)
class Layer:
    """The input of one multi-head layer, its weights, and what each head does.

    x: (n, d_model). w_q, w_k, w_v: (d_model, heads·d_k). w_o: (heads·d_k, d_model).
    b_q: (heads·d_k,) query bias, or 0 for none. names: one per head, empty where a head was made for nothing special.
    """

    x: Array
    w_q: Array
    w_k: Array
    w_v: Array
    w_o: Array
    b_q: Array | float
    names: tuple[str, ...]


@dataclass(frozen=True)
class Ablation:
    """What the output loses with some heads: output and change = output - the output with all heads, (n, d_model).

    sizes, full_sizes: (n,) lengths of the rows of change and of the output with all heads.
    """

    output: Array
    change: Array
    sizes: Array
    full_sizes: Array


@dataclass(frozen=True)
class MeanMap:
    """The mean of the heads' maps, and how far each head is from it.

    weights (n, n). distances (heads,): the share of a row's weight that lies elsewhere than in the mean's row,
    half the sum of absolute differences, as a mean over the rows: 0 for the same map, at most 1.
    """

    weights: Array
    distances: Array


@dataclass(frozen=True)
class HeadSplit:
    """How the weights of one layer fall to `heads` heads of width d_k: numbers in one head, and in all of them."""

    heads: int
    d_k: int
    one_head: int
    total: int


def random_heads(x: Array, weights: AttentionWeights, heads: int) -> Layer:
    """A layer whose square projections are cut into heads, without biases, as they are before any training.

    Raises:
        ValueError: heads do not divide the width of x.
    """
    divides(heads, matrix("x", x, axes=2).shape[1])
    return Layer(x, weights.w_q, weights.w_k, weights.w_v, weights.w_o, 0.0, ("",) * heads)


def attend(layer: Layer, allowed: Array | None = None) -> MultiHead:
    """`multi_head_attention` of a layer's own input with its own weights.

    Raises:
        ValueError: as in `multi_head_attention`.
    """
    return multi_head_attention(
        layer.x, layer.w_q, layer.w_k, layer.w_v, layer.w_o, len(layer.names), allowed=allowed, b_q=layer.b_q
    )


def switch_off(result: MultiHead, w_o: Array, keep: Sequence[bool]) -> Ablation:
    """What is left of a layer's output when some heads' slices are zero before w_o.

    Since output = head_1 · W_O^1 + … + head_h · W_O^h, where W_O^i are the rows of w_o below head i's slice,
    the change is minus the terms of the heads that are off.

    Args:
        result: of `multi_head_attention` with the same w_o (heads·d_k, d_model), no bias, and all heads on.
        keep: one boolean per head; False switches it off.

    Raises:
        ValueError: keep is not one boolean per head; w_o does not fit.
    """
    heads = result.heads.output
    kept = merge_heads(heads * _kept(keep, len(heads)))  # (heads, n, d_k) -> (n, heads·d_k)
    output = kept @ projection("w_o", w_o, kept.shape[1])  # (n, heads·d_k) @ (heads·d_k, d_model) -> (n, d_model)
    same("the output's shape", output.shape, "the shape with all heads", result.output.shape)
    change = output - result.output
    return Ablation(output, change, np.linalg.norm(change, axis=-1), np.linalg.norm(result.output, axis=-1))


def mean_of_heads(weights: Array) -> MeanMap:
    """The mean of the maps (heads, n_q, n_k), which is what no head computes unless all agree.

    Raises:
        ValueError: the weights have not three axes, are empty or not finite.
    """
    weights = matrix("weights", weights, axes=3)
    mean = weights.mean(axis=0)
    return MeanMap(mean, np.abs(weights - mean).sum(axis=-1).mean(axis=-1) / 2)


def same_word_share(weights: Array, sentence: Sequence[str]) -> Array:
    """(heads,) share of the weight that lies on the query's own word, wherever it stands, itself included.

    Raises:
        ValueError: the maps (heads, n, n) are not of as many tokens as the sentence.
    """
    weights = matrix("weights", weights, axes=3)
    same("the maps' size", weights.shape[1:], "the number of words", (len(sentence), len(sentence)))
    equal = np.array([[word == other for other in sentence] for word in sentence])
    return (weights * equal).sum(axis=-1).mean(axis=-1)


def uniform_weights(allowed: Array) -> Array:
    """The weights of a head that looks everywhere alike: a row's weight is the same on every key it may look at.

    Args:
        allowed: (n_q, n_k) booleans. A row in which nothing is allowed gives zeros.

    Raises:
        ValueError: allowed is no boolean matrix, or empty.
    """
    allowed = np.asarray(allowed)
    if allowed.dtype != bool:
        raise ValueError(f"allowed must hold True and False, not {allowed.dtype}.")
    seen = matrix("allowed", allowed, axes=2)
    return seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1)


def splits(weights: AttentionWeights) -> list[HeadSplit]:
    """Every way to cut the four square matrices into heads, with what each head has, counted from its slices.

    A head has d_k columns each of w_q, w_k and w_v, and d_k rows of w_o: 4·d_model·d_k numbers, and all heads
    together 4·d_model², however many there are.

    Raises:
        ValueError: w_q is no matrix, or is empty.
    """
    width = matrix("w_q", weights.w_q, axes=2).shape[1]
    rows = []
    for heads in (count for count in range(1, width + 1) if width % count == 0):
        columns = [np.split(w, heads, axis=1) for w in (weights.w_q, weights.w_k, weights.w_v)]
        sizes = [sum(part.size for part in head) for head in zip(*columns, np.split(weights.w_o, heads), strict=True)]
        rows.append(HeadSplit(heads, divides(heads, width), sizes[0], sum(sizes)))
    return rows


def example_sentence(seq_len: int) -> tuple[str, ...]:
    """The first seq_len words of `EXAMPLE`, which begins again where it ends.

    Raises:
        ValueError: seq_len below 1.
    """
    return tuple(islice(cycle(EXAMPLE), at_least("seq_len", seq_len, 1)))


def split_heads(x: Array, heads: int) -> Array:
    """(n, heads·d_k) -> (heads, n, d_k): head h gets the h-th slice of the columns.

    Raises:
        ValueError: the width is not divisible by the number of heads.
    """
    return _split(matrix("x", x, axes=2), heads)


def merge_heads(x: Array) -> Array:
    """(heads, n, d_k) -> (n, heads·d_k), the inverse of `split_heads`.

    Raises:
        ValueError: x has not three axes, or is empty or not finite.
    """
    return _merge(matrix("x", x, axes=3))


def multi_head_attention(
    x: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    w_o: Array | None,
    heads: int,
    *,
    allowed: Array | None = None,
    keep: Sequence[bool] | None = None,
    scaling: bool = True,
    b_q: Array | float = 0.0,
    b_k: Array | float = 0.0,
    b_v: Array | float = 0.0,
    b_o: Array | float = 0.0,
) -> MultiHead:
    """Concat(head_1, …, head_h) W_O, where head_i = Attention(x W_q^i, x W_k^i, x W_v^i).

    Vaswani et al. 2017, section 3.2.2.

    Args:
        x: (n, d_model). w_q, w_k, w_v: (d_model, heads·d_k).
        w_o: (heads·d_k, d_model), or None to stop at the concatenation.
        allowed: booleans that broadcast to (heads, n, n), True where a query may look.
        keep: one boolean per head; False puts zeros in that head's slice before w_o.
        scaling: divide the scores by √d_k.
        b_q, b_k, b_v, b_o: biases, (heads·d_k,) and (d_model,), or one number for all.

    Raises:
        ValueError: sizes that do not fit, heads that do not divide the width, empty or non-finite input.
    """
    x = matrix("x", x, axes=2)
    # (n, d_model) @ (d_model, heads·d_k) -> (n, heads·d_k) -> (heads, n, d_k)
    queries = _split(_linear(x, "w_q", w_q, "b_q", b_q), heads)
    keys = _split(_linear(x, "w_k", w_k, "b_k", b_k), heads)
    values = _split(_linear(x, "w_v", w_v, "b_v", b_v), heads)
    attention = scaled_dot_product_attention(queries, keys, values, allowed, scaling=scaling)
    kept = attention.output if keep is None else attention.output * _kept(keep, heads)
    concatenated = _merge(kept)  # (heads, n, d_k) -> (n, heads·d_k)
    if w_o is None:
        return MultiHead(attention, concatenated, concatenated)
    # (n, heads·d_k) @ (heads·d_k, d_model) -> (n, d_model)
    return MultiHead(attention, concatenated, _linear(concatenated, "w_o", w_o, "b_o", b_o))


def head_statistics(weights: Array) -> HeadStatistics:
    """What each head looks at. Args: weights (heads, n, n) of self-attention.

    Raises:
        ValueError: the maps are not square, empty or not finite.
    """
    weights = matrix("weights", weights, axes=3)
    heads, n, n_keys = weights.shape
    same("the number of queries", n, "the number of keys", n_keys)
    places = np.arange(n)
    distance = np.abs(places[:, None] - places)  # (n, n)
    previous = weights[:, places[1:], places[:-1]]  # (heads, n - 1)
    return HeadStatistics(
        entropy=entropy(weights).mean(axis=-1),
        distance=(weights * distance).sum(axis=-1).mean(axis=-1),
        on_itself=weights[:, places, places].mean(axis=-1),
        on_previous=previous.mean(axis=-1) if n > 1 else np.zeros(heads),
        on_first=weights[:, :, 0].mean(axis=-1),
    )


def built_heads(sentence: Sequence[str], d_model: int, seed: int, sharpness: float = 100.0) -> Layer:
    """Three heads whose weights are written down, not learned: previous token, first token, same word.

    The first half of the model width holds the word, scaled to length √d_k, the second half its sinusoidal
    position; each is zero in the other half, so x is still the sum of an embedding and an encoding.
    With d_k = d_model/2:

    - previous token: a query is the own encoding turned back by one position (a rotation by the angle of
      each sine-cosine pair, Vaswani et al. 2017, section 3.5), a key is the encoding;
    - first token: the query is the encoding of position 0, the same for everyone, a bias;
    - same word: queries and keys are the words.

    Values are the words. `sharpness` is the scaled score of a perfect match. How clearly the heads look depends
    on the width: with few dimensions, distant positions and different words resemble each other.

    Raises:
        ValueError: no words, d_model below 4 or odd, a seed that `draws` refuses, a sharpness that is not finite.
    """
    if at_least("d_model", d_model, 4) % 2:
        raise ValueError(f"d_model {d_model} is odd, and heads built by hand need two equal halves.")
    n, d_k = len(sentence), d_model // 2
    paired = d_k - d_k % 2  # positions come in sine-cosine pairs
    words = draws.words(sentence, d_k, seed)
    words *= np.sqrt(d_k) / np.linalg.norm(words, axis=-1, keepdims=True)
    places = np.zeros((n, d_k))
    places[:, :paired] = sinusoidal(n, paired)

    word_part, place_part = np.split(np.eye(d_model), 2, axis=1)  # (d_model, d_k) each
    perfect = finite("sharpness", sharpness) * np.sqrt(d_k)  # the score of a perfect match, before scaling
    by_place = perfect / (paired / 2)  # the squared length of an encoding is paired/2
    by_word = perfect / d_k  # that of a word is d_k
    to_first = np.zeros((d_model, d_k))  # the query does not depend on the token
    return Layer(
        x=np.concatenate([words, places], axis=-1),  # (n, d_model)
        w_q=np.concatenate([place_part @ _one_back(d_k) * by_place, to_first, word_part * by_word], axis=-1),
        w_k=np.concatenate([place_part, place_part, word_part], axis=-1),
        w_v=np.concatenate([word_part, word_part, word_part], axis=-1),
        w_o=draws.output_projection(3 * d_k, d_model, seed),
        b_q=np.concatenate([np.zeros(d_k), places[0] * by_place, np.zeros(d_k)]),
        names=("previous token", "first token", "same word"),
    )


def _one_back(width: int) -> Array:
    """(width, width) matrix R with sinusoidal(p) R = sinusoidal(p - 1): turns each sine-cosine pair by its angle."""
    paired = width - width % 2
    angles = frequencies(paired)
    even = np.arange(0, paired, 2)
    turn = np.zeros((width, width))
    turn[even, even] = turn[even + 1, even + 1] = np.cos(angles)
    turn[even + 1, even] = -np.sin(angles)  # sin(p - 1) = sin p cos 1 - cos p sin 1
    turn[even, even + 1] = np.sin(angles)  # cos(p - 1) = cos p cos 1 + sin p sin 1
    return turn


def _linear(x: Array, w_name: str, w: Array, b_name: str, b: Array | float) -> Array:
    w = projection(w_name, w, x.shape[1])
    product = x @ w
    if not (isinstance(b, float) and b == 0.0):  # to add nothing takes as long as a small product
        product += vector(b_name, b, w.shape[1])
    return product


def _split(x: Array, heads: int) -> Array:
    """`split_heads` of what has been checked."""
    n, width = x.shape
    return x.reshape(n, heads, divides(heads, width)).transpose(1, 0, 2)


def _merge(x: Array) -> Array:
    """`merge_heads` of what has been checked."""
    heads, n, d_k = x.shape
    return x.transpose(1, 0, 2).reshape(n, heads * d_k)


def _kept(keep: Sequence[bool], heads: int) -> Array:
    """(heads, 1, 1) booleans to multiply the heads' outputs with."""
    switches = np.asarray(keep)
    if switches.dtype != bool or switches.shape != (heads,):
        raise ValueError(f"keep must be True or False for each of {heads} heads, not {keep}.")
    return switches[:, None, None]
