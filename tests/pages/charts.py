"""Reading what a page drew: its charts' numbers and its texts."""

import base64
import json
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT

APP = str(ROOT / "app.py")
TIMEOUT = 60


def open_page(name: str, **link: str) -> AppTest:
    """The page `name` as a browser opens it by its link, with these parameters."""
    at = AppTest.from_file(APP, default_timeout=TIMEOUT).run()
    at.switch_page(f"pages/{name}.py")
    for parameter, value in link.items():
        at.query_params[parameter] = value
    return at.run()


def specs(at: AppTest) -> dict[str, dict[str, Any]]:
    """Every chart of the page by its key: Plotly's data and layout, as they went over the wire."""
    found = {}
    for element in at.get("plotly_chart"):
        proto = element.proto
        found[proto.id.rsplit("-", 1)[-1]] = json.loads(proto.spec)
    return found


def array(values: Any) -> np.ndarray:
    """A trace's numbers; Plotly sends arrays as base64."""
    if isinstance(values, dict) and "bdata" in values:
        flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        return flat.reshape([int(n) for n in str(values["shape"]).split(",")]) if "shape" in values else flat
    return np.asarray(values, dtype=float)


def cells(at: AppTest, key: str, trace: int = 0) -> np.ndarray:
    """The numbers of a heatmap."""
    return array(specs(at)[key]["data"][trace]["z"])


def texts(at: AppTest) -> str:
    """All plain text, Markdown and captions of the page, in one string."""
    return "\n".join(element.value for element in [*at.text, *at.markdown, *at.caption])


def control(at: AppTest, name: str) -> Any:
    """The widget of a control; the key of one that depends on others has a number behind the name."""
    widgets = [*at.slider, *at.select_slider, *at.toggle, *at.button_group, *at.number_input, *at.text_input]
    return next(widget for widget in widgets if widget.key and widget.key.split()[0] == name)
