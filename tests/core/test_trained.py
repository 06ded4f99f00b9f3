"""The weights that come with the project: small, safe to load, of the right shapes, and as good as is said."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core import multi_head, trained, training
from core.tasks import TASKS, Batch, draw
from core.training import forward, shapes

Refusal = Callable[[Callable[[], object]], str]


def fresh(task: str, size: int = 2000) -> Batch:
    """Sequences that no run is trained on or judged by."""
    return draw(TASKS[task], size, np.random.default_rng([2026, 11]))


def one_of(task: str, seed: int = 0) -> tuple[list[int], int | None, Batch]:
    """A sequence as `trace` takes it, and the batch that holds it alone."""
    batch = draw(TASKS[task], 1, np.random.default_rng(seed))
    mark = int(batch.marks[0].argmax()) if TASKS[task].marked else None
    return batch.letters[0].tolist(), mark, batch


# --- the files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", trained.FILES)
def test_files_are_small_and_hold_plain_arrays(task: str) -> None:
    path = trained.FOLDER / trained.FILES[task]
    assert path.stat().st_size < 200_000
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            header = archive.read(name)[:128]
            assert header.startswith(b"\x93NUMPY")
            assert b"'<f4'" in header, "plain float32, no objects to unpickle"


@pytest.mark.parametrize("task", trained.FILES)
def test_weights_have_the_names_and_shapes_of_the_model(task: str) -> None:
    settings, parameters = trained.load(task)
    assert settings == training.suggested(task)
    assert {name: weights.shape for name, weights in parameters.items()} == shapes(settings)


def test_the_first_file_is_of_the_default_run() -> None:
    assert trained.load("two questions at once")[0] == training.Settings()


def test_training_again_gives_the_same_file(tmp_path: Path) -> None:
    """Byte for byte on one machine and numpy, and close to the shipped one on any."""
    task = "two questions at once"
    one, other = trained.write(task, tmp_path / "one"), trained.write(task, tmp_path / "other")
    assert one.read_bytes() == other.read_bytes()
    settings, again = trained.load(task, tmp_path / "one")
    scores, _ = forward(again, fresh(task), settings)
    assert min(training.accuracies(scores, fresh(task))) >= 0.99


# --- what they can do ------------------------------------------------------------------------------------------------


def test_the_default_run_answers_both_questions() -> None:
    settings, parameters = trained.load("two questions at once")
    batch = fresh("two questions at once")
    previous, marked = training.accuracies(forward(parameters, batch, settings)[0], batch)
    assert previous >= 0.99
    assert marked >= 0.99


def test_the_induction_model_finds_what_came_after() -> None:
    """99.5 % of the answers asked for in 2,000 fresh sequences were right when it was written; guessing gives 8 %."""
    settings, parameters = trained.load("induction")
    batch = fresh("induction")
    (right,) = training.accuracies(forward(parameters, batch, settings)[0], batch)
    assert right >= 0.99


def test_the_heads_of_the_default_run_share_the_work() -> None:
    settings, parameters = trained.load("two questions at once")
    assert trained.looks_most_at(parameters, settings) == [("marked", "previous")]
    first, second = training.readings(parameters, settings)
    assert first.on["marked"] > 0.85
    assert 0.5 < second.on["previous"] < 0.6  # hardly more than half


def test_a_previous_token_head_feeds_the_induction_head() -> None:
    settings, parameters = trained.load("induction")
    assert trained.looks_most_at(parameters, settings) == [("previous",), ("after the last time",)]
    first, second = training.readings(parameters, settings)
    assert first.on["previous"] > 0.9
    assert second.on["after the last time"] > 0.85


# --- one sequence ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", trained.FILES)
@pytest.mark.parametrize("seed", range(3))
def test_the_layers_give_the_maps_of_the_model(task: str, seed: int) -> None:
    settings, parameters = trained.load(task)
    letters, mark, batch = one_of(task, seed)
    found = trained.trace(parameters, settings, letters, mark)
    scores, passed = forward(parameters, batch, settings)
    assert len(found.layers) == settings.layers
    for layer, expected in zip(found.layers, passed.blocks, strict=True):
        result = multi_head.attend(layer, found.allowed)
        np.testing.assert_allclose(result.heads.weights, expected.multi_head.heads.weights[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result.concatenated, expected.multi_head.concatenated[0], rtol=1e-4, atol=1e-5)
        assert layer.names == ("",) * settings.heads
    np.testing.assert_array_equal(found.answers, scores[0].argmax(axis=-1))
    np.testing.assert_allclose(found.probabilities.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(found.expected, batch.answers[0])
    np.testing.assert_array_equal(found.sources, batch.sources[0])


def test_heads_of_a_trained_layer_can_be_switched_off() -> None:
    settings, parameters = trained.load("two questions at once")
    found = trained.trace(parameters, settings, *one_of("two questions at once")[:2])
    (layer,) = found.layers
    result = multi_head.attend(layer, found.allowed)
    nothing = multi_head.switch_off(result, layer.w_o, [False, False])
    np.testing.assert_allclose(nothing.output, 0, atol=1e-6)
    np.testing.assert_allclose(nothing.change, -result.output, atol=1e-6)


def test_moving_the_mark_changes_the_answer_to_it() -> None:
    settings, parameters = trained.load("two questions at once")
    letters = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
    for mark in range(12):
        found = trained.trace(parameters, settings, letters, mark)
        assert np.mean(found.answers[:, 1] == letters[mark]) > 0.9
        assert found.sources[:, 1].tolist() == [mark] * 12


def test_nobody_looks_ahead_in_the_induction_model() -> None:
    settings, parameters = trained.load("induction")
    found = trained.trace(parameters, settings, one_of("induction")[0])
    for layer in found.layers:
        weights = multi_head.attend(layer, found.allowed).heads.weights
        assert (weights[:, ~np.tri(16, dtype=bool)] == 0).all()


# --- what is refused -------------------------------------------------------------------------------------------------


def test_refuses_a_task_without_weights(refusal: Refusal) -> None:
    assert "reverse has no trained weights; two questions at once and induction have" in refusal(
        lambda: trained.load("reverse")
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"w_out": None}, "the names that differ being w_out"),
        ({"more": np.zeros(2, np.float32)}, "the names that differ being more"),
        ({"b_out": np.zeros(5, np.float32)}, "the shape of b_out (5,) does not match the model's (12,)"),
        ({"b_out": np.zeros(12)}, "b_out must hold finite float32 numbers"),
        ({"b_out": np.full(12, np.nan, np.float32)}, "b_out must hold finite float32 numbers"),
        ({"b_out": np.array([None] * 12)}, "cannot be read"),
    ],
    ids=str,
)
def test_refuses_other_weights(change: dict, words: str, tmp_path: Path, refusal: Refusal) -> None:
    arrays = {**trained.load("induction")[1], **change}
    kept = {name: weights for name, weights in arrays.items() if weights is not None}
    np.savez(tmp_path / trained.FILES["induction"], **kept)
    assert words in refusal(lambda: trained.load("induction", tmp_path))


@pytest.mark.parametrize("content", [None, b"", b"not an archive", b"PK\x03\x04 cut off"])
def test_refuses_a_file_that_is_no_archive(content: bytes | None, tmp_path: Path, refusal: Refusal) -> None:
    if content is not None:
        (tmp_path / "induction.npz").write_bytes(content)
    assert refusal(lambda: trained.load("induction", tmp_path)) == "induction.npz cannot be read as trained weights."


def test_refuses_a_single_array(tmp_path: Path, refusal: Refusal) -> None:
    with (tmp_path / "induction.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    assert "cannot be read" in refusal(lambda: trained.load("induction", tmp_path))


@pytest.mark.parametrize(
    ("letters", "mark", "words"),
    [
        ([0] * 11, 0, "the number of letters 11 does not match the length that the model was trained on 12"),
        ([0] * 11 + [12], 0, "A letter must be below 12, not 12"),
        ([0] * 11 + [-1], 0, "a letter must be a whole number of at least 0, not -1"),
        ([0] * 12, 12, "The marked place must be below 12, not 12"),
        ([0] * 12, -1, "the marked place must be a whole number of at least 0, not -1"),
        ([0] * 12, None, "This task needs a marked place"),
    ],
)
def test_refuses_sequences(letters: list[int], mark: int | None, words: str, refusal: Refusal) -> None:
    settings, parameters = trained.load("two questions at once")
    assert words in refusal(lambda: trained.trace(parameters, settings, letters, mark))


def test_refuses_a_mark_where_the_task_has_none(refusal: Refusal) -> None:
    settings, parameters = trained.load("induction")
    assert "marks no place, not even 3" in refusal(lambda: trained.trace(parameters, settings, [0] * 16, 3))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "suggested", lambda task: training.Settings(task, layers=1, steps=2))
    trained.main(["--to", str(tmp_path / "new")])
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "two_questions.npz: 2 steps",
        "induction.npz: 2 steps",
    ]
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(trained.FILES.values())
