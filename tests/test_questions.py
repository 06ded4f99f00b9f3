"""The questions over the whole range of settings: what is right can be answered, and its reason names the numbers.

Answers are compared with rules that hold by themselves (which rows a mask leaves alone, what a formula counts), and
with another computation of the same thing, never with what the question gave last time.
"""

import random
import re
import time
from typing import Any

import numpy as np
import pytest

from core import block, draws, gradients, recurrence
from core.checks import Array
from core.tasks import TASKS
from tests.asking import ASK, kind_of, layer_of, of, random_settings, tokens_of
from tests.pages.charts import array
from ui import page_controls, predict
from ui.control_kinds import Control
from ui.link import resolve
from ui.predict import Cell, Choice, Number, Question

SETTINGS_PER_PAGE = 60


# --- the sweep ------------------------------------------------------------------------------------------------------


def legal(question: Question, answer: Any) -> bool:
    """Whether the form of a question can give this answer."""
    match question:
        case Choice():
            return answer in range(len(question.options))
        case Cell():
            return answer[0] in range(len(question.rows)) and answer[1] in range(len(question.columns))
        case Number():
            return bool(np.isfinite(answer)) and round(answer, question.decimals) == answer
    return False


def numbers_in(text: str) -> list[str]:
    return re.findall(r"\d", text)


@pytest.mark.parametrize("page", ASK)
def test_every_question_has_an_answer_at_every_setting(page: str) -> None:
    rng, slowest, asked = random.Random(f"questions of {page}"), 0.0, set()
    controls = [control for control in page_controls.CONTROLS[page] if isinstance(control, Control)]
    for _ in range(SETTINGS_PER_PAGE):
        settings = random_settings(page, rng)
        questions = ASK[page](settings)
        assert len(questions) == predict.QUESTIONS
        asked.add(tuple(question.name for question in questions))
        for question in questions:
            began = time.perf_counter()
            solution = question.solve()
            slowest = max(slowest, time.perf_counter() - began)
            told = (page, settings.values, question.name, solution)
            assert solution.right, told
            assert all(legal(question, answer) for answer in solution.right), told
            assert question.accepts(solution.right[0], solution), told
            assert numbers_in(solution.reason), told
            assert not re.search(r"\b(nan|inf)\b", question.asks + solution.reason), told
            spoken = question.asks + solution.reason + (question.given_alt or "")
            assert not re.search(r"(?<!\w)-\d", spoken), told  # a minus sign is no hyphen
            if question.shows:
                shown = resolve(controls, {**settings.wanted, **question.shows})
                assert {name: shown.values[name] for name in question.shows} == dict(question.shows), told
    assert len(asked) == 1  # the names are the same at all settings: progress is counted by them
    assert slowest < 2


def test_all_three_kinds_occur() -> None:
    kinds = {type(question) for page, ask in ASK.items() for question in ask(of(page))}

    assert kinds == {Choice, Number, Cell}


# --- the answers, compared ------------------------------------------------------------------------------------------


def asked(page: str, name: str, **chosen: Any) -> Question:
    """One question of a page at some settings."""
    return next(question for question in ASK[page](of(page, **chosen)) if question.name == name)


def right(page: str, name: str, **chosen: Any) -> Any:
    """The best answer to it."""
    return asked(page, name, **chosen).solve().right[0]


def softmax(scores: Array) -> Array:
    """By hand, hidden cells (NaN) aside."""
    exponentials = np.where(np.isnan(scores), 0, np.exp(scores))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def maps_of(question: Question) -> list[Array]:
    """The numbers of the figure that belongs to a question."""
    assert question.given is not None
    return [array(trace["z"]) for trace in question.given.to_plotly_json()["data"]]


@pytest.mark.parametrize("n", [2, 12, 256])
def test_recurrence_writing_goes_token_by_token(n: int) -> None:
    assert right("recurrence", "writing", seq_len=n) == 2 * n


@pytest.mark.parametrize(("n", "d"), [(2, 128), (12, 8), (256, 4)])
def test_recurrence_a_text_twice_as_long(n: int, d: int) -> None:
    def cost(length: int) -> int:  # Q, K, V and the output projection; scores and weighted sum
        return 4 * length * d * d + 2 * length * length * d

    assert right("recurrence", "longer", seq_len=n, d_model=d) == round(cost(2 * n) / cost(n), 1)


