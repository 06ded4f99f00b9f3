"""The controls of a page: what the reader may set, remembered over the pages and held in the link.

A page lists its controls; `open_page` draws them and returns the settings, which are always legal.

- What the reader chose is remembered by name (`Memory.chosen`), and what has to be shown instead does not replace it:
  4 heads chosen show as 3 while d_model is 18, and as 4 again at 20.
- A page is entered through one door (`ui.link.read_link`): it checks the whole link before any widget exists, tells
  what it corrected, and the browser is sent to the clean link.
- From then on Streamlit keeps link and widgets together (`bind="query-params"`), without the defaults; only live
  sliders and the controls that depend on others are written into the link here (`_write_unbound` says why).
- A browser gets live sliders (`ui.live_slider`), which report while they move; where there is none, as in tests of
  pages, `st.slider` stands in their place. Both report to the same memory.
- When a live slider moves, only what it changes is drawn again, where the page consists of parts (`draw_part`). All
  else that the reader does runs the page's script from the start.
- A link may lock or hide controls (`ui.handout`): on its page they keep the values that it brought.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

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
from ui.handout import Handout
from ui.link import read_link, resolve, same, shown_link, write_link

_TOKENS = (
    "It is split into tokens: words and punctuation marks. “The” and “the” are two different tokens. "
    "Where the box is blank, the tokens are random vectors, as in the lesson."
)


_LAST = "last"  # the fragment after all parts


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
    parts: dict[str, "Part | None"] = field(default_factory=dict)  # of the page, each a fragment; None before its turn
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
                held = _held(st.session_state.get(self.key(control)))
                value = self.slid.pop(control.name, held)
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


def open_page(name: str, controls: Sequence[Control | str], *, in_parts: bool = False) -> Settings:
    """Enter the page, draw its controls in the sidebar (a string is a heading) and return the settings.

    Call it below the title: what the link got wrong is told where it is called.

    Args:
        in_parts: the page consists of parts that follow its sliders by themselves (`draw_part`), and draws its controls
            with `draw_beside`, once its first picture is on its way.
    """
    memory = _memory()
    if memory.forgot:
        memory.forgot = False
        st.switch_page(navigation.page_of(navigation.entry(memory.page)), query_params=handout.write(memory.handout))
    real = [control for control in controls if isinstance(control, Control)]
    acted, memory.acted = memory.acted or bool(memory.changed or memory.slid), False
    memory.declared, memory.controls, memory.homes, memory.parts, memory.due = controls, real, {}, {}, []
    memory.placed = {}
    memory.leader = memory.part = ""
    memory.end, memory.runs = _LAST, memory.runs + 1
    if memory.returned:  # what a widget says may be older than the link that the browser binds it to
        unbound = {memory.key(control) for control in real if control.name in _unbound(real)}
        memory.changed = [key for key in memory.changed if key in unbound]
    memory.take_changes(real)
    if memory.page != name:
        _enter(memory, name, real)
    elif memory.returned or not acted:
        _hear_history(real)
    memory.returned = False
    settings = settings_now()
    memory.looks = _looks(memory, settings)
    if memory.notes:
        with st.container(border=True):
            st.text("\n".join(memory.notes))  # not Markdown: it quotes what the link said
    if not in_parts:
        draw_beside()
    return settings


def draw_beside() -> None:
    """Draw the controls of the page that is open: in the sidebar, or beside a section that is presented."""
    memory, settings = _memory(), settings_now()
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
            _listen("")
    _follow_history(memory.controls)
    _write_unbound(memory.controls)


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
    memory = _memory()
    settings = memory.settings(memory.controls)
    settings.draw = lambda name: _draw_in_page(name, memory.controls, settings)
    link = write_link(memory.controls, settings)
    memory.link = link | handout.write(memory.handout)
    memory.shown = link if settings.wanted == settings.values else shown_link(memory.controls, settings)
    return settings


def announce_parts(keys: Sequence[str], *, apart: bool = True) -> None:
    """Say which parts the page is going to draw; apart: so that each can be drawn anew by itself."""
    memory = _memory()
    memory.due, memory.parts, memory.apart = list(keys), dict.fromkeys(keys), apart


def let_lead(part: str) -> None:
    """Say which part, drawn by now, follows a slider while that moves. Before the controls are drawn."""
    _memory().leader = part


def draw_part(key: str, draw: Callable[[Settings], bool], unmoved: Collection[str] = ()) -> None:
    """Draw a part of the page that can be drawn anew by itself: a fragment, where the script calls it.

    Args:
        draw: returns whether the part is to be drawn again when a slider has moved.
        unmoved: the names of the controls that change nothing in it.
    """
    _draw_fragment(key, partial(_draw_part, key, draw, unmoved))


def draw_last(draw: Callable[[], None]) -> None:
    """What follows all parts that a run draws, and shows nothing."""
    _draw_fragment(_LAST, partial(_draw_last, draw))


def _draw_part(key: str, draw: Callable[[Settings], bool], unmoved: Collection[str]) -> None:
    memory = _memory()
    if memory.acted or memory.changed:  # a click in this part that is about the whole page
        st.rerun()
    memory.part, memory.unmoved, settings = key, unmoved, settings_now()
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
    memory = _memory()
    if not memory.opening:
        _keep_in_link()
    memory.opening = False
    _end(_LAST)


def _keep_in_link() -> None:
    """Draw, where they are not seen, the controls of the link that have no place in what is shown of the page.

    What is not drawn Streamlit takes out of the link.
    """
    memory = _memory()
    placed = {*memory.placed, *_unbound(memory.controls)}
    kept = [each for each in memory.controls if each.in_page and each.name in memory.link and each.name not in placed]
    if kept:
        settings = settings_now()
        with st.container(key="out_of_sight"):
            for control in kept:
                _draw(control, settings)


def _end(key: str) -> None:
    """End a fragment, and the run if it is the last one."""
    memory = _memory()
    if key == memory.end:
        _write_unbound(memory.controls)
    _listen(key)


def _draw_fragment(key: str, draw: Callable[[], None]) -> None:
    def drawn_by_itself() -> None:  # Streamlit asks a fragment for its name, which a partial has not
        draw()

    if _memory().apart:
        st.fragment(drawn_by_itself, key=key)()
    else:
        with st.container():  # as around a fragment: so the browser keeps what stands there
            draw()


def told(settings: Settings) -> str:
    """All settings of the page that is open, in one line."""
    return " · ".join(control.told(settings) for control in _memory().controls if control.applies(settings))


def part() -> str:
    """The key of the part that is being drawn; "" outside of them."""
    return _memory().part


def more_is_due() -> bool:
    """Whether another part than the one that is being drawn is still to follow: in this run, or when a slider rests."""
    memory = _memory()
    return memory.moving or bool(set(memory.due) - {memory.part})


def address() -> tuple[str, dict[str, str]]:
    """The page that is open, and what it shows as a link spells it: what differs from the page's own, by name.

    In a part, without what changes nothing in it.
    """
    memory = _memory()
    return memory.page, {name: text for name, text in memory.shown.items() if name not in memory.unmoved}


def choose(name: str, value: Any) -> None:
    """Set a control from a button's callback, as if the reader had."""
    draw_all_anew()
    _memory().chosen[name] = value


