"""Putting a script together from pieces and settings, and making a notebook of it."""

import inspect
import json
from collections.abc import Callable, Sequence
from pprint import pformat
from typing import Any

from ui.control_kinds import Settings
from ui.scripts import pieces

Piece = Callable[..., Any]  # a function of `pieces`

CELL = "# %% "  # begins a cell; editors that know this mark run a script cell by cell
_SHOW = '''

def show(**arrays):
    """Print arrays with their names and shapes."""
    for name, array in arrays.items():
        print(f"{name} {array.shape}\\n{array}\\n")


np.set_printoptions(precision=4, suppress=True, linewidth=120, threshold=20_000)
'''


def script(title: str, constants: str, functions: Sequence[Piece], calls: str, *, imports: Sequence[str] = ()) -> str:
    """A whole script.

    Args:
        constants: sizes, seed and switches. functions: of `pieces`, in the order in which they are read.
        calls: what comes after them; a line that begins with `CELL` begins a cell of the notebook.
        imports: lines beside that of numpy.
    """
    if pieces.word_vectors in functions:
        imports = ["import hashlib", *imports]
    head = f'"""{title}, as transformer-live shows it at these settings.\n\nPython with numpy is all it needs.\n"""\n'
    first = "\n".join([*imports, "", "import numpy as np"] if imports else ["import numpy as np"])
    sources = "\n\n".join(inspect.getsource(function) for function in functions)
    return (
        f"{head}\n{first}\n\n{CELL}Settings\n{constants.strip()}\n\n{CELL}Functions\n{_SHOW.lstrip()}\n\n{sources}"
        f"\n\n{calls.strip()}\n"
    )


def notebook(text: str) -> str:
    """The same script as a Jupyter notebook (nbformat 4.5), one code cell for each `CELL`, with its heading."""
    head, *parts = text.split(f"\n{CELL}")
    opening, _, imports = head.removeprefix('"""').partition('\n"""\n')
    cells = [_cell("markdown", f"# {opening}"), _cell("code", imports)]
    for part in parts:
        heading, _, code = part.partition("\n")
        cells += [_cell("markdown", f"## {heading}"), _cell("code", code)]
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5},
        ensure_ascii=False,
        indent=1,
    )


def _cell(kind: str, text: str) -> dict[str, Any]:
    ran: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True), **ran}


def sequence(settings: Settings) -> tuple[str, list[Piece], str]:
    """The constants of the page's sequence, the function that draws it, and the call that makes X from it."""
    if settings.tokens:
        return (
            f"SENTENCE = {words(settings.tokens)}\nSEQ_LEN = len(SENTENCE)",
            [pieces.word_vectors],
            "word_vectors(SENTENCE, D_MODEL, SEED)",
        )
    return f"SEQ_LEN = {settings.n_tokens}", [pieces.random_tokens], "random_tokens(SEQ_LEN, D_MODEL, SEED)"


def words(tokens: Sequence[str]) -> str:
    """The tokens as a list of Python."""
    return pformat(list(tokens), width=100, compact=True)
