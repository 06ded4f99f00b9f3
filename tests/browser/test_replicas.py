"""Two replicas behind deploy/haproxy.cfg as it is shipped: a visitor stays with one, and is moved when it dies.

HAProxy asks a name server where the replicas are, as it asks Docker's; here a small one answers.
"""

import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser

from tests.browser import harness
from tests.browser.harness import LOOPBACK, ROOT, Server, Visit, started
from tests.browser.reading import arrive, assert_state, redrawn, slider, state
from tests.browser.test_take_away import content, open_box, saved

ADDRESSES = ("127.0.0.1", "127.0.0.2")  # of the replicas, which all have the same port, as containers do
SECRET = {"STREAMLIT_SERVER_COOKIE_SECRET": "of the tests"}


@dataclass
class House:
    """The balancer's address, and what is behind it by the balancer's cookie for it."""

    base: str
    replicas: dict[str, Server]


@pytest.fixture(scope="module")
def haproxy() -> str:
    found = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        reason = "no HAProxy found: install it (Debian: apt-get install haproxy)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture
def house(haproxy: str, tmp_path: Path) -> Iterator[House]:
    """One replica, and a second one that comes later, as when a class grows."""
    port, entrance = harness.free_port(), harness.free_port()
    base, known = f"http://{LOOPBACK}:{entrance}", [ADDRESSES[0]]
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(started(tmp_path / f"{address}.txt", address=address, port=port, more=SECRET))
            for address in ADDRESSES
        )
        resolver = stack.enter_context(name_server(known))
        stack.enter_context(balancer(haproxy, tmp_path / "haproxy.txt", entrance, port, resolver))
        replicas = {given_cookie(base): first}
        known.append(ADDRESSES[1])
        deadline = time.monotonic() + 20
        while (cookie := given_cookie(base)) in replicas:
            assert time.monotonic() < deadline, "the balancer does not find the second replica"
            time.sleep(0.1)
        yield House(base, replicas | {cookie: second})


def given_cookie(base: str) -> str:
    """The replica that a new visitor is given."""
    with urlopen(f"{base}/_stcore/health") as found:
        cookies = SimpleCookie("; ".join(found.headers.get_all("Set-Cookie")))
    return cookies["replica"].value


def cookie_of(visit: Visit) -> str:
    return next(cookie["value"] for cookie in visit.page.context.cookies() if cookie["name"] == "replica")


def test_a_visitor_whose_replica_dies_is_moved_and_sees_the_same(house: House, browser: Browser) -> None:
    address = f"{house.base}/self_attention?seq_len=7&causal=true&sentence=dog+bites+man&seed=5"
    visit = harness.visit(browser, address, "light", 1280, 800)
    with redrawn(visit, "map"):
        slider(visit, "Model width d_model").press("ArrowRight")
    was, cookie = state(visit), cookie_of(visit)

    with visit.page.expect_websocket(timeout=60_000):  # the page asks for a new connection by itself
        house.replicas[cookie].kill()
    arrive(visit, "self_attention")

    assert_state(visit, was)
    assert cookie_of(visit) in house.replicas.keys() - {cookie}
    with redrawn(visit, "map"):
        slider(visit, "Model width d_model").press("ArrowRight")
    open_box(visit)
    assert compile(content(saved(visit, "Script (.py)")), "script", "exec")
    visit.page.context.close()


def test_a_file_is_fetched_from_the_replica_that_has_it(house: House, browser: Browser) -> None:
    visit = harness.visit(browser, f"{house.base}/self_attention", "light", 1280, 800)
    open_box(visit)
    download = saved(visit, "Script (.py)")
    assert compile(content(download), "script", "exec")

    (other,) = house.replicas.keys() - {cookie_of(visit)}
    with pytest.raises(HTTPError, match="404"):
        urlopen(Request(download.url, headers={"Cookie": f"replica={other}"}))
    visit.page.context.close()


@contextmanager
def balancer(haproxy: str, log_file: Path, entrance: int, port: int, resolver: int) -> Iterator[None]:
    """HAProxy with the shipped configuration; gives way when it has found a replica."""
    told = {"LISTEN": f"{LOOPBACK}:{entrance}", "REPLICAS": f"app:{port}", "RESOLVER": f"{LOOPBACK}:{resolver}"}
    command = [haproxy, "-f", str(ROOT / "deploy" / "haproxy.cfg"), "-db"]
    with log_file.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | told) as process:
        try:
            deadline = time.monotonic() + 20
            while not harness.is_healthy(f"http://{LOOPBACK}:{entrance}"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"HAProxy did not start:\n{log_file.read_text()}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


@contextmanager
def name_server(addresses: Sequence[str]) -> Iterator[int]:
    """Answers every question with these addresses; gives its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((LOOPBACK, 0))
        listening.settimeout(0.2)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    question, asker = listening.recvfrom(4096)
                except TimeoutError:
                    continue
                listening.sendto(answer(question, addresses), asker)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            thread.join()


def answer(question: bytes, addresses: Sequence[str]) -> bytes:
    """RFC 1035, 4.1: the question back, and for one about IPv4 (type 1) an address record for each."""
    end = question.index(b"\0", 12) + 5  # name, type, class
    wanted = addresses if question[end - 4 : end - 2] == b"\0\1" else ()
    records = [struct.pack(">HHHIH", 0xC00C, 1, 1, 1, 4) + socket.inet_aton(address) for address in wanted]
    return question[:2] + struct.pack(">HHHHH", 0x8180, 1, len(records), 0, 0) + question[12:end] + b"".join(records)
