"""The scripts to take away: run by a Python that knows numpy alone, they give every array of their page."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import block, draws, gradients
from tests.conftest import ROOT
from tests.pages.charts import open_page
from ui import page
from ui.block_words import with_and_without
from ui.control_kinds import Settings
from ui.scripts import SCRIPTS
from ui.scripts.writing import notebook

TYPED = "the cat saw “the” cat, don't: it's 'odd' \\ \"quoted\" 猫 👩‍👩‍👧 </script> {x} %% # end"
SETTINGS: dict[str, list[dict[str, str]]] = {
    "recurrence": [
        {},
        {"seq_len": "2", "d_model": "4"},
        {"seq_len": "5", "d_model": "6", "seed": "9999"},
        {"seq_len": "256", "d_model": "128", "gain": "0.1"},
        {"seq_len": "256", "d_model": "128", "gain": "2.5", "weight_scale": "1"},
        {"sentence": TYPED, "d_model": "30", "seed": "7"},
        {"sentence": "dog"},
        {"seq_len": "33", "gain": "2", "weight_scale": "0.1", "seed": "3"},
    ],
    "self_attention": [
        {},
        {"seq_len": "2", "d_model": "2", "padding": "2", "temperature": "0.1"},
        {"seq_len": "64", "d_model": "64", "scaling": "false", "weight_scale": "1", "temperature": "0.1"},
        {"causal": "true", "padding": "2", "seed": "42", "query": "5", "stage": "all"},
        {"cross": "true", "padding": "7", "d_model": "10", "temperature": "5"},
        {"sentence": TYPED, "cross": "true", "source": "das “Haus” 猫 'a'", "padding": "1", "query": "3"},
        {"sentence": TYPED, "causal": "true", "d_model": "32", "temperature": "0.7"},
        {"sentence": "dog", "cross": "true", "source_len": "64", "seed": "9999"},
        {"seq_len": "9", "cross": "true", "source": "dog bites man", "scaling": "false"},
    ],
    "positional_encoding": [
        {},
        {"seq_len": "2", "d_model": "2", "permutation": "rotated"},
        {"seq_len": "128", "d_model": "128", "scheme": "table", "seed": "5", "embedding_scale": "5"},
        {"scheme": "rope", "d_model": "17", "causal": "true", "permutation": "shuffled", "seed": "9999"},
        {"scheme": "alibi", "alibi_head": "8", "d_model": "3", "permutation": "first two swapped"},
        {"sentence": TYPED, "scheme": "rope", "d_model": "64", "permutation": "shuffled", "seed": "11"},
        {"sentence": TYPED, "scheme": "none", "d_model": "33", "seed": "2"},
        {"sentence": "dog", "d_model": "9", "embedding_scale": "0.1"},
        {"sentence": "dog bites dog", "scheme": "alibi"},
        {"sentence": "dog bites man", "scheme": "table", "d_model": "127", "causal": "true"},
        {"seq_len": "64", "d_model": "2", "scheme": "rope"},
        {"permutation": "shuffled", "seed": "3", "scheme": "alibi", "causal": "true", "alibi_head": "3"},
    ],
    "multi_head_attention": [
        {},
        {"seq_len": "2", "d_model": "4", "heads": "4", "off": "1,4"},
        {"seq_len": "64", "d_model": "64", "heads": "32", "head": "32", "weight_scale": "1", "causal": "true"},
        {"d_model": "18", "heads": "3", "off": "2", "seed": "9999"},
        {"heads_from": "built by hand", "d_model": "6", "causal": "true", "head": "3"},
        {"heads_from": "built by hand", "sentence": TYPED, "d_model": "36", "off": "1,2,3", "seed": "4"},
        {"sentence": "dog", "d_model": "6", "heads": "1"},
        {"heads_from": "built by hand", "seq_len": "64", "d_model": "64"},
        {"heads_from": "trained", "off": "1", "mark": "12"},
        {"heads_from": "trained", "model": "induction", "layer": "2", "letters": "ABCDABCDABCDABCD"},
        {"heads_from": "trained", "model": "induction", "example": "16", "off": "1"},
    ],
    "transformer_block": [
        {},
        {"seq_len": "2", "d_model": "4", "heads": "4", "d_ff": "4", "norm": "false", "compare": "true"},
        {"blocks": "24", "d_model": "32", "d_ff": "128", "order": "pre-norm", "block": "24", "layer_norm": "second"},
        {"blocks": "3", "activation": "GELU", "output_projection": "true", "causal": "true", "block": "2"},
        {"blocks": "6", "residual": "false", "norm": "false", "weight_scale": "0.1", "compare": "true"},
        {"sentence": TYPED, "blocks": "2", "d_model": "12", "heads": "3", "compare": "true", "seed": "9999"},
        {"seq_len": "64", "d_model": "64", "d_ff": "256", "heads": "8", "order": "pre-norm", "activation": "GELU"},
        {"sentence": "dog", "blocks": "2", "layer_norm": "second"},
        {"blocks": "24", "weight_scale": "1", "d_model": "16", "heads": "2", "output_projection": "true"},
    ],
}
# Runs each script, or each notebook cell by cell, as a program of its own, and keeps its arrays.
RUNNER = """
import contextlib, io, json, sys
import numpy as np
for place, path in enumerate(sys.argv[2:]):
    text = open(path, encoding="utf-8").read()
    made = {"__name__": "__main__"}
    cells = [text]
    if path.endswith(".ipynb"):
        cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for cell in cells:
            exec(compile(cell, path, "exec"), made)
    arrays = {name: value for name, value in made.items() if isinstance(value, np.ndarray)}
    lists = {f"{name}.{i}": v for name, value in made.items() if isinstance(value, list)
             for i, v in enumerate(value) if isinstance(v, np.ndarray)}
    np.savez(f"{sys.argv[1]}/{place}.npz", **arrays, **lists, printed=np.array(printed.getvalue()))
