"""What the training lab says: its tasks, and sentences computed from a run. Plain text, as in `ui.words`."""

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log, prod

import pandas as pd

from core.checks import Array
from core.tasks import TASKS, Batch, Task
from core.trained import Trace
from core.training import EXAMPLES, Reading, Settings, examples, most_frequent, shapes
from ui.training_runs import Run, Snapshot
from ui.words import three_digits

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

ABOUT = {
    "two questions at once": "The model reads 12 letters, one of them marked. At every letter it answers two "
    "questions: which letter stands just before this one (“previous”), and which letter is marked (“marked”).",
    "reverse": "The model reads 12 letters and says them backwards: at the first place the last letter, at the second "
    "place the last but one, and so on (“mirrored”).",
    "induction": "The model reads 16 letters. Wherever a letter has come before, it says which letter followed it the "
    "last time (“after the last time”). It sees only this letter and those before it.",
}
# The places that `core.training.readings` tells apart, inside a sentence.
PLACES = {
    "previous": "the previous letter",
    "marked": "the marked letter",
    "mirrored": "the mirrored letter",
    "after the last time": "the letter that came after it the last time",
    "itself": "the letter itself",
}
SHORT = {"previous": "prev", "marked": "mark", "mirrored": "back", "after the last time": "next"}  # of the questions
MARK = "◆"  # behind the name of a marked letter
SIGNS = "○□"  # in the maps, of the first and the second question
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
CLEAR = 0.5  # more than half of a head's weight on one kind of place
LEARNED = 0.99


def letters_of(batch: Batch) -> list[str]:
    """The letters of the first sequence."""
    return [ALPHABET[letter] for letter in batch.letters[0]]


def mark_of(batch: Batch) -> int | None:
    """The marked place of the first sequence, from 0; None where nothing is marked."""
    return int(batch.marks[0].argmax()) if batch.marks[0].any() else None


def example(batch: Batch, settings: Settings, said: Array) -> str:
    """The first sequence, its right answers, and what the model says, line by line.

    Args:
        said: (n, questions), the model's answers.
    """
    marked = mark_of(batch)
    lines = [_line("", letters_of(batch), marked)]
    for place, question in enumerate(TASKS[settings.task].questions):
        right = batch.answers[0, :, place].tolist()
        pairs = list(zip(right, said[:, place].tolist(), strict=True))
        lines.append(_line(SHORT[question], ["·" if a < 0 else ALPHABET[a] for a in right]))
        lines.append(_line("model", ["·" if a < 0 else ALPHABET[a] if a == b else "×" for a, b in pairs]))
    return "\n".join(lines)


def _line(name: str, signs: Sequence[str], marked: int | None = None) -> str:
    """A name and signs of one letter each, the marked one in brackets."""
    gaps = [" ", *[" " if len(signs) <= 12 else ""] * len(signs)]  # without, 16 letters find room on a phone
    if marked is not None:
        gaps[marked : marked + 2] = "[]"
    return (f"{name:<5}" + "".join(gap + sign for gap, sign in zip(gaps, [*signs, ""], strict=True))).rstrip()


def legend(batch: Batch, settings: Settings) -> str:
    """How to read `example` and the signs in the maps."""
    task = TASKS[settings.task]
    named = zip(SIGNS, task.questions, strict=False)
    signs = "; ".join(f"{sign} “{SHORT[question]}”, {PLACES[question]}" for sign, question in named)
    return " ".join(
        [
            f"{signs}. In the maps the sign stands where this answer is found. "
            f"The maps show one sequence; shares of weight named in words are means over {EXAMPLES} sequences.",
            *(["In brackets: the marked letter."] if task.marked else []),
            *(["·: nothing is asked."] if (batch.answers[0] < 0).any() else []),
            "×: a wrong answer.",
        ]
    )


def letters_read(text: str, task: Task) -> list[int] | None:
    """The letters of a typed sequence, from 0; None where it is not as long as the task's, or has other letters."""
    letters = [ALPHABET.find(letter) for letter in text.upper() if not letter.isspace()]
    fits = len(letters) == task.seq_len and all(0 <= letter < task.letters for letter in letters)
    return letters if fits else None


def letters_needed(text: str, task: Task) -> str:
    """What is wrong with a sequence that `letters_read` cannot read."""
    return (
        f"“{text}” cannot be read by this model: it reads {task.seq_len} letters from A to "
        f"{ALPHABET[task.letters - 1]}. An example is shown instead."
    )


