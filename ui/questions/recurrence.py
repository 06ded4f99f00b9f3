"""What the page Recurrence asks: writing, a text twice as long, another gain."""

import numpy as np

from core import draws, recurrence
from core.checks import Array
from ui.control_kinds import Settings
from ui.predict import Choice, Number, Question, Solution
from ui.words import counted, number

LONGEST = 256  # of the page's slider
STEPS_BACK = 20  # further back the numbers may be too small for the computer
CHANGES = (
    "It falls to less than a hundredth",
    "It falls, but not so far",
    "It stays as it is",
    "It rises, but less than a hundredfold",
    "It rises a hundredfold or more",
)


def ask(settings: Settings, x: Array) -> list[Question]:
    """The three questions. Args: x (n, d_model), the page's tokens."""
    return [_writing(len(x)), _twice_as_long(settings, len(x)), _another_gain(settings, x)]


def _writing(n: int) -> Question:
    written = 2 * n

    def solve() -> Solution:
        read, write = recurrence.costs(n, 1), recurrence.costs(written, 1)
        return Solution(
            (write.generation_steps,),
            f"Each new token needs the one before it: {counted(written, 'token')} take {write.generation_steps} steps, "
            "with self-attention as with an RNN. Only tokens that are there can be taken all at once: to read "
            f"{counted(n, 'token')} takes self-attention {counted(read.attention_steps, 'step')}, and the RNN "
            f"{read.rnn_steps}.",
        )

    return Number(
        name="writing",
        asks=f"A model with self-attention has read {counted(n, 'token')} in one step. Now it writes {written} new "
        "ones, each with a look at all before it. How many steps must follow each other while it writes? (A whole "
        "number)",
        solve=solve,
    )


def _twice_as_long(settings: Settings, n: int) -> Question:
    d = settings.d_model

    def solve() -> Solution:
        now, then = recurrence.costs(n, d), recurrence.costs(2 * n, d)
        factor = then.attention / now.attention
        return Solution(
            (round(factor, 1),),
            f"Attention's projections double, from {now.projections:,} to {then.projections:,} multiply-adds. But "
            f"twice as many tokens look at twice as many: the mixing becomes four times as much, {now.mixing:,} to "
            f"{then.mixing:,}. Together that is {now.attention:,} to {then.attention:,}, or {number(factor)} times.",
        )

    return Number(
        name="longer",
        asks=f"The text grows from {n} to {2 * n} tokens, with d_model {d}. The RNN's multiply-adds double. By "
        "what factor do those of self-attention grow? (One decimal; 0.1 more or less is right too)",
        solve=solve,
        decimals=1,
        tolerance=0.1,
        shows=None if settings.tokens or 2 * n > LONGEST else {"seq_len": 2 * n},
    )


def _another_gain(settings: Settings, x: Array) -> Question:
    back, gain = min(len(x) - 1, STEPS_BACK), settings.gain
    other = 0.5 if gain > 0.5 else 1.0
    which = "the first token" if back == len(x) - 1 else f"the token {back} places before it"

    def solve() -> Solution:
        now, then = (_reach(x, settings.seed, each, back) for each in (gain, other))
        if back == 0:
            why = "There is one token, and no earlier state is carried over: the gain has nothing to multiply."
        else:
            why = (
                f"On the way back each of the {back} steps multiplies by the recurrent weights, and so by the gain, "
                "and by the slope of the tanh, which is steep while the states are small."
            )
        return Solution(
            (_change(now, then),),
            f"With a gain of {gain:g} the reach is {number(now)}, with {other:g} it is {number(then)}. {why}",
        )

    return Choice(
        name="gain",
        asks=f"The gain of the recurrent weights is changed from {gain:g} to {other:g}. How much does the RNN's last "
        f"state then still answer to {which} (its reach, a norm)?",
        solve=solve,
        options=CHANGES,
        shows={"gain": other},
    )


def _reach(x: Array, seed: int, gain: float, back: int) -> float:
    """How much the last state answers to the token so many places before it."""
    w_x, w_h = draws.recurrent_weights(x.shape[1], seed, gain)
    states = recurrence.rnn(x, w_x, w_h)[-back - 1 :]  # the way back needs no earlier ones
    return float(recurrence.reach_of_tokens(states, w_x, w_h)[0])


def _change(now: float, then: float) -> int:
    """The place in `CHANGES`."""
    if np.isclose(now, then, rtol=1e-9, atol=0):
        return 2
    if then < now:
        return 0 if then < now / 100 else 1
    return 4 if then >= 100 * now else 3
