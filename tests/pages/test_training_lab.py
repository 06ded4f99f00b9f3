"""The training lab: what it draws is what was trained, and it says what is true of it."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import tasks, training
from core.training import Reading, Settings, train
from tests.pages.charts import array, control, open_page, specs, texts
from ui import training_figures, training_runs, training_words
from ui.training_runs import Run, Snapshot

PAGE = "training_lab"
QUICK = Settings(steps=100, d_model=8)
LINK = {"steps": "100", "d_model": "8"}


@pytest.fixture(autouse=True)
def _fresh_server() -> Iterator[None]:
    """No test finds the runs or the places of another one."""
    yield
    training_runs.store.clear()
    training_runs.places.clear()


def button(at: AppTest, name: str) -> Any:
    return at.button(key=f"training_lab_{name}")


def press(at: AppTest, name: str) -> AppTest:
    return button(at, name).click().run()


def kept(settings: Settings) -> Run:
    """A finished run that the server keeps."""
    run = Run(settings)
    list(training_runs.go_on([run]))
    return run


def maps(at: AppTest, layers: int, heads: int, n: int, key: str = "maps") -> np.ndarray:
    """(layers, heads, n, n): the cells of the picture with the maps, the empty ones between them left out."""
    trace = specs(at)[key]["data"][0]
    cells, places = array(trace["z"]), array(trace["customdata"])
    there = ~np.isnan(cells)
    rows, columns = np.nonzero(there)
    down = np.count_nonzero(there.any(axis=1)) // n
    across = np.count_nonzero(there.any(axis=0)) // n
    found = cells[there].reshape(down, n, across, n).swapaxes(1, 2)
    assert {tuple(place) for place in places[rows, columns]} == {
        (q, k) for q in range(1, n + 1) for k in range(1, n + 1)
    }
    return found.reshape(layers, heads, n, n)


def curves(at: AppTest, key: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {trace["name"]: (array(trace["x"]), array(trace["y"])) for trace in specs(at)[key]["data"]}


def assert_shows(at: AppTest, settings: Settings, step: int) -> None:
    """The maps are those of this step, as core trains it."""
    at_step = next(each for each in train(settings, settings.steps // 20) if each.step == step)
    n = tasks.TASKS[settings.task].seq_len
    np.testing.assert_array_equal(maps(at, settings.layers, settings.heads, n), at_step.maps)


# --- before, during and after ----------------------------------------------------------------------------------------


def test_before_training_the_random_weights_are_shown_and_said_to_be_random() -> None:
    at = open_page(PAGE, **LINK)
    assert not at.exception
    assert "Not trained yet: the weights are random" in texts(at)
    assert_shows(at, QUICK, 0)
    assert [len(x) for x, _ in curves(at, "loss").values()] == [1]
    assert not at.slider(key="steps").disabled
    assert [slider.key for slider in at.slider if slider.key == "training_lab_shown"] == []
    assert (button(at, "train").disabled, button(at, "step").disabled, button(at, "reset").disabled) == (
        False,
        False,
        True,
    )


@pytest.mark.parametrize(
    ("link", "settings"),
    [
        (LINK, QUICK),
        (LINK | {"heads": "8", "layers": "3"}, replace(QUICK, heads=8, layers=3)),
        (
            LINK | {"task": "induction", "heads": "1", "layers": "2", "encoding": "learned"},
            replace(QUICK, task="induction", heads=1, layers=2, encoding="learned"),
        ),
        (
            LINK | {"task": "reverse", "residual": "false", "norm": "false", "learning_rate": "0.01", "seed": "7"},
            replace(QUICK, task="reverse", residual=False, norm=False, learning_rate=0.01, seed=7),
        ),
    ],
    ids=["default", "many heads", "induction", "all else"],
)
def test_what_is_drawn_at_the_end_is_what_core_trains(link: dict[str, str], settings: Settings) -> None:
    at = press(open_page(PAGE, **link), "train")
    assert not at.exception
    expected = list(train(settings, 5))
    read = [each for each in expected if each.accuracies]
    assert_shows(at, settings, 100)
    (_, losses) = curves(at, "loss")["this setting"]
    np.testing.assert_array_equal(losses, np.array([each.loss for each in expected], dtype=np.float32))
    for number, question in enumerate(tasks.TASKS[settings.task].questions):
        steps, shares = curves(at, "accuracy")[question]
        np.testing.assert_array_equal(steps, [each.step for each in read])
        wanted = [each.accuracies[number] for each in read if each.accuracies]
        np.testing.assert_array_equal(shares, np.array(wanted, dtype=np.float32))
        assert at.metric[number].value == training_words.percent(wanted[-1])
    assert "Trained: 100 steps." in texts(at)
    assert (button(at, "train").disabled, button(at, "step").disabled) == (True, True)


def test_the_default_run_says_which_head_does_what() -> None:
    """The sentence on the page against the weights, read by `core.training.readings`."""
    at = press(open_page(PAGE), "train")
    *_, last = train(Settings(), 400)
    assert last.parameters is not None
    found = training.readings(last.parameters, Settings())
    for_marked = max(found, key=lambda reading: reading.on["marked"])
    for_previous = max(found, key=lambda reading: reading.on["previous"])
    said = texts(at).lower()
    assert for_marked.head != for_previous.head
    for reading, place in ((for_marked, "marked"), (for_previous, "previous")):
        assert f"head {reading.head + 1} puts {reading.on[place]:.2f} of its weight on the {place} letter" in said
    assert "At step 400 learned: “previous” and “marked”." in texts(at)
    table = next(frame.value for frame in at.dataframe if "itself" in frame.value.columns)
    metrics = {metric.label: metric.value for metric in at.metric}
    for reading in found:
        assert dict(table.loc[f"Head {reading.head + 1}"]) == reading.on
        most = max(reading.on, key=lambda place: reading.on[place])
        assert metrics[f"Head {reading.head + 1}, on “{most}”"] == f"{reading.on[most]:.2f}"


def test_one_head_learns_one_question_and_the_page_says_so() -> None:
    at = press(open_page(PAGE, heads="1"), "train")
    assert "At step 400 learned: “marked”; not learned: “previous”. A blind guess is right 8.3% of the time." in texts(
        at
    )
    assert "One head has one map for both questions." in texts(at)
    assert "One head has one map" not in texts(open_page(PAGE))


def test_the_scrubber_goes_back_without_training_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    at = press(open_page(PAGE, **LINK), "train")
    assert at.slider(key="training_lab_shown").value == 100
    monkeypatch.setattr(training_runs, "train", refuse_to_train)
    at.slider(key="training_lab_shown").set_value(40).run()
    assert not at.exception
    assert_shows(at, QUICK, 40)
    assert len(curves(at, "loss")["this setting"][0]) == 101  # the curves stay whole
    assert "after step 40" in texts(at)
    at.slider(key="training_lab_shown").set_value(0).run()
    assert_shows(at, QUICK, 0)


def refuse_to_train(*args: object) -> None:
    raise AssertionError("this run is known")


def test_a_finished_run_is_shown_at_once_to_the_next_person(monkeypatch: pytest.MonkeyPatch) -> None:
    first = press(open_page(PAGE, **LINK), "train")
    monkeypatch.setattr(training_runs, "train", refuse_to_train)
    at = open_page(PAGE, **LINK)
    assert not at.exception
    assert "Trained: 100 steps." in texts(at)
    assert specs(at) == specs(first)


def test_step_by_step_and_then_to_the_end_is_the_same_run() -> None:
    at = press(press(open_page(PAGE, **LINK), "step"), "step")
    assert "Paused after 10 of 100 steps." in texts(at)
    assert at.slider(key="training_lab_shown").value == 10
    assert_shows(at, QUICK, 10)
    press(at, "train")
    losses = curves(at, "loss")["this setting"][1]
    np.testing.assert_array_equal(losses, np.array([each.loss for each in train(QUICK)], dtype=np.float32))


def test_reset_goes_back_to_the_random_weights_and_trains_again() -> None:
    at = press(press(open_page(PAGE, **LINK), "train"), "reset")
    assert "Not trained yet" in texts(at)
    assert_shows(at, QUICK, 0)
    assert "Trained: 100 steps." in texts(press(at, "train"))


def test_other_settings_drop_the_run() -> None:
    at = press(open_page(PAGE, **LINK), "step")
    at.number_input(key="seed").set_value(1).run()
    assert "Not trained yet" in texts(at)
    assert_shows(at, replace(QUICK, seed=1), 0)
    at.number_input(key="seed").set_value(0).run()
    assert "Not trained yet" in texts(at)


def interrupt(at: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Train, and stop after step 15. Streamlit raises through the loop what a click or a closed tab means."""
    drawn = []
    curve = training_figures.loss_curves

    def interrupted(*args: Any) -> Any:
        drawn.append(1)
        if len(drawn) == 4:  # the first is the page's own, before training
            st.stop()
        return curve(*args)

    monkeypatch.setattr(training_figures, "loss_curves", interrupted)
    press(at, "train")
    monkeypatch.undo()


