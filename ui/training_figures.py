"""Figures of the training lab: the maps of all heads on one example, and the curves of one or two runs."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np

from core.tasks import TASKS
from ui import figures
from ui.training_runs import SNAPSHOTS, Run

Array = np.ndarray

_LETTERS_ACROSS = 36  # up to so many stand side by side under the maps; beyond, only the marked one, or first and last
_BESIDE, _ABOVE = 1, 3  # cells left free between two maps, and above each for its title
_SIGNS = ("circle-open", "square-open")  # of the first and the second question


def head_maps(
    weights: Array, titles: Sequence[str], letters: Sequence[str], sources: Array, marked: int | None
) -> figures.Figure:
    """What every head looks at in one sequence, on one colour scale from 0 to 1; signs where the answers stand.

    One trace, in which the maps stand side by side with empty cells between them: quickly drawn again.

    Args:
        weights: (layers, heads, n, n). titles: one for each, layer by layer, of one or two lines. letters: n names.
        sources: (n, questions) where each answer stands, -1 where none is asked. marked: a place from 0, if any.
    """
    layers, heads, n = weights.shape[:3]
    across = layers if heads == 1 else 2 if heads in (2, 4) else 3 if heads <= 6 else 4
    rows = -(-heads // across)  # of one layer; the last one need not be full
    down = 1 if heads == 1 else layers * rows
    wide, tall = n + _BESIDE, n + _ABOVE
    layer, head = np.indices((layers, heads)).reshape(2, -1)
    row, column = (0 * layer, layer) if heads == 1 else (layer * rows + head // across, head % across)
    tiles = np.full((down, across, tall, wide), np.nan, dtype=np.float32)
    tiles[row, column, _ABOVE:, :n] = weights.reshape(-1, n, n)
    places = np.zeros((down, across, tall, wide, 2), dtype=np.uint8)  # of query and key, from 1
    places[..., 0], places[..., 1] = np.indices((tall, wide)) + np.array([1 - _ABOVE, 1])[:, None, None]
    left, top = np.arange(across) * wide, np.arange(down) * tall + _ABOVE  # of each map, in cells
    maps = dict(
        type="heatmap",
        z=tiles.swapaxes(1, 2).reshape(down * tall, across * wide)[:, :-_BESIDE],
        customdata=places.swapaxes(1, 2).reshape(down * tall, across * wide, 2)[:, :-_BESIDE],
        coloraxis="coloraxis",
        hoverongaps=False,
        hovertemplate="letter %{customdata[0]} looks at letter %{customdata[1]}<br>weight %{z:.4f}<extra></extra>",
        xgap=1,
        ygap=1,
    )
    names = dict(
        type="scatter",
        mode="text",
        x=left[column] + (n - 1) / 2,
        y=top[row] - _ABOVE / 2 - 0.25,
        text=list(titles),
        cliponaxis=False,
        hoverinfo="skip",
    )
    under = [f"<b>{letter}</b><br>▲" if place == marked else letter for place, letter in enumerate(letters)]
    beside = [f"<b>▶ {letter}</b>" if place == marked else letter for place, letter in enumerate(letters)]
    kept = range(n) if across * n <= _LETTERS_ACROSS else [0, n - 1] if marked is None else [marked]
    layout = dict(
        xaxis=_ticks("letter looked at", left, under, kept) | dict(range=[-0.5, across * wide - 1.5]),
        yaxis=_ticks("letter that asks", top, beside, range(n)) | dict(range=[down * tall - 0.5, -0.5]),
        coloraxis=_colours(),
        showlegend=False,
    )
    data = [maps, names, *_signs(sources, left[column], top[row])]
    return figures.finish(dict(data=data, layout=layout), 150 + 290 * down, top=94, bottom=106)


def _signs(sources: Array, left: Array, top: Array) -> list[dict[str, Any]]:
    """One trace for each question: a sign in every map where its answers stand. Args: left, top of each map."""
    traces = []
    for symbol, places in zip(_SIGNS, sources.T, strict=False):
        asked = np.flatnonzero(places >= 0)
        traces.append(
            dict(
                type="scatter",
                mode="markers",
                x=(left[:, None] + places[asked]).ravel(),
                y=(top[:, None] + asked).ravel(),
                marker=dict(symbol=symbol, size=7, color="#FFFFFF", line=dict(width=1.5)),
                hoverinfo="skip",
            )
        )
    return traces


def _ticks(title: str, starts: Array, texts: Sequence[str], kept: Sequence[int]) -> dict[str, Any]:
    return dict(
        title=title,
        tickvals=[start + place for start in starts.tolist() for place in kept],
        ticktext=[texts[place] for _ in starts for place in kept],
        tickangle=0,
        showgrid=False,
        zeroline=False,
    )


def _colours() -> dict[str, Any]:
    bar = dict(title=dict(text="weight", side="top"), orientation="h", y=0.999, yanchor="bottom", thickness=12)
    bar["outlinewidth"] = 0
    return dict(colorscale=figures.SHARES, cmin=0, cmax=1, colorbar=bar)


def loss_curves(runs: Mapping[str, Run], shown: int) -> figures.Figure:
    """Loss against steps, run by run, up to where each has come; dotted what giving every letter the same chance has.

    Args:
        runs: by name, all of one task. shown: the step that is shown elsewhere.
    """
    curves = []
    for place, (name, run) in enumerate(runs.items()):
        hover = f"loss %{{y:.4g}}<extra>{name}</extra>"
        losses = np.array(run.losses)
        curves.append(_curve(name, np.arange(len(losses)), losses, place, place, hover))
    settings = next(iter(runs.values())).settings
    # A large learning rate gives losses beside which those of other steps would all look like 0.
    scale = dict(type="log") if max(max(run.losses) for run in runs.values()) > 20 else dict(rangemode="tozero")
    return _against_steps(curves, "loss", log(TASKS[settings.task].letters), settings.steps, shown, scale)


def accuracy_curves(runs: Mapping[str, Run], shown: int) -> figures.Figure:
    """Accuracy of each question against steps, run by run. Args: as in `loss_curves`."""
    curves = []
    settings = next(iter(runs.values())).settings
    questions = TASKS[settings.task].questions
    for place, (name, run) in enumerate(runs.items()):
        steps = np.array([each.step for each in run.snapshots])
        shares = np.array([each.accuracies for each in run.snapshots])
        for number, question in enumerate(questions):
            label = f"{question}, {name}" if len(runs) > 1 else question
            hover = f"%{{y:.1%}} right<extra>{label}</extra>"
            curves.append(_curve(label, steps, shares[:, number], len(questions) * place + number, place, hover))
    scale = dict(range=[-0.03, 1.05], tickformat=".0%")
    return _against_steps(curves, "right answers", 1 / TASKS[settings.task].letters, settings.steps, shown, scale)


def _curve(name: str, steps: Array, values: Array, kind: int, run: int, hover: str) -> dict[str, Any]:
    """A curve of the first or second run, the second dashed; with a marker at each point where they are few."""
    few = len(steps) <= SNAPSHOTS + 1
    return dict(
        type="scatter",
        x=steps,
        y=values.astype(np.float32),
        name=name,
        mode="lines+markers" if few else "lines",
        line=dict(color=figures.COLOURS[kind], dash=figures.DASHES[run], width=3 if few else 2),
        marker=dict(symbol=figures.MARKERS[kind], size=7),
        hovertemplate=f"step %{{x}}<br>{hover}",
    )


def _against_steps(
    curves: list[dict[str, Any]], title: str, guess: float, steps: int, shown: int, scale: dict[str, Any]
) -> figures.Figure:
    """Curves over all steps of the run, with the level of guessing and the step that is shown elsewhere."""
    guessing = dict(type="line", x0=0, x1=1, xref="paper", y0=guess, y1=guess)
    here = dict(type="line", x0=shown, x1=shown, y0=0, y1=1, yref="paper", line=dict(color=figures.MUTED, width=2))
    guessing["line"] = dict(color=figures.MUTED, width=2, dash="dot")
    told = dict(text="a blind guess", x=0.99, xref="paper", xanchor="right", showarrow=False)
    told["yanchor"] = "top" if scale.get("tickformat") else "bottom"  # shares: below the curves
    told |= dict(y=np.log10(guess) if scale.get("type") == "log" else guess, font=dict(size=figures.TICK_FONT))
    layout = dict(
        xaxis=dict(title="steps", range=[-0.02 * steps, 1.02 * steps]),
        yaxis=dict(title=title) | scale,
        legend=dict(orientation="h", y=1.02, yanchor="bottom", x=0),
        shapes=[guessing, here],
        annotations=[told],
        showlegend=True,
    )
    top = figures.legend_above(max(1, len(curves) - 1))  # two names fit side by side only where they are short
    return figures.finish(dict(data=curves, layout=layout), 280 + top, top=top)
