"""The runs of the training lab: how far one has come, which ones the server keeps, and who may train now.

A run belongs to one tab until it is finished. Then it never changes again, and the server keeps it for everyone.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from threading import BoundedSemaphore, Lock
from time import perf_counter
from typing import Any

import streamlit as st

from core.checks import Array
from core.training import Progress, Reading, Settings, train

SNAPSHOTS = 20  # of every run, besides the one before the first step
# A run of 3 layers with 8 heads on 16 letters has 21 · 24 · 256 weights in its maps, 0.5 MB; all of them at most 17 MB.
KEPT = 32
PLACES = 2  # trainings at a time; more would only slow each other down
SLICE = 0.1  # seconds of training at most between two chances to interrupt it
_POLL = 0.25  # seconds between two looks whether a place is free
_MINE = "training_lab_runs"  # in the session state: the runs that the tab shows, by their settings


@dataclass(frozen=True)
class Snapshot:
    """What `core.training.Progress` read after `step` steps."""

    step: int
    loss: float
    accuracies: tuple[float, ...]
    readings: tuple[Reading, ...]
    maps: Array
    answers: Array


class Run:
    """One training as far as it has come: begins at step 0, before any training, and ends finished.

    losses: one for each step from 0. snapshots: from time to time, step 0 first.
    failure: the sentence that says why it stopped early, or "".
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.every = max(1, settings.steps // SNAPSHOTS)
        self.losses: list[float] = []
        self.snapshots: list[Snapshot] = []
        self.failure = ""
        self._progress, self._lock = train(settings, self.every), Lock()
        self._take(_before_training(every=self.every, **asdict(settings)))

    @property
    def step(self) -> int:
        """Steps taken."""
        return len(self.losses) - 1

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        return bool(self.failure) or self.step == self.settings.steps

    def at(self, step: int) -> Snapshot:
        """The snapshot of this step, or the last one before it."""
        return next(snapshot for snapshot in reversed(self.snapshots) if snapshot.step <= step)

    def advance(self, seconds: float = SLICE) -> None:
        """Train up to the next snapshot or as long as said, or to the step at which the loss is not finite."""
        with self._lock:
            end = perf_counter() + seconds
            try:
                for found in self._progress:
                    if found.step > self.step and (self._take(found) or perf_counter() > end):
                        return
            except ValueError as error:
                self.failure = str(error)

    def _take(self, found: Progress) -> bool:
        """Keep a step's loss, and its snapshot if it has one; returns whether it has."""
        self.losses.append(found.loss)
        if found.accuracies and found.readings and found.maps is not None and found.answers is not None:
            read = (found.accuracies, found.readings, found.maps, found.answers)
            self.snapshots.append(Snapshot(found.step, found.loss, *read))
            return True
        return False

    def come_to_rest(self) -> None:
        """Wait for a thread that is still at it.

        A click starts the page anew at once, while the thread of the run of the page before stops only when it draws.
        """
        with self._lock:
            pass


@lru_cache(maxsize=64)  # maps and answers of one example each: at most 24 · 256 weights, 3.2 MB in all
def _before_training(every: int, **settings: Any) -> Progress:
    """Step 0 of a run: a class that moves the same slider through the same settings computes each of them once."""
    return next(train(Settings(**settings), every))


class Store:
    """Finished runs by their settings, for all threads; beyond `most` the one goes that was asked for longest ago."""

    def __init__(self, most: int = KEPT) -> None:
        self._most, self._lock = most, Lock()
        self._runs: OrderedDict[Settings, Run] = OrderedDict()

    def get(self, settings: Settings) -> Run | None:
        with self._lock:
            if settings in self._runs:
                self._runs.move_to_end(settings)
            return self._runs.get(settings)

    def put(self, run: Run) -> None:
        """Keep a finished run. Raises ValueError for one that is not: somebody still trains it."""
        if not run.finished:
            raise ValueError(f"the run is at step {run.step} of {run.settings.steps}, and only a finished one is kept.")
        with self._lock:
            self._runs[run.settings] = run
            self._runs.move_to_end(run.settings)
            while len(self._runs) > self._most:
                self._runs.popitem(last=False)


@st.cache_resource(show_spinner=False)  # one store of at most KEPT runs, 17 MB
def store() -> Store:
    """The one of this server."""
    return Store()


@st.cache_resource(show_spinner=False)  # one number
def places() -> BoundedSemaphore:
    """A place for each training that may go on at the same time in this server."""
    return BoundedSemaphore(PLACES)


@contextmanager
def place(wait: Callable[[], None]) -> Iterator[None]:
    """Train inside: the place is given back however this ends, by a click and by a closed tab too.

    Args:
        wait: called several times a second while none is free. What it raises ends the waiting.
    """
    free = places()
    while not free.acquire(timeout=_POLL):
        wait()
    try:
        yield
    finally:
        free.release()


def shown(wanted: Sequence[Settings]) -> list[Run]:
    """The runs that this tab shows: its own, or those the server keeps, or new ones; its others are dropped."""
    mine: dict[Settings, Run] = st.session_state.get(_MINE, {})
    for run in mine.values():
        run.come_to_rest()
    runs = {settings: mine.get(settings) or store().get(settings) or Run(settings) for settings in wanted}
    st.session_state[_MINE] = runs
    return list(runs.values())


def start_over(wanted: Sequence[Settings]) -> None:
    """Show these runs from before their first step, whatever the server keeps."""
    st.session_state[_MINE] = {settings: Run(settings) for settings in wanted}


def take_over(wanted: Sequence[Settings]) -> bool:
    """Show the server's runs in place of this tab's own, if it keeps all of them; whether it does."""
    kept = {settings: run for settings in wanted if (run := store().get(settings))}
    if len(kept) < len(set(wanted)):
        return False
    st.session_state[_MINE] = kept
    return True


def go_on(runs: Sequence[Run], once: bool = False) -> Iterator[bool]:
    """Train all runs side by side to the end, or `once`: up to the next snapshot. The server keeps the finished ones.

    Yields:
        Every `SLICE` seconds at least: whether all have come to another snapshot.
    """
    goals = {run.settings: len(run.snapshots) + 1 for run in runs}
    while True:
        left = [run for run in runs if not run.finished]
        if once:
            left = [run for run in left if len(run.snapshots) < goals[run.settings]]
        if not left:
            return
        run = min(left, key=lambda each: each.step)
        run.advance()
        if run.finished:
            store().put(run)
        level = run.finished or run.step == run.snapshots[-1].step
        yield level and all(other.finished or other.step >= run.step for other in runs)


# --- the second run --------------------------------------------------------------------------------------------------

NOTHING = "nothing"
CHANGES = (NOTHING, "heads", "layers", "encoding", "residual", "norm", "seed")


def with_change(settings: Settings, change: str, encoding: str, seeds: int) -> Settings | None:
    """The same with one thing changed, which always differs; None for nothing.

    Args:
        encoding: to use where there is none. seeds: how many there are; the last is followed by the first.

    Raises:
        ValueError: an unknown change.
    """
    if change not in CHANGES:
        raise ValueError(f"{change} is none of the changes {', '.join(CHANGES)}.")
    return {
        NOTHING: None,
        "heads": replace(settings, heads=1 if settings.heads > 1 else 2),
        "layers": replace(settings, layers=1 if settings.layers > 1 else 2),
        "encoding": replace(settings, encoding=encoding if settings.encoding == "none" else "none"),
        "residual": replace(settings, residual=not settings.residual),
        "norm": replace(settings, norm=not settings.norm),
        "seed": replace(settings, seed=(settings.seed + 1) % seeds),
    }[change]
