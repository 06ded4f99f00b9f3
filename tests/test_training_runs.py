"""The runs of the training lab: what one holds, what the server keeps, and how many are trained at a time."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import streamlit as st

from core.training import Settings, train
from ui import training_runs
from ui.training_runs import CHANGES, NOTHING, PLACES, Run, Store, go_on, with_change

SHORT = Settings(d_model=8, steps=40, batch=8)
PATIENT = 60.0  # seconds: no slice ends before the next snapshot
TOO_FAST = Settings(d_model=8, steps=40, layers=3, norm=False, learning_rate=100)


@pytest.fixture(autouse=True)
def _fresh_server() -> Iterator[None]:
    """No test finds the runs or the places of another one."""
    yield
    training_runs.store.clear()
    training_runs.places.clear()


def trained(settings: Settings) -> Run:
    run = Run(settings)
    while not run.finished:
        run.advance()
    return run


# --- a run -----------------------------------------------------------------------------------------------------------


def test_a_run_holds_what_core_trained() -> None:
    run, expected = trained(SHORT), list(train(SHORT, every=2))
    assert run.losses == [each.loss for each in expected]
    read = [each for each in expected if each.accuracies]
    assert [snapshot.step for snapshot in run.snapshots] == [each.step for each in read] == list(range(0, 41, 2))
    for snapshot, each in zip(run.snapshots, read, strict=True):
        assert (snapshot.loss, snapshot.accuracies, snapshot.readings) == (each.loss, each.accuracies, each.readings)
        np.testing.assert_array_equal(snapshot.maps, each.maps)
        np.testing.assert_array_equal(snapshot.answers, each.answers)


def test_a_run_begins_before_the_first_step() -> None:
    run = Run(SHORT)
    assert (run.step, run.finished, run.failure) == (0, False, "")
    assert [snapshot.step for snapshot in run.snapshots] == [0]


def test_a_run_goes_from_snapshot_to_snapshot() -> None:
    run = Run(replace(SHORT, steps=100))
    run.advance(PATIENT)
    assert (run.step, len(run.losses), len(run.snapshots)) == (5, 6, 2)
    for _ in range(19):
        assert not run.finished
        run.advance(PATIENT)
    assert run.finished
    assert run.step == 100
    run.advance()  # nothing is left
    assert (run.step, len(run.snapshots)) == (100, 21)


def test_the_same_settings_give_the_same_run_to_the_last_digit() -> None:
    one, other = trained(SHORT), trained(SHORT)
    assert one.losses == other.losses
    assert one.losses != trained(replace(SHORT, seed=1)).losses


def test_the_snapshot_of_a_step() -> None:
    run = trained(SHORT)
    assert [run.at(step).step for step in (0, 1, 2, 39, 40, 1000)] == [0, 0, 2, 38, 40, 40]


def test_a_run_whose_loss_is_not_finite_is_finished_and_says_why() -> None:
    run = trained(TOO_FAST)
    assert "learning rate 100 is too large" in run.failure
    assert f"after step {run.step + 1}: " in run.failure  # of that step there is no loss
    assert run.step < TOO_FAST.steps
    assert np.isfinite(run.losses).all()
    run.advance()
    assert run.snapshots[-1].step <= run.step


# --- what the server keeps -------------------------------------------------------------------------------------------


def test_the_store_gives_back_the_very_run() -> None:
    store, run = Store(), trained(SHORT)
    store.put(run)
    assert store.get(replace(SHORT)) is run  # settings that are equal, not the same object
    assert store.get(replace(SHORT, seed=1)) is None


def test_the_store_is_bounded_and_the_one_asked_for_longest_ago_goes() -> None:
    store = Store(most=2)
    for seed in (0, 1):
        store.put(trained(replace(SHORT, steps=1, seed=seed)))
    store.get(replace(SHORT, steps=1, seed=0))
    store.put(trained(replace(SHORT, steps=1, seed=2)))
    kept = [seed for seed in range(3) if store.get(replace(SHORT, steps=1, seed=seed))]
    assert kept == [0, 2]


def test_the_store_refuses_what_is_still_trained() -> None:
    with pytest.raises(ValueError, match="step 0 of 40"):
        Store().put(Run(SHORT))


def test_a_run_that_failed_is_kept_too() -> None:
    store, run = Store(), trained(TOO_FAST)
    store.put(run)
    assert store.get(TOO_FAST) is run


def test_the_largest_run_is_as_large_as_the_store_reckons() -> None:
    run = Run(Settings(task="induction", layers=3, d_model=64, heads=8, steps=2000))
    assert run.snapshots[0].maps.nbytes * (training_runs.SNAPSHOTS + 1) <= 0.55e6


def test_many_threads_at_the_store() -> None:
    store, runs = Store(most=3), [trained(replace(SHORT, steps=1, seed=seed)) for seed in range(8)]
    wrong: list[object] = []

    def work(start: int) -> None:
        for turn in range(300):
            run = runs[(start + turn) % len(runs)]
            store.put(run)
            if store.get(run.settings) not in (run, None):
                wrong.append(run.settings)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len([run for run in runs if store.get(run.settings)]) == 3


# --- places ----------------------------------------------------------------------------------------------------------


def test_at_most_two_train_at_a_time_and_everyone_gets_a_turn() -> None:
    training_runs.places()  # made once, before the threads
    lock, inside, most, done = threading.Lock(), [0], [0], [0]

    def work() -> None:
        with training_runs.place(lambda: None):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            with lock:
                inside[0] -= 1
                done[0] += 1

    threads = [threading.Thread(target=work) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most[0], done[0]) == (PLACES, 9)


class Interruption(BaseException):
    """As Streamlit's own, which are no Exception."""


