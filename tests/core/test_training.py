"""The training lab: its tasks ask what they say, its runs repeat to the last digit, and they learn."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from core import draws, tasks, training
from core.block import Settings as BlockSettings
from core.block import stack
from core.draws import AttentionWeights, FeedForwardWeights
from core.multi_head import head_statistics
from core.positional import sinusoidal
from core.tasks import NOT_ASKED, TASKS, Batch, ask, draw
from core.training import Progress, Settings, by_name, forward, initial, loss_and_gradient, train

Refusal = Callable[[Callable[[], object]], str]

SHORT = Settings(d_model=8, steps=12, batch=8)


def batch_of(task: str, size: int = 50, seed: int = 0) -> Batch:
    return draw(TASKS[task], size, np.random.default_rng(seed))


def run(settings: Settings, every: int = 10) -> list[Progress]:
    return list(train(settings, every))


# --- the tasks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_a_batch_holds_what_it_says(name: str) -> None:
    task, batch = TASKS[name], batch_of(name)
    assert batch.letters.shape == batch.marks.shape == (50, task.seq_len)
    assert batch.answers.shape == batch.sources.shape == (50, task.seq_len, len(task.questions))
    assert set(np.unique(batch.letters)) == set(range(task.letters))
    assert (batch.marks.sum(axis=1) == (1 if task.marked else 0)).all()
    for sequence, place, question in np.ndindex(batch.answers.shape):
        source = batch.sources[sequence, place, question]
        expected = NOT_ASKED if source < 0 else batch.letters[sequence, source]
        assert batch.answers[sequence, place, question] == expected


def test_two_questions_at_once() -> None:
    batch = batch_of("two questions at once")
    for letters, marks, answers in zip(batch.letters, batch.marks, batch.answers, strict=True):
        assert answers[:, 0].tolist() == [NOT_ASKED, *letters[:-1]]
        assert set(answers[:, 1]) == {letters[marks].item()}


def test_marks_fall_everywhere() -> None:
    assert batch_of("two questions at once", 500).marks.any(axis=0).all()


def test_reverse() -> None:
    batch = batch_of("reverse")
    np.testing.assert_array_equal(batch.answers[:, :, 0], batch.letters[:, ::-1])


def test_induction() -> None:
    batch = batch_of("induction")
    for letters, answers in zip(batch.letters.tolist(), batch.answers[:, :, 0].tolist(), strict=True):
        for place, letter in enumerate(letters):
            earlier = [other for other in range(place) if letters[other] == letter]
            assert answers[place] == (letters[earlier[-1] + 1] if earlier else NOT_ASKED)


def test_induction_written_out() -> None:
    letters = np.array([[3, 1, 3, 1, 1, 2, 3]])
    batch = ask(TASKS["induction"], letters, np.zeros_like(letters, dtype=bool))
    assert batch.answers[0, :, 0].tolist() == [-1, -1, 1, 3, 1, -1, 1]
    assert batch.sources[0, :, 0].tolist() == [-1, -1, 1, 2, 4, -1, 3]


@pytest.mark.parametrize("name", TASKS)
def test_no_question_looks_ahead_under_a_causal_mask(name: str) -> None:
    if TASKS[name].causal:
        assert (batch_of(name).sources[:, :, 0] <= np.arange(TASKS[name].seq_len)).all()


def test_the_same_seed_draws_the_same_batch() -> None:
    one, other, third = (batch_of("two questions at once", seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.letters, other.letters)
    np.testing.assert_array_equal(one.marks, other.marks)
    assert (one.letters != third.letters).any()


# --- the model -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        replace(SHORT, encoding="learned"),
        replace(SHORT, heads=1, encoding="none"),
        replace(SHORT, layers=2, residual=False),
        replace(SHORT, layers=2, norm=False),
        replace(SHORT, task="reverse", encoding="learned"),
        replace(SHORT, task="induction", layers=2),
    ],
    ids=str,
)
def test_gradient_of_the_whole_model(settings: Settings) -> None:
    """Central differences along random directions, in float64."""
    vector, batch = initial(settings, np.float64), batch_of(settings.task, 6)
    _, gradient = loss_and_gradient(vector, batch, settings)
    assert gradient.shape == vector.shape
    generator = np.random.default_rng(0)
    for _ in range(5):
        along = generator.standard_normal(vector.shape)
        step = 1e-5 / np.linalg.norm(along)
        there, back = (loss_and_gradient(vector + sign * step * along, batch, settings)[0] for sign in (1, -1))
        assert gradient @ along == pytest.approx((there - back) / (2 * step), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "settings",
    [replace(SHORT, layers=2), replace(SHORT, encoding="learned"), replace(SHORT, task="induction")],
    ids=str,
)
def test_every_weight_has_its_own_gradient(settings: Settings) -> None:
    """Weight by weight, named: one that is left out or exchanged would show."""
    vector, batch = initial(settings, np.float64), batch_of(settings.task, 6)
    arrived = by_name(loss_and_gradient(vector, batch, settings)[1], settings)
    for name, weights in by_name(vector, settings).items():
        place = np.unravel_index(np.abs(arrived[name]).argmax(), weights.shape)
        found, before = [], weights[place]
        for sign in (1, -1):
            weights[place] = before + sign * 1e-5  # a view of the vector
            found.append(loss_and_gradient(vector, batch, settings)[0])
        weights[place] = before
        assert arrived[name][place] == pytest.approx((found[0] - found[1]) / 2e-5, rel=1e-6), name


@pytest.mark.parametrize("task", TASKS)
def test_the_model_is_a_stack_of_the_blocks_shown(task: str) -> None:
    settings = Settings(task=task, layers=2, d_model=8)
    weights, batch = by_name(initial(settings, np.float64), settings), batch_of(task, 3)
    scores, _ = forward(weights, batch, settings)
    blocks = []
    for layer in range(2):
        w_q, w_k, w_v = np.split(weights[f"{layer}.w_qkv"], 3, axis=1)
        feed = (weights[f"{layer}.{name}"] for name in ("w_1", "b_1", "w_2", "b_2"))
        blocks.append((AttentionWeights(w_q, w_k, w_v, weights[f"{layer}.w_o"]), FeedForwardWeights(*feed)))
    shown = BlockSettings(heads=2, output_projection=True, causal=TASKS[task].causal)
    for letters, marks, found in zip(batch.letters, batch.marks, scores, strict=True):
        x = weights["letters"][letters] + sinusoidal(len(letters), 8)
        if TASKS[task].marked:
            x += np.where(marks[:, np.newaxis], weights["marks"][1], weights["marks"][0])
        *_, last = stack(x, blocks, shown)
        expected = last.output @ weights["w_out"] + weights["b_out"]
        np.testing.assert_allclose(found.reshape(len(letters), -1), expected, rtol=1e-9, atol=1e-10)


def test_weights_start_as_pytorch_starts_them() -> None:
    settings = Settings(d_model=64, encoding="learned")
    weights = by_name(initial(settings), settings)
    for name in ("letters", "marks", "positions"):
        assert weights[name].std() == pytest.approx(1, rel=0.15)
    for name, inputs in (("0.w_qkv", 64), ("0.w_o", 64), ("0.w_1", 64), ("0.b_1", 64), ("0.w_2", 256), ("0.b_2", 256)):
        largest = float(np.abs(weights[name]).max())
        assert 0.9 / np.sqrt(inputs) < largest <= 1 / np.sqrt(inputs) * (1 + 1e-6), name


def test_runs_that_differ_in_one_thing_start_with_the_same_weights() -> None:
    plain = by_name(initial(SHORT), SHORT)
    for changed in ({"encoding": "learned"}, {"heads": 1}, {"residual": False}, {"norm": False}, {"encoding": "none"}):
        settings = replace(SHORT, **changed)
        weights = by_name(initial(settings), settings)
        for name, expected in plain.items():
            np.testing.assert_array_equal(weights[name], expected)


# --- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_the_same_settings_give_the_same_run_to_the_last_digit(task: str) -> None:
    settings = replace(SHORT, task=task, layers=2, encoding="learned")
    for one, other in zip(run(settings), run(settings), strict=True):
        assert (one.step, one.loss, one.accuracies) == (other.step, other.loss, other.accuracies)
    assert one.parameters is not None
    assert other.parameters is not None
    for name, weights in one.parameters.items():
        np.testing.assert_array_equal(weights, other.parameters[name])
    assert one.maps is not None
    np.testing.assert_array_equal(one.maps, other.maps)


def test_two_runs_in_turns_do_not_disturb_each_other() -> None:
    alone = [each.loss for each in run(SHORT)]
    in_turns = [(one.loss, other.loss) for one, other in zip(train(SHORT), train(SHORT), strict=True)]
    assert in_turns == [(loss, loss) for loss in alone]


def test_another_seed_gives_another_run() -> None:
    assert run(SHORT)[-1].loss != run(replace(SHORT, seed=1))[-1].loss


def test_reading_changes_nothing() -> None:
    assert [each.loss for each in run(SHORT, every=1)] == [each.loss for each in run(SHORT, every=100)]


def test_progress() -> None:
    found = run(SHORT, every=5)
    assert [each.step for each in found] == list(range(13))
    assert [each.step for each in found if each.accuracies] == [0, 5, 10, 12]
    for each in found:
        assert (each.maps is None) == (each.accuracies is None)
        assert (each.parameters is not None) == (each.step == 12)
        if each.maps is not None and each.accuracies is not None:
            assert each.maps.shape == (1, 2, 12, 12)
            np.testing.assert_allclose(each.maps.sum(axis=-1), 1, rtol=1e-5)
            assert len(each.accuracies) == 2
            assert all(0 <= share <= 1 for share in each.accuracies)


def test_the_last_progress_reads_the_trained_weights() -> None:
    settings = replace(SHORT, layers=2)
    last = run(settings)[-1]
    assert last.parameters is not None
    assert last.readings == tuple(training.readings(last.parameters, settings))
    judged = training.examples(settings)
    scores, passed = forward(last.parameters, judged, settings)
    assert last.accuracies == training.accuracies(scores, judged)
    np.testing.assert_array_equal(last.maps, [each.multi_head.heads.weights[0] for each in passed.blocks])
    np.testing.assert_array_equal(last.answers, scores[0].argmax(axis=-1))


def test_everything_is_float32() -> None:
    last = run(SHORT)[-1]
    assert last.parameters is not None
    assert last.maps is not None
    assert {array.dtype for array in (last.maps, *last.parameters.values())} == {np.dtype(np.float32)}


def test_before_training_the_loss_is_that_of_guessing() -> None:
    assert run(Settings(steps=1))[0].loss == pytest.approx(np.log(12), rel=0.15)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("changed", [{}, {"encoding": "none"}, {"residual": False}, {"norm": False}], ids=str)
def test_some_steps_lower_the_loss(task: str, changed: dict) -> None:
    losses = [each.loss for each in run(replace(training.suggested(task), steps=40, **changed), every=100)]
    assert np.mean(losses[-5:]) < 0.95 * losses[0]


def test_the_default_run_answers_both_questions_with_two_heads_that_share_the_work() -> None:
    settings = Settings()
    *_, last = train(settings, every=400)
    assert last.accuracies is not None
    assert last.parameters is not None
    assert min(last.accuracies) >= 0.99
    on = [reading.on for reading in training.readings(last.parameters, settings)]
    for_marked = int(np.argmax([head["marked"] for head in on]))
    assert on[for_marked]["marked"] > 0.8
    other = on[1 - for_marked]
    assert other["previous"] > 0.4
    assert max(other, key=lambda kind: other[kind]) == "previous"


def test_readings_are_the_shares_shown_elsewhere() -> None:
    """On the previous letter and on itself, as `head_statistics` has them, over all sequences."""
    settings = replace(SHORT, layers=2)
    weights, judged = by_name(initial(settings), settings), training.examples(settings)
    _, passed = forward(weights, judged, settings)
    for reading in training.readings(weights, settings):
        maps = passed.blocks[reading.layer].multi_head.heads.weights[:, reading.head]  # (b, n, n)
        shown = head_statistics(maps)  # a sequence in the place of a head
        assert reading.on["previous"] == pytest.approx(shown.on_previous.mean(), rel=1e-5)
        assert reading.on["itself"] == pytest.approx(shown.on_itself.mean(), rel=1e-5)
        marked = np.mean([each[:, place].mean() for each, place in zip(maps, judged.marks.argmax(axis=1), strict=True)])
        assert reading.on["marked"] == pytest.approx(marked, rel=1e-5)
    assert [(each.layer, each.head) for each in training.readings(weights, settings)] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_accuracy_counts_only_what_is_asked() -> None:
    batch = ask(TASKS["induction"], np.array([[0, 1, 0, 2]]), np.zeros((1, 4), dtype=bool))
    scores = np.zeros((1, 4, 1, 12))
    scores[0, 2, 0, 1] = 1
    assert training.accuracies(scores, batch) == (1.0,)
    scores[0, 2, 0, 5] = 2
    assert training.accuracies(scores, batch) == (0.0,)


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_learning_rate(refusal: Refusal) -> None:
    sentence = refusal(lambda: run(Settings(norm=False, layers=2, learning_rate=1e9, steps=20)))
    assert "learning rate 1e+09" in sentence
    assert "The loss is no finite number after step 1: " in sentence


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(task="sorting"), "sorting is none of the tasks two questions at once, reverse, induction"),
        (Settings(encoding="rope"), "rope is none of the encodings none, sinusoidal, learned"),
        (Settings(heads=5), "d_model 32 is not divisible by 5 heads"),
        (Settings(layers=0), "layers must be a whole number of at least 1, not 0"),
        (Settings(steps=0), "steps must be a whole number of at least 1, not 0"),
        (Settings(batch=0), "batch must be a whole number of at least 1, not 0"),
        (Settings(learning_rate=0.0), "learning_rate must be a finite number above 0, not 0.0"),
        (Settings(learning_rate=float("nan")), "learning_rate must be a finite number, not nan"),
        (Settings(seed=-1), "the seed must be a whole number of at least 0, not -1"),
        (Settings(seed=draws.HIGHEST_SEED + 1), "the seed must be at most 4294967295"),
    ],
)
def test_refuses(settings: Settings, words: str, refusal: Refusal) -> None:
    assert words in refusal(lambda: next(train(settings)))


def test_refuses_sizes(refusal: Refusal) -> None:
    assert "the number of sequences" in refusal(lambda: tasks.draw(TASKS["reverse"], 0, np.random.default_rng(0)))
    assert "every must be" in refusal(lambda: next(train(SHORT, every=0)))


# --- the command line ------------------------------------------------------------------------------------------------


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    training.main(["--d-model", "8", "--steps", "3", "--seed", "0", "4"])
    title, names, *rows = capsys.readouterr().out.splitlines()
    assert "right answers" in title
    assert names.split() == ["seed", "previous", "marked", "head", "previous", "marked", "itself"]
    assert [row.split()[0] for row in rows] == ["0", "1.2", "4", "1.2"]


def test_command_line_takes_what_a_task_needs(capsys: pytest.CaptureFixture[str]) -> None:
    training.main(["--task", "induction", "--steps", "2"])
    assert [row.split()[-4] for row in capsys.readouterr().out.splitlines()[2:]] == ["1.1", "2.1"]


def test_command_line_says_what_is_wrong() -> None:
    with pytest.raises(SystemExit, match="d_model 32 is not divisible by 5 heads"):
        training.main(["--heads", "5"])


def test_most_frequent_letter_by_hand() -> None:
    letters, marks = np.array([[2, 0, 2, 1]]), np.array([[False, False, False, True]])
    both, causal = TASKS["two questions at once"], TASKS["induction"]
    # “previous” is asked at three places, with the answers 2, 0, 2; the marked letter is 1.
    assert training.most_frequent(ask(both, letters, marks), both) == (2 / 3, 0.0)
    # Asked at the third, fourth and fifth place, with the answers 1, 0 and 0; most frequent so far is 0 each time.
    assert training.most_frequent(ask(causal, np.array([[0, 1, 0, 0, 0]]), marks), causal) == (2 / 3,)


def test_without_positions_only_a_causal_mask_tells_order() -> None:
    def learned(task: str, layers: int) -> tuple[float, float]:
        settings = replace(training.suggested(task), layers=layers, encoding="none", steps=200)
        *_, last = train(settings, every=settings.steps)
        assert last.accuracies is not None
        return last.accuracies[0], training.most_frequent(training.examples(settings), TASKS[task])[0]

    for task in ("two questions at once", "reverse"):
        share, yardstick = learned(task, 1)
        assert share < yardstick + 0.05
    share, yardstick = learned("induction", 2)
    assert share > 2 * yardstick


def test_claims_hold_or_not() -> None:
    both, one_head, _ = training.CLAIMS
    assert str(both) == "two heads: previous and marked ≥ 99%"
    assert both.holds({"previous": 0.99, "marked": 1.0})
    assert not both.holds({"previous": 0.98, "marked": 1.0})
    assert str(one_head) == "one head: previous ≤ 35%"
    assert one_head.holds({"previous": 0.35, "marked": 0.0})
    assert not one_head.holds({"previous": 0.36, "marked": 0.0})
