"""Every figure is one that Plotly knows: on its way to the page nobody checks it."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.pages.charts import open_page, specs
from ui import figures

LINKS: tuple[tuple[str, dict[str, str]], ...] = (
    ("recurrence", {}),
    ("recurrence", {"seq_len": "40", "gain": "0.1"}),
    ("self_attention", {"stage": "all"}),
    ("self_attention", {"seq_len": "40", "cross": "true", "stage": "all"}),
    ("positional_encoding", {}),
    ("positional_encoding", {"scheme": "table", "seq_len": "70"}),
    ("positional_encoding", {"scheme": "rope"}),
    ("positional_encoding", {"scheme": "alibi"}),
    ("multi_head_attention", {"off": "1"}),
    ("multi_head_attention", {"heads_from": "built by hand", "seq_len": "40"}),
    ("multi_head_attention", {"heads_from": "trained"}),
    ("transformer_block", {"blocks": "3", "compare": "true"}),
    ("transformer_block", {"order": "pre-norm", "seq_len": "40", "d_model": "32"}),
    ("training_lab", {}),
)


@pytest.mark.parametrize(("name", "link"), LINKS, ids=lambda part: part if isinstance(part, str) else ",".join(part))
def test_plotly_knows_every_part_of_every_figure(name: str, link: dict[str, str]) -> None:
    for key, spec in specs(open_page(name, **link)).items():
        checked = json.loads(go.Figure(spec).to_json())  # raises ValueError with the part that it does not know
        # A name of a colour scale would stand here as its colours, which plotly.js has not always under that name.
        assert _parts(checked) == _parts(spec), key


def test_plotly_is_told_that_a_figure_given_again_is_the_same() -> None:
    """With a template, or without a `datarevision`, it draws each figure twice: Streamlit gives it again at once."""
    for name, link in LINKS:
        for key, spec in specs(open_page(name, **link)).items():
            assert "template" not in spec["layout"], key
            assert spec["layout"]["datarevision"] == 0, key


def _parts(value: Any) -> Any:
    """A figure without the template that Plotly for Python gives it, and without what is empty."""
    if isinstance(value, dict):
        parts = {name: _parts(inner) for name, inner in value.items() if name != "template"}
        return {name: inner for name, inner in parts.items() if inner not in ({}, [], None)}
    return [_parts(each) for each in value] if isinstance(value, list) else value


def test_a_figure_that_is_looked_into_goes_over_the_wire_as_before() -> None:
    values = np.linspace(-1, 1, 12).reshape(3, 4)
    names = ["1", "2", "3", "4"]
    figure = figures.heatmap(values, x=names, y=names[:3], x_title="x", y_title="y", unit="u", kind=figures.SIGNED)
    plain = figure.to_dict()
    assert figure.layout.height == plain["layout"]["height"]  # now Plotly has checked it
    checked = figure.to_dict()
    assert checked["data"][0]["z"] == plain["data"][0]["z"]
    assert go.Figure(checked) == go.Figure(plain)


def test_a_figure_says_what_it_does_not_have() -> None:
    figure = figures.finish(dict(data=[], layout={}), 100)
    with pytest.raises(AttributeError, match="nothing"):
        _ = figure.nothing
    with pytest.raises(ValueError, match="Invalid property"):
        _ = figures.finish(dict(data=[], layout=dict(tilte="")), 100).layout
