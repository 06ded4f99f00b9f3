"""Predict, then see: questions are answered, judged, remembered with their settings, and counted at home."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.asking import ASK, of
from tests.pages.charts import control, open_page, specs, texts
from ui import predict
from ui.predict import Cell, Choice, Number, Question


def opened(page: str, **link: str) -> AppTest:
    """A page with the section opened."""
    at = open_page(page, **link)
    return unfold(at)


def unfold(at: AppTest) -> AppTest:
    at.session_state["predict"] = True
    return at.run()


def wrong_to(question: Question) -> Any:
    """An answer that the form can give and that is not right."""
    solution = question.solve()
    match question:
        case Choice():
            return next(place for place in range(len(question.options)) if place not in solution.right)
        case Number():
            return solution.right[0] + 1
        case Cell():
            every = ((row, column) for row in range(len(question.rows)) for column in range(len(question.columns)))
            return next(cell for cell in every if cell not in solution.right)
    raise AssertionError(question)


def widgets(at: AppTest, question: Question) -> list[Any]:
    """Where a question is answered; none once it is."""
    every = [*at.radio, *at.number_input, *at.selectbox]
    return [widget for widget in every if widget.key and widget.key.startswith(f"predict_{question.name}_")]


def press(at: AppTest, question: Question) -> AppTest:
    """The button of its form."""
    buttons = [button for button in at.button if button.key and f"predict_{question.name}_" in button.key]
    return next(button for button in buttons if button.label == "Answer").click().run()


def answer(at: AppTest, question: Question, given: Any) -> AppTest:
    chosen = given if isinstance(question, Cell) else [given]
    for widget, value in zip(widgets(at, question), chosen, strict=True):
        widget.set_value(value)
    return press(at, question)


def verdicts(at: AppTest) -> list[str]:
    return [
        line.value.split(" ", 1)[1] for line in at.markdown if line.value.endswith(("**Right.**", "**Not right.**"))
    ]


@pytest.mark.parametrize("page", ASK)
def test_a_wrong_and_a_right_answer_get_the_reason_with_its_numbers(page: str) -> None:
    at = open_page(page)
    assert not [widget for question in ASK[page](of(page)) for widget in widgets(at, question)]  # closed: not drawn
    unfold(at)

    for place, question in enumerate(ASK[page](of(page))):
        solution = question.solve()
        assert question.asks in texts(at)
        assert solution.reason not in texts(at)
        answer(at, question, solution.right[0] if place else wrong_to(question))
        assert not at.exception
        assert verdicts(at) == ["**Not right.**", "**Right.**", "**Right.**"][: place + 1]
        assert solution.reason in texts(at)
        assert (f"The answer: {question.say(solution.right[0])}." in texts(at)) == (place == 0)
        assert widgets(at, question) == []
    at.switch_page("pages/home.py").run()
    assert "Predict, then see: 3 of 3 predicted, 2 right." in texts(at)


def test_nothing_is_judged_before_something_is_chosen() -> None:
    at = opened("self_attention")
    for question in ASK["self_attention"](of("self_attention")):
        press(at, question)
        assert verdicts(at) == []
        assert "Nothing is chosen yet" in texts(at)
    at.switch_page("pages/home.py").run()
    assert "predicted" not in texts(at)


def test_other_settings_make_another_question_and_the_same_ones_show_the_answer_again() -> None:
    at = opened("recurrence")
    writing = ASK["recurrence"](of("recurrence"))[0]
    answer(at, writing, 24)
    assert verdicts(at) == ["**Right.**"]

    at.slider(key="seq_len").set_value(13).run()
    assert verdicts(at) == []
    assert ASK["recurrence"](of("recurrence", seq_len=13))[0].asks in texts(at)

    at.slider(key="seq_len").set_value(12).run()
    assert "You said: 24." in texts(at)
    at.switch_page("pages/home.py").run()
    at.switch_page("pages/recurrence.py").run()
    assert "You said: 24." in texts(unfold(at))


def test_what_is_looked_at_makes_no_other_question() -> None:
    at = opened("self_attention")
    answer(at, ASK["self_attention"](of("self_attention"))[2], 2)

    at.button(key="self_attention_next").click().run()
    assert verdicts(at) == ["**Right.**"]


def test_home_counts_the_last_answer_to_each_question() -> None:
    at = opened("recurrence")
    answer(at, ASK["recurrence"](of("recurrence"))[0], 12)
    at.slider(key="seq_len").set_value(13).run()
    answer(at, ASK["recurrence"](of("recurrence", seq_len=13))[0], 26)

    at.switch_page("pages/home.py").run()
    assert texts(at).count("predicted") == 1
    assert "Predict, then see: 1 of 3 predicted, 1 right." in texts(at)


@pytest.mark.parametrize("page", ASK)
def test_the_answer_is_shown_on_the_page(page: str) -> None:
    at = opened(page)
    question = next(question for question in ASK[page](of(page)) if question.shows)
    assert question.shows is not None
    answer(at, question, question.solve().right[0])

    next(button for button in at.button if button.label == "Show it on the page").click().run()
    assert not at.exception
    for name, value in question.shows.items():
        shown = control(at, name).value
        assert (tuple(shown) if isinstance(shown, list) else shown) == value
    assert verdicts(at) == ([] if "off" not in question.shows else ["**Right.**"])


def test_nothing_is_asked_where_the_page_was_handed_out_without_questions() -> None:
    at = opened("self_attention", questions="0")

    assert "Predict, then see" not in [header.value for header in at.header]
    assert not at.radio


def test_a_locked_control_is_not_set_to_show_the_answer() -> None:
    at = opened("self_attention", lock="d_model")
    answer(at, ASK["self_attention"](of("self_attention"))[0], 0)

    assert verdicts(at) == ["**Right.**"]
    assert "Show it on the page" not in [button.label for button in at.button]


def test_presented_it_is_a_section_of_its_own() -> None:
    at = opened("self_attention", present="4")

    assert [header.value for header in at.header] == ["Predict, then see"]
    assert len(at.radio) == 1
    assert set(specs(at)) == {"predict_largest"}


def test_words_in_a_question_are_shown_as_typed() -> None:
    at = opened("self_attention", sentence="<b> $x$ *a*")

    assert any(option == "2 b" for box in at.selectbox for option in box.options)
    answer(at, ASK["self_attention"](of("self_attention", sentence="<b> $x$ *a*"))[1], (0, 0))
    assert "You said: query token 1 <, key token 1 <." in "\n".join(text.value for text in at.text)
    assert "token 1 <" not in "\n".join(line.value for line in at.markdown)


def test_answers_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "KEPT", 1)
    at = opened("recurrence")
    questions = ASK["recurrence"](of("recurrence"))
    answer(at, questions[0], 24)
    answer(at, questions[1], 2.9)

    assert verdicts(at) == ["**Right.**"]
    assert widgets(at, questions[0]) != []  # the oldest went
