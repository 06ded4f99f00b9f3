"""Several people in the training lab at once, without browsers; benchmarks/train_together.py has thirty."""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any, TypeVar

import pytest

from benchmarks.clients import Visitor, events, visit
from benchmarks.train_together import TRAIN, WAITING, most_at_once, train_together
from tests.browser.harness import running_server
from ui.training_runs import PLACES

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own: the browser tests leave an event loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("server") / "log.txt") as base:
        yield base


def test_a_visitor_sees_what_the_page_shows(server: str) -> None:
    async def look() -> None:
        async with visit(server, "/self_attention?seq_len=7&causal=true") as visitor:
            assert visitor.value("seq_len") == 7
            assert visitor.has("d_model")
            assert not visitor.has("no such key")
            before = [chart.spec for chart in visitor.of_kind("plotly_chart")]
            assert await visitor.set("d_model", 16) > 0
            assert visitor.query == "seq_len=7&causal=true&d_model=16"
            assert [chart.spec for chart in visitor.of_kind("plotly_chart")] != before
            assert any("The largest weight" in text for text in visitor.texts())
            assert visitor.exceptions == []
            with pytest.raises(KeyError, match="no such key"):
                await visitor.press("no such key")

    run(look())


@pytest.mark.parametrize(
    "report",
    [
        "",
        "[]",
        "{",
        '[{"event": "moved"}]',
        '[{"event": "moved", "value": 7}]',
        '[{"event": "moved", "value": {"name": "seq_len", "value": 9}}]',
        '[{"event": "moved", "value": {"name": "seq_len", "value": "<b>", "number": 1}}]',
        '[{"event": "moved", "value": {"name": "seq_len", "value": [9], "number": 1}}]',
        '[{"event": "moved", "value": {"name": "seq_len", "value": NaN, "number": 1}}]',
        '[{"event": "moved", "value": {"name": "seq_len", "value": 9, "number": "1"}}]',
        '[{"event": "moved", "value": {"name": "no slider", "value": 9, "number": 1}}]',
        '[{"event": "nothing", "value": {"name": "seq_len", "value": 9, "number": 1}}]',
    ],
)
def test_nonsense_from_a_live_slider_is_no_move(report: str, server: str) -> None:
    async def say() -> None:
        async with visit(server, "/self_attention?seq_len=7") as visitor:
            await visitor.report(events(visitor.widget("wire part 1")), json_trigger_value=report)
            assert visitor.value("seq_len") == 7
            await visitor.set("seq_len", 1e9)
            assert (visitor.value("seq_len"), visitor.query) == (64, "seq_len=64")
            assert visitor.exceptions == []

    run(say())


def test_a_class_that_trains_at_once_leaves_the_rest_of_the_app_usable(server: str) -> None:
    lesson = run(train_together(server, seeds=range(5), steps=100, patience=60))
    assert lesson.exceptions == []
    assert lesson.finished == 5
    assert lesson.at_once <= PLACES
    assert lesson.waited > 0
    assert median(lesson.redraws) < 2  # how quick, the benchmark says: this machine may have other things to do


def test_whoever_leaves_makes_room(server: str) -> None:
    def waits(visitor: Visitor) -> bool:
        return any(WAITING in text for text in visitor.texts())

    def trains(visitor: Visitor) -> bool:
        return visitor.of_kind("progress") != []

    async def start(visitor: Visitor) -> None:
        await visitor.press(TRAIN)
        await visitor.until(lambda: trains(visitor))

    async def lesson() -> None:
        async with visit(server, "/training_lab?steps=100&seed=70") as patient:
            async with visit(server, "/training_lab?steps=2000&seed=71") as one:
                async with visit(server, "/training_lab?steps=2000&seed=72") as other:
                    await start(one)
                    await start(other)
                    await patient.press(TRAIN)
                    await patient.until(lambda: waits(patient))
                await patient.until(lambda: trains(patient))
                assert trains(one), "one of the two places was free, not both"
            await patient.until(lambda: patient.idle and not patient.has(TRAIN))
            assert patient.exceptions == []

    run(lesson())


def test_most_at_once() -> None:
    assert most_at_once([]) == 0
    assert most_at_once([(0, 1), (2, 3)]) == 1
    assert most_at_once([(0, 2), (1, 3), (2.5, 4)]) == 2
    assert most_at_once([(0, 9), (1, 3), (2, 4)]) == 3
