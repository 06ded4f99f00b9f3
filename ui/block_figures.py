"""The diagram of a transformer block, and the other figures of its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from core import block
from ui import figures
from ui.figure_tables import four_digits
from ui.words import power_of_ten

Array = np.ndarray

# Across, in hundredths of the width: the boxes' edges, their middle, the lane of the residual connections.
_LEFT, _RIGHT, _MIDDLE, _LANE = 3.0, 77.0, 40.0, 90.0
_THIRDS = (14.5, 40.0, 65.5)
# Down, in pixels.
_LINE, _EDGE, _PLUS = 18, 23, 22
_BRANCH = 9  # below the start of an edge, where a residual connection leaves it
_NAME_SIZE, _SHAPE_SIZE = 16, 14

_LEGEND = dict(orientation="h", y=1.02, yanchor="bottom", x=0)

_NORM, _ATTENTION, _FEED_FORWARD, _PLAIN = "#0D9488", "#3B82F6", "#EA580C", figures.MUTED


def block_diagram(
    seq_len: int, d_model: int, d_ff: int, settings: block.Settings | None = None, *, blocks: int = 1
) -> figures.Figure:
    """A block from top to bottom. Every arrow carries its shape, every box its number of parameters.

    Args:
        blocks: how many such blocks are stacked; a frame says so where there are several.

    Raises:
        ValueError: as in `core.block.tensors`.
    """
    settings = settings or block.Settings()
    pen = _Pen({tensor.name: tensor for tensor in block.tensors(seq_len, d_model, d_ff, settings)})
    pre_norm = settings.norm and settings.order == "pre-norm"
    post_norm = settings.norm and not pre_norm
    pen.text("Input x")
    top, entered = pen.y + 3, "x"
    for place, sublayer in ((1, _attention), (2, _feed_forward)):
        skipped, start = entered, pen.y
        if pre_norm:
            pen.edge(entered, branch=settings.residual)
            pen.box(["LayerNorm"], _NORM)
            entered = f"after norm {place}"
        entered = sublayer(pen, entered, settings, settings.residual and not pre_norm)
        if settings.residual:
            pen.edge(entered)
            pen.plus(start + _BRANCH, skipped)
            entered = f"after add {place}"
        if post_norm:
            pen.edge(entered)
            pen.box(["LayerNorm"], _NORM)
            entered = f"after norm {place}"
    if blocks > 1:
        pen.frame(top, f"× {blocks} blocks")
    if pre_norm:
        pen.edge(entered)
        pen.box(["Final LayerNorm"], _NORM)
    pen.edge(entered)
    pen.text("Output")
    return pen.figure()


def _attention(pen: "_Pen", entered: str, settings: block.Settings, branch: bool) -> str:
    """What is inside the attention sublayer; returns the name of the tensor that leaves it."""
    pen.fan_in(entered, branch)
    pen.thirds([(f"W<sub>{name[0].upper()}</sub>", name) for name in ("queries", "keys", "values")])
    pen.fan_out(("queries", "keys", "values"))
    heads = f"{settings.heads} head{'s' * (settings.heads > 1)}"
    kind = "Causal attention" if settings.causal else "Attention"
    pen.box([f"{kind}, {heads}", f"attention weights {pen.shape('weights')}"], _ATTENTION)
    leaving = "concatenated heads" if settings.heads > 1 else "mixed values"
    if settings.output_projection:
        pen.edge(leaving)
        leaving = "output projection"
        pen.box(["Output projection W<sub>O</sub>"], _ATTENTION, made_here=leaving)
    return leaving


def _feed_forward(pen: "_Pen", entered: str, settings: block.Settings, branch: bool) -> str:
    """What is inside the feed-forward sublayer; returns the name of the tensor that leaves it."""
    activation = {"relu": "ReLU", "gelu": "GELU"}[settings.activation]
    pen.edge(entered, branch=branch)
    pen.box([f"Feed-forward: W<sub>1</sub>, b<sub>1</sub>, {activation}"], _FEED_FORWARD, made_here="hidden layer")
    pen.edge("hidden layer")
    pen.box(["Feed-forward: W<sub>2</sub>, b<sub>2</sub>"], _FEED_FORWARD, made_here="feed-forward output")
    return "feed-forward output"


@dataclass
class _Pen:
    """Draws from top to bottom; y is how far down it has come, in pixels."""

    made: Mapping[str, block.Tensor]
    y: float = 4
    box_middle: float = 0  # of the box drawn last
    shapes: list[dict[str, object]] = field(default_factory=list)
    annotations: list[dict[str, object]] = field(default_factory=list)

    def shape(self, name: str) -> str:
        return _times(self.made[name].shape)

    def text(self, words: str) -> None:
        self._write(f"<b>{words}</b>", _MIDDLE, self.y + _LINE / 2, _NAME_SIZE)
        self.y += _LINE + 3

    def box(self, lines: Sequence[str], colour: str, made_here: str | None = None) -> None:
        """A box over the whole width, with the parameters of the tensor that is made in it; without one it has none."""
        count = _counted(self.made[made_here].parameters if made_here else 0)
        said = [f"<b>{lines[0]}</b>", *lines[1:], count]
        if len(said) == 2 and len(lines[0]) < 16:  # short enough for one line on a phone
            said = [" · ".join(said)]
        self._boxed(said, _LEFT, _RIGHT, colour)

    def thirds(self, parts: Sequence[tuple[str, str]]) -> None:
        """Three boxes side by side; each with its name and the tensor that is made in it."""
        top = self.y
        for middle, (name, tensor) in zip(_THIRDS, parts, strict=True):
            self.y = top
            said = [f"<b>{name}</b>", *_counted(self.made[tensor].parameters).split(" ")]
            self._boxed(said, middle - 11.5, middle + 11.5, _ATTENTION)

    def edge(self, tensor: str, *, branch: bool = False) -> None:
        """An arrow down with the shape of what flows; a residual connection may leave it."""
        words = ("joined: " if tensor == "concatenated heads" else "") + self.shape(tensor)
        start = self.y
        self.y += _EDGE + _BRANCH * branch
        self._arrow(_MIDDLE, start, self.y)
        self._label(words, _MIDDLE, (start + self.y + _BRANCH * branch) / 2 - 2)

    def fan_in(self, tensor: str, branch: bool) -> None:
        """An edge that parts in three."""
        start = self.y
        bus = start + 25 + _BRANCH * branch
        self.y = bus + 14
        self._line([(_MIDDLE, start), (_MIDDLE, bus)])
        self._line([(_THIRDS[0], bus), (_THIRDS[2], bus)])
        for middle in _THIRDS:
            self._arrow(middle, bus, self.y)
        self._label(self.shape(tensor), _MIDDLE, start + 12 + _BRANCH * branch)

    def fan_out(self, tensors: Sequence[str]) -> None:
        """Three arrows, one from each third."""
        start = self.y
        self.y += _EDGE
        for middle, tensor in zip(_THIRDS, tensors, strict=True):
            self._arrow(middle, start, self.y)
            self._label(self.shape(tensor), middle, (start + self.y) / 2 - 2)

    def plus(self, lane_top: float, skipped: str) -> None:
        """The sum of what comes down and what came by the lane from `lane_top`, where it left the middle."""
        self.y += _PLUS / 2
        label = self.box_middle  # beside a box, where no other shape stands
        gap = 10  # the lane is open where its shape stands
        self.shapes.append(_circle(_MIDDLE, lane_top, 4, filled=True))
        self._line([(_MIDDLE, lane_top), (_LANE, lane_top), (_LANE, label - gap)], residual=True)
        self._line([(_LANE, label + gap), (_LANE, self.y)], residual=True)
        self._arrow(_LANE, self.y, self.y, end=_MIDDLE, standoff=_PLUS / 2, residual=True)
        self._label(self.shape(skipped), _LANE, label, centred=True)
        self.shapes.append(_circle(_MIDDLE, self.y, _PLUS / 2))
        self._write("<b>+</b>", _MIDDLE, self.y, 20)
        self.y += _PLUS / 2

    def frame(self, top: float, words: str) -> None:
        """A dashed frame from `top` to here."""
        self.y += 5
        self.shapes.append(
            dict(type="rect", x0=0.5, x1=99.5, y0=top, y1=self.y, line=dict(color=_PLAIN, width=2, dash="dash"))
        )
        self._write(f"<b>{words}</b>", 2, top + 11, _SHAPE_SIZE, xanchor="left")

    def figure(self) -> figures.Figure:
        height = round(self.y + 4)
        hidden: dict[str, object] = dict(visible=False, fixedrange=True)
        layout = dict(
            shapes=self.shapes,
            annotations=self.annotations,
            xaxis=hidden | dict(range=[0, 100]),
            yaxis=hidden | dict(range=[height, 0]),
        )
        figure = figures.finish(dict(data=[], layout=layout), height)
        figure.spec["layout"]["margin"] = dict(l=0, r=0, t=0, b=0)
        return figure

    def _boxed(self, lines: Sequence[str], left: float, right: float, colour: str) -> None:
        height = _LINE * len(lines) + 6
        shape = dict(type="rect", x0=left, x1=right, y0=self.y, y1=self.y + height)
        self.shapes.append(shape | dict(line=dict(color=colour, width=2), fillcolor=_tint(colour)))
        self._write("<br>".join(lines), (left + right) / 2, self.y + height / 2, _NAME_SIZE - 1)
        self.box_middle = self.y + height / 2
        self.y += height

    def _label(self, words: str, x: float, y: float, *, centred: bool = False) -> None:
        self._write(words, x, y, _SHAPE_SIZE, xanchor="center" if centred else "left", xshift=0 if centred else 6)

    def _write(self, words: str, x: float, y: float, size: int, **more: object) -> None:
        self.annotations.append(dict(text=words, x=x, y=y, showarrow=False, font=dict(size=size)) | more)

    def _line(self, points: Sequence[tuple[float, float]], *, residual: bool = False) -> None:
        path = "M" + " L".join(f"{x},{y}" for x, y in points)
        self.shapes.append(dict(type="path", path=path, line=_stroke(residual)))

    def _arrow(
        self, x: float, start: float, y: float, *, end: float | None = None, standoff: float = 1, residual: bool = False
    ) -> None:
        self.annotations.append(
            dict(
                x=x if end is None else end,
                y=y,
                ax=x,
                ay=start,
                axref="x",
                ayref="y",
                text="",
                arrowhead=2,
                arrowsize=1.1,
                arrowwidth=2,
                standoff=standoff,
                arrowcolor=_stroke(residual)["color"],
                font=dict(size=_SHAPE_SIZE),
            )
        )


def _counted(parameters: int) -> str:
    return f"{parameters:,} parameter{'s' * (parameters != 1)}"


def _stroke(residual: bool) -> dict[str, object]:
    return dict(color="#C026D3" if residual else _PLAIN, width=2.5 if residual else 2)


def _tint(colour: str) -> str:
    """A colour so thin that text of the page's colour stands out on it, on white and on black."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def _circle(x: float, y: float, radius: float, *, filled: bool = False) -> dict[str, object]:
    """A circle of so many pixels, whatever the width of the figure."""
    around = dict(xsizemode="pixel", ysizemode="pixel", x0=-radius, x1=radius, y0=-radius, y1=radius)
    colour = str(_stroke(True)["color"])
    look = dict(line=dict(color=colour, width=2), fillcolor=colour if filled else _tint(colour))
    return dict(type="circle", xanchor=x, yanchor=y) | around | look


