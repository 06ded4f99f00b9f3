"""What one session remembers of its controls, and of the parts of the page that is open."""

import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from ui.control_kinds import Control, Dependent, Settings
from ui.handout import Handout
from ui.link import resolve


@dataclass(frozen=True)
class Fixed:
    """What a link has locked or hidden on a page, for the session: the names, and the values that they keep."""

    locked: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)


class Part(NamedTuple):
    """A part of the page: the values with which it was drawn (None: it is empty), and whether it follows sliders.

    Of the values, those that change nothing in it are left out.
    """

    values: dict[str, Any] | None = None
    follows: bool = True


@dataclass
class Memory:
    """What one session remembers of its controls."""

    page: str = ""  # the page that was entered last
    chosen: dict[str, Any] = field(default_factory=dict)  # by the reader or a link, by name
    changed: list[str] = field(default_factory=list)  # the browser reports these names since the last run
    moved: set[str] = field(default_factory=set)  # the same, for the run that is on
    slid: dict[str, Any] = field(default_factory=dict)  # what live sliders report since the last run, by name
    heard: int = 0  # the number of the last move of a live slider that was heard
    session: str = field(default_factory=partial(secrets.token_hex, 4))  # whose moves these numbers count
    dragged: bool = False  # the last of these reports came from a slider that still moves
    moving: bool = False  # the same, for the run that is on
    drawn: dict[str, tuple[int, list[int]]] = field(default_factory=dict)  # of each `Dependent`: count and options
    declared: Sequence[Control | str] = ()  # of the page that is open: its controls, and headings among them
    controls: Sequence[Control] = ()  # the controls alone
    looks: dict[str, Any] = field(default_factory=dict)  # how those beside the page were drawn, by name
    homes: dict[str, str] = field(default_factory=dict)  # of live sliders by name: the fragment that draws each anew
    placed: dict[str, str] = field(default_factory=dict)  # of controls within the page by name: the part it stands in
    parts: dict[str, Part | None] = field(default_factory=dict)  # of the page, each a fragment; None before its turn
    leader: str = ""  # the part that follows a slider while that moves; "" for a page that is not in parts
    opening: bool = False  # what comes after that part is not drawn yet: it waits for the browser to ask
    apart: bool = True  # the parts can be drawn anew by themselves; otherwise whatever changes runs the script
    part: str = ""  # the part that is being drawn
    unmoved: Collection[str] = ()  # the names of the controls that change nothing in it
    end: str = ""  # the fragment with which this run ends
    runs: int = 0  # of the page's script
    due: list[str] = field(default_factory=list)  # the parts that this run has still to draw
    handout: Handout = field(default_factory=Handout)  # how the page is shown
    fixed: dict[str, Fixed] = field(default_factory=dict)  # by page
    link: dict[str, str] = field(default_factory=dict)  # the clean link of this run
    shown: dict[str, str] = field(default_factory=dict)  # the link of what it shows, to be given away
    written: dict[str, str] = field(default_factory=dict)  # the link that the browser was left with
    acted: bool = False  # a widget or button of the page asked for this run
    returned: bool = False  # the browser went back or forward, and all is at rest: the link is right
    forgot: bool = False  # the reader went back to the lesson's example
    notes: list[str] = field(default_factory=list)  # what the door has to say
    astray: bool = False  # a widget shows something else than it was told to

    def take_changes(self, controls: Iterable[Control]) -> None:
        """Move what the reader changed into `chosen`."""
        self.moved, self.changed = set(self.changed), []
        self.moving, self.dragged = self.dragged, False
        for control in controls:
            if self.key(control) in self.moved or control.name in self.slid:
                value = self.slid.pop(control.name, held(st.session_state.get(self.key(control))))
                if value is not None and control.takes(value):
                    self.chosen[control.name] = value
                    self.chosen |= control.sets(value) if control.sets else {}
                    self.notes = []

    def settings(self, controls: Iterable[Control]) -> Settings:
        """The settings of the page that is open: what was chosen, save for what its link has fixed."""
        return resolve(controls, self.chosen | self.fixed.get(self.page, Fixed()).values)

    def key(self, control: Control) -> str:
        """The key of a control's widget: its name, and for a `Dependent` also how often its options were replaced.

        While a key moves d_model, the browser goes on reporting the number of heads that it was told last, because
        it has not heard yet that the options were replaced: that is a report about another widget.
        """
        count, _ = self.drawn.get(control.name, (0, []))
        return f"{control.name} {count}" if count else control.name

    def replace(self, control: Dependent, options: list[int]) -> None:
        """Take note of the options that a control is drawn with: new ones make a new widget."""
        count, before = self.drawn.get(control.name, (0, options))
        self.drawn[control.name] = (count + (before != options), options)


def recall() -> Memory:
    """What the session remembers for which this is run."""
    memory = st.session_state.get("memory")
    if memory is None:
        memory = st.session_state["memory"] = Memory()
    return memory


def held(value: Any) -> Any:
    """A widget's value as the settings hold it: a list of several as a tuple."""
    return tuple(value) if isinstance(value, list) else value
