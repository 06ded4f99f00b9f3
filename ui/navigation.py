"""The pages of the app, in the order of the lesson, and how a page makes sure that they are known."""

from pathlib import Path
from typing import NamedTuple

import streamlit as st

PAGES_FOLDER = Path(__file__).resolve().parent.parent / "pages"
_HERE = "page_here"  # in the session state: the page that runs; the mark that navigation was built


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
)


def page_of(entry: Entry) -> st.Page:
    """Streamlit's page of an entry. The first one stands at the root address."""
    path = PAGES_FOLDER / f"{entry.name}.py"
    return st.Page(path, title=entry.title, icon=entry.icon, default=entry is ENTRIES[0])


def build() -> st.Page:
    """Set up the window, declare all pages, show the menu, and return the page to run."""
    # A character for the browser's tab, and first: the menu's icons would be fetched from another host for it.
    st.set_page_config(page_icon="🎛️", layout="wide")
    page = st.navigation([page_of(entry) for entry in ENTRIES])
    st.set_page_config(page_title=f"{page.title} · The transformer, live")
    st.session_state[_HERE] = page
    return page


def ensure() -> None:
    """Build the navigation where it is missing. Every page calls this first.

    A freshly started server that is asked for a page's own address runs the page's file without app.py;
    once the navigation is declared, the next run goes through app.py.
    """
    if _HERE not in st.session_state:
        build()
        st.rerun()


def here() -> st.Page:
    """The page that runs."""
    return st.session_state[_HERE]


def neighbours(name: str) -> tuple[Entry | None, Entry | None]:
    """The entries before and after a page; None at the ends. Raises ValueError for an unknown name."""
    names = [entry.name for entry in ENTRIES]
    if name not in names:
        raise ValueError(f"there is no page named {name!r}")
    i = names.index(name)
    return (ENTRIES[i - 1] if i > 0 else None), (ENTRIES[i + 1] if i + 1 < len(ENTRIES) else None)
