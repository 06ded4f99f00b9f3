"""Sentences about a transformer block that are computed from its numbers. Plain text, as in `ui.words`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from core import block
from ui.words import decimals, number, three_digits

Array = np.ndarray

BOTH, RESIDUAL, NORM, BARE = "residual and norm", "residual only", "norm only", "no residual, no norm"
_THIS = " (this setting)"
_SEEN = 0.005  # below, two decimals show 0
SAME = 0.005  # numbers that are so near, as a share, read alike in three digits or nearly so
MUCH = 1000  # a gradient that changes more than so many times on its way has vanished or exploded


def between(numbers: Array) -> str:
    """The range of some numbers; the one number where all look the same."""
    low, high = (decimals(float(value)) for value in (numbers.min(), numbers.max()))
    return low if low == high else f"between {low} and {high}"


def size_findings(seq_len: int, d_model: int, d_ff: int, settings: block.Settings, blocks: int) -> list[str]:
    """What the sizes in the diagram come to."""
    counts = {tensor.name: tensor.parameters for tensor in block.tensors(seq_len, d_model, d_ff, settings)}
    feed_forward = counts["hidden layer"] + counts["feed-forward output"]
    total = sum(counts.values())
    stacked = [f"{blocks} blocks together: {blocks * total:,} parameters."] if blocks > 1 else []
    return [
        f"{seq_len} × {d_model} goes in, {seq_len} × {d_model} comes out.",
        f"{total - feed_forward:,} parameters belong to attention, {feed_forward:,} to the feed-forward network.",
        *stacked,
        f"PyTorch's full block of this size has {block.block_parameters(d_model, d_ff):,} parameters: with W_O, with a "
        "bias for every projection, and with a learned gain and bias in each of its two norms.",
    ]


def diagram(seq_len: int, d_model: int, d_ff: int, settings: block.Settings, blocks: int) -> str:
    """The diagram in words: what is made, in order, with shapes and parameters."""
    steps = [
        f"{tensor.name} {' × '.join(map(str, tensor.shape))}"
        + (f" ({tensor.parameters:,} parameters)" if tensor.parameters else "")
        for tensor in block.tensors(seq_len, d_model, d_ff, settings)
    ]
    stacked = f"{blocks} blocks of this kind. " if blocks > 1 else ""
    return f"{stacked}From top to bottom: {', then '.join(steps)}."


def equations(seq_len: int, d_model: int, d_ff: int, settings: block.Settings) -> list[str]:
    """LaTeX: the two sublayers, and the feed-forward one with its sizes."""
    pre_norm = settings.norm and settings.order == "pre-norm"

    def norm(x: str) -> str:
        return rf"\text{{LN}}({x})"

    def sublayer(function: str, x: str) -> str:
        inner = rf"\text{{{function}}}({norm(x) if pre_norm else x})"
        added = f"{x} + {inner}" if settings.residual else inner
        return norm(added) if settings.norm and not pre_norm else added

    activation = {"relu": "ReLU", "gelu": "GELU"}[settings.activation]
    n, d, f = seq_len, d_model, d_ff
    return [
        f"a = {sublayer('Attention', 'x')}",
        rf"\text{{output}} = {sublayer('FFN', 'a')}",
        rf"\text{{FFN}}(v) = \text{{{activation}}}(v W_1 + b_1)\, W_2 + b_2",
        rf"({n} \times {d}) \cdot ({d} \times {f}) = {n} \times {f}",
        rf"({n} \times {f}) \cdot ({f} \times {d}) = {n} \times {d}",
    ]


def feed_forward(d_model: int, d_ff: int, settings: block.Settings) -> str:
    """What the second sublayer does, in Markdown."""
    cut = {
        "relu": "ReLU makes 0 of those that are negative",
        "gelu": "GELU brings those that are negative near 0, and lets the small ones among them through",
    }
    return (
        "The feed-forward sublayer (FFN) takes each token by itself; tokens meet in attention alone. W₁ makes "
        f"{d_ff} numbers of its {d_model}, {cut[settings.activation]}, and W₂ makes {d_model} of them again."
    )


def largest_finding(maps: Mapping[str, Array]) -> str:
    """In which of the maps the largest magnitude stands. Args: maps (n, d_model) by title."""
    largest = {title: float(np.abs(values).max()) for title, values in maps.items()}
    title = max(largest, key=lambda name: largest[name])
    values = maps[title].ravel()
    furthest = number(float(values[np.abs(values).argmax()]))
    if not largest[title]:
        return "All maps share one colour scale, and every number in them is 0."
    return f"All maps share one colour scale. The number furthest from 0 is {furthest}, in “{title}”."


def norm_finding(before: Array, after: Array) -> str:
    """Every token's mean and spread before and after LayerNorm. Args: before, after (n, d_model)."""
    (mean_before, spread_before), (mean_after, spread_after) = (block.mean_and_spread(x) for x in (before, after))
    tokens = f"the {len(before)} tokens have" if len(before) > 1 else "the token has"
    return (
        f"Before LayerNorm {tokens} mean {between(mean_before)} and spread {between(spread_before)}; "
        f"after it mean {between(mean_after)} and spread {between(spread_after)}."
    )


