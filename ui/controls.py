"""The controls of a page: what the reader may set, remembered over the pages and held in the link.

A page lists its controls; `open_page` draws them and returns the settings, which are always legal.

- What the reader chose is remembered by name (`Memory.chosen`), and what has to be shown instead does not replace it:
  4 heads chosen show as 3 while d_model is 18, and as 4 again at 20.
- A page is entered through one door (`ui.link.read_link`): it checks the whole link before any widget exists, tells
  what it corrected, and the browser is sent to the clean link.
- From then on Streamlit keeps link and widgets together (`bind="query-params"`), without the defaults; only live
  sliders and the controls that depend on others are written into the link here (`write_unbound` says why).
- A browser gets live sliders (`ui.live_slider`), which report while they move; where there is none, as in tests of
  pages, `st.slider` stands in their place. Both report to the same memory.
- When a live slider moves, only what it changes is drawn again, where the page consists of parts (`ui.page_parts`).
  All else that the reader does runs the page's script from the start.
- A link may lock or hide controls (`ui.handout`): on its page they keep the values that it brought.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui import handout, live_slider, navigation
from ui.control_kinds import (
    MAX_SEED,
    Choice,
    Control,
    Dependent,
    Flags,
    Length,
    Line,
    Option,
    Seed,
    Sentence,
    Settings,
    Slider,
    Switch,
    plain,
)
from ui.following import LAST, draw_fragment, listen, looks_beside, wire
from ui.handout import Handout
from ui.link import read_link, resolve, same, shown_link, write_link
from ui.memory import Fixed, Memory, held, recall

_TOKENS = (
    "It is split into tokens: words and punctuation marks. “The” and “the” are two different tokens. "
    "Where the box is blank, the tokens are random vectors, as in the lesson."
)


def slider(name: str, label: str, low: float, high: float, *, step: float = 1, default: float, **more: Any) -> Control:
    """A number in fixed steps; all whole numbers, or all floats.

    `more`, here and below: help, in_page, only_if, sets.
    """
    return Slider(name, label, default, low=low, high=high, step=step, **more)


def seq_len(low: int, high: int, *, default: int, **more: Any) -> Control:
    """The sequence length; not drawn while a sentence decides it. After `sentence` in the list."""
    return Length("seq_len", "Sequence length", default, low=low, high=high, step=1, **more)


def source_len(low: int, high: int, *, default: int, **more: Any) -> Control:
    """The length of a second sequence; not drawn while a second sentence decides it. After `source`."""
    label = "Length of the second sequence"
    return Length("source_len", label, default, low=low, high=high, step=1, of="source", **more)


def d_model(low: int, high: int, *, step: int = 2, default: int, **more: Any) -> Control:
    """The model width."""
    told = "How many numbers stand for one token"
    return Slider("d_model", "Model width d_model", default, low=low, high=high, step=step, help=told, **more)


def heads(*, default: int = 1, most: int | None = None, **more: Any) -> Control:
    """The number of attention heads, among the divisors of `d_model` (up to `most`). After `d_model` in the list."""
    return Choice(
        "heads",
        "Attention heads",
        default,
        options=lambda s: [n for n in _divisors(s.d_model) if n <= (most or n)],
        complaint=lambda n, s: f"{plain(n)} heads do not divide d_model {s.d_model}",
        **more,
    )


def choice_up_to(
    name: str, label: str, *, low: int = 1, high: Callable[[Settings], int], default: int = 1, **more: Any
) -> Control:
    """A whole number from `low` to a bound that the controls before it decide. A single one has no widget."""
    return Choice(name, label, default, options=lambda s: range(low, max(low, high(s)) + 1), **more)


def flags(name: str, label: str, *, low: int = 1, high: Callable[[Settings], int], **more: Any) -> Control:
    """Any of the whole numbers from `low` to a bound that the controls before it decide; none by default."""
    return Flags(name, label, (), options=lambda s: range(low, max(low, high(s)) + 1), **more)


def switch(name: str, label: str, *, default: bool, **more: Any) -> Control:
    """On or off; `true` or `false` in the link."""
    return Switch(name, label, default, **more)


def option(name: str, label: str, options: Sequence[str], *, default: str, **more: Any) -> Control:
    """One of a few short words, which stand in the link as they stand on the screen."""
    return Option(name, label, default, options=tuple(options), **more)


def seed(*, default: int = 0, **more: Any) -> Control:
    """The seed of every random draw of the page."""
    return Seed("seed", "Seed of the random weights", default, low=0, high=MAX_SEED, step=1, **more)


def sentence(*, default: str = "", **more: Any) -> Control:
    """The reader's sentence. First in the list, so that the lengths after it can follow it."""
    return Sentence("sentence", "Sentence", default, help=_TOKENS, **more)


