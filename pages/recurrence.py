"""Recurrence or all at once: what an RNN and self-attention wait for, cost, take in time, and remember."""

import os
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core import attention, draws, recurrence
from ui import controls, figures, page, predict, recurrence_figures, recurrence_words
from ui.control_kinds import Settings
from ui.figure_tables import four_digits
from ui.page_controls import CONTROLS
from ui.questions import recurrence as questions

LENGTHS = range(2, 257)  # of the curves
MEASURED_LENGTHS = [2**i for i in range(1, 11)]
REPEATS = 7


class Memory(NamedTuple):
    """What is remembered. reach: of each token in the RNN. weights: with which the last token looks at each."""

    w_x: np.ndarray
    w_h: np.ndarray
    states: np.ndarray
    reach: np.ndarray
    w: draws.AttentionWeights
    weights: np.ndarray


@dataclass
class Shown:
    """What the page shows, from its settings; what takes time is computed when a part first asks for it."""

    settings: Settings

    @cached_property
    def names(self) -> list[str]:
        """Of the tokens."""
        return figures.token_names(self.settings.tokens, self.settings.n_tokens)

    @cached_property
    def costs(self) -> recurrence.Costs:
        """At the chosen length."""
        return recurrence.costs(self.settings.n_tokens, self.settings.d_model)

    @cached_property
    def x(self) -> np.ndarray:
        s = self.settings
        return draws.words(s.tokens, s.d_model, s.seed) if s.tokens else draws.tokens(s.n_tokens, s.d_model, s.seed)

    @cached_property
    def memory(self) -> Memory:
        s = self.settings
        w_x, w_h = draws.recurrent_weights(s.d_model, s.seed, s.gain)
        w = draws.attention_weights(s.d_model, s.seed, s.weight_scale)
        states = recurrence.rnn(self.x, w_x, w_h)
        reach = recurrence.reach_of_tokens(states, w_x, w_h)
        weights = attention.self_attention(self.x, w.w_q, w.w_k, w.w_v).weights[-1]
        return Memory(w_x, w_h, states, reach, w, weights)


def who_waits(settings: Settings, shown: Shown) -> None:
    """Who waits for whom."""
    if not page.section():
        return
    steps = recurrence_words.steps(shown.costs)
    page.figure(
        recurrence_figures.dependencies(shown.names),
        key="dependencies",
        alt=f"Sequential step against token, for the RNN above and for attention below. {' '.join(steps)}",
    )
    page.findings(*steps)


def what_a_step_is(settings: Settings, shown: Shown) -> None:
    """How to read the picture, and the two formulas."""
    if not page.goes_on():
        return
    n, d_model = settings.n_tokens, settings.d_model
    st.markdown(
        "A step is one round of work, in which no token waits for another one. Within a round a few operations follow "
        "each other (in attention: scores, softmax, weighted sum), as many for a long sequence as for a short one. "
        "A line leads from what is needed to what is computed from it"
        + (
            ". Those to attention's last token stand out."
            if n <= recurrence_figures.LINKS_UP_TO
            else f"; beyond {recurrence_figures.LINKS_UP_TO} tokens only the RNN's lines from state to state are drawn "
            "and those to attention's last token. Each other token needs as many."
        )
        + " Attention's step is drawn higher than those of the RNN, so that its lines can be seen." * (n > 1)
    )
    st.markdown(
        "$x_t$ is the row of token t, and $h_t$ the state after it: what the RNN has kept of all tokens so far."
    )
    st.latex(
        rf"\begin{{gathered}} h_t = \tanh(x_t W_x + h_{{t-1}} W_h) \\"
        rf" W_x, W_h: {d_model} \times {d_model} \end{{gathered}}"
    )
    st.latex(
        rf"\begin{{gathered}} \text{{softmax}}\left(\frac{{Q K^\top}}{{\sqrt{{{d_model}}}}}\right) V \\"
        rf" Q, K, V: {n} \times {d_model} \end{{gathered}}"
    )
    st.markdown(
        "In attention each token has a row in Q, its query, one in K, its key, and one in V, its value. A score "
        "compares a query with a key, the softmax makes shares of a row of scores (the weights), and with these shares "
        "the values are added up. The page Self-attention goes through it stage by stage."
    )


