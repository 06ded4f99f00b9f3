"""The training lab: a small transformer learns a task of `core.tasks`, in numpy, the same way every time.

    python -m core.training --help

The model is an embedding of the letters (and, added to it, one of whether a letter is marked), a positional encoding,
blocks as in `core.block` (post-norm, ReLU, with output projection) and one linear output with a softmax per question.
Only the feed-forward layers and the output have biases. Everything starts as PyTorch starts it: embeddings and a
learned encoding standard normal, linear layers uniform between ±1/√(number of inputs).
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite, prod, sqrt

import numpy as np

from core import adam
from core.block import Settings as BlockSettings
from core.checks import Array, at_least, divides, positive
from core.draws import HIGHEST_SEED
from core.gradients import (
    BlockPass,
    BlockWeights,
    bias_backward,
    block,
    block_backward,
    cross_entropy,
    cross_entropy_backward,
    embedding_backward,
    linear,
    linear_backward,
)
from core.positional import sinusoidal
from core.tasks import TASKS, Batch, Task, draw

ENCODINGS = ("none", "sinusoidal", "learned")
EXAMPLES = 256  # sequences that are never trained on: accuracies and weights are read from them

# Which stream a draw comes from, so that no two kinds of draw share numbers.
_WEIGHTS, _BATCHES, _EXAMPLES = range(100, 103)

Parameters = dict[str, Array]


@dataclass(frozen=True)
class Settings:
    """What decides a run, to the last digit on one machine.

    task: a name in `core.tasks.TASKS`. encoding: "none", "sinusoidal" or "learned". batch: sequences per step.
    """

    task: str = "two questions at once"
    heads: int = 2
    layers: int = 1
    d_model: int = 32
    encoding: str = "sinusoidal"
    residual: bool = True
    norm: bool = True
    learning_rate: float = 3e-3
    steps: int = 400
    seed: int = 0
    batch: int = 64

    @property
    def d_ff(self) -> int:
        """Four times d_model, as in Vaswani et al. 2017."""
        return 4 * self.d_model


@dataclass(frozen=True)
class Progress:
    """Where a run stands after `step` steps; step 0 is before the first.

    loss: of the weights after these steps, on the batch of the next step, which they have not seen; in nats, the
    mean of the questions. From time to time, and at the last step, also, read from sequences that are never trained on:
    accuracies: the share of right answers per question; readings: what each head looks at; and of the first of these
    sequences maps: (layers, heads, n, n) attention weights, and answers: (n, questions) what the model says.
    At the last step also parameters, the trained weights.
    """

    step: int
    loss: float
    accuracies: tuple[float, ...] | None = None
    readings: tuple["Reading", ...] | None = None
    maps: Array | None = None
    answers: Array | None = None
    parameters: Parameters | None = None


@dataclass(frozen=True)
class Reading:
    """What one head looks at: layer and head from 0, and the share of its weight on each kind of place, by name."""

    layer: int
    head: int
    on: Mapping[str, float]


def checked(settings: Settings) -> Settings:
    """The settings themselves.

    Raises:
        ValueError: an unknown task or encoding, sizes below 1, heads that do not divide d_model, a learning rate that
            is not above 0, a seed outside 0 to 2³² - 1.
    """
    if settings.task not in TASKS:
        raise ValueError(f"{settings.task} is none of the tasks {', '.join(TASKS)}.")
    if settings.encoding not in ENCODINGS:
        raise ValueError(f"{settings.encoding} is none of the encodings {', '.join(ENCODINGS)}.")
    divides(settings.heads, settings.d_model)
    for name in ("layers", "steps", "batch"):
        at_least(name, getattr(settings, name), 1)
    positive("learning_rate", settings.learning_rate)
    if at_least("the seed", settings.seed, 0) > HIGHEST_SEED:
        raise ValueError(f"the seed must be at most {HIGHEST_SEED}, not {settings.seed}.")
    return settings


def suggested(task: str) -> Settings:
    """The settings with which a task is learned.

    Raises:
        ValueError: an unknown task.
    """
    named = TASKS[checked(Settings(task=task)).task]
    return Settings(task, named.heads, named.layers, encoding=named.encoding, steps=named.steps)


# --- the model -------------------------------------------------------------------------------------------------------


def shapes(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Every weight of the model by name, in the order in which they are drawn; block i's begin with "i."."""
    task, d, d_ff = TASKS[settings.task], settings.d_model, settings.d_ff
    answers = len(task.questions) * task.letters
    named: dict[str, tuple[int, ...]] = {"letters": (task.letters, d)}
    if task.marked:
        named["marks"] = (2, d)  # added to a letter: the first row without a mark, the second with one
    named |= {"w_out": (d, answers), "b_out": (answers,)}
    for layer in range(settings.layers):
        named |= {f"{layer}.w_qkv": (d, 3 * d), f"{layer}.w_o": (d, d)}
        named |= {f"{layer}.w_1": (d, d_ff), f"{layer}.b_1": (d_ff,)}
        named |= {f"{layer}.w_2": (d_ff, d), f"{layer}.b_2": (d,)}
    if settings.encoding == "learned":  # the last: runs with other encodings start with the same weights
        named["positions"] = (task.seq_len, d)
    return named