def stages(shown: block.Block, settings: block.Settings, final: Array | None = None) -> dict[str, Array]:
    """The activations on their way through a block, by title, in order; each (n, d_model).

    Args:
        final: what the norm after the last block makes of the output, where there is one.
    """
    maps = {"1. Input x": shown.x}

    def then(title: str, values: Array) -> None:
        maps[f"{len(maps) + 1}. {title}"] = values

    pre_norm = settings.norm and settings.order == "pre-norm"
    steps = ["add"] * settings.residual + ["norm"] * (settings.norm and not pre_norm)
    for name, sublayer in (("attention", shown.attention), ("feed-forward", shown.feed_forward)):
        if pre_norm:
            then("After norm", sublayer.entered)
        then(f"After {name}", sublayer.computed)
        if steps:
            then(f"After {' & '.join(steps)}", sublayer.left)
    title, values = maps.popitem()
    maps[f"{title}: the block's output"] = values
    if final is not None:
        then("After the final norm: the stack's output", final)
    return maps


def stage_maps(maps: Mapping[str, Array], tokens: Sequence[str]) -> figures.Figure:
    """The activations as heatmaps below each other, all on one scale. In small ones the numbers where they fit."""
    figure = _signed_maps(maps, tokens)
    if max(next(iter(maps.values())).shape) <= figures.CELL_TEXT_UP_TO:
        for trace in figure.spec["data"]:
            trace["texttemplate"] = "%{z:.2f}"
            trace["textfont"] = {}  # as large as the cell lets it be, and left out where it does not fit
    return figure


