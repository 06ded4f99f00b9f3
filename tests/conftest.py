"""What every test may use: where the project and the reference data stand."""

import json
import os
from pathlib import Path
from typing import Any

# Before numpy is loaded: on matrices this small, a second thread costs more than it brings.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything under tests/browser needs a browser: mark it, so that -m 'not browser' leaves it out."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "browser"):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def lesson() -> dict[str, Any]:
    """Every array that the lesson's three listings compute, by listing and name."""
    return json.loads((DATA / "lesson_values.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def torch_reference() -> dict[str, dict[str, np.ndarray]]:
    """PyTorch's figures by case and array; data/make_torch_reference.py made them and tells what there is."""
    cases: dict[str, dict[str, np.ndarray]] = {}
    with np.load(DATA / "torch_reference.npz") as arrays:
        for key in arrays.files:
            case, _, name = key.partition("/")
            cases.setdefault(case, {})[name] = arrays[key]
    return cases
