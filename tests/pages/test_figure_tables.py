"""The numbers of every figure can be read as a table, and they are those of the figure."""

import numpy as np
import pandas as pd
import pytest

from tests.pages.charts import array, open_page, specs, texts
from ui.figure_tables import tables
from ui.figures import Figure, bars, heatmap, lines, token_names

# A page with many kinds of figures, and a setting.
PAGES = {
    "recurrence": {},
    "self_attention": {"seq_len": "20", "stage": "all", "sentence": ""},
    "positional_encoding": {"scheme": "rope"},
    "multi_head_attention": {"off": "1"},
    "transformer_block": {"blocks": "3", "compare": "true"},
    "training_lab": {},
}
DRAWINGS = {"diagram"}  # boxes and arrows


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_of_a_page_has_its_numbers_in_tables(page: str) -> None:
    at = open_page(page, **PAGES[page])
    charts = specs(at)
    at.session_state["numbers"] = True
    at.run()
    for key, spec in charts.items():
        at.selectbox(key="numbers_figure").set_value(key).run()
        assert not at.exception
        drawn = {key: figure for part in at.session_state["parts"].values() for key, figure in part.figures.items()}
        made = drawn[key].tables()
        assert bool(made) == (key not in DRAWINGS), key
        shown = np.concatenate([[], *(frame.to_numpy(dtype=np.float32).ravel() for frame in made.values())])
        shown = shown.astype(np.float32)  # as over the wire
        for trace in spec["data"]:
            if trace.get("hoverinfo") == "skip":
                continue
            side = "z" if "z" in trace else "x" if trace.get("orientation") == "h" else "y"
            numbers = np.asarray(array(trace[side]), dtype=np.float32).ravel()
            assert np.isin(numbers[~np.isnan(numbers)], shown).all(), (key, trace.get("name"))


def test_the_table_of_a_map_names_rows_and_columns_as_they_were_typed() -> None:
    names = token_names(["<b>", "a&b"], 2)
    chart = heatmap(np.array([[0.25, 0.75], [1, 0]]), x=names, y=names, x_title="key", y_title="query", unit="weight")
    expected = pd.DataFrame([[0.25, 0.75], [1.0, 0.0]], index=["1 <b>", "2 a&b"], columns=["1 <b>", "2 a&b"])
    pd.testing.assert_frame_equal(tables(chart)["The map"], expected)


def test_curves_over_the_same_places_stand_side_by_side() -> None:
    x = np.arange(3)
    chart = lines({"a": (x, x + 0.5), "b": (x, x * 2)}, x_title="step", y_title="loss")
    (table,) = tables(chart).values()
    assert table.index.name == "step"
    assert table.columns.tolist() == ["a · loss", "b · loss"]
    np.testing.assert_array_equal(table.to_numpy(), [[0.5, 0], [1.5, 2], [2.5, 4]])


def test_bars_that_lie_are_read_the_other_way_round() -> None:
    upright = bars(np.array([1.0, 3.0]), ["1", "2"], x_title="token", y_title="length")
    (table,) = tables(upright).values()
    assert table["length"].tolist() == [1, 3]
    spec = {
        "data": [{"type": "bar", "orientation": "h", "x": [5.0], "y": ["a"]}],
        "layout": {"xaxis": {"title": {"text": "length"}}, "yaxis": {"title": {"text": "token"}}},
    }
    (table,) = tables(Figure(spec)).values()
    assert (table.index.name, table.index[0], table["length"]["a"]) == ("token", "a", 5)


def test_a_drawing_says_that_it_has_none() -> None:
    at = open_page("transformer_block")
    at.session_state["numbers"] = True
    at.run()
    assert at.selectbox(key="numbers_figure").value == "diagram"
    assert "This figure is a drawing" in texts(at)
