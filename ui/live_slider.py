"""A slider that reports while it moves: `st.slider` does when it is let go.

It keeps no state. It shows the value that it is given, and its moves are reported with a running number; the script
says with the next drawing which number it has heard. An answer to an earlier move than the last one moves nothing: the
hand is ahead of it.

A slider does not report by itself but by a wire, an element that is not seen: what Streamlit runs upon a report is the
part of the page in which the element stands that makes it. So a move comes by the wire of the part that follows it, and
that the slider is at rest by another wire, when that part has been drawn. Then the parts on the screen follow, and the
others when they are scrolled to, or when nothing has moved for a while. One report is made at a time, the next one when
the answer is there, so that slow machines draw fewer pictures and not late ones; the last move is always reported.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from streamlit.components.v2.bidi_component import main as mount
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest
from streamlit.components.v2.types import ComponentRenderer

_ASSETS = Path(__file__).resolve().parent / "assets"  # nothing else may stand there: the server gives it to everybody
_PACKAGE, _SLIDER, _WIRE = "transformer_live", "live_slider", "slider_wire"
_HTML = """<div class="live-slider">
<div><label></label><button type="button" aria-label="Help" hidden>?</button><output></output></div>
<p hidden></p><input type="range"><div aria-hidden="true"><span></span><span></span></div></div>"""


class Report(NamedTuple):
    """What a browser says: which slider moved ("" for none), where to, the number of the report, whether the slider is
    at rest, and then the parts of the page that are to follow it at once: those on the screen. back: there was a step
    in the browser's history before it."""

    name: str
    value: Any
    number: int
    rest: bool
    seen: list[Any]
    back: bool


@lru_cache(maxsize=1)  # two functions, for the server's life
def _components() -> tuple[ComponentRenderer, ComponentRenderer]:
    """What draws a slider and a wire; their scripts and style are files, which a browser fetches once.

    Given as texts they would go with every slider in every drawing. Streamlit takes files from an installed package
    that names their folder, so this app says of itself what such a package's manifest says. Not before a server runs:
    what it says is told to that server.
    """
    _present_plainly()
    named = [ComponentConfig(name, asset_dir=_ASSETS.name) for name in (_SLIDER, _WIRE)]
    get_bidi_component_manager().register_from_manifest(ComponentManifest(_PACKAGE, "", named), _ASSETS.parent)
    name = st.components.v2.component
    return (
        name(f"{_PACKAGE}.{_SLIDER}", html=_HTML, css="live_slider.css", js="live_slider.js", isolate_styles=False),
        name(f"{_PACKAGE}.{_WIRE}", html="<span hidden></span>", js="slider_wire.js", isolate_styles=False),
    )


def _present_plainly() -> None:
    """Let the state of a component be read as a dict.

    Streamlit makes a class anew, with six methods, whenever it reads the state of a component, so that scripts may
    write to it; and at each run it reads that of all components. That was a sixth of the time of a server with a class.
    """

    def presenter(aggregator: str, *_: Any) -> Callable[[Any, Any], Any]:
        def present(kept: dict[str, Any], state: Any) -> dict[str, Any]:
            told = state._new_widget_state.get(aggregator) or ()
            return {each["event"]: each["value"] for each in told} | kept if told else kept

        return present

    mount.make_bidi_component_presenter = presenter  # type: ignore[assignment]


def can_be_drawn() -> bool:
    """Whether a browser is there to draw it: a browser says at which address it is. Tests without one do not."""
    return st.context.url is not None


def draw(
    label: str,
    track: Mapping[str, Any],
    *,
    key: str,
    help: str | None,
    heard: int,
    session: str,
    wire: str,
    wire_at_rest: str,
    beside: bool,
) -> None:
    """Draw a slider.

    Args:
        track: min, max and step, or options; and value, what is shown.
        heard: the number of the last move that was heard. session: whose moves these numbers count.
        wire: the key of the wire by which its moves are reported.
        wire_at_rest: the key of the wire by which it says afterwards that it rests; "" where it says both at once.
        beside: it stands in no part of the page: the part before the eyes follows it.
    """
    more = dict(help=help, heard=heard, session=session, wire=wire, wire_at_rest=wire_at_rest, beside=beside)
    _components()[0](key=key, data=dict(name=key, label=label) | more | dict(track))


def listen(
    key: str, *, heard: int, run: int, on_report: Callable[[], None], late: Sequence[str] | None, empty: bool = False
) -> None:
    """Draw a wire, as the last element of what its reports draw anew: so a browser knows that they were answered.

    Args:
        key: by which `reported` is asked. on_report: called before the run that follows a report.
        run: the number of the script's run. Told anew, it makes the browser draw the wire anew: what an earlier run
            drew would report to a fragment that is there no more.
        late: the parts that have not followed the sliders yet: they are asked for as soon as they are seen, or when
            nothing has moved for a while. None for a wire that does not know it.
        empty: these have not been drawn at all yet: they are asked for when what is there has been painted.
    """
    # As one text: Streamlit looks into lists for tables, which takes as long as half of all that a wire costs.
    told = dict(name=key, heard=heard, run=run) | ({} if late is None else dict(late=",".join(late), empty=empty))
    _components()[1](key=key, data=told, on_moved_change=on_report)


def reported(key: str) -> Report | None:
    """What the wire reports in this run; None for nonsense. A browser may send anything: `value` is not looked at.

    None also for a wire of a page that was left, which is forgotten while its last report is on the way.
    """
    told = (st.session_state.get(key) or {}).get("moved")
    if not isinstance(told, dict) or type(told.get("number")) is not int:
        return None
    seen = told.get("seen")
    return Report(
        str(told.get("name")),
        told.get("value"),
        told["number"],
        told.get("rest") is not False,
        seen if isinstance(seen, list) else [],
        told.get("back") is True,
    )