def test_pause_stops_the_run_where_it_is_and_train_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_page(PAGE, **LINK)
    interrupt(at, monkeypatch)
    assert not button(at, "pause").disabled
    press(at, "pause")
    assert not at.exception
    assert "Paused after 15 of 100 steps." in texts(at)
    assert button(at, "pause").disabled
    at.run()
    assert "Paused after 15 of 100 steps." in texts(at)
    press(at, "train")
    losses = curves(at, "loss")["this setting"][1]
    np.testing.assert_array_equal(losses, np.array([each.loss for each in train(QUICK)], dtype=np.float32))


def test_a_step_after_a_pause_between_two_pictures_does_what_its_button_says() -> None:
    at = open_page(PAGE, beside="heads", **LINK)
    run = next(iter(at.session_state["training_lab_runs"].values()))
    run._take(next(each for each in run._progress if each.step == 1))
    at.run()
    assert "This setting: Paused after 1 of 100 steps." in texts(at)
    said = button(at, "step")
    assert (said.label, said.help) == (
        "Next picture",
        "Trains up to the next picture, and waits. Pictures are kept every 5 steps.",
    )
    press(at, "step")
    assert "Paused after 5 of 100 steps." in texts(at)
    assert "This setting: Paused" not in texts(at)  # the run beside it stands there too


