"""The pages of the app, in the order of the lesson, and how a page makes sure that they are known."""

from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

PAGES_FOLDER = Path(__file__).resolve().parent.parent / "pages"
# In the session state: the name of the page for which the navigation was built, and Streamlit's pages by their address.
_HERE, _PAGES = "page_here", "pages"


class Entry(NamedTuple):
    """One page: the name of its file (and its address), its title, its icon in the sidebar."""

    name: str
    title: str
    icon: str


ENTRIES = (
    Entry("home", "Home", ":material/home:"),
    Entry("recurrence", "Recurrence or all at once", ":material/fast_forward:"),
    Entry("self_attention", "Self-attention", ":material/grid_on:"),
    Entry("positional_encoding", "Positional encoding", ":material/waves:"),
    Entry("multi_head_attention", "Multi-head attention", ":material/grid_view:"),
    Entry("transformer_block", "Transformer block", ":material/layers:"),
    Entry("training_lab", "Training lab", ":material/model_training:"),
)
HAND_OUT = Entry("hand_out", "Hand out", ":material/school:")  # for the teacher, beside the lesson
EVERY = (*ENTRIES, HAND_OUT)


def page_of(entry: Entry) -> st.Page:
    """Streamlit's page of an entry. The first one stands at the root address."""
    first = entry is ENTRIES[0]
    address = "start" if first else entry.name  # "home" is left for `build`; the first page stands at the root
    return _page(entry, address, icon=entry.icon, default=first)


def _page(entry: Entry, address: str, **more: Any) -> st.Page:
    """A page, made once for each session: each run asks for a dozen of them, and a new one looks for its file."""
    made = st.session_state.get(_PAGES)
    if made is None:
        made = st.session_state[_PAGES] = {}
    if address not in made:
        made[address] = st.Page(_file(entry), title=entry.title, url_path=address, **more)
    return made[address]


def _file(entry: Entry) -> Path:
    return PAGES_FOLDER / f"{entry.name}.py"


def build() -> st.Page:
    """Set up the window, declare all pages, show the menu, and return the page to run."""
    # A character for the browser's tab, and first: the menu's icons would be fetched from another host for it.
    st.set_page_config(page_icon="🎛️", layout="wide")
    start = ENTRIES[0]
    by_name = _page(start, start.name, visibility="hidden")
    page = st.navigation([*map(page_of, EVERY), by_name])
    if page.url_path == start.name:  # asked for by its name: its address is the root
        st.switch_page(page_of(start), query_params=st.query_params.to_dict())
    st.set_page_config(page_title=f"{page.title} · The transformer, live")
    st.session_state[_HERE] = page.url_path or start.name
    return page


def ensure(name: str) -> None:
    """Build the navigation where it is missing. The page `name` calls this first.

    A freshly started server that is asked for a page's own address runs the page's file without app.py;
    once the navigation is declared, the next run goes through app.py.
    """
    if st.session_state.get(_HERE) != name:
        build()
        st.rerun()


def entry(name: str) -> Entry:
    """The entry of a page. Raises ValueError for an unknown name."""
    for candidate in EVERY:
        if candidate.name == name:
            return candidate
    raise ValueError(f"there is no page named {name!r}")


def neighbours(name: str) -> tuple[Entry | None, Entry | None]:
    """The entries before and after a page; None at the ends and beside the lesson. Raises ValueError if unknown."""
    if entry(name) not in ENTRIES:
        return None, None
    place = ENTRIES.index(entry(name))
    return (ENTRIES[place - 1] if place else None), (ENTRIES[place + 1] if place + 1 < len(ENTRIES) else None)
