"""Arrays into Plotly figures. A figure carries exactly the numbers it was given, as float32.

Rows of an attention map are queries, with the first token at the top; columns are keys. Colours: Viridis for shares
between 0 and 1, red-blue around zero for signed numbers (red below, as in the lesson).
"""

import base64
import html
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import get_colorscale, unlabel_rgb

Array = np.ndarray

CELL_TEXT_UP_TO = 12  # numbers in the cells up to so many columns and rows, on hover beyond
_MAX_TICKS = 16
_LABEL_LENGTH, _NAME_LENGTH = 10, 40
TICK_FONT, TITLE_FONT = 15, 17
_SMALLEST_NUMBER = 12  # pixels: smaller ones are left to the hover
_PAGE_WIDTH, _RIGHT_OF_IT = 790, 20  # pixels that a figure has on a screen of 1,280, and what it leaves at its right
_ROW_HEIGHT = 44
BAR_ABOVE = 94  # pixels that a colour bar above the map takes
_DIGIT, _LETTER = 8, 7  # pixels that a digit and a letter of a tick label take
_TITLE_BESIDE = 60  # pixels that a title beside a map takes, with the space around it
_TITLE_BELOW = 86  # pixels that tick labels and a title below the map take
_FAMILY, _INK = "Source Sans, sans-serif", "#31333F"  # of the words, on paper
_FAINT = "#8084954D"  # lines behind the picture, on light and dark
_AXIS = dict(fixedrange=True, automargin=True, ticklabeloverflow="allow")
_UPRIGHT = dict(showgrid=False, zeroline=False)  # lines that axes along x go without

_SHARE_STEPS = (0.05, 0.1, 0.2, 0.5, 1.0)

SHARE, SIGNED = "share", "signed"

# Written out: plotly.js has other colours under the name RdBu than Plotly for Python, and blue below zero.
SHARES = get_colorscale("Viridis")
SIGNS = [
    [round(place, 1), "#{:02x}{:02x}{:02x}".format(*map(int, unlabel_rgb(colour)))]
    for place, colour in get_colorscale("RdBu")
]

_CONTAINERS = (dict, list, tuple, np.ndarray)  # of the plain form of a figure

# How plotly.js calls types of numbers.
_SHORT = {"float32": "f4", "float64": "f8", "uint8": "u1", "int16": "i2", "int32": "i4"}

# Told apart by dash and marker too, never by colour alone; readable on light and dark.
COLOURS = ("#3B82F6", "#EA580C", "#0D9488", "#C026D3", "#A16207", "#64748B")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "cross")
HIGHLIGHT, MUTED = "#EA580C", "#8A94A6"