def test_an_interruption_gives_the_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(open_page(PAGE, **LINK), monkeypatch)
    free = training_runs.places()
    assert [free.acquire(blocking=False) for _ in range(training_runs.PLACES + 1)] == [True, True, False]


def test_a_click_that_changes_no_setting_does_not_stop_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_page(PAGE, **LINK)
    interrupt(at, monkeypatch)
    at.run()
    assert "Trained: 100 steps." in texts(at)


def test_a_changed_setting_stops_the_training_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_page(PAGE, **LINK)
    interrupt(at, monkeypatch)
    at.number_input(key="seed").set_value(1).run()
    assert "Not trained yet" in texts(at)
    at.number_input(key="seed").set_value(0).run()
    assert "Not trained yet" in texts(at)


def test_leaving_the_page_stops_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_page(PAGE, **LINK)
    interrupt(at, monkeypatch)
    at.switch_page("pages/self_attention.py").run()
    at.switch_page(f"pages/{PAGE}.py").run()
    assert not at.exception
    assert "Paused after 15 of 100 steps." in texts(at)


def test_reset_while_it_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_page(PAGE, **LINK)
    interrupt(at, monkeypatch)
    press(at, "reset")
    assert "Not trained yet" in texts(at)


def test_who_waits_is_told_and_gets_the_run_that_somebody_else_has_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    at, told = open_page(PAGE, **LINK), []
    taken = training_runs.take_over

    def note(wanted: Any) -> bool:
        told.append(wanted)
        return taken(wanted)

    monkeypatch.setattr(training_runs, "take_over", note)
    free = training_runs.places()
    for _ in range(training_runs.PLACES):
        free.acquire()
    somebody = threading.Timer(0.6, kept, [QUICK])
    somebody.start()
    press(at, "train")
    somebody.join()
    assert len(told) > 1
    assert "Trained: 100 steps." in texts(at)
    assert not free.acquire(blocking=False)  # it was trained without a place


