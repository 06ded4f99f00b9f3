"""Sentences that are computed from the numbers beside them. Plain text, to be shown with `page.findings` or spoken."""

import re
from collections.abc import Sequence

import numpy as np

Array = np.ndarray


_LONGEST = 40  # characters of a word in a sentence, as in the figures
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float) -> str:
    """Three digits, and a power of ten where a plain number is hard to read: 0.0123, −34.6, 1,234, 1.23 × 10⁻⁷."""
    sign, size = "−" if value < 0 else "", abs(value)
    if size == 0 or 1e-3 <= size < 1e6:
        return sign + (f"{size:,.0f}" if size >= 999.5 else f"{size:.3g}")
    digits, exponent = f"{size:.2e}".split("e")
    return f"{sign}{digits} × {power_of_ten(int(exponent))}"


def three_digits(value: float) -> str:
    """`number` with its zeros, for what was measured: 1.00, 0.0500, 12.0."""
    text = number(value)
    if not value or "×" in text or abs(value) >= 999.5:
        return text
    return ("−" if value < 0 else "") + f"{abs(value):#.3g}".removesuffix(".")


def decimals(value: float, places: int = 2) -> str:
    """Two decimals or so many, where they say enough: 1.00, −2.43; no minus sign before a zero."""
    text = f"{value:.{places}f}" if abs(value) < 9999.5 else number(value)
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", "−")


def power_of_ten(exponent: int) -> str:
    """10³², for texts that know no markup."""
    return f"10{str(exponent).translate(_RAISED)}"


def counted(count: int, noun: str) -> str:
    """1 token, 12 tokens."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def anchor(heading: str) -> str:
    """The name of a heading in a link: one-row-checked-by-hand. Without it a browser makes one at every drawing."""
    return "-".join(re.findall(r"[a-z0-9]+", heading.lower()))


def token(name: str) -> str:
    """A token's name inside a sentence: 3 “cat”. Args: a name as `figures.token_names` makes it ("3 cat (pad)")."""
    padding = " (pad)" if name.endswith(" (pad)") else ""
    place, _, word = name.removesuffix(padding).partition(" ")
    word = word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"
    return f"{place} “{word}”{padding}" if word else place + padding