def source(**more: Any) -> Control:
    """A second sentence, for cross-attention."""
    return Sentence("source", "Second sentence", "", help=_TOKENS, **more)


def line(name: str, label: str, **more: Any) -> Control:
    """A short text that the page reads for itself; blank by default."""
    return Line(name, label, "", **more)


def open_page(name: str, controls: Sequence[Control | str], *, in_parts: bool = False) -> Settings:
    """Enter the page, draw its controls in the sidebar (a string is a heading) and return the settings.

    Call it below the title: what the link got wrong is told where it is called.

    Args:
        in_parts: the page consists of parts that follow its sliders by themselves (`ui.page_parts`), and draws its
            controls with `draw_beside`, once its first picture is on its way.
    """
    memory = recall()
    if memory.forgot:
        memory.forgot = False
        st.switch_page(navigation.page_of(navigation.entry(memory.page)), query_params=handout.write(memory.handout))
    real = [control for control in controls if isinstance(control, Control)]
    acted, memory.acted = memory.acted or bool(memory.changed or memory.slid), False
    memory.declared, memory.controls, memory.homes, memory.parts, memory.due = controls, real, {}, {}, []
    memory.placed = {}
    memory.leader = memory.part = ""
    memory.end, memory.runs = LAST, memory.runs + 1
    if memory.returned:  # what a widget says may be older than the link that the browser binds it to
        heeded = {memory.key(control) for control in real if control.name in unbound(real)}
        memory.changed = [key for key in memory.changed if key in heeded]
    memory.take_changes(real)
    if memory.page != name:
        _enter(memory, name, real)
    elif memory.returned or not acted:
        _hear_history(real)
    memory.returned = False
    settings = settings_now()
    memory.looks = looks_beside(memory, settings)
    if memory.notes:
        with st.container(border=True):
            st.text("\n".join(memory.notes))  # not Markdown: it quotes what the link said
    if not in_parts:
        draw_beside()
    return settings


def draw_beside() -> None:
    """Draw the controls of the page that is open: in the sidebar, or beside a section that is presented."""
    memory, settings = recall(), settings_now()
    with st.container(key="controls_beside") if memory.handout.present else st.sidebar:
        heading = ""
        for control in memory.declared:
            if isinstance(control, str):
                heading = control
            elif not control.in_page and control.applies(settings) and control.name not in memory.handout.hidden:
                if heading:  # with nothing below it, it is left out
                    # beside a presented section a heading would stand between those of page and section
                    st.markdown(f"**{heading}**") if memory.handout.present else st.subheader(heading, anchor=False)
                heading = ""
                _draw_beside(control, settings)
        if memory.page != navigation.HAND_OUT.name:  # it has no example
            _buttons(memory.controls, settings)
        if not memory.leader:
            listen("")
    _follow_history(memory.controls)
    write_unbound(memory.controls)


def _enter(memory: Memory, name: str, controls: Sequence[Control]) -> None:
    memory.page = name
    link, fixed = _link(), memory.fixed.get(name, Fixed())
    before = Handout(min(memory.handout.present, 1), memory.handout.questions, fixed.locked, fixed.hidden)
    memory.handout, notes = handout.read(link, [control.name for control in controls], before)
    memory.chosen, memory.notes = read_link(controls, link, memory.chosen)
    memory.notes += notes
    if "lock" in link or "hide" in link:
        values = resolve(controls, memory.chosen).values
        kept = {name: values[name] for name in memory.handout.fixed}
        memory.fixed[name] = Fixed(memory.handout.locked, memory.handout.hidden, kept)
    clean = memory.link = write_link(controls, memory.settings(controls)) | handout.write(memory.handout)
    memory.written, memory.opening = clean, live_slider.can_be_drawn() and not memory.handout.present
    if link != {key: [text] for key, text in clean.items()}:
        # A name that is still bound to the page before cannot be written: then the next run tells the browser.
        with suppress(StreamlitAPIException):
            st.switch_page(navigation.page_of(navigation.entry(name)), query_params=clean)


def settings_now() -> Settings:
    """The settings of the page that is open."""
    memory = recall()
    settings = memory.settings(memory.controls)
    settings.draw = lambda name: _draw_in_page(name, memory.controls, settings)
    link = write_link(memory.controls, settings)
    memory.link = link | handout.write(memory.handout)
    memory.shown = link if settings.wanted == settings.values else shown_link(memory.controls, settings)
    return settings