def test_a_loss_that_is_not_finite_stops_the_run_with_one_sentence() -> None:
    at = open_page(PAGE, layers="3", norm="false", learning_rate="100", **LINK)
    press(at, "train")
    assert not at.exception
    told = re.findall(r"The loss is no finite number after step \d+: learning rate 100 is too large", texts(at))
    assert len(told) == 1
    assert button(at, "train").disabled
    assert set(specs(at)) == {"maps", "loss", "accuracy"}
    assert " nan" not in texts(at).lower()
    at.button_group(key="learning_rate").set_value("0.003").run()
    assert "Trained: 100 steps." in texts(press(at, "train"))


# --- the second run --------------------------------------------------------------------------------------------------


def test_a_second_run_stands_beside_the_first() -> None:
    at = press(open_page(PAGE, beside="heads", **LINK), "train")
    one_head = replace(QUICK, heads=1)
    assert list(curves(at, "loss")) == ["this setting", "one head"]
    for name, settings in (("this setting", QUICK), ("one head", one_head)):
        expected = np.array([each.loss for each in train(settings)], dtype=np.float32)
        np.testing.assert_array_equal(curves(at, "loss")[name][1], expected)
    *_, last = train(one_head, 100)
    np.testing.assert_array_equal(maps(at, 1, 1, 12, "maps_beside"), last.maps)
    traces = specs(at)["accuracy"]["data"]
    assert [trace["name"] for trace in traces] == [
        "previous, this setting",
        "marked, this setting",
        "previous, one head",
        "marked, one head",
    ]
    assert [trace["line"]["dash"] for trace in traces] == ["solid", "solid", "dash", "dash"]
    assert len({trace["marker"]["symbol"] for trace in traces}) == 4


def test_another_second_run_leaves_the_first_as_it_is() -> None:
    at = press(open_page(PAGE, beside="norm", **LINK), "step")
    at.button_group(key="beside").set_value("encoding").run()
    assert [len(x) for x, _ in curves(at, "loss").values()] == [6, 1]
    named = [text.value for text in at.text]
    assert "This setting, after step 5" in named  # each run says at which step its weights stand
    assert "No positions, after step 0" in named
    press(at, "train")
    assert [len(x) for x, _ in curves(at, "loss").values()] == [101, 101]
    assert list(curves(at, "loss")) == ["this setting", "no positions"]


def test_a_second_run_that_fails_leaves_the_first_to_go_on() -> None:
    at = press(open_page(PAGE, layers="3", learning_rate="100", beside="norm", **LINK), "train")
    assert not at.exception
    assert "learning rate 100 is too large" in texts(at)
    assert "Trained: 100 steps." in texts(at)
    first, second = curves(at, "loss").values()
    assert len(first[0]) == 101 > len(second[0])


# --- controls --------------------------------------------------------------------------------------------------------


def shown_controls(at: AppTest) -> tuple[Any, ...]:
    return (
        at.button_group(key="task").value,
        control(at, "heads").value,
        at.slider(key="layers").value,
        at.button_group(key="encoding").value,
        at.slider(key="steps").value,
    )


def test_choosing_a_task_brings_along_with_what_it_is_learned() -> None:
    at = open_page(PAGE, heads="8", steps="1000")
    at.button_group(key="task").set_value("induction").run()
    assert shown_controls(at) == ("induction", 1, 2, "learned", 400)
    control(at, "heads").set_value(4).run()  # and everything can still be set
    assert shown_controls(at) == ("induction", 4, 2, "learned", 400)
    at.run()
    assert dict(at.query_params) == {"task": "induction", "heads": "4", "layers": "2", "encoding": "learned"}


