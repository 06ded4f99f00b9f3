"""Experiments: on each page a few buttons that set the controls, and what to look for then."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import streamlit as st

from ui import controls
from ui.control_kinds import Settings
from ui.link import resolve, same
from ui.page_controls import declared


class Experiment(NamedTuple):
    """A button: its words, the controls that it sets by name, and what to look for once they are set (Markdown).

    All other controls of the page stand as in the lesson's example, and what to look for is true there.
    """

    name: str
    sets: Mapping[str, Any]
    look: str


EXPERIMENTS = {
    "recurrence": (
        Experiment(
            "256 tokens",
            {"sentence": "", "seq_len": 256},
            "The staircase has 256 steps, attention's row stays at step 1. What does attention pay for it? "
            "The last line of the table says it.",
        ),
        Experiment(
            "A wide model, a short text",
            {"sentence": "", "seq_len": 16, "d_model": 128},
            "Find n = 16 in the chart of multiply-adds: which part of attention costs more here, its projections or "
            "its mixing? Where do they change places?",
        ),
        Experiment(
            "A short memory",
            {"sentence": "", "seq_len": 24, "gain": 0.5},
            "Under *How far the first token reaches*, compare the first point of the upper picture with its last one. "
            "Does attention's weight go down with the distance too?",
        ),
        Experiment(
            "A large gain",
            {"sentence": "", "seq_len": 64, "d_model": 128, "gain": 2.5},
            "Going back from the last token, does the reach fade or grow? Try other seeds: *New weights*.",
        ),
    ),
    "self_attention": (
        Experiment(
            "Without √d_k at d_model 64",
            {"cross": False, "d_model": 64, "weight_scale": 0.1, "temperature": 1.0, "scaling": False},
            "Read the bits at the right of the map. Then switch *Divide scores by √d_k* on: what do the rows do?",
        ),
        Experiment(
            "Nobody looks ahead",
            {"cross": False, "causal": True, "padding": 0, "stage": "mask"},
            "Which cells of the map have no weight? How many tokens can token 1 look at, and how many the last one?",
        ),
        Experiment(
            "Cold, then hot",
            {"temperature": 0.1},
            "Read the bits at the right of the map. Then move *Temperature* to 5: what becomes of the rows and bits?",
        ),
        Experiment(
            "The same word twice",
            {"cross": False, "causal": False, "padding": 0, "sentence": "the cat saw the dog"},
            "Compare the rows of token 1 and token 4. They are the same word: does its place make a difference?",
        ),
        Experiment(
            "A second sentence",
            {"cross": True, "padding": 0, "sentence": "the cat saw the dog", "source": "die Katze sah den Hund gern"},
            "Queries come from the first sentence, keys and values from the second, so the map need not be square. "
            "Nothing is trained: words find their translation by chance at most.",
        ),
    ),
    "positional_encoding": (
        Experiment(
            "Two words change places",
            {"sentence": "dog bites man", "scheme": "sinusoidal", "permutation": "first two swapped"},
            "Under *Shuffle the words*, compare the differences without an encoding and with it.",
        ),
        Experiment(
            "No encoding at all",
            {"scheme": "none"},
            "All columns of the picture are alike: nothing tells one position from another. When does order show all "
            "the same? See *Shuffle the words*.",
        ),
        Experiment(
            "Loud words",
            {"scheme": "sinusoidal", "embedding_scale": 5.0},
            "Under *Where am I?*: how many positions are found now? Make the embeddings smaller again.",
        ),
        Experiment(
            "Turn instead of add",
            {"scheme": "rope"},
            "Under *Near and far*, follow a diagonal of the map: is the score another one early and late in the text?",
        ),
        Experiment(
            "Distance costs",
            {"scheme": "alibi", "alibi_head": 1},
            "Move *Head, of 8* from 1 to 8: which head looks furthest, and which least far?",
        ),
    ),
    "multi_head_attention": (
        Experiment(
            "Heads with a job",
            {"heads_from": "built by hand", "sentence": "", "seq_len": 11, "d_model": 32, "off": ()},
            "Three heads, three jobs. Now type a sentence in which no word comes twice: "
            "what is left for the head *same word* to find?",
        ),
        Experiment(
            "One of them off",
            {"heads_from": "built by hand", "sentence": "", "seq_len": 11, "d_model": 32, "off": (1,)},
            "Under *Switch heads off*: at which token does the output change most?",
        ),
        Experiment(
            "Eight heads",
            {"heads_from": "random", "d_model": 64, "heads": 8, "off": ()},
            "How wide is each head now, and how many parameters do all of them have? See the tables.",
        ),
        Experiment(
            "Heads that were trained",
            {"heads_from": "trained", "model": "two questions at once", "example": 6, "off": ()},
            "Move *Marked letter*: which head follows it?",
        ),
    ),
    "transformer_block": (
        Experiment(
            "24 blocks, pre-norm",
            {"blocks": 24, "norm": True, "order": "pre-norm", "residual": True, "d_model": 32, "d_ff": 128},
            "Under *Block upon block*: what does the spread do from block to block? Choose post-norm and compare.",
        ),
        Experiment(
            "No residual connections",
            {"blocks": 12, "norm": True, "residual": False},
            "The lane at the right of the diagram is gone. Under *How the gradient gets back*: which line is this?",
        ),
        Experiment(
            "No norm",
            {"blocks": 12, "norm": False, "residual": True},
            "Under *Block upon block*: does the spread stay as it is? What does the gradient do on its way back?",
        ),
        Experiment(
            "GELU",
            {"activation": "GELU"},
            "GELU lets small negative numbers through where ReLU gives 0. How much does the output change?",
        ),
    ),
    "training_lab": (
        Experiment(
            "One head beside two",
            {"task": "two questions at once", "layers": 1, "heads": 2, "beside": "heads"},
            "Press *Train*: which of the two questions does the single head give up?",
        ),
        Experiment(
            "Without positions",
            {"task": "two questions at once", "layers": 1, "heads": 2, "beside": "encoding"},
            "Press *Train*: which question can be answered without knowing who stands where?",
        ),
        Experiment(
            "A head for a head",
            {"task": "induction", "layers": 2, "heads": 1, "encoding": "learned"},
            "Press *Train*: the head of layer 1 finds the previous letter. What does the head of layer 2 do with it?",
        ),
        Experiment(
            "Steps too large",
            {"learning_rate": "0.1"},
            "Press *Train*: does the loss fall as it does at 0.003?",
        ),
    ),
}


def _is_on(experiment: Experiment, page: str, settings: Settings, fixed_names: Iterable[str]) -> bool:
    """Whether the page stands as the experiment set it; beside that, other weights and other views are free."""
    values = settings.values
    fixed = {name: values[name] for name in fixed_names if name in values}
    if not all(same(values.get(name), value) for name, value in experiment.sets.items() if name not in fixed):
        return False
    meant = resolve(declared(page), {**experiment.sets, **fixed}).values
    return all(
        same(values[control.name], meant[control.name])
        for control in declared(page)
        if not (control.in_page or control.name == "seed")
    )


def _set(experiment: Experiment) -> None:
    """Start from the lesson's example: what other experiments left would make another experiment of this one."""
    controls.begin_anew(experiment.sets)


def offer() -> None:
    """The buttons of the page that is open, below its controls."""
    name, _ = controls.address()
    with st.sidebar:
        offered = _offered(name)
        if offered:
            st.subheader("Experiments", anchor=False)
        for place, experiment in enumerate(offered):
            st.button(
                experiment.name, key=f"{name}_experiment_{place}", on_click=_set, args=(experiment,), width="stretch"
            )


def what_to_look_for(settings: Settings) -> None:
    """At the top of the page that is open, while the settings of an experiment are on."""
    (page, _), shown = controls.address(), controls.shown_as()
    for experiment in _offered(page) if shown.present <= 1 else ():
        if _is_on(experiment, page, settings, shown.fixed):
            st.info(f"**{experiment.name}.** {experiment.look}", icon=":material/science:")


def _offered(page: str) -> list[Experiment]:
    """Those that set nothing that a link has locked or hidden."""
    fixed = set(controls.shown_as().fixed)
    return [each for each in EXPERIMENTS[page] if not fixed & set(each.sets)]