def marked_names(names: Sequence[str], mark: int | None) -> list[str]:
    """Names of tokens, the marked one (from 0) with a sign."""
    return [f"{name} {MARK}" if place == mark else name for place, name in enumerate(names)]


def answers_finding(trace: Trace, settings: Settings, off: Sequence[str]) -> str:
    """How many answers of a trained model to one sequence are right. Args: off, the names of the heads that are off."""
    task = TASKS[settings.task]
    asked = trace.expected >= 0  # (n, questions)
    right = (trace.answers == trace.expected) & asked
    counts = zip(task.questions, right.sum(axis=0).tolist(), asked.sum(axis=0).tolist(), strict=True)
    said = [f"{hits} of {all_asked} “{question}”" for question, hits, all_asked in counts]
    without = f" without {' and '.join(off)}" if off else ""
    return f"Right answers{without}: {', '.join(said)}." + (
        f" {MARK} stands at the marked letter." if task.marked else ""
    )


def answers_table(trace: Trace, settings: Settings, names: Sequence[str]) -> pd.DataFrame:
    """What a trained model answers at each letter, under the letter; a wrong answer with the right one behind it."""
    rows = {}
    for place, question in enumerate(TASKS[settings.task].questions):
        pairs = zip(trace.answers[:, place].tolist(), trace.expected[:, place].tolist(), strict=True)
        rows[f"“{question}”"] = [
            "" if right < 0 else ALPHABET[said] + ("" if said == right else f" (not {ALPHABET[right]})")
            for said, right in pairs
        ]
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(names)).rename_axis("question")


def counted(count: int, noun: str) -> str:
    """one head, two heads."""
    return f"{_NUMBERS[count] if count < len(_NUMBERS) else count} {noun}{'s' * (count != 1)}"


def change_name(settings: Settings, change: str) -> str:
    """What a second run has that differs, as its name. Args: the second run's settings, and what was changed."""
    return {
        "heads": counted(settings.heads, "head"),
        "layers": counted(settings.layers, "layer"),
        "encoding": "no positions" if settings.encoding == "none" else f"{settings.encoding} positions",
        "residual": "with residual" if settings.residual else "no residual",
        "norm": "with norm" if settings.norm else "no norm",
        "seed": f"seed {settings.seed}",
    }[change]


def head_name(reading: Reading, settings: Settings) -> str:
    """A head's name, from 1: head 2; layer 1, head 2; where a layer has one head, the head of layer 1."""
    if settings.layers == 1:
        return f"head {reading.head + 1}" if settings.heads > 1 else "the one head"
    if settings.heads == 1:
        return f"the head of layer {reading.layer + 1}"
    return f"layer {reading.layer + 1}, head {reading.head + 1}"


def map_titles(readings: Sequence[Reading], settings: Settings) -> list[str]:
    """A title for each map: layer and head, and under it what the head does, where that is clear and there are few."""
    titles = []
    for reading in readings:
        of_layer = [f"layer {reading.layer + 1}"] if settings.layers > 1 else []
        of_head = [f"head {reading.head + 1}"] if settings.heads > 1 or settings.layers == 1 else []
        place = top(reading)
        clear = len(readings) <= 3 and reading.on[place] > CLEAR
        told = [f"mean {reading.on[place]:.2f} on {place}"] if clear else []
        titles.append("<br>".join(of_layer + of_head + told))
    return titles


def top(reading: Reading) -> str:
    """The kind of place with most of a head's weight."""
    return max(reading.on, key=lambda place: reading.on[place])


def top_shares(readings: Sequence[Reading], settings: Settings) -> list[tuple[str, str]]:
    """For each head its name with the kind of place that it looks at most, and the share of its weight there."""
    found = []
    for reading in readings:
        place = top(reading)
        share = f"{reading.on[place]:.2f}" if isfinite(reading.on[place]) else "no number"
        found.append((f"{capital(head_name(reading, settings))}, on “{place}”", share))
    return found


def heads_finding(readings: Sequence[Reading], settings: Settings) -> str:
    """Which head does what. Every head is told where there are up to four, and counts with the best one beyond."""
    if any(not isfinite(share) for reading in readings for share in reading.on.values()):
        return "What the heads look at are no finite numbers any more."
    clear = [reading for reading in readings if reading.on[top(reading)] > CLEAR]
    if len(readings) > 4:
        return _many_heads(readings, clear, settings)
    if not clear and len(readings) > 1:
        best = max(readings, key=lambda reading: reading.on[top(reading)])
        return (
            "No head settles on one of the places looked for. The most is what "
            f"{head_name(best, settings)} puts on {PLACES[top(best)]}, {best.on[top(best)]:.2f} of its weight."
        )
    said = []
    for reading in readings:
        name, place = head_name(reading, settings), top(reading)
        share = f"{reading.on[place]:.2f}"
        if reading in clear:
            said.append(f"{name} puts {share} of its weight on {PLACES[place]}")
        else:
            most = f"the most, {share} of its weight, is on {PLACES[place]}"
            said.append(f"{name} settles on none of the places looked for: {most}")
    return _sentence("; ".join(said))


