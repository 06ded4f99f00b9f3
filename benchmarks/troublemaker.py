"""One visitor who sends what no browser would, and whether anybody else feels it.

    python -m benchmarks.troublemaker
    python -m benchmarks.troublemaker --links 1000 --turns 10

Random links, a very long sentence, and widgets told what they cannot be. Beside it somebody moves a slider, and their
redraws are timed: alone, beside an ordinary visitor who moves a slider without a pause, and beside each kind of
trouble. Ends with 1 where an exception was shown to anybody.
"""

import argparse
import asyncio
import random
import string
import sys
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from math import inf, nan
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

import numpy as np
from streamlit.proto.Common_pb2 import DoubleArray, StringArray

from benchmarks.classroom import SLIDERS
from benchmarks.clients import Visitor, visit
from tests.browser.harness import started

PAGES = ("", *SLIDERS)
NAMES = (
    *("seq_len", "d_model", "heads", "seed", "sentence", "source", "source_len", "cross", "causal", "padding"),
    *("query", "stage", "scheme", "d_ff", "residual", "norm", "order", "blocks", "block", "head", "off", "gain"),
    *("temperature", "task", "layers", "steps", "learning_rate", "encoding", "beside", "present", "questions"),
    *("lock", "hide", "embed"),
)
TEXTS = (
    *("", "0", "-1", "1e9", "1e400", "nan", "inf", "3.5", "true", "None", "[]", "1,2,3", "../../etc/passwd", "%00"),
    *("<img src=x onerror=alert(1)>", r"$\frac{1}{2}$", "**bold**", ":material/home:", "{{7*7}}", "__import__('os')"),
)
# What no browser would say of a widget, in the kind of message that belongs to it.
WRONG: dict[str, list[dict[str, Any]]] = {
    "number": [{"double_array_value": DoubleArray(data=d)} for d in ([1e9], [-1e9], [nan], [inf], [], [1, 2], [3.3])],
    "option": [{"string_array_value": StringArray(data=data)} for data in (["nonsense"], [], ["1", "2"], ["-1"])],
    "whole number": [{"int_value": value} for value in (-1, 10**9, -(2**62))],
    "text": [{"string_value": text} for text in TEXTS],
}


async def random_links(visitor: Visitor, count: int, chance: random.Random) -> None:
    """Open pages by links that nobody has checked."""
    for _ in range(count):
        names = chance.sample(NAMES, chance.randint(1, 6))
        link = [(name, random_text(chance)) for name in names] + [(random_text(chance), random_text(chance))]
        await visitor.open(f"/{chance.choice(PAGES)}?{urlencode(link, errors='replace')}")


def random_text(chance: random.Random) -> str:
    """A known nuisance or random characters."""
    if chance.random() < 0.6:
        return chance.choice(TEXTS)
    letters = string.printable + "éß𝄞\u202e\u0000"
    return "".join(chance.choice(letters) for _ in range(chance.choice((1, 5, 50, 2000))))


async def long_sentences(visitor: Visitor, length: int, times: int = 1) -> None:
    """Type sentences of so many characters, and give them in a link: of many words, of one word, of signs."""
    for turn in range(times):
        for part in ("word ", "x", "<b>$_*", "\n"):
            text = f"{turn} " + part * (length // len(part))
            await visitor.open("/self_attention")
            await visitor.report(visitor.widget("sentence").id, string_value=text)
            await visitor.open(f"/multi_head_attention?{urlencode({'sentence': text})}")


async def wrong_values(visitor: Visitor, chance: random.Random, pages: Sequence[str] = PAGES) -> None:
    """Tell the widgets of each page all that is wrong for their kind, on top of one another."""
    for page in pages:
        await visitor.open(f"/{page}")
        reports = [(id, value) for id in visitor.widget_ids() for value in WRONG.get(visitor.takes(id), [])]
        for widget_id, value in chance.sample(reports, len(reports)):
            await visitor.report(widget_id, **value)


async def ordinary(visitor: Visitor, seconds: float, chance: random.Random) -> None:
    """Somebody who moves sliders without a pause, for comparison."""
    end = perf_counter() + seconds
    while perf_counter() < end:
        page = chance.choice(list(SLIDERS))
        await visitor.open(f"/{page}")
        for key, over in SLIDERS[page].items():
            await visitor.set(key, chance.choice(over))


async def felt(base: str, trouble: Coroutine[Any, Any, None]) -> list[float]:
    """Seconds of a bystander's redraws, four a second, while the trouble lasts."""
    redraws: list[float] = []
    async with visit(base, "/self_attention") as bystander:
        going = asyncio.create_task(trouble)
        while not going.done():
            redraws.append(await bystander.set("d_model", (8, 16, 32)[len(redraws) % 3]))
            await asyncio.wait([going], timeout=0.25)
        await going
        if bystander.exceptions:
            raise RuntimeError(f"the bystander was shown {bystander.exceptions[0]}")
    return redraws


async def measure(base: str, links: int, turns: int) -> list[str]:
    """All kinds of trouble one after the other, each told in a line; returns the exceptions that were shown."""
    chance = random.Random(0)
    async with AsyncExitStack() as stack:
        visitor = await stack.enter_async_context(visit(base, "/"))
        for name, trouble in {
            "alone": asyncio.sleep(10),
            "beside somebody who moves sliders without a pause": ordinary(visitor, 15, chance),
            f"beside {links:,} random links": random_links(visitor, links, chance),
            "beside sentences of 100,000 characters": long_sentences(visitor, 100_000, times=turns),
            "beside widgets told what they cannot be": wrong_values(visitor, chance),
        }.items():
            redraws = await felt(base, trouble)
            median, high = 1000 * np.percentile(redraws, [50, 95])
            print(f"{name:52s} median {median:3.0f} ms, 95 % within {high:3.0f} ms, {len(redraws)} redraws", flush=True)
        return visitor.exceptions


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.troublemaker", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--links", type=int, default=1000)
    parser.add_argument(
        "--turns", type=int, default=3, help="of the long sentences and of the wrong values (default 3)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, started(Path(folder) / "log.txt") as server:
        exceptions = asyncio.run(measure(server.base, options.links, options.turns))
    print(f"exceptions shown: {len(exceptions)}")
    for shown in sorted(set(exceptions)):
        print(f"NOT AS IT SHOULD BE: {shown}")
    return bool(exceptions)


if __name__ == "__main__":
    sys.exit(main())
