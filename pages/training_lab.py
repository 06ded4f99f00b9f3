"""The training lab: a small transformer learns a task while one watches what its heads come to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import adam, training
from core.tasks import TASKS
from core.training import Settings
from ui import controls, experiments, figures, page, predict, training_figures, training_runs, training_words
from ui.control_kinds import MAX_SEED
from ui.page_controls import CONTROLS, OF_TASK
from ui.questions import training_lab as questions
from ui.training_runs import Run

KEYS = ("maps", "maps_beside")  # of the maps of the first and the second run

GO, TO_THE_END, A_STEP = "training_lab_go", "to the end", "a step"  # in the session state: what is trained

# Where the pictures of a run stand. Each is a container until something is drawn in it; that is then drawn over.
Slots = dict[str, DeltaGenerator]


def go(how_far: str, wanted: Sequence[Settings]) -> None:
    """Train these settings from now on, until that is done or dropped."""
    st.session_state[GO] = how_far, wanted


def rest() -> None:
    """Train no more."""
    st.session_state.pop(GO, None)


def start_over(wanted: Sequence[Settings]) -> None:
    """Back to before the first step, and wait there."""
    rest()
    training_runs.start_over(wanted)


def use_best(best: Settings) -> None:
    """Choose everything with which a task is learned, the seed aside."""
    for name in (*OF_TASK, "d_model", "residual", "norm"):
        controls.choose(name, getattr(best, name))
    controls.choose("learning_rate", f"{best.learning_rate:g}")


def place_run(settings: Settings, legend: bool) -> Slots:
    """The layout of a run: its maps, and below them its answers."""
    questions, judged = TASKS[settings.task].questions, training.examples(settings)
    maps = st.container()
    left, right = st.columns([3, 2])
    with left:
        example = st.container()
        if legend:
            st.caption(training_words.legend(judged, settings))
    with right:
        metrics = st.columns(len(questions))
    named = dict(zip(questions, metrics, strict=True))
    return {"maps": maps, "heads": maps, "example": example, "learned": right, **named}


def draw_run(run: Run, step: int, slots: Slots, key: str) -> None:
    """What a run's heads look at after a step, and what it answers."""
    shown, judged, settings = run.at(step), training.examples(run.settings), run.settings
    heads = training_words.heads_finding(shown.readings, settings)
    letters = training_words.letters_of(judged)
    labels = [f"layer {reading.layer + 1}, head {reading.head + 1}" for reading in shown.readings]
    with slots["maps"]:
        slots["maps"] = page.figure(
            training_figures.head_maps(
                shown.maps,
                training_words.map_titles(shown.readings, settings),
                letters,
                judged.sources[0],
                training_words.mark_of(judged),
            ),
            key=key,
            alt=f"Attention maps of {len(shown.readings)} heads on one sequence, after step {shown.step}. {heads}",
            tables=page.head_tables(shown.maps, labels, figures.token_names(letters, len(letters))),
        )
    with slots["heads"]:
        slots["heads"] = page.findings(heads, *training_words.one_head(settings))
    answers = training_words.example(judged, settings, shown.answers)
    slots["example"] = slots["example"].code(answers, language=None)
    for question, share in zip(TASKS[settings.task].questions, shown.accuracies, strict=True):
        slots[question] = slots[question].metric(f"“{question}” right", training_words.percent(share))
    with slots["learned"]:
        slots["learned"] = page.findings(training_words.learned_finding(shown, settings))


def draw_curves(runs: Mapping[str, Run], step: int, slots: Slots, key: str = "") -> None:
    """Loss and accuracies of all runs, as far as they have come."""
    with slots["loss"]:
        slots["loss"] = page.figure(
            training_figures.loss_curves(runs, step),
            key=f"loss{key}",
            alt=f"Loss against steps. {training_words.loss_finding(runs)}",
        )
    with slots["accuracy"]:
        slots["accuracy"] = page.figure(
            training_figures.accuracy_curves(runs, step),
            key=f"accuracy{key}",
            alt=f"Share of right answers against steps. {training_words.accuracy_finding(runs)}",
        )


page.start(
    "training_lab",
    "Train a small transformer here, in seconds, and watch what each of its heads comes to look at.",
)
settings = controls.open_page("training_lab", CONTROLS["training_lab"])
experiments.offer()
controls.teaching_buttons()
page.set_stage()
page.settings_in_print(settings)
experiments.what_to_look_for(settings)
first = Settings(
    task=settings.task,
    heads=settings.heads,
    layers=settings.layers,
    d_model=settings.d_model,
    encoding=settings.encoding,
    residual=settings.residual,
    norm=settings.norm,
    learning_rate=float(settings.learning_rate),
    steps=settings.steps,
    seed=settings.seed,
)
best = training.suggested(first.task)
second = training_runs.with_change(first, settings.beside, encoding=best.encoding, seeds=MAX_SEED + 1)
wanted = [first, second] if second else [first]
runs = training_runs.shown(wanted)
names = ["this setting", *([training_words.change_name(second, settings.beside)] if second else [])]
by_name = dict(zip(names, runs, strict=True))

# Other clicks draw the page anew and the training goes on; not so where the settings changed or the page was left,
# whose widgets Streamlit then forgets.
going, asked = st.session_state.get(GO, ("", wanted))
if asked != wanted or "training_lab_train" not in st.session_state:
    rest()
    going = ""

