"""Self-attention, stage by stage: from X to queries, keys and values, to scores, to weights, to the output."""

from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st

from core import attention, draws
from ui import controls, figures, page, predict, words
from ui.control_kinds import Settings
from ui.page_controls import CONTROLS, STAGES
from ui.questions import self_attention as questions

DIMENSIONS_BY_HAND = 8  # columns of the table in which one row is worked out


class Shown(NamedTuple):
    """What the page shows. queries, keys: the names of the tokens in the rows and in the columns of the map."""

    x: np.ndarray
    source: np.ndarray
    w: draws.AttentionWeights
    allowed: np.ndarray
    result: attention.Attention
    entropy: np.ndarray
    queries: list[str]
    keys: list[str]
    key_title: str


def compute(settings: Settings) -> Shown:
    """The attention of the settings, from the numbers of the tokens on."""
    n, d_model, seed = settings.n_tokens, settings.d_model, settings.seed
    x = draws.words(settings.tokens, d_model, seed) if settings.tokens else draws.tokens(n, d_model, seed)
    source, source_tokens = x, settings.tokens
    if settings.cross:
        source_tokens = settings.sentences["source"].tokens
        source = (
            draws.words(source_tokens, d_model, seed)
            if source_tokens
            else draws.memory_tokens(settings.source_len, d_model, seed)
        )
    w = draws.attention_weights(d_model, seed, settings.weight_scale)
    allowed = attention.padding_mask(n, len(source), settings.padding)
    if settings.causal:
        allowed = allowed & attention.causal_mask(n)
    result = attention.cross_attention(
        x, source, w.w_q, w.w_k, w.w_v, allowed, scaling=settings.scaling, temperature=settings.temperature
    )
    return Shown(
        x,
        source,
        w,
        allowed,
        result,
        attention.entropy(result.weights),
        figures.token_names(settings.tokens, n),
        figures.token_names(source_tokens, len(source), padding=settings.padding),
        "key token (second sequence)" if settings.cross else "key token",
    )


def dimension_names(settings: Settings) -> list[str]:
    """1 to d_model."""
    return [str(i) for i in range(1, settings.d_model + 1)]


def the_map(settings: Settings, shown: Shown) -> None:
    """The map of all weights."""
    weights, queries, keys = shown.result.weights, shown.queries, shown.keys
    row, strongest = settings.query - 1, words.strongest_link(weights, queries, keys)
    if page.section():
        page.figure(
            figures.attention_map(weights, queries, keys, shown.entropy, highlight=row, x_title=shown.key_title),
            key="map",
            alt=f"Attention weights of {len(queries)} query tokens on {len(keys)} key tokens. {strongest}",
        )
        page.findings(
            strongest,
            words.row_sums(weights),
            f"The framed row, token {words.token(queries[row])}, is worked out under “One row, checked by hand”.",
        )
        st.caption(words.BITS)
        page.random_weights()


def one_row(settings: Settings, shown: Shown) -> None:
    """One row of the map, as the shares of a sum."""
    if not page.section("One row, checked by hand"):
        return
    result, keys, row = shown.result, shown.keys, settings.query - 1
    weights, name = result.weights[row], shown.queries[row]
    settings.draw("query")
    page.findings(words.row_finding(weights, name, keys, float(shown.entropy[row]), shown.allowed[row]))
    products = weights, result.values[:, 0], float(result.output[row, 0])
    st.latex(words.weighted_sum(*products, settings.query))
    if rounded := words.rounded_sum(*products):
        st.caption(rounded)
    page.figure(
        figures.bars(
            weights,
            keys,
            x_title=shown.key_title,
            y_title="weight",
            highlight=int(weights.argmax()),
            y_range=(0, 1.1 * figures.colour_limit([result.weights], figures.SHARE)),  # as high as the map goes
        ),
        key="row",
        alt=f"Weights of query token {name}: {words.listed(weights, keys)}.",
    )
    few = min(settings.d_model, DIMENSIONS_BY_HAND)
    st.markdown(
        "Each key token has a row of values in V: what it hands over to those that look at it (the stage *projections* "
        "says where V comes from). Multiply each weight with its row of V and add the results up: but for rounding, "
        "that gives the output, the last line."
        + f" The table has the first {few} of {settings.d_model} dimensions."
        * (few < settings.d_model)
    )
    factors = np.vstack([np.column_stack([weights, result.values]), [weights.sum(), *result.output[row]]])
    names = [*(f"key {figures.shorten(key, 20)}" for key in keys), "output"]
    columns = ["weight", *(f"V {i}" for i in range(1, few + 1))]
    page.array_table(factors[:, : few + 1], names, columns, alt="Weights and values")