def what_it_costs(settings: Settings, shown: Shown) -> None:
    """The exact counts, and how they grow with the length."""
    if not page.section("What each costs"):
        return
    n, d_model = settings.n_tokens, settings.d_model
    curves, crossings = recurrence.costs_by_length(LENGTHS[0], LENGTHS[-1], d_model), recurrence.crossings(d_model)
    findings = recurrence_words.cost_findings(shown.costs, crossings)
    st.markdown(
        "Exact counts for the chosen length n and width d. A multiply-add multiplies two numbers and adds the product "
        "to a sum; the tanh, the softmax and biases are left out.\n"
        "- **Projections** take one token at a time and multiply its row with a matrix of d × d weights. The RNN has "
        "one, $x_t W_x$. Attention has four: they make the queries, the keys, the values and, last, the output.\n"
        "- **Mixing** brings tokens together. In the RNN that is $h_{t-1} W_h$, which carries on what was read before; "
        "in attention it is the scores and the weighted sums.\n\n"
        "All axes below are logarithmic: equal steps multiply by the same number."
    )
    counted = recurrence_words.cost_table(shown.costs)
    rows = pd.Index([*counted], name="what is counted", dtype=object)  # object: pandas' own text takes it longer
    st.table(pd.DataFrame([*counted.values()], rows, ["Recurrent network", "Self-attention"], dtype=object))
    left, right = st.columns(2)
    with left:
        page.figure(
            recurrence_figures.multiply_adds(curves, LENGTHS, crossings, now=n),
            key="multiply_adds",
            alt=f"Multiply-adds against the length. {' '.join(findings)}",
        )
    with right:
        page.figure(
            recurrence_figures.steps_and_paths(curves, LENGTHS, now=n),
            key="steps",
            alt="Sequential steps, longest path between two tokens and entries of the attention map, "
            "against the length.",
        )
    page.findings(*findings)


def what_it_takes(settings: Settings, shown: Shown) -> None:
    """The time that both take on this machine, if the reader asks for it."""
    if not page.section("What each takes on this machine"):
        return
    d_model, seed = settings.d_model, settings.seed
    measured = st.session_state.setdefault("recurrence_measured", {})  # timings by width and seed, for this session
    if st.button("Measure on this machine", key="recurrence_measure", icon=":material/timer:"):
        measured[d_model, seed] = measure(d_model, seed)
    if timings := measured.get((d_model, seed)):
        page.figure(
            recurrence_figures.times(timings),
            key="times",
            alt=f"Measured time against the length. {' '.join(recurrence_words.time_findings(timings))}",
        )
        page.findings(f"Measured with d_model {d_model} and seed {seed}.", *recurrence_words.time_findings(timings))
    elif measured:
        widths = ", ".join(f"d_model {width} with seed {drawn}" for width, drawn in measured)
        st.text(f"Not measured yet with d_model {d_model} and seed {seed}; measured so far: {widths}.")
    st.caption(
        f"The button runs both, {REPEATS} times at each length from {MEASURED_LENGTHS[0]} to {MEASURED_LENGTHS[-1]:,} "
        "tokens, further than the slider goes; the median counts, and the bars show the shortest and the longest time. "
        "They run in numpy, in float32, without a graphics card, on the machine that serves this page "
        f"(processor cores: {os.cpu_count()}), beside whatever else it does. The RNN is a Python loop with one turn "
        "per token, and part of its time is the loop itself. Self-attention is a few large matrix products and a map "
        "of n² numbers, with its output projection; on few cores it need not be faster."
    )


def measure(d_model: int, seed: int) -> list[recurrence.Timing]:
    """Run both, with a bar that says how far they are."""
    bar = st.progress(0.0, "Running both …")
    timings = []
    for timing in recurrence.time_both(MEASURED_LENGTHS, d_model, seed, REPEATS):
        timings.append(timing)
        bar.progress(len(timings) / len(MEASURED_LENGTHS), f"{timing.seq_len:,} tokens are measured")
    bar.empty()
    return timings