def test_a_link_says_by_itself_what_is_set() -> None:
    at = open_page(PAGE, task="induction")
    assert shown_controls(at) == ("induction", 2, 1, "sinusoidal", 400)
    press(at, "best")
    assert shown_controls(at) == ("induction", 1, 2, "learned", 400)
    assert [each.key for each in at.button if each.key == "training_lab_best"] == []


def test_the_way_back_to_settings_that_learn_the_task() -> None:
    at = open_page(PAGE, d_model="8", residual="false", norm="false", learning_rate="10", heads="8", seed="3")
    press(at, "best")
    assert (at.slider(key="d_model").value, control(at, "heads").value) == (32, 2)
    assert (at.toggle(key="residual").value, at.toggle(key="norm").value) == (True, True)
    assert at.button_group(key="learning_rate").value == "0.003"
    assert at.number_input(key="seed").value == 3


def test_what_another_page_chose_is_made_to_fit() -> None:
    at = open_page("multi_head_attention", d_model="60", heads="15")
    at.switch_page(f"pages/{PAGE}.py").run()
    assert not at.exception
    assert (at.slider(key="d_model").value, control(at, "heads").value) == (64, 8)


# --- words -----------------------------------------------------------------------------------------------------------


def reading(head: int, layer: int = 0, **on: float) -> Reading:
    return Reading(layer, head, {"previous": 0.1, "marked": 0.1, "itself": 0.1} | on)


def test_a_head_that_does_nothing_clear_is_not_said_to() -> None:
    said = training_words.heads_finding([reading(0, marked=0.971), reading(1, previous=0.35)], Settings())
    assert said == (
        "Head 1 puts 0.97 of its weight on the marked letter; "
        "head 2 settles on none of the places looked for: the most, 0.35 of its weight, is on the previous letter."
    )


def test_many_heads_are_counted() -> None:
    found = [reading(head, marked=0.6 + head / 10) for head in range(2)]
    found += [reading(2, previous=0.8)] + [reading(head) for head in range(3, 8)]
    assert training_words.heads_finding(found, Settings(heads=8)) == (
        "Of 8 heads, 2 put more than half of their weight on the marked letter, most of all head 2 with 0.70; "
        "1 puts more than half of its weight on the previous letter: head 3 with 0.80; 5 settle on "
        "none of the places looked for."
    )


def test_heads_are_named_by_layer_where_there_are_several() -> None:
    settings = Settings(task="induction", heads=1, layers=2)
    said = training_words.heads_finding([reading(0, previous=0.9), reading(0, layer=1, itself=0.7)], settings)
    assert said.startswith("The head of layer 1 puts 0.90 of its weight on the previous letter; the head of layer 2")
    two = [reading(head, layer, marked=0.9) for layer in range(2) for head in range(2)]
    assert "; layer 2, head 1 puts" in training_words.heads_finding(two, Settings(layers=2))


def test_weights_that_are_no_numbers_are_not_told() -> None:
    said = training_words.heads_finding([reading(0, marked=float("nan"))], Settings(heads=1))
    assert said == "What the heads look at are no finite numbers any more."


@pytest.mark.parametrize(
    ("accuracies", "said"),
    [
        ((0.99, 1.0), "At step 20 learned: “previous” and “marked”. "),
        ((0.9899, 1.0), "At step 20 learned: “marked”; not learned: “previous”. "),
        ((0.5, 0.5), "At step 20 not learned: “previous” and “marked”. "),
    ],
)
def test_learned_means_99_percent(accuracies: tuple[float, ...], said: str) -> None:
    snapshot = Snapshot(20, 1.0, accuracies, (), np.zeros(0), np.zeros(0))
    assert training_words.learned_finding(snapshot, Settings()) == (
        f"{said}A blind guess is right 8.3% of the time. {training_words.frequent_finding(Settings())}"
    )