def told(settings: Settings) -> str:
    """All settings of the page that is open, in one line."""
    return " · ".join(control.told(settings) for control in recall().controls if control.applies(settings))


def address() -> tuple[str, dict[str, str]]:
    """The page that is open, and what it shows as a link spells it: what differs from the page's own, by name.

    In a part, without what changes nothing in it.
    """
    memory = recall()
    return memory.page, {name: text for name, text in memory.shown.items() if name not in memory.unmoved}


def choose(name: str, value: Any) -> None:
    """Set a control from a button's callback, as if the reader had."""
    draw_all_anew()
    recall().chosen[name] = value


def draw_all_anew() -> None:
    """Have all of the page follow a widget in one of its parts. From the widget's callback."""
    recall().acted = True


def begin_anew(values: Mapping[str, Any]) -> None:
    """Set the page's controls as the lesson has them, save for these values. From a button's callback."""
    memory = recall()
    memory.acted = True
    for control in memory.controls:
        if control.name not in memory.handout.fixed:
            memory.chosen.pop(control.name, None)
    memory.chosen |= values


def shown_as() -> Handout:
    """How the page is shown to a class."""
    return recall().handout


def present(section: int) -> None:
    """Show this section of the page alone, from 1; the whole page for 0. From a button's callback."""
    memory = recall()
    memory.acted = True
    memory.handout = replace(memory.handout, present=section)


def chosen_on(page: str, controls: Iterable[Control]) -> tuple[Settings, Fixed]:
    """The settings with which a page of these controls would open now, and what a link has fixed on it."""
    memory = recall()
    fixed = memory.fixed.get(page, Fixed())
    return resolve(controls, memory.chosen | fixed.values), fixed


def _draw_beside(control: Control, settings: Settings) -> None:
    """Draw one control beside the page: a live slider whose options others decide in a fragment, to follow them."""
    memory = recall()
    if memory.leader and isinstance(control, Choice) and live_slider.can_be_drawn():
        key = memory.homes[control.name] = f"slider {control.name}"
        draw_fragment(key, lambda: draw(control, settings_now()))
    else:
        draw(control, settings)


def draw(control: Control, settings: Settings) -> None:
    """Draw one control, showing its value in `settings`."""
    memory, name = recall(), control.name
    if not control.applies(settings) or name in memory.handout.hidden:
        return
    if name in memory.handout.locked:
        st.text(f"{control.told(settings)} (locked)")
        _say_what_is_not_shown(control, settings, memory.fixed[memory.page].values)
        return
    slides = control.slides and live_slider.can_be_drawn()
    if isinstance(control, Dependent) and not slides:
        memory.replace(control, list(control.options(settings)))
    if not control.drawn(settings):
        st.text(control.fixed(settings))
        return
    if slides:
        if memory.part:
            memory.homes[name] = memory.part
        follower = memory.part or memory.leader
        live_slider.draw(
            control.label,
            control.track(settings),
            key=name,
            help=control.help,
            heard=memory.heard,
            session=memory.session,
            wire=wire(follower),
            wire_at_rest=wire(LAST) if follower else "",
            beside=bool(follower) and not memory.part,
        )
    else:
        _draw_widget(control, settings)
    _say_what_is_not_shown(control, settings, memory.chosen)
    if isinstance(control, Sentence) and settings.sentences[name].left_out:
        found = settings.sentences[name]
        st.caption(f"The first {len(found.tokens)} tokens are used; {found.left_out:,} are left out.")


def _say_what_is_not_shown(control: Control, settings: Settings, asked: Mapping[str, Any]) -> None:
    """Where the other controls leave no room for what was asked for: what is shown instead, and why."""
    wanted, value = settings.wanted[control.name], settings.values[control.name]
    if control.name in asked and not same(wanted, value):
        st.caption(f"{control.problem(wanted, settings)}: {control.showing(value)}.")


def _draw_widget(control: Control, settings: Settings) -> None:
    """Draw a control as Streamlit's own widget."""
    memory, name, value = recall(), control.name, settings.values[control.name]
    dependent, key = isinstance(control, Dependent), memory.key(control)
    # Assigning a value that the browser has would undo fast key presses, so not to the control that moves.
    default = value if dependent else control.nearest(control.default, settings)
    differs = not same(held(st.session_state.get(key, default)), value)
    unheard = st.query_params.get(name) != memory.link.get(name) and not dependent
    if differs or (unheard and key not in memory.moved):
        if unheard and name in memory.link and key not in st.session_state:
            # Streamlit writes no value into the link in the run in which it meets a widget.
            with suppress(StreamlitAPIException):  # it has met it on another page
                st.query_params[name] = memory.link[name]
        st.session_state[key] = list(value) if isinstance(value, tuple) else value
    shown = control.widget(
        settings,
        label=control.label,
        key=key,
        help=control.help,
        on_change=lambda: recall().changed.append(key),
        bind=None if dependent else "query-params",
    )
    memory.astray |= not same(shown, value)


