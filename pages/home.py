"""The entrance: what the lesson teaches, the block whose parts lead to the pages, and the sentence for every page."""

import streamlit as st

from ui import controls, figures, navigation, page, predict
from ui.page_controls import CONTROLS

GOALS = (
    ("recurrence", "Why a transformer takes in a whole sequence at once, where a recurrent network goes word by word."),
    (
        "self_attention",
        "What self-attention is: every token looks at the whole sequence and takes a share from each token.",
    ),
    (
        "positional_encoding",
        "Why a position has to be added: attention alone cannot tell one order from another.",
    ),
    ("multi_head_attention", "Why several heads look at once: each is free to follow a relationship of its own."),
    ("transformer_block", "How residual connections, norms and a feed-forward layer are put together into a block."),
)

page.start(
    "home",
    "The transformer is the network in today's language models: it reads a text and says what comes next. Here is one "
    "page for each of its ideas. On every page sliders redraw the pictures, from a real computation.",
    title="The transformer, live",
)
settings = controls.open_page("home", CONTROLS["home"])
page.settings_in_print(settings)


def link(name: str, label: str) -> None:
    """A way to a page, under a name that fits where it stands."""
    entry = navigation.entry(name)
    st.page_link(navigation.page_of(entry), label=label, icon=entry.icon)


def progress(name: str) -> None:
    """What the reader has predicted on a page, once that is anything."""
    if said := predict.progress(name):
        st.caption(f"Predict, then see: {said}.")


def part(name: str, label: str) -> None:
    """One box of the picture, which leads to the page that explains it."""
    with st.container(border=True, horizontal_alignment="center"):
        link(name, label)


def note(text: str) -> None:
    """What stands between the boxes: an arrow, or a few words."""
    st.markdown(text, width="content")


settings.draw("sentence")
if settings.tokens:
    names = figures.token_names(settings.tokens, len(settings.tokens))
    st.text("The pages on the five ideas now use these tokens:  " + "   ".join(names))
else:
    st.caption(
        "Type a sentence and the pages on the five ideas use it, split into tokens: its words and punctuation marks. "
        "Leave it blank and they use random tokens. The training lab does not use it: it trains on sequences of "
        "letters."
    )

picture, goals = st.columns([2, 3], gap="large")
with picture:
    st.header("The way through")
    with st.container(horizontal_alignment="center", gap="xxsmall"):
        part("recurrence", "All tokens at once")
        note("↓")
        part("positional_encoding", "Add positions")
        note("↓")
        with st.container(border=True, horizontal_alignment="center", gap="xxsmall"):
            with st.container(border=True, horizontal_alignment="center", gap="xxsmall"):
                link("multi_head_attention", "Multi-head attention")
                part("self_attention", "Self-attention")
            note("↓")
            part("transformer_block", "Add & norm")
            note("↓")
            part("transformer_block", "Feed-forward")
            note("↓")
            part("transformer_block", "Add & norm")
        note("↓")
        note("more blocks, then the answer")
with goals:
    st.header("What you will learn")
    for number, (name, goal) in enumerate(GOALS, start=1):
        with st.container(border=True, gap="small"):
            st.markdown(f"**{number}.** {goal}")
            link(name, navigation.entry(name).title)
            progress(name)
    with st.container(border=True, gap="small"):
        st.markdown("**Then try it:** train a small transformer in seconds, and take one of its parts away.")
        link("training_lab", navigation.entry("training_lab").title)
        progress("training_lab")

page.foot("home")
