"""Settings of the whole server process."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

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
from streamlit.proto.NewSession_pb2 import Config, CustomThemeConfig
from streamlit.runtime import app_session
def told():
    messages = [CustomThemeConfig(), CustomThemeConfig(), Config()]
    app_session._populate_theme_msg(messages[0])
    app_session._populate_theme_msg(messages[1], "theme.dark")
    app_session._populate_config_msg(messages[2])
    return messages
before = told()
from ui import server
server.prepare()
assert [each.primary_color for each in before[:2]] == ["", "#60A5FA"] and before[0].base_font_size == 17
print(told() == before, told() == before)
"""


def test_a_browser_is_told_the_same_of_the_theme_in_every_run() -> None:
    run = subprocess.run([sys.executable, "-c", TOLD], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["True", "True"]


CLEARED = """
import streamlit as st
from streamlit.runtime import app_session
from ui import server
before = app_session._populate_theme_msg
server.prepare()
once = app_session._populate_theme_msg
st.cache_resource.clear()
server.prepare()
print(once is before, app_session._populate_theme_msg is once)
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
def in_turn(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "app.py").write_text(IN_TURN.format(root=str(ROOT)))
    shutil.copytree(ROOT / ".streamlit", tmp_path / ".streamlit")
    with running_server(tmp_path / "log.txt", folder=tmp_path) as base:
        yield base


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