class Figure(go.Figure):
    """A figure in its plain form, a dict of data and layout, which Plotly checks when somebody looks into it.

    On its way to the page nobody does, and the check would take ten times as long as all the rest. The tests look
    into every figure. `spec` may be changed until then.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec

    def __getattr__(self, name: str) -> Any:
        """Anything that a checked figure has and this one does not yet: check it now."""
        if "_data_objs" in self.__dict__:
            raise AttributeError(name)
        super().__init__(self._spec)
        return getattr(self, name)

    @property
    def spec(self) -> dict[str, Any]:
        return self._spec

    def to_dict(self) -> dict[str, Any]:
        """The figure as it goes over the wire."""
        return super().to_dict() if "_data_objs" in self.__dict__ else _wired(self._spec)


def _wired(value: Any) -> Any:
    """A copy of a plain form with its arrays in plotly.js' typed form: their bytes as base64, with type and shape."""
    if isinstance(value, dict):
        return {name: _wired(inner) if isinstance(inner, _CONTAINERS) else inner for name, inner in value.items()}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return [_wired(inner) for inner in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == np.int64 and value.size and np.abs(value).max() < 2**31:
        value = value.astype(np.int32)
    if value.dtype.name not in _SHORT or not value.size:
        return value.tolist()
    typed = dict(dtype=_SHORT[value.dtype.name], bdata=base64.b64encode(value.tobytes()).decode())
    return typed | (dict(shape=", ".join(map(str, value.shape))) if value.ndim > 1 else {})


def escape(text: str) -> str:
    """A user's text as Plotly shows it unchanged: its labels are read as HTML otherwise."""
    return text if text.isalnum() else html.escape(text, quote=False)


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
    share: float = 1,
) -> Figure:
    """One matrix as coloured cells, row 0 at the top. Args: values (rows, columns); x, y the columns' and rows' names.

    limit: the colour scale ends there; `colour_limit` where None. share: of the page's width that the figure has.
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
        share=share,
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
    text_up_to: int | None = None,
    share: float = 1,
) -> Figure:
    """Matrices side by side in one figure with one colour scale. The keys of `maps` are the titles.

    x, y: names of columns and rows, the same for all maps or by title. text_up_to: numbers stand in the cells of maps
    with so many columns and rows at most, where they fit; by default in a single map's, up to 12. share: of the page's
    width that the figure has.
    """
    rows = -(-len(maps) // columns)
    text_up_to = (CELL_TEXT_UP_TO if len(maps) == 1 else 0) if text_up_to is None else text_up_to
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": []}
    for place, (title, values) in enumerate(maps.items()):
        row, column = divmod(place, columns)
        names = x[title] if isinstance(x, Mapping) else x
        row_names = y[title] if isinstance(y, Mapping) else y
        number = str(place + 1) if place else ""
        left, right = _share(column, columns, 0.08)
        ends = isinstance(x, Mapping) or place + columns >= len(maps)  # no map below has the same columns
        bottom, top = _share(rows - 1 - row, rows, 0.16 if isinstance(x, Mapping) else 0.1)
        data.append(
            _cells(values, names, row_names, x_title, y_title, title, decimals)
            | dict(xaxis=f"x{number}", yaxis=f"y{number}")
        )
        labels = (
            _ticks(names, most=_MAX_TICKS // min(columns, 4)) if ends else dict(type="category", showticklabels=False)
        )
        layout[f"xaxis{number}"] = labels | dict(
            domain=[left, right],
            anchor=f"y{number}",
            title=_title(x_title if row == rows - 1 else ""),
        )
        layout[f"yaxis{number}"] = _ticks(row_names, places_only=column > 0) | dict(
            domain=[bottom, top],
            anchor=f"x{number}",
            autorange="reversed",
            title=_title(y_title if column == 0 else ""),
        )
        if len(maps) > 1:
            layout["annotations"].append(_heading(title, (left + right) / 2, top))
    across = share * _PAGE_WIDTH - _room_at_the_left(layout) - _RIGHT_OF_IT
    for trace, values in zip(data, maps.values(), strict=True):
        left, right = layout[trace["xaxis"].replace("x", "xaxis")]["domain"]
        few = max(values.shape) <= text_up_to
        size = _number_size(values, decimals, across * (right - left) / values.shape[1]) if few else 0
        if size >= _SMALLEST_NUMBER:
            trace["textfont"] = dict(size=size)
        else:
            del trace["texttemplate"], trace["textfont"]
    layout["coloraxis"] = _colours(kind, limit or colour_limit(maps.values(), kind), unit)
    if len(maps) > 1:
        layout["coloraxis"]["colorbar"]["ypad"] = 34  # room for the headings
    tallest = max(len(values) for values in maps.values())
    top_margin = BAR_ABOVE + (48 if len(maps) > 1 else 0)
    height = height or top_margin + _TITLE_BELOW + max(160, min(480, _ROW_HEIGHT * tallest)) * rows
    return finish(dict(data=data, layout=layout), height, top=top_margin)


def _number_size(values: Array, decimals: int, cell: float) -> int:
    """The size of type in which each of the numbers fits into a cell so many pixels wide, as usual at most."""
    widest = max(0.5 * len(f"{value:.{decimals}f}") - 0.25 for value in values.ravel().tolist())  # the point is narrow
    return min(TICK_FONT, int((cell - 5) / widest))


def attention_map(
    weights: Array,
    queries: Sequence[str],
    keys: Sequence[str],
    entropy: Array,
    *,
    x_title: str,
    highlight: int | None = None,
    limit: float | None = None,
) -> Figure:
    """Attention weights (n_q, n_k) with each row's sum and entropy in bits beside it, row by row.

    Beside a small map they are written out, beside a large one the entropy is a bar and the sum is on hover.
    """
    cells = _cells(weights, keys, queries, x_title, "query token", "", 2)
    beside: dict[str, Any] = dict(domain=[0.76, 1], anchor="y", showgrid=False)
    sums, names = weights.sum(axis=-1), axis_names(queries)
    if len(queries) <= CELL_TEXT_UP_TO:
        notes: list[dict[str, Any]] = [
            dict(
                type="scatter",
                mode="text",
                x=[name] * len(queries),
                y=names,
                xaxis="x2",
                text=[f"{number:.2f}" for number in numbers],
                hoverinfo="skip",
            )
            for name, numbers in (("sum", sums), ("bits", entropy))
        ]
        beside |= dict(type="category", range=[-0.5, 1.5])
    else:
        notes = [
            dict(
                type="bar",
                orientation="h",
                x=entropy.astype(np.float32),
                y=names,
                xaxis="x2",
                marker=dict(color=MUTED),
                customdata=sums.astype(np.float32),
                hovertemplate="query token %{y}<br>entropy %{x:.3f} bits<br>row sum %{customdata:.3f}<extra></extra>",
            )
        ]
        beside |= dict(range=[0, max(1.0, float(np.log2(weights.shape[1])))], title=_title("bits"))
    if max(weights.shape) > CELL_TEXT_UP_TO:
        del cells["texttemplate"], cells["textfont"]
    layout: dict[str, Any] = dict(
        xaxis=_ticks(keys) | dict(domain=[0, 0.74], title=_title(x_title)),
        xaxis2=beside,
        yaxis=_ticks(queries) | dict(autorange="reversed", title=_title("query token")),
        coloraxis=_colours(SHARE, limit or colour_limit([weights], SHARE), "weight"),
        showlegend=False,
        shapes=[] if highlight is None else [_frame(highlight, weights.shape[1])],
    )
    layout["coloraxis"]["colorbar"] |= dict(len=0.74, x=0, xanchor="left")  # as wide as the map
    height = BAR_ABOVE + _TITLE_BELOW + max(160, min(480, _ROW_HEIGHT * len(queries)))
    return finish(dict(data=[cells, *notes], layout=layout), height, top=BAR_ABOVE)


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
) -> Figure:
    """One bar per name; the highlighted one is striped as well as coloured."""
    chosen = np.arange(len(values)) == highlight
    bar = dict(
        type="bar",
        x=axis_names(names),
        y=np.asarray(values, dtype=np.float32),
        marker=dict(
            color=np.where(chosen, HIGHLIGHT, COLOURS[0]).tolist(),
            pattern=dict(shape=np.where(chosen, "/", "").tolist()),
        ),
        textposition="outside",
        cliponaxis=False,
        hovertemplate=f"{x_title} %{{x}}<br>{y_title} %{{y:.4f}}<extra></extra>",
    )
    if len(values) <= CELL_TEXT_UP_TO:
        bar["texttemplate"] = f"%{{y:.{decimals}f}}"
    layout = dict(xaxis=_ticks(names) | dict(title=_title(x_title)), yaxis=_number_axis(y_title, range=y_range))
    return finish(dict(data=[bar], layout=layout), height)


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
    legend_lines: int = 1,
) -> Figure:
    """Named curves (x, y), told apart by colour, dash and marker. Markers are drawn for up to 40 points unless said.

    legend_lines: how many lines the names take where the figure has half of the page.
    """
    data = []
    for place, (name, (x, y)) in enumerate(series.items()):
        kind = place % len(COLOURS)
        with_markers = len(x) <= 40 if markers is None else markers
        data.append(
            dict(
                type="scatter",
                **_places(np.asarray(x, dtype=np.float32)),
                y=np.asarray(y, dtype=np.float32),
                name=escape(name),
                mode="lines+markers" if with_markers else "lines",
                line=dict(color=COLOURS[kind], dash=DASHES[kind], width=3),
                marker=dict(symbol=MARKERS[kind], size=8),
                hovertemplate=f"{x_title} %{{x}}<br>{y_title} %{{y:.4g}}<extra>{escape(name)}</extra>",
            )
        )
    layout = dict(
        xaxis=_number_axis(x_title, type="log" if log_x else "linear"),
        yaxis=_number_axis(y_title, type="log" if log_y else "linear", range=y_range),
        legend=dict(orientation="h", y=1.02, yanchor="bottom", x=0),
    )
    return finish(dict(data=data, layout=layout), height, top=legend_above(legend_lines))


def _places(x: Array) -> dict[str, Any]:
    """The places of a curve's points: of equal steps the first and the step, the numbers themselves otherwise."""
    steps = np.diff(x)
    return dict(x0=float(x[0]), dx=float(steps[0])) if len(steps) and (steps == steps[0]).all() else dict(x=x)


