"""What follows a slider: parts of a page are drawn anew without its script, and show what the whole page would show."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.classroom import SLIDERS
from benchmarks.clients import Visitor, events, told, visit
from tests.browser.harness import running_server
from tests.test_together import run

MOVES = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("server") / "log.txt") as base:
        yield base


def seen(visitor: Visitor) -> list[tuple[tuple[int, ...], str, Any]]:
    """All that stands on the page, and which parts are late; without counts of moves, and who tells what is late."""
    found: list[tuple[tuple[int, ...], str, Any]] = [((), "late", visitor.late())]
    for place, element in sorted(visitor.shown.items()):
        kind = str(element.WhichOneof("type"))
        what = getattr(element, kind)
        if kind == "bidi_component" and "heard" in what.json:
            track = {
                name: value
                for name, value in told(what).items()
                if name not in ("heard", "session", "run", "late", "empty")
            }
            if "value" in track:  # a slider, not a wire
                track["value"] = visitor.value(what.id.split("-", 2)[-1])
            found.append((place, kind, track))
        else:
            found.append((place, kind, what.SerializeToString(deterministic=True)))
    return found


def maps(visitor: Visitor) -> dict[str, str]:
    """The figures of the page by key."""
    return {chart.id.split("-", 2)[-1]: chart.spec for chart in visitor.of_kind("plotly_chart")}


@pytest.mark.parametrize("name", list(SLIDERS))
def test_what_follows_a_slider_is_what_the_whole_page_shows(name: str, server: str) -> None:
    chance = random.Random(name)
    sliders = {key: list(values) for key, values in SLIDERS[name].items()}

    async def move() -> None:
        async with visit(server, f"/{name}") as visitor:
            for _ in range(MOVES):
                key = chance.choice(list(sliders))
                await visitor.set(key, chance.choice(sliders[key]))
                followed = seen(visitor), visitor.query
                await visitor.rerun()
                assert followed == (seen(visitor), visitor.query)
            async with visit(server, f"/{name}?{visitor.query}") as other:
                assert maps(visitor) == maps(other)
            assert visitor.exceptions == []

    run(move())


@pytest.mark.parametrize(
    "link",
    [
        "/recurrence",
        "/recurrence?sentence=the dog bites the man",
        "/self_attention?stage=all",
        "/self_attention?cross=true&stage=projections&padding=2",
        "/positional_encoding",
        "/positional_encoding?scheme=table&permutation=shuffled",
        "/positional_encoding?scheme=rope&d_model=9",
        "/positional_encoding?scheme=alibi&causal=true",
        "/positional_encoding?scheme=none&sentence=the dog bites the man",
        "/multi_head_attention?off=2",
        "/multi_head_attention?heads_from=built by hand&sentence=the dog bites the man&off=1",
        "/multi_head_attention?heads_from=trained",
        "/multi_head_attention?heads_from=trained&model=induction&off=1",
        "/transformer_block?blocks=3&order=pre-norm&layer_norm=second&compare=true",
        "/transformer_block?blocks=2&norm=false&residual=false&heads=2",
        "/training_lab?layers=2",
    ],
)
def test_whichever_slider_moves_all_shows_what_a_new_run_shows(link: str, server: str) -> None:
    """So what a page says of its parts is true: that some sliders change nothing in them."""

    async def move() -> None:
        async with visit(server, link) as visitor:
            sliders = [told(each) for each in visitor.of_kind("bidi_component") if "label" in told(each)]
            assert sliders
            for track in sliders:
                values = track.get("options") or [track["min"], track["max"]]
                for value in (values[-1], values[0]):
                    await visitor.set(track["name"], value)
                    followed = seen(visitor), visitor.query
                    await visitor.rerun()
                    assert followed == (seen(visitor), visitor.query), track["name"]
            assert visitor.exceptions == []

    run(move())


@pytest.mark.parametrize(
    ("link", "key", "value", "changed"),
    [
        ("/recurrence", "gain", 0.5, {"dependencies", "memory"}),
        ("/positional_encoding", "pair", 3, {"encoding", "waves"}),
        ("/positional_encoding?scheme=rope", "pair", 3, {"encoding", "waves"}),
        ("/multi_head_attention", "head", 2, {"all_heads", "one_head"}),
    ],
)
def test_what_a_slider_does_not_change_is_not_drawn_again(
    link: str, key: str, value: float, changed: set[str], server: str
) -> None:
    async def move() -> None:
        async with visit(server, link) as visitor:
            begun = visitor.runs
            await visitor.set(key, value)
            drawn = {key for key, run in visitor.figure_runs().items() if run > begun}
            assert (drawn, visitor.late()) == (changed, [])

    run(move())


@pytest.mark.parametrize(
    ("link", "key", "value"),
    [
        ("/self_attention?present=2", "query", 3),
        ("/self_attention?present=1&seq_len=7", "seq_len", 3),
        ("/self_attention?seq_len=9&query=9", "seq_len", 4),  # another slider gives way, and says so
        ("/self_attention?seq_len=900", "d_model", 12),  # what the door said has been read
        ("/self_attention?d_model=64&weight_scale=0.1&scaling=false", "d_model", 8),  # the end of an experiment
        ("/self_attention?lock=d_model&d_model=12", "seq_len", 8),
        ("/multi_head_attention?d_model=24&heads=4&off=4&head=4", "d_model", 18),
        ("/multi_head_attention?d_model=24&heads=4&off=4&head=4", "heads", 2),
        ("/transformer_block?blocks=3&block=3", "blocks", 1),
        ("/training_lab", "layers", 2),
    ],
)
def test_what_else_a_slider_changes_is_drawn_anew(link: str, key: str, value: float, server: str) -> None:
    async def move() -> None:
        async with visit(server, link) as visitor:
            await visitor.set(key, value)
            followed = seen(visitor), visitor.query
            await visitor.rerun()
            assert followed == (seen(visitor), visitor.query)
            assert visitor.value(key) == value
            assert visitor.exceptions == []

    run(move())


def test_while_a_slider_moves_the_first_picture_follows_alone(server: str) -> None:
    async def drag() -> None:
        async with visit(server, "/self_attention") as visitor:
            before = maps(visitor)
            for value in (6, 7, 8):
                await visitor.slide("seq_len", value, rest=False)
                now = maps(visitor)
                assert {key for key in now if now[key] != before[key]} == {"map"}
                assert f"{value} query tokens" in visitor.of_kind("plotly_chart")[0].alt
                assert visitor.query == ""
            await visitor.slide("seq_len", 8, rest=True)
            assert visitor.query == "seq_len=8"
            async with visit(server, "/self_attention?seq_len=8") as other:
                assert maps(visitor) == maps(other)
                assert visitor.texts() == other.texts()
            assert visitor.exceptions == []

    run(drag())


def test_the_one_part_that_is_seen_beside_the_first_follows_in_one_run(server: str) -> None:
    async def move() -> None:
        async with visit(server, "/self_attention") as visitor:
            visitor.sees = ("part 1", "part 2")
            before = maps(visitor)
            await visitor.slide("d_model", 8, rest=False)
            begun = visitor.runs
            await visitor.slide("d_model", 8, rest=True)
            assert visitor.runs == begun + 1
            assert visitor.query == "d_model=8"
            assert visitor.late() == ["part 3"]
            now = maps(visitor)
            assert {key for key in now if now[key] != before[key]} == {"map", "row"}
            await visitor.look()
            followed = seen(visitor), visitor.query
            await visitor.rerun()
            assert followed == (seen(visitor), visitor.query)

    run(move())


def test_the_part_that_is_seen_alone_follows_in_one_run(server: str) -> None:
    async def move() -> None:
        async with visit(server, "/self_attention") as visitor:
            visitor.sees, begun = ("part 1",), visitor.runs
            before = maps(visitor)
            await visitor.set("d_model", 8)
            assert visitor.runs == begun + 1
            assert visitor.query == "d_model=8"
            assert visitor.late() == ["part 2", "part 3"]
            now = maps(visitor)
            assert {key for key in now if now[key] != before[key]} == {"map"}
            await visitor.look()
            followed = seen(visitor), visitor.query
            await visitor.rerun()
            assert followed == (seen(visitor), visitor.query)

    run(move())


def test_where_a_move_draws_the_whole_page_its_end_alone_answers(server: str) -> None:
    """The browser reports by the wires that it has: until the page has come to its end, they are those of before."""

    async def move() -> None:
        async with visit(server, "/self_attention?seq_len=900") as visitor:
            await visitor.slide("d_model", 12, rest=False)  # the note about 900 goes
            heard = {part: told(visitor.widget(f"wire {part}"))["heard"] for part in ("part 1", "part 2", "last")}
            assert heard["part 1"] == heard["part 2"] == 0 < heard["last"]
            await visitor.slide("d_model", 12, rest=True)
            assert visitor.query == "seq_len=64&d_model=12"

    run(move())


def test_the_last_report_of_a_page_that_was_left_harms_nobody(server: str) -> None:
    async def leave() -> None:
        async with visit(server, "/transformer_block") as visitor:
            wire = events(visitor.widget("wire part 1"))
            said = json.dumps([dict(event="moved", value=dict(name="seq_len", value=9, number=7, rest=False, seen=[]))])
            visitor.shown.clear()  # the browser is on another page, and asks for it in the same message
            visitor.page, visitor.query, visitor._page_hash = "recurrence", "", ""
            await visitor.report(wire, json_trigger_value=said)
            await visitor.look()
            assert visitor.exceptions == []
            assert "dependencies" in maps(visitor)

    run(leave())


def test_a_slider_within_the_page_moves_the_pictures_around_it(server: str) -> None:
    async def drag() -> None:
        async with visit(server, "/self_attention") as visitor:
            before = maps(visitor)
            await visitor.slide("query", 4, rest=False)
            assert {key for key, spec in maps(visitor).items() if spec != before[key]} == {"row"}

    run(drag())


def test_what_is_not_on_the_screen_follows_when_it_is_asked_for(server: str) -> None:
    async def move() -> None:
        async with visit(server, "/self_attention") as visitor:
            assert visitor.late() == []
            visitor.sees, before = ["part 1"], maps(visitor)
            await visitor.set("seq_len", 8)
            now = maps(visitor)
            assert {key for key in now if now[key] != before[key]} == {"map"}
            assert (visitor.late(), visitor.query) == (["part 2", "part 3"], "seq_len=8")
            await visitor.look()
            async with visit(server, "/self_attention?seq_len=8") as other:
                assert (visitor.late(), maps(visitor), visitor.texts()) == ([], maps(other), other.texts())
            assert visitor.exceptions == []

    run(move())


def test_what_was_late_is_on_the_page_when_anything_else_is_changed(server: str) -> None:
    async def move() -> None:
        async with visit(server, "/self_attention") as visitor:
            visitor.sees = ["part 1"]
            await visitor.set("seq_len", 8)
            await visitor.set("causal", True)
            assert visitor.late() == []
            async with visit(server, "/self_attention?seq_len=8&causal=true") as other:
                assert maps(visitor) == maps(other)
            assert visitor.exceptions == []

    run(move())


def test_a_page_opens_with_its_first_part(server: str) -> None:
    async def look(name: str) -> None:
        async with visit(server, "/home") as visitor:
            await visitor.open(f"/{name}", look=False)
            first, late = maps(visitor), visitor.late()
            await visitor.look()
            assert len(first) == 1
            assert late[0] == "part 2"
            assert len(maps(visitor)) > 1
            assert visitor.late() == []
            whole = seen(visitor), visitor.query
            await visitor.rerun()
            assert whole == (seen(visitor), visitor.query)
            assert visitor.exceptions == []

    for name in SLIDERS:
        run(look(name))


@pytest.mark.parametrize("wanted", ["part 2", 7, None, [7, None, ["part 2"], {}], {"part 2": 1}])
def test_nonsense_about_what_is_seen_draws_nothing(wanted: Any, server: str) -> None:
    async def say() -> None:
        async with visit(server, "/self_attention") as visitor:
            before = maps(visitor)
            await visitor.slide("seq_len", 8, rest=False)
            await visitor.say("wire last", name="seq_len", value=8, rest=True, seen=wanted)
            now = maps(visitor)
            assert {key for key in now if now[key] != before[key]} == {"map"}
            assert (visitor.query, visitor.exceptions) == ("seq_len=8", [])

    run(say())
