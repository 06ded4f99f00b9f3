"""Sentences of the page on positional encoding, computed from its numbers. Plain text, as in `ui.words`."""

from collections.abc import Sequence

import numpy as np

from core.positional import ByOffset, Recovered, Shuffle, rises_again
from ui.words import decimals, largest_at, number, ties, token

Array = np.ndarray

ROUNDING = 1e-12  # differences below are what is left of 16 digits

NAMES = {
    "none": "No encoding",
    "sinusoidal": "Sinusoidal encoding",
    "table": "Random table",
    "rope": "RoPE",
    "alibi": "ALiBi",
}
EXPLAINED = {
    "none": "Nothing tells attention where a token stands: zero is added to every embedding. "
    "So there are no waves and no distances to draw.",
    "sinusoidal": "Each column is the pattern of one position, made of sines and cosines. "
    "It is added to the embedding of the token that stands there: the row of numbers that stands for the token.",
    "table": "Each column is the pattern of one position, added to the embedding of the token that stands there. "
    "A model would learn these numbers. Here they are random, as before training.",
    "rope": "RoPE adds nothing to the embedding. It turns each pair of dimensions of the queries and keys, further "
    "at each position. The picture shows the sine and the cosine of the angle.",
    "alibi": "ALiBi adds nothing to the embedding. It takes something away from a score for every step between query "
    "and key, and each head has its own slope.",
}
NOTHING_TO_READ = {
    "none": "Without an encoding there is nothing to read a position from: the same word looks the same everywhere.",
    "rope": "RoPE adds nothing to the embedding, so there is no position in it to read. It comes in with the scores.",
    "alibi": "ALiBi adds nothing to the embedding, so there is no position in it to read. It comes in with the scores.",
}
_LAST_LINE = {
    "none": "Choose another scheme at the top, and shuffle again.",
    "sinusoidal": "Make the embeddings larger: the positions become harder to read back.",
    "table": "A random table knows that two positions differ, not that they are near. Sines and cosines know both.",
    "rope": "RoPE cares about the difference of two positions alone, "
    "so two words score the same early and late in a text.",
    "alibi": "A steep slope holds a head to what is near. A gentle one lets it look far.",
}


def equation(scheme: str, n: int, d_model: int, slope: float) -> str:
    """LaTeX: what the scheme does, with the sizes of the page."""
    match scheme:
        case "none":
            return rf"X + 0: \quad {n} \times {d_model}"
        case "sinusoidal":
            return (
                rf"\begin{{aligned}} PE(p, 2i) &= \sin\left(p / 10000^{{2i/{d_model}}}\right) \\"
                rf" PE(p, 2i+1) &= \cos\left(p / 10000^{{2i/{d_model}}}\right) \\"
                rf" p = {_range(n)}, &\quad i = {_range((d_model + 1) // 2)} \end{{aligned}}"
            )
        case "table":
            return rf"PE(p) = \text{{row }} p \text{{ of a table}}: \quad {n} \times {d_model}"
        case "rope":
            return (
                r"\begin{pmatrix} q_{2i} \\ q_{2i+1} \end{pmatrix} \to"
                r" \begin{pmatrix} \cos p\theta_i & -\sin p\theta_i \\ \sin p\theta_i & \cos p\theta_i \end{pmatrix}"
                r" \begin{pmatrix} q_{2i} \\ q_{2i+1} \end{pmatrix}"
                rf" \qquad \theta_i = 10000^{{-2i/{d_model}}}"
            )
        case _:
            return (
                rf"\text{{score}}_{{ij}} = \frac{{q_i \cdot k_j}}{{\sqrt{{{d_model}}}}} - {slope:.4g} \cdot |i - j|"
                rf": {n} \times {n}"
            )


def pattern(scheme: str, nearest: tuple[int, int, float] | None, frequencies: Array, slope: float) -> str:
    """What the first picture shows. nearest: as from `core.positional.closest`; frequencies: of the pairs."""
    if scheme == "none":
        return "Every number is 0: all positions look alike."
    if scheme == "rope":
        first, last = np.degrees(frequencies[[0, -1]])
        slowest = f"fastest pair turns by {first:.1f}°, the slowest by {last:.2g}°."
        only = f"only pair turns by {first:.1f}°."
        return (
            f"From one position to the next the {slowest if len(frequencies) > 1 else only} Position 0 is not turned."
        )
    if scheme == "alibi":
        return (
            f"This head has the slope {slope:.4g}. One step further away takes {slope:.4g} from a score, and so leaves "
            f"{np.exp(-slope):.3g} of the weight, before each row is made to sum to 1."
        )
    if nearest is None:
        return "There is one position, and so one column."
    first, second, distance = nearest
    return (
        "Every position has a pattern of its own. "
        f"Even the most alike, such as positions {first} and {second}, lie {distance:.3g} apart."
    )


