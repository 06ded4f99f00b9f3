"""A page's link: read with every value checked, and written without the defaults. No widget is drawn here."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ui import handout
from ui.control_kinds import Control, Dependent, Flags, Settings, quoted


def resolve(controls: Iterable[Control], chosen: Mapping[str, Any]) -> Settings:
    """The legal settings nearest to what was chosen; the page's default where nothing was."""
    settings = Settings()
    for control in controls:
        settings.take(control, chosen.get(control.name, control.default))
    return settings


def read_link(
    controls: Iterable[Control], link: Mapping[str, Sequence[str]], chosen: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What is chosen once the link has spoken, and a sentence for every value that cannot be shown as it is.

    `link` has all the texts given for each name. It speaks for these names and leaves the others as chosen.
    """
    after, notes, settings = dict(chosen), [], Settings()
    for control in controls:
        name, texts = control.name, link.get(control.name, ())
        wanted = chosen.get(name, control.default)
        several = isinstance(control, Flags)
        complaint = f"{name} stands in the link {len(texts)} times" if len(texts) > 1 and not several else ""
        try:
            wanted = control.read(",".join(texts) if several else texts[-1]) if texts else wanted
        except ValueError as error:
            complaint = f"{name} {error}"
        value = settings.take(control, wanted)
        if texts and not control.applies(settings):
            notes.append(f"{name} does not apply with these settings and is left out.")
            continue
        drawn = control.drawn(settings)
        if not complaint and not same(value, wanted) and (texts or drawn):
            complaint = control.problem(wanted, settings)
        if complaint:
            notes.append(f"{complaint}: {control.showing(value)}.")
        if texts and drawn:
            after[name] = value
    known = {*settings.values, *chosen, *handout.NAMES}
    unknown = [quoted(name) for name in link if name not in known]
    if unknown:
        listed = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
        notes.append(f"The link names what this page does not have: {listed}.")
    return after, notes


def write_link(controls: Iterable[Control], settings: Settings) -> dict[str, str]:
    """The clean link of these settings: the controls that are drawn and differ from the page's defaults.

    A `Dependent` stands in it as it was chosen, even while the controls before it allow only a value nearby.
    """
    link = {}
    for control in controls:
        value, default = settings.values[control.name], control.nearest(control.default, settings)
        if isinstance(control, Dependent):
            value, default = settings.wanted[control.name], control.default
        if control.drawn(settings) and not same(value, default):
            link[control.name] = control.write(value)
    return link


def shown_link(controls: Sequence[Control], settings: Settings) -> dict[str, str]:
    """The link of what is shown, to be given away: whoever opens it finds nothing that has to be corrected."""
    return write_link(controls, resolve(controls, settings.values))


def same(a: Any, b: Any) -> bool:
    """Whether two values of a control are the same."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, abs_tol=1e-9)  # the browser's steps of 0.1 are not exact
    return bool(a == b)
