"""How fast the concept pages draw again, against the least that a Streamlit app with one map can do.

    python -m benchmarks.redraw            # all of it, about five minutes
    python -m benchmarks.redraw --quick --check recurrence

The floor is an app of one slider (`st.slider`) and one heatmap of the same size, with the project's own server
settings (`.streamlit/config.toml` and `ui.server`). Floor and pages are measured in turns, in the same headless browser
and the same run, so that what else the machine does falls on both alike; a slow machine makes both slow, and the ratio
stays.

- key: from the key's arrival in the browser until the page's first figure is another one on the screen: what its
  chart has drawn (the pictures of its maps, the paths of its curves, the words of the diagram) differs in the moment
  before a frame is painted.
- drag: the slider's thumb is dragged over its whole range in 1.2 seconds; the different pictures of the map that come
  on the screen meanwhile are counted.
- server: how long the page's script works on a move, for one client at a time without a browser, in the processor's
  time: for the first figure, for which the browser asks while the slider moves; with all else that is on the screen,
  for which it asks when it rests; and for the whole page, of which the rest follows when nothing has moved for a while.
- bytes: what the browser receives over its websocket for one redraw of the whole page.
- open: from asking for the page, on a server and in a browser that have shown it before, to its first figure.

The recurrence page has no map: its floor is a map of as many rows and columns as its sequence has tokens, up to 64.
A browser is found as in the browser tests.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from benchmarks.clients import visit
from tests.browser import harness

FLOOR = '''"""The floor: one slider and one heatmap."""
import sys
import numpy as np
import plotly.graph_objects as go
import streamlit as st

sys.path.insert(0, {root!r})
from ui import server
server.prepare()
st.set_page_config(layout="wide")
rows, columns = int(st.query_params.get("rows", 5)), int(st.query_params.get("columns", 5))
n = st.slider("Sequence length", 2, max(rows, 64), rows, key="seq_len")
columns = n if columns == rows else columns
x = np.random.default_rng(0).standard_normal((n, columns)).astype(np.float32)
shares = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
map_ = go.Figure(go.Heatmap(z=shares, zmin=0, zmax=1, colorscale="Viridis"), layout={{"height": 480}})
st.plotly_chart(map_, key="map", alt="A map")
'''
# The app, with the processor's time of each run in its log: of the thread that runs the script or parts of it, from its
# beginning to its end, with what Streamlit does there before and after.
CLOCKED = """import sys
from time import thread_time
sys.path.insert(0, {root!r})
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from ui import navigation, server
server.prepare()
if not hasattr(ScriptRunner, "whole"):
    ScriptRunner.whole = ScriptRunner._run_script_thread
    def clocked(self):
        begun = thread_time()
        self.whole()
        sys.stdout.write(f"ran {{1000 * (thread_time() - begun):.2f}}\\n")  # in one piece
        sys.stdout.flush()
    ScriptRunner._run_script_thread = clocked
