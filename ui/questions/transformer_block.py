"""What the page Transformer block asks: a wider hidden layer, a stack without residuals, one token that changes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core import block, draws, gradients
from core.checks import Array
from core.draws import AttentionWeights, FeedForwardWeights
from ui.block_words import SAME
from ui.control_kinds import Settings
from ui.predict import Choice, Number, Question, Solution
from ui.words import counted, number, token

VISIBLE = 1e-6


def ask(
    settings: Settings,
    kind: block.Settings,
    x: Array,
    weights: Sequence[tuple[AttentionWeights, FeedForwardWeights]],
    tokens: Sequence[str],
) -> list[Question]:
    """The three questions. Args: the page's block, its input (n, d_model), its blocks' weights, the tokens' names."""
    return [
        _one_more_unit(settings, kind, len(x)),
        _way_back(settings, kind, x),
        _one_token(kind, x, weights[0], tokens),
    ]


def _one_more_unit(settings: Settings, kind: block.Settings, n: int) -> Question:
    d, d_ff = settings.d_model, settings.d_ff

    def solve() -> Solution:
        now, then = (
            sum(tensor.parameters for tensor in block.tensors(n, d, width, kind)) for width in (d_ff, d_ff + 1)
        )
        return Solution(
            (then - now,),
            f"W_1 gets one more column of {d} numbers, b_1 one more number, and W_2 one more row of {d}: "
            f"{d} + 1 + {d} = {then - now}. The block then has {then:,} parameters in place of {now:,}. Attention and "
            "norms have nothing to do with d_ff.",
        )

    return Number(
        name="one_more_unit",
        asks=f"The hidden layer of the feed-forward network gets one more unit: d_ff {d_ff + 1} in place of {d_ff}, "
        f"with d_model still {d}. How many parameters more does one block have? (A whole number; count the bias)",
        solve=solve,
    )


def _way_back(settings: Settings, kind: block.Settings, x: Array) -> Question:
    deep = 24 if settings.blocks == 12 else 12
    other = replace(kind, residual=not kind.residual)

    def length(each: block.Settings, x: Array, drawn: Sequence[gradients.BlockWeights]) -> float:
        direction = gradients.unit_direction(len(x), x.shape[1], settings.seed)
        arrived = float(gradients.gradient_lengths(x, drawn, each, direction)[0])
        return arrived if np.isfinite(arrived) else np.inf

    def solve() -> Solution:
        drawn = [
            gradients.block_weights(
                *draws.block_weights(settings.d_model, settings.d_ff, settings.seed, settings.weight_scale, block=i)
            )
            for i in range(deep)
        ]
        now, then = length(kind, x, drawn), length(other, x, drawn)
        unsteady = kind if not kind.residual else other
        nearby = length(unsteady, np.nextafter(x, np.inf), drawn)
        unsure = not np.isclose(nearby, now if unsteady is kind else then, rtol=SAME)
        rounding = (
            " But the number without them is not certain. A computer rounds every number to about 16 digits, and here "
            "so small a difference grows until it shows: with every number of the input changed by the least possible "
            f"amount it would be {_length(nearby)}."
        )
        place = 0 if then < 1e-3 else 1 if then < 0.5 else 2 if then <= 2 else 3
        words = ("with", "without") if kind.residual else ("without", "with")
        lane = (
            "A residual connection hands the gradient on as it is, past each sublayer. Without it all of the gradient "
            "goes through the sublayers, and each multiplies it by its weights; a norm divides by the spread it finds."
        )
        return Solution(
            (place,),
            f"{words[1].capitalize()} residual connections {_length(then)} arrives at block 1, {words[0]} them "
            f"{_length(now)}.{rounding * unsure} {lane}",
        )

    change = "taken away" if kind.residual else "put in"
    return Choice(
        name="way_back",
        asks=f"{deep} blocks are stacked, and the residual connections are {change}; all else stays as it is set. A "
        "gradient of length 1 starts at the output, on its way back. How long is it when it comes to block 1?",
        solve=solve,
        options=(
            "Less than a thousandth",
            "Between a thousandth and a half",
            "Between a half and 2",
            "Longer than 2",
        ),
        shows={"blocks": deep, "residual": not kind.residual},
    )


def _length(value: float) -> str:
    return number(value) if np.isfinite(value) else "more than can be computed"


def _one_token(
    kind: block.Settings,
    x: Array,
    weights: tuple[AttentionWeights, FeedForwardWeights],
    tokens: Sequence[str],
) -> Question:
    n, last = len(x), token(tokens[-1])

    def solve() -> Solution:
        changed = x.copy()
        changed[-1, 0] += 1
        before, after = (block.transformer_block(each, *weights, kind).output for each in (x, changed))
        sizes = np.abs(after - before).max(axis=1)
        count = int(np.count_nonzero(sizes > VISIBLE))
        if kind.causal:
            why = "The causal mask lets no token look at a later one, so the last token's change reaches no other."
        else:
            why = "Attention lets every token look at the last one, and so the change comes to all, large or small."
        own = "Feed-forward network, norms and residual connections work on each token by itself."
        others = f", the others by up to {number(float(sizes[:-1].max()))}" if n > 1 else ""
        verb = "changes" if count == 1 else "change"
        return Solution(
            (count,),
            f"{count} of {counted(n, 'token')} {verb}: the last by up to {number(float(sizes[-1]))}{others}. "
            f"{why if n > 1 else 'There is no other token.'} {own}",
        )

    return Number(
        name="one_token",
        asks="One number changes in the input of block 1: 1 is added to the first dimension of the last token, "
        f"{last}. Of {counted(n, 'token')}, how many leave this block with other numbers than before? (A whole number; "
        "a change below 0.000001 does not count)",
        solve=solve,
    )