def test_a_place_is_given_back_whatever_ends_the_training() -> None:
    for _ in range(PLACES + 1):  # one leak and the last would wait for ever
        with pytest.raises(Interruption), training_runs.place(fail_to_wait):
            raise Interruption


def fail_to_wait() -> None:
    raise AssertionError("there is a place")


def test_who_waits_is_asked_again_and_again_and_may_give_up() -> None:
    asked = []

    def wait() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise Interruption

    with training_runs.place(fail_to_wait), training_runs.place(fail_to_wait):
        with pytest.raises(Interruption), training_runs.place(wait):
            raise AssertionError("there is no place")
        assert len(asked) == 3
    with training_runs.place(fail_to_wait), training_runs.place(fail_to_wait):
        pass  # who gave up took no place along


# --- going on --------------------------------------------------------------------------------------------------------


def test_runs_go_on_side_by_side_and_are_kept_when_they_are_finished() -> None:
    runs = [Run(SHORT), Run(replace(SHORT, heads=1))]
    drawn = [tuple(run.step for run in runs) for due in go_on(runs) if due]
    assert drawn == [(step, step) for step in range(2, 41, 2)]
    assert [training_runs.store().get(run.settings) for run in runs] == runs


def test_once_goes_to_the_next_snapshot_and_later_on_from_there() -> None:
    run = Run(SHORT)
    assert list(go_on([run], once=True))[-1]
    assert (run.step, len(run.snapshots)) == (2, 2)
    assert training_runs.store().get(SHORT) is None
    assert sum(go_on([run])) == 19
    assert run.losses == trained(SHORT).losses


def test_who_is_behind_catches_up_first() -> None:
    ahead, behind = Run(SHORT), Run(replace(SHORT, heads=1))
    list(go_on([ahead], once=True))
    first = next(due for due in go_on([ahead, behind]) if due)
    assert first
    assert (ahead.step, behind.step) == (2, 2)


def test_a_finished_run_is_left_alone_while_the_other_goes_on() -> None:
    done, other = trained(TOO_FAST), Run(SHORT)
    before = done.step
    assert sum(go_on([done, other])) == 20
    assert (done.step, other.step) == (before, 40)
    assert list(go_on([done, other])) == []


def test_a_long_way_to_the_next_snapshot_can_be_interrupted() -> None:
    run = Run(replace(SHORT, steps=2000))  # 100 steps from snapshot to snapshot
    for _ in range(3):
        run.advance(seconds=0)
    assert (run.step, len(run.snapshots)) == (3, 1)
    run.advance(PATIENT)
    assert (run.step, len(run.snapshots)) == (100, 2)
    assert run.losses == [each.loss for each in train(run.settings)][:101]


def test_two_threads_at_one_run_take_turns() -> None:
    """A click starts the page anew while the thread before it still trains."""
    run = Run(replace(SHORT, steps=400))

    def work() -> None:
        while not run.finished:
            run.advance(seconds=0.001)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    run.come_to_rest()
    for thread in threads:
        thread.join()
    assert run.failure == ""
    assert run.losses == [each.loss for each in train(run.settings)]
    assert [snapshot.step for snapshot in run.snapshots] == list(range(0, 401, 20))


def test_a_page_does_not_read_a_run_that_is_still_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {})
    settings = replace(SHORT, steps=100_000)  # the next snapshot is far away
    [run] = training_runs.shown([settings])
    thread = threading.Thread(target=run.advance, args=(0.5,))
    thread.start()
    time.sleep(0.05)
    assert training_runs.shown([settings]) == [run]
    before = run.step
    assert before > 0
    thread.join()
    assert run.step == before


def test_a_tab_shows_its_own_run_or_else_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {})
    kept, other = trained(SHORT), replace(SHORT, seed=1)
    training_runs.store().put(kept)
    assert training_runs.shown([SHORT]) == [kept]
    training_runs.start_over([SHORT])
    [own] = training_runs.shown([SHORT])
    assert own.step == 0
    assert not training_runs.take_over([SHORT, other])  # one of them is not there
    assert training_runs.shown([SHORT]) == [own]
    assert training_runs.take_over([SHORT])
    assert training_runs.shown([SHORT]) == [kept]
    training_runs.start_over([SHORT])
    training_runs.shown([other])  # drops the other settings' run
    assert training_runs.shown([SHORT]) == [kept]


# --- the second run --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(heads=1, layers=2, encoding="none", residual=False, norm=False, seed=9999)],
    ids=["default", "all else"],
)
def test_the_second_run_always_differs_in_one_thing(settings: Settings) -> None:
    for change in CHANGES:
        other = with_change(settings, change, encoding="learned", seeds=10_000)
        if change == NOTHING:
            assert other is None
        else:
            assert other is not None
            differing = [name for name in vars(settings) if getattr(settings, name) != getattr(other, name)]
            assert differing == [change]
            assert Run(replace(other, steps=1)).step == 0  # and can be trained


def test_an_unknown_change_is_refused() -> None:
    with pytest.raises(ValueError, match="sorting is none of the changes nothing, heads"):
        with_change(Settings(), "sorting", encoding="learned", seeds=10)