def draw_stage(stage: str, settings: Settings, shown: Shown) -> None:
    """What happens at one stage, with its sizes, and the matrix that comes out."""
    x, source, result, queries, keys = shown.x, shown.source, shown.result, shown.queries, shown.keys
    n, m, d_model, dimensions = len(x), len(source), settings.d_model, dimension_names(settings)
    second = "S" if settings.cross else "X"
    divisor = (rf"\sqrt{{{d_model}}}" if settings.scaling else "1") + (
        f" \\cdot {settings.temperature:g}" if settings.temperature != 1 else ""
    )
    # Where they are presented, pictures stand one below the other.
    half, third = (1.0, 1.0) if page.presenting() else (1 / 2, 1 / 3)
    map_of = partial(figures.heatmap, x=keys, y=queries, x_title=shown.key_title, y_title="query token")
    rows_of = partial(figures.heatmap, x=dimensions, x_title="dimension", unit="value", kind=figures.SIGNED)
    match stage:
        case "inputs":
            text, latex = "One row of numbers per token.", rf"X: {n} \times {d_model}"
            one_of = partial(
                rows_of,
                limit=figures.colour_limit((x, source), figures.SIGNED),
                share=half if settings.cross else 1,
            )
            charts = {"X": one_of(x, y=queries, y_title="token")}
            if settings.cross:
                latex += rf" \qquad S: {m} \times {d_model}"
                charts["S"] = one_of(source, y=keys, y_title="token (second sequence)")
        case "projections":
            text = (
                "Each token seen in three ways: its query is what it asks for, its key is what it can be found by, "
                "its value is what it hands over."
            )
            latex = (
                rf"\begin{{gathered}} Q = X W_Q: {n} \times {d_model} \\ K = {second} W_K: {m} \times {d_model} \\"
                rf" V = {second} W_V: {m} \times {d_model} \end{{gathered}}"
            )
            limit = figures.colour_limit((result.queries, result.keys, result.values), figures.SIGNED)
            narrow = partial(rows_of, limit=limit, decimals=1, share=third)
            charts = {
                "Q": narrow(result.queries, y=queries, y_title="queries"),
                "K": narrow(result.keys, y=keys, y_title="keys"),
                "V": narrow(result.values, y=keys, y_title="values"),
            }
            for chart in charts.values():
                figures.few_ticks(chart, dimensions)
        case "scores":
            text = "The dot product of every query with every key: large where they point the same way."
            latex = rf"Q K^\top: ({n} \times {d_model}) \cdot ({d_model} \times {m}) = {n} \times {m}"
            charts = {"scores": map_of(result.scores, unit="score", kind=figures.SIGNED)}
        case "scaling":
            text = words.scaling(settings.scaling, d_model, settings.temperature)
            latex = rf"\frac{{Q K^\top}}{{{divisor}}}: {n} \times {m}"
            charts = {"scaled": map_of(result.scaled, unit="scaled score", kind=figures.SIGNED)}
        case "mask":
            text = words.masked(shown.allowed)
            latex = r"\text{score}_{ij} = -\infty \text{ where } j \text{ is hidden from } i"
            masked = np.where(shown.allowed, result.scaled, np.nan)
            charts = {"masked": map_of(masked, unit="scaled score", kind=figures.SIGNED)}
        case "softmax":
            text = "Each row becomes shares of one: e to the power of each score, divided by their sum; −∞ becomes 0."
            latex = r"\text{weight}_{ij} = \frac{e^{\text{score}_{ij}}}{\sum_k e^{\text{score}_{ik}}}"
            charts = {"weights": map_of(result.weights, unit="weight")}
        case _:
            text = "Each query token's new vector: the values of the tokens it looks at, mixed by its weights."
            latex = rf"\text{{weights}} \cdot V: ({n} \times {m}) \cdot ({m} \times {d_model}) = {n} \times {d_model}"
            charts = {"output": rows_of(result.output, y=queries, y_title="query token")}
    st.markdown(f"**{STAGES.index(stage) + 1}. {stage.capitalize()}.** {text}")
    st.latex(latex)
    for column, (name, chart) in zip(page.columns(len(charts)), charts.items(), strict=True):
        with column:
            page.figure(chart, key=f"stage_{name}", alt=f"{stage.capitalize()}: the matrix {name}.")


