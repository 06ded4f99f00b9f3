"""The parts of a page: fragments, of which each is drawn anew by itself when a live slider changes it."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import streamlit as st

from ui import controls
from ui.control_kinds import Settings
from ui.following import LAST, draw_fragment, listen
from ui.memory import Part, recall


def announce_parts(keys: Sequence[str], *, apart: bool = True) -> None:
    """Say which parts the page is going to draw; apart: so that each can be drawn anew by itself."""
    memory = recall()
    memory.due, memory.parts, memory.apart = list(keys), dict.fromkeys(keys), apart


def let_lead(part: str) -> None:
    """Say which part, drawn by now, follows a slider while that moves. Before the controls are drawn."""
    recall().leader = part


def part() -> str:
    """The key of the part that is being drawn; "" outside of them."""
    return recall().part


def more_is_due() -> bool:
    """Whether another part than the one that is being drawn is still to follow: in this run, or when a slider rests."""
    memory = recall()
    return memory.moving or bool(set(memory.due) - {memory.part})


def draw_part(key: str, draw: Callable[[Settings], bool], unmoved: Collection[str] = ()) -> None:
    """Draw a part of the page that can be drawn anew by itself: a fragment, where the script calls it.

    Args:
        draw: returns whether the part is to be drawn again when a slider has moved.
        unmoved: the names of the controls that change nothing in it.
    """
    draw_fragment(key, partial(_draw_part, key, draw, unmoved))


def draw_last(draw: Callable[[], None]) -> None:
    """What follows all parts that a run draws, and shows nothing."""
    draw_fragment(LAST, partial(_draw_last, draw))


def _draw_part(key: str, draw: Callable[[Settings], bool], unmoved: Collection[str]) -> None:
    memory = recall()
    if memory.acted or memory.changed:  # a click in this part that is about the whole page
        st.rerun()
    memory.part, memory.unmoved, settings = key, unmoved, controls.settings_now()
    memory.placed = {name: part for name, part in memory.placed.items() if part != key}
    waits = memory.opening and memory.leader
    moving = {name: value for name, value in settings.values.items() if name not in unmoved}
    memory.parts[key] = Part() if waits else Part(moving, draw(settings))
    if key in memory.due:
        memory.due.remove(key)
    _end(key)
    memory.part, memory.unmoved = "", ()


def _draw_last(draw: Callable[[], None]) -> None:
    draw()
    memory = recall()
    if not memory.opening:
        _keep_in_link()
    memory.opening = False
    _end(LAST)


def _keep_in_link() -> None:
    """Draw, where they are not seen, the controls of the link that have no place in what is shown of the page.

    What is not drawn Streamlit takes out of the link.
    """
    memory = recall()
    placed = {*memory.placed, *controls.unbound(memory.controls)}
    kept = [each for each in memory.controls if each.in_page and each.name in memory.link and each.name not in placed]
    if kept:
        settings = controls.settings_now()
        with st.container(key="out_of_sight"):
            for control in kept:
                controls.draw(control, settings)


def _end(key: str) -> None:
    """End a fragment, and the run if it is the last one."""
    memory = recall()
    if key == memory.end:
        controls.write_unbound(memory.controls)
    listen(key)