def draw_all_anew() -> None:
    """Have all of the page follow a widget in one of its parts. From the widget's callback."""
    _memory().acted = True


def begin_anew(values: Mapping[str, Any]) -> None:
    """Set the page's controls as the lesson has them, save for these values. From a button's callback."""
    memory = _memory()
    memory.acted = True
    for control in memory.controls:
        if control.name not in memory.handout.fixed:
            memory.chosen.pop(control.name, None)
    memory.chosen |= values


def shown_as() -> Handout:
    """How the page is shown to a class."""
    return _memory().handout


def present(section: int) -> None:
    """Show this section of the page alone, from 1; the whole page for 0. From a button's callback."""
    memory = _memory()
    memory.acted = True
    memory.handout = replace(memory.handout, present=section)


def chosen_on(page: str, controls: Iterable[Control]) -> tuple[Settings, Fixed]:
    """The settings with which a page of these controls would open now, and what a link has fixed on it."""
    memory = _memory()
    fixed = memory.fixed.get(page, Fixed())
    return resolve(controls, memory.chosen | fixed.values), fixed


def _draw_beside(control: Control, settings: Settings) -> None:
    """Draw one control beside the page: a live slider whose options others decide in a fragment, to follow them."""
    memory = _memory()
    if memory.leader and isinstance(control, Choice) and live_slider.can_be_drawn():
        key = memory.homes[control.name] = f"slider {control.name}"
        _draw_fragment(key, lambda: _draw(control, settings_now()))
    else:
        _draw(control, settings)


