"""The training lab: a small transformer learns a task while one watches what its heads come to look at."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import adam, training
from core.tasks import TASKS
from core.training import Settings
from ui import control_kinds, controls, figures, page, predict, training_figures, training_runs, training_words
from ui.page_controls import CONTROLS, OF_TASK
from ui.questions import training_lab as questions
from ui.training_runs import Run

KEYS = ("maps", "maps_beside")  # of the maps of the first and the second run

TO_THE_END, A_STEP = "to the end", "a step"
GO = "training_lab_go"  # in the session state: how far is trained, and what
BACK = "training_lab_back"  # in the session state: of which runs the reader looks at an earlier step, and at which
TRAIN, SHOWN = "training_lab_train", "training_lab_shown"  # the keys of a button and a slider

# Where the pictures of a run stand. Each is a container until something is drawn in it; that is then drawn over.
Slots = dict[str, DeltaGenerator]


@dataclass
class Lab:
    """What the page shows: the runs that its settings ask for, as far as they have come, and where they are drawn."""

    settings: control_kinds.Settings
    slots: list[Slots] = field(default_factory=list)  # of each run
    curves: Slots = field(default_factory=dict)  # empty where they are not on show
    said: Slots = field(default_factory=dict)  # how far the training has come: in words, and as a bar

    @cached_property
    def first(self) -> Settings:
        """The run that the controls describe."""
        s = self.settings
        return Settings(
            task=s.task,
            heads=s.heads,
            layers=s.layers,
            d_model=s.d_model,
            encoding=s.encoding,
            residual=s.residual,
            norm=s.norm,
            learning_rate=float(s.learning_rate),
            steps=s.steps,
            seed=s.seed,
        )

    @cached_property
    def best(self) -> Settings:
        """Those that learn the task."""
        return training.suggested(self.first.task)

    @cached_property
    def second(self) -> Settings | None:
        """The run beside it."""
        seeds = control_kinds.MAX_SEED + 1
        return training_runs.with_change(self.first, self.settings.beside, encoding=self.best.encoding, seeds=seeds)

    @property
    def wanted(self) -> list[Settings]:
        return [self.first, self.second] if self.second else [self.first]

    @cached_property
    def runs(self) -> dict[str, Run]:
        """By what they are called."""
        names = ["this setting"]
        if self.second:
            names.append(training_words.change_name(self.second, self.settings.beside))
        return dict(zip(names, training_runs.shown(self.wanted), strict=True))

    @property
    def last(self) -> int:
        """The step of the last picture."""
        return max(run.snapshots[-1].step for run in self.runs.values())

    @property
    def step(self) -> int:
        """The step that is shown: the last one, or the one to which the reader went back."""
        asked, step = st.session_state.get(BACK, ([], 0))
        return min(step, self.last) if asked == self.wanted else self.last

    @cached_property
    def going(self) -> str:
        """How far it trains now; "" where it rests.

        Other clicks draw the page anew and the training goes on; not so where the settings changed or the page was
        left, whose widgets Streamlit then forgets.
        """
        going, asked = st.session_state.get(GO, ("", []))
        return going if asked == self.wanted and TRAIN in st.session_state else ""


def go(how_far: str, wanted: Sequence[Settings]) -> None:
    """Train these settings from now on, until that is done or dropped."""
    st.session_state[GO] = how_far, wanted
    look_at_the_last()


def rest() -> None:
    """Train no more."""
    st.session_state.pop(GO, None)
    controls.draw_all_anew()


def start_over(wanted: Sequence[Settings]) -> None:
    """Back to before the first step, and wait there."""
    rest()
    look_at_the_last()
    training_runs.start_over(wanted)


def look_back(wanted: Sequence[Settings]) -> None:
    """Show these runs as they were at the step that the slider says."""
    st.session_state[BACK] = wanted, st.session_state[SHOWN]
    controls.draw_all_anew()


def look_at_the_last() -> None:
    """Show the runs as far as they have come."""
    st.session_state.pop(BACK, None)
    controls.draw_all_anew()


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


def draw_curves(lab: Lab, step: int, key: str = "") -> None:
    """Loss and accuracies of all runs, up to a step."""
    runs, slots = lab.runs, lab.curves
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


def the_lab(settings: control_kinds.Settings, lab: Lab) -> None:
    """The task, what can be done, and what the heads look at and answer."""
    if controls.shown_as().present <= 1:
        task = TASKS[lab.first.task]
        lacking = training_words.too_few_layers(lab.first)
        st.markdown(f"**The task:** {training_words.ABOUT[task.name]} {task.shows}{lacking}")
    offer_to_train(lab)
    states = [training_words.state_finding(run) for run in lab.runs.values()]
    several = len(set(states)) > 1
    named = [f"{training_words.capital(name)}: {said}" for name, said in zip(lab.runs, states, strict=True)]
    lab.said = {"state": page.findings(*(named if several else states[:1])), "bar": st.empty()}
    if lab.last:
        offer_to_look_back(lab)
    if not page.section():
        return
    for (name, run), key in zip(lab.runs.items(), KEYS, strict=False):
        if lab.second:
            st.header(training_words.capital(name), anchor=key)
        lab.slots.append(place_run(run.settings, legend=not lab.slots))
        draw_run(run, lab.step, lab.slots[-1], key)


def offer_to_train(lab: Lab) -> None:
    """The buttons."""
    runs, wanted = list(lab.runs.values()), lab.wanted
    over = all(run.finished for run in runs) or bool(lab.going)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Train", key=TRAIN, icon=":material/play_arrow:", disabled=over, on_click=go, args=(TO_THE_END, wanted)
        )
        st.button("Pause", key="training_lab_pause", icon=":material/pause:", disabled=not lab.going, on_click=rest)
        st.button(
            "Next picture",
            key="training_lab_step",
            icon=":material/skip_next:",
            disabled=over,
            help=f"Trains up to the next picture, and waits. Pictures are kept every {runs[0].every} steps.",
            on_click=go,
            args=(A_STEP, wanted),
        )
        st.button(
            "Reset",
            key="training_lab_reset",
            icon=":material/restart_alt:",
            disabled=not lab.going and not any(run.step for run in runs),
            help="Back to the random weights that it starts from",
            on_click=start_over,
            args=(wanted,),
        )
        if replace(lab.first, seed=lab.best.seed, steps=lab.best.steps) != lab.best:
            st.button("Settings that learn this task", key="training_lab_best", on_click=use_best, args=(lab.best,))


def offer_to_look_back(lab: Lab) -> None:
    """The slider over the steps."""
    if st.session_state.get(SHOWN) != lab.step:
        st.session_state[SHOWN] = lab.step
    every = next(iter(lab.runs.values())).every
    told = f"Goes back through the training. Pictures are kept every {every} steps."
    lab.said["bar"].slider(
        "Step shown", 0, lab.last, step=every, key=SHOWN, help=told, on_change=look_back, args=(lab.wanted,)
    )


def curves(settings: control_kinds.Settings, lab: Lab) -> None:
    """The curves."""
    if not page.section("How it learns"):
        return
    lab.curves = dict(zip(("loss", "accuracy"), st.columns(2), strict=True))
    draw_curves(lab, lab.step)
    if not lab.going:  # while it trains, only the pictures are drawn again
        page.findings(training_words.loss_finding(lab.runs), training_words.accuracy_finding(lab.runs))
    st.markdown("\n".join(f"- {term}" for term in training_words.terms(lab.first)))
    for line in training_words.equations(lab.first):
        st.latex(line)
    st.caption(training_words.SIGNS_OF_EQUATIONS)


def weight_of_each_head(settings: control_kinds.Settings, lab: Lab) -> None:
    """What each head looks at, in numbers."""
    if not page.section("The weight of each head"):
        return
    st.markdown(
        "The share of its weight on each kind of place: means over all letters that have such a place, in "
        f"{training.EXAMPLES} sequences that are never trained on. "
        "A letter may be of two kinds, and then counts for both."
    )
    for name, run in lab.runs.items():
        shown = run.at(lab.step)
        st.text(f"{training_words.capital(name)}, after step {shown.step:,}")
        readings = shown.readings
        if len(readings) <= 4:  # beyond, the table is easier to read
            for column, (label, share) in zip(
                st.columns(len(readings)), training_words.top_shares(readings, run.settings), strict=True
            ):
                column.metric(label, share)
        page.table(training_words.readings_table(readings, run.settings), alt=f"Weight of each head, {name}")


def below(settings: control_kinds.Settings, lab: Lab) -> None:
    """Questions, what to notice, and all numbers."""
    predict.offer(lambda: questions.ask(lab.first))
    page.notice(
        "Nobody tells the heads where to look. Only the answers are right or wrong; where to look is learned from "
        "that.",
        "A row of a head sums to 1: what it puts on one letter it takes from the others. Two questions about two "
        "places are a reason to have two heads.",
        training_words.WITHOUT_POSITIONS[lab.first.task],
        "Every switch can be tried beside the run as it is: choose what to change under *Beside it*, and train both.",
    )
    if not page.presenting():
        page.numbers({"Loss and right answers": partial(training_words.losses_table, lab.runs)})
        page.source(training.train, training.loss_and_gradient, adam.step)


def train(lab: Lab) -> None:
    """The training itself, last: all that a reader does meanwhile, and leaving the page, interrupts it."""
    runs, state, bar = list(lab.runs.values()), lab.said["state"], lab.said["bar"]

    def wait() -> None:
        """Said while others train; whoever wants what they have just finished gets it."""
        state.info("Two trainings are running. Yours starts when one of them ends.", icon=":material/hourglass_top:")
        if training_runs.take_over(lab.wanted):
            rest()
            st.rerun()

    with training_runs.place(wait):
        state.text("Training.")
        began, before = perf_counter(), sum(run.step for run in runs)
        for turn, pictures in enumerate(training_runs.go_on(runs, once=lab.going == A_STEP)):
            step = max(run.step for run in runs)
            pace = (sum(run.step for run in runs) - before) / (perf_counter() - began)
            bar.progress(step / lab.first.steps, f"Step {step:,} of {lab.first.steps:,}, {pace:,.0f} steps per second")
            if pictures:
                for run, slot, key in zip(runs, lab.slots, KEYS, strict=False):
                    draw_run(run, step, slot, f"{key}_{turn}")
                if lab.curves:
                    draw_curves(lab, step, f"_{turn}")


page.start(
    "training_lab",
    "Train a small transformer here, in seconds, and watch what each of its heads comes to look at.",
)
lab = Lab(controls.open_page("training_lab", CONTROLS["training_lab"], in_parts=True))
page.parts(
    lambda settings: lab if lab.going else Lab(settings),
    the_lab,
    curves,
    weight_of_each_head,
    below=below,
    apart=not lab.going,
)
page.foot("training_lab")
if lab.going:
    train(lab)
    rest()
    st.rerun()
st.session_state.pop(GO, None)
