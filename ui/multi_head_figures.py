"""Figures of the page on multi-head attention: all heads at once, the effect of switching heads off, statistics."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from core.multi_head import HeadStatistics
from ui import figures

Array = np.ndarray

# The statistics, in the order of `HeadStatistics`.
STATISTICS = (
    "entropy (bits)",
    "mean distance looked (tokens)",
    "weight on itself",
    "weight on the previous token",
    "weight on the first token",
)
_PLACES_UP_TO = 40_000  # cells; beyond, one is hardly a pixel wide, and its place would triple what is sent
_EQUAL_CELLS_FROM = 16  # tokens: with empty cells as wide as the others, a browser draws the maps like one photograph
_NUMBERS_UP_TO = 90_000  # cells; beyond, half a megabyte of numbers: the colours alone are sent, a byte each
UNIFORM = "uniform head"


def head_grid(
    weights: Array, titles: Sequence[str], tokens: Sequence[str], *, chosen: int, limit: float
) -> figures.Figure:
    """All maps (heads, n, n) in one picture with one colour scale, the chosen head framed. Titles may have two lines.

    One trace, in which the maps stand side by side with empty cells between them: 64 charts would be slow.
    Each map takes one unit across and one down, whatever its number of tokens.
    """
    heads, n = weights.shape[:2]
    rows = 1 if heads <= 4 else 2 if heads <= 16 else -(-heads // 8)
    columns = -(-heads // rows)
    two_lines = any("<br>" in title for title in titles)
    side, top, bottom = 0.03, (0.22 if rows > 1 or two_lines else 0.14), 0.02
    down, across = n + 1, n + 1  # cells of a map, with the empty ones up to the next map
    places: dict[str, Any] = dict(x=_edges(columns, n, side, side), y=_edges(rows, n, top, bottom))
    if n >= _EQUAL_CELLS_FROM:
        above, between = round(n * (top + bottom) / (1 - top - bottom)), max(1, n // 32)
        down, across = n + above, n + between
        side, top, bottom = between / 2 / across, round(0.9 * above) / down, round(0.1 * above) / down
        places = dict(x0=side + 0.5 / across, dx=1 / across, y0=top + 0.5 / down, dy=1 / down)
    row, column = np.divmod(np.arange(heads), columns)
    tiles = np.full((rows * columns, down, across), np.nan, dtype=np.float32)
    tiles[:heads, :n, :n] = weights
    maps: dict[str, Any] = places | dict(
        type="heatmap",
        z=_side_by_side(tiles, rows, columns),
        coloraxis="coloraxis",
        hoverongaps=False,
        hovertemplate="weight %{z:.4f}<extra></extra>",
    )
    if tiles.size <= _PLACES_UP_TO:
        whence = np.empty((*tiles.shape, 3), dtype=np.uint8)  # head, query and key, from 1
        whence[..., 0] = np.arange(1, len(tiles) + 1)[:, None, None]
        whence[..., 1], whence[..., 2] = np.indices(tiles.shape[1:]) + 1
        maps["customdata"] = _side_by_side(whence, rows, columns)
        whose = "head %{customdata[0]}<br>query token %{customdata[1]}<br>key token %{customdata[2]}<br>"
        maps["hovertemplate"] = whose + maps["hovertemplate"]
    colours = _colours_of_maps(limit)
    if tiles.size > _NUMBERS_UP_TO:
        maps |= dict(z=_as_bytes(maps["z"], limit), hoverinfo="skip", hovertemplate="")
        colours = _colours_of_bytes(colours, limit)
    names = dict(
        type="scatter",
        x=column + 0.5,
        y=row + top * 0.55,
        text=list(titles),
        mode="text",
        textfont=dict(size=figures.TICK_FONT if heads <= 4 else 12),
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
    frame = dict(
        type="rect",
        x0=column[chosen] + side / 3,
        x1=column[chosen] + 1 - side / 3,
        y0=row[chosen] + top - bottom,
        y1=row[chosen] + 1,
        line=dict(color=figures.HIGHLIGHT, width=3),
    )
    # Names where a phone can turn them upright side by side, places where they still fit, then from where to where.
    across = tokens if columns * n <= 18 else [str(i + 1) for i in range(n)] if columns * n <= 36 else [f"1–{n}"]
    down = tokens if rows * n <= 12 else [f"1–{n}"]
    layout = dict(
        xaxis=_axis("key token, map by map", range=[0, columns], **_tile_ticks(columns, across, side, side)),
        yaxis=_axis("query token, map by map", range=[rows + 0.02, 0], **_tile_ticks(rows, down, top, bottom)),
        coloraxis=colours,
        shapes=[frame],
    )
    height = 130 + {1: 300 if two_lines else 280, 2: 400}.get(rows, max(420, 80 * rows))
    return figures.finish(dict(data=[maps, names], layout=layout), height, top=figures.BAR_ABOVE)


def change_bars(sizes: Array, full_sizes: Array, tokens: Sequence[str], height: int) -> figures.Figure:
    """Per token the length of the change inside the length of the output with all heads."""
    bars = [
        dict(
            type="bar",
            x=lengths.astype(np.float32),
            y=figures.axis_names(tokens),
            orientation="h",
            name=name,
            width=width,
            marker=dict(color=colour, pattern=dict(shape=pattern, fillmode="overlay")),
            hovertemplate=f"token %{{y}}<br>length of the {name} %{{x:.4f}}<extra></extra>",
        )
        for name, lengths, colour, pattern, width in (
            ("output with all heads", full_sizes, figures.MUTED, "", 0.8),
            ("change", sizes, figures.HIGHLIGHT, "/", 0.45),
        )
    ]
    longest = float(max(sizes.max(), full_sizes.max())) or 1.0
    step = -(-len(tokens) // 16)
    names = [figures.escape(figures.shorten(token, 10)) for token in tokens[::step]]
    ticks = dict(type="category", tickvals=figures.axis_names(tokens)[::step], ticktext=names)
    layout = dict(
        xaxis=_axis("length", range=[0, 1.05 * longest], nticks=4),
        yaxis=_axis("token", autorange="reversed", **ticks),
        barmode="overlay",
        legend=dict(orientation="h", y=1.02, yanchor="bottom", x=0),
    )
    return figures.finish(dict(data=bars, layout=layout), height, top=84)


def statistics_chart(found: HeadStatistics, uniform: HeadStatistics, names: Sequence[str]) -> figures.Figure:
    """One row of bars per statistic, one bar per head; a dashed line says what a uniform head would have."""
    heads = len(names)
    places, step = np.arange(1, heads + 1), -(-heads // 16)
    pairs = [(getattr(found, field.name), float(getattr(uniform, field.name)[0])) for field in fields(found)]
    tops = [max(float(values.max()), reference) for values, reference in pairs]
    tops[2:] = [max(tops[2:])] * 3  # shares are compared with each other
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = dict(annotations=[])
    for row, (title, (values, reference), top) in enumerate(zip(STATISTICS, pairs, tops, strict=True), start=1):
        y, highest = f"y{row}" if row > 1 else "y", 1 - (row - 1) * 0.2
        data.append(
            dict(
                type="bar",
                x=places,
                y=values.astype(np.float32),
                yaxis=y,
                width=min(0.7, 0.12 * heads),
                marker=dict(color=figures.COLOURS[0]),
                customdata=list(names),
                hovertemplate=f"%{{customdata}}<br>{title} %{{y:.4f}}<extra></extra>",
                showlegend=False,
            )
        )
        data.append(
            dict(
                type="scatter",
                x=[0.5, heads + 0.5],
                y=[reference, reference],
                yaxis=y,
                mode="lines",
                line=dict(color=figures.HIGHLIGHT, dash="dash", width=2),
                name=UNIFORM,
                showlegend=row == 1,
                hovertemplate=f"{UNIFORM}<br>{title} %{{y:.4f}}<extra></extra>",
            )
        )
        layout[y.replace("y", "yaxis")] = _axis(
            "", domain=[highest - 0.14, highest - 0.02], range=[0, 1.1 * top or 1.0], nticks=4, showgrid=True
        )
        layout["annotations"].append(
            dict(text=title, x=0, xref="paper", y=highest - 0.02, yref="paper")
            | dict(xanchor="left", yanchor="bottom", showarrow=False)
        )
    ticks = dict(tickvals=places[::step], ticktext=[str(place) for place in places[::step]])
    layout["xaxis"] = _axis("head", range=[0.5, heads + 0.5], anchor="y5", **ticks)
    layout["legend"] = dict(orientation="h", y=1.03, yanchor="bottom", x=0)
    return figures.finish(dict(data=data, layout=layout), 660, top=64)


def _axis(title: str, **more: Any) -> dict[str, Any]:
    look = dict(showgrid=False, zeroline=False)
    return dict(title=dict(text=title)) | look | more


def _colours_of_maps(limit: float) -> dict[str, Any]:
    """The colour axis as on the other maps of the page."""
    one = figures.heatmap(np.zeros((1, 1)), x="1", y="1", x_title="", y_title="", unit="weight", limit=limit)
    return one.spec["layout"]["coloraxis"]


def _as_bytes(grid: Array, limit: float) -> Array:
    """Weights up to `limit` as whole numbers from 1 to 255; 0 where there is no cell."""
    return np.nan_to_num(np.rint(1 + grid * (254 / limit)), nan=0).astype(np.uint8)


def _colours_of_bytes(colours: dict[str, Any], limit: float) -> dict[str, Any]:
    """The same colours and the same numbers on their bar, for what `_as_bytes` returns; none where there is no cell."""
    nothing, first = "rgba(0,0,0,0)", 0.5 / 255
    scale = [[(1 + 254 * share) / 255, colour] for share, colour in colours["colorscale"]]
    scale = [[0, nothing], [first, nothing], [first, scale[0][1]], *scale]
    shares = np.linspace(0, 1, 6)
    ticks = dict(tickvals=1 + 254 * shares, ticktext=[f"{share * limit:g}" for share in shares])
    return colours | dict(colorscale=scale, cmin=0, cmax=255, colorbar=colours["colorbar"] | ticks)


def _side_by_side(tiles: Array, rows: int, columns: int) -> Array:
    """(rows·columns, h, w, …) -> (rows·h, columns·w, …)."""
    height, width, *more = tiles.shape[1:]
    grid = tiles.reshape(rows, columns, height, width, *more).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, *more)


def _edges(tiles: int, cells: int, before: float, after: float) -> Array:
    """The edges of the cells along one axis: in each tile `cells` equal ones, and an empty one up to the next tile."""
    within = before + np.arange(cells + 1) * (1 - before - after) / cells
    return np.append((np.arange(tiles)[:, None] + within).ravel(), tiles + before)


def _tile_ticks(tiles: int, names: Sequence[str], before: float, after: float) -> dict[str, Any]:
    """Names along every tile at equal distances: of all its tokens, or one for the whole."""
    middles = before + (np.arange(len(names)) + 0.5) * (1 - before - after) / len(names)
    short = [figures.escape(figures.shorten(name, 7)) for name in names]
    places = (np.arange(tiles)[:, None] + middles).ravel()
    return dict(tickvals=places, ticktext=short * tiles, tickfont=dict(size=12))
