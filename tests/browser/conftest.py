"""Fixtures of the tests in a real browser.

Set CHROMIUM to name the browser. Where none is found these tests are skipped, but fail when CI is set.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser import harness, reading
from tests.browser.harness import Scheme, Visit

expect.set_options(timeout=30_000)  # as patient as Playwright's other waits, for a busy machine


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


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of one server of the app, shared by all tests."""
    with harness.running_server(tmp_path_factory.mktemp("server") / "log.txt") as base:
        yield base


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Starts a server that nobody has visited yet and gives its address; stopped when the test ends."""
    with ExitStack() as stack:

        def start() -> str:
            log_file = tmp_path / f"server-{time.monotonic_ns()}.txt"
            return stack.enter_context(harness.running_server(log_file))

        yield start


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        executable = harness.find_chromium(playwright)
        if executable is None:
            reason = "no Chromium found: install one, or name it in the variable CHROMIUM"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        browser = harness.launch(playwright, executable)
        yield browser
        browser.close()


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
            address = (base or request.getfixturevalue("server")) + path
            visit = harness.visit(browser, address, color_scheme, width, height)
            stack.callback(visit.page.context.close)
            return visit

        yield open_page


class OpenTab(Protocol):
    def __call__(self, path: str, *, profile: BrowserContext | None = None, width: int = 1280) -> Visit: ...


@pytest.fixture(scope="session")
def profile(browser: Browser) -> BrowserContext:
    """A browser profile shared by many tests: it loads the app's scripts once, which halves the time of a visit."""
    return browser.new_context(reduced_motion="reduce")


@pytest.fixture(scope="session")
def other_profile(browser: Browser) -> BrowserContext:
    """A second one, as another person's browser."""
    return browser.new_context(reduced_motion="reduce")


@pytest.fixture
def open_tab(server: str, profile: BrowserContext) -> Iterator[OpenTab]:
    """Opens a path of the app in a new tab of a shared profile: `reading.quiet_tab`, closed when the test ends."""
    shared = profile
    with ExitStack() as stack:

        def open_tab(path: str, *, profile: BrowserContext | None = None, width: int = 1280) -> Visit:
            return stack.enter_context(reading.quiet_tab(profile or shared, server, path, width))

        yield open_tab
