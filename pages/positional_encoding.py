"""Positional encoding: what the schemes add or turn, how alike positions are, and what order changes."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
import streamlit as st

from core import attention, draws, positional
from ui import controls, figures, page, positional_figures, positional_shares, predict
from ui import positional_words as said
from ui.control_kinds import Settings
from ui.figure_tables import four_digits
from ui.page_controls import ADDED, CONTROLS
from ui.questions import positional_encoding as questions

LESSON_WORDS = ("dog", "bites", "man")
SLOPES = positional.alibi_slopes(8)
STEPS = 4  # from one position to the next, of the points that a wave is drawn through
SOURCES = {
    "none": (),
    "sinusoidal": (positional.sinusoidal, positional.waves, positional.frequencies, positional.recover_positions),
    "table": (draws.position_table, positional.recover_positions),
    "rope": (positional.rotate, positional.frequencies, positional.rotary_scores),
    "alibi": (positional.alibi_slopes, positional.alibi_bias),
}


@dataclass
class Shown:
    """What the page shows, from its settings: each computed when a part first asks for it.

    n is the number of tokens, d the model width.
    """

    settings: Settings

    @cached_property
    def x(self) -> np.ndarray:
        """(n, d) The embeddings."""
        return self.embed(self.settings.tokens)

    def embed(self, words: tuple[str, ...]) -> np.ndarray:
        """The embeddings of words, or of random tokens where there are none."""
        s = self.settings
        return positional_shares.embed(words, s.n_tokens, s.seed, s.embedding_scale, s.d_model)

    @cached_property
    def encoding(self) -> np.ndarray:
        """(n, d) What the scheme adds to them."""
        s = self.settings
        return positional_shares.encode(s.scheme, s.n_tokens, s.seed, s.d_model)

    @cached_property
    def w(self) -> draws.AttentionWeights:
        return draws.attention_weights(self.settings.d_model, self.settings.seed, 0.3)

    @cached_property
    def slope(self) -> float:
        """Of the chosen head, for ALiBi."""
        return float(SLOPES[self.settings.alibi_head - 1])

    @cached_property
    def tokens(self) -> list[str]:
        """Their names."""
        return figures.token_names(self.settings.tokens, self.settings.n_tokens)

    @cached_property
    def positions(self) -> list[str]:
        """0 to n - 1."""
        return [str(position) for position in range(self.settings.n_tokens)]

    @cached_property
    def pattern(self) -> np.ndarray:
        """What the scheme does at each position (row): (n, d), for ALiBi (n, n)."""
        n, d_model = self.settings.n_tokens, self.settings.d_model
        match self.settings.scheme:
            case "rope":
                return positional.rotary_waves(n, d_model)
            case "alibi":
                return positional.alibi_bias(n, self.slope)
            case _:
                return self.encoding

    @cached_property
    def wavelengths(self) -> np.ndarray:
        """Of the dimensions that are waves."""
        return positional.wavelengths(self.settings.d_model)[: wave_width(self.settings)]

    @cached_property
    def asked(self) -> attention.Attention:
        """Self-attention of the embeddings, from which RoPE takes queries and keys."""
        return attention.self_attention(self.x, self.w.w_q, self.w.w_k, self.w.w_v)

    @cached_property
    def related(self) -> np.ndarray:
        """(n, n) A number for every pair of positions: a score for RoPE, otherwise how alike their encodings are."""
        if self.settings.scheme == "rope":
            return positional.rotary_scores(self.asked.queries[0], self.asked.keys[-1], self.settings.n_tokens)
        return positional.similarity(self.encoding)

    @cached_property
    def by_offset(self) -> positional.ByOffset:
        return positional.by_offset(self.related)

    @cached_property
    def lengths(self) -> dict[str, np.ndarray]:
        """(n,) each: of what the scheme changes, and of what it comes from or is added to."""
        if self.settings.scheme == "rope":
            asked = self.asked.queries
            return {"query": positional.norms(asked), "query, turned": positional.norms(positional.rotate(asked))}
        return {"encoding": positional.norms(self.encoding), "embedding": positional.norms(self.x)}

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Those that change places."""
        return self.settings.tokens or LESSON_WORDS

    @cached_property
    def rows(self) -> np.ndarray:
        """Their embeddings."""
        return self.embed(self.words)

    @cached_property
    def order(self) -> np.ndarray:
        """The old place of the word at each new place."""
        return positional.permutation(self.settings.permutation, len(self.words), self.settings.seed)

    @cached_property
    def shuffled(self) -> list[str]:
        """The names of the words in their new order."""
        names = figures.token_names(self.words, len(self.words))
        return [names[place] for place in self.order]

    @cached_property
    def cases(self) -> dict[str, tuple[str, bool]]:
        """What is shuffled, by name: scheme, and whether there is a causal mask."""
        scheme, causal = self.settings.scheme, self.settings.causal
        mask = "causal mask" if causal else "no mask"
        chosen = {} if scheme == "none" else {f"{said.NAMES[scheme]}, {mask}": (scheme, causal)}
        return {"No encoding, no mask": ("none", False)} | chosen | {"No encoding, causal mask": ("none", True)}

    @cached_property
    def shuffles(self) -> dict[str, positional.Shuffle]:
        """The outputs of each case in both orders; none where the new order changes nothing."""
        w, table = self.w, draws.position_table(len(self.words), self.settings.d_model, self.settings.seed)
        if positional.changes_nothing(self.rows, self.order):
            return {}
        attend = partial(positional.shuffle, self.rows, w.w_q, w.w_k, w.w_v, self.order, slope=self.slope)
        return {name: attend(kind, table, causal=causal) for name, (kind, causal) in self.cases.items()}

    @cached_property
    def recovered(self) -> positional.Recovered:
        """The positions that are read back."""
        return positional.recover_positions(self.x, self.encoding)

    @cached_property
    def widths(self) -> list[int]:
        """For which the shares are shown."""
        return positional_shares.widths(self.settings.d_model)

    @cached_property
    def shares(self) -> dict[str, np.ndarray]:
        """The shares of positions that are read back right, by scheme, for each width."""
        s = self.settings
        return positional_shares.shares(s.tokens, s.n_tokens, s.d_model, s.seed, s.embedding_scale)


