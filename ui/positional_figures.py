"""Figures of the page on positional encoding."""

from collections.abc import Mapping, Sequence

import numpy as np

from core.positional import Shuffle
from ui import figures
from ui.positional_words import ROUNDING

Array = np.ndarray

_PANEL, _GAP = 100, 46  # pixels
_BAR = 54  # pixels that a colour bar between two maps takes beside the gap
_FONT = dict(size=14)
_WIDTH_TICKS = (2, 4, 8, 16, 32, 64, 128)
_LEGEND = dict(orientation="h", y=1.02, yanchor="bottom", x=0, font=_FONT)


def wave_panels(
    panels: Mapping[str, Sequence[int]],
    curves: Mapping[int, Array],
    *,
    steps: int,
    largest: float,
    names: tuple[str, str],
) -> figures.Figure:
    """Dimensions against position, one panel above the other, with a dot at every whole position.

    Args:
        panels: title and dimensions of each panel: an even dimension, and the odd one after it if there is one.
        curves: of each dimension, (m,): from position 0 on, `steps` from one whole position to the next.
        largest: all axes reach as far as this number. names: what the even and the odd dimensions are called.
    """
    whole = np.arange(len(next(iter(curves.values())))) % steps == 0
    sizes = np.where(whole, 7 if np.count_nonzero(whole) <= 64 else 4, 0).astype(np.uint8)
    height = len(panels) * (_PANEL + _GAP) - _GAP
    end = 1.15 * largest
    traces, axes, titles = [], {}, []
    for place, (title, columns) in enumerate(panels.items()):
        axis = str(place + 1) if place else ""
        top = 1 - place * (_PANEL + _GAP) / height
        axes[f"yaxis{axis}"] = dict(domain=[max(0.0, top - _PANEL / height), top], range=[-end, end], nticks=4)
        titles.append(
            dict(text=title, x=0, y=top, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False)
            | dict(font=_FONT)  # they have to fit on a phone
        )
        for column in columns:
            odd = column % 2
            traces.append(
                dict(
                    type="scatter",
                    x0=0,
                    dx=1 / steps,
                    y=curves[column].astype(np.float32),
                    yaxis=f"y{axis}",
                    name=names[odd],
                    legendgroup=names[odd],
                    showlegend=place == 0,
                    mode="lines+markers",
                    line=dict(color=figures.COLOURS[odd], dash=figures.DASHES[odd], width=2),
                    marker=dict(symbol=figures.MARKERS[odd], size=sizes),
                    hovertemplate=f"position %{{x}}<br>dimension {column}<br>%{{y:.4f}}<extra></extra>",
                )
            )
    layout = dict(
        **axes,
        xaxis=dict(anchor=f"y{len(panels)}" if len(panels) > 1 else "y", title="position", tickfont=_FONT),
        annotations=titles,
        legend=dict(orientation="h", x=0, y=1, yref="container", yanchor="top", font=_FONT),
    )
    return figures.finish(dict(data=traces, layout=layout), height + 130, top=64)


def pairs(values: Array, *, x_title: str, y_title: str, unit: str) -> figures.Figure:
    """A signed number for every pair of positions, (n, n), on half a page."""
    names = [str(position) for position in range(len(values))]
    figure = figures.heatmap(
        values,
        x=names,
        y=names,
        x_title=x_title,
        y_title=y_title,
        unit=unit,
        kind=figures.SIGNED,
        height=420,
        share=1 / 2,
    )
    return figures.few_ticks(figure, names)


def slopes(values: Array, chosen: int) -> figures.Figure:
    """The slopes of ALiBi's heads, (heads,), with the chosen one striped."""
    names = [str(head) for head in range(1, len(values) + 1)]
    return figures.bars(values, names, x_title="head", y_title="slope", highlight=chosen, decimals=3, height=380)


