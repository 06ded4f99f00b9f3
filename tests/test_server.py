"""Settings of the whole server process."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import NewSession

from benchmarks.clients import Visitor, visit
from tests.browser.harness import running_server
from tests.conftest import ROOT
from tests.test_together import run

FIRST_VISITOR = """
from ui import navigation, server
server.prepare()
import numpy
from threadpoolctl import threadpool_info
print(max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"))
"""


def test_numpy_keeps_to_one_thread_whichever_page_is_asked_for_first() -> None:
    # The first page needs no numpy: a server that is asked for it first has not loaded it yet.
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", FIRST_VISITOR]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "1"


LISTENER = """
import socket
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
from ui import server
server.prepare()
calling = socket.create_connection(listening.getsockname())
answering, _ = listening.accept()
print(answering.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a connection need not take over what its listener has")
def test_no_message_waits_for_the_one_before_it() -> None:
    command = [sys.executable, "-c", LISTENER]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "1"


TOLD = """
import sys
import streamlit as st
sys.path.insert(0, {root!r})
from ui import server

def first():
    if st.button("prepare", key="prepare"):
        server.prepare()

def second():
    st.text("second")

st.navigation([st.Page(first, title="First"), st.Page(second, title="Second")]).run()
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """What starts an app, given its script, and returns where it is."""
    with ExitStack() as stack:

        def start(script: str) -> str:
            (tmp_path / "app.py").write_text(script.format(root=str(ROOT)))
            shutil.copytree(ROOT / ".streamlit", tmp_path / ".streamlit")
            return stack.enter_context(running_server(tmp_path / "log.txt", folder=tmp_path))

        yield start


def test_a_browser_is_told_the_same_of_the_app_in_every_run(app: Callable[[str], str]) -> None:
    """As Streamlit tells it, before and after it is changed, on every page and of every session."""
    base = app(TOLD)

    async def look() -> None:
        async with visit(base, "/") as visitor, visit(base, "/") as other:
            told = [note_what_is_told(each) for each in (visitor, other)]
            for path in ("/", "/second", "/"):
                await visitor.open(path, look=False)
                await visitor.rerun()
            await other.rerun()
            before = [list(each) for each in told]
            for each in told:
                each.clear()
            begun = await visitor.press("prepare")
            await visitor.until(lambda: visitor.runs > begun and visitor.idle)
            told[0].clear()
            for _ in range(2):
                for path in ("/", "/second", "/"):
                    await visitor.open(path, look=False)
                    await visitor.rerun()
                await other.rerun()
            assert told == [2 * each for each in before]
            assert before[0][0].custom_theme.dark.primary_color == "#60A5FA"
            assert before[0][1] != before[0][3], "another page"
            assert before[0][0] != before[1][0], "another session"

    run(look())


def note_what_is_told(visitor: Visitor) -> list[NewSession]:
    """What the server tells of the app from now on, at the beginning of each run."""
    told: list[NewSession] = []
    take = visitor._take

    def note(message: ForwardMsg) -> None:
        if message.WhichOneof("type") == "new_session":
            told.append(message.new_session)
        take(message)

    visitor._take = note  # type: ignore[method-assign]
    return told


CLEARED = """
import streamlit as st
from streamlit.runtime.app_session import AppSession
from ui import server
before = AppSession._create_new_session_message
server.prepare()
once = AppSession._create_new_session_message
st.cache_resource.clear()
server.prepare()
print(once is before, AppSession._create_new_session_message is once)
"""


def test_streamlit_is_changed_once_even_where_its_caches_are_cleared() -> None:
    """Any browser may ask for that; what is wrapped again and again ends in a RecursionError."""
    run = subprocess.run(
        [sys.executable, "-c", CLEARED], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.split() == ["False", "True"]


IN_TURN = """
import sys, threading
from time import sleep
import streamlit as st
sys.path.insert(0, {root!r})
from ui import server
server.prepare()

@st.cache_resource
def on():
    return dict(now=0, most=0, lock=threading.Lock())

def take(change):
    with on()["lock"]:
        on()["now"] += change
        on()["most"] = max(on()["most"], on()["now"])

if st.button("work", key="work") or st.button("think", key="think"):
    take(1)
    sleep(0.05 if st.session_state["work"] else 1.5)
    take(-1)
st.text(f"{{on()['most']}} at once")
st.session_state["clicks"] = st.session_state.get("clicks", 0) + st.button("count", key="count")
st.text(f"{{st.session_state['clicks']}} clicks")
"""


@pytest.fixture
def in_turn(app: Callable[[str], str]) -> str:
    return app(IN_TURN)


@pytest.mark.parametrize(("key", "least", "most"), [("work", 1, 2), ("think", 6, 6)])
def test_short_runs_take_turns_and_a_long_one_holds_up_nobody(key: str, least: int, most: int, in_turn: str) -> None:
    async def press(visitor: Visitor) -> None:
        begun = await visitor.press(key)
        await visitor.until(lambda: visitor.runs > begun and visitor.idle)

    async def class_of_six() -> None:
        async with AsyncExitStack() as stack:
            visitors = [await stack.enter_async_context(visit(in_turn, "/")) for _ in range(6)]
            await asyncio.gather(*map(press, visitors))
            await visitors[0].rerun()
            assert least <= int(visitors[0].texts()[0].split()[0]) <= most
            assert [visitor.exceptions for visitor in visitors] == [[]] * 6

    run(class_of_six())


def test_two_clicks_while_others_are_served_are_both_heard(in_turn: str) -> None:
    async def click() -> None:
        async with AsyncExitStack() as stack:
            visitors = [await stack.enter_async_context(visit(in_turn, "/")) for _ in range(4)]
            for visitor in visitors[1:]:
                await visitor.press("think")
            begun = await visitors[0].press("count")
            await visitors[0].press("work")
            await visitors[0].until(lambda: visitors[0].runs > begun and visitors[0].idle)
            await visitors[0].rerun()
            assert visitors[0].texts()[1] == "1 clicks"

    run(click())


TWO_PARTS = """
import sys
from time import sleep
import streamlit as st
from streamlit.runtime import Runtime
sys.path.insert(0, {root!r})
from ui import server
server.prepare()

def part(name):
    count = st.session_state[f"{{name}} count"] = st.session_state.get(f"{{name}} count", -1) + 1
    st.button(name, key=name)
    if count and name == "a":  # the loop has other things to do while this run comes to its end
        for _ in range(20):
            Runtime.instance()._get_async_objs().eventloop.call_soon_threadsafe(sleep, 0.002)
            sleep(0.001)
    st.text(f"{{name}} {{count}}")

for name in "ab":
    st.fragment(lambda name=name: part(name), key=name)()
"""


def test_a_part_that_was_drawn_is_shown_although_the_next_is_asked_for(app: Callable[[str], str]) -> None:
    base = app(TWO_PARTS)

    async def press_both() -> None:
        async with visit(base, "/") as visitor:
            for count in range(1, 41):
                await visitor.press("a")
                await asyncio.sleep(count / 1000)
                begun = await visitor.press("b")
                await visitor.until(lambda: visitor.runs > begun and visitor.idle)  # noqa: B023
                await asyncio.sleep(0.1)
                assert visitor.texts() == [f"a {count}", f"b {count}"]

    run(press_both())


LATE_END = """
import sys
from time import sleep
import streamlit as st
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
sys.path.insert(0, {root!r})
from ui import server
server.prepare()

@st.cache_resource
def end_late():
    end = ScriptRunner._on_script_finished
    ScriptRunner._on_script_finished = lambda *args: (sleep(0.1), end(*args))

def part(name):
    count = st.session_state[f"{{name}} count"] = st.session_state.get(f"{{name}} count", -1) + 1
    st.button(name, key=name)
    st.text(f"{{name}} {{count}}")

end_late()
for name in "ab":
    st.fragment(lambda name=name: part(name), key=name)()
"""


def test_parts_stay_apart_where_the_page_is_asked_for_while_one_comes_to_its_end(app: Callable[[str], str]) -> None:
    """The page's run then takes over the thread of the part's."""
    base = app(LATE_END)

    async def press() -> None:
        async with visit(base, "/") as visitor:
            await visitor.press("a")
            await visitor.until(lambda: visitor.texts()[0] == "a 1")
            await visitor.rerun()
            for name, texts in (("a", ["a 3", "b 1"]), ("b", ["a 3", "b 2"])):
                begun = await visitor.press(name)
                await visitor.until(lambda: visitor.runs > begun and visitor.idle)  # noqa: B023
                assert visitor.texts() == texts

    run(press())
