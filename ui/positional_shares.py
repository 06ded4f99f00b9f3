"""Embeddings and encodings of the page on positional encoding, and how many positions are read back from them."""

from bisect import bisect
from functools import lru_cache, partial

import numpy as np

from core import draws, positional
from ui.page_controls import ADDED

Array = np.ndarray

WIDTHS = (2, 4, 8, 16, 32, 64, 128)


def embed(words: tuple[str, ...], n: int, seed: int, scale: float, width: int) -> Array:
    """The embeddings of words, or of `n` random tokens where there are none: (n, width)."""
    return scale * (draws.words(words, width, seed) if words else draws.tokens(n, width, seed))


def encode(scheme: str, n: int, seed: int, width: int) -> Array:
    """What a scheme adds to the embeddings, (n, width): zeros where it adds nothing."""
    table = draws.position_table(n, width, seed) if scheme == "table" else None
    return positional.add_positions(np.zeros((n, width)), scheme, table)


def widths(d_model: int) -> list[int]:
    """For which the shares are shown: a few, and the page's own."""
    return sorted({*WIDTHS, d_model})


def shares(words: tuple[str, ...], n: int, d_model: int, seed: int, scale: float) -> dict[str, Array]:
    """The share of positions that are read back right, by scheme, for each of `widths`."""
    kept = _kept(" ".join(words), n, seed, scale)
    if d_model in WIDTHS:
        return kept
    place, own = bisect(WIDTHS, d_model), _shares((d_model,), words, n, seed, scale)
    return {scheme: np.insert(share, place, own[scheme]) for scheme, share in kept.items()}


@lru_cache(maxsize=512)  # 7 numbers for each of two schemes, and the sentence: 1.4 MB where all are of 1,000 characters
def _kept(sentence: str, n: int, seed: int, scale: float) -> dict[str, Array]:
    """The page's longest computation, of which nothing changes while d_model moves."""
    return _shares(WIDTHS, tuple(sentence.split()), n, seed, scale)


def _shares(widths: tuple[int, ...], words: tuple[str, ...], n: int, seed: int, scale: float) -> dict[str, Array]:
    embedded = {width: embed(words, n, seed, scale, width) for width in widths}
    share = partial(positional.shares_right, widths, embedded.__getitem__)
    return {scheme: share(partial(encode, scheme, n, seed)) for scheme in ADDED}
