"""What a link says beside the settings: presenting or not, with or without predictions, what is locked or hidden."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from ui.control_kinds import quoted

NAMES = ("present", "questions", "lock", "hide")
MOST_SECTIONS = 99


@dataclass(frozen=True)
class Handout:
    """How a page is shown to a class."""

    present: int = 0  # the section on show, from 1; 0 where the whole page is shown
    questions: bool = True  # whether the page asks for predictions
    locked: tuple[str, ...] = ()  # names of controls that show their value and cannot be moved
    hidden: tuple[str, ...] = ()  # names of controls that are not shown and cannot be moved

    @property
    def fixed(self) -> tuple[str, ...]:
        """The names of all controls that cannot be moved."""
        return self.locked + self.hidden


def read(link: Mapping[str, Sequence[str]], names: Collection[str], before: Handout) -> tuple[Handout, list[str]]:
    """What holds once the link has spoken, and a sentence for everything in it that cannot be done.

    It speaks for the names that it holds and leaves the others as before. `names`: the controls of the page.
    """
    after, notes = before, []
    if texts := link.get("present"):
        if texts[-1].isascii() and texts[-1].isdigit():
            after = replace(after, present=min(int(texts[-1][:6]), MOST_SECTIONS))
        else:
            notes.append(f"present {quoted(texts[-1])} is not the number of a section: showing the whole page.")
    if texts := link.get("questions"):
        if texts[-1] in ("0", "1"):
            after = replace(after, questions=texts[-1] == "1")
        else:
            notes.append(f"questions {quoted(texts[-1])} is neither 0 nor 1: showing them.")
    if "lock" in link or "hide" in link:
        hidden, unknown = _known(link.get("hide", ()), names)
        locked, more = _known(link.get("lock", ()), names)
        after = replace(after, hidden=hidden, locked=tuple(name for name in locked if name not in hidden))
        if unknown or more:
            listed = ", ".join(map(quoted, (unknown + more)[:5]))
            notes.append(f"The link locks or hides what this page does not have: {listed}.")
    return after, notes


def write(handout: Handout) -> dict[str, str]:
    """The handout as the link spells it; what is as usual is left out."""
    link = {
        "present": str(handout.present) if handout.present else "",
        "questions": "" if handout.questions else "0",
        "lock": ",".join(handout.locked),
        "hide": ",".join(handout.hidden),
    }
    return {name: text for name, text in link.items() if text}


def only_here(address: str) -> str:
    """What to do where a link's address is a computer's name for itself, which leads nowhere else; else nothing."""
    host = urlsplit(address).hostname or ""
    try:
        here = ip_address(host).is_loopback or ip_address(host).is_unspecified
    except ValueError:  # a name
        here = host == "localhost" or host.endswith(".localhost")
    if not here:
        return ""
    return (
        f"This link works on this computer only, for its address is {host}. For other computers, open the app by this "
        "computer's address in the network (README, under *Teach with it*) and take the link from there."
    )


def _known(texts: Sequence[str], names: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of controls in the texts, and what is none."""
    told = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    each = dict.fromkeys(told)  # each once
    return tuple(name for name in each if name in names), tuple(name for name in each if name not in names)