def test_a_yardstick_for_answers_that_need_no_order() -> None:
    said = training_words.frequent_finding(Settings())
    assert re.fullmatch(
        r"Always naming the most frequent letter of the sequence, wherever it stands, gives "
        r"2\d\.\d% on “previous” and 2\d\.\d% on “marked”\.",
        said,
    )
    assert "the letter seen most often so far" in training_words.frequent_finding(Settings(task="induction"))


def test_only_where_it_is_true_is_order_said_to_need_an_encoding() -> None:
    for task in tasks.TASKS.values():
        assert ("cannot be learned" in training_words.WITHOUT_POSITIONS[task.name]) == (not task.causal)


def test_nearly_all_is_not_all() -> None:
    assert [training_words.percent(share) for share in (1.0, 0.9999, 0.5, 0.0)] == [
        "100%",
        "99.9%",
        "50.0%",
        "0.0%",
    ]


def test_the_example_is_written_out_with_its_answers() -> None:
    letters, marks = np.array([[2, 0, 1, 2]]), np.array([[False, True, False, False]])
    batch = tasks.ask(tasks.TASKS["two questions at once"], letters, marks)
    said = np.array([[5, 0], [2, 0], [0, 3], [2, 0]])
    assert training_words.example(batch, Settings(), said).splitlines() == [
        "      C[A]B C",
        "prev  · C A B",
        "model · C A ×",
        "mark  A A A A",
        "model A A × A",
    ]


@pytest.mark.parametrize("task", tasks.TASKS)
def test_every_task_and_place_has_its_words(task: str) -> None:
    assert task in training_words.ABOUT
    assert set(tasks.TASKS[task].questions) <= set(training_words.PLACES) & set(training_words.SHORT)
    assert len(tasks.TASKS[task].questions) <= len(training_words.SIGNS)
    assert tasks.TASKS[task].letters <= len(training_words.ALPHABET)


# --- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("heads", range(1, 9))
def test_maps_and_signs_stand_in_their_places(layers: int, heads: int) -> None:
    """Every map is whole and under its own title, and on every sign's cell it says query and source."""
    settings = Settings(heads=heads, d_model=heads * 8, layers=layers)
    judged = training.examples(settings)
    weights = np.random.default_rng(0).dirichlet(np.ones(12), size=(layers, heads, 12))
    titles = [f"{place}" for place in range(layers * heads)]
    letters = training_words.letters_of(judged)
    figure = training_figures.head_maps(weights, titles, letters, judged.sources[0], training_words.mark_of(judged))
    grid, names, *signs = figure.data
    assert list(names.text) == titles
    assert len(set(zip(names.x, names.y, strict=True))) == len(titles)
    for x, y, found in zip(names.x, names.y, weights.reshape(-1, 12, 12), strict=True):
        top, left = int(y + 1.75), int(x - 5.5)  # a title stands above the middle of its map
        np.testing.assert_array_equal(grid.z[top : top + 12, left : left + 12], found.astype(np.float32))
    for number, trace in enumerate(signs):
        asked = np.flatnonzero(judged.sources[0, :, number] >= 0)
        assert len(trace.x) == layers * heads * len(asked)
        for x, y in zip(trace.x, trace.y, strict=True):
            query, key = grid.customdata[int(y), int(x)] - 1
            assert judged.sources[0, query, number] == key
            assert np.isfinite(grid.z[int(y), int(x)])
    marked = f"<b>{letters[judged.marks[0].argmax()]}</b><br>▲"
    assert figure.layout.xaxis.ticktext.count(marked) == len(set(names.x))  # once under each column of maps


def test_a_huge_loss_is_drawn_on_a_logarithmic_scale() -> None:
    run = Run(QUICK)
    assert training_figures.loss_curves({"a": run}, 0).layout.yaxis.type is None
    run.losses.append(1e6)
    assert training_figures.loss_curves({"a": run}, 0).layout.yaxis.type == "log"