@pytest.mark.parametrize(("gain", "other"), [(1.0, 0.5), (0.3, 1.0), (2.5, 0.5)])
def test_recurrence_reach_against_small_changes_of_the_first_token(gain: float, other: float) -> None:
    x = draws.tokens(6, 4, 0)

    def reach(size: float) -> float:
        w_x, w_h = draws.recurrent_weights(4, 0, size)
        moved = np.zeros((4, 4))
        for i in range(4):
            step = np.zeros_like(x)
            step[0, i] = 1e-5
            ends = [recurrence.rnn(each, w_x, w_h)[-1] for each in (x + step, x - step)]
            moved[i] = (ends[0] - ends[1]) / 2e-5
        return float(np.linalg.norm(moved))

    ratio = reach(other) / reach(gain)
    expected = 0 if ratio < 0.01 else 1 if ratio < 1 else 3 if ratio < 100 else 4
    assert right("recurrence", "gain", seq_len=6, d_model=4, gain=gain) == expected


def test_recurrence_a_single_token_has_no_way_back() -> None:
    question = asked("recurrence", "gain", sentence="dog")

    assert question.say(question.solve().right[0]) == "It stays as it is"


@pytest.mark.parametrize(
    ("chosen", "bits"),
    [
        ({}, -1),
        ({"d_model": 64, "scaling": False}, 0),  # no row can be sharper than these
        ({"d_model": 64, "weight_scale": 0.1}, -1),
        ({"padding": 5}, 0),
        ({"padding": 4}, 0),
        ({"sentence": "dog dog"}, 0),
        ({"d_model": 2, "temperature": 0.1, "weight_scale": 1.0, "seq_len": 2, "seed": 3}, None),
    ],
)
def test_self_attention_twice_as_wide_without_scaling(chosen: dict[str, Any], bits: int | None) -> None:
    settings = of("self_attention", **chosen)
    d, n = settings.d_model, settings.n_tokens

    def entropy(width: int, divisor: float) -> float:
        x = (
            draws.words(settings.tokens, width, settings.seed)
            if settings.tokens
            else draws.tokens(n, width, settings.seed)
        )
        w = draws.attention_weights(width, settings.seed, settings.weight_scale)
        scores = (x @ w.w_q) @ (x @ w.w_k).T / divisor / settings.temperature
        shares = softmax(scores[:, : n - settings.padding]) if settings.padding < n else np.ones((n, 1))
        return float(-(shares * np.log2(np.maximum(shares, 1e-300))).sum(axis=1).mean())

    change = entropy(2 * d, 1) - entropy(d, np.sqrt(d) if settings.scaling else 1)
    expected = 0 if change < -0.01 else 2 if change > 0.01 else 1
    assert right("self_attention", "wider", **chosen) == expected
    assert bits is None or bits + 1 == expected


@pytest.mark.parametrize(("scaling", "causes"), [(True, 3), (False, 2)])
def test_self_attention_all_causes_of_wider_scores_are_named(scaling: bool, causes: int) -> None:
    now = 16
    reason = asked("self_attention", "wider", d_model=now, scaling=scaling, seq_len=64).solve().reason
    before, after = (float(value) for value in re.findall(r"deviation of ([\d.]+) now and ([\d.]+) then", reason)[0])
    products, factors, divisor = np.sqrt(2), 2, np.sqrt(now) if scaling else 1

    assert after / before == pytest.approx(products * factors * divisor, rel=0.25)
    assert ("three reasons" if causes == 3 else "two reasons") in reason
    assert ("a score is no longer divided by √d_k" in reason) == scaling


@pytest.mark.parametrize(
    "chosen", [{}, {"causal": True}, {"seed": 9999}, {"cross": True}, {"seq_len": 64, "padding": 64}]
)
def test_self_attention_the_largest_weight_follows_from_the_scores_shown(chosen: dict[str, Any]) -> None:
    question = asked("self_attention", "largest", **chosen)
    (scores,) = maps_of(question)
    weights = softmax(scores)

    assert question.solve().right[0] == divmod(int(weights.argmax()), weights.shape[1])
    assert weights.shape <= (6, 6)


