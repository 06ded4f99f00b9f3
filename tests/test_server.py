"""Settings of the whole server process."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

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
