"""Predict, then see: questions on what would happen, answered before the app shows it.

A page hands over a function that returns its questions (`ui.questions`); it is called once the section is opened. What
is right is computed when an answer has been given. Answers stay in the session and belong to the settings at which they
were given: other settings make another question, and the same settings show the answer again.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from core.checks import Array
from ui import controls, figures, page

QUESTIONS = 3  # on every page
LARGEST = 10**12  # number that can be answered
KEPT = 500  # answers in a session, the oldest go first; the key of each holds a link, 2 KB at the most
_ANSWERS = "predictions"  # in the session state: `Given` by page, question and settings
# Controls that choose what of the page is looked at. They change no question.
_VIEWS = frozenset({"stage", "query", "permutation", "pair", "head", "off", "block", "layer_norm", "compare", "beside"})


class Solution(NamedTuple):
    """What is right (all answers that are, the best one first), and why: plain text with the numbers.

    chart, alt: a small figure of what the question asks about, with its description, where that helps.
    """

    right: tuple[Any, ...]
    reason: str
    chart: figures.Figure | None = None
    alt: str = ""


class Given(NamedTuple):
    """An answer as it was given, and whether it was right."""

    answer: Any
    right: bool


@dataclass(frozen=True, kw_only=True)
class Question:
    """What every question has. All of its text is plain: it may quote the user's words.

    name: the same at all settings, one of the page's own. shows: controls, by name, whose values show the answer on the
    page. given, given_alt: a figure that belongs to the question, with its description.
    """

    name: str
    asks: str
    solve: Callable[[], Solution]
    shows: Mapping[str, Any] | None = None
    given: figures.Figure | None = None
    given_alt: str = ""

    def draw(self, label: str, key: str) -> None:
        """The widgets of an answer, inside a form; their keys begin with `key`."""
        raise NotImplementedError

    def read(self, key: str) -> Any:
        """What the widgets hold; None where nothing is chosen yet."""
        return st.session_state.get(key)

    def accepts(self, answer: Any, solution: Solution) -> bool:
        """Whether an answer is right."""
        return answer in solution.right

    def say(self, answer: Any) -> str:
        """An answer in words."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Choice(Question):
    """One of a few options; an answer is its place.

    boxed: in a box to choose from, for options that are many or quote the user. Radio buttons read Markdown, so theirs
    must not.
    """

    options: Sequence[str]
    boxed: bool = False

    def draw(self, label: str, key: str) -> None:
        places = range(len(self.options))
        if self.boxed:
            st.selectbox(label, places, index=None, format_func=self.say, key=key)
        else:
            st.radio(label, places, index=None, format_func=self.say, key=key)

    def say(self, answer: int) -> str:
        return self.options[answer]


@dataclass(frozen=True, kw_only=True)
class Number(Question):
    """A number, right within a tolerance that the question states; a whole one exactly."""

    decimals: int = 0
    tolerance: float = 0.0

    def draw(self, label: str, key: str) -> None:
        step = 1 if self.decimals == 0 else 10.0**-self.decimals
        form = f"%.{self.decimals}f" if self.decimals else "%d"
        most = LARGEST if self.decimals == 0 else float(LARGEST)
        st.number_input(label, -most, most, value=None, step=step, format=form, placeholder="…", key=key)

    def accepts(self, answer: float, solution: Solution) -> bool:
        return any(abs(answer - right) <= self.tolerance + 1e-9 for right in solution.right)

    def say(self, answer: float) -> str:
        return f"{answer:,.{self.decimals}f}".replace("-", "−")


@dataclass(frozen=True, kw_only=True)
class Cell(Question):
    """One cell of a map, chosen by its row and its column; an answer is the pair of their places."""

    rows: Sequence[str]
    columns: Sequence[str]
    row_title: str
    column_title: str

    def draw(self, label: str, key: str) -> None:
        sides = ((self.row_title, self.rows), (self.column_title, self.columns))
        for place, (column, (title, names)) in enumerate(zip(st.columns(2), sides, strict=True)):
            column.selectbox(
                title.capitalize(),
                range(len(names)),
                index=None,
                format_func=names.__getitem__,
                key=f"{key} {place}",
            )

    def read(self, key: str) -> tuple[int, int] | None:
        row, column = (st.session_state.get(f"{key} {place}") for place in range(2))
        return None if row is None or column is None else (row, column)

    def say(self, answer: tuple[int, int]) -> str:
        return f"{self.row_title} {self.rows[answer[0]]}, {self.column_title} {self.columns[answer[1]]}"