def stage_buttons(settings: Settings) -> None:
    """The way to the previous and the next stage."""
    shown, fixed = STAGES.index(settings.stage), "stage" in controls.shown_as().fixed
    side_by_side = st.container(horizontal=True)
    side_by_side.button(
        "Previous stage",
        key="self_attention_previous",
        disabled=fixed or shown == 0,
        on_click=controls.choose,
        args=("stage", STAGES[shown - 1]),
        width="stretch",
    )
    side_by_side.button(
        "Next stage",
        key="self_attention_next",
        disabled=fixed or settings.stage in ("output", "all"),
        on_click=controls.choose,
        args=("stage", STAGES[min(shown + 1, 7)]),
        width="stretch",
    )


def stages(settings: Settings, shown: Shown) -> None:
    """How the map comes about, step by step."""
    if page.section("The way there, stage by stage", page.Stages("stage", STAGES[:-1], settings.stage)):
        settings.draw("stage")
        if not page.presenting():  # it has buttons of its own
            stage_buttons(settings)
        for stage in STAGES[:-1] if settings.stage == "all" else (settings.stage,):
            draw_stage(stage, settings, shown)


def below(settings: Settings, shown: Shown) -> None:
    """Questions, what to notice, and all numbers."""
    x, w, result, queries, keys = shown.x, shown.w, shown.result, shown.queries, shown.keys
    predict.offer(lambda: questions.ask(settings, x, shown.source, shown.allowed, queries, keys))
    page.notice(
        "Look along one row: unless all keys are hidden, its weights sum to 1. More for one key is less for another.",
        "The scores grow with d_model, and without the division by √d_k they grow faster: then the softmax soon gives "
        "nearly everything to one token. It shows best with d_model 64 and weights of size 0.1: switch the division "
        "off and on.",
        "Without a mask, nothing in the computation asks where a token stands. The page Positional encoding mends "
        "that.",
    )
    if page.presenting():
        return
    weights, dimensions = result.weights, dimension_names(settings)
    sums = {"row_sums": weights.sum(-1), "row_entropy": shown.entropy}
    tables = {
        "Weights": page.frame(weights, queries, keys),
        "Row sums and entropy": page.frame(np.stack([*sums.values()], axis=1), queries, ["sum", "entropy (bits)"]),
        "Output": page.frame(result.output, queries, dimensions),
        "Queries": page.frame(result.queries, queries, dimensions),
        "Keys": page.frame(result.keys, keys, dimensions),
        "Values": page.frame(result.values, keys, dimensions),
        "Scores": page.frame(result.scores, queries, keys),
    }
    page.numbers(tables)
    second = {"source": shown.source} if settings.cross else {}
    page.take_away(
        settings,
        {"x": x, **second, "w_q": w.w_q, "w_k": w.w_k, "w_v": w.w_v}
        | {stage: getattr(result, stage) for stage in attention.STAGES}
        | sums,
        tables,
    )
    page.source(attention.scaled_dot_product_attention, attention.softmax)


page.start(
    "self_attention",
    "All tokens look at once, none waits for another. Each row of the map belongs to one token, the query: "
    "it says what share the query takes from each token in the columns, the keys.",
)
controls.open_page("self_attention", CONTROLS["self_attention"], in_parts=True)
page.parts(compute, the_map, one_row, stages, below=below, unmoved={stages: {"query"}})
page.foot("self_attention")