def initial(settings: Settings, dtype: type[np.floating] = np.float32) -> Array:
    """All weights before training in one vector, in the order of `shapes`, as PyTorch's layers start.

    Raises:
        ValueError: as in `checked`.
    """
    generator = np.random.default_rng([_WEIGHTS, checked(settings).seed])
    named = shapes(settings)
    drawn = []
    for name, shape in named.items():
        if name in ("letters", "marks", "positions"):
            drawn.append(generator.standard_normal(prod(shape)))
        else:  # a bias is drawn like the matrix that it belongs to
            bound = 1 / sqrt(named[name.replace("b_", "w_")][0])
            drawn.append(generator.uniform(-bound, bound, prod(shape)))
    return np.concatenate(drawn).astype(dtype)


def by_name(vector: Array, settings: Settings) -> Parameters:
    """The weights in a vector by name, each in its shape: the same numbers, nothing copied."""
    named, start = {}, 0
    for name, shape in shapes(settings).items():
        named[name] = vector[start : start + prod(shape)].reshape(shape)
        start += prod(shape)
    return named


@dataclass(frozen=True)
class Pass:
    """What the backward pass of the model needs: its blocks' passes, and what the last one gave (b, n, d_model)."""

    blocks: tuple[BlockPass, ...]
    last: Array


def forward(parameters: Parameters, batch: Batch, settings: Settings) -> tuple[Array, Pass]:
    """Scores for every answer, (b, n, questions, letters), and what the backward pass needs."""
    task = TASKS[settings.task]
    x = parameters["letters"][batch.letters]  # (b, n, d_model)
    if task.marked:
        x += parameters["marks"][batch.marks.astype(int)]
    if settings.encoding != "none":
        x += parameters["positions"] if settings.encoding == "learned" else _sinusoidal(task, settings, x.dtype)
    passes = []
    for layer in range(settings.layers):
        x, passed = block(x, _weights_of_block(parameters, layer), _block_settings(settings))
        passes.append(passed)
    scores = linear(x, parameters["w_out"], parameters["b_out"])
    return scores.reshape(*batch.letters.shape, len(task.questions), task.letters), Pass(tuple(passes), x)


def backward(d_scores: Array, passed: Pass, parameters: Parameters, batch: Batch, settings: Settings) -> Parameters:
    """The gradient of every weight by name. Args: d_scores (b, n, questions, letters)."""
    d_scores = d_scores.reshape(*batch.letters.shape, -1)
    d_x, d_w_out = linear_backward(d_scores, passed.last, parameters["w_out"])
    arrived = {"w_out": d_w_out, "b_out": bias_backward(d_scores)}
    for layer in reversed(range(settings.layers)):
        weights = _weights_of_block(parameters, layer)
        d_x, d_weights = block_backward(d_x, passed.blocks[layer], weights, _block_settings(settings))
        arrived |= {f"{layer}.{name}": d for name, d in vars(d_weights).items()}
    arrived["letters"] = embedding_backward(d_x, batch.letters, len(parameters["letters"]))
    if "marks" in parameters:
        arrived["marks"] = embedding_backward(d_x, batch.marks.astype(int), 2)
    if "positions" in parameters:
        arrived["positions"] = d_x.sum(axis=0)  # (n, d_model)
    return arrived