def _draw(control: Control, settings: Settings) -> None:
    """Draw one control, showing its value in `settings`."""
    memory, name = _memory(), control.name
    if not control.applies(settings) or name in memory.handout.hidden:
        return
    if name in memory.handout.locked:
        st.text(f"{control.told(settings)} (locked)")
        _say_what_is_not_shown(control, settings, memory.fixed[memory.page].values)
        return
    slides = control.slides and live_slider.can_be_drawn()
    if isinstance(control, Dependent) and not slides:
        memory.replace(control, _options(control, settings))
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
            wire=_wire(follower),
            wire_at_rest=_wire(_LAST) if follower else "",
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


def _listen(part: str) -> None:
    """Draw the wire by which live sliders report: one in each part and one after them, or one for the page."""
    memory = _memory()
    if not live_slider.can_be_drawn():
        return
    # In a run of several parts their end alone tells that a report was heard: before it, the wires of the other parts
    # are those of an earlier run, and what is reported by them may be lost.
    tells = not part or memory.end in ("", part)
    live_slider.listen(
        _wire(part),
        heard=memory.heard if tells else 0,
        run=memory.runs,
        on_report=partial(_follow, part),
        late=_late(memory, memory.settings(memory.controls)) if part == memory.end else None,
        empty=any(drawn and drawn.values is None for drawn in memory.parts.values()),
    )
    report = live_slider.reported(_wire(part))
    if report and report.number != memory.heard:
        # Where the server was started again under an open page, its first move came before anybody listened.
        _slide(part)
        st.rerun()


def _wire(part: str) -> str:
    return f"wire {part}".strip()


def _late(memory: Memory, settings: Settings) -> list[str]:
    """The parts that show something else than these settings.

    The last one takes up what the others have drawn, and is late as long as one of them is.
    """
    following = {key: part.values for key, part in memory.parts.items() if part and part.follows}
    late = [key for key, drawn in following.items() if drawn is None or settings.values | drawn != settings.values]
    waiting = [key for key in list(memory.parts)[-1:] if late and key in following and key not in late]
    return late + waiting


def _slide(part: str = "") -> live_slider.Report | None:
    """Hear what a wire reports. It comes from the browser and may be anything: what is no value is no move."""
    memory, report = _memory(), live_slider.reported(_wire(part))
    if report and not report.name:
        memory.heard = report.number
    control = next((each for each in memory.controls if each.slides and report and each.name == report.name), None)
    if report and control:
        with suppress(ValueError):
            memory.slid[control.name] = control.read(str(report.value))
            memory.heard, memory.dragged = report.number, not report.rest
    return report


def _follow(part: str) -> None:
    """Hear what a wire reports, and draw again what has to follow it, if it is more than the part of that wire.

    While a slider moves that is one part: the one in which it stands, or else the one before the eyes. When it rests
    these are all other parts on the screen, and beside them the sliders that look otherwise now; the rest of the page
    is asked for later. Where more than that changes, the script runs anew. A browser says by the wire of one of the
    parts that are to follow that a slider rests: often it is the only one.
    """
    memory, noted = _memory(), bool(_memory().notes)
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
    memory.end = "" if memory.moving else _LAST
    if memory.moving:
        return
    settings = memory.settings(memory.controls)
    looks = _looks(memory, settings)
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
            st.rerun([*memory.due, *beside, _LAST])
        st.rerun()


def _looks(memory: Memory, settings: Settings) -> dict[str, Any]:
    """How the controls beside the page look, by name: all but the value at which one stands that was chosen by hand."""
    return {
        control.name: (
            control.drawn(settings),
            same(settings.wanted[control.name], settings.values[control.name])
            or (settings.wanted[control.name], settings.values[control.name]),
            _options(control, settings) if isinstance(control, Dependent) else [],
        )
        for control in memory.controls
        if not control.in_page
    }


