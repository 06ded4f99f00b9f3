"""The numbers of a figure as tables, for those who read them rather than see them."""

import html
import re
from typing import Any

import numpy as np
import pandas as pd

from ui.figures import Figure


def tables(figure: Figure) -> dict[str, pd.DataFrame]:
    """A table for each matrix of a figure, and one for all its curves or bars over the same places, by name.

    Empty for a figure without numbers, such as a diagram. What is only written beside something else is left out.
    """
    spec = figure.spec
    found: dict[str, pd.DataFrame] = {}
    for place, trace in enumerate(spec["data"], start=1):
        if trace["type"] == "heatmap":
            found[_name(trace) or ("The map" if len(spec["data"]) == 1 else f"Map {place}")] = _matrix(trace)
        elif trace.get("hoverinfo") != "skip":
            _add_series(found, trace, spec["layout"], place)
    return found


def four_digits(frame: pd.DataFrame) -> pd.DataFrame:
    """Have `page.table` show four digits of each number: where four decimals would make 0 of a small one."""
    frame.attrs["format"] = "%.4g"
    return frame


def _matrix(trace: dict[str, Any]) -> pd.DataFrame:
    values = np.asarray(trace["z"], dtype=float)
    rows, columns = (trace.get(side, range(1, count + 1)) for side, count in zip("yx", values.shape, strict=True))
    return pd.DataFrame(values, index=_plain(rows), columns=_plain(columns))


def _add_series(found: dict[str, pd.DataFrame], trace: dict[str, Any], layout: dict[str, Any], place: int) -> None:
    """Put a curve or bars beside those over the same places of the same axis, or into a table of their own."""
    over, of = ("y", "x") if trace.get("orientation") == "h" else ("x", "y")
    axis = _title(layout, trace, over) or "place"
    measured = _title(layout, trace, of)
    column = " · ".join(part for part in (_name(trace), measured) if part) or "value"
    values = np.asarray(trace[of], dtype=float)
    # Places in equal steps are told by the first of them and the step.
    places = trace[over] if over in trace else trace["x0"] + trace["dx"] * np.arange(len(values))
    series = pd.Series(values, index=pd.Index(_plain(places), name=axis), name=column)
    for name, table in found.items():
        if table.index.name == axis and table.index.equals(series.index) and column not in table:
            found[name] = table.assign(**{column: series})
            return
    name, own = _panel(layout, trace) or axis.capitalize(), series.to_frame()
    if "array" in trace.get("error_y", {}):
        own["±"] = np.asarray(trace["error_y"]["array"], dtype=float)
    found[name if name not in found else f"{name} ({_name(trace) or place})"] = own


def _panel(layout: dict[str, Any], trace: dict[str, Any]) -> str:
    """The heading of the panel that a trace stands in, where each panel has one."""
    headings = layout.get("annotations", ())
    panels = [name for name in layout if name.startswith("yaxis")]
    if len(panels) == 1 or len(headings) != len(panels):
        return ""
    return _strip(headings[int(trace.get("yaxis", "y")[1:] or 1) - 1]["text"])


def _title(layout: dict[str, Any], trace: dict[str, Any], side: str) -> str:
    """The title of a trace's axis, or of the last axis on that side that has one (panels share it)."""
    own = trace.get(f"{side}axis", side).replace(side, f"{side}axis", 1)
    names = [own, *sorted((name for name in layout if name.startswith(f"{side}axis")), reverse=True)]
    titles = [_text(layout.get(name, {}).get("title")) for name in names]
    return next((title for title in titles if title), "")


def _text(title: Any) -> str:
    return _strip(title.get("text") or "" if isinstance(title, dict) else title or "")


def _name(trace: dict[str, Any]) -> str:
    """A trace's name, or what stands beside its numbers on hover."""
    extra = re.search(r"<extra>(.*?)</extra>", str(trace.get("hovertemplate") or ""))
    return _strip(trace.get("name") or (extra.group(1) if extra else ""))


def _plain(names: Any) -> list[Any]:
    return [_strip(name) if isinstance(name, str) else name for name in np.asarray(names).tolist()]


def _strip(text: str) -> str:
    """Plotly's text without its marks: plain text again."""
    return html.unescape(re.sub(r"<[^<>]+>", " ", text)).strip()
