"""A slider that reports while it moves: `st.slider` does when it is let go.

It keeps no state. It shows the value that it is given, and reports each move with a running number; the script says
with the next drawing which number it has heard. An answer to an earlier move than the last one moves nothing: the hand
is ahead of it. A move is reported when the page has drawn the one before, so that slow machines draw fewer pictures
and not late ones; the last one is always reported, with a mark that the slider is at rest.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest
from streamlit.components.v2.types import ComponentRenderer

_ASSETS = Path(__file__).resolve().parent / "assets"  # nothing else may stand there: the server gives it to everybody
_PACKAGE, _NAME = "transformer_live", "live_slider"
_HTML = """<div class="live-slider">
<div><label></label><button type="button" aria-label="Help">?</button><output></output></div>
<p hidden></p><input type="range"><div aria-hidden="true"><span></span><span></span></div></div>"""


@lru_cache(maxsize=1)  # one function, for the server's life
def _component() -> ComponentRenderer:
    """The slider's drawing function; its script and style are files, which a browser fetches once.

    Given as texts they would go with every slider in every drawing. Streamlit takes files from an installed package
    that names their folder, so this app says of itself what such a package's manifest says. Not before a server runs:
    what it says is told to that server.
    """
    manifest = ComponentManifest(_PACKAGE, version="", components=[ComponentConfig(_NAME, asset_dir=_ASSETS.name)])
    get_bidi_component_manager().register_from_manifest(manifest, _ASSETS.parent)
    return st.components.v2.component(
        f"{_PACKAGE}.{_NAME}", html=_HTML, css="live_slider.css", js="live_slider.js", isolate_styles=False
    )


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
    on_move: Callable[[], None],
) -> None:
    """Draw it.

    Args:
        track: min, max and step, or options; and value, what is shown.
        heard: the number of the last move that was heard. session: whose moves these numbers count.
        on_move: called before the script runs; `reported` says what was moved.
    """
    data = dict(label=label, help=help, heard=heard, session=session) | dict(track)
    _component()(key=key, data=data, on_moved_change=on_move)


def reported(key: str) -> tuple[Any, int, bool] | None:
    """The value, the number and whether the slider is at rest, as a browser reports them; None for nonsense."""
    told = st.session_state[key].get("moved")
    if not isinstance(told, dict) or type(told.get("number")) is not int:
        return None
    return told.get("value"), told["number"], told.get("rest") is not False