def norm_axes(layer: Array, batch: Array, tokens: Sequence[str]) -> figures.Figure:
    """One matrix after LayerNorm and after BatchNorm, with a frame around what is averaged over. Each (n, d_model)."""
    rows, columns = layer.shape
    figure = _signed_maps({"LayerNorm: each row by itself": layer, "BatchNorm: each column by itself": batch}, tokens)
    frame = dict(type="rect", x0=-0.5, y0=-0.5, line=dict(color=figures.HIGHLIGHT, width=4 if rows <= 32 else 2))
    row, column = dict(x1=columns - 0.5, y1=0.5), dict(x1=0.5, y1=rows - 0.5, xref="x2", yref="y2")
    figure.spec["layout"]["shapes"] = [frame | row, frame | column]
    return figure


def _signed_maps(maps: Mapping[str, Array], tokens: Sequence[str]) -> figures.Figure:
    rows, columns = next(iter(maps.values())).shape
    # Without norms the numbers leave the range of float32, and of what fits a cell.
    largest = max(float(np.abs(values).max()) for values in maps.values())
    power = int(np.floor(np.log10(largest))) if largest and not 0.001 <= largest < 1000 else 0
    height = 160 + max(450, len(maps) * (72 + max(135, min(272, 17 * rows))))
    figure = figures.heatmap_grid(
        {title: values / 10.0**power for title, values in maps.items()},
        x=[str(place) for place in range(1, columns + 1)],
        y=tokens,
        x_title="dimension",
        y_title="token",
        unit=f"value, in units of {power_of_ten(power)}" if power else "value",
        kind=figures.SIGNED,
        height=height,
    )
    figure.spec["layout"]["coloraxis"]["colorbar"]["ypad"] = 34  # above the first title
    return figure