def _draw_widget(control: Control, settings: Settings) -> None:
    """Draw a control as Streamlit's own widget."""
    memory, name, value = _memory(), control.name, settings.values[control.name]
    dependent, key = isinstance(control, Dependent), memory.key(control)
    # Assigning a value that the browser has would undo fast key presses, so not to the control that moves.
    default = value if dependent else control.nearest(control.default, settings)
    differs = not same(_held(st.session_state.get(key, default)), value)
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
        on_change=lambda: _memory().changed.append(key),
        bind=None if dependent else "query-params",
    )
    memory.astray |= not same(shown, value)


def _draw_in_page(name: str, controls: Sequence[Control], settings: Settings) -> None:
    memory = _memory()
    memory.placed[name] = memory.part
    _draw(next(control for control in controls if control.name == name), settings)
    _follow_history(controls)


def _follow_history(controls: Sequence[Control]) -> None:
    """Where the browser went back or forward, the link has set the widgets: take over what it says."""
    memory = _memory()
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
    memory = _memory()
    shown, _ = handout.read(_link(), (), Handout())
    memory.handout = replace(memory.handout, present=shown.present)
    run = get_script_run_ctx()
    returned = memory.returned or (run and run.is_history_navigation)
    names = [each.name for each in controls] if returned else _unbound(controls)
    differ = {name for name in names if st.query_params.get(name) != memory.written.get(name)}
    if differ:
        kept = {name: value for name, value in memory.chosen.items() if name not in differ}
        memory.chosen, memory.notes = read_link(controls, _link(), kept)


def _buttons(controls: Sequence[Control], settings: Settings) -> None:
    """The way back to the lesson's example, and other weights. On the first page the way back is for all pages."""
    memory = _memory()
    everywhere = memory.page == navigation.ENTRIES[0].name
    names = list(memory.chosen) if everywhere else [control.name for control in controls]
    told = f"Every control of {'all pages' if everywhere else 'this page'} as the lesson has it"
    st.button("Lesson example", help=told, on_click=_forget, args=(names,), width="stretch")
    free = "seed" not in memory.handout.fixed
    if free and any(control.name == "seed" and control.applies(settings) for control in controls):
        st.button("New weights", help="Draw again, from the next seed", on_click=_next_seed, width="stretch")


def _forget(names: Iterable[str]) -> None:
    """Take back what was chosen by these names. The page then opens anew, without a link."""
    memory = _memory()
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
            page = navigation.entry(_memory().page).title
            to, icon = navigation.page_of(navigation.HAND_OUT), navigation.HAND_OUT.icon
            st.page_link(to, label="Hand this page out", icon=icon, query_params={"page": page})


def _next_seed() -> None:
    choose("seed", (st.session_state["seed"] + 1) % (MAX_SEED + 1))


def _write_unbound(controls: Sequence[Control]) -> None:
    """Write the controls that are not bound, and how the page is shown, into the link; not while a slider moves.

    Streamlit does not do it. It would correct the link of a `Dependent` while a key moves the control that it depends
    on, and such a correction reaches the browser when that has moved on: the link would then hold an old value. And
    each change that is written is a step in the browser's history: one drag is to be one step.
    """
    memory = _memory()
    if memory.moving:
        return
    written = st.query_params.to_dict()
    for name in (*_unbound(controls), *handout.NAMES):
        if written.get(name) != memory.link.get(name):
            if name in memory.link:
                st.query_params[name] = memory.link[name]
            else:
                del st.query_params[name]
    memory.written = memory.link


def _unbound(controls: Iterable[Control]) -> list[str]:
    """The names of the controls that Streamlit does not keep in the link by itself."""
    live = live_slider.can_be_drawn()
    return [control.name for control in controls if isinstance(control, Dependent) or (control.slides and live)]


@lru_cache(maxsize=128)  # a few whole numbers for each width of the model
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(n for n in range(1, number + 1) if number % n == 0)


def _options(control: Dependent, settings: Settings) -> list[int]:
    return list(control.options(settings))


def _memory() -> Memory:
    memory = st.session_state.get("memory")
    if memory is None:
        memory = st.session_state["memory"] = Memory()
    return memory


def _link() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def _held(value: Any) -> Any:
    """A widget's value as the settings hold it: a list of several as a tuple."""
    return tuple(value) if isinstance(value, list) else value
