"""Telling positions apart: sinusoidal encoding, RoPE, ALiBi, and the experiments that show why they are needed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.attention import Attention, causal_mask, scaled_dot_product_attention
from core.checks import Array, at_least, finite, matrix, projection, same, vector

SCHEMES = ("none", "sinusoidal", "table", "rope", "alibi")
PERMUTATIONS = ("reversed", "first two swapped", "rotated", "shuffled")


@dataclass(frozen=True)
class Shuffle:
    """Self-attention outputs of a sequence and of the same tokens in another order.

    before (n, d): row i belongs to the token at place i. after (n, d): row j belongs to the token now at place j.
    moved (n, d): the rows of `before` in the new order, what `after` is if order makes no difference.
    differences (n,): largest absolute difference between `after` and `moved` for each token in its new place.
    """

    before: Array
    after: Array
    moved: Array
    differences: Array

    @property
    def change(self) -> Array:
        """(n, d) after - moved: what the new order changed in each token's output."""
        return self.after - self.moved


@dataclass(frozen=True)
class Recovered:
    """Where each token seems to stand: nearest encoding to embedding + encoding.

    distances (n, n): row = token, column = position. positions (n,): the nearest. share_right: between 0 and 1.
    """

    distances: Array
    positions: Array
    share_right: float


@dataclass(frozen=True)
class ByOffset:
    """A square matrix read along its diagonals, one per offset = column - row.

    offsets (2n - 1,): -(n - 1), …, n - 1. mean, low, high (2n - 1,): over all cells of that offset.
    """

    offsets: Array
    mean: Array
    low: Array
    high: Array

    @property
    def spread(self) -> float:
        """How far cells of one offset lie apart at most: 0 where the offset decides alone."""
        return float((self.high - self.low).max())