def mean_and_spread_chart(before: Array, after: Array, tokens: Sequence[str]) -> figures.Figure:
    """Each token's mean as a mark and its spread as a bar to both sides. Args: before, after LayerNorm (n, d_model)."""
    data, places = [], np.arange(len(tokens))
    for side, (name, x) in enumerate((("before LayerNorm", before), ("after LayerNorm", after))):
        mean, spread = (numbers.astype(np.float32) for numbers in block.mean_and_spread(x))
        colour = figures.COLOURS[side]
        data.append(
            dict(
                type="scatter",
                mode="markers",
                name=name,
                x=(places + 0.24 * side - 0.12).astype(np.float32),
                y=mean,
                error_y=dict(array=spread, color=colour, thickness=3 - side, width=4),
                marker=dict(symbol=figures.MARKERS[side], size=9, color=colour),
                text=figures.axis_names(tokens),
                customdata=spread,
                hovertemplate="token %{text}<br>mean %{y:.3f}<br>spread %{customdata:.3f}<extra>" + name + "</extra>",
            )
        )
    shown = places[:: -(-len(places) // 16)].tolist()
    tokens_axis = dict(
        title="token",
        tickvals=shown,
        ticktext=[figures.escape(figures.shorten(tokens[place], 10)) for place in shown],
        range=[-0.6, len(tokens) - 0.4],
        showgrid=False,
        zeroline=False,
    )
    layout = dict(xaxis=tokens_axis, yaxis=dict(title="mean ± spread", zeroline=True), legend=_LEGEND)
    return figures.finish(dict(data=data, layout=layout), 340)


def depth_chart(depths: Mapping[str, block.Depth], shown: int, final: float | None = None) -> figures.Figure:
    """Spread of the activations (logarithmic) and alikeness of the tokens, block by block, 0 being the input.

    Args:
        depths: curves by name, all over the same blocks. shown: the block that the other pictures show.
        final: the spread after the norm that follows the last block, where there is one.
    """
    data: list[dict[str, Any]] = []
    for place, (name, depth) in enumerate(depths.items()):
        for quantity, values, axis in (("spread", depth.spread, "y"), ("alikeness", depth.alikeness, "y2")):
            data.append(
                dict(
                    type="scatter",
                    mode="lines+markers",
                    name=name,
                    legendgroup=name,
                    showlegend=axis == "y",
                    x=np.arange(len(values)),
                    y=values,  # float64: without norms the spread leaves the range of float32
                    yaxis=axis,
                    line=dict(color=figures.COLOURS[place], dash=figures.DASHES[place], width=3),
                    marker=dict(symbol=figures.MARKERS[place], size=8),
                    hovertemplate=f"block %{{x}}<br>{quantity} %{{y:.4g}}<extra>{name}</extra>",
                )
            )
    last = len(data[0]["x"]) - 1
    if final is not None:
        data.append(
            dict(
                type="scatter",
                mode="markers",
                name="after the final norm",
                x=[last],
                y=[final],
                marker=dict(symbol="star", size=16, color=figures.HIGHLIGHT, line=dict(color=figures.MUTED, width=1)),
                hovertemplate="after the final norm<br>spread %{y:.4g}<extra></extra>",
            )
        )
    spreads = np.concatenate([depth.spread for depth in depths.values()])
    lowest = min(0.0, *(np.nan_to_num(depth.alikeness).min() for depth in depths.values()))
    layout = dict(
        xaxis=dict(
            title="block (0: the input)",
            anchor="y2",
            range=[-0.3, last + 0.3],
            dtick=1 if last <= 8 else 4,
            zeroline=False,
        ),
        yaxis=_powers_axis(spreads) | dict(title="spread", domain=[0.44, 1]),
        yaxis2=dict(title="alikeness", domain=[0, 0.36], range=[lowest - 0.05, 1.05]),
        legend=_LEGEND,
        shapes=[
            dict(
                type="line",
                yref="paper",
                x0=shown,
                x1=shown,
                y0=0,
                y1=1,
                line=dict(color=figures.MUTED, dash="dot", width=2),
            )
        ]
        * (last > 1),
    )
    return figures.finish(dict(data=data, layout=layout), 460, top=60)


def gradient_chart(lengths: Mapping[str, Array]) -> figures.Figure:
    """How long the gradient is at the input of each block, on a logarithmic scale, one line for each name.

    Args:
        lengths: (blocks,) each. What is 0, infinite or NaN has no place on the scale and is left out.
    """
    data, blocks = [], len(next(iter(lengths.values())))
    for place, (name, values) in enumerate(lengths.items()):
        data.append(
            dict(
                type="scatter",
                mode="lines+markers",
                name=name,
                x=np.arange(1, blocks + 1),
                y=np.where(_drawable(values), values, np.nan),  # float64: it leaves the range of float32
                line=dict(color=figures.COLOURS[place], dash=figures.DASHES[place], width=3),
                marker=dict(symbol=figures.MARKERS[place], size=8),
                hovertemplate="input of block %{x}<br>gradient %{y:.4g}<extra>" + name + "</extra>",
            )
        )
    layout = dict(
        xaxis=dict(title="input of block", range=[0.7, blocks + 0.3], dtick=1 if blocks <= 8 else 4, zeroline=False)
        | (dict(tick0=1) if blocks <= 8 else dict(tick0=0)),
        yaxis=_powers_axis(np.concatenate(list(lengths.values()))) | dict(title="length of the gradient"),
        legend=_LEGEND,
    )
    return figures.finish(dict(data=data, layout=layout), 400, top=84)


def _drawable(values: Array) -> Array:
    """True where a logarithmic axis has a place for the value."""
    return np.isfinite(values) & (values > 0)


def _powers_axis(values: Array) -> dict[str, Any]:
    """A logarithmic axis from the smallest to the largest value that it can show; never less than two powers of ten."""
    powers = np.log10(values[_drawable(values)])
    low, high = powers.min(initial=-1), powers.max(initial=1)
    margin = 0.05 * (high - low)
    return dict(
        type="log",
        range=[low - margin, high + margin],
        dtick=max(1, round((high - low) / 6)),
        exponentformat="power",
    )


def depth_table(depth: block.Depth) -> pd.DataFrame:
    """Spread and alikeness after each block; the spread may be far from 1."""
    return four_digits(pd.DataFrame({"spread": depth.spread, "alikeness": depth.alikeness}))


def gradient_table(lengths: Mapping[str, Array]) -> pd.DataFrame:
    """The lengths of the gradient at the input of each block."""
    blocks = range(1, len(next(iter(lengths.values()))) + 1)
    return four_digits(pd.DataFrame(lengths, index=blocks))


def tensor_table(tensors: Sequence[block.Tensor]) -> pa.Table:
    """The table of tensors, with the totals below."""
    parameters = [tensor.parameters for tensor in tensors]
    multiply_adds = [tensor.multiply_adds for tensor in tensors]
    columns = {
        "tensor": [*(tensor.name for tensor in tensors), "total"],
        "shape": [*(_times(tensor.shape) for tensor in tensors), ""],
        "parameters": [f"{count:,}" for count in (*parameters, sum(parameters))],
        "multiply-adds": [f"{count:,}" for count in (*multiply_adds, sum(multiply_adds))],
        "made by": [*(tensor.made_by for tensor in tensors), ""],
    }
    return pa.table(columns)  # which Streamlit takes as it is: a table of pandas takes it eight times as long


def _times(shape: Sequence[int]) -> str:
    return " × ".join(str(size) for size in shape)