def wave_titles(pairs: Sequence[int], width: int, wavelengths: Array | None = None) -> dict[str, list[int]]:
    """Title of each panel and the dimensions drawn in it. wavelengths: (width,); None for a table without waves."""
    titles = {}
    for pair in pairs:
        columns = list(range(2 * pair, min(2 * pair + 2, width)))
        name = f"Dimensions {columns[0]}–{columns[1]}" if len(columns) == 2 else f"Dimension {columns[0]}"
        length = f": wavelength {_length(wavelengths[2 * pair])}" if wavelengths is not None else ""
        titles[name + length] = columns
    return titles


def third_pair(pair: int, last: int) -> str:
    """Which dimensions the chosen pair is, or why no third panel is drawn for it. last: the highest pair."""
    if last < 2:
        pairs = "There is one pair of dimensions, pair 0" if last == 0 else "There are two pairs of dimensions, 0 and 1"
        return f"{pairs}: a third one cannot be drawn."
    if pair in (0, last):
        return f"Pair {pair} is drawn anyway: for a third panel choose one between 0, the first, and {last}, the last."
    return f"Pair {pair} is dimensions {2 * pair} and {2 * pair + 1}: pairs and dimensions are counted from 0."


def turns(wavelengths: Array, n: int) -> str:
    """How often the fastest and the slowest wave go round within the sequence. wavelengths: (d,)."""
    if n == 1:
        return "With one position there is no wave to follow: it stands at its beginning."
    fast, slow = (n - 1) / wavelengths[[0, -1]]
    if len(wavelengths) <= 2:
        return f"From position 0 to position {n - 1} the only pair goes round {fast:.1f} times."
    slowly = f"goes round {slow:.3f} times" if slow >= 0.001 else "makes less than a thousandth of a turn"
    return (
        f"From position 0 to position {n - 1} the fastest pair of dimensions goes round {fast:.1f} times, "
        f"and the slowest {slowly}."
    )