def offer(questions: Callable[[], Sequence[Question]]) -> None:
    """The questions of the page that is open, in an expander; while it is closed nothing is computed.

    Nothing at all where the page was handed out without them.
    """
    if not controls.shown_as().questions:
        return
    with st.container(key="predict_section"):
        if not page.section("Predict, then see"):
            return
        box = page.expander("Three questions on these settings", key="predict", expanded=page.presenting())
    if not box.open:
        return
    with box:
        st.markdown(
            "Answer before you look. Other settings make other questions. Your answers stay here until the page is "
            "loaded anew, and nothing is sent anywhere else."
        )
        for place, question in enumerate(questions(), start=1):
            _draw(question, place)


def progress(name: str) -> str:
    """How far the reader has come on a page, by the last answer to each of its questions; "" before the first one."""
    last = {question: given for (page_name, question, _), given in _answers().items() if page_name == name}
    if not last:
        return ""
    return f"{len(last)} of {QUESTIONS} predicted, {sum(given.right for given in last.values())} right"


def _draw(question: Question, place: int) -> None:
    """One question: its form, or the answer that was given with what is right and why."""
    at = _here(question)
    given = _answers().get(at)
    key = f"predict_{question.name}_{hashlib.sha256(repr(at).encode()).hexdigest()[:12]}"
    with st.form(key, border=True) if given is None else st.container(border=True):
        st.markdown(f"**Question {place}**")
        st.text(question.asks)
        if question.given:
            page.figure(question.given, f"predict_{question.name}", question.given_alt)
        if given is None:
            answer = f"{key} answer"
            question.draw(f"Your answer to question {place}", answer)
            if st.form_submit_button("Answer", on_click=_take, args=(question, at, answer)):
                st.text("Nothing is chosen yet: choose first, then answer.")
            return
        solution = question.solve()
        st.markdown(":material/check: **Right.**" if given.right else ":material/close: **Not right.**")
        said, right = question.say(given.answer), question.say(solution.right[0])
        st.text(f"You said: {said}." + ("" if given.answer in solution.right else f"\nThe answer: {right}."))
        st.text(solution.reason)
        if solution.chart:
            page.figure(solution.chart, f"predict_{question.name}_answer", solution.alt)
        if question.shows and not set(question.shows) & set(controls.shown_as().fixed):
            st.button("Show it on the page", key=f"{key} show", on_click=_show, args=(question.shows,))


def _take(question: Question, at: tuple[str, str, str], key: str) -> None:
    """Keep the answer that the widgets hold."""
    answer = question.read(key)
    if answer is None:
        return
    answers = _answers()
    answers[at] = Given(answer, question.accepts(answer, question.solve()))
    while len(answers) > KEPT:
        del answers[next(iter(answers))]


def _show(sets: Mapping[str, Any]) -> None:
    for name, value in sets.items():
        controls.choose(name, value)
    page.go_to_top()
    st.toast("The page shows it now, from its top on. These settings have questions of their own.")


def _here(question: Question) -> tuple[str, str, str]:
    """Where an answer is kept: page, question, and the settings that differ from the page's own."""
    name, link = controls.address()
    settings = "&".join(f"{key}={value}" for key, value in sorted(link.items()) if key not in _VIEWS)
    return name, question.name, settings


def _answers() -> dict[tuple[str, str, str], Given]:
    return st.session_state.setdefault(_ANSWERS, {})


def largest_cells(values: Array) -> list[tuple[int, int]]:
    """The cells that show the largest number of a map to two decimals, the largest of all first."""
    shown, best = values.round(2), divmod(int(values.argmax()), values.shape[1])
    cells = [(int(row), int(column)) for row, column in np.argwhere(shown == shown.max())]
    return sorted(cells, key=lambda cell: cell != best)


def small_map(
    values: Array, *, x: Sequence[str], y: Sequence[str], unit: str, kind: str = figures.SIGNED
) -> figures.Figure:
    """A map that belongs to a question, small enough for a number in every cell."""
    return figures.heatmap(values, x=x, y=y, x_title="key token", y_title="query token", unit=unit, kind=kind)
