"""What a page gives away: the expander, and the files made of arrays, tables, figures and settings."""

import csv
import io
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.pages.charts import open_page, specs
from ui import take_away_files as files
from ui.scripts import SCRIPTS

WORDS = ['"quoted", with a comma', "</script><b>", "猫", "line\nbreak", "é"]


def opened(name: str, **link: str) -> AppTest:
    at = open_page(name, **link)
    at.session_state["take_away"] = True
    at.run()
    assert not at.exception
    return at


@pytest.mark.parametrize("name", SCRIPTS)
def test_nothing_is_made_before_it_is_opened(name: str) -> None:
    at = open_page(name)

    assert "Take it away" in [each.label for each in at.expander]
    assert len(at.code) == 0
    assert len(at.get("download_button")) == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_opened_it_offers_the_script_the_numbers_every_figure_and_the_link(name: str) -> None:
    at = opened(name, sentence="dog bites “man” & me", seed="3")

    link, script = (code.value for code in at.code)
    assert dict(parse_qsl(urlsplit(link).query)) == {"sentence": "dog bites “man” & me", "seed": "3"}
    assert compile(script, name, "exec")
    assert "SEED = 3" in script.splitlines()
    labels = [button.proto.label for button in at.get("download_button")]
    assert labels[:3] == ["Script (.py)", "Notebook (.ipynb)", "All arrays (.npz)"]
    assert labels[-1] == "Figure (.html)"
    assert len(labels) > 4
    assert all(label.endswith("(.csv)") for label in labels[3:-1])
    assert at.selectbox(key="take_away_figure").options == [key.replace("_", " ") for key in specs(at)]


def test_a_figure_that_is_no_longer_drawn_is_no_longer_chosen() -> None:
    at = opened("positional_encoding")
    at.selectbox(key="take_away_figure").set_value("waves").run()

    at.button_group(key="scheme").set_value("none").run()

    assert not at.exception
    assert at.selectbox(key="take_away_figure").value == "encoding"


def test_a_word_that_looks_like_code_stays_a_word() -> None:
    at = opened("self_attention", sentence="""''' \\" {0} %s @X@ @SOURCE@ # %% end""")

    made: dict[str, list[str]] = {}
    exec(compile(at.code[1].value, "script", "exec"), made)
    assert "".join(made["SENTENCE"]) == """'''\\"{0}%s@X@@SOURCE@#%%end"""


def test_all_arrays_can_be_read_back() -> None:
    arrays = {"x": np.arange(6.0).reshape(2, 3), "allowed": np.array([[True, False]])}

    with np.load(io.BytesIO(files.npz(arrays)), allow_pickle=False) as read:
        assert set(read.files) == {"x", "allowed"}
        for name, array in arrays.items():
            assert read[name].dtype == array.dtype
            np.testing.assert_array_equal(read[name], array)


def test_a_table_keeps_its_names_and_all_its_digits() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((5, 5)), index=WORDS, columns=WORDS[::-1])

    read = pd.read_csv(io.BytesIO(files.table_csv(frame)), index_col=0)

    assert list(read.index) == WORDS
    assert list(read.columns) == WORDS[::-1]
    np.testing.assert_array_equal(read.to_numpy(), frame.to_numpy())


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_a_number_on_the_page_is_a_number_in_full_precision_in_its_file(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: dict[str, Callable[[], bytes]] = {}
    monkeypatch.setattr(st, "download_button", lambda label, data, *_, **__: saved.update({label: data}))
    opened(name, blocks="24", norm="false", seq_len="24", gain="0.3")

    tables = {label: make().decode("utf-8-sig") for label, make in saved.items() if label.endswith("(.csv)")}
    assert tables
    for label, text in tables.items():
        _, *rows = csv.reader(io.StringIO(text), quoting=csv.QUOTE_NONNUMERIC)  # what is not quoted is a number
        numbers = np.array([row[1:] for row in rows])
        assert numbers.dtype == float, label
        if label != "Guessed positions (.csv)":
            assert (numbers != [[float(f"{number:.6g}") for number in row] for row in numbers]).any(), label


def test_a_figure_is_one_page_in_which_words_stay_words() -> None:
    chart = go.Figure(go.Bar(x=["</script><script>alert(1)</script>"], y=[1]))

    page = files.html(chart, "A & B", "<script>alert(2)</script>", "http://here/?a=1&b=<c>").decode()

    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<h1>A &amp; B</h1>" in page
    assert 'src="http' not in page  # plotly.js is in it
    assert len(page) > 1_000_000
    assert chart.layout.template != go.Figure(chart).update_layout(template="plotly_white").layout.template


def test_names_of_files_say_page_and_settings() -> None:
    assert files.file_name("recurrence", {}) == "recurrence"
    assert files.file_name("self_attention", {"seq_len": "7", "temperature": "0.5"}, "map") == (
        "self_attention_map_seq_len-7_temperature-0.5"
    )
    odd = files.file_name("home", {"sentence": "../a b\\c\0:x"})
    assert odd == "home_sentence-..-a-b-c-x"
    assert not set(odd) & set('/\\:*?"<>|\0 ')


def test_a_setting_that_finds_no_room_in_the_name_is_left_out_whole() -> None:
    link = {f"setting_{place}": "12345" for place in range(20)} | {"sentence": "x" * 500, "blocks": "24"}
    name = files.file_name("transformer_block", link, "Length of the gradient at the input of each block")
    assert 80 < len(name) <= 100
    assert name.startswith("transformer_block_Length-of-the-gradient-at-the-input-of-each-block_setting_0-12345")
    assert all(f"_setting_{place}-12345" in name or f"setting_{place}" not in name for place in range(20))
    assert files.file_name("home", {"sentence": "x" * 500, "seed": "3"}) == "home_seed-3"


def test_the_link_holds_the_settings() -> None:
    assert files.url("http://here/page", {}) == "http://here/page"
    assert files.url("http://here/page?old=1", {"sentence": "a & b"}) == "http://here/page?sentence=a+%26+b"
