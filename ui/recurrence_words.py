"""Sentences of the page "Recurrence or all at once", computed from the numbers beside them. Plain text."""

from collections.abc import Sequence

import numpy as np

from core.recurrence import Costs, Crossings, Timing
from ui.words import largest_at, number, token

Array = np.ndarray


def steps(costs: Costs) -> list[str]:
    """Who has to wait for whom."""
    n = costs.rnn_steps
    if n == 1:
        return ["With a single token there is nothing to wait for: both need 1 step."]
    before = "token" if n == 2 else f"{n - 1} tokens"
    return [
        f"RNN: {n} steps, one after the other. The last token waits for the {before} before it.",
        f"Self-attention: 1 step, however long the sequence is. No token waits for another, but each looks at all {n}: "
        f"{costs.weights:,} links, n² of them.",
    ]


def cost_table(costs: Costs) -> dict[str, tuple[str, str]]:
    """The exact counts, row by row: (recurrent network, self-attention)."""
    return {
        "Multiply-adds: projections": (f"n·d² = {costs.rnn // 2:,}", f"4·n·d² = {costs.projections:,}"),
        "Multiply-adds: mixing": (f"n·d² = {costs.rnn // 2:,}", f"2·n²·d = {costs.mixing:,}"),
        "Multiply-adds: all": (f"2·n·d² = {costs.rnn:,}", f"{costs.attention:,}"),
        "Sequential steps to read a given sequence": (f"n = {costs.rnn_steps}", f"{costs.attention_steps}"),
        "Sequential steps to write n new tokens": (f"n = {costs.generation_steps}", f"n = {costs.generation_steps}"),
        "Longest path between two tokens": (f"n − 1 = {costs.rnn_path}", f"{costs.attention_path}"),
        "Entries of the attention map": ("none", f"n² = {costs.weights:,}"),
    }


def cost_findings(costs: Costs, crossings: Crossings) -> list[str]:
    """Who does more work, and where the curves cross. Each number is exact."""
    n, d = costs.rnn_steps, crossings.rnn
    compared = "less than" if costs.mixing < costs.rnn else "more than" if costs.mixing > costs.rnn else "as much as"
    return [
        f"Self-attention does {number(costs.attention / costs.rnn)} times the multiply-adds of this RNN. "
        f"With its projections it always does more: 2 + n/d times as many.",
        f"Its mixing alone costs {compared} the whole RNN at n = {n} and d = {d}. The two are equal at n = d = "
        f"{crossings.rnn}; mixing and attention's own projections are equal at n = 2d = {crossings.projections}.",
        f"Attention also pays with a map of n² = {_many(costs.weights, 'weight')}. "
        "Its gain is that no token has to wait for another.",
    ]


def time_findings(timings: Sequence[Timing]) -> list[str]:
    """What the measurement says, whatever came out. Args: timings by growing length."""
    faster = [timing.seq_len for timing in timings if timing.attention < timing.rnn]
    slower = [timing.seq_len for timing in timings if timing.attention >= timing.rnn]
    if not faster:
        first = "In this run self-attention was faster at none of these lengths."
    elif not slower:
        first = "In this run self-attention was faster at every length measured."
    else:
        first = f"In this run self-attention was faster at {_listed(faster)} tokens, and not at {_listed(slower)}."
    last = timings[-1]
    quick, slow = sorted((("the RNN", last.rnn), ("self-attention", last.attention)), key=lambda pair: pair[1])
    overlap = last.rnn_range[0] <= last.attention_range[1] and last.attention_range[0] <= last.rnn_range[1]
    found = [
        first,
        f"At {last.seq_len:,} tokens the RNN took {_milliseconds(last.rnn, last.rnn_range)} and self-attention "
        f"{_milliseconds(last.attention, last.attention_range)}.",
        "Their ranges overlap, so another run may turn out the other way."
        if overlap
        else f"By the medians {quick[0]} was {number(slow[1] / quick[1])} times as fast as {slow[0]}. "
        "Another run, or a busier machine, gives another number.",
    ]
    if len(timings) > 1:
        before = timings[-2]
        found.append(
            f"From {before.seq_len:,} to {last.seq_len:,} tokens the RNN's time was multiplied by "
            f"{number(last.rnn / before.rnn)}, self-attention's by {number(last.attention / before.attention)}."
        )
    return found


def memory_findings(reach: Array, weights: Array, names: Sequence[str]) -> list[str]:
    """How far the first token reaches in both. Args: reach, weights (n,); the tokens' names."""
    n = len(names)
    if n == 1:
        return ["With a single token the first one is the last one, and attention gives it the whole weight, 1."]
    found = [
        _first_reaches(reach, names),
        f"Self-attention: the last token gives token {token(names[0])} the weight {number(weights[0])}, in one step, "
        f"however far away it is. Its largest weight, {number(weights.max())}, is for {largest_at(weights, names)}.",
    ]
    lost = int(np.count_nonzero(reach == 0))
    if lost:
        found.insert(1, f"Not drawn: {_many(lost, 'token')} with a norm too small for a floating-point number.")
    return found


def jacobian(seq_len: int) -> str:
    """LaTeX: the Jacobian of the last state to the first token, as the product that is computed."""
    n = seq_len
    factors = "" if n == 1 else rf"D_{{{n}}} W_h^\top " + ("" if n == 2 else rf"D_{{{n - 1}}} W_h^\top \cdots ")
    return (
        rf"\begin{{gathered}} \frac{{\partial h_{{{n}}}}}{{\partial x_1}} = {factors}D_1 W_x^\top \\ "
        r"D_t = \text{diag}(1 - h_t^2) \end{gathered}"
    )


def _first_reaches(reach: Array, names: Sequence[str]) -> str:
    """One sentence: the first token's reach as a share of the last one's."""
    n = len(names)
    if reach[0] == 0:
        return (
            f"RNN: of token {token(names[0])} the last state shows no trace that a floating-point number can hold "
            f"(the smallest is 4.9 × 10⁻³²⁴), after {_many(n - 1, 'step')}."
        )
    share = reach[0] / reach[-1]
    return (
        f"RNN: token {token(names[0])} reaches the last state with a norm of {number(reach[0])}. That is "
        f"{number(share)} times what the last token does, over {_many(n - 1, 'step')}. Each step multiplies it by "
        f"{number(share ** (1 / (n - 1)))} on average."
    )


def _milliseconds(median: float, between: tuple[float, float]) -> str:
    return f"{number(1e3 * median)} ms ({number(1e3 * between[0])} to {number(1e3 * between[1])})"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _listed(values: Sequence[int]) -> str:
    texts = [f"{value:,}" for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
