"""Arrays into Plotly figures. A figure carries exactly the numbers it was given, as float32.

Rows of an attention map are queries, with the first token at the top; columns are keys. Colours: Viridis for shares
between 0 and 1, red-blue around zero for signed numbers (red below, as in the lesson).
"""

import html
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

Array = np.ndarray

CELL_TEXT_UP_TO = 12  # numbers in the cells up to so many columns and rows, on hover beyond
_MAX_TICKS = 16
_LABEL_LENGTH, _NAME_LENGTH = 10, 40
_FONT, _TITLE_FONT = 14, 16
_ROW_HEIGHT = 44
_BAR_ABOVE = 76  # pixels that a colour bar above the map takes

_SHARE_STEPS = (0.05, 0.1, 0.2, 0.5, 1.0)

SHARE, SIGNED = "share", "signed"

# Told apart by dash and marker too, never by colour alone; readable on light and dark.
COLOURS = ("#3B82F6", "#EA580C", "#0D9488", "#C026D3", "#A16207", "#64748B")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "cross")
HIGHLIGHT, MUTED = "#EA580C", "#8A94A6"


def escape(text: str) -> str:
    """A user's text as Plotly shows it unchanged: its labels are read as HTML otherwise."""
    return html.escape(text, quote=False)


def shorten(text: str, length: int) -> str:
    """The text, cut with an ellipsis if it is longer than `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def token_names(tokens: Sequence[str], count: int, padding: int = 0) -> list[str]:
    """Names of tokens for axes: place and word ("3 cat"), so that repeated words stay apart; without words the place.

    The last `padding` of them are marked as padding.
    """
    names = [f"{place} {word}" for place, word in enumerate(tokens, start=1)] or [str(i) for i in range(1, count + 1)]
    return [f"{name} (pad)" if place >= count - padding else name for place, name in enumerate(names)]


def heatmap(
    values: Array,
    *,
    x: Sequence[str],
    y: Sequence[str],
    x_title: str,
    y_title: str,
    unit: str,
    kind: str = SHARE,
    limit: float | None = None,
    height: int | None = None,
    decimals: int = 2,
) -> go.Figure:
    """One matrix as coloured cells, row 0 at the top. Args: values (rows, columns); x, y the columns' and rows' names.

    limit: the colour scale ends there; `colour_limit` where None.
    """
    return heatmap_grid(
        {"": values},
        x=x,
        y=y,
        x_title=x_title,
        y_title=y_title,
        unit=unit,
        kind=kind,
        limit=limit,
        height=height,
        decimals=decimals,
    )


def heatmap_grid(
    maps: Mapping[str, Array],
    *,
    x: Sequence[str] | Mapping[str, Sequence[str]],
    y: Sequence[str] | Mapping[str, Sequence[str]],
    x_title: str,
    y_title: str,
    unit: str,
    kind: str = SHARE,
    limit: float | None = None,
    columns: int = 1,
    height: int | None = None,
    decimals: int = 2,
) -> go.Figure:
    """Matrices side by side in one figure with one colour scale. The keys of `maps` are the titles.

    x, y: names of columns and rows, the same for all maps or by title.
    """
    rows = -(-len(maps) // columns)
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=[escape(title) for title in maps] if len(maps) > 1 else None,
        horizontal_spacing=min(0.08, 0.3 / columns),
        vertical_spacing=min(0.16, 0.4 / rows),
    )
    for place, (title, values) in enumerate(maps.items()):
        row, column = divmod(place, columns)
        names = x[title] if isinstance(x, Mapping) else x
        row_names = y[title] if isinstance(y, Mapping) else y
        with_text = max(values.shape) <= CELL_TEXT_UP_TO and len(maps) == 1
        figure.add_trace(
            go.Heatmap(
                z=values.astype(np.float32),
                x=axis_names(names),
                y=axis_names(row_names),
                coloraxis="coloraxis",
                texttemplate=f"%{{z:.{decimals}f}}" if with_text else None,
                textfont=dict(size=_FONT),
                hovertemplate=f"{y_title} %{{y}}<br>{x_title} %{{x}}<br>%{{z:.4f}}<extra>{escape(title)}</extra>",
                xgap=1 if max(values.shape) <= 32 else 0,
                ygap=1 if max(values.shape) <= 32 else 0,
            ),
            row + 1,
            column + 1,
        )
        figure.update_xaxes(_ticks(names), row=row + 1, col=column + 1, title_text=x_title if row == rows - 1 else None)
        figure.update_yaxes(
            _ticks(row_names, places_only=column > 0),
            autorange="reversed",
            row=row + 1,
            col=column + 1,
            title_text=y_title if column == 0 else None,
        )
    end = limit or colour_limit(maps.values(), kind)
    figure.update_layout(
        coloraxis=dict(
            colorscale="Viridis" if kind == SHARE else "RdBu",
            cmin=0 if kind == SHARE else -end,
            cmax=end,
            colorbar=dict(
                title=dict(text=unit, side="top", font_size=_FONT),
                orientation="h",  # above the map, so that a phone's width is left to the map
                y=1.02,
                yanchor="bottom",
                thickness=12,
                tickfont_size=_FONT,
            ),
        )
    )
    tallest = max(len(values) for values in maps.values())
    top = _BAR_ABOVE + (24 if len(maps) > 1 else 0)
    return finish(figure, height or top + 60 + max(160, min(480, _ROW_HEIGHT * tallest)) * rows, top=top)


def attention_map(
    weights: Array,
    queries: Sequence[str],
    keys: Sequence[str],
    entropy: Array,
    *,
    x_title: str,
    highlight: int | None = None,
) -> go.Figure:
    """Attention weights (n_q, n_k) with each row's sum and entropy in bits beside it, row by row.

    Beside a small map they are written out, beside a large one the entropy is a bar and the sum is on hover.
    """
    figure = make_subplots(1, 2, shared_yaxes=True, column_widths=[0.78, 0.22], horizontal_spacing=0.02)
    body = heatmap(weights, x=keys, y=queries, x_title=x_title, y_title="query token", unit="weight")
    figure.add_trace(body.data[0], 1, 1)
    sums = weights.sum(axis=-1)
    if len(queries) <= CELL_TEXT_UP_TO:
        for name, numbers in (("row sum", sums), ("entropy", entropy)):
            figure.add_trace(
                go.Scatter(
                    x=[name] * len(queries),
                    y=axis_names(queries),
                    mode="text",
                    text=[f"{number:.2f}" for number in numbers],
                    textfont_size=_FONT,
                    hoverinfo="skip",
                ),
                1,
                2,
            )
        figure.update_xaxes(type="category", showgrid=False, range=[-0.5, 1.5], row=1, col=2)
    else:
        figure.add_trace(
            go.Bar(
                x=entropy.astype(np.float32),
                y=axis_names(queries),
                orientation="h",
                marker_color=MUTED,
                customdata=sums.astype(np.float32),
                hovertemplate="query token %{y}<br>entropy %{x:.3f} bits<br>row sum %{customdata:.3f}<extra></extra>",
            ),
            1,
            2,
        )
        largest = max(1.0, float(np.log2(weights.shape[1])))
        figure.update_xaxes(title_text="entropy (bits)", range=[0, largest], row=1, col=2)
    figure.update_layout(coloraxis=body.layout.coloraxis, showlegend=False)
    figure.update_xaxes(_ticks(keys), title_text=x_title, row=1, col=1)
    figure.update_xaxes(tickfont_size=_FONT, row=1, col=2)
    figure.update_yaxes(_ticks(queries), autorange="reversed")
    figure.update_yaxes(title_text="query token", row=1, col=1)
    if highlight is not None:
        outline_row(figure, highlight, weights.shape[1])
    return finish(figure, body.layout.height, top=_BAR_ABOVE)


def bars(
    values: Array,
    names: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    highlight: int | None = None,
    y_range: tuple[float, float] | None = None,
    height: int = 320,
    decimals: int = 2,
) -> go.Figure:
    """One bar per name; the highlighted one is striped as well as coloured."""
    chosen = np.arange(len(values)) == highlight
    figure = go.Figure(
        go.Bar(
            x=axis_names(names),
            y=np.asarray(values, dtype=np.float32),
            marker=dict(
                color=np.where(chosen, HIGHLIGHT, COLOURS[0]).tolist(),
                pattern_shape=np.where(chosen, "/", "").tolist(),
            ),
            texttemplate=f"%{{y:.{decimals}f}}" if len(values) <= CELL_TEXT_UP_TO else None,
            textposition="outside",
            textfont_size=_FONT,
            cliponaxis=False,
            hovertemplate=f"{x_title} %{{x}}<br>{y_title} %{{y:.4f}}<extra></extra>",
        )
    )
    figure.update_xaxes(_ticks(names), title_text=x_title)
    figure.update_yaxes(title_text=y_title, range=y_range, tickfont_size=_FONT)
    return finish(figure, height)


def lines(
    series: Mapping[str, tuple[Array, Array]],
    *,
    x_title: str,
    y_title: str,
    log_x: bool = False,
    log_y: bool = False,
    markers: bool | None = None,
    y_range: tuple[float, float] | None = None,
    height: int = 380,
) -> go.Figure:
    """Named curves (x, y), told apart by colour, dash and marker. Markers are drawn for up to 40 points unless said."""
    figure = go.Figure()
    for place, (name, (x, y)) in enumerate(series.items()):
        kind = place % len(COLOURS)
        with_markers = len(x) <= 40 if markers is None else markers
        figure.add_trace(
            go.Scatter(
                x=np.asarray(x, dtype=np.float32),
                y=np.asarray(y, dtype=np.float32),
                name=escape(name),
                mode="lines+markers" if with_markers else "lines",
                line=dict(color=COLOURS[kind], dash=DASHES[kind], width=3),
                marker=dict(symbol=MARKERS[kind], size=8),
                hovertemplate=f"{x_title} %{{x}}<br>{y_title} %{{y:.4g}}<extra>{escape(name)}</extra>",
            )
        )
    figure.update_xaxes(title_text=x_title, type="log" if log_x else "linear", tickfont_size=_FONT)
    figure.update_yaxes(title_text=y_title, type="log" if log_y else "linear", range=y_range, tickfont_size=_FONT)
    figure.update_layout(legend=dict(orientation="h", y=1.02, yanchor="bottom", x=0, font_size=_FONT))
    return finish(figure, height)


def mark_x(figure: go.Figure, x: float, text: str, *, log_x: bool = False) -> go.Figure:
    """A dotted vertical line at x with its name; returns the figure."""
    figure.add_vline(x=x, line=dict(color=MUTED, dash="dot", width=2))
    figure.add_annotation(
        x=np.log10(x) if log_x else x,
        y=1,
        yref="paper",
        yanchor="top",
        xanchor="left",
        text=escape(text),
        showarrow=False,
    )
    return figure


def outline_row(figure: go.Figure, row: int, columns: int) -> go.Figure:
    """A frame around one row of a heatmap; returns the figure."""
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=columns - 0.5,
        y0=row - 0.5,
        y1=row + 0.5,
        line=dict(color=HIGHLIGHT, width=4),
    )
    return figure


def finish(figure: go.Figure, height: int, top: int = 36) -> go.Figure:
    """What all figures share: size, margins, readable type; no dragging and no zoom, for a phone to scroll past."""
    figure.update_xaxes(fixedrange=True, automargin=True, title_font_size=_TITLE_FONT)
    figure.update_yaxes(fixedrange=True, automargin=True, title_font_size=_TITLE_FONT)
    figure.update_annotations(font_size=_TITLE_FONT)
    figure.update_layout(
        height=height,
        margin=dict(l=8, r=8, t=top, b=8),
        dragmode=False,
        hoverlabel_font_size=_FONT,
        font_size=_FONT,
    )
    return figure


def colour_limit(maps: Iterable[Array], kind: str) -> float:
    """Where the colour scale of these maps ends.

    For shares one of a few round steps, so that colours keep their meaning while a slider moves and small weights can
    still be told apart; for signed numbers the largest magnitude.
    """
    largest = max(float(np.nanmax(np.abs(values), initial=0)) for values in maps)
    if kind == SHARE:
        return next(step for step in _SHARE_STEPS if largest <= step + 1e-9)
    return largest or 1.0


def axis_names(names: Sequence[str]) -> list[str]:
    """Names as the values of a category axis: escaped, and cut if very long. They must differ, as `token_names` do."""
    return [escape(shorten(name, _NAME_LENGTH)) for name in names]


def _ticks(names: Sequence[str], *, places_only: bool = False) -> dict[str, object]:
    """A category axis that never guesses dates, with at most 16 short labels; the full name is on hover."""
    step = -(-len(names) // _MAX_TICKS)
    places = list(range(0, len(names), step))
    return dict(
        type="category",
        tickmode="array",
        tickvals=[axis_names(names)[place] for place in places],
        ticktext=[str(place + 1) if places_only else escape(shorten(names[place], _LABEL_LENGTH)) for place in places],
        tickfont_size=_FONT,
        showgrid=False,
        zeroline=False,
        range=None,
    )