def what_is_remembered(settings: Settings, shown: Shown) -> None:
    """How far the first token reaches in both."""
    if not page.section("How far the first token reaches"):
        return
    reach, weights, names = shown.memory.reach, shown.memory.weights, shown.names
    findings = recurrence_words.memory_findings(reach, weights, names)
    st.markdown(
        "Upper picture: how much the RNN's last state changes when a token changes a little. It is the size (norm) of "
        "the exact Jacobian, a product with one factor per step. Lower picture: the weights with which the last token "
        "looks at each token. The two are different measures. Compare how each depends on the distance, not their "
        "heights. The upper axis is logarithmic: equal steps multiply by the same number."
    )
    page.figure(
        recurrence_figures.memory(reach, weights, names),
        key="memory",
        alt=f"Reach of each token. {' '.join(findings)}",
    )
    page.findings(*findings)
    st.caption(
        "Random weights: a trained network carries more, or less. Look at how the reach depends on the distance."
    )
    st.latex(recurrence_words.jacobian(len(names)))


def below(settings: Settings, shown: Shown) -> None:
    """Questions, what to notice, and all numbers."""
    predict.offer(lambda: questions.ask(settings, shown.x))
    page.notice(
        "Make the sequence longer: the staircase grows by a step per token, and attention's row stays at step 1.",
        "Attention is not less work. But its work need not wait, and the price is n² weights.",
        "When new text is written, both go token by token: each new token needs the one before it.",
        "Turn the gain down to 0.5: the first token fades sooner. With a gain of 2 and a large width the reach can "
        "also grow from step to step, the opposite trouble.",
    )
    if page.presenting():
        return
    tables = {"Reach and weight of each token": partial(reach_and_weights, shown)}
    page.numbers(tables)
    page.take_away(settings, partial(arrays, shown), tables)
    page.source(
        recurrence.rnn, recurrence.scaled_jacobians, recurrence.reach_of_tokens, recurrence.costs, recurrence.time_both
    )


def reach_and_weights(shown: Shown) -> pd.DataFrame:
    """What both remember."""
    columns = {"norm of the Jacobian": shown.memory.reach, "attention weight": shown.memory.weights}
    return four_digits(pd.DataFrame(columns, index=shown.names))


def arrays(shown: Shown) -> dict[str, np.ndarray]:
    """All numbers, under the names that they have in the script."""
    curves, memory = recurrence.costs_by_length(LENGTHS[0], LENGTHS[-1], shown.settings.d_model), shown.memory
    return {
        "lengths": np.array(LENGTHS),
        "rnn_steps": curves["rnn_steps"],
        "rnn_path": curves["rnn_path"],
        "attention_steps": curves["attention_steps"],
        "map_entries": curves["weights"],
        "rnn_multiply_adds": curves["rnn"],
        "projections": curves["projections"],
        "mixing": curves["mixing"],
        "attention_multiply_adds": curves["attention"],
        "x": shown.x,
        "w_x": memory.w_x,
        "w_h": memory.w_h,
        "states": memory.states,
        "reach": memory.reach,
        "w_q": memory.w.w_q,
        "w_k": memory.w.w_k,
        "w_v": memory.w.w_v,
        "weights": memory.weights,
    }


page.start(
    "recurrence",
    "A recurrent network (RNN) reads one token after the other. Self-attention takes them all at once. "
    "Here is what each has to wait for, what it costs, and how far its memory reaches.",
)
controls.open_page("recurrence", CONTROLS["recurrence"], in_parts=True)
page.parts(
    Shown,
    who_waits,
    what_a_step_is,
    what_it_costs,
    what_it_takes,
    what_is_remembered,
    below=below,
    unmoved={
        what_a_step_is: {"gain", "weight_scale"},
        what_it_costs: {"gain", "weight_scale"},
        what_it_takes: {"gain", "weight_scale", "seq_len"},
    },
)
page.foot("recurrence")