def _draw_in_page(name: str, controls: Sequence[Control], settings: Settings) -> None:
    memory = recall()
    memory.placed[name] = memory.part
    draw(next(control for control in controls if control.name == name), settings)
    _follow_history(controls)


def _follow_history(controls: Sequence[Control]) -> None:
    """Where the browser went back or forward, the link has set the widgets: take over what it says."""
    memory = recall()
    if memory.astray:
        memory.astray = False
        memory.chosen, memory.notes = read_link(controls, _link(), memory.chosen)
        st.rerun()


def _hear_history(controls: Sequence[Control]) -> None:
    """Where the browser went back or forward, take over what its link says.

    Streamlit sets the widgets that it binds, where the link holds them (`_follow_history` hears of what is drawn
    already by then); what the link leaves out stays as it was, and is to have its default. A click that comes at the
    same time hides the step from the server, so the browser tells of it once more when all is at rest.
    """
    memory = recall()
    shown, _ = handout.read(_link(), (), Handout())
    memory.handout = replace(memory.handout, present=shown.present)
    run = get_script_run_ctx()
    returned = memory.returned or (run and run.is_history_navigation)
    names = [each.name for each in controls] if returned else unbound(controls)
    differ = {name for name in names if st.query_params.get(name) != memory.written.get(name)}
    if differ:
        kept = {name: value for name, value in memory.chosen.items() if name not in differ}
        memory.chosen, memory.notes = read_link(controls, _link(), kept)


def _buttons(controls: Sequence[Control], settings: Settings) -> None:
    """The way back to the lesson's example, and other weights. On the first page the way back is for all pages."""
    memory = recall()
    everywhere = memory.page == navigation.ENTRIES[0].name
    names = list(memory.chosen) if everywhere else [control.name for control in controls]
    told = f"Every control of {'all pages' if everywhere else 'this page'} as the lesson has it"
    st.button("Lesson example", help=told, on_click=_forget, args=(names,), width="stretch")
    free = "seed" not in memory.handout.fixed
    if free and any(control.name == "seed" and control.applies(settings) for control in controls):
        st.button("New weights", help="Draw again, from the next seed", on_click=_next_seed, width="stretch")


def _forget(names: Iterable[str]) -> None:
    """Take back what was chosen by these names. The page then opens anew, without a link."""
    memory = recall()
    for name in names:
        memory.chosen.pop(name, None)
    memory.notes, memory.forgot = [], True


def teaching_buttons() -> None:
    """For the projector and for handing out, below the controls."""
    with st.sidebar:
        st.subheader("Teach", anchor=False)
        st.button(
            "Present",
            help="For the projector: large, one section at a time",
            icon=":material/slideshow:",
            shortcut="P",
            on_click=present,
            args=(1,),
            width="stretch",
        )
        if not shown_as().fixed:  # a page that was handed out itself stays as it was
            page = navigation.entry(recall().page).title
            to, icon = navigation.page_of(navigation.HAND_OUT), navigation.HAND_OUT.icon
            st.page_link(to, label="Hand this page out", icon=icon, query_params={"page": page})


def _next_seed() -> None:
    choose("seed", (st.session_state["seed"] + 1) % (MAX_SEED + 1))


def write_unbound(controls: Sequence[Control]) -> None:
    """Write the controls that are not bound, and how the page is shown, into the link; not while a slider moves.

    Streamlit does not do it. It would correct the link of a `Dependent` while a key moves the control that it depends
    on, and such a correction reaches the browser when that has moved on: the link would then hold an old value. And
    each change that is written is a step in the browser's history: one drag is to be one step.
    """
    memory = recall()
    if memory.moving:
        return
    written = st.query_params.to_dict()
    for name in (*unbound(controls), *handout.NAMES):
        if written.get(name) != memory.link.get(name):
            if name in memory.link:
                st.query_params[name] = memory.link[name]
            else:
                del st.query_params[name]
    memory.written = memory.link


def unbound(controls: Iterable[Control]) -> list[str]:
    """The names of the controls that Streamlit does not keep in the link by itself."""
    live = live_slider.can_be_drawn()
    return [control.name for control in controls if isinstance(control, Dependent) or (control.slides and live)]


@lru_cache(maxsize=128)  # a few whole numbers for each width of the model
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(n for n in range(1, number + 1) if number % n == 0)


def _link() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}