def _many_heads(readings: Sequence[Reading], clear: Sequence[Reading], settings: Settings) -> str:
    groups: dict[str, list[Reading]] = {}
    for reading in clear:
        groups.setdefault(top(reading), []).append(reading)
    said = []
    for place, group in groups.items():
        best = max(group, key=lambda reading: reading.on[place])
        many = len(group) > 1
        best_of = f"{', most of all' if many else ':'} {head_name(best, settings)} with {best.on[place]:.2f}"
        verb = "put more than half of their weight" if many else "puts more than half of its weight"
        said.append(f"{len(group)} {verb} on {PLACES[place]}{best_of}")
    rest = len(readings) - len(clear)
    if rest:
        said.append(f"{rest} {'settle' if rest > 1 else 'settles'} on none of the places looked for")
    return f"Of {len(readings)} heads, " + "; ".join(said) + "."


def learned_finding(shown: Snapshot, settings: Settings) -> str:
    """Which questions are learned by the step shown, and which are not."""
    task = TASKS[settings.task]
    named = list(zip(task.questions, shown.accuracies, strict=True))
    learned = [f"“{question}”" for question, share in named if share >= LEARNED]
    missing = [f"“{question}”" for question, share in named if share < LEARNED]
    said = [f"learned: {' and '.join(learned)}"] if learned else []
    said += [f"not learned: {' and '.join(missing)}"] if missing else []
    said = [f"At step {shown.step:,} {'; '.join(said)}."]
    return " ".join(
        [*said, f"A blind guess is right {percent(1 / task.letters)} of the time.", frequent_finding(settings)]
    )


def frequent_finding(settings: Settings) -> str:
    """What the most frequent letter gives as an answer: so much is no sign that anything about places was learned."""
    task = TASKS[settings.task]
    shares = [percent(share) for share in most_frequent(examples(settings), task)]
    named = [f"{share} on “{question}”" for question, share in zip(task.questions, shares, strict=True)]
    what = "the letter seen most often so far" if task.causal else "the most frequent letter of the sequence"
    return f"Always naming {what}, wherever it stands, gives {' and '.join(named)}."


def percent(share: float) -> str:
    """99.9% for all that is not quite 100%."""
    return "100%" if share == 1 else f"{floor(share * 1000) / 10:.1f}%"


def one_head(settings: Settings) -> list[str]:
    """For one head that has two questions to answer: what trials gave. Nothing for other settings.

    Trained with `core.training`, all else at its default, seeds 0 to 4: above 0.35 on "previous" came 1 of 5 runs at
    600 steps, 2 of 5 at 1,000 and 2,000 steps; the others stood at 0.17.
    """
    if settings.task != "two questions at once" or settings.heads * settings.layers > 1:
        return []
    return [
        "One head has one map for both questions. More steps can help, but need not. In a trial with five seeds, "
        "“previous” was above 35 % in one run after 600 steps, and in two runs, there above 97 %, after 2,000 steps."
    ]


def too_few_layers(settings: Settings) -> str:
    """That a model has fewer layers than its task takes, to follow what the task is; else nothing."""
    if settings.layers >= TASKS[settings.task].layers:
        return ""
    return f" The model here has {counted(settings.layers, 'layer')}."


def state_finding(run: Run) -> str:
    """How far a run has come, in one sentence."""
    settings, step = run.settings, run.step
    if run.failure:
        return run.failure
    if run.finished:
        return (
            f"Trained: {settings.steps:,} steps. One training serves all who choose these settings: "
            "to watch it learn, press Reset and then Train."
        )
    if step:
        return (
            f"Paused after {step:,} of {settings.steps:,} steps. Train goes on from here; Reset goes back to the start."
        )
    return "Not trained yet: the weights are random, and so is what the heads look at. Press Train."


