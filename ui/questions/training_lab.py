"""What the training lab asks: a wider model, where a head has to look, what a model without positions can tell."""

from dataclasses import replace
from math import prod

import numpy as np

from core import tasks, training
from core.tasks import TASKS
from core.training import Settings
from ui.predict import Choice, Number, Question, Solution
from ui.training_words import ALPHABET, PLACES
from ui.words import number

WIDEST = 64  # of the page's slider
ROUNDING = 1e-9


def ask(settings: Settings) -> list[Question]:
    """The three questions. Args: of the first run. Nothing is trained for them."""
    return [_wider(settings), _where_to_look(settings), _order(settings)]


def _wider(settings: Settings) -> Question:
    wide = replace(settings, d_model=2 * settings.d_model)

    def solve() -> Solution:
        now, then = (sum(map(prod, training.shapes(each).values())) for each in (settings, wide))
        in_now, in_then = (
            sum(prod(shape) for name, shape in training.shapes(each).items() if name.startswith("0."))
            for each in (settings, wide)
        )
        return Solution(
            (round(then / now, 1),),
            f"From {now:,} to {then:,} parameters, which is {number(then / now)} times as many. Inside a layer, both "
            f"sides of each matrix are d_model wide, or four times that, so a layer goes from {in_now:,} to "
            f"{in_then:,}; only embeddings, the output's weights and a layer's biases double.",
        )

    return Number(
        name="wider",
        asks=f"d_model is doubled, from {settings.d_model} to {wide.d_model}, and all else of the model stays. How "
        "many times as many parameters does the whole model have then? (One decimal; 0.3 more or less is right too)",
        solve=solve,
        decimals=1,
        tolerance=0.3,
        shows={"d_model": wide.d_model} if wide.d_model <= WIDEST else None,
    )


def _where_to_look(settings: Settings) -> Question:
    """In a sequence that the page does not show; another one for each seed."""
    task, judged = TASKS[settings.task], training.examples(settings)
    which, question = 1 + settings.seed % (training.EXAMPLES - 1), settings.seed % len(task.questions)
    letters, marks, sources = judged.letters[which], judged.marks[which], judged.sources[which, :, question]
    asked = np.flatnonzero(sources >= 0)  # never empty: 16 letters of 12 have some that come again
    at = int(asked[-1 - settings.seed % len(asked)])
    names = [f"{position} {ALPHABET[letter]}" for position, letter in enumerate(letters.tolist(), start=1)]
    name = task.questions[question]
    marked = f" The marked letter is {names[int(marks.argmax())]}." if marks.any() else ""

    def solve() -> Solution:
        place = int(sources[at])
        return Solution(
            (place,),
            f"“{name}” asks for {PLACES[name]}: at {names[at]} that is {names[place]}, and the right answer is "
            f"{ALPHABET[letters[place]]}. Nobody tells the head so. It learns where to look from right and wrong "
            "answers.",
        )

    return Choice(
        name="where",
        asks=f"A sequence that the page does not show: {', '.join(names)}.{marked} The model is asked for “{name}” at "
        f"{names[at]}. To which letter should a head give its weight there?",
        solve=solve,
        options=names,
        boxed=True,
    )


def _order(settings: Settings) -> Question:
    task, judged = TASKS[settings.task], training.examples(settings)
    other = replace(settings, encoding="sinusoidal" if settings.encoding == "none" else "none")
    first = int(np.flatnonzero(np.diff(judged.letters[0]))[0])  # equal letters would change nothing
    order = np.arange(task.seq_len)
    order[[first, first + 1]] = order[[first + 1, first]]

    def solve() -> Solution:
        batches = [
            tasks.ask(task, judged.letters[:1, places], judged.marks[:1, places])
            for places in (np.arange(task.seq_len), order)
        ]
        parameters = training.by_name(training.initial(other, np.float64), other)
        before, after = (training.forward(parameters, batch, other)[0][0] for batch in batches)
        change = np.abs(after - before[order]).max(axis=(1, 2))
        count = int(np.count_nonzero(change > ROUNDING * np.abs(before).max()))
        right = [batch.answers[0] for batch in batches]
        moved = int(np.count_nonzero((right[1] != right[0][order]).any(axis=-1)))
        return Solution(
            (count,),
            f"The model's scores change at {count} of {task.seq_len} letters. What would be right changes at {moved}. "
            f"{_why(other)}",
        )

    return Number(
        name="order",
        asks=f"The encoding is changed from {settings.encoding} to {other.encoding}, and nothing is trained yet. Then "
        f"letters {first + 1} and {first + 2} of the sequence shown change places"
        f"{', and a mark goes with its letter' if task.marked else ''}. Each letter is followed to its new place: at "
        f"how many of the {task.seq_len} does the model give other scores to the possible answers? (A whole number; a "
        "change in rounding does not count)",
        solve=solve,
        shows={"encoding": other.encoding},
    )


def _why(settings: Settings) -> str:
    if settings.encoding != "none" and not TASKS[settings.task].causal:
        return "Every letter has its place added to it, and all letters look at all: what moves is seen everywhere."
    if settings.encoding != "none":
        return "Every letter has its place added to it, and those that follow look back at what has moved."
    if TASKS[settings.task].causal:
        passed = " A second layer looks at them, and passes it on to those that follow." * (settings.layers > 1)
        return f"Only the mask tells what stands before. The two letters see others before them now.{passed}"
    return (
        "No letter is told its place: the model gives each the same scores wherever it stands, whatever its weights. "
        "So where the right answer depends on the place, no training can teach it."
    )
