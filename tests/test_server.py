"""Settings of the whole server process."""

import os
import subprocess
import sys

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