def axes_finding(layer: Array, batch: Array) -> str:
    """Means of rows and columns after both norms. Args: the same matrix after LayerNorm and after BatchNorm."""
    lines = []
    for name, x in (("LayerNorm", layer), ("BatchNorm", batch)):
        rows, columns = block.mean_and_spread(x)[0], block.mean_and_spread(x, axis=0)[0]
        lines.append(f"After {name}: means of the rows {between(rows)}, means of the columns {between(columns)}.")
    if np.abs(batch.mean(axis=0)).max() > _SEEN:
        lines.append("The tokens are almost equal: what sets them apart is lost in rounding, so BatchNorm misses 0.")
    if len(layer) == 1:
        lines.append("There is one token: each column holds one number, which is its own mean, and BatchNorm leaves 0.")
    elif np.abs(layer).max() < _SEEN:
        lines.append("What goes in is so small that the 10⁻⁶ in the denominator of both norms outweighs it.")
    elif np.abs(batch).max() < _SEEN:
        lines.append("The tokens are equal here: each column holds one number again and again, and BatchNorm leaves 0.")
    return "\n".join(lines)


def spread_finding(depth: block.Depth, final: float | None) -> str:
    """What the spread does from the input to the last block."""
    first, last, blocks = depth.spread[0], depth.spread[-1], len(depth.spread) - 1
    dead = np.flatnonzero(depth.spread == 0)
    if dead.size:
        end = f"After block {dead[0]} it is exactly 0: nothing is left to tell one dimension from another."
    else:
        end = (
            f"After block {blocks} it is {three_digits(last)}, which is {three_digits(last / first)} times the input's."
        )
    kept = final is not None and three_digits(final) == three_digits(last)
    normed = (
        f" The final norm {'leaves it at' if kept else 'brings it to'} {three_digits(final)}."
        if final is not None
        else ""
    )
    return f"Spread of the input: {three_digits(first)}. {end}{normed}"


def alikeness_finding(depth: block.Depth, tokens: int) -> str:
    """How alike the tokens are, at the input and after the last block."""
    if tokens == 1:
        return "There is one token, and no other to compare it with."
    first, last = depth.alikeness[0], depth.alikeness[-1]
    if not np.isfinite(last):
        end = "; after the last block no two tokens are left that are not all zeros."
    else:
        end = f", {decimals(last)} after the last block."
    return f"Alikeness of the tokens: {decimals(first)} at the input{end}"


def arrangements(settings: block.Settings) -> dict[str, block.Settings]:
    """Both orders and no norm at all, everything else as set, by name; what is set says so."""
    kinds = {
        "post-norm": replace(settings, norm=True, order="post-norm"),
        "pre-norm": replace(settings, norm=True, order="pre-norm"),
        "no norm": replace(settings, norm=False),
    }
    return {name + _THIS * (kind == settings): kind for name, kind in kinds.items()}