def loss_and_gradient(vector: Array, batch: Batch, settings: Settings) -> tuple[float, Array]:
    """The loss on a batch and its gradient, one number for each in the vector of weights.

    The loss is the cross-entropy of each question, a mean over the answers asked for, and the mean of the questions.
    """
    parameters = by_name(vector, settings)
    scores, passed = forward(parameters, batch, settings)
    losses, d_scores = [], np.empty_like(scores)
    for question in range(scores.shape[2]):
        answers = batch.answers[..., question]
        loss, probabilities = cross_entropy(scores[:, :, question], answers)
        losses.append(loss)
        d_scores[:, :, question] = cross_entropy_backward(probabilities, answers)
    d_scores /= len(losses)
    arrived = backward(d_scores, passed, parameters, batch, settings)
    return sum(losses) / len(losses), np.concatenate([arrived[name].reshape(-1) for name in parameters])


def _weights_of_block(parameters: Parameters, layer: int) -> BlockWeights:
    return BlockWeights(*(parameters[f"{layer}.{name}"] for name in ("w_qkv", "w_o", "w_1", "b_1", "w_2", "b_2")))


def _block_settings(settings: Settings) -> BlockSettings:
    return BlockSettings(
        heads=settings.heads,
        residual=settings.residual,
        norm=settings.norm,
        output_projection=True,
        causal=TASKS[settings.task].causal,
    )


def _sinusoidal(task: Task, settings: Settings, dtype: np.dtype) -> Array:
    return sinusoidal(task.seq_len, settings.d_model).astype(dtype)


# --- training --------------------------------------------------------------------------------------------------------


def train(settings: Settings, every: int = 10) -> Iterator[Progress]:
    """Train from the start, one step at a time: whoever asks for the next step decides when it is taken.

    Args:
        every: steps between two readings of accuracies and maps; reading changes nothing in the run.

    Yields:
        steps + 1 times: before the first step and after each one.

    Raises:
        ValueError: when the first is asked for, as in `checked`, or for `every` below 1; later, a loss that is no
            finite number, with the learning rate that led to it.
    """
    vector, judged = initial(settings), examples(settings)
    at_least("every", every, 1)
    state, batches = adam.start(vector), np.random.default_rng([_BATCHES, settings.seed])
    _keep_memory()
    for step in range(settings.steps + 1):
        loss, gradient = _finite(vector, draw(TASKS[settings.task], settings.batch, batches), settings, step)
        yield _progress(step, loss, vector, settings, judged if step % every == 0 or step == settings.steps else None)
        if step < settings.steps:
            with np.errstate(all="ignore"):  # as in `_finite`
                vector, state = adam.step(vector, gradient, state, settings.learning_rate)


def _finite(vector: Array, batch: Batch, settings: Settings, step: int) -> tuple[float, Array]:
    with np.errstate(all="ignore"):  # what overflows shows in the loss
        loss, gradient = loss_and_gradient(vector, batch, settings)
    if not isfinite(loss):
        rate = f"learning rate {settings.learning_rate:g}"
        raise ValueError(f"The loss is no finite number after step {step}: {rate} is too large for this model.")
    return loss, gradient


def _progress(step: int, loss: float, vector: Array, settings: Settings, judged: Batch | None) -> Progress:
    if judged is None:
        return Progress(step, loss)
    parameters = by_name(vector, settings)
    with np.errstate(all="ignore"):
        scores, passed = forward(parameters, judged, settings)
    return Progress(
        step,
        loss,
        accuracies(scores, judged),
        tuple(looked_at(passed, judged, TASKS[settings.task])),
        np.stack([layer.multi_head.heads.weights[0] for layer in passed.blocks]),
        scores[0].argmax(axis=-1),
        parameters if step == settings.steps else None,
    )


