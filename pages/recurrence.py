"""Recurrence or all at once: what an RNN and self-attention wait for, cost, take in time, and remember."""

import os

import numpy as np
import pandas as pd
import streamlit as st

from core import attention, draws, recurrence
from ui import controls, experiments, figures, page, predict, recurrence_figures, recurrence_words
from ui.page_controls import CONTROLS
from ui.questions import recurrence as questions

LENGTHS = range(2, 257)  # of the curves
MEASURED_LENGTHS = [2**i for i in range(1, 11)]
REPEATS = 7

page.start(
    "recurrence",
    "A recurrent network (RNN) reads one token after the other. Self-attention takes them all at once. "
    "Here is what each has to wait for, what it costs, and how far its memory reaches.",
)
settings = controls.open_page("recurrence", CONTROLS["recurrence"])
experiments.offer("recurrence", settings)
controls.teaching_buttons()

n, d_model, seed = settings.n_tokens, settings.d_model, settings.seed
names = figures.token_names(settings.tokens, n)
costs, crossings = recurrence.costs(n, d_model), recurrence.crossings(d_model)

# Who waits for whom
if page.section():
    page.figure(
        recurrence_figures.dependencies(names),
        key="dependencies",
        alt=f"Sequential step against token. {' '.join(recurrence_words.steps(costs))}",
    )
    page.findings(*recurrence_words.steps(costs))
    st.markdown(
        "A step is one round of work, in which no token waits for another one. Within a round a few operations follow "
        "each other (in attention: scores, softmax, weighted sum), as many for a long sequence as for a short one. "
        "A line leads from what is needed to what is computed from it"
        + (
            "."
            if n <= recurrence_figures.LINKS_UP_TO
            else f"; beyond {recurrence_figures.LINKS_UP_TO} tokens only the lines from state to state are drawn."
        )
    )
    st.latex(
        rf"\begin{{gathered}} h_t = \tanh(x_t W_x + h_{{t-1}} W_h) \\"
        rf" W_x, W_h: {d_model} \times {d_model} \end{{gathered}}"
    )
    st.latex(
        rf"\begin{{gathered}} \text{{softmax}}\left(\frac{{Q K^\top}}{{\sqrt{{{d_model}}}}}\right) V \\"
        rf" Q, K, V: {n} \times {d_model} \end{{gathered}}"
    )

# What it costs
if page.section("What each costs"):
    st.markdown("Exact counts for the chosen length n and width d. Activation functions and biases are left out.")
    st.table(
        pd.DataFrame.from_dict(
            recurrence_words.cost_table(costs), orient="index", columns=["Recurrent network", "Self-attention"]
        ).rename_axis("what is counted")
    )
    counts = [recurrence.costs(length, d_model) for length in LENGTHS]
    left, right = st.columns(2)
    with left:
        page.figure(
            recurrence_figures.multiply_adds(counts, LENGTHS, crossings, now=n),
            key="multiply_adds",
            alt=f"Multiply-adds against the length. {' '.join(recurrence_words.cost_findings(costs, crossings))}",
        )
    with right:
        page.figure(
            recurrence_figures.steps_and_paths(counts, LENGTHS, now=n),
            key="steps",
            alt="Sequential steps, longest path between two tokens and entries of the attention map, "
            "against the length.",
        )
    page.findings(*recurrence_words.cost_findings(costs, crossings))

# What it takes
if page.section("What each takes on this machine"):
    measured = st.session_state.setdefault("recurrence_measured", {})  # timings by width and seed, for this session
    if st.button("Measure on this machine", key="recurrence_measure", icon=":material/timer:"):
        bar = st.progress(0.0, "Running both …")
        timings = []
        for timing in recurrence.time_both(MEASURED_LENGTHS, d_model, seed, REPEATS):
            timings.append(timing)
            bar.progress(len(timings) / len(MEASURED_LENGTHS), f"{timing.seq_len:,} tokens are measured")
        bar.empty()
        measured[d_model, seed] = timings
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

# What is remembered
if page.section("How far the first token reaches"):
    x = draws.words(settings.tokens, d_model, seed) if settings.tokens else draws.tokens(n, d_model, seed)
    w_x, w_h = draws.recurrent_weights(d_model, seed, settings.gain)
    w = draws.attention_weights(d_model, seed, settings.weight_scale)
    states = recurrence.rnn(x, w_x, w_h)
    reach = recurrence.reach_of_tokens(states, w_x, w_h)
    weights = attention.self_attention(x, w.w_q, w.w_k, w.w_v).weights[-1]
    st.markdown(
        "Above: how much the RNN's last state changes when a token changes a little. It is the size (norm) of the "
        "exact Jacobian, a product with one factor per step. Below: the weights with which the last token looks at "
        "each token. The two are different measures. Compare how each depends on the distance, not their heights."
    )
    page.figure(
        recurrence_figures.memory(reach, weights, names),
        key="memory",
        alt=f"Reach of each token. {' '.join(recurrence_words.memory_findings(reach, weights, names))}",
    )
    page.findings(*recurrence_words.memory_findings(reach, weights, names))
    st.caption(
        "Random weights: a trained network carries more, or less. Look at how the reach depends on the distance."
    )
    st.latex(recurrence_words.jacobian(n))

predict.offer(lambda: questions.ask(settings, x))

page.notice(
    "Make the sequence longer: the staircase grows by a step per token, and attention's row stays at step 1.",
    "Attention is not less work. But its work need not wait, and the price is n² weights.",
    "When new text is written, both go token by token: each new token needs the one before it.",
    "Turn the gain down to 0.5: the first token fades sooner. With a gain of 2 and a large width the reach can also "
    "grow from step to step, the opposite trouble.",
)
if not page.presenting():
    tables = {
        "Reach and weight of each token": page.frame(
            # as text: a table cuts 1.2e-20 to 0
            np.array([(f"{norm:.6g}", f"{weight:.6g}") for norm, weight in zip(reach, weights, strict=True)]),
            names,
            ["norm of the Jacobian", "attention weight"],
        ),
    }
    page.numbers(tables)
    page.take_away(
        settings,
        {
            "lengths": np.array(LENGTHS),
            "rnn_steps": np.array([cost.rnn_steps for cost in counts]),
            "rnn_path": np.array([cost.rnn_path for cost in counts]),
            "attention_steps": np.array([cost.attention_steps for cost in counts]),
            "map_entries": np.array([cost.weights for cost in counts]),
            "rnn_multiply_adds": np.array([cost.rnn for cost in counts]),
            "projections": np.array([cost.projections for cost in counts]),
            "mixing": np.array([cost.mixing for cost in counts]),
            "attention_multiply_adds": np.array([cost.attention for cost in counts]),
            "x": x,
            "w_x": w_x,
            "w_h": w_h,
            "states": states,
            "reach": reach,
            "w_q": w.w_q,
            "w_k": w.w_k,
            "w_v": w.w_v,
            "weights": weights,
        },
        tables,
    )
    page.source(
        recurrence.rnn, recurrence.scaled_jacobians, recurrence.reach_of_tokens, recurrence.costs, recurrence.time_both
    )
page.foot("recurrence")