def strongest_link(weights: Array, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Which query token looks most at which key token. Args: weights (n_q, n_k); the tokens' names."""
    if not weights.any():
        return "No token may look at anything: all weights are 0."
    query, key = divmod(int(weights.argmax()), weights.shape[1])
    largest, alike = f"{weights[query, key]:.2f}", len(ties(weights))
    found = f"token {token(queries[query])} looks at token {token(keys[key])}"
    if alike > 1:
        return f"The largest weight, {largest}, stands in {alike} cells{rounded_alike(weights)}. One of them: {found}."
    return f"The largest weight: {found} with {largest}."


def ties(values: Array) -> Array:
    """The places, counted through all values, where the largest one stands, told from others beyond rounding errors."""
    return np.flatnonzero(np.isclose(values, values.max(), rtol=1e-9, atol=0))


def rounded_alike(values: Array) -> str:
    """How many values are smaller than the largest ones and yet look like them; nothing where there are none."""
    looks_so = int(np.count_nonzero(np.round(values, 2) == np.round(values.max(), 2)))
    others = looks_so - len(ties(values))
    if others < 1:
        return ""
    return f", and after rounding in {others} more"


def largest_at(values: Array, names: Sequence[str]) -> str:
    """Which token has the largest of (n,) values: token 2 “b”; tokens 1 “a” and 3 “a” alike; 9 tokens alike (1, …)."""
    places = ties(values)
    named = [token(names[place]) for place in places[:3]]
    if len(places) == 1:
        return f"token {named[0]}"
    if len(places) <= 3:
        return f"tokens {', '.join(named[:-1])} and {named[-1]} alike"
    return f"{len(places)} tokens alike ({', '.join(named)}, …)"


BITS = "Beside the map, *bits* is the entropy of a row: 0 where one key takes all, more the more widely a token looks."


def row_sums(weights: Array) -> str:
    """What the rows of the map sum to; a row in which nothing is allowed is all zeros."""
    empty = int(np.count_nonzero(~weights.any(axis=-1)))
    if empty == len(weights):
        return "No token may look at anything: every row is all zeros."
    if not empty:
        return (
            f"Each of the {len(weights)} rows sums to 1, before rounding." if len(weights) > 1 else "The row sums to 1."
        )
    return f"Rows of zeros, where a token may look at nothing: {empty} of {len(weights)}. Every other row sums to 1."


def row_finding(weights: Array, query: str, keys: Sequence[str], entropy: float, allowed: Array) -> str:
    """What one row of the map says. Args: weights (n_k,), entropy of the row in bits, allowed (n_k,) booleans."""
    may = int(np.count_nonzero(allowed))
    if not may:
        return f"Token {token(query)} may look at nothing: its row is all zeros, and so is its output."
    best = int(weights.argmax())
    if may == 1:
        return f"Token {token(query)} may look at token {token(keys[best])} alone. Its entropy is 0 bits."
    alike = len(ties(weights))
    if alike == may:
        found = f"Token {token(query)} gives the same weight, {weights[best]:.2f}, to each of {may} keys. "
    elif alike > 1:
        places = ", ".join(token(keys[place]) for place in ties(weights)[:3]) + (", …" if alike > 3 else "")
        found = f"Token {token(query)} looks most at {alike} keys alike ({places}), {weights[best]:.2f} each. "
    else:
        found = f"Token {token(query)} looks most at token {token(keys[best])}: {weights[best]:.2f}. "
    return (
        f"{found}The entropy says how widely it looks: {entropy:.2f} bits, between 0 (one key takes all) and "
        f"{np.log2(may):.2f} (all {may} alike)."
    )


def scaling(on: bool, d_k: int, temperature: float) -> str:
    """What happens between the scores and the mask, in Markdown."""
    said = (
        f"Divided by √d_k = √{d_k} = {np.sqrt(d_k):.2f}. A sum of d_k random products is about √d_k times as large as "
        "one of them, and the division takes that back. It does not take back that queries and keys themselves grow "
        "with d_model: the random weights keep their size, so a sum over more dimensions comes out larger."
        if on
        else "The division by √d_k is switched off, so the scores stay as they are."
    )
    if temperature == 1:
        return said
    effect = "sharper" if temperature < 1 else "more even"
    return f"{said} Then divided by the temperature, {temperature:g}, which makes the rows {effect}."


def masked(allowed: Array) -> str:
    """What the mask hides, in Markdown. Args: allowed (n_q, n_k) booleans."""
    hidden = int(np.count_nonzero(~allowed))
    if not hidden:
        return (
            "Nothing is hidden now: every query may look at every key. A mask or padding tokens would set cells to −∞."
        )
    return f"{hidden} of {allowed.size} cells are set to −∞, so that nothing is taken from there. They are left empty."


def listed(values: Array, names: Sequence[str], most: int = 12) -> str:
    """Values with their names, for a spoken description; the first `most` of them."""
    said = ", ".join(f"{name} {decimals(value)}" for name, value in zip(names[:most], values[:most], strict=True))
    return said + (f", and {len(values) - most} more" if len(values) > most else "")


def rounded_sum(weights: Array, values: Array, total: float, most: int = 6) -> str:
    """Where the rounded numbers of `weighted_sum` add up to another one than it shows: which, and why. Else nothing."""
    if len(weights) > most:
        return ""  # not all of them are shown
    factors = ([float(f"{number:.3f}") for number in numbers] for numbers in (weights, values))
    products = [weight * value for weight, value in zip(*factors, strict=True)]
    by_hand, shown = decimals(round(sum(products), 6), 3), decimals(total, 3)
    if by_hand == shown:
        return ""
    return f"Worked out with these rounded numbers it is {by_hand}. The page computes with all digits: {shown}."


def weighted_sum(weights: Array, values: Array, total: float, query: int, most: int = 6) -> str:
    """LaTeX: the first number of a query's output as a sum of weights times values. Args: weights, values (n_k,)."""
    terms = [f"{weight:.3f} \\cdot ({value:.3f})" for weight, value in zip(weights[:most], values[:most], strict=True)]
    if len(weights) > most:
        terms.append(r"\dots")
    lines = [" + ".join(terms[first : first + 2]) for first in range(0, len(terms), 2)]  # for a phone's width
    body = r" \\ + ".join(lines)
    result = f"{round(total, 3) + 0.0:.3f}"  # no minus sign before a zero
    return rf"\begin{{gathered}} \text{{output}}_{{{query},1}} = \\ {body} \\ = {result} \end{{gathered}}"
