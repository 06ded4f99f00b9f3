"""Positional encoding: what the schemes add or turn, how alike positions are, and what order changes."""

from functools import partial

import numpy as np
import streamlit as st

from core import attention, draws, positional
from ui import controls, experiments, figures, page, positional_figures, predict
from ui import positional_words as said
from ui.page_controls import ADDED, CONTROLS
from ui.questions import positional_encoding as questions
from ui.words import number

LESSON_WORDS = ("dog", "bites", "man")
WIDTHS = (2, 4, 8, 16, 32, 64, 128)
SOURCES = {
    "none": (),
    "sinusoidal": (positional.sinusoidal, positional.waves, positional.frequencies, positional.recover_positions),
    "table": (draws.position_table, positional.recover_positions),
    "rope": (positional.rotate, positional.frequencies, positional.rotary_scores),
    "alibi": (positional.alibi_slopes, positional.alibi_bias),
}

page.start(
    "positional_encoding",
    "Attention by itself does not know who stands where. Here are ways to tell it, and what changes when it knows.",
)
settings = controls.open_page("positional_encoding", CONTROLS["positional_encoding"])
experiments.offer("positional_encoding", settings)
controls.teaching_buttons()

n, d_model, scheme, seed = settings.n_tokens, settings.d_model, settings.scheme, settings.seed


def embed(words: tuple[str, ...], width: int) -> np.ndarray:
    """The embeddings of words, or of the page's random tokens where there are none: (n, width)."""
    rows = draws.words(words, width, seed) if words else draws.tokens(n, width, seed)
    return settings.embedding_scale * rows


def encode(kind: str, width: int) -> np.ndarray:
    """What a scheme adds to the embeddings, (n, width): zeros where it adds nothing."""
    table = draws.position_table(n, width, seed) if kind == "table" else None
    return positional.add_positions(np.zeros((n, width)), kind, table)