def sinusoidal(seq_len: int, d_model: int) -> Array:
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)).

    Vaswani et al. 2017, section 3.5. Returns (seq_len, d_model). For an odd width the last column is a sine
    without its cosine.

    Raises:
        ValueError: seq_len or d_model below 1.
    """
    at_least("seq_len", seq_len, 1)
    return waves(np.arange(seq_len), d_model)


def waves(positions: Array, d_model: int) -> Array:
    """(m, d_model) the sinusoidal encoding at any m positions, also between whole ones: the curves it is read from.

    Raises:
        ValueError: positions are no finite numbers or none at all; d_model below 1.
    """
    position = matrix("positions", np.atleast_1d(positions)[:, np.newaxis], axes=2)  # (m, 1)
    frequency = frequencies(d_model)  # (ceil(d/2),)
    encoding = np.zeros((len(position), d_model))
    encoding[:, 0::2] = np.sin(position * frequency)
    encoding[:, 1::2] = np.cos(position * frequency[: d_model // 2])
    return encoding


def frequencies(d_model: int) -> Array:
    """(ceil(d/2),) angle in radians by which each sine-cosine pair turns from one position to the next.

    1 for the first pair, down towards 1/10000 for the last.
    """
    return np.exp(np.arange(0, at_least("d_model", d_model, 1), 2) * -(np.log(10000.0) / d_model))


def wavelengths(d_model: int) -> Array:
    """(d_model,) positions after which a dimension repeats: 2π for the first pair, the longest for the last."""
    return np.repeat(2 * np.pi / frequencies(d_model), 2)[:d_model]


def similarity(encoding: Array) -> Array:
    """(n, n) dot products of every pair of encodings."""
    encoding = matrix("encoding", encoding, axes=2)
    return encoding @ encoding.T


def closest(encoding: Array) -> tuple[int, int, float] | None:
    """The two positions whose encodings lie nearest to each other, and their distance; None for a single position.

    Among pairs that are equally near (but for rounding) the earliest.
    """
    encoding = matrix("encoding", encoding, axes=2)
    if len(encoding) == 1:
        return None
    first, second = np.triu_indices(len(encoding), 1)
    distances = np.sqrt(_squared_distances(encoding, encoding))[first, second]
    best = int(np.argmax(distances <= distances.min() + 1e-9))
    # Once more by subtraction: the product formula loses digits where two rows are nearly equal.
    distance = np.linalg.norm(encoding[first[best]] - encoding[second[best]])
    return int(first[best]), int(second[best]), float(distance)


def by_offset(values: Array) -> ByOffset:
    """Mean, smallest and largest value on each diagonal of an (n, n) matrix.

    Raises:
        ValueError: the matrix is not square, empty or not finite.
    """
    values = matrix("values", values, axes=2)
    n = len(values)
    same("the number of rows", n, "the number of columns", values.shape[1])
    beside = np.full((n, 2 * n), np.nan, dtype=values.dtype)
    beside[:, :n] = values[::-1]
    # Read with one column less, each row stands one place further to the right than the row above it: a column then
    # holds the cells of one offset, and nothing else but NaN.
    diagonals = beside.ravel()[: n * (2 * n - 1)].reshape(n, 2 * n - 1)
    mean, low, high = (read(diagonals, axis=0) for read in (np.nanmean, np.nanmin, np.nanmax))
    return ByOffset(np.arange(1 - n, n), mean, low, high)


def rises_again(values: Array) -> int | None:
    """The first index at which the values rise by more than rounding; None where they never do. values: (n,)."""
    rises = np.flatnonzero(np.diff(values) > 1e-9)
    return int(rises[0]) + 1 if rises.size else None


def norms(rows: Array) -> Array:
    """(n,) length of each row."""
    return np.linalg.norm(matrix("rows", rows, axes=2), axis=-1)


def rotate(x: Array, positions: Array | None = None) -> Array:
    """Rotary position embedding: turn dimensions (2i, 2i+1) of row p by the angle p·frequency_i.

    Su et al. 2021, eq. 34. Norms are kept, and a query's score with a key depends on the difference of their
    positions alone. For an odd width the last dimension has no partner and is not turned.

    Args:
        x: (..., n, d), queries or keys. positions: (n,); 0, 1, …, n - 1 where None.

    Raises:
        ValueError: x is no matrix, empty or not finite; positions are not n finite numbers.
    """
    x = matrix("x", x)
    n, width = x.shape[-2:]
    places = np.broadcast_to(np.arange(n) if positions is None else vector("positions", positions, n), n)
    pairs = width // 2
    angles = places[:, None] * frequencies(width)[:pairs]  # (n, pairs)
    turned = np.array(x)
    even, odd = x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    turned[..., 0 : 2 * pairs : 2] = even * np.cos(angles) - odd * np.sin(angles)
    turned[..., 1 : 2 * pairs : 2] = even * np.sin(angles) + odd * np.cos(angles)
    return turned


def rotary_waves(seq_len: int, d_model: int) -> Array:
    """(n, 2·⌊d/2⌋) sine and cosine of the angles by which `rotate` turns, in the columns of their pair.

    They are the waves of the sinusoidal encoding, without the sine that has no partner at an odd width.
    """
    return sinusoidal(seq_len, d_model)[:, : 2 * (d_model // 2)]


def rotary_scores(query: Array, key: Array, seq_len: int) -> Array:
    """(n, n) dot products of one query, placed at each position (row), with one key, placed at each (column).

    Su et al. 2021, eq. 16: cells of one diagonal are equal, because the difference of positions decides alone.

    Args:
        query, key: (d,).

    Raises:
        ValueError: vectors of different widths, empty or not finite; seq_len below 1.
    """
    same("the query's shape", np.shape(query), "the key's shape", np.shape(key))
    pair = matrix("query and key", np.stack([query, key]), axes=2)
    turned = rotate(np.repeat(pair[:, np.newaxis], at_least("seq_len", seq_len, 1), axis=1))  # (2, n, d)
    return turned[0] @ turned[1].T


def alibi_slopes(heads: int) -> Array:
    """(heads,) slopes of ALiBi (Press et al. 2022, section 3): for 8 heads ½, ¼, …, 1/256.

    For a number of heads that is no power of two, as in the authors' code: those of the power of two below, then
    every second one of twice that power.
    """
    at_least("heads", heads, 1)
    below = 2 ** int(np.log2(heads))
    slopes = 2.0 ** (-8.0 * np.arange(1, below + 1) / below)
    between = 2.0 ** (-4.0 * np.arange(1, 2 * (heads - below), 2) / below)
    return np.concatenate([slopes, between])


def alibi_bias(seq_len: int, slope: float) -> Array:
    """(n, n) bias added to the scaled scores: -slope · |query position - key position|.

    Press et al. 2022, section 3. The paper uses it under a causal mask, where only keys at or before the query
    count; without a mask the distance is taken in both directions.

    Raises:
        ValueError: seq_len below 1, a slope that is not finite.
    """
    places = np.arange(at_least("seq_len", seq_len, 1))
    return -finite("slope", slope) * np.abs(places[:, None] - places)


def attend_with_positions(
    x: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    scheme: str,
    table: Array | None = None,
    *,
    causal: bool = False,
    slope: float | None = None,
) -> Attention:
    """Self-attention of x with positions told by one of `SCHEMES`.

    sinusoidal and table add an encoding to x; rope turns queries and keys; alibi adds a bias to the scores; none
    tells nothing.

    Args:
        x: (n, d_model). w_q, w_k, w_v: (d_model, d_model).
        table: (at least n, d_model), for scheme "table" alone.
        causal: no token looks at a later one.
        slope: for scheme "alibi" alone; 1/256, the slope of a single head, where None.

    Raises:
        ValueError: an unknown scheme, a missing table, sizes that do not fit.
    """
    x = add_positions(x, scheme, table)
    n, d_model = x.shape
    queries = x @ projection("w_q", w_q, d_model)  # (n, d_model) @ (d_model, d_model) -> (n, d_model)
    keys = x @ projection("w_k", w_k, d_model)
    values = x @ projection("w_v", w_v, d_model)
    if scheme == "rope":
        queries, keys = rotate(queries), rotate(keys)
    bias = alibi_bias(n, alibi_slopes(1)[0] if slope is None else slope) if scheme == "alibi" else None
    return scaled_dot_product_attention(queries, keys, values, causal_mask(n) if causal else None, bias=bias)


def add_positions(x: Array, scheme: str, table: Array | None = None) -> Array:
    """x with the encoding of its rows' positions added, for the schemes that add one; x itself for the others.

    Raises:
        ValueError: an unknown scheme; a table that is missing, too short or of another width.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"{scheme} is none of the schemes {', '.join(SCHEMES)}.")
    x = matrix("x", x, axes=2)
    n, d_model = x.shape
    if scheme == "sinusoidal":
        return x + sinusoidal(n, d_model)
    if scheme == "table":
        if table is None:
            raise ValueError("The scheme table needs a table of encodings.")
        rows = matrix("table", table, axes=2)[:n]
        same("the table's rows and width", rows.shape, "x's", x.shape)
        return x + rows
    return x