beyond = {name.partition(".")[0] for name in sys.modules} & {"core", "ui", "streamlit", "plotly", "pandas"}
assert not beyond, beyond
"""


@dataclass
class Taken:
    """What a page hands to `page.take_away`."""

    settings: Settings
    arrays: Mapping[str, np.ndarray]
    tables: Mapping[str, pd.DataFrame]


def take(monkeypatch: pytest.MonkeyPatch, name: str, link: dict[str, str]) -> Taken:
    """Open a page and catch what it offers."""
    caught: list[Taken] = []
    monkeypatch.setattr(
        page, "take_away", lambda settings, arrays, tables: caught.append(Taken(settings, made(arrays), made(tables)))
    )
    at = open_page(name, **link)
    assert not at.exception
    assert dict(at.query_params) == link  # the settings are legal as they are
    return caught[-1]


def made(given: Any) -> Any:
    """What was given, or what the given function makes."""
    return given() if callable(given) else given


def run(texts: list[str], folder: Path, ending: str = "py") -> list[dict[str, np.ndarray]]:
    """The arrays that each program leaves behind, in a fresh interpreter without the project on its path."""
    paths = [folder / f"script{place}.{ending}" for place in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-X", "utf8", "-c", RUNNER, str(folder), *map(str, paths)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr
    return [dict(np.load(folder / f"{place}.npz")) for place in range(len(texts))]


def assert_same(made: Mapping[str, np.ndarray], taken: Taken, told: object) -> None:
    assert set(taken.arrays) <= set(made), (told, set(taken.arrays) - set(made))
    for name, array in taken.arrays.items():
        assert made[name].shape == np.shape(array), (told, name)
        if name == "gradient_lengths":
            assert (apart(made[name], array) <= known_to(taken)).all(), (told, name, made[name], array)
        else:
            np.testing.assert_allclose(made[name], array, rtol=1e-9, atol=1e-12, err_msg=f"{told}: {name}")


def known_to(taken: Taken) -> np.ndarray:
    """How well the page's own gradients are known: to 1e-9, or less well where rounding is felt so far.

    Script and core go back through the blocks by different operations. Without norms, 24 blocks can make a hundredth
    of the gradient of the last bit of a number, or all of it: what core gives is then one of many right answers.
    """
    s, x, page_lengths = taken.settings, taken.arrays["x"], taken.arrays["gradient_lengths"]
    kind = block.Settings(s.heads, s.residual, s.norm, s.order, s.activation.lower(), s.output_projection, s.causal)
    direction, generator = gradients.unit_direction(len(x), s.d_model, s.seed), np.random.default_rng(0)

    def last_bits(array: np.ndarray) -> np.ndarray:
        return array * (1 + 4e-16 * generator.choice([-1, 1], array.shape))

    felt = np.zeros(page_lengths.shape)
    for _ in range(3):
        weights = [
            gradients.block_weights(*draws.block_weights(s.d_model, s.d_ff, s.seed, s.weight_scale, block=i))
            for i in range(s.blocks)
        ]
        nearby = [gradients.BlockWeights(*map(last_bits, vars(each).values())) for each in weights]
        lengths = [
            gradients.gradient_lengths(last_bits(x), nearby, other, direction)[: s.blocks]
            for other in with_and_without(kind).values()
        ]
        felt = np.maximum(felt, apart(np.stack(lengths), page_lengths))
    return np.where(felt > 1e-3, np.inf, np.maximum(1e-9, 100 * felt))


def apart(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How far values lie from others, as a share of these; 0 where they are equal, or neither is a finite number."""
    alike = (values == others) | ~(np.isfinite(values) | np.isfinite(others))
    with np.errstate(all="ignore"):
        return np.where(alike, 0, np.nan_to_num(np.abs(values / others - 1), nan=np.inf, posinf=np.inf))


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_gives_the_arrays_of_its_page(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = [take(monkeypatch, name, link) for link in SETTINGS[name]]
    made = run([SCRIPTS[name](each.settings, each.arrays) for each in taken], tmp_path)
    for link, each, arrays in zip(SETTINGS[name], taken, made, strict=True):
        assert_same(arrays, each, link)
        assert str(arrays["printed"]).strip()


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_notebook_runs_cell_by_cell_and_gives_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    links = [SETTINGS[name][0], SETTINGS[name][5]]
    taken = [take(monkeypatch, name, link) for link in links]
    books = [notebook(SCRIPTS[name](each.settings, each.arrays)) for each in taken]
    for link, each, arrays in zip(links, taken, run(books, tmp_path, "ipynb"), strict=True):
        assert_same(arrays, each, link)
    read = json.loads(books[0])
    assert read["nbformat"] == 4
    assert len({cell["id"] for cell in read["cells"]}) == len(read["cells"])
    assert sum(cell["cell_type"] == "markdown" for cell in read["cells"]) >= 4


def test_every_concept_page_has_a_script() -> None:
    pages = {path.stem for path in (ROOT / "pages").glob("*.py")}
    assert set(SCRIPTS) == pages - {"home", "training_lab", "hand_out"}
