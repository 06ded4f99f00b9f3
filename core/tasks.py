"""What the small transformer of the training lab learns: sequences with questions that can be answered from them.

Each task shows one claim of the lesson. Its letters are drawn anew for every batch, so nothing can be learned by
heart, and every answer stands somewhere in the sequence: `sources` says where a head has to look for it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.checks import Array, at_least

NOT_ASKED = -1


@dataclass(frozen=True)
class Batch:
    """b sequences of n letters.

    letters: (b, n) whole numbers from 0. marks: (b, n) booleans, True where a letter is marked.
    answers: (b, n, questions) the letter to answer with at each position, or -1 where nothing is asked.
    sources: (b, n, questions) the position where that letter stands, or -1.
    """

    letters: Array
    marks: Array
    answers: Array
    sources: Array


@dataclass(frozen=True)
class Task:
    """One task of the lab.

    questions: their names, one answer each at every position. seq_len: n. letters: how many different ones there are.
    marked: whether letters are marked. causal: whether a position sees only what stands before it.
    layers, heads, encoding, steps: with what it is learned. shows: the claim, in one sentence.
    sources: from the letters and marks (b, n), where each answer stands: (b, n, questions), or -1 where none is asked.
    """

    name: str
    questions: tuple[str, ...]
    seq_len: int
    letters: int
    marked: bool
    causal: bool
    layers: int
    heads: int
    encoding: str
    steps: int
    shows: str
    sources: Callable[[Array, Array], Array]


def draw(task: Task, size: int, generator: np.random.Generator) -> Batch:
    """`size` sequences of random letters, one of each marked where the task marks any, with all answers.

    Raises:
        ValueError: a size below 1.
    """
    shape = (at_least("the number of sequences", size, 1), task.seq_len)
    letters = generator.integers(task.letters, size=shape)
    marks = np.zeros(shape, dtype=bool)
    if task.marked:
        marks[np.arange(size), generator.integers(task.seq_len, size=size)] = True
    return ask(task, letters, marks)


def ask(task: Task, letters: Array, marks: Array) -> Batch:
    """The questions of a task and their answers for given letters (b, n) and marks (b, n)."""
    sources = task.sources(letters, marks)
    # Position -1 is the last one: its letter is looked up and then dropped.
    found = letters[np.arange(len(letters))[:, np.newaxis, np.newaxis], sources]
    return Batch(letters, marks, np.where(sources >= 0, found, NOT_ASKED), sources)


def previous_and_marked(letters: Array, marks: Array) -> Array:
    """(b, n, 2): the position before each one, -1 for the first, and the marked position."""
    b, n = letters.shape
    previous = np.broadcast_to(np.arange(n) - 1, (b, n))
    marked = np.broadcast_to(marks.argmax(axis=-1)[:, np.newaxis], (b, n))
    return np.stack([previous, marked], axis=-1)


def mirrored(letters: Array, marks: Array) -> Array:
    """(b, n, 1): the same place counted from the other end."""
    b, n = letters.shape
    return np.broadcast_to(np.arange(n)[::-1, np.newaxis], (b, n, 1))


def after_last_time(letters: Array, marks: Array) -> Array:
    """(b, n, 1): the position after the last earlier one with the same letter, or -1 where the letter is new."""
    n = letters.shape[1]
    earlier = np.tri(n, k=-1, dtype=bool)  # row = where it is asked, column = before it
    equal = (letters[:, :, np.newaxis] == letters[:, np.newaxis, :]) & earlier  # (b, n, n)
    last = n - 1 - equal[:, :, ::-1].argmax(axis=-1)
    return np.where(equal.any(axis=-1), last + 1, NOT_ASKED)[..., np.newaxis]


TASKS = {
    task.name: task
    for task in (
        Task(
            name="two questions at once",
            questions=("previous", "marked"),
            seq_len=12,
            letters=12,
            marked=True,
            causal=False,
            layers=1,
            heads=2,
            encoding="sinusoidal",
            steps=400,
            shows="Two heads look at two places at once; one head has to choose.",
            sources=previous_and_marked,
        ),
        Task(
            name="reverse",
            questions=("mirrored",),
            seq_len=12,
            letters=12,
            marked=False,
            causal=False,
            layers=1,
            heads=1,
            encoding="sinusoidal",
            steps=400,
            shows="Without positional encoding nothing says which letter stands at the other end.",
            sources=mirrored,
        ),
        Task(
            name="induction",
            questions=("after the last time",),
            seq_len=16,
            letters=12,
            marked=False,
            causal=True,
            layers=2,
            heads=1,
            encoding="learned",
            steps=400,
            shows="After a b … a comes b. It takes two layers: a head in the second uses what one in the first found.",
            sources=after_last_time,
        ),
    )
}