def shuffle(
    x: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    permutation: Array,
    scheme: str = "none",
    table: Array | None = None,
    *,
    causal: bool = False,
    slope: float | None = None,
) -> Shuffle:
    """Attend to the tokens in their order and in another one, and compare the outputs token by token.

    Without positions and without a mask the outputs move with their tokens:
    softmax(PQ(PK)ᵀ)PV = P softmax(QKᵀ)V.

    Args:
        permutation: (n,) the place in x of the token that stands at each new place.
        Others as in `attend_with_positions`.

    Raises:
        ValueError: permutation is not an order of the n rows; sizes that do not fit.
    """
    x = matrix("x", x, axes=2)
    order = _order(permutation, len(x))
    before = attend_with_positions(x, w_q, w_k, w_v, scheme, table, causal=causal, slope=slope).output
    after = attend_with_positions(x[order], w_q, w_k, w_v, scheme, table, causal=causal, slope=slope).output
    moved = before[order]
    return Shuffle(before, after, moved, np.abs(after - moved).max(axis=-1))


def permutation(kind: str, n: int, seed: int) -> Array:
    """(n,) the old place of the token at each new place, by one of `PERMUTATIONS`; "shuffled" draws from the seed.

    A draw that leaves everything in place is turned by one, so that two tokens or more always change.

    Raises:
        ValueError: an unknown kind, n below 1, a seed below 0.
    """
    places = np.arange(at_least("the number of tokens", n, 1))
    match kind:
        case "reversed":
            return places[::-1].copy()
        case "first two swapped":
            return np.concatenate([places[:2][::-1], places[2:]])
        case "rotated":
            return np.roll(places, 1)
        case "shuffled":
            drawn = np.random.default_rng(at_least("the seed", seed, 0)).permutation(n)
            return np.roll(drawn, 1) if np.array_equal(drawn, places) else drawn
    raise ValueError(f"{kind} is none of the orders {', '.join(PERMUTATIONS)}.")


def changes_nothing(x: Array, permutation: Array) -> bool:
    """Whether the new order has an equal row at every place: a single token, or equal words that change places.

    Raises:
        ValueError: as in `shuffle`.
    """
    x = matrix("x", x, axes=2)
    return np.array_equal(x, x[_order(permutation, len(x))])


def recover_positions(x: Array, encoding: Array) -> Recovered:
    """Guess each token's position from embedding + encoding alone: the nearest row of `encoding`.

    Args:
        x: (n, d), embeddings. encoding: (n, d).

    Raises:
        ValueError: no two matrices of one shape, empty or non-finite input.
    """
    x, encoding = matrix("x", x, axes=2), matrix("encoding", encoding, axes=2)
    same("the number of encodings", len(encoding), "the number of tokens", len(x))
    same("the encodings' width", encoding.shape[1], "the embeddings' width", x.shape[1])
    total = x + encoding
    distances = np.sqrt(_squared_distances(total, encoding))
    positions = distances.argmin(axis=-1)
    return Recovered(distances, positions, float(np.mean(positions == np.arange(len(x)))))


def shares_right(widths: Sequence[int], embed: Callable[[int], Array], encode: Callable[[int], Array]) -> Array:
    """(len(widths),) the share of tokens that find their position, for each width.

    Args:
        embed, encode: the embeddings and the encodings of a width d, both (n, d).

    Raises:
        ValueError: as in `recover_positions`.
    """
    return np.array([recover_positions(embed(width), encode(width)).share_right for width in widths])


def _squared_distances(rows: Array, others: Array) -> Array:
    """(n, m) |row - other|² of every pair, never below zero."""
    squares = (rows**2).sum(-1)[:, None] - 2 * rows @ others.T + (others**2).sum(-1)
    return np.maximum(squares, 0)


def _order(permutation: Array, n: int) -> Array:
    order = np.asarray(permutation)
    if order.dtype.kind not in "iu" or order.shape != (n,) or set(order.tolist()) != set(range(n)):
        raise ValueError(f"{order.tolist()} is not an order of {n} tokens.")
    return order