def few_ticks(figure: Figure, names: Sequence[str], most: int = 8) -> Figure:
    """At most so many labels across, for a chart on a part of the page; returns the figure."""
    values = axis_names(names[:: -(-len(names) // most)])
    for name, axis in figure.spec["layout"].items():
        if name.startswith("xaxis"):
            axis |= dict(tickvals=values, ticktext=values)
    return figure


def legend_above(lines: int = 1) -> int:
    """Pixels that a legend of so many lines takes above the curves."""
    return 30 + 22 * lines


def finish(spec: dict[str, Any], height: int, top: int | None = None, bottom: int = _TITLE_BELOW) -> Figure:
    """What all figures share: size, margins, readable type; no dragging and no zoom, for a phone to scroll past.

    Takes the plain form, a dict of data and layout, and changes it. Where labels, titles or a legend take more room
    than the margins leave, Plotly makes it, but draws everything twice for it: so the margins are rather too wide.

    It would also draw twice for Streamlit, which gives it each figure again as soon as it is drawn: with a template
    (Streamlit's theme is one) it takes that for another figure, without one and with a `datarevision` for the same.
    So the figure has colours of its own, for paper; on the screen `ui.page` takes those of the page for words and
    background.
    """
    layout = spec["layout"]
    for name in layout:
        if name.startswith(("xaxis", "yaxis")):
            title = _title_of(layout[name])
            axis = _AXIS | (_UPRIGHT if name[0] == "x" else {}) | layout[name]
            for line, drawn in (("gridcolor", "showgrid"), ("zerolinecolor", "zeroline")):
                axis |= {line: _FAINT} if axis.get(drawn, True) else {}
            layout[name] = axis
            layout[name]["title"] = dict(font=dict(size=TITLE_FONT), standoff=21 if name[0] == "x" else 25) | title
            if not title.get("text"):  # an empty one would be given room
                del layout[name]["title"]
    for annotation in layout.get("annotations", ()):
        annotation.setdefault("font", dict(size=TITLE_FONT))
    layout |= dict(
        height=height,
        margin=dict(l=_room_at_the_left(layout), r=20, t=top or legend_above(), b=bottom, pad=8),
        dragmode=False,
        hoverlabel=dict(font=dict(size=TICK_FONT, family=_FAMILY, color="white"), bgcolor=_INK, bordercolor=MUTED),
        font=dict(size=TICK_FONT, family=_FAMILY, color=_INK),
        datarevision=0,
    )
    return Figure(spec)


def _room_at_the_left(layout: Mapping[str, Any]) -> int:
    """Pixels that labels and titles at the left edge take."""
    room = 8
    for name, axis in layout.items():
        if (
            name.startswith("yaxis")
            and layout.get(f"xaxis{axis.get('anchor', 'x')[1:]}", {}).get("domain", [0])[0] == 0
        ):
            labels = axis.get("ticktext", ["0.250"]) if axis.get("showticklabels", True) else []
            widest = max(map(_width, labels), default=0)
            room = max(room, 8 + round(widest) + _TITLE_BESIDE * ("title" in axis))
    return room


def _width(text: str) -> float:
    """About how many pixels a tick label takes; Chinese and Japanese letters are twice as wide as others."""
    text = re.sub(r"<[^<>]*>", "", text)  # what makes it bold
    wide = {letter for letter in text if unicodedata.east_asian_width(letter) in "WF"}
    return sum(_DIGIT if letter.isdigit() else _LETTER * (1 + (letter in wide)) for letter in text)


def enlarged(figure: Figure) -> Figure:
    """The same figure for a projector: type a quarter larger and of 18 px at least, and not too low."""
    spec = _larger_type(figure.to_plotly_json())
    layout = spec["layout"]
    height = layout["height"]
    one_map = "coloraxis" in layout and len(layout.get("annotations", ())) <= 1
    larger = min(1.25 * height, 560) if one_map else 1.25 * height  # a map has room for larger type
    layout["height"] = max(height, round(larger), 430)
    layout["margin"] |= {side: round(1.25 * layout["margin"][side]) for side in ("l", "t", "b")}
    return Figure(spec)


def _larger_type(part: Any, inside: str = "") -> Any:
    """A part of a figure with larger sizes in everything that is called a font."""
    if isinstance(part, dict):
        return {name: _larger_type(value, f"{inside}.{name}") for name, value in part.items()}
    if isinstance(part, (list, tuple)) and part and isinstance(part[0], dict):
        return [_larger_type(each, inside) for each in part]
    return max(18, round(1.25 * part)) if inside.endswith("font.size") else part


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


def _ticks(names: Sequence[str], *, places_only: bool = False, most: int = _MAX_TICKS) -> dict[str, Any]:
    """A category axis that never guesses dates, with at most `most` short labels; the full name is on hover."""
    places = range(0, len(names), -(-len(names) // most))
    return dict(
        type="category",
        tickvals=axis_names([names[place] for place in places]),
        ticktext=[str(place + 1) if places_only else escape(shorten(names[place], _LABEL_LENGTH)) for place in places],
        showgrid=False,
        zeroline=False,
    )


def _number_axis(title: str, **more: Any) -> dict[str, Any]:
    return dict(title=_title(title)) | more


def _title(text: str) -> dict[str, Any]:
    return dict(text=text, font=dict(size=TITLE_FONT))


def _title_of(axis: dict[str, Any]) -> dict[str, Any]:
    title = axis.get("title") or {}
    return dict(text=title) if isinstance(title, str) else title


def _heading(text: str, x: float, y: float) -> dict[str, Any]:
    """The title of one map of several, just above it; x and y in shares of the figure."""
    return dict(
        text=escape(text), x=x, y=y, xref="paper", yref="paper", xanchor="center", yanchor="bottom", showarrow=False
    )


def _frame(row: int, columns: int) -> dict[str, Any]:
    corners = dict(x0=-0.5, x1=columns - 0.5, y0=row - 0.5, y1=row + 0.5)
    return dict(type="rect", line=dict(color=HIGHLIGHT, width=4)) | corners


def _cells(
    values: Array, names: Sequence[str], row_names: Sequence[str], x_title: str, y_title: str, title: str, decimals: int
) -> dict[str, Any]:
    """One heatmap with numbers in its cells."""
    gap = 1 if max(values.shape) <= 32 else 0
    return dict(
        type="heatmap",
        z=values.astype(np.float32),
        x=axis_names(names),
        y=axis_names(row_names),
        coloraxis="coloraxis",
        texttemplate=f"%{{z:.{decimals}f}}",
        textfont=dict(size=TICK_FONT),
        hovertemplate=f"{y_title} %{{y}}<br>{x_title} %{{x}}<br>%{{z:.4f}}<extra>{escape(title)}</extra>",
        xgap=gap,
        ygap=gap,
    )


def _colours(kind: str, end: float, unit: str) -> dict[str, Any]:
    """The colour scale, with its bar above the map, so that a phone's width is left to the map."""
    return dict(
        colorscale=SHARES if kind == SHARE else SIGNS,
        cmin=0 if kind == SHARE else -end,
        cmax=end,
        colorbar=dict(
            title=dict(text=unit, side="top", font=dict(size=TICK_FONT)),
            orientation="h",
            y=0.999,  # from 1 on, Plotly moves the axis title up among the tick labels, as if it were the figure's
            yanchor="bottom",
            thickness=12,
            len=1,
            xpad=0,
            outlinewidth=0,
            ticklabeloverflow="allow",
        ),
    )


def _share(place: int, count: int, gap: float) -> tuple[float, float]:
    """The part of a side, between 0 and 1, that one of `count` equal panels takes."""
    gap = min(gap, 0.4 / count)
    size = (1 - gap * (count - 1)) / count
    start = place * (size + gap)
    return start, min(1.0, start + size)
