"""Predict, then see, in a browser: on every page a question is answered wrongly and one rightly, by keyboard."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from tests.asking import ASK, of
from tests.browser.conftest import OpenTab
from tests.browser.harness import Visit
from tests.browser.reading import arrive, go_to, slider
from tests.pages.test_predict import wrong_to
from ui.navigation import ENTRIES
from ui.predict import Cell, Choice, Question

_IN_THE_SECTION = {"include": [".st-key-predict_section"]}  # `test_pages` looks at the rest of the page


def choose(box: Locator, place: int) -> None:
    """An option of a box to choose from, by the arrow keys."""
    box.focus()
    box.page.wait_for_timeout(300)  # the page may scroll to the box, and a list that is open then closes
    keyboard = box.page.keyboard  # while its list is open, the box is hidden from those who look for boxes
    keyboard.press("ArrowDown")
    expect(box.page.get_by_role("listbox")).to_be_visible()
    for _ in range(place):
        keyboard.press("ArrowDown")
    keyboard.press("Enter")


def fill_in(form: Locator, question: Question, answer: Any) -> None:
    """Give an answer in a question's form, with the keyboard alone."""
    if isinstance(question, Cell):
        for box, place in zip(form.get_by_role("combobox").all(), answer, strict=True):
            choose(box, place)
    elif isinstance(question, Choice) and question.boxed:
        choose(form.get_by_role("combobox"), answer)
    elif isinstance(question, Choice):
        first = form.get_by_role("radio").first
        first.press("Space")
        for _ in range(answer):
            form.get_by_role("radio", checked=True).press("ArrowDown")
    else:
        form.get_by_role("spinbutton").fill(str(answer))
    form.get_by_role("button", name="Answer").press("Enter")


def section(visit: Visit) -> Locator:
    return visit.page.locator(".st-key-predict_section")


def unfold(visit: Visit) -> Locator:
    """Open the section; returns its forms."""
    section(visit).get_by_text("Three questions on these settings").click()
    return section(visit).get_by_test_id("stForm")


@pytest.mark.parametrize("name", ASK)
def test_a_wrong_and_a_right_answer(name: str, open_tab: OpenTab) -> None:
    visit = open_tab(f"/{name}")
    forms = unfold(visit)
    expect(forms).to_have_count(3)

    for place, question in enumerate(ASK[name](of(name))[:2]):
        solution = question.solve()
        visit.settle()  # what is drawn anew loses the keys
        fill_in(forms.first, question, solution.right[0] if place else wrong_to(question))
        expect(forms).to_have_count(2 - place)
        expect(section(visit).get_by_text("Right." if place else "Not right.", exact=True)).to_be_visible()
        expect(section(visit).get_by_text(solution.reason, exact=True)).to_be_visible()
    visit.settle()
    violations = Axe().run(visit.page, _IN_THE_SECTION).response["violations"]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in violations] == []


def test_answers_are_there_on_coming_back(open_tab: OpenTab) -> None:
    visit = open_tab("/recurrence")
    question = ASK["recurrence"](of("recurrence"))[0]
    forms = unfold(visit)
    fill_in(forms.first, question, 12)
    expect(forms).to_have_count(2)

    slider(visit, "Sequence length").press("ArrowRight")
    expect(forms).to_have_count(3)
    slider(visit, "Sequence length").press("ArrowLeft")
    expect(forms).to_have_count(2)
    visit.settle()
    go_to(visit, ENTRIES[0])
    expect(visit.page.get_by_text("Predict, then see: 1 of 3 predicted, 0 right.")).to_be_visible()
    visit.page.go_back()
    arrive(visit, "recurrence")
    expect(unfold(visit)).to_have_count(2)
