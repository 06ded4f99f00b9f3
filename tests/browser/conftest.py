"""The real app in a real browser: a Streamlit server on a free loopback port and a headless Chromium.

Set CHROMIUM to name the browser. Where none is found these tests are skipped, but fail when CI is set.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = "127.0.0.1"

# Without these Chromium itself looks for updates and the like, and as root it does not start at all.
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM_NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]

# Drawn to the end: connected, a heading (or an exception) on the page, no script running, nothing stale,
# and all of that for 0.4 s: a page may ask for a second run when the first one ends, and a slider sends its value
# 0.2 s after the last key.
SETTLED = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    const still = app?.dataset.testScriptState === 'notRunning'
        && document.querySelector('[data-testid="stMain"] h1, [data-testid="stException"]')
        && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]');
    if (!still) { window.stillSince = undefined; return false; }
    window.stillSince ??= performance.now();
    return performance.now() - window.stillSince > 400;
}"""

Scheme = Literal["light", "dark"]


@dataclass
class Visit:
    """An open page, with what went wrong on it so far."""

    page: Page
    errors: list[str] = field(default_factory=list)  # console errors and uncaught exceptions
    foreign_requests: list[str] = field(default_factory=list)  # addresses that are not on this machine

    def settle(self, timeout: float = 30_000) -> None:
        """Wait until the page is drawn to the end (milliseconds)."""
        self.page.evaluate("() => { window.stillSince = undefined; }")
        self.page.wait_for_function(SETTLED, timeout=timeout)

    def sideways_scroll(self) -> dict[str, int]:
        """How many pixels too wide the window and the main section are; empty when they fit."""
        return self.page.evaluate(
            """() => {
                const main = document.querySelector('[data-testid="stMain"]');
                const over = {
                    window: document.documentElement.scrollWidth - window.innerWidth,
                    main: main.scrollWidth - main.clientWidth,
                };
                return Object.fromEntries(Object.entries(over).filter(([, pixels]) => pixels > 0));
            }"""
        )


class OpenPage(Protocol):
    def __call__(
        self,
        path: str = "/",
        *,
        base: str | None = None,
        color_scheme: Scheme = "light",
        width: int = 1280,
        height: int = 800,
    ) -> Visit: ...


FreshServer = Callable[[], str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def is_healthy(base: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base}/_stcore/health", timeout=1) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def running_server(log_file: Path, patience: float = 60) -> Iterator[str]:
    """The app, started anew and stopped at the end; gives its address.

    Raises:
        RuntimeError: it does not answer within `patience` seconds; the message holds its log.
    """
    port = free_port()
    base = f"http://{LOOPBACK}:{port}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    command += ["--server.headless=true", f"--server.address={LOOPBACK}", f"--server.port={port}"]
    command += ["--server.fileWatcherType=none"]  # all else as .streamlit/config.toml has it
    with log_file.open("w") as log, subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + patience
            while not is_healthy(base):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the app did not start:\n{log_file.read_text()}")
                time.sleep(0.1)
            yield base
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of one server of the app, shared by all tests."""
    with running_server(tmp_path_factory.mktemp("server") / "log.txt") as base:
        yield base


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[FreshServer]:
    """Starts a server that nobody has visited yet and gives its address; stopped when the test ends."""
    with ExitStack() as stack:

        def start() -> str:
            return stack.enter_context(running_server(tmp_path / f"server-{time.monotonic_ns()}.txt"))

        yield start


def find_chromium(playwright: Playwright) -> str | None:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    own = playwright.chromium.executable_path
    return found or (own if Path(own).exists() else None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        executable = find_chromium(playwright)
        if executable is None:
            reason = "no Chromium found: install one, or name it in the variable CHROMIUM"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


def is_foreign(url: str) -> bool:
    address = urlsplit(url)
    return address.scheme in ("http", "https", "ws", "wss") and address.hostname not in (
        LOOPBACK,
        "localhost",
    )


def is_base_path_probe(message: ConsoleMessage) -> bool:
    """Opened at /page, Streamlit's client asks /page/_stcore/... before /_stcore/... to learn where the app's
    root is, and Chromium reports the 404 of the first answer as an error of the page."""
    path = urlsplit(message.location["url"]).path
    return "404" in message.text and re.fullmatch(r"/\w+/_stcore/(health|host-config)", path) is not None


def watch(context: BrowserContext) -> Visit:
    """A new page in `context` whose errors and foreign requests are written down from the start."""
    visit = Visit(context.new_page())
    page = visit.page

    def note_error(message: ConsoleMessage) -> None:
        if message.type == "error" and not is_base_path_probe(message):
            visit.errors.append(f"{message.text} ({message.location['url']})")

    def note(url: str) -> None:
        if is_foreign(url):
            visit.foreign_requests.append(url)

    page.on("console", note_error)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))

    context.on("request", lambda request: note(request.url))
    page.on("websocket", lambda websocket: note(websocket.url))
    return visit


@pytest.fixture
def open_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenPage]:
    """Opens a path of the app in a new browser profile and waits until it is drawn to the end.

    `base` is the server to ask; without it, the one shared by all tests.
    """
    with ExitStack() as stack:

        def open_page(
            path: str = "/",
            *,
            base: str | None = None,
            color_scheme: Scheme = "light",
            width: int = 1280,
            height: int = 800,
        ) -> Visit:
            address = base or request.getfixturevalue("server")
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=color_scheme,
                reduced_motion="reduce",
            )
            stack.callback(context.close)
            visit = watch(context)
            visit.page.goto(address + path)
            visit.settle()
            return visit

        yield open_page
