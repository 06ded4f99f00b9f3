"""Experiments: each button sets legal values that its page keeps, changes what is seen, and says what to look for."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.charts import control, open_page, specs
from ui.experiments import EXPERIMENTS, Experiment
from ui.navigation import ENTRIES

EACH = [
    pytest.param(page, place, id=f"{page} {experiment.name}")
    for page, experiments in EXPERIMENTS.items()
    for place, experiment in enumerate(experiments)
]


def notes(at: AppTest) -> list[str]:
    return [info.value for info in at.info]


def note_of(experiment: Experiment) -> str:
    return f"**{experiment.name}.** {experiment.look}"


def test_every_page_but_home_offers_three_to_five() -> None:
    assert list(EXPERIMENTS) == [entry.name for entry in ENTRIES[1:]]
    for experiments in EXPERIMENTS.values():
        assert 3 <= len(experiments) <= 5
        assert len({each.name for each in experiments}) == len(experiments)
        assert all(each.name[-1].isalnum() for each in experiments)  # a full stop follows it


@pytest.mark.parametrize("page", EXPERIMENTS)
def test_a_page_opens_without_an_experiment(page: str) -> None:
    assert notes(open_page(page)) == []


@pytest.mark.parametrize(("page", "place"), EACH)
def test_a_button_sets_the_controls_and_the_picture_and_says_what_to_look_for(page: str, place: int) -> None:
    experiment = EXPERIMENTS[page][place]
    at = open_page(page)
    before = specs(at)
    at.button(key=f"{page}_experiment_{place}").click().run()
    assert not at.exception
    assert note_of(experiment) in notes(at)
    for name, value in experiment.sets.items():
        shown = control(at, name).value if name not in at.session_state["memory"].drawn else None
        assert shown in (value, None), name
    assert specs(at) != before or page == "training_lab"  # there it is seen after training
    assert dict(at.query_params)  # what is set is in the link


def test_a_link_to_an_experiment_says_what_to_look_for_and_another_value_ends_it() -> None:
    cold = EXPERIMENTS["self_attention"][2]
    at = open_page("self_attention", temperature="0.1")
    assert notes(at) == [note_of(cold)]
    at.slider(key="temperature").set_value(5.0).run()
    assert notes(at) == []