def outputs(result: Shuffle, names: Sequence[str], shuffled: Sequence[str], limit: float) -> figures.Figure:
    """Outputs before and after the shuffle, and the difference token by token. Row = token.

    limit: the colour scale of the outputs ends there. The difference, which may be much smaller, has a scale of its
    own; but where it is rounding error alone it has that of the outputs, and so no colour.
    """
    maps = {"before": result.before, "after": result.after, "difference": result.change}
    n, d_model = result.before.shape
    panel = max(80, min(300, 24 * n))
    room = [panel, _GAP, panel, _GAP + _BAR, panel]  # from top to bottom, in pixels
    figure = figures.heatmap_grid(
        maps,
        x=[str(i) for i in range(d_model)],
        y=dict(zip(maps, (names, shuffled, shuffled), strict=True)),
        x_title="dimension",
        y_title="token",
        unit="output",
        kind=figures.SIGNED,
        limit=limit,
        height=sum(room) + 228,
    )
    few = [str(i) for i in sorted({0, (d_model - 1) // 2, d_model - 1})]  # more would not fit into a third of the page
    tops = [1 - sum(room[: 2 * place]) / sum(room) for place in range(3)]
    layout = figure.spec["layout"]
    for axis, top, title in zip(("yaxis", "yaxis2", "yaxis3"), tops, layout["annotations"], strict=True):
        layout[axis]["domain"] = [max(0.0, top - panel / sum(room)), top]
        title["y"] = top
    layout["xaxis3"] |= dict(tickvals=few, ticktext=few, tickangle=0)
    largest = float(result.differences.max())
    end = largest if largest >= ROUNDING else limit
    own = layout["coloraxis2"] = layout["coloraxis"] | dict(cmin=-end, cmax=end)
    figure.spec["data"][2]["coloraxis"] = "coloraxis2"
    heading = layout["annotations"].pop()  # in its place stands the title of the bar
    own["colorbar"] = own["colorbar"] | dict(y=tops[2], ypad=12, tickvals=[-end, 0, end], tickformat=".2g")
    own["colorbar"]["title"] = own["colorbar"]["title"] | dict(text=heading["text"], font=heading["font"])
    layout["coloraxis"]["colorbar"] |= dict(tickvals=[-limit, 0, limit], tickformat=".2g")
    return figure


def guesses(positions: Array, names: Sequence[str]) -> figures.Figure:
    """Guessed against true position; right guesses lie on the line. Args: positions (n,) guessed; the tokens' names."""
    true = np.arange(len(positions))
    ends = [-0.5, len(true) - 0.5]
    traces = [
        dict(
            type="scatter",
            x=ends,
            y=ends,
            mode="lines",
            line=dict(color=figures.MUTED, dash="dot", width=2),
            hoverinfo="skip",
            showlegend=False,
        )
    ]
    for kind, (name, chosen) in enumerate({"right": positions == true, "wrong": positions != true}.items()):
        traces.append(
            dict(
                type="scatter",
                x=true[chosen].astype(np.float32),
                y=positions[chosen].astype(np.float32),
                customdata=[figures.escape(names[place]) for place in true[chosen]],
                name=name,
                mode="markers",
                marker=dict(
                    color=figures.COLOURS[kind], symbol=("circle", "x")[kind], size=9 if len(true) <= 64 else 6
                ),
                hovertemplate="token %{customdata}<br>position %{x}<br>guessed %{y}<extra></extra>",
            )
        )
    axis = dict(range=ends, tickfont=_FONT, zeroline=False) | (
        dict(dtick=1) if len(true) <= 12 else dict(tickformat="d")
    )
    layout = dict(xaxis=dict(title="position") | axis, yaxis=dict(title="guessed position") | axis, legend=_LEGEND)
    return figures.finish(dict(data=traces, layout=layout), 400)


def shares(widths: Sequence[int], series: Mapping[str, Array], width: int) -> figures.Figure:
    """Shares of tokens that find their position, against the width, which is marked where the page stands."""
    curves = {name: (np.array(widths), share) for name, share in series.items()}
    figure = figures.lines(
        curves, x_title="model width d_model", y_title="share right", log_x=True, height=400, legend_lines=3
    )
    mark = dict(
        type="line", x0=width, x1=width, y0=0, y1=1, yref="paper", line=dict(color=figures.MUTED, dash="dot", width=2)
    )
    layout = figure.spec["layout"]
    layout["xaxis"] |= dict(tickvals=_WIDTH_TICKS, ticktext=[str(tick) for tick in _WIDTH_TICKS])
    layout["yaxis"] |= dict(tickformat=".0%", range=(-0.04, 1.08))
    layout["shapes"] = [mark]
    return figure