def test_self_attention_the_largest_weight_does_not_stand_at_the_largest_score() -> None:
    scores = maps_of(asked("self_attention", "largest"))[0]

    assert right("self_attention", "largest") != divmod(int(scores.argmax()), 5)


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [
        ({}, 2),
        ({"seq_len": 64}, 2),
        ({"causal": True, "seq_len": 9}, 9),  # row 1 sees another token, and so does every row before the last
        ({"padding": 1, "seq_len": 9}, 9),  # the token that was hidden is seen by all, and the first one by none
        ({"padding": 5}, 0),
        ({"cross": True}, 2),
        ({"sentence": "dog"}, 0),
        ({"sentence": "the dog saw the"}, 0),
    ],
)
def test_self_attention_rows_that_a_swap_changes(chosen: dict[str, Any], rows: int) -> None:
    assert right("self_attention", "swap", **chosen) == rows


@pytest.mark.parametrize(
    ("chosen", "tokens"),
    [
        ({"scheme": "none"}, 0),
        ({}, 20),
        ({"scheme": "table"}, 20),
        ({"scheme": "rope", "seq_len": 7}, 7),
        ({"scheme": "alibi", "seq_len": 7}, 6),  # the one in the middle is as far from both
        ({"scheme": "alibi", "seq_len": 8}, 8),
        ({"scheme": "alibi", "sentence": "dog bites man"}, 0),
        ({"scheme": "alibi", "sentence": "dog bites man", "causal": True}, 3),
        ({"sentence": "dog"}, 0),
        ({"sentence": "the dog saw the"}, 2),  # the text is the same, and those two have changed roles
        ({"sentence": "the dog saw the", "scheme": "none"}, 0),
    ],
)
def test_positional_encoding_tokens_that_a_swap_changes(chosen: dict[str, Any], tokens: int) -> None:
    assert right("positional_encoding", "swap", **chosen) == tokens


@pytest.mark.parametrize(
    ("chosen", "place"),
    [({}, 0), ({"scheme": "none"}, 0), ({"scheme": "rope"}, 0), ({"scheme": "alibi"}, 0), ({"scheme": "table"}, 3)],
)
def test_positional_encoding_far_positions(chosen: dict[str, Any], place: int) -> None:
    assert right("positional_encoding", "far", **chosen) == place


@pytest.mark.parametrize("d", [3, 5, 9, 127])
def test_positional_encoding_the_last_sine_of_an_odd_width_has_no_partner(d: int) -> None:
    frequency = 10000 ** (-(d - 1) / d)
    change = np.sin(1000 * frequency) * np.sin(1003 * frequency)  # at positions 0 and 3 it is 0

    assert right("positional_encoding", "far", d_model=d) == (2 if change > 0 else 1)


@pytest.mark.parametrize(("now", "then"), [(1.0, 5.0), (5.0, 0.1), (0.1, 5.0)])
def test_positional_encoding_positions_found_one_by_one(now: float, then: float) -> None:
    x, angles = draws.tokens(20, 16, 0), np.arange(20)[:, None] / 10000 ** (np.arange(0, 16, 2) / 16)
    encoding = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(20, 16)

    def found(scale: float) -> int:
        seen = scale * x + encoding
        return sum(int(np.linalg.norm(encoding - seen[i], axis=1).argmin()) == i for i in range(20))

    expected = 1 + int(np.sign(found(then) - found(now)))
    assert right("positional_encoding", "louder", embedding_scale=now) == expected


@pytest.mark.parametrize(
    ("chosen", "d_k"), [({}, 4), ({"d_model": 64, "heads": 64}, 1), ({"heads_from": "trained"}, 16)]
)
def test_multi_head_attention_one_more_head(chosen: dict[str, Any], d_k: int) -> None:
    settings = of("multi_head_attention", **chosen)
    d_model = layer_of(settings)[0].x.shape[1]

    assert right("multi_head_attention", "one_more", **chosen) == 4 * d_model * d_k


@pytest.mark.parametrize("chosen", [{}, {"heads": 1, "seed": 9999}, {"heads_from": "trained"}, {"sentence": "dog"}])
def test_multi_head_attention_the_largest_mean_follows_from_the_maps_shown(chosen: dict[str, Any]) -> None:
    question = asked("multi_head_attention", "mean", **chosen)
    mean = np.mean(maps_of(question), axis=0)

    assert divmod(int(mean.argmax()), mean.shape[1]) in question.solve().right


def test_multi_head_attention_the_mean_is_largest_where_neither_head_is() -> None:
    heads = maps_of(asked("multi_head_attention", "mean"))

    assert right("multi_head_attention", "mean") not in [divmod(int(head.argmax()), 4) for head in heads]


