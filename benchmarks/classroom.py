"""A class at work: N people, each moving a slider about once a second, and what they and the server feel of it.

    python -m benchmarks.classroom 30 60
    python -m benchmarks.classroom 100 100 --check
    python -m benchmarks.classroom 100 100 --replicas 2

Starts a server of its own on a free port of this machine (or several, among which the people are spread as a load
balancer would), seats the people one after the other, people and pages by
turns, and lets each move one of the page's sliders to a random place, at random times that are one second apart in the
mean. A redraw is timed from the sending of a move until all that is on the screen shows it, as one person sees it:
waiting for the others included, drawing in a browser not. What is further down follows when it is scrolled to or when
nothing has moved for a second and a half, so not here, unless `--whole` asks for pages that are all on the screen. The
people are those of `benchmarks.clients`. They share the machine with the server, so how busy they are is printed too.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.clients import Visitor, visit
from tests.browser.harness import Server, started

# Of each page, the sliders that are moved, and over what.
SLIDERS: dict[str, dict[str, range]] = {
    "recurrence": {"seq_len": range(2, 257), "d_model": range(4, 129, 2)},
    "self_attention": {"seq_len": range(2, 65), "d_model": range(2, 65, 2)},
    "positional_encoding": {"seq_len": range(2, 129), "d_model": range(2, 129)},
    "multi_head_attention": {"seq_len": range(2, 65), "d_model": range(4, 65, 2)},
    "transformer_block": {"seq_len": range(2, 65), "d_model": range(4, 65, 2)},
    "training_lab": {"layers": range(1, 4), "d_model": range(8, 65, 8)},
}
# The parts of each page that are on a screen of 1280 x 900 pixels when it opens.
ON_SCREEN: dict[str, tuple[str, ...]] = {
    "recurrence": ("part 1", "part 2"),
    "self_attention": ("part 1", "part 2"),
    "positional_encoding": ("part 1", "part 2"),
    "multi_head_attention": ("part 1", "part 2"),
    "transformer_block": ("part 1", "part 2"),
    "training_lab": ("part 1",),
}
GOALS = {30: 0.100, 100: 0.300}  # seconds for 95 of 100 redraws, by the number of people at most, on two cores
MEMORY = 300.0  # MB that the server may have
GROWTH = 0.05  # share by which memory may grow from the middle to the end, when all pages have long been seen
LEEWAY = 1.25  # machines are noisy


@dataclass
class Lesson:
    """What was seen.

    redraws, first_pictures: seconds for each. memory: the largest server's, in MB, empty, in the middle and at the end.
    """

    people: int
    seconds: float = 0.0
    due: int = 0  # moves that should have been made; who still waits for a picture makes none
    redraws: list[float] = field(default_factory=list)
    first_pictures: list[float] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    busy: float = 0.0  # share of one core that the people took
    server_busy: float = 0.0  # the same of the servers

    @property
    def percentiles(self) -> tuple[float, float, float]:
        """Seconds within which half and 95 of 100 redraws were done, and the longest."""
        median, high, longest = np.percentile(self.redraws, [50, 95, 100])
        return float(median), float(high), float(longest)

    def missed(self, leeway: float = LEEWAY) -> list[str]:
        """The goals that are missed by more than the leeway."""
        _, high, _ = self.percentiles
        goal = next((goal for people, goal in sorted(GOALS.items()) if self.people <= people), None)
        found = []
        if self.exceptions:
            found.append(f"{len(self.exceptions)} exceptions: {'; '.join(sorted(set(self.exceptions))[:3])}")
        if goal and high > goal * leeway:
            found.append(f"95 % of the redraws within {1000 * high:.0f} ms, the goal is {1000 * goal:.0f} ms")
        if self.memory and self.memory[-1] > MEMORY * leeway:
            found.append(f"memory {self.memory[-1]:.0f} MB, the goal is {MEMORY:.0f} MB")
        if self.memory and self.memory[-1] > self.memory[-2] * (1 + GROWTH * leeway):
            found.append(f"memory grows: {self.memory[-2]:.0f} MB in the middle, {self.memory[-1]:.0f} MB at the end")
        return found


async def teach(
    servers: Sequence[Server], people: int, seconds: float, seed: int = 0, *, whole: bool = False
) -> Lesson:
    """Seat the people and let them work for so many seconds. whole: with all of the page on the screen."""
    lesson = Lesson(people, memory=memory(servers))
    async with AsyncExitStack() as stack:
        pages = [page for page in SLIDERS for _ in servers]
        pupils = [
            await stack.enter_async_context(visit(servers[turn % len(servers)].base, f"/{page}"))
            for turn, page in enumerate(islice(cycle(pages), people))
        ]
        for pupil in pupils:
            pupil.sees = None if whole else ON_SCREEN[pupil.page]
        start, worked, served = perf_counter(), process_time(), server_seconds(servers)
        work = asyncio.gather(
            *(move_sliders(pupil, lesson, start + seconds, random.Random(seed + i)) for i, pupil in enumerate(pupils))
        )
        await asyncio.wait([work], timeout=seconds / 2)
        lesson.memory += memory(servers)
        await work
        lesson.seconds = perf_counter() - start
        lesson.busy = (process_time() - worked) / lesson.seconds
        lesson.server_busy = (server_seconds(servers) - served) / lesson.seconds
        lesson.memory += memory(servers)
        lesson.exceptions = [shown for pupil in pupils for shown in pupil.exceptions]
        lesson.first_pictures = [seconds for pupil in pupils for seconds in pupil.first_pictures]
    return lesson


async def move_sliders(pupil: Visitor, lesson: Lesson, end: float, chance: random.Random) -> None:
    """Move a slider about once a second until the end; moves that are overdue are left out, but counted as due."""
    sliders, due = SLIDERS[pupil.page], perf_counter() + chance.uniform(0, 1)
    while due < end:
        await asyncio.sleep(max(0.0, due - perf_counter()))
        key = chance.choice(list(sliders))
        lesson.redraws.append(await pupil.set(key, chance.choice(sliders[key])))
        while due < perf_counter():
            lesson.due += 1
            due += chance.uniform(0.5, 1.5)


def memory(servers: Sequence[Server]) -> list[float]:
    """The memory (resident set) of the largest, in MB; nothing where the system does not tell, which Linux does."""
    files = [Path(f"/proc/{server.process.pid}/status") for server in servers]
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    return sorted(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))[-1:]


def server_seconds(servers: Sequence[Server]) -> float:
    """Seconds of a core that the servers have used; 0 where the system does not tell."""
    files = [Path(f"/proc/{server.process.pid}/stat") for server in servers]
    times = [file.read_text().rpartition(")")[2].split()[11:13] for file in files if file.exists()]
    return sum(int(user) + int(system) for user, system in times) / 100  # the kernel counts in hundredths


def told(lesson: Lesson) -> str:
    """The lesson in lines of text."""
    median, high, longest = (1000 * seconds for seconds in lesson.percentiles)
    places = ("start", "middle", "end")
    grown = ", ".join(f"{place} {size:.0f} MB" for place, size in zip(places, lesson.memory, strict=False))
    first, late = 1000 * np.percentile(lesson.first_pictures or [0.0], [50, 95])
    return "\n".join(
        [
            f"{lesson.people} people, {lesson.seconds:.0f} s, each moves a slider about once a second",
            f"redraws       median {median:.0f} ms, 95 % within {high:.0f} ms, longest {longest:.0f} ms",
            f"first picture median {first:.0f} ms, 95 % within {late:.0f} ms",
            f"moves         {len(lesson.redraws)} of {lesson.due} served; who still waits for a picture makes none",
            f"exceptions    {len(lesson.exceptions)}",
            f"memory        {grown or 'not known on this system'}",
            f"busy          server {lesson.server_busy:.0%} of a core, all people together {lesson.busy:.0%}",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classroom", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("people", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--replicas", type=int, default=1, help="servers among which the people are spread (default 1)")
    parser.add_argument("--whole", action="store_true", help="as if all of each page were on the screen")
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"end with 1 where a goal is missed by more than {LEEWAY - 1:.0%}% (two cores, up to {max(GOALS)} people)",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        logs = [Path(folder) / f"log-{number}.txt" for number in range(options.replicas)]
        servers = [stack.enter_context(started(log)) for log in logs]
        lesson = asyncio.run(teach(servers, options.people, options.seconds, whole=options.whole))
    print(told(lesson))
    missed = lesson.missed() if options.check else []
    for goal in missed:
        print(f"MISSED: {goal}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
