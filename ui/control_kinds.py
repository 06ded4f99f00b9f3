"""The kinds of controls: how each reads a link, finds its nearest legal value, and is drawn.

Nothing here knows of pages or of the session; `ui.controls` puts the kinds to work.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import streamlit as st

from core.tokens import Tokens, tokenize

MAX_SENTENCE = 1000  # characters: enough for 64 long words, and short enough for a link
MAX_LINE = 100  # characters
MAX_KEPT = 100_000  # characters of a text whose tokens are kept
MAX_SEED = 9999
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class Settings:
    """The values of a page's controls by name, all legal together: `settings.d_model`, `settings.tokens`."""

    draw: Callable[[str], None]
    """Draws a control that was declared with `in_page=True` where the page calls it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.wanted: dict[str, Any] = {}  # what was chosen, or the page's default: legal or not
        self.sentences: dict[str, Tokens] = {}  # of each sentence box, by its name

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("values", {}):
            return self.values[name]
        raise AttributeError(f"this page has no control named {name!r}")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The typed sentence's tokens; none where the lesson's random tokens are wanted."""
        return self.sentences["sentence"].tokens if "sentence" in self.sentences else ()

    @property
    def n_tokens(self) -> int:
        """The length of the sequence: the sentence's tokens, or else the slider's value."""
        return len(self.tokens) or self.values["seq_len"]

    def take(self, control: "Control", wanted: Any) -> Any:
        """Enter the legal value nearest to the wanted one, and return it."""
        self.wanted[control.name] = wanted
        self.values[control.name] = value = control.nearest(wanted if control.applies(self) else control.default, self)
        if isinstance(control, Sentence):
            kept = _tokenize(value).tokens
            whole = _tokenize(wanted)  # a sentence too long for the link is counted to its end
            self.sentences[control.name] = Tokens(kept, len(whole.tokens) + whole.left_out - len(kept))
        return value