@pytest.mark.parametrize("chosen", [{}, {"heads": 1}, {"heads_from": "built by hand"}, {"heads_from": "trained"}])
def test_multi_head_attention_a_head_reaches_every_dimension(chosen: dict[str, Any]) -> None:
    assert right("multi_head_attention", "off", **chosen) == 2


@pytest.mark.parametrize(("d", "d_ff"), [(4, 4), (8, 16), (64, 256)])
def test_transformer_block_one_more_unit(d: int, d_ff: int) -> None:
    grown = block.block_parameters(d, d_ff + 1) - block.block_parameters(d, d_ff)

    assert right("transformer_block", "one_more_unit", d_model=d, d_ff=d_ff) == grown == 2 * d + 1


@pytest.mark.parametrize(
    "chosen", [{}, {"norm": False}, {"residual": False}, {"order": "pre-norm", "weight_scale": 0.6}]
)
def test_transformer_block_the_gradient_against_small_changes_of_the_input(chosen: dict[str, Any]) -> None:
    chosen = {**chosen, "seq_len": 2, "d_model": 4, "d_ff": 4}
    settings = of("transformer_block", **chosen)
    kind, x = kind_of(settings), tokens_of(settings)
    other = block.Settings(**{**vars(kind), "residual": not kind.residual})
    weights = [draws.block_weights(4, 4, 0, settings.weight_scale, block=i) for i in range(12)]
    direction = gradients.unit_direction(2, 4, 0)

    def loss(inputs: Array) -> float:
        *_, last = block.stack(inputs, weights, other)
        return float((block.final_norm(last.output, other) * direction).sum())

    step, slopes = 1e-6, np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        moved = np.zeros_like(x)
        moved[place] = step
        slopes[place] = (loss(x + moved) - loss(x - moved)) / (2 * step)
    length = float(np.linalg.norm(slopes))
    expected = int(np.searchsorted([1e-3, 0.5, 2.0], length))
    assert right("transformer_block", "way_back", **chosen) == expected


@pytest.mark.parametrize(
    ("chosen", "tokens"),
    [({}, 5), ({"seq_len": 64}, 64), ({"causal": True}, 1), ({"sentence": "dog"}, 1), ({"residual": False}, 5)],
)
def test_transformer_block_tokens_that_one_token_reaches(chosen: dict[str, Any], tokens: int) -> None:
    assert right("transformer_block", "one_token", **chosen) == tokens


@pytest.mark.parametrize(("d", "layers"), [(8, 1), (32, 3), (64, 2)])
def test_training_lab_twice_as_wide(d: int, layers: int) -> None:
    def count(width: int) -> int:  # letters and marks, output, and in each layer 12 d² + 5 d
        return 14 * width + 24 * width + 24 + layers * (12 * width**2 + 5 * width)

    assert right("training_lab", "wider", d_model=d, layers=layers) == round(count(2 * d) / count(d), 1)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("seed", [0, 1, 9999])
def test_training_lab_where_a_head_has_to_look(task: str, seed: int) -> None:
    question = asked("training_lab", "where", task=task, seed=seed)
    assert isinstance(question, Choice)
    letters = [name.split()[1] for name in question.options]
    found = re.search(r"“(.*?)” at (\d+) ", question.asks)
    assert found is not None
    at = int(found[2]) - 1
    marked = re.search(r"The marked letter is (\d+)", question.asks)
    expected = {
        "previous": at - 1,
        "marked": int(marked[1]) - 1 if marked else -1,
        "mirrored": len(letters) - 1 - at,
        "after the last time": max((i + 1 for i in range(at) if letters[i] == letters[at]), default=-1),
    }[found[1]]
    assert question.solve().right == (expected,)


@pytest.mark.parametrize(
    ("chosen", "letters"),
    [
        ({}, 0),  # taken away
        ({"layers": 3, "residual": False, "norm": False}, 0),
        ({"encoding": "none"}, 12),  # put in
        ({"task": "induction", "encoding": "learned"}, 2),  # under the mask those two see others before them
        ({"task": "induction", "encoding": "learned", "layers": 2}, 16),  # and a second layer passes it on
    ],
)
def test_training_lab_letters_whose_scores_a_swap_changes(chosen: dict[str, Any], letters: int) -> None:
    assert right("training_lab", "order", **chosen) == letters
