"""Hand out: the teacher makes a link for a class: settings, what of them is locked or hidden, how it opens."""

from collections.abc import Sequence

import streamlit as st

from ui import controls, handout, navigation, page
from ui import take_away_files as files
from ui.handout import Handout
from ui.link import shown_link
from ui.page_controls import CONTROLS, declared

page.start(
    "hand_out",
    "Makes a link that opens a page as you want your class to see it. What you choose here stands in that link alone; "
    "nothing is stored anywhere.",
)
settings = controls.open_page("hand_out", CONTROLS["hand_out"])
page.settings_in_print(settings)

st.header("1. The page and its settings")
settings.draw("page")
entry = next(entry for entry in navigation.ENTRIES if entry.title == settings.page)
its_controls = declared(entry.name)
shown, fixed = controls.chosen_on(entry.name, its_controls)
st.markdown("The link brings these settings along. They are as you left them on the page; change them there.")
st.page_link(navigation.page_of(entry), label=f"Set them on the page {entry.title}", icon=entry.icon)
offered = {control.name: control for control in its_controls if control.drawn(shown)}


def several(label: str, names: Sequence[str], before: Sequence[str]) -> list[str]:
    """A box to choose some of the controls, by what they are called on their page. before: those chosen at first."""
    return st.multiselect(
        label,
        names,
        [name for name in before if name in names],
        format_func=lambda name: offered[name].label,
        key=f"hand_out_{label.lower()}_{entry.name}",
        placeholder=f"None is {label.lower()}",
    )


st.header("2. What the class may change")
st.markdown(
    "A locked control shows its value and cannot be moved. A hidden one is not shown, and keeps its value too. "
    "Lock what it depends on as well. For example, the number of heads must divide d_model: if the class can move "
    "d_model, a locked number of heads that no longer divides it changes too."
)
locked = several("Locked", list(offered), fixed.locked)
hidden = several("Hidden", [name for name in offered if name not in locked], fixed.hidden)

st.header("3. How it opens")
presented = st.toggle(
    "Presented: large, one section at a time", key="hand_out_present", help="The key P on the page changes it."
)
questions = st.toggle("With the questions of “Predict, then see”", value=True, key="hand_out_questions")

st.header("What the class sees")
said = {name: " (locked)" if name in locked else "" for name in offered if name not in hidden}
st.text("\n".join(f"{offered[name].told(shown)}{note}" for name, note in said.items()) or "All controls are hidden.")

st.header("The link")
opened = Handout(int(presented), questions, tuple(locked), tuple(hidden))
base = (st.context.url or "").split("?")[0].removesuffix("/hand_out")
address = files.url(f"{base}/{entry.name}", shown_link(its_controls, shown) | handout.write(opened))
st.code(address, language=None, wrap_lines=True)
st.caption("Point at the box: the sign at its right end copies it.")
if told := handout.only_here(address):
    st.caption(told)
st.link_button("Open it in a new tab", address, icon=":material/open_in_new:")