x, encoding, w = embed(settings.tokens, d_model), encode(scheme, d_model), draws.attention_weights(d_model, seed, 0.3)
slopes = positional.alibi_slopes(8)
slope = float(slopes[settings.alibi_head - 1])
paired = 2 * (d_model // 2)  # the dimensions that RoPE turns: all but the last of an odd width
tokens, positions = figures.token_names(settings.tokens, n), [str(p) for p in range(n)]
dimensions = [str(i) for i in range(d_model)]
# Tall rather than wide: a table costs time by the column.
tables: dict[str, page.Table] = {}
arrays = {"x": x, "w_q": w.w_q, "w_k": w.w_k, "w_v": w.w_v}  # to take away, under the names of the script


def draw_pattern() -> None:
    """The first picture: the lesson's heatmap, or what stands in its place."""
    rows, values, across, down, unit = dimensions, encoding.T, "position", "dimension", "value"
    if scheme == "rope":
        rows = [f"{i // 2} {'cos' if i % 2 else 'sin'}" for i in range(paired)]
        values, down, unit = positional.rotary_waves(n, d_model).T, "pair", "sine and cosine of the angle"
        arrays["rotary_waves"] = values.T
    if scheme == "alibi":
        rows, values, unit = positions, positional.alibi_bias(n, slope), "bias"
        across, down = "key position", "query position"
        arrays["bias"] = values
    nearest = positional.closest(encoding) if scheme in ADDED else None
    finding = said.pattern(scheme, nearest, positional.frequencies(d_model)[: d_model // 2], slope)
    limit = 1 if scheme in ("sinusoidal", "rope") else None
    decimals = 3 if scheme == "alibi" else 2
    draw = partial(figures.heatmap, kind=figures.SIGNED, limit=limit, height=420, decimals=decimals)
    chart = draw(values, x=positions, y=rows, x_title=across, y_title=down, unit=unit)
    page.figure(chart, key="encoding", alt=f"{said.NAMES[scheme]}: {down} down, {across} across. {finding}")
    page.findings(finding)
    st.markdown(said.EXPLAINED[scheme])
    st.latex(said.equation(scheme, n, d_model, slope))
    if scheme in (*ADDED, "none"):
        arrays["encoding"] = encoding
    tables[said.NAMES[scheme]] = page.frame(values.astype(np.float32), rows, positions)


def draw_waves() -> None:
    """A few dimensions as curves over the positions."""
    settings.draw("pair")
    width = paired if scheme == "rope" else d_model
    pairs, lengths = sorted({0, settings.pair, (width - 1) // 2}), positional.wavelengths(d_model)[:width]
    steps = 1 if scheme == "table" else 8
    between = np.linspace(0, n - 1, steps * (n - 1) + 1)
    if scheme == "table":
        titles, finding = said.wave_titles(pairs, width), "Random numbers: no wave and no wavelength."
        names, values = ("even dimension", "odd dimension"), encoding
    else:
        titles, finding = said.wave_titles(pairs, width, lengths), said.turns(lengths, n)
        names, values = ("sine", "cosine"), positional.waves(between, d_model)
        arrays.update(wavelengths=lengths, between=between, curves=values)
        tables["Wavelengths"] = page.frame(lengths[:, None], dimensions[:width], ["positions"])
    chart = positional_figures.wave_panels(titles, between, values, steps=steps, names=names)
    page.figure(chart, key="waves", alt=f"{'; '.join(titles)}. {finding}")
    page.findings(finding)


def draw_pairs(values: np.ndarray, unit: str, across: str, down: str, findings: list[str]) -> None:
    """A number for every pair of positions, and its mean along each diagonal."""
    read = positional.by_offset(values)
    series = {"mean": (read.offsets, read.mean)}
    if scheme == "table":
        series |= {"largest": (read.offsets, read.high), "smallest": (read.offsets, read.low)}
    left, right = st.columns(2)
    with left:
        chart = positional_figures.pairs(values, x_title=across, y_title=down, unit=unit)
        page.figure(chart, key="pairs", alt=f"The {unit} of every pair of positions.")
    with right:
        chart = figures.lines(series, x_title=f"{across} − {down}", y_title=unit, height=420)
        page.figure(chart, key="by_offset", alt=" ".join(findings))
    page.findings(*findings)
    offsets, columns = [str(offset) for offset in read.offsets], ["mean", "smallest", "largest"]
    by_distance = np.stack([read.mean, read.low, read.high], axis=1)
    arrays.update(offset_mean=read.mean, offset_low=read.low, offset_high=read.high)
    tables[f"The {unit} by distance"] = page.frame(by_distance, offsets, columns)


def draw_slopes() -> None:
    """ALiBi: the slopes of the heads, and the bias of some of them by distance."""
    biases = {head: positional.alibi_bias(n, slopes[head - 1]) for head in sorted({1, settings.alibi_head, 8})}
    reads = {f"head {head}": positional.by_offset(bias) for head, bias in biases.items()}
    left, right = st.columns(2)
    with left:
        chart = positional_figures.slopes(slopes, settings.alibi_head - 1)
        page.figure(chart, key="slopes", alt=said.slopes(slopes))
    with right:
        series = {name: (read.offsets, read.mean) for name, read in reads.items()}
        chart = figures.lines(series, x_title="key position − query position", y_title="bias", markers=False)
        page.figure(chart, key="by_offset", alt="The bias falls in a straight line to both sides of distance 0.")
    page.findings(said.slopes(slopes))
    arrays["slopes"] = slopes


def draw_near_and_far() -> None:
    """How positions relate by how far they stand apart."""
    if scheme == "alibi":
        draw_slopes()
    elif scheme == "rope":
        st.markdown("The query of the first token and the key of the last one, placed at every pair of positions.")
        asked = attention.self_attention(x, w.w_q, w.w_k, w.w_v)
        scores = positional.rotary_scores(asked.queries[0], asked.keys[-1], n)
        findings = [said.score_by_offset(positional.by_offset(scores))]
        arrays["placed_scores"] = scores
        draw_pairs(scores, "score", "key position", "query position", findings)
        page.random_weights()
    else:
        st.markdown("The dot product of two encodings says how alike they are.")
        alike = positional.similarity(encoding)
        findings = said.near_and_far(positional.by_offset(alike), scheme, d_model)
        arrays["similarity"] = alike
        draw_pairs(alike, "similarity", "position", "other position", findings)


def draw_lengths() -> None:
    """The lengths of two kinds of vectors at each position."""
    if scheme == "rope":
        asked = attention.self_attention(x, w.w_q, w.w_k, w.w_v).queries
        turned = positional.norms(positional.rotate(asked))
        rows = {"query": positional.norms(asked), "query, turned": turned}
    else:
        rows = {"encoding": positional.norms(encoding), "embedding": positional.norms(x)}
    first, second = rows.values()
    findings = said.kept_lengths(first, second) if scheme == "rope" else said.lengths(first, second, d_model)
    top = 1.1 * max(float(lengths.max()) for lengths in rows.values())
    series = {name: (np.arange(n), lengths) for name, lengths in rows.items()}
    chart = figures.lines(series, x_title="position", y_title="length", y_range=(0, top), height=320)
    page.figure(chart, key="norms", alt=" ".join(findings))
    page.findings(*findings)
    names = ("query_lengths", "turned_lengths") if scheme == "rope" else ("encoding_lengths", "embedding_lengths")
    arrays.update(zip(names, rows.values(), strict=True))
    tables["Lengths"] = page.frame(np.stack(list(rows.values()), axis=1), positions, list(rows))


def draw_shuffle() -> None:
    """The same words in two orders: do the outputs move with their tokens?"""
    settings.draw("permutation")
    words = settings.tokens or LESSON_WORDS
    if not settings.tokens:
        st.markdown("No sentence is typed, so here the lesson's *dog bites man* stands in.")
    order, rows = positional.permutation(settings.permutation, len(words), seed), embed(words, d_model)
    names = figures.token_names(words, len(words))
    shuffled = [names[place] for place in order]
    page.findings(f"Before: {', '.join(names)}", f"After: {', '.join(shuffled)}")
    if positional.changes_nothing(rows, order):
        page.findings(said.same_words(len(words)))
        return
    cases = {"No encoding, no mask": ("none", False)}
    if scheme != "none":
        settings.draw("causal")
        mask = "causal mask" if settings.causal else "no mask"
        cases[f"{said.NAMES[scheme]}, {mask}"] = (scheme, settings.causal)
    cases["No encoding, causal mask"] = ("none", True)
    attend = partial(positional.shuffle, rows, w.w_q, w.w_k, w.w_v, order, slope=slope)
    table = draws.position_table(len(words), d_model, seed)
    results = {name: attend(kind, table, causal=causal) for name, (kind, causal) in cases.items()}
    backwards = positional.changes_nothing(rows, order[::-1])
    for place, column in enumerate(page.columns(len(cases))):
        name, result = list(results.items())[place]
        finding = said.moved(result, shuffled, mirrored_alibi=cases[name] == ("alibi", False) and backwards)
        with column:
            st.markdown(f"**{name}**")
            chart = positional_figures.outputs(result, names, shuffled)
            page.figure(chart, key=f"shuffle_{place}", alt=f"{name}: outputs before and after. {finding}")
            page.findings(finding)
    page.random_weights()
    arrays.update(rows=rows, order=order)
    for result, name in zip(
        results.values(), ("plain", "chosen", "causal") if len(cases) > 2 else ("plain", "causal"), strict=True
    ):
        arrays.update({f"before_{name}": result.before, f"after_{name}": result.after, f"change_{name}": result.change})
    changes = np.stack([result.differences for result in results.values()], axis=1)
    as_text = np.vectorize(number)(changes)  # a column of numbers would show rounding errors as 0
    tables["Largest change of each token's output"] = page.frame(as_text, shuffled, list(cases))


def draw_where_am_i() -> None:
    """Positions read back from embedding + encoding, and how that goes with the width."""
    if scheme not in ADDED:
        st.markdown(said.NOTHING_TO_READ[scheme])
        return
    st.markdown(
        "The simplest way to read a position back: which encoding lies nearest to embedding + encoding? "
        f"The upright line marks the d_model chosen, {d_model}. Positions are counted from 0, tokens from 1."
    )
    recovered = positional.recover_positions(x, encoding)
    findings, widths = said.found(recovered, tokens), sorted({*WIDTHS, d_model})
    embedded = {width: embed(settings.tokens, width) for width in widths}
    shares = {
        said.NAMES[kind]: positional.shares_right(widths, embedded.__getitem__, partial(encode, kind)) for kind in ADDED
    } | {"Blind guess": np.full(len(widths), 1 / n)}
    left, right = st.columns(2)
    with left:
        page.figure(positional_figures.guesses(recovered.positions, tokens), key="guesses", alt=" ".join(findings))
    with right:
        chart = positional_figures.shares(widths, shares, d_model)
        page.figure(chart, key="shares", alt="The share of tokens that find their position, for widths from 2 to 128.")
    page.findings(*findings)
    now = {name: float(share[widths.index(d_model)]) for name, share in shares.items()}
    st.markdown(
        f"At d_model {d_model} the sines let {now[said.NAMES['sinusoidal']]:.0%} be found, "
        f"the random table {now[said.NAMES['table']]:.0%}. But a table does not say which "
        "positions are near each other, and it ends with its last row; sines go on for any length."
    )
    arrays.update(guessed=recovered.positions, widths=np.array(widths))
    arrays.update({f"shares_{kind}": shares[said.NAMES[kind]] for kind in ADDED})
    tables["Guessed positions"] = page.frame(recovered.positions[:, None], positions, ["guessed"])
    tables["Share right by width"] = page.frame(np.stack(list(shares.values())), list(shares), [str(v) for v in widths])


if page.section():
    settings.draw("scheme")
    settings.draw("alibi_head")
    draw_pattern()
if scheme in (*ADDED, "rope") and page.section("No waves" if scheme == "table" else "Waves"):
    draw_waves()
if scheme != "none" and page.section("Near and far"):
    draw_near_and_far()
if scheme in (*ADDED, "rope") and page.section("How long they are"):
    draw_lengths()
if page.section("Shuffle the words"):
    draw_shuffle()
if page.section("Where am I?"):
    draw_where_am_i()

predict.offer(lambda: questions.ask(settings, x, encoding, w, slope))

page.notice(*said.notices(scheme))
if not page.presenting():
    page.numbers(tables)
    page.take_away(settings, arrays, tables)
    page.source(*SOURCES[scheme], positional.attend_with_positions, positional.shuffle)
page.foot("positional_encoding")
