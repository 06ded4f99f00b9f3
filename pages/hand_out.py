"""Hand out: the teacher makes a link for a class: settings, what of them is locked or hidden, how it opens."""

import streamlit as st

from ui import controls, handout, navigation, page
from ui import take_away_files as files
from ui.control_kinds import Control
from ui.handout import Handout
from ui.link import write_link
from ui.page_controls import CONTROLS

page.start(
    "hand_out",
    "Makes a link that opens a page as you want your class to see it. All that it says stands in the link; "
    "nothing is stored anywhere.",
)
settings = controls.open_page("hand_out", CONTROLS["hand_out"])

st.header("1. The page and its settings")
settings.draw("page")
entry = next(entry for entry in navigation.ENTRIES if entry.title == settings.page)
declared = [control for control in CONTROLS[entry.name] if isinstance(control, Control)]
wanted = controls.chosen_on(declared)
st.markdown("The link brings these settings along. They are as you left them on the page; change them there.")
st.page_link(navigation.page_of(entry), label=f"Set them on the page {entry.title}", icon=entry.icon)
offered = {control.name: control for control in declared if control.drawn(wanted)}


def label(name: str) -> str:
    """What a control is called on its page."""
    return offered[name].label


st.header("2. What the class may change")
st.markdown("A locked control shows its value and cannot be moved. A hidden one is not shown, and keeps its value too.")
locked = st.multiselect("Locked", offered, format_func=label, key="hand_out_locked", placeholder="None is locked")
free = [name for name in offered if name not in locked]
hidden = st.multiselect("Hidden", free, format_func=label, key="hand_out_hidden", placeholder="None is hidden")

st.header("3. How it opens")
presented = st.toggle(
    "Presented: large, one section at a time", key="hand_out_present", help="The key P on the page changes it."
)
questions = st.toggle("With the questions of “Predict, then see”", value=True, key="hand_out_questions")

st.header("What the class sees")
said = {name: " (locked)" if name in locked else "" for name in offered if name not in hidden}
st.text("\n".join(f"{offered[name].told(wanted)}{note}" for name, note in said.items()) or "All controls are hidden.")

st.header("The link")
shown = Handout(int(presented), questions, tuple(locked), tuple(hidden))
base = (st.context.url or "").split("?")[0].removesuffix("/hand_out")
address = files.url(f"{base}/{entry.name}", write_link(declared, wanted) | handout.write(shown))
st.code(address, language=None, wrap_lines=True)
st.caption("The sign at its right end copies it.")
st.link_button("Open it in a new tab", address, icon=":material/open_in_new:")