def _keep_memory() -> None:
    """Let the C library keep freed memory for the next step instead of returning it to the system after each one.

    glibc takes the size of the largest block that was ever freed as the measure of what to keep. Without this a step
    spends a third of its time on getting its memory back, page by page. Elsewhere it does nothing.
    """
    np.empty(2**24, dtype=np.uint8)  # 16 MB, never touched and freed at once


# --- what was learned ------------------------------------------------------------------------------------------------


def examples(settings: Settings) -> Batch:
    """The sequences that a run is judged by, and never trains on; the first is the one whose maps are kept.

    They depend on the task alone, so that all runs of a task are judged by, and show, the same ones. Read-only.
    """
    return _examples(checked(settings).task)


@lru_cache(maxsize=8)  # 256 sequences of up to 16 letters for each task, 0.3 MB for all three
def _examples(task: str) -> Batch:
    batch = draw(TASKS[task], EXAMPLES, np.random.default_rng(_EXAMPLES))
    for array in vars(batch).values():
        array.flags.writeable = False
    return batch


def most_frequent(batch: Batch, task: Task) -> tuple[float, ...]:
    """The share of right answers to each question for who always names the letter that a position sees most often.

    That takes neither order nor marks. Of letters that are as frequent it names the first one of the alphabet.
    """
    once = np.eye(task.letters, dtype=int)[batch.letters]  # (b, n, letters)
    seen = once.cumsum(axis=1) if task.causal else once.sum(axis=1, keepdims=True)
    asked = batch.answers >= 0
    right = asked & (batch.answers == seen.argmax(axis=-1)[..., np.newaxis])
    return tuple((right.sum(axis=(0, 1)) / asked.sum(axis=(0, 1))).tolist())


def accuracies(scores: Array, batch: Batch) -> tuple[float, ...]:
    """The share of right answers to each question, among those that are asked.

    Args:
        scores: (b, n, questions, letters), the highest of which is the answer.
    """
    right, asked = scores.argmax(axis=-1) == batch.answers, batch.answers >= 0
    return tuple(float(right[..., q][asked[..., q]].mean()) for q in range(asked.shape[-1]))


def readings(parameters: Parameters, settings: Settings) -> list[Reading]:
    """How much of each head's weight lies where the answers stand, on the previous letter, and on the letter itself.

    Means over all letters of `examples` for which there is such a place. One place may be of two kinds: the marked
    letter is sometimes the previous one, and counts as both.
    """
    judged = examples(settings)
    _, passed = forward(parameters, judged, settings)
    return looked_at(passed, judged, TASKS[settings.task])


def looked_at(passed: Pass, judged: Batch, task: Task) -> list[Reading]:
    """As `readings`, of a forward pass over these sequences, in which each kind of place must occur."""
    here = np.broadcast_to(np.arange(task.seq_len), judged.letters.shape)
    places = {name: judged.sources[..., q] for q, name in enumerate(task.questions)}  # (b, n) each, -1 where none
    places = {"previous": here - 1, **places, "itself": here}
    found = []
    for layer, passed_block in enumerate(passed.blocks):
        weights = passed_block.multi_head.heads.weights  # (b, heads, n, n)
        for head in range(weights.shape[1]):
            on = {name: _share(weights[:, head], place) for name, place in places.items()}
            found.append(Reading(layer, head, on))
    return found


def _share(weights: Array, places: Array) -> float:
    """Mean weight (b, n, n) on one place per row (b, n), over the rows that have one."""
    on_place = np.take_along_axis(weights, np.maximum(places, 0)[..., np.newaxis], axis=-1)[..., 0]
    return float(on_place[places >= 0].mean())


