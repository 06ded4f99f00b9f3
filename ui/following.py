"""How the page follows its live sliders: what they report is heard, and what has to follow is drawn again.

A report comes by a wire (`ui.live_slider`). Each part of the page (`ui.page_parts`) has one, and there is one after
them; a page that is not in parts has one alone.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui import live_slider
from ui.control_kinds import Dependent, Settings
from ui.link import same
from ui.memory import Memory, recall

LAST = "last"  # the fragment after all parts


def listen(part: str) -> None:
    """Draw the wire by which live sliders report: one in each part and one after them, or one for the page."""
    memory = recall()
    if not live_slider.can_be_drawn():
        return
    # In a run of several parts their end alone tells that a report was heard: before it, the wires of the other parts
    # are those of an earlier run, and what is reported by them may be lost.
    tells = not part or memory.end in ("", part)
    live_slider.listen(
        wire(part),
        heard=memory.heard if tells else 0,
        run=memory.runs,
        on_report=partial(_follow, part),
        late=_late(memory, memory.settings(memory.controls)) if part == memory.end else None,
        empty=any(drawn and drawn.values is None for drawn in memory.parts.values()),
    )
    report = live_slider.reported(wire(part))
    if report and report.number != memory.heard:
        # Where the server was started again under an open page, its first move came before anybody listened.
        _slide(part)
        st.rerun()


def wire(part: str) -> str:
    """The key of a part's wire; "" for a page that is not in parts."""
    return f"wire {part}".strip()


def draw_fragment(key: str, draw: Callable[[], None]) -> None:
    """Draw something that Streamlit can draw anew by itself, where the parts of the page can."""

    def drawn_by_itself() -> None:  # Streamlit asks a fragment for its name, which a partial has not
        draw()

    if recall().apart:
        st.fragment(drawn_by_itself, key=key)()
    else:
        with st.container():  # as around a fragment: so the browser keeps what stands there
            draw()


def looks_beside(memory: Memory, settings: Settings) -> dict[str, Any]:
    """How the controls beside the page look, by name: all but the value at which one stands that was chosen by hand."""
    return {
        control.name: (
            control.drawn(settings),
            same(settings.wanted[control.name], settings.values[control.name])
            or (settings.wanted[control.name], settings.values[control.name]),
            list(control.options(settings)) if isinstance(control, Dependent) else [],
        )
        for control in memory.controls
        if not control.in_page
    }


def _follow(part: str) -> None:
    """Hear what a wire reports, and draw again what has to follow it, if it is more than the part of that wire.

    While a slider moves that is one part: the one in which it stands, or else the one before the eyes. When it rests
    these are all other parts on the screen, and beside them the sliders that look otherwise now; the rest of the page
    is asked for later. Where more than that changes, the script runs anew. A browser says by the wire of one of the
    parts that are to follow that a slider rests: often it is the only one.
    """
    memory, noted = recall(), bool(recall().notes)
    report, run = _slide(part), get_script_run_ctx()
    memory.returned |= bool(report and report.back)
    asked = (run and run.fragment_ids_this_run) or []
    if not part or not memory.apart or not asked:  # the script runs anyway
        return
    # Others than the wire's part are asked for too where a click came meanwhile: a rerun of some parts would drop them.
    others = len(asked) > 1 or None in memory.parts.values()
    if others or (noted and memory.slid) or memory.acted or memory.changed or memory.returned:
        st.rerun()
    memory.take_changes(memory.controls)
    memory.end = "" if memory.moving else LAST
    if memory.moving:
        return
    settings = memory.settings(memory.controls)
    looks = looks_beside(memory, settings)
    changed = [name for name, look in looks.items() if look != memory.looks.get(name)]
    if not set(changed) <= set(memory.homes):
        memory.acted = True
        st.rerun()
    memory.looks = looks
    late = _late(memory, settings)
    memory.due = [key for key in late if report and key in report.seen]
    if memory.due[-1:] == list(memory.parts)[-1:]:
        memory.due = late  # the last part shows what all the others have drawn
    beside = [memory.homes[name] for name in changed if memory.homes[name] not in memory.parts]
    if {*memory.due, *beside} <= {part}:
        memory.end = part  # that is all: it is drawn at once, without a second start
    else:
        with suppress(StreamlitAPIException):  # one of them is not there: its run was broken off
            st.rerun([*memory.due, *beside, LAST])
        st.rerun()


def _slide(part: str = "") -> live_slider.Report | None:
    """Hear what a wire reports. It comes from the browser and may be anything: what is no value is no move."""
    memory, report = recall(), live_slider.reported(wire(part))
    if report and not report.name:
        memory.heard = report.number
    control = next((each for each in memory.controls if each.slides and report and each.name == report.name), None)
    if report and control:
        with suppress(ValueError):
            memory.slid[control.name] = control.read(str(report.value))
            memory.heard, memory.dragged = report.number, not report.rest
    return report


def _late(memory: Memory, settings: Settings) -> list[str]:
    """The parts that show something else than these settings.

    The last one takes up what the others have drawn, and is late as long as one of them is.
    """
    following = {key: part.values for key, part in memory.parts.items() if part and part.follows}
    late = [key for key, drawn in following.items() if drawn is None or settings.values | drawn != settings.values]
    waiting = [key for key in list(memory.parts)[-1:] if late and key in following and key not in late]
    return late + waiting
