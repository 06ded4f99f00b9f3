"""A class presses Train: thirty people at once in the training lab, and one more who moves a slider on another page.

    python -m benchmarks.train_together --help

Starts a server of its own on a free port of this machine, opens the lab for everyone and presses all buttons together.
Each has a seed of their own, so that nobody gets a run that somebody else has trained, unless --same-link is given.
Meanwhile somebody moves a slider on the page on self-attention about once a second. The people are those of
`benchmarks.clients`; they share the machine with the server, and the times are longer for it. Ends with 1 if anything
is not as it should be.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.clients import Visitor, visit
from tests.browser.harness import running_server
from ui.training_runs import PLACES

WITHIN = 0.5  # seconds in which a slider on another page is drawn again, in the median
TRAIN, WAITING = "training_lab_train", "Two trainings are running"  # a button's key, and what the page says


@dataclass
class Pupil:
    """Someone who trains, as far as the page shows it.

    first, last: when it showed progress, in seconds. The message of the last step does not count: the training has
    ended by then, and on a busy machine it may arrive after the first message of whoever comes next.
    waited: whether the page said that others come first.
    """

    visitor: Visitor
    first: float = float("inf")
    last: float = float("inf")
    waited: bool = False
    finished: bool = False
    _said: str = ""

    def note(self) -> None:
        """After every message of the server."""
        for progress in self.visitor.of_kind("progress"):
            if progress.text != self._said and progress.value < 100:
                self._said, self.last = progress.text, perf_counter()
                self.first = min(self.first, self.last)
        self.waited = self.waited or any(WAITING in alert.body for alert in self.visitor.of_kind("alert"))

    async def train(self, patience: float) -> None:
        """Press Train and wait until the run is finished, or as long as patience lasts."""
        self.visitor.on_change = self.note
        try:
            await self.visitor.press(TRAIN)
            await self.visitor.until(lambda: self.visitor.idle and not self.visitor.has(TRAIN), patience)
            self.finished = True
        except TimeoutError:
            pass


@dataclass
class Lesson:
    """What was seen. at_once: the most trainings in progress together. redraws: seconds for each move of the slider."""

    people: int
    finished: int = 0
    waited: int = 0
    at_once: int = 0
    seconds: float = 0.0
    alone: list[float] = field(default_factory=list)
    redraws: list[float] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)

    def complaints(self) -> list[str]:
        """What is not as it should be."""
        checks = {
            f"{len(self.exceptions)} exceptions: {'; '.join(sorted(set(self.exceptions))[:3])}": not self.exceptions,
            f"{self.people - self.finished} people's trainings did not end": self.finished == self.people,
            f"{self.at_once} trainings at a time, {PLACES} are allowed": self.at_once <= PLACES,
            f"the slider took {median(self.redraws or [0]):.2f} s in the median": median(self.redraws or [0]) <= WITHIN,
        }
        return [complaint for complaint, fine in checks.items() if not fine]


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """How many of the spans of time, each from its first to its last moment, share a moment at most."""
    return max((sum(first <= moment <= last for first, last in spans) for moment, _ in spans), default=0)


async def train_together(base: str, seeds: Sequence[int], steps: int, patience: float) -> Lesson:
    """Let somebody train with each of the seeds at the server `base`, and one move a slider until they are done."""
    lesson = Lesson(len(seeds))
    async with AsyncExitStack() as stack:
        pupils = [
            Pupil(await stack.enter_async_context(visit(base, f"/training_lab?steps={steps}&seed={seed}")))
            for seed in seeds
        ]
        reader = await stack.enter_async_context(visit(base, "/self_attention"))
        lesson.alone = [await move(reader, turn) for turn in range(10)]

        start = perf_counter()
        training = asyncio.gather(*(pupil.train(patience) for pupil in pupils))
        while not training.done():
            lesson.redraws.append(await move(reader, len(lesson.redraws)))
            await asyncio.wait([training], timeout=1)
        lesson.seconds = perf_counter() - start

        lesson.finished = sum(pupil.finished for pupil in pupils)
        lesson.waited = sum(pupil.waited for pupil in pupils)
        lesson.at_once = most_at_once([(pupil.first, pupil.last) for pupil in pupils if pupil.first < float("inf")])
        lesson.exceptions = [
            shown for visitor in (reader, *(p.visitor for p in pupils)) for shown in visitor.exceptions
        ]
    return lesson


async def move(reader: Visitor, turn: int) -> float:
    """Move the model width back and forth; returns the seconds until the page is drawn again."""
    return await reader.set("d_model", (8, 16, 32)[turn % 3])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.train_together", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--steps", type=int, default=400, help="of each training (default 400, as the lab's)")
    parser.add_argument("--same-link", action="store_true", help="everyone trains the same run")
    parser.add_argument("--patience", type=float, default=300, help="seconds for all trainings together (default 300)")
    options = parser.parse_args()
    seeds = [0] * options.people if options.same_link else range(options.people)

    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder) / "log.txt") as base:
        lesson = asyncio.run(train_together(base, seeds, options.steps, options.patience))
    low, high = np.percentile(lesson.redraws, [50, 95])
    which = "all the same run" if options.same_link else "each with another seed"
    print(f"{lesson.people} people pressed Train, {options.steps} steps each, {which}")
    print(f"exceptions shown                    {len(lesson.exceptions)}")
    print(f"trainings in progress at a time     {lesson.at_once} at most; {lesson.waited} people were told to wait")
    print(f"trainings that ended                {lesson.finished}, all within {lesson.seconds:.1f} s")
    print(f"a slider on /self_attention         median {low:.2f} s, 95 % within {high:.2f} s")
    print(f"the same before they trained        median {median(lesson.alone):.2f} s")
    for complaint in lesson.complaints():
        print(f"NOT AS IT SHOULD BE: {complaint}")
    return bool(lesson.complaints())


if __name__ == "__main__":
    sys.exit(main())