# --- the command line ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What changing one thing in the default run does: `limit` bounds the accuracies of `questions`."""

    name: str
    settings: Settings
    questions: tuple[str, ...]
    at_least: bool
    limit: float

    def holds(self, found: Mapping[str, float]) -> bool:
        """Whether it holds for the accuracies of one run, by question."""
        return all((found[q] >= self.limit) if self.at_least else (found[q] <= self.limit) for q in self.questions)

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{self.name}: {' and '.join(self.questions)} {sign} {self.limit:.0%}"


CLAIMS = (
    Claim("two heads", Settings(), ("previous", "marked"), True, 0.99),
    Claim("one head", Settings(heads=1), ("previous",), False, 0.35),
    Claim("two heads, no positional encoding", Settings(encoding="none"), ("previous",), False, 0.35),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and print a table: `python -m core.training --help`."""
    options = _parser().parse_args(arguments)
    try:
        if options.claims:
            _print_claims(options.seed or range(5))
        else:
            runs = [replace(_settings(options), seed=seed) for seed in options.seed or [0]]
            _print_header(runs[0])
            for settings in runs:
                _print_run(settings)
    except ValueError as error:
        raise SystemExit(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    default = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m core.training",
        description="Train a small transformer, and print the accuracy of each answer and what each head looks at.",
        epilog="Heads, layers, encoding and steps are those with which the task is learned, unless given.",
    )
    add = parser.add_argument
    add("--claims", action="store_true", help="two heads, one head, and no positional encoding, for seeds 0 to 4")
    add("--task", choices=TASKS, default=default.task)
    add("--heads", type=int)
    add("--layers", type=int)
    add("--d-model", type=int, default=default.d_model)
    add("--encoding", choices=ENCODINGS, help="the positional encoding")
    add("--no-residual", action="store_true", help="without residual connections")
    add("--no-norm", action="store_true", help="without LayerNorm")
    add("--learning-rate", type=float, default=default.learning_rate)
    add("--steps", type=int)
    add("--seed", type=int, nargs="+", help="one run for each")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    chosen = {name: getattr(options, name) for name in ("heads", "layers", "encoding", "steps")}
    return replace(
        suggested(options.task),
        **{name: value for name, value in chosen.items() if value is not None},
        d_model=options.d_model,
        residual=not options.no_residual,
        norm=not options.no_norm,
        learning_rate=options.learning_rate,
    )


def _print_claims(seeds: Sequence[int]) -> None:
    for claim in CLAIMS:
        print(f"Claim: {claim}\n")
        _print_header(claim.settings)
        found = [_print_run(replace(claim.settings, seed=seed)) for seed in seeds]
        print(f"\nholds for {sum(claim.holds(each) for each in found)} of {len(found)} seeds\n", flush=True)


def _print_header(settings: Settings) -> None:
    questions = TASKS[settings.task].questions
    kinds = ["previous", *(q for q in questions if q != "previous"), "itself"]
    width = _width(questions)
    print(
        f"{'':>4}{'right answers':>{width * len(questions)}}  {'':>6}{'weight of each head on':>{width * len(kinds)}}"
    )
    print(
        f"{'seed':>4}",
        *(f"{q:>{width}}" for q in questions),
        "  ",
        f"{'head':>6}",
        *(f"{k:>{width}}" for k in kinds),
        sep="",
    )


def _print_run(settings: Settings) -> dict[str, float]:
    """Train, print one line for each head, named layer.head, and return the accuracies by question."""
    *_, last = train(settings, every=settings.steps)
    assert last.accuracies is not None
    assert last.parameters is not None
    found = dict(zip(TASKS[settings.task].questions, last.accuracies, strict=True))
    width = _width(found)
    start = f"{settings.seed:>4}" + "".join(f"{share:>{width}.1%}" for share in found.values())
    for reading in readings(last.parameters, settings):
        head = f"{reading.layer + 1}.{reading.head + 1}"
        print(start, f"  {head:>6}", *(f"{share:>{width}.2f}" for share in reading.on.values()), sep="", flush=True)
        start = " " * len(start)
    return found


def _width(questions: Iterable[str]) -> int:
    """Of a column, so that every name fits."""
    return max(11, 2 + max(map(len, questions)))


if __name__ == "__main__":
    main()
