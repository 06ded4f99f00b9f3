"""core stands on numpy and the standard library alone."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "core").rglob("*.py"))
ALLOWED = sys.stdlib_module_names | {"numpy", "core"}


def imported(source: str) -> set[str]:
    """Top-level names of everything that a file imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "core").split(".")[0] if node.level == 0 else "core")
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_numpy_and_the_standard_library_only(path: Path) -> None:
    assert imported(path.read_text(encoding="utf-8")) <= ALLOWED


def test_loads_no_other_library_in_a_fresh_interpreter() -> None:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in MODULES]
    script = (
        f"import sys, importlib\nfor name in {names!r}: importlib.import_module(name)\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"core", "numpy"} <= loaded
    assert not loaded & {"streamlit", "plotly", "pandas", "matplotlib", "scipy", "torch", "ui", "app"}