navigation.build().run()
"""
TOLERANCE = 1.25  # --check: machines are noisy
REST_MS = 2500  # between two moves: what is not on the screen follows when nothing has moved for 1.5 s
WINDOW = ViewportSize(width=1280, height=900)


class Place(NamedTuple):
    """A page as it opens and at its largest, the figure to watch, and the size of its map in both states."""

    name: str
    figure: str
    largest: str
    rows_columns: tuple[int, int]
    largest_rows_columns: tuple[int, int]


PLACES = (
    Place("recurrence", "dependencies", "seq_len=256&d_model=128", (12, 12), (64, 64)),
    Place("self_attention", "map", "seq_len=64&d_model=64&stage=all", (5, 5), (64, 64)),
    Place("positional_encoding", "encoding", "seq_len=128&d_model=128", (20, 16), (128, 128)),
    Place("multi_head_attention", "all_heads", "seq_len=64&d_model=64&heads=64", (6, 6), (64, 64)),
    Place(
        "transformer_block",
        "diagram",
        "seq_len=64&d_model=64&heads=64&d_ff=256&blocks=24&compare=true",
        (5, 8),
        (64, 64),
    ),
)

# What the chart has drawn, as text: the pictures of its maps, or else the paths of its curves and what stands beside.
WATCH = """key => {
    const drawn = () => {
        const svg = document.querySelectorAll(`.st-key-${key} .js-plotly-plot .main-svg`);
        const all = query => [...svg].flatMap(each => [...each.querySelectorAll(query)]);
        const maps = all('image').map(each => each.getAttribute('href') || each.getAttribute('xlink:href'));
        if (maps.length) return maps.join();
        const paths = all('.trace path').slice(0, 300).map(each => each.getAttribute('d'));
        return [...paths, ...all('.annotation-text').map(each => each.textContent)].join();
    };
    const watch = window.watch = { pictures: new Set(), last: drawn(), changed: false };
    const isMap = watch.last.includes('data:image');
    new MutationObserver(() => { watch.changed = true; }).observe(document.body, { childList: true, subtree: true,
        characterData: true, attributes: true, attributeFilter: isMap ? ['href', 'xlink:href'] : ['d'] });
    addEventListener('keydown', event => { watch.key = performance.now(); watch.repainted = undefined; }, true);
    const look = now => {
        if (watch.changed) {
            watch.changed = false;
            const picture = drawn();
            if (picture && picture !== watch.last) {
                watch.last = picture;
                watch.pictures.add(picture);
                watch.repainted ??= performance.now();
            }
        }
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
REPAINTED = "() => watch.key !== undefined && watch.repainted !== undefined"
FIRST_FIGURE = """() => document.querySelector('.js-plotly-plot .main-svg :is(image, .trace path, .shapelayer path)')"""
ALL_DRAWN = """() => document.querySelector('[aria-busy="false"]') && !document.querySelector('[aria-busy="true"]')"""
IDLE = """() => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === 'notRunning'"""


class Tab:
    """A page in a tab of its own, with what its websocket receives."""

    def __init__(self, browser: Browser, address: str, figure: str) -> None:
        self.context = browser.new_context(viewport=WINDOW, reduced_motion="reduce")
        self.page: Page = self.context.new_page()
        self.received = 0
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.page.goto(address)
        self.page.wait_for_selector(f".st-key-{figure} .js-plotly-plot .main-svg", timeout=120_000)
        self.rest()
        self.page.evaluate(WATCH, figure)
        self.slider = self.page.get_by_role("slider", name="Sequence length")
        self._forth = False

    def _count(self, frame: str | bytes) -> None:
        self.received += len(frame)

    def rest(self) -> None:
        """Wait until nothing runs any more."""
        self.page.wait_for_timeout(REST_MS)
        self.page.wait_for_function(IDLE, timeout=120_000)
        self.page.wait_for_timeout(100)

    def press(self) -> tuple[float, int]:
        """One key press, to and fro in turns: milliseconds until the map is repainted, and the bytes received."""
        self.slider.focus()
        before = self.received
        self.page.evaluate("() => { watch.key = watch.repainted = undefined; }")
        self.page.keyboard.press("ArrowRight" if self._forth else "ArrowLeft")
        self._forth = not self._forth
        self.page.wait_for_function(REPAINTED, timeout=120_000)
        took = self.page.evaluate("() => watch.repainted - watch.key")
        self.rest()
        return took, self.received - before

    def drag(self, seconds: float = 1.2) -> int:
        """Different pictures while the thumb goes over the whole range and is let go."""
        self.slider.press("Home")
        self.rest()
        self.slider.scroll_into_view_if_needed()
        thumb, track = self.slider.bounding_box(), self.slider.bounding_box()
        streamlits = self.page.get_by_test_id("stSlider")
        if streamlits.get_by_role("slider", name="Sequence length").count():  # there the input is the thumb alone
            track = streamlits.first.bounding_box()
        assert thumb is not None
        assert track is not None
        y, left, right = thumb["y"] + thumb["height"] / 2, track["x"] + 8, track["x"] + track["width"] - 8
        self.page.mouse.move(left, y)
        self.page.mouse.down()
        self.page.evaluate("() => { watch.pictures = new Set(); }")
        start = perf_counter()
        while (share := (perf_counter() - start) / seconds) < 1:  # as often as the browser takes it
            self.page.mouse.move(left + (right - left) * share, y)
        self.page.mouse.move(right, y)
        self.page.mouse.up()
        self.page.wait_for_timeout(100)
        count = int(self.page.evaluate("() => watch.pictures.size"))
        self.rest()
        return count


def opening(browser: Browser, address: str, times: int) -> float:
    """Milliseconds from asking for a page to its first figure; the median of some times in one profile."""
    context = browser.new_context(viewport=WINDOW, reduced_motion="reduce")
    took = []
    for _ in range(times + 1):  # the first one fills the browser's cache
        page = context.new_page()
        page.goto(address, wait_until="commit")
        page.wait_for_function(FIRST_FIGURE, timeout=120_000)
        took.append(page.evaluate("() => performance.now()"))
        page.wait_for_timeout(REST_MS)
        page.close()
    context.close()
    return median(took[1:])


@contextmanager
def a_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        executable = harness.find_chromium(playwright)
        if executable is None:
            sys.exit("no Chromium found: install one, or name it in the variable CHROMIUM")
        yield harness.launch(playwright, executable)


def on_screen(folder: Path, places: Sequence[Place]) -> dict[str, list[str]]:
    """Of each page, the parts that are on the screen when it opens. folder: for a log."""
    found = {}
    with harness.running_server(folder / "seen.txt") as base, a_browser() as browser:
        page = browser.new_page(viewport=WINDOW, reduced_motion="reduce")
        for place in places:
            page.goto(f"{base}/{place.name}")
            page.wait_for_function(ALL_DRAWN, timeout=120_000)
            found[place.name] = list(page.evaluate("() => [...sliderLine.seen().keys()]"))
    return found


async def move_to_and_fro(base: str, path: str, moves: int, sees: Sequence[str] | None) -> None:
    """A client without a browser moves the sequence length."""
    async with visit(base, path) as visitor:
        visitor.sees, length = sees, int(visitor.value("seq_len"))
        for move in range(moves):
            await visitor.set("seq_len", length - 1 + move % 2)
        assert visitor.exceptions == [], visitor.exceptions


class ServerTimes(NamedTuple):
    """Median milliseconds of a move: until the first figure, for all that is on the screen, and for the whole page."""

    first: float
    seen: float
    whole: float


def server_times(
    folder: Path, places: Sequence[Place], moves: int, seen: dict[str, list[str]]
) -> dict[str, ServerTimes]:
    """Of each page, for moves of the sequence length.

    Args:
        folder: an empty one, for the app and its log. seen: of each page, the parts on the screen.
    """
    log, found = folder / "log.txt", {}
    (folder / "app.py").write_text(CLOCKED.format(root=str(harness.ROOT)))
    shutil.copytree(harness.ROOT / ".streamlit", folder / ".streamlit")

    def took(base: str, name: str, sees: Sequence[str] | None) -> tuple[float, float]:
        asyncio.run(move_to_and_fro(base, f"/{name}", moves, sees))
        runs = [float(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("ran ")]
        first, rest = np.reshape(runs[-2 * moves :], (moves, 2)).T  # a move, and when it is at rest
        return median(first), median(first + rest)

    with harness.running_server(log, folder=folder) as base:
        for place in places:
            _, whole = took(base, place.name, None)
            found[place.name] = ServerTimes(*took(base, place.name, seen[place.name]), whole)
    return found


class Report:
    """Prints a line for each measure and remembers which goals were missed by more than the tolerance."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def line(self, what: str, shown: str, value: float, goal: float, *, at_least: bool = False) -> None:
        ratio = goal / max(value, 1e-9) if at_least else value / goal
        verdict = "ok" if ratio <= 1 else "nearly" if ratio <= TOLERANCE else "MISSED"
        if verdict == "MISSED":
            self.missed.append(what)
        print(f"  {what:<34}{shown:<46}{'≥' if at_least else '≤'} {goal:g}  {verdict}", flush=True)


def measure(place: Place, browser: Browser, base: str, floor: str, quick: bool, report: Report) -> None:
    """All measures in the browser of one page."""
    presses = 5 if quick else 15
    path = f"{base}/{place.name}"
    for state, query, (rows, columns), goal, bytes_goal in (
        ("defaults", "", place.rows_columns, 1.3, 60),
        ("largest", f"?{place.largest}", place.largest_rows_columns, 2.5, 600),
    ):
        ours = Tab(browser, path + query, place.figure)
        theirs = Tab(browser, f"{floor}/?rows={rows}&columns={columns}", "map")
        pairs = [(ours.press(), theirs.press()) for _ in range(presses + 2)][2:]
        key, least = median(mine[0] for mine, _ in pairs), median(its[0] for _, its in pairs)
        kilobytes = median(mine[1] for mine, _ in pairs) / 1000
        shown = f"{key:.0f} ms, floor {least:.0f} ms, ratio {key / least:.2f}"
        report.line(f"key to picture, {state}", shown, key / least, goal)
        report.line(f"KB for a redraw, {state}", f"{kilobytes:.0f} KB", kilobytes, bytes_goal)
        if state == "defaults":
            counts = [ours.drag() for _ in range(1 if quick else 3)]
            pictures = median(counts)
            shown = f"{pictures:.0f}, floor {theirs.drag()}"
            report.line("pictures in a drag of 1.2 s", shown, pictures, 15, at_least=True)
        ours.context.close()
        theirs.context.close()
    mine, least = (opening(browser, address, 3 if quick else 7) for address in (path, f"{floor}/"))
    shown = f"{mine:.0f} ms, floor {least:.0f} ms, ratio {mine / least:.2f}"
    report.line("opening to first figure", shown, mine / least, 1.3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redraw", description=(__doc__ or "").split("\n")[0])
    names = [place.name for place in PLACES]
    parser.add_argument("pages", nargs="*", metavar="page", help=f"some of {', '.join(names)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a third of the moves")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed by more than 25 %%")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.pages if name not in names]:
        parser.error(f"no concept page named {', '.join(unknown)}")
    places = [place for place in PLACES if place.name in (arguments.pages or names)]

    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "clocked").mkdir()
        seen = on_screen(root, places)
        times = server_times(root / "clocked", places, 15 if arguments.quick else 40, seen)
        (root / "app.py").write_text(FLOOR.format(root=str(harness.ROOT)))
        shutil.copytree(harness.ROOT / ".streamlit", root / ".streamlit")
        with (
            harness.running_server(root / "app.txt") as base,
            harness.running_server(root / "floor.txt", folder=root) as floor,
            a_browser() as browser,
        ):
            for place in places:
                print(f"\n{place.name}   (load of the machine: {os.getloadavg()[0]:.1f})")
                server = times[place.name]
                shown = f"{server.seen:.1f} ms, first figure {server.first:.1f}, whole page {server.whole:.1f}"
                report.line("server time, what is on the screen", shown, server.seen, 10)
                measure(place, browser, base, floor, arguments.quick, report)
    if report.missed:
        print(f"\n{len(report.missed)} goals missed by more than {TOLERANCE - 1:.0%}.")
    if arguments.check and report.missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