def loss_finding(runs: Mapping[str, Run]) -> str:
    """The loss at the start and now, run by run. Args: runs by name; the name of a single one is not said."""
    letters = TASKS[next(iter(runs.values())).settings.task].letters
    said = []
    for name, run in runs.items():
        whose = f"{name}: loss" if len(runs) > 1 else "Loss"
        now = f", {three_digits(run.losses[-1])} after {run.step:,} steps" if run.step else ""
        said.append(f"{whose} {three_digits(run.losses[0])} before the first step{now}.")
    said = [capital(line) for line in said]
    return "\n".join([*said, f"Giving each of the {letters} letters the same chance has a loss of {log(letters):.2f}."])


def accuracy_finding(runs: Mapping[str, Run]) -> str:
    """The right answers now, run by run. Args: as in `loss_finding`."""
    said = []
    for name, run in runs.items():
        shown = run.snapshots[-1]
        named = zip(TASKS[run.settings.task].questions, shown.accuracies, strict=True)
        shares = ", ".join(f"“{question}” {percent(share)}" for question, share in named)
        whose = f"{name}: right answers" if len(runs) > 1 else "Right answers"
        said.append(f"{whose} after {shown.step:,} steps: {shares}.")
    return "\n".join(capital(line) for line in said)


def terms(settings: Settings) -> list[str]:
    """The words of training, half a sentence each, as Markdown."""
    task = TASKS[settings.task]
    return [
        f"**Step:** the model answers for {settings.batch} new random sequences, and all its parameters are moved a "
        "little, so that these answers would have been better.",
        "**Parameters:** the learned numbers of the model, here "
        f"{sum(prod(shape) for shape in shapes(settings).values()):,}. They start out random.",
        "**Learning rate:** how far a step moves them. Too small, and learning is slow; too large, and they jump past "
        "what they should find.",
        "**Loss:** how little chance the model gives to the right answers. 0 is certainty; "
        f"{log(task.letters):.2f} is as good as giving each of the {task.letters} letters the same chance.",
        "**Accuracy:** the share of right answers, on 256 sequences that are never trained on.",
    ]


def equations(settings: Settings) -> list[str]:
    """LaTeX: from the last layer to the loss, and one step, with the current sizes."""
    task, d = TASKS[settings.task], settings.d_model
    n, letters, questions = task.seq_len, task.letters, len(task.questions)
    answers = questions * letters
    return [
        r"p = \text{softmax}(x\, W_\text{out} + b_\text{out})",
        rf"({n} \times {d}) \cdot ({d} \times {answers}) = {n} \times {answers}",
        *([rf"{n} \times {answers} = {n} \times {questions} \times {letters}"] if questions > 1 else []),
        r"\text{loss} = -\,\text{mean}\,\ln p_{\text{right answer}}",
        rf"\theta \leftarrow \theta - {settings.learning_rate:g}\, \frac{{\hat m}}{{\sqrt{{\hat v}} + 10^{{-8}}}}",
    ]


WITHOUT_POSITIONS = {
    "two questions at once": "Without positional encoding the letters have no order: which is the previous one cannot "
    "be learned. Which one is marked can.",
    "reverse": "Without positional encoding the letters have no order: which one stands at the other end cannot be "
    "learned.",
    "induction": "Here each letter sees itself and those before it, which tells something of the order even without "
    "positional encoding: two layers can then learn a part of this task.",
}
SIGNS_OF_EQUATIONS = (
    "x is what the last layer gives, one row for each letter of the sequence; p is the chance of each letter as an "
    "answer. θ stands for all parameters, m̂ and v̂ for running means of their gradient and of its square (Adam)."
)


def readings_table(readings: Sequence[Reading], settings: Settings) -> pd.DataFrame:
    """The share of each head's weight on each kind of place, one row for each head."""
    rows = [{"head": capital(head_name(reading, settings)), **reading.on} for reading in readings]
    return pd.DataFrame(rows).set_index("head")


def losses_table(runs: Mapping[str, Run]) -> pd.DataFrame:
    """Loss and accuracies of every snapshot, run by run."""
    rows = []
    for name, run in runs.items():
        for shown in run.snapshots:
            named = zip(TASKS[run.settings.task].questions, shown.accuracies, strict=True)
            rows.append({"run": name, "step": shown.step, "loss": shown.loss, **dict(named)})
    table = pd.DataFrame(rows)
    return table if len(runs) > 1 else table.drop(columns="run")


def _sentence(text: str) -> str:
    return capital(text) + "."


def capital(text: str) -> str:
    """The text with a capital at its start, and nowhere else changed."""
    return text[:1].upper() + text[1:]
