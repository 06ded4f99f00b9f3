"""The real app in a real browser: a Streamlit server on a free loopback port and a headless Chromium."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, ViewportSize

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

# A busy server takes a while until it begins with what it was asked for, and meanwhile no script runs.
NOTE_WHAT_IS_SENT = """
    window.messages = 0;
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (...message) {
        this.listens ??= !this.addEventListener('message', () => { window.unanswered = false; });
        window.unanswered = true;
        window.messages += 1;
        return send.apply(this, message);
    };
"""

# Drawn to the end: a heading (or an exception) on the page, nothing unanswered, no script running, nothing stale, late
# or yet to be loaded, and all of that for 0.6 s - a page may ask for a second run when the first one ends, and a slider
# says that it rests, upon which the link is written, 0.4 s after the last key.
SETTLED = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    const still = app?.dataset.testScriptState === 'notRunning' && !window.unanswered
        && document.querySelector('[data-testid="stMain"] h1, [data-testid="stException"]')
        && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"], [aria-busy="true"]');
    if (!still) { window.stillSince = undefined; return false; }
    window.stillSince ??= performance.now();
    return performance.now() - window.stillSince > 600;
}"""

TOO_WIDE = """() => {
    const main = document.querySelector('[data-testid="stMain"]');
    const over = {
        window: document.documentElement.scrollWidth - window.innerWidth,
        main: main.scrollWidth - main.clientWidth,
    };
    return Object.fromEntries(Object.entries(over).filter(([, pixels]) => pixels > 0));
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
        return self.page.evaluate(TOO_WIDE)


def visit(browser: Browser, address: str, color_scheme: Scheme, width: int, height: int, **more: Any) -> Visit:
    """Open an address in a new browser profile and wait until it is drawn to the end. Close `page.context` after.

    Args:
        width, height: of the window, in CSS pixels. more: further options of the profile.
    """
    viewport = ViewportSize(width=width, height=height)
    context = browser.new_context(viewport=viewport, color_scheme=color_scheme, reduced_motion="reduce", **more)
    opened = watch(context)
    opened.page.goto(address)
    opened.settle()
    return opened


def watch(context: BrowserContext) -> Visit:
    """A new page in `context` whose errors and foreign requests are written down from the start."""
    watched = Visit(context.new_page())
    watched.page.add_init_script(NOTE_WHAT_IS_SENT)

    def note_error(message: ConsoleMessage) -> None:
        if message.type == "error" and not is_base_path_probe(message):
            watched.errors.append(f"{message.text} ({message.location['url']})")

    def note_address(url: str) -> None:
        if is_foreign(url):
            watched.foreign_requests.append(url)

    watched.page.on("console", note_error)
    watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
    watched.page.on("websocket", lambda websocket: note_address(websocket.url))
    context.on("request", lambda request: note_address(request.url))
    return watched


def is_foreign(url: str) -> bool:
    address = urlsplit(url)
    over_network = address.scheme in ("http", "https", "ws", "wss")
    return over_network and address.hostname not in (LOOPBACK, "localhost")


def is_base_path_probe(message: ConsoleMessage) -> bool:
    """Opened at /page, Streamlit's client asks /page/_stcore/... before /_stcore/... to learn where the app's
    root is, and Chromium reports the 404 of the first answer as an error of the page."""
    path = urlsplit(message.location["url"]).path
    return "404" in message.text and re.fullmatch(r"/\w+/_stcore/(health|host-config)", path) is not None


def find_chromium(playwright: Playwright) -> str | None:
    """The browser named by CHROMIUM, one of the system's, or the one that Playwright installed; None without any."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    own = playwright.chromium.executable_path
    return found or (own if Path(own).exists() else None)


def launch(playwright: Playwright, executable: str) -> Browser:
    return playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)


@dataclass
class Server:
    """The app, running as a process of its own."""

    base: str  # its address
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it at once, without a goodbye, as a power cut would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def started(
    log_file: Path,
    *options: str,
    address: str = LOOPBACK,
    port: int | None = None,
    more: Mapping[str, str] | None = None,
    patience: float = 60,
    folder: Path = ROOT,
) -> Iterator[Server]:
    """The app, started anew and stopped at the end.

    Args:
        options: more of Streamlit's. port: a free one where None. more: environment variables on top.

    Args:
        folder: where its app.py and .streamlit stand.

    Raises:
        RuntimeError: it does not answer within `patience` seconds; the message holds its log.
    """
    port = port or free_port()
    base = f"http://{address}:{port}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    command += ["--server.headless=true", f"--server.address={address}", f"--server.port={port}"]
    command += ["--server.fileWatcherType=none"]  # all else as .streamlit/config.toml has it
    with (
        log_file.open("w") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=os.environ | dict(more or {})) as process,
    ):
        try:
            deadline = time.monotonic() + patience
            while not is_healthy(base):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the app did not start:\n{log_file.read_text()}")
                time.sleep(0.1)
            yield Server(base, process)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def running_server(log_file: Path, patience: float = 60, *, folder: Path = ROOT) -> Iterator[str]:
    """Like `started`; gives the address alone."""
    with started(log_file, patience=patience, folder=folder) as server:
        yield server.base


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