def comparison(depths: Mapping[str, block.Depth]) -> str:
    """The spread after the last block, for each of several arrangements."""
    said = ", ".join(f"{name} {three_digits(depth.spread[-1])}" for name, depth in depths.items())
    return f"Spread after the last block, with the same weights: {said}."


def with_and_without(settings: block.Settings) -> dict[str, block.Settings]:
    """Residual connections on or off, norms on or off, everything else as set, by name; what is set says so."""
    names = {(True, True): BOTH, (True, False): RESIDUAL, (False, True): NORM, (False, False): BARE}
    kinds = {name: replace(settings, residual=residual, norm=norm) for (residual, norm), name in names.items()}
    return {name + _THIS * (kind == settings): kind for name, kind in kinds.items()}


def gradient_findings(lengths: Mapping[str, Array], nearby: Mapping[str, Array]) -> list[str]:
    """How much of the gradient at the last block reaches the first.

    Args:
        lengths: (blocks,) by name. nearby: the same of some of them, from an input that differs in its last bits.
    """
    blocks = len(next(iter(lengths.values())))
    plain = {name.removesuffix(_THIS): values for name, values in lengths.items()}
    again = {name.removesuffix(_THIS): values for name, values in nearby.items()}
    ratios = {name: _first_to_last(values) for name, values in plain.items() if values[-1] > 0}
    others = {name: _first_to_last(again.get(name, plain[name])) for name in ratios}
    unsure = [name for name, ratio in ratios.items() if not np.isclose(ratio, others[name], rtol=SAME)]
    said = [
        f"“{name}” {'not certain, see below' if name in unsure else _multiple(ratio)}" for name, ratio in ratios.items()
    ]
    start = f"From block {blocks} back to block 1 the length of the gradient is multiplied by this: "
    return [
        start + "; ".join(said) + "." if said else "No gradient arrives at all.",
        *_vanished_or_exploded(ratios, others),
        *(
            f"With “{name}” the number is not certain. A computer rounds every number to about 16 digits, and here so "
            f"small a difference grows until it shows: the line drawn comes to {_multiple(ratios[name])}; with every "
            f"number of the input changed by the least possible amount it would come to {_multiple(others[name])}."
            for name in unsure
        ),
        *(line for name, values in plain.items() for line in _not_drawn(name, values)),
    ]


def _first_to_last(lengths: Array) -> float:
    """0 where nothing arrives at the first block, infinity where the numbers outgrow floating point."""
    return float(lengths[0] / lengths[-1]) if np.isfinite(lengths[0]) else float("inf")


def _multiple(ratio: float) -> str:
    return number(ratio) if np.isfinite(ratio) else "more than can be computed"


def _vanished_or_exploded(ratios: Mapping[str, float], others: Mapping[str, float]) -> list[str]:
    vanished = _listed([f"“{name}”" for name, ratio in ratios.items() if max(ratio, others[name]) < 1 / MUCH])
    exploded = _listed([f"“{name}”" for name, ratio in ratios.items() if min(ratio, others[name]) > MUCH])
    return [
        *([f"It vanishes with {vanished}: less than a thousandth is left."] if vanished else []),
        *([f"It explodes with {exploded}: it grows more than a thousandfold."] if exploded else []),
    ]


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), *parts[-1:]])


def _not_drawn(name: str, lengths: Array) -> list[str]:
    """Where a line stops because a logarithmic scale has no place for its values."""
    zero, beyond = np.count_nonzero(lengths == 0), np.count_nonzero(~np.isfinite(lengths))
    return [
        *(
            [f"Not drawn: with “{name}” it comes out as 0 {_places(int(zero))}, which this scale cannot show."]
            if zero
            else []
        ),
        *(
            [f"Not drawn: with “{name}” it is too large for a floating-point number {_places(int(beyond))}."]
            if beyond
            else []
        ),
    ]


def _places(blocks: int) -> str:
    return f"at blocks 1 to {blocks}" if blocks > 1 else "at block 1"