def near_and_far(similar: ByOffset, scheme: str, d_model: int) -> list[str]:
    """How the similarity of two encodings goes with their distance."""
    right = similar.mean[len(similar.mean) // 2 :]  # distance 0 and up; the other side is its mirror image
    if len(right) == 1:
        return ["One position has no other to be compared with."]
    if scheme == "table":
        return [
            f"Each encoding with itself: {right[0]:.2f} on average. "
            + _means(right[1:])
            + " A random table does not know that two positions are near.",
        ]
    half = f", which is d_model / 2 = {d_model / 2:g}" if d_model % 2 == 0 else ""
    top = f"Largest at distance 0: {right[0]:.2f}{half}." if right.argmax() == 0 else ""
    again = rises_again(right)
    fall = (
        f"It does not simply fall with distance: at distance {again} it rises again for the first time."
        if again
        else f"It falls with the distance, up to the largest one here, {len(right) - 1}."
    )
    if similar.spread < ROUNDING * d_model:
        alone = "The curve is the same on both sides, and all pairs at one distance have the same similarity."
    else:
        alone = (
            f"At the same distance, pairs differ by up to {similar.spread:.2g}: "
            f"at the odd width {d_model} the last sine has no cosine."
        )
    return [f"{top} {fall}".strip(), alone]


def score_by_offset(scores: ByOffset) -> str:
    """RoPE: pairs of positions with one difference have one score."""
    if len(scores.offsets) == 1:
        return "One position has no other to be compared with."
    largest = float(np.abs(scores.mean).max())
    return (
        "One query and one key, placed everywhere: the score depends on the difference of their positions alone. "
        f"Along a diagonal it differs by {number(scores.spread)} at most{_rounding(scores.spread, largest)}."
    )


def lengths(encoding: Array, embeddings: Array, d_model: int) -> list[str]:
    """The lengths of encodings and embeddings, (n,) each, side by side."""
    low, high = encoding.min(), encoding.max()
    if max(abs(low - np.sqrt(d_model / 2)), abs(high - np.sqrt(d_model / 2))) < 1e-9:
        sizes = f"All encodings are {high:.2f} long: √(d_model / 2)."
    elif high - low < 0.005:
        sizes = f"The encodings are about {high:.2f} long."
    else:
        sizes = f"The encodings are {low:.2f} to {high:.2f} long."
    ratio = float(encoding.mean() / embeddings.mean())
    return [
        sizes,
        f"The embeddings are {embeddings.mean():.2f} long on average. "
        f"So the encoding is {ratio:.2g} times as long as what it is added to.",
    ]


def kept_lengths(before: Array, after: Array) -> list[str]:
    """RoPE keeps the length of every query. before, after: (n,)."""
    change = float(np.abs(after - before).max())
    return [f"Turning keeps lengths: the largest change of a query's length is {number(change)}{_rounding(change)}."]


def slopes(values: Array) -> str:
    """The slopes of ALiBi's heads, (heads,), steepest first."""
    return f"From head to head the slope is halved: from 1/{1 / values[0]:.0f} to 1/{1 / values[-1]:.0f}."


def drawn_heads(head: int) -> str:
    """Which of ALiBi's eight heads have a line, and whether the chosen one is a line more."""
    ends = "Drawn are head 1, the steepest, and head 8, the gentlest"
    return f"{ends}." if head in (1, 8) else f"{ends}, and between them head {head}."


def same_words(count: int) -> str:
    """Where the new order changes nothing."""
    if count == 1:
        return "One token has only one order. Type a longer sentence to shuffle it."
    return "The new order has the same word at every place, so nothing can change. Take another order or other words."


def moved(result: Shuffle, names: Sequence[str], order: Array, *, mirrored_alibi: bool) -> str:
    """Whether the outputs moved with their tokens.

    names: of the tokens in the new order. order: (n,) the old place of each.
    """
    largest = float(result.differences.max())
    if largest >= ROUNDING:
        place = int(result.differences.argmax())
        stayed = bool(order[place] == place) and len(ties(result.differences)) == 1
        return (
            "The outputs changed with the order. "
            f"The largest change, {number(largest)}, is at {largest_at(result.differences, names)}."
        ) + " It stands where it stood, but those around it do not." * stayed
    text = f"Each token has the same output in both orders. Largest difference: {number(largest)}{_rounding(largest)}."
    if mirrored_alibi:
        text += (
            " The new order is the old one read backwards. That keeps every distance, and ALiBi without a mask knows "
            "nothing but distances."
        )
    return text


def found(recovered: Recovered, names: Sequence[str]) -> list[str]:
    """How many tokens find their position. names: of the tokens, in their order."""
    n = len(names)
    if n == 1:
        return ["The only token can only stand at position 0."]
    misses = np.abs(recovered.positions - np.arange(n))
    right = int(np.count_nonzero(misses == 0))
    who = "No token finds" if right == 0 else f"{right} of {n} tokens {'finds' if right == 1 else 'find'}"
    lines = [f"{who} the right position ({recovered.share_right:.0%}). A blind guess is right for 1 in {n}."]
    if right < n:
        worst, alike = int(misses.argmax()), int(np.count_nonzero(misses == misses.max()))
        largest = "The largest miss" if alike == 1 else f"One of the {alike} largest misses"
        lines.append(
            f"On average the guess is {misses.mean():.2g} positions off. {largest}: "
            f"token {token(names[worst])}, at position {worst}, is taken for position {recovered.positions[worst]}."
        )
    return lines


def notices(scheme: str) -> list[str]:
    """What to notice, in Markdown."""
    return [
        "Without an encoding and without a mask, attention gives every word the same output in every order.",
        "A causal mask tells order by itself: the first token sees one token, the second sees two, and so on.",
        _LAST_LINE[scheme],
    ]


def _rounding(value: float, size: float = 1.0) -> str:
    return ", which is rounding error" if 0 < value < ROUNDING * max(1.0, size) else ""


def _range(count: int) -> str:
    return rf"0 \dots {count - 1}" if count > 1 else "0"


def _means(values: Array) -> str:
    if len(values) == 1:
        return f"With its neighbour: {decimals(values[0])}."
    return f"Pairs at one distance average between {decimals(values.min())} and {decimals(values.max())}."


def _length(wavelength: float) -> str:
    return f"{wavelength:,.1f} positions" if wavelength < 1000 else f"{wavelength:,.0f} positions"
