"""Models of the training lab that come trained: their weights in files, and how one of them reads one sequence.

    python -m core.trained --help

Each file holds the weights of `core.training.suggested(task)` after its steps, float32, one array for each name in
`core.training.shapes`. Training again on the same machine gives the same file, byte for byte.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from core.checks import Array, at_least, same
from core.gradients import softmax
from core.multi_head import Layer
from core.tasks import TASKS, ask
from core.training import (
    Parameters,
    Reading,
    Settings,
    forward,
    looked_at,
    readings,
    shapes,
    suggested,
    train,
)

FOLDER = Path(__file__).with_name("weights")
FILES = {"two questions at once": "two_questions.npz", "induction": "induction.npz"}


@dataclass(frozen=True)
class Trace:
    """What a model makes of one sequence of n letters.

    letters: as given. layers: the multi-head attention of each block with its own input, for `core.multi_head.attend`.
    readings: what each head looks at in this sequence, layer by layer. allowed: (n, n) booleans, where a query may
    look. probabilities: (n, questions, letters). answers: (n, questions) the most likely letter.
    expected, sources: (n, questions) the right letter and where it stands, -1 if none is asked.
    """

    letters: tuple[int, ...]
    layers: tuple[Layer, ...]
    readings: tuple[Reading, ...]
    allowed: Array
    probabilities: Array
    answers: Array
    expected: Array
    sources: Array


def load(task: str, folder: Path = FOLDER) -> tuple[Settings, Parameters]:
    """The settings and the trained weights of a task that has a file.

    Raises:
        ValueError: a task without a file; a file that is missing, is no archive of arrays, or does not hold exactly
            the weights of this model, each in its shape, as finite float32 numbers.
    """
    if task not in FILES:
        raise ValueError(f"{task} has no trained weights; {' and '.join(FILES)} have.")
    settings, path = suggested(task), folder / FILES[task]
    try:
        with np.load(path, allow_pickle=False) as arrays:
            parameters = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, BadZipFile, TypeError) as error:  # the last: one array, no archive
        raise ValueError(f"{path.name} cannot be read as trained weights.") from error
    _check(path.name, parameters, shapes(settings))
    return settings, parameters


def _check(file: str, parameters: Parameters, expected: dict[str, tuple[int, ...]]) -> None:
    if set(parameters) != set(expected):
        odd = ", ".join(sorted(set(parameters) ^ set(expected)))
        raise ValueError(f"{file} does not hold the weights of this model, the names that differ being {odd}.")
    for name, shape in expected.items():
        same(f"{file}: the shape of {name}", parameters[name].shape, "the model's", shape)
        if parameters[name].dtype != np.float32 or not np.isfinite(parameters[name]).all():
            raise ValueError(f"{file}: {name} must hold finite float32 numbers.")


def trace(parameters: Parameters, settings: Settings, letters: Sequence[int], mark: int | None = None) -> Trace:
    """Every stage of attention, and the answers, for one sequence.

    Args:
        letters: as many whole numbers as the task's sequences have, from 0 to its number of letters - 1.
        mark: the marked place from 0, where the task marks one; None where it marks none.

    Raises:
        ValueError: another length, a letter or a mark that the task does not have.
    """
    task = TASKS[settings.task]
    same("the number of letters", len(letters), "the length that the model was trained on", task.seq_len)
    for letter in letters:
        if at_least("a letter", letter, 0) >= task.letters:
            raise ValueError(f"A letter must be below {task.letters}, not {letter}.")
    batch = ask(task, np.array([letters]), _marks(mark, task.seq_len, task.marked))
    scores, passed = forward(parameters, batch, settings)
    layers = tuple(
        _layer(parameters, place, each.multi_head.x[0], settings.heads) for place, each in enumerate(passed.blocks)
    )
    probabilities = softmax(scores)[0]
    every_place = np.ones((task.seq_len, task.seq_len), dtype=bool)
    return Trace(
        letters=tuple(letters),
        layers=layers,
        readings=tuple(looked_at(passed, batch, task)),
        allowed=np.tril(every_place) if task.causal else every_place,
        probabilities=probabilities,
        answers=probabilities.argmax(axis=-1),
        expected=batch.answers[0],
        sources=batch.sources[0],
    )


def without_heads(parameters: Parameters, settings: Settings, layer: int, heads: Sequence[int]) -> Parameters:
    """The weights with some heads of a layer silenced: their rows of W_O are 0. Layers and heads count from 0.

    The same as zeros in these heads' slices before W_O, since output = head_1 · W_O^1 + … + head_h · W_O^h.
    """
    name, width = f"{layer}.w_o", settings.d_model // settings.heads
    silenced = parameters[name].copy()
    for head in heads:
        silenced[head * width : (head + 1) * width] = 0
    return {**parameters, name: silenced}


def _layer(parameters: Parameters, place: int, x: Array, heads: int) -> Layer:
    w_q, w_k, w_v = np.split(parameters[f"{place}.w_qkv"], 3, axis=1)
    return Layer(x, w_q, w_k, w_v, parameters[f"{place}.w_o"], 0.0, ("",) * heads)


def _marks(mark: int | None, n: int, marked: bool) -> Array:
    """(1, n) booleans, True at the mark."""
    if marked != (mark is not None):
        raise ValueError("This task needs a marked place." if marked else f"This task marks no place, not even {mark}.")
    if mark is not None and at_least("the marked place", mark, 0) >= n:
        raise ValueError(f"The marked place must be below {n}, not {mark}.")
    return np.arange(n)[np.newaxis] == (-1 if mark is None else mark)


def looks_most_at(parameters: Parameters, settings: Settings) -> list[tuple[str, ...]]:
    """For each layer the kind of place on which each head has most of its weight: "previous", "itself", a question.

    The largest of `core.training.readings`; it need not be more than half of the weight.
    """
    kinds = [max(reading.on, key=lambda kind: reading.on[kind]) for reading in readings(parameters, settings)]
    return [tuple(kinds[i : i + settings.heads]) for i in range(0, len(kinds), settings.heads)]


def write(task: str, folder: Path = FOLDER) -> Path:
    """Train `suggested(task)` to its end and write its weights; returns the file."""
    settings = suggested(task)
    *_, last = train(settings, every=settings.steps)
    assert last.parameters is not None
    folder.mkdir(exist_ok=True)
    np.savez(folder / FILES[task], allow_pickle=False, **last.parameters)
    return folder / FILES[task]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files: `python -m core.trained --help`."""
    parser = argparse.ArgumentParser(
        prog="python -m core.trained",
        description=f"Train the models whose weights come with the project, and write them to {FOLDER.name}/.",
    )
    parser.add_argument("--to", type=Path, default=FOLDER, help="another folder")
    folder = parser.parse_args(arguments).to
    for task in FILES:
        path = write(task, folder)
        print(f"{path.name}: {suggested(task).steps} steps, {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
