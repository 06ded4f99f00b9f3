"""Sentences that are computed from the numbers beside them. Plain text, to be shown with `page.findings` or spoken."""

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def token(name: str) -> str:
    """A token's name inside a sentence: 3 “cat”. Args: a name as `figures.token_names` makes it ("3 cat (pad)")."""
    padding = " (pad)" if name.endswith(" (pad)") else ""
    place, _, word = name.removesuffix(padding).partition(" ")
    return f"{place} “{word}”{padding}" if word else place + padding


def strongest_link(weights: Array, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Which query token looks most at which key token. Args: weights (n_q, n_k); the tokens' names."""
    if not weights.any():
        return "No token may look at anything: all weights are 0."
    query, key = divmod(int(weights.argmax()), weights.shape[1])
    largest = f"{weights[query, key]:.2f}"
    return f"The largest weight: token {token(queries[query])} looks at token {token(keys[key])} with {largest}."


def row_sums(weights: Array) -> str:
    """What the rows of the map sum to; a row in which nothing is allowed is all zeros."""
    empty = int(np.count_nonzero(~weights.any(axis=-1)))
    if empty == len(weights):
        return "No token may look at anything: every row is all zeros."
    if not empty:
        return f"Each of the {len(weights)} rows sums to 1." if len(weights) > 1 else "The row sums to 1."
    return f"Rows of zeros, where a token may look at nothing: {empty} of {len(weights)}. Every other row sums to 1."


def row_finding(weights: Array, query: str, keys: Sequence[str], entropy: float) -> str:
    """What one row of the map says. Args: weights (n_k,), entropy of the row in bits."""
    seen = int(np.count_nonzero(weights))
    if not seen:
        return f"Token {token(query)} may look at nothing: its row is all zeros, and so is its output."
    best = int(weights.argmax())
    found = f"Token {token(query)} looks most at token {token(keys[best])}: {weights[best]:.2f}. "
    if seen == 1:
        return found + "It looks at nothing else: entropy 0 bits."
    return (
        f"{found}Entropy {entropy:.2f} bits; "
        f"the same weight on each of the {seen} keys it looks at would be {np.log2(seen):.2f} bits."
    )


def listed(values: Array, names: Sequence[str], most: int = 12) -> str:
    """Values with their names, for a spoken description; the first `most` of them."""
    said = ", ".join(f"{name} {value:.2f}" for name, value in zip(names[:most], values[:most], strict=True))
    return said + (f", and {len(values) - most} more" if len(values) > most else "")


def weighted_sum(weights: Array, values: Array, total: float, query: int, most: int = 3) -> str:
    """LaTeX: the first number of a query's output as a sum of weights times values. Args: weights, values (n_k,)."""
    terms = [f"{weight:.3f} \\cdot ({value:.3f})" for weight, value in zip(weights[:most], values[:most], strict=True)]
    rest = r" + \dots" if len(weights) > most else ""
    return rf"\text{{output}}_{{{query},1}} = {' + '.join(terms)}{rest} = {total:.3f}"
