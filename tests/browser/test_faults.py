"""The server dies while pages are open, and is started again at the same address; or it is held up for a while."""

import os
import signal
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import harness
from tests.browser.reading import arrive, assert_state, redrawn, slider, state

WIDTH = "Model width d_model"
OPEN = {
    "multi_head_attention": ("all_heads", "?d_model=24&heads=1&causal=true&sentence=**dog**+bites+man"),
    "transformer_block": ("stages", "?seq_len=7&residual=false&seed=5"),
}


def test_every_page_comes_back_by_itself_with_its_settings(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(harness.started(tmp_path / "first.txt"))
        visits = {
            name: harness.visit(browser, f"{server.base}/{name}{query}", "light", 1280, 800)
            for name, (_, query) in OPEN.items()
        }
        for name, visit in visits.items():
            stack.callback(visit.page.context.close)
            with redrawn(visit, OPEN[name][0]):
                slider(visit, WIDTH).press("ArrowRight")
        before = {name: state(visit) for name, visit in visits.items()}

        server.kill()
        for visit in visits.values():
            visit.page.wait_for_function("document.querySelector('[data-testid=\"stApp\"]') !== null")
            slider(visit, WIDTH).press("ArrowLeft")  # somebody goes on working, and nobody hears it
            slider(visit, WIDTH).press("ArrowRight")
        with pytest.raises(AssertionError):
            assert harness.is_healthy(server.base)
        port = int(server.base.rpartition(":")[2])
        stack.enter_context(harness.started(tmp_path / "second.txt", port=port))

        for name, visit in visits.items():
            visit.page.wait_for_function(
                "document.querySelector('[data-testid=\"stApp\"]').dataset.testConnectionState === 'CONNECTED'",
                timeout=60_000,
            )
            arrive(visit, name)
            assert_state(visit, before[name])
            with redrawn(visit, OPEN[name][0]):
                slider(visit, WIDTH).press("ArrowRight")
            assert visit.page.get_by_test_id("stException").count() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there a process cannot be held up")
def test_what_is_opened_while_the_server_is_busy_is_not_left_empty(browser: Browser, tmp_path: Path) -> None:
    """The page itself asks for its late parts meanwhile, and is answered together with the click."""
    with harness.started(tmp_path / "log.txt") as server:
        visit = harness.visit(browser, f"{server.base}/self_attention?seq_len=62&d_model=60", "light", 1280, 800)
        with closing(visit.page.context):
            slider(visit, WIDTH).press("ArrowLeft")
            visit.page.wait_for_function("document.querySelector('[aria-busy=\"true\"]') && !sliderLine.waiting")
            os.kill(server.process.pid, signal.SIGSTOP)
            try:
                visit.page.get_by_text("The numbers", exact=True).click()
                visit.page.wait_for_function("sliderLine.waiting", timeout=5_000)
                visit.page.get_by_text("Take it away", exact=True).click()
                visit.page.wait_for_timeout(200)
            finally:
                os.kill(server.process.pid, signal.SIGCONT)
            visit.settle()
            expect(visit.page.get_by_text("Row sums and entropy", exact=True)).to_be_attached()
            expect(visit.page.get_by_role("button", name="Script (.py)")).to_be_attached()
