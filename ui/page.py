"""What every page is furnished with: title, figures, findings, numbers, source, what to notice, the way on."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui import controls, experiments, figure_tables, figures, handout, navigation, page_keys, page_parts, scripts, words
from ui import take_away_files as files
from ui.control_kinds import Settings
from ui.scripts.writing import notebook

# Figures are drawn for paper. On the screen their words have the colour of the page, light or dark, and no background.
_STYLE = """<style>
.js-plotly-plot :is(g[class*="tick"], .infolayer, .textpoint, .colorbar) text, .js-plotly-plot text.bartext-outside {
    fill: currentColor !important;
}
.js-plotly-plot .main-svg { background: none !important; }
.js-plotly-plot :is(.bglayer, .legend) .bg { fill: none !important; }
.js-plotly-plot .modebar-group { background: none !important; }
.js-plotly-plot .modebar-btn path { fill: #8A94A6 !important; }
.js-plotly-plot .heatmap-label [style*="fill: rgb(68, 68, 68)"] { fill: black !important; }
[data-testid="stMetricValue"] { font-size: 1.75rem; }
[data-testid="stMetricLabel"] * { white-space: normal !important; }
[data-testid="stMetricValue"] * { overflow: visible !important; text-overflow: clip !important; }
[data-testid="stCaptionContainer"] { color: inherit !important; opacity: 0.85; }
.katex-display { overflow: hidden !important; }
[data-testid="stMain"] a:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
@media (max-width: 500px) {
    .katex-display { overflow-x: auto !important; }
    .js-plotly-plot .heatmap-label text { font-size: 10px !important; }
    .js-plotly-plot .textpoint text { font-size: 12px !important; }
}
@media (hover: none) { /* Where nothing hovers, a table's toolbar always shows: above it, not on the text there. */
    [data-testid="stElementContainer"]:has([data-testid="stDataFrame"]) { margin-top: 2rem; }
}
/* A button's help comes up over the button above it, late on a busy machine: a click there is for that button. */
body:has([data-testid="stButton"] button:hover) [data-testid="stTooltipContent"] { pointer-events: none; }
[data-testid="stMainBlockContainer"] { max-width: 1180px; }
[data-testid="stLayoutWrapper"]:has(> :is(.st-key-page_keys, .st-key-out_of_sight)), [class*="st-key-wire"],
[data-testid="stLayoutWrapper"]:has(> [data-testid="stVerticalBlock"] > [class*="st-key-wire"]:only-child) {
    display: none;
}
@media screen { [data-testid="stLayoutWrapper"]:has(> .st-key-settings_in_print) { display: none; } }
@media print {
    @page { margin: 10mm; }
    /* What is at most 1,010 pixels wide on a screen (1,180 without the padding) fits on a sheet of A4 or Letter. */
    [data-testid="stMainBlockContainer"] { zoom: 0.7; max-width: none !important; padding: 0 !important; }
    [data-testid="stApp"], [data-testid="stAppViewContainer"], [data-testid="stMain"] {
        position: static !important; display: block !important; height: auto !important; overflow: visible !important;
    }
    [data-testid="stSidebar"], [data-testid="stHeader"], .st-key-way_on, .st-key-controls_beside, .modebar, hr, button,
    .live-slider,
    .st-key-predict_section,
    [data-testid="stMain"] :is(
        [data-testid="stSlider"], [data-testid="stButtonGroup"], [data-testid="stCheckbox"], [data-testid="stExpander"],
        [data-testid="stPageLink"]
    ) { display: none !important; }
    html, body, [data-testid="stApp"], [data-testid="stMainBlockContainer"] * {
        color: black !important; background-color: transparent !important;
    }
    /* Tables are pictures: those of the dark theme, known by its primary colour, are turned to light ones. */
    .stDataFrameGlideDataEditor[style*="#60A5FA"] { filter: invert(1) hue-rotate(180deg); }
    /* The page and its parts, of which each ends with a wire. */
    [data-testid="stVerticalBlock"]:is([data-testid="stMainBlockContainer"] > *, :has(> [class*="st-key-wire"])) {
        display: block;
    }
    [data-testid="stVerticalBlock"]:is([data-testid="stMainBlockContainer"] > *, :has(> [class*="st-key-wire"])) > * {
        margin-bottom: 0.8rem;
    }
    [data-testid="stPlotlyChart"], [data-testid="stDataFrame"], .katex-display, table, p { break-inside: avoid; }
    :has(> [data-testid="stHeading"]) { break-after: avoid; }
    /* What has not followed a slider yet would not fit to the rest of the sheet. */
    [data-testid="stVerticalBlock"][aria-busy="true"] > * { display: none !important; }
    [data-testid="stVerticalBlock"][aria-busy="true"]::after { content: "Still being drawn: print once more, please."; }
}
</style>"""

# For the projector: type for the last row, the controls at the right of the pictures, the way on at the foot.
_PRESENTING = """<style>
@media screen {
html { font-size: 22px !important; }
/* Streamlit frames the page when a key follows a click on it: a line across the picture. */
[data-testid="stMain"]:focus-visible::before { display: none; }
[data-testid="stHeader"] { background: none !important; pointer-events: none; }
[data-testid="stExpandSidebarButton"] { position: fixed; left: 0.4rem; bottom: 0.45rem; pointer-events: auto; }
[data-testid="stMainBlockContainer"] { padding: 0.7rem 14.5rem 3.5rem 1rem !important; max-width: none !important; }
[data-testid="stMainBlockContainer"] h1 { font-size: 1.2rem !important; padding: 0.1rem 0 0.5rem !important; }
[data-testid="stMainBlockContainer"] h2 {
    font-size: 1.3rem !important; line-height: 1.4; padding: 0 0 0.4rem !important;
}
[data-testid="stMainBlockContainer"] [data-testid="stVerticalBlock"] { gap: 0.6rem; }
[data-testid="stMainBlockContainer"] .katex { font-size: 1em; }
.st-key-controls_beside {
    position: fixed !important; top: 0.5rem; right: 0; bottom: 3.2rem; width: 13.5rem !important; padding: 0 1rem 1rem;
    overflow: hidden auto; gap: 0.6rem !important;
}
.st-key-controls_beside h3 { font-size: 1rem !important; padding: 0.5rem 0 0.4rem !important; }
.st-key-way_on {
    position: fixed !important; left: 0; right: 0; bottom: 0; width: 100% !important; z-index: 100;
    padding: 0.3rem 1rem 0.3rem 3.2rem; background: var(--st-background-color, Canvas);
}
@media (max-width: 700px) {
    html { font-size: 18px !important; }
    .st-key-way_on { gap: 0.4rem !important; }
    .st-key-way_on kbd { display: none; }
    [data-testid="stMainBlockContainer"] { padding-right: 1rem !important; }
    .st-key-controls_beside { position: static !important; width: 100% !important; }
    [data-testid="stLayoutWrapper"]:has(> .st-key-controls_beside) { order: 1; }
}
}
/* A presented figure is as wide as the screen leaves it. */
@media print { [data-testid="stMainBlockContainer"] { zoom: 0.45 !important; } }
</style>"""
_LATER_SECTION = "<style>.st-key-what_is_seen { display: none; }</style>"

_PARTS = "parts"  # in the session state: `Part` by key, in the order of the page; "" for what is in no part
_COMPUTED = "computed"  # in the session state, while a run draws several parts: what all of them show
_TO_TOP = "to_top"  # in the session state: how often the page was asked to begin at its top
_ROWS_SHOWN = 16
_FOUR_DECIMALS = st.column_config.NumberColumn(format="%.4f")
_CHART_CONFIG = {"displaylogo": False, "modeBarButtons": [["toImage"]]}


@dataclass
class Part:
    """What was drawn of a part of the page.

    sections: one entry each, its stages or None. shown: one of them is on show. figures: by key. opened: one of its
    expanders is.
    """

    sections: list["Stages | None"] = field(default_factory=list)
    shown: bool = False
    figures: dict[str, "Drawn"] = field(default_factory=dict)
    opened: bool = False


class Drawn(NamedTuple):
    """A figure that was drawn, with its description, and its numbers as tables."""

    chart: figures.Figure
    alt: str
    tables: "Tables"


class Stages(NamedTuple):
    """The stages of a section: the control that chooses one, all of them, and the one on show."""

    control: str
    names: Sequence[str]
    now: str


_T = TypeVar("_T")
Table = Callable[[], pd.DataFrame]
"""A table to be made when it is shown: a closed expander shows none, and pandas takes its time."""
Tables = Callable[[], Mapping[str, pd.DataFrame]]
Behind = Mapping[str, pd.DataFrame | Table]
"""The numbers behind the pictures of a page, as tables by name."""


def start(name: str, sentence: str, title: str | None = None) -> None:
    """Begin a page: navigation, title (that of the menu where None), and one sentence that says what will be seen."""
    navigation.ensure(name)
    st.session_state[_PARTS] = {"": Part()}
    st.html(_STYLE)
    title = title or navigation.entry(name).title
    st.title(title, anchor=words.anchor(title))
    with st.container(key="what_is_seen"):
        st.markdown(sentence)


def presenting() -> bool:
    """Whether the page is shown section by section, for a projector."""
    return controls.shown_as().present > 0


def set_stage() -> None:
    """While presenting, fold the sidebar and make everything large. After the controls: they know how it is shown."""
    st.set_page_config(initial_sidebar_state="collapsed" if presenting() else "auto")
    if presenting():
        st.html(_PRESENTING + _LATER_SECTION * (controls.shown_as().present > 1))


def section(heading: str | None = None, stages: Stages | None = None) -> bool:
    """Begin a section; False where it is not on show and is to be left out. The first one has no heading.

    stages: where the section shows one of several stages, the way on leads through them.
    """
    this = _this_part()
    this.sections.append(stages)
    if controls.shown_as().present not in (0, _number_of_sections(page_parts.part())):
        return False
    this.shown = True
    if heading:
        st.header(heading, anchor=words.anchor(heading))
    return True


def goes_on() -> bool:
    """Go on with the section of the part above, so that its picture follows a slider alone; False where not on show."""
    this = _this_part()
    this.shown = controls.shown_as().present in (0, _number_of_sections(page_parts.part()))
    return this.shown


def go_to_top() -> None:
    """Show the page from its top when it is drawn next. From a button's callback."""
    st.session_state[_TO_TOP] = st.session_state.get(_TO_TOP, 0) + 1


def columns(shares: int | Sequence[int]) -> Sequence[DeltaGenerator]:
    """Places side by side; one below the other while presenting, where each is to be large."""
    if presenting() or shares == 1:
        return [st.container() for _ in range(shares if isinstance(shares, int) else len(shares))]
    return st.columns(shares)


def parts(
    compute: Callable[[Settings], Any],
    *draw: Callable[[Settings, Any], None],
    below: Callable[[Settings, Any], None],
    unmoved: Mapping[Callable[[Settings, Any], None], Collection[str]] | None = None,
    apart: bool = True,
) -> None:
    """Draw the page in parts, of which each can be drawn anew by itself when a slider moves, and its controls.

    The first part leads: it follows a slider while that moves. The controls are drawn after it, so that its picture is
    on its way first. While presenting, what is on show leads.

    Args:
        compute: what the parts show, from the settings; once for all parts that are drawn together.
        draw: the parts, from the settings and what was computed.
        below: the part below them, of which the sliders change nothing while its expanders are closed.
        unmoved: of parts but the first, the names of the sliders that change nothing in them, whatever the others say.
        apart: False while whatever the reader does is to run the page's script anew, and so interrupts it.
    """
    set_stage()
    keyed = {f"part {place}": each for place, each in enumerate([*draw, below], start=1)}
    leader = next(iter(keyed))
    page_parts.announce_parts(list(keyed), apart=apart)
    for key, each in keyed.items():
        drawn = partial(_draw_part, compute, each, first=key == leader, below=each is below)
        page_parts.draw_part(key, drawn, (unmoved or {}).get(each, ()))
        if key == leader and not presenting():
            _draw_beside(leader)
    if presenting():
        _draw_beside(next((key for key in keyed if st.session_state[_PARTS][key].shown), leader))
    page_parts.draw_last(lambda: st.session_state.pop(_COMPUTED, None))


def _draw_beside(leader: str) -> None:
    """Draw what stands beside the page. leader: the part that follows a slider while that moves."""
    page_parts.let_lead(leader)
    controls.draw_beside()
    experiments.offer()
    controls.teaching_buttons()


def _draw_part(
    compute: Callable[[Settings], Any],
    draw: Callable[[Settings, Any], None],
    settings: Settings,
    *,
    first: bool,
    below: bool,
) -> bool:
    """Draw a part of the page; returns whether it is to be drawn again when a slider has moved."""
    this = st.session_state[_PARTS][page_parts.part()] = Part()
    if first:
        settings_in_print(settings)
        experiments.what_to_look_for(settings)
    # Kept until the last of the parts that are drawn one after the other has taken it: a class has no room for
    # everybody's.
    values, computed = st.session_state.pop(_COMPUTED, (None, None))
    if values != settings.values:
        computed = compute(settings)
    if page_parts.more_is_due():
        st.session_state[_COMPUTED] = settings.values, computed
    draw(settings, computed)
    return this.opened if below else this.shown or first


def settings_in_print(settings: Settings) -> None:
    """What the controls say, for a printed sheet, which leaves them out."""
    with st.container(key="settings_in_print"):
        st.text(controls.told(settings))


def _this_part() -> Part:
    return st.session_state[_PARTS][page_parts.part()]


def _number_of_sections(until: str) -> int:
    """How many sections the page has down to the end of a part."""
    parts = st.session_state[_PARTS]
    return sum(len(parts[key].sections) for key in list(parts)[: list(parts).index(until) + 1])


def _figures() -> dict[str, Drawn]:
    """All figures of the page by key."""
    return dict(chain.from_iterable(part.figures.items() for part in st.session_state[_PARTS].values()))


def figure(chart: figures.Figure, key: str, alt: str, tables: Tables | None = None) -> DeltaGenerator:
    """Draw a figure under a key of its own, with a spoken description; returns its place, to draw another one there.

    tables: makes the figure's numbers as tables, where they cannot be read off the figure itself.
    """
    _this_part().figures[key] = Drawn(chart, alt, tables or partial(figure_tables.tables, chart))
    if presenting():
        chart = figures.enlarged(chart)
    picture = {"format": "png", "scale": 2, "filename": files.file_name(*controls.address(), key)}
    return st.plotly_chart(
        chart, key=key, config=_CHART_CONFIG | {"toImageButtonOptions": picture}, alt=alt, theme=None
    )


def findings(*sentences: str) -> DeltaGenerator:
    """Sentences computed from the numbers above them. Plain text: words of the user are never interpreted.

    Returns their place.
    """
    return st.text("\n".join(sentences))


def random_weights(*, again: bool = False) -> None:
    """Said beside every picture whose weights were drawn, not learned; `again`: in short, where it was said before."""
    whole = (
        "Random weights in W_Q, W_K and W_V: who looks at whom means nothing yet. Look at how the numbers come about."
    )
    st.caption("Random weights." if again else whole)


def table(frame: pd.DataFrame | Table, alt: str) -> None:
    """A table of numbers, four decimals each (text and whole numbers as they are), without scrolling up to 16 rows.

    Four digits in place of decimals where the table asks for it: `figure_tables.four_digits`.
    """
    frame = _made(frame)
    numbers = st.column_config.NumberColumn(format=frame.attrs.get("format", "%.4f"))
    if frame.index.name is None:
        frame = frame.rename_axis("row")  # a screen reader says it
    shown = {str(name): numbers for name in frame.select_dtypes("floating").columns}
    st.dataframe(frame, column_config=shown, height=_height(len(frame)), alt=alt)


def array_table(values: np.ndarray, rows: Sequence[str], columns: Sequence[str], alt: str) -> None:
    """`table` of an array, for one that is drawn again and again: by way of pandas it takes five times as long."""
    shown = pa.table({"row": rows} | dict(zip(columns, values.T, strict=True)))
    formats = {"row": st.column_config.Column(pinned=True)} | dict.fromkeys(columns, _FOUR_DECIMALS)
    st.dataframe(shown, column_config=formats, hide_index=True, height=_height(len(values)), alt=alt)


def _height(rows: int) -> Literal["content", "auto"]:
    return "content" if rows <= _ROWS_SHOWN else "auto"


def expander(label: str, key: str, *, expanded: bool = False) -> Any:
    """An expander that is empty until it is opened: while it is closed, nothing is computed for it."""
    box = st.expander(label, expanded, key=key, on_change="rerun")
    _this_part().opened |= bool(box.open)
    return box


def numbers(tables: Behind | Callable[[], Behind]) -> None:
    """The numbers behind the pictures, in an expander. tables: or what makes them, once it is open."""
    box = expander("The numbers", key="numbers")
    if box.open:
        with box:
            for name, frame in _made(tables).items():
                st.markdown(f"**{name}**")
                table(frame, alt=name)
            key = _choose_figure("Numbers of a figure", key="numbers_figure")
            chosen = _figures()[key]
            st.text(chosen.alt)
            numbers_of_figure = chosen.tables()
            if not numbers_of_figure:
                st.text("This figure is a drawing: its numbers are written in it, and stand in the tables above.")
            for name, frame in numbers_of_figure.items():
                st.text(name)
                table(frame, alt=f"{_spaced(key)}: {name}")


def _choose_figure(label: str, key: str) -> str:
    """A box to choose one of the figures that are drawn; the key of the figure chosen."""
    return st.selectbox(label, _figures(), format_func=_spaced, key=key)


def _spaced(key: str) -> str:
    return key.replace("_", " ")


def take_away(
    settings: Settings,
    arrays: Mapping[str, np.ndarray] | Callable[[], Mapping[str, np.ndarray]],
    tables: Behind | Callable[[], Behind],
) -> None:
    """The page as a script, a notebook, data, figures and a link, in an expander.

    Args:
        arrays: all arrays of the page, under the names that they have in its script. tables: those of `numbers`.
            Either may be what makes them, once the expander is open.
    """
    box = expander("Take it away", key="take_away")
    if not box.open:
        return
    arrays = _made(arrays)
    name, link = controls.address()
    title, called = navigation.entry(name).title, partial(files.file_name, name, link)
    save = partial(st.download_button, on_click="ignore", icon=":material/download:")  # what is saved needs no new run
    with box:
        st.markdown("**The link** to this page and its settings. Point at the box: the sign at its end copies it.")
        address = files.url(st.context.url or "", link | handout.write(controls.shown_as()))
        st.code(address, language=None, wrap_lines=True)
        if told := handout.only_here(address):
            st.caption(told)

        st.markdown("**The script** computes this page's arrays. Python with numpy is all it needs.")
        text = scripts.SCRIPTS[name](settings, arrays)
        with st.container(horizontal=True):
            save("Script (.py)", text, f"{called()}.py", "text/x-python")
            save("Notebook (.ipynb)", lambda: notebook(text), f"{called()}.ipynb", "application/x-ipynb+json")
        st.code(text, language="python", height=400)

        st.markdown("**The numbers**: all arrays, for numpy, under the script's names; and the tables one by one.")
        with st.container(horizontal=True):
            save("All arrays (.npz)", partial(files.npz, arrays), f"{called()}.npz", "application/octet-stream")
            for each, frame in _made(tables).items():
                save(f"{each} (.csv)", partial(_csv, frame), f"{called(each)}.csv", "text/csv")

        st.markdown(
            "**A figure** as a page of its own, which opens without a network. "
            "As a picture (PNG): the camera that shows up above each figure."
        )
        key = _choose_figure("Figure", key="take_away_figure")
        chosen = _figures()[key]
        make = partial(files.html, chosen.chart, title, chosen.alt, address)
        save("Figure (.html)", make, f"{called(key)}.html", "text/html")


def source(*functions: Callable[..., object]) -> None:
    """The functions of core that computed the page, as they stand in the files, in an expander."""
    box = expander("The code that ran", key="source_code")
    if box.open:
        with box:
            for function in functions:
                st.code(inspect.getsource(function), language="python")


def notice(*lines: str) -> None:
    """What to notice: two or three lines, in Markdown, true at every setting or computed."""
    if section("What to notice"):
        st.markdown("\n".join(f"- {line}" for line in lines))


def foot(name: str) -> None:
    """Links to the previous and the next page; while presenting, to the previous and the next section or stage."""
    asked = st.session_state.get(_TO_TOP, 0)
    if presenting():
        page_keys.listen(f"{name} {_way_on()} {asked}")
        return
    page_keys.listen(f"{name} {asked}")
    st.divider()
    left, right = st.columns(2)
    before, after = navigation.neighbours(name)
    if before:
        left.page_link(navigation.page_of(before), label=f"Previous: {before.title}", icon=":material/arrow_back:")
    if after:
        right.page_link(navigation.page_of(after), label=f"Next: {after.title}", icon=":material/arrow_forward:")


def _way_on() -> tuple[int, str, str]:
    """The buttons and keys that lead on; returns where the presentation stands: section, and its stage if any."""
    sections = [stages for part in st.session_state[_PARTS].values() for stages in part.sections]
    shown = controls.shown_as()
    if shown.present > len(sections):  # another setting has fewer sections
        controls.present(len(sections))
        st.rerun()
    stops: list[tuple[int, str, str]] = []  # section, and where it has stages their control and one of them
    here = 0
    for number, stages in enumerate(sections, start=1):
        walked = stages and stages.control not in shown.fixed
        if number == shown.present:
            here = len(stops) + (stages.names.index(stages.now) if walked and stages.now in stages.names else 0)
        stops += [(number, stages.control, stage) for stage in stages.names] if walked else [(number, "", "")]
    with st.container(key="way_on", horizontal=True, vertical_alignment="center"):
        for label, icon, key, to in (
            ("Previous", "arrow_back", "PageUp", here - 1),
            ("Next", "arrow_forward", "PageDown", here + 1),
        ):
            st.button(
                label,
                icon=f":material/{icon}:",
                shortcut=key,
                disabled=not 0 <= to < len(stops),
                on_click=_present,
                args=stops[to % len(stops)],
            )
        st.button("Whole page", icon=":material/close_fullscreen:", shortcut="P", on_click=controls.present, args=(0,))
        st.text(_where(sections, stops[here]))
    return stops[here]


def _where(sections: Sequence[Stages | None], stop: tuple[int, str, str]) -> str:
    """At which section a presentation stands, as links count them, and at which of its stages."""
    number, control, stage = stop
    stages = sections[number - 1]
    told = f"Section {number} of {len(sections)}"
    return f"{told}, stage {stages.names.index(stage) + 1} of {len(stages.names)}" if control and stages else told


def _present(section: int, control: str, stage: str) -> None:
    """Go to a section, and to one of its stages where it has any."""
    controls.present(section)
    if control:
        controls.choose(control, stage)


def frame(values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Table:
    """An array as a table with named rows and columns."""
    return partial(pd.DataFrame, values, index=list(rows), columns=list(columns))


def head_tables(weights: np.ndarray, labels: Sequence[str], tokens: Sequence[str]) -> Tables:
    """The maps of several heads, (heads, n, n), as one table, for a figure that shows them side by side."""
    rows = [f"{label}, {token}" for label in labels for token in tokens]
    made = frame(weights.reshape(-1, len(tokens)), rows, tokens)
    return lambda: {"Weights, head by head: queries down, keys across": made()}


def _csv(frame: pd.DataFrame | Table) -> bytes:
    return files.table_csv(_made(frame))


def _made(given: _T | Callable[[], _T]) -> _T:
    """What was given, or what the given function makes."""
    return given() if callable(given) else given
