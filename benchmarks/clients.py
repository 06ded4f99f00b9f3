"""People at the app without browsers: each one speaks Streamlit's own protocol to the server over a websocket.

    async with visit(base, "/self_attention?seq_len=7") as visitor:
        await visitor.settled()
        await visitor.set("d_model", 16)
        print(visitor.exceptions, visitor.texts())

A visitor does what the browser's page does: it opens an address, takes the elements that the script sends, and sends
the script back to work with the state of the widgets. It draws nothing, so thirty of them fit on one small machine,
and what is measured is the server. The messages are Streamlit's protobufs and may change with its version; websockets
is a dependency of Streamlit itself.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState, ContextInfo
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Message = Any  # a protobuf of Streamlit's; they come without types


class Visitor:
    """One person on one page.

    shown: the elements of the page by their place in it. exceptions: every one that was ever shown, with its message.
    on_change: called after every message of the server. query: what stands in the address behind the "?".
    sees: the parts of the page on this visitor's screen; None for a screen that shows all of it. The others follow a
    slider later (`look`). first_pictures: the seconds after which the first picture of each move of a live slider was
    there.
    """

    def __init__(self, connection: ClientConnection, base: str, path: str) -> None:
        address = urlsplit(path)
        self._url = base + address.path
        self.page, self.query = address.path.strip("/"), address.query
        self.shown: dict[tuple[int, ...], Element] = {}
        self.exceptions: list[str] = []
        self.sees: Sequence[str] | None = None
        self.first_pictures: list[float] = []
        self.on_change: Callable[[], None] = lambda: None
        self._connection, self._news = connection, asyncio.Event()
        self._states: dict[str, WidgetState] = {}  # what this visitor has set
        self._runs: dict[tuple[int, ...], int] = {}  # which run of the script sent the element at a place
        self._fragments: dict[tuple[int, ...], str] = {}  # and which fragment; "" for the script itself
        self._running_fragments: set[str] = set()  # that run alone, without the script
        self._page_hash = ""
        self._running = self._closed = False
        self._begun = 0  # runs of the script
        self._moves = 0  # of live sliders
        self._slid: dict[str, tuple[float, int]] = {}  # where this visitor has put them, and how many runs before

    # --- what a person does ----------------------------------------------------------------------------------------

    async def set(self, key: str, value: Any, patience: float = 60) -> float:
        """Move a slider, flip a switch, choose or type; wait until the page is drawn again; returns the seconds.

        A live slider is moved, and let go when the first picture is there; where that is all of the page that is seen,
        both is said at once.

        Raises:
            KeyError: no such widget is on the page. TimeoutError: it takes longer than `patience` seconds.
        """
        found = self.widget(key)
        if type(found).__name__ != "BidiComponent":
            return await self._changed(await self._send(self._state(key, value)), patience)
        wires = told(found)
        once = not wires["wire_at_rest"] or [f"wire {part}" for part in self._seen()] == [wires["wire"]]
        moved = await self.slide(key, value, rest=once, patience=patience)
        if wires["wire_at_rest"]:
            self.first_pictures.append(moved)
        if once:
            return moved
        return moved + await self.slide(key, value, rest=True, patience=patience)

    async def slide(self, key: str, value: Any, *, rest: bool, patience: float = 60) -> float:
        """Say that a live slider is somewhere, at rest or still on its way; returns the seconds, like `set`.

        Raises:
            KeyError: no such slider is on the page. TimeoutError: it takes longer than `patience` seconds.
        """
        wire = told(self.widget(key))["wire"]
        self._slid[key] = float(value), self._begun
        seen = self._seen() if rest else []
        others = (other for other in map("wire {}".format, seen) if other != wire)
        return await self.say(next(others, wire), patience, name=key, value=value, rest=rest, seen=seen)

    async def look(self, patience: float = 60) -> float:
        """Ask for the parts that have not followed the sliders yet, as a browser does by and by; returns the seconds.

        0 where there are none.
        """
        late = self.late()
        if not late:
            return 0.0
        return await self.say(f"wire {late[0]}", patience, name="", value=None, rest=True, seen=late)

    async def say(self, wire: str, patience: float = 60, **report: Any) -> float:
        """Report by a wire: name, value, rest, seen; returns the seconds, like `set`. Raises KeyError: no such wire."""
        self._moves += 1
        told_by = json.dumps([dict(event="moved", value=report | dict(number=self._moves))])
        return await self.report(events(self.widget(wire)), patience, json_trigger_value=told_by)

    def _seen(self) -> list[str]:
        if self.sees is not None:
            return list(self.sees)
        wires = [_key_of(element) for element in self.shown.values()]
        return [key.removeprefix("wire ") for key in wires if key.startswith("wire ")]

    async def press(self, key: str) -> int:
        """Press a button; returns at once, for a training takes long. `settled` waits for the end.

        Raises:
            KeyError: no such button is on the page.
        """
        return await self._send(WidgetState(id=self.widget(key).id, trigger_value=True))

    async def report(self, widget_id: str, patience: float = 60, **value: Any) -> float:
        """Say of a widget whatever is given, as no browser would: `double_array_value=DoubleArray(data=[nan])`.

        Returns the seconds, like `set`. Raises TimeoutError where it takes longer than `patience` seconds.
        """
        return await self._changed(await self._send(WidgetState(id=widget_id, **value)), patience)

    async def open(self, path: str, patience: float = 60, *, look: bool = True) -> float:
        """Go to another address of the app, as a link on the page does; returns the seconds until it is drawn.

        look: to its end, not just its first part.
        """
        address = urlsplit(path)
        self.page, self.query, self._page_hash = address.path.strip("/"), address.query, ""
        self._states.clear()
        took = await self._changed(await self._send(), patience)
        return took + (await self.look(patience) if look else 0.0)

    async def rerun(self, patience: float = 60) -> float:
        """Run the whole script again, as the menu's entry does; returns the seconds until it is drawn."""
        return await self._changed(await self._send(), patience)

    def vanish(self) -> None:
        """Break the connection without a goodbye, as a closed lid or a lost network does."""
        self._connection.transport.abort()

    async def settled(self, patience: float = 60) -> None:
        """Wait until the script has run to its end. Raises TimeoutError after `patience` seconds."""
        await self.until(lambda: self.idle, patience)

    async def until(self, holds: Callable[[], bool], patience: float = 60) -> None:
        """Wait until something holds, which is looked at after every message.

        Raises:
            TimeoutError: it does not within `patience` seconds. ConnectionError: the server has closed the connection.
        """
        async with asyncio.timeout(patience):
            while not holds():
                if self._closed:
                    raise ConnectionError(f"the server closed the connection of a visitor of /{self.page}")
                self._news.clear()
                await self._news.wait()

    # --- what a person sees ----------------------------------------------------------------------------------------

    @property
    def runs(self) -> int:
        """How many runs of the script, or of parts of it, have begun."""
        return self._begun

    @property
    def idle(self) -> bool:
        """Whether the script has run to its end."""
        return self._begun > 0 and not self._running

    def widget(self, key: str) -> Message:
        """The widget with this key, as the server described it. Raises KeyError where there is none."""
        for element in self.shown.values():
            if _key_of(element) == key:
                return _inside(element)
        raise KeyError(f"no widget {key!r} on /{self.page}")

    def widget_ids(self) -> list[str]:
        """Of all widgets on the page, by which they are reported."""
        return [found.id for found in map(_inside, self.shown.values()) if getattr(found, "id", "")]

    def takes(self, widget_id: str) -> str:
        """What can be said of a widget: "number", "whole number", "option", "text"; of others ""."""
        found = next(found for found in map(_inside, self.shown.values()) if getattr(found, "id", "") == widget_id)
        kinds = {"Slider": "number", "ButtonGroup": "option", "NumberInput": "whole number", "TextInput": "text"}
        return "option" if getattr(found, "options", None) else kinds.get(type(found).__name__, "")

    def value(self, key: str) -> float:
        """What a live slider shows. Raises KeyError where there is none."""
        place = next((place for place, element in self.shown.items() if _key_of(element) == key), None)
        if place is None:
            raise KeyError(f"no slider {key!r} on /{self.page}")
        moved, before = self._slid.get(key, (0.0, 0))
        return moved if before >= self._runs[place] else float(told(_inside(self.shown[place]))["value"])

    def late(self) -> list[str]:
        """The parts of the page that have not followed the sliders yet."""
        wires = [told(wire) for wire in self.of_kind("bidi_component") if _key(wire.id).startswith("wire")]
        knowing = [wire for wire in wires if "late" in wire]
        late = max(knowing, key=lambda wire: int(wire["heard"]))["late"] if knowing else ""
        return late.split(",") if late else []

    def has(self, key: str) -> bool:
        """Whether there is a widget with this key that can be used."""
        return any(
            _key(getattr(found, "id", "")) == key and not getattr(found, "disabled", False)
            for found in map(_inside, self.shown.values())
        )

    def of_kind(self, kind: str) -> list[Message]:
        """All elements of a kind, by Streamlit's name of it, in the page's order: "progress", "plotly_chart"."""
        places = sorted(place for place, element in self.shown.items() if _kind(element) == kind)
        return [_inside(self.shown[place]) for place in places]

    def figure_runs(self) -> dict[str, int]:
        """Of each figure by its key: which run drew it last."""
        return {_key_of(each): self._runs[place] for place, each in self.shown.items() if _kind(each) == "plotly_chart"}

    def texts(self) -> list[str]:
        """All texts of the page: what `st.text`, `st.markdown`, `st.info` and `st.progress` say."""
        words = [
            getattr(_inside(self.shown[place]), "body", "") or getattr(_inside(self.shown[place]), "text", "")
            for place in sorted(self.shown)
        ]
        return [text for text in words if text]

    # --- the protocol ----------------------------------------------------------------------------------------------

    async def _send(self, change: WidgetState | None = None) -> int:
        """Send the script to work; returns how many runs had begun before. A trigger is sent once, a value kept."""
        states = dict(self._states)
        if change:
            states[change.id] = change
            if change.WhichOneof("value") not in ("trigger_value", "json_trigger_value"):
                self._states[change.id] = change
        client = ClientState(query_string=self.query, page_name=self.page, page_script_hash=self._page_hash)
        client.context_info.CopyFrom(ContextInfo(url=self._url))  # as a browser: it gets live sliders
        client.widget_states.widgets.extend(states.values())
        client.fragment_id = self._fragment_of(change.id) if change else ""
        await self._connection.send(BackMsg(rerun_script=client).SerializeToString())
        return self._begun

    async def _changed(self, begun: int, patience: float) -> float:
        start = perf_counter()
        await self.until(lambda: self._begun > begun and not self._running, patience)
        return perf_counter() - start

    def _state(self, key: str, value: Any) -> WidgetState:
        found = self.widget(key)
        if getattr(found, "query_param_key", ""):  # the browser puts it in the address itself
            spelled = str(value).lower() if isinstance(value, bool) else f"{value}"
            self.query = urlencode(dict(parse_qsl(self.query)) | {found.query_param_key: spelled})
        return _written(found, value)

    async def _listen(self) -> None:
        try:
            async for data in self._connection:
                assert isinstance(data, bytes)
                self._take(ForwardMsg.FromString(data))
                self._news.set()
                self.on_change()
        except ConnectionClosed:
            pass
        finally:
            self._closed = True
            self._news.set()

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._running = True
            self._begun += 1
            self._running_fragments = set(message.metadata.run.fragment_ids)
        elif kind == "navigation":
            self._page_hash = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "delta":
            self._take_delta(message)
        elif kind == "script_finished":
            self._running = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN  # then the next one begins
            if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                self.exceptions.append("the script does not compile")
            if message.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
            ):
                self._drop_what_was_not_sent_again()

    def _take_delta(self, message: ForwardMsg) -> None:
        place, delta = tuple(message.metadata.delta_path), message.delta
        kind = delta.WhichOneof("type")
        if kind == "add_block":
            self._drop([place])
        elif kind == "new_element":
            self.shown[place], self._runs[place] = delta.new_element, self._begun
            self._fragments[place] = delta.fragment_id
            found = _inside(delta.new_element)
            if _kind(delta.new_element) == "exception":
                self.exceptions.append(f"{found.type}: {found.message}")
            if getattr(found, "set_value", False):  # the script moved it
                self._states.pop(found.id, None)

    def _drop_what_was_not_sent_again(self) -> None:
        """After a run, of all elements; after fragments alone, of theirs."""
        alone = self._running_fragments
        old = [place for place, sent_by in self._runs.items() if sent_by < self._begun]
        self._drop([place for place in old if not alone or self._fragments[place] in alone])

    def _fragment_of(self, widget_id: str) -> str:
        """The fragment that drew a widget; "" where the script itself did."""
        for place, element in self.shown.items():
            found = _inside(element)
            if widget_id in (getattr(found, "id", ""), events(found)):
                return self._fragments[place]
        return ""

    def _drop(self, places: Sequence[tuple[int, ...]]) -> None:
        for place in places:
            self.shown.pop(place, None)
            self._runs.pop(place, None)
            self._fragments.pop(place, None)


