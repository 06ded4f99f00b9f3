"""The pictures of the page "Recurrence or all at once"."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from core.recurrence import Crossings, Timing
from ui import figures

Array = np.ndarray
Part = dict[str, Any]  # of a figure: a trace, an axis, a title

LINKS_UP_TO = 24  # tokens: beyond, the lines would be one grey area
_RNN, _ATTENTION = 0, 1  # the kinds of colour, dash and marker that `figures.lines` gives to its first and second curve


def dependencies(names: Sequence[str]) -> figures.Figure:
    """Which step computes which token, for a recurrent network and, below it, self-attention. Args: the tokens' names.

    Lines lead from what is needed to the result. Step 0 holds the tokens' own vectors, which are given. Attention's one
    step is drawn high enough to see what the last token needs; what the others need, which is as much, stands back.
    """
    n = len(names)
    tokens, given = range(1, n + 1), _given(figures.axis_names(names))
    links = [((t - 1, t - 1), (t, t)) for t in tokens[1:]]
    others: list[tuple[tuple[int, int], tuple[int, int]]] = []
    if n <= LINKS_UP_TO:
        links += [((t, 0), (t, t)) for t in tokens]
        others = [((key, 0), (query, 1)) for query in tokens[:-1] for key in tokens]
    into_last = [((key, 0), (n, 1)) for key in tokens]
    below = dict(xaxis="x2", yaxis="y2")
    token_axis = _token_axis(names, most=16)
    step_axis = dict(zeroline=False)
    figure = dict(
        data=[
            _links(links) | dict(name="needed for"),
            _links(others, width=0.75) | below | dict(opacity=min(0.5, 4 / n), showlegend=False),
            _links(into_last, width=2 if n <= LINKS_UP_TO else 0.75, colour=figures.COLOURS[_ATTENTION])
            | below
            | dict(name="for the last token", opacity=1 if n <= LINKS_UP_TO else 0.5),
            given | dict(name="given"),
            given | below | dict(showlegend=False),
            given | _computed(list(tokens), _RNN) | dict(name="computed by the RNN"),
            given | _computed([1] * n, _ATTENTION) | below | dict(name="by attention"),
        ],
        layout=dict(
            xaxis=token_axis | dict(anchor="y", showticklabels=False),
            xaxis2=token_axis | dict(anchor="y2", title="token"),
            yaxis=step_axis
            | dict(
                domain=[0.5, 1],
                range=[-0.06 * n - 0.2, 1.06 * n + 0.2],
                dtick=1 if n <= 5 else None,
                title="sequential step",
            ),
            yaxis2=step_axis | dict(domain=[0, 0.34], range=[-0.25, 1.25], dtick=1, anchor="x2"),
            annotations=[
                _title(f"RNN: {n} step{'s' if n > 1 else ''}", 0.5, 1),
                _title("Attention: 1 step", 0.5, 0.34),
            ],
            legend=dict(
                orientation="h",
                yref="container",
                y=0,
                yanchor="bottom",
                x=0,
                font=dict(size=figures.TICK_FONT),
                itemsizing="constant",
            ),
        ),
    )
    return figures.finish(figure, 470, bottom=116)


def multiply_adds(counts: Mapping[str, Array], lengths: range, crossings: Crossings, now: int) -> figures.Figure:
    """Multiply-adds against the length, both axes logarithmic, with the two crossings.

    Args:
        counts: from `core.recurrence.costs_by_length`, for these lengths. now: the length chosen.
    """
    curves = {
        "RNN": counts["rnn"],
        "attention, all of it": counts["attention"],
        "its projections": counts["projections"],
        "its mixing": counts["mixing"],
    }
    marks = [
        dict(
            type="scatter",
            x=[length],
            y=[int(counts["mixing"][lengths.index(length)])],
            name=f"{name} at n = {length}",
            mode="markers",
            marker=dict(symbol=symbol, size=15, color=figures.HIGHLIGHT, line=dict(color="white", width=1)),
            hovertemplate=f"{name}<br>n = %{{x}}<br>%{{y:,}} multiply-adds<extra></extra>",
        )
        for name, length, symbol in (
            ("mixing = RNN", crossings.rnn, "star"),
            ("mixing = projections", crossings.projections, "diamond"),
        )
    ]
    return _against_length(curves, lengths, now, "multiply-adds", 6, marks)


def steps_and_paths(counts: Mapping[str, Array], lengths: range, now: int) -> figures.Figure:
    """Sequential steps, longest path and entries of the attention map against the length; `multiply_adds` has the rest.

    From two tokens on, attention's steps and its longest path are the same number and one curve.
    """
    curves = {
        "RNN: steps": counts["rnn_steps"],
        "attention: steps, longest path": counts["attention_steps"],
        "RNN: longest path": counts["rnn_path"],
        "attention: map entries": counts["weights"],
    }
    return _against_length(curves, lengths, now, "number", 4)


def times(timings: Sequence[Timing]) -> figures.Figure:
    """Measured milliseconds against the length, both axes logarithmic."""
    lengths = np.array([timing.seq_len for timing in timings])
    figure = figures.lines(
        {
            "RNN": (lengths, 1e3 * np.array([timing.rnn for timing in timings])),
            "self-attention": (lengths, 1e3 * np.array([timing.attention for timing in timings])),
        },
        x_title="sequence length n",
        y_title="milliseconds",
        log_x=True,
        log_y=True,
    )
    for trace, name in zip(figure.spec["data"], ("rnn", "attention"), strict=True):
        median, ends = trace["y"], 1e3 * np.array([getattr(timing, f"{name}_range") for timing in timings])
        trace["error_y"] = dict(array=ends[:, 1] - median, arrayminus=median - ends[:, 0], thickness=1.5)
    largest = max(max(timing.rnn_range[1], timing.attention_range[1]) for timing in timings)
    smallest = min(min(timing.rnn_range[0], timing.attention_range[0]) for timing in timings)
    layout = figure.spec["layout"]
    layout["xaxis"] |= dict(tickvals=lengths.tolist(), ticktext=[f"{length:,}" for length in lengths])
    layout["yaxis"] |= _decades([1e3 * smallest, 1e3 * largest])
    return figure


def memory(reach: Array, weights: Array, names: Sequence[str]) -> figures.Figure:
    """What the last state answers to each token (logarithmic), above the last token's attention weights (linear).

    Norms that are 0 have no place on a logarithmic axis and are left out. They go over the wire in full precision:
    float32 would end at 1e-45.
    """
    n = len(names)
    places, full_names = np.arange(1, n + 1), figures.axis_names(names)
    token_axis = _token_axis(names, most=16)
    figure = dict(
        data=[
            dict(
                type="scatter",
                x=places,
                y=np.where(reach > 0, reach, np.nan),
                mode="lines+markers" if n <= 40 else "lines",
                line=dict(color=figures.COLOURS[_RNN], dash=figures.DASHES[_RNN], width=3),
                marker=dict(symbol=figures.MARKERS[_RNN], size=9),
                customdata=full_names,
                hovertemplate="token %{customdata}<br>norm %{y:.3g}<extra></extra>",
            ),
            dict(
                type="bar",
                xaxis="x2",
                yaxis="y2",
                x=places,
                y=weights.astype(np.float32),
                marker=dict(color=figures.COLOURS[_ATTENTION], line=dict(width=0)),
                texttemplate="%{y:.2f}" if n <= figures.CELL_TEXT_UP_TO else None,
                textposition="outside",
                cliponaxis=False,
                customdata=full_names,
                hovertemplate="token %{customdata}<br>weight %{y:.4g}<extra></extra>",
            ),
        ],
        layout=dict(
            xaxis=token_axis | dict(anchor="y"),
            xaxis2=token_axis | dict(anchor="y2", title="token"),
            yaxis=_decades(reach) | dict(domain=[0.57, 1], title="norm of ∂h<sub>T</sub>/∂x<sub>t</sub>"),
            yaxis2=dict(
                anchor="x2",
                domain=[0, 0.41],
                range=[0, 1.15 * float(weights.max())],
                title="weight",
            ),
            annotations=[
                _title("RNN: what the last state depends on", 0.5, 1),
                _title("Attention: weights of the last token", 0.5, 0.41),
            ],
            showlegend=False,
        ),
    )
    return figures.finish(figure, 520)


def _title(text: str, x: float, y: float) -> Part:
    """The title of one panel, above it."""
    return dict(text=text, x=x, y=y, xref="paper", yref="paper", xanchor="center", yanchor="bottom", showarrow=False)


def _links(
    links: Iterable[tuple[tuple[int, int], tuple[int, int]]], width: float = 1.5, colour: str = figures.MUTED
) -> Part:
    """One trace of separate lines, each from (token, step) to (token, step)."""
    points = [point for start, end in links for point in (start, end, (None, None))]
    return dict(
        type="scatter",
        x=[x for x, _ in points],
        y=[y for _, y in points],
        mode="lines",
        line=dict(color=colour, width=width),
        hoverinfo="skip",
    )


def _given(full_names: Sequence[str]) -> Part:
    """The tokens at step 0."""
    n = len(full_names)
    return dict(
        type="scatter",
        x=list(range(1, n + 1)),
        y=[0] * n,
        mode="markers",
        marker=dict(symbol="circle-open", size=_mark_size(n), color=figures.MUTED, line=dict(width=2)),
        customdata=full_names,
        hovertemplate="token %{customdata}<br>its vector is given<extra></extra>",
    )


def _computed(steps: Sequence[int], kind: int) -> Part:
    """What differs where the tokens are computed, each at its step."""
    return dict(
        y=steps,
        marker=dict(symbol=figures.MARKERS[kind], size=_mark_size(len(steps)), color=figures.COLOURS[kind]),
        hovertemplate="token %{customdata}<br>computed at step %{y}<extra></extra>",
    )


def _mark_size(n: int) -> int:
    return 13 if n <= 12 else 7 if n <= LINKS_UP_TO else 5 if n <= 64 else 4


def _token_axis(names: Sequence[str], most: int) -> Part:
    """A numeric axis from token 1 on, labelled with at most `most` short names: repeated words stay apart."""
    shown = range(0, len(names), -(-len(names) // most))
    return dict(
        tickmode="array",
        tickvals=[place + 1 for place in shown],
        ticktext=[figures.escape(figures.shorten(names[place], 10)) for place in shown],
        range=[0.5 - 0.02 * len(names), len(names) + 0.5 + 0.02 * len(names)],
        showgrid=False,
        zeroline=False,
    )


def _against_length(
    curves: Mapping[str, Array], lengths: range, now: int, y_title: str, legend_lines: int, marks: Sequence[Part] = ()
) -> figures.Figure:
    """Counts against the length, both axes logarithmic; powers of two are labelled and the length chosen is marked."""
    powers = [2**i for i in range(12) if lengths[0] <= 2**i <= lengths[-1]]
    data = [
        dict(
            type="scatter",
            x=np.array(lengths, dtype=np.int16),
            y=counts.astype(np.float32),
            name=name,
            mode="lines",
            line=dict(color=figures.COLOURS[kind], dash=figures.DASHES[kind], width=3),
            hovertemplate=f"n = %{{x}}<br>%{{y:,}}<extra>{name}</extra>",
        )
        for kind, (name, counts) in enumerate(curves.items())
    ]
    first, last = np.log10(min(now, lengths[0])), np.log10(lengths[-1])
    layout = dict(
        xaxis=dict(
            type="log",
            title="sequence length n",
            tickvals=powers,
            ticktext=[str(power) for power in powers],
            range=[first - 0.03, last + 0.03],
        ),
        yaxis=_decades(np.concatenate([*curves.values()])) | dict(title=y_title),
        legend=dict(orientation="h", y=1.02, yanchor="bottom", x=0),
        shapes=[
            dict(type="line", x0=now, x1=now, y0=0, y1=1, yref="paper", line=dict(color=figures.MUTED, dash="dot"))
        ],
        annotations=[
            dict(
                text=f"n = {now}",
                x=np.log10(now),
                xanchor="right" if np.log10(now) > (first + last) / 2 else "left",
                y=1,
                yref="paper",
                yanchor="top",
                showarrow=False,
                font=dict(size=figures.TICK_FONT),
            )
        ],
    )
    return figures.finish(dict(data=[*data, *marks], layout=layout), 460, top=figures.legend_above(legend_lines))


def _decades(values: Array | Sequence[float]) -> Part:
    """A logarithmic axis over whole decades around the positive ones of these values, with at most 7 labels."""
    positive = np.asarray(values)[np.asarray(values) > 0]
    low, high = int(np.floor(np.log10(positive.min()))), int(np.ceil(np.log10(positive.max())))
    high = max(high, low + 1)
    return dict(
        type="log",
        range=[low - 0.1, high + 0.1],
        dtick=-(-(high - low) // 6),
        exponentformat="power",
    )