# The task, and what can be done
task = TASKS[first.task]
if controls.shown_as().present <= 1:
    st.markdown(f"**The task:** {training_words.ABOUT[task.name]} {task.shows}")
with st.container(horizontal=True, vertical_alignment="center"):
    done = all(run.finished for run in runs)
    st.button(
        "Train",
        key="training_lab_train",
        icon=":material/play_arrow:",
        disabled=done or bool(going),
        on_click=go,
        args=(TO_THE_END, wanted),
    )
    st.button("Pause", key="training_lab_pause", icon=":material/pause:", disabled=not going, on_click=rest)
    st.button(
        "Next picture",
        key="training_lab_step",
        icon=":material/skip_next:",
        disabled=done or bool(going),
        help=f"Trains up to the next picture, and waits. Pictures are kept every {runs[0].every} steps.",
        on_click=go,
        args=(A_STEP, wanted),
    )
    st.button(
        "Reset",
        key="training_lab_reset",
        icon=":material/restart_alt:",
        disabled=not going and not any(run.step for run in runs),
        help="Back to the random weights that it starts from",
        on_click=start_over,
        args=(wanted,),
    )
    if replace(first, seed=best.seed, steps=best.steps) != best:
        st.button("Settings that learn this task", key="training_lab_best", on_click=use_best, args=(best,))
    states = [training_words.state_finding(run) for run in runs]
    several = len(set(states)) > 1
    named = [f"{training_words.capital(name)}: {said}" for name, said in zip(names, states, strict=True)]
    state = page.findings(*(named if several else states[:1]))
bar = st.empty()
last = step = max(run.snapshots[-1].step for run in runs)
if last:
    told = f"Goes back through the training. Pictures are kept every {runs[0].every} steps."
    step = bar.slider("Step shown", 0, last, last, runs[0].every, key="training_lab_shown", help=told)

# What the heads look at, and what is answered
slots: list[Slots] = []
if page.section():
    for name, run, key in zip(names, runs, KEYS, strict=False):
        if second:
            st.header(training_words.capital(name))
        slots.append(place_run(run.settings, legend=run is runs[0]))
        draw_run(run, step, slots[-1], key)

# The curves
curves: Slots = {}
if page.section("How it learns"):
    curves = dict(zip(("loss", "accuracy"), st.columns(2), strict=True))
    draw_curves(by_name, step, curves)
    if not going:  # while it trains, only the pictures are drawn again
        page.findings(training_words.loss_finding(by_name), training_words.accuracy_finding(by_name))
    st.markdown("\n".join(f"- {term}" for term in training_words.terms(first)))
    for line in training_words.equations(first):
        st.latex(line)
    st.caption(training_words.SIGNS_OF_EQUATIONS)

# What each head looks at, in numbers
if page.section("The weight of each head"):
    st.markdown(
        "The share of its weight on each kind of place: means over all letters that have such a place, in "
        f"{training.EXAMPLES} sequences that are never trained on. "
        "A letter may be of two kinds, and then counts for both."
    )
    for name, run in by_name.items():
        shown = run.at(step)
        st.text(f"{training_words.capital(name)}, after step {shown.step:,}")
        readings = shown.readings
        if len(readings) <= 4:  # beyond, the table is easier to read
            for column, (label, share) in zip(
                st.columns(len(readings)), training_words.top_shares(readings, run.settings), strict=True
            ):
                column.metric(label, share)
        page.table(training_words.readings_table(readings, run.settings), alt=f"Weight of each head, {name}")

predict.offer(lambda: questions.ask(first))

page.notice(
    "Nobody tells the heads where to look. Only the answers are right or wrong; where to look is learned from that.",
    "A row of a head sums to 1: what it puts on one letter it takes from the others. Two questions about two places "
    "are a reason to have two heads.",
    training_words.WITHOUT_POSITIONS[task.name],
    "Every switch can be tried beside the run as it is: choose what to change under *Beside it*, and train both.",
)
if not page.presenting():
    page.numbers({"Loss and right answers": partial(training_words.losses_table, by_name)})
    page.source(training.train, training.loss_and_gradient, adam.step)
page.foot("training_lab")


# The training itself, last: all that a reader does meanwhile, and leaving the page, interrupts it at the next drawing.
def wait() -> None:
    """Said while others train; whoever wants what they have just finished gets it."""
    state.info("Two trainings are running. Yours starts when one of them ends.", icon=":material/hourglass_top:")
    if training_runs.take_over(wanted):
        rest()
        st.rerun()


if going:
    with training_runs.place(wait):
        state.text("Training.")
        began, before = perf_counter(), sum(run.step for run in runs)
        for turn, pictures in enumerate(training_runs.go_on(runs, once=going == A_STEP)):
            step = max(run.step for run in runs)
            pace = (sum(run.step for run in runs) - before) / (perf_counter() - began)
            bar.progress(step / first.steps, f"Step {step:,} of {first.steps:,}, {pace:,.0f} steps per second")
            if pictures:
                for run, slot, key in zip(runs, slots, KEYS, strict=False):
                    draw_run(run, step, slot, f"{key}_{turn}")
                if curves:
                    draw_curves(by_name, step, curves, f"_{turn}")
    rest()
    st.rerun()