def _kind(element: Element) -> str:
    return element.WhichOneof("type") or ""


def _inside(element: Element) -> Message:
    return getattr(element, _kind(element)) if _kind(element) else element


def _key_of(element: Element) -> str:
    """The key of the widget that an element is."""
    return _key(getattr(_inside(element), "id", ""))


def _key(widget_id: str) -> str:
    """The key that the script gave a widget: "$$ID-HASH-KEY"."""
    return widget_id.split("-", 2)[-1] if widget_id.count("-") >= 2 else ""


def told(component: Message) -> dict[str, Any]:
    """What the page has told a live slider or a wire."""
    return dict(json.loads(component.json))


def events(wire: Message) -> str:
    """By which id a wire is reported."""
    return f"$$STREAMLIT_INTERNAL_KEY_{getattr(wire, 'id', '')}__events"


def _written(widget: Message, value: Any) -> WidgetState:
    """A widget's value as its kind says it."""
    state, kind = WidgetState(id=widget.id), type(widget).__name__
    if kind == "Checkbox":
        state.bool_value = bool(value)
    elif kind == "Slider" and not widget.options:
        state.double_array_value.data.append(float(value))
    elif kind in ("Slider", "ButtonGroup"):  # a slider over options
        state.string_array_value.data.extend([value] if isinstance(value, str) else map(str, value))
    elif kind == "NumberInput":
        setattr(state, "int_value" if widget.data_type == type(widget).INT else "double_value", value)
    else:
        state.string_value = str(value)
    return state


@asynccontextmanager
async def visit(base: str, path: str, patience: float = 60) -> AsyncIterator[Visitor]:
    """Open a page by its path, with its query string if it has one, and wait until it is drawn.

    Raises:
        OSError: no server answers at `base`. TimeoutError: the page takes longer than `patience` seconds.
    """
    address = base.replace("http", "ws", 1) + "/_stcore/stream"
    async with connect(address, subprotocols=["streamlit"], max_size=None, compression=None) as connection:  # type: ignore[list-item]
        visitor = Visitor(connection, base, path)
        listening = asyncio.create_task(visitor._listen())
        try:
            await visitor._send()
            await visitor.settled(patience)
            await visitor.look(patience)
            yield visitor
        finally:
            listening.cancel()