@dataclass(frozen=True)
class Control:
    """What every control has. `name` is its key, in session and link; `default` is its page's own."""

    name: str
    label: str
    default: Any
    help: str | None = None
    in_page: bool = False  # drawn by the page with settings.draw(name), not in the sidebar
    only_if: Callable[[Settings], bool] | None = None  # where it is False, the control is not drawn and rests
    sets: Callable[[Any], dict[str, Any]] | None = None  # what a choice by hand sets too; a link speaks for itself
    slides: ClassVar[bool] = False  # whether a browser shows it as a live slider, over `track`

    def read(self, text: str) -> Any:
        """The value that a link's text means. Raises ValueError with the reason, to follow the name."""
        return text

    def write(self, value: Any) -> str:
        """The value as the link spells it."""
        return str(value)

    def takes(self, value: Any) -> bool:
        """Whether a widget's value is of this kind at all. Of a browser it always is; a forged message may say more."""
        return isinstance(value, type(self.default))

    def nearest(self, value: Any, settings: Settings) -> Any:
        """The legal value nearest to this one, given the controls before it."""
        return value

    def problem(self, value: Any, settings: Settings) -> str:
        """Why this value is not legal, as the start of a sentence."""
        return f"{self.name} {self.write(value)} cannot be used here"

    def showing(self, value: Any) -> str:
        """What is shown instead, as the end of that sentence."""
        return f"showing {self.write(value)}"

    def words(self, value: Any) -> str:
        """The value as a sentence spells it."""
        return self.write(value)

    def told(self, settings: Settings) -> str:
        """The control and its value as a line of text."""
        return self.fixed(settings) or f"{self.label}: {self.words(settings.values[self.name])}"

    def applies(self, settings: Settings) -> bool:
        """Whether the controls before it leave this one a meaning; otherwise it rests at its default."""
        return self.only_if is None or self.only_if(settings)

    def fixed(self, settings: Settings) -> str | None:
        """A line of text instead of the widget, where there is nothing to choose."""
        return None

    def drawn(self, settings: Settings) -> bool:
        """Whether there is a widget, and so a place in the link."""
        return self.applies(settings) and self.fixed(settings) is None

    def widget(self, settings: Settings, **shared: Any) -> Any:
        """Draw the widget and return its value."""
        raise NotImplementedError

    def track(self, settings: Settings) -> dict[str, Any]:
        """Between what, in which steps and where a live slider stands, as `ui.live_slider` takes it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Slider(Control):
    """A number from low to high in fixed steps: all whole numbers, or all floats."""

    low: float = 0
    high: float = 1
    step: float = 1
    slides: ClassVar[bool] = True

    def read(self, text: str) -> float:
        return _number(text)

    def write(self, value: float) -> str:
        return plain(value)

    def takes(self, value: Any) -> bool:
        return isinstance(value, int | float) and math.isfinite(value)

    def nearest(self, value: float, settings: Settings) -> float:
        last = math.floor((self.high - self.low) / self.step + 1e-9)
        at = (min(max(value, self.low), self.high) - self.low) / self.step
        exact = self.low + self.step * min(math.floor(at + 0.5), last)
        return exact if isinstance(self.step, int) else round(exact, 6)  # 0.3, not 0.30000000000000004

    def problem(self, value: float, settings: Settings) -> str:
        if self.low <= value <= self.high:
            return f"{self.name} {plain(value)} is not a step of this slider"
        return f"{self.name} {plain(value)} is outside {plain(self.low)} to {plain(self.high)}"

    def widget(self, settings: Settings, **shared: Any) -> float:
        return st.slider(min_value=self.low, max_value=self.high, step=self.step, value=self.default, **shared)

    def track(self, settings: Settings) -> dict[str, Any]:
        return dict(min=self.low, max=self.high, step=self.step, value=settings.values[self.name])


@dataclass(frozen=True)
class Length(Slider):
    """The length of a sequence, which a typed sentence decides by itself."""

    of: str = "sentence"  # the name of that sentence's box

    def nearest(self, value: float, settings: Settings) -> float:
        return self._typed(settings) or super().nearest(value, settings)

    def problem(self, value: float, settings: Settings) -> str:
        if self._typed(settings):
            return f"{self.name} {plain(value)} gives way to the length of the sentence"
        return super().problem(value, settings)

    def fixed(self, settings: Settings) -> str | None:
        typed = self._typed(settings)
        return f"{self.label}: {typed}, from the sentence" if typed else None

    def _typed(self, settings: Settings) -> int:
        return len(settings.sentences[self.of].tokens)


@dataclass(frozen=True)
class Seed(Slider):
    """A whole number to draw from, typed rather than slid to."""

    slides: ClassVar[bool] = False

    def problem(self, value: float, settings: Settings) -> str:
        if self.low <= value <= self.high:
            return f"{self.name} {plain(value)} is not a whole number"
        return super().problem(value, settings)

    def widget(self, settings: Settings, **shared: Any) -> float:
        return st.number_input(min_value=0, max_value=MAX_SEED, step=1, value=int(self.default), **shared)


@dataclass(frozen=True)
class Dependent(Control):
    """Whole numbers to choose from, which the controls before it decide."""

    options: Callable[[Settings], Sequence[int]] = lambda settings: (1,)


@dataclass(frozen=True)
class Choice(Dependent):
    """One of the numbers."""

    complaint: Callable[[float, Settings], str] | None = None  # about a value between two options
    slides: ClassVar[bool] = True

    def read(self, text: str) -> float:
        return _number(text)

    def write(self, value: float) -> str:
        return plain(value)

    def takes(self, value: Any) -> bool:
        return isinstance(value, int | float) and math.isfinite(value)

    def nearest(self, value: float, settings: Settings) -> int:
        options = self.options(settings)
        inside = min(max(value, min(options)), max(options))
        return min(options, key=lambda option: (abs(option - inside), option))

    def problem(self, value: float, settings: Settings) -> str:
        options = self.options(settings)
        if not min(options) <= value <= max(options):
            return f"{self.name} {plain(value)} is outside {min(options)} to {max(options)}"
        if self.complaint:
            return self.complaint(value, settings)
        return f"{self.name} {plain(value)} is not a whole number"

    def fixed(self, settings: Settings) -> str | None:
        options = self.options(settings)
        return f"{self.label}: {options[0]}" if len(options) == 1 else None

    def widget(self, settings: Settings, **shared: Any) -> int:
        return st.select_slider(options=list(self.options(settings)), value=settings.values[self.name], **shared)

    def track(self, settings: Settings) -> dict[str, Any]:
        return dict(options=list(self.options(settings)), value=settings.values[self.name])


@dataclass(frozen=True)
class Option(Control):
    """One of a few words. The words stand on the screen and in the link alike."""

    options: tuple[str, ...] = ()

    def read(self, text: str) -> str:
        for option in self.options:
            if option.casefold() == text.strip().casefold():
                return option
        raise ValueError(f"{quoted(text)} is not one of {', '.join(self.options)}")

    def nearest(self, value: str, settings: Settings) -> str:
        return value if value in self.options else self.default

    def widget(self, settings: Settings, **shared: Any) -> str:
        return st.segmented_control(options=self.options, default=self.default, required=True, **shared)


@dataclass(frozen=True)
class Flags(Dependent):
    """Any of the numbers, as a tuple; with commas between them in the link."""

    def read(self, text: str) -> tuple[float | str, ...]:
        return tuple(_number_or_text(part.strip()) for part in text.split(",") if part.strip())

    def write(self, value: Sequence[float]) -> str:
        return ",".join(plain(number) for number in value)

    def nearest(self, value: Sequence[float], settings: Settings) -> tuple[int, ...]:
        options = self.options(settings)
        return tuple(dict.fromkeys(int(number) for number in value if number in options))

    def problem(self, value: Sequence[float], settings: Settings) -> str:
        options = self.options(settings)
        wrong = [plain(part) for part in dict.fromkeys(value) if part not in options]
        if not wrong:
            return f"{self.name} names a number twice"
        return f"{self.name} {quoted(', '.join(wrong))} is none of {min(options)} to {max(options)}"

    def showing(self, value: Sequence[float]) -> str:
        return f"showing {self.words(value)}"

    def words(self, value: Sequence[float]) -> str:
        return self.write(value) or "none"

    def widget(self, settings: Settings, **shared: Any) -> tuple[int, ...]:
        shown = list(settings.values[self.name])
        return tuple(st.pills(options=list(self.options(settings)), selection_mode="multi", default=shown, **shared))


@dataclass(frozen=True)
class Switch(Control):
    """On or off."""

    def read(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("true", "false"):
            raise ValueError(f"{quoted(text)} is neither true nor false")
        return word == "true"

    def write(self, value: bool) -> str:
        return str(value).lower()

    def words(self, value: bool) -> str:
        return "on" if value else "off"

    def widget(self, settings: Settings, **shared: Any) -> bool:
        return st.toggle(value=self.default, **shared)


@dataclass(frozen=True)
class Line(Control):
    """A short text that the page reads for itself; it stays as typed."""

    most: int = MAX_LINE  # characters
    blank: str = "an example"  # what a blank one means

    def nearest(self, value: str, settings: Settings) -> str:
        return value[: self.most]

    def problem(self, value: str, settings: Settings) -> str:
        return f"“{self.label}” has {len(value):,} characters"

    def showing(self, value: str) -> str:
        return f"only the first {len(value):,} are kept"

    def words(self, value: str) -> str:
        return value if value.strip() else self.blank

    def widget(self, settings: Settings, **shared: Any) -> str:
        return st.text_input(value=self.default, placeholder=f"Blank: {self.blank}", **shared)


@dataclass(frozen=True)
class Sentence(Line):
    """A text that becomes the tokens; blank means the lesson's random tokens."""

    most: int = MAX_SENTENCE
    blank: str = "random tokens"


def _tokenize(text: str) -> Tokens:
    """A rerun does not split its sentence again, which takes 60 ms where somebody pastes a book."""
    return _tokens_of(text) if len(text) <= MAX_KEPT else tokenize(text)


@lru_cache(maxsize=8)  # texts of 100,000 characters with their tokens, 0.8 MB each at 4 bytes a character: 6.4 MB
def _tokens_of(text: str) -> Tokens:
    return tokenize(text)


def plain(number: float | str) -> str:
    """A number without needless digits, as Streamlit spells it in links: 6, 0.3. Text stays as it is."""
    return number if isinstance(number, str) else f"{number:.10g}"


def quoted(text: str) -> str:
    """Text of a link in quotation marks, cut where it is long."""
    return f"“{text if len(text) <= 30 else text[:29] + '…'}”"


def _number_or_text(text: str) -> float | str:
    """The number, or else the text, for somebody else to complain about."""
    try:
        return _number(text)
    except ValueError:
        return text


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"{quoted(text)} is not a number")
    return float(text)
