"""What goes wrong in a class: people who vanish, links and messages that make no sense. Without browsers.

How little the others feel of it, benchmarks/troublemaker.py measures.
"""

import asyncio
import random
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.proto.Common_pb2 import StringArray
from websockets.exceptions import ConnectionClosed

from benchmarks.classroom import SLIDERS, Lesson, move_sliders, teach
from benchmarks.clients import visit
from benchmarks.train_together import TRAIN, WAITING
from benchmarks.troublemaker import PAGES, long_sentences, random_links, wrong_values
from tests.browser.harness import Server, started
from tests.test_together import run
from ui.training_runs import PLACES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Forgets a session two seconds after its connection broke, not two minutes."""
    with started(tmp_path_factory.mktemp("server") / "log.txt", "--server.disconnectedSessionTTL=2") as server:
        yield server


def threads(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:"))


def sessions(server: Server) -> int:
    """How many are connected, by the server's own count."""
    with urllib.request.urlopen(f"{server.base}/_stcore/metrics") as found:
        lines = found.read().decode().splitlines()
    return next(int(float(line.split()[1])) for line in lines if line.startswith("active_sessions "))


async def comes_true(holds: Callable[[], bool], patience: float = 30) -> None:
    async with asyncio.timeout(patience):
        while not holds():
            await asyncio.sleep(0.1)


def test_a_class_moves_sliders_without_an_exception(server: Server) -> None:
    lesson = run(teach([server], people=6, seconds=3))
    assert lesson.exceptions == []
    assert 6 <= len(lesson.redraws) <= lesson.due
    assert 0 < lesson.busy < 0.5  # the people are cheap: what is measured is the server


def test_the_classroom_says_which_goals_are_missed() -> None:
    good = Lesson(30, redraws=[0.05] * 100, memory=[70.0, 200.0, 205.0])
    assert good.missed() == []
    bad = Lesson(30, redraws=[0.05] * 90 + [0.13] * 10, memory=[70.0, 350.0, 380.0], exceptions=["ValueError: x"])
    assert [told.split()[0] for told in bad.missed()] == ["1", "95", "memory", "memory"]
    assert Lesson(100, redraws=[0.3] * 9).missed() == []
    assert Lesson(100, redraws=[0.4] * 9).missed() == ["95 % of the redraws within 400 ms, the goal is 300 ms"]


def test_who_vanishes_leaves_nothing_behind(server: Server) -> None:
    async def lesson() -> None:
        async with visit(server.base, "/training_lab?steps=100&seed=80") as patient:
            await comes_true(lambda: sessions(server) == 1)
            before = threads(server)
            for turn in range(PLACES + 1):  # all places and one who waits
                await vanish_in_training(server.base, turn)
            mover = asyncio.create_task(vanish_in_mid_move(server.base))

            await patient.press(TRAIN)
            await patient.until(lambda: patient.idle and not patient.has(TRAIN))
            assert patient.exceptions == []
            await mover
            await comes_true(lambda: sessions(server) == 1)
            await comes_true(lambda: threads(server) <= before)

    async def vanish_in_training(base: str, turn: int) -> None:
        async with visit(base, f"/training_lab?steps=2000&seed={81 + turn}") as visitor:
            await visitor.press(TRAIN)
            busy = ("progress", "alert")
            await visitor.until(lambda: any(visitor.of_kind(kind) for kind in busy))
            assert turn < PLACES or any(WAITING in text for text in visitor.texts()) or visitor.of_kind("progress")
            visitor.vanish()

    async def vanish_in_mid_move(base: str) -> None:
        async with visit(base, "/positional_encoding") as visitor:
            moving = asyncio.create_task(move_sliders(visitor, Lesson(1), float("inf"), random.Random(0)))
            await asyncio.sleep(1)
            visitor.vanish()
            with pytest.raises((ConnectionError, ConnectionClosed)):
                await moving

    run(lesson())


def test_random_links_long_sentences_and_impossible_values(server: Server) -> None:
    async def lesson() -> None:
        chance = random.Random(3)
        async with visit(server.base, "/") as visitor, visit(server.base, "/self_attention") as bystander:
            before = bystander.texts()
            await random_links(visitor, 40, chance)
            await long_sentences(visitor, 100_000)
            await wrong_values(visitor, chance, pages=[chance.choice(PAGES)])
            assert visitor.exceptions == []
            await bystander.set("d_model", 8)
            await bystander.set("d_model", 6)
            assert (bystander.texts(), bystander.exceptions) == (before, [])

    run(lesson())


@pytest.mark.slow
def test_every_impossible_value_and_a_thousand_random_links(server: Server) -> None:
    async def lesson() -> None:
        async with visit(server.base, "/") as visitor:
            await wrong_values(visitor, random.Random(0))
            await random_links(visitor, 1000, random.Random(0))
            assert visitor.exceptions == []

    run(lesson())


def test_a_forged_message_harms_nobody(server: Server) -> None:
    """A text box is told bytes, a choice of one word two words: no browser sends that. The next page is whole."""

    async def lesson() -> None:
        async with visit(server.base, "/self_attention") as visitor:
            before = visitor.texts()
            await visitor.report(visitor.widget("sentence").id, bytes_value=b"\xff")
            await visitor.report(visitor.widget("stage").id, string_array_value=StringArray(data=["a", "b"]))
            visitor.exceptions.clear()  # Streamlit may complain of the message itself
            await visitor.open("/self_attention")
            assert (visitor.texts(), visitor.exceptions) == (before, [])

    run(lesson())


def test_nothing_of_one_session_is_seen_by_another(server: Server) -> None:
    async def lesson() -> None:
        links = {"alpha beta gamma": 11, "delta epsilon": 12}
        for page in SLIDERS:
            alone = [await look(page, words, seed) for words, seed in links.items()]
            together = await asyncio.gather(*(look(page, words, seed) for words, seed in links.items()))
            assert together == alone
            for shown, others in ((together[0], "epsilon"), (together[1], "gamma")):
                assert others not in shown
        trained = await asyncio.gather(train(21), train(22))
        assert trained[0] != trained[1]

    async def look(page: str, words: str, seed: int) -> str:
        """All that the server sends for a page with one slider moved, but for the session's own mark."""
        async with visit(server.base, f"/{page}?sentence={words.replace(' ', '+')}&seed={seed}") as visitor:
            await visitor.set("d_model", 16)
            assert visitor.exceptions == []
            sent = "".join(sorted(str(element) for element in visitor.shown.values()))
            return re.sub(r'"session\W+\w+', "", sent)

    async def train(seed: int) -> list[str]:
        async with visit(server.base, f"/training_lab?steps=100&seed={seed}") as visitor:
            await visitor.press(TRAIN)
            await visitor.until(lambda: visitor.idle and not visitor.has(TRAIN))
            return [chart.spec for chart in visitor.of_kind("plotly_chart")]

    run(lesson())