def wave_width(settings: Settings) -> int:
    """How many dimensions there are to draw: RoPE turns all but the last of an odd width."""
    return 2 * (settings.d_model // 2) if settings.scheme == "rope" else settings.d_model


def pattern_rows(settings: Settings, shown: Shown) -> list[str]:
    """What stands in the rows of the first picture: pairs of dimensions, positions, or dimensions."""
    match settings.scheme:
        case "rope":
            return [f"{i // 2} {'cos' if i % 2 else 'sin'}" for i in range(wave_width(settings))]
        case "alibi":
            return shown.positions
        case _:
            return [str(i) for i in range(settings.d_model)]


def the_pattern(settings: Settings, shown: Shown) -> None:
    """The first picture: the lesson's heatmap, or what stands in its place."""
    if not page.section():
        return
    settings.draw("scheme")
    settings.draw("alibi_head")
    scheme = settings.scheme
    across, down, unit = "position", "dimension", "value"
    if scheme == "rope":
        down, unit = "pair", "sine and cosine of the angle"
    if scheme == "alibi":
        across, down, unit = "key position", "query position", "bias"
    nearest = positional.closest(shown.encoding) if scheme in ADDED else None
    frequencies = positional.frequencies(settings.d_model)[: settings.d_model // 2]
    finding = said.pattern(scheme, nearest, frequencies, shown.slope)
    chart = figures.heatmap(
        shown.pattern.T,  # that of ALiBi is its own mirror image
        x=shown.positions,
        y=pattern_rows(settings, shown),
        x_title=across,
        y_title=down,
        unit=unit,
        kind=figures.SIGNED,
        limit=1 if scheme in ("sinusoidal", "rope") else None,
        height=420,
        decimals=3 if scheme == "alibi" else 2,
    )
    page.figure(chart, key="encoding", alt=f"{said.NAMES[scheme]}: {down} down, {across} across. {finding}")
    page.findings(finding)


def the_equation(settings: Settings, shown: Shown) -> None:
    """What the picture shows, and its formula."""
    if not page.goes_on():
        return
    scheme = settings.scheme
    st.markdown(said.EXPLAINED[scheme])
    st.latex(said.equation(scheme, settings.n_tokens, settings.d_model, shown.slope))
    if scheme in ("sinusoidal", "rope"):
        st.caption("Positions p and pairs i of the formula begin at 0, so here dimensions are counted from 0 too.")


def waves(settings: Settings, shown: Shown) -> None:
    """A few dimensions as curves over the positions."""
    heading = "No waves" if settings.scheme == "table" else "Waves"
    if settings.scheme not in (*ADDED, "rope") or not page.section(heading):
        return
    settings.draw("pair")
    n, d_model, width = settings.n_tokens, settings.d_model, wave_width(settings)
    last = (width - 1) // 2
    pairs = sorted({0, settings.pair, last})
    if settings.scheme == "table":
        titles, finding = said.wave_titles(pairs, width), "Random numbers: no wave and no wavelength."
        draw = partial(positional_figures.wave_panels, steps=1, names=("even dimension", "odd dimension"))
        curves, largest = dict(enumerate(shown.encoding.T)), max(1.0, float(np.abs(shown.encoding).max()))
    else:
        titles, finding = said.wave_titles(pairs, width, shown.wavelengths), said.turns(shown.wavelengths, n)
        draw = partial(positional_figures.wave_panels, steps=STEPS, names=("sine", "cosine"))
        curves, largest = {}, 1.0
        for pair in pairs:  # of the many dimensions only those that are drawn
            angles = between(n) * positional.frequencies(d_model)[pair]
            curves |= {2 * pair + odd: curve for odd, curve in enumerate(positional.waves(angles, 2).T)}
    chart = draw(titles, curves, largest=largest)
    page.figure(chart, key="waves", alt=f"{'; '.join(titles)}. {finding}")
    page.findings(finding, said.third_pair(settings.pair, last))


def between(n: int) -> np.ndarray:
    """The points that a wave is drawn through: from position 0 to n - 1."""
    return np.linspace(0, n - 1, STEPS * (n - 1) + 1)


def draw_pairs(settings: Settings, shown: Shown, findings: list[str]) -> None:
    """A number for every pair of positions, and its mean along each diagonal."""
    read, (unit, across, down) = shown.by_offset, pair_titles(settings)
    series, lines = {"mean": (read.offsets, read.mean)}, 1
    if settings.scheme == "table":
        lines = 2
        series |= {"largest": (read.offsets, read.high), "smallest": (read.offsets, read.low)}
    left, right = st.columns(2)
    with left:
        chart = positional_figures.pairs(shown.related, x_title=across, y_title=down, unit=unit)
        page.figure(chart, key="pairs", alt=f"The {unit} of every pair of positions.")
    with right:
        chart = figures.lines(series, x_title=f"{across} − {down}", y_title=unit, height=420, legend_lines=lines)
        page.figure(chart, key="by_offset", alt=" ".join(findings))
    page.findings(*findings)


def pair_titles(settings: Settings) -> tuple[str, str, str]:
    """What there is for every pair of positions, and what stands across and down."""
    if settings.scheme == "rope":
        return "score", "key position", "query position"
    return "similarity", "position", "other position"


def draw_slopes(settings: Settings) -> None:
    """ALiBi: the slopes of the heads, and the bias of some of them by distance."""
    n, heads = settings.n_tokens, sorted({1, settings.alibi_head, 8})
    reads = {f"head {head}": positional.by_offset(positional.alibi_bias(n, SLOPES[head - 1])) for head in heads}
    left, right = st.columns(2)
    with left:
        chart = positional_figures.slopes(SLOPES, settings.alibi_head - 1)
        page.figure(chart, key="slopes", alt=said.slopes(SLOPES))
    with right:
        series = {name: (read.offsets, read.mean) for name, read in reads.items()}
        chart = figures.lines(series, x_title="key position − query position", y_title="bias", markers=False)
        page.figure(chart, key="by_offset", alt="The bias falls in a straight line to both sides of distance 0.")
    page.findings(said.slopes(SLOPES), said.drawn_heads(settings.alibi_head))


def near_and_far(settings: Settings, shown: Shown) -> None:
    """How positions relate by how far they stand apart."""
    if settings.scheme == "none" or not page.section("Near and far"):
        return
    if settings.scheme == "alibi":
        draw_slopes(settings)
    elif settings.scheme == "rope":
        st.markdown("The query of the first token and the key of the last one, placed at every pair of positions.")
        draw_pairs(settings, shown, [said.score_by_offset(shown.by_offset)])
        st.caption("Random weights: the scores mean nothing yet. Where they are alike is what to see.")
    else:
        st.markdown("The dot product of two encodings says how alike they are.")
        draw_pairs(settings, shown, said.near_and_far(shown.by_offset, settings.scheme, settings.d_model))


def lengths_of_vectors(settings: Settings, shown: Shown) -> None:
    """The lengths of two kinds of vectors at each position."""
    if settings.scheme not in (*ADDED, "rope") or not page.section("How long they are"):
        return
    rope, (first, second) = settings.scheme == "rope", shown.lengths.values()
    findings = said.kept_lengths(first, second) if rope else said.lengths(first, second, settings.d_model)
    top = 1.1 * max(float(first.max()), float(second.max()))
    series = {name: (np.arange(settings.n_tokens), lengths) for name, lengths in shown.lengths.items()}
    chart = figures.lines(series, x_title="position", y_title="length", y_range=(0, top), height=320)
    page.figure(chart, key="norms", alt=" ".join(findings))
    page.findings(*findings)


def shuffled_words(settings: Settings, shown: Shown) -> None:
    """The same words in two orders: do the outputs move with their tokens?"""
    if not page.section("Shuffle the words"):
        return
    settings.draw("permutation")
    if not settings.tokens:
        st.markdown("No sentence is typed, so here the lesson's *dog bites man* stands in.")
    names, rows = figures.token_names(shown.words, len(shown.words)), shown.rows
    page.findings(f"Before: {', '.join(names)}", f"After: {', '.join(shown.shuffled)}")
    if not shown.shuffles:
        page.findings(said.same_words(len(names)))
        return
    if settings.scheme != "none":
        settings.draw("causal")
    maps = [each for result in shown.shuffles.values() for each in (result.before, result.after)]
    limit = figures.colour_limit(maps, figures.SIGNED)  # one for all: the cases are compared with each other
    backwards = positional.changes_nothing(rows, shown.order[::-1])
    for place, (column, (name, result)) in enumerate(
        zip(page.columns(len(shown.shuffles)), shown.shuffles.items(), strict=True)
    ):
        mirrored = shown.cases[name] == ("alibi", False) and backwards
        finding = said.moved(result, shown.shuffled, shown.order, mirrored_alibi=mirrored)
        with column:
            st.markdown(f"**{name}**")
            chart = positional_figures.outputs(result, names, shown.shuffled, limit)
            page.figure(chart, key=f"shuffle_{place}", alt=f"{name}: outputs before and after. {finding}")
            page.findings(finding)
    st.caption(
        "Random weights: the outputs mean nothing yet. Whether the order changes them is what to see. All outputs "
        "share one colour scale. Each difference has its own; where it is rounding error at most, it has no colour."
    )


def where_am_i(settings: Settings, shown: Shown) -> None:
    """Positions read back from embedding + encoding, and how that goes with the width."""
    if not page.section("Where am I?"):
        return
    d_model = settings.d_model
    if settings.scheme not in ADDED:
        st.markdown(said.NOTHING_TO_READ[settings.scheme])
        return
    st.markdown(
        "The simplest way to read a position back: which encoding lies nearest to embedding + encoding? "
        f"The upright line marks the d_model chosen, {d_model}. Positions are counted from 0, tokens from 1."
    )
    findings, widths = said.found(shown.recovered, shown.tokens), shown.widths
    left, right = st.columns(2)
    with left:
        chart = positional_figures.guesses(shown.recovered.positions, shown.tokens)
        page.figure(chart, key="guesses", alt=" ".join(findings))
    with right:
        chart = positional_figures.shares(widths, named_shares(shown), d_model)
        page.figure(chart, key="shares", alt="The share of tokens that find their position, for widths from 2 to 128.")
    page.findings(*findings)
    now = {kind: float(share[widths.index(d_model)]) for kind, share in shown.shares.items()}
    st.markdown(
        f"At d_model {d_model} the sines let {now['sinusoidal']:.0%} be found, "
        f"the random table {now['table']:.0%}. But a random table does not say which positions are near each other "
        "(a trained one often does), and every table ends with its last row; sines go on for any length."
    )


def named_shares(shown: Shown) -> dict[str, np.ndarray]:
    """The shares of both schemes, and what a blind guess would have."""
    blind = np.full(len(shown.widths), 1 / shown.settings.n_tokens)
    return {said.NAMES[kind]: share for kind, share in shown.shares.items()} | {"Blind guess": blind}


def below(settings: Settings, shown: Shown) -> None:
    """Questions, what to notice, and all numbers."""
    predict.offer(lambda: questions.ask(settings, shown.x, shown.encoding, shown.w, shown.slope))
    page.notice(*said.notices(settings.scheme))
    if page.presenting():
        return
    page.numbers(partial(tables, settings, shown))
    page.take_away(settings, partial(arrays, settings, shown), partial(tables, settings, shown))
    page.source(*SOURCES[settings.scheme], positional.attend_with_positions, positional.shuffle)


def tables(settings: Settings, shown: Shown) -> dict[str, page.Table]:
    """The numbers behind the pictures. Tall rather than wide: a table costs time by the column."""
    scheme, frame, positions = settings.scheme, page.frame, shown.positions
    made = {said.NAMES[scheme]: frame(shown.pattern.T.astype(np.float32), pattern_rows(settings, shown), positions)}
    if scheme in ("sinusoidal", "rope"):
        dimensions = [str(i) for i in range(wave_width(settings))]
        made["Wavelengths"] = frame(shown.wavelengths[:, None], dimensions, ["positions"])
    if scheme in (*ADDED, "rope"):
        read, unit = shown.by_offset, pair_titles(settings)[0]
        values, offsets = np.stack([read.mean, read.low, read.high], axis=1), [str(each) for each in read.offsets]
        made[f"The {unit} by distance"] = frame(values, offsets, ["mean", "smallest", "largest"])
        made["Lengths"] = frame(np.stack([*shown.lengths.values()], axis=1), positions, [*shown.lengths])
    if shown.shuffles:
        made["Largest change of each token's output"] = partial(changes, shown)
    if scheme in ADDED:
        shares, widths = named_shares(shown), [str(width) for width in shown.widths]
        made["Guessed positions"] = frame(shown.recovered.positions[:, None], positions, ["guessed"])
        made["Share right by width"] = frame(np.stack([*shares.values()]), [*shares], widths)
    return made


def changes(shown: Shown) -> pd.DataFrame:
    """The largest change of each token's output, case by case."""
    columns = {name: result.differences for name, result in shown.shuffles.items()}
    return four_digits(pd.DataFrame(columns, index=shown.shuffled))


def arrays(settings: Settings, shown: Shown) -> dict[str, np.ndarray]:
    """All arrays, under the names that they have in the script."""
    scheme, w = settings.scheme, shown.w
    made = {"x": shown.x, "w_q": w.w_q, "w_k": w.w_k, "w_v": w.w_v}
    made[{"rope": "rotary_waves", "alibi": "bias"}.get(scheme, "encoding")] = shown.pattern
    if scheme in ("sinusoidal", "rope"):
        points = between(settings.n_tokens)
        made |= dict(wavelengths=shown.wavelengths, between=points, curves=positional.waves(points, settings.d_model))
    if scheme == "alibi":
        made["slopes"] = SLOPES
    if scheme in (*ADDED, "rope"):
        read = shown.by_offset
        made["placed_scores" if scheme == "rope" else "similarity"] = shown.related
        made |= dict(offset_mean=read.mean, offset_low=read.low, offset_high=read.high)
        lengths = ("query_lengths", "turned_lengths") if scheme == "rope" else ("encoding_lengths", "embedding_lengths")
        made |= zip(lengths, shown.lengths.values(), strict=True)
    if shown.shuffles:
        made |= dict(rows=shown.rows, order=shown.order)
        cases = ("plain", "causal") if scheme == "none" else ("plain", "chosen", "causal")
        for name, result in zip(cases, shown.shuffles.values(), strict=True):
            made |= {f"before_{name}": result.before, f"after_{name}": result.after, f"change_{name}": result.change}
    if scheme in ADDED:
        made |= dict(guessed=shown.recovered.positions, widths=np.array(shown.widths))
        made |= {f"shares_{kind}": share for kind, share in shown.shares.items()}
    return made


page.start(
    "positional_encoding",
    "Attention by itself does not know who stands where. Here are ways to tell it, and what changes when it knows.",
)
controls.open_page("positional_encoding", CONTROLS["positional_encoding"], in_parts=True)
page.parts(
    Shown,
    the_pattern,
    the_equation,
    waves,
    near_and_far,
    lengths_of_vectors,
    shuffled_words,
    where_am_i,
    below=below,
    unmoved={
        the_equation: {"pair", "embedding_scale"},
        waves: {"embedding_scale"},
        near_and_far: {"pair"},
        lengths_of_vectors: {"pair"},
        shuffled_words: {"pair", "seq_len"},  # the lesson's three words, where no sentence says how many there are
        where_am_i: {"pair"},
    },
)
page.foot("positional_encoding")
